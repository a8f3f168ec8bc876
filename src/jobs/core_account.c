/* The account in use: its client, where its addresses come from, and what is said of the
 * link to it. Which key is in force is core_choice.c's. */
#include "core_keys.h"

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
    ev->clock = l->clock = j->clock;
    ev->listed_at = l->listed_at;
    ev->total_running = l->total_running;
    l->told = true;
    jobs_post(j, ev);
}

void core_link(struct jobs *j, enum link_state st, const char *text)
{
    struct link *l = &j->priv->link;
    char *clean = text && *text ? clean_line_dup(text, 0) : NULL;
    bool same = l->told && l->state == st && str_eq(l->text, clean) &&
                l->clock.server_ms == j->clock.server_ms && l->clock.boot_ms == j->clock.boot_ms;

    l->state = st;
    free(l->text);
    l->text = clean;
    if (!same)
        tell(j);
}

static const char *key_advice(const struct jobs *j)
{
    switch (j->priv->key.source) {
    case KEY_ENV:
        return "set E2B_API_KEY to a valid key, or unset it, and start again";
    case KEY_PROJECT:
        return "replace it with cc-tui keys add e2b --project, or remove it with keys rm";
    case KEY_USER:
        return "replace it with cc-tui keys add e2b, or remove it with keys rm";
    default:
        return "run e2b auth login, or cc-tui keys add e2b";
    }
}

void core_link_err(struct jobs *j, const struct err *e)
{
    const struct e2b_account *a = j->e2b ? e2b_account_of(j->e2b) : NULL;
    char *text = NULL;
    enum link_state st = LINK_DOWN;

    if (e->code == ERR_AUTH && a && !a->local) {
        st = LINK_AUTH;
        text = xasprintf("%s; %s%s%s", e->text, key_advice(j), j->priv->key.hidden ? "; it " : "",
                         j->priv->key.hidden ? j->priv->key.hidden : "");
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

void account_retire(struct jobs *j)
{
    struct jobs_priv *p = j->priv;

    if (!j->e2b)
        return;
    *ARR_PUSH(&p->old) = j->e2b;
    j->e2b = NULL;
    net_timer_cancel(j->o.net, p->old_timer);
    p->old_timer = net_timer(j->o.net, OLD_CLIENT_MS, free_old, j);
}

/* Key, where it comes from, where it goes when that is not E2B's own, what it hides. */
void account_text(struct jobs *j, const struct e2b_account *a)
{
    const char *hidden = j->priv->key.hidden;
    bool own = a->local || (keys_api_is_own(a->api_url) && !a->sandbox_url);
    char *text;

    if (a->local)
        text = xstrdup(a->unsafe ? "local provider, NOT ISOLATED" : "local provider");
    else
        text = xasprintf("E2B key %s (%s)%s%s%s%s", a->mask, a->source, own ? "" : " at ",
                         own ? "" : a->api_url, hidden ? ", " : "", hidden ? hidden : "");
    free(j->priv->link.account);
    j->priv->link.account = text;
}

/* The old client still stands when they let go of what they asked it. */
static void move_sessions(struct jobs *j)
{
    size_t it = 0;
    struct session *s;

    core_foreign_relocate(j);
    while ((s = map_next(j->sessions, &it, NULL, NULL)))
        session_relocate(s);
}

void account_use(struct jobs *j, const struct e2b_account *a)
{
    bool moved = j->e2b != NULL;

    if (moved)
        move_sessions(j);
    account_retire(j);
    j->e2b = e2b_new(j->o.net, a);
    account_text(j, a);
    j->priv->account_known = true;
    if (!j->priv->link.told || j->priv->link.state != LINK_OK)
        core_link(j, LINK_CONNECTING, NULL);
    core_run_held(j);
    if (moved)
        core_poll_soon(j, 0);
    else
        core_poll_start(j);
}

void account_none(struct jobs *j, enum link_state st, const struct err *e)
{
    j->priv->account_err = *e;
    j->priv->account_known = true;
    core_link(j, st, e->text);
    core_run_held(j);
}

/* The keys are all that is wanted: no service is asked. */
static void keys_alone(struct jobs *j)
{
    err_set(&j->priv->account_err, ERR_CONFLICT, "no account is used here");
    j->priv->account_known = true;
}

void core_account_start(struct jobs *j)
{
    if (j->priv->net_err.code)
        account_none(j, LINK_DOWN, &j->priv->net_err);
    else if (j->o.keys_only)
        keys_alone(j);
    else if (j->o.local)
        core_local_open(j);
    /* else core_account_keys() decides as soon as the stored ones are known */
}

void core_account_local(struct jobs *j, const struct e2b_account *a, const struct err *e)
{
    struct err said = {0};

    if (a) {
        account_use(j, a);
    } else if (j->e2b) { /* the one we had is gone */
        core_link(j, LINK_DOWN, e->text);
    } else if (e->code == ERR_NOTFOUND && !j->o.local) {
        err_set(&said, ERR_AUTH, "no E2B key is known and no local provider runs: set E2B_API_KEY, "
                                 "run cc-tui keys add e2b, or start with --local");
        account_none(j, LINK_AUTH, &said);
    } else {
        account_none(j, LINK_DOWN, e);
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
    key_found_release(&p->key);
    free(p->link.text);
    free(p->link.account);
    p->link.text = p->link.account = NULL;
}
