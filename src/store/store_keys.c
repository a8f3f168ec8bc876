/* Projects, the vault's head and the sealed keys. What comes here is ciphertext already;
 * the file never sees more of a key than its last four characters. */
#include "store_priv.h"

#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

/* --- the structs ----------------------------------------------------------------- */

static char *bytes_dup(const void *p, size_t len)
{
    char *copy = p ? xmalloc(len + 1) : NULL;
    if (copy) {
        memcpy(copy, p, len);
        copy[len] = '\0';
    }
    return copy;
}

void st_key_release(struct st_key *k)
{
    free(k->project);
    free(k->project_name);
    free(k->provider);
    free(k->api);
    free(k->mark);
    free(k->sealed);
    memset(k, 0, sizeof(*k));
}

void st_key_copy(struct st_key *dst, const struct st_key *src)
{
    *dst = *src;
    dst->project = xstrdup(src->project);
    dst->project_name = xstrdup(src->project_name);
    dst->provider = xstrdup(src->provider);
    dst->api = xstrdup(src->api);
    dst->mark = xstrdup(src->mark);
    dst->sealed = bytes_dup(src->sealed, src->sealed_len);
}

static void vault_release(struct st_vault *v)
{
    free(v->proof);
    free(v->salt);
    free(v->sealed);
    memset(v, 0, sizeof(*v));
}

void st_keys_free(struct st_keys *k)
{
    if (!k)
        return;
    for (size_t i = 0; i < k->n; i++)
        st_key_release(&k->v[i]);
    free(k->v);
    vault_release(&k->vault);
    free(k->project);
    free(k);
}

/* --- reading ---------------------------------------------------------------------- */

static char *column_bytes(sqlite3_stmt *q, int col, size_t *len)
{
    const void *p = sqlite3_column_blob(q, col);
    *len = p ? (size_t)sqlite3_column_bytes(q, col) : 0;
    return bytes_dup(p, *len);
}

static int read_vault(struct store *s, struct st_vault *v, struct err *e)
{
    sqlite3_stmt *q = st_query(s, e,
                               "SELECT uid, revision, protection, proof, opsLimit, memLimit,"
                               " salt, sealed FROM vault WHERE id=1",
                               "");
    int rc = q ? st_step(s, q, e) : e->code;
    if (rc != 1)
        return rc;
    const char *uid = (const char *)sqlite3_column_text(q, 0);
    str_copy(v->uid, sizeof(v->uid), uid ? uid : "");
    v->revision = sqlite3_column_int64(q, 1);
    const char *how = (const char *)sqlite3_column_text(q, 2);
    v->passphrase = !str_eq(how, "keyfile");
    v->proof = column_bytes(q, 3, &v->proof_len);
    v->ops = sqlite3_column_int64(q, 4);
    v->mem = sqlite3_column_int64(q, 5);
    v->salt = column_bytes(q, 6, &v->salt_len);
    v->sealed = column_bytes(q, 7, &v->sealed_len);
    sqlite3_reset(q);
    return 0;
}

