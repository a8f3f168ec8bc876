/* Cells, clusters, cutting and wrapping. */
#include "../lib/hostile.h"

#include <cct/text/clean.h>
#include <cct/text/width.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WIDE "\xe6\x97\xa5"       /* a CJK character */
#define ACUTE "\xcc\x81"          /* combining */
#define FLAG_D "\xf0\x9f\x87\xa9" /* regional indicators */
#define FLAG_E "\xf0\x9f\x87\xaa"
#define SMILE "\xf0\x9f\x98\x80"

static size_t width(const char *s)
{
    return text_width(s, strlen(s));
}

static void test_code_points(void **state)
{
    (void)state;
    static const struct {
        uint32_t cp;
        int w;
    } want[] = {{'a', 1},     {0xE9, 1},    {0x301, 0},    {0x65E5, 2},   {0xAC00, 2},
                {0x1100, 2},  {0x1161, 0},  {0x11AB, 0},   {0xFF21, 2},   {0xFF76, 1},
                {0x1F600, 2}, {0x1F1E9, 1}, {0x2764, 1},   {0x231A, 2},   {0x20E3, 0},
                {0x3000, 2},  {0xFFFD, 1},  {0x10FFFF, 1}, {0x110000, 1}, {0xFFFFFFFF, 1},
                {0x20000, 2}, {0x1FFFF, 1}, {0x3FFFF, 1},  {0x0E35, 0},   {0x93F, 1},
                {0x200D, 0},  {0xFE0F, 0},  {0x1FAE8, 2},  {0x1D173, 0},  {0x303F, 1},
                {0x1F3FD, 2}, {0x4DC0, 2},  {0x302A, 0},   {0x2014, 1}};
    for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++)
        if (text_cp_width(want[i].cp) != want[i].w)
            fail_msg("U+%04X is %d cells, want %d", want[i].cp, text_cp_width(want[i].cp),
                     want[i].w);
    for (uint32_t cp = 0; cp < 0x110000; cp++)
        assert_in_range(text_cp_width(cp), 0, 2);
    text_ambiguous_wide(true);
    assert_int_equal(text_cp_width(0x2014), 2);
    assert_int_equal(text_cp_width(0x301), 0);
    text_ambiguous_wide(false);
}

static void test_text(void **state)
{
    (void)state;
    assert_int_equal(width(""), 0);
    assert_int_equal(width("abcdefghijklmnopq"), 17);
    assert_int_equal(width("a" WIDE "b" ACUTE "c"), 5);
    assert_int_equal(width(FLAG_D FLAG_E), 2);
    assert_int_equal(width("\xff\xe6\x97"), 3);
}

static void check_cluster(const char *s, size_t want, int want_w)
{
    int w;
    assert_int_equal(text_cluster(s, strlen(s), &w), want);
    assert_int_equal(w, want_w);
}

static void test_clusters(void **state)
{
    (void)state;
    int w;
    assert_int_equal(text_cluster("", 0, &w), 0);
    check_cluster("ab", 1, 1);
    check_cluster("e" ACUTE ACUTE "b", 5, 1);
    check_cluster(WIDE ACUTE WIDE, 5, 2);
    check_cluster(FLAG_D FLAG_E FLAG_D, 8, 2);
    check_cluster(FLAG_D ACUTE FLAG_E, 6, 1);
    check_cluster(FLAG_D "a", 4, 1);
    check_cluster(ACUTE "a", 2, 0);
    check_cluster("\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab"
                  "a",
                  9, 2); /* Hangul of three jamo */
    check_cluster("\xff"
                  "a",
                  1, 1);
    check_cluster("\xe6\x97", 1, 1);
}

/* Going right and going left must meet the same borders. */
static void check_borders(const char *s, size_t len)
{
    int w;
    for (size_t at = 0, n = 0; at < len && n < 256; n++) {
        size_t k = text_cluster(s + at, len - at, &w);
        assert_in_range(k, 1, len - at);
        assert_int_equal(text_cluster_before(s, at + k), k);
        at += k;
    }
}

