/* A decoder that begins where a turn began makes the events, ids and all, that the one from
 * the beginning made: for every recording, and for several runs in one log. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cct/agent.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIR_NAME "tests/fixtures/recordings"
#define MAX_BEGINS 64

struct tail {
    uint64_t from; /* events from this byte on */
    struct buf json;
    uint64_t begins[MAX_BEGINS];
    size_t n;
};

static void on_event(void *ctx, const struct agent_event *from)
{
    struct tail *t = ctx;
    struct agent_event ev = *from;

    if (ev.kind == AGENT_TURN_BEGIN && t->n < MAX_BEGINS)
        t->begins[t->n++] = ev.offset;
    ev.raw_line = 0; /* counted anew */
    if (ev.offset < t->from)
        return;
    agent_event_to_json(&ev, &t->json);
    buf_addc(&t->json, '\n');
}

/* Where runs end in the log. */
struct ends {
    const size_t *at;
    size_t n;
};

static void decode(const struct agent_adapter *a, const char *data, size_t len, uint64_t begin,
                   const struct ends *ends, struct tail *t)
{
    struct agent_dec *d = agent_dec_new(a, begin, on_event, t);
    size_t at = (size_t)begin;

    for (size_t i = 0; i < ends->n; i++) {
        if (ends->at[i] <= at && begin)
            continue; /* before it began */
        agent_dec_feed(d, data + at, ends->at[i] - at);
        agent_dec_exit(d, 0, 0, "");
        at = ends->at[i];
    }
    agent_dec_feed(d, data + at, len - at);
    agent_dec_free(d);
}

static void check_log(const struct agent_adapter *a, const char *data, size_t len,
                      const struct ends *ends)
{
    struct tail all = {0}, want, got;

    decode(a, data, len, 0, ends, &all);
    for (size_t i = 0; i < all.n; i++) {
        want = got = (struct tail){.from = all.begins[i]};
        decode(a, data, len, 0, ends, &want);
        decode(a, data, len, all.begins[i], ends, &got);
        /* what comes before the turn's begin in its own line is said again or not: the
         * store has it */
        assert_string_equal(buf_str(&got.json), buf_str(&want.json));
        buf_release(&want.json);
        buf_release(&got.json);
    }
    buf_release(&all.json);
}

static const struct agent_adapter *adapter_of(const char *name)
{
    char tool[32];

    if (str_starts(name, "pi-rpc"))
        return agent_adapter_find("pi");
    if (str_starts(name, "pi-"))
        return agent_adapter_find("pi-json");
    if (str_starts(name, "opencode-serve"))
        return agent_adapter_find("opencode-serve");
    str_copy(tool, sizeof(tool), name);
    tool[strcspn(tool, "-")] = 0;
    return agent_adapter_find(tool);
}

static void every_recording(void **state)
{
    DIR *dir = opendir(DIR_NAME);
    struct dirent *e;
    size_t n = 0;

    (void)state;
    assert_non_null(dir);
    while ((e = readdir(dir))) {
        const struct agent_adapter *a = adapter_of(e->d_name);
        char path[512];
        char *data;
        size_t len;
        struct ends ends = {&len, 1};

        if (!a || !str_ends(e->d_name, ".jsonl"))
            continue;
        snprintf(path, sizeof(path), DIR_NAME "/%s", e->d_name);
        data = fs_read(path, 64 << 20, false, &len, NULL);
        assert_non_null(data);
        check_log(a, data, len, &ends);
        free(data);
        n++;
    }
    closedir(dir);
    assert_true(n > 200);
}

/* --- runs behind each other ------------------------------------------------------------ */

struct log {
    struct buf b;
    size_t ends[8];
    size_t n;
};

static void add_run(struct log *l, const char *name)
{
    char *path = xasprintf(DIR_NAME "/%s.jsonl", name);
    size_t len;
    char *data = fs_read(path, 64 << 20, false, &len, NULL);

    assert_non_null(data);
    buf_add(&l->b, data, len);
    l->ends[l->n++] = l->b.len;
    free(data);
    free(path);
}

struct seen {
    size_t turns, exits, begins, tools_unknown;
    char *ids[64];
    size_t n;
    enum agent_outcome outcomes[8];
};

static void look(void *ctx, const struct agent_event *ev)
{
    struct seen *s = ctx;

    s->begins += ev->kind == AGENT_TURN_BEGIN;
    s->exits += ev->kind == AGENT_EXIT;
    if (ev->kind == AGENT_TURN_END)
        s->outcomes[s->turns++] = ev->outcome;
    if (ev->kind == AGENT_TOOL && ev->state == AGENT_TOOL_UNKNOWN)
        s->tools_unknown++;
    if (ev->kind == AGENT_TEXT && ev->final && s->n < 64)
        s->ids[s->n++] = xstrdup(ev->id);
}

static void several(const char *adapter, const char *a, const char *b, const char *c,
                    size_t turns, size_t unknown)
{
    const struct agent_adapter *ad = agent_adapter_find(adapter);
    struct log l = {0};
    struct seen s = {0};
    struct agent_dec *d = agent_dec_new(ad, 0, look, &s);
    size_t at = 0;
    struct ends ends;

    add_run(&l, a);
    add_run(&l, b);
    add_run(&l, c);
    for (size_t i = 0; i < l.n; i++) {
        agent_dec_feed(d, l.b.p + at, l.ends[i] - at);
        agent_dec_exit(d, 0, 0, NULL);
        at = l.ends[i];
        assert_false(agent_dec_busy(d));
    }
    agent_dec_free(d);
    assert_int_equal(s.begins, turns);
    assert_int_equal(s.turns, turns);
    assert_int_equal(s.exits, 3);
    assert_int_equal(s.tools_unknown, unknown);
    for (size_t i = 0; i < s.n; i++)
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(s.ids[i], s.ids[k]);
    for (size_t i = 0; i < s.n; i++)
        free(s.ids[i]);
    ends = (struct ends){l.ends, l.n};
    check_log(ad, l.b.p, l.b.len, &ends);
    buf_release(&l.b);
}

static void runs_in_one_log(void **state)
{
    (void)state;
    several("codex", "codex-tool", "codex-toolfail", "codex-tool", 3, 0);
    several("codex", "codex-sigkill-tool", "codex-e401", "codex-plain", 3, 1);
    several("opencode", "opencode-tool", "opencode-e401", "opencode-plain", 3, 0);
    several("opencode", "opencode-plain", "opencode-resume-unknown", "opencode-toolfail", 2, 0);
    several("pi-json", "pi-tool", "pi-e429", "pi-plain", 3, 0);
    several("gemini", "gemini-tool", "gemini-sigint-group", "gemini-plain", 3, 0);
    several("qwen", "qwen-tool-partial", "qwen-e401", "qwen-plain", 3, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_recording),
        cmocka_unit_test(runs_in_one_log),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
