/* A tool that runs once per message: its output and the file of its runs come on two ways, each
 * as late as it likes. What a run says is the answer to its own message. */
#include "../../src/jobs/session_follow.h"
#include "../../src/jobs/session_priv.h"
#include "../../src/jobs/session_show.h"
#include "../lib/jobsbed.h"

#include <cct/util/str.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WAIT_MS 20000
#define BEGIN "{\"type\":\"thread.started\",\"thread_id\":\"t1\"}\n{\"type\":\"turn.started\"}\n"
#define FAILS "{\"type\":\"turn.failed\",\"error\":{\"message\":\"no\"}}\n"
#define ENDS(says)                                                                          \
    "{\"type\":\"item.completed\",\"item\":{\"id\":\"item_0\",\"type\":\"agent_message\"," \
    "\"text\":\"" says "\"}}\n{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":10," \
    "\"cached_input_tokens\":0,\"output_tokens\":1}}\n"

struct runs {
    struct jobsbed *b;
    uint64_t row, at; /* at: where the first run's output ends */
    const char *text;
    bool early;
};

static void on_sent(void *ctx, struct st_reply *r)
{
    struct runs *q = ctx;
    struct session *s = session_of(&q->b->j, q->row);

    message_copy(&s->re.msg, &r->msg);
    str_copy(s->re.id, sizeof(s->re.id), "m2");
    s->re.step = RE_SENT;
    s->re.moving = true; /* it was us who handed it over */
    session_wait_turn(s, r->msg.id, 5);
    jobsbed_come();
}

static void on_added(void *ctx, struct st_reply *r)
{
    struct runs *q = ctx;

    store_message_state(q->b->j.o.store, r->msg.id, MSG_QUEUED, MSG_SENT, NULL,
                        jobs_store(&q->b->j, on_sent, q, q));
}

static void do_send(void *ctx)
{
    struct runs *q = ctx;

    store_message_add(q->b->j.o.store, q->row, "second", jobs_store(&q->b->j, on_added, q, q));
}

static void do_feed(void *ctx)
{
    struct runs *q = ctx;

    session_follow_feed(session_of(&q->b->j, q->row), q->text, strlen(q->text));
}

static void do_line(void *ctx)
{
    struct runs *q = ctx;

    session_runs_feed(session_of(&q->b->j, q->row), q->text, strlen(q->text));
}

static void act(struct runs *q, void (*fn)(void *ctx), const char *text)
{
    q->text = text;
    jobsbed_run(q->b, fn, q);
}

/* "run N WHAT" with the first run's end as its place. */
static void line(struct runs *q, const char *what, const char *rest)
{
    char text[160];

    snprintf(text, sizeof(text), "%s out-offset %llu err-offset 0%s\n", what,
             (unsigned long long)q->at, rest);
    act(q, do_line, text);
}

/* The first message's turn is over, the second message lies in the inbox. */
static struct runs bed(const char *first)
{
    struct runs q = {.b = jobsbed_new(NULL, "a", NULL), .at = strlen(first)};

    q.row = jobsbed_row(q.b, "codex", NULL);
    assert_true(jobsbed_open(q.b, q.row, 1, WAIT_MS));
    act(&q, do_feed, first);
    jobsbed_expect();
    jobsbed_run(q.b, do_send, &q);
    assert_true(jobsbed_wait(q.b, jobsbed_came, NULL, WAIT_MS));
    return q;
}

static void answers(struct runs *q, const char *text)
{
    const struct jobsbed_done *d = jobsbed_answer(q->b, 5, WAIT_MS);

    assert_non_null(d);
    assert_int_equal(d->err.code, 0);
    assert_int_equal(d->outcome, AGENT_OK);
    assert_string_equal(d->text, text);
    jobsbed_free(q->b);
}

static void do_ending(void *ctx)
{
    struct runs *q = ctx;
    struct session *s = session_of(&q->b->j, q->row);

    s->fo.runs_call = 1; /* as if its stderr were being read */
    s->fo.runs_end = (struct session_run_end){.run = 1, .offset = q->at, .code = 1};
}

static void do_ended(void *ctx)
{
    struct runs *q = ctx;
    struct session *s = session_of(&q->b->j, q->row);

    session_runs_ended(s, q->text, q->text ? strlen(q->text) : 0);
}

