/* Relaying chat: one message at a time, when the agent is idle. Claimed in the store,
 * published in the inbox under a name that a retry repeats (so a lost answer cannot
 * double it), sent; delivered when the agent's own stream shows that it was taken in. */
#include "session_ask.h"
#include "session_out.h"
#include "session_pair.h"
#include "session_priv.h"
#include "session_raw.h"
#include "session_relay.h"
#include "session_show.h"
#include "session_start.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CLAIM_MS 30000
#define LOOK_MS 3000 /* a claim of somebody else may have run out */
#define LIST_MESSAGES 50
#define GONE_MESSAGES 1000

/* --- states ---------------------------------------------------------------------- */

static void on_changed(void *ctx, struct st_reply *r)
{
    struct session *s = ctx;
    struct err e = {0};

    if (r->err.code || !r->msg.id || (!r->got && r->msg.state != MSG_DELIVERED))
        return;
    session_show_message(s, &r->msg);
    if (r->got && r->msg.state == MSG_DELIVERED && r->msg.id == s->re.echo_id) {
        session_out_echo(s, s->re.echo_at, r->msg.text, r->msg.key);
        s->re.echo_id = 0;
    }
    if (r->msg.state == MSG_DELIVERED)
        session_wait_state(s, &r->msg);
    if (r->msg.state != MSG_FAILED && r->msg.state != MSG_UNCONFIRMED)
        return;
    err_set(&e, r->msg.state == MSG_FAILED ? ERR_IO : ERR_CONFLICT, "%s",
            r->msg.error ? r->msg.error : "the message was not delivered");
    session_wait_fail(s, r->msg.id, &e);
}

void session_relay_state(struct session *s, uint64_t id, enum msg_state from, enum msg_state to,
                         const char *error)
{
    store_message_state(s->j->o.store, id, from, to, error, jobs_store(s->j, on_changed, s, s));
}

void session_relay_free_slot(struct session *s)
{
    struct relay *re = &s->re;

    session_cancel_timer(s, &re->timer);
    if (re->call)
        envd_cancel(s->envd, re->call);
    re->call = 0;
    message_release(&re->msg);
    re->step = RE_IDLE;
    re->attempt = re->checks = 0;
    re->turn_seen = re->moving = re->lost = false;
}

/* We stop. What is claimed and surely not in the inbox is free for the next one; a Move
 * on its way may arrive, so that its claim runs out by itself. */
static void let_go(struct session *s)
{
    const struct relay *re = &s->re;

    if (re->step == RE_CLAIM || (re->step == RE_PUBLISH && !re->moving))
        store_message_unclaim(s->j->o.store, s->row, s->j->o.owner);
}

/* Nothing is handed over any more; a Move on its way is waited for, so that the message is
 * known to be sent. */
void session_relay_leave(struct session *s)
{
    struct relay *re = &s->re;

    if (re->step == RE_PUBLISH && re->moving && re->call) {
        re->leaving = true;
        s->j->goodbyes++;
        return;
    }
    let_go(s);
    if (re->step == RE_CLAIM || re->step == RE_PUBLISH)
        session_relay_free_slot(s);
}

static void try_again(void *ctx)
{
    struct session *s = ctx;

    s->re.timer = 0;
    session_relay(s);
}

void session_relay_was_sent(struct session *s, uint64_t id)
{
    session_relay_state(s, id, MSG_QUEUED, MSG_SENT, NULL);
}

void session_relay_delivered(struct session *s, uint64_t id)
{
    /* the echo may be faster than the answer to our Move, or slower than somebody who
     * called the message unconfirmed */
    if (s->re.msg.id == id && s->re.step == RE_PUBLISH) {
        session_relay_state(s, id, MSG_QUEUED, MSG_SENT, NULL);
        session_provision_sent(s);
    }
    session_relay_state(s, id, MSG_UNCONFIRMED, MSG_DELIVERED, NULL);
    session_relay_state(s, id, MSG_SENT, MSG_DELIVERED, NULL);
    if (s->re.msg.id != id)
        return;
    session_relay_free_slot(s);
    session_relay(s);
}

