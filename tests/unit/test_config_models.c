/* Models: the table, what tools can take, what tokens cost, and what models.conf does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cct/config/models.h>
#include <cct/util/buf.h>
#include <cct/util/str.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void on_say(void *ctx, const char *message)
{
    const char *p = strrchr(message, '/');

    buf_addf(ctx, "%s\n", p ? strchr(p, ':') : message);
}

static struct models *load(const char *text, struct buf *said)
{
    char path[] = "/tmp/cct-models-XXXXXX";
    struct models *m = models_new();
    struct err e = {0};
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    assert_int_equal(models_load(m, path, on_say, said, &e), 0);
    unlink(path);
    return m;
}

static void near(double got, double want)
{
    assert_true(fabs(got - want) < 1e-9);
}

static void test_table(void **state)
{
    struct models *m = models_new();
    const struct model_info *i;

    (void)state;
    for (size_t k = 0; (i = models_at(m, k)); k++) {
        assert_true(i->provider && i->name && i->label && i->date);
        assert_true(i->input > 0 && i->output > 0);
        for (size_t n = k + 1; models_at(m, n); n++)
            assert_false(str_eq(models_at(m, n)->name, i->name) &&
                         str_eq(models_at(m, n)->provider, i->provider));
    }
    assert_null(models_find(m, "no-such-model"));
    assert_null(models_find(m, NULL));
    assert_null(models_find(m, ""));
    assert_string_equal(models_find(m, "gpt-5")->provider, "openai");
    assert_string_equal(models_find(m, "openrouter/openai/gpt-6.2-sol")->provider, "openrouter");
    assert_string_equal(models_find(m, "claude-sonnet-4-5-20250929")->name, "claude-sonnet-4-5");
    models_free(m);
}

static void test_tools(void **state)
{
    struct models *m = models_new();
    struct tools *t = tools_new();
    const struct tool *tool, *pi = tools_find(t, "pi");
    const struct model_info *i;
    bool anthropic = false;
    char *word;

    (void)state;
    for (size_t k = 0; (i = models_for(m, tools_find(t, "codex"), k)); k++)
        assert_string_equal(i->provider, "openai");
    assert_null(models_for(m, tools_find(t, "shell"), 0));
    assert_string_equal(models_for(m, pi, 0)->provider, "openrouter");
    for (size_t k = 0; (i = models_for(m, pi, k)); k++)
        anthropic = anthropic || str_eq(i->provider, "anthropic");
    assert_true(anthropic);
    word = model_word(pi, models_find(m, "claude-sonnet-5-5"));
    assert_string_equal(word, "anthropic/claude-sonnet-5-5");
    free(word);
    word = model_word(tools_find(t, "claude"), models_find(m, "claude-sonnet-5-5"));
    assert_string_equal(word, "claude-sonnet-5-5");
    free(word);
    /* what a tool takes by itself has a price */
    for (size_t k = 0; (tool = tools_at(t, k)); k++)
        if (tool->model)
            assert_non_null(models_find(m, tool->model));
    tools_free(t);
    models_free(m);
}

static void test_cost(void **state)
{
    struct models *m = models_new();

    (void)state;
    near(models_cost(m, "gpt-6.2-sol", 1000000, 0, 0, 0), 2);
    near(models_cost(m, "gpt-6.2-sol", 1000, 2000, 400, 300), 0.002 + 0.0002 + 0.001 + 0.003);
    near(models_cost(m, "gpt-6.2-sol", 0, 0, 0, 0), 0);
    near(models_cost(m, "gpt-5", 0, 0, 1000000, 0), 1.25); /* no price of its own: as input */
    assert_true(isnan(models_cost(m, "no-such-model", 1, 0, 0, 1)));
    assert_true(isnan(models_cost(m, NULL, 1, 0, 0, 1)));
    models_free(m);
}

static void test_file(void **state)
{
    struct buf said = BUF_INIT;
    struct models *m =
        load("[model gpt-5]\ninput = 7\nlabel = Mine\n"
             "[model openrouter/openai/gpt-6.2-sol]\noutput = 9.5\n"
             "[model own]\nprovider = openai\ninput = 1\noutput = 2\ndate = 2026-01-31\n"
             "[model openai/free-form]\n",
             &said);
    const struct model_info *i;

    (void)state;
    assert_string_equal(buf_str(&said), "");
    near(models_cost(m, "gpt-5", 1000000, 0, 0, 0), 7);
    assert_string_equal(models_find(m, "gpt-5")->label, "Mine");
    near(models_find(m, "openrouter/openai/gpt-6.2-sol")->output, 9.5);
    near(models_find(m, "openai/gpt-6.2-sol")->output, 10);
    i = models_find(m, "openai/own");
    assert_string_equal(i->date, "2026-01-31");
    assert_string_equal(i->label, "own");
    near(models_cost(m, "own", 1000000, 1000000, 0, 1000000), 4);
    i = models_find(m, "free-form");
    assert_string_equal(i->provider, "openai");
    assert_true(isnan(models_cost(m, "free-form", 1, 1, 1, 1)));
    models_free(m);
    buf_release(&said);
}

static void test_sandbox_rate(void **state)
{
    struct buf said = BUF_INIT;
    struct models *m = load("[sandbox]\nvcpu_second = 0.5\ndate = 2026-11-01\ngib_second = x\n",
                            &said);
    const struct sandbox_rate *r = models_sandbox(m);

    (void)state;
    near(sandbox_rate_of(r, 2, 1024), 1 + 0.0000045);
    assert_true(isnan(sandbox_rate_of(r, 0, 1024)) && isnan(sandbox_rate_of(r, 2, 0)));
    assert_string_equal(r->date, "2026-11-01");
    assert_true(r->own);
    assert_string_equal(buf_str(&said),
                        ":4: gib_second: expected USD a second, like 0.000014\n");
    models_free(m);
    buf_release(&said);
}

static void test_mistakes(void **state)
{
    struct buf said = BUF_INIT;
    struct models *m = load("x = 1\n[tool a]\ny = 1\n[model -x]\n[model gpt-5]\ninput = -1\n"
                            "output = 2.5 USD\ninpt = 3\ncache_read = inf\ndate = today\n",
                            &said);
    struct err e = {0};

    (void)state;
    assert_string_equal(
        buf_str(&said),
        ":1: \"x\" stands before the first [model NAME]\n"
        ":2: unknown section \"tool a\", expected \"model NAME\" or \"sandbox\"\n"
        ":4: \"-x\" is no name of a model\n"
        ":6: input: expected USD for 1M tokens, like 2.50\n"
        ":7: output: expected USD for 1M tokens, like 2.50\n"
        ":8: unknown key \"inpt\", did you mean \"input\"?\n"
        ":9: cache_read: expected USD for 1M tokens, like 2.50\n"
        ":10: date: expected YYYY-MM-DD\n");
    near(models_cost(m, "gpt-5", 1000000, 0, 0, 0), 1.25);
    assert_int_equal(models_load(m, "/nonexistent/models.conf", on_say, &said, &e), 0);
    assert_true(models_load(m, "/tmp", on_say, &said, &e) < 0);
    models_free(m);
    buf_release(&said);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table), cmocka_unit_test(test_tools), cmocka_unit_test(test_cost),
        cmocka_unit_test(test_file),  cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_sandbox_rate),
    };

    return cmocka_run_group_tests_name("config_models", tests, NULL, NULL);
}
