/* The facade against a service of the test's own: load of what runs, time that is asked
 * for and time that is given, limits, and lists of services of different age. */
#include "../lib/appbed.h"
#include "../lib/miniserver.h"

#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The service; what the test sets and reads is ordered by mini_sync(). */
static struct {
    struct mini *srv;
    char state[2][16];       /* of iab1 and iab2 */
    int64_t end[2];
    int cap_s;               /* the plan's longest time */
    const char *metrics;     /* body, NULL: no such route */
    int new_list, old_list;  /* status of either list */
    const char *list_head;
    int create_status;
    const char *create_head;
    int lists, creates, metric_calls;
    char ids[200];           /* of the last question for load */
    int64_t last_list, gap;  /* between the last two lists, ms */
} svc;

static void put_box(struct buf *b, int i)
{
    char end[32];

    clock_format_rfc3339(end, sizeof(end), svc.end[i]);
    buf_addf(b, "{\"sandboxID\":\"iab%d\",\"templateID\":\"t\",\"state\":\"%s\",\"cpuCount\":2,"
                "\"memoryMB\":1024,\"startedAt\":\"2026-01-01T00:00:00Z\",\"endAt\":\"%s\"}",
             i + 1, svc.state[i], end);
}

static void reply_list(struct mini_conn *c, bool old)
{
    struct buf b = BUF_INIT;
    int64_t now = clock_mono_ms();
    bool more = false;

    svc.gap = svc.last_list ? now - svc.last_list : 0;
    svc.last_list = now;
    svc.lists++;
    buf_addc(&b, '[');
    for (int i = 0; i < 2; i++) {
        if (!svc.state[i][0] || (old && strcmp(svc.state[i], "running") != 0))
            continue;
        if (more)
            buf_addc(&b, ',');
        put_box(&b, i);
        more = true;
    }
    buf_addc(&b, ']');
    mini_reply(c, old ? svc.old_list : svc.new_list, svc.list_head ? svc.list_head : "", buf_str(&b));
    buf_release(&b);
}

static void set_end(const struct mini_req *r)
{
    struct cJSON *j = json_parse(r->body, r->len, NULL);
    int64_t s = json_i64(j, "timeout", 0);

    svc.end[0] = clock_wall_ms() + (s > svc.cap_s ? svc.cap_s : s) * 1000;
    json_free(j);
}

static void reply_load(struct mini_conn *c, const struct mini_req *r)
{
    svc.metric_calls++;
    str_copy(svc.ids, sizeof(svc.ids), r->path);
    mini_reply(c, svc.metrics ? 200 : 404, "",
               svc.metrics ? svc.metrics : "{\"code\":404,\"message\":\"no route\"}");
}

static void reply_box(struct mini_conn *c)
{
    struct buf b = BUF_INIT;

    put_box(&b, 0);
    mini_reply(c, 200, "", buf_str(&b));
    buf_release(&b);
}

static void handler(void *ctx, struct mini_conn *c, const struct mini_req *r)
{
    (void)ctx;
    if (str_starts(r->path, "/v2/sandboxes?")) {
        reply_list(c, false);
    } else if (str_eq(r->path, "/sandboxes") && str_eq(r->method, "GET")) {
        reply_list(c, true);
    } else if (str_starts(r->path, "/sandboxes/metrics?")) {
        reply_load(c, r);
    } else if (str_eq(r->path, "/sandboxes")) {
        svc.creates++;
        mini_reply(c, svc.create_status, svc.create_head ? svc.create_head : "",
                   "{\"code\":429,\"message\":\"20 of 20 sandboxes\"}");
    } else if (str_eq(r->path, "/sandboxes/iab1/timeout")) {
        set_end(r);
        mini_reply(c, 204, "", "");
    } else if (str_eq(r->path, "/sandboxes/iab1/pause")) {
        str_copy(svc.state[0], sizeof(svc.state[0]), "paused");
        mini_reply(c, 204, "", "");
    } else if (str_eq(r->path, "/sandboxes/iab1/connect")) {
        str_copy(svc.state[0], sizeof(svc.state[0]), "running");
        set_end(r);
        mini_reply(c, 201, "", "{\"sandboxID\":\"iab1\"}");
    } else if (str_eq(r->path, "/sandboxes/iab1")) {
        reply_box(c);
    } else {
        mini_reply(c, 404, "", "404 page not found");
    }
}

static int setup(void **state)
{
    struct appbed *b = appbed_new();
    struct mini *srv = mini_start(handler, NULL);
    char *url = mini_url(srv, "");

    memset(&svc, 0, sizeof(svc));
    svc.srv = srv;
    strcpy(svc.state[0], "running");
    svc.end[0] = svc.end[1] = clock_wall_ms() + 600000;
    svc.cap_s = 3600;
    svc.new_list = svc.old_list = 200;
    svc.create_status = 429;
    mini_sync(srv);
    appbed_service(b, url);
    free(url);
    *state = b;
    return 0;
}

