/* Asking for a sandbox: row with its mark committed, POST once. Nothing is ever posted a second
 * time unless the service said clearly that it did nothing. */
#include "core_create.h"
#include "core_priv.h"

#include <cct/config/tools.h>
#include <cct/model/project.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>

#define APART_MS 1000 /* between two creates of several */

/* --- the POST ------------------------------------------------------------------- */

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
    c->call = e2b_create(c->client, &q, create_answered, c);
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
        create_give_up(c, &e);
        return;
    }
    if (!c->j->e2b) { /* it went while this one waited for its turn */
        create_give_up(c, &c->j->priv->account_err);
        return;
    }
    create_step(c, STEP_VM, "asking for it, %d s", c->q->timeout_s);
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
    create_step(c, STEP_ENV, "waiting for its turn, %d s", (int)((wait + 999) / 1000));
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
    create_give_up(c, &e);
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
    create_step(c, STEP_ENV, "keys and variables of %s", c->q->tool);
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
