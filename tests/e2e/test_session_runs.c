/* Durable sessions of a tool that runs once per message, against a real local provider: where
 * its runs begin and end, and whose they are. */
#include "../../src/agent/agent_priv.h"
#include "../../src/jobs/session_follow.h"
#include "../../src/jobs/session_relay.h"
#include "../lib/sessionbed.h"

#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void *one_new(void)
{
    return xcalloc(1, 1);
}

static void one_line(void *state, struct agent_dec *d, const char *text, size_t len)
{
    struct agent_event ev = AGENT_EVENT(AGENT_TEXT);

    (void)state;
    ev.text = xstrndup(text, len);
    ev.mode = AGENT_REPLACE;
    ev.final = true;
    agent_dec_emit(d, &ev);
    free(ev.text);
}

static void one_end(void *state, struct agent_dec *d, int code, int sig,
                    const char *stderr_tail)
{
    struct agent_event ev = AGENT_EVENT(AGENT_EXIT);

    (void)state;
    agent_dec_place_exit(d);
    ev.exit_code = code;
    ev.signal = sig;
    ev.text = (char *)stderr_tail;
    agent_dec_emit(d, &ev);
}

static int one_encode(const char *text, size_t len, struct buf *out, struct err *e)
{
    (void)e;
    buf_add(out, text, len);
    return buf_addc(out, '\n');
}

static const struct agent_adapter one = {.name = "one",
                                         .mode = AGENT_ONE_RUN,
                                         .state_new = one_new,
                                         .state_free = free,
                                         .line = one_line,
                                         .end = one_end,
                                         .encode_message = one_encode};

static void use_one(struct session *s)
{
    s->ad = &one;
}

static void test_one_run(void **state)
{
    struct jobsbed *b = open_bed("a");
    struct look l = {.b = b};
    const struct jobsbed_done *d;
    uint64_t row;
    (void)state;

    b->on_session = use_one;
    row = l.row = start(b, "once", NULL, NULL);
    assert_true(wait_agent(b, row, AG_IDLE));
    jobsbed_send(b, row, "hello", 5);
    d = jobsbed_answer(b, 5, LONG_MS);
    assert_non_null(d);
    assert_int_equal(d->err.code, 0);
    assert_int_equal(d->outcome, AGENT_OK);
    assert_string_equal(d->text, "got hello");
    jobsbed_send(b, row, "bad", 6);
    d = jobsbed_answer(b, 6, LONG_MS);
    assert_non_null(d);
    assert_int_equal(d->outcome, AGENT_FAILED);
    assert_int_equal(d->exit_code, 4);
    assert_string_equal(d->text, "oops\n");
    jobsbed_send(b, row, "next", 7);
    assert_non_null(jobsbed_answer(b, 7, LONG_MS));
    assert_true(wait_agent(b, row, AG_IDLE));
    act(b, do_show, row, 0);
    assert_true(wait_text(b, row, "got next"));
    assert_int_equal(look_count(&l, ITEM_TEXT, "got"), 3);
    assert_int_equal(look_count(&l, ITEM_USER, ""), 3);
    assert_int_equal(look_count(&l, ITEM_SYSTEM, "exit status 4"), 1);
    assert_int_equal(look_count(&l, ITEM_SYSTEM, ""), 1);
    assert_int_equal(model_sandbox(b->model, row)->state, SB_RUNNING);
    jobsbed_free(b);
}

/* --- what was told before ---------------------------------------------------------- */

static void wait_answer(struct jobsbed *b, uint64_t req, const char *text)
{
    const struct jobsbed_done *d = jobsbed_answer(b, req, LONG_MS);

    assert_non_null(d);
    assert_int_equal(d->err.code, 0);
    assert_string_equal(d->text, text);
}

static void on_script(void *ctx, const struct envd_run_result *r)
{
    struct act *a = ctx;

    jobs_done(&a->b->j, a->req, r->err.code ? &r->err : NULL, a->row);
    if (a->follow)
        session_follow_again(session_of(&a->b->j, a->row));
}

