/* The list and what has the keys: the cursor is a sandbox and not a line, rows that go
 * take nothing along, and text is text. */
#include "../lib/screenscript.h"

#include <cct/util/str.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct script s;

static int setup(void **state)
{
    (void)state;
    script_init(&s);
    script_run(&s, "loaded\nlink ok cloud");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    script_release(&s);
    return 0;
}

static void forget_calls(void)
{
    buf_clear(&s.app->calls);
}

static const char *calls(void)
{
    return buf_str(&s.app->calls);
}

/* Is there a line on the screen with the cursor's mark and this name? */
static bool cursor_on(const char *name)
{
    char *screen = script_screen(&s), *at = strstr(screen, " > ");
    bool is = at && strstr(at, name) && strcspn(at, "\n") > (size_t)(strstr(at, name) - at);

    free(screen);
    return is;
}

/* --- the cursor --------------------------------------------------------------------- */

static void test_last_row_vanishes(void **state)
{
    (void)state;
    script_run(&s, "rows 3 1\nkeys G");
    assert_true(cursor_on("box-3"));
    script_run(&s, "gone 3");
    assert_true(cursor_on("box-2"));
    script_run(&s, "gone 1");
    assert_true(cursor_on("box-2"));
    script_run(&s, "gone 2");
    assert_true(script_shows(&s, "press n for a new one"));
    assert_int_equal(s.ui.selected, 0);
    forget_calls();
    script_run(&s, "keys j k G D y p r t X P Enter d Delete Esc");
    assert_string_equal(calls(), "");
    script_run(&s, "row 9 back claude running idle");
    assert_true(cursor_on("back"));
}

/* What vanished under the cursor takes its key along, until the next row was seen. */
static void test_nothing_on_the_next_row(void **state)
{
    (void)state;
    script_run(&s, "rows 3 1\nkeys G");
    forget_calls();
    script_run(&s, "gone 3");
    ui_update(&s.ui);
    ui_key(&s.ui, 'p', NULL, 0);
    ui_key(&s.ui, 'X', NULL, 0);
    ui_key(&s.ui, 'D', NULL, 0);
    assert_string_equal(calls(), "");
    assert_int_equal(s.ui.n_overlays, 0);
    script_run(&s, "keys p");
    assert_string_equal(calls(), "call pause 2\n");
}

static void test_kill_names_its_row(void **state)
{
    (void)state;
    script_run(&s, "rows 7 1\nkeys j j j j D");
    assert_true(script_shows(&s, "This ends box-5"));
    forget_calls();
    /* row 2 goes, others end and change places, one comes */
    script_run(&s, "gone 2\nrow 1 box-1 claude killed exited\nrow 3 box-3 claude killed exited\n"
                   "row 8 new claude running idle");
    assert_true(script_shows(&s, "This ends box-5"));
    script_run(&s, "keys y");
    assert_string_equal(calls(), "call kill 5\n");
    assert_true(cursor_on("box-5"));
}

/* Another run, another id, another name, another account: not what the question named. */
static void test_kill_of_what_changed(void **state)
{
    static const char *const changes[] = {
        "row 2 box-2 claude running idle started=5", "row 2 box-2 claude running idle id=iother",
        "row 2 box-2 claude killed exited", "gone 2"};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        script_run(&s, "rows 3 1\nkeys gg j D");
        forget_calls();
        script_run(&s, changes[i]);
        script_run(&s, "keys y Esc");
        assert_string_equal(calls(), "");
    }
    script_run(&s, "rows 3 1\nkeys G D"); /* it came back, as the last one */
    forget_calls();
    script_run(&s, "row 2 box-7 claude running idle");
    ui_update(&s.ui); /* known, but not yet on the screen */
    ui_key(&s.ui, 'y', NULL, 0);
    assert_string_equal(calls(), "");
    script_run(&s, "keys y");
    assert_string_equal(calls(), "call kill 2\n");
}

/* --- text is text -------------------------------------------------------------------- */

