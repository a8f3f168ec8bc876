/* What would wait for ever: messages, those who wait for an answer, readers, and what looks
 * again now and then. */
#include "../../src/jobs/session_follow.h"
#include "../../src/jobs/session_out.h"
#include "../../src/jobs/session_priv.h"
#include "../../src/jobs/session_relay.h"
#include "../../src/jobs/session_start.h"
#include "../lib/jobsbed.h"
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

#define WAIT_MS 20000
#define MANY 60 /* more than are listed at once */

struct stall {
    struct jobsbed *b;
    uint64_t row, message;
    int epoch;
    bool done;
    const char *text;
};

static struct session *session(const struct stall *q)
{
    return session_of(&q->b->j, q->row);
}

static void run(struct stall *q, void (*fn)(void *ctx), const char *text)
{
    q->text = text;
    jobsbed_run(q->b, fn, q);
}

static void do_open(void *ctx)
{
    struct stall *q = ctx;

    jobsbed_expect();
    session_open(session(q), q->epoch, jobsbed_opened);
}

/* As if it were followed, and the agent waited for a message. */
static void do_at_live_end(void *ctx)
{
    struct session *s = session(ctx);

    s->fo.state = FO_TAIL;
    s->out.caught_up = true;
    s->out.agent = AG_IDLE;
}

static struct stall stall_bed(const char *dir)
{
    struct stall q = {.b = jobsbed_new(dir, "a", NULL), .epoch = 1};

    q.row = jobsbed_row(q.b, "claude", "vm1");
    run(&q, do_open, NULL);
    assert_true(jobsbed_wait(q.b, jobsbed_came, NULL, WAIT_MS));
    run(&q, do_at_live_end, NULL);
    return q;
}

/* --- the queue --------------------------------------------------------------------- */

static void on_claimed(void *ctx, struct st_reply *r)
{
    struct stall *q = ctx;

    q->message = r->msg.id;
    store_message_state(q->b->j.o.store, r->msg.id, MSG_QUEUED, MSG_SENT, NULL,
                        (struct st_to){NULL, 0});
    for (int i = 0; i < MANY; i++)
        store_message_add(q->b->j.o.store, q->row, "later", (struct st_to){NULL, 0});
    session_relay(session(q));
}

static void do_sent_and_many(void *ctx)
{
    struct stall *q = ctx;

    store_message_add(q->b->j.o.store, q->row, "first", (struct st_to){NULL, 0});
    store_message_claim(q->b->j.o.store, q->row, "another", 60000,
                        jobs_store(&q->b->j, on_claimed, q, q));
}

static void see_sent(void *ctx)
{
    struct stall *q = ctx;
    const struct relay *re = &session(q)->re;

    q->done = re->step == RE_SENT && str_eq(re->msg.text, "first");
}

static void see_timer(void *ctx)
{
    struct stall *q = ctx;
    const struct relay *re = &session(q)->re;

    q->done = re->step == RE_IDLE && re->timer;
}

static bool sees_sent(void *ctx)
{
    run(ctx, see_sent, NULL);
    return ((struct stall *)ctx)->done;
}

static bool sees_timer(void *ctx)
{
    run(ctx, see_timer, NULL);
    return ((struct stall *)ctx)->done;
}

/* The one that handed it over is gone: what became of it is found out, however many wait. */
static void a_sent_one_before_many(void **state)
{
    struct stall q = stall_bed(NULL);
    (void)state;

    run(&q, do_sent_and_many, NULL);
    assert_true(jobsbed_wait(q.b, sees_sent, &q, WAIT_MS));
    jobsbed_free(q.b);
}

/* A first prompt that is on its way, too. */
static void do_relay(void *ctx)
{
    struct session *s = session(ctx);

    s->prov = xcalloc(1, sizeof(*s->prov));
    s->prov->req_id = 5;
    s->prov_ready = s->prov->prompt_waits = true;
    session_relay(s);
}

