/* Files of this machine into a sandbox, one after the other: under another name first, so that
 * the name appears there with the whole file under it. */
#include "file_priv.h"

#include <cct/text/clean.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MOST = 5000, DEEPEST = 32, CHMOD_MS = 30000 };

static void next_file(struct filejob *w);

/* --- which ones ------------------------------------------------------------------- */

/* Links are not followed: they could lead out of the folder. */
static int collect(struct filejob *w, const char *local, const char *remote, int depth,
                   struct err *e)
{
    struct stat st;
    struct dirent *d;
    DIR *dir;
    int rc = 0;

    if ((depth ? lstat(local, &st) : stat(local, &st)) != 0)
        return err_sys(e, ERR_NOTFOUND, "cannot read '%s'", local);
    if (S_ISREG(st.st_mode)) {
        if (w->items.n == FILES_MOST)
            return err_set(e, ERR_LIMIT, "there are more than %d files in it", FILES_MOST);
        struct file_item *it = ARR_PUSH(&w->items);
        it->local = xstrdup(local);
        it->remote = xstrdup(remote);
        it->size = (uint64_t)st.st_size;
        it->mode = st.st_mode & 0777;
        w->sum += it->size;
        return 0;
    }
    if (!S_ISDIR(st.st_mode) || depth == DEEPEST) {
        w->skipped++;
        return depth ? 0 : err_set(e, ERR_INVALID, "'%s' is neither a file nor a folder", local);
    }
    dir = opendir(local);
    if (!dir)
        return err_sys(e, ERR_IO, "cannot read the folder '%s'", local);
    while (rc == 0 && (d = readdir(dir))) {
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
            continue;
        char *from = fs_join(local, d->d_name), *to = file_path_join(remote, d->d_name);
        rc = collect(w, from, to, depth + 1, e);
        free(from);
        free(to);
    }
    closedir(dir);
    return rc;
}

/* --- one file ----------------------------------------------------------------------- */

static void failed(struct filejob *w, struct err *e)
{
    const struct file_item *it = &w->items.v[w->item];

    err_wrap(e, "'%s' was not uploaded", it->local);
    if (w->item)
        err_wrap(e, "%zu of %zu files are there", w->item, w->items.n);
    filejob_end(w, e);
}

static void on_removed(void *ctx, const struct envd_result *r)
{
    struct filejob *w = ctx;
    struct err e = {0};

    (void)r; /* what remains is called .NAME.part-..., and why is told by this: */
    err_set(&e, ERR_IO, "%s", buf_str(&w->says));
    failed(w, &e);
}

/* Nothing half is left behind. */
static void undo(struct filejob *w, const struct err *why)
{
    buf_clear(&w->says);
    buf_adds(&w->says, why->text);
    envd_remove(w->envd, w->far_temp, on_removed, w);
}

static void on_named(void *ctx, const struct envd_result *r)
{
    struct filejob *w = ctx;

    if (r->err.code) {
        undo(w, &r->err);
        return;
    }
    w->sent_before += w->items.v[w->item].size;
    w->item++;
    next_file(w);
}

static void on_uploaded(void *ctx, const struct envd_result *r)
{
    struct filejob *w = ctx;

    close(w->fd);
    w->fd = -1;
    if (r->err.code)
        undo(w, &r->err);
    else
        envd_move(w->envd, w->far_temp, w->items.v[w->item].remote, on_named, w);
}

/* As many bytes as were told, whatever became of the file since. */
static size_t read_here(void *ctx, char *dst, size_t room)
{
    struct filejob *w = ctx;
    uint64_t left = w->items.v[w->item].size - w->at;
    ssize_t n;

    do
        n = read(w->fd, dst, left < room ? (size_t)left : room);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return 0;
    w->at += (uint64_t)n;
    filejob_progress(w, w->sent_before + w->at, w->sum, false);
    return (size_t)n;
}

