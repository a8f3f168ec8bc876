/* Who waits for the answer to a message (send --wait). Its turn is found by its place: for tools
 * that run once per message the number of the run, else the byte of the log behind which the
 * agent took it in. Of a message that another instance handed over the sandbox is asked for it:
 * that it was taken in says nothing of whether its turn is over, at work, or still to begin. */
#include "session_out.h"
#include "session_priv.h"
#include "session_relay.h"
#include "session_show.h"

#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

#define CALL_MS 20000
#define AGAIN_MS 1000 /* the sandbox did not say it */
#define TRIES 5
enum { TURNS = 16 }; /* ended ones that are kept while somebody waits */

static void look_again(void *ctx);

static void forget_turns(struct session *s)
{
    for (size_t i = 0; i < s->waits.turns.n; i++)
        free(s->waits.turns.v[i].text);
    ARR_CLEAR(&s->waits.turns);
}

static void waiter_end(struct session *s, size_t i, const struct err *e,
                       const struct turn_end *how)
{
    struct ev_done *ev = ev_new(EV_DONE);

    ev->m.req_id = s->waits.v.v[i].req_id;
    if (e)
        ev->err = *e;
    ev->sandbox = s->row;
    ev->outcome = how ? how->outcome : AGENT_FAILED;
    ev->exit_code = how ? how->exit_code : -1;
    ev->text = how ? xstrdup(how->text) : NULL;
    free(s->waits.v.v[i].id);
    ARR_REMOVE(&s->waits.v, i);
    jobs_post(s->j, ev);
    if (!s->waits.v.n)
        forget_turns(s);
}

/* The way to the sandbox is given up, and with it what was asked there. */
void session_wait_stop(struct session *s)
{
    if (s->waits.call)
        envd_cancel(s->envd, s->waits.call);
    s->waits.call = 0;
    session_cancel_timer(s, &s->waits.timer);
}

void session_wait_release(struct session *s)
{
    for (size_t i = 0; i < s->waits.v.n; i++)
        free(s->waits.v.v[i].id);
    ARR_RELEASE(&s->waits.v);
    forget_turns(s);
    ARR_RELEASE(&s->waits.turns);
    session_cancel_timer(s, &s->waits.timer);
}

/* --- they end without an answer ------------------------------------------------------ */

void session_wait_fail(struct session *s, uint64_t message, const struct err *e)
{
    for (size_t i = s->waits.v.n; i-- > 0;)
        if (s->waits.v.v[i].message == message)
            waiter_end(s, i, e, NULL);
}

void session_wait_fail_all(struct session *s, const struct err *e)
{
    for (size_t i = s->waits.v.n; i-- > 0;)
        waiter_end(s, i, e, NULL);
}

static bool is_handed(const struct session *s, const struct waiter *w)
{
    return w->in_turn || w->message == s->due;
}

void session_wait_fail_queued(struct session *s, const struct err *e)
{
    for (size_t i = s->waits.v.n; i-- > 0;)
        if (!is_handed(s, &s->waits.v.v[i]))
            waiter_end(s, i, e, NULL);
}

/* The agent has ended: what it took in has no answer, what still waits goes on waiting. */
void session_wait_over(struct session *s)
{
    struct err none = {0}, waits = {0};

    err_set(&none, ERR_CONFLICT, "the agent has ended without an answer");
    err_set(&waits, ERR_CONFLICT,
            "the agent has ended: the message is queued and goes to it after a restart");
    for (size_t i = s->waits.v.n; i-- > 0;) {
        const struct waiter *w = &s->waits.v.v[i];
        bool handed = is_handed(s, w) || (s->re.step == RE_SENT && s->re.msg.id == w->message);

        waiter_end(s, i, handed ? &none : &waits, NULL);
    }
    s->due = 0;
}

/* The log at hand does not tell any more how the turn went on. */
void session_wait_lost(struct session *s)
{
    struct err e = {0};

    err_set(&e, ERR_CONFLICT, "the agent's log was emptied or read anew before the answer was "
            "complete: the message was taken in, see the logs for what is there of the answer");
    for (size_t i = s->waits.v.n; i-- > 0;)
        if (is_handed(s, &s->waits.v.v[i]))
            waiter_end(s, i, &e, NULL);
    s->due = 0;
    s->ended.at = 0;
    forget_turns(s);
    session_others_forget(s);
}

