/* Calls to a sandbox's init. Its answers are small and end with the connection. */
#include <cct/local/http_head.h>
#include <cct/local/initcall.h>
#include <cct/util/buf.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>

#define ANSWER_MAX (1u << 20)

struct initcall {
    struct bufferevent *bev;
    struct event *timer;
    struct buf in;
    initcall_fn fn;
    void *arg;
};

void initcall_cancel(struct initcall *c)
{
    if (!c)
        return;
    event_free(c->timer);
    if (c->bev)
        bufferevent_free(c->bev);
    buf_release(&c->in);
    free(c);
}

static void finish(struct initcall *c, int status, const char *body, size_t len)
{
    if (c->fn)
        c->fn(c->arg, status, body, len);
    initcall_cancel(c);
}

static bool add_piece(void *arg, const char *p, size_t len)
{
    return buf_add(arg, p, len) == 0;
}

/* Value of a header in the answer's head, or NULL. */
static const char *find_header(const char *head, const char *end, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = head; p && p < end; p = strstr(p, "\r\n"), p = p ? p + 2 : NULL)
        if (strncasecmp(p, name, n) == 0 && p[n] == ':')
            return p + n + 1 + strspn(p + n + 1, " ");
    return NULL;
}

/* Finish if the answer is whole; `eof`: nothing more will come. */
static void try_finish(struct initcall *c, bool eof)
{
    const char *head = buf_str(&c->in);
    const char *end = strstr(head, "\r\n\r\n");
    int status = 0;
    if (end && strncmp(head, "HTTP/1.", 7) == 0 && c->in.len > 12 && head[8] == ' ')
        status = (int)strtol(head + 9, NULL, 10);
    if (!end || status == 0) {
        if (eof || end)
            finish(c, 0, NULL, 0);
        return;
    }
    const char *body = end + 4;
    size_t len = c->in.len - (size_t)(body - head);
    const char *want = find_header(head, end, "content-length");
    const char *te = find_header(head, end, "transfer-encoding");
    if (status == 204) {
        finish(c, status, "", 0);
    } else if (te) {
        struct http_chunks ch;
        struct buf whole = BUF_INIT_MAX(ANSWER_MAX);
        size_t used;
        http_chunks_init(&ch);
        int rc = http_chunks_scan(&ch, body, len, &used, add_piece, &whole);
        if (rc == 1)
            finish(c, status, buf_str(&whole), whole.len);
        else if (rc < 0 || eof)
            finish(c, 0, NULL, 0);
        buf_release(&whole);
    } else if (want && strtoull(want, NULL, 10) <= len) {
        finish(c, status, body, (size_t)strtoull(want, NULL, 10));
    } else if (eof) {
        finish(c, want ? 0 : status, body, len);
    }
}

static void on_read(struct bufferevent *bev, void *arg)
{
    struct initcall *c = arg;
    struct evbuffer *in = bufferevent_get_input(bev);
    size_t len = evbuffer_get_length(in);
    char *dst = buf_reserve(&c->in, len);
    if (!dst) {
        finish(c, 0, NULL, 0);
        return;
    }
    evbuffer_remove(in, dst, len);
    c->in.len += len;
    try_finish(c, false);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
    (void)bev;
    if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
        try_finish(arg, true);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    finish(arg, 0, NULL, 0);
}

struct initcall *initcall_start(struct event_base *base, const char *sock, const char *token,
                                const char *method, const char *path, const char *json,
                                int timeout_ms, initcall_fn fn, void *arg)
{
    struct initcall *c = xcalloc(1, sizeof(*c));
    c->fn = fn;
    c->arg = arg;
    buf_init(&c->in, ANSWER_MAX);
    c->timer = evtimer_new(base, on_timer, c);
    c->bev = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
    if (!c->timer || !c->bev)
        die("libevent is out of memory");
    bufferevent_setcb(c->bev, on_read, NULL, on_event, c);
    struct timeval tv = {timeout_ms / 1000, timeout_ms % 1000 * 1000};
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    if (!str_copy(sa.sun_path, sizeof(sa.sun_path), sock) ||
        bufferevent_socket_connect(c->bev, (struct sockaddr *)&sa, sizeof(sa)) != 0)
        tv = (struct timeval){0, 0}; /* the failure is told from the loop */
    event_add(c->timer, &tv);
    bufferevent_enable(c->bev, EV_READ | EV_WRITE);
    struct evbuffer *out = bufferevent_get_output(c->bev);
    evbuffer_add_printf(out,
                        "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                        "X-Access-Token: %s\r\nX-CC-Control: %s\r\n",
                        method, path, token, token);
    if (json)
        evbuffer_add_printf(out, "Content-Type: application/json\r\n");
    if (strcmp(method, "GET") != 0)
        evbuffer_add_printf(out, "Content-Length: %zu\r\n", json ? strlen(json) : 0);
    evbuffer_add_printf(out, "\r\n%s", json ? json : "");
    return c;
}
