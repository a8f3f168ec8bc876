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

static void add_name(struct buf *b, const char *name)
{
    buf_addf(b, "%s%s", b->len ? "-" : "", name);
}

/* A name has no -, so that is what stands between them. A key in a plain variable of the
 * project is in the sandbox, too. */
char *core_env_own_names(const struct kv *own, const struct project *p)
{
    struct buf b = BUF_INIT;

    for (size_t i = 0; p && i < p->n_vars; i++)
        if (!p->vars[i].secret && keys_in_variable(p->vars[i].name) &&
            !kv_get(own, p->vars[i].name))
            add_name(&b, p->vars[i].name);
    for (; own && own->k; own++)
        if (keys_in_variable(own->k) || is_secret(p, own->k))
            add_name(&b, own->k);
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

static bool given_before(const char *names, unsigned bits, char *const *needs_env)
{
    for (unsigned bit = 1; bit <= TOOL_GITHUB; bit <<= 1)
        for (size_t i = 0; (bits & bit) && tool_provider_env(bit, i); i++)
            if (in_names(names, tool_provider_env(bit, i)))
                return true;
    for (; needs_env && *needs_env; needs_env++)
        if (in_names(names, *needs_env))
            return true;
    return false;
}

/* What the user gives with the sandbox, or to the project, stands above every level. */
static bool is_given(const struct core_env_q *q, const struct key_need *n, unsigned bits)
{
    const char *provider;

    return keys_given(n, n->own, &provider) || keys_given(n, n->vars, &provider) ||
           given_before(q->own_names, bits, n->needs_env);
}

/* The tool's own variables, as our environment had them. */
static bool add_variables(char *const *names, struct kv **env, size_t *n)
{
    bool any = false;

    for (; names && *names; names++) {
        const struct secret *s = keys_taken(*names);

        if (s)
            env_put(env, n, *names, strlen(*names), secret_value(s));
        any |= s != NULL;
    }
    return any;
}

static char *add_missing(char *take, char *const *names)
{
    struct buf b = BUF_INIT;

    buf_adds(&b, take ? take : "");
    for (; names && *names; names++)
        buf_addf(&b, "%s%s", b.len ? " or " : "", *names);
    free(take);
    if (b.len)
        return buf_detach(&b, NULL);
    buf_release(&b);
    return NULL;
}

/* The keys of the level in force, else the tool's own variables: never two kinds, between
 * which it would choose by a rule of its own. 0 or a code. */
static int put_keys(const struct keys_at *at, const struct secret *data_key,
                    const struct key_need *need, struct kv **env, size_t *n, char **missing,
                    struct err *e)
{
    if (keys_provider_source(at, need->needs, missing) != KEY_NONE)
        return add_keys(at, data_key, need->needs, env, n, e);
    if (!add_variables(need->needs_env, env, n)) {
        *missing = add_missing(*missing, need->needs_env);
        return 0;
    }
    free(*missing);
    *missing = NULL;
    return 0;
}

struct kv *core_tool_env(const struct keys_at *at, const struct secret *data_key,
                         const struct core_env_q *q, const struct kv *vars,
                         char **missing, struct err *e)
{
    unsigned bits = tool_needs(q->t, q->model);
    struct kv *env = xcalloc(1, sizeof(*env));
    const char *needs[TOOL_NAMES];
    struct key_need need = {q->t->label, needs, tool_needs_env(q->t, q->model), q->own, vars};
    size_t n = 0;

    *missing = NULL;

    for (size_t i = 0; q->t->env && q->t->env[i]; i++) {
        const char *eq = strchr(q->t->env[i], '=');
        if (eq)
            env_put(&env, &n, q->t->env[i], (size_t)(eq - q->t->env[i]), eq + 1);
    }
    tool_provider_names(bits, needs);
    if (!is_given(q, &need, bits) && put_keys(at, data_key, &need, &env, &n, missing, e) != 0) {
        keys_env_free(env);
        return NULL;
    }
    put_all(&env, &n, vars);
    put_all(&env, &n, q->own);
    drop(env, q->own_names);
    return env;
}
