/* Commands whose reader does not read: a signal ends them all the same, and what they put
 * out by then is whole lines from the begin. */
#include "../lib/faultproc.h"
#include "../lib/runcmd.h"

#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SOON = 60000, PIPE_FULL = 60000 };
#define KEY "E2B_API_KEY=e2b_0123456789abcdef0123456789abcdef01234f2a"

static struct faultd *fake;

/* Started, and its pipe is full; nobody reads. */
static void fill_pipe(struct runcmd *c, const char *const args[])
{
    char *url = xasprintf("E2B_API_URL=%s", faultd_url(fake));
    const char *env[] = {KEY, url, NULL};
    int64_t end = clock_mono_ms() + SOON;
    int have = 0;

    runcmd_init(c);
    runcmd_start(c, args, env);
    while (have < PIPE_FULL) {
        assert_true(clock_mono_ms() < end);
        assert_int_equal(ioctl(c->out, FIONREAD, &have), 0);
        usleep(2000);
    }
    free(url);
}

/* Its end, while its pipe stays full. */
static void ends_unread(const struct runcmd *c)
{
    int64_t end = clock_mono_ms() + SOON;
    siginfo_t si = {0};

    while (si.si_pid == 0) {
        assert_true(clock_mono_ms() < end);
        assert_int_equal(waitid(P_PID, (id_t)c->pid, &si, WEXITED | WNOWAIT | WNOHANG), 0);
        usleep(2000);
    }
}

static void test_signal_while_nobody_reads(void **state)
{
    static const int sigs[] = {SIGINT, SIGTERM, SIGHUP};
    static const char *const list[] = {"ls", "--json", NULL};
    struct runcmd c;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        fill_pipe(&c, list);
        runcmd_kill(&c, sigs[i]);
        ends_unread(&c);
        assert_int_equal(runcmd_end(&c, SOON), 128 + sigs[i]);
        assert_string_equal(buf_str(&c.talk), "");
        assert_true(c.text.len >= PIPE_FULL && c.text.p[0] == '[');
        runcmd_release(&c);
    }
}

/* A reader that is only slow gets everything. */
static void test_slow_reader(void **state)
{
    static const char *const list[] = {"ls", "--json", NULL};
    struct runcmd c;

    (void)state;
    fill_pipe(&c, list);
    assert_int_equal(runcmd_end(&c, SOON), 0);
    assert_true(str_ends(buf_str(&c.text), "]\n"));
    runcmd_release(&c);
}

static int up(void **state)
{
    static const char *const serve[] = {"--sandboxes", "1000", NULL};

    (void)state;
    fake = faultd_start(serve);
    return fake ? 0 : -1;
}

static int down(void **state)
{
    (void)state;
    faultd_stop(fake);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signal_while_nobody_reads),
        cmocka_unit_test(test_slow_reader),
    };
    return cmocka_run_group_tests(tests, up, down);
}
