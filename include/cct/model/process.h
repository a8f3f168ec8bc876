/* Processes in a sandbox that cc-tui did not start: what envd lists, and the one whose
 * live output is watched. Plain data; texts are cleaned. */
#ifndef CCT_MODEL_PROCESS_H
#define CCT_MODEL_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct proc {
    int pid;
    uint64_t ident; /* of the command line as it was sent: the same pid with another one
                       is another process */
    char *command;  /* the whole command line in one line, cut when very long */
    char *brief;    /* what a shell was told to run, when that is all it does */
    char *cwd, *tag; /* NULL: not told */
};
/* Are the processes known? */
enum procs_state { PROCS_UNKNOWN, PROCS_ASKING, PROCS_LISTED, PROCS_CANNOT };
enum watch_state {
    WATCH_NONE,
    WATCH_OPENING,
    WATCH_LIVE,
    WATCH_LOST,  /* the way to it is, it is tried again */
    WATCH_PAUSED, /* with its sandbox */
    WATCH_ENDED
};
/* Of one sandbox, as a whole. */
struct procs {
    enum procs_state state;
    char *text;       /* PROCS_CANNOT: why, and what to do */
    struct proc *v;
    size_t n, more;   /* more: how many there are besides */
    int watched;      /* pid whose output is watched, or was last; 0 = none */
    uint64_t watched_ident;
    enum watch_state watch;
    char *watch_text; /* how it ended, what is wrong; NULL = nothing to say */
    uint64_t rev;     /* grows with every change (model's copy) */
};
void proc_release(struct proc *p);
void proc_copy(struct proc *dst, const struct proc *src);
void procs_release(struct procs *p);
const struct proc *procs_find(const struct procs *p, int pid);

/* Name of the session of an adopted process, and the way back; false: it is none. */
enum { PROC_SESSION_SIZE = 48 };
void proc_session_name(char *dst, size_t size, int pid, uint64_t ident);
bool proc_session_parse(const char *session, int *pid, uint64_t *ident);

#endif
