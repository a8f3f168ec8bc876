/* The truth about state, through the facade and against a scripted service: who is gone
 * and why, what is shown when no list can be had, how often anything is asked, that a
 * look never wakes or connects anything. */
#include "../lib/ourclock.h"
#include "../lib/statebed.h"

#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define OURS(n) "{\"template\":\"claude\",\"add\":true,\"sandboxes\":" n ",\"metadata\":{" \
                "\"cc-tui\":\"1\",\"cc-tui-session\":\"s-abc\",\"cc-tui-name\":\"amber\"," \
                "\"cc-tui-tool\":\"claude\",\"cc-tui-project\":\"default\"}}"

static int teardown(void **state)
{
    clocks_right();
    return statebed_teardown(state);
}

/* --- who is gone, and why --------------------------------------------------------- */

/* What we kept as running was killed while we were away: known after one list, and one
 * question more, which is not asked again. */
static void test_gone_while_away(void **state)
{
    struct appbed *b = *state;
    char *id, *path;

    statebed_serve("0", "0");
    assert_true(faultd_config(statebed_fake, OURS("1")));
    statebed_open_at(b, 200);
    statebed_await_rows(b, 1);
    appbed_close(b);
    assert_true(faultd_config(statebed_fake, "{\"reset\":true,\"sandboxes\":2,\"add\":true}"));
    setenv("E2B_API_KEY", APPBED_KEY, 1);
    statebed_open_at(b, 60000); /* no second list */
    statebed_await_rows(b, 3);
    id = xstrdup(statebed_row(b, 0)->sandbox_id);
    assert_false(statebed_row(b, 0)->foreign);
    appbed_close(b);
    statebed_kill_elsewhere(id);
    assert_true(faultd_config(statebed_fake, "{\"reset\":true}"));
    setenv("E2B_API_KEY", APPBED_KEY, 1);
    statebed_open_at(b, 60000);
    assert_true(appbed_wait(b, statebed_first_killed, NULL));
    assert_int_equal(statebed_row(b, 0)->gone, GONE_EARLY);
    assert_true(statebed_row(b, 0)->ended_at < statebed_row(b, 0)->end_at);
    path = xasprintf("/sandboxes/%s", id);
    assert_true(faultd_asked(statebed_fake, "GET", "/v2/sandboxes*").n <= 1);
    assert_true(faultd_asked(statebed_fake, "*", path).n <= 1);
    for (size_t i = 0; i < statebed_model(b)->n_events; i++) /* its time was ahead: no word of that */
        assert_null(strstr(statebed_model(b)->events[i].text, "time was up"));
    assert_true(statebed_was_said(b, "before its time"));
    appbed_close(b);
    free(path);
    free(id);
}

static bool one_unlisted(struct appbed *b, const void *arg)
{
    (void)arg;
    for (size_t i = 0; i < statebed_model(b)->n_sandboxes; i++)
        if (statebed_row(b, i)->unlisted)
            return true;
    return false;
}

/* The list lost it, its id still answers: it lives, and is asked for once, not each time. */
static void test_unlisted_but_there(void **state)
{
    struct appbed *b = *state;
    static const char one[] =
        "[{\"sandboxID\":\"iother\",\"templateID\":\"t\",\"state\":\"running\","
        "\"startedAt\":\"2030-01-01T00:00:00Z\",\"endAt\":\"2030-01-01T01:00:00Z\"}]";
    struct buf rule = BUF_INIT;
    struct jw w;

    statebed_serve("1", "0");
    statebed_open_at(b, 800); /* the question for its id comes before the next list */
    statebed_await_rows(b, 1);
    jw_init(&w, &rule);
    jw_obj(&w, NULL);
    jw_arr(&w, "rules");
    jw_obj(&w, NULL);
    jw_str(&w, "method", "GET");
    jw_str(&w, "path", "/v2/sandboxes");
    jw_i64(&w, "status", 200);
    jw_str(&w, "body", one);
    jw_end(&w);
    jw_end(&w);
    jw_end(&w);
    assert_true(faultd_config(statebed_fake, buf_str(&rule)));
    buf_release(&rule);
    assert_true(appbed_wait(b, one_unlisted, NULL));
    statebed_await_lists(b, 2);
    assert_true(statebed_row(b, 0)->unlisted && statebed_row(b, 0)->state == SB_RUNNING);
    assert_int_equal(faultd_asked(statebed_fake, "GET", "/sandboxes/i*").n, 1);
    statebed_lists_are_well();
    appbed_must(b, app_refresh(b->app));
    assert_false(statebed_row(b, 0)->unlisted);
    appbed_close(b);
}

