/* Interrupting a turn: the tool's own request through the inbox, which is passed on at
 * once; when that shows no effect, SIGINT to the CLI's process group. */
#include "session_follow.h"
#include "session_priv.h"
#include "session_relay.h"

#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>

#define CALL_MS 20000
#define HURRY_MESSAGES 50
#define INTERRUPT_MS 3000 /* for the tool's own request to show an effect */

void session_interrupt_done(struct session *s, const struct err *e)
{
    uint64_t req = s->re.int_req;

    session_cancel_timer(s, &s->re.int_timer);
    if (s->re.int_call)
        envd_cancel(s->envd, s->re.int_call);
    s->re.int_call = 0;
    s->re.int_req = 0;
    s->re.interrupting = false;
    if (req)
        jobs_done(s->j, req, e, s->row);
    else if (e)
        session_say(s, AGENT_WARN, "%s; the message waits in front of the queue", e->text);
}

static void on_signalled(void *ctx, const struct envd_run_result *r)
{
    struct session *s = ctx;
    struct err e = r->err;

    s->re.int_call = 0;
    if (!e.code && r->exit_code)
        err_set(&e, ERR_CONFLICT, "the agent cannot be interrupted: its process is gone");
    s->sigint_sent = e.code == 0;
    session_interrupt_done(s, e.code ? &e : NULL);
}

static void signal_group(void *ctx)
{
    struct session *s = ctx;
    bool one_run = s->ad->mode == AGENT_ONE_RUN;
    const char *args[] = {s->dir, one_run ? SESSION_MODE_ONE_RUN : SESSION_MODE_PERSISTENT, NULL};

    s->re.int_timer = 0;
    s->re.int_call = session_sh(s, session_sigint_script, args, CALL_MS, on_signalled, s);
}

static void on_int_moved(void *ctx, const struct envd_result *r)
{
    struct session *s = ctx;

    s->re.int_call = 0;
    if (r->err.code) {
        session_interrupt_done(s, &r->err);
        return;
    }
    session_life_wake(s);
    session_timer(s, &s->re.int_timer, INTERRUPT_MS, signal_group);
}

static void on_int_uploaded(void *ctx, const struct envd_result *r)
{
    struct session *s = ctx;
    char name[96], *tmp, *to;

    s->re.int_call = 0;
    if (r->err.code) {
        session_interrupt_done(s, &r->err);
        return;
    }
    session_inbox_name(name, sizeof(name), clock_wall_ms(), s->re.int_id);
    tmp = session_tmp_path(s, s->re.int_id);
    to = xasprintf("%s/" SESSION_INBOX "/%s", s->dir, name);
    s->re.int_call = envd_move(s->envd, tmp, to, on_int_moved, s);
    free(tmp);
    free(to);
}

void session_interrupt(struct session *s, uint64_t req_id)
{
    struct buf bytes = BUF_INIT;
    struct err e = {0};
    char *tmp;

    if (s->re.interrupting || session_readonly(s))
        err_set(&e, ERR_BUSY,
                s->re.interrupting ? "the agent is being interrupted already"
                              : "this cc-tui only reads: another version owns the "
                                "database");
    else if (!s->out.caught_up)
        err_set(&e, ERR_CONFLICT,
                "the agent cannot be interrupted: there is no connection to it");
    else if (s->out.agent != AG_WORKING && s->out.agent != AG_ASKS)
        err_set(&e, ERR_CONFLICT, "the agent is not working: there is nothing to interrupt");
    if (e.code) {
        jobs_done(s->j, req_id, &e, s->row);
        return;
    }
    s->re.interrupting = true;
    s->re.int_req = req_id;
    snprintf(s->re.int_id, sizeof(s->re.int_id), "i");
    rand_id(s->re.int_id + 1, 16);
    if (!s->ad->encode_interrupt || s->ad->encode_interrupt(s->re.int_id, &bytes) != 0) {
        signal_group(s);
    } else {
        tmp = session_tmp_path(s, s->re.int_id);
        s->re.int_call = envd_write(s->envd, tmp, bytes.p, bytes.len, on_int_uploaded, s);
        free(tmp);
    }
    buf_release(&bytes);
}

/* --- for a message ----------------------------------------------------------------- */

static void on_hurry_list(void *ctx, struct st_reply *r)
{
    struct session *s = ctx;
    bool waits = false;

    s->re.hurry_asked = false;
    for (size_t i = 0; i < r->n_messages; i++)
        waits |= r->messages[i].id == s->re.hurry && r->messages[i].state == MSG_QUEUED;
    if (r->err.code || !s->re.hurry)
        return;
    if (waits && s->re.step != RE_IDLE)
        return; /* the turn that begins with the one in hand is the one to interrupt */
    if (waits && (!s->out.caught_up || (s->out.agent != AG_WORKING && s->out.agent != AG_ASKS)))
        return;
    s->re.hurry = 0; /* taken back, or sent meanwhile */
    if (waits && !s->re.interrupting)
        session_interrupt(s, 0);
}

void session_hurry_go(struct session *s)
{
    if (!s->re.hurry || s->re.hurry_asked || s->raw || !s->out.caught_up ||
        (s->out.agent != AG_WORKING && s->out.agent != AG_ASKS))
        return;
    s->re.hurry_asked = true;
    store_messages(s->j->o.store, s->row, HURRY_MESSAGES,
                   jobs_store(s->j, on_hurry_list, s, s));
}

void session_hurry(struct session *s, uint64_t id)
{
    if (!session_readonly(s))
        s->re.hurry = id;
}
