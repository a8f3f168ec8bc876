/* JSON getters: exact in case, type and range. */
#include <cJSON.h>
#include <cct/util/json.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include "json_scratch.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

void json_free(struct cJSON *j)
{
    if (!json_scratch_free(j))
        cJSON_Delete(j);
}

/* The last of several members with one name wins, as in JavaScript. */
static const cJSON *member(const cJSON *j, const char *name, size_t len)
{
    const cJSON *found = NULL;

    if (!cJSON_IsObject(j))
        return NULL;
    for (const cJSON *c = j->child; c; c = c->next)
        if (c->string && *c->string == *name && strncmp(c->string, name, len) == 0 &&
            c->string[len] == '\0')
            found = c;
    return found;
}

const struct cJSON *json_get(const struct cJSON *j, const char *name)
{
    return member(j, name, strlen(name));
}

const struct cJSON *json_path(const struct cJSON *j, const char *path)
{
    for (;;) {
        size_t len = strcspn(path, ".");
        j = member(j, path, len);
        if (!j || path[len] == '\0')
            return j;
        path += len + 1;
    }
}

const char *json_str_of(const struct cJSON *item)
{
    return cJSON_IsString(item) ? item->valuestring : NULL;
}

const char *json_str(const struct cJSON *j, const char *name, const char *def)
{
    const char *s = json_str_of(json_get(j, name));
    return s ? s : def;
}

/* 2^53 itself stands for 2^53 + 1 as well, so it is refused too. */
static bool whole(const cJSON *item, int64_t *out)
{
    const double limit = 9007199254740992.0;

    if (!cJSON_IsNumber(item))
        return false;
    double v = item->valuedouble;
    if (!(v > -limit && v < limit) || v != floor(v))
        return false;
    *out = (int64_t)v;
    return true;
}

int64_t json_i64(const struct cJSON *j, const char *name, int64_t def)
{
    int64_t v;
    return whole(json_get(j, name), &v) ? v : def;
}

int64_t json_i64s(const struct cJSON *j, const char *name, int64_t def)
{
    const cJSON *item = json_get(j, name);
    const char *s = json_str_of(item);
    int64_t v;

    if (s)
        return str_to_i64(s, INT64_MIN, INT64_MAX, &v) ? v : def;
    return whole(item, &v) ? v : def;
}

double json_num(const struct cJSON *j, const char *name, double def)
{
    const cJSON *item = json_get(j, name);
    return cJSON_IsNumber(item) && isfinite(item->valuedouble) ? item->valuedouble : def;
}

bool json_bool(const struct cJSON *j, const char *name, bool def)
{
    const cJSON *item = json_get(j, name);
    return cJSON_IsBool(item) ? cJSON_IsTrue(item) : def;
}

bool json_is_object(const struct cJSON *j)
{
    return cJSON_IsObject(j);
}

bool json_is_array(const struct cJSON *j)
{
    return cJSON_IsArray(j);
}

bool json_is_string(const struct cJSON *j)
{
    return cJSON_IsString(j);
}

const struct cJSON *json_first(const struct cJSON *j)
{
    return cJSON_IsObject(j) || cJSON_IsArray(j) ? j->child : NULL;
}

const struct cJSON *json_next(const struct cJSON *child)
{
    return child->next;
}

const char *json_name(const struct cJSON *child)
{
    return child->string;
}

char *json_text(const struct cJSON *j)
{
    char *s = j ? cJSON_PrintUnformatted(j) : NULL;
    if (j && !s)
        die("out of memory while JSON was written");
    return s;
}

struct cJSON *json_copy(const struct cJSON *j)
{
    struct cJSON *copy = j ? cJSON_Duplicate(j, true) : NULL;
    if (j && !copy)
        die("out of memory");
    return copy;
}
