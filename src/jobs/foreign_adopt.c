/* Adoption: a sandbox that cc-tui did not make becomes ours by the user's word, alone or
 * with one of its processes. What is said is kept in the database, where other instances
 * find it; the provider is told nothing. */
#include "foreign_priv.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

enum { GIVE_UP_MS = 10000 };

/* One that is under way: a process is looked up first, the database comes last. */
struct adoption {
    struct jobs *j;
    uint64_t row, req_id, ident;
    int pid;      /* 0: the sandbox alone */
    bool undo;
    char *name, *project;
    struct reach reach;
    struct envd *envd;
};

static void adoption_free(struct adoption *a)
{
    reach_cancel(&a->reach);
    envd_free(a->envd);
    jobs_store_forget(a->j, a);
    free(a->name);
    free(a->project);
    free(a);
}

static void finish(struct adoption *a, const struct err *e)
{
    struct jobs *j = a->j;

    core_rows_flush(j);
    jobs_done(j, a->req_id, e, a->row);
    for (size_t i = 0; i < j->priv->adoptions.n; i++)
        if (j->priv->adoptions.v[i] == a) {
            ARR_REMOVE(&j->priv->adoptions, i);
            break;
        }
    adoption_free(a);
}

void adopt_release(struct jobs *j)
{
    for (size_t i = 0; i < j->priv->adoptions.n; i++)
        adoption_free(j->priv->adoptions.v[i]);
    ARR_RELEASE(&j->priv->adoptions);
}

/* --- what a row says of it ------------------------------------------------------- */

/* An error that the adopted process left: the sandbox itself is as it was listed. */
static void clear_error(struct sandbox *row)
{
    if (row->state != SB_ERROR || !row->vm_up)
        return;
    row->state = SB_RUNNING;
    row->vm_up = false;
    core_row_set(&row->reason, NULL);
}

/* The session of the row is another one now, or none. */
static void change_session(struct jobs *j, struct sandbox *row, const char *session)
{
    struct foreign *f = foreign_of(j, row->id);
    bool begins = session && f->watch;

    if (str_eq(row->session, session))
        return;
    session_free(map_get_id(j->sessions, row->id));
    core_row_set(&row->session, session);
    core_row_set(&row->tool, session ? "process" : kv_get(row->meta, "cc-tui-tool"));
    core_row_set(&row->last_line, NULL);
    row->agent = session ? AG_UNKNOWN : AG_NONE;
    row->agent_since = jobs_now(j);
    clear_error(row);
    if (begins || !session) { /* one place on the screen for both */
        livewatch_free(f->watch);
        f->watch = NULL;
        foreign_post(f);
    }
}

/* A session that begins is shown where somebody looks, and followed like any other. */
static void settled(struct jobs *j, struct sandbox *row)
{
    struct foreign *f = foreign_of(j, row->id);
    struct session *s = row->session ? session_of(j, row->id) : NULL;

    jobs_row_changed(j, row);
    core_row_state(j, row);
    if (s && f->shown)
        session_show(s, true);
}

static void own(struct jobs *j, struct sandbox *row, const char *name, const char *project,
                const char *session)
{
    row->foreign = false;
    row->adopted = true;
    core_row_set(&row->project, project);
    if (name)
        core_row_set(&row->name, name);
    change_session(j, row, session);
}

static void disown(struct jobs *j, struct sandbox *row)
{
    const char *name = kv_get(row->meta, "cc-tui-name");
    char *project = core_project_of_meta(j, row->meta);

    row->foreign = true;
    row->adopted = false;
    core_row_set(&row->project, project);
    free(project);
    core_row_set(&row->name, name ? name : row->sandbox_id);
    change_session(j, row, NULL);
}

/* --- to the database, and from it ------------------------------------------------ */