/* The database cannot be asked for a while: who started the agent need not wait for that. */
static void a_queue_that_cannot_be_read(void **state)
{
    char *dir = storebox_dir(), *path = xasprintf("%s/cc-tui.db", dir);
    struct stall q = stall_bed(dir);
    (void)state;

    storebox_sql(path, "ALTER TABLE sandboxMessages RENAME TO elsewhere");
    run(&q, do_relay, NULL);
    assert_true(jobsbed_wait(q.b, sees_timer, &q, WAIT_MS));
    assert_non_null(jobsbed_answer(q.b, 5, WAIT_MS));
    jobsbed_free(q.b);
    tmpdir_remove(dir);
    free(path);
    free(dir);
}

static void on_all(void *ctx, struct st_reply *r)
{
    struct stall *q = ctx;

    q->done = r->n_messages == MANY;
    for (size_t i = 0; i < r->n_messages; i++)
        q->done &= r->messages[i].state == MSG_FAILED;
    jobsbed_come();
}

static void do_all(void *ctx)
{
    struct stall *q = ctx;

    jobsbed_expect();
    store_messages(q->b->j.o.store, q->row, 2 * MANY, jobs_store(&q->b->j, on_all, q, q));
}

static void do_gone(void *ctx)
{
    struct stall *q = ctx;

    for (int i = 0; i < MANY; i++)
        store_message_add(q->b->j.o.store, q->row, "never", (struct st_to){NULL, 0});
    session_vm_state(session(q), SB_KILLED);
}

static void all_are_told_of_the_end(void **state)
{
    struct stall q = stall_bed(NULL);
    (void)state;

    run(&q, do_gone, NULL);
    for (int i = 0; i < 2; i++) { /* what the first answer led to is done at the second */
        run(&q, do_all, NULL);
        assert_true(jobsbed_wait(q.b, jobsbed_came, NULL, WAIT_MS));
    }
    assert_true(q.done);
    jobsbed_free(q.b);
}

static void on_next_claim(void *ctx, struct st_reply *r)
{
    ((struct stall *)ctx)->done = r->got;
    jobsbed_come();
}

/* Half way through handing it over the connection goes; q->text: the Move was on its way. */
static void on_own_claim(void *ctx, struct st_reply *r)
{
    struct stall *q = ctx;
    struct session *s = session(q);

    assert_true(r->got);
    message_copy(&s->re.msg, &r->msg);
    s->re.step = RE_PUBLISH;
    s->re.moving = q->text != NULL;
    session_relay_stop(s, false, NULL);
    store_message_claim(q->b->j.o.store, q->row, "another", 60000,
                        jobs_store(&q->b->j, on_next_claim, q, q));
}

static void do_claim(void *ctx)
{
    struct stall *q = ctx;

    jobsbed_expect();
    store_message_add(q->b->j.o.store, q->row, "first", (struct st_to){NULL, 0});
    store_message_claim(q->b->j.o.store, q->row, q->b->j.o.owner, 60000,
                        jobs_store(&q->b->j, on_own_claim, q, q));
}

/* What is surely not in the inbox need not wait for our claim's end; what may be there must. */
static void a_claim_is_let_go(void **state)
{
    (void)state;
    for (int moving = 0; moving < 2; moving++) {
        struct stall q = stall_bed(NULL);

        run(&q, do_claim, moving ? "moving" : NULL);
        assert_true(jobsbed_wait(q.b, jobsbed_came, NULL, WAIT_MS));
        assert_int_equal(q.done, !moving);
        jobsbed_free(q.b);
    }
}

static void on_state(void *ctx, struct st_reply *r)
{
    ((struct stall *)ctx)->done = r->n_messages == 1 && r->messages[0].state == MSG_DELIVERED;
    jobsbed_come();
}

