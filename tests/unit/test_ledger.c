/* ledger: time that sandboxes ran, to the millisecond, whatever was seen of them; what agents
 * used, to the token, whoever tells it how often; the sums of both. */
#include "../lib/storebox.h"

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

static struct sighting up(int64_t start, int64_t now)
{
    return (struct sighting){.up = true, .started_at = start, .end_at = start + 2 * HOUR, .now = now};
}

static struct sighting paused(int64_t start, int64_t at, int64_t now)
{
    return (struct sighting){.paused = true, .started_at = start, .end_at = at, .now = now};
}

static struct sighting gone(enum sb_gone why, int64_t start, int64_t end_at, int64_t ended,
                            int64_t now)
{
    return (struct sighting){
        .gone = why, .started_at = start, .end_at = end_at, .ended_at = ended, .now = now};
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
    see(&b, up(T0, T0 + 1));
    for (int i = 0; i < 3; i++)
        see(&b, up(T0, T0 + 5 * MIN));
    see(&b, up(T0, T0 + 4 * MIN)); /* an answer that comes late */
    expect(&b, 0, 0, 5 * MIN, SPAN_OPEN, false);
    for (int i = 0; i < 3; i++)
        see(&b, gone(GONE_HERE, T0, T0 + HOUR, T0 + 6 * MIN, T0 + 6 * MIN));
    expect(&b, 0, 0, 6 * MIN, SPAN_GONE, false);
    assert_int_equal(b.n, 1);
    see(&b, up(T0, T0 + 7 * MIN)); /* it was there all the time */
    expect(&b, 0, 0, 7 * MIN, SPAN_OPEN, false);
    assert_int_equal(b.n, 1);
}

static void test_pauses(void **state)
{
    struct book b = {0};

    (void)state;
    see(&b, up(T0, T0 + MIN));
    see(&b, paused(T0, T0 + HOUR, T0 + 3 * MIN)); /* ours: when, the list will tell */
    expect(&b, 0, 0, 3 * MIN, SPAN_PAUSED, true);
    see(&b, paused(T0, T0 + 2 * MIN, T0 + 4 * MIN));
    see(&b, paused(T0, T0 + 2 * MIN, T0 + 5 * MIN));
    expect(&b, 0, 0, 2 * MIN, SPAN_PAUSED, false);
    see(&b, up(T0, T0 + 10 * MIN)); /* resumed; the row's start is still the old one */
    see(&b, up(T0 + 10 * MIN - 700, T0 + 11 * MIN));
    see(&b, up(T0 + 10 * MIN - 700, T0 + 12 * MIN));
    expect(&b, 1, 10 * MIN - 700, 12 * MIN, SPAN_OPEN, false);
    see(&b, paused(T0 + 10 * MIN - 700, T0 + 13 * MIN, T0 + 14 * MIN));
    see(&b, gone(GONE_HERE, T0 + 10 * MIN - 700, T0 + 13 * MIN, T0 + HOUR, T0 + HOUR));
    expect(&b, 1, 10 * MIN - 700, 13 * MIN, SPAN_PAUSED, false);
    assert_int_equal(b.n, 2);
}

static void test_while_nobody_looked(void **state)
{
    struct book a = {0}, b = {0}, c = {0}, d = {0};

    (void)state;
    see(&a, up(T0, T0 + MIN)); /* killed -9 here; back after 2 h, it is gone */
    see(&a, gone(GONE_ELSEWHERE, T0, T0 + 3 * HOUR, T0 + MIN, T0 + 2 * HOUR));
    expect(&a, 0, 0, MIN, SPAN_GONE, true);
    see(&b, up(T0, T0 + MIN)); /* its time was up meanwhile: known to the second */
    see(&b, gone(GONE_TIMEOUT, T0, T0 + HOUR, T0 + HOUR, T0 + 2 * HOUR));
    expect(&b, 0, 0, HOUR, SPAN_GONE, false);
    see(&c, up(T0, T0 + MIN)); /* paused and resumed */
    see(&c, up(T0 + HOUR, T0 + 2 * HOUR));
    expect(&c, 0, 0, MIN, SPAN_PAUSED, true);
    expect(&c, 1, HOUR, 2 * HOUR, SPAN_OPEN, false);
    see(&d, up(T0, T0 + MIN)); /* paused, resumed, paused */
    see(&d, paused(T0 + HOUR, T0 + HOUR + 5 * MIN, T0 + 2 * HOUR));
    expect(&d, 0, 0, MIN, SPAN_PAUSED, true);
    expect(&d, 1, HOUR, HOUR + 5 * MIN, SPAN_PAUSED, false);
    see(&d, up(T0 + HOUR, T0 + HOUR)); /* still runs when we come back */
    assert_int_equal(d.n, 3);
}

