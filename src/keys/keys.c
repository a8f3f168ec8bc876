/* One order of keys: which is in force, and what it hides. */
#include "keys_priv.h"

#include <cct/secrets/digest.h>
#include <cct/secrets/vault.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* --- the service ------------------------------------------------------------------ */

const char *keys_domain(void)
{
    const char *domain = getenv("E2B_DOMAIN");

    return domain && *domain ? domain : "e2b.app";
}

char *keys_api(void)
{
    const char *v = getenv("E2B_API_URL");
    char *url = v && *v ? xstrdup(v) : xasprintf("https://api.%s", keys_domain());

    while (str_ends(url, "/"))
        url[strlen(url) - 1] = '\0';
    return url;
}

bool keys_api_is_own(const char *api)
{
    static const char *const own[] = {"https://api.e2b.app", "https://api.e2b.dev",
                                      "https://api.e2b.pro"};

    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        if (str_eq_nocase(api, own[i]))
            return true;
    return false;
}

/* --- rows ---------------------------------------------------------------------------- */

void key_mark(const struct secret *key, char *dst)
{
    unsigned char h[32];

    if (secret_len(key) < 12) {
        str_copy(dst, 12, "short");
        return;
    }
    digest_sha256(h, secret_value(key), secret_len(key));
    hex_encode(dst, h, 4);
}

void key_row_mask(const struct st_key *row, char *dst)
{
    snprintf(dst, 16, "****%s", row->last4);
}

enum key_source key_row_source(const struct st_key *row)
{
    return row->project ? KEY_PROJECT : KEY_USER;
}

const struct st_key *keys_row(const struct st_keys *k, const char *project, const char *provider,
                              const char *api)
{
    for (size_t i = 0; k && i < k->n; i++)
        if (str_eq(k->v[i].project, project) && str_eq(k->v[i].provider, provider) &&
            (!api || str_eq(k->v[i].api, api)))
            return &k->v[i];
    return NULL;
}

/* --- E2B -------------------------------------------------------------------------------- */

/* Keys of one account hide nothing of each other. */
static void note_hidden(struct key_found *k, const char *mask, const char *mark,
                        enum key_source s)
{
    char *all;

    if (str_eq(mark, k->mark) && str_eq(mask, k->mask))
        return;
    all = xasprintf("%s%s%s (%s)", k->hidden ? k->hidden : "hides ", k->hidden ? ", " : "", mask,
                    key_source_name(s));
    free(k->hidden);
    k->hidden = all;
}

static void note_secret(struct key_found *k, const struct secret *s, enum key_source from)
{
    char mask[16], mark[12];

    secret_mask(s, mask);
    key_mark(s, mark);
    note_hidden(k, mask, mark, from);
}

static void note_row(struct key_found *k, const struct st_key *row)
{
    char mask[16];

    key_row_mask(row, mask);
    note_hidden(k, mask, row->mark, key_row_source(row));
}

/* What lies behind the level in force. */
static void note_rest(struct key_found *k, const struct keys_at *at)
{
    const struct st_key *own = NULL, *user;

    if (at->stored && at->stored->project)
        own = keys_row(at->stored, at->stored->project, "e2b", at->api);
    user = keys_row(at->stored, NULL, "e2b", at->api);
    if (own && k->source < KEY_PROJECT)
        note_row(k, own);
    if (user && k->source < KEY_USER)
        note_row(k, user);
    if (!at->outside->cli)
        return;
    if (k->source < KEY_E2B_CLI)
        note_secret(k, at->outside->cli, KEY_E2B_CLI);
    char mark[12];
    key_mark(at->outside->cli, mark);
    if (str_eq(mark, k->mark))
        k->team_id = xstrdup(at->outside->team_id);
}

static void take_secret(struct key_found *k, const struct secret *s, enum key_source from)
{
    k->source = from;
    k->key = secret_dup(s);
    secret_mask(s, k->mask);
    key_mark(s, k->mark);
}

int keys_need_yes(const struct keys_at *at, const struct st_key *row, struct err *e)
{
    char mask[16];

    if (!row->project || !at->by_folder || at->stored->folder_ok)
        return 0;
    key_row_mask(row, mask);
    return err_set(e, ERR_AUTH, "the .cc-tui of this folder chooses the project '%.64s', whose %s "
                   "key %s is used here only if you say so: run cc-tui keys trust, or start with "
                   "--project", at->project ? at->project : "", row->provider, mask);
}

static int other_service(const struct keys_at *at, const struct st_key *row, struct err *e)
{
    char mask[16];

    key_row_mask(row, mask);
    return err_set(e, ERR_AUTH, "the %s %s was added for %.80s and is not sent to %.80s: add one "
                   "for that with cc-tui keys add e2b%s, or unset E2B_API_URL and E2B_DOMAIN",
                   key_source_name(key_row_source(row)), mask, row->api, at->api,
                   row->project ? " --project" : "");
}

/* True when the level has a key: it is in force, or *e says why it cannot be. */
static bool take_level(const struct keys_at *at, const char *project, struct key_found *k,
                       struct err *e)
{
    const struct st_key *any = keys_row(at->stored, project, "e2b", NULL);
    const struct st_key *row = keys_row(at->stored, project, "e2b", at->api);

    if (!any)
        return false;
    if (keys_need_yes(at, row ? row : any, e) != 0)
        return true;
    if (!row) {
        other_service(at, any, e);
        return true;
    }
    k->source = key_row_source(row);
    k->row = row;
    key_row_mask(row, k->mask);
    str_copy(k->mark, sizeof(k->mark), row->mark ? row->mark : "");
    return true;
}

char *keys_lost(const char *trouble, const char *config_dir)
{
    if (!trouble || !config_dir || !vault_file_any(config_dir))
        return NULL;
    return xasprintf("keys were stored, but they are not there any more: add yours again with "
                     "cc-tui keys add e2b, set E2B_API_KEY, or use --local (%s)", trouble);
}

int keys_api_check(const char *api, struct err *e)
{
    return strchr(api, '@')
               ? err_set(e, ERR_INVALID, "E2B_API_URL must not hold a user name or a password: "
                         "keys go by E2B_API_KEY or cc-tui keys add")
               : 0;
}

void keys_choose(const struct keys_at *at, struct key_found *k, struct err *e)
{
    const struct keys_outside *o = at->outside;
    struct err own = {0};

    *k = (struct key_found){0};
    if (keys_api_check(at->api, &own) != 0)
        ; /* nothing goes there, and it is not repeated */
    else if (o->env)
        take_secret(k, o->env, KEY_ENV);
    else if (o->env_err.code)
        own = o->env_err;
    else if ((at->stored && at->stored->project && take_level(at, at->stored->project, k, &own)) ||
             take_level(at, NULL, k, &own))
        ; /* the nearest level, whether it can be used or not */
    else if (at->lost)
        err_set(&own, ERR_AUTH, "%s", at->lost);
    else if (o->cli)
        take_secret(k, o->cli, KEY_E2B_CLI);
    if (k->source != KEY_NONE)
        note_rest(k, at);
    if (!own.code)
        own = o->cli_err;
    if (e)
        *e = own;
}

/* --- providers ----------------------------------------------------------------------------- */

const char *const key_providers[] = {"e2b",        "anthropic", "anthropic_token", "openai",
                                     "openrouter", "github",    NULL};

bool key_provider_ok(const char *provider)
{
    for (size_t i = 0; key_providers[i]; i++)
        if (str_eq(key_providers[i], provider))
            return true;
    return false;
}
