/* str, b64, rand, utf8, err: the small ones. */
#include <cct/util/err.h>
#include <cct/util/str.h>
#include <cct/util/utf8.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
/* keep last */
#include <cmocka.h>

static void test_compare_copy(void **state)
{
    (void)state;
    char d[4];
    assert_true(str_starts("abc", "ab") && str_starts("abc", "") && !str_starts("a", "ab"));
    assert_true(str_ends("abc", "bc") && str_ends("abc", "") && !str_ends("c", "bc"));
    assert_true(str_eq(NULL, NULL) && !str_eq(NULL, "") && str_eq("a", "a"));
    assert_true(str_ends("abc", "bc") && str_ends("abc", "abc") && str_ends("abc", ""));
    assert_false(str_ends("abc", "xabc") || str_ends("abc", "ab"));
    assert_true(str_eq_nocase("AbC", "aBc") && !str_eq_nocase("ab", "abc"));
    assert_true(str_eq_nocase("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"));
    assert_true(!str_eq_nocase("@", "`") && !str_eq_nocase("[", "{")); /* beside the letters */
    assert_true(str_copy(d, sizeof(d), "abc"));
    assert_string_equal(d, "abc");
    assert_false(str_copy(d, sizeof(d), "wxyz"));
    assert_string_equal(d, "wxy");
    assert_false(str_copy(d, 0, "q"));
    char s[] = " \t a b\n ";
    assert_string_equal(str_trim(s), "a b");
    char blank[] = "  ";
    assert_string_equal(str_trim(blank), "");
}

static void test_set(void **state)
{
    char *s = NULL;
    (void)state;
    str_set(&s, "abc");
    assert_string_equal(s, "abc");
    str_set(&s, s + 1); /* a part of what it replaces */
    assert_string_equal(s, "bc");
    str_set(&s, NULL);
    assert_null(s);
}

static void test_lists(void **state)
{
    char **v = NULL, **copy;
    (void)state;
    assert_int_equal(str_list_count(NULL), 0);
    assert_null(str_list_copy(NULL));
    v = str_list_add(v, xstrdup("a"));
    v = str_list_add(v, xstrdup("b"));
    copy = str_list_copy(v);
    str_list_free(v);
    assert_int_equal(str_list_count(copy), 2);
    assert_true(str_eq(copy[0], "a") && str_eq(copy[1], "b"));
    str_list_free(copy);
    str_list_free(NULL);
}

static void test_numbers(void **state)
{
    (void)state;
    static const char *const junk[] = {
        "", " 1", "1 ", "+1", "--1", "-", "1x", "0x10", "1.5", "9223372036854775808", NULL};
    int64_t v = 42;
    for (size_t i = 0; junk[i]; i++)
        assert_false(str_to_i64(junk[i], INT64_MIN, INT64_MAX, &v));
    assert_int_equal(v, 42);
    assert_true(str_to_i64("-9223372036854775808", INT64_MIN, INT64_MAX, &v));
    assert_true(v == INT64_MIN);
    assert_true(str_to_i64("010", 0, 10, &v));
    assert_int_equal(v, 10);
    assert_false(str_to_i64("11", 0, 10, &v));
    assert_false(str_to_i64(NULL, 0, 10, &v));
}

static void test_seconds(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t want;
    } good[] = {{"90", 90}, {"15m", 900}, {"1h30m", 5400}, {"2d", 172800}, {"0", 0}, {"5s", 5}};
    static const char *const bad[] = {"",
                                      "m",
                                      "1x",
                                      "1m1h",
                                      "1h1h",
                                      "-5",
                                      "1h30",
                                      "1 h",
                                      "1.5h",
                                      "99999999999999999999",
                                      "999999999999999999d"};
    int64_t v;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_true(str_to_seconds(good[i].text, &v));
        assert_int_equal(v, good[i].want);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(str_to_seconds(bad[i], &v));
}

