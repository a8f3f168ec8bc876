/* Builds of templates in the control API: files for COPY, start, status, logs. */
#include "ctl_priv.h"
#include <cct/local/http_srv.h>
#include <cct/local/tpl.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <stdlib.h>
#include <string.h>

#define LOGS_MAX 100
#define REASON_ENTRIES 10 /* of the failing step */

/* --- common parts ------------------------------------------------------------------ */

static struct tpl_build *take_build(struct ctl_call *c, struct tpl **t)
{
    *t = ctl_tpl_take(c);
    struct tpl_build *b = *t ? tpl_build_find(*t, c->part[1]) : NULL;
    if (*t && !b) /* the cloud says so by a 400 */
        http_reply_error(c->r, 400, "template '%s' has no build '%.80s'", (*t)->name,
                         c->part[1]);
    return b;
}

static void write_entry(struct jw *w, const struct tpl_entry *e)
{
    jw_obj(w, NULL);
    ctl_write_time(w, "timestamp", e->ms);
    jw_str(w, "level", tpl_level_name(e->level));
    jw_str(w, "message", e->message);
    if (e->step[0])
        jw_str(w, "step", e->step);
    jw_end(w);
}

/* --- start --------------------------------------------------------------------------- */

void ctl_tpl_start(struct ctl_call *c)
{
    struct tpl *t;
    struct tpl_build *b = take_build(c, &t);
    struct tpl_plan plan;
    struct err e = {0};
    if (!b)
        return;
    if (b->started) {
        http_reply_error(c->r, 400,
                         "build '%s' was started already; ask for a new one with "
                         "POST /v3/templates",
                         b->id);
        return;
    }
    if (tpl_plan_parse(&plan, c->body, &e) != 0) {
        ctl_reply_err(c->r, &e);
    } else {
        tpl_build_start(c->p->tpl, t, b, &plan);
        http_reply(c->r, 202, "", 0);
    }
    tpl_plan_release(&plan);
}

/* --- status and logs ------------------------------------------------------------------ */

/* The last entries of the step that failed. */
static void write_reason(struct jw *w, const struct tpl_build *b, const struct tpl_log *l)
{
    const char *step = b->reason_step ? b->reason_step : "";
    size_t first = l->a.n, n = 0;
    while (first > 0 && n < REASON_ENTRIES)
        n += strcmp(l->a.v[--first].step, step) == 0;
    jw_obj(w, "reason");
    jw_str(w, "message", b->reason ? b->reason : "the build failed");
    if (*step)
        jw_str(w, "step", step);
    jw_arr(w, "logEntries");
    for (size_t i = first; i < l->a.n; i++)
        if (strcmp(l->a.v[i].step, step) == 0)
            write_entry(w, &l->a.v[i]);
    jw_end(w);
    jw_end(w);
}

void ctl_tpl_status(struct ctl_call *c)
{
    struct tpl *t;
    struct tpl_build *b = take_build(c, &t);
    int64_t offset = 0, limit = LOGS_MAX;
    size_t level = TPL_DEBUG;
    if (!b || !ctl_take_number(c, "logsOffset", 0, 0, INT32_MAX, &offset) ||
        !ctl_take_number(c, "limit", LOGS_MAX, 0, LOGS_MAX, &limit) ||
        !ctl_take_word(c, "level", ctl_levels, &level))
        return;
    const struct tpl_log *l = tpl_build_log(c->p->tpl, t, b);
    const struct tpl_entry *list[LOGS_MAX];
    struct tpl_log_query q = {.min = (enum tpl_level)level,
                              .offset = (size_t)offset,
                              .limit = (size_t)limit,
                              .cursor = -1};
    size_t n = tpl_log_select(l, &q, list);
    struct buf out = BUF_INIT;
    struct jw w;
    jw_init(&w, &out);
    jw_obj(&w, NULL);
    jw_str(&w, "templateID", t->id);
    jw_str(&w, "buildID", b->id);
    jw_str(&w, "status", tpl_status_name(b->status));
    jw_arr(&w, "logs"); /* of an old generation */
    jw_end(&w);
    jw_arr(&w, "logEntries");
    for (size_t i = 0; i < n; i++)
        write_entry(&w, list[i]);
    jw_end(&w);
    if (b->status == TPL_IS_ERROR)
        write_reason(&w, b, l);
    jw_end(&w);
    ctl_reply_buf(c->r, 200, &out);
}

