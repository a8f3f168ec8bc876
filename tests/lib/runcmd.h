/* The program under test as a command: its own home, its output kept, many at a time. */
#ifndef CCT_TESTS_RUNCMD_H
#define CCT_TESTS_RUNCMD_H

#include <cct/util/buf.h>
#include <stdbool.h>
#include <sys/types.h>

struct runcmd {
    char *home;          /* all places of the program are in it */
    pid_t pid;
    int out, err;        /* pipes */
    struct buf text, talk; /* stdout, stderr */
    int status;          /* exit status, 128+N by a signal, -1 while it runs */
};
/* A new home. */
void runcmd_init(struct runcmd *r);
/* Remove the home; the program must have ended. */
void runcmd_release(struct runcmd *r);
/* $B/cc-tui with these arguments (end with NULL). env: "K=V" beside HOME, PATH and the
 * places; ends with NULL. */
void runcmd_start(struct runcmd *r, const char *const args[], const char *const env[]);
/* Read what comes for at most ms; true when it has ended. */
bool runcmd_read(struct runcmd *r, int ms);
/* To its end, or killed after ms (then the status is -1). */
int runcmd_end(struct runcmd *r, int ms);
void runcmd_kill(struct runcmd *r, int sig);

#endif