void session_relay_unconfirmed(struct session *s, const char *why)
{
    session_relay_state(s, s->re.msg.id, MSG_SENT, MSG_UNCONFIRMED, why);
    session_relay_free_slot(s);
}

void session_relay_failed(struct session *s, const char *why)
{
    session_relay_state(s, s->re.msg.id, MSG_QUEUED, MSG_FAILED, why);
    session_relay_free_slot(s);
    session_provision_sent(s);
    session_timer(s, &s->re.timer, 0, try_again);
}

/* --- claiming -------------------------------------------------------------------- */

void session_relay_id(char *dst, size_t size, const char *key)
{
    snprintf(dst, size, "%.60s", key);
    for (; *dst; dst++)
        if (!isalnum((unsigned char)*dst))
            *dst = '_';
}

/* The folder remembers ids: a message that is sent once more on the user's word needs a
 * new one, a repeated upload of the same sending must not have one. */
static void name_it(struct relay *re)
{
    const struct message *m = &re->msg;
    size_t len;

    session_relay_id(re->id, sizeof(re->id), m->key);
    len = strnlen(re->id, 40);
    if (m->sent_at)
        snprintf(re->id + len, sizeof(re->id) - len, "_%" PRId64, m->sent_at);
    session_inbox_name(re->name, sizeof(re->name), m->sent_at ? m->sent_at : m->created_at,
                       re->id);
}

static void on_list(void *ctx, struct st_reply *r)
{
    struct session *s = ctx;
    struct relay *re = &s->re;
    bool queued = r->err.code != 0; /* perhaps: soon again */

    if (re->step != RE_IDLE)
        return;
    for (size_t i = 0; i < r->n_messages; i++) {
        struct message *m = &r->messages[i];

        if (m->state == MSG_QUEUED)
            queued = true;
        if (m->state != MSG_SENT || re->msg.id)
            continue;
        if (s->raw) { /* an input leaves no trace to look for */
            session_relay_state(s, m->id, MSG_SENT, MSG_UNCONFIRMED,
                                "it was cut short while it was sent");
            continue;
        }
        /* sent by an instance that may be gone: see what became of it */
        message_copy(&re->msg, m);
        re->msg.sent_at = 0; /* the key is the beginning of every id it may have */
        name_it(re);
        re->step = RE_SENT;
        re->turn_seen = true;
        session_timer(s, &re->timer, session_taken_delay(s), session_taken_check);
    }
    if (re->step == RE_IDLE && queued)
        session_timer(s, &re->timer, LOOK_MS, try_again);
    if (re->step == RE_IDLE && !queued)
        session_provision_sent(s);
}

/* A message that nobody can claim is handed over by nobody, so that it is not handed over twice:
 * who waits for its answer might wait for ever. */
static void cannot_claim(struct session *s, const struct err *why)
{
    struct err e = *why;

    err_wrap(&e, "the message waits, for it cannot be noted in the database that it is handed over");
    if (!s->re.said_unclaimed)
        session_say(s, AGENT_ERROR, "%s", e.text);
    s->re.said_unclaimed = true;
    session_wait_fail_queued(s, &e);
    session_provision_sent(s);
}

static void on_claim(void *ctx, struct st_reply *r)
{
    struct session *s = ctx;
    struct relay *re = &s->re;

    if (re->step != RE_CLAIM)
        return;
    re->step = RE_IDLE;
    if (!r->msg.id && re->again) { /* one was stored since we asked */
        session_relay(s);
        return;
    }
    if (!r->err.code)
        re->said_unclaimed = false;
    else if (r->err.code != ERR_BUSY) /* another one writes: soon again */
        cannot_claim(s, &r->err);
    if (r->err.code || !r->msg.id) {
        store_messages(s->j->o.store, s->row, LIST_MESSAGES, jobs_store(s->j, on_list, s, s));
        return;
    }
    message_release(&re->msg);
    message_copy(&re->msg, &r->msg);
    if (re->hurry == re->msg.id)
        re->hurry = 0; /* its turn came without */
    name_it(re);
    re->step = RE_PUBLISH;
    session_publish(s);
}

