/* What the recordings of pi do not hold: older and newer versions, refusals, output that is said
 * over and over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../lib/tape.h"

#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void run(struct tape *t, const char *tool, const char *text, int code, int sig)
{
    tape_run(t, agent_adapter_find(tool), text, strlen(text), 4096, code, sig, NULL);
}

#define PI_START "{\"type\":\"agent_start\"}\n"
#define PI_SETTLED "{\"type\":\"agent_settled\",\"aborted\":false}\n"

/* A turn that ends while a tool runs: how that ended nobody says any more. */
static void pi_ends_in_a_tool(void **state)
{
    struct tape t;
    const struct agent_event *ev;

    (void)state;
    run(&t, "pi",
        PI_START "{\"type\":\"tool_execution_start\",\"toolCallId\":\"c1\",\"toolName\":\"bash\","
                 "\"args\":{\"command\":\"sleep 9\"}}\n" PI_SETTLED,
        TAPE_NO_EXIT, 0);
    assert_int_equal(tape_count(&t, AGENT_TOOL), 2);
    ev = tape_find(&t, AGENT_TOOL, 0);
    assert_int_equal(ev->state, AGENT_TOOL_RUNNING);
    assert_string_equal(ev[1].id, ev->id);
    assert_int_equal(ev[1].state, AGENT_TOOL_UNKNOWN);
    assert_int_equal(tape_count(&t, AGENT_TURN_END), 1);
    tape_release(&t);
}

#define PI_ANSWER(stop, id)                                                                 \
    "{\"type\":\"message_start\",\"message\":{\"role\":\"assistant\"}}\n"                   \
    "{\"type\":\"message_update\",\"message\":{\"role\":\"assistant\",\"content\":[]},"     \
    "\"assistantMessageEvent\":{\"type\":\"text_delta\",\"contentIndex\":0,"                \
    "\"delta\":\"Hel\",\"partial\":{}}}\n"                                                  \
    "{\"type\":\"message_end\",\"message\":{\"role\":\"assistant\",\"content\":[{\"type\":" \
    "\"text\",\"text\":\"Hello\"}],\"usage\":{\"input\":10,\"output\":2,\"cacheRead\":3,"   \
    "\"cacheWrite\":1,\"cost\":{\"total\":0.5}},\"responseId\":\"" id                       \
    "\",\"stopReason\":\"" stop "\"}}\n"

/* An older pi has no agent_settled: agent_end, which then says nothing of a retry, is the
 * end. The same answer twice is counted once. */
static void pi_older(void **state)
{
    struct tape t;
    char *text;

    (void)state;
    run(&t, "pi-json",
        PI_START PI_ANSWER("stop", "m1") "{\"type\":\"agent_end\",\"messages\":[]}\n" PI_START
            PI_ANSWER("length", "m2") PI_ANSWER("length", "m2") "{\"type\":\"agent_end\"}\n",
        0, 0);
    assert_int_equal(tape_count(&t, AGENT_TURN_BEGIN), 2);
    assert_int_equal(tape_count(&t, AGENT_TURN_END), 2);
    assert_int_equal(tape_count(&t, AGENT_USAGE), 2);
    assert_int_equal(t.ev.v[t.ev.n - 2].outcome, AGENT_TRUNCATED);
    text = tape_texts(&t, AGENT_TEXT);
    assert_string_equal(text, "Hello|Hello|Hello");
    free(text);
    tape_release(&t);
    /* an answer that failed and is tried again is not the end */
    run(&t, "pi-json",
        PI_START PI_ANSWER("error",
                           "m1") "{\"type\":\"agent_end\",\"willRetry\":true}\n" PI_START
            PI_ANSWER("stop", "m2") "{\"type\":\"agent_end\",\"willRetry\":false}\n" PI_SETTLED,
        0, 0);
    assert_int_equal(tape_count(&t, AGENT_TURN_END), 1);
    assert_int_equal(tape_find(&t, AGENT_TURN_END, 0)->outcome, AGENT_OK);
    tape_release(&t);
}

/* Its last line repeats everything and can be over the limit. */
static void pi_end_too_long(void **state)
{
    static const char *const deltas[] = {"\"message\":{},", ""};
    char *big = xmalloc(LIM_LINE_BYTES + 1), *text;
    struct tape t;

    (void)state;
    memset(big, 'x', LIM_LINE_BYTES);
    big[LIM_LINE_BYTES] = 0;
    for (size_t i = 0; i < 2; i++) {
        text = xasprintf(PI_START "{\"type\":\"message_update\",%s\"assistantMessageEvent\":"
                                  "{\"type\":\"text_delta\",\"delta\":\"a\"}}\n"
                                  "{\"type\":\"agent_end\",\"messages\":[\"%s\"]}\n"
                                  "{\"type\":\"turn_end\",\"x\":\"%s\"}\n",
                         deltas[i], big, big);
        run(&t, "pi", text, TAPE_NO_EXIT, 0);
        assert_int_equal(tape_count(&t, AGENT_TURN_END), i == 0 ? 1 : 0);
        assert_int_equal(tape_count(&t, AGENT_NOTICE), 1);
        tape_release(&t);
        free(text);
    }
    free(big);
}

