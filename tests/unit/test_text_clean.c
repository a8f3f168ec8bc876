/* The cleaner: its rules one by one, then purity and slicing over the corpus. */
#include "../lib/hostile.h"
#include "../lib/sliced.h"

#include <cct/text/clean.h>
#include <cct/text/width.h>
#include <cct/util/limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CLEANS(in, want) check_text(in, sizeof(in) - 1, want, __LINE__)
#define LINES(in, cells, want) check_line(in, sizeof(in) - 1, cells, want, __LINE__)
#define RUNS(in, want) check_runs(in, sizeof(in) - 1, want, __LINE__)

static void check_text(const char *in, size_t len, const char *want, int line)
{
    char *got = clean_text_dup(in, len);
    if (strcmp(got, want) != 0)
        fail_msg("line %d: got \"%s\", want \"%s\"", line, got, want);
    free(got);
}

static void check_line(const char *in, size_t len, unsigned cells, const char *want, int line)
{
    struct buf b = BUF_INIT;
    clean_line(in, len, &b, cells);
    if (strcmp(buf_str(&b), want) != 0)
        fail_msg("line %d: got \"%s\", want \"%s\"", line, buf_str(&b), want);
    buf_release(&b);
}

static void check_runs(const char *in, size_t len, const char *want, int line)
{
    struct buf b = BUF_INIT, got = BUF_INIT;
    struct text_runs r = {NULL, 0, 0};
    clean_text(in, len, &b, &r);
    for (size_t i = 0; i < r.n; i++)
        buf_addf(&got, "%s%u:%x/%x/%x", i ? " " : "", r.v[i].at, r.v[i].attr.fg, r.v[i].attr.bg,
                 r.v[i].attr.flags);
    if (strcmp(buf_str(&got), want) != 0)
        fail_msg("line %d: got \"%s\", want \"%s\"", line, buf_str(&got), want);
    buf_release(&b);
    buf_release(&got);
    text_runs_release(&r);
}

static void test_sequences_vanish(void **state)
{
    (void)state;
    CLEANS("", "");
    CLEANS("plain", "plain");
    CLEANS("a\nb\n", "a\nb\n");
    CLEANS("\n\n", "\n\n");
    CLEANS("a\033[2Jb\033]0;t\ac\033]0;t\033\\d", "abcd");
    CLEANS("a\x9b"
           "31mb\x9d"
           "0;t\x9c"
           "c\xc2\x9b"
           "31md",
           "abcd");
    CLEANS("a\033Ptmux;\033\033]52;c;x\a\033\\b", "ab");
    CLEANS("a\033(0b\033#8c\033cd\033\\e", "abcde");
    CLEANS("a\033]0;\xe2\x9c\x9c t\ab", "ab");
    CLEANS("a\033[31\nb\033]0;x\r\nc", "a\nb\nc");
    CLEANS("a\033[3\030b\033]0;\032c", "abc");
    CLEANS("a\033[31\xc3\xa9"
           "b",
           "a\xc3\xa9"
           "b");
    CLEANS("a\0b\x7f"
           "c\a\v\f\016\017d",
           "abcd");
}

static void test_unterminated_ends(void **state)
{
    (void)state;
    struct buf in = BUF_INIT;
    buf_adds(&in, "A\033]0;");
    for (int i = 0; i < 5000; i++)
        buf_addc(&in, i < 4000 ? 'x' : 'y');
    char *got = clean_text_dup(in.p, in.len);
    assert_int_equal(got[0], 'A');
    assert_null(strchr(got, 'x'));
    assert_in_range(strlen(got), 1 + 5000 - 4096, 1 + 5000 - 4090);
    free(got);
    buf_release(&in);
}

