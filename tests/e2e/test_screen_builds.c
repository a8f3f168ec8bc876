/* Builds by keys alone: cc-tui --local on a pseudo terminal builds a template with COPY and
 * RUN, one that fails, the first once more from the cache; one is called off; and one goes on
 * while cc-tui is killed, and is picked up by the next. */
#include "../lib/ptyhome.h"

#include <cct/util/fs.h>
#include <cct/util/xalloc.h>
#include <fcntl.h>
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

static bool isolated;

static void put(const char *name, const char *text)
{
    char *path = fs_join(ptyhome.dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(fs_write_all(fd, text, strlen(text)), 0);
    close(fd);
    free(path);
}

static int set_up(void **state)
{
    if (ptyhome_set_up(state) != 0)
        return -1;
    char *probe = xasprintf("%s-local probe >/dev/null 2>&1", ptyhome.binary);
    isolated = system(probe) == 0;
    free(probe);
    put("one.txt", "from here\n");
    put("good", "FROM e2bdev/base\nCOPY one.txt /opt/\nRUN cat /opt/one.txt\n");
    put("bad", "FROM e2bdev/base\nRUN echo the reason; exit 7\n");
    put("slow", "FROM e2bdev/base\nRUN echo begun; sleep 2; echo ended\n");
    put("long", "FROM e2bdev/base\nRUN echo begun; sleep 60\n");
    return 0;
}

static void must_show(struct ptyrig *r, const char *text)
{
    ptyhome_shows(r, text, SOON);
}

static void build(struct ptyrig *r, const char *file, const char *name)
{
    char *keys = xasprintf("%s\t%s/%s\033s", name, ptyhome.dir, file);

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
    ptyhome_start(&r, 40, 120);
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
    ptyhome_start(&r, 40, 120);
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
    ptyhome_start(&r, 40, 120);
    must_show(&r, "local ok");
    rig_type(&r, "33");
    must_show(&r, "base");
    build(&r, "slow", "slow");
    must_show(&r, "step 3 of 5  RUN echo begun");
    kill(r.pid, SIGKILL);
    assert_true(rig_wait_exit(&r, SOON));
    rig_stop(&r);
    ptyhome_start(&r, 40, 120);
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_builds),
        cmocka_unit_test(test_called_off),
        cmocka_unit_test(test_picked_up),
    };
    return cmocka_run_group_tests(tests, set_up, ptyhome_tear_down);
}
