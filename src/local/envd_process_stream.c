/* Server streams of Start and Connect: envelopes out, keepalives, time-outs,
 * and the brake: a stream that has more than ENVD_UNSENT_MAX waiting stops the
 * reading of its process until the connection is drained. */
#include "envd_process.h"
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

static void sub_unblock(struct sub *s)
{
    if (!s->blocked)
        return;
    s->blocked = false;
    s->p->nblocked--;
    proc_io_update(s->p);
}

/* Take it out of its process and free it; the request is somebody else's. */
static void sub_free(struct sub *s)
{
    struct sub **at = &s->p->subs;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    sub_unblock(s);
    if (s->keepalive != NULL)
        event_free(s->keepalive);
    if (s->timeout != NULL)
        event_free(s->timeout);
    free(s);
}

/* The peer is gone; the process goes on. */
static void on_close(struct http_req *req, void *arg)
{
    sub_free(arg);
    http_stream_end(req);
}

static void on_drained(struct http_req *req, void *arg)
{
    (void)req;
    sub_unblock(arg);
}

static void send_envelope(struct sub *s, unsigned flags, const char *json, size_t len)
{
    unsigned char head[CONNECT_HEAD_BYTES];
    struct iovec pieces[2] = {{head, sizeof(head)}, {(void *)json, len}};
    connect_head(head, flags, len);
    http_stream_send(s->req, pieces, 2);
    s->sent_mono = clock_mono_ms();
}

void sub_send(struct sub *s, const char *json, size_t len)
{
    send_envelope(s, 0, json, len);
    if (!s->blocked && http_stream_unsent(s->req) > ENVD_UNSENT_MAX) {
        s->blocked = true;
        s->p->nblocked++;
        proc_io_update(s->p);
    }
}

void sub_send_all(struct proc *p, const char *json, size_t len)
{
    for (struct sub *s = p->subs, *next; s != NULL; s = next) {
        next = s->next;
        sub_send(s, json, len);
    }
}

void sub_end(struct sub *s, enum connect_code code, const char *message)
{
    struct buf b = BUF_INIT;
    struct http_req *req = s->req;
    connect_end_json(&b, code, message);
    send_envelope(s, CONNECT_FLAG_END, b.p, b.len);
    buf_release(&b);
    sub_free(s);
    http_stream_end(req);
}

static void keepalive_arm(struct sub *s, int64_t ms)
{
    struct timeval tv = {ms / 1000, (ms % 1000) * 1000};
    evtimer_add(s->keepalive, &tv);
}

/* Armed once per interval, not once per message: see how long it was quiet. */
static void on_keepalive(evutil_socket_t fd, short what, void *arg)
{
    static const char json[] = "{\"event\":{\"keepalive\":{}}}";
    struct sub *s = arg;
    (void)fd;
    (void)what;
    int64_t quiet = clock_mono_ms() - s->sent_mono;
    if (quiet >= s->keepalive_ms) {
        sub_send(s, json, sizeof(json) - 1);
        quiet = 0;
    }
    keepalive_arm(s, s->keepalive_ms - quiet);
}

static void on_timeout(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    sub_end(arg, CONNECT_DEADLINE_EXCEEDED, "context deadline exceeded");
}

void sub_timeout_after(struct sub *s, int64_t ms)
{
    struct timeval tv = {ms / 1000, (ms % 1000) * 1000};
    s->timeout = evtimer_new(s->p->e->base, on_timeout, s);
    evtimer_add(s->timeout, &tv);
}

struct sub *sub_open(struct proc *p, struct http_req *req)
{
    struct sub *s = xcalloc(1, sizeof(*s));
    int64_t every = PROC_KEEPALIVE_S;
    const char *asked = envd_header(req, "Keepalive-Ping-Interval");
    if (asked != NULL && !str_to_i64(asked, 1, 86400, &every))
        every = PROC_KEEPALIVE_S;
    s->p = p;
    s->req = req;
    s->keepalive_ms = every * 1000;
    s->next = p->subs;
    p->subs = s;
    http_req_watch(req, on_close, on_drained, s);
    http_stream_begin(req, 200, ENVD_STREAM_TYPE);
    s->keepalive = evtimer_new(p->e->base, on_keepalive, s);
    keepalive_arm(s, s->keepalive_ms);
    char start[64];
    snprintf(start, sizeof(start), "{\"event\":{\"start\":{\"pid\":%d}}}", (int)p->pid);
    sub_send(s, start, strlen(start));
    return s;
}
