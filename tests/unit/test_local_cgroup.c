/* Limits are set where they can hold and claimed only then. A folder of plain files
 * stands in for a group: what is written is what a kernel would read. */
#include "../lib/tmpdir.h"

#include <cct/local/cgroup.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define ID "iaaaaaaaaaaaaaaaaaaaa"

static struct cgroup_base base;

static void touch(const char *name)
{
    char *path = xasprintf("%s/" ID "/%s", base.path, name);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    fclose(f);
    free(path);
}

static char *content(const char *name)
{
    static char text[64];
    char *path = xasprintf("%s/" ID "/%s", base.path, name);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof(text) - 1, f);
    text[n] = '\0';
    fclose(f);
    free(path);
    return text;
}

static int set_up(void **state)
{
    (void)state;
    memset(&base, 0, sizeof(base));
    assert_int_equal(tmpdir_make(base.path, sizeof(base.path), "cgroup"), 0);
    char *dir = xasprintf("%s/" ID, base.path), *run = xasprintf("%s/run", dir);
    assert_int_equal(mkdir(dir, 0700) | mkdir(run, 0700), 0);
    free(dir);
    free(run);
    static const char *const files[] = {"memory.max",       "cpu.max",
                                        "pids.max",         "cgroup.procs",
                                        "run/cgroup.procs", "cgroup.max.descendants"};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        touch(files[i]);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return tmpdir_remove(base.path);
}

static unsigned make(unsigned can, int cpu, int mem_mb)
{
    char path[CGROUP_PATH_MAX];
    unsigned set = 99;
    struct err e = {0};
    base.limits = can;
    assert_int_equal(cgroup_make(&base, ID, geteuid(), cpu, mem_mb, path, &set, &e), 0);
    return set;
}

static void test_all(void **state)
{
    (void)state;
    unsigned all = CGROUP_MEMORY | CGROUP_CPU | CGROUP_TASKS;
    assert_int_equal(make(all, 1, 64), all);
    assert_string_equal(content("memory.max"), "67108864");
    assert_string_equal(content("cpu.max"), "100000 100000");
    assert_string_equal(content("pids.max"), "257");
}

static void test_some(void **state)
{
    (void)state;
    assert_int_equal(make(CGROUP_CPU, 1, 64), CGROUP_CPU);
    assert_string_equal(content("memory.max"), "");
}

static void test_more_than_there_is(void **state)
{
    (void)state;
    assert_int_equal(make(CGROUP_MEMORY | CGROUP_CPU, 4096, 1 << 30), 0);
    assert_string_equal(content("memory.max"), "");
    assert_string_equal(content("cpu.max"), "");
}

static void test_refused(void **state)
{
    (void)state;
    char *path = xasprintf("%s/" ID "/memory.max", base.path);
    assert_int_equal(unlink(path), 0);
    free(path);
    assert_int_equal(make(CGROUP_MEMORY | CGROUP_CPU, 1, 64), CGROUP_CPU);
}

/* A record that names another folder makes nobody remove or kill there. */
static void test_foreign_paths(void **state)
{
    (void)state;
    char *path = xasprintf("%s/" ID, base.path);
    assert_true(cgroup_remove(path, 0));
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(cgroup_kill(path), -1);
    assert_int_equal(cgroup_kill("/sys/fs/cgroup"), -1);
    assert_true(cgroup_remove("", 0));
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_all, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_some, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_more_than_there_is, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_foreign_paths, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("cgroup", tests, NULL, NULL);
}
