/* Which key is in force: asked for when the stored ones are known, and again when they
 * change. A change is said; nothing of the old account stays in sight, and what was begun
 * under it ends first. */
#include "core_keys.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

static char *env_url(const char *name)
{
    const char *v = getenv(name);
    char *url;

    if (!v || !*v)
        return NULL;
    url = xstrdup(v);
    while (str_ends(url, "/"))
        url[strlen(url) - 1] = 0;
    return url;
}

/* Two keys may be two accounts of one service, so the key's mark belongs to it. */
char *jobs_place(bool local, const char *api, const struct key_found *k, const struct err *e)
{
    const char *host = strstr(api, "://") ? strstr(api, "://") + 3 : api;
    int n = (int)strcspn(host, "/");

    if (local || (k->source == KEY_NONE && !e->code))
        return xstrdup("local");
    if (k->source == KEY_NONE) /* unusable: nothing of any account is shown */
        return xasprintf("%.*s", n, host);
    return xasprintf("%.*s#%s", n, host, k->mark);
}

static void set_place(struct jobs *j, const struct key_found *k, const struct err *e)
{
    free(j->priv->place);
    j->priv->place = jobs_place(j->o.local, j->priv->keys->api, k, e);
}

/* The found key is in force from now on; its row belongs to the rows that may go. */
static void keep_found(struct jobs *j, struct key_found *take)
{
    key_found_release(&j->priv->key);
    j->priv->key = *take;
    j->priv->key.row = NULL;
    secret_free(j->priv->key.key);
    j->priv->key.key = NULL;
    *take = (struct key_found){0};
}

static void use_key(struct jobs *j, struct key_found *k, struct secret *key)
{
    struct e2b_account a = {0};
    struct err e = {0};

    a.domain = xstrdup(keys_domain());
    a.api_url = xstrdup(j->priv->keys->api);
    a.sandbox_url = env_url("E2B_SANDBOX_URL");
    a.key = secret_dup(key);
    a.source = xstrdup(key_source_name(k->source));
    secret_mask(key, a.mask);
    keep_found(j, k);
    if (e2b_account_check(&a, &e) != 0)
        account_none(j, LINK_AUTH, &e);
    else
        account_use(j, &a);
    e2b_account_release(&a);
}

/* The plain key of what was found; NULL with *e. */
static struct secret *plain_key(struct jobs *j, const struct key_found *k, struct err *e)
{
    return k->key ? secret_dup(k->key) : core_keys_open(j, k->row, e);
}

static void say_unlocked_memory(struct jobs *j)
{
    if (!secrets_memory_locked() && j->o.follow_all)
        jobs_say(j, 1, 0, "keys cannot be locked in memory and may reach swap: raise "
                 "RLIMIT_MEMLOCK (ulimit -l)");
}

/* What the order says now. Keys that cannot be read may hide others: then only the
 * environment's, which nothing hides, is used. */
static void choose(struct jobs *j, struct key_found *k, struct err *e)
{
    struct keys_at at = core_keys_at(j);
    const struct keys *keys = j->priv->keys;

    keys_choose(&at, k, e);
    if (keys->read_err.code && !keys->stored && k->source > KEY_ENV) {
        key_found_release(k);
        err_set(e, ERR_AUTH, "the stored keys cannot be read, so it is not known which key is in "
                "force: set E2B_API_KEY, or mend this: %s", keys->read_err.text);
    }
}

static void first_choice(struct jobs *j, struct key_found *k, const struct err *e)
{
    struct err why = {0};
    struct secret *key;

    set_place(j, k, e);
    if (k->source == KEY_NONE && e->code) { /* somebody meant a key: no silent change */
        account_none(j, LINK_AUTH, e);
    } else if (k->source == KEY_NONE) {
        core_local_open(j);
    } else if (k->row && j->priv->keys->opening) {
        return; /* comes again when the vault is open, or not */
    } else if (!(key = plain_key(j, k, &why))) {
        keep_found(j, k);
        account_none(j, LINK_AUTH, &why);
    } else {
        if (e->code)
            jobs_say(j, 1, 0, "%s", e->text);
        use_key(j, k, key);
        secret_free(key);
        say_unlocked_memory(j);
    }
    j->priv->chosen = true;
}

/* --- a change ------------------------------------------------------------------- */

/* What runs was begun with the old key and ends with it; a question that is open, too. */
static bool must_end_first(const struct jobs *j)
{
    const struct jobs_priv *p = j->priv;

    return p->creates.n || p->acts.n || p->kills.n || p->prockills.n || p->adoptions.n ||
           map_count(p->inserts) || (p->ka && p->ka->phase != KILL_REPORT);
}

static void on_other_rows(void *ctx, struct st_reply *r)
{
    struct jobs *j = ctx;

    if (j->priv->rows_loaded) /* it changed twice: the first answer was enough */
        return;
    core_rows_load(j, r);
    j->priv->rows_loaded = true;
    core_run_held(j);
    core_poll_start(j);
}

