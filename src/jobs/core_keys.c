/* Stored keys on the net thread: read when the program starts and looked at again now and
 * then (another cc-tui may add or remove one), opened only when they are used. Argon2 runs
 * on a thread of its own, so that neither streams nor the screen wait for it. */
#include "core_keys.h"

#include <cct/config/tools.h>
#include <cct/model/repo.h>
#include <cct/secrets/vault.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One stretching of a passphrase; its thread posts CMD_STRETCHED. */
struct stretch {
    struct mq *mq;
    struct vault_kdf kdf;
    struct secret *passphrase;
    pthread_t thread;
    bool running;
};

const char *const keys_locked_text =
    "the vault is locked: start with --unlock, or give the passphrase by --passphrase-fd";

struct keys_at core_keys_at(const struct jobs *j)
{
    const struct keys *k = j->priv->keys;

    return (struct keys_at){.outside = j->o.outside,
                            .stored = k ? k->stored : NULL,
                            .api = k ? k->api : NULL,
                            .project = jobs_project(j),
                            .lost = k ? k->lost : NULL,
                            .locked = k && k->locked.code && !k->opening ? k->locked.text : NULL,
                            .by_folder = core_project_folder(j) != NULL};
}

/* --- stretching ------------------------------------------------------------------ */

static void stretch_main(void *arg)
{
    struct stretch *s = arg;
    struct cmd *c = cmd_new(CMD_STRETCHED, 0);
    struct err e = {0};

    c->key = vault_stretch(&s->kdf, s->passphrase, &e);
    if (!c->key)
        c->text = xstrdup(e.text);
    mq_post(s->mq, MQ_NORMAL, &c->m);
}

static void stretch_end(struct keys *k)
{
    struct stretch *s = k->stretch;

    if (!s)
        return;
    if (s->running)
        pthread_join(s->thread, NULL);
    secret_free(s->passphrase);
    free(s);
    k->stretch = NULL;
}

int keys_stretch(struct keys *k, const struct vault_kdf *kdf, const struct secret *passphrase,
                 struct keyop *op, struct err *e)
{
    struct stretch *s;

    if (k->stretch)
        return err_set(e, ERR_BUSY, "the vault is being opened; try again");
    s = k->stretch = xcalloc(1, sizeof(*s));
    s->mq = net_mq(k->j->o.net);
    s->kdf = *kdf;
    s->passphrase = secret_dup((struct secret *)(uintptr_t)passphrase);
    k->stretch_for = op;
    s->running = thread_start(&s->thread, THREAD_WORK, "vault", stretch_main, s) == 0;
    if (s->running)
        return 0;
    stretch_end(k);
    return err_set(e, ERR_IO, "the vault cannot be opened: no thread for it");
}

/* --- the data key ----------------------------------------------------------------- */

static bool fits(const struct keys *k, const struct secret *data_key)
{
    const struct st_vault *v = &k->stored->vault;

    return vault_is_key(data_key, v->uid, v->proof, v->proof_len);
}

static void take_data_key(struct keys *k, struct secret *take)
{
    secret_free(k->data_key);
    k->data_key = take;
    err_clear(&k->locked);
}

static void by_file(struct keys *k)
{
    struct secret *s = vault_file_read(k->j->o.config_dir, k->stored->vault.uid, &k->locked);

    if (s && !fits(k, s)) {
        secret_free(s);
        s = NULL;
        err_set(&k->locked, ERR_CORRUPT, "the key file does not belong to the stored keys; put "
                "back the right one, or remove the keys and add them again");
    }
    if (s)
        take_data_key(k, s);
}

static void by_passphrase(struct keys *k)
{
    const struct st_vault *v = &k->stored->vault;
    struct vault_kdf kdf;

    err_set(&k->locked, ERR_AUTH, "%s", keys_locked_text);
    if (!k->passphrase || k->opening)
        return;
    if (vault_kdf_read(&kdf, v->ops, v->mem, v->salt, v->salt_len, &k->locked) == 0 &&
        keys_stretch(k, &kdf, k->passphrase, NULL, &k->locked) == 0)
        k->opening = true;
}

static void unlock(struct keys *k)
{
    const struct st_vault *v = k->stored ? &k->stored->vault : NULL;

    err_clear(&k->locked);
    if (!v || !*v->uid) {
        secret_free(k->data_key);
        k->data_key = NULL;
        return;
    }
    if (k->data_key && fits(k, k->data_key))
        return;
    secret_free(k->data_key);
    k->data_key = NULL;
    if (v->passphrase)
        by_passphrase(k);
    else
        by_file(k);
}

/* --- told, locked ----------------------------------------------------------------- */

