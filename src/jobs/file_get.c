/* A file of a sandbox, to whoever asked or to a file here: in pieces by their place, so that a
 * connection that breaks costs one piece. The name here appears with the whole file under it. */
#include "file_priv.h"

#include <cct/text/clean.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 2 << 20, TRIES = 6, BACKOFF_MS = 200, BACKOFF_MAX_MS = 5000, FULL_MS = 30,
       CAT_MS = 20000 };

static void next_piece(struct filejob *w);

/* --- the file here ------------------------------------------------------------------ */

/* A folder, or a name that ends like one, gets the file's own name in it. */
static char *name_here(const struct filejob *w, const char *own)
{
    const char *local = w->f->local;
    struct stat st;

    if (str_ends(local, "/") || (stat(local, &st) == 0 && S_ISDIR(st.st_mode)))
        return fs_join(local, own);
    return xstrdup(local);
}

static int open_here(struct filejob *w, struct err *e)
{
    char *parent;
    struct stat st;
    int dir;

    if (!w->f->over && lstat(w->name, &st) == 0)
        return err_set(e, ERR_CONFLICT, "'%s' is there already: choose another name", w->name);
    parent = strchr(w->name, '/') ? file_path_parent(w->name) : xstrdup(".");
    dir = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        err_sys(e, ERR_IO, "cannot make '%s'", w->name);
    free(parent);
    w->fd = dir < 0 ? -1 : here_begin(&w->here, dir, file_path_name(w->name), e);
    return w->fd < 0 ? e->code : 0;
}

/* --- pieces --------------------------------------------------------------------------- */

static void on_synced(struct filejob *w, const struct err *why)
{
    struct err e = *why;

    if (e.code)
        err_wrap(&e, "cannot write '%s'", w->name);
    else
        here_end(&w->here, w->fd, w->mode, w->f->over, &e);
    filejob_end(w, e.code ? &e : NULL);
}

/* What the kernel makes up as it is read has no size, so a service sends none of it. */
static bool is_made_up(const struct filejob *w)
{
    return !w->at && (str_starts(w->f->path, "/proc/") || str_starts(w->f->path, "/sys/"));
}

static void on_cat(void *ctx, const struct envd_run_result *r)
{
    struct filejob *w = ctx;
    struct err e = r->err;

    if (!e.code && r->exit_code) {
        char *why = clean_line_dup(r->errout, 300);

        err_set(&e, ERR_IO, "cannot read \"%s\": %s", w->f->path, why);
        free(why);
    } else if (!e.code && w->f->op == FILE_OP_READ) {
        filejob_chunk(w, r->out, w->f->max && w->f->max < r->out_len ? w->f->max : r->out_len);
    } else if (!e.code && fs_write_all(w->fd, r->out, r->out_len) != 0) {
        err_sys(&e, ERR_IO, "cannot write '%s'", w->name);
    }
    if (!e.code && w->f->op == FILE_OP_GET)
        file_sync(w, w->fd, false, on_synced);
    else
        filejob_end(w, e.code ? &e : NULL);
}

static void cat(struct filejob *w)
{
    const char *args[] = {"--", w->f->path, NULL};

    envd_run(w->envd, &(struct envd_proc_spec){.cmd = "cat", .args = args, .timeout_ms = CAT_MS},
             on_cat, w);
}

static void over(struct filejob *w, const struct err *why)
{
    if (w->root < 0 && !why && is_made_up(w)) {
        cat(w);
    } else if (w->root >= 0) {
        filejob_tree_read(w, why);
    } else if (!why && w->f->op == FILE_OP_GET) {
        filejob_progress(w, w->at, w->at, true);
        file_sync(w, w->fd, false, on_synced);
    } else {
        filejob_end(w, why);
    }
}

static void on_timer(void *ctx)
{
    struct filejob *w = ctx;

    w->timer = 0;
    next_piece(w);
}

