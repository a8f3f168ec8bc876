/* What turns come to in each half hour: the same as turn by turn, whatever is asked, told again,
 * forgotten, renamed, or stood in a database before there were such sums. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../lib/storebox.h"
#include "../lib/tmpdir.h"
#include <cct/model/ledger.h>
#include <cct/util/arr.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HOUR INT64_C(3600000)
#define DAY (24 * HOUR)
#define T0 INT64_C(1775000000000)
enum { BOXES = 4, MODELS = 3, TURNS = 600 };
static const char *const models[MODELS] = {"m1", "m2", NULL};

static struct storebox b;
static char *dir;
static unsigned seed = 1;
static uint64_t boxes[BOXES], runs[BOXES];

/* What the store was told, and what it should know of it. */
struct told {
    int box;
    uint64_t offset;
    const char *model;
    int64_t at, in, out;
    double usd;
};
static ARR(struct told) known;

static int64_t some(int64_t n)
{
    return (int64_t)(((uint64_t)rand_r(&seed) << 31 ^ (uint64_t)rand_r(&seed)) % (uint64_t)n);
}

static const char *box_name(int i, char *dst)
{
    snprintf(dst, 8, "i%c", (char)(48 + i));
    return dst;
}

static void tell(const struct told *t)
{
    struct st_append a = {.run = runs[t->box], .n_events = 1};
    struct st_use *u = xcalloc(1, sizeof(*u));

    *u = (struct st_use){.model = xstrdup(t->model), .in_tokens = t->in, .out_tokens = t->out,
                         .cache_read = t->in / 3, .cache_write = t->out / 5, .cost_usd = t->usd,
                         .time_ms = t->at};
    a.events = xcalloc(1, sizeof(*a.events));
    a.events[0] = (struct st_event){.offset = t->offset, .json = xstrdup("{}"), .len = 2, .use = u};
    store_append(b.s, &a, (struct st_to){NULL, 0});
}

static void tell_some(int n, int64_t span)
{
    for (int i = 0; i < n; i++) {
        struct told t = {.box = (int)some(BOXES), .offset = known.n + 1, .model = models[some(MODELS)],
                         .at = T0 - some(span), .in = some(5000), .out = some(900),
                         .usd = some(5) ? (double)some(1000000) / 1e7 : (double)NAN};

        *ARR_PUSH(&known) = t;
        tell(&t);
        if (!some(9)) /* twice */
            tell(&t);
    }
}

static int set_up(void **state)
{
    char name[8];

    (void)state;
    storebox_fresh(&b, &dir);
    for (int i = 0; i < BOXES; i++) {
        boxes[i] = storebox_sandbox(&b, box_name(i, name));
        runs[i] = storebox_run(&b, boxes[i], "s");
    }
    ARR_CLEAR(&known);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    storebox_end(&b, dir);
    ARR_RELEASE(&known);
    return 0;
}

/* --- one report against another -------------------------------------------------------------- */

static void same_sums(const struct ledger_sums *x, const struct ledger_sums *y)
{
    assert_int_equal(x->turns, y->turns);
    assert_int_equal(x->unpriced_turns, y->unpriced_turns);
    assert_int_equal(x->in_tokens, y->in_tokens);
    assert_int_equal(x->out_tokens, y->out_tokens);
    assert_int_equal(x->cache_read, y->cache_read);
    assert_int_equal(x->cache_write, y->cache_write);
    assert_true(fabs(x->agent_usd - y->agent_usd) < 1e-9);
}

static void same_groups(const struct ledger_report *x, const struct ledger_report *y, int by)
{
    assert_int_equal(x->by[by].n, y->by[by].n);
    for (size_t i = 0; i < x->by[by].n; i++) {
        const struct ledger_group *g = &x->by[by].v[i];
        size_t k = 0;

        while (k < y->by[by].n && !str_eq(y->by[by].v[k].name, g->name))
            k++;
        assert_true(k < y->by[by].n);
        same_sums(&g->sums, &y->by[by].v[k].sums);
    }
}

