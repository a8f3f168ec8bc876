/* Claude's recordings against what the scenario said and the CLI did: every case in
 * a table, every one replayed in chunks of 1, 7, 4096 bytes and whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../lib/tape.h"

#include <cct/agent/decode.h>
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIR "tests/fixtures/recordings/claude-"

/* clang-format off */
static const struct {
    const char *name;
    int sessions, begins, turns;
    enum agent_outcome outcome; /* of the last turn */
    enum agent_error_class cls;
    int http;
    const char *texts; /* of the main agent, joined by '|'; NULL = scenario "long" */
    const char *tools, *end_text;
    struct {
        int64_t in, cache_read, cache_write, out;
        double cost;
    } usage; /* sum of all turns */
    int retries;
} rows[] = {
    {"ansi", 1, 1, 1, AGENT_OK, AGENT_ERR_NONE, 0,
     "Colours ahead.|The output held escape sequences \033[32mgreen\033[0m and a bell \007.",
     "Bash:ok:-1", NULL, {2222, 200, 0, 40, 0.009728}, 0},
    {"badinput", 0, 0, 0, AGENT_OK, AGENT_ERR_NONE, 0,
     "",
     "", NULL, {0, 0, 0, 0, 0.0}, 0},
    {"badkey", 1, 1, 1, AGENT_FAILED, AGENT_ERR_AUTH, 401,
     "",
     "", "Invalid API key · Fix external API key", {0, 0, 0, 0, 0.0}, 1},
    {"badmodel", 1, 1, 1, AGENT_FAILED, AGENT_ERR_MODEL, 404,
     "",
     "", "There's an issue with the selected model (no-such-model). It may not exist or you may not have access to it. Run --model to pick a different model.", {0, 0, 0, 0, 0.0}, 0},
    {"bigout", 1, 1, 1, AGENT_OK, AGENT_ERR_NONE, 0,
     "Listing many lines.|That was a long listing.",
     "Bash:ok:-1", NULL, {2222, 200, 0, 31, 0.009548}, 0},
    {"continue3", 1, 1, 1, AGENT_OK, AGENT_ERR_NONE, 0,
     "I will create the file now.|Done: hello.txt holds one line.",
     "Bash:ok:-1", NULL, {2518, 200, 0, 35, 0.010812}, 0},
    {"credit", 1, 1, 1, AGENT_FAILED, AGENT_ERR_BILLING, 402,
     "",
     "", "Credit balance is too low", {0, 0, 0, 0, 0.0}, 0},
    {"e400", 1, 1, 1, AGENT_FAILED, AGENT_ERR_OTHER, 400,
     "",
     "", "API Error: 400 messages: fake provider says the request is invalid", {0, 0, 0, 0, 0.0}, 0},
    {"e401", 1, 1, 1, AGENT_FAILED, AGENT_ERR_AUTH, 401,
     "",
     "", "Invalid API key · Fix external API key", {0, 0, 0, 0, 0.0}, 3},
    {"e403", 1, 1, 1, AGENT_FAILED, AGENT_ERR_AUTH, 403,
     "",
     "", "Failed to authenticate. API Error: 403 This key has no permission for this model", {0, 0, 0, 0, 0.0}, 0},
    {"e404", 1, 1, 1, AGENT_FAILED, AGENT_ERR_MODEL, 404,
     "",
     "", "There's an issue with the selected model (claude-opus-5-5). It may not exist or you may not have access to it. Run --model to pick a different model.", {0, 0, 0, 0, 0.0}, 0},
    {"e429", 1, 1, 1, AGENT_FAILED, AGENT_ERR_RATE, 429,
     "",
     "", "API Error: Request rejected (429) · This request would exceed the rate limit", {0, 0, 0, 0, 0.0}, 3},
    {"e429-defaultretries", 1, 1, 1, AGENT_FAILED, AGENT_ERR_OTHER, 0,
     "",
     "", "the agent was ended by signal 9 (SIGKILL)", {0, 0, 0, 0, 0.0}, 7},
    {"e500", 1, 1, 1, AGENT_FAILED, AGENT_ERR_OTHER, 500,
     "",
     "", "API Error: 500 Internal server error. This is a server-side issue, usually temporary — try again in a moment. If it persists, check your inference gateway (127.0.0.1:8787).", {0, 0, 0, 0, 0.0}, 3},
    {"e529", 1, 1, 1, AGENT_FAILED, AGENT_ERR_OVERLOAD, 529,
     "",
     "", "API Error: Repeated 529 Overloaded errors. The API is at capacity — this is usually temporary. Try again in a moment. If it persists, check your inference gateway (127.0.0.1:8787).", {0, 0, 0, 0, 0.0}, 2},
    {"empty", 1, 1, 1, AGENT_OK, AGENT_ERR_NONE, 0,
     "",
     "", NULL, {2148, 200, 0, 2, 0.008672}, 0},
    {"ephemeral", 1, 1, 1, AGENT_OK, AGENT_ERR_NONE, 0,
     "Hello! The answer is 4.",
     "", NULL, {1074, 100, 0, 6, 0.004436}, 0},
    {"long", 1, 1, 1, AGENT_OK, AGENT_ERR_NONE, 0,
     NULL,
     "", NULL, {1074, 100, 0, 471, 0.013736}, 0},
    {"long-partial", 1, 1, 1, AGENT_OK, AGENT_ERR_NONE, 0,
     NULL,
     "", NULL, {1074, 100, 0, 471, 0.013736}, 0},
    {"maxtokens", 1, 1, 1, AGENT_TRUNCATED, AGENT_ERR_OTHER, 0,
     "This answer is cut of|This answer is cut of|This answer is cut of|This answer is cut of",
     "", "API Error: Claude's response exceeded the 128000 output token maximum. To configure this behavior, set the CLAUDE_CODE_MAX_OUTPUT_TOKENS environment variable.", {4740, 400, 0, 24, 0.01952}, 0},
    {"multiturn", 1, 3, 3, AGENT_OK, AGENT_ERR_NONE, 0,
     "Hello! The answer is 4.|I will create the file now.|Done: hello.txt holds one line.|That is the second turn: I still remember the first one.",
     "Bash:ok:-1", NULL, {4740, 400, 0, 55, 0.02014}, 0},
    {"nokey", 1, 1, 1, AGENT_FAILED, AGENT_ERR_AUTH, 0,
     "",
     "", "Not logged in · Please run /login", {0, 0, 0, 0, 0.0}, 0},
    {"noverbose", 0, 0, 0, AGENT_OK, AGENT_ERR_NONE, 0,
     "",
     "", NULL, {0, 0, 0, 0, 0.0}, 0},
    {"permission-allow", 1, 1, 1, AGENT_OK, AGENT_ERR_NONE, 0,
     "I will create the file now.|Done: hello.txt holds one line.",
     "Bash:ok:-1", NULL, {2222, 200, 0, 35, 0.009628}, 0},
    {"permission-none", 1, 1, 1, AGENT_OK, AGENT_ERR_NONE, 0,
     "I will create the file now.|Done: hello.txt holds one line.",
     "Bash:denied:-1", NULL, {2222, 200, 0, 35, 0.009628}, 0},
    {"plain", 1, 1, 1, AGENT_OK, AGENT_ERR_NONE, 0,
     "Hello! The answer is 4.",
     "", NULL, {1074, 100, 0, 6, 0.004436}, 0},
    {"plain-partial", 1, 1, 1, AGENT_OK, AGENT_ERR_NONE, 0,
     "Hello! The answer is 4.",
     "", NULL, {1074, 100, 0, 6, 0.004436}, 0},
    {"resume-unknown", 0, 0, 1, AGENT_FAILED, AGENT_ERR_OTHER, 0,
     "",
     "", "No conversation found with session ID: 00000000-0000-4000-8000-000000000000", {0, 0, 0, 0, 0.0}, 0},
    {"resume1", 1, 1, 1, AGENT_OK, AGENT_ERR_NONE, 0,
     "Hello! The answer is 4.",
     "", NULL, {1074, 100, 0, 6, 0.004436}, 0},
    {"resume2", 1, 1, 1, AGENT_OK, AGENT_ERR_NONE, 0,
     "That is the second turn: I still remember the first one.",
     "", NULL, {1148, 100, 0, 14, 0.004892}, 0},
    {"retry429", 1, 1, 1, AGENT_OK, AGENT_ERR_NONE, 0,
     "Hello! The answer is 4.",
     "", NULL, {1074, 100, 0, 6, 0.004436}, 2},
    {"retry529", 1, 1, 1, AGENT_OK, AGENT_ERR_NONE, 0,
     "Hello! The answer is 4.",
     "", NULL, {1074, 100, 0, 6, 0.004436}, 2},
    {"root", 0, 0, 0, AGENT_OK, AGENT_ERR_NONE, 0,
     "",
     "", NULL, {0, 0, 0, 0, 0.0}, 0},
    {"root-issandbox", 1, 1, 1, AGENT_OK, AGENT_ERR_NONE, 0,
     "Hello! The answer is 4.",
     "", NULL, {1074, 100, 0, 6, 0.004436}, 0},
    {"sigint", 1, 1, 1, AGENT_INTERRUPTED, AGENT_ERR_NONE, 0,
     "word word word word word word word word word word word ",
     "", NULL, {1074, 100, 0, 18, 0.004676}, 0},
    {"sigint-tool", 1, 1, 1, AGENT_INTERRUPTED, AGENT_ERR_NONE, 0,
     "Starting a long command.",
     "Bash:failed:-1", NULL, {1074, 100, 0, 26, 0.004836}, 0},
    {"sigkill-tool", 1, 1, 1, AGENT_FAILED, AGENT_ERR_OTHER, 0,
     "Starting a long command.",
     "Bash:unknown:-1", "the agent was ended by signal 9 (SIGKILL)", {0, 0, 0, 0, 0.0}, 0},
    {"sigterm", 1, 1, 1, AGENT_FAILED, AGENT_ERR_OTHER, 0,
     "word word word word word word word word word word ",
     "", "the agent ended with status 143 in the middle of a turn", {0, 0, 0, 0, 0.0}, 0},
    {"stdin-eof-midturn", 1, 1, 1, AGENT_OK, AGENT_ERR_NONE, 0,
     "I will create the file now.|Done: hello.txt holds one line.",
     "Bash:ok:-1", NULL, {2222, 200, 0, 35, 0.009628}, 0},
    {"stdinopen", 1, 1, 1, AGENT_OK, AGENT_ERR_NONE, 0,
     "Hello! The answer is 4.",
     "", NULL, {1074, 100, 0, 6, 0.004436}, 0},
    {"stdinprompt", 1, 1, 1, AGENT_OK, AGENT_ERR_NONE, 0,
     "Hello! The answer is 4.",
     "", NULL, {1074, 100, 0, 6, 0.004436}, 0},
    {"thinking", 1, 1, 1, AGENT_OK, AGENT_ERR_NONE, 0,
     "It is 4.",
     "", NULL, {1074, 100, 0, 15, 0.004616}, 0},
    {"thinking-partial", 1, 1, 1, AGENT_OK, AGENT_ERR_NONE, 0,
     "It is 4.",
     "", NULL, {1074, 100, 0, 15, 0.004616}, 0},
    {"tool", 1, 1, 1, AGENT_OK, AGENT_ERR_NONE, 0,
     "I will create the file now.|Done: hello.txt holds one line.",
     "Bash:ok:-1", NULL, {2222, 200, 0, 35, 0.009628}, 0},
    {"tool-partial", 1, 1, 1, AGENT_OK, AGENT_ERR_NONE, 0,
     "I will create the file now.|Done: hello.txt holds one line.",
     "Bash:ok:-1", NULL, {2222, 200, 0, 35, 0.009628}, 0},
    {"toolfail", 1, 1, 1, AGENT_OK, AGENT_ERR_NONE, 0,
     "Let me look at that folder.|The folder does not exist, so the command failed with status 3.",
     "Bash:failed:3", NULL, {2222, 200, 0, 43, 0.009788}, 0},
    {"write", 1, 1, 1, AGENT_OK, AGENT_ERR_NONE, 0,
     "Writing the file with the edit tool.|notes.md is written.",
     "Write:ok:-1", NULL, {2222, 200, 0, 34, 0.009608}, 0},
};
/* clang-format on */
#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

