/* What is told about sandboxes beyond the list: load, system logs, events, the team. */
#include "e2b_priv.h"
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

static void add_sep(struct buf *b, const char *name)
{
    buf_addf(b, "%c%s=", memchr(b->p, '?', b->len) ? '&' : '?', name);
}

static void add_i64(struct buf *b, const char *name, int64_t v)
{
    add_sep(b, name);
    buf_addf(b, "%lld", (long long)v);
}

static void add_str(struct buf *b, const char *name, const char *v)
{
    if (!v)
        return;
    add_sep(b, name);
    buf_add_urlenc(b, v, strlen(v));
}

/* Takes `path`; the query is added to it. */
static struct buf begin(char *path)
{
    struct buf b = BUF_INIT;

    buf_adds(&b, path);
    free(path);
    return b;
}

/* Unix seconds: the end of the range is not cut off. */
static void add_range(struct buf *b, int64_t from_ms, int64_t to_ms)
{
    if (from_ms > 0)
        add_i64(b, "start", from_ms / 1000);
    if (to_ms > 0)
        add_i64(b, "end", (to_ms + 999) / 1000);
}

/* --- load ------------------------------------------------------------------------- */

/* The next hundred of the ids. */
static char *metrics_path(struct e2b_call *k)
{
    struct buf b = BUF_INIT;
    size_t end = k->next_name + METRICS_PER_CALL;

    buf_adds(&b, "/sandboxes/metrics?sandbox_ids=");
    for (size_t i = k->next_name; i < end && i < k->names.n; i++) {
        if (i > k->next_name)
            buf_addc(&b, ',');
        buf_add_urlenc(&b, k->names.v[i], strlen(k->names.v[i]));
    }
    k->next_name = end;
    return buf_detach(&b, NULL);
}

uint64_t e2b_metrics(struct e2b *c, const char *const *ids, size_t n,
                     const struct e2b_call_opts *o, e2b_fn fn, void *ctx)
{
    struct e2b_call *k = call_new(c, CALL_METRICS, "GET", NULL, fn, ctx);

    call_options(k, o);
    for (size_t i = 0; i < n; i++)
        *ARR_PUSH(&k->names) = xstrdup(ids[i]);
    call_route(k, metrics_path(k));
    return n ? call_start(k) : call_refuse(k); /* of none there is nothing to ask */
}

uint64_t e2b_metrics_of(struct e2b *c, const char *id, int64_t from_ms, int64_t to_ms,
                        const struct e2b_call_opts *o, e2b_fn fn, void *ctx)
{
    struct e2b_call *k = call_new(c, CALL_METRIC_RANGE, "GET", id, fn, ctx);
    struct buf b = begin(call_path("/sandboxes/", id, "/metrics", NULL, NULL));

    call_options(k, o);
    add_range(&b, from_ms, to_ms);
    call_route(k, buf_detach(&b, NULL));
    return call_start(k);
}

static int64_t stamp(const struct cJSON *j)
{
    int64_t ms = parse_time(j, "timestampUnix");

    return ms ? ms : parse_time(j, "timestamp");
}

static void add_metric(struct e2b_call *k, const char *id, const struct cJSON *j)
{
    double pct = json_num(j, "cpuUsedPct", -1);

    if (!json_is_object(j) || !id || k->got.metrics.n >= ROWS_MAX)
        return;
    *ARR_PUSH(&k->got.metrics) =
        (struct e2b_metric){.sandbox_id = xstrdup(id),
                            .time_ms = stamp(j),
                            .cpu_count = parse_int(j, "cpuCount", -1),
                            .cpu_pct = pct >= 0 && pct <= 1e6 ? pct : -1,
                            .mem_used = parse_i64(j, "memUsed", -1),
                            .mem_total = parse_i64(j, "memTotal", -1),
                            .mem_cache = parse_i64(j, "memCache", -1),
                            .disk_used = parse_i64(j, "diskUsed", -1),
                            .disk_total = parse_i64(j, "diskTotal", -1)};
}

int take_metrics(struct e2b_call *k, const struct cJSON *j)
{
    const struct cJSON *map = json_get(j, "sandboxes");

    if (!json_is_object(map))
        return ERR_PROTO;
    for (const struct cJSON *i = json_first(map); i; i = json_next(i))
        add_metric(k, json_name(i), i);
    if (k->next_name >= k->names.n)
        return 0;
    free(k->path);
    k->path = metrics_path(k);
    return TAKE_MORE;
}