static void test_nearest(void **state)
{
    (void)state;
    static const char *const words[] = {"running", "paused", "theme", "timeout", "q"};
    assert_int_equal(str_nearest("runing", words, 5), 0);
    assert_int_equal(str_nearest("pasued", words, 5), 1);
    assert_int_equal(str_nearest("Theme", words, 5), 2);
    assert_int_equal(str_nearest("timeuot", words, 5), 3);
    assert_int_equal(str_nearest("banana", words, 5), -1);
    assert_int_equal(str_nearest("x", words, 5), -1);
    assert_int_equal(str_nearest("", words, 5), -1);
    char longer[200];
    memset(longer, 'r', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    assert_int_equal(str_nearest(longer, words, 5), -1);
}

static void test_base64(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"", ""},        {"f", "Zg=="},        {"fo", "Zm8="},
        {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"\xFB\xFF", "+/8="}};
    size_t len;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        char *text = b64_encode(pairs[i][0], strlen(pairs[i][0]));
        assert_string_equal(text, pairs[i][1]);
        char *back = b64_decode(text, strlen(text), &len);
        assert_int_equal(len, strlen(pairs[i][0]));
        assert_string_equal(back, pairs[i][0]);
        free(back);
        free(text);
    }
    char *p = b64_decode("-_8", 3, &len); /* URL-safe, no padding */
    assert_int_equal(len, 2);
    assert_memory_equal(p, "\xFB\xFF", 3);
    free(p);
    static const char *const bad[] = {
        "Z", "Zg=", "Zg===", "Z g=", "Zm9v\n", "=", "Zg==Zg==", "Zm9v="};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_null(b64_decode(bad[i], strlen(bad[i]), &len));
}

static void test_random(void **state)
{
    (void)state;
    char a[33], b[33], hex[9];
    rand_id(a, 32);
    rand_id(b, 32);
    assert_int_equal(strlen(a), 32);
    assert_int_equal(strspn(a, "abcdefghijklmnopqrstuvwxyz0123456789"), 32);
    assert_string_not_equal(a, b);
    hex_encode(hex, "\x00\x7f\xab\xff", 4);
    assert_string_equal(hex, "007fabff");
    char uuid[37], other[37];
    unsigned char bytes[16];
    memset(bytes, 0xff, sizeof(bytes));
    uuid_format(uuid, bytes);
    assert_string_equal(uuid, "ffffffff-ffff-4fff-bfff-ffffffffffff");
    rand_uuid(uuid);
    rand_uuid(other);
    assert_string_not_equal(uuid, other);
    assert_int_equal(strlen(uuid), 36);
}

static void check_utf8(const char *s, size_t len, size_t used, uint32_t want)
{
    uint32_t cp = 1;
    assert_int_equal(utf8_decode(s, len, &cp), used);
    if (used)
        assert_int_equal(cp, want);
}

static void test_utf8(void **state)
{
    (void)state;
    check_utf8("", 0, 0, 0);
    check_utf8("\0", 1, 1, 0);
    check_utf8("\x7F", 1, 1, 0x7F);
    check_utf8("\xC2\x80", 2, 2, 0x80);
    check_utf8("\xE2\x82\xAC", 3, 3, 0x20AC);
    check_utf8("\xF4\x8F\xBF\xBF", 4, 4, 0x10FFFF);
    check_utf8("\x80", 1, 1, UTF8_BAD);
    check_utf8("\xC0\x80", 2, 1, UTF8_BAD);     /* overlong */
    check_utf8("\xE0\x80\x80", 3, 1, UTF8_BAD); /* overlong */
    check_utf8("\xED\xA0\x80", 3, 1, UTF8_BAD); /* surrogate */
    check_utf8("\xED\xA0", 2, 1, UTF8_BAD);     /* known bad before its end */
    check_utf8("\xF4\x90\x80\x80", 4, 1, UTF8_BAD);
    check_utf8("\xF5\x80\x80\x80", 4, 1, UTF8_BAD);
    check_utf8("\xE2\x82", 2, 0, 0);
    check_utf8("\xF0\x9F\x98", 3, 0, 0);
    check_utf8("\xE2x", 2, 1, UTF8_BAD);
}

