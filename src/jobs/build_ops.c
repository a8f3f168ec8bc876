/* Builds by the user's word: a new one, once more, called off, deleted, tags, lists. */
#include "builds_priv.h"

#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

/* --- a new one ----------------------------------------------------------------------------- */

static void on_inserted(void *ctx, struct st_reply *r)
{
    struct build_op *op = ctx;
    struct jobs *j = op->j;
    struct build_run *b;
    char name[BUILD_LEASE_NAME];

    if (r->err.code || !r->n_builds) {
        jobs_done(j, op->req_id, &r->err, 0);
    } else {
        b = builds_add_run(j, builds_add_row(builds_all(j), &r->builds[0]));
        builds_lease_name(b->id, name);
        store_lease(j->o.store, name, j->o.owner, BUILD_LEASE_MS, (struct st_to){NULL, 0});
        b->args = op->args;
        op->args = NULL;
        b->req_id = op->req_id;
        b->to_the_end = op->wait;
        build_begin(b);
    }
    builds_op_free(op);
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

/* row: a name, a tool, a recipe, taken. */
static void insert(struct jobs *j, const struct cmd *c, const struct cmd_build *q,
                   struct tbuild *take)
{
    struct build_op *op = builds_op_new(j, c->m.req_id);

    op->wait = c->on;
    op->args = kv_dup(q->args);
    take->options = build_options_text(q);
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
    insert(j, c, q, &row);
}

/* --- by the user's word ---------------------------------------------------------------------- */

/* By id, or the newest of that name. */
static struct tbuild *named(struct jobs *j, const struct cmd *c)
{
    struct tbuilds *t = builds_all(j);

    for (size_t i = t->rows.n; i-- > 0;) {
        struct tbuild *row = t->rows.v[i];
        size_t bare = strcspn(row->name, ":");

        if (!builds_is_here(j, row))
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
    struct cmd_build q = {.args = c->build ? c->build->args : NULL};
    struct build_options o;
    struct tbuild row = {0};
    struct err e = {0};

    build_options_parse(&o, old->options);
    if (build_options_check(&o, q.args, old->name, &e) != 0) {
        jobs_done(j, c->m.req_id, &e, 0);
    } else {
        build_options_again(&o, &q);
        row.name = xstrdup(old->name);
        row.tool = xstrdup(old->tool);
        row.recipe = xstrdup(old->recipe);
        insert(j, c, &q, &row);
        str_list_free(q.tags);
    }
    build_options_release(&o);
}

static void cancel(struct jobs *j, const struct cmd *c, struct tbuild *row)
{
    static const char *const before = "called off before the service began",
                            *const after = "not followed any more: the service cannot be told to "
                                           "stop a build, and it goes on there";
    const char *why = row->state <= TB_UPLOADING ? before : after;
    struct build_run *b = builds_run_of(builds_all(j), row->id);

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
        builds_tell_soon(j);
    }
    jobs_done(j, c->m.req_id, NULL, 0);
}

/* The template's rows go with it. */
static void remove_rows(struct jobs *j, const char *template_id, const struct tbuild *one)
{
    struct tbuilds *t = builds_all(j);

    for (size_t i = t->rows.n; i-- > 0;) {
        struct tbuild *row = t->rows.v[i];
        struct build_run *b;

        if (row != one && !(template_id && str_eq(row->template_id, template_id) && builds_is_here(j, row)))
            continue;
        b = builds_run_of(t, row->id);
        if (b && b->req_id)
            core_done_err(j, b->req_id, 0, ERR_CANCELLED, "the template was deleted");
        if (b)
            builds_free_run(b);
        store_build_del(j->o.store, row->id, (struct st_to){NULL, 0});
        builds_drop_row(t, i);
    }
    builds_tell_soon(j);
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
    builds_op_free(op);
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
        builds_op_free(op);
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
    op = builds_op_new(j, c->m.req_id);
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
    builds_op_free(op);
}

/* text: "name:tag" that they are given to, or with `on` "name" that they are taken from. */
static void tag(struct jobs *j, const struct cmd *c)
{
    static const struct e2b_call_opts opts = {.give_up_ms = 20000};
    struct build_op *op = builds_op_new(j, c->m.req_id);

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

    builds_take_rows(op->j, r);
    if (r->err.code)
        jobs_done(op->j, op->req_id, &r->err, 0);
    else
        do_named(op->j, op->c);
    builds_op_free(op);
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
        if (builds_is_here(op->j, &r->builds[i]))
            put_row(&out, &r->builds[i]);
    len = out.len;
    if (len)
        jobs_chunk(op->j, op->req_id, 0, buf_detach(&out, NULL), len);
    jobs_done(op->j, op->req_id, r->err.code ? &r->err : NULL, 0);
    builds_op_free(op);
}

/* Its run may be gone, or at another piece of work by now. */
static void worked(struct jobs *j, uint64_t turn)
{
    struct tbuilds *t = builds_all(j);

    for (size_t i = 0; i < t->runs.n; i++) {
        struct build_run *b = t->runs.v[i];

        if (b->work && b->work->running && b->work->turn == turn) {
            build_worked(b);
            return;
        }
    }
    for (size_t i = 0; i < t->leaving.n; i++)
        if (t->leaving.v[i]->turn == turn) {
            build_work_free(t->leaving.v[i]);
            ARR_REMOVE(&t->leaving, i);
            return;
        }
}

void core_builds_cmd(struct jobs *j, struct cmd *c)
{
    struct build_op *op;

    if (c->m.type == CMD_BUILD_WORKED) {
        worked(j, c->id);
    } else if (c->m.type == CMD_BUILD_EXPORT) {
        export(j, c);
    } else if (c->m.type == CMD_BUILD_ROWS) {
        op = builds_op_new(j, c->m.req_id);
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
        op = builds_op_new(j, c->m.req_id);
        op->c = cmd_new((enum cmd_type)c->m.type, c->m.req_id);
        op->c->id = c->id;
        op->c->on = c->on;
        op->c->text = c->text;
        op->c->build = c->build;
        c->text = NULL;
        c->build = NULL;
        store_builds(j->o.store, false, jobs_store(j, on_rows_for, op, j));
    }
}
