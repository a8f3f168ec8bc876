/* The jobs' core: life on the net thread, dispatch of commands and answers. */
#include "core_priv.h"

#include <cct/model/pair.h>
#include <cct/text/clean.h>
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/log.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- answers -------------------------------------------------------------------- */

/* Words of the service may be in an error, and an agent's answer is all its own. */
static void clean_done(struct ev_done *d)
{
    char *text = d->text ? clean_text_dup(d->text, strlen(d->text)) : NULL;
    int sys = d->err.sys;

    if (!core_is_plain(d->err.text)) {
        char *line = clean_line_dup(d->err.text, 0);
        err_set(&d->err, d->err.code, "%s", line);
        d->err.sys = sys;
        free(line);
    }
    free(d->text);
    d->text = text;
}

void jobs_post(struct jobs *j, void *ev)
{
    const struct msg *m = ev;

    if (m->type == EV_DONE)
        clean_done(ev);
    mq_post(j->o.events, MQ_NORMAL, ev);
}

void jobs_done(struct jobs *j, uint64_t req_id, const struct err *e, uint64_t sandbox)
{
    struct ev_done *d;
    const struct sandbox *row;

    if (!req_id)
        return;
    d = ev_new(EV_DONE);
    d->m.req_id = req_id;
    d->sandbox = sandbox;
    if (e)
        d->err = *e;
    row = sandbox ? jobs_row(j, sandbox) : NULL;
    if (row)
        d->sandbox_id = xstrdup(row->sandbox_id);
    jobs_post(j, d);
}

void core_done_err(struct jobs *j, uint64_t req_id, uint64_t sandbox, int code,
                   const char *fmt, ...)
{
    struct err e = {.code = code};
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(e.text, sizeof(e.text), fmt, ap);
    va_end(ap);
    jobs_done(j, req_id, &e, sandbox);
}

__attribute__((format(printf, 5, 0))) static void say(struct jobs *j, int level,
                                                      uint64_t sandbox, bool budget,
                                                      const char *fmt, va_list ap)
{
    struct ev_event *ev = ev_new(EV_EVENT);
    struct buf b = BUF_INIT_MAX(4096);

    buf_addv(&b, fmt, ap);
    ev->budget = budget;
    ev->text = clean_line_dup(buf_str(&b), 0);
    ev->time_ms = clock_wall_ms();
    ev->level = level;
    ev->sandbox = sandbox;
    log_info("%s", ev->text);
    if (j->o.store)
        store_log_add(j->o.store, level, sandbox, ev->text);
    buf_release(&b);
    jobs_post(j, ev);
}

void jobs_say(struct jobs *j, int level, uint64_t sandbox, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say(j, level, sandbox, false, fmt, ap);
    va_end(ap);
}

void jobs_say_budget(struct jobs *j, int level, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say(j, level, 0, j->o.usage_limits.action != USAGE_NONE, fmt, ap);
    va_end(ap);
}

int64_t jobs_now(const struct jobs *j)
{
    return server_clock_at(&j->clock, clock_boot_ms(), clock_wall_ms());
}

/* --- calls to the store --------------------------------------------------------- */

struct st_to jobs_store(struct jobs *j, jobs_store_fn fn, void *ctx, const void *owner)
{
    struct jobs_wait *w = xcalloc(1, sizeof(*w));
    uint64_t id = ++j->next_req;

    *w = (struct jobs_wait){fn, ctx, owner};
    map_put_id(j->waiting, id, w);
    return (struct st_to){net_mq(j->o.net), id};
}

void jobs_store_forget(struct jobs *j, const void *owner)
{
    size_t it = 0;
    struct jobs_wait *w;
    uint64_t id;

    while ((w = map_next(j->waiting, &it, NULL, &id)))
        if (w->owner == owner)
            w->fn = NULL;
}

static void on_store(struct jobs *j, struct st_reply *r)
{
    struct jobs_wait *w = r->m.req_id ? map_del_id(j->waiting, r->m.req_id) : NULL;

    if (w && w->fn)
        w->fn(w->ctx, r);
    free(w);
    if (r->m.type != ST_OPENED && r->m.type != ST_TROUBLE)
        return;
    if (r->readonly)
        j->o.readonly = true;
    if (r->err.code)
        jobs_say(j, 2, 0, "%s", r->err.text);
    else if (r->text)
        jobs_say(j, 1, 0, "%s", r->text);
}

