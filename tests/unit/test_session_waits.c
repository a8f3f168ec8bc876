/* Who waits for the answer to a message: what others do to it, store of it, and say in the same
 * words. And whoever waits for anything when a session is left. */
#include "../../src/jobs/session_follow.h"
#include "../../src/jobs/session_out.h"
#include "../../src/jobs/session_priv.h"
#include "../../src/jobs/session_relay.h"
#include "../../src/jobs/session_show.h"
#include "../lib/jobsbed.h"
#include "../lib/storebox.h"
#include "../lib/tmpdir.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WAIT_MS 20000
#define NOT_MS 50
#define MANY 60 /* more than are listed at once */
enum { REQ = 5, READER = 6, INTERRUPT = 7 };

struct wait {
    struct jobsbed *b;
    uint64_t row, message;
    const char *text;
    bool done;
    int n;
};

static struct session *session(const struct wait *q)
{
    return session_of(&q->b->j, q->row);
}

static void run(struct wait *q, void (*fn)(void *ctx), const char *text)
{
    q->text = text;
    jobsbed_run(q->b, fn, q);
}

/* ... and until what it asked of the store is here. */
static void run_all(struct wait *q, void (*fn)(void *ctx), const char *text)
{
    jobsbed_expect();
    run(q, fn, text);
    assert_true(jobsbed_wait(q->b, jobsbed_came, NULL, WAIT_MS));
}

/* As if it were followed, and the agent waited for a message. */
static void do_at_live_end(void *ctx)
{
    struct session *s = session(ctx);

    s->fo.state = FO_TAIL;
    s->out.caught_up = true;
    s->out.agent = AG_IDLE;
}

static struct wait wait_bed(const char *dir, const char *tool)
{
    struct wait q = {.b = jobsbed_new(dir, "a", NULL)};

    q.row = jobsbed_row(q.b, tool, "vm1");
    assert_true(jobsbed_open(q.b, q.row, 1, WAIT_MS));
    run(&q, do_at_live_end, NULL);
    return q;
}

static void on_added(void *ctx, struct st_reply *r)
{
    struct wait *q = ctx;

    q->message = r->msg.id;
    jobsbed_come();
}

static void do_add(void *ctx)
{
    struct wait *q = ctx;

    store_message_add(q->b->j.o.store, q->row, q->text, jobs_store(&q->b->j, on_added, q, q));
}

static void do_wait(void *ctx)
{
    struct wait *q = ctx;

    session_wait_turn(session(q), q->message, REQ);
}

static void do_relay(void *ctx)
{
    session_relay(session(ctx));
}

static void on_done(void *ctx, struct st_reply *r)
{
    (void)ctx;
    (void)r;
    jobsbed_come();
}

static void do_feed(void *ctx)
{
    struct wait *q = ctx;

    session_out_feed(session(q), q->text, strlen(q->text));
    session_keep_flush(session(q));
}

static const struct jobsbed_done *answer(struct wait *q, const char *text)
{
    const struct jobsbed_done *d = jobsbed_answer(q->b, REQ, WAIT_MS);

    assert_non_null(d);
    if (text) {
        assert_int_equal(d->err.code, 0);
        assert_string_equal(d->text, text);
    }
    return d;
}

/* --- what others do ------------------------------------------------------------------- */

static void do_many(void *ctx)
{
    struct wait *q = ctx;

    store_message_state(q->b->j.o.store, q->message, MSG_QUEUED, MSG_CANCELLED, NULL,
                        (struct st_to){NULL, 0});
    for (int i = 0; i < MANY; i++)
        store_message_add(q->b->j.o.store, q->row, "later", (struct st_to){NULL, 0});
    do_wait(ctx);
}

static void a_state_behind_many(void **state)
{
    struct wait q = wait_bed(NULL, "claude");
    (void)state;

    run_all(&q, do_add, "first");
    run(&q, do_many, NULL);
    assert_int_equal(answer(&q, NULL)->err.code, ERR_CANCELLED);
    jobsbed_free(q.b);
}

static void on_cancelled(void *ctx, struct st_reply *r)
{
    struct wait *q = ctx;

    (void)r;
    if (++q->n == MANY)
        jobsbed_come();
}

static void on_later(void *ctx, struct st_reply *r)
{
    struct wait *q = ctx;

    store_message_state(q->b->j.o.store, r->msg.id, MSG_QUEUED, MSG_CANCELLED, NULL,
                        jobs_store(&q->b->j, on_cancelled, q, q));
}

static void do_claim(void *ctx)
{
    struct wait *q = ctx;

    store_message_claim(q->b->j.o.store, q->row, "another", 60000,
                        jobs_store(&q->b->j, on_done, q, q));
}

static void do_later(void *ctx)
{
    struct wait *q = ctx;

    for (int i = 0; i < MANY; i++)
        store_message_add(q->b->j.o.store, q->row, "later", jobs_store(&q->b->j, on_later, q, q));
}

