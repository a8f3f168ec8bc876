/* Templates, builds, tags out of JSON; and the end of all rows. */
#include "e2b_priv.h"
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

enum { ID_MAX = 200 };

static bool template_parse(const struct cJSON *j, struct e2b_template *t)
{
    const char *id = json_str(j, "templateID", NULL);

    *t = (struct e2b_template){0};
    if (!id || !*id || strlen(id) > ID_MAX)
        return false;
    t->template_id = xstrdup(id);
    t->build_id = parse_str(j, "buildID");
    t->names = parse_strings(j, "names");
    if (!t->names)
        t->names = parse_strings(j, "aliases");
    t->is_public = json_bool(j, "public", false);
    t->cpu_count = parse_int(j, "cpuCount", 0);
    t->memory_mb = parse_int(j, "memoryMB", 0);
    t->disk_mb = parse_int(j, "diskSizeMB", 0);
    t->created_at = parse_time(j, "createdAt");
    t->updated_at = parse_time(j, "updatedAt");
    t->spawned_at = parse_time(j, "lastSpawnedAt");
    t->spawn_count = parse_i64(j, "spawnCount", -1);
    t->build_count = parse_i64(j, "buildCount", -1);
    t->envd_version = parse_str(j, "envdVersion");
    t->status = parse_text(json_get(j, "buildStatus"));
    return true;
}

static void template_clear(struct e2b_template *t)
{
    free(t->template_id);
    free(t->build_id);
    str_list_free(t->names);
    free(t->envd_version);
    free(t->status);
}

/* Without an id of its own it is the one that was asked for. */
static bool build_parse(const struct cJSON *j, const char *template_id, const char *build_id,
                        struct e2b_build *b)
{
    const char *id = json_str(j, "buildID", build_id);
    const struct cJSON *reason = json_get(j, "reason");

    *b = (struct e2b_build){0};
    if (!id || !*id || strlen(id) > ID_MAX)
        return false;
    b->build_id = xstrdup(id);
    b->template_id = xstrdup(json_str(j, "templateID", template_id));
    b->status = parse_text(json_get(j, "status"));
    if (!b->status)
        b->status = xstrdup("");
    b->created_at = parse_time(j, "createdAt");
    b->updated_at = parse_time(j, "updatedAt");
    b->finished_at = parse_time(j, "finishedAt");
    b->cpu_count = parse_int(j, "cpuCount", 0);
    b->memory_mb = parse_int(j, "memoryMB", 0);
    b->disk_mb = parse_int(j, "diskSizeMB", 0);
    b->envd_version = parse_str(j, "envdVersion");
    b->reason = json_is_string(reason) ? xstrdup(json_str_of(reason))
                                       : parse_text(json_get(reason, "message"));
    b->reason_step = parse_text(json_get(reason, "step"));
    return true;
}

static void build_clear(struct e2b_build *b)
{
    free(b->template_id);
    free(b->build_id);
    free(b->status);
    free(b->envd_version);
    free(b->reason);
    free(b->reason_step);
}

/* --- answers ---------------------------------------------------------------------- */

int take_templates(struct e2b_call *k, const struct cJSON *j)
{
    if (!json_is_array(j))
        return ERR_PROTO;
    if (!k->ids)
        k->ids = map_new();
    for (const struct cJSON *i = json_first(j); i; i = json_next(i)) {
        struct e2b_template t;

        if (!template_parse(i, &t))
            continue;
        if (map_get(k->ids, t.template_id)) {
            template_clear(&t);
            continue;
        }
        *ARR_PUSH(&k->got.templates) = t;
        map_put(k->ids, t.template_id, k);
    }
    return 0;
}

/* Each page tells the template again, with more of its builds. */
int take_template(struct e2b_call *k, const struct cJSON *j)
{
    struct e2b_template t;

    if (!template_parse(j, &t))
        return ERR_PROTO;
    if (k->got.templates.n)
        template_clear(&t);
    else
        *ARR_PUSH(&k->got.templates) = t;
    if (!k->ids)
        k->ids = map_new();
    for (const struct cJSON *i = json_first(json_get(j, "builds")); i; i = json_next(i)) {
        struct e2b_build b;

        if (!build_parse(i, k->got.templates.v[0].template_id, NULL, &b))
            continue;
        if (map_get(k->ids, b.build_id)) {
            build_clear(&b);
            continue;
        }
        *ARR_PUSH(&k->got.builds) = b;
        map_put(k->ids, b.build_id, k);
    }
    return 0;
}

