/* Opening the database: private files, damage, older and newer schemas, file systems
 * without shared memory; and the check of the whole file in the background. Opening
 * never fails: in the worst case the program goes on with a database in memory. */
#include "store_priv.h"

#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/log.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "store_schema.h"

enum {
    SMALLEST = 512,          /* bytes of the smallest database with anything in it */
    BUSY_MS = 5000,          /* wait for another process's transaction */
    BUSY_CLOSE_MS = 200,     /* the same when the program ends */
    LOCK_MS = 5000,          /* wait for another process that opens */
    CHECK_AT_ONCE = 1 << 20, /* files up to this size are checked whole at opening */
    CHECK_DELAY_MS = 3000,   /* larger ones in the background, after this time */
    CHECK_TRIES = 5,         /* interrupted that often: not in this session */
};

static const char *const suffixes[] = {"", "-wal", "-shm", "-journal", NULL};

/* --- files --------------------------------------------------------------------------- */

/* What stands under the name must be a plain file of ours. It is looked at through an
 * O_PATH descriptor: closing any other one would drop the file locks that a second
 * connection of this process holds. */
static int check_file(const char *path, struct stat *st, struct err *e)
{
    int rc = 0, fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? ERR_NOTFOUND : err_sys(e, 0, "cannot open '%s'", path);
    if (fstat(fd, st) != 0)
        rc = err_sys(e, 0, "cannot look at '%s'", path);
    else if (!S_ISREG(st->st_mode))
        rc = err_set(e, ERR_PERM, "cannot use '%s': it is not a regular file", path);
    else if (st->st_uid != geteuid())
        rc = err_set(e, ERR_PERM, "cannot use '%s': it belongs to user %u, not to you", path,
                     (unsigned)st->st_uid);
    else if (st->st_nlink > 1) /* somebody else may write to it under that name */
        rc = err_set(e, ERR_PERM, "cannot use '%s': it has a second name (hard link)", path);
    else if ((st->st_mode & 077) && chmod(path, 0600) != 0)
        rc = err_sys(e, 0, "cannot make '%s' private", path);
    close(fd);
    return rc;
}

/* The file itself is made here, private from birth whatever the umask; SQLite gives the
 * files beside it the same mode. */
