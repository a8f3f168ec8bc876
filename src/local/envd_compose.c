/* POST /files/compose: several files become one, and go. */
#include "envd.h"
#include "envd_job.h"
#include <cct/local/fs_tree.h>
#include <cct/util/arr.h>
#include <cct/util/buf.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct compose {
    struct envd *e;
    struct http_req *req;
    const char *user; /* while it is prepared */
    ARR(char *) from;
    char *to;
};

static void compose_free(struct compose *c)
{
    for (size_t i = 0; i < c->from.n; i++)
        free(c->from.v[i]);
    ARR_RELEASE(&c->from);
    free(c->to);
    free(c);
}

static void work(struct envd *e, void *arg, struct job_result *r)
{
    const struct compose *c = arg;
    const char *bad = c->to;
    r->err = fs_tree_join(&e->files, (const char *const *)c->from.v, c->from.n, c->to, &bad);
    str_copy(r->text, sizeof(r->text), bad);
}

static void done(void *arg, const struct job_result *r)
{
    struct compose *c = arg;
    struct buf b = BUF_INIT;
    struct jw w;
    if (r->err != 0) {
        envd_reply_error(c->req, envd_fs_status(r->err), "cannot compose '%.1000s': %s",
                         r->text[0] != '\0' ? r->text : c->to, envd_fs_reason(r->err));
    } else {
        jw_init(&w, &b);
        jw_obj(&w, NULL);
        jw_str(&w, "path", c->to);
        jw_str(&w, "name", strrchr(c->to, '/') + 1);
        jw_str(&w, "type", "file");
        jw_end(&w);
        envd_reply_json(c->req, 200, &b);
    }
    compose_free(c);
}

/* One source: it must be there and a file. The status of the refusal, or 0. */
static int add_source(struct compose *c, const char *asked, char why[1200])
{
    struct stat st;
    char *path = envd_fs_path_of(c->e, c->user, asked);
    if (path == NULL) {
        snprintf(why, 1200, "source_paths holds something that is no path");
        return 400;
    }
    *ARR_PUSH(&c->from) = path;
    if (str_eq(path, c->to)) {
        snprintf(why, 1200, "source path '%.1000s' is the destination as well", asked);
        return 400;
    }
    if (fs_root_stat(&c->e->files, path, &st) != 0) {
        int err = envd_fs_looked(errno);
        snprintf(why, 1200, "source file '%.1000s': %s", asked, envd_fs_reason(err));
        return envd_fs_status(err);
    }
    snprintf(why, 1200, "source path is not a regular file: '%.1000s'", asked);
    return S_ISREG(st.st_mode) ? 0 : 400;
}

/* Everything that can be known before a byte is written. */
static int prepare(struct compose *c, const struct cJSON *in, char why[1200])
{
    const struct cJSON *from = json_get(in, "source_paths");
    struct stat st;
    int status = 0;
    if (!json_is_array(from) || json_first(from) == NULL) {
        snprintf(why, 1200, "source_paths must not be empty");
        return 400;
    }
    c->user = json_str(in, "username", c->e->user);
    if (!envd_user_known(c->e, c->user)) {
        snprintf(why, 1200, "invalid username: '%.60s'", c->user);
        return 401;
    }
    c->to = envd_fs_path_of(c->e, c->user, json_str(in, "destination", ""));
    if (c->to == NULL) {
        snprintf(why, 1200, "destination is required");
        return 400;
    }
    if (fs_root_lstat(&c->e->files, c->to, &st) == 0 && S_ISDIR(st.st_mode)) {
        snprintf(why, 1200, "path '%.1000s' is a directory", c->to);
        return 400;
    }
    for (from = json_first(from); from != NULL && status == 0; from = json_next(from))
        status = add_source(c, json_str_of(from), why);
    if (status == 0 && fs_root_make_dirs(&c->e->files, c->to, false) != 0) {
        snprintf(why, 1200, "cannot make the folder of '%.1000s': %s", c->to,
                 envd_fs_reason(errno));
        status = envd_fs_status(errno);
    }
    return status;
}

void envd_files_compose(struct envd *e, struct http_req *req)
{
    struct err err = {0};
    char why[1200];
    struct cJSON *in = json_parse(buf_str(&req->body), req->body.len, &err);
    if (!json_is_object(in)) {
        json_free(in);
        envd_reply_error(req, 400, "invalid request body: %s", err.text);
        return;
    }
    struct compose *c = xcalloc(1, sizeof(*c));
    c->e = e;
    c->req = req;
    int status = prepare(c, in, why);
    json_free(in);
    if (status == 0) {
        envd_job(e, work, done, c);
        return;
    }
    envd_reply_error(req, status, "%s", why);
    compose_free(c);
}
