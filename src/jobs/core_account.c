/* Which account is in force: --local, else the key by the documented order with the
 * addresses of the environment, else the embedded provider. And what is said of the
 * link to it. */
#include "core_priv.h"

#include <cct/keys.h>
#include <cct/secrets/digest.h>
#include <cct/text/clean.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

/* Calls of a client that was replaced have ended by themselves after this. */
#define OLD_CLIENT_MS 90000

bool core_is_local(const struct jobs *j)
{
    return j->e2b ? e2b_account_of(j->e2b)->local : j->priv->local != NULL;
}

const char *core_account_text(const struct jobs *j)
{
    return j->priv->link.account ? j->priv->link.account : "no account";
}

/* --- the link ------------------------------------------------------------------- */

static void tell(struct jobs *j)
{
    struct link *l = &j->priv->link;
    struct ev_link *ev = ev_new(EV_LINK);
    const struct e2b_account *a = j->e2b ? e2b_account_of(j->e2b) : NULL;

    ev->state = l->state;
    ev->text = xstrdup(l->text);
    ev->account = xstrdup(l->account);
    ev->local = core_is_local(j);
    ev->unsafe = a && a->unsafe;
    ev->server_offset_ms = j->server_offset_ms;
    ev->total_running = l->total_running;
    l->offset_ms = j->server_offset_ms;
    l->told = true;
    jobs_post(j, ev);
}

void core_link(struct jobs *j, enum link_state st, const char *text)
{
    struct link *l = &j->priv->link;
    char *clean = text && *text ? clean_line_dup(text, 0) : NULL;
    bool same = l->told && l->state == st && str_eq(l->text, clean) &&
                l->offset_ms == j->server_offset_ms;

    l->state = st;
    free(l->text);
    l->text = clean;
    if (!same)
        tell(j);
}

static const char *key_advice(const struct e2b_account *a)
{
    if (a->local)
        return "it was started again; looking for its new address";
    if (str_starts(a->source, "environment"))
        return "set E2B_API_KEY to a valid key and start again";
    return "replace it there, or set E2B_API_KEY, and start again";
}

void core_link_err(struct jobs *j, const struct err *e)
{
    const struct e2b_account *a = j->e2b ? e2b_account_of(j->e2b) : NULL;
    char *text = NULL;
    enum link_state st = LINK_DOWN;

    if (e->code == ERR_AUTH && a && !a->local) {
        st = LINK_AUTH;
        text = xasprintf("%s; %s%s%s", e->text, key_advice(a), j->priv->hidden ? "; it " : "",
                         j->priv->hidden ? j->priv->hidden : "");
    } else if (e->code == ERR_BUSY || e->code == ERR_LIMIT) {
        st = LINK_LIMITED;
        text = xasprintf("%s; the list is asked for more rarely", e->text);
    } else {
        text = xasprintf("%s; trying again", e->text);
    }
    core_link(j, st, text);
    free(text);
}

void core_call_cancel(struct jobs *j, struct e2b *client, uint64_t call)
{
    bool alive = client == j->e2b;

    for (size_t i = 0; !alive && i < j->priv->old.n; i++)
        alive = client == j->priv->old.v[i];
    if (call && client && alive)
        e2b_cancel(client, call);
}

/* --- the account ---------------------------------------------------------------- */

static void free_old(void *ctx)
{
    struct jobs *j = ctx;
    struct jobs_priv *p = j->priv;

    p->old_timer = 0;
    for (size_t i = 0; i < p->old.n; i++)
        e2b_free(p->old.v[i]);
    p->old.n = 0;
}

static void retire(struct jobs *j)
{
    struct jobs_priv *p = j->priv;

    if (!j->e2b)
        return;
    *ARR_PUSH(&p->old) = j->e2b;
    j->e2b = NULL;
    net_timer_cancel(j->o.net, p->old_timer);
    p->old_timer = net_timer(j->o.net, OLD_CLIENT_MS, free_old, j);
}

static void set_account_text(struct jobs *j, const struct e2b_account *a)
{
    char *text;

    if (a->local)
        text = xstrdup(a->unsafe ? "local provider, NOT ISOLATED" : "local provider");
    else
        text = xasprintf("E2B key %s (%s)%s%s", a->mask, a->source, j->priv->hidden ? ", " : "",
                         j->priv->hidden ? j->priv->hidden : "");
    free(j->priv->link.account);
    j->priv->link.account = text;
}

/* The old client still stands when they let go of what they asked it. */
static void move_sessions(struct jobs *j)
{
    size_t it = 0;
    struct session *s;

    while ((s = map_next(j->sessions, &it, NULL, NULL)))
        session_relocate(s);
}

