/* The session of an adopted process: one stream into one record, and messages to its input. */
#include "../../src/jobs/foreign_priv.h"
#include "../../src/jobs/session_out.h"
#include "../../src/jobs/session_raw.h"
#include "../../src/jobs/session_relay.h"
#include "../lib/alonebed.h"
#include "../lib/storebox.h"
#include "../lib/tmpdir.h"

#include <cct/model/process.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { REQ = 5, NOT_MS = 50 };

/* --- its input --------------------------------------------------------------------- */

static void on_given(void *ctx, struct st_reply *r)
{
    struct alone *q = ctx;
    struct session *s = alone_session(q);

    message_copy(&s->re.msg, &r->msg);
    s->re.step = RE_PUBLISH;
    session_relay_input(s, INPUT_UNKNOWN, "cut short");
    q->done = s->re.step == RE_CLAIM;
    jobsbed_opened(s);
}

static void do_input(void *ctx)
{
    struct alone *q = ctx;

    jobsbed_expect();
    store_message_add(q->b->j.o.store, q->row, "one", (struct st_to){NULL, 0});
    store_message_add(q->b->j.o.store, q->row, "two", (struct st_to){NULL, 0});
    store_message_claim(q->b->j.o.store, q->row, "a", 60000,
                        jobs_store(&q->b->j, on_given, q, q));
}

/* Nobody knows what became of an input: the next one goes all the same. */
static void behind_an_input_of_unknown_end(void **state)
{
    struct alone q = alone_bed(NULL);
    (void)state;

    alone_run(&q, do_input, NULL);
    alone_wait(&q);
    assert_true(q.done);
    jobsbed_free(q.b);
}

/* --- its record ------------------------------------------------------------------ */

static void do_adopted(void *ctx)
{
    struct alone *q = ctx;
    struct sandbox *r = jobs_row(&q->b->j, q->row);
    char name[PROC_SESSION_SIZE];

    proc_session_name(name, sizeof(name), 7, 9);
    r->adopted = true;
    str_set(&r->session, name);
}

static void do_raw_go(void *ctx)
{
    session_raw_go(alone_session(ctx));
}

static void see_watch(void *ctx)
{
    struct session *s = alone_session(ctx);

    ((struct alone *)ctx)->done = s->raw->w != NULL;
}

static bool is_watched(void *ctx)
{
    jobsbed_run(((struct alone *)ctx)->b, see_watch, ctx);
    return ((struct alone *)ctx)->done;
}

static struct alone adopted_bed(const char *dir)
{
    struct alone q = {.b = jobsbed_new(dir, "a", NULL), .epoch = 1};

    q.b->j.priv = xcalloc(1, sizeof(*q.b->j.priv));
    q.row = jobsbed_row(q.b, "shell", "vm1");
    alone_run(&q, do_adopted, NULL);
    alone_run(&q, do_raw_go, NULL);
    assert_true(jobsbed_wait(q.b, is_watched, &q, ALONE_MS));
    return q;
}

static void free_adopted(struct alone *q)
{
    struct jobs_priv *priv = q->b->j.priv;

    jobsbed_free(q->b);
    ARR_RELEASE(&priv->watches);
    free(priv);
}

static void feed(struct session *s, const char *text)
{
    session_out_feed(s, text, strlen(text));
}

/* Its input is on its way, behind the end of a turn; q->text comes before that was answered. */
static void on_input(void *ctx, struct st_reply *r)
{
    struct alone *q = ctx;
    struct session *s = alone_session(q);

    alone_at_live_end(q);
    session_wait_turn(s, r->msg.id, REQ);
    feed(s, "\033]133;C\007one\n\033]133;D;0\007");
    session_raw_send(s, r->msg.text); /* which reaches nothing here */
    feed(s, q->text);
    message_copy(&s->re.msg, &r->msg);
    s->re.step = RE_PUBLISH;
    session_relay_input(s, INPUT_TAKEN, NULL);
    jobsbed_opened(s);
}

static void do_wait(void *ctx)
{
    struct alone *q = ctx;

    jobsbed_expect();
    store_message_add(q->b->j.o.store, q->row, "echo mine", (struct st_to){NULL, 0});
    store_message_claim(q->b->j.o.store, q->row, "a", 60000,
                        jobs_store(&q->b->j, on_input, q, q));
}

