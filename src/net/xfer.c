/* Life of a transfer. libcurl must not be called from inside its own callbacks, so
 * adding, pausing and removing wait in a list until it returned; that also makes
 * every function here safe to call from anywhere on the net thread. */
#include "net_priv.h"
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct net_req *net_req_new(const char *method, char *take_url)
{
    struct net_req *r = xcalloc(1, sizeof(*r));

    r->method = method;
    r->url = take_url;
    return r;
}

static struct net_header *add_header(struct net_req *r, const char *name)
{
    if (r->n_headers == NET_MAX_HEADERS)
        BUG("more than %d headers on one request", NET_MAX_HEADERS);
    r->headers[r->n_headers].name = name;
    return &r->headers[r->n_headers++];
}

void net_req_header(struct net_req *r, const char *name, const char *value)
{
    add_header(r, name)->value = xstrdup(value);
}

void net_req_secret(struct net_req *r, const char *name, const struct secret *s)
{
    add_header(r, name)->secret = s;
}

void xfer_drop_values(struct net_req *r)
{
    for (size_t i = 0; i < r->n_headers; i++) {
        if (r->headers[i].value)
            secret_wipe(r->headers[i].value, strlen(r->headers[i].value));
        free(r->headers[i].value);
    }
    r->n_headers = 0;
}

static void req_free(struct net_req *r)
{
    xfer_drop_values(r);
    secret_wipe(r->body.p, r->body.cap);
    buf_release(&r->body);
    free(r->url);
    free(r);
}

static void queue(struct xfer *x)
{
    if (x->queued)
        return;
    x->queued = true;
    x->next = x->net->todo;
    x->net->todo = x;
}

static void unlink_easy(struct xfer *x)
{
    struct net *n = x->net;

    net_timer_cancel(n, x->idle_timer);
    net_timer_cancel(n, x->total_timer);
    x->idle_timer = x->total_timer = 0;
    if (x->added)
        n->lib->multi_remove_handle(n->lanes[x->lane].multi, x->easy);
    x->added = false;
}

static void xfer_free(struct xfer *x)
{
    unlink_easy(x);
    xfer_teardown(x);
    buf_release(&x->head);
    secret_wipe(x->answer.p, x->answer.cap); /* answers carry tokens */
    buf_release(&x->answer);
    if (x->req)
        req_free(x->req);
    free(x);
}

/* The one place where a transfer that was not cancelled ends. */
static void finish(struct xfer *x, CURLcode rc)
{
    struct net *n = x->net;
    struct net_result r;

    answer_fill(x, rc, &r);
    if (x->status && x->added)
        lane_heard(n, x->lane, x->easy);
    unlink_easy(x);
    x->done = true;
    if (x->req->on_done)
        x->req->on_done(x->req->ctx, &r);
    map_del_id(n->xfers, x->id);
    if (x->queued) /* asked for something meanwhile: the list still holds it */
        x->dead = true;
    else
        xfer_free(x);
}

void xfer_ended(struct net *n, CURL *easy, CURLcode rc)
{
    struct xfer *x = NULL;

    n->lib->easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&x);
    if (!x || x->dead || x->done)
        return;
    if (xfer_may_repeat(x, rc)) {
        unlink_easy(x);
        xfer_teardown(x);
        x->again = true;
        queue(x); /* begins anew */
    } else {
        finish(x, rc);
    }
}

static void fail(struct xfer *x)
{
    finish(x, CURLE_ABORTED_BY_CALLBACK);
}

/* Bytes only note the time; the timer looks at it when it fires and waits for the
 * rest, so a busy stream costs no timer at all. A paused one is not dead. */
static void on_idle(void *ctx)
{
    struct xfer *x = ctx;
    int64_t idle = x->req->idle_ms, quiet = clock_mono_ms() - x->byte_ms;

    x->idle_timer = 0;
    if (x->paused || quiet < idle) {
        x->idle_timer = net_timer(x->net, x->paused ? idle : idle - quiet, on_idle, x);
        return;
    }
    if (x->lane != LANE_STREAM_PLAIN) /* nobody shares that one: it is closed anyway */
        silence_noted(x);
    err_set(&x->fail, ERR_TIMEOUT, "no sign of life for %lld s", (long long)(idle + 500) / 1000);
    fail(x);
}

/* Ours, a little before libcurl's own: that one forgets the socket before it tells. */
static void on_total(void *ctx)
{
    struct xfer *x = ctx;

    x->total_timer = 0;
    if (!x->status)
        silence_noted(x);
    snprintf(x->curl_text, sizeof(x->curl_text), "not complete after %d ms", x->req->total_ms);
    finish(x, CURLE_OPERATION_TIMEDOUT);
}

static enum lane_id lane_of(const struct xfer *x)
{
    bool tls = str_starts(x->req->url, "https:");

    if (x->req->urgent)
        return tls ? LANE_URGENT : LANE_URGENT_PLAIN;
    if (x->req->stream)
        return tls ? LANE_STREAM : LANE_STREAM_PLAIN;
    return tls ? LANE_NORMAL : LANE_NORMAL_PLAIN;
}

