/* Connections that died without a word: no FIN, no RST, nothing any more. A request that
 * waited in vain is tried again by its owner; over the same connection that would be in
 * vain too, and with HTTP/2 a hundred others wait on it. So when nothing at all was heard
 * on a connection for as long as one of its requests waited, the connection is closed
 * under all of them, and kept ones that lay idle since are not taken up again. */
#include "net_priv.h"
#include <arpa/inet.h>
#include <cct/util/clock.h>
#include <cct/util/thread.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

enum { DOUBT_MS = 120000, SLACK_MS = 200 };

static int port_of(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } a = {0};
    socklen_t n = sizeof(a);

    if (getsockname(fd, &a.any, &n) != 0)
        return 0;
    return ntohs(a.any.sa_family == AF_INET6 ? a.v6.sin6_port : a.v4.sin_port);
}

/* libcurl does not tell the socket of a running transfer, but its port. */
static int socket_of(struct xfer *x)
{
    struct net *n = x->net;
    long port = 0;
    uint64_t fd;
    size_t it = 0;

    n->lib->easy_getinfo(x->easy, CURLINFO_LOCAL_PORT, &port);
    while (port > 0 && map_next(n->sockets, &it, NULL, &fd))
        if (port_of((int)fd) == (int)port)
            return (int)fd;
    return -1;
}

static int64_t quiet_ms(int fd)
{
    struct tcp_info t = {0};
    socklen_t n = sizeof(t);

    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &t, &n) == 0 ? t.tcpi_last_data_recv : 0;
}

void silence_noted(struct xfer *x)
{
    int64_t now = clock_mono_ms(), waited = now - (x->byte_ms ? x->byte_ms : x->start_ms);
    int fd = x->added ? socket_of(x) : -1;

    x->net->doubt_ms = now;
    if (fd >= 0 && quiet_ms(fd) + SLACK_MS >= waited)
        shutdown(fd, SHUT_RDWR); /* libcurl hears of it like of any other end */
}

void net_doubt(struct net *n, uint64_t id)
{
    struct xfer *x = map_get_id(n->xfers, id);

    THREAD_ASSERT(THREAD_NET);
    if (x && !x->done && !x->paused)
        silence_noted(x);
}

void silence_setup(struct xfer *x)
{
    int64_t since = clock_mono_ms() - x->net->doubt_ms;

    if (x->net->doubt_ms && since < DOUBT_MS)
        x->net->lib->easy_setopt(x->easy, CURLOPT_MAXAGE_CONN, (long)(since / 1000 + 1));
}
