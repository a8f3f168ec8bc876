/* Claude's questions and the lines that answer them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../lib/tape.h"

#include <cct/util/json.h>
#include <cct/util/str.h>
#include <stdlib.h>
#include <string.h>

#define INIT "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s1\",\"model\":\"m\"}\n"
#define ASK(id, tool, input)                                                            \
    "{\"type\":\"control_request\",\"request_id\":\"" id "\",\"request\":{\"subtype\":" \
    "\"can_use_tool\",\"tool_name\":\"" tool "\",\"input\":" input                      \
    ",\"tool_use_id\":\"call-" id "\"}}\n"
#define RUN ASK("r1", "Bash", "{\"command\":\"make\\nmake test\",\"n\":1.5}")
#define ONE                                                                               \
    "{\"questions\":[{\"question\":\"Which database?\",\"options\":[{\"label\":\"SQLite\"}" \
    ",{\"label\":\"My\\nSQL\"}]}]}"
#define TWO                                                                                \
    "{\"questions\":[{\"question\":\"Which?\",\"options\":[{\"label\":\"a\"},{\"label\":"  \
    "\"b\"}]},{\"question\":\"Tests?\",\"multiSelect\":true,\"options\":[{\"label\":\"u\"" \
    "},{\"label\":\"e\"},{\"label\":\"f\"}]}]}"
#define RESULT "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false}\n"

static const struct agent_adapter *claude(void)
{
    return agent_adapter_find("claude");
}

static void run(struct tape *t, const char *s, int code)
{
    struct tape one;

    tape_run(t, claude(), s, strlen(s), 1 << 30, code, 0, NULL);
    tape_run(&one, claude(), s, strlen(s), 1, code, 0, NULL);
    assert_string_equal(buf_str(&t->json), buf_str(&one.json));
    tape_release(&one);
}

static char *answer(const char *id, const char *tool, const char *input, int choice,
                    const char *text)
{
    struct agent_answer a = {id, tool, input, choice, text};
    struct buf b = BUF_INIT;
    struct err e = {0};

    if (claude()->encode_answer(&a, &b, &e) == 0) {
        assert_ptr_equal(memchr(b.p, '\n', b.len), b.p + b.len - 1);
        return buf_detach(&b, NULL);
    }
    assert_int_equal(e.code, ERR_INVALID);
    assert_int_equal(b.len, 0);
    return NULL;
}

/* What the CLI would say to it, decoded: the words of the answer. New string or NULL. */
static char *heard(const char *tool, const char *input, int choice, const char *text)
{
    char *line = answer("r1", tool, input, choice, text), *how;
    struct buf b = BUF_INIT;
    const struct agent_event *ev;
    struct tape t;

    if (!line)
        return NULL;
    buf_addf(&b, INIT "{\"type\":\"control_request\",\"request_id\":\"r1\",\"request\":{\"subtype\":"
             "\"can_use_tool\",\"tool_name\":\"%s\",\"input\":%s}}\n%s", tool, input, line);
    run(&t, buf_str(&b), TAPE_NO_EXIT);
    ev = tape_find(&t, AGENT_ASK, 0);
    ev = tape_find(&t, AGENT_ASK, (size_t)(ev - t.ev.v) + 1);
    assert_non_null(ev);
    assert_true(ev->final);
    how = ev->text ? strdup(ev->text) : NULL;
    tape_release(&t);
    buf_release(&b);
    free(line);
    return how;
}

static void assert_heard(const char *tool, const char *input, int choice, const char *text,
                         const char *want)
{
    char *how = heard(tool, input, choice, text);

    if (want)
        assert_string_equal(how, want);
    else
        assert_null(how);
    free(how);
}

static void test_opened(void **state)
{
    const struct agent_event *ev;
    struct tape t;

    (void)state;
    run(&t, INIT RUN ASK("r2", "AskUserQuestion", ONE) ASK("r3", "AskUserQuestion", TWO)
        ASK("r4", "ExitPlanMode", "{\"plan\":\"p\"}"), TAPE_NO_EXIT);
    assert_int_equal(tape_count(&t, AGENT_ASK), 4);
    ev = tape_find(&t, AGENT_ASK, 0);
    assert_string_equal(ev[0].id, "r1");
    assert_string_equal(ev[0].name, "Bash");
    assert_string_equal(ev[0].title, "make…");
    assert_string_equal(ev[0].input, "{\"command\":\"make\\nmake test\",\"n\":1.5}");
    assert_string_equal(ev[0].choices, "yes\nyes, and do not ask again for Bash\nno");
    assert_false(ev[0].final);
    assert_string_equal(ev[1].title, "Which database?");
    assert_string_equal(ev[1].choices, "SQLite\nMy SQL");
    assert_string_equal(ev[2].title, "Which? (and 1 more)");
    assert_null(ev[2].choices);
    assert_string_equal(ev[3].choices, "yes\nno");
    tape_release(&t);
}

