/* The rest of the control plane: what is asked, exactly as the official clients ask it,
 * and what odd answers become. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "../lib/e2bbed.h"
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct e2bbed bed;

static int fresh(void **state)
{
    (void)state;
    bed.show = NULL;
    e2bbed_client(&bed);
    return 0;
}

#define HEARD(want) assert_string_equal(buf_str(&bed.heard), want)
#define SHOWN(want) assert_string_equal(buf_str(&bed.text), want)

static const char *s(const char *v)
{
    return v ? v : "-";
}

/* --- the list by conditions ------------------------------------------------------- */

static struct e2b_list_query query;

static void start_list(void *b)
{
    e2b_list_where(bed.client, &query, NULL, e2bbed_answer, b);
}

static void show_ids(struct e2bbed *b, const struct e2b_result *r)
{
    for (size_t i = 0; i < r->n; i++)
        buf_addf(&b->text, "%s ", r->v[i].sandbox_id);
}

/* Whether the captured requests of the official clients have this text. */
static bool captured(const char *text)
{
    size_t len = 0;
    char *all = fs_read("tests/fixtures/requests.jsonl", 8 << 20, false, &len, NULL);
    bool has = all && strstr(all, text);

    assert_non_null(all);
    free(all);
    return has;
}

static void test_list_conditions(void **state)
{
    static const struct kv meta[] = {{(char *)"agent", (char *)"claude"},
                                     {(char *)"k y", (char *)"a&b=c"}, {NULL, NULL}};

    (void)state;
    query = (struct e2b_list_query){.meta = meta, .template_id = "base", .started_after = 1,
                                    .oldest_first = true};
    E2B_PLAY(&bed, {200, "X-Total-Running: 7\r\n", "[]"});
    e2bbed_run(&bed, start_list);
    assert_int_equal(bed.r.err.code, 0);
    assert_int_equal(bed.r.total_running, 7);
    HEARD("GET /v2/sandboxes?state=running,paused&limit=100"
          "&metadata=agent%3Dclaude%26k%252520y%3Da%252526b%25253Dc&template=base"
          "&startedAfter=1970-01-01T00%3A00%3A00.001Z&order=asc \n");
    assert_true(captured("metadata=agent%3Dclaude%26k%252520y%3Da%252526b%25253Dc"));
}

/* What a server has to undo: once as a parameter, once the whole, once each side. */
static char *decode(const char *p, size_t len)
{
    struct buf b = BUF_INIT;
    int c;

    for (size_t i = 0; i < len; i++)
        if (p[i] == '%' && i + 2 < len && sscanf(p + i + 1, "%2x", (unsigned *)&c) == 1)
            buf_addc(&b, (char)c), i += 2;
        else
            buf_addc(&b, p[i]);
    return buf_detach(&b, NULL);
}

static void test_metadata_of_any_text(void **state)
{
    static const char *const texts[] = {"team name", "blue/green %&+=\xc3\xa9", "a\nb", "100%",
                                        "plain_-1", "\"quoted\"", "a=b&c=d"};
    char *once, *twice, *end;

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct kv meta[] = {{(char *)texts[i], (char *)texts[6 - i]}, {NULL, NULL}};

        query = (struct e2b_list_query){.meta = meta};
        E2B_PLAY(&bed, {200, "", "[]"});
        e2bbed_run(&bed, start_list);
        const char *at = strstr(buf_str(&bed.heard), "&metadata=");
        assert_non_null(at);
        once = decode(at + 10, strcspn(at + 10, "& "));
        twice = decode(once, strlen(once));
        assert_non_null(end = strchr(twice, '='));
        char *key = decode(twice, (size_t)(end - twice)), *value = decode(end + 1, strlen(end + 1));
        assert_string_equal(key, texts[i]);
        assert_string_equal(value, texts[6 - i]);
        free(key);
        free(value);
        free(once);
        free(twice);
    }
}

