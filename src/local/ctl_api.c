/* Routes of the control API. Every answer with a body is JSON; errors have the
 * cloud's {"code","message"} shape, since clients decide by the body's code. */
#include <cct/local/ctl.h>
#include <cct/local/http_srv.h>
#include <cct/local/init.h>
#include <cct/local/provider.h>
#include <cct/secrets/digest.h>
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/limits.h>
#include <cct/util/map.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One request on its way through a route. */
struct call {
    struct provider *p;
    struct http_req *r;
    struct sbox *b;           /* of a path with {id} */
    const char *tail;         /* the last free part of the path */
    const struct cJSON *body; /* parsed object, or NULL when there was no body */
    bool v2;
};

static void reply_err(struct http_req *r, const struct err *e)
{
    int status = 500;
    switch (e->code) {
    case ERR_INVALID:
        status = 400;
        break;
    case ERR_NOTFOUND:
        status = 404;
        break;
    case ERR_CONFLICT:
        status = 409;
        break;
    case ERR_LIMIT:
        status = 429;
        break;
    case ERR_BUSY:
        status = 503;
        break;
    default:
        break;
    }
    http_reply_error(r, status, "%s", e->text);
}

/* --- answers ------------------------------------------------------------------ */

static void write_time(struct jw *w, const char *name, int64_t ms)
{
    char text[40];
    clock_format_rfc3339(text, sizeof(text), ms);
    jw_str(w, name, text);
}

static void write_created(struct buf *out, const struct sbox_rec *r)
{
    struct jw w;
    jw_init(&w, out);
    jw_obj(&w, NULL);
    jw_str(&w, "templateID", r->template_id);
    jw_str(&w, "sandboxID", r->id);
    jw_str(&w, "alias", r->alias);
    jw_str(&w, "clientID", "local");
    jw_str(&w, "envdVersion", INIT_ENVD_VERSION);
    jw_str(&w, "envdAccessToken", r->token);
    jw_null(&w, "trafficAccessToken");
    jw_null(&w, "domain");
    jw_bool(&w, "isolated", r->isolated);
    jw_end(&w);
}

static void write_item(struct jw *w, const struct sbox_rec *r, bool detail)
{
    jw_obj(w, NULL);
    jw_str(w, "templateID", r->template_id);
    jw_str(w, "alias", r->alias);
    jw_str(w, "sandboxID", r->id);
    jw_str(w, "clientID", "local");
    write_time(w, "startedAt", r->started_ms);
    write_time(w, "endAt", r->end_ms);
    jw_str(w, "state", r->state == SBOX_PAUSED ? "paused" : "running");
    jw_i64(w, "cpuCount", r->cpu);
    jw_i64(w, "memoryMB", r->mem_mb);
    jw_i64(w, "diskSizeMB", 0);
    jw_str(w, "envdVersion", INIT_ENVD_VERSION);
    jw_bool(w, "isolated", r->isolated);
    if (r->metadata) {
        char *text = json_text(r->metadata);
        jw_raw(w, "metadata", text);
        free(text);
    } else {
        jw_obj(w, "metadata");
        jw_end(w);
    }
    if (detail) {
        jw_str(w, "envdAccessToken", r->token);
        jw_null(w, "domain");
        jw_bool(w, "allowInternetAccess", r->internet);
        jw_obj(w, "lifecycle");
        jw_bool(w, "autoResume", r->auto_resume);
        jw_str(w, "onTimeout", r->auto_pause ? "pause" : "kill");
        jw_end(w);
    }
    jw_end(w);
}

static void mark_isolation(struct http_req *r, bool isolated)
{
    if (!isolated)
        http_reply_header(r, "X-CC-Isolated", "no");
}

static void reply_created(struct http_req *r, int status, const struct sbox *b)
{
    struct buf out = BUF_INIT;
    write_created(&out, &b->rec);
    mark_isolation(r, b->rec.isolated);
    http_reply(r, status, out.p, out.len);
    buf_release(&out);
}

static void done_created(void *arg, struct sbox *b, const struct err *e)
{
    if (b)
        reply_created(arg, 201, b);
    else
        reply_err(arg, e);
}

static void done_empty(void *arg, struct sbox *b, const struct err *e)
{
    (void)b;
    if (e && e->code != 0)
        reply_err(arg, e);
    else
        http_reply(arg, 204, NULL, 0);
}

/* --- arguments ------------------------------------------------------------------ */

