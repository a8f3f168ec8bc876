/* How the files were left: a short record in the lock file, written at the end and read at
 * the next opening. A database that nobody has touched since needs no check; a life that
 * only looked around leaves its few pages in the log, as the disk is not to be waited for
 * by whoever only wants to see a list. */
#include "store_priv.h"

#include <cct/util/fs.h>
#include <cct/util/hash.h>
#include <cct/util/log.h>
#include <cct/util/xalloc.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "store_schema.h"

/* Read anew at each opening until it goes into the database. */
#define LOG_MAX (256 << 10)
#define LOG_HEAD 32

static const char magic[8] = "cc-left1";

/* Times are the file system's, so that any write of others makes them differ. */
struct left {
    char magic[8];
    uint64_t schema; /* of the newest step's text: a program that knows more looks itself */
    struct st_file_id db;
    struct st_file_id log; /* all 0: no log, or one that holds more than light writes */
    uint64_t log_salt;
    uint64_t sum;
};

static char *beside(const struct store *s, const char *suffix)
{
    return xasprintf("%s%s", s->path, suffix);
}

static char *record_path(const struct store *s)
{
    return fs_join(s->dir, "cc-tui.lock");
}

static uint64_t sum_of(const struct left *l)
{
    return hash_add(HASH_BEGIN, l, offsetof(struct left, sum));
}

static uint64_t schema_hash(void)
{
    uint64_t h = HASH_BEGIN;

    for (const char *const *part = store_step(STORE_SCHEMA - 1); *part; part++)
        h = hash_add(h, *part, strlen(*part));
    return h;
}

/* --- what is there ------------------------------------------------------------------- */

static struct st_file_id id_of(const struct stat *st)
{
    return (struct st_file_id){(uint64_t)st->st_ino, (uint64_t)st->st_size,
                               (int64_t)st->st_mtim.tv_sec, (int64_t)st->st_mtim.tv_nsec};
}

/* All 0: there is none. */
static struct st_file_id look_at_db(const struct store *s)
{
    struct stat st;

    return stat(s->path, &st) == 0 ? id_of(&st) : (struct st_file_id){0};
}

static bool same_file(struct st_file_id a, struct st_file_id b)
{
    return a.inode && a.inode == b.inode && a.size == b.size && a.written_s == b.written_s &&
           a.written_ns == b.written_ns;
}

/* A log only grows while its salt stays, so the two say what is in it. */
static void look_at_log(const struct store *s, struct left *l)
{
    char *path = beside(s, "-wal");
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    unsigned char head[LOG_HEAD];
    struct stat st;

    l->log = (struct st_file_id){0};
    l->log_salt = 0;
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0) {
        l->log = id_of(&st);
        if (pread(fd, head, sizeof(head), 0) == (ssize_t)sizeof(head))
            memcpy(&l->log_salt, head + 16, sizeof(l->log_salt));
    }
    if (fd >= 0)
        close(fd);
    free(path);
}

/* Whoever has a database open holds a lock on these bytes of it, as the file format says. */
static bool is_open_elsewhere(const struct store *s)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0x40000000,
                         .l_len = 512};
    int fd = open(s->path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool yes = fd < 0 || fcntl(fd, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;

    if (fd >= 0)
        close(fd);
    return yes;
}

/* --- at the begin --------------------------------------------------------------------- */

void st_left_read(struct store *s, int lock)
{
    struct left was = {0}, is = {0};
    bool told = pread(lock, &was, sizeof(was), 0) == (ssize_t)sizeof(was) &&
                memcmp(was.magic, magic, sizeof(magic)) == 0 && was.sum == sum_of(&was);
    bool same_log;

    is.db = look_at_db(s);
    look_at_log(s, &is);
    same_log = told && was.log.size && is.log.size == was.log.size && is.log_salt == was.log_salt;
    s->untouched = told && same_file(was.db, is.db) && was.schema == schema_hash();
    /* another file stands in its place: what the log holds belongs to the old one; but a log
     * that is another file, too, came with it, and one that is in use is nobody's to take */
    if (same_log && is.db.inode && !same_file(was.db, is.db) && same_file(was.log, is.log) &&
        !is_open_elsewhere(s)) {
        char *path = beside(s, "-wal");
        is.log.size = unlink(path) == 0 ? 0 : is.log.size;
        free(path);
    }
    s->light_log = is.log.size == 0 || same_log;
    s->begun_log = is.log.size;
    s->heavy = false;
}

/* --- at the end ----------------------------------------------------------------------- */

static int64_t data_version(struct store *s)
{
    struct err e = {0};
    int64_t v;

    return st_number(s, &e, 0, &v, "PRAGMA data_version", "") == 0 ? v : -1;
}

void st_left_begin(struct store *s)
{
    struct left is;

    look_at_log(s, &is); /* somebody may have written since it was looked at */
    s->light_log = s->light_log && is.log.size == s->begun_log;
    s->begun_db = look_at_db(s);
    s->begun_version = data_version(s);
}

/* Texts that were deleted must not stay behind in the log: it is left alone only when all
 * that is in it came from lives like this one. */
bool st_left_light(struct store *s)
{
    struct left is;

    if (s->heavy || !s->light_log || s->no_wal || s->begun_version < 0 ||
        data_version(s) != s->begun_version)
        return false;
    look_at_log(s, &is);
    return is.log.size <= LOG_MAX;
}

/* One that is cut off does not count, so it does no harm. */
static void put_record(const struct store *s, const struct left *l)
{
    char *path = record_path(s);
    int fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0 || pwrite(fd, l, sizeof(*l), 0) != (ssize_t)sizeof(*l))
        log_debug("'%s' cannot be written: the next opening checks the database", path);
    if (fd >= 0)
        close(fd);
    free(path);
}

/* Before the log goes into the file: whoever finds the two after a crash takes neither for
 * what was left on purpose. */
void st_left_void(struct store *s)
{
    s->others = !same_file(s->begun_db, look_at_db(s));
    put_record(s, &(struct left){.schema = 0});
}

/* The clock of a file system may be coarse: the file gets a time of its own, which nobody's
 * later write can have. One that keeps no such times cannot tell whether it was written to. */
static bool stamp(const struct store *s)
{
    struct timespec t[2] = {{.tv_nsec = UTIME_OMIT}};

    return clock_gettime(CLOCK_REALTIME, &t[1]) == 0 &&
           utimensat(AT_FDCWD, s->path, t, AT_SYMLINK_NOFOLLOW) == 0 &&
           look_at_db(s).written_ns == (int64_t)t[1].tv_nsec;
}

void st_left_write(struct store *s, bool light)
{
    struct left l = {.schema = schema_hash()};
    bool same = same_file(s->begun_db, look_at_db(s));

    if (s->no_wal || (light ? !same : s->others)) /* somebody else wrote: the next opening looks again */
        return;
    if (!(s->untouched && same) && !stamp(s))
        return;
    memcpy(l.magic, magic, sizeof(magic));
    l.db = look_at_db(s);
    if (light)
        look_at_log(s, &l);
    l.sum = sum_of(&l);
    put_record(s, &l);
}
