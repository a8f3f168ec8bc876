/* Themes: every role is there and can be read, how many colours are used, 24-bit colours by
 * 256 numbers. */
#include <cct/text/clean.h>
#include <cct/ui/term.h>
#include <cct/util/fs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void load(struct theme *t, const char *name)
{
    struct err e = {0};
    if (theme_load(t, name, NULL, &e))
        fail_msg("%s", e.text);
}

static void test_complete(void **state)
{
    (void)state;
    size_t n = 0;
    for (; theme_shipped(n); n++) {
        char path[80], line[64];
        size_t len;
        snprintf(path, sizeof(path), "themes/%s.theme", theme_shipped(n));
        char *text = fs_read(path, 1 << 16, false, &len, NULL);
        assert_non_null(text);
        for (int r = 0; r < ROLE_COUNT; r++) {
            snprintf(line, sizeof(line), "\n%s = ", theme_role_name((enum theme_role)r));
            if (!strstr(text, line))
                fail_msg("%s has no role %s", path, theme_role_name((enum theme_role)r));
        }
        free(text);
    }
    assert_true(n >= 8);
}

static bool known(uint32_t c)
{
    return c != TEXT_COLOR_DEFAULT && (c & TEXT_COLOR_RGB || c >= 16);
}

/* On its own ground, and there in 256 colours too; on white where a theme is made for it. */
static void readable(const struct theme *t, double least)
{
    bool light = strcmp(t->name, "light") == 0;
    for (int r = 0; r < ROLE_COUNT; r++) {
        const struct theme_style *st = &t->roles[r];
        uint32_t bg = light && st->bg == TEXT_COLOR_DEFAULT ? TEXT_COLOR_RGB | 0xFFFFFF : st->bg;
        if (!known(st->fg) || !known(bg))
            continue;
        double c = theme_contrast(theme_rgb(st->fg), theme_rgb(bg));
        double c256 = theme_contrast(theme_rgb((uint32_t)theme_to_256(theme_rgb(st->fg))),
                                     theme_rgb((uint32_t)theme_to_256(theme_rgb(bg))));
        if (c < least || c256 < least - 0.5)
            fail_msg("%s: %s has a contrast of %.2f, in 256 colours %.2f", t->name,
                     theme_role_name((enum theme_role)r), c, c256);
    }
}

static void test_contrast(void **state)
{
    (void)state;
    assert_true(theme_contrast(0x000000, 0xFFFFFF) > 20.9);
    assert_true(theme_contrast(0x777777, 0x777777) < 1.01);
    assert_true(theme_contrast(0x767676, 0xFFFFFF) > 4.5 &&
                theme_contrast(0x777777, 0xFFFFFF) < 4.5);
    for (size_t i = 0; theme_shipped(i); i++) {
        struct theme t;
        load(&t, theme_shipped(i));
        readable(&t, strncmp(t.name, "contrast", 8) == 0 ? 4.5 : 3.0);
    }
}

/* A ground of one's own is everywhere, but where a role has another. */
static void test_ground(void **state)
{
    (void)state;
    struct theme t;
    load(&t, "dusk");
    uint32_t bg = t.roles[ROLE_TEXT].bg;
    assert_true(bg & TEXT_COLOR_RGB);
    assert_int_equal(t.roles[ROLE_ERROR].bg, bg);
    assert_true(t.roles[ROLE_MATCH].bg != bg);
}

