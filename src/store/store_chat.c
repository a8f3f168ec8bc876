/* Chat messages, leases, kill intents and the lines of the events pane. */
#include "store_priv.h"

#include <cct/util/clock.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGE_COLUMNS                                                           \
    "SELECT id, key, sandbox, text, state, error, createdAt, sentAt, deliveredAt," \
    " claimOwner IS NOT NULL FROM sandboxMessages"

static void read_message(sqlite3_stmt *q, struct message *m)
{
    memset(m, 0, sizeof(*m));
    m->id = (uint64_t)sqlite3_column_int64(q, 0);
    m->key = st_text(q, 1);
    m->sandbox = (uint64_t)sqlite3_column_int64(q, 2);
    m->text = st_text(q, 3);
    int state = msg_state_parse((const char *)sqlite3_column_text(q, 4));
    m->state = state < 0 ? MSG_UNCONFIRMED : (enum msg_state)state;
    m->error = st_text(q, 5);
    m->created_at = sqlite3_column_int64(q, 6);
    m->sent_at = sqlite3_column_int64(q, 7);
    m->delivered_at = sqlite3_column_int64(q, 8);
    m->claimed = sqlite3_column_int(q, 9) != 0;
}

/* 1 when there is such a message, else 0 or a code. */
static int get_message(struct store *s, int64_t id, struct st_reply *r)
{
    sqlite3_stmt *p = st_query(s, &r->err, MESSAGE_COLUMNS " WHERE id=?", "i", id);
    int rc = p ? st_step(s, p, &r->err) : r->err.code;
    if (rc == 1) {
        read_message(p, &r->msg);
        sqlite3_reset(p);
    }
    return rc;
}

int st_message_by_key(struct store *s, const char *key, struct st_reply *r)
{
    sqlite3_stmt *p = st_query(s, &r->err, MESSAGE_COLUMNS " WHERE key=?", "t", key);
    int rc = p ? st_step(s, p, &r->err) : r->err.code;
    if (rc == 1) {
        read_message(p, &r->msg);
        sqlite3_reset(p);
    }
    return rc;
}

static int add_message(struct store *s, uint64_t sandbox, const char *text, bool urgent,
                       struct err *e)
{
    char key[17];
    if (strlen(text) > LIM_MESSAGE_BYTES)
        return err_set(e, ERR_LIMIT, "the message is longer than %u bytes", LIM_MESSAGE_BYTES);
    rand_id(key, sizeof(key) - 1);
    int rc = st_run(s, e,
                    "INSERT INTO sandboxMessages(key, sandbox, text, state, createdAt, urgent)"
                    " VALUES(?,?,?,?,?,?)",
                    "tittii", key, (int64_t)sandbox, text, msg_state_name(MSG_QUEUED),
                    clock_wall_ms(), (int64_t)urgent);
    if (rc == ERR_CONFLICT)
        return err_set(e, ERR_NOTFOUND, "no sandbox %llu in the database",
                       (unsigned long long)sandbox);
    return rc;
}

int st_op_message_add(struct store *s, const struct st_req *q, struct st_reply *r)
{
    int rc = add_message(s, q->id, q->s1, q->flag, &r->err);
    if (rc == 0)
        rc = get_message(s, sqlite3_last_insert_rowid(s->db), r);
    return rc < 0 ? rc : 0;
}

int st_op_messages_add(struct store *s, const struct st_req *q, struct st_reply *r)
{
    int rc = 0;
    r->messages = xcalloc(q->n_letters + 1, sizeof(*r->messages));
    for (size_t i = 0; rc >= 0 && i < q->n_letters; i++) {
        rc = add_message(s, q->letters[i].sandbox, q->letters[i].text, q->flag, &r->err);
        if (rc == 0)
            rc = get_message(s, sqlite3_last_insert_rowid(s->db), r);
        if (rc <= 0)
            continue;
        r->messages[r->n_messages++] = r->msg;
        memset(&r->msg, 0, sizeof(r->msg));
    }
    return rc < 0 ? rc : 0;
}

