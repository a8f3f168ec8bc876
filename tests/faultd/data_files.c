/* filesystem.Filesystem, and how names are looked up. Names are looked up inside the
 * jail's root, symbolic links included, so none leads out of it. */
#include "data.h"
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DEPTH_MAX = 32 };

/* A name taken apart: the folder it lies in, opened, and its last part. */
struct place {
    int dir;
    char *path, *base; /* path: whole, absolute */
};

int files_open(const struct data *d, const char *path, int flags)
{
    struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC), .resolve = RESOLVE_IN_ROOT};

    if (flags & O_CREAT)
        how.mode = 0644;
    return (int)syscall(SYS_openat2, jail_root(d->jail), path, &how, sizeof(how));
}

/* ---- names ---- */

char *files_path(const char *path)
{
    struct buf b = BUF_INIT;
    char *whole, *at, *save = NULL;

    if (path[0] == '~' && (path[1] == '/' || !path[1]))
        path += 1 + (path[1] == '/');
    else if (path[0] == '/')
        buf_addc(&b, '/');
    whole = b.len ? xstrdup(path) : xasprintf("/home/user/%s", path);
    buf_clear(&b);
    for (at = strtok_r(whole, "/", &save); at; at = strtok_r(NULL, "/", &save)) {
        if (str_eq(at, "."))
            continue;
        if (!str_eq(at, "..")) {
            buf_addf(&b, "/%s", at);
            continue;
        }
        while (b.len && b.p[--b.len] != '/')
            ;
        buf_truncate(&b, b.len);
    }
    free(whole);
    if (!b.len)
        buf_addc(&b, '/');
    return buf_detach(&b, NULL);
}

void files_parents(const struct data *d, const char *path)
{
    for (const char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        char *dir = xstrndup(path, (size_t)(at - path));
        char *slash = strrchr(dir, '/');
        int fd;
        *slash = '\0';
        fd = files_open(d, *dir ? dir : "/", O_PATH | O_DIRECTORY);
        if (fd >= 0) {
            mkdirat(fd, slash + 1, 0755); /* what is there already is fine */
            close(fd);
        }
        free(dir);
    }
}

static bool place_open(struct place *p, const struct data *d, const char *name, bool parents)
{
    char *slash;

    p->path = files_path(name);
    slash = strrchr(p->path, '/');
    p->base = slash + 1;
    if (parents)
        files_parents(d, p->path);
    *slash = '\0';
    p->dir = files_open(d, *p->path ? p->path : "/", O_PATH | O_DIRECTORY);
    *slash = '/';
    return p->dir >= 0;
}

static void place_close(struct place *p)
{
    int keep = errno;

    if (p->dir >= 0)
        close(p->dir);
    free(p->path);
    errno = keep;
}

/* ---- entries ---- */

static void permissions(char *dst, mode_t m)
{
    static const char set[] = "rwxrwxrwx";

    dst[0] = S_ISDIR(m) ? 'd' : S_ISLNK(m) ? 'L' : '-';
    for (int i = 0; i < 9; i++)
        dst[i + 1] = m & (mode_t)(0400 >> i) ? set[i] : '-';
    dst[10] = '\0';
}

static void put_entry(struct jw *w, const char *name, const char *path, const struct stat *st,
                      int dir, const char *base)
{
    char text[64], target[4096];
    ssize_t n;

    jw_obj(w, name);
    jw_str(w, "name", *base ? base : "/");
    jw_str(w, "type",
           S_ISDIR(st->st_mode)   ? "FILE_TYPE_DIRECTORY"
           : S_ISLNK(st->st_mode) ? "FILE_TYPE_SYMLINK"
                                  : "FILE_TYPE_FILE");
    jw_str(w, "path", path);
    snprintf(text, sizeof(text), "%lld", (long long)st->st_size);
    jw_str(w, "size", text);
    jw_i64(w, "mode", st->st_mode & 07777);
    permissions(text, st->st_mode);
    jw_str(w, "permissions", text);
    jw_str(w, "owner", "user");
    jw_str(w, "group", "user");
    clock_format_rfc3339(text, sizeof(text),
                         st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000);
    jw_str(w, "modifiedTime", text);
    if (S_ISLNK(st->st_mode) && (n = readlinkat(dir, base, target, sizeof(target) - 1)) >= 0)
        jw_strn(w, "symlinkTarget", target, (size_t)n);
    jw_end(w);
}

static void answer_entry(struct exchange *x, const struct place *p)
{
    struct stat st;
    struct jw w;

    if (fstatat(p->dir, p->base, &st, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)) {
        rpc_error(x, "not_found", "'%s': %s", p->path, strerror(errno));
        return;
    }
    x->a.status = 200;
    jw_init(&w, &x->a.body);
    jw_obj(&w, NULL);
    put_entry(&w, "entry", p->path, &st, p->dir, p->base);
    jw_end(&w);
}

