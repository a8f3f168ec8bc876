/* Builds by keys alone: cc-tui --local on a pseudo terminal builds a template with COPY and
 * RUN, one that fails, the first once more from the cache; one is called off; and one goes on
 * while cc-tui is killed, and is picked up by the next. */
#include "../lib/ptyrig.h"

#include <cct/util/fs.h>
#include <cct/util/xalloc.h>
#include <fcntl.h>
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

enum { SOON = 20000, AT_ONCE = 3000 };

static char dir[] = "/tmp/cct-builds.XXXXXX";
static char *binary;
static char *env_text[8];
static bool isolated;

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *f)
{
    (void)st;
    (void)flag;
    (void)f;
    return remove(path);
}

static void put(const char *name, const char *text)
{
    char *path = fs_join(dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(fs_write_all(fd, text, strlen(text)), 0);
    close(fd);
    free(path);
}

static int set_up(void **state)
{
    static const char *const names[] = {"DATA", "CONFIG", "STATE", "RUNTIME"};
    char *probe = xasprintf("%s-local probe >/dev/null 2>&1", binary);

    (void)state;
    isolated = system(probe) == 0;
    free(probe);
    if (!mkdtemp(dir))
        return -1;
    for (int i = 0; i < 4; i++) {
        char *path = xasprintf("%s/%s", dir, names[i]);
        mkdir(path, 0700);
        env_text[i] = xasprintf("CC_TUI_%s_DIR=%s", names[i], path);
        free(path);
    }
    put("one.txt", "from here\n");
    put("good", "FROM e2bdev/base\nCOPY one.txt /opt/\nRUN cat /opt/one.txt\n");
    put("bad", "FROM e2bdev/base\nRUN echo the reason; exit 7\n");
    put("slow", "FROM e2bdev/base\nRUN echo begun; sleep 2; echo ended\n");
    put("long", "FROM e2bdev/base\nRUN echo begun; sleep 60\n");
    return 0;
}

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

static void start(struct ptyrig *r)
{
    char *argv[] = {binary, (char *)"--local", NULL};
    const char *env[] = {"TERM=xterm-256color", "LC_ALL=C.UTF-8", "SSH_CONNECTION", "COLUMNS",
                         "LINES", "E2B_API_KEY", env_text[0], env_text[1], env_text[2],
                         env_text[3], NULL};
    rig_start(r, 40, 120, argv, env);
}

static void must_show(struct ptyrig *r, const char *text)
{
    if (!rig_wait(r, text, SOON)) {
        char *s = rig_screen(r);
        fputs(s, stderr);
        fail_msg("'%s' does not come", text);
    }
}

static void build(struct ptyrig *r, const char *file, const char *name)
{
    char *keys = xasprintf("%s\t%s/%s\033s", name, dir, file);

    rig_type(r, "n");
    must_show(r, "Alt-s build");
    rig_type(r, keys);
    assert_true(rig_wait_gone(r, "+ new build", SOON));
    free(keys);
}

static void end(struct ptyrig *r)
{
    if (!rig_wait_exit(r, AT_ONCE))
        fail_msg("still running");
    if (!WIFEXITED(r->status) || WEXITSTATUS(r->status))
        fail_msg("ended with %x", (unsigned)r->status);
    if (r->judge.bad[0])
        fail_msg("on the wire: %s", r->judge.bad);
    rig_stop(r);
}

static void test_builds(void **state)
{
    struct ptyrig r;

    (void)state;
    if (!isolated)
        skip();
    start(&r);
    must_show(&r, "local ok");
    rig_type(&r, "33");
    must_show(&r, "3 builds");
    build(&r, "good", "good");
    must_show(&r, "Build finished");
    must_show(&r, "from here");
    must_show(&r, ". good");
    build(&r, "bad", "bad");
    must_show(&r, "! bad");
    must_show(&r, "exit status 7");
    must_show(&r, "the reason");
    rig_type(&r, "j"); /* the good one, once more */
    must_show(&r, "build log: good");
    rig_type(&r, "R");
    must_show(&r, "(cached) COPY one.txt");
    must_show(&r, "0 running, 1 failed");
    rig_type(&r, "\r"); /* a sandbox of it: the form has it chosen */
    must_show(&r, "Alt-s create");
    must_show(&r, "good");
    rig_type(&r, "\033");
    assert_true(rig_wait_gone(&r, "+ new sandbox", SOON));
    rig_type(&r, "q");
    must_show(&r, "1 sandboxes");
    rig_type(&r, "q");
    end(&r);
}

static void test_called_off(void **state)
{
    struct ptyrig r;

    (void)state;
    if (!isolated)
        skip();
    start(&r);
    must_show(&r, "local ok");
    rig_type(&r, "33");
    must_show(&r, "base");
    build(&r, "long", "long");
    must_show(&r, "step 3 of 5  RUN echo begun");
    rig_type(&r, "C");
    must_show(&r, "x long");
    must_show(&r, "cannot be told to stop");
    rig_type(&r, "D");
    must_show(&r, "delete this template?");
    int left = SOON;
    do /* it counts when it comes by itself */
        rig_type(&r, "y");
    while (!rig_wait_gone(&r, "delete this template?", 200) && (left -= 200) > 0);
    assert_true(left > 0);
    assert_true(rig_wait_gone(&r, "x long", SOON));
    rig_type(&r, "qq");
    end(&r);
}

static void test_picked_up(void **state)
{
    struct ptyrig r;

    (void)state;
    if (!isolated)
        skip();
    start(&r);
    must_show(&r, "local ok");
    rig_type(&r, "33");
    must_show(&r, "base");
    build(&r, "slow", "slow");
    must_show(&r, "step 3 of 5  RUN echo begun");
    kill(r.pid, SIGKILL);
    assert_true(rig_wait_exit(&r, SOON));
    rig_stop(&r);
    start(&r);
    must_show(&r, "local ok");
    rig_type(&r, "33");
    must_show(&r, "slow");
    must_show(&r, "ended"); /* the log, whole, before the row is taken over */
    must_show(&r, ". slow");
    rig_type(&r, "qq");
    end(&r);
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
        cmocka_unit_test(test_builds),
        cmocka_unit_test(test_called_off),
        cmocka_unit_test(test_picked_up),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
