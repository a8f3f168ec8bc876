/* E2B's control plane: requests out, typed answers in. Net
 * thread only. Strings in answers are foreign and not cleaned; what is missing, null or
 * of another type is NULL, 0 or what the member says. Here: accounts and sandboxes;
 * cct/e2b/look.h: metrics, logs, events; cct/e2b/build.h: templates and builds. */
#ifndef CCT_E2B_H
#define CCT_E2B_H

#include <cct/model/sandbox.h>
#include <cct/net.h>
#include <cct/util/err.h>

/* Where calls go and what proves who we are. */
struct e2b_account {
    char *api_url;      /* no trailing slash */
    char *sandbox_url;  /* NULL: see e2b_sandbox_url() */
    char *domain;       /* "e2b.app" */
    struct secret *key;
    char *source;       /* "environment", "E2B CLI config", "local provider", ... */
    char mask[16];      /* "****abcd" */
    bool local, unsafe;
};
void e2b_account_release(struct e2b_account *a);
/* https, or http only to loopback; 0 or ERR_INVALID with a sentence. */
int e2b_account_check(const struct e2b_account *a, struct err *e);

/* Data-plane address of a sandbox (no trailing slash): the account's sandbox_url,
 * else https://sandbox.<domain> on E2B's own domains, else https://49983-<id>.<domain>.
 * `domain` is what the API answered, or NULL; one that is neither the account's,
 * below it, nor (for an account on E2B) E2B's own is refused, so that no answer can
 * send a token elsewhere. New string; NULL with *e set. */
char *e2b_sandbox_url(const struct e2b_account *a, const char *sandbox_id, const char *domain,
                      struct err *e);

struct e2b; /* client bound to one account */
struct e2b *e2b_new(struct net *n, const struct e2b_account *a); /* copies */
void e2b_free(struct e2b *c);       /* cancels what runs; no callback comes after */
const struct e2b_account *e2b_account_of(const struct e2b *c);

struct e2b_sandbox {
    char *sandbox_id, *template_id, *alias, *domain, *envd_version;
    char *state;        /* as sent; "" when missing, JSON text when no string */
    struct secret *token; /* envdAccessToken or NULL */
    int64_t started_at, end_at;
    int cpu_count, memory_mb, disk_mb;
    struct kv *meta;    /* ends with k NULL, or NULL */
    bool not_isolated;  /* local provider says isolated:false */
};
struct e2b_metric;
struct e2b_log;
struct e2b_event;
struct e2b_team_metric;
struct e2b_template;
struct e2b_build;
struct e2b_tag;
struct e2b_file;
struct e2b_result {
    struct err err;     /* text ready for the user, the server's own words in it are
                           one line without control bytes; codes: ERR_AUTH
                           401/403, ERR_NOTFOUND 404, ERR_CONFLICT 409, ERR_BUSY
                           429 with Retry-After (and any 429 of a GET or DELETE),
                           ERR_LIMIT 429 without (plan cap), ERR_INVALID other 4xx,
                           ERR_SERVER 5xx, ERR_NETWORK, ERR_TIMEOUT, ERR_PROTO (also a
                           404 page that is not the API's); sys = HTTP status. The
                           `code` in an error body decides over the status. */
    int status;
    bool sent;
    int64_t retry_after_ms; /* -1 none */
    int64_t date_ms;        /* server's Date */
    struct e2b_sandbox *v;  /* list, get, create, connect */
    size_t n;
    int64_t total_running;  /* X-Total-Running or -1 */
    int pages;              /* list: how many it was made of */
    bool resent;            /* a try before this answer may have been carried out */
    char trace[64];         /* X-E2B-Trace-ID, for the service's support; "" none */
    /* The answers of the other calls: which are set stands with each call. */
    const struct e2b_metric *metrics;
    const struct e2b_log *logs, *reason_logs;
    const struct e2b_event *events;
    const struct e2b_team_metric *team;
    const struct e2b_template *templates;
    const struct e2b_build *builds;
    const struct e2b_tag *tags;
    const struct e2b_file *file;
    size_t n_metrics, n_logs, n_reason_logs, n_events, n_team, n_templates, n_builds, n_tags;
};
typedef void (*e2b_fn)(void *ctx, const struct e2b_result *r); /* r borrowed */

/* All pages of running and paused ones; falls back to v1 (running only, said in
 * err.text with code 0) when v2 is 404 or 405. GETs and DELETEs are retried (network,
 * 5xx, 429 with its Retry-After) within `give_up_ms`; nothing else ever is. Returns a
 * cancel id. */
struct e2b_call_opts {
    bool urgent;
    int give_up_ms; /* 0 = one try */
    bool warm;      /* list: as e2b_warm, when the first page says that there are many */
    int try_ms;     /* an answer so late is taken as lost; 0 = all of the time */
};
uint64_t e2b_list(struct e2b *c, const struct e2b_call_opts *o, e2b_fn fn, void *ctx);
/* Only some of them: never the truth about what is gone. All conditions must hold; the
 * old list is filtered here by what it cannot filter itself. */
struct e2b_list_query {
    const char *states;       /* "running", "paused" or NULL: both */
    const struct kv *meta;    /* ends with k NULL, or NULL; any text, encoded as the API
                                 wants it */
    const char *template_id;  /* id or alias, or NULL */
    int64_t started_after;    /* wall ms, 0 = any */
    bool oldest_first;
};
uint64_t e2b_list_where(struct e2b *c, const struct e2b_list_query *q,
                        const struct e2b_call_opts *o, e2b_fn fn, void *ctx);
uint64_t e2b_get(struct e2b *c, const char *id, const struct e2b_call_opts *o, e2b_fn fn,
                 void *ctx);
/* Never retried by itself. timeout is always sent; v1 route with secure:true. */
struct e2b_create {
    const char *template_id;
    int timeout_s;
    bool auto_pause;
    const struct kv *meta; /* ends with k NULL */
    const struct kv *env;  /* ends with k NULL; values may be secret: the body is wiped */
};
uint64_t e2b_create(struct e2b *c, const struct e2b_create *q, e2b_fn fn, void *ctx);
uint64_t e2b_kill(struct e2b *c, const char *id, const struct e2b_call_opts *o, e2b_fn fn,
                  void *ctx);
/* From now; may shorten. The service may grant less without a word: its list tells.
 * Zero and less is ERR_INVALID at once, nothing is sent: to end one, kill it. */
uint64_t e2b_set_timeout(struct e2b *c, const char *id, int timeout_s, e2b_fn fn, void *ctx);
/* Only extends, by 15 s to 1 h. */
uint64_t e2b_refresh(struct e2b *c, const char *id, int seconds, e2b_fn fn, void *ctx);
uint64_t e2b_pause(struct e2b *c, const char *id, e2b_fn fn, void *ctx);
/* Resumes, and bills: never merely to look. By /connect, /v2/.../connect or /resume,
 * whichever the service has (v without a row after the last). Timeout as above. */
uint64_t e2b_connect(struct e2b *c, const char *id, int timeout_s, e2b_fn fn, void *ctx);
void e2b_cancel(struct e2b *c, uint64_t call);
/* Open connections ahead of so many deletes, so that they go out at once. */
void e2b_warm(struct e2b *c, size_t deletes);

#endif
