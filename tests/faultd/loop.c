/* The event loop; see loop.h. */
#include "loop.h"
#include <cct/util/arr.h>
#include <cct/util/clock.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { BATCH = 256 };

static struct {
    int epfd;
    int64_t now;
    ARR(struct timer *) heap; /* heap.v[0] is never used: places begin with 1 */
    struct later *first, **last;
    ARR(void *) graves;
    bool stop;
} loop = {.epfd = -1};

static void begin(void)
{
    if (loop.epfd >= 0)
        return;
    loop.epfd = epoll_create1(EPOLL_CLOEXEC);
    if (loop.epfd < 0)
        die("faultd: no epoll: %s", strerror(errno));
    loop.last = &loop.first;
    *ARR_PUSH(&loop.heap) = NULL;
}

int64_t loop_now(void)
{
    return loop.now ? loop.now : clock_mono_ms();
}

void loop_watch(struct watch *w, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.ptr = w};

    begin();
    if (w->added && w->events == events)
        return;
    if (epoll_ctl(loop.epfd, w->added ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, w->fd, &ev) != 0)
        die("faultd: epoll refuses descriptor %d: %s", w->fd, strerror(errno));
    w->added = true;
    w->events = events;
}

void loop_unwatch(struct watch *w)
{
    if (w->added)
        epoll_ctl(loop.epfd, EPOLL_CTL_DEL, w->fd, NULL);
    w->added = false;
}

int loop_listen(struct watch *w, int family, int port)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } a = {.v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};
    bool six = family == AF_INET6;
    socklen_t n = six ? sizeof(a.v6) : sizeof(a.v4);
    int one = 1;

    if (six)
        a.v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    *(six ? &a.v6.sin6_port : &a.v4.sin_port) = htons((uint16_t)port);
    w->fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    setsockopt(w->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (six)
        setsockopt(w->fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
    if (bind(w->fd, &a.any, n) || listen(w->fd, 4096) || getsockname(w->fd, &a.any, &n))
        die("faultd: cannot listen on port %d of %s: %s", port, six ? "::1" : "127.0.0.1",
            strerror(errno));
    loop_watch(w, EPOLLIN);
    return ntohs(six ? a.v6.sin6_port : a.v4.sin_port);
}

static void put(struct timer *t, size_t at)
{
    loop.heap.v[at] = t;
    t->at = at;
}

static void sift_up(struct timer *t, size_t at)
{
    for (; at > 1 && loop.heap.v[at / 2]->due > t->due; at /= 2)
        put(loop.heap.v[at / 2], at);
    put(t, at);
}

static void sift_down(struct timer *t, size_t at)
{
    for (size_t kid; (kid = 2 * at) < loop.heap.n; at = kid) {
        if (kid + 1 < loop.heap.n && loop.heap.v[kid + 1]->due < loop.heap.v[kid]->due)
            kid++;
        if (loop.heap.v[kid]->due >= t->due)
            break;
        put(loop.heap.v[kid], at);
    }
    put(t, at);
}

void loop_timer_stop(struct timer *t)
{
    size_t at = t->at;
    struct timer *moved;

    if (!at)
        return;
    t->at = 0;
    moved = loop.heap.v[--loop.heap.n];
    if (moved == t)
        return;
    sift_down(moved, at);
    sift_up(moved, moved->at);
}

void loop_timer(struct timer *t, int64_t in_ms)
{
    begin();
    loop_timer_stop(t);
    t->due = clock_mono_ms() + (in_ms > 0 ? in_ms : 0); /* a turn may be long: not loop.now */
    *ARR_PUSH(&loop.heap) = t;
    sift_up(t, loop.heap.n - 1);
}

void loop_later(struct later *l)
{
    begin();
    if (l->queued)
        return;
    l->queued = true;
    l->next = NULL;
    *loop.last = l;
    loop.last = &l->next;
}

void loop_later_stop(struct later *l)
{
    struct later **at = &loop.first;

    if (!l->queued)
        return;
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    if (!*at)
        loop.last = at;
    l->queued = false;
}

void loop_bury(void *p)
{
    *ARR_PUSH(&loop.graves) = p;
}

static void run_timers(void)
{
    while (loop.heap.n > 1 && loop.heap.v[1]->due <= loop.now) {
        struct timer *t = loop.heap.v[1];
        loop_timer_stop(t);
        t->fire(t);
    }
}

static void run_later(void)
{
    struct later *l;

    while ((l = loop.first)) {
        loop.first = l->next;
        if (!loop.first)
            loop.last = &loop.first;
        l->queued = false;
        l->run(l);
    }
    for (size_t i = 0; i < loop.graves.n; i++)
        free(loop.graves.v[i]);
    ARR_CLEAR(&loop.graves);
}

void loop_stop(void)
{
    loop.stop = true;
}

void loop_run(void)
{
    struct epoll_event ev[BATCH];

    begin();
    while (!loop.stop) {
        int64_t wait = -1;
        run_later();
        loop.now = clock_mono_ms();
        if (loop.heap.n > 1)
            wait = loop.heap.v[1]->due > loop.now ? loop.heap.v[1]->due - loop.now : 0;
        int n = epoll_wait(loop.epfd, ev, BATCH, (int)wait);
        loop.now = clock_mono_ms();
        for (int i = 0; i < n; i++) {
            struct watch *w = ev[i].data.ptr;
            if (w->added) /* an earlier event of this turn may have ended it */
                w->ready(w, ev[i].events);
        }
        run_timers();
    }
    run_later();
}