int take_metric_range(struct e2b_call *k, const struct cJSON *j)
{
    if (!json_is_array(j))
        return ERR_PROTO;
    for (const struct cJSON *i = json_first(j); i; i = json_next(i))
        add_metric(k, k->subject, i);
    return 0;
}

/* --- logs ------------------------------------------------------------------------- */

uint64_t e2b_logs(struct e2b *c, const char *id, const struct e2b_log_query *q,
                  const struct e2b_call_opts *o, e2b_fn fn, void *ctx)
{
    struct e2b_call *k = call_new(c, CALL_LOGS, "GET", id, fn, ctx);
    struct buf b = begin(call_path("/v2/sandboxes/", id, "/logs", NULL, NULL));
    struct buf old = begin(call_path("/sandboxes/", id, "/logs", NULL, NULL));

    call_options(k, o);
    k->family = ROUTE_LOGS;
    if (q->from_ms > 0)
        add_i64(&b, "cursor", q->from_ms);
    if (q->from_ms > 0 && !q->backward)
        add_i64(&old, "start", q->from_ms);
    if (q->limit > 0) {
        add_i64(&b, "limit", q->limit);
        add_i64(&old, "limit", q->limit);
    }
    add_str(&b, "direction", q->backward ? "backward" : "forward");
    add_str(&b, "level", q->level);
    add_str(&b, "search", q->search);
    call_route(k, buf_detach(&b, NULL));
    call_route(k, buf_detach(&old, NULL));
    return call_start(k);
}

/* The old route's `line` is JSON in a string; where it is not, it is the message. */
static void old_line(const struct cJSON *item, struct e2b_log *l)
{
    const char *line = json_str(item, "line", NULL);
    struct cJSON *j = line ? json_parse(line, strlen(line), NULL) : NULL;

    if (json_str(j, "message", NULL)) {
        l->message = parse_str(j, "message");
        l->level = parse_text(json_get(j, "level"));
        l->fields = xstrdup(line);
    } else if (line) {
        l->message = xstrdup(line);
    }
    json_free(j);
}

static void parse_log(const struct cJSON *item, struct e2b_log *l)
{
    const struct cJSON *fields = json_get(item, "fields");

    *l = (struct e2b_log){.time_ms = parse_time(item, "timestamp")};
    if (json_is_string(item)) { /* builds of old had bare lines */
        l->message = xstrdup(json_str_of(item));
    } else if (json_get(item, "line") && !json_get(item, "message")) {
        old_line(item, l);
    } else {
        l->message = parse_text(json_get(item, "message"));
        l->level = parse_text(json_get(item, "level"));
        l->step = parse_text(json_get(item, "step"));
        l->fields = json_is_object(fields) && json_first(fields) ? json_text(fields) : NULL;
    }
    if (!l->message)
        l->message = xstrdup("");
    if (!l->level)
        l->level = xstrdup("");
}

int parse_logs(const struct cJSON *array, struct log_list *logs)
{
    if (!json_is_array(array))
        return ERR_PROTO;
    for (const struct cJSON *i = json_first(array); i && logs->n < ROWS_MAX; i = json_next(i))
        parse_log(i, ARR_PUSH(logs));
    return 0;
}

int take_logs(struct e2b_call *k, const struct cJSON *j)
{
    const struct cJSON *entries = json_get(j, "logEntries");

    if (!json_is_object(j))
        return ERR_PROTO;
    if (json_is_array(entries) && json_first(entries))
        return parse_logs(entries, &k->got.logs);
    if (!json_get(j, "logs"))
        return json_is_array(entries) ? 0 : ERR_PROTO;
    parse_logs(json_get(j, "logs"), &k->got.logs); /* null: none */
    return 0;
}

void e2b_log_clear(struct e2b_log *l)
{
    free(l->level);
    free(l->message);
    free(l->step);
    free(l->fields);
}

/* --- events ----------------------------------------------------------------------- */

uint64_t e2b_events(struct e2b *c, const struct e2b_event_query *q,
                    const struct e2b_call_opts *o, e2b_fn fn, void *ctx)
{
    struct e2b_call *k = call_new(c, CALL_EVENTS, "GET", q->sandbox_id, fn, ctx);
    struct buf b = begin(q->sandbox_id
                             ? call_path("/events/sandboxes/", q->sandbox_id, NULL, NULL, NULL)
                             : xstrdup("/events/sandboxes"));

    call_options(k, o);
    add_i64(&b, "offset", q->offset > 0 ? q->offset : 0);
    add_i64(&b, "limit", q->limit > 0 && q->limit <= 100 ? q->limit : 100);
    add_str(&b, "orderAsc", q->oldest_first ? "true" : "false");
    for (const char *const *t = q->types; t && *t; t++)
        add_str(&b, "types", *t);
    call_route(k, buf_detach(&b, NULL));
    return call_start(k);
}

