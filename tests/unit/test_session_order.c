/* Messages, notices and output of a session: each in its place, whoever looks and whenever. */
#include "../../src/jobs/session_follow.h"
#include "../../src/jobs/session_out.h"
#include "../../src/jobs/session_priv.h"
#include "../lib/jobsbed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WAIT_MS 20000
static void pages_begin_with_the_first_message(void **state)
{
    struct st_event v[] = {{.offset = 0, .index = 0}, {.offset = 0, .index = 1},
                           {.offset = 0, .index = SESSION_ECHO_INDEX},
                           {.offset = 0, .index = SESSION_ECHO_INDEX + 1}, {.offset = 9}};
    const struct session_key message = {0, SESSION_ECHO_INDEX, true}, line = {0, 1, true};
    (void)state;

    session_put_in_order(v, 5);
    assert_int_equal(v[0].index, SESSION_ECHO_INDEX);
    assert_int_equal(v[1].index, SESSION_ECHO_INDEX + 1);
    assert_int_equal(v[2].index, 0);
    assert_int_equal(v[3].index, 1);
    assert_int_equal(v[4].offset, 9);
    session_put_in_order(v + 4, 1);
    session_put_in_order(v, 0);
    assert_false(session_key_reaches(&message, 0, 0));
    assert_false(session_key_reaches(&message, 0, SESSION_ECHO_INDEX + 1));
    assert_true(session_key_reaches(&message, 0, SESSION_ECHO_INDEX));
    assert_true(session_key_reaches(&line, 0, SESSION_ECHO_INDEX));
    assert_true(session_key_reaches(&line, 0, 0));
    assert_false(session_key_reaches(&line, 0, 2));
    assert_false(session_key_reaches(&line, 3, SESSION_ECHO_INDEX));
}

struct words {
    struct jobsbed *b;
    uint64_t row;
    const char *text; /* fed, said or looked for */
    int epoch;
};

static void do_show(void *ctx)
{
    struct words *q = ctx;

    session_show(session_of(&q->b->j, q->row), true);
}

static void do_words(void *ctx)
{
    struct words *q = ctx;
    struct session *s = session_of(&q->b->j, q->row);

    session_out_feed(s, q->text, strlen(q->text));
    session_keep_flush(s);
}

static void do_message(void *ctx)
{
    struct words *q = ctx;
    struct session *s = session_of(&q->b->j, q->row);

    session_out_echo(s, s->out.pos, q->text, q->text);
}

static void do_follow_events(void *ctx)
{
    struct words *q = ctx;
    struct session *s = session_of(&q->b->j, q->row);

    session_events(s, 9, true);
    s->fo.state = FO_TAIL; /* there is no sandbox, which would be the end of what follows */
}

static size_t place_of(struct words *q, const char *text)
{
    const struct transcript *t = model_transcript(q->b->model, q->row);

    for (size_t i = 0; t && i < t->n; i++)
        if (t->v[i].text && strstr(t->v[i].text, text))
            return i;
    return SIZE_MAX;
}

static bool is_shown(void *ctx)
{
    struct words *q = ctx;

    return place_of(q, q->text) != SIZE_MAX;
}

static bool is_printed(void *ctx)
{
    struct words *q = ctx;

    return strstr(buf_str(&q->b->chunks), q->text) != NULL;
}

static struct words words_bed(void)
{
    struct words q = {.b = jobsbed_new(NULL, "a", NULL), .epoch = 1};

    q.row = jobsbed_row(q.b, "shell", NULL);
    assert_true(jobsbed_open(q.b, q.row, q.epoch, WAIT_MS));
    return q;
}

static void act(struct words *q, void (*fn)(void *ctx), const char *text)
{
    q->text = text;
    jobsbed_run(q->b, fn, q);
}

static void shows(struct words *q, const char *text)
{
    q->text = text;
    assert_true(jobsbed_wait(q->b, is_shown, q, WAIT_MS));
}

static void prints(struct words *q, const char *text)
{
    q->text = text;
    assert_true(jobsbed_wait(q->b, is_printed, q, WAIT_MS));
}

