/* The raw stream beside the output: of one sandbox at a time, live, cleaned, bounded. */
#include "../lib/screenscript.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../ui/panes/output_priv.h"

static struct script s;

static int setup(void **state)
{
    (void)state;
    script_init(&s);
    script_run(&s, "size 24 100\nloaded\nlink ok cloud\nrows 3 1");
    script_draw(&s);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    script_release(&s);
    return 0;
}

static const struct rawview *raw(void)
{
    return &((struct output *)s.ui.panes[PANE_OUTPUT].state)->raw;
}

static void keys(const char *lines)
{
    buf_clear(&s.app->calls);
    script_run(&s, lines);
    script_draw(&s);
}

static const char *calls(void)
{
    return buf_str(&s.app->calls);
}

static void come(const char *text)
{
    assert_non_null(s.app->raw_fn);
    s.app->raw_fn(s.app->raw_ctx, text, strlen(text));
    script_draw(&s);
}

static void test_live(void **state)
{
    (void)state;
    keys("keys 2 V");
    assert_string_equal(calls(), "call raw 1\n");
    assert_true(script_shows(&s, "{\"type\":\"result\"}"));
    come("a line\nbegun");
    assert_true(script_shows(&s, "a line") && script_shows(&s, "begun"));
    come(" and ended\n");
    assert_true(script_shows(&s, "begun and ended"));
    keys("keys V");
    assert_string_equal(calls(), "call no more raw 1\n");
    assert_false(script_shows(&s, "a line"));
    assert_null(raw()->text.p); /* nothing is kept of it */
    assert_int_equal(raw()->of, 0);
}

/* A letter that comes in two pieces is one; a control sequence in two pieces is none. */
static void test_pieces(void **state)
{
    (void)state;
    keys("keys 2 V");
    come("caf\xc3");
    come("\xa9 \033]0;ti");
    come("tle\007end\n");
    assert_true(script_shows(&s, "caf\xc3\xa9 end"));
}

/* Of others nothing is read, and back there it is read again. */
static void test_one_at_a_time(void **state)
{
    (void)state;
    keys("keys 2 V");
    come("of the first\n");
    keys("keys 1 j");
    assert_string_equal(calls(), "call no more raw 1\n");
    assert_null(raw()->text.p);
    keys("keys k");
    assert_string_equal(calls(), "call raw 1\n");
    assert_int_equal(raw()->of, 1);
    assert_false(script_shows(&s, "of the first"));
    keys("keys j 2 V");
    assert_string_equal(calls(), "call no more raw 1\ncall raw 2\n");
}

static void test_bounded(void **state)
{
    (void)state;
    char line[128];
    char *one = calloc(1, 300 << 10);
    keys("keys 2 V");
    for (int i = 0; i < 60000; i++) {
        snprintf(line, sizeof(line), "%-63d\n", i);
        s.app->raw_fn(s.app->raw_ctx, line, strlen(line));
    }
    assert_in_range(raw()->text.len, 400 << 10, 1 << 20);
    assert_in_range(raw()->text.cap, 1, (2 << 20) + 1);
    script_draw(&s);
    assert_true(script_shows(&s, "59999"));
    memset(one, 'x', (300 << 10) - 1); /* a line without an end */
    for (int i = 0; i < 20; i++)
        s.app->raw_fn(s.app->raw_ctx, one, (300 << 10) - 1);
    assert_in_range(raw()->begun.cap, 1, 128 << 10);
    assert_in_range(raw()->text.cap, 1, (2 << 20) + 1);
    free(one);
}

/* Scrolled back, what comes moves nothing. */
static void test_stays(void **state)
{
    (void)state;
    char line[32];
    keys("keys 2 V");
    for (int i = 0; i < 100; i++) {
        snprintf(line, sizeof(line), "line %03d.\n", i);
        come(line);
    }
    assert_true(script_shows(&s, "line 099."));
    keys("keys PgUp");
    assert_false(script_shows(&s, "line 099."));
    char *before = script_screen(&s);
    for (int i = 100; i < 130; i++) {
        snprintf(line, sizeof(line), "line %03d.\n", i);
        come(line);
    }
    char *after = script_screen(&s);
    assert_string_equal(before, after);
    free(before);
    free(after);
    keys("keys G");
    assert_true(script_shows(&s, "line 129."));
}

/* The stream ends with a pause, or with the agent; it is read again when there is more to come. */
static void test_awake(void **state)
{
    (void)state;
    keys("keys 2 V");
    keys("row 1 one claude paused unknown\nended");
    keys("row 1 one claude paused unknown last=x");
    assert_string_equal(calls(), "");
    keys("row 1 one claude running working");
    assert_string_equal(calls(), "call raw 1\n");
    come("after the pause\n");
    assert_true(script_shows(&s, "after the pause"));
    keys("ended\nrow 1 one claude running idle"); /* nothing says that more will come */
    assert_string_equal(calls(), "");
    keys("row 1 one claude running exited\nrow 1 one claude running starting");
    assert_string_equal(calls(), "");
    keys("row 1 one claude running working");
    assert_string_equal(calls(), "call raw 1\n");
    keys("ended\nkeys V"); /* nobody reads any more */
    assert_string_equal(calls(), "");
}

/* A sandbox that is gone leaves no view behind. */
static void test_views_go(void **state)
{
    (void)state;
    struct output *o = s.ui.panes[PANE_OUTPUT].state;
    keys("keys j j k k");
    assert_int_equal(map_count(o->views), 3);
    script_run(&s, "gone 3");
    script_draw(&s);
    assert_int_equal(map_count(o->views), 2);
}

int main(void)
{
#define RUN(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        RUN(test_live),    RUN(test_pieces), RUN(test_one_at_a_time),
        RUN(test_bounded), RUN(test_stays),  RUN(test_awake),
        RUN(test_views_go),
    };
    return cmocka_run_group_tests_name("ui_raw", tests, NULL, NULL);
}
