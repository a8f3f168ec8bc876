/* Durable sessions against a real local provider when parts of it die: a stream that outlives
 * keeper, provider and ourselves, two readers, more output than is taken. */
#include "../lib/sessionbed.h"

#include <cct/util/str.h>
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

#define LINES 10000

static void test_keeper_killed(void **state)
{
    struct jobsbed *b = open_bed("a");
    uint64_t row = start(b, "shell", NULL, "echo here; false");
    const struct jobsbed_done *d;
    (void)state;

    assert_true(wait_text(b, row, "here"));
    assert_true(wait_agent(b, row, AG_IDLE));
    jobsbed_send(b, row, "k=$(readlink ~/.cc-tui/*/keeper); kill -9 ${k%-*}; sleep 100", 0);
    assert_true(wait_state(b, row, SB_ERROR));
    assert_non_null(strstr(model_sandbox(b->model, row)->reason, "keeper"));
    act(b, do_restart, row, 8);
    d = jobsbed_answer(b, 8, LONG_MS);
    assert_non_null(d);
    if (d->err.code)
        fail_msg("%s", d->err.text);
    jobsbed_send(b, row, "echo again", 9);
    assert_non_null(jobsbed_answer(b, 9, LONG_MS));
    assert_true(wait_text(b, row, "again"));
    jobsbed_free(b);
}

/* --- more than we can take ------------------------------------------------------- */

static void test_lag(void **state)
{
    struct jobsbed *b = open_bed("a");
    uint64_t row = start(b, "shell", "seq 1 200000; echo all done; sleep 100", NULL);
    const char *p;
    int want = 0;
    (void)state;

    poll(NULL, 0, 2000); /* the screen does not take anything meanwhile */
    assert_true(wait_text(b, row, "all done"));
    act(b, do_raw, row, 60);
    assert_non_null(jobsbed_answer(b, 60, LONG_MS));
    for (p = buf_str(&b->chunks); *p >= '0' && *p <= '9'; p = strchr(p, '\n') + 1)
        assert_int_equal(strtol(p, NULL, 10), ++want);
    assert_int_equal(want, 200000);
    jobsbed_free(b);
}

/* --- 10,000 lines at 2,000 a second ---------------------------------------------- */

static const char lines_command[] = "i=0; while [ $i -lt 10000 ]; do n=$((i + 100)); "
                                    "while [ $i -lt $n ]; do i=$((i + 1)); echo \"line $i of "
                                    "many, with some text behind it\"; done; "
                                    "sleep 0.05; done; sleep 100";

/* The lines shown are 1..n, each once and in order; n. */
static int lines_shown(struct jobsbed *b, uint64_t row)
{
    const struct transcript *t = model_transcript(b->model, row);
    int want = 0, n;

    for (size_t i = 0; t && i < t->n; i++) {
        if (t->v[i].kind != ITEM_RAW || !t->v[i].text ||
            sscanf(t->v[i].text, "line %d of", &n) != 1)
            continue;
        if (!want && n > 1)
            want = n - 1; /* the load brings the last ones only */
        if (n != ++want)
            fail_msg("line %d is shown where %d should be", n, want);
    }
    return want;
}

static bool has_lines(void *ctx)
{
    struct look *l = ctx;

    return lines_shown(l->b, l->row) >= l->n;
}

static void wait_lines(struct jobsbed *b, uint64_t row, int n)
{
    struct look l = {.b = b, .row = row, .n = n};

    if (!jobsbed_wait(b, has_lines, &l, LONG_MS))
        fail_msg("%d of %d lines came", lines_shown(b, row), n);
}

/* The stored bytes hold every line once and in order. */
static void check_stored(struct jobsbed *b, uint64_t row, uint64_t req)
{
    int want = 0, n;
    const char *p;

    buf_clear(&b->chunks);
    act(b, do_raw, row, req);
    assert_non_null(jobsbed_answer(b, req, LONG_MS));
    for (p = buf_str(&b->chunks); *p; p = strchr(p, '\n') + 1) {
        if (sscanf(p, "line %d of", &n) == 1 && n != ++want)
            fail_msg("line %d is stored where %d should be", n, want);
        if (!strchr(p, '\n'))
            break;
    }
    assert_int_equal(want, LINES);
}

static void test_provider_dies(void **state)
{
    struct jobsbed *b = open_bed("a"), *other;
    uint64_t row = start(b, "shell", lines_command, NULL);
    struct e2b_account a;
    (void)state;

    other = open_bed("b"); /* two followers on one database */
    jobsbed_load(other);
    act(other, do_show, row, 0);
    wait_lines(b, row, 1000);
    localbed_kill(session_local);
    assert_true(localbed_start(session_local));
    localbed_account(session_local, &a);
    jobsbed_account(b, &a);
    jobsbed_account(other, &a);
    e2b_account_release(&a);
    wait_lines(b, row, LINES);
    wait_lines(other, row, LINES);
    check_stored(b, row, 50);
    check_stored(other, row, 51);
    jobsbed_free(other);
    jobsbed_free(b);
}

