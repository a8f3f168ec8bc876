/* Keys that the configuration binds anew: boxes, lines of text and sentences go along. */
#include "../lib/screenscript.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct script s;
static const char *const bound[][2] = {
    {"yes", "Y"}, {"close", "z"}, {"no", ""}, {"leave-line", "F7"}, {"erase", "F6"},
    {"new", "F2"}, {"resume", "F3"}, {"kill", "F4"}, {"field-next", "F5"}, {"back-twice", "F8"},
};
static struct key_line lines[sizeof(bound) / sizeof(bound[0])];

static int setup(void **state)
{
    (void)state;
    script_init(&s);
    for (size_t i = 0; i < sizeof(bound) / sizeof(bound[0]); i++) {
        lines[i].action = (char *)(uintptr_t)bound[i][0];
        lines[i].keys = (char *)(uintptr_t)bound[i][1];
    }
    s.opts.keys = lines;
    s.opts.n_keys = sizeof(lines) / sizeof(lines[0]);
    script_run(&s, "loaded\nlink ok cloud\ntool claude base\n"
                   "row 1 fix-login claude running idle\nrow 2 spike pi paused unknown");
    script_draw(&s);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    script_release(&s);
    return 0;
}

static void must_show(const char *text)
{
    char *screen = script_screen(&s);
    if (!strstr(screen, text))
        fail_msg("'%s' is not on\n%s", text, screen);
    free(screen);
}

static void test_question(void **state)
{
    (void)state;
    script_run(&s, "keys F4");
    must_show("Y  kill it");
    must_show("z  leave it");
    buf_clear(&s.app->calls);
    script_run(&s, "keys y Esc q n");
    must_show("kill this sandbox?");
    assert_string_equal(buf_str(&s.app->calls), "");
    script_run(&s, "keys Y");
    assert_non_null(strstr(buf_str(&s.app->calls), "call kill 1\n"));
    script_run(&s, "keys F4 z");
    assert_false(script_shows(&s, "kill this sandbox?"));
}

static void test_line(void **state)
{
    (void)state;
    script_run(&s, "keys R \"ab\" F6");
    must_show("fix-logina");
    assert_false(script_shows(&s, "fix-loginab"));
    must_show("F7 cancel");
    script_run(&s, "keys Backspace Esc");
    must_show("+ rename");
    script_run(&s, "keys F7");
    assert_false(script_shows(&s, "+ rename"));
}

static void test_sentences(void **state)
{
    (void)state;
    must_show("F2 new  F4 kill");
    script_run(&s, "keys j i \"x\" Enter");
    assert_non_null(strstr(s.ui.status, "press F3 in the list to resume it first"));
    script_run(&s, "keys Esc F2");
    must_show("F5 next  Alt-s do it");
    script_run(&s, "keys Esc F8");
    must_show("press F8 again to quit");
}

/* What has no key any more is called "-", not by a key that does something else. */
static void test_without_a_key(void **state)
{
    struct err e = {0};
    (void)state;
    assert_int_equal(keymap_bind(s.ui.keys, "resume", "", &e), 0);
    script_run(&s, "keys j i \"x\" Enter");
    assert_non_null(strstr(s.ui.status, "press - in the list to resume it first"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_question, setup, teardown),
        cmocka_unit_test_setup_teardown(test_line, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sentences, setup, teardown),
        cmocka_unit_test_setup_teardown(test_without_a_key, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
