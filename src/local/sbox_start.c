/* How sandboxes come to be: a new one, or one that an earlier provider left. */
#include "sbox_priv.h"
#include <cct/local/init.h>
#include <cct/local/lifelog.h>
#include <cct/local/ns.h>
#include <cct/local/privnet.h>
#include <cct/local/provider.h>
#include <cct/local/tunnel.h>
#include <cct/secrets/digest.h>
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/log.h>
#include <cct/util/map.h>
#include <cct/util/pidstat.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define CREATE_MS 15000 /* from the start of the process to its first answer */
#define ADOPT_MS 3000

static int listen_unix(const char *path, struct err *e)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    if (!str_copy(sa.sun_path, sizeof(sa.sun_path), path))
        return err_set(e, ERR_INVALID, "socket path '%s' is too long", path), -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_sys(e, 0, "cannot make a socket"), -1;
    unlink(path);
    mode_t old = umask(0177);
    int rc = bind(fd, (struct sockaddr *)&sa, sizeof(sa));
    umask(old);
    if (rc != 0 || listen(fd, TUNNEL_CONNS_MAX) != 0) {
        err_sys(e, 0, "cannot listen on '%s'", path);
        close(fd);
        return -1;
    }
    return fd;
}

/* Without isolation the host's own /etc/profile sets PATH anew in login shells. */
static int put_profile(const struct provider *p, const char *home, struct err *e)
{
    char *path = fs_join(home, ".profile");
    char *text = xasprintf("PATH=%s/bin:$PATH\n", p->state_dir);
    int rc = fs_write_private(path, text, strlen(text), e);
    free(text);
    free(path);
    return rc;
}

/* A variable that neither the user nor the template has set. */
static void put_default(struct jw *w, const char *name, const char *value,
                        const struct sbox_new *n)
{
    if (value && *value && !json_get(n->env, name) &&
        !(n->image && json_get(n->image->env, name)))
        jw_str(w, name, value);
}

/* The user's variables, with the template's and the host's proxy settings in front:
 * nothing else of the host's environment reaches a sandbox. */
static void put_env(struct jw *w, const struct provider *p, const struct sbox_new *n)
{
    const struct cJSON *image = n->image ? n->image->env : NULL;
    static const char *const proxies[] = {"http_proxy", "https_proxy", "no_proxy", "all_proxy",
                                          "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"};
    jw_obj(w, "envVars");
    for (size_t i = 0; i < sizeof(proxies) / sizeof(proxies[0]); i++)
        put_default(w, proxies[i], getenv(proxies[i]), n);
    if (p->unsafe) {
        char *path = xasprintf("%s/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:"
                               "/sbin:/bin",
                               p->state_dir);
        put_default(w, "PATH", path, n);
        free(path);
    }
    /* programs are installed below /usr/local, by npm and pip as by hand; there is
     * no system's package that pip could break */
    if (sbox_root_is_layered(n)) {
        put_default(w, "NPM_CONFIG_PREFIX", "/usr/local", n);
        put_default(w, "PIP_BREAK_SYSTEM_PACKAGES", "1", n);
        put_default(w, "PIP_ROOT_USER_ACTION", "ignore", n);
        /* root there is one id only: owners named in archives do not exist */
        put_default(w, "TAR_OPTIONS", "--no-same-owner", n);
    }
    for (const struct cJSON *c = json_first(image); c; c = json_next(c))
        if (!json_get(n->env, json_name(c)))
            jw_str(w, json_name(c), json_str_of(c));
    for (const struct cJSON *c = json_first(n->env); c; c = json_next(c))
        jw_str(w, json_name(c), json_str_of(c));
    jw_end(w);
}

