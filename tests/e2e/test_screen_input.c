/* Typing on a real pseudo terminal: pastes of any size in any pieces, drafts over a quit.
 * This program starts itself with --screen, over a facade that writes down what is sent. */
#include "../lib/ptyrig.h"
#include "../lib/screenscript.h"
#include "../lib/tmpdir.h"

#include <cct/util/fs.h>
#include <cct/util/limits.h>
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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static const char *self;
static char dir[64];
static const char rows[] = "link ok cloud\nloaded\nrow 1 one claude running idle\n"
                           "row 2 two codex running working\n";

enum { SOON = 10000 };

static char *at(const char *name)
{
    return fs_join(dir, name);
}

/* --- the program on the pty --------------------------------------------------------- */

static void rest(void *arg)
{
    (void)arg;
    for (;;)
        pause();
}

static int run_screen(void)
{
    struct script s;
    struct theme theme;
    pthread_t worker;
    sigset_t set;
    sigfillset(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    setlocale(LC_ALL, "");
    umask(0);
    script_init(&s);
    s.now = (int64_t)time(NULL) * 1000;
    script_run(&s, rows);
    theme_builtin(&theme);
    s.opts.theme = &theme;
    s.opts.drafts = getenv("RIG_DRAFTS");
    thread_start(&worker, THREAD_WORK, "worker", rest, NULL);
    int rc = ui_run(s.app, &s.opts);
    FILE *f = fopen(getenv("RIG_CALLS"), "w");
    if (f) {
        fwrite(s.app->calls.p, 1, s.app->calls.len, f);
        fclose(f);
    }
    _exit(rc);
}

static void start(struct ptyrig *r)
{
    char *argv[] = {(char *)self, (char *)"--screen", NULL};
    char *state = at("state/drafts.json"), *calls_to = at("calls");
    char *drafts = xasprintf("RIG_DRAFTS=%s", state), *calls = xasprintf("RIG_CALLS=%s", calls_to);
    const char *env[] = {"TERM=xterm-256color", "LC_ALL=C.UTF-8", "SSH_CONNECTION", "COLUMNS",
                         "LINES", "NO_COLOR", drafts, calls, NULL};
    rig_start(r, 24, 80, argv, env);
    free(state);
    free(calls_to);
    free(drafts);
    free(calls);
    assert_true(rig_wait(r, "two", SOON));
}

/* Its end; what the facade was asked for. New string. */
static char *stop(struct ptyrig *r)
{
    char *path = at("calls");
    size_t len;
    assert_true(rig_wait_exit(r, SOON));
    rig_stop(r);
    char *text = fs_read(path, 1 << 20, false, &len, NULL);
    free(path);
    assert_non_null(text);
    return text;
}

static void must_show(struct ptyrig *r, const char *text)
{
    if (rig_wait(r, text, SOON))
        return;
    char *s = rig_screen(r);
    print_message("%s", s);
    free(s);
    fail_msg("not shown: %s", text);
}

static void leave(struct ptyrig *r)
{
    must_show(r, "INPUT");
    rig_type(r, "\033");
    must_show(r, "NAV");
}

static int setup(void **state)
{
    (void)state;
    return tmpdir_make(dir, sizeof(dir), "input");
}

static int teardown(void **state)
{
    (void)state;
    return tmpdir_remove(dir);
}

/* --- pastes ------------------------------------------------------------------------- */

/* Lines of text with what looks like keys, up to len bytes. */
static void fill(struct buf *b, size_t len)
{
    static const char piece[] = "Kq D y: q!\tthe quick brown f\xc3\xb6x, line";
    while (b->len + sizeof(piece) + 8 < len)
        buf_addf(b, "%s %zu\n", piece, b->len % 1000);
    while (b->len < len)
        buf_addc(b, 'x');
}

static void paste(struct ptyrig *r, const struct buf *text, size_t piece)
{
    rig_type(r, "\033[200~");
    for (size_t i = 0; i < text->len; i += piece)
        rig_send(r, text->p + i, text->len - i < piece ? text->len - i : piece);
    rig_type(r, "\033[201~");
}

static void paste_whole(size_t piece)
{
    struct ptyrig r = {0};
    struct buf text = BUF_INIT;
    fill(&text, LIM_MESSAGE_BYTES);
    start(&r);
    rig_type(&r, "i");
    must_show(&r, "INPUT");
    paste(&r, &text, piece);
    must_show(&r, "[pasted ");
    must_show(&r, "65536 of 65536 bytes");
    rig_type(&r, "\r");
    assert_true(rig_wait_gone(&r, "[pasted ", SOON));
    leave(&r);
    rig_type(&r, "q");
    char *calls = stop(&r), *want = xasprintf("call send 1 %s\n", buf_str(&text));
    if (strcmp(calls, want) != 0)
        fail_msg("%zu bytes were sent, not %zu", strlen(calls), strlen(want));
    free(calls);
    free(want);
    buf_release(&text);
}

static void test_paste_whole(void **state)
{
    static const size_t pieces[] = {3, 100, 4096, 70000};
    (void)state;
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
        paste_whole(pieces[i]);
}

/* One byte too much, and far too much: nothing of it is taken, and it is said. */
static void test_paste_refused(void **state)
{
    static const size_t sizes[] = {LIM_MESSAGE_BYTES + 1, 4 * LIM_MESSAGE_BYTES + 10};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct ptyrig r = {0};
        struct buf text = BUF_INIT;
        fill(&text, sizes[i]);
        start(&r);
        rig_type(&r, "ikept");
        must_show(&r, "one> kept");
        paste(&r, &text, 4096);
        must_show(&r, i ? "nothing was taken: the paste" : "nothing was pasted: 65537 bytes");
        rig_type(&r, "!\r");
        assert_true(rig_wait_gone(&r, "one> kept", SOON));
        leave(&r);
        rig_type(&r, "q");
        char *calls = stop(&r);
        assert_string_equal(calls, "call send 1 kept!\n");
        free(calls);
        buf_release(&text);
    }
}

