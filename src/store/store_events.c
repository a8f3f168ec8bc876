/* Events of a run as they are read. Lines of plain text have a row for many of them, which
 * only says where they are in the raw bytes; whoever asks gets them one by one. */
#include "store_priv.h"
#include "store_schema.h"

#include <cct/util/arr.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_AT_ONCE = 16 };

struct reading {
    struct store *s;
    struct st_reply *r;
    size_t cap, limit;
    uint64_t run, offset; /* the key asked for */
    uint32_t index;
    bool before, more;    /* more: there was no room for all */
};

#define EVENT_COLUMNS "SELECT offset, idx, json, span, line FROM agentEvents"

static struct st_event *push(struct reading *x)
{
    struct st_reply *r = x->r;
    if (r->n_events == x->limit) {
        x->more = true;
        return NULL;
    }
    if (r->n_events == x->cap) {
        x->cap = x->cap ? x->cap * 2 : 64;
        r->events = xrealloc(r->events, x->cap * sizeof(*r->events));
    }
    memset(&r->events[r->n_events], 0, sizeof(*r->events));
    return &r->events[r->n_events++];
}

/* --- lines ------------------------------------------------------------------------- */

static bool asked_for(const struct reading *x, uint64_t offset)
{
    bool less = offset < x->offset || (offset == x->offset && 0 < x->index);
    return less == x->before;
}

static void push_line(struct reading *x, uint64_t offset, uint64_t line, const char *p, size_t len)
{
    struct st_event *ev = asked_for(x, offset) ? push(x) : NULL;
    if (!ev)
        return;
    ev->offset = offset;
    ev->plain = true;
    ev->line = line;
    ev->json = xmalloc(len + 1);
    memcpy(ev->json, p, len);
    ev->json[len] = '\0';
    ev->len = len;
}

/* The lines of one row, in the order in which rows are read. */
static void push_lines(struct reading *x, uint64_t offset, uint64_t line, const char *p, size_t len)
{
    ARR(size_t) at = ARR_INIT; /* begins, and the end */
    const char *nl;
    for (size_t i = 0; i < len; i = (size_t)(nl - p) + 1) {
        nl = memchr(p + i, '\n', len - i);
        if (!nl)
            break;
        *ARR_PUSH(&at) = i;
    }
    size_t n = at.n;
    *ARR_PUSH(&at) = len;
    for (size_t k = 0; k < n && !x->more; k++) {
        size_t i = x->before ? n - 1 - k : k;
        push_line(x, offset + at.v[i], line + i, p + at.v[i], at.v[i + 1] - at.v[i] - 1);
    }
    ARR_RELEASE(&at);
}

static int read_lines(struct reading *x, sqlite3_stmt *p)
{
    uint64_t offset = (uint64_t)sqlite3_column_int64(p, 0);
    uint64_t line = (uint64_t)sqlite3_column_int64(p, 4);
    size_t own = (size_t)sqlite3_column_bytes(p, 2), span = (size_t)sqlite3_column_int64(p, 3);
    struct buf b = BUF_INIT;
    int rc = 0;
    if (own > 0) {
        push_lines(x, offset, line, sqlite3_column_blob(p, 2), own);
        return 0;
    }
    rc = st_raw_bytes(x->s, x->run, offset, span, &b, &x->r->err);
    if (rc == 0)
        push_lines(x, offset, line, buf_str(&b), b.len);
    buf_release(&b);
    return rc;
}

static int read_row(struct reading *x, sqlite3_stmt *p)
{
    if (sqlite3_column_int64(p, 3) > 0)
        return read_lines(x, p);
    struct st_event *ev = push(x);
    if (!ev)
        return 0;
    ev->offset = (uint64_t)sqlite3_column_int64(p, 0);
    ev->index = (uint32_t)sqlite3_column_int64(p, 1);
    ev->json = st_text(p, 2);
    ev->len = (size_t)sqlite3_column_bytes(p, 2);
    return 0;
}

static int read_all(struct reading *x, sqlite3_stmt *p)
{
    int rc = p ? 0 : x->r->err.code;
    while (rc == 0 && !x->more && (rc = st_step(x->s, p, &x->r->err)) == 1)
        rc = read_row(x, p);
    if (p)
        sqlite3_reset(p);
    return rc;
}

/* --- the questions ----------------------------------------------------------------- */

int st_op_events_summed(struct store *s, const struct st_req *q, struct st_reply *r)
{
    struct reading x = {.s = s, .r = r, .run = q->id, .limit = (size_t)q->n2};
    return read_all(&x, st_query(s, &r->err,
                                 EVENT_COLUMNS
                                 " WHERE run=? AND (offset, idx) >= (?,?) AND " STORE_SUMMED
                                 " ORDER BY offset, idx LIMIT ?",
                                 "iiii", (int64_t)q->id, (int64_t)q->offset, q->n1, q->n2));
}

static void reverse(struct st_event *v, size_t n)
{
    for (size_t i = 0; i < n / 2; i++) {
        struct st_event t = v[i];
        v[i] = v[n - 1 - i];
        v[n - 1 - i] = t;
    }
}