struct recording {
    char *data, *stderr_tail;
    size_t len;
    int code, sig;
};

static char *read_file(const char *name, const char *suffix, size_t *len)
{
    char *path = xasprintf(DIR "%s%s", name, suffix);
    char *data = fs_read(path, 64 << 20, false, len, NULL);

    free(path);
    return data;
}

static void load(struct recording *r, const char *name)
{
    size_t len;
    char *meta = read_file(name, ".meta.json", &len);
    struct cJSON *j;
    const char *sig;

    assert_non_null(meta);
    j = json_parse(meta, len, NULL);
    assert_non_null(j);
    sig = json_str(j, "signal", "");
    r->sig = str_eq(sig, "SIGKILL") ? SIGKILL : str_eq(sig, "SIGTERM") ? SIGTERM : 0;
    r->code = (int)json_i64(j, "exit", -1);
    json_free(j);
    free(meta);
    r->data = read_file(name, ".jsonl", &r->len);
    assert_non_null(r->data);
    r->stderr_tail = read_file(name, ".stderr.txt", &len);
}

static void unload(struct recording *r)
{
    free(r->data);
    free(r->stderr_tail);
}

static const struct agent_adapter *claude(void)
{
    return agent_adapter_find("claude");
}

static void base36(struct buf *b, unsigned v)
{
    char d[16];
    size_t n = 0;

    do
        d[n++] = "0123456789abcdefghijklmnopqrstuvwxyz"[v % 36];
    while ((v /= 36) != 0);
    while (n)
        buf_addc(b, d[--n]);
}

