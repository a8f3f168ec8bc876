/* From raw bytes of the agent's log to events: each piece goes through the decoder, and each
 * event has its effects, in order, once. A decoder that begins again reads the last turn once
 * more: those events are stored already and only bring its state back. */
#include "session_ask.h"
#include "session_out.h"
#include "session_pair.h"
#include "session_priv.h"
#include "session_relay.h"

#include <cct/model/transcribe.h>
#include <cct/util/clock.h>
#include <cct/util/log.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define FLUSH_BYTES (256u << 10)
#define ROW_MS 250
#define RUN_PLACES 64u /* for the events that stand at the end of a run */
#define RUN_ENDS 32u   /* the first of them are its messages */
#define MAX_RUNS (1u << 25)

void session_out_init(struct session *s)
{
    s->out.agent = AG_UNKNOWN;
    usage_sum_init(&s->out.sum);
    buf_init(&s->out.raw, 0);
    buf_init(&s->out.json, 0);
    buf_init(&s->out.lines.text, 0);
}

void session_out_close(struct session *s)
{
    session_keep_drop(s);
    session_ask_forget(s);
    agent_dec_free(s->out.dec);
    s->out.dec = NULL;
    s->out.open = s->out.caught_up = false;
}

static void forget_late(struct out *o)
{
    for (size_t i = 0; i < o->late.n; i++) {
        free(o->late.v[i].text);
        free(o->late.v[i].key);
    }
    ARR_CLEAR(&o->late);
}

void session_out_release(struct session *s)
{
    struct out *o = &s->out;

    session_out_close(s);
    forget_late(o);
    ARR_RELEASE(&o->late);
    session_cancel_timer(s, &o->store_timer);
    session_cancel_timer(s, &o->row_timer);
    session_cancel_timer(s, &o->items_timer);
    if (o->items)
        msg_free(&o->items->m);
    ARR_RELEASE(&o->ev);
    ARR_RELEASE(&o->to_sum);
    usage_sum_release(&o->sum);
    buf_release(&o->raw);
    buf_release(&o->json);
    buf_release(&o->lines.text);
    free(o->last_line);
    free(o->agent_session);
    free(o->model);
}

/* --- the row --------------------------------------------------------------------- */

static void row_now(void *ctx)
{
    struct session *s = ctx;
    struct out *o = &s->out;
    struct sandbox *r = session_row(s);

    o->row_timer = 0;
    if (!o->row_dirty || !r)
        return;
    o->row_dirty = false;
    if (o->last_line && !str_eq(r->last_line, o->last_line))
        str_set(&r->last_line, o->last_line);
    if (r->agent != o->agent && r->state != SB_KILLED && o->agent != AG_UNKNOWN) {
        r->agent = o->agent;
        r->agent_since = jobs_now(s->j);
    }
    if (o->summed) {
        const struct usage *u = &o->sum.all;

        r->cost_usd = u->cost_usd;
        r->tokens_in = u->in_tokens + u->cache_read + u->cache_write;
        r->tokens_out = u->out_tokens;
    }
    jobs_row_changed(s->j, r);
}

void session_out_row_now(struct session *s)
{
    session_cancel_timer(s, &s->out.row_timer);
    row_now(s);
}

void session_out_row(struct session *s)
{
    s->out.row_dirty = true;
    if (!s->out.row_timer)
        session_timer(s, &s->out.row_timer, ROW_MS, row_now);
}

/* A process of a one-run tool has one turn; that it ended well is not kept. */
static bool counts(const struct session *s, struct agent_event *ev)
{
    if (ev->kind == AGENT_TURN_END && s->ad->mode == AGENT_ONE_RUN)
        ev->kind = AGENT_EXIT;
    return ev->kind == AGENT_USAGE || ev->kind == AGENT_EXIT;
}

void session_out_usage(struct session *s, const struct agent_event *from)
{
    struct out *o = &s->out;
    struct agent_event ev = *from; /* its strings are borrowed */
    struct usage g;

    if (!counts(s, &ev) || !session_key_newer(&o->counted, &ev))
        return;
    g = usage_sum_growth(&o->sum, &ev);
    usage_sum_add(&o->sum, &g);
    if (ev.kind != AGENT_USAGE)
        return;
    session_pair_usage(s, &ev, &g);
    session_out_row(s);
}

void session_out_unsum(struct session *s)
{
    usage_sum_release(&s->out.sum);
    s->out.summed = false;
    session_pair_unsum(s);
    session_out_row(s);
}