/* Whatever ends the turn ends its questions; each ends once. */
static void test_ended(void **state)
{
    static const char *const ends[] = {
        "{\"type\":\"control_cancel_request\",\"request_id\":\"r1\"}\n",
        "{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":"
        "\"call-r1\",\"content\":\"x\"}]}}\n",
        RESULT,
        "{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":"
        "\"r1\",\"response\":{\"behavior\":\"allow\"}}}\n",
    };

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct buf b = BUF_INIT;
        struct tape t;

        buf_addf(&b, "%s%s%s%s", INIT RUN, ends[i], ends[i], RESULT);
        run(&t, buf_str(&b), 0);
        assert_int_equal(tape_count(&t, AGENT_ASK), 2);
        const struct agent_event *ev = tape_find(&t, AGENT_ASK, 0);
        ev = tape_find(&t, AGENT_ASK, (size_t)(ev - t.ev.v) + 1);
        assert_true(ev->final);
        assert_string_equal(ev->id, "r1");
        if (i == 3)
            assert_string_equal(ev->text, "yes");
        else
            assert_null(ev->text);
        tape_release(&t);
        buf_release(&b);
    }
    struct tape t;
    run(&t, INIT RUN, 1); /* the process ends with its question open */
    assert_int_equal(tape_count(&t, AGENT_ASK), 2);
    tape_release(&t);
}

static void test_permissions(void **state)
{
    static const char input[] = "{\"command\":\"a \\\"b\\\"\\n\"}";
    char *line;

    (void)state;
    line = answer("r1", "Bash", input, 0, NULL);
    assert_string_equal(line, "{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\","
                        "\"request_id\":\"r1\",\"response\":{\"behavior\":\"allow\",\"updatedInput\":"
                        "{\"command\":\"a \\\"b\\\"\\n\"}}}}\n");
    free(line);
    line = answer("r1", "Bash", NULL, 0, NULL);
    assert_non_null(strstr(line, "\"updatedInput\":{}}"));
    free(line);
    assert_heard("Bash", input, 0, NULL, "yes");
    assert_heard("Bash", input, 1, NULL, "yes, and do not ask again for Bash");
    assert_heard("Bash", input, 2, NULL, "no");
    assert_heard("Bash", input, 3, NULL, NULL);
    assert_heard("Bash", input, -1, "use cmake", "use cmake");
    assert_heard("Bash", input, -1, "", NULL);
    assert_heard("ExitPlanMode", "{}", 1, NULL, "no");
    assert_heard("ExitPlanMode", "{}", 2, NULL, NULL);
}

static void test_questions(void **state)
{
    (void)state;
    assert_heard("AskUserQuestion", ONE, 0, NULL, "SQLite");
    assert_heard("AskUserQuestion", ONE, 2, NULL, NULL);
    assert_heard("AskUserQuestion", ONE, -1, "my; own\nwords", "my; own\nwords");
    assert_heard("AskUserQuestion", ONE, -1, "1", "SQLite");
    assert_heard("AskUserQuestion", ONE, -1, "1, 2", "1, 2"); /* one may be chosen */
    assert_heard("AskUserQuestion", ONE, -1, "3", "3");
    assert_heard("AskUserQuestion", ONE, -1, "  ", NULL);
    assert_heard("AskUserQuestion", TWO, 0, NULL, NULL);
    assert_heard("AskUserQuestion", TWO, -1, "2\n1, 3", "b\nu, f");
    assert_heard("AskUserQuestion", TWO, -1, "my way; 2", "my way\ne");
    assert_heard("AskUserQuestion", TWO, -1, "2", NULL);
    assert_heard("AskUserQuestion", TWO, -1, "2\n1\n1", NULL);
    assert_heard("AskUserQuestion", TWO, -1, "2\n\n", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_opened),
        cmocka_unit_test(test_ended),
        cmocka_unit_test(test_permissions),
        cmocka_unit_test(test_questions),
    };

    return cmocka_run_group_tests_name("agent_ask", tests, NULL, NULL);
}