static bool none_listed(struct appbed *b, const void *arg)
{
    (void)arg;
    for (size_t i = 0; i < statebed_model(b)->n_sandboxes; i++)
        if (!statebed_row(b, i)->unlisted)
            return false;
    return true;
}

/* A service that begins anew answers with nothing for a while: nobody is killed by that,
 * and nobody is asked for one by one. */
static void test_nothing_listed(void **state)
{
    struct appbed *b = *state;

    statebed_serve("3", "2");
    statebed_open_at(b, 200);
    statebed_await_rows(b, 5);
    statebed_lists_answer("\"status\":200,\"body\":\"[]\"");
    assert_true(appbed_wait(b, none_listed, NULL));
    statebed_await_lists(b, 3);
    for (size_t i = 0; i < 5; i++)
        assert_true(statebed_row(b, i)->state != SB_KILLED);
    assert_int_equal(faultd_asked(statebed_fake, "GET", "/sandboxes/i*").n, 0);
    statebed_lists_are_well();
    appbed_must(b, app_refresh(b->app));
    for (size_t i = 0; i < 5; i++)
        assert_false(statebed_row(b, i)->unlisted);
    assert_int_equal(statebed_model(b)->total_running, 3);
    appbed_close(b);
}

/* The VM is there, its agent could not be started: an error that is still up, is counted
 * and can be ended. */
static void test_agent_does_not_start(void **state)
{
    struct appbed *b = *state;
    struct app_create c = {.tool = "shell", .name = "amber"};

    statebed_serve("0", "0");
    assert_true(faultd_config(statebed_fake, "{\"rules\":[{\"path\":\"/process.Process/*\",\"status\":500,"
                                    "\"body\":\"{\\\"code\\\":\\\"internal\\\",\\\"message\\\":"
                                    "\\\"no such program\\\"}\"}]}"));
    statebed_open_at(b, 200);
    assert_int_not_equal(appbed_finish(b, app_create(b->app, &c, true)), 0);
    appbed_must(b, app_refresh(b->app));
    statebed_await_lists(b, 2);
    assert_int_equal(statebed_model(b)->n_sandboxes, 1);
    assert_int_equal(statebed_row(b, 0)->state, SB_ERROR);
    assert_true(statebed_row(b, 0)->vm_up && statebed_row(b, 0)->reason);
    appbed_must(b, app_kill_all_open(b->app, false));
    assert_int_equal(statebed_model(b)->kill->by_state[SB_ERROR], 1);
    assert_int_equal(statebed_model(b)->kill->n_project, 1);
    app_kill_all_cancel(b->app);
    appbed_must(b, app_kill(b->app, statebed_row(b, 0)->id));
    assert_false(statebed_row(b, 0)->vm_up);
    appbed_close(b);
}

/* --- no list ----------------------------------------------------------------------- */

/* Rows stay as they were seen last, and it is known how old that is. */
static void test_no_list(void **state)
{
    struct appbed *b = *state;
    int64_t seen;

    statebed_serve("3", "2");
    statebed_open_at(b, 200);
    statebed_await_rows(b, 5);
    assert_false(model_is_stale(statebed_model(b)));
    statebed_lists_answer("\"status\":503");
    statebed_await_link(b, LINK_DOWN);
    assert_true(model_is_stale(statebed_model(b)));
    seen = statebed_model(b)->listed_at;
    assert_true(seen > 0);
    statebed_await_lists(b, 2);
    assert_int_equal(statebed_model(b)->listed_at, seen);
    for (size_t i = 0; i < 5; i++)
        assert_true(statebed_row(b, i)->state == (i < 3 ? SB_RUNNING : SB_PAUSED) || statebed_row(b, i)->foreign);
    statebed_lists_are_well();
    statebed_await_link(b, LINK_OK);
    assert_false(model_is_stale(statebed_model(b)));
    appbed_close(b);
}

