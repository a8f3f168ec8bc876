/* What the screen writes to a real pseudo terminal, byte by byte: sizes, terminals, locales,
 * hostile text, scrolling; what is then shown is judged by a reference terminal. */
#include "../lib/hostile.h"
#include "../lib/screenrig.h"

#include <cct/model/transcribe.h>
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void test_odd_sizes(void **state)
{
    (void)state;
    static const int sizes[][2] = {{1, 1}, {0, 0},  {2, 80},   {500, 5}, {3, 3},     {24, 5},
                                   {9, 39}, {10, 40}, {300, 999}, {24, 80}, {60, 200}, {24, 80}};
    struct ptyrig r;
    screenrig_start(&r, 24, 80);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        rig_resize(&r, sizes[i][0], sizes[i][1]);
        rig_wait_quiet(&r, 100, SOON);
        rig_type(&r, "jkGi\033[A\033[B");
        rig_wait_quiet(&r, 30, SOON);
        rig_type(&r, "\033");
        rig_wait_quiet(&r, 60, SOON);
        assert_false(rig_wait_exit(&r, 0));
    }
    rig_type(&r, "1");
    screenrig_shows(&r, "ASKS YOU");
    screenrig_same_as_fresh(&r);
    screenrig_quit(&r, AT_ONCE);
    /* started without a size */
    screenrig_start_with(&r, 0, 0, screenrig_rows, NULL);
    screenrig_shows(&r, "fix-login");
    screenrig_quit(&r, AT_ONCE);
}
static void test_resize_storm(void **state)
{
    (void)state;
    struct ptyrig r;
    unsigned x = 12345;
    screenrig_start(&r, 24, 80);
    int64_t t0 = rig_now_ms();
    for (int i = 0; i < 200; i++) {
        x = x * 1103515245 + 12345;
        rig_resize(&r, (int)(x >> 16) % 60 + 1, (int)(x >> 8) % 200 + 1);
        rig_wait_quiet(&r, 8, 20);
    }
    assert_true(rig_now_ms() - t0 < 10000);
    rig_resize(&r, 30, 100);
    screenrig_shows(&r, "ASKS YOU");
    screenrig_same_as_fresh(&r);
    screenrig_is_clean(&r);
    screenrig_quit(&r, AT_ONCE);
}
/* Smaller and back before a picture came in between: what the terminal cut is there again. */
static void test_size_there_and_back(void **state)
{
    (void)state;
    struct ptyrig r;
    screenrig_start(&r, 24, 80);
    rig_resize(&r, 9, 41);
    rig_resize(&r, 24, 80);
    screenrig_shows(&r, "? help");
    screenrig_shows(&r, "NAV");
    screenrig_same_as_fresh(&r);
    screenrig_quit(&r, AT_ONCE);
}
/* A frame of the old size may come when the terminal has the new one: the region that it scrolled
 * in does not stay. */
