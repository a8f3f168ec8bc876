/* Marks, the input's files and queue, messages to several: what belongs to whom, and what is
 * sent. */
#include "../lib/screenscript.h"
#include "../lib/tmpdir.h"

#include <cct/util/fs.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct script s;
static char dir[64];

static int setup(void **state)
{
    (void)state;
    if (tmpdir_make(dir, sizeof(dir), "chat") != 0 || chdir(dir) != 0)
        return -1;
    script_init(&s);
    script_run(&s, "loaded\nlink ok cloud");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    script_release(&s);
    return chdir("/") || tmpdir_remove(dir);
}

static void forget_calls(void)
{
    buf_clear(&s.app->calls);
}

static const char *calls(void)
{
    return buf_str(&s.app->calls);
}

static void spit(const char *name, const char *text, size_t len)
{
    struct err e = {0};
    if (fs_write_private(name, text, len, &e) != 0)
        fail_msg("%s", e.text);
}

/* --- marks ----------------------------------------------------------------------------- */

static void test_mark_is_an_id(void **state)
{
    (void)state;
    script_run(&s, "rows 5 1\nkeys j Space k k Space"); /* 2, then 1 */
    assert_int_equal(s.ui.marks.n, 2);
    assert_true(marks_has(&s.ui, 2) && marks_has(&s.ui, 1));
    /* rows go, come and change places: an ended one stands last */
    script_run(&s, "gone 3\nrow 1 box-1 claude killed exited\nrow 9 new claude running idle");
    assert_true(marks_has(&s.ui, 2) && marks_has(&s.ui, 1) && !marks_has(&s.ui, 9));
    assert_true(script_shows(&s, "2 marked: box-2, box-1"));
    /* filters only hide */
    script_run(&s, "keys / \"box-4\" Enter");
    assert_int_equal(s.ui.marks.n, 2);
    script_run(&s, "keys Esc");
    /* with its row a mark ends; another one in its place has none */
    script_run(&s, "gone 2\nkeys G");
    assert_int_equal(s.ui.marks.n, 1);
    script_run(&s, "row 2 box-2 claude running idle");
    ui_update(&s.ui);
    assert_false(marks_has(&s.ui, 2));
    script_run(&s, "keys U");
    assert_int_equal(s.ui.marks.n, 0);
}

static void test_mark_all_shown(void **state)
{
    (void)state;
    script_run(&s, "rows 12 1\nkeys / \"box-1\" Enter *"); /* 1, 10, 11, 12 */
    assert_int_equal(s.ui.marks.n, 4);
    assert_true(marks_has(&s.ui, 1) && marks_has(&s.ui, 12) && !marks_has(&s.ui, 2));
    script_run(&s, "keys Esc");
    forget_calls();
    script_run(&s, "keys D");
    assert_true(script_shows(&s, "This ends 4 sandboxes") && script_shows(&s, "box-12") && !script_shows(&s, "| box-2 "));
    script_run(&s, "keys y");
    assert_string_equal(calls(), "call kill 1\ncall kill 10\ncall kill 11\ncall kill 12\n");
}

/* The key that was meant for a row that vanished marks no other one. */
static void test_mark_nothing_else(void **state)
{
    (void)state;
    script_run(&s, "rows 3 1\nkeys G");
    script_run(&s, "gone 3");
    ui_update(&s.ui);
    ui_key(&s.ui, ' ', NULL, 0);
    assert_int_equal(s.ui.marks.n, 0);
}

static void test_bulk(void **state)
{
    (void)state;
    script_run(&s, "row 1 a claude running working\nrow 2 b claude paused unknown\n"
                   "row 3 c claude running idle\nrow 4 d claude killed exited\nkeys *");
    forget_calls();
    script_run(&s, "keys b X");
    assert_string_equal(calls(), "call interrupt 1\n");
    forget_calls();
    script_run(&s, "keys b p");
    assert_string_equal(calls(), "call pause 1\ncall pause 3\n");
    assert_true(script_shows(&s, "pausing 2: a, c"));
    forget_calls();
    script_run(&s, "keys b r");
    assert_string_equal(calls(), "call resume 2 0\n");
    forget_calls();
    script_run(&s, "keys b t \"30m\" Enter");
    assert_string_equal(calls(), "call set_timeout 1 1800\ncall set_timeout 3 1800\n");
    forget_calls();
    script_run(&s, "keys b Delete");
    assert_string_equal(calls(), "call forget 4\n");
    forget_calls();
    script_run(&s, "keys b U b p"); /* none is marked: the row's own */
    assert_string_equal(calls(), "call pause 1\n");
}

static void test_kill_several_failed(void **state)
{
    (void)state;
    script_run(&s, "rows 2 1\nkeys *");
    forget_calls();
    script_run(&s, "keys D y\nended the service refused it");
    assert_true(script_shows(&s, "box-2           the service refused it") && script_shows(&s, "1 failed"));
    forget_calls();
    script_run(&s, "keys y R");
    assert_string_equal(calls(), "call kill 2\n");
}

/* --- one message to several -------------------------------------------------------------- */

