/* A search in the output goes on in what is stored beyond what is held, and a place that is read
 * is come back to when all was loaded anew. */
#include "../lib/screenscript.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cct/model/transcribe.h>
#include <cct/util/xalloc.h>

static struct script s;

static struct ev_items *lines(int from, int to)
{
    struct ev_items *ev = ev_new(EV_ITEMS);

    ev->sandbox = 1;
    for (int i = from; i <= to; i++) {
        struct agent_event line = {.kind = AGENT_RAW, .final = true};
        char text[40];

        snprintf(text, sizeof(text), "line %d of many", i);
        line.offset = (uint64_t)i * 10;
        line.text = text;
        transcribe(&line, "claude", ev);
    }
    return ev;
}

static void loaded(int from, int to, bool before, bool after)
{
    struct ev_items *ev = lines(from, to);

    ev->reset = true;
    ev->more_before = before;
    ev->more_after = after;
    script_post(&s, ev);
    script_draw(&s);
}

static void older(int from, int to, bool more)
{
    struct ev_items *ev = lines(from, to);

    ev->prepend = true;
    ev->more_before = more;
    buf_clear(&s.app->calls);
    script_post(&s, ev);
    script_draw(&s);
}

static void newer(int from, int to, bool more)
{
    struct ev_items *ev = lines(from, to);

    ev->newer = true;
    ev->more_after = more;
    buf_clear(&s.app->calls);
    script_post(&s, ev);
    script_draw(&s);
}

static void keys(const char *text)
{
    script_do(&s, text);
    script_draw(&s);
}

static int setup(void **state)
{
    (void)state;
    script_init(&s);
    script_run(&s, "size 24 100\nloaded\nlink ok cloud\nrows 3 1");
    loaded(900, 999, true, false);
    keys("keys 2");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    script_release(&s);
    return 0;
}

/* Page after page, until it is there; the keys go on from it. */
static void finds_what_is_stored(void **state)
{
    (void)state;
    keys("keys / \"line 250\" Enter");
    assert_true(script_called(&s, "load_older 1"));
    assert_true(script_shows(&s, "looking for 'line 250' in older output"));
    older(500, 899, true);
    assert_true(script_called(&s, "load_older 1"));
    older(200, 499, true);
    assert_false(script_called(&s, "load_older"));
    assert_true(script_shows(&s, "line 250 of many"));
    assert_false(script_shows(&s, "looking for"));
    script_post(&s, lines(1000, 1000)); /* what comes live moves nothing */
    script_draw(&s);
    assert_true(script_shows(&s, "line 250 of many"));
}

static void says_that_there_is_none(void **state)
{
    (void)state;
    keys("keys / \"nowhere\" Enter");
    assert_true(script_called(&s, "load_older 1"));
    script_post(&s, lines(1000, 1003)); /* live output is no answer */
    script_draw(&s);
    assert_true(script_shows(&s, "looking for"));
    older(1, 899, false);
    assert_true(script_shows(&s, "no match for 'nowhere'"));
    assert_false(script_called(&s, "load_older"));
    assert_true(script_shows(&s, "line 1003 of many")); /* the view was at the end, and is */
}

/* What is stored cannot be read: each answer is empty, and says that there is more. */
static void what_cannot_be_read_ends(void **state)
{
    int asked = 0;
    (void)state;

    keys("keys / \"line 250\" Enter");
    for (int i = 0; i < 50; i++) {
        older(1, 0, true);
        asked += script_called(&s, "load_older 1");
    }
    assert_in_range(asked, 1, 10);
    assert_true(script_shows(&s, "there is more"));
}

/* Another agent is looked at meanwhile, without a key. */
static void leaving_ends_it(void **state)
{
    (void)state;
    keys("keys / \"line 250\" Enter\nmouse press 4 5 release 4 5");
    assert_int_equal(s.ui.selected, 2);
    older(500, 899, true);
    assert_false(script_called(&s, "load_older"));
    keys("mouse press 3 5 release 3 5");
    assert_int_equal(s.ui.selected, 1);
    older(200, 499, true);
    assert_false(script_called(&s, "load_older"));
    assert_false(script_shows(&s, "line 250 of many"));
}

static void another_key_ends_it(void **state)
{
    (void)state;
    keys("keys / \"line 250\" Enter k");
    older(200, 899, true);
    assert_false(script_called(&s, "load_older"));
    assert_false(script_shows(&s, "line 250 of many"));
}

