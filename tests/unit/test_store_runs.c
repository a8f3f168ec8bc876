/* store: bytes and events of runs: appends trim, refuse and dedupe, what stops is written, what is
 * old or too much goes. */
#include "../lib/storebox.h"

#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

static void check_append(uint64_t run, uint64_t offset, const char *text, int code,
                         uint64_t stored)
{
    storebox_append(&b, run, offset, text, storebox_to(&b));
    struct st_reply *r = storebox_wait(&b);
    if (r->err.code != code || r->stored != stored)
        fail_msg("append at %d: code %d stored %d: %s", (int)offset, r->err.code,
                 (int)r->stored, r->err.text);
    assert_int_equal(r->m.type, ST_APPENDED);
    msg_free(&r->m);
}

static void check_raw(uint64_t run, uint64_t offset, size_t max, const char *want)
{
    store_raw(b.s, run, offset, max, storebox_to(&b));
    struct st_reply *r = storebox_ok(&b);
    assert_int_equal(r->raw_len, strlen(want));
    if (*want)
        assert_memory_equal(r->raw, want, r->raw_len);
    msg_free(&r->m);
}

static void test_append(void **state)
{
    (void)state;
    uint64_t sb = storebox_sandbox(&b, "i1"), run = storebox_run(&b, sb, "s");
    check_append(run, 0, "abcdef", 0, 6);
    check_append(run, 6, "ghi", 0, 9);
    check_append(run, 3, "defghijk", 0, 11); /* overlap: only the tail is new */
    check_append(run, 0, "abc", 0, 11);      /* all known */
    check_append(run, 12, "x", ERR_CONFLICT, 11);
    check_append(run + 1, 0, "x", ERR_NOTFOUND, 0);
    check_append(run, 11, "", 0, 11); /* an event without bytes: the exit */
    check_raw(run, 0, 100, "abcdefghijk");
    check_raw(run, 4, 3, "efg");
    check_raw(run, 11, 100, "");
    store_run_open(b.s, sb, "s", 1, storebox_to(&b));
    struct st_reply *r = storebox_ok(&b);
    assert_true(r->run.id == run && r->run.stored == 11 && r->run.turn_offset == 11);
    assert_true(!r->run.ended && r->run.exit_code == -1);
    assert_string_equal(r->run.session, "s");
    msg_free(&r->m);
    store_run_open(b.s, sb, "s", 2, storebox_to(&b));
    r = storebox_ok(&b);
    assert_true(r->run.id != run && r->run.epoch == 2 && r->run.stored == 0);
    msg_free(&r->m);
    store_run_open(b.s, 4711, "s", 1, storebox_to(&b));
    storebox_says(&b, ERR_NOTFOUND);
    store_run_end(b.s, run, 143, 15, storebox_to(&b));
    r = storebox_ok(&b);
    assert_true(r->run.ended && r->run.exit_code == 143 && r->run.exit_signal == 15);
    msg_free(&r->m);
    store_run_end(b.s, 4711, 0, 0, storebox_to(&b));
    storebox_says(&b, ERR_NOTFOUND);
}

static void test_big_bytes(void **state)
{
    (void)state;
    uint64_t run = storebox_run(&b, storebox_sandbox(&b, "i1"), "s");
    size_t n = 1 << 20;
    char *keep = xmalloc(n);
    rand_bytes(keep, n); /* NULs and all */
    for (uint64_t i = 0; i < 3; i++) {
        struct st_append a = {.run = run, .offset = i * n, .raw = xmalloc(n), .len = n};
        memcpy(a.raw, keep, n);
        store_append(b.s, &a, storebox_to(&b));
        assert_null(a.raw);
    }
    struct st_reply *r = storebox_ok(&b);
    assert_int_equal(r->stored, 3 * n);
    msg_free(&r->m);
    storebox_again(&b, dir);
    store_raw(b.s, run, n / 2, 2 * n, storebox_to(&b));
    r = storebox_ok(&b);
    assert_int_equal(r->raw_len, 2 * n);
    assert_memory_equal(r->raw, keep + n / 2, n / 2);
    assert_memory_equal(r->raw + n / 2, keep, n);
    msg_free(&r->m);
    free(keep);
}