/* Neither the new route nor the old one: said with route and status, rows are kept. */
static void test_no_route(void **state)
{
    struct appbed *b = *state;

    statebed_serve("2", "0");
    statebed_open_at(b, 200);
    statebed_await_rows(b, 2);
    assert_true(faultd_config(statebed_fake, "{\"rules\":[{\"method\":\"GET\",\"path\":\"/v2/sandboxes\","
                                    "\"status\":404},{\"method\":\"GET\",\"path\":\"/sandboxes\","
                                    "\"status\":404}]}"));
    statebed_await_link(b, LINK_DOWN);
    assert_non_null(strstr(statebed_model(b)->link_text, "404"));
    assert_non_null(strstr(statebed_model(b)->link_text, "/sandboxes"));
    assert_int_equal(statebed_row(b, 0)->state, SB_RUNNING);
    assert_true(model_is_stale(statebed_model(b)));
    /* only the old route: running ones are listed, and it is said that others are not */
    assert_true(faultd_config(statebed_fake, "{\"v2\":false,\"rules\":[]}"));
    statebed_await_link(b, LINK_OK);
    assert_non_null(strstr(statebed_model(b)->link_text, "running"));
    appbed_close(b);
}

/* "Leave me alone for so long" holds for everything that lists, a refresh too. */
static void test_patience(void **state)
{
    struct appbed *b = *state;
    size_t before;

    statebed_serve("1", "0");
    statebed_open_at(b, 200);
    statebed_await_rows(b, 1);
    statebed_lists_answer("\"status\":429,\"retry_after\":\"30\"");
    statebed_await_link(b, LINK_LIMITED);
    before = faultd_asked(statebed_fake, "GET", "/v2/sandboxes*").n;
    assert_int_equal(appbed_finish(b, app_refresh(b->app)), ERR_BUSY);
    app_active(b->app, false);
    app_active(b->app, true);
    assert_int_equal(appbed_finish(b, app_refresh(b->app)), ERR_BUSY);
    assert_int_equal(faultd_asked(statebed_fake, "GET", "/v2/sandboxes*").n, before);
    add_mono += 31000; /* the time is over */
    add_boot += 31000;
    statebed_lists_are_well();
    appbed_must(b, app_refresh(b->app));
    statebed_await_link(b, LINK_OK);
    appbed_close(b);
}

/* Who asks for a list gets one that was asked for after it, and one that fails is not the last. */
static void test_refresh(void **state)
{
    struct appbed *b = *state;
    size_t before;

    statebed_serve("2", "0");
    statebed_open_at(b, 1000);
    statebed_await_rows(b, 2);
    statebed_lists_answer("\"delay_ms\":600");
    statebed_await_lists(b, 1); /* one is under way */
    before = faultd_asked(statebed_fake, "GET", "/v2/sandboxes*").n;
    appbed_must(b, app_refresh(b->app));
    assert_true(faultd_asked(statebed_fake, "GET", "/v2/sandboxes*").n > before);
    statebed_lists_answer("\"status\":503,\"times\":1");
    appbed_must(b, app_refresh(b->app));
    appbed_close(b);
}

/* Its time gets short while somebody looks on: said once, and not of one that was so before. */
static void test_time_gets_short(void **state)
{
    struct appbed *b = *state;
    size_t said = 0;

    statebed_serve("0", "0");
    assert_true(faultd_config(statebed_fake, OURS("1")));
    statebed_open_at(b, 200);
    statebed_await_rows(b, 1);
    statebed_await_lists(b, 2);
    assert_false(statebed_was_said(b, " ends in "));
    appbed_must(b, app_set_timeout(b->app, statebed_row(b, 0)->id, 100));
    assert_true(appbed_wait(b, statebed_was_said, " ends in "));
    statebed_await_lists(b, 3);
    for (size_t i = 0; i < statebed_model(b)->n_events; i++)
        said += strstr(statebed_model(b)->events[i].text, " ends in ") != NULL;
    assert_int_equal(said, 1);
    appbed_close(b);
}

