/* The store against the least that must be done: a bare loop that inserts the same bytes
 * (the rows, and the raw output as one blob), 100 lines to a transaction; and fdatasync of
 * a small file. Interleaved, medians; wall time, as waiting
 * for the disk is part of it. The ratio is what counts. */
#include "../lib/storebox.h"
#include "../lib/tmpdir.h"

#include <cct/util/xalloc.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROWS = 40000, BATCH = 100, TEXT = 200, PASSES = 7, MESSAGES = 60 };

static char text[TEXT + 1];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *v, size_t n)
{
    qsort(v, n, sizeof(*v), compare);
    return v[n / 2];
}

/* Rows a second of plain inserts. */
static double bare(const char *dir)
{
    static char blob[BATCH * TEXT];
    sqlite3 *db;
    sqlite3_stmt *q, *raw;
    char *path = xasprintf("%s/bare.db", dir);
    unlink(path);
    if (sqlite3_open(path, &db) != SQLITE_OK)
        die("cannot open '%s'", path);
    sqlite3_exec(
        db,
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
        "CREATE TABLE m(id INTEGER PRIMARY KEY, run INTEGER, offset INTEGER, text TEXT)",
        NULL, NULL, NULL);
    sqlite3_prepare_v2(db, "INSERT INTO m(run, offset, text) VALUES(?,?,?)", -1, &q, NULL);
    sqlite3_prepare_v2(db, "INSERT INTO r(run, data) VALUES(1,?)", -1, &raw, NULL);
    double t = now();
    for (int i = 0; i < ROWS; i++) {
        if (i % BATCH == 0) {
            sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
            sqlite3_bind_blob(raw, 1, blob, sizeof(blob), SQLITE_STATIC);
            sqlite3_step(raw);
            sqlite3_reset(raw);
        }
        sqlite3_bind_int64(q, 1, 1);
        sqlite3_bind_int64(q, 2, i * TEXT);
        sqlite3_bind_text(q, 3, text, TEXT, SQLITE_STATIC);
        sqlite3_step(q);
        sqlite3_reset(q);
        if (i % BATCH == BATCH - 1)
            sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    }
    t = now() - t;
    sqlite3_finalize(q);
    sqlite3_finalize(raw);
    sqlite3_close(db);
    free(path);
    return ROWS / t;
}

/* Event rows a second; each append has `per` lines, raw bytes and events. */
static double ours(struct storebox *b, uint64_t sandbox, int per, int pass)
{
    char name[32];
    snprintf(name, sizeof(name), "%d-%d", per, pass);
    uint64_t run = storebox_run(b, sandbox, name), at = 0;
    double t = now();
    for (int i = 0; i < ROWS / per; i++) {
        size_t len = (size_t)per * TEXT;
        struct st_append a = {.run = run, .offset = at, .raw = xmalloc(len), .len = len};
        a.events = xcalloc((size_t)per, sizeof(*a.events));
        a.n_events = (size_t)per;
        for (int k = 0; k < per; k++) {
            memcpy(a.raw + k * TEXT, text, TEXT);
            a.events[k] =
                (struct st_event){at + (uint64_t)k * TEXT, 0, xstrndup(text, TEXT), TEXT, NULL,
                                   false, 0};
        }
        at += len;
        store_append(b->s, &a,
                     (i + 1) * per == ROWS ? storebox_to(b) : (struct st_to){NULL, 0});
    }
    struct st_reply *r = storebox_wait(b);
    t = now() - t;
    if (r->err.code || r->stored != at)
        die("append: %s", r->err.text);
    msg_free(&r->m);
    return ROWS / t;
}

static double sync_once(int fd)
{
    double t = now();
    if (write(fd, text, TEXT) != TEXT || fdatasync(fd) != 0)
        die("cannot sync a file");
    return now() - t;
}

static double message_once(struct storebox *b, uint64_t sandbox)
{
    double t = now();
    store_message_add(b->s, sandbox, "do the next thing", storebox_to(b));
    struct st_reply *r = storebox_wait(b);
    t = now() - t;
    if (r->err.code)
        die("message: %s", r->err.text);
    msg_free(&r->m);
    return t;
}

int main(void)
{
    double floor[PASSES], big[PASSES], small[PASSES], sync[MESSAGES], message[MESSAGES];
    struct storebox b;
    char *dir = storebox_dir(), *other = storebox_dir();
    char *path = xasprintf("%s/synced", other);
    memset(text, 'e', TEXT);
    storebox_start(&b, dir);
    if (b.opened->err.code)
        die("%s", b.opened->text);
    uint64_t sandbox = storebox_sandbox(&b, "bench");
    for (int i = 0; i < PASSES; i++) {
        floor[i] = bare(other);
        big[i] = ours(&b, sandbox, BATCH, i);
        small[i] = ours(&b, sandbox, 1, i);
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    for (int i = 0; i < MESSAGES; i++) {
        sync[i] = sync_once(fd);
        message[i] = message_once(&b, sandbox);
    }
    close(fd);
    double f = median(floor, PASSES), g = median(big, PASSES), s = median(small, PASSES);
    double d = median(sync, MESSAGES) * 1e3, m = median(message, MESSAGES) * 1e3;
    printf("%-34s %9.0f rows/s\n", "bare inserts, 100 to a commit", f);
    printf("%-34s %9.0f rows/s  %.2fx\n", "store, 100 lines an append", g, g / f);
    printf("%-34s %9.0f rows/s  %.2fx\n", "store, 1 line an append", s, s / f);
    printf("%-34s %9.3f ms\n", "write + fdatasync", d);
    printf("%-34s %9.3f ms  %.2fx\n", "message added, durable", m, m / d);
    storebox_stop(&b);
    tmpdir_remove(dir);
    tmpdir_remove(other);
    free(path);
    free(dir);
    free(other);
    return 0;
}
