/* What was chosen for a build beside its recipe, as JSON in its row. */
#include "builds_priv.h"

#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

static size_t count(const struct cJSON *list)
{
    size_t n = 0;

    for (const struct cJSON *i = json_first(list); i; i = json_next(i))
        n++;
    return n;
}

void build_options_parse(struct build_options *o, const char *json)
{
    struct cJSON *j = json ? json_parse(json, strlen(json), NULL) : NULL;
    const struct cJSON *tags = json_get(j, "tags"), *args = json_get(j, "args");
    size_t n = 0;

    memset(o, 0, sizeof(*o));
    o->cpu_count = (int)json_i64(j, "cpu", 0);
    o->memory_mb = (int)json_i64(j, "memory", 0);
    o->no_cache = json_bool(j, "noCache", false);
    o->tags = xcalloc(count(tags) + 1, sizeof(*o->tags));
    for (const struct cJSON *i = json_first(tags); i; i = json_next(i))
        if (json_is_string(i))
            o->tags[n++] = xstrdup(json_str_of(i));
    o->args = xcalloc(count(args) + 1, sizeof(*o->args));
    n = 0;
    for (const struct cJSON *i = json_first(args); i; i = json_next(i))
        if (json_is_string(i))
            o->args[n++] = (struct kv){xstrdup(json_name(i)), xstrdup(json_str_of(i))};
    json_free(j);
}

char *build_options_text(const struct cmd_build *c)
{
    struct buf b = BUF_INIT;
    struct jw w;

    if (!(c->tags && *c->tags) && !(c->args && c->args->k) && !c->cpu_count && !c->memory_mb &&
        !c->no_cache)
        return NULL;
    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_arr(&w, "tags");
    for (char **t = c->tags; t && *t; t++)
        jw_str(&w, NULL, *t);
    jw_end(&w);
    jw_obj(&w, "args");
    for (const struct kv *a = c->args; a && a->k; a++)
        jw_str(&w, a->k, a->v);
    jw_end(&w);
    jw_i64(&w, "cpu", c->cpu_count);
    jw_i64(&w, "memory", c->memory_mb);
    jw_bool(&w, "noCache", c->no_cache);
    jw_end(&w);
    return buf_detach(&b, NULL);
}

void build_options_release(struct build_options *o)
{
    for (char **t = o->tags; t && *t; t++)
        free(*t);
    free(o->tags);
    kv_free(o->args);
    memset(o, 0, sizeof(*o));
}
