/* Who waits for the answer to a message that another instance handed over gets that answer, not
 * the one before nor the one behind, also when the other one is gone. What the other does is done
 * by hand here, step by step. */
#include "../../src/jobs/session_follow.h"
#include "../../src/jobs/session_relay.h"
#include "../lib/sessionbed.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define REQ 5
#define NOT_MS 400 /* an answer that is wrong comes at once */

/* A shell that begins with a command as soon as there is a file `go`. */
static const char slow_shell[] =
    "while IFS= read -r line <&3; do until [ -e ~/go ]; do sleep 0.05; done; "
    "printf '\\033]133;C\\007'; eval \"$(printf %s \"$line\" | base64 -d)\"; "
    "printf '\\033]133;D;%s\\007' $?; done";

struct other {
    struct jobsbed *b;
    uint64_t row;
    struct message m;
    const char *text;
    enum msg_state to;
    char *path;
};

static struct session *session(const struct other *o)
{
    return session_of(&o->b->j, o->row);
}

static void run(struct other *o, void (*fn)(void *ctx))
{
    jobsbed_expect();
    jobsbed_run(o->b, fn, o);
    assert_true(jobsbed_wait(o->b, jobsbed_came, NULL, LONG_MS));
}

/* --- what the other one does --------------------------------------------------------- */

static void on_claimed(void *ctx, struct st_reply *r)
{
    struct other *o = ctx;

    message_release(&o->m);
    message_copy(&o->m, &r->msg);
    jobsbed_come();
}

static void do_claim(void *ctx)
{
    struct other *o = ctx;
    struct store *s = o->b->j.o.store;

    store_message_add(s, o->row, o->text, (struct st_to){NULL, 0});
    store_message_claim(s, o->row, "another", 60000, jobs_store(&o->b->j, on_claimed, o, o));
}

static void claim(struct other *o, const char *text)
{
    o->text = text;
    run(o, do_claim);
    assert_string_equal(o->m.text, text);
}

static void on_moved(void *ctx, const struct envd_result *r)
{
    struct other *o = ctx;

    assert_int_equal(r->err.code, 0);
    session_life_wake(session(o));
    jobsbed_come();
}

static void on_written(void *ctx, const struct envd_result *r)
{
    struct other *o = ctx;
    struct session *s = session(o);
    char name[96], *to;

    assert_int_equal(r->err.code, 0);
    session_inbox_name(name, sizeof(name), o->m.created_at, o->m.key);
    to = xasprintf("%s/" SESSION_INBOX "/%s", s->dir, name);
    envd_move(s->envd, o->path, to, on_moved, o);
    free(to);
}

static void do_publish(void *ctx)
{
    struct other *o = ctx;
    struct session *s = session(o);
    struct buf bytes = BUF_INIT;

    assert_int_equal(s->ad->encode_message(o->m.text, strlen(o->m.text), &bytes, NULL), 0);
    free(o->path);
    o->path = session_tmp_path(s, "other");
    envd_write(s->envd, o->path, bytes.p, bytes.len, on_written, o);
    buf_release(&bytes);
}

static void on_state(void *ctx, struct st_reply *r)
{
    (void)ctx;
    assert_true(r->got);
    jobsbed_come();
}

static void do_state(void *ctx)
{
    struct other *o = ctx;
    struct store *s = o->b->j.o.store;

    if (o->to == MSG_DELIVERED)
        store_message_state(s, o->m.id, MSG_QUEUED, MSG_SENT, NULL, (struct st_to){NULL, 0});
    store_message_state(s, o->m.id, o->to == MSG_DELIVERED ? MSG_SENT : MSG_QUEUED, o->to, NULL,
                        jobs_store(&o->b->j, on_state, o, o));
}

static void tell(struct other *o, enum msg_state to)
{
    o->to = to;
    run(o, do_state);
}

static void do_unclaim(void *ctx)
{
    struct other *o = ctx;
    struct store *s = o->b->j.o.store;

    store_message_unclaim(s, o->row, "another");
    store_message(s, o->m.id, jobs_store(&o->b->j, on_claimed, o, o));
}

static void on_touched(void *ctx, const struct envd_result *r)
{
    (void)ctx;
    assert_int_equal(r->err.code, 0);
    jobsbed_come();
}

static void do_touch(void *ctx)
{
    struct other *o = ctx;
    struct session *s = session(o);

    free(o->path);
    o->path = xasprintf("%s/%s", s->home, o->text);
    envd_write(s->envd, o->path, "", 0, on_touched, o);
}

static void touch(struct other *o, const char *name)
{
    o->text = name;
    run(o, do_touch);
}

