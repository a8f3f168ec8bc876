/* What agents say of usage, added up: nothing twice, nothing below zero. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cct/agent.h>
#include <cct/model/usage_sum.h>
#include <math.h>

static void use(struct usage_sum *u, const char *id, int64_t in, double cost)
{
    struct agent_event ev = AGENT_EVENT(AGENT_USAGE);
    struct usage g;

    ev.id = (char *)id;
    ev.scope = id ? AGENT_SCOPE_SESSION_TOTAL : AGENT_SCOPE_TURN;
    ev.in_tokens = in;
    ev.out_tokens = 1;
    ev.cost_usd = cost;
    g = usage_sum_growth(u, &ev);
    usage_sum_add(u, &g);
}

static void ends(struct usage_sum *u, const char *role)
{
    struct agent_event ev = AGENT_EVENT(AGENT_EXIT);

    ev.role = (char *)role;
    usage_sum_growth(u, &ev);
}

static void deltas_add(void **state)
{
    struct usage_sum u;
    (void)state;

    usage_sum_init(&u);
    assert_true(isnan(u.all.cost_usd));
    use(&u, NULL, 10, (double)NAN);
    assert_true(isnan(u.all.cost_usd));
    use(&u, NULL, 10, 0.25);
    use(&u, NULL, 5, 0.5);
    assert_int_equal(u.all.in_tokens, 25);
    assert_int_equal(u.all.out_tokens, 3);
    assert_true(fabs(u.all.cost_usd - 0.75) < 1e-12);
    usage_sum_release(&u);
}

/* A thread that is resumed counts on; the same total twice is no news; one that went back
 * is not counted again; another thread has its own. */
static void totals_grow(void **state)
{
    struct usage_sum u;
    (void)state;

    usage_sum_init(&u);
    use(&u, "t1", 1148, (double)NAN);
    use(&u, "t1", 2370, (double)NAN);
    use(&u, "t1", 2370, (double)NAN);
    ends(&u, NULL);
    use(&u, "t1", 5036, (double)NAN);
    assert_int_equal(u.all.in_tokens, 5036);
    assert_int_equal(u.all.out_tokens, 1);
    use(&u, "t1", 3000, (double)NAN);
    use(&u, "t1", 5040, (double)NAN);
    use(&u, "t2", 100, (double)NAN);
    assert_int_equal(u.all.in_tokens, 5140);
    assert_true(isnan(u.all.cost_usd));
    usage_sum_release(&u);
}

/* Of a process: the next one begins at nothing, another role's goes on. */
static void totals_of_a_process(void **state)
{
    struct usage_sum u;
    (void)state;

    usage_sum_init(&u);
    use(&u, AGENT_PROCESS_TOTAL, 0, 0.25);
    use(&u, AGENT_PROCESS_TOTAL, 0, 0.75);
    ends(&u, "checker");
    use(&u, AGENT_PROCESS_TOTAL, 0, 1.0);
    assert_true(fabs(u.all.cost_usd - 1.0) < 1e-12);
    ends(&u, NULL);
    use(&u, AGENT_PROCESS_TOTAL, 0, 0.5);
    assert_true(fabs(u.all.cost_usd - 1.5) < 1e-12);
    usage_sum_release(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deltas_add),
        cmocka_unit_test(totals_grow),
        cmocka_unit_test(totals_of_a_process),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