/* Every character that is a command somewhere, as somebody types it. */
static void type_everything(void)
{
    for (key_code k = ' '; k < 0x7F; k++) {
        if (k == '/' || k == '@')
            continue; /* begin a completion in a message */
        ui_key(&s.ui, k, NULL, 0);
        script_draw(&s);
    }
}

static void assert_untouched(void)
{
    assert_null(strstr(calls(), "kill"));
    assert_null(strstr(calls(), "pause"));
    assert_null(strstr(calls(), "resume"));
    assert_null(strstr(calls(), "interrupt"));
    assert_null(strstr(calls(), "protect"));
    assert_null(strstr(calls(), "forget"));
    assert_null(strstr(calls(), "quit"));
}

static void test_message(void **state)
{
    (void)state;
    script_run(&s, "rows 3 1\nkeys i");
    forget_calls();
    type_everything();
    assert_string_equal(calls(), "");
    assert_int_equal(s.ui.n_overlays, 0);
    script_run(&s, "keys Enter");
    assert_true(str_starts(calls(), "call send 1 "));
    assert_non_null(strstr(calls(), "DEFGHIJK"));
}

static void test_filter(void **state)
{
    (void)state;
    script_run(&s, "rows 3 1\nkeys /");
    forget_calls();
    type_everything();
    assert_string_equal(calls(), "");
    assert_int_equal(s.ui.n_overlays, 0);
    script_run(&s, "keys Esc D");
    assert_true(script_shows(&s, "kill this sandbox?"));
}

static void test_search(void **state)
{
    (void)state;
    script_run(&s, "rows 2 1\nlines 1 40 text\nkeys Enter /");
    forget_calls();
    type_everything();
    assert_untouched();
    assert_int_equal(s.ui.n_overlays, 0);
}

static void test_forms(void **state)
{
    static const char open[] = "nRt";

    (void)state;
    script_run(&s, "tool claude claude\nrows 2 1\nkeys j");
    for (size_t i = 0; i < 3; i++) {
        forget_calls();
        ui_key(&s.ui, (key_code)open[i], NULL, 0);
        script_draw(&s);
        assert_int_equal(s.ui.n_overlays, 1);
        type_everything();
        assert_untouched();
        assert_int_equal(s.ui.n_overlays, 1);
        script_run(&s, "keys Esc Esc");
    }
}

/* A number that is asked for is no place for commands either. */
static void test_number(void **state)
{
    (void)state;
    script_run(&s, "rows 3 1\nkeys K\nkill armed 12 12 0 0 0 0");
    forget_calls();
    script_draw(&s);
    for (key_code k = ' '; k < 0x7F; k++) {
        if (k >= '0' && k <= '9')
            continue;
        ui_key(&s.ui, k, NULL, 0);
        script_draw(&s);
    }
    assert_string_equal(calls(), "");
    script_run(&s, "keys \"12\" Enter");
    assert_string_equal(calls(), "call kill_all_confirm project 12\n");
}

