/* Builds of templates: their rows, what is told of them, who drives them, and the ones that another
 * process left behind. One process drives a build (a lease); the others read its row. */
#include "builds_priv.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEASE_EVERY_MS = 2000, TELL_MS = 100 };

struct tbuilds *builds_all(struct jobs *j)
{
    if (!j->priv->tbuilds)
        j->priv->tbuilds = xcalloc(1, sizeof(struct tbuilds));
    return j->priv->tbuilds;
}

struct build_op *builds_op_new(struct jobs *j, uint64_t req_id)
{
    struct build_op *op = *ARR_PUSH(&builds_all(j)->ops) = xcalloc(1, sizeof(*op));

    op->j = j;
    op->req_id = req_id;
    return op;
}

void builds_op_free(struct build_op *op)
{
    struct tbuilds *t = builds_all(op->j);

    for (size_t i = 0; i < t->ops.n; i++)
        if (t->ops.v[i] == op) {
            ARR_REMOVE(&t->ops, i);
            break;
        }
    core_call_cancel(op->j, op->client, op->call);
    if (op->c)
        msg_free(&op->c->m);
    build_args_free(op->args);
    free(op->name);
    free(op->template_id);
    free(op);
}

bool builds_is_here(const struct jobs *j, const struct tbuild *b)
{
    return str_eq(b->account, j->priv->place);
}

/* --- rows ---------------------------------------------------------------------------- */

static void tell(void *ctx)
{
    struct jobs *j = ctx;
    struct tbuilds *t = builds_all(j);
    struct ev_builds *ev = ev_new(EV_BUILDS);

    t->tell_timer = 0;
    ev->v = xcalloc(t->rows.n + 1, sizeof(*ev->v));
    for (size_t i = 0; i < t->rows.n; i++)
        if (builds_is_here(j, t->rows.v[i]))
            tbuild_copy(&ev->v[ev->n++], t->rows.v[i]);
    jobs_post(j, ev);
}

void builds_tell_soon(struct jobs *j)
{
    struct tbuilds *t = builds_all(j);

    if (!t->tell_timer && !j->priv->stopping)
        t->tell_timer = net_timer(j->o.net, TELL_MS, tell, j);
}

struct tbuild *builds_row_of(struct tbuilds *t, uint64_t id)
{
    for (size_t i = 0; i < t->rows.n; i++)
        if (t->rows.v[i]->id == id)
            return t->rows.v[i];
    return NULL;
}

struct build_run *builds_run_of(struct tbuilds *t, uint64_t id)
{
    for (size_t i = 0; i < t->runs.n; i++)
        if (t->runs.v[i]->id == id)
            return t->runs.v[i];
    return NULL;
}

struct tbuild *builds_add_row(struct tbuilds *t, struct tbuild *take)
{
    struct tbuild *row = xcalloc(1, sizeof(*row));

    *row = *take;
    memset(take, 0, sizeof(*take));
    *ARR_PUSH(&t->rows) = row;
    return row;
}

void builds_drop_row(struct tbuilds *t, size_t i)
{
    tbuild_release(t->rows.v[i]);
    free(t->rows.v[i]);
    ARR_REMOVE(&t->rows, i);
}

/* --- runs ---------------------------------------------------------------------------- */

void builds_lease_name(uint64_t id, char *dst)
{
    snprintf(dst, BUILD_LEASE_NAME, "build:%llu", (unsigned long long)id);
}

static void let_go(struct build_run *b)
{
    char name[BUILD_LEASE_NAME];

    builds_lease_name(b->id, name);
    store_lease_drop(b->j->o.store, name, b->j->o.owner);
}

void builds_free_run(struct build_run *b)
{
    struct tbuilds *t = builds_all(b->j);

    jobs_store_forget(b->j, b);
    for (size_t i = 0; i < t->runs.n; i++)
        if (t->runs.v[i] == b) {
            ARR_REMOVE(&t->runs, i);
            break;
        }
    build_run_free(b);
}

/* The row's last state is on the disk before who waits is told. */
static void finish(void *ctx)
{
    struct build_run *b = ctx;

    b->end_timer = 0;
    if (b->putting) { /* on_put comes again */
        return;
    }
    build_flush(b);
    let_go(b);
    if (b->req_id)
        jobs_done(b->j, b->req_id, b->end.code ? &b->end : NULL, 0);
    builds_free_run(b);
}

void builds_run_over(struct build_run *b)
{
    if (!b->end_timer)
        b->end_timer = net_timer(b->j->o.net, 0, finish, b);
}

/* Whoever called it off did so in the row. */
static void on_put(void *ctx, struct st_reply *r)
{
    struct build_run *b = ctx;

    b->putting--;
    if (r->n_builds && r->builds[0].state == TB_CANCELLED && !b->over)
        build_stop(b, r->builds[0].error ? r->builds[0].error : "called off");
    else if (b->over)
        builds_run_over(b);
}

void builds_row_changed(struct build_run *b, bool store)
{
    if (store && !b->j->priv->stopping) {
        b->putting++;
        store_build_put(b->j->o.store, b->row, jobs_store(b->j, on_put, b, b));
    }
    builds_tell_soon(b->j);
}

void builds_started(struct build_run *b)
{
    if (!b->req_id || b->to_the_end)
        return;
    build_flush(b);
    jobs_done(b->j, b->req_id, NULL, 0);
    b->req_id = 0;
}

static void renew(void *ctx);

/* This process slept and another one drives it now. */
static void is_taken(struct build_run *b)
{
    build_flush(b);
    if (b->req_id)
        core_done_err(b->j, b->req_id, 0, ERR_CANCELLED, "another cc-tui goes on with the build of "
                      "\"%.80s\"; 'cc-tui builds --follow %.80s' shows how it goes", b->row->name,
                      b->row->name);
    builds_free_run(b);
}

