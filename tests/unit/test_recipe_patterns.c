/* Patterns of COPY and .dockerignore: they match what they say, read as plainly as can be, and
 * none of them takes long. */
#include "../lib/tmpdir.h"

#include <cct/recipe/files.h>
#include <cct/util/buf.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

/* As it reads, and exponential. */
static bool plain_match(char *const *pattern, char *const *path)
{
    for (; *pattern; pattern++, path++) {
        if (str_eq(*pattern, "**")) {
            if (!pattern[1])
                return *path != NULL;
            for (; *path; path++)
                if (plain_match(pattern + 1, path))
                    return true;
            return false;
        }
        if (!*path || !(str_eq(*pattern, "*") || str_eq(*pattern, *path)))
            return false;
    }
    return !*path;
}

/* "!": a folder above the path matches, too. */
static void test_same_as_plain(void **state)
{
    static const char *const words[] = {"a", "b", "*", "**"};
    unsigned seed = 7;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        char pattern[64] = "", path[64] = "";
        char *p[8] = {NULL}, *s[8] = {NULL};
        size_t n = 0, m = 0, np = 1 + (size_t)rand_r(&seed) % 5, ns = 1 + (size_t)rand_r(&seed) % 6;
        struct recipe_ignore g = {ARR_INIT};
        bool want = false;

        for (size_t k = 0; k < np; k++) {
            const char *w = words[rand_r(&seed) % 4];

            if (n && str_eq(w, "**") && str_eq(p[n - 1], "**"))
                continue;
            p[n++] = (char *)(uintptr_t)w;
            snprintf(pattern + strlen(pattern), 8, "%s%s", n > 1 ? "/" : "", w);
        }
        for (; m < ns; m++) {
            s[m] = (char *)(uintptr_t)words[rand_r(&seed) % 2];
            snprintf(path + strlen(path), 8, "%s%s", m ? "/" : "", s[m]);
        }
        for (; m && !want; s[--m] = NULL)
            want = plain_match(p, s);
        recipe_ignore_add(&g, pattern, strlen(pattern));
        if (recipe_ignores(&g, path) != want)
            fail_msg("\"%s\" and \"%s\": not %d", pattern, path, want);
        recipe_ignore_release(&g);
    }
}

/* Every "**" could stand for any number of these folders. */
static void test_hostile_patterns(void **state)
{
    enum { DEEP = 60 };
    char top[64];
    struct buf path = BUF_INIT, stars = BUF_INIT;
    struct recipe_files f = {ARR_INIT, 0};
    struct recipe_ignore g = {ARR_INIT};
    struct err e = {0};

    (void)state;
    assert_int_equal(tmpdir_make(top, sizeof(top), "recipe"), 0);
    for (int i = 0; i < DEEP; i++) {
        char *full;

        buf_adds(&path, i ? "/a" : "a");
        full = fs_join(top, buf_str(&path));
        assert_int_equal(mkdir(full, 0700), 0);
        free(full);
    }
    for (int i = 0; i < 20; i++)
        buf_adds(&stars, "**/a/");
    buf_adds(&stars, "b");
    recipe_ignore_add(&g, stars.p, stars.len);
    assert_false(recipe_ignores(&g, buf_str(&path)));
    assert_int_equal(recipe_files_find(&f, top, ".", &g, NULL, &e), 0);
    assert_int_equal(f.v.n, DEEP + 1);
    recipe_files_release(&f);
    assert_int_equal(recipe_files_find(&f, top, buf_str(&stars), &g, NULL, &e), ERR_NOTFOUND);
    recipe_files_release(&f);
    recipe_ignore_release(&g);
    assert_int_equal(tmpdir_remove(top), 0);
    buf_release(&path);
    buf_release(&stars);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_plain),
        cmocka_unit_test(test_hostile_patterns),
    };

    return cmocka_run_group_tests_name("recipe_patterns", tests, NULL, NULL);
}