/* Nothing of the old account stays: streams, rows, the list under way, its client. */
static void leave_account(struct jobs *j)
{
    size_t it = 0;
    struct session *s;

    core_rows_flush(j);
    core_killall_release(j); /* a retry would tell ids of the old account to the new one */
    while ((s = map_next(j->sessions, &it, NULL, NULL))) {
        session_free(s); /* leaves the map */
        it = 0;
    }
    core_foreign_stop(j);
    core_builds_leave(j);
    core_ask_release(j);
    core_poll_reset(j);
    core_rows_clear(j);
    account_retire(j);
    free(j->priv->link.account);
    j->priv->link.account = NULL;
    j->priv->link.total_running = -1;
    j->priv->link.listed_at = 0;
    j->priv->link.state = LINK_CONNECTING;
    j->priv->link.told = false;
    j->priv->rows_loaded = false;
}

static char *describe(const struct key_found *k)
{
    return k->source == KEY_NONE ? xstrdup("none")
                                 : xasprintf("%s (%s)", k->mask, key_source_name(k->source));
}

static void change_account(struct jobs *j, struct key_found *k, const struct err *e)
{
    char *old = describe(&j->priv->key), *now = describe(k);
    struct err why = *e;
    struct secret *key = k->source ? plain_key(j, k, &why) : NULL;

    jobs_say(j, 1, 0, "the E2B key in force is now %s; it was %s", now, old);
    leave_account(j);
    set_place(j, k, e);
    if (!key && !why.code)
        err_set(&why, ERR_AUTH, "no E2B key is in force any more: add one with cc-tui keys add e2b, "
                "or start again for the local provider");
    if (key) {
        use_key(j, k, key);
    } else {
        keep_found(j, k);
        account_none(j, LINK_AUTH, &why);
    }
    store_sandboxes(j->o.store, jobs_store(j, on_other_rows, j, j));
    secret_free(key);
    free(old);
    free(now);
}

/* The same key, perhaps under another name or in front of others. */
static void rename_account(struct jobs *j, struct key_found *k)
{
    struct secret *key = NULL;
    bool moved = k->source != j->priv->key.source;
    char *old = moved ? describe(&j->priv->key) : NULL;

    if (moved && j->e2b) /* its errors name the level */
        key = secret_dup(e2b_account_of(j->e2b)->key);
    if (moved)
        jobs_say(j, 1, 0, "the E2B key %s counts as %s now; it was %s", k->mask,
                 key_source_name(k->source), old);
    if (key) {
        use_key(j, k, key);
    } else {
        keep_found(j, k);
        if (j->e2b)
            account_text(j, e2b_account_of(j->e2b));
    }
    j->priv->link.told = false;
    core_link(j, j->priv->link.state, j->priv->link.text);
    secret_free(key);
    free(old);
}

/* The key that was in force all the time could not be opened before. */
static void open_now(struct jobs *j, struct key_found *k)
{
    struct err why = {0};
    struct secret *key = j->priv->keys->opening ? NULL : plain_key(j, k, &why);

    if (key)
        use_key(j, k, key);
    else if (why.code && !str_eq(why.text, j->priv->account_err.text))
        account_none(j, LINK_AUTH, &why);
    secret_free(key);
}

static void later_choice(struct jobs *j, struct key_found *k, const struct err *e)
{
    const struct key_found *now = &j->priv->key;
    bool same = k->source && str_eq(k->mark, now->mark) && str_eq(k->mask, now->mask);

    if (core_is_local(j)) {
        if (k->source && now->source != k->source)
            jobs_say(j, 1, 0, "an E2B key is known now: %s (%s); it is used from the next start on",
                     k->mask, key_source_name(k->source));
        keep_found(j, k);
    } else if (same && j->e2b) {
        if (k->source != now->source || !str_eq(k->hidden, now->hidden))
            rename_account(j, k);
    } else if (same && k->source == now->source) {
        open_now(j, k);
    } else if (k->source == KEY_NONE && !j->e2b &&
               (e->code ? str_eq(e->text, j->priv->account_err.text) : !now->source)) {
        return; /* none before, none now, for the same reason */
    } else if (k->row && j->priv->keys->opening) {
        return;
    } else if (must_end_first(j)) {
        j->priv->keys->undecided = true;
    } else {
        change_account(j, k, e);
    }
}

void core_account_keys(struct jobs *j)
{
    struct key_found k;
    struct err e = {0};

    if (j->o.local || j->priv->stopping)
        return;
    j->priv->keys->undecided = false;
    choose(j, &k, &e);
    if (j->o.keys_only || j->priv->net_err.code) {
        if (!j->priv->rows_loaded) /* nobody is asked, but whose rows are shown? */
            set_place(j, &k, &e);
    } else if (j->priv->chosen) {
        later_choice(j, &k, &e);
    } else {
        first_choice(j, &k, &e);
    }
    key_found_release(&k);
}