int take_alias(struct e2b_call *k, const struct cJSON *j)
{
    struct e2b_template t;

    if (!template_parse(j, &t))
        return ERR_PROTO;
    *ARR_PUSH(&k->got.templates) = t;
    return 0;
}

int take_tags(struct e2b_call *k, const struct cJSON *j)
{
    if (!json_is_array(j))
        return ERR_PROTO;
    for (const struct cJSON *i = json_first(j); i && k->got.tags.n < ROWS_MAX; i = json_next(i))
        if (json_str(i, "tag", NULL))
            *ARR_PUSH(&k->got.tags) = (struct e2b_tag){parse_str(i, "tag"), parse_str(i, "buildID"),
                                                       parse_time(i, "createdAt")};
    return 0;
}

int take_tag_added(struct e2b_call *k, const struct cJSON *j)
{
    char **tags = parse_strings(j, "tags");

    if (!json_is_object(j))
        return ERR_PROTO;
    for (char **t = tags; t && *t; t++)
        *ARR_PUSH(&k->got.tags) = (struct e2b_tag){xstrdup(*t), parse_str(j, "buildID"), 0};
    str_list_free(tags);
    return 0;
}

int take_build_new(struct e2b_call *k, const struct cJSON *j)
{
    struct e2b_build b;

    if (!build_parse(j, NULL, NULL, &b))
        return ERR_PROTO;
    *ARR_PUSH(&k->got.builds) = b;
    return b.template_id ? 0 : ERR_PROTO;
}

int take_file(struct e2b_call *k, const struct cJSON *j)
{
    struct e2b_file *f = &k->got.file;

    f->present = json_bool(j, "present", false);
    f->url = f->present ? NULL : parse_str(j, "url");
    f->headers = f->present ? NULL : parse_kv(json_get(j, "headers"));
    return f->present || f->url ? 0 : ERR_PROTO;
}

int take_build_status(struct e2b_call *k, const struct cJSON *j)
{
    const struct cJSON *entries = json_get(j, "logEntries");
    struct e2b_build b;

    if (!json_str(j, "status", NULL) || !build_parse(j, NULL, k->subject, &b))
        return ERR_PROTO;
    *ARR_PUSH(&k->got.builds) = b;
    /* builds of old have bare lines */
    parse_logs(json_is_array(entries) ? entries : json_get(j, "logs"), &k->got.logs);
    parse_logs(json_path(j, "reason.logEntries"), &k->got.reason);
    return 0;
}

/* --- the end of rows ---------------------------------------------------------------- */

static void event_clear(struct e2b_event *e)
{
    free(e->id);
    free(e->type);
    free(e->sandbox_id);
    free(e->template_id);
    free(e->build_id);
    free(e->team_id);
    free(e->execution_id);
    free(e->data);
}

static void tag_clear(struct e2b_tag *t)
{
    free(t->tag);
    free(t->build_id);
}

#define CLEAR_ALL(a, clear)                \
    do {                                   \
        for (size_t i = 0; i < (a).n; i++) \
            clear(&(a).v[i]);              \
        ARR_RELEASE(&(a));                 \
    } while (0)

static void metric_clear(struct e2b_metric *m)
{
    free(m->sandbox_id);
}

void got_release(struct got *g)
{
    CLEAR_ALL(g->sandboxes, e2b_sandbox_clear);
    CLEAR_ALL(g->metrics, metric_clear);
    CLEAR_ALL(g->logs, e2b_log_clear);
    CLEAR_ALL(g->reason, e2b_log_clear);
    CLEAR_ALL(g->events, event_clear);
    CLEAR_ALL(g->templates, template_clear);
    CLEAR_ALL(g->builds, build_clear);
    CLEAR_ALL(g->tags, tag_clear);
    ARR_RELEASE(&g->team);
    free(g->file.url);
    kv_free(g->file.headers);
    memset(&g->file, 0, sizeof(g->file));
}
