/* Processes of a sandbox and those who listen to them: what data_proc.c, proc_run.c and
 * proc_lines.c share. */
#ifndef CCT_TESTS_FAULTD_PROC_H
#define CCT_TESTS_FAULTD_PROC_H

#include "data.h"

struct sub { /* one stream of events */
    struct proc *proc;
    struct exchange *x;
    struct timer keepalive, deadline;
    int64_t keepalive_ms;
    bool starter; /* of Start, not of Connect */
};
struct outlet { /* where output comes from */
    struct watch w;
    struct proc *proc;
    const char *name; /* of the event's field */
    bool open;
};
struct lines { /* the built-in process */
    struct timer tick;
    int64_t rate, count, next, base_ms; /* line `next` is due rate-wise after base_ms */
    uint64_t seed;
};
struct proc {
    struct proc *next;
    struct data *data;
    int pid;
    char *config, *tag; /* config: JSON text */
    ARR(struct sub *) subs;
    bool built_in, tty, exited, killed, done, held, close_input;
    int status; /* as of waitpid */
    char *end;  /* the end event, for who comes late */
    struct timer forget, deadline;
    struct outlet out[2];
    struct watch in; /* its stdin, while it is open */
    struct buf input;
    struct lines lines;
};

/* data_proc.c */
bool proc_emit(struct proc *p, const char *name, const void *bytes,
               size_t len);                 /* false: wait */
void proc_done(struct proc *p, int status); /* the end event, and the streams' end */
/* proc_run.c: real ones. */
bool run_start(struct proc *p, const struct cJSON *start, struct exchange *x);
void run_input(struct proc *p, const char *bytes, size_t len);
void run_close_input(struct proc *p);
void run_exited(struct proc *p, int status);
void run_hold(struct proc *p, bool hold); /* stop reading its output, or go on */
void run_resize(struct proc *p, int cols, int rows);
void run_release(struct proc *p);
/* proc_lines.c: `faultd-lines RATE COUNT [SEED]`. */
bool lines_start(struct proc *p, const struct cJSON *config);
void lines_hold(struct proc *p, bool hold);

#endif
