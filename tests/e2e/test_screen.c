/* The screen on a real pseudo terminal: this program starts itself with --screen, which
 * runs ui_run() over a facade fed by a script. What is on the wire is judged byte by byte,
 * what is on the screen by a reference terminal. */
#include "../lib/hostile.h"
#include "../lib/ptyrig.h"
#include "../lib/screenscript.h"

#include <cct/model/transcribe.h>
#include <cct/util/clock.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <dirent.h>
#include <locale.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <poll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static const char *self;
static const char rows[] = "link ok cloud\nloaded\ntool claude base\n"
                           "row 1 fix-login claude running asks last=Run it?\n"
                           "row 2 api-tests codex running working\n"
                           "row 3 spike-wasm pi paused unknown\n"
                           "lines 1 30 words and more words\n";

enum { SOON = 5000, AT_ONCE = 1000 };

/* --- the program on the pty ------------------------------------------------------------- */

static struct script *fed;
static int stream_lines; /* lines that come with each tick */

static bool feed_stream(struct app *a)
{
    (void)a;
    for (int i = 0; i < stream_lines; i++)
        script_line(fed, "lines 1 1 streamed text that goes on and on", "stream");
    return true;
}

static void ticks(void *arg)
{
    const uint64_t one = 1;
    struct timespec pause = {.tv_nsec = 5000000};
    while (write(*(int *)arg, &one, sizeof(one)) == sizeof(one))
        nanosleep(&pause, NULL);
}

static void rest(void *arg)
{
    (void)arg;
    for (;;)
        pause();
}

static int run_screen(const char *script)
{
    struct script s;
    struct theme theme;
    pthread_t worker;
    sigset_t set;
    sigfillset(&set);
    sigdelset(&set, SIGSEGV);
    sigdelset(&set, SIGABRT);
    sigdelset(&set, SIGBUS);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    setlocale(LC_ALL, "");
    script_init(&s);
    fed = &s;
    s.now = (int64_t)time(NULL) * 1000;
    script_run(&s, script);
    theme_builtin(&theme);
    s.opts.theme = &theme;
    s.opts.shell_leave = 0x1d;
    s.opts.bench_frames = getenv("RIG_FRAMES");
    thread_start(&worker, THREAD_WORK, "worker", rest, NULL);
    if (getenv("RIG_STREAM")) {
        stream_lines = (int)strtol(getenv("RIG_STREAM"), NULL, 10);
        s.app->on_drain = feed_stream;
        thread_start(&worker, THREAD_NET, "ticks", ticks, &s.app->fd);
    }
    int rc = ui_run(s.app, &s.opts);
    fflush(stdout);
    _exit(rc);
}

/* --- starting it ------------------------------------------------------------------------- */

static void start_env(struct ptyrig *r, int h, int w, const char *script,
                      const char *const more[])
{
    char *argv[] = {(char *)self, (char *)"--screen", (char *)script, NULL};
    const char *env[24] = {"TERM=xterm-256color", "LC_ALL=C.UTF-8", "SSH_CONNECTION",
                           "COLUMNS", "LINES", "NO_COLOR"};
    size_t n = 6;
    for (size_t i = 0; more && more[i]; i++)
        env[n++] = more[i];
    rig_start(r, h, w, argv, env);
}

static void start(struct ptyrig *r, int h, int w)
{
    start_env(r, h, w, rows, NULL);
    assert_true(rig_wait(r, "fix-login", SOON));
}

static void must_show(struct ptyrig *r, const char *text)
{
    if (!rig_wait(r, text, SOON)) {
        char *s = rig_screen(r);
        print_message("%s", s);
        fail_msg("'%s' does not come", text);
    }
}

static void must_be_clean(struct ptyrig *r)
{
    if (r->judge.bad[0])
        fail_msg("on the wire: %s", r->judge.bad);
}

static void must_end(struct ptyrig *r, int ms)
{
    if (!rig_wait_exit(r, ms))
        fail_msg("still running after %d ms", ms);
    const char *why = rig_not_restored(r);
    if (why)
        fail_msg("%s", why);
    must_be_clean(r);
}

/* --- tests ----------------------------------------------------------------------------------- */

