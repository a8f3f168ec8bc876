/* The whole program by keys alone: cc-tui --local on a pseudo terminal, with places of its
 * own; create, talk, kill, and look that all is gone. */
#include "../lib/ptyrig.h"

#include <cct/util/xalloc.h>
#include <ftw.h>
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

enum { SOON = 20000, AT_ONCE = 2500 };

static char dir[] = "/tmp/cct-live.XXXXXX";
static char *binary;
static char *env_text[8];

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *f)
{
    (void)st;
    (void)flag;
    (void)f;
    return remove(path);
}

static int set_up(void **state)
{
    static const char *const names[] = {"DATA", "CONFIG", "STATE", "RUNTIME"};
    (void)state;
    if (!mkdtemp(dir))
        return -1;
    for (int i = 0; i < 4; i++) {
        char *path = xasprintf("%s/%s", dir, names[i]);
        mkdir(path, 0700);
        env_text[i] = xasprintf("CC_TUI_%s_DIR=%s", names[i], path);
        free(path);
    }
    return 0;
}

/* The provider lives on after the screen: it is ended by its own command. */
static int tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        putenv(env_text[i]);
    char *command = xasprintf("%s local stop --yes >/dev/null 2>&1", binary);
    int rc = system(command);
    (void)rc;
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(command);
    return 0;
}

static void start(struct ptyrig *r, int h, int w)
{
    char *argv[] = {binary, (char *)"--local", NULL};
    const char *env[] = {"TERM=xterm-256color", "LC_ALL=C.UTF-8", "SSH_CONNECTION", "COLUMNS",
                         "LINES", "E2B_API_KEY", env_text[0], env_text[1], env_text[2],
                         env_text[3], NULL};
    rig_start(r, h, w, argv, env);
}

static void must_show(struct ptyrig *r, const char *text, int ms)
{
    if (!rig_wait(r, text, ms)) {
        char *s = rig_screen(r);
        fputs(s, stderr); /* longer than what cmocka prints */
        fail_msg("'%s' does not come", text);
    }
}

/* The status also tells what a sanitizer found in the program. */
static void end(struct ptyrig *r, int status)
{
    if (!rig_wait_exit(r, AT_ONCE))
        fail_msg("still running");
    if (!WIFEXITED(r->status) || WEXITSTATUS(r->status) != status) {
        char *s = rig_screen(r);
        fputs(s, stderr);
        fail_msg("ended with %x, want exit status %d", (unsigned)r->status, status);
    }
    const char *why = rig_not_restored(r);
    if (why)
        fail_msg("%s", why);
    if (r->judge.bad[0])
        fail_msg("on the wire: %s", r->judge.bad);
    rig_stop(r);
}

/* The key counts when it comes by itself: a hand is slow enough, this program is not. */
static void answer(struct ptyrig *r, const char *key, const char *text)
{
    for (int left = SOON; !rig_wait(r, text, 100) && left > 0; left -= 100)
        rig_type(r, key);
    must_show(r, text, AT_ONCE);
}

static void test_by_keys_alone(void **state)
{
    (void)state;
    struct ptyrig r;
    start(&r, 24, 80);
    must_show(&r, "cc-tui", SOON);
    must_show(&r, "local ok", SOON);
    rig_type(&r, "n");
    must_show(&r, "new sandbox", SOON);
    rig_type(&r, "tried-out\033s");
    must_show(&r, "tried-out", SOON);
    must_show(&r, "idle", SOON);
    rig_type(&r, "/tried-out\r2");
    rig_type(&r, "irun uname -a\r");
    must_show(&r, "Linux", SOON);
    must_show(&r, "exit status 0", SOON);
    rig_type(&r, "\033");
    must_show(&r, "NAV", SOON);
    rig_type(&r, "K");
    must_show(&r, "y  kill ", SOON);
    answer(&r, "y", "proved by a new list");
    rig_type(&r, "\033");
    rig_wait_gone(&r, "proved by", SOON);
    rig_type(&r, "1\033");
    assert_true(rig_wait_gone(&r, "filter:", SOON));
    must_show(&r, "killed", SOON);
    rig_type(&r, "q");
    end(&r, 0);
}

/* What was said is still there in a new start, and the list knows what is gone. */
static void test_comes_back(void **state)
{
    (void)state;
    struct ptyrig r;
    start(&r, 40, 120);
    must_show(&r, "tried-out", SOON);
    must_show(&r, "killed", SOON);
    rig_type(&r, "G");
    must_show(&r, "Linux", SOON);
    kill(r.pid, SIGTERM);
    end(&r, 143);
}

static void test_closed_terminal(void **state)
{
    (void)state;
    struct ptyrig r;
    start(&r, 24, 80);
    must_show(&r, "local ok", SOON);
    rig_hang_up(&r);
    assert_true(rig_wait_exit(&r, AT_ONCE));
    rig_stop(&r);
}

int main(void)
{
    const char *b = getenv("B");
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[n > 0 ? n : 0] = 0;
    char *tests_dir = strstr(path, "/tests/e2e/");
    if (tests_dir)
        *tests_dir = 0; /* the build folder */
    binary = xasprintf("%s/cc-tui", tests_dir ? path : b ? b : "build/debug");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_keys_alone),
        cmocka_unit_test(test_comes_back),
        cmocka_unit_test(test_closed_terminal),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