/* The first line that is held is no end to go around. */
static void back_beyond_what_is_held(void **state)
{
    (void)state;
    keys("keys / \"line 9\" Enter");
    loaded(900, 999, true, false);
    keys("keys / \"line 900\" Enter");
    assert_true(script_shows(&s, "line 900 of many"));
    assert_false(script_called(&s, "load"));
    keys("keys N");
    assert_true(script_called(&s, "load_older 1"));
    older(1, 899, false);
    assert_true(script_shows(&s, "no match for 'line 900'"));
    keys("keys / \"line 90 of\" Enter");
    assert_true(script_shows(&s, "line 90 of many"));
}

static void on_beyond_what_is_held(void **state)
{
    (void)state;
    loaded(1, 100, false, true);
    keys("keys / \"line 77\" Enter");
    assert_true(script_shows(&s, "line 77 of many"));
    keys("keys n");
    assert_true(script_called(&s, "load_newer 1"));
    newer(101, 500, true);
    assert_true(script_called(&s, "load_newer 1"));
    newer(501, 800, false);
    assert_true(script_shows(&s, "line 770 of many"));
    assert_false(script_called(&s, "load_newer"));
}

/* What is held fills no screen: more is asked for, as long as that brings something. */
static void a_screen_is_filled(void **state)
{
    (void)state;
    buf_clear(&s.app->calls);
    loaded(998, 999, true, false);
    assert_true(script_called(&s, "load_older 1"));
    older(996, 997, true);
    assert_true(script_called(&s, "load_older 1"));
    older(1, 0, true); /* all of that page shows nothing, or it cannot be read */
    assert_false(script_called(&s, "load_older"));
    buf_clear(&s.app->calls);
    loaded(996, 999, true, false);
    assert_true(script_called(&s, "load_older 1"));
    older(900, 995, true);
    assert_false(script_called(&s, "load_older"));
    assert_true(script_shows(&s, "line 990 of many"));
    buf_clear(&s.app->calls);
    loaded(1, 2, false, false); /* there is no more */
    assert_false(script_called(&s, "load_older"));
}

/* Everything is loaded anew while somebody reads far above. */
static void the_place_is_kept(void **state)
{
    (void)state;
    keys("keys / \"line 250\" Enter");
    older(200, 899, true);
    assert_true(script_shows(&s, "line 250 of many"));
    keys("keys j");
    loaded(900, 1000, true, false);
    assert_true(script_called(&s, "load_older 1"));
    older(500, 899, true);
    older(100, 499, true);
    assert_true(script_shows(&s, "line 250 of many"));
}

static void who_goes_to_the_end_stays_there(void **state)
{
    (void)state;
    keys("keys / \"line 250\" Enter");
    older(200, 899, true);
    keys("keys j");
    loaded(900, 1000, true, false);
    assert_true(script_called(&s, "load_older 1"));
    keys("keys G");
    older(100, 899, true);
    assert_true(script_shows(&s, "line 1000 of many"));
}

/* The begin was asked for while all was on its way anew, and comes behind that. */
static void the_begin_comes_second(void **state)
{
    (void)state;
    keys("keys g g");
    assert_true(script_called(&s, "load_begin 1"));
    loaded(901, 1000, true, false);
    loaded(1, 500, false, true);
    assert_true(script_shows(&s, "line 1 of many"));
}

/* The last of them come with all that is newest loaded anew: the place that was read before it is
 * not come back to then. */
static void stays_where_it_was_found(void **state)
{
    (void)state;
    loaded(1, 100, false, true);
    keys("keys / \"line 77\" Enter / \"line 1990\" Enter");
    newer(101, 1100, true);
    assert_true(script_called(&s, "load_newer 1"));
    buf_clear(&s.app->calls);
    loaded(1501, 2000, true, false);
    assert_true(script_shows(&s, "line 1990 of many"));
    older(501, 1500, true);
    older(1, 500, false);
    assert_true(script_shows(&s, "line 1990 of many"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(finds_what_is_stored, setup, teardown),
        cmocka_unit_test_setup_teardown(says_that_there_is_none, setup, teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_read_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(leaving_ends_it, setup, teardown),
        cmocka_unit_test_setup_teardown(another_key_ends_it, setup, teardown),
        cmocka_unit_test_setup_teardown(back_beyond_what_is_held, setup, teardown),
        cmocka_unit_test_setup_teardown(on_beyond_what_is_held, setup, teardown),
        cmocka_unit_test_setup_teardown(a_screen_is_filled, setup, teardown),
        cmocka_unit_test_setup_teardown(the_place_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(who_goes_to_the_end_stays_there, setup, teardown),
        cmocka_unit_test_setup_teardown(the_begin_comes_second, setup, teardown),
        cmocka_unit_test_setup_teardown(stays_where_it_was_found, setup, teardown),
    };
    return cmocka_run_group_tests_name("ui_seek", tests, NULL, NULL);
}