static void test_first_screen_and_quit(void **state)
{
    (void)state;
    struct ptyrig r;
    start(&r, 24, 80);
    must_show(&r, "ASKS YOU");
    assert_true(r.judge.alt && r.judge.paste && r.judge.focus);
    assert_true(r.asked_sync);
    rig_type(&r, "q");
    must_end(&r, AT_ONCE);
    assert_true(WIFEXITED(r.status) && WEXITSTATUS(r.status) == 0);
    must_show(&r, "still running"); /* said on the shell's own screen */
    rig_stop(&r);
}

static void end_by(int sig, int status)
{
    struct ptyrig r;
    start(&r, 24, 80);
    kill(r.pid, sig);
    must_end(&r, AT_ONCE);
    if (!WIFEXITED(r.status) || WEXITSTATUS(r.status) != status)
        fail_msg("signal %d: status %x", sig, r.status);
    rig_stop(&r);
}

static void test_signals(void **state)
{
    (void)state;
    end_by(SIGTERM, 143);
    end_by(SIGINT, 130);
    end_by(SIGQUIT, 131);
    end_by(SIGHUP, 129);
}

static pid_t thread_named(pid_t pid, const char *name)
{
    char *dir = xasprintf("/proc/%d/task", (int)pid);
    DIR *d = opendir(dir);
    struct dirent *e;
    pid_t found = 0;
    while (d && (e = readdir(d)) != NULL) {
        char *path = xasprintf("%s/%s/comm", dir, e->d_name), comm[32] = "";
        FILE *f = fopen(path, "r");
        if (f && fgets(comm, sizeof(comm), f) && strncmp(comm, name, strlen(name)) == 0)
            found = (pid_t)strtol(e->d_name, NULL, 10);
        if (f)
            fclose(f);
        free(path);
    }
    if (d)
        closedir(d);
    free(dir);
    return found;
}

/* A crash of any thread gives the terminal back. */
static void test_crash(void **state)
{
    (void)state;
    static const int sigs[] = {SIGSEGV, SIGABRT, SIGBUS};
    for (size_t i = 0; i < 3; i++) {
        struct ptyrig r;
        start(&r, 24, 80);
        pid_t tid = 0; /* it names itself once it runs */
        for (int64_t end = clock_mono_ms() + SOON; !tid && clock_mono_ms() < end; sched_yield())
            tid = thread_named(r.pid, "worker");
        assert_true(tid > 0);
        syscall(SYS_tgkill, r.pid, tid, sigs[i]);
        must_end(&r, SOON);
        assert_true(WIFSIGNALED(r.status) && WTERMSIG(r.status) == sigs[i]);
        rig_stop(&r);
    }
}

static void test_hang_up(void **state)
{
    (void)state;
    struct ptyrig r;
    start(&r, 24, 80);
    rig_hang_up(&r);
    assert_true(rig_wait_exit(&r, AT_ONCE));
    rig_stop(&r);
}

static pid_t child_of(pid_t pid)
{
    char *path = xasprintf("/proc/%d/task/%d/children", (int)pid, (int)pid), text[32] = "";
    FILE *f = fopen(path, "r");
    if (f && !fgets(text, sizeof(text), f))
        text[0] = 0;
    if (f)
        fclose(f);
    free(path);
    return (pid_t)strtol(text, NULL, 10);
}

/* ^Z under a real shell with job control, the same by a signal from outside, and back. */
/* The terminal is the shell's until that ends or is left; the screen comes back as it was. */
static void test_shell(void **state)
{
    (void)state;
    struct ptyrig r;
    start(&r, 24, 80);
    rig_type(&r, "j");
    rig_type(&r, "s");
    must_show(&r, "a shell in api-tests; Ctrl-] leaves it running");
    must_show(&r, "fake shell");
    assert_false(r.judge.alt || r.judge.paste || r.judge.focus);
    rig_type(&r, "typed-there");
    must_show(&r, "typed-there");
    rig_resize(&r, 30, 90);
    must_show(&r, "size 90 30");
    rig_type(&r, "\035");
    must_show(&r, "goes on as process 1207: s comes back");
    must_show(&r, "fix-login");
    assert_true(r.judge.alt && r.judge.paste && r.judge.focus);
    rig_type(&r, "E");
    must_show(&r, "process 1207 in api-tests");
    rig_type(&r, "!");
    must_show(&r, "the shell in api-tests ended with status 3");
    rig_type(&r, "s");
    must_show(&r, "a shell in api-tests");
    kill(r.pid, SIGTERM);
    assert_true(rig_wait_exit(&r, SOON)); /* its own bytes were on the wire, too */
    assert_null(rig_not_restored(&r));
    assert_int_equal(WEXITSTATUS(r.status), 143);
    rig_stop(&r);
    start(&r, 24, 80);
    rig_type(&r, "G");
    rig_type(&r, "s"); /* paused: nothing wakes it */
    must_show(&r, "spike-wasm is paused: r resumes it");
    rig_type(&r, "q");
    must_end(&r, SOON);
    rig_stop(&r);
}