static void begin(struct xfer *x)
{
    struct net *n = x->net;

    if (!n->lib || n->lib_err.code)
        x->fail = n->lib_err;
    else if (xfer_setup(x, &x->fail) == 0) {
        x->lane = lane_of(x);
        struct lane *l = lane_get(n, x->lane);
        CURLMcode rc = l ? n->lib->multi_add_handle(l->multi, x->easy) : CURLM_OUT_OF_MEMORY;
        if (rc == CURLM_OK)
            x->added = true;
        else
            err_set(&x->fail, ERR_BUG, "cannot start a request: %s", n->lib->multi_strerror(rc));
    }
    if (x->fail.code) {
        fail(x);
        return;
    }
    x->byte_ms = clock_mono_ms();
    if (x->req->idle_ms > 0)
        x->idle_timer = net_timer(n, x->req->idle_ms, on_idle, x);
    if (x->req->total_ms > 0)
        x->total_timer = net_timer(n, x->req->total_ms, on_total, x);
}

static void hold(struct xfer *x)
{
    struct net *n = x->net;

    x->held = x->paused;
    x->byte_ms = clock_mono_ms();
    n->in_curl++; /* going on may deliver what waited, at once */
    n->lib->easy_pause(x->easy, x->paused ? CURLPAUSE_RECV : CURLPAUSE_CONT);
    n->in_curl--;
}

void xfers_settle(struct net *n)
{
    while (n->todo && !n->in_curl) {
        struct xfer *x = n->todo;
        n->todo = x->next;
        x->queued = false;
        if (x->dead)
            xfer_free(x);
        else if (!x->added)
            begin(x);
        else if (x->paused != x->held)
            hold(x);
    }
}

void xfers_drop(struct net *n)
{
    struct xfer *x;
    size_t it = 0;

    while ((x = map_next(n->xfers, &it, NULL, NULL)))
        net_cancel(n, x->id);
    xfers_settle(n);
}

void net_renew(struct net *n)
{
    ARR(uint64_t) under_way = ARR_INIT;
    struct xfer *x;
    size_t it = 0;

    THREAD_ASSERT(THREAD_NET);
    if (!n->lib || n->lib_err.code || n->in_curl)
        return;
    xfers_settle(n);
    while ((x = map_next(n->xfers, &it, NULL, NULL)))
        if (x->added && !x->done)
            *ARR_PUSH(&under_way) = x->id;
    for (size_t i = 0; i < under_way.n; i++) {
        x = map_get_id(n->xfers, under_way.v[i]); /* an answer may have cancelled it */
        if (!x || x->done || !x->added)
            continue;
        err_set(&x->fail, ERR_NETWORK, "the machine slept, its connections are made anew");
        fail(x);
    }
    ARR_RELEASE(&under_way);
    for (x = n->todo; x; x = x->next) /* those that were cancelled meanwhile still hold on */
        if (x->dead)
            unlink_easy(x);
    lanes_renew(n);
    xfers_settle(n);
}

uint64_t net_submit(struct net *n, struct net_req *take)
{
    struct xfer *x = xcalloc(1, sizeof(*x));

    THREAD_ASSERT(THREAD_NET);
    x->net = n;
    x->id = ++n->next_id;
    x->req = take;
    x->start_ms = clock_mono_ms();
    buf_init(&x->head, 256 << 10);
    map_put_id(n->xfers, x->id, x);
    queue(x);
    return x->id;
}

void net_cancel(struct net *n, uint64_t id)
{
    struct xfer *x = map_get_id(n->xfers, id);

    THREAD_ASSERT(THREAD_NET);
    if (!x || x->done)
        return;
    map_del_id(n->xfers, id);
    net_timer_cancel(n, x->idle_timer);
    net_timer_cancel(n, x->total_timer);
    x->idle_timer = x->total_timer = 0;
    x->dead = true;
    queue(x);
}

int64_t net_sent(struct net *n, uint64_t id)
{
    struct xfer *x = map_get_id(n->xfers, id);
    curl_off_t sent = 0;

    THREAD_ASSERT(THREAD_NET);
    if (x && x->easy && x->added)
        n->lib->easy_getinfo(x->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
    return sent;
}

void net_pause(struct net *n, uint64_t id, bool pause)
{
    struct xfer *x = map_get_id(n->xfers, id);

    THREAD_ASSERT(THREAD_NET);
    if (!x || x->done || x->paused == pause)
        return;
    x->paused = pause;
    if (!pause)
        x->byte_ms = clock_mono_ms();
    queue(x);
}

/* Lines of the head are kept as "name: value\0". */
const char *net_answer_header(struct net *n, uint64_t id, const char *name)
{
    struct xfer *x = map_get_id(n->xfers, id);
    size_t want = strlen(name);

    if (!x)
        return NULL;
    for (size_t at = 0; at < x->head.len; at += strlen(x->head.p + at) + 1) {
        const char *line = x->head.p + at;
        if (strncasecmp(line, name, want) != 0 || line[want] != ':')
            continue;
        line += want + 1;
        return line + strspn(line, " \t");
    }
    return NULL;
}