/* Closed because store or screen lag, right behind the end of a run, and opened again. */
static void do_hold(void *ctx)
{
    struct act *a = ctx;
    struct session *s = session_of(&a->b->j, a->row);

    session_runs_close(s);
    envd_close(s->envd, s->fo.stream);
    s->fo.stream = 0;
    s->fo.tail_pid = 0;
    s->out.caught_up = false;
    s->fo.state = FO_HOLD;
    session_follow_drained(s);
}

/* A line behind all that is in the file of runs. */
static void do_mark(void *ctx)
{
    struct act *a = ctx;
    struct session *s = session_of(&a->b->j, a->row);
    const char *args[] = {s->dir, NULL};

    session_sh(s, "echo run 99 interrupt 1 >>\"$1\"/runs", args, LONG_MS, on_script, a);
}

static void see_mark(void *ctx)
{
    struct act *a = ctx;

    a->follow = session_of(&a->b->j, a->row)->fo.p.interrupted == 99;
}

static bool has_mark(void *ctx)
{
    struct act *a = ctx;

    jobsbed_run(a->b, see_mark, a);
    return a->follow;
}

static void test_run_told_twice(void **state)
{
    struct jobsbed *b = open_bed("a");
    struct act a = {.b = b, .req = 20};
    (void)state;

    b->on_session = use_one;
    a.row = start(b, "once", NULL, NULL);
    assert_true(wait_agent(b, a.row, AG_IDLE));
    jobsbed_send(b, a.row, "hello", 5);
    wait_answer(b, 5, "got hello");
    act(b, do_hold, a.row, 0);
    jobsbed_run(b, do_mark, &a);
    assert_true(jobsbed_wait(b, has_mark, &a, LONG_MS));
    jobsbed_send(b, a.row, "more", 6); /* goes when the agent is free */
    wait_answer(b, 6, "got more");
    jobsbed_free(b);
}

/* --- a run that nobody saw ----------------------------------------------------------- */

static void do_blind(void *ctx)
{
    struct act *a = ctx;

    session_runs_close(session_of(&a->b->j, a->row));
}

/* The way is lost as soon as the message lies in the inbox. */
static void do_lose(void *ctx)
{
    struct act *a = ctx;
    struct session *s = session_of(&a->b->j, a->row);

    if (s->re.step != RE_SENT)
        return;
    session_relay_stop(s, false, NULL);
    session_follow_stop(s, FO_STOPPED);
    a->req = 1;
}

static bool is_lost(void *ctx)
{
    struct act *a = ctx;

    jobsbed_run(a->b, do_lose, a);
    return a->req == 1;
}

static void do_await_run(void *ctx)
{
    static const char script[] = "until grep -q '^run 1 exit' \"$1\"/runs; do sleep 0.05; done";
    struct act *a = ctx;
    struct session *s = session_of(&a->b->j, a->row);
    const char *args[] = {s->dir, NULL};

    session_sh(s, script, args, LONG_MS, on_script, a);
}

static void test_run_unseen(void **state)
{
    struct jobsbed *b = open_bed("a");
    const struct jobsbed_done *d;
    struct act a = {.b = b};
    (void)state;

    b->on_session = use_one;
    a.row = start(b, "once", NULL, NULL);
    assert_true(wait_agent(b, a.row, AG_IDLE));
    act(b, do_blind, a.row, 0);
    jobsbed_send(b, a.row, "bad", 5);
    assert_true(jobsbed_wait(b, is_lost, &a, LONG_MS));
    a.req = 20;
    jobsbed_run(b, do_await_run, &a);
    assert_non_null(jobsbed_answer(b, 20, LONG_MS));
    act(b, do_follow, a.row, 0);
    d = jobsbed_answer(b, 5, LONG_MS);
    assert_non_null(d);
    assert_int_equal(d->err.code, 0);
    assert_int_equal(d->outcome, AGENT_FAILED);
    assert_int_equal(d->exit_code, 4);
    jobsbed_free(b);
}

/* --- another log --------------------------------------------------------------------- */

static void do_empty(void *ctx)
{
    struct act *a = ctx;
    struct session *s = session_of(&a->b->j, a->row);
    const char *args[] = {s->dir, NULL};

    session_sh(s, ": >\"$1\"/out.log", args, LONG_MS, on_script, a);
}

