/* The order of keys as the main thread sees it: by what is told of stored keys in clear;
 * they are opened on the net thread alone. And the actions on them. */
#include "app_priv.h"

#include <cct/jobs/local.h>
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

void app_keys_release(struct app *a)
{
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

uint64_t app_key_add(struct app *a, const char *provider, bool project, struct secret *take)
{
    return post_key(a, CMD_KEY_ADD, provider, project, take);
}

uint64_t app_key_rm(struct app *a, const char *provider, bool project)
{
    return post_key(a, CMD_KEY_RM, provider, project, NULL);
}

uint64_t app_key_trust(struct app *a)
{
    return post_key(a, CMD_KEY_TRUST, NULL, false, NULL);
}

uint64_t app_key_protect(struct app *a, struct secret *take)
{
    return post_key(a, CMD_KEY_PROTECT, NULL, false, take);
}