static int events_before(struct reading *x, const struct st_req *q)
{
    /* no limit of its own: where there is no room any more, it ends */
    int rc = read_all(x, st_query(x->s, &x->r->err,
                                  EVENT_COLUMNS " WHERE run=? AND (offset, idx) < (?,?)"
                                                " ORDER BY offset DESC, idx DESC",
                                  "iii", (int64_t)q->id, (int64_t)q->offset, q->n1));
    if (rc == 0)
        reverse(x->r->events, x->r->n_events);
    x->r->more_before = x->more;
    return rc;
}

/* The row in front of the key may hold lines behind it. */
static int events_from(struct reading *x, const struct st_req *q)
{
    struct err *e = &x->r->err;
    int64_t run = (int64_t)q->id, offset = (int64_t)q->offset;
    sqlite3_stmt *p = st_query(x->s, e,
                               EVENT_COLUMNS " WHERE run=? AND (offset, idx) < (?,?)"
                                             " ORDER BY offset DESC, idx DESC LIMIT 1",
                               "iii", run, offset, q->n1);
    int rc = p ? st_step(x->s, p, e) : e->code;
    x->r->more_before = rc == 1;
    if (rc == 1) {
        bool reaches = sqlite3_column_int64(p, 0) + sqlite3_column_int64(p, 3) > offset;
        rc = reaches ? read_lines(x, p) : 0;
        sqlite3_reset(p);
    }
    if (rc != 0)
        return rc;
    return read_all(x, st_query(x->s, e,
                                EVENT_COLUMNS " WHERE run=? AND (offset, idx) >= (?,?)"
                                              " ORDER BY offset, idx LIMIT ?",
                                "iiii", run, offset, q->n1, q->n2));
}

int st_op_events(struct store *s, const struct st_req *q, struct st_reply *r)
{
    struct reading x = {.s = s, .r = r, .run = q->id, .offset = q->offset,
                        .index = (uint32_t)q->n1, .limit = (size_t)q->n2, .before = q->flag};
    return q->flag ? events_before(&x, q) : events_from(&x, q);
}

/* --- writing ----------------------------------------------------------------------- */

static size_t count_lines(const char *p, size_t len)
{
    size_t n = 0;
    for (const char *end = p + len; (p = memchr(p, '\n', (size_t)(end - p))); p++)
        n++;
    return n;
}

/* Of another instance, which was faster, are the lines that end within what was stored. */
int st_lines_put(struct store *s, const struct st_append *a, const struct st_event *ev,
                 uint64_t had, bool raw_kept, struct err *e)
{
    uint64_t from = ev->offset, end = from + ev->len, line = ev->line;
    if (from < a->offset || end > a->offset + a->len)
        return err_set(e, ERR_BUG, "lines that lie outside of what they came with");
    const char *p = a->raw + (from - a->offset);
    if (had >= end)
        return 0;
    if (had > from) {
        const char *nl = memrchr(p, '\n', (size_t)(had - from));
        size_t known = nl ? (size_t)(nl - p) + 1 : 0;
        line += count_lines(p, known);
        from += known;
        p += known;
    }
    return st_run(s, e,
                  "INSERT OR IGNORE INTO agentEvents(run, offset, idx, json, span, line)"
                  " VALUES(?,?,0,?,?,?)",
                  "iibii", (int64_t)a->run, (int64_t)from, raw_kept ? "" : p,
                  raw_kept ? (size_t)0 : (size_t)(end - from), (int64_t)(end - from),
                  (int64_t)line);
}

int st_lines_hold(struct store *s, uint64_t run, uint64_t offset, bool *there, struct err *e)
{
    int64_t end;
    int rc = st_number(s, e, 0, &end,
                       "SELECT offset+span FROM agentEvents WHERE run=? AND offset<=? AND idx=0"
                       " ORDER BY offset DESC LIMIT 1",
                       "ii", (int64_t)run, (int64_t)offset);
    *there = rc == 0 && end > (int64_t)offset;
    return rc;
}

int st_lines_take_over(struct store *s, int64_t run, bool *left, struct err *e)
{
    struct {
        int64_t offset, span;
    } v[ROWS_AT_ONCE];
    size_t n = 0;
    sqlite3_stmt *q = st_query(s, e,
                               "SELECT offset, span FROM agentEvents WHERE run=? AND idx=0 AND"
                               " span>0 AND length(json)=0 ORDER BY offset LIMIT ?",
                               "ii", run, (int64_t)ROWS_AT_ONCE);
    int rc = q ? 0 : e->code;
    while (rc == 0 && (rc = st_step(s, q, e)) == 1) {
        v[n].offset = sqlite3_column_int64(q, 0);
        v[n++].span = sqlite3_column_int64(q, 1);
        rc = 0;
    }
    *left = n == ROWS_AT_ONCE;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct buf b = BUF_INIT;
        rc = st_raw_bytes(s, (uint64_t)run, (uint64_t)v[i].offset, (size_t)v[i].span, &b, e);
        if (rc == 0 && b.len)
            rc = st_run(s, e, "UPDATE agentEvents SET json=? WHERE run=? AND offset=? AND idx=0",
                        "bii", b.p, b.len, run, v[i].offset);
        else if (rc == 0) /* damage took them: nothing is to be had of it */
            rc = st_run(s, e, "DELETE FROM agentEvents WHERE run=? AND offset=? AND idx=0", "ii",
                        run, v[i].offset);
        buf_release(&b);
    }
    return rc;
}
