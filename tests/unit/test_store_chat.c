/* store: several messages in one transaction, and what is put in front of a queue. */
#include "../lib/storebox.h"

#include <cct/util/limits.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct storebox b;

static int set_up(void **state)
{
    (void)state;
    storebox_start(&b, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    storebox_stop(&b);
    return 0;
}

static size_t stored(void)
{
    store_messages(b.s, 0, 1000, storebox_to(&b));
    struct st_reply *r = storebox_wait(&b);
    size_t n = r->n_messages;
    msg_free(&r->m);
    return n;
}

static uint64_t add(uint64_t sandbox, const char *text, bool first)
{
    if (first)
        store_message_add_first(b.s, sandbox, text, storebox_to(&b));
    else
        store_message_add(b.s, sandbox, text, storebox_to(&b));
    struct st_reply *r = storebox_wait(&b);
    uint64_t id = r->msg.id;
    assert_int_equal(r->err.code, 0);
    msg_free(&r->m);
    return id;
}

/* The id that was claimed, 0 = none. */
static uint64_t claim(uint64_t sandbox, const char *owner)
{
    store_message_claim(b.s, sandbox, owner, 60000, storebox_to(&b));
    struct st_reply *r = storebox_wait(&b);
    uint64_t id = r->got ? r->msg.id : 0;
    msg_free(&r->m);
    return id;
}

static void change(uint64_t id, enum msg_state from, enum msg_state to)
{
    store_message_state(b.s, id, from, to, NULL, storebox_to(&b));
    struct st_reply *r = storebox_wait(&b);
    assert_true(r->got);
    msg_free(&r->m);
}

static void test_several(void **state)
{
    uint64_t one = storebox_sandbox(&b, "i1"), two = storebox_sandbox(&b, "i2");
    struct st_letter v[] = {{two, (char *)"for two"}, {one, (char *)"for one"}};
    (void)state;
    store_messages_add(b.s, v, 2, false, storebox_to(&b));
    struct st_reply *r = storebox_wait(&b);
    assert_int_equal(r->err.code, 0);
    assert_int_equal(r->n_messages, 2);
    assert_true(r->messages[0].sandbox == two);
    assert_string_equal(r->messages[0].text, "for two");
    assert_string_equal(r->messages[1].text, "for one");
    assert_int_equal(r->messages[1].state, MSG_QUEUED);
    assert_string_not_equal(r->messages[0].key, r->messages[1].key);
    msg_free(&r->m);
    assert_int_equal(stored(), 2);
}

/* One that cannot be stored leaves none of them behind. */
static void test_all_or_none(void **state)
{
    uint64_t one = storebox_sandbox(&b, "i1");
    char *long_text = xmalloc(LIM_MESSAGE_BYTES + 2);
    struct st_letter v[] = {{one, (char *)"a"}, {4711, (char *)"b"}, {one, (char *)"c"}};
    (void)state;
    store_messages_add(b.s, v, 3, false, storebox_to(&b));
    struct st_reply *r = storebox_wait(&b);
    assert_int_equal(r->err.code, ERR_NOTFOUND);
    msg_free(&r->m);
    assert_int_equal(stored(), 0);
    memset(long_text, 'x', LIM_MESSAGE_BYTES + 1);
    long_text[LIM_MESSAGE_BYTES + 1] = 0;
    v[1] = (struct st_letter){one, long_text};
    store_messages_add(b.s, v, 3, false, storebox_to(&b));
    r = storebox_wait(&b);
    assert_int_equal(r->err.code, ERR_LIMIT);
    msg_free(&r->m);
    free(long_text);
    assert_int_equal(stored(), 0);
}

static void test_in_front(void **state)
{
    uint64_t sb = storebox_sandbox(&b, "i1");
    (void)state;
    uint64_t first = add(sb, "first", false), second = add(sb, "second", false);
    uint64_t now = add(sb, "now", true);
    assert_true(claim(sb, "a") == now);
    change(now, MSG_QUEUED, MSG_SENT);
    assert_true(claim(sb, "a") == 0);
    change(now, MSG_SENT, MSG_DELIVERED);
    assert_true(claim(sb, "a") == first);
    change(first, MSG_QUEUED, MSG_SENT);
    change(first, MSG_SENT, MSG_DELIVERED);
    assert_true(claim(sb, "a") == second);
}

/* What somebody publishes right now goes first, whatever comes in front meanwhile. */
static void test_in_front_of_a_claim(void **state)
{
    uint64_t sb = storebox_sandbox(&b, "i1");
    (void)state;
    uint64_t first = add(sb, "first", false);
    assert_true(claim(sb, "a") == first);
    uint64_t now = add(sb, "now", true);
    assert_true(claim(sb, "b") == 0);
    assert_true(claim(sb, "a") == first);
    change(first, MSG_QUEUED, MSG_SENT);
    change(first, MSG_SENT, MSG_DELIVERED);
    assert_true(claim(sb, "b") == now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_several, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_all_or_none, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_in_front, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_in_front_of_a_claim, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("store chat", tests, NULL, NULL);
}
