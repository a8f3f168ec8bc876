/* Recorded runs: when what comes, seeking, speeds, and an application that only shows. */
#include "../lib/replaybed.h"

#include <cct/agent.h>
#include <cct/app.h>
#include <cct/app/replay.h>
#include <cct/util/buf.h>
#include <cct/util/str.h>
#include <cct/util/thread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void test_times(void **state)
{
    (void)state;
    struct replay *r = of(events);
    assert_int_equal(replay_count(r), 8);
    assert_string_equal(due(r, 0), "0 turn_begin|");
    assert_int_equal(replay_wait(r, 0), 61);
    assert_string_equal(due(r, 100), "60 user_echo hello|"); /* what had no time before it */
    assert_string_equal(due(r, 3100), "3060 text I |");      /* spread between the two that had */
    assert_string_equal(due(r, 9059), "6060 text am|");
    assert_string_equal(due(r, 9060), "9060 text I am|");
    assert_int_equal(replay_length(r), 610060);
    assert_false(replay_is_over(r));
    due(r, 700000);
    assert_true(replay_is_over(r));
    assert_int_equal(replay_wait(r, 700000), -1);
    assert_int_equal(replay_at(r, 700000), 610060);
    replay_free(r);
}

/* A file may say any time, and thousands of events may have none. */
static void test_far_times(void **state)
{
    enum { UNTIMED = 2000 };
    static const char timed[] = "{\"kind\":\"turn_begin\",\"offset\":1,\"index\":0,\"time\":%lld}\n";
    struct buf b = BUF_INIT;

    (void)state;
    buf_addf(&b, timed, 1LL);
    for (int i = 0; i < UNTIMED; i++)
        buf_adds(&b, "{\"kind\":\"turn_begin\",\"offset\":2,\"index\":0}\n");
    buf_addf(&b, timed, 9000000000000001LL);
    struct replay *r = of(buf_str(&b));
    assert_int_equal(replay_length(r), 9000000000000000LL);
    assert_string_equal(due(r, 0), "0 turn_begin|");
    assert_int_equal(replay_wait(r, 0), 9000000000000000LL / (UNTIMED + 1) + 1);
    replay_seek(r, 0, INT64_MAX);
    due(r, 0);
    assert_true(replay_is_over(r));
    replay_free(r);
    buf_release(&b);
}

static void test_no_times(void **state)
{
    (void)state;
    struct replay *r = of("{\"kind\":\"turn_begin\",\"offset\":0,\"index\":0}\n\n"
                          "{\"kind\":\"text\",\"offset\":1,\"index\":0,\"text\":\"a\",\"final\":false}\n"
                          "{\"kind\":\"text\",\"offset\":2,\"index\":0,\"text\":\"ab\",\"final\":true}");
    assert_int_equal(replay_length(r), 860);
    assert_string_equal(due(r, 459), "400 turn_begin|");
    assert_string_equal(due(r, 460), "460 text a|");
    replay_free(r);
    struct err e = {0};
    r = with("", 0, NULL);
    assert_int_equal(look(r, &e), ERR_NOTFOUND);
    assert_true(replay_is_ready(r));
    replay_pause(r, 0, false);
    assert_int_equal(replay_length(r), 0);
    assert_int_equal(replay_wait(r, 5), -1);
    replay_seek(r, 5, 100);
    replay_skip(r, 5, -100);
    replay_free(r);
}

static void test_speed(void **state)
{
    (void)state;
    struct replay *r = of(events);
    int percent;
    due(r, 100);
    replay_set_speed(r, 100, 400);
    assert_int_equal(replay_at(r, 200), 500);
    replay_change_speed(r, 200, false);
    assert_int_equal(replay_speed(r), 200);
    assert_int_equal(replay_at(r, 200), 500); /* no jump */
    replay_pause(r, 300, true);
    assert_int_equal(replay_at(r, 100000), 700);
    assert_int_equal(replay_wait(r, 100000), -1);
    replay_pause(r, 100000, false);
    assert_int_equal(replay_at(r, 100100), 900);
    for (int i = 0; i < 9; i++)
        replay_change_speed(r, 100100, true);
    assert_int_equal(replay_speed(r), REPLAY_MAX);
    assert_int_equal(replay_wait(r, 100100), 0);
    due(r, 100100);
    assert_true(replay_is_over(r));
    assert_true(replay_parse_speed("2.5x", &percent) && percent == 250);
    assert_true(replay_parse_speed("max", &percent) && percent == REPLAY_MAX);
    assert_false(replay_parse_speed("0", &percent) || replay_parse_speed("nan", &percent) ||
                 replay_parse_speed("fast", &percent) || replay_parse_speed("", &percent));
    replay_free(r);
}

