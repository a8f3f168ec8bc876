/* The provider's one HTTP/1.1 server: the control port and the init of every
 * sandbox are served by it. Keep-alive, pipelined requests answered in order,
 * Content-Length and chunked bodies, answers whole, as a file or as a stream.
 * Each head passes the strict parser (http_head.h); a TCP port also has its guard.
 *
 * A request goes this way:
 *   1. its head is there: `on_head` may answer it at once (nothing of a body is
 *      read then and the connection closes), or take the body in pieces with
 *      http_body_take(), or do nothing;
 *   2. the body is there (whole in r->body, unless taken): `fn`, or the taker's
 *      end(), answers, at once or later.
 * One event loop, one thread. */
#ifndef CCT_LOCAL_HTTP_SRV_H
#define CCT_LOCAL_HTTP_SRV_H

#include <cct/local/http_head.h>
#include <cct/util/buf.h>
#include <cct/util/err.h>

#define HTTP_SRV_BODY_MAX (4u << 20) /* of a body in memory, unless said otherwise */
#define HTTP_SRV_CONNS_MAX 1024u

struct event_base;
struct http_srv;
struct http_conn;
struct http_req;
struct iovec;

typedef void (*http_handler)(struct http_req *r, void *arg);

/* Who takes a body in pieces. Bytes are borrowed. */
struct http_body_ops {
    void (*piece)(void *arg, const char *p, size_t len); /* may answer: no more follows */
    void (*end)(void *arg);                              /* all of it came: answer */
    void (*cut)(void *arg); /* it will not be whole; the request is gone already */
};

/* One request. It lives until it is answered: by one http_reply*() or by
 * http_stream_end(). When the client leaves earlier, `conn` is NULL, on_close is
 * called, the answer is still owed and goes nowhere. */
struct http_req {
    struct http_conn *conn;
    char method[17];
    char *path;             /* before '?', still percent-encoded */
    char *query;            /* after '?', "" when absent */
    const char *key;        /* X-API-Key or NULL */
    bool is_json;           /* Content-Type is application/json */
    bool is_head;           /* HEAD: answer as for GET, the server leaves the body out */
    bool has_body;          /* one follows, or followed */
    int64_t content_length; /* -1 when absent */
    struct buf body;        /* body.max may be changed by on_head */
    struct buf headers;     /* of the answer, added with http_reply_header() */
    /* the server's own */
    char *fields; /* name NUL value NUL ... NUL */
    const struct http_body_ops *taker;
    void *taker_arg;
    http_handler on_close, on_drained;
    void *watch_arg;
    int minor;
    bool is_stream, is_chunked, is_paused;
};

/* --- the server ----------------------------------------------------------- */

/* Listen on 127.0.0.1 on a port of the kernel's choice; the Host of each request
 * must name it. NULL with *e set. */
struct http_srv *http_srv_new(struct event_base *base, http_handler fn, void *arg,
                              struct err *e);
/* Serve on a socket that listens already, whatever Host says. */
struct http_srv *http_srv_new_fd(struct event_base *base, int take_fd, http_handler fn,
                                 void *arg);
void http_srv_on_head(struct http_srv *s, http_handler fn);
/* Most connections at once, and bytes of a body in memory; 0 leaves one as it is. */
void http_srv_limits(struct http_srv *s, size_t conns_max, size_t body_max);
/* Time for a head, and for a body in memory, to be whole; 30 s unless said otherwise. */
void http_srv_work_ms(struct http_srv *s, int ms);
void http_srv_free(struct http_srv *s); /* closes all connections; NULL is fine */
unsigned http_srv_port(const struct http_srv *s);
size_t http_srv_conns(const struct http_srv *s);

/* --- a request ------------------------------------------------------------ */

/* Value of its first header of that name (any case), or NULL. Borrowed. */
const char *http_req_header(const struct http_req *r, const char *name);
/* Its socket, to pass a descriptor along with the answer; -1: the client left. */
int http_req_fd(const struct http_req *r);
/* All its headers in their order: start with NULL, then with the name given last;
 * NULL at the end. *value is the header's. */
const char *http_req_next(const struct http_req *r, const char *name, const char **value);
/* fn is called once if the client leaves before the answer ended; it, or somebody
 * later, still has to end the request. NULL fn takes it back. */
void http_req_watch(struct http_req *r, http_handler on_close, http_handler on_drained,
                    void *arg);

/* In on_head only. With a body of no bytes end() is called all the same. */
void http_body_take(struct http_req *r, const struct http_body_ops *ops, void *arg);
/* Stop and go on reading it. After a pause at most what was read already comes. */
void http_body_pause(struct http_req *r);
void http_body_resume(struct http_req *r);

/* --- answers -------------------------------------------------------------- */

/* Add a header to the answer (name and value without line ends). */
void http_reply_header(struct http_req *r, const char *name, const char *value);
void http_reply_headerf(struct http_req *r, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Answer with JSON text; NULL body for 204. Frees the request. */
void http_reply(struct http_req *r, int status, const char *json, size_t len);
/* Any type; without one (NULL) there is no body. Frees the request. */
void http_reply_bytes(struct http_req *r, int status, const char *type, const void *p,
                      size_t len);
/* len bytes of a file from `at` on, straight from the disk; a file that became
 * shorter meanwhile cuts the connection. Frees the request. */
void http_reply_file(struct http_req *r, int status, const char *type, int take_fd, int64_t at,
                     int64_t len);
/* {"code":status,"message":text} */
void http_reply_error(struct http_req *r, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* An answer without known length: chunked, or for HTTP/1.0 until the close. */
void http_stream_begin(struct http_req *r, int status, const char *type);
/* The pieces together are one chunk. */
void http_stream_send(struct http_req *r, const struct iovec *pieces, size_t n);
/* Bytes that the client did not take yet. on_drained is called when they fall to
 * zero; until then the sender should wait once it finds them too many. */
size_t http_stream_unsent(const struct http_req *r);
void http_stream_end(struct http_req *r); /* frees the request */
/* The same for one that cannot be completed: the client sees no proper end. */
void http_stream_cut(struct http_req *r);

/* Text of an error answer without a request: head and body into b. */
void http_error_text(struct buf *b, int status, const char *json, size_t len);
/* {"code":...,"message":...} into b. */
void http_error_json(struct buf *b, int status, const char *message);

#endif
