/* See screenrig.h. */
#include "screenrig.h"

#include "screenscript.h"

#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <locale.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char self[4096];
const char screenrig_rows[] = "link ok cloud\nloaded\ntool claude base\n"
                           "row 1 fix-login claude running asks last=Run it?\n"
                           "row 2 api-tests codex running working\n"
                           "row 3 spike-wasm pi paused unknown\n"
                           "lines 1 30 words and more words\n";
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
static int run_file(const char *path)
{
    FILE *f = fopen(path, "r");
    struct buf b = BUF_INIT;
    char chunk[65536];
    size_t n;
    while (f && (n = fread(chunk, 1, sizeof(chunk), f)) > 0)
        buf_add(&b, chunk, n);
    return run_screen(buf_str(&b));
}

void screenrig_begin(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--screen") == 0)
        exit(argv[2][0] == '@' ? run_file(argv[2] + 1) : run_screen(argv[2]));
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[n > 0 ? n : 0] = 0;
}

const char *screenrig_self(void)
{
    return self;
}

/* --- starting it ------------------------------------------------------------------------- */

void screenrig_start_with(struct ptyrig *r, int h, int w, const char *script,
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
void screenrig_start(struct ptyrig *r, int h, int w)
{
    screenrig_start_with(r, h, w, screenrig_rows, NULL);
    assert_true(rig_wait(r, "fix-login", SOON));
}
void screenrig_shows(struct ptyrig *r, const char *text)
{
    if (!rig_wait(r, text, SOON)) {
        char *s = rig_screen(r);
        print_message("%s", s);
        fail_msg("'%s' does not come", text);
    }
}
void screenrig_is_clean(struct ptyrig *r)
{
    if (r->judge.bad[0])
        fail_msg("on the wire: %s", r->judge.bad);
}
void screenrig_ends(struct ptyrig *r, int ms)
{
    if (!rig_wait_exit(r, ms))
        fail_msg("still running after %d ms", ms);
    const char *why = rig_not_restored(r);
    if (why)
        fail_msg("%s", why);
    screenrig_is_clean(r);
}
void screenrig_quit(struct ptyrig *r, int ms)
{
    rig_type(r, "q");
    screenrig_ends(r, ms);
    rig_stop(r);
}
void screenrig_same_as_fresh(struct ptyrig *r)
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
