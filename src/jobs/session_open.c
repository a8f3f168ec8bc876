/* Opening a run: what the store has of it, the decoder brought to that byte by reading
 * the last turn once more, and the sums of usage so far (from the stored events, so that
 * any number of readers comes to the same figures). */
#include "session_priv.h"

#include <cct/util/str.h>
#include <stdlib.h>
#include <string.h>

#define PIECE (1u << 20)
#define PAGE 5000
#define RETRY_MS 2000

static void ask_run(void *ctx);
static void read_turn(struct session *s);

static void finish(struct session *s)
{
    struct out *o = &s->out;
    const struct sandbox *r = session_row(s);

    o->opening = o->feeding_again = false;
    o->open = true;
    if (o->agent == AG_UNKNOWN && r && r->agent != AG_NONE)
        o->agent = r->agent;
    /* what others stored up to here will not come by our decoder */
    if (s->sh.on)
        session_show(s, true);
    o->open_done(s);
}

/* The store did not answer as it should: nothing is lost, the log stays where it is. */
static void again(struct session *s, const struct err *e)
{
    if (!s->out.said_down)
        session_say(s, AGENT_ERROR, "what is stored of this session cannot be read: %s",
                    e->text);
    s->out.said_down = true;
    session_timer(s, &s->out.store_timer, RETRY_MS, ask_run);
}

/* --- usage ----------------------------------------------------------------------- */

static void on_page(void *ctx, struct st_reply *r)
{
    struct session *s = ctx;

    for (size_t i = 0; i < r->n_events; i++) {
        const struct st_event *e = &r->events[i];
        struct agent_event ev;

        if (!memmem(e->json, e->len, "\"usage\"", 7))
            continue;
        if (agent_event_from_json(&ev, e->json, e->len, NULL) != 0)
            continue;
        ev.offset = e->offset;
        ev.index = e->index;
        if (ev.kind == AGENT_USAGE)
            session_out_usage(s, &ev);
        agent_event_release(&ev);
    }
    if (r->err.code == 0 && r->n_events == PAGE) {
        const struct st_event *last = &r->events[PAGE - 1];

        store_events(s->j->o.store, s->out.run.id, last->offset, last->index + 1, false, PAGE,
                     jobs_store(s->j, on_page, s, &s->out));
        return;
    }
    s->out.summed = r->err.code == 0;
    finish(s);
}

static void sum_usage(struct session *s)
{
    if (s->out.summed || !s->out.run.stored) {
        s->out.summed = true;
        finish(s);
        return;
    }
    store_events(s->j->o.store, s->out.run.id, 0, 0, false, PAGE,
                 jobs_store(s->j, on_page, s, &s->out));
}

/* --- the last turn --------------------------------------------------------------- */

static void on_raw(void *ctx, struct st_reply *r)
{
    struct session *s = ctx;
    struct out *o = &s->out;
    uint64_t left = o->run.stored - o->open_at;
    size_t n = r->raw_len < left ? r->raw_len : (size_t)left;

    if (r->err.code) {
        again(s, &r->err);
        return;
    }
    if (!n) { /* raw bytes that retention removed: the decoder begins where they end */
        agent_dec_free(o->dec);
        o->dec = agent_dec_new(s->ad, o->run.stored, session_out_event, s);
        o->open_at = o->run.stored;
    } else {
        agent_dec_feed(o->dec, r->raw, n);
        o->open_at += n;
    }
    read_turn(s);
}

static void read_turn(struct session *s)
{
    struct out *o = &s->out;

    if (o->open_at < o->run.stored) {
        uint64_t left = o->run.stored - o->open_at;

        store_raw(s->j->o.store, o->run.id, o->open_at, left < PIECE ? (size_t)left : PIECE,
                  jobs_store(s->j, on_raw, s, &s->out));
        return;
    }
    o->pos = o->sent_to = o->run.stored;
    sum_usage(s);
}

static void on_run(void *ctx, struct st_reply *r)
{
    struct session *s = ctx;
    struct out *o = &s->out;
    uint64_t before = o->run.id;

    if (r->err.code && !session_readonly(s)) {
        again(s, &r->err);
        return;
    }
    o->run = r->run; /* all zero when it cannot be made: shown from the begin, not kept */
    o->store_down = r->err.code != 0;
    o->fresh_from = o->n_sent;
    if (before != o->run.id) {
        memset(&o->seen, 0, sizeof(o->seen));
        memset(&o->counted, 0, sizeof(o->counted));
    }
    o->feeding_again = true;
    o->line_base = o->turn_line = r->run.turn_line;
    o->open_at = r->run.turn_offset <= r->run.stored ? r->run.turn_offset : r->run.stored;
    o->dec = agent_dec_new(s->ad, o->open_at, session_out_event, s);
    read_turn(s);
}

static void ask_run(void *ctx)
{
    struct session *s = ctx;

    s->out.store_timer = 0;
    session_out_close(s);
    s->out.opening = true;
    store_run_open(s->j->o.store, s->row, s->name, s->out.open_epoch,
                   jobs_store(s->j, on_run, s, &s->out));
}

void session_open(struct session *s, int64_t epoch, void (*done)(struct session *s))
{
    jobs_store_forget(s->j, &s->out);
    session_cancel_timer(s, &s->out.store_timer);
    s->out.open_done = done;
    s->out.open_epoch = epoch;
    ask_run(s);
}
