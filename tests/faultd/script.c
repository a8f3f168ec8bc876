/* Rules that break answers, the log of what came, and the /_faultd/ routes. */
#include "faultd.h"
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOG_MAX = 100000, LOG_BODY = 2000 };

static void rule_release(struct rule *r)
{
    free(r->method);
    free(r->path);
    free(r->retry_after);
    free(r->body);
}

static void add_rule(struct plane *p, const struct cJSON *j)
{
    struct rule *r = ARR_PUSH(&p->rules);

    r->method = xstrdup(json_str(j, "method", NULL));
    r->path = xstrdup(json_str(j, "path", "*"));
    r->retry_after = xstrdup(json_str(j, "retry_after", NULL));
    r->body = xstrdup(json_str(j, "body", NULL));
    r->skip = json_i64(j, "skip", 0);
    r->times = json_i64(j, "times", 0);
    r->endless = r->times == 0;
    r->percent = json_i64(j, "percent", 100);
    r->status = json_i64(j, "status", 0);
    r->cut = json_i64(j, "cut", -1);
    r->delay_ms = json_i64(j, "delay_ms", -1);
    r->stall = json_bool(j, "stall", false);
    r->apply = json_bool(j, "apply", r->status == 0);
}

static void log_clear(struct plane *p)
{
    for (size_t i = 0; i < p->log.n; i++) {
        free(p->log.v[i].path);
        free(p->log.v[i].body);
    }
    ARR_CLEAR(&p->log);
    p->start_ms = clock_mono_ms();
    p->most_open = p->open;
}

static void rules_clear(struct plane *p)
{
    for (size_t i = 0; i < p->rules.n; i++)
        rule_release(&p->rules.v[i]);
    ARR_CLEAR(&p->rules);
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
    p->offset_cursor = str_eq(json_str(j, "cursor", p->offset_cursor ? "offset" : ""), "offset");
    p->no_v2 = !json_bool(j, "v2", !p->no_v2);
    p->no_code = !json_bool(j, "code", !p->no_code);
    if (json_is_array(delay) && json_first(delay) && json_next(json_first(delay))) {
        char *lo = json_text(json_first(delay)), *hi = json_text(json_next(json_first(delay)));
        str_to_i64(lo, 0, 600000, &p->delay_min);
        str_to_i64(hi, 0, 600000, &p->delay_max);
        free(lo);
        free(hi);
    }
    if (json_get(j, "sandboxes") || json_get(j, "paused"))
        plane_fill(p, json_i64(j, "sandboxes", 0), json_i64(j, "paused", 0));
    if (rules)
        rules_clear(p);
    for (const struct cJSON *r = json_first(rules); r; r = json_next(r))
        add_rule(p, r);
    json_free(j);
    return true;
}

static void put_log(struct plane *p, struct answer *a)
{
    int64_t running = 0, paused = 0, gone = 0;
    struct jw w;

    for (size_t i = 0; i < p->boxes.n; i++) {
        const struct box *b = &p->boxes.v[i];
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
    jw_i64(&w, "most_open", p->most_open);
    jw_arr(&w, "requests");
    for (size_t i = 0; i < p->log.n; i++) {
        const struct entry *e = &p->log.v[i];
        jw_obj(&w, NULL);
        jw_i64(&w, "ms", e->at_ms);
        jw_str(&w, "method", e->method);
        jw_str(&w, "path", e->path);
        jw_i64(&w, "status", e->status);
        if (e->body)
            jw_str(&w, "body", e->body);
        jw_end(&w);
    }
    jw_end(&w);
    jw_end(&w);
}

static void note(struct plane *p, const struct request *r, const struct answer *a)
{
    struct entry *e;

    if (p->log.n >= LOG_MAX)
        return;
    e = ARR_PUSH(&p->log);
    e->at_ms = clock_mono_ms() - p->start_ms;
    str_copy(e->method, sizeof(e->method), r->method);
    e->path = xasprintf("%s%s%s", r->path, *r->query ? "?" : "", r->query);
    e->status = a->stall ? 0 : a->status;
    if (r->len)
        e->body = xstrndup(r->body, r->len < LOG_BODY ? r->len : LOG_BODY);
}

/* The first rule that matches and is due. */
static struct rule *pick(struct plane *p, const struct request *r)
{
    for (size_t i = 0; i < p->rules.n; i++) {
        struct rule *u = &p->rules.v[i];
        if ((u->method && !str_eq(u->method, r->method)) || fnmatch(u->path, r->path, 0) != 0)
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

static void break_answer(const struct rule *u, struct answer *a)
{
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
    a->cut = u->cut;
    a->stall = u->stall;
}

void script_answer(struct plane *p, const struct request *r, struct answer *a)
{
    struct rule *u;

    if (str_eq(r->path, "/_faultd/log")) {
        put_log(p, a);
        return;
    }
    if (str_eq(r->path, "/_faultd/config")) {
        a->status = script_config(p, r->body, r->len) ? 204 : 400;
        return;
    }
    if (p->delay_max > 0)
        a->delay_ms = (int)(p->delay_min + (int64_t)(plane_random(p) %
                            (uint64_t)(p->delay_max - p->delay_min + 1)));
    u = pick(p, r);
    if (!u || u->apply)
        plane_route(p, r, a);
    if (u)
        break_answer(u, a);
    note(p, r, a);
}
