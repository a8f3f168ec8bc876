/* What the control port tells about sandboxes: samples, logs, events, use of the
 * team; what it keeps when the provider is killed; what it refuses. Bytes only. */
#include "../lib/initbox.h"
#include "../lib/rawhttp.h"
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/str.h>

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define TEAM "6c6f6361-6c00-4000-8000-000000000001"
#define WAIT_MS 20000

static struct localbed *bed;

static int up(void **state)
{
    (void)state;
    bed = localbed_new();
    return bed ? 0 : -1;
}

static int down(void **state)
{
    (void)state;
    localbed_free(bed);
    return 0;
}

/* --- calls --------------------------------------------------------------------- */

static int call(const char *method, const char *path, const char *json, struct buf *out)
{
    int fd = rawhttp_dial(bed->control);
    int status = rawhttp_call(fd, bed->control, bed->key, method, path, json, out);
    close(fd);
    return status;
}

static struct cJSON *get(const char *path, int want)
{
    struct buf b = BUF_INIT;
    int status = call("GET", path, NULL, &b);
    if (status != want)
        fail_msg("GET %s: %d, not %d: %s", path, status, want, buf_str(&b));
    struct cJSON *j = json_parse(buf_str(&b), b.len, NULL);
    if (!j)
        fail_msg("GET %s: no JSON: %s", path, buf_str(&b));
    buf_release(&b);
    return j;
}

