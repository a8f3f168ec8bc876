/* Where our files live, and making those folders private. */
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *own;  /* variable that names the very folder */
    const char *xdg;  /* variable that names its parent */
    const char *home; /* parent below HOME when that is unset */
} places[] = {
    [FS_CONFIG] = {"CC_TUI_CONFIG_DIR", "XDG_CONFIG_HOME", ".config"},
    [FS_DATA] = {"CC_TUI_DATA_DIR", "XDG_DATA_HOME", ".local/share"},
    [FS_STATE] = {"CC_TUI_STATE_DIR", "XDG_STATE_HOME", ".local/state"},
    [FS_RUNTIME] = {"CC_TUI_RUNTIME_DIR", "XDG_RUNTIME_DIR", NULL},
    [FS_CACHE] = {"CC_TUI_CACHE_DIR", "XDG_CACHE_HOME", ".cache"},
};

char *fs_join(const char *dir, const char *name)
{
    size_t n = strlen(dir);
    return xasprintf("%s%s%s", dir, n > 0 && dir[n - 1] == '/' ? "" : "/", name);
}

/* A relative path in such a variable is to be ignored (XDG base directories). */
static const char *absolute_env(const char *name)
{
    const char *v = getenv(name);
    return v && v[0] == '/' ? v : NULL;
}

/* The convention of a group for each user: the primary one, of the same name, with nobody else in
 * it. Never root's. */
static bool is_users_group(gid_t gid)
{
    char text[2][4096];
    struct passwd pw, *user = NULL;
    struct group gr, *group = NULL;

    if (geteuid() == 0 || getpwuid_r(geteuid(), &pw, text[0], sizeof(text[0]), &user) != 0 ||
        !user || user->pw_gid != gid ||
        getgrgid_r(gid, &gr, text[1], sizeof(text[1]), &group) != 0 || !group ||
        !str_eq(group->gr_name, user->pw_name))
        return false;
    for (char **member = group->gr_mem; *member; member++)
        if (!str_eq(*member, user->pw_name))
            return false;
    return true;
}

bool fs_others_may_write(const struct stat *st)
{
    return (st->st_mode & S_IWOTH) ||
           ((st->st_mode & S_IWGRP) && !is_users_group(st->st_gid));
}

/* A runtime folder that is not ours alone is no place for a socket. */
static bool private_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
           !fs_others_may_write(&st);
}

char *fs_place(enum fs_place place, struct err *e)
{
    const char *own = getenv(places[place].own);
    if (own && *own)
        return xstrdup(own);
    const char *xdg = absolute_env(places[place].xdg);
    if (xdg && (place != FS_RUNTIME || private_folder(xdg)))
        return fs_join(xdg, "cc-tui");
    if (place == FS_RUNTIME) {
        char *state = fs_place(FS_STATE, e);
        char *run = state ? fs_join(state, "run") : NULL;
        free(state);
        return run;
    }
    const char *home = absolute_env("HOME");
    if (!home) {
        err_set(e, ERR_NOTFOUND, "cannot find a place for files: neither HOME nor %s is set",
                places[place].xdg);
        return NULL;
    }
    char *parent = fs_join(home, places[place].home);
    char *path = fs_join(parent, "cc-tui");
    free(parent);
    return path;
}

/* Under sudo HOME may be somebody else's: root's files do not belong there. And
 * in a folder that all may write without the sticky bit names can be swapped. */
static int check_parent(int fd, const char *path, struct err *e)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return err_sys(e, 0, "cannot look at the folder of '%s'", path);
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return err_set(e, ERR_PERM,
                       "cannot make '%s': the folder above belongs to user %u, not to you; "
                       "run as that user or set HOME",
                       path, (unsigned)st.st_uid);
    if (st.st_uid != geteuid() && !(st.st_mode & S_ISVTX) && fs_others_may_write(&st))
        return err_set(e, ERR_PERM, "cannot make '%s': others may write to the folder above",
                       path);
    return 0;
}