static void see_timer(void *ctx)
{
    struct wait *q = ctx;

    q->done = session(q)->re.step == RE_IDLE && session(q)->re.timer;
}

static bool sees_timer(void *ctx)
{
    run(ctx, see_timer, NULL);
    return ((struct wait *)ctx)->done;
}

/* Another one has claimed it, and may be gone: it is looked at again, whatever came later. */
static void a_claimed_one_behind_many(void **state)
{
    struct wait q = wait_bed(NULL, "claude");
    (void)state;

    run_all(&q, do_add, "first");
    run_all(&q, do_claim, NULL);
    run_all(&q, do_later, NULL);
    run(&q, do_relay, NULL);
    assert_true(jobsbed_wait(q.b, sees_timer, &q, WAIT_MS));
    jobsbed_free(q.b);
}

/* --- whose turn it is ----------------------------------------------------------------- */

static void say(struct wait *q, const char *words, const char *text)
{
    char *turn = xasprintf(
        "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"text\","
        "\"text\":\"%s\"}]},\"isReplay\":true}\n"
        "{\"type\":\"assistant\",\"message\":{\"id\":\"m-%s\",\"content\":[{\"type\":\"text\","
        "\"text\":\"%s\"}]}}\n"
        "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"%s\"}\n",
        words, text, text, text);

    run(q, do_feed, turn);
    free(turn);
}

static void do_behind(void *ctx)
{
    session(ctx)->out.caught_up = false;
}

static void do_sent(void *ctx)
{
    struct wait *q = ctx;

    store_message_state(q->b->j.o.store, q->message, MSG_QUEUED, MSG_SENT, NULL,
                        jobs_store(&q->b->j, on_done, q, q));
}

/* The same words, of another one's message: ours waits in the queue. */
static void the_words_of_another(void **state)
{
    struct wait q = wait_bed(NULL, "claude");
    (void)state;

    run(&q, do_behind, NULL);
    run_all(&q, do_add, "go on");
    run(&q, do_wait, NULL);
    run_all(&q, do_add, "later"); /* then the waiter knows of its message */
    q.message--;
    say(&q, "go on", "one");
    assert_null(jobsbed_answer(q.b, REQ, NOT_MS));
    run_all(&q, do_sent, NULL);
    say(&q, "go on", "two");
    say(&q, "something", "three");
    answer(&q, "two");
    jobsbed_free(q.b);
}

static void do_in_turn(void *ctx)
{
    struct wait *q = ctx;

    do_wait(ctx);
    do_feed(ctx);
    session_wait_delivered(session(q), q->message);
}

/* The end of its turn is stored by another one, when we begin again at what is stored. */
static void an_end_that_others_stored(void **state)
{
    char *dir = storebox_dir();
    struct wait q = wait_bed(dir, "shell"), other = {.row = q.row};
    (void)state;

    q.message = 77;
    run(&q, do_in_turn, "\033]133;C\007mine\n");
    run_all(&q, do_claim, NULL); /* behind that in the store's queue */
    other.b = jobsbed_new(dir, "b", NULL);
    jobsbed_load(other.b);
    assert_true(jobsbed_open(other.b, other.row, 1, WAIT_MS));
    run(&other, do_feed, "and more\n\033]133;D;0\007");
    run_all(&other, do_claim, NULL);
    assert_null(jobsbed_answer(q.b, REQ, NOT_MS));
    assert_true(jobsbed_open(q.b, q.row, 1, WAIT_MS));
    answer(&q, "mine\nand more\n");
    jobsbed_free(other.b);
    jobsbed_free(q.b);
    tmpdir_remove(dir);
    free(dir);
}

static void do_due(void *ctx)
{
    struct wait *q = ctx;

    do_wait(ctx);
    do_feed(ctx);
    session_turn_due(session(q), q->message);
}

/* It was taken in, and another one has stored its whole turn. */
static void a_turn_that_others_stored(void **state)
{
    char *dir = storebox_dir();
    struct wait q = wait_bed(dir, "shell"), other = {.row = q.row};
    (void)state;

    q.message = 77;
    run(&q, do_due, "before\n");
    other.b = jobsbed_new(dir, "b", NULL);
    jobsbed_load(other.b);
    run_all(&q, do_claim, NULL);
    assert_true(jobsbed_open(other.b, other.row, 1, WAIT_MS));
    run(&other, do_feed, "\033]133;C\007mine\n\033]133;D;0\007");
    run_all(&other, do_claim, NULL);
    assert_true(jobsbed_open(q.b, q.row, 1, WAIT_MS));
    answer(&q, "mine\n");
    jobsbed_free(other.b);
    jobsbed_free(q.b);
    tmpdir_remove(dir);
    free(dir);
}

