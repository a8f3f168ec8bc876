/* A request and its answer; see exchange.h. */
#include "exchange.h"
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

static void on_due(struct timer *t)
{
    struct exchange *x = OWNER_OF(t, struct exchange, due);

    x->ready = true;
    x->carrier->wake(x);
}

static void on_drip(struct timer *t)
{
    struct exchange *x = OWNER_OF(t, struct exchange, drip);

    x->dripping = false;
    x->carrier->wake(x);
}

struct exchange *exchange_new(struct plane *p, const struct carrier *c, void *wire)
{
    struct exchange *x = xcalloc(1, sizeof(*x));

    x->plane = p;
    x->carrier = c;
    x->wire = wire;
    x->a.status = 500;
    x->fault.cut = x->fault.cut_body = -1;
    x->due.fire = on_due;
    x->drip.fire = on_drip;
    return x;
}

static size_t keep(struct buf *b, const char *s, size_t len)
{
    size_t at = b->len;

    buf_add(b, s, len);
    buf_addc(b, '\0');
    return at;
}

void exchange_request(struct exchange *x, const char *method, const char *target,
                      const char *head, const char *body, size_t len)
{
    size_t path_len = strcspn(target, "?");
    size_t m = keep(&x->text, method, strlen(method)), p = keep(&x->text, target, path_len);
    size_t q = keep(&x->text, target + path_len + (target[path_len] == '?'),
                    strlen(target + path_len + (target[path_len] == '?')));
    size_t h = keep(&x->text, head, strlen(head)), b = keep(&x->text, body, len);
    const char *t = x->text.p;

    x->req = (struct request){t + m, t + p, t + q, t + h, t + b, len};
}

void exchange_free(struct exchange *x)
{
    if (!x)
        return;
    if (x->gone)
        x->gone(x);
    loop_timer_stop(&x->due);
    loop_timer_stop(&x->drip);
    script_end(x);
    buf_release(&x->text);
    buf_release(&x->a.head);
    buf_release(&x->a.body);
    buf_release(&x->out);
    free(x->fault.trailer);
    for (size_t i = 0; i < x->kept.n; i++)
        buf_release(&x->kept.v[i]);
    ARR_RELEASE(&x->kept);
    loop_bury(x);
}

void exchange_ready(struct exchange *x)
{
    if (!x->stream && x->a.body.len) {
        buf_add(&x->out, x->a.body.p, x->a.body.len);
        buf_clear(&x->a.body);
    }
    if (x->fault.how == END_SILENCE && x->fault.cut < 0 && x->fault.cut_body < 0)
        return; /* nothing ever comes */
    if (x->a.delay_ms > 0)
        loop_timer(&x->due, x->a.delay_ms);
    else
        on_due(&x->due);
}

static size_t waiting(const struct exchange *x)
{
    return x->out.len - x->out_at;
}

bool exchange_add(struct exchange *x, const void *data, size_t len)
{
    if (!x->ended)
        buf_add(&x->out, data, len);
    x->full = waiting(x) > EXCHANGE_HIGH;
    if (x->ready && !x->dripping)
        x->carrier->wake(x);
    return !x->full;
}

void exchange_end(struct exchange *x)
{
    x->ended = true;
    if (x->ready && !x->dripping)
        x->carrier->wake(x);
}

void exchange_break(struct exchange *x, enum ending how)
{
    x->fault.how = how;
    x->fault.cut_body = (int64_t)(x->taken + waiting(x));
    exchange_end(x);
}

enum pull exchange_pull(struct exchange *x, char *dst, size_t max, size_t *n)
{
    int64_t left = x->fault.cut_body < 0 ? INT64_MAX : x->fault.cut_body - (int64_t)x->taken;

    *n = 0;
    if (left <= 0)
        return PULL_CUT;
    if (x->dripping)
        return PULL_WAIT;
    if (!waiting(x))
        return x->ended ? PULL_END : PULL_WAIT;
    if (x->fault.drip_ms > 0) {
        max = 1;
        x->dripping = true;
        loop_timer(&x->drip, x->fault.drip_ms);
    }
    *n = waiting(x) < max ? waiting(x) : max;
    if ((int64_t)*n > left)
        *n = (size_t)left;
    memcpy(dst, x->out.p + x->out_at, *n);
    x->out_at += *n;
    x->taken += *n;
    if (x->out_at * 2 >= x->out.len) { /* seldom, so that long bodies cost no square */
        buf_consume(&x->out, x->out_at);
        x->out_at = 0;
    }
    if (x->full && waiting(x) < EXCHANGE_LOW) {
        x->full = false;
        if (x->drained)
            x->drained(x);
    }
    return PULL_MORE;
}
