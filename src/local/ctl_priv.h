/* Shared by the handlers of the control API. ctl_api.c holds the table of routes
 * and finds the handler; a handler answers its request exactly once, at once or
 * later, with http_reply() or http_reply_error(). */
#ifndef CCT_LOCAL_CTL_PRIV_H
#define CCT_LOCAL_CTL_PRIV_H

#include <cct/local/ctl.h>
#include <cct/util/json.h>

#define CTL_PARTS_MAX 3

/* One request on its way through a route; valid during the handler's call. What
 * lives longer is `p`, `r` until it was answered, and `b` as provider.h says. */
struct ctl_call {
    struct provider *p;
    struct http_req *r;
    struct sbox *b;            /* of a path with {} */
    char *part[CTL_PARTS_MAX]; /* free parts of the path, unescaped, in order */
    const struct cJSON *body;  /* parsed object, or NULL when there was none */
    bool v2;                   /* of the newer generation */
};

/* Status and sentence of a failed operation, from its error code. */
void ctl_reply_err(struct http_req *r, const struct err *e);
/* JSON text in `out` as the answer; releases it. */
void ctl_reply_buf(struct http_req *r, int status, struct buf *out);
/* A member with an RFC 3339 time. */
void ctl_write_time(struct jw *w, const char *name, int64_t ms);
/* A whole number of seconds of the body; false after an answer of 400. */
bool ctl_take_seconds(const struct ctl_call *c, const char *name, int64_t def, int64_t min,
                      int64_t *out);
/* The same of the query string; `def` when it is not there. */
bool ctl_take_number(const struct ctl_call *c, const char *name, int64_t def, int64_t min,
                     int64_t max, int64_t *out);

/* Which of the words (NULL ends them) a parameter of the query is; *which stays as it
 * is when the parameter is absent or empty. False after an answer of 400. */
bool ctl_take_word(const struct ctl_call *c, const char *name, const char *const *words,
                   size_t *which);
extern const char *const ctl_levels[]; /* of logs, by rank; ends with NULL */

/* start and end of the query in unix seconds, end included; false after a 400. */
#define CTL_SECONDS_MAX 99999999999LL
struct ctl_span {
    int64_t start, end;
};
bool ctl_take_span(const struct ctl_call *c, int64_t start_def, struct ctl_span *out);
/* Seconds between two samples of a series that is this long. */
int64_t ctl_span_step(const struct ctl_span *s);

/* --- handlers ----------------------------------------------------------------- */
void ctl_sandbox_create(struct ctl_call *c);
void ctl_sandbox_list(struct ctl_call *c);
void ctl_sandbox_list_v1(struct ctl_call *c);
void ctl_sandbox_get(struct ctl_call *c);
void ctl_sandbox_delete(struct ctl_call *c);
void ctl_sandbox_pause(struct ctl_call *c);
void ctl_sandbox_resume(struct ctl_call *c);
void ctl_sandbox_connect(struct ctl_call *c);
void ctl_sandbox_timeout(struct ctl_call *c);
void ctl_sandbox_refreshes(struct ctl_call *c);
void ctl_sandbox_network(struct ctl_call *c);

void ctl_metrics_one(struct ctl_call *c);
void ctl_metrics_many(struct ctl_call *c);
void ctl_logs(struct ctl_call *c);
void ctl_events_all(struct ctl_call *c);
void ctl_events_one(struct ctl_call *c);
void ctl_team_metrics(struct ctl_call *c);
void ctl_team_max(struct ctl_call *c);

void ctl_tpl_list(struct ctl_call *c);
void ctl_tpl_get(struct ctl_call *c);
void ctl_tpl_alias(struct ctl_call *c);
void ctl_tpl_request(struct ctl_call *c);
void ctl_tpl_update(struct ctl_call *c);
void ctl_tpl_delete(struct ctl_call *c);
void ctl_tpl_tag(struct ctl_call *c);
void ctl_tpl_untag(struct ctl_call *c);
void ctl_tpl_tags(struct ctl_call *c);
void ctl_tpl_old(struct ctl_call *c);
void ctl_tpl_files(struct ctl_call *c);
void ctl_tpl_start(struct ctl_call *c);
void ctl_tpl_status(struct ctl_call *c);
void ctl_tpl_logs(struct ctl_call *c);
/* The template of the first free part; NULL after an answer. */
struct tpl *ctl_tpl_take(struct ctl_call *c);
/* With the head of a request: takes an upload, whose path is its permission, or
 * refuses it. False: it is none. */
bool ctl_tpl_upload(struct provider *p, struct http_req *r);

#endif
