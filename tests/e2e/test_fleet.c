/* Several kinds of agents at once on a real local provider, each driven its own way: a
 * process for all messages (claude), one per message (codex, opencode), commands with
 * responses (pi). They are the demo agent in the words of those CLIs. */
#include "../lib/appbed.h"
#include "../lib/storebox.h"

#include <cct/model/agent_event.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <math.h>
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

#define FIRST "of your messages, the first was: [[case:tool]] first words"

enum { MODES = 4, BOXES = 20, TOLD = 12 };

static const struct mode {
    const char *name, *adapter, *command, *resume;
    bool priced;
} modes[MODES] = {
    {"claude", "claude", "demo-agent --as claude", "--resume", true},
    {"codex", "codex", "demo-agent --as codex exec --json -", "exec resume", false},
    {"opencode", "opencode", "demo-agent --as opencode run --format json", "--session", true},
    {"pi", "pi", "demo-agent --as pi --mode rpc", "--session", true},
};
static uint64_t ids[BOXES]; /* number i is of mode i % MODES */
static size_t n_ids;

/* tools.conf: the four ways to speak, none of which needs a key. */
static void write_tools(const struct appbed *b)
{
    char *conf = appbed_path(b, "conf"), *path = appbed_path(b, "conf/tools.conf");
    FILE *f;

    assert_int_equal(mkdir(conf, 0700), 0);
    f = fopen(path, "w");
    assert_non_null(f);
    for (size_t i = 0; i < MODES; i++)
        fprintf(f,
                "[tool d-%s]\nadapter = %s\ntemplate = demo\ncommand = \"%s\"\nresume = %s\n\n",
                modes[i].name, modes[i].adapter, modes[i].command, modes[i].resume);
    assert_int_equal(fclose(f), 0);
    free(conf);
    free(path);
}

static void open_app(struct appbed *b)
{
    struct app_opts o = {.local = true,
                         .local_unsafe = !appbed_isolated(),
                         .start_local = true,
                         .follow_all = true,
                         .poll_ms = 300};

    appbed_open(b, &o);
}

/* --- looking ------------------------------------------------------------------------ */

static const struct sandbox *row(struct appbed *b, size_t i)
{
    return model_sandbox(app_model(b->app), ids[i]);
}

static bool all_are(struct appbed *b, enum sb_agent a, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct sandbox *s = row(b, i);

        if (!s || s->state != SB_RUNNING || s->agent != a)
            return false;
    }
    return true;
}

static bool all_idle(struct appbed *b, const void *n)
{
    return all_are(b, AG_IDLE, *(const size_t *)n);
}

static bool all_work(struct appbed *b, const void *n)
{
    return all_are(b, AG_WORKING, *(const size_t *)n);
}

static int items(struct appbed *b, size_t i, enum item_kind kind, const char *text)
{
    const struct transcript *t = model_transcript(app_model(b->app), ids[i]);
    int n = 0;

    for (size_t k = 0; t && k < t->n; k++)
        n += t->v[k].kind == kind && t->v[k].text && strstr(t->v[k].text, text);
    return n;
}

static int told(struct appbed *b, size_t i, const char *text)
{
    const struct transcript *t = model_transcript(app_model(b->app), ids[i]);
    int n = 0;

    for (size_t k = 0; t && k < t->n; k++)
        n += t->v[k].kind == ITEM_USER && t->v[k].state == MSG_DELIVERED &&
             str_eq(t->v[k].text, text);
    return n;
}

struct said {
    const char *text;
    int n; /* times */
};

/* In each of the first four. */
static bool each_says(struct appbed *b, const void *arg)
{
    const struct said *s = arg;

    for (size_t i = 0; i < MODES; i++)
        if (items(b, i, ITEM_TEXT, s->text) != s->n)
            return false;
    return true;
}

static void follow(struct appbed *b)
{
    for (size_t i = 0; i < n_ids; i++)
        app_follow(b->app, ids[i]);
}

/* What the four show, for whoever looks at a failure. */
static void show(struct appbed *b)
{
    for (size_t i = 0; i < MODES; i++) {
        const struct transcript *t = model_transcript(app_model(b->app), ids[i]);

        print_message("# --- %s, %s, %s, %lld tokens in, %lld out\n", modes[i].name,
                      sb_agent_name(row(b, i)->agent),
                      row(b, i)->reason ? row(b, i)->reason : "",
                      (long long)row(b, i)->tokens_in, (long long)row(b, i)->tokens_out);
        for (size_t k = 0; t && k < t->n; k++)
            print_message("# %d %d %.100s\n", t->v[k].kind, t->v[k].state,
                          t->v[k].text ? t->v[k].text : "");
    }
}

