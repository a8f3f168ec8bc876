/* Durable sessions against a real local provider: a conversation, interrupt, the end, starting
 * again, what happens to the sandbox. */
#include "../lib/sessionbed.h"

#include <cct/model/agent_event.h>
#include <cct/util/clock.h>
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

/* --- a conversation -------------------------------------------------------------- */

static void test_conversation(void **state)
{
    struct jobsbed *b = open_bed("a");
    uint64_t row = start(b, "demo", NULL, "help"), id;
    struct look l = {.b = b, .row = row};
    const struct jobsbed_done *d;
    (void)state;

    assert_true(wait_text(b, row, "no model is behind"));
    assert_true(wait_agent(b, row, AG_IDLE));
    assert_int_equal(look_count(&l, ITEM_USER, "help"), 1);
    assert_int_equal(look_item(&l, ITEM_USER, "help")->state, MSG_DELIVERED);
    id = jobsbed_send(b, row, "run echo first-$((20+3))", 77);
    d = jobsbed_answer(b, 77, LONG_MS);
    assert_non_null(d);
    assert_int_equal(d->err.code, 0);
    assert_int_equal(d->outcome, AGENT_OK);
    assert_non_null(strstr(d->text, "exit status 0"));
    assert_true(wait_message(b, id, MSG_DELIVERED));
    assert_true(wait_text(b, row, "first-23"));
    /* the queue is ours: three at once are three turns in order */
    for (int i = 0; i < 3; i++) {
        char text[40];

        snprintf(text, sizeof(text), "run echo queued-%d", i);
        id = jobsbed_send(b, row, text, i == 2 ? 78 : 0);
    }
    d = jobsbed_answer(b, 78, LONG_MS);
    assert_non_null(d);
    assert_int_equal(d->err.code, 0);
    assert_true(wait_message(b, id, MSG_DELIVERED));
    assert_true(wait_text(b, row, "queued-2"));
    for (int i = 0; i < 3; i++) {
        char text[40];

        snprintf(text, sizeof(text), "run echo queued-%d", i);
        assert_int_equal(look_count(&l, ITEM_USER, text), 1);
    }
    /* the same from the store */
    act(b, do_show, row, 0);
    assert_true(wait_text(b, row, "queued-2"));
    assert_int_equal(look_count(&l, ITEM_USER, "run echo"), 4);
    jobsbed_free(b);
}

static void test_interrupt(void **state)
{
    struct jobsbed *b = open_bed("a");
    uint64_t row = start(b, "demo", NULL, NULL);
    const struct jobsbed_done *d;
    (void)state;

    assert_true(wait_agent(b, row, AG_IDLE));
    jobsbed_send(b, row, "run sleep 100", 5);
    assert_true(wait_agent(b, row, AG_WORKING));
    act(b, do_interrupt, row, 6);
    d = jobsbed_answer(b, 6, LONG_MS);
    assert_non_null(d);
    assert_int_equal(d->err.code, 0);
    d = jobsbed_answer(b, 5, LONG_MS);
    assert_non_null(d);
    assert_int_equal(d->outcome, AGENT_INTERRUPTED);
    assert_true(wait_agent(b, row, AG_IDLE));
    act(b, do_interrupt, row, 7);
    d = jobsbed_answer(b, 7, LONG_MS);
    assert_int_equal(d->err.code, ERR_CONFLICT);
    jobsbed_free(b);
}

static void test_shell(void **state)
{
    struct jobsbed *b = open_bed("a");
    uint64_t row = start(b, "shell", NULL, "echo one; cd /tmp");
    struct look l = {.b = b, .row = row};
    const struct jobsbed_done *d;
    (void)state;

    assert_true(wait_text(b, row, "one"));
    jobsbed_send(b, row, "pwd; false", 5);
    d = jobsbed_answer(b, 5, LONG_MS);
    assert_non_null(d);
    assert_int_equal(d->outcome, AGENT_FAILED);
    assert_int_equal(d->exit_code, 1);
    assert_true(wait_text(b, row, "/tmp"));
    assert_int_equal(look_count(&l, ITEM_USER, "pwd; false"), 1);
    act(b, do_show, row, 0);
    assert_true(wait_text(b, row, "/tmp"));
    assert_int_equal(look_count(&l, ITEM_USER, "pwd; false"), 1);
    jobsbed_free(b);
}

/* --- the end and the next beginning ---------------------------------------------- */

