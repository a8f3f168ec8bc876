/* Connect's framing, answering side: unary JSON, and streams of envelopes with the
 * faults that concern single events. */
#include "data.h"
#include <arpa/inet.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD = 5, END_OF_STREAM = 0x02 };

static const struct {
    const char *code;
    int status;
} codes[] = {
    {"invalid_argument", 400},    {"not_found", 404},       {"already_exists", 409},
    {"permission_denied", 403},   {"unauthenticated", 401}, {"resource_exhausted", 429},
    {"unimplemented", 501},       {"unavailable", 503},     {"deadline_exceeded", 504},
    {"failed_precondition", 400},
};

struct cJSON *rpc_message(const struct exchange *x, bool stream)
{
    const char *p = x->req.body;
    size_t len = x->req.len;
    uint32_t n;

    if (!stream)
        return json_parse(p, len, NULL);
    if (len < HEAD || p[0] != 0)
        return NULL;
    memcpy(&n, p + 1, sizeof(n));
    n = ntohl(n);
    return len >= HEAD + (size_t)n ? json_parse(p + HEAD, n, NULL) : NULL;
}

void rpc_answer(struct exchange *x, const char *json)
{
    x->a.status = 200;
    buf_adds(&x->a.body, json);
}

static void put_error(struct buf *b, const char *code, const char *message)
{
    struct jw w;

    jw_init(&w, b);
    jw_obj(&w, NULL);
    jw_str(&w, "code", code);
    jw_str(&w, "message", message);
    jw_end(&w);
}

void rpc_error(struct exchange *x, const char *code, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    x->a.status = 500;
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (str_eq(codes[i].code, code))
            x->a.status = codes[i].status;
    put_error(&x->a.body, code, text);
}

void rpc_open(struct exchange *x)
{
    x->stream = true;
    x->a.status = 200;
    buf_adds(&x->a.head, "Content-Type: application/connect+json\r\n");
}

static bool put(struct exchange *x, int flags, const char *p, size_t len)
{
    char head[HEAD] = {(char)flags};
    uint32_t n = htonl((uint32_t)len);

    memcpy(head + 1, &n, sizeof(n));
    exchange_add(x, head, HEAD);
    return exchange_add(x, p, len);
}

/* ---- events that come out of order, or twice ---- */

static void keep(struct exchange *x, const char *json, size_t len)
{
    struct buf *b = ARR_PUSH(&x->kept);

    buf_add(b, json, len);
}

static void forget(struct exchange *x)
{
    for (size_t i = 0; i < x->kept.n; i++)
        buf_release(&x->kept.v[i]);
    ARR_CLEAR(&x->kept);
}

/* What was held back goes out, the newest first. */
static bool release_backwards(struct exchange *x)
{
    bool room = true;

    for (size_t i = x->kept.n; i-- > 0;)
        room = put(x, 0, x->kept.v[i].p, x->kept.v[i].len);
    forget(x);
    return room;
}

/* The newest events once more, when enough of them went out. */
static bool replay(struct exchange *x, const char *json, size_t len, int64_t n)
{
    bool room = true;

    if (n > x->fault.after - x->fault.replay)
        keep(x, json, len);
    if (n < x->fault.after)
        return true;
    for (size_t i = 0; i < x->kept.n; i++)
        room = put(x, 0, x->kept.v[i].p, x->kept.v[i].len);
    forget(x);
    return room;
}

bool rpc_send(struct exchange *x, const char *json, size_t len)
{
    struct fault *f = &x->fault;
    int64_t n = x->events++; /* the first is `start` */
    bool room = true;

    if (x->ended)
        return true;
    if (f->reorder > 1 && n > f->after) {
        keep(x, json, len);
        return (int64_t)x->kept.n < f->reorder || release_backwards(x);
    }
    room = put(x, 0, json, len);
    if (f->replay > 0 && n > 0 && n <= f->after)
        room &= replay(x, json, len, n);
    if (f->trailer && n == f->after)
        rpc_close(x, f->trailer, "scripted");
    return room;
}

void rpc_keepalive(struct exchange *x)
{
    static const char event[] = "{\"event\":{\"keepalive\":{}}}";

    put(x, 0, event, sizeof(event) - 1);
}

void rpc_close(struct exchange *x, const char *code, const char *message)
{
    struct buf b = BUF_INIT;

    if (x->ended)
        return;
    if (x->fault.reorder > 1)
        release_backwards(x);
    if (code) {
        buf_adds(&b, "{\"error\":");
        put_error(&b, code, message);
        buf_addc(&b, '}');
    } else {
        buf_adds(&b, "{}");
    }
    put(x, END_OF_STREAM, b.p, b.len);
    exchange_end(x);
    buf_release(&b);
}

void rpc_refuse(struct exchange *x, const char *code, const char *message)
{
    rpc_open(x);
    rpc_close(x, code, message);
}