static void test_suspend(void **state)
{
    (void)state;
    struct ptyrig r;
    char *argv[] = {(char *)"bash", (char *)"--norc", (char *)"--noprofile", (char *)"-i", NULL};
    const char *env[] = {"TERM=xterm-256color", "LC_ALL=C.UTF-8", "PS1=shell> ", "HISTFILE=", NULL};
    if (access("/bin/bash", X_OK) != 0)
        skip();
    setenv("S", rows, 1);
    rig_start(&r, 24, 80, argv, env);
    unsetenv("S");
    must_show(&r, "shell>");
    char *command = xasprintf("%s --screen \"$S\"\r", self);
    rig_type(&r, command);
    must_show(&r, "ASKS YOU");
    rig_type(&r, "\032");
    must_show(&r, "Stopped");
    assert_false(r.judge.alt);
    rig_type(&r, "echo $((40 + 2))\r");
    must_show(&r, "42");
    rig_type(&r, "fg\r");
    must_show(&r, "ASKS YOU");
    assert_true(r.judge.alt && r.judge.focus);
    pid_t pid = child_of(r.pid);
    assert_true(pid > 0);
    kill(pid, SIGTSTP);
    assert_true(rig_wait_gone(&r, "ASKS YOU", SOON));
    must_show(&r, "Stopped"); /* the first one's, when the main screen is back */
    rig_wait_quiet(&r, 150, SOON);
    assert_false(r.judge.alt || r.judge.focus); /* the shell itself takes pastes */
    rig_type(&r, "fg\r");
    must_show(&r, "ASKS YOU");
    rig_type(&r, "q");
    must_show(&r, "still running");
    rig_type(&r, "exit\r");
    assert_true(rig_wait_exit(&r, SOON));
    free(command);
    rig_stop(&r);
}

/* The picture equals the one that a full redraw gives. */
static void same_as_fresh(struct ptyrig *r)
{
    rig_wait_quiet(r, 150, SOON);
    char *before = rig_screen(r);
    rig_type(r, "\f");
    rig_wait_quiet(r, 150, SOON);
    char *after = rig_screen(r);
    assert_string_equal(before, after);
    free(before);
    free(after);
}

static void test_odd_sizes(void **state)
{
    (void)state;
    static const int sizes[][2] = {{1, 1}, {0, 0},  {2, 80},   {500, 5}, {3, 3},     {24, 5},
                                   {9, 39}, {10, 40}, {300, 999}, {24, 80}, {60, 200}, {24, 80}};
    struct ptyrig r;
    start(&r, 24, 80);
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
    must_show(&r, "ASKS YOU");
    same_as_fresh(&r);
    rig_type(&r, "q");
    must_end(&r, AT_ONCE);
    rig_stop(&r);
    /* started without a size */
    start_env(&r, 0, 0, rows, NULL);
    must_show(&r, "fix-login");
    rig_type(&r, "q");
    must_end(&r, AT_ONCE);
    rig_stop(&r);
}

static void test_resize_storm(void **state)
{
    (void)state;
    struct ptyrig r;
    unsigned x = 12345;
    start(&r, 24, 80);
    int64_t t0 = rig_now_ms();
    for (int i = 0; i < 200; i++) {
        x = x * 1103515245 + 12345;
        rig_resize(&r, (int)(x >> 16) % 60 + 1, (int)(x >> 8) % 200 + 1);
        rig_wait_quiet(&r, 8, 20);
    }
    assert_true(rig_now_ms() - t0 < 10000);
    rig_resize(&r, 30, 100);
    must_show(&r, "ASKS YOU");
    same_as_fresh(&r);
    must_be_clean(&r);
    rig_type(&r, "q");
    must_end(&r, AT_ONCE);
    rig_stop(&r);
}

