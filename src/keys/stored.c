/* Keys on their way into the vault and out of it. */
#include "keys_priv.h"

#include <cct/secrets/vault.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <ctype.h>
#include <string.h>

enum { KEY_BYTES_MIN = 8 };

/* --- pastes -------------------------------------------------------------------------- */

/* A piece of the paste; nothing is copied before it is known to be a key. */
struct piece {
    const char *p;
    size_t len;
};

bool keys_visible(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)s[i] <= ' ' || (unsigned char)s[i] >= 0x7f)
            return false;
    return len > 0 && len <= KEY_BYTES_MAX;
}

static void trim(struct piece *t)
{
    while (t->len && (unsigned char)t->p[t->len - 1] <= ' ')
        t->len--;
    while (t->len && (unsigned char)*t->p <= ' ')
        t->p++, t->len--;
}

static bool begins(const struct piece *t, const char *word)
{
    return t->len >= strlen(word) && memcmp(t->p, word, strlen(word)) == 0;
}

static void skip(struct piece *t, size_t n)
{
    t->p += n;
    t->len -= n;
    trim(t);
}

static bool unquote(struct piece *t)
{
    static const char quotes[] = "\"'`";

    if (t->len < 2 || !strchr(quotes, *t->p) || t->p[t->len - 1] != *t->p)
        return false;
    t->p++;
    t->len -= 2;
    trim(t);
    return true;
}

/* Which provider a variable's name speaks of; NULL: none that we know. */
static const char *of_variable(const char *name, size_t len)
{
    static const struct {
        const char *name, *provider;
    } t[] = {{"E2B_API_KEY", "e2b"},
             {"ANTHROPIC_API_KEY", "anthropic"},
             {"CLAUDE_CODE_OAUTH_TOKEN", "anthropic_token"},
             {"ANTHROPIC_AUTH_TOKEN", "anthropic_token"},
             {"OPENAI_API_KEY", "openai"},
             {"CODEX_API_KEY", "openai"},
             {"OPENROUTER_API_KEY", "openrouter"},
             {"GITHUB_TOKEN", "github"},
             {"GH_TOKEN", "github"}};

    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
        if (strlen(t[i].name) == len && memcmp(t[i].name, name, len) == 0)
            return t[i].provider;
    return NULL;
}

const char *keys_variable_of(const char *name)
{
    return of_variable(name, strlen(name));
}

/* `NAME=` or `NAME:` in front, the name in capitals. False: it is another provider's. */
static bool drop_name(struct piece *t, const char *provider, struct err *e)
{
    const char *of;
    size_t n = 0, at;

    while (n < t->len && (isupper((unsigned char)t->p[n]) || isdigit((unsigned char)t->p[n]) ||
                          t->p[n] == '_'))
        n++;
    for (at = n; at < t->len && t->p[at] == ' ';)
        at++;
    if (n < 3 || at >= t->len || (t->p[at] != '=' && t->p[at] != ':'))
        return true;
    of = of_variable(t->p, n);
    if (of && !str_eq(of, provider)) {
        err_set(e, ERR_INVALID, "that is the variable of %s, not of %s; run cc-tui keys add %s", of,
                provider, of);
        return false;
    }
    skip(t, at + 1);
    return true;
}

/* Some providers' keys say whose they are; the longest beginning counts. */
static const char *of_form(const struct piece *t)
{
    static const struct {
        const char *begin, *provider;
    } forms[] = {{"e2b_", "e2b"},         {"sk-ant-oat", "anthropic_token"},
                 {"sk-ant-", "anthropic"}, {"sk-or-", "openrouter"},
                 {"sk-", "openai"},        {"ghp_", "github"},
                 {"gho_", "github"},       {"ghs_", "github"},
                 {"github_pat_", "github"}};

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
        if (begins(t, forms[i].begin))
            return forms[i].provider;
    return NULL;
}

const char *keys_form_of(const struct secret *key)
{
    struct piece t = {secret_value(key), secret_len(key)};

    trim(&t);
    return of_form(&t);
}

bool keys_sendable(const struct secret *key)
{
    struct piece t = {secret_value(key), secret_len(key)};

    trim(&t);
    return keys_visible(t.p, t.len);
}

struct secret *keys_clean(const char *text, size_t len, const char *provider, struct err *e)
{
    struct piece t = {text, len};
    const char *of;

    if (begins(&t, "\xEF\xBB\xBF"))
        skip(&t, 3);
    trim(&t);
    unquote(&t);
    if (begins(&t, "export ") || begins(&t, "set "))
        skip(&t, begins(&t, "set ") ? 4 : 7);
    else if (begins(&t, "$env:"))
        skip(&t, 5);
    if (!drop_name(&t, provider, e))
        return NULL;
    while (t.len && t.p[t.len - 1] == ';') {
        t.len--;
        trim(&t);
    }
    unquote(&t);
    if (t.len == 0) {
        err_set(e, ERR_INVALID, "no key was given; nothing is stored");
        return NULL;
    }
    if (!keys_visible(t.p, t.len)) {
        err_set(e, ERR_INVALID, "that is no key: it holds blanks, line ends or other characters "
                "that no key has, or is longer than %d; paste the key alone", KEY_BYTES_MAX);
        return NULL;
    }
    if (t.len < KEY_BYTES_MIN) {
        err_set(e, ERR_INVALID, "that is no key: it has less than %d characters; was it cut off?",
                KEY_BYTES_MIN);
        return NULL;
    }
    of = of_form(&t);
    if (of && !str_eq(of, provider)) {
        err_set(e, ERR_INVALID, "that looks like a key of %s, not of %s; run cc-tui keys add %s", of,
                provider, of);
        return NULL;
    }
    return secret_new(t.p, t.len);
}

/* --- rows ---------------------------------------------------------------------------------- */

static struct vault_place place_of(const struct st_key *row)
{
    return (struct vault_place){row->project, row->provider, row->api, row->mark, row->last4};
}

void keys_seal(struct st_key *row, const struct secret *data_key, const char *project,
               const char *provider, const char *api, const struct secret *key)
{
    char mask[16], mark[12];
    struct vault_place p;

    secret_mask(key, mask);
    key_mark(key, mark);
    *row = (struct st_key){.project = xstrdup(project), .provider = xstrdup(provider),
                           .api = xstrdup(api), .mark = xstrdup(mark), .version = VAULT_VERSION,
                           .created_at = clock_wall_ms()};
    str_copy(row->last4, sizeof(row->last4), mask + 4);
    p = place_of(row);
    row->sealed = vault_seal(data_key, &p, key, &row->sealed_len);
}

struct secret *keys_open(const struct st_key *row, const struct secret *data_key, struct err *e)
{
    struct vault_place p = place_of(row);
    char mask[16];

    if (data_key)
        return vault_open(data_key, &p, row->version, row->sealed, row->sealed_len, e);
    key_row_mask(row, mask);
    err_set(e, ERR_AUTH, "the %s %s (%s) is locked: start with --unlock, or give the passphrase by "
            "--passphrase-fd", row->provider, mask, key_source_name(key_row_source(row)));
    return NULL;
}
