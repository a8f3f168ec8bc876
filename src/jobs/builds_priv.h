/* Builds of templates: a run is one that this process drives or follows.
 *
 *   core_builds.c    the rows, leases, picking up what another process left
 *   build_ops.c      commands
 *   build_run.c      from the recipe to the last line of the log
 *   build_files.c    archives: asked for, packed, sent
 *   build_work.c     reading, hashing and packing on a thread
 *   build_options.c  what was chosen beside the recipe, as it is stored */
#ifndef CCT_JOBS_BUILDS_PRIV_H
#define CCT_JOBS_BUILDS_PRIV_H

#include "core_priv.h"
#include <cct/jobs/build_watch.h>
#include <cct/model/tbuild.h>
#include <cct/recipe/files.h>
#include <pthread.h>

enum { BUILD_LEASE_MS = 6000, BUILD_LEASE_NAME = 40, BUILD_TAIL = 20, BUILD_UPLOADS = 3 /* archives at a time */ };

/* --- build_options.c ------------------------------------------------------------- */
/* {"tags":[],"cpu":2,"memory":1024,"noCache":true,"args":["NAME"]} */
struct build_options {
    char **tags;  /* end with NULL, or NULL */
    char **args;  /* names; their values are in the process that began the build, alone */
    int cpu_count, memory_mb;
    bool no_cache;
};
void build_options_parse(struct build_options *o, const char *json);
char *build_options_text(const struct cmd_build *c); /* new string; NULL: nothing was chosen */
void build_options_again(const struct build_options *o, struct cmd_build *c); /* but args */
/* ERR_INVALID: values are needed that are not in `args` (may be NULL). */
int build_options_check(const struct build_options *o, const struct kv *args, const char *name,
                        struct err *e);
/* What may be stored of a text of the build's: a new string, or NULL, as its values are not
 * known here. */
char *build_without_args(const struct build_options *o, const struct kv *args, const char *text);
void build_args_free(struct kv *args); /* wipes them */
void build_options_release(struct build_options *o);

/* --- build_work.c ---------------------------------------------------------------- */
/* What the thread reads and makes. While it runs nobody else touches it; its end comes as
 * CMD_BUILD_WORKED with its turn. */
struct build_work {
    struct jobs *j;     /* of the net thread */
    struct mq *mq;
    uint64_t turn;      /* no other start of any thread has it */
    pthread_t thread;
    bool running;
    bool stop;          /* atomic */
    size_t pack;        /* step to be packed; SIZE_MAX: read the recipe */
    char *where, *tool; /* in */
    struct kv *args;
    struct recipe recipe;
    struct recipe_files *files; /* one for each step */
    int archive;        /* a file without a name, -1 = none */
    uint64_t archive_len;
    struct err err;
};
struct build_work *build_work_new(struct jobs *j, const struct tbuild *row, const struct kv *args);
/* 0, or an error: there is no thread for it. */
int build_work_start(struct build_work *w, size_t step, struct err *e);
void build_work_join(struct build_work *w); /* it has said that it ends */
/* Nobody wants it any more: it is told to stop, and freed when it has. Waits for nothing. */
void build_work_leave(struct build_work *w);
void build_work_free(struct build_work *w); /* tells it to stop and waits: at the end of all */

/* --- build_run.c ----------------------------------------------------------------- */
struct build_run;
enum up_state { UP_ASK, UP_WAITS, UP_PACKS, UP_SENDS, UP_DONE };
struct upload {
    struct build_run *b;
    size_t step;
    char hash[65];
    enum up_state state;
    char *url;
    struct kv *headers;
    struct e2b *client;
    uint64_t call;
    int tries;
    int64_t bytes, sent; /* of the archive */
};
struct build_run {
    struct jobs *j;
    uint64_t id;            /* of the row */
    struct tbuild *row;     /* in the table */
    struct build_options options;
    struct kv *args;        /* may be NULL */
    struct build_work *work;
    ARR(struct upload *) uploads;
    struct e2b *client;     /* of the call */
    uint64_t call, viewer, timer, lease_timer, end_timer;
    bool following, over, may_be_started;
    int putting;            /* writes of the row under way */
    /* who waits for the end: lines of JSON, then EV_DONE */
    uint64_t req_id;
    bool to_the_end;        /* or till the service has begun */
    struct buf out;
    ARR(char *) tail;       /* last lines of the present step */
    struct err end;
};
void build_begin(struct build_run *b);  /* a new one, or one whose start was not told */
void build_follow(struct build_run *b);
void build_stop(struct build_run *b, const char *why); /* called off */
void build_fail(struct build_run *b, const struct err *e);
void build_worked(struct build_run *b); /* the thread has come to its end */
void build_note(struct build_run *b, const char *level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void build_flush(struct build_run *b);
void build_run_free(struct build_run *b); /* nothing comes after */

/* --- build_files.c --------------------------------------------------------------- */
void build_files_begin(struct build_run *b);
void build_files_packed(struct build_run *b);
void build_files_release(struct build_run *b);
void build_files_done(struct build_run *b); /* build_run.c: all are there */

/* --- core_builds.c --------------------------------------------------------------- */
struct tbuilds {
    ARR(struct tbuild *) rows; /* of all accounts, by id */
    ARR(struct build_run *) runs;
    ARR(struct build_op *) ops;
    ARR(struct build_work *) leaving; /* threads that nobody waits for */
    uint64_t turns;
    bool loaded;
    uint64_t tell_timer;
};
/* Something that was asked of the store or the service: a row, a lease, an end. */
struct build_op {
    struct jobs *j;
    uint64_t req_id;
    bool wait;
    uint64_t id;         /* of a row */
    char *name, *template_id;
    struct kv *args;     /* of a new build */
    struct cmd *c;       /* to be done when the rows are there */
    struct e2b *client;
    uint64_t call;
};
struct tbuilds *builds_all(struct jobs *j); /* made when there is none */
struct build_op *builds_op_new(struct jobs *j, uint64_t req_id);
void builds_op_free(struct build_op *op);
/* Of the account in use? */
bool builds_is_here(const struct jobs *j, const struct tbuild *b);
void builds_tell_soon(struct jobs *j);
struct tbuild *builds_row_of(struct tbuilds *t, uint64_t id);
struct build_run *builds_run_of(struct tbuilds *t, uint64_t id);
struct tbuild *builds_add_row(struct tbuilds *t, struct tbuild *take);
void builds_drop_row(struct tbuilds *t, size_t i);
void builds_lease_name(uint64_t id, char *dst);
void builds_free_run(struct build_run *b); /* nothing is told */
struct build_run *builds_add_run(struct jobs *j, struct tbuild *row);
/* The store's answer, ctx is the jobs: rows that nobody drives here are taken from it. */
void builds_take_rows(void *ctx, struct st_reply *r);
void builds_row_changed(struct build_run *b, bool store); /* tell, and store */
void builds_run_over(struct build_run *b);                /* frees it at the next turn */
void builds_started(struct build_run *b);                 /* the service has it */
struct builds *builds_watches(struct jobs *j);            /* core_looks.c */

#endif