static void do_earlier_run(void *ctx)
{
    struct wait *q = ctx;
    struct session *s = session(q);

    do_wait(ctx);
    s->fo.p.last.run = s->fo.runs_done = 2;
    session_wait_placed(s, q->message, 1);
}

/* Of the runs that are over only the last one was read, and that was another message's. */
static void an_earlier_run_is_not_known(void **state)
{
    struct wait q = wait_bed(NULL, "codex");
    (void)state;

    q.message = 77;
    run(&q, do_earlier_run, NULL);
    assert_int_equal(answer(&q, NULL)->err.code, ERR_CONFLICT);
    jobsbed_free(q.b);
}

static const char end_of_one[] = "\033]133;D;0\007";

static void do_place_ahead(void *ctx)
{
    struct wait *q = ctx;
    struct session *s = session(q);

    do_wait(ctx);
    do_feed(ctx);
    session_wait_placed(s, q->message, s->out.pos + strlen(end_of_one) + 1);
}

/* It was taken in behind the end of another turn, which has not come to us yet. */
static void a_place_that_is_not_read_yet(void **state)
{
    struct wait q = wait_bed(NULL, "shell");
    (void)state;

    q.message = 77;
    run(&q, do_place_ahead, "\033]133;C\007one\n");
    run(&q, do_feed, end_of_one);
    assert_null(jobsbed_answer(q.b, REQ, NOT_MS));
    run(&q, do_feed, "\033]133;C\007mine\n\033]133;D;0\007");
    answer(&q, "mine\n");
    jobsbed_free(q.b);
}

static void do_others(void *ctx)
{
    struct wait *q = ctx;
    struct session *s = session(q);
    struct agent_event begin = AGENT_EVENT(AGENT_TURN_BEGIN);
    const struct session_key line = {600, 2, true}, end = {677, SESSION_ECHO_INDEX + 32, true},
                             said = {677, SESSION_ECHO_INDEX + 64, true};
    const struct st_event first = {.offset = 678}, next = {.offset = 678, .index = 2};

    begin.offset = 678;
    begin.index = 1;
    session_others_began(s, &begin);
    assert_true(session_others_early(s, &first, &line));
    assert_true(session_others_early(s, &first, &end)); /* of the run before */
    assert_false(session_others_early(s, &first, &said));
    assert_false(session_others_early(s, &next, &line));
    session_others_forget(s);
    assert_false(session_others_early(s, &first, &line));
}

/* What the line says that begins the turn stands behind the message, too. */
static void a_message_that_is_about_to_come(void **state)
{
    struct wait q = wait_bed(NULL, "codex");
    (void)state;

    run(&q, do_others, NULL);
    jobsbed_free(q.b);
}

static void do_answer_the_ended(void *ctx)
{
    struct session *s = session(ctx);

    session_follow_ended(s);
    session_answer(s, REQ, NULL, 0, NULL);
}

/* It is not waited for as if it could not be reached. */
static void an_agent_that_ended_asks_nothing(void **state)
{
    struct wait q = wait_bed(NULL, "claude");
    (void)state;

    run(&q, do_answer_the_ended, NULL);
    assert_int_equal(answer(&q, NULL)->err.code, ERR_NOTFOUND);
    jobsbed_free(q.b);
}

/* --- a session is left ------------------------------------------------------------------ */

static void do_leave(void *ctx)
{
    struct wait *q = ctx;
    struct session *s = session(q);

    do_wait(ctx);
    session_events(s, READER, true);
    s->out.agent = AG_WORKING;
    s->re.interrupting = true;
    s->re.int_req = INTERRUPT;
    session_free(s);
}

/* As when another account is in force: nothing more comes of it. */
static void who_waits_is_told_of_the_end(void **state)
{
    struct wait q = wait_bed(NULL, "claude");
    (void)state;

    q.message = 77;
    run(&q, do_leave, NULL);
    for (uint64_t req = REQ; req <= INTERRUPT; req++) {
        const struct jobsbed_done *d = jobsbed_answer(q.b, req, WAIT_MS);

        assert_non_null(d);
        assert_int_equal(d->err.code, ERR_CANCELLED);
    }
    jobsbed_free(q.b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_state_behind_many),
        cmocka_unit_test(a_claimed_one_behind_many),
        cmocka_unit_test(the_words_of_another),
        cmocka_unit_test(an_end_that_others_stored),
        cmocka_unit_test(a_turn_that_others_stored),
        cmocka_unit_test(an_earlier_run_is_not_known),
        cmocka_unit_test(a_place_that_is_not_read_yet),
        cmocka_unit_test(a_message_that_is_about_to_come),
        cmocka_unit_test(an_agent_that_ended_asks_nothing),
        cmocka_unit_test(who_waits_is_told_of_the_end),
    };
    struct err e = {0};

    if (secrets_init(&e) != 0)
        return 1;
    cmocka_set_test_filter(getenv("CCT_ONLY"));
    return cmocka_run_group_tests_name("session_waits", tests, NULL, NULL);
}
