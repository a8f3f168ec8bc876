/* The provider's HTTP server in the test's own process and thread, with a handler
 * for each kind of request, and a client that knows bytes only. Everything fails the
 * test on its own. */
#ifndef CCT_TESTS_LIB_HTTPBED_H
#define CCT_TESTS_LIB_HTTPBED_H

#include <cct/local/http_srv.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_base;

/* What the handlers do, by path:
 *   /echo    the method, the query and the body come back
 *   /none    204
 *   /early   401 as soon as the head is there
 *   /keep    nothing: the request waits in `kept`
 *   /stream  a stream is begun, the request waits in `kept`
 *   /take    the body is taken in pieces into `got`; its length is the answer
 *   /refuse  ... and refused with 507 after `refuse_at` bytes
 *   /pause   ... and paused after each piece
 *   /file    file_len bytes of file_fd from file_at on */
struct httpbed {
    struct event_base *base;
    struct http_srv *srv;
    struct event *tick;
    char dir[64], sock[80]; /* "" on a TCP port */
    struct http_req *kept;
    struct buf got;
    int served, pieces, cuts, closes, drains;
    size_t refuse_at;
    int file_fd;
    int64_t file_at, file_len;
};

void httpbed_up(struct httpbed *b, bool tcp);
void httpbed_down(struct httpbed *b);
/* Fails the test with both when the text lacks the part. */
void httpbed_has(const char *text, const char *part);

/* Run the server for a moment. */
void httpbed_turn(struct httpbed *b);
/* ... until the condition is true; fails after 20 s. */
#define HTTPBED_UNTIL(b, cond)                                                \
    do {                                                                      \
        int64_t until_ = clock_mono_ms() + 20000;                             \
        while (!(cond)) {                                                     \
            if (clock_mono_ms() > until_)                                     \
                fail_msg("%s:%d: never true: %s", __FILE__, __LINE__, #cond); \
            httpbed_turn(b);                                                  \
        }                                                                     \
    } while (0)

int httpbed_connect(struct httpbed *b);
/* All of it, in pieces of `step` bytes (0: as it goes), the server running meanwhile. */
void httpbed_send(struct httpbed *b, int fd, const char *p, size_t len, size_t step);
/* What has come; adds to *in, true at the end of the connection. */
bool httpbed_recv(struct httpbed *b, int fd, struct buf *in);
/* All up to the end of the connection, as a new string; closes fd. */
char *httpbed_finish(struct httpbed *b, int fd);
/* Connect, send, finish. */
char *httpbed_talk(struct httpbed *b, const char *text, size_t step);
/* The status of each answer in the text of a connection: "200 404 ". */
const char *httpbed_statuses(const char *text);

#endif
