/* Processes that cc-tui did not start, in sandboxes that it may not have made. Net thread
 * only. Nothing here ever resumes a sandbox: where it is, is asked of the control plane
 * without side effects, and one that is not known to run gets no request at all.
 *
 *   foreign_list.c    pure: envd's list, lines of several streams
 *   foreign_reach.c   where a sandbox is
 *   foreign.c         a sandbox whose processes somebody looks at
 *   foreign_stream.c  the live output of one process, over losses
 *   foreign_watch.c   ... for the screen and for `watch`
 *   foreign_kill.c    a signal to one process
 *   foreign_adopt.c   a sandbox becomes ours by the user's word
 *   session_raw.c     the session of an adopted process */
#ifndef CCT_JOBS_FOREIGN_PRIV_H
#define CCT_JOBS_FOREIGN_PRIV_H

#include "core_priv.h"

#include <cct/envd.h>
#include <cct/model/process.h>

/* --- foreign_list.c -------------------------------------------------------------- */
enum { PROC_LIST_MAX = 1000 };
struct proc_list {
    struct proc *v;
    size_t n, more; /* more: beyond the limit */
};
/* What List answered; wanted: a pid that is kept in any case, 0 = none. Entries that make
 * no sense are left out. 0 or ERR_PROTO. */
int proc_list_parse(struct proc_list *l, const char *json, size_t len, int wanted,
                    struct err *e);
void proc_list_release(struct proc_list *l);
const struct proc *proc_list_find(const struct proc_list *l, int pid);
/* The signal that a process was ended by, from the words of its end; 0 = none known. */
int proc_end_signal(const char *status);

/* Several streams become one of whole lines, so that none cuts a line of another. */
enum { LANES = ENVD_PTY + 1 };
struct lanes {
    struct buf part[LANES]; /* a line that is not whole */
    enum envd_stream last;  /* lane that got the newest bytes without an end */
};
typedef void (*lanes_fn)(void *ctx, const char *data, size_t len);
void lanes_add(struct lanes *l, enum envd_stream s, const char *data, size_t len, lanes_fn fn,
               void *ctx);
void lanes_flush(struct lanes *l, lanes_fn fn, void *ctx); /* lines without an end get one */
const struct buf *lanes_part(const struct lanes *l);       /* newest unfinished line, or NULL */
void lanes_release(struct lanes *l);

/* --- foreign_reach.c ------------------------------------------------------------- */
/* One question to the control plane: where is it? Owned by who asks; zeroed before. */
/* envd: the receiver's own, NULL with e. ERR_CONFLICT: it is paused. */
typedef void (*reach_fn)(void *ctx, struct envd *take, const struct err *e);
struct reach {
    struct jobs *j;
    struct e2b *client;
    uint64_t call, row;
    reach_fn fn;
    void *ctx;
};
/* 0: fn comes, once. Else the code: it is not up, and e says so. */
int reach_ask(struct reach *r, struct jobs *j, uint64_t row, int give_up_ms, reach_fn fn,
              void *ctx, struct err *e);
void reach_cancel(struct reach *r);
/* Why nothing can be asked of it now: 0, or a code with a sentence. */
int reach_refusal(const struct sandbox *row, struct err *e);

/* --- foreign.c ------------------------------------------------------------------- */
struct livewatch;
struct foreign {
    struct jobs *j;
    uint64_t row;
    bool looked;        /* somebody sees the list */
    bool shown;         /* somebody sees the row's output */
    struct reach reach;
    struct envd *envd;
    uint64_t call, timer;
    int64_t listed_at, due; /* mono ms, of the last answer; of the next list, 0 = under way */
    ARR(uint64_t) asked; /* requests that one list answers */
    struct procs p;     /* as told last, without the watch */
    struct livewatch *watch;
};
struct foreign *foreign_of(struct jobs *j, uint64_t row); /* made when missing */
struct foreign *foreign_find(struct jobs *j, uint64_t row);
void foreign_post(struct foreign *f);                /* tell the screen */
void foreign_list_soon(struct jobs *j, uint64_t row); /* when somebody looks */

/* --- foreign_stream.c ------------------------------------------------------------ */
struct proc_end {
    struct err err;  /* code 0: it ended and `known` says how; else why it is not followed
                        any more */
    bool known;      /* exit code and signal are */
    int exit_code;   /* -1 with a signal */
    int sig;
    const char *status;
};
struct procwatch_cb {
    /* Started by us (procwatch_start); ident comes a little later. */
    void (*on_started)(void *ctx, int pid);
    /* Connected. lost_at: wall ms until which all was seen, 0 = the first time. */
    void (*on_live)(void *ctx, const struct proc *p, int64_t lost_at);
    void (*on_data)(void *ctx, enum envd_stream s, const char *data, size_t len);
    /* Not connected any more; paused: with its sandbox. */
    void (*on_lost)(void *ctx, const struct err *e, bool paused);
    void (*on_end)(void *ctx, const struct proc_end *end); /* once, last; may free it */
    void *ctx;
};
struct procwatch;
/* ident 0: whatever process has the pid now. No callback comes before this returns. */
struct procwatch *procwatch_new(struct jobs *j, uint64_t row, int pid, uint64_t ident,
                                const struct procwatch_cb *cb);
/* Starts it first, once: when that fails, or what became of it is not known, on_end comes.
 * The spec is borrowed until on_started or on_end. */
struct procwatch *procwatch_start(struct jobs *j, uint64_t row, const struct envd_proc_spec *spec,
                                  const struct procwatch_cb *cb);
/* For calls about the process while it is connected, else NULL; they end without an answer
 * when it is lost. */
struct envd *procwatch_envd(const struct procwatch *w);
uint64_t procwatch_ident(const struct procwatch *w); /* 0: not known yet */
/* Stop reading, and go on; over losses, too. */
void procwatch_pause(struct procwatch *w, bool pause);
void procwatch_free(struct procwatch *w); /* the process lives on; no callback */
void procwatch_row_state(struct jobs *j, const struct sandbox *row);
void procwatch_relocate(struct jobs *j);
/* "output between 12:01:03 and 12:01:40 was not seen", appended; wall ms. */
void procwatch_gap(struct buf *out, int64_t from, int64_t to);

/* --- foreign_watch.c ------------------------------------------------------------- */
/* For the screen (chunks false): items of the row's transcript. Else the bytes as
 * EV_CHUNK and one EV_DONE with the exit code. */
void livewatch_start(struct foreign *f, uint64_t req_id, int pid, uint64_t ident, bool chunks);
void livewatch_free(struct livewatch *w);
void livewatch_fill(const struct livewatch *w, struct procs *p); /* its part of what is told */

/* --- foreign_kill.c -------------------------------------------------------------- */
void prockill_start(struct jobs *j, const struct cmd *c);
void prockill_release(struct jobs *j);

/* --- foreign_adopt.c ------------------------------------------------------------- */
void adopt_start(struct jobs *j, const struct cmd *c);
void adopt_undo(struct jobs *j, const struct cmd *c);
void adopt_release(struct jobs *j);
void adopt_refresh(struct jobs *j); /* what other instances said */

#endif
