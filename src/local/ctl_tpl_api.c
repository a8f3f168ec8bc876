/* Templates in the control API: listed, shown, asked for, tagged, deleted. Builds are
 * in ctl_tpl_build.c. */
#include "ctl_priv.h"
#include <cct/local/http_srv.h>
#include <cct/local/init.h>
#include <cct/local/tpl.h>
#include <cct/util/map.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <stdlib.h>
#include <string.h>

#define PAGE_MAX 100
#define TAGS_MAX 64u

/* --- answers -------------------------------------------------------------------- */

static void write_full_name(struct jw *w, const struct tpl *t)
{
    char *full = xasprintf("local/%s", t->name);
    jw_arr(w, "names");
    jw_str(w, NULL, full);
    jw_end(w);
    free(full);
}

static void write_names(struct jw *w, const struct tpl *t)
{
    jw_arr(w, "aliases");
    jw_str(w, NULL, t->name);
    jw_end(w);
    write_full_name(w, t);
}

static void write_spawns(struct jw *w, const struct tpl *t)
{
    if (t->spawned_ms)
        ctl_write_time(w, "lastSpawnedAt", t->spawned_ms);
    else
        jw_null(w, "lastSpawnedAt");
    jw_i64(w, "spawnCount", t->spawns);
}

static void write_item(struct jw *w, const struct tpl *t)
{
    const struct tpl_build *last = t->builds.v[t->builds.n - 1];
    const struct tpl_build *good = tpl_build_last_good(t);
    const struct tpl_build *b = good ? good : last;
    jw_obj(w, NULL);
    jw_str(w, "templateID", t->id);
    jw_str(w, "buildID", b->id);
    jw_i64(w, "cpuCount", b->cpu);
    jw_i64(w, "memoryMB", b->mem_mb);
    jw_i64(w, "diskSizeMB", 0);
    jw_bool(w, "public", t->public);
    write_names(w, t);
    ctl_write_time(w, "createdAt", t->created_ms);
    ctl_write_time(w, "updatedAt", t->updated_ms);
    jw_null(w, "createdBy");
    write_spawns(w, t);
    jw_i64(w, "buildCount", t->n_built);
    jw_str(w, "envdVersion", INIT_ENVD_VERSION);
    jw_str(w, "buildStatus", tpl_status_name(last->status));
    jw_end(w);
}

static void write_build(struct jw *w, const struct tpl_build *b)
{
    jw_obj(w, NULL);
    jw_str(w, "buildID", b->id);
    jw_str(w, "status", tpl_status_name(b->status));
    ctl_write_time(w, "createdAt", b->created_ms);
    ctl_write_time(w, "updatedAt", b->updated_ms);
    if (b->finished_ms)
        ctl_write_time(w, "finishedAt", b->finished_ms);
    jw_i64(w, "cpuCount", b->cpu);
    jw_i64(w, "memoryMB", b->mem_mb);
    jw_i64(w, "diskSizeMB", 0);
    jw_str(w, "envdVersion", INIT_ENVD_VERSION);
    jw_end(w);
}

/* --- pages ------------------------------------------------------------------------ */

/* What a list is cut by: newest first, the id decides among equals. */
struct item {
    int64_t ms;
    const char *id;
    const void *p;
};

static int newest_first(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->ms != y->ms)
        return x->ms < y->ms ? 1 : -1;
    return strcmp(x->id, y->id);
}

struct page {
    int64_t limit, after_ms;
    char after_id[40];
};

static bool take_page(struct ctl_call *c, struct page *p)
{
    *p = (struct page){.limit = PAGE_MAX};
    if (!ctl_take_number(c, "limit", PAGE_MAX, 1, PAGE_MAX, &p->limit))
        return false;
    char *token = ctl_query_get(c->r->query, "nextToken");
    bool ok = true;
    char *sep = token ? strchr(token, '.') : NULL;
    if (token && *token) {
        if (sep)
            *sep = '\0';
        ok = sep && str_to_i64(token, 1, INT64_MAX, &p->after_ms) && sep[1] &&
             str_copy(p->after_id, sizeof(p->after_id), sep + 1);
        if (!ok)
            http_reply_error(c->r, 400, "nextToken is not one that was given out");
    }
    free(token);
    return ok;
}