/* --- what we do -------------------------------------------------------------------- */

static void do_wait(void *ctx)
{
    struct other *o = ctx;

    session_wait_turn(session(o), o->m.id, REQ);
}

static void do_look(void *ctx)
{
    struct other *o = ctx;

    session_relay(session(o));
}

static struct other shell_bed(const char *command)
{
    struct other o = {.b = open_bed("a")};

    o.row = start(o.b, "shell", command, NULL);
    assert_true(wait_agent(o.b, o.row, command ? AG_WORKING : AG_IDLE));
    return o;
}

static void answered(struct other *o, const char *text, int outcome)
{
    const struct jobsbed_done *d = jobsbed_answer(o->b, REQ, LONG_MS);

    assert_non_null(d);
    if (d->err.code)
        fail_msg("%s", d->err.text);
    assert_string_equal(d->text ? d->text : "", text);
    assert_int_equal(d->outcome, outcome);
}

static void other_free(struct other *o)
{
    message_release(&o->m);
    free(o->path);
    jobsbed_free(o->b);
}

/* We wait for a message that it claims and hands over, until its turn is over. */
static void hand_over_and_finish(struct other *o)
{
    claim(o, "echo mine");
    jobsbed_run(o->b, do_wait, o);
    run(o, do_publish);
    assert_true(wait_text(o->b, o->row, "mine"));
    assert_true(wait_agent(o->b, o->row, AG_IDLE));
}

/* --- tests ------------------------------------------------------------------------- */

/* It handed the message over and was killed before it could tell the store of the turn. */
static void test_sender_gone_after_the_turn(void **state)
{
    struct other o = shell_bed(NULL);
    (void)state;

    hand_over_and_finish(&o);
    tell(&o, MSG_SENT);
    jobsbed_run(o.b, do_look, &o);
    answered(&o, "mine\n", AGENT_OK);
    other_free(&o);
}

/* Its turn, and another one, are over before we hear of it. */
static void test_two_turns_went_by(void **state)
{
    struct other o = shell_bed(NULL), next = {.b = o.b, .row = o.row};
    (void)state;

    claim(&o, "printf mine");
    jobsbed_run(o.b, do_wait, &o);
    run(&o, do_publish);
    assert_true(wait_text(o.b, o.row, "mine"));
    next.m = (struct message){.key = xstrdup("next"), .text = xstrdup("echo another; false")};
    next.m.created_at = o.m.created_at + 1;
    run(&next, do_publish);
    assert_true(wait_text(o.b, o.row, "another"));
    assert_true(wait_agent(o.b, o.row, AG_IDLE));
    tell(&o, MSG_DELIVERED);
    jobsbed_run(o.b, do_look, &o);
    answered(&o, "mine", AGENT_OK);
    message_release(&next.m);
    free(next.path);
    other_free(&o);
}

/* It has had a turn, and begins the next one only when there is a file `go`. */
static struct other slow_bed(void)
{
    struct other o = shell_bed(slow_shell), first = {.b = o.b, .row = o.row};

    touch(&o, "go");
    first.m = (struct message){.key = xstrdup("first"), .text = xstrdup("rm ~/go; echo first")};
    first.m.created_at = 1;
    run(&first, do_publish);
    assert_true(wait_text(o.b, o.row, "first"));
    assert_true(wait_agent(o.b, o.row, AG_IDLE));
    message_release(&first.m);
    free(first.path);
    return o;
}

/* The store says that it was taken in, and its turn is still to begin. */
static void test_taken_in_and_not_begun(void **state)
{
    struct other o = slow_bed();
    (void)state;

    claim(&o, "echo mine");
    run(&o, do_publish);
    tell(&o, MSG_DELIVERED);
    jobsbed_run(o.b, do_wait, &o);
    assert_null(jobsbed_answer(o.b, REQ, NOT_MS));
    touch(&o, "go");
    answered(&o, "mine\n", AGENT_OK);
    other_free(&o);
}

/* The one that handed it over is gone: what we send goes behind the end of its turn. */
static void test_sent_behind_one_not_begun(void **state)
{
    struct other o = slow_bed();
    const struct jobsbed_done *d;
    (void)state;

    claim(&o, "echo mine");
    jobsbed_run(o.b, do_wait, &o);
    run(&o, do_publish);
    tell(&o, MSG_SENT);
    jobsbed_run(o.b, do_look, &o);
    assert_true(wait_message(o.b, o.m.id, MSG_DELIVERED));
    jobsbed_send(o.b, o.row, "echo next", REQ + 1);
    assert_null(jobsbed_answer(o.b, REQ + 1, NOT_MS));
    touch(&o, "go");
    answered(&o, "mine\n", AGENT_OK);
    d = jobsbed_answer(o.b, REQ + 1, LONG_MS);
    assert_non_null(d);
    assert_string_equal(d->text, "next\n");
    other_free(&o);
}

