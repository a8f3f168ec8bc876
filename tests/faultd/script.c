/* The way of a request: rules, the plane that answers, the log; and the /_faultd/ routes. */
#include "plane.h"
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LOG_MAX = 100000, LOG_BODY = 2000 };

static const char *const names[] = {
    "reset",  "sandboxes", "paused",   "delay", "seed",        "page",
    "cap",    "cursor",    "v2",       "code",  "headers",     "rules",
    "add",    "template",  "metadata", "ttl",   "auto_resume", "auto_pause",
    "domain", "templates", "logs",     "build", "date", "uploads", NULL,
};
static const char *const build_names[] = {"steps", "step_ms", "wait_ms",
                                          "lines", "fail_at", NULL};

static void log_clear(struct plane *p)
{
    for (size_t i = 0; i < p->log.n; i++) {
        free(p->log.v[i].path);
        free(p->log.v[i].body);
        free(p->log.v[i].head);
    }
    ARR_CLEAR(&p->log);
    p->log_no++;
    p->start_ms = clock_mono_ms();
    p->most_open = p->open;
    p->requests = 0;
}

static void rules_clear(struct plane *p)
{
    for (size_t i = 0; i < p->rules.n; i++)
        rule_release(&p->rules.v[i]);
    ARR_CLEAR(&p->rules);
}

/* What there is, and how it goes. */
static void configure_plane(struct plane *p, const struct cJSON *j)
{
    const struct cJSON *build = json_get(j, "build");
    char *meta =
        json_is_object(json_get(j, "metadata")) ? json_text(json_get(j, "metadata")) : NULL;
    struct fill f = {.template_id = json_str(j, "template", NULL),
                     .meta = meta,
                     .ttl = json_i64(j, "ttl", 3600),
                     .add = json_bool(j, "add", false),
                     .auto_resume = json_bool(j, "auto_resume", false),
                     .auto_pause = json_bool(j, "auto_pause", false)};

    if (json_get(j, "sandboxes") || json_get(j, "paused"))
        plane_fill(p, json_i64(j, "sandboxes", 0), json_i64(j, "paused", 0), &f);
    free(meta);
    if (json_get(j, "templates"))
        tpl_fill(p, json_i64(j, "templates", 0));
    p->logs = json_i64(j, "logs", p->logs);
    p->build.steps = json_i64(build, "steps", p->build.steps);
    p->build.step_ms = json_i64(build, "step_ms", p->build.step_ms);
    p->build.wait_ms = json_i64(build, "wait_ms", p->build.wait_ms);
    p->build.lines = json_i64(build, "lines", p->build.lines);
    p->build.fail_at = json_i64(build, "fail_at", p->build.fail_at);
    if (json_str(j, "uploads", NULL)) {
        free(p->uploads_at);
        p->uploads_at = xstrdup(json_str(j, "uploads", NULL));
    }
    if (json_str(j, "domain", NULL)) {
        free(p->domain);
        p->domain = xstrdup(json_str(j, "domain", NULL));
    }
}

static void configure_answers(struct plane *p, const struct cJSON *j)
{
    const struct cJSON *low = json_first(json_get(j, "delay")),
                       *high = low ? json_next(low) : NULL;
    char *a = high ? json_text(low) : NULL, *b = high ? json_text(high) : NULL;

    p->seed = (uint64_t)json_i64(j, "seed", (int64_t)(p->seed & INT64_MAX >> 11));
    p->page = json_i64(j, "page", p->page);
    p->cap = json_i64(j, "cap", p->cap);
    p->offset_cursor =
        str_eq(json_str(j, "cursor", p->offset_cursor ? "offset" : ""), "offset");
    p->no_v2 = !json_bool(j, "v2", !p->no_v2);
    p->log_headers = json_bool(j, "headers", p->log_headers);
    p->no_code = !json_bool(j, "code", !p->no_code);
    p->no_date = !json_bool(j, "date", !p->no_date);
    if (high) {
        str_to_i64(a, 0, 600000, &p->delay_min);
        str_to_i64(b, p->delay_min, 600000, &p->delay_max);
    }
    free(a);
    free(b);
}

bool script_config(struct plane *p, const char *json, size_t len, char *why, size_t size)
{
    struct cJSON *j = json_parse(json, len, NULL);
    const struct cJSON *rules = json_get(j, "rules");
    bool ok =
        text_known(j, names, why, size) &&
        (!json_get(j, "build") || text_known(json_get(j, "build"), build_names, why, size));

    if (!ok) {
        json_free(j);
        return false;
    }
    if (json_bool(j, "reset", false)) {
        rules_clear(p);
        log_clear(p);
    }
    configure_answers(p, j);
    configure_plane(p, j);
    if (rules)
        rules_clear(p);
    for (const struct cJSON *r = json_first(rules); r && ok; r = json_next(r))
        ok = rule_add(p, r, why, size);
    json_free(j);
    return ok;
}

static void put_entry(struct jw *w, const struct entry *e)
{
    jw_obj(w, NULL);
    jw_i64(w, "ms", e->at_ms);
    jw_i64(w, "us", e->at_us);
    jw_i64(w, "delay", e->delay_ms);
    jw_str(w, "method", e->method);
    jw_str(w, "path", e->path);
    jw_i64(w, "status", e->status);
    jw_i64(w, "conn", e->conn);
    if (e->h2)
        jw_bool(w, "h2", true);
    if (e->over_ms >= 0) {
        jw_i64(w, "over_ms", e->over_ms);
        jw_i64(w, "bytes", e->bytes);
    }
    if (e->head)
        jw_str(w, "headers", e->head);
    if (e->body)
        jw_str(w, "body", e->body);
    jw_end(w);
}

