/* ledger: time that sandboxes ran, to the millisecond, whatever was seen of them; sums, ranges,
 * forecasts. What the store keeps of it: test_ledger_store. */
#include "../lib/sightings.h"

#include <cct/model/ledger.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
/* keep last */
#include <cmocka.h>

#define MIN INT64_C(60000)
#define HOUR (60 * MIN)
#define T0 INT64_C(1790000000000)

/* --- intervals: the rules ----------------------------------------------------------------- */

struct book {
    struct span v[8];
    size_t n;
};

static void see(struct book *b, struct sighting s)
{
    struct span none = {0}, next = {0};
    unsigned what;

    s.known = true;
    what = ledger_follow(b->n ? &b->v[b->n - 1] : &none, b->n > 0, &s, &next);
    if (what & LEDGER_NEXT)
        b->v[b->n++] = next;
}

static void expect(const struct book *b, size_t i, int64_t start, int64_t end, enum span_how how,
                   bool estimate)
{
    assert_true(i < b->n);
    assert_int_equal(b->v[i].start - T0, start);
    assert_int_equal(b->v[i].end - T0, end);
    assert_int_equal(b->v[i].how, how);
    assert_int_equal(b->v[i].estimate, estimate);
}

static void test_runs_and_is_killed(void **state)
{
    struct book b = {0};

    (void)state;
    see(&b, sighting_up(T0, T0 + 1));
    for (int i = 0; i < 3; i++)
        see(&b, sighting_up(T0, T0 + 5 * MIN));
    see(&b, sighting_up(T0, T0 + 4 * MIN)); /* an answer that comes late */
    expect(&b, 0, 0, 5 * MIN, SPAN_OPEN, false);
    for (int i = 0; i < 3; i++)
        see(&b, sighting_gone(GONE_HERE, T0, T0 + HOUR, T0 + 6 * MIN, T0 + 6 * MIN));
    expect(&b, 0, 0, 6 * MIN, SPAN_GONE, false);
    assert_int_equal(b.n, 1);
    see(&b, sighting_up(T0, T0 + 7 * MIN)); /* it was there all the time */
    expect(&b, 0, 0, 7 * MIN, SPAN_OPEN, false);
    assert_int_equal(b.n, 1);
}

static void test_pauses(void **state)
{
    struct book b = {0};

    (void)state;
    see(&b, sighting_up(T0, T0 + MIN));
    see(&b, sighting_paused(T0, T0 + HOUR, T0 + 3 * MIN)); /* ours: when, the list will tell */
    expect(&b, 0, 0, 3 * MIN, SPAN_PAUSED, true);
    see(&b, sighting_paused(T0, T0 + 2 * MIN, T0 + 4 * MIN));
    see(&b, sighting_paused(T0, T0 + 2 * MIN, T0 + 5 * MIN));
    expect(&b, 0, 0, 2 * MIN, SPAN_PAUSED, false);
    see(&b, sighting_up(T0, T0 + 10 * MIN)); /* resumed; the row's start is still the old one */
    see(&b, sighting_up(T0 + 10 * MIN - 700, T0 + 11 * MIN));
    see(&b, sighting_up(T0 + 10 * MIN - 700, T0 + 12 * MIN));
    expect(&b, 1, 10 * MIN - 700, 12 * MIN, SPAN_OPEN, false);
    see(&b, sighting_paused(T0 + 10 * MIN - 700, T0 + 13 * MIN, T0 + 14 * MIN));
    see(&b, sighting_gone(GONE_HERE, T0 + 10 * MIN - 700, T0 + 13 * MIN, T0 + HOUR, T0 + HOUR));
    expect(&b, 1, 10 * MIN - 700, 13 * MIN, SPAN_PAUSED, false);
    assert_int_equal(b.n, 2);
}

