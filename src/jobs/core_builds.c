/* Builds of templates: their rows, what is told of them, commands, and the ones that another
 * process left behind. One process drives a build (a lease); the others read its row. */
#include "builds_priv.h"

#include <cct/text/clean.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEASE_MS = 6000, LEASE_EVERY_MS = 2000, TELL_MS = 100, LEASE_NAME = 40 };

struct tbuilds {
    ARR(struct tbuild *) rows; /* of all accounts, by id */
    ARR(struct build_run *) runs;
    ARR(struct build_op *) ops;
    bool loaded;
    uint64_t tell_timer;
};
/* Something that was asked of the store or the service: a row, a lease, an end. */
struct build_op {
    struct jobs *j;
    uint64_t req_id;
    bool wait;
    uint64_t id;         /* of a row */
    char *name, *template_id;
    struct cmd *c;       /* to be done when the rows are there */
    struct e2b *client;
    uint64_t call;
};

static struct tbuilds *all(struct jobs *j)
{
    if (!j->priv->tbuilds)
        j->priv->tbuilds = xcalloc(1, sizeof(struct tbuilds));
    return j->priv->tbuilds;
}

static struct build_op *op_new(struct jobs *j, uint64_t req_id)
{
    struct build_op *op = *ARR_PUSH(&all(j)->ops) = xcalloc(1, sizeof(*op));

    op->j = j;
    op->req_id = req_id;
    return op;
}

static void op_free(struct build_op *op)
{
    struct tbuilds *t = all(op->j);

    for (size_t i = 0; i < t->ops.n; i++)
        if (t->ops.v[i] == op) {
            ARR_REMOVE(&t->ops, i);
            break;
        }
    core_call_cancel(op->j, op->client, op->call);
    if (op->c)
        msg_free(&op->c->m);
    free(op->name);
    free(op->template_id);
    free(op);
}

static bool is_here(const struct jobs *j, const struct tbuild *b)
{
    return str_eq(b->account, j->priv->place);
}

/* --- rows ---------------------------------------------------------------------------- */

static void tell(void *ctx)
{
    struct jobs *j = ctx;
    struct tbuilds *t = all(j);
    struct ev_builds *ev = ev_new(EV_BUILDS);

    t->tell_timer = 0;
    ev->v = xcalloc(t->rows.n + 1, sizeof(*ev->v));
    for (size_t i = 0; i < t->rows.n; i++)
        if (is_here(j, t->rows.v[i]))
            tbuild_copy(&ev->v[ev->n++], t->rows.v[i]);
    jobs_post(j, ev);
}

static void tell_soon(struct jobs *j)
{
    struct tbuilds *t = all(j);

    if (!t->tell_timer && !j->priv->stopping)
        t->tell_timer = net_timer(j->o.net, TELL_MS, tell, j);
}

static struct tbuild *row_of(struct tbuilds *t, uint64_t id)
{
    for (size_t i = 0; i < t->rows.n; i++)
        if (t->rows.v[i]->id == id)
            return t->rows.v[i];
    return NULL;
}

static struct build_run *run_of(struct tbuilds *t, uint64_t id)
{
    for (size_t i = 0; i < t->runs.n; i++)
        if (t->runs.v[i]->id == id)
            return t->runs.v[i];
    return NULL;
}

static struct tbuild *add_row(struct tbuilds *t, struct tbuild *take)
{
    struct tbuild *row = xcalloc(1, sizeof(*row));

    *row = *take;
    memset(take, 0, sizeof(*take));
    *ARR_PUSH(&t->rows) = row;
    return row;
}

static void drop_row(struct tbuilds *t, size_t i)
{
    tbuild_release(t->rows.v[i]);
    free(t->rows.v[i]);
    ARR_REMOVE(&t->rows, i);
}

/* --- runs ---------------------------------------------------------------------------- */

static void lease_name(uint64_t id, char *dst)
{
    snprintf(dst, LEASE_NAME, "build:%llu", (unsigned long long)id);
}

static void let_go(struct build_run *b)
{
    char name[LEASE_NAME];

    lease_name(b->id, name);
    store_lease_drop(b->j->o.store, name, b->j->o.owner);
}