/* A whole number of seconds; false after an answer of 400. */
static bool take_seconds(const struct call *c, const char *name, int64_t def, int64_t min,
                         int64_t *out)
{
    const struct cJSON *v = json_get(c->body, name);
    *out = v ? json_i64(c->body, name, -1) : def;
    if (*out >= min && *out <= LIM_TIMEOUT_MAX_S)
        return true;
    http_reply_error(c->r, 400, "%s must be a number of seconds from %d to %d", name, (int)min,
                     LIM_TIMEOUT_MAX_S);
    return false;
}

static bool is_string_map(const struct cJSON *o)
{
    if (!o)
        return true;
    if (!json_is_object(o))
        return false;
    for (const struct cJSON *m = json_first(o); m; m = json_next(m))
        if (!json_is_string(m) || !*json_name(m))
            return false;
    return true;
}

/* --- routes: the collection ----------------------------------------------------- */

static void route_create(struct call *c)
{
    const char *ref = json_str(c->body, "templateID", NULL);
    if (!ref) {
        http_reply_error(c->r, 400, "templateID is missing");
        return;
    }
    const struct ctl_template *t = ctl_template_find(ref);
    if (!t) {
        http_reply_error(c->r, 404, "template '%.80s' not found", ref);
        return;
    }
    struct sbox_new n = {.template_id = t->id, .alias = t->alias};
    n.metadata = json_get(c->body, "metadata");
    n.env = json_get(c->body, "envVars");
    if (!is_string_map(n.metadata) || !is_string_map(n.env)) {
        http_reply_error(c->r, 400, "metadata and envVars must map names to strings");
        return;
    }
    if (!take_seconds(c, "timeout", c->v2 ? 300 : 15, 1, &n.timeout_s))
        return;
    n.auto_pause = json_bool(c->body, "autoPause", false);
    n.auto_resume = json_bool(json_get(c->body, "autoResume"), "enabled", false);
    n.internet = json_bool(c->body, "allow_internet_access", true);
    struct err e = {0};
    if (sbox_create(c->p, &n, done_created, c->r, &e) != 0)
        reply_err(c->r, &e);
}

static void reply_list(struct call *c, struct ctl_list *q, bool paged)
{
    size_t n = 0, it = 0, running;
    const struct sbox_rec **recs = xcalloc(map_count(c->p->boxes) + 1, sizeof(recs[0]));
    struct sbox *b;
    while ((b = map_next(c->p->boxes, &it, NULL, NULL)) != NULL)
        if (sbox_is_visible(b))
            recs[n++] = &b->rec;
    char *next;
    n = ctl_list_select(q, recs, n, &running, &next);
    struct buf out = BUF_INIT;
    struct jw w;
    jw_init(&w, &out);
    jw_arr(&w, NULL);
    for (size_t i = 0; i < n; i++)
        write_item(&w, recs[i], false);
    jw_end(&w);
    char total[24];
    snprintf(total, sizeof(total), "%zu", running);
    if (paged && q->running)
        http_reply_header(c->r, "X-Total-Running", total);
    if (paged && next)
        http_reply_header(c->r, "X-Next-Token", next);
    mark_isolation(c->r, !c->p->unsafe);
    http_reply(c->r, 200, out.p, out.len);
    buf_release(&out);
    free(next);
    free(recs);
}

static void route_list(struct call *c)
{
    struct ctl_list q;
    struct err e = {0};
    if (ctl_list_parse(&q, c->r->query, &e) != 0)
        reply_err(c->r, &e);
    else
        reply_list(c, &q, true);
    ctl_list_release(&q);
}

static void route_list_v1(struct call *c)
{
    struct ctl_list q;
    struct err e = {0};
    if (ctl_list_parse(&q, c->r->query, &e) != 0) {
        reply_err(c->r, &e);
    } else {
        q.running = true; /* the old list knows no others, and has no pages */
        q.paused = false;
        q.limit = 1 << 20;
        reply_list(c, &q, false);
    }
    ctl_list_release(&q);
}

static void route_metrics_many(struct call *c)
{
    char *ids = ctl_query_get(c->r->query, "sandbox_ids");
    ctl_metrics_many(c->r, c->p, ids ? ids : "");
    free(ids);
}

/* --- routes: one sandbox ---------------------------------------------------------- */

static void route_get(struct call *c)
{
    struct buf out = BUF_INIT;
    struct jw w;
    jw_init(&w, &out);
    write_item(&w, &c->b->rec, true);
    mark_isolation(c->r, c->b->rec.isolated);
    http_reply(c->r, 200, out.p, out.len);
    buf_release(&out);
}

static void route_delete(struct call *c)
{
    sbox_kill(c->b, done_empty, c->r);
}

