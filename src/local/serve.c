/* The provider as a program: one for each user, guarded by locks; its address file
 * appears, by rename, only when both ports answer. */
#include "serve_priv.h"
#include <cct/local/ctl.h>
#include <cct/local/http_srv.h>
#include <cct/local/lifelog.h>
#include <cct/local/ns.h>
#include <cct/local/privnet.h>
#include <cct/local/provider.h>
#include <cct/local/tpl.h>
#include <cct/local/tunnel.h>
#include <cct/secrets/digest.h>
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/log.h>
#include <cct/util/map.h>
#include <cct/util/pidstat.h>
#include <cct/util/xalloc.h>
#include <event2/event.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define RENEW_MS (10 * 60 * 1000)
#define SOCK_NAME_LEN 30 /* "/s/" + id + ".sock" + NUL */

struct serve {
    struct provider p;
    char *address; /* path of local.json */
    int ready_fd;  /* tells the waiting parent; -1 when done or foreground */
    int locks[2];
    int64_t idle_ms;
    bool failed;
};

/* --- places ------------------------------------------------------------------- */

static char *place(const char *given, enum fs_place which, const char *sub, struct err *e)
{
    if (given) {
        char *abs = given[0] == '/' ? xstrdup(given) : NULL;
        if (!abs)
            err_set(e, ERR_INVALID, "folder '%s' must be an absolute path", given);
        return abs;
    }
    char *base = fs_place(which, e);
    if (!base || !sub)
        return base;
    char *path = fs_join(base, sub);
    free(base);
    return path;
}

static int find_places(const struct serve_opts *o, char **state, char **runtime, struct err *e)
{
    *state = place(o->state_dir, FS_STATE, "local", e);
    *runtime = *state ? place(o->runtime_dir, FS_RUNTIME, NULL, e) : NULL;
    if (!*runtime)
        return ERR_INVALID;
    if (strlen(*runtime) + SOCK_NAME_LEN > 107)
        return err_set(e, ERR_INVALID,
                       "folder '%s' is too long for sockets; set a shorter one with "
                       "--runtime-dir",
                       *runtime);
    return 0;
}

bool serve_places(const struct serve_opts *o, char **state, char **runtime)
{
    struct err e = {0};
    if (find_places(o, state, runtime, &e) == 0)
        return true;
    fprintf(stderr, "cc-tui-local: %s\n", e.text);
    free(*state);
    free(*runtime);
    *state = *runtime = NULL;
    return false;
}

static int make_places(struct provider *p, struct err *e)
{
    static const char *const in_state[] = {"boxes", "bin", "layers"};
    int rc = fs_mkdir_private(p->state_dir, e);
    for (size_t i = 0; rc == 0 && i < 3; i++) {
        char *path = fs_join(p->state_dir, in_state[i]);
        rc = fs_mkdir_private(path, e);
        /* entered by the sandbox's user, through a mount of its own */
        if (rc == 0 && i == 2 && chmod(path, 0711) != 0)
            rc = err_sys(e, 0, "cannot open up '%s'", path);
        free(path);
    }
    char *socks = fs_join(p->runtime_dir, "s");
    if (rc == 0)
        rc = fs_mkdir_private(p->runtime_dir, e);
    if (rc == 0)
        rc = fs_mkdir_private(socks, e);
    free(socks);
    return rc;
}

/* Where unisolated sandboxes find the demo agent. */
static void link_agent(const struct provider *p)
{
    char *path = xasprintf("%s/bin/demo-agent", p->state_dir);
    unlink(path);
    if (symlink(p->exe, path) != 0)
        log_warn("cannot make '%s': %s", path, strerror(errno));
    free(path);
}

/* --- the loop ------------------------------------------------------------------- */

void provider_touch(struct provider *p)
{
    struct timeval now = {0, 0};
    event_add(p->tick, &now);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct serve *s = arg;
    struct provider *p = &s->p;
    int64_t now = clock_mono_ms();
    int64_t next = p->stopping ? 1000 : sbox_expire(p);
    size_t conns =
        (p->ctl ? http_srv_conns(p->ctl) : 0) + (p->tunnel ? tunnel_conns(p->tunnel) : 0);
    if (map_count(p->boxes) > 0 || conns > 0)
        p->used_ms = now;
    if (now - p->renewed_ms >= RENEW_MS) {
        p->renewed_ms = now;
        sbox_renew(p);
    }
    int64_t idle_left = p->used_ms + s->idle_ms - now;
    if ((p->stopping && map_count(p->boxes) == 0) || idle_left <= 0) {
        event_base_loopbreak(p->base);
        return;
    }
    if (idle_left < next)
        next = idle_left;
    struct timeval tv = {next / 1000, next % 1000 * 1000};
    event_add(p->tick, &tv);
}

static void on_leave(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    log_info("provider ends; sandboxes go on running");
    event_base_loopbreak(((struct serve *)arg)->p.base);
}