/* Who looks has the first message when the first byte comes. */
static void output_behind_the_first_message(void **state)
{
    struct words q = words_bed();
    (void)state;

    act(&q, do_message, "hello");
    act(&q, do_show, NULL);
    shows(&q, "hello");
    act(&q, do_follow_events, NULL);
    prints(&q, "hello");
    act(&q, do_words, "first words\n");
    shows(&q, "first words");
    prints(&q, "first words");
    assert_true(place_of(&q, "hello") < place_of(&q, "first words"));
    act(&q, do_message, "again");
    act(&q, do_words, "more\n");
    act(&q, do_show, NULL);
    shows(&q, "more");
    assert_true(place_of(&q, "hello") < place_of(&q, "first words"));
    assert_true(place_of(&q, "first words") < place_of(&q, "again"));
    prints(&q, "more");
    assert_null(strstr(strstr(buf_str(&q.b->chunks), "hello") + 1, "hello")); /* once */
    jobsbed_free(q.b);
}

/* A question without an end of line, its answer, and then the line is whole. */
static void a_message_within_a_line(void **state)
{
    struct words q = words_bed();
    (void)state;

    act(&q, do_words, "well\nname? ");
    act(&q, do_message, "bob");
    act(&q, do_show, NULL);
    shows(&q, "bob");
    act(&q, do_follow_events, NULL);
    prints(&q, "bob");
    act(&q, do_words, "thank you\n");
    shows(&q, "name? thank you");
    prints(&q, "name? thank you");
    jobsbed_free(q.b);
}

#define BEGINS "\033]133;C\a"
/* A command failed; the next one comes after that was said. */
static void a_message_between_two_commands(void **state)
{
    struct words q = words_bed();
    (void)state;

    act(&q, do_show, NULL);
    act(&q, do_words, BEGINS "first words\n\033]133;D;4\a");
    shows(&q, "exit status 4");
    act(&q, do_message, "again");
    act(&q, do_words, BEGINS "more\n\033]133;D;0\a");
    for (int i = 0; i < 2; i++) {
        shows(&q, i ? "later" : "more");
        assert_true(place_of(&q, "first words") < place_of(&q, "exit status 4"));
        assert_true(place_of(&q, "exit status 4") < place_of(&q, "again"));
        assert_true(place_of(&q, "again") < place_of(&q, "more"));
        act(&q, do_show, NULL); /* the same from what is stored */
        act(&q, do_words, "later\n");
    }
    jobsbed_free(q.b);
}

static void do_open_and_message(void *ctx)
{
    struct words *q = ctx;
    struct session *s = session_of(&q->b->j, q->row);

    session_open(s, q->epoch, jobsbed_opened);
    session_out_echo(s, s->out.pos, q->text, q->text);
}

/* It was taken in while another log was being opened: it is that one's. */
static void a_message_between_two_logs(void **state)
{
    struct words q = words_bed();
    (void)state;

    act(&q, do_show, NULL);
    act(&q, do_words, "many words before\n");
    shows(&q, "many words before");
    q.epoch = 2;
    jobsbed_expect();
    act(&q, do_open_and_message, "in between");
    assert_true(jobsbed_wait(q.b, jobsbed_came, NULL, WAIT_MS));
    shows(&q, "in between");
    act(&q, do_words, "a\n");
    shows(&q, "a");
    assert_true(place_of(&q, "in between") < place_of(&q, "a"));
    jobsbed_free(q.b);
}

static void do_notice(void *ctx)
{
    struct words *q = ctx;

    session_say(session_of(&q->b->j, q->row), AGENT_WARN, "%s", q->text);
}

