/* Streams of a sandbox that does what it should not: each line of the agent's log is
 * shown once, or a mark says that something is amiss. */
#include "../lib/boxview.h"
#include "../lib/sidebyside.h"

#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct boxview v;

static int close_all(void **state)
{
    (void)state;
    boxview_close(&v);
    return 0;
}

/* --- what the screen has --------------------------------------------------------- */

static bool has_notice(void *ctx)
{
    return boxview_notice(&v, ctx);
}

static void each_once(int n)
{
    for (int i = 1; i <= n; i++) {
        char line[24];

        snprintf(line, sizeof(line), "<%d> ", i);
        boxview_wait(&v, line);
        if (boxview_times(&v, line) != 1)
            fail_msg("line %d is shown %d times", i, boxview_times(&v, line));
    }
}

static bool all_shown_once(void *ctx)
{
    const int *n = ctx;

    for (int i = 1; i <= *n; i++) {
        char line[24];

        snprintf(line, sizeof(line), "<%d> ", i);
        if (boxview_times(&v, line) != 1)
            return false;
    }
    return true;
}

static void pass_time(int ms)
{
    jobsbed_wait(v.bed, NULL, NULL, ms);
}

/* --- right streams that are quiet, slow, cut ------------------------------------- */

/* Keepalives alone for far longer than the limit of silence, then a line. */
static void quiet_then_a_line(struct boxplay *b, struct mini_conn *c, uint64_t from, int nth)
{
    (void)nth;
    boxplay_begin(c);
    boxplay_keep(c, 8, 400);
    boxplay_log(b, c, (size_t)from, b->log.len);
    boxplay_keep(c, 600, 400);
}

static void test_a_quiet_agent_is_not_cut(void **state)
{
    (void)state;
    v.box = boxplay_start(quiet_then_a_line);
    boxplay_lines(v.box, 1, 20);
    v.box->there = 0;
    boxview_open(&v, 1); /* dead after 2.5 s without a byte */
    boxview_wait(&v, "<1> ");
    assert_int_equal(boxview_times(&v, "<1> "), 1);
    assert_int_equal(v.box->tails, 1);
    assert_int_equal(boxview_times(&v, "keepalive"), 0);
    assert_int_equal(model_transcript(v.bed->model, v.row)->n, 1);
}

/* The first byte comes late, then the stream drips. */
static void drip(struct boxplay *b, struct mini_conn *c, uint64_t from, int nth)
{
    char text[] = "HTTP/1.1 200 OK\r\nContent-Type: application/connect+json\r\n\r\n";

    (void)nth;
    mini_wait(c, 2000);
    for (char *p = text; *p; p++) {
        mini_wait(c, 20);
        mini_send(c, p, 1);
    }
    boxplay_json(c, 0, "{\"event\":{\"start\":{\"pid\":41}}}");
    boxplay_log(b, c, (size_t)from, b->log.len);
    boxplay_keep(c, 600, 400);
}

static void test_a_slow_answer_is_waited_for(void **state)
{
    const struct sandbox *r;
    (void)state;

    v.box = boxplay_start(drip);
    boxplay_lines(v.box, 3, 20);
    v.box->there = 0;
    boxview_open(&v, 1);
    each_once(3);
    r = model_sandbox(v.bed->model, v.row);
    assert_int_equal(r->state, SB_RUNNING);
    assert_int_not_equal(r->agent, AG_FAILED);
    assert_int_equal(v.box->tails, 1);
    assert_int_equal(v.box->looks, 1);
}

/* Five lines, then nothing and no end: half of a connection. */
static void falls_dead(struct boxplay *b, struct mini_conn *c, uint64_t from, int nth)
{
    boxplay_begin(c);
    if (nth == 1) {
        boxplay_log(b, c, (size_t)from, boxplay_line_at(b, 6));
        return;
    }
    boxplay_log(b, c, (size_t)from, b->log.len);
    boxplay_keep(c, 600, 400);
}

