/* The ledger on the net thread: what lists and answers say of the sandboxes goes to the store,
 * when it changed and from time to time while they run; sums come back. */
#include "core_priv.h"

#include <cct/config/models.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <stdlib.h>

#define AGAIN_MS 15000 /* a kill of this program costs the ledger no more than that */

/* Our own provider costs nothing. */
static double rate_of(const struct jobs *j, const struct sandbox *row)
{
    if (str_eq(row->account, "local"))
        return 0;
    return j->o.models ? sandbox_rate_of(models_sandbox(j->o.models), row->cpu_count, row->memory_mb)
                       : (double)NAN;
}

static void post(struct jobs *j, const struct st_sighting *v, size_t n)
{
    if (n)
        store_sightings(j->o.store, v, n,
                        j->o.models ? models_sandbox(j->o.models)->date : NULL);
}

static struct st_sighting sighting(const struct jobs *j, const struct sandbox *row)
{
    return (struct st_sighting){row->id, ledger_sighting(row, jobs_now(j)), rate_of(j, row)};
}

/* Before the first list its time is not known, and that list tells all of it. A service that
 * never tells its time is taken to have ours. */
static bool is_told(const struct jobs *j, const struct sandbox *row)
{
    return row->id && row->id < CORE_LOCAL_IDS && row->sandbox_id &&
           j->priv->link.listed_at;
}

void core_usage_row(struct jobs *j, const struct sandbox *row)
{
    struct st_sighting v;

    if (!is_told(j, row))
        return;
    v = sighting(j, row);
    post(j, &v, 1);
}

void core_usage_listed(struct jobs *j, bool first)
{
    int64_t now = clock_mono_ms();
    struct st_sighting *v;
    size_t n = 0;

    if (!first && now < j->priv->usage_next)
        return;
    j->priv->usage_next = now + AGAIN_MS;
    v = xcalloc(j->table.n + 1, sizeof(*v));
    for (size_t i = 0; i < j->table.n; i++) {
        const struct sandbox *row = &j->table.v[i];

        if (is_told(j, row) && (first ? row->state != SB_KILLED : core_row_live(row)))
            v[n++] = sighting(j, row);
    }
    post(j, v, n);
    free(v);
}

/* --- sums ------------------------------------------------------------------------------ */

struct sums {
    struct jobs *j;
    uint64_t req_id;
};

static void add_rate(const struct jobs *j, struct ledger_report *r)
{
    const struct sandbox_rate *rate = j->o.models ? models_sandbox(j->o.models) : NULL;

    if (!rate)
        return;
    r->rate_date = xstrdup(rate->date);
    r->rate_text = xasprintf("2 vCPU + 1.0 GiB = $%.3f/h, source: %s",
                             sandbox_rate_of(rate, 2, 1024) * 3600,
                             rate->own ? "models.conf" : "built in");
}

static void on_report(void *ctx, struct st_reply *r)
{
    struct sums *q = ctx;

    if (!r->err.code) {
        struct ev_usage *ev = ev_new(EV_USAGE);

        ev->m.req_id = q->req_id;
        ev->report = r->report;
        r->report = NULL;
        add_rate(q->j, ev->report);
        jobs_post(q->j, ev);
    }
    jobs_done(q->j, q->req_id, r->err.code ? &r->err : NULL, 0);
    free(q);
}

void core_usage(struct jobs *j, const struct cmd *c)
{
    int64_t now = jobs_now(j);
    struct ledger_query query;
    struct err e = {0};
    struct sums *q;

    if (ledger_range(c->text ? c->text : "week", now, &query, &e) != 0) {
        jobs_done(j, c->m.req_id, &e, 0);
        return;
    }
    q = xcalloc(1, sizeof(*q));
    *q = (struct sums){j, c->m.req_id};
    core_rows_flush(j);
    store_ledger(j->o.store, &query, jobs_store(j, on_report, q, NULL));
}