/* What the init needs to know, in memory only: keys are among it. */
static int config_fd(const struct provider *p, const struct sbox_rec *r, const char *home,
                     const struct sbox_new *n, struct err *e)
{
    const char *user = n->image ? n->image->user : NULL;
    const char *workdir = n->image ? n->image->workdir : NULL;
    struct buf b = BUF_INIT;
    struct jw w;
    if (r->isolated)
        home = "/home/user";
    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_str(&w, "sandboxID", r->id);
    jw_str(&w, "token", r->token);
    put_env(&w, p, n);
    jw_str(&w, "user", user && *user ? user : "user");
    jw_i64(&w, "uid", r->isolated ? NS_USER_ID : (int64_t)geteuid());
    jw_i64(&w, "gid", r->isolated ? NS_USER_ID : (int64_t)getegid());
    jw_str(&w, "home", home);
    jw_str(&w, "workdir", workdir && *workdir ? workdir : home);
    jw_bool(&w, "isolated", r->isolated);
    jw_i64(&w, "deadline", r->end_boot_ms + SBOX_DEADMAN_MS);
    if (r->cgroup[0])
        jw_i64(&w, "cgroupFd", INIT_CGROUP_FD);
    if (r->limits & CGROUP_CPU)
        jw_i64(&w, "cpuLimit", r->cpu);
    if (r->limits & CGROUP_MEMORY)
        jw_i64(&w, "memLimit", (int64_t)r->mem_mb << 20);
    jw_end(&w);
    int fd = memfd_create("cc-tui-local", MFD_CLOEXEC);
    if (fd < 0 || fs_write_all(fd, b.p, b.len) != 0 || lseek(fd, 0, SEEK_SET) != 0) {
        err_sys(e, 0, "cannot pass the sandbox's settings");
        if (fd >= 0)
            close(fd);
        fd = -1;
    }
    explicit_bzero(b.p, b.len);
    buf_release(&b);
    return fd;
}

/* NULL for what is absent or empty. */
static struct cJSON *copy_json(const struct cJSON *o)
{
    return json_first(o) ? json_copy(o) : NULL;
}

static void fill_record(const struct provider *p, const struct sbox_new *n, struct sbox_rec *r)
{
    memset(r, 0, sizeof(*r));
    r->id[0] = 'i';
    rand_id(r->id + 1, 20);
    digest_random_hex(r->token, 64);
    if (!json_bool(n->network, "allowPublicTraffic", true))
        digest_random_hex(r->traffic_token, 64);
    str_copy(r->template_id, sizeof(r->template_id), n->template_id);
    str_copy(r->build_id, sizeof(r->build_id), n->build_id ? n->build_id : "");
    str_copy(r->alias, sizeof(r->alias), n->alias ? n->alias : "");
    r->hidden = n->hidden;
    r->started_ms = clock_wall_ms();
    sbox_rec_set_end(r, r->started_ms + n->timeout_s * 1000);
    r->isolated = !p->unsafe;
    r->internet = n->internet;
    r->auto_pause = n->auto_pause;
    r->auto_resume = n->auto_resume;
    r->auto_pause_cold = n->auto_pause_cold;
    r->internet_asked = n->internet_asked;
    r->network = copy_json(n->network);
    r->metadata = copy_json(n->metadata);
    r->cpu = n->cpu ? n->cpu : PROV_CPU;
    r->mem_mb = n->mem_mb ? n->mem_mb : PROV_MEM_MB;
    snprintf(r->sock, sizeof(r->sock), "%s/s/%s.sock", p->runtime_dir, r->id);
}

static int make_group(const struct provider *p, struct sbox_rec *r, struct ns_spec *spec,
                      struct err *e)
{
    if (!p->groups.path[0])
        return 0;
    uid_t owner = r->isolated ? ns_ids()->uid : geteuid();
    int rc = cgroup_make(&p->groups, r->id, owner, r->cpu, r->mem_mb, r->cgroup, &r->limits, e);
    if (rc != 0) {
        r->cgroup[0] = '\0';
        return rc;
    }
    spec->cgroup = r->cgroup;
    spec->cgroup_fd = cgroup_run_fd(r->cgroup);
    return spec->cgroup_fd >= 0 ? 0 : err_sys(e, ERR_IO, "cannot open '%s'", r->cgroup);
}

/* The resolver's settings for a private network; *forward as privnet_resolv(). */
static void make_resolv(struct buf *b, bool *forward)
{
    size_t len;
    char *host = fs_read("/etc/resolv.conf", 64 << 10, false, &len, NULL);
    *forward = privnet_resolv(host ? host : "", b); /* without one: this machine's own */
    free(host);
}