static void do_feed(void *ctx)
{
    struct alone *q = ctx;

    feed(alone_session(q), q->text);
}

/* Who waits for an answer gets what comes behind the input, and not what came before it. */
static void the_answer_to_an_input(void **state)
{
    static const char mine[] = "\033]133;C\007mine\n\033]133;D;0\007";
    const struct jobsbed_done *d;
    (void)state;

    for (int early = 0; early < 2; early++) {
        struct alone q = adopted_bed(NULL);

        alone_run(&q, do_wait, early ? mine : "");
        alone_wait(&q);
        if (!early) {
            assert_null(jobsbed_answer(q.b, REQ, NOT_MS));
            alone_run(&q, do_feed, mine);
        }
        d = jobsbed_answer(q.b, REQ, ALONE_MS);
        assert_non_null(d);
        assert_int_equal(d->err.code, 0);
        assert_string_equal(d->text, "mine\n");
        free_adopted(&q);
    }
}

static void do_reset(void *ctx)
{
    struct session *s = alone_session(ctx);

    s->fo.state = FO_WAIT; /* the process is being looked for again */
    session_follow_reset(s);
    ((struct alone *)ctx)->done = !s->raw->w;
}

/* Its record could not be kept and is closed: the stream must not come back to it. */
static void its_closed_record(void **state)
{
    struct alone q = adopted_bed(NULL);
    (void)state;

    alone_run(&q, do_reset, NULL);
    assert_true(q.done);
    free_adopted(&q);
}

static void (*was_opened)(struct session *s);

static void then_opened(struct session *s)
{
    was_opened(s);
    jobsbed_opened(s);
}

static void do_stop_while_opening(void *ctx)
{
    struct session *s = alone_session(ctx);

    was_opened = s->out.open_done;
    jobsbed_expect();
    session_open(s, 0, then_opened);
    session_follow_stop(s, FO_STOPPED); /* paused, or the provider moved */
}

static void see_stopped(void *ctx)
{
    struct session *s = alone_session(ctx);

    ((struct alone *)ctx)->done = s->fo.state == FO_STOPPED && !s->raw->w;
}

/* Its record is there only after it was let go: two streams would write into it. */
static void let_go_while_it_opens(void **state)
{
    struct alone q = adopted_bed(NULL);
    (void)state;

    alone_run(&q, do_stop_while_opening, NULL);
    alone_wait(&q);
    alone_run(&q, see_stopped, NULL);
    assert_true(q.done);
    free_adopted(&q);
}

static void on_answer(void *ctx, struct st_reply *r)
{
    struct session *s = alone_session(ctx);

    (void)r;
    ((struct alone *)ctx)->done = s->raw->w && s->raw->timer;
    jobsbed_opened(s);
}

static void do_renew(void *ctx)
{
    struct alone *q = ctx;

    jobsbed_expect();
    session_raw_go(alone_session(q)); /* asks for the lease that it has */
    store_sandboxes(q->b->j.o.store, jobs_store(&q->b->j, on_answer, q, q));
}

/* What the database does not take once is no reason to leave the process to others. */
static void a_lease_that_is_not_renewed(void **state)
{
    char *dir = storebox_dir(), *path = xasprintf("%s/cc-tui.db", dir);
    struct alone q = adopted_bed(dir);
    (void)state;

    storebox_sql(path, "ALTER TABLE leases RENAME TO elsewhere");
    alone_run(&q, do_renew, NULL);
    alone_wait(&q);
    assert_true(q.done);
    free_adopted(&q);
    tmpdir_remove(dir);
    free(path);
    free(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(behind_an_input_of_unknown_end),
        cmocka_unit_test(the_answer_to_an_input),
        cmocka_unit_test(its_closed_record),
        cmocka_unit_test(let_go_while_it_opens),
        cmocka_unit_test(a_lease_that_is_not_renewed),
    };
    struct err e = {0};

    if (secrets_init(&e) != 0)
        return 1;
    cmocka_set_test_filter(getenv("CCT_ONLY"));
    return cmocka_run_group_tests_name("session_adopted", tests, NULL, NULL);
}