static void test_seek(void **state)
{
    (void)state;
    struct replay *r = of(events);
    replay_pause(r, 0, true);
    replay_seek(r, 0, 9100);
    due(r, 0);
    replay_skip(r, 0, 10000); /* over the ten minutes, to what comes next */
    assert_int_equal(replay_at(r, 0), 309060);
    assert_string_equal(due(r, 0), "309060 turn_end|");
    replay_skip(r, 0, -10000);
    assert_int_equal(replay_at(r, 0), 9060);
    assert_true(replay_fd(r) >= 0); /* all from the begin */
    assert_non_null(strstr(due(r, 0), "0 turn_begin|60 user_echo hello|"));
    assert_int_equal(replay_wait(r, 0), -1);
    replay_seek(r, 0, -5);
    assert_int_equal(replay_at(r, 0), 0);
    replay_seek(r, 0, INT64_MAX);
    due(r, 0);
    assert_true(replay_is_over(r));
    replay_free(r);
}

/* More times than are kept: each at its time as far as memory goes, the first and the last one exactly,
 * and no call takes long. */
static uint64_t n_given;
static int64_t worst, last_at;

static void count_it(void *ctx, const struct agent_event *ev, int64_t at)
{
    (void)ctx;
    int64_t off = at - (ev->time_ms - 1000);
    assert_true(at >= last_at);
    worst = worst > llabs(off) ? worst : llabs(off);
    last_at = at;
    n_given++;
}

static void test_long(void **state)
{
    enum { LINES = 140000 };
    struct buf b = BUF_INIT;
    int n, calls = 0;
    (void)state;
    for (n = 0; n < LINES; n++)
        buf_addf(&b, "{\"kind\":\"turn_begin\",\"offset\":%d,\"time\":%d}\n", n, 1000 + n * 10);
    struct replay *r = of(buf_str(&b));
    assert_int_equal(replay_count(r), LINES);
    assert_int_equal(replay_length(r), (LINES - 1) * 10);
    while (!replay_is_over(r)) {
        uint64_t before = n_given;
        replay_due(r, LINES * 10, count_it, NULL);
        assert_true(n_given - before <= 2000);
        calls++;
        if (replay_wait(r, LINES * 10) != 0)
            await(r);
    }
    assert_true(calls >= LINES / 2000);
    assert_int_equal(n_given, LINES);
    assert_int_equal(last_at, (LINES - 1) * 10);
    assert_true(worst <= 10);
    replay_free(r);
    buf_release(&b);
}

/* --- shown ------------------------------------------------------------------------------- */

static uint64_t ended;
static char why[200];

static void see(void *ctx, const struct msg *ev)
{
    (void)ctx;
    if (ev->type != EV_DONE)
        return;
    ended = ev->req_id;
    str_copy(why, sizeof(why), ((const struct ev_done *)ev)->err.text);
}

static void feed(struct replay *r, struct app *a)
{
    do
        replay_feed(r, 0, a);
    while (replay_wait(r, 0) == 0 || await(r));
    app_drain(a, 0);
}

static void test_shown(void **state)
{
    (void)state;
    char dir[] = "/tmp/cct-replay.XXXXXX";
    assert_non_null(mkdtemp(dir));
    struct app_opts o = {.data_dir = dir, .config_dir = dir, .state_dir = dir, .runtime_dir = dir};
    struct err e = {0};
    struct app *a = app_new_shown(&o, "only shown", &e);
    struct replay *r = of(events);
    assert_non_null(a);
    app_observe(a, see, NULL);
    replay_pause(r, 0, true);
    replay_seek(r, 0, 9060);
    feed(r, a);
    const struct transcript *t = model_transcript(app_model(a), REPLAY_ROW);
    const struct sandbox *s = model_sandbox(app_model(a), REPLAY_ROW);
    assert_non_null(t);
    assert_int_equal(t->n, 2);
    assert_string_equal(t->v[1].text, "I am");
    assert_string_equal(s->name, "replay of it");
    assert_int_equal(s->agent, AG_WORKING);
    replay_seek(r, 0, 700000);
    feed(r, a);
    t = model_transcript(app_model(a), REPLAY_ROW);
    assert_int_equal(t->n, 5); /* the run that began anew has not taken the place of the first */
    assert_string_equal(t->v[4].text, "anew");
    replay_seek(r, 0, 100);
    feed(r, a);
    t = model_transcript(app_model(a), REPLAY_ROW);
    assert_int_equal(t->n, 1);
    uint64_t req = app_kill(a, REPLAY_ROW);
    assert_int_equal(app_go_online(a, &e), 0);
    app_follow(a, REPLAY_ROW);
    app_drain(a, 0);
    assert_int_equal(ended, req);
    assert_string_equal(why, "only shown");
    app_free(a);
    replay_free(r);
    assert_int_equal(rmdir(dir), 0); /* nothing was written */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_far_times),
        cmocka_unit_test(test_no_times),
        cmocka_unit_test(test_speed),
        cmocka_unit_test(test_seek),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_shown),
    };
    thread_set_role(THREAD_MAIN);
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    buf_release(&said);
    return rc;
}
