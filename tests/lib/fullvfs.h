/* A disk that takes no more, for the database alone: SQLite's own way to the files of those that
 * are opened between begin and end, but that they cannot be written to while it is said so. */
#ifndef CCT_TESTS_LIB_FULLVFS_H
#define CCT_TESTS_LIB_FULLVFS_H

#include <stdatomic.h>
#include <stdbool.h>

extern atomic_bool fullvfs_file, fullvfs_log; /* of the database; of its write-ahead log */
extern atomic_int fullvfs_refused;            /* writes to the database's file */
bool fullvfs_begin(void);
void fullvfs_end(void);

#endif