void session_wait_missing(struct session *s)
{
    const struct sandbox *r = session_row(s);
    struct err e = {0};

    if (!s->fo.missing || s->prov || !r || r->agent == AG_STARTING)
        return; /* it may be on its way */
    err_set(&e, ERR_CONFLICT, "no agent runs in this sandbox: the message is queued and goes to it "
            "once it was started ('cc-tui restart')");
    session_wait_fail_all(s, &e);
}

/* --- places -------------------------------------------------------------------------- */

/* The run whose output is being read: the first whose end was not. */
static uint64_t run_at_hand(const struct session *s)
{
    const struct session_probe *p = &s->fo.p;

    if (s->out.exit_run)
        return s->out.exit_run;
    for (size_t i = 0; i < p->ends.n; i++) {
        const struct session_run_end *e = &p->ends.v[i];

        if (s->out.feeding_again ? e->offset > s->out.open_at : e->run > s->fo.runs_done)
            return e->run;
    }
    return p->last.run > s->fo.runs_done ? p->last.run : s->fo.runs_done + 1;
}

uint64_t session_wait_place(const struct session *s)
{
    if (s->ad->mode == AGENT_ONE_RUN)
        return run_at_hand(s);
    return s->out.dec ? agent_dec_offset(s->out.dec) : 0;
}

/* Everything since that place went by our decoder, or is still to come: a turn whose end it has not
 * seen has none yet. */
static bool saw_all(const struct session *s, uint64_t from)
{
    return from > (s->ad->mode == AGENT_ONE_RUN ? s->fo.runs_done : s->out.began);
}

/* --- a turn ended -------------------------------------------------------------------- */

void session_wait_turn_ended(struct session *s, int outcome, int exit_code, const char *text)
{
    struct turn_end how = {session_wait_place(s), outcome, exit_code, NULL};

    s->ended.at = how.at;
    s->ended.outcome = outcome;
    s->ended.exit_code = exit_code;
    if (!s->waits.v.n)
        return;
    how.text = xstrdup(text);
    for (size_t i = s->waits.v.n; i-- > 0;)
        if (s->waits.v.v[i].in_turn && how.at >= s->waits.v.v[i].from)
            waiter_end(s, i, NULL, &how);
    if (!s->waits.v.n) {
        free(how.text);
        return;
    }
    if (s->waits.turns.n == TURNS) {
        free(s->waits.turns.v[0].text);
        ARR_REMOVE(&s->waits.turns, 0);
    }
    *ARR_PUSH(&s->waits.turns) = how;
}

/* At the live end all was read: an agent that waits for a message has ended that turn. */
static void end_missed(struct session *s)
{
    const struct turn_end last = {s->ended.at, s->ended.outcome, s->ended.exit_code,
                                  (char *)buf_str(&s->answer)};

    if (!s->out.caught_up || s->out.agent != AG_IDLE)
        return; /* its end is still to come */
    for (size_t i = s->waits.v.n; i-- > 0;)
        if (s->waits.v.v[i].missed)
            waiter_end(s, i, NULL, &last);
}

void session_wait_missed(struct session *s, uint64_t message)
{
    for (size_t i = 0; i < s->waits.v.n; i++)
        if (s->waits.v.v[i].message == message)
            s->waits.v.v[i].in_turn = s->waits.v.v[i].missed = true;
    end_missed(s);
}

void session_wait_delivered(struct session *s, uint64_t message)
{
    for (size_t i = 0; i < s->waits.v.n; i++)
        if (s->waits.v.v[i].message == message && !s->waits.v.v[i].in_turn) {
            s->waits.v.v[i].in_turn = true;
            s->waits.v.v[i].from = session_wait_place(s);
        }
}

static void place(struct session *s, size_t i, uint64_t from)
{
    struct waiter *w = &s->waits.v.v[i];
    const struct turn_end *t = s->waits.turns.v, *end = t + s->waits.turns.n;
    struct err gone = {0};

    err_set(&gone, ERR_CONFLICT, "the message was answered before this cc-tui could read it: see "
            "the logs for the answer");
    while (t < end && (s->ad->mode == AGENT_ONE_RUN ? t->at != from : t->at < from))
        t++;
    if (t < end) {
        waiter_end(s, i, NULL, t);
        return;
    }
    if (s->ad->mode == AGENT_ONE_RUN && from <= s->fo.runs_done && from < s->fo.p.last.run) {
        waiter_end(s, i, &gone, NULL); /* what was read of the last one is not its answer */
        return;
    }
    w->in_turn = true;
    w->missed = !saw_all(s, from);
    w->from = w->missed ? 0 : from;
}