static int read_rows(struct store *s, struct st_keys *k, struct err *e)
{
    sqlite3_stmt *q =
        st_query(s, e,
                 "SELECT NULL, NULL, provider, api, mark, lastFour, version, sealed, createdAt"
                 " FROM apiKeys UNION ALL "
                 "SELECT k.project, p.name, k.provider, k.api, k.mark, k.lastFour, k.version,"
                 " k.sealed, k.createdAt FROM projectProviderKeys k"
                 " JOIN projects p ON p.uid=k.project UNION ALL "
                 "SELECT v.project, p.name, '" ST_VARIABLE "', v.name, v.mark, v.lastFour,"
                 " v.version, v.sealed, v.createdAt FROM projectVariables v"
                 " JOIN projects p ON p.uid=v.project WHERE v.sealed IS NOT NULL"
                 " ORDER BY 2, 3, 4",
                 "");
    size_t cap = 0;
    int rc = q ? 0 : e->code;
    while (rc == 0 && (rc = st_step(s, q, e)) == 1) {
        if (k->n == cap) {
            cap = cap ? cap * 2 : 8;
            k->v = xrealloc(k->v, cap * sizeof(*k->v));
        }
        struct st_key *r = &k->v[k->n++];
        memset(r, 0, sizeof(*r));
        r->project = st_text(q, 0);
        r->project_name = st_text(q, 1);
        r->provider = st_text(q, 2);
        r->api = st_text(q, 3);
        r->mark = st_text(q, 4);
        const char *last = (const char *)sqlite3_column_text(q, 5);
        str_copy(r->last4, sizeof(r->last4), last ? last : "");
        r->version = sqlite3_column_int(q, 6);
        r->sealed = column_bytes(q, 7, &r->sealed_len);
        r->created_at = sqlite3_column_int64(q, 8);
        rc = 0;
    }
    return rc;
}

int st_op_keys(struct store *s, const struct st_req *q, struct st_reply *r)
{
    int64_t revision, n = 0;
    int rc = st_number(s, &r->err, 0, &revision, "SELECT revision FROM vault WHERE id=1", "");
    if (rc == 0 && revision == 0) /* once keys are stored anew, those are what counts */
        r->text = xstrdup(s->trouble);
    if (rc != 0 || revision == q->n1)
        return rc;
    struct st_keys *k = xcalloc(1, sizeof(*k));
    rc = read_vault(s, &k->vault, &r->err);
    if (rc == 0)
        rc = read_rows(s, k, &r->err);
    if (rc == 0)
        rc = st_project_of(s, q->s1, &k->project, &r->err);
    if (rc == 0 && k->project && q->s2)
        rc = st_number(s, &r->err, 0, &n,
                       "SELECT count(*) FROM projectFolders WHERE project=? AND folder=?", "tt",
                       k->project, q->s2);
    k->folder_ok = n > 0;
    if (rc != 0) {
        st_keys_free(k);
        return rc;
    }
    r->keys = k;
    r->got = true;
    return 0;
}

/* --- writing ----------------------------------------------------------------------- */

int st_op_project(struct store *s, const struct st_req *q, struct st_reply *r)
{
    char uid[33];
    int rc = st_project_of(s, q->s1, &r->text, &r->err);
    if (rc != 0 || r->text)
        return rc;
    rand_id(uid, sizeof(uid) - 1);
    rc = st_run(s, &r->err, "INSERT INTO projects(uid, name, createdAt) VALUES(?,?,?)", "tti", uid,
                q->s1, q->n1);
    r->text = xstrdup(uid);
    return rc == 0 ? st_projects_changed(s, &r->err) : rc;
}

static int next_revision(struct store *s, struct err *e)
{
    return st_run(s, e, "UPDATE vault SET revision=revision+1", "");
}

int st_op_project_folder(struct store *s, const struct st_req *q, struct st_reply *r)
{
    int rc = st_run(s, &r->err, "INSERT OR IGNORE INTO projectFolders(project, folder) VALUES(?,?)",
                    "tt", q->s1, q->s2);
    return rc == 0 ? next_revision(s, &r->err) : rc;
}

static int put_variable(struct store *s, const struct st_key *k, struct err *e)
{
    int rc = st_run(s, e,
                    "INSERT OR REPLACE INTO projectVariables(project, name, value, mark, lastFour,"
                    " version, sealed, createdAt) VALUES(?,?,NULL,?,?,?,?,?)",
                    "ttttibi", k->project, k->api, k->mark, k->last4, (int64_t)k->version,
                    (const void *)k->sealed, k->sealed_len, k->created_at);
    return rc == 0 ? st_projects_changed(s, e) : rc;
}

