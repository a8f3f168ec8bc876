/* The write-ahead log. What is in it goes into the database when nobody waits, for then the disk
 * is waited for twice; only one that has grown large does not wait. A larger one would save
 * time, but whoever comes then, and a key while all processors are at work, would wait long. */
#include "store_priv.h"

#include <cct/util/clock.h>
#include <cct/util/log.h>
#include <cct/util/xalloc.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    LOG_WORTH = 500,   /* pages: fewer stay in it until the end */
    LOG_MOST = 2000,   /* so many go into the database at once */
    LOG_STEP = 512,    /* after so many the disk begins to write them */
    LOG_QUIET_MS = 500, /* without a commit */
    LOG_AGAIN_MS = 60000 /* after it could not */
};

/* A commit that must be on the disk waits for all that the log holds: the disk is kept at work
 * meanwhile. SQLite holds no lock on this file that closing it here could drop. */
static void begin_writing(struct store *s, int pages)
{
    if (pages < s->log_begun)
        s->log_begun = 0; /* it began anew */
    if (pages - s->log_begun < LOG_STEP)
        return;
    if (s->log_fd < 0) {
        char *path = xasprintf("%s-wal", s->path);

        s->log_fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        free(path);
    }
    if (s->log_fd >= 0) /* no more than a hint */
        (void)sync_file_range(s->log_fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    s->log_begun = pages;
}

static bool is_held(int rc) /* another process is at it, or reads what would be overwritten */
{
    return (rc & 0xff) == SQLITE_BUSY || (rc & 0xff) == SQLITE_LOCKED;
}

/* What cannot go into the file now stays in the log and is readable there: nothing is lost, but
 * each commit makes it longer. It is said when it begins. */
static int into_the_file(struct store *s, struct err *e)
{
    int rc = sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);

    if (rc == SQLITE_OK)
        s->log_fails = false;
    if (rc == SQLITE_OK || is_held(rc))
        return 0;
    st_error(s, e, rc);
    err_wrap(e, "the database's log stays beside it and grows; nothing is lost, and it is tried "
             "again each minute");
    s->log_again_ms = clock_mono_ms() + LOG_AGAIN_MS;
    if (s->log_fails && e->code != ERR_CORRUPT)
        log_warn("%s", e->text);
    else
        s->log_trouble = *e;
    s->log_fails = true;
    return e->code;
}

static int on_commit(void *ctx, sqlite3 *db, const char *name, int pages)
{
    struct store *s = ctx;
    int64_t now = clock_mono_ms();
    struct err e = {0};

    (void)db;
    (void)name;
    s->log_pages = pages;
    s->log_ms = now + LOG_QUIET_MS;
    if (pages < LOG_MOST)
        begin_writing(s, pages);
    else if (now >= s->log_again_ms)
        into_the_file(s, &e); /* told by st_log_step, when no commit is under way */
    return SQLITE_OK;
}

void st_log_begin(struct store *s)
{
    s->log_pages = s->log_begun = 0;
    s->log_fd = -1;
    s->log_again_ms = 0;
    s->log_fails = false;
    err_clear(&s->log_trouble);
    sqlite3_wal_hook(s->db, on_commit, s);
}

void st_log_end(struct store *s)
{
    if (s->log_fd >= 0)
        close(s->log_fd);
    s->log_fd = -1;
}

int64_t st_log_due(const struct store *s)
{
    if (s->log_trouble.code)
        return 0;
    if (s->log_pages < LOG_WORTH)
        return INT64_MAX;
    return s->log_ms > s->log_again_ms ? s->log_ms : s->log_again_ms;
}

int st_log_step(struct store *s, struct err *e)
{
    if (!s->log_trouble.code && into_the_file(s, e) == 0)
        s->log_pages = 0; /* the next commit tells */
    *e = s->log_trouble;
    err_clear(&s->log_trouble);
    return e->code;
}
