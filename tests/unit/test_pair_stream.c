/* Agents that take turns in one stream: every recording of one turn says the same within a
 * pair as alone, and always ends its turn; ids that programs count anew in each run stay
 * apart; ends of runs that are told late. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../lib/tape.h"

#include <cct/util/fs.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIR "tests/fixtures/recordings/"
#define MARK                                                                        \
    "{\"cc_tui\":\"turn\",\"role\":\"%s\",\"adapter\":\"%s\",\"message\":\"m_%d\"," \
    "\"by\":\"pair\",\"text\":\"@%s do it\"}\n"

static const char *const cases[][2] = {
    {"claude-plain", "claude"},        {"claude-tool-partial", "claude"},
    {"claude-e401", "claude"},         {"claude-toolfail", "claude"},
    {"claude-maxtokens", "claude"},    {"claude-nokey", "claude"},
    {"claude-thinking-partial", "claude"}, {"claude-sigint", "claude"},
    {"claude-resume-unknown", "claude"},   {"codex-plain", "codex"},
    {"codex-tool", "codex"},           {"codex-e401", "codex"},
    {"codex-resume2", "codex"},        {"codex-nogit", "codex"},
    {"opencode-plain", "opencode"},    {"opencode-tool", "opencode"},
    {"opencode-e401", "opencode"},     {"pi-plain", "pi-json"},
    {"pi-tool", "pi-json"},            {"pi-e401", "pi-json"},
    {"pi-nokey", "pi-json"},           {"pi-retry429", "pi-json"},
    {"gemini-plain", "gemini"},        {"gemini-e401", "gemini"},
    {"gemini-nokey", "gemini"},        {"qwen-plain", "qwen"},
    {"qwen-tool", "qwen"},             {"qwen-e401", "qwen"},
};

static char *file(const char *name, const char *suffix, size_t *len)
{
    char *path = xasprintf(DIR "%s%s", name, suffix);
    char *data = fs_read(path, 16 << 20, false, len, NULL);

    free(path);
    return data;
}

static struct agent_event sum_of(const struct tape *t)
{
    struct agent_event sum = AGENT_EVENT(AGENT_USAGE);

    sum.cost_usd = 0;
    for (size_t i = 0; i < t->ev.n; i++) {
        const struct agent_event *ev = &t->ev.v[i];

        if (ev->kind != AGENT_USAGE)
            continue;
        sum.in_tokens += ev->in_tokens;
        sum.cache_read += ev->cache_read;
        sum.out_tokens += ev->out_tokens;
        sum.cost_usd += isnan(ev->cost_usd) ? 0 : ev->cost_usd;
    }
    return sum;
}

static const struct agent_event *last_end(const struct tape *t)
{
    for (size_t i = t->ev.n; i > 0; i--)
        if (t->ev.v[i - 1].kind == AGENT_TURN_END)
            return &t->ev.v[i - 1];
    return NULL;
}

static void same_text(const char *name, const char *what, char *a, char *b)
{
    if (!str_eq(a, b))
        fail_msg("%s: %s differ:\n%s\n%s", name, what, a ? a : "-", b ? b : "-");
    free(a);
    free(b);
}

static void same(const char *name, const struct tape *alone, const struct tape *in_pair)
{
    const struct agent_event *x = last_end(alone), *y = last_end(in_pair);
    struct agent_event a = sum_of(alone), b = sum_of(in_pair);

    same_text(name, "texts", tape_texts(alone, AGENT_TEXT), tape_texts(in_pair, AGENT_TEXT));
    same_text(name, "thoughts", tape_texts(alone, AGENT_THINKING),
              tape_texts(in_pair, AGENT_THINKING));
    same_text(name, "tools", tape_tools(alone), tape_tools(in_pair));
    assert_int_equal(a.in_tokens, b.in_tokens);
    assert_int_equal(a.cache_read, b.cache_read);
    assert_int_equal(a.out_tokens, b.out_tokens);
    assert_true(fabs(a.cost_usd - b.cost_usd) < 1e-9);
    if (tape_count(in_pair, AGENT_TURN_BEGIN) != 1 || tape_count(in_pair, AGENT_TURN_END) != 1 ||
        tape_count(in_pair, AGENT_USER_ECHO) != 1)
        fail_msg("%s: not one turn", name);
    assert_string_equal(y->id, "m_1");
    if (!x) {
        assert_int_equal(y->outcome, AGENT_FAILED); /* it never spoke of a turn */
        return;
    }
    if (x->outcome != y->outcome || x->error_class != y->error_class ||
        x->http_status != y->http_status || !str_eq(x->text, y->text))
        fail_msg("%s: the turn ends otherwise: %d %d %s", name, (int)y->outcome,
                 (int)y->error_class, y->text ? y->text : "-");
}

