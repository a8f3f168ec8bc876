/* Finding by some of the letters. */
#include <cct/util/fuzzy.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_matches(void **state)
{
    (void)state;
    assert_true(fuzzy_score("pai", "pause all idle") > 0);
    assert_true(fuzzy_score("PAUSE", "pause") > 0);
    assert_true(fuzzy_score("pause idle", "pause all idle") > 0);
    assert_int_equal(fuzzy_score("", "anything"), 0);
    assert_int_equal(fuzzy_score("ap", "pa"), -1);
    assert_int_equal(fuzzy_score("pausee", "pause"), -1);
    assert_int_equal(fuzzy_score("x", ""), -1);
}

static void better(const char *typed, const char *a, const char *b)
{
    if (fuzzy_score(typed, a) <= fuzzy_score(typed, b))
        fail_msg("'%s': '%s' (%d) is not before '%s' (%d)", typed, a, fuzzy_score(typed, a), b,
                 fuzzy_score(typed, b));
}

static void test_order(void **state)
{
    (void)state;
    better("kill", "kill", "kill-all");
    better("kill", "kill-all", "skill");
    better("ka", "kill-all", "break");
    better("pau", "pause", "prev-asking-us");
    better("all", "mark-all", "a-long-list");
    better("idle", "pause all idle", "interrupt-delete");
    /* not the first place of each letter, but the best one */
    better("pane", "prev-pane", "pxaxnxe");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_matches),
                                       cmocka_unit_test(test_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
