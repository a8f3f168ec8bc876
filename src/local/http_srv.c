/* The HTTP/1.1 server's connections on libevent's bufferevents: heads, bodies,
 * time limits. */
#include "http_conn.h"
#include <cct/local/listener.h>
#include <cct/util/xalloc.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define IDLE_S 120              /* a kept-alive connection without a request */
#define WORK_MS 30000           /* a head, then a body in memory, must be whole within this */
#define MOVE_S 60               /* a body taken in pieces must move at least this often */
#define UNREAD_S 300            /* an answer must be taken on at least this often */
#define UNSENT_MAX (256u << 10) /* a client that does not read gets no more answers */
#define LINGER_S 2              /* after the last answer: read and drop, so no reset eats it */
#define READ_MAX (64u << 10)    /* bytes of one read */

struct http_srv {
    struct event_base *base;
    struct listener *listener;
    struct http_conn *conns;
    size_t n_conns, conns_max, body_max;
    int work_ms;
    unsigned port; /* 0: no guard */
    http_handler fn, on_head;
    void *arg;
};

/* --- the life of a connection --------------------------------------------- */

/* A request whose body will not be whole. */
static void drop_unread(struct http_conn *c)
{
    struct http_req *r = c->req;
    c->req = NULL;
    if (!r)
        return;
    if (r->taker)
        r->taker->cut(r->taker_arg);
    http_req_free(r);
}

static void conn_free(struct http_conn *c)
{
    struct http_req *owed = c->state == CONN_WAIT ? c->req : NULL;
    if (owed)
        owed->conn = NULL; /* the handler still owns it */
    else
        drop_unread(c);
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
    if (owed && owed->on_close)
        owed->on_close(owed, owed->watch_arg);
}

void http_conn_set_timer(struct http_conn *c)
{
    struct timeval tv = {c->srv->work_ms / 1000, c->srv->work_ms % 1000 * 1000};
    if (c->state == CONN_IDLE)
        tv = (struct timeval){IDLE_S, 0};
    else if (c->state == CONN_LINGER)
        tv = (struct timeval){LINGER_S, 0};
    else if (c->state == CONN_BODY && c->req && c->req->taker)
        tv = (struct timeval){MOVE_S, 0};
    if (c->state == CONN_WAIT || (c->req && c->req->is_paused))
        event_del(c->timer);
    else
        event_add(c->timer, &tv);
}

static void conn_set_state(struct http_conn *c, enum conn_state state)
{
    c->state = state;
    http_conn_set_timer(c);
}

static size_t unsent(const struct http_conn *c)
{
    return evbuffer_get_length(bufferevent_get_output(c->bev));
}

static void conn_linger(struct http_conn *c)
{
    bufferevent_enable(c->bev, EV_READ);
    shutdown(bufferevent_getfd(c->bev), SHUT_WR);
    conn_set_state(c, CONN_LINGER);
}

/* Answer without a handler and close when that is written. */
static void conn_refuse(struct http_conn *c, int status, const char *why)
{
    drop_unread(c);
    http_conn_write_error(c, status, why);
    conn_set_state(c, CONN_CLOSING);
}

/* A request that was answered before all of it was read leaves bytes nobody can
 * tell from the next one. */
bool http_conn_keeps(const struct http_conn *c)
{
    return c->keep_alive && c->state == CONN_WAIT;
}

void http_conn_patient(struct http_conn *c, bool patient)
{
    struct timeval tv = {UNREAD_S, 0};
    bufferevent_set_timeouts(c->bev, NULL, patient ? NULL : &tv);
}

void http_conn_answered(struct http_req *r)
{
    struct http_conn *c = r->conn;
    if (c)
        http_req_end_pause(r);
    http_req_free(r);
    if (!c)
        return;
    enum conn_state next = http_conn_keeps(c) ? CONN_IDLE : CONN_CLOSING;
    c->req = NULL;
    conn_set_state(c, next);
    if (!c->is_looping)
        http_conn_work(c);
}

/* --- reading -------------------------------------------------------------- */

/* The request is whole. */
static void deliver(struct http_conn *c)
{
    struct http_req *r = c->req;
    http_req_end_pause(r);
    conn_set_state(c, CONN_WAIT);
    if (r->taker)
        r->taker->end(r->taker_arg);
    else
        c->srv->fn(r, c->srv->arg);
}

