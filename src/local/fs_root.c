/* Paths resolved by the kernel, within bounds: see the header. */
#include <cct/local/fs_root.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TRIES 32 /* openat2 gives EAGAIN when a rename anywhere raced with it */

int fs_root_init(struct fs_root *r, const char *top, struct err *e)
{
    *r = (struct fs_root){.fd = -1};
    if (top == NULL)
        return 0;
    r->fd = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (r->fd < 0)
        return err_sys(e, 0, "cannot open the sandbox's home '%s'", top);
    r->top = xstrdup(top);
    r->real = realpath(top, NULL);
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH};
    int fd = (int)syscall(SYS_openat2, r->fd, ".", &how, sizeof(how));
    if (fd < 0) {
        err_sys(e, ERR_UNSUPPORTED, "cannot confine files to '%s': openat2 (Linux 5.6) fails",
                top);
        fs_root_release(r);
        return e != NULL ? e->code : ERR_UNSUPPORTED;
    }
    close(fd);
    return 0;
}

void fs_root_release(struct fs_root *r)
{
    if (r->fd >= 0)
        close(r->fd);
    free(r->top);
    free(r->real);
    *r = (struct fs_root){.fd = -1};
}

/* What is left of `path` below `top`: "." for top itself; NULL when outside. */
static const char *below(const char *top, const char *path)
{
    size_t n = top != NULL ? strlen(top) : 0;
    while (n > 1 && top[n - 1] == '/')
        n--;
    if (n == 0 || strncmp(path, top, n) != 0)
        return NULL;
    if (path[n] == '\0')
        return ".";
    return path[n] == '/' ? path + n + 1 : NULL;
}

/* The confined part of `path`; NULL with EXDEV when it lies outside. */
static const char *relative(const struct fs_root *r, const char *path)
{
    const char *rel = below(r->top, path);
    if (rel == NULL)
        rel = below(r->real, path);
    if (rel == NULL)
        errno = EXDEV;
    return rel;
}

static int open_how(int dir, const char *path, int flags, mode_t mode, uint64_t resolve)
{
    struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC), .resolve = resolve};
    int fd = -1;
    if (flags & O_CREAT)
        how.mode = mode;
    for (int i = 0; i < TRIES; i++) {
        fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
            return fd;
    }
    errno = EBUSY; /* somebody renames parts of it all the time */
    return -1;
}

/* A link with an absolute target is refused by RESOLVE_BENEATH even where it leads
 * to a place within. Let the kernel say where the path ends, without opening
 * anything, and open that place again within bounds and through no link at all. */
static int open_again(const struct fs_root *r, const char *path, int flags, mode_t mode)
{
    int fd = open_how(AT_FDCWD, path, O_PATH | (flags & O_NOFOLLOW), 0, RESOLVE_NO_MAGICLINKS);
    char *where = fd >= 0 ? fs_root_where(fd) : NULL;
    const char *rel = where != NULL ? below(r->real, where) : NULL;
    if (fd >= 0)
        close(fd);
    fd = -1;
    errno = EXDEV;
    if (rel != NULL)
        fd = open_how(r->fd, rel, flags, mode,
                      RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS);
    int saved = errno;
    free(where);
    errno = saved;
    return fd;
}

int fs_root_open(const struct fs_root *r, const char *path, int flags, mode_t mode)
{
    if (r->fd < 0) {
        int fd = open_how(AT_FDCWD, path, flags, mode, RESOLVE_NO_MAGICLINKS);
        return fd >= 0 || errno != ENOSYS ? fd : open(path, flags | O_CLOEXEC, mode);
    }
    const char *rel = relative(r, path);
    if (rel == NULL)
        return -1;
    int fd = open_how(r->fd, rel, flags, mode, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
    return fd < 0 && errno == EXDEV ? open_again(r, path, flags, mode) : fd;
}

int fs_root_parent(const struct fs_root *r, const char *path, const char **name)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL || slash[1] == '\0') {
        errno = r->fd < 0 ? EBUSY : EXDEV; /* "/" */
        return -1;
    }
    *name = slash + 1;
    char *dir = slash > path ? xstrndup(path, (size_t)(slash - path)) : xstrdup("/");
    int fd = fs_root_open(r, dir, O_PATH | O_DIRECTORY, 0);
    int saved = errno;
    free(dir);
    errno = saved;
    return fd;
}

static int stat_by(const struct fs_root *r, const char *path, int flags, struct stat *st)
{
    int fd = fs_root_open(r, path, O_PATH | flags, 0);
    if (fd < 0)
        return -1;
    int rc = fstat(fd, st);
    int saved = errno;
    close(fd);
    errno = saved;
    return rc;
}

int fs_root_lstat(const struct fs_root *r, const char *path, struct stat *st)
{
    return stat_by(r, path, O_NOFOLLOW, st);
}

int fs_root_stat(const struct fs_root *r, const char *path, struct stat *st)
{
    return stat_by(r, path, 0, st);
}

char *fs_root_where(int fd)
{
    char link[40], path[4096];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof(path) - 1);
    if (n <= 0 || path[0] != '/')
        return NULL;
    path[n] = '\0';
    return xstrdup(path);
}

/* One folder of the chain: made when it is missing. */
static int make_dir(const struct fs_root *r, const char *path)
{
    struct stat st;
    const char *name;
    if (fs_root_stat(r, path, &st) == 0) {
        errno = ENOTDIR;
        return S_ISDIR(st.st_mode) ? 0 : -1;
    }
    if (errno != ENOENT)
        return -1;
    int dir = fs_root_parent(r, path, &name);
    if (dir < 0)
        return -1;
    int rc = mkdirat(dir, name, 0755);
    if (rc != 0 && errno == EEXIST) { /* somebody was faster, or a link to nowhere */
        bool is_folder = fs_root_stat(r, path, &st) == 0 && S_ISDIR(st.st_mode);
        rc = is_folder ? 0 : -1;
        errno = EEXIST;
    }
    int saved = errno;
    close(dir);
    errno = saved;
    return rc;
}

int fs_root_make_dirs(const struct fs_root *r, const char *path, bool self)
{
    const char *rel = r->fd < 0 ? path + 1 : relative(r, path);
    int rc = 0;
    if (rel == NULL)
        return -1;
    if (str_eq(rel, "."))
        return 0;
    char *p = xstrdup(path);
    for (char *at = strchr(p + (rel - path), '/'); at != NULL && rc == 0;
         at = strchr(at + 1, '/')) {
        *at = '\0';
        rc = make_dir(r, p);
        *at = '/';
    }
    if (rc == 0 && self)
        rc = make_dir(r, p);
    int saved = errno;
    free(p);
    errno = saved;
    return rc;
}

void fs_temp_name(bool replaces, char *name, size_t size)
{
    char tail[17];
    rand_id(tail, 16);
    snprintf(name, size, "%s%s", replaces ? FS_TEMP_REPLACE : FS_TEMP_NEW, tail);
}

int fs_temp_open(int dir, bool replaces, char *name, size_t size)
{
    int fd = -1;
    for (int i = 0; i < TRIES && fd < 0; i++) {
        fs_temp_name(replaces, name, size);
        fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST && errno != EINTR)
            break;
    }
    return fd;
}