static struct cJSON *getf(const char *fmt, ...)
{
    char path[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(path, sizeof(path), fmt, ap);
    va_end(ap);
    return get(path, 200);
}

/* An error has the shape that clients read. */
static void refused(const char *method, const char *path, const char *json, int want)
{
    struct buf b = BUF_INIT;
    int status = call(method, path, json, &b);
    struct cJSON *j = json_parse(buf_str(&b), b.len, NULL);
    if (status != want || json_i64(j, "code", 0) != want || !*json_str(j, "message", ""))
        fail_msg("%s %s: %d, not %d: %s", method, path, status, want, buf_str(&b));
    json_free(j);
    buf_release(&b);
}

static void make(struct rawhttp_box *x, const char *json)
{
    int fd = rawhttp_dial(bed->control);
    assert_int_equal(rawhttp_create(bed, fd, json, x), 201);
    close(fd);
}

static int box_call(const struct rawhttp_box *x, const char *method, const char *tail,
                    const char *json)
{
    int fd = rawhttp_dial(bed->control);
    int status = rawhttp_box_call(bed, fd, x, method, tail, json);
    close(fd);
    return status;
}

static void kill_box(const struct rawhttp_box *x)
{
    assert_int_equal(box_call(x, "DELETE", "", NULL), 204);
}

static void run(const struct rawhttp_box *x, const char *command)
{
    int fd = rawhttp_stream(bed, x, command, 0);
    assert_true(rawhttp_await(fd, "\"end\""));
    close(fd);
}

/* A sample as if it were taken at that time. */
static void inject(const struct rawhttp_box *x, long long ts)
{
    struct initbox_answer a;
    char sock[128], headers[256], body[48];
    snprintf(sock, sizeof(sock), "%s/run/s/%s.sock", bed->root, x->id);
    snprintf(headers, sizeof(headers), "X-Access-Token: %s\r\nX-CC-Control: %s\r\n", x->token,
             x->token);
    int n = snprintf(body, sizeof(body), "{\"ts\":%lld}", ts);
    initbox_finish(initbox_request_at(sock, "POST", "/cc/sample", headers, body, (size_t)n),
                   &a);
    assert_int_equal(a.status, 204);
    buf_release(&a.body);
}

static size_t count(const struct cJSON *list)
{
    size_t n = 0;
    for (const struct cJSON *c = json_first(list); c; c = json_next(c))
        n++;
    return n;
}

/* --- metrics --------------------------------------------------------------------- */

static const char *const metric_fields[] = {"timestampUnix", "cpuCount", "memUsed",  "memTotal",
                                            "memCache",      "diskUsed", "diskTotal"};

static void check_metric(const struct cJSON *m)
{
    for (size_t i = 0; i < sizeof(metric_fields) / sizeof(metric_fields[0]); i++)
        assert_true(json_i64(m, metric_fields[i], -1) >= 0);
    double pct = json_num(m, "cpuUsedPct", -1);
    assert_true(pct >= 0 && pct <= 100);
    int64_t ms;
    assert_int_equal(clock_parse_rfc3339(json_str(m, "timestamp", ""), &ms), 0);
    assert_int_equal(ms / 1000, json_i64(m, "timestampUnix", 0));
}

static void test_metrics_at_once(void **state)
{
    (void)state;
    struct rawhttp_box x;
    make(&x, "{\"templateID\":\"base\"}");
    struct cJSON *j = getf("/sandboxes/%s/metrics", x.id);
    assert_true(count(j) >= 1);
    check_metric(json_first(j));
    json_free(j);
    j = getf("/sandboxes/metrics?sandbox_ids=%s,iunknown0000000000000", x.id);
    const struct cJSON *all = json_get(j, "sandboxes");
    assert_int_equal(count(all), 1);
    check_metric(json_get(all, x.id));
    json_free(j);
    assert_int_equal(box_call(&x, "POST", "/pause", NULL), 204);
    j = getf("/sandboxes/metrics?sandbox_ids=%s", x.id);
    assert_int_equal(count(json_get(j, "sandboxes")), 0);
    json_free(j);
    j = getf("/sandboxes/%s/metrics", x.id);
    assert_true(count(j) >= 1);
    json_free(j);
    kill_box(&x);
    refused("GET", "/sandboxes/metrics", NULL, 400);
    refused("GET", "/sandboxes/metrics?sandbox_ids=", NULL, 400);
}

static void test_metrics_range(void **state)
{
    (void)state;
    struct rawhttp_box x;
    make(&x, "{\"templateID\":\"base\"}");
    for (int i = 0; i < 20; i++)
        inject(&x, 1000000 + 5 * i);
    struct cJSON *j = getf("/sandboxes/%s/metrics?start=1000010&end=1000020", x.id);
    assert_int_equal(count(j), 3); /* both ends are included */
    assert_int_equal(json_i64(json_first(j), "timestampUnix", 0), 1000010);
    json_free(j);
    /* over more than an hour there is one for each half minute */
    j = getf("/sandboxes/%s/metrics?start=1000000&end=1010000", x.id);
    assert_int_equal(count(j), 4);
    check_metric(json_first(j));
    json_free(j);
    j = getf("/sandboxes/%s/metrics?start=2&end=3", x.id);
    assert_int_equal(count(j), 0);
    json_free(j);
    char path[128];
    snprintf(path, sizeof(path), "/sandboxes/%s/metrics?start=5&end=4", x.id);
    refused("GET", path, NULL, 400);
    snprintf(path, sizeof(path), "/sandboxes/%s/metrics?start=x", x.id);
    refused("GET", path, NULL, 400);
    kill_box(&x);
}

/* --- logs ---------------------------------------------------------------------------- */

static const struct cJSON *nth(const struct cJSON *list, size_t i)
{
    const struct cJSON *c = json_first(list);
    while (c && i-- > 0)
        c = json_next(c);
    return c;
}

static int64_t time_of(const struct cJSON *entry)
{
    int64_t ms = 0;
    assert_int_equal(clock_parse_rfc3339(json_str(entry, "timestamp", ""), &ms), 0);
    return ms;
}

static void test_logs_content(void **state)
{
    (void)state;
    struct rawhttp_box x;
    make(&x, "{\"templateID\":\"base\",\"envVars\":{\"K\":\"canary-env\"}}");
    run(&x, "true canary-argument");
    run(&x, "exit 3");
    /* entries of one millisecond are told apart by moving the later one on */
    int64_t after = clock_wall_ms() + 5;
    while (clock_wall_ms() < after)
        poll(NULL, 0, 1);
    assert_int_equal(box_call(&x, "POST", "/timeout", "{\"timeout\":500}"), 204);
    assert_int_equal(box_call(&x, "POST", "/pause", NULL), 204);
    struct buf b = BUF_INIT;
    char path[128];
    snprintf(path, sizeof(path), "/v2/sandboxes/%s/logs?direction=forward", x.id);
    assert_int_equal(call("GET", path, NULL, &b), 200);
    const char *const parts[] = {"\"sandbox created\"", " started: sh\"",
                                 " ended: sh, exit status 3\"", "\"timeout moved to 20",
                                 "\"sandbox paused (request)\""};
    const char *at = buf_str(&b);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        at = strstr(at, parts[i]);
        if (!at)
            fail_msg("no %s in order in %s", parts[i], buf_str(&b));
    }
    assert_null(strstr(buf_str(&b), "canary"));
    struct cJSON *j = json_parse(buf_str(&b), b.len, NULL);
    for (const struct cJSON *c = json_first(json_get(j, "logs")); c; c = json_next(c))
        assert_true(time_of(c) > 0 && *json_str(c, "level", "") &&
                    *json_str(c, "message", "") && json_is_object(json_get(c, "fields")));
    json_free(j);
    buf_release(&b);
    kill_box(&x);
}