/* --- how much is asked ---------------------------------------------------------------- */

#define LIST "/v2/sandboxes?state=running,paused&limit=100"

static bool second_list(struct appbed *b, const void *first)
{
    (void)b;
    return faultd_asked(statebed_fake, "GET", LIST).n > *(const size_t *)first;
}

/* Five hundred rows of ours, every pane opened, somebody leans on the refresh key. */
static void test_many_rows(void **state)
{
    struct appbed *b = *state;
    struct faultd_asked all, lists;
    size_t one = 1;

    statebed_serve("0", "0");
    assert_true(faultd_config(statebed_fake, OURS("500")));
    /* nobody is there to talk to: what the control plane is asked counts */
    assert_true(faultd_config(statebed_fake, "{\"rules\":[{\"path\":\"/health\",\"status\":502},"
                                    "{\"path\":\"/process.Process/*\",\"status\":502}]}"));
    statebed_open_at(b, 0);
    statebed_await_rows(b, 500);
    for (size_t i = 0; i < 500; i++)
        app_follow(b->app, statebed_row(b, i)->id);
    for (int i = 0; i < 40; i++)
        app_refresh(b->app);
    assert_true(appbed_wait(b, second_list, &one));
    lists = faultd_asked(statebed_fake, "GET", LIST);
    assert_true(lists.last - lists.first >= 1900 * ((int64_t)lists.n - 1));
    all = faultd_asked(statebed_fake, "*", "*/sandboxes*");
    assert_int_equal(faultd_asked(statebed_fake, "POST", "*/sandboxes*").n, 0);
    /* the five pages of the list that ended it belong to the time after */
    assert_true((int64_t)(all.n - 5) * 1000 <= 5 * (all.last - all.first + 1000));
    assert_true(faultd_asked(statebed_fake, "GET", "/sandboxes/i*").n >= 4); /* but it goes on */
    appbed_close(b);
}

/* A list that says what is known wakes nobody. */
static void test_no_news(void **state)
{
    struct appbed *b = *state;
    size_t n;

    statebed_serve("20", "5");
    statebed_open_at(b, 100);
    statebed_await_rows(b, 25);
    statebed_await_link(b, LINK_OK);
    statebed_await_lists(b, 2);
    app_drain(b->app, 0);
    n = faultd_asked(statebed_fake, "GET", "/v2/sandboxes*").n + 6;
    while (faultd_asked(statebed_fake, "GET", "/v2/sandboxes*").n < n) {
        struct pollfd p = {app_fd(b->app), POLLIN, 0};
        assert_int_equal(poll(&p, 1, 20), 0);
    }
    appbed_close(b);
}

/* --- looking is harmless --------------------------------------------------------------- */

static bool tried_often(struct appbed *b, const void *n)
{
    (void)b;
    return faultd_asked(statebed_fake, "*", "/health").n >= *(const size_t *)n;
}

/* Paused ones, panes that open and close, streams that fail, a message: nothing is ever
 * connected, resumed, given or taken time, and paused ones are not spoken to at all. */