/* Sort and cut; adds the header with the next cursor. First item, and *n of them. */
static struct item *cut_page(struct ctl_call *c, const struct page *p, struct item *v,
                             size_t *n)
{
    struct item after = {p->after_ms, p->after_id, NULL};
    size_t first = 0, all = *n;
    qsort(v, all, sizeof(v[0]), newest_first);
    while (p->after_ms && first < all && newest_first(&v[first], &after) <= 0)
        first++;
    *n = all - first;
    if (*n > (size_t)p->limit) {
        *n = (size_t)p->limit;
        const struct item *last = &v[first + *n - 1];
        char *token = xasprintf("%lld.%s", (long long)last->ms, last->id);
        http_reply_header(c->r, "X-Next-Token", token);
        free(token);
    }
    return v + first;
}

void ctl_tpl_list(struct ctl_call *c)
{
    struct page page = {.limit = INT64_MAX};
    if (c->v2 && !take_page(c, &page))
        return;
    size_t n = 0, it = 0;
    struct tpl *t;
    struct item *all = xcalloc(map_count(c->p->tpl->by_id) + 1, sizeof(all[0]));
    while ((t = map_next(c->p->tpl->by_id, &it, NULL, NULL)) != NULL)
        all[n++] = (struct item){t->created_ms, t->id, t};
    const struct item *v = cut_page(c, &page, all, &n);
    struct buf out = BUF_INIT;
    struct jw w;
    jw_init(&w, &out);
    jw_arr(&w, NULL);
    for (size_t i = 0; i < n; i++)
        write_item(&w, v[i].p);
    jw_end(&w);
    ctl_reply_buf(c->r, 200, &out);
    free(all);
}

struct tpl *ctl_tpl_take(struct ctl_call *c)
{
    struct err e = {0};
    struct tpl *t = tpl_find(c->p->tpl, c->part[0], &e);
    if (!t)
        ctl_reply_err(c->r, &e);
    return t;
}

void ctl_tpl_get(struct ctl_call *c)
{
    struct page page;
    struct tpl *t = ctl_tpl_take(c);
    if (!t || !take_page(c, &page))
        return;
    size_t n = t->builds.n;
    struct item *all = xcalloc(n + 1, sizeof(all[0]));
    for (size_t i = 0; i < n; i++)
        all[i] = (struct item){t->builds.v[i]->created_ms, t->builds.v[i]->id, t->builds.v[i]};
    const struct item *v = cut_page(c, &page, all, &n);
    struct buf out = BUF_INIT;
    struct jw w;
    jw_init(&w, &out);
    jw_obj(&w, NULL);
    jw_str(&w, "templateID", t->id);
    jw_bool(&w, "public", t->public);
    write_names(&w, t);
    ctl_write_time(&w, "createdAt", t->created_ms);
    ctl_write_time(&w, "updatedAt", t->updated_ms);
    write_spawns(&w, t);
    jw_arr(&w, "builds");
    for (size_t i = 0; i < n; i++)
        write_build(&w, v[i].p);
    jw_end(&w);
    jw_end(&w);
    ctl_reply_buf(c->r, 200, &out);
    free(all);
}

void ctl_tpl_alias(struct ctl_call *c)
{
    struct tpl *t = tpl_find(c->p->tpl, c->part[0], NULL);
    if (!t) {
        http_reply_error(c->r, 404, "template alias '%.80s' not found", c->part[0]);
        return;
    }
    struct buf out = BUF_INIT;
    struct jw w;
    jw_init(&w, &out);
    jw_obj(&w, NULL);
    jw_str(&w, "templateID", t->id);
    jw_bool(&w, "public", t->public);
    jw_end(&w);
    ctl_reply_buf(c->r, 200, &out);
}

/* --- asked for -------------------------------------------------------------------- */

/* Strings of an array member; false after an answer. *list is freed by the caller,
 * its strings are the body's. */
