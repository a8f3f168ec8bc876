/* Making a sandbox: row with its mark committed, POST once, the agent started. A lost
 * answer is looked for in the list by the mark; nothing is ever posted a second time
 * unless the service said clearly that it did nothing. */
#include "core_priv.h"

#include <cct/config/tools.h>
#include <cct/model/project.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define LOST_MS 30000        /* a lost create is given up after that and two lists */
#define APART_MS 1000        /* between two creates of several */
#define INTERRUPTED_MS 90000 /* one of another process, whose POST ends within 60 s */

struct create {
    struct jobs *j;
    struct cmd_create *q;
    uint64_t req_id, row, call, timer;
    struct e2b *client;  /* of the call */
    char *mark;
    enum sb_step step;   /* at which it stands, or failed */
    struct kv *vm_env;   /* of the sandbox: the project's variables, the user's; no key */
    struct kv *env;      /* of the agent: keys, too */
    char *own_names;     /* core_env_own_names() */
    struct core_repo_key repo_key;
    struct start_lease lease;
    bool lost;           /* posted, but no answer */
    bool killing, deleting;
    int lists;           /* that did not show it */
    int64_t lost_at;
    core_kill_fn kill_fn;
    void *kill_ctx;
};

/* --- steps ----------------------------------------------------------------------- */