static void test_broadcast(void **state)
{
    (void)state;
    script_run(&s, "rows 3 1\nkeys Space Space b b \"hi {name}\" Tab Space");
    forget_calls();
    script_run(&s, "keys Alt-s");
    assert_string_equal(calls(), "call broadcast 1 2 fill now: hi {name}\n");
    script_run(&s, "message 7 1 failed hi\nreceipts 1 7 box-1 | 2 ! box-2 it is paused\nended x");
    forget_calls();
    script_run(&s, "keys R");
    assert_string_equal(calls(), "call message_retry 7\ncall broadcast 2 fill now: hi {name}\n");
    /* called off: the text waits for the next time */
    script_run(&s, "keys Esc b b \"kept\" Esc b b");
    assert_true(script_shows(&s, "Text    kept"));
}

/* What is said before is what comes of it after. */
static void test_broadcast_outlook(void **state)
{
    (void)state;
    script_run(&s, "row 1 idles claude running idle\nrow 2 works claude running working\n"
                   "row 3 over claude running exited\nrow 4 rests claude paused idle\n"
                   "row 5 quiet-maple-61-2 claude running idle\nkeys * b b");
    assert_true(script_shows(&s, "idles           claude   idle      goes at once"));
    assert_true(script_shows(&s, "works           claude   working   waits until it stops"));
    assert_true(script_shows(&s, "over            claude   exited    waits: r restarts its agent"));
    assert_true(script_shows(&s, "cannot: resume it first"));
    assert_true(script_shows(&s, "quiet-mapl~61-2 claude"));
}

static void filled(const char *text, const char *want)
{
    struct sandbox box = {.name = (char *)"one", .project = (char *)"web",
                          .branch = (char *)"agent/x"};
    struct err e = {0};
    char *got = message_fill(text, &box, &e);
    assert_string_equal(got ? got : e.text, want);
    free(got);
}

static void test_words(void **state)
{
    struct sandbox bare = {.name = (char *)"one"};
    struct err e = {0};
    (void)state;
    filled("{name} on {branch} of {project}", "one on agent/x of web");
    filled("{name}{name}", "oneone");
    filled("{{name}} {nam} {name {} ${project}", "{name} {nam} {name {} $web");
    filled("{{{name}", "{{one");
    filled("", "");
    assert_null(message_fill("push {branch}", &bare, &e));
    assert_non_null(strstr(e.text, "{branch}"));
    assert_true(message_has_words("a {branch}") && !message_has_words("a {x} {"));
}

/* --- the input ----------------------------------------------------------------------------- */

static void test_edit_queued(void **state)
{
    (void)state;
    script_run(&s, "row 1 a claude running working\nmessage 5 1 queued the text\nkeys i Alt-q");
    assert_false(script_shows(&s, "a> the text")); /* it may be on its way already */
    script_run(&s, "ended it is on its way already");
    assert_false(script_shows(&s, "a> the text"));
    script_run(&s, "keys Alt-q\nended");
    assert_true(script_shows(&s, "a> the text"));
}

/* The user's own message in the output, in that state. */
static void own_message(enum msg_state state)
{
    struct ev_items *ev = ev_new(EV_ITEMS);
    struct item *it = ev_items_add(ev, ITEM_PUT);

    ev->sandbox = 1;
    it->kind = ITEM_USER;
    it->state = (int)state;
    it->id = xstrdup("key-of-it");
    it->who = xstrdup("you");
    it->text = xstrdup("the text");
    it->text_len = strlen(it->text);
    script_post(&s, ev);
}

/* What was never sent does not look as if it had been. */
static void test_taken_back(void **state)
{
    (void)state;
    script_run(&s, "row 1 a claude running working\nkeys Enter");
    own_message(MSG_QUEUED);
    assert_true(script_shows(&s, "the text (queued)"));
    own_message(MSG_CANCELLED);
    assert_false(script_shows(&s, "queued"));
    assert_true(script_shows(&s, "the text (taken back, not sent)"));
}

static void test_send_now(void **state)
{
    (void)state;
    script_run(&s, "row 1 a claude running working\nkeys i \"stop\"");
    forget_calls();
    script_run(&s, "keys Alt-i");
    assert_string_equal(calls(), "call send 1 now stop\n");
    assert_true(script_shows(&s, "interrupting the agent of a for this message"));
    script_run(&s, "message 4 1 delivered stop");
    assert_false(script_shows(&s, "interrupting"));
}

/* What became of an interrupt is said in the place of "interrupting". */
static void test_interrupt_ends(void **state)
{
    (void)state;
    script_run(&s, "row 1 a claude running working\nkeys X");
    assert_true(script_shows(&s, "interrupting the agent of a"));
    script_run(&s, "ended");
    assert_false(script_shows(&s, "interrupting the agent"));
    assert_true(script_shows(&s, "was interrupted"));
    script_run(&s, "keys X\nended it is not working");
    assert_true(script_shows(&s, "it is not working"));
}

