/* Connections: accept, TLS, reading and writing without ever blocking. On a TLS port the
 * first byte tells a handshake from plain HTTP, which is for /_faultd/ alone. */
#include "conn.h"
#include <cct/util/xalloc.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PIECE = 32 << 10, ROUNDS = 32, TLS_FIRST_BYTE = 0x16 };

struct listener {
    struct watch w;
    struct plane *plane;
    SSL_CTX *tls;
};

static void conn_close(struct conn *c)
{
    struct linger now = {1, 0}; /* RST, not FIN */

    if (c->proto)
        c->proto->close(c);
    c->plane->conns_open--;
    loop_unwatch(&c->w);
    loop_later_stop(&c->flush);
    if (c->rst)
        setsockopt(c->w.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    SSL_free(c->ssl); /* no close_notify: a cut is a cut */
    close(c->w.fd);
    buf_release(&c->in);
    buf_release(&c->out);
    loop_bury(c);
}

/* Nothing failed: more bytes must come or go first. */
static bool tls_waits(const struct conn *c, int rc)
{
    int e = SSL_get_error(c->ssl, rc);

    return e == SSL_ERROR_WANT_READ || e == SSL_ERROR_WANT_WRITE;
}

/* Bytes read, 0 when there are none now, -1 when the peer is gone. */
static ssize_t take(struct conn *c, char *room, size_t max)
{
    ssize_t n;

    if (!c->ssl) {
        n = recv(c->w.fd, room, max, 0);
        return n > 0 ? n : n < 0 && errno == EAGAIN ? 0 : -1;
    }
    ERR_clear_error();
    n = SSL_read(c->ssl, room, (int)max);
    return n > 0 ? n : tls_waits(c, (int)n) ? 0 : -1;
}

static ssize_t give(struct conn *c)
{
    ssize_t n;

    if (!c->ssl) {
        n = send(c->w.fd, c->out.p, c->out.len, MSG_NOSIGNAL);
        return n > 0 ? n : n < 0 && errno == EAGAIN ? 0 : -1;
    }
    ERR_clear_error();
    n = SSL_write(c->ssl, c->out.p, (int)c->out.len);
    return n > 0 ? n : tls_waits(c, (int)n) ? 0 : -1;
}

void conn_flush(struct conn *c)
{
    loop_later(&c->flush);
}

static void on_flush(struct later *l)
{
    struct conn *c = OWNER_OF(l, struct conn, flush);
    bool full = false;

    while (!c->dead && !c->silent && c->proto && !full) {
        c->proto->fill(c);
        if (!c->out.len)
            break;
        ssize_t n = give(c);
        if (n < 0)
            c->dead = true;
        else if (n == 0)
            full = true;
        else
            buf_consume(&c->out, (size_t)n);
    }
    if (c->dead || (c->close_when_sent && !c->out.len && !c->silent))
        conn_close(c);
    else
        loop_watch(&c->w, c->silent ? EPOLLRDHUP : EPOLLIN | (full ? EPOLLOUT : 0));
}

static void choose(struct conn *c)
{
    const unsigned char *name = NULL;
    unsigned int len = 0;

    if (c->ssl)
        SSL_get0_alpn_selected(c->ssl, &name, &len);
    c->shaken = true;
    c->proto = len == 2 && memcmp(name, "h2", 2) == 0 ? &h2_proto : &h1_proto;
    c->proto->open(c);
}

/* True when the handshake is over. */
static bool shake(struct conn *c)
{
    unsigned char first;
    ssize_t n;
    int rc;

    if (!c->ssl && c->tls && !c->plain) {
        n = recv(c->w.fd, &first, 1, MSG_PEEK);
        if (n <= 0) {
            c->dead = n == 0 || errno != EAGAIN;
            return false;
        }
        c->plain = first != TLS_FIRST_BYTE;
        if (!c->plain) {
            c->ssl = SSL_new(c->tls);
            SSL_set_fd(c->ssl, c->w.fd);
            SSL_set_accept_state(c->ssl);
        }
    }
    if (c->ssl) {
        ERR_clear_error();
        rc = SSL_do_handshake(c->ssl);
        if (rc != 1) {
            c->dead = !tls_waits(c, rc);
            return false;
        }
    }
    choose(c);
    return true;
}

static void on_ready(struct watch *w, uint32_t events)
{
    struct conn *c = OWNER_OF(w, struct conn, w);
    ssize_t n = 0;

    if (c->silent && events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        c->dead = true;
    for (int i = 0; i < ROUNDS && !c->silent && !c->dead; i++) {
        if (!c->shaken && !shake(c))
            break;
        char *room = buf_reserve(&c->in, PIECE);
        n = room ? take(c, room, PIECE - 1) : -1;
        if (n < 0)
            c->dead = true;
        if (n <= 0)
            break;
        c->in.len += (size_t)n;
        c->proto->feed(c);
    }
    conn_flush(c);
}

static void on_accept(struct watch *w, uint32_t events)
{
    struct listener *l = OWNER_OF(w, struct listener, w);
    int fd, one = 1;

    (void)events;
    while ((fd = accept4(w->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct conn *c = xcalloc(1, sizeof(*c));
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        c->w.fd = fd;
        c->w.ready = on_ready;
        c->flush.run = on_flush;
        c->plane = l->plane;
        c->tls = l->tls;
        c->no = ++l->plane->conns_total;
        l->plane->conns_open++;
        buf_init(&c->in, CONN_IN_MAX);
        loop_watch(&c->w, EPOLLIN);
    }
}

static int listen_one(struct plane *p, int port, int family, SSL_CTX *tls)
{
    struct listener *l = xcalloc(1, sizeof(*l));

    *l = (struct listener){.w.ready = on_accept, .plane = p, .tls = tls};
    return loop_listen(&l->w, family, port);
}

int conn_listen(struct plane *p, int port, bool six, SSL_CTX *tls)
{
    port = listen_one(p, port, AF_INET, tls);
    if (six)
        listen_one(p, port, AF_INET6, tls);
    return port;
}
