/* Routes of the control API. Every answer with a body is JSON; errors have the
 * cloud's {"code","message"} shape, since clients decide by the body's code. */
#include "ctl_priv.h"
#include <cct/local/http_srv.h>
#include <cct/local/provider.h>
#include <cct/secrets/digest.h>
#include <cct/util/clock.h>
#include <cct/util/xalloc.h>

#include <stdlib.h>
#include <string.h>

static void route_health(struct ctl_call *c)
{
    http_reply(c->r, 204, NULL, 0);
}

/* '{}' in a pattern is a sandbox, each '*' a free part. First match wins. */
static const struct route {
    const char *method, *pattern;
    void (*fn)(struct ctl_call *c);
    bool v2;
} routes[] = {
    {"GET", "/health", route_health, false},
    {"POST", "/sandboxes", ctl_sandbox_create, false},
    {"POST", "/v2/sandboxes", ctl_sandbox_create, true},
    {"GET", "/v2/sandboxes", ctl_sandbox_list, true},
    {"GET", "/sandboxes", ctl_sandbox_list_v1, false},
    {"GET", "/sandboxes/metrics", ctl_metrics_many, false},
    {"GET", "/sandboxes/{}", ctl_sandbox_get, false},
    {"DELETE", "/sandboxes/{}", ctl_sandbox_delete, false},
    {"POST", "/sandboxes/{}/pause", ctl_sandbox_pause, false},
    {"POST", "/sandboxes/{}/resume", ctl_sandbox_resume, false},
    {"POST", "/sandboxes/{}/connect", ctl_sandbox_connect, false},
    {"POST", "/v2/sandboxes/{}/connect", ctl_sandbox_connect, true},
    {"POST", "/sandboxes/{}/timeout", ctl_sandbox_timeout, false},
    {"POST", "/sandboxes/{}/refreshes", ctl_sandbox_refreshes, false},
    {"PUT", "/sandboxes/{}/network", ctl_sandbox_network, false},
    {"GET", "/sandboxes/{}/metrics", ctl_metrics_one, false},
    {"GET", "/sandboxes/{}/logs", ctl_logs, false},
    {"GET", "/v2/sandboxes/{}/logs", ctl_logs, true},
    {"GET", "/events/sandboxes", ctl_events_all, false},
    {"GET", "/events/sandboxes/*", ctl_events_one, false},
    {"GET", "/teams/*/metrics", ctl_team_metrics, false},
    {"GET", "/teams/*/metrics/max", ctl_team_max, false},
    {"GET", "/templates", ctl_tpl_list, false},
    {"GET", "/v2/templates", ctl_tpl_list, true},
    {"GET", "/templates/aliases/*", ctl_tpl_alias, false},
    {"POST", "/templates/tags", ctl_tpl_tag, false},
    {"DELETE", "/templates/tags", ctl_tpl_untag, false},
    {"GET", "/templates/*", ctl_tpl_get, false},
    {"DELETE", "/templates/*", ctl_tpl_delete, false},
    {"PATCH", "/templates/*", ctl_tpl_update, false},
    {"PATCH", "/v2/templates/*", ctl_tpl_update, true},
    {"GET", "/templates/*/tags", ctl_tpl_tags, false},
    {"GET", "/templates/*/files/*", ctl_tpl_files, false},
    {"POST", "/v3/templates", ctl_tpl_request, true},
    {"POST", "/v2/templates/*/builds/*", ctl_tpl_start, true},
    {"GET", "/templates/*/builds/*/status", ctl_tpl_status, false},
    {"GET", "/templates/*/builds/*/logs", ctl_tpl_logs, false},
    {"POST", "/v2/templates", ctl_tpl_old, true},
    {"POST", "/templates", ctl_tpl_old, false},
    {"POST", "/templates/*", ctl_tpl_old, false},
    {"POST", "/templates/*/builds/*", ctl_tpl_old, false},
};

/* What the cloud has and this provider has not, with any method; a pattern that
 * ends in '/' is for everything below it. */
static const struct lack {
    const char *pattern;
    int status;
    const char *why;
} lacks[] = {
    {"/sandboxes/{}/fork", 501, "the local provider cannot fork sandboxes; make another one"},
    {"/sandboxes/{}/snapshots", 501,
     "the local provider makes no snapshots; pause the sandbox, or build a template"},
    {"/snapshots", 501, "the local provider makes no snapshots"},
    {"/volumes", 501, "the local provider has no volumes; upload files instead"},
    {"/volumes/", 501, "the local provider has no volumes; upload files instead"},
    {"/secrets", 501, "the local provider keeps no secrets; pass them as envVars"},
    {"/secrets/", 501, "the local provider keeps no secrets; pass them as envVars"},
    {"/events/webhooks", 501, "the local provider sends no webhooks; ask /events/sandboxes"},
    {"/events/webhooks/", 501, "the local provider sends no webhooks; ask /events/sandboxes"},
    {"/teams", 401, "teams are listed for a bearer token, and a local provider has one team"},
    {"/api-keys", 401, "keys are managed with a bearer token; the local key is in local.json"},
    {"/api-keys/", 401, "keys are managed with a bearer token; the local key is in local.json"},
    {"/access-tokens", 401, "a local provider knows no access tokens, only its API key"},
    {"/access-tokens/", 401, "a local provider knows no access tokens, only its API key"},
    {"/nodes", 501, "a local provider has no nodes: it is one machine"},
    {"/nodes/", 501, "a local provider has no nodes: it is one machine"},
    {"/admin/", 501, "a local provider has no operators' interface"},
};

