/* Which command lines of package managers change something. */
#include <cct/local/pkg_refusal.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool wants(const char *line)
{
    char *copy = xstrdup(line), *save = NULL, *argv[16];
    int n = 0;
    for (char *p = strtok_r(copy, " ", &save); p && n < 16; p = strtok_r(NULL, " ", &save))
        argv[n++] = p;
    bool yes = pkg_refusal_wants(argv[0], n - 1, argv + 1);
    free(copy);
    return yes;
}

static void test_changes(void **state)
{
    static const char *const lines[] = {
        "apt-get install -y curl",
        "apt-get update",
        "apt-get -y -qq install curl",
        "apt install ./x.deb",
        "apt-get -o A=b upgrade",
        "apt-get -o list install x",
        "aptitude install show",
        "dpkg -i x.deb",
        "dpkg --force-all -i x.deb",
        "dpkg --configure -a",
        "dpkg -P x",
        "apt-get source x",
        "apt-get autoremove",
        "apt full-upgrade",
        "apt-get something-new",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        if (!wants(lines[i]))
            fail_msg("%s", lines[i]);
}

static void test_queries(void **state)
{
    static const char *const lines[] = {
        "apt-get --version",
        "apt list --installed",
        "apt-get",
        "apt show curl",
        "dpkg -l",
        "dpkg -s curl",
        "dpkg",
        "dpkg --print-architecture",
        "apt -o A=b policy",
        "dpkg -L x",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        if (wants(lines[i]))
            fail_msg("%s", lines[i]);
    assert_true(pkg_refusal_is("apt-get"));
    assert_false(pkg_refusal_is("apt-cache"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_queries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
