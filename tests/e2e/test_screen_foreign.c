/* The screen at 80x24 with a sandbox that cc-tui did not make: its processes by keys alone,
 * watched, ended, adopted, given back. */
#include "../lib/foreignbed.h"
#include "../lib/ptyrig.h"
#include "../lib/rawhttp.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SOON = 20000 };

static struct localbed *local;
static char *binary, *env_text[8];
static struct ptyrig rig;

static int set_up(void **state)
{
    static const char *const names[] = {"DATA", "CONFIG", "STATE", "RUNTIME"};

    (void)state;
    local = localbed_new();
    if (!local)
        return -1;
    for (int i = 0; i < 4; i++) {
        char *path = xasprintf("%s/screen-%s", local->root, names[i]);
        mkdir(path, 0700);
        env_text[i] = xasprintf("CC_TUI_%s_DIR=%s", names[i], path);
        free(path);
    }
    env_text[4] = xasprintf("E2B_API_URL=http://127.0.0.1:%d", local->control);
    env_text[5] = xasprintf("E2B_SANDBOX_URL=http://127.0.0.1:%d", local->traffic);
    env_text[6] = xasprintf("E2B_API_KEY=%s", local->key);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rig_stop(&rig);
    localbed_free(local);
    for (int i = 0; i < 8; i++)
        free(env_text[i]);
    free(binary);
    return 0;
}

static void start(int h, int w)
{
    char *argv[] = {binary, NULL};
    const char *env[] = {"TERM=xterm-256color", "LC_ALL=C.UTF-8", "SSH_CONNECTION", "COLUMNS",
                         "LINES", "E2B_DOMAIN", env_text[0], env_text[1], env_text[2],
                         env_text[3], env_text[4], env_text[5], env_text[6], NULL};
    rig_start(&rig, h, w, argv, env);
}

static void shows(const char *text)
{
    if (!rig_wait(&rig, text, SOON)) {
        char *s = rig_screen(&rig);
        fputs(s, stderr);
        fail_msg("'%s' does not come", text);
    }
}

static void shows_no(const char *text)
{
    if (!rig_wait_gone(&rig, text, SOON))
        fail_msg("'%s' does not go", text);
}

/* What ends something counts only when the key comes by itself, as from a hand. */
static void answer(const char *key)
{
    rig_wait_quiet(&rig, 150, 2000);
    rig_type(&rig, key);
}

static struct foreign_box new_box(void)
{
    struct foreign_box x = {.port = local->traffic};
    struct rawhttp_box raw;
    int fd = rawhttp_dial(local->control);

    assert_int_equal(rawhttp_create(local, fd, "{\"templateID\":\"base\",\"timeout\":600}", &raw),
                     201);
    close(fd);
    str_copy(x.id, sizeof(x.id), raw.id);
    str_copy(x.token, sizeof(x.token), raw.token);
    return x;
}

/* --- the tests, one life of the program -------------------------------------------- */

static void test_watch_and_end(void **state)
{
    struct foreign_box x = new_box();

    (void)state;
    foreign_start(&x, FOREIGN_NO_INPUT, "n=0; while :; do n=$((n+1)); echo tick-$n; sleep 0.2; done");
    start(24, 80);
    shows("not made by cc");
    rig_type(&rig, "\r"); /* opens it zoomed */
    shows("2 processes:");
    shows("COMMAND");
    shows("echo tick-$n");
    shows("Enter watch");
    rig_type(&rig, "\r");
    shows("live only, nothing from before");
    shows("nothing is kept");
    shows("tick-");
    rig_type(&rig, "\033"); /* back to the list, it is watched all the same */
    shows("2 processes:");
    rig_type(&rig, "t");
    shows("end this process?");
    shows(x.id);
    rig_type(&rig, "\r"); /* no key of the question */
    rig_type(&rig, "\033");
    shows_no("end this process?");
    shows("echo tick-$n");
    rig_type(&rig, "t");
    shows("9  SIGKILL");
    answer("9");
    shows("nothing runs in it");
    rig_type(&rig, "o");
    shows("ended by signal 9");
}