bool session_wait_placed(struct session *s, uint64_t message, uint64_t from)
{
    for (size_t i = s->waits.v.n; i-- > 0;)
        if (s->waits.v.v[i].message == message)
            place(s, i, from);
    end_missed(s);
    return s->ended.at < from && saw_all(s, from);
}

void session_wait_run(struct session *s, const char *id, uint64_t run)
{
    for (size_t i = s->waits.v.n; i-- > 0;)
        if (s->waits.v.v[i].id && str_starts(id, s->waits.v.v[i].id))
            place(s, i, run);
}

/* --- asking the sandbox -------------------------------------------------------------- */

static void on_asked(void *ctx, const struct envd_run_result *r)
{
    struct session *s = ctx;
    uint64_t message = s->waits.message, from;
    bool ended;
    enum session_taken t = session_taken_parse(r->out ? r->out : "", &ended, &from);

    s->waits.call = 0;
    if (r->err.code == 0 && t == TAKEN_YES && from) {
        session_wait_placed(s, message, from);
    } else if (r->err.code == 0 && (t == TAKEN_YES || ++s->waits.tries > TRIES)) {
        session_wait_missed(s, message); /* nobody can say it any more */
    } else {
        session_timer(s, &s->waits.timer, AGAIN_MS, look_again);
        return;
    }
    s->waits.tries = 0;
    session_wait_look(s); /* others may wait, too */
}

static void ask(struct session *s, const struct waiter *w)
{
    const char *args[] = {s->dir, w->id, NULL};

    if (!s->out.caught_up || s->waits.call || s->waits.timer)
        return; /* with the next look */
    if (!s->envd || !s->dir) {
        session_wait_missed(s, w->message);
        return;
    }
    if (s->waits.message != w->message)
        s->waits.tries = 0;
    s->waits.message = w->message;
    s->waits.call = session_sh(s, session_taken_script, args, CALL_MS, on_asked, s);
}

/* --- looking ------------------------------------------------------------------------- */

/* The state the message has now; it may have changed before anybody waited. */
static void use_state(struct session *s, size_t i, const struct message *m)
{
    struct waiter *w = &s->waits.v.v[i];
    char id[80];
    struct err e = {0};

    session_relay_id(id, sizeof(id), m->key);
    str_set(&w->id, id);
    if (m->state == MSG_DELIVERED && !is_handed(s, w)) {
        ask(s, w);
    } else if (m->state == MSG_FAILED || m->state == MSG_UNCONFIRMED ||
               m->state == MSG_CANCELLED) {
        err_set(&e, ERR_CANCELLED, "the message was not delivered: %s",
                m->error ? m->error : msg_state_name(m->state));
        waiter_end(s, i, &e, NULL);
    }
}

void session_wait_state(struct session *s, const struct message *m)
{
    for (size_t i = s->waits.v.n; i-- > 0;)
        if (i < s->waits.v.n && s->waits.v.v[i].message == m->id)
            use_state(s, i, m);
}

static void on_message(void *ctx, struct st_reply *r)
{
    struct session *s = ctx;

    if (!r->err.code && r->msg.id)
        session_wait_state(s, &r->msg);
    end_missed(s);
}

void session_wait_look(struct session *s)
{
    end_missed(s);
    for (size_t i = 0; i < s->waits.v.n; i++)
        store_message(s->j->o.store, s->waits.v.v[i].message,
                      jobs_store(s->j, on_message, s, s));
}

static void look_again(void *ctx)
{
    struct session *s = ctx;

    s->waits.timer = 0;
    session_wait_look(s);
}

void session_wait_turn(struct session *s, uint64_t message, uint64_t req_id)
{
    struct waiter *w = ARR_PUSH(&s->waits.v);

    w->message = message;
    w->req_id = req_id;
    session_follow(s);
    session_wait_look(s);
    session_wait_missing(s);
    if (s->fo.state == FO_ENDED)
        session_wait_over(s);
}
