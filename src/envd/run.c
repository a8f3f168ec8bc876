/* A short command, its output collected. */
#include "envd_priv.h"
#include <cct/util/xalloc.h>
#include <stddef.h>
#include <stdlib.h>

enum { RUN_MAX = 1 << 20 };

struct run {
    struct buf out, errout;
    void (*fn)(void *ctx, const struct envd_run_result *r);
    void *ctx;
    struct envd *envd;
    uint64_t stream;
    struct op op; /* the caller's id; its request is the stream */
    bool over;
};

static struct run *run_of(struct op *op)
{
    return (struct run *)(void *)((char *)op - offsetof(struct run, op));
}

static void run_release(struct run *r)
{
    buf_release(&r->out);
    buf_release(&r->errout);
    free(r);
}

/* Cancelled by its caller. */
static void run_free(struct op *op)
{
    struct run *r = run_of(op);

    envd_cancel(r->envd, r->stream);
    run_release(r);
}

static void finish(struct run *r, struct envd_run_result *res)
{
    op_leave(&r->op);
    res->out = buf_str(&r->out);
    res->out_len = r->out.len;
    res->errout = buf_str(&r->errout);
    res->err_len = r->errout.len;
    r->fn(r->ctx, res);
    run_release(r);
}

/* Reading goes on past the limit: a command that is not drained never ends. */
static bool on_data(void *ctx, enum envd_stream s, const char *data, size_t len)
{
    struct run *r = ctx;

    if (buf_add(s == ENVD_STDERR ? &r->errout : &r->out, data, len))
        r->over = true;
    return true;
}

static void on_end(void *ctx, const struct envd_end *end)
{
    struct run *r = ctx;
    struct envd_run_result res = {.err = end->err, .exit_code = end->exit_code};

    if (!res.err.code && r->over)
        err_set(&res.err, ERR_LIMIT, "cannot take the output of a command: longer than %d bytes",
                RUN_MAX);
    finish(r, &res);
}

uint64_t envd_run(struct envd *c, const struct envd_proc_spec *s,
                  void (*fn)(void *ctx, const struct envd_run_result *r), void *ctx)
{
    struct run *r = xcalloc(1, sizeof(*r));
    struct envd_proc_cb cb = {.on_data = on_data, .on_end = on_end, .ctx = r};

    r->envd = c;
    r->fn = fn;
    r->ctx = ctx;
    buf_init(&r->out, RUN_MAX);
    buf_init(&r->errout, RUN_MAX);
    r->stream = envd_start(c, s, &cb);
    op_start(c, &r->op, run_free);
    return r->op.id;
}
