/* Rules that break answers, the log of what came, and the /_faultd/ routes. */
#include "plane.h"
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LOG_MAX = 100000, LOG_BODY = 2000 };

static void rule_release(struct rule *r)
{
    free(r->method);
    free(r->path);
    free(r->retry_after);
    free(r->body);
    free(r->trailer);
    free(r->sandbox);
    free(r->spawn_meta);
}

static void add_rule(struct plane *p, const struct cJSON *j)
{
    struct rule *r = ARR_PUSH(&p->rules);

    r->method = xstrdup(json_str(j, "method", NULL));
    r->path = xstrdup(json_str(j, "path", "*"));
    r->retry_after = xstrdup(json_str(j, "retry_after", NULL));
    r->body = xstrdup(json_str(j, "body", NULL));
    r->trailer = xstrdup(json_str(j, "trailer", NULL));
    r->sandbox = xstrdup(json_str(j, "sandbox", NULL));
    r->after = json_i64(j, "after", 0);
    r->replay = json_i64(j, "replay", 0);
    r->reorder = json_i64(j, "reorder", 0);
    r->skip = json_i64(j, "skip", 0);
    r->times = json_i64(j, "times", 0);
    r->endless = r->times == 0;
    r->percent = json_i64(j, "percent", 100);
    r->status = json_i64(j, "status", 0);
    r->cut = json_i64(j, "cut", -1);
    r->cut_body = json_i64(j, "cut_body", -1);
    r->delay_ms = json_i64(j, "delay_ms", -1);
    r->delay_to = json_i64(j, "delay_to", 0);
    r->drip = json_i64(j, "drip", 0);
    r->back_ms = json_i64(j, "back_ms", -1);
    r->spawn = json_i64(j, "spawn", 0);
    r->spawn_meta =
        json_is_object(json_get(j, "spawn_meta")) ? json_text(json_get(j, "spawn_meta")) : NULL;
    r->late_ms = json_i64(j, "late_ms", 0);
    r->stall_all = str_eq(json_str(j, "stall", NULL), "connection");
    r->stall = r->stall_all || json_bool(j, "stall", false);
    r->rst = json_bool(j, "rst", false);
    r->rst_stream = json_bool(j, "rst_stream", false);
    r->goaway = json_bool(j, "goaway", false);
    r->refuse = json_bool(j, "refuse", false);
    r->apply = json_bool(j, "apply", r->status == 0 && !r->refuse);
}

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
    if (json_str(j, "domain", NULL)) {
        free(p->domain);
        p->domain = xstrdup(json_str(j, "domain", NULL));
    }
}

