/* store: every field comes back as it went in; claims, leases and intents. */
#include "../lib/storebox.h"

#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
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

static void test_sandbox_fields(void **state)
{
    (void)state;
    struct kv meta[] = {
        {LIT("a"), LIT("1")}, {LIT("b \"x\""), LIT("line\nbreak")}, {NULL, NULL}};
    struct sandbox in = {.sandbox_id = LIT("i1"),
                         .session = LIT("s1"),
                         .name = LIT("na\"me"),
                         .tool = LIT("claude"),
                         .project = LIT("p'; DROP TABLE sandboxes; --"),
                         .template_id = LIT("t"),
                         .alias = LIT("al"),
                         .branch = LIT("agent/x"),
                         .mark = LIT("m1"),
                         .tags = LIT("wip ui"),
                         .state = SB_ERROR,
                         .gone = GONE_EARLY,
                         .agent = AG_ASKS,
                         .reason = LIT("two\nlines"),
                         .foreign = true,
                         .vm_up = true,
                         .unlisted = true,
                         .not_isolated = true,
                         .protect = true,
                         .pending = true,
                         .started_at = 11,
                         .end_at = INT64_C(4102444800000),
                         .ended_at = 13,
                         .seen_at = 14,
                         .created_at = 15,
                         .agent_since = 16,
                         .cpu_count = 4,
                         .memory_mb = 512,
                         .disk_mb = 1024,
                         .meta = meta,
                         .last_line = LIT("\xE2\x94\x82 last"),
                         .cost_usd = 0.1,
                         .tokens_in = INT64_C(1) << 60,
                         .tokens_out = 7};
    struct sandbox empty = {.state = SB_CREATING, .cost_usd = (double)NAN, .mark = LIT("m2")};
    store_put_sandbox(b.s, &in, storebox_to(&b));
    struct st_reply *r = storebox_ok(&b);
    assert_int_equal(r->n_sandboxes, 1);
    assert_true(r->sandboxes[0].id > 0);
    msg_free(&r->m);
    store_put_sandbox(b.s, &empty, storebox_to(&b));
    msg_free(&storebox_ok(&b)->m);
    storebox_again(&b, dir);
    store_sandboxes(b.s, storebox_to(&b));
    r = storebox_ok(&b);
    assert_int_equal(r->n_sandboxes, 2);
    struct sandbox *o = &r->sandboxes[0];
#define SAME_TEXT(f) assert_string_equal(o->f, in.f)
#define SAME(f) assert_true(o->f == in.f)
    SAME_TEXT(sandbox_id), SAME_TEXT(session), SAME_TEXT(name), SAME_TEXT(tool);
    SAME_TEXT(project), SAME_TEXT(template_id), SAME_TEXT(alias), SAME_TEXT(mark), SAME_TEXT(branch);
    SAME_TEXT(tags);
    SAME_TEXT(reason), SAME_TEXT(last_line);
    SAME(state), SAME(gone), SAME(agent), SAME(foreign), SAME(vm_up), SAME(unlisted);
    SAME(not_isolated), SAME(protect), SAME(pending), SAME(started_at), SAME(end_at);
    SAME(ended_at), SAME(seen_at), SAME(created_at), SAME(agent_since), SAME(cpu_count);
    SAME(memory_mb), SAME(disk_mb), SAME(cost_usd), SAME(tokens_in), SAME(tokens_out);
    assert_string_equal(o->meta[1].k, "b \"x\"");
    assert_string_equal(o->meta[1].v, "line\nbreak");
    assert_null(o->meta[2].k);
    o = &r->sandboxes[1];
    assert_null(o->sandbox_id), assert_null(o->name), assert_null(o->meta);
    assert_true(isnan(o->cost_usd));
    uint64_t id = o->id;
    msg_free(&r->m);
    /* an update changes that row */
    empty.id = id;
    empty.sandbox_id = LIT("i2");
    empty.state = SB_KILLED;
    store_put_sandbox(b.s, &empty, storebox_to(&b));
    r = storebox_ok(&b);
    assert_int_equal(r->sandboxes[0].state, SB_KILLED);
    assert_string_equal(r->sandboxes[0].sandbox_id, "i2");
    msg_free(&r->m);
    empty.id = 999;
    store_put_sandbox(b.s, &empty, storebox_to(&b));
    storebox_says(&b, ERR_NOTFOUND);
    empty.id = id;
    empty.sandbox_id = LIT("i1");
    store_put_sandbox(b.s, &empty, storebox_to(&b));
    storebox_says(&b, ERR_CONFLICT);
}

