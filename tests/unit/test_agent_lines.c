/* Claude's stream where it is broken, cut, too long or unknown; errors, exits, and
 * what goes the other way. */
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
#include <stdlib.h>
#include <string.h>

static const struct agent_adapter *claude(void)
{
    return agent_adapter_find("claude");
}

static void run_text(struct tape *t, const char *s, int code)
{
    struct tape one;

    tape_run(t, claude(), s, strlen(s), 1 << 30, code, 0, NULL);
    tape_run(&one, claude(), s, strlen(s), 1, code, 0, NULL);
    assert_string_equal(buf_str(&t->json), buf_str(&one.json));
    tape_release(&one);
}

#define INIT \
    "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s1\",\"model\":\"m\"}\n"
#define DELTA(t)                                                                          \
    "{\"type\":\"stream_event\",\"event\":{\"type\":\"content_block_delta\",\"index\":0," \
    "\"delta\":{\"type\":\"text_delta\",\"text\":\"" t "\"}}}\n"
#define START                                                                               \
    "{\"type\":\"stream_event\",\"event\":{\"type\":\"message_start\",\"message\":{\"id\":" \
    "\"m1\"}}}\n"                                                                           \
    "{\"type\":\"stream_event\",\"event\":{\"type\":\"content_block_start\",\"index\":0}}\n"

static void test_surrogates_and_nul(void **state)
{
    struct tape t;
    char *text;

    (void)state;
    run_text(&t, INIT START DELTA("Grin \\ud83d") DELTA("\\ude00.") DELTA("x\\u0000y"),
             TAPE_NO_EXIT);
    assert_int_equal(tape_count(&t, AGENT_TEXT), 3); /* no line is lost */
    assert_string_equal(t.ev.v[2].text, "Grin "); /* a half waits for its other half */
    assert_string_equal(t.ev.v[3].text, "😀.");
    assert_string_equal(t.ev.v[4].text, "x\xEF\xBF\xBDy"); /* nothing behind NUL is lost */
    tape_release(&t);
    run_text(&t,
             INIT START DELTA("Grin \\ud83d")
                 DELTA("\\ude00.") "{\"type\":\"assistant\",\"message\":{\"id\":\"m1\","
                                   "\"content\":[{\"type\":\"text\","
                                   "\"text\":\"Grin \\ud83d\\ude00.\"}]}}\n",
             TAPE_NO_EXIT);
    text = tape_texts(&t, AGENT_TEXT);
    assert_string_equal(text, "Grin 😀.");
    free(text);
    tape_release(&t);
}

/* Blocks find each other although a block has no line of its own, and although a
 * subagent's message runs in between. */
static void test_block_ids(void **state)
{
    struct tape t;
    char *text;

    (void)state;
    run_text(
        &t,
        INIT START
        "{\"type\":\"stream_event\",\"event\":{\"type\":\"content_block_stop\",\"index\":0}}\n"
        "{\"type\":\"stream_event\",\"event\":{\"index\":1,\"type\":\"content_block_start\"}}\n"
        "{\"type\":\"stream_event\",\"event\":{\"index\":1,\"type\":\"content_block_delta\","
        "\"delta\":{\"text\":\"half\",\"type\":\"text_delta\"}}}\n"
        "{\"parent_tool_use_id\":\"task1\",\"type\":\"assistant\",\"message\":{\"id\":\"sub\","
        "\"content\":[{\"type\":\"text\",\"text\":\"inner\"},{\"type\":\"tool_use\",\"id\":"
        "\"t9\",\"name\":\"Read\",\"input\":{\"file_path\":\"/a\\nb\"}}]}}\n"
        "{\"type\":\"assistant\",\"message\":{\"id\":\"m1\",\"content\":[{\"type\":\"text\","
        "\"text\":\"half and whole\"}]}}\n",
        0);
    text = tape_texts(&t, AGENT_TEXT);
    assert_string_equal(text, "half and whole");
    free(text);
    assert_string_equal(t.ev.v[3].text, "inner");
    assert_string_equal(t.ev.v[3].parent, "task1");
    assert_string_equal(t.ev.v[4].title, "/a…");
    assert_string_equal(t.ev.v[4].parent, "task1");
    /* the end: tool unknown, turn failed, exit */
    assert_int_equal(t.ev.v[6].state, AGENT_TOOL_UNKNOWN);
    assert_int_equal(t.ev.v[7].outcome, AGENT_FAILED);
    assert_int_equal(t.ev.v[8].kind, AGENT_EXIT);
    assert_int_equal(t.ev.n, 9);
    tape_release(&t);
}