/* The text of scenario "long". */
static char *long_text(void)
{
    struct buf b = BUF_INIT;

    buf_adds(&b,
             "# Report: wide text\n\n"
             "Plain ASCII first, then accents: café naïve Ångström façade.\n"
             "CJK: 你好，世界。日本語のテキストです。한국어 문장도 있습니다。\n"
             "Emoji: 😀 👍🏽 👩\u200d👩\u200d👧\u200d👦 🇫🇷 🏳\ufe0f\u200d🌈 "
             "❤\ufe0f "
             "1\ufe0f\u20e3 ✅ ⚠\ufe0f\n"
             "Combining: e\u0301 o\u0308 n\u0303 a\u0323\u0302 Z\u0351\u036b\u0343\u036a\u0302"
             "\u036b\u033d\u034f\u0334\u0319\u0324\u031e\u0349\u035a\u032f\u031e\u0320\u034d "
             "(zalgo)\n"
             "Right-to-left: שלום עולם — مرحبا بالعالم. Indic: नमस्ते दुनिया. "
             "Thai: สวัสดีชาวโลก\n"
             "Zero width: a\u200bb, no-break:\u00a0x, soft hyphen: co\u00adop, BOM-like: "
             "\ufeffend, bidi override: \u202eabc\u202c.\n"
             "Box: ┌──┬──┐ │▒▒│░░│ └──┴──┘  Math: ∑ᵢ xᵢ² ≤ ∞, ∀ε>0 ∃δ. Astral: 𝒜𝒷𝒸 𠜎𠜱\n\n"
             "## Code\n\n"
             "```c\n#include <stdio.h>\nint main(void) {\n\tprintf(\"tab\\tand \\\"quotes\\\" "
             "and 100%%\\n\"); /* 注释 */\n\treturn 0;\n}\n```\n\n"
             "```sh\nfor f in *.c; do cc -Wall -o \"${f%.c}\" \"$f\" || exit 1; done\n```\n\n"
             "| col | 値 |\n|---|---|\n| a | 1 |\n| ｂ | ２ |\n\n"
             "- item one\n  - nested **bold** _italic_ `code`\n- [ ] open task\n"
             "- [x] done task\n\n> quoted line with a very long tail:");
    for (unsigned i = 0; i < 90; i++)
        buf_addf(&b, " word%u", i * i * 7919 % 9973);
    buf_adds(&b, "\n\nA single unbroken token: ");
    for (unsigned i = 0; i < 60; i++)
        base36(&b, i * i * 104729 % 999983);
    buf_adds(&b, "\n\nThe end. 完。\n");
    return buf_detach(&b, NULL);
}

