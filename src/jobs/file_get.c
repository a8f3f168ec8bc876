/* A file of a sandbox, to whoever asked or to a file here: in pieces by their place, so that a
 * connection that breaks costs one piece. The name here appears with the whole file under it. */
#include "file_priv.h"

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

enum { PIECE = 2 << 20, TRIES = 6, BACKOFF_MS = 200, BACKOFF_MAX_MS = 5000, FULL_MS = 30 };

static void next_piece(struct filejob *w);

/* --- the file here ------------------------------------------------------------------ */

/* A folder, or a name that ends like one, gets the file's own name in it. */
static char *name_here(const struct filejob *w)
{
    const char *local = w->f->local;
    struct stat st;

    if (str_ends(local, "/") || (stat(local, &st) == 0 && S_ISDIR(st.st_mode)))
        return fs_join(local, file_path_name(w->f->path));
    return xstrdup(local);
}

static int open_here(struct filejob *w, struct err *e)
{
    struct stat st;

    w->name = name_here(w);
    if (!w->f->over && lstat(w->name, &st) == 0)
        return err_set(e, ERR_CONFLICT, "'%s' is there already: choose another name", w->name);
    w->temp = xasprintf("%s.part-%ld-%llu", w->name, (long)getpid(), (unsigned long long)w->req_id);
    unlink(w->temp);
    w->fd = open(w->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (w->fd >= 0)
        return 0;
    free(w->temp);
    w->temp = NULL;
    return err_sys(e, ERR_IO, "cannot make '%s'", w->name);
}

/* umask() cannot be asked without setting it, for all threads. */
static mode_t usual_mode(void)
{
    unsigned mask = 077;
    char line[128];
    FILE *f = fopen("/proc/self/status", "re");

    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "Umask: %o", &mask) == 1)
            break;
    if (f)
        fclose(f);
    return 0666 & ~(mode_t)mask;
}

static int publish(struct filejob *w, struct err *e)
{
    if (fchmod(w->fd, usual_mode()) != 0 || fsync(w->fd) != 0)
        return err_sys(e, ERR_IO, "cannot write '%s'", w->name);
    if (w->f->over)
        return rename(w->temp, w->name) == 0
                   ? 0
                   : err_sys(e, ERR_IO, "the file cannot be named '%s'", w->name);
    if (link(w->temp, w->name) == 0)
        return 0;
    return errno == EEXIST
               ? err_set(e, ERR_CONFLICT, "'%s' is there already: choose another name", w->name)
               : err_sys(e, ERR_IO, "the file cannot be named '%s'", w->name);
}

/* --- pieces --------------------------------------------------------------------------- */

static void over(struct filejob *w)
{
    struct err e = {0};

    if (w->f->op == FILE_OP_GET) {
        filejob_progress(w, w->at, w->at, true);
        publish(w, &e);
    }
    filejob_end(w, e.code ? &e : NULL);
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
                       w->f->path);
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
        filejob_end(w, &e);
        return;
    }
    if (r->len < asked || (w->sized && w->at >= w->total) || (w->f->max && w->at >= w->f->max)) {
        over(w);
        return;
    }
    if (w->f->op == FILE_OP_GET)
        filejob_progress(w, w->at, w->total, false);
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
        envd_read(w->envd, w->f->path, w->at, wanted(w), on_piece, w);
}

void filejob_get(struct filejob *w)
{
    struct err e = {0};

    if (w->f->op == FILE_OP_GET && open_here(w, &e) != 0)
        filejob_end(w, &e);
    else
        next_piece(w);
}