static void tell_vault(struct keys *k)
{
    const char *locked = k->locked.code ? k->locked.text : NULL;
    struct ev_vault *ev;

    if (k->told && k->told_opening == k->opening && str_eq(k->told_locked, locked))
        return;
    k->told = true;
    k->told_opening = k->opening;
    free(k->told_locked);
    k->told_locked = xstrdup(locked);
    ev = ev_new(EV_VAULT);
    ev->passphrase = k->stored && k->stored->vault.passphrase;
    ev->opening = k->opening;
    ev->locked = xstrdup(locked);
    jobs_post(k->j, ev);
}

static bool can_lock(const struct keys *k)
{
    return k->stored && k->stored->vault.passphrase && k->data_key && !k->opening && !k->ops.n;
}

/* Whoever sits down at a screen that was left finds no key; the account that is in use goes
 * on, so that everything can still be killed. */
static void lock_now(struct keys *k, const char *why)
{
    secret_free(k->data_key);
    secret_free(k->passphrase);
    k->data_key = k->passphrase = NULL;
    err_set(&k->locked, ERR_AUTH, "%s: give the passphrase (gk, then u)", why);
    jobs_say(k->j, 0, 0, "%s; the E2B key in use stays", why);
    tell_vault(k);
}

static void lock_when_idle(struct keys *k)
{
    int64_t ms = k->j->o.vault_idle_s * INT64_C(1000);

    if (ms && can_lock(k) && clock_boot_ms() - k->touched >= ms)
        lock_now(k, "the vault was locked as nobody was there");
}

static void lock_asked(struct keys *k, uint64_t req_id)
{
    if (can_lock(k)) {
        lock_now(k, "the vault was locked");
        jobs_done(k->j, req_id, NULL, 0);
    } else if (k->stored && k->stored->vault.passphrase && !k->data_key) {
        jobs_done(k->j, req_id, NULL, 0);
    } else {
        core_done_err(k->j, req_id, 0, ERR_CONFLICT, "the vault cannot be locked: %s",
                      k->opening || k->ops.n ? "it is in use, try again"
                                             : "it has no passphrase (cc-tui keys protect "
                                               "passphrase)");
    }
}

/* Who waits for the vault goes on, with or without it. */
static void opened(struct keys *k)
{
    k->opening = false;
    tell_vault(k);
    core_account_keys(k->j);
    core_run_held(k->j);
}

static void stretched(struct keys *k, struct cmd *c)
{
    const struct st_vault *v = k->stored ? &k->stored->vault : NULL;
    struct keyop *op = k->stretch_for;
    struct vault_kdf kdf = k->stretch ? k->stretch->kdf : (struct vault_kdf){0};
    struct secret *s = NULL;

    stretch_end(k);
    k->stretch_for = NULL;
    if (op) {
        keyop_stretched(op, &kdf, c->key, c->text);
        return;
    }
    if (!c->key)
        err_set(&k->locked, ERR_FULL, "%s", c->text);
    else if (v && v->passphrase)
        s = vault_unwrap(c->key, &kdf, v->uid, v->sealed, v->sealed_len, &k->locked);
    if (s && !fits(k, s)) {
        secret_free(s);
        s = NULL;
        err_set(&k->locked, ERR_CORRUPT, "the vault does not open: its head was changed");
    }
    if (s)
        take_data_key(k, s);
    else
        secret_free(k->passphrase), k->passphrase = NULL; /* it was the wrong one */
    if (k->unlock_req)
        jobs_done(k->j, k->unlock_req, s ? NULL : &k->locked, 0);
    else if (!s && k->j->o.follow_all) /* a command tells it with what fails by it */
        jobs_say(k->j, 2, 0, "%s", k->locked.text);
    k->unlock_req = 0;
    opened(k);
}

static void give_passphrase(struct keys *k, struct cmd *c)
{
    if (k->opening) {
        core_done_err(k->j, c->m.req_id, 0, ERR_BUSY, "the vault is being opened already");
        return;
    }
    secret_free(k->passphrase);
    k->passphrase = c->key;
    c->key = NULL;
    k->touched = clock_boot_ms();
    unlock(k);
    tell_vault(k);
    if (k->opening)
        k->unlock_req = c->m.req_id;
    else
        jobs_done(k->j, c->m.req_id, k->locked.code ? &k->locked : NULL, 0);
}

/* Opened and wiped again: whether a key can be used shows when it is. */
static void look_at(struct keys *k, const struct cmd *c)
{
    struct keys_at at = core_keys_at(k->j);
    const char *needs[TOOL_NAMES];
    struct err e = {0};
    struct kv *env;

    tool_provider_names((unsigned)c->n, needs);
    env = keys_provider_env(&at, k->data_key, needs, &e);
    if (!env && !k->data_key && k->locked.code && e.code == ERR_AUTH)
        e = k->locked;
    keys_env_free(env);
    jobs_done(k->j, c->m.req_id, e.code ? &e : NULL, 0);
}

