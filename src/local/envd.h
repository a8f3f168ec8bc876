/* The sandbox's init from the inside: one event loop, one thread, one struct.
 * Shared by init*.c (start, routes, control) and envd_*.c (processes, files). */
#ifndef LOCAL_ENVD_H
#define LOCAL_ENVD_H

#include <cct/local/connect_json.h>
#include <cct/local/fs_root.h>
#include <cct/local/http_srv.h>
#include <cct/util/json.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define ENVD_BODY_MAX (8u << 20)    /* of one message in memory: input of 4 MiB as base64 */
#define ENVD_UPLOAD_MAX (8ll << 30) /* one body or file; a full disk comes first */
#define ENVD_CONNS_MAX 8192u        /* connections to one sandbox */
#define ENVD_UNSENT_MAX (1u << 20)  /* waiting for one reader: stop producing */
#define ENVD_PIPE_CHUNK (32u << 10) /* most of one stdout or stderr event */
#define ENVD_PTY_CHUNK (16u << 10)  /* most of one pty event */
#define ENVD_STDIN_MAX (4u << 20)   /* input waiting for one process */
#define ENVD_STREAM_TYPE "application/connect+json"
#define ENVD_PATH "/run/cc/bin:/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin"

struct proc;
struct watcher;
struct job;
struct cJSON;
struct disk;
struct samples;

struct envd {
    struct event_base *base;
    struct http_srv *http;
    char *sandbox_id, *token, *user, *home, *workdir;
    struct cJSON *config; /* owner of env */
    const struct cJSON *env;
    bool isolated;
    struct fs_root files;     /* what file calls may reach */
    struct watcher *watchers; /* newest first */
    size_t nwatchers;
    struct job *jobs;
    int log_fd;                   /* -1: no log */
    int cgroup_fd;                /* group of the processes; -1: none */
    bool ungrouped;               /* some may be outside of it */
    bool stopped;                 /* by signals */
    int64_t cpu_limit, mem_limit; /* CPUs, bytes; 0: none */
    int64_t started_ms;           /* wall */
    int64_t deadline_ms;          /* CLOCK_BOOTTIME; 0 = none */
    uint64_t upload_max;          /* bytes of one uploaded body or file */
    int64_t paused_mono;          /* 0 = running */
    struct event *dead_man;
    struct proc *procs;      /* newest first */
    struct samples *samples; /* init_samples.c */
    struct disk *disk;       /* init_disk.c */
};

/* init_http.c: answers. Each ends the request. */
void envd_reply_json(struct http_req *req, int status, struct buf *body);
void envd_reply_empty(struct http_req *req, int status);
/* {"code":status,"message":...}: the form of the REST part and of the 401. */
void envd_reply_error(struct http_req *req, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void envd_rpc_error(struct http_req *req, enum connect_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* A server stream that fails before its first message. */
void envd_stream_error(struct http_req *req, enum connect_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
const char *envd_header(struct http_req *req, const char *name);
/* Decoded query parameter as new memory; NULL when absent. *bad is set for a
 * NUL byte inside it. */
char *envd_query(struct http_req *req, const char *name, bool *bad);
/* The same as a whole number from 0 on; `def` when it is absent or none. */
int64_t envd_query_number(struct http_req *req, const char *name, int64_t def);
/* The user a request is for: query `username`, else Basic auth, else the
 * sandbox's own. False when nobody here has that name. */
bool envd_user(struct envd *e, struct http_req *req, char *dst, size_t size);
bool envd_user_known(const struct envd *e, const char *name);
/* Before a body is read: is there something at that path, and may this client use
 * it? Answers if not. */
void envd_admit(struct http_req *req, void *envd);
/* The request is whole: run what it asks for. */
void envd_route(struct http_req *req, void *envd);
/* A line for the provider's log, when there is one. */
void envd_log(struct envd *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* init_tree.c: every process below the init. Signals all of them; with
 * namespaces that is kill(-1), without a walk of /proc. */
void envd_tree_signal(struct envd *e, int sig);
/* Sum of CPU ticks and bytes of memory of the tree (the init not counted). Memory
 * that several share is counted in parts, unless there are many processes or the
 * kernel does not tell: then it counts for each. */
void envd_tree_usage(struct envd *e, int64_t *ticks, int64_t *mem);
/* Is this process the init or below it? */
bool envd_tree_has(const struct envd *e, pid_t pid);

/* init_port.c: POST /cc/port. */
void envd_port(struct envd *e, struct http_req *req);

/* init_metrics.c */
void envd_metrics(struct envd *e, struct http_req *req);

/* init_samples.c: the ring that GET /cc/metrics reads */
void envd_samples_start(struct envd *e);
void envd_samples_stop(struct envd *e);
void envd_samples_get(struct envd *e, struct http_req *req);
void envd_samples_take(struct envd *e, struct http_req *req);

/* envd_process*.c: `in` is the parsed message; handlers answer the request.
 * timeout_ms < 0 means none. */
void envd_process_rpc(struct envd *e, struct http_req *req, const char *method,
                      const struct cJSON *in);
void envd_process_start(struct envd *e, struct http_req *req, const struct cJSON *in,
                        int64_t timeout_ms);
void envd_process_connect(struct envd *e, struct http_req *req, const struct cJSON *in,
                          int64_t timeout_ms);
/* When the head is there: takes the body, whose messages count as they arrive. */
void envd_process_stream_input(struct envd *e, struct http_req *req);
/* A child was reaped. */
void envd_process_reaped(struct envd *e, pid_t pid, int status);
/* Time-outs do not run while paused: call with the length of the pause. */
void envd_process_shift(struct envd *e, int64_t pause_ms);
void envd_process_free_all(struct envd *e);

/* envd_fs*.c */
void envd_fs_rpc(struct envd *e, struct http_req *req, const char *method,
                 const struct cJSON *in);
/* Absolute form of a request's path: absolute as it is, "~/x" and "x" below the
 * user's home. `.` and `..` are resolved by name. NULL for an empty one, and for
 * another user's "~name". */
char *envd_fs_path_of(const struct envd *e, const char *user, const char *path);
const char *envd_home_of(const struct envd *e, const char *user);
/* One EntryInfo as a JSON object; 0 or -1 with errno. */
int envd_fs_entry(struct envd *e, struct jw *w, const char *name, const char *path);
/* How a failed file call is told: RPC code, and HTTP status of /files. For what only
 * looks at a file, one out of bounds is not there: give envd_fs_looked(errno). */
int envd_fs_looked(int err);
enum connect_code envd_fs_code(int err);
int envd_fs_status(int err);
const char *envd_fs_reason(int err);

/* envd_watch.c */
void envd_watch_dir(struct envd *e, struct http_req *req, const struct cJSON *in,
                    int64_t timeout_ms);
void envd_watch_rpc(struct envd *e, struct http_req *req, const char *user, const char *method,
                    const struct cJSON *in);
void envd_watch_free_all(struct envd *e);

/* envd_files*.c */
void envd_files_get(struct envd *e, struct http_req *req);
/* When the head is there: takes the body. */
void envd_files_post(struct envd *e, struct http_req *req);
/* POST /files/compose: joins files. */
void envd_files_compose(struct envd *e, struct http_req *req);
/* True when the query carries a signature that allows `op` on `path`. */
bool envd_files_signed(struct envd *e, struct http_req *req, const char *op);

#endif
