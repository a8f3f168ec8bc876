/* The demo agent over pipes: the lines it prints, a real command, an interrupt,
 * a bad line. The program starts itself. */
#include "../lib/tape.h"
#include "../lib/tmpdir.h"
#include <cct/agent.h>
#include <cct/local/init.h>
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS 20000

struct agent {
    pid_t pid;
    int in, out, err;
    struct buf seen; /* everything it printed */
    size_t at;       /* how far the test has looked */
};

static char dir[] = "/tmp/cct-demo-XXXXXX";

static void agent_start(struct agent *a)
{
    int in[2], out[2], er[2];
    memset(a, 0, sizeof(*a));
    assert_int_equal(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC) | pipe2(er, O_CLOEXEC), 0);
    a->pid = fork();
    if (a->pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        dup2(er[1], 2);
        if (chdir(dir) == 0)
            execl("/proc/self/exe", "test_demo_agent", "--agent", (char *)NULL);
        _exit(99);
    }
    close(in[0]);
    close(out[1]);
    close(er[1]);
    a->in = in[1];
    a->out = out[0];
    a->err = er[0];
}

static void say(struct agent *a, const char *line)
{
    assert_int_equal(write(a->in, line, strlen(line)), strlen(line));
}

static bool more(struct agent *a)
{
    char tmp[65536];
    struct pollfd pf = {a->out, POLLIN, 0};
    if (poll(&pf, 1, WAIT_MS) != 1)
        fail_msg("nothing within %d ms; so far:\n%.3000s", WAIT_MS, buf_str(&a->seen));
    ssize_t n = read(a->out, tmp, sizeof(tmp));
    if (n > 0)
        buf_add(&a->seen, tmp, (size_t)n);
    return n > 0;
}

/* Wait until the text appears after the last place looked at. */
static void expect(struct agent *a, const char *text)
{
    for (;;) {
        const char *p = strstr(buf_str(&a->seen) + a->at, text);
        if (p != NULL) {
            a->at = (size_t)(p - a->seen.p) + strlen(text);
            return;
        }
        if (!more(a))
            fail_msg("ended without '%s' after:\n%.3000s", text, buf_str(&a->seen) + a->at);
    }
}

