/* When something is told: held, not too often, several as one, nothing that is seen. */
#include <cct/model/notify.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 64 };
static uint64_t on_screen, gone;
static struct row {
    struct sandbox s;
    char name[16], last[32];
} rows[ROWS];

static const struct sandbox *row(void *ctx, uint64_t sandbox)
{
    (void)ctx;
    return sandbox == on_screen || sandbox == gone ? NULL : &rows[sandbox].s;
}

static void look(struct notify *n, uint64_t id, enum sb_state state, enum sb_agent agent,
                 bool ending, int64_t now)
{
    struct row *r = &rows[id];
    snprintf(r->name, sizeof(r->name), "box-%d", (int)id);
    snprintf(r->last, sizeof(r->last), "line of %d", (int)id);
    r->s = (struct sandbox){.id = id, .name = r->name, .state = state, .agent = agent,
                            .last_line = r->last};
    notify_look(n, &r->s, ending, now);
}

static void is_working(struct notify *n, uint64_t id, int64_t now)
{
    look(n, id, SB_RUNNING, AG_WORKING, false, now);
}

static void asks(struct notify *n, uint64_t id, int64_t now)
{
    look(n, id, SB_RUNNING, AG_ASKS, false, now);
}

static void told(struct notify *n, int64_t now, const char *title, const char *body)
{
    struct note note;
    if (!notify_next(n, now, row, NULL, &note))
        fail_msg("at %d nothing is told, not '%s'", (int)now, title);
    assert_string_equal(note.title, title);
    assert_string_equal(note.body, body);
}

static void silent(struct notify *n, int64_t now)
{
    struct note note;
    if (notify_next(n, now, row, NULL, &note))
        fail_msg("at %d: '%s'", (int)now, note.title);
}

static void test_held(void **state)
{
    (void)state;
    struct notify *n = notify_new();
    asks(n, 1, 0); /* as it was found */
    silent(n, 5000);
    assert_int_equal(notify_wait(n, 5000), -1);
    is_working(n, 1, 6000);
    asks(n, 1, 10000);
    assert_int_equal(notify_wait(n, 10000), 1000);
    silent(n, 10999);
    asks(n, 1, 10999); /* the same again changes nothing */
    told(n, 11000, "box-1 asks you", "line of 1");
    silent(n, 11000);
    assert_int_equal(notify_wait(n, 11000), -1);
    notify_free(n);
    notify_free(NULL);
}

/* Answered within the second: nobody needs to know. */
static void test_over_in_time(void **state)
{
    (void)state;
    struct notify *n = notify_new();
    is_working(n, 1, 1);
    asks(n, 1, 1000);
    is_working(n, 1, 1500);
    silent(n, 3000);
    look(n, 1, SB_RUNNING, AG_IDLE, false, 4000);
    is_working(n, 1, 4500);
    silent(n, 6000);
    asks(n, 1, 7000);
    look(n, 1, SB_KILLED, AG_ASKS, false, 7500);
    silent(n, 9000);
    notify_free(n);
}

static void test_events(void **state)
{
    (void)state;
    struct notify *n = notify_new();
    struct note note;
    for (uint64_t id = 1; id <= 4; id++)
        is_working(n, id, 1);
    look(n, 1, SB_RUNNING, AG_IDLE, false, 1000);
    told(n, 2000, "box-1 has finished", "line of 1");
    look(n, 2, SB_ERROR, AG_FAILED, false, 10000);
    assert_true(notify_next(n, 11000, row, NULL, &note));
    assert_int_equal(note.event, NOTE_ERROR);
    assert_string_equal(note.before, "working");
    assert_string_equal(note.now, "error");
    assert_string_equal(note.name, "box-2");
    look(n, 3, SB_RUNNING, AG_WORKING, true, 20000);
    told(n, 21000, "box-3 is about to end", "line of 3");
    look(n, 3, SB_RUNNING, AG_WORKING, true, 90000); /* still */
    silent(n, 95000);
    look(n, 4, SB_RUNNING, AG_EXITED, false, 100000);
    told(n, 101000, "box-4 has finished", "line of 4");
    look(n, 4, SB_RUNNING, AG_STARTING, false, 200000);
    look(n, 4, SB_RUNNING, AG_IDLE, false, 210000); /* it has done nothing */
    silent(n, 215000);
    notify_event(n, NOTE_BUILD, "the build of x", "ready", 300000);
    silent(n, 300500);
    told(n, 301000, "the build of x has ended", "ready");
    notify_event(n, NOTE_BUDGET, "today", "$10.02 of $10", 400000);
    notify_free(n); /* what waits goes with it */
}

