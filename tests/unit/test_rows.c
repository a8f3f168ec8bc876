/* Rows that change one at a time or all at once: what is kept of them (sums, which are shown, in
 * which order) is at any moment what a look at all of them would find. */
#include "../lib/screenscript.h"
#include "../../ui/panes/usage_priv.h"

#include <cct/model/filter.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 90, STEPS = 1500 };

static struct script s;
static uint32_t seed;

static int setup(void **state)
{
    (void)state;
    seed = 7;
    script_init(&s);
    script_run(&s, "loaded\nlink ok cloud\nprojects one two\nkeys Esc"); /* opens the screen */
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    script_release(&s);
    return 0;
}

static uint32_t dice(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

static const struct model *model(void)
{
    return s.app->model;
}

/* --- what happens to rows -------------------------------------------------------------- */

static void send(void *ev)
{
    ui_observe(&s.ui, ev);
    model_apply(s.app->model, ev);
    msg_free(ev);
    ui_update(&s.ui);
}

static void fill(struct sandbox *r, uint64_t id)
{
    static const char *const tools[] = {"claude", "codex", "pi"};
    static const char *const projects[] = {"one", "one", "two", NULL};
    static const double rates[] = {0.000028, 0.0000001, 0};
    r->id = id;
    r->name = xasprintf("sb-%03d", (int)(id * 37 % 1000));
    r->tool = xstrdup(tools[dice(3)]);
    r->project = xstrdup(projects[dice(4)]);
    r->state = (enum sb_state)dice(SB_STATE_COUNT);
    r->agent = (enum sb_agent)dice(AG_UNKNOWN + 1);
    r->vm_up = dice(2);
    r->agent_since = dice(4) ? s.now - dice(90000) : 0;
    r->pending = dice(6) == 0;
    r->foreign = dice(8) == 0;
    r->usd_per_s = dice(4) ? rates[dice(3)] : (double)NAN;
}

static void change(size_t n, bool full)
{
    struct ev_sandboxes *ev = ev_new(EV_SANDBOXES);
    bool taken[ROWS + 1] = {false};
    ev->full = full;
    ev->v = xcalloc(n, sizeof(*ev->v));
    while (n--) {
        uint64_t id = 1 + dice(ROWS);
        if (!taken[id])
            fill(&ev->v[ev->n++], id);
        taken[id] = true;
    }
    send(ev);
}

static void view(bool all)
{
    struct ev_view *ev = ev_new(EV_VIEW);
    ev->all = all;
    send(ev);
}

static void project(size_t current)
{
    struct ev_projects *ev = ev_new(EV_PROJECTS);
    ev->v = xcalloc(2, sizeof(*ev->v));
    ev->v[ev->n++].name = xstrdup("one");
    ev->v[ev->n++].name = xstrdup("two");
    ev->current = current;
    send(ev);
}

static void something(void)
{
    uint32_t what = dice(40);
    if (what < 30)
        change(1, false);
    else if (what < 34)
        change(1 + dice(ROWS), false);
    else if (what < 36)
        change(ROWS / 2, true);
    else if (what < 38)
        view(dice(2));
    else
        project(dice(2));
}

/* --- what a look at all of them finds ---------------------------------------------------- */

static void assert_sums(void)
{
    const struct model *m = model();
    size_t state[SB_STATE_COUNT] = {0}, asks = 0, working = 0, idle = 0, unpriced = 0, elsewhere = 0;
    size_t got[SB_STATE_COUNT], got_asks, got_working, got_idle, got_unpriced;
    double usd = 0;
    for (size_t i = 0; i < m->n_sandboxes; i++) {
        const struct sandbox *r = &m->sandboxes[i];
        bool run = r->state == SB_RUNNING;
        assert_ptr_equal(model_sandbox(m, r->id), r);
        if (!model_in_view(m, r)) {
            elsewhere += r->state != SB_KILLED && (r->state != SB_ERROR || r->vm_up);
            continue;
        }
        state[r->state]++;
        asks += run && r->agent == AG_ASKS;
        working += run && (r->agent == AG_WORKING || r->agent == AG_STARTING);
        idle += run && (r->agent == AG_IDLE || r->agent == AG_EXITED);
        unpriced += sandbox_is_unpriced(r);
        usd += sandbox_usd_per_hour(r);
    }
    model_counts(m, got, &got_asks, &got_working, &got_idle);
    assert_memory_equal(got, state, sizeof(got));
    assert_true(got_asks == asks && got_working == working && got_idle == idle);
    assert_true(fabs(model_usd_per_hour(m, &got_unpriced) - usd) < 1e-6);
    assert_int_equal(got_unpriced, unpriced);
    assert_int_equal(model_elsewhere(m), elsewhere);
}

/* Shown rows are those that * marks, in that order. */
static void assert_shown(const char *words, bool inverted, bool ordered)
{
    const struct model *m = model();
    struct filter f;
    size_t n = 0;
    filter_parse(&f, words);
    script_run(&s, "keys U *");
    for (int ended = 0; ended < 2; ended++)
        for (size_t i = 0; i < m->n_sandboxes; i++) {
            const struct sandbox *r = &m->sandboxes[inverted ? m->n_sandboxes - 1 - i : i];
            if ((r->state == SB_KILLED) != ended || !model_in_view(m, r) || !filter_match(&f, r))
                continue;
            assert_true(marks_has(&s.ui, r->id));
            if (ordered && s.ui.marks.v[n] != r->id)
                fail_msg("row %zu is %d, not %d", n, (int)s.ui.marks.v[n], (int)r->id);
            n++;
        }
    assert_int_equal(s.ui.marks.n, n);
    script_run(&s, "keys U");
}

static void test_sums(void **state)
{
    (void)state;
    for (int i = 0; i < STEPS; i++) {
        something();
        assert_sums();
    }
    change(1, true);
    assert_sums();
    assert_true(model_usd_per_hour(model(), NULL) >= 0); /* nothing is left of what went */
}

static void test_shown(void **state)
{
    static const struct {
        const char *keys, *words;
        bool inverted, ordered;
    } t[] = {{"Esc", "", false, true},
             {"I", "", true, true},
             {"/ \"state:running\" Enter", "state:running", true, true},
             {": \"filter doing:asks,idle -agent:pi\" Enter", "doing:asks,idle -agent:pi", true, true},
             {"I", "doing:asks,idle -agent:pi", false, true},
             {"Esc >", "", false, false}, /* by name: not the model's order */
             {"/ \"is:foreign\" Enter", "is:foreign", false, false}};
    (void)state;
    for (size_t k = 0; k < sizeof(t) / sizeof(t[0]); k++) {
        char keys[80];
        snprintf(keys, sizeof(keys), "keys %s", t[k].keys);
        change(ROWS, false);
        script_run(&s, keys);
        for (int i = 0; i < STEPS / 10; i++) {
            something();
            if (dice(3) == 0)
                script_run(&s, "keys j");
            assert_shown(t[k].words, t[k].inverted, t[k].ordered);
        }
    }
}

/* By a column rows that stay never change places, whatever is changed of them. */
static void test_places(void **state)
{
    uint64_t before[ROWS];
    size_t n = 0;
    (void)state;
    script_run(&s, "keys > >");
    view(true);
    change(3 * ROWS, false);
    for (int i = 0; i < STEPS / 10; i++) {
        struct ev_sandboxes *ev = ev_new(EV_SANDBOXES);
        ev->v = xcalloc(1, sizeof(*ev->v));
        fill(&ev->v[ev->n++], 1 + dice(ROWS));
        if (ev->v[0].state == SB_KILLED)
            ev->v[0].state = SB_RUNNING; /* ended ones go below */
        bool known = model_sandbox(model(), ev->v[0].id) &&
                     model_sandbox(model(), ev->v[0].id)->state != SB_KILLED;
        send(ev);
        script_run(&s, "keys U *");
        if (known && n) {
            assert_int_equal(s.ui.marks.n, n);
            assert_memory_equal(s.ui.marks.v, before, n * sizeof(*before));
        }
        n = s.ui.marks.n;
        memcpy(before, s.ui.marks.v, n * sizeof(*before));
    }
    assert_true(n > ROWS / 2);
}

static bool idles(const struct sandbox *r)
{
    return sandbox_idles(r) && !r->pending && s.now - r->agent_since >= 60000;
}

/* Those that run for nothing, as the usage panel counts them. */
static void test_idle(void **state)
{
    struct usage_pane *u;
    (void)state;
    u = s.ui.panes[PANE_USAGE].state;
    view(true);
    for (int i = 0; i < STEPS; i++) {
        const struct sandbox *out[USAGE_MANY_IDLE];
        size_t n = 0, got;
        if (dice(3))
            something();
        s.now += dice(20000);
        got = usage_idle_ones(&s.ui, u, out, s.now);
        for (size_t k = 0; k < model()->n_sandboxes; k++)
            n += idles(&model()->sandboxes[k]);
        if (got != n)
            fail_msg("step %d: %zu idle, not %zu", i, got, n);
        for (size_t k = 0; k < got && k < USAGE_MANY_IDLE; k++)
            assert_true(idles(out[k]) && (k == 0 || out[k] != out[k - 1]));
    }
}

/* Who asks what changed is told all of it, or that it is too much. */
static void test_changes(void **state)
{
    uint64_t since = 0, ids[MODEL_CHANGES], id;
    size_t n;
    (void)state;
    change(ROWS, false);
    assert_false(model_changes(model(), &since, ids, &n)); /* new ones */
    assert_true(model_changes(model(), &since, ids, &n) && n == 0);
    view(true);
    assert_false(model_changes(model(), &since, ids, &n));
    id = model()->sandboxes[3].id;
    for (size_t times = 1; times <= MODEL_CHANGES + 1; times++) {
        for (size_t i = 0; i < times; i++) {
            struct ev_sandboxes *ev = ev_new(EV_SANDBOXES);
            ev->v = xcalloc(1, sizeof(*ev->v));
            fill(&ev->v[ev->n++], id);
            send(ev);
        }
        assert_int_equal(model_changes(model(), &since, ids, &n), times <= MODEL_CHANGES);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(ids[i], id);
        assert_int_equal(n, times <= MODEL_CHANGES ? times : 0);
    }
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {T(test_sums), T(test_shown), T(test_places),
                                       T(test_idle), T(test_changes)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
