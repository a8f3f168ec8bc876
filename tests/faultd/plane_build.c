/* Builds of templates: their log is laid out when they start, and time uncovers it. */
#include "plane.h"
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_MAX = 100, STEPS_MAX = 1000 };

static void line(struct build *b, const char *step, bool bad, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static void line(struct build *b, const char *step, bool bad, const char *fmt, ...)
{
    struct entry_line *l = ARR_PUSH(&b->lines);
    char text[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    l->at_ms = b->done_ms;
    l->text = xstrdup(text);
    l->bad = bad;
    str_copy(l->step, sizeof(l->step), step);
}

struct build *build_new(struct tpl *t)
{
    struct build *b = ARR_PUSH(&t->builds);

    rand_uuid(b->id);
    b->created_ms = clock_wall_ms();
    return b;
}

void build_release(struct build *b)
{
    for (size_t i = 0; i < b->lines.n; i++)
        free(b->lines.v[i].text);
    ARR_RELEASE(&b->lines);
}

static int64_t count_steps(const struct cJSON *request)
{
    int64_t n = 0;

    for (const struct cJSON *s = json_first(json_get(request, "steps")); s; s = json_next(s))
        n++;
    return n;
}

static void build_start(struct plane *p, struct build *b, const struct cJSON *request)
{
    int64_t n = p->build.steps ? p->build.steps : count_steps(request);
    const char *from =
        json_str(request, "fromImage", json_str(request, "fromTemplate", "base"));
    char step[24];

    b->started_ms = b->done_ms = clock_wall_ms() + p->build.wait_ms;
    line(b, "base", false, "[base] FROM %s [0123456789abcdef]", from);
    line(b, "base", false, "[base] DEFAULT USER user [0123456789abcdef]");
    b->done_ms += p->build.step_ms;
    for (int64_t i = 1; i <= n && i <= STEPS_MAX; i++) {
        snprintf(step, sizeof(step), "%lld", (long long)i);
        line(b, step, false, "%s[builder %lld/%lld] RUN step %lld [fedcba9876543210]",
             i == 1 ? "CACHED " : "", (long long)i, (long long)n, (long long)i);
        for (int64_t k = 1; k <= p->build.lines; k++)
            line(b, step, false, "[builder %lld/%lld] [stdout]: output %lld of step %lld",
                 (long long)i, (long long)n, (long long)k, (long long)i);
        b->done_ms += p->build.step_ms;
        if (i == p->build.fail_at) {
            line(b, step, true, "[builder %lld/%lld] [stderr]: it broke", (long long)i,
                 (long long)n);
            line(b, step, true, "Build failed: step %lld ended with exit status 1",
                 (long long)i);
            b->fails = true;
            return;
        }
    }
    line(b, "finalize", false, "[finalize] Finalizing template build [0011223344556677]");
    b->done_ms += p->build.step_ms;
    line(b, "optimize", false, "[optimize] Optimizing template [7766554433221100]");
    b->done_ms += p->build.step_ms;
}

void build_ready(struct build *b)
{
    b->started_ms = b->done_ms = b->created_ms;
}

const char *build_status(const struct build *b)
{
    int64_t now = clock_wall_ms();

    if (!b->started_ms || now < b->started_ms)
        return "waiting";
    return now < b->done_ms ? "building" : b->fails ? "error" : "ready";
}

/* ---- answers ---- */

static void put_line(struct jw *w, const struct entry_line *l)
{
    jw_obj(w, NULL);
    plane_time(w, "timestamp", l->at_ms);
    jw_str(w, "level", l->bad ? "error" : "info");
    jw_str(w, "message", l->text);
    jw_str(w, "step", l->step);
    jw_end(w);
}

static void put_reason(struct jw *w, const struct build *b)
{
    const struct entry_line *last = &b->lines.v[b->lines.n - 1];

    jw_obj(w, "reason");
    jw_str(w, "message", last->text);
    jw_str(w, "step", last->step);
    jw_arr(w, "logEntries");
    for (size_t i = 0; i < b->lines.n; i++)
        if (b->lines.v[i].bad)
            put_line(w, &b->lines.v[i]);
    jw_end(w);
    jw_end(w);
}

static void status(struct plane *p, const struct tpl *t, const struct build *b,
                   const struct request *r, struct answer *a)
{
    int64_t now = clock_wall_ms(), offset, limit;
    struct jw w;

    if (!plane_number(p, r, a, "logsOffset", 0, 0, INT32_MAX, &offset) ||
        !plane_number(p, r, a, "limit", PAGE_MAX, 1, PAGE_MAX, &limit))
        return;
    plane_answer(a, 200, &w);
    jw_obj(&w, NULL);
    jw_str(&w, "templateID", t->id);
    jw_str(&w, "buildID", b->id);
    jw_str(&w, "status", build_status(b));
    jw_arr(&w, "logs");
    jw_end(&w);
    jw_arr(&w, "logEntries");
    for (size_t i = (size_t)offset; i < b->lines.n && (int64_t)i < offset + limit; i++)
        if (b->lines.v[i].at_ms <= now)
            put_line(&w, &b->lines.v[i]);
    jw_end(&w);
    if (str_eq(build_status(b), "error"))
        put_reason(&w, b);
    jw_end(&w);
}

static void logs(struct plane *p, const struct build *b, const struct request *r,
                 struct answer *a)
{
    int64_t now = clock_wall_ms(), cursor, limit, given = 0;
    char direction[16], level[16];
    bool back;
    struct jw w;

    if (!plane_number(p, r, a, "cursor", -1, 0, INT64_MAX, &cursor) ||
        !plane_number(p, r, a, "limit", PAGE_MAX, 1, PAGE_MAX, &limit))
        return;
    query_value(r->query, "direction", direction, sizeof(direction));
    query_value(r->query, "level", level, sizeof(level));
    back = str_eq(direction, "backward");
    plane_answer(a, 200, &w);
    jw_obj(&w, NULL);
    jw_arr(&w, "logs");
    for (size_t k = 0; k < b->lines.n && given < limit; k++) {
        const struct entry_line *l = &b->lines.v[back ? b->lines.n - 1 - k : k];
        if (l->at_ms > now || (cursor >= 0 && (back ? l->at_ms > cursor : l->at_ms < cursor)) ||
            (str_eq(level, "error") && !l->bad))
            continue;
        put_line(&w, l);
        given++;
    }
    jw_end(&w);
    jw_end(&w);
}

static void start(struct plane *p, struct tpl *t, struct build *b, const struct request *r,
                  struct answer *a)
{
    struct cJSON *j = json_parse(r->body, r->len, NULL);

    if (b->started_ms) {
        plane_refuse(p, a, 400, "build was already started");
    } else if (!json_str(j, "fromImage", NULL) && !json_str(j, "fromTemplate", NULL)) {
        plane_refuse(p, a, 400, "fromImage or fromTemplate is needed");
    } else {
        build_start(p, b, j);
        t->updated_ms = clock_wall_ms();
        a->status = 202; /* with no body, and its length said */
    }
    json_free(j);
}

void build_route(struct plane *p, struct tpl *t, const char *rest, const struct request *r,
                 struct answer *a)
{
    size_t len = strcspn(rest, "/");
    bool get = str_eq(r->method, "GET");
    struct build *b = NULL;

    for (size_t i = 0; i < t->builds.n; i++)
        if (strncmp(t->builds.v[i].id, rest, len) == 0 && !t->builds.v[i].id[len])
            b = &t->builds.v[i];
    if (!b)
        plane_refuse(p, a, 400, "build not found");
    else if (!rest[len] && str_eq(r->method, "POST"))
        start(p, t, b, r, a);
    else if (str_eq(rest + len, "/status") && get)
        status(p, t, b, r, a);
    else if (str_eq(rest + len, "/logs") && get)
        logs(p, b, r, a);
    else
        plane_refuse(p, a, 404, "no such route");
}