static void test_no_such_program(void **state)
{
    struct jobsbed *b = open_bed("a");
    struct jobsbed_start q = {.tool = "missing"};
    struct err e = {0};
    (void)state;

    assert_int_equal(jobsbed_create(b, &q, &e), 0);
    assert_int_equal(e.code, ERR_NOTFOUND);
    assert_non_null(strstr(e.text, "'no-such-agent-program' is not in the template"));
    jobsbed_free(b);
}


static void test_death_and_restart(void **state)
{
    struct jobsbed *b = open_bed("a");
    uint64_t row = start(b, "demo", NULL, "run echo before"), id;
    struct look l = {.b = b, .row = row};
    const struct jobsbed_done *d;
    (void)state;

    assert_true(wait_text(b, row, "before"));
    assert_true(wait_agent(b, row, AG_IDLE));
    act(b, do_restart, row, 3);
    d = jobsbed_answer(b, 3, LONG_MS);
    assert_int_equal(d->err.code, ERR_CONFLICT); /* it lives */
    jobsbed_send(b, row, "run kill -9 $PPID; echo died >&2", 4);
    d = jobsbed_answer(b, 4, LONG_MS);
    assert_non_null(d);
    assert_int_equal(d->outcome, AGENT_FAILED);
    assert_true(wait_agent(b, row, AG_FAILED));
    assert_true(wait_state(b, row, SB_ERROR));
    assert_true(model_sandbox(b->model, row)->vm_up);
    assert_non_null(strstr(model_sandbox(b->model, row)->reason, "status 137"));
    id = jobsbed_send(b, row, "run echo after", 0);
    act(b, do_restart, row, 8);
    d = jobsbed_answer(b, 8, LONG_MS);
    assert_non_null(d);
    if (d->err.code)
        fail_msg("%s", d->err.text);
    assert_true(wait_message(b, id, MSG_DELIVERED));
    assert_true(wait_text(b, row, "after"));
    assert_true(wait_agent(b, row, AG_IDLE));
    assert_true(wait_state(b, row, SB_RUNNING));
    /* what the dead one said stays where it was, what waited stands where it was taken in */
    l.text = "after\n";
    assert_true(jobsbed_wait(b, look_tool, &l, LONG_MS));
    assert_int_equal(look_count(&l, ITEM_TOOL, "before"), 1);
    assert_true(look_item(&l, ITEM_TOOL, "before") < look_item(&l, ITEM_USER, "after"));
    assert_int_equal(look_item(&l, ITEM_TOOL, "after\n") - look_item(&l, ITEM_USER, "after"),
                     1);
    jobsbed_free(b);
}

static bool is_over_twice(void *ctx)
{
    return look_count(ctx, ITEM_RAW, "it is over") == 2;
}

static void test_own_command_ends(void **state)
{
    struct jobsbed *b = open_bed("a");
    uint64_t row = start(b, "shell", "echo 'it is' \"over\"", NULL);
    struct look l = {.b = b, .row = row};
    const struct jobsbed_done *d;
    (void)state;

    assert_true(wait_text(b, row, "it is over"));
    assert_true(wait_agent(b, row, AG_EXITED));
    act(b, do_raw, row, 9);
    d = jobsbed_answer(b, 9, LONG_MS);
    assert_non_null(d);
    assert_non_null(strstr(buf_str(&b->chunks), "it is over"));
    buf_clear(&b->chunks); /* its end alone */
    jobsbed_run(b, do_raw, &(struct act){.b = b, .row = row, .req = 8, .from = -5});
    assert_non_null(jobsbed_answer(b, 8, LONG_MS));
    assert_string_equal(buf_str(&b->chunks), "over\n");
    buf_clear(&b->chunks); /* more than there is */
    jobsbed_run(b, do_raw, &(struct act){.b = b, .row = row, .req = 7, .from = -1000});
    assert_non_null(jobsbed_answer(b, 7, LONG_MS));
    assert_string_equal(buf_str(&b->chunks), "it is over\n");
    /* again: the same command, in the same log */
    act(b, do_restart, row, 10);
    d = jobsbed_answer(b, 10, LONG_MS);
    assert_non_null(d);
    if (d->err.code)
        fail_msg("%s", d->err.text);
    assert_true(jobsbed_wait(b, is_over_twice, &l, LONG_MS));
    assert_true(wait_agent(b, row, AG_EXITED));
    jobsbed_free(b);
}

static bool has_chunk(void *ctx)
{
    struct look *l = ctx;

    return strstr(buf_str(&l->b->chunks), l->text) != NULL;
}

