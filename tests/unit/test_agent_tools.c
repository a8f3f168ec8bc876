/* What the recordings do not hold: lines that go in, questions, a server's aborts, what no version
 * said yet, keys in the words of errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../lib/tape.h"

#include <cct/util/json.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void ended(struct tape *t, const char *tool, const char *text, int code, int sig,
                  const char *stderr_tail)
{
    tape_run(t, agent_adapter_find(tool), text, strlen(text), 4096, code, sig, stderr_tail);
}

static void run(struct tape *t, const char *tool, const char *text, int code, int sig)
{
    ended(t, tool, text, code, sig, NULL);
}

/* --- lines that go in -------------------------------------------------------------------- */

static void one_line(const char *tool, const char *want)
{
    const struct agent_adapter *a = agent_adapter_find(tool);
    static const char text[] = "say \"hi\"\nand \x01 bye";
    struct buf b = BUF_INIT;
    struct err e = {0};
    char *big = xmalloc(LIM_MESSAGE_BYTES + 1);

    assert_int_equal(a->encode_message(text, strlen(text), &b, &e), 0);
    assert_string_equal(buf_str(&b), want);
    buf_clear(&b);
    memset(big, 'x', LIM_MESSAGE_BYTES + 1);
    assert_int_equal(a->encode_message("", 0, &b, &e), ERR_INVALID);
    assert_int_equal(a->encode_message(big, LIM_MESSAGE_BYTES + 1, &b, &e), ERR_LIMIT);
    assert_int_equal(b.len, 0);
    assert_int_equal(a->encode_message(big, LIM_MESSAGE_BYTES, &b, &e), 0);
    free(big);
    buf_release(&b);
}

static void messages(void **state)
{
    static const char *const plain[] = {"codex", "opencode", "pi-json", "gemini", "qwen"};
    struct buf b = BUF_INIT;

    (void)state;
    for (size_t i = 0; i < 5; i++) {
        one_line(plain[i], "say \"hi\"\nand \x01 bye");
        assert_int_equal(agent_adapter_find(plain[i])->mode, AGENT_ONE_RUN);
        assert_null(agent_adapter_find(plain[i])->encode_interrupt);
    }
    one_line("pi",
             "{\"id\":\"prompt\",\"type\":\"prompt\",\"message\":"
             "\"say \\\"hi\\\"\\nand \\u0001 bye\",\"streamingBehavior\":\"followUp\"}\n");
    one_line(
        "opencode-serve",
        "{\"method\":\"POST\",\"path\":\"/session/{session}/prompt_async\",\"body\":"
        "{\"parts\":[{\"type\":\"text\",\"text\":\"say \\\"hi\\\"\\nand \\u0001 bye\"}]}}\n");
    assert_int_equal(agent_adapter_find("pi")->encode_steer("x", 1, &b, NULL), 0);
    assert_int_equal(agent_adapter_find("pi")->encode_interrupt("i1", &b), 0);
    assert_int_equal(agent_adapter_find("opencode-serve")->encode_interrupt("i1", &b), 0);
    assert_string_equal(buf_str(&b),
                        "{\"id\":\"steer\",\"type\":\"steer\",\"message\":\"x\"}\n"
                        "{\"id\":\"i1\",\"type\":\"abort\"}\n"
                        "{\"method\":\"POST\",\"path\":\"/session/{session}/abort\","
                        "\"body\":{}}\n");
    buf_release(&b);
}

/* --- questions ---------------------------------------------------------------------------- */

static void answer(const struct agent_event *ask, const char *tool, int choice,
                   const char *text, const char *want)
{
    struct agent_answer a = {.ask_id = ask->id,
                             .tool = ask->name,
                             .input = ask->input,
                             .choice = choice,
                             .text = text};
    struct buf b = BUF_INIT;
    struct err e = {0};
    int rc = agent_adapter_find(tool)->encode_answer(&a, &b, &e);

    assert_int_equal(rc, want ? 0 : ERR_INVALID);
    assert_string_equal(buf_str(&b), want ? want : "");
    if (!want)
        assert_true(strlen(e.text) > 20);
    buf_release(&b);
}

#define PI_START "{\"type\":\"agent_start\"}\n"
#define PI_SETTLED "{\"type\":\"agent_settled\",\"aborted\":false}\n"

