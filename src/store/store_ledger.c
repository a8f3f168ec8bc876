/* The ledger: intervals in which sandboxes ran, and what agents used. Each row is keyed by
 * what it tells of, so that telling it twice changes nothing. */
#include "store_priv.h"

#include <cct/util/xalloc.h>
#include <math.h>
#include <stdlib.h>

void st_use_free(struct st_use *u)
{
    if (!u)
        return;
    free(u->total);
    free(u->role);
    free(u->model);
    free(u->rate_date);
    free(u);
}

/* --- what agents used -------------------------------------------------------------------- */

struct before { /* what was counted under a total so far */
    int64_t in, cache_read, cache_write, out;
    double cost;
};

static int counted(struct store *s, int64_t run, const struct st_use *u, struct before *b,
                   struct err *e)
{
    sqlite3_stmt *q = st_query(
        s, e,
        "SELECT sum(inTokens), sum(cacheRead), sum(cacheWrite), sum(outTokens), total(costUsd)"
        " FROM usageTurns WHERE sandbox=(SELECT sandbox FROM runs WHERE id=?) AND total=?"
        " AND role=coalesce(?, '')",
        "itt", run, u->total, u->role);
    int rc = q ? st_step(s, q, e) : e->code;

    if (rc != 1)
        return rc;
    *b = (struct before){sqlite3_column_int64(q, 0), sqlite3_column_int64(q, 1),
                         sqlite3_column_int64(q, 2), sqlite3_column_int64(q, 3),
                         sqlite3_column_double(q, 4)};
    sqlite3_reset(q);
    return 0;
}

static int64_t grown(int64_t now, int64_t before)
{
    return now > before ? now - before : 0;
}

int st_ledger_use(struct store *s, uint64_t run, const struct st_event *ev, struct err *e)
{
    const struct st_use *u = ev->use;
    struct before b = {0};
    int rc = u->total && !u->ends ? counted(s, (int64_t)run, u, &b, e) : 0;
    double cost = isnan(u->cost_usd) ? u->cost_usd : fmax(0, u->cost_usd - b.cost);

    if (u->ends)
        return st_run(s, e,
                      "UPDATE usageTurns SET total=NULL WHERE sandbox=(SELECT sandbox FROM runs"
                      " WHERE id=?) AND total=? AND role=coalesce(?, '')",
                      "itt", (int64_t)run, u->total, u->role);
    if (rc != 0)
        return rc;
    return st_run(s, e,
                  "INSERT OR IGNORE INTO usageTurns(run, offset, idx, sandbox, sandboxId, name,"
                  " project, tool, template, role, total, model, timeMs, inTokens, cacheRead,"
                  " cacheWrite, outTokens, costUsd, rateDate)"
                  " SELECT r.id, ?2, ?3, s.id, s.sandboxId, s.name, s.project, s.tool,"
                  " coalesce(s.alias, s.templateId), coalesce(?4, ''), ?5, ?6, ?7, ?8, ?9, ?10,"
                  " ?11, ?12, ?13 FROM runs r JOIN sandboxes s ON s.id=r.sandbox WHERE r.id=?1",
                  "iiitttiiiiidt", (int64_t)run, (int64_t)ev->offset, (int64_t)ev->index,
                  u->role, u->total, u->model, u->time_ms, grown(u->in_tokens, b.in),
                  grown(u->cache_read, b.cache_read), grown(u->cache_write, b.cache_write),
                  grown(u->out_tokens, b.out), cost, u->rate_date);
}

int st_op_ledger_forget(struct store *s, const struct st_req *q, struct st_reply *r)
{
    return st_run(s, &r->err, "DELETE FROM usageTurns WHERE run=? AND offset<?", "ii",
                  (int64_t)q->id, (int64_t)q->offset);
}

/* --- intervals --------------------------------------------------------------------------- */

static int last_span(struct store *s, int64_t sandbox, int64_t *id, struct span *last,
                     struct err *e)
{
    sqlite3_stmt *q = st_query(
        s, e,
        "SELECT id, startedAt, endedAt, how, estimate FROM usageSpans WHERE sandboxId="
        "(SELECT sandboxId FROM sandboxes WHERE id=?) ORDER BY startedAt DESC LIMIT 1",
        "i", sandbox);
    int rc = q ? st_step(s, q, e) : e->code;

    *id = 0;
    if (rc != 1)
        return rc;
    *id = sqlite3_column_int64(q, 0);
    *last = (struct span){sqlite3_column_int64(q, 1), sqlite3_column_int64(q, 2),
                          (enum span_how)sqlite3_column_int(q, 3), sqlite3_column_int(q, 4) != 0};
    sqlite3_reset(q);
    return 0;
}

/* What it costs is found out at its begin; the sizes may be known later than that. */
static int amend(struct store *s, int64_t id, const struct span *p, const struct st_sighting *v,
                 const char *rate_date, struct err *e)
{
    return st_run(s, e,
                  "UPDATE OR IGNORE usageSpans SET startedAt=?1, endedAt=?2, how=?3, estimate=?4,"
                  " rateDate=CASE WHEN usdPerS IS NULL THEN ?6 ELSE rateDate END,"
                  " usdPerS=coalesce(usdPerS, ?5), (name, project, tool, template, cpuCount,"
                  " memoryMb)=(SELECT s.name, s.project, s.tool, coalesce(s.alias, s.templateId),"
                  " s.cpuCount, s.memoryMb FROM sandboxes s WHERE s.id=?7) WHERE id=?8",
                  "iiiidtii", p->start, p->end, (int64_t)p->how, (int64_t)p->estimate,
                  v->usd_per_s, rate_date, (int64_t)v->sandbox, id);
}

static int begin(struct store *s, const struct span *p, const struct st_sighting *v,
                 const char *rate_date, struct err *e)
{
    return st_run(s, e,
                  "INSERT OR IGNORE INTO usageSpans(sandboxId, account, name, project, tool,"
                  " template, cpuCount, memoryMb, startedAt, endedAt, how, estimate, usdPerS,"
                  " rateDate) SELECT sandboxId, account, name, project, tool,"
                  " coalesce(alias, templateId), cpuCount, memoryMb, ?2, ?3, ?4, ?5, ?6, ?7"
                  " FROM sandboxes WHERE id=?1 AND sandboxId IS NOT NULL",
                  "iiiiidt", (int64_t)v->sandbox, p->start, p->end, (int64_t)p->how,
                  (int64_t)p->estimate, v->usd_per_s, isnan(v->usd_per_s) ? NULL : rate_date);
}

int st_op_sightings(struct store *s, const struct st_req *q, struct st_reply *r)
{
    int rc = 0;

    for (size_t i = 0; i < q->n_sightings && rc == 0; i++) {
        const struct st_sighting *v = &q->sightings[i];
        struct span last = {0}, next = {0};
        unsigned what = 0;
        int64_t id;

        rc = last_span(s, (int64_t)v->sandbox, &id, &last, &r->err);
        if (rc == 0)
            what = ledger_follow(&last, id != 0, &v->g, &next);
        if (what & LEDGER_LAST)
            rc = amend(s, id, &last, v, isnan(v->usd_per_s) ? NULL : q->s1, &r->err);
        if (rc == 0 && (what & LEDGER_NEXT))
            rc = begin(s, &next, v, q->s1, &r->err);
    }
    return rc;
}
