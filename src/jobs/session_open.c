/* Opening a run: what the store has of it, the decoder brought to that byte by reading
 * the last turn once more, and the sums of usage so far (from the stored events, so that
 * any number of readers comes to the same figures). */
#include "session_ask.h"
#include "session_follow.h"
#include "session_out.h"
#include "session_pair.h"
#include "session_priv.h"
#include "session_show.h"

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
    o->n_opened++;
    session_out_opened(s);
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
    s->out.down = *e;
    session_timer(s, &s->out.store_timer, RETRY_MS, ask_run);
    session_logs_go(s);
}

/* --- usage ----------------------------------------------------------------------- */

static void sum_page(struct session *s);

static void on_page(void *ctx, struct st_reply *r)
{
    struct session *s = ctx;
    struct out *o = &s->out;

    for (size_t i = 0; i < r->n_events; i++) {
        const struct st_event *e = &r->events[i];
        struct agent_event ev;

        o->sum_at = (struct session_key){e->offset, e->index, true};
        if (!memmem(e->json, e->len, "\"session\"", 9) &&
            !memmem(e->json, e->len, "\"usage\"", 7) &&
            !memmem(e->json, e->len, "\"exit\"", 6) &&
            !memmem(e->json, e->len, "\"turn_end\"", 10))
            continue;
        if (agent_event_from_json(&ev, e->json, e->len, NULL) != 0)
            continue;
        ev.offset = e->offset;
        ev.index = e->index;
        session_out_session(s, &ev); /* some say it once, at their start */
        session_out_usage(s, &ev);
        agent_event_release(&ev);
    }
    if (r->err.code) { /* the figures stay what they were; the next time it is tried again */
        finish(s);
        return;
    }
    if (r->n_events < PAGE) {
        ARR_REMOVE(&o->to_sum, 0);
        memset(&o->sum_at, 0, sizeof(o->sum_at));
        if (o->to_sum.n)
            memset(&o->counted, 0, sizeof(o->counted));
    }
    sum_page(s);
}

static void sum_page(struct session *s)
{
    struct out *o = &s->out;
    const struct session_key *at = &o->sum_at;

    if (!o->to_sum.n) {
        o->summed = true;
        finish(s);
        return;
    }
    store_events_summed(s->j->o.store, o->to_sum.v[0], at->offset, at->any ? at->index + 1 : 0,
                        PAGE, jobs_store(s->j, on_page, s, o));
}

/* The runs of this session one after another, the one at hand at the end. A run that was
 * read from its begin once more is counted there alone. */
static void on_runs(void *ctx, struct st_reply *r)
{
    struct session *s = ctx;
    struct out *o = &s->out;

    for (size_t i = 0; i < r->n_runs; i++) {
        const struct store_run *run = &r->runs[i];

        if (run->id != o->run.id && str_eq(run->session, s->name) && run->exit_signal != -1)
            *ARR_PUSH(&o->to_sum) = run->id;
    }
    if (r->err.code) {
        finish(s);
        return;
    }
    *ARR_PUSH(&o->to_sum) = o->run.id;
    usage_sum_release(&o->sum);
    session_pair_unsum(s);
    memset(&o->counted, 0, sizeof(o->counted));
    sum_page(s);
}

static void sum_usage(struct session *s)
{
    struct out *o = &s->out;

    ARR_CLEAR(&o->to_sum);
    memset(&o->sum_at, 0, sizeof(o->sum_at));
    if (!o->run.id) {
        o->summed = true;
        finish(s);
    } else if (o->summed) { /* others may have stored some that we have not seen */
        *ARR_PUSH(&o->to_sum) = o->run.id;
        o->sum_at = o->counted;
        sum_page(s);
    } else {
        store_runs(s->j->o.store, s->row, jobs_store(s->j, on_runs, s, o));
    }
}

/* --- the last turn --------------------------------------------------------------- */

/* Ends of runs that lie among these bytes are told to the decoder as they were then. */
static void feed_stored(struct session *s, const char *data, size_t len)
{
    struct out *o = &s->out;
    const struct session_probe *p = &s->fo.p;

    for (size_t i = 0; i < p->ends.n; i++) {
        const struct session_run_end *e = &p->ends.v[i];
        size_t n = e->offset > o->open_at ? (size_t)(e->offset - o->open_at) : 0;

        if (!n || e->offset >= o->run.stored)
            continue; /* the end before the last turn; one that is still to be stored */
        if (n > len)
            break;
        agent_dec_feed(o->dec, data, n);
        agent_dec_exit(o->dec, e->code, 0, NULL);
        o->open_at += n;
        data += n;
        len -= n;
    }
    agent_dec_feed(o->dec, data, len);
    o->open_at += len;
}

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
        session_ask_forget(s);
        agent_dec_free(o->dec);
        o->dec = agent_dec_new(s->ad, o->run.stored, session_out_event, s);
        agent_dec_lines(o->dec, session_lines);
        o->open_at = o->began = o->run.stored;
    } else {
        feed_stored(s, r->raw, n);
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
    o->ended_at = r->run.stored;
    o->run = r->run; /* all zero when it cannot be made: shown from the begin, not kept */
    o->store_down = r->err.code != 0;
    err_clear(&o->down);
    o->fresh_from = o->n_sent;
    if (before != o->run.id) {
        memset(&o->seen, 0, sizeof(o->seen));
        memset(&o->counted, 0, sizeof(o->counted));
    }
    o->feeding_again = true;
    o->line_base = o->turn_line = r->run.turn_line;
    o->open_at = r->run.turn_offset <= r->run.stored ? r->run.turn_offset : r->run.stored;
    o->began = o->open_at;
    o->dec = agent_dec_new(s->ad, o->open_at, session_out_event, s);
    agent_dec_lines(o->dec, session_lines);
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
    session_keep_flush(s); /* what came of the log before is its last */
    s->out.open_done = done;
    s->out.open_epoch = epoch;
    ask_run(s);
}
