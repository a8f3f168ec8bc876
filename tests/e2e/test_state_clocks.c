/* The truth about state, where clocks are wrong, jump, or slept: the service's counts. */
#include "../lib/ourclock.h"
#include "../lib/statebed.h"

#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int teardown(void **state)
{
    clocks_right();
    return statebed_teardown(state);
}

static int64_t left_of(const struct appbed *b, size_t i)
{
    return statebed_row(b, i)->end_at - server_clock_at(&statebed_model(b)->clock, clock_boot_ms(), clock_wall_ms());
}

static bool knows_time(struct appbed *b, const void *arg)
{
    (void)arg;
    return statebed_model(b)->n_sandboxes == 2 && statebed_model(b)->clock.server_ms != 0;
}

static void check_left(const struct appbed *b)
{
    for (size_t i = 0; i < 2; i++) {
        assert_in_range(left_of(b, i), 590000, 604000);
        assert_true(statebed_row(b, i)->state == SB_RUNNING && !statebed_row(b, i)->unlisted);
    }
}

/* The time that is left is the service's, wherever our own clock stands or jumps to. */
static void test_wrong_clock(void **state)
{
    static const int64_t wrong[] = {600000, -3600000, 86400000, 0};
    struct appbed *b = *state;

    statebed_serve("0", "0");
    assert_true(faultd_config(statebed_fake, "{\"add\":true,\"sandboxes\":2,\"ttl\":600}"));
    for (size_t i = 0; i < 4; i++) {
        add_wall = wrong[i];
        statebed_open_at(b, 200);
        assert_true(appbed_wait(b, knows_time, NULL));
        check_left(b);
        add_wall = wrong[i] - 86400000; /* set while we look on */
        check_left(b);
        add_wall = wrong[i] + 86400000;
        statebed_await_lists(b, 1);
        appbed_must(b, app_refresh(b->app));
        check_left(b);
        assert_false(statebed_was_said(b, "ends in"));
        assert_false(statebed_was_said(b, "time was up"));
        appbed_close(b);
    }
}

/* Six minutes of sleep that nothing tells of but the clocks: a list at once. */
static void test_sleep(void **state)
{
    struct appbed *b = *state;
    size_t n;

    statebed_serve("2", "0");
    statebed_open_at(b, 60000); /* by itself the next list is far away */
    statebed_await_rows(b, 2);
    statebed_await_link(b, LINK_OK);
    n = faultd_asked(statebed_fake, "GET", "/v2/sandboxes*").n;
    statebed_kill_elsewhere(statebed_row(b, 0)->sandbox_id);
    add_boot += 360000 + 10500;
    add_mono += 10500; /* what the loop slept since: no more than it ever does in one piece */
    app_active(b->app, true);
    n++;
    assert_true(appbed_wait(b, statebed_lists_came, &n));
    assert_true(appbed_wait(b, statebed_first_killed, NULL));
    appbed_close(b);
}

static bool agent_idles(struct appbed *b, const void *arg)
{
    (void)arg;
    return statebed_model(b)->n_sandboxes == 1 && statebed_row(b, 0)->agent == AG_IDLE;
}

/* All streams that were there then, the first n, have ended. */
static bool old_ones_over(struct appbed *b, const void *n)
{
    char *log = faultd_http(statebed_fake, "GET", "/_faultd/log", NULL);
    struct cJSON *j = json_parse(log, strlen(log), NULL);
    size_t left = *(const size_t *)n, open = 0;

    (void)b;
    for (const struct cJSON *r = json_first(json_get(j, "requests")); r && left; r = json_next(r)) {
        if (!str_eq(json_str(r, "path", ""), "/process.Process/Start"))
            continue;
        left--;
        open += !json_get(r, "over_ms");
    }
    json_free(j);
    free(log);
    return open == 0;
}

/* Streams are not believed to have slept well either: each begins anew, and goes on. */
static void test_sleep_streams(void **state)
{
    struct appbed *b = *state;
    struct app_create c = {.tool = "shell", .name = "amber"};
    size_t n;

    if (system("faultd probe >/dev/null 2>&1") != 0)
        skip();
    statebed_serve("0", "0");
    statebed_open_at(b, 60000);
    appbed_must(b, app_create(b->app, &c, true));
    assert_true(appbed_wait(b, agent_idles, NULL));
    appbed_must(b, app_send(b->app, statebed_row(b, 0)->id, "echo here", true)); /* all is started */
    n = faultd_asked(statebed_fake, "POST", "/process.Process/Start").n;
    assert_false(old_ones_over(b, &n));
    add_boot += 360000 + 10500;
    add_mono += 10500;
    app_active(b->app, true);
    assert_true(appbed_wait(b, old_ones_over, &n));
    appbed_must(b, app_send(b->app, statebed_row(b, 0)->id, "echo still-here", true));
    assert_non_null(strstr(b->text, "still-here"));
    assert_int_equal(faultd_asked(statebed_fake, "POST", "/sandboxes*").n, 1); /* the create */
    appbed_close(b);
}

static void told_less(struct appbed *b, int seconds)
{
    uint64_t id = statebed_row(b, 0)->id;

    appbed_must(b, app_set_timeout(b->app, id, seconds));
    assert_true(appbed_wait(b, statebed_was_said, "was asked for, the service gives"));
    assert_in_range(left_of(b, 0), 1000, 3601000);
}

/* The plan allows less than was asked for: what counts is the answer, and it is said. */
static void test_time_is_cut(void **state)
{
    struct appbed *b = *state;

    statebed_serve("1", "0");
    statebed_open_at(b, 200);
    statebed_await_rows(b, 1);
    appbed_must(b, app_refresh(b->app));
    assert_int_equal(appbed_finish(b, app_set_timeout(b->app, statebed_row(b, 0)->id, 0)), ERR_INVALID);
    assert_int_equal(appbed_finish(b, app_set_timeout(b->app, statebed_row(b, 0)->id, -5)), ERR_INVALID);
    assert_int_equal(faultd_asked(statebed_fake, "POST", "*/timeout").n, 0);
    assert_true(faultd_config(statebed_fake, "{\"rules\":[{\"method\":\"POST\",\"path\":\"*/timeout\","
                                    "\"status\":204}]}")); /* done, and nothing is */
    told_less(b, 86400);
    appbed_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_wrong_clock, appbed_setup, teardown),
        cmocka_unit_test_setup_teardown(test_sleep, appbed_setup, teardown),
        cmocka_unit_test_setup_teardown(test_sleep_streams, appbed_setup, teardown),
        cmocka_unit_test_setup_teardown(test_time_is_cut, appbed_setup, teardown),
    };

    appbed_main();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
