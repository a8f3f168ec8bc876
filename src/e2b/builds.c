/* The calls about templates and builds: paths and bodies. */
#include "e2b_priv.h"
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { UPLOAD_MS = 6 * 3600000, UPLOAD_HEADERS_MAX = 12 };

static struct e2b_call *get(struct e2b *c, enum call_kind kind, const char *subject,
                            char *take_path, const struct e2b_call_opts *o, e2b_fn fn, void *ctx)
{
    struct e2b_call *k = call_new(c, kind, "GET", subject, fn, ctx);

    call_options(k, o);
    call_route(k, take_path);
    return k;
}

uint64_t e2b_templates(struct e2b *c, const char *team_id, const struct e2b_call_opts *o,
                       e2b_fn fn, void *ctx)
{
    char *path = team_id ? call_path("/v2/templates?limit=100&teamID=", team_id, NULL, NULL, NULL)
                         : xstrdup("/v2/templates?limit=100");
    struct e2b_call *k = get(c, CALL_TEMPLATES, NULL, path, o, fn, ctx);

    k->family = ROUTE_TEMPLATES;
    call_route(k, team_id ? call_path("/templates?teamID=", team_id, NULL, NULL, NULL)
                          : xstrdup("/templates"));
    return call_start(k);
}

uint64_t e2b_template(struct e2b *c, const char *template_id, const struct e2b_call_opts *o,
                      e2b_fn fn, void *ctx)
{
    return call_start(get(c, CALL_TEMPLATE, template_id,
                          call_path("/templates/", template_id, "?limit=100", NULL, NULL), o, fn,
                          ctx));
}

uint64_t e2b_template_alias(struct e2b *c, const char *alias, const struct e2b_call_opts *o,
                            e2b_fn fn, void *ctx)
{
    return call_start(get(c, CALL_ALIAS, alias,
                          call_path("/templates/aliases/", alias, NULL, NULL, NULL), o, fn, ctx));
}

uint64_t e2b_template_delete(struct e2b *c, const char *template_id,
                             const struct e2b_call_opts *o, e2b_fn fn, void *ctx)
{
    struct e2b_call *k = call_new(c, CALL_TEMPLATE_DELETE, "DELETE", template_id, fn, ctx);

    call_options(k, o);
    call_route(k, call_path("/templates/", template_id, NULL, NULL, NULL));
    return call_start(k);
}

/* --- tags --------------------------------------------------------------------------- */

uint64_t e2b_tags(struct e2b *c, const char *template_id, const struct e2b_call_opts *o,
                  e2b_fn fn, void *ctx)
{
    return call_start(get(c, CALL_TAGS, template_id,
                          call_path("/templates/", template_id, "/tags", NULL, NULL), o, fn, ctx));
}

static void put_strings(struct jw *w, const char *name, const char *const *v)
{
    jw_arr(w, name);
    for (; v && *v; v++)
        jw_str(w, NULL, *v);
    jw_end(w);
}

static struct e2b_call *tag_call(struct e2b *c, enum call_kind kind, const char *method,
                                 const char *member, const char *name, const char *const *tags,
                                 e2b_fn fn, void *ctx)
{
    struct e2b_call *k = call_new(c, kind, method, name, fn, ctx);
    struct jw w;

    jw_init(&w, &k->body);
    jw_obj(&w, NULL);
    jw_str(&w, member, name);
    put_strings(&w, "tags", tags);
    jw_end(&w);
    call_route(k, xstrdup("/templates/tags"));
    return k;
}

uint64_t e2b_tag_add(struct e2b *c, const char *target, const char *const *tags, e2b_fn fn,
                     void *ctx)
{
    return call_start(tag_call(c, CALL_TAG_ADD, "POST", "target", target, tags, fn, ctx));
}

uint64_t e2b_tag_delete(struct e2b *c, const char *name, const char *const *tags,
                        const struct e2b_call_opts *o, e2b_fn fn, void *ctx)
{
    struct e2b_call *k = tag_call(c, CALL_TAG_DELETE, "DELETE", "name", name, tags, fn, ctx);

    call_options(k, o);
    k->keep_body = true; /* it may be tried again */
    return call_start(k);
}

