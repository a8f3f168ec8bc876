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

static void test_freeze(void **state)
{
    (void)state;
    script_do(&s, "keys Z");
    assert_true(script_shows(&s, "FROZEN") && script_shows(&s, "Z or Esc goes on"));
    script_do(&s, "row 2 api-tests codex running asks\nlines 1 5 something new\nkeys D K n j p x");
    assert_false(script_shows(&s, "ASKS YOU") || script_shows(&s, "something new"));
    assert_int_equal(s.app->calls.len, 0);
    assert_int_equal(s.ui.n_overlays, 0);
    assert_int_equal(s.ui.selected, 1);
    script_do(&s, "keys Z");
    assert_false(script_shows(&s, "FROZEN"));
    assert_true(script_shows(&s, "ASKS YOU") && script_shows(&s, "something new"));
    script_do(&s, "keys Z Esc"); /* Esc goes on, and does nothing else */
    assert_false(script_shows(&s, "FROZEN"));
    script_do(&s, "keys 2 Z q");
    assert_int_equal(s.ui.focus, PANE_OUTPUT);
    script_do(&s, "keys Z\nsize 30 100"); /* the picture is gone: it goes on */
    assert_false(script_shows(&s, "FROZEN"));
    script_do(&s, "keys : \"freeze\" Enter");
    assert_true(script_shows(&s, "FROZEN"));
    assert_false(script_shows(&s, "letters of an action")); /* the palette is not in it */
    /* what is new to be asked must be seen */
    script_do(&s, "vault wrong locked");
    assert_false(script_shows(&s, "FROZEN"));
}

static void test_bare(void **state)
{
    (void)state;
    script_do(&s, "keys Alt-l");
    char *screen = script_screen(&s);
    assert_null(strstr(screen, "sandboxes"));
    assert_null(strstr(screen, "fix-login"));
    assert_null(strstr(screen, "--"));
    assert_null(strstr(screen, "[14:")); /* no time stamps */
    assert_non_null(strstr(screen, "row 40"));
    assert_int_equal(s.ui.panes[PANE_OUTPUT].r.h, 24);
    free(screen);
    script_do(&s, "keys gg");
    assert_true(script_shows(&s, "row 1\n"));
    script_do(&s, "keys D K n p i"); /* nothing acts that would not be seen */
    assert_int_equal(s.app->calls.len, 0);
    assert_int_equal(s.ui.n_overlays, 0);
    assert_true(s.ui.bare);
    script_do(&s, "keys / \"row 7\" Enter");
    assert_true(s.ui.bare && script_shows(&s, "row 7"));
    script_do(&s, "keys Esc"); /* the search */
    assert_true(s.ui.bare);
    script_do(&s, "keys Esc");
    assert_false(s.ui.bare);
    assert_int_equal(s.ui.focus, PANE_LIST);
    script_do(&s, "keys i \"draft\" Alt-l Alt-l");
    assert_int_equal(s.ui.focus, PANE_INPUT);
    assert_true(script_shows(&s, "draft"));
    script_do(&s, "keys Esc 2 f Alt-l q"); /* the zoom is as it was */
    assert_true(s.ui.zoom && s.ui.focus == PANE_OUTPUT);
    script_do(&s, "keys Esc W Alt-l Alt-l");
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