static void test_overwrite(void **state)
{
    (void)state;
    CLEANS("10%\r20%\r100%\n", "100%\n");
    CLEANS("100%\r5%", "5%0%");
    CLEANS("100%\r\033[K5%", "5%");
    CLEANS("100%\033[2K\r5%", "5%");
    CLEANS("100%\033[1G\033[0K5%", "5%");
    CLEANS("abc\r\nd\r\r\ne", "abc\nd\ne");
    CLEANS("abc\r", "abc");
    /* a wide character overwritten by half leaves a space */
    CLEANS("\xe6\x97\xa5\xe6\x9c\xac\rA", "A \xe6\x9c\xac");
    CLEANS("\xe6\x97\xa5\xe6\x9c\xac\rABC", "ABC ");
    CLEANS("ABC\r\xe6\x97\xa5", "\xe6\x97\xa5"
                                "C");
    CLEANS("e\xcc\x81x\ry", "yx");
    CLEANS("a\bb", "b");
    CLEANS("_\ba_\bb", "ab");
    CLEANS("\b\bab", "ab");
    CLEANS("\xe6\x97\xa5\bx", " x");
    CLEANS("\xe6\x97\xa5\b\bx", "x ");
    CLEANS("\xe6\x97\xa5\b", "\xe6\x97\xa5");
    CLEANS("e\xcc\x81\bx", "x");
    CLEANS("a\xcc\x81\xcc\x82\b", "a\xcc\x81\xcc\x82");
    CLEANS("ab\b\b\b\bcd", "cd");
}

static void test_tabs(void **state)
{
    (void)state;
    CLEANS("a\tb", "a       b");
    CLEANS("12345678\tb", "12345678        b");
    CLEANS("\xe6\x97\xa5\tb", "\xe6\x97\xa5      b");
    CLEANS("a\n\tb", "a\n        b");
    CLEANS("12345678abc\r\tX", "12345678Xbc");
    CLEANS("123\r\tX", "123     X");
}

static void test_unicode(void **state)
{
    (void)state;
    CLEANS("a\xe2\x80\xae"
           "b",
           "a<U+202E>b");
    CLEANS("a\xe2\x80\x8b"
           "b\xef\xbb\xbf"
           "c\xe2\x80\xa8"
           "d",
           "a<U+200B>b<U+FEFF>c<U+2028>d");
    CLEANS("a\xf3\xa0\x80\x81"
           "b\xc2\xad"
           "c",
           "a<U+E0001>b<U+00AD>c");
    CLEANS("a\xe2\x80\x8d"
           "b\xef\xb8\x8f"
           "c\xef\xbf\xb9"
           "d",
           "abcd");
    CLEANS("a\xef\xbf\xbe"
           "b\xee\x80\x80"
           "c\xcd\xb8"
           "d",
           "a\xef\xbf\xbd"
           "b\xef\xbf\xbd"
           "c\xef\xbf\xbd"
           "d");
    /* one mark for each malformed character */
    CLEANS("a\xff"
           "b\xc0\x9b"
           "c\xed\xa0\xbd"
           "d\xf8\x88\x80\x80\x80"
           "e",
           "a\xef\xbf\xbd"
           "b\xef\xbf\xbd"
           "c\xef\xbf\xbd"
           "d\xef\xbf\xbd"
           "e");
    CLEANS("a\xe2\x82"
           "b\xf0\x9f\x98",
           "a\xef\xbf\xbd"
           "b\xef\xbf\xbd");
    CLEANS("a\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81"
           "b",
           "a\xcc\x81\xcc\x81\xcc\x81\xcc\x81"
           "b");
    CLEANS("\xcc\x81"
           "a",
           "\xe2\x97\x8c\xcc\x81"
           "a");
}

