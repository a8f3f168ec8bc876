/* Answers: error bodies to sentences and codes, list pages to rows. */
#include "e2b_priv.h"
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/log.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGES_MAX = 1000, WORDS_MAX = 160, V1_MS = 60000 };

static const char *const tasks[] = {
    [CALL_LIST] = "list sandboxes",   [CALL_GET] = "look up sandbox",
    [CALL_CREATE] = "create a sandbox from template", [CALL_KILL] = "kill sandbox",
    [CALL_TIMEOUT] = "set the timeout of sandbox",    [CALL_PAUSE] = "pause sandbox",
    [CALL_CONNECT] = "resume sandbox", [CALL_WARM] = "open connections",
};

/* What an error answer holds. */
struct refusal {
    int code;        /* the body's if it has one that makes sense, else the status */
    bool told;       /* the body is the API's own: a JSON object, or nothing */
    char words[WORDS_MAX + 4];
};

/* The server's words on one line, cut at a character. */
static void copy_words(char *dst, const char *s)
{
    size_t n = 0;

    for (; *s && n < WORDS_MAX; s++)
        dst[n++] = (unsigned char)*s < ' ' || *s == 0x7f ? ' ' : *s;
    if (*s) {
        while (n > 0 && ((unsigned char)dst[n - 1] & 0xC0) == 0x80)
            n--;
        if (n > 0 && (unsigned char)dst[n - 1] >= 0xC0)
            n--;
        memcpy(dst + n, "...", 3);
        n += 3;
    }
    dst[n] = '\0';
}

static void read_refusal(const struct net_result *n, struct refusal *f)
{
    struct cJSON *j = n->len ? json_parse(n->body, n->len, NULL) : NULL;
    int64_t code = json_i64(j, "code", 0);
    const char *words = json_str(j, "message", NULL);

    *f = (struct refusal){.code = n->status, .told = json_is_object(j) || n->len == 0};
    if (code >= 400 && code <= 599)
        f->code = (int)code;
    if (words && *words)
        copy_words(f->words, words);
    else if (json_str(j, "error_code", NULL))
        copy_words(f->words, json_str(j, "error_code", ""));
    json_free(j);
}

static void put(const struct e2b_call *k, const struct refusal *f, struct err *e, int code,
                const char *what)
{
    const char *subject = k->subject ? k->subject : "";
    const char *q = k->subject ? "\"" : "", *gap = k->subject ? " " : "";

    err_set(e, code, "cannot %s%s%s%.80s%s: %s (%d%s%s)", tasks[k->kind], gap, q, subject, q, what,
            f->code, f->words[0] ? ": " : "", f->words);
    e->sys = f->code;
}

static void key_error(const struct e2b_call *k, const struct refusal *f, struct err *e)
{
    const struct e2b_account *a = &k->e2b->account;
    char what[160];

    if (f->code == 401)
        snprintf(what, sizeof(what), "the key %s (%s) was refused; check or replace it", a->mask,
                 a->source ? a->source : "source unknown");
    else
        snprintf(what, sizeof(what), "the key %s (%s) may not do that; check team and template",
                 a->mask, a->source ? a->source : "source unknown");
    put(k, f, e, ERR_AUTH, what);
}

static void busy_error(const struct e2b_call *k, const struct net_result *n,
                       const struct refusal *f, struct err *e)
{
    bool repeats = strcmp(k->method, "GET") == 0 || strcmp(k->method, "DELETE") == 0;
    char what[120];

    if (n->retry_after_ms >= 0) {
        snprintf(what, sizeof(what), "too many requests; try again in %lld s",
                 (long long)(n->retry_after_ms + 999) / 1000);
        put(k, f, e, ERR_BUSY, what);
    } else if (repeats) {
        put(k, f, e, ERR_BUSY, "too many requests; try again later");
    } else {
        put(k, f, e, ERR_LIMIT,
            "a limit of the plan is reached; kill or pause a sandbox first");
    }
}

static void missing_error(const struct e2b_call *k, const struct refusal *f, struct err *e)
{
    if (!f->told || k->kind == CALL_LIST)
        put(k, f, e, ERR_PROTO, "this address does not answer like the E2B API; check E2B_API_URL "
            "and E2B_DOMAIN");
    else if (k->kind == CALL_CREATE)
        put(k, f, e, ERR_NOTFOUND, "there is no such template; build it or choose another");
    else
        put(k, f, e, ERR_NOTFOUND, "it does not exist any more");
}

