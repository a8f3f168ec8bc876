/* Runs: raw bytes of the agents and the events decoded from them. Offsets only grow,
 * rows are keyed by their place, so writing one twice changes nothing. */
#include "store_priv.h"

#include <cct/util/clock.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

#define RUN_COLUMNS                                                                           \
    "SELECT id, sandbox, session, epoch, stored, turnOffset, turnLine, exitCode, exitSignal," \
    " ended FROM runs"

static void read_run(sqlite3_stmt *q, struct store_run *run)
{
    run->id = (uint64_t)sqlite3_column_int64(q, 0);
    run->sandbox = (uint64_t)sqlite3_column_int64(q, 1);
    const char *session = (const char *)sqlite3_column_text(q, 2);
    str_copy(run->session, sizeof(run->session), session ? session : "");
    run->epoch = sqlite3_column_int64(q, 3);
    run->stored = (uint64_t)sqlite3_column_int64(q, 4);
    run->turn_offset = (uint64_t)sqlite3_column_int64(q, 5);
    run->turn_line = (uint64_t)sqlite3_column_int64(q, 6);
    run->exit_code = sqlite3_column_int(q, 7);
    run->exit_signal = sqlite3_column_int(q, 8);
    run->ended = sqlite3_column_int(q, 9);
}

static int get_run(struct store *s, uint64_t id, struct store_run *run, struct err *e)
{
    sqlite3_stmt *q = st_query(s, e, RUN_COLUMNS " WHERE id=?", "i", (int64_t)id);
    int rc = q ? st_step(s, q, e) : e->code;
    if (rc == 0)
        return err_set(e, ERR_NOTFOUND, "no run %llu in the database", (unsigned long long)id);
    if (rc != 1)
        return rc;
    read_run(q, run);
    sqlite3_reset(q);
    return 0;
}

static int newest_run(struct store *s, const struct st_req *q, struct st_reply *r)
{
    sqlite3_stmt *p = st_query(s, &r->err,
                               RUN_COLUMNS " WHERE sandbox=? AND session=? ORDER BY epoch DESC"
                                           " LIMIT 1",
                               "it", (int64_t)q->id, q->s1);
    int rc = p ? st_step(s, p, &r->err) : r->err.code;
    if (rc != 1)
        return rc;
    read_run(p, &r->run);
    r->stored = r->run.stored;
    sqlite3_reset(p);
    return 0;
}

int st_op_run_open(struct store *s, const struct st_req *q, struct st_reply *r)
{
    struct err *e = &r->err;
    if (q->n1 < 0)
        return newest_run(s, q, r);
    if (strlen(q->s1) >= sizeof(r->run.session))
        return err_set(e, ERR_INVALID, "session name '%s' is too long", q->s1);
    int rc = st_run(s, e,
                    "INSERT INTO runs(sandbox, session, epoch, startedAt) VALUES(?,?,?,?)"
                    " ON CONFLICT(sandbox, session, epoch) DO NOTHING",
                    "itii", (int64_t)q->id, q->s1, q->n1, clock_wall_ms());
    if (rc == ERR_CONFLICT)
        return err_set(e, ERR_NOTFOUND, "no sandbox %llu in the database",
                       (unsigned long long)q->id);
    if (rc != 0)
        return rc;
    sqlite3_stmt *p = st_query(s, e, RUN_COLUMNS " WHERE sandbox=? AND session=? AND epoch=?",
                               "iti", (int64_t)q->id, q->s1, q->n1);
    rc = p ? st_step(s, p, e) : e->code;
    if (rc != 1)
        return rc ? rc : err_set(e, ERR_BUG, "a run that was made cannot be found");
    read_run(p, &r->run);
    r->stored = r->run.stored;
    sqlite3_reset(p);
    return 0;
}

