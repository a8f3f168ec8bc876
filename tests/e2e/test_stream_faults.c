/* Streams of a sandbox that does what it should not: each line of the agent's log is
 * shown once, or a mark says that something is amiss. */
#include "../lib/boxplay.h"
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

#define WAIT_MS 60000

static struct boxplay *box;
static struct jobsbed *bed;
static uint64_t row;

static int close_all(void **state)
{
    (void)state;
    if (bed)
        jobsbed_free(bed);
    if (box)
        boxplay_stop(box);
    bed = NULL;
    box = NULL;
    return 0;
}

static void open_bed(int keepalive_s)
{
    bed = boxplay_jobs(box, keepalive_s);
    row = boxplay_row(bed);
    assert_true(row != 0);
}

/* --- what the screen has --------------------------------------------------------- */

static int times_shown(const char *text)
{
    const struct transcript *t = model_transcript(bed->model, row);
    int n = 0;

    for (size_t i = 0; t && i < t->n; i++)
        if (t->v[i].kind == ITEM_RAW)
            for (const char *p = t->v[i].text; (p = strstr(p, text)); p += strlen(text))
                n++;
    return n;
}

static bool is_shown(void *ctx)
{
    return times_shown(ctx) > 0;
}

static bool has_notice(void *ctx)
{
    const struct transcript *t = model_transcript(bed->model, row);

    for (size_t i = 0; t && i < t->n; i++)
        if (t->v[i].kind == ITEM_NOTICE && strstr(t->v[i].text, ctx))
            return true;
    return false;
}

static void wait_shown(const char *text)
{
    if (!jobsbed_wait(bed, is_shown, (void *)(uintptr_t)text, WAIT_MS))
        fail_msg("never shown: %s", text);
}

static void each_once(int n)
{
    for (int i = 1; i <= n; i++) {
        char line[24];

        snprintf(line, sizeof(line), "<%d> ", i);
        wait_shown(line);
        if (times_shown(line) != 1)
            fail_msg("line %d is shown %d times", i, times_shown(line));
    }
}

static bool all_shown_once(void *ctx)
{
    const int *n = ctx;

    for (int i = 1; i <= *n; i++) {
        char line[24];

        snprintf(line, sizeof(line), "<%d> ", i);
        if (times_shown(line) != 1)
            return false;
    }
    return true;
}

static void pass_time(int ms)
{
    jobsbed_wait(bed, NULL, NULL, ms);
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
    box = boxplay_start(quiet_then_a_line);
    boxplay_lines(box, 1, 20);
    box->there = 0;
    open_bed(1); /* dead after 2.5 s without a byte */
    wait_shown("<1> ");
    assert_int_equal(times_shown("<1> "), 1);
    assert_int_equal(box->tails, 1);
    assert_int_equal(times_shown("keepalive"), 0);
    assert_int_equal(model_transcript(bed->model, row)->n, 1);
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

    box = boxplay_start(drip);
    boxplay_lines(box, 3, 20);
    box->there = 0;
    open_bed(1);
    each_once(3);
    r = model_sandbox(bed->model, row);
    assert_int_equal(r->state, SB_RUNNING);
    assert_int_not_equal(r->agent, AG_FAILED);
    assert_int_equal(box->tails, 1);
    assert_int_equal(box->looks, 1);
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

    box = boxplay_start(falls_dead);
    boxplay_lines(box, 9, 20);
    box->there = 0;
    open_bed(1);
    wait_shown("<5> ");
    t = clock_mono_ms();
    each_once(9);
    assert_in_range(clock_mono_ms() - t, 1500, 30000); /* 2.5 intervals and a new start */
    assert_true(jobsbed_wait(bed, has_notice, (void *)(uintptr_t)"no sign of life", WAIT_MS));
    assert_true(jobsbed_wait(bed, has_notice, (void *)(uintptr_t)"connected", WAIT_MS));
    assert_int_equal(box->looks, 2); /* all that may have changed was looked at anew */
    assert_int_equal(box->tails, 2);
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
        box = boxplay_start(cut_once);
        boxplay_lines(box, 600, 20);
        cut_at = places[i];
        box->there = 0;
        open_bed(1);
        each_once(600);
        assert_false(has_notice((void *)(uintptr_t)"is not what"));
        close_all(NULL);
    }
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

    box = boxplay_start(replay);
    boxplay_lines(box, n, 20);
    cut_at = 10007;
    box->there = 0;
    open_bed(1);
    wait_shown("<600> ");
    assert_true(jobsbed_wait(bed, has_notice, (void *)(uintptr_t)"they came twice", WAIT_MS));
    assert_true(jobsbed_wait(bed, all_shown_once, &n, WAIT_MS));
    assert_int_equal(times_shown("<"), n);
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

    box = boxplay_start(tail);
    boxplay_lines(box, n, 20);
    box->there = 0;
    open_bed(1);
    wait_shown("<40> ");
    assert_true(jobsbed_wait(bed, has_notice, (void *)(uintptr_t)"is not what", WAIT_MS));
    assert_true(jobsbed_wait(bed, all_shown_once, &n, WAIT_MS));
    for (int i = 2; i <= n; i++) { /* and in order */
        const struct transcript *t = model_transcript(bed->model, row);
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
    box = boxplay_start(cut_once);
    buf_adds(&box->log, "same\nsame\nother\nsame\n"); /* printed so: kept so */
    boxplay_lines(box, 60, 20);
    cut_at = 0;
    box->there = boxplay_line_at(box, 40);
    box->pad = 30 * 20; /* each answer begins 30 lines early */
    open_bed(1);
    each_once(60);
    assert_int_equal(times_shown("same"), 3);
    assert_int_equal(times_shown("other"), 1);
    assert_false(has_notice((void *)(uintptr_t)"is not what"));
}

