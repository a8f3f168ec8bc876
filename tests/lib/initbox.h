/* The sandbox's init as an ordinary process on a unix socket, and a client that
 * knows bytes only: HTTP by hand, envelopes by hand. For tests with cmocka whose
 * main() begins with initbox_program(); each function fails the test on its own. */
#ifndef CCT_TESTS_LIB_INITBOX_H
#define CCT_TESTS_LIB_INITBOX_H

#include <cct/util/buf.h>
#include <stddef.h>
#include <sys/types.h>

#define INITBOX_TOKEN "ea_token_iabc"
#define INITBOX_WAIT_MS 20000 /* longest wait for anything */
#define INITBOX_JSON "Content-Type: application/json\r\nConnect-Protocol-Version: 1\r\n"
#define INITBOX_STREAM \
    "Content-Type: application/connect+json\r\nConnect-Protocol-Version: 1\r\n"
/* A Start message for a shell command without stdin. */
#define INITBOX_SH(cmd) \
    "{\"process\":{\"cmd\":\"/bin/sh\",\"args\":[\"-c\",\"" cmd "\"]},\"stdin\":false}"

/* ... with one. */
#define INITBOX_STDIN_SH(cmd) \
    "{\"process\":{\"cmd\":\"/bin/sh\",\"args\":[\"-c\",\"" cmd "\"]},\"stdin\":true}"

struct initbox_answer {
    int status;
    char head[4096];
    struct buf body; /* chunks joined; the caller releases it */
};

extern char initbox_dir[]; /* home and work folder */
extern pid_t initbox_pid;  /* 0 once a test has seen it end */

/* The init is this program, too, and so is what starts its user root: does that part
 * and ends, or returns when the tests are to be run. */
void initbox_program(int argc, char **argv);
/* Group fixtures. */
int initbox_up(void **state);
int initbox_down(void **state);
/* Another init beside the first, on its own socket path. */
pid_t initbox_spawn(const char *path, long long deadline_ms);
long initbox_rss_kb(pid_t pid);

/* Up to `max` bytes of what comes next; 0 at the end. */
size_t initbox_take(int fd, char *dst, size_t max);
/* Send a request (with the token unless the headers have one); returns the socket. */
int initbox_request(const char *method, const char *path, const char *headers, const char *body,
                    size_t len);
/* The same to another socket than the group's. */
int initbox_request_at(const char *sock, const char *method, const char *path,
                       const char *headers, const char *body, size_t len);
/* Send a head whose framing the headers say; the body is for the caller to write. */
int initbox_begin(const char *method, const char *path, const char *headers);
/* Read the answer to its end and close. */
void initbox_finish(int fd, struct initbox_answer *a);
void initbox_call(struct initbox_answer *a, const char *method, const char *path,
                  const char *headers, const char *body);
void initbox_rpc(struct initbox_answer *a, const char *path, const char *body);
/* Open a server stream with one envelope. */
int initbox_stream(const char *path, const char *headers, const char *json);
/* Body of a stream as text, "flags json\n" for each envelope; frees the body. */
char *initbox_frames(struct initbox_answer *a);
/* Start, to the end of the stream, as initbox_frames. */
char *initbox_run(const char *headers, const char *json);
/* Read a stream until `what` was seen; what came so far is in *b. */
void initbox_until(int fd, struct buf *b, const char *what);
/* Start in the background; the stream stays open, *pid is told. */
int initbox_start(const char *json, int *pid, struct buf *seen);
void initbox_has(const char *text, const char *part);

#endif
