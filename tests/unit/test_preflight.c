/* keys/preflight: for every tool, a key that is missing, cannot be used, hides another one
 * or lies on another level: the sentence names provider, level, last four and the way out. */
#include <cct/config/tools.h>
#include <cct/keys.h>
#include <cct/model/sandbox.h>
#include <cct/secrets/vault.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* keep last */
#include <cmocka.h>

#define LIT(s) ((char *)(s)) /* only read */
enum { ROWS = 4 };

static struct tools *all;
static struct keys_outside outside;
static struct st_key rows[ROWS];
static struct st_keys stored;
static struct keys_at at;
static const char *needs[8];
static char *const *needs_env;
static const struct kv *vars; /* of the project */
static const struct tool *tool;

static const char *variable_of(const char *provider)
{
    return tool_provider_env(tool_provider_bit(provider), 0);
}

static void forget(void)
{
    for (unsigned bit = 1; bit <= TOOL_GITHUB; bit <<= 1)
        for (size_t i = 0; tool_provider_env(bit, i); i++)
            unsetenv(tool_provider_env(bit, i));
    keys_take_env();
    memset(rows, 0, sizeof(rows));
    stored = (struct st_keys){.v = rows, .n = 0, .project = LIT("id-acme")};
    at = (struct keys_at){.outside = &outside, .stored = &stored, .api = "https://api.e2b.app",
                          .project = "acme"};
}

static void row(const char *project, const char *provider, const char *last4)
{
    struct st_key *k = &rows[stored.n++];

    k->project = LIT(project);
    k->project_name = project ? LIT(str_eq(project, "id-acme") ? "acme" : "other") : NULL;
    k->provider = LIT(provider);
    k->api = LIT("");
    k->mark = LIT(last4);
    str_copy(k->last4, sizeof(k->last4), last4);
}

static void set_env(const char *provider, const char *value)
{
    setenv(variable_of(provider), value, 1);
    keys_take_env();
}