static void pi_questions(void **state)
{
    struct tape t;
    const struct agent_event *ev;

    (void)state;
    run(&t, "pi",
        PI_START "{\"type\":\"extension_ui_request\",\"id\":\"q1\",\"method\":\"select\","
                 "\"title\":\"Which?\",\"options\":[\"one\",\"two\\nlines\"]}\n"
                 "{\"type\":\"extension_ui_request\",\"id\":\"q2\",\"method\":\"confirm\","
                 "\"title\":\"Sure\",\"message\":\"really?\"}\n"
                 "{\"type\":\"extension_ui_request\",\"id\":\"q3\",\"method\":\"input\","
                 "\"title\":\"Name\"}\n"
                 "{\"type\":\"extension_ui_request\",\"id\":\"q4\",\"method\":\"setStatus\"}\n"
                 "{\"type\":\"extension_ui_request\",\"id\":\"q5\",\"method\":\"notify\","
                 "\"message\":\"look\",\"notifyType\":\"error\"}\n" PI_SETTLED,
        TAPE_NO_EXIT, 0);
    assert_int_equal(tape_count(&t, AGENT_ASK), 6); /* three, each begun and ended */
    ev = tape_find(&t, AGENT_ASK, 0);
    assert_string_equal(ev->choices, "one\ntwo…");
    answer(ev, "pi", 1, NULL,
           "{\"type\":\"extension_ui_response\",\"id\":\"q1\",\"value\":\"two\\nlines\"}\n");
    answer(ev, "pi", 2, NULL, NULL);
    ev++;
    assert_string_equal(ev->title, "Sure: really?");
    assert_string_equal(ev->choices, "Yes\nNo");
    answer(ev, "pi", 1, NULL,
           "{\"type\":\"extension_ui_response\",\"id\":\"q2\",\"confirmed\":false}\n");
    answer(ev, "pi", -1, "hm", NULL);
    ev++;
    assert_null(ev->choices);
    answer(ev, "pi", -1, "Ada",
           "{\"type\":\"extension_ui_response\",\"id\":\"q3\",\"value\":\"Ada\"}\n");
    ev = tape_find(&t, AGENT_NOTICE, 0);
    assert_int_equal(ev->level, AGENT_ERROR);
    for (size_t i = 0, n = 0; i < t.ev.n; i++)
        if (t.ev.v[i].kind == AGENT_ASK)
            assert_int_equal(t.ev.v[i].final, n++ >= 3);
    tape_release(&t);
}

#define SERVE(type, props) "{\"id\":\"e\",\"type\":\"" type "\",\"properties\":{" props "}}\n"
#define MAIN "\"sessionID\":\"ses_1\""

static void serve_questions(void **state)
{
    struct tape t;
    const struct agent_event *ev;

    (void)state;
    run(&t, "opencode-serve",
        SERVE("session.created", "\"info\":{\"id\":\"ses_1\"}")
            SERVE("session.status", MAIN ",\"status\":{\"type\":\"busy\"}")
                SERVE("permission.asked",
                      MAIN ",\"id\":\"per_1\",\"permission\":\"bash\",\"patterns\":"
                           "[\"rm *\",\"ls\"],\"metadata\":{}")
                    SERVE("permission.asked", MAIN ",\"id\":\"per_2\",\"permission\":\"edit\","
                                                   "\"metadata\":{\"filePath\":\"/a\"}")
                        SERVE("question.asked",
                              MAIN ",\"id\":\"que_1\",\"questions\":[{\"question\":\"Which?\","
                                   "\"options\":[{\"label\":\"a\"},{\"label\":\"b\"}]}]")
                            SERVE("permission.replied",
                                  MAIN ",\"requestID\":\"per_1\",\"reply\":\"always\"")
                                SERVE("permission.replied",
                                      MAIN ",\"requestID\":\"per_9\",\"reply\":\"always\"")
                                    SERVE("session.idle", MAIN) SERVE("session.idle", MAIN),
        TAPE_NO_EXIT, 0);
    assert_int_equal(tape_count(&t, AGENT_ASK), 6);
    assert_int_equal(tape_count(&t, AGENT_TURN_END), 1);
    ev = tape_find(&t, AGENT_ASK, 0);
    assert_string_equal(ev->name, "bash");
    assert_string_equal(ev->title, "rm *, ls");
    assert_string_equal(ev->choices, "yes\nyes, and do not ask again\nno");
    answer(ev, "opencode-serve", 0, NULL,
           "{\"method\":\"POST\",\"path\":\"/permission/per_1/reply\",\"body\":"
           "{\"reply\":\"once\"}}\n");
    answer(ev, "opencode-serve", -1, "use ls",
           "{\"method\":\"POST\",\"path\":\"/permission/per_1/reply\",\"body\":"
           "{\"reply\":\"reject\",\"message\":\"use ls\"}}\n");
    answer(ev, "opencode-serve", 3, NULL, NULL);
    ev++;
    assert_string_equal(ev->title, "/a");
    ev++;
    assert_string_equal(ev->choices, "a\nb");
    answer(ev, "opencode-serve", 0, NULL,
           "{\"method\":\"POST\",\"path\":\"/question/que_1/reply\",\"body\":"
           "{\"answers\":[[\"a\"]]}}\n");
    answer(ev, "opencode-serve", 1, NULL,
           "{\"method\":\"POST\",\"path\":\"/question/que_1/reply\",\"body\":"
           "{\"answers\":[[\"b\"]]}}\n");
    answer(ev, "opencode-serve", 2, NULL, NULL);
    answer(ev, "opencode-serve", -1, "neither",
           "{\"method\":\"POST\",\"path\":\"/question/que_1/reply\",\"body\":"
           "{\"answers\":[[\"neither\"]]}}\n");
    answer(ev, "opencode-serve", -1, " ", NULL);
    ev++;
    assert_true(ev->final);
    assert_string_equal(ev->text, "yes, and do not ask again");
    tape_release(&t);
    /* an id that would lead elsewhere */
    run(&t, "opencode-serve",
        SERVE("permission.asked", MAIN ",\"id\":\"../x\",\"permission\":\"bash\""),
        TAPE_NO_EXIT, 0);
    answer(tape_find(&t, AGENT_ASK, 0), "opencode-serve", 0, NULL, NULL);
    tape_release(&t);
}