static int prepare_files(struct store *s, struct err *e)
{
    struct stat st;
    for (int i = 1; suffixes[i]; i++) {
        char *path = xasprintf("%s%s", s->path, suffixes[i]);
        int rc = check_file(path, &st, e);
        free(path);
        if (rc != 0 && rc != ERR_NOTFOUND)
            return rc;
    }
    int rc = check_file(s->path, &st, e);
    s->inode = rc == 0 ? st.st_ino : 0;
    if (rc == 0 && st.st_size > 0 && st.st_size < SMALLEST)
        rc = err_set(e, ERR_CORRUPT, "the database '%s' is cut off", s->path);
    if (rc != ERR_NOTFOUND)
        return rc;
    int fd = open(s->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(e, 0, "cannot make '%s'", s->path);
    rc = fchmod(fd, 0600) == 0 ? 0 : err_sys(e, 0, "cannot make '%s' private", s->path);
    close(fd);
    if (rc == 0)
        rc = check_file(s->path, &st, e);
    s->inode = rc == 0 ? st.st_ino : 0;
    return rc;
}

/* Opening, putting aside and migrating are for one process at a time. */
static int take_lock(struct store *s, struct err *e)
{
    char *path = fs_join(s->dir, "cc-tui.lock");
    int64_t until = clock_mono_ms() + LOCK_MS;
    int fd;
    while ((fd = fs_lock(path, e)) == ERR_BUSY && clock_mono_ms() < until)
        poll(NULL, 0, 5);
    free(path);
    return fd;
}

/* Shared memory does not reach the other machines of a network file system, so there the
 * older journal must do. */
static bool network_file_system(const char *dir)
{
    struct statfs f;
    if (statfs(dir, &f) != 0)
        return false;
    switch ((unsigned long)f.f_type & 0xffffffffu) {
    case 0x6969:     /* NFS */
    case 0x517b:     /* SMB */
    case 0xff534d42: /* CIFS */
    case 0xfe534d42: /* SMB2 */
    case 0x01021997: /* 9P */
        return true;
    default:
        return false;
    }
}

/* --- one connection ------------------------------------------------------------------ */

static void close_db(struct store *s)
{
    st_finalize(s);
    if (s->db && sqlite3_close(s->db) != SQLITE_OK)
        BUG("a statement is still open: %s", sqlite3_errmsg(s->db));
    s->db = NULL;
    st_log_end(s);
    s->full_sync = true; /* what a new connection begins with */
}

static int pragma_is(struct store *s, const char *sql, const char *want, struct err *e)
{
    sqlite3_stmt *p = NULL;
    int rc = sqlite3_prepare_v2(s->db, sql, -1, &p, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(p);
    const char *v = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(p, 0) : NULL;
    bool same = v && strcmp(v, want) == 0;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        st_error(s, e, rc);
    else
        rc = 0;
    sqlite3_finalize(p);
    return rc != 0 ? e->code : same;
}

static int connect_db(struct store *s, const char *path, struct err *e)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE |
                (s->memory ? SQLITE_OPEN_CREATE : 0);
    int rc = sqlite3_open_v2(path, &s->db, flags, NULL);
    if (rc != SQLITE_OK)
        return st_error(s, e, rc);
    st_log_begin(s);
    sqlite3_extended_result_codes(s->db, 1);
    sqlite3_busy_timeout(s->db, BUSY_MS);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    /* deleted text is overwritten; nothing of it goes to temporary files */
    return st_exec(s,
                   "PRAGMA secure_delete=ON; PRAGMA temp_store=MEMORY;"
                   "PRAGMA foreign_keys=ON; PRAGMA cell_size_check=ON;"
                   "PRAGMA journal_size_limit=8388608",
                   e);
}

/* A file in WAL mode cannot even be read without shared memory; it is turned back to the
 * rollback journal while it is held alone. */
static int turn_back(struct store *s, struct err *e)
{
    close_db(s);
    int rc = connect_db(s, s->path, e);
    if (rc == 0)
        rc = st_exec(s, "PRAGMA locking_mode=EXCLUSIVE", e);
    if (rc == 0)
        rc = pragma_is(s, "PRAGMA journal_mode=DELETE", "delete", e);
    if (rc == 0)
        return err_set(e, ERR_IO, "cannot use the database '%s': no journal mode works here",
                       s->path);
    return rc != 1 ? rc
                   : st_exec(s, "PRAGMA locking_mode=NORMAL; SELECT 1 FROM sqlite_schema", e);
}

static int read_version(struct store *s, int64_t *version, struct err *e)
{
    static const char sql[] = "PRAGMA user_version";
    if (!s->no_wal) {
        int rc = st_number(s, e, 0, version, sql, "");
        if (rc != ERR_PERM && rc != ERR_IO)
            return rc;
        if ((s->last_error & 0xff) == SQLITE_ERROR)
            return rc;
        err_clear(e);
        s->no_wal = true;
    }
    int rc = turn_back(s, e);
    return rc != 0 ? rc : st_number(s, e, 0, version, sql, "");
}

/* WAL where shared memory works, else the rollback journal. */
static int set_journal(struct store *s, struct err *e)
{
    if (s->no_wal)
        return 0;
    int rc = pragma_is(s, "PRAGMA journal_mode=WAL", "wal", e);
    if (rc >= 0)
        return 0;
    if (rc != ERR_PERM && rc != ERR_IO)
        return rc;
    err_clear(e);
    s->no_wal = true;
    rc = pragma_is(s, "PRAGMA journal_mode=DELETE", "delete", e);
    return rc < 0 ? rc : 0;
}

static int migrate(struct store *s, int64_t first_id, struct err *e)
{
    int64_t version;
    char set[64];
    s->heavy = true;
    int rc = st_begin(s, true, e);
    if (rc == 0) /* another process may have been here first */
        rc = st_number(s, e, 0, &version, "PRAGMA user_version", "");
    for (int64_t v = rc == 0 ? version : STORE_SCHEMA; rc == 0 && v < STORE_SCHEMA; v++)
        for (const char *const *part = store_step(v); rc == 0 && *part; part++)
            rc = st_exec(s, *part, e);
    snprintf(set, sizeof(set), "PRAGMA user_version=%d", (int)STORE_SCHEMA);
    if (rc == 0 && version < STORE_SCHEMA)
        rc = st_exec(s, set, e);
    /* ids of a lost file are still in use elsewhere: the new ones do not meet them */
    for (int i = 0; rc == 0 && first_id && store_tables[i]; i++)
        rc = st_run(s, e, "INSERT INTO sqlite_sequence(name, seq) VALUES(?,?)", "ti",
                    store_tables[i], first_id);
    if (rc == 0)
        return st_commit(s, e);
    st_rollback(s);
    return rc;
}

/* A part of a step begins with the table, the index or the column that it makes. */
static int has_part(struct store *s, const char *sql, int64_t *there, struct err *e)
{
    char table[64], column[64];
    if (sscanf(sql, "CREATE TABLE %63[A-Za-z]", table) == 1 ||
        sscanf(sql, "CREATE INDEX %63[A-Za-z]", table) == 1)
        return st_number(s, e, 0, there, "SELECT 1 FROM sqlite_schema WHERE name=?", "t", table);
    if (sscanf(sql, "ALTER TABLE %63[A-Za-z] ADD COLUMN %63[A-Za-z]", table, column) == 2)
        return st_number(s, e, 0, there, "SELECT 1 FROM pragma_table_info(?) WHERE name=?", "tt",
                         table, column);
    BUG("a part of the schema that makes no table, index or column: %.40s", sql);
}

/* Another process may bring it up at the same time: it is looked for again when nobody else
 * can write. */
static int put_part(struct store *s, const char *sql, struct err *e)
{
    int64_t there = 0;
    s->heavy = true;
    int rc = st_begin(s, true, e);
    if (rc == 0)
        rc = has_part(s, sql, &there, e);
    if (rc == 0 && !there)
        rc = st_exec(s, sql, e);
    if (rc == 0)
        return st_commit(s, e);
    st_rollback(s);
    return rc;
}

/* The newest step may have grown since the file came to it: what is not there is brought up,
 * what is there stays. */
static int complete_step(struct store *s, struct err *e)
{
    int64_t there;
    int rc = 0;
    for (const char *const *part = store_step(STORE_SCHEMA - 1); rc == 0 && *part; part++) {
        rc = has_part(s, *part, &there, e);
        if (rc == 0 && !there)
            rc = put_part(s, *part, e);
    }
    return rc;
}

/* A cheap look: the schema and the first page of every table; small files wholly. */
static int quick_look(struct store *s, struct err *e)
{
    struct stat st;
    char sql[96];
    int rc = 0;
    for (int i = 0; rc == 0 && store_tables[i]; i++) {
        snprintf(sql, sizeof(sql), "SELECT 1 FROM %s LIMIT 1", store_tables[i]);
        if (sqlite3_exec(s->db, sql, NULL, NULL, NULL) != SQLITE_OK)
            rc = st_error(s, e, sqlite3_errcode(s->db));
    }
    if (rc == 0 && sqlite3_db_readonly(s->db, "main") == 1 && access(s->path, W_OK) == 0)
        rc = err_set(e, ERR_CORRUPT, "the database '%s' has a damaged header", s->path);
    if (rc != 0)
        return rc;
    if (stat(s->path, &st) == 0 && st.st_size > CHECK_AT_ONCE) {
        s->check_ms = clock_mono_ms() + CHECK_DELAY_MS;
        return 0;
    }
    rc = pragma_is(s, "PRAGMA quick_check(1)", "ok", e);
    if (rc == 0)
        return err_set(e, ERR_CORRUPT, "the database '%s' is damaged", s->path);
    return rc == 1 ? 0 : rc;
}

/* As it was when it was left in order; what a disk may do to it shows in the background. */
static int look_later(struct store *s)
{
    s->check_ms = clock_mono_ms() + CHECK_DELAY_MS;
    return 0;
}

/* The system keeps the file's pages anyway; four times as many here, as by default, only come
 * and go in the heap. A hint: without it all is well. It reads the schema, so it is none of the
 * first steps. */
static void keep_few_pages(struct store *s)
{
    sqlite3_exec(s->db, "PRAGMA cache_size=-512", NULL, NULL, NULL);
}

static int open_steps(struct store *s, int64_t first_id, struct err *e)
{
    int64_t version = 0;
    s->check_ms = INT64_MAX;
    s->check_table = s->check_tries = 0;
    s->no_wal = network_file_system(s->dir);
    int rc = prepare_files(s, e);
    if (rc == 0)
        rc = connect_db(s, s->path, e);
    if (rc == 0)
        rc = read_version(s, &version, e);
    if (rc == 0 && version > STORE_SCHEMA) {
        s->readonly = true;
        keep_few_pages(s);
        return st_exec(s, "PRAGMA query_only=ON", e);
    }
    if (rc == 0 && version < 0)
        rc = err_set(e, ERR_CORRUPT, "the database '%s' has a damaged header", s->path);
    if (rc == 0 && version == 0) /* only an empty file can take this up */
        rc = st_exec(s, "PRAGMA auto_vacuum=INCREMENTAL", e);
    if (rc == 0)
        rc = set_journal(s, e);
    if (rc == 0 && version < STORE_SCHEMA)
        rc = migrate(s, first_id, e);
    else if (rc == 0 && !s->untouched)
        rc = complete_step(s, e);
    if (rc == 0)
        rc = s->untouched ? look_later(s) : quick_look(s, e);
    if (rc == 0) {
        keep_few_pages(s);
        st_left_begin(s);
    }
    return rc;
}

/* SQLITE_ERROR about our own statements: header or tables are not what they should be. */
static int open_file(struct store *s, int64_t first_id, struct err *e)
{
    s->last_error = 0;
    int rc = open_steps(s, first_id, e);
    if (rc == ERR_IO && (s->last_error & 0xff) == SQLITE_ERROR)
        rc = e->code = ERR_CORRUPT;
    return rc;
}

/* --- the whole ------------------------------------------------------------------------ */

/* Rename the damaged file and its log; the name is told in *name. */
static int put_aside(struct store *s, char **name, struct err *e)
{
    char stamp[32];
    struct tm tm;
    time_t now = (time_t)(clock_wall_ms() / 1000);
    struct stat st;
    int rc = 0;
    gmtime_r(&now, &tm);
    strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &tm);
    *name = xasprintf("%s.damaged-%s", s->path, stamp);
    for (int n = 2; lstat(*name, &st) == 0; n++) {
        free(*name);
        *name = xasprintf("%s.damaged-%s-%d", s->path, stamp, n);
    }
    for (int i = 0; rc == 0 && suffixes[i]; i++) {
        char *from = xasprintf("%s%s", s->path, suffixes[i]);
        char *to = xasprintf("%s%s", *name, suffixes[i]);
        if (rename(from, to) != 0 && errno != ENOENT)
            rc = err_sys(e, 0, "cannot put the damaged '%s' aside", from);
        free(from);
        free(to);
    }
    return rc;
}