static void test_old_list_is_filtered_here(void **state)
{
    (void)state;
    bed.show = show_ids;
    query = (struct e2b_list_query){.template_id = "base", .started_after = 1700000000000};
    E2B_PLAY(&bed, {405, "", "{\"code\":405,\"message\":\"no\"}"},
             {200, "",
              "[{\"sandboxID\":\"i1\",\"alias\":\"base\",\"startedAt\":1700000001},"
              "{\"sandboxID\":\"i2\",\"alias\":\"other\",\"startedAt\":1700000001},"
              "{\"sandboxID\":\"i3\",\"templateID\":\"base\",\"startedAt\":\"2001-01-01T00:00:00Z\"}]"});
    e2bbed_run(&bed, start_list);
    SHOWN("i1 ");
    assert_non_null(strstr(bed.r.err.text, "running"));
    /* paused ones alone cannot be had there */
    e2bbed_client(&bed);
    query = (struct e2b_list_query){.states = "paused"};
    E2B_PLAY(&bed, {404, "", "{\"code\":404,\"message\":\"no\"}"});
    e2bbed_run(&bed, start_list);
    assert_int_equal(bed.r.err.code, ERR_PROTO);
    assert_non_null(strstr(bed.r.err.text, "GET /v2/sandboxes:"));
    assert_int_equal(bed.at, 1);
}

/* --- resuming, and time ------------------------------------------------------------ */

static int seconds;

static void start_connect(void *b)
{
    e2b_connect(bed.client, "iab1", seconds, e2bbed_answer, b);
}

static void test_connect_finds_its_route(void **state)
{
    static const struct e2b_scene refusals[] = {
        {404, "", "404 page not found"}, {405, "", ""}, {404, "", "{\"code\":404,\"message\":\"no route\"}"}};

    (void)state;
    seconds = 60;
    for (size_t i = 0; i < 3; i++) {
        const struct e2b_scene s[] = {refusals[i], {201, "", "{\"sandboxID\":\"iab1\"}"}};
        e2bbed_client(&bed);
        e2bbed_play(&bed, s, 2);
        e2bbed_run(&bed, start_connect);
        assert_int_equal(bed.r.err.code, 0);
        HEARD("POST /sandboxes/iab1/connect {\"timeout\":60}\n"
              "POST /v2/sandboxes/iab1/connect {\"timeout\":60}\n");
    }
    e2bbed_play(&bed, (const struct e2b_scene[]){{200, "", "{\"sandboxID\":\"iab1\"}"}}, 1);
    e2bbed_run(&bed, start_connect);
    HEARD("POST /v2/sandboxes/iab1/connect {\"timeout\":60}\n"); /* it is remembered */
    e2bbed_client(&bed);
    E2B_PLAY(&bed, {404, "", ""}, {404, "", ""}, {409, "", "{\"code\":409,\"message\":\"runs\"}"});
    e2bbed_run(&bed, start_connect);
    assert_int_equal(bed.r.err.code, 0); /* it runs: what was wanted */
    assert_non_null(strstr(buf_str(&bed.heard), "POST /sandboxes/iab1/resume {\"timeout\":60}\n"));
    e2bbed_client(&bed);
    E2B_PLAY(&bed, {404, "", "{\"code\":404,\"message\":\"Sandbox \\\"iab1\\\" doesn't exist\"}"});
    e2bbed_run(&bed, start_connect);
    assert_int_equal(bed.r.err.code, ERR_NOTFOUND); /* said of the sandbox, not of the route */
    assert_int_equal(bed.at, 1);
    E2B_PLAY(&bed, {409, "", "{\"code\":409,\"message\":\"being killed\"}"});
    e2bbed_run(&bed, start_connect);
    assert_int_equal(bed.r.err.code, ERR_CONFLICT);
    assert_int_equal(bed.at, 1);
}

static void start_timeout(void *b)
{
    e2b_set_timeout(bed.client, "iab1", seconds, e2bbed_answer, b);
}

static void start_refresh(void *b)
{
    e2b_refresh(bed.client, "iab1", seconds, e2bbed_answer, b);
}

/* Zero would end it now, or become somebody's default. */
static void test_no_time_is_refused(void **state)
{
    static void (*const starts[])(void *) = {start_timeout, start_connect, start_refresh};
    static const int bad[] = {0, -5};

    (void)state;
    E2B_PLAY(&bed, {204, "", ""});
    for (int i = 0; i < 6; i++) {
        seconds = bad[i % 2];
        e2bbed_run(&bed, starts[i / 2]);
        assert_int_equal(bed.r.err.code, ERR_INVALID);
        assert_non_null(strstr(bed.r.err.text, "kill it"));
        HEARD("");
    }
    seconds = 9000;
    e2bbed_run(&bed, start_refresh);
    e2bbed_run(&bed, start_timeout);
    HEARD("POST /sandboxes/iab1/refreshes {\"duration\":3600}\n"
          "POST /sandboxes/iab1/timeout {\"timeout\":9000}\n");
}

