/* A listening socket on an event loop: accepts connections and, when descriptors
 * run out, looks away for a moment instead of spinning. One event loop, one
 * thread. */
#ifndef CCT_LOCAL_LISTENER_H
#define CCT_LOCAL_LISTENER_H

#include <cct/util/err.h>

struct event_base;
struct listener;

/* Takes the descriptor (non-blocking, close-on-exec) of a new connection. It must
 * not free the listener. */
typedef void (*listener_fn)(void *arg, int take_fd);

/* Takes `fd`, a socket that listens already. */
struct listener *listener_new(struct event_base *base, int take_fd, listener_fn fn, void *arg);
/* Listens on 127.0.0.1 on a port of the kernel's choice. NULL with *e set. */
struct listener *listener_new_loopback(struct event_base *base, listener_fn fn, void *arg,
                                       unsigned *port, struct err *e);
/* Closes the socket, not the connections; NULL is fine. */
void listener_free(struct listener *l);

#endif
