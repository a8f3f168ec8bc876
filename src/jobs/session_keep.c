/* Bytes and events of a session's log go to the store together, in pieces. A byte counts as
 * kept when the store says so; when it cannot keep any, the output is shown all the same. */
#include "session_follow.h"
#include "session_out.h"
#include "session_priv.h"
#include "session_show.h"

#include <cct/util/log.h>
#include <stdlib.h>

#define FLUSH_BYTES (256u << 10)
#define FLUSH_MS 20
#define IN_FLIGHT_BYTES (8u << 20) /* handed to the store, not durable yet */
#define STORE_RETRY_MS 15000

void session_keep_drop(struct session *s)
{
    struct out *o = &s->out;

    for (size_t i = 0; i < o->ev.n; i++)
        st_use_free(o->ev.v[i].use);
    ARR_CLEAR(&o->ev);
    buf_clear(&o->json);
    buf_clear(&o->raw);
    session_cancel_timer(s, &o->flush_timer);
}

bool session_keep_lags(struct session *s)
{
    struct out *o = &s->out;

    if (o->store_down)
        return mq_full(s->j->o.events);
    return store_busy(s->j->o.store) || mq_full(s->j->o.events) ||
           (o->open && o->sent_to > o->run.stored &&
            o->sent_to - o->run.stored > IN_FLIGHT_BYTES);
}

static void store_again(void *ctx)
{
    struct session *s = ctx;

    s->out.store_timer = 0;
    session_follow_reset(s);
}

/* The agent's output is shown all the same; from time to time we begin again at what
 * the store has. */
static void store_failed(struct session *s, const struct err *e)
{
    struct out *o = &s->out;

    if (!o->said_down)
        session_say(s, AGENT_ERROR, "the agent's output is shown but cannot be kept: %s",
                    e->text);
    o->said_down = o->store_down = true;
    o->down = *e;
    session_keep_drop(s);
    session_logs_go(s); /* whoever reads what is kept has read all there is */
    if (!o->store_timer)
        session_timer(s, &o->store_timer, STORE_RETRY_MS, store_again);
}

static void on_appended(void *ctx, struct st_reply *r)
{
    struct session *s = ctx;
    struct out *o = &s->out;

    o->n_acked++;
    if (r->err.code && ((int)(o->n_acked - o->fresh_from) <= 0 || o->store_down)) {
        log_debug("session %s: append: %s", s->name, r->err.text); /* dealt with already */
    } else if (r->err.code == ERR_CONFLICT) {
        session_follow_reset(s);
    } else if (r->err.code) {
        store_failed(s, &r->err);
    } else {
        if (r->stored > o->run.stored)
            o->run.stored = r->stored;
        if (o->said_down)
            session_say(s, AGENT_INFO, "the agent's output is kept again");
        o->said_down = false;
        err_clear(&o->down);
    }
    session_show_acked(s);
    session_follow_drained(s);
}

/* The block does not move any more: now they can point into it. */
static void place_json(struct out *o, struct st_append *a)
{
    size_t at = 0;

    a->json = buf_detach(&o->json, NULL);
    for (size_t i = 0; i < a->n_events; i++)
        if (!a->events[i].plain) {
            a->events[i].json = a->json + at;
            at += a->events[i].len + 1;
        }
}

void session_keep_flush(struct session *s)
{
    struct out *o = &s->out;
    struct st_append a = {.run = o->run.id, .offset = o->pos - o->raw.len};

    session_cancel_timer(s, &o->flush_timer);
    if (!o->open || (!o->raw.len && !o->ev.n))
        return;
    /* whole lines alone are fed of a process without turns: go on where we are */
    a.turn_offset = s->raw ? o->pos : agent_dec_turn_offset(o->dec);
    a.turn_line = o->turn_line;
    a.raw = buf_detach(&o->raw, &a.len);
    a.events = o->ev.v;
    a.n_events = o->ev.n;
    place_json(o, &a);
    o->ev.v = NULL;
    o->ev.n = o->ev.cap = 0;
    o->sent_to = o->pos;
    o->n_sent++;
    store_append(s->j->o.store, &a, jobs_store(s->j, on_appended, s, s));
}

static void flush_due(void *ctx)
{
    struct session *s = ctx;

    s->out.flush_timer = 0;
    session_keep_flush(s);
}

void session_keep_soon(struct session *s)
{
    if (!s->out.flush_timer)
        session_timer(s, &s->out.flush_timer, FLUSH_MS, flush_due);
}
