/* More lines than can be looked at: none is lost, whichever way somebody goes through them, and
 * 'logs' has them all. */
#include "../lib/boxview.h"

#include <cct/util/str.h>
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
    const struct transcript *t = model_transcript(v.bed->model, v.row);
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

    session_load_older(session_of(&v.bed->j, v.row), o->offset, o->index);
}

static bool came(void *ctx)
{
    const struct older *o = ctx;
    const struct transcript *t = model_transcript(v.bed->model, v.row);

    return t->n > o->n || !t->more_before;
}

/* Like somebody who goes up to the begin. */
static void go_up(void)
{
    const struct transcript *t = model_transcript(v.bed->model, v.row);

    while (t->more_before) {
        struct older o = {t->v[0].offset, t->v[0].index, t->n};

        jobsbed_run(v.bed, ask_older, &o);
        if (!jobsbed_wait(v.bed, came, &o, BOXVIEW_MS))
            fail_msg("what stands before byte %d does not come", (int)o.offset);
    }
}

static void ask_begin(void *ctx)
{
    (void)ctx;
    session_load_newer(session_of(&v.bed->j, v.row), 0, 0, true);
}

static void ask_newer(void *ctx)
{
    const struct older *o = ctx;

    session_load_newer(session_of(&v.bed->j, v.row), o->offset, o->index, false);
}

static bool at_begin(void *ctx)
{
    const struct transcript *t = model_transcript(v.bed->model, v.row);

    (void)ctx;
    return t->n && number_of(&t->v[0]) == 1 && t->more_after;
}

static bool further(void *ctx)
{
    const struct older *o = ctx;
    const struct transcript *t = model_transcript(v.bed->model, v.row);

    return t->n > o->n || !t->more_after;
}

/* Like somebody who goes to the begin at once, and down from there; the lines that are held
 * follow each other at each step. */
static void go_down(void)
{
    const struct transcript *t = model_transcript(v.bed->model, v.row);

    jobsbed_run(v.bed, ask_begin, NULL);
    if (!jobsbed_wait(v.bed, at_begin, NULL, BOXVIEW_MS))
        fail_msg("the begin does not come");
    while (t->more_after) {
        struct older o = {.n = t->n};

        transcript_last_key(t, &o.offset, &o.index);
        int last = number_of(&t->v[t->n - 1]);
        jobsbed_run(v.bed, ask_newer, &o);
        if (!jobsbed_wait(v.bed, further, &o, BOXVIEW_MS))
            fail_msg("what stands behind line %d does not come", last);
        /* what is new, to the line that was the last one; all of them at the end */
        for (size_t i = t->n - 1; number_of(&t->v[i]) != last; i--) {
            assert_true(i > 0);
            assert_int_equal(number_of(&t->v[i]), number_of(&t->v[i - 1]) + 1);
        }
    }
}

static void ask_events(void *ctx)
{
    session_events(session_of(&v.bed->j, v.row), *(uint64_t *)ctx, false);
}

static bool is_done(void *ctx)
{
    for (size_t i = 0; i < v.bed->n_done; i++)
        if (v.bed->done[i].req_id == *(uint64_t *)ctx)
            return true;
    return false;
}

static bool has_last(void *ctx)
{
    const struct transcript *t = model_transcript(v.bed->model, v.row);

    (void)ctx;
    return t && t->n && number_of(&t->v[t->n - 1]) == FLOOD;
}

static void test_a_flood_loses_nothing(void **state)
{
    const struct transcript *t;
    uint64_t req = 77;
    int n = 0;

    (void)state;
    v.box = boxplay_start(pour);
    boxplay_lines(v.box, FLOOD, FLOOD_WIDTH);
    v.box->there = 0;
    boxview_open(&v, 5);
    if (!jobsbed_wait(v.bed, has_last, NULL, BOXVIEW_MS))
        fail_msg("line %d is never shown", FLOOD);
    t = model_transcript(v.bed->model, v.row);
    assert_true(lines_held() > 1 && t->more_before); /* not all went by the screen */
    go_up();
    assert_int_equal(lines_held(), 1);
    go_down();
    assert_true(lines_held() > 1);
    jobsbed_run(v.bed, ask_events, &req);
    assert_true(jobsbed_wait(v.bed, is_done, &req, BOXVIEW_MS));
    /* line by line: searching in all of it would measure all of it, for each of them */
    for (char *at = (char *)buf_str(&v.bed->chunks), *end; (end = strchr(at, '\n')); at = end + 1) {
        *end = 0;
        const char *p = strstr(at, "\"text\":\"<");
        if (!p)
            continue;
        if (strtol(p + strlen("\"text\":\"<"), NULL, 10) != ++n)
            fail_msg("'logs' has %.20s where line %d is to be", p, n);
    }
    assert_int_equal(n, FLOOD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_a_flood_loses_nothing, close_all),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("stream_flood", tests, NULL, NULL);
}
