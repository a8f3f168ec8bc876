/* Designer-checker pairs: one row and two sides for a sandbox. A step is stored together
 * with the message that it sends, or not at all, and only on top of the row that it was
 * decided from: so two instances, or one that is started again, never take it twice. */
#include "store_priv.h"

#include <cct/model/pair.h>
#include <cct/util/arr.h>
#include <cct/util/clock.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PAIR_COLUMNS                                                                      \
    "SELECT sandbox, uid, revision, state, role, round, rounds, turn, waiting, asked,"    \
    " ending, cut, reason, task, report, review FROM pairs"

static void read_pair(sqlite3_stmt *q, struct pair *p)
{
    const char *uid = (const char *)sqlite3_column_text(q, 1);
    int state = pair_state_parse((const char *)sqlite3_column_text(q, 3));
    int role = pair_role_parse((const char *)sqlite3_column_text(q, 4));

    memset(p, 0, sizeof(*p));
    p->sandbox = (uint64_t)sqlite3_column_int64(q, 0);
    str_copy(p->uid, sizeof(p->uid), uid ? uid : "");
    p->rev = sqlite3_column_int64(q, 2);
    p->state = state < 0 ? PAIR_STOPPED : (enum pair_state)state;
    p->role = role < 0 ? PAIR_DESIGNER : (enum pair_role)role;
    p->round = sqlite3_column_int(q, 5);
    p->rounds = sqlite3_column_int(q, 6);
    p->turn = sqlite3_column_int(q, 7);
    p->waiting = sqlite3_column_int(q, 8) != 0;
    p->asked = sqlite3_column_int(q, 9) != 0;
    p->ending = sqlite3_column_int(q, 10) != 0;
    p->cut = sqlite3_column_int(q, 11) != 0;
    p->reason = st_text(q, 12);
    p->task = st_text(q, 13);
    p->report = st_text(q, 14);
    p->review = st_text(q, 15);
}

static int read_sides(struct store *s, struct pair *p, struct err *e)
{
    sqlite3_stmt *q = st_query(s, e,
                               "SELECT role, tool, model, prompt, session, costUsd, tokensIn,"
                               " tokensOut, turns FROM pairSides WHERE sandbox=?",
                               "i", (int64_t)p->sandbox);
    int rc = q ? 1 : e->code;
    while (q && (rc = st_step(s, q, e)) == 1) {
        int role = pair_role_parse((const char *)sqlite3_column_text(q, 0));
        if (role < 0 || p->side[role].tool)
            continue;
        struct pair_side *side = &p->side[role];
        side->tool = st_text(q, 1);
        side->model = st_text(q, 2);
        side->prompt = st_text(q, 3);
        side->session = st_text(q, 4);
        bool priced = sqlite3_column_type(q, 5) != SQLITE_NULL;
        side->cost_usd = priced ? sqlite3_column_double(q, 5) : (double)NAN;
        side->tokens_in = sqlite3_column_int64(q, 6);
        side->tokens_out = sqlite3_column_int64(q, 7);
        side->turns = sqlite3_column_int(q, 8);
    }
    return rc;
}

/* NULL with 0 when there is none. */
static int get_pair(struct store *s, int64_t sandbox, struct pair **out, struct err *e)
{
    sqlite3_stmt *q = st_query(s, e, PAIR_COLUMNS " WHERE sandbox=?", "i", sandbox);
    int rc = q ? st_step(s, q, e) : e->code;
    if (rc != 1)
        return rc;
    *out = xcalloc(1, sizeof(**out));
    read_pair(q, *out);
    sqlite3_reset(q);
    rc = read_sides(s, *out, e);
    if (rc == 0 && (!(*out)->side[0].tool || !(*out)->side[1].tool))
        rc = err_set(e, ERR_CORRUPT, "the pair of sandbox %lld has a side too few",
                     (long long)sandbox);
    if (rc != 0) {
        pair_free(*out);
        *out = NULL;
    }
    return rc;
}

int st_pairs_attach(struct store *s, struct st_reply *r)
{
    sqlite3_stmt *q = st_query(s, &r->err, "SELECT sandbox FROM pairs", "");
    ARR(int64_t) ids = ARR_INIT;
    int rc = q ? 1 : r->err.code;
    while (q && (rc = st_step(s, q, &r->err)) == 1)
        *ARR_PUSH(&ids) = sqlite3_column_int64(q, 0);
    for (size_t i = 0; rc >= 0 && i < ids.n; i++) {
        size_t k = 0;
        while (k < r->n_sandboxes && r->sandboxes[k].id != (uint64_t)ids.v[i])
            k++;
        if (k < r->n_sandboxes)
            rc = get_pair(s, ids.v[i], &r->sandboxes[k].pair, &r->err);
    }
    ARR_RELEASE(&ids);
    return rc < 0 ? rc : 0;
}

/* --- reading -------------------------------------------------------------------- */

int st_op_pair(struct store *s, const struct st_req *q, struct st_reply *r)
{
    char key[48];
    int rc = get_pair(s, (int64_t)q->id, &r->pair, &r->err);
    if (rc != 0 || !r->pair)
        return rc;
    pair_key(r->pair, r->pair->turn, key, sizeof(key));
    rc = st_message_by_key(s, key, r);
    return rc < 0 ? rc : 0;
}

