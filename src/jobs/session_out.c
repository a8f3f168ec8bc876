/* From raw bytes of the agent's log to what is kept and shown. Each piece goes through
 * the decoder and then, bytes and events together, to the store; a byte counts as stored
 * when the store says so. A decoder that begins again reads the last turn once more:
 * those events are stored already and only bring its state back. */
#include "session_priv.h"

#include <cct/model/transcribe.h>
#include <cct/util/clock.h>
#include <cct/util/log.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define FLUSH_BYTES (256u << 10)
#define FLUSH_MS 20
#define IN_FLIGHT_BYTES (8u << 20) /* handed to the store, not durable yet */
#define FRAME_MS 33
#define BATCH_ITEMS 1000 /* a message with so many does not wait */
#define ROW_MS 250
#define STORE_RETRY_MS 15000
#define RUN_PLACES 64u /* for the events that stand at the end of a run */
#define RUN_ENDS 32u   /* the first of them are its messages */
#define MAX_RUNS (1u << 25)

static void flush_due(void *ctx);

void session_out_init(struct session *s)
{
    s->out.agent = AG_UNKNOWN;
    usage_sum_init(&s->out.sum);
    buf_init(&s->out.raw, 0);
    buf_init(&s->out.json, 0);
    buf_init(&s->out.lines.text, 0);
}

static void drop_pending(struct session *s)
{
    struct out *o = &s->out;

    for (size_t i = 0; i < o->ev.n; i++)
        st_use_free(o->ev.v[i].use);
    ARR_CLEAR(&o->ev);
    buf_clear(&o->json);
    buf_clear(&o->raw);
    session_cancel_timer(s, &o->flush_timer);
}

void session_out_close(struct session *s)
{
    drop_pending(s);
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

/* --- the screen ------------------------------------------------------------------ */

static struct ev_items *batch(struct session *s)
{
    if (!s->out.items)
        s->out.items = ev_new(EV_ITEMS);
    return s->out.items;
}

static void settle_lines(struct session *s)
{
    if (s->out.lines.n)
        session_lines_settle(s, batch(s));
}

static void post_items(void *ctx)
{
    struct session *s = ctx;
    struct out *o = &s->out;
    size_t bytes = 0;

    session_cancel_timer(s, &o->items_timer);
    if (s->sh.loading)
        return;
    settle_lines(s);
    if (!o->items)
        return;
    for (size_t i = 0; i < o->items->n; i++)
        bytes += sizeof(struct item) + o->items->v[i].text_len;
    o->items->m.bytes = (uint32_t)(bytes < UINT32_MAX ? bytes : UINT32_MAX);
    o->items->sandbox = s->row;
    jobs_post(s->j, o->items);
    o->items = NULL;
    o->items_at = clock_mono_ms();
}

void session_out_unshown(struct session *s)
{
    session_cancel_timer(s, &s->out.items_timer);
    session_lines_drop(s);
    if (s->out.items)
        msg_free(&s->out.items->m);
    s->out.items = NULL;
}

/* Of what was held back during the load, keep what it has not brought. */
void session_out_shown(struct session *s)
{
    const struct session_key *k = &s->sh.loaded;
    struct ev_items *b;
    size_t n = 0;

    settle_lines(s);
    b = s->out.items;
    for (size_t i = 0; b && i < b->n; i++) {
        struct item *it = &b->v[i];
        bool local =
            it->index >= SESSION_SAY_INDEX || (!it->offset && !it->index && it->kind == ITEM_USER);

        if (!local && session_key_reaches(k, it->offset, it->index)) {
            item_release(it);
            continue;
        }
        b->v[n] = *it;
        b->op[n++] = b->op[i];
    }
    if (b)
        b->n = n;
    post_items(s);
}

static void post_soon(struct session *s)
{
    if (s->out.items->n >= BATCH_ITEMS && !s->sh.loading)
        post_items(s);
    else
        session_out_lines_soon(s);
}

void session_out_lines_soon(struct session *s)
{
    int64_t since = clock_mono_ms() - s->out.items_at;

    if (since >= FRAME_MS)
        session_timer(s, &s->out.items_timer, 0, post_items);
    else if (!s->out.items_timer)
        session_timer(s, &s->out.items_timer, FRAME_MS - since, post_items);
}

void session_out_put(struct session *s, struct item *it)
{
    if (!s->sh.on) {
        item_release(it);
        return;
    }
    settle_lines(s);
    *ev_items_add(batch(s), ITEM_PUT) = *it;
    memset(it, 0, sizeof(*it));
    post_soon(s);
}

static void show_event(struct session *s, const struct agent_event *ev, const char *key)
{
    struct ev_items *b;
    size_t n;

    if (!session_show_live(s, ev))
        return;
    settle_lines(s);
    b = batch(s);
    n = b->n;
    transcribe(ev, session_who(s), b);
    /* the echo takes the place of the message that waited under this id */
    if (key && b->n > n && b->v[n].kind == ITEM_USER) {
        str_set(&b->v[n].id, key);
        session_show_echo(s, key);
    }
    if (b->n > n)
        post_soon(s);
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
        if (ev.kind == AGENT_USER_ECHO)
            session_turn_old_echo(s, ev.text, false);
        return;
    }
    if (!noise)
        keep_event(s, &ev);
    if (!session_key_newer(&s->out.seen, &ev)) { /* read once more to be kept */
        if (!noise)
            show_event(s, &ev, NULL); /* the screen was loaded anew from what is kept */
        return;
    }
    session_out_usage(s, &ev);
    session_out_follow(s, &ev); /* first: an echo must not find the agent idle */
    key = session_turn_event(s, &ev);
    if (!noise)
        show_event(s, &ev, key);
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
    show_event(s, ev, NULL);
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
    show_event(s, &ev, key);
    /* not now: we may be in the middle of a piece that goes as a whole */
    if (!s->out.flush_timer)
        session_timer(s, &s->out.flush_timer, FLUSH_MS, flush_due);
}

void session_out_partial(struct session *s)
{
    struct agent_event ev;

    if (!s->out.dec || !agent_dec_partial(s->out.dec, &ev))
        return;
    ev.raw_line += s->out.line_base;
    show_event(s, &ev, NULL);
}

/* --- to the store ---------------------------------------------------------------- */

bool session_out_lags(struct session *s)
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
    drop_pending(s);
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

static void flush_due(void *ctx)
{
    struct session *s = ctx;

    s->out.flush_timer = 0;
    session_out_flush(s);
}

void session_out_flush(struct session *s)
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
        session_out_flush(s);
    else if (!o->flush_timer)
        session_timer(s, &o->flush_timer, FLUSH_MS, flush_due);
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
    session_out_flush(s);
}