/* Smaller and back before a picture came in between: what the terminal cut is there again. */
static void test_size_there_and_back(void **state)
{
    (void)state;
    struct ptyrig r;
    start(&r, 24, 80);
    rig_resize(&r, 9, 41);
    rig_resize(&r, 24, 80);
    must_show(&r, "? help");
    must_show(&r, "NAV");
    same_as_fresh(&r);
    rig_type(&r, "q");
    must_end(&r, AT_ONCE);
    rig_stop(&r);
}

/* A frame of the old size may come when the terminal has the new one: the region that it scrolled
 * in does not stay. */
static void test_size_and_region(void **state)
{
    (void)state;
    static const char late[] = "\033[1;24r", newline[] = "\0337\033[24;1H\n\0338";
    struct ptyrig r;
    start(&r, 24, 80);
    rig_resize(&r, 40, 100);
    vterm_input_write(r.vt, late, sizeof(late) - 1);
    must_show(&r, "? help");
    rig_wait_quiet(&r, 100, SOON);
    char *before = rig_screen(&r);
    vterm_input_write(r.vt, newline, sizeof(newline) - 1); /* scrolls where a region ends there */
    char *after = rig_screen(&r);
    assert_string_equal(before, after);
    free(before);
    free(after);
    rig_type(&r, "q");
    must_end(&r, AT_ONCE);
    rig_stop(&r);
}

/* Nobody reads for a while, though text streams: keys still count, nothing piles up, the
 * picture is right again at once; and a stuck line does not hold the end up. */
static void test_stuck_line(void **state)
{
    (void)state;
    static const char *const env[] = {"RIG_STREAM=20", NULL};
    struct ptyrig r;
    start_env(&r, 50, 160, rows, env);
    must_show(&r, "streamed");
    poll(NULL, 0, 1500); /* the reader is away: that is the test */
    uint64_t before = r.bytes;
    rig_type(&r, "d");
    must_show(&r, "any key closes");
    assert_true(r.bytes - before < 400000);
    must_be_clean(&r);
    kill(r.pid, SIGSTOP); /* fill the line to the brim, then ask it to end */
    kill(r.pid, SIGCONT);
    poll(NULL, 0, 1000);
    kill(r.pid, SIGTERM);
    int64_t t0 = rig_now_ms();
    while (!r.exited && rig_now_ms() - t0 < 3000) { /* still nobody reads */
        r.exited = waitpid(r.pid, &r.status, WNOHANG) == r.pid;
        poll(NULL, 0, 5);
    }
    assert_true(r.exited);
    assert_true(rig_now_ms() - t0 < AT_ONCE);
    rig_stop(&r);
}

static void open_in(const char *term, const char *locale, int h, int w)
{
    struct ptyrig r;
    char *t = xasprintf("TERM=%s", term), *l = xasprintf("LC_ALL=%s", locale);
    const char *const env[] = {t, l, NULL};
    bool old = !strcmp(term, "vt100") || !strcmp(term, "ansi") || !strcmp(term, "linux");
    start_env(&r, h, w, rows, env);
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
    start_env(&r, 24, 80, rows, env);
    assert_true(rig_wait_exit(&r, SOON));
    assert_true(WIFEXITED(r.status) && WEXITSTATUS(r.status) == 2);
    must_show(&r, "cannot open the screen");
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
                             rows);
    start_env(&r, 24, 80, script, env);
    must_show(&r, "caf? ?? end");
    rig_type(&r, "q");
    must_end(&r, AT_ONCE);
    rig_stop(&r);
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
    buf_adds(&b, rows);
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
    start_env(&r, 60, 200, file, NULL);
    must_show(&r, "fix-login");
    rig_type(&r, "2");
    for (int i = 0; i < 40; i++) {
        rig_type(&r, "\033[5~"); /* page up through all of it */
        rig_wait_quiet(&r, 40, SOON);
    }
    must_be_clean(&r);
    rig_type(&r, "1q");
    must_end(&r, AT_ONCE);
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
    start_env(&r, 24, 80, rows, env);
    r.answer_sync = true;
    must_show(&r, "ASKS YOU");
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
    must_end(&r, AT_ONCE);
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
                             rows);
    struct ptyrig r;
    start_env(&r, h, w, script, NULL);
    r.answer_margins = margins;
    must_show(&r, "ASKS YOU");
    rig_type(&r, keys);
    rig_wait_quiet(&r, 100, SOON);
    for (int i = 0; i < h; i++)
        rig_type(&r, "j");
    rig_wait_quiet(&r, 100, SOON);
    uint64_t cost = line_costs(&r);
    if (cheap && cost > 200)
        fail_msg("%dx%d %s: a line costs %d bytes", w, h, margins ? "with margins" : "", (int)cost);
    same_as_fresh(&r);
    rig_type(&r, "jjjjj\x04\x04");
    same_as_fresh(&r);
    rig_resize(&r, h - 3, w - 7);
    rig_wait_quiet(&r, 150, SOON);
    rig_type(&r, "jjj\x04j");
    same_as_fresh(&r);
    rig_type(&r, "qq");
    must_end(&r, SOON);
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

