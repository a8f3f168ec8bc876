/* Where a request of the traffic port goes: the decision alone, made from its
 * head and the table of sandboxes. */
#ifndef CCT_LOCAL_TUNNEL_ROUTE_H
#define CCT_LOCAL_TUNNEL_ROUTE_H

#include <cct/local/http_head.h>
#include <stdbool.h>

#define TUNNEL_ENVD_PORT 49983u /* the init itself; every other is a program's */

struct provider;
struct sbox;

enum tunnel_to { TUNNEL_REFUSE, TUNNEL_WAKE, TUNNEL_INIT, TUNNEL_PORT };

struct tunnel_route {
    enum tunnel_to to;
    struct sbox *b; /* unless refused */
    char id[24];    /* "" when the request named none */
    unsigned port;
    int status; /* when refused */
    const char *why;
};

/* Decide by E2b-Sandbox-Id and E2b-Sandbox-Port; a request for a signed file that
 * names no sandbox goes to the one whose token made the signature. */
void tunnel_route(const struct provider *p, const struct http_head *h,
                  struct tunnel_route *out);

#endif