static void test_first_seen(void **state)
{
    struct book a = {0}, b = {0};

    (void)state;
    see(&a, paused(T0, T0 + 7 * MIN, T0 + HOUR));
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
    assert_int_equal(r->most, 2); /* who ends when another begins is not beside it */
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

/* --- the store ----------------------------------------------------------------------------- */

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
        told(box, up(T0, T0 + i * MIN), 0.001);
    storebox_stop(&b); /* and once more, by the next program */
    storebox_start(&b, dir);
    told(box, up(T0, T0 + MIN), 0.002); /* the price of its begin holds */
    told(box, gone(GONE_TIMEOUT, T0, T0 + HOUR, T0 + HOUR, T0 + 3 * HOUR), 0.002);
    told(box, up(T0 + 2 * HOUR, T0 + 3 * HOUR), (double)NAN);
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
    told(one, up(T0, T0 + MIN), 0.001);
    told(two, up(T0, T0 + MIN), 0.001);
    assert_int_equal(doubts(T0 + 2 * MIN, &from), 0); /* they run */
    storebox_stop(&b);
    storebox_start(&b, dir);
    assert_int_equal(doubts(T0 + 2 * HOUR, &from), 2);
    told(one, gone(GONE_ELSEWHERE, T0, T0 + 3 * HOUR, T0 + MIN, T0 + 2 * HOUR), 0.002);
    told(two, gone(GONE_TIMEOUT, T0, T0 + HOUR, T0 + HOUR, T0 + 2 * HOUR), 0.002);
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
    told(box, up(T0, T0 + MIN), 0.001);
    told(box, gone(GONE_ELSEWHERE, T0, T0 + 3 * HOUR, T0 + 5 * MIN, T0 + 2 * HOUR), 0.001);
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
    told(box, up(T0, T0 + MIN), 0.001);
    told(box, paused(T0, T0 + 5 * MIN, T0 + 6 * MIN), 0.001);
    told(box, up(T0, T0 + 30 * MIN), 0.001);
    told(box, gone(GONE_ELSEWHERE, T0, T0 + 3 * HOUR, T0 + 40 * MIN, T0 + HOUR), 0.001);
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
    storebox_remove(dir);
    free(dir);
    dir = storebox_dir();
    storebox_old(dir, 3);
    storebox_start(&b, dir);
    assert_true(budget_is_new("day", T0, NULL, 80));
    box = storebox_sandbox(&b, "i1");
    told(box, up(T0, T0 + MIN), 0.001);
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
        cmocka_unit_test(test_runs_and_is_killed),
        cmocka_unit_test(test_pauses),
        cmocka_unit_test(test_while_nobody_looked),
        cmocka_unit_test(test_first_seen),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_a_life_is_told),
        cmocka_unit_test(test_half_a_life_is_told),
        cmocka_unit_test(test_hours_and_most),
        cmocka_unit_test(test_forecast),
        cmocka_unit_test(test_budget_percent),
        cmocka_unit_test(test_other_zones),
        cmocka_unit_test_setup_teardown(test_what_nobody_saw_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nothing_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_guessed_begin_is_set_right, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_budget_is_told_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_step_before, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_intervals_are_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_only_what_sums_are_made_of, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_turns_count_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_totals_count_their_growth, set_up, tear_down),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