static void on_stored(void *ctx, struct st_reply *r)
{
    struct adoption *a = ctx;
    struct sandbox *row = jobs_row(a->j, a->row);
    struct err e = r->err;

    if (e.code) {
        err_wrap(&e, a->undo ? "it stays adopted" : "it was not adopted");
        finish(a, &e);
        return;
    }
    if (row && a->undo)
        disown(a->j, row);
    else if (row && r->n_sandboxes == 1)
        own(a->j, row, r->sandboxes[0].name, r->sandboxes[0].project, r->sandboxes[0].session);
    if (row) {
        settled(a->j, row);
        if (a->undo)
            jobs_say(a->j, 0, row->id, "given back: foreign again");
        else if (a->pid)
            jobs_say(a->j, 0, row->id, "adopted into project %s with process %d", row->project,
                     a->pid);
        else
            jobs_say(a->j, 0, row->id, "adopted into project %s", row->project);
    }
    finish(a, NULL);
}

static void store_it(struct adoption *a)
{
    const struct sandbox *row = jobs_row(a->j, a->row);
    const char *name = row ? kv_get(row->meta, "cc-tui-name") : NULL;
    struct sandbox next;
    char session[PROC_SESSION_SIZE];

    if (!row) {
        core_done_err(a->j, a->req_id, 0, ERR_NOTFOUND, "the sandbox is not in the list any more");
        a->req_id = 0;
        finish(a, NULL);
        return;
    }
    sandbox_copy(&next, row);
    next.foreign = a->undo;
    next.adopted = !a->undo;
    proc_session_name(session, sizeof(session), a->pid, a->ident);
    if (a->undo) {
        free(next.project);
        next.project = core_project_of_meta(a->j, row->meta);
        core_row_set(&next.session, NULL);
        core_row_set(&next.tool, kv_get(row->meta, "cc-tui-tool"));
        core_row_set(&next.name, name ? name : row->sandbox_id);
    } else {
        core_row_set(&next.project, a->project);
        if (a->name)
            core_row_set(&next.name, a->name);
        if (a->pid) {
            core_row_set(&next.session, session);
            core_row_set(&next.tool, "process");
        }
    }
    store_own_sandbox(a->j->o.store, &next, jobs_store(a->j, on_stored, a, a));
    sandbox_release(&next);
}

/* Another instance's user said so. */
static void take_word(struct jobs *j, const struct sandbox *said)
{
    struct sandbox *row = jobs_row(j, said->id);

    if (!row || (!row->foreign && !row->adopted) ||
        (row->adopted == said->adopted && str_eq(row->session, said->session) &&
         str_eq(row->project, said->project)))
        return;
    if (said->adopted)
        own(j, row, said->name, said->project, said->session);
    else
        disown(j, row);
    settled(j, row);
}

/* A command that leaves writes what it saw of the agent last, which may be older than what we
 * wrote: who is at the live end says it again. */
static void insist(struct jobs *j, const struct sandbox *stored)
{
    struct sandbox *row = jobs_row(j, stored->id);
    struct session *s = row ? map_get_id(j->sessions, row->id) : NULL;

    if (s && session_current(s) && row->state == stored->state && row->agent != stored->agent)
        jobs_row_changed(j, row);
}

static void on_owned(void *ctx, struct st_reply *r)
{
    struct jobs *j = ctx;

    for (size_t i = 0; i < r->n_sandboxes; i++) {
        const struct sandbox *b = &r->sandboxes[i];

        if (!b->foreign && !b->adopted)
            insist(j, b);
        else if (!j->priv->adoptions.n) /* ours is the newer word; the next list looks again */
            take_word(j, b);
    }
}

void adopt_refresh(struct jobs *j)
{
    bool all = j->o.follow_all && !j->o.readonly;

    for (size_t i = 0; i < j->table.n; i++)
        if (all || j->table.v[i].foreign || j->table.v[i].adopted) {
            store_owned(j->o.store, all, jobs_store(j, on_owned, j, j));
            return;
        }
}

/* --- the process ----------------------------------------------------------------- */

