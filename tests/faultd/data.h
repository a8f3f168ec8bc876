/* The data plane of a sandbox: what envd does there. */
#ifndef CCT_TESTS_FAULTD_DATA_H
#define CCT_TESTS_FAULTD_DATA_H

#include "exchange.h"
#include "jail.h"

struct proc;
struct data {
    struct plane *plane;
    struct box *box;
    struct jail *jail; /* made when the first real process or file is asked for */
    struct proc *procs;
    int next_fake; /* pids of built-in processes */
};

/* data.c */
bool data_route(struct exchange *x); /* false: it is for the control plane */
/* Which sandbox is meant; port 0: not said. */
bool data_addressed(const struct exchange *x, char *id, size_t size, int64_t *port);
struct jail *data_jail(struct data *d, char *why, size_t size);
void data_pause(struct box *b);
void data_resume(struct box *b);
void data_free(struct data *d); /* ends all processes and breaks all streams */

/* rpc.c: Connect's framing, answering side. Codes are Connect's ("not_found"). */
struct cJSON *rpc_message(const struct exchange *x, bool stream); /* NULL: none; json_free */
void rpc_answer(struct exchange *x, const char *json);
void rpc_error(struct exchange *x, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void rpc_open(struct exchange *x); /* a stream begins */
/* One message of the stream, with the faults of the rule. False: the peer lags. */
bool rpc_send(struct exchange *x, const char *json, size_t len);
void rpc_keepalive(struct exchange *x); /* no fault touches it */
void rpc_close(struct exchange *x, const char *code, const char *message); /* code NULL: well */
/* The same as rpc_error for a call that streams. */
void rpc_refuse(struct exchange *x, const char *code, const char *message);

/* data_proc.c */
void proc_route(struct data *d, struct exchange *x, const char *method);
void proc_exited(void *data, int pid, int status);
void proc_free_all(struct data *d);
void proc_cut_all(struct data *d); /* streams break off, processes live on */

/* data_files.c */
void files_route(struct data *d, struct exchange *x, const char *method);
/* Absolute, "~/..." or relative to the home -> absolute, without "//", "." and "..". */
char *files_path(const char *name);
int files_open(const struct data *d, const char *path, int flags); /* in the jail; errno */
void files_parents(const struct data *d, const char *path);        /* the missing folders */
/* data_rest.c */
void files_get(struct data *d, struct exchange *x);
void files_post(struct data *d, struct exchange *x);

#endif
