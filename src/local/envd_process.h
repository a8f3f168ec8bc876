/* One process and the streams that watch it; private to envd_process*.c. */
#ifndef LOCAL_ENVD_PROCESS_H
#define LOCAL_ENVD_PROCESS_H

#include "envd.h"
#include <cct/util/buf.h>
#include <event2/util.h>

#define PROC_KEEP_S 30            /* the end stays known this long */
#define PROC_DRAIN_MS 300         /* a grandchild may hold the pipes: wait no longer */
#define PROC_KEEPALIVE_S 90       /* unless the client asks for another interval */
#define PROC_FINAL_MAX (1u << 20) /* last look into a pipe somebody still fills */

enum { PROC_OUT, PROC_ERR, PROC_NOUT };

/* One server stream. Lives from its first message to its last. */
struct sub {
    struct sub *next;
    struct proc *p;
    struct http_req *req;
    struct event *keepalive, *timeout;
    int64_t keepalive_ms, sent_mono;
    bool blocked; /* too much unsent: its process is not read meanwhile */
};

struct feed;

struct proc {
    struct proc *next;
    struct envd *e;
    pid_t pid;
    char *tag;         /* may be NULL */
    char *name;        /* of the command, without its folder */
    char *config_json; /* as List shows it */
    bool pty, exited, ended;
    bool stdin_open, stdin_closing;
    int fd_in;             /* pipe, or the pty's master; -1 closed */
    int fd_out[PROC_NOUT]; /* stdout or pty, stderr; -1 at end of file */
    struct event *ev_in, *ev_out[PROC_NOUT];
    struct buf inq; /* input not yet taken by the process */
    int status;     /* of waitpid, once exited */
    char *end_json; /* the end event, once ended */
    struct sub *subs;
    struct feed *feeds; /* StreamInput calls on it */
    size_t nblocked;
    struct event *timer;    /* drain after exit, then forget */
    struct event *deadline; /* Connect-Timeout-Ms of Start */
    int64_t deadline_mono;
};

/* What Start asks for, borrowed from the request. */
struct proc_spec {
    const char *cmd, *cwd, *user;
    const struct cJSON *args, *envs;
    bool pty, stdin_on;
    unsigned cols, rows;
};

/* envd_process.c: the process that a request names by pid or tag, running or, if
 * asked for, ended. NULL with the code and text of the answer. */
struct proc *proc_find(struct envd *e, const struct cJSON *in, bool ended_too,
                       enum connect_code *code, struct buf *why);

/* envd_process_input.c: `input` of SendInput and StreamInput. */
enum connect_code proc_input_apply(struct proc *p, const struct cJSON *input, struct buf *why);
/* Its queue of input is empty, or nobody reads it any more. */
void proc_feeds_go_on(struct proc *p);
/* It is being forgotten. */
void proc_feeds_drop(struct proc *p);

/* envd_process_spawn.c: fork and execute; fills pid and descriptors of p. 0 or a
 * negative errno. */
int proc_spawn(struct envd *e, struct proc *p, const struct proc_spec *spec);
int proc_resize(struct proc *p, unsigned cols, unsigned rows);

/* envd_process_io.c */
void proc_io_start(struct proc *p);
void proc_io_update(struct proc *p); /* read or not, by nblocked */
void proc_io_close(struct proc *p);  /* every descriptor and its event */
/* One last look at what is in the pipes, without waiting. */
void proc_io_final(struct proc *p);
/* Queue input; false when it would exceed ENVD_STDIN_MAX. */
bool proc_input(struct proc *p, const void *data, size_t len);
void proc_input_end(struct proc *p); /* close after what is queued */
/* All output is at its end (called by io when the last pipe closes). */
void proc_output_done(struct proc *p);

/* envd_process_stream.c */
struct sub *sub_open(struct proc *p, struct http_req *req);
/* Send one message (the JSON of it) to every stream of p, or to one. */
void sub_send_all(struct proc *p, const char *json, size_t len);
void sub_send(struct sub *s, const char *json, size_t len);
/* Last envelope, then the stream is over and `s` is gone. */
void sub_end(struct sub *s, enum connect_code code, const char *message);
void sub_timeout_after(struct sub *s, int64_t ms);

#endif