static void route_pause(struct call *c)
{
    struct err e = {0};
    if (sbox_pause(c->b, done_empty, c->r, &e) != 0)
        reply_err(c->r, &e);
}

static void route_resume(struct call *c)
{
    int64_t s;
    struct err e = {0};
    if (!take_seconds(c, "timeout", 15, 1, &s))
        return;
    if (sbox_resume(c->b, s, done_created, c->r, &e) != 0)
        reply_err(c->r, &e);
}

static void route_connect(struct call *c)
{
    int64_t s;
    struct err e = {0};
    if (!c->v2 && !json_get(c->body, "timeout")) {
        http_reply_error(c->r, 400, "timeout is missing");
        return;
    }
    if (!take_seconds(c, "timeout", 300, 1, &s))
        return;
    if (c->b->rec.state == SBOX_PAUSED) {
        if (sbox_resume(c->b, s, done_created, c->r, &e) != 0)
            reply_err(c->r, &e);
        return;
    }
    int64_t end = clock_wall_ms() + s * 1000;
    if (end > c->b->rec.end_ms)
        sbox_set_end(c->b, end);
    reply_created(c->r, 200, c->b);
}

static bool is_running(const struct call *c)
{
    if (c->b->rec.state == SBOX_RUNNING)
        return true;
    http_reply_error(c->r, 409, "sandbox '%s' is not running", c->b->rec.id);
    return false;
}

static void route_timeout(struct call *c)
{
    int64_t s;
    if (!is_running(c) || !take_seconds(c, "timeout", -1, 0, &s))
        return;
    sbox_set_end(c->b, clock_wall_ms() + s * 1000);
    http_reply(c->r, 204, NULL, 0);
}

static void route_refreshes(struct call *c)
{
    int64_t s;
    if (!is_running(c) || !take_seconds(c, "duration", 15, 0, &s))
        return;
    if (s > 3600) {
        http_reply_error(c->r, 400, "duration must be at most 3600 seconds");
        return;
    }
    int64_t end = clock_wall_ms() + (s < 15 ? 15 : s) * 1000;
    if (end > c->b->rec.end_ms)
        sbox_set_end(c->b, end);
    http_reply(c->r, 204, NULL, 0);
}

static void route_metrics(struct call *c)
{
    ctl_metrics_one(c->r, c->b);
}

/* Nothing is logged about a sandbox here; to say so as an empty list is what
 * clients can show. */
static void route_logs(struct call *c)
{
    const char *json = c->v2 ? "{\"logs\":[]}" : "{\"logs\":[],\"logEntries\":[]}";
    http_reply(c->r, 200, json, strlen(json));
}

static void route_never(struct call *c)
{
    http_reply_error(c->r, 501, "the local provider has no snapshots, forks and volumes");
}

/* --- routes: templates, health ---------------------------------------------------- */

static void route_templates(struct call *c)
{
    struct buf out = BUF_INIT;
    ctl_templates_json(&out);
    http_reply(c->r, 200, out.p, out.len);
    buf_release(&out);
}

static void route_template(struct call *c)
{
    const struct ctl_template *t = ctl_template_find(c->tail);
    if (!t) {
        http_reply_error(c->r, 404, "template '%.80s' not found", c->tail);
        return;
    }
    struct buf out = BUF_INIT;
    ctl_template_json(&out, t);
    http_reply(c->r, 200, out.p, out.len);
    buf_release(&out);
}

static void route_alias(struct call *c)
{
    const struct ctl_template *t = ctl_template_find(c->tail);
    if (!t) {
        http_reply_error(c->r, 404, "template alias '%.80s' not found", c->tail);
        return;
    }
    struct buf out = BUF_INIT;
    struct jw w;
    jw_init(&w, &out);
    jw_obj(&w, NULL);
    jw_str(&w, "templateID", t->id);
    jw_bool(&w, "public", false);
    jw_end(&w);
    http_reply(c->r, 200, out.p, out.len);
    buf_release(&out);
}

static void route_build(struct call *c)
{
    http_reply_error(c->r, 501,
                     "the local provider builds no templates: the built-in ones are base, "
                     "demo, shell, claude, codex, opencode and pi");
}

static void route_health(struct call *c)
{
    http_reply(c->r, 204, NULL, 0);
}

