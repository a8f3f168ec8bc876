/* Answers: error bodies to sentences and codes, good ones to rows, page by page, and
 * which address of a call is the right one. */
#include "e2b_priv.h"
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/limits.h>
#include <cct/util/log.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGES_MAX = 1000, WORDS_MAX = 200, OLD_ROUTE_MS = 60000 };

struct call_row {
    const char *task;
    int (*take)(struct e2b_call *k, const struct cJSON *j); /* NULL: no body is needed */
    bool paged;
    const char *odd; /* what is said of a body that makes no sense */
};
#define NO_LIST "the answer is no list; check E2B_API_URL"
#define NO_VM "the answer names no sandbox; look at the list"
#define NO_SENSE "the answer makes no sense; check E2B_API_URL"

static const struct call_row rows[CALL_COUNT] = {
    [CALL_LIST] = {"list sandboxes", take_list, true, NO_LIST},
    [CALL_GET] = {"look up sandbox", take_one, false, NO_VM},
    [CALL_CREATE] = {"create a sandbox from template", take_one, false, NO_VM},
    [CALL_KILL] = {"kill sandbox", NULL, false, NULL},
    [CALL_TIMEOUT] = {"set the timeout of sandbox", NULL, false, NULL},
    [CALL_REFRESH] = {"extend the time of sandbox", NULL, false, NULL},
    [CALL_PAUSE] = {"pause sandbox", NULL, false, NULL},
    [CALL_CONNECT] = {"resume sandbox", take_one, false, NO_VM},
    [CALL_WARM] = {"open connections", NULL, false, NULL},
    [CALL_METRICS] = {"ask for the load of sandboxes", take_metrics, false, NO_SENSE},
    [CALL_METRIC_RANGE] = {"ask for the load of sandbox", take_metric_range, false, NO_LIST},
    [CALL_LOGS] = {"read the system log of sandbox", take_logs, false, NO_SENSE},
    [CALL_EVENTS] = {"ask for the events of sandboxes", take_events, false, NO_LIST},
    [CALL_TEAM] = {"ask for the figures of team", take_team, false, NO_SENSE},
    [CALL_TEAM_MAX] = {"ask for the figures of team", take_team, false, NO_SENSE},
    [CALL_TEMPLATES] = {"list templates", take_templates, true, NO_LIST},
    [CALL_TEMPLATE] = {"look up template", take_template, true, NO_SENSE},
    [CALL_ALIAS] = {"look up template", take_alias, false, NO_SENSE},
    [CALL_TEMPLATE_DELETE] = {"delete template", NULL, false, NULL},
    [CALL_TAGS] = {"list the tags of template", take_tags, false, NO_LIST},
    [CALL_TAG_ADD] = {"tag template", take_tag_added, false, NO_SENSE},
    [CALL_TAG_DELETE] = {"remove a tag of template", NULL, false, NULL},
    [CALL_BUILD_NEW] = {"request a build of template", take_build_new, false, NO_SENSE},
    [CALL_FILE] = {"ask for the place of files of template", take_file, false, NO_SENSE},
    [CALL_UPLOAD] = {"upload the files of template", NULL, false, NULL},
    [CALL_BUILD_START] = {"start the build of template", NULL, false, NULL},
    [CALL_BUILD_STATUS] = {"ask for the state of build", take_build_status, false, NO_SENSE},
    [CALL_BUILD_LOGS] = {"read the log of build", take_logs, false, NO_SENSE},
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
    const char *words = json_str(j, "message", ""), *kind = json_str(j, "error_code", "");
    char *both;

    *f = (struct refusal){.code = n->status, .told = json_is_object(j) || n->len == 0};
    if (code >= 400 && code <= 599)
        f->code = (int)code;
    both = xasprintf("%s%s%s%s", words, *words && *kind ? " (" : "", kind,
                     *words && *kind ? ")" : "");
    copy_words(f->words, both);
    free(both);
    json_free(j);
}

