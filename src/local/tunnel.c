/* The traffic port (see the header). A client keeps one pool of connections for
 * all sandboxes, so each connection carries one request and is closed after it:
 * the next request may be for another sandbox. */
#include <cct/local/files_parse.h>
#include <cct/local/http_head.h>
#include <cct/local/http_srv.h>
#include <cct/local/listener.h>
#include <cct/local/provider.h>
#include <cct/local/tunnel.h>
#include <cct/secrets/digest.h>
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define HEAD_S 30
#define LINGER_S 2
#define UNREAD_S 300 /* the rest of an answer must be taken within this */
#define STALL_S 60   /* a request's body must move at least this often */
#define WAKE_S 300   /* time given to a sandbox that traffic woke */

struct pipe_conn {
    struct tunnel *t;
    struct pipe_conn *prev, *next;
    struct bufferevent *client, *init; /* init is NULL until the head is checked */
    struct event *timer;               /* for the head, then for the last answer */
    struct http_chunks chunks;
    bool chunked, body_done;
    bool waking;   /* its sandbox is being resumed; the head waits in the input */
    bool answered; /* bytes of the init went to the client */
    bool closing;  /* nothing more comes from the init */
    int64_t body_left;
    uint64_t serial; /* names the connection in callbacks it may not live to see */
    char id[24];
};

struct tunnel {
    struct provider *p;
    struct listener *listener;
    struct pipe_conn *conns;
    size_t n_conns, max_conns;
    uint64_t next_serial;
    unsigned port;
};

static void read_head(struct pipe_conn *c);

static void conn_free(struct pipe_conn *c)
{
    if (c->prev)
        c->prev->next = c->next;
    else
        c->t->conns = c->next;
    if (c->next)
        c->next->prev = c->prev;
    c->t->n_conns--;
    event_free(c->timer);
    if (c->init)
        bufferevent_free(c->init);
    bufferevent_free(c->client);
    free(c);
}

/* The init's side is over; the connection ends when all is written. */
static void close_when_written(struct pipe_conn *c)
{
    if (c->init)
        bufferevent_free(c->init);
    c->init = NULL;
    c->closing = true;
    struct timeval unread = {UNREAD_S, 0};
    bufferevent_setwatermark(c->client, EV_WRITE, 0, 0);
    bufferevent_set_timeouts(c->client, NULL, &unread);
    bufferevent_enable(c->client, EV_READ);
    if (evbuffer_get_length(bufferevent_get_output(c->client)) > 0)
        return;
    /* what the client still sends is dropped for a moment: an answer must not be
     * lost to the reset that unread bytes cause */
    shutdown(bufferevent_getfd(c->client), SHUT_WR);
    struct timeval tv = {LINGER_S, 0};
    event_add(c->timer, &tv);
}

static void refuse(struct pipe_conn *c, int status, const char *json, size_t len)
{
    struct buf all = BUF_INIT;
    http_error_text(&all, status, json, len);
    bufferevent_write(c->client, all.p, all.len);
    buf_release(&all);
    close_when_written(c);
}

static void refuse_text(struct pipe_conn *c, int status, const char *why)
{
    struct buf json = BUF_INIT;
    http_error_json(&json, status, why);
    refuse(c, status, json.p, json.len);
    buf_release(&json);
}

/* The proxy's own shape: no sandbox there, or (port > 0) nothing on that port. */
static void refuse_gone(struct pipe_conn *c, const char *id, const char *why, int64_t port)
{
    struct buf json = BUF_INIT;
    struct jw w;
    jw_init(&w, &json);
    jw_obj(&w, NULL);
    jw_str(&w, "sandboxId", id);
    jw_str(&w, "message", why);
    if (port > 0)
        jw_i64(&w, "port", port);
    jw_i64(&w, "code", 502);
    jw_end(&w);
    refuse(c, 502, json.p, json.len);
    buf_release(&json);
}

/* --- bytes on the way ----------------------------------------------------------- */