static void pi_refusals(void **state)
{
    struct tape t;
    const struct agent_event *ev;

    (void)state;
    run(&t, "pi",
        "{\"type\":\"response\",\"command\":\"parse\",\"success\":false,\"error\":\"bad\"}\n"
        "{\"type\":\"response\",\"command\":\"prompt\",\"success\":false,\"error\":"
        "\"No API key found for anthropic\"}\n" PI_START
        "{\"type\":\"response\",\"command\":\"prompt\",\"success\":false,\"error\":"
        "\"Agent is already processing\"}\n" PI_SETTLED
        "{\"type\":\"response\",\"command\":\"prompt\",\"success\":true,\"data\":"
        "{\"disposition\":\"handled\"}}\n"
        "{\"type\":\"response\",\"command\":\"get_state\",\"success\":true,\"data\":"
        "{\"sessionId\":\"s1\",\"model\":{\"id\":\"m\"}}}\n",
        TAPE_NO_EXIT, 0);
    ev = tape_find(&t, AGENT_NOTICE, 0);
    assert_string_equal(ev->text, "the agent refused \"parse\": bad");
    ev = tape_find(&t, AGENT_TURN_END, 0);
    assert_int_equal(ev->outcome, AGENT_FAILED);
    assert_int_equal(ev->error_class, AGENT_ERR_AUTH);
    assert_int_equal(tape_count(&t, AGENT_NOTICE), 2); /* busy: the turn goes on */
    assert_int_equal(tape_count(&t, AGENT_TURN_END), 3);
    assert_string_equal(tape_find(&t, AGENT_SESSION, 0)->id, "s1");
    tape_release(&t);
}

/* Each update says all of the output: what goes out must not be the square of it. */
static void pi_output_is_bounded(void **state)
{
    struct buf in = BUF_INIT, text = BUF_INIT;
    struct tape t;
    size_t out = 0;

    (void)state;
    buf_adds(&in, PI_START "{\"type\":\"tool_execution_start\",\"toolCallId\":\"c\","
                           "\"toolName\":\"bash\",\"args\":{\"command\":\"seq\"}}\n");
    for (int i = 0; i < 2000; i++) {
        buf_addf(&text, "line %d of a listing\\n", i);
        buf_addf(&in,
                 "{\"type\":\"tool_execution_update\",\"toolCallId\":\"c\",\"partialResult\":"
                 "{\"content\":[{\"type\":\"text\",\"text\":\"%s\"}]}}\n",
                 buf_str(&text));
    }
    buf_addf(&in,
             "{\"type\":\"tool_execution_end\",\"toolCallId\":\"c\",\"result\":{\"content\":"
             "[{\"type\":\"text\",\"text\":\"%s\"}]},\"isError\":false}\n",
             buf_str(&text));
    tape_run(&t, agent_adapter_find("pi"), in.p, in.len, 65536, TAPE_NO_EXIT, 0, NULL);
    for (size_t i = 0; i < t.ev.n; i++)
        out += t.ev.v[i].output ? strlen(t.ev.v[i].output) : 0;
    assert_true(out < 20 * text.len);
    assert_true(tape_count(&t, AGENT_TOOL) > 20);
    assert_int_equal(strlen(t.ev.v[t.ev.n - 1].output), text.len - 2000);
    tape_release(&t);
    buf_release(&in);
    buf_release(&text);
}

/* A call at work is known until it ends, however many begin and end meanwhile. */
static void pi_long_call(void **state)
{
    struct buf in = BUF_INIT;
    const struct agent_event *last;
    struct tape t;

    (void)state;
    buf_adds(&in, PI_START "{\"type\":\"tool_execution_start\",\"toolCallId\":\"long\","
                           "\"toolName\":\"bash\",\"args\":{\"command\":\"make\"}}\n");
    for (int i = 0; i < 1500; i++)
        buf_addf(&in,
                 "{\"type\":\"tool_execution_start\",\"toolCallId\":\"c%d\",\"toolName\":\"read\","
                 "\"args\":{\"path\":\"f\"}}\n{\"type\":\"tool_execution_end\",\"toolCallId\":\"c%d\","
                 "\"result\":{\"content\":[]},\"isError\":false}\n",
                 i, i);
    buf_adds(&in, "{\"type\":\"tool_execution_end\",\"toolCallId\":\"long\",\"result\":"
                  "{\"content\":[{\"type\":\"text\",\"text\":\"built\"}]},\"isError\":false}\n");
    tape_run(&t, agent_adapter_find("pi"), in.p, in.len, 65536, TAPE_NO_EXIT, 0, NULL);
    last = &t.ev.v[t.ev.n - 1];
    assert_string_equal(last->id, "long");
    assert_string_equal(last->name, "bash");
    assert_string_equal(last->output, "built");
    tape_release(&t);
    buf_release(&in);
}

/* A kind of block that nobody knew: a message of ours is known again all the same. */
static void pi_new_blocks(void **state)
{
    static const char line[] =
        "{\"type\":\"message_start\",\"message\":{\"role\":\"user\",\"content\":["
        "{\"type\":\"hologram\",\"text\":\"no words of yours\"},{\"type\":\"text\",\"text\":"
        "\"two\"},{\"type\":\"image\",\"data\":\"AA==\"},{\"type\":\"text\",\"text\":\"words\"}]}}\n";
    struct tape t;

    (void)state;
    run(&t, "pi-json", line, 0, 0);
    assert_int_equal(tape_count(&t, AGENT_USER_ECHO), 1);
    assert_string_equal(tape_find(&t, AGENT_USER_ECHO, 0)->text, "two\nwords");
    tape_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pi_ends_in_a_tool),
        cmocka_unit_test(pi_older),
        cmocka_unit_test(pi_refusals),
        cmocka_unit_test(pi_output_is_bounded),
        cmocka_unit_test(pi_long_call),
        cmocka_unit_test(pi_end_too_long),
        cmocka_unit_test(pi_new_blocks),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
