/* Every recording of every agent against tests/fixtures/recordings.tsv: what a reader of
 * the raw bytes found in it. Chunks of 1, 7 and 4096 bytes must give the same events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../lib/tape.h"

#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIR "tests/fixtures/"
#define MAX_SESSIONS 4

enum column {
    CASE,
    ADAPTER,
    EXIT,
    SESSIONS,
    TURNS,
    OUTCOME,
    CLASS,
    HTTP,
    TOKENS,
    COST,
    RETRIES,
    WARNINGS,
    TOOLS,
    TAIL,
    SAYS,
    TEXT,
    N_COLUMNS
};

static struct table {
    char *data;
    char **lines;
    size_t n;
} table;

static char *file(const char *name, const char *suffix, size_t *len)
{
    char *path = xasprintf(DIR "%s%s", name, suffix);
    char *data = fs_read(path, 64 << 20, false, len, NULL);

    free(path);
    return data;
}

/* The fields of a line in place; how many there are. */
static size_t cut(char *line, char **f, size_t max)
{
    size_t n = 0;

    for (char *p = line; p && n < max; n++) {
        f[n] = p;
        p = strchr(p, '\t');
        if (p)
            *p++ = '\0';
    }
    return n;
}

/* A cell as it is meant: "-" is nothing, escapes as in JSON. New string. */
static char *meant(const char *cell)
{
    char *quoted = xasprintf("\"%s\"", cell);
    struct cJSON *j = json_parse(quoted, strlen(quoted), NULL);
    char *s = xstrdup(str_eq(cell, "-") ? "" : json_str_of(j));

    assert_non_null(j);
    json_free(j);
    free(quoted);
    return s;
}

/* The text of a row: its own, or that of the scenario that the model followed. */
static char *text_meant(const char *cell)
{
    if (*cell != '=')
        return meant(cell);
    for (size_t i = 0; i < table.n; i++) {
        char *copy = xstrdup(table.lines[i]), *f[3], *text = NULL;

        if (cut(copy, f, 3) == 3 && str_eq(f[0], "scenario") && str_eq(f[1], cell + 1))
            text = meant(f[2]);
        free(copy);
        if (text)
            return text;
    }
    fail_msg("no scenario %s", cell);
    return NULL;
}

/* --- what came out, in the table's words ------------------------------------------- */

/* Ids of the sessions in order, joined by commas. */
static char *sessions_of(const struct tape *t)
{
    const char *seen[MAX_SESSIONS];
    size_t n = 0, k;
    struct buf b = BUF_INIT;

    for (size_t i = 0; i < t->ev.n; i++) {
        const struct agent_event *ev = &t->ev.v[i];

        if (ev->kind != AGENT_SESSION || !ev->id)
            continue;
        for (k = 0; k < n && !str_eq(seen[k], ev->id); k++)
            ;
        if (k < n || n == MAX_SESSIONS)
            continue;
        seen[n++] = ev->id;
        buf_addf(&b, "%s%s", b.len ? "," : "", ev->id);
    }
    return b.len ? buf_detach(&b, NULL) : xstrdup("-");
}

struct sum {
    int64_t n[4];
    double cost;
    bool unpriced;
};

static void add(struct sum *s, const struct agent_event *ev)
{
    s->n[0] += ev->in_tokens;
    s->n[1] += ev->cache_read;
    s->n[2] += ev->cache_write;
    s->n[3] += ev->out_tokens;
    if (isnan(ev->cost_usd))
        s->unpriced = true;
    else
        s->cost += ev->cost_usd;
}

/* Deltas add up; of a session's totals the last one counts. */
static struct sum usage_of(const struct tape *t)
{
    struct sum s = {0};
    const struct agent_event *total = NULL;

    for (size_t i = 0; i < t->ev.n; i++) {
        const struct agent_event *ev = &t->ev.v[i];

        if (ev->kind != AGENT_USAGE)
            continue;
        if (ev->scope != AGENT_SCOPE_SESSION_TOTAL) {
            add(&s, ev);
            continue;
        }
        assert_non_null(ev->id);
        if (total)
            assert_string_equal(ev->id, total->id);
        total = ev;
    }
    if (total)
        add(&s, total);
    return s;
}

static int count_notices(const struct tape *t, bool retries)
{
    int n = 0;

    for (size_t i = 0; i < t->ev.n; i++) {
        const struct agent_event *ev = &t->ev.v[i];

        if (ev->kind != AGENT_NOTICE || ev->level != AGENT_WARN)
            continue;
        assert_non_null(ev->text);
        assert_true(ev->retry_attempt <= ev->retry_max);
        n += (ev->retry_attempt > 0) == retries;
    }
    return n;
}

/* The last tool's output that says anything. */
static const char *last_output(const struct tape *t)
{
    for (size_t i = t->ev.n; i > 0; i--) {
        const char *s = t->ev.v[i - 1].output;

        if (t->ev.v[i - 1].kind == AGENT_TOOL && s && s[strspn(s, " \n\r\t")])
            return s;
    }
    return "";
}

static const struct agent_event *last_of(const struct tape *t, enum agent_kind kind)
{
    for (size_t i = t->ev.n; i > 0; i--)
        if (t->ev.v[i - 1].kind == kind)
            return &t->ev.v[i - 1];
    return NULL;
}

static const char *class_name(enum agent_error_class c)
{
    static const char *const names[] = {"none",    "auth",  "rate",    "overload",
                                        "billing", "model", "network", "other"};

    return names[c];
}

/* --- one row --------------------------------------------------------------------------- */