static int put_events(struct store *s, const struct st_append *a, struct err *e)
{
    for (size_t i = 0; i < a->n_events; i++) {
        const struct st_event *ev = &a->events[i];
        int rc = st_run(s, e,
                        "INSERT OR IGNORE INTO agentEvents(run, offset, idx, json)"
                        " VALUES(?,?,?,?)",
                        "iiis", (int64_t)a->run, (int64_t)ev->offset, (int64_t)ev->index,
                        ev->json, ev->len);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* The part of the raw bytes that is not stored yet. Beyond the limit of one run the
 * bytes are counted but not kept; the events are. */
static int put_raw(struct store *s, const struct st_append *a, uint64_t stored, struct err *e)
{
    size_t skip = (size_t)(stored - a->offset);
    if (skip >= a->len)
        return 0;
    bool keep = stored + (a->len - skip) <= LIM_RUN_LOG_BYTES;
    int64_t n = (int64_t)(a->len - skip);
    int rc = 0;
    if (keep)
        rc = st_run(s, e, "INSERT INTO rawChunks(run, offset, data) VALUES(?,?,?)", "iib",
                    (int64_t)a->run, (int64_t)stored, a->raw + skip, (size_t)n);
    if (rc == 0)
        rc = st_run(s, e, "UPDATE runs SET stored=stored+?, rawBytes=rawBytes+? WHERE id=?",
                    "iii", n, keep ? n : INT64_C(0), (int64_t)a->run);
    return rc;
}

int st_op_append(struct store *s, const struct st_req *q, struct st_reply *r)
{
    const struct st_append *a = q->append;
    struct err *e = &r->err;
    int64_t stored;
    int rc = st_number(s, e, -1, &stored, "SELECT stored FROM runs WHERE id=?", "i",
                       (int64_t)a->run);
    if (rc != 0)
        return rc;
    if (stored < 0)
        return err_set(e, ERR_NOTFOUND, "no run %llu in the database",
                       (unsigned long long)a->run);
    r->stored = (uint64_t)stored;
    if (a->offset > r->stored)
        return err_set(e, ERR_CONFLICT,
                       "bytes from %llu on do not follow what is stored (%llu)",
                       (unsigned long long)a->offset, (unsigned long long)r->stored);
    rc = put_raw(s, a, r->stored, e);
    if (rc == 0)
        rc = put_events(s, a, e);
    if (rc == 0 && a->turn_offset > 0)
        rc = st_run(s, e,
                    "UPDATE runs SET turnOffset=?1, turnLine=?2 WHERE id=?3 AND turnOffset<?1",
                    "iii", (int64_t)a->turn_offset, (int64_t)a->turn_line, (int64_t)a->run);
    if (rc == 0 && a->offset + a->len > r->stored)
        r->stored = a->offset + a->len;
    return rc;
}

int st_op_run_end(struct store *s, const struct st_req *q, struct st_reply *r)
{
    int rc = st_run(s, &r->err,
                    "UPDATE runs SET ended=1, exitCode=?, exitSignal=?, endedAt=? WHERE id=?",
                    "iiii", q->n1, q->n2, clock_wall_ms(), (int64_t)q->id);
    if (rc == 0)
        rc = get_run(s, q->id, &r->run, &r->err);
    r->stored = r->run.stored;
    return rc;
}

static void push_event(struct st_reply *r, size_t *cap, sqlite3_stmt *p)
{
    if (r->n_events == *cap) {
        *cap = *cap ? *cap * 2 : 64;
        r->events = xrealloc(r->events, *cap * sizeof(*r->events));
    }
    struct st_event *ev = &r->events[r->n_events++];
    ev->offset = (uint64_t)sqlite3_column_int64(p, 0);
    ev->index = (uint32_t)sqlite3_column_int64(p, 1);
    ev->json = st_text(p, 2);
    ev->len = (size_t)sqlite3_column_bytes(p, 2);
}

static void reverse(struct st_event *v, size_t n)
{
    for (size_t i = 0; i < n / 2; i++) {
        struct st_event t = v[i];
        v[i] = v[n - 1 - i];
        v[n - 1 - i] = t;
    }
}

int st_op_events(struct store *s, const struct st_req *q, struct st_reply *r)
{
    int64_t run = (int64_t)q->id, offset = (int64_t)q->offset;
    size_t cap = 0;
    sqlite3_stmt *p;
    int rc, more = 0;
    /* one row more than asked for tells whether there are older ones */
    if (q->flag)
        p = st_query(s, &r->err,
                     "SELECT offset, idx, json FROM agentEvents WHERE run=? AND"
                     " (offset, idx) < (?,?) ORDER BY offset DESC, idx DESC LIMIT ?",
                     "iiii", run, offset, q->n1, q->n2 + 1);
    else
        p = st_query(s, &r->err,
                     "SELECT offset, idx, json FROM agentEvents WHERE run=? AND"
                     " (offset, idx) >= (?,?) ORDER BY offset, idx LIMIT ?",
                     "iiii", run, offset, q->n1, q->n2);
    if (!p)
        return r->err.code;
    while ((rc = st_step(s, p, &r->err)) == 1) {
        if (q->flag && r->n_events == (size_t)q->n2) {
            more = 1;
            continue;
        }
        push_event(r, &cap, p);
    }
    if (rc != 0)
        return rc;
    if (q->flag) {
        reverse(r->events, r->n_events);
    } else {
        int64_t older;
        rc =
            st_number(s, &r->err, 0, &older,
                      "SELECT 1 FROM agentEvents WHERE run=? AND (offset, idx) < (?,?) LIMIT 1",
                      "iii", run, offset, q->n1);
        more = older == 1;
    }
    r->more_before = more;
    return rc;
}

/* Chunks lie end to end; a gap (bytes beyond the limit, pruned ones) ends the answer. */
int st_op_raw(struct store *s, const struct st_req *q, struct st_reply *r)
{
    uint64_t at = q->offset;
    size_t max = (size_t)q->n1;
    int rc = get_run(s, q->id, &r->run, &r->err);
    if (rc != 0)
        return rc;
    r->stored = r->run.stored;
    sqlite3_stmt *p = st_query(
        s, &r->err,
        "SELECT offset, data FROM rawChunks WHERE run=?1 AND offset >= coalesce((SELECT"
        " max(offset) FROM rawChunks WHERE run=?1 AND offset<=?2), ?2) ORDER BY offset",
        "ii", (int64_t)q->id, (int64_t)at);
    if (!p)
        return r->err.code;
    while (r->raw_len < max && (rc = st_step(s, p, &r->err)) == 1) {
        uint64_t first = (uint64_t)sqlite3_column_int64(p, 0);
        const char *data = sqlite3_column_blob(p, 1);
        size_t len = (size_t)sqlite3_column_bytes(p, 1);
        if (first > at || first + len <= at)
            break;
        size_t skip = (size_t)(at - first), n = len - skip;
        if (n > max - r->raw_len)
            n = max - r->raw_len;
        r->raw = xrealloc(r->raw, r->raw_len + n + 1);
        memcpy(r->raw + r->raw_len, data + skip, n);
        r->raw_len += n;
        r->raw[r->raw_len] = '\0';
        at += n;
    }
    sqlite3_reset(p);
    return rc < 0 ? rc : 0;
}