int st_op_messages(struct store *s, const struct st_req *q, struct st_reply *r)
{
    size_t cap = 0;
    int rc;
    sqlite3_stmt *p =
        st_query(s, &r->err,
                 "SELECT * FROM (" MESSAGE_COLUMNS
                 " WHERE sandbox=?1 OR ?1=0 ORDER BY id DESC LIMIT ?2)"
                 " UNION " MESSAGE_COLUMNS " WHERE sandbox=?1 AND (state='sent' OR"
                 " (state='queued' AND (claimOwner IS NOT NULL OR id=(SELECT min(id) FROM"
                 " sandboxMessages WHERE sandbox=?1 AND state='queued')))) ORDER BY 1",
                 "ii", (int64_t)q->id, q->n1);
    if (!p)
        return r->err.code;
    while ((rc = st_step(s, p, &r->err)) == 1) {
        if (r->n_messages == cap) {
            cap = cap ? cap * 2 : 16;
            r->messages = xrealloc(r->messages, cap * sizeof(*r->messages));
        }
        read_message(p, &r->messages[r->n_messages++]);
    }
    return rc;
}

int st_op_message(struct store *s, const struct st_req *q, struct st_reply *r)
{
    int rc = get_message(s, (int64_t)q->id, r);
    return rc < 0 ? rc : 0;
}

/* A claim or lease that ends further ahead than it was given for was made before the
 * clock was set back: it does not hold. */
#define FREE_FOR(owner, until, ttl) \
    "(" owner " IS NULL OR " owner "=:owner OR " until "<=:now OR " until ">:now+" ttl ")"

/* One at a time: who publishes one holds back the others, those put in front as well. */
int st_op_message_claim(struct store *s, const struct st_req *q, struct st_reply *r)
{
    int64_t id, now = clock_wall_ms();
    int rc = st_number(s, &r->err, 0, &id,
                       "SELECT id FROM sandboxMessages WHERE sandbox=:sandbox AND state='queued'"
                       " AND NOT EXISTS(SELECT 1 FROM sandboxMessages WHERE sandbox=:sandbox AND"
                       " (state='sent' OR (state='queued' AND NOT " FREE_FOR(
                           "claimOwner", "claimUntil", "claimTtl") ")))"
                       " ORDER BY claimOwner IS NOT NULL AND claimUntil>:now DESC,"
                       " urgent DESC, id LIMIT 1",
                       "iti", (int64_t)q->id, q->s1, now);
    if (rc != 0 || id == 0)
        return rc;
    rc = st_run(
        s, &r->err,
        "UPDATE sandboxMessages SET claimOwner=:owner, claimUntil=:now+:ttl,"
        " claimTtl=:ttl WHERE id=:id AND " FREE_FOR("claimOwner", "claimUntil", "claimTtl"),
        "tiii", q->s1, now, q->n1, id);
    if (rc != 0 || sqlite3_changes(s->db) == 0)
        return rc;
    r->got = true;
    rc = get_message(s, id, r);
    return rc < 0 ? rc : 0;
}

int st_op_message_unclaim(struct store *s, const struct st_req *q, struct st_reply *r)
{
    return st_run(s, &r->err,
                  "UPDATE sandboxMessages SET claimOwner=NULL, claimUntil=0, claimTtl=0"
                  " WHERE sandbox=? AND claimOwner=? AND state='queued'",
                  "it", (int64_t)q->id, q->s1);
}

/* What is being published right now cannot be called off any more. */
int st_op_message_state(struct store *s, const struct st_req *q, struct st_reply *r)
{
    enum msg_state to = (enum msg_state)q->n2;
    int64_t now = clock_wall_ms();
    int rc =
        st_run(s, &r->err,
               "UPDATE sandboxMessages SET state=:to, error=:error,"
               " sentAt=CASE WHEN :to='sent' THEN :now ELSE sentAt END,"
               " deliveredAt=CASE WHEN :to='delivered' THEN :now ELSE deliveredAt END,"
               " claimOwner=NULL, claimUntil=0, claimTtl=0"
               " WHERE id=:id AND state=:from AND NOT (:to='cancelled' AND"
               " claimOwner IS NOT NULL AND claimUntil>:now AND claimUntil<=:now+claimTtl)",
               "ttiit", msg_state_name(to), q->s1, now, (int64_t)q->id,
               msg_state_name((enum msg_state)q->n1));
    if (rc != 0)
        return rc;
    r->got = sqlite3_changes(s->db) > 0;
    rc = get_message(s, (int64_t)q->id, r);
    if (rc == 0)
        return err_set(&r->err, ERR_NOTFOUND, "no message %llu in the database",
                       (unsigned long long)q->id);
    return rc < 0 ? rc : 0;
}