static void test_file(void **state)
{
    (void)state;
    spit("notes.txt", "line one\nline two\n", 18);
    spit("notes.bin", "\1\2\3", 3);
    spit("other", "x", 1);
    script_run(&s, "row 1 a claude running idle\nkeys i \"see @no\" Tab");
    assert_true(script_shows(&s, "a> see @notes.") && !script_shows(&s, "[@"));
    script_run(&s, "keys Tab");
    assert_true(script_shows(&s, "notes.bin") && script_shows(&s, "notes.txt"));
    script_run(&s, "keys \"t\" Tab \" please\"");
    assert_true(script_shows(&s, "a> see [@notes.txt] please"));
    forget_calls();
    script_run(&s, "keys Enter");
    assert_string_equal(calls(), "call send 1 see @notes.txt please\n\n--- notes.txt ---\n"
                                 "line one\nline two\n--- end of notes.txt ---\n");
    /* no text: refused with a sentence, and what was typed is kept */
    forget_calls();
    script_run(&s, "keys \"@notes.b\" Tab Enter");
    assert_string_equal(calls(), "");
    assert_true(script_shows(&s, "@notes.bin is not text"));
    assert_true(script_shows(&s, "a> [@notes.bin]"));
}

/* A file goes along only when it was chosen: what is pasted or only typed names none. */
static void test_file_is_chosen(void **state)
{
    (void)state;
    spit("secret", "hidden words", 12);
    script_run(&s, "row 1 a claude running idle\nkeys i <look at @secret now> ");
    forget_calls();
    script_run(&s, "keys Enter");
    assert_string_equal(calls(), "call send 1 look at @secret now\n");
    assert_true(script_shows(&s, "sent as it stands"));
    forget_calls();
    script_run(&s, "keys Up Enter \"@secret\" Enter");
    assert_string_equal(calls(), "call send 1 look at @secret now\ncall send 1 @secret\n");
}

static void test_file_refused(void **state)
{
    char *big = xmalloc(LIM_MESSAGE_BYTES);
    (void)state;
    memset(big, 'x', LIM_MESSAGE_BYTES);
    spit("big", big, LIM_MESSAGE_BYTES);
    spit("gone", "x", 1);
    free(big);
    assert_int_equal(mkdir("folder", 0700), 0);
    assert_int_equal(mkfifo("folder/pipe", 0600), 0);
    script_run(&s, "row 1 a claude running idle\nkeys i \"@big\" Tab");
    forget_calls();
    script_run(&s, "keys Enter");
    assert_true(script_shows(&s, "not sent, the text is kept"));
    script_run(&s, "keys ^C \"@gone\" Tab");
    unlink("gone");
    script_run(&s, "keys Enter");
    assert_true(script_shows(&s, "@gone cannot go along"));
    script_run(&s, "keys ^C \"@fol\" Tab \"p\" Tab Enter"); /* and it does not block */
    assert_true(script_shows(&s, "@folder/pipe cannot go along"));
    script_run(&s, "keys ^C \"@nosuch\" Tab");
    assert_true(script_shows(&s, "no file in this folder begins with 'nosuch'"));
    assert_false(script_called(&s, "call send"));
}

/* A question that is not known yet is opened when it comes, unless another key was pressed; what
 * was answered is not asked again. */
static void test_question_that_comes(void **state)
{
    (void)state;
    script_run(&s, "row 1 one claude running asks\nkeys a");
    assert_non_null(strstr(s.ui.status, "being looked up"));
    assert_int_equal(s.ui.n_overlays, 0);
    script_run(&s, "asks 1 5 q1 Which one? | red | blue");
    script_draw(&s);
    assert_int_equal(s.ui.n_overlays, 1);
    script_run(&s, "keys Esc\nanswered 1 q1 red\nkeys a");
    assert_int_equal(s.ui.n_overlays, 0);
    assert_non_null(strstr(s.ui.status, "one was answered: red"));
    script_run(&s, "asks 1 5 q2 And then? | red | blue");
    script_draw(&s);
    assert_int_equal(s.ui.n_overlays, 1);
    script_run(&s, "keys Esc\nanswered 1 q2 red\nkeys a Down\nasks 1 5 q3 Third? | red | blue");
    script_draw(&s);
    assert_int_equal(s.ui.n_overlays, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_mark_is_an_id, setup, teardown),
        cmocka_unit_test_setup_teardown(test_mark_all_shown, setup, teardown),
        cmocka_unit_test_setup_teardown(test_mark_nothing_else, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bulk, setup, teardown),
        cmocka_unit_test_setup_teardown(test_question_that_comes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kill_several_failed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_broadcast, setup, teardown),
        cmocka_unit_test_setup_teardown(test_broadcast_outlook, setup, teardown),
        cmocka_unit_test(test_words),
        cmocka_unit_test_setup_teardown(test_edit_queued, setup, teardown),
        cmocka_unit_test_setup_teardown(test_taken_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_send_now, setup, teardown),
        cmocka_unit_test_setup_teardown(test_interrupt_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(test_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_file_is_chosen, setup, teardown),
        cmocka_unit_test_setup_teardown(test_file_refused, setup, teardown),
    };
    return cmocka_run_group_tests_name("chat on the screen", tests, NULL, NULL);
}
