/* What the list is narrowed to, and its orders. */
#include <cct/model/filter.h>
#include <cct/model/sort.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Texts are not freed here. */
#define TEXT(s) ((char *)(uintptr_t)(s))

static struct sandbox one(void)
{
    return (struct sandbox){.id = 1, .name = TEXT("fix-login"), .tool = TEXT("claude"), .project = TEXT("acme/web"),
                            .sandbox_id = TEXT("ibx7"), .alias = TEXT("claude-node22"), .state = SB_RUNNING,
                            .agent = AG_ASKS, .last_line = TEXT("Run npm run migrate?"),
                            .protect = true, .tags = TEXT("wip ui-2"),
                            .cost_usd = NAN};
}

static void test_filter(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool fits;
    } t[] = {{"", true},
             {"login", true},
             {"LOGIN claude", true},
             {"login codex", false},
             {"state:running", true},
             {"state:paused", false},
             {"state:paused,running", true},
             {"STATE:Run", true},
             {"agent:claude doing:asks", true},
             {"agent:asks", false},
             {"-agent:claude", false},
             {"-agent:codex", true},
             {"project:acme name:fix id:ibx template:node", true},
             {"is:protected", true},
             {"-is:protected", false},
             {"tag:wip", true},
             {"tag:wi", false},
             {"tag:x,ui-2 -tag:ui", true},
             {"ui-", true},
             {"is:foreign", false},
             {"is:nosuch", false},
             {"state:", true},         /* still being typed */
             {"npm:migrate", false},   /* no key: a word with a colon */
             {"migrate?", true},
             {"-", true},              /* and so is this */
             {"   ", true}};
    struct sandbox s = one();
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        struct filter f;
        filter_parse(&f, t[i].text);
        if (filter_match(&f, &s) != t[i].fits)
            fail_msg("'%s' %s", t[i].text, t[i].fits ? "does not fit" : "fits");
    }
}

/* More than it holds: what is left out narrows nothing, and nothing is written over. */
static void test_long_filter(void **state)
{
    (void)state;
    char text[4096];
    struct filter f;
    struct sandbox s = one();
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    filter_parse(&f, text);
    assert_int_equal(f.n, 1);
    assert_false(filter_match(&f, &s));
    for (size_t i = 0; i + 2 < sizeof(text); i += 2)
        memcpy(text + i, "i ", 2);
    filter_parse(&f, text);
    assert_int_equal(f.n, FILTER_TERMS);
    assert_true(filter_match(&f, &s));
}

static void test_tags(void **state)
{
    (void)state;
    char dst[SANDBOX_TAGS_BYTES];
    static const struct {
        const char *text, *kept; /* NULL: refused */
    } t[] = {{"", ""}, {"  ", ""}, {"wip", "wip"}, {" #wip,ui  wip a.b_c-1 ", "wip ui a.b_c-1"},
             {"a b c d e f g h", "a b c d e f g h"}, {"a b c d e f g h i", NULL},
             {"123456789012345678901234", "123456789012345678901234"},
             {"1234567890123456789012345", NULL}, {"a/b", NULL}, {"\xc3\xa9", NULL}, {"a\nb", NULL}};
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        bool ok = sandbox_tags(t[i].text, dst);
        if (ok != (t[i].kept != NULL) || (ok && strcmp(dst, t[i].kept) != 0))
            fail_msg("'%s': %s '%s'", t[i].text, ok ? "kept as" : "refused after", dst);
    }
}

static void before(enum sort by, bool inverted, const struct sandbox *a, const struct sandbox *b)
{
    if (sort_compare(by, inverted, a, b) >= 0 || sort_compare(by, inverted, b, a) <= 0)
        fail_msg("by %s%s: %s is not before %s", sort_word(by), inverted ? " inverted" : "",
                 a->name, b->name);
}

static void test_sorts(void **state)
{
    (void)state;
    struct sandbox a = one(), b = one(), c = one();
    b.name = TEXT("Gamma"), b.tool = TEXT("codex"), b.state = SB_PAUSED, b.created_at = 2000, b.cost_usd = 2;
    c.name = TEXT("zeta"), c.tool = NULL, c.state = SB_ERROR, c.created_at = 1000, c.cost_usd = 1;
    a.end_at = 9000;
    before(SORT_NAME, false, &a, &b); /* without case */
    before(SORT_NAME, true, &c, &b);
    before(SORT_AGENT, false, &a, &b);
    before(SORT_AGENT, true, &b, &a);
    before(SORT_AGENT, true, &a, &c); /* none stays last */
    before(SORT_STATE, false, &a, &b);
    before(SORT_DOING, false, &a, &c);
    before(SORT_DOING, false, &c, &b);
    before(SORT_AGE, false, &b, &c);
    before(SORT_AGE, true, &c, &b);
    before(SORT_AGE, true, &c, &a); /* unknown stays last */
    before(SORT_COST, false, &b, &c);
    before(SORT_COST, true, &c, &b);
    before(SORT_COST, true, &c, &a);
    before(SORT_LEFT, false, &a, &b);
    before(SORT_LEFT, true, &a, &b);
    assert_int_equal(sort_compare(SORT_MADE, false, &a, &b), 0);
    for (int i = 0; i < SORT_COUNT; i++) {
        assert_int_equal(sort_parse(sort_word((enum sort)i)), i);
        assert_int_equal(sort_compare((enum sort)i, false, &a, &a), 0);
    }
    assert_int_equal(sort_parse("nosuch"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_filter),
                                       cmocka_unit_test(test_long_filter),
                                       cmocka_unit_test(test_tags),
                                       cmocka_unit_test(test_sorts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
