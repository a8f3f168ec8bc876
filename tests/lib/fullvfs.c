/* The way to the disk with two gates. */
#include "fullvfs.h"

#include <sqlite3.h>
#include <stddef.h>

static sqlite3_vfs full_vfs, *real_vfs;
static sqlite3_io_methods full_file, full_wal;
static const sqlite3_io_methods *real_file, *real_wal;
atomic_bool fullvfs_file, fullvfs_log;
atomic_int fullvfs_refused;

static int write_or_not(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
    if (!fullvfs_file)
        return real_file->xWrite(f, p, n, at);
    fullvfs_refused++;
    return SQLITE_FULL;
}

static int write_wal_or_not(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
    return fullvfs_log ? SQLITE_FULL : real_wal->xWrite(f, p, n, at);
}

static int open_watched(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *out)
{
    int rc = real_vfs->xOpen(v, name, f, flags, out);

    if (rc == SQLITE_OK && (flags & SQLITE_OPEN_MAIN_DB)) {
        real_file = f->pMethods;
        full_file = *real_file;
        full_file.xWrite = write_or_not;
        f->pMethods = &full_file;
    } else if (rc == SQLITE_OK && (flags & SQLITE_OPEN_WAL)) {
        real_wal = f->pMethods;
        full_wal = *real_wal;
        full_wal.xWrite = write_wal_or_not;
        f->pMethods = &full_wal;
    }
    return rc;
}

bool fullvfs_begin(void)
{
    real_vfs = sqlite3_vfs_find(NULL);
    full_vfs = *real_vfs;
    full_vfs.zName = "full";
    full_vfs.xOpen = open_watched;
    fullvfs_refused = 0;
    return sqlite3_vfs_register(&full_vfs, 1) == SQLITE_OK;
}

void fullvfs_end(void)
{
    fullvfs_file = fullvfs_log = false;
    sqlite3_vfs_unregister(&full_vfs);
}
