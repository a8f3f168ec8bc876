/* One request in plain bytes to an HTTP port on loopback (rawhttp_dial() opens it)
 * and the whole answer. For tests with cmocka: each function fails the test on its
 * own. */
#ifndef CCT_TESTS_LIB_PLAINHTTP_H
#define CCT_TESTS_LIB_PLAINHTTP_H

#include "localbed.h"
#include <cct/util/buf.h>
#include <stddef.h>

#define PLAINHTTP_WAIT_MS 20000 /* longest wait for anything */

struct plainhttp {
    int status;
    struct buf raw; /* head and body; the caller releases it */
    const char *body;
    size_t body_len;
};

/* All of it, unless the peer closes before: its answer says why. */
void plainhttp_send(int fd, const char *p, size_t len);
/* Read to the end and close. */
struct plainhttp plainhttp_finish(int fd);
struct plainhttp plainhttp_exchange(int port, const char *p, size_t len);
/* A call of a provider's control port; `json` may be NULL. */
struct plainhttp plainhttp_control(const struct localbed *l, const char *method,
                                   const char *path, const char *json);
/* Read until `what` was seen. */
void plainhttp_until(int fd, struct buf *b, const char *what);

#endif
