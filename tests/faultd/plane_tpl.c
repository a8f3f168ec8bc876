/* Templates: lists, one of them, names and tags, new ones, files for their builds. */
#include "plane.h"
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct tpl *tpl_new(struct plane *p, const char *name)
{
    struct tpl *t = *ARR_PUSH(&p->tpls) = xcalloc(1, sizeof(*t));

    plane_id(p, t->id, 20);
    t->created_ms = t->updated_ms = clock_wall_ms();
    *ARR_PUSH(&t->names) = xstrdup(name);
    return t;
}

static void tag_set(struct tpl *t, const char *name, const char *build)
{
    struct tag *g = NULL;

    for (size_t i = 0; i < t->tags.n; i++)
        if (str_eq(t->tags.v[i].name, name))
            g = &t->tags.v[i];
    if (!g) {
        g = ARR_PUSH(&t->tags);
        g->name = xstrdup(name);
    }
    str_copy(g->build, sizeof(g->build), build);
    g->created_ms = clock_wall_ms();
}

static void tpl_free(struct tpl *t)
{
    for (size_t i = 0; i < t->names.n; i++)
        free(t->names.v[i]);
    for (size_t i = 0; i < t->builds.n; i++)
        build_release(&t->builds.v[i]);
    for (size_t i = 0; i < t->tags.n; i++)
        free(t->tags.v[i].name);
    ARR_RELEASE(&t->names);
    ARR_RELEASE(&t->builds);
    ARR_RELEASE(&t->tags);
    free(t);
}

static void tpl_clear(struct plane *p)
{
    for (size_t i = 0; i < p->tpls.n; i++)
        tpl_free(p->tpls.v[i]);
    ARR_CLEAR(&p->tpls);
}

void tpl_fill(struct plane *p, int64_t n)
{
    char name[32];

    tpl_clear(p);
    for (int64_t i = 1; i <= n; i++) {
        snprintf(name, sizeof(name), "template-%lld", (long long)i);
        struct tpl *t = tpl_new(p, name);
        build_ready(build_new(t));
        tag_set(t, "default", t->builds.v[0].id);
    }
}

/* By id, or by name: "alias", "namespace/alias", each perhaps with ":tag". */
static struct tpl *find(struct plane *p, const char *name, size_t len)
{
    const char *slash = memrchr(name, '/', len), *colon;

    for (size_t i = 0; i < p->tpls.n; i++)
        if (strlen(p->tpls.v[i]->id) == len && strncmp(p->tpls.v[i]->id, name, len) == 0)
            return p->tpls.v[i];
    if (slash) {
        len -= (size_t)(slash + 1 - name);
        name = slash + 1;
    }
    colon = memchr(name, ':', len);
    len = colon ? (size_t)(colon - name) : len;
    for (size_t i = 0; i < p->tpls.n; i++)
        for (size_t k = 0; k < p->tpls.v[i]->names.n; k++)
            if (strlen(p->tpls.v[i]->names.v[k]) == len &&
                strncmp(p->tpls.v[i]->names.v[k], name, len) == 0)
                return p->tpls.v[i];
    return NULL;
}

/* ---- answers ---- */

static void put_names(struct jw *w, const struct tpl *t)
{
    jw_arr(w, "aliases");
    for (size_t i = 0; i < t->names.n; i++)
        jw_str(w, NULL, t->names.v[i]);
    jw_end(w);
    jw_arr(w, "names");
    for (size_t i = 0; i < t->names.n; i++) {
        char *full = xasprintf("team/%s", t->names.v[i]);
        jw_str(w, NULL, full);
        free(full);
    }
    jw_end(w);
}

static void put_head(struct jw *w, const struct tpl *t)
{
    jw_str(w, "templateID", t->id);
    jw_bool(w, "public", t->public);
    put_names(w, t);
    plane_time(w, "createdAt", t->created_ms);
    plane_time(w, "updatedAt", t->updated_ms);
    jw_null(w, "lastSpawnedAt");
    jw_i64(w, "spawnCount", 0);
}