static void test_left_is_right_reversed(void **state)
{
    (void)state;
    static const char *const texts[] = {"abc",
                                        "e" ACUTE "b",
                                        FLAG_D FLAG_E FLAG_D FLAG_E FLAG_D,
                                        "a" FLAG_D ACUTE FLAG_E FLAG_D "b",
                                        WIDE SMILE WIDE ACUTE,
                                        "\xff\xe6\x97"
                                        "a",
                                        "x" FLAG_D FLAG_E ACUTE FLAG_D FLAG_E};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        check_borders(texts[i], strlen(texts[i]));
    assert_int_equal(text_cluster_before("", 0), 0);
}

static void check_fit(const char *s, size_t cells, size_t want, size_t want_used)
{
    size_t used;
    assert_int_equal(text_fit(s, strlen(s), cells, &used), want);
    assert_int_equal(used, want_used);
}

static void test_fit(void **state)
{
    (void)state;
    check_fit("abc", 2, 2, 2);
    check_fit("abc", 9, 3, 3);
    check_fit("abc", 0, 0, 0);
    check_fit("ae" ACUTE "b", 2, 4, 2);
    check_fit("a" WIDE, 2, 1, 1);
    check_fit("a" WIDE, 3, 4, 3);
    check_fit(WIDE, 1, 0, 0);
    check_fit(FLAG_D FLAG_E, 1, 0, 0);
    check_fit("a" ACUTE ACUTE, 1, 5, 1);
}

/* Rows joined by '|'. */
static void check_wrap(const char *s, size_t cells, const char *want, int line)
{
    char got[256];
    size_t at = 0, n = 0, rows = 0, len = strlen(s);
    do {
        size_t next, end = text_wrap(s, len, at, cells, &next);
        if (rows++ > 0)
            got[n++] = '|';
        memcpy(got + n, s + at, end - at);
        n += end - at;
        at = next;
    } while (at < len);
    got[n] = '\0';
    if (strcmp(got, want) != 0)
        fail_msg("line %d: got \"%s\", want \"%s\"", line, got, want);
    assert_int_equal(text_wrap_rows(s, len, cells), rows);
}
#define WRAP(s, cells, want) check_wrap(s, cells, want, __LINE__)

static void test_wrap(void **state)
{
    (void)state;
    WRAP("", 5, "");
    WRAP("abc", 5, "abc");
    WRAP("abc def", 5, "abc|def");
    WRAP("abc def", 3, "abc|def");
    WRAP("abc def ghi", 7, "abc def|ghi");
    WRAP("abcdefgh", 3, "abc|def|gh");
    WRAP("ab cdefgh", 4, "ab|cdef|gh");
    WRAP("    abcdef", 6, "    ab|cdef");
    WRAP("abc ", 3, "abc");
    WRAP("abc  def", 5, "abc |def");
    WRAP(WIDE WIDE WIDE, 3, WIDE "|" WIDE "|" WIDE);
    WRAP(WIDE WIDE, 1, WIDE "|" WIDE);
    WRAP("a" WIDE, 1, "a|" WIDE);
    WRAP("ae" ACUTE "b", 2, "ae" ACUTE "|b");
    WRAP("ab " ACUTE "cd", 4, "ab " ACUTE "c|d"); /* a space with a mark is no break */
    WRAP(FLAG_D FLAG_E FLAG_D FLAG_E, 3, FLAG_D FLAG_E "|" FLAG_D FLAG_E);
}

/* Over the corpus, cleaned: rows fit, nothing but one space is lost between rows,
 * and no row border is inside a cluster. */
static void test_wrap_of_the_corpus(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 2, 7, 80};
    struct hostile_set set;
    hostile_load(&set, NULL);
    for (size_t i = 0; i < set.n; i++) {
        char *s = clean_line_dup(set.v[i].s, 4000);
        size_t len = strlen(s);
        check_borders(s, len);
        for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
            for (size_t at = 0, next; at < len; at = next) {
                int w;
                size_t end = text_wrap(s, len, at, sizes[k], &next);
                assert_true(end > at && next >= end && next - end <= 1);
                size_t first = text_cluster(s + at, len - at, &w);
                if (text_width(s + at, end - at) > sizes[k] && end - at != first)
                    fail_msg("hostile.txt:%u: a row is too wide", set.v[i].line);
            }
        }
        free(s);
    }
    hostile_free(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_code_points),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_clusters),
        cmocka_unit_test(test_left_is_right_reversed),
        cmocka_unit_test(test_fit),
        cmocka_unit_test(test_wrap),
        cmocka_unit_test(test_wrap_of_the_corpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
