/* One build of a template that cc-tui began: a row of `templateBuilds`. */
#ifndef CCT_MODEL_TBUILD_H
#define CCT_MODEL_TBUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tb_state {
    TB_PREPARING, /* the recipe and its files are being read */
    TB_UPLOADING,
    TB_WAITING,   /* the service has it and has not begun */
    TB_BUILDING,
    TB_READY,
    TB_ERROR,
    TB_CANCELLED, /* not followed any more; what the service does with it stands in error */
    TB_STATE_COUNT
};
const char *tb_state_name(enum tb_state s); /* as stored and shown: "building" */
int tb_state_parse(const char *name);       /* or -1 */
/* What to show of a build of which the row says one word, the service another: what ended here
 * before it began there waits there for ever. Either may be NULL. Borrowed. */
const char *tb_state_word(const char *ours, const char *service);

struct tbuild {
    uint64_t id;
    enum tb_state state;
    char *name;             /* of the template, with the tag when one was given */
    char *tool, *version;   /* what it was made for; may be NULL */
    char *recipe;           /* path; NULL: the tool's own */
    char *options;          /* JSON, see jobs/build_options.c; or NULL */
    char *template_id, *build_id; /* NULL until the service gave them */
    char *project, *account;
    char *phase;            /* "step 3 of 10", "uploading", ...; or NULL */
    char *title;            /* what that phase is: "RUN npm i"; or NULL */
    char *error;
    char *tail;             /* last lines of the step that failed, one a line; or NULL */
    int64_t started_at, ended_at; /* wall ms; 0: not yet */
    int step, steps;        /* 0: none */
    bool cached;            /* the present step is from the cache */
    /* not stored */
    int64_t sent, total;    /* bytes of the archives */
    int files, files_done;  /* COPYs whose files are asked for */
};
void tbuild_release(struct tbuild *b);
void tbuild_copy(struct tbuild *dst, const struct tbuild *src);
static inline bool tb_is_over(enum tb_state s)
{
    return s >= TB_READY;
}
/* "uploading 1.2 of 3.4 MiB", "step 3 of 10  RUN npm i", its error; "" for nothing. */
void tbuild_text(const struct tbuild *b, char *dst, size_t size);

/* Of a line of a build's log, "[builder 3/10] [stdout]: text", the text; borrowed. */
const char *tbuild_output(const char *message);

#endif