static void test_while_nobody_looked(void **state)
{
    struct book a = {0}, b = {0}, c = {0}, d = {0};

    (void)state;
    see(&a, sighting_up(T0, T0 + MIN)); /* killed -9 here; back after 2 h, it is gone */
    see(&a, sighting_gone(GONE_ELSEWHERE, T0, T0 + 3 * HOUR, T0 + MIN, T0 + 2 * HOUR));
    expect(&a, 0, 0, MIN, SPAN_GONE, true);
    see(&b, sighting_up(T0, T0 + MIN)); /* its time was up meanwhile: known to the second */
    see(&b, sighting_gone(GONE_TIMEOUT, T0, T0 + HOUR, T0 + HOUR, T0 + 2 * HOUR));
    expect(&b, 0, 0, HOUR, SPAN_GONE, false);
    see(&c, sighting_up(T0, T0 + MIN)); /* paused and resumed */
    see(&c, sighting_up(T0 + HOUR, T0 + 2 * HOUR));
    expect(&c, 0, 0, MIN, SPAN_PAUSED, true);
    expect(&c, 1, HOUR, 2 * HOUR, SPAN_OPEN, false);
    see(&d, sighting_up(T0, T0 + MIN)); /* paused, resumed, paused */
    see(&d, sighting_paused(T0 + HOUR, T0 + HOUR + 5 * MIN, T0 + 2 * HOUR));
    expect(&d, 0, 0, MIN, SPAN_PAUSED, true);
    expect(&d, 1, HOUR, HOUR + 5 * MIN, SPAN_PAUSED, false);
    see(&d, sighting_up(T0 + HOUR, T0 + HOUR)); /* still runs when we come back */
    assert_int_equal(d.n, 3);
}

/* A list that is older than what is known, and an end that was seen only after its planned one. */
static void test_odd_times(void **state)
{
    struct book a = {0}, b = {0};

    (void)state;
    see(&a, sighting_up(T0, T0 + MIN));
    see(&a, sighting_up(T0 - HOUR, T0 + 2 * MIN)); /* of an earlier run: this one began when it did */
    expect(&a, 0, 0, 2 * MIN, SPAN_OPEN, false);
    see(&a, sighting_up(T0 - 900, T0 + 3 * MIN)); /* the same, told more exactly */
    expect(&a, 0, -900, 3 * MIN, SPAN_OPEN, false);
    see(&b, sighting_up(T0, T0 + MIN));
    see(&b, sighting_gone(GONE_ELSEWHERE, T0, T0 + 30 * MIN, T0 + HOUR, T0 + HOUR));
    expect(&b, 0, 0, 30 * MIN, SPAN_GONE, true); /* it cannot have run longer */
}

static void test_first_seen(void **state)
{
    struct book a = {0}, b = {0};

    (void)state;
    see(&a, sighting_paused(T0, T0 + 7 * MIN, T0 + HOUR));
    expect(&a, 0, 0, 7 * MIN, SPAN_PAUSED, false);
    see(&b, (struct sighting){.now = T0}); /* never was */
    assert_int_equal(b.n, 0);
}

/* --- what the service tells ------------------------------------------------------------------ */

static void test_a_life_is_told(void **state)
{
    struct life v[] = {{LIFE_ENDED, T0 + 90 * MIN, T0 + 60 * MIN}, /* not in their order */
                       {LIFE_BEGAN, T0, 0},
                       {LIFE_BEGAN, T0 + 3, 0}, /* told twice */
                       {LIFE_PAUSED, T0 + 20 * MIN, T0},
                       {LIFE_PAUSED, T0 + 20 * MIN, T0},
                       {LIFE_BEGAN, T0 + 60 * MIN, 0}};
    struct span out[6];

    (void)state;
    assert_int_equal(ledger_life(v, 6, out), 2);
    assert_int_equal(out[0].start - T0, 0);
    assert_int_equal(out[0].end - T0, 20 * MIN);
    assert_int_equal(out[0].how, SPAN_PAUSED);
    assert_int_equal(out[1].start - T0, 60 * MIN);
    assert_int_equal(out[1].end - T0, 90 * MIN);
    assert_int_equal(out[1].how, SPAN_GONE);
    assert_false(out[1].estimate);
}