/* The old form: lines are JSON text; who follows asks from the last time + 1 ms. */
static void test_logs_followed(void **state)
{
    (void)state;
    struct rawhttp_box x;
    make(&x, "{\"templateID\":\"base\"}");
    int64_t next = 0, last = 0;
    size_t seen = 0;
    for (int round = 0; round < 3; round++) {
        run(&x, "true");
        struct cJSON *j = getf("/sandboxes/%s/logs?start=%lld", x.id, (long long)next);
        const struct cJSON *logs = json_get(j, "logs");
        assert_int_equal(count(logs), count(json_get(j, "logEntries")));
        for (const struct cJSON *c = json_first(logs); c; c = json_next(c)) {
            const char *line = json_str(c, "line", "");
            struct cJSON *in = json_parse(line, strlen(line), NULL);
            assert_true(*json_str(in, "level", "") && *json_str(in, "message", "") &&
                        *json_str(in, "logger", ""));
            json_free(in);
            assert_true(time_of(c) >= next);
            last = time_of(c);
            seen++;
        }
        next = last + 1;
        json_free(j);
    }
    assert_int_equal(seen, 1 + 3 * 2);
    kill_box(&x);
}

/* Pages of two, in both directions: everything once. */
static void test_logs_paged(void **state)
{
    (void)state;
    struct rawhttp_box x;
    make(&x, "{\"templateID\":\"base\"}");
    for (int i = 0; i < 3; i++)
        run(&x, "true");
    for (int back = 0; back < 2; back++) {
        char cursor[48] = "";
        size_t seen = 0, n;
        do {
            struct cJSON *j = getf("/v2/sandboxes/%s/logs?limit=2&direction=%s%s", x.id,
                                   back ? "backward" : "forward", cursor);
            const struct cJSON *logs = json_get(j, "logs");
            n = count(logs);
            if (n > 1)
                assert_true(back ? time_of(nth(logs, 0)) > time_of(nth(logs, 1))
                                 : time_of(nth(logs, 0)) < time_of(nth(logs, 1)));
            if (n > 0)
                snprintf(cursor, sizeof(cursor), "&cursor=%lld",
                         (long long)time_of(nth(logs, n - 1)) + (back ? 0 : 1));
            seen += n;
            json_free(j);
        } while (n == 2);
        assert_int_equal(seen, 7);
    }
    struct cJSON *j = getf("/v2/sandboxes/%s/logs?level=warn", x.id);
    assert_int_equal(count(json_get(j, "logs")), 0);
    json_free(j);
    j = getf("/v2/sandboxes/%s/logs?search=sandbox%%20created", x.id);
    assert_int_equal(count(json_get(j, "logs")), 1);
    json_free(j);
    static const char *const bad[] = {"limit=1001", "limit=-1", "cursor=x", "direction=up",
                                      "level=loud"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char path[128];
        snprintf(path, sizeof(path), "/v2/sandboxes/%s/logs?%s", x.id, bad[i]);
        refused("GET", path, NULL, 400);
    }
    kill_box(&x);
}

