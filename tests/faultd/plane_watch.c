/* What there is to watch: metrics, logs, events, the team's numbers. The values are made
 * up, but the same for the same sandbox and time. */
#include "plane.h"
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLE_MS = 5000, SAMPLES_MAX = 2000, IDS_MAX = 100, LOGS_MAX = 1000 };

/* ---- metrics ---- */

static void put_metric(struct jw *w, const char *name, const struct box *b, int64_t at_ms)
{
    int64_t wave = (at_ms / SAMPLE_MS + b->id[1]) % 100;

    jw_obj(w, name);
    plane_time(w, "timestamp", at_ms);
    jw_i64(w, "timestampUnix", at_ms / 1000);
    jw_i64(w, "cpuCount", 2);
    jw_num(w, "cpuUsedPct", (double)wave + 0.25);
    jw_i64(w, "memUsed", (100 + wave) << 20);
    jw_i64(w, "memTotal", 1024LL << 20);
    jw_i64(w, "memCache", 10LL << 20);
    jw_i64(w, "diskUsed", (200 + wave) << 20);
    jw_i64(w, "diskTotal", 1024LL << 20);
    jw_end(w);
}

void watch_many(struct plane *p, const struct request *r, struct answer *a)
{
    char *ids = query_text(r->query, "sandbox_ids"), *save = NULL;
    int64_t now = clock_wall_ms() / SAMPLE_MS * SAMPLE_MS;
    struct jw w;
    int n = 0;

    plane_answer(a, 200, &w);
    jw_obj(&w, NULL);
    jw_obj(&w, "sandboxes");
    for (char *id = ids ? strtok_r(ids, ",", &save) : NULL; id;
         id = strtok_r(NULL, ",", &save)) {
        const struct box *b = plane_find(p, id, strlen(id));
        if (b && b->running) /* who has no samples is left out */
            put_metric(&w, id, b, now);
        n++;
    }
    jw_end(&w);
    jw_end(&w);
    free(ids);
    if (n < 1 || n > IDS_MAX)
        plane_refuse(p, a, 400, "sandbox_ids: 1 to 100 are needed");
}

void watch_metrics(struct plane *p, const struct box *b, const struct request *r,
                   struct answer *a)
{
    int64_t start, end, from, to = b->running ? clock_wall_ms() : b->end_ms;
    struct jw w;

    if (!plane_number(p, r, a, "start", b->started_ms / 1000, 0, INT32_MAX, &start) ||
        !plane_number(p, r, a, "end", to / 1000, 0, INT32_MAX, &end))
        return;
    from = start * 1000 > b->started_ms ? start * 1000 : b->started_ms;
    to = end * 1000 + 999 < to ? end * 1000 + 999 : to;
    plane_answer(a, 200, &w);
    jw_arr(&w, NULL);
    for (int n = 0; from <= to && n < SAMPLES_MAX; from += SAMPLE_MS, n++)
        put_metric(&w, NULL, b, from);
    jw_end(&w);
}

/* ---- logs ---- */

static bool log_line(const struct plane *p, const struct box *b, int64_t n, struct jw *w,
                     bool v1, const char *search)
{
    char message[64], *line;
    struct buf text = BUF_INIT;
    struct jw l;

    if (n)
        snprintf(message, sizeof(message), "log line %lld of %lld", (long long)n,
                 (long long)p->logs);
    else
        snprintf(message, sizeof(message), "sandbox started");
    if (search && *search && !strstr(message, search))
        return false;
    jw_obj(w, NULL);
    plane_time(w, "timestamp", b->started_ms + n);
    if (v1) { /* its line is JSON in a string */
        jw_init(&l, &text);
        jw_obj(&l, NULL);
        jw_str(&l, "level", "info");
        jw_str(&l, "message", message);
        jw_str(&l, "logger", "envd");
        jw_end(&l);
        line = buf_detach(&text, NULL);
        jw_str(w, "line", line);
        free(line);
    } else {
        jw_str(w, "level", n % 10 == 9 ? "warn" : "info");
        jw_str(w, "message", message);
        jw_obj(w, "fields");
        jw_str(w, "logger", "envd");
        jw_end(w);
    }
    jw_end(w);
    return true;
}

static void old_logs(const struct plane *p, const struct box *b, struct answer *a,
                     int64_t first, int64_t limit)
{
    struct jw w;

    jw_init(&w, &a->body);
    jw_obj(&w, NULL);
    for (int part = 0; part < 2; part++) {
        jw_arr(&w, part ? "logEntries" : "logs");
        for (int64_t n = first; n <= p->logs && n < first + limit; n++)
            log_line(p, b, n, &w, part == 0, NULL);
        jw_end(&w);
    }
    jw_end(&w);
}

static void new_logs(const struct plane *p, const struct box *b, const struct request *r,
                     struct answer *a, int64_t cursor, int64_t limit)
{
    char direction[16], *search = query_text(r->query, "search");
    int64_t last = p->logs, given = 0;
    struct jw w;
    bool forward;

