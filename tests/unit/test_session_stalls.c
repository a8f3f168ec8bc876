/* What would wait for ever: those who wait for an answer, readers, and what looks again now and
 * then. */
#include "../../src/jobs/session_ask.h"
#include "../../src/jobs/session_out.h"
#include "../../src/jobs/session_relay.h"
#include "../../src/jobs/session_start.h"
#include "../lib/alonebed.h"
#include "../lib/miniserver.h"
#include "../lib/storebox.h"
#include "../lib/tmpdir.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* --- who waits for an answer --------------------------------------------------------- */

static void do_wait_due(void *ctx)
{
    struct session *s = alone_session(ctx);

    session_wait_turn(s, 77, 5);
    alone_at_live_end(ctx);
    session_turn_due(s, 77);
}

static void do_exit(void *ctx)
{
    struct agent_event ev = AGENT_EVENT(AGENT_EXIT);

    ev.offset = 1000;
    ev.exit_code = 137;
    session_out_event(alone_session(ctx), &ev);
}

/* It took the message in and ended before it began a turn; another one may live since. */
static void an_end_before_the_turn(void **state)
{
    struct alone q = alone_bed(NULL);
    const struct jobsbed_done *d;
    (void)state;

    alone_run(&q, do_wait_due, NULL);
    alone_run(&q, do_exit, NULL);
    d = jobsbed_answer(q.b, 5, ALONE_MS);
    assert_non_null(d);
    assert_int_equal(d->outcome, AGENT_FAILED);
    assert_int_equal(d->exit_code, 137);
    jobsbed_free(q.b);
}

static void do_wait_missed(void *ctx)
{
    struct session *s = alone_session(ctx);

    session_wait_turn(s, 77, 5);
    s->fo.state = FO_BACKLOG;
    s->out.caught_up = false;
    s->out.agent = AG_IDLE; /* the turn's end was read a moment ago */
    session_wait_missed(s, 77);
}

static void do_tail(void *ctx)
{
    alone_at_live_end(ctx);
    session_relay(alone_session(ctx));
}

/* That it was taken in is known only when its turn has been read, before the live end. */
static void a_turn_that_went_by(void **state)
{
    struct alone q = alone_bed(NULL);
    const struct jobsbed_done *d;
    (void)state;

    alone_run(&q, do_wait_missed, NULL);
    assert_null(jobsbed_answer(q.b, 5, 20));
    alone_run(&q, do_tail, NULL);
    d = jobsbed_answer(q.b, 5, ALONE_MS);
    assert_non_null(d);
    assert_int_equal(d->err.code, 0);
    jobsbed_free(q.b);
}

static void do_answer_and_over(void *ctx)
{
    struct session *s = alone_session(ctx);

    s->asks.known = false; /* what it asks is still being looked for */
    session_answer(s, 5, NULL, -1, "yes");
    session_ask_over(s);
}

/* The agent ends before it is known what it asked. */
static void an_answer_that_comes_too_late(void **state)
{
    struct alone q = alone_bed(NULL);
    const struct jobsbed_done *d;
    (void)state;

    alone_run(&q, do_answer_and_over, NULL);
    d = jobsbed_answer(q.b, 5, ALONE_MS);
    assert_non_null(d);
    assert_int_equal(d->err.code, ERR_CONFLICT);
    assert_non_null(strstr(d->err.text, "the agent has ended"));
    jobsbed_free(q.b);
}

static void do_lose_start(void *ctx)
{
    struct session *s = alone_session(ctx);
    struct err e = {0};

    s->prov = xcalloc(1, sizeof(*s->prov));
    s->prov->req_id = 5;
    s->prov_begun = true;
    err_set(&e, ERR_AUTH, "its token is another one now");
    session_follow_lost(s, &e);
}

/* Its calls end without an answer when the way to the sandbox is given up. */
static void a_start_without_its_connection(void **state)
{
    struct alone q = alone_bed(NULL);
    const struct jobsbed_done *d;
    (void)state;

    alone_run(&q, do_lose_start, NULL);
    d = jobsbed_answer(q.b, 5, ALONE_MS);
    assert_non_null(d);
    assert_int_equal(d->err.code, ERR_CANCELLED);
    jobsbed_free(q.b);
}

/* --- readers --------------------------------------------------------------------------- */

static void do_many_words(void *ctx)
{
    struct alone *q = ctx;
    struct session *s = alone_session(q);
    char line[40];

    session_events(s, 9, true);
    alone_at_live_end(ctx);
    for (int i = 1; i <= 3000; i++) {
        snprintf(line, sizeof(line), "line %d of many\n", i);
        session_out_feed(s, line, strlen(line));
    }
    q->epoch = 2;
    alone_open(ctx);
}

static void do_words(void *ctx)
{
    struct alone *q = ctx;

    session_out_feed(alone_session(q), q->text, strlen(q->text));
    session_keep_flush(alone_session(q));
}

static bool is_printed(void *ctx)
{
    struct alone *q = ctx;

    return strstr(buf_str(&q->b->chunks), "another log") != NULL;
}

/* A log that begins anew: who follows gets what was read of the one before to its end. */
static void the_rest_of_a_log(void **state)
{
    struct alone q = alone_bed(NULL);
    const char *p;
    char no[40];
    (void)state;

    alone_run(&q, do_many_words, NULL);
    alone_wait(&q);
    alone_run(&q, alone_at_live_end, NULL);
    alone_run(&q, do_words, "another log\n");
    assert_true(jobsbed_wait(q.b, is_printed, &q, ALONE_MS));
    p = buf_str(&q.b->chunks);
    for (int i = 1; i <= 3000; i++) {
        snprintf(no, sizeof(no), "line %d of many", i);
        p = strstr(p, no);
        if (!p)
            fail_msg("line %d is missing", i);
    }
    assert_non_null(strstr(p, "another log"));
    jobsbed_free(q.b);
}

