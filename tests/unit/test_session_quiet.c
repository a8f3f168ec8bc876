/* What a session adds to what its agent says: that it says nothing for long, and what its
 * tokens cost. */
#include "../../src/jobs/session_follow.h"
#include "../../src/jobs/session_out.h"
#include "../../src/jobs/session_priv.h"
#include "../lib/jobsbed.h"
#include "../lib/tmpdir.h"

#include <cct/config/models.h>
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

static int setup(void **state)
{
    (void)state;
    return tmpdir_make(root, sizeof(root), "quiet");
}

static int teardown(void **state)
{
    (void)state;
    return tmpdir_remove(root);
}

struct work {
    struct jobsbed *b;
    uint64_t row;
    bool quiet; /* wanted */
    enum sb_agent agent;
};

static void do_agent(void *ctx)
{
    struct work *w = ctx;

    session_agent(session_of(&w->b->j, w->row), w->agent);
}

static void do_output(void *ctx)
{
    struct work *w = ctx;

    session_quiet_heard(session_of(&w->b->j, w->row));
}

static bool is_quiet(void *ctx)
{
    struct work *w = ctx;
    const struct sandbox *r = model_sandbox(w->b->model, w->row);

    return r && r->agent == w->agent && (r->quiet_since != 0) == w->quiet;
}

static void silence_is_told(void **state)
{
    char *dir = xasprintf("%s/quiet", root);
    struct work w = {.b = jobsbed_new(dir, "a", NULL), .agent = AG_WORKING, .quiet = true};
    (void)state;

    w.b->j.o.quiet_ms = 30;
    w.row = jobsbed_row(w.b, "opencode", "isb1");
    jobsbed_run(w.b, do_agent, &w);
    assert_true(jobsbed_wait(w.b, is_quiet, &w, WAIT_MS));
    w.b->j.o.quiet_ms = 1000000;
    w.quiet = false;
    jobsbed_run(w.b, do_output, &w);
    assert_true(jobsbed_wait(w.b, is_quiet, &w, WAIT_MS));
    /* one that waits for the user is not silent */
    w.b->j.o.quiet_ms = 1;
    w.agent = AG_IDLE;
    jobsbed_run(w.b, do_agent, &w);
    assert_true(jobsbed_wait(w.b, is_quiet, &w, WAIT_MS));
    jobsbed_free(w.b);
    free(dir);
}

struct price {
    struct jobsbed *b;
    uint64_t row;
    const char *chosen, *said; /* by the user, by the agent */
    double cost;
};

static void do_price(void *ctx)
{
    struct price *p = ctx;
    struct session *s = session_of(&p->b->j, p->row);
    struct agent_event ev = AGENT_EVENT(AGENT_USAGE), hello = AGENT_EVENT(AGENT_SESSION);

    s->fo.p.model = p->chosen ? xstrdup(p->chosen) : NULL;
    hello.name = (char *)p->said;
    session_out_session(s, &hello);
    ev.in_tokens = 1000000;
    ev.cost_usd = p->cost;
    session_price(s, &ev);
    p->cost = ev.cost_usd;
    free(s->fo.p.model);
    s->fo.p.model = NULL;
}

static double price(struct price *p, const char *chosen, const char *said, double cost)
{
    p->chosen = chosen;
    p->said = said;
    p->cost = cost;
    jobsbed_run(p->b, do_price, p);
    return p->cost;
}

static void tokens_are_priced(void **state)
{
    char *dir = xasprintf("%s/price", root);
    struct models *m = models_new();
    struct price p = {.b = jobsbed_new(dir, "a", NULL)};
    (void)state;

    p.row = jobsbed_row(p.b, "codex", NULL);
    assert_true(isnan(price(&p, NULL, NULL, (double)NAN))); /* no prices known at all */
    p.b->j.o.models = m;
    assert_true(fabs(price(&p, NULL, NULL, (double)NAN) - 2) < 1e-9); /* the tool's own model */
    assert_true(fabs(price(&p, "gpt-5", NULL, (double)NAN) - 1.25) < 1e-9);
    assert_true(isnan(price(&p, "nobody-knows-it", NULL, (double)NAN)));
    assert_true(fabs(price(&p, "gpt-5", NULL, 0.5) - 0.5) < 1e-9); /* the agent knows best */
    assert_true(fabs(price(&p, "gpt-5", "gpt-6.2-astra", (double)NAN) - 8) < 1e-9);
    jobsbed_free(p.b);
    models_free(m);
    free(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silence_is_told),
        cmocka_unit_test(tokens_are_priced),
    };

    return cmocka_run_group_tests_name("session_quiet", tests, setup, teardown);
}