static void test_size_and_region(void **state)
{
    (void)state;
    static const char late[] = "\033[1;24r", newline[] = "\0337\033[24;1H\n\0338";
    struct ptyrig r;
    screenrig_start(&r, 24, 80);
    rig_resize(&r, 40, 100);
    vterm_input_write(r.vt, late, sizeof(late) - 1);
    screenrig_shows(&r, "? help");
    rig_wait_quiet(&r, 100, SOON);
    char *before = rig_screen(&r);
    vterm_input_write(r.vt, newline, sizeof(newline) - 1); /* scrolls where a region ends there */
    char *after = rig_screen(&r);
    assert_string_equal(before, after);
    free(before);
    free(after);
    screenrig_quit(&r, AT_ONCE);
}
static void open_in(const char *term, const char *locale, int h, int w)
{
    struct ptyrig r;
    char *t = xasprintf("TERM=%s", term), *l = xasprintf("LC_ALL=%s", locale);
    const char *const env[] = {t, l, NULL};
    bool old = !strcmp(term, "vt100") || !strcmp(term, "ansi") || !strcmp(term, "linux");
    screenrig_start_with(&r, h, w, screenrig_rows, env);
    r.judge.padding = old;
    bool tiny = h < 10 || w < 40;
    if (!rig_wait(&r, tiny ? "40x10" : "fix-login", SOON)) {
        char *s = rig_screen(&r);
        print_message("%s\n", s);
        fail_msg("TERM=%s LC_ALL=%s %dx%d shows nothing", term, locale, w, h);
    }
    rig_type(&r, "jj\t\t?");
    rig_wait_quiet(&r, 50, SOON);
    rig_type(&r, "\033");
    rig_wait_quiet(&r, 60, SOON);
    rig_type(&r, "qq");
    if (!rig_wait_exit(&r, AT_ONCE))
        fail_msg("TERM=%s does not end", term);
    if (r.judge.bad[0])
        fail_msg("TERM=%s LC_ALL=%s: on the wire %s", term, locale, r.judge.bad);
    const char *why = rig_not_restored(&r);
    if (why && (!old || strstr(why, "discipline")))
        fail_msg("TERM=%s: %s", term, why);
    rig_stop(&r);
    free(t);
    free(l);
}
static void test_terminals(void **state)
{
    (void)state;
    static const char *const terms[] = {"xterm-256color", "vt100",          "linux",
                                        "screen",         "tmux-256color",  "xterm-mono",
                                        "ansi",           "nosuchterminal", "xterm"};
    for (size_t i = 0; i < sizeof(terms) / sizeof(terms[0]); i++) {
        open_in(terms[i], "C.UTF-8", 24, 80);
        open_in(terms[i], "C", 24, 80);
    }
    open_in("xterm", "C.UTF-8", 9, 39);
    open_in("vt100", "C", 60, 132);
}
static void refused(const char *term)
{
    struct ptyrig r;
    const char *const env[] = {term, NULL};
    screenrig_start_with(&r, 24, 80, screenrig_rows, env);
    assert_true(rig_wait_exit(&r, SOON));
    assert_true(WIFEXITED(r.status) && WEXITSTATUS(r.status) == 2);
    screenrig_shows(&r, "cannot open the screen");
    assert_null(rig_not_restored(&r));
    rig_stop(&r);
}
static void test_refused_terminals(void **state)
{
    (void)state;
    refused("TERM");
    refused("TERM=");
    refused("TERM=dumb");
}
/* In a locale without UTF-8 nothing over 0x7E leaves. */
static void test_ascii_locale(void **state)
{
    (void)state;
    static const char *const env[] = {"LC_ALL=C", NULL};
    struct ptyrig r;
    char *script = xasprintf("%sagent 1 {\"kind\":\"text\",\"offset\":5000,\"index\":0,"
                             "\"block_id\":\"b\",\"mode\":\"replace\",\"final\":true,"
                             "\"text\":\"caf\xc3\xa9 \xe6\x97\xa5 end\"}\n",
                             screenrig_rows);
    screenrig_start_with(&r, 24, 80, script, env);
    screenrig_shows(&r, "caf? ?? end");
    screenrig_quit(&r, AT_ONCE);
    free(script);
}
/* Every hostile string as an agent's text, through the real screen. */
static void test_hostile_output(void **state)
{
    (void)state;
    struct hostile_set set;
    struct ptyrig r;
    hostile_load(&set, NULL);
    struct buf b = BUF_INIT;
    buf_adds(&b, screenrig_rows);
    for (size_t i = 0; i < set.n; i++) {
        if (memchr(set.v[i].s, 0, set.v[i].len))
            continue;
        buf_addf(&b, "agent 1 {\"kind\":\"raw\",\"offset\":%zu,\"index\":0,\"final\":true,"
                     "\"text\":",
                 5000 + i);
        buf_add_json(&b, set.v[i].s, set.v[i].len > 2000 ? 2000 : set.v[i].len);
        buf_adds(&b, "}\n");
    }
    hostile_free(&set);
    FILE *f = tmpfile(); /* inherited */
    fwrite(b.p, 1, b.len, f);
    fflush(f);
    char *file = xasprintf("@/proc/self/fd/%d", fileno(f));
    screenrig_start_with(&r, 60, 200, file, NULL);
    screenrig_shows(&r, "fix-login");
    rig_type(&r, "2");
    for (int i = 0; i < 40; i++) {
        rig_type(&r, "\033[5~"); /* page up through all of it */
        rig_wait_quiet(&r, 40, SOON);
    }
    screenrig_is_clean(&r);
    rig_type(&r, "1q");
    screenrig_ends(&r, AT_ONCE);
    rig_stop(&r);
    fclose(f);
    free(file);
    buf_release(&b);
}
static uint64_t counter(const char *path, const char *name)
{
    char line[128];
    uint64_t v = 0;
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f))
        if (strncmp(line, name, strlen(name)) == 0)
            v = strtoull(line + strlen(name), NULL, 10);
    fclose(f);
    return v;
}
/* One write for each frame; marks around it where the terminal knows them; silence when
 * nothing changes. */
