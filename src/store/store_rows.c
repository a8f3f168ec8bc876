/* Rows of sandboxes. */
#include "store_priv.h"

#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PRUNE_SOON_MS = 500 };

#define COLUMNS                                                                              \
    "sandboxId, session, name, tool, project, templateId, alias, mark, reason, lastLine,"    \
    " account,"                                                                             \
    " state, agent, gone, isForeign, vmUp, unlisted, notIsolated, protect, pending,"         \
    " startedAt, endAt, endedAt, seenAt, createdAt, agentSince, cpuCount, memoryMb, diskMb," \
    " costUsd, tokensIn, tokensOut, meta, branch, tags"
#define TYPES "tttttttttttttiiiiiiiiiiiiiiiidiittt"

/* Metadata as a JSON object; NULL when there is none. */
static char *meta_json(const struct kv *meta)
{
    if (!meta)
        return NULL;
    struct buf b = BUF_INIT;
    struct jw w;
    jw_init(&w, &b);
    jw_obj(&w, NULL);
    for (; meta->k; meta++)
        jw_str(&w, meta->k, meta->v);
    jw_end(&w);
    return buf_detach(&b, NULL);
}

static struct kv *meta_parse(const char *text)
{
    struct err e;
    struct cJSON *j = text ? json_parse(text, strlen(text), &e) : NULL;
    if (!json_is_object(j)) {
        json_free(j);
        return NULL;
    }
    size_t n = 0;
    for (const struct cJSON *c = json_first(j); c; c = json_next(c))
        n++;
    struct kv *kv = xcalloc(n + 1, sizeof(*kv));
    n = 0;
    for (const struct cJSON *c = json_first(j); c; c = json_next(c)) {
        kv[n].k = xstrdup(json_name(c));
        kv[n++].v = xstrdup(json_str_of(c));
    }
    json_free(j);
    return kv;
}

/* isForeign: an older program takes every number but 0 for foreign. */
enum { OWN_OURS = 0, OWN_FOREIGN = 1, OWN_ADOPTED = 2 };

static int64_t own_of(const struct sandbox *s)
{
    return s->foreign ? OWN_FOREIGN : s->adopted ? OWN_ADOPTED : OWN_OURS;
}

static void read_sandbox(sqlite3_stmt *q, struct sandbox *s)
{
    char **texts[] = {&s->sandbox_id,  &s->session, &s->name, &s->tool,   &s->project,
                      &s->template_id, &s->alias,   &s->mark, &s->reason, &s->last_line,
                      &s->account};
    bool *flags[] = {&s->vm_up, &s->unlisted, &s->not_isolated, &s->protect, &s->pending};
    int64_t *times[] = {&s->started_at, &s->end_at,     &s->ended_at,
                        &s->seen_at,    &s->created_at, &s->agent_since};
    int c = 0;
    memset(s, 0, sizeof(*s));
    s->id = (uint64_t)sqlite3_column_int64(q, c++);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        *texts[i] = st_text(q, c++);
    int state = sb_state_parse((const char *)sqlite3_column_text(q, c++));
    int agent = sb_agent_parse((const char *)sqlite3_column_text(q, c++));
    s->state = state < 0 ? SB_ERROR : (enum sb_state)state;
    s->agent = agent < 0 ? AG_UNKNOWN : (enum sb_agent)agent;
    int gone = sqlite3_column_int(q, c++);
    s->gone = gone < GONE_NONE || gone > GONE_EARLY ? GONE_NONE : (enum sb_gone)gone;
    int own = sqlite3_column_int(q, c++);
    s->foreign = own != OWN_OURS && own != OWN_ADOPTED;
    s->adopted = own == OWN_ADOPTED;
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        *flags[i] = sqlite3_column_int(q, c++) != 0;
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        *times[i] = sqlite3_column_int64(q, c++);
    s->cpu_count = sqlite3_column_int(q, c++);
    s->memory_mb = sqlite3_column_int(q, c++);
    s->disk_mb = sqlite3_column_int(q, c++);
    bool priced = sqlite3_column_type(q, c) != SQLITE_NULL;
    s->cost_usd = priced ? sqlite3_column_double(q, c) : (double)NAN;
    c++;
    s->tokens_in = sqlite3_column_int64(q, c++);
    s->tokens_out = sqlite3_column_int64(q, c++);
    s->meta = meta_parse((const char *)sqlite3_column_text(q, c++));
    s->branch = st_text(q, c++);
    s->tags = st_text(q, c);
}

