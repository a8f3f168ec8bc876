/* The demo agent in the words of every CLI that it speaks as, read by that CLI's adapter:
 * the same scenario must come out the same. The program starts itself. */
#include "../lib/tape.h"
#include "../lib/tmpdir.h"

#include <cct/local/init.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/cct-speech-XXXXXX";

static const struct speech {
    const char *adapter, *argv[6];
    const char *resume;
    const char *tool, *tool_failed; /* how the adapter sees the command */
    bool retries, priced;           /* tells of retries, of costs */
} speeches[] = {
    {"claude", {"--as", "claude"}, "--resume", "Bash:ok:-1", "Bash:failed:3", true, true},
    {"codex", {"--as", "codex", "exec", "--json"}, "resume", ":ok:0", ":failed:3", true, false},
    {"opencode",
     {"--as", "opencode", "run"},
     "--session",
     "bash:ok:0",
     "bash:failed:3",
     false,
     true},
    {"pi",
     {"--as", "pi", "--mode", "rpc"},
     "--session",
     "bash:ok:0",
     "bash:failed:3",
     true,
     true},
    {"pi-json",
     {"--as", "pi", "--mode", "json"},
     "--session",
     "bash:ok:0",
     "bash:failed:3",
     true,
     true},
};
#define N (sizeof(speeches) / sizeof(speeches[0]))

static void be_the_agent(const struct speech *s, const char *session)
{
    const char *argv[12] = {"test_demo_speech", "--agent"};
    size_t n = 2;

    for (size_t i = 0; i < 6 && s->argv[i]; i++)
        argv[n++] = s->argv[i];
    if (session) {
        argv[n++] = s->resume;
        argv[n++] = session;
    }
    alarm(30); /* one that hangs ends, and the test fails */
    execv("/proc/self/exe", (char **)argv);
    _exit(99);
}

static void read_all(int fd, struct buf *b)
{
    char block[4096];
    ssize_t n;

    while ((n = read(fd, block, sizeof(block))) > 0 || (n < 0 && errno == EINTR))
        if (n > 0)
            buf_add(b, block, (size_t)n);
    close(fd);
}

/* One process with one message; what its adapter makes of it. */
static void ask(const struct speech *s, const char *session, const char *text, struct tape *t)
{
    const struct agent_adapter *a = agent_adapter_find(s->adapter);
    int in[2], out[2], err[2], status;
    struct buf message = BUF_INIT, said = BUF_INIT, words = BUF_INIT;
    struct err e = {0};
    pid_t pid;

    assert_non_null(a);
    assert_int_equal(a->encode_message(text, strlen(text), &message, &e), 0);
    assert_int_equal(pipe(in) | pipe(out) | pipe(err), 0);
    pid = fork();
    if (pid == 0) {
        dup2(in[0], 0), dup2(out[1], 1), dup2(err[1], 2);
        for (int i = 0; i < 2; i++)
            close(in[i]), close(out[i]), close(err[i]);
        if (chdir(dir) == 0)
            be_the_agent(s, session);
        _exit(99);
    }
    close(in[0]), close(out[1]), close(err[1]);
    /* one that cannot begin may have ended before it read anything */
    if (write(in[1], message.p, message.len) != (ssize_t)message.len)
        assert_int_equal(errno, EPIPE);
    close(in[1]);
    read_all(out[0], &said);
    read_all(err[0], &words); /* a few bytes: they fit the pipe */
    assert_int_equal(waitpid(pid, &status, 0), pid);
    tape_run(t, a, buf_str(&said), said.len, 4096, WIFEXITED(status) ? WEXITSTATUS(status) : -1,
             WIFSIGNALED(status) ? WTERMSIG(status) : 0, buf_str(&words));
    buf_release(&message);
    buf_release(&said);
    buf_release(&words);
}

static const struct agent_event *end_of(const struct tape *t)
{
    const struct agent_event *end = NULL;

    for (size_t i = 0; i < t->ev.n; i++)
        if (t->ev.v[i].kind == AGENT_TURN_END)
            end = &t->ev.v[i];
    assert_non_null(end);
    assert_int_equal(tape_count(t, AGENT_TURN_END), 1);
    assert_int_equal(tape_count(t, AGENT_RAW), 0);
    return end;
}

static int retries_of(const struct tape *t)
{
    int n = 0;

    for (size_t i = 0; i < t->ev.n; i++)
        n += t->ev.v[i].kind == AGENT_NOTICE && t->ev.v[i].retry_attempt > 0;
    return n;
}

static char *session_of(const struct tape *t)
{
    const struct agent_event *ev = tape_find(t, AGENT_SESSION, 0);

    return ev ? xstrdup(ev->id) : NULL;
}

/* --- tests ------------------------------------------------------------------------- */

