/* What is told about the ledger from outside: how runs went that nobody here saw end, and
 * which budgets the user has been told of. */
#include "store_priv.h"

#include <cct/util/xalloc.h>
#include <stdlib.h>

#define DAYS_MS (7 * INT64_C(86400000)) /* so long a service keeps what happened */
#define SEEN_MS INT64_C(180000) /* what is open and was seen since then, runs */
#define SAME_MS 10000

int st_op_doubts(struct store *s, const struct st_req *q, struct st_reply *r)
{
    sqlite3_stmt *p = st_query(s, &r->err,
                               "SELECT sandboxId, min(startedAt) FROM usageSpans WHERE endedAt>=?2"
                               " AND account IS ?1 AND settled=0"
                               " AND (estimate<>0 OR (how=0 AND endedAt<?3))"
                               " GROUP BY sandboxId ORDER BY max(endedAt) DESC LIMIT ?4",
                               "tiii", q->s1, q->n1 - DAYS_MS, q->n1 - SEEN_MS, q->n2);
    int rc = p ? 0 : r->err.code;

    r->doubts = xcalloc((size_t)q->n2 + 1, sizeof(*r->doubts));
    while (rc == 0 && (rc = st_step(s, p, &r->err)) == 1) {
        r->doubts[r->n_doubts++] = (struct st_doubt){st_text(p, 0), sqlite3_column_int64(p, 1)};
        rc = 0;
    }
    return rc;
}

/* The row that tells of this run: by its begin, else one whose begin was guessed within it.
 * *id 0: none. *sure: it is known already. */
static int find(struct store *s, const char *sandbox_id, const struct span *v, int64_t *id,
                bool *sure, struct err *e)
{
    sqlite3_stmt *p = st_query(s, e,
                               "SELECT id, how<>0 AND estimate=0 FROM usageSpans WHERE sandboxId=?1"
                               " AND ((startedAt BETWEEN ?2-?4 AND ?2+?4"
                               "   AND (estimate<>0 OR how=0 OR endedAt>?2))"
                               "  OR (estimate<>0 AND startedAt BETWEEN ?2 AND ?3))"
                               " ORDER BY abs(startedAt-?2) LIMIT 1",
                               "tiii", sandbox_id, v->start, v->end, (int64_t)SAME_MS);
    int rc = p ? st_step(s, p, e) : e->code;

    *id = 0;
    if (rc != 1)
        return rc;
    *id = sqlite3_column_int64(p, 0);
    *sure = sqlite3_column_int(p, 1) != 0;
    sqlite3_reset(p);
    return 0;
}

/* One that nobody here has seen at all: of the same sizes and price as the one next to it. */
static int add(struct store *s, const char *sandbox_id, const struct span *v, struct err *e)
{
    return st_run(s, e,
                  "INSERT OR IGNORE INTO usageSpans(sandboxId, account, name, project, tool,"
                  " template, cpuCount, memoryMb, startedAt, endedAt, how, estimate, usdPerS,"
                  " rateDate) SELECT sandboxId, account, name, project, tool, template, cpuCount,"
                  " memoryMb, ?2, ?3, ?4, 0, usdPerS, rateDate FROM usageSpans WHERE sandboxId=?1"
                  " ORDER BY abs(startedAt-?2) LIMIT 1",
                  "tiii", sandbox_id, v->start, v->end, (int64_t)v->how);
}

static int settle(struct store *s, const char *sandbox_id, int64_t from, const struct span *v,
                  struct err *e)
{
    bool sure = false;
    int64_t id;
    int rc = find(s, sandbox_id, v, &id, &sure, e);

    if (rc == 0 && !id && v->start >= from)
        return add(s, sandbox_id, v, e);
    if (rc != 0 || !id)
        return rc;
    /* what else was guessed of this run */
    rc = st_run(s, e,
                "DELETE FROM usageSpans WHERE sandboxId=? AND id<>? AND estimate<>0"
                " AND startedAt>=? AND startedAt<?",
                "tiii", sandbox_id, id, v->start - SAME_MS, v->end);
    if (rc != 0 || sure)
        return rc;
    return st_run(s, e,
                  "UPDATE OR IGNORE usageSpans SET startedAt=CASE WHEN abs(startedAt-?2)>?5"
                  " THEN ?2 ELSE startedAt END, endedAt=max(?3, startedAt), how=?4, estimate=0"
                  " WHERE id=?1",
                  "iiiii", id, v->start, v->end, (int64_t)v->how, (int64_t)SAME_MS);
}

int st_op_runs_told(struct store *s, const struct st_req *q, struct st_reply *r)
{
    int64_t from = q->n1 - SAME_MS;
    int rc = 0;

    for (size_t i = 0; i < q->n_spans && rc == 0; i++)
        if (q->spans[i].end >= from)
            rc = settle(s, q->s1, from, &q->spans[i], &r->err);
    if (rc == 0 && q->flag)
        rc = st_run(s, &r->err,
                    "UPDATE usageSpans SET settled=1 WHERE sandboxId=? AND startedAt>=?", "ti",
                    q->s1, from);
    return rc;
}

int st_op_budget_told(struct store *s, const struct st_req *q, struct st_reply *r)
{
    int rc = st_run(s, &r->err,
                    "INSERT OR IGNORE INTO budgetNotes(period, begin, project, pct)"
                    " VALUES(?,?,?,?)",
                    "titi", q->s1, q->n1, q->s2, q->n2);

    r->got = rc == 0 && sqlite3_changes(s->db) > 0;
    return rc;
}