/* --- drafts ------------------------------------------------------------------------- */

static void assert_private(const char *name)
{
    struct stat st;
    char *path = at(name);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 077, 0);
    free(path);
}

static void test_drafts(void **state)
{
    struct ptyrig r = {0};
    char *calls;
    (void)state;
    start(&r);
    rig_type(&r, "ifirst draft");
    must_show(&r, "one> first draft");
    leave(&r);
    rig_type(&r, "ji");
    must_show(&r, "two>");
    rig_type(&r, "second\nline");
    must_show(&r, "\n     line");
    kill(r.pid, SIGTERM); /* in the middle of it */
    free(stop(&r));
    assert_private("state/drafts.json");
    assert_private("state");
    start(&r);
    must_show(&r, "one> first draft");
    rig_type(&r, "j");
    must_show(&r, "two> second");
    rig_type(&r, "i");
    must_show(&r, "INPUT");
    rig_type(&r, "\r");
    assert_true(rig_wait_gone(&r, "second", SOON));
    rig_hang_up(&r);
    calls = stop(&r);
    assert_string_equal(calls, "call send 2 second\nline\n");
    free(calls);
    start(&r); /* what was sent is no draft any more */
    must_show(&r, "one> first draft");
    rig_type(&r, "j");
    must_show(&r, "two>");
    assert_true(rig_wait_gone(&r, "second", SOON));
    rig_type(&r, "q");
    free(stop(&r));
}

/* A file that is no such file costs nothing but the drafts. */
static void test_bad_drafts(void **state)
{
    struct ptyrig r = {0};
    char *folder = at("state"), *path = at("state/drafts.json");
    (void)state;
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(fs_write_private(path, "{\"drafts\":[{\"for\":1},7", 22, NULL), 0);
    start(&r);
    rig_type(&r, "inew");
    must_show(&r, "one> new");
    leave(&r);
    rig_type(&r, "q");
    free(stop(&r));
    start(&r);
    must_show(&r, "one> new");
    rig_type(&r, "q");
    free(stop(&r));
    free(folder);
    free(path);
}

int main(int argc, char **argv)
{
    static char path[4096];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_paste_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(test_paste_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_drafts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_drafts, setup, teardown),
    };
    if (argc > 1 && strcmp(argv[1], "--screen") == 0)
        return run_screen();
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[n > 0 ? n : 0] = 0;
    self = path;
    return cmocka_run_group_tests_name("screen input", tests, NULL, NULL);
}
