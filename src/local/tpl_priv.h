/* One build under way. tpl_build.c has the order of things, tpl_exec.c the sandbox
 * that a step runs in and its output, tpl_final.c the start and ready command. A job
 * goes on from its own timer only, never from inside somebody's callback, so it may
 * end at any point. */
#ifndef CCT_LOCAL_TPL_PRIV_H
#define CCT_LOCAL_TPL_PRIV_H

#include <cct/local/initexec.h>
#include <cct/local/tpl.h>

#define TPL_QUIET_S 5 /* without output the log says that something still goes on */

struct event;
struct tpl_ticket;

struct tpl_job {
    struct tpl_store *s;
    struct tpl *t;
    struct tpl_build *b;
    struct tpl_plan plan;
    struct tpl_ctx ctx;
    bool running;     /* has its turn */
    bool force;       /* from here on nothing comes from the cache */
    size_t at;        /* step under way */
    char step[12];    /* its name in the log */
    char prefix[40];  /* "[builder 1/3]" */
    int64_t begun_ms; /* monotonic */
    struct event *kick;
    void (*next)(struct tpl_job *j);

    char layer[TPL_LAYER_LEN + 1]; /* being written, or "" */
    char key[TPL_KEY_LEN + 1];
    struct tpl_copy copy;       /* of COPY's archive into it */
    char box[24];               /* the sandbox, or "" */
    struct tpl_ticket *ticket;  /* its start or end is awaited */
    struct initexec *x, *probe; /* the command; the ready command */
    struct buf line[2];         /* output without its end yet */
    struct event *quiet;
    bool start_ended;
    int start_code;
    int64_t ready_until; /* monotonic */
    char last_line[400]; /* of the error output, for the reason */
};

/* Go on with fn from the loop, in ms. */
void tpl_job_next(struct tpl_job *j, void (*fn)(struct tpl_job *j), int ms);
/* The build failed; the job is gone afterwards. */
void tpl_job_fail(struct tpl_job *j, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void tpl_job_done(struct tpl_job *j);
struct tpl_log *tpl_job_log(struct tpl_job *j);
/* The line that opens a phase. */
void tpl_job_head(struct tpl_job *j, bool cached, const char *text, const char *key);

/* --- tpl_exec.c ---------------------------------------------------------------- */
/* Start a sandbox on the layers so far, all writes to `layer` unless NULL; then go on
 * with fn. Fails the build when it cannot. */
void tpl_box_start(struct tpl_job *j, const char *layer, void (*fn)(struct tpl_job *j));
/* End it and go on with fn when it is gone. */
void tpl_box_end(struct tpl_job *j, void (*fn)(struct tpl_job *j));
/* Run a command in it; its output goes to the log. False: the sandbox is gone. */
bool tpl_box_run(struct tpl_job *j, const struct initexec_spec *s, struct initexec **x,
                 initexec_end end);
void tpl_box_flush(struct tpl_job *j); /* output without a line's end */
/* Let go of everything, without waiting. */
void tpl_box_drop(struct tpl_job *j);

/* --- tpl_final.c --------------------------------------------------------------- */
void tpl_final(struct tpl_job *j);

#endif
