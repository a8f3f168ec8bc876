/* Whose turn it is: which message an echo belongs to, and what the agent answered to the
 * one somebody waits for. */
#include "session_out.h"
#include "session_priv.h"
#include "session_relay.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define LIST_MESSAGES 50
#define ANSWER_BYTES (1u << 20)

/* --- waiters --------------------------------------------------------------------- */

static void waiter_end(struct session *s, size_t i, const struct err *e, int outcome,
                       const char *text, int exit_code)
{
    struct ev_done *ev = ev_new(EV_DONE);

    ev->m.req_id = s->waiters.v[i].req_id;
    if (e)
        ev->err = *e;
    ev->sandbox = s->row;
    ev->outcome = outcome;
    ev->exit_code = exit_code;
    ev->text = text ? xstrdup(text) : NULL;
    free(s->waiters.v[i].text);
    ARR_REMOVE(&s->waiters, i);
    jobs_post(s->j, ev);
}

void session_turn_release(struct session *s)
{
    for (size_t i = 0; i < s->waiters.n; i++)
        free(s->waiters.v[i].text);
    ARR_RELEASE(&s->waiters);
    for (size_t i = 0; i < s->echoes.n; i++)
        free(s->echoes.v[i].text);
    ARR_RELEASE(&s->echoes);
    buf_release(&s->answer);
    free(s->answer_id);
}

void session_turn_fail(struct session *s, uint64_t message, const struct err *e)
{
    for (size_t i = s->waiters.n; i-- > 0;)
        if (s->waiters.v[i].message == message)
            waiter_end(s, i, e, AGENT_FAILED, NULL, -1);
}

void session_turn_fail_all(struct session *s, const struct err *e)
{
    for (size_t i = s->waiters.n; i-- > 0;)
        waiter_end(s, i, e, AGENT_FAILED, NULL, -1);
}

void session_turn_fail_waiting(struct session *s, const struct err *e)
{
    for (size_t i = s->waiters.n; i-- > 0;)
        if (!s->waiters.v[i].in_turn && s->waiters.v[i].message != s->due)
            waiter_end(s, i, e, AGENT_FAILED, NULL, -1);
}

/* The agent has ended: what it took in has no answer, what still waits goes on waiting. */
void session_turn_ended(struct session *s)
{
    struct err none = {0}, waits = {0};

    err_set(&none, ERR_CONFLICT, "the agent has ended without an answer");
    err_set(&waits, ERR_CONFLICT,
            "the agent has ended: the message is queued and goes to it after a restart");
    for (size_t i = s->waiters.n; i-- > 0;) {
        const struct waiter *w = &s->waiters.v[i];
        bool handed = w->in_turn || w->message == s->due ||
                      (s->re.step == RE_SENT && s->re.msg.id == w->message);

        waiter_end(s, i, handed ? &none : &waits, AGENT_FAILED, NULL, -1);
    }
    s->due = 0;
}

/* The log at hand does not tell any more how the turn went on. */
void session_turn_lost(struct session *s)
{
    struct err e = {0};

    err_set(&e, ERR_CONFLICT, "the agent's log was emptied or read anew before the answer was "
            "complete: the message was taken in, see the logs for what is there of the answer");
    for (size_t i = s->waiters.n; i-- > 0;)
        if (s->waiters.v[i].in_turn || s->waiters.v[i].message == s->due)
            waiter_end(s, i, &e, AGENT_FAILED, NULL, -1);
    s->due = 0;
}

void session_turn_missing(struct session *s)
{
    const struct sandbox *r = session_row(s);
    struct err e = {0};

    if (!s->fo.missing || s->prov || !r || r->agent == AG_STARTING)
        return; /* it may be on its way */
    err_set(&e, ERR_CONFLICT, "no agent runs in this sandbox: the message is queued and goes to it "
            "once it was started ('cc-tui restart')");
    session_turn_fail_all(s, &e);
}

void session_turn_delivered(struct session *s, uint64_t message)
{
    for (size_t i = 0; i < s->waiters.n; i++)
        if (s->waiters.v[i].message == message)
            s->waiters.v[i].in_turn = true;
}

void session_turn_due(struct session *s, uint64_t message)
{
    s->due = message;
    s->due_from = s->out.pos;
    session_agent(s, AG_WORKING); /* the next message waits for its end */
}

static bool take_due(struct session *s)
{
    uint64_t id = s->due;

    if (!id || agent_dec_offset(s->out.dec) < s->due_from)
        return false;
    s->due = 0;
    session_turn_delivered(s, id);
    return true;
}

