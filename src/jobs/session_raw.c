/* The session of an adopted process: nothing of ours runs beside it, so its output is
 * taken from envd's live stream and what passes while no cc-tui is connected is lost, which
 * the record says. One instance at a time writes the record (a lease); the others read it. */
#include "foreign_priv.h"
#include "session_follow.h"
#include "session_out.h"
#include "session_priv.h"
#include "session_raw.h"
#include "session_relay.h"
#include "session_show.h"

#include <cct/text/clean.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEASE_MS = 15000, RENEW_MS = 5000, LOOK_MS = 1000, FIRST_LOOK_MS = 20, PART_MS = 300 };

static void renew(void *ctx);
static void look(void *ctx);

void session_raw_init(struct session *s, const struct sandbox *row)
{
    int pid;
    uint64_t ident;

    if (!row->adopted || !proc_session_parse(row->session, &pid, &ident))
        return;
    s->raw = xcalloc(1, sizeof(*s->raw));
    s->raw->pid = pid;
    s->raw->ident = ident;
}

static char *lease_name(const struct session *s)
{
    return xasprintf("process-%" PRIu64, s->row);
}

/* --- bytes ----------------------------------------------------------------------- */

static void feed(void *ctx, const char *data, size_t len)
{
    session_out_feed(ctx, data, len);
}

