/* The screen on a disk that does not answer, as a server that is gone: with a recording, with the
 * database. Keys count, the size changes, and it ends. The program runs under a filter that holds
 * its calls. */
#include "../lib/heldread.h"
#include "../lib/ptyrig.h"
#include "../lib/runcmd.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SOON = 20000, PIECE = 16384, /* what is read of a recording at once */ NO_FILTER = 77 };
static char hold[] = "--hold", syncs[] = "syncs", tool[] = "pi";
static const char recording[] = "tests/fixtures/recordings/pi-bigout.jsonl";
static char *self, *program;
static struct runcmd home;

/* In the place of the program: holds its reads of that length, from an offset on, or all that makes
 * certain that something is written, and becomes it. */
static int become(char **argv)
{
    struct heldread h = {.fd = -1, .len = PIECE, .from = (uint32_t)atoi(argv[0]),
                         .syncs = str_eq(argv[0], syncs)};

    if (!heldread_install(&h, 1))
        return NO_FILTER;
    execv(argv[1], argv + 1);
    return 1;
}

static void start_held(struct ptyrig *r, char *const argv[])
{
    char *dir = xasprintf("HOME=%s", home.home);
    const char *env[] = {"TERM=xterm-256color", "LC_ALL=C.UTF-8", "E2B_API_KEY", "XDG_CONFIG_HOME",
                         "XDG_DATA_HOME", "XDG_STATE_HOME", dir, NULL};

    rig_start(r, 24, 80, argv, env);
    free(dir);
}

static void start(struct ptyrig *r, const char *from)
{
    char *argv[] = {self, hold, (char *)from, program, (char *)"replay", (char *)"--tool", tool,
                    (char *)recording, NULL};

    start_held(r, argv);
}

static void quit(struct ptyrig *r)
{
    rig_type(r, "q");
    assert_true(rig_wait_exit(r, SOON));
    assert_int_equal(WEXITSTATUS(r->status), 0);
    assert_null(rig_not_restored(r));
    assert_string_equal(r->judge.bad, "");
    rig_stop(r);
}

static bool no_filter(struct ptyrig *r, const char *shown)
{
    if (!rig_wait(r, shown, SOON) && r->exited &&
        WEXITSTATUS(r->status) == NO_FILTER) {
        rig_stop(r);
        return true;
    }
    return false;
}

/* Not one byte comes. */
static void test_hung_at_once(void **state)
{
    struct ptyrig r;

    (void)state;
    start(&r, "0");
    if (no_filter(&r, "REPLAY of pi-bigout.jsonl"))
        skip();
    rig_must_show(&r, "reading 0%", SOON);
    rig_type(&r, " ");
    rig_must_show(&r, "the recording is still being read", SOON);
    rig_type(&r, "?");
    rig_must_show(&r, "play, pause", SOON);
    rig_type(&r, "\033");
    assert_true(rig_wait_gone(&r, "play, pause", SOON));
    rig_resize(&r, 40, 120);
    rig_must_show(&r, "reading 0%", SOON);
    rig_type(&r, "+");
    quit(&r);
}

/* Some of it comes, and a signal ends it as a key does. */
static void test_hung_later(void **state)
{
    struct ptyrig r;

    (void)state;
    start(&r, "16384");
    if (no_filter(&r, "REPLAY of pi-bigout.jsonl"))
        skip();
    rig_must_show(&r, "reading 5%", SOON);
    rig_type(&r, "+");
    kill(r.pid, SIGTERM);
    assert_true(rig_wait_exit(&r, SOON));
    assert_int_equal(WEXITSTATUS(r.status), 128 + SIGTERM);
    assert_null(rig_not_restored(&r));
    rig_stop(&r);
}

/* The database's disk: the screen is there without its rows, and what waits for it can be given up
 * once it is closed. */
static void test_database(void **state)
{
    char *argv[] = {self, hold, syncs, program, NULL};
    struct ptyrig r;

    (void)state;
    start_held(&r, argv);
    if (no_filter(&r, "loading"))
        skip();
    rig_type(&r, "?");
    rig_must_show(&r, "new sandbox", SOON);
    rig_type(&r, "\033");
    assert_true(rig_wait_gone(&r, "find  Esc close", SOON));
    rig_type(&r, "q");
    rig_must_show(&r, "the disk does not answer", SOON);
    assert_null(rig_not_restored(&r));
    rig_type(&r, "\003");
    assert_true(rig_wait_exit(&r, SOON));
    assert_true(WIFSIGNALED(r.status) && WTERMSIG(r.status) == SIGINT);
    rig_stop(&r);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hung_at_once),
        cmocka_unit_test(test_hung_later),
        cmocka_unit_test(test_database),
    };
    const char *b = getenv("B");

    if (argc > 3 && str_eq(argv[1], hold))
        return become(argv + 2);
    self = argv[0];
    program = xasprintf("%s/cc-tui", b ? b : "build/debug");
    runcmd_init(&home);
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    runcmd_release(&home);
    free(program);
    return rc;
}
