/* Files of a sandbox: where it is is asked first, which wakes nothing; then one call after the
 * other. Everything that comes from there is foreign, names above all. */
#include "file_priv.h"

#include <cct/text/clean.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GIVE_UP_MS = 8000, TELL_MS = 100 };

/* --- life ------------------------------------------------------------------------ */

void cmd_file_free(struct cmd_file *f)
{
    if (!f)
        return;
    free(f->path);
    free(f->to);
    free(f->local);
    free(f);
}

static void filejob_free(struct filejob *w)
{
    struct jobs_priv *p = w->j->priv;

    for (size_t i = 0; i < p->files.n; i++)
        if (p->files.v[i] == w) {
            ARR_REMOVE(&p->files, i);
            break;
        }
    file_sync_forget(w);
    net_timer_cancel(w->j->o.net, w->timer);
    reach_cancel(&w->reach);
    envd_free(w->envd);
    if (w->fd >= 0)
        close(w->fd);
    here_release(&w->here);
    if (w->root >= 0)
        close(w->root);
    for (size_t i = 0; i < w->folders.n; i++)
        free(w->folders.v[i]);
    ARR_RELEASE(&w->folders);
    free(w->why_unread);
    for (size_t i = 0; i < w->items.n; i++) {
        free(w->items.v[i].local);
        free(w->items.v[i].remote);
    }
    ARR_RELEASE(&w->items);
    buf_release(&w->says);
    cmd_file_free(w->f);
    free(w->session);
    free(w->name);
    free(w->far_temp);
    free(w);
}

void filejob_end(struct filejob *w, const struct err *e)
{
    struct ev_done *d = ev_new(EV_DONE);

    here_release(&w->here); /* who is told finds nothing half */
    d->m.req_id = w->req_id;
    d->sandbox = w->row;
    d->text = xstrdup(w->name);
    if (e)
        d->err = *e;
    jobs_post(w->j, d);
    filejob_free(w);
}

void core_files_release(struct jobs *j)
{
    while (j->priv->files.n)
        filejob_free(j->priv->files.v[0]);
    ARR_RELEASE(&j->priv->files);
    file_sync_release(j);
}

/* --- telling --------------------------------------------------------------------- */

void filejob_progress(struct filejob *w, uint64_t done, uint64_t total, bool now)
{
    int64_t t = clock_mono_ms();
    struct ev_progress *ev;

    if (!now && t - w->told < TELL_MS)
        return;
    w->told = t;
    ev = xcalloc(1, sizeof(*ev));
    msg_init(&ev->m, EV_PROGRESS, sizeof(*ev), NULL);
    ev->m.req_id = w->req_id;
    ev->done = done;
    ev->total = total;
    ev->file = w->item + 1;
    ev->files = w->items.n;
    jobs_post(w->j, ev);
}

bool filejob_chunk(struct filejob *w, const char *data, size_t len)
{
    char *copy = xmalloc(len + 1);

    memcpy(copy, data, len);
    jobs_chunk(w->j, w->req_id, 0, copy, len);
    return !mq_full(w->j->o.events);
}

static void files_free(struct msg *m)
{
    file_list_release(&((struct ev_files *)m)->list);
    free(m);
}

static void tell_list(struct filejob *w, struct file_list *take)
{
    struct ev_files *ev = xcalloc(1, sizeof(*ev));

    msg_init(&ev->m, EV_FILES, sizeof(*ev) + take->n * 200, files_free);
    ev->m.req_id = w->req_id;
    ev->list = *take;
    jobs_post(w->j, ev);
}

/* --- small calls ------------------------------------------------------------------ */

/* Done, or the error with the path that it is about. */
static void on_small(void *ctx, const struct envd_result *r)
{
    struct filejob *w = ctx;
    struct err e = r->err;

    if (!e.code && !w->name)
        w->name = clean_line_dup(w->f->op == FILE_OP_MOVE ? w->f->to : w->f->path, 0);
    filejob_end(w, e.code ? &e : NULL);
}

static void on_list(void *ctx, const struct envd_result *r)
{
    struct filejob *w = ctx;
    struct err e = r->err;
    struct file_list l;

    if (!e.code && file_list_parse(&l, r->body, r->len, &e) == 0) {
        l.path = xstrdup(w->f->path);
        tell_list(w, &l);
    }
    filejob_end(w, e.code ? &e : NULL);
}