int st_op_lease(struct store *s, const struct st_req *q, struct st_reply *r)
{
    int rc = st_run(s, &r->err,
                    "INSERT INTO leases(name, owner, until, ttl)"
                    " VALUES(:name,:owner,:now+:ttl,:ttl) ON CONFLICT(name) DO UPDATE SET"
                    " owner=:owner, until=:now+:ttl, ttl=:ttl WHERE " FREE_FOR(
                        "leases.owner", "leases.until", "leases.ttl"),
                    "ttii", q->s1, q->s2, clock_wall_ms(), q->n1);
    r->got = rc == 0 && sqlite3_changes(s->db) > 0;
    return rc;
}

int st_op_lease_drop(struct store *s, const struct st_req *q, struct st_reply *r)
{
    return st_run(s, &r->err, "DELETE FROM leases WHERE name=? AND owner=?", "tt", q->s1,
                  q->s2);
}

static int collect_intents(struct store *s, sqlite3_stmt *p, struct st_reply *r)
{
    int rc;
    while ((rc = st_step(s, p, &r->err)) == 1) {
        r->intents = xrealloc(r->intents, (r->n_intents + 1) * sizeof(*r->intents));
        struct st_intent *i = &r->intents[r->n_intents++];
        i->id = (uint64_t)sqlite3_column_int64(p, 0);
        i->time_ms = sqlite3_column_int64(p, 1);
        i->account = sqlite3_column_int(p, 2) != 0;
        i->project = st_text(p, 3);
        i->target = st_text(p, 4);
    }
    return rc;
}

#define INTENT_COLUMNS "SELECT id, timeMs, account, project, target FROM killIntents"

int st_op_intent_add(struct store *s, const struct st_req *q, struct st_reply *r)
{
    int rc = st_run(s, &r->err,
                    "INSERT INTO killIntents(timeMs, account, project, target) VALUES(?,?,?,?)",
                    "iitt", clock_wall_ms(), (int64_t)q->flag, q->s1, q->s2);
    if (rc != 0)
        return rc;
    sqlite3_stmt *p = st_query(s, &r->err, INTENT_COLUMNS " WHERE id=?", "i",
                               (int64_t)sqlite3_last_insert_rowid(s->db));
    return p ? collect_intents(s, p, r) : r->err.code;
}

int st_op_intent_done(struct store *s, const struct st_req *q, struct st_reply *r)
{
    return st_run(s, &r->err, "DELETE FROM killIntents WHERE id=?", "i", (int64_t)q->id);
}

int st_op_intents(struct store *s, const struct st_req *q, struct st_reply *r)
{
    (void)q;
    sqlite3_stmt *p = st_query(s, &r->err, INTENT_COLUMNS " ORDER BY id", "");
    return p ? collect_intents(s, p, r) : r->err.code;
}

int st_op_log_add(struct store *s, const struct st_req *q, struct st_reply *r)
{
    return st_run(s, &r->err,
                  "INSERT INTO events(timeMs, level, sandbox, text) VALUES(?,?,?,?)", "iiit",
                  q->n2, q->n1, (int64_t)q->id, q->s1);
}

int st_op_log(struct store *s, const struct st_req *q, struct st_reply *r)
{
    size_t cap = 0;
    int rc;
    sqlite3_stmt *p = st_query(s, &r->err,
                               "SELECT * FROM (SELECT timeMs, level, sandbox, text, id FROM"
                               " events ORDER BY id DESC LIMIT ?) ORDER BY id",
                               "i", q->n1);
    if (!p)
        return r->err.code;
    while ((rc = st_step(s, p, &r->err)) == 1) {
        if (r->n_log == cap) {
            cap = cap ? cap * 2 : 64;
            r->log = xrealloc(r->log, cap * sizeof(*r->log));
        }
        struct st_log *l = &r->log[r->n_log++];
        l->time_ms = sqlite3_column_int64(p, 0);
        l->level = sqlite3_column_int(p, 1);
        l->sandbox = (uint64_t)sqlite3_column_int64(p, 2);
        l->text = st_text(p, 3);
    }
    return rc;
}
