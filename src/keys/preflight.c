/* Before money is spent: which key an agent would get, what that hides, and what is wrong.
 * One sentence for the form, for `new` and for the row of an agent that was refused. */
#include "keys_priv.h"

#include <cct/model/sandbox.h>
#include <cct/util/buf.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

void key_check_release(struct key_check *c)
{
    free(c->text);
    *c = (struct key_check){0};
}

static void add_names(struct buf *b, const char *const *needs, bool variables)
{
    for (size_t i = 0; needs[i]; i++)
        buf_addf(b, "%s%s", i ? " or " : "",
                 variables ? keys_names_of(needs[i])[0] : needs[i]);
}

static void mask_at(const struct keys_at *at, enum key_source level, const char *provider,
                    char *mask)
{
    const struct st_key *row = keys_level_row(at, level, provider);
    const struct secret *s = level == KEY_ENV ? keys_in_environment(provider) : NULL;

    *mask = '\0';
    if (row)
        key_row_mask(row, mask);
    else if (s)
        secret_mask(s, mask);
}

static const struct kv *set_in(const struct kv *list, const char *name)
{
    for (; list && list->k; list++)
        if (str_eq(list->k, name) && list->v && *list->v)
            return list;
    return NULL;
}

const struct kv *keys_given(const struct key_need *n, const struct kv *list, const char **provider)
{
    const struct kv *v = NULL;

    *provider = NULL;
    for (size_t i = 0; !v && n->needs[i]; i++)
        for (const char *const *name = keys_names_of(n->needs[i]); !v && name && *name; name++)
            if ((v = set_in(list, *name)))
                *provider = n->needs[i];
    for (char *const *name = n->needs_env; !v && name && *name; name++)
        v = set_in(list, *name);
    return v;
}

/* Keys of farther levels that would count without the one in force. */
static void add_hidden(struct buf *b, const struct keys_at *at, const struct key_need *n,
                       enum key_source in_force, const char *mask)
{
    char other[16];
    bool any = false;

    for (int level = in_force + 1; level <= KEY_USER; level++)
        for (size_t i = 0; n->needs[i]; i++) {
            mask_at(at, (enum key_source)level, n->needs[i], other);
            if (!*other || str_eq(other, mask))
                continue;
            buf_addf(b, "%s%s %s (%s)", any ? ", " : "; hides ", n->needs[i], other,
                     key_source_name((enum key_source)level));
            any = true;
        }
}

/* How to get another one into that level. */
static void add_fix(struct buf *b, enum key_source level, const char *provider)
{
    if (level == KEY_ENV)
        buf_addf(b, "set %s again before cc-tui is started, or unset it", keys_names_of(provider)[0]);
    else
        buf_addf(b, "replace it with cc-tui keys add %s%s, or take it away with keys rm", provider,
                 level == KEY_PROJECT ? " --project NAME" : "");
}

/* --- what is in force ------------------------------------------------------------------- */

/* Stored keys were looked at when they were added. One of the environment may be for a
 * service of another kind under the same name, so that a strange form is told and no more. */
static void check_form(struct key_check *c, struct buf *b)
{
    const struct secret *s = c->source == KEY_ENV ? keys_in_environment(c->provider) : NULL;
    const char *of = s ? keys_form_of(s) : NULL;

    if (s && !keys_sendable(s)) {
        c->state = KEY_UNUSABLE;
        buf_addf(b, "%s %s (%s) is no key, it holds blanks or other characters that no key has: ",
                 keys_names_of(c->provider)[0], c->mask, key_source_name(c->source));
    } else if (of && !str_eq(of, c->provider)) {
        c->state = KEY_DOUBTFUL;
        buf_addf(b, "%s %s (%s) looks like a key of %s, not of %s: ",
                 keys_names_of(c->provider)[0], c->mask, key_source_name(c->source), of,
                 c->provider);
    } else {
        c->state = KEY_READY;
        buf_addf(b, "%s %s (%s)", c->provider, c->mask, key_source_name(c->source));
        return;
    }
    add_fix(b, c->source, c->provider);
}

static void found(const struct keys_at *at, const struct key_need *n, struct key_check *c,
                  struct buf *b)
{
    const struct st_key *row = keys_level_row(at, c->source, c->provider);
    struct err e = {0};

    mask_at(at, c->source, c->provider, c->mask);
    if (row && keys_need_yes(at, row, &e) != 0) {
        c->state = KEY_UNUSABLE;
        buf_addf(b, "%s", e.text);
    } else if (row && at->locked) {
        c->state = KEY_UNUSABLE;
        buf_addf(b, "the %s key %s (%s) cannot be used: %s", c->provider, c->mask,
                 key_source_name(c->source), at->locked);
    } else {
        check_form(c, b);
    }
    size_t before = b->len;
    add_hidden(b, at, n, c->source, c->mask);
    if (c->state == KEY_READY && b->len > before)
        c->state = KEY_HIDES;
}

/* The first of the tool's own variables that is in our environment, or NULL. */
static const char *own_variable(const struct key_need *n)
{
    for (char *const *name = n->needs_env; name && *name; name++)
        if (keys_taken(*name))
            return *name;
    return NULL;
}

/* It comes with the sandbox, from the project's variables or out of our environment. */
static bool found_variable(const struct keys_at *at, const struct key_need *n, struct key_check *c,
                           struct buf *b)
{
    const struct kv *v = keys_given(n, n->own, &c->provider);
    bool own = v != NULL;
    size_t before;