static void test_colours(void **state)
{
    (void)state;
    RUNS("plain", "");
    RUNS("a\033[31mb\033[0mc", "1:1/ffffffff/0 2:ffffffff/ffffffff/0");
    RUNS("\033[1;4;38;5;196mx", "0:c4/ffffffff/9");
    RUNS("\033[38;2;1;2;3;48:2::4:5:6mx", "0:1010203/1040506/0");
    RUNS("\033[38:2:1:2:3mx", "0:1010203/ffffffff/0");
    RUNS("\033[38:5:7;1mx", "0:7/ffffffff/1");
    RUNS("\033[58;5;9;31mx\033[58:2::1:2:3;32my", "0:1/ffffffff/0 1:2/ffffffff/0");
    RUNS("\033[4:3mx\033[4:0my", "0:ffffffff/ffffffff/8 1:ffffffff/ffffffff/0");
    RUNS("\033[91;102mx\033[39;49my", "0:9/a/0 1:ffffffff/ffffffff/0");
    RUNS("\033[38;5;256;1mx", "0:ffffffff/ffffffff/1");
    RUNS("\033[>4;2mx\033[?4my\033[4 mz", "");
    RUNS("\033[31;99999999999999999999mx\033[;my", "0:1/ffffffff/0 1:ffffffff/ffffffff/0");
    RUNS("\033[3\n\033[31mx", "1:1/ffffffff/0");
    /* a colour lasts over the line's end */
    RUNS("\033[31ma\nb\033[m\nc", "0:1/ffffffff/0 4:ffffffff/ffffffff/0");
    /* and stays with the cells it was written with */
    RUNS("\033[31mabc\033[32mdef\r\033[34mxy", "0:4/ffffffff/0 2:1/ffffffff/0 3:2/ffffffff/0");
    RUNS("\033[31ma\033[32mb\b\033[34mc", "0:1/ffffffff/0 1:4/ffffffff/0");
    RUNS("\033[31m\xe6\x97\xa5\xe6\x9c\xac\rab\033[mc",
         "0:1/ffffffff/0 2:ffffffff/ffffffff/0 3:1/ffffffff/0");
    RUNS("\033[31mab\033[mcd\r\t", "0:1/ffffffff/0 2:ffffffff/ffffffff/0");
}

static void test_one_line(void **state)
{
    (void)state;
    LINES("a\nb\tc\r\nd\re", 0, "a b c d e");
    LINES("a\n\r\n", 0, "a");
    LINES("a\b\bb", 0, "ab");
    LINES("\033[31mred\033[0m", 0, "red");
    LINES("abcdef", 6, "abcdef");
    LINES("abcdefg", 6, "abc...");
    LINES("abcdefg", 2, "..");
    LINES("\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e", 5, "\xe6\x97\xa5...");
    LINES("\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e", 6, "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e");
    char *s = clean_line_dup(NULL, 10);
    assert_string_equal(s, "");
    free(s);
}

static void test_ascii(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    clean_ascii("i\xd0\xb0\x1b\xff\xe2\x82 ~\xe2\x82", 11, &b);
    assert_string_equal(buf_str(&b), "i<U+0430><U+001B><FF><E2><82> ~<E2><82>");
    buf_release(&b);
}

static void count_line(void *ctx, const char *text, size_t len, const struct text_run *runs,
                       size_t n_runs)
{
    size_t *n = ctx;
    (void)runs, (void)n_runs;
    n[0]++;
    n[1] = len;
    n[2] = len >= 6 && memcmp(text + len - 6, " [cut]", 6) == 0;
}

static void test_long_line_is_cut(void **state)
{
    (void)state;
    enum { MB = 1 << 20 };
    char *mb = malloc(MB);
    assert_non_null(mb);
    memset(mb, 'x', MB);
    size_t seen[3] = {0, 0, 0};
    struct clean *c = clean_new();
    for (int i = 0; i < 20; i++)
        clean_feed(c, mb, MB, count_line, seen);
    clean_feed(c, "\nshort\n", 7, count_line, seen);
    assert_int_equal(seen[0], 2);
    assert_int_equal(seen[1], 5);
    for (int i = 0; i < 9; i++)
        clean_feed(c, mb, MB, count_line, seen);
    clean_flush(c, count_line, seen);
    assert_int_equal(seen[0], 3);
    assert_int_equal(seen[1], LIM_LINE_BYTES);
    assert_int_equal(seen[2], 1);
    clean_free(c);
    free(mb);
}

