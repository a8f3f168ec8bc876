/* model: the provider's list against our rows, and the service's clock. */
#include <cct/model/reconcile.h>
#include <cct/util/arr.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* keep last */
#include <cmocka.h>

#define LIT(s) ((char *)(s)) /* borrowed: never freed through these */

static struct sandbox_table rows;
static int n_told, n_new;

static void told(void *ctx, struct sandbox *row, bool is_new)
{
    (void)ctx;
    (void)row;
    n_told++;
    n_new += is_new;
}

static int clear_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < rows.n; i++)
        sandbox_release(&rows.v[i]);
    ARR_RELEASE(&rows);
    return 0;
}

static struct sandbox *add_row(const char *id, enum sb_state st)
{
    struct sandbox *s = ARR_PUSH(&rows);
    s->sandbox_id = xstrdup(id);
    s->session = xstrdup("s");
    s->state = st;
    s->started_at = 1000;
    s->end_at = 900000;
    s->seen_at = 5000;
    s->vm_up = st == SB_ERROR;
    return s;
}

static struct listed entry(const char *id, const char *state)
{
    return (struct listed){.sandbox_id = id,
                           .state_text = state,
                           .started_at = 1000,
                           .end_at = 900000,
                           .cpu_count = 2,
                           .memory_mb = 1024};
}

/* Apply; how many rows were told of. */
static int apply(const struct listed *l, size_t n, int64_t now, bool suspicious)
{
    struct reconcile_opts o = {.now = now, .suspicious_empty = suspicious};
    n_told = n_new = 0;
    reconcile(&rows, l, n, &o, told, NULL);
    return n_told;
}

static void test_unknown_rows(void **state)
{
    (void)state;
    struct kv own[] = {{LIT("cc-tui-session"), LIT("s1")},
                       {LIT("cc-tui-name"), LIT("amber")},
                       {LIT("cc-tui-project"), LIT("p")},
                       {LIT("cc-tui-tool"), LIT("claude")},
                       {NULL, NULL}};
    struct listed l[] = {entry("a", "running"), entry("b", "paused"), entry("", "running"),
                         entry("a", "running")};
    l[1].meta = own;
    assert_int_equal(apply(l, 4, 2000, false), 2);
    assert_int_equal(n_new, 2);
    assert_int_equal(rows.n, 2);
    assert_true(rows.v[0].foreign && rows.v[0].agent == AG_NONE);
    assert_string_equal(rows.v[0].name, "a");
    assert_true(!rows.v[1].foreign && rows.v[1].state == SB_PAUSED);
    assert_string_equal(rows.v[1].name, "amber");
    assert_string_equal(rows.v[1].tool, "claude");
    assert_int_equal(rows.v[1].agent, AG_UNKNOWN);
    assert_int_equal(apply(l, 4, 3000, false), 0); /* nothing new: nobody is told */
    l[0].end_at = 950000;
    assert_int_equal(apply(l, 2, 4000, false), 1);
    assert_int_equal(rows.v[0].end_at, 950000);
}

/* What it is made of, as the list says; an answer that leaves some of it out unsays nothing. */
static void test_what_it_is_made_of(void **state)
{
    (void)state;
    struct listed l = entry("a", "running"), less = entry("a", "running");
    const struct sandbox *s;

    l.disk_mb = 512;
    l.template_id = "tpl1";
    l.alias = "claude";
    less.cpu_count = less.memory_mb = 0;
    assert_int_equal(apply(&l, 1, 2000, false), 1);
    for (int i = 0; i < 2; i++) {
        s = &rows.v[0];
        assert_int_equal(s->cpu_count, 2);
        assert_int_equal(s->memory_mb, 1024);
        assert_int_equal(s->disk_mb, 512);
        assert_string_equal(s->template_id, "tpl1");
        assert_string_equal(s->alias, "claude");
        assert_int_equal(apply(&less, 1, 3000, false), 0);
    }
    l.alias = "claude-2";
    l.not_isolated = true;
    assert_int_equal(apply(&l, 1, 4000, false), 1);
    assert_string_equal(rows.v[0].alias, "claude-2");
    assert_true(rows.v[0].not_isolated);
}

static void test_absent(void **state)
{
    (void)state;
    add_row("early", SB_RUNNING);
    add_row("pause", SB_PAUSED);
    add_row("alien", SB_RUNNING)->foreign = true;
    add_row("making", SB_CREATING);
    assert_int_equal(apply(NULL, 0, 6000, false), 3);
    for (int i = 0; i < 3; i++)
        assert_true(rows.v[i].unlisted && rows.v[i].state != SB_KILLED);
    assert_int_equal(apply(NULL, 0, 8000, false), 3);
    assert_int_equal(rows.v[0].gone, GONE_EARLY);
    assert_int_equal(rows.v[1].gone, GONE_ELSEWHERE);
    assert_int_equal(rows.v[2].gone, GONE_ELSEWHERE);
    assert_int_equal(rows.v[3].state, SB_CREATING);
    assert_int_equal(rows.v[0].state, SB_KILLED);
    assert_int_equal(rows.v[0].ended_at, 5000); /* the last sighting */
    assert_int_equal(apply(NULL, 0, 9000, false), 0);
    struct listed l = entry("early", "running"); /* it was a slip: it lives again */
    assert_int_equal(apply(&l, 1, 10000, false), 1);
    assert_true(rows.v[0].state == SB_RUNNING && rows.v[0].gone == GONE_NONE);
    assert_true(rows.v[0].ended_at == 0 && !rows.v[0].unlisted);
    assert_int_equal(apply(NULL, 0, 11000, false), 1); /* counts from one again */
    assert_int_equal(rows.v[0].state, SB_RUNNING);
    assert_int_equal(apply(&l, 1, 12000, false), 1);
    assert_false(rows.v[0].unlisted);
}

