/* Files of a sandbox: ranged reads, whole writes, moves. A
 * server may ignore the range, so what comes is cut to what was asked here. */
#include "envd_priv.h"
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REFUSAL_MAX = 64 << 10,
       BULK_FROM = 128 << 10, BULK_MAX = 1 << 20, /* memory is had for it at once */
       WRITE_SLOW = 50 /* bytes a millisecond that an upload must reach */ };

struct reading {
    struct op op;
    uint64_t from, max; /* as asked; max 0 = all */
    uint64_t skip, left, total;
    int http;
    bool full;          /* all that was asked came: the rest is not wanted */
    struct buf got, refusal;
    struct err err;
    envd_fn fn;
    void *ctx;
};

static void reading_free(struct op *op)
{
    struct reading *r = (struct reading *)op;

    buf_release(&r->got);
    buf_release(&r->refusal);
    free(r);
}

/* Start, end and total, or a star and the total; false when it is neither. */
static bool parse_range(const char *v, uint64_t *start, uint64_t *end, bool *has_start,
                        uint64_t *total)
{
    uint64_t a, b, t;
    int n = 0;

    *has_start = false;
    if (v && sscanf(v, "bytes %" SCNu64 "-%" SCNu64 "/%" SCNu64 "%n", &a, &b, &t, &n) == 3) {
        *has_start = true;
        *start = a;
        *end = b;
        *total = t;
        return b >= a && t > b;
    }
    if (v && sscanf(v, "bytes %" SCNu64 "-%" SCNu64 "/*", &a, &b) == 2) {
        *has_start = true;
        *start = a;
        *end = b;
        return b >= a;
    }
    return v && sscanf(v, "bytes */%" SCNu64, total) == 1;
}

static void on_head(void *ctx, int status)
{
    struct reading *r = ctx;
    struct net *n = r->op.envd->net;
    const char *range = net_answer_header(n, r->op.request, "Content-Range");
    const char *length = net_answer_header(n, r->op.request, "Content-Length");
    uint64_t start = r->from, end = 0;
    bool has_start = false;
    int64_t len;

    r->op.answered = true;
    r->http = status;
    if (status == 206 || status == 416) {
        if (!parse_range(range, &start, &end, &has_start, &r->total) && range)
            r->total = 0;
        if (status == 206 && r->max && r->max <= BULK_MAX && has_start && end >= r->from)
            buf_reserve(&r->got, (size_t)(end - r->from < r->max ? end - r->from + 1 : r->max));
        if (status == 206 && has_start && start < r->from && end >= r->from)
            r->skip = r->from - start; /* more than was asked for, but all of that */
        else if (status == 206 && (!has_start || start != r->from))
            err_set(&r->err, ERR_PROTO, "cannot read a file of the sandbox: asked from byte %"
                    PRIu64 ", the answer is another part", r->from);
    } else if (status == 200) {
        r->skip = r->from;
        if (length && str_to_i64(length, 0, INT64_MAX, &len))
            r->total = (uint64_t)len;
    }
}

/* Cut to what was asked; false ends the transfer. An answer that is no more than that ends by
 * itself, and its connection serves the next one. */
static bool on_body(void *ctx, const char *data, size_t len)
{
    struct reading *r = ctx;
    bool more = true;

    if (r->err.code)
        return false;
    if (r->http != 200 && r->http != 206) {
        buf_add(&r->refusal, data, len);
        return true;
    }
    if (r->skip >= len) {
        r->skip -= len;
        return true;
    }
    data += r->skip;
    len -= (size_t)r->skip;
    r->skip = 0;
    if (r->max && len >= r->left) {
        more = len == r->left && r->http == 206;
        len = (size_t)r->left;
        r->full = true;
    }
    r->left -= r->max ? len : 0;
    if (buf_add(&r->got, data, len)) {
        err_set(&r->err, ERR_LIMIT, "cannot read a file of the sandbox: longer than %zu bytes",
                r->got.max);
        return false;
    }
    return more;
}

static void on_done(void *ctx, const struct net_result *n)
{
    struct reading *r = ctx;
    struct envd_result res = {.err = r->err, .status = n->status, .total = r->total};

    op_leave(&r->op);
    if (res.err.code || r->full || n->status == 416) {
        /* said already, complete, or nothing there yet */
    } else if (n->status && n->status != 200 && n->status != 206) {
        envd_refusal(&res.err, "read a file of the sandbox", n->status, r->refusal.p,
                     r->refusal.len);
    } else if (n->err.code) {
        res.err = n->err;
        err_wrap(&res.err, "cannot read a file of the sandbox");
    }
    res.body = buf_str(&r->got);
    res.len = r->got.len;
    if (r->fn)
        r->fn(r->ctx, &res);
    reading_free(&r->op);
}

static char *file_path(const char *path)
{
    struct buf b = BUF_INIT;

    buf_adds(&b, "/files?path=");
    buf_add_urlenc(&b, path, strlen(path));
    return buf_detach(&b, NULL);
}