char *st_aside(const struct store *s)
{
    DIR *d = s->dir ? opendir(s->dir) : NULL;
    const char *base = s->dir ? strrchr(s->path, '/') + 1 : "";
    size_t n = strlen(base);
    const struct dirent *f;
    char *name = NULL;

    while (d && !name && (f = readdir(d)))
        if (strncmp(f->d_name, base, n) == 0 && str_starts(f->d_name + n, ".damaged-"))
            name = xasprintf("%s/%s", s->dir, f->d_name);
    if (d)
        closedir(d);
    return name;
}

static void open_memory(struct store *s)
{
    struct err e = {0};
    close_db(s);
    s->memory = true;
    s->readonly = false;
    s->check_ms = INT64_MAX;
    int rc = connect_db(s, ":memory:", &e);
    if (rc == 0)
        rc = migrate(s, 0, &e);
    if (rc != 0)
        die("cannot make a database in memory: %s", e.text);
}

/* The damaged file keeps its log: closing must not write into it. */
static void close_damaged(struct store *s)
{
    if (s->db)
        sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    close_db(s);
}

static int open_dir(struct store *s, bool damaged, struct st_reply *r)
{
    struct err *e = &r->err;
    ino_t seen = s->inode;
    int rc = fs_mkdir_private(s->dir, e);
    if (rc != 0)
        return rc;
    int lock = take_lock(s, e);
    if (lock < 0)
        return lock;
    err_clear(e);
    st_left_read(s, lock);
    /* met at work: if the name means another file by now, somebody put it aside */
    rc = damaged && prepare_files(s, e) == 0 && s->inode == seen ? ERR_CORRUPT
                                                                 : open_file(s, 0, e);
    if (rc == ERR_CORRUPT) {
        char *name = NULL;
        close_damaged(s);
        rc = put_aside(s, &name, e);
        s->untouched = false;
        if (rc == 0) {
            rc = open_file(s, clock_wall_ms(), e);
            if (rc == 0)
                err_set(e, ERR_CORRUPT,
                        "the database was damaged: a new one was begun, the old file is kept "
                        "as '%s'",
                        name);
        }
        free(name);
    }
    close(lock);
    return rc;
}