/* --- limits and faults -------------------------------------------------------------- */

static struct e2b_call_opts opts;

static void start_create(void *b)
{
    e2b_create(bed.client, &(struct e2b_create){.template_id = "base", .timeout_s = 60},
               e2bbed_answer, b);
}

static void start_get(void *b)
{
    e2b_get(bed.client, "iab1", &opts, e2bbed_answer, b);
}

/* Too many at once is said as a limit; a create is never repeated by itself. */
static void test_two_meanings_of_429(void **state)
{
    char date[40], head[80];
    time_t t = time(NULL) + 30;
    struct tm tm;

    (void)state;
    E2B_PLAY(&bed, {429, "", "{\"code\":429,\"message\":\"you have 20 of 20 sandboxes\"}"});
    e2bbed_run(&bed, start_create);
    assert_int_equal(bed.r.err.code, ERR_LIMIT);
    assert_non_null(strstr(bed.r.err.text, "limit of the plan"));
    assert_non_null(strstr(bed.r.err.text, "20 of 20"));
    assert_int_equal(bed.at, 1);
    E2B_PLAY(&bed, {429, "Retry-After: 7\r\n", "{\"code\":429,\"message\":\"slow down\"}"});
    e2bbed_run(&bed, start_create);
    assert_int_equal(bed.r.err.code, ERR_BUSY);
    assert_int_equal(bed.r.retry_after_ms, 7000);
    assert_int_equal(bed.at, 1);
    gmtime_r(&t, &tm);
    strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
    snprintf(head, sizeof(head), "Retry-After: %s\r\n", date);
    e2bbed_play(&bed, (const struct e2b_scene[]){{429, head, "{\"code\":429}"}}, 1);
    e2bbed_run(&bed, start_create);
    assert_int_equal(bed.r.err.code, ERR_BUSY);
    assert_in_range(bed.r.retry_after_ms, 20000, 31000);
    assert_int_equal(bed.at, 1);
}

static void test_placement_failures_are_named(void **state)
{
    static const struct {
        int status;
        const char *code;
    } all[] = {{503, "sandbox_capacity_unavailable"}, {503, "sandbox_no_compatible_node"},
               {504, "sandbox_placement_timeout"}, {500, "sandbox_create_failed"},
               {500, "internal_server_error"}, {502, "something_new"}};

    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        char body[200];
        struct e2b_scene s = {all[i].status, "X-E2B-Trace-ID: 4bf92f3577b34da6\x1b[2J\r\n", body};

        snprintf(body, sizeof(body), "{\"code\":%d,\"message\":\"no luck\",\"error_code\":\"%s\"}",
                 all[i].status, all[i].code);
        e2bbed_play(&bed, &s, 1);
        e2bbed_run(&bed, start_create);
        assert_int_equal(bed.r.err.code, ERR_SERVER);
        assert_non_null(strstr(bed.r.err.text, all[i].code));
        assert_non_null(strstr(bed.r.err.text, "no luck"));
        assert_string_equal(bed.r.trace, "4bf92f3577b34da62J");
        assert_int_equal(bed.at, 1);
    }
}

static void test_gets_are_repeated(void **state)
{
    (void)state;
    opts = (struct e2b_call_opts){.give_up_ms = 20000};
    E2B_PLAY(&bed, {502, "", "<html>"}, {503, "", ""}, {200, "", "{\"sandboxID\":\"iab1\"}"});
    e2bbed_run(&bed, start_get);
    assert_int_equal(bed.r.err.code, 0);
    assert_int_equal(bed.at, 3);
    opts.give_up_ms = 0;
}

/* --- load --------------------------------------------------------------------------- */

static const char *many[230];
static size_t n_many;

static void start_metrics(void *b)
{
    e2b_metrics(bed.client, many, n_many, NULL, e2bbed_answer, b);
}

static void start_range(void *b)
{
    e2b_metrics_of(bed.client, "iab1", 1700000000000, 1700000060000, NULL, e2bbed_answer, b);
}

static void show_metrics(struct e2bbed *b, const struct e2b_result *r)
{
    for (size_t i = 0; i < r->n_metrics; i++) {
        const struct e2b_metric *m = &r->metrics[i];
        buf_addf(&b->text, "%s %lld %d %.1f %lld/%lld %lld/%lld\n", m->sandbox_id,
                 (long long)m->time_ms, m->cpu_count, m->cpu_pct, (long long)m->mem_used,
                 (long long)m->mem_total, (long long)m->disk_used, (long long)m->disk_total);
    }
}