static void until(struct appbed *b, bool (*ok)(struct appbed *b, const void *arg),
                  const void *arg)
{
    if (appbed_wait(b, ok, arg))
        return;
    show(b);
    fail_msg("it never came to this: %s",
             ok == each_says ? ((const struct said *)arg)->text : "");
}

/* --- doing --------------------------------------------------------------------------- */

/* So many more sandboxes, made at the same time. */
static void create(struct appbed *b, size_t n, const char *prompt)
{
    uint64_t req[BOXES];
    size_t first = n_ids;

    for (size_t i = first; i < first + n; i++) {
        char *tool = xasprintf("d-%s", modes[i % MODES].name);
        char *name = xasprintf("%s-%zu", modes[i % MODES].name, i / MODES);
        struct app_create c = {.tool = tool, .name = name, .prompt = prompt};

        req[i] = app_create(b->app, &c, true);
        free(tool);
        free(name);
    }
    for (size_t i = first; i < first + n; i++) {
        appbed_must(b, req[i]);
        ids[i] = b->sandbox;
    }
    n_ids = first + n;
    until(b, all_idle, &n_ids);
}

/* The same to each of the four and how its turn ended. */
static void ask_each(struct appbed *b, const char *text, int outcome)
{
    uint64_t req[MODES];

    for (size_t i = 0; i < MODES; i++)
        req[i] = app_send(b->app, ids[i], text, true);
    for (size_t i = 0; i < MODES; i++) {
        appbed_finish(b, req[i]);
        print_message("# %s, %s: outcome %d, %s\n", modes[i].name, text, b->outcome,
                      b->text ? b->text : "");
        assert_int_equal(b->outcome, outcome);
    }
    until(b, all_idle, &(size_t){MODES});
}

/* Three steps of a model, the cached tokens too; the costs as far as they are told. */
static bool each_counts(struct appbed *b, const void *arg)
{
    (void)arg;
    for (size_t i = 0; i < MODES; i++) {
        const struct sandbox *s = row(b, i);

        if (s->tokens_in != 1100 + 1174 + 1248)
            return false;
        if (modes[i].priced ? !(s->cost_usd > 0.009 && s->cost_usd < 0.012)
                            : !isnan(s->cost_usd))
            return false;
    }
    return true;
}

/* --- tests ----------------------------------------------------------------------------- */

static void test_two_messages(void **state)
{
    struct appbed *b = *state;

    create(b, MODES, "[[case:tool]] first words");
    follow(b);
    until(b, each_says, &(struct said){"Done: hello.txt holds one line.", 1});
    for (size_t i = 0; i < MODES; i++)
        assert_int_equal(items(b, i, ITEM_TOOL, "hello from the agent"), 1);
    ask_each(b, "[[case:recall]] second", AGENT_OK);
    until(b, each_says,
          &(struct said){"I remember 1 of your messages, the first was: [[case:tool]] first "
                         "words",
                         1});
    until(b, each_counts, NULL);
}

static void test_refused(void **state)
{
    struct appbed *b = *state;

    follow(b);
    ask_each(b, "[[case:e401]] third", AGENT_FAILED);
    ask_each(b, "[[case:e429]] fourth", AGENT_FAILED);
    ask_each(b, "[[case:retry429]] fifth", AGENT_OK);
}

static void test_interrupt(void **state)
{
    struct appbed *b = *state;
    uint64_t turn[MODES], req[MODES];

    follow(b);
    until(b, all_idle, &(size_t){MODES});
    for (size_t i = 0; i < MODES; i++)
        turn[i] = app_send(b->app, ids[i], "[[case:slow]] sixth", true);
    until(b, all_work, &(size_t){MODES});
    for (size_t i = 0; i < MODES; i++)
        req[i] = app_interrupt(b->app, ids[i]);
    for (size_t i = 0; i < MODES; i++) {
        appbed_must(b, req[i]);
        appbed_finish(b, turn[i]);
        print_message("# %s was interrupted: %d\n", modes[i].name, b->outcome);
        assert_int_equal(b->outcome, AGENT_INTERRUPTED);
    }
    until(b, all_idle, &(size_t){MODES});
    ask_each(b, "[[case:recall]] seventh", AGENT_OK);
    until(b, each_says, &(struct said){FIRST, 2});
}

