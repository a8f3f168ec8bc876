/* cc-tui shell on a real terminal and between pipes, with the local provider: what is typed and
 * shown, sizes, pastes, ends, leaving and coming back, losses; the terminal afterwards. */
#include "../lib/ptyrig.h"

#include <cct/util/buf.h>
#include <cct/util/cksum.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SOON = 20000, PASTE = 1 << 20 };

static char *binary, root[] = "/tmp/test-shell.XXXXXX";
static struct ptyrig rig;

/* --- the program ------------------------------------------------------------------ */

/* By a shell line, BIN stands for the program; what it printed, its status in *status. */
static char *run(const char *line, int *status)
{
    struct buf b = BUF_INIT;
    char *cmd = xasprintf("BIN='%s --local'; %s", binary, line), piece[4096];
    FILE *f = popen(cmd, "r");
    size_t n;
    int st;

    while ((n = fread(piece, 1, sizeof(piece), f)) > 0)
        buf_add(&b, piece, n);
    st = pclose(f);
    free(cmd);
    if (status)
        *status = WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st);
    return buf_detach(&b, NULL);
}

static void must_print(const char *line, const char *text, int status)
{
    int st;
    char *out = run(line, &st);

    if (strcmp(out, text) != 0 || st != status)
        fail_msg("%s: status %d, printed '%s', not '%s'", line, st, out, text);
    free(out);
}