/* The pieces of a path that a pattern leaves free. */
struct match {
    struct piece {
        const char *p;
        size_t len;
    } box, part[CTL_PARTS_MAX];
    size_t parts;
};

/* A free piece is one segment of the path, never empty. */
static bool path_matches(const char *pattern, const char *path, struct match *m)
{
    memset(m, 0, sizeof(*m));
    while (*pattern) {
        if (*pattern != '{' && *pattern != '*') {
            if (*pattern++ != *path++)
                return false;
            continue;
        }
        struct piece piece = {path, strcspn(path, "/")};
        if (piece.len == 0)
            return false;
        if (*pattern == '{')
            m->box = piece;
        else if (m->parts < CTL_PARTS_MAX)
            m->part[m->parts++] = piece;
        path += piece.len;
        pattern += *pattern == '{' ? 2 : 1;
    }
    return *path == '\0';
}

static bool is_authorized(const struct provider *p, const struct http_req *r)
{
    return r->key && digest_equal(r->key, strlen(r->key), p->key, strlen(p->key));
}

void ctl_head(struct http_req *r, void *arg)
{
    if (ctl_tpl_upload(arg, r))
        return;
    if (r->has_body && !is_authorized(arg, r))
        http_reply_error(r, 401, "the API key is missing or not the one of this provider");
}

/* The body as an object; false after an answer. */
static bool take_body(struct ctl_call *c, struct cJSON **out)
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

/* The sandbox of the path; false after an answer. `id-client` is an old form. */
static bool take_sandbox(struct ctl_call *c, const struct piece *piece)
{
    char *id = xstrndup(piece->p, piece->len);
    char *dash = strchr(id, '-');
    bool odd = dash && strchr(dash + 1, '-');
    if (dash)
        *dash = '\0';
    c->b = odd ? NULL : sbox_find(c->p, id);
    if (odd)
        http_reply_error(c->r, 400, "'%.*s' is no sandbox id", (int)piece->len, piece->p);
    else if (!c->b)
        http_reply_error(c->r, 404, "sandbox '%.80s' not found", id);
    free(id);
    return c->b != NULL;
}

static void run_route(const struct route *route, struct ctl_call *c, const struct match *m)
{
    struct cJSON *body = NULL;
    c->v2 = route->v2;
    if (m->box.len > 0 && !take_sandbox(c, &m->box))
        return;
    for (size_t i = 0; i < m->parts; i++) {
        c->part[i] = xstrndup(m->part[i].p, m->part[i].len);
        ctl_unescape_path(c->part[i]);
    }
    if (take_body(c, &body))
        route->fn(c);
    json_free(body);
    for (size_t i = 0; i < m->parts; i++)
        free(c->part[i]);
}

/* Answer for what is deliberately missing; false when the path is not among it. */
static bool reply_lack(struct ctl_call *c)
{
    struct match m;
    for (size_t i = 0; i < sizeof(lacks) / sizeof(lacks[0]); i++) {
        size_t len = strlen(lacks[i].pattern);
        bool below = lacks[i].pattern[len - 1] == '/';
        if (below ? strncmp(c->r->path, lacks[i].pattern, len) != 0
                  : !path_matches(lacks[i].pattern, c->r->path, &m))
            continue;
        if (below || m.box.len == 0 || take_sandbox(c, &m.box))
            http_reply_error(c->r, lacks[i].status, "%s", lacks[i].why);
        return true;
    }
    return false;
}

/* The path is served, but not with this method: say with which. */
static void reply_wrong_method(struct http_req *r, const char *allow)
{
    http_reply_header(r, "Allow", allow);
    http_reply_error(r, 405, "'%.200s' is served for %s, not for %s", r->path, allow,
                     r->method);
}

void ctl_handle(struct http_req *r, void *arg)
{
    struct ctl_call c = {.p = arg, .r = r};
    struct match m;
    struct buf allow = BUF_INIT;
    c.p->used_ms = clock_mono_ms();
    if (strcmp(r->path, "/health") != 0 && !is_authorized(c.p, r)) {
        http_reply_error(r, 401, "the API key is missing or not the one of this provider");
        return;
    }
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        if (!path_matches(routes[i].pattern, r->path, &m))
            continue;
        if (strcmp(routes[i].method, r->is_head ? "GET" : r->method) == 0) {
            buf_release(&allow);
            run_route(&routes[i], &c, &m);
            return;
        }
        buf_addf(&allow, "%s%s", allow.len ? ", " : "", routes[i].method);
    }
    if (allow.len == 0 && reply_lack(&c))
        return;
    if (allow.len > 0)
        reply_wrong_method(r, buf_str(&allow));
    else
        http_reply_error(r, 404, "'%s %.200s' is not served by the local provider", r->method,
                         r->path);
    buf_release(&allow);
}