/* --- a step --------------------------------------------------------------------- */

static int insert_row(struct store *s, const struct pair *p, struct err *e)
{
    return st_run(s, e,
                  "INSERT INTO pairs(sandbox, uid, revision, state, role, round, rounds, turn,"
                  " waiting, asked, ending, cut, reason, task, report, review)"
                  " VALUES(?,?,1,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT(sandbox) DO NOTHING",
                  "itttiiiiiiitttt", (int64_t)p->sandbox, p->uid, pair_state_name(p->state),
                  pair_role_name(p->role), (int64_t)p->round, (int64_t)p->rounds,
                  (int64_t)p->turn, (int64_t)p->waiting, (int64_t)p->asked,
                  (int64_t)p->ending, (int64_t)p->cut,
                  p->reason, p->task, p->report, p->review);
}

static int update_row(struct store *s, const struct pair *p, struct err *e)
{
    return st_run(s, e,
                  "UPDATE pairs SET revision=revision+1, uid=?, state=?, role=?, round=?,"
                  " rounds=?, turn=?, waiting=?, asked=?, ending=?, cut=?, reason=?, task=?,"
                  " report=?, review=? WHERE sandbox=? AND revision=?",
                  "tttiiiiiiittttii", p->uid, pair_state_name(p->state), pair_role_name(p->role),
                  (int64_t)p->round, (int64_t)p->rounds, (int64_t)p->turn, (int64_t)p->waiting,
                  (int64_t)p->asked, (int64_t)p->ending, (int64_t)p->cut,
                  p->reason, p->task, p->report, p->review,
                  (int64_t)p->sandbox, p->rev);
}

static int put_sides(struct store *s, const struct pair *p, struct err *e)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < PAIR_ROLES; i++) {
        const struct pair_side *side = &p->side[i];
        rc = st_run(s, e,
                    "INSERT OR REPLACE INTO pairSides(sandbox, role, tool, model, prompt,"
                    " session, costUsd, tokensIn, tokensOut, turns) VALUES(?,?,?,?,?,?,?,?,?,?)",
                    "ittttt" "diii",
                    (int64_t)p->sandbox, pair_role_name((enum pair_role)i), side->tool,
                    side->model, side->prompt, side->session, side->cost_usd, side->tokens_in,
                    side->tokens_out, (int64_t)side->turns);
    }
    return rc;
}

/* Its message is called off while nobody is publishing it: then it never was a turn. */
static int call_off(struct store *s, const struct pair *p, int turn, bool *off, struct err *e)
{
    char key[48];
    int64_t now = clock_wall_ms();
    pair_key(p, turn, key, sizeof(key));
    int rc = st_run(s, e,
                    "UPDATE sandboxMessages SET state='cancelled', claimOwner=NULL"
                    " WHERE key=:key AND state='queued' AND NOT (claimOwner IS NOT NULL AND"
                    " claimUntil>:now AND claimUntil<=:now+claimTtl)",
                    "ti", key, now);
    *off = rc == 0 && sqlite3_changes(s->db) > 0;
    return rc;
}

static int send(struct store *s, const struct pair *p, const char *text, struct st_reply *r)
{
    char key[48];
    if (strlen(text) > LIM_MESSAGE_BYTES)
        return err_set(&r->err, ERR_LIMIT, "what the %s is to be told is longer than %u bytes",
                       pair_role_name(p->role), LIM_MESSAGE_BYTES);
    pair_key(p, p->turn, key, sizeof(key));
    int rc = st_run(s, &r->err,
                    "INSERT INTO sandboxMessages(key, sandbox, text, state, createdAt)"
                    " VALUES(?,?,?,'queued',?)",
                    "titi", key, (int64_t)p->sandbox, text, clock_wall_ms());
    return rc != 0 ? rc : st_message_by_key(s, key, r);
}

int st_op_pair_put(struct store *s, const struct st_req *q, struct st_reply *r)
{
    struct pair *p = q->pair;
    struct err *e = &r->err;
    int rc = p->rev == 0 ? insert_row(s, p, e) : update_row(s, p, e);
    if (rc == ERR_CONFLICT)
        return err_set(e, ERR_NOTFOUND, "no sandbox %llu in the database",
                       (unsigned long long)p->sandbox);
    if (rc == 0)
        r->got = sqlite3_changes(s->db) > 0;
    if (rc == 0 && r->got)
        rc = put_sides(s, p, e);
    if (rc == 0 && r->got && q->n1)
        rc = call_off(s, p, (int)q->n1, &r->called_off, e);
    if (rc == 0 && r->called_off && q->n1 == p->turn)
        rc = st_run(s, e,
                    "UPDATE pairs SET waiting=0, ending=0 WHERE sandbox=?", "i",
                    (int64_t)p->sandbox);
    if (rc == 0 && r->got && q->s1)
        rc = send(s, p, q->s1, r);
    if (rc >= 0)
        rc = get_pair(s, (int64_t)p->sandbox, &r->pair, e);
    return rc < 0 ? rc : 0;
}
