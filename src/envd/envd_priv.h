/* The data-plane client's insides, shared by the files of src/envd. */
#ifndef CCT_ENVD_PRIV_H
#define CCT_ENVD_PRIV_H

#include <cct/envd.h>
#include <cct/util/json.h>
#include <cct/util/map.h>

struct op;
struct envd {
    struct net *net;
    char *base_url, *sandbox_id;
    struct secret *token;
    struct map *ops; /* id -> struct op: every request that runs */
    uint64_t next_id;
    int keepalive_s;
    uint64_t watch_timer, fresh, beside[2]; /* watch.c: its questions; [1] for streams */
    int holds;         /* callbacks under way that look at it afterwards */
    bool gone;         /* freed by its owner, the last hold ends it */
};

/* First member of everything that runs: how to end it without a callback. */
struct op {
    struct envd *envd;
    uint64_t id;
    uint64_t request;             /* of net */
    int64_t since;                /* mono ms */
    bool stream, answered;        /* among the streams; its answer has begun */
    void (*free_fn)(struct op *); /* frees it; the request is cancelled before */
};

/* rpc.c */
void op_start(struct envd *c, struct op *op, void (*free_fn)(struct op *));
/* Off the table, so that a callback may end anything; the caller frees it. */
void op_leave(struct op *op);
void envd_hold(struct envd *c);
void envd_let_go(struct envd *c);
/* watch.c: an operation began; the client goes. */
void watch_start(struct envd *c);
void watch_stop(struct envd *c);
/* A request to this sandbox with the headers that all have. */
struct net_req *envd_request(struct envd *c, const char *method, const char *path);
/* What a refusal means: `what` was being done. Body of the answer may be anything. */
void envd_refusal(struct err *e, const char *what, int status, const char *body, size_t len);
/* A Connect error code by name. */
int envd_code(const char *name);
/* One unary call; takes the JSON in `body`. `what` is static text for errors. */
uint64_t envd_unary(struct envd *c, const char *path, struct buf *take_body, bool repeatable,
                    const char *what, envd_fn fn, void *ctx);

#endif
