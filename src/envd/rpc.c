/* Requests to one sandbox: common headers, unary calls, and what refusals mean. */
#include "envd_priv.h"
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

enum { KEEPALIVE_S = 15 };

struct envd *envd_new(struct net *n, const struct envd_target *t)
{
    struct envd *c = xcalloc(1, sizeof(*c));

    c->net = n;
    c->base_url = xstrdup(t->base_url);
    c->sandbox_id = xstrdup(t->sandbox_id);
    c->token = secret_dup(t->token);
    c->ops = map_new();
    c->keepalive_s = t->keepalive_s > 0 ? t->keepalive_s : KEEPALIVE_S;
    return c;
}

static void op_drop(struct op *op)
{
    net_cancel(op->envd->net, op->request);
    op->free_fn(op);
}

static void client_free(struct envd *c)
{
    map_free(c->ops, NULL);
    free(c->base_url);
    free(c->sandbox_id);
    secret_free(c->token);
    free(c);
}

/* Dropping one may drop another with it: begin again each time. */
void envd_free(struct envd *c)
{
    struct op *op;
    size_t it = 0;

    if (!c)
        return;
    while ((op = map_next(c->ops, &it, NULL, NULL))) {
        envd_cancel(c, op->id);
        it = 0;
    }
    watch_stop(c);
    c->gone = true;
    if (!c->holds)
        client_free(c);
}

void envd_hold(struct envd *c)
{
    c->holds++;
}

void envd_let_go(struct envd *c)
{
    if (--c->holds == 0 && c->gone)
        client_free(c);
}

void envd_cancel(struct envd *c, uint64_t id)
{
    struct op *op = map_del_id(c->ops, id);

    if (op)
        op_drop(op);
}

void envd_close(struct envd *c, uint64_t stream)
{
    envd_cancel(c, stream);
}

void envd_pause(struct envd *c, uint64_t stream, bool pause)
{
    struct op *op = map_get_id(c->ops, stream);

    if (op)
        net_pause(c->net, op->request, pause);
}

void op_start(struct envd *c, struct op *op, void (*free_fn)(struct op *))
{
    op->envd = c;
    op->id = ++c->next_id;
    op->free_fn = free_fn;
    op->since = clock_mono_ms();
    map_put_id(c->ops, op->id, op);
    watch_start(c);
}

void op_leave(struct op *op)
{
    map_del_id(op->envd->ops, op->id);
}

struct net_req *envd_request(struct envd *c, const char *method, const char *path)
{
    struct net_req *q = net_req_new(method, xasprintf("%s%s", c->base_url, path));

    net_req_header(q, "E2b-Sandbox-Id", c->sandbox_id);
    net_req_header(q, "E2b-Sandbox-Port", "49983");
    if (c->token)
        net_req_secret(q, "X-Access-Token", c->token);
    return q;
}

