/* HTTP/2 through libnghttp2: many exchanges at once on one connection. */
#include "conn.h"
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <ctype.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 16 << 20, HEADERS_MAX = 32, RESETS = 1000000 };

/* A request while it comes in; afterwards its exchange. */
struct stream {
    struct stream *next, **prev;
    struct conn *conn;
    char *method, *target;
    struct buf head, body;
    struct exchange *x;
    bool submitted, waits; /* waits: nghttp2 was told that data comes later */
};
struct h2 {
    nghttp2_session *ng;
    struct stream *streams;
    bool goaway_due;
};

static void stream_free(struct stream *s)
{
    if (s->next)
        s->next->prev = s->prev;
    *s->prev = s->next;
    exchange_free(s->x);
    free(s->method);
    free(s->target);
    buf_release(&s->head);
    buf_release(&s->body);
    free(s);
}

/* ---- answers ---- */

static void reset_stream(struct stream *s, uint32_t code)
{
    struct h2 *h = s->conn->session;

    nghttp2_submit_rst_stream(h->ng, NGHTTP2_FLAG_NONE, s->x->stream_id, code);
    conn_flush(s->conn);
}

/* The answer breaks off here: the stream alone, or the connection with all others. */
static void cut(struct stream *s)
{
    struct conn *c = s->conn;

    switch (s->x->fault.how) {
    case END_SILENCE:
        c->silent = s->x->fault.stall_all;
        break;
    case END_STREAM:
        reset_stream(s, s->x->fault.refuse ? NGHTTP2_REFUSED_STREAM : NGHTTP2_INTERNAL_ERROR);
        break;
    case END_RST:
        c->rst = true;
        c->close_when_sent = true;
        break;
    case END_FIN:
        c->close_when_sent = true;
        break;
    }
}

static ssize_t on_source(nghttp2_session *ng, int32_t id, uint8_t *room, size_t max,
                         uint32_t *flags, nghttp2_data_source *source, void *ctx)
{
    struct stream *s = source->ptr;
    size_t n;

    (void)ng, (void)id, (void)ctx;
    switch (exchange_pull(s->x, (char *)room, max, &n)) {
    case PULL_MORE:
        return (ssize_t)n;
    case PULL_END:
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        return 0;
    case PULL_CUT:
        cut(s);
        break;
    case PULL_WAIT:
        break;
    }
    s->waits = true;
    return NGHTTP2_ERR_DEFERRED;
}

static nghttp2_nv header(const char *name, size_t name_len, const char *value, size_t value_len)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, name_len,
                        value_len, NGHTTP2_NV_FLAG_NONE};
}

/* "Name: value" lines become pairs; names are made lower-case in place. */
static size_t split_lines(char *lines, nghttp2_nv *nv, size_t n, size_t max)
{
    for (char *at = lines, *eol; *at && n < max && (eol = strstr(at, "\r\n")); at = eol + 2) {
        char *colon = memchr(at, ':', (size_t)(eol - at)), *value;
        if (!colon)
            continue;
        for (char *p = at; p < colon; p++)
            *p = (char)tolower((unsigned char)*p);
        value = colon + 1 + strspn(colon + 1, " ");
        nv[n++] = header(at, (size_t)(colon - at), value, (size_t)(eol - value));
    }
    return n;
}

static void submit(struct stream *s)
{
    struct exchange *x = s->x;
    struct h2 *h = s->conn->session;
    nghttp2_data_provider body = {.source.ptr = s, .read_callback = on_source};
    nghttp2_nv nv[HEADERS_MAX];
    bool empty = x->a.status == 204 || x->a.status == 304;
    char status[16], length[24], type[16];
    size_t n = 0;

    snprintf(status, sizeof(status), "%d", x->a.status);
    nv[n++] = header(":status", 7, status, strlen(status));
    if (!empty && !header_value(buf_str(&x->a.head), "Content-Type", type, sizeof(type)))
        nv[n++] = header("content-type", 12, "application/json", 16);
    if (!empty && !x->stream) {
        snprintf(length, sizeof(length), "%zu", x->out.len);
        nv[n++] = header("content-length", 14, length, strlen(length));
    }
    n = split_lines(x->a.head.len ? x->a.head.p : (char[]){""}, nv, n, HEADERS_MAX);
    nghttp2_submit_response(h->ng, x->stream_id, nv, n, empty ? NULL : &body);
    s->submitted = true;
    if (x->fault.goaway)
        h->goaway_due = true;
}

static void wake(struct exchange *x)
{
    struct stream *s = x->wire;
    struct h2 *h = s->conn->session;

    if (!s->submitted && x->fault.cut_body == 0)
        cut(s); /* not even a head */
    else if (!s->submitted)
        submit(s);
    else if (s->waits) {
        s->waits = false;
        nghttp2_session_resume_data(h->ng, x->stream_id);
    }
    conn_flush(s->conn);
}

static const struct carrier carrier = {wake};

/* ---- requests ---- */

