/* What a user does to one sandbox: messages, time, pause, names, views. Everything that
 * needs the row is refused with a sentence when the row cannot do it now. */
#include "core_priv.h"

#include <cct/model/export.h>
#include <cct/config/tools.h>
#include <cct/text/clean.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_MS 700
#define LOOKS 8

/* An answer that is under way; never cancelled, so it frees itself. */
struct act {
    struct jobs *j;
    uint64_t req_id, row, message;
    bool wait, now, second;
    int seconds;
    int64_t asked_end; /* server time */
    /* a pause or a resume whose answer leaves open what became of it */
    enum sb_state want;
    struct err why;
    uint64_t timer;
    int looks;
};

static struct act *act_new(struct jobs *j, const struct cmd *c)
{
    struct act *a = xcalloc(1, sizeof(*a));

    a->j = j;
    a->req_id = c->m.req_id;
    a->row = c->sandbox;
    a->message = c->id;
    *ARR_PUSH(&j->priv->acts) = a;
    return a;
}

static void act_end(struct act *a, const struct err *e)
{
    struct jobs *j = a->j;

    core_rows_flush(j);
    jobs_done(j, a->req_id, e, a->row);
    for (size_t i = 0; i < j->priv->acts.n; i++)
        if (j->priv->acts.v[i] == a) {
            ARR_REMOVE(&j->priv->acts, i);
            break;
        }
    free(a);
}

void core_actions_release(struct jobs *j)
{
    for (size_t i = 0; i < j->priv->acts.n; i++) {
        jobs_store_forget(j, j->priv->acts.v[i]);
        net_timer_cancel(j->o.net, j->priv->acts.v[i]->timer);
        free(j->priv->acts.v[i]);
    }
    ARR_RELEASE(&j->priv->acts);
}

/* --- messages ------------------------------------------------------------------- */

static void on_added(void *ctx, struct st_reply *r)
{
    struct act *a = ctx;
    struct jobs *j = a->j;
    struct session *s = session_of(j, a->row);
    uint64_t req = a->req_id;

    if (r->err.code) {
        struct err e = r->err;
        err_wrap(&e, "the message was not sent");
        act_end(a, &e);
        return;
    }
    core_post_message(j, &r->msg);
    if (a->wait && s) {
        a->req_id = 0;
        session_wait_turn(s, r->msg.id, req);
    }
    if (s && a->now)
        session_hurry(s, r->msg.id);
    act_end(a, NULL);
    if (s)
        session_relay(s);
}

static void do_send(struct jobs *j, struct cmd *c, struct sandbox *row)
{
    struct err e = {0};
    struct act *a;

    if (core_may_send(row, c->text, c->on, &e) != 0) {
        jobs_done(j, c->m.req_id, &e, row->id);
        return;
    }
    a = act_new(j, c);
    a->wait = c->on;
    a->now = (c->n & SEND_NOW) != 0;
    if (a->now)
        store_message_add_first(j->o.store, row->id, c->text, jobs_store(j, on_added, a, a));
    else
        store_message_add(j->o.store, row->id, c->text, jobs_store(j, on_added, a, a));
}

static void on_cancelled(void *ctx, struct st_reply *r)
{
    struct act *a = ctx;
    struct err e = r->err;

    if (!e.code && r->msg.id)
        core_post_message(a->j, &r->msg);
    if (!e.code && (!r->msg.id || r->msg.state != MSG_CANCELLED))
        err_set(&e, ERR_CONFLICT, "the message cannot be called off: it is on its way already");
    a->row = r->msg.sandbox;
    act_end(a, e.code ? &e : NULL);
}

/* It could not be sent again either: it stays what it was. */
static void on_failed_again(void *ctx, struct st_reply *r)
{
    struct act *a = ctx;
    struct err e = r->err;

    if (!e.code && r->msg.id)
        core_post_message(a->j, &r->msg);
    if (!e.code)
        err_set(&e, ERR_CONFLICT, "not sent: %s", r->msg.error ? r->msg.error : "nobody takes it");
    act_end(a, &e);
}

