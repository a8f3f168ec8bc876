/* What a session makes of its agent's events. Its sums: the same after a stop anywhere, over several processes, runs of
 * the folder and readers, whether the agent counts what is new or all so far. */
#include "../../src/jobs/session_follow.h"
#include "../../src/jobs/session_out.h"
#include "../../src/jobs/session_pair.h"
#include "../../src/jobs/session_priv.h"
#include "../../src/jobs/session_relay.h"
#include "../lib/jobsbed.h"
#include "../lib/tmpdir.h"

#include <cct/config/models.h>
#include <cct/model/ledger.h>
#include <cct/util/log.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS 20000

static char root[64];
static int n_db;

static int setup(void **state)
{
    (void)state;
    return tmpdir_make(root, sizeof(root), "usage");
}

static int teardown(void **state)
{
    (void)state;
    return tmpdir_remove(root);
}

/* --- on the net thread ------------------------------------------------------------- */

struct work {
    struct jobsbed *b;
    uint64_t row;
    int64_t epoch;
    const char *text; /* to be fed */
    int code;         /* and how its process ends; -2: it does not */
    uint64_t runs;    /* so far */
    int64_t in, out;  /* wanted */
    double cost;
};

static void do_feed(void *ctx)
{
    struct work *w = ctx;
    struct session *s = session_of(&w->b->j, w->row);

    struct session_run_end end = {.run = ++w->runs, .offset = s->out.pos, .code = w->code};

    session_out_feed(s, w->text, strlen(w->text));
    if (w->code != -2)
        session_out_exit(s, &end);
    session_keep_flush(s);
}

static void open_run(struct work *w, int64_t epoch)
{
    w->epoch = epoch;
    assert_true(jobsbed_open(w->b, w->row, w->epoch, WAIT_MS));
}

static void feed(struct work *w, const char *text, int code)
{
    w->text = text;
    w->code = code;
    jobsbed_run(w->b, do_feed, w);
}

static bool has_sums(void *ctx)
{
    struct work *w = ctx;
    const struct sandbox *r = model_sandbox(w->b->model, w->row);

    return r && r->tokens_in == w->in && r->tokens_out == w->out &&
           (isnan(w->cost) ? isnan(r->cost_usd) : fabs(r->cost_usd - w->cost) < 1e-9);
}

/* The ledger has the same. */
static void check_ledger(struct work *w)
{
    struct ledger_query q = {.to = INT64_MAX};
    struct mq *mq = mq_new(1 << 20);
    struct st_reply *r;

    store_ledger(w->b->j.o.store, &q, (struct st_to){mq, 1});
    assert_true(mq_wait(mq, WAIT_MS));
    r = (struct st_reply *)mq_take(mq);
    assert_non_null(r->report);
    const struct ledger_sums *a = &r->report->all;
    assert_int_equal(a->in_tokens + a->cache_read + a->cache_write, w->in);
    assert_int_equal(a->out_tokens, w->out);
    assert_true(fabs(a->agent_usd - (isnan(w->cost) ? 0 : w->cost)) < 1e-6);
    assert_true(!isnan(w->cost) || a->unpriced_turns == a->turns);
    msg_free(&r->m);
    mq_free(mq);
}

static void check(struct work *w, int64_t in, int64_t out, double cost)
{
    const struct sandbox *r;

    w->in = in;
    w->out = out;
    w->cost = cost;
    if (jobsbed_wait(w->b, has_sums, w, WAIT_MS)) {
        check_ledger(w);
        return;
    }
    r = model_sandbox(w->b->model, w->row);
    fail_msg("in %lld out %lld cost %f", (long long)r->tokens_in, (long long)r->tokens_out,
             r->cost_usd);
}

static struct work bed(const char *tool)
{
    struct work w = {0};
    char *dir = xasprintf("%s/db%d", root, ++n_db);

    w.b = jobsbed_new(dir, "a", NULL);
    w.row = jobsbed_row(w.b, tool, NULL);
    free(dir);
    return w;
}

/* Everything in memory is gone, the database is what it was. */
static void restart(struct work *w)
{
    char *dir = xasprintf("%s/db%d", root, n_db);

    jobsbed_free(w->b);
    w->b = jobsbed_new(dir, "a", NULL);
    jobsbed_load(w->b);
    free(dir);
}

/* --- codex: totals of a thread over its processes ----------------------------------- */

#define THREAD(id) "{\"type\":\"thread.started\",\"thread_id\":\"" id "\"}\n"
#define TURN "{\"type\":\"turn.started\"}\n"
#define SAYS                                                                               \
    "{\"type\":\"item.completed\",\"item\":{\"id\":\"item_0\",\"type\":\"agent_message\"," \
    "\"text\":\"hello\"}}\n"
#define DONE(in, cached, out)                                      \
    "{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":" in \
    ",\"cached_input_tokens\":" cached ",\"output_tokens\":" out "}}\n"

