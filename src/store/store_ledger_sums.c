/* Sums over the ledger. Turns come from what their days and half hours came to; those half hours
 * in which the times that are asked for begin or end are read turn by turn. */
#include "store_schema.h"

#include <cct/util/map.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <stdlib.h>

#define FRESH_MS 90000 /* an open interval seen so lately lasts until now */

static const char *text_at(sqlite3_stmt *q, int col)
{
    return (const char *)sqlite3_column_text(q, col);
}

static struct ledger_place place_at(sqlite3_stmt *q)
{
    return (struct ledger_place){text_at(q, 0), text_at(q, 1), text_at(q, 2), text_at(q, 3),
                                 text_at(q, 4)};
}

static double price_at(sqlite3_stmt *q, int col)
{
    return sqlite3_column_type(q, col) == SQLITE_NULL ? (double)NAN : sqlite3_column_double(q, col);
}

static int add_spans(struct store *s, struct ledger_report *r, struct err *e)
{
    sqlite3_stmt *q = st_query(s, e,
                               "SELECT sandboxId, name, project, tool, template, startedAt,"
                               " endedAt, how, estimate, cpuCount, memoryMb, usdPerS"
                               " FROM usageSpans WHERE endedAt>? OR how=0",
                               "i", ledger_first(&r->q));
    int rc = q ? 0 : e->code;

    while (rc == 0 && (rc = st_step(s, q, e)) == 1) {
        struct ledger_span v = {place_at(q),
                                {sqlite3_column_int64(q, 5), sqlite3_column_int64(q, 6),
                                 (enum span_how)sqlite3_column_int(q, 7),
                                 sqlite3_column_int(q, 8) != 0},
                                sqlite3_column_int(q, 9),
                                sqlite3_column_int(q, 10),
                                price_at(q, 11)};

        if (v.s.how == SPAN_OPEN && v.s.end > r->q.now - FRESH_MS)
            v.s.end = r->q.now > v.s.end ? r->q.now : v.s.end;
        else if (v.s.how == SPAN_OPEN)
            v.s.estimate = true;
        ledger_report_span(r, &v);
        rc = 0;
    }
    return rc;
}

/* --- turns ------------------------------------------------------------------------------- */

/* One after the other; to: not any more. */
static int add_single(struct store *s, struct ledger_report *r, int64_t from, int64_t to,
                      struct err *e)
{
    sqlite3_stmt *q = st_query(s, e,
                               "SELECT sandboxId, name, project, tool, template, model, timeMs,"
                               " inTokens, cacheRead, cacheWrite, outTokens, costUsd"
                               " FROM usageTurns WHERE timeMs>=? AND timeMs<?",
                               "ii", from, to);
    int rc = q ? 0 : e->code;

    while (rc == 0 && (rc = st_step(s, q, e)) == 1) {
        struct ledger_turn v = {place_at(q),
                                text_at(q, 5),
                                sqlite3_column_int64(q, 6),
                                sqlite3_column_int64(q, 7),
                                sqlite3_column_int64(q, 8),
                                sqlite3_column_int64(q, 9),
                                sqlite3_column_int64(q, 10),
                                price_at(q, 11),
                                0,
                                0};

        ledger_report_turn(r, &v);
        rc = 0;
    }
    return rc;
}

struct place {
    char *text[6]; /* sandbox's id, name, project, tool, template, model; NULL: not known */
};

static void place_free(void *p)
{
    struct place *v = p;

    for (int i = 0; i < 6; i++)
        free(v->text[i]);
    free(v);
}

/* Many sums are of few places. */
static const struct place *place_of(struct store *s, struct map *known, int64_t id, struct err *e)
{
    struct place *p = map_get_id(known, (uint64_t)id);
    sqlite3_stmt *q;

    if (p)
        return p;
    q = st_query(s, e,
                 "SELECT sandboxId, name, project, tool, template, model FROM usagePlaces WHERE id=?",
                 "i", id);
    if (!q || st_step(s, q, e) < 0)
        return NULL;
    p = xcalloc(1, sizeof(*p));
    for (int i = 0; i < 6; i++)
        if (text_at(q, i) && *text_at(q, i))
            p->text[i] = st_text(q, i);
    sqlite3_reset(q);
    map_put_id(known, (uint64_t)id, p);
    return p;
}

/* What came to in [from, to), in steps of that many half hours. */
static int add_sums(struct store *s, struct ledger_report *r, struct map *known, int64_t slots,
                    int64_t from, int64_t to, struct err *e)
{
    sqlite3_stmt *q = st_query(s, e,
                               "SELECT at, place, inTokens, cacheRead, cacheWrite, outTokens,"
                               " costUsd, turns, unpriced FROM usageSums"
                               " WHERE slots=? AND at>=? AND at<?",
                               "iii", slots, from, to);
    int rc = q ? 0 : e->code;

    while (rc == 0 && (rc = st_step(s, q, e)) == 1) {
        const struct place *p = place_of(s, known, sqlite3_column_int64(q, 1), e);

        if (!p) {
            sqlite3_reset(q);
            return e->code;
        }
        ledger_report_turn(r, &(struct ledger_turn){
                                  {p->text[0], p->text[1], p->text[2], p->text[3], p->text[4]},
                                  p->text[5],
                                  sqlite3_column_int64(q, 0) * slots * STORE_SLOT_MS,
                                  sqlite3_column_int64(q, 2),
                                  sqlite3_column_int64(q, 3),
                                  sqlite3_column_int64(q, 4),
                                  sqlite3_column_int64(q, 5),
                                  sqlite3_column_double(q, 6),
                                  (size_t)sqlite3_column_int64(q, 7),
                                  (size_t)sqlite3_column_int64(q, 8)});
        rc = 0;
    }
    return rc;
}

