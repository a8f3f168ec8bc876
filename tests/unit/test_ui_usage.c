/* The usage panel's keys, and what a budget makes of the terminal's bell. */
#include "../lib/screenscript.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROWS                                                                                \
    "loaded\nlink ok cloud\nprojects default\n"                                            \
    "row 1 short claude running idle since=120\nrow 2 long codex running exited since=7200\n" \
    "row 3 busy claude running working since=9000\nrow 4 fresh pi running idle since=5\n"    \
    "usage week\nkeys 4\n"

static void open_script(struct script *s, const char *lines)
{
    script_init(s);
    script_run(s, lines);
    buf_clear(&s->app->calls);
}

/* p means the sandbox that is named on the screen: the one that has wasted most. */
static void test_pause_what_is_named(void **state)
{
    struct script s;

    (void)state;
    open_script(&s, ROWS);
    assert_true(script_shows(&s, "idle but running: long 2h"));
    assert_true(script_shows(&s, "and 1 more"));
    script_run(&s, "keys p\n");
    assert_string_equal(buf_str(&s.app->calls), "call pause 2\n");
    buf_clear(&s.app->calls);
    script_run(&s, "row 2 long codex paused exited\nkeys p\n");
    assert_string_equal(buf_str(&s.app->calls), "call pause 1\n");
    buf_clear(&s.app->calls);
    script_run(&s, "row 1 short claude running working\nkeys p\n");
    assert_string_equal(buf_str(&s.app->calls), "");
    assert_true(script_shows(&s, "nothing runs idle here"));
    script_release(&s);
}

static void test_hidden_for_an_hour(void **state)
{
    struct script s;

    (void)state;
    open_script(&s, ROWS "keys x\n");
    assert_true(script_shows(&s, "idle but running: short 2m"));
    assert_false(script_shows(&s, "long 2h"));
    script_run(&s, "later 3500\n");
    assert_false(script_shows(&s, "idle but running: long"));
    script_run(&s, "later 200\n");
    assert_true(script_shows(&s, "idle but running: long 3h"));
    script_run(&s, "keys x\nlater 60\nkeys x\n"); /* one after the other: both stay away */
    assert_false(script_shows(&s, "idle but running: long"));
    assert_false(script_shows(&s, "idle but running: short"));
    script_release(&s);
}

static void test_readonly(void **state)
{
    struct script s;

    (void)state;
    open_script(&s, "readonly\n" ROWS "keys p\n");
    assert_null(strstr(buf_str(&s.app->calls), "pause"));
    assert_true(script_shows(&s, "read-only"));
    assert_false(script_shows(&s, "pause it"));
    script_release(&s);
}

static void test_ranges_and_file(void **state)
{
    struct script s;

    (void)state;
    open_script(&s, ROWS);
    script_run(&s, "keys > > > <\n");
    assert_string_equal(buf_str(&s.app->calls), "call usage month keep\ncall usage all keep\n"
                                                "call usage day keep\ncall usage all keep\n");
    buf_clear(&s.app->calls);
    script_run(&s, "keys e\n");
    assert_string_equal(buf_str(&s.app->calls),
                        "call usage export all cc-tui-usage-all-20260822-143500.csv\n");
    script_release(&s);
}

static void tell(struct script *s, bool budget)
{
    struct ev_event *ev = ev_new(EV_EVENT);

    ev->level = 2;
    ev->time_ms = s->now;
    ev->budget = budget;
    ev->text = xstrdup("the budget for this week is used up: $3.00 of $2.00");
    script_post(s, ev);
}

/* Told at once, also right after the start; a line of another kind makes no note. */
static void test_a_budget_calls(void **state)
{
    static const int channels[NOTE_EVENTS_COUNT] = {[NOTE_BUDGET] = NOTE_BELL};
    struct script s;

    (void)state;
    open_script(&s, ROWS);
    s.ui.opts.notify = channels;
    tell(&s, false);
    ui_notes(&s.ui, 1000);
    ui_notes(&s.ui, 3000);
    assert_int_equal(s.ui.outbox.n, 0);
    tell(&s, true);
    ui_notes(&s.ui, 4000);
    ui_notes(&s.ui, 5500);
    assert_int_equal(s.ui.outbox.n, 1);
    assert_int_equal(s.ui.outbox.v[0].note->event, NOTE_BUDGET);
    assert_string_equal(s.ui.outbox.v[0].note->title, "a budget is reached");
    ui_notes(&s.ui, 9000);
    assert_int_equal(s.ui.outbox.n, 1);
    script_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pause_what_is_named), cmocka_unit_test(test_hidden_for_an_hour),
        cmocka_unit_test(test_readonly),            cmocka_unit_test(test_ranges_and_file),
        cmocka_unit_test(test_a_budget_calls),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
