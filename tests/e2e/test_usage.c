/* What it costs, through the facade and against a scripted service: runs that ended while
 * nobody looked are known to the moment where the service tells, budgets are told once, and
 * idle sandboxes are paused for them, but never others. */
#include "../lib/ourclock.h"
#include "../lib/statebed.h"

#include <cct/model/ledger.h>
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <poll.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static void serve(const char *sandboxes)
{
    const char *args[] = {"--sandboxes", sandboxes, NULL};

    statebed_fake = faultd_serve(args);
}

static int teardown(void **state)
{
    clocks_right();
    return statebed_teardown(state);
}

static void open_with(struct appbed *b, struct usage_limits limits)
{
    struct app_opts o = {.follow_all = true, .poll_ms = 50, .usage_limits = limits};

    setenv("E2B_API_KEY", APPBED_KEY, 1); /* taken out of there when it is read */
    appbed_open(b, &o);
}

static const struct model *model(const struct appbed *b)
{
    return app_model(b->app);
}

static bool has_rows(struct appbed *b, const void *n)
{
    return model(b)->n_sandboxes == *(const size_t *)n && model(b)->listed_at;
}

static void await_rows(struct appbed *b, size_t n)
{
    assert_true(appbed_wait(b, has_rows, &n));
}

static void sql(struct appbed *b, const char *text)
{
    char *path = appbed_path(b, "data/cc-tui.db");
    sqlite3 *db;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(db));
    sqlite3_close(db);
    free(path);
}

static size_t said(struct appbed *b, const char *words)
{
    size_t n = 0;

    for (size_t i = 0; i < model(b)->n_events; i++)
        n += strstr(model(b)->events[i].text, words) != NULL;
    return n;
}

static bool is_said(struct appbed *b, const void *words)
{
    return said(b, words) > 0;
}

/* Requests of that kind so far. */
static void call(const char *method, const char *path, const char *body)
{
    char *answer = faultd_http(statebed_fake, method, path, body);

    assert_non_null(answer);
    free(answer);
}

/* --- runs that nobody saw end --------------------------------------------------------------- */

/* A run that is longer than nothing. */
static void pass(int ms)
{
    int64_t until = clock_wall_ms() + ms;

    while (clock_wall_ms() < until)
        poll(NULL, 0, 1);
}

/* When that happened to the sandbox, as the service tells it. */
static int64_t happened(const char *id, const char *what)
{
    char *path = xasprintf("/events/sandboxes/%s?limit=100", id);
    char *text = faultd_http(statebed_fake, "GET", path, NULL);
    struct cJSON *j = json_parse(text, strlen(text), NULL);
    int64_t at = 0;

    for (const struct cJSON *e = json_first(j); e; e = json_next(e))
        if (strstr(json_str(e, "type", ""), what))
            clock_parse_rfc3339(json_str(e, "timestamp", ""), &at);
    json_free(j);
    free(text);
    free(path);
    return at;
}

static bool settled(struct appbed *b, const void *spans)
{
    appbed_must(b, app_usage(b->app, "all", 0));
    return model(b)->usage->all.estimates == 0 &&
           model(b)->usage->all.spans == *(const size_t *)spans;
}

static bool in_doubt(struct appbed *b, const void *arg)
{
    (void)arg;
    appbed_must(b, app_usage(b->app, "all", 0));
    return model(b)->usage->all.estimates == 1;
}

static void test_ended_while_we_were_off(void **state)
{
    struct appbed *b = *state;
    int64_t started, paused, resumed, killed, run;
    size_t two = 2;
    char *id, *path;

    serve("1");
    open_with(b, (struct usage_limits){0});
    await_rows(b, 1);
    assert_true(settled(b, &(size_t){1}));
    id = xstrdup(model(b)->sandboxes[0].sandbox_id);
    started = model(b)->sandboxes[0].started_at;
    appbed_close(b);

    pass(5);
    path = xasprintf("/sandboxes/%s/pause", id);
    call("POST", path, "");
    free(path);
    pass(5);
    path = xasprintf("/sandboxes/%s/connect", id);
    call("POST", path, "{\"timeout\":600}");
    free(path);
    pass(5);
    path = xasprintf("/sandboxes/%s", id);
    call("DELETE", path, NULL);
    free(path);
    paused = happened(id, "paused");
    resumed = happened(id, "resumed");
    killed = happened(id, "killed");
    assert_true(started && paused > started && resumed > paused && killed > resumed);

    open_with(b, (struct usage_limits){0});
    assert_true(appbed_wait(b, settled, &two));
    run = (paused - started) + (killed - resumed);
    assert_true(llabs(model(b)->usage->all.run_ms - run) <= 1); /* its clock has whole ms */
    assert_true(fabs(model(b)->usage->all.sandbox_usd -
                     (double)model(b)->usage->all.run_ms / 1000 * (2 * 0.000014 + 0.0000045)) < 1e-6);
    free(id);
}

