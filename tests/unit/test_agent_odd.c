/* What no agent is known to print: lines of which most is missing, errors of another turn,
 * numbers beyond all bounds. Nothing of it ends the program or is taken for something else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../lib/tape.h"

#include <stdlib.h>
#include <string.h>

static void run(struct tape *t, const char *adapter, const char *text, int code)
{
    tape_run(t, agent_adapter_find(adapter), text, strlen(text), 4096, code, 0, NULL);
}

/* Lines that have their type and nothing else: no item, no message, no error. */
static void hollow_lines(void **state)
{
    static const char *const shapes[] = {"{\"type\":\"%s\"}\n",
                                         "{\"type\":\"item.completed\",\"item\":"
                                         "{\"type\":\"%s\"}}\n",
                                         "{\"type\":\"message.part.updated\",\"properties\":"
                                         "{\"part\":{\"type\":\"%s\",\"id\":\"p\"}}}\n",
                                         "{\"type\":\"tool_use\",\"part\":{\"callID\":\"%s\"}}\n"};
    static const char *const types[] = {
        "system", "assistant", "user", "result", "stream_event", "control_request",
        "control_response", "thread.started", "turn.started", "turn.completed", "turn.failed",
        "item.started", "item.completed", "error", "step_start", "step_finish", "tool_use",
        "text", "tool", "session", "agent_start", "message_start", "message_update",
        "message_end", "tool_execution_start", "tool_execution_update", "tool_execution_end",
        "agent_end", "agent_settled", "auto_retry_start", "response", "extension_ui_request",
        "init", "message", "tool_result", "command_execution", "file_change", "mcp_tool_call",
        "web_search", "todo_list", "reasoning", "agent_message", "message.updated",
        "session.error", "session.idle", "permission.asked", "question.asked"};
    const struct agent_adapter *a;

    (void)state;
    for (size_t k = 0; (a = agent_adapter_at(k)); k++) {
        struct buf b = BUF_INIT;
        struct tape t;

        for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
            for (size_t n = 0; n < sizeof(types) / sizeof(types[0]); n++) {
                const char *at = strstr(shapes[i], "%s");

                buf_addf(&b, "%.*s%s%s", (int)(at - shapes[i]), shapes[i], types[n], at + 2);
            }
        run(&t, a->name, buf_str(&b), 0);
        assert_int_equal(tape_count(&t, AGENT_EXIT), 1);
        tape_release(&t);
        buf_release(&b);
    }
}

/* The words of an error are of the turn that it was told in. */
static void errors_of_their_turn(void **state)
{
    static const char *const streams[][2] = {
        {"codex", "{\"type\":\"error\",\"message\":\"no such host as this one\"}\n"
                  "{\"type\":\"turn.failed\"}\n{\"type\":\"turn.failed\"}\n"},
        {"gemini", "{\"type\":\"error\",\"severity\":\"error\",\"message\":"
                   "\"no such host as this one\"}\n{\"type\":\"result\",\"status\":\"error\"}\n"
                   "{\"type\":\"result\",\"status\":\"error\"}\n"}};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const struct agent_event *ev;
        struct tape t;

        run(&t, streams[i][0], streams[i][1], TAPE_NO_EXIT);
        assert_int_equal(tape_count(&t, AGENT_TURN_END), 2);
        ev = tape_find(&t, AGENT_TURN_END, 0);
        assert_string_equal(ev->text, "no such host as this one");
        assert_string_equal(t.ev.v[t.ev.n - 1].text, "the turn failed");
        tape_release(&t);
    }
}

/* Numbers of blocks that no message has. */
static void blocks_beyond_all(void **state)
{
    struct tape t;
    char *text;

    (void)state;
    run(&t, "claude",
        "{\"type\":\"stream_event\",\"event\":{\"type\":\"content_block_stop\","
        "\"index\":2147483646}}\n"
        "{\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"content\":[{\"type\":\"text\","
        "\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]}}\n"
        "{\"type\":\"stream_event\",\"event\":{\"type\":\"content_block_stop\","
        "\"index\":2147483646}}\n"
        "{\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"content\":[{\"type\":\"text\","
        "\"text\":\"c\"}]}}\n",
        TAPE_NO_EXIT);
    text = tape_texts(&t, AGENT_TEXT);
    assert_string_equal(text, "a|b|c");
    assert_string_equal(t.ev.v[2].id, "m:2");
    free(text);
    tape_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hollow_lines),
        cmocka_unit_test(errors_of_their_turn),
        cmocka_unit_test(blocks_beyond_all),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
