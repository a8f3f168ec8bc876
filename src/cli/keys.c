/* cc-tui keys: what is in force and what it hides, adding, removing, trying. A key is never
 * an argument: every user of the machine can read those, and the shell keeps them. */
#include "cli_priv.h"

#include <cct/keys.h>
#include <cct/secrets/vault.h>
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int bad_provider(const char *word)
{
    struct buf b = BUF_INIT;
    int near;
    size_t n = 0;

    while (key_providers[n])
        buf_addf(&b, "%s%s", n ? ", " : "", key_providers[n]), n++;
    near = strlen(word) <= 20 ? str_nearest(word, key_providers, n) : -1;
    /* the word is not repeated: it may be a key */
    int status = near >= 0 ? cli_usage("there is no such provider (did you mean '%s'?)",
                                       key_providers[near])
                           : cli_usage("a provider is one of %s", buf_str(&b));
    buf_release(&b);
    return status;
}

/* --- ls --------------------------------------------------------------------------- */

char *cli_keys_protection(struct cli_app *a, bool *good)
{
    const struct keys_at *at = app_keys(a->app);
    const struct st_vault *v = at->stored ? &at->stored->vault : NULL;
    struct err e = {0};
    struct secret *s;
    char *path, *text;

    *good = true;
    if (!v || !*v->uid)
        return xstrdup("nothing is stored yet; a stored key is sealed, its data key lies in a key "
                       "file apart from the database");
    if (v->passphrase)
        return xstrdup("stored keys are sealed; the data key is protected by a passphrase");
    path = vault_file_path(app_config_dir(a->app), v->uid);
    s = vault_file_read(app_config_dir(a->app), v->uid, &e);
    *good = s && vault_is_key(s, v->uid, v->proof, v->proof_len);
    if (*good)
        text = xasprintf("stored keys are sealed; the data key lies in the key file '%s'", path);
    else
        text = xasprintf("stored keys cannot be opened: %s",
                         e.code ? e.text : "the key file is of another vault");
    secret_free(s);
    free(path);
    return text;
}

/* Is this the level that counts for its provider, here? */
static bool in_force(const struct keys_at *at, const struct st_key *row)
{
    const char *needs[] = {row->provider, NULL};
    struct key_found k;
    struct err e = {0};
    bool is;

    if (row->project && !str_eq(row->project, at->stored->project))
        return false;
    if (!str_eq(row->provider, "e2b"))
        return keys_provider_source(at, needs, NULL) == key_row_source(row);
    keys_choose(at, &k, &e);
    is = k.row == row;
    key_found_release(&k);
    return is;
}

static void row_text(const struct keys_at *at, const struct st_key *row)
{
    char mask[16], when[32];
    char *level = row->project ? xasprintf("project %s", row->project_name) : xstrdup("user");

    key_row_mask(row, mask);
    clock_format_rfc3339(when, sizeof(when), row->created_at);
    cli_out("%-24s %-16s %-9s %.10s  %-9s%s%s\n", level, row->provider, mask, when,
           in_force(at, row) ? "in force" : "", *row->api ? " " : "", row->api);
    free(level);
}

static void row_json(struct jw *w, const struct keys_at *at, const struct st_key *row)
{
    char mask[16], when[32];

    key_row_mask(row, mask);
    clock_format_rfc3339(when, sizeof(when), row->created_at);
    jw_obj(w, NULL);
    jw_str(w, "level", row->project ? "project" : "user");
    jw_str(w, "project", row->project_name);
    jw_str(w, "provider", row->provider);
    jw_str(w, "key", mask);
    jw_str(w, "api", *row->api ? row->api : NULL);
    jw_str(w, "createdAt", when);
    jw_bool(w, "inForce", in_force(at, row));
    jw_end(w);
}

static void ls_json(const struct keys_at *at, const struct key_found *k, const struct err *e,
                    bool local, const char *kept, bool good)
{
    struct buf b = BUF_INIT;
    struct jw w;

    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_str(&w, "api", at->api);
    jw_bool(&w, "local", local);
    jw_str(&w, "source", key_source_name(k->source));
    jw_str(&w, "key", k->source ? k->mask : NULL);
    jw_str(&w, "hides", k->hidden);
    jw_str(&w, "error", e->code ? e->text : NULL);
    jw_bool(&w, "canOpen", good);
    jw_str(&w, "protection", kept);
    jw_bool(&w, "memoryLocked", secrets_memory_locked());
    jw_arr(&w, "stored");
    for (size_t i = 0; at->stored && i < at->stored->n; i++)
        if (!str_eq(at->stored->v[i].provider, ST_VARIABLE))
            row_json(&w, at, &at->stored->v[i]);
    jw_end(&w);
    jw_end(&w);
    cli_out_json(&b);
    buf_release(&b);
}