static bool take_tags(struct ctl_call *c, const char ***list, size_t *n)
{
    const struct cJSON *tags = json_get(c->body, "tags");
    *list = xcalloc(TAGS_MAX, sizeof(**list));
    *n = 0;
    bool ok = !tags || json_is_array(tags);
    for (const struct cJSON *t = json_first(tags); ok && t; t = json_next(t)) {
        ok = json_is_string(t) && *n < TAGS_MAX;
        if (ok)
            (*list)[(*n)++] = json_str_of(t);
    }
    if (!ok)
        http_reply_error(c->r, 400, "tags must be an array of at most %u strings", TAGS_MAX);
    return ok;
}

/* Within the cloud's own limits; the machine's are a matter of the sandbox. */
static bool take_size(struct ctl_call *c, int *cpu, int *mem_mb)
{
    const struct cJSON *has_cpu = json_get(c->body, "cpuCount");
    const struct cJSON *has_mem = json_get(c->body, "memoryMB");
    int64_t n = has_cpu ? json_i64(c->body, "cpuCount", -1) : PROV_CPU;
    int64_t mb = has_mem ? json_i64(c->body, "memoryMB", -1) : PROV_MEM_MB;
    *cpu = (int)n;
    *mem_mb = (int)mb;
    if (n < 1 || n > 32 || (n != 1 && n % 2 != 0))
        http_reply_error(c->r, 400, "cpuCount must be 1 or an even number up to 32");
    else if (mb < 128 || mb % 2 != 0 || mb > (1 << 24))
        http_reply_error(c->r, 400, "memoryMB must be an even number of at least 128");
    else
        return true;
    return false;
}

static void reply_requested(struct ctl_call *c, const struct tpl *t, const struct tpl_build *b)
{
    struct buf out = BUF_INIT;
    struct jw w;
    jw_init(&w, &out);
    jw_obj(&w, NULL);
    jw_str(&w, "templateID", t->id);
    jw_str(&w, "buildID", b->id);
    jw_bool(&w, "public", t->public);
    write_names(&w, t);
    jw_arr(&w, "tags");
    for (size_t i = 0; i < b->n_tags; i++)
        jw_str(&w, NULL, b->tags[i]);
    jw_end(&w);
    jw_end(&w);
    ctl_reply_buf(c->r, 202, &out);
}

void ctl_tpl_request(struct ctl_call *c)
{
    const char *name = json_str(c->body, "name", json_str(c->body, "alias", NULL));
    const char **tags = NULL;
    size_t n_tags;
    int cpu, mem_mb;
    struct err e = {0};
    struct tpl *t;
    struct tpl_build *b;
    if (!name)
        http_reply_error(c->r, 400, "name is missing");
    else if (take_tags(c, &tags, &n_tags) && take_size(c, &cpu, &mem_mb)) {
        if (tpl_request(c->p->tpl, name, tags, n_tags, cpu, mem_mb, &t, &b, &e) == 0)
            reply_requested(c, t, b);
        else
            ctl_reply_err(c->r, &e);
    }
    free(tags);
}

/* --- changed ---------------------------------------------------------------------- */

static bool is_own(struct ctl_call *c, const struct tpl *t)
{
    if (t && t->builtin)
        http_reply_error(c->r, 400, "template '%s' is a built-in one and stays as it is",
                         t->name);
    return t && !t->builtin;
}

void ctl_tpl_update(struct ctl_call *c)
{
    struct tpl *t = ctl_tpl_take(c);
    struct err e = {0};
    if (!is_own(c, t))
        return;
    t->public = json_bool(c->body, "public", t->public);
    if (tpl_save(c->p->tpl, t, &e) != 0) {
        ctl_reply_err(c->r, &e);
        return;
    }
    struct buf out = BUF_INIT;
    struct jw w;
    jw_init(&w, &out);
    jw_obj(&w, NULL);
    write_full_name(&w, t);
    jw_end(&w);
    ctl_reply_buf(c->r, 200, &out);
}

