/* Searching for secrets: in files, in memory, and in what the process table shows. */
#ifndef CCT_TESTS_CANARY_H
#define CCT_TESTS_CANARY_H

#include <cct/util/buf.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A secret to look for: as it is, in base64 (wherever it begins in a longer text), and
 * with percent signs. The value is at least 12 bytes. */
void canary_add(const char *value);
void canary_clear(void);
/* Which way it stands there ("plain", "base64", ...), or NULL. */
const char *canary_in(const void *data, size_t len);
/* Number of regular files below dir that hold one; each is named on stdout as "# ...". */
int canary_in_files(const char *dir);
/* Files that were looked at by the last call. */
int canary_files(void);

/* A thread that reads, again and again, the arguments of these processes and of all their
 * descendants, and the environment of those it has known for 300 ms (what a process was
 * started with lies in its memory until it takes it). Roots are told by pid. */
void canary_watch_start(void);
void canary_watch(pid_t root);
struct canary_seen {
    int rounds, processes; /* processes: different ones whose environment was read */
    int hits;              /* told on stdout */
};
struct canary_seen canary_watch_stop(void);

#endif