static void ls_text(const struct cli *c, const struct keys_at *at, const struct key_found *k,
                    const struct err *e, bool local, const char *kept)
{
    bool own = keys_api_is_own(at->api);

    if (local)
        cli_out("the local provider is used: no E2B key\n");
    else if (k->source)
        cli_out("E2B key %s (%s)%s%s%s%s\n", k->mask, key_source_name(k->source),
               own ? "" : " at ", own ? "" : at->api, k->hidden ? ", " : "",
               k->hidden ? k->hidden : "");
    else
        cli_out("no E2B key is in force%s\n", e->code ? "" : ": the local provider is used");
    if (e->code)
        cli_tell("%s", e->text);
    for (size_t i = 0; at->stored && i < at->stored->n; i++)
        if (!str_eq(at->stored->v[i].provider, ST_VARIABLE)) /* 'projects show' has those */
            row_text(at, &at->stored->v[i]);
    cli_say(c, "%s", kept);
    if (!secrets_memory_locked())
        cli_say(c, "keys cannot be locked in memory and may reach swap: raise RLIMIT_MEMLOCK "
                   "(ulimit -l)");
}

int cli_keys_ls(struct cli *c)
{
    bool local = cli_has(c, CLI_LOCAL) || cli_has(c, CLI_LOCAL_UNSAFE), good;
    struct cli_app a;
    struct key_found k;
    struct err e = {0};

    if (cli_app_open_keys(&a, c, false, &e) != 0)
        return cli_fail(&e);
    const struct keys_at *at = app_keys(a.app);
    char *kept = cli_keys_protection(&a, &good);
    keys_choose(at, &k, &e);
    struct keys_at shown = *at;
    if (keys_api_check(at->api, NULL) != 0)
        shown.api = "(E2B_API_URL is refused)";
    at = &shown;
    if (cli_json(c))
        ls_json(at, &k, &e, local, kept, good);
    else
        ls_text(c, at, &k, &e, local, kept);
    int status = !good || (e.code && !k.source && !local) ? CLI_KEY : CLI_OK;
    key_found_release(&k);
    free(kept);
    cli_app_close(&a);
    return status;
}

/* --- add --------------------------------------------------------------------------- */

static struct secret *get_key(const struct cli *c, struct err *e)
{
    char *prompt = xasprintf("key of %s (not shown): ", c->args[0]);
    struct secret *raw = cli_secret_from(c, prompt, e), *key;

    free(prompt);
    if (!raw)
        return NULL;
    key = keys_clean(secret_value(raw), secret_len(raw), c->args[0], e);
    secret_free(raw);
    return key;
}

static void done_json(const struct cli *c, const char *did, const char *mask)
{
    struct buf b = BUF_INIT;
    struct jw w;

    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_str(&w, "provider", c->args[0]);
    jw_str(&w, "project", cli_has(c, CLI_PROJECT) ? c->project : NULL);
    if (mask)
        jw_str(&w, "key", mask);
    jw_str(&w, "done", did);
    jw_end(&w);
    cli_out_json(&b);
    buf_release(&b);
}

/* What it means now, as another level may stand in front of it. */
static void say_force(const struct cli *c, struct cli_app *a)
{
    struct keys_at at = *app_keys(a->app);
    struct key_found k;
    struct err e = {0};

    if (!str_eq(c->args[0], "e2b"))
        return;
    keys_choose(&at, &k, &e);
    if (e.code)
        cli_say(c, "%s", e.text);
    if (k.source)
        cli_say(c, "in force here: %s (%s)%s%s", k.mask, key_source_name(k.source),
                k.hidden ? ", " : "", k.hidden ? k.hidden : "");
    key_found_release(&k);
}

static int change(struct cli *c, struct secret *take, const char *did)
{
    bool project = cli_has(c, CLI_PROJECT);
    char mask[16] = "";
    struct cli_app a;
    struct err e = {0};
    uint64_t req;

    if (take)
        secret_mask(take, mask);
    if (cli_app_open_keys(&a, c, take != NULL, &e) != 0 ||
        (!take && app_go_online(a.app, &e) != 0)) {
        secret_free(take);
        return cli_fail(&e);
    }
    req = take ? app_key_add(a.app, c->args[0], project, take)
               : app_key_rm(a.app, c->args[0], project);
    int status = cli_app_wait(&a, req, &e) == 0 ? CLI_OK : cli_app_fail(&a, &e);
    if (status == CLI_OK && cli_json(c))
        done_json(c, did, take ? mask : NULL);
    else if (status == CLI_OK)
        cli_say(c, "%s %s%s%s for %s%s", did, c->args[0], *mask ? " " : "", mask,
                project ? "the project " : "you", project ? c->project : "");
    if (status == CLI_OK)
        say_force(c, &a);
    cli_app_close(&a);
    return status;
}

static int refuse_argument(struct cli *c)
{
    char *how = xasprintf("keys add %s", c->args[0]);
    int status = cli_refuse_secret_argument(c, 1, how);

    free(how);
    return status;
}

int cli_keys_add(struct cli *c)
{
    struct err e = {0};
    struct secret *key;

    if (!key_provider_ok(c->args[0]))
        return bad_provider(c->args[0]);
    if (c->n_args > 1)
        return refuse_argument(c);
    if (cli_has(c, CLI_READONLY))
        return cli_usage("'keys add' does nothing with --readonly");
    key = get_key(c, &e);
    return key ? change(c, key, "stored") : cli_fail(&e);
}