/* Several questions at once: typed, a line for each; a choice would say of which nothing. */
static void serve_several_questions(void **state)
{
    struct tape t;
    const struct agent_event *ev;

    (void)state;
    run(&t, "opencode-serve",
        SERVE("session.created", "\"info\":{\"id\":\"ses_1\"}")
            SERVE("session.status", MAIN ",\"status\":{\"type\":\"busy\"}")
                SERVE("question.asked",
                      MAIN ",\"id\":\"que_1\",\"questions\":[{\"question\":\"Which?\","
                           "\"options\":[{\"label\":\"a\"}]},{\"question\":\"Where?\"}]"),
        TAPE_NO_EXIT, 0);
    ev = tape_find(&t, AGENT_ASK, 0);
#define ANSWERS(v) "{\"method\":\"POST\",\"path\":\"/question/que_1/reply\",\"body\":{\"answers\":" v "}}\n"
    answer(ev, "opencode-serve", -1, "this one\nover there", ANSWERS("[[\"this one\"],[\"over there\"]]"));
    answer(ev, "opencode-serve", -1, "this one", ANSWERS("[[\"this one\"],[]]"));
    answer(ev, "opencode-serve", -1, "\nover there", ANSWERS("[[],[\"over there\"]]"));
    answer(ev, "opencode-serve", 0, NULL, NULL);
#undef ANSWERS
    tape_release(&t);
}

/* A session below the main one, and a request that the server refused. */
static void serve_below_and_refused(void **state)
{
    struct tape t;
    const struct agent_event *ev;

    (void)state;
    run(&t, "opencode-serve",
        SERVE("session.created", "\"info\":{\"id\":\"ses_1\"}") SERVE(
            "session.created", "\"info\":{\"id\":\"ses_2\",\"parentID\":\"ses_1\"}")
            SERVE("session.status", MAIN ",\"status\":{\"type\":\"busy\"}") SERVE(
                "session.status", "\"sessionID\":\"ses_2\",\"status\":{\"type\":\"busy\"}")
                SERVE("message.part.delta",
                      "\"sessionID\":\"ses_2\",\"partID\":\"p1\",\"field\":\"text\","
                      "\"delta\":\"below\"") SERVE("session.idle", "\"sessionID\":\"ses_2\"")
                    SERVE("session.status", MAIN
                          ",\"status\":{\"type\":\"retry\",\"attempt\":2,"
                          "\"message\":\"Overloaded\",\"next\":1}") SERVE("session.idle", MAIN)
                        SERVE("driver.error",
                              "\"path\":\"/session/ses_1/prompt_async\",\"status\":400,"
                              "\"message\":\"{\\\"error\\\":{\\\"message\\\":\\\"no such "
                              "agent\\\"}}\""),
        TAPE_NO_EXIT, 0);
    assert_int_equal(tape_count(&t, AGENT_SESSION), 1);
    assert_int_equal(tape_count(&t, AGENT_TURN_END), 2);
    assert_string_equal(tape_find(&t, AGENT_TEXT, 0)->parent, "ses_2");
    ev = tape_find(&t, AGENT_NOTICE, 0);
    assert_int_equal(ev->error_class, AGENT_ERR_OVERLOAD);
    ev = &t.ev.v[t.ev.n - 1];
    assert_int_equal(ev->outcome, AGENT_FAILED);
    assert_int_equal(ev->http_status, 400);
    assert_string_equal(ev->text, "no such agent");
    tape_release(&t);
}