uint64_t envd_read(struct envd *c, const char *path, uint64_t from, uint64_t max, envd_fn fn,
                   void *ctx)
{
    char *where = file_path(path), range[64];
    struct net_req *q = envd_request(c, "GET", where);
    struct reading *r = xcalloc(1, sizeof(*r));

    free(where);
    r->from = from;
    r->max = max;
    r->fn = fn;
    r->ctx = ctx;
    op_start(c, &r->op, reading_free);
    r->left = r->max;
    buf_init(&r->got, r->max && r->max < LIM_HTTP_BODY ? (size_t)r->max : LIM_HTTP_BODY);
    buf_init(&r->refusal, REFUSAL_MAX);
    if (r->max) {
        snprintf(range, sizeof(range), "bytes=%" PRIu64 "-%" PRIu64, r->from, r->from + r->max - 1);
        net_req_header(q, "Range", range);
    } else if (r->from) {
        snprintf(range, sizeof(range), "bytes=%" PRIu64 "-", r->from);
        net_req_header(q, "Range", range);
    }
    q->idle_ms = c->keepalive_s * 3000;
    q->total_ms = c->keepalive_s * 4000;
    q->bulk = !r->max || r->max >= BULK_FROM;
    q->on_head = on_head;
    q->on_body = on_body;
    q->on_done = on_done;
    q->ctx = r;
    r->op.request = net_submit(c->net, q);
    return r->op.id;
}

struct writing {
    struct op op;
    size_t (*read_body)(void *ctx, char *dst, size_t room);
    envd_fn fn;
    void *ctx;
};

static void writing_free(struct op *op)
{
    free(op);
}

static void on_written(void *ctx, const struct net_result *n)
{
    struct writing *w = ctx;
    struct envd_result r = {.err = n->err, .status = n->status, .body = n->body, .len = n->len};

    op_leave(&w->op);
    if (n->err.code)
        err_wrap(&r.err, "cannot write a file in the sandbox");
    else if (n->status < 200 || n->status > 299)
        envd_refusal(&r.err, "write a file in the sandbox", n->status, n->body, n->len);
    if (w->fn)
        w->fn(w->ctx, &r);
    free(w);
}

/* The same bytes to the same path: may go out twice. */
uint64_t envd_write(struct envd *c, const char *path, const void *data, size_t len, envd_fn fn,
                    void *ctx)
{
    char *where = file_path(path);
    struct net_req *q = envd_request(c, "POST", where);
    struct writing *w = xcalloc(1, sizeof(*w));

    free(where);
    w->fn = fn;
    w->ctx = ctx;
    op_start(c, &w->op, writing_free);
    net_req_header(q, "Content-Type", "application/octet-stream");
    buf_reserve(&q->body, len);
    buf_add(&q->body, data, len);
    q->repeatable = true;
    q->total_ms = c->keepalive_s * 4000 + (int)(len / WRITE_SLOW % (INT32_MAX / 2));
    q->on_done = on_written;
    q->ctx = w;
    w->op.request = net_submit(c->net, q);
    return w->op.id;
}

static size_t next_piece(void *ctx, char *dst, size_t room)
{
    struct writing *w = ctx;

    return w->read_body(w->ctx, dst, room);
}

uint64_t envd_upload(struct envd *c, const char *path, uint64_t len,
                     size_t (*read_body)(void *ctx, char *dst, size_t room), envd_fn fn, void *ctx)
{
    char *where = file_path(path);
    struct net_req *q = envd_request(c, "POST", where);
    struct writing *w = xcalloc(1, sizeof(*w));

    free(where);
    *w = (struct writing){.read_body = read_body, .fn = fn, .ctx = ctx};
    op_start(c, &w->op, writing_free);
    w->op.answered = true; /* bytes go out for as long as it takes: it is no silent call */
    net_req_header(q, "Content-Type", "application/octet-stream");
    q->read_body = next_piece;
    q->body_len = len;
    q->idle_ms = c->keepalive_s * 4000;
    q->on_done = on_written;
    q->ctx = w;
    w->op.request = net_submit(c->net, q);
    return w->op.id;
}

static uint64_t about_path(struct envd *c, const char *call, const char *path, const char *rest,
                           bool repeatable, const char *what, envd_fn fn, void *ctx)
{
    struct buf b = BUF_INIT;

    buf_adds(&b, "{\"path\":");
    buf_add_json(&b, path, strlen(path));
    buf_adds(&b, rest);
    return envd_unary(c, call, &b, repeatable, what, fn, ctx);
}

uint64_t envd_stat(struct envd *c, const char *path, envd_fn fn, void *ctx)
{
    return about_path(c, "/filesystem.Filesystem/Stat", path, "}", true,
                      "look at a file of the sandbox", fn, ctx);
}

uint64_t envd_list_dir(struct envd *c, const char *path, envd_fn fn, void *ctx)
{
    return about_path(c, "/filesystem.Filesystem/ListDir", path, ",\"depth\":1}", true,
                      "list a folder of the sandbox", fn, ctx);
}

uint64_t envd_make_dir(struct envd *c, const char *path, envd_fn fn, void *ctx)
{
    return about_path(c, "/filesystem.Filesystem/MakeDir", path, "}", false,
                      "make a folder in the sandbox", fn, ctx);
}

uint64_t envd_remove(struct envd *c, const char *path, envd_fn fn, void *ctx)
{
    return about_path(c, "/filesystem.Filesystem/Remove", path, "}", true,
                      "delete a file of the sandbox", fn, ctx);
}

/* Not repeatable: the second of two would not find the source. */
uint64_t envd_move(struct envd *c, const char *from, const char *to, envd_fn fn, void *ctx)
{
    struct buf b = BUF_INIT;

    buf_adds(&b, "{\"source\":");
    buf_add_json(&b, from, strlen(from));
    buf_adds(&b, ",\"destination\":");
    buf_add_json(&b, to, strlen(to));
    buf_addc(&b, '}');
    return envd_unary(c, "/filesystem.Filesystem/Move", &b, false, "move a file in the sandbox", fn,
                      ctx);
}