/* A sandbox is told of once a minute, and then only what still is so. */
static void test_once_a_minute(void **state)
{
    (void)state;
    struct notify *n = notify_new();
    is_working(n, 1, 1);
    asks(n, 1, 1000);
    told(n, 2000, "box-1 asks you", "line of 1");
    is_working(n, 1, 10000);
    asks(n, 1, 20000);
    silent(n, 30000);
    assert_int_equal(notify_wait(n, 30000), 32000);
    told(n, 62000, "box-1 asks you", "line of 1");
    is_working(n, 1, 70000);
    asks(n, 1, 80000);
    is_working(n, 1, 100000);
    silent(n, 200000);
    notify_free(n);
}

static void test_several(void **state)
{
    (void)state;
    struct notify *n = notify_new();
    struct note note;
    for (uint64_t id = 1; id <= 40; id++)
        is_working(n, id, 1);
    for (uint64_t id = 1; id <= 3; id++)
        asks(n, id, 1000 + (int64_t)id);
    look(n, 4, SB_ERROR, AG_FAILED, false, 1000);
    told(n, 2003, "3 agents ask you", "box-1, box-2, box-3");
    told(n, 2003, "box-4 failed", "line of 4"); /* of another kind: a note of its own */
    asks(n, 5, 2100); /* not one by one: what comes within seconds waits for the others */
    asks(n, 6, 5000);
    silent(n, 6500);
    told(n, 7003, "2 agents ask you", "box-5, box-6");
    for (uint64_t id = 7; id <= 40; id++)
        asks(n, id, 20000);
    assert_true(notify_next(n, 21000, row, NULL, &note));
    assert_int_equal(note.count, 34);
    assert_int_equal(note.sandbox, 0);
    assert_true(strlen(note.body) < sizeof(note.body));
    notify_free(n);
}

/* What the user looks at needs no note; the others do. */
static void test_seen(void **state)
{
    (void)state;
    struct notify *n = notify_new();
    is_working(n, 1, 1);
    is_working(n, 2, 1);
    on_screen = 1;
    asks(n, 1, 1000);
    silent(n, 2000);
    assert_int_equal(notify_wait(n, 2000), -1);
    is_working(n, 1, 3000);
    asks(n, 1, 4000);
    asks(n, 2, 4000);
    told(n, 5000, "box-2 asks you", "line of 2");
    on_screen = 0;
    notify_free(n);
}

/* Its words are those that it has when it is told; a row that has gone has none. */
static void test_words(void **state)
{
    (void)state;
    struct notify *n = notify_new();
    is_working(n, 1, 1);
    is_working(n, 2, 1);
    asks(n, 1, 1000);
    snprintf(rows[1].last, sizeof(rows[1].last), "which one?");
    told(n, 2000, "box-1 asks you", "which one?");
    look(n, 2, SB_ERROR, AG_FAILED, false, 10000);
    rows[2].s.reason = rows[2].last;
    rows[2].s.last_line = NULL;
    rows[2].s.name = NULL;
    told(n, 11000, "a sandbox failed", "line of 2");
    is_working(n, 3, 20000);
    asks(n, 3, 20000);
    gone = 3;
    silent(n, 21000);
    assert_int_equal(notify_wait(n, 21000), -1);
    gone = 0;
    notify_free(n);
}

static void test_channels(void **state)
{
    (void)state;
    struct err e = {0};
    assert_int_equal(note_channels("bell osc", &e), NOTE_BELL | NOTE_OSC);
    assert_int_equal(note_channels("mark, hook", &e), NOTE_MARK | NOTE_HOOK);
    assert_int_equal(note_channels("none", &e), 0);
    assert_int_equal(note_channels("", &e), 0);
    assert_int_equal(note_channels("bell oscc", &e), -1);
    assert_non_null(strstr(e.text, "'oscc' is no way"));
#define DEFAULT_IS_GOOD(id, name, def, one, several) \
    assert_true(note_channels(def, &e) > 0);         \
    assert_string_equal(note_event_name(NOTE_##id), name);
    NOTE_EVENTS(DEFAULT_IS_GOOD)
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_held),          cmocka_unit_test(test_over_in_time),
        cmocka_unit_test(test_events),        cmocka_unit_test(test_once_a_minute),
        cmocka_unit_test(test_several),       cmocka_unit_test(test_seen),
        cmocka_unit_test(test_words),         cmocka_unit_test(test_channels),
    };
    return cmocka_run_group_tests_name("notify", tests, NULL, NULL);
}