static void use(struct jobs *j, const struct e2b_account *a)
{
    bool moved = j->e2b != NULL;

    if (moved)
        move_sessions(j);
    retire(j);
    j->e2b = e2b_new(j->o.net, a);
    set_account_text(j, a);
    j->priv->account_known = true;
    if (!j->priv->link.told || j->priv->link.state != LINK_OK)
        core_link(j, LINK_CONNECTING, NULL);
    core_run_held(j);
    if (moved)
        core_poll_soon(j, 0);
    else
        core_poll_start(j);
}

static void have_none(struct jobs *j, enum link_state st, const struct err *e)
{
    j->priv->account_err = *e;
    j->priv->account_known = true;
    core_link(j, st, e->text);
    core_run_held(j);
}

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

static char *api_url(const char *domain)
{
    char *url = env_url("E2B_API_URL");

    return url ? url : xasprintf("https://api.%s", domain);
}

static const char *domain_in_force(void)
{
    const char *domain = getenv("E2B_DOMAIN");

    return domain && *domain ? domain : "e2b.app";
}

/* Two keys may be two accounts of one service, so a part of the key's hash belongs to it. */
static char *place_of(const char *url, const struct secret *key)
{
    const char *host = strstr(url, "://") ? strstr(url, "://") + 3 : url;
    int n = (int)strcspn(host, "/");
    unsigned char h[32];

    if (!key) /* unusable: nothing of any account is shown */
        return xasprintf("%.*s", n, host);
    digest_sha256(h, secret_value(key), secret_len(key));
    return xasprintf("%.*s#%02x%02x%02x%02x", n, host, h[0], h[1], h[2], h[3]);
}

char *jobs_place(const struct jobs_opts *o)
{
    bool key = (o->key && o->key->key) || (o->key_err && o->key_err->code);
    char *url, *place;

    if (o->local || !key)
        return xstrdup("local");
    url = api_url(domain_in_force());
    place = place_of(url, o->key ? o->key->key : NULL);
    free(url);
    return place;
}

static void use_key(struct jobs *j, const struct key_found *k)
{
    struct e2b_account a = {0};
    struct err e = {0};

    a.domain = xstrdup(domain_in_force());
    a.api_url = api_url(a.domain);
    a.sandbox_url = env_url("E2B_SANDBOX_URL");
    a.key = secret_dup(k->key);
    a.source = xstrdup(key_source_name(k->source));
    secret_mask(k->key, a.mask);
    j->priv->hidden = xstrdup(k->hidden);
    if (e2b_account_check(&a, &e) != 0)
        have_none(j, LINK_AUTH, &e);
    else
        use(j, &a);
    e2b_account_release(&a);
}

void core_account_start(struct jobs *j)
{
    const struct key_found *k = j->o.key;
    const struct err *e = j->o.key_err;
    bool bad = e && e->code != 0;

    if (j->priv->net_err.code) {
        have_none(j, LINK_DOWN, &j->priv->net_err);
    } else if (j->o.local) {
        core_local_open(j);
    } else if (k && k->key) {
        if (bad)
            jobs_say(j, 1, 0, "%s", e->text);
        use_key(j, k);
    } else if (bad) { /* somebody meant a key: no silent change of account */
        have_none(j, LINK_AUTH, e);
    } else {
        core_local_open(j);
    }
}

void core_account_local(struct jobs *j, const struct e2b_account *a, const struct err *e)
{
    struct err said = {0};

    if (a) {
        use(j, a);
    } else if (j->e2b) { /* the one we had is gone */
        core_link(j, LINK_DOWN, e->text);
    } else if (e->code == ERR_NOTFOUND && !j->o.local) {
        err_set(&said, ERR_AUTH, "no E2B key is known and no local provider runs: set E2B_API_KEY, "
                                 "or start with --local");
        have_none(j, LINK_AUTH, &said);
    } else {
        have_none(j, LINK_DOWN, e);
    }
}

void core_account_lost(struct jobs *j)
{
    if (core_is_local(j))
        core_local_open(j);
}

void core_account_release(struct jobs *j)
{
    struct jobs_priv *p = j->priv;

    net_timer_cancel(j->o.net, p->old_timer);
    free_old(j);
    ARR_RELEASE(&p->old);
    e2b_free(j->e2b);
    j->e2b = NULL;
    free(p->hidden);
    free(p->link.text);
    free(p->link.account);
    p->hidden = p->link.text = p->link.account = NULL;
}