static void test_strange_lines(void **state)
{
    struct tape t;

    (void)state;
    run_text(&t,
             "\n  \n{\"type\":\"rate_limit_event\",\"x\":[1]}\n[1,2]\n{}\n{\"type\":7}\n"
             "warming up\r\n{\"type\":\"assistant\"}\n{\"type\":\"result\"}\n"
             "{\"type\":\"user\",\"message\":{\"content\":\"said\"},\"isReplay\":true}\n"
             "{\"type\":\"user\",\"message\":{\"content\":\"x\"},\"isSynthetic\":true}\n"
             "{\"type\":\"assist",
             0);
    assert_int_equal(t.ev.v[0].kind, AGENT_RAW);
    assert_string_equal(t.ev.v[0].text, "[1,2]");
    assert_string_equal(t.ev.v[1].text, "warming up");
    assert_true(t.ev.v[1].final);
    assert_int_equal(t.ev.v[2].kind, AGENT_USAGE);
    assert_true(isnan(t.ev.v[2].cost_usd));
    assert_int_equal(t.ev.v[3].kind, AGENT_TURN_END);
    assert_string_equal(t.ev.v[4].text, "said");
    assert_int_equal(t.ev.v[4].kind, AGENT_USER_ECHO);
    assert_int_equal(t.ev.v[5].kind, AGENT_NOTICE);
    assert_string_equal(t.ev.v[5].text, "the output ends in the middle of a line");
    assert_int_equal(t.ev.v[6].kind, AGENT_EXIT);
    assert_int_equal(t.ev.n, 7);
    tape_release(&t);
}

/* Commands of the CLI itself answer in the user's name. */
static void test_command_output(void **state)
{
    struct tape t;

    (void)state;
    run_text(&t,
             "{\"type\":\"user\",\"uuid\":\"u1\",\"message\":{\"content\":"
             "\"<local-command-stdout>Compacted </local-command-stdout>\"},"
             "\"isReplay\":true}\n"
             "{\"type\":\"user\",\"message\":{\"content\":"
             "\"<local-command-stdout></local-command-stdout>\"},\"isReplay\":true}\n",
             TAPE_NO_EXIT);
    assert_int_equal(t.ev.n, 1);
    assert_int_equal(t.ev.v[0].kind, AGENT_TEXT);
    assert_string_equal(t.ev.v[0].text, "Compacted ");
    assert_string_equal(t.ev.v[0].id, "command:u1");
    tape_release(&t);
}

static void test_nul_in_plain_line(void **state)
{
    struct tape t;

    (void)state;
    tape_run(&t, claude(), "a\0b\nc\n", 6, 6, TAPE_NO_EXIT, 0, NULL);
    assert_string_equal(t.ev.v[0].text, "a b");
    assert_string_equal(t.ev.v[1].text, "c");
    tape_release(&t);
}