/* A turn that was aborted is idle twice; the next message may come in between. And an abort
 * that finds no turn ends none, neither then nor later. */
static void serve_aborts(void **state)
{
#define IDLE SERVE("session.status", MAIN ",\"status\":{\"type\":\"idle\"}") SERVE("session.idle", MAIN)
#define BUSY SERVE("session.status", MAIN ",\"status\":{\"type\":\"busy\"}")
#define ABORTED SERVE("session.error", MAIN ",\"error\":{\"name\":\"MessageAbortedError\",\"data\":{\"message\":\"Aborted\"}}")
#define USER(id) SERVE("message.updated", MAIN ",\"info\":{\"id\":\"" id "\",\"role\":\"user\"}")
    static const struct {
        const char *lines, *outcomes;
    } v[] = {
        {USER("m1") BUSY ABORTED IDLE IDLE USER("m2") BUSY IDLE, "io"},
        {USER("m1") BUSY ABORTED IDLE USER("m2") IDLE BUSY IDLE, "io"},
        {USER("m1") BUSY ABORTED IDLE USER("m2") BUSY IDLE, "io"},
        {USER("m1") BUSY ABORTED IDLE ABORTED USER("m2") IDLE BUSY IDLE, "io"},
        {ABORTED USER("m1") BUSY IDLE, "o"},
        {USER("m1") BUSY IDLE ABORTED IDLE USER("m2") BUSY IDLE, "oo"},
        /* aborted before the server began with it */
        {USER("m1") BUSY ABORTED IDLE USER("m2") ABORTED IDLE IDLE, "ii"},
        {USER("m1") BUSY ABORTED IDLE USER("m2") IDLE IDLE IDLE, "io"},
    };
    struct tape t;
    char got[8];
    (void)state;

    for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
        size_t n = 0;

        run(&t, "opencode-serve", v[i].lines, TAPE_NO_EXIT, 0);
        for (size_t k = 0; k < t.ev.n; k++)
            if (t.ev.v[k].kind == AGENT_TURN_END && n + 1 < sizeof(got))
                got[n++] = t.ev.v[k].outcome == AGENT_INTERRUPTED ? 'i'
                           : t.ev.v[k].outcome == AGENT_OK        ? 'o'
                                                                  : '?';
        got[n] = 0;
        if (!str_eq(got, v[i].outcomes))
            fail_msg("case %zu: \"%s\" instead of \"%s\"", i, got, v[i].outcomes);
        assert_int_equal(tape_count(&t, AGENT_TURN_BEGIN), n);
        assert_int_equal(tape_count(&t, AGENT_NOTICE), 0);
        tape_release(&t);
    }
}

/* --- errors ---------------------------------------------------------------------------------
 */

/* Keys that an error quotes, in JSON or not; the interruption that codex does not tell. */
static void words_of_errors(void **state)
{
    struct tape t;
    const struct agent_event *ev;

    (void)state;
    run(&t, "codex",
        "{\"type\":\"thread.started\",\"thread_id\":\"t\"}\n{\"type\":\"turn.failed\","
        "\"error\":"
        "{\"message\":\"{\\\"error\\\":{\\\"message\\\":\\\"bad key "
        "sk-ant-api03-abcdefghijklmnop-1234"
        " for task-list\\\"}}\"}}\n",
        1, 0);
    ev = tape_find(&t, AGENT_TURN_END, 0);
    assert_string_equal(ev->text, "bad key sk-***************************1234 for task-list");
    assert_int_equal(ev->error_class, AGENT_ERR_AUTH);
    tape_release(&t);
    ended(&t, "codex", "{\"type\":\"turn.started\"}\n", 1, SIGINT,
          "Reading additional input from stdin...\n");
    assert_int_equal(tape_find(&t, AGENT_TURN_END, 0)->outcome, AGENT_INTERRUPTED);
    tape_release(&t);
    /* the last words before a death that nobody ordered */
    ended(&t, "codex",
          "{\"type\":\"turn.started\"}\n"
          "{\"type\":\"error\",\"message\":\"Connection refused\"}\n",
          1, 0, "Reading additional input from stdin...\n");
    ev = tape_find(&t, AGENT_TURN_END, 0);
    assert_int_equal(ev->outcome, AGENT_FAILED);
    assert_string_equal(ev->text, "Connection refused");
    assert_int_equal(ev->error_class, AGENT_ERR_NETWORK);
    tape_release(&t);
    ended(&t, "opencode", "{\"type\":\"step_start\",\"sessionID\":\"s\",\"part\":{}}\n", 137, 0,
          "key AIzaSyA1234567890abcdefgh is wrong\n");
    ev = tape_find(&t, AGENT_TURN_END, 0);
    assert_string_equal(ev->text, "key AIza*****************efgh is wrong");
    assert_null(strstr(t.ev.v[t.ev.n - 1].text, "1234567890"));
    tape_release(&t);
}

