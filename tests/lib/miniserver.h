/* A scripted HTTP/1.1 server on loopback, in a thread of the test. It does what the
 * handler says and nothing by itself, so that broken peers can be played. */
#ifndef CCT_TESTS_MINISERVER_H
#define CCT_TESTS_MINISERVER_H

#include <stdbool.h>
#include <stddef.h>

struct mini;
struct mini_conn;
struct mini_req {
    const char *method, *path; /* path with query */
    const char *head;          /* all header lines */
    const char *body;
    size_t len;
};
/* Runs on the server's thread, once a request is complete. */
typedef void (*mini_fn)(void *ctx, struct mini_conn *c, const struct mini_req *r);

struct mini *mini_start(mini_fn fn, void *ctx);
struct mini *mini_start6(mini_fn fn, void *ctx); /* on [::1]; NULL: there is no IPv6 */
void mini_stop(struct mini *m);
int mini_port(const struct mini *m);
/* Requests so far; connections accepted so far; connections open now. */
int mini_requests(struct mini *m);
int mini_accepted(struct mini *m);
int mini_open(struct mini *m);
/* What handlers did is seen by the caller, and they will see what it did (their
 * connection may be cut, which orders nothing). */
void mini_sync(struct mini *m);
/* "http://127.0.0.1:PORT<path>"; new string. */
char *mini_url(const struct mini *m, const char *path);

/* Inside the handler: what the connection does, in this order. */
void mini_send(struct mini_conn *c, const void *data, size_t len);
void mini_sendf(struct mini_conn *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void mini_wait(struct mini_conn *c, int ms);
void mini_close(struct mini_conn *c);
/* A whole answer with Content-Length; extra header lines end with CRLF, or "". */
void mini_reply(struct mini_conn *c, int status, const char *extra, const char *body);
/* Value of a header line (no case), copied into dst; false when absent. */
bool mini_header(const struct mini_req *r, const char *name, char *dst, size_t size);

#endif
