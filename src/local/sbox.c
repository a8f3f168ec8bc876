/* Life of one sandbox: made, live, ended. Every step is asynchronous; `phase` says which
 * operation is under way, and there is at most one. */
#include "sbox_priv.h"
#include <cct/local/initcall.h>
#include <cct/local/lifelog.h>
#include <cct/local/provider.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/log.h>
#include <cct/util/map.h>
#include <cct/util/xalloc.h>
#include <event2/event.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KILL_MS 10000 /* a killed sandbox must be gone within */

bool sbox_is_visible(const struct sbox *b)
{
    return !b->rec.hidden && (b->phase == SBOX_LIVE || b->phase == SBOX_CHANGING);
}

struct sbox *sbox_find(const struct provider *p, const char *id)
{
    struct sbox *b = map_get(p->boxes, id);
    return b && sbox_is_visible(b) ? b : NULL;
}

static size_t count(const struct provider *p, bool hidden)
{
    size_t n = 0, it = 0;
    struct sbox *b;
    while ((b = map_next(p->boxes, &it, NULL, NULL)) != NULL)
        n +=
            b->phase != SBOX_KILLING && b->rec.state == SBOX_RUNNING && b->rec.hidden == hidden;
    return n;
}

size_t sbox_count_running(const struct provider *p)
{
    return count(p, false);
}

size_t sbox_count_hidden(const struct provider *p)
{
    return count(p, true);
}

void sbox_save(struct sbox *b)
{
    struct err e = {0};
    int rc = boxstore_save(b->p->state_dir, &b->rec, &e);
    if (rc != 0 && !b->is_unsaved)
        log_error("sandbox %s: %s; tried again until it can be", b->rec.id, e.text);
    b->is_unsaved = rc != 0;
}

void sbox_tell(struct sbox *b, enum life what, const char *why)
{
    if (!b->is_told || !b->p->life)
        return;
    lifelog_add(b->p->life, &b->rec, what, why, clock_wall_ms());
    if (what == LIFE_KILLED)
        b->is_told = false;
}

void sbox_operation_done(struct sbox *b, const struct err *e)
{
    sbox_done done = b->done;
    void *arg = b->done_arg;
    b->done = NULL;
    if (done)
        done(arg, e && e->code != 0 ? NULL : b, e);
}

static void free_box(struct sbox *b)
{
    initcall_cancel(b->call);
    sbox_net_free(b);
    if (b->death)
        event_free(b->death);
    if (b->status)
        event_free(b->status);
    if (b->kill_timer)
        event_free(b->kill_timer);
    if (b->status_fd >= 0)
        close(b->status_fd);
    if (b->pidfd >= 0)
        close(b->pidfd);
    map_del(b->p->boxes, b->rec.id);
    sbox_rec_clear(&b->rec);
    free(b->start_cmd);
    free(b->ready_cmd);
    free(b);
}

pid_t provider_fork(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        syscall(SYS_close_range, 3u, ~0u, 0);
        signal(SIGTERM, SIG_DFL);
    } else if (pid < 0) {
        log_error("cannot fork: %s", strerror(errno));
    }
    return pid;
}

void provider_remove_tree(const char *path)
{
    if (provider_fork() == 0) {
        boxstore_remove_tree(path, NULL);
        _exit(0);
    }
}

void sbox_remove_files(struct provider *p, const char *id, const char *sock)
{
    char *dir = boxstore_dir(p->state_dir, id);
    char *record = fs_join(dir, "box.json");
    unlink(record); /* first: whatever is left is then only rubbish */
    if (*sock)
        unlink(sock);
    provider_remove_tree(dir);
    free(record);
    free(dir);
}

void sbox_remove_group(const char *path)
{
    if (!*path || cgroup_remove(path, 0))
        return;
    if (provider_fork() == 0) {
        cgroup_kill(path);
        cgroup_remove(path, KILL_MS);
        _exit(0);
    }
}

