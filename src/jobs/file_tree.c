/* A folder of a sandbox to one here: all of it is looked for first, then one file after the other
 * comes. Links are left out, wherever they lead, and so are names that a terminal could take for
 * something else. */
#include "file_priv.h"

#include <cct/text/clean.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TREE_MOST = 50000, DEEPEST = 64 };

static void look_on(struct filejob *w);
static void next_file(struct filejob *w);

/* --- the end ----------------------------------------------------------------------- */

static void on_synced(struct filejob *w, const struct err *why)
{
    struct err e = *why;
    char *name = clean_line_dup(w->name, 0);

    if (e.code) {
        err_wrap(&e, "'%.200s' is here, but", name);
    } else if (w->unread) {
        err_set(&e, ERR_PERM, "%zu of %zu files could not be read, the others are in '%.200s': %s",
                w->unread, w->items.n, name, w->why_unread);
    } else if (w->skipped) {
        free(w->name);
        w->name = xasprintf("%s; %zu left out: links, or odd names", name, w->skipped);
    }
    free(name);
    filejob_end(w, e.code ? &e : NULL);
}

/* Not each file for itself: of many small ones that would be most of the time. */
static void ended(struct filejob *w)
{
    w->item = w->items.n ? w->items.n - 1 : 0;
    filejob_progress(w, w->sum, w->sum, true);
    file_sync(w, w->root, true, on_synced);
}

static void failed(struct filejob *w, struct err *e)
{
    if (w->item)
        err_wrap(e, "%zu of %zu files are in '%.200s'", w->item, w->items.n, w->name);
    filejob_end(w, e);
}

/* --- the files ---------------------------------------------------------------------- */

static int begin_file(struct filejob *w, const struct file_item *it, struct err *e)
{
    const char *slash = strrchr(it->local, '/'), *base = slash ? slash + 1 : it->local;
    char *folder = slash ? xstrndup(it->local, (size_t)(slash - it->local)) : xstrdup("");
    int dir = here_folder(w->root, folder, e);
    struct stat st;

    free(folder);
    if (dir < 0)
        return e->code;
    if (!w->f->over && fstatat(dir, base, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        close(dir);
        return err_set(e, ERR_CONFLICT, "'%s' is there already", it->local);
    }
    w->fd = here_begin(&w->here, dir, base, e);
    return w->fd < 0 ? e->code : 0;
}

static void next_file(struct filejob *w)
{
    struct err e = {0};

    if (w->item == w->items.n)
        ended(w);
    else if (begin_file(w, &w->items.v[w->item], &e) != 0)
        failed(w, &e);
    else
        filejob_read(w, w->items.v[w->item].remote);
}

/* One that went, or that nobody may read, is no reason to leave the others. */
static bool only_this(const struct err *e)
{
    return e->code == ERR_NOTFOUND || e->code == ERR_PERM || e->code == ERR_INVALID ||
           e->code == ERR_CONFLICT;
}

void filejob_tree_read(struct filejob *w, const struct err *why)
{
    const struct file_item *it = &w->items.v[w->item];
    struct err e = {0};

    if (why && !only_this(why)) {
        e = *why;
        failed(w, &e);
        return;
    }
    if (why) {
        w->unread++;
        if (!w->why_unread)
            w->why_unread = xstrdup(why->text);
    } else if (here_end(&w->here, w->fd, it->mode, w->f->over, &e) != 0) {
        failed(w, &e);
        return;
    }
    close(w->fd);
    w->fd = -1;
    here_release(&w->here);
    w->sent_before += it->size;
    w->item++;
    next_file(w);
}

/* --- what there is ------------------------------------------------------------------- */

static bool is_plain_name(const char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < ' ' || *s == 0x7f)
            return false;
    return true;
}

static int take_entry(struct filejob *w, const char *folder, const struct file_entry *f,
                      struct err *e)
{
    char *rel;

    if (f->target || f->kind == FILE_STRANGE || !is_plain_name(f->name)) {
        w->skipped++;
        return 0;
    }
    if (w->items.n + w->folders.n >= TREE_MOST)
        return err_set(e, ERR_LIMIT, "there are more than %d files and folders in \"%.200s\": "
                       "pack them there, and download the archive", TREE_MOST, w->f->path);
    rel = *folder ? file_path_join(folder, f->name) : xstrdup(f->name);
    if (f->kind == FILE_FOLDER) {
        *ARR_PUSH(&w->folders) = rel;
    } else {
        *ARR_PUSH(&w->items) = (struct file_item){.local = rel,
                                                  .remote = file_path_join(w->f->path, rel),
                                                  .size = (uint64_t)f->size,
                                                  .mode = f->mode};
        w->sum += (uint64_t)f->size;
    }
    return 0;
}

static size_t depth_of(const char *path)
{
    size_t n = *path != '\0';

    for (; *path; path++)
        n += *path == '/';
    return n;
}

static int take_folder(struct filejob *w, const char *folder, const struct file_list *l,
                       struct err *e)
{
    int rc = 0, dir;

    if (depth_of(folder) > DEEPEST)
        return err_set(e, ERR_LIMIT, "there are folders in folders more than %d deep in \"%.200s\"",
                       DEEPEST, w->f->path);
    w->skipped += l->left_out;
    for (size_t i = 0; i < l->n && rc == 0; i++)
        rc = take_entry(w, folder, &l->v[i], e);
    dir = rc ? -1 : here_folder(w->root, folder, e); /* an empty one, too */
    if (dir >= 0)
        close(dir);
    return rc ? rc : dir < 0 ? e->code : 0;
}

static void on_folder(void *ctx, const struct envd_result *r)
{
    struct filejob *w = ctx;
    struct file_list l = {0};
    struct err e = r->err;

    if (e.code && w->folder && only_this(&e)) { /* it went meanwhile, or is not for everybody */
        w->skipped++;
        err_clear(&e);
    } else if (!e.code && file_list_parse(&l, r->body, r->len, &e) == 0) {
        take_folder(w, w->folders.v[w->folder], &l, &e);
    }
    file_list_release(&l);
    w->folder++;
    if (e.code)
        failed(w, &e);
    else
        look_on(w);
}

static void look_on(struct filejob *w)
{
    char *path;

    if (w->folder == w->folders.n) {
        next_file(w);
        return;
    }
    path = *w->folders.v[w->folder] ? file_path_join(w->f->path, w->folders.v[w->folder])
                                    : xstrdup(w->f->path);
    envd_list_dir(w->envd, path, on_folder, w);
    free(path);
}

void filejob_tree(struct filejob *w)
{
    struct err e = {0};
    size_t n = strlen(w->name);

    while (n > 1 && w->name[n - 1] == '/')
        w->name[--n] = '\0';
    if (!is_plain_name(file_path_name(w->name)))
        err_set(&e, ERR_INVALID, "its name has control characters: give another one for here");
    else if (mkdir(w->name, 0777) != 0 && (errno != EEXIST || !w->f->over))
        errno == EEXIST
            ? err_set(&e, ERR_CONFLICT, "'%s' is there already: choose another name", w->name)
            : err_sys(&e, ERR_IO, "cannot make the folder '%s'", w->name);
    if (!e.code)
        w->root = open(w->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (!e.code && w->root < 0)
        err_set(&e, ERR_CONFLICT, "'%s' is there already, and is no folder", w->name);
    if (e.code) {
        filejob_end(w, &e);
        return;
    }
    *ARR_PUSH(&w->folders) = xstrdup("");
    look_on(w);
}
