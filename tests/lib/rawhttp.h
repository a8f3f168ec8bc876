/* A client of the local provider that knows bytes only, and what the kernel says of a
 * process. For benchmarks and tests: each function ends the program when the
 * connection itself fails. */
#ifndef CCT_TESTS_RAWHTTP_H
#define CCT_TESTS_RAWHTTP_H

#include "localbed.h"
#include <cct/util/buf.h>
#include <sys/types.h>

struct rawhttp_box {
    char id[32], token[80];
};

int rawhttp_dial(int port);
/* One call on a kept connection: the status; the body is added to out (may be NULL). */
int rawhttp_call(int fd, int port, const char *key, const char *method, const char *path,
                 const char *json, struct buf *out);
/* POST /v2/sandboxes with this body on a connection to the control port; the status. */
int rawhttp_create(const struct localbed *l, int fd, const char *json, struct rawhttp_box *x);
/* METHOD /sandboxes/ID{tail}; the status. */
int rawhttp_box_call(const struct localbed *l, int fd, const struct rawhttp_box *x,
                     const char *method, const char *tail, const char *json);
/* The one envelope of a Start request, added to b: SHELL -c COMMAND without stdin. */
void rawhttp_start_frame(struct buf *b, const char *shell, const char *command);
/* A stream of a shell command in a sandbox: the request is sent, nothing is read. minor 0:
 * HTTP/1.0, whose answer is not chunked. */
int rawhttp_stream(const struct localbed *l, const struct rawhttp_box *x, const char *command,
                   int minor);
/* Read until text was seen; false when the stream ends before. */
bool rawhttp_await(int fd, const char *text);

/* Value of a field like "VmRSS:" in /proc/PID/status, -1 without one. */
long rawhttp_status_of(pid_t pid, const char *field);
int rawhttp_fds_of(pid_t pid);

#endif
