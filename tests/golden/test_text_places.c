/* Text that moves columns and borders elsewhere: wide and joined characters, tabs, CR LF,
 * and changes of the size. Each is shown beside plain text that must stand in the same
 * places, or beside a screen that was opened at that size. */
#include "../lib/screenscript.h"

#include <cct/model/transcribe.h>
#include <cct/text/width.h>
#include <cct/util/buf.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OPENED "\nlink ok cloud\nloaded\n"

static void tool(struct script *s, const char *id, const char *title, const char *output)
{
    struct agent_event e = {.kind = AGENT_TOOL, .name = (char *)"Bash", .title = (char *)title,
                            .output = (char *)output, .id = (char *)id,
                            .state = AGENT_TOOL_OK, .exit_code = 0, .offset = ++s->offset};
    struct ev_items *ev = ev_new(EV_ITEMS);

    ev->sandbox = 1;
    transcribe(&e, "claude", ev);
    script_post(s, ev);
}

static void says(struct script *s, const char *id, const char *text)
{
    struct agent_event e = {.kind = AGENT_TEXT, .id = (char *)id, .text = (char *)text,
                            .final = true, .mode = AGENT_REPLACE, .offset = ++s->offset};
    struct ev_items *ev = ev_new(EV_ITEMS);

    ev->sandbox = 1;
    transcribe(&e, "claude", ev);
    script_post(s, ev);
}

/* A screen of that size with this text in every place of the transcript. */
static char *shown(int h, int w, const char *text)
{
    struct script s;
    char *size = xasprintf("size %d %d" OPENED "row 1 box claude running idle\nkeys 2", h, w);
    char *all;

    script_init(&s);
    script_run(&s, size);
    says(&s, "b1", text);
    tool(&s, "t1", "sh", text);
    says(&s, "b2", "the end");
    script_line(&s, "keys z R G", "test");
    script_draw(&s);
    all = script_screen(&s);
    script_release(&s);
    free(size);
    return all;
}

static char *repeated(const char *text, size_t n, const char *end)
{
    struct buf b = BUF_INIT;

    for (size_t i = 0; i < n; i++)
        buf_adds(&b, text);
    buf_adds(&b, end);
    return buf_detach(&b, NULL);
}

static const int sizes[][2] = {{24, 80}, {40, 120}, {60, 200}, {24, 61}};

static void same(const char *a, const char *b)
{
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char *one = shown(sizes[i][0], sizes[i][1], a);
        char *two = shown(sizes[i][0], sizes[i][1], b);

        assert_null(strchr(one, '\r'));
        assert_null(strchr(one, '\t'));
        assert_string_equal(one, two);
        free(one);
        free(two);
    }
}

/* Lines that end in CR LF, longer than any pane, are lines that end in LF. */
static void test_cr_lf(void **state)
{
    char *crlf = repeated("a line of words ", 20, "\r\nnext\r\n\r\nlast\r\n");
    char *lf = repeated("a line of words ", 20, "\nnext\n\nlast\n");

    (void)state;
    same(crlf, lf);
    free(crlf);
    free(lf);
}

/* The same in the dialog in which a question of the agent stands. */
static void test_cr_lf_in_a_dialog(void **state)
{
    static const char *const ends[] = {"\r\n", "\n"};
    char *got[2];

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct script s;
        struct agent_event e = {.kind = AGENT_ASK, .id = (char *)"q", .name = (char *)"Bash",
                                .input = (char *)"{}"};
        struct ev_items *ev = ev_new(EV_ITEMS);
        char *text = repeated("rm some files ", 12, ends[i]);
        char *long_line;

        script_init(&s);
        script_run(&s, "size 24 80" OPENED "row 1 box claude running asks\n"
                       "asks 1 q Run this? // echo one\\necho two | yes | no\nkeys 2");
        e.title = text;
        ev->sandbox = 1;
        transcribe(&e, "claude", ev);
        script_post(&s, ev);
        script_line(&s, "keys a", "test");
        long_line = script_screen(&s);
        assert_null(strchr(long_line, '\r'));
        got[i] = long_line;
        free(text);
        script_release(&s);
    }
    assert_string_equal(got[0], got[1]);
    free(got[0]);
    free(got[1]);
}

