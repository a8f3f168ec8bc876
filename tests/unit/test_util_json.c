/* json: what foreign writers do, getters that are exact, the writer. */
#include <cct/util/buf.h>
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/limits.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* keep last */
#include <cmocka.h>

#define FFFD "\xEF\xBF\xBD"

/* Parses from memory of exactly that size, so that ASan sees any over-read. */
static struct cJSON *parse_exact(const char *text, size_t len, struct err *e)
{
    char *copy = xmalloc(len);
    memcpy(copy, text, len);
    struct cJSON *j = json_parse(copy, len, e);
    free(copy);
    return j;
}

static void check_string(const char *text, size_t len, const char *want)
{
    struct err e = {0};
    struct cJSON *j = parse_exact(text, len, &e);
    if (!j)
        fail_msg("%s: %s", text, e.text);
    assert_string_equal(json_str(j, "s", "(none)"), want);
    json_free(j);
}
#define CHECK(text, want) check_string(text, sizeof(text) - 1, want)

static void test_repair(void **state)
{
    (void)state;
    CHECK("{\"s\":\"plain text of some length\"}", "plain text of some length");
    CHECK("{\"s\":\"\\ud83d\\ude00\"}", "\xF0\x9F\x98\x80");
    CHECK("{\"s\":\"a\\ud83d\"}", "a" FFFD);
    CHECK("{\"s\":\"\\ud83d\\u2026\"}", FFFD "\xE2\x80\xA6");
    CHECK("{\"s\":\"\\ud83dx\"}", FFFD "x");
    CHECK("{\"s\":\"\\ude00\"}", FFFD);
    CHECK("{\"s\":\"\\ud800 \\udbff \\udc00 \\udfff\"}", FFFD " " FFFD " " FFFD " " FFFD);
    CHECK("{\"s\":\"\\ud800\\udc00\\udbff\\udfff\\ud7ff\\ue000\"}",
          "\xF0\x90\x80\x80\xF4\x8F\xBF\xBF\xED\x9F\xBF\xEE\x80\x80");
    CHECK("{\"s\":\"\\ude00\\ud83d\"}", FFFD FFFD);
    CHECK("{\"s\":\"\\ud83d\\ud83d\\ude00\"}", FFFD "\xF0\x9F\x98\x80");
    CHECK("{\"s\":\"\\ud83d\\n\"}", FFFD "\n");
    CHECK("{\"s\":\"\\\\ud83d\"}", "\\ud83d");
    CHECK("{\"s\":\"\\\\\\ud83d\"}", "\\" FFFD);
    CHECK("{\"s\":\"a\\u0000b\"}", "a" FFFD "b");
    CHECK("{\"s\":\"\\\\u0000b\"}", "\\u0000b");
    CHECK("{\"s\":\"\\\\\\u0000b\"}", "\\" FFFD "b");
    CHECK("{\"s\":\"a\0b\"}", "a" FFFD "b");
    CHECK("{\"s\":\"\xFF\"}", FFFD);
    CHECK("{\"s\":\"\xE2\x82\"}", FFFD FFFD);
    CHECK("{\"s\":\"\xED\xA0\x80\"}", FFFD FFFD FFFD);
    CHECK("{\"s\":\"\xC3\xA9 stays\"}", "\xC3\xA9 stays");
    CHECK("{\"s\":\"12345678\\\"9\\ud8001234567\xC0 tail of it\"}",
          "12345678\"9" FFFD "1234567" FFFD " tail of it");
    CHECK("{\"x\\u0000\":1,\"s\":\"k\"}", "k");
    CHECK(" \r\n\t{\"s\":\"w\"} \n", "w");
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "  ",
        "{",
        "[",
        "{\"a\"",
        "{\"a\":\"x",
        "{\"a\":\"\\",
        "{\"a\":\"\\u",
        "{\"a\":\"\\ud83d\\",
        "{\"1\":1,",
        "[1,",
        "[1,]x",
        "{}x",
        "{} {}",
        "}",
        "[}",
        "{]",
        "nul",
        "NaN",
        "[NaN]",
        "[Infinity]",
        "'a'",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\uZZZZ\"}",
        "{a:1}",
        "[1 2]",
        "\"a",
        "-",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct err e = {0};
        struct cJSON *j = parse_exact(bad[i], strlen(bad[i]), &e);
        if (j || e.code == 0 || e.text[0] == '\0')
            fail_msg("taken: '%s'", bad[i]);
    }
    struct err e = {0};
    assert_null(parse_exact("{}\0", 3, &e));
    assert_null(json_parse("x", (size_t)LIM_JSON_BYTES + 1, &e));
    assert_int_equal(e.code, ERR_LIMIT);
    assert_null(json_parse("{", 1, NULL));
}