/* Seen first by two instances at once it is still one row; what it holds stays. */
static void test_sandbox_once(void **state)
{
    (void)state;
    struct sandbox own = {.mark = LIT("mk"), .name = LIT("mine"), .state = SB_CREATING};
    store_put_sandbox(b.s, &own, storebox_to(&b));
    struct st_reply *r = storebox_ok(&b);
    uint64_t id = r->sandboxes[0].id;
    msg_free(&r->m);
    struct sandbox seen = {
        .mark = LIT("mk"), .name = LIT("other"), .sandbox_id = LIT("i9"), .state = SB_RUNNING};
    for (int i = 0; i < 2; i++) {
        store_put_sandbox(b.s, &seen, storebox_to(&b));
        r = storebox_ok(&b);
        assert_true(r->sandboxes[0].id == id);
        assert_string_equal(r->sandboxes[0].name, "mine");
        assert_string_equal(r->sandboxes[0].sandbox_id, "i9");
        msg_free(&r->m);
    }
    store_sandboxes(b.s, storebox_to(&b));
    r = storebox_ok(&b);
    assert_int_equal(r->n_sandboxes, 1);
    msg_free(&r->m);
}

static void test_messages(void **state)
{
    (void)state;
    uint64_t sb = storebox_sandbox(&b, "i1"), other = storebox_sandbox(&b, "i2");
    store_message_add(b.s, sb, "first\nsecond line\t\"quoted\"", storebox_to(&b));
    struct st_reply *r = storebox_ok(&b);
    uint64_t first = r->msg.id;
    assert_int_equal(r->m.type, ST_MESSAGE);
    assert_string_equal(r->msg.text, "first\nsecond line\t\"quoted\"");
    assert_int_equal(strlen(r->msg.key), 16);
    assert_int_equal(r->msg.state, MSG_QUEUED);
    assert_true(r->msg.sandbox == sb && r->msg.created_at > 0);
    msg_free(&r->m);
    store_message_add(b.s, sb, "", storebox_to(&b));
    msg_free(&storebox_ok(&b)->m);
    store_message_add(b.s, other, "elsewhere", storebox_to(&b));
    msg_free(&storebox_ok(&b)->m);
    store_message_add(b.s, 4711, "nobody", storebox_to(&b));
    storebox_says(&b, ERR_NOTFOUND);

    store_message_claim(b.s, sb, "a", 60000, storebox_to(&b));
    r = storebox_ok(&b);
    assert_true(r->got && r->msg.id == first);
    msg_free(&r->m);
    store_message_claim(b.s, sb, "b", 60000, storebox_to(&b));
    r = storebox_ok(&b);
    assert_true(!r->got && r->msg.id == 0);
    msg_free(&r->m);
    /* given back by its owner alone, it is free at once */
    store_message_unclaim(b.s, sb, "b");
    store_message_claim(b.s, sb, "b", 60000, storebox_to(&b));
    r = storebox_ok(&b);
    assert_false(r->got);
    msg_free(&r->m);
    store_message_unclaim(b.s, sb, "a");
    store_message_claim(b.s, sb, "b", 60000, storebox_to(&b));
    r = storebox_ok(&b);
    assert_true(r->got && r->msg.id == first);
    msg_free(&r->m);
    /* claimed: it can no longer be called off; its owner may claim again */
    store_message_state(b.s, first, MSG_QUEUED, MSG_CANCELLED, NULL, storebox_to(&b));
    r = storebox_ok(&b);
    assert_true(!r->got && r->msg.state == MSG_QUEUED);
    msg_free(&r->m);
    store_message_state(b.s, first, MSG_QUEUED, MSG_SENT, NULL, storebox_to(&b));
    r = storebox_ok(&b);
    assert_true(r->got && r->msg.state == MSG_SENT && r->msg.sent_at > 0);
    msg_free(&r->m);
    /* one is on its way: the next one waits */
    store_message_claim(b.s, sb, "a", 60000, storebox_to(&b));
    r = storebox_ok(&b);
    assert_false(r->got);
    msg_free(&r->m);
    store_message_state(b.s, first, MSG_QUEUED, MSG_FAILED, "x", storebox_to(&b));
    r = storebox_ok(&b);
    assert_true(!r->got && r->msg.state == MSG_SENT && !r->msg.error);
    msg_free(&r->m);
    store_message_state(b.s, first, MSG_SENT, MSG_FAILED, "refused", storebox_to(&b));
    r = storebox_ok(&b);
    assert_true(r->got);
    assert_string_equal(r->msg.error, "refused");
    msg_free(&r->m);
    store_message_state(b.s, 4711, MSG_SENT, MSG_FAILED, "", storebox_to(&b));
    storebox_says(&b, ERR_NOTFOUND);
    store_message_claim(b.s, sb, "a", 1, storebox_to(&b));
    r = storebox_ok(&b);
    assert_true(r->got && r->msg.id > first);
    assert_string_equal(r->msg.text, "");
    int64_t until = clock_wall_ms() + 2;
    msg_free(&r->m);
    while (clock_wall_ms() < until)
        usleep(500);
    store_message_claim(b.s, sb, "b", 60000, storebox_to(&b)); /* the claim ran out */
    r = storebox_ok(&b);
    assert_true(r->got);
    msg_free(&r->m);

    store_messages(b.s, sb, 1, storebox_to(&b));
    r = storebox_ok(&b);
    assert_int_equal(r->n_messages, 1);
    assert_string_equal(r->messages[0].text, "");
    msg_free(&r->m);
    store_messages(b.s, 0, 100, storebox_to(&b));
    r = storebox_ok(&b);
    assert_int_equal(r->n_messages, 3);
    assert_true(r->messages[0].id == first);
    msg_free(&r->m);
    char *long_text = xcalloc(1, (64 << 10) + 2);
    memset(long_text, 'x', (64 << 10) + 1);
    store_message_add(b.s, sb, long_text, storebox_to(&b));
    storebox_says(&b, ERR_LIMIT);
    free(long_text);
}