/* What is selected goes to the clipboard, through what lies between, and the screen stays. */
static void copies_by(const char *more, const char *told, unsigned osc52)
{
    const char *const env[] = {"TMUX", "STY", more, NULL};
    struct ptyrig r;
    start_env(&r, 24, 80, rows, env);
    must_show(&r, "ASKS YOU");
    rig_type(&r, "2vky");
    must_show(&r, told);
    must_be_clean(&r);
    assert_int_equal(r.judge.osc[0], osc52);
    rig_type(&r, "1"); /* what is said goes with the next key */
    same_as_fresh(&r);
    rig_type(&r, "qq");
    must_end(&r, AT_ONCE);
    rig_stop(&r);
}

/* What fills the screen, the palette, standing still, and the output alone. */
static void test_whole_screens(void **state)
{
    (void)state;
    struct ptyrig r;
    start(&r, 24, 80);
    rig_type(&r, "W");
    must_show(&r, "= wall =");
    rig_type(&r, ":wall\r");
    must_show(&r, "LAST LINE");
    rig_type(&r, "Z");
    must_show(&r, "FROZEN");
    rig_type(&r, "nD");
    rig_type(&r, "Z");
    assert_true(rig_wait_gone(&r, "FROZEN", SOON));
    rig_type(&r, "\033l");
    assert_true(rig_wait_gone(&r, "LAST LINE", SOON));
    assert_true(rig_wait_gone(&r, "----", SOON));
    rig_type(&r, "\033l");
    must_show(&r, "LAST LINE");
    rig_type(&r, ">");
    must_show(&r, "sorted by name");
    rig_type(&r, "q");
    must_end(&r, AT_ONCE);
    rig_stop(&r);
}

static void test_copy(void **state)
{
    (void)state;
    copies_by("A=B", "sent 48 bytes by OSC 52", 1);
    copies_by("STY=1.x", "sent 48 bytes by OSC 52", 1);
    /* no server of that name: on with the next channel, in tmux's wrapping */
    copies_by("TMUX=/nonexistent/socket,1,0", "sent 48 bytes by OSC 52", 1);
    copies_by("TERM=linux", "could not be copied", 0);
}

/* An editor has the terminal, text goes there and back; nothing of it stays behind. */
static void test_editor(void **state)
{
    (void)state;
    char dir[] = "/tmp/screen-edit-XXXXXX";
    assert_non_null(mkdtemp(dir));
    char *run = xasprintf("CC_TUI_RUNTIME_DIR=%s", dir);
    const char *const env[] = {run,
                               "VISUAL=sh -c 'stty -a | grep -q \" icanon\" && echo IT READS; "
                               "read x; printf \"%s and $x\n\" \"$(cat \"$1\")\" > \"$1\"' edit",
                               NULL};
    struct ptyrig r;
    start_env(&r, 24, 80, rows, env);
    must_show(&r, "ASKS YOU");
    rig_type(&r, "ifirst\030\005");
    must_show(&r, "IT READS");
    assert_false(r.judge.alt || r.judge.paste || r.judge.focus);
    rig_type(&r, "more\r");
    must_show(&r, "first and more");
    must_show(&r, "ASKS YOU");
    assert_true(r.judge.alt && r.judge.paste && r.judge.focus);
    rig_type(&r, "\003\003");
    rig_wait_quiet(&r, 50, SOON);
    rig_type(&r, "q");
    must_end(&r, AT_ONCE);
    rig_stop(&r);
    if (rmdir(dir) != 0) /* its file is gone */
        fail_msg("%s is not empty", dir);
    free(run);
}

/* A command of the user has the terminal until it ends and Enter is pressed; what is pasted with
 * its line's end runs nothing. */
