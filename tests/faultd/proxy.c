/* The chaos proxy's connections; see proxy.h. */
#include "proxy.h"
#include <arpa/inet.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PIECE = 64 << 10, HELD_MAX = 4 << 20, TICKS = 50 };

static struct proxy *proxy; /* one in the program: timers and watches find it here */

static void close_end(struct link *l, int i)
{
    struct linger now = {1, 0}; /* RST, not FIN */

    loop_unwatch(&l->end[i].w);
    if (!l->by_fin)
        setsockopt(l->end[i].w.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(l->end[i].w.fd);
}

static void link_free(struct link *l)
{
    for (size_t i = 0; i < proxy->links.n; i++)
        if (proxy->links.v[i] == l) {
            proxy->links.v[i] = proxy->links.v[--proxy->links.n];
            break;
        }
    for (int d = 0; d < 2; d++) {
        close_end(l, d);
        loop_timer_stop(&l->lane[d].next);
        for (size_t k = 0; k < l->lane[d].q.n; k++)
            buf_release(&l->lane[d].q.v[k].data);
        ARR_RELEASE(&l->lane[d].q);
    }
    loop_bury(l);
}

void proxy_cut(struct proxy *p, bool fin)
{
    p->cuts += p->links.n;
    while (p->links.n) {
        p->links.v[p->links.n - 1]->by_fin = fin;
        link_free(p->links.v[p->links.n - 1]);
    }
}

/* ---- one direction ---- */

static bool blocked(const struct lane *v)
{
    int d = v == &v->link->lane[FROM];

    return v->stopped || loop_now() < proxy->blocked_until[d];
}

/* How much of the end of these bytes may be the begin of a Host line. */
static size_t cut_host(const char *s, size_t len)
{
    for (size_t n = strlen(proxy->host); n-- > strlen("Host");)
        if (n < len && memcmp(s + len - n, proxy->host, n) == 0)
            return n;
    return 0;
}

static ssize_t receive(int fd, char *room, size_t size, bool request)
{
    ssize_t n = recv(fd, room, size, request ? MSG_PEEK : 0);
    size_t len = strlen(proxy->host);
    char *at = room;

    if (n <= 0 || !request)
        return n;
    n = recv(fd, room, (size_t)n - cut_host(room, (size_t)n), 0);
    while (n > 0 && len && (at = memmem(at, (size_t)(room + n - at), proxy->host, len)))
        memcpy(at, proxy->to_host, len);
    return n;
}

static void pull(struct lane *v)
{
    static char room[PIECE];
    struct link *l = v->link;
    int d = v == &l->lane[FROM];
    ssize_t n = receive(l->end[d].w.fd, room, sizeof(room), d == TO);

    if (n > 0) {
        struct piece *k = ARR_PUSH(&v->q);
        k->due = loop_now() + proxy->delay_ms;
        buf_add(&k->data, room, (size_t)n);
        v->held += (size_t)n;
        proxy->bytes += (uint64_t)n;
    } else if (n == 0) {
        v->eof = true;
    } else if (errno != EAGAIN) {
        l->dead = true;
    }
}

/* The lane has carried as many bytes as it may. */
static void end_lane(struct lane *v)
{
    proxy->cuts++;
    v->stopped = true;
    v->link->by_fin = v->how == END_FIN;
    v->link->dead = v->how != END_SILENCE;
}

/* How many of `len` bytes may go now. */
static size_t allowance(const struct lane *v, size_t len)
{
    int64_t n = (int64_t)len;

    if (proxy->rate > 0 && n > proxy->rate / TICKS)
        n = proxy->rate / TICKS > 0 ? proxy->rate / TICKS : 1;
    if (v->limit >= 0 && n > v->limit - v->passed)
        n = v->limit - v->passed;
    return (size_t)n;
}

/* Send what is due. */
static void push(struct lane *v)
{
    struct link *l = v->link;
    int to = v == &l->lane[FROM] ? 0 : 1;

    v->full = false;
    while (v->q.n && !blocked(v) && !l->dead && !v->next.at) {
        struct piece *k = &v->q.v[0];
        if (k->due > loop_now()) {
            loop_timer(&v->next, k->due - loop_now());
            return;
        }
        size_t n = allowance(v, k->data.len);
        ssize_t sent = n ? send(l->end[to].w.fd, k->data.p, n, MSG_NOSIGNAL) : 0;
        if (sent < 0) {
            v->full = errno == EAGAIN || errno == ENOTCONN;
            l->dead = !v->full;
            return;
        }
        v->held -= (size_t)sent;
        v->passed += sent;
        buf_consume(&k->data, (size_t)sent);
        if (v->limit >= 0 && v->passed >= v->limit) {
            end_lane(v);
            return;
        }
        if (proxy->rate > 0)
            loop_timer(&v->next, sent * 1000 / proxy->rate + 1);
        if (!k->data.len) {
            buf_release(&k->data);
            ARR_REMOVE(&v->q, 0);
        }
    }
    if (v->eof && !v->q.n && !v->shut && !blocked(v)) {
        shutdown(l->end[to].w.fd, SHUT_WR);
        v->shut = true;
    }
}

/* ---- both ---- */

/* Without events a descriptor is not watched: its HUP would be reported for ever. */
static void watch_ends(struct link *l)
{
    for (int i = 0; i < 2; i++) {
        const struct lane *in = &l->lane[i], *out = &l->lane[1 - i];
        uint32_t events = 0;
        if (!in->eof && in->held < HELD_MAX && !blocked(in))
            events |= EPOLLIN;
        if (out->full && !blocked(out))
            events |= EPOLLOUT;
        if (events)
            loop_watch(&l->end[i].w, events);
        else
            loop_unwatch(&l->end[i].w);
    }
}

static void turn(struct link *l)
{
    push(&l->lane[TO]);
    push(&l->lane[FROM]);
    if (l->lane[TO].shut && l->lane[FROM].shut)
        l->by_fin = l->dead = true;
    if (l->dead)
        link_free(l);
    else
        watch_ends(l);
}

static void on_end(struct watch *w, uint32_t events)
{
    struct end *e = OWNER_OF(w, struct end, w);
    struct lane *in = &e->link->lane[e - e->link->end];

    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR) && !in->eof && !blocked(in))
        pull(in);
    turn(e->link);
}