static int count_sessions(const struct tape *t)
{
    int n = 0;
    const char *last = NULL;

    for (size_t i = 0; i < t->ev.n; i++) {
        if (t->ev.v[i].kind != AGENT_SESSION)
            continue;
        assert_non_null(t->ev.v[i].id);
        assert_string_equal(t->ev.v[i].title, "2.1.332");
        n += !str_eq(last, t->ev.v[i].id);
        last = t->ev.v[i].id;
    }
    return n;
}

static void check_usage(const struct tape *t, size_t row)
{
    int64_t in = 0, cr = 0, cw = 0, out = 0;
    double cost = 0;

    for (size_t i = 0; i < t->ev.n; i++) {
        const struct agent_event *ev = &t->ev.v[i];

        if (ev->kind != AGENT_USAGE)
            continue;
        assert_int_equal(ev->scope, AGENT_SCOPE_TURN);
        in += ev->in_tokens;
        cr += ev->cache_read;
        cw += ev->cache_write;
        out += ev->out_tokens;
        cost += ev->cost_usd;
    }
    assert_int_equal(in, rows[row].usage.in);
    assert_int_equal(cr, rows[row].usage.cache_read);
    assert_int_equal(cw, rows[row].usage.cache_write);
    assert_int_equal(out, rows[row].usage.out);
    assert_true(fabs(cost - rows[row].usage.cost) < 1e-6);
}