static void on_requeued(void *ctx, struct st_reply *r)
{
    struct act *a = ctx;
    struct jobs *j = a->j;
    struct err e = r->err, why = {0};
    uint64_t id = r->msg.sandbox;
    struct sandbox *row = id ? jobs_row(j, id) : NULL;
    struct session *s;
    bool done = !e.code && r->msg.id && r->msg.state == MSG_QUEUED;

    if (!done && !a->second && (!e.code || e.code == ERR_CONFLICT)) {
        a->second = true;
        store_message_state(j->o.store, a->message, MSG_UNCONFIRMED, MSG_QUEUED, NULL,
                            jobs_store(j, on_requeued, a, a));
        return;
    }
    if (done && row && core_may_send(row, r->msg.text, false, &why) != 0) {
        a->row = id;
        store_message_state(j->o.store, r->msg.id, MSG_QUEUED, MSG_FAILED, why.text,
                            jobs_store(j, on_failed_again, a, a));
        return;
    }
    if (done)
        core_post_message(j, &r->msg);
    else if (!e.code)
        err_set(&e, ERR_CONFLICT, "the message cannot be sent again: it neither failed nor is it "
                "unconfirmed");
    a->row = id;
    act_end(a, e.code ? &e : NULL);
    s = done ? session_of(j, id) : NULL;
    if (s)
        session_relay(s);
}

static void do_message(struct jobs *j, struct cmd *c)
{
    struct act *a = act_new(j, c);

    if (c->m.type == CMD_MESSAGE_CANCEL)
        store_message_state(j->o.store, c->id, MSG_QUEUED, MSG_CANCELLED, NULL,
                            jobs_store(j, on_cancelled, a, a));
    else
        store_message_state(j->o.store, c->id, MSG_FAILED, MSG_QUEUED, NULL,
                            jobs_store(j, on_requeued, a, a));
}

/* --- the agent ------------------------------------------------------------------ */

static void do_agent(struct jobs *j, struct cmd *c, struct sandbox *row)
{
    const struct tool *t = row->tool ? tools_find(j->o.tools, row->tool) : NULL;
    struct session *s = row->foreign ? NULL : session_of(j, row->id);
    bool up = row->state == SB_RUNNING || (row->state == SB_ERROR && row->vm_up);
    char *missing = NULL;
    struct err e = {0};
    struct kv *env;

    if (row->adopted) {
        core_done_err(j, c->m.req_id, row->id, ERR_UNSUPPORTED, "what is adopted can neither be "
                      "interrupted nor restarted by cc-tui, only ended: \"%s\"", core_row_name(row));
    } else if (!s) {
        core_done_err(j, c->m.req_id, row->id, ERR_UNSUPPORTED, "\"%s\" has no agent of cc-tui",
                      core_row_name(row));
    } else if (!up) {
        core_done_err(j, c->m.req_id, row->id, ERR_CONFLICT, "\"%s\" is %s: its agent cannot be "
                      "reached", core_row_name(row), sb_state_name(row->state));
    } else if (c->m.type == CMD_INTERRUPT) {
        session_interrupt(s, c->m.req_id);
    } else if (!t) {
        core_done_err(j, c->m.req_id, row->id, ERR_NOTFOUND, "the tool \"%s\" is not known here",
                      row->tool ? row->tool : "?");
    } else {
        const struct core_env_q q = {.t = t, .project = row->project, .restart = true,
                                     .own_names = kv_get(row->meta, "cc-tui-own")};
        env = row->pair ? core_pair_env(j, row->pair, &q, &missing, &e)
                        : core_keys_env(j, &q, &missing, &e);
        if (!env) {
            jobs_done(j, c->m.req_id, &e, row->id);
            return;
        }
        if (missing)
            jobs_say(j, 1, row->id, "no key for %s is known: %s will fail at its start", missing,
                     t->label);
        session_restart(s, env, c->m.req_id);
        keys_env_free(env);
        free(missing);
    }
}

/* --- time ----------------------------------------------------------------------- */

/* What it got is the service's to say. */
static void on_end_known(void *ctx, const struct e2b_result *r)
{
    struct act *a = ctx;
    struct sandbox *row = jobs_row(a->j, a->row);

    if (row && r->err.code == 0 && r->n && r->v[0].end_at) {
        row->end_at = r->v[0].end_at;
        jobs_row_changed(a->j, row);
        core_time_given(a->j, row, a->asked_end);
    }
    act_end(a, NULL);
}