/* '{}' in a pattern is a sandbox, '*' the free last part. First match wins. */
static const struct route {
    const char *method, *pattern;
    void (*fn)(struct call *c);
    bool v2;
} routes[] = {
    {"GET", "/health", route_health, false},
    {"POST", "/sandboxes", route_create, false},
    {"POST", "/v2/sandboxes", route_create, true},
    {"GET", "/v2/sandboxes", route_list, true},
    {"GET", "/sandboxes", route_list_v1, false},
    {"GET", "/sandboxes/metrics", route_metrics_many, false},
    {"GET", "/sandboxes/{}", route_get, false},
    {"DELETE", "/sandboxes/{}", route_delete, false},
    {"POST", "/sandboxes/{}/pause", route_pause, false},
    {"POST", "/sandboxes/{}/resume", route_resume, false},
    {"POST", "/sandboxes/{}/connect", route_connect, false},
    {"POST", "/v2/sandboxes/{}/connect", route_connect, true},
    {"POST", "/sandboxes/{}/timeout", route_timeout, false},
    {"POST", "/sandboxes/{}/refreshes", route_refreshes, false},
    {"GET", "/sandboxes/{}/metrics", route_metrics, false},
    {"GET", "/sandboxes/{}/logs", route_logs, false},
    {"GET", "/v2/sandboxes/{}/logs", route_logs, true},
    {"POST", "/sandboxes/{}/snapshots", route_never, false},
    {"POST", "/sandboxes/{}/fork", route_never, false},
    {"GET", "/snapshots", route_never, false},
    {"GET", "/volumes", route_never, false},
    {"POST", "/volumes", route_never, false},
    {"GET", "/templates", route_templates, false},
    {"GET", "/v2/templates", route_templates, true},
    {"GET", "/templates/aliases/*", route_alias, false},
    {"GET", "/templates/*", route_template, false},
    {"POST", "/v3/templates", route_build, false},
    {"POST", "/v2/templates", route_build, false},
    {"POST", "/templates", route_build, false},
};

/* Does the path match? The sandbox's id goes to id[24], a free part to *tail. */
static bool path_matches(const char *pattern, const char *path, char *id, const char **tail)
{
    id[0] = '\0';
    while (*pattern) {
        if (pattern[0] == '{') {
            size_t n = strcspn(path, "/");
            const char *dash = memchr(path, '-', n);
            size_t keep = dash ? (size_t)(dash - path) : n; /* old id-client form */
            if (keep == 0 || keep > 23)
                return false;
            memcpy(id, path, keep);
            id[keep] = '\0';
            path += n;
            pattern += 2;
        } else if (pattern[0] == '*') {
            *tail = path;
            return *path != '\0' && strchr(path, '/') == NULL;
        } else if (*pattern++ != *path++) {
            return false;
        }
    }
    return *path == '\0';
}

static bool is_authorized(const struct provider *p, const struct http_req *r)
{
    return r->key && digest_equal(r->key, strlen(r->key), p->key, strlen(p->key));
}

bool ctl_may_send(const struct http_req *r, void *arg)
{
    return is_authorized(arg, r);
}

/* The body as an object; false after an answer. */
static bool take_body(struct call *c, struct cJSON **out)
{
    struct http_req *r = c->r;
    if (r->body.len == 0)
        return true;
    if (!r->is_json) {
        http_reply_error(r, 415, "a body must be application/json");
        return false;
    }
    struct err e = {0};
    *out = json_parse(buf_str(&r->body), r->body.len, &e);
    if (!*out || !json_is_object(*out)) {
        http_reply_error(r, 400, "the body is no JSON object%s%s", e.text[0] ? ": " : "",
                         e.text);
        return false;
    }
    c->body = *out;
    return true;
}

static void run_route(const struct route *route, struct call *c, const char *id)
{
    if (id[0]) {
        c->b = sbox_find(c->p, id);
        if (!c->b) {
            http_reply_error(c->r, 404, "sandbox '%s' not found", id);
            return;
        }
    }
    struct cJSON *body = NULL;
    c->v2 = route->v2;
    if (take_body(c, &body))
        route->fn(c);
    json_free(body);
}

void ctl_handle(struct http_req *r, void *arg)
{
    struct call c = {.p = arg, .r = r};
    char id[24];
    c.p->used_ms = clock_mono_ms();
    if (strcmp(r->path, "/health") != 0 && !is_authorized(c.p, r)) {
        http_reply_error(r, 401, "the API key is missing or not the one of this provider");
        return;
    }
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
        if (strcmp(routes[i].method, r->method) == 0 &&
            path_matches(routes[i].pattern, r->path, id, &c.tail)) {
            run_route(&routes[i], &c, id);
            return;
        }
    http_reply_error(r, 404, "'%s %.200s' is not served by the local provider", r->method,
                     r->path);
}