static void check_retries(const struct tape *t, int want)
{
    int n = 0;

    for (size_t i = 0; i < t->ev.n; i++) {
        const struct agent_event *ev = &t->ev.v[i];

        if (ev->kind != AGENT_NOTICE || !ev->retry_attempt)
            continue;
        assert_int_equal(ev->retry_attempt, ++n);
        assert_true(ev->retry_max >= n && ev->retry_delay_ms > 500);
        assert_int_equal(ev->level, AGENT_WARN);
        assert_true(ev->http_status >= 401 && ev->text);
        assert_int_equal(ev->error_class, agent_classify(ev->http_status, NULL));
    }
    assert_int_equal(n, want);
}

static void check_row(const struct tape *t, size_t row, const struct recording *r)
{
    const struct agent_event *end = NULL, *ex = &t->ev.v[t->ev.n - 1];
    char *texts = tape_texts(t, AGENT_TEXT), *tools = tape_tools(t);
    char *want = rows[row].texts ? xstrdup(rows[row].texts) : long_text();

    for (size_t i = 0; i < t->ev.n; i++)
        if (t->ev.v[i].kind == AGENT_TURN_END)
            end = &t->ev.v[i];
    assert_string_equal(texts, want);
    assert_string_equal(tools, rows[row].tools);
    assert_int_equal(count_sessions(t), rows[row].sessions);
    assert_int_equal(tape_count(t, AGENT_TURN_BEGIN), rows[row].begins);
    assert_int_equal(tape_count(t, AGENT_TURN_END), rows[row].turns);
    if (end) {
        assert_int_equal(end->outcome, rows[row].outcome);
        assert_int_equal(end->error_class, rows[row].cls);
        assert_int_equal(end->http_status, rows[row].http);
        if (rows[row].end_text)
            assert_string_equal(end->text, rows[row].end_text);
        else
            assert_null(end->text);
    }
    check_usage(t, row);
    check_retries(t, rows[row].retries);
    assert_int_equal(ex->kind, AGENT_EXIT);
    assert_int_equal(ex->exit_code, r->code);
    assert_int_equal(ex->signal, r->sig);
    if (r->stderr_tail)
        assert_string_equal(ex->text, r->stderr_tail);
    assert_int_equal(tape_count(t, AGENT_RAW), 0);
    free(texts);
    free(tools);
    free(want);
}

