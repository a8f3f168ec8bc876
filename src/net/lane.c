/* The sets of connections: libcurl says which sockets and what time it waits for,
 * epoll and the loop's clock do the waiting. */
#include "net_priv.h"
#include <cct/util/clock.h>
#include <errno.h>
#include <sys/epoll.h>

/* libcurl may have closed the socket that it says goodbye to, and its number may be that
 * of any new descriptor of the process by now. So a goodbye only forgets who wanted the
 * number; what is closed has left epoll by itself, and what is still open (a kept
 * connection) is taken out when it is heard of again. For the same reason ADD and MOD
 * stand in for each other. */
static int on_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *known)
{
    struct lane *l = ctx;
    struct net *n = l->net;
    struct epoll_event ev = {.data.u64 = (uint64_t)(l - n->lanes) << 32 | (uint32_t)fd};

    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (map_get_id(n->sockets, (uint64_t)fd) == l)
            map_del_id(n->sockets, (uint64_t)fd);
        n->lib->multi_assign(l->multi, fd, NULL);
        return 0;
    }
    if (what & CURL_POLL_IN)
        ev.events |= EPOLLIN;
    if (what & CURL_POLL_OUT)
        ev.events |= EPOLLOUT;
    if (!known)
        n->lib->multi_assign(l->multi, fd, l);
    map_put_id(n->sockets, (uint64_t)fd, l);
    if (epoll_ctl(n->epfd, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &ev) == 0)
        return 0;
    return epoll_ctl(n->epfd, errno == EEXIST ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &ev);
}

static int on_timer(CURLM *multi, long ms, void *ctx)
{
    struct lane *l = ctx;

    (void)multi;
    l->due = ms < 0 ? -1 : clock_mono_ms() + ms;
    return 0;
}

#define WIDE 256L

/* Made when its first request comes: each costs two descriptors and some thousand
 * bytes, and a command that only lists needs one of them. */
struct lane *lane_get(struct net *n, enum lane_id id)
{
    /* kept connections; the warm ones of a kill-all must not push each other out */
    static const long keep[LANE_COUNT] = {32, 1100, 32, 128, 64, 32};
    static const long per_host[LANE_COUNT] = {
        [LANE_URGENT] = 24, [LANE_NORMAL] = 8, [LANE_STREAM] = 32};
    struct lane *l = &n->lanes[id];
    const struct curl_lib *c = n->lib;

    if (l->multi)
        return l;
    l->net = n;
    l->due = -1;
    l->wide = false;
    l->multi = c->multi_init();
    if (!l->multi)
        return NULL;
    c->multi_setopt(l->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    c->multi_setopt(l->multi, CURLMOPT_SOCKETDATA, l);
    c->multi_setopt(l->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    c->multi_setopt(l->multi, CURLMOPT_TIMERDATA, l);
    c->multi_setopt(l->multi, CURLMOPT_MAXCONNECTS, keep[id]);
    c->multi_setopt(l->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
    c->multi_setopt(l->multi, CURLMOPT_MAX_CONCURRENT_STREAMS, 1000L);
    c->multi_setopt(l->multi, CURLMOPT_MAX_HOST_CONNECTIONS,
                    id == LANE_NORMAL_PLAIN ? (long)n->max_per_host : per_host[id]);
    return l;
}

/* A server without HTTP/2 takes one request on each connection: deletes that cannot
 * share one may not wait for each other either. */
void lane_heard(struct net *n, enum lane_id id, CURL *easy)
{
    struct lane *l = &n->lanes[id];
    long version = 0;

    if (id != LANE_URGENT || !l->multi)
        return;
    n->lib->easy_getinfo(easy, CURLINFO_HTTP_VERSION, &version);
    bool wide = version == CURL_HTTP_VERSION_1_1 || version == CURL_HTTP_VERSION_1_0;
    if (!version || wide == l->wide)
        return;
    l->wide = wide;
    n->lib->multi_setopt(l->multi, CURLMOPT_MAXCONNECTS, wide ? WIDE : 32L);
    n->lib->multi_setopt(l->multi, CURLMOPT_MAX_HOST_CONNECTIONS, wide ? WIDE : 24L);
}

/* Names and TLS sessions are shared by the lanes; one thread, so without locks. */
int lanes_open(struct net *n, struct err *e)
{
    n->share = n->lib->share_init();
    if (!n->share)
        return err_set(e, ERR_UNSUPPORTED, "cannot start libcurl: out of memory");
    n->lib->share_setopt(n->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_DNS);
    n->lib->share_setopt(n->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
    return 0;
}

void lanes_renew(struct net *n)
{
    for (int i = 0; i < LANE_COUNT; i++) {
        if (n->lanes[i].multi)
            n->lib->multi_cleanup(n->lanes[i].multi);
        n->lanes[i].multi = NULL;
        n->lanes[i].due = -1;
    }
}

void lanes_close(struct net *n)
{
    lanes_renew(n);
    if (n->share)
        n->lib->share_cleanup(n->share);
}

static void drain(struct net *n, struct lane *l)
{
    CURLMsg *m;
    int left;

    while ((m = n->lib->multi_info_read(l->multi, &left)))
        if (m->msg == CURLMSG_DONE)
            xfer_ended(n, m->easy_handle, m->data.result);
    xfers_settle(n);
}

static void act(struct net *n, struct lane *l, curl_socket_t fd, int what)
{
    int running;

    n->in_curl++;
    n->lib->multi_socket_action(l->multi, fd, what, &running);
    n->in_curl--;
    drain(n, l);
}

void lane_socket(struct net *n, struct lane *l, int fd, unsigned events)
{
    int what = 0;

    if (map_get_id(n->sockets, (uint64_t)fd) != l) { /* nobody waits for it any more */
        if (!map_get_id(n->sockets, (uint64_t)fd) && !map_get_id(n->watches, (uint64_t)fd))
            epoll_ctl(n->epfd, EPOLL_CTL_DEL, fd, NULL);
        return;
    }
    if (events & (EPOLLIN | EPOLLHUP | EPOLLRDHUP))
        what |= CURL_CSELECT_IN;
    if (events & EPOLLOUT)
        what |= CURL_CSELECT_OUT;
    if (events & EPOLLERR)
        what |= CURL_CSELECT_ERR;
    act(n, l, fd, what);
}

void lanes_run(struct net *n, enum lane_id first, enum lane_id last)
{
    int64_t now = clock_mono_ms();

    for (int i = first; i <= (int)last; i++) {
        struct lane *l = &n->lanes[i];
        if (l->multi && l->due >= 0 && l->due <= now) {
            l->due = -1;
            act(n, l, CURL_SOCKET_TIMEOUT, 0);
        }
    }
}

int64_t lanes_due(const struct net *n)
{
    int64_t due = -1;

    for (int i = 0; i < LANE_COUNT; i++)
        if (n->lanes[i].multi && n->lanes[i].due >= 0 && (due < 0 || n->lanes[i].due < due))
            due = n->lanes[i].due;
    return due;
}
