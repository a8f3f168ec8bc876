/* store: projects with settings, variables and presets; what a new name reaches; the step
 * from the second schema. */
#include "../lib/storebox.h"

#include <cct/util/fs.h>
#include <cct/model/filter.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* keep last */
#include <cmocka.h>

#define LIT(s) ((char *)(s)) /* the store only reads it */
#define UID "0123456789abcdef0123456789abcdef"

static struct storebox b;
static char *dir;

static int set_up(void **state)
{
    (void)state;
    storebox_fresh(&b, &dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    storebox_end(&b, dir);
    return 0;
}

static struct st_projects *projects(const char *name, int64_t known)
{
    store_projects(b.s, name, known, storebox_to(&b));
    struct st_reply *r = storebox_wait(&b);
    if (r->err.code)
        fail_msg("%s", r->err.text);
    struct st_projects *p = r->projects;
    assert_true(r->got == (p != NULL));
    r->projects = NULL;
    msg_free(&r->m);
    return p;
}

static const struct project *named(const struct st_projects *p, const char *name)
{
    for (size_t i = 0; i < p->n; i++)
        if (str_eq(p->v[i].name, name))
            return &p->v[i];
    return NULL;
}

static uint64_t sandbox(const char *id, const char *of)
{
    struct sandbox s = {.sandbox_id = LIT(id), .session = LIT("s"), .project = LIT(of),
                        .created_at = 5};
    store_put_sandbox(b.s, &s, storebox_to(&b));
    struct st_reply *r = storebox_wait(&b);
    assert_int_equal(r->err.code, 0);
    uint64_t row = r->sandboxes[0].id;
    msg_free(&r->m);
    return row;
}

static char *project_of(uint64_t row)
{
    char *found = NULL;
    store_sandboxes(b.s, storebox_to(&b));
    struct st_reply *r = storebox_wait(&b);
    for (size_t i = 0; i < r->n_sandboxes; i++)
        if (r->sandboxes[i].id == row)
            found = xstrdup(r->sandboxes[i].project);
    msg_free(&r->m);
    return found;
}

static void test_names(void **state)
{
    (void)state;
    struct st_projects *p = projects(NULL, -1);
    assert_true(p->n == 1 && p->current == 0 && !p->v[0].id);
    assert_string_equal(p->v[0].name, "default");
    assert_null(projects(NULL, p->revision));
    st_projects_free(p);
    char *acme = storebox_project(&b, "acme/web"), *side = storebox_project(&b, "side.x");
    sandbox("i1", "elsewhere");
    store_project_used(b.s, side, storebox_to(&b));
    storebox_says(&b, 0);
    p = projects(NULL, -1);
    assert_string_equal(p->v[p->current].name, "side.x"); /* used last */
    assert_true(p->n == 3 && !named(p, "elsewhere")->id);
    st_projects_free(p);
    store_project_used(b.s, acme, storebox_to(&b));
    storebox_says(&b, 0);
    p = projects(NULL, -1);
    assert_string_equal(p->v[p->current].id, acme);
    st_projects_free(p);
    p = projects("new", -1);
    assert_true(p->n == 4 && !p->v[p->current].id && str_eq(p->v[p->current].name, "new"));
    st_projects_free(p);
    store_project_used(b.s, "no such", storebox_to(&b));
    storebox_says(&b, ERR_NOTFOUND);
    free(acme);
    free(side);
}

static void test_settings(void **state)
{
    (void)state;
    char *skills[] = {LIT("/a b"), LIT("./c"), NULL};
    struct project in = {.id = storebox_project(&b, "acme"), .prompt = LIT("be \"kind\"\n"), .skills = skills,
                         .defaults = {.tool = LIT("codex"), .model = LIT("m"), .repo = LIT("r"),
                                      .branch = LIT("b"), .template_id = LIT("t"),
                                      .timeout_s = 60, .at_end_known = true}};
    store_project_put(b.s, &in, storebox_to(&b));
    storebox_says(&b, 0);
    struct st_projects *p = projects("acme", -1);
    const struct project *out = &p->v[p->current];
    assert_string_equal(out->prompt, in.prompt);
    assert_true(str_eq(out->skills[0], "/a b") && str_eq(out->skills[1], "./c") &&
                !out->skills[2]);
    assert_true(str_eq(out->defaults.tool, "codex") && str_eq(out->defaults.model, "m") &&
                str_eq(out->defaults.repo, "r") && str_eq(out->defaults.branch, "b") &&
                str_eq(out->defaults.template_id, "t") && out->defaults.timeout_s == 60);
    assert_true(out->defaults.at_end_known && !out->defaults.pause_at_end);
    st_projects_free(p);
    free(in.id);
    in.id = LIT("gone");
    store_project_put(b.s, &in, storebox_to(&b));
    storebox_says(&b, ERR_NOTFOUND);
}

/* The settings as they stand in the file; changed to `now` before, when that is given. */
static char *settings_of(const char *id, const char *now)
{
    char *path = xasprintf("%s/cc-tui.db", dir), *found;
    sqlite3 *db;
    sqlite3_stmt *q;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    assert_int_equal(sqlite3_prepare_v2(db, "UPDATE projects SET settings=coalesce(?1, settings)"
                                            " WHERE uid=?2 RETURNING settings", -1, &q, NULL),
                     SQLITE_OK);
    sqlite3_bind_text(q, 1, now, -1, SQLITE_STATIC);
    sqlite3_bind_text(q, 2, id, -1, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    found = xstrdup((const char *)sqlite3_column_text(q, 0));
    assert_int_equal(sqlite3_step(q), SQLITE_DONE);
    sqlite3_finalize(q);
    sqlite3_close(db);
    free(path);
    return found;
}

/* A newer program has written there, or something that is no JSON. */
static void test_strange_settings(void **state)
{
    (void)state;
    struct project in = {.id = storebox_project(&b, "acme"), .defaults = {.tool = LIT("codex")}};
    free(settings_of(in.id, "{\"later\":{\"a\":[1]},\"prompt\":\"old\",\"skills\":[\"/s\"],"
                            "\"defaults\":{\"model\":\"m\",\"copies\":3,\"pauseAtEnd\":true,"
                            "\"hour\":7}}"));
    store_project_put(b.s, &in, storebox_to(&b));
    storebox_says(&b, 0);
    char *now = settings_of(in.id, NULL);
    assert_non_null(strstr(now, "\"later\":{\"a\":[1]}"));
    assert_non_null(strstr(now, "\"hour\":7"));
    struct st_projects *p = projects("acme", -1);
    const struct project *out = &p->v[p->current];
    assert_true(str_eq(out->defaults.tool, "codex") && !out->defaults.model && !out->prompt);
    assert_true(!out->defaults.copies && !out->defaults.at_end_known && !out->skills);
    st_projects_free(p);
    free(now);
    free(settings_of(in.id, "no JSON"));
    store_project_put(b.s, &in, storebox_to(&b));
    storebox_says(&b, 0);
    p = projects("acme", -1);
    assert_string_equal(p->v[p->current].defaults.tool, "codex");
    st_projects_free(p);
    free(in.id);
}

static void begin_vault(void)
{
    struct st_keys *k = xcalloc(1, sizeof(*k));
    str_copy(k->vault.uid, sizeof(k->vault.uid), UID);
    k->vault.proof = xstrdup("proof");
    k->vault.proof_len = 5;
    store_vault_put(b.s, k, storebox_to(&b));
    storebox_says(&b, 0);
}

static void test_variables(void **state)
{
    (void)state;
    char *acme = storebox_project(&b, "acme"), *other = storebox_project(&b, "other");
    begin_vault();
    store_project_var(b.s, acme, "DEBUG", "1", storebox_to(&b));
    storebox_says(&b, 0);
    store_project_var(b.s, acme, "TOKEN", "plain once", storebox_to(&b));
    storebox_says(&b, 0);
    struct st_key k = {.project = acme, .provider = LIT(ST_VARIABLE), .api = LIT("TOKEN"),
                       .mark = LIT("0a0b0c0d"), .last4 = "9f21", .version = 1,
                       .sealed = LIT("se\0aled"), .sealed_len = 7, .created_at = 1};
    store_key_put(b.s, UID, &k, storebox_to(&b));
    storebox_says(&b, 0);
    struct st_projects *p = projects("acme", -1);
    const struct project *out = &p->v[p->current];
    assert_true(out->n_vars == 2 && named(p, "other")->n_vars == 0);
    assert_true(!out->vars[0].secret && str_eq(out->vars[0].value, "1"));
    assert_true(out->vars[1].secret && !out->vars[1].value && str_eq(out->vars[1].last4, "9f21"));
    st_projects_free(p);
    store_keys(b.s, "acme", NULL, -1, storebox_to(&b));
    struct st_reply *r = storebox_wait(&b);
    assert_true(r->keys->n == 1 && str_eq(r->keys->v[0].provider, ST_VARIABLE) &&
                str_eq(r->keys->v[0].api, "TOKEN") && r->keys->v[0].sealed_len == 7);
    /* sealed anew with the rest */
    struct st_keys *anew = r->keys;
    r->keys = NULL;
    msg_free(&r->m);
    store_vault_put(b.s, anew, storebox_to(&b));
    storebox_says(&b, 0);
    store_project_var_del(b.s, acme, "TOKEN", storebox_to(&b));
    storebox_says(&b, 0);
    store_project_var_del(b.s, acme, "TOKEN", storebox_to(&b));
    storebox_says(&b, ERR_NOTFOUND);
    store_project_var(b.s, "no such", "A", "1", storebox_to(&b));
    storebox_says(&b, ERR_NOTFOUND);
    p = projects("acme", -1);
    assert_true(p->v[p->current].n_vars == 1);
    st_projects_free(p);
    free(acme);
    free(other);
}

static void test_presets(void **state)
{
    (void)state;
    char *acme = storebox_project(&b, "acme");
    struct project_choice c = {.tool = LIT("pi"), .prompt = LIT("go"), .copies = 3,
                               .at_end_known = true, .pause_at_end = true};
    store_preset(b.s, NULL, "mine", &c, storebox_to(&b));
    storebox_says(&b, 0);
    store_preset(b.s, acme, "mine", &c, storebox_to(&b));
    storebox_says(&b, 0);
    c.copies = 4;
    store_preset(b.s, acme, "mine", &c, storebox_to(&b));
    storebox_says(&b, 0);
    struct st_projects *p = projects("nobody", -1);
    const struct project *none = &p->v[p->current], *out = named(p, "acme");
    assert_true(none->n_presets == 1 && none->presets[0].of_user && none->presets[0].c.copies == 3);
    assert_true(out->n_presets == 2 && !out->presets[0].of_user && out->presets[1].of_user);
    assert_true(out->presets[0].c.copies == 4 && str_eq(out->presets[0].c.prompt, "go") &&
                out->presets[0].c.pause_at_end);
    st_projects_free(p);
    store_preset(b.s, acme, "mine", NULL, storebox_to(&b));
    storebox_says(&b, 0);
    store_preset(b.s, acme, "mine", NULL, storebox_to(&b));
    storebox_says(&b, ERR_NOTFOUND);
    free(acme);
}

/* They come with the projects, whose revision grows with them. */
static void test_filters(void **state)
{
    (void)state;
    store_filter(b.s, "mine", "agent:claude -is:foreign", storebox_to(&b));
    storebox_says(&b, 0);
    store_filter(b.s, "bad", "state:error", storebox_to(&b));
    storebox_says(&b, 0);
    struct st_projects *p = projects(NULL, -1);
    assert_true(p->n_filters == 2 && str_eq(p->filters[0].name, "bad") &&
                str_eq(p->filters[1].words, "agent:claude -is:foreign"));
    int64_t known = p->revision;
    st_projects_free(p);
    assert_null(projects(NULL, known));
    store_filter(b.s, "bad", "state:error,killed", storebox_to(&b));
    storebox_says(&b, 0);
    p = projects(NULL, known);
    assert_true(p && p->n_filters == 2 && str_eq(p->filters[0].words, "state:error,killed"));
    st_projects_free(p);
    store_filter(b.s, "bad", NULL, storebox_to(&b));
    storebox_says(&b, 0);
    store_filter(b.s, "bad", NULL, storebox_to(&b));
    storebox_says(&b, ERR_NOTFOUND);
    p = projects(NULL, -1);
    assert_true(p->n_filters == 1);
    st_projects_free(p);
}

/* More than can be shown are not kept, for nobody could drop them. */
static void test_many_filters(void **state)
{
    enum { MOST = 1000 };
    char *path = fs_join(dir, "cc-tui.db");

    (void)state;
    storebox_sql(path, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<999)"
                       " INSERT INTO filters SELECT 'f'||i, 'is:foreign', i FROM n");
    store_filter(b.s, "last", "is:foreign", storebox_to(&b));
    storebox_says(&b, 0);
    store_filter(b.s, "more", "is:foreign", storebox_to(&b));
    storebox_says(&b, ERR_LIMIT);
    store_filter(b.s, "last", "is:owned", storebox_to(&b)); /* it is there already */
    storebox_says(&b, 0);
    store_filter(b.s, "f7", NULL, storebox_to(&b));
    storebox_says(&b, 0);
    store_filter(b.s, "more", "is:foreign", storebox_to(&b));
    storebox_says(&b, 0);
    struct st_projects *p = projects(NULL, -1);
    assert_int_equal(p->n_filters, MOST);
    st_projects_free(p);
    free(path);
}

/* Rows follow the name, whatever an instance writes that has not heard of it. */
static void test_rename(void **state)
{
    (void)state;
    char *acme = storebox_project(&b, "acme"), *now;
    uint64_t mine = sandbox("i1", "acme"), other = sandbox("i2", "acme2");
    store_intent_add(b.s, false, "host#m/acme", NULL, storebox_to(&b));
    storebox_says(&b, 0);
    store_project_rename(b.s, acme, "new/name", storebox_to(&b));
    storebox_says(&b, 0);
    now = project_of(mine);
    assert_string_equal(now, "new/name");
    free(now);
    now = project_of(other);
    assert_string_equal(now, "acme2");
    free(now);
    struct sandbox s = {.id = mine, .sandbox_id = LIT("i1"), .session = LIT("s"),
                        .project = LIT("acme"), .created_at = 5};
    store_put_sandbox(b.s, &s, storebox_to(&b));
    storebox_says(&b, 0);
    now = project_of(mine);
    assert_string_equal(now, "new/name");
    free(now);
    store_intents(b.s, storebox_to(&b));
    struct st_reply *r = storebox_wait(&b);
    assert_string_equal(r->intents[0].project, "host#m/new/name");
    msg_free(&r->m);
    char *second = storebox_project(&b, "second");
    store_project_rename(b.s, second, "new/name", storebox_to(&b));
    storebox_says(&b, ERR_CONFLICT);
    store_project_rename(b.s, "no such", "x", storebox_to(&b));
    storebox_says(&b, ERR_NOTFOUND);
    free(second);
    free(acme);
}

static void test_remove(void **state)
{
    (void)state;
    char *acme = storebox_project(&b, "acme");
    uint64_t row = sandbox("i1", "acme");
    store_project_var(b.s, acme, "A", "1", storebox_to(&b));
    storebox_says(&b, 0);
    store_project_del(b.s, acme, storebox_to(&b));
    storebox_says(&b, ERR_CONFLICT);
    struct sandbox ended = {.id = row, .sandbox_id = LIT("i1"), .session = LIT("s"),
                            .project = LIT("acme"), .created_at = 5, .state = SB_KILLED};
    store_put_sandbox(b.s, &ended, storebox_to(&b));
    storebox_says(&b, 0);
    store_project_del(b.s, acme, storebox_to(&b));
    storebox_says(&b, 0);
    store_project_del(b.s, acme, storebox_to(&b));
    storebox_says(&b, ERR_NOTFOUND);
    char *now = project_of(row);
    assert_string_equal(now, "acme"); /* still told by its rows */
    free(now);
    struct st_projects *p = projects("acme", -1);
    assert_true(p->n == 1 && !p->v[0].id && p->v[0].n_vars == 0);
    st_projects_free(p);
    free(acme);
}

/* Names that rows of the second schema carry become projects. */
static void test_migration(void **state)
{
    char *path = fs_join(dir, "cc-tui.db");

    (void)state;
    storebox_stop(&b);
    assert_int_equal(unlink(path), 0);
    free(path);
    storebox_old(dir, 2);
    storebox_start(&b, dir);
    assert_int_equal(b.opened->err.code, 0);
    struct st_projects *p = projects("acme", -1);
    assert_int_equal(p->n, 1);
    assert_int_equal(strlen(p->v[0].id), 32);
    st_projects_free(p);
    store_filter(b.s, "mine", "agent:claude", storebox_to(&b)); /* of a later step */
    storebox_says(&b, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_names),     TEST(test_settings),
                                       TEST(test_variables), TEST(test_presets),
                                       TEST(test_filters),   TEST(test_many_filters),
                                       TEST(test_rename),    TEST(test_remove),
                                       TEST(test_migration), TEST(test_strange_settings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
