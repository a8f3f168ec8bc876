/* The embedded provider: its address file, whether the process behind it lives and
 * answers, and starting it. Nothing here blocks: the child's stderr and timers tell. */
#include "core_priv.h"

#include <cct/jobs/local.h>
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/pidstat.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM "cc-tui-local"
#define HEALTH_MS 3000
#define START_MS 20000
#define LOOK_MS 50

struct local {
    struct jobs *j;
    bool busy, started;  /* started: in this round of looking */
    struct local_provider now; /* in use, or being tried */
    struct local_provider tried;
    uint64_t health, timer;
    pid_t child;
    int fd;              /* the child's stderr */
    struct buf said;
    int64_t deadline;
};

static void look(void *ctx);

/* --- outcomes ------------------------------------------------------------------- */

static void idle(struct local *l)
{
    net_timer_cancel(l->j->o.net, l->timer);
    l->timer = 0;
    l->busy = l->started = false;
    if (l->fd >= 0) {
        net_unwatch(l->j->o.net, l->fd);
        close(l->fd);
    }
    l->fd = -1;
    buf_clear(&l->said);
}

static void failed(struct local *l, int code, const char *text)
{
    struct err e = {0};

    err_set(&e, code, "%s", text);
    idle(l);
    core_account_local(l->j, NULL, &e);
}

static bool same_address(const struct local_provider *a, const struct local_provider *b)
{
    return a->key && b->key && a->pid == b->pid && a->start_ticks == b->start_ticks &&
           a->control == b->control && a->traffic == b->traffic &&
           str_eq(secret_value(a->key), secret_value(b->key));
}

static void found(struct local *l)
{
    struct e2b_account a = {.local = true, .unsafe = l->tried.unsafe};
    bool same = l->j->e2b && same_address(&l->now, &l->tried);

    idle(l);
    local_provider_release(&l->now);
    l->now = l->tried;
    memset(&l->tried, 0, sizeof(l->tried));
    if (same)
        return; /* it was only out of breath */
    a.api_url = xasprintf("http://127.0.0.1:%d", l->now.control);
    a.sandbox_url = xasprintf("http://127.0.0.1:%d", l->now.traffic);
    a.source = xstrdup("local provider");
    a.key = secret_dup(l->now.key);
    secret_mask(a.key, a.mask);
    core_account_local(l->j, &a, NULL);
    e2b_account_release(&a);
}

/* --- starting ------------------------------------------------------------------- */

static int spawn(struct local *l, char *const *argv, int err_fd)
{
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t at;
    sigset_t all, none;
    char **env = local_provider_env();
    int rc;

    sigfillset(&all);
    sigdelset(&all, SIGKILL);
    sigdelset(&all, SIGSTOP);
    sigemptyset(&none);
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&fa, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&fa, err_fd, 2);
    posix_spawnattr_init(&at);
    posix_spawnattr_setsigdefault(&at, &all);
    posix_spawnattr_setsigmask(&at, &none);
    posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
                                      POSIX_SPAWN_SETSID);
    rc = posix_spawnp(&l->child, argv[0], &fa, &at, argv, env);
    posix_spawnattr_destroy(&at);
    posix_spawn_file_actions_destroy(&fa);
    free(env);
    return rc;
}

static void wait_soon(struct local *l, void (*fn)(void *ctx))
{
    net_timer_cancel(l->j->o.net, l->timer);
    l->timer = net_timer(l->j->o.net, LOOK_MS, fn, l);
}

/* The starter closed its stderr: it has ended, or is about to. */
static void reap(void *ctx)
{
    struct local *l = ctx;
    int status = 0;
    pid_t pid = waitpid(l->child, &status, WNOHANG);
    char *why, *text;

    l->timer = 0;
    if (pid == 0 && clock_mono_ms() < l->deadline) {
        wait_soon(l, reap);
        return;
    }
    l->child = 0;
    if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        look(l); /* it serves, or another one is about to */
        return;
    }
    why = str_trim(l->said.p ? l->said.p : (char[]){""});
    if (str_starts(why, PROGRAM ": "))
        why += strlen(PROGRAM ": ");
    text = xasprintf("the local provider did not start: %s", *why ? why : "it ended at once");
    failed(l, ERR_UNSUPPORTED, text);
    free(text);
}

static void on_said(void *ctx, int fd)
{
    struct local *l = ctx;
    char piece[512];
    ssize_t n = read(fd, piece, sizeof(piece));

    if (n > 0) {
        buf_add(&l->said, piece, (size_t)n); /* full: the beginning is what counts */
        return;
    }
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    net_unwatch(l->j->o.net, fd);
    close(fd);
    l->fd = -1;
    reap(l);
}