static void refuse(struct exchange *x, const char *path)
{
    const char *code = errno == EEXIST                     ? "already_exists"
                       : errno == ENOENT                   ? "not_found"
                       : errno == ENOTDIR                  ? "invalid_argument"
                       : errno == EROFS || errno == EACCES ? "permission_denied"
                                                           : "internal";

    rpc_error(x, code, "'%s': %s", path, strerror(errno));
}

/* ---- filesystem.Filesystem ---- */

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int no_dots(const struct dirent *e)
{
    return !str_eq(e->d_name, ".") && !str_eq(e->d_name, "..");
}

static bool put_folder(struct jw *w, const struct data *d, const char *path, int64_t depth)
{
    int fd = files_open(d, path, O_RDONLY | O_DIRECTORY);
    struct dirent **e = NULL;
    int n = fd < 0 ? -1 : scandirat(fd, ".", &e, no_dots, by_name), keep;

    for (int i = 0; i < n; i++) {
        char *sub = xasprintf("%s/%s", str_eq(path, "/") ? "" : path, e[i]->d_name);
        struct stat st;
        if (fstatat(fd, e[i]->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
            put_entry(w, NULL, sub, &st, fd, e[i]->d_name);
            if (S_ISDIR(st.st_mode) && depth > 1)
                put_folder(w, d, sub, depth - 1);
        }
        free(sub);
        free(e[i]);
    }
    keep = errno;
    free(e);
    if (fd >= 0)
        close(fd);
    errno = keep;
    return n >= 0;
}

static void list_dir(struct data *d, struct exchange *x, const char *name, int64_t depth)
{
    char *path = files_path(name);
    struct jw w;

    jw_init(&w, &x->a.body);
    jw_obj(&w, NULL);
    jw_arr(&w, "entries");
    if (put_folder(&w, d, path, depth < 1 ? 1 : depth > DEPTH_MAX ? DEPTH_MAX : depth)) {
        jw_end(&w);
        jw_end(&w);
        x->a.status = 200;
    } else {
        buf_clear(&x->a.body);
        refuse(x, path);
    }
    free(path);
}

static bool remove_tree(int dir, const char *base)
{
    struct dirent **e = NULL;
    int fd, n;

    if (unlinkat(dir, base, 0) == 0)
        return true;
    if (errno != EISDIR)
        return false;
    fd = openat(dir, base, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    n = fd < 0 ? 0 : scandirat(fd, ".", &e, no_dots, NULL);
    for (int i = 0; i < n; i++) {
        remove_tree(fd, e[i]->d_name);
        free(e[i]);
    }
    free(e);
    if (fd >= 0)
        close(fd);
    return unlinkat(dir, base, AT_REMOVEDIR) == 0;
}

static void move(struct data *d, struct exchange *x, const char *from, const char *to)
{
    struct place a, b;
    bool ok = place_open(&a, d, from, false);

    ok = place_open(&b, d, to, true) && ok;
    if (ok && renameat(a.dir, a.base, b.dir, b.base) == 0)
        answer_entry(x, &b);
    else
        refuse(x, a.path);
    place_close(&a);
    place_close(&b);
}

void files_route(struct data *d, struct exchange *x, const char *method)
{
    struct cJSON *j = rpc_message(x, false);
    const char *path = json_str(j, "path", json_str(j, "source", NULL));
    char why[256];
    struct place p;

    if (!path) {
        rpc_error(x, "invalid_argument", "a path is needed");
    } else if (!data_jail(d, why, sizeof(why))) {
        rpc_error(x, "internal", "%s", why);
    } else if (str_eq(method, "ListDir")) {
        list_dir(d, x, path, json_i64(j, "depth", 1));
    } else if (str_eq(method, "Move")) {
        move(d, x, path, json_str(j, "destination", ""));
    } else if (!str_eq(method, "Stat") && !str_eq(method, "MakeDir") &&
               !str_eq(method, "Remove")) {
        rpc_error(x, "unimplemented", "%s is not served here", method);
    } else {
        bool make = str_eq(method, "MakeDir"), ok = place_open(&p, d, path, make);
        if (make)
            ok = ok && mkdirat(p.dir, p.base, 0755) == 0;
        if (ok && str_eq(method, "Remove")) {
            if ((ok = remove_tree(p.dir, p.base)))
                rpc_answer(x, "{}");
        } else if (ok) {
            answer_entry(x, &p);
        }
        if (!ok)
            refuse(x, p.path);
        place_close(&p);
    }
    json_free(j);
}
