/* Each key of the key table has a case that presses it on the real program (e2e/test_every_key*),
 * and each group of cases is run by one of them. */
#include "../lib/keyrun.h"

#include <cct/util/buf.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool is_pressed(enum action a, int nth)
{
    for (size_t g = 0; g < n_key_groups; g++)
        for (size_t i = 0; i < key_groups[g]->n; i++) {
            const struct key_case *c = &key_groups[g]->cases[i];
            if (c->act == a && (!c->nth || c->nth == nth))
                return true;
        }
    return false;
}

static void test_each_key_has_a_case(void **state)
{
    size_t n = 0, missing = 0;
    (void)state;
    for (int i = ACT_NONE + 1; i < ACT_COUNT; i++) {
        char *keys = xstrdup(action_keys((enum action)i)), *save = NULL;
        int nth = 0;
        for (char *w = strtok_r(keys, " ", &save); w; w = strtok_r(NULL, " ", &save), n++)
            if (!is_pressed((enum action)i, ++nth)) {
                print_message("# %s (%s): no case presses %s\n", action_name((enum action)i),
                              scope_word(action_scope((enum action)i)), w);
                missing++;
            }
        free(keys);
    }
    print_message("# %d actions, %zu keys, %zu of them in no case\n", ACT_COUNT - 1, n, missing);
    assert_int_equal(missing, 0);
}

/* A case without an effect that is looked at would prove nothing. */
static void test_each_case_wants_something(void **state)
{
    (void)state;
    for (size_t g = 0; g < n_key_groups; g++)
        for (size_t i = 0; i < key_groups[g]->n; i++) {
            const struct key_case *c = &key_groups[g]->cases[i];
            if (!strpbrk(c->want, "[{#\""))
                fail_msg("%s, %s", key_groups[g]->name, action_name(c->act));
        }
}

/* The words of keyrun_main("...") in all of the test programs. */
static char *groups_run(void)
{
    struct buf all = BUF_INIT;
    DIR *d = opendir("tests/e2e");
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        size_t len;
        if (!str_starts(e->d_name, "test_every_key"))
            continue;
        char *path = fs_join("tests/e2e", e->d_name), *text = fs_read(path, 1 << 20, false, &len, NULL);
        char *at = text ? strstr(text, "keyrun_main(\"") : NULL;
        assert_non_null(at);
        at += strlen("keyrun_main(\"");
        buf_addf(&all, " %.*s ", (int)strcspn(at, "\""), at);
        free(path);
        free(text);
    }
    closedir(d);
    return buf_detach(&all, NULL);
}

static void test_each_group_is_run(void **state)
{
    char *run = groups_run();
    (void)state;
    for (size_t g = 0; g < n_key_groups; g++) {
        char *name = xasprintf(" %s ", key_groups[g]->name);
        if (!strstr(run, name))
            fail_msg("nothing runs the group%s", name);
        free(name);
    }
    free(run);
}

/* Names of keys as terminals send them. */
static void test_each_key_can_be_sent(void **state)
{
    (void)state;
    for (int i = ACT_NONE + 1; i < ACT_COUNT; i++) {
        char *keys = xstrdup(action_keys((enum action)i)), *save = NULL;
        for (char *w = strtok_r(keys, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
            struct key_ways ways;
            key_bytes(w, &ways);
            assert_true(ways.n > 0);
            for (size_t k = 0; k < ways.n; k++)
                assert_true(*ways.v[k]);
        }
        free(keys);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_key_has_a_case),
        cmocka_unit_test(test_each_case_wants_something),
        cmocka_unit_test(test_each_group_is_run),
        cmocka_unit_test(test_each_key_can_be_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
