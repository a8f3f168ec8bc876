/* One HTTP call of the provider to a sandbox's init over its unix socket, with a
 * deadline, on the event loop. The callback runs exactly once, unless the call
 * is cancelled, and never from inside initcall_start(). */
#ifndef CCT_LOCAL_INITCALL_H
#define CCT_LOCAL_INITCALL_H

#include <stddef.h>

struct event_base;
struct initcall;

/* status: the HTTP status, or 0 when there was no whole answer in time. */
typedef void (*initcall_fn)(void *arg, int status, const char *body, size_t len);

/* `json` may be NULL (no body); `fn` may be NULL (nobody cares). */
struct initcall *initcall_start(struct event_base *base, const char *sock, const char *token,
                                const char *method, const char *path, const char *json,
                                int timeout_ms, initcall_fn fn, void *arg);
void initcall_cancel(struct initcall *c); /* NULL is fine */

#endif