static void on_stop(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct serve *s = arg;
    log_info("provider ends with all sandboxes");
    s->p.stopping = true;
    sbox_kill_all(&s->p);
    provider_touch(&s->p);
}

static void on_child(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
    /* every process that matters is held by a pidfd, so none is lost here */
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
}

/* --- ready ------------------------------------------------------------------------ */

static void tell_parent(struct serve *s, const char *text)
{
    if (s->ready_fd < 0)
        return;
    size_t len = strlen(text);
    if (write(s->ready_fd, text, len) != (ssize_t)len)
        log_warn("nobody waits for the start");
    close(s->ready_fd);
    s->ready_fd = -1;
}

static int write_address(const struct serve *s, struct err *e)
{
    char limits[40];
    cgroup_limit_names(s->p.groups.limits, limits, sizeof(limits));
    struct buf b = BUF_INIT;
    struct jw w;
    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_i64(&w, "version", 1);
    jw_i64(&w, "pid", getpid());
    jw_i64(&w, "startTicks", (int64_t)pidstat_start(getpid()));
    jw_i64(&w, "controlPort", http_srv_port(s->p.ctl));
    jw_i64(&w, "trafficPort", tunnel_port(s->p.tunnel));
    jw_str(&w, "apiKey", s->p.key);
    jw_bool(&w, "unsafe", s->p.unsafe);
    jw_str(&w, "network", s->p.private_net ? "private" : "host");
    jw_str(&w, "limits", limits);
    jw_str(&w, "pause", s->p.groups.path[0] ? "freezer" : "signals");
    jw_end(&w);
    int rc = fs_write_private(s->address, b.p, b.len, e);
    explicit_bzero(b.p, b.len);
    buf_release(&b);
    return rc;
}

/* All records were looked at: open the ports, then say where they are. */
static void on_adopted(struct provider *p)
{
    struct serve *s = (struct serve *)((char *)p - offsetof(struct serve, p));
    struct err e = {0};
    p->ctl = http_srv_new(p->base, ctl_handle, p, &e);
    if (p->ctl)
        http_srv_on_head(p->ctl, ctl_head);
    if (p->ctl)
        p->tunnel = tunnel_new(p, &e);
    if (!p->tunnel || write_address(s, &e) != 0) {
        log_error("%s", e.text);
        tell_parent(s, e.text);
        s->failed = true;
        event_base_loopbreak(p->base);
        return;
    }
    log_info("provider serves%s%s", p->private_net ? ", private networks" : "",
             p->unsafe ? ", NOT ISOLATED" : "");
    tell_parent(s, "ok");
    provider_touch(p);
}

static struct event *watch_signal(struct serve *s, int sig, event_callback_fn fn)
{
    struct event *ev = evsignal_new(s->p.base, sig, fn, s);
    if (!ev || event_add(ev, NULL) != 0)
        die("cannot watch signal %d", sig);
    return ev;
}

static void run_loop(struct serve *s)
{
    struct provider *p = &s->p;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL); /* whatever its starter held back */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    p->base = event_base_new();
    if (!p->base)
        die("cannot start the event loop");
    p->boxes = map_new();
    p->tick = evtimer_new(p->base, on_tick, s);
    struct event *signals[] = {
        watch_signal(s, SIGTERM, on_leave), watch_signal(s, SIGINT, on_leave),
        watch_signal(s, SIGUSR1, on_stop), watch_signal(s, SIGCHLD, on_child)};
    p->used_ms = p->renewed_ms = clock_mono_ms();
    p->tpl = tpl_store_new(p);
    sbox_adopt_all(p, on_adopted);
    if (!s->failed)
        event_base_dispatch(p->base);
    unlink(s->address);
    http_srv_free(p->ctl);
    tunnel_free(p->tunnel);
    tpl_store_free(p->tpl);
    sbox_free_all(p);
    map_free(p->boxes, NULL);
    lifelog_free(p->life);
    event_free(p->tick);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        event_free(signals[i]);
    event_base_free(p->base);
    if (p->stopping) /* "stopped" means that the files are gone, too */
        while (waitpid(-1, NULL, 0) > 0)
            continue;
    cgroup_close(&p->groups);
}

/* --- start ------------------------------------------------------------------------ */

static int take_locks(struct serve *s, struct err *e)
{
    char *paths[2] = {fs_join(s->p.state_dir, "lock"), fs_join(s->p.runtime_dir, "local.lock")};
    int rc = 0;
    for (int i = 0; i < 2 && rc == 0; i++) {
        s->locks[i] = fs_lock(paths[i], e);
        rc = s->locks[i] < 0 ? s->locks[i] : 0;
    }
    free(paths[0]);
    free(paths[1]);
    return rc;
}

