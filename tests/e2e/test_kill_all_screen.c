/* Kill all by keys: what is asked before anything goes, what does not count as a yes, the
 * report with its second try, and a program killed in the middle of it. */
#include "../lib/faultproc.h"
#include "../lib/ptyrig.h"
#include "../lib/runcmd.h"

#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SOON = 30000 };
#define KEY "E2B_API_KEY=e2b_0123456789abcdef0123456789abcdef01234f2a"

static struct faultd *fake;
static struct runcmd home; /* the places of both, screen and command */
static struct ptyrig rig;
static char *places[4], *url, *data;

static int begin(void **state)
{
    static const char *const names[] = {"CONFIG", "DATA", "STATE", "RUNTIME"};

    (void)state;
    fake = faultd_start(NULL);
    runcmd_init(&home);
    for (int i = 0; i < 4; i++)
        places[i] = xasprintf("CC_TUI_%s_DIR=%s", names[i], home.home);
    url = xasprintf("E2B_API_URL=%s", faultd_url(fake));
    data = xasprintf("E2B_SANDBOX_URL=%s", faultd_url(fake));
    return 0;
}

static int finish(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        free(places[i]);
    free(url);
    free(data);
    runcmd_release(&home);
    faultd_stop(fake);
    return 0;
}

static void config(const char *json)
{
    assert_true(faultd_config(fake, json));
}

static int64_t counted(const char *name)
{
    char *log = faultd_http(fake, "GET", "/_faultd/log?brief", NULL);
    struct cJSON *j = json_parse(log, strlen(log), NULL);
    int64_t n = json_i64(j, name, -1);

    json_free(j);
    free(log);
    return n;
}

static int64_t left(void)
{
    return counted("running") + counted("paused");
}

static void open_screen(int h, int w)
{
    const char *b = getenv("B");
    char *binary = xasprintf("%s/cc-tui", b ? b : "build/debug");
    char *argv[] = {binary, NULL};
    char *own = xasprintf("HOME=%s", home.home);
    const char *env[] = {"TERM=xterm-256color", "LC_ALL=C.UTF-8", "SSH_CONNECTION", "COLUMNS",
                         "LINES", KEY, own, url, data, places[0], places[1], places[2],
                         places[3], NULL};

    rig_start(&rig, h, w, argv, env);
    free(binary);
    free(own);
}

static void shows(const char *text)
{
    if (rig_wait(&rig, text, SOON))
        return;
    char *s = rig_screen(&rig);
    fputs(s, stderr);
    fail_msg("'%s' does not come", text);
}

static void close_screen(void)
{
    rig_type(&rig, "q");
    assert_true(rig_wait_exit(&rig, SOON));
    assert_int_equal(rig.status, 0);
    rig_stop(&rig);
}

/* A key by itself, and its picture. */
static void key(const char *k)
{
    rig_type(&rig, k);
    rig_wait_quiet(&rig, 150, 2000);
}

/* What is named before the yes, and what is none. Enter never is, not even after a yes
 * was given once; the number typed must be the one that is shown. */
static void test_question(void **state)
{
    (void)state;
    config("{\"reset\":true,\"sandboxes\":6,\"paused\":0}");
    config("{\"sandboxes\":3,\"paused\":1,\"add\":true,\"metadata\":{\"cc-tui\":\"1\","
           "\"cc-tui-session\":\"s-1\",\"cc-tui-project\":\"default\"}}");
    open_screen(30, 100);
    shows("****4f2a (environment)"); /* before anything is asked */
    key("K");
    shows("project default: 4");
    shows("everything: 10");
    shows("3 running  1 paused");
    shows("****4f2a (environment)");
    key("\r");
    key("\r");
    key("n");
    key(" ");
    assert_int_equal(left(), 10);
    key("\t");
    shows("This ends 10 sandboxes");
    shows("6 of them not started here");
    shows("****4f2a (environment)");
    key("\r");
    key("y");
    key("9");
    key("\r");
    assert_int_equal(left(), 10);
    key("\033");
    key("K");
    shows("y  kill 4");
    key("y");
    shows("4 killed: proved by a new list");
    assert_int_equal(left(), 6);
    key("\033");
    key("K");
    key("\r");
    key("\t");
    shows("y  kill 6");
    key("\r");
    key("\r");
    assert_int_equal(left(), 6);
    key("y");
    shows("6 killed: proved by a new list");
    assert_int_equal(left(), 0);
    key("\033");
    close_screen();
}