static void put_tpl(struct jw *w, const struct tpl *t)
{
    const struct build *last = t->builds.n ? &t->builds.v[t->builds.n - 1] : NULL, *good = last;

    for (size_t i = 0; i < t->builds.n; i++)
        if (str_eq(build_status(&t->builds.v[i]), "ready"))
            good = &t->builds.v[i];
    jw_obj(w, NULL);
    put_head(w, t);
    jw_str(w, "buildID", good ? good->id : "");
    jw_i64(w, "cpuCount", 2);
    jw_i64(w, "memoryMB", 1024);
    jw_i64(w, "diskSizeMB", 1024);
    jw_null(w, "createdBy");
    jw_i64(w, "buildCount", (int64_t)t->builds.n);
    jw_str(w, "envdVersion", "0.6.13");
    jw_str(w, "buildStatus", last ? build_status(last) : "waiting");
    jw_end(w);
}

/* Where a page begins: the token is the id of the last row given. */
static size_t page_start(const char *token, const char *id_of_row, size_t row)
{
    return str_eq(token, id_of_row) ? row + 1 : 0;
}

static void list(struct plane *p, const struct request *r, struct answer *a, bool paged)
{
    int64_t limit = INT64_MAX;
    char token[64] = "";
    size_t from = 0, i;
    struct jw w;

    if (paged && !plane_number(p, r, a, "limit", 100, 1, 100, &limit))
        return;
    if (paged)
        query_value(r->query, "nextToken", token, sizeof(token));
    for (i = 0; *token && !from && i < p->tpls.n; i++)
        from = page_start(token, p->tpls.v[i]->id, i);
    limit = paged && p->page < limit ? p->page : limit;
    plane_answer(a, 200, &w);
    jw_arr(&w, NULL);
    for (i = from; i < p->tpls.n && (int64_t)(i - from) < limit; i++)
        put_tpl(&w, p->tpls.v[i]);
    jw_end(&w);
    if (i < p->tpls.n && i > 0)
        buf_addf(&a->head, "X-Next-Token: %s\r\n", p->tpls.v[i - 1]->id);
}

static void detail(struct plane *p, const struct tpl *t, const struct request *r,
                   struct answer *a)
{
    int64_t limit;
    char token[64];
    size_t from = 0, i;
    struct jw w;

    if (!plane_number(p, r, a, "limit", 100, 1, 100, &limit))
        return;
    query_value(r->query, "nextToken", token, sizeof(token));
    for (i = 0; *token && !from && i < t->builds.n; i++)
        from = page_start(token, t->builds.v[i].id, i);
    limit = p->page < limit ? p->page : limit;
    plane_answer(a, 200, &w);
    jw_obj(&w, NULL);
    put_head(&w, t);
    jw_arr(&w, "builds");
    for (i = from; i < t->builds.n && (int64_t)(i - from) < limit; i++) {
        const struct build *b = &t->builds.v[i];
        bool over = b->started_ms && b->done_ms <= clock_wall_ms();
        jw_obj(&w, NULL);
        jw_str(&w, "buildID", b->id);
        jw_str(&w, "status", build_status(b));
        plane_time(&w, "createdAt", b->created_ms);
        plane_time(&w, "updatedAt", b->started_ms ? b->started_ms : b->created_ms);
        if (over)
            plane_time(&w, "finishedAt", b->done_ms);
        jw_i64(&w, "cpuCount", 2);
        jw_i64(&w, "memoryMB", 1024);
        jw_str(&w, "envdVersion", "0.6.13");
        jw_end(&w);
    }
    jw_end(&w);
    jw_end(&w);
    if (i < t->builds.n && i > 0)
        buf_addf(&a->head, "X-Next-Token: %s\r\n", t->builds.v[i - 1].id);
}

static void request_build(struct plane *p, const struct request *r, struct answer *a)
{
    struct cJSON *j = json_parse(r->body, r->len, NULL);
    const char *name = json_str(j, "name", json_str(j, "alias", NULL));
    const struct cJSON *tags = json_get(j, "tags");
    size_t len = name ? strcspn(name, ":") : 0;
    struct tpl *t = len ? find(p, name, len) : NULL;
    struct build *b;
    char *bare;
    struct jw w;

    if (!len) {
        plane_refuse(p, a, 400, "a name is needed");
        json_free(j);
        return;
    }
    bare = xstrndup(name, len);
    if (!t)
        t = tpl_new(p, bare);
    b = build_new(t);
    tag_set(t, name[len] ? name + len + 1 : "default", b->id);
    plane_answer(a, 202, &w);
    jw_obj(&w, NULL);
    jw_str(&w, "templateID", t->id);
    jw_str(&w, "buildID", b->id);
    jw_bool(&w, "public", t->public);
    put_names(&w, t);
    jw_arr(&w, "tags");
    for (const struct cJSON *g = json_first(tags); g; g = json_next(g)) {
        tag_set(t, json_str_of(g) ? json_str_of(g) : "", b->id);
        jw_str(&w, NULL, json_str_of(g));
    }
    if (!json_first(tags))
        jw_str(&w, NULL, name[len] ? name + len + 1 : "default");
    jw_end(&w);
    jw_end(&w);
    free(bare);
    json_free(j);
}

