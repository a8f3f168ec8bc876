/* Messages that wait for a session's agent: each is handed over by one, or its end is told. */
#include "../../src/jobs/session_relay.h"
#include "../../src/jobs/session_start.h"
#include "../lib/alonebed.h"
#include "../lib/storebox.h"
#include "../lib/tmpdir.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MANY 60 /* more than are listed at once */

static void on_claimed(void *ctx, struct st_reply *r)
{
    struct alone *q = ctx;

    store_message_state(q->b->j.o.store, r->msg.id, MSG_QUEUED, MSG_SENT, NULL,
                        (struct st_to){NULL, 0});
    for (int i = 0; i < MANY; i++)
        store_message_add(q->b->j.o.store, q->row, "later", (struct st_to){NULL, 0});
    session_relay(alone_session(q));
}

static void do_sent_and_many(void *ctx)
{
    struct alone *q = ctx;

    store_message_add(q->b->j.o.store, q->row, "first", (struct st_to){NULL, 0});
    store_message_claim(q->b->j.o.store, q->row, "another", 60000,
                        jobs_store(&q->b->j, on_claimed, q, q));
}

static void see_sent(void *ctx)
{
    struct alone *q = ctx;
    const struct relay *re = &alone_session(q)->re;

    q->done = re->step == RE_SENT && str_eq(re->msg.text, "first");
}

static void see_timer(void *ctx)
{
    struct alone *q = ctx;
    const struct relay *re = &alone_session(q)->re;

    q->done = re->step == RE_IDLE && re->timer;
}

static bool sees_sent(void *ctx)
{
    alone_run(ctx, see_sent, NULL);
    return ((struct alone *)ctx)->done;
}

static bool sees_timer(void *ctx)
{
    alone_run(ctx, see_timer, NULL);
    return ((struct alone *)ctx)->done;
}

/* The one that handed it over is gone: what became of it is found out, however many wait. */
static void a_sent_one_before_many(void **state)
{
    struct alone q = alone_bed(NULL);
    (void)state;

    alone_run(&q, do_sent_and_many, NULL);
    assert_true(jobsbed_wait(q.b, sees_sent, &q, ALONE_MS));
    jobsbed_free(q.b);
}

/* A first prompt that is on its way, too. */
static void do_relay(void *ctx)
{
    struct session *s = alone_session(ctx);

    s->prov = xcalloc(1, sizeof(*s->prov));
    s->prov->req_id = 5;
    s->prov_ready = s->prov->prompt_waits = true;
    session_relay(s);
}

/* The database cannot be asked for a while: who started the agent need not wait for that. */
static void a_queue_that_cannot_be_read(void **state)
{
    char *dir = storebox_dir(), *path = xasprintf("%s/cc-tui.db", dir);
    struct alone q = alone_bed(dir);
    (void)state;

    storebox_sql(path, "ALTER TABLE sandboxMessages RENAME TO elsewhere");
    alone_run(&q, do_relay, NULL);
    assert_true(jobsbed_wait(q.b, sees_timer, &q, ALONE_MS));
    assert_non_null(jobsbed_answer(q.b, 5, ALONE_MS));
    jobsbed_free(q.b);
    tmpdir_remove(dir);
    free(path);
    free(dir);
}

static void on_all(void *ctx, struct st_reply *r)
{
    struct alone *q = ctx;

    q->done = r->n_messages == MANY;
    for (size_t i = 0; i < r->n_messages; i++)
        q->done &= r->messages[i].state == MSG_FAILED;
    jobsbed_come();
}

static void do_all(void *ctx)
{
    struct alone *q = ctx;

    jobsbed_expect();
    store_messages(q->b->j.o.store, q->row, 2 * MANY, jobs_store(&q->b->j, on_all, q, q));
}

static void do_gone(void *ctx)
{
    struct alone *q = ctx;

    for (int i = 0; i < MANY; i++)
        store_message_add(q->b->j.o.store, q->row, "never", (struct st_to){NULL, 0});
    session_vm_state(alone_session(q), SB_KILLED);
}

