/* Keys that lie outside of the vault: the environment's, and the E2B CLI's file. */
#include "keys_priv.h"

#include <cct/util/arr.h>
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CONFIG_MAX = 256 << 10 };

/* --- out of the environment ---------------------------------------------------- */

/* Filled once, before there are threads; constant after that. */
struct taken {
    const char *name;
    struct secret *value;
};
static struct taken taken[] = {
    {"E2B_API_KEY", NULL},    {"ANTHROPIC_API_KEY", NULL}, {"CLAUDE_CODE_OAUTH_TOKEN", NULL},
    {"OPENAI_API_KEY", NULL}, {"CODEX_API_KEY", NULL},     {"OPENROUTER_API_KEY", NULL},
    {"GITHUB_TOKEN", NULL},   {"GH_TOKEN", NULL}};
static ARR(struct taken) more; /* names of ours */

void keys_take_env(void)
{
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        secret_free(taken[i].value);
        taken[i].value = secret_take_env(taken[i].name);
    }
    for (size_t i = 0; i < more.n; i++) {
        secret_free(more.v[i].value);
        free((char *)(uintptr_t)more.v[i].name);
    }
    ARR_CLEAR(&more);
}

static const struct taken *find(const char *name)
{
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
        if (str_eq(taken[i].name, name))
            return &taken[i];
    for (size_t i = 0; i < more.n; i++)
        if (str_eq(more.v[i].name, name))
            return &more.v[i];
    return NULL;
}

void keys_take_variable(const char *name)
{
    if (!find(name))
        *ARR_PUSH(&more) = (struct taken){xstrdup(name), secret_take_env(name)};
}

bool keys_in_variable(const char *name)
{
    return find(name) != NULL || keys_variable_of(name) != NULL;
}

const struct secret *keys_taken(const char *name)
{
    const struct taken *t = find(name);

    return t ? t->value : NULL;
}

/* --- E2B ------------------------------------------------------------------------- */

/* A key as set may have blanks around it; inside it only visible ASCII makes a header
 * value. Its form is not judged further: other deployments have others. */
static struct secret *clean_key(const char *s, const char *where, struct err *e)
{
    size_t len = strlen(s);

    while (len && (unsigned char)s[len - 1] <= ' ')
        len--;
    while (len && (unsigned char)*s <= ' ')
        s++, len--;
    if (len == 0)
        return NULL;
    if (keys_visible(s, len))
        return secret_new(s, len);
    err_set(e, ERR_INVALID, "cannot use the E2B key of %s: it holds blanks or other characters "
            "that no key has; set it again", where);
    return NULL;
}

/* The tree holds plain keys and tokens; nobody else looks at it. */
static void wipe_strings(const struct cJSON *j)
{
    for (const struct cJSON *c = json_first(j); c; c = json_next(c)) {
        const char *s = json_is_string(c) ? json_str_of(c) : NULL;
        if (s)
            secret_wipe((char *)(uintptr_t)s, strlen(s));
        else
            wipe_strings(c);
    }
}

static void read_config(const char *path, const char *text, size_t len, struct keys_outside *o,
                        struct err *e)
{
    struct cJSON *j = json_parse(text, len, e);
    const char *key, *team;

    if (!json_is_object(j)) {
        if (!j)
            err_wrap(e, "cannot read '%s'", path);
        else
            err_set(e, ERR_INVALID, "cannot read '%s': it is no E2B CLI configuration", path);
        wipe_strings(j);
        json_free(j);
        return;
    }
    /* version 2 speaks of projects, version 1 of teams */
    key = json_str(j, "projectApiKey", json_str(j, "teamApiKey", NULL));
    team = json_str(j, "projectId", json_str(j, "teamId", NULL));
    if (json_i64(j, "version", 0) < 1)
        err_set(e, ERR_UNSUPPORTED, "cannot use '%s': it is of an old E2B CLI; run e2b auth login",
                path);
    else if (key)
        o->cli = clean_key(key, path, e);
    if (o->cli)
        o->team_id = xstrdup(team);
    wipe_strings(j);
    json_free(j);
}

static void find_config(struct keys_outside *o)
{
    const char *home = getenv("HOME");
    struct err why = {0};
    char *path, *text;
    size_t len = 0;

    if (!home || home[0] != '/')
        return;
    path = xasprintf("%s/.e2b/config.json", home);
    text = fs_read(path, CONFIG_MAX, false, &len, &why);
    if (text)
        read_config(path, text, len, o, &why);
    else if (why.code == ERR_NOTFOUND)
        err_clear(&why);
    o->cli_err = why;
    secret_wipe(text, text ? len : 0);
    free(text);
    free(path);
}

/* Only blanks are as good as unset. */
void keys_look_outside(struct keys_outside *o)
{
    const struct secret *raw = keys_taken("E2B_API_KEY");

    *o = (struct keys_outside){0};
    if (raw)
        o->env = clean_key(secret_value(raw), "E2B_API_KEY", &o->env_err);
    find_config(o);
}

void keys_outside_release(struct keys_outside *o)
{
    secret_free(o->env);
    secret_free(o->cli);
    free(o->team_id);
    *o = (struct keys_outside){0};
}