static void the_next_waits_for_the_stderr(void **state)
{
    struct runs q = bed(BEGIN FAILS);
    (void)state;

    act(&q, do_ending, NULL);
    line(&q, "run 2 start 1", " message m2 keeper 1-1");
    act(&q, do_feed, BEGIN);
    act(&q, do_feed, ENDS("fine"));
    assert_null(jobsbed_answer(q.b, 5, 50));
    act(&q, do_ended, "it complained\n");
    answers(&q, "fine");
}

static void stderr_cannot_be_had(void **state)
{
    struct runs q = bed(BEGIN FAILS);
    (void)state;

    act(&q, do_ending, NULL);
    act(&q, do_feed, BEGIN ENDS("fine"));
    act(&q, do_ended, NULL);
    line(&q, "run 2 start 1", " message m2 keeper 1-1");
    answers(&q, "fine");
}

/* The runs are known before the first one's last bytes came. */
static void the_next_waits_for_the_last_byte(void **state)
{
    struct runs q = bed(BEGIN FAILS);
    (void)state;

    q.at += strlen("\n\n");
    line(&q, "run 1 exit 0 1", "");
    line(&q, "run 2 start 1", " message m2 keeper 1-1");
    act(&q, do_feed, "\n\n");
    assert_null(jobsbed_answer(q.b, 5, 50));
    act(&q, do_feed, BEGIN ENDS("fine"));
    answers(&q, "fine");
}

static void an_end_that_comes_late(void **state)
{
    struct runs q = bed(BEGIN FAILS);
    (void)state;

    act(&q, do_feed, BEGIN);
    line(&q, "run 1 exit 0 1", "");
    line(&q, "run 2 start 1", " message m2 keeper 1-1");
    assert_null(jobsbed_answer(q.b, 5, 50));
    act(&q, do_feed, ENDS("fine"));
    answers(&q, "fine");
}

/* Another one's run begins when ours was handed over already: who it is of, the runs say. */
static void a_run_of_another(void **state)
{
    struct runs q = bed(BEGIN FAILS);
    (void)state;

    line(&q, "run 1 exit 0 1", "");
    act(&q, do_feed, BEGIN ENDS("another"));
    line(&q, "run 2 start 1", " message m1 keeper 1-1");
    q.at += strlen(BEGIN ENDS("another"));
    line(&q, "run 2 exit 0 1", "");
    assert_null(jobsbed_answer(q.b, 5, 50));
    line(&q, "run 3 start 1", " message m2 keeper 1-1");
    act(&q, do_feed, BEGIN ENDS("fine"));
    answers(&q, "fine");
}

static void see_early(void *ctx)
{
    struct runs *q = ctx;
    struct session *s = session_of(&q->b->j, q->row);
    const struct st_event first = {.offset = q->at};
    const struct session_key nothing = {0};

    q->early = session_others_early(s, &first, &nothing);
}

/* What another one says is waited for, and brings all anew to the screen; what we say is there. */
static void what_is_said_before_a_run(void **state)
{
    struct runs q = bed(BEGIN FAILS);
    (void)state;

    line(&q, "run 1 exit 0 1", "");
    line(&q, "run 2 start 1", " message m1 keeper 1-1");
    act(&q, do_feed, BEGIN);
    act(&q, see_early, NULL);
    assert_true(q.early);
    act(&q, do_feed, ENDS("another"));
    q.at += strlen(BEGIN ENDS("another"));
    line(&q, "run 2 exit 0 1", "");
    line(&q, "run 3 start 1", " message m2 keeper 1-1");
    act(&q, do_feed, BEGIN);
    act(&q, see_early, NULL);
    assert_false(q.early);
    act(&q, do_feed, ENDS("fine"));
    answers(&q, "fine");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_waits_for_the_stderr),
        cmocka_unit_test(stderr_cannot_be_had),
        cmocka_unit_test(the_next_waits_for_the_last_byte),
        cmocka_unit_test(an_end_that_comes_late),
        cmocka_unit_test(a_run_of_another),
        cmocka_unit_test(what_is_said_before_a_run),
    };
    struct err e = {0};

    if (secrets_init(&e) != 0)
        return 1;
    cmocka_set_test_filter(getenv("CCT_ONLY"));
    return cmocka_run_group_tests_name("session_runs", tests, NULL, NULL);
}
