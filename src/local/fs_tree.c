/* Removing, moving and joining: see the header. */
#include <cct/local/fs_tree.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#define COPY_CHUNK (1u << 20)

static int close_with(int fd, int err)
{
    if (fd >= 0)
        close(fd);
    return err;
}

/* A folder on the same mount, not through a link. */
static int open_folder(int dir, const char *name)
{
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                           .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS};
    int fd = (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));
    if (fd < 0 && errno == EXDEV)
        errno = EBUSY; /* a mount point: not ours to empty */
    if (fd < 0 && errno == ENOSYS)
        fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd;
}

static bool is_dot(const char *name)
{
    return str_eq(name, ".") || str_eq(name, "..");
}

/* --- remove --------------------------------------------------------------- */

static int remove_at(int dir, const char *name, int depth)
{
    int err = 0;
    struct dirent *de;
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    int saved = errno;
    if (saved == EROFS && faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : saved; /* said of a name that is not there, too */
    if (saved != EISDIR && saved != EPERM)
        return saved;
    if (depth == 0)
        return ELOOP;
    int fd = open_folder(dir, name);
    if (fd < 0)
        return errno == ENOTDIR || errno == ELOOP ? saved : errno;
    DIR *d = fdopendir(fd);
    if (d == NULL)
        return close_with(fd, ENOMEM);
    while ((de = readdir(d)) != NULL) {
        int one = is_dot(de->d_name) ? 0 : remove_at(fd, de->d_name, depth - 1);
        if (err == 0)
            err = one; /* the rest goes all the same */
    }
    closedir(d);
    if (err != 0)
        return err;
    return unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : errno;
}

int fs_tree_remove(const struct fs_root *r, const char *path)
{
    const char *name;
    struct statx sx = {0};
    int dir = fs_root_parent(r, path, &name);
    if (dir < 0)
        return errno == ENOENT ? 0 : errno;
    if (statx(dir, name, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &sx) == 0 &&
        (sx.stx_attributes & STATX_ATTR_MOUNT_ROOT))
        return close_with(dir, EBUSY);
    return close_with(dir, remove_at(dir, name, FS_TREE_DEPTH));
}

/* --- copy ----------------------------------------------------------------- */

/* `len` bytes from where both descriptors stand; fewer when the file ends. */
static int copy_range(int from, int to, off_t len)
{
    char *chunk = NULL;
    int err = 0;
    while (err == 0 && len > 0) {
        size_t want = len < (off_t)COPY_CHUNK ? (size_t)len : COPY_CHUNK;
        ssize_t n = chunk == NULL ? copy_file_range(from, NULL, to, NULL, want, 0) : 0;
        if (n < 0 && errno != EINTR && (errno == ENOSPC || errno == EDQUOT || errno == EIO))
            err = errno;
        else if (n <= 0 && (n == 0 || errno != EINTR)) { /* not between these two */
            chunk = chunk != NULL ? chunk : xmalloc(COPY_CHUNK);
            n = read(from, chunk, want);
            if (n == 0)
                break;
            err = n < 0 && errno != EINTR ? errno : 0;
            if (n > 0 && fs_write_all(to, chunk, (size_t)n) != 0)
                err = errno;
        }
        len -= n > 0 ? n : 0;
    }
    free(chunk);
    return err;
}

/* A whole file behind what is in `to`. Holes stay holes: a file that looks larger
 * than the disk must not fill it. */
static int copy_bytes(int from, int to, off_t size)
{
    off_t base = lseek(to, 0, SEEK_CUR), at = 0;
    int err = 0;
    while (err == 0 && at < size) {
        off_t data = lseek(from, at, SEEK_DATA), hole = size;
        if (data < 0 && errno == ENXIO)
            break; /* nothing but a hole is left */
        if (data >= 0)
            hole = lseek(from, data, SEEK_HOLE);
        if (data < 0 || hole < 0) /* this file system knows no holes */
            data = at, hole = size;
        if (hole > size)
            hole = size;
        if (lseek(from, data, SEEK_SET) < 0 || lseek(to, base + data, SEEK_SET) < 0)
            return errno;
        err = copy_range(from, to, hole - data);
        at = hole;
    }
    if (err == 0 && (ftruncate(to, base + size) != 0 || lseek(to, base + size, SEEK_SET) < 0))
        err = errno;
    return err;
}

/* What belongs to a file beside its bytes; attributes that the place cannot keep
 * stay behind, as with cp. */
static int copy_nature(int from, int to, const struct stat *st)
{
    char names[65536], value[65536];
    ssize_t n = flistxattr(from, names, sizeof(names));
    for (const char *p = names; n > 0 && p < names + n; p += strlen(p) + 1) {
        ssize_t len = str_starts(p, "user.") ? fgetxattr(from, p, value, sizeof(value)) : -1;
        if (len >= 0 && fsetxattr(to, p, value, (size_t)len, 0) != 0 && errno != ENOTSUP)
            return errno;
    }
    struct timespec times[2] = {st->st_atim, st->st_mtim};
    if (fchown(to, st->st_uid, st->st_gid) != 0 && errno != EPERM && errno != EINVAL)
        return errno;
    return fchmod(to, st->st_mode & 07777) == 0 && futimens(to, times) == 0 ? 0 : errno;
}

static int copy_file(int fdir, const char *from, int tdir, const char *to)
{
    struct stat st;
    int err = 0, in = openat(fdir, from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (in < 0)
        return errno;
    int out = openat(tdir, to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (out < 0)
        return close_with(in, errno);
    if (fstat(in, &st) != 0)
        err = errno;
    else if (!S_ISREG(st.st_mode))
        err = EINVAL;
    if (err == 0)
        err = copy_bytes(in, out, st.st_size);
    if (err == 0)
        err = copy_nature(in, out, &st);
    close(in);
    return close_with(out, err);
}

static int copy_at(int fdir, const char *from, int tdir, const char *to, int depth);

static int copy_folder(int fdir, const char *from, int tdir, const char *to,
                       const struct stat *st, int depth)
{
    struct dirent *de;
    int err = 0, out, in = open_folder(fdir, from);
    if (in < 0)
        return errno;
    if (depth == 0)
        return close_with(in, ELOOP);
    if (mkdirat(tdir, to, 0700) != 0)
        return close_with(in, errno);
    if ((out = open_folder(tdir, to)) < 0)
        return close_with(in, errno);
    DIR *d = fdopendir(in);
    if (d == NULL)
        return close_with(out, close_with(in, ENOMEM));
    while (err == 0 && (de = readdir(d)) != NULL)
        if (!is_dot(de->d_name))
            err = copy_at(in, de->d_name, out, de->d_name, depth - 1);
    if (err == 0)
        err = copy_nature(in, out, st);
    closedir(d);
    return close_with(out, err);
}

/* Files, folders, links and pipes; sockets and devices are no data to carry over. */
static int copy_at(int fdir, const char *from, int tdir, const char *to, int depth)
{
    struct stat st;
    char target[4096];
    if (fstatat(fdir, from, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno;
    if (S_ISREG(st.st_mode))
        return copy_file(fdir, from, tdir, to);
    if (S_ISDIR(st.st_mode))
        return copy_folder(fdir, from, tdir, to, &st, depth);
    if (S_ISFIFO(st.st_mode))
        return mkfifoat(tdir, to, st.st_mode & 0777) == 0 ? 0 : errno;
    if (!S_ISLNK(st.st_mode))
        return EINVAL;
    ssize_t n = readlinkat(fdir, from, target, sizeof(target) - 1);
    if (n < 0)
        return errno;
    target[n] = '\0';
    return symlinkat(target, tdir, to) == 0 ? 0 : errno;
}

/* --- move ----------------------------------------------------------------- */

static int move_by_copy(int fdir, const char *from, int tdir, const char *to)
{
    struct statx sx = {0};
    char tmp[48];
    fs_temp_name(false, tmp, sizeof(tmp));
    if (statx(fdir, from, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &sx) == 0 &&
        (sx.stx_attributes & STATX_ATTR_MOUNT_ROOT))
        return EBUSY;
    if (faccessat(fdir, ".", W_OK, 0) != 0)
        return errno; /* it could be copied, but not taken away */
    int err = copy_at(fdir, from, tdir, tmp, FS_TREE_DEPTH);
    if (err == 0 && renameat(tdir, tmp, tdir, to) != 0)
        err = errno;
    if (err != 0) {
        remove_at(tdir, tmp, FS_TREE_DEPTH);
        return err;
    }
    return remove_at(fdir, from, FS_TREE_DEPTH);
}

static int move(const struct fs_root *r, const char *from, const char *to, bool copy)
{
    const char *fname, *tname;
    int fdir = fs_root_parent(r, from, &fname), err = 0;
    if (fdir < 0)
        return errno;
    int tdir = fs_root_parent(r, to, &tname);
    if (tdir < 0)
        return close_with(fdir, errno);
    if (copy)
        err = move_by_copy(fdir, fname, tdir, tname);
    else if (renameat(fdir, fname, tdir, tname) != 0)
        err = errno == EXDEV ? EAGAIN : errno; /* EXDEV is kept for the bounds */
    close(fdir);
    return close_with(tdir, err);
}

int fs_tree_rename(const struct fs_root *r, const char *from, const char *to)
{
    return move(r, from, to, false);
}

int fs_tree_move(const struct fs_root *r, const char *from, const char *to)
{
    int err = move(r, from, to, false);
    return err == EAGAIN ? move(r, from, to, true) : err;
}

/* --- join ----------------------------------------------------------------- */

static int join_into(const struct fs_root *r, int out, const char *const *from, size_t n,
                     const char **bad)
{
    struct stat st;
    for (size_t i = 0; i < n; i++) {
        *bad = from[i];
        int in = fs_root_open(r, from[i], O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
        if (in < 0)
            return errno;
        int err = fstat(in, &st) != 0 ? errno : S_ISREG(st.st_mode) ? 0 : EINVAL;
        if (err == 0)
            err = copy_bytes(in, out, st.st_size);
        close(in);
        if (err != 0)
            return err;
    }
    return 0;
}

static void unlink_all(const struct fs_root *r, const char *const *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *name;
        int dir = fs_root_parent(r, from[i], &name);
        if (dir >= 0)
            unlinkat(dir, name, 0);
        close_with(dir, 0);
    }
}

int fs_tree_join(const struct fs_root *r, const char *const *from, size_t n, const char *to,
                 const char **bad)
{
    const char *name;
    struct stat st;
    char tmp[48];
    *bad = to;
    int dir = fs_root_parent(r, to, &name);
    if (dir < 0)
        return errno;
    bool is_there = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    int out = fs_temp_open(dir, is_there, tmp, sizeof(tmp));
    if (out < 0)
        return close_with(dir, errno);
    int err = join_into(r, out, from, n, bad);
    if (err == 0) {
        *bad = to;
        if (fchmod(out, 0644) != 0 || renameat(dir, tmp, dir, name) != 0)
            err = errno;
    }
    if (err != 0)
        unlinkat(dir, tmp, 0);
    else
        unlink_all(r, from, n);
    close(out);
    return close_with(dir, err);
}