/* Close stdin, read the rest, check that every line is one JSON object. */
static int agent_end(struct agent *a)
{
    int status;
    close(a->in);
    while (more(a))
        ;
    assert_int_equal(waitpid(a->pid, &status, 0), a->pid);
    close(a->out);
    close(a->err);
    const char *p = buf_str(&a->seen);
    while (*p != '\0') {
        struct err e = {0};
        size_t n = strcspn(p, "\n");
        assert_int_equal(p[n], '\n');
        struct cJSON *j = json_parse(p, n, &e);
        assert_non_null(j);
        assert_non_null(json_str(j, "type", NULL));
        json_free(j);
        p += n + 1;
    }
    buf_release(&a->seen);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define USER(text)                                                                       \
    "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"text\"," \
    "\"text\":"                                                                          \
    "\"" text "\"}]}}\n"

static void test_greeting(void **state)
{
    struct agent a;
    (void)state;
    agent_start(&a);
    expect(&a, "{\"type\":\"system\",\"subtype\":\"init\"");
    expect(&a, "\"model\":\"demo\"");
    expect(&a, "\"type\":\"text_delta\"");
    expect(&a, "{\"type\":\"assistant\"");
    expect(&a, "no model behind it");
    expect(&a, "\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false");
    expect(&a, "\"total_cost_usd\":0");
    assert_int_equal(agent_end(&a), 0);
}

static void test_turns(void **state)
{
    struct agent a;
    (void)state;
    agent_start(&a);
    expect(&a, "\"type\":\"result\"");
    say(&a, USER("run echo real; echo bad >&2; exit 3"));
    expect(&a, "\"subtype\":\"init\"");
    expect(&a, "\"isReplay\":true");
    expect(&a, "\"type\":\"tool_use\"");
    expect(&a, "\"command\":\"echo real; echo bad >&2; exit 3\"");
    expect(&a, "\"content\":\"Exit code 3\\nreal\\nbad\\n\",\"is_error\":true");
    expect(&a, "\"result\":\"exit status 3\"");
    say(&a, USER("write a b.txt: h\\u00e9llo"));
    expect(&a, "\"result\":\"wrote 6 bytes to a b.txt\"");
    say(&a,
        "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"cat a b.txt\"}}\n");
    expect(&a, "\"content\":\"h\xc3\xa9llo\",\"is_error\":false");
    say(&a, USER("ls"));
    expect(&a, "\"content\":\"a b.txt\"");
    say(&a, USER("cat nothing"));
    expect(&a, "cannot read nothing: No such file or directory\",\"is_error\":true");
    say(&a, USER("make me a website"));
    expect(&a, "\"result\":\"demo agent: I only know");
    say(&a, USER("tour"));
    expect(&a, "written by the demo agent\",\"is_error\":false");
    expect(&a, "Linux");
    expect(&a, "\"num_turns\":5");
    assert_int_equal(agent_end(&a), 0);
}

static void test_long_output(void **state)
{
    struct agent a;
    (void)state;
    agent_start(&a);
    say(&a, USER("run head -c 2000000 /dev/zero | tr '\\\\0' x"));
    expect(&a, "[cut: 951424 more bytes are not shown]");
    expect(&a, "exit status 0");
    assert_int_equal(agent_end(&a), 0);
}

static void test_interrupt(void **state)
{
    struct agent a;
    (void)state;
    int64_t t0 = clock_mono_ms();
    agent_start(&a);
    expect(&a, "\"type\":\"result\"");
    say(&a, USER("run echo begun; sleep 300 & sleep 300"));
    expect(&a, "\"subtype\":\"init\"");
    expect(&a, "\"stop_reason\":\"tool_use\"");
    say(&a, "{\"type\":\"control_request\",\"request_id\":\"r1\",\"request\":{\"subtype\":"
            "\"interrupt\"}}\n");
    expect(
        &a,
        "{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":"
        "\"r1\"}}");
    expect(&a, "\"is_error\":true");
    expect(&a, "[Request interrupted by user for tool use]");
    expect(&a, "\"subtype\":\"error_during_execution\",\"is_error\":true");
    expect(&a, "\"terminal_reason\":\"aborted_tools\"");
    say(&a, USER("run echo alive")); /* it goes on with the next message */
    expect(&a, "\"content\":\"alive\\n\",\"is_error\":false");
    assert_int_equal(agent_end(&a), 0);
    assert_true(clock_mono_ms() - t0 < 60000);
}

/* Lines that come while a command runs wait for their turn, in order. */
static void test_queue(void **state)
{
    struct agent a;
    (void)state;
    agent_start(&a);
    say(&a, USER("run sleep 0.2; echo first") USER("run echo second"));
    expect(&a, "\"content\":\"first\\n\"");
    expect(&a, "\"content\":\"second\\n\"");
    assert_int_equal(agent_end(&a), 0);
}

static void test_bad_line(void **state)
{
    struct agent a;
    char text[256] = "";
    (void)state;
    agent_start(&a);
    expect(&a, "\"type\":\"result\"");
    say(&a, "this is not json\n");
    struct pollfd pf = {a.err, POLLIN, 0};
    assert_int_equal(poll(&pf, 1, WAIT_MS), 1);
    assert_true(read(a.err, text, sizeof(text) - 1) > 0);
    assert_non_null(strstr(text, "Error parsing streaming input line"));
    assert_int_equal(agent_end(&a), 1);
}

/* The product's own reader understands it: same turns, tools and texts as from the
 * real tool, driven by the adapter's own message and interrupt. */
static void test_decoded(void **state)
{
    const struct agent_adapter *ad = agent_adapter_find("claude");
    struct buf in = BUF_INIT, all = BUF_INIT;
    struct agent a;
    struct tape t;
    struct err e = {0};
    (void)state;
    assert_non_null(ad);
    agent_start(&a);
    static const char *const texts[] = {"run echo good", "run exit 2", "run sleep 300"};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(ad->encode_message(texts[i], strlen(texts[i]), &in, &e), 0);
        say(&a, buf_str(&in));
        buf_clear(&in);
        expect(&a, "\"isReplay\":true");
        expect(&a,
               i < 2 ? "\"terminal_reason\":\"completed\"" : "\"stop_reason\":\"tool_use\"");
    }
    assert_int_equal(ad->encode_interrupt("r9", &in), 0);
    say(&a, buf_str(&in));
    expect(&a, "\"type\":\"result\"");
    buf_add(&all, a.seen.p, a.seen.len);
    assert_int_equal(agent_end(&a), 0);
    tape_run(&t, ad, all.p, all.len, 7, 0, 0, "");
    char *tools = tape_tools(&t), *said = tape_texts(&t, AGENT_TEXT);
    print_message("# tools: %s\n# texts: %s\n", tools, said);
    assert_int_equal(tape_count(&t, AGENT_TURN_BEGIN), 4);
    assert_int_equal(tape_count(&t, AGENT_TURN_END), 4);
    assert_int_equal(tape_count(&t, AGENT_USER_ECHO), 3);
    assert_int_equal(tape_count(&t, AGENT_NOTICE), 0);
    assert_non_null(strstr(said, "|exit status 0|exit status 2"));
    free(tools);
    free(said);
    tape_release(&t);
    buf_release(&in);
    buf_release(&all);
}

static int up(void **state)
{
    (void)state;
    return mkdtemp(dir) != NULL ? 0 : -1;
}

static int down(void **state)
{
    (void)state;
    return tmpdir_remove(dir);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greeting),    cmocka_unit_test(test_turns),
        cmocka_unit_test(test_long_output), cmocka_unit_test(test_interrupt),
        cmocka_unit_test(test_queue),       cmocka_unit_test(test_bad_line),
        cmocka_unit_test(test_decoded),
    };
    if (argc > 1 && strcmp(argv[1], "--agent") == 0)
        return demo_agent_main(argc - 2, argv + 2);
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, up, down);
}