/* All have begun: under load they may not be in their answers at the same moment. */
static bool each_began(struct appbed *b, const void *arg)
{
    static bool began[MODES];
    size_t n = 0;

    (void)arg;
    for (size_t i = 0; i < MODES; i++) {
        began[i] = began[i] || row(b, i)->agent == AG_WORKING;
        n += began[i];
    }
    return n == MODES;
}

/* A program of ours with the four in the middle of an answer; a byte says so. */
static void be_the_first(struct appbed *b, int fd)
{
    open_app(b);
    follow(b);
    if (!appbed_wait(b, all_idle, &(size_t){MODES}))
        _exit(1);
    for (size_t i = 0; i < MODES; i++)
        appbed_must(b, app_send(b->app, ids[i], "[[case:words12]] eighth", false));
    if (!appbed_wait(b, each_began, NULL) || write(fd, "x", 1) != 1)
        _exit(1);
    for (;;)
        pause();
}

static void test_killed_in_the_middle(void **state)
{
    struct appbed *b = *state;
    int fd[2], status;
    char byte;
    pid_t pid;

    appbed_close(b);
    assert_int_equal(pipe(fd), 0);
    pid = fork();
    if (pid == 0)
        be_the_first(b, fd[1]);
    close(fd[1]);
    assert_int_equal(read(fd[0], &byte, 1), 1);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    close(fd[0]);
    open_app(b);
    follow(b);
    until(b, each_says, &(struct said){"w0 w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 w11", 1});
    until(b, all_idle, &(size_t){MODES});
    for (size_t i = 0; i < MODES; i++)
        assert_int_equal(told(b, i, "[[case:words12]] eighth"), 1);
    ask_each(b, "[[case:recall]] ninth", AGENT_OK);
    until(b, each_says, &(struct said){FIRST, 3});
}

static bool stopped(struct appbed *b, const void *i)
{
    enum sb_agent a = row(b, *(const size_t *)i)->agent;

    return a == AG_FAILED || a == AG_EXITED;
}

/* The end of a CLI in the middle of a turn is told with its last words; one that runs per
 * message needs nothing more, the others are started again and know what was said. */
static void test_crash(void **state)
{
    static const size_t lasting[] = {0, 3}; /* claude, pi */
    struct appbed *b = *state;

    follow(b);
    for (size_t i = 0; i < MODES; i++) {
        appbed_finish(b, app_send(b->app, ids[i], "[[case:crash]] tenth", true));
        assert_int_equal(b->outcome, AGENT_FAILED);
        assert_non_null(strstr(b->text, "told to crash"));
    }
    for (size_t i = 0; i < 2; i++) {
        until(b, stopped, &lasting[i]);
        appbed_must(b, app_restart_agent(b->app, ids[lasting[i]]));
    }
    until(b, all_idle, &(size_t){MODES});
    ask_each(b, "[[case:recall]] eleventh", AGENT_OK);
    until(b, each_says, &(struct said){FIRST, 4});
}

/* Tokens of so many steps: the n-th has 1000, 100 cached ones and 74 for each before. */
static bool counted(struct appbed *b, const void *steps)
{
    int64_t n = *(const int64_t *)steps;

    for (size_t i = 0; i < MODES - 1; i++) /* pi counts what was refused and interrupted, too */
        if (row(b, i)->tokens_in != 1100 * n + 74 * n * (n - 1) / 2)
            return false;
    return true;
}

/* What was counted is there after a start of ours anew, and one more step adds itself
 * alone, though some CLIs tell the sum of their session. */
static void test_counted_once(void **state)
{
    struct appbed *b = *state;
    int64_t steps = 8; /* 2 of the tool, 4 x recall, a retry that went well, the words */

    until(b, counted, &steps);
    appbed_close(b);
    open_app(b);
    follow(b);
    until(b, all_idle, &(size_t){MODES});
    until(b, counted, &steps);
    ask_each(b, "[[case:plain]] twelfth", AGENT_OK);
    steps++;
    until(b, counted, &steps);
}

/* Another cc-tui starts an agent again that ended: here its row is none of an error any more,
 * and what it says now comes, though nobody asked for it here. */