static bool has_notice(void *ctx)
{
    return look_item(ctx, ITEM_NOTICE, "output may be missing") != NULL;
}

/* Where a run ended in a log that was emptied since is no place in the one at hand. */
static void test_end_of_another_log(void **state)
{
    struct jobsbed *b = open_bed("a");
    struct act a = {.b = b, .req = 20, .follow = true};
    struct look l = {.b = b};
    (void)state;

    b->on_session = use_one;
    a.row = l.row = start(b, "once", NULL, NULL);
    assert_true(wait_agent(b, a.row, AG_IDLE));
    jobsbed_send(b, a.row, "hello", 5);
    wait_answer(b, 5, "got hello");
    jobsbed_run(b, do_empty, &a);
    assert_non_null(jobsbed_answer(b, 20, LONG_MS));
    assert_true(jobsbed_wait(b, has_notice, &l, LONG_MS));
    jobsbed_send(b, a.row, "a message that is longer", 6);
    wait_answer(b, 6, "got a message that is longer");
    jobsbed_free(b);
}

static bool has_exit(void *ctx)
{
    return look_item(ctx, ITEM_SYSTEM, "exit status 4") != NULL;
}

/* The run that empties it ends in the new one, though that may be told before it is known of. */
static void test_end_in_the_new_log(void **state)
{
    struct jobsbed *b = open_bed("a");
    struct look l = {.b = b};
    (void)state;

    b->on_session = use_one;
    l.row = start(b, "once", NULL, NULL);
    assert_true(wait_agent(b, l.row, AG_IDLE));
    jobsbed_send(b, l.row, "something that is longer", 5);
    wait_answer(b, 5, "got something that is longer");
    jobsbed_send(b, l.row, "cut", 0);
    assert_true(jobsbed_wait(b, has_notice, &l, LONG_MS));
    assert_true(jobsbed_wait(b, has_exit, &l, LONG_MS));
    jobsbed_send(b, l.row, "and on", 6);
    wait_answer(b, 6, "got and on");
    jobsbed_free(b);
}

/* --- when all is over ------------------------------------------------------------------ */

static void do_wait_late(void *ctx)
{
    struct act *a = ctx;
    struct session *s = session_of(&a->b->j, a->row);

    use_one(s);
    session_wait_turn(s, (uint64_t)a->from, a->req);
    session_wait_turn(s, (uint64_t)a->from + 1, a->req + 1);
}

/* Both runs were read and stored by another one, and each has an answer of its own. */
static void test_two_runs_are_stored(void **state)
{
    struct jobsbed *b = open_bed("a");
    struct act late = {.req = 20};
    (void)state;

    b->on_session = use_one;
    late.row = start(b, "once", NULL, NULL);
    assert_true(wait_agent(b, late.row, AG_IDLE));
    late.from = (int64_t)jobsbed_send(b, late.row, "hello", 5);
    wait_answer(b, 5, "got hello");
    jobsbed_send(b, late.row, "more", 6);
    wait_answer(b, 6, "got more");
    late.b = open_bed("late");
    jobsbed_load(late.b);
    jobsbed_run(late.b, do_wait_late, &late);
    wait_answer(late.b, 21, "got more");
    wait_answer(late.b, 20, "got hello");
    jobsbed_free(late.b);
    jobsbed_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_run, new_db, drop_db),
        cmocka_unit_test_setup_teardown(test_run_told_twice, new_db, drop_db),
        cmocka_unit_test_setup_teardown(test_run_unseen, new_db, drop_db),
        cmocka_unit_test_setup_teardown(test_end_of_another_log, new_db, drop_db),
        cmocka_unit_test_setup_teardown(test_end_in_the_new_log, new_db, drop_db),
        cmocka_unit_test_setup_teardown(test_two_runs_are_stored, new_db, drop_db),
    };

    if (!sessionbed_begin())
        return sessionbed_none("runs of a session");
    return sessionbed_end(cmocka_run_group_tests_name("session_runs", tests, NULL, NULL));
}