static void check_end(const struct tape *t, char *const *f)
{
    const struct agent_event *end = last_of(t, AGENT_TURN_END), *ex = &t->ev.v[t->ev.n - 1];
    char *says = meant(f[SAYS]);

    assert_int_equal(tape_count(t, AGENT_TURN_END), atoi(f[TURNS]));
    assert_true(tape_count(t, AGENT_TURN_BEGIN) <= tape_count(t, AGENT_TURN_END));
    assert_int_equal(tape_count(t, AGENT_EXIT), 1);
    assert_int_equal(ex->kind, AGENT_EXIT);
    assert_string_equal(end ? agent_outcome_name(end->outcome) : "-", f[OUTCOME]);
    if (!end)
        end = ex;
    assert_string_equal(class_name(end->error_class), f[CLASS]);
    assert_int_equal(end->http_status, atoi(f[HTTP]));
    if (*says)
        assert_true(end->text && strstr(end->text, says));
    free(says);
}

static void check_usage(const struct tape *t, char *const *f)
{
    struct sum s = usage_of(t);
    char *tokens = xasprintf("%lld %lld %lld %lld", (long long)s.n[0], (long long)s.n[1],
                             (long long)s.n[2], (long long)s.n[3]);

    assert_string_equal(tokens, f[TOKENS]);
    if (str_eq(f[COST], "-"))
        assert_true(s.unpriced || !tape_find(t, AGENT_USAGE, 0));
    else
        assert_true(!s.unpriced && fabs(s.cost - strtod(f[COST], NULL)) < 1e-6);
    free(tokens);
}

static void check_words(const struct tape *t, char *const *f)
{
    char *texts = tape_texts(t, AGENT_TEXT), *want = text_meant(f[TEXT]);
    char *tools = tape_tools(t), *ids = sessions_of(t), *tail = meant(f[TAIL]);
    const char *out = last_output(t);
    size_t len = strlen(out), n = strlen(tail);

    assert_string_equal(texts, want);
    assert_string_equal(*tools ? tools : "-", f[TOOLS]);
    assert_string_equal(ids, f[SESSIONS]);
    assert_int_equal(tape_count(t, AGENT_RAW), 0);
    while (len && strchr(" \n\r\t", out[len - 1]))
        len--;
    assert_true(len >= n && memcmp(out + len - n, tail, n) == 0);
    free(texts);
    free(want);
    free(tools);
    free(ids);
    free(tail);
}

static void check_row(char *const *f)
{
    static const size_t chunks[] = {4096, 7, 1};
    const struct agent_adapter *a = agent_adapter_find(f[ADAPTER]);
    char *name = xasprintf("recordings/%s", f[CASE]);
    size_t len, err_len;
    char *data = file(name, ".jsonl", &len), *err = file(name, ".stderr.txt", &err_len);
    bool killed = f[EXIT][0] == 'S';
    int code = killed ? -1 : atoi(f[EXIT]), sig = killed ? atoi(f[EXIT] + 1) : 0;
    struct tape first, t;

    assert_non_null(data);
    print_message("# %s\n", f[CASE]);
    tape_run(&first, a, data, len, chunks[0], code, sig, err);
    for (size_t k = 1; k < 3; k++) {
        tape_run(&t, a, data, len, chunks[k], code, sig, err);
        assert_string_equal(buf_str(&t.json), buf_str(&first.json));
        tape_release(&t);
    }
    check_end(&first, f);
    check_usage(&first, f);
    assert_int_equal(count_notices(&first, true), atoi(f[RETRIES]));
    assert_int_equal(count_notices(&first, false), atoi(f[WARNINGS]));
    check_words(&first, f);
    tape_release(&first);
    free(name);
    free(data);
    free(err);
}

static void test_adapter(void **state)
{
    const char *want = *state;
    size_t n = 0;

    assert_non_null(agent_adapter_find(want));
    for (size_t i = 0; i < table.n; i++) {
        char *copy = xstrdup(table.lines[i]), *f[N_COLUMNS + 1];

        if (*copy != '#' && cut(copy, f, N_COLUMNS + 1) == N_COLUMNS &&
            str_eq(f[ADAPTER], want)) {
            check_row(f);
            n++;
        }
        free(copy);
    }
    assert_true(n > 0);
}

/* A recording without a row would be one that nobody looks at. */
static void test_all_of_them(void **state)
{
    FILE *p = popen("ls " DIR "recordings/*.jsonl | wc -l", "r");
    int files = 0;
    size_t rows = 0;

    (void)state;
    assert_non_null(p);
    assert_int_equal(fscanf(p, "%d", &files), 1);
    assert_int_equal(pclose(p), 0);
    for (size_t i = 0; i < table.n; i++)
        rows += table.lines[i][0] != '#' && !str_starts(table.lines[i], "scenario\t");
    assert_int_equal(files, rows);
}

static int read_table(void **state)
{
    size_t len;

    (void)state;
    table.data = file("recordings", ".tsv", &len);
    if (!table.data)
        return -1;
    table.lines = xcalloc(len, sizeof(*table.lines));
    for (char *save, *p = strtok_r(table.data, "\n", &save); p; p = strtok_r(NULL, "\n", &save))
        table.lines[table.n++] = p;
    return 0;
}

static int free_table(void **state)
{
    (void)state;
    free(table.lines);
    free(table.data);
    return 0;
}

#define OF(adapter)                                        \
    {                                                      \
        adapter, test_adapter, NULL, NULL, (void *)adapter \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_of_them),
        OF("claude"),
        OF("codex"),
        OF("opencode"),
        OF("opencode-serve"),
        OF("pi"),
        OF("pi-json"),
        OF("gemini"),
        OF("qwen"),
    };

    return cmocka_run_group_tests(tests, read_table, free_table);
}