/* Lines of 70 kB, 1.1 MB and 11 MB, then a normal one. */
static void test_long_lines(void **state)
{
    static const size_t sizes[] = {70000, 1100000, 11000000};
    struct buf b = BUF_INIT;
    struct tape t;

    (void)state;
    buf_adds(&b, INIT START);
    for (size_t i = 0; i < 3; i++) {
        buf_adds(&b, "{\"type\":\"stream_event\",\"event\":{\"type\":\"content_block_delta\","
                     "\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"");
        memset(buf_reserve(&b, sizes[i]), 'a' + (int)i, sizes[i]);
        b.len += sizes[i];
        buf_adds(&b, "\"}}}\n");
    }
    buf_adds(&b, DELTA("after"));
    tape_run(&t, claude(), b.p, b.len, 65536, TAPE_NO_EXIT, 0, NULL);
    assert_int_equal(t.ev.n, 6);
    assert_int_equal(strlen(t.ev.v[2].text), sizes[0]);
    assert_int_equal(strlen(t.ev.v[3].text), sizes[1]);
    assert_int_equal(t.ev.v[4].kind, AGENT_NOTICE);
    assert_string_equal(t.ev.v[4].text,
                        "line too long: 11.0 MB left out, the raw log has them");
    assert_string_equal(t.ev.v[5].text, "after");
    tape_release(&t);
    /* the same when the whole comes at once, and when it ends inside */
    tape_run(&t, claude(), b.p, b.len, b.len, TAPE_NO_EXIT, 0, NULL);
    assert_int_equal(t.ev.n, 6);
    tape_release(&t);
    tape_run(&t, claude(), b.p, b.len - 4000000, 65536, 0, 0, NULL);
    assert_int_equal(tape_count(&t, AGENT_NOTICE), 1);
    tape_release(&t);
    buf_release(&b);
}

#define RESULT(total, extra)                                                             \
    "{\"total_cost_usd\":" total ",\"usage\":{\"input_tokens\":10,\"output_tokens\":2}," \
    "\"is_error\":false,\"subtype\":\"success\"" extra ",\"type\":\"result\"}\n"

/* Without model_usage_since_last_result the process' cost so far goes out as it is, and is
 * no part of the turn's own figures; a result that is said again is not counted again. */
static void test_cost_of_process(void **state)
{
    struct agent_dec *d;
    struct tape t;

    (void)state;
    run_text(&t, INIT RESULT("0.25", ",\"uuid\":\"a\"") RESULT("0.25", ",\"uuid\":\"a\""), 0);
    assert_int_equal(tape_count(&t, AGENT_USAGE), 2);
    assert_int_equal(tape_count(&t, AGENT_TURN_END), 1);
    assert_int_equal(t.ev.v[2].scope, AGENT_SCOPE_TURN);
    assert_int_equal(t.ev.v[2].in_tokens, 10);
    assert_true(t.ev.v[2].cost_usd == 0);
    assert_int_equal(t.ev.v[3].scope, AGENT_SCOPE_SESSION_TOTAL);
    assert_string_equal(t.ev.v[3].id, AGENT_PROCESS_TOTAL);
    assert_int_equal(t.ev.v[3].in_tokens, 0);
    assert_true(fabs(t.ev.v[3].cost_usd - 0.25) < 1e-9);
    tape_release(&t);
    d = agent_dec_new(claude(), 100, NULL, NULL);
    assert_int_equal(agent_dec_offset(d), 100);
    assert_int_equal(agent_dec_turn_offset(d), 100);
    agent_dec_free(d);
}

static void test_result_kinds(void **state)
{
    struct tape t;

    (void)state;
    run_text(&t, INIT RESULT("0", ",\"result\":\"Total cost: $0.02\",\"uuid\":\"u1\""),
             TAPE_NO_EXIT);
    assert_int_equal(t.ev.v[2].kind, AGENT_TEXT); /* a built-in command's answer */
    assert_string_equal(t.ev.v[2].text, "Total cost: $0.02");
    tape_release(&t);
    run_text(&t, INIT RESULT("0", ",\"stop_reason\":\"max_tokens\""), TAPE_NO_EXIT);
    assert_int_equal(t.ev.v[3].outcome, AGENT_TRUNCATED);
    tape_release(&t);
    run_text(&t,
             INIT "{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":"
                  "\"[Request interrupted by user]\"}]}}\n{\"type\":\"result\",\"subtype\":"
                  "\"error_during_execution\",\"is_error\":true}\n",
             TAPE_NO_EXIT);
    assert_int_equal(t.ev.v[3].outcome,
                     AGENT_INTERRUPTED); /* versions without terminal_reason */
    tape_release(&t);
    run_text(&t, INIT "{\"type\":\"result\",\"subtype\":\"error_max_turns\"}\n", TAPE_NO_EXIT);
    assert_int_equal(t.ev.v[3].outcome, AGENT_FAILED);
    assert_string_equal(t.ev.v[3].text, "error_max_turns");
    tape_release(&t);
    run_text(
        &t,
        "{\"type\":\"control_response\",\"response\":{\"subtype\":\"error\",\"error\":"
        "\"no "
        "turn\"}}\n{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\"}}\n",
        TAPE_NO_EXIT);
    assert_int_equal(t.ev.n, 1);
    assert_string_equal(t.ev.v[0].text, "no turn");
    tape_release(&t);
}

/* Numbers that cannot be, a retry without a status, a denial only the result names. */
static void test_odd_fields(void **state)
{
    struct tape t;
    const struct agent_event *ev;
    char *tools;

    (void)state;
    run_text(&t,
             INIT "{\"type\":\"system\",\"subtype\":\"api_retry\",\"attempt\":1,"
                  "\"max_retries\":99999999999,\"retry_delay_ms\":563.25,"
                  "\"error_status\":null,\"error\":\"unknown\"}\n"
                  "{\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"content\":[{\"type\":"
                  "\"tool_use\",\"id\":\"t1\",\"name\":\"Bash\",\"input\":{}}]}}\n"
                  "{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"tool_result\","
                  "\"tool_use_id\":\"t1\",\"is_error\":true,\"content\":[{\"type\":\"text\","
                  "\"text\":\"no\"},{\"type\":\"image\"}]}]}}\n"
                  "{\"permission_denials\":[{\"tool_name\":\"Bash\",\"tool_use_id\":\"t1\"}],"
                  "\"model_usage_since_last_result\":{\"a\":{\"inputTokens\":-5,"
                  "\"outputTokens\":7,\"costUSD\":0.5},\"b\":{\"inputTokens\":3}},"
                  "\"total_cost_usd\":9,\"api_error_status\":-1,\"type\":\"result\"}\n",
             TAPE_NO_EXIT);
    ev = tape_find(&t, AGENT_NOTICE, 0);
    assert_int_equal(ev->error_class, AGENT_ERR_NETWORK);
    assert_int_equal(ev->retry_max, 0);
    assert_true(ev->retry_delay_ms == 563.25);
    ev = tape_find(&t, AGENT_TOOL, 4);
    assert_string_equal(ev->output, "no\n[image]");
    tools = tape_tools(&t);
    assert_string_equal(tools, "Bash:denied:-1");
    free(tools);
    ev = tape_find(&t, AGENT_USAGE, 0);
    assert_int_equal(ev->in_tokens, 3);
    assert_int_equal(ev->out_tokens, 7);
    assert_true(isnan(ev->cost_usd)); /* one model without a price: not known */
    ev = tape_find(&t, AGENT_TURN_END, 0);
    assert_int_equal(ev->http_status, 0);
    tape_release(&t);
}

static void test_exits(void **state)
{
    struct tape t;
    struct buf tail = BUF_INIT;

    (void)state;
    tape_run(&t, claude(), INIT, strlen(INIT), 100, -1, SIGTERM, NULL);
    assert_int_equal(t.ev.v[2].outcome, AGENT_INTERRUPTED);
    assert_int_equal(t.ev.v[3].signal, SIGTERM);
    tape_release(&t);
    tape_run(&t, claude(), INIT, strlen(INIT), 100, -1, 0, NULL);
    assert_string_equal(t.ev.v[2].text, "the agent is gone, how it ended is not known");
    assert_int_equal(t.ev.v[2].outcome, AGENT_FAILED);
    tape_release(&t);
    tape_run(&t, claude(), INIT, strlen(INIT), 100, 0, 0, NULL);
    assert_int_equal(t.ev.v[2].outcome, AGENT_FAILED); /* status 0 alone proves nothing */
    tape_release(&t);
    for (int i = 0; i < 3000; i++)
        buf_addf(&tail, "noise %d\n", i);
    buf_adds(&tail, "a\nb\nError: Invalid API key\n\n");
    tape_run(&t, claude(), INIT, strlen(INIT), 100, 1, 0, buf_str(&tail));
    assert_string_equal(t.ev.v[2].text, "noise 2999\na\nb\nError: Invalid API key");
    assert_int_equal(t.ev.v[2].error_class, AGENT_ERR_AUTH);
    assert_int_equal(t.ev.v[3].error_class, AGENT_ERR_AUTH);
    assert_int_equal(strlen(t.ev.v[3].text), LIM_STDERR_TAIL);
    tape_release(&t);
    buf_release(&tail);
}

static void test_classes(void **state)
{
    static const struct {
        int status;
        const char *text;
        enum agent_error_class cls;
    } cases[] = {
        {401, NULL, AGENT_ERR_AUTH},
        {403, "x", AGENT_ERR_AUTH},
        {402, "", AGENT_ERR_BILLING},
        {408, NULL, AGENT_ERR_NETWORK},
        {404, "model", AGENT_ERR_MODEL},
        {404, "no such page", AGENT_ERR_OTHER},
        {429, "slow down", AGENT_ERR_RATE},
        {429, "You exceeded your current quota, check your plan and billing",
         AGENT_ERR_BILLING},
        {529, NULL, AGENT_ERR_OVERLOAD},
        {503, NULL, AGENT_ERR_OVERLOAD},
        {500, "key", AGENT_ERR_OTHER},
        {400, "Your credit balance is too low", AGENT_ERR_BILLING},
        {400, "API key not valid", AGENT_ERR_AUTH},
        {0, NULL, AGENT_ERR_OTHER},
        {0, "No API KEY found", AGENT_ERR_AUTH},
        {0, "Not logged in", AGENT_ERR_AUTH},
        {0, "keyboard monkey", AGENT_ERR_OTHER},
        {0, "connect ECONNREFUSED", AGENT_ERR_NETWORK},
        {0, "getaddrinfo EAI_AGAIN", AGENT_ERR_NETWORK},
        {0, "Overloaded", AGENT_ERR_OVERLOAD},
        {0, "rate_limit_error", AGENT_ERR_RATE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(agent_classify(cases[i].status, cases[i].text), cases[i].cls);
}

static void test_encode(void **state)
{
    static const char nasty[] = "say \"hi\"\\\n\r\ttwo\0lines \x1b[31m\xff \xe2\x80\xa8 😀";
    struct buf b = BUF_INIT;
    struct err e = {0};
    struct cJSON *j;
    const struct cJSON *c;
    char *big;

    (void)state;
    assert_int_equal(claude()->encode_message("hello", 5, &b, &e), 0);
    assert_string_equal(buf_str(&b),
                        "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":"
                        "[{\"type\":\"text\",\"text\":\"hello\"}]}}\n");
    buf_clear(&b);
    assert_int_equal(claude()->encode_message(nasty, sizeof(nasty) - 1, &b, &e), 0);
    assert_ptr_equal(memchr(b.p, '\n', b.len), b.p + b.len - 1);
    j = json_parse(b.p, b.len, &e);
    c = json_first(json_path(j, "message.content"));
    assert_true(str_starts(json_str(c, "text", ""), "say \"hi\"\\\n\r\ttwo"));
    assert_true(str_ends(json_str(c, "text", ""), "😀"));
    json_free(j);
    buf_clear(&b);
    assert_int_equal(claude()->encode_interrupt("r1", &b), 0);
    assert_string_equal(buf_str(&b), "{\"type\":\"control_request\",\"request_id\":\"r1\","
                                     "\"request\":{\"subtype\":\"interrupt\"}}\n");
    buf_clear(&b);
    big = xcalloc(1, LIM_MESSAGE_BYTES + 1);
    memset(big, 'x', LIM_MESSAGE_BYTES + 1);
    assert_int_equal(claude()->encode_message(big, LIM_MESSAGE_BYTES, &b, &e), 0);
    buf_clear(&b);
    assert_int_equal(claude()->encode_message(big, LIM_MESSAGE_BYTES + 1, &b, &e), ERR_LIMIT);
    assert_int_equal(claude()->encode_message("", 0, &b, &e), ERR_INVALID);
    assert_int_equal(b.len, 0);
    free(big);
    buf_release(&b);
}

static void test_bad_event_json(void **state)
{
    static const char *const bad[] = {"", "{}", "[]", "{\"kind\":\"other\"}", "{\"kind\":3}"};
    struct agent_event ev;
    struct err e;

    (void)state;
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(agent_event_from_json(&ev, bad[i], strlen(bad[i]), &e), ERR_INVALID);
        agent_event_release(&ev);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_surrogates_and_nul),
        cmocka_unit_test(test_block_ids),
        cmocka_unit_test(test_strange_lines),
        cmocka_unit_test(test_command_output),
        cmocka_unit_test(test_nul_in_plain_line),
        cmocka_unit_test(test_long_lines),
        cmocka_unit_test(test_cost_of_process),
        cmocka_unit_test(test_result_kinds),
        cmocka_unit_test(test_odd_fields),
        cmocka_unit_test(test_exits),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_encode),
        cmocka_unit_test(test_bad_event_json),
    };

    return cmocka_run_group_tests_name("agent_lines", tests, NULL, NULL);
}