/* The head of c->req is there and nobody answered it yet. */
static void begin_body(struct http_conn *c)
{
    struct http_req *r = c->req;
    if (!r->has_body) {
        deliver(c);
        return;
    }
    if (!r->taker && r->content_length > (int64_t)r->body.max) {
        conn_refuse(c, 413, "the request's body is too large");
        return;
    }
    http_conn_set_timer(c);
}

/* Take a head from the input if it is whole. True if there was progress. */
static bool read_head(struct http_conn *c)
{
    struct evbuffer *in = bufferevent_get_input(c->bev);
    size_t len = evbuffer_get_length(in);
    if (len == 0 || unsent(c) > UNSENT_MAX)
        return false;
    if (c->state == CONN_IDLE)
        conn_set_state(c, CONN_HEAD);
    if (len > HTTP_HEAD_MAX)
        len = HTTP_HEAD_MAX;
    struct http_head h;
    long n = http_head_parse(&h, (const char *)evbuffer_pullup(in, (ssize_t)len), len);
    if (n == 0)
        return false;
    if (n < 0 || (c->srv->port && !http_head_guard(&h, c->srv->port))) {
        conn_refuse(c, h.status, h.why);
        return true;
    }
    struct http_req *r = c->req = http_req_new(c, &h, c->srv->body_max);
    bool wants_word = h.expect_continue && r->has_body;
    c->chunked = h.chunked;
    c->keep_alive = h.keep_alive;
    c->body_left = h.content_length > 0 ? h.content_length : 0;
    http_chunks_init(&c->chunks);
    evbuffer_drain(in, (size_t)n);
    conn_set_state(c, r->has_body ? CONN_BODY : CONN_WAIT);
    if (c->srv->on_head)
        c->srv->on_head(r, c->srv->arg);
    if (c->req)
        begin_body(c);
    if (c->req && wants_word) {
        static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
        bufferevent_write(c->bev, go_on, sizeof(go_on) - 1);
    }
    return true;
}

/* False when the body is too large or was answered in the middle. */
static bool take_piece(void *arg, const char *p, size_t len)
{
    struct http_conn *c = arg;
    struct http_req *r = c->req;
    if (!r->taker)
        return buf_add(&r->body, p, len) == 0;
    r->taker->piece(r->taker_arg, p, len);
    return c->state == CONN_BODY;
}

/* 1 = the body is whole, 0 = wait, -1 = it is over (the state says how). */
static int read_body(struct http_conn *c)
{
    struct evbuffer *in = bufferevent_get_input(c->bev);
    while (c->chunked || c->body_left > 0) {
        size_t len = evbuffer_get_contiguous_space(in);
        if (len == 0 || c->req->is_paused)
            return 0;
        const char *p = (const char *)evbuffer_pullup(in, (ssize_t)len);
        size_t used = (int64_t)len < c->body_left ? len : (size_t)c->body_left;
        int rc = 0;
        if (c->chunked) {
            rc = http_chunks_scan(&c->chunks, p, len, &used, take_piece, c);
        } else {
            c->body_left -= (int64_t)used;
            rc = take_piece(c, p, used) ? 0 : -1;
        }
        evbuffer_drain(in, used);
        if (rc < 0 && c->state == CONN_BODY)
            conn_refuse(c, c->req->body.over ? 413 : 400,
                        c->req->body.over ? "the request's body is too large"
                                          : "malformed chunk");
        if (rc != 0)
            return rc;
    }
    return 1;
}

/* Go on with what the input holds. */
void http_conn_work(struct http_conn *c)
{
    c->is_looping = true;
    bool more = true;
    while (more) {
        more = false;
        if (c->state == CONN_IDLE || c->state == CONN_HEAD)
            more = read_head(c);
        if (c->state == CONN_BODY) {
            int rc = read_body(c);
            if (rc > 0)
                deliver(c);
            more = rc != 0;
        }
    }
    c->is_looping = false;
    if (c->state == CONN_CLOSING && unsent(c) == 0)
        conn_linger(c);
    if (c->state >= CONN_CLOSING) {
        struct evbuffer *in = bufferevent_get_input(c->bev);
        evbuffer_drain(in, evbuffer_get_length(in));
    }
}