static void do_raw(void *ctx)
{
    session_raw(alone_session(ctx), 9, 0, false);
}

/* Nobody says where the sandbox is: what is stored is all that can be had. */
static void a_reader_without_a_way(void **state)
{
    struct e2b_account a = {.api_url = (char *)"http://127.0.0.1:1", .key = secret_new("k", 1)};
    struct alone q = {.b = jobsbed_new(NULL, "a", &a)};
    (void)state;

    q.row = jobsbed_row(q.b, "claude", "vm1");
    alone_run(&q, do_raw, NULL);
    assert_non_null(jobsbed_answer(q.b, 9, ALONE_MS));
    jobsbed_free(q.b);
    secret_free(a.key);
}

static void on_request(void *ctx, struct mini_conn *c, const struct mini_req *r)
{
    (void)ctx;
    (void)r;
    mini_reply(c, 200, "", "{\"sandboxID\":\"vm1\",\"templateID\":\"base\",\"state\":\"running\"}");
}

static void do_read_and_wait(void *ctx)
{
    do_raw(ctx);
    session_wait_turn(alone_session(ctx), 77, 5);
}

/* A service on this machine, of whose sandboxes nobody said where they are. */
static void a_sandbox_without_an_address(void **state)
{
    struct mini *m = mini_start(on_request, NULL);
    struct e2b_account a = {.api_url = mini_url(m, ""), .key = secret_new("k", 1)};
    struct alone q = {.b = jobsbed_new(NULL, "a", &a)};
    const struct jobsbed_done *d;
    (void)state;

    q.row = jobsbed_row(q.b, "claude", "vm1");
    alone_run(&q, do_read_and_wait, NULL);
    assert_non_null(jobsbed_answer(q.b, 9, ALONE_MS));
    d = jobsbed_answer(q.b, 5, ALONE_MS);
    assert_non_null(d);
    assert_non_null(strstr(d->err.text, "E2B_SANDBOX_URL"));
    jobsbed_free(q.b);
    mini_stop(m);
    free(a.api_url);
    secret_free(a.key);
}

/* --- looks now and then ------------------------------------------------------------------ */

static void do_relocate(void *ctx)
{
    struct session *s = alone_session(ctx);

    session_follow_ended(s);
    assert_true(s->fo.timer != 0);
    session_relocate(s);
    ((struct alone *)ctx)->done = s->fo.state == FO_ENDED && s->fo.timer != 0;
}

/* Another cc-tui may start the agent again, also when the provider was started again before. */
static void an_end_is_looked_at_again(void **state)
{
    struct alone q = alone_bed(NULL);
    (void)state;

    alone_run(&q, do_relocate, NULL);
    assert_true(q.done);
    jobsbed_free(q.b);
}

static void do_finish(void *ctx)
{
    session_look_finish(alone_session(ctx));
}

static void on_runs(void *ctx, struct st_reply *r)
{
    struct alone *q = ctx;

    q->done = r->n_runs == 1 && r->runs[0].ended;
    jobsbed_come();
}

static void do_runs(void *ctx)
{
    struct alone *q = ctx;

    jobsbed_expect();
    store_runs(q->b->j.o.store, q->row, jobs_store(&q->b->j, on_runs, q, q));
}

static int64_t time_of_end(const char *path)
{
    sqlite3 *db;
    sqlite3_stmt *p;
    int64_t at;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT endedAt FROM runs", -1, &p, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(p), SQLITE_ROW);
    at = sqlite3_column_int64(p, 0);
    sqlite3_finalize(p);
    sqlite3_close(db);
    return at;
}

/* Each look at an agent that ended finds it ended: when that was does not change. */
static void an_end_is_stored_once(void **state)
{
    char dir[64], *path;
    struct alone q;
    (void)state;

    assert_int_equal(tmpdir_make(dir, sizeof(dir), "stalls"), 0);
    path = xasprintf("%s/cc-tui.db", dir);
    q = alone_bed(dir);
    for (int i = 0; i < 2; i++) {
        alone_run(&q, do_finish, NULL);
        alone_run(&q, do_runs, NULL);
        alone_wait(&q);
        assert_true(q.done);
        assert_true(i ? time_of_end(path) == 5 : time_of_end(path) > 5);
        if (!i)
            storebox_sql(path, "UPDATE runs SET endedAt=5");
    }
    jobsbed_free(q.b);
    assert_int_equal(tmpdir_remove(dir), 0);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_end_before_the_turn),
        cmocka_unit_test(a_turn_that_went_by),
        cmocka_unit_test(an_answer_that_comes_too_late),
        cmocka_unit_test(a_start_without_its_connection),
        cmocka_unit_test(the_rest_of_a_log),
        cmocka_unit_test(a_reader_without_a_way),
        cmocka_unit_test(a_sandbox_without_an_address),
        cmocka_unit_test(an_end_is_looked_at_again),
        cmocka_unit_test(an_end_is_stored_once),
    };
    struct err e = {0};

    if (secrets_init(&e) != 0)
        return 1;
    cmocka_set_test_filter(getenv("CCT_ONLY"));
    return cmocka_run_group_tests_name("session_stalls", tests, NULL, NULL);
}