static void same_reports(const struct ledger_report *x, const struct ledger_report *y)
{
    same_sums(&x->all, &y->all);
    for (int p = 0; p < LEDGER_PERIODS; p++)
        same_sums(&x->period[p], &y->period[p]);
    for (int by = 0; by < LEDGER_BYS; by++)
        same_groups(x, y, by);
    assert_int_equal(x->n_hours, y->n_hours);
    for (size_t i = 0; i < x->n_hours; i++) {
        assert_int_equal(x->hours[i].at, y->hours[i].at);
        same_sums(&x->hours[i].sums, &y->hours[i].sums);
    }
    assert_int_equal(x->n_spend, y->n_spend);
    for (int h = 0; h < LEDGER_HOURS; h++)
        assert_true(fabs(x->hour[h] - y->hour[h]) < 1e-9);
    assert_true(fabs(x->recent_usd - y->recent_usd) < 1e-9);
    assert_true(fabs(x->forecast_usd - y->forecast_usd) < 1e-6);
}

static struct ledger_report *turn_by_turn(const struct ledger_query *q, const char *project)
{
    struct ledger_report *r = ledger_report_new(q);

    for (size_t i = 0; i < known.n; i++) {
        const struct told *t = &known.v[i];
        char name[8];
        struct ledger_turn v = {{box_name(t->box, name), NULL, project, NULL, NULL}, t->model, t->at,
                                t->in, t->in / 3, t->out / 5, t->out, t->usd, 0, 0};

        ledger_report_turn(r, &v);
    }
    ledger_report_end(r);
    return r;
}

static void check(const struct ledger_query *q, const char *project)
{
    struct ledger_report *want = turn_by_turn(q, project);
    struct st_reply *r;

    store_ledger(b.s, q, storebox_to(&b));
    r = storebox_ok(&b);
    same_reports(r->report, want);
    ledger_report_free(want);
    msg_free(&r->m);
}

static void check_all(const char *project)
{
    static const char *const ranges[] = {"day", "week", "month", "all", "2026-03-25..2026-03-30"};
    struct ledger_query q;

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        assert_int_equal(ledger_range(ranges[i], T0 - some(3 * DAY), &q, NULL), 0);
        q.by_hour = i % 2;
        check(&q, project);
    }
    for (int i = 0; i < 8; i++) {
        assert_int_equal(ledger_range("day", T0 - some(9 * DAY), &q, NULL), 0);
        q.from = T0 - some(20 * DAY); /* anywhere within a half hour */
        q.to = q.from + some(5 * DAY);
        q.by_hour = i % 2;
        check(&q, project);
    }
}

/* The sums' table and the turns' one, as SQL sees them. */
static void check_tables(void)
{
    static const char sql[] =
        "WITH turns AS (SELECT n, timeMs/1800000/n, coalesce(sandboxId, ''), coalesce(project, ''),"
        " coalesce(model, ''), sum(inTokens), sum(cacheRead), sum(cacheWrite), sum(outTokens),"
        " round(total(costUsd), 9), count(*), sum(costUsd IS NULL) FROM usageTurns,"
        " (SELECT 1 AS n UNION ALL SELECT 48) GROUP BY 1, 2, 3, 4, 5),"
        " sums AS (SELECT slots, at, sandboxId, project, model, inTokens,"
        " cacheRead, cacheWrite, outTokens, round(costUsd, 9), turns, unpriced FROM usageSums"
        " JOIN usagePlaces p ON p.id=place)"
        " SELECT (SELECT count(*) FROM (SELECT * FROM turns EXCEPT SELECT * FROM sums)) +"
        " (SELECT count(*) FROM (SELECT * FROM sums EXCEPT SELECT * FROM turns))";
    char *path = xasprintf("%s/cc-tui.db", dir);
    sqlite3_stmt *q;
    sqlite3 *db;

    store_ledger_forget(b.s, 0, 0); /* and what was posted before is there */
    store_builds(b.s, false, storebox_to(&b));
    msg_free(&storebox_ok(&b)->m);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(q, 0), 0);
    sqlite3_finalize(q);
    sqlite3_close(db);
    free(path);
}