/* Pairs that a stream was cut in: whole in the pieces that go out, and nothing lost behind
 * a half that has no other. */
static void halves(void **state)
{
#define GEM(text) "{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"" text "\"}\n"
    struct tape t;
    char *text;

    (void)state;
    run(&t, "gemini",
        GEM("Grin \\ud83d") GEM("\\ude00 \\\\ud83d") GEM("\\ud83d\\udc4d\\ud83c")
            GEM("\\udffd.") GEM("\\ud83d") GEM("x\\ude00")
                GEM("end \\ud83d") "{\"type\":\"result\",\"status\":\"success\"}\n",
        0, 0);
    text = tape_texts(&t, AGENT_TEXT);
    assert_string_equal(text, "Grin 😀 \\ud83d👍🏽.x\xEF\xBF\xBD"
                              "end \xEF\xBF\xBD");
    free(text);
    tape_release(&t);
    run(&t, "pi",
        PI_START
        "{\"type\":\"message_update\",\"assistantMessageEvent\":{\"type\":\"text_delta\","
        "\"delta\":\"a\\ud83d\"}}\n"
        "{\"type\":\"message_update\",\"assistantMessageEvent\":{\"type\":\"text_delta\","
        "\"delta\":\"\\ude00b\"}}\n",
        TAPE_NO_EXIT, 0);
    text = tape_texts(&t, AGENT_TEXT);
    assert_string_equal(text, "a😀b");
    free(text);
    tape_release(&t);
}

/* What no version said yet: other types, other fields, other types of fields. */
static void drift(void **state)
{
    static const char *const odd[] = {
        "{\"type\":\"brand.new\",\"x\":[1,2,{}]}\n",
        "{\"type\":7}\n",
        "{}\n",
        "{\"type\":\"item.completed\",\"item\":[]}\n",
        "{\"type\":\"item.completed\",\"item\":{\"id\":5,\"type\":\"hologram\"}}\n",
        "{\"type\":\"message_end\",\"message\":\"text\"}\n",
        "{\"type\":\"tool_execution_end\",\"toolCallId\":4}\n",
        "{\"type\":\"tool_use\",\"part\":{\"callID\":null,\"state\":7}}\n",
        "{\"type\":\"message.part.updated\",\"properties\":[]}\n",
        "{\"type\":\"result\",\"status\":{},\"stats\":{\"input_tokens\":-5,\"cached\":1e30}}\n",
        "{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":\"many\",\"output_tokens\":-1}}\n",
    };
    const struct agent_adapter *a;
    struct tape t;

    (void)state;
    for (size_t k = 0; (a = agent_adapter_at(k)); k++)
        for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
            if (a->pty || str_eq(a->name, "pair")) /* no dialect of its own */
                continue;
            tape_run(&t, a, odd[i], strlen(odd[i]), 4096, 0, 0, NULL);
            assert_int_equal(tape_count(&t, AGENT_RAW), 0);
            for (size_t n = 0; n < t.ev.n; n++)
                assert_true(t.ev.v[n].in_tokens >= 0 && t.ev.v[n].out_tokens >= 0);
            tape_release(&t);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages),
        cmocka_unit_test(pi_questions),
        cmocka_unit_test(serve_questions),
        cmocka_unit_test(serve_several_questions),
        cmocka_unit_test(serve_below_and_refused),
        cmocka_unit_test(serve_aborts),
        cmocka_unit_test(words_of_errors),
        cmocka_unit_test(drift),
        cmocka_unit_test(halves),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