static void put_log(struct plane *p, struct answer *a, bool brief)
{
    int64_t running = plane_count(p, true), paused = plane_count(p, false);
    struct jw w;

    plane_answer(a, 200, &w);
    jw_obj(&w, NULL);
    jw_i64(&w, "running", running);
    jw_i64(&w, "paused", paused);
    jw_i64(&w, "killed", (int64_t)p->boxes.n - running - paused);
    jw_i64(&w, "open", p->open);
    jw_i64(&w, "most_open", p->most_open);
    jw_i64(&w, "conns", p->conns_total);
    jw_i64(&w, "conns_open", p->conns_open);
    jw_i64(&w, "count", p->requests);
    jw_arr(&w, "requests");
    for (size_t i = 0; !brief && i < p->log.n; i++)
        put_entry(&w, &p->log.v[i]);
    jw_end(&w);
    jw_end(&w);
}

static int64_t now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static void note(struct exchange *x)
{
    struct plane *p = x->plane;
    const struct request *r = &x->req;
    struct entry *e;

    p->requests++;
    if (p->log.n >= LOG_MAX)
        return;
    e = ARR_PUSH(&p->log);
    e->at_ms = clock_mono_ms() - p->start_ms;
    str_copy(e->method, sizeof(e->method), r->method);
    e->path = xasprintf("%s%s%s", r->path, *r->query ? "?" : "", r->query);
    e->status = x->fault.how == END_SILENCE ? 0 : x->a.status;
    e->h2 = x->h2;
    e->conn = x->conn_no;
    e->at_us = now_us();
    e->delay_ms = x->a.delay_ms;
    e->over_ms = -1;
    x->entry = p->log.n;
    x->log_no = p->log_no;
    if (p->log_headers)
        e->head = xstrdup(r->head);
    if (r->len)
        e->body = xstrndup(r->body, r->len < LOG_BODY ? r->len : LOG_BODY);
}

/* The routes about faultd itself; false for any other. */
static bool about_faultd(struct exchange *x)
{
    struct plane *p = x->plane;
    char why[128];

    if (str_eq(x->req.path, "/_faultd/log")) {
        put_log(p, &x->a, str_eq(x->req.query, "brief"));
    } else if (str_eq(x->req.path, "/_faultd/config")) {
        x->a.status = 204;
        if (!script_config(p, x->req.body, x->req.len, why, sizeof(why)))
            plane_refuse(p, &x->a, 400, why);
    } else if (x->plain) {
        x->a.status = 400;
        buf_adds(&x->a.body, "{\"code\":400,\"message\":\"this port speaks TLS\"}");
    } else {
        return false;
    }
    exchange_ready(x);
    exchange_end(x);
    return true;
}

static void put_date(struct answer *a)
{
    time_t now = time(NULL);
    struct tm tm;
    char text[64];

    if (gmtime_r(&now, &tm) && strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm))
        buf_addf(&a->head, "Date: %s\r\n", text);
}

/* Carry the call out, as far as the rule lets, and answer. */
static void play(struct exchange *x, const struct rule *u)
{
    struct plane *p = x->plane;

    if (!p->no_date)
        put_date(&x->a);
    if ((!u || u->apply) && !data_route(x))
        plane_route(p, &x->req, &x->a);
    if (u)
        rule_stir(p, u, &x->req);
    if (u)
        rule_break_answer(u, x);
    note(x);
    exchange_ready(x);
    if (!x->stream)
        exchange_end(x);
}

static void nobody(struct exchange *x)
{
    (void)x;
}

static const struct carrier nowhere = {nobody};

static void on_late(struct timer *t)
{
    struct exchange *x = OWNER_OF(t, struct exchange, late);

    play(x, x->rule);
    if (x->carrier == &nowhere)
        exchange_free(x);
}

/* Who asked is gone, the call happens nevertheless. */
static void leave_behind(struct exchange *x)
{
    struct exchange *ghost = exchange_new(x->plane, &nowhere, NULL);
    char *target = xasprintf("%s?%s", x->req.path, x->req.query);

    exchange_request(ghost, x->req.method, target, x->req.head, x->req.body, x->req.len);
    ghost->rule = x->rule;
    ghost->conn_no = x->conn_no;
    ghost->h2 = x->h2;
    ghost->late.fire = on_late;
    loop_timer(&ghost->late, x->late.due - loop_now());
    loop_timer_stop(&x->late);
    x->rule = NULL;
    free(target);
}

void script_begin(struct exchange *x)
{
    struct plane *p = x->plane;
    struct rule *u;

    if (about_faultd(x))
        return;
    x->counted = true;
    if (++p->open > p->most_open)
        p->most_open = p->open;
    if (p->delay_max > 0)
        x->a.delay_ms =
            (int)(p->delay_min +
                  (int64_t)(text_random(&p->seed) % (uint64_t)(p->delay_max - p->delay_min + 1)));
    u = rule_pick(x);
    if (u)
        rule_break_transport(u, x);
    if (!u || u->late_ms <= 0) {
        play(x, u);
        return;
    }
    x->rule = rule_keep(u);
    x->late.fire = on_late;
    loop_timer(&x->late, u->late_ms);
}

void script_end(struct exchange *x)
{
    struct plane *p = x->plane;

    if (x->counted)
        p->open--;
    if (x->entry && x->log_no == p->log_no) {
        p->log.v[x->entry - 1].over_ms = clock_mono_ms() - p->start_ms;
        p->log.v[x->entry - 1].bytes = (int64_t)x->taken;
    }
    if (x->late.at)
        leave_behind(x);
    if (x->rule)
        rule_release(x->rule);
    free(x->rule);
}
