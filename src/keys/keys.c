/* Which E2B key is in force, and the keys that were taken out of the environment. */
#include <cct/keys.h>
#include <cct/model/sandbox.h>
#include <cct/util/arr.h>
#include <cct/util/buf.h>
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CONFIG_MAX = 256 << 10, KEY_MAX = 4096 };

static const char *const source_names[] = {
    [KEY_NONE] = "none",         [KEY_ENV] = "environment", [KEY_PROJECT] = "project key",
    [KEY_USER] = "user key",     [KEY_E2B_CLI] = "E2B CLI config",
};

const char *key_source_name(enum key_source s)
{
    return source_names[s];
}

void key_found_release(struct key_found *k)
{
    secret_free(k->key);
    free(k->hidden);
    free(k->team_id);
    *k = (struct key_found){0};
}

/* --- out of the environment ---------------------------------------------------- */

/* Filled once, before there are threads; constant after that. */
static struct {
    const char *name;
    struct secret *value;
} taken[] = {{"E2B_API_KEY", NULL},       {"ANTHROPIC_API_KEY", NULL},
             {"OPENAI_API_KEY", NULL},    {"CLAUDE_CODE_OAUTH_TOKEN", NULL},
             {"CODEX_API_KEY", NULL},     {"OPENROUTER_API_KEY", NULL},
             {"GITHUB_TOKEN", NULL},      {"GH_TOKEN", NULL}};

void keys_take_env(void)
{
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        secret_free(taken[i].value);
        taken[i].value = secret_take_env(taken[i].name);
    }
}

static const struct secret *taken_of(const char *name)
{
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
        if (str_eq(taken[i].name, name))
            return taken[i].value;
    return NULL;
}

/* --- E2B ------------------------------------------------------------------------- */

/* A key as pasted may have blanks around it; inside it only visible ASCII makes a
 * header value. Its form is not judged further: other deployments have others. */
static struct secret *clean_key(const char *s, const char *where, struct err *e)
{
    size_t len = strlen(s);

    while (len && (unsigned char)s[len - 1] <= ' ')
        len--;
    while (len && (unsigned char)*s <= ' ')
        s++, len--;
    if (len == 0)
        return NULL;
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)s[i] > ' ' && (unsigned char)s[i] < 0x7f && len <= KEY_MAX)
            continue;
        err_set(e, ERR_INVALID, "cannot use the E2B key of %s: it holds blanks or other characters "
                "that no key has; set it again", where);
        return NULL;
    }
    return secret_new(s, len);
}

static struct secret *env_key(bool *set, struct err *e)
{
    const struct secret *raw = taken_of("E2B_API_KEY");
    struct secret *key;

    *set = raw != NULL;
    if (!raw)
        return NULL;
    key = clean_key(secret_value(raw), "E2B_API_KEY", e);
    if (!key && !(e && e->code))
        *set = false; /* only blanks: as good as unset */
    return key;
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

struct cli_config {
    struct secret *key;
    char *team_id;
};

static void read_config(const char *path, const char *text, size_t len, struct cli_config *c,
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
        c->key = clean_key(key, path, e);
    if (c->key)
        c->team_id = xstrdup(team);
    wipe_strings(j);
    json_free(j);
}

static void find_config(struct cli_config *c, struct err *e)
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
        read_config(path, text, len, c, &why);
    else if (why.code == ERR_NOTFOUND)
        err_clear(&why);
    if (why.code && e && !e->code)
        *e = why;
    secret_wipe(text, text ? len : 0);
    free(text);
    free(path);
}

static bool same_key(const struct secret *a, const struct secret *b)
{
    return secret_len(a) == secret_len(b) &&
           memcmp(secret_value(a), secret_value(b), secret_len(a)) == 0;
}

static void note_hidden(struct key_found *k, const struct secret *other, enum key_source s)
{
    char mask[16];

    secret_mask(other, mask);
    free(k->hidden);
    k->hidden = xasprintf("hides %s (%s)", mask, key_source_name(s));
}

/* A set but unusable variable does not fall back to another key in silence: the
 * user meant that one. */
void keys_find_e2b(struct key_found *k, struct err *e)
{
    struct cli_config cli = {0};
    struct err own = {0};
    bool set;

    *k = (struct key_found){0};
    err_clear(&own);
    k->key = env_key(&set, &own);
    find_config(&cli, &own);
    if (k->key) {
        k->source = KEY_ENV;
        if (cli.key && !same_key(k->key, cli.key))
            note_hidden(k, cli.key, KEY_E2B_CLI);
        else if (cli.key)
            k->team_id = xstrdup(cli.team_id);
    } else if (!set && cli.key) {
        k->source = KEY_E2B_CLI;
        k->key = secret_dup(cli.key);
        k->team_id = xstrdup(cli.team_id);
    }
    secret_free(cli.key);
    free(cli.team_id);
    if (e)
        *e = own;
}

/* --- providers ----------------------------------------------------------------- */

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

static const char *const *names_of(const char *provider)
{
    for (size_t i = 0; i < sizeof(providers) / sizeof(providers[0]); i++)
        if (str_eq(providers[i].provider, provider))
            return providers[i].names;
    return NULL;
}

static const char *find_value(const char *const *names)
{
    for (; names && *names; names++) {
        const struct secret *v = taken_of(*names);
        if (v)
            return secret_value(v);
    }
    return NULL;
}

struct kv *keys_provider_env(const char *const *needs, char **missing)
{
    ARR(struct kv) found = ARR_INIT;
    struct buf lack = BUF_INIT;

    for (; needs && *needs; needs++) {
        const char *const *names = names_of(*needs);
        const char *v = find_value(names);
        for (; v && *names; names++)
            *ARR_PUSH(&found) = (struct kv){xstrdup(*names), xstrdup(v)};
        if (!v)
            buf_addf(&lack, "%s%s", lack.len ? " or " : "", *needs);
    }
    if (missing)
        *missing = !found.n && lack.len ? buf_detach(&lack, NULL) : NULL;
    buf_release(&lack);
    ARR_PUSH(&found); /* the end: k is NULL */
    return found.v;
}

void keys_env_free(struct kv *env)
{
    for (struct kv *v = env; v && v->k; v++) {
        secret_wipe(v->v, strlen(v->v));
        free(v->k);
        free(v->v);
    }
    free(env);
}
