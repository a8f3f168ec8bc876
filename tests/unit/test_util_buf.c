/* buf and arr: bounds, growth, JSON and URL text. */
#include <cct/util/arr.h>
#include <cct/util/buf.h>
#include <cct/util/err.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
/* keep last */
#include <cmocka.h>

static void test_grow(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    assert_string_equal(buf_str(&b), "");
    for (int i = 0; i < 5000; i++)
        assert_int_equal(buf_addc(&b, (char)('a' + i % 26)), 0);
    assert_int_equal(b.len, 5000);
    assert_int_equal(b.p[4999], 'a' + 4999 % 26);
    assert_int_equal(b.p[5000], 0);
    assert_true(b.cap <= 8192);
    buf_consume(&b, 4990);
    assert_int_equal(b.len, 10);
    assert_int_equal(b.p[0], 'a' + 4990 % 26);
    buf_truncate(&b, 3);
    assert_int_equal(strlen(buf_str(&b)), 3);
    buf_clear(&b);
    assert_int_equal(buf_addf(&b, "%s-%d", "x", 7), 0);
    assert_string_equal(buf_str(&b), "x-7");
    buf_release(&b);
    assert_null(b.p);
}

static void test_numbers(void **state)
{
    struct buf b = BUF_INIT;

    (void)state;
    buf_addi(&b, 0);
    buf_addc(&b, ' ');
    buf_addi(&b, INT64_MAX);
    buf_addc(&b, ' ');
    buf_addi(&b, INT64_MIN);
    buf_addi(&b, -7);
    assert_string_equal(buf_str(&b), "0 9223372036854775807 -9223372036854775808-7");
    buf_release(&b);
}

