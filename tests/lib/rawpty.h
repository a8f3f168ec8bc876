/* A program on a pseudo terminal, its bytes counted and searched as they come: nothing is
 * interpreted, no query of the program is answered. For measuring; a test that looks at
 * a screen wants a terminal behind it. */
#ifndef CCT_TESTS_RAWPTY_H
#define CCT_TESTS_RAWPTY_H

#include <cct/util/buf.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct rawpty {
    int fd;
    pid_t pid;
    struct buf seen;    /* all that came */
    int64_t started_us; /* just before the fork */
};
/* argv[0] is a path; envp the whole environment. */
void rawpty_start(struct rawpty *p, const char *const argv[], char *const envp[], int h, int w);
/* Read until every text of the list (ends with NULL) has come; false after ms or when the
 * program ended. */
bool rawpty_until(struct rawpty *p, const char *const texts[], int ms);
/* Read until nothing came for quiet_ms, at most for max_ms. */
void rawpty_settle(struct rawpty *p, int quiet_ms, int max_ms);
/* Read for that long; the number of bytes that came. */
size_t rawpty_watch(struct rawpty *p, int ms);
void rawpty_send(struct rawpty *p, const char *keys);
/* Wait for the end, reading on; after ms it is killed. Exit status, 128+N by a signal;
 * -1 had to be killed. Releases all. */
int rawpty_end(struct rawpty *p, int ms);

#endif