/* The quick way gives the same, whatever was asked for before and however large. */
static struct cJSON *once(const char *text)
{
    struct err e = {0};

    return json_parse_once(text, strlen(text), &e);
}

static void test_once(void **state)
{
    struct buf big = BUF_INIT;

    (void)state;
    buf_adds(&big, "[");
    for (int i = 0; i < 40000; i++) /* more than there is quick memory for */
        buf_addf(&big, "%s{\"n\":%d,\"s\":\"text %d\"}", i ? "," : "", i, i);
    buf_adds(&big, "]");
    for (int round = 0; round < 3; round++) {
        struct cJSON *first = once("{\"a\":\"one\"}");
        struct cJSON *second = once("{\"a\":[1,2,{\"b\":\"two\"}]}");

        assert_null(once("{\"a\":"));
        assert_null(once("{} {}"));
        json_free(first);
        struct cJSON *third = once(big.p);
        char *text = json_text(third);
        assert_string_equal(text, big.p);
        free(text);
        json_free(third);
        struct cJSON *fourth = once("{\"c\":\"four\"}");
        char *copy = json_text(second);
        assert_string_equal(copy, "{\"a\":[1,2,{\"b\":\"two\"}]}");
        assert_string_equal(json_str(fourth, "c", ""), "four");
        free(copy);
        json_free(second);
        json_free(fourth);
    }
    buf_release(&big);
}

static void test_depth(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    struct err e = {0};
    for (unsigned i = 0; i < LIM_JSON_DEPTH; i++)
        buf_addc(&b, '[');
    for (unsigned i = 0; i < LIM_JSON_DEPTH; i++)
        buf_addc(&b, ']');
    struct cJSON *j = json_parse(b.p, b.len, &e);
    assert_non_null(j);
    json_free(j);
    buf_clear(&b);
    for (int i = 0; i < 1000000; i++)
        buf_addc(&b, '[');
    assert_null(json_parse(b.p, b.len, &e));
    assert_int_equal(e.code, ERR_LIMIT);
    buf_clear(&b); /* brackets inside strings do not count */
    buf_adds(&b, "[\"");
    for (int i = 0; i < 1000; i++)
        buf_addc(&b, '[');
    buf_adds(&b, "\"]");
    j = json_parse(b.p, b.len, &e);
    assert_non_null(j);
    json_free(j);
    buf_release(&b);
}

