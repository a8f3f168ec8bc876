/* Work that the main thread must not wait for: programs that are run, files that are written,
 * on one thread of their own (it is started by the first errand). One owner posts and takes
 * answers; each errand is answered once. A program gets its arguments as they stand, foreign
 * text only on its standard input or in its environment: no shell sees it. */
#ifndef CCT_UTIL_ERRAND_H
#define CCT_UTIL_ERRAND_H

#include <cct/util/buf.h>
#include <cct/util/err.h>
#include <cct/util/mq.h>
#include <stdbool.h>
#include <stdint.h>

enum errand_kind {
    ERRAND_RUN,   /* a program in a session of its own, without our terminal */
    ERRAND_WRITE, /* `input` becomes the private file `path` */
    ERRAND_SHOW,  /* a program that has our terminal */
    ERRAND_EDIT   /* `input` to the new private file `path`, then a program that has our terminal and
                     the path as its last argument; what it left there is the answer's output,
                     and the file goes */
};
struct errand {
    struct msg m;
    uint64_t id;        /* of the owner's choice, comes back */
    enum errand_kind kind;
    char **argv;        /* ends with NULL; looked for in PATH */
    char **env;         /* "K=V" besides our own, ends with NULL; or NULL */
    struct buf input;   /* RUN: its standard input */
    char *path;
    int timeout_ms;     /* RUN: then its process group is ended; 0 = none */
};
struct errand_done {
    struct msg m;
    uint64_t id;
    struct err err;     /* it could not be done or was not done in time: a sentence */
    int status;         /* exit status, 128 + n for a signal, -1 when it never ran */
    struct buf output;  /* RUN: begin of stdout and stderr, as it came; EDIT: the text */
};
struct errand *errand_new(enum errand_kind kind, uint64_t id);
/* argv from a list of words, one from a command line for /bin/sh, or the words of a user's
 * variable such as EDITOR (cut at blanks, quotes count). */
void errand_argv(struct errand *e, const char *const words[]);
void errand_shell(struct errand *e, const char *command);
bool errand_words(struct errand *e, const char *command); /* false: an open quote, or nothing */
void errand_setenv(struct errand *e, const char *name, const char *value);

struct errands;
struct errands *errands_new(void); /* no thread yet */
void errands_post(struct errands *x, struct errand *take);
int errands_fd(const struct errands *x); /* readable when an answer waits */
struct errand_done *errands_take(struct errands *x); /* the next answer or NULL; msg_free() it */
/* What still runs gets half a second, then its process groups are ended. A thread that is held by
 * a disk is left behind with what it holds. */
void errands_free(struct errands *x);

#endif