static void roles_everywhere(const char *name, const struct tape *t)
{
    for (size_t i = 0; i < t->ev.n; i++)
        if (!str_eq(t->ev.v[i].role, "checker"))
            fail_msg("%s: an event without its role: %s", name,
                     agent_kind_name(t->ev.v[i].kind));
}

static void test_recordings(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *name = cases[i][0];
        const struct agent_adapter *a = agent_adapter_find(cases[i][1]);
        size_t len = 0, n = 0;
        char *data = file(name, ".jsonl", &len), *err = file(name, ".stderr.txt", &n);
        struct tape alone = {0}, whole = {0}, pieces = {0};
        struct buf b = BUF_INIT;
        int sig = strstr(name, "sigint") ? SIGINT : 0, code = strstr(name, "plain") ? 0 : 1;

        if (!data || !a)
            fail_msg("%s: not there", name);
        buf_addf(&b, MARK, "checker", cases[i][1], 1, "checker");
        buf_add(&b, data, len);
        tape_run(&alone, a, data, len, 4096, code, sig, err);
        tape_run(&whole, agent_adapter_find("pair"), b.p, b.len, 4096, code, sig, err);
        tape_run(&pieces, agent_adapter_find("pair"), b.p, b.len, 7, code, sig, err);
        same(name, &alone, &whole);
        roles_everywhere(name, &whole);
        assert_string_equal(buf_str(&whole.json), buf_str(&pieces.json));
        tape_release(&alone);
        tape_release(&whole);
        tape_release(&pieces);
        buf_release(&b);
        free(data);
        free(err);
    }
}

/* --- several runs --------------------------------------------------------------------- */

static const char codex[] =
    "{\"type\":\"thread.started\",\"thread_id\":\"t1\"}\n{\"type\":\"turn.started\"}\n"
    "{\"type\":\"item.completed\",\"item\":{\"id\":\"item_0\",\"type\":\"agent_message\","
    "\"text\":\"%s\"}}\n"
    "{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":%d,\"cached_input_tokens\":0,"
    "\"output_tokens\":1}}\n";

struct seen {
    char ids[8][40], ends[8][40];
    int n_ids, n_ends;
    enum agent_outcome outcomes[8];
};

static void see(void *ctx, const struct agent_event *ev)
{
    struct seen *s = ctx;

    if (ev->kind == AGENT_TEXT && s->n_ids < 8)
        str_copy(s->ids[s->n_ids++], 40, ev->id);
    if (ev->kind == AGENT_TURN_END && s->n_ends < 8) {
        s->outcomes[s->n_ends] = ev->outcome;
        str_copy(s->ends[s->n_ends++], 40, ev->id);
    }
}

static void feed(struct agent_dec *d, const char *role, const char *adapter, int n,
                 const char *more)
{
    char *line = xasprintf(MARK, role, adapter, n, role);

    agent_dec_feed(d, line, strlen(line));
    agent_dec_feed(d, more, strlen(more));
    free(line);
}