/* Without it the provider serves all the same, and says that nothing is kept. */
static void open_lifelog(struct provider *p)
{
    struct err e = {0};
    char *path = fs_join(p->state_dir, "events.jsonl");
    p->life = lifelog_open(path, clock_wall_ms(), &e);
    if (!p->life)
        log_warn("events are not kept: %s", e.text);
    free(path);
}

static void open_groups(struct provider *p)
{
    char names[40];
    cgroup_open(&p->groups, p->state_dir);
    cgroup_limit_names(p->groups.limits, names, sizeof(names));
    if (!p->groups.path[0])
        log_info("sandboxes have no limits of memory and CPU: %s", p->groups.why);
    else
        log_info("sandboxes are groups in %s; limits: %s", p->groups.path,
                 *names ? names : "none, the controllers are not ours");
}

/* Everything that can fail before the loop; the sentence goes to the user. */
static int prepare(struct serve *s, struct err *e)
{
    struct provider *p = &s->p;
    umask(umask(077) & 077); /* what is ours can be used by us */
    if (digest_init() != 0)
        return err_set(e, ERR_BUG, "libsodium does not start");
    p->exe = ns_own_path();
    if (!p->exe)
        return err_sys(e, 0, "cannot find the path of this program");
    int rc = make_places(p, e);
    if (rc == 0)
        rc = take_locks(s, e);
    if (rc == 0 && !p->unsafe)
        rc = ns_probe(p->exe, e);
    if (rc == 0 && p->private_net)
        rc = p->unsafe ? err_set(e, ERR_INVALID,
                                 "a private network needs isolation: without namespaces "
                                 "processes have the host's")
                       : privnet_probe(p->exe, e);
    if (rc != 0)
        return rc;
    fs_raise_nofile();
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none); /* the key and the tokens are in memory */
    digest_new_key(p->key);
    log_redact_value(p->key, strlen(p->key));
    char *path = fs_join(p->state_dir, "local.log");
    log_open(path, LOG_INFO);
    free(path);
    link_agent(p);
    open_lifelog(p);
    open_groups(p);
    return 0;
}

static void detach_stdio(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; null >= 0 && fd < 3; fd++)
        dup2(null, fd);
    if (null > 2)
        close(null);
    if (chdir("/") != 0) /* keep no folder of the caller busy */
        log_warn("cannot leave the folder of the start");
}

static int run(struct serve *s)
{
    struct err e = {0};
    int rc = prepare(s, &e);
    if (rc == ERR_BUSY) {
        if (s->ready_fd < 0)
            printf("a local provider is already running\n");
        tell_parent(s, "busy");
        return 0;
    }
    if (rc != 0) {
        fprintf(stderr, "cc-tui-local: %s\n", e.text);
        tell_parent(s, "failed");
        return 1;
    }
    if (s->ready_fd >= 0)
        detach_stdio();
    run_loop(s);
    return s->failed ? 1 : 0;
}

/* In the parent of a detached provider: wait for its word. */
static int await_start(int fd)
{
    char text[600];
    size_t have = 0;
    ssize_t n;
    while ((n = read(fd, text + have, sizeof(text) - 1 - have)) != 0) {
        if (n < 0 && errno != EINTR)
            break;
        have += n > 0 ? (size_t)n : 0;
    }
    text[have] = '\0';
    if (strcmp(text, "ok") == 0)
        return 0;
    if (strcmp(text, "busy") == 0) {
        printf("a local provider is already running\n");
        return 0;
    }
    if (strcmp(text, "failed") != 0)
        fprintf(stderr, "cc-tui-local: %s\n", have ? text : "the provider ended at its start");
    return 1;
}

/* Detach unless told otherwise; the status of the parent or of the provider. */
static int start(struct serve *s, bool foreground)
{
    int ready[2];
    if (foreground)
        return run(s);
    if (pipe2(ready, O_CLOEXEC) != 0)
        die("cannot make a pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid < 0)
        die("cannot fork: %s", strerror(errno));
    close(ready[pid > 0 ? 1 : 0]);
    if (pid > 0) {
        int status = await_start(ready[0]);
        close(ready[0]);
        return status;
    }
    setsid();
    s->ready_fd = ready[1];
    return run(s);
}

int serve_main(const struct serve_opts *o)
{
    struct serve s = {.ready_fd = -1, .locks = {-1, -1}};
    int status = 1;
    if (serve_places(o, &s.p.state_dir, &s.p.runtime_dir)) {
        s.p.unsafe = o->unsafe;
        s.p.private_net = o->private_net;
        s.p.max_running = o->max_running ? o->max_running : PROV_MAX_RUNNING;
        s.idle_ms = o->idle_exit_s ? o->idle_exit_s * 1000LL : PROV_IDLE_EXIT_MS;
        s.address = fs_join(s.p.runtime_dir, "local.json");
        status = start(&s, o->foreground);
    }
    free(s.address);
    free(s.p.state_dir);
    free(s.p.runtime_dir);
    free(s.p.exe);
    free(s.p.layers_refused);
    return status;
}
