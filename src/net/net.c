/* The net thread: start, loop, stop. Everything that waits, waits in one epoll. */
#include "net_priv.h"
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/limits.h>
#include <cct/util/log.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { TAG_MQ = LANE_COUNT, TAG_WATCH, EVENTS = 64, STOP_MS = 1000, LEAVE_MS = 300, LOOK_UP_MS = 2 };

static char *env_dup(const char *name)
{
    const char *v = getenv(name);

    return v && *v ? xstrdup(v) : NULL;
}

struct net *net_new(const struct net_opts *o)
{
    struct net *n = xcalloc(1, sizeof(*n));

    /* TLS libraries write session keys to the file this names. */
    unsetenv("SSLKEYLOGFILE");
    n->ca_file = xstrdup(o->ca_file);
    if (!n->ca_file)
        n->ca_file = env_dup("SSL_CERT_FILE");
    if (!n->ca_file)
        n->ca_file = env_dup("CURL_CA_BUNDLE");
    n->user_agent = xstrdup(o->user_agent ? o->user_agent : "cc-tui");
    n->max_per_host = o->max_per_host > 0 ? o->max_per_host : 64;
    n->mq = mq_new(LIM_QUEUE_BYTES);
    n->xfers = map_new();
    n->timers = map_new();
    n->watches = map_new();
    n->sockets = map_new();
    n->epfd = epoll_create1(EPOLL_CLOEXEC);
    if (n->epfd < 0)
        die("cannot make an epoll descriptor: %s", strerror(errno));
    return n;
}

struct mq *net_mq(struct net *n)
{
    return n->mq;
}

void net_free(struct net *n)
{
    if (!n || n->stuck) /* a thread that did not end still uses it */
        return;
    timers_free(n);
    owners_free(n);
    map_free(n->xfers, NULL);
    map_free(n->watches, free);
    map_free(n->sockets, NULL);
    mq_free(n->mq);
    close(n->epfd);
    free(n->user_agent);
    free(n->ca_file);
    free(n);
}

int net_watch(struct net *n, int fd, void (*fn)(void *ctx, int fd), void *ctx)
{
    struct epoll_event ev = {.events = EPOLLIN,
                             .data.u64 = (uint64_t)TAG_WATCH << 32 | (uint32_t)fd};
    struct watch *w = xcalloc(1, sizeof(*w));

    THREAD_ASSERT(THREAD_NET);
    *w = (struct watch){fd, fn, ctx};
    free(map_put_id(n->watches, (uint64_t)fd, w));
    if (epoll_ctl(n->epfd, EPOLL_CTL_ADD, fd, &ev) == 0 ||
        (errno == EEXIST && epoll_ctl(n->epfd, EPOLL_CTL_MOD, fd, &ev) == 0))
        return 0;
    free(map_del_id(n->watches, (uint64_t)fd));
    return ERR_IO;
}

void net_unwatch(struct net *n, int fd)
{
    struct watch *w = map_del_id(n->watches, (uint64_t)fd);

    if (!w)
        return;
    epoll_ctl(n->epfd, EPOLL_CTL_DEL, fd, NULL);
    free(w);
}

/* Commands first: a kill must not wait behind the sockets of a turn. */
static void take_messages(struct net *n)
{
    bool last = mq_closed(n->mq); /* asked first: what was posted before is taken */
    struct msg *next;

    for (struct msg *m = mq_take(n->mq); m; m = next) {
        next = m->next;
        if (n->hooks.on_msg)
            n->hooks.on_msg(n->hooks.ctx, m);
        msg_free(m);
        xfers_settle(n);
    }
    if (last)
        n->stopping = true;
    lanes_run(n, LANE_URGENT, LANE_URGENT_PLAIN);
}