static void totals_of_a_thread(void **state)
{
    struct work w = bed("codex");
    (void)state;

    open_run(&w, 1);
    feed(&w, THREAD("t1") TURN SAYS DONE("1148", "100", "6"), 0);
    check(&w, 1148, 6, (double)NAN);
    feed(&w, THREAD("t1") TURN SAYS, -2);
    restart(&w); /* in the middle of the second turn */
    open_run(&w, 1);
    check(&w, 1148, 6, (double)NAN);
    feed(&w, DONE("2370", "200", "20"), 0);
    check(&w, 2370, 20, (double)NAN);
    restart(&w); /* between two */
    open_run(&w, 1);
    check(&w, 2370, 20, (double)NAN);
    feed(&w, THREAD("t1") TURN SAYS DONE("5036", "400", "41"), 0);
    check(&w, 5036, 41, (double)NAN);
    open_run(&w, 1); /* the same once more, as after a loss of the way */
    check(&w, 5036, 41, (double)NAN);
    /* the agent is started anew, goes on with its thread, then has another one */
    open_run(&w, 2);
    check(&w, 5036, 41, (double)NAN);
    feed(&w, THREAD("t1") TURN DONE("5100", "400", "43"), 0);
    check(&w, 5100, 43, (double)NAN);
    feed(&w, THREAD("t2") TURN DONE("1000", "0", "5"), 0);
    check(&w, 6100, 48, (double)NAN);
    restart(&w);
    open_run(&w, 2);
    check(&w, 6100, 48, (double)NAN);
    jobsbed_free(w.b);
}

/* What another instance stored while we were away is counted, and once. */
static void another_reader(void **state)
{
    struct work a = bed("codex"), b;
    char *dir = xasprintf("%s/db%d", root, n_db);
    (void)state;

    open_run(&a, 1);
    feed(&a, THREAD("t1") TURN DONE("1000", "0", "5"), 0);
    check(&a, 1000, 5, (double)NAN);
    b = a;
    b.b = jobsbed_new(dir, "b", NULL);
    jobsbed_load(b.b);
    open_run(&b, 1);
    check(&b, 1000, 5, (double)NAN);
    feed(&b, THREAD("t1") TURN DONE("3000", "0", "9"), 0);
    check(&b, 3000, 9, (double)NAN);
    open_run(&a, 1);
    check(&a, 3000, 9, (double)NAN);
    jobsbed_free(b.b);
    jobsbed_free(a.b);
    free(dir);
}

/* --- claude without figures of a turn: the cost of the process so far ---------------- */

#define INIT "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s1\"}\n"
#define RESULT(total)                                                               \
    "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"total_cost_" \
    "usd\":" total ",\"usage\":{\"input_tokens\":10,\"output_tokens\":2}}\n"

static void cost_of_a_process(void **state)
{
    struct work w = bed("claude");
    (void)state;

    open_run(&w, 1);
    feed(&w, INIT RESULT("0.25"), -2);
    check(&w, 10, 2, 0.25);
    restart(&w); /* the next turn is read by a decoder that saw the last one alone */
    open_run(&w, 1);
    feed(&w, INIT RESULT("0.75"), -2);
    check(&w, 20, 4, 0.75);
    feed(&w, INIT RESULT("1"), 0);
    check(&w, 30, 6, 1.0);
    open_run(&w, 2);
    feed(&w, INIT RESULT("0.5"), -2);
    check(&w, 40, 8, 1.5);
    restart(&w);
    open_run(&w, 2);
    check(&w, 40, 8, 1.5);
    jobsbed_free(w.b);
}

/* --- a pair: the price of each is that of its own model ------------------------------- */

#define TURN_OF(role, adapter, n)                                                     \
    "{\"cc_tui\":\"turn\",\"role\":\"" role "\",\"adapter\":\"" adapter "\",\"message\":\"m" n \
    "\",\"by\":\"pair\",\"text\":\"x\"}\n"

static void do_look(void *ctx)
{
    struct work *w = ctx;
    struct session *s = session_of(&w->b->j, w->row);

    w->code = session_pair_ready(s);
}

static bool pair_is_read(void *ctx)
{
    struct work *w = ctx;

    jobsbed_run(w->b, do_look, w);
    return w->code != 0;
}

static void models_of_a_pair(void **state)
{
    struct work w = bed("pair");
    struct models *models = models_new();
    struct pair p = {.sandbox = w.row, .uid = "u1", .state = PAIR_STOPPED, .rounds = 1,
                     .side = {{.tool = (char *)"claude"},
                              {.tool = (char *)"codex", .model = (char *)"gpt-6.2-sol"}}};
    (void)state;

    w.b->j.o.models = models;
    store_pair_put(w.b->j.o.store, &p, NULL, 0, (struct st_to){NULL, 0});
    open_run(&w, 1);
    assert_true(jobsbed_wait(w.b, pair_is_read, &w, WAIT_MS));
    feed(&w, TURN_OF("designer", "claude", "1")
             "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s1\",\"model\":"
             "\"claude-opus-4-5\"}\n{\"type\":\"result\",\"subtype\":\"success\","
             "\"usage\":{\"input_tokens\":10,\"output_tokens\":2}}\n", 0);
    check(&w, 10, 2, 10 * 5e-6 + 2 * 25e-6);
    feed(&w, TURN_OF("checker", "codex", "2") THREAD("t1") TURN DONE("1000", "0", "100"), 0);
    check(&w, 1010, 102, 10 * 5e-6 + 2 * 25e-6 + 1000 * 2e-6 + 100 * 10e-6);
    jobsbed_free(w.b);
    models_free(models);
}