static int check_folder(int fd, const char *path, struct err *e)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return err_sys(e, 0, "cannot look at '%s'", path);
    if (st.st_uid != geteuid())
        return err_set(e, ERR_PERM,
                       "cannot use the folder '%s': it belongs to user %u, not to you; run as "
                       "that user or set HOME",
                       path, (unsigned)st.st_uid);
    if (fs_others_may_write(&st))
        return err_set(
            e, ERR_PERM,
            "cannot use the folder '%s': others may write to it; run chmod go-w on it", path);
    return 0;
}

/* Enter `name` below `dir`, making it when it is missing; returns the new
 * descriptor or a negative code. Parents may be symbolic links, the last part
 * may not. O_PATH: a folder that may only be searched is no obstacle. */
static int enter(int dir, const char *name, bool last, const char *path, struct err *e)
{
    int flags = O_PATH | O_DIRECTORY | O_CLOEXEC | (last ? O_NOFOLLOW : 0);
    int fd = openat(dir, name, flags);

    if (fd < 0 && errno == ENOENT) {
        int rc = check_parent(dir, path, e);
        if (rc != 0)
            return rc;
        bool made = mkdirat(dir, name, 0700) == 0;
        if (!made && errno != EEXIST)
            return err_sys(e, 0, "cannot make the folder '%s'", path);
        /* a strict umask may have taken our own bits */
        if (made && fchmodat(dir, name, 0700, 0) != 0)
            return err_sys(e, 0, "cannot make the folder '%s' private", path);
        fd = openat(dir, name, flags);
    }
    if (fd < 0 && last && (errno == ELOOP || errno == ENOTDIR))
        return err_set(e, ERR_PERM, "cannot use '%s': it is not a real folder", path);
    if (fd < 0)
        return err_sys(e, 0, "cannot open the folder '%s'", path);
    return fd;
}

int fs_mkdir_private(const char *path, struct err *e)
{
    char *parts = xstrdup(path), *at = parts;
    int dir = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int rc = dir < 0 ? err_sys(e, 0, "cannot open the folder above '%s'", path) : 0;

    while (rc == 0) {
        at += strspn(at, "/");
        size_t n = strcspn(at, "/");
        if (n == 0)
            break;
        bool last = at[n + strspn(at + n, "/")] == '\0';
        char *next = at + n + (at[n] != '\0');
        at[n] = '\0';
        int fd = enter(dir, at, last, path, e);
        close(dir);
        dir = fd;
        rc = fd < 0 ? fd : 0;
        at = next;
    }
    if (rc == 0)
        rc = check_folder(dir, path, e);
    if (dir >= 0)
        close(dir);
    free(parts);
    return rc;
}

/* --- files without a name -------------------------------------------------------------- */

/* Some file systems want a name first. */
static int temp_in(const char *dir, struct err *e)
{
    int fd = open(dir, O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    char *name;

    if (fd < 0) {
        name = fs_join(dir, "cc-tui-XXXXXX");
        fd = mkostemp(name, O_CLOEXEC);
        if (fd >= 0)
            unlink(name);
        free(name);
    }
    if (fd >= 0 && fchmod(fd, 0600) != 0) {
        close(fd);
        fd = -1;
    }
    return fd >= 0 ? fd : err_sys(e, ERR_IO, "cannot make a file in '%s'", dir);
}

int fs_temp(struct err *e)
{
    struct err why = {0};
    char *cache = fs_place(FS_CACHE, &why);
    const char *tmp = absolute_env("TMPDIR");
    int fd = cache && fs_mkdir_private(cache, &why) == 0 ? temp_in(cache, &why) : -1;

    if (fd < 0 && tmp)
        fd = temp_in(tmp, &why);
    if (fd < 0)
        fd = temp_in("/tmp", &why);
    free(cache);
    if (fd < 0 && e)
        *e = why;
    return fd;
}
