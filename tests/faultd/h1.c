/* HTTP/1.1: one request at a time on each connection; what follows waits. Answers of
 * known length carry it, streams are chunked. */
#include "conn.h"
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD_MAX = 64 << 10 };

struct h1 {
    struct exchange *x; /* the one being answered */
    /* The request that comes in: head, then body. */
    char *head; /* NULL until it is whole */
    struct buf body;
    int64_t body_left; /* of Content-Length, or of the chunk; -1: a size line is next */
    bool chunked, last_chunk;
    /* The answer that goes out. */
    struct buf wire; /* rendered, not yet let go */
    int64_t sent;    /* bytes of this answer that were let go */
    bool head_sent, all_rendered, close_after, cut_now;
};

static void wake(struct exchange *x)
{
    conn_flush(x->wire);
}

static const struct carrier carrier = {wake};

static void h1_open(struct conn *c)
{
    struct h1 *s = c->session = xcalloc(1, sizeof(*s));

    s->body_left = -1;
}

static void h1_close(struct conn *c)
{
    struct h1 *s = c->session;

    exchange_free(s->x);
    free(s->head);
    buf_release(&s->body);
    buf_release(&s->wire);
    free(s);
}

/* ---- requests ---- */

/* Take the head when it is whole. */
static bool take_head(struct conn *c, struct h1 *s)
{
    char *end = c->in.len ? memmem(c->in.p, c->in.len, "\r\n\r\n", 4) : NULL;
    char text[64];
    int64_t n = 0;

    if (!end) {
        c->dead = c->in.len > HEAD_MAX;
        return false;
    }
    s->head = xstrndup(c->in.p, (size_t)(end - c->in.p) + 2);
    buf_consume(&c->in, (size_t)(end - c->in.p) + 4);
    s->chunked = header_value(s->head, "Transfer-Encoding", text, sizeof(text));
    s->last_chunk = false;
    if (!s->chunked && header_value(s->head, "Content-Length", text, sizeof(text)) &&
        !str_to_i64(text, 0, CONN_IN_MAX, &n))
        c->dead = true;
    s->body_left = s->chunked ? -1 : n;
    if (header_value(s->head, "Expect", text, sizeof(text)))
        buf_adds(&c->out, "HTTP/1.1 100 Continue\r\n\r\n");
    return !c->dead;
}

/* One step through a chunked body; false when more bytes are needed. */
static bool take_chunk(struct conn *c, struct h1 *s)
{
    char *eol;

    if (s->body_left < 0) {
        eol = c->in.len ? memmem(c->in.p, c->in.len, "\r\n", 2) : NULL;
        if (!eol)
            return false;
        char *stop;
        unsigned long n = strtoul(buf_str(&c->in), &stop, 16);
        if (stop == c->in.p || n > CONN_IN_MAX) {
            c->dead = true;
            return false;
        }
        s->body_left = (int64_t)n;
        s->last_chunk = n == 0;
        buf_consume(&c->in, (size_t)(eol - c->in.p) + 2);
    }
    if ((int64_t)c->in.len < s->body_left + 2)
        return false;
    buf_add(&s->body, c->in.p, (size_t)s->body_left);
    buf_consume(&c->in, (size_t)s->body_left + 2);
    s->body_left = -1;
    return true;
}

static bool take_body(struct conn *c, struct h1 *s)
{
    if (s->chunked) {
        while (!s->last_chunk || s->body_left >= 0)
            if (!take_chunk(c, s))
                return false;
        return true;
    }
    if ((int64_t)c->in.len < s->body_left)
        return false;
    buf_add(&s->body, c->in.len ? c->in.p : "", (size_t)s->body_left);
    buf_consume(&c->in, (size_t)s->body_left);
    return true;
}

/* "GET /path HTTP/1.1" in front of the header lines. */
static bool make_exchange(struct conn *c, struct h1 *s)
{
    char *eol = strstr(s->head, "\r\n"), *target, *version, text[64];

    *eol = '\0';
    target = strchr(s->head, ' ');
    version = target ? strchr(target + 1, ' ') : NULL;
    if (!version)
        return false;
    *target++ = '\0';
    *version++ = '\0';
    s->x = exchange_new(c->plane, &carrier, c);
    exchange_request(s->x, s->head, target, eol + 2, buf_str(&s->body), s->body.len);
    s->x->conn_no = c->no;
    s->x->plain = c->plain;
    s->close_after = str_eq(version, "HTTP/1.0") ||
                     (header_value(s->x->req.head, "Connection", text, sizeof(text)) &&
                      str_eq_nocase(text, "close"));
    return true;
}