void ctl_tpl_delete(struct ctl_call *c)
{
    struct tpl *t = ctl_tpl_take(c);
    if (!is_own(c, t))
        return;
    const struct sbox *b = tpl_used_by(c->p->tpl, t);
    if (b) {
        http_reply_error(c->r, 400,
                         "template '%s' is used by sandbox %s; kill its sandboxes first",
                         t->name, b->rec.id);
        return;
    }
    tpl_delete(c->p->tpl, t);
    http_reply(c->r, 204, NULL, 0);
}

/* --- tags --------------------------------------------------------------------------- */

static bool tags_valid(struct ctl_call *c, const char **tags, size_t n)
{
    struct err e = {0};
    for (size_t i = 0; i < n; i++)
        if (tpl_tag_check(tags[i], &e) != 0) {
            ctl_reply_err(c->r, &e);
            return false;
        }
    if (n == 0)
        http_reply_error(c->r, 400, "tags are missing");
    return n > 0;
}

static void put_tags(struct ctl_call *c, struct tpl *t, const char *build, const char **tags,
                     size_t n)
{
    struct err e = {0};
    for (size_t i = 0; i < n; i++)
        tpl_tag_put(t, tags[i], build);
    if (tpl_save(c->p->tpl, t, &e) != 0) {
        ctl_reply_err(c->r, &e);
        return;
    }
    struct buf out = BUF_INIT;
    struct jw w;
    jw_init(&w, &out);
    jw_obj(&w, NULL);
    jw_arr(&w, "tags");
    for (size_t i = 0; i < n; i++)
        jw_str(&w, NULL, tags[i]);
    jw_end(&w);
    jw_str(&w, "buildID", build);
    jw_end(&w);
    ctl_reply_buf(c->r, 201, &out);
}

void ctl_tpl_tag(struct ctl_call *c)
{
    const char *target = json_str(c->body, "target", NULL);
    const char **tags = NULL;
    size_t n;
    struct err e = {0};
    struct tpl_build *b = NULL;
    if (!target) {
        http_reply_error(c->r, 400, "target is missing");
        return;
    }
    if (take_tags(c, &tags, &n) && tags_valid(c, tags, n)) {
        struct tpl *t = tpl_resolve(c->p->tpl, target, &b, &e);
        if (!t)
            ctl_reply_err(c->r, &e);
        else if (is_own(c, t))
            put_tags(c, t, b->id, tags, n);
    }
    free(tags);
}

void ctl_tpl_untag(struct ctl_call *c)
{
    const char *name = json_str(c->body, "name", NULL);
    const char **tags = NULL;
    size_t n;
    struct err e = {0};
    struct tpl *t = name ? tpl_find(c->p->tpl, name, &e) : NULL;
    if (!name) {
        http_reply_error(c->r, 400, "name is missing");
    } else if (!t) {
        ctl_reply_err(c->r, &e);
    } else if (is_own(c, t) && take_tags(c, &tags, &n) && tags_valid(c, tags, n)) {
        bool any = false;
        for (size_t i = 0; i < n; i++)
            any = tpl_tag_drop(t, tags[i]) || any;
        if (any && tpl_save(c->p->tpl, t, &e) != 0)
            ctl_reply_err(c->r, &e);
        else
            http_reply(c->r, 204, NULL, 0);
        tpl_prune(c->p->tpl, t);
    }
    free(tags);
}

void ctl_tpl_tags(struct ctl_call *c)
{
    struct tpl *t = ctl_tpl_take(c);
    if (!t)
        return;
    struct buf out = BUF_INIT;
    struct jw w;
    jw_init(&w, &out);
    jw_arr(&w, NULL);
    for (size_t i = 0; i < t->tags.n; i++) {
        jw_obj(&w, NULL);
        jw_str(&w, "tag", t->tags.v[i].name);
        jw_str(&w, "buildID", t->tags.v[i].build);
        ctl_write_time(&w, "createdAt", t->tags.v[i].created_ms);
        jw_end(&w);
    }
    jw_end(&w);
    ctl_reply_buf(c->r, 200, &out);
}

void ctl_tpl_old(struct ctl_call *c)
{
    http_reply_error(c->r, 501,
                     "this call of an older generation is not served: templates are made by "
                     "POST /v3/templates and built by POST "
                     "/v2/templates/{templateID}/builds/{buildID}; update the SDK or CLI");
}