static void test_adopt_and_give_back(void **state)
{
    struct foreign_box x = new_box();
    char begin[9]; /* a long name has its begin and its end in the column */

    (void)state;
    foreign_start(&x, FOREIGN_STDIN, "while read a; do echo got-$a; done");
    rig_type(&rig, "q1\022"); /* not zoomed any more; the list anew */
    str_copy(begin, sizeof(begin), x.id);
    shows(begin);
    rig_type(&rig, "/");
    rig_type(&rig, x.id);
    shows("filter: i");
    rig_type(&rig, "\r2");
    shows("while read a");
    rig_type(&rig, "A");
    shows("adopt this sandbox?");
    shows("[x] with process");
    rig_type(&rig, "\t");
    shows("[ ] with process");
    rig_type(&rig, "\t");
    shows("[x] with process");
    rig_type(&rig, "\025mine\r"); /* ^U: another name */
    shows("adopted at ");
    rig_type(&rig, "ihello\r");
    shows("got-hello");
    rig_type(&rig, "\033");
    shows("NAV");
    rig_type(&rig, "K");
    shows("This ends 1 sandbox ");
    rig_type(&rig, "\033");
    shows_no("This ends");
    rig_type(&rig, "X");
    shows("can neither be interrupted nor restarted");
    rig_type(&rig, "A");
    shows("y  give it back");
    answer("y");
    shows("2 processes:");
    rig_type(&rig, "K");
    shows("nothing to kill in this scope");
    rig_type(&rig, "\033");
    shows_no("nothing to kill in this scope");
}

/* At other sizes nothing is cut that is needed. */
static void test_sizes(void **state)
{
    (void)state;
    rig_resize(&rig, 40, 120);
    shows("2 processes:");
    shows("while read a");
    rig_resize(&rig, 60, 200);
    shows("while read a; do echo got-$a; done");
    rig_resize(&rig, 24, 80);
    shows("2 processes:");
    rig_type(&rig, "q");
    assert_true(rig_wait_exit(&rig, SOON));
    assert_true(WIFEXITED(rig.status));
    assert_int_equal(WEXITSTATUS(rig.status), 0);
    if (rig.judge.bad[0])
        fail_msg("on the wire: %s", rig.judge.bad);
}

/* `cc-tui watch` on a terminal: the stranger's bytes reach it cleaned, its status is kept. */
static void test_watch_command(void **state)
{
    struct foreign_box x = new_box();
    char pid_text[16], verb[] = "watch";
    char *argv[] = {binary, verb, x.id, pid_text, NULL};
    const char *env[] = {"TERM=xterm-256color", "LC_ALL=C.UTF-8", "E2B_DOMAIN", env_text[0],
                         env_text[1], env_text[2], env_text[3], env_text[4], env_text[5],
                         env_text[6], NULL};

    (void)state;
    int pid = foreign_start(&x, FOREIGN_NO_INPUT,
                            "n=0; while [ $n -lt 25 ]; do n=$((n+1)); sleep 0.2; "
                            "printf '\\033]0;evil\\007tick-\\033[2J%d\\n' $n; done; "
                            "printf the-end; exit 7");
    snprintf(pid_text, sizeof(pid_text), "%d", pid);
    rig_stop(&rig);
    rig_start(&rig, 24, 80, argv, env);
    assert_true(rig_wait_exit(&rig, SOON));
    char *s = rig_screen(&rig);
    if (!strstr(s, "tick-24") || !strstr(s, "the-end") || strstr(s, "evil"))
        fail_msg("the screen:\n%s", s);
    free(s);
    assert_true(WIFEXITED(rig.status));
    assert_int_equal(WEXITSTATUS(rig.status), 7);
    if (rig.judge.bad[0])
        fail_msg("on the wire: %s", rig.judge.bad);
}

int main(void)
{
    const char *b = getenv("B");
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_watch_and_end),
                                       cmocka_unit_test(test_adopt_and_give_back),
                                       cmocka_unit_test(test_sizes),
                                       cmocka_unit_test(test_watch_command)};

    binary = xasprintf("%s/cc-tui", b ? b : "build/debug");
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