/* --- commands ------------------------------------------------------------------- */

static void free_cmd(struct msg *m)
{
    struct cmd *c = (struct cmd *)m;

    cmd_create_free(c->create);
    cmd_shell_free(c->shell);
    cmd_build_free(c->build);
    cmd_file_free(c->file);
    secret_free(c->key);
    if (c->project)
        project_release(c->project);
    free(c->project);
    free(c->text);
    free(c->text2);
    free(c->ids);
    free(c);
}

struct cmd *cmd_new(enum cmd_type t, uint64_t req_id)
{
    struct cmd *c = xcalloc(1, sizeof(*c));

    msg_init(&c->m, t, sizeof(*c), free_cmd);
    c->m.req_id = req_id;
    return c;
}

void cmd_create_free(struct cmd_create *c)
{
    if (!c)
        return;
    keys_env_free(c->env);
    pair_free(c->pair);
    free(c->tool);
    free(c->template_id);
    free(c->name);
    free(c->prompt);
    free(c->command);
    free(c->model);
    free(c->repo);
    free(c->branch);
    free(c->system_prompt);
    free(c->ask);
    free(c->skills);
    free(c);
}

/* What a command needs before it can be carried out. */
static bool must_wait(const struct jobs *j, const struct cmd *c)
{
    switch ((enum cmd_type)c->m.type) {
    case CMD_ACTIVE:
    case CMD_SAY:
    case CMD_KILL_CANCEL:
    case CMD_STRETCHED:
    case CMD_BUILD_WORKED:
    case CMD_FILE_SYNCED:
    case CMD_BUILD_EXPORT:
    case CMD_TOUCH:
        return false;
    case CMD_KEY_TEST:
    case CMD_LOCK:
    case CMD_UNLOCK:
    case CMD_KEY_ADD:
    case CMD_KEY_RM:
    case CMD_KEY_TRUST:
    case CMD_KEY_PROTECT:
    case CMD_PROJECT:
    case CMD_PROJECT_ADD:
    case CMD_PROJECT_RENAME:
    case CMD_PROJECT_RM:
    case CMD_PROJECT_SET:
    case CMD_PROJECT_VAR:
    case CMD_PROJECT_SECRET:
    case CMD_PRESET:
    case CMD_FILTER:
    case CMD_KEY_LOOK:
        return !core_keys_settled(j) || !core_projects_known(j);
    case CMD_CREATE: /* the agents' keys, too */
    case CMD_RESTART:
    case CMD_PAIR:
        return !j->priv->rows_loaded || !j->priv->account_known || !core_keys_settled(j) ||
               !core_projects_known(j);
    case CMD_FOLLOW:
    case CMD_LOAD_OLDER:
    case CMD_LOAD_NEWER:
    case CMD_RENAME:
    case CMD_TAG:
    case CMD_PROTECT:
    case CMD_EXPORT:
    case CMD_SEARCH:
    case CMD_USAGE:
        return !j->priv->rows_loaded;
    default:
        return !j->priv->rows_loaded || !j->priv->account_known;
    }
}

void cmd_build_free(struct cmd_build *b)
{
    if (!b)
        return;
    for (char **t = b->tags; t && *t; t++)
        free(*t);
    free(b->tags);
    kv_free(b->args);
    free(b->name);
    free(b->where);
    free(b->tool);
    free(b);
}

static void hold(struct jobs *j, struct cmd *c)
{
    struct cmd *kept = cmd_new((enum cmd_type)c->m.type, c->m.req_id);

    kept->sandbox = c->sandbox;
    kept->id = c->id;
    kept->n = c->n;
    kept->on = c->on;
    kept->text = c->text;
    kept->text2 = c->text2;
    kept->key = c->key;
    kept->create = c->create;
    kept->shell = c->shell;
    kept->file = c->file;
    kept->ids = c->ids;
    kept->n_ids = c->n_ids;
    c->ids = NULL;
    kept->project = c->project;
    kept->build = c->build;
    c->build = NULL;
    c->text = c->text2 = NULL;
    c->key = NULL;
    c->create = NULL;
    c->shell = NULL;
    c->file = NULL;
    c->project = NULL;
    *ARR_PUSH(&j->priv->held) = kept;
}

