/* A call that hears nothing: is it slow, or its connection dead? Questions of our own
 * tell: one over a new connection, is the sandbox well at all; one beside the call, over
 * the connection that it has (HTTP/2 carries both), does that still speak. When only the
 * first is answered the connection is doubted. A slow call or a slow sandbox is waited
 * for. */
#include "envd_priv.h"
#include <cct/util/clock.h>

static void on_watch(void *ctx);

/* Two thirds of the interval of signs of life: 10 s. */
static int64_t patience_ms(const struct envd *c)
{
    return c->keepalive_s * 2000LL / 3;
}

static bool waits(const struct op *op, int64_t before)
{
    return !op->answered && op->request && op->since <= before;
}

/* Since when the oldest one waits for the first byte of its answer; 0 = none does. */
static int64_t oldest(struct envd *c)
{
    const struct op *op;
    int64_t since = 0;
    size_t it = 0;

    while ((op = map_next(c->ops, &it, NULL, NULL)))
        if (waits(op, INT64_MAX) && (!since || op->since < since))
            since = op->since;
    return since;
}

/* One that was asked about already is asked about again, but not all the time. */
static void arm(struct envd *c)
{
    int64_t since = oldest(c), ms = since + patience_ms(c) - clock_mono_ms();

    if (since)
        c->watch_timer = net_timer(c->net, ms > 0 ? ms : patience_ms(c), on_watch, c);
}

static void questions_end(struct envd *c)
{
    net_timer_cancel(c->net, c->watch_timer);
    net_cancel(c->net, c->fresh);
    net_cancel(c->net, c->beside[0]);
    net_cancel(c->net, c->beside[1]);
    c->watch_timer = c->fresh = c->beside[0] = c->beside[1] = 0;
}

/* The new connection was answered long enough ago. */
static void on_grace(void *ctx)
{
    struct envd *c = ctx;
    int64_t before = clock_mono_ms() - patience_ms(c);
    const struct op *op;
    size_t it = 0;

    c->watch_timer = 0;
    while ((op = map_next(c->ops, &it, NULL, NULL)))
        if (waits(op, before) && c->beside[op->stream])
            net_doubt(c->net, op->request);
    questions_end(c);
    arm(c);
}

static void on_fresh(void *ctx, const struct net_result *r)
{
    struct envd *c = ctx;

    c->fresh = 0;
    if (r->status >= 200 && r->status <= 299 && (c->beside[0] || c->beside[1])) {
        c->watch_timer = net_timer(c->net, patience_ms(c) / 5 + 100, on_grace, c);
    } else {
        questions_end(c);
        arm(c);
    }
}

static void on_beside(void *ctx, const struct net_result *r)
{
    struct envd *c = ctx;

    (void)r;
    c->beside[0] = 0;
}

static void on_beside_stream(void *ctx, const struct net_result *r)
{
    struct envd *c = ctx;

    (void)r;
    c->beside[1] = 0;
}

static uint64_t ask(struct envd *c, bool fresh, bool stream,
                    void (*fn)(void *ctx, const struct net_result *r))
{
    struct net_req *q = envd_request(c, "GET", "/health");

    q->fresh = fresh;
    q->stream = stream;
    q->total_ms = (int)patience_ms(c) * (fresh ? 1 : 2);
    q->on_done = fn;
    q->ctx = c;
    return net_submit(c->net, q);
}

static void on_watch(void *ctx)
{
    struct envd *c = ctx;
    int64_t before = clock_mono_ms() - patience_ms(c);
    const struct op *op;
    bool lanes[2] = {false, false};
    size_t it = 0;

    c->watch_timer = 0;
    while ((op = map_next(c->ops, &it, NULL, NULL)))
        lanes[op->stream] |= waits(op, before);
    if (!lanes[0] && !lanes[1]) {
        arm(c);
        return;
    }
    /* these first: they must find no other connection than the old one */
    if (lanes[0])
        c->beside[0] = ask(c, false, false, on_beside);
    if (lanes[1])
        c->beside[1] = ask(c, false, true, on_beside_stream);
    c->fresh = ask(c, true, false, on_fresh);
}

void watch_start(struct envd *c)
{
    if (!c->watch_timer && !c->fresh)
        c->watch_timer = net_timer(c->net, patience_ms(c), on_watch, c);
}

void watch_stop(struct envd *c)
{
    questions_end(c);
}
