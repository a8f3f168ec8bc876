/* Filters of the list that were kept under a name. They belong to no project, but come and change
 * with the projects, so that every cc-tui sees the same ones. */
#include "store_priv.h"

#include <cct/model/filter.h>
#include <cct/util/arr.h>
#include <cct/util/clock.h>

enum { FILTERS_MOST = 1000 };

int st_filters(struct store *s, struct st_projects *p, struct err *e)
{
    ARR(struct saved_filter) v = ARR_INIT;
    int64_t there;
    /* an older file that is only read has no such table */
    int rc = st_number(s, e, 0, &there, "SELECT 1 FROM sqlite_schema WHERE name='filters'", "");
    sqlite3_stmt *q;

    if (rc != 0 || !there)
        return rc;
    q = st_query(s, e, "SELECT name, words FROM filters ORDER BY name LIMIT ?", "i",
                 (int64_t)FILTERS_MOST);
    rc = q ? 0 : e->code;
    while (rc == 0 && (rc = st_step(s, q, e)) == 1) {
        *ARR_PUSH(&v) = (struct saved_filter){st_text(q, 0), st_text(q, 1)};
        rc = 0;
    }
    p->filters = v.v;
    p->n_filters = v.n;
    return rc;
}

/* One that could not be shown could not be dropped, either. */
static int check_room(struct store *s, const char *name, struct err *e)
{
    int64_t n;
    int rc = st_number(s, e, 0, &n, "SELECT COUNT(*) FROM filters WHERE name<>?", "t", name);

    if (rc == 0 && n >= FILTERS_MOST)
        rc = err_set(e, ERR_LIMIT, "cannot keep '%.64s': %d filters are kept, which is all that can "
                     "be; drop one first", name, FILTERS_MOST);
    return rc;
}

int st_op_filter(struct store *s, const struct st_req *q, struct st_reply *r)
{
    if (q->s2 && check_room(s, q->s1, &r->err) != 0)
        return r->err.code;
    int rc = q->s2 ? st_run(s, &r->err,
                            "INSERT OR REPLACE INTO filters(name, words, createdAt) VALUES(?,?,?)",
                            "tti", q->s1, q->s2, clock_wall_ms())
                   : st_run(s, &r->err, "DELETE FROM filters WHERE name=?", "t", q->s1);

    if (rc == 0 && !q->s2 && sqlite3_changes(s->db) == 0)
        return err_set(&r->err, ERR_NOTFOUND, "no filter is kept as '%.64s'", q->s1);
    return rc == 0 ? st_projects_changed(s, &r->err) : rc;
}