static void check_events(uint64_t run, uint64_t offset, bool before, size_t limit,
                         uint64_t first, size_t n, bool more)
{
    store_events(b.s, run, offset, 0, before, limit, storebox_to(&b));
    struct st_reply *r = storebox_ok(&b);
    assert_int_equal(r->n_events, n);
    assert_int_equal(r->more_before, more);
    for (size_t i = 0; i < n; i++) {
        char want[40];
        snprintf(want, sizeof(want), "{\"line\":%d}", (int)(first + 2 * i));
        assert_int_equal(r->events[i].offset, first + 2 * i);
        assert_string_equal(r->events[i].json, want);
        assert_int_equal(r->events[i].len, strlen(want));
    }
    msg_free(&r->m);
}

static void test_events(void **state)
{
    (void)state;
    uint64_t run = storebox_run(&b, storebox_sandbox(&b, "i1"), "s");
    for (uint64_t i = 0; i < 300; i++) /* more than a batch, no waiting in between */
        storebox_append(&b, run, i * 2, "a\n", storebox_to(&b));
    for (uint64_t i = 0; i < 300; i += 7) /* said again: nothing changes */
        storebox_append(&b, run, i * 2, "a\n", storebox_to(&b));
    check_events(run, 0, false, 1000, 0, 300, false);
    check_events(run, 100, false, 5, 100, 5, true);
    check_events(run, 100, true, 5, 90, 5, true);
    check_events(run, 10, true, 5, 0, 5, false);
    check_events(run, 0, true, 5, 0, 0, false);
    check_events(run, UINT64_MAX, true, 3, 594, 3, true);
}

/* Lines [from, from + n) of two bytes, an event for each, their JSON in one block; the event
 * of line `twice` comes twice, that of `late` behind its successor (0: none). */
static void put_block(uint64_t run, uint64_t from, size_t n, size_t twice, size_t late)
{
    struct buf raw = BUF_INIT, json = BUF_INIT;
    struct st_append a = {.run = run, .offset = 2 * from, .len = 2 * n};
    a.events = xcalloc(n + 1, sizeof(*a.events));
    for (size_t i = from; i < from + n; i++)
        for (int times = i == twice && twice ? 2 : 1; times--; a.n_events++) {
            size_t at = json.len;
            buf_addf(&json, "{\"line\":%zu}", 2 * i);
            a.events[a.n_events].offset = 2 * i;
            a.events[a.n_events].len = json.len - at;
            buf_addc(&json, '\0');
        }
    for (size_t i = from; i < from + n; i++)
        buf_adds(&raw, "a\n");
    a.raw = buf_detach(&raw, NULL);
    a.json = buf_detach(&json, NULL);
    size_t at = 0;
    for (size_t i = 0; i < a.n_events; at += a.events[i++].len + 1)
        a.events[i].json = a.json + at;
    if (late) {
        struct st_event e = a.events[late - from];
        a.events[late - from] = a.events[late - from + 1];
        a.events[late - from + 1] = e;
    }
    store_append(b.s, &a, storebox_to(&b));
    assert_null(a.json);
    assert_null(a.events);
}

/* Many at once, some of which were stored, come twice or out of order: each is there once. */
static void test_many_events(void **state)
{
    (void)state;
    uint64_t run = storebox_run(&b, storebox_sandbox(&b, "i1"), "s");
    uint64_t other = storebox_run(&b, storebox_sandbox(&b, "i2"), "s");
    put_block(run, 0, 100, 0, 0);
    storebox_says(&b, 0);
    check_events(run, 0, false, 1000, 0, 100, false);
    put_block(run, 50, 100, 0, 0); /* half of it is known */
    put_block(other, 0, 31, 0, 0); /* few */
    put_block(run, 0, 100, 0, 0);  /* all of it */
    storebox_says(&b, 0);
    check_events(run, 0, false, 1000, 0, 150, false);
    check_events(other, 0, false, 1000, 0, 31, false);
    put_block(run, 150, 200, 217, 0);
    put_block(run, 350, 200, 0, 377);
    put_block(run, 550, 33, 0, 0);
    storebox_says(&b, 0);
    check_events(run, 0, false, 1000, 0, 583, false);
    check_events(run, 200, true, 70, 60, 70, true);
    storebox_again(&b, dir);
    check_events(run, 0, false, 1000, 0, 583, false);
}