/* --- the last line --------------------------------------------------------------- */

static void stay_in_mid_line(struct boxplay *b, struct mini_conn *c, uint64_t from, int nth)
{
    boxplay_begin(c);
    boxplay_log(b, c, (size_t)from, b->log.len);
    if (b->exited)
        mini_close(c);
    (void)nth;
    boxplay_keep(c, 4, 400);
    mini_close(c);
}

static void test_a_line_without_its_end_is_seen(void **state)
{
    int64_t t;
    (void)state;

    box = boxplay_start(stay_in_mid_line);
    buf_adds(&box->log, "whole\nfoo");
    open_bed(1);
    wait_shown("whole");
    t = clock_mono_ms();
    wait_shown("foo");
    assert_true(clock_mono_ms() - t < 5000); /* a third of a second, on a free machine */
    assert_int_equal(times_shown("foo"), 1);
    box->exited = true; /* the tail ends soon, and with it the session */
    pass_time(100);
    wait_shown("foo");
    assert_int_equal(times_shown("foo"), 1);
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
    return box->gets >= 2;
}

static void test_a_killed_sandbox_starts_no_storm(void **state)
{
    const struct sandbox *r;
    (void)state;

    box = boxplay_start(ends_in_band);
    boxplay_lines(box, 5, 20);
    box->there = 0;
    open_bed(1);
    each_once(5);
    assert_true(jobsbed_wait(bed, has_asked, NULL, WAIT_MS));
    pass_time(1500);
    assert_int_equal(box->tails, 1);
    assert_true(box->healths <= 2);
    assert_true(box->gets <= 4);
    r = model_sandbox(bed->model, row);
    assert_int_not_equal(r->state, SB_ERROR);
    each_once(5); /* what it said last is kept */
}

/* The tail is well, only the runner cannot be connected to: no reason to hurry. */
static void test_a_runner_out_of_reach_starts_no_storm(void **state)
{
    (void)state;
    box = boxplay_start(falls_dead);
    boxplay_lines(box, 9, 20);
    box->there = 0;
    box->no_runner = true;
    open_bed(1);
    each_once(9);
    pass_time(2000);
    assert_true(box->connects <= 6);
    assert_true(box->tails <= 8);
    each_once(9);
}

/* --- more than can be looked at ---------------------------------------------------- */

enum { FLOOD = 40000, FLOOD_WIDTH = 60 };

/* A part of it live, and the rest is there when the stream ends. */
static void pour(struct boxplay *b, struct mini_conn *c, uint64_t from, int nth)
{
    size_t all = b->log.len, to = nth == 1 ? all / 3 : all;

    boxplay_begin(c);
    for (size_t at = (size_t)from, n; at < to; at += n) {
        n = to - at < 30001 ? to - at : 30001; /* lines are cut anywhere */
        boxplay_log(b, c, at, at + n);
    }
    b->there = all;
    if (nth == 1)
        mini_close(c);
    else
        boxplay_keep(c, 600, 400);
}

/* Number in "<17> ..."; 0: it is no such line, -1: what is behind it is wrong. */
static int number_of(const struct item *it)
{
    int n = 0, at = 0;

    if (it->kind != ITEM_RAW || sscanf(it->text, "<%d> %n", &n, &at) != 1)
        return 0;
    for (const char *p = it->text + at; *p; p++)
        if (*p != 'a' + n % 26)
            return -1;
    return it->text_len + 1 == FLOOD_WIDTH ? n : -1;
}

