/* filesystem.Filesystem: Stat, ListDir, MakeDir, Move, Remove. */
#include "envd.h"
#include "envd_job.h"
#include <cct/local/fs_tree.h>
#include <cct/util/arr.h>
#include <cct/util/buf.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIST_MAX 100000 /* entries of one answer */
#define DEPTH_MAX 64    /* of a walk, whatever was asked for */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

static void reply_error(struct http_req *req, const char *what, const char *path, int err)
{
    envd_rpc_error(req, envd_fs_code(err), "%s '%.1000s': %s", what, path, envd_fs_reason(err));
}

static void reply_empty_message(struct http_req *req)
{
    struct buf b = BUF_INIT;
    buf_adds(&b, "{}");
    envd_reply_json(req, 200, &b);
}

/* {"entry":EntryInfo} of what `path` is now. */
static void reply_entry(struct envd *e, struct http_req *req, const char *path)
{
    struct buf b = BUF_INIT;
    struct jw w;
    buf_adds(&b, "{\"entry\":");
    jw_init(&w, &b);
    if (envd_fs_entry(e, &w, base_name(path), path) != 0) {
        buf_release(&b);
        reply_error(req, "cannot stat", path, envd_fs_looked(errno));
        return;
    }
    buf_addc(&b, '}');
    envd_reply_json(req, 200, &b);
}

/* --- ListDir -------------------------------------------------------------- */

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

static int names_read(const struct envd *e, const char *path, int flags, struct names *out)
{
    int fd = fs_root_open(&e->files, path, O_RDONLY | O_DIRECTORY | flags, 0);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *de;
    if (d == NULL) {
        int saved = errno;
        if (fd >= 0)
            close(fd);
        errno = saved;
        return -1;
    }
    while (out->a.n < LIST_MAX && (de = readdir(d)) != NULL)
        if (!str_eq(de->d_name, ".") && !str_eq(de->d_name, ".."))
            *ARR_PUSH(&out->a) = xstrdup(de->d_name);
    closedir(d);
    if (out->a.n > 0)
        qsort(out->a.v, out->a.n, sizeof(char *), by_name);
    return 0;
}

/* Entries below `path`, a folder right before what is in it. Links are listed,
 * not followed; only the one that was asked for may be one. */
static int list_walk(struct envd *e, struct jw *w, const char *path, int flags, int64_t depth,
                     size_t *n)
{
    struct names names = {ARR_INIT};
    if (names_read(e, path, flags, &names) != 0)
        return -1;
    for (size_t i = 0; i < names.a.n && *n < LIST_MAX; i++) {
        const char *name = names.a.v[i];
        char *child = fs_join(str_eq(path, "/") ? "" : path, name);
        struct stat st;
        (*n)++;
        /* one that vanished meanwhile is simply not listed */
        if (envd_fs_entry(e, w, name, child) == 0 && depth > 1 &&
            fs_root_lstat(&e->files, child, &st) == 0 && S_ISDIR(st.st_mode) &&
            list_walk(e, w, child, O_NOFOLLOW, depth - 1, n) != 0)
            envd_log(e, "cannot list a folder: %s", strerror(errno));
        free(child);
    }
    names_free(&names);
    return 0;
}

static void do_list(struct envd *e, struct http_req *req, const struct cJSON *in,
                    const char *path)
{
    struct buf b = BUF_INIT;
    struct jw w;
    size_t n = 0;
    int64_t depth = json_i64(in, "depth", 1);
    depth = depth < 1 ? 1 : depth > DEPTH_MAX ? DEPTH_MAX : depth;
    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_arr(&w, "entries");
    if (list_walk(e, &w, path, 0, depth, &n) != 0) {
        int err = envd_fs_looked(errno);
        buf_release(&b);
        if (err == ENOTDIR)
            envd_rpc_error(req, CONNECT_INVALID_ARGUMENT, "path is not a directory: '%.1000s'",
                           path);
        else
            reply_error(req, "cannot list", path, err);
        return;
    }
    jw_end(&w);
    jw_end(&w);
    envd_reply_json(req, 200, &b);
}

/* --- MakeDir -------------------------------------------------------------- */

static void do_mkdir(struct envd *e, struct http_req *req, const char *path)
{
    struct stat st;
    if (fs_root_stat(&e->files, path, &st) == 0) {
        envd_rpc_error(req,
                       S_ISDIR(st.st_mode) ? CONNECT_ALREADY_EXISTS : CONNECT_INVALID_ARGUMENT,
                       S_ISDIR(st.st_mode) ? "directory already exists: '%.1000s'"
                                           : "path already exists but is no directory: "
                                             "'%.1000s'",
                       path);
        return;
    }
    if (fs_root_make_dirs(&e->files, path, true) != 0)
        reply_error(req, "cannot make the folder", path, errno);
    else
        reply_entry(e, req, path);
}