/* --- events ---------------------------------------------------------------------- */

static void keep_event(struct session *s, const struct agent_event *ev)
{
    struct agent_event as = *ev; /* its strings are borrowed */
    size_t at = s->out.json.len;
    struct st_event *e;

    if (s->out.store_down)
        return;
    agent_event_to_json(ev, &s->out.json);
    e = ARR_PUSH(&s->out.ev);
    e->offset = ev->offset;
    e->index = ev->index;
    e->len = s->out.json.len - at;
    buf_addc(&s->out.json, '\0');
    e->use = counts(s, &as) ? session_use(s, &as) : NULL;
    s->j->used |= e->use != NULL;
}

static void set_text(char **field, const char *text)
{
    if (!text || str_eq(text, *field))
        return;
    str_set(field, text);
}

void session_out_session(struct session *s, const struct agent_event *ev)
{
    if (ev->kind != AGENT_SESSION)
        return;
    set_text(&s->out.agent_session, ev->id);
    set_text(&s->out.model, ev->name);
}

void session_out_follow(struct session *s, const struct agent_event *ev)
{
    struct out *o = &s->out;
    enum sb_agent a = o->agent;
    char *line = transcribe_last_line(ev);

    if (line) {
        free(o->last_line);
        o->last_line = line;
        session_out_row(s);
    }
    session_out_session(s, ev);
    if (transcribe_agent_state(ev, &a) && ev->kind == AGENT_EXIT &&
        s->ad->mode == AGENT_ONE_RUN)
        a = AG_IDLE;
    a = session_ask_state(s, a);
    if (a == o->agent)
        return;
    if (!o->caught_up || o->feeding_again) {
        o->agent = a; /* history: the row learns where it ends */
        session_out_row(s);
    } else {
        session_agent(s, a);
    }
}

/* Where the messages and the end of a run stand among those of others at the same byte. */
static uint32_t run_index(uint64_t run)
{
    return SESSION_ECHO_INDEX + (run ? (uint32_t)((run - 1) % MAX_RUNS) * RUN_PLACES : 0);
}

bool session_out_is_message(uint32_t index)
{
    return index >= SESSION_ECHO_INDEX && index < SESSION_SAY_INDEX &&
           (index - SESSION_ECHO_INDEX) % RUN_PLACES < RUN_ENDS;
}

/* How a run of a one-run tool ended is no news when its turn's end was told. */
static bool is_noise(struct session *s, const struct agent_event *ev)
{
    bool told = s->out.turn_told;

    if (ev->kind == AGENT_TURN_BEGIN || ev->kind == AGENT_EXIT)
        s->out.turn_told = false;
    if (ev->kind == AGENT_TURN_END)
        s->out.turn_told = true;
    return ev->kind == AGENT_EXIT && s->ad->mode == AGENT_ONE_RUN && (ev->exit_code == 0 || told);
}

/* Runs that print nothing all end at one byte: each end stands behind its own message and
 * before the next one. An interrupted run that never told of a turn was one all the same. */
static void place_exit(struct session *s, struct agent_event *ev)
{
    if (!s->out.exit_run || s->ad->mode != AGENT_ONE_RUN)
        return;
    if (ev->kind == AGENT_EXIT && ev->signal == SIGINT && !s->out.turn_told) {
        ev->kind = AGENT_TURN_END;
        ev->outcome = AGENT_INTERRUPTED;
        ev->error_class = AGENT_ERR_NONE;
        ev->text = NULL;
    }
    ev->index = run_index(s->out.exit_run) + RUN_ENDS + s->out.exit_n++;
}

static void take_event(struct session *s, struct agent_event ev)
{
    bool noise;
    const char *key;

    /* what a run was given is known from its begin (session_turn_run) */
    if (ev.kind == AGENT_USER_ECHO && s->ad->mode == AGENT_ONE_RUN && !s->ad->echoes)
        return;
    place_exit(s, &ev);
    session_price(s, &ev);
    noise = is_noise(s, &ev);
    ev.raw_line += s->out.line_base;
    if (ev.kind == AGENT_TURN_BEGIN)
        s->out.turn_line = ev.raw_line - 1;
    session_ask_event(s, &ev);
    session_pair_event(s, &ev);
    if (s->out.feeding_again) {
        session_out_follow(s, &ev);
        session_turn_again(s, &ev);
        return;
    }
    if (!noise)
        keep_event(s, &ev);
    if (!session_key_newer(&s->out.seen, &ev)) { /* read once more to be kept */
        if (!noise)
            session_items_event(s, &ev, NULL); /* the screen was loaded anew from what is kept */
        return;
    }
    session_out_usage(s, &ev);
    session_out_follow(s, &ev); /* first: an echo must not find the agent idle */
    key = session_turn_event(s, &ev);
    if (!noise)
        session_items_event(s, &ev, key);
    session_pair_cost(s, &ev);
    session_relay_turn(s, &ev);
    session_ask_settle(s);
}