/* The lines that are held follow each other and end at the last; the first one's number. */
static int lines_held(void)
{
    const struct transcript *t = model_transcript(bed->model, row);
    int first = 0, last = 0;

    for (size_t i = 0; t && i < t->n; i++) {
        int n = number_of(&t->v[i]);

        if (!n)
            continue;
        if (last && n != last + 1)
            fail_msg("line %d comes after line %d", n, last);
        first = first ? first : n;
        last = n;
    }
    assert_int_equal(last, FLOOD);
    return first;
}

struct older {
    uint64_t offset;
    uint32_t index;
    size_t n;
};

static void ask_older(void *ctx)
{
    const struct older *o = ctx;

    session_load_older(session_of(&bed->j, row), o->offset, o->index);
}

static bool came(void *ctx)
{
    const struct older *o = ctx;
    const struct transcript *t = model_transcript(bed->model, row);

    return t->n > o->n || !t->more_before;
}

/* Like somebody who goes up to the begin. */
static void go_up(void)
{
    const struct transcript *t = model_transcript(bed->model, row);

    while (t->more_before) {
        struct older o = {t->v[0].offset, t->v[0].index, t->n};

        jobsbed_run(bed, ask_older, &o);
        if (!jobsbed_wait(bed, came, &o, WAIT_MS))
            fail_msg("what stands before byte %d does not come", (int)o.offset);
    }
}

static void ask_begin(void *ctx)
{
    (void)ctx;
    session_load_newer(session_of(&bed->j, row), 0, 0, true);
}

static void ask_newer(void *ctx)
{
    const struct older *o = ctx;

    session_load_newer(session_of(&bed->j, row), o->offset, o->index, false);
}

static bool at_begin(void *ctx)
{
    const struct transcript *t = model_transcript(bed->model, row);

    (void)ctx;
    return t->n && number_of(&t->v[0]) == 1 && t->more_after;
}

static bool further(void *ctx)
{
    const struct older *o = ctx;
    const struct transcript *t = model_transcript(bed->model, row);

    return t->n > o->n || !t->more_after;
}

/* Like somebody who goes to the begin at once, and down from there; the lines that are held
 * follow each other at each step. */
static void go_down(void)
{
    const struct transcript *t = model_transcript(bed->model, row);

    jobsbed_run(bed, ask_begin, NULL);
    if (!jobsbed_wait(bed, at_begin, NULL, WAIT_MS))
        fail_msg("the begin does not come");
    while (t->more_after) {
        struct older o = {.n = t->n};

        transcript_last_key(t, &o.offset, &o.index);
        int last = number_of(&t->v[t->n - 1]);
        jobsbed_run(bed, ask_newer, &o);
        if (!jobsbed_wait(bed, further, &o, WAIT_MS))
            fail_msg("what stands behind line %d does not come", last);
        for (size_t i = 1; i < t->n; i++)
            assert_int_equal(number_of(&t->v[i]), number_of(&t->v[i - 1]) + 1);
        assert_true(number_of(&t->v[0]) <= last);
    }
}

static void ask_events(void *ctx)
{
    session_events(session_of(&bed->j, row), *(uint64_t *)ctx, false);
}

static bool is_done(void *ctx)
{
    for (size_t i = 0; i < bed->n_done; i++)
        if (bed->done[i].req_id == *(uint64_t *)ctx)
            return true;
    return false;
}

static void test_a_flood_loses_nothing(void **state)
{
    const struct transcript *t;
    uint64_t req = 77;
    char last[24], *at;
    int n = 0;

    (void)state;
    box = boxplay_start(pour);
    boxplay_lines(box, FLOOD, FLOOD_WIDTH);
    box->there = 0;
    open_bed(5);
    snprintf(last, sizeof(last), "<%d> ", FLOOD);
    wait_shown(last);
    t = model_transcript(bed->model, row);
    assert_true(lines_held() > 1 && t->more_before); /* not all went by the screen */
    go_up();
    assert_int_equal(lines_held(), 1);
    go_down();
    assert_true(lines_held() > 1);
    jobsbed_run(bed, ask_events, &req);
    assert_true(jobsbed_wait(bed, is_done, &req, WAIT_MS));
    for (at = (char *)buf_str(&bed->chunks); (at = strstr(at, "\"text\":\"<")); n++) {
        at += strlen("\"text\":\"<");
        if (strtol(at, NULL, 10) != n + 1)
            fail_msg("'logs' has line %.6s after line %d", at, n);
    }
    assert_int_equal(n, FLOOD);
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
    };
    const struct CMUnitTest much[] = {
        cmocka_unit_test_teardown(test_a_flood_loses_nothing, close_all),
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
    case 5:
        return cmocka_run_group_tests(runner, NULL, NULL);
    default:
        return cmocka_run_group_tests(much, NULL, NULL);
    }
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return side_by_side(7, run_group);
}