/* --- Move and Remove: may take long --------------------------------------- */

struct change {
    struct envd *e;
    struct http_req *req;
    char *path, *to; /* `to` is NULL for Remove */
};

static void change_free(struct change *c)
{
    free(c->path);
    free(c->to);
    free(c);
}

static void change_work(struct envd *e, void *arg, struct job_result *r)
{
    const struct change *c = arg;
    r->err = c->to != NULL ? fs_tree_move(&e->files, c->path, c->to)
                           : fs_tree_remove(&e->files, c->path);
}

static void change_done(void *arg, const struct job_result *r)
{
    struct change *c = arg;
    if (r->err != 0)
        reply_error(c->req, c->to != NULL ? "cannot move" : "cannot remove", c->path, r->err);
    else if (c->to != NULL)
        reply_entry(c->e, c->req, c->to);
    else
        reply_empty_message(c->req);
    change_free(c);
}

static struct change *change_new(struct envd *e, struct http_req *req, const char *path,
                                 const char *to)
{
    struct change *c = xcalloc(1, sizeof(*c));
    c->e = e;
    c->req = req;
    c->path = xstrdup(path);
    c->to = xstrdup(to);
    return c;
}

static void move(struct envd *e, struct http_req *req, const char *from, const char *to)
{
    struct stat st;
    if (fs_root_lstat(&e->files, from, &st) != 0) {
        reply_error(req, "cannot move", from, envd_fs_looked(errno));
        return;
    }
    if (fs_root_make_dirs(&e->files, to, false) != 0) {
        reply_error(req, "cannot make the folder of", to, errno);
        return;
    }
    int err = fs_tree_rename(&e->files, from, to);
    if (err == EAGAIN)
        envd_job(e, change_work, change_done, change_new(e, req, from, to));
    else if (err != 0)
        reply_error(req, "cannot move", from, err);
    else
        reply_entry(e, req, to);
}

static void do_move(struct envd *e, struct http_req *req, const char *user,
                    const struct cJSON *in)
{
    char *from = envd_fs_path_of(e, user, json_str(in, "source", NULL));
    char *to = envd_fs_path_of(e, user, json_str(in, "destination", NULL));
    if (from == NULL || to == NULL)
        envd_rpc_error(req, CONNECT_INVALID_ARGUMENT,
                       "source or destination is missing or names another user's home");
    else
        move(e, req, from, to);
    free(from);
    free(to);
}

/* A file goes at once; a folder may hold very many. */
static void do_remove(struct envd *e, struct http_req *req, const char *path)
{
    struct stat st;
    if (fs_root_lstat(&e->files, path, &st) == 0 && S_ISDIR(st.st_mode)) {
        envd_job(e, change_work, change_done, change_new(e, req, path, NULL));
        return;
    }
    int err = fs_tree_remove(&e->files, path);
    if (err != 0)
        reply_error(req, "cannot remove", path, err);
    else
        reply_empty_message(req); /* what is not there is removed already, as in Go */
}

/* -------------------------------------------------------------------------- */

void envd_fs_rpc(struct envd *e, struct http_req *req, const char *method,
                 const struct cJSON *in)
{
    char user[64];
    if (!envd_user(e, req, user, sizeof(user))) {
        envd_rpc_error(req, CONNECT_UNAUTHENTICATED, "invalid username: '%.60s'", user);
        return;
    }
    if (str_eq(method, "Move")) {
        do_move(e, req, user, in);
        return;
    }
    if (!str_eq(method, "Stat") && !str_eq(method, "ListDir") && !str_eq(method, "MakeDir") &&
        !str_eq(method, "Remove")) {
        envd_watch_rpc(e, req, user, method, in);
        return;
    }
    bool harmless = !str_eq(method, "Remove");
    const char *asked = json_str(in, "path", "");
    char *path = envd_fs_path_of(e, user, asked[0] == '\0' && harmless ? e->workdir : asked);
    if (path == NULL)
        envd_rpc_error(req, CONNECT_INVALID_ARGUMENT,
                       "the request names no path, or another user's home");
    else if (str_eq(method, "Stat"))
        reply_entry(e, req, path);
    else if (str_eq(method, "ListDir"))
        do_list(e, req, in, path);
    else if (str_eq(method, "MakeDir"))
        do_mkdir(e, req, path);
    else
        do_remove(e, req, path);
    free(path);
}