static void test_level(void **state)
{
    (void)state;
    static const struct {
        struct theme_wish w;
        int colors;
        bool rgb;
        enum theme_color want;
    } cases[] = {
        {{0}, 256, false, THEME_256},
        {{0}, 256, true, THEME_RGB},
        {{.truecolor = true}, 8, true, THEME_16},
        {{0}, 0, true, THEME_MONO},
        {{.no_color = "1"}, 256, false, THEME_MONO},
        {{.no_color = ""}, 256, false, THEME_256},
        {{.no_color_flag = true}, 256, true, THEME_MONO},
        {{.word = "auto", .no_color_flag = true}, 16, false, THEME_MONO},
        {{.word = "256", .no_color_flag = true, .no_color = "1"}, 256, true, THEME_256},
        {{.word = "rgb"}, 256, false, THEME_RGB},
        {{.word = "rgb"}, 8, false, THEME_16},
        {{.word = "16"}, 256, true, THEME_16},
        {{.word = "never"}, 256, true, THEME_MONO},
        {{.word = "rgb"}, 0, true, THEME_MONO},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (theme_color_level(&cases[i].w, cases[i].colors, cases[i].rgb) != cases[i].want)
            fail_msg("case %zu", i);
}

static void spells(const struct color_slots *s, const char *text, const char *want)
{
    struct buf b = BUF_INIT;
    color_slots_spell(s, text, strlen(text), &b);
    assert_string_equal(buf_str(&b), want);
    buf_release(&b);
}

static void test_slots(void **state)
{
    (void)state;
    struct color_slots *s = color_slots_new();
    char text[100];
    int grey = color_slot(s, 244), blue = color_slot(s, TEXT_COLOR_RGB | 0x0102FF);
    assert_int_equal(grey, 244);
    assert_int_equal(color_slot(s, TEXT_COLOR_RGB | 0x0102FF), blue);
    assert_true(blue >= 16 && blue < 256 && blue != grey);
    snprintf(text, sizeof(text), "a\033[1;38;5;%d;48;5;%dmb\033[38;5;9m\033[Hc", blue, grey);
    spells(s, text, "a\033[1;38;2;1;2;255;48;5;244mb\033[38;5;9m\033[Hc");
    spells(s, "\033[39m\033[49m\033[3", "\033[39m\033[49m\033[3");
    spells(s, "\033(B\033[m38;5;20m", "\033(B\033[m38;5;20m"); /* text is none of ours */
    spells(s, "\033", "\033");
    /* every number taken: what comes then gets none, what was there keeps its own */
    for (uint32_t i = 0; i < 400; i++)
        color_slot(s, TEXT_COLOR_RGB | (i * 77777 & 0xFFFFFF));
    assert_int_equal(color_slot(s, TEXT_COLOR_RGB | 0x0102FF), blue);
    assert_int_equal(color_slot(s, TEXT_COLOR_RGB | 0xABCDEF), -1);
    color_slots_free(s);
}

static int answered(const char *bytes)
{
    struct key_decoder *d = key_decoder_new(25);
    const char *paste;
    size_t len;
    key_decoder_feed(d, bytes, strlen(bytes), 1);
    assert_int_equal(key_decoder_next(d, 1, &paste, &len), 0); /* it is no key */
    int bg = key_decoder_background(d);
    key_decoder_free(d);
    return bg;
}

static void test_background(void **state)
{
    (void)state;
    assert_int_equal(answered("\033]11;rgb:ffff/ffff/ffff\033\\"), 1);
    assert_int_equal(answered("\033]11;rgb:fafa/f0f0/e6e6\007"), 1);
    assert_int_equal(answered("\033]11;rgb:00/2b/36\007"), 0);
    assert_int_equal(answered("\033]11;rgb:f/f/e\033\\"), 1);
    assert_int_equal(answered("\033]11;rgb:0000/0000/0000\033\\"), 0);
    assert_int_equal(answered("\033]11;rgba:x\033\\"), -1);
    assert_int_equal(answered("\033]10;rgb:ffff/ffff/ffff\033\\"), -1);
    assert_int_equal(answered("\033]11;rgb:ffff/ffff\033\\"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_complete), cmocka_unit_test(test_contrast),
        cmocka_unit_test(test_ground),   cmocka_unit_test(test_level),
        cmocka_unit_test(test_slots),    cmocka_unit_test(test_background),
    };
    return cmocka_run_group_tests_name("theme", tests, NULL, NULL);
}
