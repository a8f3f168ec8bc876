/* Looking at templates, builds and system logs: answers as lines of JSON. */
#ifndef CCT_JOBS_LOOKS_PRIV_H
#define CCT_JOBS_LOOKS_PRIV_H

#include "core_priv.h"
#include <cct/jobs/build_watch.h>

struct looks {
    struct builds *builds;
    ARR(struct look *) v;
};
/* One request of the facade. */
struct look {
    struct jobs *j;
    enum cmd_type what;
    uint64_t req_id, row;
    struct e2b *client;   /* of the call */
    uint64_t call, timer;
    bool follow;
    char *word, *part;    /* template asked for; its build or tag, or NULL */
    /* templates found, and where we are among them */
    ARR(char *) ids;
    ARR(char *) names;
    size_t at;
    struct buf out;       /* lines not posted yet */
    /* a build */
    char *build_id;
    uint64_t viewer;
    bool ended;
    struct err end;
    /* the system log */
    char *sandbox_id;
    int64_t from_ms;      /* cursor: lines of this time were seen `seen` times */
    size_t seen;
    int64_t quiet_since;
    int attempt;
};
void look_flush(struct look *l);                       /* post what is in `out` */
void look_end(struct look *l, const struct err *e);    /* answers and frees */
/* core_looks_logs.c */
void look_logs(struct look *l);

/* core_looks_json.c: one object and LF each, appended */
void json_template(struct buf *b, const struct e2b_template *t);
void json_build(struct buf *b, const struct e2b_build *v, const char *template_id,
                const char *name);
void json_log(struct buf *b, const char *type, const struct e2b_log *l);
void json_state(struct buf *b, const struct build_state *s);

#endif
