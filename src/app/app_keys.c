/* The order of keys as the main thread sees it: by what is told of stored keys in clear;
 * they are opened on the net thread alone. And the actions on them. */
#include "app_priv.h"

#include <cct/jobs/local.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

void app_keys_at(struct app *a)
{
    a->at = (struct keys_at){.outside = &a->outside,
                             .stored = a->stored,
                             .api = a->api,
                             .project = a->model->project,
                             .lost = a->lost,
                             /* one that is being opened is waited for */
                             .locked = a->model->vault_opening ? NULL : a->model->vault_locked,
                             .by_folder = a->model->projects ? a->model->project_by_folder
                                                              : a->project_folder != NULL};
}

/* Where 'cc-tui local env' was run for the SDK, the key is that of our own provider. */
static void know_own_provider(struct app *a)
{
    struct local_provider p;

    if (!a->outside.env || local_provider_find(a->runtime_dir, &p, NULL) != 0)
        return;
    if (p.key && str_eq(secret_value(p.key), secret_value(a->outside.env))) {
        a->o.local = true;
        secret_free(a->outside.env);
        a->outside.env = NULL;
    }
    local_provider_release(&p);
}

void app_keys_look(struct app *a)
{
    /* reads a file, which main may do only while nobody waits for it */
    if (!a->o.local && !a->o.local_unsafe) {
        keys_look_outside(&a->outside);
        know_own_provider(a);
    }
    app_keys_at(a);
}

static void list_release(struct app *a)
{
    for (size_t i = 0; i < a->key_list.n; i++)
        free(a->key_list.v[i].text);
    ARR_CLEAR(&a->key_list);
}

void app_keys_release(struct app *a)
{
    list_release(a);
    ARR_RELEASE(&a->key_list);
    keys_outside_release(&a->outside);
    st_keys_free(a->stored);
    secret_free(a->o.passphrase);
    free(a->api);
    free(a->project_folder);
    free(a->lost);
}

void app_keys_loaded(struct app *a, struct st_reply *r)
{
    a->keys_read = true;
    free(a->lost);
    a->lost = keys_lost(r->text, a->config_dir);
    a->at.lost = a->lost;
    if (!r->got)
        return;
    st_keys_free(a->stored);
    a->stored = r->keys;
    r->keys = NULL;
    app_keys_at(a);
    app_prepare_keys_changed(a);
}

char *app_place(const struct app *a)
{
    struct key_found k;
    struct err e = {0};
    char *place;

    keys_choose(&a->at, &k, &e);
    place = jobs_place(a->o.local || a->o.local_unsafe, a->api, &k, &e);
    key_found_release(&k);
    return place;
}

const struct keys_at *app_keys(const struct app *a)
{
    return a->keys_read ? &a->at : NULL;
}

const char *app_config_dir(const struct app *a)
{
    return a->config_dir;
}

bool app_vault_by_passphrase(const struct app *a)
{
    return a->stored && a->stored->vault.passphrase;
}

/* --- for the screen ------------------------------------------------------------------ */

static void stored_mask(const struct app *a, const char *project, const char *provider, char *dst)
{
    const struct st_key *row = keys_row(a->stored, project, provider,
                                        str_eq(provider, "e2b") ? a->api : NULL);

    *dst = '\0';
    if (row)
        key_row_mask(row, dst);
}

static void e2b_text(const struct app *a, struct app_key *k)
{
    struct key_found f;
    struct err e = {0};

    keys_choose(&a->at, &f, &e);
    k->works = f.source != KEY_NONE;
    if (a->model->local)
        k->text = xstrdup("the local provider is used: none is needed");
    else if (f.source == KEY_NONE)
        k->text = xstrdup(e.code ? e.text : "none: the local provider is used");
    else
        k->text = xasprintf("%s (%s)%s%s", f.mask, key_source_name(f.source), f.hidden ? ", " : "",
                            f.hidden ? f.hidden : "");
    key_found_release(&f);
}

static void provider_text(const struct app *a, struct app_key *k)
{
    const char *needs[] = {k->provider, NULL};
    struct key_need n = {.label = "an agent", .needs = needs};
    struct key_check c;

    keys_preflight(&a->at, &n, &c);
    k->works = c.state < KEY_LACKS;
    k->text = c.state == KEY_LACKS ? xstrdup("none") : c.text;
    if (c.state == KEY_LACKS)
        key_check_release(&c);
}

const struct app_key *app_key_list(struct app *a)
{
    list_release(a);
    if (!a->keys_read)
        return NULL;
    for (size_t i = 0; key_providers[i]; i++) {
        struct app_key *k = ARR_PUSH(&a->key_list);
        k->provider = key_providers[i];
        stored_mask(a, NULL, k->provider, k->user);
        if (a->stored && a->stored->project)
            stored_mask(a, a->stored->project, k->provider, k->project);
        if (i == 0)
            e2b_text(a, k);
        else
            provider_text(a, k);
    }
    (void)ARR_PUSH(&a->key_list); /* the end */
    return a->key_list.v;
}

struct secret *app_key_clean(struct secret *take, const char *provider, struct err *e)
{
    struct secret *s = take ? keys_clean(secret_value(take), secret_len(take), provider, e) : NULL;

    if (!take)
        err_set(e, ERR_INVALID, "no key was given");
    secret_free(take);
    return s;
}

/* --- actions ------------------------------------------------------------------------ */

static uint64_t post_key(struct app *a, enum cmd_type t, const char *provider, bool project,
                         struct secret *take)
{
    struct cmd *c = app_cmd(a, t);

    c->text = xstrdup(provider);
    c->on = project;
    c->key = take;
    return app_post(a, c);
}

uint64_t app_unlock(struct app *a, struct secret *take)
{
    app_prepare_keys_changed(a);
    return post_key(a, CMD_UNLOCK, NULL, false, take);
}

uint64_t app_lock(struct app *a)
{
    return post_key(a, CMD_LOCK, NULL, false, NULL);
}

/* Any key of the screen counts; told at most once in a while. */
void app_touch(struct app *a)
{
    int64_t now = clock_boot_ms();

    if (!a->o.vault_idle_s || now - a->touched < a->o.vault_idle_s * INT64_C(100))
        return;
    a->touched = now;
    app_post(a, cmd_new(CMD_TOUCH, 0));
}

uint64_t app_key_add(struct app *a, const char *provider, bool project, struct secret *take)
{
    return post_key(a, CMD_KEY_ADD, provider, project, take);
}

uint64_t app_key_rm(struct app *a, const char *provider, bool project)
{
    return post_key(a, CMD_KEY_RM, provider, project, NULL);
}

uint64_t app_key_test(struct app *a, const char *provider)
{
    return post_key(a, CMD_KEY_TEST, provider, false, NULL);
}

uint64_t app_key_trust(struct app *a)
{
    return post_key(a, CMD_KEY_TRUST, NULL, false, NULL);
}

uint64_t app_key_protect(struct app *a, struct secret *take)
{
    return post_key(a, CMD_KEY_PROTECT, NULL, false, take);
}