static void test_load_of_many(void **state)
{
    char ids[230][8];

    (void)state;
    bed.show = show_metrics;
    for (size_t i = 0; i < 230; i++) {
        snprintf(ids[i], sizeof(ids[i]), "i%zu", i);
        many[i] = ids[i];
    }
    n_many = 230;
    E2B_PLAY(&bed,
             {200, "", "{\"sandboxes\":{\"i0\":{\"timestamp\":\"2026-11-29T15:16:20.478Z\","
                       "\"timestampUnix\":1795965380,\"cpuCount\":2,\"cpuUsedPct\":12.5,"
                       "\"memUsed\":104857600,\"memTotal\":536870912,\"memCache\":1000000,"
                       "\"diskUsed\":100000000,\"diskTotal\":1000000000}}}"},
             {200, "", "{\"sandboxes\":{}}"},
             {200, "", "{\"sandboxes\":{\"i229\":{\"cpuUsedPct\":\"x\",\"memUsed\":null,"
                       "\"memTotal\":-4},\"i7\":null}}"});
    e2bbed_run(&bed, start_metrics);
    assert_int_equal(bed.at, 3);
    SHOWN("i0 1795965380000 2 12.5 104857600/536870912 100000000/1000000000\n"
          "i229 0 -1 -1.0 -1/-1 -1/-1\n");
    const char *second = strchr(buf_str(&bed.heard), '\n') + 1;
    assert_true(str_starts(buf_str(&bed.heard), "GET /sandboxes/metrics?sandbox_ids=i0,i1,i2,"));
    assert_true(str_starts(second, "GET /sandboxes/metrics?sandbox_ids=i100,i101,"));
    n_many = 0;
    E2B_PLAY(&bed, {500, "", ""});
    e2bbed_run(&bed, start_metrics);
    assert_int_equal(bed.r.err.code, 0);
    HEARD("");
    E2B_PLAY(&bed, {200, "", "[{\"timestamp\":\"2026-11-29T15:16:20Z\",\"cpuUsedPct\":1}]"});
    e2bbed_run(&bed, start_range);
    HEARD("GET /sandboxes/iab1/metrics?start=1700000000&end=1700000060 \n");
    assert_true(captured("/metrics?start=1700000000&end=1700000060"));
    SHOWN("iab1 1795965380000 -1 1.0 -1/-1 -1/-1\n");
}

/* --- logs --------------------------------------------------------------------------- */

static struct e2b_log_query log_query;

static void start_logs(void *b)
{
    e2b_logs(bed.client, "iab1", &log_query, NULL, e2bbed_answer, b);
}

static void show_logs(struct e2bbed *b, const struct e2b_result *r)
{
    for (size_t i = 0; i < r->n_logs; i++)
        buf_addf(&b->text, "%lld|%s|%s|%s|%s\n", (long long)r->logs[i].time_ms, r->logs[i].level,
                 r->logs[i].message, s(r->logs[i].step), s(r->logs[i].fields));
}

static void test_system_logs(void **state)
{
    (void)state;
    bed.show = show_logs;
    log_query = (struct e2b_log_query){.from_ms = 1795965473316, .limit = 1000, .level = "warn",
                                       .search = "a b"};
    E2B_PLAY(&bed, {200, "", "{\"logs\":[{\"timestamp\":\"2026-11-29T15:17:53.315Z\",\"level\":"
                             "\"info\",\"message\":\"hello\",\"fields\":{\"logger\":\"process\"}}]}"});
    e2bbed_run(&bed, start_logs);
    HEARD("GET /v2/sandboxes/iab1/logs?cursor=1795965473316&limit=1000&direction=forward&level=warn"
          "&search=a%20b \n");
    SHOWN("1795965473315|info|hello|-|{\"logger\":\"process\"}\n");
    log_query = (struct e2b_log_query){.from_ms = 1795965473316};
    E2B_PLAY(&bed, {404, "", "404 page not found"},
             {200, "", "{\"logs\":[{\"timestamp\":\"2026-11-29T15:17:53.315Z\",\"line\":\"{\\\"level\\\":"
                       "\\\"info\\\",\\\"message\\\":\\\"hello\\\"}\"},{\"line\":\"bare text\"},"
                       "{\"line\":7},null,\"odd\"]}"});
    e2bbed_run(&bed, start_logs);
    assert_non_null(strstr(buf_str(&bed.heard), "\nGET /sandboxes/iab1/logs?start=1795965473316 \n"));
    assert_true(captured("/logs?start=1795965473316"));
    SHOWN("1795965473315|info|hello|-|{\"level\":\"info\",\"message\":\"hello\"}\n0||bare text|-|-\n"
          "0|||-|-\n0|||-|-\n0||odd|-|-\n");
}

