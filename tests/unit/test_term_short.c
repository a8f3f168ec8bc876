/* Frames in fewer bytes: the terminal shows the same, whatever curses wrote. */
#include "../../ui/term_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vterm.h>

#include <cmocka.h>

enum { H = 12, W = 40, FRAMES = 3000, TOKENS = 30 };

static struct shortener *s;
static struct buf out;
static uint32_t seed;

static int setup(void **state)
{
    (void)state;
    seed = 1;
    s = shortener_new(true, true);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    shortener_free(s);
    buf_release(&out);
    return 0;
}

static const char *frame(const char *text)
{
    buf_clear(&out);
    shortener_begin(s, H, W, false, false);
    shortener_feed(s, text, strlen(text), &out);
    return buf_str(&out);
}

#define FRAME(in, want) assert_string_equal(frame(in), want)

static void test_pen(void **state)
{
    (void)state;
    FRAME("\033(B\033[m", "\033[m"); /* nothing was known */
    FRAME("\033(B\033[m", "");
    FRAME("\033[1;12H\033[32m 9\033[1;27H\033[39m\033(B\033[m10\033[12;4H.\033[12;30Hidle",
          "\033[1;12H\033[32m 9\033[27G\033[m10\033[12;4H.\033[30Gidle");
    FRAME("\033[3;3H\033(B\033[0;1mbold\033(B\033[0;2mdim\033(B\033[m",
          "\033[3;3H\033[1mbold\033[0;2mdim\033[m");
    FRAME("\033[2;2H\033[31ma\033[39mb", "\033[2;2H\033[31ma\033[mb");
    FRAME("\033[1;1H\033[38;2;1;20;255m\033[48;5;17mx\033[39;49m",
          "\033[H\033[38;2;1;20;255;48;5;17mx\033[m");
    FRAME("\033[1;1H\033[1m\033[36mx\033[0;1my\033[m", "\033[H\033[1;36mx\033[39my\033[m");
}

static void test_places(void **state)
{
    (void)state;
    frame("\033[m");
    FRAME("\033[5;1H\033[4;1H\r\033[2dab\033[2;9Hc\033[2;8Hd\033[2;1He", "\033[2Hab\033[9Gc\b\bd\re");
    FRAME("\033[2;3Ha\033[5;4Hb\033[5;39H", "\033[2;3Ha\033[5db\033[39G");
    FRAME("\033[2;30Ha\033[3;1Hb\033[4;20Hc", "\033[2;30Ha\r\nb\n\033[20Gc");
    FRAME("\033[3;7r\033[7;1Ha\033[8;1Hb\033[r", "\033[3;7r\033[7Ha\033[8Hb\033[r");
    /* how wide that is, is not known: curses' own words */
    FRAME("\033[2;3H\u5bbd\033[3C.\033[2;30Hx\033[Cy", "\033[2;3H\u5bbd\033[3C.\033[2;30Hx\033[Cy");
    /* behind the last column it is unknown where a terminal stands */
    FRAME("\033[2;39Hxy\rz", "\033[2;39Hxy\rz");
}

/* What is not understood stays, with all that it needs in front of it. */
static void test_strange(void **state)
{
    (void)state;
    frame("\033[m");
    FRAME("\033[2;2H\033[1m\033[21m\033[4mx\033[my", "\033[2;2H\033[1m\033[21m\033[4mx\033[my");
    FRAME("\033[3;3H\033[41m\033[K", "\033[3;3H\033[41m\033[K");
    FRAME("\033[m\033[?25l\016q\017\033(B\017", "\033[m\033[?25l\016q\017");
    FRAME("\033[4", "\033[4");
}

/* --- anything ------------------------------------------------------------------------------- */

static int dice(int n)
{
    seed = seed * 1664525u + 1013904223u;
    return (int)((seed >> 8) % (uint32_t)n);
}