static void on_added(void *ctx, struct st_reply *r)
{
    struct stall *q = ctx;
    struct store *st = q->b->j.o.store;

    store_message_state(st, r->msg.id, MSG_QUEUED, MSG_SENT, NULL, (struct st_to){NULL, 0});
    store_message_state(st, r->msg.id, MSG_SENT, MSG_UNCONFIRMED, "nobody saw it",
                        (struct st_to){NULL, 0});
    session_relay_delivered(session(q), r->msg.id);
    store_messages(st, q->row, 10, jobs_store(&q->b->j, on_state, q, q));
}

static void do_late_echo(void *ctx)
{
    struct stall *q = ctx;

    jobsbed_expect();
    store_message_add(q->b->j.o.store, q->row, "first", jobs_store(&q->b->j, on_added, q, q));
}

/* Called unconfirmed, and the agent shows it all the same. */
static void an_echo_after_all(void **state)
{
    struct stall q = stall_bed(NULL);
    (void)state;

    run(&q, do_late_echo, NULL);
    assert_true(jobsbed_wait(q.b, jobsbed_came, NULL, WAIT_MS));
    assert_true(q.done);
    jobsbed_free(q.b);
}

/* --- who waits for an answer --------------------------------------------------------- */

static void do_wait_due(void *ctx)
{
    struct session *s = session(ctx);

    session_wait_turn(s, 77, 5);
    do_at_live_end(ctx);
    session_turn_due(s, 77);
}

static void do_exit(void *ctx)
{
    struct agent_event ev = AGENT_EVENT(AGENT_EXIT);

    ev.offset = 1000;
    ev.exit_code = 137;
    session_out_event(session(ctx), &ev);
}

/* It took the message in and ended before it began a turn; another one may live since. */
static void an_end_before_the_turn(void **state)
{
    struct stall q = stall_bed(NULL);
    const struct jobsbed_done *d;
    (void)state;

    run(&q, do_wait_due, NULL);
    run(&q, do_exit, NULL);
    d = jobsbed_answer(q.b, 5, WAIT_MS);
    assert_non_null(d);
    assert_int_equal(d->outcome, AGENT_FAILED);
    assert_int_equal(d->exit_code, 137);
    jobsbed_free(q.b);
}

static void do_wait_missed(void *ctx)
{
    struct session *s = session(ctx);

    session_wait_turn(s, 77, 5);
    s->fo.state = FO_BACKLOG;
    s->out.caught_up = false;
    s->out.agent = AG_IDLE; /* the turn's end was read a moment ago */
    session_wait_missed(s, 77);
}

static void do_tail(void *ctx)
{
    do_at_live_end(ctx);
    session_relay(session(ctx));
}

/* That it was taken in is known only when its turn has been read, before the live end. */
static void a_turn_that_went_by(void **state)
{
    struct stall q = stall_bed(NULL);
    const struct jobsbed_done *d;
    (void)state;

    run(&q, do_wait_missed, NULL);
    assert_null(jobsbed_answer(q.b, 5, 20));
    run(&q, do_tail, NULL);
    d = jobsbed_answer(q.b, 5, WAIT_MS);
    assert_non_null(d);
    assert_int_equal(d->err.code, 0);
    jobsbed_free(q.b);
}

static void do_lose_start(void *ctx)
{
    struct session *s = session(ctx);
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
    struct stall q = stall_bed(NULL);
    const struct jobsbed_done *d;
    (void)state;

    run(&q, do_lose_start, NULL);
    d = jobsbed_answer(q.b, 5, WAIT_MS);
    assert_non_null(d);
    assert_int_equal(d->err.code, ERR_CANCELLED);
    jobsbed_free(q.b);
}

/* --- readers --------------------------------------------------------------------------- */

static void do_many_words(void *ctx)
{
    struct stall *q = ctx;
    struct session *s = session(q);
    char line[40];

    session_events(s, 9, true);
    do_at_live_end(ctx);
    for (int i = 1; i <= 3000; i++) {
        snprintf(line, sizeof(line), "line %d of many\n", i);
        session_out_feed(s, line, strlen(line));
    }
    q->epoch = 2;
    do_open(ctx);
}