/* May the next message go? A fresh CLI that said nothing yet takes its first one. */
static bool is_free(const struct session *s)
{
    if (s->raw)
        return !session_readonly(s) && session_raw_takes_input(s);
    if (session_readonly(s) || !s->out.caught_up || !s->tool || (s->prov && !s->prov_ready) ||
        !session_pair_ready(s))
        return false;
    return s->out.agent == AG_IDLE || s->out.agent == AG_STARTING;
}

void session_relay(struct session *s)
{
    const struct sandbox *r = session_row(s);

    session_show_messages(s);
    session_wait_look(s);
    if (s->re.step == RE_SENT && !s->re.timer && !s->re.call)
        session_taken_check(s);
    s->re.again = s->re.step == RE_CLAIM;
    if (s->re.step != RE_IDLE || !r || r->state == SB_PAUSED || r->state == SB_KILLED)
        return;
    if (!is_free(s)) {
        session_follow(s);
        session_hurry_go(s);
        return;
    }
    session_cancel_timer(s, &s->re.timer);
    s->re.step = RE_CLAIM;
    store_message_claim(s->j->o.store, s->row, s->j->o.owner, CLAIM_MS,
                        jobs_store(s->j, on_claim, s, s));
}

/* --- from outside ---------------------------------------------------------------- */

void session_relay_turn(struct session *s, const struct agent_event *ev)
{
    if (ev->kind == AGENT_TURN_BEGIN && s->re.step != RE_IDLE)
        s->re.turn_seen = true;
    if (ev->kind == AGENT_TURN_BEGIN)
        s->sigint_sent = false; /* that was for the one before */
    if (ev->kind != AGENT_TURN_END && ev->kind != AGENT_EXIT)
        return;
    if (s->re.interrupting)
        session_interrupt_done(s, NULL);
    if ((ev->kind == AGENT_TURN_END || s->ad->mode == AGENT_ONE_RUN) && s->out.caught_up)
        session_relay(s);
}

void session_relay_ended(struct session *s)
{
    if (s->re.interrupting)
        session_interrupt_done(s, NULL);
    if (s->re.step == RE_SENT)
        session_timer(s, &s->re.timer, 0, session_taken_check);
    session_provision_sent(s); /* nobody takes the first prompt any more */
    session_wait_over(s);
}

static void on_gone_list(void *ctx, struct st_reply *r)
{
    struct session *s = ctx;

    for (size_t i = 0; i < r->n_messages; i++) {
        const struct message *m = &r->messages[i];

        if (m->state == MSG_QUEUED)
            session_relay_state(s, m->id, MSG_QUEUED, MSG_FAILED, "the sandbox is gone");
        else if (m->state == MSG_SENT)
            session_relay_state(s, m->id, MSG_SENT, MSG_UNCONFIRMED,
                                "the sandbox is gone and the agent had not shown that it took "
                                "it in");
    }
}

void session_relay_stop(struct session *s, bool gone, const char *why)
{
    struct relay *re = &s->re;
    struct err e = {0};

    err_set(&e, ERR_CONFLICT, "%s", why ? why : "the connection to the sandbox was lost");
    if (re->interrupting)
        session_interrupt_done(s, &e);
    session_ask_stop(s, why);
    if (gone)
        session_ask_over(s);
    let_go(s);
    if (re->step != RE_SENT || gone)
        session_relay_free_slot(s);
    if (re->call)
        envd_cancel(s->envd, re->call);
    re->call = 0;
    session_cancel_timer(s, &re->timer);
    session_wait_stop(s);
    if (!why)
        return;
    re->hurry = 0;
    session_wait_fail_all(s, &e);
    session_provision_stop(s, why);
    if (gone && !session_readonly(s))
        store_messages(s->j->o.store, s->row, GONE_MESSAGES,
                       jobs_store(s->j, on_gone_list, s, s));
}

void session_relay_release(struct session *s)
{
    let_go(s);
    session_cancel_timer(s, &s->re.timer);
    session_cancel_timer(s, &s->re.int_timer);
    message_release(&s->re.msg);
}