/* A remark of ours stands in the record like the runner's own marks. */
static void mark(struct session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void mark(struct session *s, const char *fmt, ...)
{
    struct buf b = BUF_INIT;
    va_list ap;

    lanes_flush(&s->raw->lanes, feed, s);
    buf_adds(&b, "[cc-tui: ");
    va_start(ap, fmt);
    buf_addv(&b, fmt, ap);
    va_end(ap);
    buf_adds(&b, "]\n");
    session_out_feed(s, b.p, b.len);
    buf_release(&b);
}

static void mark_gap(struct session *s, int64_t from, const char *why)
{
    struct buf b = BUF_INIT;

    procwatch_gap(&b, from, clock_wall_ms());
    mark(s, "%s%s", buf_str(&b), why);
    buf_release(&b);
}

/* On the screen only; the whole line comes to the same place. */
static void show_part(void *ctx)
{
    struct session *s = ctx;
    const struct buf *part = lanes_part(&s->raw->lanes);
    struct item it = {.kind = ITEM_RAW, .exit_code = -1, .offset = s->out.pos};
    struct buf b = BUF_INIT;
    struct text_runs runs = {NULL, 0, 0};

    s->raw->part_timer = 0;
    if (!part || !s->out.open || !s->sh.on || s->sh.loading)
        return;
    clean_text(part->p, part->len, &b, &runs);
    it.text = buf_detach(&b, &it.text_len);
    it.runs = runs.v;
    it.n_runs = runs.n;
    session_items_put(s, &it);
}

static void on_data(void *ctx, enum envd_stream st, const char *data, size_t len)
{
    struct session *s = ctx;
    struct session_raw *r = s->raw;
    char why[80];

    r->saw_pty |= st == ENVD_PTY;
    if (!s->out.open || session_keep_lags(s)) { /* the process never waits for us */
        if (!r->dropped)
            r->dropped_from = clock_wall_ms();
        r->dropped += len;
        return;
    }
    if (r->dropped) {
        snprintf(why, sizeof(why), ": %" PRIu64 " bytes came faster than they could be kept",
                 r->dropped);
        mark_gap(s, r->dropped_from, why);
        r->dropped = 0;
    }
    lanes_add(&r->lanes, st, data, len, feed, s);
    session_cancel_timer(s, &r->part_timer);
    if (lanes_part(&r->lanes))
        session_timer(s, &r->part_timer, PART_MS, show_part);
}

/* --- how it goes ----------------------------------------------------------------- */

static void on_live(void *ctx, const struct proc *p, int64_t lost_at)
{
    struct session *s = ctx;
    struct session_raw *r = s->raw;
    char now[32];

    if (!lost_at)
        lost_at = r->lost_at;
    clock_format_rfc3339(now, sizeof(now), clock_wall_ms());
    if (!s->out.pos)
        mark(s, "process %d adopted at %s, nothing from before is kept: %s", r->pid, now,
             p->command);
    else if (lost_at)
        mark_gap(s, lost_at, "");
    else
        mark(s, "followed again from %s on, what came in between was not seen", now);
    r->live = true;
    r->lost_at = clock_wall_ms();
    s->fo.state = FO_TAIL;
    s->fo.attempt = 0;
    s->fo.said_loss = false;
    s->out.caught_up = true;
    if (s->out.agent != AG_IDLE)
        s->out.agent = AG_WORKING;
    session_agent(s, s->out.agent);
    session_show_acked(s);
    session_relay(s);
}

static void on_lost(void *ctx, const struct err *e, bool paused)
{
    struct session *s = ctx;

    s->raw->live = false;
    s->raw->lost_at = clock_wall_ms();
    lanes_flush(&s->raw->lanes, feed, s);
    s->out.caught_up = false;
    s->fo.state = paused ? FO_STOPPED : FO_WAIT;
    if (!paused) {
        s->fo.said_loss = true;
        session_say(s, AGENT_WARN, "connection to the adopted process lost, trying again: %s",
                    e->text);
    }
    session_logs_go(s);
}

static void close_record(struct session *s, int code, int sig)
{
    agent_dec_exit(s->out.dec, code, sig, NULL);
    session_keep_flush(s);
    store_run_end(s->j->o.store, s->out.run.id, code, sig, (struct st_to){NULL, 0});
}

/* It is over; whatever waited for it is told. */
static void ended(struct session *s)
{
    struct err e = {0};

    s->raw->over = true;
    session_follow_stop(s, FO_ENDED);
    s->fo.ended_at = clock_mono_ms();
    err_set(&e, ERR_CONFLICT, "the adopted process has ended");
    session_wait_fail_all(s, &e);
    session_relay(s);
    session_logs_go(s);
}

static void on_end(void *ctx, const struct proc_end *end)
{
    struct session *s = ctx;
    struct session_raw *r = s->raw;
    const struct sandbox *row = session_row(s);
    bool gone = end->err.code == ERR_CONFLICT && (!row || !core_row_live(row));
    char *text;

    procwatch_free(r->w);
    r->w = NULL;
    if (gone) { /* with its sandbox, of which the list tells */
        session_follow_stop(s, FO_STOPPED);
        session_logs_go(s);
        return;
    }
    lanes_flush(&r->lanes, feed, s);
    if (!end->known && r->lost_at)
        mark_gap(s, r->lost_at, "; the process has ended since");
    close_record(s, end->exit_code, end->sig);
    if (!end->known || (end->exit_code == 0 && !end->sig) || end->sig == SIGTERM ||
        end->sig == SIGKILL) { /* unseen, well, or on somebody's word */
        session_agent(s, AG_EXITED);
    } else {
        text = end->sig ? xasprintf("the adopted process was ended by signal %d; kill the sandbox "
                                    "or adopt another process", end->sig)
                        : xasprintf("the adopted process ended with status %d; kill the sandbox "
                                    "or adopt another process", end->exit_code);
        session_failed(s, text);
        free(text);
    }
    ended(s);
}

/* --- following ------------------------------------------------------------------- */

static void on_opened(struct session *s)
{
    struct procwatch_cb cb = {.on_live = on_live, .on_data = on_data, .on_lost = on_lost,
                              .on_end = on_end, .ctx = s};

    const struct sandbox *row = session_row(s);

    if (!s->raw->holds)
        return; /* let go since; who follows it again opens it again */
    if (s->out.run.ended) {
        s->out.agent = row ? row->agent : AG_EXITED;
        if (s->out.agent == AG_UNKNOWN || s->out.agent == AG_WORKING)
            session_agent(s, AG_EXITED);
        ended(s);
        return;
    }
    s->fo.state = FO_ASK;
    s->raw->w = procwatch_new(s->j, s->row, s->raw->pid, s->raw->ident, &cb);
    session_show_acked(s);
}

/* Another instance writes the record: what it has stored is shown. */
static void on_newest(void *ctx, struct st_reply *r)
{
    struct session *s = ctx;
    bool more = r->run.id && (r->run.id != s->out.run.id || r->run.stored != s->out.run.stored);

    if (!r->err.code && r->run.id)
        s->out.run = r->run;
    if (more && s->sh.on)
        session_show(s, true);
    s->out.caught_up = true; /* as far as a reader can be */
    session_logs_go(s);
    if (r->run.ended)
        ended(s);
}

static void read_on(struct session *s)
{
    s->fo.state = FO_HOLD;
    store_run_open(s->j->o.store, s->row, s->name, -1, jobs_store(s->j, on_newest, s, s->raw));
    /* the reader that made us follow is known a moment later */
    session_timer(s, &s->raw->timer, s->raw->looked ? LOOK_MS : FIRST_LOOK_MS, look);
    s->raw->looked = true;
}

static void on_lease(void *ctx, struct st_reply *r)
{
    struct session *s = ctx;
    bool had = s->raw->holds;

    if (r->err.code && had) { /* it is ours for a while yet */
        session_timer(s, &s->raw->timer, LOOK_MS, renew);
        return;
    }
    s->raw->holds = r->got;
    if (!r->got) {
        if (had)
            session_follow_stop(s, FO_OFF);
        read_on(s);
        return;
    }
    session_timer(s, &s->raw->timer, RENEW_MS, renew);
    if (!had)
        session_open(s, 0, on_opened);
}

static void ask_lease(struct session *s)
{
    char *name = lease_name(s);

    store_lease(s->j->o.store, name, s->j->o.owner, LEASE_MS,
                jobs_store(s->j, on_lease, s, s->raw));
    free(name);
}

static void renew(void *ctx)
{
    struct session *s = ctx;

    s->raw->timer = 0;
    ask_lease(s);
}

/* Who only reads what there is, as `logs` does, leaves the process and its record alone. */
static bool wants_stream(const struct session *s)
{
    bool wanted = s->j->o.follow_all;

    for (size_t i = 0; i < s->readers.n; i++)
        wanted |= s->readers.v[i]->follow;
    return wanted && !session_readonly(s);
}

static void look(void *ctx)
{
    struct session *s = ctx;

    s->raw->timer = 0;
    if (!wants_stream(s))
        read_on(s);
    else
        ask_lease(s);
}

void session_raw_go(struct session *s)
{
    struct session_raw *r = s->raw;

    if (r->over) {
        s->fo.state = FO_ENDED;
        s->fo.ended_at = clock_mono_ms();
        session_logs_go(s);
    } else if (!wants_stream(s)) {
        read_on(s);
    } else {
        s->fo.state = FO_OPEN;
        ask_lease(s);
    }
}

void session_raw_close(struct session *s)
{
    struct session_raw *r = s->raw;
    char *name;

    if (!r)
        return;
    if (r->w && s->out.open)
        lanes_flush(&r->lanes, feed, s);
    if (r->live)
        r->lost_at = clock_wall_ms();
    r->live = false;
    procwatch_free(r->w);
    r->w = NULL;
    session_cancel_timer(s, &r->timer);
    session_cancel_timer(s, &r->part_timer);
    jobs_store_forget(s->j, r);
    if (!r->holds)
        return;
    r->holds = false;
    name = lease_name(s);
    store_lease_drop(s->j->o.store, name, s->j->o.owner);
    free(name);
}

void session_raw_free(struct session *s)
{
    if (!s->raw)
        return;
    session_raw_close(s);
    session_input_release(s->raw);
    lanes_release(&s->raw->lanes);
    free(s->raw);
    s->raw = NULL;
}

/* Who follows it waits for the stream, or the answer would go by unseen. */
bool session_raw_takes_input(const struct session *s)
{
    const struct session_raw *r = s->raw;
    bool others = s->fo.state == FO_HOLD; /* another instance follows it */

    return !r->text && (r->live || r->over || others || !wants_stream(s));
}