static void test_ends_known(void **state)
{
    (void)state;
    add_row("timeout", SB_RUNNING);
    add_row("ours", SB_RUNNING)->pending = true;
    add_row("paused", SB_PAUSED); /* its end is when it was paused: no timeout */
    assert_int_equal(apply(NULL, 0, 899000, false), 3);
    assert_int_equal(rows.v[0].gone, GONE_TIMEOUT);
    /* pages of a list shift while rows go: one absence is no proof for ours either */
    assert_true(rows.v[1].state == SB_RUNNING && rows.v[1].unlisted && rows.v[1].pending);
    assert_true(rows.v[2].state == SB_PAUSED && rows.v[2].unlisted);
    reconcile_gone(&rows.v[2], GONE_HERE, 899500);
    assert_true(rows.v[2].state == SB_KILLED && rows.v[2].ended_at == 899500);
    add_row("late", SB_RUNNING);
    assert_int_equal(apply(NULL, 0, 950000, false), 2);
    assert_int_equal(rows.v[1].gone, GONE_HERE);
    assert_false(rows.v[1].pending);
    assert_int_equal(rows.v[3].ended_at, 900000); /* it ran until its planned end */
}

static void test_suspicious_list(void **state)
{
    (void)state;
    add_row("a", SB_RUNNING);
    add_row("b", SB_RUNNING)->pending = true;
    for (int i = 0; i < 4; i++)
        apply(NULL, 0, 1000000 + i, true); /* an empty list that cannot be: decides nothing */
    for (int i = 0; i < 2; i++)
        assert_true(rows.v[i].state == SB_RUNNING && rows.v[i].unlisted);
    apply(NULL, 0, 1000010, false);
    assert_int_equal(rows.v[0].gone, GONE_TIMEOUT);
}

static void test_lost_create(void **state)
{
    (void)state;
    struct kv meta[] = {
        {LIT("cc-tui-mark"), LIT("mk")}, {LIT("cc-tui-session"), LIT("s")}, {NULL, NULL}};
    struct sandbox *s = ARR_PUSH(&rows);
    s->mark = xstrdup("mk");
    s->state = SB_CREATING;
    s->agent = AG_STARTING;
    struct listed l = entry("found", "running");
    l.meta = meta;
    assert_int_equal(apply(&l, 1, 2000, false), 1);
    assert_int_equal(n_new, 0);
    assert_string_equal(rows.v[0].sandbox_id, "found");
    assert_int_equal(rows.v[0].state, SB_RUNNING);
    /* while its provisioning is at work, that says when it runs */
    s = ARR_PUSH(&rows);
    s->mark = xstrdup("mk2");
    s->state = SB_CREATING;
    s->pending = true;
    meta[0].v = LIT("mk2");
    l.sandbox_id = "second";
    struct listed both[] = {entry("found", "running"), l};
    apply(both, 2, 3000, false);
    assert_string_equal(rows.v[1].sandbox_id, "second");
    assert_int_equal(rows.v[1].state, SB_CREATING);
    assert_int_equal(rows.n, 2);
}

/* Words that are neither running nor paused: kept as they are, and the row is alive. */
static void test_odd_states(void **state)
{
    static const char *const words[] = {"pausing", "snapshotting", "resuming", "", NULL, "7"};
    static const char *const shown[] = {"pausing", "snapshotting", "resuming", "?", "?", "7"};
    (void)state;
    add_row("a", SB_RUNNING);
    struct sandbox *s = add_row("err", SB_ERROR);
    s->reason = xstrdup("the agent failed");
    struct listed l[] = {entry("a", "hibernating"), entry("err", "running")};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        l[0].state_text = words[i];
        apply(l, 2, 6000, false);
        assert_int_equal(rows.v[0].state, SB_RUNNING);
        assert_string_equal(rows.v[0].odd, shown[i]);
        assert_null(rows.v[0].reason);
    }
    assert_true(rows.v[1].state == SB_ERROR && rows.v[1].vm_up);
    assert_string_equal(rows.v[1].reason, "the agent failed");
    l[0].state_text = "running";
    assert_true(apply(l, 1, 7000, false) > 0);
    assert_null(rows.v[0].odd);
    apply(l, 1, 8000, false); /* the error's VM is gone, its text stays */
    assert_true(rows.v[1].state == SB_ERROR && !rows.v[1].vm_up);
    assert_string_equal(rows.v[1].reason, "the agent failed");
    assert_int_equal(apply(l, 1, 9000, false), 0);
}