static void test_half_a_life_is_told(void **state)
{
    struct life end_alone[] = {{LIFE_ENDED, T0 + HOUR, 0}};
    struct life known_run[] = {{LIFE_ENDED, T0 + HOUR, T0}};
    struct life still_runs[] = {{LIFE_BEGAN, T0, 0}};
    struct life in_pause[] = {{LIFE_BEGAN, T0, 0}, {LIFE_PAUSED, T0 + MIN, 0},
                              {LIFE_ENDED, T0 + HOUR, T0}};
    struct life at_once[] = {{LIFE_BEGAN, T0, 0}, {LIFE_PAUSED, T0 + 100, T0},
                             {LIFE_BEGAN, T0 + 120, 0}, {LIFE_ENDED, T0 + 170, T0 + 120}};
    struct life in_no_time[] = {{LIFE_BEGAN, T0, 0}, {LIFE_PAUSED, T0 + MIN, T0},
                                {LIFE_BEGAN, T0 + MIN, 0}, {LIFE_ENDED, T0 + MIN, T0 + MIN}};
    struct span out[4];

    (void)state;
    assert_int_equal(ledger_life(end_alone, 1, out), 0);
    assert_int_equal(ledger_life(still_runs, 1, out), 0);
    assert_int_equal(ledger_life(NULL, 0, out), 0);
    assert_int_equal(ledger_life(at_once, 4, out), 2); /* as near as they are, they are two */
    assert_int_equal(out[0].end - out[0].start + out[1].end - out[1].start, 150);
    assert_int_equal(ledger_life(in_no_time, 4, out), 1); /* a run of no time is none */
    assert_int_equal(out[0].how, SPAN_PAUSED);
    assert_int_equal(ledger_life(known_run, 1, out), 1);
    assert_int_equal(out[0].end - out[0].start, HOUR);
    assert_int_equal(ledger_life(in_pause, 3, out), 1); /* a pause costs nothing */
    assert_int_equal(out[0].end - out[0].start, MIN);
}

/* --- sums -------------------------------------------------------------------------------- */

static void test_sums(void **state)
{
    struct ledger_query q = {.from = T0, .to = T0 + HOUR, .now = T0 + HOUR, .period = {[PERIOD_DAY] = {T0 + 30 * MIN, T0 + HOUR}}};
    struct ledger_report *r = ledger_report_new(&q);
    struct ledger_place p = {"i1", "box", "web", "claude", "base"};
    struct ledger_span s = {p, {T0 - HOUR, T0 + 45 * MIN, SPAN_GONE, true}, 2, 512,
                            2 * 0.000014 + 0.5 * 0.0000045};
    struct ledger_turn t = {p, "m", T0 + MIN, 10, 20, 30, 40, 0.5, 0, 0};

    (void)state;
    ledger_report_span(r, &s);
    s.usd_per_s = (double)NAN;
    ledger_report_span(r, &s);
    ledger_report_turn(r, &t);
    t.cost_usd = (double)NAN;
    t.time_ms = T0 + 40 * MIN;
    ledger_report_turn(r, &t);
    t.time_ms = T0 + HOUR; /* the end is not within */
    ledger_report_turn(r, &t);
    ledger_report_end(r);
    assert_int_equal(r->all.run_ms, 2 * 45 * MIN);
    assert_int_equal(r->all.vcpu_ms, 4 * 45 * MIN);
    assert_true(fabs(r->all.sandbox_usd - 2700 * (2 * 0.000014 + 0.5 * 0.0000045)) < 1e-9);
    assert_int_equal(r->all.unpriced_spans, 1);
    assert_int_equal(r->all.estimates, 2);
    assert_int_equal(r->all.turns, 2);
    assert_int_equal(r->all.unpriced_turns, 1);
    assert_int_equal(r->all.out_tokens, 80);
    assert_true(fabs(r->all.agent_usd - 0.5) < 1e-9);
    assert_int_equal(r->period[PERIOD_DAY].run_ms, 2 * 15 * MIN);
    assert_int_equal(r->period[PERIOD_DAY].turns, 1);
    assert_int_equal(r->by[BY_MODEL].n, 1);
    assert_int_equal(r->by[BY_SANDBOX].n, 1);
    assert_string_equal(r->by[BY_SANDBOX].v[0].label, "box");
    ledger_report_free(r);
}