/* What the box says of its keys is so while it asks for a number, too. */
static void test_number_scrolls(void **state)
{
    (void)state;
    script_run(&s, "size 12 60\nrows 12 1\nkeys K\nkill armed 12 12 0 0 0 0");
    script_draw(&s);
    if (!script_shows(&s, "j k scroll"))
        fail_msg("no scrolling on\n%s", script_screen(&s));
    char *top = script_screen(&s);
    script_run(&s, "keys j");
    char *down = script_screen(&s);
    assert_string_not_equal(top, down);
    script_run(&s, "keys k");
    char *up = script_screen(&s);
    assert_string_equal(top, up);
    free(top);
    free(down);
    free(up);
    forget_calls();
    script_run(&s, "keys j \"12\" Enter");
    assert_string_equal(calls(), "call kill_all_confirm project 12\n");
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

/* --- orders and filters ------------------------------------------------------------------ */

/* Names of the rows, top down, that begin with "sb-". */
static const char *rows_shown(void)
{
    static char names[200];
    char *screen = script_screen(&s);
    names[0] = 0;
    for (const char *at = screen; (at = strstr(at, "sb-")); at += 3) {
        size_t n = strlen(names);
        if (at - screen < 2 || at[-1] != ' ' || !strchr("?*.=~!x", at[-2]))
            continue; /* no row */
        snprintf(names + n, sizeof(names) - n, "%.4s ", at);
    }
    free(screen);
    return names;
}

static void test_sort(void **state)
{
    (void)state;
    script_run(&s, "size 24 58\n"
                   "row 1 sb-1 claude running idle left=900\nrow 2 sb-2 codex running idle left=300\n"
                   "row 3 sb-3 pi paused none\nrow 4 sb-4 claude running asks left=600\n"
                   "row 5 sb-0 pi killed exited");
    assert_string_equal(rows_shown(), "sb-1 sb-2 sb-3 sb-4 sb-0 ");
    script_run(&s, "keys j S \"left\" Enter"); /* sb-2 */
    assert_string_equal(rows_shown(), "sb-2 sb-4 sb-1 sb-3 sb-0 "); /* ended ones stay below */
    assert_int_equal(s.ui.selected, 2);
    assert_true(script_shows(&s, "LEFT^"));
    /* what changes moves no row; a new one takes its place among them */
    script_run(&s, "row 1 sb-1 claude running idle left=60");
    assert_string_equal(rows_shown(), "sb-2 sb-4 sb-1 sb-3 sb-0 ");
    script_run(&s, "row 6 sb-6 claude running idle left=400");
    assert_string_equal(rows_shown(), "sb-2 sb-6 sb-4 sb-1 sb-3 sb-0 ");
    script_run(&s, "gone 4");
    assert_string_equal(rows_shown(), "sb-2 sb-6 sb-1 sb-3 sb-0 ");
    assert_int_equal(s.ui.selected, 2);
    script_run(&s, "keys I");
    assert_string_equal(rows_shown(), "sb-6 sb-2 sb-1 sb-3 sb-0 ");
    assert_true(script_shows(&s, "LEFTv"));
    script_run(&s, "keys j");
    assert_int_equal(s.ui.selected, 1); /* the row below the cursor's as it stands now */
    script_run(&s, "keys < < < < <"); /* doing, state, agent, name, made */
    assert_string_equal(rows_shown(), "sb-1 sb-2 sb-3 sb-6 sb-0 ");
    script_run(&s, "keys I");
    assert_string_equal(rows_shown(), "sb-6 sb-3 sb-2 sb-1 sb-0 ");
    script_run(&s, "keys >");
    assert_string_equal(rows_shown(), "sb-1 sb-2 sb-3 sb-6 sb-0 ");
    script_run(&s, "keys : \"sort by cost\" Enter");
    assert_true(script_shows(&s, "sorted by cost"));
    script_run(&s, "keys : \"sort by nosuch\" Enter");
    assert_true(script_shows(&s, "no column 'nosuch'"));
}

static void test_tags(void **state)
{
    (void)state;
    script_run(&s, "row 1 sb-1 claude running idle\nrow 2 sb-2 codex running idle");
    forget_calls();
    script_run(&s, "keys T \"a/b\" Enter");
    assert_string_equal(calls(), "");
    script_run(&s, "keys ^U \"#wip, ui\" Enter");
    assert_string_equal(calls(), "call tag 1 wip ui\n");
    forget_calls();
    script_run(&s, "keys * T Enter"); /* of all that are marked: taken off */
    assert_string_equal(calls(), "call tag 1 \ncall tag 2 \n");
}

static void test_filter_words(void **state)
{
    (void)state;
    script_run(&s, "size 24 58\n"
                   "row 1 sb-1 claude running idle\nrow 2 sb-2 codex running idle\n"
                   "row 3 sb-3 claude paused none\nrow 4 sb-4 claude running asks");
    script_run(&s, "keys / \"state:running agent:claude\" Enter");
    assert_string_equal(rows_shown(), "sb-1 sb-4 ");
    assert_int_equal(s.ui.selected, 1);
    /* words that fit nothing while they are typed take the cursor nowhere */
    script_run(&s, "keys Esc j j / \"doing:a\"");
    assert_int_equal(s.ui.selected, 4);
    script_run(&s, "keys Esc");
    assert_int_equal(s.ui.selected, 3);
    script_run(&s, "keys k k / \"state:running agent:claude\" Enter * Esc");
    assert_int_equal(s.ui.marks.n, 2);
    assert_string_equal(rows_shown(), "sb-1 sb-2 sb-3 sb-4 ");
    script_run(&s, "keys j : \"filter -agent:claude\" Enter");
    assert_string_equal(rows_shown(), "sb-2 ");
    assert_true(script_shows(&s, "1 of 4 fit"));
    /* the cursor's row stays when it no longer fits, until the cursor leaves it */
    script_run(&s, "row 2 sb-2 claude running idle");
    assert_string_equal(rows_shown(), "sb-2 ");
    assert_int_equal(s.ui.selected, 2);
    script_run(&s, "keys : \"filter\" Enter");
    assert_string_equal(rows_shown(), "sb-1 sb-2 sb-3 sb-4 ");
}

/* Copies are told apart in the list, whatever the width; other names are cut at their end. */
static void test_long_names(void **state)
{
    (void)state;
    script_run(&s, "size 24 80\n"
                   "row 1 noble-raven-84-1 claude running idle\n"
                   "row 2 noble-raven-84-2 claude running idle\n"
                   "row 3 fourteen-cells claude running idle\n"
                   "row 4 fifteen-letters claude running idle protect");
    assert_true(script_shows(&s, "noble-rav~84-1 claude"));
    assert_true(script_shows(&s, "noble-rav~84-2 claude"));
    assert_true(script_shows(&s, "fourteen-cells claude"));
    assert_true(script_shows(&s, "fifteen~ters P claude"));
    script_run(&s, "size 24 160");
    assert_true(script_shows(&s, "noble-raven-84-2 "));
}

/* What is too long for the status line becomes an event, once. */
static void test_long_trouble(void **state)
{
    char line[200] = "done cannot pause ";

    (void)state;
    script_draw(&s);
    memset(line + strlen(line), 'x', 120);
    for (int i = 0; i < 2; i++) {
        script_do(&s, line);
        assert_int_equal(script_called(&s, "call event 2 0 cannot pause xx"), i == 0);
        assert_true(script_shows(&s, "(5: all)"));
    }
    script_do(&s, "done cannot pause it");
    assert_string_equal(calls(), "");
    assert_false(script_shows(&s, "(5: all)"));
}

/* Rows that do not come are told of after a while, once, until they are there. */
static void test_no_rows_come(void **state)
{
    (void)state;
    script_release(&s);
    script_init(&s);
    script_draw(&s);
    assert_int_equal(ui_next_change(&s.ui, s.now), s.now + UI_SLOW_MS);
    assert_false(ui_status_ages(&s.ui, s.now + UI_SLOW_MS - 1));
    assert_false(script_shows(&s, "does not answer"));
    assert_true(ui_status_ages(&s.ui, s.now + UI_SLOW_MS));
    assert_true(script_shows(&s, "the database does not answer: does its disk? q quits"));
    assert_false(ui_status_ages(&s.ui, s.now + UI_SLOW_MS + 1));
    script_run(&s, "loaded");
    assert_false(script_shows(&s, "does not answer"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_last_row_vanishes), T(test_nothing_on_the_next_row),
        T(test_kill_names_its_row), T(test_kill_of_what_changed),
        T(test_message), T(test_filter), T(test_search), T(test_forms), T(test_number),
        T(test_number_scrolls),
        T(test_sort), T(test_tags), T(test_filter_words), T(test_long_names),
        T(test_no_rows_come), T(test_long_trouble),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("the list", tests, NULL, NULL);
}
