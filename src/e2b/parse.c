/* Values and sandboxes out of JSON, generously: what is missing, null or of another type
 * is left empty, and only an item without an id is no sandbox. */
#include "e2b_priv.h"
#include <cct/util/arr.h>
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/xalloc.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { META_MAX = 256, STRINGS_MAX = 256 };
#define LAST_MS 253402300799999 /* the end of the year 9999 */

char *parse_str(const struct cJSON *j, const char *name)
{
    return xstrdup(json_str(j, name, NULL));
}

char *parse_text(const struct cJSON *item)
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

int64_t parse_i64(const struct cJSON *j, const char *name, int64_t def)
{
    int64_t v = json_i64s(j, name, -1);

    return v < 0 ? def : v;
}

int parse_int(const struct cJSON *j, const char *name, int def)
{
    int64_t v = parse_i64(j, name, -1);

    return v < 0 || v > INT_MAX ? def : (int)v;
}

/* A number since 1970 in seconds, milliseconds, microseconds or nanoseconds: which one is
 * told by its size. */
static int64_t epoch_ms(double v)
{
    if (!(v > 0))
        return 0;
    double ms = v < 1e11 ? v * 1000 : v < 1e14 ? v : v < 1e17 ? v / 1000 : v / 1e6;
    return ms <= LAST_MS ? (int64_t)ms : 0;
}

int64_t parse_time(const struct cJSON *j, const char *name)
{
    const char *s = json_str(j, name, NULL);
    int64_t ms = 0;

    if (!s)
        return epoch_ms(json_num(j, name, 0));
    if (*s && strspn(s, "0123456789") == strlen(s))
        return epoch_ms(strtod(s, NULL));
    return clock_parse_rfc3339(s, &ms) == 0 && ms > 0 && ms <= LAST_MS ? ms : 0;
}

char **parse_strings(const struct cJSON *j, const char *name)
{
    const struct cJSON *list = json_get(j, name);
    ARR(char *) out = ARR_INIT;

    if (!json_is_array(list))
        return NULL;
    for (const struct cJSON *i = json_first(list); i && out.n < STRINGS_MAX; i = json_next(i))
        if (json_is_string(i) && *json_str_of(i))
            *ARR_PUSH(&out) = xstrdup(json_str_of(i));
    if (out.n)
        ARR_PUSH(&out);
    return out.v;
}

struct kv *parse_kv(const struct cJSON *j)
{
    ARR(struct kv) list = ARR_INIT;

    if (!json_is_object(j))
        return NULL;
    for (const struct cJSON *m = json_first(j); m && list.n < META_MAX; m = json_next(m)) {
        char *v = parse_text(m);
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
    out->template_id = parse_str(j, "templateID");
    out->alias = parse_str(j, "alias");
    out->domain = parse_str(j, "domain");
    out->envd_version = parse_str(j, "envdVersion");
    state = parse_text(json_get(j, "state"));
    out->state = state ? state : xstrdup("");
    if (token && *token)
        out->token = secret_new_token(token, strlen(token));
    out->started_at = parse_time(j, "startedAt");
    out->end_at = parse_time(j, "endAt");
    out->cpu_count = parse_int(j, "cpuCount", 0);
    out->memory_mb = parse_int(j, "memoryMB", 0);
    out->disk_mb = parse_int(j, "diskSizeMB", 0);
    out->meta = parse_kv(json_get(j, "metadata"));
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
    kv_free(s->meta);
    *s = (struct e2b_sandbox){0};
}
