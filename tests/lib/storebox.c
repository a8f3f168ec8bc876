/* See storebox.h. */
#include "storebox.h"
#include "tmpdir.h"

#include "../../src/store/store_schema.h"

#include <cct/util/clock.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct st_reply *storebox_any(struct storebox *b)
{
    if (!b->held && mq_wait(b->mq, 30000))
        b->held = mq_take(b->mq);
    struct msg *m = b->held;
    if (!m)
        die("no answer of the store within 30 s");
    b->held = m->next;
    m->next = NULL;
    return (struct st_reply *)m;
}

struct st_to storebox_to(struct storebox *b)
{
    return (struct st_to){b->mq, ++b->next};
}

struct st_reply *storebox_wait(struct storebox *b)
{
    for (;;) {
        struct st_reply *r = storebox_any(b);
        if (r->m.req_id == b->next)
            return r;
        msg_free(&r->m);
    }
}

void storebox_start_with(struct storebox *b, const struct store_opts *o)
{
    struct err e = {0};
    memset(b, 0, sizeof(*b));
    b->mq = mq_new(64 << 20);
    b->s = store_start(o, b->mq, &e);
    if (!b->s)
        die("%s", e.text);
    b->opened = storebox_any(b);
    if (b->opened->m.type != ST_OPENED)
        die("the first answer is no ST_OPENED");
}

void storebox_start(struct storebox *b, const char *dir)
{
    struct store_opts o = {.dir = dir, .retention_days = 30, .vacuum = true};
    storebox_start_with(b, &o);
}

void storebox_stop(struct storebox *b)
{
    store_stop(b->s);
    msg_free(&b->opened->m);
    for (struct msg *m = b->held, *next; m; m = next) {
        next = m->next;
        msg_free(m);
    }
    mq_free(b->mq);
    memset(b, 0, sizeof(*b));
}

void storebox_fresh(struct storebox *b, char **dir)
{
    *dir = storebox_dir();
    storebox_start(b, *dir);
    if (b->opened->err.code)
        die("a new database does not open: %s", b->opened->err.text);
}

void storebox_end(struct storebox *b, char *dir)
{
    storebox_stop(b);
    tmpdir_remove(dir);
    free(dir);
}

void storebox_again(struct storebox *b, const char *dir)
{
    storebox_stop(b);
    storebox_start(b, dir);
    if (b->opened->err.code)
        die("the database does not open again: %s", b->opened->err.text);
}

void storebox_sql(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    if (sqlite3_open(path, &db) != SQLITE_OK || sqlite3_busy_timeout(db, 5000) != SQLITE_OK ||
        sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        die("%s: %s: %s", path, sql, sqlite3_errmsg(db));
    sqlite3_close(db);
}

struct st_reply *storebox_ok(struct storebox *b)
{
    struct st_reply *r = storebox_wait(b);
    if (r->err.code)
        die("the store failed: %s", r->err.text);
    return r;
}

void storebox_says(struct storebox *b, int code)
{
    struct st_reply *r = storebox_wait(b);
    if (r->err.code != code)
        die("code %d, not %d: %s", r->err.code, code, r->err.text);
    if (code && strlen(r->err.text) <= 10)
        die("code %d without a sentence: '%s'", code, r->err.text);
    msg_free(&r->m);
}

char *storebox_project(struct storebox *b, const char *name)
{
    store_project(b->s, name, storebox_to(b));
    struct st_reply *r = storebox_ok(b);
    char *uid = xstrdup(r->text);
    msg_free(&r->m);
    return uid;
}

uint64_t storebox_sandbox(struct storebox *b, const char *sandbox_id)
{
    struct sandbox sb = {.sandbox_id = (char *)sandbox_id, .state = SB_RUNNING};
    store_put_sandbox(b->s, &sb, storebox_to(b));
    struct st_reply *r = storebox_ok(b);
    uint64_t id = r->sandboxes[0].id;
    msg_free(&r->m);
    return id;
}

uint64_t storebox_run(struct storebox *b, uint64_t sandbox, const char *session)
{
    store_run_open(b->s, sandbox, session, 1, storebox_to(b));
    struct st_reply *r = storebox_ok(b);
    uint64_t id = r->run.id;
    msg_free(&r->m);
    return id;
}

void storebox_append(struct storebox *b, uint64_t run, uint64_t offset, const char *text,
                     struct st_to to)
{
    struct st_append a = {.run = run,
                          .offset = offset,
                          .raw = xstrdup(text),
                          .len = strlen(text),
                          .n_events = 1,
                          .turn_offset = offset};
    a.events = xcalloc(1, sizeof(*a.events));
    a.events[0].offset = offset;
    a.events[0].json = xasprintf("{\"line\":%llu}", (unsigned long long)offset);
    a.events[0].len = strlen(a.events[0].json);
    store_append(b->s, &a, to);
}

char *storebox_dir(void)
{
    char *dir = xstrdup("/tmp/cct-store-XXXXXX");
    if (!mkdtemp(dir))
        die("cannot make a folder below /tmp");
    return dir;
}

void storebox_old(const char *dir, int version)
{
    char *path = xasprintf("%s/cc-tui.db", dir), *end;
    sqlite3 *db;
    int rc = sqlite3_open(path, &db);

    for (int v = 0; rc == SQLITE_OK && v < version; v++)
        for (const char *const *sql = store_step(v); rc == SQLITE_OK && *sql; sql++)
            rc = sqlite3_exec(db, *sql, NULL, NULL, NULL);
    end = xasprintf("PRAGMA user_version=%d; INSERT INTO sandboxes VALUES(1,'kept','s','kept','demo',"
                    "'acme',NULL,NULL,NULL,NULL,NULL,NULL,'running','idle',0,0,1,0,0,0,0,0,0,0,0,"
                    "5,0,0,0,0,NULL,0,0,NULL%s)",
                    version, version >= 4 ? ",NULL,NULL" : version == 3 ? ",NULL" : "");
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db, end, NULL, NULL, NULL);
    if (rc != SQLITE_OK)
        BUG("no database of schema %d: %s", version, sqlite3_errmsg(db));
    sqlite3_close(db);
    free(end);
    free(path);
}
