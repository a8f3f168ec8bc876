/* Sandboxes of a local provider that run the port server (portserver.h), and
 * requests for it through the traffic port. For tests with cmocka, whose main()
 * hands "--port-server" to portserver_main(); each function fails the test on its
 * own. */
#ifndef CCT_TESTS_LIB_PORTBED_H
#define CCT_TESTS_LIB_PORTBED_H

#include "localbed.h"
#include "plainhttp.h"

struct portbed_box {
    char id[24], token[72], traffic_token[72];
    int ports[8]; /* of its server, in the order of the addresses */
};

extern struct localbed *portbed; /* the provider asked; the test makes it */

struct plainhttp portbed_control(const char *method, const char *path, const char *json);
/* METHOD /sandboxes/ID{tail}; "" as the id: the collection. */
int portbed_control_status(const char *method, const char *id, const char *tail,
                           const char *json);
/* A call that answers with a sandbox. */
void portbed_take(struct portbed_box *b, const char *path, const char *json, int want);
/* Make a sandbox with more options (",\"name\":value") and run the server in it. */
void portbed_make(struct portbed_box *b, const char *options, const char *addresses);
/* Run another server for these addresses, as a user (NULL: the sandbox's own). */
void portbed_serve(struct portbed_box *b, const char *user, const char *addresses);
void portbed_drop(const struct portbed_box *b);

/* Bytes of a request, up to the end of the head; `line` is method and target. */
void portbed_request(struct buf *b, const char *id, const char *port, const char *line,
                     const char *headers);
/* Send one; the socket. */
int portbed_begin(const struct portbed_box *b, int port, const char *line, const char *headers);
struct plainhttp portbed_ask(const struct portbed_box *b, int port, const char *line,
                             const char *headers);
int portbed_status(const struct portbed_box *b, int port, const char *line,
                   const char *headers);

#endif