/* No word of what happened: it ran at least until it was seen last, and that is said. */
static void test_a_service_that_does_not_tell(void **state)
{
    struct appbed *b = *state;
    char *path;

    serve("1");
    assert_true(faultd_config(statebed_fake, "{\"rules\":[{\"method\":\"GET\",\"path\":\"/events/*\","
                                    "\"status\":404,\"body\":\"no such page\"}]}"));
    open_with(b, (struct usage_limits){0});
    await_rows(b, 1);
    assert_true(settled(b, &(size_t){1}));
    path = xasprintf("/sandboxes/%s", model(b)->sandboxes[0].sandbox_id);
    appbed_close(b);
    call("DELETE", path, NULL);
    free(path);
    open_with(b, (struct usage_limits){0});
    assert_true(appbed_wait(b, in_doubt, NULL));
    while (!faultd_asked(statebed_fake, "GET", "/events/*").n)
        assert_true(in_doubt(b, NULL));
    assert_true(in_doubt(b, NULL));
    assert_int_equal(model(b)->usage->all.spans, 1);
}

/* --- clocks that are set ---------------------------------------------------------------------- */

static bool has_run(struct appbed *b, const void *ms)
{
    appbed_must(b, app_usage(b->app, "all", 0));
    return model(b)->usage->all.run_ms >= *(const int64_t *)ms;
}

/* The machine's clock goes two days ahead and then ten back: what ran is what the service's
 * time says, and what counts as now is its too. */
static void test_clock_jumps(void **state)
{
    static const int64_t jumps[] = {0, 2 * 86400000LL, -10 * 86400000LL, 0};
    struct appbed *b = *state;
    int64_t began, want = 0;

    serve("1");
    open_with(b, (struct usage_limits){0});
    await_rows(b, 1);
    began = clock_boot_ms();
    for (size_t i = 0; i < sizeof(jumps) / sizeof(jumps[0]); i++) {
        atomic_store(&add_wall, jumps[i]);
        want += 50;
        appbed_must(b, app_refresh(b->app));
        assert_true(appbed_wait(b, has_run, &want));
        assert_true(model(b)->usage->all.run_ms <= clock_boot_ms() - began + 5000);
        assert_int_equal(model(b)->usage->all.spans, 1);
        assert_int_equal(model(b)->usage->all.estimates, 0);
        assert_true(model(b)->usage->period[PERIOD_MONTH].run_ms > 0);
    }
}

/* --- budgets --------------------------------------------------------------------------------- */

/* Six are ours: idle for long (1, 2), protected, at work, idle since just now, and one whose
 * agent has ended; the agents have used $3 of a month's budget. */
static void make_ours(struct appbed *b)
{
    char *text;

    open_with(b, (struct usage_limits){0});
    await_rows(b, 7);
    appbed_close(b);
    text = xasprintf(
        "UPDATE sandboxes SET isForeign=0, tool='claude', name='box-'||id, project='default',"
        " agent=CASE id WHEN 4 THEN 'working' WHEN 6 THEN 'exited' ELSE 'idle' END,"
        " agentSince=%lld-CASE id WHEN 5 THEN 0 ELSE 1800000 END, protect=(id=3) WHERE id<7;"
        "INSERT INTO usageTurns(run, offset, idx, sandbox, role, timeMs, project, inTokens,"
        " cacheRead, cacheWrite, outTokens, costUsd) VALUES(1, 1, 0, 1, '', %lld, 'default', 10,"
        " 0, 0, 10, 3.0)",
        (long long)clock_wall_ms(), (long long)clock_wall_ms());
    sql(b, text);
    free(text);
}

static bool paused_are(struct appbed *b, const void *n)
{
    size_t by[SB_STATE_COUNT] = {0};

    for (size_t i = 0; i < model(b)->n_sandboxes; i++)
        by[model(b)->sandboxes[i].state]++;
    return by[SB_PAUSED] == *(const size_t *)n;
}

static void test_used_up(void **state)
{
    struct appbed *b = *state;
    struct usage_limits limits = {{{0, 0, 2}}, 80, USAGE_PAUSE_IDLE};
    size_t three = 3;

    serve("7");
    make_ours(b);
    open_with(b, limits);
    await_rows(b, 7);
    appbed_must(b, app_usage(b->app, "month", 0));
    assert_true(appbed_wait(b, is_said, "the budget for this month is used up: $3.0"));
    assert_true(appbed_wait(b, paused_are, &three));
    for (size_t i = 0; i < 7; i++) {
        const struct sandbox *s = &model(b)->sandboxes[i];
        bool idle = s->id == 1 || s->id == 2 || s->id == 6;

        assert_int_equal(s->state, idle ? SB_PAUSED : SB_RUNNING);
    }
    assert_int_equal(said(b, "has been idle for"), 3);
    assert_int_equal(faultd_asked(statebed_fake, "POST", "/sandboxes/*/pause").n, 3);
    assert_int_equal(faultd_asked(statebed_fake, "DELETE", "*").n, 0);
    appbed_must(b, app_usage(b->app, "day", 0));
    appbed_must(b, app_usage(b->app, "week", 0));
    assert_int_equal(said(b, "is used up: $"), 1);
    appbed_close(b);

    open_with(b, limits); /* the line of then is shown again, and no other is written */
    await_rows(b, 7);
    appbed_must(b, app_usage(b->app, "month", 0));
    appbed_must(b, app_usage(b->app, "month", 0));
    assert_int_equal(said(b, "is used up: $"), 1);
    assert_int_equal(faultd_asked(statebed_fake, "POST", "/sandboxes/*/pause").n, 3);
}

