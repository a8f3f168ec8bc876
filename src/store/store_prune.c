/* Retention: what is old goes in short transactions, so that nobody waits for it. */
#include "store_priv.h"

#include <cct/util/clock.h>
#include <stddef.h>

enum {
    ROWS_AT_ONCE = 256,
    LOG_LINES_KEPT = 5000,
    BUILDS_KEPT = 20,   /* of a template, however old */
    BUILDS_MOST = 5000, /* of all, however new */
    NOTES_DAYS = 100,   /* no budget is of a longer time than a month */
    LEASES_DAYS = 2,    /* of whoever has not come back */
    DAY_MS = 24 * 60 * 60 * 1000,
};

enum stage { OLD_SANDBOXES, ORPHANS, TOO_MUCH_RAW, LOG_LINES, OLD_BUILDS, NOTES, VACUUM, DONE };

/* Delete a part of the rows of a run; *left tells whether there may be more. */
static int thin_run(struct store *s, int64_t run, bool events_too, bool *left, struct err *e)
{
    int rc = events_too ? 0 : st_lines_take_over(s, run, left, e);
    if (rc != 0 || (!events_too && *left))
        return rc;
    rc = st_run(s, e,
                    "DELETE FROM rawChunks WHERE id IN"
                    " (SELECT id FROM rawChunks WHERE run=? ORDER BY offset LIMIT ?)",
                    "ii", run, (int64_t)ROWS_AT_ONCE);
    *left = rc == 0 && sqlite3_changes(s->db) == ROWS_AT_ONCE;
    if (rc != 0 || *left)
        return rc;
    rc = st_run(s, e, "UPDATE runs SET rawBytes=0 WHERE id=?", "i", run);
    if (rc != 0 || !events_too)
        return rc;
    rc = st_run(s, e,
                "DELETE FROM agentEvents WHERE run=?1 AND (offset, idx) IN"
                " (SELECT offset, idx FROM agentEvents WHERE run=?1 LIMIT ?2)",
                "ii", run, (int64_t)ROWS_AT_ONCE);
    *left = rc == 0 && sqlite3_changes(s->db) == ROWS_AT_ONCE;
    return rc != 0 || *left ? rc : st_search_forget(s, run, ROWS_AT_ONCE, left, e);
}

/* Each step returns 1 when it found work, 0 when the stage is over, or a code. */
static int old_sandboxes(struct store *s, struct err *e)
{
    int64_t id, run;
    bool left = false;
    if (s->retention_days <= 0)
        return 0;
    int64_t before = clock_wall_ms() - (int64_t)s->retention_days * DAY_MS;
    int rc = st_number(s, e, 0, &id,
                       "SELECT id FROM sandboxes WHERE state='killed' AND"
                       " max(endedAt, seenAt, createdAt) BETWEEN 1 AND ? LIMIT 1",
                       "i", before);
    if (rc != 0 || id == 0)
        return rc;
    rc = st_number(s, e, 0, &run, "SELECT id FROM runs WHERE sandbox=? LIMIT 1", "i", id);
    if (rc == 0 && run != 0) {
        rc = thin_run(s, run, true, &left, e);
        if (rc == 0 && !left)
            rc = st_run(s, e, "DELETE FROM runs WHERE id=?", "i", run);
    } else if (rc == 0) {
        rc = st_run(s, e, "DELETE FROM sandboxes WHERE id=?", "i", id);
    }
    return rc == 0 ? 1 : rc;
}

/* Rows of runs that went with their sandbox. */
static int orphans(struct store *s, struct err *e)
{
    static const char *const next[] = {
        "SELECT run FROM rawChunks WHERE run>? ORDER BY run LIMIT 1",
        "SELECT run FROM agentEvents WHERE run>? ORDER BY run LIMIT 1",
        "SELECT run FROM searchDocs WHERE run>? ORDER BY run LIMIT 1"};
    for (size_t i = 0; i < sizeof(next) / sizeof(next[0]); i++) {
        int64_t run = 0, known = 1;
        int rc;
        do {
            rc = st_number(s, e, 0, &run, next[i], "i", run);
            if (rc == 0 && run != 0)
                rc = st_number(s, e, 0, &known, "SELECT 1 FROM runs WHERE id=?", "i", run);
        } while (rc == 0 && run != 0 && known);
        bool left;
        if (rc == 0 && run != 0)
            rc = thin_run(s, run, true, &left, e);
        if (rc != 0 || run != 0)
            return rc != 0 ? rc : 1;
    }
    return 0;
}