/* Services write either style: sandboxId, sandbox_id. */
static const struct cJSON *either(const struct cJSON *j, const char *camel, const char *snake)
{
    const struct cJSON *v = json_get(j, camel);

    return v ? v : json_get(j, snake);
}

static const char *either_name(const struct cJSON *j, const char *camel, const char *snake)
{
    return json_get(j, camel) ? camel : snake;
}

static void parse_execution(const struct cJSON *data, struct e2b_event *ev)
{
    const struct cJSON *x = json_get(data, "execution");

    ev->run_started_ms = parse_time(x, either_name(x, "startedAt", "started_at"));
    ev->run_ms = parse_i64(x, either_name(x, "executionTime", "execution_time"), -1);
    ev->cpu_count = parse_int(x, either_name(x, "vcpuCount", "vcpu_count"), -1);
    ev->memory_mb = parse_int(x, either_name(x, "memoryMb", "memory_mb"), -1);
    if (ev->memory_mb < 0)
        ev->memory_mb = parse_int(x, "memoryMB", -1);
    if (!ev->run_started_ms)
        ev->run_started_ms = -1;
}

int take_events(struct e2b_call *k, const struct cJSON *j)
{
    if (!json_is_array(j))
        return ERR_PROTO;
    for (const struct cJSON *i = json_first(j); i && k->got.events.n < ROWS_MAX; i = json_next(i)) {
        const struct cJSON *data = either(i, "eventData", "event_data");
        struct e2b_event ev = {.time_ms = parse_time(i, "timestamp")};

        if (!json_is_object(i))
            continue;
        ev.id = parse_text(json_get(i, "id"));
        ev.type = parse_text(json_get(i, "type"));
        ev.sandbox_id = parse_text(either(i, "sandboxId", "sandbox_id"));
        ev.template_id = parse_text(either(i, "sandboxTemplateId", "sandbox_template_id"));
        ev.build_id = parse_text(either(i, "sandboxBuildId", "sandbox_build_id"));
        ev.team_id = parse_text(either(i, "sandboxTeamId", "sandbox_team_id"));
        ev.execution_id = parse_text(either(i, "sandboxExecutionId", "sandbox_execution_id"));
        ev.data = json_is_object(data) ? json_text(data) : NULL;
        parse_execution(data, &ev);
        *ARR_PUSH(&k->got.events) = ev;
    }
    return 0;
}

/* --- the team ---------------------------------------------------------------------- */

uint64_t e2b_team_metrics(struct e2b *c, const char *team_id, int64_t from_ms, int64_t to_ms,
                          const struct e2b_call_opts *o, e2b_fn fn, void *ctx)
{
    struct e2b_call *k = call_new(c, CALL_TEAM, "GET", team_id, fn, ctx);
    struct buf b = begin(call_path("/teams/", team_id, "/metrics", NULL, NULL));

    call_options(k, o);
    add_range(&b, from_ms, to_ms);
    call_route(k, buf_detach(&b, NULL));
    return call_start(k);
}

uint64_t e2b_team_max(struct e2b *c, const char *team_id, bool start_rate,
                      const struct e2b_call_opts *o, e2b_fn fn, void *ctx)
{
    struct e2b_call *k = call_new(c, CALL_TEAM_MAX, "GET", team_id, fn, ctx);

    call_options(k, o);
    call_route(k, call_path("/teams/", team_id, "/metrics/max?metric=", NULL,
                            start_rate ? "sandbox_start_rate" : "concurrent_sandboxes"));
    return call_start(k);
}

static void add_team(struct e2b_call *k, const struct cJSON *j)
{
    if (!json_is_object(j) || k->got.team.n >= ROWS_MAX)
        return;
    *ARR_PUSH(&k->got.team) =
        (struct e2b_team_metric){.time_ms = stamp(j),
                                 .sandboxes = parse_i64(j, "concurrentSandboxes", -1),
                                 .start_rate = json_num(j, "sandboxStartRate", -1),
                                 .value = json_num(j, "value", -1)};
}

int take_team(struct e2b_call *k, const struct cJSON *j)
{
    if (k->kind == CALL_TEAM_MAX && json_is_object(j)) {
        add_team(k, j);
        return 0;
    }
    if (k->kind == CALL_TEAM_MAX || !json_is_array(j))
        return ERR_PROTO;
    for (const struct cJSON *i = json_first(j); i; i = json_next(i))
        add_team(k, i);
    return 0;
}