/* A message of the time when nobody answered is carried out once. */
static void test_sent_in_the_dark(void **state)
{
    struct jobsbed *b = open_bed("a");
    uint64_t row = start(b, "demo", NULL, NULL), id;
    struct look l = {.b = b, .row = row, .text = "once 1\n"};
    struct e2b_account a;
    (void)state;

    assert_true(wait_agent(b, row, AG_IDLE));
    localbed_kill(session_local);
    id = jobsbed_send(b, row, "run echo x >>~/got; echo once $(wc -l <~/got)", 0);
    jobsbed_wait(b, NULL, NULL, 500); /* tried meanwhile, in vain */
    assert_true(localbed_start(session_local));
    localbed_account(session_local, &a);
    jobsbed_account(b, &a);
    e2b_account_release(&a);
    assert_true(wait_message(b, id, MSG_DELIVERED));
    assert_true(jobsbed_wait(b, look_tool, &l, LONG_MS));
    jobsbed_send(b, row, "run echo lines $(wc -l <~/got)", 70);
    assert_non_null(jobsbed_answer(b, 70, LONG_MS));
    l.text = "lines 1\n";
    assert_true(jobsbed_wait(b, look_tool, &l, LONG_MS));
    jobsbed_free(b);
}

/* A process of its own that follows until it is killed. */
static pid_t follower(void)
{
    pid_t pid = fork();
    struct jobsbed *b;

    if (pid)
        return pid;
    b = open_bed("child");
    jobsbed_load(b);
    act(b, do_follow, b->j.table.v[0].id, 0);
    jobsbed_wait(b, NULL, NULL, LONG_MS);
    _exit(0);
}

static void test_we_die(void **state)
{
    struct jobsbed *b = open_bed("a");
    uint64_t row = start(b, "shell", lines_command, NULL);
    (void)state;

    jobsbed_free(b);
    for (int i = 0; i < 5; i++) {
        pid_t pid = follower();

        poll(NULL, 0, 250 + 170 * i); /* at any moment of its work */
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    b = open_bed("again");
    jobsbed_load(b);
    act(b, do_show, row, 0);
    wait_lines(b, row, LINES);
    check_stored(b, row, 60);
    jobsbed_free(b);
}

/* Sent by one that is gone before the agent took it in: whoever comes next sees the echo. */
static void test_sender_dies(void **state)
{
    struct jobsbed *b = open_bed("a");
    uint64_t row = start(b, "late", NULL, NULL);
    struct look l = {.row = row};
    pid_t pid;
    (void)state;

    jobsbed_free(b);
    pid = fork();
    if (pid == 0) {
        b = open_bed("child");
        jobsbed_load(b);
        jobsbed_send(b, row, "run echo from-the-grave", 0);
        jobsbed_wait(b, NULL, NULL, LONG_MS);
        _exit(0);
    }
    poll(NULL, 0, 1200);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    l.b = b = open_bed("heir");
    jobsbed_load(b);
    act(b, do_show, row, 0);
    jobsbed_send(b, row, "run echo and-then", 4);
    assert_non_null(jobsbed_answer(b, 4, LONG_MS));
    assert_true(wait_text(b, row, "and-then"));
    assert_int_equal(look_count(&l, ITEM_TOOL, "from-the-grave"), 1);
    act(b, do_show, row, 0);
    jobsbed_wait(b, NULL, NULL, 200);
    assert_int_equal(look_count(&l, ITEM_USER, "from-the-grave"), 1);
    assert_int_equal(look_item(&l, ITEM_USER, "from-the-grave")->state, MSG_DELIVERED);
    jobsbed_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_keeper_killed, new_db, drop_db),
        cmocka_unit_test_setup_teardown(test_lag, new_db, drop_db),
        cmocka_unit_test_setup_teardown(test_provider_dies, new_db, drop_db),
        cmocka_unit_test_setup_teardown(test_sent_in_the_dark, new_db, drop_db),
        cmocka_unit_test_setup_teardown(test_we_die, new_db, drop_db),
        cmocka_unit_test_setup_teardown(test_sender_dies, new_db, drop_db),
    };

    if (!sessionbed_begin())
        return sessionbed_none("lost sessions");
    return sessionbed_end(cmocka_run_group_tests_name("session_lost", tests, NULL, NULL));
}