static void test_writes_and_silence(void **state)
{
    (void)state;
    char path[] = "/tmp/frames.XXXXXX";
    int fd = mkstemp(path);
    close(fd);
    char *env_path = xasprintf("RIG_FRAMES=%s", path);
    const char *const env[] = {env_path, NULL};
    struct ptyrig r;
    screenrig_start_with(&r, 24, 80, screenrig_rows, env);
    r.answer_sync = true;
    screenrig_shows(&r, "ASKS YOU");
    rig_wait_quiet(&r, 200, SOON);
    uint64_t before = r.bytes;
    rig_wait_quiet(&r, 800, AT_ONCE);
    /* a minute may pass meanwhile: one small frame, no more */
    assert_true(r.bytes - before < 400);
    for (int i = 0; i < 10; i++) {
        before = r.bytes;
        rig_type(&r, i % 2 ? "k" : "j");
        rig_wait_quiet(&r, 60, SOON);
        assert_true(r.bytes > before && r.bytes - before < 3000);
    }
    assert_false(r.judge.sync);
    rig_type(&r, "q");
    screenrig_ends(&r, AT_ONCE);
    uint64_t frames = counter(path, "frames "), writes = counter(path, "writes ");
    assert_true(frames >= 11);
    assert_int_equal(frames, writes);
    assert_true(counter(path, "wakes ") < 200);
    unlink(path);
    free(env_path);
    rig_stop(&r);
}
/* Bytes for one line more at the end of the pane. */
static uint64_t line_costs(struct ptyrig *r)
{
    uint64_t before = r->bytes;
    rig_type(r, "j");
    for (int64_t end = rig_now_ms() + SOON; r->bytes == before && rig_now_ms() < end;)
        rig_wait_quiet(r, 10, 20);
    rig_wait_quiet(r, 60, SOON);
    return r->bytes - before;
}
/* A pane that scrolls is moved by the terminal, beside the list where that has margins; the
 * picture is the one that a full redraw gives. */
static void scrolls(int h, int w, const char *keys, bool margins, bool cheap)
{
    char *script = xasprintf("%slines 1 200 \xe6\x97\xa5\xe6\x9c\xac e\xcc\x81 words that are not short\n",
                             screenrig_rows);
    struct ptyrig r;
    screenrig_start_with(&r, h, w, script, NULL);
    r.answer_margins = margins;
    screenrig_shows(&r, "ASKS YOU");
    rig_type(&r, keys);
    rig_wait_quiet(&r, 100, SOON);
    for (int i = 0; i < h; i++)
        rig_type(&r, "j");
    rig_wait_quiet(&r, 100, SOON);
    uint64_t cost = line_costs(&r);
    if (cheap && cost > 200)
        fail_msg("%dx%d %s: a line costs %d bytes", w, h, margins ? "with margins" : "", (int)cost);
    screenrig_same_as_fresh(&r);
    rig_type(&r, "jjjjj\x04\x04");
    screenrig_same_as_fresh(&r);
    rig_resize(&r, h - 3, w - 7);
    rig_wait_quiet(&r, 150, SOON);
    rig_type(&r, "jjj\x04j");
    screenrig_same_as_fresh(&r);
    rig_type(&r, "qq");
    screenrig_ends(&r, SOON);
    rig_stop(&r);
    free(script);
}
static void test_scrolling(void **state)
{
    (void)state;
    scrolls(40, 120, "2gg", true, true);
    scrolls(40, 120, "2gg", false, false);
    scrolls(24, 80, "2fgg", false, true);
}
int main(int argc, char **argv)
{
    screenrig_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_odd_sizes), cmocka_unit_test(test_resize_storm),
        cmocka_unit_test(test_size_there_and_back), cmocka_unit_test(test_size_and_region),
        cmocka_unit_test(test_terminals), cmocka_unit_test(test_refused_terminals),
        cmocka_unit_test(test_ascii_locale), cmocka_unit_test(test_hostile_output),
        cmocka_unit_test(test_writes_and_silence), cmocka_unit_test(test_scrolling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