void ctl_tpl_logs(struct ctl_call *c)
{
    static const char *const directions[] = {"forward", "backward", NULL};
    static const char *const sources[] = {"temporary", "persistent", NULL};
    struct tpl *t;
    struct tpl_build *b = take_build(c, &t);
    int64_t limit = LOGS_MAX, cursor = -1;
    size_t level = TPL_DEBUG, direction = 0, source = 0;
    if (!b || !ctl_take_number(c, "limit", LOGS_MAX, 0, LOGS_MAX, &limit) ||
        !ctl_take_number(c, "cursor", -1, 0, INT64_MAX, &cursor) ||
        !ctl_take_word(c, "level", ctl_levels, &level) ||
        !ctl_take_word(c, "direction", directions, &direction) ||
        !ctl_take_word(c, "source", sources, &source))
        return; /* both sources are one here */
    const struct tpl_entry *list[LOGS_MAX];
    struct tpl_log_query q = {.min = (enum tpl_level)level,
                              .limit = (size_t)limit,
                              .cursor = cursor,
                              .backward = direction == 1};
    size_t n = tpl_log_select(tpl_build_log(c->p->tpl, t, b), &q, list);
    struct buf out = BUF_INIT;
    struct jw w;
    jw_init(&w, &out);
    jw_obj(&w, NULL);
    jw_arr(&w, "logs");
    for (size_t i = 0; i < n; i++)
        write_entry(&w, list[i]);
    jw_end(&w);
    jw_end(&w);
    ctl_reply_buf(c->r, 200, &out);
}

/* --- files for COPY --------------------------------------------------------------------- */

void ctl_tpl_files(struct ctl_call *c)
{
    struct tpl *t = ctl_tpl_take(c);
    if (!t)
        return;
    if (!tpl_hash_ok(c->part[1])) {
        http_reply_error(c->r, 400, "the hash must be 64 lower-case hex digits");
        return;
    }
    char token[TPL_TOKEN_LEN + 1];
    tpl_upload_offer(c->p->tpl, c->part[1], token);
    char *url =
        xasprintf("http://127.0.0.1:%u" CTL_UPLOADS "%s", http_srv_port(c->p->ctl), token);
    struct buf out = BUF_INIT;
    struct jw w;
    jw_init(&w, &out);
    jw_obj(&w, NULL);
    jw_bool(&w, "present", tpl_upload_is_there(c->p->tpl, c->part[1]));
    jw_str(&w, "url", url);
    jw_end(&w);
    free(url);
    ctl_reply_buf(c->r, 201, &out);
}

/* --- an upload ---------------------------------------------------------------------------- */

struct upload {
    struct http_req *r;
    struct tpl_inflow *f;
};

static void upload_fail(struct upload *u, const struct err *e)
{
    http_reply_error(u->r, e->code == ERR_FULL ? 507 : 500, "the upload was not kept: %s",
                     e->text);
    free(u);
}

static void upload_piece(void *arg, const char *p, size_t len)
{
    struct upload *u = arg;
    struct err e = {0};
    if (tpl_inflow_add(u->f, p, len, &e) == 0)
        return;
    tpl_inflow_drop(u->f);
    upload_fail(u, &e);
}

static void upload_end(void *arg)
{
    struct upload *u = arg;
    struct err e = {0};
    if (tpl_inflow_keep(u->f, &e) != 0) {
        upload_fail(u, &e);
        return;
    }
    http_reply(u->r, 200, "{}", 2);
    free(u);
}

static void upload_cut(void *arg)
{
    struct upload *u = arg;
    tpl_inflow_drop(u->f);
    free(u);
}

static const struct http_body_ops upload_ops = {upload_piece, upload_end, upload_cut};

bool ctl_tpl_upload(struct provider *p, struct http_req *r)
{
    char hash[TPL_KEY_LEN + 1];
    struct err e = {0};
    if (!str_starts(r->path, CTL_UPLOADS))
        return false;
    if (strcmp(r->method, "PUT") != 0) {
        http_reply_header(r, "Allow", "PUT");
        http_reply_error(r, 405, "an upload link takes PUT only");
    } else if (r->content_length < 0) {
        http_reply_error(r, 411, "an upload needs its exact Content-Length");
    } else if (r->content_length == 0) {
        http_reply_error(r, 400, "the upload is empty");
    } else if (r->content_length > TPL_UPLOAD_MAX) {
        http_reply_error(r, 413,
                         "the files of a COPY may have 1 GiB, this archive is larger; "
                         "leave files out with .dockerignore");
    } else if (!tpl_upload_take(p->tpl, r->path + strlen(CTL_UPLOADS), hash)) {
        http_reply_error(r, 404,
                         "this upload link is unknown, was used, or is older than an "
                         "hour; ask for a new one");
    } else {
        struct upload *u = xcalloc(1, sizeof(*u));
        u->r = r;
        u->f = tpl_inflow_new(p->tpl, hash, &e);
        if (u->f)
            http_body_take(r, &upload_ops, u);
        else
            upload_fail(u, &e);
    }
    return true;
}
