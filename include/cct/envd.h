/* The data plane of one sandbox: processes, streams, files.
 * Net thread only. */
#ifndef CCT_ENVD_H
#define CCT_ENVD_H

#include <cct/model/sandbox.h>
#include <cct/net.h>
#include <cct/util/err.h>

/* Where a sandbox's envd is; copied by the calls that need it longer. */
struct envd_target {
    const char *base_url;   /* E2B_SANDBOX_URL or https://49983-<id>.<domain> */
    const char *sandbox_id;
    const struct secret *token; /* may be NULL */
    int keepalive_s;        /* sign of life asked of streams; 0 = 15. It scales how long
                               anything is waited for: a stream is dead after 2.5 x, a
                               read after 3 x without a byte, a call after 4 x */
};
struct envd; /* client for one sandbox */
struct envd *envd_new(struct net *n, const struct envd_target *t); /* copies */
void envd_free(struct envd *c); /* cancels everything; no callback comes after */

struct envd_result {
    struct err err;  /* ERR_NOTFOUND also for Connect's not_found; ERR_CONFLICT for
                        already_exists; 502 is ERR_NETWORK with sys 502: ask the
                        control plane before calling the sandbox dead */
    int status;
    const char *body; /* read: the bytes; others: JSON text */
    size_t len;
    uint64_t total;   /* read: whole size of the file when the answer told it */
    bool sent;        /* the request may have arrived, whatever became of its answer */
};
typedef void (*envd_fn)(void *ctx, const struct envd_result *r);

struct envd_proc_spec {
    const char *cmd;
    const char *const *args; /* ends with NULL */
    const struct kv *env;    /* ends with k NULL, or NULL */
    const char *cwd;         /* or NULL */
    const char *user;        /* Basic user, or NULL = default */
    bool stdin_open;
    int pty_cols, pty_rows;  /* 0 = no pty */
    int timeout_ms;          /* Connect-Timeout-Ms: KILLS the process; 0 = none */
    int keepalive_s;         /* Keepalive-Ping-Interval, 0 = the target's */
};
enum envd_stream { ENVD_STDOUT, ENVD_STDERR, ENVD_PTY };
struct envd_end {
    struct err err;   /* code 0: the process ended; ERR_TIMEOUT: deadline_exceeded;
                         ERR_NETWORK: the stream broke (the process may live on) */
    bool silent;      /* not a byte came for the limit */
    bool ended;       /* an end event came */
    bool exited;      /* it exited by itself; else a signal */
    int exit_code;
    const char *status;
};
struct envd_proc_cb {
    void (*on_start)(void *ctx, int pid);
    /* false: stop reading now (the stream is closed, on_end comes not). */
    bool (*on_data)(void *ctx, enum envd_stream s, const char *data, size_t len);
    void (*on_end)(void *ctx, const struct envd_end *end); /* once, last */
    void *ctx;
};
/* Both return a stream id for envd_close. */
uint64_t envd_start(struct envd *c, const struct envd_proc_spec *s, const struct envd_proc_cb *cb);
uint64_t envd_connect(struct envd *c, int pid, int keepalive_s, const struct envd_proc_cb *cb);
void envd_close(struct envd *c, uint64_t stream); /* the process lives on; no callback */
/* Stop reading a stream, and go on: what the process puts out waits there, then the process. */
void envd_pause(struct envd *c, uint64_t stream, bool pause);

uint64_t envd_send_input(struct envd *c, int pid, const char *data, size_t len, envd_fn fn,
                         void *ctx);
/* The same for a process on a pty. */
uint64_t envd_send_pty(struct envd *c, int pid, const char *data, size_t len, envd_fn fn,
                       void *ctx);
/* No more input: a process on a pty wants the byte 4 instead. */
uint64_t envd_close_stdin(struct envd *c, int pid, envd_fn fn, void *ctx);
uint64_t envd_resize(struct envd *c, int pid, int cols, int rows, envd_fn fn, void *ctx);
uint64_t envd_signal(struct envd *c, int pid, bool kill, envd_fn fn, void *ctx);
uint64_t envd_list(struct envd *c, envd_fn fn, void *ctx); /* body: the JSON */
uint64_t envd_health(struct envd *c, envd_fn fn, void *ctx);
/* GET /files with Range from `from` (max bytes, 0 = to the end). 416 gives len 0. */
uint64_t envd_read(struct envd *c, const char *path, uint64_t from, uint64_t max, envd_fn fn,
                   void *ctx);
uint64_t envd_write(struct envd *c, const char *path, const void *data, size_t len, envd_fn fn,
                    void *ctx);
/* The same from a source that is asked for the bytes as they go; never sent twice. */
uint64_t envd_upload(struct envd *c, const char *path, uint64_t len,
                     size_t (*read_body)(void *ctx, char *dst, size_t room), envd_fn fn, void *ctx);
/* body: {"entry":EntryInfo}, {"entries":[EntryInfo]}, {"entry":...}, {}; see cct/model/files.h.
 * A folder is removed with all that is in it; what is not there is removed already. */
uint64_t envd_stat(struct envd *c, const char *path, envd_fn fn, void *ctx);
uint64_t envd_list_dir(struct envd *c, const char *path, envd_fn fn, void *ctx);
uint64_t envd_make_dir(struct envd *c, const char *path, envd_fn fn, void *ctx);
uint64_t envd_remove(struct envd *c, const char *path, envd_fn fn, void *ctx);
uint64_t envd_move(struct envd *c, const char *from, const char *to, envd_fn fn, void *ctx);
/* Run a short command to its end, output collected (bounded to 1 MiB). */
struct envd_run_result {
    struct err err;
    int exit_code;
    const char *out, *errout;
    size_t out_len, err_len;
};
uint64_t envd_run(struct envd *c, const struct envd_proc_spec *s,
                  void (*fn)(void *ctx, const struct envd_run_result *r), void *ctx);
void envd_cancel(struct envd *c, uint64_t id);

#endif