static void at_step(struct create *c, enum sb_step step, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The row says where it stands; the agent's part tells more by itself. */
static void at_step(struct create *c, enum sb_step step, const char *fmt, ...)
{
    struct sandbox *row = jobs_row(c->j, c->row);
    struct buf b = BUF_INIT_MAX(300);
    va_list ap;

    c->step = step;
    va_start(ap, fmt);
    buf_addv(&b, fmt, ap);
    va_end(ap);
    if (row && row->state == SB_CREATING) {
        row->step = step;
        core_row_set(&row->step_text, buf_str(&b));
        core_row_shown(c->j, row);
    }
    buf_release(&b);
}

static void name_step(const struct create *c, struct err *e)
{
    if (c->step != STEP_NONE && e->code != ERR_CANCELLED)
        err_wrap(e, "step %d of %d (%s)", (int)c->step, (int)STEP_LAST, sb_step_name(c->step));
}

/* --- ends ----------------------------------------------------------------------- */

static void create_free(struct create *c)
{
    cmd_create_free(c->q);
    keys_env_free(c->vm_env);
    free(c->own_names);
    keys_env_free(c->env);
    core_repo_key_release(&c->repo_key);
    free(c->mark);
    free(c);
}

static void let_go(struct create *c)
{
    struct jobs *j = c->j;

    for (size_t i = 0; i < j->priv->creates.n; i++)
        if (j->priv->creates.v[i] == c) {
            ARR_REMOVE(&j->priv->creates, i);
            break;
        }
    jobs_store_forget(j, c);
    net_timer_cancel(j->o.net, c->timer);
    core_start_lease_end(&c->lease);
    create_free(c);
}

/* It runs, or never will: nobody is to go on with it. */
static void finish(struct create *c)
{
    if (c->row)
        store_start_put(c->j->o.store, c->row, NULL, (struct st_to){NULL, 0});
    let_go(c);
}

static void told_done(struct create *c, const struct err *e)
{
    core_rows_flush(c->j);
    jobs_done(c->j, c->req_id, e, c->row);
    c->req_id = 0;
}

static void told_killed(struct create *c, const struct err *e, bool gone)
{
    if (c->kill_fn)
        c->kill_fn(c->kill_ctx, e, gone);
    c->kill_fn = NULL;
}

/* Nothing was made, or nothing that could be found. */
static void give_up(struct create *c, const struct err *why)
{
    struct sandbox *row = jobs_row(c->j, c->row);
    struct err named = *why, *e = &named;

    name_step(c, e);
    if (c->killing && c->lost) /* it may be late rather than nothing */
        core_order_mark(c->j, c->mark);
    if (row && c->killing)
        core_kill_gone(c->j, row);
    else if (row)
        jobs_row_error(c->j, row, false, e->text);
    told_killed(c, NULL, true);
    told_done(c, e);
    finish(c);
}

/* Whoever deletes it has its row, too. */
static void was_killed(struct create *c)
{
    struct err e = {0};

    err_set(&e, ERR_CANCELLED, "the sandbox was killed while it was being made");
    told_done(c, &e);
    finish(c);
}

static void failed_up(struct create *c, const struct err *why)
{
    struct sandbox *row = jobs_row(c->j, c->row);
    struct err named, *e = &named;

    if (c->killing) {
        was_killed(c);
        return;
    }
    named = *why;
    name_step(c, e);
    if (row && row->state != SB_KILLED)
        jobs_row_error(c->j, row, true, e->text);
    told_done(c, e);
    finish(c);
}

/* --- killed before it was there ------------------------------------------------- */

static void on_killed(void *ctx, const struct e2b_result *r)
{
    struct create *c = ctx;
    bool gone = r->err.code == ERR_NOTFOUND;
    struct sandbox *row = jobs_row(c->j, c->row);

    c->call = 0;
    if (r->err.code && !gone && row)
        jobs_row_error(c->j, row, true, r->err.text);
    told_killed(c, r->err.code && !gone ? &r->err : NULL, false);
    was_killed(c);
}

static void kill_it(struct create *c)
{
    struct sandbox *row = jobs_row(c->j, c->row);
    struct e2b_call_opts o = {.urgent = true, .give_up_ms = killall_wait_ms(c->j)};

    if (!c->kill_fn) { /* it is deleted by its id */
        was_killed(c);
        return;
    }
    c->deleting = true;
    core_call_cancel(c->j, c->client, c->call);
    c->client = c->j->e2b;
    c->call = e2b_kill(c->j->e2b, row->sandbox_id, &o, on_killed, c);
}

/* --- the agent ------------------------------------------------------------------ */

static void on_provisioned(void *ctx, const struct err *e)
{
    struct create *c = ctx;
    struct sandbox *row = jobs_row(c->j, c->row);
    struct session *s;

    if (e || c->killing) {
        failed_up(c, e);
        return;
    }
    if (row && row->state == SB_CREATING) {
        row->state = SB_RUNNING;
        row->pending = false;
        core_row_step_over(row);
        jobs_row_changed(c->j, row);
        jobs_say(c->j, 0, row->id, "%s runs", row->name);
    }
    s = row ? session_of(c->j, c->row) : NULL;
    if (s) {
        session_vm_state(s, SB_RUNNING);
        session_relay(s); /* the first prompt waits in the store */
        session_follow(s);
    }
    told_done(c, NULL);
    finish(c);
}

static void provision(struct create *c, const struct e2b_sandbox *vm)
{
    struct session *s = session_of(c->j, c->row);
    struct session_start q = {.tool = c->q->tool,
                              .command = c->q->command,
                              .vm = vm,
                              .model = c->q->model,
                              .system_prompt = c->q->system_prompt,
                              .ask = c->q->ask,
                              .skills = c->q->skills,
                              .skills_len = c->q->skills_len,
                              .repo = c->q->repo,
                              .branch = c->q->branch,
                              .env = c->env,
                              .repo_key = c->repo_key.key,
                              .repo_key_name = c->repo_key.name};

    at_step(c, STEP_AGENT, "reaching the sandbox");
    if (!c->q->when_ready)
        told_done(c, NULL);
    session_provision(s, &q, on_provisioned, c);
}

/* --- the VM --------------------------------------------------------------------- */

static void vm_is_there(struct create *c, const struct e2b_sandbox *vm)
{
    struct jobs *j = c->j;
    struct sandbox *row = jobs_row(j, c->row);
    int64_t now = jobs_now(j);

    c->lost = false;
    if (!row || row->state == SB_KILLED) { /* a list showed it before the answer came */
        told_killed(c, NULL, false);
        was_killed(c);
        return;
    }
    if (!row->sandbox_id)
        core_row_set(&row->sandbox_id, vm->sandbox_id);
    if (vm->template_id)
        core_row_set(&row->template_id, vm->template_id);
    if (vm->alias)
        core_row_set(&row->alias, vm->alias);
    row->started_at = vm->started_at ? vm->started_at : row->started_at ? row->started_at : now;
    row->end_at = vm->end_at ? vm->end_at : row->end_at ? row->end_at
                                                        : now + c->q->timeout_s * 1000LL;
    row->not_isolated = vm->not_isolated;
    row->seen_at = now;
    core_time_asked(j, row->id, c->q->timeout_s);
    jobs_row_changed(j, row);
    core_poll_soon(j, 500);
    if (c->killing)
        kill_it(c);
    else
        provision(c, vm);
}

static void on_found(void *ctx, const struct e2b_result *r)
{
    struct create *c = ctx;

    c->call = 0;
    if (r->err.code == 0 && r->n)
        vm_is_there(c, &r->v[0]);
    else if (c->killing)
        kill_it(c);
    else
        failed_up(c, &r->err);
}

/* The list brought the VM whose answer was lost; its token is asked for. */
static void found_again(struct create *c, const char *sandbox_id)
{
    struct e2b_call_opts o = {.give_up_ms = 20000};

    c->lost = false;
    c->client = c->j->e2b;
    if (c->killing)
        kill_it(c);
    else
        c->call = e2b_get(c->client, sandbox_id, &o, on_found, c);
}

bool core_answer_lost(const struct e2b_result *r)
{
    return r->sent && (r->status == 0 || r->status == 502 || r->status == 504 ||
                       r->status / 100 == 2);
}

static void on_created(void *ctx, const struct e2b_result *r)
{
    struct create *c = ctx;
    struct err e = r->err;

    c->call = 0;
    if (e.code == 0 && r->n == 1 && r->v[0].sandbox_id && *r->v[0].sandbox_id) {
        vm_is_there(c, &r->v[0]);
        return;
    }
    if (core_answer_lost(r)) {
        c->lost = true;
        c->lost_at = clock_mono_ms();
        core_poll_soon(c->j, 500);
        return;
    }
    if (e.code == ERR_NOTFOUND) /* the one thing a create names */
        c->step = STEP_TEMPLATE;
    /* a limit says when to try again; whether to is the user's to say */
    /* its word is no proof: the next list shows one that was made all the same */
    err_wrap(&e, r->sent && r->status ? "the service made no sandbox, by its own word"
                                      : "the sandbox was not made");
    give_up(c, &e);
}

static void add_meta(struct kv *meta, size_t *n, const char *k, const char *v)
{
    if (v && *v)
        meta[(*n)++] = (struct kv){(char *)(uintptr_t)k, (char *)(uintptr_t)v};
}

/* Values are [A-Za-z0-9_-] alone, and for life: the project's id tells what it is called
 * later. */
static void send_create(struct create *c, const struct sandbox *row)
{
    char *plain = project_meta_plain(row->project), *exact = project_meta_exact(row->project);
    struct kv meta[10] = {{NULL, NULL}};
    struct e2b_create q = {.template_id = c->q->template_id,
                           .timeout_s = c->q->timeout_s,
                           .auto_pause = c->q->pause_at_end,
                           .meta = meta,
                           .env = c->vm_env};
    size_t n = 0;

    add_meta(meta, &n, "cc-tui", "1");
    add_meta(meta, &n, "cc-tui-session", row->session);
    add_meta(meta, &n, "cc-tui-mark", c->mark);
    add_meta(meta, &n, "cc-tui-name", row->name);
    add_meta(meta, &n, "cc-tui-tool", c->q->tool);
    add_meta(meta, &n, "cc-tui-project", plain);
    add_meta(meta, &n, "cc-tui-project-id", core_project_id_of(c->j, row->project));
    add_meta(meta, &n, "cc-tui-project-name", exact);
    add_meta(meta, &n, "cc-tui-own", c->own_names);
    c->client = c->j->e2b;
    c->call = e2b_create(c->client, &q, on_created, c);
    free(plain);
    free(exact);
}

static void post(void *ctx)
{
    struct create *c = ctx;
    struct err e = {0};

    c->timer = 0;
    if (c->killing) {
        err_set(&e, ERR_CANCELLED, "the sandbox was called off before it was made");
        give_up(c, &e);
        return;
    }
    if (!c->j->e2b) { /* it went while this one waited for its turn */
        give_up(c, &c->j->priv->account_err);
        return;
    }
    at_step(c, STEP_VM, "asking for it, %d s", c->q->timeout_s);
    send_create(c, jobs_row(c->j, c->row));
}

/* Several of one kind go out a second apart: a service counts what is made at once. */
static void post_in_turn(struct create *c)
{
    int64_t wait = 0;

    if (c->q->in_turn && !core_is_local(c->j))
        wait = pace_take(&c->j->priv->create_next, clock_mono_ms(), APART_MS);
    if (wait <= 0) {
        post(c);
        return;
    }
    at_step(c, STEP_ENV, "waiting for its turn, %d s", (int)((wait + 999) / 1000));
    c->timer = net_timer(c->j->o.net, wait, post, c);
}

/* --- the row -------------------------------------------------------------------- */

static void on_prompt(void *ctx, struct st_reply *r)
{
    struct create *c = ctx;

    if (r->err.code == 0) {
        struct ev_message *ev = ev_new(EV_MESSAGE);
        message_copy(&ev->msg, &r->msg);
        jobs_post(c->j, ev);
        post_in_turn(c);
        return;
    }
    struct err e = r->err;
    err_wrap(&e, "the first prompt could not be stored, so nothing was made");
    give_up(c, &e);
}

static void on_recipe(void *ctx, struct st_reply *r)
{
    struct create *c = ctx;
    struct jobs *j = c->j;
    uint64_t id = c->row;

    (void)r; /* without, it is made all the same, and a restart of its agent is by hand */
    if (c->q->pair)
        core_pair_begin(j, c->q->pair, id, jobs_store(j, on_prompt, c, c));
    else if (c->q->prompt && *c->q->prompt)
        store_message_add(j->o.store, id, c->q->prompt, jobs_store(j, on_prompt, c, c));
    else
        post_in_turn(c);
}

static void on_row(void *ctx, struct jobs *j, uint64_t id, const struct err *e)
{
    struct create *c = ctx;
    char *recipe = core_start_text(c->q);

    c->row = id;
    if (e)
        jobs_say(j, 1, id, "this sandbox is not stored here; it is found again by its mark");
    core_rows_flush(j);
    at_step(c, STEP_ENV, "keys and variables of %s", c->q->tool);
    core_rows_flush(j);
    core_start_lease(&c->lease, j, id);
    store_start_put(j->o.store, id, recipe, jobs_store(j, on_recipe, c, c));
    free(recipe);
}

static void new_row(struct jobs *j, struct create *c)
{
    struct sandbox *row = ARR_PUSH(&j->table);
    char id[32];

    rand_id(id, 20);
    c->mark = xstrdup(id);
    row->mark = xstrdup(id);
    rand_id(id, 12);
    row->session = xasprintf("s-%s", id);
    row->name = c->q->name && *c->q->name ? xstrdup(c->q->name) : sandbox_new_name();
    row->tool = xstrdup(c->q->tool);
    row->project = xstrdup(jobs_project(j));
    row->account = xstrdup(j->priv->place);
    row->template_id = xstrdup(c->q->template_id);
    core_row_set(&row->branch, c->q->repo && *c->q->repo ? c->q->branch : NULL);
    row->state = SB_CREATING;
    row->agent = AG_STARTING;
    row->pending = true;
    c->step = row->step = STEP_TEMPLATE;
    row->step_text = xstrdup(row->template_id);
    row->created_at = row->agent_since = jobs_now(j);
    core_row_insert(j, row, on_row, c);
}

/* What sandbox and agent get, put together once: the project may be another one by the time
 * that the VM is there. The sandbox has what is no secret, so that a restarted agent and a
 * shell have it, too. A key that is there and cannot be used is met before anything is
 * spent. NULL: told. */
static struct create *with_env(struct jobs *j, struct cmd *cmd, const struct tool *t)
{
    const char *project = jobs_project(j);
    struct create *c = xcalloc(1, sizeof(*c));
    struct kv *vars = core_project_env(j, project, true, false, NULL);
    struct err e = {0};
    char *missing = NULL;
    const struct core_env_q q = {.t = t, .model = cmd->create->model, .project = project,
                                 .own = cmd->create->env};

    c->j = j;
    c->env = cmd->create->pair ? core_pair_env(j, cmd->create->pair, &q, &missing, &e)
                               : core_keys_env(j, &q, &missing, &e);
    c->vm_env = core_env_join(vars, cmd->create->env);
    c->own_names = core_env_own_names(cmd->create->env, core_project(j, project));
    keys_env_free(vars);
    free(missing);
    if (c->env && core_keys_repo(j, cmd->create->repo, cmd->create->env, &c->repo_key, &e) == 0)
        return c;
    err_wrap(&e, "step %d of %d (%s)", (int)STEP_ENV, (int)STEP_LAST, sb_step_name(STEP_ENV));
    jobs_done(j, cmd->m.req_id, &e, 0);
    create_free(c);
    return NULL;
}

static bool refused(struct jobs *j, struct cmd *cmd, const struct tool *t)
{
    uint64_t req = cmd->m.req_id;

    if (j->o.readonly)
        core_done_err(j, req, 0, ERR_PERM, "nothing is made: this cc-tui only reads");
    else if (!j->e2b)
        jobs_done(j, req, &j->priv->account_err, 0);
    else if (!t)
        core_done_err(j, req, 0, ERR_INVALID, "there is no tool \"%s\"", cmd->create->tool);
    else if (!cmd->create->pair != !str_eq(t->adapter, "pair"))
        core_done_err(j, req, 0, ERR_INVALID, "a pair wants two roles: cc-tui pair starts one");
    else if (t->local_only && !core_is_local(j))
        core_done_err(j, req, 0, ERR_INVALID, "the tool \"%s\" runs with the local provider only: "
                      "start with --local", t->name);
    else if (core_killall_busy(j))
        core_done_err(j, req, 0, ERR_CONFLICT, "nothing is made while everything is being killed");
    else
        return false;
    return true;
}

void core_create(struct jobs *j, struct cmd *cmd)
{
    const struct tool *t = tools_find(j->o.tools, cmd->create->tool);
    struct create *c = refused(j, cmd, t) ? NULL : with_env(j, cmd, t);

    if (!c)
        return;
    if (cmd->create->only_try) {
        jobs_done(j, cmd->m.req_id, NULL, 0);
        create_free(c);
        return;
    }
    core_project_ensure(j);
    c->q = cmd->create;
    c->req_id = cmd->m.req_id;
    cmd->create = NULL;
    if (!c->q->template_id || !*c->q->template_id)
        core_row_set(&c->q->template_id, c->q->pair ? core_pair_template(j, c->q->pair)
                                                    : t->template_id);
    if (c->q->timeout_s <= 0)
        c->q->timeout_s = t->timeout_s > 0 ? t->timeout_s : 900;
    *ARR_PUSH(&j->priv->creates) = c;
    new_row(j, c);
}

/* --- what lists say ------------------------------------------------------------- */

static struct create *of_row(struct jobs *j, uint64_t row)
{
    for (size_t i = 0; row && i < j->priv->creates.n; i++)
        if (j->priv->creates.v[i]->row == row)
            return j->priv->creates.v[i];
    return NULL;
}

bool core_create_runs(const struct jobs *j, uint64_t row)
{
    return of_row((struct jobs *)(uintptr_t)j, row) != NULL;
}

static void look_for(struct create *c)
{
    const struct sandbox *row = jobs_row(c->j, c->row);
    struct err e = {0};

    if (row && row->sandbox_id) {
        found_again(c, row->sandbox_id);
    } else if (++c->lists >= 2 && clock_mono_ms() - c->lost_at >= LOST_MS) {
        err_set(&e, ERR_NETWORK, "the answer to the create was lost and no such sandbox is "
                                 "listed: make it again");
        give_up(c, &e);
    }
}

void core_create_listed(struct jobs *j)
{
    for (size_t i = j->priv->creates.n; i-- > 0;) {
        struct create *c = i < j->priv->creates.n ? j->priv->creates.v[i] : NULL;
        const struct sandbox *row = c ? jobs_row(j, c->row) : NULL;

        if (c && c->lost)
            look_for(c);
        else if (row && row->sandbox_id && c->kill_fn && !c->deleting)
            kill_it(c); /* listed before its answer came */
    }
    for (size_t i = 0; i < j->table.n; i++) {
        struct sandbox *row = &j->table.v[i];

        /* of an earlier life: found by its mark it would not be `creating` any more */
        if (core_poll_lists(j) >= 2 && row->state == SB_CREATING && row->id &&
            !of_row(j, row->id) && jobs_now(j) - row->created_at > INTERRUPTED_MS) {
            row->agent = AG_NONE;
            jobs_row_error(j, row, row->sandbox_id != NULL, "the create was interrupted and no "
                           "such sandbox is listed: make it again");
        }
    }
}

void core_create_demo(struct jobs *j)
{
    struct cmd *c;

    if (!j->o.first_demo || j->o.readonly || !core_is_local(j))
        return;
    for (size_t i = 0; i < j->table.n; i++)
        if (!j->table.v[i].foreign || core_row_live(&j->table.v[i]))
            return;
    c = cmd_new(CMD_CREATE, 0);
    c->create = xcalloc(1, sizeof(*c->create));
    c->create->tool = xstrdup("demo");
    core_create(j, c);
    msg_free(&c->m);
}

bool core_create_kill(struct jobs *j, const struct sandbox *row, core_kill_fn fn, void *ctx)
{
    struct create *c = NULL;
    struct err e = {0};

    for (size_t i = 0; row->mark && i < j->priv->creates.n; i++)
        if (str_eq(j->priv->creates.v[i]->mark, row->mark))
            c = j->priv->creates.v[i];
    if (!c)
        return false;
    c->killing = true;
    if (row->sandbox_id)
        return false; /* there is something to delete already */
    err_set(&e, ERR_CANCELLED, "a later kill took it over");
    told_killed(c, &e, false);
    c->kill_fn = fn;
    c->kill_ctx = ctx;
    return true;
}

void core_create_kill_drop(struct jobs *j, void *ctx)
{
    for (size_t i = 0; i < j->priv->creates.n; i++)
        if (j->priv->creates.v[i]->kill_ctx == ctx)
            j->priv->creates.v[i]->kill_fn = NULL;
}

void core_create_release(struct jobs *j)
{
    while (j->priv->creates.n)
        let_go(j->priv->creates.v[0]);
    ARR_RELEASE(&j->priv->creates);
}