/* --- making one --------------------------------------------------------------------- */

uint64_t e2b_build_new(struct e2b *c, const struct e2b_build_new *q, e2b_fn fn, void *ctx)
{
    struct e2b_call *k = call_new(c, CALL_BUILD_NEW, "POST", q->name, fn, ctx);
    struct jw w;

    jw_init(&w, &k->body);
    jw_obj(&w, NULL);
    jw_str(&w, "name", q->name);
    if (q->tags && *q->tags)
        put_strings(&w, "tags", q->tags);
    if (q->cpu_count > 0)
        jw_i64(&w, "cpuCount", q->cpu_count);
    if (q->memory_mb > 0)
        jw_i64(&w, "memoryMB", q->memory_mb);
    if (q->min_free_disk_mb > 0)
        jw_i64(&w, "minFreeDiskMb", q->min_free_disk_mb);
    jw_end(&w);
    call_route(k, xstrdup("/v3/templates"));
    return call_start(k);
}

uint64_t e2b_build_file(struct e2b *c, const char *template_id, const char *hash,
                        const struct e2b_call_opts *o, e2b_fn fn, void *ctx)
{
    return call_start(get(c, CALL_FILE, template_id,
                          call_path("/templates/", template_id, "/files/", hash, NULL), o, fn,
                          ctx));
}

static bool header_name_ok(const char *s)
{
    for (const char *p = s; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '-' && *p != '_')
            return false;
    return *s && !str_eq_nocase(s, "Host") && !str_eq_nocase(s, "Content-Length") &&
           !str_eq_nocase(s, "Transfer-Encoding");
}

/* The address comes from outside: an API out there has no business with this machine. */
static void check_upload(const struct e2b_call *k, struct err *e)
{
    bool here = false, api_here = false;
    size_t n = 0;

    net_url_check(k->e2b->account.api_url, &api_here, NULL);
    if (!k->url || net_url_check(k->url, &here, e)) {
        err_set(e, ERR_PERM, "cannot upload: the service names no https address for it");
    } else if (here && !api_here) {
        err_set(e, ERR_PERM, "cannot upload: the service names an address on this machine for it");
    } else {
        for (const struct kv *h = k->got.file.headers; h && h->k; h++, n++)
            if (!header_name_ok(h->k))
                err_set(e, ERR_PERM, "cannot upload: the service asks for the odd header \"%.60s\"",
                        h->k);
        if (n > UPLOAD_HEADERS_MAX)
            err_set(e, ERR_PERM, "cannot upload: the service asks for %zu headers", n);
    }
}

/* Read where it stands: the place in the file is nobody else's. */
static size_t read_archive(void *ctx, char *dst, size_t room)
{
    struct e2b_call *k = ctx;
    ssize_t n;

    do
        n = pread(k->fd, dst, room, (off_t)k->fd_at);
    while (n < 0 && errno == EINTR);
    k->fd_at += n > 0 ? (uint64_t)n : 0;
    return n > 0 ? (size_t)n : 0;
}

uint64_t e2b_upload(struct e2b *c, const struct e2b_file *f, int fd, uint64_t len, e2b_fn fn,
                    void *ctx)
{
    struct e2b_call *k = call_new(c, CALL_UPLOAD, "PUT", NULL, fn, ctx);

    k->url = xstrdup(f->url);
    k->got.file.headers = kv_dup(f->headers);
    k->total_ms = UPLOAD_MS;
    k->read_body = read_archive;
    k->fd = fd;
    k->fd_len = len;
    check_upload(k, &k->refusal);
    return k->refusal.code ? call_refuse(k) : call_start(k);
}

int64_t e2b_sent(struct e2b *c, uint64_t call)
{
    const struct e2b_call *k = map_get_id(c->calls, call);

    return k && k->request ? net_sent(c->net, k->request) : 0;
}

static void put_step(struct jw *w, const struct e2b_step *s)
{
    jw_obj(w, NULL);
    jw_str(w, "type", s->type);
    put_strings(w, "args", s->args);
    jw_bool(w, "force", s->force);
    if (s->files_hash)
        jw_str(w, "filesHash", s->files_hash);
    jw_end(w);
}