static void test_recordings(void **state)
{
    static const size_t chunks[] = {1 << 30, 1, 7, 4096};

    (void)state;
    for (size_t i = 0; i < N_ROWS; i++) {
        struct recording r;
        struct tape t[4];

        load(&r, rows[i].name);
        for (size_t k = 0; k < 4; k++) {
            tape_run(&t[k], claude(), r.data, r.len, chunks[k], r.code, r.sig, r.stderr_tail);
            assert_string_equal(buf_str(&t[k].json), buf_str(&t[0].json));
        }
        print_message("# %s\n", rows[i].name);
        check_row(&t[0], i, &r);
        for (size_t k = 0; k < 4; k++)
            tape_release(&t[k]);
        unload(&r);
    }
}

/* What deltas add up to is what the whole block then says. */
static void test_deltas(void **state)
{
    static const char *const names[] = {"plain-partial", "long-partial", "tool-partial",
                                        "thinking-partial", "multiturn"};

    (void)state;
    for (size_t i = 0; i < 5; i++) {
        struct recording r;
        struct tape t;
        size_t finals = 0;

        load(&r, names[i]);
        tape_run(&t, claude(), r.data, r.len, 4096, 0, 0, NULL);
        for (size_t k = 0; k < t.ev.n; k++) {
            struct buf sum = BUF_INIT;
            const struct agent_event *ev = &t.ev.v[k];

            if ((ev->kind != AGENT_TEXT && ev->kind != AGENT_THINKING) || !ev->final)
                continue;
            for (size_t m = 0; m < k; m++)
                if (t.ev.v[m].kind == ev->kind && str_eq(t.ev.v[m].id, ev->id)) {
                    assert_int_equal(t.ev.v[m].mode, AGENT_APPEND);
                    buf_adds(&sum, t.ev.v[m].text);
                }
            assert_int_equal(ev->mode, AGENT_REPLACE);
            assert_string_equal(buf_str(&sum), ev->text);
            finals++;
            buf_release(&sum);
        }
        assert_true(finals >= 1);
        tape_release(&t);
        unload(&r);
    }
}

static const struct agent_event *last_tool(const struct tape *t)
{
    const struct agent_event *ev = NULL;

    for (size_t i = 0; i < t->ev.n; i++)
        if (t->ev.v[i].kind == AGENT_TOOL)
            ev = &t->ev.v[i];
    return ev;
}

static void test_details(void **state)
{
    struct recording r;
    struct tape t;
    const struct agent_event *ev;
    char *text;

    (void)state;
    load(&r, "tool");
    tape_run(&t, claude(), r.data, r.len, 4096, 0, 0, NULL);
    ev = tape_find(&t, AGENT_TOOL, 0);
    assert_int_equal(ev->state, AGENT_TOOL_RUNNING);
    assert_string_equal(ev->title,
                        "printf 'hello from the agent\\n' > hello.txt && cat hello.txt");
    assert_non_null(strstr(ev->input, "\"command\":\"printf 'hello from the agent\\\\n' > "));
    assert_string_equal(last_tool(&t)->output, "hello from the agent");
    assert_string_equal(last_tool(&t)->id, ev->id);
    tape_release(&t);
    unload(&r);

    load(&r, "toolfail");
    tape_run(&t, claude(), r.data, r.len, 4096, 0, 0, NULL);
    assert_string_equal(last_tool(&t)->output,
                        "Exit code 3\npartial output\n"
                        "ls: cannot access './no-such-folder': No such file or directory");
    tape_release(&t);
    unload(&r);

    load(&r, "thinking-partial");
    tape_run(&t, claude(), r.data, r.len, 4096, 0, 0, NULL);
    text = tape_texts(&t, AGENT_THINKING);
    assert_string_equal(text, "The user wants a sum. Two plus two is four. 二加二等于四。");
    free(text);
    tape_release(&t);
    unload(&r);

    load(&r, "permission-allow");
    tape_run(&t, claude(), r.data, r.len, 4096, 0, 0, NULL);
    ev = tape_find(&t, AGENT_ASK, 0);
    assert_string_equal(ev->id, "a3c4feab-f275-48ff-80a4-48a128f3e0ec");
    assert_string_equal(ev->name, "Bash");
    assert_string_equal(ev->title,
                        "printf 'hello from the agent\\n' > hello.txt && cat hello.txt");
    assert_non_null(strstr(ev->input, "\"description\":\"Run a scripted command\""));
    tape_release(&t);
    unload(&r);

    load(&r, "permission-none");
    tape_run(&t, claude(), r.data, r.len, 4096, 0, 0, NULL);
    ev = tape_find(&t, AGENT_NOTICE, 0);
    assert_int_equal(ev->level, AGENT_WARN);
    assert_true(str_starts(ev->text, "Bash was denied: Output redirection to "));
    assert_int_equal(tape_count(&t, AGENT_NOTICE), 1);
    tape_release(&t);
    unload(&r);

    load(&r, "multiturn");
    tape_run(&t, claude(), r.data, r.len, 4096, 0, 0, NULL);
    ev = tape_find(&t, AGENT_USER_ECHO, 0);
    assert_string_equal(ev->text, "[[case:plain]] Do what the scenario says.");
    assert_int_equal(tape_count(&t, AGENT_USER_ECHO), 3);
    assert_true(ev->time_ms == 1795965596178); /* 2026-11-29T15:19:56.178Z */
    tape_release(&t);
    unload(&r);
}