/* Of several programs one pauses: where another holds the lease, this one leaves it to that. */
static void test_another_pauses(void **state)
{
    struct appbed *b = *state;
    struct usage_limits limits = {{{0, 0, 2}}, 80, USAGE_PAUSE_IDLE};
    char *lease = xasprintf("INSERT INTO leases(name, owner, until, ttl) VALUES('budget',"
                            " 'another', %lld, 600000)", (long long)clock_wall_ms() + 600000);

    serve("7");
    make_ours(b);
    sql(b, lease);
    open_with(b, limits);
    await_rows(b, 7);
    assert_true(appbed_wait(b, is_said, "the budget for this month is used up: $3.0"));
    for (int i = 0; i < 2; i++)
        appbed_must(b, app_usage(b->app, "month", 0));
    assert_int_equal(said(b, "has been idle for"), 0);
    assert_int_equal(faultd_asked(statebed_fake, "POST", "/sandboxes/*/pause").n, 0);
    free(lease);
}

/* Whether another program has told it cannot be asked: it is told as soon as it can. */
static void test_the_database_fails(void **state)
{
    struct appbed *b = *state;
    struct usage_limits limits = {{{0, 0, 2}}, 80, USAGE_NONE};

    serve("7");
    make_ours(b);
    sql(b, "CREATE TRIGGER no BEFORE INSERT ON budgetNotes BEGIN SELECT RAISE(ABORT, 'no'); END");
    open_with(b, limits);
    await_rows(b, 7);
    appbed_must(b, app_usage(b->app, "month", 0));
    appbed_must(b, app_usage(b->app, "month", 0));
    assert_int_equal(said(b, "is used up: $"), 0);
    sql(b, "DROP TRIGGER no");
    appbed_must(b, app_usage(b->app, "month", 0));
    assert_true(appbed_wait(b, is_said, "is used up: $3.0"));
    appbed_must(b, app_usage(b->app, "month", 0));
    assert_int_equal(said(b, "is used up: $"), 1);
}

static void test_a_warning_stops_nothing(void **state)
{
    struct appbed *b = *state;
    struct usage_limits limits = {{{0, 0, 3.5}}, 80, USAGE_PAUSE_IDLE};

    serve("7");
    make_ours(b);
    open_with(b, limits);
    await_rows(b, 7);
    assert_true(appbed_wait(b, is_said, "% of the budget for this month is used: $3.0"));
    appbed_must(b, app_usage(b->app, "month", 0));
    assert_int_equal(said(b, "is used"), 1);
    assert_int_equal(faultd_asked(statebed_fake, "POST", "/sandboxes/*/pause").n, 0);
    appbed_close(b);

    limits.budget.usd[PERIOD_MONTH] = 1; /* without the action it is only told */
    limits.action = USAGE_NONE;
    open_with(b, limits);
    await_rows(b, 7);
    assert_true(appbed_wait(b, is_said, "used up: $3.0"));
    assert_true(is_said(b, "nothing is stopped by it"));
    appbed_must(b, app_usage(b->app, "month", 0));
    assert_int_equal(faultd_asked(statebed_fake, "POST", "/sandboxes/*/pause").n, 0);
}

/* --- the file -------------------------------------------------------------------------------- */

static void test_csv_file(void **state)
{
    struct appbed *b = *state;
    char *path = appbed_path(b, "sums.csv"), *text;
    size_t len;
    struct err e = {0};

    serve("7");
    make_ours(b);
    open_with(b, (struct usage_limits){0});
    await_rows(b, 7);
    assert_int_equal(appbed_finish(b, app_usage_export(b->app, "month", path)), 0);
    assert_string_equal(b->text, path);
    text = fs_read(path, 1 << 20, true, &len, &e);
    assert_non_null(text);
    assert_true(str_starts(text, "by,name,label,sandbox_usd,agent_usd,"));
    assert_non_null(strstr(text, "\nproject,\"default\",\"\","));
    assert_non_null(strstr(text, ",3.000000,"));
    free(text);
    assert_int_equal(appbed_finish(b, app_usage_export(b->app, "month", path)), ERR_CONFLICT);
    free(path);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, appbed_setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_ended_while_we_were_off), T(test_a_service_that_does_not_tell),
        T(test_clock_jumps),             T(test_used_up),
        T(test_a_warning_stops_nothing), T(test_csv_file),
        T(test_the_database_fails),        T(test_another_pauses),
    };

    appbed_main();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
