/* Decoders against programs that really run: the demo agent speaks
 * claude's dialect, the shell tool's driver marks its commands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../lib/tape.h"

#include <cct/local/init.h>
#include <cct/util/str.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Run `child` with `in` as its stdin, all of its stdout to `out`; its exit status. */
static int run(int (*child)(void), const struct buf *in, struct buf *out)
{
    int to[2], from[2], status = 0;
    char block[4096];
    ssize_t n;
    pid_t pid;

    assert_int_equal(pipe(to) | pipe(from), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(30); /* a child that hangs ends, and the test fails */
        dup2(to[0], 0);
        dup2(from[1], 1);
        close(to[0]), close(to[1]), close(from[0]), close(from[1]);
        _exit(child());
    }
    close(to[0]);
    close(from[1]);
    assert_int_equal(write(to[1], in->p, in->len), (ssize_t)in->len); /* fits the pipe */
    close(to[1]);
    while ((n = read(from[0], block, sizeof(block))) > 0 || (n < 0 && errno == EINTR))
        if (n > 0)
            buf_add(out, block, (size_t)n);
    close(from[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void say(const struct agent_adapter *a, const char *text, struct buf *in)
{
    struct err e = {0};

    assert_int_equal(a->encode_message(text, strlen(text), in, &e), 0);
}

static int demo(void)
{
    return demo_agent_main(0, NULL);
}

static void test_demo(void **state)
{
    const struct agent_adapter *a = agent_adapter_find("claude");
    char dir[] = "/tmp/cct-demo-XXXXXX";
    struct buf in = BUF_INIT, out = BUF_INIT;
    struct tape t;
    int code;
    char *tools, *old = getcwd(NULL, 0);

    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(chdir(dir), 0);
    say(a, "help", &in);
    say(a, "run echo out; exit 3", &in);
    say(a, "write a.txt: two\nlines", &in);
    code = run(demo, &in, &out);
    assert_int_equal(code, 0);
    assert_int_equal(unlink("a.txt"), 0); /* it was written for real */
    assert_int_equal(chdir(old), 0);
    assert_int_equal(rmdir(dir), 0);
    tape_run(&t, a, out.p, out.len, 5, code, 0, NULL);
    /* it greets in a turn of its own */
    assert_int_equal(tape_count(&t, AGENT_TURN_BEGIN), 4);
    assert_int_equal(tape_count(&t, AGENT_TURN_END), 4);
    assert_int_equal(tape_count(&t, AGENT_USER_ECHO), 3);
    assert_int_equal(tape_count(&t, AGENT_USAGE), 4);
    assert_int_equal(tape_count(&t, AGENT_RAW), 0);
    tools = tape_tools(&t);
    assert_string_equal(tools, "Bash:failed:3 Write:ok:-1");
    assert_string_equal(tape_find(&t, AGENT_USER_ECHO, 0)->text, "help");
    assert_int_equal(t.ev.v[t.ev.n - 1].kind, AGENT_EXIT);
    for (size_t i = 0; i < t.ev.n; i++)
        if (t.ev.v[i].kind == AGENT_TURN_END)
            assert_int_equal(t.ev.v[i].outcome, AGENT_OK);
    free(tools);
    free(old);
    tape_release(&t);
    buf_release(&in);
    buf_release(&out);
}

static int shell_driver(void)
{
    execlp("sh", "sh", "src/jobs/shell-driver.sh", (char *)NULL);
    return 127;
}

static void test_shell(void **state)
{
    const struct agent_adapter *a = agent_adapter_find("shell");
    struct buf in = BUF_INIT, out = BUF_INIT, got = BUF_INIT;
    struct tape t;
    int code;

    (void)state;
    say(a, "cd / && pwd", &in);
    say(a, "printf 'no end'; false", &in);
    say(a, "for i in 1 2; do\n\techo \"line $i\"\ndone\npwd", &in);
    say(a, "echo bye; exit 5", &in);
    code = run(shell_driver, &in, &out);
    assert_int_equal(code, 5);
    tape_run(&t, a, out.p, out.len, 5, code, 0, NULL);
    for (size_t i = 0; i < t.ev.n; i++) {
        const struct agent_event *ev = &t.ev.v[i];

        buf_addf(&got, "%s %s %d\n", agent_kind_name(ev->kind), ev->text ? ev->text : "",
                 ev->exit_code);
    }
    assert_string_equal(buf_str(&got),
                        "turn_begin  -1\nraw / -1\nturn_end  0\n"
                        "turn_begin  -1\nraw no end -1\nturn_end exit status 1 1\n"
                        "turn_begin  -1\nraw line 1 -1\nraw line 2 -1\nraw / -1\nturn_end  0\n"
                        "turn_begin  -1\nraw bye -1\nturn_end exit status 5 5\nexit  5\n");
    tape_release(&t);
    buf_release(&in);
    buf_release(&out);
    buf_release(&got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_demo),
        cmocka_unit_test(test_shell),
    };

    return cmocka_run_group_tests_name("agent_live", tests, NULL, NULL);
}
