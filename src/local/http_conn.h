/* One connection of the HTTP server; shared by http_srv.c (connections, what comes
 * on them), http_req.c (requests) and http_reply.c (answers). */
#ifndef LOCAL_HTTP_CONN_H
#define LOCAL_HTTP_CONN_H

#include <cct/local/http_srv.h>

struct bufferevent;
struct event;

enum conn_state {
    CONN_IDLE,    /* no byte of a request yet */
    CONN_HEAD,    /* some of a head */
    CONN_BODY,    /* some of a body */
    CONN_WAIT,    /* the request is whole, its answer is not */
    CONN_CLOSING, /* the last answer is being written */
    CONN_LINGER   /* ... it is written: read and drop, so no reset eats it */
};

struct http_conn {
    struct http_srv *srv;
    struct http_conn *prev, *next;
    struct bufferevent *bev;
    struct event *timer;
    enum conn_state state;
    struct http_req *req; /* being read or answered */
    struct http_chunks chunks;
    bool chunked, keep_alive;
    bool is_looping; /* conn_work() is on the stack */
    int64_t body_left;
};

/* The answer that is being given may be followed by another one. */
bool http_conn_keeps(const struct http_conn *c);
/* All of the answer is in the output; frees the request and goes on. */
void http_conn_answered(struct http_req *r);
/* A stream has begun (its reader may take as long as it likes) or is over. */
void http_conn_patient(struct http_conn *c, bool patient);

/* The limit that fits to its state, from now on. */
void http_conn_set_timer(struct http_conn *c);
/* Go on with what the input holds. */
void http_conn_work(struct http_conn *c);

/* http_req.c */
struct http_req *http_req_new(struct http_conn *c, const struct http_head *h, size_t body_max);
void http_req_free(struct http_req *r);
/* Whatever the taker of the body wanted: the connection is read again. */
void http_req_end_pause(struct http_req *r);

/* http_reply.c: an answer without a request, after which the connection closes. */
void http_conn_write_error(struct http_conn *c, int status, const char *why);

#endif