/* A reader of the live stream is called off: nothing more comes to it, not even an end. */
static void test_raw_ends(void **state)
{
    struct jobsbed *b = open_bed("a");
    uint64_t row = start(b, "shell", "echo one; until [ -e go ]; do sleep 0.05; done; echo two", NULL);
    struct act live = {.b = b, .row = row, .req = 9, .follow = true},
               other = {.b = b, .row = row, .req = 10, .follow = true};
    struct look said = {.b = b, .text = "one\n"};
    (void)state;

    jobsbed_run(b, do_raw, &live);
    assert_true(jobsbed_wait(b, has_chunk, &said, LONG_MS));
    jobsbed_run(b, do_raw_end, &live);
    jobsbed_run(b, do_raw_end, &live); /* twice is once */
    jobsbed_run(b, do_raw, &other);
    act(b, do_interrupt, row, 0);
    assert_non_null(jobsbed_answer(b, 10, LONG_MS)); /* it ended */
    assert_null(jobsbed_answer(b, 9, 0));
    jobsbed_free(b);
}

/* It was fed and the agent ended without a sign: the user decides. */
static void test_unconfirmed(void **state)
{
    struct jobsbed *b = open_bed("a");
    uint64_t row = start(b, "mute", NULL, NULL), id;
    struct look l = {.b = b, .row = row};
    const struct jobsbed_done *d;
    (void)state;

    id = jobsbed_send(b, row, "hello", 5);
    assert_true(wait_message(b, id, MSG_UNCONFIRMED));
    d = jobsbed_answer(b, 5, LONG_MS);
    assert_int_equal(d->err.code, ERR_CONFLICT);
    assert_true(wait_state(b, row, SB_ERROR));
    assert_non_null(strstr(model_sandbox(b->model, row)->reason, "bad words"));
    jobsbed_wait(b, NULL, NULL, 100);
    assert_int_equal(look_item(&l, ITEM_USER, "hello")->state, MSG_UNCONFIRMED);
    jobsbed_free(b);
}

static void on_state(void *ctx, struct st_reply *r)
{
    struct act *a = ctx;

    session_relay(session_of(&a->b->j, a->row));
    jobs_done(&a->b->j, 900, &r->err, a->row);
}

/* What the core does when the user says "send it again". */
static void do_resend(void *ctx)
{
    struct act *a = ctx;

    store_message_state(a->b->j.o.store, a->req, MSG_UNCONFIRMED, MSG_QUEUED, NULL,
                        jobs_store(&a->b->j, on_state, a, a));
}

/* The folder knows its id already: sent again it must be fed again. */
static void test_sent_again(void **state)
{
    struct jobsbed *b = open_bed("a");
    uint64_t row = start(b, "mute", NULL, NULL), id;
    struct act a = {.b = b, .row = row};
    (void)state;

    id = jobsbed_send(b, row, "hello", 0);
    assert_true(wait_message(b, id, MSG_UNCONFIRMED));
    assert_true(wait_state(b, row, SB_ERROR));
    act(b, do_restart, row, 3);
    assert_int_equal(jobsbed_answer(b, 3, LONG_MS)->err.code, 0);
    assert_true(wait_agent(b, row, AG_IDLE));
    assert_true(wait_state(b, row, SB_RUNNING));
    a.req = id;
    jobsbed_run(b, do_resend, &a);
    assert_non_null(jobsbed_answer(b, 900, LONG_MS));
    assert_true(wait_agent(b, row, AG_FAILED)); /* it read a line and went */
    assert_true(wait_state(b, row, SB_ERROR));
    assert_true(wait_message(b, id, MSG_UNCONFIRMED));
    jobsbed_free(b);
}


static bool has_notice(void *ctx)
{
    struct look *l = ctx;

    return look_item(l, ITEM_NOTICE, l->text) != NULL;
}

/* Somebody empties the log under us: said, and what comes then is not mixed with it. */
static void test_log_cut(void **state)
{
    struct jobsbed *b = open_bed("a");
    /* far more than what comes after the cut, or a late look would see a log that
     * only grew */
    uint64_t row = start(b, "shell", NULL, "seq 2000 | tr '\\n' ' '; echo a long first line");
    struct look l = {.b = b, .row = row, .text = "output may be missing"},
                first = {.b = b, .text = "a long first line\n"},
                fresh = {.b = b, .text = "fresh start\n"};
    (void)state;

    assert_true(wait_text(b, row, "a long first line"));
    jobsbed_run(b, do_raw, &(struct act){.b = b, .row = row, .req = 9, .follow = true});
    assert_true(jobsbed_wait(b, has_chunk, &first, LONG_MS));
    jobsbed_send(b, row, "for f in ~/.cc-tui/*/out.log; do : >$f; done; echo fresh start", 0);
    assert_true(wait_text(b, row, "fresh start"));
    assert_true(jobsbed_wait(b, has_notice, &l, LONG_MS));
    jobsbed_send(b, row, "echo and further", 4);
    assert_non_null(jobsbed_answer(b, 4, LONG_MS));
    assert_true(wait_text(b, row, "and further"));
    assert_true(jobsbed_wait(b, has_chunk, &fresh, LONG_MS)); /* who follows the bytes gets these, too */
    jobsbed_free(b);
}

