/* Questions of an agent in a real sandbox: answered once, by whoever is first, also when
 * those who answer die in between. */
#include "../../src/jobs/session_priv.h"
#include "../lib/jobsbed.h"
#include "../lib/localbed.h"
#include "../lib/storebox.h"

#include <cct/model/agent_event.h>
#include <cct/secrets/secret.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LONG_MS 60000

static struct localbed *local;
static char *db;

/* --- looking ---------------------------------------------------------------------- */

struct look {
    struct jobsbed *b;
    uint64_t row;
    const char *text;
    int what;
};

static bool asks(void *ctx)
{
    struct look *l = ctx;
    const struct question *q = model_ask(l->b->model, l->row);

    return q && (!l->text || strstr(q->question, l->text));
}

static bool asks_nothing(void *ctx)
{
    struct look *l = ctx;

    return model_asks_known(l->b->model, l->row) && !model_ask(l->b->model, l->row);
}

static bool agent_is(void *ctx)
{
    struct look *l = ctx;
    const struct sandbox *r = model_sandbox(l->b->model, l->row);

    return r && (int)r->agent == l->what;
}

static bool shows(void *ctx)
{
    struct look *l = ctx;
    const struct transcript *t = model_transcript(l->b->model, l->row);

    for (size_t i = 0; t && i < t->n; i++)
        if ((t->v[i].text && strstr(t->v[i].text, l->text)) ||
            (t->v[i].kind == ITEM_ASK && t->v[i].state && str_eq(t->v[i].input, l->text)))
            return true;
    return false;
}

static bool decided(void *ctx)
{
    struct look l = *(struct look *)ctx;

    l.text = "exit status 0";
    if (shows(&l))
        return true;
    l.text = "not allowed";
    return shows(&l);
}

static bool notes(void *ctx)
{
    struct look *l = ctx;

    for (size_t i = 0; i < l->b->model->n_events; i++)
        if (strstr(l->b->model->events[i].text, l->text))
            return true;
    return false;
}

static bool await(bool (*fn)(void *ctx), struct jobsbed *b, uint64_t row, const char *text, int what)
{
    struct look l = {b, row, text, what};

    return jobsbed_wait(b, fn, &l, LONG_MS);
}

/* --- doing ------------------------------------------------------------------------ */

struct act {
    struct jobsbed *b;
    uint64_t row, req;
    const char *id, *text;
    int choice;
};

static void do_show(void *ctx)
{
    struct act *a = ctx;

    session_show(session_of(&a->b->j, a->row), true);
    session_follow(session_of(&a->b->j, a->row));
}

static void do_answer(void *ctx)
{
    struct act *a = ctx;

    session_answer(session_of(&a->b->j, a->row), a->req, a->id, a->choice, a->text);
}

static void do_interrupt(void *ctx)
{
    struct act *a = ctx;

    session_interrupt(session_of(&a->b->j, a->row), a->req);
}

static void show(struct jobsbed *b, uint64_t row)
{
    struct act a = {.b = b, .row = row};

    jobsbed_run(b, do_show, &a);
}

static int answer(struct jobsbed *b, uint64_t row, const char *id, int choice, const char *text)
{
    static uint64_t req = 1000;
    struct act a = {b, row, ++req, id, text, choice};
    const struct jobsbed_done *d;

    jobsbed_run(b, do_answer, &a);
    d = jobsbed_answer(b, a.req, LONG_MS);
    assert_non_null(d);
    return d->err.code;
}

static struct jobsbed *open_bed(const char *dir, const char *owner)
{
    struct e2b_account a;
    struct jobsbed *b;

    localbed_account(local, &a);
    b = jobsbed_new(dir, owner, &a);
    e2b_account_release(&a);
    return b;
}

/* Another instance of cc-tui on the database, which looks at the row. */
static struct jobsbed *join(const char *dir, const char *owner, uint64_t row)
{
    struct jobsbed *b = open_bed(dir, owner);

    jobsbed_load(b);
    show(b, row);
    return b;
}