static int on_begin(nghttp2_session *ng, const nghttp2_frame *frame, void *ctx)
{
    struct conn *c = ctx;
    struct h2 *h = c->session;
    struct stream *s;

    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    s = xcalloc(1, sizeof(*s));
    s->conn = c;
    s->next = h->streams;
    s->prev = &h->streams;
    if (s->next)
        s->next->prev = &s->next;
    h->streams = s;
    buf_init(&s->body, CONN_IN_MAX);
    return nghttp2_session_set_stream_user_data(ng, frame->hd.stream_id, s);
}

static int on_header(nghttp2_session *ng, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                     void *ctx)
{
    struct stream *s = nghttp2_session_get_stream_user_data(ng, frame->hd.stream_id);
    const char *n = (const char *)name, *v = (const char *)value;

    (void)name_len, (void)flags, (void)ctx;
    if (!s)
        return 0;
    if (str_eq(n, ":method") && !s->method)
        s->method = xstrndup(v, value_len);
    else if (str_eq(n, ":path") && !s->target)
        s->target = xstrndup(v, value_len);
    else if (str_eq(n, ":authority"))
        buf_addf(&s->head, "Host: %s\r\n", v);
    else if (*n != ':')
        buf_addf(&s->head, "%s: %s\r\n", n, v);
    return 0;
}

static int on_data(nghttp2_session *ng, uint8_t flags, int32_t id, const uint8_t *data,
                   size_t len, void *ctx)
{
    struct stream *s = nghttp2_session_get_stream_user_data(ng, id);

    (void)flags, (void)ctx;
    if (s && buf_add(&s->body, data, len))
        nghttp2_submit_rst_stream(ng, NGHTTP2_FLAG_NONE, id, NGHTTP2_REFUSED_STREAM);
    return 0;
}

static int on_frame(nghttp2_session *ng, const nghttp2_frame *frame, void *ctx)
{
    struct conn *c = ctx;
    struct stream *s;

    if (frame->hd.type == NGHTTP2_GOAWAY || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM) ||
        (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA))
        return 0;
    s = nghttp2_session_get_stream_user_data(ng, frame->hd.stream_id);
    if (!s || s->x || !s->method || !s->target)
        return 0;
    s->x = exchange_new(c->plane, &carrier, s);
    exchange_request(s->x, s->method, s->target, buf_str(&s->head), buf_str(&s->body),
                     s->body.len);
    buf_release(&s->body);
    s->x->stream_id = frame->hd.stream_id;
    s->x->conn_no = c->no;
    s->x->h2 = true;
    script_begin(s->x);
    return 0;
}

static int on_stream_close(nghttp2_session *ng, int32_t id, uint32_t code, void *ctx)
{
    struct stream *s = nghttp2_session_get_stream_user_data(ng, id);

    (void)code, (void)ctx;
    if (s)
        stream_free(s);
    return 0;
}

/* ---- the connection ---- */

static void h2_open(struct conn *c)
{
    struct h2 *h = c->session = xcalloc(1, sizeof(*h));
    nghttp2_session_callbacks *cb;
    nghttp2_option *opt;
    nghttp2_settings_entry set[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, (uint32_t)c->plane->streams},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW},
    };

    if (nghttp2_session_callbacks_new(&cb) || nghttp2_option_new(&opt))
        die("faultd: out of memory");
    /* a client that ends a thousand streams at once is no attacker here */
    nghttp2_option_set_stream_reset_rate_limit(opt, RESETS, RESETS);
    nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin);
    nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
    if (nghttp2_session_server_new2(&h->ng, cb, c, opt))
        die("faultd: out of memory");
    nghttp2_session_callbacks_del(cb);
    nghttp2_option_del(opt);
    nghttp2_submit_settings(h->ng, NGHTTP2_FLAG_NONE, set, 2);
    nghttp2_session_set_local_window_size(h->ng, NGHTTP2_FLAG_NONE, 0, WINDOW);
}

static void h2_feed(struct conn *c)
{
    struct h2 *h = c->session;
    ssize_t n = nghttp2_session_mem_recv(h->ng, (const uint8_t *)buf_str(&c->in), c->in.len);

    buf_clear(&c->in);
    if (n < 0)
        c->dead = true;
}

static void h2_fill(struct conn *c)
{
    struct h2 *h = c->session;
    const uint8_t *data;
    ssize_t n;

    while (!c->close_when_sent && c->out.len < CONN_HIGH) {
        n = nghttp2_session_mem_send(h->ng, &data);
        if (n < 0)
            c->dead = true;
        if (n > 0)
            buf_add(&c->out, data, (size_t)n);
        else if (h->goaway_due) {
            h->goaway_due = false;
            nghttp2_submit_goaway(h->ng, NGHTTP2_FLAG_NONE,
                                  nghttp2_session_get_last_proc_stream_id(h->ng),
                                  NGHTTP2_NO_ERROR, NULL, 0);
        } else
            break;
    }
    if (!c->dead && !nghttp2_session_want_read(h->ng) && !nghttp2_session_want_write(h->ng))
        c->close_when_sent = true;
}

static void h2_close(struct conn *c)
{
    struct h2 *h = c->session;

    while (h->streams)
        stream_free(h->streams);
    nghttp2_session_del(h->ng);
    free(h);
}

const struct proto h2_proto = {h2_open, h2_feed, h2_fill, h2_close};