void core_keys_cmd(struct jobs *j, struct cmd *c)
{
    struct keys *k = j->priv->keys;

    if (c->m.type == CMD_STRETCHED)
        stretched(k, c);
    else if (c->m.type == CMD_KEY_LOOK)
        look_at(k, c);
    else if (c->m.type == CMD_UNLOCK)
        give_passphrase(k, c);
    else if (c->m.type == CMD_KEY_TEST)
        keytest_start(k, c);
    else if (c->m.type == CMD_LOCK)
        lock_asked(k, c->m.req_id);
    else if (c->m.type == CMD_TOUCH)
        k->touched = clock_boot_ms();
    else
        keyop_start(k, c);
}

/* --- reading ------------------------------------------------------------------------- */

static void look_later(void *ctx);

static void arm(struct keys *k)
{
    net_timer_cancel(k->j->o.net, k->timer);
    /* as often as the list; a command is over before anything could change under it */
    k->timer = k->j->o.follow_all ? net_timer(k->j->o.net, k->j->o.poll_ms, look_later, k) : 0;
}

static void say_protection(struct keys *k)
{
    const struct st_vault *v = &k->stored->vault;

    if (!k->stored->n || !k->j->o.follow_all)
        return;
    jobs_say(k->j, 0, 0, "%zu stored key%s, sealed by a %s", k->stored->n,
             k->stored->n == 1 ? "" : "s", v->passphrase ? "passphrase" : "key file");
}

static void take_rows(struct keys *k, struct st_reply *r)
{
    bool first = !k->known;

    st_keys_free(k->stored);
    k->stored = r->keys;
    r->keys = NULL;
    unlock(k);
    tell_vault(k);
    if (first)
        say_protection(k);
    else /* main shows and checks by the same rows */
        store_keys(k->j->o.store, core_project_ref(k->j), core_project_folder(k->j), -1,
                   (struct st_to){k->j->o.events, 0});
}

static void on_rows(void *ctx, struct st_reply *r)
{
    struct keys *k = ctx;
    bool first = !k->known;

    k->read_err = r->err;
    free(k->lost);
    k->lost = keys_lost(r->text, k->j->o.config_dir);
    if (r->err.code && first)
        jobs_say(k->j, 2, 0, "the stored keys cannot be read: %s", r->err.text);
    if (r->got)
        take_rows(k, r);
    k->known = true;
    if (first || r->got || k->undecided)
        core_account_keys(k->j);
    if (first)
        core_run_held(k->j);
    arm(k);
    keyop_rows(k, r->err.code ? &r->err : NULL);
}

void keys_look(struct keys *k, bool anew)
{
    struct jobs *j = k->j;

    net_timer_cancel(j->o.net, k->timer);
    k->timer = 0;
    store_keys(j->o.store, core_project_ref(j), core_project_folder(j),
               anew || !k->stored ? -1 : k->stored->vault.revision,
               jobs_store(j, on_rows, k, k));
}

static void look_later(void *ctx)
{
    struct keys *k = ctx;

    k->timer = 0;
    lock_when_idle(k);
    core_projects_look(k->j);
    keys_look(k, false);
}

bool core_keys_settled(const struct jobs *j)
{
    const struct keys *k = j->priv->keys;

    return k && k->known && !k->opening;
}

struct secret *core_keys_open(struct jobs *j, const struct st_key *row, struct err *e)
{
    struct keys *k = j->priv->keys;
    char mask[16];

    if (k->data_key)
        return keys_open(row, k->data_key, e);
    key_row_mask(row, mask);
    err_set(e, ERR_AUTH, "the %s %s cannot be used: %s", key_source_name(key_row_source(row)), mask,
            k->locked.code ? k->locked.text : keys_locked_text);
    return NULL;
}

/* --- what agents get -------------------------------------------------------------------- */

/* Provider, level, last four and what is hidden, where the error does not tell them. */
static void name_key(const struct keys_at *at, const struct core_env_q *q, struct err *e)
{
    const char *needs[TOOL_NAMES];
    struct key_need n = {q->t->label, needs, tool_needs_env(q->t, q->model), q->own, NULL};
    struct key_check c;

    tool_provider_names(tool_needs(q->t, q->model), needs);
    keys_preflight(at, &n, &c);
    if (c.state >= KEY_LACKS)
        err_set(e, e->code, "%s", c.text);
    else if (c.source && !strstr(e->text, "****"))
        err_wrap(e, "the %s key %s (%s) cannot be used", c.provider, c.mask,
                 key_source_name(c.source));
    key_check_release(&c);
}

const struct st_key *core_keys_row(struct jobs *j, const char *project, const char *provider,
                                   const char *api)
{
    return keys_row(j->priv->keys->stored, project, provider, api);
}