/* Notices are stored nowhere; a screen that is loaded anew has them all the same. */
static void notices_come_back(void **state)
{
    struct words q = words_bed();
    (void)state;

    act(&q, do_show, NULL);
    act(&q, do_words, "before\n");
    act(&q, do_notice, "beware of it");
    act(&q, do_words, "after\n");
    act(&q, do_show, NULL);
    for (int i = 0; i < 20; i++)
        act(&q, do_notice, "and so on");
    act(&q, do_words, "the end\n");
    shows(&q, "the end");
    shows(&q, "and so on");
    act(&q, do_show, NULL);
    act(&q, do_words, "later\n");
    shows(&q, "later");
    assert_true(place_of(&q, "after") < place_of(&q, "and so on"));
    assert_true(place_of(&q, "and so on") < place_of(&q, "the end"));
    jobsbed_free(q.b);
}

static void do_many_words(void *ctx)
{
    struct words *q = ctx;
    char line[40];

    for (int i = 1; i <= 4000; i++) {
        snprintf(line, sizeof(line), "line %d\n", i);
        session_out_feed(session_of(&q->b->j, q->row), line, strlen(line));
    }
    do_show(ctx);
}

static void do_older_and_begin(void *ctx)
{
    struct words *q = ctx;
    struct session *s = session_of(&q->b->j, q->row);

    if (q->epoch == 2) /* the load that it comes after is the one of the show */
        session_show(s, true);
    else
        session_load_older(s, UINT32_MAX, 0);
    session_load_newer(s, 0, 0, true);
    if (q->epoch == 3) /* what it came to is thrown away with the rest */
        session_show(s, true);
}

static bool begins_with(void *ctx)
{
    struct words *q = ctx;
    const struct transcript *t = model_transcript(q->b->model, q->row);

    return t && t->n && t->v[0].text && strcmp(t->v[0].text, q->text) == 0;
}

/* The first lines are asked for while others are on their way, or everything anew. */
static void the_begin_while_others_load(void **state)
{
    struct words q = words_bed();
    (void)state;

    for (q.epoch = 1; q.epoch <= 3; q.epoch++) {
        act(&q, do_many_words, NULL);
        shows(&q, "line 4000");
        assert_false(begins_with(&(struct words){.b = q.b, .row = q.row, .text = "line 1"}));
        act(&q, do_older_and_begin, "line 1");
        assert_true(jobsbed_wait(q.b, begins_with, &q, WAIT_MS));
    }
    jobsbed_free(q.b);
}

/* Fewer lines than a page of them, and more than are shown at first. */
enum { SOME = 800 };

static void do_some_words(void *ctx)
{
    struct words *q = ctx;
    char line[40];

    for (int i = 1; i <= SOME; i++) {
        snprintf(line, sizeof(line), "line %d\n", i);
        session_out_feed(session_of(&q->b->j, q->row), line, strlen(line));
    }
    do_show(ctx);
}

static void do_begin(void *ctx)
{
    struct words *q = ctx;

    session_load_newer(session_of(&q->b->j, q->row), 0, 0, true);
}

/* Down from there, too, no line is left out. */
static void the_begin_of_less_than_a_page(void **state)
{
    struct words q = words_bed();
    const struct transcript *t;
    char text[40];
    (void)state;

    act(&q, do_some_words, NULL);
    shows(&q, "line 800");
    act(&q, do_begin, "line 1");
    assert_true(jobsbed_wait(q.b, begins_with, &q, WAIT_MS));
    t = model_transcript(q.b->model, q.row);
    assert_int_equal(t->n, SOME);
    for (size_t i = 0; i < t->n; i++) {
        snprintf(text, sizeof(text), "line %d", (int)i + 1);
        assert_string_equal(t->v[i].text, text);
    }
    jobsbed_free(q.b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_begin_with_the_first_message),
        cmocka_unit_test(output_behind_the_first_message),
        cmocka_unit_test(a_message_within_a_line),
        cmocka_unit_test(a_message_between_two_commands),
        cmocka_unit_test(a_message_between_two_logs),
        cmocka_unit_test(notices_come_back),
        cmocka_unit_test(the_begin_while_others_load),
        cmocka_unit_test(the_begin_of_less_than_a_page),
    };
    struct err e = {0};

    if (secrets_init(&e) != 0)
        return 1;
    cmocka_set_test_filter(getenv("CCT_ONLY"));
    return cmocka_run_group_tests_name("session_order", tests, NULL, NULL);
}
