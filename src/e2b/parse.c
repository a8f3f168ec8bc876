/* Sandboxes out of JSON, generously: what is missing, null or of another type is
 * left empty, and only an item without an id is no sandbox. */
#include "e2b_priv.h"
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/xalloc.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { META_MAX = 256 };

static char *dup_str(const struct cJSON *j, const char *name)
{
    return xstrdup(json_str(j, name, NULL));
}

/* A string as it is; any other value but null as its JSON text. */
static char *text_of(const struct cJSON *item)
{
    char *t;

    if (!item)
        return NULL;
    if (json_is_string(item))
        return xstrdup(json_str_of(item));
    t = json_text(item);
    if (t && strcmp(t, "null") == 0) {
        free(t);
        t = NULL;
    }
    return t;
}

static int int_of(const struct cJSON *j, const char *name)
{
    int64_t v = json_i64s(j, name, 0);

    return v < 0 || v > INT_MAX ? 0 : (int)v;
}

/* RFC 3339, or a number of seconds or milliseconds; nonsense and year 1 give 0. */
static int64_t time_of(const struct cJSON *j, const char *name)
{
    const char *s = json_str(j, name, NULL);
    int64_t ms = 0;

    if (s)
        return clock_parse_rfc3339(s, &ms) == 0 && ms > 0 ? ms : 0;
    ms = json_i64(j, name, 0);
    if (ms <= 0)
        return 0;
    return ms < 100000000000 ? ms * 1000 : ms;
}

static struct kv *meta_of(const struct cJSON *j)
{
    ARR(struct kv) list = ARR_INIT;

    if (!json_is_object(j))
        return NULL;
    for (const struct cJSON *m = json_first(j); m && list.n < META_MAX; m = json_next(m)) {
        char *v = text_of(m);
        if (v && json_name(m))
            *ARR_PUSH(&list) = (struct kv){xstrdup(json_name(m)), v};
        else
            free(v);
    }
    if (list.n)
        ARR_PUSH(&list); /* the end: all NULL */
    return list.v;
}

bool sandbox_parse(const struct cJSON *j, struct e2b_sandbox *out)
{
    const char *id = json_str(j, "sandboxID", NULL);
    const char *token = json_str(j, "envdAccessToken", NULL);
    char *state;

    *out = (struct e2b_sandbox){0};
    if (!id || !*id || strlen(id) > 200)
        return false;
    out->sandbox_id = xstrdup(id);
    out->template_id = dup_str(j, "templateID");
    out->alias = dup_str(j, "alias");
    out->domain = dup_str(j, "domain");
    out->envd_version = dup_str(j, "envdVersion");
    state = text_of(json_get(j, "state"));
    out->state = state ? state : xstrdup("");
    if (token && *token)
        out->token = secret_new(token, strlen(token));
    out->started_at = time_of(j, "startedAt");
    out->end_at = time_of(j, "endAt");
    out->cpu_count = int_of(j, "cpuCount");
    out->memory_mb = int_of(j, "memoryMB");
    out->disk_mb = int_of(j, "diskSizeMB");
    out->meta = meta_of(json_get(j, "metadata"));
    out->not_isolated = !json_bool(j, "isolated", true);
    return true;
}

void e2b_sandbox_clear(struct e2b_sandbox *s)
{
    free(s->sandbox_id);
    free(s->template_id);
    free(s->alias);
    free(s->domain);
    free(s->envd_version);
    free(s->state);
    secret_free(s->token);
    for (struct kv *m = s->meta; m && m->k; m++) {
        free(m->k);
        free(m->v);
    }
    free(s->meta);
    *s = (struct e2b_sandbox){0};
}
