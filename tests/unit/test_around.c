/* What lies around the screen, and the sequences through it. */
#include <cct/ui/around.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const *vars; /* name, value, ..., NULL */

static char *env(const char *name)
{
    for (size_t i = 0; vars && vars[i]; i += 2)
        if (strcmp(vars[i], name) == 0)
            return (char *)(uintptr_t)vars[i + 1];
    return NULL;
}

static struct around with(const char *const *v)
{
    struct around a;
    vars = v;
    around_read(&a, env);
    return a;
}
#define WITH(...) with((const char *const[]){__VA_ARGS__, NULL})

static void test_hints(void **state)
{
    (void)state;
    struct around a = WITH("TERM", "xterm-256color");
    assert_false(a.tmux || a.screen || a.mosh || a.plain || a.truecolor);
    assert_int_equal(a.note, OSC_NOTE_NONE);
    assert_true(a.title);
    assert_int_equal(a.background, -1);
    a = WITH("TERM", "xterm-kitty", "COLORTERM", "truecolor", "COLORFGBG", "0;default;15");
    assert_int_equal(a.note, OSC_NOTE_99);
    assert_true(a.truecolor);
    assert_int_equal(a.background, 1);
    a = WITH("TERM", "xterm-256color", "VTE_VERSION", "7200", "COLORFGBG", "15;0");
    assert_int_equal(a.note, OSC_NOTE_777);
    assert_int_equal(a.background, 0);
    a = WITH("TERM", "tmux-256color", "TMUX", "/tmp/x,1,0", "STY", "1.x", "WT_SESSION", "g");
    assert_true(a.tmux && !a.screen && a.title);
    assert_int_equal(a.note, OSC_NOTE_9);
    a = WITH("TERM", "screen", "STY", "1.x", "MOSH_CONNECTION", "a");
    assert_true(a.screen && a.mosh);
    a = WITH("TERM", "linux", "KITTY_WINDOW_ID", "1");
    assert_true(a.plain && !a.title && a.note == OSC_NOTE_NONE);
    assert_int_equal(around_note(&a, "777"), OSC_NOTE_777);
    a = WITH("TERM", "xterm-kitty");
    assert_int_equal(around_note(&a, "auto"), OSC_NOTE_99);
    assert_int_equal(around_note(&a, "none"), OSC_NOTE_NONE);
    a = WITH("COLORFGBG", "x");
    assert_int_equal(a.background, -1);
}

static void passes(const struct around *a, const char *seq, const char *want)
{
    struct buf b = BUF_INIT;
    around_pass(a, &b, seq, strlen(seq));
    assert_string_equal(buf_str(&b), want);
    buf_release(&b);
}

static void test_pass(void **state)
{
    (void)state;
    struct around a = WITH("TERM", "xterm");
    passes(&a, "\033]9;x\007", "\033]9;x\007");
    a = WITH("TMUX", "1");
    passes(&a, "\033]9;x\007", "\033Ptmux;\033\033]9;x\007\033\\");
    a = WITH("STY", "1");
    passes(&a, "\033]9;x\007", "\033P\033]9;x\007\033\\");
}

/* GNU screen drops a string of more than 768 bytes. */
static void test_screen_chunks(void **state)
{
    (void)state;
    struct around a = WITH("STY", "1");
    struct buf b = BUF_INIT, all = BUF_INIT;
    char text[3000];
    memset(text, 'x', sizeof(text));
    around_osc52(&a, &b, text, sizeof(text));
    for (const char *p = buf_str(&b); *p;) {
        assert_memory_equal(p, "\033P", 2);
        const char *end = strstr(p, "\033\\");
        assert_non_null(end);
        assert_true(end - p <= 750);
        buf_add(&all, p + 2, (size_t)(end - p - 2));
        p = end + 2;
    }
    assert_memory_equal(buf_str(&all), "\033]52;c;eHh4", 10);
    assert_int_equal(all.len, 7 + 4000 + 1);
    buf_release(&b);
    buf_release(&all);
}

static void copies(const struct around *a, const char *text, const char *want)
{
    struct buf b = BUF_INIT;
    around_osc52(a, &b, text, strlen(text));
    assert_string_equal(buf_str(&b), want);
    buf_release(&b);
}

static void test_osc52(void **state)
{
    (void)state;
    struct around a = WITH("TERM", "xterm");
    copies(&a, "M", "\033]52;c;TQ==\007");
    copies(&a, "Ma", "\033]52;c;TWE=\007");
    copies(&a, "Man", "\033]52;c;TWFu\007");
    copies(&a, "\xc3\xa9\n", "\033]52;c;w6kK\007");
    a = WITH("MOSH_CONNECTION", "1");
    copies(&a, "Man", "\033]52;c;\007\033]52;c;TWFu\007");
    char *big = xcalloc(1, 90001);
    for (size_t i = 0; i < 90000; i += 3)
        memcpy(big + i, "\xe6\x97\xa5", 3);
    size_t n = around_osc52_fits(big + 1, 89999); /* off the borders of characters */
    assert_true(n <= OSC52_MAX / 4 * 3 && n > OSC52_MAX / 4 * 3 - 3);
    assert_int_equal((n + 1) % 3, 0);
    assert_int_equal(around_osc52_fits(big, 600), 600);
    free(big);
}

static void notes(enum osc_note how, const char *title, const char *body, const char *want)
{
    struct around a = WITH("TERM", "xterm");
    struct buf b = BUF_INIT;
    around_notify(&a, how, &b, "asks", title, body);
    assert_string_equal(buf_str(&b), want);
    buf_release(&b);
}

/* Nothing of an agent's text can end the sequence or begin one. */
static void test_notify(void **state)
{
    (void)state;
    notes(OSC_NOTE_NONE, "a", "b", "");
    notes(OSC_NOTE_9, "fix-login asks you", "", "\033]9;fix-login asks you\007");
    notes(OSC_NOTE_9, "a;b", "x\033]52;c;eA==\007y\xc2\x9b" "31m\n", "\033]9;a;b: x]52;c;eA==y31m\007");
    notes(OSC_NOTE_777, "a;b", "c;\007d\x7f", "\033]777;notify;a,b;c,d\007");
    notes(OSC_NOTE_99, "a", "b\033\\c", "\033]99;i=cc-tui-asks:d=0;a\033\\\033]99;i=cc-tui-asks:p=body;"
                                       "b\\c\033\\");
    notes(OSC_NOTE_9, "a", "\xff\xe6\x97", "\033]9;a: ?\007");
    char body[2000], want[600];
    memset(body, 'x', sizeof(body));
    body[sizeof(body) - 1] = 0;
    memset(want, 'x', sizeof(want));
    memcpy(want, "\033]9;a: ", 7);
    memcpy(want + 407, "\007", 2);
    notes(OSC_NOTE_9, "a", body, want);
}

static void test_title(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    around_title(&b, "cc-tui 2? acme\007\033[31m/web");
    assert_string_equal(buf_str(&b), "\033]2;cc-tui 2? acme[31m/web\007");
    buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hints),         cmocka_unit_test(test_pass),
        cmocka_unit_test(test_screen_chunks), cmocka_unit_test(test_osc52),
        cmocka_unit_test(test_notify),        cmocka_unit_test(test_title),
    };
    return cmocka_run_group_tests_name("around", tests, NULL, NULL);
}
