/* Reading and writing private files. Everything is judged on the open
 * descriptor, never on a name that may be swapped in between; whatever we make
 * is private from its first moment, also under umask 000. */
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_again(int dir, const char *path, int flags, mode_t mode)
{
    int fd;
    do
        fd = openat(dir, path, flags | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, mode);
    while (fd < 0 && errno == EINTR);
    return fd;
}

/* O_NOFOLLOW's ELOOP reads as "too many levels"; say what it is. */
static int open_failed(const char *what, const char *path, struct err *e)
{
    if (errno == ELOOP)
        return err_set(e, ERR_PERM, "cannot %s '%s': it is a symbolic link; use a real file",
                       what, path);
    if (errno == ENXIO)
        return err_set(e, ERR_PERM, "cannot %s '%s': it is not a regular file", what, path);
    return err_sys(e, 0, "cannot %s '%s'", what, path);
}

/* A regular file, ours (or root's, where that may be). */
static int check_file(int fd, const char *what, const char *path, bool root_may,
                      struct stat *st, struct err *e)
{
    if (fstat(fd, st) != 0)
        return err_sys(e, 0, "cannot %s '%s'", what, path);
    if (!S_ISREG(st->st_mode))
        return err_set(e, ERR_PERM, "cannot %s '%s': it is not a regular file", what, path);
    if (st->st_uid != geteuid() && !(root_may && st->st_uid == 0))
        return err_set(e, ERR_PERM, "cannot %s '%s': it belongs to user %u, not to you", what,
                       path, (unsigned)st->st_uid);
    return 0;
}

/* Up to max bytes; more is an error. The size of fstat is only a hint. */
static char *read_bytes(int fd, const char *path, size_t hint, size_t max, size_t *len,
                        struct err *e)
{
    size_t cap = hint < max ? hint : max, n = 0;
    char *p = xmalloc(cap + 2);

    for (;;) {
        ssize_t r = read(fd, p + n, cap + 1 - n);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0) {
            err_sys(e, 0, "cannot read '%s'", path);
            free(p);
            return NULL;
        }
        n += (size_t)r;
        if (r == 0)
            break;
        if (n > max) {
            err_set(e, ERR_LIMIT, "cannot read '%s': it is larger than %zu bytes", path, max);
            free(p);
            return NULL;
        }
        if (n == cap + 1) {
            cap = cap < max / 2 ? cap * 2 + 4096 : max;
            p = xrealloc(p, cap + 2);
        }
    }
    p[n] = '\0';
    if (len)
        *len = n;
    return p;
}

/* What others must not be able to do with a file. */
enum forbid { FORBID_NOTHING, FORBID_WRITING, FORBID_ALL };

static char *read_checked(const char *path, size_t max, enum forbid forbid, size_t *len,
                          struct err *e)
{
    struct stat st;
    char *p = NULL;
    int fd = open_again(AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0);

    if (fd < 0) {
        open_failed("read", path, e);
        return NULL;
    }
    if (check_file(fd, "read", path, true, &st, e) != 0)
        goto out;
    if (forbid == FORBID_ALL && (st.st_mode & 077)) {
        err_set(e, ERR_PERM, "cannot use '%s': others can read it; run chmod 600 on it", path);
        goto out;
    }
    if (forbid == FORBID_WRITING && fs_others_may_write(&st)) {
        err_set(e, ERR_PERM, "cannot use '%s': others can write to it; run chmod go-w on it",
                path);
        goto out;
    }
    if ((uint64_t)st.st_size > max) {
        err_set(e, ERR_LIMIT, "cannot read '%s': it is larger than %zu bytes", path, max);
        goto out;
    }
    p = read_bytes(fd, path, (size_t)st.st_size, max, len, e);
out:
    close(fd);
    return p;
}

char *fs_read(const char *path, size_t max, bool private_file, size_t *len, struct err *e)
{
    return read_checked(path, max, private_file ? FORBID_ALL : FORBID_NOTHING, len, e);
}

int fs_open(const char *path, struct err *e)
{
    struct stat st;
    int fd = open_again(AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0);

    if (fd < 0)
        return open_failed("read", path, e);
    if (check_file(fd, "read", path, true, &st, e) == 0)
        return fd;
    close(fd);
    return e->code;
}

char *fs_read_linked(const char *path, size_t max, size_t *len, struct err *e)
{
    /* the end of the link is opened without following and judged open, so a swap
     * in between can only lead to another file that passes */
    char *real = realpath(path, NULL);
    if (!real) {
        err_sys(e, 0, "cannot read '%s'", path);
        return NULL;
    }
    char *p = read_checked(real, max, FORBID_WRITING, len, e);
    free(real);
    return p;
}

