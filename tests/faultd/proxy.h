/* The chaos proxy: forwards TCP (TLS passes through) and, on command, breaks it. Lines on
 * the control socket, each answered by one line; `to` is the way to the server, `from`
 * the way back, `both` both:
 *
 *   cut                   reset every connection now (`fin`: close them)
 *   down MS               reset all, and every new one, for MS milliseconds
 *   hole MS               a black hole: nothing is forwarded for MS, nothing is closed
 *   stall to|from|both MS the same for one direction
 *   delay MS              every piece waits that long from now on
 *   slow N                N bytes a second in each direction of each connection; 0 ends it
 *   limit to|from N fin|rst|stall
 *                         connections made from now on break after N bytes that way
 *   schedule SEED MS N    N faults from a seeded list, each up to MS after the last one
 *                         and none lasting longer; then all is well again
 *   heal                  end of all of that
 *   stat                  "conns N bytes N total N cuts N schedule N"
 *   quit
 *
 * Servers on loopback take requests only under their own address, so a plain Host line
 * that names the proxy is made to name the target. */
#ifndef CCT_TESTS_FAULTD_PROXY_H
#define CCT_TESTS_FAULTD_PROXY_H

#include "exchange.h"
#include <netinet/in.h>

enum { TO, FROM };

struct piece {
    int64_t due;
    struct buf data;
};
/* One direction of a connection: from end[d] to end[1 - d]. */
struct lane {
    struct link *link;
    ARR(struct piece) q;
    size_t held;
    int64_t passed, limit;
    enum ending how;
    bool eof, shut, stopped, full;
    struct timer next; /* when more may go */
};
struct end {
    struct watch w;
    struct link *link;
};
struct link {
    struct lane lane[2];
    struct end end[2];
    bool dead, by_fin;
};
struct proxy {
    struct sockaddr_in to;
    ARR(struct link *) links;
    struct watch listener, control;
    int64_t down_until, blocked_until[2], delay_ms, rate;
    int64_t limit[2];
    enum ending how[2];
    uint64_t bytes, total, cuts;
    char host[32], to_host[32]; /* Host lines: as they come, as they go; same length */
    struct timer heal;          /* the end of a hole */
    /* the schedule */
    struct timer step;
    uint64_t seed;
    int64_t step_ms, steps;
};

/* proxy.c */
void proxy_cut(struct proxy *p, bool fin);
void proxy_block(struct proxy *p, int lane, int64_t ms);
/* proxy_control.c */
void control_open(struct proxy *p, const char *where);

#endif