/* At the live end all was read: an agent that waits for a message has ended that turn. */
static void end_missed(struct session *s)
{
    if (!s->out.caught_up || s->out.agent != AG_IDLE)
        return; /* its end is still to come */
    for (size_t i = s->waiters.n; i-- > 0;)
        if (s->waiters.v[i].missed)
            waiter_end(s, i, NULL, s->ended.outcome, buf_str(&s->answer), s->ended.exit_code);
}

void session_turn_missed(struct session *s, uint64_t message)
{
    for (size_t i = 0; i < s->waiters.n; i++)
        if (s->waiters.v[i].message == message)
            s->waiters.v[i].in_turn = s->waiters.v[i].missed = true;
    end_missed(s);
}

/* The state the message has now; it may have changed before anybody waited. */
static void use_state(struct session *s, size_t i, const struct message *m)
{
    struct waiter *w = &s->waiters.v[i];
    struct err e = {0};

    str_set(&w->text, m->text);
    if (m->state == MSG_DELIVERED && !w->in_turn && w->message != s->due) {
        w->in_turn = w->missed = true;
    } else if (m->state == MSG_FAILED || m->state == MSG_UNCONFIRMED ||
               m->state == MSG_CANCELLED) {
        err_set(&e, ERR_CANCELLED, "the message was not delivered: %s",
                m->error ? m->error : msg_state_name(m->state));
        waiter_end(s, i, &e, AGENT_FAILED, NULL, -1);
    }
}

static void on_waited(void *ctx, struct st_reply *r)
{
    struct session *s = ctx;

    for (size_t i = s->waiters.n; i-- > 0;)
        for (size_t k = 0; k < r->n_messages; k++)
            if (r->messages[k].id == s->waiters.v[i].message) {
                use_state(s, i, &r->messages[k]);
                break;
            }
    end_missed(s);
}

void session_turn_look(struct session *s)
{
    end_missed(s);
    if (s->waiters.n)
        store_messages(s->j->o.store, s->row, LIST_MESSAGES, jobs_store(s->j, on_waited, s, s));
}

void session_wait_turn(struct session *s, uint64_t message, uint64_t req_id)
{
    struct waiter *w = ARR_PUSH(&s->waiters);

    w->message = message;
    w->req_id = req_id;
    session_follow(s);
    session_turn_look(s);
    session_turn_missing(s);
    if (s->fo.state == FO_ENDED)
        session_turn_ended(s);
}

/* --- echoes ---------------------------------------------------------------------- */

/* Queued, but claimed: who published it did not come to tell the store. The echo of an
 * earlier one with the same words was stored then. */
static bool may_be_echoed(const struct message *m, const struct echo *e)
{
    return (m->state == MSG_SENT || m->state == MSG_UNCONFIRMED ||
            (m->state == MSG_QUEUED && m->claimed && e->fresh)) &&
           session_same_text(m->text, e->text);
}

static void on_echo_list(void *ctx, struct st_reply *r)
{
    struct session *s = ctx;
    bool found = false;

    for (size_t i = 0; i < s->echoes.n; i++) {
        for (size_t k = 0; k < r->n_messages; k++) {
            struct message *m = &r->messages[k];

            if (!may_be_echoed(m, &s->echoes.v[i]))
                continue;
            if (m->state == MSG_QUEUED)
                session_relay_was_sent(s, m->id);
            session_relay_delivered(s, m->id);
            m->state = MSG_DELIVERED; /* the same words once more are another one's */
            found = true;
            break;
        }
        free(s->echoes.v[i].text);
    }
    ARR_CLEAR(&s->echoes);
    /* another instance sent it: its waiting item goes, the echo is there */
    if (found && s->sh.on)
        session_show(s, true);
}

/* Not ours, as far as we know: perhaps of an instance that is gone. */
void session_turn_old_echo(struct session *s, const char *text, bool fresh)
{
    if (!text || session_readonly(s))
        return;
    if (!s->echoes.n)
        store_messages(s->j->o.store, s->row, LIST_MESSAGES,
                       jobs_store(s->j, on_echo_list, s, s));
    *ARR_PUSH(&s->echoes) = (struct echo){xstrdup(text), fresh};
}

static bool in_flight(const struct session *s)
{
    return s->re.msg.id && (s->re.step == RE_PUBLISH || s->re.step == RE_SENT);
}

static const char *take_in(struct session *s)
{
    uint64_t id = s->re.msg.id;

    str_copy(s->echo_key, sizeof(s->echo_key), s->re.msg.key);
    session_turn_delivered(s, id);
    session_relay_delivered(s, id);
    return s->echo_key;
}

