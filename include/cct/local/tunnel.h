/* The traffic port: one request per connection goes, byte for byte after its
 * checked head, to the init of the sandbox that E2b-Sandbox-Id names, or to the
 * program that opened E2b-Sandbox-Port there, and the answer comes back. Bounded
 * buffers both ways. One event loop, one thread. */
#ifndef CCT_LOCAL_TUNNEL_H
#define CCT_LOCAL_TUNNEL_H

#include <cct/util/err.h>
#include <stddef.h>

#define TUNNEL_CONNS_MAX 4096u
#define TUNNEL_HIGH_WATER (256u << 10) /* unsent bytes before the other side waits */

struct provider;
struct tunnel;

/* Listen on 127.0.0.1 on a port of the kernel's choice. NULL with *e set. */
struct tunnel *tunnel_new(struct provider *p, struct err *e);
void tunnel_free(struct tunnel *t); /* closes all connections; NULL is fine */
unsigned tunnel_port(const struct tunnel *t);
size_t tunnel_conns(const struct tunnel *t);

#endif