static struct ledger_report *report_of(const struct ledger_query *q, const struct ledger_span *s,
                                       size_t n)
{
    struct ledger_report *r = ledger_report_new(q);

    for (size_t i = 0; i < n; i++)
        ledger_report_span(r, &s[i]);
    ledger_report_end(r);
    return r;
}

static void test_hours_and_most(void **state)
{
    struct ledger_query q = {.from = T0, .to = T0 + 5 * HOUR, .now = T0 + 5 * HOUR, .by_hour = true,
                             .period = {[PERIOD_DAY] = {T0, T0 + 24 * HOUR}}};
    struct ledger_place p = {"i1", "box", "web", "claude", "base"};
    struct ledger_span s[] = {{p, {T0 + 30 * MIN, T0 + 150 * MIN, SPAN_GONE, false}, 1, 1024, 0.001},
                              {p, {T0 + 150 * MIN, T0 + 160 * MIN, SPAN_GONE, false}, 1, 1024, 0.001},
                              {p, {T0 + 40 * MIN, T0 + 50 * MIN, SPAN_GONE, false}, 1, 1024, 0.001}};
    struct ledger_turn t = {p, "m", T0 + 4 * HOUR + 1, 1, 2, 3, 4, 0.25, 0, 0};
    struct ledger_report *r = ledger_report_new(&q);

    (void)state;
    for (size_t i = 0; i < 3; i++)
        ledger_report_span(r, &s[i]);
    ledger_report_turn(r, &t);
    ledger_report_end(r);
    assert_int_equal(r->most, 2);
    assert_int_equal(r->n_hours, 4); /* nothing was in the fourth */
    assert_int_equal(r->hours[0].at, T0);
    assert_int_equal(r->hours[0].sums.run_ms, 40 * MIN);
    assert_int_equal(r->hours[1].sums.run_ms, 60 * MIN);
    assert_int_equal(r->hours[2].sums.run_ms, 40 * MIN);
    assert_int_equal(r->hours[3].at, T0 + 4 * HOUR);
    assert_int_equal(r->hours[3].sums.out_tokens, 4);
    assert_true(fabs(r->hour[LEDGER_HOURS - 1]) < 1e-9);
    assert_true(fabs(r->hour[LEDGER_HOURS - 2] - 0.25) < 1e-9);
    assert_true(fabs(r->hour[LEDGER_HOURS - 5] - 3.6) < 1e-9);
    assert_int_equal(r->n_spend, 1);
    assert_true(fabs(r->spend[0].usd[PERIOD_DAY] - 8.65) < 1e-9);
    ledger_report_free(r);
    r = report_of(&q, s, 2); /* who ends when another begins is not beside it */
    assert_int_equal(r->most, 1);
    ledger_report_free(r);
}

static void test_forecast(void **state)
{
    struct ledger_query q = {.from = T0, .to = T0 + 10 * HOUR, .now = T0 + 4 * HOUR,
                             .period = {[PERIOD_DAY] = {T0, T0 + 24 * HOUR}}};
    struct ledger_span s = {{"i1", "box", "web", "claude", "base"},
                            {T0, T0 + 4 * HOUR, SPAN_OPEN, false}, 1, 1024, 1.0 / 3600};
    struct ledger_report *r = report_of(&q, &s, 1);

    (void)state;
    assert_true(fabs(r->forecast_usd - 10) < 1e-9); /* $1 an hour goes on */
    ledger_report_free(r);
    q.to = T0 + 4 * HOUR; /* it is over */
    r = report_of(&q, &s, 1);
    assert_true(fabs(r->forecast_usd - 4) < 1e-9);
    ledger_report_free(r);
}

