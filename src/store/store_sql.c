/* SQLite with less words: cached statements, binding by a type string, transactions,
 * errors in our own codes. */
#include "store_priv.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static int code_of(struct store *s, int rc)
{
    switch (rc & 0xff) {
    case SQLITE_FULL:
        return ERR_FULL;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return ERR_BUSY;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return ERR_CORRUPT;
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_AUTH:
        return ERR_PERM;
    case SQLITE_CONSTRAINT:
        return ERR_CONFLICT;
    case SQLITE_TOOBIG:
        return ERR_LIMIT;
    case SQLITE_INTERRUPT:
        return ERR_CANCELLED;
    case SQLITE_IOERR: {
        int sys = s->db ? sqlite3_system_errno(s->db) : 0;
        return sys == ENOSPC || sys == EDQUOT ? ERR_FULL : ERR_IO;
    }
    default:
        return ERR_IO;
    }
}

static const char *advice(int code, int rc)
{
    switch (code) {
    case ERR_FULL:
        return "; free some space, then try again";
    case ERR_BUSY:
        return "; another cc-tui holds it, try again";
    case ERR_PERM:
        return "; check the rights of the data folder";
    default:
        return (rc & 0xff) == SQLITE_IOERR ? "; check the disk and its quota" : "";
    }
}

int st_error(struct store *s, struct err *e, int rc)
{
    int code = code_of(s, rc);
    s->last_error = rc;
    const char *why = s->db ? sqlite3_errmsg(s->db) : sqlite3_errstr(rc);
    if (code == ERR_FULL)
        why = "the disk is full";
    err_set(e, code, "cannot use the database '%s': %s%s", s->path ? s->path : "in memory", why,
            advice(code, rc));
    if (e && (rc & 0xff) == SQLITE_IOERR && s->db)
        e->sys = sqlite3_system_errno(s->db);
    return code;
}

static sqlite3_stmt *prepared(struct store *s, const char *sql, struct err *e)
{
    uint16_t *place = &s->stmt_places[(uintptr_t)sql / sizeof(void *) % STORE_STMT_PLACES];
    if (*place < s->stmts.n && s->stmts.v[*place].sql == sql)
        return s->stmts.v[*place].p;
    for (size_t i = 0; i < s->stmts.n; i++)
        if (s->stmts.v[i].sql == sql) {
            *place = (uint16_t)i;
            return s->stmts.v[i].p;
        }
    sqlite3_stmt *p = NULL;
    int rc = sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &p, NULL);
    if (rc != SQLITE_OK) {
        st_error(s, e, rc);
        return NULL;
    }
    *ARR_PUSH(&s->stmts) = (struct st_stmt){sql, p};
    return p;
}

static int bind_one(sqlite3_stmt *p, int at, char type, va_list *ap)
{
    switch (type) {
    case 'i':
        return sqlite3_bind_int64(p, at, va_arg(*ap, int64_t));
    case 't':
        return sqlite3_bind_text(p, at, va_arg(*ap, const char *), -1, SQLITE_STATIC);
    case 'd':
        return sqlite3_bind_double(p, at, va_arg(*ap, double));
    case 'b':
    case 's': {
        const char *data = va_arg(*ap, const char *);
        size_t len = va_arg(*ap, size_t);
        if (type == 's')
            return sqlite3_bind_text64(p, at, data, len, SQLITE_STATIC, SQLITE_UTF8);
        return sqlite3_bind_blob64(p, at, data, len, SQLITE_STATIC);
    }
    default:
        BUG("no such bind type: %c", type);
    }
}

static sqlite3_stmt *query_v(struct store *s, struct err *e, const char *sql, const char *types,
                             va_list *ap)
{
    sqlite3_stmt *p = prepared(s, sql, e);
    if (!p)
        return NULL;
    sqlite3_reset(p);
    for (int i = 0; types[i]; i++) {
        int rc = bind_one(p, i + 1, types[i], ap);
        if (rc != SQLITE_OK) {
            st_error(s, e, rc);
            return NULL;
        }
    }
    return p;
}

sqlite3_stmt *st_query(struct store *s, struct err *e, const char *sql, const char *types, ...)
{
    va_list ap;
    va_start(ap, types);
    sqlite3_stmt *p = query_v(s, e, sql, types, &ap);
    va_end(ap);
    return p;
}

int st_step(struct store *s, sqlite3_stmt *q, struct err *e)
{
    int rc = sqlite3_step(q);
    if (rc == SQLITE_ROW)
        return 1;
    int code = rc == SQLITE_DONE ? 0 : st_error(s, e, rc);
    sqlite3_reset(q);
    return code;
}

static int run_v(struct store *s, struct err *e, const char *sql, const char *types,
                 va_list *ap)
{
    sqlite3_stmt *p = query_v(s, e, sql, types, ap);
    if (!p)
        return e->code;
    int rc;
    while ((rc = st_step(s, p, e)) == 1)
        ;
    return rc;
}

int st_run(struct store *s, struct err *e, const char *sql, const char *types, ...)
{
    va_list ap;
    va_start(ap, types);
    int rc = run_v(s, e, sql, types, &ap);
    va_end(ap);
    return rc;
}

int st_number(struct store *s, struct err *e, int64_t none, int64_t *out, const char *sql,
              const char *types, ...)
{
    va_list ap;
    va_start(ap, types);
    sqlite3_stmt *p = query_v(s, e, sql, types, &ap);
    va_end(ap);
    *out = none;
    if (!p)
        return e->code;
    int rc = st_step(s, p, e);
    if (rc != 1)
        return rc;
    if (sqlite3_column_type(p, 0) != SQLITE_NULL)
        *out = sqlite3_column_int64(p, 0);
    sqlite3_reset(p);
    return 0;
}

int st_exec(struct store *s, const char *sql, struct err *e)
{
    int rc = sqlite3_exec(s->db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : st_error(s, e, rc);
}

void st_finalize(struct store *s)
{
    for (size_t i = 0; i < s->stmts.n; i++)
        sqlite3_finalize(s->stmts.v[i].p);
    ARR_RELEASE(&s->stmts);
}

/* What was typed survives a power cut, so its commit waits for the disk; output can be
 * read again from the sandbox, its commits wait for nothing. */
int st_begin(struct store *s, bool full, struct err *e)
{
    if (full != s->full_sync) {
        int rc = st_exec(s, full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL", e);
        if (rc != 0)
            return rc;
        s->full_sync = full;
    }
    return st_run(s, e, "BEGIN IMMEDIATE", "");
}

int st_commit(struct store *s, struct err *e)
{
    int rc = st_run(s, e, "COMMIT", "");
    if (rc != 0)
        st_rollback(s);
    return rc;
}

void st_rollback(struct store *s)
{
    /* some errors have ended the transaction already */
    if (s->db && !sqlite3_get_autocommit(s->db)) {
        struct err ignored = {0};
        st_run(s, &ignored, "ROLLBACK", "");
    }
}

char *st_text(sqlite3_stmt *q, int col)
{
    const char *p = (const char *)sqlite3_column_text(q, col);
    return p ? xstrndup(p, (size_t)sqlite3_column_bytes(q, col)) : NULL;
}