static void ask_end(struct act *a, const struct sandbox *row)
{
    static const struct e2b_call_opts o = {.give_up_ms = 5000};

    a->asked_end = jobs_now(a->j) + a->seconds * INT64_C(1000);
    e2b_get(a->j->e2b, row->sandbox_id, &o, on_end_known, a);
}

static void settle(struct act *a)
{
    struct sandbox *row = jobs_row(a->j, a->row);

    if (row && row->pending) {
        row->pending = row->changing = false;
        jobs_row_changed(a->j, row);
    }
}

static void failed(struct act *a, const struct err *why, const char *what)
{
    struct err e = *why;
    struct sandbox *row = jobs_row(a->j, a->row);

    err_wrap(&e, "%s \"%s\" failed", what, row ? core_row_name(row) : "?");
    if (why->code == ERR_NOTFOUND || why->code == ERR_CONFLICT)
        core_poll_soon(a->j, 0); /* what we believe of it is old */
    act_end(a, &e);
}

static void on_timeout(void *ctx, const struct e2b_result *r)
{
    struct act *a = ctx;
    struct sandbox *row = jobs_row(a->j, a->row);

    settle(a);
    if (r->err.code || !row || !row->sandbox_id) {
        failed(a, &r->err, "setting the time of");
        return;
    }
    ask_end(a, row);
}

static void is_paused(struct act *a, struct sandbox *row)
{
    row->state = SB_PAUSED;
    row->end_at = jobs_now(a->j);
    jobs_row_changed(a->j, row);
    core_row_state(a->j, row);
    jobs_say(a->j, 0, row->id, "%s is paused", row->name ? row->name : row->sandbox_id);
    act_end(a, NULL);
}

static void is_resumed(struct act *a, struct sandbox *row)
{
    row->state = SB_RUNNING;
    row->started_at = jobs_now(a->j);
    row->end_at = row->started_at + a->seconds * 1000LL;
    jobs_row_changed(a->j, row);
    core_row_state(a->j, row);
    jobs_say(a->j, 0, row->id, "%s runs again", row->name ? row->name : row->sandbox_id);
    ask_end(a, row);
}

/* Paused or resumed, as far as `e` says. */
static void turned(struct act *a, const struct err *e)
{
    struct sandbox *row = jobs_row(a->j, a->row);

    settle(a);
    core_poll_soon(a->j, 300);
    if (e->code)
        failed(a, e, a->want == SB_PAUSED ? "pausing" : "resuming");
    else if (!row || !core_row_live(row) || !row->sandbox_id) /* killed since: it stays so */
        act_end(a, NULL);
    else if (a->want == SB_PAUSED)
        is_paused(a, row);
    else
        is_resumed(a, row);
}

static void look_at_it(void *ctx);

static void on_look(void *ctx, const struct e2b_result *r)
{
    static const struct err done = {0};
    struct act *a = ctx;
    bool seen = r->err.code == 0 && r->n;

    if (seen && str_eq(r->v[0].state, a->want == SB_PAUSED ? "paused" : "running"))
        turned(a, &done);
    else if (r->err.code != ERR_NOTFOUND && ++a->looks < LOOKS)
        a->timer = net_timer(a->j->o.net, LOOK_MS, look_at_it, a);
    else
        turned(a, r->err.code == ERR_NOTFOUND ? &r->err : &a->why);
}

static void look_at_it(void *ctx)
{
    static const struct e2b_call_opts o = {.give_up_ms = 3000};
    struct act *a = ctx;
    struct sandbox *row = jobs_row(a->j, a->row);

    a->timer = 0;
    if (row && row->sandbox_id && a->j->e2b)
        e2b_get(a->j->e2b, row->sandbox_id, &o, on_look, a);
    else
        turned(a, &a->why);
}

/* A lost answer and "another change is under way" say nothing of what became of it: the
 * sandbox is looked at until it is as wanted, for a while. */
static void on_turned(void *ctx, const struct e2b_result *r)
{
    struct act *a = ctx;

    a->why = r->err;
    if (r->err.code && (r->err.code == ERR_CONFLICT || core_answer_lost(r)))
        look_at_it(a);
    else
        turned(a, &r->err);
}