static void test_command_here(void **state)
{
    (void)state;
    struct ptyrig r;
    start(&r, 24, 80);
    must_show(&r, "ASKS YOU");
    rig_type(&r, ":");
    must_show(&r, "> ");
    rig_type(&r, "!echo never-$((1 + 1))\r");
    must_show(&r, "this key counts only");
    rig_type(&r, ":");
    must_show(&r, "> ");
    rig_type(&r, "!echo here-$((40 + 2)); stty -a | grep ' icanon'; false");
    must_show(&r, "icanon'; false");
    rig_wait_quiet(&r, 50, SOON);
    rig_type(&r, "\r");
    must_show(&r, "here-42");
    must_show(&r, "[status 1] back by Enter");
    assert_false(r.judge.alt || r.judge.paste || r.judge.focus);
    rig_type(&r, "\r");
    must_show(&r, "ASKS YOU");
    assert_true(r.judge.alt && r.judge.paste && r.judge.focus);
    char *screen = rig_screen(&r);
    assert_null(strstr(screen, "never-2"));
    free(screen);
    rig_type(&r, ":");
    must_show(&r, "> ");
    rig_type(&r, "!trap 'exit 3' INT; echo up-$((1 + 1)); read x");
    must_show(&r, "; read x");
    rig_wait_quiet(&r, 50, SOON);
    rig_type(&r, "\r");
    must_show(&r, "up-2");
    rig_type(&r, "\003"); /* for the command, not for us */
    must_show(&r, "[status 3] back by Enter");
    rig_type(&r, "\r");
    must_show(&r, "ASKS YOU");
    rig_type(&r, "q");
    must_end(&r, AT_ONCE);
    rig_stop(&r);
}

/* On request alone; after an absence it is on again, at the end it is off. */
static void test_mouse(void **state)
{
    (void)state;
    struct ptyrig r;
    start(&r, 24, 80);
    r.judge.may_mouse = true;
    assert_false(r.judge.mouse);
    rig_type(&r, "\033[<0;10;4M"); /* not asked for: nothing */
    rig_wait_quiet(&r, 100, SOON);
    assert_true(rig_wait_row(&r, 2, " > ?", true, SOON));
    rig_type(&r, "\033m");
    must_show(&r, "mouse on");
    assert_true(r.judge.mouse);
    rig_type(&r, "\033[<0;10;4M\033[<0;10;4m");
    assert_true(rig_wait_row(&r, 3, " > *", true, SOON));
    rig_type(&r, "\033[<64;10;4M\033[<35;9;9M\033[<4;9;3M\033[<0;999;999M\033[<0;0;0M");
    assert_true(rig_wait_row(&r, 2, " > ?", true, SOON));
    rig_type(&r, "\033m");
    must_show(&r, "mouse off");
    assert_false(r.judge.mouse);
    rig_type(&r, "\033m");
    must_show(&r, "mouse on");
    rig_type(&r, "q");
    must_end(&r, AT_ONCE);
    rig_stop(&r);
}

static int spawn_self(int argc, char **argv)
{
    if (argc < 3 || strcmp(argv[1], "--screen") != 0)
        return -1;
    if (argv[2][0] != '@')
        return run_screen(argv[2]);
    FILE *f = fopen(argv[2] + 1, "r");
    struct buf b = BUF_INIT;
    char chunk[65536];
    size_t n;
    while (f && (n = fread(chunk, 1, sizeof(chunk), f)) > 0)
        buf_add(&b, chunk, n);
    return run_screen(buf_str(&b));
}

int main(int argc, char **argv)
{
    int rc = spawn_self(argc, argv);
    if (rc >= 0)
        return rc;
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[n > 0 ? n : 0] = 0;
    self = path;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_screen_and_quit),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_crash),
        cmocka_unit_test(test_hang_up),
        cmocka_unit_test(test_shell), cmocka_unit_test(test_suspend),
        cmocka_unit_test(test_odd_sizes), cmocka_unit_test(test_size_there_and_back),
        cmocka_unit_test(test_size_and_region),
        cmocka_unit_test(test_resize_storm),
        cmocka_unit_test(test_stuck_line),
        cmocka_unit_test(test_terminals),
        cmocka_unit_test(test_refused_terminals),
        cmocka_unit_test(test_ascii_locale),
        cmocka_unit_test(test_hostile_output),
        cmocka_unit_test(test_writes_and_silence),
        cmocka_unit_test(test_scrolling),
        cmocka_unit_test(test_whole_screens),
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_mouse),
        cmocka_unit_test(test_editor),
        cmocka_unit_test(test_command_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
