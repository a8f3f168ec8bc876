/* A TCP connection, plain or TLS, and the protocol spoken on it. */
#ifndef CCT_TESTS_FAULTD_CONN_H
#define CCT_TESTS_FAULTD_CONN_H

#include "exchange.h"
#include <openssl/ssl.h>

struct conn;
struct proto {
    void (*open)(struct conn *c);
    void (*feed)(struct conn *c);  /* new bytes in c->in: consume them */
    void (*fill)(struct conn *c);  /* put what may go now into c->out, some CONN_HIGH */
    void (*close)(struct conn *c); /* the peer is gone: end the exchanges */
};

struct conn {
    struct watch w;
    struct later flush;
    struct plane *plane;
    SSL_CTX *tls; /* what to speak when the peer begins so */
    SSL *ssl;
    struct buf in, out;
    int64_t no;
    bool silent;          /* nothing is read or written any more */
    bool close_when_sent; /* after c->out; with rst by RST */
    bool rst, dead, shaken, plain;
    const struct proto *proto;
    void *session;
};

enum { CONN_HIGH = 128 << 10, CONN_IN_MAX = 80 << 20 };

extern const struct proto h1_proto, h2_proto;

/* Listen on 127.0.0.1 (and ::1) at `port`; returns the port. tls may be NULL. */
int conn_listen(struct plane *p, int port, bool six, SSL_CTX *tls);
void conn_flush(struct conn *c); /* later in this turn */

/* tls.c: a CA and a certificate in `dir` (kept when they are there), for localhost,
 * loopback and `names`. Dies when it cannot. */
SSL_CTX *tls_context(const char *dir, const char *const *names, size_t n, bool h1_only);

#endif