static void test_a_dead_stream_is_noticed(void **state)
{
    int64_t t;
    (void)state;

    v.box = boxplay_start(falls_dead);
    boxplay_lines(v.box, 9, 20);
    v.box->there = 0;
    boxview_open(&v, 1);
    boxview_wait(&v, "<5> ");
    t = clock_mono_ms();
    each_once(9);
    assert_in_range(clock_mono_ms() - t, 1500, 30000); /* 2.5 intervals and a new start */
    assert_true(jobsbed_wait(v.bed, has_notice, (void *)(uintptr_t)"no sign of life", BOXVIEW_MS));
    assert_true(jobsbed_wait(v.bed, has_notice, (void *)(uintptr_t)"connected", BOXVIEW_MS));
    assert_int_equal(v.box->looks, 2); /* all that may have changed was looked at anew */
    assert_int_equal(v.box->tails, 2);
}

/* --- cuts at any byte ------------------------------------------------------------ */

static size_t cut_at;

static void cut_once(struct boxplay *b, struct mini_conn *c, uint64_t from, int nth)
{
    boxplay_begin(c);
    if (nth == 1 && cut_at) {
        boxplay_log(b, c, (size_t)from, cut_at);
        mini_close(c);
        return;
    }
    boxplay_log(b, c, (size_t)from, b->log.len);
    boxplay_keep(c, 600, 400);
}

static void test_cut_in_mid_line(void **state)
{
    static const size_t places[] = {1, 19, 20, 21, 10000, 10007};
    (void)state;

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        v.box = boxplay_start(cut_once);
        boxplay_lines(v.box, 600, 20);
        cut_at = places[i];
        v.box->there = 0;
        boxview_open(&v, 1);
        each_once(600);
        assert_false(boxview_notice(&v, "is not what"));
        close_all(NULL);
    }
}

static void breaks_often(struct boxplay *b, struct mini_conn *c, uint64_t from, int nth)
{
    size_t to = (size_t)from + 3;

    (void)nth;
    boxplay_begin(c);
    boxplay_log(b, c, (size_t)from, to < b->log.len ? to : b->log.len);
    mini_close(c);
}

static bool seven_tails(void *ctx)
{
    (void)ctx;
    return v.box->tails >= 7;
}

/* Each stream brings a few bytes: that is no reason to take it up at once each time. */
static void test_a_line_that_breaks_often(void **state)
{
    int64_t t;
    (void)state;

    v.box = boxplay_start(breaks_often);
    boxplay_lines(v.box, 20, 20);
    v.box->there = 0;
    t = clock_mono_ms();
    boxview_open(&v, 1);
    assert_true(jobsbed_wait(v.bed, seven_tails, NULL, BOXVIEW_MS));
    assert_true(clock_mono_ms() - t >= 2500); /* 0.2, 0.4 and four times 0.8 s, give or take a quarter */
    boxview_wait(&v, "<1> ");
    assert_int_equal(boxview_times(&v, "<1> "), 1);
}

/* After the cut the server sends the last 50 lines once more. */
static void replay(struct boxplay *b, struct mini_conn *c, uint64_t from, int nth)
{
    boxplay_begin(c);
    if (nth == 1) {
        boxplay_log(b, c, (size_t)from, cut_at);
        mini_close(c);
        return;
    }
    if (nth == 2)
        from = boxplay_line_at(b, 450);
    boxplay_log(b, c, (size_t)from, b->log.len);
    boxplay_keep(c, 600, 400);
}

static void test_a_replay_is_marked_and_mended(void **state)
{
    int n = 600;
    (void)state;

    v.box = boxplay_start(replay);
    boxplay_lines(v.box, n, 20);
    cut_at = 10007;
    v.box->there = 0;
    boxview_open(&v, 1);
    boxview_wait(&v, "<600> ");
    assert_true(jobsbed_wait(v.bed, has_notice, (void *)(uintptr_t)"they came twice", BOXVIEW_MS));
    assert_true(jobsbed_wait(v.bed, all_shown_once, &n, BOXVIEW_MS));
    assert_int_equal(boxview_times(&v, "<"), n);
}

/* Two events change places, one is left out. */
static void reorder(struct boxplay *b, struct mini_conn *c, uint64_t from, int nth)
{
    size_t a = boxplay_line_at(b, 10), z = boxplay_line_at(b, 20);

    boxplay_begin(c);
    if (nth == 1) {
        boxplay_log(b, c, (size_t)from, a);
        boxplay_log(b, c, z, b->log.len);
        boxplay_log(b, c, a, z);
    } else {
        boxplay_log(b, c, (size_t)from, b->log.len);
    }
    boxplay_keep(c, 600, 400);
}

