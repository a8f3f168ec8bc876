/* The control port's HTTP/1.1 server on libevent's bufferevents. */
#include <cct/local/http_srv.h>
#include <cct/local/listener.h>
#include <cct/util/json.h>
#include <cct/util/log.h>
#include <cct/util/xalloc.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define IDLE_S 120              /* a kept-alive connection without a request */
#define WORK_S 30               /* a head, then a body, must be whole within this */
#define UNSENT_MAX (256u << 10) /* a client that does not read gets no more answers */
#define LINGER_S 2              /* after the last answer: read and drop, so no reset eats it */

enum conn_state { CONN_IDLE, CONN_HEAD, CONN_BODY, CONN_WAIT, CONN_CLOSING, CONN_LINGER };

struct http_conn {
    struct http_srv *srv;
    struct http_conn *prev, *next;
    struct bufferevent *bev;
    struct event *timer;
    enum conn_state state;
    struct http_req *req; /* being read or answered */
    struct http_chunks chunks;
    bool chunked, keep_alive;
    bool is_looping; /* conn_work() is on the stack */
    int64_t body_left;
};

struct http_srv {
    struct event_base *base;
    struct listener *listener;
    struct http_conn *conns;
    size_t n_conns;
    unsigned port;
    http_handler fn;
    http_gate gate;
    void *arg;
};

static void conn_work(struct http_conn *c);

static void req_free(struct http_req *r)
{
    free(r->path);
    free(r->query);
    free(r->key);
    buf_release(&r->body);
    buf_release(&r->headers);
    free(r);
}

static void conn_free(struct http_conn *c)
{
    if (c->req && c->state == CONN_WAIT)
        c->req->conn = NULL; /* the handler still owns it */
    else if (c->req)
        req_free(c->req);
    if (c->prev)
        c->prev->next = c->next;
    else
        c->srv->conns = c->next;
    if (c->next)
        c->next->prev = c->prev;
    c->srv->n_conns--;
    event_free(c->timer);
    bufferevent_free(c->bev);
    free(c);
}

static void conn_set_state(struct http_conn *c, enum conn_state state)
{
    c->state = state;
    struct timeval tv = {WORK_S, 0};
    if (state == CONN_IDLE)
        tv.tv_sec = IDLE_S;
    if (state == CONN_LINGER)
        tv.tv_sec = LINGER_S;
    if (state == CONN_WAIT)
        event_del(c->timer);
    else
        event_add(c->timer, &tv);
}