static void all_are_told_of_the_end(void **state)
{
    struct alone q = alone_bed(NULL);
    (void)state;

    alone_run(&q, do_gone, NULL);
    for (int i = 0; i < 2; i++) { /* what the first answer led to is done at the second */
        alone_run(&q, do_all, NULL);
        alone_wait(&q);
    }
    assert_true(q.done);
    jobsbed_free(q.b);
}

static void on_next_claim(void *ctx, struct st_reply *r)
{
    ((struct alone *)ctx)->done = r->got;
    jobsbed_come();
}

/* Half way through handing it over the connection goes; q->text: the Move was on its way. */
static void on_own_claim(void *ctx, struct st_reply *r)
{
    struct alone *q = ctx;
    struct session *s = alone_session(q);

    assert_true(r->got);
    message_copy(&s->re.msg, &r->msg);
    s->re.step = RE_PUBLISH;
    s->re.moving = q->text != NULL;
    session_relay_stop(s, false, NULL);
    store_message_claim(q->b->j.o.store, q->row, "another", 60000,
                        jobs_store(&q->b->j, on_next_claim, q, q));
}

static void do_claim(void *ctx)
{
    struct alone *q = ctx;

    jobsbed_expect();
    store_message_add(q->b->j.o.store, q->row, "first", (struct st_to){NULL, 0});
    store_message_claim(q->b->j.o.store, q->row, q->b->j.o.owner, 60000,
                        jobs_store(&q->b->j, on_own_claim, q, q));
}

/* What is surely not in the inbox need not wait for our claim's end; what may be there must. */
static void a_claim_is_let_go(void **state)
{
    (void)state;
    for (int moving = 0; moving < 2; moving++) {
        struct alone q = alone_bed(NULL);

        alone_run(&q, do_claim, moving ? "moving" : NULL);
        alone_wait(&q);
        assert_int_equal(q.done, !moving);
        jobsbed_free(q.b);
    }
}

static void on_state(void *ctx, struct st_reply *r)
{
    ((struct alone *)ctx)->done = r->n_messages == 1 && r->messages[0].state == MSG_DELIVERED;
    jobsbed_come();
}

static void on_added(void *ctx, struct st_reply *r)
{
    struct alone *q = ctx;
    struct store *st = q->b->j.o.store;

    store_message_state(st, r->msg.id, MSG_QUEUED, MSG_SENT, NULL, (struct st_to){NULL, 0});
    store_message_state(st, r->msg.id, MSG_SENT, MSG_UNCONFIRMED, "nobody saw it",
                        (struct st_to){NULL, 0});
    session_relay_delivered(alone_session(q), r->msg.id);
    store_messages(st, q->row, 10, jobs_store(&q->b->j, on_state, q, q));
}

static void do_late_echo(void *ctx)
{
    struct alone *q = ctx;

    jobsbed_expect();
    store_message_add(q->b->j.o.store, q->row, "first", jobs_store(&q->b->j, on_added, q, q));
}

/* Called unconfirmed, and the agent shows it all the same. */
static void an_echo_after_all(void **state)
{
    struct alone q = alone_bed(NULL);
    (void)state;

    alone_run(&q, do_late_echo, NULL);
    alone_wait(&q);
    assert_true(q.done);
    jobsbed_free(q.b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sent_one_before_many),
        cmocka_unit_test(a_queue_that_cannot_be_read),
        cmocka_unit_test(all_are_told_of_the_end),
        cmocka_unit_test(a_claim_is_let_go),
        cmocka_unit_test(an_echo_after_all),
    };
    struct err e = {0};

    if (secrets_init(&e) != 0)
        return 1;
    cmocka_set_test_filter(getenv("CCT_ONLY"));
    return cmocka_run_group_tests_name("session_queue", tests, NULL, NULL);
}