static int teardown(void **state)
{
    appbed_free(*state);
    mini_stop(svc.srv);
    return 0;
}

static void open_app(struct appbed *b)
{
    struct app_opts o = {.follow_all = true, .poll_ms = 100};

    appbed_open(b, &o);
}

static const struct model *model(const struct appbed *b)
{
    return app_model(b->app);
}

static const struct sandbox *box(const struct appbed *b)
{
    for (size_t i = 0; i < model(b)->n_sandboxes; i++)
        if (str_eq(model(b)->sandboxes[i].sandbox_id, "iab1"))
            return &model(b)->sandboxes[i];
    return NULL;
}

static bool is_there(struct appbed *b, const void *arg)
{
    (void)arg;
    return box(b) != NULL;
}

static bool event_says(struct appbed *b, const void *text)
{
    for (size_t i = 0; i < model(b)->n_events; i++)
        if (strstr(model(b)->events[i].text, text))
            return true;
    return false;
}

/* --- load ----------------------------------------------------------------------------- */

static bool load_is_known(struct appbed *b, const void *known)
{
    return box(b) && box(b)->load.known == *(const bool *)known;
}

static bool lists_came(struct appbed *b, const void *n)
{
    (void)b;
    mini_sync(svc.srv);
    return svc.lists >= *(const int *)n;
}

static void await_lists(struct appbed *b, int more)
{
    mini_sync(svc.srv);
    int n = svc.lists + more;
    assert_true(appbed_wait(b, lists_came, &n));
}

static void test_load_of_what_runs(void **state)
{
    struct appbed *b = *state;
    static const bool yes = true, no = false;

    strcpy(svc.state[1], "paused");
    svc.metrics = "{\"sandboxes\":{\"iab1\":{\"cpuUsedPct\":17.6,\"memUsed\":450,\"memTotal\":1000,"
                  "\"diskUsed\":2040109465,\"diskTotal\":10737418240},\"iother\":{\"cpuUsedPct\":1}}}";
    mini_sync(svc.srv);
    open_app(b);
    assert_true(appbed_wait(b, load_is_known, &yes));
    assert_int_equal(box(b)->load.cpu_pct, 18);
    assert_int_equal(box(b)->load.mem_pct, 45);
    assert_int_equal(box(b)->load.disk_total_mb, 10240);
    mini_sync(svc.srv);
    assert_string_equal(svc.ids, "/sandboxes/metrics?sandbox_ids=iab1"); /* running ones alone */
    await_lists(b, 5);
    assert_int_equal(svc.metric_calls, 1); /* at its own pace, not with each list */
    /* one that is paused has none */
    appbed_must(b, app_pause(b->app, box(b)->id));
    assert_true(appbed_wait(b, load_is_known, &no));
    assert_int_equal(box(b)->state, SB_PAUSED);
}

static void test_service_without_load(void **state)
{
    struct appbed *b = *state;

    open_app(b);
    assert_true(appbed_wait(b, is_there, NULL));
    await_lists(b, 8);
    assert_int_equal(svc.metric_calls, 1);
    assert_false(box(b)->load.known);
    assert_int_equal(model(b)->link, LINK_OK); /* no concern of the user's */
}

static void test_nobody_looks(void **state)
{
    struct appbed *b = *state;
    struct app_opts o = {.poll_ms = 100}; /* a command */

    svc.metrics = "{\"sandboxes\":{}}";
    mini_sync(svc.srv);
    appbed_open(b, &o);
    assert_true(appbed_wait(b, is_there, NULL));
    await_lists(b, 3);
    assert_int_equal(svc.metric_calls, 0);
}

/* --- time ------------------------------------------------------------------------------ */

static void test_time_is_the_services_to_give(void **state)
{
    struct appbed *b = *state;
    int64_t now;

    open_app(b);
    assert_true(appbed_wait(b, is_there, NULL));
    appbed_must(b, app_set_timeout(b->app, box(b)->id, 1800));
    assert_false(event_says(b, "was asked for"));
    appbed_must(b, app_set_timeout(b->app, box(b)->id, 86400)); /* the plan has one hour */
    now = clock_wall_ms();
    assert_in_range(box(b)->end_at - now, 3500000, 3600000);
    assert_true(appbed_wait(b, event_says, "was asked for, the service gives"));
    assert_true(appbed_wait(b, event_says, "1d was asked for") ||
                appbed_wait(b, event_says, "24h was asked for"));
}

static void test_time_after_a_resume(void **state)
{
    struct appbed *b = *state;

    strcpy(svc.state[0], "paused");
    mini_sync(svc.srv);
    open_app(b);
    assert_true(appbed_wait(b, is_there, NULL));
    appbed_must(b, app_resume(b->app, box(b)->id, 86400));
    assert_in_range(box(b)->end_at - clock_wall_ms(), 3500000, 3600000);
    assert_true(appbed_wait(b, event_says, "was asked for, the service gives"));
}