/* The state, and every word that has to be in the sentence. */
static void expect(enum key_state st, const struct kv *own, const char *const *words)
{
    struct key_need n = {tool->label, needs, needs_env, own, vars};
    struct key_check c;

    keys_preflight(&at, &n, &c);
    if (c.state != st)
        fail_msg("%s: state %d, not %d: %s", tool->name, c.state, st, c.text);
    for (; *words; words++)
        if (!strstr(c.text, *words))
            fail_msg("%s: no '%s' in: %s", tool->name, *words, c.text);
    assert_true(strlen(c.text) < 480); /* an error's text holds it */
    key_check_release(&c);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Each tool that needs a key. */
static void each(void (*fn)(void))
{
    for (size_t i = 0; (tool = tools_at(all, i)); i++) {
        size_t n = 0;
        for (unsigned bit = 1; bit <= TOOL_GITHUB; bit <<= 1)
            if (tool_needs(tool, NULL) & bit)
                needs[n++] = tool_provider_name(bit);
        needs[n] = NULL;
        if (!n)
            continue;
        forget();
        fn();
    }
}

static void one_missing(void)
{
    expect(KEY_LACKS, NULL, WORDS(tool->label, needs[0], "environment", "project acme", "for you",
                                  "keys add", variable_of(needs[0])));
}

static void one_elsewhere(void)
{
    row("id-other", needs[0], "9f21");
    expect(KEY_LACKS, NULL, WORDS(needs[0], "****9f21", "project other", "not the current one",
                                  "keys add", "--project"));
}

static void one_other_provider(void)
{
    const char *const *p = key_providers + 1;

    while (tool_needs(tool, NULL) & tool_provider_bit(*p))
        p++;
    if (str_eq(*p, "github"))
        return;
    row(NULL, *p, "77aa");
    expect(KEY_LACKS, NULL, WORDS("does not use", *p, "****77aa", "user key"));
}

static void one_ready(void)
{
    row(NULL, needs[0], "1111");
    expect(KEY_READY, NULL, WORDS(needs[0], "****1111", "user key"));
}

/* The project's hides the user's, a variable both. */
static void one_hides(void)
{
    row(NULL, needs[0], "1111");
    row("id-acme", needs[0], "2222");
    expect(KEY_HIDES, NULL, WORDS(needs[0], "****2222", "project key", "hides", "****1111",
                                  "user key"));
    set_env(needs[0], "0123456789abcdefghij3333");
    expect(KEY_HIDES, NULL, WORDS("****3333", "environment", "hides", "****2222", "project key",
                                  "****1111", "user key"));
}

/* The nearest level counts even when its key is of no use. */
static void one_unusable(void)
{
    row(NULL, needs[0], "1111");
    set_env(needs[0], "not a key at all 4444");
    expect(KEY_UNUSABLE, NULL, WORDS(variable_of(needs[0]), "****4444", "environment", "is no key",
                                     "unset it", "hides", "****1111"));
    unsetenv(variable_of(needs[0]));
    keys_take_env();
    at.locked = "the vault is locked";
    expect(KEY_UNUSABLE, NULL, WORDS(needs[0], "****1111", "user key", "the vault is locked"));
    at.locked = NULL;
    row("id-acme", needs[0], "2222");
    at.by_folder = true;
    expect(KEY_UNUSABLE, NULL, WORDS(needs[0], "****2222", "acme", "keys trust", "hides",
                                     "****1111"));
}

static void one_doubtful(void)
{
    bool token = str_eq(needs[0], "github");

    set_env(needs[0], token ? "sk-or-0123456789abcdef5555" : "ghp_0123456789abcdef5555");
    expect(KEY_DOUBTFUL, NULL, WORDS(variable_of(needs[0]), "****5555", "environment",
                                     "looks like a key of", needs[0]));
}

static void one_given(void)
{
    struct kv own[] = {{LIT(variable_of(needs[0])), LIT("x")}, {NULL, NULL}};

    row("id-acme", needs[0], "2222");
    expect(KEY_HIDES, own, WORDS(variable_of(needs[0]), "given with the sandbox", "hides",
                                 "****2222"));
    own[0].v = LIT(""); /* empty is as good as none */
    expect(KEY_READY, own, WORDS("****2222", "project key"));
}

/* The service said no: which key that was, and how to have another. */
static void one_refused(void)
{
    struct key_need n = {.label = tool->label, .needs = needs};
    char *text, *command = xasprintf("keys add %s --project", needs[0]);

    row(NULL, needs[0], "1111");
    row("id-acme", needs[0], "2222");
    text = keys_refused(&at, &n);
    assert_non_null(strstr(text, needs[0]));
    assert_non_null(strstr(text, "****2222 (project key)"));
    assert_non_null(strstr(text, command));
    assert_non_null(strstr(text, "hides"));
    assert_non_null(strstr(text, "****1111"));
    free(text);
    free(command);
    set_env(needs[0], "0123456789abcdefghij3333");
    text = keys_refused(&at, &n);
    assert_non_null(strstr(text, "****3333 (environment)"));
    assert_non_null(strstr(text, variable_of(needs[0])));
    free(text);
}

#define EACH(name)                      \
    static void test_##name(void **s) { \
        (void)s;                        \
        each(one_##name);               \
    }
EACH(missing)
EACH(elsewhere)
EACH(other_provider)
EACH(ready)
EACH(hides)
EACH(unusable)
EACH(doubtful)
EACH(given)
EACH(refused)

/* Each place in which a variable may be set is enough; nearer ones count before farther. */
static void test_variable(void **state)
{
    struct kv set[] = {{LIT("GEMINI_API_KEY"), LIT("x")}, {NULL, NULL}};
    struct kv second[] = {{LIT("GOOGLE_GENAI_USE_GCA"), LIT("true")}, {NULL, NULL}};
    struct kv empty[] = {{LIT("GEMINI_API_KEY"), LIT("")}, {NULL, NULL}};
    struct key_need n;
    char *text;

    (void)state;
    forget();
    tool = tools_find(all, "gemini");
    needs[0] = NULL;
    needs_env = tool_needs_env(tool, NULL);
    n = (struct key_need){.label = tool->label, .needs = needs, .needs_env = needs_env};
    for (int i = 0; i < 2; i++) /* an empty one is none */
        expect(KEY_LACKS, i ? empty : NULL,
               WORDS("Gemini CLI needs", "GEMINI_API_KEY, GOOGLE_GENAI_USE_VERTEXAI or",
                     "set nowhere", "projects secret acme GEMINI_API_KEY", "--env", "--env-file",
                     "before cc-tui is started"));
    expect(KEY_READY, second, WORDS("GOOGLE_GENAI_USE_GCA is given with the sandbox"));
    vars = set;
    expect(KEY_READY, NULL, WORDS("GEMINI_API_KEY is a variable of the project acme"));
    vars = NULL;
    setenv("GEMINI_API_KEY", "0123456789abcdefghij7777", 1);
    keys_take_variable("GEMINI_API_KEY");
    assert_null(getenv("GEMINI_API_KEY"));
    expect(KEY_READY, NULL, WORDS("GEMINI_API_KEY ****7777 (environment)"));
    expect(KEY_READY, set, WORDS("given with the sandbox"));
    text = keys_refused(&at, &n);
    assert_non_null(strstr(text, "GEMINI_API_KEY ****7777 (environment)"));
    free(text);
    assert_true(keys_in_variable("GEMINI_API_KEY") && keys_in_variable("GH_TOKEN"));
    assert_false(keys_in_variable("GOOGLE_API_KEY"));
    forget();
    needs_env = NULL;
}

/* A key of a provider or a variable: either will do, the stored key before the variable. */
static void test_either(void **state)
{
    static char *const names[] = {LIT("MY_API_KEY"), NULL};

    (void)state;
    forget();
    tool = tools_find(all, "qwen");
    needs[0] = "openai";
    needs[1] = NULL;
    needs_env = names;
    expect(KEY_LACKS, NULL, WORDS("needs a key of openai", "OPENAI_API_KEY or MY_API_KEY"));
    setenv("MY_API_KEY", "0123456789abcdefghij8888", 1);
    keys_take_variable("MY_API_KEY");
    expect(KEY_READY, NULL, WORDS("MY_API_KEY ****8888"));
    row(NULL, "openai", "1111");
    expect(KEY_READY, NULL, WORDS("openai ****1111 (user key)"));
    forget();
    needs_env = NULL;
}

static void test_none_needed(void **state)
{
    (void)state;
    forget();
    tool = tools_find(all, "shell");
    needs[0] = NULL;
    expect(KEY_READY, NULL, WORDS("no key is needed"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missing),  cmocka_unit_test(test_elsewhere),
        cmocka_unit_test(test_other_provider), cmocka_unit_test(test_ready),
        cmocka_unit_test(test_hides),    cmocka_unit_test(test_unusable),
        cmocka_unit_test(test_doubtful), cmocka_unit_test(test_given),
        cmocka_unit_test(test_refused),  cmocka_unit_test(test_none_needed),
        cmocka_unit_test(test_variable), cmocka_unit_test(test_either)};
    struct err e = {0};

    if (secrets_init(&e) != 0)
        return 1;
    all = tools_new();
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    forget();
    tools_free(all);
    return rc;
}