static void token(struct buf *b)
{
    static const char *const sgr[] = {"", "0", "1", "0;1", "0;2;4", "7", "31", "39", "44", "49", "39;49",
                                      "38;5;200", "48;2;1;2;3", "0;1;97", "22", "24", "27", "3", "21",
                                      "58;5;3", "38;5", "0;10"};
    static const char *const text[] = {"a", "hello", "   ", "caf\u00e9", "\u5bbd\u5b57", "|",
                                       "a line that is as long as the screen wide"};
    static const char *const odd[] = {"\033(B", "\017", "\033[?25l", "\033[?25h", "\n", "\033[3;7r\033[5;1H\n\033[r",
                                      "\033M", "\033[2L", "\033[P", "\033[3;7r\033[4B\033[r", "\t"};
    static const char *const erase[] = {"\033[K", "\033[1K", "\033[5X", "\033[J"};
    switch (dice(9)) {
    case 0:
    case 1:
        buf_addf(b, "\033[%sm", sgr[dice(sizeof(sgr) / sizeof(sgr[0]))]);
        break;
    case 2:
    case 3:
        buf_addf(b, "\033[%d;%dH", 1 + dice(H), 1 + dice(W));
        break;
    case 4:
        buf_addf(b, "\033[%d%c", 1 + dice(W), "GdCDAB"[dice(6)]);
        break;
    case 5:
        buf_adds(b, dice(2) ? "\r" : "\b");
        break;
    case 6:
        buf_adds(b, dice(3) ? erase[dice(4)] : odd[dice(sizeof(odd) / sizeof(odd[0]))]);
        break;
    default:
        buf_adds(b, text[dice(sizeof(text) / sizeof(text[0]))]);
    }
}

static VTermScreen *terminal(VTerm **vt)
{
    VTermScreen *screen;
    *vt = vterm_new(H, W);
    vterm_set_utf8(*vt, 1);
    screen = vterm_obtain_screen(*vt);
    vterm_screen_reset(screen, 1);
    return screen;
}

static bool same_cell(const VTermScreen *a, const VTermScreen *b, int y, int x)
{
    VTermScreenCell p, q;
    memset(&p, 0, sizeof(p));
    memset(&q, 0, sizeof(q));
    vterm_screen_get_cell(a, (VTermPos){y, x}, &p);
    vterm_screen_get_cell(b, (VTermPos){y, x}, &q);
    for (int i = 0; i < VTERM_MAX_CHARS_PER_CELL && (i == 0 || p.chars[i - 1]); i++)
        if (p.chars[i] != q.chars[i])
            return false;
    return p.width == q.width &&
           memcmp(&p.attrs, &q.attrs, sizeof(p.attrs)) == 0 &&
           vterm_color_is_equal(&p.fg, &q.fg) && vterm_color_is_equal(&p.bg, &q.bg);
}

static void test_anything(void **state)
{
    VTerm *long_vt, *short_vt;
    VTermScreen *a = terminal(&long_vt), *b = terminal(&short_vt);
    size_t before = 0, after = 0;
    (void)state;
    for (int i = 0; i < FRAMES; i++) {
        struct buf in = BUF_INIT;
        VTermPos p, q;
        buf_addf(&in, "\033[%d;%dH", 1 + dice(H), 1 + dice(W));
        for (int n = dice(TOKENS); n >= 0; n--)
            token(&in);
        buf_adds(&in, "\033(B\033[m"); /* as curses ends them */
        frame(in.p);
        vterm_input_write(long_vt, in.p, in.len);
        vterm_input_write(short_vt, buf_str(&out), out.len);
        vterm_state_get_cursorpos(vterm_obtain_state(long_vt), &p);
        vterm_state_get_cursorpos(vterm_obtain_state(short_vt), &q);
        bool same = p.row == q.row && p.col == q.col;
        for (int y = 0; same && y < H; y++)
            for (int x = 0; same && x < W; x++)
                same = same_cell(a, b, y, x);
        if (!same) {
            for (size_t k = 0; k < in.len; k++)
                printf(in.p[k] == 0x1B ? "\n# ESC" : "%c", in.p[k]);
            printf("\n# in its stead");
            for (size_t k = 0; k < out.len; k++)
                printf(out.p[k] == 0x1B ? "\n# ESC" : "%c", out.p[k]);
            fail_msg("frame %d is not the same", i);
        }
        before += in.len;
        after += out.len;
        buf_release(&in);
    }
    assert_true(after < before);
    vterm_free(long_vt);
    vterm_free(short_vt);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {T(test_pen), T(test_places), T(test_strange),
                                       T(test_anything)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