    query_value(r->query, "direction", direction, sizeof(direction));
    forward = str_eq(direction, "forward");
    jw_init(&w, &a->body);
    jw_obj(&w, NULL);
    jw_arr(&w, "logs");
    for (int64_t k = 0; k <= last && given < limit; k++) {
        int64_t n = forward ? k : last - k, at = b->started_ms + n;
        if (cursor >= 0 && (forward ? at < cursor : at > cursor))
            continue;
        given += log_line(p, b, n, &w, false, search);
    }
    jw_end(&w);
    jw_end(&w);
    free(search);
}

void watch_logs(struct plane *p, const struct box *b, const struct request *r, struct answer *a,
                bool v2)
{
    int64_t cursor, limit;

    if (!plane_number(p, r, a, v2 ? "cursor" : "start", -1, 0, INT64_MAX, &cursor) ||
        !plane_number(p, r, a, "limit", LOGS_MAX, 1, LOGS_MAX, &limit))
        return;
    a->status = 200;
    if (v2)
        new_logs(p, b, r, a, cursor, limit);
    else
        old_logs(p, b, a, cursor > b->started_ms ? cursor - b->started_ms : 0, limit);
}

/* ---- events ---- */

static void put_event(struct jw *w, const struct event *e, size_t index)
{
    char text[64];

    jw_obj(w, NULL);
    jw_str(w, "version", "v2");
    snprintf(text, sizeof(text), "00000000-0000-4000-8000-%012zu", index);
    jw_str(w, "id", text);
    snprintf(text, sizeof(text), "sandbox.lifecycle.%s", e->what);
    jw_str(w, "type", text);
    jw_obj(w, "eventData");
    if (str_eq(e->what, "killed") || str_eq(e->what, "paused")) {
        jw_obj(w, "execution");
        plane_time(w, "started_at", e->started_ms);
        jw_i64(w, "vcpu_count", 2);
        jw_i64(w, "memory_mb", 1024);
        jw_i64(w, "execution_time", e->at_ms - e->started_ms);
        jw_end(w);
    }
    jw_end(w);
    jw_str(w, "sandboxId", e->box);
    jw_str(w, "sandboxExecutionId", e->box);
    jw_str(w, "sandboxBuildId", "00000000-0000-4000-8000-000000000001");
    jw_str(w, "sandboxTeamId", "00000000-0000-4000-8000-0000000000aa");
    jw_str(w, "sandboxTemplateId", e->template_id);
    plane_time(w, "timestamp", e->at_ms);
    jw_end(w);
}

/* `types` may come several times. */
static bool type_wanted(const struct request *r, const char *what)
{
    const char *at = r->query;
    bool any = false;

    for (; (at = strstr(at, "types=")); at++) {
        const char *value = at + strlen("types=");
        size_t n = strcspn(value, "&"), len = strlen(what);
        any = true;
        if (n > len && strncmp(value + n - len, what, len) == 0)
            return true;
    }
    return !any;
}

void watch_events(struct plane *p, const char *id, const struct request *r, struct answer *a)
{
    int64_t offset, limit, seen = 0;
    char asc[8];
    struct jw w;

    if (!plane_number(p, r, a, "offset", 0, 0, INT32_MAX, &offset) ||
        !plane_number(p, r, a, "limit", 10, 1, 100, &limit))
        return;
    query_value(r->query, "orderAsc", asc, sizeof(asc));
    id += *id == '/';
    plane_answer(a, 200, &w);
    jw_arr(&w, NULL);
    for (size_t k = 0; k < p->events.n && seen < offset + limit; k++) {
        size_t i = str_eq(asc, "true") ? k : p->events.n - 1 - k;
        const struct event *e = &p->events.v[i];
        if ((*id && !str_eq(id, e->box)) || !type_wanted(r, e->what))
            continue;
        if (seen++ >= offset)
            put_event(&w, e, i);
    }
    jw_end(&w);
}

/* ---- the team ---- */

static void put_team(struct plane *p, struct jw *w, int64_t at_ms)
{
    jw_obj(w, NULL);
    plane_time(w, "timestamp", at_ms);
    jw_i64(w, "timestampUnix", at_ms / 1000);
    jw_i64(w, "concurrentSandboxes", plane_count(p, true));
    jw_num(w, "sandboxStartRate", 0.5);
    jw_end(w);
}

void watch_team(struct plane *p, const char *rest, const struct request *r, struct answer *a)
{
    const char *tail = rest + strcspn(rest, "/");
    int64_t now = clock_wall_ms(), start, end;
    struct jw w;

    if (!plane_number(p, r, a, "start", now / 1000 - 60, 0, INT32_MAX, &start) ||
        !plane_number(p, r, a, "end", now / 1000, 0, INT32_MAX, &end))
        return;
    plane_answer(a, 200, &w);
    if (str_eq(tail, "/metrics")) {
        jw_arr(&w, NULL);
        for (int n = 0; start <= end && n < SAMPLES_MAX; start += 30, n++)
            put_team(p, &w, start * 1000);
        jw_end(&w);
    } else if (str_eq(tail, "/metrics/max")) {
        jw_obj(&w, NULL);
        plane_time(&w, "timestamp", now);
        jw_i64(&w, "timestampUnix", now / 1000);
        jw_i64(&w, "value", plane_count(p, true));
        jw_end(&w);
    } else {
        plane_refuse(p, a, 404, "no such route");
    }
}