/* Times that are missing, of year one, of any precision and offset, or numbers; the order
 * of arrival stays. */
static void test_odd_times(void **state)
{
    (void)state;
    bed.show = show_logs;
    log_query = (struct e2b_log_query){.backward = true};
    E2B_PLAY(&bed, {200, "", "{\"logs\":[{\"message\":\"a\"},"
                             "{\"message\":\"b\",\"timestamp\":\"0001-01-01T00:00:00Z\"},"
                             "{\"message\":\"c\",\"timestamp\":\"2026-11-29T15:17:53.123456789Z\"},"
                             "{\"message\":\"d\",\"timestamp\":\"2026-11-29T17:17:53+02:00\"},"
                             "{\"message\":\"e\",\"timestamp\":1795965473315},"
                             "{\"message\":\"f\",\"timestamp\":1795965473},"
                             "{\"message\":\"g\",\"timestamp\":1795965473315000},"
                             "{\"message\":\"h\",\"timestamp\":\"1795965473315\"},"
                             "{\"message\":\"i\",\"timestamp\":\"1795965473315000000\"},"
                             "{\"message\":\"j\",\"timestamp\":-5},"
                             "{\"message\":\"k\",\"timestamp\":\"yesterday\"},"
                             "{\"message\":\"l\",\"timestamp\":{}},"
                             "{\"message\":\"m\",\"timestamp\":1e300}]}"});
    e2bbed_run(&bed, start_logs);
    HEARD("GET /v2/sandboxes/iab1/logs?direction=backward \n");
    SHOWN("0||a|-|-\n0||b|-|-\n1795965473123||c|-|-\n1795965473000||d|-|-\n1795965473315||e|-|-\n"
          "1795965473000||f|-|-\n1795965473315||g|-|-\n1795965473315||h|-|-\n1795965473315||i|-|-\n"
          "0||j|-|-\n0||k|-|-\n0||l|-|-\n0||m|-|-\n");
}

/* A 200 kB line and what comes behind it. */
static void test_long_log_lines(void **state)
{
    struct buf body = BUF_INIT;
    struct e2b_scene scene = {200, "", NULL};

    (void)state;
    bed.show = show_logs;
    log_query = (struct e2b_log_query){.limit = 10};
    buf_adds(&body, "{\"logs\":[{\"message\":\"");
    for (int i = 0; i < 200 * 1024; i++)
        buf_addc(&body, (char)('a' + i % 26));
    buf_adds(&body, "\"},{\"message\":\"one\"},{\"message\":\"two\"},{\"message\":\"three\"}]}");
    scene.body = buf_str(&body);
    e2bbed_play(&bed, &scene, 1);
    e2bbed_run(&bed, start_logs);
    assert_int_equal(bed.r.n_logs, 4);
    assert_true(bed.text.len > 200 * 1024);
    assert_true(str_ends(buf_str(&bed.text), "|one|-|-\n0||two|-|-\n0||three|-|-\n"));
    buf_release(&body);
}

/* --- events and team ----------------------------------------------------------------- */

static struct e2b_event_query event_query;

static void start_events(void *b)
{
    e2b_events(bed.client, &event_query, NULL, e2bbed_answer, b);
}

static void show_events(struct e2bbed *b, const struct e2b_result *r)
{
    for (size_t i = 0; i < r->n_events; i++) {
        const struct e2b_event *e = &r->events[i];
        buf_addf(&b->text, "%s %s %s %s %s %lld run %lld %lld %d %d\n", s(e->id), s(e->type),
                 s(e->sandbox_id), s(e->template_id), s(e->team_id), (long long)e->time_ms,
                 (long long)e->run_started_ms, (long long)e->run_ms, e->cpu_count, e->memory_mb);
    }
}

