/* The net thread: curl multi with epoll and timers, a queue to wake it. libcurl is
 * opened (dlopen) and initialised inside the thread, so nothing is loaded before
 * net_start(); commands posted earlier wait in the queue. */
#ifndef CCT_NET_H
#define CCT_NET_H

#include <cct/secrets/secret.h>
#include <cct/util/buf.h>
#include <cct/util/err.h>
#include <cct/util/mq.h>
#include <stdbool.h>
#include <stdint.h>

struct net;
struct net_opts {
    const char *user_agent;  /* "cc-tui/0.1.0" */
    const char *ca_file;     /* NULL: SSL_CERT_FILE, CURL_CA_BUNDLE, system */
    int max_per_host;        /* connections per host for ordinary requests on plain
                                http; 0 = 64. Urgent ones and streams have their own,
                                without a limit. Over TLS it is 8, 24 and 32: HTTP/2
                                carries a hundred requests on each (256 urgent ones
                                where the server answered without HTTP/2) */
};
/* Any thread may post: messages arrive at on_msg on the net thread, urgent first.
 * Reads SSL_CERT_FILE and CURL_CA_BUNDLE and drops SSLKEYLOGFILE from the
 * environment: call it before other threads run. */
struct net *net_new(const struct net_opts *o);
struct mq *net_mq(struct net *n);
/* Start the thread. on_enter runs first, before libcurl is opened, which takes
 * milliseconds: what it asks of others is answered meanwhile. on_start runs once
 * libcurl is up (err NULL) or cannot be had (err set: requests then fail with it);
 * on_msg gets each message (borrowed; net frees it); on_stop runs last, before the
 * thread ends. Before it on_leave may send last requests: the loop goes on, at most
 * 300 ms, while it returns true. Any hook may be NULL. */
struct net_hooks {
    void (*on_enter)(void *ctx);
    void (*on_start)(void *ctx, struct net *n, const struct err *err);
    void (*on_msg)(void *ctx, struct msg *m);
    bool (*on_leave)(void *ctx);
    void (*on_stop)(void *ctx);
    void *ctx;
};
int net_start(struct net *n, const struct net_hooks *h, struct err *e);
/* Ask the thread to end and join it (bounded, 1 s with open transfers). What was
 * posted before is still delivered; open transfers end without a callback after
 * on_stop. Safe when it never started. net_free after it. False: the thread did not end
 * in time; what it uses must stay. */
bool net_stop(struct net *n);
void net_free(struct net *n);

/* ---- on the net thread only ---------------------------------------------- */

enum net_header_max { NET_MAX_HEADERS = 16 };
struct net_header {
    const char *name;            /* static or owned by the request's strings */
    char *value;                 /* owned; or NULL with a secret */
    const struct secret *secret; /* borrowed until the request ended */
};
struct net_result {
    struct err err;      /* code 0: an answer came (whatever its status) */
    int status;          /* HTTP status, 0 = none */
    int64_t retry_after_ms; /* -1 = no header; seconds or a date, from now */
    int64_t date_ms;     /* server Date in wall ms, 0 = none */
    const char *body;    /* whole body when on_body was NULL; borrowed, NUL-ended */
    size_t len;
    bool sent;           /* the request may have reached the server: a create must
                            not simply be repeated */
    bool again;          /* it went out twice: a kept connection broke under it */
    int64_t elapsed_ms;
};
struct net_req {
    const char *method;  /* static: "GET", "POST", "DELETE", "PUT" */
    char *url;           /* owned */
    struct net_header headers[NET_MAX_HEADERS];
    size_t n_headers;
    struct buf body;     /* owned */
    /* Or the body comes from here, body_len bytes: as many as it can, at most room; 0 ends the
     * transfer as failed. Such a request is never sent twice. */
    size_t (*read_body)(void *ctx, char *dst, size_t room);
    uint64_t body_len;
    bool urgent;         /* own warm connections, ahead of all else */
    bool fresh;          /* over a new connection, which is kept for others */
    bool stream;         /* may last for ever: a connection outside max_per_host */
    bool bulk;           /* much comes: it is read in big pieces */
    bool repeatable;     /* a body may go out again when a kept connection turns out
                            dead; without it a body is never sent twice */
    int connect_ms;      /* 0 = 10000 */
    int total_ms;        /* 0 = none */
    int idle_ms;         /* dead after so long without a byte; 0 = none */
    size_t max_body;     /* of a collected answer; 0 = LIM_HTTP_BODY; more is ERR_LIMIT */
    /* Status and headers are in (called once, before any body). May be NULL. */
    void (*on_head)(void *ctx, int status);
    /* A piece of the body; false ends the transfer with ERR_CANCELLED. NULL: the
     * body is collected. */
    bool (*on_body)(void *ctx, const char *data, size_t len);
    /* Exactly once, unless net_cancel was called. */
    void (*on_done)(void *ctx, const struct net_result *r);
    void *ctx;
};
/* New request with defaults; add headers; net_submit takes it. A GET, a DELETE or a
 * repeatable POST goes out once more by itself when a kept connection was closed by
 * its server under it; nothing else is ever sent twice. */
struct net_req *net_req_new(const char *method, char *take_url);
void net_req_header(struct net_req *r, const char *name, const char *value); /* copies */
void net_req_secret(struct net_req *r, const char *name, const struct secret *s);
uint64_t net_submit(struct net *n, struct net_req *take); /* id, never 0 */
/* End it now; none of its callbacks is called any more. Unknown ids are fine. */
void net_cancel(struct net *n, uint64_t id);
/* Bytes of its body that have gone out so far; 0 when it is not under way. */
int64_t net_sent(struct net *n, uint64_t id);
/* There is reason to think that its connection is dead: when nothing was heard on that for
 * as long as this request waits, it is closed under all that use it. */
void net_doubt(struct net *n, uint64_t id);
/* Stop / go on reading (back pressure reaches the peer). */
void net_pause(struct net *n, uint64_t id, bool pause);
/* Answer header by name (no case), only inside on_head / on_done; NULL if absent. */
const char *net_answer_header(struct net *n, uint64_t id, const char *name);

/* https anywhere, or http to a loopback address; no user, no blanks or controls.
 * 0 or ERR_INVALID. *loopback may be NULL. Any thread. */
int net_url_check(const char *url, bool *loopback, struct err *e);

/* What goes to this port of this machine is for the process of the pidfd, which is taken: once
 * that has ended, requests to the port fail with ERR_NETWORK and are not sent, whoever listens
 * there then. A later owner of the port replaces it. */
void net_port_owner(struct net *n, int port, int take_pidfd);

/* The machine slept: no connection is trusted any more. Everything under way ends with
 * ERR_NETWORK (sent: it may have arrived), what is submitted from now on gets new
 * connections. From a timer or a watch, not from a callback of a request. */
void net_renew(struct net *n);

/* One-shot timers. */
uint64_t net_timer(struct net *n, int64_t ms, void (*fn)(void *ctx), void *ctx);
void net_timer_cancel(struct net *n, uint64_t id);
/* Watch a descriptor for reading (the child's pipe, an inotify); fn until unwatched. */
int net_watch(struct net *n, int fd, void (*fn)(void *ctx, int fd), void *ctx);
void net_unwatch(struct net *n, int fd);
/* base * 2^attempt up to max, with +-25 % jitter. */
int64_t net_backoff_ms(int attempt, int64_t base_ms, int64_t max_ms);

#endif