static void on_renewed(void *ctx, struct st_reply *r)
{
    struct build_run *b = ctx;

    if (!b->over && (r->got || r->err.code))
        b->lease_timer = net_timer(b->j->o.net, LEASE_EVERY_MS, renew, b);
    else if (!b->over)
        is_taken(b);
}

/* Looks into the row, too. */
static void renew(void *ctx)
{
    struct build_run *b = ctx;
    char name[BUILD_LEASE_NAME];

    b->lease_timer = 0;
    if (b->over)
        return;
    builds_lease_name(b->id, name);
    builds_row_changed(b, true);
    store_lease(b->j->o.store, name, b->j->o.owner, BUILD_LEASE_MS, jobs_store(b->j, on_renewed, b, b));
}

struct build_run *builds_add_run(struct jobs *j, struct tbuild *row)
{
    struct build_run *b = xcalloc(1, sizeof(*b));

    b->j = j;
    b->id = row->id;
    b->row = row;
    build_options_parse(&b->options, row->options);
    *ARR_PUSH(&builds_all(j)->runs) = b;
    b->lease_timer = net_timer(j->o.net, LEASE_EVERY_MS, renew, b);
    return b;
}

/* --- what another process left ------------------------------------------------------------ */

static void on_claimed(void *ctx, struct st_reply *r)
{
    struct build_op *c = ctx;
    struct tbuilds *t = builds_all(c->j);
    struct tbuild *row = builds_row_of(t, c->id);
    struct build_run *b;

    if (r->got && row && !tb_is_over(row->state) && !builds_run_of(t, c->id) && c->j->e2b) {
        jobs_say(c->j, 0, 0, "template %s: the build is picked up again", row->name);
        b = builds_add_run(c->j, row);
        if (row->state == TB_BUILDING || (row->state == TB_WAITING && !row->phase)) {
            build_follow(b);
        } else {
            b->may_be_started = row->template_id && row->build_id;
            build_begin(b);
        }
    }
    builds_op_free(c);
}

static void pick_up(struct jobs *j)
{
    struct tbuilds *t = builds_all(j);

    for (size_t i = 0; i < t->rows.n && j->o.follow_all && j->e2b && !j->priv->look_only; i++) {
        const struct tbuild *row = t->rows.v[i];
        char name[BUILD_LEASE_NAME];
        struct build_op *c;

        if (tb_is_over(row->state) || !builds_is_here(j, row) || builds_run_of(t, row->id))
            continue;
        c = builds_op_new(j, 0);
        c->id = row->id;
        builds_lease_name(row->id, name);
        store_lease(j->o.store, name, j->o.owner, BUILD_LEASE_MS, jobs_store(j, on_claimed, c, j));
    }
}

static int by_id(const void *pa, const void *pb)
{
    const struct tbuild *const *a = pa, *const *b = pb;

    return (*a)->id < (*b)->id ? -1 : (*a)->id > (*b)->id;
}

/* Rows that are driven here are newer than what is stored. */
void builds_take_rows(void *ctx, struct st_reply *r)
{
    struct jobs *j = ctx;
    struct tbuilds *t = builds_all(j);

    if (r->err.code)
        return;
    if (r->got) {
        for (size_t i = t->rows.n; i-- > 0;)
            if (!builds_run_of(t, t->rows.v[i]->id))
                builds_drop_row(t, i);
        for (size_t i = 0; i < r->n_builds; i++)
            if (!builds_row_of(t, r->builds[i].id))
                builds_add_row(t, &r->builds[i]);
        if (t->rows.n)
            qsort(t->rows.v, t->rows.n, sizeof(*t->rows.v), by_id);
        builds_tell_soon(j);
    }
    t->loaded = true;
    pick_up(j);
}

void core_builds_listed(struct jobs *j)
{
    if (j->o.follow_all)
        store_builds(j->o.store, builds_all(j)->loaded, jobs_store(j, builds_take_rows, j, j));
}

/* --- life ---------------------------------------------------------------------------------- */

/* Of another account from now on: what runs is left to whoever has that one. */
void core_builds_leave(struct jobs *j)
{
    struct tbuilds *t = builds_all(j);

    while (t->runs.n) {
        struct build_run *b = t->runs.v[t->runs.n - 1];
        uint64_t req = b->req_id;

        let_go(b);
        builds_free_run(b);
        if (req)
            core_done_err(j, req, 0, ERR_CANCELLED, "the build is not followed any more: the key in "
                          "force is another one");
    }
    for (size_t i = t->ops.n; i-- > 0;)
        if (t->ops.v[i]->call) {
            core_done_err(j, t->ops.v[i]->req_id, 0, ERR_CANCELLED, "not done: the key in force is "
                          "another one");
            builds_op_free(t->ops.v[i]);
        }
    builds_tell_soon(j);
}

void core_builds_release(struct jobs *j)
{
    struct tbuilds *t = j->priv->tbuilds;

    if (!t)
        return;
    while (t->runs.n) {
        let_go(t->runs.v[t->runs.n - 1]);
        builds_free_run(t->runs.v[t->runs.n - 1]);
    }
    while (t->ops.n)
        builds_op_free(t->ops.v[t->ops.n - 1]);
    for (size_t i = 0; i < t->leaving.n; i++)
        build_work_free(t->leaving.v[i]);
    ARR_RELEASE(&t->leaving);
    while (t->rows.n)
        builds_drop_row(t, t->rows.n - 1);
    net_timer_cancel(j->o.net, t->tell_timer);
    ARR_RELEASE(&t->rows);
    ARR_RELEASE(&t->runs);
    ARR_RELEASE(&t->ops);
    free(t);
    j->priv->tbuilds = NULL;
}