/* Gone with time ahead is never called a timeout; run time ends at the last sighting. */
static void test_gone_early(void **state)
{
    (void)state;
    struct sandbox *s = add_row("early", SB_RUNNING);
    s->seen_at = 630000; /* 270 s before its end */
    apply(NULL, 0, 631000, false);
    apply(NULL, 0, 634000, false);
    assert_int_equal(rows.v[0].gone, GONE_EARLY);
    assert_int_equal(rows.v[0].ended_at, 630000);
    assert_int_equal(rows.v[0].end_at, 900000);
    for (int g = GONE_HERE; g <= GONE_EARLY; g++)
        assert_true((strstr(sb_gone_text((enum sb_gone)g), "time") != NULL) == (g == GONE_TIMEOUT));
}

/* A clock of this machine that is minutes ahead ends nobody's time. */
static void test_clock_unknown(void **state)
{
    struct reconcile_opts o = {.now = 900000 + 600000, .time_unknown = true};
    (void)state;
    add_row("a", SB_RUNNING);
    reconcile(&rows, NULL, 0, &o, told, NULL);
    assert_true(rows.v[0].state == SB_RUNNING && rows.v[0].unlisted);
    reconcile(&rows, NULL, 0, &o, told, NULL);
    assert_int_equal(rows.v[0].gone, GONE_ELSEWHERE); /* nor does it say that it was early */
    o.now = 600000;
    assert_int_equal(reconcile_why(&rows.v[0], &o), GONE_EARLY);
    o.now = 900000;
    o.time_unknown = false;
    assert_int_equal(reconcile_why(&rows.v[0], &o), GONE_TIMEOUT);
}

/* Two seconds are as near as the service's time is known: on this side of them it was early,
 * on that side its time was up, whether the list came before or after the very end. */
static void test_end_is_near(void **state)
{
    static const struct {
        int64_t left;
        enum sb_gone gone;
    } at[] = {{-600000, GONE_TIMEOUT}, {-6, GONE_TIMEOUT}, {0, GONE_TIMEOUT},
              {1999, GONE_TIMEOUT},    {2000, GONE_TIMEOUT}, {2001, GONE_EARLY},
              {60000, GONE_EARLY}};
    (void)state;
    add_row("a", SB_RUNNING);
    for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        struct reconcile_opts o = {.now = rows.v[0].end_at - at[i].left};
        assert_int_equal(reconcile_why(&rows.v[0], &o), at[i].gone);
    }
}

/* Its time was being set when it vanished: that is no kill of ours. */
static void test_gone_while_changed(void **state)
{
    (void)state;
    struct sandbox *s = add_row("a", SB_RUNNING);
    s->pending = s->changing = true;
    apply(NULL, 0, 6000, false);
    apply(NULL, 0, 8000, false);
    assert_int_equal(rows.v[0].gone, GONE_EARLY);
    assert_false(rows.v[0].pending || rows.v[0].changing);
}

/* Lists lack it, its id answers: it is not gone, and is looked up again a minute later. */
static void test_vouched(void **state)
{
    (void)state;
    add_row("a", SB_RUNNING);
    apply(NULL, 0, 6000, false);
    struct listed l = entry("a", "paused");
    reconcile_vouch(&rows.v[0], &l, 7000);
    assert_true(rows.v[0].unlisted && rows.v[0].state == SB_PAUSED);
    for (int64_t now = 8000; now < 67000; now += 3000)
        assert_int_equal(apply(NULL, 0, now, false), 0);
    assert_int_equal(apply(NULL, 0, 68000, false), 1);
    assert_true(rows.v[0].unlisted && !rows.v[0].vouched_at);
    apply(NULL, 0, 71000, false);
    assert_int_equal(rows.v[0].state, SB_KILLED);
    l.state_text = "running";
    assert_int_equal(apply(&l, 1, 80000, false), 1);
    assert_false(rows.v[0].unlisted);
}

/* The service's clock goes on by itself, whatever is done to the one of this machine. */
static void test_service_clock(void **state)
{
    struct server_clock c = {.server_ms = 5000000, .boot_ms = 1000};
    (void)state;
    assert_int_equal(server_clock_at(&c, 4000, 0), 5003000);
    assert_int_equal(server_clock_at(&c, 4000, 86400000), 5003000);
    c.server_ms = 0;
    assert_int_equal(server_clock_at(&c, 4000, 77), 77);
}

int main(void)
{
    thread_set_role(THREAD_MAIN);
#define R(f) cmocka_unit_test_setup_teardown(f, clear_rows, clear_rows)
    const struct CMUnitTest tests[] = {
        R(test_unknown_rows), R(test_what_it_is_made_of), R(test_absent), R(test_ends_known),
        R(test_suspicious_list),
        R(test_lost_create), R(test_odd_states), R(test_gone_early), R(test_clock_unknown),
        R(test_end_is_near), R(test_gone_while_changed), R(test_vouched),
        cmocka_unit_test(test_service_clock),
    };
    return cmocka_run_group_tests_name("reconcile", tests, NULL, NULL);
}
