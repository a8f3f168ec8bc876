/* Builds of templates. A build that was called off stays so, whoever drives it. */
#include "store_priv.h"

#include <cct/model/tbuild.h>
#include <cct/util/xalloc.h>
#include <string.h>

#define COLUMNS                                                                             \
    "toolId, templateName, cliVersion, status, error, templateId, buildId, project, account," \
    " recipe, options, phase, title, tail, startedAt, endedAt, step, steps, cached"

static void read_row(sqlite3_stmt *p, struct tbuild *b)
{
    int state = tb_state_parse((const char *)sqlite3_column_text(p, 4));

    memset(b, 0, sizeof(*b));
    b->id = (uint64_t)sqlite3_column_int64(p, 0);
    b->tool = st_text(p, 1);
    b->name = st_text(p, 2);
    b->version = st_text(p, 3);
    b->state = state < 0 ? TB_ERROR : (enum tb_state)state;
    b->error = st_text(p, 5);
    b->template_id = st_text(p, 6);
    b->build_id = st_text(p, 7);
    b->project = st_text(p, 8);
    b->account = st_text(p, 9);
    b->recipe = st_text(p, 10);
    b->options = st_text(p, 11);
    b->phase = st_text(p, 12);
    b->title = st_text(p, 13);
    b->tail = st_text(p, 14);
    b->started_at = sqlite3_column_int64(p, 15);
    b->ended_at = sqlite3_column_int64(p, 16);
    b->step = sqlite3_column_int(p, 17);
    b->steps = sqlite3_column_int(p, 18);
    b->cached = sqlite3_column_int(p, 19) != 0;
}

static int collect(struct store *s, sqlite3_stmt *p, struct st_reply *r)
{
    int rc;

    if (!p)
        return r->err.code;
    while ((rc = st_step(s, p, &r->err)) == 1) {
        r->builds = xrealloc(r->builds, (r->n_builds + 1) * sizeof(*r->builds));
        read_row(p, &r->builds[r->n_builds++]);
    }
    return rc;
}

/* n1: only when another connection has changed something since. */
int st_op_builds(struct store *s, const struct st_req *q, struct st_reply *r)
{
    int64_t version;
    int rc = st_number(s, &r->err, 0, &version, "PRAGMA data_version", "");

    if (rc != 0 || (q->n1 && version == s->builds_version))
        return rc;
    s->builds_version = version;
    r->got = true;
    return collect(s, st_query(s, &r->err, "SELECT id, " COLUMNS " FROM templateBuilds ORDER BY id",
                               ""), r);
}

#define VALUES(b)                                                                             \
    (b)->tool, (b)->name ? (b)->name : "", (b)->version, tb_state_name((b)->state), (b)->error, \
        (b)->template_id, (b)->build_id, (b)->project, (b)->account, (b)->recipe, (b)->options, \
        (b)->phase, (b)->title, (b)->tail, (b)->started_at, (b)->ended_at, (int64_t)(b)->step,  \
        (int64_t)(b)->steps, (int64_t)(b)->cached
#define TYPES "tttttttt" "tttttt" "iiiii"

static int insert(struct store *s, const struct tbuild *b, struct err *e)
{
    return st_run(s, e, "INSERT INTO templateBuilds(" COLUMNS ")"
                  " VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", TYPES, VALUES(b));
}

static int update(struct store *s, const struct tbuild *b, struct err *e)
{
    return st_run(s, e, "UPDATE templateBuilds SET toolId=?, templateName=?, cliVersion=?, status=?,"
                  " error=?, templateId=?, buildId=?, project=?, account=?, recipe=?, options=?,"
                  " phase=?, title=?, tail=?, startedAt=?, endedAt=?, step=?, steps=?, cached=?"
                  " WHERE id=? AND status<>'cancelled'", TYPES "i", VALUES(b), (int64_t)b->id);
}

int st_op_build_put(struct store *s, const struct st_req *q, struct st_reply *r)
{
    const struct tbuild *b = q->build;
    int64_t id = (int64_t)b->id;
    int rc = id ? update(s, b, &r->err) : insert(s, b, &r->err);

    if (rc != 0)
        return rc;
    if (!id)
        id = sqlite3_last_insert_rowid(s->db);
    rc = collect(s, st_query(s, &r->err, "SELECT id, " COLUMNS " FROM templateBuilds WHERE id=?", "i",
                             id), r);
    return rc != 0 || r->n_builds ? rc
                                  : err_set(&r->err, ERR_NOTFOUND, "no build %lld in the database",
                                            (long long)id);
}

int st_op_build_del(struct store *s, const struct st_req *q, struct st_reply *r)
{
    return st_run(s, &r->err, "DELETE FROM templateBuilds WHERE id=?", "i", (int64_t)q->id);
}