/* The sandbox is gone: tell who waits, clean up, forget it. */
static void bury(struct sbox *b)
{
    struct provider *p = b->p;
    struct err e = {0};
    sbox_tell(b, LIFE_KILLED, "ended"); /* when it was killed, that is told already */
    if (b->phase != SBOX_KILLING)
        log_warn("sandbox %s ended by itself %s", b->rec.id, b->why);
    if (b->phase == SBOX_CREATING)
        err_set(&e, ERR_SERVER, "sandbox could not be started: %s",
                b->why[0] ? b->why : "its init ended at once");
    else
        err_set(&e, ERR_NOTFOUND, "sandbox '%s' has ended", b->rec.id);
    b->phase = SBOX_KILLING;
    sbox_ready_stop(b, &e);
    sbox_operation_done(b, &e);
    if (b->killed)
        b->killed(b->killed_arg, NULL, NULL);
    sbox_remove_group(b->rec.cgroup);
    sbox_remove_files(p, b->rec.id, b->rec.sock);
    free_box(b);
    provider_touch(p);
}

/* What a failed set-up has to say. False when nothing more can come. */
static bool collect_why(struct sbox *b)
{
    size_t have = strlen(b->why);
    if (b->status_fd < 0 || have + 1 >= sizeof(b->why))
        return false;
    ssize_t n = read(b->status_fd, b->why + have, sizeof(b->why) - 1 - have);
    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR);
    b->why[have + (size_t)n] = '\0';
    return true;
}

static void on_death(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct sbox *b = arg;
    collect_why(b);
    bury(b);
}

static void watch_death(struct sbox *b)
{
    b->death = event_new(b->p->base, b->pidfd, EV_READ, on_death, b);
    if (!b->death)
        die("libevent is out of memory");
    event_add(b->death, NULL);
}

/* --- kill ------------------------------------------------------------------- */

static void on_kill_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct sbox *b = arg;
    struct err e = {0};
    err_set(&e, ERR_TIMEOUT, "sandbox '%s' was killed but its processes do not end", b->rec.id);
    log_error("%s", e.text);
    sbox_done killed = b->killed;
    b->killed = NULL;
    if (killed)
        killed(b->killed_arg, NULL, &e);
}

void sbox_kill(struct sbox *b, sbox_done done, void *arg)
{
    b->phase = SBOX_KILLING;
    sbox_tell(b, LIFE_KILLED, b->reason ? b->reason : "request");
    b->killed = done;
    b->killed_arg = arg;
    initcall_cancel(b->call);
    b->call = NULL;
    struct err e = {0};
    err_set(&e, ERR_NOTFOUND, "sandbox '%s' was killed", b->rec.id);
    sbox_ready_stop(b, &e);
    sbox_operation_done(b, &e);
    b->kill_timer = evtimer_new(b->p->base, on_kill_timer, b);
    struct timeval tv = {KILL_MS / 1000, 0};
    event_add(b->kill_timer, &tv);
    bool all = b->rec.cgroup[0] && cgroup_kill(b->rec.cgroup) == 0;
    if (!b->rec.isolated && !all) {
        pid_t pid = provider_fork();
        if (pid == 0) {
            sbox_kill_tree(b->rec.pid);
            _exit(0);
        }
        if (pid > 0)
            return;
    }
    if (proc_signal(b->pidfd, SIGKILL) != 0 && errno != ESRCH)
        log_error("cannot kill sandbox %s: %s", b->rec.id, strerror(errno));
}

void sbox_kill_all(struct provider *p)
{
    size_t it = 0;
    struct sbox *b;
    while ((b = map_next(p->boxes, &it, NULL, NULL)) != NULL)
        if (b->phase != SBOX_KILLING) {
            b->reason = "stop";
            sbox_kill(b, NULL, NULL);
        }
}

void sbox_free_all(struct provider *p)
{
    size_t it = 0;
    struct sbox *b;
    while ((b = map_next(p->boxes, &it, NULL, NULL)) != NULL) {
        struct err e = {0};
        err_set(&e, ERR_BUSY, "the local provider ends");
        if (b->is_unsaved && b->phase != SBOX_KILLING)
            sbox_save(b);
        b->phase = SBOX_KILLING; /* nobody is told any more */
        b->done = NULL;
        sbox_ready_stop(b, &e);
        free_box(b);
    }
}

