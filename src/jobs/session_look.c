/* A look into the session folder: is there an agent, does it live, where does its log
 * stand; then the store's run is brought to it. And the other end: runs that are over,
 * the session that is over. */
#include "session_ask.h"
#include "session_follow.h"
#include "session_out.h"
#include "session_priv.h"
#include "session_relay.h"
#include "session_show.h"
#include "session_start.h"

#include <cct/util/clock.h>
#include <cct/util/xalloc.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PROBE_MS 20000
#define MISSING_MS 60000

/* --- the end --------------------------------------------------------------------- */

static char *last_line(const char *text)
{
    size_t end = text ? strlen(text) : 0, start;

    while (end && strchr(" \t\r\n", text[end - 1]))
        end--;
    for (start = end; start && text[start - 1] != '\n'; start--) {
    }
    return end > start ? xstrndup(text + start, end - start < 300 ? end - start : 300) : NULL;
}

static char *end_text(struct session *s)
{
    const struct session_probe *p = &s->fo.p;
    char *tail = last_line(p->err_tail), *t;

    if (p->lost)
        t = xstrdup(
            "the agent is gone: its keeper in the sandbox was killed; restart the agent "
            "or kill the sandbox");
    else if (p->exit_code == 127 || p->exit_code == 126)
        t = xasprintf(
            "the agent's program could not be run (status %d)%s%s; check the template",
            p->exit_code, tail ? ": " : "", tail ? tail : "");
    else
        t = xasprintf("the agent ended with status %d%s%s; restart it or kill the sandbox",
                      p->exit_code, tail ? ": " : "", tail ? tail : "");
    free(tail);
    return t;
}

static void on_end_stored(void *ctx, struct st_reply *r)
{
    struct out *o = &((struct session *)ctx)->out;

    if (r->err.code || r->run.id != o->run.id)
        return;
    o->run.ended = true;
    o->run.exit_code = r->run.exit_code;
    o->run.exit_signal = r->run.exit_signal;
}

/* An agent that ended is looked at again and again: the time of its end is that of the first. */
static void store_end(struct session *s)
{
    struct out *o = &s->out;

    if (o->run.ended && o->run.exit_code == s->fo.p.exit_code && o->ended_at == o->pos)
        return;
    o->ended_at = o->pos;
    store_run_end(s->j->o.store, o->run.id, s->fo.p.exit_code, 0,
                  jobs_store(s->j, on_end_stored, s, o));
}

void session_look_finish(struct session *s)
{
    const struct session_probe *p = &s->fo.p;
    char *text;

    session_keep_flush(s);
    store_end(s);
    session_follow_ended(s);
    if (p->exit_code == 0 && !p->lost) {
        session_agent(s, AG_EXITED);
    } else if (!s->prov) {
        text = end_text(s);
        session_failed(s, text);
        free(text);
    }
    session_relay_ended(s);
    session_ask_over(s);
    session_logs_go(s);
    if (s->prov)
        session_provision_go(s);
}

/* Ends of runs that lie at the decoder's place. */
void session_look_ends(struct session *s)
{
    const struct session_probe *p = &s->fo.p;

    for (size_t i = 0; i < p->ends.n; i++) {
        const struct session_run_end *e = &p->ends.v[i];

        if (e->run <= s->fo.runs_done || e->offset > s->out.pos)
            continue;
        s->fo.runs_done = e->run;
        if (s->ad->mode == AGENT_ONE_RUN && e->offset < s->out.pos)
            s->sigint_sent = false; /* told late: what is decoded now is another run's turn */
        else
            session_out_exit(s, e);
    }
}

uint64_t session_look_next_end(const struct session *s)
{
    const struct session_probe *p = &s->fo.p;

    for (size_t i = 0; i < p->ends.n; i++)
        if (p->ends.v[i].run > s->fo.runs_done)
            return p->ends.v[i].offset;
    return UINT64_MAX;
}

/* --- looking --------------------------------------------------------------------- */

static int64_t epoch_key(const struct session *s)
{
    return s->fo.p.epoch | s->fo.bump << 20;
}

/* Said when the new run is there: the transcript begins anew with it. */
static void say_gap(struct session *s)
{
    if (s->fo.wrong)
        session_say(s, AGENT_WARN,
                    "what came from the sandbox up to byte %" PRIu64
                    " is not what the agent's log holds: it was read again from the begin",
                    s->fo.gap);
    else if (s->fo.gap)
        session_say(s, AGENT_WARN,
                    "the agent's log in the sandbox is shorter than the %" PRIu64
                    " bytes that came: somebody emptied it, or they came twice; it is read from "
                    "its begin, output may be missing here",
                    s->fo.gap);
    else
        return;
    s->fo.wrong = false;
    s->out.agent = AG_IDLE; /* the turn's end may be among what is lost */
    session_wait_lost(s);
    s->re.lost = s->re.step == RE_SENT || s->re.moving;
    s->fo.gap = 0;
}

/* The log is another one than that of which `had` bytes were read: what ended there has no place
 * in this one. The last run may have ended in this one, though that was told before we knew. */
static void forget_runs(struct session *s, uint64_t had)
{
    const struct session_probe *p = &s->fo.p;
    struct follow *f = &s->fo;

    for (size_t i = 0; i < p->ends.n; i++) {
        const struct session_run_end *e = &p->ends.v[i];
        bool old = e->offset > p->size ? e->offset <= had
                                       : e->run <= f->runs_done && e->run < p->last.run;

        if (old && e->run > f->runs_old)
            f->runs_old = e->run;
    }
}