/* What half hours [from, to) came to, by days where nobody asks for less. Nothing that is asked
 * for begins or ends in between. */
static int add_slots(struct store *s, struct ledger_report *r, struct map *known, int64_t from,
                     int64_t to, struct err *e)
{
    int64_t begin = from * STORE_SLOT_MS, most = r->hour_from / STORE_SLOT_MS;
    bool by_hour = r->q.by_hour && begin >= r->q.from && begin < r->q.to;
    int64_t first = (from + STORE_DAY - 1) / STORE_DAY, last = (to < most ? to : most) / STORE_DAY;
    int rc;

    if (by_hour || first >= last)
        return add_sums(s, r, known, 1, from, to, e);
    rc = add_sums(s, r, known, 1, from, first * STORE_DAY, e);
    if (rc == 0)
        rc = add_sums(s, r, known, STORE_DAY, first, last, e);
    return rc ? rc : add_sums(s, r, known, 1, last * STORE_DAY, to, e);
}

static int by_number(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return *x > *y ? 1 : *x < *y ? -1 : 0;
}

/* From one cut to the next; a half hour that is cut goes turn by turn. */
static int add_turns(struct store *s, struct ledger_report *r, struct err *e)
{
    int64_t cuts[LEDGER_CUTS], at = ledger_first(&r->q) / STORE_SLOT_MS;
    size_t n = ledger_cuts(&r->q, cuts);
    struct map *known;
    int rc = 0;

    /* days begin within a half hour here, and hours with them */
    if (r->q.period[PERIOD_DAY].from % STORE_SLOT_MS)
        return add_single(s, r, ledger_first(&r->q), INT64_MAX, e);
    known = map_new();
    qsort(cuts, n, sizeof(*cuts), by_number);
    for (size_t i = 0; i < n && rc == 0; i++) {
        int64_t slot = cuts[i] / STORE_SLOT_MS;

        if (slot < at || cuts[i] > INT64_MAX - STORE_SLOT_MS)
            continue;
        rc = add_slots(s, r, known, at, slot, e);
        at = slot;
        if (rc || cuts[i] % STORE_SLOT_MS == 0)
            continue;
        rc = add_single(s, r, slot * STORE_SLOT_MS, (slot + 1) * STORE_SLOT_MS, e);
        at++;
    }
    if (rc == 0)
        rc = add_slots(s, r, known, at, INT64_MAX, e);
    map_free(known, place_free);
    return rc;
}

int st_op_ledger(struct store *s, const struct st_req *q, struct st_reply *r)
{
    int rc;

    r->report = ledger_report_new(q->ledger);
    rc = add_spans(s, r->report, &r->err);
    if (rc == 0)
        rc = add_turns(s, r->report, &r->err);
    ledger_report_end(r->report);
    return rc;
}

/* --- another name -------------------------------------------------------------------------- */

#define SAME "n.project=?1 AND n.sandboxId=o.sandboxId AND n.name=o.name AND n.tool=o.tool" \
             " AND n.template=o.template AND n.model=o.model"

/* Sums of the new name may be there already. */
int st_ledger_rename(struct store *s, const char *old, const char *name, struct err *e)
{
    static const char *const all[] = {
        "UPDATE usageSpans SET project=?1 WHERE project=?2",
        "UPDATE usageTurns SET project=?1 WHERE project=?2",
        "INSERT OR IGNORE INTO usagePlaces(sandboxId, name, project, tool, template, model)"
        " SELECT sandboxId, name, ?1, tool, template, model FROM usagePlaces WHERE project=?2",
        "INSERT INTO usageSums SELECT u.slots, u.at, n.id, u.inTokens, u.cacheRead, u.cacheWrite, u.outTokens,"
        " u.costUsd, u.turns, u.unpriced FROM usagePlaces o JOIN usagePlaces n ON " SAME
        " JOIN usageSums u ON u.place=o.id WHERE o.project=?2"
        " ON CONFLICT(slots, at, place) DO UPDATE SET inTokens=inTokens+excluded.inTokens,"
        " cacheRead=cacheRead+excluded.cacheRead, cacheWrite=cacheWrite+excluded.cacheWrite,"
        " outTokens=outTokens+excluded.outTokens, costUsd=costUsd+excluded.costUsd,"
        " turns=turns+excluded.turns, unpriced=unpriced+excluded.unpriced",
        "DELETE FROM usageSums WHERE ?1 IS NOT NULL AND place IN"
        " (SELECT id FROM usagePlaces WHERE project=?2)",
        "DELETE FROM usagePlaces WHERE ?1 IS NOT NULL AND project=?2"};
    int rc = 0;

    if (str_eq(old, name))
        return 0;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]) && rc == 0; i++)
        rc = st_run(s, e, all[i], "tt", name, old);
    return rc;
}