static void forget(int box, uint64_t before)
{
    store_ledger_forget(b.s, runs[box], before);
    for (size_t i = known.n; i-- > 0;)
        if (known.v[i].box == box && known.v[i].offset < before)
            ARR_REMOVE(&known, i);
}

static void play(const char *zone)
{
    setenv("TZ", zone, 1);
    tzset();
    seed = 1;
    tell_some(TURNS, 20 * DAY);
    tell_some(100, HOUR);
    check_all(NULL);
    forget(1, TURNS / 2);
    forget(2, UINT64_MAX);
    check_all(NULL);
    check_tables();
}

static void test_same_as_turn_by_turn(void **state)
{
    (void)state;
    play("Europe/Berlin"); /* and an hour that is not there, or twice */
}

static void test_half_hour_zone(void **state)
{
    (void)state;
    play("<+0530>-5:30");
}

static void test_quarter_hour_zone(void **state)
{
    (void)state;
    play("<+0545>-5:45");
}

/* --- other names, older tables ---------------------------------------------------------------- */

/* Turns behind the store's back, of two projects in the same half hour; no sandbox is of them. */
static void insert_turns(void)
{
    char *path = xasprintf("%s/cc-tui.db", dir);

    storebox_sql(path,
                 "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE i<199)"
                 " INSERT INTO usageTurns(run, offset, idx, sandbox, sandboxId, role, timeMs,"
                 " project, model, inTokens, cacheRead, cacheWrite, outTokens, costUsd)"
                 " SELECT 1, i, 0, 1, 'i'||(i%3), '', 1775000000000+i*60000,"
                 " CASE i%4 WHEN 0 THEN NULL WHEN 1 THEN 'a' ELSE 'b' END,"
                 " CASE i%2 WHEN 0 THEN 'm' END, i, 2*i, 3*i, 4*i,"
                 " CASE i%7 WHEN 0 THEN NULL ELSE i/1000.0 END FROM n");
    free(path);
}

static void check_projects(size_t n, size_t most)
{
    struct ledger_query q;
    struct st_reply *r;
    size_t all = 0;

    assert_int_equal(ledger_range("all", T0 + DAY, &q, NULL), 0);
    store_ledger(b.s, &q, storebox_to(&b));
    r = storebox_ok(&b);
    assert_int_equal(r->report->all.turns, 200);
    assert_int_equal(r->report->all.in_tokens, 199 * 100);
    assert_int_equal(r->report->by[BY_PROJECT].n, n);
    for (size_t i = 0; i < n; i++)
        all = r->report->by[BY_PROJECT].v[i].sums.turns > all
                  ? r->report->by[BY_PROJECT].v[i].sums.turns
                  : all;
    assert_int_equal(all, most);
    msg_free(&r->m);
}

static void test_projects_get_other_names(void **state)
{
    char *id;
    struct st_reply *r;

    (void)state;
    insert_turns();
    check_tables();
    check_projects(3, 100);
    store_project(b.s, "a", storebox_to(&b));
    r = storebox_ok(&b);
    id = xstrdup(r->text);
    msg_free(&r->m);
    store_project_rename(b.s, id, "c", storebox_to(&b)); /* nobody was called so */
    msg_free(&storebox_ok(&b)->m);
    check_tables();
    check_projects(3, 100);
    store_project_rename(b.s, id, "b", storebox_to(&b)); /* what it cost is of the same name now */
    msg_free(&storebox_ok(&b)->m);
    check_tables();
    check_projects(2, 150);
    free(id);
}

static void test_older_tables(void **state)
{
    (void)state;
    storebox_stop(&b);
    tmpdir_remove(dir);
    free(dir);
    dir = storebox_dir();
    storebox_old(dir, 4);
    insert_turns();
    storebox_start(&b, dir);
    check_tables();
    check_projects(3, 100);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_same_as_turn_by_turn),     TEST(test_half_hour_zone),
        TEST(test_quarter_hour_zone),        TEST(test_projects_get_other_names),
        TEST(test_older_tables),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