/* --- the VM ---------------------------------------------------------------------- */

static void on_vm(void *ctx, const struct e2b_result *r)
{
    struct act *a = ctx;

    jobs_done(&a->b->j, a->req, r->err.code ? &r->err : NULL, a->row);
}

static void do_pause(void *ctx)
{
    struct act *a = ctx;

    e2b_pause(a->b->j.e2b, jobs_row(&a->b->j, a->row)->sandbox_id, on_vm, a);
}

static void do_resume(void *ctx)
{
    struct act *a = ctx;

    e2b_connect(a->b->j.e2b, jobs_row(&a->b->j, a->row)->sandbox_id, 300, on_vm, a);
}

static void do_kill(void *ctx)
{
    struct act *a = ctx;
    struct e2b_call_opts o = {.urgent = true};

    e2b_kill(a->b->j.e2b, jobs_row(&a->b->j, a->row)->sandbox_id, &o, on_vm, a);
}

/* What the core does when the list told it. */
static void do_state(void *ctx)
{
    struct act *a = ctx;
    struct sandbox *r = jobs_row(&a->b->j, a->row);

    r->state = (enum sb_state)a->req;
    jobs_row_changed(&a->b->j, r);
    session_vm_state(session_of(&a->b->j, a->row), r->state);
}

static void vm(struct jobsbed *b, void (*fn)(void *ctx), uint64_t row, uint64_t req)
{
    struct act a = {.b = b, .row = row, .req = req};
    const struct jobsbed_done *d;

    jobsbed_run(b, fn, &a);
    d = jobsbed_answer(b, req, LONG_MS);
    assert_non_null(d);
    if (d->err.code)
        fail_msg("%s", d->err.text);
}

static void test_pause_and_kill(void **state)
{
    struct jobsbed *b = open_bed("a");
    uint64_t row = start(b, "demo", NULL, NULL), id;
    struct look l = {.b = b, .row = row};
    (void)state;

    assert_true(wait_agent(b, row, AG_IDLE));
    vm(b, do_pause, row, 20);
    act(b, do_state, row, SB_PAUSED);
    id = jobsbed_send(b, row, "run echo thawed", 0);
    jobsbed_wait(b, NULL, NULL, 300);
    assert_int_equal(look_count(&l, ITEM_TOOL, "thawed"), 0);
    vm(b, do_resume, row, 21);
    act(b, do_state, row, SB_RUNNING);
    assert_true(wait_message(b, id, MSG_DELIVERED));
    assert_true(wait_text(b, row, "thawed"));
    assert_true(wait_agent(b, row, AG_IDLE));
    jobsbed_send(b, row, "run sleep 100", 22);
    assert_true(wait_agent(b, row, AG_WORKING));
    id = jobsbed_send(b, row, "run echo never", 0);
    vm(b, do_kill, row, 23);
    act(b, do_state, row, SB_KILLED);
    assert_true(wait_message(b, id, MSG_FAILED));
    assert_int_equal(jobsbed_answer(b, 22, LONG_MS)->err.code, ERR_CONFLICT);
    jobsbed_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_conversation, new_db, drop_db),
        cmocka_unit_test_setup_teardown(test_interrupt, new_db, drop_db),
        cmocka_unit_test_setup_teardown(test_shell, new_db, drop_db),
        cmocka_unit_test_setup_teardown(test_no_such_program, new_db, drop_db),
        cmocka_unit_test_setup_teardown(test_death_and_restart, new_db, drop_db),
        cmocka_unit_test_setup_teardown(test_own_command_ends, new_db, drop_db),
        cmocka_unit_test_setup_teardown(test_raw_ends, new_db, drop_db),
        cmocka_unit_test_setup_teardown(test_unconfirmed, new_db, drop_db),
        cmocka_unit_test_setup_teardown(test_sent_again, new_db, drop_db),
        cmocka_unit_test_setup_teardown(test_log_cut, new_db, drop_db),
        cmocka_unit_test_setup_teardown(test_pause_and_kill, new_db, drop_db),
    };

    if (!sessionbed_begin())
        return sessionbed_none("sessions");
    return sessionbed_end(cmocka_run_group_tests_name("session", tests, NULL, NULL));
}