static void put(const struct e2b_call *k, const struct refusal *f, struct err *e, int code,
                const char *what)
{
    const char *subject = k->subject ? k->subject : "";
    const char *q = k->subject ? "\"" : "", *gap = k->subject ? " " : "";

    err_set(e, code, "cannot %s%s%s%.80s%s: %s (%d%s%s)", rows[k->kind].task, gap, q, subject, q, what,
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
    else if (k->kind == CALL_ALIAS)
        snprintf(what, sizeof(what), "it belongs to another team than the key %s (%s)", a->mask,
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
    } else if (k->kind == CALL_BUILD_NEW || k->kind == CALL_BUILD_START) {
        put(k, f, e, ERR_LIMIT, "the plan's limit of builds is reached; wait for one to end");
    } else {
        put(k, f, e, ERR_LIMIT,
            "a limit of the plan is reached; kill or pause a sandbox first");
    }
}

static void missing_error(const struct e2b_call *k, const struct refusal *f, struct err *e)
{
    char what[200];

    if (!f->told || k->kind == CALL_LIST || k->kind == CALL_TEMPLATES) {
        snprintf(what, sizeof(what), "%s %.*s: this address does not answer like the E2B API; "
                 "check E2B_API_URL and E2B_DOMAIN", k->method, (int)strcspn(k->path ? k->path : "", "?"),
                 k->path ? k->path : "");
        put(k, f, e, ERR_PROTO, what);
    } else if (k->kind == CALL_CREATE)
        put(k, f, e, ERR_NOTFOUND, "there is no such template; build it or choose another");
    else
        put(k, f, e, ERR_NOTFOUND, "it does not exist any more");
}

void answer_error(const struct e2b_call *k, const struct net_result *n, struct err *e)
{
    struct refusal f;

    read_refusal(n, &f);
    if (k->kind == CALL_UPLOAD) /* a storage, not the API: its codes mean other things */
        put(k, &f, e, f.code >= 500 ? ERR_SERVER : ERR_INVALID,
            "the storage refused it; request the build anew");
    else if (f.code == 401 || f.code == 403)
        key_error(k, &f, e);
    else if (f.code == 404)
        missing_error(k, &f, e);
    else if (f.code == 409)
        put(k, &f, e, ERR_CONFLICT, "another change of it is under way, or its state does not "
            "allow that now; look again");
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

/* --- addresses -------------------------------------------------------------------- */

bool answer_is_old_list(const struct e2b_call *k)
{
    return k->kind == CALL_LIST && k->at > 0;
}

/* A 404 that is about the address, not about what was asked for: the sandbox's own says
 * its id. Nothing happened, so another address may be tried whatever the method. */
static bool no_such_route(const struct e2b_call *k, const struct net_result *n)
{
    struct refusal f;

    if (k->n_routes < 2 || k->pages || (n->status != 404 && n->status != 405))
        return false;
    read_refusal(n, &f);
    if (f.code != 404 && f.code != 405)
        return false;
    return !k->subject || !strstr(f.words, k->subject);
}

static bool next_route(struct e2b_call *k)
{
    if (++k->tried >= k->n_routes)
        return false;
    k->at = (k->at + 1) % k->n_routes;
    str_set(&k->path, k->routes[k->at]);
    return true;
}

/* The newest address is asked for again after a while: one 404 may have been a lie. */
static void remember_route(const struct e2b_call *k)
{
    struct e2b *c = k->e2b;

    if (k->n_routes < 2 || !k->tried)
        return;
    c->routes[k->family].at = k->at;
    c->routes[k->family].until = clock_mono_ms() + OLD_ROUTE_MS;
}

/* --- good answers ----------------------------------------------------------------- */

static void next_path(struct e2b_call *k)
{
    const char *route = k->routes[k->at];
    struct buf b = BUF_INIT;

    buf_adds(&b, route);
    buf_adds(&b, strchr(route, '?') ? "&nextToken=" : "?nextToken=");
    buf_add_urlenc(&b, k->token, strlen(k->token));
    free(k->path);
    k->path = buf_detach(&b, NULL);
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
    if (k->warm) /* while the other pages come */
        e2b_warm(k->e2b, k->got.sandboxes.n + (k->total_running > 0 ? (size_t)k->total_running : 0));
    if (k->pages >= PAGES_MAX || k->bytes >= LIM_HTTP_BODY || str_eq(token, k->token)) {
        err_set(e, ERR_PROTO, "cannot %s: the list of the service does not end (page %d)",
                rows[k->kind].task, k->pages);
        return false;
    }
    str_set(&k->token, token);
    next_path(k);
    return true;
}

/* /resume says 409 when it runs already, which is what was wanted. */
static bool runs_already(const struct e2b_call *k, const struct net_result *n)
{
    struct refusal f;

    if (k->kind != CALL_CONNECT || k->at != k->n_routes - 1 || n->status != 409)
        return false;
    read_refusal(n, &f);
    return f.code == 409;
}

static bool take_good(struct e2b_call *k, const struct net_result *n, struct e2b_result *r)
{
    const struct call_row *row = &rows[k->kind];
    struct cJSON *j;
    int rc;

    remember_route(k);
    if (!row->take)
        return false;
    k->bytes += n->len;
    j = json_parse(n->body, n->len, NULL);
    rc = row->take(k, j);
    json_free(j);
    if (rc < 0)
        bad_answer(k, n, &r->err, row->odd);
    else if (rc == 0 && row->paged)
        rc = next_page(k, &r->err);
    if (rc <= 0 && !r->err.code && answer_is_old_list(k))
        err_set(&r->err, ERR_OK, "this service lists running sandboxes only: paused ones are not "
                "seen");
    return rc > 0;
}

/* A failing answer's mark, for the service's support. Foreign, so only its letters. */
static void keep_trace(struct e2b_call *k, const struct net_result *n)
{
    const char *t = net_answer_header(k->e2b->net, k->request, "X-E2B-Trace-ID");
    size_t len = 0;

    for (; t && *t && len + 1 < sizeof(k->trace); t++)
        if (isalnum((unsigned char)*t) || *t == '-')
            k->trace[len++] = *t;
    k->trace[len] = '\0';
    if (n->status >= 400)
        log_info("%s %s: %d%s%s", k->method, k->path ? k->path : "upload", n->status,
                 len ? ", trace " : "", k->trace);
}

bool answer_take(struct e2b_call *k, const struct net_result *n, struct e2b_result *r)
{
    if (n->err.code) {
        r->err = n->err;
        const char *q = k->subject ? "\"" : "";
        err_wrap(&r->err, "cannot %s%s%s%.80s%s", rows[k->kind].task, k->subject ? " " : "", q,
                 k->subject ? k->subject : "", q);
        return false;
    }
    keep_trace(k, n);
    if (n->status >= 200 && n->status < 300)
        return take_good(k, n, r);
    if (runs_already(k, n))
        return false;
    if (no_such_route(k, n) && next_route(k))
        return true;
    answer_error(k, n, &r->err);
    return false;
}