int cli_keys_rm(struct cli *c)
{
    if (!key_provider_ok(c->args[0]))
        return bad_provider(c->args[0]);
    if (cli_has(c, CLI_READONLY))
        return cli_usage("'keys rm' does nothing with --readonly");
    return change(c, NULL, "removed");
}

/* --- test --------------------------------------------------------------------------- */

static void tested(const struct cli *c, const char *provider, const char *text)
{
    struct buf b = BUF_INIT;
    struct jw w;

    if (!cli_json(c)) {
        cli_out("%s\n", text);
        return;
    }
    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_str(&w, "provider", provider);
    jw_bool(&w, "ok", true);
    jw_str(&w, "text", text);
    jw_end(&w);
    cli_out_json(&b);
    buf_release(&b);
}

static int test_e2b(struct cli *c)
{
    struct cli_app a;
    struct err e = {0};
    size_t n = 0;
    int status = CLI_OK;

    if (cli_app_open(&a, c, &e) != 0)
        return cli_fail(&e);
    if (cli_app_refresh(&a, &e) != 0) {
        status = cli_app_fail(&a, &e);
    } else {
        const struct model *m = app_model(a.app);
        for (size_t i = 0; i < m->n_sandboxes; i++)
            n += cli_is_up(&m->sandboxes[i]);
        char *text = xasprintf("works: %s; %zu sandbox%s listed", m->account ? m->account : "-", n,
                               n == 1 ? "" : "es");
        tested(c, "e2b", text);
        free(text);
    }
    cli_app_close(&a);
    return status;
}

static int test_provider(struct cli *c, const char *provider)
{
    struct cli_app a;
    struct err e = {0};
    int rc, status;

    if (cli_app_open_keys(&a, c, false, &e) != 0)
        return cli_fail(&e);
    rc = app_go_online(a.app, &e);
    if (rc == 0 && app_vault_by_passphrase(a.app) && cli_can_ask(c))
        rc = cli_app_unlock(&a, &e);
    if (rc == 0)
        rc = cli_app_wait(&a, app_key_test(a.app, provider), &e);
    status = rc == 0 ? CLI_OK : cli_app_fail(&a, &e);
    if (rc == 0)
        tested(c, provider, a.text ? a.text : "works");
    cli_app_close(&a);
    return status;
}

int cli_keys_test(struct cli *c)
{
    const char *provider = c->n_args ? c->args[0] : "e2b";

    if (!key_provider_ok(provider))
        return bad_provider(provider);
    return str_eq(provider, "e2b") ? test_e2b(c) : test_provider(c, provider);
}

/* --- trust, protect -------------------------------------------------------------------- */

int cli_keys_trust(struct cli *c)
{
    struct cli_app a;
    struct err e = {0};

    if (cli_has(c, CLI_READONLY))
        return cli_usage("'keys trust' does nothing with --readonly");
    if (cli_app_open_keys(&a, c, false, &e) != 0 || app_go_online(a.app, &e) != 0)
        return cli_fail(&e);
    int status = cli_app_wait(&a, app_key_trust(a.app), &e) == 0 ? CLI_OK : cli_app_fail(&a, &e);
    if (status == CLI_OK)
        cli_say(c, "the .cc-tui of '%s' may choose the keys of the project '%s'",
                c->project_folder, c->project);
    cli_app_close(&a);
    return status;
}

int cli_keys_protect(struct cli *c)
{
    bool phrase = str_eq(c->args[0], "passphrase");
    struct secret *fresh = NULL, *old = NULL;
    struct cli_app a;
    struct err e = {0};

    if (!phrase && !str_eq(c->args[0], "file"))
        return cli_usage("'keys protect' wants passphrase or file");
    if (cli_has(c, CLI_READONLY))
        return cli_usage("'keys protect' does nothing with --readonly");
    if (phrase || cli_has(c, CLI_PASSPHRASE_FD)) {
        fresh = cli_new_passphrase(c, &old, &e);
        if (!fresh) {
            secret_free(old);
            return cli_fail(&e);
        }
    }
    if (!phrase) { /* the one in force is all that was given */
        old = fresh;
        fresh = NULL;
    }
    if (cli_app_open_keys(&a, c, !old, &e) != 0 || app_go_online(a.app, &e) != 0) {
        secret_free(fresh);
        secret_free(old);
        return cli_fail(&e);
    }
    int rc = old ? cli_app_wait(&a, app_unlock(a.app, old), &e) : 0;
    if (rc == 0)
        rc = cli_app_wait(&a, app_key_protect(a.app, fresh), &e);
    else
        secret_free(fresh);
    int status = rc == 0 ? CLI_OK : cli_app_fail(&a, &e);
    if (rc == 0)
        cli_say(c, "stored keys are sealed anew, the data key is protected by %s",
                phrase ? "a passphrase" : "a key file");
    cli_app_close(&a);
    return status;
}