static void test_getters(void **state)
{
    (void)state;
    static const char text[] =
        "{\"a\":1,\"A\":2,\"dup\":1,\"dup\":\"two\",\"big\":9007199254740993,"
        "\"max\":9007199254740991,\"neg\":-9007199254740991,\"frac\":1.5,\"inf\":1e999,"
        "\"str\":\"12\",\"ns\":\"1787392800123456789\",\"bad\":\"12x\",\"t\":true,\"f\":false,"
        "\"n\":null,\"o\":{\"p\":{\"q\":\"deep\"}},\"arr\":[1,\"x\"],\"exp\":1e3,\"\":5}";
    struct err e = {0};
    struct cJSON *j = parse_exact(text, sizeof(text) - 1, &e);
    assert_non_null(j);
    assert_int_equal(json_i64(j, "a", -1), 1);
    assert_int_equal(json_i64(j, "A", -1), 2);
    assert_string_equal(json_str(j, "dup", ""), "two");
    assert_int_equal(json_i64(j, "dup", -1), -1);
    assert_int_equal(json_i64(j, "big", -1), -1);
    assert_true(json_i64(j, "max", -1) == 9007199254740991);
    assert_true(json_i64(j, "neg", -1) == -9007199254740991);
    assert_int_equal(json_i64(j, "frac", -1), -1);
    assert_int_equal(json_i64(j, "inf", -1), -1);
    assert_int_equal(json_i64(j, "exp", -1), 1000);
    assert_int_equal(json_i64(j, "str", -1), -1);
    assert_int_equal(json_i64(j, "t", -1), -1);
    assert_int_equal(json_i64(j, "", -1), 5);
    assert_int_equal(json_i64s(j, "str", -1), 12);
    assert_true(json_i64s(j, "ns", -1) == 1787392800123456789);
    assert_int_equal(json_i64s(j, "bad", -1), -1);
    assert_int_equal(json_i64s(j, "a", -1), 1);
    assert_true(json_num(j, "frac", 0) == 1.5);
    assert_true(json_num(j, "inf", 7) == 7);
    assert_true(json_num(j, "str", 7) == 7);
    assert_true(json_bool(j, "t", false));
    assert_false(json_bool(j, "f", true));
    assert_true(json_bool(j, "n", true));
    assert_true(json_bool(j, "a", true));
    assert_null(json_str(j, "n", NULL));
    assert_null(json_get(j, "missing"));
    assert_null(json_get(NULL, "a"));
    assert_null(json_get(json_get(j, "arr"), "a"));
    assert_string_equal(json_str_of(json_path(j, "o.p.q")), "deep");
    assert_null(json_path(j, "o.x.q"));
    assert_null(json_path(j, "o.p.q.r"));
    const struct cJSON *c = json_first(json_get(j, "arr"));
    assert_true(json_is_array(json_get(j, "arr")));
    assert_null(json_name(c));
    assert_true(json_is_string(json_next(c)));
    assert_null(json_next(json_next(c)));
    assert_string_equal(json_name(json_first(json_get(j, "o"))), "p");
    assert_null(json_first(json_get(j, "str")));
    char *out = json_text(json_get(j, "arr"));
    assert_string_equal(out, "[1,\"x\"]");
    free(out);
    struct cJSON *copy = json_copy(json_get(j, "o"));
    json_free(j);
    assert_string_equal(json_str_of(json_path(copy, "p.q")), "deep");
    json_free(copy);
    assert_null(json_copy(NULL));
    json_free(NULL);
}

static void test_writer(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    struct jw w;
    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_str(&w, "s", "a\"\n\xFF");
    jw_str(&w, "none", NULL);
    jw_arr(&w, "list");
    jw_i64(&w, NULL, INT64_MIN);
    jw_num(&w, NULL, 0.1);
    jw_num(&w, NULL, 1.0 / 3);
    jw_num(&w, NULL, NAN);
    jw_num(&w, NULL, INFINITY);
    jw_obj(&w, NULL);
    jw_end(&w);
    jw_arr(&w, NULL);
    jw_end(&w);
    jw_end(&w);
    jw_bool(&w, "k\"", true);
    jw_null(&w, "z");
    jw_raw(&w, "raw", "{\"x\":1}");
    jw_strn(&w, "n", "ab\0c", 4);
    jw_end(&w);
    assert_string_equal(
        buf_str(&b), "{\"s\":\"a\\\"\\n" FFFD "\",\"none\":null,\"list\":[-9223372036854775808,"
                     "0.1,0.33333333333333331,null,null,{},[]],\"k\\\"\":true,\"z\":null,"
                     "\"raw\":{\"x\":1},\"n\":\"ab\\u0000c\"}");
    assert_int_equal(w.depth, 0);
    struct err e = {0};
    struct cJSON *j = json_parse(b.p, b.len, &e);
    assert_non_null(j);
    json_free(j);
    buf_release(&b);
}