/* Others have read and stored all of its turn when we come. */
static void test_the_turn_is_stored(void **state)
{
    struct other o = shell_bed(NULL), late = {.row = o.row};
    (void)state;

    jobsbed_send(o.b, o.row, "echo mine; false", 4);
    assert_non_null(jobsbed_answer(o.b, 4, LONG_MS));
    late.b = open_bed("late");
    jobsbed_load(late.b);
    late.m.id = 1;
    jobsbed_run(late.b, do_wait, &late);
    answered(&late, "mine\nexit status 1", AGENT_FAILED);
    jobsbed_free(late.b);
    other_free(&o);
}

/* It handed the message over and told nobody so: we hand it over again, which changes nothing. */
static void test_handed_over_twice(void **state)
{
    struct other o = shell_bed(NULL);
    (void)state;

    hand_over_and_finish(&o);
    run(&o, do_unclaim);
    jobsbed_run(o.b, do_look, &o);
    answered(&o, "mine\n", AGENT_OK);
    jobsbed_send(o.b, o.row, "echo next", REQ + 1);
    assert_non_null(jobsbed_answer(o.b, REQ + 1, LONG_MS));
    other_free(&o);
}

/* --- what is seen of them ------------------------------------------------------------ */

#define SENT 8

static void do_events(void *ctx)
{
    struct act *a = ctx;

    session_events(session_of(&a->b->j, a->row), a->req, a->follow);
}

static int count(struct buf *b, const char *text)
{
    int n = 0;

    for (const char *p = buf_str(b); (p = strstr(p, text)); p++)
        n++;
    return n;
}

static bool has_last(void *ctx)
{
    return count(&((struct jobsbed *)ctx)->chunks, "\"kind\":\"raw\"") >= SENT;
}

static bool shows_all(void *ctx)
{
    return look_count(ctx, ITEM_USER, "echo out-") == SENT;
}

/* What another instance sends to an agent without echoes is there once for who follows, before
 * what comes of it. */
static void test_messages_of_another(void **state)
{
    struct other o = shell_bed(NULL);
    struct act a = {.b = o.b, .row = o.row, .req = 50, .follow = true};
    struct jobsbed *sender = open_bed("sender");
    struct look l = {.b = o.b, .row = o.row};
    char text[64];
    const char *p;
    (void)state;

    jobsbed_load(sender);
    jobsbed_run(o.b, do_events, &a);
    for (int i = 1; i <= SENT; i++) {
        snprintf(text, sizeof(text), "echo out-%d", i);
        jobsbed_send(sender, o.row, text, (uint64_t)i);
        assert_non_null(jobsbed_answer(sender, (uint64_t)i, LONG_MS));
        jobsbed_wait(o.b, NULL, NULL, 1);
    }
    assert_true(wait_text(o.b, o.row, "out-8"));
    assert_true(jobsbed_wait(o.b, has_last, o.b, LONG_MS));
    p = buf_str(&o.b->chunks);
    assert_int_equal(count(&o.b->chunks, "user_echo"), SENT);
    for (int i = 1; i <= SENT; i++) {
        snprintf(text, sizeof(text), "\"text\":\"echo out-%d\"", i);
        p = strstr(p, text);
        assert_non_null(p);
        snprintf(text, sizeof(text), "\"text\":\"out-%d\"", i);
        p = strstr(p, text);
        assert_non_null(p);
    }
    assert_true(jobsbed_wait(o.b, shows_all, &l, LONG_MS));
    jobsbed_free(sender);
    other_free(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_sender_gone_after_the_turn, new_db, drop_db),
        cmocka_unit_test_setup_teardown(test_two_turns_went_by, new_db, drop_db),
        cmocka_unit_test_setup_teardown(test_taken_in_and_not_begun, new_db, drop_db),
        cmocka_unit_test_setup_teardown(test_sent_behind_one_not_begun, new_db, drop_db),
        cmocka_unit_test_setup_teardown(test_the_turn_is_stored, new_db, drop_db),
        cmocka_unit_test_setup_teardown(test_handed_over_twice, new_db, drop_db),
        cmocka_unit_test_setup_teardown(test_messages_of_another, new_db, drop_db),
    };

    if (!sessionbed_begin())
        return sessionbed_none("waits of sessions");
    return sessionbed_end(cmocka_run_group_tests_name("session_waits", tests, NULL, NULL));
}