/* Another project's sandbox was made with the keys of that one. */
static void at_project(struct jobs *j, struct keys_at *at, struct st_keys *view,
                       const char *project)
{
    const struct project *p = core_project(j, project);

    *at = core_keys_at(j);
    if (str_eq(project, at->project) || !at->stored)
        return;
    *view = *at->stored;
    view->project = p ? p->id : NULL;
    at->stored = view;
    at->project = project;
    at->by_folder = false;
}

struct kv *core_keys_env(struct jobs *j, const struct core_env_q *q, char **missing, struct err *e)
{
    struct keys *k = j->priv->keys;
    struct keys_at at;
    struct st_keys view;
    struct kv *vars = core_project_env(j, q->project, !q->restart, true, e), *env;

    if (!vars)
        return NULL;
    at_project(j, &at, &view, q->project);
    env = core_tool_env(&at, k->data_key, q, vars, missing, e);
    keys_env_free(vars);
    if (!env)
        name_key(&at, q, e);
    return env;
}

/* What the user gives with the sandbox stands above every level, here as elsewhere. */
static const char *given_key(const struct kv *own)
{
    static const char *const names[] = {"GITHUB_TOKEN", "GH_TOKEN"};
    const char *v = NULL;

    for (size_t i = 0; i < 2 && !v; i++)
        v = kv_get(own, names[i]);
    return v && *v ? v : NULL;
}

char *core_keys_refused(struct jobs *j, const struct sandbox *row)
{
    const struct tool *t = row->tool ? tools_find(j->o.tools, row->tool) : NULL;
    const char *needs[TOOL_NAMES];
    struct key_need need = {.label = t ? t->label : NULL, .needs = needs,
                            .needs_env = t ? tool_needs_env(t, NULL) : NULL};
    struct keys_at at;
    struct st_keys view;

    if (!t || !j->priv->keys)
        return NULL;
    tool_provider_names(tool_needs(t, NULL), needs);
    at_project(j, &at, &view, row->project ? row->project : jobs_project(j));
    return needs[0] || need.needs_env ? keys_refused(&at, &need) : NULL;
}

static int name_repo_key(const struct keys_at *at, const struct kv *own, struct err *e)
{
    static const char *const needs[] = {"github", NULL};
    struct key_need n = {.label = "the checkout", .needs = needs, .own = own};
    struct key_check c;

    keys_preflight(at, &n, &c);
    if (c.state >= KEY_LACKS)
        err_set(e, e->code, "%s", c.text);
    else if (!strstr(e->text, "****"))
        err_wrap(e, "the github key %s (%s) for the checkout cannot be used", c.mask,
                 key_source_name(c.source));
    key_check_release(&c);
    return e->code;
}

int core_keys_repo(struct jobs *j, const char *repo, const struct kv *own, struct core_repo_key *k,
                   struct err *e)
{
    static const char *const needs[] = {"github", NULL};
    struct keys_at at = core_keys_at(j);
    struct keys *keys = j->priv->keys;
    const char *given = given_key(own), *source = "given with the sandbox";
    struct kv *env = NULL;
    struct repo r;
    char mask[16];

    if (!repo || !*repo)
        return 0;
    if (repo_parse(repo, &r, e) != 0)
        return e->code;
    bool github = r.github;
    repo_release(&r);
    if (!github)
        return 0;
    if (!given) {
        env = keys_provider_env(&at, keys->data_key, needs, e);
        if (!env)
            return name_repo_key(&at, own, e);
        source = key_source_name(keys_provider_source(&at, needs, NULL));
        given = env->k ? env->v : NULL;
    }
    if (given) {
        k->key = secret_new(given, strlen(given));
        secret_mask(k->key, mask);
        k->name = xasprintf("GitHub key %s (%s)", mask, source);
    }
    keys_env_free(env);
    return 0;
}

void core_repo_key_release(struct core_repo_key *k)
{
    secret_free(k->key);
    free(k->name);
    *k = (struct core_repo_key){0};
}

/* --- life ---------------------------------------------------------------------------------- */

void core_keys_start(struct jobs *j)
{
    struct keys *k = j->priv->keys;

    if (!k) {
        k = j->priv->keys = xcalloc(1, sizeof(*k));
        k->j = j;
        k->api = keys_api();
        k->passphrase = secret_dup(j->o.passphrase);
        k->touched = clock_boot_ms();
    }
    keys_look(k, true);
}

void core_keys_release(struct jobs *j)
{
    struct keys *k = j->priv->keys;

    if (!k)
        return;
    net_timer_cancel(j->o.net, k->timer);
    jobs_store_forget(j, k);
    stretch_end(k);
    keyop_release(k);
    keytest_release(k);
    st_keys_free(k->stored);
    secret_free(k->data_key);
    secret_free(k->passphrase);
    free(k->api);
    free(k->lost);
    free(k->told_locked);
    free(k);
    j->priv->keys = NULL;
}