static void put_registry(struct jw *w, const struct e2b_build_start *q)
{
    if (!q->user || !q->password)
        return;
    jw_obj(w, "fromImageRegistry");
    jw_str(w, "type", "registry");
    jw_str(w, "username", q->user);
    jw_str(w, "password", secret_value(q->password));
    jw_end(w);
}

/* Bytes for the whole body at once: growing would leave the password behind. */
static size_t start_room(const struct e2b_build_start *q)
{
    size_t n = 1024;

    n += 6 * (strlen(q->from_image ? q->from_image : "") + strlen(q->user ? q->user : "") +
              (q->password ? secret_len(q->password) : 0));
    n += 6 * (strlen(q->from_template ? q->from_template : "") +
              strlen(q->start_cmd ? q->start_cmd : "") + strlen(q->ready_cmd ? q->ready_cmd : ""));
    for (size_t i = 0; i < q->n_steps; i++) {
        n += 64 + 6 * strlen(q->steps[i].type);
        n += q->steps[i].files_hash ? 32 + 6 * strlen(q->steps[i].files_hash) : 0;
        for (const char *const *a = q->steps[i].args; a && *a; a++)
            n += 4 + 6 * strlen(*a);
    }
    return n;
}

uint64_t e2b_build_start(struct e2b *c, const char *template_id, const char *build_id,
                         const struct e2b_build_start *q, e2b_fn fn, void *ctx)
{
    struct e2b_call *k = call_new(c, CALL_BUILD_START, "POST", template_id, fn, ctx);
    struct jw w;

    buf_reserve(&k->body, start_room(q));
    jw_init(&w, &k->body);
    jw_obj(&w, NULL);
    if (q->from_image)
        jw_str(&w, "fromImage", q->from_image);
    if (q->from_template)
        jw_str(&w, "fromTemplate", q->from_template);
    put_registry(&w, q);
    if (q->start_cmd)
        jw_str(&w, "startCmd", q->start_cmd);
    if (q->ready_cmd)
        jw_str(&w, "readyCmd", q->ready_cmd);
    jw_bool(&w, "force", q->force);
    jw_arr(&w, "steps");
    for (size_t i = 0; i < q->n_steps; i++)
        put_step(&w, &q->steps[i]);
    jw_end(&w);
    jw_end(&w);
    call_route(k, call_path("/v2/templates/", template_id, "/builds/", build_id, NULL));
    return call_start(k);
}

/* --- following it ------------------------------------------------------------------- */

uint64_t e2b_build_status(struct e2b *c, const char *template_id, const char *build_id,
                          int64_t offset, const struct e2b_call_opts *o, e2b_fn fn, void *ctx)
{
    char *tail = xasprintf("/status?logsOffset=%lld", (long long)(offset > 0 ? offset : 0));
    struct e2b_call *k =
        get(c, CALL_BUILD_STATUS, build_id,
            call_path("/templates/", template_id, "/builds/", build_id, tail), o, fn, ctx);

    free(tail);
    return call_start(k);
}

uint64_t e2b_build_logs(struct e2b *c, const char *template_id, const char *build_id,
                        const struct e2b_log_query *q, const struct e2b_call_opts *o, e2b_fn fn,
                        void *ctx)
{
    struct buf b = BUF_INIT;
    struct e2b_call *k;

    buf_addf(&b, "/logs?direction=%s", q->backward ? "backward" : "forward");
    if (q->from_ms > 0)
        buf_addf(&b, "&cursor=%lld", (long long)q->from_ms);
    if (q->limit > 0)
        buf_addf(&b, "&limit=%d", q->limit > 100 ? 100 : q->limit);
    if (q->level) {
        buf_adds(&b, "&level=");
        buf_add_urlenc(&b, q->level, strlen(q->level));
    }
    k = get(c, CALL_BUILD_LOGS, build_id,
            call_path("/templates/", template_id, "/builds/", build_id, buf_str(&b)), o, fn, ctx);
    buf_release(&b);
    return call_start(k);
}
