/* The control-plane client's insides, shared by the files of src/e2b. */
#ifndef CCT_E2B_PRIV_H
#define CCT_E2B_PRIV_H

#include <cct/e2b/build.h>
#include <cct/util/arr.h>
#include <cct/util/json.h>
#include <cct/util/map.h>

enum call_kind {
    CALL_LIST, CALL_GET, CALL_CREATE, CALL_KILL, CALL_TIMEOUT, CALL_REFRESH, CALL_PAUSE,
    CALL_CONNECT, CALL_WARM, CALL_METRICS, CALL_METRIC_RANGE, CALL_LOGS, CALL_EVENTS, CALL_TEAM,
    CALL_TEAM_MAX, CALL_TEMPLATES, CALL_TEMPLATE, CALL_ALIAS, CALL_TEMPLATE_DELETE, CALL_TAGS,
    CALL_TAG_ADD, CALL_TAG_DELETE, CALL_BUILD_NEW, CALL_FILE, CALL_UPLOAD, CALL_BUILD_START,
    CALL_BUILD_STATUS, CALL_BUILD_LOGS, CALL_COUNT
};
/* Calls that services of different age answer at different addresses. */
enum route { ROUTE_LIST, ROUTE_CONNECT, ROUTE_LOGS, ROUTE_TEMPLATES, ROUTE_COUNT };
enum { ROUTES_MAX = 3, ROWS_MAX = 100000, METRICS_PER_CALL = 100 };

struct e2b {
    struct net *net;
    struct e2b_account account;
    struct map *calls; /* id -> struct e2b_call */
    uint64_t next_id;
    size_t warmed;     /* connections opened ahead ... */
    int64_t warm_until; /* ... and taken as open until then; mono */
    struct {
        int at;        /* which address worked last */
        int64_t until; /* mono: it is asked first so long */
    } routes[ROUTE_COUNT];
};

struct log_list {
    struct e2b_log *v;
    size_t n, cap;
};
/* What the answers gave so far. */
struct got {
    ARR(struct e2b_sandbox) sandboxes;
    ARR(struct e2b_metric) metrics;
    struct log_list logs, reason;
    ARR(struct e2b_event) events;
    ARR(struct e2b_team_metric) team;
    ARR(struct e2b_template) templates;
    ARR(struct e2b_build) builds;
    ARR(struct e2b_tag) tags;
    struct e2b_file file;
};

/* One call: one or more requests, one answer. */
struct e2b_call {
    struct e2b *e2b;
    uint64_t id;
    enum call_kind kind;
    const char *method;
    char *subject;     /* what it is about: sandbox or template id */
    /* where: the addresses to try, with query, each begins with '/' */
    char *routes[ROUTES_MAX];
    int n_routes, at, tried;
    enum route family;
    char *path;        /* of the request under way: a route, and the page's cursor */
    char *url;         /* upload: the whole address; no key goes there */
    struct buf body;   /* JSON; moved into the request, so it goes out once */
    size_t (*read_body)(void *call, char *dst, size_t room); /* or from a file, */
    int fd;            /* ours, -1 = none, */
    uint64_t fd_at, fd_len; /* so far, and of all */
    bool keep_body;    /* or copied: another route may need it too; nothing secret */
    bool urgent;
    int64_t deadline;  /* mono; 0 = one try */
    int try_ms;        /* of each try; 0 = up to the deadline */
    bool warm;         /* list: open connections for as many deletes */
    bool resent;       /* an earlier try may have arrived */
    int total_ms;      /* 0 = a minute */
    int attempt;
    uint64_t request, timer;
    struct err refusal; /* answered with it, nothing is sent */
    e2b_fn fn;
    void *ctx;
    struct got got;
    char trace[64];
    /* pages */
    struct map *ids;   /* rows had already */
    char *token;       /* cursor of the page under way */
    int pages;
    size_t bytes; /* of them, so far */
    int64_t total_running;
    /* the list's conditions that the old route does not know */
    char *want_template;
    int64_t want_after;
    /* metrics: the ids, and the next one to ask for */
    ARR(char *) names;
    size_t next_name;
};

/* client.c */
struct e2b_call *call_new(struct e2b *c, enum call_kind kind, const char *method, const char *id,
                          e2b_fn fn, void *ctx);
void call_options(struct e2b_call *k, const struct e2b_call_opts *o);
/* One more address for it, taken; without a family there is one. */
void call_route(struct e2b_call *k, char *take_path);
uint64_t call_start(struct e2b_call *k); /* its id */
void call_send(struct e2b_call *k);      /* again, with the same or a new path */
/* It ends with k->refusal, soon and without a request; its id. */
uint64_t call_refuse(struct e2b_call *k);
/* Ends the call: hands out `r` and frees. The client may be gone afterwards. */
void call_finish(struct e2b_call *k, struct e2b_result *r);
/* head part mid part2 tail: the parts are encoded, the rest goes in as it is; all but head
 * and part may be NULL. New string. */
char *call_path(const char *head, const char *part, const char *mid, const char *part2,
                const char *tail);

/* answer.c: an HTTP answer to a result; true when the call goes on (next page) */
bool answer_take(struct e2b_call *k, const struct net_result *n, struct e2b_result *r);
void answer_error(const struct e2b_call *k, const struct net_result *n, struct err *e);
bool answer_is_old_list(const struct e2b_call *k); /* the route with running ones only */

/* What a good answer gives: 0, TAKE_MORE (k->path is set: ask on), or ERR_PROTO. */
enum { TAKE_MORE = 1 };
int take_list(struct e2b_call *k, const struct cJSON *j);
int take_one(struct e2b_call *k, const struct cJSON *j);
int take_metrics(struct e2b_call *k, const struct cJSON *j);
int take_metric_range(struct e2b_call *k, const struct cJSON *j);
int take_logs(struct e2b_call *k, const struct cJSON *j);
int take_events(struct e2b_call *k, const struct cJSON *j);
int take_team(struct e2b_call *k, const struct cJSON *j);
int take_templates(struct e2b_call *k, const struct cJSON *j);
int take_template(struct e2b_call *k, const struct cJSON *j);
int take_alias(struct e2b_call *k, const struct cJSON *j);
int take_tags(struct e2b_call *k, const struct cJSON *j);
int take_tag_added(struct e2b_call *k, const struct cJSON *j);
int take_build_new(struct e2b_call *k, const struct cJSON *j);
int take_file(struct e2b_call *k, const struct cJSON *j);
int take_build_status(struct e2b_call *k, const struct cJSON *j);

/* parse.c */
bool sandbox_parse(const struct cJSON *j, struct e2b_sandbox *out);
void e2b_sandbox_clear(struct e2b_sandbox *s);
char *parse_str(const struct cJSON *j, const char *name);
/* A string as it is; any other value but null as its JSON text; else NULL. */
char *parse_text(const struct cJSON *item);
int parse_int(const struct cJSON *j, const char *name, int def); /* not negative */
int64_t parse_i64(const struct cJSON *j, const char *name, int64_t def); /* not negative */
/* RFC 3339, or a number since 1970 in seconds up to nanoseconds, in digits too; nonsense
 * and what lies before 1970 give 0. */
int64_t parse_time(const struct cJSON *j, const char *name);
char **parse_strings(const struct cJSON *j, const char *name); /* str_list_free(); or NULL */
struct kv *parse_kv(const struct cJSON *j); /* of an object; or NULL */

/* look.c */
int parse_logs(const struct cJSON *array, struct log_list *logs); /* 0 or ERR_PROTO */
/* builds_parse.c */
void got_release(struct got *g);

#endif