int envd_code(const char *name)
{
    static const struct {
        const char *name;
        int code;
    } known[] = {
        {"not_found", ERR_NOTFOUND},         {"already_exists", ERR_CONFLICT},
        {"aborted", ERR_CONFLICT},           {"failed_precondition", ERR_CONFLICT},
        {"invalid_argument", ERR_INVALID},   {"out_of_range", ERR_INVALID},
        {"unauthenticated", ERR_AUTH},       {"permission_denied", ERR_PERM},
        {"resource_exhausted", ERR_LIMIT},   {"deadline_exceeded", ERR_TIMEOUT},
        {"unimplemented", ERR_UNSUPPORTED},  {"canceled", ERR_NETWORK},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (str_eq(name, known[i].name))
            return known[i].code;
    return ERR_SERVER; /* internal, unknown, unavailable, data_loss and new ones */
}

static int status_code(int status)
{
    switch (status) {
    case 400:
    case 406:
        return ERR_INVALID;
    case 401:
    case 403:
        return ERR_AUTH;
    case 404:
        return ERR_NOTFOUND;
    case 409:
        return ERR_CONFLICT;
    case 429:
        return ERR_BUSY;
    case 501:
        return ERR_UNSUPPORTED;
    case 502:
        return ERR_NETWORK;
    case 504:
        return ERR_TIMEOUT;
    case 507:
        return ERR_FULL;
    default:
        return status >= 500 ? ERR_SERVER : ERR_PROTO;
    }
}

/* A token or a file: both are refused with 403. envd repeats the words of the system. */
static int perm_or_token(int code, int status, const char *message)
{
    if (code != ERR_PERM && !(code == ERR_AUTH && status == 403))
        return code;
    return strstr(message, "ermission denied") || strstr(message, "not permitted") ||
                   strstr(message, "ead-only file system")
               ? ERR_PERM
               : ERR_AUTH;
}

static const char *advice(int code, int status)
{
    if (status == 502)
        return "the sandbox is not reachable: paused, ended, or on its way; refresh the list";
    switch (code) {
    case ERR_AUTH:
        return "the sandbox refused its token; refresh the list";
    case ERR_PERM:
        return "its user may not do that; a process of root in the sandbox may";
    case ERR_FULL:
        return "the disk of the sandbox is full; delete files in it";
    case ERR_BUSY:
    case ERR_LIMIT:
        return "too many requests; try again later";
    case ERR_NOTFOUND:
        return "it is not there";
    case ERR_TIMEOUT:
        return "it took too long";
    default:
        return "the sandbox refused it";
    }
}

static void plain_words(char *dst, size_t size, const char *s)
{
    size_t n = 0;

    for (; s && *s && n + 1 < size; s++)
        dst[n++] = (unsigned char)*s < ' ' || *s == 0x7f ? ' ' : *s;
    if (s && *s) /* cut: not inside a character */
        while (n > 0 && (unsigned char)dst[n - 1] >= 0x80)
            n--;
    dst[n] = '\0';
}

/* A Connect error has a string as code, the proxy and the token check an integer. */
void envd_refusal(struct err *e, const char *what, int status, const char *body, size_t len)
{
    struct cJSON *j = len ? json_parse(body, len, NULL) : NULL;
    const char *name = json_str(j, "code", NULL);
    int code = name && status != 502 ? envd_code(name) : status_code(status);
    char words[160], id[16] = "";

    plain_words(words, sizeof(words), json_str(j, "message", ""));
    code = perm_or_token(code, status, words);
    plain_words(id, sizeof(id), name);
    err_set(e, code, "cannot %s: %s (%d%s%s%s%s)", what, advice(code, status), status,
            id[0] ? " " : "", id, words[0] ? ": " : "", words);
    e->sys = status;
    json_free(j);
}

struct unary {
    struct op op;
    const char *what;
    envd_fn fn;
    void *ctx;
};

static void unary_free(struct op *op)
{
    free(op);
}

static void unary_done(void *ctx, const struct net_result *n)
{
    struct unary *u = ctx;
    struct envd_result r = {.err = n->err, .status = n->status, .body = n->body, .len = n->len,
                            .sent = n->sent};

    op_leave(&u->op);
    if (n->err.code)
        err_wrap(&r.err, "cannot %s", u->what);
    else if (n->status < 200 || n->status > 299)
        envd_refusal(&r.err, u->what, n->status, n->body, n->len);
    if (u->fn)
        u->fn(u->ctx, &r);
    free(u);
}

static uint64_t submit(struct envd *c, struct net_req *q, const char *what, envd_fn fn, void *ctx)
{
    struct unary *u = xcalloc(1, sizeof(*u));

    *u = (struct unary){.what = what, .fn = fn, .ctx = ctx};
    op_start(c, &u->op, unary_free);
    if (!q->total_ms)
        q->total_ms = c->keepalive_s * 4000;
    q->on_done = unary_done;
    q->ctx = u;
    u->op.request = net_submit(c->net, q);
    return u->op.id;
}

uint64_t envd_unary(struct envd *c, const char *path, struct buf *take_body, bool repeatable,
                    const char *what, envd_fn fn, void *ctx)
{
    struct net_req *q = envd_request(c, "POST", path);

    net_req_header(q, "Connect-Protocol-Version", "1");
    net_req_header(q, "Content-Type", "application/json");
    q->body = *take_body;
    buf_init(take_body, 0);
    q->repeatable = repeatable;
    return submit(c, q, what, fn, ctx);
}

uint64_t envd_health(struct envd *c, envd_fn fn, void *ctx)
{
    struct net_req *q = envd_request(c, "GET", "/health");

    q->total_ms = c->keepalive_s * 500; /* the question is whether it is there at all */
    return submit(c, q, "reach the sandbox", fn, ctx);
}
