/* A sandbox as data: copies that stand for themselves, and snapshots in one block. */
#include <cct/model/pair.h>
#include <cct/model/sandbox.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* keep last */
#include <cmocka.h>

/* Each text of a row, at its place. */
static const size_t texts[] = {
#define AT(f) offsetof(struct sandbox, f)
    AT(sandbox_id), AT(session), AT(name),   AT(tool),   AT(project),   AT(template_id),
    AT(alias),      AT(branch),  AT(tags),   AT(account), AT(mark),     AT(reason),
    AT(odd),        AT(step_text), AT(last_line),
#undef AT
};
enum { TEXTS = sizeof(texts) / sizeof(texts[0]) };

static char **text(const struct sandbox *s, size_t i)
{
    return (char **)(void *)((char *)s + texts[i]);
}

/* Every text is another one. */
static struct sandbox full_row(void)
{
    struct sandbox s = {.id = 7, .state = SB_RUNNING, .end_at = 5000};
    for (size_t i = 0; i < TEXTS; i++)
        *text(&s, i) = xasprintf("text %zu of it", i);
    s.meta = xcalloc(3, sizeof(*s.meta));
    s.meta[0] = (struct kv){xstrdup("cc-tui-name"), xstrdup("amber")};
    s.meta[1] = (struct kv){xstrdup("empty"), xstrdup("")};
    s.pair = xcalloc(1, sizeof(*s.pair));
    s.pair->side[0].tool = xstrdup("claude");
    return s;
}

static void is_full(const struct sandbox *s)
{
    char want[32];
    for (size_t i = 0; i < TEXTS; i++) {
        snprintf(want, sizeof(want), "text %zu of it", i);
        assert_string_equal(*text(s, i), want);
    }
    assert_string_equal(kv_get(s->meta, "cc-tui-name"), "amber");
    assert_string_equal(kv_get(s->meta, "empty"), "");
    assert_null(kv_get(s->meta, "more"));
    assert_string_equal(s->pair->side[0].tool, "claude");
    assert_true(s->id == 7 && s->state == SB_RUNNING && s->end_at == 5000);
}

/* It stays as it was while the row it was made of changes and goes. */
static void test_snapshot(void **state)
{
    (void)state;
    struct sandbox row = full_row(), shot, copy;
    sandbox_snapshot(&shot, &row);
    for (size_t i = 0; i < TEXTS; i++)
        str_set(text(&row, i), "another");
    sandbox_release(&row);
    is_full(&shot);
    sandbox_copy(&copy, &shot); /* a copy of it can be changed again */
    sandbox_snapshot(&row, &shot);
    sandbox_release(&shot);
    is_full(&copy);
    is_full(&row);
    str_set(&copy.name, "birch");
    assert_string_equal(copy.name, "birch");
    sandbox_release(&copy);
    sandbox_release(&row);
    assert_null(row.name);
}

static void test_snapshot_of_little(void **state)
{
    (void)state;
    struct kv none[] = {{NULL, NULL}};
    struct sandbox row = {.id = 3}, shot;
    sandbox_snapshot(&shot, &row);
    for (size_t i = 0; i < TEXTS; i++)
        assert_null(*text(&shot, i));
    assert_true(shot.id == 3 && !shot.meta && !shot.pair);
    sandbox_release(&shot);
    row.meta = none;
    row.name = (char[]){""};
    sandbox_snapshot(&shot, &row);
    assert_string_equal(shot.name, "");
    assert_true(shot.meta && !shot.meta[0].k);
    sandbox_release(&shot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_snapshot),
        cmocka_unit_test(test_snapshot_of_little),
    };
    return cmocka_run_group_tests_name("sandbox", tests, NULL, NULL);
}