/* ---- files, names, tags ---- */

static void file(struct plane *p, const char *hash, const struct request *r, struct answer *a)
{
    char host[128] = "";
    bool there = false;
    struct jw w;

    if (strlen(hash) != 64 || strspn(hash, "0123456789abcdef") != 64) {
        plane_refuse(p, a, 400, "the hash is no SHA-256");
        return;
    }
    for (size_t i = 0; i < p->uploads.n; i++)
        there |= str_eq(p->uploads.v[i], hash);
    header_value(r->head, "Host", host, sizeof(host));
    plane_answer(a, 201, &w);
    jw_obj(&w, NULL);
    jw_bool(&w, "present", there);
    if (!there) {
        char *url = p->uploads_at
                        ? xasprintf("%s/_upload/%s", p->uploads_at, hash)
                        : xasprintf("%s://%s/_upload/%s", p->tls ? "https" : "http", host, hash);
        jw_str(&w, "url", url);
        free(url);
    }
    jw_end(&w);
}

void tpl_uploaded(struct plane *p, const char *hash, const struct request *r, struct answer *a)
{
    if (r->len < 2 || (unsigned char)r->body[0] != 0x1f || (unsigned char)r->body[1] != 0x8b) {
        plane_refuse(p, a, 400, "a tar.gz is expected");
        return;
    }
    *ARR_PUSH(&p->uploads) = xstrdup(hash);
    a->status = 200;
}

static void alias(struct plane *p, const char *name, struct answer *a)
{
    struct tpl *t = find(p, name, strlen(name));
    struct jw w;

    if (!t) {
        plane_refuse(p, a, 404, "template alias not found");
        return;
    }
    plane_answer(a, 200, &w);
    jw_obj(&w, NULL);
    jw_str(&w, "templateID", t->id);
    jw_bool(&w, "public", t->public);
    jw_end(&w);
}

static void add_tags(struct plane *p, const struct cJSON *j, struct answer *a)
{
    const char *target = json_str(j, "target", ""), *colon = strchr(target, ':');
    size_t len = strcspn(target, ":");
    struct tpl *t = find(p, target, len);
    const char *build = t && t->builds.n ? t->builds.v[t->builds.n - 1].id : NULL;
    char kept[40];
    struct jw w;

    for (size_t i = 0; t && i < t->tags.n; i++)
        if (str_eq(t->tags.v[i].name, colon ? colon + 1 : "default"))
            build = t->tags.v[i].build;
    if (!build) {
        plane_refuse(p, a, 404, "template not found");
        return;
    }
    str_copy(kept, sizeof(kept), build);
    plane_answer(a, 201, &w);
    jw_obj(&w, NULL);
    jw_str(&w, "buildID", kept);
    jw_arr(&w, "tags");
    for (const struct cJSON *g = json_first(json_get(j, "tags")); g; g = json_next(g)) {
        tag_set(t, json_str_of(g) ? json_str_of(g) : "", kept);
        jw_str(&w, NULL, json_str_of(g));
    }
    jw_end(&w);
    jw_end(&w);
}

static void remove_tags(struct plane *p, const struct cJSON *j, struct answer *a)
{
    const char *name = json_str(j, "name", "");
    struct tpl *t = find(p, name, strlen(name));

    if (!t) {
        plane_refuse(p, a, 404, "template not found");
        return;
    }
    for (const struct cJSON *g = json_first(json_get(j, "tags")); g; g = json_next(g))
        for (size_t i = t->tags.n; i-- > 0;)
            if (str_eq(t->tags.v[i].name, json_str_of(g))) {
                free(t->tags.v[i].name);
                ARR_REMOVE(&t->tags, i);
            }
    a->status = 204;
}