static void test_restarted_elsewhere(void **state)
{
    struct appbed *b = *state;
    static const char with[] = "CC_TUI_CONFIG_DIR=%s/conf CC_TUI_DATA_DIR=%s/data "
                               "CC_TUI_STATE_DIR=%s/state CC_TUI_RUNTIME_DIR=%s/run ";
    char *places = xasprintf(with, b->root, b->root, b->root, b->root);
    char *cmd = xasprintf("env %s cc-tui %s restart claude-0 >/dev/null", places,
                          appbed_isolated() ? "--local" : "--local-unsafe");

    follow(b);
    appbed_finish(b, app_send(b->app, ids[0], "[[case:crash]] of old", true));
    until(b, stopped, &(size_t){0});
    assert_int_equal(row(b, 0)->state, SB_ERROR);
    assert_int_equal(system(cmd), 0);
    until(b, all_idle, &(size_t){1});
    assert_null(row(b, 0)->reason);
    free(places);
    free(cmd);
}

static bool stored_idle(struct appbed *b, const void *cmd)
{
    (void)b;
    return system(cmd) == 0;
}

/* What a command wrote of an agent when it left may be older than what we see: it does not stay. */
static void test_older_word(void **state)
{
    struct appbed *b = *state;
    char *db = appbed_path(b, "data/cc-tui.db");
    char *cmd = xasprintf("env CC_TUI_CONFIG_DIR=%s/conf CC_TUI_DATA_DIR=%s/data "
                          "CC_TUI_STATE_DIR=%s/state CC_TUI_RUNTIME_DIR=%s/run cc-tui %s ls |"
                          "grep -q 'codex-0 .* idle '",
                          b->root, b->root, b->root, b->root,
                          appbed_isolated() ? "--local" : "--local-unsafe");

    until(b, all_idle, &(size_t){MODES});
    storebox_sql(db, "UPDATE sandboxes SET agent='working' WHERE name='codex-0'");
    assert_true(appbed_wait(b, stored_idle, cmd));
    free(db);
    free(cmd);
}

static bool delivered(struct appbed *b, const void *req)
{
    const struct broadcast *c = model_broadcast(app_model(b->app), *(const uint64_t *)req);

    for (size_t i = 0; c && i < c->n; i++) {
        const struct message *m = model_message(app_model(b->app), c->v[i].message);

        if (!m || m->state != MSG_DELIVERED)
            return false;
    }
    return c != NULL;
}

/* Each of the twelve its own text once, and it answered. */
static bool twelve_told(struct appbed *b, const void *arg)
{
    (void)arg;
    for (size_t i = BOXES - TOLD; i < BOXES; i++) {
        char *text = xasprintf("[[case:plain]] to %s", row(b, i)->name);
        int n = told(b, i, text);

        free(text);
        if (n != 1 || items(b, i, ITEM_TEXT, "The answer is 4.") != 1)
            return false;
    }
    return true;
}

/* Twenty of four kinds, twelve of them told the same: each of these once, the others not. */
static void test_twenty(void **state)
{
    struct appbed *b = *state;
    const struct broadcast *c;
    int64_t t = clock_mono_ms();
    uint64_t req;

    create(b, BOXES - MODES, NULL);
    print_message("# %d more sandboxes in %lld ms\n", BOXES - MODES,
                  (long long)(clock_mono_ms() - t));
    t = clock_mono_ms();
    follow(b);
    req = app_broadcast(b->app, ids + (BOXES - TOLD), TOLD, "[[case:plain]] to {name}",
                        SEND_FILL);
    appbed_must(b, req);
    c = model_broadcast(app_model(b->app), req);
    assert_int_equal(c->n, TOLD);
    for (size_t i = 0; i < TOLD; i++) {
        assert_int_equal(c->v[i].sandbox, ids[BOXES - TOLD + i]);
        assert_true(c->v[i].message && !c->v[i].error);
    }
    until(b, delivered, &req);
    until(b, all_idle, &n_ids);
    print_message("# %d told in %lld ms\n", TOLD, (long long)(clock_mono_ms() - t));
    until(b, twelve_told, NULL);
    for (size_t i = 0; i < BOXES; i++)
        assert_int_equal(items(b, i, ITEM_USER, "[[case:plain]] to "), i >= BOXES - TOLD);
}

static int begin(void **state)
{
    struct appbed *b = *state = appbed_new();

    write_tools(b);
    open_app(b);
    return 0;
}

static int end(void **state)
{
    appbed_free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_messages), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_interrupt),    cmocka_unit_test(test_killed_in_the_middle),
        cmocka_unit_test(test_crash),        cmocka_unit_test(test_counted_once),
        cmocka_unit_test(test_twenty),       cmocka_unit_test(test_restarted_elsewhere),
        cmocka_unit_test(test_older_word),
    };

    appbed_main();
    return cmocka_run_group_tests_name("fleet", tests, begin, end);
}