/* --- events ------------------------------------------------------------------------------ */

static bool has_event(const char *id, const char *type, const char *why)
{
    struct cJSON *j = getf("/events/sandboxes/%s?types=sandbox.lifecycle.%s", id, type);
    const char *got = json_str(json_get(json_first(j), "eventData"), "reason", "");
    bool has = json_first(j) && (!why || strcmp(got, why) == 0);
    json_free(j);
    return has;
}

static void await_event(const char *id, const char *type, const char *why)
{
    int64_t until = clock_mono_ms() + WAIT_MS;
    while (!has_event(id, type, why)) {
        if (clock_mono_ms() > until)
            fail_msg("no event %s (%s) of %s", type, why, id);
        poll(NULL, 0, 20);
    }
}

static void test_events(void **state)
{
    (void)state;
    struct rawhttp_box x;
    make(&x, "{\"templateID\":\"base\",\"metadata\":{\"a\":\"b\"}}");
    assert_int_equal(box_call(&x, "POST", "/timeout", "{\"timeout\":100}"), 204);
    assert_int_equal(box_call(&x, "POST", "/pause", NULL), 204);
    assert_int_equal(box_call(&x, "POST", "/connect", "{\"timeout\":100}"), 201);
    kill_box(&x);
    static const char *const types[] = {"created", "updated", "paused", "resumed", "killed"};
    struct cJSON *j = getf("/events/sandboxes/%s?orderAsc=true&limit=100", x.id);
    assert_int_equal(count(j), 5);
    char first_run[40] = "";
    for (size_t i = 0; i < 5; i++) {
        const struct cJSON *ev = nth(j, i), *data = json_get(ev, "eventData");
        char type[64];
        snprintf(type, sizeof(type), "sandbox.lifecycle.%s", types[i]);
        assert_string_equal(json_str(ev, "type", ""), type);
        assert_string_equal(json_str(ev, "sandboxId", ""), x.id);
        assert_string_equal(json_str(ev, "sandboxTeamId", ""), TEAM);
        assert_true(time_of(ev) > 0 && *json_str(ev, "sandboxTemplateId", ""));
        assert_int_equal(strlen(json_str(ev, "id", "")), 36);
        assert_string_equal(json_str(json_get(data, "sandbox_metadata"), "a", ""), "b");
        assert_true((i == 1) == (json_get(data, "set_timeout") != NULL));
        assert_true((i == 2 || i == 4) == (json_get(data, "execution") != NULL));
        const char *run_id = json_str(ev, "sandboxExecutionId", "");
        if (i == 0)
            str_copy(first_run, sizeof(first_run), run_id);
        assert_true((strcmp(run_id, first_run) == 0) == (i < 3));
    }
    json_free(j);
    j = getf("/events/sandboxes/%s?limit=2&offset=1", x.id);
    assert_int_equal(count(j), 2);
    assert_string_equal(json_str(nth(j, 0), "type", ""), "sandbox.lifecycle.resumed");
    json_free(j);
    j = getf("/events/sandboxes?types=sandbox.lifecycle.killed&types=sandbox.lifecycle.paused");
    for (const struct cJSON *c = json_first(j); c; c = json_next(c))
        assert_true(json_get(json_get(c, "eventData"), "execution") != NULL);
    json_free(j);
    refused("GET", "/events/sandboxes?limit=101", NULL, 400);
    refused("GET", "/events/sandboxes?types=x", NULL, 400);
    refused("GET", "/events/sandboxes?orderAsc=1", NULL, 400);
}

static void test_reasons(void **state)
{
    (void)state;
    struct rawhttp_box x;
    make(&x, "{\"templateID\":\"base\",\"timeout\":1}");
    await_event(x.id, "killed", "timeout");
    make(&x, "{\"templateID\":\"base\",\"timeout\":1,\"autoPause\":true}");
    await_event(x.id, "paused", "timeout");
    kill_box(&x);
    await_event(x.id, "killed", "request");
}

/* --- the team ------------------------------------------------------------------------------
 */