static void list_tags(const struct tpl *t, struct answer *a)
{
    struct jw w;

    plane_answer(a, 200, &w);
    jw_arr(&w, NULL);
    for (size_t i = 0; i < t->tags.n; i++) {
        jw_obj(&w, NULL);
        jw_str(&w, "tag", t->tags.v[i].name);
        jw_str(&w, "buildID", t->tags.v[i].build);
        plane_time(&w, "createdAt", t->tags.v[i].created_ms);
        jw_end(&w);
    }
    jw_end(&w);
}

/* ---- one template ---- */

static bool used(const struct plane *p, const struct tpl *t)
{
    for (size_t i = 0; i < p->boxes.n; i++) {
        const struct box *b = p->boxes.v[i];
        if (b->gone)
            continue;
        if (str_eq(b->template_id, t->id))
            return true;
        for (size_t k = 0; k < t->names.n; k++)
            if (str_eq(b->template_id, t->names.v[k]))
                return true;
    }
    return false;
}

static void remove_tpl(struct plane *p, struct tpl *t, struct answer *a)
{
    if (used(p, t)) {
        plane_refuse(p, a, 400, "the template is used by sandboxes");
        return;
    }
    for (size_t i = 0; i < p->tpls.n; i++)
        if (p->tpls.v[i] == t)
            ARR_REMOVE(&p->tpls, i--);
    tpl_free(t);
    a->status = 204;
}

static void publish(struct tpl *t, const struct cJSON *j, struct answer *a)
{
    struct jw w;

    t->public = json_bool(j, "public", t->public);
    t->updated_ms = clock_wall_ms();
    plane_answer(a, 200, &w);
    jw_obj(&w, NULL);
    put_names(&w, t);
    jw_end(&w);
}

static void one(struct plane *p, const char *rest, const struct request *r, struct answer *a,
                bool v2)
{
    size_t len = strcspn(rest, "/");
    const char *tail = rest + len;
    bool get = str_eq(r->method, "GET");
    struct tpl *t = find(p, rest, len);
    struct cJSON *j = NULL;

    if (!t) {
        plane_refuse(p, a, 404, "template not found");
    } else if (str_starts(tail, "/builds/") && (get ? !v2 : v2)) {
        build_route(p, t, tail + strlen("/builds/"), r, a);
    } else if (v2 && !*tail && str_eq(r->method, "PATCH")) {
        j = json_parse(r->body, r->len, NULL);
        publish(t, j, a);
    } else if (!*tail && get && !v2) {
        detail(p, t, r, a);
    } else if (!*tail && str_eq(r->method, "DELETE") && !v2) {
        remove_tpl(p, t, a);
    } else if (str_starts(tail, "/files/") && get && !v2) {
        file(p, tail + strlen("/files/"), r, a);
    } else if (str_eq(tail, "/tags") && get && !v2) {
        list_tags(t, a);
    } else {
        plane_refuse(p, a, 404, "no such route");
    }
    json_free(j);
}

bool tpl_route(struct plane *p, const struct request *r, struct answer *a)
{
    bool v2 = str_starts(r->path, "/v2/templates"), get = str_eq(r->method, "GET");
    const char *rest = r->path + strlen(v2 ? "/v2/templates" : "/templates");
    struct cJSON *j = NULL;
    char *id;

    if (str_eq(r->path, "/v3/templates") && str_eq(r->method, "POST")) {
        request_build(p, r, a);
        return true;
    }
    if (!v2 && !str_starts(r->path, "/templates"))
        return false;
    if (!*rest && get) {
        list(p, r, a, v2);
    } else if (str_starts(rest, "/aliases/") && get && !v2) {
        alias(p, rest + strlen("/aliases/"), a);
    } else if (str_eq(rest, "/tags") && !get && !v2) {
        j = json_parse(r->body, r->len, NULL);
        (str_eq(r->method, "POST") ? add_tags : remove_tags)(p, j, a);
    } else if (*rest == '/') {
        id = xstrdup(rest + 1);
        text_url_decode(id);
        one(p, id, r, a, v2);
        free(id);
    } else {
        return false;
    }
    json_free(j);
    return true;
}
