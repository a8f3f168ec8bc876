/* The ledger set right: how a run went that nobody here saw begin or end is asked of the
 * service, which keeps for some days what happened to a sandbox. One sandbox after the other,
 * slowly, and rarely where a service does not tell such things. */
#include "core_priv.h"

#include <cct/e2b/look.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>

enum { AT_ONCE = 50, EVENTS = 100, BEGIN_MS = 500, APART_MS = 300, ROUND_MS = 600000,
       MISSING_MS = 6 * 3600000 };
#define LATE_MS INT64_C(3600000) /* what is not told by then will not be */

struct reckon {
    struct jobs *j;
    uint64_t timer, call;
    struct e2b *client; /* of the call */
    ARR(struct st_doubt) v;
    size_t at, unknown;
};

static void round_begins(void *ctx);

static struct reckon *reckon_of(struct jobs *j)
{
    if (!j->priv->reckon) {
        j->priv->reckon = xcalloc(1, sizeof(struct reckon));
        j->priv->reckon->j = j;
    }
    return j->priv->reckon;
}

static void forget(struct reckon *k)
{
    for (size_t i = 0; i < k->v.n; i++)
        free(k->v.v[i].sandbox_id);
    ARR_CLEAR(&k->v);
    k->at = k->unknown = 0;
}

static void stop(struct reckon *k)
{
    jobs_store_forget(k->j, k);
    net_timer_cancel(k->j->o.net, k->timer);
    core_call_cancel(k->j, k->client, k->call);
    k->timer = k->call = 0;
    forget(k);
}

void core_reckon_release(struct jobs *j)
{
    struct reckon *k = j->priv->reckon;

    if (!k)
        return;
    stop(k);
    ARR_RELEASE(&k->v);
    free(k);
    j->priv->reckon = NULL;
}

static void again(struct reckon *k, int64_t ms)
{
    forget(k);
    k->timer = net_timer(k->j->o.net, ms, round_begins, k);
}

/* --- one sandbox ------------------------------------------------------------------------ */

static bool life_of(const struct e2b_event *ev, struct life *l)
{
    static const struct {
        const char *type;
        enum life_kind kind;
    } kinds[] = {{"sandbox.lifecycle.created", LIFE_BEGAN},
                 {"sandbox.lifecycle.resumed", LIFE_BEGAN},
                 {"sandbox.lifecycle.paused", LIFE_PAUSED},
                 {"sandbox.lifecycle.killed", LIFE_ENDED}};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (str_eq(ev->type, kinds[i].type) && ev->time_ms > 0) {
            *l = (struct life){kinds[i].kind, ev->time_ms,
                               ev->run_started_ms > 0 ? ev->run_started_ms : 0};
            return true;
        }
    return false;
}

static void take(struct reckon *k, const struct e2b_result *r)
{
    const struct st_doubt *d = &k->v.v[k->at];
    struct life *v = xcalloc(r->n_events + 1, sizeof(*v));
    struct span *out = xcalloc(r->n_events + 1, sizeof(*out));
    size_t n = 0, runs;

    for (size_t i = r->n_events; i-- > 0;) /* the newest came first */
        n += str_eq(r->events[i].sandbox_id, d->sandbox_id) && life_of(&r->events[i], &v[n]);
    runs = ledger_life(v, n, out);
    store_runs_told(k->j->o.store, d->sandbox_id, d->from, out, runs,
                    (runs && out[runs - 1].how == SPAN_GONE) ||
                        d->from < jobs_now(k->j) - LATE_MS,
                    (struct st_to){NULL, 0});
    k->j->priv->usage.dirty |= runs > 0;
    free(v);
    free(out);
}

static void next(void *ctx);

static void on_events(void *ctx, const struct e2b_result *r)
{
    struct reckon *k = ctx;

    k->call = 0;
    if (r->err.code == ERR_NOTFOUND) {
        k->unknown++;
    } else if (r->err.code) {
        bool missing = r->err.code == ERR_PROTO || r->err.code == ERR_AUTH ||
                       r->err.code == ERR_INVALID;
        again(k, missing ? MISSING_MS : ROUND_MS);
        return;
    } else {
        take(k, r);
    }
    k->at++;
    k->timer = net_timer(k->j->o.net, APART_MS, next, k);
}

static void next(void *ctx)
{
    static const char *const types[] = {"sandbox.lifecycle.created", "sandbox.lifecycle.resumed",
                                        "sandbox.lifecycle.paused", "sandbox.lifecycle.killed",
                                        NULL};
    struct reckon *k = ctx;
    struct e2b_event_query q = {.types = types, .limit = EVENTS};

    k->timer = 0;
    if (k->at >= k->v.n || !k->j->e2b) {
        again(k, k->v.n && k->unknown == k->v.n ? MISSING_MS : ROUND_MS);
        return;
    }
    q.sandbox_id = k->v.v[k->at].sandbox_id;
    k->client = k->j->e2b;
    k->call = e2b_events(k->client, &q, NULL, on_events, k);
}

/* --- rounds ----------------------------------------------------------------------------- */

static void on_doubts(void *ctx, struct st_reply *r)
{
    struct reckon *k = ctx;

    forget(k);
    for (size_t i = 0; i < r->n_doubts; i++) {
        *ARR_PUSH(&k->v) = r->doubts[i];
        r->doubts[i].sandbox_id = NULL;
    }
    next(k);
}

static void round_begins(void *ctx)
{
    struct reckon *k = ctx;

    k->timer = 0;
    store_doubts(k->j->o.store, k->j->priv->place, jobs_now(k->j), AT_ONCE,
                 jobs_store(k->j, on_doubts, k, k));
}

void core_reckon_listed(struct jobs *j, bool first)
{
    struct reckon *k;

    if (!first || j->o.readonly)
        return;
    k = reckon_of(j); /* another account, or the first */
    stop(k);
    k->timer = net_timer(j->o.net, BEGIN_MS, round_begins, k);
}