/* Stopping writes all that was posted, and the log file is empty after it. */
static void test_stop_commits(void **state)
{
    (void)state;
    uint64_t run = storebox_run(&b, storebox_sandbox(&b, "i1"), "s");
    for (uint64_t i = 0; i < 50; i++)
        storebox_append(&b, run, i * 2, "a\n", (struct st_to){NULL, 0});
    storebox_stop(&b);
    struct stat st;
    char *wal = xasprintf("%s/cc-tui.db-wal", dir);
    assert_true(stat(wal, &st) != 0 || st.st_size == 0);
    free(wal);
    storebox_start(&b, dir);
    check_events(run, 0, false, 1000, 0, 50, false);
}

static void test_retention(void **state)
{
    (void)state;
    int64_t now = clock_wall_ms(), day = 24 * 3600 * 1000;
    struct sandbox old = {
        .sandbox_id = LIT("old"), .state = SB_KILLED, .ended_at = now - 40 * day};
    struct sandbox young = {
        .sandbox_id = LIT("young"), .state = SB_KILLED, .ended_at = now - day};
    struct sandbox never_ran = {
        .sandbox_id = LIT("never"), .state = SB_KILLED, .ended_at = now - 40 * day};
    struct sandbox up = {
        .sandbox_id = LIT("up"), .state = SB_RUNNING, .created_at = now - 90 * day};
    store_put_sandbox(b.s, &old, storebox_to(&b));
    struct st_reply *r = storebox_ok(&b);
    uint64_t old_id = r->sandboxes[0].id;
    msg_free(&r->m);
    store_put_sandbox(b.s, &young, storebox_to(&b));
    store_put_sandbox(b.s, &up, storebox_to(&b));
    store_put_sandbox(b.s, &never_ran, storebox_to(&b));
    uint64_t run = storebox_run(&b, old_id, "s");
    for (uint64_t i = 0; i < 700; i++)
        storebox_append(&b, run, i * 2, "a\n", storebox_to(&b));
    store_message_add(b.s, old_id, "m", storebox_to(&b));
    store_prune(b.s, storebox_to(&b));
    storebox_says(&b, 0);
    store_sandboxes(b.s, storebox_to(&b));
    r = storebox_ok(&b);
    assert_int_equal(r->n_sandboxes, 2);
    msg_free(&r->m);
    store_messages(b.s, 0, 10, storebox_to(&b));
    r = storebox_ok(&b);
    assert_int_equal(r->n_messages, 0);
    msg_free(&r->m);
    check_events(run, 0, false, 1000, 0, 0, false);
    assert_true(storebox_sandbox(&b, "fresh") > old_id + 3); /* ids are not used again */
}

static void test_raw_limit(void **state)
{
    (void)state;
    uint64_t sb = storebox_sandbox(&b, "i1"), runs[3];
    static const char *const names[] = {"one", "two", "live"};
    storebox_stop(&b);
    struct store_opts o = {.dir = dir, .max_bytes = 3000, .vacuum = true};
    storebox_start_with(&b, &o);
    for (int k = 0; k < 3; k++) {
        runs[k] = storebox_run(&b, sb, names[k]);
        for (uint64_t i = 0; i < 1000; i++)
            storebox_append(&b, runs[k], i * 2, "a\n", storebox_to(&b));
        if (k < 2)
            store_run_end(b.s, runs[k], 0, 0, storebox_to(&b));
    }
    store_prune(b.s, storebox_to(&b));
    storebox_says(&b, 0);
    for (int k = 0; k < 3; k++) {
        store_raw(b.s, runs[k], 0, 5000, storebox_to(&b));
        struct st_reply *r = storebox_ok(&b);
        assert_int_equal(r->raw_len, k == 2 ? 2000 : 0);
        assert_int_equal(r->stored, 2000);
        msg_free(&r->m);
        check_events(runs[k], 0, false, 2000, 0, 1000, false); /* the events stay */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_append, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many_events, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_big_bytes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_events, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_stop_commits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_retention, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_raw_limit, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("store: runs", tests, NULL, NULL);
}