/* At the limits of a line, with a cursor inside it: slicing must not matter there
 * either, and the attributes stay within their number. */
static void test_limits_while_overwriting(void **state)
{
    (void)state;
    static const size_t steps[] = {1, 4096};
    struct buf in = BUF_INIT, text = BUF_INIT, runs = BUF_INIT;
    for (int i = 0; i < 70000; i++)
        buf_adds(&in, i % 2 ? "\033[31mx" : "\033[32my");
    while (in.len < LIM_LINE_BYTES + 420000)
        buf_adds(&in, "0123456789abcdef");
    buf_adds(&in, "\033[34m\b\b\b\r");
    for (int i = 0; i < 3000; i++)
        buf_adds(&in, "ab\xe6\x97\xa5\033[35me\xcc\x81\033[36m\b");
    buf_adds(&in, "\nnext");
    /* the same again, a little below the limit, so that overwriting meets it */
    for (size_t n = 0; n < LIM_LINE_BYTES - 20; n += 16)
        buf_add(&in, "0123456789abcdef", n + 16 < LIM_LINE_BYTES - 20 ? 16 : 9);
    buf_adds(&in, "\rab\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5"
                  "xyz\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5"
                  "GHIJKL\n");
    sliced_clean(in.p, in.len, 0, &text, &runs);
    assert_in_range(text.len, LIM_LINE_BYTES, 2 * LIM_LINE_BYTES + 2);
    for (size_t k = 0; k < sizeof(steps) / sizeof(*steps); k++) {
        struct buf t = BUF_INIT, r = BUF_INIT;
        sliced_clean(in.p, in.len, steps[k], &t, &r);
        assert_true(t.len == text.len && memcmp(t.p, text.p, t.len) == 0);
        assert_true(r.len == runs.len && memcmp(r.p, runs.p, r.len) == 0);
        buf_release(&t);
        buf_release(&r);
    }
    size_t n = 0;
    for (size_t i = 0; i < runs.len; i++)
        n += runs.p[i] == '\n';
    assert_in_range(n, 60000, 70000);
    buf_release(&in);
    buf_release(&text);
    buf_release(&runs);
}

static void judge(const struct hostile_item *it, const char *what, const struct buf *b, bool lf)
{
    size_t at = 0;
    const char *why = hostile_impure(b->p ? b->p : "", b->len, lf, &at);
    if (why)
        fail_msg("hostile.txt:%u (%s), %s: %s at %zu", it->line, it->comment, what, why, at);
    if (it->survives && (b->len < 4 || !strstr(b->p, "AB") || !strstr(b->p, "YZ")))
        fail_msg("hostile.txt:%u (%s), %s: text lost: \"%.200s\"", it->line, it->comment, what,
                 b->p ? b->p : "");
}

static void test_corpus_is_pure(void **state)
{
    (void)state;
    struct hostile_set set;
    hostile_load(&set, NULL);
    assert_true(set.n >= 300);
    for (size_t i = 0; i < set.n; i++) {
        const struct hostile_item *it = &set.v[i];
        struct buf text = BUF_INIT, line = BUF_INIT, cut = BUF_INIT, ascii = BUF_INIT;
        size_t at;
        clean_text(it->s, it->len, &text, NULL);
        judge(it, "text", &text, true);
        clean_line(it->s, it->len, &line, 0);
        judge(it, "line", &line, false);
        clean_line(it->s, it->len, &cut, 20);
        assert_null(hostile_impure(buf_str(&cut), cut.len, false, &at));
        assert_true(text_width(cut.p, cut.len) <= 20);
        clean_ascii(it->s, it->len, &ascii);
        for (size_t k = 0; k < ascii.len; k++)
            assert_in_range(ascii.p[k], ' ', '~');
        buf_release(&text);
        buf_release(&line);
        buf_release(&cut);
        buf_release(&ascii);
    }
    hostile_free(&set);
}

