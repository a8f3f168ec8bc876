/* Reading below one folder. A recipe comes with a repository, which may be anyone's: its links
 * must not bring in what lies elsewhere on this machine. */
#include "files_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int inside_begin(struct inside *in, const char *folder, struct err *e)
{
    in->dir = -1;
    in->path = NULL;
    in->top = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return in->top >= 0 ? 0 : err_sys(e, 0, "cannot look into \"%.200s\"", folder);
}

static void leave(struct inside *in)
{
    if (in->dir >= 0)
        close(in->dir);
    in->dir = -1;
    free(in->path);
    in->path = NULL;
}

void inside_end(struct inside *in)
{
    leave(in);
    if (in->top >= 0)
        close(in->top);
    in->top = -1;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Upwards from the open folder: does the way to the root pass the top? */
static bool is_below(int top, int dir)
{
    struct stat want, here, before;
    int fd = dir;
    bool yes = false, end = fstat(top, &want) != 0 || fstat(fd, &here) != 0;

    while (!end && !(yes = is_same(&want, &here))) {
        int up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

        if (fd != dir)
            close(fd);
        fd = up;
        before = here;
        end = up < 0 || fstat(up, &here) != 0 || is_same(&before, &here);
    }
    if (fd >= 0 && fd != dir)
        close(fd);
    return yes;
}

/* Which of the folders on the way is the link that leads out. */
static int refuse(struct inside *in, const char *path, const char *dir, struct err *e)
{
    size_t n = 0;
    bool out = false;

    while (dir[n] && !out) {
        char *part;
        int fd;

        n += strspn(dir + n, "/");
        n += strcspn(dir + n, "/");
        part = xstrndup(dir, n);
        fd = openat(in->top, part, O_PATH | O_DIRECTORY | O_CLOEXEC);
        out = fd < 0 || !is_below(in->top, fd);
        if (fd >= 0)
            close(fd);
        free(part);
    }
    return err_set(e, ERR_PERM, "\"%.200s\" is not taken: \"%.*s\" is a link out of the recipe's "
                   "folder; put what is needed into the folder, or leave the link out by a "
                   ".dockerignore", path, n < 200 ? (int)n : 200, dir);
}

int inside_at(struct inside *in, const char *path, const char **name, struct err *e)
{
    const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
    bool whole = !*last || str_eq(last, ".."); /* ".." could be the way out itself */
    char *dir = whole && *path ? xstrdup(path)
                : slash && !whole ? xstrndup(path, (size_t)(slash - path))
                                  : xstrdup(".");

    *name = whole ? "." : last;
    if (in->path && str_eq(in->path, dir)) {
        free(dir);
        return in->dir;
    }
    leave(in);
    in->dir = openat(in->top, dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (in->dir < 0) {
        err_sys(e, 0, "cannot look into \"%.200s\"", dir);
    } else if (!is_below(in->top, in->dir)) {
        refuse(in, path, dir, e);
        leave(in);
    } else {
        in->path = dir;
        return in->dir;
    }
    free(dir);
    return -1;
}

int inside_open(struct inside *in, const char *path, struct err *e)
{
    const char *name;
    int dir = inside_at(in, path, &name, e), fd;
    struct stat st;

    if (dir < 0)
        return -1;
    fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        err_sys(e, 0, "cannot read \"%.200s\"", path);
    } else if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        err_set(e, ERR_CONFLICT, "cannot read \"%.200s\": it is no file any more; build again", path);
        close(fd);
        fd = -1;
    }
    return fd;
}

int inside_link(struct inside *in, const char *path, char *dst, size_t size, struct err *e)
{
    const char *name;
    int dir = inside_at(in, path, &name, e);
    ssize_t n = dir < 0 ? -1 : readlinkat(dir, name, dst, size - 1);

    if (dir >= 0 && n < 0)
        err_sys(e, 0, "cannot read the link \"%.200s\"", path);
    dst[n < 0 ? 0 : n] = '\0';
    return (int)n;
}