/* A decoder that begins where the last turn began makes the same events. */
static void test_resume(void **state)
{
    struct recording r;
    struct tape t, rest;
    struct buf want = BUF_INIT;
    uint64_t begin = 0;

    (void)state;
    load(&r, "multiturn");
    tape_run(&t, claude(), r.data, r.len, 4096, 0, 0, NULL);
    for (size_t i = 0; i < t.ev.n; i++)
        if (t.ev.v[i].kind == AGENT_TURN_BEGIN)
            begin = t.ev.v[i].offset;
    assert_true(begin > 0);
    for (size_t i = 0; i < t.ev.n; i++) {
        struct agent_event ev = t.ev.v[i];

        if (ev.offset < begin)
            continue;
        ev.offset -= begin;
        ev.raw_line = 0;
        agent_event_to_json(&ev, &want);
        buf_addc(&want, '\n');
    }
    tape_run(&rest, claude(), r.data + begin, r.len - begin, 4096, 0, 0, NULL);
    buf_clear(&rest.json);
    for (size_t i = 0; i < rest.ev.n; i++) {
        rest.ev.v[i].raw_line = 0;
        agent_event_to_json(&rest.ev.v[i], &rest.json);
        buf_addc(&rest.json, '\n');
    }
    assert_string_equal(buf_str(&rest.json), buf_str(&want));
    buf_release(&want);
    tape_release(&t);
    tape_release(&rest);
    unload(&r);
}

static void test_decode_fd(void **state)
{
    struct recording r;
    struct tape t;
    struct err e = {0};
    FILE *in = fopen(DIR "multiturn.jsonl", "rb"), *out = tmpfile();
    char *got;
    long n;

    (void)state;
    assert_non_null(in);
    assert_non_null(out);
    assert_int_equal(agent_decode_fd(claude(), fileno(in), 0, 0, "tail", out, &e), 0);
    n = ftell(out);
    rewind(out);
    got = xcalloc(1, (size_t)n + 1);
    assert_int_equal(fread(got, 1, (size_t)n, out), n);
    load(&r, "multiturn");
    tape_run(&t, claude(), r.data, r.len, 4096, 0, 0, "tail");
    assert_string_equal(got, buf_str(&t.json));
    tape_release(&t);
    unload(&r);
    free(got);
    fclose(in);
    fclose(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recordings), cmocka_unit_test(test_deltas),
        cmocka_unit_test(test_details),    cmocka_unit_test(test_resume),
        cmocka_unit_test(test_decode_fd),
    };

    return cmocka_run_group_tests_name("agent_claude", tests, NULL, NULL);
}
