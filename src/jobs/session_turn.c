/* Whose turn it is: which message an echo belongs to, and what the agent answers in it. */
#include "session_out.h"
#include "session_priv.h"
#include "session_relay.h"
#include "session_show.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define LIST_MESSAGES 50
#define ANSWER_BYTES (1u << 20)

void session_turn_release(struct session *s)
{
    for (size_t i = 0; i < s->echoes.n; i++)
        free(s->echoes.v[i].text);
    ARR_RELEASE(&s->echoes);
    buf_release(&s->answer);
    free(s->answer_id);
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
    session_wait_delivered(s, id);
    return true;
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
            session_wait_placed(s, m->id, s->echoes.v[i].at);
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
    *ARR_PUSH(&s->echoes) = (struct echo){xstrdup(text), fresh, session_wait_place(s)};
}

static bool in_flight(const struct session *s)
{
    const struct relay *re = &s->re;

    return re->msg.id && (re->step == RE_SENT || (re->step == RE_PUBLISH && re->moving));
}

static const char *take_in(struct session *s)
{
    uint64_t id = s->re.msg.id;

    str_copy(s->echo_key, sizeof(s->echo_key), s->re.msg.key);
    session_wait_delivered(s, id);
    session_relay_delivered(s, id);
    return s->echo_key;
}

void session_turn_run(struct session *s, const struct session_run_line *run)
{
    session_wait_run(s, run->message, run->run);
    if (s->ad->echoes || !in_flight(s) || !str_eq(run->message, s->re.id))
        return; /* with echoes the stream says it, too */
    session_out_echo(s, run->offset, s->re.msg.text, s->re.msg.key);
    session_wait_placed(s, s->re.msg.id, run->run);
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
    session_turn_old_echo(s, text, true);
    return NULL;
}

/* --- the answer ------------------------------------------------------------------ */

/* The last block of text is the answer; a subagent's words are not. */
static void collect(struct session *s, const struct agent_event *ev)
{
    if (ev->parent || !ev->text || (ev->kind == AGENT_RAW && !s->waits.v.n))
        return;
    s->answer_lines = ev->kind == AGENT_RAW;
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
    bool lines = s->answer.len && s->answer_lines;
    const char *text = s->answer.len ? buf_str(&s->answer) : ev->text;
    bool well = s->ad->mode == AGENT_ONE_RUN && ev->exit_code == 0 && !ev->signal;
    int outcome = ev->kind != AGENT_EXIT  ? (int)ev->outcome
                  : well                  ? AGENT_OK
                  : ev->signal == SIGINT ? AGENT_INTERRUPTED
                                          : AGENT_FAILED;

    if (outcome != AGENT_OK && ev->text && *ev->text) {
        if (lines) /* why a command failed stands in its output */
            buf_addf(&s->answer, "%s%s", s->answer.p[s->answer.len - 1] == '\n' ? "" : "\n",
                     ev->text);
        text = lines ? buf_str(&s->answer) : ev->text;
    }
    if (ev->error_class == AGENT_ERR_AUTH && s->out.caught_up && !s->out.feeding_again)
        key = say_key(s);
    if (key)
        text = both = xasprintf("%s\n%s", text ? text : "", key);
    session_wait_turn_ended(s, outcome, ev->exit_code, text);
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
        if (s->ad->echoes || take_due(s))
            break;
        /* whose run it is, the runs say; another one's message is looked for by its place */
        if (in_flight(s) && s->re.moving && s->ad->mode != AGENT_ONE_RUN) {
            session_out_echo(s, ev->offset, s->re.msg.text, s->re.msg.key);
            take_in(s);
        } else {
            session_others_began(s, ev);
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

void session_turn_again(struct session *s, const struct agent_event *ev)
{
    switch (ev->kind) {
    case AGENT_USER_ECHO:
        buf_clear(&s->answer);
        session_turn_old_echo(s, ev->text, false);
        break;
    case AGENT_TURN_BEGIN:
        buf_clear(&s->answer);
        take_due(s); /* another one was faster to read it */
        break;
    case AGENT_TEXT:
    case AGENT_RAW:
        collect(s, ev);
        break;
    case AGENT_TURN_END:
    case AGENT_EXIT:
        end_turn(s, ev);
        break;
    default:
        break;
    }
}
