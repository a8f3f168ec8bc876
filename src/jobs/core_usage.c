/* The ledger on the net thread: what lists and answers say of the sandboxes goes to the store,
 * when it changed and from time to time while they run; sums come back, for who asks and, for
 * the screen, at most once a minute when they are others than before. */
#include "core_priv.h"

#include <cct/config/models.h>
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <stdlib.h>

#define AGAIN_MS 15000  /* a kill of this program costs the ledger no more than that */
#define MINUTE_MS 60000 /* the screen shows new sums by the minute */
#define AHEAD_MS 20000  /* ... and has them by then, though lists may be 15 s apart */

double core_usage_rate(const struct jobs *j, const struct sandbox *row)
{
    return j->o.models ? models_sandbox_rate(j->o.models, row->account, row->cpu_count,
                                             row->memory_mb)
                       : (double)NAN;
}

static void post(struct jobs *j, const struct st_sighting *v, size_t n)
{
    if (n)
        store_sightings(j->o.store, v, n,
                        j->o.models ? models_sandbox(j->o.models)->date : NULL);
    for (size_t i = 0; i < n; i++)
        j->priv->usage.dirty |= v[i].g.known;
}

static struct st_sighting sighting(const struct jobs *j, const struct sandbox *row)
{
    return (struct st_sighting){row->id, ledger_sighting(row, jobs_now(j)),
                                core_usage_rate(j, row)};
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

static bool runs(const struct sandbox *row)
{
    return core_row_live(row) && row->state != SB_PAUSED;
}

static void tell_running(struct jobs *j, bool first)
{
    int64_t now = clock_mono_ms();
    struct st_sighting *v;
    size_t n = 0;

    if (!first && now < j->priv->usage.next_told)
        return;
    j->priv->usage.next_told = now + AGAIN_MS;
    v = xcalloc(j->table.n + 1, sizeof(*v));
    for (size_t i = 0; i < j->table.n; i++) {
        const struct sandbox *row = &j->table.v[i];

        if (is_told(j, row) && (first ? row->state != SB_KILLED : runs(row)))
            v[n++] = sighting(j, row);
    }
    post(j, v, n);
    free(v);
}

/* --- sums ------------------------------------------------------------------------------ */

struct sums {
    struct jobs *j;
    uint64_t req_id; /* 0: nobody asked, they are for the screen */
    char *path;      /* a file to write instead, or NULL */
};

static void sums_drop(struct sums *q)
{
    struct usage_feed *f = &q->j->priv->usage;

    for (size_t i = 0; i < f->sums.n; i++)
        if (f->sums.v[i] == q) {
            ARR_REMOVE(&f->sums, i);
            break;
        }
    jobs_store_forget(q->j, q);
    free(q->path);
    free(q);
}

static void add_limits(const struct jobs *j, struct ledger_report *r)
{
    const struct sandbox_rate *rate = j->o.models ? models_sandbox(j->o.models) : NULL;
    double usd = rate ? sandbox_rate_of(rate, 2, 1024) * 3600 : (double)NAN;
    const char *source = rate && rate->own ? "models.conf" : "built in";

    r->limits = j->o.usage_limits;
    core_budget_projects(j, r);
    if (!rate)
        return;
    r->rate_date = xstrdup(rate->date);
    r->rate_text = isnan(usd) ? xasprintf("sandboxes are unpriced, source: %s", source)
                              : xasprintf("2 vCPU + 1.0 GiB = $%.3f/h, source: %s", usd, source);
}

/* Small, and to a file of this machine. */
static void write_file(const struct sums *q, struct st_reply *r)
{
    struct ev_done *d = ev_new(EV_DONE);
    struct buf b = BUF_INIT;

    d->m.req_id = q->req_id;
    d->err = r->err;
    d->text = xstrdup(q->path);
    if (!d->err.code) {
        ledger_csv(r->report, LEDGER_ALL_BYS, &b);
        fs_write_new(q->path, b.p, b.len, &d->err);
    }
    jobs_post(q->j, d);
    buf_release(&b);
}

static void on_report(void *ctx, struct st_reply *r)
{
    struct sums *q = ctx;
    struct jobs *j = q->j;

    if (q->path) {
        write_file(q, r);
        sums_drop(q);
        return;
    }
    if (!q->req_id)
        j->priv->usage.asked = false;
    if (!r->err.code) {
        struct ev_usage *ev = ev_new(EV_USAGE);

        ev->m.req_id = q->req_id;
        ev->report = r->report;
        r->report = NULL;
        add_limits(j, ev->report);
        if (j->o.follow_all)
            core_budget_look(j, ev->report);
        jobs_post(j, ev);
    }
    jobs_done(j, q->req_id, r->err.code ? &r->err : NULL, 0);
    sums_drop(q);
}

static void ask(struct jobs *j, uint64_t req_id, const struct ledger_query *query,
                const char *path)
{
    struct sums *q = *ARR_PUSH(&j->priv->usage.sums) = xmalloc(sizeof(*q));

    *q = (struct sums){j, req_id, xstrdup(path)};
    store_ledger(j->o.store, query, jobs_store(j, on_report, q, q));
}

void core_usage(struct jobs *j, const struct cmd *c)
{
    struct ledger_query query;
    struct err e = {0};

    if (ledger_range(c->text ? c->text : "week", jobs_now(j), &query, &e) != 0) {
        jobs_done(j, c->m.req_id, &e, 0);
        return;
    }
    query.by_hour = c->n & USAGE_BY_HOUR;
    if (c->n & USAGE_KEEP) {
        free(j->priv->usage.range);
        j->priv->usage.range = xstrdup(c->text);
    }
    core_rows_flush(j);
    ask(j, c->m.req_id, &query, c->text2);
}

/* Until shortly before a minute of the user's clock is full. */
static int64_t before_minute(int64_t wall)
{
    int64_t ms = MINUTE_MS - wall % MINUTE_MS - AHEAD_MS;
    return ms > 0 ? ms : ms + MINUTE_MS;
}

void core_usage_show(struct jobs *j)
{
    struct usage_feed *f = &j->priv->usage;
    int64_t mono = clock_mono_ms(), now = jobs_now(j);
    struct ledger_query query;

    f->dirty |= j->used || now >= f->day_ends;
    if (!j->o.follow_all || f->asked || !f->dirty || (f->next_sums && mono < f->next_sums) ||
        ledger_range(f->range ? f->range : "week", now, &query, NULL) != 0)
        return;
    f->asked = true;
    f->dirty = j->used = false;
    f->next_sums = mono + before_minute(clock_wall_ms());
    f->day_ends = query.period[PERIOD_DAY].to;
    ask(j, 0, &query, NULL);
}

void core_usage_listed(struct jobs *j, bool first)
{
    tell_running(j, first);
    if (first)
        j->priv->usage.next_sums = 0;
    core_usage_show(j);
    core_reckon_listed(j, first);
}

void core_usage_release(struct jobs *j)
{
    core_reckon_release(j);
    core_budget_release(j);
    while (j->priv->usage.sums.n)
        sums_drop(j->priv->usage.sums.v[0]);
    ARR_RELEASE(&j->priv->usage.sums);
    free(j->priv->usage.range);
    j->priv->usage.range = NULL;
}
