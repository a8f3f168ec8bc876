/* An agent that asks very many questions at once: each is known once, told in the order
 * they came, and ends; what it costs grows with their number, not with its square. */
#include "../../src/jobs/session_ask.h"
#include "../../src/jobs/session_follow.h"
#include "../../src/jobs/session_out.h"
#include "../../src/jobs/session_priv.h"
#include "../lib/jobsbed.h"

#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WAIT_MS 20000
#define FLOOD 2000

struct work {
    struct jobsbed *b;
    uint64_t row, from;
    const char *text, *tool;
    size_t want, got;
    bool opened, read;
};

/* --- on the net thread ------------------------------------------------------------ */

static void opened(struct session *s)
{
    s->out.caught_up = true;
    session_ask_ready(s);
}

static void do_open(void *ctx)
{
    struct work *w = ctx;

    session_open(session_of(&w->b->j, w->row), 1, opened);
}

/* As it comes from the sandbox: in pieces of some kilobytes. */
static void do_feed(void *ctx)
{
    struct work *w = ctx;
    struct session *s = session_of(&w->b->j, w->row);
    size_t len = strlen(w->text);

    for (size_t n, at = 0; at < len; at += n) {
        n = len - at < 4096 ? len - at : 4096;
        session_out_feed(s, w->text + at, n);
    }
}

/* --- what the screen holds ---------------------------------------------------------- */

static bool known(void *ctx)
{
    struct work *w = ctx;

    return model_asks_known(w->b->model, w->row);
}

static bool open_are(void *ctx)
{
    struct work *w = ctx;

    return w->b->model->n_asks == w->want;
}

static bool agent_is(void *ctx)
{
    struct work *w = ctx;
    const struct sandbox *r = model_sandbox(w->b->model, w->row);

    return r && (size_t)r->agent == w->want;
}

static struct work start(const char *tool)
{
    struct work w = {.b = jobsbed_new(NULL, "a", NULL), .tool = tool};

    w.row = jobsbed_row(w.b, tool, "i1");
    jobsbed_run(w.b, do_open, &w);
    assert_true(jobsbed_wait(w.b, known, &w, WAIT_MS));
    return w;
}

static void feed(struct work *w, struct buf *text)
{
    w->text = buf_str(text);
    jobsbed_run(w->b, do_feed, w);
    buf_clear(text);
}

static void await(struct work *w, bool (*fn)(void *ctx), size_t want)
{
    w->want = want;
    if (!jobsbed_wait(w->b, fn, w, WAIT_MS))
        fail_msg("%s: wanted %zu, %zu are asked, its agent is %d", w->tool, want, w->b->model->n_asks, model_sandbox(w->b->model, w->row) ? (int)model_sandbox(w->b->model, w->row)->agent : -1);
}

/* --- what the agents print ---------------------------------------------------------- */

static void claude_turn(struct buf *b)
{
    buf_adds(b, "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s\"}\n");
}

static void claude_asks(struct buf *b, int i)
{
    buf_addf(b, "{\"type\":\"control_request\",\"request_id\":\"r%d\",\"request\":{\"subtype\":"
             "\"can_use_tool\",\"tool_name\":\"Bash\",\"tool_use_id\":\"u%d\",\"input\":{"
             "\"command\":\"echo %d\",\"why\":\"because\"}}}\n", i, i, i);
}

static void claude_answered(struct buf *b, int i)
{
    buf_addf(b, "{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\","
             "\"request_id\":\"r%d\",\"response\":{\"behavior\":\"allow\"}}}\n", i);
}

static void claude_end(struct buf *b)
{
    buf_adds(b, "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false}\n");
}

static void opencode_turn(struct buf *b)
{
    buf_adds(b, "{\"type\":\"session.status\",\"properties\":{\"sessionID\":\"s\",\"status\":{"
             "\"type\":\"busy\"}}}\n");
}

