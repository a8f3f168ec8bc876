/* What a program leaves switched on in a terminal, and the one key of ours among the bytes. */
#include <cct/app/passage.h>
#include <cct/text/ttymodes.h>

#include <cct/util/thread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void undoes(const char *bytes, const char *want)
{
    for (size_t step = 1; step <= 3; step++) { /* any slicing gives the same */
        struct ttymodes m = {0};
        char undo[TTYMODES_UNDO + 1];
        size_t len = strlen(bytes), n;

        for (size_t at = 0; at < len; at += step)
            ttymodes_feed(&m, bytes + at, len - at < step ? len - at : step);
        n = ttymodes_undo(&m, undo);
        undo[n] = '\0';
        assert_string_equal(undo, want);
    }
}

static void test_modes(void **state)
{
    (void)state;
    undoes("plain text \033[1;31mred\033[0m \033[2J\033[H", "");
    undoes("\033[?1049h", "\033[?1049l");
    undoes("\033[?1049h\033[?1049l", "");
    undoes("\033[?1;2004h", "\033[?2004l\033[?1l");
    undoes("\033[?25l\033[?7l", "\033[?7h\033[?25h");
    undoes("\033[?25l\033[?25h", "");
    undoes("\033[?1002h\033[?1006h\033[?1004h", "\033[?1002l\033[?1006l\033[?1004l");
    undoes("\033[>1u\033[>1u\033[<u", "\033[<u");
    undoes("\033[=1u", "\033[=0u\033[>4m");
    undoes("\033=\033[4h", "\033>\033[4l");
    undoes("\033[5;10r", "\0337\033[r\0338");
    undoes("\033[5;10r\033[r", "");
    undoes("\016\033(0", "\017\033(B");
    undoes("\033[6 q", "\033[0 q");
    undoes("\033[1m", "\033[0m");
    undoes("\033[?1049h\033[?1000h\033c", "");
}

static void test_unfinished_and_strange(void **state)
{
    (void)state;
    undoes("\033]0;title", "\033\\"); /* else what follows would be part of it */
    undoes("\033]0;title\a\033[?25l", "\033[?25h");
    undoes("\033P1$r\033\\\033[?25l", "\033[?25h");
    undoes("\033]0;\033[?25l\a", ""); /* inside a string it is none */
    undoes("\033[?25", "\030");
    undoes("\033[?999999999999999999999h", "");
    undoes("\033[?\033[?25l", "\033[?25h");
    undoes("\033[?11111111111111111111111111111111111111111111111111111111111111111111l", "");
}

static void key_at(const char *bytes, size_t want, size_t want_span)
{
    struct keyhunt h = {0};
    size_t span;

    assert_int_equal(keyhunt_feed(&h, 0x1d, bytes, strlen(bytes), &span), want);
    assert_int_equal(span, want_span);
}

static void test_key(void **state)
{
    struct keyhunt h = {0};
    size_t span;

    (void)state;
    key_at("abc", 3, 0);
    key_at("\035", 0, 1);
    key_at("ab\035c", 2, 1);
    key_at("a\033[93;5u", 1, 7);
    key_at("a\033[93;5:1u", 1, 9);
    key_at("\033[27;5;93~", 0, 10);
    key_at("\033[93;6u", 7, 0);
    key_at("\033[200~a\035b\033[201~\035", 21 - 6, 1);
    assert_int_equal(keyhunt_feed(&h, PASSAGE_NO_KEY, "\035", 1, &span), 1);
    /* marks of a paste cut anywhere */
    assert_int_equal(keyhunt_feed(&h, 0x1d, "\033[20", 4, &span), 4);
    assert_int_equal(keyhunt_feed(&h, 0x1d, "0~\035\033[2", 6, &span), 6);
    assert_int_equal(span, 0);
    assert_int_equal(keyhunt_feed(&h, 0x1d, "01~\035", 4, &span), 3);
    assert_int_equal(span, 1);
}

static void test_key_names(void **state)
{
    char text[8];

    (void)state;
    assert_int_equal(passage_key_parse("^]"), 0x1d);
    assert_int_equal(passage_key_parse("^q"), 0x11);
    assert_int_equal(passage_key_parse("none"), PASSAGE_NO_KEY);
    assert_int_equal(passage_key_parse("^["), PASSAGE_KEY_BAD);
    assert_int_equal(passage_key_parse("^M"), PASSAGE_KEY_BAD);
    assert_int_equal(passage_key_parse("q"), PASSAGE_KEY_BAD);
    assert_int_equal(passage_key_parse(""), PASSAGE_KEY_BAD);
    passage_key_format(0x1d, text);
    assert_string_equal(text, "^]");
    passage_key_format(PASSAGE_NO_KEY, text);
    assert_string_equal(text, "none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_modes),
        cmocka_unit_test(test_unfinished_and_strange),
        cmocka_unit_test(test_key),
        cmocka_unit_test(test_key_names),
    };

    thread_set_role(THREAD_MAIN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