    if (!v)
        v = keys_given(n, n->vars, &c->provider);
    if (v) {
        buf_addf(b, own ? "%s is given with the sandbox" : "%s is a variable of the project %s", v->k,
                 at->project ? at->project : "default");
        before = b->len;
        add_hidden(b, at, n, KEY_NONE, "");
        c->state = b->len > before ? KEY_HIDES : KEY_READY;
        return true;
    }
    if (keys_provider_source(at, n->needs, NULL) || !(c->variable = own_variable(n)))
        return false;
    c->source = KEY_ENV;
    secret_mask(keys_taken(c->variable), c->mask);
    buf_addf(b, "%s %s (%s)", c->variable, c->mask, key_source_name(KEY_ENV));
    c->state = KEY_READY;
    return true;
}

/* --- what is missing ---------------------------------------------------------------------- */

/* Keys that are there, but not where they count. */
static void add_elsewhere(struct buf *b, const struct keys_at *at, const struct key_need *n)
{
    char mask[16];
    size_t told = 0;

    for (size_t i = 0; at->stored && i < at->stored->n && told < 3; i++) {
        const struct st_key *k = &at->stored->v[i];
        for (size_t p = 0; n->needs[p]; p++)
            if (k->project && str_eq(k->provider, n->needs[p]) &&
                !str_eq(k->project, at->stored->project)) {
                key_row_mask(k, mask);
                buf_addf(b, "; %s %s is the key of the project %s, which is not the current one",
                         k->provider, mask, k->project_name ? k->project_name : "?");
                told++;
            }
    }
}

/* A key of another provider that this tool does not use. */
static void add_other(struct buf *b, const struct keys_at *at, const struct key_need *n)
{
    char mask[16];

    for (size_t i = 1; key_providers[i]; i++) {
        bool needed = false;
        for (size_t p = 0; n->needs[p]; p++)
            needed |= str_eq(n->needs[p], key_providers[i]);
        for (int level = KEY_ENV; !needed && level <= KEY_USER; level++) {
            mask_at(at, (enum key_source)level, key_providers[i], mask);
            if (*mask && !str_eq(key_providers[i], "github")) {
                buf_addf(b, "; %s does not use the key of %s %s (%s)", n->label, key_providers[i],
                         mask, key_source_name((enum key_source)level));
                return;
            }
        }
    }
}

static void add_variables(struct buf *b, const struct key_need *n)
{
    for (size_t i = 0; n->needs_env && n->needs_env[i]; i++)
        buf_addf(b, "%s%s", !i ? "" : n->needs_env[i + 1] ? ", " : " or ", n->needs_env[i]);
}

/* Of a tool whose key is of none of our providers. */
static void missing_variable(const struct keys_at *at, const struct key_need *n,
                             struct key_check *c, struct buf *b)
{
    const char *project = at->project ? at->project : "default";

    c->state = KEY_LACKS;
    c->variable = n->needs_env[0];
    buf_addf(b, "%s needs the variable ", n->label);
    add_variables(b, n);
    buf_addf(b, ", and it is set nowhere: store it with cc-tui projects secret %s %s, give it with "
             "--env or in an --env-file, or set it before cc-tui is started", project,
             n->needs_env[0]);
}

static void missing(const struct keys_at *at, const struct key_need *n, struct key_check *c,
                    struct buf *b)
{
    size_t before;

    if (!n->needs[0]) {
        missing_variable(at, n, c, b);
        return;
    }
    c->state = KEY_LACKS;
    c->provider = n->needs[0];
    buf_addf(b, "%s needs a key of ", n->label);
    add_names(b, n->needs, false);
    buf_addf(b, ", and there is none, neither in the environment, for the project %s nor for you",
             at->project ? at->project : "default");
    before = b->len;
    if (at->lost)
        buf_addf(b, "; %s", at->lost);
    else
        add_elsewhere(b, at, n);
    if (b->len == before)
        add_other(b, at, n);
    buf_addf(b, ": store one with cc-tui keys add %s (--project NAME: for that project alone), or "
             "set ", n->needs[0]);
    add_names(b, n->needs, true);
    if (n->needs_env)
        buf_addf(b, " or ");
    add_variables(b, n);
    buf_addf(b, " before cc-tui is started");
}

void keys_preflight(const struct keys_at *at, const struct key_need *n, struct key_check *c)
{
    struct buf b = BUF_INIT;

    *c = (struct key_check){0};
    if (!n->needs[0] && !n->needs_env) {
        buf_addf(&b, "no key is needed");
    } else if (!found_variable(at, n, c, &b)) {
        c->source = keys_provider_source(at, n->needs, NULL);
        for (size_t i = 0; c->source && n->needs[i] && !c->provider; i++)
            if (keys_level_has(at, c->source, n->needs[i]))
                c->provider = n->needs[i];
        if (c->source)
            found(at, n, c, &b);
        else
            missing(at, n, c, &b);
    }
    c->text = buf_detach(&b, NULL);
}

char *keys_refused(const struct keys_at *at, const struct key_need *n)
{
    struct key_check c;
    struct buf b = BUF_INIT;

    keys_preflight(at, n, &c);
    if (c.variable && c.source) {
        buf_addf(&b, "the service refused the key in %s %s (%s): set %s again before cc-tui is "
                 "started, or give another one with the sandbox", c.variable, c.mask,
                 key_source_name(c.source), c.variable);
    } else if (c.source) {
        buf_addf(&b, "%s refused the key %s (%s): ", c.provider, c.mask, key_source_name(c.source));
        add_fix(&b, c.source, c.provider);
        add_hidden(&b, at, n, c.source, c.mask);
    } else if (c.state < KEY_LACKS && (c.provider || n->needs_env)) {
        buf_addf(&b, "%s: give another one with the sandbox", c.text);
        if (c.provider)
            buf_addf(&b, ", or store one with cc-tui keys add %s", c.provider);
    } else {
        buf_addf(&b, "%s", c.text);
    }
    key_check_release(&c);
    return buf_detach(&b, NULL);
}