static void test_leases(void **state)
{
    (void)state;
    static const struct {
        const char *owner;
        bool got;
    } steps[] = {{"a", true}, {"b", false}, {"a", true}};
    for (size_t i = 0; i < 3; i++) {
        store_lease(b.s, "poll", steps[i].owner, 60000, storebox_to(&b));
        struct st_reply *r = storebox_ok(&b);
        assert_int_equal(r->got, steps[i].got);
        msg_free(&r->m);
    }
    store_lease_drop(b.s, "poll", "b"); /* not his */
    store_lease(b.s, "poll", "b", 60000, storebox_to(&b));
    struct st_reply *r = storebox_ok(&b);
    assert_false(r->got);
    msg_free(&r->m);
    store_lease_drop(b.s, "poll", "a");
    store_lease(b.s, "poll", "b", 60000, storebox_to(&b));
    r = storebox_ok(&b);
    assert_true(r->got);
    msg_free(&r->m);
}

/* A lease and a claim that end further ahead than they were given for are of before the clock was
 * set back: they hold nobody up. */
static void test_clock_set_back(void **state)
{
    (void)state;
    char *path = xasprintf("%s/cc-tui.db", dir);
    uint64_t sb = storebox_sandbox(&b, "i1");
    struct st_reply *r;

    store_lease(b.s, "poll", "a", 60000, storebox_to(&b));
    storebox_says(&b, 0);
    store_message_add(b.s, sb, "m", storebox_to(&b));
    storebox_says(&b, 0);
    store_message_claim(b.s, sb, "a", 60000, storebox_to(&b));
    storebox_says(&b, 0);
    storebox_sql(path, "UPDATE leases SET until=until+3600000;"
                       " UPDATE sandboxMessages SET claimUntil=claimUntil+3600000");
    store_lease(b.s, "poll", "b", 60000, storebox_to(&b));
    r = storebox_ok(&b);
    assert_true(r->got);
    msg_free(&r->m);
    store_message_claim(b.s, sb, "b", 60000, storebox_to(&b));
    r = storebox_ok(&b);
    assert_true(r->got);
    msg_free(&r->m);
    free(path);
}

static void test_intents_and_log(void **state)
{
    (void)state;
    store_intent_add(b.s, true, NULL, NULL, storebox_to(&b));
    struct st_reply *r = storebox_ok(&b);
    uint64_t id = r->intents[0].id;
    msg_free(&r->m);
    store_intent_add(b.s, false, "p", "mark", storebox_to(&b));
    msg_free(&storebox_ok(&b)->m);
    store_log_add(b.s, 2, 7, "went\nwrong");
    store_log_add(b.s, 0, 0, "fine");
    storebox_again(&b, dir);
    store_intents(b.s, storebox_to(&b));
    r = storebox_ok(&b);
    assert_int_equal(r->n_intents, 2);
    assert_true(r->intents[0].account && !r->intents[0].project && !r->intents[0].target);
    assert_string_equal(r->intents[1].project, "p");
    assert_string_equal(r->intents[1].target, "mark");
    msg_free(&r->m);
    store_intent_done(b.s, id, storebox_to(&b));
    storebox_says(&b, 0);
    store_intents(b.s, storebox_to(&b));
    r = storebox_ok(&b);
    assert_int_equal(r->n_intents, 1);
    msg_free(&r->m);
    store_log(b.s, 10, storebox_to(&b));
    r = storebox_ok(&b);
    assert_int_equal(r->n_log, 2);
    assert_string_equal(r->log[0].text, "went\nwrong");
    assert_true(r->log[0].level == 2 && r->log[0].sandbox == 7 && r->log[0].time_ms > 0);
    msg_free(&r->m);
}

static void test_memory_only(void **state)
{
    (void)state;
    struct storebox m;
    storebox_start(&m, NULL);
    assert_int_equal(m.opened->err.code, 0);
    uint64_t run = storebox_run(&m, storebox_sandbox(&m, "i1"), "s");
    storebox_append(&m, run, 0, "abc", storebox_to(&m));
    struct st_reply *r = storebox_wait(&m);
    assert_int_equal(r->stored, 3);
    assert_false(store_busy(m.s));
    msg_free(&r->m);
    storebox_stop(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_sandbox_fields, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_sandbox_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_messages, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_leases, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_clock_set_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_intents_and_log, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_memory_only, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