static void test_only_looks(void **state)
{
    struct appbed *b = *state;
    size_t n = 2;
    int64_t end_at;

    statebed_serve("0", "0");
    assert_true(faultd_config(statebed_fake, OURS("1")));
    assert_true(faultd_config(statebed_fake, "{\"template\":\"claude\",\"add\":true,\"sandboxes\":0,"
                                    "\"paused\":3,\"metadata\":{\"cc-tui\":\"1\","
                                    "\"cc-tui-session\":\"s-p\",\"cc-tui-tool\":\"claude\"}}"));
    assert_true(faultd_config(statebed_fake, "{\"rules\":[{\"path\":\"/health\",\"status\":502},"
                                    "{\"path\":\"/process.Process/*\",\"status\":502},"
                                    "{\"path\":\"/files\",\"status\":502}]}"));
    statebed_open_at(b, 200);
    statebed_await_rows(b, 4);
    for (size_t i = 0; i < 4; i++) {
        app_follow(b->app, statebed_row(b, i)->id);
        appbed_finish(b, app_send(b->app, statebed_row(b, i)->id, "hello", false));
    }
    end_at = statebed_row(b, 0)->end_at;
    assert_true(appbed_wait(b, tried_often, &n));
    for (size_t i = 0; i < 4; i++)
        app_unfollow(b->app, statebed_row(b, i)->id);
    appbed_must(b, app_refresh(b->app));
    assert_int_equal(statebed_row(b, 0)->end_at, end_at);
    assert_int_equal(faultd_asked(statebed_fake, "POST", "*/sandboxes*").n, 0);
    assert_int_equal(faultd_asked(statebed_fake, "DELETE", "*").n, 0);
    for (size_t i = 0; i < 4; i++) {
        char *path = xasprintf("/sandboxes/%s", statebed_row(b, i)->sandbox_id);
        /* once for its address, once more when the way to it failed */
        assert_true(faultd_asked(statebed_fake, "*", path).n <= (statebed_row(b, i)->state == SB_PAUSED ? 0u : 2u));
        free(path);
    }
    appbed_close(b);
}

static bool is_armed(struct appbed *b, const void *set)
{
    const struct ev_kill *k = statebed_model(b)->kill;

    return k && k->phase == KILL_ARMED && k->set != *(const uint64_t *)set;
}

/* A list is there and applied, and we have not looked yet: one is under way at a time, so
 * the first of two has been taken when the second is asked for. */
static void lists_come_unseen(struct appbed *b)
{
    struct pollfd none = {.fd = -1};
    size_t n = faultd_asked(statebed_fake, "GET", "/v2/sandboxes*").n;

    for (size_t more = 1; more <= 2; more++) {
        int tries = 0;

        app_refresh(b->app);
        while (faultd_asked(statebed_fake, "GET", "/v2/sandboxes*").n < n + more) {
            assert_true(tries++ < 1500);
            poll(&none, 1, 20);
        }
    }
}

/* One ended and another one came while the question was open: as many, but not the same. */
static void test_others_as_many(void **state)
{
    struct appbed *b = *state;
    uint64_t set = 0, req;

    statebed_serve("3", "0");
    statebed_open_at(b, 60000);
    statebed_await_rows(b, 3);
    appbed_must(b, app_kill_all_open(b->app, true));
    assert_int_equal(statebed_model(b)->kill->n_account, 3);
    set = statebed_model(b)->kill->set;
    statebed_kill_elsewhere(statebed_row(b, 0)->sandbox_id);
    assert_true(faultd_config(statebed_fake, "{\"add\":true,\"sandboxes\":1}"));
    lists_come_unseen(b);
    req = app_kill_all_confirm(b->app, true, 3);
    assert_int_equal(appbed_finish(b, req), ERR_CONFLICT);
    assert_int_equal(faultd_asked(statebed_fake, "DELETE", "*").n, 1); /* not ours */
    assert_true(appbed_wait(b, is_armed, &set));
    assert_int_equal(statebed_model(b)->kill->n_account, 3);
    appbed_must(b, app_kill_all_confirm(b->app, true, 3));
    assert_int_equal(statebed_model(b)->kill->killed, 3);
    appbed_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_gone_while_away, appbed_setup, teardown),
        cmocka_unit_test_setup_teardown(test_unlisted_but_there, appbed_setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_listed, appbed_setup, teardown),
        cmocka_unit_test_setup_teardown(test_agent_does_not_start, appbed_setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_list, appbed_setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_route, appbed_setup, teardown),
        cmocka_unit_test_setup_teardown(test_patience, appbed_setup, teardown),
        cmocka_unit_test_setup_teardown(test_refresh, appbed_setup, teardown),
        cmocka_unit_test_setup_teardown(test_time_gets_short, appbed_setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_rows, appbed_setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_news, appbed_setup, teardown),
        cmocka_unit_test_setup_teardown(test_only_looks, appbed_setup, teardown),
        cmocka_unit_test_setup_teardown(test_others_as_many, appbed_setup, teardown),
    };

    appbed_main();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