int fs_write_all(int fd, const void *data, size_t len)
{
    const char *p = data;
    while (len > 0) {
        ssize_t w = write(fd, p, len);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return -1;
        p += w;
        len -= (size_t)w;
    }
    return 0;
}

int fs_put_value(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC), saved;
    if (fd < 0)
        return -1;
    ssize_t n = write(fd, text, strlen(text));
    saved = errno;
    close(fd);
    errno = saved;
    return n == (ssize_t)strlen(text) ? 0 : -1;
}

/* What stands under the name now must be a plain file of ours, or nothing. The
 * rename replaces the name and never writes through it, so a swap after this
 * look can only lose the swapper's own entry. */
static int check_target(int dir, const char *name, const char *path, struct err *e)
{
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : err_sys(e, 0, "cannot replace '%s'", path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_PERM, "cannot replace '%s': it is not a regular file", path);
    if (st.st_uid != geteuid())
        return err_set(e, ERR_PERM, "cannot replace '%s': it belongs to user %u, not to you",
                       path, (unsigned)st.st_uid);
    return 0;
}

/* Write, sync, rename, sync the folder. Some file systems cannot sync a folder
 * and say EINVAL; the data itself is safe then. */
static int write_in(int dir, const char *name, const char *path, const void *data, size_t len,
                    struct err *e)
{
    char temp[64], id[13];
    int rc = 0;

    rand_id(id, sizeof(id) - 1);
    snprintf(temp, sizeof(temp), ".tmp-%ld-%s", (long)getpid(), id);
    int fd = open_again(dir, temp, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0)
        return err_sys(e, 0, "cannot write '%s'", path);
    bool done = fchmod(fd, 0600) == 0 && fs_write_all(fd, data, len) == 0 && fsync(fd) == 0;
    if (!done)
        rc = err_sys(e, 0, "cannot write '%s'", path);
    if (close(fd) != 0 && done) {
        rc = err_sys(e, 0, "cannot write '%s'", path);
        done = false;
    }
    if (done && renameat(dir, temp, dir, name) != 0) {
        rc = err_sys(e, 0, "cannot replace '%s'", path);
        done = false;
    }
    if (!done) {
        unlinkat(dir, temp, 0);
        return rc;
    }
    if (fsync(dir) != 0 && errno != EINVAL)
        return err_sys(e, 0, "cannot sync the folder of '%s'", path);
    return 0;
}

int fs_write_private(const char *path, const void *data, size_t len, struct err *e)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    char *folder = !slash          ? xstrdup(".")
                   : slash == path ? xstrdup("/")
                                   : xstrndup(path, (size_t)(slash - path));
    int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc;

    if (dir < 0) {
        rc = err_sys(e, 0, "cannot open the folder '%s'", folder);
    } else if (*name == '\0') {
        rc = err_set(e, ERR_INVALID, "cannot write '%s': it names a folder", path);
    } else {
        rc = check_target(dir, name, path, e);
        if (rc == 0)
            rc = write_in(dir, name, path, data, len, e);
    }
    if (dir >= 0)
        close(dir);
    free(folder);
    return rc;
}

int fs_write_new(const char *path, const void *data, size_t len, struct err *e)
{
    int rc = 0, fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return errno == EEXIST ? err_set(e, ERR_CONFLICT, "'%s' is there already: choose another "
                                         "name", path)
                               : err_sys(e, 0, "cannot make '%s'", path);
    if (fs_write_all(fd, data, len) != 0 || fsync(fd) != 0)
        rc = err_sys(e, ERR_IO, "cannot write '%s'", path);
    close(fd);
    if (rc != 0)
        unlink(path);
    return rc;
}

int fs_lock(const char *path, struct err *e)
{
    struct stat st;
    int fd = open_again(AT_FDCWD, path, O_RDWR | O_CREAT | O_NONBLOCK, 0600);

    if (fd < 0)
        return open_failed("lock", path, e);
    int rc = check_file(fd, "lock", path, false, &st, e);
    if (rc == 0 && (st.st_mode & 0777) != 0600 && fchmod(fd, 0600) != 0)
        rc = err_sys(e, 0, "cannot make '%s' private", path);
    while (rc == 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK)
            rc = err_set(e, ERR_BUSY, "cannot lock '%s': another process holds it", path);
        else if (errno != EINTR)
            rc = err_sys(e, 0, "cannot lock '%s'", path);
    }
    if (rc != 0) {
        close(fd);
        return rc;
    }
    return fd;
}

void fs_raise_nofile(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
        r.rlim_cur = r.rlim_max;
        setrlimit(RLIMIT_NOFILE, &r); /* if refused, the old limit still holds */
    }
}
