/* store: lines of plain text are kept once, as bytes, and come back as events; also when two
 * instances store them, and after the bytes went. */
#include "../lib/storebox.h"

#include <cct/util/buf.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* keep last */
#include <cmocka.h>

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

enum { LINE = 6, FIRST_LINE = 100 }; /* "00042\n": its number since the log's begin */

static char *numbered(size_t from, size_t n)
{
    struct buf out = BUF_INIT;
    for (size_t i = from; i < from + n; i++)
        buf_addf(&out, "%05zu\n", i);
    return buf_detach(&out, NULL);
}

/* Lines [from, from + n) at once. */
static void put_lines(uint64_t run, size_t from, size_t n, struct st_to to)
{
    struct st_append a = {.run = run, .offset = from * LINE, .raw = numbered(from, n),
                          .len = n * LINE, .n_events = 1};
    a.events = xcalloc(1, sizeof(*a.events));
    a.events[0] = (struct st_event){.offset = a.offset, .len = a.len, .plain = true,
                                    .line = FIRST_LINE + from};
    store_append(b.s, &a, to);
}

static void check_lines(uint64_t run, uint64_t offset, uint32_t index, bool before, size_t limit,
                        size_t first, size_t n, bool more)
{
    store_events(b.s, run, offset, index, before, limit, storebox_to(&b));
    struct st_reply *r = storebox_ok(&b);
    assert_int_equal(r->n_events, n);
    assert_int_equal(r->more_before, more);
    for (size_t i = 0; i < n; i++) {
        const struct st_event *ev = &r->events[i];
        char want[16];
        snprintf(want, sizeof(want), "%05zu", first + i);
        assert_int_equal(ev->offset, (first + i) * LINE);
        assert_true(ev->plain);
        assert_int_equal(ev->index, 0);
        assert_int_equal(ev->line, FIRST_LINE + first + i);
        assert_int_equal(ev->len, 5);
        assert_string_equal(ev->json, want);
    }
    msg_free(&r->m);
}

static void look_at_lines(uint64_t run)
{
    check_lines(run, 0, 0, false, 1000, 0, 250, false);
    check_lines(run, 0, 1, false, 1000, 1, 249, true);
    check_lines(run, 37 * LINE, 0, false, 20, 37, 20, true);
    check_lines(run, 37 * LINE + 1, 0, false, 200, 38, 200, true);
    check_lines(run, 95 * LINE, 0, false, 10, 95, 10, true); /* two rows */
    check_lines(run, 250 * LINE, 0, false, 10, 0, 0, true);
    check_lines(run, 37 * LINE, 0, true, 20, 17, 20, true);
    check_lines(run, 37 * LINE, 1, true, 20, 18, 20, true);
    check_lines(run, 105 * LINE, 0, true, 10, 95, 10, true);
    check_lines(run, 20 * LINE, 0, true, 20, 0, 20, false);
    check_lines(run, 21 * LINE, 0, true, 20, 1, 20, true);
    check_lines(run, INT64_MAX, UINT32_MAX, true, 3, 247, 3, true);
    check_lines(run, 0, 0, true, 3, 0, 0, false);
}

/* Their bytes are not stored twice, and each is an event of its own to whoever reads. */
static void test_lines(void **state)
{
    (void)state;
    uint64_t run = storebox_run(&b, storebox_sandbox(&b, "i1"), "s");
    put_lines(run, 0, 100, storebox_to(&b));
    put_lines(run, 100, 150, storebox_to(&b));
    msg_free(&storebox_ok(&b)->m);
    look_at_lines(run);
    storebox_again(&b, dir);
    look_at_lines(run);
}

/* Who is behind has cut them elsewhere: what was stored by then is not stored once more. */
static void test_lines_of_two(void **state)
{
    (void)state;
    uint64_t run = storebox_run(&b, storebox_sandbox(&b, "i1"), "s");
    put_lines(run, 0, 60, storebox_to(&b));
    put_lines(run, 0, 30, storebox_to(&b));
    put_lines(run, 30, 70, storebox_to(&b));
    put_lines(run, 60, 40, storebox_to(&b));
    put_lines(run, 100, 150, storebox_to(&b));
    put_lines(run, 100, 150, storebox_to(&b));
    msg_free(&storebox_ok(&b)->m);
    look_at_lines(run);
}

/* Lines [from, from + n), an event each. */
static void put_each(uint64_t run, size_t from, size_t n, struct st_to to)
{
    struct st_append a = {.run = run, .offset = from * LINE, .raw = numbered(from, n),
                          .len = n * LINE, .n_events = n};
    a.events = xcalloc(n, sizeof(*a.events));
    for (size_t i = 0; i < n; i++) {
        struct st_event *ev = &a.events[i];
        ev->offset = (from + i) * LINE;
        ev->json = xasprintf("{\"kind\":\"raw\",\"text\":\"%05zu\"}", from + i);
        ev->len = strlen(ev->json);
    }
    store_append(b.s, &a, to);
}

/* A command beside the screen takes them one by one: they are there already. */
static void test_lines_of_two_kinds(void **state)
{
    (void)state;
    uint64_t run = storebox_run(&b, storebox_sandbox(&b, "i1"), "s");
    put_lines(run, 0, 60, storebox_to(&b));
    put_each(run, 0, 30, storebox_to(&b));
    put_lines(run, 60, 190, storebox_to(&b));
    put_each(run, 30, 220, storebox_to(&b));
    msg_free(&storebox_ok(&b)->m);
    look_at_lines(run);
    put_each(run, 250, 5, storebox_to(&b));
    store_events(b.s, run, 240 * LINE, 0, false, 1000, storebox_to(&b));
    struct st_reply *r = storebox_ok(&b);
    assert_int_equal(r->n_events, 15);
    msg_free(&r->m);
}

/* When the raw bytes go, the lines stay. */
static void test_lines_outlive_raw(void **state)
{
    (void)state;
    uint64_t sandbox = storebox_sandbox(&b, "i1"), run = storebox_run(&b, sandbox, "s");
    for (size_t i = 0; i < 50; i++) /* more rows than are dealt with at once */
        put_lines(run, i * 5, 5, storebox_to(&b));
    msg_free(&storebox_ok(&b)->m);
    store_run_end(b.s, run, 0, 0, storebox_to(&b));
    msg_free(&storebox_ok(&b)->m);
    storebox_stop(&b);
    storebox_start_with(&b, &(struct store_opts){.dir = dir, .max_bytes = 1});
    store_prune(b.s, storebox_to(&b));
    msg_free(&storebox_ok(&b)->m);
    store_raw(b.s, run, 0, 1000, storebox_to(&b));
    struct st_reply *r = storebox_ok(&b);
    assert_int_equal(r->raw_len, 0);
    msg_free(&r->m);
    look_at_lines(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lines, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_lines_of_two, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_lines_of_two_kinds, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_lines_outlive_raw, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("store_lines", tests, NULL, NULL);
}