static void leave_out(struct boxplay *b, struct mini_conn *c, uint64_t from, int nth)
{
    boxplay_begin(c);
    if (nth == 1) {
        boxplay_log(b, c, (size_t)from, boxplay_line_at(b, 10));
        boxplay_log(b, c, boxplay_line_at(b, 12), b->log.len);
    } else {
        boxplay_log(b, c, (size_t)from, b->log.len);
    }
    boxplay_keep(c, 600, 400);
}

static void is_marked_and_mended(boxplay_fn tail)
{
    int n = 40;

    v.box = boxplay_start(tail);
    boxplay_lines(v.box, n, 20);
    v.box->there = 0;
    boxview_open(&v, 1);
    boxview_wait(&v, "<40> ");
    assert_true(jobsbed_wait(v.bed, has_notice, (void *)(uintptr_t)"is not what", BOXVIEW_MS));
    assert_true(jobsbed_wait(v.bed, all_shown_once, &n, BOXVIEW_MS));
    for (int i = 2; i <= n; i++) { /* and in order */
        const struct transcript *t = model_transcript(v.bed->model, v.row);
        char line[24];
        size_t at = 0;

        snprintf(line, sizeof(line), "<%d> ", i);
        while (at < t->n && !(t->v[at].kind == ITEM_RAW && strstr(t->v[at].text, line)))
            at++;
        snprintf(line, sizeof(line), "<%d> ", i - 1);
        while (at-- > 0 && !(t->v[at].kind == ITEM_RAW && strstr(t->v[at].text, line))) {
        }
        assert_true(at != SIZE_MAX);
    }
    close_all(NULL);
}

static void test_wrong_order_is_marked_and_mended(void **state)
{
    (void)state;
    is_marked_and_mended(reorder);
    is_marked_and_mended(leave_out);
}

/* --- two fetches that overlap ---------------------------------------------------- */

static void test_overlap_is_shown_once(void **state)
{
    (void)state;
    v.box = boxplay_start(cut_once);
    buf_adds(&v.box->log, "same\nsame\nother\nsame\n"); /* printed so: kept so */
    boxplay_lines(v.box, 60, 20);
    cut_at = 0;
    v.box->there = boxplay_line_at(v.box, 40);
    v.box->pad = 30 * 20; /* each answer begins 30 lines early */
    boxview_open(&v, 1);
    each_once(60);
    assert_int_equal(boxview_times(&v, "same"), 3);
    assert_int_equal(boxview_times(&v, "other"), 1);
    assert_false(boxview_notice(&v, "is not what"));
}

/* --- the last line --------------------------------------------------------------- */

/* The stream stands, and the rest of the line never comes. */
static void stay_in_mid_line(struct boxplay *b, struct mini_conn *c, uint64_t from, int nth)
{
    (void)nth;
    boxplay_begin(c);
    boxplay_log(b, c, (size_t)from, b->log.len);
    boxplay_keep(c, 600, 400);
}

/* Paused and resumed: it is looked at anew. */
static void pause_and_resume(void *ctx)
{
    struct session *s = session_of(&v.bed->j, v.row);

    (void)ctx;
    session_vm_state(s, SB_PAUSED);
    session_vm_state(s, SB_RUNNING);
}

static bool has_exited(void *ctx)
{
    (void)ctx;
    return model_sandbox(v.bed->model, v.row)->agent == AG_EXITED;
}

static void test_a_line_without_its_end_is_seen(void **state)
{
    (void)state;

    v.box = boxplay_start(stay_in_mid_line);
    buf_adds(&v.box->log, "whole\nfoo");
    boxview_open(&v, 1);
    boxview_wait(&v, "whole");
    boxview_wait(&v, "foo");
    assert_int_equal(boxview_times(&v, "foo"), 1);
    assert_int_equal(v.box->tails, 1); /* no end of the stream brought it */
    v.box->exited = true; /* and with it the line ends */
    jobsbed_run(v.bed, pause_and_resume, NULL);
    assert_true(jobsbed_wait(v.bed, has_exited, NULL, BOXVIEW_MS));
    assert_int_equal(boxview_times(&v, "foo"), 1);
}

