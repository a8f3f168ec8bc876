/* store: builds of templates come back as they went in; what was called off stays so. */
#include "../lib/storebox.h"
#include "../lib/tmpdir.h"

#include <cct/model/tbuild.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* keep last */
#include <cmocka.h>

#define LIT(s) ((char *)(s)) /* the store only reads it */

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

static const struct tbuild full = {
    .state = TB_BUILDING, .name = LIT("mine:v1"), .tool = LIT("claude"), .version = LIT("2.1"),
    .recipe = LIT("/x/Dockerfile"), .options = LIT("{\"cpu\":2}"), .template_id = LIT("tid"),
    .build_id = LIT("bid"), .project = LIT("web"), .account = LIT("local"),
    .phase = LIT("step 3 of 10"), .title = LIT("RUN npm i"), .error = LIT("why"),
    .tail = LIT("one\ntwo"), .started_at = 1700000000123, .ended_at = 1700000001456, .step = 3,
    .steps = 10, .cached = true, .sent = 7};

static void check_same(const struct tbuild *x, const struct tbuild *y)
{
    assert_int_equal(x->state, y->state);
    assert_string_equal(x->name, y->name);
    assert_string_equal(x->tool, y->tool);
    assert_string_equal(x->version, y->version);
    assert_string_equal(x->recipe, y->recipe);
    assert_string_equal(x->options, y->options);
    assert_string_equal(x->template_id, y->template_id);
    assert_string_equal(x->build_id, y->build_id);
    assert_string_equal(x->project, y->project);
    assert_string_equal(x->account, y->account);
    assert_string_equal(x->phase, y->phase);
    assert_string_equal(x->title, y->title);
    assert_string_equal(x->error, y->error);
    assert_string_equal(x->tail, y->tail);
    assert_int_equal(x->started_at, y->started_at);
    assert_int_equal(x->ended_at, y->ended_at);
    assert_int_equal(x->step, y->step);
    assert_int_equal(x->steps, y->steps);
    assert_int_equal(x->cached, y->cached);
}

static uint64_t put(const struct tbuild *row)
{
    struct st_reply *r;
    uint64_t id;

    store_build_put(b.s, row, storebox_to(&b));
    r = storebox_ok(&b);
    assert_int_equal(r->n_builds, 1);
    id = r->builds[0].id;
    msg_free(&r->m);
    return id;
}

static void test_round(void **state)
{
    struct tbuild empty = {.name = LIT("x")};
    struct st_reply *r;
    uint64_t one = put(&full), two = put(&empty);

    (void)state;
    assert_true(one && two > one);
    storebox_stop(&b);
    storebox_start(&b, dir);
    store_builds(b.s, false, storebox_to(&b));
    r = storebox_ok(&b);
    assert_int_equal(r->n_builds, 2);
    check_same(&r->builds[0], &full);
    assert_int_equal(r->builds[0].sent, 0);
    assert_null(r->builds[1].tool);
    assert_null(r->builds[1].recipe);
    assert_int_equal(r->builds[1].state, TB_PREPARING);
    msg_free(&r->m);
    store_builds(b.s, true, storebox_to(&b)); /* nobody else has written */
    r = storebox_ok(&b);
    assert_false(r->got);
    assert_int_equal(r->n_builds, 0);
    msg_free(&r->m);
    store_build_del(b.s, one, storebox_to(&b));
    msg_free(&storebox_ok(&b)->m);
    store_builds(b.s, false, storebox_to(&b));
    r = storebox_ok(&b);
    assert_int_equal(r->n_builds, 1);
    msg_free(&r->m);
}

static void test_called_off(void **state)
{
    struct tbuild row = full;
    struct st_reply *r;

    (void)state;
    row.id = put(&full);
    row.state = TB_CANCELLED;
    row.error = LIT("by hand");
    put(&row);
    row.state = TB_READY;
    row.error = NULL;
    store_build_put(b.s, &row, storebox_to(&b));
    r = storebox_ok(&b);
    assert_int_equal(r->builds[0].state, TB_CANCELLED);
    assert_string_equal(r->builds[0].error, "by hand");
    msg_free(&r->m);
    row.id = 999;
    store_build_put(b.s, &row, storebox_to(&b));
    r = storebox_wait(&b);
    assert_int_equal(r->err.code, ERR_NOTFOUND);
    msg_free(&r->m);
}

static void test_text(void **state)
{
    struct tbuild row = full;
    char text[200];

    (void)state;
    for (int i = 0; i < TB_STATE_COUNT; i++)
        assert_int_equal(tb_state_parse(tb_state_name((enum tb_state)i)), i);
    assert_int_equal(tb_state_parse("nope"), -1);
    tbuild_text(&row, text, sizeof(text));
    assert_string_equal(text, "step 3 of 10  RUN npm i (cached)");
    row.state = TB_UPLOADING;
    row.sent = 1 << 20;
    row.total = 3 << 20;
    tbuild_text(&row, text, sizeof(text));
    assert_string_equal(text, "uploading 1.0 of 3.0 MiB");
    row.state = TB_ERROR;
    tbuild_text(&row, text, sizeof(text));
    assert_string_equal(text, "why");
    row.state = TB_READY;
    tbuild_text(&row, text, sizeof(text));
    assert_string_equal(text, "");
}

