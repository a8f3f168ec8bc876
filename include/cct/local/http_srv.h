/* A small HTTP/1.1 server for the control port: keep-alive, Content-Length and
 * chunked bodies up to a cap, pipelined requests answered in order, 30 s for a
 * head and for a body. Each request passes the strict parser and the guard
 * (http_head.h) first. One event loop, one thread. */
#ifndef CCT_LOCAL_HTTP_SRV_H
#define CCT_LOCAL_HTTP_SRV_H

#include <cct/local/http_head.h>
#include <cct/util/buf.h>
#include <cct/util/err.h>

#define HTTP_SRV_BODY_MAX (4u << 20)
#define HTTP_SRV_CONNS_MAX 1024u

struct event_base;
struct http_srv;
struct http_conn;

/* One request. It lives until http_reply() was called for it, once, at once or
 * later; when the client leaves earlier, `conn` is NULL and the reply goes
 * nowhere. */
struct http_req {
    struct http_conn *conn;
    char method[17];
    char *path;   /* before '?', still percent-encoded */
    char *query;  /* after '?', "" when absent */
    char *key;    /* X-API-Key or NULL */
    bool is_json; /* Content-Type is application/json */
    struct buf body;
    struct buf headers; /* added with http_reply_header() */
};

typedef void (*http_handler)(struct http_req *r, void *arg);

/* Listen on 127.0.0.1 on a port of the kernel's choice. NULL with *e set. */
struct http_srv *http_srv_new(struct event_base *base, http_handler fn, void *arg,
                              struct err *e);
/* Who may send a body: asked when the head is there; false answers 401 at once and
 * takes nothing more. Without it everybody may. */
typedef bool (*http_gate)(const struct http_req *r, void *arg);
void http_srv_gate(struct http_srv *s, http_gate fn);
void http_srv_free(struct http_srv *s); /* closes all connections */
unsigned http_srv_port(const struct http_srv *s);
size_t http_srv_conns(const struct http_srv *s);

/* Add a header to the answer (name and value are ours, without line ends). */
void http_reply_header(struct http_req *r, const char *name, const char *value);
/* Answer with JSON text; NULL body for 204. Frees the request. */
void http_reply(struct http_req *r, int status, const char *json, size_t len);
/* {"code":status,"message":text} */
void http_reply_error(struct http_req *r, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Text of an error answer without a request: head and body into b. */
void http_error_text(struct buf *b, int status, const char *json, size_t len);
/* {"code":...,"message":...} into b. */
void http_error_json(struct buf *b, int status, const char *message);

#endif