static void test_any_slicing_is_the_same(void **state)
{
    (void)state;
    static const size_t steps[] = {1, 2, 3, 7, 64};
    struct hostile_set set;
    hostile_load(&set, NULL);
    for (size_t i = 0; i < set.n; i++) {
        const struct hostile_item *it = &set.v[i];
        struct buf text = BUF_INIT, runs = BUF_INIT;
        sliced_clean(it->s, it->len, 0, &text, &runs);
        for (size_t k = 0; k < sizeof(steps) / sizeof(*steps); k++) {
            struct buf t = BUF_INIT, r = BUF_INIT;
            sliced_clean(it->s, it->len, steps[k], &t, &r);
            if (strcmp(buf_str(&t), buf_str(&text)) || strcmp(buf_str(&r), buf_str(&runs)))
                fail_msg("hostile.txt:%u (%s): pieces of %zu give another result", it->line,
                         it->comment, steps[k]);
            buf_release(&t);
            buf_release(&r);
        }
        buf_release(&text);
        buf_release(&runs);
    }
    hostile_free(&set);
}

static void add_streamed(void *ctx, const char *text, size_t len, const struct text_run *runs,
                         size_t n)
{
    struct buf *b = ctx;

    (void)runs, (void)n;
    buf_add(b, text, len);
    buf_addc(b, '\n');
}

/* Plain texts go past the cleaner: with any byte in them they come out as from the cleaner. */
static void test_plain_is_the_same(void **state)
{
    (void)state;
    for (int c = 1; c < 256; c++)
        for (size_t at = 0; at < 6; at++) {
            char text[] = "ab~ cd", line[8];
            struct buf want = BUF_INIT, got = BUF_INIT;
            struct clean *k = clean_new();

            text[at] = (char)c;
            clean_feed(k, text, 6, add_streamed, &want);
            if (text[5] != '\n')
                clean_flush(k, add_streamed, &want);
            clean_free(k);
            clean_text(text, 6, &got, NULL);
            if (text[5] != '\n' && (got.len || want.len)) /* nothing is no line */
                buf_addc(&got, '\n');
            assert_string_equal(buf_str(&got), buf_str(&want));
            buf_release(&want);
            buf_release(&got);
            if (c >= ' ' && c <= '~') { /* cut where it does not fit, and only there */
                check_line(text, 6, 6, text, __LINE__);
                snprintf(line, sizeof(line), "%.2s...", text);
                check_line(text, 6, 5, line, __LINE__);
            }
        }
    struct buf small = BUF_INIT_MAX(10);
    clean_text("four\nfive\nsix", 13, &small, NULL);
    assert_true(small.over && small.len <= 10 && strncmp(buf_str(&small), "four", 4) == 0);
    buf_release(&small);
}

static void test_lines(void **state)
{
    static const char text[] = "one\n\033[31mtwo\033[2J\n\nlast";
    size_t n;
    char **v = clean_lines(text, sizeof(text) - 1, &n);
    (void)state;
    assert_int_equal(n, 4);
    assert_string_equal(v[0], "one");
    assert_string_equal(v[1], "two");
    assert_string_equal(v[2], "");
    assert_string_equal(v[3], "last");
    assert_null(v[4]);
    for (size_t i = 0; i < n; i++)
        free(v[i]);
    free(v);
    v = clean_lines("", 0, &n);
    assert_int_equal(n, 0);
    free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_sequences_vanish),
        cmocka_unit_test(test_unterminated_ends),
        cmocka_unit_test(test_overwrite),
        cmocka_unit_test(test_tabs),
        cmocka_unit_test(test_unicode),
        cmocka_unit_test(test_colours),
        cmocka_unit_test(test_one_line),
        cmocka_unit_test(test_ascii),
        cmocka_unit_test(test_long_line_is_cut),
        cmocka_unit_test(test_limits_while_overwriting),
        cmocka_unit_test(test_corpus_is_pure),
        cmocka_unit_test(test_any_slicing_is_the_same),
        cmocka_unit_test(test_plain_is_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
