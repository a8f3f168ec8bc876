/* What the files of the control plane share. */
#ifndef CCT_TESTS_FAULTD_PLANE_H
#define CCT_TESTS_FAULTD_PLANE_H

#include "data.h"

void plane_id(struct plane *p, char *dst, int n); /* n random characters and a NUL */
void plane_answer(struct answer *a, int status, struct jw *w); /* JSON begins at *w */
/* An error in E2B's shape. */
void plane_refuse(struct plane *p, struct answer *a, int status, const char *message);
void plane_time(struct jw *w, const char *name, int64_t ms);
int64_t plane_count(const struct plane *p, bool running);
/* A number of the query within [min, max], def when absent; false after a 400. */
bool plane_number(struct plane *p, const struct request *r, struct answer *a, const char *name,
                  int64_t def, int64_t min, int64_t max, int64_t *out);

/* plane_box.c: sandboxes one by one */
struct box *box_new(struct plane *p, const char *template_id, int64_t timeout_s);
void box_free(struct box *b);
void box_create(struct plane *p, const struct request *r, struct answer *a, bool v2);
/* rest: what follows "/sandboxes/" */
void box_route(struct plane *p, const char *rest, const struct request *r, struct answer *a,
               bool v2);
/* plane_list.c */
void list_pages(struct plane *p, const struct request *r, struct answer *a);
void list_old(struct plane *p, const struct request *r, struct answer *a);
void list_put(struct plane *p, struct jw *w, const char *name, const struct box *b,
              bool detail);
/* plane_watch.c: metrics, logs, events */
void watch_many(struct plane *p, const struct request *r, struct answer *a);
void watch_metrics(struct plane *p, const struct box *b, const struct request *r,
                   struct answer *a);
void watch_logs(struct plane *p, const struct box *b, const struct request *r, struct answer *a,
                bool v2);
void watch_events(struct plane *p, const char *id, const struct request *r, struct answer *a);
void watch_team(struct plane *p, const char *rest, const struct request *r, struct answer *a);
/* plane_tpl.c: false when the path is none of its own */
bool tpl_route(struct plane *p, const struct request *r, struct answer *a);
void tpl_uploaded(struct plane *p, const char *hash, const struct request *r, struct answer *a);
void tpl_fill(struct plane *p, int64_t n); /* templates that are ready */

/* plane_build.c: builds go their way by the clock, as the configuration says */
struct entry_line {
    int64_t at_ms;
    char *text, step[16];
    bool bad;
};
struct build {
    char id[40];
    int64_t created_ms, started_ms; /* started 0: waiting for its steps */
    ARR(struct entry_line) lines;
    int64_t done_ms; /* when it is ready, or failed */
    bool fails;
};
struct tag {
    char *name, build[40];
    int64_t created_ms;
};
struct tpl {
    char id[24];
    ARR(char *) names;
    ARR(struct build) builds;
    ARR(struct tag) tags;
    bool public;
    int64_t created_ms, updated_ms;
};
struct build *build_new(struct tpl *t);
const char *build_status(const struct build *b);
void build_ready(struct build *b); /* at once */
void build_release(struct build *b);
/* "{build}", "{build}/status", "{build}/logs" */
void build_route(struct plane *p, struct tpl *t, const char *rest, const struct request *r,
                 struct answer *a);

/* rules.c */
bool rule_add(struct plane *p, const struct cJSON *j, char *why, size_t size);
void rule_release(struct rule *r);
struct rule *rule_pick(struct exchange *x); /* the first that matches and is due, or NULL */
/* A copy for later: a configuration that comes in between may end the rule itself. */
struct rule *rule_keep(const struct rule *u);
void rule_break_transport(const struct rule *u, struct exchange *x); /* before the call */
void rule_break_answer(const struct rule *u, struct exchange *x);    /* after it */
void rule_stir(struct plane *p, const struct rule *u,
               const struct request *r); /* and besides */

#endif