static const char *state_refusal(const struct cmd *c, const struct sandbox *row)
{
    bool up = row->state == SB_RUNNING || (row->state == SB_ERROR && row->vm_up);

    if (row->pending)
        return "another action on it is under way";
    if (!row->sandbox_id)
        return "it is not there yet";
    if (c->m.type == CMD_RESUME)
        return row->state == SB_PAUSED ? NULL : "it is not paused";
    return up ? NULL : row->state == SB_PAUSED ? "it is paused" : "it is gone";
}

static void do_time(struct jobs *j, struct cmd *c, struct sandbox *row)
{
    const char *no = state_refusal(c, row);
    struct act *a;
    int seconds = (int)c->n;

    if (c->m.type == CMD_RESUME && c->n == 0)
        seconds = 900;
    if (no) {
        core_done_err(j, c->m.req_id, row->id, ERR_CONFLICT, "nothing was done to \"%s\": %s",
                      core_row_name(row), no);
        return;
    }
    if (c->m.type != CMD_PAUSE && (c->n < 0 || seconds < 1 || c->n > LIM_TIMEOUT_MAX_S)) {
        core_done_err(j, c->m.req_id, row->id, ERR_INVALID, "a time must be from 1 second to 24 "
                      "hours; to end a sandbox now, kill it");
        return;
    }
    a = act_new(j, c);
    a->seconds = seconds;
    a->want = c->m.type == CMD_PAUSE ? SB_PAUSED : SB_RUNNING;
    row->pending = row->changing = true;
    jobs_row_changed(j, row);
    if (c->m.type == CMD_TIMEOUT)
        e2b_set_timeout(j->e2b, row->sandbox_id, seconds, on_timeout, a);
    else if (c->m.type == CMD_PAUSE)
        e2b_pause(j->e2b, row->sandbox_id, on_turned, a);
    else
        e2b_connect(j->e2b, row->sandbox_id, seconds, on_turned, a);
}

/* --- the row only --------------------------------------------------------------- */

static void do_row(struct jobs *j, struct cmd *c, struct sandbox *row)
{
    char tags[SANDBOX_TAGS_BYTES];
    if (c->m.type == CMD_RENAME) {
        if (!c->text || !sandbox_name_ok(c->text)) {
            core_done_err(j, c->m.req_id, row->id, ERR_INVALID, "a name has 1 to 64 of the "
                          "characters A-Z a-z 0-9 _ -");
            return;
        }
        core_row_set(&row->name, c->text);
    } else if (c->m.type == CMD_TAG) {
        if (!sandbox_tags(c->text ? c->text : "", tags)) {
            core_done_err(j, c->m.req_id, row->id, ERR_INVALID, "at most %d tags, each 1 to 24 of "
                          "the characters A-Z a-z 0-9 _ . -", SANDBOX_TAGS);
            return;
        }
        core_row_set(&row->tags, *tags ? tags : NULL);
    } else if (c->m.type == CMD_PROTECT) {
        row->protect = c->on;
    } else if (core_row_live(row)) {
        core_done_err(j, c->m.req_id, row->id, ERR_CONFLICT, "\"%s\" is not gone: kill it first",
                      core_row_name(row));
        return;
    } else {
        core_row_remove(j, row->id);
        jobs_done(j, c->m.req_id, NULL, 0);
        return;
    }
    jobs_row_changed(j, row);
    core_rows_flush(j);
    jobs_done(j, c->m.req_id, NULL, row->id);
}

/* --- views ---------------------------------------------------------------------- */

static void do_view(struct jobs *j, struct cmd *c, struct sandbox *row)
{
    struct session *s = session_of(j, row->id);

    if (c->m.type == CMD_FOLLOW && (row->foreign || row->adopted))
        core_foreign_shown(j, row->id, c->on);
    if (!s) {
        core_done_err(j, c->m.req_id, row->id, ERR_UNSUPPORTED, "\"%s\" was not made by cc-tui: it "
                      "has no history here", core_row_name(row));
        return;
    }
    switch ((enum cmd_type)c->m.type) {
    case CMD_FOLLOW:
        session_show(s, c->on);
        if (c->on && row->sandbox_id && core_row_live(row) && row->state != SB_CREATING)
            session_follow(s);
        break;
    case CMD_LOAD_OLDER:
        session_load_older(s, c->id, (uint32_t)c->n);
        break;
    case CMD_LOAD_NEWER:
        session_load_newer(s, c->id, (uint32_t)c->n, c->on);
        break;
    case CMD_RAW:
        session_raw(s, c->m.req_id, c->n, c->on);
        break;
    default:
        session_events(s, c->m.req_id, c->on);
        break;
    }
}