void session_turn_run(struct session *s, const char *id, uint64_t offset)
{
    if (s->ad->echoes || !in_flight(s) || !str_eq(id, s->re.id))
        return; /* with echoes the stream says it, too */
    session_out_echo(s, offset, s->re.msg.text, s->re.msg.key);
    take_in(s);
}

/* The CLI's own commands answer without an echo: the turn that a command began was its
 * own, when nothing else was taken in. */
static void take_unechoed(struct session *s)
{
    const struct relay *re = &s->re;

    if (!s->ad->echoes || s->turn_echoed || !in_flight(s) || !re->turn_seen ||
        *re->msg.text != '/')
        return;
    session_out_echo(s, agent_dec_turn_offset(s->out.dec), re->msg.text, re->msg.key);
    take_in(s);
}

static const char *match_echo(struct session *s, const char *text)
{
    if (in_flight(s) && session_same_text(s->re.msg.text, text))
        return take_in(s);
    for (size_t i = 0; i < s->waiters.n; i++)
        if (s->waiters.v[i].text && session_same_text(s->waiters.v[i].text, text))
            s->waiters.v[i].in_turn = true;
    session_turn_old_echo(s, text, true);
    return NULL;
}

/* --- the answer ------------------------------------------------------------------ */

/* The last block of text is the answer; a subagent's words are not. */
static void collect(struct session *s, const struct agent_event *ev)
{
    if (ev->parent || !ev->text || (ev->kind == AGENT_RAW && !s->waiters.n))
        return;
    if (ev->kind == AGENT_RAW) {
        if (s->answer.len > ANSWER_BYTES)
            return;
        buf_adds(&s->answer, ev->text);
        if (ev->final)
            buf_addc(&s->answer, '\n');
        if (s->answer.len > ANSWER_BYTES)
            buf_adds(&s->answer, "[the answer goes on: see the logs]\n");
        return;
    }
    if (ev->mode == AGENT_REPLACE || !str_eq(ev->id, s->answer_id)) {
        buf_clear(&s->answer);
        str_set(&s->answer_id, ev->id);
    }
    if (s->answer.len <= ANSWER_BYTES)
        buf_adds(&s->answer, ev->text);
}

/* The CLI's words do not know where its key came from. New string, or NULL. */
static char *say_key(struct session *s)
{
    struct sandbox *r = session_row(s);
    char *text = r && s->j->key_refused ? s->j->key_refused(s->j, r) : NULL;

    if (!text)
        return NULL;
    session_say(s, AGENT_ERROR, "%s", text);
    jobs_say(s->j, 2, r->id, "%s: %s", r->name ? r->name : "agent", text);
    return text;
}

static void end_turn(struct session *s, const struct agent_event *ev)
{
    char *key = NULL, *both = NULL;
    const char *text = s->answer.len ? buf_str(&s->answer) : ev->text;
    bool well = s->ad->mode == AGENT_ONE_RUN && ev->exit_code == 0 && !ev->signal;
    int outcome = ev->kind != AGENT_EXIT  ? (int)ev->outcome
                  : well                  ? AGENT_OK
                  : ev->signal == SIGINT ? AGENT_INTERRUPTED
                                          : AGENT_FAILED;

    s->ended.outcome = outcome;
    s->ended.exit_code = ev->exit_code;
    if (outcome != AGENT_OK && ev->text && *ev->text)
        text = ev->text;
    if (ev->error_class == AGENT_ERR_AUTH && s->out.caught_up)
        key = say_key(s);
    if (key)
        text = both = xasprintf("%s\n%s", text ? text : "", key);
    for (size_t i = s->waiters.n; i-- > 0;)
        if (s->waiters.v[i].in_turn)
            waiter_end(s, i, NULL, outcome, text, ev->exit_code);
    free(key);
    free(both);
}

const char *session_turn_event(struct session *s, const struct agent_event *ev)
{
    switch (ev->kind) {
    case AGENT_USER_ECHO:
        buf_clear(&s->answer);
        s->turn_echoed = true;
        return ev->text ? match_echo(s, ev->text) : NULL;
    case AGENT_TURN_BEGIN:
        buf_clear(&s->answer);
        s->turn_echoed = false;
        if (!s->ad->echoes && !take_due(s) && in_flight(s)) {
            session_out_echo(s, ev->offset, s->re.msg.text, s->re.msg.key);
            take_in(s);
        }
        break;
    case AGENT_TEXT:
    case AGENT_RAW:
        collect(s, ev);
        break;
    case AGENT_TURN_END:
        take_unechoed(s);
        end_turn(s, ev);
        break;
    case AGENT_EXIT:
        take_due(s); /* it ended before it began that turn */
        end_turn(s, ev);
        break;
    default:
        break;
    }
    return NULL;
}