/* --- ends of runs that lie among the stored bytes -------------------------------------- */

#define STEP(id) \
    "{\"type\":\"step_start\",\"sessionID\":\"ses_1\",\"part\":{\"id\":\"" id "\"}}\n"

static void do_open_with_end(void *ctx)
{
    struct work *w = ctx;
    struct session *s = session_of(&w->b->j, w->row);

    ARR_CLEAR(&s->fo.p.ends);
    *ARR_PUSH(&s->fo.p.ends) =
        (struct session_run_end){.run = 1, .offset = strlen(STEP("p1")), .code = 1};
    session_open(s, w->epoch, jobsbed_opened);
}

static void do_busy(void *ctx)
{
    struct work *w = ctx;

    w->code = agent_dec_busy(session_of(&w->b->j, w->row)->out.dec);
}

/* Only its end says that a turn of opencode is over: a decoder that begins at that turn once
 * more, with bytes of the next run behind it, must hear of it. */
static void an_end_in_between(void **state)
{
    struct work w = bed("opencode");
    (void)state;

    open_run(&w, 1);
    feed(&w, STEP("p1"), 1);
    feed(&w, "some words\n", -2);
    restart(&w);
    jobsbed_expect();
    jobsbed_run(w.b, do_open_with_end, &w);
    assert_true(jobsbed_wait(w.b, jobsbed_came, NULL, WAIT_MS));
    jobsbed_run(w.b, do_busy, &w);
    assert_int_equal(w.code, 0);
    feed(&w, STEP("p2"), -2);
    jobsbed_run(w.b, do_busy, &w);
    assert_int_equal(w.code, 1);
    jobsbed_free(w.b);
}

/* --- echoes of an instance that is gone ------------------------------------------------- */

#define TEXT "go on"

static struct st_reply *answer_of(struct mq *mq)
{
    assert_true(mq_wait(mq, WAIT_MS));
    return (struct st_reply *)mq_take(mq);
}

static void do_echoes(void *ctx)
{
    struct work *w = ctx;

    for (int i = 0; i < 2; i++)
        session_turn_old_echo(session_of(&w->b->j, w->row), TEXT, false);
}

static bool are_delivered(void *ctx)
{
    struct work *w = ctx;
    struct mq *mq = mq_new(1 << 20);
    struct st_reply *r;
    size_t n = 0;

    store_messages(w->b->j.o.store, w->row, 10, (struct st_to){mq, 1});
    r = answer_of(mq);
    for (size_t i = 0; i < r->n_messages; i++)
        n += r->messages[i].state == MSG_DELIVERED;
    msg_free(&r->m);
    mq_free(mq);
    return n == 2;
}

/* Two messages of the same words, two echoes: each has its own. */
static void the_same_words_twice(void **state)
{
    struct work w = bed("claude");
    struct mq *mq = mq_new(1 << 20);
    (void)state;

    open_run(&w, 1);
    for (int i = 0; i < 2; i++) {
        store_message_add(w.b->j.o.store, w.row, TEXT, (struct st_to){mq, 1});
        struct st_reply *r = answer_of(mq);
        store_message_state(w.b->j.o.store, r->msg.id, MSG_QUEUED, MSG_SENT, NULL,
                            (struct st_to){NULL, 0});
        msg_free(&r->m);
    }
    jobsbed_run(w.b, do_echoes, &w);
    assert_true(jobsbed_wait(w.b, are_delivered, &w, WAIT_MS));
    mq_free(mq);
    jobsbed_free(w.b);
}

/* --- errors that quote a key ------------------------------------------------------------- */

static void do_last_line(void *ctx)
{
    struct work *w = ctx;
    const char *line = session_of(&w->b->j, w->row)->out.last_line;

    w->text = xstrdup(line ? line : "");
}

static void no_key_in_errors(void **state)
{
    static const char key[] = "zq81-made-up-value-of-a-key";
    struct work w = bed("codex");
    char *line = xasprintf(THREAD("t1") "{\"type\":\"turn.failed\",\"error\":{\"message\":"
                                        "\"the key %s is wrong\"}}\n",
                           key);
    (void)state;

    log_redact_value(key, strlen(key));
    open_run(&w, 1);
    feed(&w, line, 1);
    jobsbed_run(w.b, do_last_line, &w);
    assert_non_null(strstr(w.text, "is wrong"));
    assert_null(strstr(w.text, "made-up"));
    free((char *)w.text);
    jobsbed_free(w.b);
    free(line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_of_a_thread),
        cmocka_unit_test(another_reader),
        cmocka_unit_test(cost_of_a_process),
        cmocka_unit_test(models_of_a_pair),
        cmocka_unit_test(an_end_in_between),
        cmocka_unit_test(the_same_words_twice),
        cmocka_unit_test(no_key_in_errors),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, setup, teardown);
}
