/* Events of an append become rows. What cannot be there yet goes many rows at a time, which
 * costs a fraction of what each by itself does. */
#include "store_priv.h"

#include <cct/util/limits.h>

enum {
    ROWS = 32,       /* of one statement */
    FIXED_COLUMNS = 1, /* parameters that all of its rows share */
    ROW_COLUMNS = 3, /* and those that each has */
};

struct last_key {
    bool any;
    int64_t offset, idx;
};

static bool is_behind(const struct last_key *k, const struct st_event *ev)
{
    int64_t offset = (int64_t)ev->offset;

    return !k->any || offset > k->offset || (offset == k->offset && (int64_t)ev->index > k->idx);
}

/* A row of lines has all that is within them. */
static void move_key(struct last_key *k, const struct st_event *ev)
{
    if (ev->plain)
        *k = (struct last_key){true, (int64_t)(ev->offset + ev->len) - 1, UINT32_MAX};
    else
        *k = (struct last_key){true, (int64_t)ev->offset, (int64_t)ev->index};
}

static int last_key(struct store *s, uint64_t run, struct last_key *k, struct err *e)
{
    sqlite3_stmt *q = st_query(s, e,
                               "SELECT offset, idx FROM agentEvents WHERE run=?"
                               " ORDER BY offset DESC, idx DESC LIMIT 1",
                               "i", (int64_t)run);
    int rc = q ? st_step(s, q, e) : e->code;

    *k = (struct last_key){0};
    if (rc != 1)
        return rc;
    *k = (struct last_key){true, sqlite3_column_int64(q, 0), sqlite3_column_int64(q, 1)};
    sqlite3_reset(q);
    return 0;
}

/* --- many rows ----------------------------------------------------------------------- */

/* IGNORE, for a statement that may fail in its middle keeps what it would have to put back. A
 * parameter without a number has the next one. */
#define ROW "(?1,?,?,?)"
#define ROWS_4 ROW "," ROW "," ROW "," ROW
#define ROWS_16 ROWS_4 "," ROWS_4 "," ROWS_4 "," ROWS_4
static const char many[] =
    "INSERT OR IGNORE INTO agentEvents(run, offset, idx, json) VALUES" ROWS_16 "," ROWS_16;

static int put_many(struct store *s, uint64_t run, const struct st_event *v, struct err *e)
{
    sqlite3_stmt *q = st_query(s, e, many, "i", (int64_t)run);
    int rc = q ? SQLITE_OK : e->code;

    if (!q)
        return rc;
    for (int i = 0; rc == SQLITE_OK && i < ROWS; i++) {
        int at = FIXED_COLUMNS + 1 + i * ROW_COLUMNS;

        rc = sqlite3_bind_int64(q, at, (int64_t)v[i].offset);
        if (rc == SQLITE_OK)
            rc = sqlite3_bind_int64(q, at + 1, (int64_t)v[i].index);
        if (rc == SQLITE_OK)
            rc = sqlite3_bind_text64(q, at + 2, v[i].json, v[i].len, SQLITE_STATIC, SQLITE_UTF8);
    }
    if (rc != SQLITE_OK)
        return st_error(s, e, rc);
    rc = st_step(s, q, e);
    if (rc == 0 && sqlite3_changes(s->db) != ROWS)
        return err_set(e, ERR_BUG, "events that are new were in the database '%s'",
                       s->path ? s->path : "in memory");
    return rc;
}

/* --- each ------------------------------------------------------------------------------ */

static int note(struct store *s, uint64_t run, const struct st_event *ev, struct err *e)
{
    int rc = st_search_note(s, run, ev, e);

    return rc == 0 && ev->use ? st_ledger_use(s, run, ev, e) : rc;
}

static int put_one(struct store *s, const struct st_append *a, const struct st_event *ev,
                   uint64_t had, struct err *e)
{
    bool there = false;
    int rc = ev->index == 0 && ev->offset < had
                 ? st_lines_hold(s, a->run, ev->offset, &there, e)
                 : 0;

    if (rc != 0 || there)
        return rc;
    rc = st_run(s, e,
                "INSERT OR IGNORE INTO agentEvents(run, offset, idx, json) VALUES(?,?,?,?)",
                "iiis", (int64_t)a->run, (int64_t)ev->offset, (int64_t)ev->index, ev->json,
                ev->len);
    return rc == 0 && sqlite3_changes(s->db) > 0 ? note(s, a->run, ev, e) : rc;
}

/* How many from v on can neither be there nor meet each other: they lie behind all that is
 * stored, and each behind the one before. */
static size_t all_new(const struct st_event *v, size_t n, uint64_t had, struct last_key k)
{
    size_t i = 0;

    for (; i < n && !v[i].plain && v[i].offset >= had && is_behind(&k, &v[i]); i++)
        move_key(&k, &v[i]);
    return i;
}

static int put_new(struct store *s, const struct st_append *a, const struct st_event *v, size_t n,
                   uint64_t had, struct err *e)
{
    int rc = 0;

    for (; rc == 0 && n >= ROWS; v += ROWS, n -= ROWS) {
        rc = put_many(s, a->run, v, e);
        for (size_t i = 0; rc == 0 && i < ROWS; i++)
            rc = note(s, a->run, &v[i], e);
    }
    for (; rc == 0 && n > 0; v++, n--)
        rc = put_one(s, a, v, had, e);
    return rc;
}

int st_put_events(struct store *s, const struct st_append *a, uint64_t had, struct err *e)
{
    bool raw_kept = s->open_run.stored <= LIM_RUN_LOG_BYTES;
    struct last_key last = {0};
    int rc = a->n_events >= ROWS ? last_key(s, a->run, &last, e) : 0;

    for (size_t i = 0; rc == 0 && i < a->n_events;) {
        const struct st_event *ev = &a->events[i];
        size_t n = a->n_events >= ROWS ? all_new(ev, a->n_events - i, had, last) : 0;

        if (n > 0)
            rc = put_new(s, a, ev, n, had, e);
        else if (ev->plain)
            rc = st_lines_put(s, a, ev, had, raw_kept, e);
        else
            rc = put_one(s, a, ev, had, e);
        i += n ? n : 1;
        if (is_behind(&last, &a->events[i - 1]))
            move_key(&last, &a->events[i - 1]);
    }
    return rc;
}