static void one_event(struct net *n, const struct epoll_event *ev)
{
    unsigned tag = (unsigned)(ev->data.u64 >> 32);
    int fd = (int)(uint32_t)ev->data.u64;
    struct watch *w;

    if (tag < LANE_COUNT) {
        lane_socket(n, &n->lanes[tag], fd, ev->events);
    } else if (tag == TAG_WATCH && (w = map_get_id(n->watches, (uint64_t)fd))) {
        w->fn(w->ctx, fd);
        xfers_settle(n);
    }
}

static int wait_ms(const struct net *n)
{
    int64_t due = timers_due(n), lanes = lanes_due(n), ms;

    if (due < 0 || (lanes >= 0 && lanes < due))
        due = lanes;
    if (due < 0)
        return -1;
    ms = due - clock_mono_ms();
    return ms < 0 ? 0 : ms > INT_MAX ? INT_MAX : (int)ms;
}

static void one_turn(struct net *n)
{
    struct epoll_event ev[EVENTS];
    int count = epoll_wait(n->epfd, ev, EVENTS, wait_ms(n));
    int64_t looked = clock_mono_ms();

    for (int i = 0; i < count; i++)
        if (ev[i].data.u64 >> 32 == TAG_MQ)
            take_messages(n);
    for (int i = 0; i < count; i++) {
        one_event(n, &ev[i]);
        if (clock_mono_ms() - looked >= LOOK_UP_MS) { /* busy streams: look up */
            take_messages(n);
            looked = clock_mono_ms();
        }
    }
    lanes_run(n, LANE_URGENT, LANE_URGENT_PLAIN);
    timers_run(n);
    lanes_run(n, LANE_URGENT, LANE_STREAM_PLAIN);
}

static void too_late(void *ctx)
{
    *(bool *)ctx = true;
}

/* Last requests on their way out, for a short while. */
static void leave(struct net *n)
{
    bool late = false;
    uint64_t timer;

    if (!n->hooks.on_leave)
        return;
    epoll_ctl(n->epfd, EPOLL_CTL_DEL, mq_fd(n->mq), NULL);
    timer = net_timer(n, LEAVE_MS, too_late, &late);
    while (n->hooks.on_leave(n->hooks.ctx) && !late) {
        xfers_settle(n);
        one_turn(n);
    }
    if (!late)
        net_timer_cancel(n, timer);
}

static void thread_main(void *arg)
{
    struct net *n = arg;
    struct epoll_event ev = {.events = EPOLLIN, .data.u64 = (uint64_t)TAG_MQ << 32};

    if (n->hooks.on_enter)
        n->hooks.on_enter(n->hooks.ctx);
    n->lib = curl_dl_get(&n->lib_err);
    if (n->lib && lanes_open(n, &n->lib_err))
        log_error("%s", n->lib_err.text);
    if (n->hooks.on_start)
        n->hooks.on_start(n->hooks.ctx, n, n->lib_err.code ? &n->lib_err : NULL);
    xfers_settle(n);
    epoll_ctl(n->epfd, EPOLL_CTL_ADD, mq_fd(n->mq), &ev);
    while (!n->stopping)
        one_turn(n);
    leave(n);
    if (n->hooks.on_stop)
        n->hooks.on_stop(n->hooks.ctx);
    xfers_drop(n);
    if (n->lib)
        lanes_close(n);
}

int net_start(struct net *n, const struct net_hooks *h, struct err *e)
{
    if (h)
        n->hooks = *h;
    fs_raise_nofile(); /* each stream of a plain connection is a descriptor */
    if (thread_start(&n->thread, THREAD_NET, "net", thread_main, n))
        return err_set(e, ERR_IO, "cannot start the network thread: out of resources");
    n->started = true;
    return 0;
}

bool net_stop(struct net *n)
{
    if (!n->started)
        return !n->stuck;
    mq_close(n->mq);
    n->started = false;
    if (!thread_join_ms(n->thread, STOP_MS)) {
        n->stuck = true;
        log_warn("network thread did not end in %d ms: it is left behind", STOP_MS);
    }
    return !n->stuck;
}