/* Pass on what belongs to the request's body and nothing after it. */
static void pump_body(struct pipe_conn *c)
{
    struct evbuffer *in = bufferevent_get_input(c->client);
    struct evbuffer *out = bufferevent_get_output(c->init);
    while (!c->body_done) {
        size_t len = evbuffer_get_contiguous_space(in);
        if (len == 0)
            break;
        size_t used = len;
        if (c->chunked) {
            const char *p = (const char *)evbuffer_pullup(in, (ssize_t)len);
            int rc = http_chunks_scan(&c->chunks, p, len, &used, NULL, NULL);
            if (rc < 0) {
                if (c->answered)
                    conn_free(c);
                else
                    refuse_text(c, 400, "malformed chunk");
                return;
            }
            c->body_done = rc == 1;
        } else {
            used = (int64_t)len > c->body_left ? (size_t)c->body_left : len;
            c->body_left -= (int64_t)used;
            c->body_done = c->body_left == 0;
        }
        evbuffer_remove_buffer(in, out, used);
    }
    if (c->body_done) {
        evbuffer_drain(in, evbuffer_get_length(in));
        bufferevent_set_timeouts(c->client, NULL, NULL);
    }
    if (evbuffer_get_length(out) > TUNNEL_HIGH_WATER)
        bufferevent_disable(c->client, EV_READ);
}

static void on_init_read(struct bufferevent *bev, void *arg)
{
    struct pipe_conn *c = arg;
    struct evbuffer *out = bufferevent_get_output(c->client);
    c->answered = true;
    evbuffer_add_buffer(out, bufferevent_get_input(bev));
    if (evbuffer_get_length(out) > TUNNEL_HIGH_WATER)
        bufferevent_disable(bev, EV_READ);
}

static void on_init_write(struct bufferevent *bev, void *arg)
{
    struct pipe_conn *c = arg;
    (void)bev;
    if (!(bufferevent_get_enabled(c->client) & EV_READ)) {
        bufferevent_enable(c->client, EV_READ);
        pump_body(c);
    }
}

static void on_init_event(struct bufferevent *bev, short what, void *arg)
{
    struct pipe_conn *c = arg;
    if (!(what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)))
        return;
    if (evbuffer_get_length(bufferevent_get_input(bev)) > 0)
        on_init_read(bev, c);
    if (c->answered)
        close_when_written(c);
    else
        refuse_gone(c, c->id, "The sandbox does not answer", 0);
}

/* --- the head --------------------------------------------------------------------- */

static bool is_hop_header(const struct http_slice *name)
{
    static const char *const dropped[] = {"connection", "keep-alive", "proxy-connection",
                                          "x-cc-control", "te"};
    for (size_t i = 0; i < sizeof(dropped) / sizeof(dropped[0]); i++)
        if (http_slice_is_nocase(name, dropped[i]))
            return true;
    return false;
}

static void forward_head(struct pipe_conn *c, const struct http_head *h)
{
    struct evbuffer *out = bufferevent_get_output(c->init);
    evbuffer_add(out, h->method.p, h->method.len);
    evbuffer_add(out, " ", 1);
    evbuffer_add(out, h->target.p, h->target.len);
    evbuffer_add_printf(out, " HTTP/1.%d\r\n", h->minor);
    for (size_t i = 0; i < h->n_fields; i++) {
        const struct http_field *f = &h->fields[i];
        if (is_hop_header(&f->name))
            continue;
        evbuffer_add(out, f->name.p, f->name.len);
        evbuffer_add(out, ": ", 2);
        evbuffer_add(out, f->value.p, f->value.len);
        evbuffer_add(out, "\r\n", 2);
    }
    evbuffer_add_printf(out, "Connection: close\r\n\r\n");
}

static void connect_init(struct pipe_conn *c, const struct sbox *b, const struct http_head *h)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    str_copy(sa.sun_path, sizeof(sa.sun_path), b->rec.sock);
    str_copy(c->id, sizeof(c->id), b->rec.id);
    c->init = bufferevent_socket_new(c->t->p->base, -1,
                                     BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
    if (!c->init)
        die("libevent is out of memory");
    bufferevent_setcb(c->init, on_init_read, on_init_write, on_init_event, c);
    bufferevent_setwatermark(c->init, EV_WRITE, TUNNEL_HIGH_WATER / 2, 0);
    bufferevent_setwatermark(c->client, EV_WRITE, TUNNEL_HIGH_WATER / 2, 0);
    c->chunked = h->chunked;
    c->body_left = h->content_length > 0 ? h->content_length : 0;
    c->body_done = !c->chunked && c->body_left == 0;
    http_chunks_init(&c->chunks);
    event_del(c->timer);
    if (bufferevent_socket_connect(c->init, (struct sockaddr *)&sa, sizeof(sa)) != 0) {
        refuse_gone(c, c->id, "The sandbox does not answer", 0);
        return;
    }
    bufferevent_enable(c->init, EV_READ | EV_WRITE);
    forward_head(c, h);
}