/* A tab ends at the next eighth column of its text, wherever the pane begins; at the last
 * column of the pane, too. */
static void test_tabs(void **state)
{
    (void)state;
    same("a\tb\n1234567\tb\n12345678\tb\n\t\tb", "a       b\n1234567 b\n12345678        b\n"
                                                "                b");
    same("\xe6\x97\xa5\tb", "\xe6\x97\xa5      b");
    for (size_t n = 40; n < 130; n++) {
        char *tab = repeated("x", n, "\tb"), *dots = repeated("x", n, "");
        char *blanks = xasprintf("%s%*sb", dots, (int)(8 - n % 8), "");
        char *one = shown(40, 120, tab), *two = shown(40, 120, blanks);

        assert_string_equal(one, two);
        free(one);
        free(two);
        free(blanks);
        free(dots);
        free(tab);
    }
}

/* Characters of two cells, joined, flagged, combining: what stands behind them stands in the
 * same column in every row, and no row is wider than the screen. */
static void test_columns(void **state)
{
    static const char *const names[] = {
        "plain",
        "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e",                             /* CJK */
        "\xe2\x9d\xa4\xef\xb8\x8fok",                                       /* with VS16 */
        "\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7", /* joined */
        "\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa",                                 /* a flag */
        "e\xcc\x81\xcc\x82o\xcc\x88",                                       /* combining */
        "1\xef\xb8\x8f\xe2\x83\xa3",                                        /* a keycap */
        "\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5"
        "\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5"};
    enum { N = sizeof(names) / sizeof(names[0]) };

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct script s;
        struct buf b = BUF_INIT;
        char *all;
        size_t first = 0, rows = 0;

        buf_addf(&b, "size %d %d" OPENED, sizes[i][0], sizes[i][1]);
        for (size_t n = 0; n < N; n++)
            buf_addf(&b, "row %zu %s claude running idle last=%s %s\n", n + 1, names[n], names[n],
                     names[n]);
        script_init(&s);
        script_run(&s, buf_str(&b));
        script_draw(&s);
        all = script_screen(&s);
        for (const char *at = all; (at = strstr(at, " running  idle")) != NULL; at++) {
            const char *line = at;
            size_t col;

            while (line > all && line[-1] != '\n')
                line--;
            col = text_width(line, (size_t)(at - line));
            if (!first)
                first = col;
            assert_int_equal(col, first);
            rows++;
        }
        assert_int_equal(rows, N);
        for (const char *line = all, *end; (end = strchr(line, '\n')) != NULL; line = end + 1)
            assert_true(text_width(line, (size_t)(end - line)) <= (size_t)sizes[i][1]);
        free(all);
        script_release(&s);
        buf_release(&b);
    }
}

/* After changes of the width the text is that of a screen opened so. */
static void test_width_changes(void **state)
{
    static const int widths[] = {120, 79, 41, 120, 61, 80, 200, 42, 79};
    char *text = repeated("\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e"
                          "a\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9",
                          60, "\nend");
    struct script s;

    (void)state;
    script_init(&s);
    script_run(&s, "size 40 120" OPENED "row 1 box claude running idle\nkeys 2");
    says(&s, "b1", text);
    tool(&s, "t1", "sh", text);
    says(&s, "b2", "the end");
    script_line(&s, "keys z R G", "test");
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        char *size = xasprintf("size 40 %d", widths[i]), *now, *fresh;

        script_line(&s, size, "test");
        script_draw(&s);
        now = script_screen(&s);
        fresh = shown(40, widths[i], text);
        assert_string_equal(now, fresh);
        free(now);
        free(fresh);
        free(size);
    }
    script_release(&s);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cr_lf),   cmocka_unit_test(test_cr_lf_in_a_dialog),
        cmocka_unit_test(test_tabs),    cmocka_unit_test(test_columns),
        cmocka_unit_test(test_width_changes),
    };

    
    return cmocka_run_group_tests_name("text_places", tests, NULL, NULL);
}