static void do_words(void *ctx)
{
    struct stall *q = ctx;

    session_out_feed(session(q), q->text, strlen(q->text));
    session_keep_flush(session(q));
}

static bool is_printed(void *ctx)
{
    struct stall *q = ctx;

    return strstr(buf_str(&q->b->chunks), "another log") != NULL;
}

/* A log that begins anew: who follows gets what was read of the one before to its end. */
static void the_rest_of_a_log(void **state)
{
    struct stall q = stall_bed(NULL);
    const char *p;
    char no[40];
    (void)state;

    run(&q, do_many_words, NULL);
    assert_true(jobsbed_wait(q.b, jobsbed_came, NULL, WAIT_MS));
    run(&q, do_at_live_end, NULL);
    run(&q, do_words, "another log\n");
    assert_true(jobsbed_wait(q.b, is_printed, &q, WAIT_MS));
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
    session_raw(session(ctx), 9, 0, false);
}

/* Nobody says where the sandbox is: what is stored is all that can be had. */
static void a_reader_without_a_way(void **state)
{
    struct e2b_account a = {.api_url = (char *)"http://127.0.0.1:1", .key = secret_new("k", 1)};
    struct stall q = {.b = jobsbed_new(NULL, "a", &a)};
    (void)state;

    q.row = jobsbed_row(q.b, "claude", "vm1");
    run(&q, do_raw, NULL);
    assert_non_null(jobsbed_answer(q.b, 9, WAIT_MS));
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
    session_wait_turn(session(ctx), 77, 5);
}

/* A service on this machine, of whose sandboxes nobody said where they are. */
static void a_sandbox_without_an_address(void **state)
{
    struct mini *m = mini_start(on_request, NULL);
    struct e2b_account a = {.api_url = mini_url(m, ""), .key = secret_new("k", 1)};
    struct stall q = {.b = jobsbed_new(NULL, "a", &a)};
    const struct jobsbed_done *d;
    (void)state;

    q.row = jobsbed_row(q.b, "claude", "vm1");
    run(&q, do_read_and_wait, NULL);
    assert_non_null(jobsbed_answer(q.b, 9, WAIT_MS));
    d = jobsbed_answer(q.b, 5, WAIT_MS);
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
    struct session *s = session(ctx);

    session_follow_ended(s);
    assert_true(s->fo.timer != 0);
    session_relocate(s);
    ((struct stall *)ctx)->done = s->fo.state == FO_ENDED && s->fo.timer != 0;
}

/* Another cc-tui may start the agent again, also when the provider was started again before. */
static void an_end_is_looked_at_again(void **state)
{
    struct stall q = stall_bed(NULL);
    (void)state;

    run(&q, do_relocate, NULL);
    assert_true(q.done);
    jobsbed_free(q.b);
}

static void do_finish(void *ctx)
{
    session_look_finish(session(ctx));
}

static void on_runs(void *ctx, struct st_reply *r)
{
    struct stall *q = ctx;

    q->done = r->n_runs == 1 && r->runs[0].ended;
    jobsbed_come();
}

static void do_runs(void *ctx)
{
    struct stall *q = ctx;

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
    struct stall q;
    (void)state;

    assert_int_equal(tmpdir_make(dir, sizeof(dir), "stalls"), 0);
    path = xasprintf("%s/cc-tui.db", dir);
    q = stall_bed(dir);
    for (int i = 0; i < 2; i++) {
        run(&q, do_finish, NULL);
        run(&q, do_runs, NULL);
        assert_true(jobsbed_wait(q.b, jobsbed_came, NULL, WAIT_MS));
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
        cmocka_unit_test(a_sent_one_before_many),
        cmocka_unit_test(a_queue_that_cannot_be_read),
        cmocka_unit_test(all_are_told_of_the_end),
        cmocka_unit_test(a_claim_is_let_go),
        cmocka_unit_test(an_echo_after_all),
        cmocka_unit_test(an_end_before_the_turn),
        cmocka_unit_test(a_turn_that_went_by),
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