/* --- the end of a sandbox -------------------------------------------------------- */

static void ends_in_band(struct boxplay *b, struct mini_conn *c, uint64_t from, int nth)
{
    (void)nth;
    boxplay_begin(c);
    boxplay_log(b, c, (size_t)from, b->log.len);
    mini_wait(c, 300);
    b->gone = true;
    boxplay_json(c, 2, "{\"error\":{\"code\":\"unavailable\",\"message\":\"sandbox killed\"}}");
    mini_close(c);
}

static bool has_asked(void *ctx)
{
    (void)ctx;
    return v.box->gets >= 2;
}

static void follow(void *ctx)
{
    (void)ctx;
    session_follow(session_of(&v.bed->j, v.row));
}

static void test_a_killed_sandbox_starts_no_storm(void **state)
{
    const struct sandbox *r;
    (void)state;

    v.box = boxplay_start(ends_in_band);
    boxplay_lines(v.box, 5, 20);
    v.box->there = 0;
    boxview_open(&v, 1);
    each_once(5);
    assert_true(jobsbed_wait(v.bed, has_asked, NULL, BOXVIEW_MS));
    pass_time(1500);
    assert_int_equal(v.box->tails, 1);
    assert_true(v.box->healths <= 2);
    assert_true(v.box->gets <= 4);
    r = model_sandbox(v.bed->model, v.row);
    assert_int_not_equal(r->state, SB_ERROR);
    for (int i = 0; i < 5; i++) { /* whoever asks for its output brings no other answer */
        jobsbed_run(v.bed, follow, NULL);
        pass_time(50);
    }
    assert_int_equal(v.box->tails, 1);
    assert_true(v.box->gets <= 4);
    each_once(5); /* what it said last is kept */
}

/* The tail is well, only the runner cannot be connected to: no reason to hurry. */
static void test_a_runner_out_of_reach_starts_no_storm(void **state)
{
    (void)state;
    v.box = boxplay_start(falls_dead);
    boxplay_lines(v.box, 9, 20);
    v.box->there = 0;
    v.box->no_runner = true;
    boxview_open(&v, 1);
    each_once(9);
    pass_time(2000);
    assert_true(v.box->connects <= 6);
    assert_true(v.box->tails <= 8);
    each_once(9);
}

/* In groups of about the same time. */
static int run_group(int i)
{
    const struct CMUnitTest quiet[] = {
        cmocka_unit_test_teardown(test_a_quiet_agent_is_not_cut, close_all),
    };
    const struct CMUnitTest slow[] = {
        cmocka_unit_test_teardown(test_a_slow_answer_is_waited_for, close_all),
        cmocka_unit_test_teardown(test_cut_in_mid_line, close_all),
    };
    const struct CMUnitTest dead[] = {
        cmocka_unit_test_teardown(test_a_dead_stream_is_noticed, close_all),
        cmocka_unit_test_teardown(test_a_killed_sandbox_starts_no_storm, close_all),
    };
    const struct CMUnitTest wrong[] = {
        cmocka_unit_test_teardown(test_a_replay_is_marked_and_mended, close_all),
        cmocka_unit_test_teardown(test_overlap_is_shown_once, close_all),
        cmocka_unit_test_teardown(test_a_line_without_its_end_is_seen, close_all),
    };
    const struct CMUnitTest order[] = {
        cmocka_unit_test_teardown(test_wrong_order_is_marked_and_mended, close_all),
    };
    const struct CMUnitTest runner[] = {
        cmocka_unit_test_teardown(test_a_runner_out_of_reach_starts_no_storm, close_all),
        cmocka_unit_test_teardown(test_a_line_that_breaks_often, close_all),
    };

    switch (i) {
    case 0:
        return cmocka_run_group_tests(quiet, NULL, NULL);
    case 1:
        return cmocka_run_group_tests(slow, NULL, NULL);
    case 2:
        return cmocka_run_group_tests(dead, NULL, NULL);
    case 3:
        return cmocka_run_group_tests(wrong, NULL, NULL);
    case 4:
        return cmocka_run_group_tests(order, NULL, NULL);
    default:
        return cmocka_run_group_tests(runner, NULL, NULL);
    }
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return side_by_side(6, run_group);
}
