/* store: builds of templates come back as they went in; what was called off stays so. */
#include "../lib/storebox.h"

#include <cct/model/tbuild.h>
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
    dir = storebox_dir();
    storebox_start(&b, dir);
    return b.opened->err.code;
}

static int tear_down(void **state)
{
    (void)state;
    storebox_stop(&b);
    storebox_remove(dir);
    free(dir);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_called_off, set_up, tear_down),
        cmocka_unit_test(test_text),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