static const struct {
    const char *name;
    enum agent_outcome outcome;
    enum agent_error_class cls;
    int http, retries;
    const char *text;
} cases[] = {
    {"plain", AGENT_OK, AGENT_ERR_NONE, 0, 0, "Hello! The answer is 4."},
    {"retry429", AGENT_OK, AGENT_ERR_NONE, 0, 2, "Hello! The answer is 4."},
    {"e401", AGENT_FAILED, AGENT_ERR_AUTH, 401, 0, ""},
    {"e402", AGENT_FAILED, AGENT_ERR_BILLING, 402, 0, ""},
    {"e404", AGENT_FAILED, AGENT_ERR_MODEL, 404, 0, ""},
    {"e429", AGENT_FAILED, AGENT_ERR_RATE, 429, 3, ""},
    {"e529", AGENT_FAILED, AGENT_ERR_OVERLOAD, 529, 3, ""},
    {"maxtokens", AGENT_TRUNCATED, AGENT_ERR_OTHER, 0, 0, "This answer is cut of"},
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
            char *text = xasprintf("[[case:%s]] please", cases[k].name), *said;
            const struct agent_event *end;
            struct tape t;

            print_message("# %s as %s\n", cases[k].name, speeches[i].adapter);
            ask(&speeches[i], NULL, text, &t);
            end = end_of(&t);
            assert_int_equal(end->outcome, cases[k].outcome);
            assert_int_equal(end->error_class, cases[k].cls);
            assert_int_equal(end->http_status, cases[k].http);
            assert_int_equal(retries_of(&t), speeches[i].retries ? cases[k].retries : 0);
            said = tape_texts(&t, AGENT_TEXT);
            assert_string_equal(said, cases[k].text);
            free(said);
            free(text);
            tape_release(&t);
        }
}

static void test_tools(void **state)
{
    (void)state;
    for (size_t i = 0; i < N; i++) {
        struct tape t;
        char *tools, *said;

        ask(&speeches[i], NULL, "[[case:tool]] please", &t);
        tools = tape_tools(&t);
        said = tape_texts(&t, AGENT_TEXT);
        assert_true(str_ends(tools, speeches[i].tool));
        assert_string_equal(said,
                            "I will create the file now.|Done: hello.txt holds one line.");
        assert_int_equal(end_of(&t)->outcome, AGENT_OK);
        free(tools);
        free(said);
        tape_release(&t);
        ask(&speeches[i], NULL, "[[case:toolfail]] please", &t);
        tools = tape_tools(&t);
        assert_true(str_ends(tools, speeches[i].tool_failed));
        free(tools);
        tape_release(&t);
    }
}

static void test_crash(void **state)
{
    (void)state;
    for (size_t i = 0; i < N; i++) {
        struct tape t;

        ask(&speeches[i], NULL, "[[case:crash]]", &t);
        assert_int_equal(end_of(&t)->outcome, AGENT_FAILED);
        assert_non_null(strstr(end_of(&t)->text, "told to crash"));
        assert_int_equal(t.ev.v[t.ev.n - 1].exit_code, 70);
        tape_release(&t);
    }
}

struct sum {
    int64_t in, cached;
    double cost;
};

/* What a reader has counted of a session after these events. */
static void count(struct sum *s, const struct tape *t)
{
    for (size_t i = 0; i < t->ev.n; i++) {
        const struct agent_event *ev = &t->ev.v[i];

        if (ev->kind != AGENT_USAGE)
            continue;
        if (ev->scope == AGENT_SCOPE_SESSION_TOTAL)
            *s = (struct sum){0};
        s->in += ev->in_tokens;
        s->cached += ev->cache_read;
        s->cost += ev->cost_usd;
    }
}

/* A second process goes on where the first ended: it knows what was said, and its tokens
 * are those of the conversation. */
static void test_resume(void **state)
{
    (void)state;
    for (size_t i = 0; i < N; i++) {
        struct tape t;
        struct sum s = {0};
        char *id, *said;

        ask(&speeches[i], NULL, "[[case:tool]] remember me", &t);
        id = session_of(&t);
        count(&s, &t);
        tape_release(&t);
        if (!id) /* only told when asked for */
            continue;
        ask(&speeches[i], id, "[[case:recall]]", &t);
        said = tape_texts(&t, AGENT_TEXT);
        assert_string_equal(
            said, "I remember 1 of your messages, the first was: [[case:tool]] remember me");
        count(&s, &t);
        assert_int_equal(s.in, 1000 + 1074 + 1148);
        assert_int_equal(s.cached, 300);
        assert_true(speeches[i].priced ? s.cost > 0.009 && s.cost < 0.012 : isnan(s.cost));
        free(id);
        free(said);
        tape_release(&t);
    }
}

static void test_no_such_session(void **state)
{
    (void)state;
    for (size_t i = 0; i < N; i++) {
        struct tape t;
        const struct agent_event *ex;

        ask(&speeches[i], "00000000-0000-4000-8000-000000000000", "hello", &t);
        ex = &t.ev.v[t.ev.n - 1];
        assert_int_equal(ex->kind, AGENT_EXIT);
        assert_int_equal(ex->exit_code, 1);
        assert_true(ex->text && *ex->text);
        tape_release(&t);
    }
}

static int up(void **state)
{
    (void)state;
    return mkdtemp(dir) && setenv("HOME", dir, 1) == 0 ? 0 : -1;
}

static int down(void **state)
{
    (void)state;
    return tmpdir_remove(dir);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),           cmocka_unit_test(test_tools),
        cmocka_unit_test(test_crash),           cmocka_unit_test(test_resume),
        cmocka_unit_test(test_no_such_session),
    };

    if (argc > 1 && str_eq(argv[1], "--agent"))
        return demo_agent_main(argc - 2, argv + 2);
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, up, down);
}