/* 250 of them, some trouble, the second try. */
static void test_many(void **state)
{
    (void)state;
    config("{\"reset\":true,\"sandboxes\":210,\"paused\":40,\"rules\":["
           "{\"method\":\"DELETE\",\"times\":1,\"status\":403},"
           "{\"method\":\"DELETE\",\"times\":1,\"status\":500},"
           "{\"method\":\"DELETE\",\"times\":1,\"status\":204},"
           "{\"method\":\"DELETE\",\"times\":1,\"cut\":0}]}");
    open_screen(30, 100);
    shows("running");
    key("K");
    shows("everything: 250");
    key("\t");
    shows("210 running  40 paused");
    rig_type(&rig, "2");
    key("5");
    key("0");
    key("\r");
    shows("249 killed, 1 failed: some are left");
    assert_int_equal(left(), 1);
    key("R");
    shows("250 killed: proved by a new list");
    assert_int_equal(left(), 0);
    key("\033");
    close_screen();
}

/* Another client makes one meanwhile: named, and alive. */
static void test_newcomer(void **state)
{
    (void)state;
    config("{\"reset\":true,\"sandboxes\":5,\"paused\":0,\"rules\":[{\"method\":\"DELETE\","
           "\"skip\":2,\"times\":1,\"spawn\":1}]}");
    open_screen(30, 100);
    shows("running");
    key("K");
    key("\t");
    shows("y  kill 5");
    key("y");
    shows("new: left alone");
    shows("5 killed");
    assert_int_equal(left(), 1);
    key("\033");
    close_screen();
}

static void wait_for_deletes(int64_t n)
{
    for (int64_t end = rig_now_ms() + SOON; counted("open") < n;)
        assert_true(rig_now_ms() < end);
}

/* What was confirmed is on the disk. */
static bool is_kept(const char *what)
{
    char *cmd = xasprintf("grep -rqsF '%s' '%s'", what, home.home);
    int rc = system(cmd);

    free(cmd);
    return rc == 0;
}

static void wait_until_kept(pid_t pid)
{
    char *what = xasprintf("by:%d-", (int)pid);

    for (int64_t end = rig_now_ms() + SOON; !is_kept(what);)
        assert_true(rig_now_ms() < end);
    free(what);
}

/* The command is killed (-9) with its deletes unanswered: the screen that is opened next
 * finishes what was confirmed and says so. */
static void test_killed_in_the_middle(void **state)
{
    static const char *const args[] = {"kill", "--all", "--scope", "account", "--yes", NULL};
    static const char *const look[] = {"ls", NULL};
    const char *env[] = {KEY, url, data, NULL};
    struct runcmd other = {.home = home.home, .out = -1, .err = -1};

    (void)state;
    config("{\"reset\":true,\"sandboxes\":30,\"paused\":10,\"rules\":[{\"method\":\"DELETE\","
           "\"stall\":true,\"apply\":false}]}");
    runcmd_start(&home, args, env);
    wait_for_deletes(40);
    wait_until_kept(home.pid);
    runcmd_start(&other, look, env); /* whoever comes while it is at work leaves it that */
    assert_int_equal(runcmd_end(&other, SOON), 0);
    assert_int_equal(counted("open"), 40);
    buf_release(&other.text);
    buf_release(&other.talk);
    runcmd_kill(&home, SIGKILL);
    assert_int_equal(runcmd_end(&home, SOON), 128 + SIGKILL);
    assert_int_equal(left(), 40);
    config("{\"rules\":[],\"sandboxes\":1,\"add\":true}");
    open_screen(40, 140);
    shows("finishing it for 40 sandboxes");
    shows("is finished: 40 ended");
    assert_int_equal(left(), 1);
    close_screen();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_question),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_newcomer),
        cmocka_unit_test(test_killed_in_the_middle),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, begin, finish);
}
