/* A running net thread for tests: run functions on it, wait for what they report. */
#ifndef CCT_TESTS_NETBED_H
#define CCT_TESTS_NETBED_H

#include <cct/net.h>

struct netbed {
    struct net *net;
    struct netbed_priv *priv;
};
struct netbed *bed_new(const struct net_opts *o); /* NULL: defaults */
void bed_free(struct netbed *b);
/* Run fn(ctx) on the net thread and return when it returned. */
void bed_run(struct netbed *b, void (*fn)(void *ctx), void *ctx);
/* From the net thread: one more thing happened. */
void bed_tick(struct netbed *b);
/* Wait until `n` things happened since the last bed_reset; false after ms. */
bool bed_wait(struct netbed *b, int n, int ms);
void bed_reset(struct netbed *b);
/* One request to its end (60 s at most), as its caller would see it. */
struct bed_answer {
    struct err err;
    int status;
    bool sent;
    int64_t elapsed_ms;
    char body[512];
};
struct bed_answer bed_fetch(struct netbed *b, struct net_req *take);
struct bed_answer bed_get(struct netbed *b, const char *url);

#endif
