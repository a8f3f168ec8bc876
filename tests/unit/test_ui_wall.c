/* The wall: its tiles are what lives, their output is asked for and of no others, and what the
 * keys of the list do counts for the tile. Bodies: going there and back. */
#include "../lib/screenscript.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct script s;

static int setup(void **state)
{
    (void)state;
    script_init(&s);
    script_run(&s, "size 40 120\nloaded\nlink ok cloud\nrows 8 1\n"
                   "row 9 dead claude killed exited gone=1");
    script_draw(&s);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    script_release(&s);
    return 0;
}

/* "follow 3" or "unfollow 3" as a line, which may end the other. */
static bool asked(const char *line)
{
    const char *all = buf_str(&s.app->follows);
    for (const char *at = all; (at = strstr(at, line)); at++)
        if (at == all || at[-1] == '\n')
            return true;
    return false;
}

static void test_asks_for_output(void **state)
{
    (void)state;
    script_do(&s, "keys W");
    assert_int_equal(s.ui.body, BODY_WALL);
    assert_true(asked("follow 2\n") && asked("follow 6\n"));
    assert_null(strstr(buf_str(&s.app->follows), "unfollow"));
    assert_false(asked("follow 1\n")); /* the cursor's was asked for before */
    assert_false(asked("follow 7\n")); /* of the next page */
    script_do(&s, "keys PgDn");
    assert_int_equal(s.ui.selected, 7);
    assert_true(asked("unfollow 1\n") && asked("unfollow 6\n"));
    assert_true(asked("follow 7\n") && asked("follow 8\n"));
    script_do(&s, "keys W");
    assert_int_equal(s.ui.body, BODY_WORK);
    assert_true(asked("unfollow 8\n"));
    assert_false(asked("unfollow 7\n"));
}

static void test_moves(void **state)
{
    (void)state;
    static const struct {
        const char *keys;
        uint64_t at;
    } moves[] = {{"keys W", 1}, {"keys 4", 4},      {"keys j", 6}, {"keys k k", 2}, {"keys k", 2},
                 {"keys l", 3}, {"keys h h", 1},    {"keys h", 1}, {"keys G", 8},   {"keys 1", 7},
                 {"keys 3", 7}, {"keys gg", 1},     {"keys <54>", 1}, {"keys ^D", 7}};
    for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
        script_line(&s, moves[i].keys, "test");
        if (s.ui.selected != moves[i].at)
            fail_msg("%s: at %d, not %d", moves[i].keys, (int)s.ui.selected, (int)moves[i].at);
    }
}

/* What has ended has no tile, and the cursor is never there. */
static void test_ended(void **state)
{
    (void)state;
    script_do(&s, "keys G W");
    assert_int_equal(s.ui.selected, 1);
    script_do(&s, "row 1 sb-1 claude killed exited gone=1");
    assert_int_equal(s.ui.selected, 2);
    script_do(&s, "gone 2");
    assert_int_equal(s.ui.body, BODY_WALL);
    assert_true(s.ui.selected >= 3 && s.ui.selected <= 8);
}

static void test_acts_like_the_list(void **state)
{
    (void)state;
    script_do(&s, "keys W G Space");
    assert_true(marks_has(&s.ui, 8));
    assert_int_equal(s.ui.selected, 8); /* not the one that has ended */
    script_do(&s, "keys gg p");
    assert_true(script_called(&s, "pause 1\n"));
    script_do(&s, "keys 2 D");
    assert_int_equal(s.ui.n_overlays, 1);
    script_do(&s, "keys Esc Esc");
    script_do(&s, "keys W 2 i \"hello\" Enter");
    assert_true(script_called(&s, "2") && script_called(&s, "hello"));
    assert_int_equal(s.ui.body, BODY_WALL);
    script_do(&s, "keys Esc");
    assert_int_equal(s.ui.focus, PANE_WALL);
}

static void test_back(void **state)
{
    (void)state;
    script_do(&s, "keys 2 W Esc");
    assert_int_equal(s.ui.focus, PANE_OUTPUT); /* where the work was left */
    script_do(&s, "keys W 3 Enter");
    assert_int_equal(s.ui.focus, PANE_OUTPUT);
    assert_true(s.ui.zoom);
    script_do(&s, "keys q");
    assert_int_equal(s.ui.body, BODY_WALL);
    assert_false(s.ui.zoom);
    script_do(&s, "keys q");
    assert_int_equal(s.ui.body, BODY_WORK);
    assert_int_equal(s.ui.selected, 3);
    script_do(&s, "keys 2 f Esc"); /* a zoom of the work's own goes to the list as ever */
    assert_int_equal(s.ui.focus, PANE_LIST);
    script_do(&s, "keys W f");
    assert_true(s.ui.zoom && !s.ui.panes[PANE_INPUT].visible);
    script_do(&s, "keys Esc");
    assert_int_equal(s.ui.body, BODY_WALL);
    script_do(&s, "keys Tab i");
    assert_int_equal(s.ui.body, BODY_WALL);
    script_do(&s, "keys Esc W i W Esc");
    assert_int_equal(s.ui.body, BODY_WORK); /* a letter in the input is text */
}

static void test_readonly(void **state)
{
    (void)state;
    s.ui.opts.readonly = true;
    script_do(&s, "keys W i");
    assert_int_equal(s.ui.focus, PANE_WALL);
    script_do(&s, "keys p Space");
    assert_false(script_called(&s, "pause"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_asks_for_output, setup, teardown),
        cmocka_unit_test_setup_teardown(test_moves, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ended, setup, teardown),
        cmocka_unit_test_setup_teardown(test_acts_like_the_list, setup, teardown),
        cmocka_unit_test_setup_teardown(test_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_readonly, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
