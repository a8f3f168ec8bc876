/* Nothing is sent when nothing changed: figures that go on by themselves (money, load, ages) bring
 * no picture of their own. They are in the next one, at the next minute at the latest. */
#include "../lib/screenscript.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MINUTE INT64_C(60000)

static struct script s;

static int setup(void **state)
{
    (void)state;
    script_init(&s);
    script_run(&s, "size 60 200\nloaded\nlink ok cloud\nprojects default\n"
                   "row 1 fix claude running idle load=18,42,1945,10240\nkeys Esc");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    script_release(&s);
    return 0;
}

/* True: a picture is drawn for it. */
static bool send(void *ev)
{
    ui_observe(&s.ui, ev);
    model_apply(s.app->model, ev);
    msg_free(ev);
    return ui_update(&s.ui);
}

/* So much was spent in the last hour, for who asked or for nobody. */
static bool sums(double usd, double budget, uint64_t req_id)
{
    struct ev_usage *ev = ev_new(EV_USAGE);
    struct ledger_query q;
    struct ledger_span span = {.s = {.start = s.now - 60 * MINUTE, .end = s.now, .how = SPAN_GONE},
                               .usd_per_s = usd / 3600, .cpu_count = 2, .memory_mb = 1024};
    if (ledger_range("week", s.now, &q, NULL))
        abort();
    ev->m.req_id = req_id;
    ev->report = ledger_report_new(&q);
    ledger_report_span(ev->report, &span);
    ledger_report_end(ev->report);
    ev->report->limits.budget.usd[PERIOD_DAY] = budget;
    return send(ev);
}

static bool load(int cpu_pct, bool figures)
{
    struct ev_sandboxes *ev = ev_new(EV_SANDBOXES);
    ev->v = xcalloc(1, sizeof(*ev->v));
    ev->figures = figures;
    sandbox_copy(&ev->v[ev->n++], model_sandbox(s.app->model, 1));
    ev->v[0].load.cpu_pct = cpu_pct;
    return send(ev);
}

static bool shows(const char *text)
{
    char *screen = canvas_dump(&s.ui.canvas, false); /* as it was drawn last */
    bool is = strstr(screen, text) != NULL;
    free(screen);
    return is;
}

static void draw(void)
{
    ui_draw(&s.ui, s.now);
}

static void test_money(void **state)
{
    (void)state;
    assert_true(sums(1, 0, 0)); /* the first ones */
    draw();
    assert_true(shows("today $1.00"));
    assert_false(sums(1.02, 0, 0));
    assert_false(sums(1.04, 0, 0));
    assert_true(shows("today $1.00"));
    assert_true(sums(1.05, 0, 7)); /* somebody waits for them */
    draw();
    assert_true(shows("today $1.05"));
    /* whatever else is drawn has the newest */
    assert_false(sums(1.06, 0, 0));
    script_run(&s, "row 1 fix claude running working");
    assert_true(ui_update(&s.ui));
    draw();
    assert_true(shows("today $1.06"));
}

/* What a person must know at once is no tick. */
static void test_budget(void **state)
{
    (void)state;
    sums(1, 2, 0);
    draw();
    assert_false(sums(1.1, 2, 0));
    assert_true(sums(1.7, 2, 0)); /* 85 % of it */
    assert_false(sums(1.8, 2, 0));
    assert_true(sums(2.1, 2, 0));
    assert_false(sums(2.2, 2, 0));
    s.now += 24 * 60 * MINUTE; /* another day */
    assert_true(sums(0.1, 2, 0));
}

static void test_load(void **state)
{
    (void)state;
    draw();
    assert_true(shows("] 18%"));
    assert_false(load(25, true));
    assert_true(shows("] 18%"));
    draw();
    assert_true(shows("] 25%"));
    assert_true(load(26, false)); /* more than that is new */
    /* who opened the details watches */
    script_run(&s, "keys d");
    assert_true(load(31, true));
    draw();
    assert_true(shows("] 31%"));
    script_run(&s, "keys Esc");
    assert_false(load(32, true));
}

/* The loop draws by the minute: what waits is in that picture, and nothing else wakes it. */
static void test_minute(void **state)
{
    int64_t next = (s.now / MINUTE + 1) * MINUTE;
    (void)state;
    s.ui.status[0] = 0;
    sums(1, 0, 0);
    draw();
    assert_true(ui_next_change(&s.ui, s.now) == next); /* the row's age */
    script_run(&s, "gone 1");
    ui_update(&s.ui);
    draw();
    assert_true(ui_next_change(&s.ui, s.now) == 0); /* not a wake-up for nothing */
    assert_false(sums(1.02, 0, 0));
    assert_true(ui_next_change(&s.ui, s.now) == next);
    assert_true(ui_next_change(&s.ui, next - 1) == next);
    draw();
    assert_true(shows("today $1.02"));
    assert_true(ui_next_change(&s.ui, s.now) == 0);
}

/* Wherever one is. */
static void test_everywhere(void **state)
{
    static const char *const screens[] = {"W", "3", "4", "5", "O", "v", "f"};
    (void)state;
    script_run(&s, "row 2 two codex running working since=400 left=1900 load=1,2,3,4\n"
                   "tbuild 1 base claude 1.0 building 100");
    for (size_t i = 0; i < sizeof(screens) / sizeof(screens[0]); i++) {
        char keys[16];
        snprintf(keys, sizeof(keys), "keys %s", screens[i]);
        script_run(&s, keys);
        sums(1, 5, 0);
        ui_update(&s.ui);
        draw();
        if (sums(1.01 + 0.01 * (double)i, 5, 0) || load(3 + (int)i, true))
            fail_msg("after %s a figure alone brings a picture", screens[i]);
        script_run(&s, "keys Esc Esc");
    }
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {T(test_money), T(test_budget), T(test_load), T(test_minute),
                                       T(test_everywhere)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
