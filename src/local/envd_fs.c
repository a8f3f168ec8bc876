/* filesystem.Filesystem: Stat, ListDir, MakeDir, Move, Remove. */
#include "envd.h"
#include <cct/util/arr.h>
#include <cct/util/buf.h>
#include <cct/util/clock.h>
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

#define LIST_MAX 100000 /* entries of one answer */
#define DEPTH_MAX 64    /* of a walk, whatever was asked for */

/* "drwxr-xr-x" as Go's FileMode prints the common cases. */
static void permissions(char dst[11], mode_t m)
{
    static const char bits[] = "rwxrwxrwx";
    dst[0] = S_ISDIR(m) ? 'd' : S_ISLNK(m) ? 'L' : S_ISFIFO(m) ? 'p' : S_ISSOCK(m) ? 'S' : '-';
    for (int i = 0; i < 9; i++)
        dst[i + 1] = m & (mode_t)(0400 >> i) ? bits[i] : '-';
    dst[10] = '\0';
}

static void owner(char *dst, size_t size, const struct envd *e, uid_t id)
{
    if (id == getuid())
        str_copy(dst, size, e->user);
    else if (id == 0)
        str_copy(dst, size, "root");
    else
        snprintf(dst, size, "%u", id);
}

int envd_fs_entry(struct envd *e, struct jw *w, const char *name, const char *path)
{
    struct stat st, target;
    char text[64], link[4096];
    if (lstat(path, &st) != 0)
        return -1;
    bool is_link = S_ISLNK(st.st_mode);
    ssize_t n = is_link ? readlink(path, link, sizeof(link) - 1) : -1;
    /* a symlink is shown with its target's kind and size, like the real one */
    bool resolved = is_link && stat(path, &target) == 0;
    const struct stat *of = resolved ? &target : &st;
    jw_obj(w, NULL);
    jw_str(w, "name", name);
    jw_str(w, "type",
           S_ISDIR(of->st_mode)   ? "FILE_TYPE_DIRECTORY"
           : S_ISLNK(of->st_mode) ? "FILE_TYPE_SYMLINK"
                                  : "FILE_TYPE_FILE");
    jw_str(w, "path", path);
    snprintf(text, sizeof(text), "%lld", (long long)of->st_size);
    jw_str(w, "size", text);
    jw_i64(w, "mode", of->st_mode & 0777);
    permissions(text, st.st_mode);
    jw_str(w, "permissions", text);
    owner(text, sizeof(text), e, st.st_uid);
    jw_str(w, "owner", text);
    jw_str(w, "group", text);
    clock_format_rfc3339(text, sizeof(text),
                         of->st_mtim.tv_sec * 1000 + of->st_mtim.tv_nsec / 1000000);
    jw_str(w, "modifiedTime", text);
    if (n >= 0) {
        link[n] = '\0';
        jw_str(w, "symlinkTarget", link);
    }
    jw_end(w);
    return 0;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

static void reply_errno(struct http_req *req, const char *what, const char *path)
{
    int err = errno;
    envd_rpc_error(req, connect_code_from_errno(err), "%s '%.1000s': %s", what, path,
                   strerror(err));
}

/* {"entry":EntryInfo} of what `path` is now. */
static void reply_entry(struct envd *e, struct http_req *req, const char *path)
{
    struct buf b = BUF_INIT, entry = BUF_INIT;
    struct jw w;
    jw_init(&w, &entry);
    if (envd_fs_entry(e, &w, base_name(path), path) != 0) {
        reply_errno(req, "cannot stat", path);
    } else {
        buf_adds(&b, "{\"entry\":");
        buf_add(&b, entry.p, entry.len);
        buf_addc(&b, '}');
        envd_reply_json(req, 200, &b);
    }
    buf_release(&entry);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

struct names {
    ARR(char *) a;
};

static void names_free(struct names *n)
{
    for (size_t i = 0; i < n->a.n; i++)
        free(n->a.v[i]);
    ARR_RELEASE(&n->a);
}

static int names_read(const char *path, struct names *out)
{
    DIR *d = opendir(path);
    struct dirent *de;
    if (d == NULL)
        return -1;
    while (out->a.n < LIST_MAX && (de = readdir(d)) != NULL)
        if (!str_eq(de->d_name, ".") && !str_eq(de->d_name, ".."))
            *ARR_PUSH(&out->a) = xstrdup(de->d_name);
    closedir(d);
    if (out->a.n > 0)
        qsort(out->a.v, out->a.n, sizeof(char *), by_name);
    return 0;
}

/* Entries below `path`, a folder right before what is in it. Links are listed,
 * not followed. */
static int list_walk(struct envd *e, struct jw *w, const char *path, int64_t depth, size_t *n)
{
    struct names names = {ARR_INIT};
    if (names_read(path, &names) != 0)
        return -1;
    for (size_t i = 0; i < names.a.n && *n < LIST_MAX; i++) {
        const char *name = names.a.v[i];
        char *child = fs_join(str_eq(path, "/") ? "" : path, name);
        struct stat st;
        (*n)++;
        /* one that vanished meanwhile is simply not listed */
        if (envd_fs_entry(e, w, name, child) == 0 && depth > 1 && lstat(child, &st) == 0 &&
            S_ISDIR(st.st_mode) && list_walk(e, w, child, depth - 1, n) != 0)
            envd_log(e, "cannot list a folder: %s", strerror(errno));
        free(child);
    }
    names_free(&names);
    return 0;
}

static void do_list(struct envd *e, struct http_req *req, const struct cJSON *in,
                    const char *path)
{
    struct stat st;
    struct buf b = BUF_INIT;
    struct jw w;
    size_t n = 0;
    int64_t depth = json_i64(in, "depth", 1);
    depth = depth < 1 ? 1 : depth > DEPTH_MAX ? DEPTH_MAX : depth;
    if (stat(path, &st) != 0) {
        reply_errno(req, "cannot list", path);
        return;
    }
    if (!S_ISDIR(st.st_mode)) {
        envd_rpc_error(req, CONNECT_INVALID_ARGUMENT, "path is not a directory: '%.1000s'",
                       path);
        return;
    }
    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_arr(&w, "entries");
    if (list_walk(e, &w, path, depth, &n) != 0) {
        buf_release(&b);
        reply_errno(req, "cannot list", path);
        return;
    }
    jw_end(&w);
    jw_end(&w);
    envd_reply_json(req, 200, &b);
}

static void do_mkdir(struct envd *e, struct http_req *req, const char *path)
{
    struct stat st;
    if (stat(path, &st) == 0) {
        envd_rpc_error(req,
                       S_ISDIR(st.st_mode) ? CONNECT_ALREADY_EXISTS : CONNECT_INVALID_ARGUMENT,
                       S_ISDIR(st.st_mode) ? "directory already exists: '%.1000s'"
                                           : "path is no directory: '%.1000s'",
                       path);
        return;
    }
    if (envd_fs_make_parents(path) != 0 || mkdir(path, 0755) != 0)
        reply_errno(req, "cannot make the folder", path);
    else
        reply_entry(e, req, path);
}

static void do_move(struct envd *e, struct http_req *req, const struct cJSON *in)
{
    char *from = envd_fs_path(e, json_str(in, "source", NULL));
    char *to = envd_fs_path(e, json_str(in, "destination", NULL));
    if (from == NULL || to == NULL)
        envd_rpc_error(req, CONNECT_INVALID_ARGUMENT, "source or destination is missing");
    else if (envd_fs_make_parents(to) != 0)
        reply_errno(req, "cannot make the folder of", to);
    else if (rename(from, to) != 0)
        reply_errno(req, "cannot move", from);
    else
        reply_entry(e, req, to);
    free(from);
    free(to);
}

/* Like rm -r; by descriptors, so that a folder swapped for a link meanwhile is
 * not followed. */
static int remove_at(int dir, const char *name, int depth)
{
    if (unlinkat(dir, name, 0) == 0)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -1;
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    DIR *d = fdopendir(fd);
    struct dirent *de;
    int rc = 0;
    if (d == NULL) {
        close(fd);
        return -1;
    }
    while (rc == 0 && (de = readdir(d)) != NULL) {
        if (str_eq(de->d_name, ".") || str_eq(de->d_name, ".."))
            continue;
        if (depth == 0) {
            errno = ELOOP;
            rc = -1;
        } else {
            rc = remove_at(fd, de->d_name, depth - 1);
        }
    }
    int saved = errno;
    closedir(d);
    errno = saved;
    return rc != 0 ? rc : unlinkat(dir, name, AT_REMOVEDIR);
}

static void do_remove(struct http_req *req, const char *path)
{
    struct buf b = BUF_INIT;
    if (remove_at(AT_FDCWD, path, 512) != 0 && errno != ENOENT) {
        reply_errno(req, "cannot remove", path);
        return;
    }
    buf_adds(&b, "{}"); /* removing what is not there is no error, as in Go */
    envd_reply_json(req, 200, &b);
}

void envd_fs_rpc(struct envd *e, struct http_req *req, const char *method,
                 const struct cJSON *in)
{
    char user[64];
    if (!envd_user(e, req, user, sizeof(user))) {
        envd_rpc_error(req, CONNECT_UNAUTHENTICATED, "invalid username: '%.60s'", user);
        return;
    }
    if (str_eq(method, "Move")) {
        do_move(e, req, in);
        return;
    }
    bool reads = str_eq(method, "Stat") || str_eq(method, "ListDir");
    char *path = envd_fs_path(e, json_str(in, "path", reads ? "~" : NULL));
    if (path == NULL)
        envd_rpc_error(req, CONNECT_INVALID_ARGUMENT, "the request names no path");
    else if (str_eq(method, "Stat"))
        reply_entry(e, req, path);
    else if (str_eq(method, "ListDir"))
        do_list(e, req, in, path);
    else if (str_eq(method, "MakeDir"))
        do_mkdir(e, req, path);
    else if (str_eq(method, "Remove"))
        do_remove(req, path);
    else
        envd_rpc_error(req, CONNECT_UNIMPLEMENTED,
                       "watching a folder is not possible here; list it again instead");
    free(path);
}