static void free_run(struct build_run *b)
{
    struct tbuilds *t = all(b->j);

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
    free_run(b);
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
    tell_soon(b->j);
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

static void on_renewed(void *ctx, struct st_reply *r)
{
    struct build_run *b = ctx;

    if (!b->over && (r->got || r->err.code))
        b->lease_timer = net_timer(b->j->o.net, LEASE_EVERY_MS, renew, b);
    else if (!b->over) /* this process slept and another one took it */
        free_run(b);
}

/* Looks into the row, too. */
static void renew(void *ctx)
{
    struct build_run *b = ctx;
    char name[LEASE_NAME];

    b->lease_timer = 0;
    if (b->over)
        return;
    lease_name(b->id, name);
    builds_row_changed(b, true);
    store_lease(b->j->o.store, name, b->j->o.owner, LEASE_MS, jobs_store(b->j, on_renewed, b, b));
}

static struct build_run *add_run(struct jobs *j, struct tbuild *row)
{
    struct build_run *b = xcalloc(1, sizeof(*b));

    b->j = j;
    b->id = row->id;
    b->row = row;
    build_options_parse(&b->options, row->options);
    *ARR_PUSH(&all(j)->runs) = b;
    b->lease_timer = net_timer(j->o.net, LEASE_EVERY_MS, renew, b);
    return b;
}

/* --- what another process left ------------------------------------------------------------ */

static void on_claimed(void *ctx, struct st_reply *r)
{
    struct build_op *c = ctx;
    struct tbuilds *t = all(c->j);
    struct tbuild *row = row_of(t, c->id);
    struct build_run *b;

    if (r->got && row && !tb_is_over(row->state) && !run_of(t, c->id) && c->j->e2b) {
        jobs_say(c->j, 0, 0, "template %s: the build is picked up again", row->name);
        b = add_run(c->j, row);
        if (row->state == TB_BUILDING || (row->state == TB_WAITING && !row->phase)) {
            build_follow(b);
        } else {
            b->may_be_started = row->template_id && row->build_id;
            build_begin(b);
        }
    }
    op_free(c);
}

static void pick_up(struct jobs *j)
{
    struct tbuilds *t = all(j);

    for (size_t i = 0; i < t->rows.n && j->o.follow_all && j->e2b && !j->priv->look_only; i++) {
        const struct tbuild *row = t->rows.v[i];
        char name[LEASE_NAME];
        struct build_op *c;

        if (tb_is_over(row->state) || !is_here(j, row) || run_of(t, row->id))
            continue;
        c = op_new(j, 0);
        c->id = row->id;
        lease_name(row->id, name);
        store_lease(j->o.store, name, j->o.owner, LEASE_MS, jobs_store(j, on_claimed, c, j));
    }
}

static int by_id(const void *pa, const void *pb)
{
    const struct tbuild *const *a = pa, *const *b = pb;

    return (*a)->id < (*b)->id ? -1 : (*a)->id > (*b)->id;
}

/* Rows that are driven here are newer than what is stored. */
static void on_rows(void *ctx, struct st_reply *r)
{
    struct jobs *j = ctx;
    struct tbuilds *t = all(j);

    if (r->err.code)
        return;
    if (r->got) {
        for (size_t i = t->rows.n; i-- > 0;)
            if (!run_of(t, t->rows.v[i]->id))
                drop_row(t, i);
        for (size_t i = 0; i < r->n_builds; i++)
            if (!row_of(t, r->builds[i].id))
                add_row(t, &r->builds[i]);
        if (t->rows.n)
            qsort(t->rows.v, t->rows.n, sizeof(*t->rows.v), by_id);
        tell_soon(j);
    }
    t->loaded = true;
    pick_up(j);
}

void core_builds_listed(struct jobs *j)
{
    if (j->o.follow_all)
        store_builds(j->o.store, all(j)->loaded, jobs_store(j, on_rows, j, j));
}

/* --- a new one ----------------------------------------------------------------------------- */

static void on_inserted(void *ctx, struct st_reply *r)
{
    struct build_op *op = ctx;
    struct jobs *j = op->j;
    struct build_run *b;
    char name[LEASE_NAME];

    if (r->err.code || !r->n_builds) {
        jobs_done(j, op->req_id, &r->err, 0);
    } else {
        b = add_run(j, add_row(all(j), &r->builds[0]));
        lease_name(b->id, name);
        store_lease(j->o.store, name, j->o.owner, LEASE_MS, (struct st_to){NULL, 0});
        b->req_id = op->req_id;
        b->to_the_end = op->wait;
        build_begin(b);
    }
    op_free(op);
}

/* "name" or "name:tag", as the service takes it. */
static bool name_ok(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-_");

    if (!n || n > 128 || (s[n] && s[n] != ':'))
        return false;
    return !s[n] || (s[n + 1] && strlen(s + n + 1) <= 128 &&
                     strspn(s + n + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789-_.") == strlen(s + n + 1));
}

static void insert(struct jobs *j, uint64_t req_id, bool wait, struct tbuild *take)
{
    struct build_op *op = op_new(j, req_id);

    op->wait = wait;
    take->state = TB_PREPARING;
    take->started_at = clock_wall_ms();
    take->project = xstrdup(jobs_project(j));
    take->account = xstrdup(j->priv->place);
    store_build_put(j->o.store, take, jobs_store(j, on_inserted, op, j));
    tbuild_release(take);
}

static void begin(struct jobs *j, struct cmd *c)
{
    const struct cmd_build *q = c->build;
    struct tbuild row = {0};

    if (!name_ok(q->name)) {
        core_done_err(j, c->m.req_id, 0, ERR_INVALID, "the template's name \"%.60s\" is not possible: "
                      "lower-case letters, digits, - and _, and perhaps :TAG", q->name);
        return;
    }
    row.name = xstrdup(q->name);
    row.tool = xstrdup(q->tool);
    row.recipe = xstrdup(q->where);
    row.options = build_options_text(q);
    insert(j, c->m.req_id, c->on, &row);
}

/* --- by the user's word ---------------------------------------------------------------------- */

/* By id, or the newest of that name. */
static struct tbuild *named(struct jobs *j, const struct cmd *c)
{
    struct tbuilds *t = all(j);

    for (size_t i = t->rows.n; i-- > 0;) {
        struct tbuild *row = t->rows.v[i];
        size_t bare = strcspn(row->name, ":");

        if (!is_here(j, row))
            continue;
        if (c->id ? row->id == c->id
                  : c->text && (str_eq(row->name, c->text) || str_eq(row->build_id, c->text) ||
                                str_eq(row->template_id, c->text) ||
                                (strlen(c->text) == bare && !strncmp(row->name, c->text, bare))))
            return row;
    }
    return NULL;
}

static void again(struct jobs *j, const struct cmd *c, const struct tbuild *old)
{
    struct tbuild row = {0};

    row.name = xstrdup(old->name);
    row.tool = xstrdup(old->tool);
    row.recipe = xstrdup(old->recipe);
    row.options = xstrdup(old->options);
    insert(j, c->m.req_id, c->on, &row);
}

static void cancel(struct jobs *j, const struct cmd *c, struct tbuild *row)
{
    static const char *const before = "called off before the service began",
                            *const after = "not followed any more: the service cannot be told to "
                                           "stop a build, and it goes on there";
    const char *why = row->state <= TB_UPLOADING ? before : after;
    struct build_run *b = run_of(all(j), row->id);

    if (tb_is_over(row->state)) {
        core_done_err(j, c->m.req_id, 0, ERR_CONFLICT, "the build of \"%.80s\" has ended: it is %s",
                      row->name, tb_state_name(row->state));
        return;
    }
    if (b) {
        build_stop(b, why);
    } else { /* who drives it sees that in the row */
        row->state = TB_CANCELLED;
        row->ended_at = clock_wall_ms();
        free(row->error);
        row->error = xstrdup(why);
        store_build_put(j->o.store, row, (struct st_to){NULL, 0});
        tell_soon(j);
    }
    jobs_done(j, c->m.req_id, NULL, 0);
}

/* The template's rows go with it. */
static void remove_rows(struct jobs *j, const char *template_id, const struct tbuild *one)
{
    struct tbuilds *t = all(j);

    for (size_t i = t->rows.n; i-- > 0;) {
        struct tbuild *row = t->rows.v[i];
        struct build_run *b;

        if (row != one && !(template_id && str_eq(row->template_id, template_id) && is_here(j, row)))
            continue;
        b = run_of(t, row->id);
        if (b && b->req_id)
            core_done_err(j, b->req_id, 0, ERR_CANCELLED, "the template was deleted");
        if (b)
            free_run(b);
        store_build_del(j->o.store, row->id, (struct st_to){NULL, 0});
        drop_row(t, i);
    }
    tell_soon(j);
}

static void on_deleted(void *ctx, const struct e2b_result *r)
{
    struct build_op *op = ctx;
    struct jobs *j = op->j;
    bool gone = !r->err.code || r->err.code == ERR_NOTFOUND;

    op->call = 0;
    if (gone)
        remove_rows(j, op->template_id, NULL);
    jobs_done(j, op->req_id, gone ? NULL : &r->err, 0);
    op_free(op);
}

static void ask_delete(struct build_op *op)
{
    static const struct e2b_call_opts opts = {.give_up_ms = 20000};

    op->client = op->j->e2b;
    op->call = e2b_template_delete(op->client, op->template_id, &opts, on_deleted, op);
}

static void on_alias(void *ctx, const struct e2b_result *r)
{
    struct build_op *op = ctx;

    op->call = 0;
    if (r->err.code || !r->n_templates || !op->j->e2b) {
        if (r->err.code == ERR_NOTFOUND)
            core_done_err(op->j, op->req_id, 0, ERR_NOTFOUND, "there is no template \"%.80s\"; 'cc-tui "
                          "templates' lists them", op->name);
        else
            jobs_done(op->j, op->req_id, r->err.code ? &r->err : &op->j->priv->account_err, 0);
        op_free(op);
        return;
    }
    op->template_id = xstrdup(r->templates[0].template_id);
    ask_delete(op);
}

static void delete(struct jobs *j, const struct cmd *c, const struct tbuild *row)
{
    static const struct e2b_call_opts opts = {.give_up_ms = 20000};
    struct build_op *op;

    if (row && !row->template_id) { /* it never got as far */
        remove_rows(j, NULL, row);
        jobs_done(j, c->m.req_id, NULL, 0);
        return;
    }
    op = op_new(j, c->m.req_id);
    op->name = xstrdup(c->text);
    if (row) {
        op->template_id = xstrdup(row->template_id);
        ask_delete(op);
    } else {
        op->client = j->e2b;
        op->call = e2b_template_alias(op->client, c->text, &opts, on_alias, op);
    }
}

static void on_tags(void *ctx, const struct e2b_result *r)
{
    struct build_op *op = ctx;

    op->call = 0;
    jobs_done(op->j, op->req_id, r->err.code ? &r->err : NULL, 0);
    op_free(op);
}

/* text: "name:tag" that they are given to, or with `on` "name" that they are taken from. */
static void tag(struct jobs *j, const struct cmd *c)
{
    static const struct e2b_call_opts opts = {.give_up_ms = 20000};
    struct build_op *op = op_new(j, c->m.req_id);

    op->client = j->e2b;
    if (c->on)
        op->call = e2b_tag_delete(j->e2b, c->text, (const char *const *)c->build->tags, &opts, on_tags, op);
    else
        op->call = e2b_tag_add(j->e2b, c->text, (const char *const *)c->build->tags, on_tags, op);
}

static void do_named(struct jobs *j, struct cmd *c)
{
    struct tbuild *row = named(j, c);

    if (!row && !(c->m.type == CMD_BUILD_DELETE && c->text)) {
        core_done_err(j, c->m.req_id, 0, ERR_NOTFOUND, "there is no build of \"%.80s\" that cc-tui "
                      "began; 'cc-tui builds' lists all", c->text ? c->text : "");
    } else if (c->m.type == CMD_BUILD_CANCEL) {
        cancel(j, c, row);
    } else if (c->m.type == CMD_BUILD_AGAIN) {
        again(j, c, row);
    } else {
        delete(j, c, row);
    }
}

/* A command may come before the rows are there. */
static void on_rows_for(void *ctx, struct st_reply *r)
{
    struct build_op *op = ctx;

    on_rows(op->j, r);
    if (r->err.code)
        jobs_done(op->j, op->req_id, &r->err, 0);
    else
        do_named(op->j, op->c);
    op_free(op);
}

static void export(struct jobs *j, const struct cmd *c)
{
    struct ev_done *d = ev_new(EV_DONE);

    d->m.req_id = c->m.req_id;
    d->text = xstrdup(c->text);
    fs_write_new(c->text, c->text2, strlen(c->text2), &d->err);
    jobs_post(j, d);
}

static void put_time(struct jw *w, const char *name, int64_t ms)
{
    char t[32];

    if (ms > 0)
        clock_format_rfc3339(t, sizeof(t), ms);
    jw_str(w, name, ms > 0 ? t : NULL);
}

static void put_row(struct buf *b, const struct tbuild *row)
{
    struct jw w;

    jw_init(&w, b);
    jw_obj(&w, NULL);
    jw_i64(&w, "id", (int64_t)row->id);
    jw_str(&w, "name", row->name);
    jw_str(&w, "templateID", row->template_id);
    jw_str(&w, "buildID", row->build_id);
    jw_str(&w, "status", tb_state_name(row->state));
    jw_str(&w, "tool", row->tool);
    jw_str(&w, "version", row->version);
    jw_str(&w, "project", row->project);
    jw_str(&w, "recipe", row->recipe);
    jw_str(&w, "phase", row->phase);
    jw_str(&w, "title", row->title);
    jw_str(&w, "error", row->error);
    jw_str(&w, "tail", row->tail);
    put_time(&w, "createdAt", row->started_at);
    put_time(&w, "finishedAt", row->ended_at);
    jw_end(&w);
    buf_addc(b, '\n');
}

static void on_rows_listed(void *ctx, struct st_reply *r)
{
    struct build_op *op = ctx;
    struct buf out = BUF_INIT;
    size_t len;

    for (size_t i = 0; i < r->n_builds; i++)
        if (is_here(op->j, &r->builds[i]))
            put_row(&out, &r->builds[i]);
    len = out.len;
    if (len)
        jobs_chunk(op->j, op->req_id, 0, buf_detach(&out, NULL), len);
    jobs_done(op->j, op->req_id, r->err.code ? &r->err : NULL, 0);
    op_free(op);
}

void core_builds_cmd(struct jobs *j, struct cmd *c)
{
    struct build_op *op;

    if (c->m.type == CMD_BUILD_WORKED) {
        struct build_run *b = run_of(all(j), c->id);
        if (b && b->work && b->work->running)
            build_worked(b);
    } else if (c->m.type == CMD_BUILD_EXPORT) {
        export(j, c);
    } else if (c->m.type == CMD_BUILD_ROWS) {
        op = op_new(j, c->m.req_id);
        store_builds(j->o.store, false, jobs_store(j, on_rows_listed, op, j));
    } else if (j->priv->look_only) {
        core_done_err(j, c->m.req_id, 0, ERR_PERM, "nothing is built: this cc-tui only reads");
    } else if (!j->e2b) {
        jobs_done(j, c->m.req_id, &j->priv->account_err, 0);
    } else if (c->m.type == CMD_BUILD) {
        begin(j, c);
    } else if (c->m.type == CMD_BUILD_TAG) {
        tag(j, c);
    } else {
        op = op_new(j, c->m.req_id);
        op->c = cmd_new((enum cmd_type)c->m.type, c->m.req_id);
        op->c->id = c->id;
        op->c->on = c->on;
        op->c->text = c->text;
        c->text = NULL;
        store_builds(j->o.store, false, jobs_store(j, on_rows_for, op, j));
    }
}

/* --- life ---------------------------------------------------------------------------------- */

/* Of another account from now on: what runs is left to whoever has that one. */
void core_builds_leave(struct jobs *j)
{
    struct tbuilds *t = all(j);

    while (t->runs.n) {
        struct build_run *b = t->runs.v[t->runs.n - 1];
        uint64_t req = b->req_id;

        let_go(b);
        free_run(b);
        if (req)
            core_done_err(j, req, 0, ERR_CANCELLED, "the build is not followed any more: the key in "
                          "force is another one");
    }
    for (size_t i = t->ops.n; i-- > 0;)
        if (t->ops.v[i]->call) {
            core_done_err(j, t->ops.v[i]->req_id, 0, ERR_CANCELLED, "not done: the key in force is "
                          "another one");
            op_free(t->ops.v[i]);
        }
    tell_soon(j);
}

void core_builds_release(struct jobs *j)
{
    struct tbuilds *t = j->priv->tbuilds;

    if (!t)
        return;
    while (t->runs.n) {
        let_go(t->runs.v[t->runs.n - 1]);
        free_run(t->runs.v[t->runs.n - 1]);
    }
    while (t->ops.n)
        op_free(t->ops.v[t->ops.n - 1]);
    while (t->rows.n)
        drop_row(t, t->rows.n - 1);
    net_timer_cancel(j->o.net, t->tell_timer);
    ARR_RELEASE(&t->rows);
    ARR_RELEASE(&t->runs);
    ARR_RELEASE(&t->ops);
    free(t);
    j->priv->tbuilds = NULL;
}
