/* Runs: raw bytes of the agents and the events decoded from them. Offsets only grow,
 * rows are keyed by their place, so writing one twice changes nothing. */
#include "store_priv.h"
#include "store_schema.h"

#include <cct/util/clock.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 1 << 20 /* no larger than this but for a single append */ };

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

/* Appends to one run that follow each other in a transaction become one chunk and one
 * change of the run's row. Beyond the limit of one run the bytes are counted but not
 * kept; the events are. */
int st_settle(struct store *s, struct err *e)
{
    struct st_open_run *o = &s->open_run;
    int64_t run = (int64_t)o->run, len = (int64_t)o->raw.len;
    bool keep = o->stored <= LIM_RUN_LOG_BYTES;
    int rc = 0;
    if (o->run == 0)
        return 0;
    if (len > 0 && keep)
        rc = st_run(s, e, "INSERT INTO rawChunks(run, offset, data) VALUES(?,?,?)", "iib", run,
                    (int64_t)o->stored - len, o->raw.p, o->raw.len);
    if (rc == 0)
        rc = st_run(s, e,
                    "UPDATE runs SET stored=?1, rawBytes=rawBytes+?2,"
                    " turnLine=CASE WHEN turnOffset<?3 THEN ?4 ELSE turnLine END,"
                    " turnOffset=max(turnOffset, ?3) WHERE id=?5",
                    "iiiii", (int64_t)o->stored, keep ? len : INT64_C(0),
                    (int64_t)o->turn_offset, (int64_t)o->turn_line, run);
    st_unsettle(s);
    return rc;
}

void st_unsettle(struct store *s)
{
    s->open_run.run = s->open_run.turn_offset = s->open_run.turn_line = 0;
    buf_clear(&s->open_run.raw);
}

static int open_run(struct store *s, uint64_t run, struct err *e)
{
    int64_t stored;
    int rc = s->open_run.run == run ? 0 : st_settle(s, e);
    if (rc != 0 || s->open_run.run == run)
        return rc;
    rc = st_number(s, e, -1, &stored, "SELECT stored FROM runs WHERE id=?", "i", (int64_t)run);
    if (rc == 0 && stored < 0)
        return err_set(e, ERR_NOTFOUND, "no run %llu in the database", (unsigned long long)run);
    if (rc == 0) {
        s->open_run.run = run;
        s->open_run.stored = (uint64_t)stored;
    }
    return rc;
}

int st_op_append(struct store *s, const struct st_req *q, struct st_reply *r)
{
    const struct st_append *a = q->append;
    struct st_open_run *o = &s->open_run;
    struct err *e = &r->err;
    int rc = open_run(s, a->run, e);
    if (rc != 0)
        return rc;
    r->stored = o->stored;
    if (a->offset > o->stored)
        return err_set(e, ERR_CONFLICT,
                       "bytes from %llu on do not follow what is stored (%llu)",
                       (unsigned long long)a->offset, (unsigned long long)o->stored);
    uint64_t had = o->stored, known = had - a->offset;
    /* what is kept and what is not any more are not one chunk */
    if (o->raw.len && had <= LIM_RUN_LOG_BYTES && a->offset + a->len > LIM_RUN_LOG_BYTES) {
        rc = st_settle(s, e);
        if (rc == 0)
            rc = open_run(s, a->run, e);
        if (rc != 0)
            return rc;
    }
    if (known < a->len) {
        buf_add(&o->raw, a->raw + known, a->len - known);
        o->stored = a->offset + a->len;
    }
    if (a->turn_offset > o->turn_offset) {
        o->turn_offset = a->turn_offset;
        o->turn_line = a->turn_line;
    }
    r->stored = o->stored;
    rc = st_put_events(s, a, had, e);
    return rc != 0 || o->raw.len < CHUNK_BYTES ? rc : st_settle(s, e);
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

/* Chunks lie end to end; a gap (bytes beyond the limit, pruned ones) ends the answer. */
int st_raw_bytes(struct store *s, uint64_t run, uint64_t at, size_t max, struct buf *out,
                 struct err *e)
{
    int rc = 0;
    sqlite3_stmt *p = st_query(
        s, e,
        "SELECT offset, data FROM rawChunks WHERE run=?1 AND offset >= coalesce((SELECT"
        " max(offset) FROM rawChunks WHERE run=?1 AND offset<=?2), ?2) ORDER BY offset",
        "ii", (int64_t)run, (int64_t)at);
    if (!p)
        return e->code;
    while (max > 0 && (rc = st_step(s, p, e)) == 1) {
        uint64_t first = (uint64_t)sqlite3_column_int64(p, 0);
        const char *data = sqlite3_column_blob(p, 1);
        size_t len = (size_t)sqlite3_column_bytes(p, 1);
        if (first > at || first + len <= at)
            break;
        size_t skip = (size_t)(at - first), n = len - skip;
        if (n > max)
            n = max;
        buf_add(out, data + skip, n);
        at += n;
        max -= n;
    }
    sqlite3_reset(p);
    return rc < 0 ? rc : 0;
}

int st_op_raw(struct store *s, const struct st_req *q, struct st_reply *r)
{
    struct buf b = BUF_INIT;
    int rc = get_run(s, q->id, &r->run, &r->err);
    if (rc != 0)
        return rc;
    r->stored = r->run.stored;
    rc = st_raw_bytes(s, q->id, q->offset, (size_t)q->n1, &b, &r->err);
    if (b.len)
        r->raw = buf_detach(&b, &r->raw_len);
    return rc;
}

int st_op_runs(struct store *s, const struct st_req *q, struct st_reply *r)
{
    sqlite3_stmt *p = st_query(s, &r->err, RUN_COLUMNS " WHERE sandbox=? ORDER BY startedAt, id",
                               "i", (int64_t)q->id);
    int rc = p ? 0 : r->err.code;
    while (rc == 0 && (rc = st_step(s, p, &r->err)) == 1) {
        rc = 0;
        r->runs = xrealloc(r->runs, (r->n_runs + 1) * sizeof(*r->runs));
        memset(&r->runs[r->n_runs], 0, sizeof(*r->runs));
        read_run(p, &r->runs[r->n_runs++]);
    }
    return rc;
}