static void start(struct local *l)
{
    static char serve[] = "serve", opt_runtime[] = "--runtime-dir", opt_state[] = "--state-dir",
                opt_unsafe[] = "--unsafe", opt_net[] = "--net=private";
    char *program = local_provider_program(), *state = NULL, *text;
    char *argv[8] = {program, serve};
    int n = 2, fds[2], rc;

    l->started = true;
    l->deadline = clock_mono_ms() + START_MS;
    if (l->j->o.runtime_dir) {
        argv[n++] = opt_runtime;
        argv[n++] = (char *)l->j->o.runtime_dir;
    }
    if (l->j->o.state_dir) {
        state = fs_join(l->j->o.state_dir, "local");
        argv[n++] = opt_state;
        argv[n++] = state;
    }
    if (l->j->o.local_unsafe)
        argv[n++] = opt_unsafe;
    else if (l->j->o.local_private_net)
        argv[n++] = opt_net;
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0) {
        failed(l, ERR_IO, "the local provider cannot be started: no more descriptors");
    } else {
        rc = spawn(l, argv, fds[1]);
        close(fds[1]);
        l->fd = fds[0];
        if (rc == 0)
            rc = net_watch(l->j->o.net, l->fd, on_said, l) ? EMFILE : 0;
        if (rc) {
            text = xasprintf("the local provider \"%s\" cannot be started: %s; install it beside "
                             "cc-tui or in the path", program, strerror(rc));
            failed(l, ERR_NOTFOUND, text);
            free(text);
        } else {
            core_link(l->j, LINK_CONNECTING, "starting the local provider");
        }
    }
    free(program);
    free(state);
}

/* --- looking -------------------------------------------------------------------- */

static void none_runs(struct local *l)
{
    if (l->started && clock_mono_ms() < l->deadline)
        wait_soon(l, look); /* another instance starts it */
    else if (l->started)
        failed(l, ERR_TIMEOUT, "the local provider did not come up in time; its log is local.log "
                               "in its state folder");
    else if (l->j->o.start_local)
        start(l);
    else
        failed(l, ERR_NOTFOUND, "no local provider is running; start it with 'cc-tui local start'");
}

static void on_health(void *ctx, const struct net_result *r)
{
    struct local *l = ctx;

    l->health = 0;
    if (r->err.code == 0 && r->status / 100 == 2) {
        found(l);
        return;
    }
    local_provider_release(&l->tried);
    if (r->err.code == ERR_TIMEOUT) /* it lives, so a second one could not start */
        failed(l, ERR_TIMEOUT, "the local provider does not answer; end it with "
                               "cc-tui local stop if that lasts");
    else
        none_runs(l);
}

/* Its ports are called while it lives, and no longer: a sandbox that it leaves behind shares
 * this machine's loopback, and could listen there for the key. False: it has ended. */
static bool hold_ports(struct local *l)
{
    const int ports[] = {l->tried.control, l->tried.traffic};
    int pidfd = (int)syscall(SYS_pidfd_open, l->tried.pid, 0u);
    bool alive;

    if (pidfd < 0 && errno != ESRCH)
        return true; /* no descriptor is left, or the kernel has none of the kind */
    alive = pidfd >= 0 && pidstat_start(l->tried.pid) == l->tried.start_ticks;
    for (size_t i = 0; alive && i < sizeof(ports) / sizeof(ports[0]); i++) {
        int fd = fcntl(pidfd, F_DUPFD_CLOEXEC, 0);

        if (fd >= 0)
            net_port_owner(l->j->o.net, ports[i], fd);
    }
    if (pidfd >= 0)
        close(pidfd);
    return alive;
}

static void look(void *ctx)
{
    struct local *l = ctx;
    struct net_req *q;
    struct err e = {0};
    int rc;

    l->timer = 0;
    local_provider_release(&l->tried);
    rc = local_provider_find(l->j->o.runtime_dir, &l->tried, &e);
    if (rc == ERR_NOTFOUND || (rc == 0 && !hold_ports(l))) {
        none_runs(l);
        return;
    }
    if (rc) {
        failed(l, rc, e.text);
        return;
    }
    q = net_req_new("GET", xasprintf("http://127.0.0.1:%d/health", l->tried.control));
    q->total_ms = HEALTH_MS;
    q->on_done = on_health;
    q->ctx = l;
    l->health = net_submit(l->j->o.net, q);
}

void core_local_open(struct jobs *j)
{
    struct local *l = j->priv->local;

    if (!l) {
        l = j->priv->local = xcalloc(1, sizeof(*l));
        l->j = j;
        l->fd = -1;
        l->said.max = 600;
    }
    if (l->busy)
        return;
    l->busy = true;
    look(l);
}

void core_local_release(struct jobs *j)
{
    struct local *l = j->priv->local;

    if (!l)
        return;
    net_cancel(j->o.net, l->health);
    idle(l);
    local_provider_release(&l->now);
    local_provider_release(&l->tried);
    buf_release(&l->said);
    free(l);
    j->priv->local = NULL;
}