static void h1_feed(struct conn *c)
{
    struct h1 *s = c->session;

    while (!s->x && !c->dead) {
        if (!s->head && !take_head(c, s))
            return;
        if (!take_body(c, s))
            return;
        c->dead = !make_exchange(c, s);
        free(s->head);
        s->head = NULL;
        buf_clear(&s->body);
        s->sent = 0;
        s->head_sent = s->all_rendered = s->cut_now = false;
        if (s->x)
            script_begin(s->x);
    }
}

/* ---- answers ---- */

static void render_head(struct h1 *s)
{
    struct exchange *x = s->x;
    bool empty = x->a.status == 204 || x->a.status == 304;
    char text[16];

    buf_addf(&s->wire, "HTTP/1.1 %d Scripted\r\n", x->a.status);
    if (!empty && !header_value(buf_str(&x->a.head), "Content-Type", text, sizeof(text)))
        buf_adds(&s->wire, "Content-Type: application/json\r\n");
    if (!empty && x->stream)
        buf_adds(&s->wire, "Transfer-Encoding: chunked\r\n");
    else if (!empty)
        buf_addf(&s->wire, "Content-Length: %zu\r\n", x->out.len);
    if (x->fault.goaway)
        buf_adds(&s->wire, "Connection: close\r\n");
    buf_add(&s->wire, buf_str(&x->a.head), x->a.head.len);
    buf_adds(&s->wire, "\r\n");
    s->close_after |= x->fault.goaway || x->fault.cut >= 0;
    s->head_sent = true;
    s->all_rendered = empty;
}

static void render_body(struct h1 *s)
{
    static char room[32 << 10];
    size_t n;
    enum pull got = exchange_pull(s->x, room, sizeof(room), &n);

    if (n && s->x->stream)
        buf_addf(&s->wire, "%zx\r\n", n);
    buf_add(&s->wire, room, n);
    if (n && s->x->stream)
        buf_adds(&s->wire, "\r\n");
    if (got == PULL_END && s->x->stream)
        buf_adds(&s->wire, "0\r\n\r\n");
    s->cut_now = got == PULL_CUT;
    s->all_rendered = got == PULL_END || got == PULL_CUT;
}

/* The answer breaks off here. */
static void cut(struct conn *c, struct exchange *x)
{
    switch (x->fault.how) {
    case END_SILENCE:
        c->silent = x->fault.stall_all;
        break; /* the connection stays, nothing more is said on it */
    case END_RST:
        c->rst = true;
        c->close_when_sent = true;
        break;
    case END_STREAM:
    case END_FIN:
        c->close_when_sent = true;
        break;
    }
}

/* Bytes of the whole answer that may still go. */
static int64_t allowance(const struct h1 *s)
{
    return s->x->fault.cut < 0 ? INT64_MAX : s->x->fault.cut - s->sent;
}

static void let_go(struct conn *c, struct h1 *s)
{
    size_t n = s->wire.len;

    if ((int64_t)n > allowance(s))
        n = (size_t)allowance(s);
    buf_add(&c->out, s->wire.len ? s->wire.p : "", n);
    buf_consume(&s->wire, n);
    s->sent += (int64_t)n;
}

static void finish(struct conn *c, struct h1 *s)
{
    exchange_free(s->x);
    s->x = NULL;
    if (s->close_after)
        c->close_when_sent = true;
    else
        h1_feed(c); /* a request that waited behind this one */
}

static void h1_fill(struct conn *c)
{
    struct h1 *s = c->session;

    while (s->x && s->x->ready && !c->close_when_sent && c->out.len < CONN_HIGH) {
        if (!s->head_sent)
            render_head(s);
        else if (!s->wire.len && !s->all_rendered)
            render_body(s);
        size_t had = s->wire.len;
        let_go(c, s);
        if (s->wire.len || s->cut_now || (allowance(s) <= 0)) {
            cut(c, s->x);
            return;
        }
        if (s->all_rendered)
            finish(c, s);
        else if (!had)
            return;
    }
}

const struct proto h1_proto = {h1_open, h1_feed, h1_fill, h1_close};