static void on_opened(struct session *s);

static void on_open(struct session *s)
{
    struct out *o = &s->out;
    const struct session_probe *p = &s->fo.p;
    bool over = o->run.ended && o->run.exit_signal == -1;

    if (s->fo.state != FO_OPEN)
        return;
    if (over || p->size < o->pos || (s->fo.wrong && !s->fo.gap)) {
        if (!over) {
            s->fo.gap = o->pos;
            if (s->fo.wrong)
                session_out_unsum(s);
            store_run_end(s->j->o.store, o->run.id, -1, -1, (struct st_to){NULL, 0});
            /* what lies behind the end of a log that got shorter was used all the same */
            store_ledger_forget(s->j->o.store, o->run.id, s->fo.wrong ? UINT64_MAX : p->size);
        }
        s->fo.bump++;
        if (!s->fo.wrong)
            forget_runs(s, o->pos);
        s->fo.runs_done = 0;
        session_open(s, epoch_key(s), on_opened);
        return;
    }
    say_gap(s);
    /* ends inside stored bytes were decoded with them */
    if (!s->fo.runs_done)
        for (size_t i = 0; i < p->ends.n; i++)
            if (p->ends.v[i].offset < o->pos || p->ends.v[i].run <= s->fo.runs_old)
                s->fo.runs_done = p->ends.v[i].run;
    session_look_ends(s);
    session_follow_read(s);
}

/* Another reader may have stored more than there was when we looked. */
static void on_opened(struct session *s)
{
    if (s->fo.state != FO_OPEN)
        return;
    if (s->fo.p.size < s->out.pos)
        session_look(s);
    else
        on_open(s);
}

static void say_marks(struct session *s)
{
    const struct session_probe *p = &s->fo.p;

    if (p->cut_at && !s->fo.said_cut)
        session_say(s, AGENT_WARN,
                    "the agent's log has reached its cap: what it prints now is not kept");
    if (p->diskfull && !s->fo.said_full)
        session_say(s, AGENT_WARN,
                    "the sandbox's disk is or was full: output of the agent is missing");
    s->fo.said_cut = p->cut_at != 0;
    s->fo.said_full = p->diskfull;
}

static void use_probe(struct session *s)
{
    const struct session_probe *p = &s->fo.p;
    int64_t open_epoch = s->out.open_epoch & ((1 << 20) - 1);

    if (!p->found || !p->started) {
        const struct sandbox *r = session_row(s);

        if (!s->fo.said_missing && r && r->agent != AG_STARTING) {
            s->fo.said_missing = true;
            if (r->state != SB_ERROR) /* that row says already at which step it ended */
                session_say(s, AGENT_WARN,
                        "no agent was started in this sandbox: its session folder '%s' "
                        "is missing",
                        s->name);
        }
        s->fo.missing = true;
        if (!s->prov)
            jobs_agent_missing(s->j, s->row);
        session_wait_missing(s);
        if (s->fo.said_missing && !s->prov)
            session_ask_over(s); /* known: who never began asks nothing */
        session_logs_go(s);
        session_follow_wait(s, s->fo.said_missing ? MISSING_MS : 1000);
        if (s->prov)
            session_provision_go(s);
        return;
    }
    s->fo.missing = false;
    if (!s->prov && session_row(s) && session_row(s)->agent == AG_STARTING)
        jobs_agent_found(s->j, s->row);
    say_marks(s);
    if (!p->alive && !p->exited && !s->fo.buried && !session_readonly(s)) {
        s->fo.buried = true; /* the runner publishes that it is lost, and ends */
        session_life(s);
    }
    s->fo.wrong = s->out.open && open_epoch == p->epoch && p->size >= s->out.pos &&
                  !session_sum_agrees(s, p->sum);
    if (s->out.open && open_epoch == p->epoch && !s->out.opening) {
        s->fo.state = FO_OPEN;
        on_open(s);
        return;
    }
    if (s->out.open && open_epoch != p->epoch)
        s->fo.gap = s->out.pos;
    if (open_epoch != p->epoch) {
        s->fo.bump = 0;
        s->fo.runs_old = 0;
    }
    s->fo.runs_done = 0;
    s->fo.state = FO_OPEN;
    session_open(s, epoch_key(s), on_opened);
}

static void on_probe(void *ctx, const struct envd_run_result *r)
{
    struct session *s = ctx;

    s->fo.call = 0;
    if (r->err.code) {
        session_follow_lost(s, &r->err);
        return;
    }
    session_probe_release(&s->fo.p);
    session_probe_parse(&s->fo.p, r->out, r->out_len);
    session_set_home(s, s->fo.p.home);
    if (!s->dir) {
        struct err e = {0};

        err_set(&e, ERR_PROTO, "the sandbox did not tell its home folder");
        session_follow_lost(s, &e);
        return;
    }
    use_probe(s);
}

void session_look(struct session *s)
{
    char from[32], len[32];
    const char *args[] = {s->name, from, len, NULL};

    session_sum_range(s, from, len);
    s->fo.state = FO_PROBE;
    s->fo.call = session_sh(s, session_probe_script, args, PROBE_MS, on_probe, s);
}
