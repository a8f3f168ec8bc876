/* What an agent asks in words, and answers in the store. */
#include "../lib/storebox.h"

#include <cct/model/model.h>
#include <cct/util/str.h>
#include <cct/model/question.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void is(char *got, const char *want)
{
    if (want)
        assert_string_equal(got, want);
    else
        assert_null(got);
    free(got);
}

static void test_lines(void **state)
{
    (void)state;
    is(question_line("Bash", "make test"), "run `make test`?");
    is(question_line("Write", "/tmp/a\033[31m b"), "use Write: /tmp/a b?");
    is(question_line("WebFetch", NULL), "use WebFetch?");
    is(question_line("AskUserQuestion", "Which one?"), "Which one?");
    is(question_line(NULL, NULL), "a question");
}

static void test_details(void **state)
{
    (void)state;
    is(question_detail("Bash", "ls", "{\"command\":\"ls\",\"description\":\"look\",\"n\":3}"),
       "description: look\nn: 3");
    is(question_detail("Bash", "ls", "{\"command\":\"ls\"}"), NULL);
    is(question_detail("Bash", "a…", "{\"command\":\"a\\nb\"}"), "command: \na\nb");
    is(question_detail("Bash", "ls", "no json"), NULL);
    is(question_detail("bash", "ls",
                       "{\"id\":\"per_1\",\"sessionID\":\"s\",\"patterns\":[\"ls\"],\"metadata\":{"
                       "\"command\":\"ls\",\"why\":\"to see\"}}"),
       "why: to see");
    is(question_detail("AskUserQuestion", "W?",
                       "{\"questions\":[{\"question\":\"W?\",\"options\":[{\"label\":\"a\","
                       "\"description\":\"first\"},{\"label\":\"b\"}],\"multiSelect\":true}]}"),
       "a - first\nseveral may be chosen: 1, 2");
    is(question_detail("AskUserQuestion", "W?",
                       "{\"questions\":[{\"question\":\"W?\",\"options\":[{\"label\":\"a\"}]},"
                       "{\"question\":\"V?\",\"options\":[{\"label\":\"b\"}]}]}"),
       "W?\n  1) a\nV?\n  1) b");
}

static void test_choices(void **state)
{
    char **c = question_choices("yes\nno\033[31m!\n");
    (void)state;

    assert_string_equal(c[0], "yes");
    assert_string_equal(c[1], "no!");
    assert_string_equal(c[2], "");
    assert_null(c[3]);
    is(question_choices_line(c), "1) yes   2) no!   3) ");
    str_list_free(c);
    assert_null(question_choices(NULL));
    is(question_choices_line(NULL), "");
}

static void put(struct model *m, uint64_t sandbox, size_t n, const char *const *ids,
                const int64_t *since)
{
    struct ev_asks *ev = ev_new(EV_ASKS);

    ev->sandbox = sandbox;
    ev->v = xcalloc(n ? n : 1, sizeof(*ev->v));
    for (; ev->n < n; ev->n++) {
        ev->v[ev->n].sandbox = sandbox;
        ev->v[ev->n].id = xstrdup(ids[ev->n]);
        ev->v[ev->n].since = since[ev->n];
    }
    model_apply(m, &ev->m);
    msg_free(&ev->m);
}

/* One queue over all sandboxes, the oldest first. */
static void test_queue(void **state)
{
    struct model *m = model_new();
    (void)state;

    assert_false(model_asks_known(m, 1));
    put(m, 1, 2, (const char *const[]){"a", "b"}, (const int64_t[]){100, 300});
    put(m, 2, 1, (const char *const[]){"c"}, (const int64_t[]){200});
    assert_int_equal(m->n_asks, 3);
    assert_string_equal(m->asks[0].id, "a");
    assert_string_equal(m->asks[1].id, "c");
    assert_string_equal(m->asks[2].id, "b");
    m->asks[0].answer = xstrdup("yes");
    assert_string_equal(model_ask(m, 1)->id, "b"); /* which waits for the user */
    put(m, 1, 0, NULL, NULL);
    assert_true(model_asks_known(m, 1));
    assert_null(model_ask(m, 1));
    assert_int_equal(m->n_asks, 1);
    model_free(m);
}

/* The first answer to a question stays; it goes with its run. */
static void test_store(void **state)
{
    struct storebox b;
    struct st_ask at = {0, 100, 2}, other = {0, 100, 3};
    struct st_reply *r;
    uint64_t row;
    (void)state;

    storebox_start(&b, NULL);
    row = storebox_sandbox(&b, "one");
    at.run = other.run = storebox_run(&b, row, "s");
    store_answer_add(b.s, &at, -1, "words", storebox_to(&b));
    r = storebox_wait(&b);
    assert_int_equal(r->err.code, 0);
    assert_true(r->got);
    assert_int_equal(r->answers[0].sent_at, 0);
    msg_free(&r->m);
    store_answer_add(b.s, &at, 1, NULL, storebox_to(&b));
    r = storebox_wait(&b);
    assert_false(r->got);
    assert_int_equal(r->answers[0].choice, -1);
    assert_string_equal(r->answers[0].text, "words");
    msg_free(&r->m);
    store_answer_add(b.s, &other, 0, NULL, storebox_to(&b));
    msg_free(&storebox_wait(&b)->m);
    store_answer_sent(b.s, &at, storebox_to(&b));
    r = storebox_wait(&b);
    assert_true(r->answers[0].sent_at > 0);
    msg_free(&r->m);
    store_answers(b.s, at.run, storebox_to(&b));
    r = storebox_wait(&b);
    assert_int_equal(r->n_answers, 2);
    msg_free(&r->m);
    store_answer_add(b.s, &(struct st_ask){999, 1, 1}, 0, NULL, storebox_to(&b));
    r = storebox_wait(&b);
    assert_int_equal(r->err.code, ERR_NOTFOUND);
    msg_free(&r->m);
    store_del_sandbox(b.s, row, storebox_to(&b));
    msg_free(&storebox_wait(&b)->m);
    store_answers(b.s, at.run, storebox_to(&b));
    r = storebox_wait(&b);
    assert_int_equal(r->n_answers, 0);
    msg_free(&r->m);
    storebox_stop(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),   cmocka_unit_test(test_details),
        cmocka_unit_test(test_choices), cmocka_unit_test(test_queue),
        cmocka_unit_test(test_store),
    };

    thread_set_role(THREAD_MAIN);
    return cmocka_run_group_tests_name("question", tests, NULL, NULL);
}
