/* What a user does to one sandbox: its agent, names, views; everything else is passed on to who
 * does it. What needs the row is refused with a sentence when the row cannot do it now. */
#include "core_act.h"
#include "core_priv.h"

#include <cct/config/tools.h>
#include <cct/model/export.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>

struct act *act_new(struct jobs *j, const struct cmd *c)
{
    struct act *a = xcalloc(1, sizeof(*a));

    a->j = j;
    a->req_id = c->m.req_id;
    a->row = c->sandbox;
    a->message = c->id;
    *ARR_PUSH(&j->priv->acts) = a;
    return a;
}

void act_end(struct act *a, const struct err *e)
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
        core_send(j, c, row);
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
        core_pause_action(j, c, row);
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
        core_message_cmd(j, c);
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
