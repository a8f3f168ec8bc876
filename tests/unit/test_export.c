/* Transcripts as files: what stands in each form, pieces that never became whole, text that
 * would break a form, hostile bytes. */
#include <cct/agent.h>
#include <cct/model/export.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* keep last */
#include <cmocka.h>

#define LIT(s) ((char *)(s))

static struct exporter *x;
static struct buf out;

static void begin(enum export_format f)
{
    x = export_new(f, "claude");
    out = (struct buf)BUF_INIT;
}

static void put(struct agent_event ev)
{
    export_event(x, &ev, &out);
}

static const char *finish(void)
{
    export_end(x, &out);
    export_free(x);
    return buf_str(&out);
}

static void text(const char *id, const char *t, bool final)
{
    struct agent_event ev = AGENT_EVENT(AGENT_TEXT);
    ev.id = LIT(id);
    ev.text = LIT(t);
    ev.final = final;
    ev.mode = final ? AGENT_REPLACE : AGENT_APPEND;
    put(ev);
}

static void said(enum agent_kind kind, const char *t)
{
    struct agent_event ev = AGENT_EVENT(kind);
    ev.text = LIT(t);
    put(ev);
}

static void tool(enum agent_tool_state st, int code, const char *output)
{
    struct agent_event ev = AGENT_EVENT(AGENT_TOOL);
    ev.id = LIT("t1");
    ev.name = LIT("Bash");
    ev.title = LIT("npm test");
    ev.state = st;
    ev.exit_code = code;
    ev.output = LIT(output);
    put(ev);
}

static void talk(void)
{
    struct agent_event end = AGENT_EVENT(AGENT_TURN_END);

    said(AGENT_USER_ECHO, "run the tests");
    text("b1", "I ", false);
    text("b1", "I will.", true);
    tool(AGENT_TOOL_RUNNING, -1, NULL);
    tool(AGENT_TOOL_FAILED, 1, "1 failed\n```\nfence");
    text("b2", "One fails.", true);
    end.outcome = AGENT_FAILED;
    end.text = LIT("no credit");
    put(end);
}

static void test_markdown(void **state)
{
    (void)state;
    begin(EXPORT_MARKDOWN);
    talk();
    assert_string_equal(finish(), "\n## you\n\nrun the tests\n"
                                  "\n## claude\n\nI will.\n"
                                  "\n**Bash** npm test (failed) (exit 1)\n\n"
                                  "````\n1 failed\n```\nfence\n````\n"
                                  "\nOne fails.\n"
                                  "\n> failed: no credit\n");
    buf_release(&out);
}

static void test_plain_text(void **state)
{
    (void)state;
    begin(EXPORT_TEXT);
    talk();
    assert_string_equal(finish(), "\n== you\n\nrun the tests\n"
                                  "\n== claude\n\nI will.\n"
                                  "\n$ Bash npm test (failed) (exit 1)\n"
                                  "    1 failed\n    ```\n    fence\n"
                                  "\nOne fails.\n"
                                  "\n-- failed: no credit\n");
    buf_release(&out);
}

static void test_json_lines(void **state)
{
    static const char *const types[] = {"message", "text", "tool", "text", "turn_end"};
    size_t n = 0;
    (void)state;
    begin(EXPORT_JSON);
    talk();
    for (const char *s = finish(), *end; *s; s = end + 1, n++) {
        struct cJSON *j;
        end = strchr(s, '\n');
        assert_non_null(end);
        j = json_parse(s, (size_t)(end - s), NULL);
        assert_non_null(j);
        assert_true(n < 5);
        assert_string_equal(json_str(j, "type", ""), types[n]);
        json_free(j);
    }
    assert_int_equal(n, 5);
    buf_release(&out);
}

/* The first line: what the sandbox is, and nothing of what is not known. */
static void test_json_begin(void **state)
{
    struct sandbox s = {.name = LIT("amber"), .sandbox_id = LIT("i1"), .state = SB_PAUSED};
    (void)state;
    begin(EXPORT_JSON);
    export_begin(x, &s, &out);
    s.tool = LIT("claude");
    s.created_at = 1787392800500;
    export_begin(x, &s, &out);
    assert_string_equal(finish(),
                        "{\"type\":\"sandbox\",\"name\":\"amber\",\"sandboxId\":\"i1\","
                        "\"state\":\"paused\"}\n"
                        "{\"type\":\"sandbox\",\"name\":\"amber\",\"tool\":\"claude\","
                        "\"sandboxId\":\"i1\",\"state\":\"paused\","
                        "\"createdAt\":\"2026-08-22T10:00:00.500Z\"}\n");
    buf_release(&out);
}

/* Interrupted: the pieces are all there is. */
static void test_pieces(void **state)
{
    (void)state;
    for (int f = 0; f < EXPORT_FORMATS; f++) {
        begin((enum export_format)f);
        text("b1", "half a ", false);
        text("b1", "sentence", false);
        text("b2", "other", false);
        assert_non_null(strstr(finish(), "half a sentence"));
        assert_non_null(strstr(buf_str(&out), "other"));
        buf_release(&out);
    }
}

static void test_who_says_it(void **state)
{
    struct agent_event ev = AGENT_EVENT(AGENT_TEXT);
    (void)state;
    begin(EXPORT_MARKDOWN);
    ev.text = LIT("looks fine");
    ev.final = true;
    ev.mode = AGENT_REPLACE;
    ev.role = LIT("checker");
    put(ev);
    assert_non_null(strstr(finish(), "## checker\n\nlooks fine\n"));
    buf_release(&out);
}

static void test_hostile(void **state)
{
    (void)state;
    for (int f = 0; f < EXPORT_FORMATS; f++) {
        begin((enum export_format)f);
        struct sandbox s = {.name = LIT("a\x1b[2Jb\nc"), .tool = LIT("\x1b]0;t\a"), .cost_usd = 1};
        export_begin(x, &s, &out);
        said(AGENT_USER_ECHO, "\x1b]52;c;AAAA\a paste \xc2\x9b");
        said(AGENT_NOTICE, "line\r\n\x1b[2Jmore");
        said(AGENT_RAW, "raw \x1b[31mred\x1b[0m");
        text("b", "", true);
        tool(AGENT_TOOL_OK, -1, "\x1b[2J");
        said(AGENT_EXIT, "\x1b[?1049h");
        finish();
        assert_null(memchr(out.p, '\x1b', out.len));
        assert_null(memchr(out.p, '\a', out.len));
        buf_release(&out);
    }
}

static void test_names(void **state)
{
    (void)state;
    assert_int_equal(export_format_parse("md"), EXPORT_MARKDOWN);
    assert_int_equal(export_format_parse("jsonl"), EXPORT_JSON);
    assert_int_equal(export_format_parse("txt"), EXPORT_TEXT);
    assert_int_equal(export_format_parse("pdf"), -1);
    assert_string_equal(export_format_name(EXPORT_TEXT), "text");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_markdown),    cmocka_unit_test(test_plain_text),
        cmocka_unit_test(test_json_lines),  cmocka_unit_test(test_json_begin),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_who_says_it), cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests_name("export", tests, NULL, NULL);
}