static void upload(struct filejob *w)
{
    const struct file_item *it = &w->items.v[w->item];
    char *dir = file_path_parent(it->remote), *temp, id[9];
    struct err e = {0};

    w->fd = open(it->local, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (w->fd < 0) {
        err_sys(&e, ERR_IO, "it cannot be read");
        free(dir);
        failed(w, &e);
        return;
    }
    rand_id(id, 8);
    temp = xasprintf(".%.100s.part-%s", file_path_name(it->remote), id);
    free(w->far_temp);
    w->far_temp = file_path_join(dir, temp);
    w->at = 0;
    envd_upload(w->envd, w->far_temp, it->size, read_here, on_uploaded, w);
    free(temp);
    free(dir);
}

static void on_free(void *ctx, const struct envd_result *r)
{
    struct filejob *w = ctx;
    struct err e = r->err;

    if (e.code == ERR_NOTFOUND) {
        upload(w);
        return;
    }
    if (!e.code)
        err_set(&e, ERR_CONFLICT, "there is a \"%s\" in the sandbox already",
                w->items.v[w->item].remote);
    failed(w, &e);
}

/* --- what can be run here can be run there ---------------------------------------------- */

static void make_executable(struct filejob *w);

static void on_chmod(void *ctx, const struct envd_run_result *r)
{
    struct filejob *w = ctx;
    char *name;

    if (r->err.code || r->exit_code) {
        name = xasprintf("%s; what can be run here could not be made so there", w->name);
        free(w->name);
        w->name = name;
        filejob_end(w, NULL);
        return;
    }
    make_executable(w);
}

/* envd takes no rights with a file: the sandbox's chmod gives them, to some at a time. */
static void make_executable(struct filejob *w)
{
    enum { AT_ONCE = 200 };
    const char *args[AT_ONCE + 3] = {"+x", "--"};
    size_t n = 2;

    for (; w->item < w->items.n && n < AT_ONCE + 2; w->item++)
        if (w->items.v[w->item].mode & 0111)
            args[n++] = w->items.v[w->item].remote;
    if (n == 2) {
        w->item = w->items.n ? w->items.n - 1 : 0;
        filejob_progress(w, w->sum, w->sum, true);
        filejob_end(w, NULL);
        return;
    }
    envd_run(w->envd, &(struct envd_proc_spec){.cmd = "chmod", .args = args, .timeout_ms = CHMOD_MS},
             on_chmod, w);
}

static void next_file(struct filejob *w)
{
    if (w->item == w->items.n) {
        w->item = 0;
        make_executable(w);
    } else if (w->f->over) {
        upload(w);
    } else {
        envd_stat(w->envd, w->items.v[w->item].remote, on_free, w);
    }
}

/* --- where to ------------------------------------------------------------------------ */

static void begin(struct filejob *w)
{
    struct err e = {0};

    if (collect(w, w->f->local, w->f->path, 0, &e) == 0 && !w->items.n)
        err_set(&e, ERR_INVALID, "there is no file in '%s'", w->f->local);
    if (e.code) {
        filejob_end(w, &e);
        return;
    }
    w->name = clean_line_dup(w->f->path, 0);
    if (w->skipped) {
        char *name = xasprintf("%s; %zu that are no files were left out", w->name, w->skipped);
        free(w->name);
        w->name = name;
    }
    next_file(w);
}

/* Into a folder that is there, under its own name. */
static void on_target(void *ctx, const struct envd_result *r)
{
    struct filejob *w = ctx;
    struct file_entry f;
    char *path;

    if (r->err.code && r->err.code != ERR_NOTFOUND) {
        filejob_end(w, &r->err);
        return;
    }
    bool there = !r->err.code && file_entry_parse(&f, r->body, r->len);
    if ((there && f.kind == FILE_FOLDER) || str_ends(w->f->path, "/")) {
        char *local = xstrdup(w->f->local);
        size_t n = strlen(local);
        while (n > 1 && local[n - 1] == '/')
            local[--n] = '\0';
        const char *own = file_path_name(local);
        path = strcmp(own, ".") == 0 || strcmp(own, "..") == 0 || !*own
                   ? xstrdup(w->f->path) /* what is in it, not it */
                   : file_path_join(w->f->path, own);
        free(local);
        free(w->f->path);
        w->f->path = path;
    }
    if (there)
        file_entry_release(&f);
    begin(w);
}

void filejob_put(struct filejob *w)
{
    envd_stat(w->envd, w->f->path, on_target, w);
}