/* Of a path that is not absolute: which one is meant? */
static void on_place(void *ctx, const struct envd_result *r)
{
    struct filejob *w = ctx;
    struct file_entry f;
    struct err e = r->err;

    if (!e.code && !file_entry_parse(&f, r->body, r->len))
        err_set(&e, ERR_PROTO, "the sandbox told nothing about \"%s\"", w->f->path);
    if (e.code) {
        filejob_end(w, &e);
        return;
    }
    if (f.path) {
        free(w->f->path);
        w->f->path = xstrdup(f.path);
    }
    if (w->f->op == FILE_OP_LIST && f.kind == FILE_FOLDER) {
        envd_list_dir(w->envd, w->f->path, on_list, w);
        file_entry_release(&f);
        return;
    }
    struct file_list l = {.path = file_path_parent(w->f->path), .n = 1};

    l.v = xcalloc(1, sizeof(*l.v));
    l.v[0] = f;
    tell_list(w, &l);
    filejob_end(w, NULL);
}

static void on_target(void *ctx, const struct envd_result *r)
{
    struct filejob *w = ctx;
    struct err e = r->err;

    if (e.code == ERR_NOTFOUND) {
        envd_move(w->envd, w->f->path, w->f->to, on_small, w);
        return;
    }
    if (!e.code)
        err_set(&e, ERR_CONFLICT, "nothing was done: there is a \"%s\" already", w->f->to);
    filejob_end(w, &e);
}

static void on_reached(void *ctx, struct envd *take, const struct err *e)
{
    struct filejob *w = ctx;
    struct cmd_file *f = w->f;

    if (!take) {
        filejob_end(w, e);
        return;
    }
    w->envd = take;
    switch ((enum file_op)f->op) {
    case FILE_OP_LIST:
    case FILE_OP_STAT:
        envd_stat(take, f->path, on_place, w);
        break;
    case FILE_OP_READ:
    case FILE_OP_GET:
        filejob_get(w);
        break;
    case FILE_OP_PUT:
        filejob_put(w);
        break;
    case FILE_OP_MKDIR:
        envd_make_dir(take, f->path, on_small, w);
        break;
    case FILE_OP_MOVE:
        if (f->over)
            envd_move(take, f->path, f->to, on_small, w);
        else
            envd_stat(take, f->to, on_target, w);
        break;
    case FILE_OP_REMOVE:
        envd_remove(take, f->path, on_small, w);
        break;
    case FILE_OP_CHANGES:
        filejob_changes(w);
        break;
    }
}

/* --- commands --------------------------------------------------------------------- */

static bool changes_there(int op)
{
    return op == FILE_OP_PUT || op == FILE_OP_MKDIR || op == FILE_OP_MOVE || op == FILE_OP_REMOVE;
}

static void cancel(struct jobs *j, uint64_t req_id)
{
    struct err e = {0};

    err_set(&e, ERR_CANCELLED, "it was called off");
    for (size_t i = 0; i < j->priv->files.n; i++)
        if (j->priv->files.v[i]->req_id == req_id) {
            filejob_end(j->priv->files.v[i], &e);
            return;
        }
}

void core_file(struct jobs *j, struct cmd *c)
{
    struct sandbox *row = jobs_row(j, c->sandbox);
    struct filejob *w;
    struct err e = {0};
    int pid;
    uint64_t ident;

    if (c->m.type == CMD_FILE_SYNCED) {
        file_sync_done(j, c->id);
        return;
    }
    if (c->m.type == CMD_FILE_CANCEL) {
        cancel(j, c->id);
        return;
    }
    if (j->priv->look_only && changes_there(c->file->op)) {
        core_done_err(j, c->m.req_id, c->sandbox, ERR_PERM,
                      "nothing was done: this cc-tui only reads");
        return;
    }
    w = xcalloc(1, sizeof(*w));
    *ARR_PUSH(&j->priv->files) = w;
    w->j = j;
    w->row = c->sandbox;
    w->req_id = c->m.req_id;
    w->f = c->file;
    c->file = NULL;
    w->fd = w->root = w->here.dir = -1;
    buf_init(&w->says, 0);
    if (row && row->session && !proc_session_parse(row->session, &pid, &ident))
        w->session = xstrdup(row->session);
    if (reach_ask(&w->reach, j, w->row, GIVE_UP_MS, on_reached, w, &e) != 0)
        filejob_end(w, &e);
}