static void end_view(struct jobs *j, const struct cmd *c)
{
    struct sandbox *row = jobs_row(j, c->sandbox);
    struct session *s = row ? session_of(j, row->id) : NULL;

    if (s)
        session_logs_end(s, c->id);
}

/* --- dispatch ------------------------------------------------------------------- */

static bool reads_only(enum cmd_type t)
{
    return t == CMD_FOLLOW || t == CMD_LOAD_OLDER || t == CMD_LOAD_NEWER || t == CMD_RAW || t == CMD_EVENTS ||
           t == CMD_EXPORT;
}

/* What a user does about processes and sandboxes that cc-tui did not make. */
static bool is_foreign(enum cmd_type t)
{
    return t >= CMD_PROCS && t <= CMD_UNADOPT;
}

static bool looks_only(enum cmd_type t)
{
    return reads_only(t) || (t >= CMD_PROCS && t <= CMD_PROC_WATCH);
}

/* --- questions ------------------------------------------------------------------ */

static void do_answer(struct jobs *j, struct cmd *c, struct sandbox *row)
{
    struct session *s = row->foreign ? NULL : session_of(j, row->id);

    if (!s)
        core_done_err(j, c->m.req_id, row->id, ERR_UNSUPPORTED, "\"%s\" has no agent of cc-tui",
                      core_row_name(row));
    else if (row->state == SB_PAUSED)
        core_done_err(j, c->m.req_id, row->id, ERR_CONFLICT, "\"%s\" is paused: resume it first",
                      core_row_name(row));
    else if (!core_row_live(row))
        core_done_err(j, c->m.req_id, row->id, ERR_CONFLICT, "\"%s\" is gone: its agent asks "
                      "nothing any more", core_row_name(row));
    else
        session_answer(s, c->m.req_id, c->text2, (int)c->n, c->text);
}

static bool needs_account(enum cmd_type t)
{
    return t == CMD_KILL || t == CMD_TIMEOUT || t == CMD_PAUSE || t == CMD_RESUME ||
           t == CMD_INTERRUPT || t == CMD_RESTART;
}

/* What makes no sense when nothing can be stored; ending things always does. */
static bool stores(enum cmd_type t)
{
    return t == CMD_SEND || t == CMD_RENAME || t == CMD_TAG || t == CMD_PROTECT || t == CMD_FORGET ||
           t == CMD_RESTART || t == CMD_ADOPT || t == CMD_UNADOPT || t == CMD_ANSWER ||
           t == CMD_PAIR;
}

static void on_sandbox(struct jobs *j, struct cmd *c)
{
    enum cmd_type t = (enum cmd_type)c->m.type;
    struct sandbox *row = jobs_row(j, c->sandbox);

    if (t == CMD_EXPORT && c->n == EXPORT_EVENTS)
        core_export(j, c, NULL); /* what is stored under that id, whoever has it in a list */
    else if (!row)
        core_done_err(j, c->m.req_id, 0, ERR_NOTFOUND, "that sandbox is not in the list any more");
    else if ((j->priv->look_only && !looks_only(t)) || (j->o.readonly && stores(t)))
        core_done_err(j, c->m.req_id, row->id, ERR_PERM,
                      "nothing was done: this cc-tui only reads");
    else if (needs_account(t) && !j->e2b)
        jobs_done(j, c->m.req_id, &j->priv->account_err, row->id);
    else if (is_foreign(t))
        core_foreign_action(j, c);
    else if (t == CMD_EXPORT)
        core_export(j, c, row);
    else if (reads_only(t))
        do_view(j, c, row);
    else if (t == CMD_SEND)
        do_send(j, c, row);
    else if (t == CMD_ANSWER)
        do_answer(j, c, row);
    else if (t == CMD_INTERRUPT || t == CMD_RESTART)
        do_agent(j, c, row);
    else if (t == CMD_PAIR)
        core_pair_action(j, c, row);
    else if (t == CMD_KILL)
        core_kill(j, c->m.req_id, row->id);
    else if (t == CMD_RENAME || t == CMD_TAG || t == CMD_PROTECT || t == CMD_FORGET)
        do_row(j, c, row);
    else
        do_time(j, c, row);
}

