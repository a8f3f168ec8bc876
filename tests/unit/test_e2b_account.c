/* Where calls may go: the addresses of an account, and those of sandboxes that it yields. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <cct/e2b.h>
#include <stdlib.h>
#include <string.h>

static void test_sandbox_url(void **state)
{
    struct e2b_account a = {.api_url = (char *)"https://api.e2b.app", .domain = (char *)"e2b.app"};
    struct err e = {0};
    char *u;

    (void)state;
    u = e2b_sandbox_url(&a, "iabc", NULL, &e);
    assert_string_equal(u, "https://sandbox.e2b.app");
    free(u);
    u = e2b_sandbox_url(&a, "iabc", "e2b.dev", &e);
    assert_string_equal(u, "https://sandbox.e2b.dev");
    free(u);
    u = e2b_sandbox_url(&a, "iabc", "eu.e2b.app", &e);
    assert_string_equal(u, "https://49983-iabc.eu.e2b.app");
    free(u);
    assert_null(e2b_sandbox_url(&a, "iabc", "evil.example", &e));
    assert_int_equal(e.code, ERR_PERM);
    assert_null(e2b_sandbox_url(&a, "iabc", "evile2b.app", &e));
    assert_null(e2b_sandbox_url(&a, "iabc", "e2b.app/x", &e));
    assert_null(e2b_sandbox_url(&a, "iabc", "x@e2b.app", &e));
    assert_null(e2b_sandbox_url(&a, "iabc", ".e2b.app", &e));
    assert_null(e2b_sandbox_url(&a, "iabc", "x@eu.e2b.app", &e));
    assert_null(e2b_sandbox_url(&a, "iabc", "evil.example/.e2b.app", &e));
    assert_null(e2b_sandbox_url(&a, "iabc", "evil.example:80.e2b.app", &e));
    assert_null(e2b_sandbox_url(&a, "iabc", "-eu.e2b.app", &e));
    u = e2b_sandbox_url(&a, "iabc", "eu-west-1.e2b.app", &e);
    assert_string_equal(u, "https://49983-iabc.eu-west-1.e2b.app");
    free(u);
    assert_null(e2b_sandbox_url(&a, "i.evil", NULL, &e));
    assert_null(e2b_sandbox_url(&a, "i/x", "e2b.app", &e));
    a.domain = (char *)"corp.example";
    a.api_url = (char *)"https://api.corp.example";
    u = e2b_sandbox_url(&a, "iabc", NULL, &e);
    assert_string_equal(u, "https://49983-iabc.corp.example");
    free(u);
    assert_null(e2b_sandbox_url(&a, "iabc", "e2b.app", &e));
    a.api_url = (char *)"http://127.0.0.1:3000";
    assert_null(e2b_sandbox_url(&a, "iabc", NULL, &e));
    assert_non_null(strstr(e.text, "E2B_SANDBOX_URL"));
    a.sandbox_url = (char *)"http://127.0.0.1:3001";
    u = e2b_sandbox_url(&a, "iabc", "evil.example", &e);
    assert_string_equal(u, "http://127.0.0.1:3001");
    free(u);
}

static void test_account(void **state)
{
    struct e2b_account a = {.api_url = (char *)"https://api.e2b.app", .domain = (char *)"e2b.app",
                            .key = secret_new("e2b_0123456789abcdef", 20)};
    struct err e = {0};

    (void)state;
    assert_int_equal(e2b_account_check(&a, &e), 0);
    a.api_url = (char *)"http://api.e2b.app";
    assert_int_equal(e2b_account_check(&a, &e), ERR_INVALID);
    a.api_url = (char *)"http://localhost:3000";
    assert_int_equal(e2b_account_check(&a, &e), 0);
    a.api_url = (char *)"http://localhost:3000/";
    assert_int_equal(e2b_account_check(&a, &e), ERR_INVALID);
    a.api_url = (char *)"https://api.e2b.app";
    a.sandbox_url = (char *)"http://sandbox.e2b.app";
    assert_int_equal(e2b_account_check(&a, &e), ERR_INVALID);
    a.sandbox_url = NULL;
    a.domain = (char *)"e2b..app";
    assert_int_equal(e2b_account_check(&a, &e), ERR_INVALID);
    a.domain = (char *)"my-corp.example";
    assert_int_equal(e2b_account_check(&a, &e), 0);
    a.domain = (char *)"corp.example/x";
    assert_int_equal(e2b_account_check(&a, &e), ERR_INVALID);
    secret_free(a.key);
    a.key = NULL;
    a.domain = (char *)"e2b.app";
    assert_int_equal(e2b_account_check(&a, &e), ERR_AUTH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sandbox_url),
        cmocka_unit_test(test_account),
    };
    return cmocka_run_group_tests_name("e2b_account", tests, NULL, NULL);
}
