/* What became of a create: its answer, the agent started, the end. A lost answer is looked for
 * in the list by the mark; a kill waits for what it can delete. */
#include "core_create.h"
#include "core_priv.h"

#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <stdarg.h>
#include <stdlib.h>

#define LOST_MS 30000        /* a lost create is given up after that and two lists */
#define INTERRUPTED_MS 90000 /* one of another process, whose POST ends within 60 s */

/* --- steps ----------------------------------------------------------------------- */

void create_step(struct create *c, enum sb_step step, const char *fmt, ...)
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

void create_free(struct create *c)
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

void create_give_up(struct create *c, const struct err *why)
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

    create_step(c, STEP_AGENT, "reaching the sandbox");
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

void create_answered(void *ctx, const struct e2b_result *r)
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
    create_give_up(c, &e);
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
        create_give_up(c, &e);
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