static void on_list(void *ctx, const struct envd_result *r)
{
    struct adoption *a = ctx;
    struct proc_list l = {0};
    struct err e = r->err;
    const struct proc *p = NULL;

    if (!e.code && proc_list_parse(&l, r->body, r->len, a->pid, &e) == 0)
        p = proc_list_find(&l, a->pid);
    if (!e.code && !p)
        err_set(&e, ERR_NOTFOUND, "no process %d runs there", a->pid);
    else if (!e.code && a->ident && p->ident != a->ident)
        err_set(&e, ERR_CONFLICT, "process %d is another one by now: %.200s", a->pid, p->command);
    if (e.code) {
        err_wrap(&e, "nothing was adopted");
        finish(a, &e);
    } else {
        a->ident = p->ident;
        store_it(a);
    }
    proc_list_release(&l);
}

static void on_reached(void *ctx, struct envd *take, const struct err *why)
{
    struct adoption *a = ctx;
    struct err e;

    if (take) {
        a->envd = take;
        envd_list(take, on_list, a);
        return;
    }
    e = *why;
    err_wrap(&e, "nothing was adopted");
    finish(a, &e);
}

/* --- commands -------------------------------------------------------------------- */

static bool name_taken(const struct jobs *j, const struct sandbox *row, const char *name)
{
    for (size_t i = 0; i < j->table.n; i++) {
        const struct sandbox *s = &j->table.v[i];

        if (s != row && s->state != SB_KILLED && core_row_live(s) && str_eq(s->name, name))
            return true;
    }
    return false;
}

static int check(const struct jobs *j, const struct sandbox *row, const struct cmd *c,
                 struct err *e)
{
    if (!row->foreign && !row->adopted)
        return err_set(e, ERR_CONFLICT, "\"%s\" was made by cc-tui: there is nothing to adopt",
                       row->name);
    if (!core_row_live(row))
        return err_set(e, ERR_CONFLICT, "\"%s\" is gone: there is nothing to adopt", row->name);
    if (c->text && !sandbox_name_ok(c->text))
        return err_set(e, ERR_INVALID, "a name has 1 to 64 of the characters A-Z a-z 0-9 _ -");
    if (c->text2 && !project_name_ok(c->text2))
        return err_set(e, ERR_INVALID, "a project's name has 1 to 64 of the characters A-Z a-z "
                                       "0-9 _ - . /, no / at its ends");
    if (c->text && name_taken(j, row, c->text))
        return err_set(e, ERR_CONFLICT, "the name \"%s\" is in use", c->text);
    return 0;
}

static struct adoption *adoption_new(struct jobs *j, const struct cmd *c)
{
    struct adoption *a = xcalloc(1, sizeof(*a));

    a->j = j;
    a->row = c->sandbox;
    a->req_id = c->m.req_id;
    *ARR_PUSH(&j->priv->adoptions) = a;
    return a;
}

void adopt_start(struct jobs *j, const struct cmd *c)
{
    const struct sandbox *row = jobs_row(j, c->sandbox);
    struct adoption *a;
    struct err e = {0};

    if (check(j, row, c, &e)) {
        jobs_done(j, c->m.req_id, &e, row->id);
        return;
    }
    a = adoption_new(j, c);
    a->pid = (int)c->n;
    a->ident = c->id;
    a->name = xstrdup(c->text);
    a->project = xstrdup(c->text2        ? c->text2
                         : row->adopted ? row->project
                                        : jobs_project(j));
    if (!a->pid) {
        store_it(a);
    } else if (reach_ask(&a->reach, j, a->row, GIVE_UP_MS, on_reached, a, &e)) {
        err_wrap(&e, "nothing was adopted");
        finish(a, &e);
    }
}

void adopt_undo(struct jobs *j, const struct cmd *c)
{
    const struct sandbox *row = jobs_row(j, c->sandbox);
    struct adoption *a;

    if (!row->adopted) {
        core_done_err(j, c->m.req_id, row->id, ERR_CONFLICT, row->foreign
                      ? "\"%s\" is not adopted" : "\"%s\" was made by cc-tui: it is no foreign "
                      "sandbox", row->name);
        return;
    }
    a = adoption_new(j, c);
    a->undo = true;
    store_it(a);
}
