/* Keys of the providers that agents use. They come from one level alone: a tool that finds
 * two kinds of keys would choose between them by a rule of its own. */
#include "keys_priv.h"

#include <cct/model/sandbox.h>
#include <cct/util/buf.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

/* A tool may read either name, so a key found under one goes out under all. */
static const struct {
    const char *provider, *names[3];
} providers[] = {
    {"anthropic", {"ANTHROPIC_API_KEY"}},
    {"anthropic_token", {"CLAUDE_CODE_OAUTH_TOKEN"}},
    {"openai", {"OPENAI_API_KEY", "CODEX_API_KEY"}},
    {"openrouter", {"OPENROUTER_API_KEY"}},
    {"github", {"GITHUB_TOKEN", "GH_TOKEN"}},
};

const char *const *keys_names_of(const char *provider)
{
    for (size_t i = 0; i < sizeof(providers) / sizeof(providers[0]); i++)
        if (str_eq(providers[i].provider, provider))
            return providers[i].names;
    return NULL;
}

const struct secret *keys_in_environment(const char *provider)
{
    const char *const *names = keys_names_of(provider);

    for (; names && *names; names++)
        if (keys_taken(*names))
            return keys_taken(*names);
    return NULL;
}

const struct st_key *keys_level_row(const struct keys_at *at, enum key_source level,
                                    const char *provider)
{
    if (!at->stored || (level == KEY_PROJECT && !at->stored->project) ||
        (level != KEY_PROJECT && level != KEY_USER))
        return NULL;
    return keys_row(at->stored, level == KEY_PROJECT ? at->stored->project : NULL, provider, NULL);
}

bool keys_level_has(const struct keys_at *at, enum key_source level, const char *provider)
{
    return level == KEY_ENV ? keys_in_environment(provider) != NULL
                            : keys_level_row(at, level, provider) != NULL;
}

enum key_source keys_provider_source(const struct keys_at *at, const char *const *needs,
                                     char **missing)
{
    struct buf lack = BUF_INIT;

    if (missing)
        *missing = NULL;
    for (int level = KEY_ENV; level <= KEY_USER; level++)
        for (const char *const *n = needs; n && *n; n++)
            if (keys_level_has(at, (enum key_source)level, *n))
                return (enum key_source)level;
    for (; missing && needs && *needs; needs++)
        buf_addf(&lack, "%s%s", lack.len ? " or " : "", *needs);
    if (lack.len)
        *missing = buf_detach(&lack, NULL);
    buf_release(&lack);
    return KEY_NONE;
}

static void add(struct kv **list, size_t *n, const char *provider, const char *value)
{
    for (const char *const *names = keys_names_of(provider); names && *names; names++) {
        *list = xrealloc(*list, (*n + 2) * sizeof(**list)); /* pointers only: no value moves */
        (*list)[*n] = (struct kv){xstrdup(*names), xstrdup(value)};
        (*list)[++*n] = (struct kv){NULL, NULL};
    }
}

/* One stored key into the list; 0 or a code. */
static int add_row(const struct keys_at *at, const struct secret *data_key,
                   const struct st_key *row, struct kv **list, size_t *n, struct err *e)
{
    struct secret *key;

    if (keys_need_yes(at, row, e) != 0)
        return e->code;
    key = keys_open(row, data_key, e);
    if (!key)
        return e->code;
    add(list, n, row->provider, secret_value(key));
    secret_free(key);
    return 0;
}

struct kv *keys_provider_env(const struct keys_at *at, const struct secret *data_key,
                             const char *const *needs, struct err *e)
{
    enum key_source level = keys_provider_source(at, needs, NULL);
    struct kv *list = xcalloc(1, sizeof(*list));
    size_t n = 0;
    int rc = 0;

    for (; level != KEY_NONE && rc == 0 && *needs; needs++) {
        const struct st_key *row = level == KEY_ENV ? NULL : keys_level_row(at, level, *needs);
        const struct secret *v = level == KEY_ENV ? keys_in_environment(*needs) : NULL;
        if (row)
            rc = add_row(at, data_key, row, &list, &n, e);
        else if (v)
            add(&list, &n, *needs, secret_value(v));
    }
    if (rc == 0)
        return list;
    keys_env_free(list);
    return NULL;
}

void keys_env_free(struct kv *env)
{
    for (struct kv *v = env; v && v->k; v++) {
        if (v->v)
            secret_wipe(v->v, strlen(v->v));
        free(v->k);
        free(v->v);
    }
    free(env);
}