static void kill_all(struct jobs *j, struct cmd *c)
{
    if (c->m.type == CMD_KILL_CANCEL)
        core_killall_cancel(j);
    else if (j->priv->look_only)
        core_done_err(j, c->m.req_id, 0, ERR_PERM, "nothing is killed: this cc-tui only reads");
    else if (c->m.type == CMD_KILL_OPEN)
        core_killall_open(j, c->m.req_id, c->on);
    else if (c->m.type == CMD_KILL_CONFIRM)
        core_killall_confirm(j, c->m.req_id, c->on, c->n, c->id);
    else
        core_killall_retry(j, c->m.req_id);
}

void core_action(struct jobs *j, struct cmd *c)
{
    switch ((enum cmd_type)c->m.type) {
    case CMD_CREATE:
        core_create(j, c);
        break;
    case CMD_MESSAGE_CANCEL:
    case CMD_MESSAGE_RETRY:
        do_message(j, c);
        break;
    case CMD_KILL_OPEN:
    case CMD_KILL_CONFIRM:
    case CMD_KILL_CANCEL:
    case CMD_KILL_RETRY:
        kill_all(j, c);
        break;
    case CMD_REFRESH:
        core_poll_refresh(j, c->m.req_id);
        break;
    case CMD_ACTIVE:
        core_poll_active(j, c->on);
        core_metrics_active(j, c->on);
        break;
    case CMD_UNLOCK:
    case CMD_KEY_ADD:
    case CMD_KEY_RM:
    case CMD_KEY_TRUST:
    case CMD_KEY_PROTECT:
    case CMD_PROJECT_SECRET:
    case CMD_KEY_LOOK:
    case CMD_KEY_TEST:
    case CMD_LOCK:
    case CMD_TOUCH:
    case CMD_STRETCHED:
        core_keys_cmd(j, c);
        break;
    case CMD_PROJECT:
    case CMD_PROJECT_ADD:
    case CMD_PROJECT_RENAME:
    case CMD_PROJECT_RM:
    case CMD_PROJECT_SET:
    case CMD_PROJECT_VAR:
    case CMD_PRESET:
    case CMD_FILTER:
        core_projects_cmd(j, c);
        break;
    case CMD_TEMPLATES:
    case CMD_BUILDS:
    case CMD_BUILD_FOLLOW:
    case CMD_SYSTEM_LOGS:
        core_look(j, c);
        break;
    case CMD_BUILD_UNFOLLOW:
        core_look_leave(j, c->id);
        break;
    case CMD_BUILD:
    case CMD_BUILD_CANCEL:
    case CMD_BUILD_AGAIN:
    case CMD_BUILD_DELETE:
    case CMD_BUILD_TAG:
    case CMD_BUILD_ROWS:
    case CMD_BUILD_EXPORT:
    case CMD_BUILD_WORKED:
        core_builds_cmd(j, c);
        break;
    case CMD_BROADCAST:
        core_broadcast(j, c);
        break;
    case CMD_USAGE:
        core_usage(j, c);
        break;
    case CMD_SEARCH:
        core_search(j, c);
        break;
    case CMD_SHELL:
    case CMD_SHELL_INPUT:
    case CMD_SHELL_EOF:
    case CMD_SHELL_TOOK:
    case CMD_SHELL_SIZE:
    case CMD_SHELL_LEAVE:
        core_shell(j, c);
        break;
    case CMD_FILE:
    case CMD_FILE_CANCEL:
    case CMD_FILE_SYNCED:
        core_file(j, c);
        break;
    case CMD_LOGS_END:
        end_view(j, c);
        break;
    case CMD_SAY:
        jobs_say(j, (int)c->n, c->sandbox, "%s", c->text);
        break;
    default:
        on_sandbox(j, c);
        break;
    }
}
