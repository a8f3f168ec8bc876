/* The environment of a new sandbox: what its tool sets, the keys of the providers that it
 * needs, the project's variables, what the user gave; each stands above the one before. */
#include "core_priv.h"

#include <cct/config/tools.h>
#include <cct/keys.h>
#include <cct/util/buf.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

/* The last word on a name wins; replaced values are wiped. */
static void env_put(struct kv **env, size_t *n, const char *k, size_t klen, const char *v)
{
    size_t i = 0;

    while (i < *n && !(strlen((*env)[i].k) == klen && memcmp((*env)[i].k, k, klen) == 0))
        i++;
    if (i == *n) {
        *env = xrealloc(*env, (*n + 2) * sizeof(**env)); /* pointers only: no value moves */
        (*env)[i].k = xstrndup(k, klen);
        (*env)[i + 1] = (struct kv){NULL, NULL};
        ++*n;
    } else {
        secret_wipe((*env)[i].v, strlen((*env)[i].v));
        free((*env)[i].v);
    }
    (*env)[i].v = xstrdup(v);
}

static bool given_by(const struct kv *own, unsigned bits)
{
    for (unsigned bit = 1; bit <= TOOL_GITHUB; bit <<= 1)
        for (size_t i = 0; (bits & bit) && tool_provider_env(bit, i); i++)
            for (const struct kv *v = own; v && v->k; v++)
                if (str_eq(v->k, tool_provider_env(bit, i)) && v->v && *v->v)
                    return true;
    return false;
}

static int add_keys(const struct keys_at *at, const struct secret *data_key,
                    const char *const *needs, struct kv **env, size_t *n, struct err *e)
{
    struct kv *keys = keys_provider_env(at, data_key, needs, e);

    if (!keys)
        return e->code;
    for (size_t i = 0; keys[i].k; i++)
        env_put(env, n, keys[i].k, strlen(keys[i].k), keys[i].v);
    keys_env_free(keys);
    return 0;
}

static void put_all(struct kv **env, size_t *n, const struct kv *list)
{
    for (; list && list->k; list++)
        env_put(env, n, list->k, strlen(list->k), list->v ? list->v : "");
}

struct kv *core_env_join(const struct kv *below, const struct kv *above)
{
    struct kv *env = xcalloc(1, sizeof(*env));
    size_t n = 0;

    put_all(&env, &n, below);
    put_all(&env, &n, above);
    return env;
}

static bool is_secret(const struct project *p, const char *name)
{
    for (size_t i = 0; p && i < p->n_vars; i++)
        if (p->vars[i].secret && str_eq(p->vars[i].name, name))
            return true;
    return false;
}

/* A name has no -, so that is what stands between them. */
char *core_env_own_names(const struct kv *own, const struct project *p)
{
    struct buf b = BUF_INIT;

    for (; own && own->k; own++)
        if (keys_variable_of(own->k) || is_secret(p, own->k))
            buf_addf(&b, "%s%s", b.len ? "-" : "", own->k);
    return b.len ? buf_detach(&b, NULL) : NULL;
}

static bool in_names(const char *names, const char *k)
{
    size_t n = strlen(k);

    for (const char *p = names; p; p = strchr(p, '-')) {
        p += *p == '-';
        if (strncmp(p, k, n) == 0 && (p[n] == '-' || !p[n]))
            return true;
    }
    return false;
}

/* What the sandbox has of the user's own word is not given to its agent from here. */
static void drop(struct kv *env, const char *names)
{
    size_t keep = 0;

    for (size_t i = 0; env && env[i].k; i++) {
        struct kv v = env[i];

        env[i] = (struct kv){NULL, NULL};
        if (!in_names(names, v.k)) {
            env[keep++] = v;
            continue;
        }
        secret_wipe(v.v, strlen(v.v));
        free(v.k);
        free(v.v);
    }
}

static bool given_before(const char *names, unsigned bits)
{
    for (unsigned bit = 1; bit <= TOOL_GITHUB; bit <<= 1)
        for (size_t i = 0; (bits & bit) && tool_provider_env(bit, i); i++)
            if (in_names(names, tool_provider_env(bit, i)))
                return true;
    return false;
}

struct kv *core_tool_env(const struct keys_at *at, const struct secret *data_key,
                         const struct core_env_q *q, const struct kv *vars,
                         char **missing, struct err *e)
{
    unsigned bits = tool_needs(q->t, q->model);
    struct kv *env = xcalloc(1, sizeof(*env));
    const char *needs[8] = {NULL};
    size_t n = 0, n_needs = 0;

    for (size_t i = 0; q->t->env && q->t->env[i]; i++) {
        const char *eq = strchr(q->t->env[i], '=');
        if (eq)
            env_put(&env, &n, q->t->env[i], (size_t)(eq - q->t->env[i]), eq + 1);
    }
    for (unsigned bit = 1; bit <= TOOL_GITHUB; bit <<= 1)
        if (bits & bit)
            needs[n_needs++] = tool_provider_name(bit);
    keys_provider_source(at, needs, missing);
    /* what the user gives with the sandbox stands above every level */
    if (n_needs && !given_by(q->own, bits) && !given_before(q->own_names, bits) && add_keys(at, data_key, needs, &env, &n, e) != 0) {
        keys_env_free(env);
        free(*missing);
        *missing = NULL;
        return NULL;
    }
    put_all(&env, &n, vars);
    put_all(&env, &n, q->own);
    drop(env, q->own_names);
    return env;
}
