/* Ending everything while the service lies and stumbles, and ends that are cut short. */
#include "../lib/statebed.h"

#include <cct/util/buf.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool armed(struct appbed *b, const void *arg)
{
    (void)arg;
    return statebed_model(b)->kill && statebed_model(b)->kill->phase == KILL_ARMED;
}

static bool is_running(struct appbed *b, const void *arg)
{
    (void)arg;
    return statebed_model(b)->kill && statebed_model(b)->kill->phase == KILL_RUNNING &&
           statebed_model(b)->sandboxes[0].pending;
}

static void add_rule(struct buf *out, const char *id, const char *what)
{
    buf_addf(out, "%s{\"method\":\"DELETE\",\"path\":\"/sandboxes/%s\",%s}",
             out->len ? "," : "", id, what);
}

/* One rule each for the first rows of the list. */
static void break_things(const struct appbed *b)
{
    static const char *const faults[] = {
        "\"status\":500,\"times\":1",                          /* tried again */
        "\"status\":429,\"retry_after\":\"1\",\"times\":1",    /* waits as told */
        "\"status\":404,\"times\":1",                          /* a lie: still there */
        "\"status\":204,\"times\":1",                          /* a lie: still there */
        "\"status\":204,\"times\":2",                          /* comes back */
        "\"status\":204,\"apply\":true,\"cut\":0,\"times\":1", /* gone, answer lost */
        "\"status\":403,\"times\":1",                          /* refused */
    };
    struct buf rules = BUF_INIT;
    char *json;

    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        add_rule(&rules, statebed_model(b)->sandboxes[i].sandbox_id, faults[i]);
    json = xasprintf("{\"rules\":[%s]}", buf_str(&rules));
    assert_true(faultd_config(statebed_fake, json));
    free(json);
    buf_release(&rules);
}

static void test_kill_all(void **state)
{
    struct appbed *b = *state;
    size_t n = 40;
    const struct ev_kill *k;

    statebed_serve("30", "10");
    statebed_open_at(b, 200);
    statebed_await_rows(b, n);
    break_things(b);
    appbed_must(b, app_kill_all_open(b->app, true));
    k = statebed_model(b)->kill;
    assert_int_equal(k->phase, KILL_ARMED);
    assert_int_equal(k->n_account, 40);
    assert_int_equal(k->n_project, 0);
    assert_int_equal(k->by_state[SB_RUNNING], 30);
    assert_int_equal(k->by_state[SB_PAUSED], 10);
    assert_true(k->usd_per_hour > 30 * 0.1);
    assert_int_equal(appbed_finish(b, app_kill_all_confirm(b->app, true, 39)), ERR_CONFLICT);
    assert_int_equal(faultd_left(statebed_fake), 40);
    assert_int_not_equal(appbed_finish(b, app_kill_all_confirm(b->app, true, 40)), 0);
    k = statebed_model(b)->kill;
    assert_int_equal(k->phase, KILL_REPORT);
    assert_int_equal(k->killed + k->already_gone, 39);
    assert_int_equal(k->failed, 1);
    assert_int_equal(k->still_alive, 0);
    assert_true(k->verified);
    assert_int_equal(faultd_left(statebed_fake), 1);
    appbed_must(b, app_kill_all_retry(b->app));
    k = statebed_model(b)->kill;
    assert_int_equal(k->failed, 0);
    assert_true(k->verified);
    assert_int_equal(faultd_left(statebed_fake), 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(statebed_model(b)->sandboxes[i].state, SB_KILLED);
    appbed_close(b);
}

static bool first_creating(struct appbed *b, const void *arg)
{
    (void)arg;
    return statebed_model(b)->n_sandboxes == 1 && statebed_model(b)->sandboxes[0].state == SB_CREATING;
}

/* A create whose answer is still to come goes too. */
static void test_kill_all_creating(void **state)
{
    struct appbed *b = *state;
    struct app_create c = {.tool = "shell", .name = "early"};
    uint64_t create, refused, kill;

    statebed_serve("0", "0");
    assert_true(faultd_config(statebed_fake, "{\"rules\":[{\"method\":\"POST\",\"path\":\"/sandboxes\","
                                    "\"delay_ms\":1500}]}"));
    statebed_open_at(b, 200);
    create = app_create(b->app, &c, true);
    assert_true(appbed_wait(b, first_creating, NULL));
    appbed_must(b, app_kill_all_open(b->app, false));
    assert_true(appbed_wait(b, armed, NULL));
    assert_int_equal(statebed_model(b)->kill->by_state[SB_CREATING], 1);
    kill = app_kill_all_confirm(b->app, false, 1);
    c.name = "later";
    refused = app_create(b->app, &c, true);
    assert_int_equal(appbed_finish(b, refused), ERR_CONFLICT);
    assert_int_equal(appbed_finish(b, create), ERR_CANCELLED);
    appbed_must(b, kill); /* it is gone by the list that proves it */
    assert_int_equal(statebed_model(b)->sandboxes[0].state, SB_KILLED);
    assert_int_equal(faultd_left(statebed_fake), 0);
    appbed_close(b);
}

static bool finished(struct appbed *b, const void *arg)
{
    (void)arg;
    return faultd_left(statebed_fake) == 0 && statebed_model(b)->n_events > 0;
}

/* Killed ourselves in the middle of it: the next life finishes what was confirmed. */
static void test_cut_short(void **state)
{
    struct appbed *b = *state;

    statebed_serve("4", "1");
    assert_true(faultd_config(statebed_fake, "{\"rules\":[{\"method\":\"DELETE\",\"path\":\"*\","
                                    "\"status\":503}]}"));
    statebed_open_at(b, 200);
    statebed_await_rows(b, 5);
    appbed_must(b, app_kill_all_open(b->app, true));
    app_kill_all_confirm(b->app, true, 5);
    assert_true(appbed_wait(b, is_running, NULL));
    appbed_close(b);
    assert_int_equal(faultd_left(statebed_fake), 5);
    assert_true(faultd_config(statebed_fake, "{\"rules\":[]}"));
    statebed_open_at(b, 200);
    assert_true(appbed_wait(b, finished, NULL));
    appbed_close(b);
}

static void test_called_off(void **state)
{
    struct appbed *b = *state;
    struct app_opts o = {.poll_ms = 200, .kill_all_grace_s = 5};
    uint64_t req;

    statebed_serve("3", "0");
    setenv("E2B_API_KEY", APPBED_KEY, 1);
    appbed_open(b, &o);
    statebed_await_rows(b, 3);
    appbed_must(b, app_kill_all_open(b->app, true));
    req = app_kill_all_confirm(b->app, true, 3);
    app_kill_all_cancel(b->app);
    assert_int_equal(appbed_finish(b, req), ERR_CANCELLED);
    appbed_must(b, app_refresh(b->app));
    assert_int_equal(faultd_left(statebed_fake), 3);
    appbed_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_kill_all, appbed_setup, statebed_teardown),
        cmocka_unit_test_setup_teardown(test_kill_all_creating, appbed_setup, statebed_teardown),
        cmocka_unit_test_setup_teardown(test_cut_short, appbed_setup, statebed_teardown),
        cmocka_unit_test_setup_teardown(test_called_off, appbed_setup, statebed_teardown),
    };

    appbed_main();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