static void test_no_time_is_refused(void **state)
{
    struct appbed *b = *state;
    static const int bad[] = {0, -5, LIM_TIMEOUT_MAX_S + 1};
    int64_t end;

    open_app(b);
    assert_true(appbed_wait(b, is_there, NULL));
    end = box(b)->end_at;
    for (int i = 0; i < 3; i++)
        assert_int_equal(appbed_finish(b, app_set_timeout(b->app, box(b)->id, bad[i])), ERR_INVALID);
    await_lists(b, 2);
    assert_int_equal(box(b)->end_at, end);
    mini_sync(svc.srv);
    assert_int_equal(svc.end[0], end);
}

/* --- limits ------------------------------------------------------------------------------ */

/* Said as a limit, and asked for once: whether to try again is the user's to say. */
static void test_create_at_the_limit(void **state)
{
    struct appbed *b = *state;
    struct app_create c = {.tool = "shell", .command = "true"};

    open_app(b);
    assert_true(appbed_wait(b, is_there, NULL));
    assert_int_equal(appbed_finish(b, app_create(b->app, &c, true)), ERR_LIMIT);
    assert_non_null(strstr(b->err.text, "limit of the plan"));
    assert_non_null(strstr(b->err.text, "20 of 20 sandboxes"));
    await_lists(b, 3);
    assert_int_equal(svc.creates, 1);
    svc.create_head = "Retry-After: 1\r\n";
    mini_sync(svc.srv);
    assert_int_equal(appbed_finish(b, app_create(b->app, &c, true)), ERR_BUSY);
    assert_non_null(strstr(b->err.text, "try again in 1 s"));
    svc.gap = 0;
    for (int64_t t = clock_mono_ms(); clock_mono_ms() - t < 1500;)
        await_lists(b, 1);
    assert_int_equal(svc.creates, 2);
}

static bool is_limited(struct appbed *b, const void *arg)
{
    (void)arg;
    return model(b)->link == LINK_LIMITED;
}

static void test_lists_wait_as_told(void **state)
{
    struct appbed *b = *state;

    open_app(b);
    assert_true(appbed_wait(b, is_there, NULL));
    mini_sync(svc.srv);
    svc.new_list = 429;
    svc.list_head = "Retry-After: 2\r\n";
    mini_sync(svc.srv);
    assert_true(appbed_wait(b, is_limited, NULL));
    await_lists(b, 1);
    assert_true(svc.gap >= 1900);
    assert_non_null(box(b)); /* the rows stay */
}

/* --- lists of services of different age ------------------------------------------------- */

static bool link_is(struct appbed *b, const void *st)
{
    return model(b)->link == *(const enum link_state *)st;
}

static void test_either_list_will_do(void **state)
{
    struct appbed *b = *state;
    static const enum link_state ok = LINK_OK;

    svc.old_list = 404;
    mini_sync(svc.srv);
    open_app(b);
    assert_true(appbed_wait(b, is_there, NULL)); /* the new one alone */
    assert_true(appbed_wait(b, link_is, &ok));
    appbed_close(b);
    svc.old_list = 200;
    svc.new_list = 404;
    mini_sync(svc.srv);
    setenv("E2B_API_KEY", "e2b_0123456789abcdef0123456789abcdef01234f2b", 1);
    open_app(b);
    assert_true(appbed_wait(b, is_there, NULL)); /* the old one alone */
    assert_true(appbed_wait(b, link_is, &ok));
    assert_non_null(strstr(model(b)->link_text, "running sandboxes only"));
}

static bool link_names_route(struct appbed *b, const void *arg)
{
    (void)arg;
    return model(b)->link != LINK_OK && model(b)->link_text &&
           strstr(model(b)->link_text, "GET /sandboxes") && strstr(model(b)->link_text, "404");
}

static void test_no_list_at_all(void **state)
{
    struct appbed *b = *state;

    open_app(b);
    assert_true(appbed_wait(b, is_there, NULL));
    svc.new_list = svc.old_list = 404;
    mini_sync(svc.srv);
    assert_true(appbed_wait(b, link_names_route, NULL));
    assert_non_null(box(b)); /* what was known stays, and is not called gone */
    assert_int_equal(box(b)->state, SB_RUNNING);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_load_of_what_runs),
        CASE(test_service_without_load),
        CASE(test_nobody_looks),
        CASE(test_time_is_the_services_to_give),
        CASE(test_time_after_a_resume),
        CASE(test_no_time_is_refused),
        CASE(test_create_at_the_limit),
        CASE(test_lists_wait_as_told),
        CASE(test_either_list_will_do),
        CASE(test_no_list_at_all),
    };

    appbed_main();
    return cmocka_run_group_tests_name("app_looks", tests, NULL, NULL);
}