struct wake {
    struct tunnel *t;
    uint64_t serial;
};

static void on_woken(void *arg, struct sbox *b, const struct err *e)
{
    struct wake *w = arg;
    struct pipe_conn *c = w->t->conns;
    (void)e;
    while (c && c->serial != w->serial)
        c = c->next;
    free(w);
    if (!c)
        return;
    c->waking = false;
    if (b)
        read_head(c);
    else
        refuse_gone(c, c->id, "The sandbox could not be resumed", 0);
}

/* Traffic wakes a paused sandbox that was made with autoResume. */
static bool wake(struct pipe_conn *c, struct sbox *b)
{
    struct wake *w = xcalloc(1, sizeof(*w));
    w->t = c->t;
    w->serial = c->serial;
    str_copy(c->id, sizeof(c->id), b->rec.id);
    c->waking = b->rec.auto_resume && !b->rec.cold &&
                sbox_resume(b, WAKE_S, true, on_woken, w, NULL) == 0;
    if (!c->waking)
        free(w);
    return c->waking;
}

/* The init reads a whole body before it looks at the token, so a body from
 * somebody without one must not get that far. */
static bool may_send(const struct sbox *b, const struct http_head *h)
{
    if (!h->chunked && h->content_length <= 0)
        return true;
    const struct http_slice *token = http_head_get(h, "x-access-token");
    if (token && digest_equal(token->p, token->len, b->rec.token, strlen(b->rec.token)))
        return true;
    const char *q = memchr(h->target.p, '?', h->target.len);
    if (!q)
        return false;
    char *query = xstrndup(q + 1, h->target.len - (size_t)(q + 1 - h->target.p));
    bool ok = files_signed(query, "write", b->rec.token, clock_wall_ms() / 1000);
    free(query);
    return ok;
}

/* Which sandbox, or an answer that says why there is none. */
static const struct sbox *route(struct pipe_conn *c, const struct http_head *h)
{
    const struct http_slice *id = http_head_get(h, "e2b-sandbox-id");
    const struct http_slice *port = http_head_get(h, "e2b-sandbox-port");
    if (!id || id->len == 0 || id->len > 64) {
        refuse_text(c, 400,
                    "E2b-Sandbox-Id names no sandbox: signed URLs without it are not "
                    "served here");
        return NULL;
    }
    char name[72], number[8] = "49983";
    memcpy(name, id->p, id->len);
    name[id->len] = '\0';
    name[strcspn(name, "-")] = '\0'; /* old id-client form */
    if (port)
        snprintf(number, sizeof(number), "%.*s", port->len > 6 ? 6 : (int)port->len, port->p);
    int64_t n;
    if (!sbox_id_ok(name) || !str_to_i64(number, 1, 65535, &n)) {
        refuse_text(c, 400, "malformed sandbox id or port");
        return NULL;
    }
    struct sbox *b = sbox_find(c->t->p, name);
    if (b && b->rec.state == SBOX_PAUSED && n == 49983 && wake(c, b))
        return NULL;
    if (!b || b->rec.state != SBOX_RUNNING)
        refuse_gone(c, name, b ? "The sandbox is paused" : "The sandbox was not found", 0);
    else if (n != 49983)
        refuse_gone(c, name, "The sandbox is running but the port is not open", n);
    else if (h->target.len >= 4 && memcmp(h->target.p, "/cc/", 4) == 0)
        refuse_text(c, 404, "not served here");
    else if (!may_send(b, h))
        refuse_text(c, 401, "the access token or signature is missing or wrong");
    else
        return b;
    return NULL;
}

static void read_head(struct pipe_conn *c)
{
    struct evbuffer *in = bufferevent_get_input(c->client);
    size_t len = evbuffer_get_length(in);
    if (len > HTTP_HEAD_MAX)
        len = HTTP_HEAD_MAX;
    struct http_head h;
    long n =
        len ? http_head_parse(&h, (const char *)evbuffer_pullup(in, (ssize_t)len), len) : 0;
    if (n == 0)
        return;
    c->t->p->used_ms = clock_mono_ms();
    if (n < 0 || !http_head_guard(&h, c->t->port)) {
        refuse_text(c, h.status, h.why);
        return;
    }
    const struct sbox *b = route(c, &h);
    if (!b)
        return;
    connect_init(c, b, &h);
    if (c->closing)
        return;
    evbuffer_drain(in, (size_t)n);
    struct timeval stall = {STALL_S, 0};
    if (!c->body_done)
        bufferevent_set_timeouts(c->client, &stall, NULL);
    pump_body(c);
}