/* --- what libevent tells -------------------------------------------------- */

static void on_read(struct bufferevent *bev, void *arg)
{
    struct http_conn *c = arg;
    (void)bev;
    if (c->state == CONN_BODY && c->req->taker)
        http_conn_set_timer(c); /* it moves */
    http_conn_work(c);
}

static void on_write(struct bufferevent *bev, void *arg)
{
    struct http_conn *c = arg;
    (void)bev;
    if (c->state == CONN_WAIT && c->req->is_stream) {
        if (c->req->on_drained)
            c->req->on_drained(c->req, c->req->watch_arg);
    } else {
        http_conn_work(c); /* requests may wait until the answers were read */
    }
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
    struct http_conn *c = arg;
    (void)bev;
    if (!(what & (BEV_EVENT_EOF | BEV_EVENT_ERROR | BEV_EVENT_TIMEOUT)))
        return;
    /* a client may say that it sends nothing more and still read its answer */
    bool half = (what & BEV_EVENT_EOF) && (what & BEV_EVENT_READING) && unsent(c) > 0;
    if (half && c->state != CONN_WAIT && c->state != CONN_LINGER) {
        drop_unread(c);
        conn_set_state(c, CONN_CLOSING);
    } else {
        conn_free(c);
    }
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct http_conn *c = arg;
    if (c->state == CONN_HEAD || c->state == CONN_BODY)
        conn_refuse(c, 408, "the request did not arrive in time");
    else if (c->state != CONN_LINGER && unsent(c) > 0)
        http_conn_set_timer(c); /* an answer on its way has a limit of its own */
    else
        conn_free(c);
}

/* --- the server ----------------------------------------------------------- */

/* Full: the connection that was silent for the longest makes room, so nobody can
 * keep the owner out by merely holding connections. */
static bool drop_idle(struct http_srv *s)
{
    struct http_conn *oldest = NULL;
    for (struct http_conn *c = s->conns; c; c = c->next)
        if (c->state != CONN_BODY && c->state != CONN_WAIT)
            oldest = c;
    if (oldest)
        conn_free(oldest);
    return oldest != NULL;
}

static void on_accept(void *arg, int fd)
{
    struct http_srv *s = arg;
    if (s->n_conns >= s->conns_max && !drop_idle(s)) {
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
    bufferevent_set_max_single_read(c->bev, READ_MAX);
    http_conn_patient(c, false);
    bufferevent_enable(c->bev, EV_READ | EV_WRITE);
    conn_set_state(c, CONN_IDLE);
}

static struct http_srv *srv_new(struct event_base *base, http_handler fn, void *arg)
{
    struct http_srv *s = xcalloc(1, sizeof(*s));
    s->base = base;
    s->fn = fn;
    s->arg = arg;
    s->conns_max = HTTP_SRV_CONNS_MAX;
    s->body_max = HTTP_SRV_BODY_MAX;
    s->work_ms = WORK_MS;
    return s;
}

struct http_srv *http_srv_new(struct event_base *base, http_handler fn, void *arg,
                              struct err *e)
{
    struct http_srv *s = srv_new(base, fn, arg);
    s->listener = listener_new_loopback(base, on_accept, s, &s->port, e);
    if (s->listener)
        return s;
    free(s);
    return NULL;
}

struct http_srv *http_srv_new_fd(struct event_base *base, int take_fd, http_handler fn,
                                 void *arg)
{
    struct http_srv *s = srv_new(base, fn, arg);
    s->listener = listener_new(base, take_fd, on_accept, s);
    return s;
}

void http_srv_on_head(struct http_srv *s, http_handler fn)
{
    s->on_head = fn;
}

void http_srv_limits(struct http_srv *s, size_t conns_max, size_t body_max)
{
    if (conns_max > 0)
        s->conns_max = conns_max;
    if (body_max > 0)
        s->body_max = body_max;
}

void http_srv_work_ms(struct http_srv *s, int ms)
{
    s->work_ms = ms;
}

void http_srv_free(struct http_srv *s)
{
    if (!s)
        return;
    listener_free(s->listener);
    while (s->conns)
        conn_free(s->conns);
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
