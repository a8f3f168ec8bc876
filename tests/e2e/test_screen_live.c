/* The whole program by keys alone: cc-tui --local on a pseudo terminal, with places of its
 * own; create, talk, kill, and look that all is gone. */
#include "../lib/ptyhome.h"

#include <cct/util/fs.h>
#include <cct/util/xalloc.h>
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

enum { SOON = 20000, AT_ONCE = 2500 };

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
    ptyhome_shows(r, text, AT_ONCE);
}

static void test_by_keys_alone(void **state)
{
    (void)state;
    struct ptyrig r;
    ptyhome_start(&r, 24, 80);
    ptyhome_shows(&r, "cc-tui", SOON);
    ptyhome_shows(&r, "local ok", SOON);
    rig_type(&r, "n");
    ptyhome_shows(&r, "new sandbox", SOON);
    rig_type(&r, "tried-out\033s");
    ptyhome_shows(&r, "tried-out", SOON);
    ptyhome_shows(&r, "idle", SOON);
    rig_type(&r, "/tried-out\r2");
    rig_type(&r, "irun uname -a\r");
    ptyhome_shows(&r, "Linux", SOON);
    ptyhome_shows(&r, "exit status 0", SOON);
    rig_type(&r, "\033");
    ptyhome_shows(&r, "NAV", SOON);
    rig_type(&r, "Dyyy"); /* in one piece, as a paste without marks comes */
    ptyhome_shows(&r, "kill this sandbox?", SOON);
    rig_type(&r, "\033");
    assert_true(rig_wait_gone(&r, "kill this sandbox?", SOON));
    rig_type(&r, "K");
    ptyhome_shows(&r, "y  kill ", SOON);
    answer(&r, "y", "proved by a new list");
    rig_type(&r, "\033");
    rig_wait_gone(&r, "proved by", SOON);
    rig_type(&r, "1\033");
    assert_true(rig_wait_gone(&r, "filter:", SOON));
    ptyhome_shows(&r, "killed", SOON);
    rig_type(&r, "q");
    end(&r, 0);
}

/* What was said is still there in a new start, and the list knows what is gone. */
static void test_comes_back(void **state)
{
    (void)state;
    struct ptyrig r;
    ptyhome_start(&r, 40, 120);
    ptyhome_shows(&r, "tried-out", SOON);
    ptyhome_shows(&r, "killed", SOON);
    rig_type(&r, "G");
    ptyhome_shows(&r, "Linux", SOON);
    kill(r.pid, SIGTERM);
    end(&r, 143);
}

static void configure(const char *text)
{
    char *file = xasprintf("%s/CONFIG/cc-tui.conf", ptyhome.dir);
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
    free(file);
}

/* The file changes, a signal, a command: what was typed stays, and the keys are the new ones.
 * A second screen says that it is one. */
static void test_configured_anew(void **state)
{
    (void)state;
    struct ptyrig r, second;
    configure("");
    ptyhome_start(&r, 24, 100);
    ptyhome_shows(&r, "local ok", SOON);
    rig_type(&r, "ihalf a draft\033");
    ptyhome_shows(&r, "NAV", SOON);
    ptyhome_shows(&r, "kill all: 2 killed", SOON); /* of before: it would take the line of what comes */
    configure("[screen]\nsort = name\n[keys]\nwall = Y\n");
    ptyhome_shows(&r, "screen.sort and more changed", SOON);
    ptyhome_shows(&r, "half a draft", AT_ONCE);
    rig_type(&r, "Y");
    ptyhome_shows(&r, "= wall =", SOON);
    rig_type(&r, "Y");
    ptyhome_shows(&r, "STATE", SOON);
    rig_type(&r, ":set screen.warn_left 1m\r");
    ptyhome_shows(&r, "screen.warn_left changed", SOON);
    kill(r.pid, SIGUSR1);
    ptyhome_shows(&r, "nothing in the configuration changed", SOON);
    ptyhome_start(&second, 24, 80);
    ptyhome_shows(&second, "another cc-tui has this open", SOON);
    ptyhome_shows(&second, "NAV 2nd", AT_ONCE);
    rig_type(&second, "q");
    end(&second, 0);
    rig_type(&r, "q");
    end(&r, 0);
    configure("");
}