static void test_runs(void **state)
{
    struct seen s = {0};
    struct agent_dec *d = agent_dec_new(agent_adapter_find("pair"), 0, see, &s);
    char first[800], second[800];
    (void)state;

    snprintf(first, sizeof(first), codex, "one", 10);
    snprintf(second, sizeof(second), codex, "two", 20);
    feed(d, "designer", "codex", 1, first);
    agent_dec_exit(d, 0, 0, NULL);
    feed(d, "checker", "codex", 2, second);
    /* the next run's bytes are here before the end of this one is told */
    feed(d, "designer", "codex", 3, "");
    agent_dec_exit(d, 0, 0, NULL); /* of run 2 */
    agent_dec_feed(d, first, strlen(first));
    agent_dec_exit(d, 0, 0, NULL);
    /* one that prints nothing, and one cut short by a new one */
    feed(d, "checker", "opencode", 4, "");
    agent_dec_exit(d, 127, 0, "sh: opencode: not found\n");
    feed(d, "checker", "opencode", 5, "");
    feed(d, "designer", "codex", 6, "");
    agent_dec_exit(d, 0, 0, NULL);
    agent_dec_exit(d, 143, 0, NULL);
    assert_int_equal(s.n_ids, 3);
    assert_string_not_equal(s.ids[0], s.ids[1]);
    assert_string_not_equal(s.ids[0], s.ids[2]);
    assert_int_equal(s.n_ends, 6);
    for (int i = 0; i < 6; i++) {
        char id[16];

        snprintf(id, sizeof(id), "m_%d", i + 1);
        assert_string_equal(s.ends[i], id);
        assert_int_equal(s.outcomes[i], i < 3 ? AGENT_OK : AGENT_FAILED);
    }
    agent_dec_free(d);
}

static void test_message(void **state)
{
    const struct agent_adapter *a = agent_adapter_find("pair");
    struct buf b = BUF_INIT;
    struct err e = {0};
    char *big;
    (void)state;

    assert_int_equal(a->encode_message("@checker look", 13, &b, &e), 0);
    assert_string_equal(buf_str(&b), "look");
    assert_int_equal(a->encode_message("@checker", 8, &b, &e), ERR_INVALID);
    buf_clear(&b);
    big = xmalloc(LIM_MESSAGE_BYTES + 2);
    memset(big, 'x', LIM_MESSAGE_BYTES + 1);
    big[LIM_MESSAGE_BYTES + 1] = 0;
    assert_int_equal(a->encode_message(big, LIM_MESSAGE_BYTES + 1, &b, &e), ERR_LIMIT);
    assert_int_equal(b.len, 0);
    free(big);
    buf_release(&b);
}

/* What a role's program prints is read as its own stream is: also what is no JSON, or too long
 * to be read. */
static void test_odd_lines(void **state)
{
    static const char early[] = "a\0b\n\n";
    struct tape t;
    struct buf b = BUF_INIT;

    (void)state;
    buf_add(&b, early, sizeof(early) - 1);
    buf_addf(&b, MARK, "designer", "pi-json", 1, "designer");
    buf_adds(&b, "{\"type\":\"agent_start\"}\n{\"type\":\"message_end\",\"message\":{\"role\":"
                 "\"assistant\",\"stopReason\":\"stop\",\"content\":[]}}\n"
                 "{\"type\":\"agent_end\",\"messages\":[\"");
    memset(buf_reserve(&b, LIM_LINE_BYTES), 'x', LIM_LINE_BYTES);
    b.len += LIM_LINE_BYTES;
    buf_adds(&b, "\"]}\n");
    tape_run(&t, agent_adapter_find("pair"), b.p, b.len, 65536, 0, 0, NULL);
    assert_int_equal(tape_count(&t, AGENT_RAW), 1);
    assert_string_equal(t.ev.v[0].text, "a b");
    assert_int_equal(tape_count(&t, AGENT_NOTICE), 0);
    assert_int_equal(last_end(&t)->outcome, AGENT_OK);
    tape_release(&t);
    buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_recordings),
                                       cmocka_unit_test(test_runs),
                                       cmocka_unit_test(test_message),
                                       cmocka_unit_test(test_odd_lines)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
