/* Looking without acting: the picture that stands still, and the output alone. */
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
    script_run(&s, "size 24 80\nloaded\nlink ok cloud\nrow 1 fix-login claude running idle\n"
                   "row 2 api-tests codex running idle\nlines 1 40 row");
    script_draw(&s);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    script_release(&s);
    return 0;
}

static bool shows(const char *text)
{
    char *screen = script_screen(&s);
    bool is = strstr(screen, text) != NULL;

    free(screen);
    return is;
}

static void run(const char *lines)
{
    buf_clear(&s.app->calls);
    script_run(&s, lines);
    script_draw(&s);
}

static void test_freeze(void **state)
{
    (void)state;
    run("keys Z");
    assert_true(shows("FROZEN") && shows("Z or Esc goes on"));
    run("row 2 api-tests codex running asks\nlines 1 5 something new\nkeys D K n j p x");
    assert_false(shows("ASKS YOU") || shows("something new"));
    assert_int_equal(s.app->calls.len, 0);
    assert_int_equal(s.ui.n_overlays, 0);
    assert_int_equal(s.ui.selected, 1);
    run("keys Z");
    assert_false(shows("FROZEN"));
    assert_true(shows("ASKS YOU") && shows("something new"));
    run("keys Z Esc"); /* Esc goes on, and does nothing else */
    assert_false(shows("FROZEN"));
    run("keys 2 Z q");
    assert_int_equal(s.ui.focus, PANE_OUTPUT);
    run("keys Z\nsize 30 100"); /* the picture is gone: it goes on */
    assert_false(shows("FROZEN"));
    run("keys : \"freeze\" Enter");
    assert_true(shows("FROZEN"));
    assert_false(shows("letters of an action")); /* the palette is not in it */
    /* what is new to be asked must be seen */
    run("vault wrong locked");
    assert_false(shows("FROZEN"));
}

static void test_bare(void **state)
{
    (void)state;
    run("keys Alt-l");
    char *screen = script_screen(&s);
    assert_null(strstr(screen, "sandboxes"));
    assert_null(strstr(screen, "fix-login"));
    assert_null(strstr(screen, "--"));
    assert_null(strstr(screen, "[14:")); /* no time stamps */
    assert_non_null(strstr(screen, "row 40"));
    assert_int_equal(s.ui.panes[PANE_OUTPUT].r.h, 24);
    free(screen);
    run("keys gg");
    assert_true(shows("row 1\n"));
    run("keys D K n p i"); /* nothing acts that would not be seen */
    assert_int_equal(s.app->calls.len, 0);
    assert_int_equal(s.ui.n_overlays, 0);
    assert_true(s.ui.bare);
    run("keys / \"row 7\" Enter");
    assert_true(s.ui.bare && shows("row 7"));
    run("keys Esc"); /* the search */
    assert_true(s.ui.bare);
    run("keys Esc");
    assert_false(s.ui.bare);
    assert_int_equal(s.ui.focus, PANE_LIST);
    run("keys i \"draft\" Alt-l Alt-l");
    assert_int_equal(s.ui.focus, PANE_INPUT);
    assert_true(shows("draft"));
    run("keys Esc 2 f Alt-l q"); /* the zoom is as it was */
    assert_true(s.ui.zoom && s.ui.focus == PANE_OUTPUT);
    run("keys Esc W Alt-l Alt-l");
    assert_int_equal(s.ui.body, BODY_WALL);
    for (int h = 0; h <= 30; h += 3)
        for (int w = 0; w <= 130; w += 13) {
            s.ui.bare = true;
            ui_resize(&s.ui, h, w);
            script_draw(&s);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_freeze, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bare, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
