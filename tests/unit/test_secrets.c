/* Keys in memory: masks, wiping, the environment, the limits of the process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <cct/secrets/secret.h>
#include <cct/util/log.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void test_value(void **state)
{
    struct secret *s = secret_new("e2b_0123456789abcdef", 20), *d = secret_dup(s);

    (void)state;
    assert_int_equal(secret_len(s), 20);
    assert_string_equal(secret_value(s), "e2b_0123456789abcdef");
    secret_free(s);
    assert_string_equal(secret_value(d), "e2b_0123456789abcdef");
    secret_free(d);
    secret_free(NULL);
    assert_null(secret_dup(NULL));
    s = secret_new("", 0);
    assert_string_equal(secret_value(s), "");
    secret_free(s);
}

static void test_mask(void **state)
{
    static const struct {
        const char *value, *mask;
    } t[] = {
        {"", "****"}, {"abcd", "****"}, {"abcdef", "****"}, {"12345678901", "****"},
        {"123456789012", "****9012"}, {"e2b_0123456789abcdef", "****cdef"},
        {"12345678\x1b[2J", "****"}, {"12345678901\n", "****"},
    };
    char mask[9];

    (void)state;
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        struct secret *s = secret_new(t[i].value, strlen(t[i].value));
        memset(mask, 'x', sizeof(mask));
        secret_mask(s, mask);
        assert_string_equal(mask, t[i].mask);
        secret_free(s);
    }
}

/* The place of a freed value is zero, and is used again. */
static void test_wiped(void **state)
{
    struct secret *s = secret_new("wipe-me-0123456789", 18);
    const char *at = secret_value(s);
    static const char zero[18];

    (void)state;
    secret_free(s);
    assert_memory_equal(at, zero, sizeof(zero));
    for (int i = 0; i < 20000; i++) /* would be 1.2 MB if nothing was given back */
        secret_free(secret_new("short", 5));
    s = secret_new("other-0123456789", 16);
    assert_ptr_equal(secret_value(s), at);
    secret_free(s);
}

static void test_many_and_large(void **state)
{
    static struct secret *all[3000];
    char *big = malloc(100000);
    char text[64];

    (void)state;
    memset(big, 'k', 100000);
    for (int i = 0; i < 3000; i++) {
        snprintf(text, sizeof(text), "e%d", i);
        all[i] = i % 500 ? secret_new(text, strlen(text)) : secret_new(big, 100000);
    }
    for (int i = 0; i < 3000; i++) {
        snprintf(text, sizeof(text), "e%d", i);
        if (i % 500)
            assert_string_equal(secret_value(all[i]), text);
        else
            assert_int_equal(secret_len(all[i]), 100000);
        secret_free(all[i]);
    }
    free(big);
}

static void *churn(void *arg)
{
    struct secret *shared = arg;

    for (int i = 0; i < 2000; i++) {
        struct secret *s = secret_new("thread", 6), *d = secret_dup(shared);
        secret_free(s);
        secret_free(d);
    }
    return NULL;
}

static void test_threads(void **state)
{
    struct secret *s = secret_new("shared", 6);
    pthread_t t[4];

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&t[i], NULL, churn, s), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    assert_string_equal(secret_value(s), "shared");
    secret_free(s);
}

static void test_take_env(void **state)
{
    /* twice in the environment, as a hostile or broken parent can leave it */
    static char one[] = "CCT_TEST_KEY=canary-one-0123", two[] = "CCT_TEST_KEY=canary-two-0123";
    static char *own[3] = {one, two, NULL};
    char **before = environ;
    struct secret *s;

    (void)state;
    environ = own;
    s = secret_take_env("CCT_TEST_KEY");
    assert_string_equal(secret_value(s), "canary-one-0123");
    assert_null(getenv("CCT_TEST_KEY"));
    assert_null(strstr(one + 13, "canary"));
    assert_int_equal(one[13], 0);
    assert_null(secret_take_env("CCT_TEST_KEY"));
    environ = before;
    setenv("CCT_TEST_KEY", "", 1);
    assert_null(secret_take_env("CCT_TEST_KEY"));
    assert_null(getenv("CCT_TEST_KEY"));
    secret_free(s);
}

static void test_not_logged(void **state)
{
    struct secret *s = secret_new("canary-in-the-log-9876", 22);
    struct log_line line[8];
    uint64_t rev;
    size_t n;

    (void)state;
    log_warn("the key is %s, really", secret_value(s));
    n = log_snapshot(line, 8, &rev);
    assert_true(n > 0);
    assert_null(strstr(line[n - 1].text, "canary"));
    secret_free(s);
}

static void test_process(void **state)
{
    struct rlimit core;
    struct err e;

    (void)state;
    assert_int_equal(secrets_init(&e), 0);
    assert_int_equal(getrlimit(RLIMIT_CORE, &core), 0);
    assert_int_equal(core.rlim_cur, 0);
#ifndef __SANITIZE_ADDRESS__
    assert_int_equal(prctl(PR_GET_DUMPABLE), 0);
#endif
}

/* The sanitizers make mlock do nothing. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CAN_LOCK 0
#else
#define CAN_LOCK 1
#endif

/* Without the right to lock, keys still work and the program can say so. */
static void test_cannot_lock(void **state)
{
    pid_t pid = fork();
    int status;

    (void)state;
    if (pid == 0) {
        struct rlimit none = {0, 0};
        bool before = secrets_memory_locked();
        static char big[200000];
        if (setrlimit(RLIMIT_MEMLOCK, &none) != 0 || (geteuid() == 0 && setuid(65534) != 0))
            _exit(2);
        struct secret *s = secret_new(big, sizeof(big)); /* needs pages of its own */
        _exit(!before ? 3 : CAN_LOCK && secrets_memory_locked() ? 4 : secret_len(s) == sizeof(big) ? 0 : 5);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_value), cmocka_unit_test(test_mask), cmocka_unit_test(test_wiped),
        cmocka_unit_test(test_many_and_large), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_take_env), cmocka_unit_test(test_not_logged),
        cmocka_unit_test(test_process), cmocka_unit_test(test_cannot_lock),
    };

    return cmocka_run_group_tests_name("secrets", tests, NULL, NULL);
}
