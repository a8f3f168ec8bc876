/* What was chosen for a build beside its recipe, as JSON in its row. Values of arguments are
 * often secrets: the row has their names alone, and what it tells of the build has "***". */
#include "builds_priv.h"

#include <cct/text/clean.h>
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
            o->args[n++] = xstrdup(json_str_of(i));
    json_free(j);
}

void build_options_again(const struct build_options *o, struct cmd_build *c)
{
    size_t n = 0;

    c->cpu_count = o->cpu_count;
    c->memory_mb = o->memory_mb;
    c->no_cache = o->no_cache;
    while (o->tags[n])
        n++;
    c->tags = xcalloc(n + 1, sizeof(*c->tags));
    for (size_t i = 0; i < n; i++)
        c->tags[i] = xstrdup(o->tags[i]);
}

int build_options_check(const struct build_options *o, const struct kv *args, const char *name,
                        struct err *e)
{
    struct buf b = BUF_INIT;

    for (char **want = o->args; *want; want++) {
        const struct kv *a = args;

        while (a && a->k && !str_eq(a->k, *want))
            a++;
        if (!a || !a->k)
            buf_addf(&b, " --build-arg %.60s=...", *want);
    }
    if (b.len)
        err_set(e, ERR_INVALID, "the build of \"%.80s\" had arguments, and their values are not kept: "
                "'cc-tui build rebuild %.80s%.200s' gives them again", name, name, buf_str(&b));
    buf_release(&b);
    return e->code;
}

/* --- without their values --------------------------------------------------------------- */

/* A shorter one hides nothing, and stands in every other word. */
enum { SECRET_MIN = 4 };

static void hide(struct buf *b, const char *value, size_t len)
{
    char *at;

    while (len >= SECRET_MIN && b->len && (at = strstr(buf_str(b), value)) != NULL) {
        size_t begin = (size_t)(at - b->p);
        char *rest = xstrdup(at + len);

        buf_truncate(b, begin);
        buf_adds(b, "***");
        buf_adds(b, rest);
        free(rest);
    }
}

/* As it stands, and as one line after the other. */
static void hide_value(struct buf *b, const char *value)
{
    for (const char *p = value; *p; p += strspn(p, "\r\n")) {
        char *line = xstrndup(p, strcspn(p, "\r\n")), *clean = clean_line_dup(line, 0);

        hide(b, line, strlen(line));
        hide(b, clean, strlen(clean));
        p += strlen(line);
        free(clean);
        free(line);
    }
}

char *build_without_args(const struct build_options *o, const struct kv *args, const char *text)
{
    struct buf b = BUF_INIT;
    size_t word = strcspn(text, " ");

    if (!o->args || !*o->args)
        return xstrdup(text);
    if (!args || !args->k) /* of another process's */
        return NULL;
    if (word == 3 && !strncmp(text, "ENV", word)) /* that is where they go, quoted in some way */
        return xstrdup("ENV");
    buf_adds(&b, text);
    for (const struct kv *a = args; a->k; a++)
        hide_value(&b, a->v);
    return buf_detach(&b, NULL);
}

void build_args_free(struct kv *args)
{
    for (struct kv *a = args; a && a->k; a++)
        secret_wipe(a->v, strlen(a->v));
    kv_free(args);
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
    jw_arr(&w, "args");
    for (const struct kv *a = c->args; a && a->k; a++)
        jw_str(&w, NULL, a->k);
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
    for (char **a = o->args; a && *a; a++)
        free(*a);
    free(o->args);
    memset(o, 0, sizeof(*o));
}
