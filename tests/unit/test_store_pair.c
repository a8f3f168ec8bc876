/* Steps of pairs in the store: with their message or not at all, on top of the revision they
 * were decided from, by whichever of two instances comes first. */
#include "../lib/storebox.h"
#include "../lib/tmpdir.h"

#include <cct/model/pair.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct storebox a, b;
static char *dir;

static int setup(void **state)
{
    (void)state;
    dir = storebox_dir();
    storebox_start(&a, dir);
    storebox_start(&b, dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    storebox_stop(&a);
    storebox_stop(&b);
    tmpdir_remove(dir);
    free(dir);
    return 0;
}

static struct pair *new_pair(uint64_t sandbox)
{
    struct pair *p = xcalloc(1, sizeof(*p));
    struct pair_event ev = {.kind = PAIR_BEGIN};
    struct pair_act act;

    p->sandbox = sandbox;
    p->rounds = 3;
    p->task = xstrdup("task");
    str_copy(p->uid, sizeof(p->uid), "uid00001");
    for (int i = 0; i < PAIR_ROLES; i++) {
        p->side[i].tool = xstrdup(i ? "codex" : "claude");
        p->side[i].cost_usd = i ? (double)NAN : 0.5;
    }
    p->side[PAIR_CHECKER].model = xstrdup("m");
    pair_apply(p, &ev, &act, NULL);
    return p;
}

static struct st_reply *put(struct storebox *s, const struct pair *p, const char *text, int off)
{
    store_pair_put(s->s, p, text, off, storebox_to(s));
    return storebox_wait(s);
}

static size_t messages(struct storebox *s, uint64_t sandbox)
{
    struct st_reply *r;
    size_t n;

    store_messages(s->s, sandbox, 10, storebox_to(s));
    r = storebox_wait(s);
    n = r->n_messages;
    msg_free(&r->m);
    return n;
}

static void test_steps(void **state)
{
    uint64_t sb = storebox_sandbox(&a, "i1");
    struct pair *p = new_pair(sb), *mine, *other;
    struct pair_event ev = {.kind = PAIR_TURN_END, .turn = 1, .text = "report"};
    struct pair_act act;
    struct st_reply *r = put(&a, p, "@designer do", 0);
    (void)state;

    assert_int_equal(r->err.code, 0);
    assert_true(r->got);
    assert_string_equal(r->msg.key, "pair_uid00001_1");
    assert_int_equal(r->pair->rev, 1);
    assert_true(r->pair->waiting);
    assert_string_equal(r->pair->side[PAIR_CHECKER].model, "m");
    assert_true(isnan(r->pair->side[PAIR_CHECKER].cost_usd));
    mine = pair_dup(r->pair, true);
    msg_free(&r->m);
    /* a second begin is none */
    r = put(&b, p, "@designer do", 0);
    assert_false(r->got);
    assert_int_equal(r->pair->rev, 1);
    msg_free(&r->m);
    pair_free(p);
    /* both see the turn's end: one takes the step, the other learns how it stands */
    other = pair_dup(mine, true);
    pair_apply(mine, &ev, &act, NULL);
    pair_apply(other, &ev, &act, NULL);
    r = put(&a, mine, "@checker look", 0);
    assert_true(r->got && r->msg.id);
    msg_free(&r->m);
    r = put(&b, other, "@checker look", 0);
    assert_int_equal(r->err.code, 0);
    assert_false(r->got);
    assert_true(!r->msg.id && r->pair->rev == 2 && r->pair->turn == 2);
    assert_string_equal(r->pair->report, "report");
    msg_free(&r->m);
    assert_int_equal(messages(&a, sb), 2);
    pair_free(mine);
    pair_free(other);
}

static void test_all_or_nothing(void **state)
{
    uint64_t sb = storebox_sandbox(&a, "i2");
    struct pair *p = new_pair(sb);
    char *long_text = xcalloc(1, (64 << 10) + 2);
    struct st_reply *r;
    (void)state;

    str_copy(p->uid, sizeof(p->uid), "uid00002");
    memset(long_text, 'x', (64 << 10) + 1);
    r = put(&a, p, long_text, 0);
    assert_int_equal(r->err.code, ERR_LIMIT);
    msg_free(&r->m);
    store_pair(a.s, sb, storebox_to(&a));
    r = storebox_wait(&a);
    assert_null(r->pair);
    msg_free(&r->m);
    p->sandbox = 4711;
    r = put(&a, p, "x", 0);
    assert_int_equal(r->err.code, ERR_NOTFOUND);
    msg_free(&r->m);
    free(long_text);
    pair_free(p);
}

static void test_calling_off(void **state)
{
    uint64_t sb = storebox_sandbox(&a, "i3");
    struct pair *p = new_pair(sb);
    struct pair_event stop = {.kind = PAIR_STOP};
    struct pair_act act;
    struct st_reply *r;
    (void)state;

    str_copy(p->uid, sizeof(p->uid), "uid00003");
    r = put(&a, p, "@designer do", 0);
    pair_free(p);
    p = pair_dup(r->pair, true);
    msg_free(&r->m);
    pair_apply(p, &stop, &act, NULL);
    assert_int_equal(act.end_turn, 1);
    /* somebody is publishing it: it will be a turn */
    store_message_claim(b.s, sb, "b", 60000, storebox_to(&b));
    r = storebox_wait(&b);
    assert_true(r->got);
    msg_free(&r->m);
    r = put(&a, p, NULL, act.end_turn);
    assert_true(r->got && !r->called_off && r->pair->waiting && r->pair->ending);
    p->rev = r->pair->rev;
    msg_free(&r->m);
    store_message_unclaim(b.s, sb, "b");
    /* any call of the same store comes behind it */
    assert_int_equal(messages(&b, sb), 1);
    r = put(&a, p, NULL, act.end_turn);
    assert_true(r->got && r->called_off && !r->pair->waiting && !r->pair->ending);
    msg_free(&r->m);
    store_pair(a.s, sb, storebox_to(&a));
    r = storebox_wait(&a);
    assert_int_equal(r->msg.state, MSG_CANCELLED);
    msg_free(&r->m);
    pair_free(p);
}

static void test_with_its_sandbox(void **state)
{
    uint64_t sb = storebox_sandbox(&a, "i4");
    struct pair *p = new_pair(sb);
    struct st_reply *r;
    bool seen = false;
    (void)state;

    str_copy(p->uid, sizeof(p->uid), "uid00004");
    msg_free(&put(&a, p, "x", 0)->m);
    store_sandboxes(a.s, storebox_to(&a));
    r = storebox_wait(&a);
    for (size_t i = 0; i < r->n_sandboxes; i++)
        if (r->sandboxes[i].id == sb)
            seen = r->sandboxes[i].pair && r->sandboxes[i].pair->rounds == 3;
    assert_true(seen);
    msg_free(&r->m);
    store_del_sandbox(a.s, sb, storebox_to(&a));
    msg_free(&storebox_wait(&a)->m);
    store_pair(a.s, sb, storebox_to(&a));
    r = storebox_wait(&a);
    assert_null(r->pair);
    msg_free(&r->m);
    pair_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps), cmocka_unit_test(test_all_or_nothing),
        cmocka_unit_test(test_calling_off), cmocka_unit_test(test_with_its_sandbox)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, setup, teardown);
}
