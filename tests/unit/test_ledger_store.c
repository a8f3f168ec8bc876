/* ledger: what the store keeps of times and of what agents used, to the token, whoever tells it
 * how often. */
#include "../lib/sightings.h"
#include "../lib/storebox.h"
#include "../lib/tmpdir.h"

#include <cct/model/ledger.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* keep last */
#include <cmocka.h>

#define MIN INT64_C(60000)
#define HOUR (60 * MIN)
#define T0 INT64_C(1790000000000)

static struct storebox b;
static char *dir;

static int set_up(void **state)
{
    (void)state;
    storebox_fresh(&b, &dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    storebox_end(&b, dir);
    return 0;
}

static struct ledger_report *sums(int64_t now)
{
    struct ledger_query q = {.to = INT64_MAX, .now = now, .period = {[PERIOD_DAY] = {T0, INT64_MAX}}};
    struct st_reply *r;
    struct ledger_report *out;

    store_ledger(b.s, &q, storebox_to(&b));
    r = storebox_wait(&b);
    assert_int_equal(r->err.code, 0);
    out = r->report;
    r->report = NULL;
    msg_free(&r->m);
    return out;
}

static void told(uint64_t box, struct sighting g, double usd_per_s)
{
    struct st_sighting v = {box, g, usd_per_s};

    v.g.known = true;
    store_sightings(b.s, &v, 1, "2026-08-06");
}

static void test_intervals_are_kept(void **state)
{
    uint64_t box = storebox_sandbox(&b, "i1");
    struct ledger_report *r;

    (void)state;
    for (int i = 0; i < 3; i++)
        told(box, sighting_up(T0, T0 + i * MIN), 0.001);
    storebox_stop(&b); /* and once more, by the next program */
    storebox_start(&b, dir);
    told(box, sighting_up(T0, T0 + MIN), 0.002); /* the price of its begin holds */
    told(box, sighting_gone(GONE_TIMEOUT, T0, T0 + HOUR, T0 + HOUR, T0 + 3 * HOUR), 0.002);
    told(box, sighting_up(T0 + 2 * HOUR, T0 + 3 * HOUR), (double)NAN);
    store_del_sandbox(b.s, box, (struct st_to){NULL, 0}); /* what it cost stays */
    r = sums(T0 + 3 * HOUR);
    assert_int_equal(r->all.run_ms, 2 * HOUR);
    assert_int_equal(r->all.spans, 2);
    assert_int_equal(r->all.unpriced_spans, 1);
    assert_true(fabs(r->all.sandbox_usd - 3.6) < 1e-6);
    ledger_report_free(r);
    r = sums(T0 + 4 * HOUR); /* nobody looked for an hour: it ran until it was seen */
    assert_int_equal(r->all.run_ms, 2 * HOUR);
    assert_int_equal(r->all.estimates, 1);
    ledger_report_free(r);
}

static struct st_reply *told_runs(const char *id, int64_t from, const struct span *v, size_t n)
{
    store_runs_told(b.s, id, from, v, n, true, storebox_to(&b));
    return storebox_wait(&b);
}

static size_t doubts(int64_t now, int64_t *from)
{
    struct st_reply *r;
    size_t n;

    store_doubts(b.s, NULL, now, 10, storebox_to(&b));
    r = storebox_wait(&b);
    assert_int_equal(r->err.code, 0);
    n = r->n_doubts;
    *from = n ? r->doubts[0].from : 0;
    msg_free(&r->m);
    return n;
}

/* Killed -9 while two ran; one was paused and resumed meanwhile, and both have ended. */
static void test_what_nobody_saw_is_told(void **state)
{
    uint64_t one = storebox_sandbox(&b, "i1"), two = storebox_sandbox(&b, "i2");
    const struct span life[] = {{T0 + 400, T0 + 10 * MIN, SPAN_PAUSED, false},
                                {T0 + 40 * MIN, T0 + 55 * MIN, SPAN_GONE, false}};
    struct ledger_report *r;
    int64_t from;

    (void)state;
    told(one, sighting_up(T0, T0 + MIN), 0.001);
    told(two, sighting_up(T0, T0 + MIN), 0.001);
    assert_int_equal(doubts(T0 + 2 * MIN, &from), 0); /* they run */
    storebox_stop(&b);
    storebox_start(&b, dir);
    assert_int_equal(doubts(T0 + 2 * HOUR, &from), 2);
    told(one, sighting_gone(GONE_ELSEWHERE, T0, T0 + 3 * HOUR, T0 + MIN, T0 + 2 * HOUR), 0.002);
    told(two, sighting_gone(GONE_TIMEOUT, T0, T0 + HOUR, T0 + HOUR, T0 + 2 * HOUR), 0.002);
    assert_int_equal(doubts(T0 + 2 * HOUR, &from), 1); /* a timeout is known to the second */
    assert_int_equal(from, T0);
    r = sums(T0 + 2 * HOUR);
    assert_int_equal(r->all.run_ms, MIN + HOUR);
    assert_int_equal(r->all.estimates, 1);
    ledger_report_free(r);
    for (int i = 0; i < 2; i++) /* by two programs */
        msg_free(&told_runs("i1", from, life, 2)->m);
    r = sums(T0 + 2 * HOUR);
    assert_int_equal(r->all.run_ms, 10 * MIN + 15 * MIN + HOUR); /* the list's begin holds */
    assert_int_equal(r->all.spans, 3);
    assert_int_equal(r->all.estimates, 0);
    assert_true(fabs(r->all.sandbox_usd - 0.001 * 60 * (25 + 60)) < 1e-6); /* price of then */
    ledger_report_free(r);
    assert_int_equal(doubts(T0 + 2 * HOUR, &from), 0);
}

/* Nothing is told: what is known stays, marked, and is not asked for ever. */
static void test_nothing_is_told(void **state)
{
    uint64_t box = storebox_sandbox(&b, "i1");
    struct ledger_report *r;
    int64_t from;

    (void)state;
    told(box, sighting_up(T0, T0 + MIN), 0.001);
    told(box, sighting_gone(GONE_ELSEWHERE, T0, T0 + 3 * HOUR, T0 + 5 * MIN, T0 + 2 * HOUR), 0.001);
    assert_int_equal(doubts(T0 + 2 * HOUR, &from), 1);
    msg_free(&told_runs("i1", from, NULL, 0)->m);
    assert_int_equal(doubts(T0 + 2 * HOUR, &from), 0);
    r = sums(T0 + 2 * HOUR);
    assert_int_equal(r->all.run_ms, 5 * MIN);
    assert_int_equal(r->all.estimates, 1);
    ledger_report_free(r);
}

/* A resume of which only the moment we heard of it is known. */
static void test_a_guessed_begin_is_set_right(void **state)
{
    uint64_t box = storebox_sandbox(&b, "i1");
    const struct span life[] = {{T0, T0 + 5 * MIN, SPAN_PAUSED, false},
                                {T0 + 20 * MIN, T0 + 50 * MIN, SPAN_GONE, false}};
    struct ledger_report *r;

    (void)state;
    told(box, sighting_up(T0, T0 + MIN), 0.001);
    told(box, sighting_paused(T0, T0 + 5 * MIN, T0 + 6 * MIN), 0.001);
    told(box, sighting_up(T0, T0 + 30 * MIN), 0.001);
    told(box, sighting_gone(GONE_ELSEWHERE, T0, T0 + 3 * HOUR, T0 + 40 * MIN, T0 + HOUR), 0.001);
    msg_free(&told_runs("i1", T0, life, 2)->m);
    r = sums(T0 + 2 * HOUR);
    assert_int_equal(r->all.run_ms, 35 * MIN);
    assert_int_equal(r->all.spans, 2);
    assert_int_equal(r->all.estimates, 0);
    ledger_report_free(r);
}

static bool budget_is_new(const char *period, int64_t begin, const char *project, int pct)
{
    struct st_reply *r;
    bool got;

    store_budget_told(b.s, period, begin, project, pct, storebox_to(&b));
    r = storebox_wait(&b);
    assert_int_equal(r->err.code, 0);
    got = r->got;
    msg_free(&r->m);
    return got;
}

static void test_a_budget_is_told_once(void **state)
{
    (void)state;
    assert_true(budget_is_new("day", T0, NULL, 80));
    assert_false(budget_is_new("day", T0, NULL, 80));
    assert_true(budget_is_new("day", T0, NULL, 100));
    assert_true(budget_is_new("day", T0, "web", 80));
    storebox_stop(&b); /* not again after a restart */
    storebox_start(&b, dir);
    assert_false(budget_is_new("day", T0, NULL, 100));
    assert_true(budget_is_new("day", T0 + 24 * HOUR, NULL, 100));
    assert_true(budget_is_new("week", T0, NULL, 100));
}

/* A database of the step before has the ledger, and nothing of what was told. */
static void test_the_step_before(void **state)
{
    int64_t from;
    uint64_t box;

    (void)state;
    storebox_stop(&b);
    tmpdir_remove(dir);
    free(dir);
    dir = storebox_dir();
    storebox_old(dir, 3);
    storebox_start(&b, dir);
    assert_true(budget_is_new("day", T0, NULL, 80));
    box = storebox_sandbox(&b, "i1");
    told(box, sighting_up(T0, T0 + MIN), 0.001);
    assert_int_equal(doubts(T0 + HOUR, &from), 1);
}

static struct st_reply *summed(uint64_t run, uint64_t offset, size_t limit)
{
    struct st_reply *r;

    store_events_summed(b.s, run, offset, 0, limit, storebox_to(&b));
    r = storebox_wait(&b);
    assert_int_equal(r->err.code, 0);
    return r;
}

/* Sums are made of few of a long session's events, and of none that only speaks of them. */
static void test_only_what_sums_are_made_of(void **state)
{
    static const char *const json[] = {
        "{\"kind\":\"session\",\"id\":\"s\"}",    "{\"kind\":\"turn_begin\"}",
        "{\"kind\":\"text\",\"text\":\"usage\"}", "{\"kind\":\"tool\",\"id\":\"exit\"}",
        "{\"kind\":\"usage\",\"in\":1}",          "{\"kind\":\"user_echo\",\"id\":\"u\"}",
        "{\"kind\":\"turn_end\"}",                "{\"kind\":\"exit\",\"code\":0}"};
    static const uint64_t wanted[] = {10, 20, 50, 70, 80};
    uint64_t run = storebox_run(&b, storebox_sandbox(&b, "i1"), "s1");
    struct st_append a = {.run = run, .n_events = 8};
    struct st_reply *r;

    (void)state;
    a.events = xcalloc(8, sizeof(*a.events));
    for (size_t i = 0; i < 8; i++)
        a.events[i] = (struct st_event){10 * (i + 1), 0, xstrdup(json[i]), strlen(json[i]), NULL, false, 0};
    store_append(b.s, &a, (struct st_to){NULL, 0});
    r = summed(run, 0, 100);
    assert_int_equal(r->n_events, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(r->events[i].offset, wanted[i]);
    assert_string_equal(r->events[2].json, json[4]);
    msg_free(&r->m);
    r = summed(run, 20, 2); /* by pages */
    assert_int_equal(r->n_events, 2);
    assert_int_equal(r->events[0].offset, 20);
    assert_int_equal(r->events[1].offset, 50);
    msg_free(&r->m);
    r = summed(run + 1, 0, 100);
    assert_int_equal(r->n_events, 0);
    msg_free(&r->m);
}

static void used(uint64_t run, uint64_t offset, const char *total, int64_t in, double cost)
{
    struct st_append a = {.run = run, .n_events = 1};
    struct st_use *u = xcalloc(1, sizeof(*u));

    *u = (struct st_use){.total = xstrdup(total), .in_tokens = in, .out_tokens = 2 * in,
                         .cost_usd = cost, .time_ms = T0, .ends = in < 0};
    a.events = xcalloc(1, sizeof(*a.events));
    a.events[0] = (struct st_event){offset, 0, xstrdup("{}"), 2, u, false, 0};
    store_append(b.s, &a, (struct st_to){NULL, 0});
}

static void expect_used(int64_t in, double cost, size_t unpriced)
{
    struct ledger_report *r = sums(T0);

    assert_int_equal(r->all.in_tokens, in);
    assert_int_equal(r->all.out_tokens, 2 * in);
    assert_true(fabs(r->all.agent_usd - cost) < 1e-6);
    assert_int_equal(r->all.unpriced_turns, unpriced);
    ledger_report_free(r);
}

static void test_turns_count_once(void **state)
{
    uint64_t box = storebox_sandbox(&b, "i1"), run = storebox_run(&b, box, "s1");

    (void)state;
    for (int i = 0; i < 3; i++)
        used(run, 10, NULL, 100, 0.25); /* read again, or by two programs */
    used(run, 20, NULL, 100, 0.25);     /* the same figures, but another turn */
    used(run, 30, NULL, 7, (double)NAN);
    expect_used(207, 0.5, 1);
    storebox_stop(&b);
    storebox_start(&b, dir);
    used(run, 20, NULL, 100, 0.25);
    expect_used(207, 0.5, 1);
}

static void test_totals_count_their_growth(void **state)
{
    uint64_t box = storebox_sandbox(&b, "i1"), run = storebox_run(&b, box, "s1");
    uint64_t other = storebox_run(&b, box, "s2");

    (void)state;
    used(run, 10, "thread", 1148, 0.0044);
    used(run, 20, "thread", 2370, 0.0093);
    used(run, 20, "thread", 2370, 0.0093);
    storebox_stop(&b);
    storebox_start(&b, dir);
    used(other, 5, "thread", 5036, 0.0201); /* resumed in another run: it goes on */
    expect_used(5036, 0.0201, 0);
    used(other, 6, "thread", 1200, 0.005); /* went back: nothing is taken away */
    expect_used(5036, 0.0201, 0);
    used(run, 30, "process", 10, 0.01);
    used(run, 40, "process", -1, 0);
    used(run, 40, "process", -1, 0);
    used(run, 50, "process", 10, 0.01); /* the next process begins at 0 */
    expect_used(5056, 0.0401, 0);
    /* the log is read once more, under another run */
    store_ledger_forget(b.s, run, UINT64_MAX);
    used(other, 50, "thread", 2370, 0.0093);
    used(other, 60, "thread", 5036, 0.0201);
    expect_used(5036, 0.0201, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_intervals_are_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_nobody_saw_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nothing_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_guessed_begin_is_set_right, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_budget_is_told_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_step_before, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_only_what_sums_are_made_of, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_turns_count_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_totals_count_their_growth, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("ledger_store", tests, NULL, NULL);
}