/* --- what goes ------------------------------------------------------------------------------ */

enum { OLD = 30, YOUNG = 25 };

static void put_at(const char *name, int64_t at)
{
    struct tbuild v = full;

    v.name = LIT(name);
    v.state = TB_READY;
    v.started_at = v.ended_at = at;
    store_build_put(b.s, &v, storebox_to(&b));
    msg_free(&storebox_ok(&b)->m);
}

static size_t kept(const char *name)
{
    struct st_reply *r;
    size_t n = 0;

    store_builds(b.s, false, storebox_to(&b));
    r = storebox_ok(&b);
    for (size_t i = 0; i < r->n_builds; i++)
        n += strcmp(r->builds[i].name, name) == 0;
    msg_free(&r->m);
    return n;
}

static void prune(int days)
{
    struct store_opts o = {.dir = dir, .retention_days = days};

    storebox_stop(&b);
    storebox_start_with(&b, &o);
    store_prune(b.s, storebox_to(&b));
    msg_free(&storebox_ok(&b)->m);
}

static void test_old_ones_go(void **state)
{
    int64_t now = clock_wall_ms(), day = INT64_C(86400000);

    (void)state;
    for (int i = 0; i < OLD; i++)
        put_at("old", now - 40 * day);
    for (int i = 0; i < OLD; i++)
        put_at("both", now - (i < OLD - YOUNG ? 40 : 1) * day);
    put_at("one", now - 400 * day);
    prune(0); /* for ever */
    assert_int_equal(kept("old"), OLD);
    prune(30);
    assert_int_equal(kept("old"), 20); /* to build it once more */
    assert_int_equal(kept("both"), YOUNG);
    assert_int_equal(kept("one"), 1);
}

static void test_too_many_go(void **state)
{
    char *path = xasprintf("%s/cc-tui.db", dir);

    (void)state;
    storebox_sql(path, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<6000)"
                       " INSERT INTO templateBuilds(templateName, status, startedAt, endedAt, step,"
                       " steps, cached) SELECT 'loop', 'error', 4000000000000, 0, 0, 0, 0 FROM n");
    free(path);
    prune(30);
    assert_int_equal(kept("loop"), 5000);
}

static void test_notes_and_leases_go(void **state)
{
    char *path = xasprintf("%s/cc-tui.db", dir);

    (void)state;
    storebox_sql(path, "INSERT INTO budgetNotes VALUES('day', 1000, '', 80);"
                       "INSERT INTO budgetNotes VALUES('day', 4000000000000, '', 80);"
                       "INSERT INTO leases VALUES('build:1', 'gone', 1000, 6000);"
                       "INSERT INTO leases VALUES('poll', 'here', 4000000000000, 6000)");
    prune(30);
    /* fails when there is none left, or the wrong one is */
    storebox_sql(path, "CREATE TABLE one(n UNIQUE CHECK(n=4000000000000));"
                       "INSERT INTO one SELECT begin FROM budgetNotes; DELETE FROM one;"
                       "INSERT INTO one SELECT until FROM leases; DELETE FROM one; DROP TABLE one;");
    free(path);
}

/* They had values of arguments once. */
static void test_values_of_before(void **state)
{
    char *path, *file;
    struct st_reply *r;
    size_t len;

    (void)state;
    storebox_stop(&b);
    tmpdir_remove(dir);
    free(dir);
    dir = storebox_dir();
    storebox_old(dir, 4);
    path = xasprintf("%s/cc-tui.db", dir);
    storebox_sql(path, "INSERT INTO templateBuilds(templateName, status, startedAt, endedAt, step,"
                       " steps, cached, options) SELECT 't', 'ready', 1, 1, 0, 0, 0, column1 FROM"
                       " (VALUES('{\"tags\":[\"v1\"],\"args\":{\"TOKEN\":\"s3cret\",\"B\":\"x\"},"
                       "\"cpu\":2}'), ('{\"args\":{}}'), (NULL), ('s3cret'))");
    storebox_start(&b, dir);
    store_builds(b.s, false, storebox_to(&b));
    r = storebox_ok(&b);
    assert_int_equal(r->n_builds, 4);
    assert_string_equal(r->builds[0].options,
                        "{\"tags\":[\"v1\"],\"args\":[\"TOKEN\",\"B\"],\"cpu\":2}");
    assert_string_equal(r->builds[1].options, "{\"args\":[]}");
    assert_null(r->builds[2].options);
    assert_null(r->builds[3].options);
    msg_free(&r->m);
    storebox_stop(&b);
    file = fs_read(path, 8 << 20, false, &len, NULL);
    assert_non_null(file);
    assert_null(memmem(file, len, "s3cret", 6));
    free(file);
    storebox_start(&b, dir);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_called_off, set_up, tear_down),
        cmocka_unit_test(test_text),
        cmocka_unit_test_setup_teardown(test_old_ones_go, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_too_many_go, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_notes_and_leases_go, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_values_of_before, set_up, tear_down),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
