/* How agents are to be started that do not run yet. */
#include "store_priv.h"

int st_op_start_put(struct store *s, const struct st_req *q, struct st_reply *r)
{
    if (!q->s1)
        return st_run(s, &r->err, "DELETE FROM starts WHERE sandbox=?", "i", (int64_t)q->id);
    return st_run(s, &r->err, "INSERT OR REPLACE INTO starts(sandbox, recipe) VALUES(?,?)", "it",
                  (int64_t)q->id, q->s1);
}

int st_op_start(struct store *s, const struct st_req *q, struct st_reply *r)
{
    sqlite3_stmt *p =
        st_query(s, &r->err, "SELECT recipe FROM starts WHERE sandbox=?", "i", (int64_t)q->id);
    int rc = p ? st_step(s, p, &r->err) : r->err.code;

    if (rc != 1)
        return rc;
    r->text = st_text(p, 0);
    sqlite3_reset(p);
    return 0;
}