/* An agent that was told to run a command and asks whether it may. */
static uint64_t start_asking(struct jobsbed *b, const char *command)
{
    struct jobsbed_start q = {.tool = "demo", .ask = "yes", .prompt = command};
    struct err e = {0};
    uint64_t row = jobsbed_create(b, &q, &e);

    if (!row)
        fail_msg("%s", e.text);
    show(b, row);
    assert_true(await(asks, b, row, NULL, 0));
    assert_true(await(agent_is, b, row, NULL, AG_ASKS));
    return row;
}

static void copy_folder(const char *from, const char *to)
{
    pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        execlp("cp", "cp", "-r", from, to, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static int new_db(void **state)
{
    static int n;

    (void)state;
    db = xasprintf("%s/db%d", local->root, ++n);
    return 0;
}

static int drop_db(void **state)
{
    (void)state;
    free(db);
    return 0;
}

/* --- tests ------------------------------------------------------------------------ */

static void test_answered(void **state)
{
    struct jobsbed *b = open_bed(db, "a");
    uint64_t row = start_asking(b, "run echo said-$((40+2))");
    const struct question *q = model_ask(b->model, row);
    (void)state;

    assert_string_equal(q->question, "run `echo said-$((40+2))`?");
    assert_string_equal(q->choices[0], "yes");
    assert_string_equal(q->choices[2], "no");
    assert_true(q->words);
    assert_null(q->answer);
    assert_true(await(notes, b, row, "asks you: run `echo", 0));
    assert_int_equal(answer(b, row, NULL, 7, NULL), ERR_INVALID);
    assert_int_equal(answer(b, row, "no such question", 0, NULL), ERR_NOTFOUND);
    assert_true(await(asks, b, row, NULL, 0)); /* it is still open */
    assert_int_equal(answer(b, row, NULL, 0, NULL), 0);
    assert_true(await(shows, b, row, "said-42", 0));
    assert_true(await(asks_nothing, b, row, NULL, 0));
    assert_true(await(agent_is, b, row, NULL, AG_IDLE));
    assert_true(await(shows, b, row, "yes", 0)); /* the item says how it ended */
    assert_int_equal(answer(b, row, NULL, 0, NULL), ERR_NOTFOUND);
    /* no, in words: what the agent is told instead */
    jobsbed_send(b, row, "run echo another", 0);
    assert_true(await(asks, b, row, "another", 0));
    assert_int_equal(answer(b, row, NULL, -1, "better not"), 0);
    assert_true(await(shows, b, row, "not allowed: better not", 0));
    jobsbed_free(b);
}

/* Interrupting the turn takes the question back. */
static void test_interrupted(void **state)
{
    struct jobsbed *b = open_bed(db, "a");
    uint64_t row = start_asking(b, "run echo never");
    struct act a = {.b = b, .row = row, .req = 5};
    (void)state;

    jobsbed_run(b, do_interrupt, &a);
    assert_non_null(jobsbed_answer(b, 5, LONG_MS));
    assert_true(await(asks_nothing, b, row, NULL, 0));
    assert_true(await(notes, b, row, "closed without an answer: run `echo never`?", 0));
    assert_int_equal(answer(b, row, NULL, 0, NULL), ERR_NOTFOUND);
    jobsbed_free(b);
}

static void test_one_wins(void **state)
{
    struct jobsbed *a = open_bed(db, "a"), *b;
    uint64_t row = start_asking(a, "run echo once");
    char *id = xstrdup(model_ask(a->model, row)->id);
    int first, second;
    (void)state;

    b = join(db, "b", row);
    assert_true(await(asks, b, row, NULL, 0)); /* found in what is stored */
    assert_string_equal(model_ask(b->model, row)->id, id);
    first = answer(b, row, id, 2, NULL);
    second = answer(a, row, id, 0, NULL);
    assert_int_equal(first, 0);
    assert_true(second == ERR_CONFLICT || second == ERR_NOTFOUND);
    assert_true(await(shows, a, row, "not allowed", 0));
    assert_true(await(shows, a, row, "no", 0));
    assert_true(await(asks_nothing, a, row, NULL, 0));
    assert_true(await(asks_nothing, b, row, NULL, 0));
    free(id);
    jobsbed_free(b);
    jobsbed_free(a);
}

/* Chosen and committed, then the instance was killed: the next one brings it over. */
static void test_killed_between(void **state)
{
    struct jobsbed *b = open_bed(db, "a");
    uint64_t row = start_asking(b, "run echo late-$((40+3))");
    struct st_ask at = {0};
    struct storebox box;
    struct st_reply *r;
    (void)state;

    jobsbed_free(b);
    storebox_start(&box, db);
    store_run_open(box.s, row, "s", -1, storebox_to(&box));
    msg_free(&storebox_wait(&box)->m);
    for (uint64_t run = 1; run < 5 && !at.run; run++) {
        store_events(box.s, run, 0, 0, false, 1000, storebox_to(&box));
        r = storebox_wait(&box);
        for (size_t i = 0; i < r->n_events; i++)
            if (strstr(r->events[i].json, "\"ask\""))
                at = (struct st_ask){run, r->events[i].offset, r->events[i].index};
        msg_free(&r->m);
    }
    assert_true(at.run != 0);
    store_answer_add(box.s, &at, 0, NULL, storebox_to(&box));
    r = storebox_wait(&box);
    assert_true(r->got);
    msg_free(&r->m);
    store_answer_add(box.s, &at, 2, NULL, storebox_to(&box));
    r = storebox_wait(&box);
    assert_false(r->got); /* the first one stays */
    assert_int_equal(r->answers[0].choice, 0);
    msg_free(&r->m);
    storebox_stop(&box);
    b = join(db, "b", row);
    assert_true(await(shows, b, row, "late-43", 0));
    assert_true(await(asks_nothing, b, row, NULL, 0));
    assert_true(await(agent_is, b, row, NULL, AG_IDLE));
    jobsbed_free(b);
}

/* Two machines with databases of their own answer at the same time, each its way: the
 * sandbox takes one of the two, and both are told which. */
static void test_two_machines(void **state)
{
    struct jobsbed *b = open_bed(db, "a"), *c;
    uint64_t row = start_asking(b, "run echo x >>~/count; cat ~/count");
    char *other = xasprintf("%s.other", db);
    struct act yes = {NULL, row, 11, NULL, NULL, 0}, no = {NULL, row, 12, NULL, NULL, 2};
    const struct jobsbed_done *y, *n;
    bool ran;
    (void)state;

    jobsbed_free(b);
    copy_folder(db, other);
    yes.b = b = join(db, "a", row);
    no.b = c = join(other, "b", row);
    assert_true(await(asks, b, row, NULL, 0));
    assert_true(await(asks, c, row, NULL, 0));
    jobsbed_run(b, do_answer, &yes);
    jobsbed_run(c, do_answer, &no);
    y = jobsbed_answer(b, 11, LONG_MS);
    n = jobsbed_answer(c, 12, LONG_MS);
    assert_true(y && n && (!y->err.code || !n->err.code));
    assert_true(await(asks_nothing, b, row, NULL, 0));
    assert_true(await(asks_nothing, c, row, NULL, 0));
    assert_true(await(agent_is, b, row, NULL, AG_IDLE));
    assert_true(await(decided, b, row, NULL, 0));
    ran = shows(&(struct look){b, row, "exit status 0", 0});
    assert_true(await(shows, c, row, ran ? "yes" : "no", 0));
    if (!y->err.code && !n->err.code)
        assert_true(await(notes, ran ? c : b, row, "did not count", 0));
    jobsbed_free(c);
    jobsbed_free(b);
    free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_answered, new_db, drop_db),
        cmocka_unit_test_setup_teardown(test_interrupted, new_db, drop_db),
        cmocka_unit_test_setup_teardown(test_one_wins, new_db, drop_db),
        cmocka_unit_test_setup_teardown(test_killed_between, new_db, drop_db),
        cmocka_unit_test_setup_teardown(test_two_machines, new_db, drop_db),
    };
    struct err e = {0};
    int rc;

    cmocka_set_test_filter(getenv("CCT_ONLY"));
    if (secrets_init(&e) != 0)
        return 1;
    local = localbed_new();
    if (!local) {
        printf("1..1\nok 1 - answers # SKIP the local provider cannot be started here\n");
        return 0;
    }
    rc = cmocka_run_group_tests_name("answers", tests, NULL, NULL);
    localbed_free(local);
    return rc;
}
