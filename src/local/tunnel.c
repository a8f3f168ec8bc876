/* The traffic port (see the header). A client keeps one pool of connections for
 * all sandboxes, so each connection carries one request and is closed after it:
 * the next request may be for another sandbox. */
#include <cct/local/http_head.h>
#include <cct/local/http_srv.h>
#include <cct/local/listener.h>
#include <cct/local/portcall.h>
#include <cct/local/provider.h>
#include <cct/local/tunnel.h>
#include <cct/local/tunnel_route.h>
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

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
#define UNREAD_S 300     /* the rest of an answer must be taken within this */
#define STALL_S 60       /* a request's body must move at least this often ... */
#define LONG_STALL_S 600 /* ... or to a program, which may be talking with it */
#define DIAL_MS 5000     /* for the init to say who listens on a port */
#define WAKE_S 300       /* time given to a sandbox that traffic woke */

struct pipe_conn {
    struct tunnel *t;
    struct pipe_conn *prev, *next;
    struct bufferevent *client, *far; /* far: the init or a program; NULL until known */
    struct event *timer;              /* for the head, then for the last answer */
    struct http_chunks chunks;
    struct portcall *call; /* asks the init for `far` */
    bool chunked, body_done;
    bool waiting;   /* for a wake or a call; the head stays in the input */
    bool connected; /* with the far end */
    bool answered;  /* bytes of the far end went to the client */
    bool closing;   /* nothing more comes from the far end */
    int64_t body_left;
    uint64_t serial; /* names the connection in callbacks it may not live to see */
    unsigned port;
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

static void set_nodelay(int fd)
{
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

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
    portcall_cancel(c->call);
    if (c->far)
        bufferevent_free(c->far);
    bufferevent_free(c->client);
    free(c);
}

/* The far side is over; the connection ends when all is written. What was read and
 * not passed on goes, so that the client can finish sending and look at the answer. */
static void close_when_written(struct pipe_conn *c)
{
    struct evbuffer *in = bufferevent_get_input(c->client);
    evbuffer_drain(in, evbuffer_get_length(in));
    if (c->far)
        bufferevent_free(c->far);
    c->far = NULL;
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

/* The shape of the cloud's proxy; `port`: it is what keeps the answer away. */
static void refuse_box(struct pipe_conn *c, int status, const char *why, unsigned port)
{
    struct buf json = BUF_INIT;
    struct jw w;
    jw_init(&w, &json);
    jw_obj(&w, NULL);
    jw_str(&w, "sandboxId", c->id);
    jw_str(&w, "message", why);
    if (port > 0)
        jw_i64(&w, "port", port);
    jw_i64(&w, "code", status);
    jw_end(&w);
    refuse(c, status, json.p, json.len);
    buf_release(&json);
}

static void refuse_port(struct pipe_conn *c)
{
    refuse_box(c, 502, "The sandbox is running but port is not open", c->port);
}

/* The far end went without a byte. */
static void refuse_silent(struct pipe_conn *c)
{
    if (c->port == TUNNEL_ENVD_PORT)
        refuse_box(c, 502, "The sandbox does not answer", 0);
    else if (!c->connected)
        refuse_port(c);
    else
        refuse_box(c, 502, "The program on this port closed without an answer", c->port);
}

/* --- bytes on the way ----------------------------------------------------------- */

/* Pass on what belongs to the request's body and nothing after it. */
static void pump_body(struct pipe_conn *c)
{
    struct evbuffer *in = bufferevent_get_input(c->client);
    struct evbuffer *out = bufferevent_get_output(c->far);
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

static void on_far_read(struct bufferevent *bev, void *arg)
{
    struct pipe_conn *c = arg;
    struct evbuffer *out = bufferevent_get_output(c->client);
    c->answered = true;
    evbuffer_add_buffer(out, bufferevent_get_input(bev));
    if (evbuffer_get_length(out) > TUNNEL_HIGH_WATER)
        bufferevent_disable(bev, EV_READ);
}

static void on_far_write(struct bufferevent *bev, void *arg)
{
    struct pipe_conn *c = arg;
    (void)bev;
    if (!(bufferevent_get_enabled(c->client) & EV_READ)) {
        bufferevent_enable(c->client, EV_READ);
        pump_body(c);
    }
}

static void on_far_event(struct bufferevent *bev, short what, void *arg)
{
    struct pipe_conn *c = arg;
    if (what & BEV_EVENT_CONNECTED)
        c->connected = true;
    if (!(what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)))
        return;
    if (evbuffer_get_length(bufferevent_get_input(bev)) > 0)
        on_far_read(bev, c);
    if (c->answered)
        close_when_written(c);
    else
        refuse_silent(c);
}

/* --- the head --------------------------------------------------------------------- */

/* Meant for this hop only, or a secret between the client and us. */
static bool is_hop_header(const struct http_slice *name)
{
    static const char *const dropped[] = {
        "connection",   "keep-alive", "proxy-connection",
        "x-cc-control", "te",         "e2b-traffic-access-token"};
    for (size_t i = 0; i < sizeof(dropped) / sizeof(dropped[0]); i++)
        if (http_slice_is_nocase(name, dropped[i]))
            return true;
    return false;
}

/* Host as the sandbox wants to see it: ${PORT} in it is the port's number. */
static void add_host(struct evbuffer *out, const char *mask, unsigned port)
{
    static const char mark[] = "${PORT}";
    evbuffer_add_printf(out, "Host: ");
    for (const char *at; (at = strstr(mask, mark)) != NULL; mask = at + sizeof(mark) - 1) {
        evbuffer_add(out, mask, (size_t)(at - mask));
        evbuffer_add_printf(out, "%u", port);
    }
    evbuffer_add_printf(out, "%s\r\n", mask);
}

static void forward_head(struct pipe_conn *c, const struct sbox *b, const struct http_head *h)
{
    struct evbuffer *out = bufferevent_get_output(c->far);
    const char *mask = json_str(b->rec.network, "maskRequestHost", "");
    bool masked = c->port != TUNNEL_ENVD_PORT && *mask;
    evbuffer_add(out, h->method.p, h->method.len);
    evbuffer_add(out, " ", 1);
    evbuffer_add(out, h->target.p, h->target.len);
    evbuffer_add_printf(out, " HTTP/1.%d\r\n", h->minor);
    if (masked)
        add_host(out, mask, c->port);
    for (size_t i = 0; i < h->n_fields; i++) {
        const struct http_field *f = &h->fields[i];
        if (is_hop_header(&f->name) || (masked && http_slice_is_nocase(&f->name, "host")))
            continue;
        evbuffer_add(out, f->name.p, f->name.len);
        evbuffer_add(out, ": ", 2);
        evbuffer_add(out, f->value.p, f->value.len);
        evbuffer_add(out, "\r\n", 2);
    }
    evbuffer_add_printf(out, "Connection: close\r\n\r\n");
}

/* Begin to pass bytes on: to the init, or to `take_fd`, a connection that is
 * under way. The head is the `head_len` bytes at the input's start. */
static void connect_far(struct pipe_conn *c, const struct sbox *b, const struct http_head *h,
                        size_t head_len, int take_fd)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    str_copy(sa.sun_path, sizeof(sa.sun_path), b->rec.sock);
    c->far = bufferevent_socket_new(c->t->p->base, take_fd,
                                    BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
    if (!c->far)
        die("libevent is out of memory");
    bufferevent_setcb(c->far, on_far_read, on_far_write, on_far_event, c);
    bufferevent_setwatermark(c->far, EV_WRITE, TUNNEL_HIGH_WATER / 2, 0);
    bufferevent_setwatermark(c->client, EV_WRITE, TUNNEL_HIGH_WATER / 2, 0);
    c->chunked = h->chunked;
    c->body_left = h->content_length > 0 ? h->content_length : 0;
    c->body_done = !c->chunked && c->body_left == 0;
    http_chunks_init(&c->chunks);
    event_del(c->timer);
    struct sockaddr *to = take_fd < 0 ? (struct sockaddr *)&sa : NULL;
    if (bufferevent_socket_connect(c->far, to, to ? sizeof(sa) : 0) != 0) {
        refuse_silent(c);
        return;
    }
    bufferevent_enable(c->far, EV_READ | EV_WRITE);
    forward_head(c, b, h);
    evbuffer_drain(bufferevent_get_input(c->client), head_len);
    struct timeval stall = {c->port == TUNNEL_ENVD_PORT ? STALL_S : LONG_STALL_S, 0};
    if (!c->body_done)
        bufferevent_set_timeouts(c->client, &stall, NULL);
    pump_body(c);
}

/* Something is asked that answers surely and in time. */
static void begin_wait(struct pipe_conn *c)
{
    event_del(c->timer);
    c->waiting = true;
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
    c->waiting = false;
    if (b)
        read_head(c);
    else
        refuse_box(c, 502, "The sandbox could not be resumed", 0);
}

/* Traffic wakes a paused sandbox that was made with autoResume. */
static void wake(struct pipe_conn *c, struct sbox *b)
{
    struct wake *w = xcalloc(1, sizeof(*w));
    struct err e = {0};
    w->t = c->t;
    w->serial = c->serial;
    begin_wait(c);
    if (sbox_resume(b, WAKE_S, true, on_woken, w, &e) == 0)
        return;
    free(w);
    c->waiting = false;
    refuse_box(c, e.code == ERR_LIMIT ? 429 : 502, e.text, 0);
}

/* The head waits in the input; 0: not whole yet, or refused. */
static size_t parse_head(struct pipe_conn *c, struct http_head *h)
{
    struct evbuffer *in = bufferevent_get_input(c->client);
    size_t len = evbuffer_get_length(in);
    if (len > HTTP_HEAD_MAX)
        len = HTTP_HEAD_MAX;
    long n = len ? http_head_parse(h, (const char *)evbuffer_pullup(in, (ssize_t)len), len) : 0;
    if (n == 0)
        return 0;
    c->t->p->used_ms = clock_mono_ms();
    if (n > 0 && http_head_guard(h, c->t->port))
        return (size_t)n;
    refuse_text(c, h->status, h->why);
    return 0;
}

static void on_dialed(void *arg, int take_fd, int status)
{
    struct pipe_conn *c = arg;
    struct http_head h;
    c->call = NULL;
    c->waiting = false;
    const struct sbox *b = sbox_find(c->t->p, c->id);
    size_t n = b && take_fd >= 0 ? parse_head(c, &h) : 0;
    if (n > 0) {
        set_nodelay(take_fd);
        connect_far(c, b, &h, n, take_fd);
        return;
    }
    if (take_fd >= 0)
        close(take_fd);
    if (status == 404)
        refuse_port(c);
    else
        refuse_box(c, 502, "The sandbox does not answer", 0);
}

static void read_head(struct pipe_conn *c)
{
    struct http_head h;
    struct tunnel_route r;
    size_t n = parse_head(c, &h);
    if (n == 0)
        return;
    tunnel_route(c->t->p, &h, &r);
    str_copy(c->id, sizeof(c->id), r.id);
    c->port = r.port;
    switch (r.to) {
    case TUNNEL_REFUSE:
        if (r.status == 502 || r.status == 403)
            refuse_box(c, r.status, r.why, 0);
        else
            refuse_text(c, r.status, r.why);
        return;
    case TUNNEL_WAKE:
        wake(c, r.b);
        return;
    case TUNNEL_INIT:
        connect_far(c, r.b, &h, n, -1);
        return;
    case TUNNEL_PORT:
        begin_wait(c);
        c->call = portcall_start(c->t->p->base, r.b->rec.sock, r.b->rec.token, r.port, DIAL_MS,
                                 on_dialed, c);
        return;
    }
}

static void on_client_read(struct bufferevent *bev, void *arg)
{
    struct pipe_conn *c = arg;
    if (c->closing) {
        struct evbuffer *in = bufferevent_get_input(bev);
        evbuffer_drain(in, evbuffer_get_length(in));
    } else if (c->far) {
        pump_body(c);
    } else if (!c->waiting) {
        read_head(c);
    }
}

static void on_client_write(struct bufferevent *bev, void *arg)
{
    (void)bev;
    struct pipe_conn *c = arg;
    if (c->closing)
        close_when_written(c);
    else if (c->far)
        bufferevent_enable(c->far, EV_READ);
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
        if (!c->far && !c->closing && !c->waiting)
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
    set_nodelay(fd);
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