void core_run_held(struct jobs *j)
{
    struct jobs_priv *p = j->priv;
    size_t keep = 0, n = p->held.n;

    for (size_t i = 0; i < n; i++) {
        struct cmd *c = p->held.v[i];

        if (must_wait(j, c)) {
            p->held.v[keep++] = c;
            continue;
        }
        core_action(j, c);
        msg_free(&c->m);
    }
    p->held.n = keep;
}

static void on_msg(void *ctx, struct msg *m)
{
    struct jobs *j = ctx;
    struct cmd *c = (struct cmd *)m;

    if (m->type < CMD_CREATE)
        on_store(j, (struct st_reply *)m);
    else if (must_wait(j, c))
        hold(j, c);
    else
        core_action(j, c);
}

/* --- life ----------------------------------------------------------------------- */

static void on_rows(void *ctx, struct st_reply *r)
{
    struct jobs *j = ctx;

    core_rows_load(j, r);
    j->priv->rows_loaded = true;
    core_run_held(j);
    core_usage_show(j); /* what was so far, before any service has answered */
    core_poll_start(j);
}

/* The store answers while libcurl is loaded. */
static void on_enter(void *ctx)
{
    struct jobs *j = ctx;

    core_orders_load(j);
    core_projects_start(j);
    core_keys_start(j); /* answered before the rows: whose they are is known by then */
    store_sandboxes(j->o.store, jobs_store(j, on_rows, j, j));
}

static void on_start(void *ctx, struct net *n, const struct err *e)
{
    struct jobs *j = ctx;

    (void)n;
    THREAD_ASSERT(THREAD_NET);
    if (e)
        j->priv->net_err = *e;
    core_poll_init(j);
    core_account_start(j);
}

static void free_session(struct jobs *j)
{
    size_t it = 0;
    struct session *s;

    while ((s = map_next(j->sessions, &it, NULL, NULL))) {
        session_free(s); /* leaves the map */
        it = 0;
    }
}

/* What we started in the sandboxes for ourselves ends with us. */
static bool on_leave(void *ctx)
{
    struct jobs *j = ctx;
    struct session *s;
    size_t it = 0;

    if (!j->leaving) {
        j->leaving = true;
        while ((s = map_next(j->sessions, &it, NULL, NULL)))
            session_leave(s);
    }
    return j->goodbyes > 0;
}

static void on_stop(void *ctx)
{
    struct jobs *j = ctx;
    struct jobs_priv *p = j->priv;

    p->stopping = true;
    core_shell_release(j);
    core_files_release(j);
    core_foreign_stop(j);
    free_session(j);
    core_killall_release(j);
    core_create_release(j);
    core_resume_release(j);
    core_actions_release(j);
    core_messages_release(j);
    core_kill_release(j);
    core_poll_release(j);
    core_ask_release(j);
    core_local_release(j);
    core_builds_release(j); /* they look at logs */
    core_looks_release(j);
    core_exports_release(j);
    core_metrics_release(j);
    core_usage_release(j);
    core_times_release(j);
    core_keys_release(j);
    core_projects_release(j);
    core_account_release(j);
    core_rows_flush(j);
}

struct jobs *jobs_new(const struct jobs_opts *o)
{
    struct jobs *j = xcalloc(1, sizeof(*j));

    j->o = *o;
    if (j->o.poll_ms <= 0)
        j->o.poll_ms = 3000;
    j->priv = xcalloc(1, sizeof(*j->priv));
    j->priv->look_only = o->readonly;
    j->priv->place = xstrdup(o->local ? "local" : "");
    j->key_refused = core_keys_refused;
    j->sessions = map_new();
    j->waiting = map_new();
    core_rows_init(j);
    core_foreign_init(j);
    return j;
}

struct net_hooks jobs_hooks(struct jobs *j)
{
    return (struct net_hooks){.on_enter = on_enter,
                              .on_start = on_start,
                              .on_msg = on_msg,
                              .on_leave = on_leave,
                              .on_stop = on_stop,
                              .ctx = j};
}

void jobs_free(struct jobs *j)
{
    struct jobs_priv *p;

    if (!j)
        return;
    p = j->priv;
    for (size_t i = 0; i < p->held.n; i++)
        msg_free(&p->held.v[i]->m);
    ARR_RELEASE(&p->held);
    core_orders_release(j);
    core_rows_release(j);
    core_foreign_release(j);
    map_free(j->sessions, NULL);
    map_free(j->waiting, free);
    free(p->place);
    free(p);
    free(j);
}