/* Each byte, wherever it stands among plain ones, and cut by the text's end. */
static void test_json_places(void **state)
{
    struct buf b = BUF_INIT;

    (void)state;
    for (int c = 1; c < 0x80; c++)
        for (size_t at = 0; at < 20; at++)
            for (size_t len = at + 1; len < 24; len++) {
                char text[24], want[40], esc[8] = {(char)c};

                memset(text, 'x', sizeof(text));
                text[at] = (char)c;
                if (c == '"' || c == '\\')
                    snprintf(esc, sizeof(esc), "\\%c", c);
                else if (c == '\n' || c == '\t' || c == '\r')
                    snprintf(esc, sizeof(esc), "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
                else if (c < 0x20 || c == 0x7F)
                    snprintf(esc, sizeof(esc), "\\u%04x", (unsigned)c);
                snprintf(want, sizeof(want), "\"%.*s%s%.*s\"", (int)at, text, esc,
                         (int)(len - at - 1), text + at + 1);
                buf_clear(&b);
                buf_add_json(&b, text, len);
                assert_string_equal(buf_str(&b), want);
            }
    buf_release(&b);
}

/* What was huge once is given back, what is used to the full is kept. */
static void test_clear_gives_back(void **state)
{
    (void)state;
    struct buf b = BUF_INIT_MAX(4 << 20);
    char *block = calloc(1, 1 << 20);
    assert_int_equal(buf_add(&b, block, 1 << 20), 0);
    buf_clear(&b);
    assert_true(b.cap > 1 << 20);
    assert_int_equal(buf_adds(&b, "little"), 0);
    buf_clear(&b);
    assert_null(b.p);
    assert_int_equal(b.cap, 0);
    assert_int_equal(b.max, 4 << 20);
    buf_clear(&b);
    assert_int_equal(buf_adds(&b, "again"), 0);
    assert_string_equal(buf_str(&b), "again");
    assert_int_equal(buf_add(&b, block, 20 << 10), 0);
    buf_clear(&b);
    assert_non_null(b.p); /* small ones stay */
    buf_release(&b);
    free(block);
}

static void test_max(void **state)
{
    (void)state;
    struct buf b = BUF_INIT_MAX(10);
    assert_int_equal(buf_adds(&b, "0123456"), 0);
    assert_int_equal(buf_adds(&b, "789a"), ERR_LIMIT);
    assert_true(b.over);
    assert_string_equal(buf_str(&b), "0123456");
    assert_int_equal(buf_addf(&b, "%d", 12345), ERR_LIMIT);
    assert_string_equal(buf_str(&b), "0123456");
    assert_int_equal(buf_adds(&b, "789"), 0);
    assert_int_equal(buf_addc(&b, 'x'), ERR_LIMIT);
    assert_int_equal(buf_add(&b, "", 0), 0);
    assert_null(buf_reserve(&b, SIZE_MAX));
    assert_int_equal(b.len, 10);
    assert_true(b.cap <= 11);
    buf_clear(&b);
    assert_false(b.over);
    assert_int_equal(buf_add_json(&b, "12345678\n", 9), ERR_LIMIT);
    assert_int_equal(b.len, 0);
    assert_int_equal(buf_add_urlenc(&b, "////", 4), ERR_LIMIT);
    assert_int_equal(b.len, 0);
    buf_release(&b);
    assert_int_equal(b.max, 10);
}

static void test_reserve_detach(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    size_t len = 99;
    char *p = buf_detach(&b, &len);
    assert_string_equal(p, "");
    assert_int_equal(len, 0);
    free(p);
    memcpy(buf_reserve(&b, 3), "abc", 3);
    b.len += 3;
    assert_string_equal(buf_str(&b), "abc");
    p = buf_detach(&b, &len);
    assert_string_equal(p, "abc");
    assert_int_equal(len, 3);
    assert_null(b.p);
    free(p);
}

static void check_json(const char *in, size_t len, const char *want)
{
    struct buf b = BUF_INIT;
    assert_int_equal(buf_add_json(&b, in, len), 0);
    assert_string_equal(buf_str(&b), want);
    buf_release(&b);
}

static void test_json_text(void **state)
{
    (void)state;
    check_json("", 0, "\"\"");
    check_json("plain", 5, "\"plain\"");
    check_json("a\"b\\c\n\t\r", 8, "\"a\\\"b\\\\c\\n\\t\\r\"");
    check_json("\0\x1b\x7f", 3, "\"\\u0000\\u001b\\u007f\"");
    check_json("\xC2\x9B", 2, "\"\\u009b\"");
    check_json("\xC3\xA9\xF0\x9F\x98\x80", 6, "\"\xC3\xA9\xF0\x9F\x98\x80\"");
    check_json("x\xFFy\xE2\x82", 5, "\"x\xEF\xBF\xBDy\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

static void test_urlenc(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    assert_int_equal(buf_add_urlenc(&b, "aZ09-._~ /?&=%\xC3\xA9\0", 17), 0);
    assert_string_equal(buf_str(&b), "aZ09-._~%20%2F%3F%26%3D%25%C3%A9%00");
    buf_release(&b);
}

static void test_arr(void **state)
{
    (void)state;
    ARR(int) a = ARR_INIT;
    for (int i = 0; i < 100; i++)
        *ARR_PUSH(&a) = i;
    assert_int_equal(a.n, 100);
    *ARR_INSERT(&a, 0) = -1;
    *ARR_INSERT(&a, 50) = 777;
    *ARR_INSERT(&a, a.n) = 100;
    assert_int_equal(a.n, 103);
    assert_int_equal(a.v[0], -1);
    assert_int_equal(a.v[50], 777);
    assert_int_equal(a.v[51], 49);
    assert_int_equal(a.v[102], 100);
    ARR_REMOVE(&a, 50);
    ARR_REMOVE(&a, 0);
    for (int i = 0; i <= 100; i++)
        assert_int_equal(a.v[i], i);
    ARR_REMOVE(&a, a.n - 1);
    assert_int_equal(a.n, 100);
    ARR_RELEASE(&a);
    assert_null(a.v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grow),             cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_clear_gives_back), cmocka_unit_test(test_json_places),
        cmocka_unit_test(test_max),
        cmocka_unit_test(test_reserve_detach), cmocka_unit_test(test_json_text),
        cmocka_unit_test(test_urlenc),         cmocka_unit_test(test_arr),
    };
    return cmocka_run_group_tests_name("util_buf", tests, NULL, NULL);
}