static void test_events(void **state)
{
    static const char *const types[] = {"sandbox.lifecycle.killed", "sandbox.lifecycle.paused", NULL};

    (void)state;
    bed.show = show_events;
    event_query = (struct e2b_event_query){.sandbox_id = "iab1", .types = types, .offset = 20,
                                           .oldest_first = true};
    E2B_PLAY(&bed,
             {200, "", "[{\"version\":\"v1\",\"id\":\"e1\",\"type\":\"sandbox.lifecycle.killed\","
                       "\"eventData\":{\"execution\":{\"startedAt\":\"2026-11-29T15:00:00Z\","
                       "\"vcpuCount\":2,\"memoryMb\":512,\"executionTime\":1500}},"
                       "\"sandboxId\":\"iab1\",\"sandboxTemplateId\":\"t\",\"sandboxTeamId\":\"team\","
                       "\"timestamp\":\"2026-11-29T15:17:53.315Z\"},"
                       "{\"id\":\"e2\",\"type\":\"sandbox.lifecycle.paused\",\"event_data\":{\"execution\":"
                       "{\"started_at\":\"2026-11-29T15:00:00Z\",\"vcpu_count\":2,\"memory_mb\":512,"
                       "\"execution_time\":1500}},\"sandbox_id\":\"iab1\",\"sandbox_template_id\":\"t\","
                       "\"sandbox_team_id\":\"team\",\"timestamp\":\"2026-11-29T15:17:53.315Z\"},"
                       "{\"id\":7,\"eventData\":null},null,5]"});
    e2bbed_run(&bed, start_events);
    HEARD("GET /events/sandboxes/iab1?offset=20&limit=100&orderAsc=true"
          "&types=sandbox.lifecycle.killed&types=sandbox.lifecycle.paused \n");
    SHOWN("e1 sandbox.lifecycle.killed iab1 t team 1795965473315 run 1795964400000 1500 2 512\n"
          "e2 sandbox.lifecycle.paused iab1 t team 1795965473315 run 1795964400000 1500 2 512\n"
          "7 - - - - 0 run -1 -1 -1 -1\n");
    event_query = (struct e2b_event_query){.limit = 10};
    E2B_PLAY(&bed, {404, "", "404 page not found"});
    e2bbed_run(&bed, start_events);
    HEARD("GET /events/sandboxes?offset=0&limit=10&orderAsc=false \n");
    assert_int_equal(bed.r.err.code, ERR_PROTO);
}

static void start_team(void *b)
{
    e2b_team_metrics(bed.client, "team-1", 1700000000000, 0, NULL, e2bbed_answer, b);
}

static void start_team_max(void *b)
{
    e2b_team_max(bed.client, "team-1", false, NULL, e2bbed_answer, b);
}

static void show_team(struct e2bbed *b, const struct e2b_result *r)
{
    for (size_t i = 0; i < r->n_team; i++)
        buf_addf(&b->text, "%lld %lld %.1f %.0f\n", (long long)r->team[i].time_ms,
                 (long long)r->team[i].sandboxes, r->team[i].start_rate, r->team[i].value);
}

static void test_team(void **state)
{
    (void)state;
    bed.show = show_team;
    E2B_PLAY(&bed, {200, "", "[{\"timestampUnix\":1700000001,\"concurrentSandboxes\":4,"
                             "\"sandboxStartRate\":0.5},{},null]"},
             {200, "", "{\"timestampUnix\":1700000001,\"value\":9}"}, {403, "", "{\"code\":403}"});
    e2bbed_run(&bed, start_team);
    SHOWN("1700000001000 4 0.5 -1\n0 -1 -1.0 -1\n");
    e2bbed_run(&bed, start_team_max);
    SHOWN("1700000001000 -1 -1.0 9\n");
    HEARD("GET /teams/team-1/metrics?start=1700000000 \n"
          "GET /teams/team-1/metrics/max?metric=concurrent_sandboxes \n");
    e2bbed_run(&bed, start_team);
    assert_int_equal(bed.r.err.code, ERR_AUTH);
}

#define CASE(f) cmocka_unit_test_setup(f, fresh)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_list_conditions), CASE(test_metadata_of_any_text),
        CASE(test_old_list_is_filtered_here), CASE(test_connect_finds_its_route),
        CASE(test_no_time_is_refused), CASE(test_two_meanings_of_429),
        CASE(test_placement_failures_are_named), CASE(test_gets_are_repeated),
        CASE(test_load_of_many), CASE(test_system_logs), CASE(test_odd_times),
        CASE(test_long_log_lines), CASE(test_events), CASE(test_team),
    };
    int rc;

    e2bbed_open(&bed);
    rc = cmocka_run_group_tests_name("e2b_calls", tests, NULL, NULL);
    e2bbed_close(&bed);
    return rc;
}