/* `net` is the keeper's word on a private network, or -1 without one. */
static int start_process(struct provider *p, struct sbox_rec *r, const struct sbox_new *n,
                         struct ns_child *child, int *net, struct err *e)
{
    struct buf resolv = BUF_INIT;
    bool private = p->private_net && r->internet, forward = false;
    if (private)
        make_resolv(&resolv, &forward);
    struct sbox_root root;
    int rc = sbox_root_make(p, r->id, n, &root, e);
    if (rc == 0 && p->unsafe)
        rc = put_profile(p, root.home, e);
    struct ns_spec spec = {.id = r->id,
                           .exe = p->exe,
                           .config_fd = -1,
                           .listen_fd = -1,
                           .cgroup_fd = -1,
                           .isolated = r->isolated,
                           .own_net = !r->internet || private,
                           .resolv = private ? buf_str(&resolv) : NULL};
    if (rc == 0)
        rc = make_group(p, r, &spec, e);
    if (rc == 0) {
        sbox_root_fill(&root, &spec);
        spec.listen_fd = listen_unix(r->sock, e);
        spec.config_fd = config_fd(p, r, root.home, n, e);
        rc = spec.listen_fd < 0 || spec.config_fd < 0 ? ERR_IO : ns_start(&spec, child, e);
    }
    if (spec.listen_fd >= 0)
        close(spec.listen_fd);
    if (spec.config_fd >= 0)
        close(spec.config_fd);
    if (spec.cgroup_fd >= 0)
        close(spec.cgroup_fd);
    sbox_root_release(&root);
    buf_release(&resolv);
    *net = -1;
    if (rc == 0 && private) {
        rc = privnet_start(p->exe, r->id, child->pidfd, forward, net, e);
        if (rc != 0) { /* nothing knows of it yet */
            proc_signal(child->pidfd, SIGKILL);
            close(child->pidfd);
            close(child->status_fd);
        }
    }
    if (rc == 0) {
        r->pid = child->pid;
        r->start_ticks = pidstat_start(child->pid);
    }
    return rc;
}

int sbox_create(struct provider *p, const struct sbox_new *n, sbox_done done, void *arg,
                struct err *e)
{
    if (p->stopping)
        return err_set(e, ERR_BUSY, "the local provider is being stopped");
    if (n->hidden && sbox_count_hidden(p) >= PROV_MAX_HIDDEN)
        return err_set(e, ERR_LIMIT, "the limit of %d template builds at a time is reached",
                       PROV_MAX_HIDDEN);
    if (!n->hidden && sbox_count_running(p) >= (size_t)p->max_running)
        return err_set(e, ERR_LIMIT, "the limit of %d running sandboxes is reached",
                       p->max_running);
    struct sbox_rec r;
    struct ns_child child;
    fill_record(p, n, &r);
    int net, rc = start_process(p, &r, n, &child, &net, e);
    if (rc != 0) {
        sbox_remove_group(r.cgroup);
        sbox_remove_files(p, r.id, r.sock);
        sbox_rec_clear(&r);
        err_wrap(e, "sandbox could not be started");
        return e->code = ERR_SERVER; /* whatever it was, the request is not at fault */
    }
    rc = boxstore_save(p->state_dir, &r, e);
    struct sbox *b =
        sbox_make(p, &r, child.pidfd, child.status_fd, CREATE_MS, rc == 0 ? done : NULL, arg);
    if (net >= 0)
        sbox_net_watch(b, net);
    b->is_new = !n->hidden;
    if (n->image && !n->build_layer && n->image->start_cmd && *n->image->start_cmd) {
        b->start_cmd = xstrdup(n->image->start_cmd);
        b->ready_cmd = xstrdup(n->image->ready_cmd);
    }
    if (rc != 0) { /* without a record a restart would lose sight of it */
        sbox_kill(b, NULL, NULL);
        e->code = ERR_SERVER;
    }
    return rc;
}