static int too_much_raw(struct store *s, struct err *e)
{
    int64_t total, run;
    bool left;
    if (s->max_bytes <= 0)
        return 0;
    int rc = st_number(s, e, 0, &total, "SELECT sum(rawBytes) FROM runs", "");
    if (rc != 0 || total <= s->max_bytes)
        return rc;
    rc = st_number(s, e, 0, &run,
                   "SELECT r.id FROM runs r JOIN sandboxes b ON b.id=r.sandbox WHERE"
                   " r.rawBytes>0 AND (r.ended OR b.state='killed')"
                   " ORDER BY max(r.endedAt, r.startedAt), r.id LIMIT 1",
                   "");
    if (rc != 0 || run == 0)
        return rc;
    rc = thin_run(s, run, false, &left, e);
    return rc == 0 ? 1 : rc;
}

static int log_lines(struct store *s, struct err *e)
{
    int rc = st_run(s, e,
                    "DELETE FROM events WHERE id IN (SELECT id FROM events WHERE id <="
                    " (SELECT max(id) FROM events) - ? ORDER BY id LIMIT ?)",
                    "ii", (int64_t)LOG_LINES_KEPT, (int64_t)ROWS_AT_ONCE);
    return rc != 0 ? rc : sqlite3_changes(s->db) == ROWS_AT_ONCE;
}

/* Old, and others of its template came after it; or simply too many. */
static int old_builds(struct store *s, struct err *e)
{
    int64_t before = s->retention_days > 0
                         ? clock_wall_ms() - (int64_t)s->retention_days * DAY_MS
                         : 0;
    int rc = st_run(s, e,
                    "DELETE FROM templateBuilds WHERE id IN (SELECT id FROM"
                    " (SELECT id, max(startedAt, endedAt) AS at, row_number() OVER"
                    "  (PARTITION BY account, templateName ORDER BY id DESC) AS nth,"
                    "  row_number() OVER (ORDER BY id DESC) AS of_all FROM templateBuilds)"
                    " WHERE (nth>?1 AND at<?2) OR of_all>?3 LIMIT ?4)",
                    "iiii", (int64_t)BUILDS_KEPT, before, (int64_t)BUILDS_MOST,
                    (int64_t)ROWS_AT_ONCE);

    return rc != 0 ? rc : sqlite3_changes(s->db) == ROWS_AT_ONCE;
}

/* What was told of budgets of times long over, and leases that ended long ago. */
static int notes(struct store *s, struct err *e)
{
    int64_t now = clock_wall_ms();
    int rc = st_run(s, e, "DELETE FROM budgetNotes WHERE begin<?", "i",
                    now - (int64_t)NOTES_DAYS * DAY_MS);

    return rc != 0 ? rc : st_run(s, e, "DELETE FROM leases WHERE until<?", "i",
                                 now - (int64_t)LEASES_DAYS * DAY_MS);
}

static int vacuum(struct store *s, struct err *e)
{
    int64_t before, after;
    if (!s->vacuum)
        return 0;
    int rc = st_number(s, e, 0, &before, "PRAGMA freelist_count", "");
    if (rc != 0 || before == 0)
        return rc;
    rc = st_run(s, e, "PRAGMA incremental_vacuum(256)", "");
    if (rc == 0)
        rc = st_number(s, e, 0, &after, "PRAGMA freelist_count", "");
    return rc != 0 ? rc : after < before && after > 0;
}

bool st_prune_step(struct store *s, struct err *e)
{
    static int (*const stages[])(struct store *, struct err *) = {
        [OLD_SANDBOXES] = old_sandboxes,
        [ORPHANS] = orphans,
        [TOO_MUCH_RAW] = too_much_raw,
        [LOG_LINES] = log_lines,
        [OLD_BUILDS] = old_builds,
        [NOTES] = notes,
        [VACUUM] = vacuum,
    };
    int rc = s->readonly ? 0 : st_begin(s, false, e);
    if (rc == 0 && !s->readonly) {
        rc = stages[s->prune.stage](s, e);
        if (rc >= 0) {
            int committed = st_commit(s, e);
            if (committed != 0)
                rc = committed;
        } else {
            st_rollback(s);
        }
    }
    if (rc == 0)
        s->prune.stage++;
    if (rc < 0 || s->readonly || s->prune.stage == DONE) {
        s->prune.stage = OLD_SANDBOXES;
        return false;
    }
    return true;
}