/* Any cut and any changed byte of a document is taken or refused, no more. */
static void test_mutations(void **state)
{
    (void)state;
    static const char text[] =
        "{\"a\":[1,-2.5e3,\"x\\ud83d\\ude00\\u0000\xC3\xA9\"],\"b\":{\"c\":null}}";
    char copy[sizeof(text)];
    struct err e = {0};
    for (size_t n = 0; n < sizeof(text) - 1; n++)
        assert_null(parse_exact(text, n, &e));
    for (size_t i = 0; i < sizeof(text) - 1; i++)
        for (int c = 0; c < 256; c++) {
            memcpy(copy, text, sizeof(text));
            copy[i] = (char)c;
            json_free(parse_exact(copy, sizeof(text) - 1, &e));
        }
}

/* On a terminal nothing of it acts, and it says the same. */
static void test_for_terminal(void **state)
{
    static const char text[] = "a\033[2J\rb\xc2\x9b" "2Jc\xe2\x80\xae" "d\x7f\t\xe2\x81\xa6\xf0\x9f\x98\x80";
    struct buf plain = BUF_INIT, shown = BUF_INIT, cut = BUF_INIT;
    struct cJSON *j;
    struct jw w;

    (void)state;
    jw_init(&w, &plain);
    jw_obj(&w, NULL);
    jw_str(&w, "t", text);
    jw_end(&w);
    json_for_terminal(plain.p, plain.len, &shown);
    for (size_t i = 0; i < shown.len; i++)
        assert_true((unsigned char)shown.p[i] >= ' ' && shown.p[i] != 0x7f);
    assert_null(strstr(buf_str(&shown), "\xc2\x9b"));
    assert_null(strstr(buf_str(&shown), "\xe2\x80\xae"));
    assert_non_null(strstr(buf_str(&shown), "\xf0\x9f\x98\x80"));
    j = json_parse(shown.p, shown.len, NULL);
    assert_string_equal(json_str(j, "t", ""), text);
    json_free(j);
    json_for_terminal("{\n\t\"a\": 1\r\n}", 12, &cut); /* blanks between are no text */
    json_for_terminal("\xe2\x80", 2, &cut); /* cut in a character: handed on */
    assert_string_equal(buf_str(&cut), "{\n\t\"a\": 1\r\n}\xe2\x80");
    buf_release(&plain);
    buf_release(&shown);
    buf_release(&cut);
}

/* What editors read of this tree is JSON, quoted for a shell. */
static void test_compile_commands(void **state)
{
    size_t len = 0, n = 0;
    struct err e = {0};
    char *text = fs_read("compile_commands.json", 8 << 20, false, &len, &e);

    (void)state;
    if (!text)
        fail_msg("%s", e.text);
    struct cJSON *j = json_parse(text, len, &e);
    if (!j)
        fail_msg("compile_commands.json: %s", e.text);
    for (const struct cJSON *i = json_first(j); i; i = json_next(i), n++) {
        const char *command = json_str(i, "command", "");
        assert_non_null(strstr(command, json_str(i, "file", "(none)")));
        assert_non_null(strstr(command, " -DCCT_VERSION='\"" CCT_VERSION "\"' "));
    }
    assert_true(n > 100);
    json_free(j);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_for_terminal), cmocka_unit_test(test_compile_commands),
        cmocka_unit_test(test_repair), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_once),
        cmocka_unit_test(test_depth),  cmocka_unit_test(test_getters),
        cmocka_unit_test(test_writer), cmocka_unit_test(test_mutations),
    };
    return cmocka_run_group_tests_name("util_json", tests, NULL, NULL);
}