static void open_or_memory(struct store *s, bool damaged, struct st_reply *r)
{
    s->readonly = false;
    int rc = open_dir(s, damaged, r);
    if (rc != 0) {
        open_memory(s);
        r->text = xasprintf("nothing of this session will be kept: %s", r->err.text);
    } else if (s->readonly) {
        err_set(&r->err, ERR_UNSUPPORTED,
                "the database '%s' was written by a newer cc-tui: it is only read; use the "
                "newer program",
                s->path);
    }
    if (!r->text && r->err.code)
        r->text = xstrdup(r->err.text);
    r->readonly = s->readonly;
}

void st_open(struct store *s, struct st_reply *r)
{
    if (s->dir)
        open_or_memory(s, false, r);
    else
        open_memory(s);
}

void st_open_again(struct store *s, struct st_reply *r)
{
    close_damaged(s);
    if (s->memory)
        open_memory(s);
    else
        open_or_memory(s, true, r);
}

void st_close(struct store *s)
{
    bool kept = !s->memory && !s->readonly && s->db, light = kept && st_left_light(s);
    if (light) {
        sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    } else if (kept) {
        struct err e = {0};
        st_left_void(s);
        sqlite3_busy_timeout(s->db, BUSY_CLOSE_MS);
        /* no text stays behind in the log; while others read, they do it at their end */
        int rc = sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
        if (rc != SQLITE_OK && (rc & 0xff) != SQLITE_BUSY) { /* the next opening reads it */
            st_error(s, &e, rc);
            log_warn("the database's log stays beside it: %s", e.text);
        }
        st_exec(s, "PRAGMA optimize", &e);
    }
    close_db(s);
    if (kept)
        st_left_write(s, light);
}

/* --- background check ------------------------------------------------------------------ */

static int somebody_waits(void *arg)
{
    struct store *s = arg;
    return atomic_load(&s->requests) > 0 || mq_closed(s->in);
}

/* One table at a time, given up as soon as a request comes. */
int st_check_step(struct store *s, struct err *e)
{
    char sql[96];
    const char *table = s->memory || s->readonly ? NULL : store_tables[s->check_table];
    if (!table) {
        s->check_ms = INT64_MAX;
        return 0;
    }
    snprintf(sql, sizeof(sql), "PRAGMA quick_check('%s')", table);
    sqlite3_progress_handler(s->db, 2000, somebody_waits, s);
    int rc = pragma_is(s, sql, "ok", e);
    sqlite3_progress_handler(s->db, 0, NULL, NULL);
    if (rc == 0)
        return err_set(e, ERR_CORRUPT, "the database '%s' is damaged", s->path);
    if (rc == 1) {
        s->check_table++;
        return 0;
    }
    s->check_ms = ++s->check_tries < CHECK_TRIES ? clock_mono_ms() + CHECK_DELAY_MS : INT64_MAX;
    return rc == ERR_CORRUPT ? rc : 0;
}