/* --- taken over ------------------------------------------------------------- */

struct adoption {
    struct provider *p;
    void (*ready)(struct provider *p);
};

static void adopted(void *arg, struct sbox *b, const struct err *e)
{
    struct adoption *a = arg;
    struct provider *p = a->p;
    if (b) {
        log_info("sandbox %s taken over", b->rec.id);
        sbox_settle(b);
    } else {
        log_warn("sandbox not taken over: %s", e->text);
    }
    if (--p->adopting > 0)
        return;
    void (*ready)(struct provider *) = a->ready;
    free(a);
    ready(p);
}

static void adopt_one(void *arg, const char *id)
{
    struct adoption *a = arg;
    struct provider *p = a->p;
    struct sbox_rec r;
    struct err e = {0};
    if (boxstore_load(p->state_dir, id, &r, &e) != 0) {
        log_warn("leftovers of sandbox %s removed: %s", id, e.text);
        sbox_end_lost(id);
        char *sock = xasprintf("%s/s/%s.sock", p->runtime_dir, id);
        sbox_remove_files(p, id, sock);
        free(sock);
        return;
    }
    int pidfd = proc_open_checked(r.pid, r.start_ticks);
    if (pidfd < 0) {
        log_info("sandbox %s has ended meanwhile", id);
        sbox_remove_group(r.cgroup);
        if (p->life && !r.hidden)
            lifelog_add(p->life, &r, LIFE_KILLED, "ended", clock_wall_ms());
        sbox_remove_files(p, id, r.sock);
        sbox_rec_clear(&r);
        return;
    }
    if (r.hidden) {
        log_info("sandbox %s of a template build is ended", id);
        proc_signal(pidfd, SIGKILL);
        close(pidfd);
        sbox_remove_files(p, id, r.sock);
        sbox_rec_clear(&r);
        return;
    }
    p->adopting++;
    sbox_make(p, &r, pidfd, -1, ADOPT_MS, adopted, a)->is_told = true;
}

/* A group whose sandbox has no record. */
static void remove_unknown(void *arg, const char *id, const char *path)
{
    const struct provider *p = arg;
    if (!map_get(p->boxes, id))
        sbox_remove_group(path);
}

void sbox_adopt_all(struct provider *p, void (*ready)(struct provider *p))
{
    struct adoption *a = xcalloc(1, sizeof(*a));
    a->p = p;
    a->ready = ready;
    boxstore_each(p->state_dir, adopt_one, a);
    cgroup_each(&p->groups, remove_unknown, p);
    if (p->adopting == 0) {
        free(a);
        ready(p);
    }
}

/* --- without namespaces ------------------------------------------------------- */

static pid_t parent_of(pid_t pid)
{
    struct pidstat s;
    return pidstat_read(pid, &s) && s.state != 'Z' ? s.parent : 0;
}

static bool descends(pid_t pid, pid_t root)
{
    for (int depth = 0; pid > 1 && depth < 64; depth++) {
        pid = parent_of(pid);
        if (pid == root)
            return true;
    }
    return false;
}

/* One look at all processes; how many below `root` were killed. */
static int kill_below(pid_t root)
{
    DIR *d = opendir("/proc");
    if (!d)
        return 0;
    int n = 0;
    struct dirent *de;
    while ((de = readdir(d)) != NULL) {
        int64_t pid;
        if (!str_to_i64(de->d_name, 2, INT32_MAX, &pid) || !descends((pid_t)pid, root))
            continue;
        n += kill((pid_t)pid, SIGKILL) == 0;
    }
    closedir(d);
    return n;
}

void sbox_kill_tree(pid_t root)
{
    /* the init adopts its orphans, so all of them are below it; stopped, it
     * starts no new ones, and killed ones stay its zombies until it ends */
    kill(root, SIGSTOP);
    for (int round = 0; round < 50 && kill_below(root) > 0; round++)
        continue;
    kill(root, SIGKILL);
}

void sbox_end_lost(const char *id)
{
    pid_t pid = proc_find_init(id);
    if (pid > 0)
        sbox_kill_tree(pid);
}