/* Every code point comes back as it went in. */
static void test_utf8_round(void **state)
{
    (void)state;
    char s[4];
    for (uint32_t cp = 0; cp <= 0x110000; cp++) {
        bool good = cp <= 0x10FFFF && !(cp >= 0xD800 && cp <= 0xDFFF);
        uint32_t back;
        size_t n = utf8_encode(s, cp);
        if (utf8_decode(s, n, &back) != n || back != (good ? cp : 0xFFFD))
            fail_msg("U+%04X came back as U+%04X", cp, back);
        for (size_t k = 1; k < n; k++)
            if (utf8_decode(s, k, &back) != 0)
                fail_msg("U+%04X cut at %zu was taken", cp, k);
    }
}

static void test_err(void **state)
{
    (void)state;
    struct err e = {0};
    assert_int_equal(err_set(NULL, ERR_AUTH, "x"), ERR_AUTH);
    assert_int_equal(err_set(&e, ERR_AUTH, "key '%s' refused", "k"), ERR_AUTH);
    assert_int_equal(err_wrap(&e, "cannot list"), ERR_AUTH);
    assert_string_equal(e.text, "cannot list: key 'k' refused");
    err_set(&e, ERR_IO, "again: %s", e.text); /* its own text as an argument */
    assert_string_equal(e.text, "again: cannot list: key 'k' refused");
    errno = ENOSPC;
    assert_int_equal(err_sys(&e, 0, "cannot write '%s'", "f"), ERR_FULL);
    assert_string_equal(e.text, "cannot write 'f': No space left on device");
    assert_int_equal(e.sys, ENOSPC);
    errno = ENOENT;
    assert_int_equal(err_sys(&e, ERR_CORRUPT, "x"), ERR_CORRUPT);
    char longer[700];
    for (size_t i = 0; i + 3 < sizeof(longer); i += 3)
        memcpy(longer + i, "\xE2\x82\xAC", 4);
    errno = EACCES;
    err_sys(&e, 0, "%s", longer);
    assert_true(str_ends(e.text, ": Permission denied")); /* the cause stays */
    err_set(&e, ERR_IO, "%s", longer);
    for (size_t i = 0, n; e.text[i]; i += n) {
        uint32_t cp;
        n = utf8_decode(e.text + i, strlen(e.text + i), &cp);
        assert_true(n > 0 && cp != UTF8_BAD); /* not cut inside a character */
    }
    assert_string_equal(err_name(ERR_NETWORK), "network");
    assert_string_equal(err_name(ERR_UNSUPPORTED), "unsupported");
    assert_string_equal(err_name(ERR_BUG), "bug");
    assert_string_equal(err_name(-99), "unknown");
    err_clear(&e);
    assert_int_equal(e.code, 0);
}

static void say_hook(void)
{
    if (write(STDERR_FILENO, "hook;", 5) != 5)
        _exit(9);
}

static void test_die(void **state)
{
    (void)state;
    int p[2], status;
    char text[200] = "";
    assert_int_equal(pipe(p), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(p[1], STDERR_FILENO);
        die_set_hook(say_hook);
        die("cannot go on: %d", 7);
    }
    close(p[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    assert_true(read(p[0], text, sizeof(text) - 1) > 0);
    close(p[0]);
    assert_true(str_starts(text, "hook;"));
    assert_true(str_ends(text, ": cannot go on: 7\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compare_copy), cmocka_unit_test(test_set),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_seconds),      cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_base64),       cmocka_unit_test(test_random),
        cmocka_unit_test(test_utf8),         cmocka_unit_test(test_utf8_round),
        cmocka_unit_test(test_err),          cmocka_unit_test(test_die),
    };
    return cmocka_run_group_tests_name("util_str", tests, NULL, NULL);
}
