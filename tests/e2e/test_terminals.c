/* The screen in many kinds of terminals, locales and colours, alone and inside tmux and GNU
 * screen: every column of difficult text is kept, nothing is on the wire that the terminal
 * does not know, and all is given back at the end. */
#include "../lib/ptyrig.h"
#include "../lib/screenscript.h"
#include "../lib/tmpdir.h"

#include <cct/text/clean.h>
#include <cct/text/width.h>
#include <cct/ui/around.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <locale.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { SOON = 8000 };

static const char *self;
static char dir[64];

/* Each is written between two marks: the second one has to stand where our count of cells
 * says. */
static const char *const texts[] = {
    "plain text",
    "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e wide",                         /* CJK */
    "\xed\x95\x9c\xea\xb8\x80 \xef\xbc\xa1\xef\xbc\xa2",                 /* Hangul, full width */
    "e\xcc\x81" "a\xcc\x88" "o\xcc\x82\xcc\xa3 marks",                   /* combining */
    "\xe0\xa4\xb9\xe0\xa4\xbf\xe0\xa4\xa8\xe0\xa5\x8d\xe0\xa4\xa6\xe0\xa5\x80", /* Devanagari */
    "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb zwj",                  /* woman + laptop */
    "\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa\xf0\x9f\x87\xab\xf0\x9f\x87\xb7 flags",
    "\xe2\x9d\xa4\xef\xb8\x8f selector",                                 /* heart, VS16 */
    "\xf0\x9f\x98\x80\xf0\x9f\x8f\xbd tone",
    "\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d hebrew",
    "\xd9\x85\xd8\xb1\xd8\xad\xd8\xa8\xd8\xa7 arabic",
    "\xe2\x80\xae" "abc\xe2\x80\xac bidi",                               /* overrides */
    "\xc2\xbd\xc2\xb1\xe2\x80\xa6\xe2\x86\x92 ambiguous",
    "\x1b[31mred\x1b[0m and \x1b[38;2;9;99;199mrgb\x1b[0m",
    "tab\there",
};
enum { TEXTS = sizeof(texts) / sizeof(texts[0]) };

/* --- the program on the pty ------------------------------------------------------------- */

static void feed(struct script *s)
{
    script_run(s, "link ok cloud\nloaded\ntool claude base\n"
                  "row 1 fix-login claude running asks last=Run it?\n"
                  "row 2 api-tests codex running working\n");
    for (size_t i = 0; i < TEXTS; i++) {
        struct buf b = BUF_INIT, json = BUF_INIT;
        buf_addf(&b, "<%02zu %s|", i, texts[i]);
        buf_addf(&json, "agent 1 {\"kind\":\"raw\",\"offset\":%zu,\"index\":0,\"final\":true,"
                        "\"text\":", 5000 + i);
        buf_add_json(&json, b.p, b.len);
        buf_addc(&json, '}');
        script_line(s, buf_str(&json), "texts");
        buf_release(&b);
        buf_release(&json);
    }
}