static int collect(struct store *s, sqlite3_stmt *p, struct st_reply *r)
{
    size_t cap = 0;
    int rc;
    while ((rc = st_step(s, p, &r->err)) == 1) {
        if (r->n_sandboxes == cap) {
            cap = cap ? cap * 2 : 16;
            r->sandboxes = xrealloc(r->sandboxes, cap * sizeof(*r->sandboxes));
        }
        read_sandbox(p, &r->sandboxes[r->n_sandboxes++]);
    }
    return rc;
}

int st_op_sandboxes(struct store *s, const struct st_req *q, struct st_reply *r)
{
    (void)q;
    sqlite3_stmt *p =
        st_query(s, &r->err, "SELECT id, " COLUMNS " FROM sandboxes ORDER BY id", "");
    int rc = p ? collect(s, p, r) : r->err.code;
    return rc ? rc : st_pairs_attach(s, r);
}

/* Each instance looks when another one has committed something. */
int st_op_owned(struct store *s, const struct st_req *q, struct st_reply *r)
{
    int64_t version;
    int rc = st_number(s, &r->err, 0, &version, "PRAGMA data_version", "");
    if (rc != 0 || version == s->owned_version)
        return rc;
    s->owned_version = version;
    sqlite3_stmt *p = st_query(s, &r->err,
                               "SELECT id, " COLUMNS " FROM sandboxes WHERE isForeign<>0"
                               " OR (?1 AND state<>'killed') ORDER BY id", "i", (int64_t)q->flag);
    return p ? collect(s, p, r) : r->err.code;
}

#define VALUES(b, meta)                                                                  \
    (b)->sandbox_id, (b)->session, (b)->name, (b)->tool, (b)->project, (b)->template_id, \
        (b)->alias, (b)->mark, (b)->reason, (b)->last_line, (b)->account, sb_state_name((b)->state),   \
        sb_agent_name((b)->agent), (int64_t)(b)->gone, own_of(b),                         \
        (int64_t)(b)->vm_up, (int64_t)(b)->unlisted, (int64_t)(b)->not_isolated,         \
        (int64_t)(b)->protect, (int64_t)(b)->pending, (b)->started_at, (b)->end_at,      \
        (b)->ended_at, (b)->seen_at, (b)->created_at, (b)->agent_since,                  \
        (int64_t)(b)->cpu_count, (int64_t)(b)->memory_mb, (int64_t)(b)->disk_mb,         \
        (b)->cost_usd, (b)->tokens_in, (b)->tokens_out, (meta), (b)->branch, (b)->tags

/* Two instances may see the same sandbox first at the same moment, or one may find in a
 * listing what the other is about to create: the E2B id, then the mark, say that it is
 * one row. What it holds already wins, as its owner knows more than a listing tells; but
 * whose it is, the list says that names it (a new key of the same account). */
