/* The control-plane client's insides, shared by the files of src/e2b. */
#ifndef CCT_E2B_PRIV_H
#define CCT_E2B_PRIV_H

#include <cct/e2b.h>
#include <cct/util/arr.h>
#include <cct/util/json.h>
#include <cct/util/map.h>

enum call_kind { CALL_LIST, CALL_GET, CALL_CREATE, CALL_KILL, CALL_TIMEOUT, CALL_PAUSE,
                 CALL_CONNECT, CALL_WARM };

struct e2b {
    struct net *net;
    struct e2b_account account;
    struct map *calls; /* id -> struct e2b_call */
    uint64_t next_id;
    int64_t v1_until;  /* mono: until then only the old list is asked for */
};

/* One call: one or more requests, one answer. */
struct e2b_call {
    struct e2b *e2b;
    uint64_t id;
    enum call_kind kind;
    const char *method;
    char *path;        /* with query, begins with '/' */
    char *subject;     /* what it is about: sandbox or template id */
    struct buf body;   /* JSON; moved into the request, so it goes out once */
    bool urgent;
    bool fresh_v1;     /* list: v2 was answered with 404 in this call */
    int64_t deadline;  /* mono; 0 = one try */
    int try_ms;        /* of each try; 0 = up to the deadline */
    bool resent;       /* an earlier try may have arrived */
    int attempt;
    uint64_t request, timer;
    e2b_fn fn;
    void *ctx;
    /* list: what earlier pages gave */
    ARR(struct e2b_sandbox) got;
    struct map *ids;
    char *token;       /* cursor of the page under way */
    int pages;
    int64_t total_running;
};

/* client.c */
struct e2b_call *call_new(struct e2b *c, enum call_kind kind, const char *method, const char *id,
                          e2b_fn fn, void *ctx);
void call_options(struct e2b_call *k, const struct e2b_call_opts *o);
uint64_t call_start(struct e2b_call *k); /* its id */
void call_send(struct e2b_call *k);      /* again, with the same or a new path */
/* Ends the call: hands out `r` and frees. The client may be gone afterwards. */
void call_finish(struct e2b_call *k, struct e2b_result *r);

/* answer.c: an HTTP answer to a result; true when the call goes on (next page) */
bool answer_take(struct e2b_call *k, const struct net_result *n, struct e2b_result *r);
void answer_error(const struct e2b_call *k, const struct net_result *n, struct err *e);

/* parse.c */
bool sandbox_parse(const struct cJSON *j, struct e2b_sandbox *out);
void e2b_sandbox_clear(struct e2b_sandbox *s);

/* list.c */
void list_path(struct e2b_call *k);

#endif
