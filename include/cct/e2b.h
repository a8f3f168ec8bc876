/* E2B's control plane: requests out, typed answers in. Net
 * thread only. Strings in answers are foreign and not cleaned. */
#ifndef CCT_E2B_H
#define CCT_E2B_H

#include <cct/model/sandbox.h>
#include <cct/net.h>
#include <cct/util/err.h>

/* Where calls go and what proves who we are. */
struct e2b_account {
    char *api_url;      /* no trailing slash */
    char *sandbox_url;  /* NULL: derived from domain and id (spec 1) */
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
};
typedef void (*e2b_fn)(void *ctx, const struct e2b_result *r); /* r borrowed */

/* All pages of running and paused ones; falls back to v1 (running only, said in
 * err.text with code 0) when v2 is 404. GETs and DELETEs are retried (network, 5xx,
 * 429 with its Retry-After) within `give_up_ms`. Returns a cancel id. */
struct e2b_call_opts {
    bool urgent;
    int give_up_ms; /* 0 = one try */
    int try_ms;     /* an answer so late is taken as lost; 0 = all of the time */
};
uint64_t e2b_list(struct e2b *c, const struct e2b_call_opts *o, e2b_fn fn, void *ctx);
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
uint64_t e2b_set_timeout(struct e2b *c, const char *id, int timeout_s, e2b_fn fn, void *ctx);
uint64_t e2b_pause(struct e2b *c, const char *id, e2b_fn fn, void *ctx);
uint64_t e2b_connect(struct e2b *c, const char *id, int timeout_s, e2b_fn fn, void *ctx);
void e2b_cancel(struct e2b *c, uint64_t call);
/* Open connections ahead of a kill-all so that the DELETEs go out at once. */
void e2b_warm(struct e2b *c, size_t connections);

#endif
