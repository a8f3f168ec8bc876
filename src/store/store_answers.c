/* Answers to agents' questions: the first one to a question counts, whoever gives it. */
#include "store_priv.h"

#include <cct/util/clock.h>
#include <cct/util/limits.h>
#include <cct/util/xalloc.h>
#include <string.h>

#define COLUMNS "SELECT offset, idx, choice, text, createdAt, sentAt FROM answers WHERE run=?"

static int collect(struct store *s, sqlite3_stmt *p, struct st_reply *r)
{
    int rc;
    if (!p)
        return r->err.code;
    while ((rc = st_step(s, p, &r->err)) == 1) {
        r->answers = xrealloc(r->answers, (r->n_answers + 1) * sizeof(*r->answers));
        struct st_answer *a = &r->answers[r->n_answers++];
        memset(a, 0, sizeof(*a));
        a->offset = (uint64_t)sqlite3_column_int64(p, 0);
        a->index = (uint32_t)sqlite3_column_int64(p, 1);
        a->choice = sqlite3_column_int(p, 2);
        a->text = st_text(p, 3);
        a->created_at = sqlite3_column_int64(p, 4);
        a->sent_at = sqlite3_column_int64(p, 5);
    }
    return rc;
}

static int one(struct store *s, const struct st_req *q, struct st_reply *r)
{
    return collect(s,
                   st_query(s, &r->err, COLUMNS " AND offset=? AND idx=?", "iii",
                            (int64_t)q->id, (int64_t)q->offset, q->n1),
                   r);
}

int st_op_answer_add(struct store *s, const struct st_req *q, struct st_reply *r)
{
    struct err *e = &r->err;
    if (q->s1 && strlen(q->s1) > LIM_MESSAGE_BYTES)
        return err_set(e, ERR_LIMIT, "the answer is longer than %u bytes", LIM_MESSAGE_BYTES);
    int rc = st_run(s, e,
                    "INSERT INTO answers(run, offset, idx, choice, text, createdAt)"
                    " VALUES(?,?,?,?,?,?) ON CONFLICT(run, offset, idx) DO NOTHING",
                    "iiiiti", (int64_t)q->id, (int64_t)q->offset, q->n1, q->n2, q->s1,
                    clock_wall_ms());
    if (rc == ERR_CONFLICT)
        return err_set(e, ERR_NOTFOUND, "no run %llu in the database",
                       (unsigned long long)q->id);
    if (rc != 0)
        return rc;
    r->got = sqlite3_changes(s->db) > 0;
    return one(s, q, r);
}

int st_op_answers(struct store *s, const struct st_req *q, struct st_reply *r)
{
    return collect(s, st_query(s, &r->err, COLUMNS, "i", (int64_t)q->id), r);
}

int st_op_answer_sent(struct store *s, const struct st_req *q, struct st_reply *r)
{
    int rc = st_run(s, &r->err,
                    "UPDATE answers SET sentAt=? WHERE run=? AND offset=? AND idx=? AND sentAt=0",
                    "iiii", clock_wall_ms(), (int64_t)q->id, (int64_t)q->offset, q->n1);
    return rc ? rc : one(s, q, r);
}