void answer_error(const struct e2b_call *k, const struct net_result *n, struct err *e)
{
    struct refusal f;

    read_refusal(n, &f);
    if (f.code == 401 || f.code == 403)
        key_error(k, &f, e);
    else if (f.code == 404)
        missing_error(k, &f, e);
    else if (f.code == 409)
        put(k, &f, e, ERR_CONFLICT, "its state does not allow that now; refresh and look again");
    else if (f.code == 429)
        busy_error(k, n, &f, e);
    else if (f.code == 503 || f.code == 504)
        put(k, &f, e, ERR_SERVER, "the service has no room or is down; try again, check its status");
    else if (f.code >= 500)
        put(k, &f, e, ERR_SERVER, "the service failed; try again, check its status");
    else if (f.code >= 400)
        put(k, &f, e, ERR_INVALID, "the service refused the request");
    else
        put(k, &f, e, ERR_PROTO, "the answer is a redirect or none at all; check E2B_API_URL");
}

static void bad_answer(const struct e2b_call *k, const struct net_result *n, struct err *e,
                       const char *why)
{
    struct refusal f = {.code = n->status};

    put(k, &f, e, ERR_PROTO, why);
}

/* Rows of a page; one that came before (a cursor by offset shifts) is not doubled. */
static int take_rows(struct e2b_call *k, const struct cJSON *j)
{
    size_t odd = 0;

    if (!json_is_array(j))
        return ERR_PROTO;
    if (!k->ids)
        k->ids = map_new();
    for (const struct cJSON *i = json_first(j); i; i = json_next(i)) {
        struct e2b_sandbox s;
        if (!sandbox_parse(i, &s)) {
            odd++;
        } else if (map_get(k->ids, s.sandbox_id)) {
            e2b_sandbox_clear(&s);
        } else {
            if (!s.state[0] && str_starts(k->path, "/sandboxes")) {
                free(s.state); /* the old list has running ones only */
                s.state = xstrdup("running");
            }
            *ARR_PUSH(&k->got) = s;
            map_put(k->ids, s.sandbox_id, k);
        }
    }
    if (odd)
        log_warn("list of sandboxes: %zu entries without an id were left out", odd);
    return 0;
}

/* True when there is another page to ask for. */
static bool next_page(struct e2b_call *k, struct err *e)
{
    struct net *n = k->e2b->net;
    const char *token = net_answer_header(n, k->request, "X-Next-Token");
    const char *total = net_answer_header(n, k->request, "X-Total-Running");
    int64_t t;

    if (k->pages++ == 0 && total && str_to_i64(total, 0, INT64_MAX, &t))
        k->total_running = t;
    if (!token || !*token)
        return false;
    if (k->pages >= PAGES_MAX || str_eq(token, k->token)) {
        err_set(e, ERR_PROTO, "cannot list sandboxes: the list of the service does not end "
                "(page %d)", k->pages);
        return false;
    }
    free(k->token);
    k->token = xstrdup(token);
    list_path(k);
    return true;
}

static bool take_list(struct e2b_call *k, const struct net_result *n, struct e2b_result *r)
{
    struct cJSON *j = json_parse(n->body, n->len, NULL);
    int rc = take_rows(k, j);

    json_free(j);
    if (rc) {
        bad_answer(k, n, &r->err, "the answer is no list; check E2B_API_URL");
        return false;
    }
    if (str_starts(k->path, "/v2/"))
        return next_page(k, &r->err);
    k->e2b->v1_until = clock_mono_ms() + V1_MS;
    err_set(&r->err, ERR_OK, "this service lists running sandboxes only: paused ones are not "
            "seen");
    return false;
}

static void take_one(struct e2b_call *k, const struct net_result *n, struct e2b_result *r)
{
    struct cJSON *j = json_parse(n->body, n->len, NULL);
    struct e2b_sandbox s;

    if (sandbox_parse(j, &s))
        *ARR_PUSH(&k->got) = s;
    else
        bad_answer(k, n, &r->err, "the answer names no sandbox; look at the list");
    json_free(j);
}

bool answer_take(struct e2b_call *k, const struct net_result *n, struct e2b_result *r)
{
    if (n->err.code) {
        r->err = n->err;
        const char *q = k->subject ? "\"" : "";
        err_wrap(&r->err, "cannot %s%s%s%.80s%s", tasks[k->kind], k->subject ? " " : "", q,
                 k->subject ? k->subject : "", q);
        return false;
    }
    if (n->status >= 200 && n->status < 300) {
        if (k->kind == CALL_LIST)
            return take_list(k, n, r);
        if (k->kind == CALL_GET || k->kind == CALL_CREATE || k->kind == CALL_CONNECT)
            take_one(k, n, r);
        return false;
    }
    if (k->kind == CALL_LIST && n->status == 404 && str_starts(k->path, "/v2/") && !k->pages) {
        k->fresh_v1 = true;
        list_path(k);
        return true;
    }
    answer_error(k, n, &r->err);
    return false;
}