/* --- made by us, or by an earlier provider ---------------------------------- */

/* The commands of its template are through, in one way or the other. */
static void on_ready(void *arg, struct sbox *same, const struct err *e)
{
    struct sbox *b = arg;
    (void)same;
    if (b->phase != SBOX_CREATING)
        return; /* killed or dead, and told so */
    if (!e) {
        b->phase = SBOX_LIVE;
        if (b->is_new) {
            b->is_told = true;
            sbox_tell(b, LIFE_CREATED, NULL);
        }
        provider_touch(b->p);
        sbox_operation_done(b, NULL);
        return;
    }
    struct err why = {0};
    err_set(&why, ERR_SERVER, "sandbox could not be started: %s", e->text);
    log_warn("sandbox %s: %s", b->rec.id, why.text);
    sbox_operation_done(b, &why);
    sbox_kill(b, NULL, NULL);
}

static void start_failed(struct sbox *b, const char *why)
{
    struct err e = {0};
    err_set(&e, ERR_SERVER, "sandbox could not be started: %s", why);
    log_warn("sandbox %s: %s", b->rec.id, e.text);
    sbox_operation_done(b, &e);
    sbox_kill(b, NULL, NULL);
}

/* When its init answers and its network is up. */
static void go_on(struct sbox *b)
{
    if (!b->is_healthy || b->net)
        return;
    if (b->start_cmd) {
        struct tpl_image image = {.start_cmd = b->start_cmd, .ready_cmd = b->ready_cmd};
        sbox_run_ready(b, &image, on_ready, b);
    } else {
        on_ready(b, b, NULL);
    }
}

static void on_health(void *arg, int status, const char *body, size_t len)
{
    (void)body;
    (void)len;
    struct sbox *b = arg;
    b->call = NULL;
    if (status == 204) {
        b->is_healthy = true;
        go_on(b);
        return;
    }
    collect_why(b);
    start_failed(b, b->why[0] ? b->why : "its init does not answer");
}

void sbox_net_is_up(struct sbox *b, const char *why)
{
    if (b->phase != SBOX_CREATING)
        return; /* killed meanwhile, and told so */
    if (!why) {
        go_on(b);
        return;
    }
    char text[512];
    collect_why(b); /* its set-up may have failed first, and the network with it */
    snprintf(text, sizeof(text), "its private network could not be made: %s", why);
    start_failed(b, b->why[0] ? b->why : text);
}

static void on_status(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct sbox *b = arg;
    if (collect_why(b))
        return;
    event_free(b->status);
    b->status = NULL;
    close(b->status_fd);
    b->status_fd = -1;
}

/* Watch a sandbox whose process and record exist; `done` comes with its health. */
static void begin_watch(struct sbox *b, int timeout_ms)
{
    watch_death(b);
    if (b->status_fd >= 0) {
        b->status = event_new(b->p->base, b->status_fd, EV_READ | EV_PERSIST, on_status, b);
        if (!b->status)
            die("libevent is out of memory");
        event_add(b->status, NULL);
    }
    b->call = initcall_start(b->p->base, b->rec.sock, b->rec.token, "GET", "/health", NULL,
                             timeout_ms, on_health, b);
}

struct sbox *sbox_make(struct provider *p, const struct sbox_rec *take, int pidfd,
                       int status_fd, int timeout_ms, sbox_done done, void *arg)
{
    struct sbox *b = xcalloc(1, sizeof(*b));
    b->p = p;
    b->rec = *take;
    b->phase = SBOX_CREATING;
    b->pidfd = pidfd;
    b->status_fd = status_fd;
    b->done = done;
    b->done_arg = arg;
    map_put(p->boxes, b->rec.id, b);
    begin_watch(b, timeout_ms);
    return b;
}