bool script_config(struct plane *p, const char *json, size_t len)
{
    struct cJSON *j = json_parse(json, len, NULL);
    const struct cJSON *delay = json_get(j, "delay"), *rules = json_get(j, "rules");

    if (!json_is_object(j)) {
        json_free(j);
        return false;
    }
    if (json_bool(j, "reset", false)) {
        rules_clear(p);
        log_clear(p);
    }
    p->seed = (uint64_t)json_i64(j, "seed", (int64_t)(p->seed & INT64_MAX >> 11));
    p->page = json_i64(j, "page", p->page);
    p->cap = json_i64(j, "cap", p->cap);
    p->offset_cursor =
        str_eq(json_str(j, "cursor", p->offset_cursor ? "offset" : ""), "offset");
    p->no_v2 = !json_bool(j, "v2", !p->no_v2);
    p->log_headers = json_bool(j, "headers", p->log_headers);
    p->no_code = !json_bool(j, "code", !p->no_code);
    if (json_is_array(delay) && json_first(delay) && json_next(json_first(delay))) {
        char *lo = json_text(json_first(delay)), *hi = json_text(json_next(json_first(delay)));
        str_to_i64(lo, 0, 600000, &p->delay_min);
        str_to_i64(hi, 0, 600000, &p->delay_max);
        free(lo);
        free(hi);
    }
    configure_plane(p, j);
    if (rules)
        rules_clear(p);
    for (const struct cJSON *r = json_first(rules); r; r = json_next(r))
        add_rule(p, r);
    json_free(j);
    return true;
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
    int64_t running = 0, paused = 0, gone = 0;
    struct jw w;

    for (size_t i = 0; i < p->boxes.n; i++) {
        const struct box *b = p->boxes.v[i];
        gone += b->gone;
        running += !b->gone && b->running;
        paused += !b->gone && !b->running;
    }
    a->status = 200;
    jw_init(&w, &a->body);
    jw_obj(&w, NULL);
    jw_i64(&w, "running", running);
    jw_i64(&w, "paused", paused);
    jw_i64(&w, "killed", gone);
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

/* The first rule that matches and is due. */
static struct rule *pick(struct plane *p, const struct request *r)
{
    char id[64] = "";

    header_value(r->head, "E2b-Sandbox-Id", id, sizeof(id));
    for (size_t i = 0; i < p->rules.n; i++) {
        struct rule *u = &p->rules.v[i];
        if ((u->method && !str_eq(u->method, r->method)) || fnmatch(u->path, r->path, 0) != 0 ||
            (u->sandbox && fnmatch(u->sandbox, id, 0) != 0))
            continue;
        if (u->skip > 0) {
            u->skip--;
            continue;
        }
        if ((!u->endless && u->times <= 0) || (int64_t)(plane_random(p) % 100) >= u->percent)
            continue;
        u->times--;
        return u;
    }
    return NULL;
}

static void break_answer(const struct rule *u, struct exchange *x)
{
    struct answer *a = &x->a;

    if (u->status) {
        a->status = (int)u->status;
        buf_clear(&a->body);
        buf_clear(&a->head);
        if (u->body)
            buf_adds(&a->body, u->body);
        else if (u->status >= 400)
            buf_addf(&a->body, "{\"code\":%d,\"message\":\"scripted\"}", a->status);
    }
    if (u->retry_after)
        buf_addf(&a->head, "Retry-After: %s\r\n", u->retry_after);
    if (u->delay_ms >= 0)
        a->delay_ms = (int)u->delay_ms;
    if (u->delay_ms >= 0 && u->delay_to > u->delay_ms)
        a->delay_ms +=
            (int)(plane_random(x->plane) % (uint64_t)(u->delay_to - u->delay_ms + 1));
}

/* How the transport is broken: known before the call is carried out. */
static void break_transport(const struct rule *u, struct exchange *x)
{
    struct fault *f = &x->fault;
    bool nowhere = u->cut < 0 && u->cut_body < 0;

    f->cut = x->h2 ? -1 : u->cut;
    f->cut_body = u->cut_body >= 0 ? u->cut_body : x->h2 ? u->cut : -1;
    f->how = u->rst ? END_RST : u->rst_stream || u->refuse ? END_STREAM : u->stall ? END_SILENCE : END_FIN;
    if (nowhere && (u->rst || u->rst_stream || u->refuse || u->stall_all))
        *(x->h2 ? &f->cut_body : &f->cut) = 0;
    f->stall_all = u->stall_all;
    f->goaway = u->goaway;
    f->refuse = u->refuse;
    f->drip_ms = u->drip;
    f->after = u->after;
    f->replay = u->replay;
    f->reorder = u->reorder;
    f->trailer = xstrdup(u->trailer);
}

/* What happens besides. */
static void stir(struct plane *p, const struct rule *u, const struct request *r)
{
    struct fill f = {.meta = u->spawn_meta, .ttl = 3600, .add = true};

    if (u->back_ms >= 0 && strrchr(r->path, '/'))
        box_come_back(p, strrchr(r->path, '/') + 1, u->back_ms);
    if (u->spawn > 0)
        plane_fill(p, u->spawn, 0, &f);
}

/* The routes about faultd itself; false for any other. */
static bool about_faultd(struct exchange *x)
{
    struct plane *p = x->plane;

    if (str_eq(x->req.path, "/_faultd/log")) {
        put_log(p, &x->a, str_eq(x->req.query, "brief"));
    } else if (str_eq(x->req.path, "/_faultd/config")) {
        x->a.status = script_config(p, x->req.body, x->req.len) ? 204 : 400;
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

/* Carry the call out, as far as the rule lets, and answer. */
static void play(struct exchange *x, const struct rule *u)
{
    struct plane *p = x->plane;

    if ((!u || u->apply) && !data_route(x))
        plane_route(p, &x->req, &x->a);
    if (u)
        stir(p, u, &x->req);
    if (u)
        break_answer(u, x);
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

/* The rule as it is now: a configuration that comes in between may end it. */
static struct rule *keep_rule(const struct rule *u)
{
    struct rule *k = xcalloc(1, sizeof(*k));

    *k = *u;
    k->method = k->path = k->sandbox = k->trailer = NULL;
    k->retry_after = xstrdup(u->retry_after);
    k->body = xstrdup(u->body);
    k->spawn_meta = xstrdup(u->spawn_meta);
    return k;
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
                  (int64_t)(plane_random(p) % (uint64_t)(p->delay_max - p->delay_min + 1)));
    u = pick(p, &x->req);
    if (u)
        break_transport(u, x);
    if (!u || u->late_ms <= 0) {
        play(x, u);
        return;
    }
    x->rule = keep_rule(u);
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