static int insert_sandbox(struct store *s, const struct sandbox *b, const char *meta,
                          int64_t *id, struct err *e)
{
    int rc = st_number(s, e, 0, id, "SELECT id FROM sandboxes WHERE sandboxId=?", "t",
                       b->sandbox_id);
    if (rc == 0 && *id == 0)
        rc = st_number(s, e, 0, id,
                       "SELECT id FROM sandboxes WHERE mark=?1 AND (sandboxId IS NULL OR"
                       " sandboxId IS ?2 OR ?2 IS NULL)",
                       "tt", b->mark, b->sandbox_id);
    if (rc != 0)
        return rc;
    if (*id != 0)
        return st_run(s, e,
                      "UPDATE sandboxes SET sandboxId=coalesce(sandboxId,?1),"
                      " account=coalesce(?2,account) WHERE id=?3",
                      "tti", b->sandbox_id, b->account, *id);
    rc = st_run(s, e,
                "INSERT INTO sandboxes(" COLUMNS ") VALUES"
                "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                TYPES, VALUES(b, meta));
    *id = sqlite3_last_insert_rowid(s->db);
    return rc;
}

/* Whose a sandbox is that cc-tui did not make stays what the database says of it; the
 * project's name of any, as a project may be called anew. The texts of `own` are its own.
 * 1: there is such a row. */
static int keep_own(struct store *s, const struct sandbox *b, struct sandbox *own,
                    struct err *e)
{
    char **texts[] = {&own->name, &own->project, &own->session, &own->tool};
    sqlite3_stmt *p = st_query(s, e,
                               "SELECT isForeign, name, project, session, tool FROM sandboxes"
                               " WHERE id=?", "i", (int64_t)b->id);
    int rc = p ? st_step(s, p, e) : e->code;
    memset(own, 0, sizeof(*own));
    if (rc != 1)
        return rc;
    int kind = sqlite3_column_int(p, 0);
    own->adopted = kind == OWN_ADOPTED;
    own->foreign = kind && !own->adopted;
    for (int i = 0; i < 4; i++)
        *texts[i] = st_text(p, i + 1);
    sqlite3_reset(p);
    return 1;
}

static int update_sandbox(struct store *s, const struct sandbox *b, const char *meta,
                          struct err *e)
{
    int rc = st_run(s, e,
                    "UPDATE sandboxes SET (" COLUMNS ") ="
                    "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
                    " WHERE id=?",
                    TYPES "i", VALUES(b, meta), (int64_t)b->id);
    if (rc == ERR_CONFLICT)
        return err_set(e, rc, "sandbox '%s' has another row already", b->sandbox_id);
    if (rc == 0 && sqlite3_changes(s->db) == 0)
        return err_set(e, ERR_NOTFOUND, "no sandbox %llu in the database",
                       (unsigned long long)b->id);
    return rc;
}

static int update_kept(struct store *s, const struct sandbox *b, bool owns, const char *meta,
                       struct err *e)
{
    struct sandbox own, row = *b;
    int rc = owns ? 0 : keep_own(s, b, &own, e);
    if (rc <= 0)
        return rc ? rc : update_sandbox(s, b, meta, e);
    if (own.project || own.foreign)
        row.project = own.project;
    if (own.foreign || own.adopted) {
        row.foreign = own.foreign;
        row.adopted = own.adopted;
        row.session = own.session;
        row.tool = own.tool;
        if (row.adopted != b->adopted || !row.name)
            row.name = own.name;
    }
    rc = update_sandbox(s, &row, meta, e);
    sandbox_release(&own);
    return rc;
}

int st_op_put_sandbox(struct store *s, const struct st_req *q, struct st_reply *r)
{
    const struct sandbox *b = q->sandbox;
    char *meta = meta_json(b->meta);
    int64_t id = (int64_t)b->id;
    int rc =
        id ? update_kept(s, b, q->flag, meta, &r->err) : insert_sandbox(s, b, meta, &id, &r->err);
    free(meta);
    if (rc != 0 || !q->to.mq)
        return rc;
    sqlite3_stmt *p =
        st_query(s, &r->err, "SELECT id, " COLUMNS " FROM sandboxes WHERE id=?", "i", id);
    return p ? collect(s, p, r) : r->err.code;
}

int st_op_del_sandbox(struct store *s, const struct st_req *q, struct st_reply *r)
{
    /* its runs go with it; what they hold, bit by bit afterwards */
    int64_t soon = clock_mono_ms() + PRUNE_SOON_MS;
    if (s->prune.next_ms > soon)
        s->prune.next_ms = soon;
    return st_run(s, &r->err, "DELETE FROM sandboxes WHERE id=?", "i", (int64_t)q->id);
}