static void test_budget_percent(void **state)
{
    (void)state;
    assert_int_equal(ledger_budget_pct(7.99, 10), 79);
    assert_int_equal(ledger_budget_pct(8, 10), 80);
    assert_int_equal(ledger_budget_pct(10, 10), 100);
    assert_int_equal(ledger_budget_pct(9.999999, 10), 99);
    assert_int_equal(ledger_budget_pct(0.29, 1), 29); /* as numbers are kept, a bit less than that */
    assert_int_equal(ledger_budget_pct(0.57, 1), 57);
    assert_int_equal(ledger_budget_pct(1e9, 1), 99999);
    assert_int_equal(ledger_budget_pct(0, 10), 0);
    assert_int_equal(ledger_budget_pct(5, 0), -1);
}

/* Hours and days where the clock is set forward and back, and where it is half an hour off. */
static void test_other_zones(void **state)
{
    struct ledger_query q;
    struct ledger_report *r;

    (void)state;
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
    assert_int_equal(ledger_range("2026-03-29", T0, &q, NULL), 0);
    assert_int_equal(q.to - q.from, 23 * HOUR);
    assert_int_equal(ledger_range("2026-10-25", T0, &q, NULL), 0);
    assert_int_equal(q.to - q.from, 25 * HOUR);
    setenv("TZ", "IST-5:30", 1);
    tzset();
    assert_int_equal(ledger_range("day", T0, &q, NULL), 0);
    assert_int_equal(q.period[PERIOD_DAY].from % HOUR, 30 * MIN);
    r = ledger_report_new(&q);
    assert_int_equal((r->hour_from - q.period[PERIOD_DAY].from) % HOUR, 0);
    assert_true(r->hour_from + LEDGER_HOURS * HOUR > T0);
    ledger_report_free(r);
    setenv("TZ", "UTC", 1);
    tzset();
}

static void test_ranges(void **state)
{
    struct ledger_query q;
    struct err e = {0};

    (void)state;
    setenv("TZ", "UTC", 1);
    tzset();
    assert_int_equal(ledger_range("day", T0, &q, &e), 0);
    assert_int_equal(q.to - q.from, 24 * HOUR);
    assert_true(q.from <= T0 && T0 < q.to && q.period[PERIOD_DAY].from == q.from);
    assert_int_equal(ledger_range("week", T0, &q, &e), 0);
    assert_int_equal(q.to - q.from, 7 * 24 * HOUR);
    assert_true(q.from <= T0 && T0 < q.to);
    assert_int_equal(ledger_range("2026-02-27..2026-03-01", T0, &q, &e), 0);
    assert_int_equal(q.to - q.from, 3 * 24 * HOUR);
    assert_true(ledger_range("2026-13-01", T0, &q, &e) != 0);
    assert_true(ledger_range("2026-03-02..2026-03-01", T0, &q, &e) != 0);
    assert_true(ledger_range("yesterday", T0, &q, &e) != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs_and_is_killed),
        cmocka_unit_test(test_pauses),
        cmocka_unit_test(test_while_nobody_looked),
        cmocka_unit_test(test_first_seen),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_a_life_is_told),
        cmocka_unit_test(test_half_a_life_is_told),
        cmocka_unit_test(test_odd_times),
        cmocka_unit_test(test_hours_and_most),
        cmocka_unit_test(test_forecast),
        cmocka_unit_test(test_budget_percent),
        cmocka_unit_test(test_other_zones),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
