/* Requests to a scripted server on loopback, and all that was heard of them. */
#ifndef CCT_TESTS_LIB_NETPROBE_H
#define CCT_TESTS_LIB_NETPROBE_H

#include "miniserver.h"
#include "netbed.h"

#include <cct/util/buf.h>

#define NETPROBE_SLOW 20000 /* a deadline that is only reached by a failure */

struct netprobe {
    struct mini *srv;
    struct netbed *bed;
    int flaky;        /* that path drops the first request */
    struct buf heard; /* last request: head and body */
};
extern struct netprobe netprobe; /* of the program */

struct probe {
    const char *path, *method, *body;
    struct net_req *req;   /* or made from the above */
    int idle_ms, total_ms;
    bool urgent, repeatable, stream, cancel_on_data, take_pieces;
    size_t max_body;
    const struct secret *secret;
    uint64_t id;
    /* results */
    struct net_result r;
    char body_copy[256], next[64];
    int head, pieces, done;
    size_t bytes;
};

/* Before all tests and after them. */
void netprobe_begin(void);
void netprobe_end(void);
/* Paths say what the server does. */
void netprobe_handler(void *ctx, struct mini_conn *c, const struct mini_req *r);
void netprobe_submit(void *probe); /* on the net thread */
/* The end of a request whose ctx is a struct probe, or begins with one. */
void netprobe_done(void *ctx, const struct net_result *r);
void netprobe_fetch(struct probe *p); /* to its end; fails the test when there is none */

#endif