static int set_up(void **state)
{
    static const char *const names[] = {"DATA", "CONFIG", "STATE", "RUNTIME"};
    char *out;
    int st;

    (void)state;
    if (!mkdtemp(root))
        return -1;
    for (int i = 0; i < 4; i++) {
        char *name = xasprintf("CC_TUI_%s_DIR", names[i]), *path = xasprintf("%s/%s", root, names[i]);
        mkdir(path, 0700);
        setenv(name, path, 1);
        free(name);
        free(path);
    }
    setenv("HOME", root, 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    out = run("$BIN new --tool shell --name box --timeout 10m && $BIN ls -q", &st);
    free(out);
    return st;
}

static int tear_down(void **state)
{
    char *cmd = xasprintf("rm -rf %s", root);

    (void)state;
    free(run("$BIN local stop --yes 2>&1", NULL));
    free(run(cmd, NULL));
    free(cmd);
    free(binary);
    return 0;
}

static void start(const char *const more[])
{
    char *argv[16] = {binary, (char *)"--local", (char *)"shell", (char *)"box"};
    const char *env[] = {"TERM=xterm-256color", "LANG=C.UTF-8", "COLUMNS", "LINES", NULL};
    size_t n = 4;

    while (more && *more)
        argv[n++] = (char *)*more++;
    rig_start(&rig, 24, 80, argv, env);
}

static void shows(const char *text)
{
    if (!rig_wait(&rig, text, SOON)) {
        char *s = rig_screen(&rig);
        fputs(s, stderr);
        fail_msg("'%s' does not come", text);
    }
}

/* Ends with that status, the terminal as before. */
static void ends(int status)
{
    const char *wrong;

    assert_true(rig_wait_exit(&rig, SOON));
    if (!WIFEXITED(rig.status) || WEXITSTATUS(rig.status) != status)
        fail_msg("ended with %x, not %d", (unsigned)rig.status, status);
    wrong = rig_not_restored(&rig);
    if (wrong)
        fail_msg("%s", wrong);
    rig_stop(&rig);
}

static int process_shown(void)
{
    char *s = rig_screen(&rig), *at = strstr(s, "--process ");
    int pid = at ? (int)strtol(at + 10, NULL, 10) : 0;

    free(s);
    assert_true(pid > 0);
    return pid;
}

/* --- tests ------------------------------------------------------------------------ */

static void test_echo_size_and_status(void **state)
{
    (void)state;
    start(NULL);
    shows("a shell in box; Ctrl-] leaves it running");
    rig_type(&rig, "echo a$((20+2))b $TERM; stty size\r");
    shows("a22b xterm-256color");
    shows("24 80");
    rig_resize(&rig, 30, 100);
    rig_type(&rig, "until [ \"$(stty size)\" = '30 100' ]; do :; done; echo is-\"$(stty size)\"-now\r");
    shows("is-30 100-now");
    rig_type(&rig, "sh -c 'trap \"exit 9\" INT; echo sl\"\"eeps; while :; do sleep 0.05; done'; echo st$?\r");
    shows("sleeps");
    rig_type(&rig, "\003"); /* ^C goes there */
    shows("st9");
    rig_type(&rig, "exit 7\r");
    ends(7);
    start((const char *const[]){"--", "sh", "-c", "kill -9 $$", NULL});
    ends(137);
    start((const char *const[]){"--", "no-such-program", NULL});
    ends(127);
}

/* A terminal type that nobody there knows is replaced, a variable goes along. */
static void test_environment(void **state)
{
    char *argv[] = {binary, (char *)"--local", (char *)"shell", (char *)"box", (char *)"-e",
                    (char *)"WORD=one two", (char *)"--", (char *)"sh", (char *)"-c",
                    (char *)"echo \"<$TERM|$LANG|$WORD|${CC_TUI_START-gone}>\"", NULL};
    const char *env[] = {"TERM=xterm-nobody-knows", "LANG=xx_YY.UTF-8", NULL};

    (void)state;
    rig_start(&rig, 24, 80, argv, env);
    shows("<xterm-256color|C.UTF-8|one two|gone>");
    ends(0);
}

static void test_paste(void **state)
{
    char *text = xmalloc(PASTE), *want;
    uint32_t crc;

    (void)state;
    srand(7);
    for (size_t i = 0; i < PASTE; i++)
        text[i] = i % 71 == 70 ? '\n' : (char)(' ' + rand() % 95);
    crc = cksum_end(cksum_add(0, text, PASTE), PASTE);
    want = xasprintf("%u %u", crc, PASTE);
    start((const char *const[]){"--", "sh", "-c",
                                "stty raw -echo; echo ready; sleep 0.3; head -c 1048576 | cksum", NULL});
    shows("ready");
    for (size_t at = 0; at < PASTE; at += 32 << 10)
        rig_send(&rig, text + at, 32 << 10);
    shows(want);
    ends(0);
    free(want);
    free(text);
}

static void test_leave_and_come_back(void **state)
{
    char number[16];

    (void)state;
    start(NULL);
    rig_type(&rig, "x=41; printf '\\033[?1049h\\033[?2004h\\033[?1004h\\033[?25lfull\\040screen'\r");
    shows("full screen");
    assert_true(rig.judge.alt);
    rig_type(&rig, "\035");
    shows("comes back");
    snprintf(number, sizeof(number), "%d", process_shown());
    ends(0);
    start((const char *const[]){"--process", number, NULL});
    rig_type(&rig, "\rprintf '\\033[?1049l\\033[?25h'; echo it-is-$((x+1))\r");
    shows("it-is-42");
    /* the key inside of a paste is text, in the protocol of keyboards it is the key */
    rig_type(&rig, "\033[200~# a\035b\033[201~\r");
    rig_type(&rig, "echo still-$x\r");
    shows("still-41");
    rig_type(&rig, "\033[93;5u");
    shows("comes back");
    ends(0);
    start((const char *const[]){"--process", number, NULL});
    rig_type(&rig, "exit 3\r");
    ends(3);
    start((const char *const[]){"--process", "99999", NULL});
    shows("no process 99999 runs in the sandbox");
    ends(5);
}

/* A flood that is not read for a while stops at its source; then keys count at once. */
static void test_flood(void **state)
{
    (void)state;
    start(NULL);
    rig_type(&rig, "yes a-long-line-that-says-yes-a-long-line-$((1+1))\r");
    shows("long-line-2");
    rig_type(&rig, "\003");
    shows("^C");
    rig_type(&rig, "\recho st$((2+1))\r");
    shows("st3");
    rig_type(&rig, "yes a-line-$((1+1))\r");
    shows("a-line-2");
    rig_type(&rig, "\035");
    assert_true(rig_wait_exit(&rig, SOON));
    assert_int_equal(WEXITSTATUS(rig.status), 0);
    assert_null(rig_not_restored(&rig));
    rig_stop(&rig);
}

/* A process on pipes, come back to from a terminal. */
static void test_other_kind(void **state)
{
    char number[16];
    char *pid;

    (void)state;
    free(run("(sleep 20 | $BIN shell box -- sh -c 'echo $$ >~/p; while read a; do echo got-$a; done'; "
             ":) >/dev/null 2>&1 & echo", NULL));
    for (pid = run("$BIN shell box -- cat p </dev/null 2>/dev/null", NULL); !*pid;
         pid = run("$BIN shell box -- cat p </dev/null 2>/dev/null", NULL))
        free(pid);
    snprintf(number, sizeof(number), "%d", (int)strtol(pid, NULL, 10));
    free(pid);
    start((const char *const[]){"--process", number, NULL});
    shows("Ctrl-] leaves it");
    rig_type(&rig, "line\n");
    shows("got-line");
    rig_type(&rig, "\035");
    ends(0);
}

/* The screen, with a real sandbox: a shell, files, changes. */
static void test_from_the_screen(void **state)
{
    char *argv[] = {binary, (char *)"--local", NULL};
    const char *env[] = {"TERM=xterm-256color", "LANG=C.UTF-8", "COLUMNS", "LINES", NULL};

    (void)state;
    rig_start(&rig, 24, 80, argv, env);
    shows("box> press i");
    shows("local ok");
    rig_type(&rig, "secho ahead-$((40+2))\r"); /* at once: what stands behind is the shell's */
    shows("a shell in box; Ctrl-] leaves it running");
    shows("ahead-42");
    rig_type(&rig, "mkdir d; echo content-$((1+1)) >d/file; git init -q d; stty size\r");
    shows("24 80");
    rig_resize(&rig, 30, 100);
    rig_type(&rig, "until [ \"$(stty size)\" = '30 100' ]; do :; done; exit 4\r");
    shows("the shell in box ended with status 4");
    rig_type(&rig, "O");
    shows("d/");
    rig_type(&rig, "\r");
    shows("/d ");
    rig_type(&rig, "\r");
    shows("content-2");
    rig_type(&rig, "\033");
    rig_wait_quiet(&rig, 150, 2000);
    rig_type(&rig, "q");
    shows("press i to type");
    rig_type(&rig, "v");
    shows("newer                  d/file");
    rig_type(&rig, "qq");
    ends(0);
}

static void test_ends_of_ours(void **state)
{
    static const int sigs[] = {SIGTERM, SIGSEGV};

    (void)state;
    for (int i = 0; i < 2; i++) {
        start(NULL);
        rig_type(&rig, "printf '\\033[?1049h\\033[?1002h\\033[?2004hon-the-\\157ther'\r");
        shows("on-the-other");
        kill(rig.pid, sigs[i]);
        assert_true(rig_wait_exit(&rig, SOON));
        assert_null(rig_not_restored(&rig));
        assert_false(rig.judge.mouse);
        if (WIFEXITED(rig.status)) /* a sanitizer makes an exit of a crash */
            assert_true(i == 1 || WEXITSTATUS(rig.status) == 143);
        rig_stop(&rig);
    }
    start(NULL);
    shows("leaves it running");
    rig_hang_up(&rig);
    assert_true(rig_wait_exit(&rig, SOON));
    assert_true(WIFEXITED(rig.status) && WEXITSTATUS(rig.status) == 129);
    rig_stop(&rig);
}

static void test_pipes(void **state)
{
    (void)state;
    must_print("printf 'a\\000b\\377' | $BIN shell box -- cat | od -An -tx1 | tr -d ' '", "610062ff\n", 0);
    must_print("echo 'echo out; echo err >&2; exit 5' | $BIN shell box 2>/dev/null", "out\n", 5);
    must_print("$BIN shell box -- sh -c 'echo out; echo err >&2' </dev/null 2>&1 >/dev/null", "err\n", 0);
    must_print("$BIN shell box -- sh -c 'kill -15 $$' </dev/null", "", 143);
    must_print("head -c 3000000 /dev/zero | $BIN shell box -- wc -c", "3000000\n", 0);
    must_print("$BIN shell box -- head -c 3000000 /dev/zero </dev/null | wc -c", "3000000\n", 0);
    /* a reader that goes ends the command there, too */
    must_print("$BIN shell box -- sh -c 'echo $$ >/tmp/pid; exec yes' </dev/null | head -n 1", "y\n", 0);
    must_print("$BIN shell box -- sh -c 'while kill -0 $(cat /tmp/pid) 2>/dev/null; do :; done; "
               "echo gone' </dev/null", "gone\n", 0);
}

static void test_refusals(void **state)
{
    (void)state;
    must_print("$BIN shell box ls 2>&1 | grep -c \"stands behind '--'\"", "1\n", 0);
    must_print("$BIN --readonly shell box </dev/null 2>&1 | grep -c readonly", "1\n", 0);
    must_print("$BIN shell nobody </dev/null 2>/dev/null", "", 5);
    free(run("$BIN pause box", NULL));
    must_print("$BIN shell box </dev/null 2>&1", "cc-tui: \"box\" is paused: resume it first, "
               "'cc-tui resume box'\n", 1);
    must_print("$BIN ls --json | grep -c '\"state\":\"paused\"'", "1\n", 0);
    free(run("$BIN resume box", NULL));
}

/* The provider dies in the middle; another one takes its sandboxes over. */
static void test_loss(void **state)
{
    (void)state;
    start(NULL);
    rig_type(&rig, "x=5; echo before-$x\r");
    shows("before-5");
    free(run("kill -9 $($BIN local status --json | sed 's/.*\"pid\":\\([0-9]*\\).*/\\1/')", NULL));
    shows("connection lost, trying again");
    shows("connected again; output between");
    rig_type(&rig, "\recho after-$x\r");
    shows("after-5");
    rig_type(&rig, "exit 4\r");
    ends(4);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_echo_size_and_status), cmocka_unit_test(test_environment),
        cmocka_unit_test(test_paste), cmocka_unit_test(test_leave_and_come_back),
        cmocka_unit_test(test_flood), cmocka_unit_test(test_other_kind),
        cmocka_unit_test(test_from_the_screen), cmocka_unit_test(test_ends_of_ours), cmocka_unit_test(test_pipes),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_loss),
    };
    const char *b = getenv("B");
    char *path;

    (void)argc;
    (void)argv;
    path = xasprintf("%s/cc-tui", b ? b : "build/debug");
    binary = realpath(path, NULL);
    free(path);
    unsetenv("E2B_API_KEY");
    unsetenv("E2B_API_URL");
    unsetenv("E2B_SANDBOX_URL");
    unsetenv("NO_COLOR");
    unsetenv("SSH_CONNECTION");
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