static void on_client_read(struct bufferevent *bev, void *arg)
{
    struct pipe_conn *c = arg;
    if (c->closing) {
        struct evbuffer *in = bufferevent_get_input(bev);
        evbuffer_drain(in, evbuffer_get_length(in));
    } else if (c->init) {
        pump_body(c);
    } else if (!c->waking) {
        read_head(c);
    }
}

static void on_client_write(struct bufferevent *bev, void *arg)
{
    (void)bev;
    struct pipe_conn *c = arg;
    if (c->closing)
        close_when_written(c);
    else if (c->init)
        bufferevent_enable(c->init, EV_READ);
}

static void on_client_event(struct bufferevent *bev, short what, void *arg)
{
    (void)bev;
    struct pipe_conn *c = arg;
    if ((what & BEV_EVENT_TIMEOUT) && !c->closing && !c->answered)
        refuse_text(c, 408, "the request's body did not arrive in time");
    else if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR | BEV_EVENT_TIMEOUT))
        conn_free(c); /* in the middle of an answer nothing else can be said */
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct pipe_conn *c = arg;
    if (c->closing)
        conn_free(c);
    else
        refuse_text(c, 408, "request did not arrive in time");
}

/* --- the port --------------------------------------------------------------------- */

/* Full: the oldest connection that has sent no request yet makes room. */
static bool drop_idle(struct tunnel *t)
{
    struct pipe_conn *oldest = NULL;
    for (struct pipe_conn *c = t->conns; c; c = c->next)
        if (!c->init && !c->closing && !c->waking)
            oldest = c;
    if (oldest)
        conn_free(oldest);
    return oldest != NULL;
}

static void on_accept(void *arg, int fd)
{
    struct tunnel *t = arg;
    if (t->n_conns >= t->max_conns && !drop_idle(t)) {
        close(fd);
        return;
    }
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    struct pipe_conn *c = xcalloc(1, sizeof(*c));
    c->t = t;
    c->serial = ++t->next_serial;
    c->client =
        bufferevent_socket_new(t->p->base, fd, BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
    c->timer = evtimer_new(t->p->base, on_timer, c);
    if (!c->client || !c->timer)
        die("libevent is out of memory");
    c->next = t->conns;
    if (t->conns)
        t->conns->prev = c;
    t->conns = c;
    t->n_conns++;
    bufferevent_setcb(c->client, on_client_read, on_client_write, on_client_event, c);
    bufferevent_setwatermark(c->client, EV_READ, 0, TUNNEL_HIGH_WATER);
    bufferevent_enable(c->client, EV_READ | EV_WRITE);
    struct timeval tv = {HEAD_S, 0};
    event_add(c->timer, &tv);
}

/* Each connection needs two descriptors; some must be left for everything else. */
static size_t conns_limit(void)
{
    struct rlimit rl;
    if (getrlimit(RLIMIT_NOFILE, &rl) != 0 || rl.rlim_cur > 2 * TUNNEL_CONNS_MAX + 1024)
        return TUNNEL_CONNS_MAX;
    return rl.rlim_cur > 512 ? (size_t)rl.rlim_cur / 2 - 192 : 64;
}

struct tunnel *tunnel_new(struct provider *p, struct err *e)
{
    struct tunnel *t = xcalloc(1, sizeof(*t));
    t->p = p;
    t->max_conns = conns_limit();
    t->listener = listener_new_loopback(p->base, on_accept, t, &t->port, e);
    if (t->listener)
        return t;
    free(t);
    return NULL;
}

void tunnel_free(struct tunnel *t)
{
    if (!t)
        return;
    while (t->conns)
        conn_free(t->conns);
    listener_free(t->listener);
    free(t);
}

unsigned tunnel_port(const struct tunnel *t)
{
    return t->port;
}

size_t tunnel_conns(const struct tunnel *t)
{
    return t->n_conns;
}