static int run_screen(void)
{
    struct script s;
    struct theme theme, light;
    struct around around;
    sigset_t set;
    sigfillset(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    setlocale(LC_ALL, "");
    around_read(&around, getenv);
    script_init(&s);
    s.now = (int64_t)time(NULL) * 1000;
    feed(&s);
    if (theme_load(&theme, getenv("RIG_THEME") ? getenv("RIG_THEME") : "dark", NULL, NULL))
        return 1;
    s.opts.theme = &theme;
    if (!getenv("RIG_THEME") && theme_load(&light, "light", NULL, NULL) == 0)
        s.opts.theme_light = &light;
    s.opts.title = true;
    s.opts.color.word = getenv("RIG_COLOR");
    s.opts.color.truecolor = around.truecolor;
    s.opts.color.no_color = getenv("NO_COLOR");
    int rc = ui_run(s.app, &s.opts);
    fflush(stdout);
    _exit(rc);
}

/* --- looking at it ----------------------------------------------------------------------- */

static char *cleaned(size_t i)
{
    char *raw = xasprintf("<%02zu %s|", i, texts[i]), *clean = clean_text_dup(raw, strlen(raw));
    free(raw);
    return clean;
}

static uint32_t cell(struct ptyrig *r, int y, int x)
{
    VTermScreenCell c;
    vterm_screen_get_cell(r->screen, (VTermPos){y, x}, &c);
    return c.chars[0];
}

/* The row and column where "<NN " stands. */
static bool find_begin(struct ptyrig *r, size_t i, int *y, int *x)
{
    char mark[8];
    snprintf(mark, sizeof(mark), "<%02zu ", i);
    for (*y = 0; *y < r->h; (*y)++)
        for (*x = 0; *x + 4 < r->w; (*x)++)
            if (cell(r, *y, *x) == '<' && cell(r, *y, *x + 1) == (uint32_t)mark[1] &&
                cell(r, *y, *x + 2) == (uint32_t)mark[2])
                return true;
    return false;
}

static void columns_kept(struct ptyrig *r, const char *what)
{
    for (size_t i = 0; i < TEXTS; i++) {
        char *text = cleaned(i);
        int y, x, w = (int)text_width(text, strlen(text));
        if (!find_begin(r, i, &y, &x) || cell(r, y, x + w - 1) != '|') {
            char *s = rig_screen(r);
            print_message("%s\n", s);
            fail_msg("%s: text %zu does not end in its column", what, i);
        }
        free(text);
    }
}

static void show_output(struct ptyrig *r, const char *what)
{
    if (!rig_wait(r, "fix-login", SOON) || (rig_type(r, "2f"), !rig_wait(r, "<14 ", SOON))) {
        char *s = rig_screen(r);
        print_message("%s\n", s);
        fail_msg("%s: the output does not come", what);
    }
    rig_wait_quiet(r, 60, SOON);
}

/* --- terminals by their descriptions ------------------------------------------------------ */

struct kind {
    const char *term, *locale, *more[3];
    bool old;    /* with padding, without strings, modes are not its own */
    int colors;  /* at least so many different ones are used; 0 = none at all */
};
static const struct kind kinds[] = {
    {"xterm-256color", "C.UTF-8", {0}, false, 3},
    {"xterm-256color", "C.UTF-8", {"COLORTERM=truecolor", "RIG_THEME=dusk"}, false, 3},
    {"xterm-256color", "C.UTF-8", {"RIG_THEME=contrast-light"}, false, 3},
    {"xterm-256color", "C.UTF-8", {"RIG_THEME=ocean", "RIG_COLOR=16"}, false, 2},
    {"xterm-256color", "C.UTF-8", {"NO_COLOR=1"}, false, 0},
    {"xterm-256color", "C.UTF-8", {"RIG_COLOR=never", "RIG_THEME=night"}, false, 0},
    {"xterm-256color", "C", {0}, false, 3},
    {"xterm-256color", "latin1", {0}, false, 3},
    {"xterm-mono", "C.UTF-8", {0}, false, 0},
    {"xterm-kitty", "C.UTF-8", {0}, false, 3}, /* has no description everywhere */
    {"screen-256color", "C.UTF-8", {0}, false, 3},
    {"screen-256color", "latin1", {0}, false, 3},
    {"tmux-256color", "C.UTF-8", {0}, false, 3},
    {"linux", "C.UTF-8", {0}, true, 2},
    {"linux", "C", {0}, true, 2},
    {"vt100", "C", {0}, true, 0},
};

static int foreground_kinds(struct ptyrig *r)
{
    uint32_t seen[16];
    int n = 0;
    for (int y = 0; y < r->h; y++)
        for (int x = 0; x < r->w; x++) {
            VTermScreenCell c;
            vterm_screen_get_cell(r->screen, (VTermPos){y, x}, &c);
            VTermColor f = c.fg;
            vterm_screen_convert_color_to_rgb(r->screen, &f);
            uint32_t rgb = (uint32_t)f.rgb.red << 16 | (uint32_t)f.rgb.green << 8 | f.rgb.blue;
            int k = 0;
            while (k < n && seen[k] != rgb)
                k++;
            if (k == n && n < 16)
                seen[n++] = rgb;
        }
    return n;
}

static void try_kind(const struct kind *k)
{
    struct ptyrig r;
    char *argv[] = {(char *)self, (char *)"--screen", NULL};
    char *what = xasprintf("%s %s %s", k->term, k->locale, k->more[0] ? k->more[0] : "");
    char *term = xasprintf("TERM=%s", k->term), *locale = xasprintf("LC_ALL=%s", k->locale);
    char *path = xasprintf("LOCPATH=%s", dir);
    bool latin1 = strcmp(k->locale, "latin1") == 0;
    const char *env[] = {"SSH_CONNECTION", "COLUMNS", "LINES", "NO_COLOR", "COLORTERM", "TMUX",
                         "STY", "COLORFGBG", term, locale, latin1 ? path : "LOCPATH",
                         k->more[0], k->more[1], NULL};
    rig_start(&r, 24, 100, argv, env);
    r.judge.padding = k->old;
    r.judge.strings = !k->old;
    show_output(&r, what);
    columns_kept(&r, what);
    int colors = foreground_kinds(&r);
    if (k->colors ? colors < k->colors : colors > 1)
        fail_msg("%s: %d colours are used", what, colors);
    rig_type(&r, "q");
    rig_wait_quiet(&r, 40, SOON);
    rig_type(&r, "q");
    if (!rig_wait_exit(&r, SOON))
        fail_msg("%s: it does not end", what);
    if (r.judge.bad[0])
        fail_msg("%s: on the wire %s", what, r.judge.bad);
    const char *why = rig_not_restored(&r);
    if (why && (!k->old || strstr(why, "discipline")))
        fail_msg("%s: %s", what, why);
    rig_stop(&r);
    free(what);
    free(term);
    free(locale);
    free(path);
}

static void test_kinds(void **state)
{
    (void)state;
    char *make = xasprintf("localedef -i en_US -f ISO-8859-1 --no-archive %s/latin1 2>/dev/null",
                           dir);
    bool latin1 = system(make) == 0;
    free(make);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (latin1 || strcmp(kinds[i].locale, "latin1") != 0)
            try_kind(&kinds[i]);
}

static void test_dumb(void **state)
{
    (void)state;
    struct ptyrig r;
    char *argv[] = {(char *)self, (char *)"--screen", NULL};
    const char *env[] = {"TERM=dumb", "LC_ALL=C.UTF-8", NULL};
    rig_start(&r, 24, 80, argv, env);
    assert_true(rig_wait_exit(&r, SOON));
    assert_int_equal(WEXITSTATUS(r.status), 2);
    assert_true(rig_wait(&r, "cannot open the screen", SOON));
    assert_true(rig_wait(&r, "TERM is 'dumb'", SOON));
    assert_true(rig_wait(&r, "--plain", SOON));
    assert_null(rig_not_restored(&r));
    rig_stop(&r);
}

/* --- inside a multiplexer ----------------------------------------------------------------- */

/* What it sends is its own affair; the cells are ours. */
static void inside(const char *shell_command, const char *what)
{
    struct ptyrig r;
    char *argv[] = {(char *)"sh", (char *)"-c", (char *)(uintptr_t)shell_command, NULL};
    const char *env[] = {"TERM=xterm-256color", "LC_ALL=C.UTF-8", "TMUX", "STY", "COLORTERM",
                         "SSH_CONNECTION", "NO_COLOR", NULL};
    rig_start(&r, 24, 100, argv, env);
    show_output(&r, what);
    columns_kept(&r, what);
    rig_type(&r, "\f");
    rig_wait_quiet(&r, 100, SOON);
    columns_kept(&r, what);
    rig_type(&r, "q");
    rig_wait_quiet(&r, 60, SOON);
    rig_type(&r, "q");
    if (!rig_wait(&r, "ended with 0", SOON)) {
        char *s = rig_screen(&r);
        print_message("%s\n", s);
        fail_msg("%s: it does not end well", what);
    }
    rig_type(&r, "\r");
    assert_true(rig_wait_exit(&r, SOON));
    rig_stop(&r);
}

static void test_tmux(void **state)
{
    (void)state;
    if (system("command -v tmux >/dev/null") != 0)
        skip();
    char *c = xasprintf("exec tmux -S %s/tmux -f /dev/null new-session "
                        "\"'%s' --screen; echo ended with \\$?; read x\"", dir, self);
    inside(c, "inside tmux");
    free(c);
}

static void test_screen(void **state)
{
    (void)state;
    if (system("command -v screen >/dev/null") != 0)
        skip();
    char *c = xasprintf("SCREENDIR=%s/screen HOME=%s exec screen -U -c /dev/null "
                        "sh -c \"'%s' --screen; echo ended with \\$?; read x\"", dir, dir, self);
    inside(c, "inside screen");
    free(c);
}

int main(int argc, char **argv)
{
    char path[4096];
    if (argc == 2 && strcmp(argv[1], "--screen") == 0)
        return run_screen();
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[n > 0 ? n : 0] = 0;
    self = path;
    memcpy(dir, "/tmp/test-terms-XXXXXX", 23);
    if (!mkdtemp(dir))
        return 1;
    char *socket_dir = xasprintf("%s/screen", dir);
    mkdir(socket_dir, 0700);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_dumb),
        cmocka_unit_test(test_tmux),
        cmocka_unit_test(test_screen),
    };
    int rc = cmocka_run_group_tests_name("terminals", tests, NULL, NULL);
    if (tmpdir_remove(dir) != 0)
        rc = 1;
    free(socket_dir);
    return rc;
}
