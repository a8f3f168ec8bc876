/* model/project: names, how metadata says them, copies. */
#include <cct/model/model.h>
#include <cct/util/str.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* keep last */
#include <cmocka.h>

#define LIT(s) ((char *)(s)) /* only read */

static void test_names(void **state)
{
    static const char *const good[] = {"a", "acme/web", "A_b-c.d", "0", "a/b/c", ".hidden", "v1.2",
                                       "0123456789012345678901234567890123456789012345678901234567890123"};
    static const char *const bad[] = {"", "/a", "a/", "a//b", "..", "a/../b", ".", "a/.", "../x",
                                      "-a", "a b", "a:b", "\xc3\xa4", "a\n", "a'b",
                                      "01234567890123456789012345678901234567890123456789012345678901234"};

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(project_name_ok(good[i]));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(project_name_ok(bad[i]));
    assert_false(project_name_ok(NULL));
}

/* What goes out is in the small alphabet, and comes back as it was; what other programs or
 * older ones wrote is taken as it stands. */
static void test_metadata(void **state)
{
    static const struct {
        const char *name, *plain, *exact;
    } t[] = {{"acme", "acme", NULL},       {"a_d", "a_d", NULL},
             {"acme/web", "acme-web", "acme_sweb"}, {"v1.2_x", "v1-2_x", "v1_d2__x"},
             {"a.b/c", "a-b-c", "a_db_sc"}};

    (void)state;
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        char *plain = project_meta_plain(t[i].name), *exact = project_meta_exact(t[i].name);
        char *back = project_of_meta(plain, exact);
        assert_string_equal(plain, t[i].plain);
        assert_true(str_eq(exact, t[i].exact));
        assert_string_equal(back, t[i].name);
        assert_true(!exact || sandbox_name_ok(exact));
        free(plain);
        free(exact);
        free(back);
    }
    static const struct {
        const char *plain, *exact, *name;
    } odd[] = {{"acme", NULL, "acme"},   {"acme", "other_sx", "acme"}, {"a-b", "a_b", "a-b"},
               {"a-b", "a_", "a-b"},     {"a-b", "", "a-b"},           {"a-b", "_s_s", "a-b"},
               {NULL, "a_sb", "a/b"},    {NULL, NULL, NULL},           {NULL, "_", NULL}};
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        char *back = project_of_meta(odd[i].plain, odd[i].exact);
        assert_true(str_eq(back, odd[i].name));
        free(back);
    }
}

static struct ev_projects *two(size_t current)
{
    struct ev_projects *ev = ev_new(EV_PROJECTS);
    ev->v = xcalloc(2, sizeof(*ev->v));
    ev->n = 2;
    ev->current = current;
    ev->v[0].name = xstrdup("acme/web");
    ev->v[1].name = xstrdup("side");
    ev->v[1].vars = xcalloc(1, sizeof(*ev->v[1].vars));
    ev->v[1].n_vars = 1;
    ev->v[1].vars[0].name = xstrdup("A");
    return ev;
}

/* Counts and money are those of the view; what of other projects still bills is told. */
static void test_view(void **state)
{
    static const struct {
        const char *project;
        enum sb_state st;
        bool foreign;
    } rows[] = {{"acme/web", SB_RUNNING, false}, {"side", SB_RUNNING, false},
                {"side", SB_KILLED, false},      {"other", SB_PAUSED, false},
                {NULL, SB_RUNNING, false},       {"side", SB_RUNNING, true}};
    struct model *m = model_new();
    struct ev_sandboxes *ev = ev_new(EV_SANDBOXES);
    struct ev_view *view = ev_new(EV_VIEW);
    size_t by[SB_STATE_COUNT], asks, working, idle;

    (void)state;
    ev->v = xcalloc(6, sizeof(*ev->v));
    for (size_t i = 0; i < 6; i++)
        ev->v[ev->n++] = (struct sandbox){.id = i + 1, .project = xstrdup(rows[i].project),
                                          .state = rows[i].st, .foreign = rows[i].foreign,
                                          .usd_per_s = 0.000014};
    model_apply(m, &ev->m);
    msg_free(&ev->m);
    assert_null(model_project(m));
    assert_true(model_elsewhere(m) == 0); /* no project is known: all are shown */
    struct ev_projects *p = two(0);
    model_apply(m, &p->m);
    msg_free(&p->m);
    assert_string_equal(m->project, "acme/web");
    assert_string_equal(model_project(m)->name, "acme/web");
    model_counts(m, by, &asks, &working, &idle);
    assert_true(by[SB_RUNNING] == 3 && by[SB_KILLED] == 0 && by[SB_PAUSED] == 0);
    assert_int_equal(model_elsewhere(m), 2);
    double few = model_usd_per_hour(m, NULL);
    view->all = true;
    model_apply(m, &view->m);
    msg_free(&view->m);
    model_counts(m, by, &asks, &working, &idle);
    assert_true(by[SB_RUNNING] == 4 && by[SB_KILLED] == 1 && by[SB_PAUSED] == 1);
    assert_true(model_elsewhere(m) == 0 && model_usd_per_hour(m, NULL) > few);
    p = two(1);
    model_apply(m, &p->m);
    msg_free(&p->m);
    assert_int_equal(model_project(m)->n_vars, 1);
    model_free(m);
}

static void test_copy(void **state)
{
    char *skills[] = {LIT("a"), LIT("b"), NULL};
    struct project_var var = {.name = LIT("N"), .value = LIT("v"), .last4 = "abcd"};
    struct project_preset preset = {.name = LIT("p"), .of_user = true, .c = {.repo = LIT("r")}};
    struct project in = {.id = LIT("i"), .name = LIT("n"), .prompt = LIT("x"), .skills = skills,
                         .vars = &var, .n_vars = 1, .presets = &preset, .n_presets = 1,
                         .defaults = {.model = LIT("m"), .timeout_s = 3}}, out;

    (void)state;
    project_copy(&out, &in);
    assert_true(str_eq(out.skills[1], "b") && !out.skills[2] && str_eq(out.vars[0].value, "v") &&
                str_eq(out.vars[0].last4, "abcd") && str_eq(out.presets[0].c.repo, "r") &&
                out.presets[0].of_user && str_eq(out.defaults.model, "m") &&
                out.defaults.timeout_s == 3);
    project_release(&out);
    assert_null(out.name);
}

int main(void)
{
    thread_set_role(THREAD_MAIN);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_metadata),
                                       cmocka_unit_test(test_view), cmocka_unit_test(test_copy)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