static void test_closed_terminal(void **state)
{
    (void)state;
    struct ptyrig r;
    ptyhome_start(&r, 24, 80);
    ptyhome_shows(&r, "local ok", SOON);
    rig_hang_up(&r);
    assert_true(rig_wait_exit(&r, AT_ONCE));
    rig_stop(&r);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { PATIENCE = 20 };
#else
enum { PATIENCE = 4 }; /* the machine has other things to do, too */
#endif

/* Fifty thousand lines a second, for five seconds or LONG=1 sixty; the last one says when
 * it was written. */
static void start_flood(void)
{
    const char *rounds = getenv("LONG") ? "600" : "50";
    char *command = xasprintf("%s --local new --tool shell --name flood -- sh -c '"
                              "sleep 4; i=0; while [ $i -lt %s ]; do "
                              "seq -f \"line %%.0f of a flood\" $((i * 5000)) $((i * 5000 + 4999)); "
                              "sleep 0.1; i=$((i + 1)); done; "
                              "echo; echo flood over at $(date +%%s%%3N) ms; sleep 600' >/dev/null",
                              ptyhome.binary, rounds);

    assert_int_equal(ptyhome_command(command), 0);
    free(command);
}

/* When the line that ends the flood says it was written; 0 = it is not shown yet. */
static int64_t end_shown(struct ptyrig *r)
{
    long long at = 0;
    int whole = 0;
    char *s = rig_screen(r);
    for (char *p = s; !whole && (p = strstr(p, "flood over at ")); p += 10)
        sscanf(p, "flood over at %lld ms%n", &at, &whole);
    free(s);
    return whole ? at : 0;
}

/* Keys are answered while the flood runs, and the tail is there soon after it stops. */
static void test_flood(void **state)
{
    (void)state;
    struct ptyrig r;
    int64_t worst = 0, begun;
    int asked = 0;

    start_flood();
    ptyhome_start(&r, 24, 80);
    ptyhome_shows(&r, "flood", SOON);
    rig_type(&r, "/flood\r");
    ptyhome_shows(&r, "of a flood", SOON);
    begun = rig_now_ms();
    while (!end_shown(&r) && rig_now_ms() - begun < 500000) {
        int64_t t0 = rig_now_ms();
        rig_type(&r, "?");
        ptyhome_shows(&r, "+ help -", 100 * PATIENCE * 10);
        rig_type(&r, "\033");
        assert_true(rig_wait_gone(&r, "+ help -", 100 * PATIENCE * 10));
        int64_t took = (rig_now_ms() - t0) / 2;
        worst = took > worst ? took : worst;
        asked++;
    }
    int64_t at = end_shown(&r);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t late = now.tv_sec * 1000LL + now.tv_nsec / 1000000 - at;
    print_message("# %d keys, the slowest after %lld ms; the tail %lld ms late\n", asked * 2,
                  (long long)worst, (long long)late);
    assert_true(at > 0);
    assert_true(worst <= 100 * PATIENCE);
    assert_true(late <= 2000 * PATIENCE);
    rig_type(&r, "q");
    end(&r, 0);
}

/* --- told outside of the screen --------------------------------------------------------- */

static char *told; /* what the hook wrote, a line for each of its variables */

static bool is_told(struct ptyrig *r, void *path)
{
    (void)r;
    free(told);
    told = fs_read(path, 1 << 16, false, NULL, NULL);
    return told && strstr(told, "CC_TUI_TITLE=");
}

/* An agent asks while another sandbox is looked at: the terminal's bell and its notification,
 * and the hook's command with all of it in its environment. */
static void test_told_outside(void **state)
{
    char *file = xasprintf("%s/told", ptyhome.dir);
    char *conf = xasprintf("[notify]\nasks = bell osc hook\nosc = 777\n"
                           "hook = env | grep ^CC_TUI_ >> '%s.new' && mv '%s.new' '%s'\n", file, file,
                           file);
    char *make = xasprintf("%s --local new --tool demo --name calm -q >/dev/null", ptyhome.binary);
    char *ask = xasprintf("%s --local new --tool demo --name asker --ask yes --prompt tour -q "
                          ">/dev/null", ptyhome.binary);
    char *kill_both = xasprintf("%s --local kill calm asker --yes >/dev/null 2>&1", ptyhome.binary);
    struct ptyrig r;
    (void)state;

    configure(conf);
    assert_int_equal(ptyhome_command(make), 0);
    ptyhome_start(&r, 24, 100);
    r.judge.may_ring = true;
    ptyhome_shows(&r, "local ok", SOON);
    rig_type(&r, "/calm\r");
    ptyhome_shows(&r, "> . calm", SOON);
    rig_type(&r, "\033");
    assert_int_equal(ptyhome_command(ask), 0);
    assert_true(rig_wait_for(&r, is_told, file, SOON));
    assert_non_null(strstr(told, "CC_TUI_EVENT=asks\n"));
    assert_non_null(strstr(told, "CC_TUI_TITLE=asker asks you\n"));
    assert_non_null(strstr(told, "CC_TUI_NAME=asker\n"));
    assert_non_null(strstr(told, "CC_TUI_COUNT=1\n"));
    assert_non_null(strstr(told, "CC_TUI_NEW=asks you\n"));
    assert_int_equal(r.judge.osc[1], 1);
    assert_int_equal(r.judge.rings, 1);
    rig_type(&r, "q");
    end(&r, 0);
    assert_int_equal(ptyhome_command(kill_both), 0);
    configure("");
    free(told);
    told = NULL;
    free(file);
    free(conf);
    free(make);
    free(ask);
    free(kill_both);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_keys_alone),
        cmocka_unit_test(test_comes_back),
        cmocka_unit_test(test_configured_anew),
        cmocka_unit_test(test_told_outside),
        cmocka_unit_test(test_closed_terminal),
        cmocka_unit_test(test_flood),
    };
    return cmocka_run_group_tests(tests, ptyhome_set_up, ptyhome_tear_down);
}