static void test_team(void **state)
{
    (void)state;
    struct rawhttp_box x[3];
    int64_t now = clock_wall_ms() / 1000;
    for (int i = 0; i < 3; i++)
        make(&x[i], "{\"templateID\":\"base\"}");
    struct cJSON *j = getf("/teams/" TEAM "/metrics?start=%lld", (long long)now - 60);
    const struct cJSON *last = nth(j, count(j) - 1);
    assert_true(count(j) >= 12 && count(j) <= 16);
    assert_int_equal(json_i64(last, "concurrentSandboxes", -1), 3);
    assert_true(json_num(last, "sandboxStartRate", -1) >= 0 && time_of(last) > 0);
    json_free(j);
    j = getf("/teams/" TEAM "/metrics/max?metric=concurrent_sandboxes&start=%lld",
             (long long)now);
    assert_true(json_num(j, "value", 0) >= 3);
    assert_true(json_i64(j, "timestampUnix", 0) >= now - 5);
    json_free(j);
    j = getf("/teams/" TEAM "/metrics/max?metric=sandbox_start_rate");
    assert_true(json_num(j, "value", 0) > 0);
    json_free(j);
    refused("GET", "/teams/00000000-0000-4000-8000-000000000000/metrics", NULL, 403);
    refused("GET", "/teams/" TEAM "/metrics/max?metric=x", NULL, 400);
    for (int i = 0; i < 3; i++)
        kill_box(&x[i]);
}

/* --- a restart ------------------------------------------------------------------------------
 */

static pid_t init_of(const struct rawhttp_box *x)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/state/boxes/%s/box.json", bed->root, x->id);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    char text[8192];
    size_t n = fread(text, 1, sizeof(text), f);
    fclose(f);
    struct cJSON *j = json_parse(text, n, NULL);
    pid_t pid = (pid_t)json_i64(j, "pid", 0);
    json_free(j);
    assert_true(pid > 1);
    return pid;
}

static void test_restart(void **state)
{
    (void)state;
    struct rawhttp_box x, gone;
    make(&x, bed->isolated ? "{\"templateID\":\"base\",\"allow_internet_access\":false,"
                             "\"network\":{\"denyOut\":[\"0.0.0.0/0\"]}}"
                           : "{\"templateID\":\"base\",\"allow_internet_access\":true}");
    make(&gone, "{\"templateID\":\"base\"}");
    inject(&x, 77);
    run(&x, "exit 9");
    localbed_kill(bed);
    pid_t pid = init_of(&gone);
    kill(pid, SIGKILL);
    int64_t until = clock_mono_ms() + WAIT_MS;
    while (kill(pid, 0) == 0 && clock_mono_ms() < until)
        poll(NULL, 0, 5);
    assert_true(localbed_start(bed));
    struct cJSON *j = getf("/sandboxes/%s/metrics?start=77&end=77", x.id);
    assert_int_equal(count(j), 1);
    json_free(j);
    j = getf("/v2/sandboxes/%s/logs?search=exit%%20status%%209", x.id);
    assert_int_equal(count(json_get(j, "logs")), 1);
    json_free(j);
    assert_true(has_event(x.id, "created", NULL));
    assert_false(has_event(x.id, "updated", NULL)); /* nobody moved its end */
    await_event(gone.id, "killed", "ended");
    j = getf("/sandboxes/%s", x.id);
    assert_true(json_bool(j, "allowInternetAccess", bed->isolated) == !bed->isolated);
    assert_true(!bed->isolated || count(json_get(json_get(j, "network"), "denyOut")) == 1);
    json_free(j);
    kill_box(&x);
    assert_true(has_event(x.id, "killed", "request"));
}

/* --- without memory
 * ---------------------------------------------------------------------------- */