static bool passes(const struct err *e)
{
    return e->code == ERR_NETWORK || e->code == ERR_TIMEOUT || e->code == ERR_SERVER ||
           e->code == ERR_BUSY;
}

/* 0, or what ends it; *drained: main wants no more at the moment. */
static int take(struct filejob *w, const struct envd_result *r, bool *behind, struct err *e)
{
    if (w->sized && r->total && r->total != w->total)
        return err_set(e, ERR_CONFLICT, "\"%s\" was changed while it was read; try again",
                       w->remote);
    if (r->total) {
        w->total = r->total;
        w->sized = true;
    }
    *behind = false;
    if (r->len && w->f->op == FILE_OP_READ)
        *behind = !filejob_chunk(w, r->body, r->len);
    else if (r->len && fs_write_all(w->fd, r->body, r->len) != 0)
        return err_sys(e, ERR_IO, "cannot write '%s'", w->name);
    w->at += r->len;
    w->tries = 0;
    return 0;
}

static uint64_t wanted(const struct filejob *w)
{
    uint64_t left = w->f->max ? w->f->max - w->at : PIECE;

    return left < PIECE ? left : PIECE;
}

static void on_piece(void *ctx, const struct envd_result *r)
{
    struct filejob *w = ctx;
    struct err e = r->err;
    uint64_t asked = wanted(w);
    bool behind = false;

    if (e.code && passes(&e) && w->tries < TRIES) {
        w->timer = net_timer(w->j->o.net, net_backoff_ms(w->tries++, BACKOFF_MS, BACKOFF_MAX_MS),
                             on_timer, w);
        return;
    }
    if (e.code || take(w, r, &behind, &e) != 0) {
        over(w, &e);
        return;
    }
    if (r->len < asked || (w->sized && w->at >= w->total) || (w->f->max && w->at >= w->f->max)) {
        over(w, NULL);
        return;
    }
    if (w->f->op == FILE_OP_GET)
        filejob_progress(w, w->sent_before + w->at, w->root < 0 ? w->total : w->sum, false);
    if (behind)
        w->timer = net_timer(w->j->o.net, FULL_MS, on_timer, w);
    else
        next_piece(w);
}

static void next_piece(struct filejob *w)
{
    if (w->f->op == FILE_OP_READ && mq_full(w->j->o.events))
        w->timer = net_timer(w->j->o.net, FULL_MS, on_timer, w);
    else
        envd_read(w->envd, w->remote, w->at, wanted(w), on_piece, w);
}

void filejob_read(struct filejob *w, const char *remote)
{
    w->remote = remote;
    w->at = w->total = 0;
    w->sized = false;
    w->tries = 0;
    next_piece(w);
}

/* A file or a folder? What the sandbox says of it has a name that is one. */
static void on_what(void *ctx, const struct envd_result *r)
{
    struct filejob *w = ctx;
    struct file_entry f;
    struct err e = r->err;
    bool told = !e.code && file_entry_parse(&f, r->body, r->len);

    if (e.code) {
        filejob_end(w, &e);
        return;
    }
    if (told && f.kind == FILE_FOLDER) {
        if (str_eq(f.name, "/"))
            err_set(&e, ERR_INVALID, "not the whole of a sandbox: name a folder in it");
        else
            w->name = name_here(w, f.name);
        if (f.path)
            str_set(&w->f->path, f.path);
    } else {
        w->name = name_here(w, file_path_name(w->f->path));
        w->mode = told ? f.mode : 0;
        open_here(w, &e);
    }
    if (e.code)
        filejob_end(w, &e);
    else if (w->fd < 0)
        filejob_tree(w);
    else
        filejob_read(w, w->f->path);
    if (told)
        file_entry_release(&f);
}

void filejob_get(struct filejob *w)
{
    if (w->f->op == FILE_OP_GET)
        envd_stat(w->envd, w->f->path, on_what, w);
    else
        filejob_read(w, w->f->path);
}
