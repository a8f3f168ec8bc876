/* The write-ahead log. What is in it goes into the database when nobody waits, for then the disk
 * is waited for twice; only one that has grown large does not wait. A larger one would save
 * time, but whoever comes then, and a key while all processors are at work, would wait long. */
#include "store_priv.h"

#include <cct/util/clock.h>
#include <cct/util/xalloc.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    LOG_WORTH = 500,   /* pages: fewer stay in it until the end */
    LOG_MOST = 2000,   /* so many go into the database at once */
    LOG_STEP = 512,    /* after so many the disk begins to write them */
    LOG_QUIET_MS = 500 /* without a commit */
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

static int on_commit(void *ctx, sqlite3 *db, const char *name, int pages)
{
    struct store *s = ctx;

    s->log_pages = pages;
    s->log_ms = clock_mono_ms() + LOG_QUIET_MS;
    if (pages >= LOG_MOST)
        sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    else
        begin_writing(s, pages);
    return SQLITE_OK;
}

void st_log_begin(struct store *s)
{
    s->log_pages = s->log_begun = 0;
    s->log_fd = -1;
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
    return s->log_pages < LOG_WORTH ? INT64_MAX : s->log_ms;
}

int st_log_step(struct store *s, struct err *e)
{
    int rc = sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);

    s->log_pages = 0; /* the next commit tells */
    return rc == SQLITE_OK || (rc & 0xff) == SQLITE_BUSY || (rc & 0xff) == SQLITE_LOCKED
               ? 0
               : st_error(s, e, rc);
}