static void test_cold(void **state)
{
    (void)state;
    struct rawhttp_box x;
    make(&x, "{\"templateID\":\"base\",\"autoPause\":true,\"autoPauseMemory\":false}");
    for (int how = 0; how < 2; how++) {
        int fd = rawhttp_stream(bed, &x, "echo ready; exec sleep 300", 0);
        assert_true(rawhttp_await(fd, "\"stdout\""));
        assert_int_equal(box_call(&x, "POST", "/pause", how == 0 ? "{\"memory\":false}" : "{}"),
                         204);
        assert_int_equal(
            box_call(&x, "POST", "/connect",
                     how == 0 ? "{\"timeout\":100}" : "{\"timeout\":100,\"memory\":false}"),
            201);
        assert_true(rawhttp_await(fd, "signal: killed"));
        close(fd);
    }
    run(&x, "true");
    refused("POST", "/sandboxes", "{\"templateID\":\"base\",\"autoPauseMemory\":false}", 400);
    kill_box(&x);
}

/* --- what is not here
 * ----------------------------------------------------------------------------- */

static void test_refused(void **state)
{
    (void)state;
    struct rawhttp_box x;
    make(&x, "{\"templateID\":\"base\"}");
    static const struct {
        const char *method, *path, *json; /* %s: a sandbox that runs */
        int status;
    } cases[] = {
        {"POST", "/sandboxes/%s/fork", "{}", 501},
        {"POST", "/sandboxes/%s/snapshots", "{}", 501},
        {"POST", "/sandboxes/inothere00000000000/fork", "{}", 404},
        {"GET", "/snapshots", NULL, 501},
        {"GET", "/volumes", NULL, 501},
        {"DELETE", "/volumes/x", NULL, 501},
        {"POST", "/secrets", "{}", 501},
        {"GET", "/events/webhooks", NULL, 501},
        {"GET", "/teams", NULL, 401},
        {"POST", "/api-keys", "{}", 401},
        {"DELETE", "/access-tokens/x", NULL, 401},
        {"PUT", "/sandboxes/%s/network", "{\"allow_internet_access\":false}", 501},
        {"PUT", "/sandboxes/%s/network", "{\"denyOut\":[\"8.8.8.8\"]}", 501},
        {"PUT", "/sandboxes/%s/network", "{\"denyOut\":\"all\"}", 400},
        {"PUT", "/sandboxes/%s", "{}", 405},
        {"DELETE", "/health", NULL, 405},
        {"GET", "/sandboxes/%s-a-b", NULL, 400},
        {"GET", "/sandboxes/inothere00000000000", NULL, 404},
        {"POST", "/sandboxes/%s/pause", "{\"memory\":1}", 400},
        {"POST", "/sandboxes/%s/connect", "{}", 400},
        {"POST", "/sandboxes/%s/resume", "{}", 409},
        {"POST", "/sandboxes/%s/timeout", "{\"timeout\":-1}", 400},
        {"POST", "/sandboxes/%s/refreshes", "{\"duration\":3601}", 400},
        {"POST", "/v2/sandboxes", "{\"templateID\":\"base\",\"mcp\":{\"a\":{}}}", 501},
        {"POST", "/v2/sandboxes", "{\"templateID\":\"no-such\"}", 404},
        {"GET", "/none", NULL, 404},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char path[128];
        const char *mark = strstr(cases[i].path, "%s");
        int head = mark ? (int)(mark - cases[i].path) : (int)strlen(cases[i].path);
        snprintf(path, sizeof(path), "%.*s%s%s", head, cases[i].path, mark ? x.id : "",
                 mark ? mark + 2 : "");
        refused(cases[i].method, path, cases[i].json, cases[i].status);
    }
    struct buf b = BUF_INIT;
    char path[128];
    snprintf(path, sizeof(path), "/sandboxes/%s/network", x.id);
    assert_int_equal(call("PUT", path, "{\"allow_internet_access\":true}", &b), 204);
    buf_release(&b);
    kill_box(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_metrics_at_once), cmocka_unit_test(test_metrics_range),
        cmocka_unit_test(test_logs_content),    cmocka_unit_test(test_logs_followed),
        cmocka_unit_test(test_logs_paged),      cmocka_unit_test(test_events),
        cmocka_unit_test(test_reasons),         cmocka_unit_test(test_team),
        cmocka_unit_test(test_restart),         cmocka_unit_test(test_cold),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, up, down);
}