static const char *reason_of(int status)
{
    static const struct {
        int status;
        const char *text;
    } known[] = {
        {200, "OK"},
        {201, "Created"},
        {204, "No Content"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {413, "Content Too Large"},
        {415, "Unsupported Media Type"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (known[i].status == status)
            return known[i].text;
    return "Refused";
}

static void head_text(struct buf *b, int status, size_t len, bool keep, const char *extra)
{
    buf_addf(b, "HTTP/1.1 %d %s\r\n", status, reason_of(status));
    if (status != 204)
        buf_addf(b, "Content-Type: application/json\r\nContent-Length: %zu\r\n", len);
    buf_addf(b, "%s%s\r\n", extra, keep ? "" : "Connection: close\r\n");
}

void http_error_text(struct buf *b, int status, const char *json, size_t len)
{
    head_text(b, status, len, false, "");
    buf_add(b, json, len);
}

void http_error_json(struct buf *b, int status, const char *message)
{
    struct jw w;
    jw_init(&w, b);
    jw_obj(&w, NULL);
    jw_i64(&w, "code", status);
    jw_str(&w, "message", message);
    jw_end(&w);
}

void http_reply_header(struct http_req *r, const char *name, const char *value)
{
    buf_addf(&r->headers, "%s: %s\r\n", name, value);
}

void http_reply(struct http_req *r, int status, const char *json, size_t len)
{
    struct http_conn *c = r->conn;
    if (c) {
        struct buf head = BUF_INIT;
        head_text(&head, status, len, c->keep_alive, buf_str(&r->headers));
        bufferevent_write(c->bev, head.p, head.len);
        if (status != 204)
            bufferevent_write(c->bev, json, len);
        buf_release(&head);
        c->req = NULL;
        conn_set_state(c, c->keep_alive ? CONN_IDLE : CONN_CLOSING);
    }
    req_free(r);
    if (c && !c->is_looping)
        conn_work(c);
}

void http_reply_error(struct http_req *r, int status, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    struct buf b = BUF_INIT;
    http_error_json(&b, status, text);
    http_reply(r, status, b.p, b.len);
    buf_release(&b);
}

/* Answer without a handler and close when that is written. */
static void conn_refuse(struct http_conn *c, int status, const char *why)
{
    struct buf json = BUF_INIT, all = BUF_INIT;
    http_error_json(&json, status, why);
    http_error_text(&all, status, json.p, json.len);
    bufferevent_write(c->bev, all.p, all.len);
    buf_release(&json);
    buf_release(&all);
    conn_set_state(c, CONN_CLOSING);
}

static char *slice_dup(const struct http_slice *s)
{
    return s ? xstrndup(s->p, s->len) : NULL;
}

static struct http_req *req_new(struct http_conn *c, const struct http_head *h)
{
    struct http_req *r = xcalloc(1, sizeof(*r));
    r->conn = c;
    memcpy(r->method, h->method.p, h->method.len);
    const char *q = memchr(h->target.p, '?', h->target.len);
    size_t path_len = q ? (size_t)(q - h->target.p) : h->target.len;
    r->path = xstrndup(h->target.p, path_len);
    r->query = q ? xstrndup(q + 1, h->target.len - path_len - 1) : xstrdup("");
    r->key = slice_dup(http_head_get(h, "x-api-key"));
    const struct http_slice *type = http_head_get(h, "content-type");
    r->is_json = type && type->len >= 16 && strncasecmp(type->p, "application/json", 16) == 0 &&
                 (type->len == 16 || type->p[16] == ';' || type->p[16] == ' ');
    buf_init(&r->body, HTTP_SRV_BODY_MAX);
    buf_init(&r->headers, 0);
    return r;
}

/* Take a head from the input if it is whole. True if there was progress. */
static bool read_head(struct http_conn *c)
{
    struct evbuffer *in = bufferevent_get_input(c->bev);
    size_t len = evbuffer_get_length(in);
    if (len == 0 || evbuffer_get_length(bufferevent_get_output(c->bev)) > UNSENT_MAX)
        return false;
    if (c->state == CONN_IDLE)
        conn_set_state(c, CONN_HEAD);
    if (len > HTTP_HEAD_MAX)
        len = HTTP_HEAD_MAX;
    struct http_head h;
    long n = http_head_parse(&h, (const char *)evbuffer_pullup(in, (ssize_t)len), len);
    if (n == 0)
        return false;
    if (n < 0 || !http_head_guard(&h, c->srv->port)) {
        conn_refuse(c, h.status, h.why);
        return true;
    }
    if (h.content_length > (int64_t)HTTP_SRV_BODY_MAX) {
        conn_refuse(c, 413, "request body is larger than 4 MiB");
        return true;
    }
    c->req = req_new(c, &h);
    c->chunked = h.chunked;
    c->keep_alive = h.keep_alive;
    c->body_left = h.content_length > 0 ? h.content_length : 0;
    http_chunks_init(&c->chunks);
    evbuffer_drain(in, (size_t)n);
    bool has_body = c->chunked || c->body_left > 0;
    if (has_body && c->srv->gate && !c->srv->gate(c->req, c->srv->arg)) {
        conn_refuse(c, 401, "the API key is missing or not the one of this provider");
        return true;
    }
    if (h.expect_continue && has_body) {
        static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
        bufferevent_write(c->bev, go_on, sizeof(go_on) - 1);
    }
    conn_set_state(c, CONN_BODY);
    return true;
}

static bool take_chunk(void *arg, const char *p, size_t len)
{
    return buf_add(arg, p, len) == 0;
}

/* 1 = the body is whole, 0 = more needed, -1 = refused (state says so). */
static int read_body(struct http_conn *c)
{
    struct evbuffer *in = bufferevent_get_input(c->bev);
    struct buf *body = &c->req->body;
    while (c->chunked || c->body_left > 0) {
        size_t len = evbuffer_get_contiguous_space(in);
        if (len == 0)
            return 0;
        const char *p = (const char *)evbuffer_pullup(in, (ssize_t)len);
        if (c->chunked) {
            size_t used;
            int rc = http_chunks_scan(&c->chunks, p, len, &used, take_chunk, body);
            evbuffer_drain(in, used);
            if (rc < 0)
                conn_refuse(c, body->over ? 413 : 400,
                            body->over ? "request body is larger than 4 MiB"
                                       : "malformed chunk");
            if (rc != 0)
                return rc;
        } else {
            if ((int64_t)len > c->body_left)
                len = (size_t)c->body_left;
            buf_add(body, p, len); /* within the maximum: checked with the head */
            evbuffer_drain(in, len);
            c->body_left -= (int64_t)len;
        }
    }
    return 1;
}

/* Go on with what the input holds; may free the connection. */
static void conn_work(struct http_conn *c)
{
    c->is_looping = true;
    bool more = true;
    while (more) {
        more = false;
        if (c->state == CONN_IDLE || c->state == CONN_HEAD)
            more = read_head(c);
        if (c->state == CONN_BODY) {
            int rc = read_body(c);
            if (rc > 0) {
                conn_set_state(c, CONN_WAIT);
                c->srv->fn(c->req, c->srv->arg);
            }
            more = rc != 0;
        }
    }
    c->is_looping = false;
    if (c->state >= CONN_CLOSING) {
        struct evbuffer *in = bufferevent_get_input(c->bev);
        evbuffer_drain(in, evbuffer_get_length(in));
    }
}

static void on_read(struct bufferevent *bev, void *arg)
{
    (void)bev;
    conn_work(arg);
}

static void on_write(struct bufferevent *bev, void *arg)
{
    struct http_conn *c = arg;
    if (c->state == CONN_CLOSING) {
        shutdown(bufferevent_getfd(bev), SHUT_WR);
        conn_set_state(c, CONN_LINGER);
    } else {
        conn_work(c); /* requests may wait until the answers were read */
    }
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
    (void)bev;
    if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
        conn_free(arg);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct http_conn *c = arg;
    if (c->state == CONN_HEAD || c->state == CONN_BODY)
        conn_refuse(c, 408, "request did not arrive in time");
    else
        conn_free(c);
}

/* Full: the connection that was silent for the longest makes room, so nobody can
 * keep the owner out by merely holding connections. */
static bool drop_idle(struct http_srv *s)
{
    struct http_conn *oldest = NULL;
    for (struct http_conn *c = s->conns; c; c = c->next)
        if (c->state == CONN_IDLE || c->state == CONN_HEAD)
            oldest = c;
    if (oldest)
        conn_free(oldest);
    return oldest != NULL;
}

static void on_accept(void *arg, int fd)
{
    struct http_srv *s = arg;
    if (s->n_conns >= HTTP_SRV_CONNS_MAX && !drop_idle(s)) {
        close(fd);
        return;
    }
    struct http_conn *c = xcalloc(1, sizeof(*c));
    c->srv = s;
    c->bev = bufferevent_socket_new(s->base, fd, BEV_OPT_CLOSE_ON_FREE);
    c->timer = evtimer_new(s->base, on_timer, c);
    if (!c->bev || !c->timer)
        die("libevent is out of memory");
    c->next = s->conns;
    if (s->conns)
        s->conns->prev = c;
    s->conns = c;
    s->n_conns++;
    bufferevent_setcb(c->bev, on_read, on_write, on_event, c);
    bufferevent_setwatermark(c->bev, EV_READ, 0, HTTP_HEAD_MAX + 1024);
    bufferevent_enable(c->bev, EV_READ | EV_WRITE);
    conn_set_state(c, CONN_IDLE);
}

struct http_srv *http_srv_new(struct event_base *base, http_handler fn, void *arg,
                              struct err *e)
{
    struct http_srv *s = xcalloc(1, sizeof(*s));
    s->base = base;
    s->fn = fn;
    s->arg = arg;
    s->listener = listener_new_loopback(base, on_accept, s, &s->port, e);
    if (s->listener)
        return s;
    free(s);
    return NULL;
}

void http_srv_gate(struct http_srv *s, http_gate fn)
{
    s->gate = fn;
}

void http_srv_free(struct http_srv *s)
{
    if (!s)
        return;
    while (s->conns)
        conn_free(s->conns);
    listener_free(s->listener);
    free(s);
}

unsigned http_srv_port(const struct http_srv *s)
{
    return s->port;
}

size_t http_srv_conns(const struct http_srv *s)
{
    return s->n_conns;
}