static void on_next(struct timer *t)
{
    turn(OWNER_OF(t, struct lane, next)->link);
}

/* Look at every connection anew. */
static void kick(struct proxy *p)
{
    for (size_t i = p->links.n; i-- > 0;)
        turn(p->links.v[i]);
}

/* Look again when a block ends. */
static void arm(struct proxy *p)
{
    int64_t next = INT64_MAX;

    for (int d = TO; d <= FROM; d++)
        if (p->blocked_until[d] > loop_now() && p->blocked_until[d] < next)
            next = p->blocked_until[d];
    if (next != INT64_MAX)
        loop_timer(&p->heal, next - loop_now());
}

static void on_heal(struct timer *t)
{
    struct proxy *p = OWNER_OF(t, struct proxy, heal);

    kick(p);
    arm(p);
}

void proxy_block(struct proxy *p, int lane, int64_t ms)
{
    p->blocked_until[lane] = loop_now() + ms;
    kick(p);
    arm(p);
}

static void link_open(struct proxy *p, int fd, int up)
{
    struct link *l = xcalloc(1, sizeof(*l));
    int fds[2] = {fd, up}, one = 1;

    for (int i = 0; i < 2; i++) {
        setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        l->end[i] = (struct end){.w = {.fd = fds[i], .ready = on_end}, .link = l};
        l->lane[i] = (struct lane){
            .link = l, .limit = p->limit[i], .how = p->how[i], .next = {.fire = on_next}};
    }
    *ARR_PUSH(&p->links) = l;
    p->total++;
    watch_ends(l);
}

static void on_accept(struct watch *w, uint32_t events)
{
    struct proxy *p = OWNER_OF(w, struct proxy, listener);
    struct linger now = {1, 0};
    int fd, up;

    (void)events;
    while ((fd = accept4(w->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        up = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (loop_now() >= p->down_until &&
            (connect(up, (struct sockaddr *)&p->to, sizeof(p->to)) == 0 ||
             errno == EINPROGRESS)) {
            link_open(p, fd, up);
            continue;
        }
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
        close(fd);
        close(up);
    }
}

int proxy_run(const char *listen_where, const char *to, const char *control)
{
    static struct proxy p = {.to.sin_family = AF_INET, .limit = {-1, -1}};
    char host[64];
    const char *colon = strrchr(to, ':');
    int64_t port = 0, listen_port;

    proxy = &p;
    if (!colon || (size_t)(colon - to) >= sizeof(host) ||
        !str_to_i64(colon + 1, 1, 65535, &port))
        die("faultd proxy: --to needs HOST:PORT");
    snprintf(host, sizeof(host), "%.*s", (int)(colon - to), to);
    if (str_eq(host, "localhost"))
        str_copy(host, sizeof(host), "127.0.0.1");
    if (inet_pton(AF_INET, host, &p.to.sin_addr) != 1 ||
        ntohl(p.to.sin_addr.s_addr) >> 24 != 127)
        die("faultd proxy: --to needs a loopback address");
    p.to.sin_port = htons((uint16_t)port);
    p.heal.fire = on_heal;
    p.listener.ready = on_accept;
    control_open(&p, control);
    if (!str_to_i64(listen_where, 0, 65535, &listen_port))
        die("faultd: %s is no port", listen_where);
    port = loop_listen(&p.listener, AF_INET, (int)listen_port);
    snprintf(p.host, sizeof(p.host), "Host: 127.0.0.1:%d", (int)port);
    snprintf(p.to_host, sizeof(p.to_host), "Host: 127.0.0.1:%d", ntohs(p.to.sin_port));
    if (strlen(p.host) != strlen(p.to_host))
        p.host[0] = '\0';
    printf("http://127.0.0.1:%d\n", (int)port);
    fflush(stdout);
    loop_run();
    proxy_cut(&p, false);
    return 0;
}
