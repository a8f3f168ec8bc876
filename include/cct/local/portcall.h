/* Ask a sandbox's init for a TCP connection to a port inside (POST /cc/port), with
 * a deadline, on the event loop. The callback runs exactly once, unless the call
 * is cancelled, and never from inside portcall_start(). */
#ifndef CCT_LOCAL_PORTCALL_H
#define CCT_LOCAL_PORTCALL_H

struct event_base;
struct portcall;

/* take_fd: the connection (non-blocking, close-on-exec, perhaps still being made),
 * or -1; then status says what the init answered, 0 for nothing. */
typedef void (*portcall_fn)(void *arg, int take_fd, int status);

struct portcall *portcall_start(struct event_base *base, const char *sock, const char *token,
                                unsigned port, int timeout_ms, portcall_fn fn, void *arg);
void portcall_cancel(struct portcall *c); /* NULL is fine */

#endif