static void opencode_asks(struct buf *b, int i)
{
    buf_addf(b, "{\"type\":\"permission.asked\",\"properties\":{\"id\":\"r%d\",\"sessionID\":"
             "\"s\",\"permission\":\"bash\",\"metadata\":{\"command\":\"echo %d\","
             "\"why\":\"because\"}}}\n", i, i);
}

static void opencode_answered(struct buf *b, int i)
{
    buf_addf(b, "{\"type\":\"permission.replied\",\"properties\":{\"sessionID\":\"s\","
             "\"requestID\":\"r%d\",\"reply\":\"once\"}}\n", i);
}

static void opencode_end(struct buf *b)
{
    buf_adds(b, "{\"type\":\"session.idle\",\"properties\":{\"sessionID\":\"s\"}}\n");
}

static void pi_turn(struct buf *b)
{
    buf_adds(b, "{\"type\":\"agent_start\"}\n");
}

static void pi_asks(struct buf *b, int i)
{
    buf_addf(b, "{\"type\":\"extension_ui_request\",\"id\":\"r%d\",\"method\":\"confirm\","
             "\"title\":\"echo %d\",\"message\":\"because\"}\n", i, i);
}

static void pi_end(struct buf *b)
{
    buf_adds(b, "{\"type\":\"agent_settled\"}\n");
}

static const struct agent {
    const char *tool;
    void (*turn)(struct buf *b), (*asks)(struct buf *b, int i), (*answered)(struct buf *b, int i);
    void (*end)(struct buf *b);
} agents[] = {
    {"claude", claude_turn, claude_asks, claude_answered, claude_end},
    {"opencode-serve", opencode_turn, opencode_asks, opencode_answered, opencode_end},
    {"pi", pi_turn, pi_asks, NULL, pi_end},
};
#define AGENTS (sizeof(agents) / sizeof(agents[0]))

/* --- tests -------------------------------------------------------------------------- */

static void flood(const struct agent *a, int n)
{
    struct work w = start(a->tool);
    struct buf text = BUF_INIT;
    uint64_t told = w.b->model->asks_rev;
    int64_t since = clock_mono_ms();

    a->turn(&text);
    for (int i = 1; i <= n; i++)
        a->asks(&text, i);
    feed(&w, &text);
    await(&w, agent_is, AG_ASKS);
    await(&w, open_are, 100);
    printf("# %s: %d questions in %d ms, told %d times\n", a->tool, n,
           (int)(clock_mono_ms() - since), (int)(w.b->model->asks_rev - told));
    assert_true(w.b->model->asks_rev - told <= (uint64_t)n / 10);
    assert_string_equal(w.b->model->asks[0].id, "r1"); /* the agent waits for all of them */
    for (int i = 1; a->answered && i <= n - 2; i++)
        a->answered(&text, i);
    if (a->answered) {
        feed(&w, &text);
        await(&w, open_are, 2);
        await(&w, agent_is, AG_ASKS);
        assert_true(str_starts(w.b->model->asks[1].id, "r"));
        assert_int_equal(atoi(w.b->model->asks[1].id + 1), n);
        a->answered(&text, n);
        a->answered(&text, n - 1);
        feed(&w, &text);
        await(&w, agent_is, AG_WORKING);
    }
    a->end(&text); /* nothing is asked behind it, whatever was */
    feed(&w, &text);
    await(&w, open_are, 0);
    await(&w, agent_is, AG_IDLE);
    a->turn(&text);
    feed(&w, &text);
    await(&w, agent_is, AG_WORKING);
    buf_release(&text);
    jobsbed_free(w.b);
}

static void many_questions(void **state)
{
    (void)state;
    for (size_t i = 0; i < AGENTS; i++)
        flood(&agents[i], FLOOD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_questions),
    };
    struct err e = {0};

    if (secrets_init(&e) != 0)
        return 1;
    cmocka_set_test_filter(getenv("CCT_ONLY"));
    return cmocka_run_group_tests_name("session_asks", tests, NULL, NULL);
}