/* Errors quote what providers answered, and that may hold a key of ours. */
void session_out_event(void *ctx, const struct agent_event *from)
{
    struct agent_event ev = *from;
    bool error = ev.kind == AGENT_NOTICE || ev.kind == AGENT_TURN_END || ev.kind == AGENT_EXIT;
    char *text = error ? xstrdup(ev.text) : NULL;

    if (text) {
        log_redact(text, strlen(text));
        ev.text = text;
    }
    take_event(ctx, ev);
    free(text);
}

void session_out_note(struct session *s, const struct agent_event *ev)
{
    keep_event(s, ev);
    session_items_event(s, ev, NULL);
}

static void late_echo(struct session *s, uint64_t at, const char *text, const char *key)
{
    *ARR_PUSH(&s->out.late) = (struct late_echo){s->out.run.id, at, xstrdup(text), xstrdup(key)};
}

/* A message that was taken in while the run was being opened: it may be another one now. */
void session_out_opened(struct session *s)
{
    struct out *o = &s->out;

    for (size_t i = 0; i < o->late.n; i++) {
        const struct late_echo *l = &o->late.v[i];

        session_out_echo(s, l->run == o->run.id && l->at < o->pos ? l->at : o->pos, l->text,
                         l->key);
    }
    forget_late(o);
}

void session_out_echo(struct session *s, uint64_t at, const char *text, const char *key)
{
    struct agent_event ev = AGENT_EVENT(AGENT_USER_ECHO);
    uint64_t line = s->out.dec ? agent_dec_line(s->out.dec) : at;

    if (!s->out.open) {
        late_echo(s, at, text, key);
        return;
    }
    /* a line in its middle is an event at its begin when it is whole, and that is still to come */
    at = at < line ? at : line;
    ev.offset = at ? at - 1 : 0;
    /* several may come before the next byte */
    s->out.echo_n = s->out.echo_at == at + 1 ? s->out.echo_n + 1 : 0;
    s->out.echo_at = at + 1;
    ev.index = run_index(s->ad->mode == AGENT_ONE_RUN ? s->fo.p.last.run : 0) + s->out.echo_n;
    ev.text = (char *)text;
    ev.time_ms = clock_wall_ms();
    keep_event(s, &ev);
    session_items_event(s, &ev, key);
    /* not now: we may be in the middle of a piece that goes as a whole */
    session_keep_soon(s);
}

void session_out_partial(struct session *s)
{
    struct agent_event ev;

    if (!s->out.dec || !agent_dec_partial(s->out.dec, &ev))
        return;
    ev.raw_line += s->out.line_base;
    session_items_event(s, &ev, NULL);
}

/* --- bytes ------------------------------------------------------------------------ */

void session_out_feed(struct session *s, const char *data, size_t len)
{
    struct out *o = &s->out;

    if (!len)
        return;
    o->pos += len;
    if (!o->store_down)
        buf_add(&o->raw, data, len);
    agent_dec_feed(o->dec, data, len);
    if (o->raw.len >= FLUSH_BYTES)
        session_keep_flush(s);
    else
        session_keep_soon(s);
}

/* Its stderr is told only where it is this run's. */
void session_out_exit(struct session *s, const struct session_run_end *e)
{
    /* CLIs end with all kinds of status at a SIGINT of ours */
    bool ours = s->sigint_sent && (e->code == 130 || agent_dec_busy(s->out.dec));
    bool noted = e->interrupted && s->ad->mode == AGENT_ONE_RUN;
    int sig = ours || noted ? SIGINT : 0;

    s->sigint_sent = false;
    s->out.exit_run = e->run;
    s->out.exit_n = 0;
    agent_dec_exit(s->out.dec, e->code, sig, s->fo.p.err_run == e->run ? s->fo.p.err_tail : NULL);
    s->out.exit_run = 0;
    s->out.turn_told = false;
    session_keep_flush(s);
}