static int put_row(struct store *s, const struct st_key *k, struct err *e)
{
    if (strcmp(k->provider, ST_VARIABLE) == 0)
        return put_variable(s, k, e);
    if (k->project)
        return st_run(s, e,
                      "INSERT OR REPLACE INTO projectProviderKeys(project, provider, api, mark,"
                      " lastFour, version, sealed, createdAt) VALUES(?,?,?,?,?,?,?,?)",
                      "tttttibi", k->project, k->provider, k->api, k->mark, k->last4,
                      (int64_t)k->version, (const void *)k->sealed, k->sealed_len, k->created_at);
    return st_run(s, e,
                  "INSERT OR REPLACE INTO apiKeys(provider, api, mark, lastFour, version, sealed,"
                  " createdAt) VALUES(?,?,?,?,?,?,?)",
                  "ttttibi", k->provider, k->api, k->mark, k->last4, (int64_t)k->version,
                  (const void *)k->sealed, k->sealed_len, k->created_at);
}

static int moved_on(struct err *e)
{
    return err_set(e, ERR_CONFLICT, "another cc-tui has changed the keys meanwhile; try again");
}

/* What is stored in memory because the file cannot be had is gone with the program. */
static int keeps(const struct store *s, struct err *e)
{
    if (!s->memory || !s->trouble)
        return 0;
    return err_set(e, ERR_IO, "nothing is stored, it would not be kept: %s", s->trouble);
}

int st_op_vault_put(struct store *s, const struct st_req *q, struct st_reply *r)
{
    const struct st_keys *k = q->keys;
    const struct st_vault *v = &k->vault;
    int64_t now;
    int rc = keeps(s, &r->err);
    if (rc == 0)
        rc = st_number(s, &r->err, 0, &now, "SELECT revision FROM vault WHERE id=1", "");
    if (rc == 0 && now != v->revision)
        rc = moved_on(&r->err);
    if (rc == 0)
        rc = st_run(s, &r->err,
                    "INSERT OR REPLACE INTO vault(id, uid, revision, protection, proof, opsLimit,"
                    " memLimit, salt, sealed) VALUES(1,?,?,?,?,?,?,?,?)",
                    "titbiibb", v->uid, v->revision + 1, v->passphrase ? "passphrase" : "keyfile",
                    (const void *)v->proof, v->proof_len, v->ops, v->mem, (const void *)v->salt,
                    v->salt_len, (const void *)v->sealed, v->sealed_len);
    if (rc == 0)
        rc = st_run(s, &r->err, "DELETE FROM apiKeys", "");
    if (rc == 0)
        rc = st_run(s, &r->err, "DELETE FROM projectProviderKeys", "");
    if (rc == 0)
        rc = st_run(s, &r->err, "DELETE FROM projectVariables WHERE sealed IS NOT NULL", "");
    for (size_t i = 0; rc == 0 && i < k->n; i++)
        rc = put_row(s, &k->v[i], &r->err);
    return rc;
}

int st_op_key_put(struct store *s, const struct st_req *q, struct st_reply *r)
{
    int64_t same;
    int rc = st_number(s, &r->err, 0, &same, "SELECT count(*) FROM vault WHERE uid=?", "t", q->s1);
    if (rc == 0 && !same)
        rc = moved_on(&r->err);
    if (rc == 0)
        rc = put_row(s, &q->keys->v[0], &r->err);
    return rc == 0 ? next_revision(s, &r->err) : rc;
}

int st_op_key_del(struct store *s, const struct st_req *q, struct st_reply *r)
{
    int rc = q->s1 ? st_run(s, &r->err,
                            "DELETE FROM projectProviderKeys WHERE project=? AND provider=?"
                            " AND api=?",
                            "ttt", q->s1, q->s2, q->s3)
                   : st_run(s, &r->err, "DELETE FROM apiKeys WHERE provider=? AND api=?", "tt",
                            q->s2, q->s3);
    if (rc == 0 && sqlite3_changes(s->db) == 0)
        return err_set(&r->err, ERR_NOTFOUND, "there is no such key");
    return rc == 0 ? next_revision(s, &r->err) : rc;
}
