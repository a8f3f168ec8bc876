/* Bytes of a recorded agent through a session into a store: whatever happens in between,
 * the events are those of one decoding from begin to end. And whose turn is whose. */
#include "../../src/jobs/session_out.h"
#include "../../src/jobs/session_priv.h"
#include "../../src/jobs/session_relay.h"
#include "../lib/jobsbed.h"
#include "../lib/tmpdir.h"

#include <cct/agent/decode.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define RECORDING "tests/fixtures/recordings/claude-multiturn.jsonl"
#define WAIT_MS 20000

static char root[64];
static char *raw, *want; /* the recording, its events one a line */
static size_t raw_len, want_len;
static double want_cost;
static int64_t want_in, want_out;
static int n_db;

static void sum(void *ctx, const struct agent_event *ev)
{
    (void)ctx;
    if (ev->kind != AGENT_USAGE)
        return;
    want_in += ev->in_tokens + ev->cache_read + ev->cache_write;
    want_out += ev->out_tokens;
    if (!isnan(ev->cost_usd))
        want_cost += ev->cost_usd;
}

static int setup(void **state)
{
    const struct agent_adapter *a = agent_adapter_find("claude");
    struct agent_dec *d = agent_dec_new(a, 0, sum, NULL);
    FILE *out = open_memstream(&want, &want_len);
    int fd = open(RECORDING, O_RDONLY | O_CLOEXEC);
    struct err e = {0};

    (void)state;
    if (tmpdir_make(root, sizeof(root), "stream") != 0 || fd < 0 || !out)
        return -1;
    if (agent_decode_fd(a, fd, AGENT_NO_EXIT, 0, NULL, out, &e) != 0)
        return -1;
    fclose(out);
    close(fd);
    raw = fs_read(RECORDING, 1 << 24, false, &raw_len, &e);
    if (!raw)
        return -1;
    agent_dec_feed(d, raw, raw_len);
    agent_dec_free(d);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(raw);
    free(want);
    return tmpdir_remove(root);
}

/* --- on the net thread ----------------------------------------------------------- */

struct work {
    struct jobsbed *b;
    uint64_t row, from, len, id;
    const char *text; /* of the message; NULL: "  do it\n" */
    size_t piece;
    bool opened;
    const struct agent_event *ev;
};

static void do_feed(void *ctx)
{
    struct work *w = ctx;
    struct session *s = session_of(&w->b->j, w->row);

    while (s->out.pos < w->len) {
        size_t n = w->piece < w->len - s->out.pos ? w->piece : (size_t)(w->len - s->out.pos);

        session_out_feed(s, raw + s->out.pos, n);
        session_keep_flush(s);
    }
}

static void do_events(void *ctx)
{
    struct work *w = ctx;
    struct session *s = session_of(&w->b->j, w->row);

    s->out.caught_up = true;
    session_events(s, 9, false);
}

static void open_run(struct work *w)
{
    assert_true(jobsbed_open(w->b, w->row, 1, WAIT_MS));
}

static void feed_to(struct work *w, size_t at)
{
    w->len = at;
    jobsbed_run(w->b, do_feed, w);
}

static bool has_sums(void *ctx)
{
    struct work *w = ctx;
    const struct sandbox *r = model_sandbox(w->b->model, w->row);

    return r && r->tokens_in == want_in && r->tokens_out == want_out &&
           fabs(r->cost_usd - want_cost) < 1e-9;
}

static void same_text(const char *got, const char *expected)
{
    size_t i = 0, line = 0;

    for (; got[i] && got[i] == expected[i]; i++)
        if (got[i] == '\n')
            line = i + 1;
    if (got[i] != expected[i])
        fail_msg("got    %.300s\nwanted %.300s", got + line, expected + line);
}

static void check_events(struct work *w)
{
    buf_clear(&w->b->chunks);
    w->b->n_done = 0;
    jobsbed_run(w->b, do_events, w);
    assert_non_null(jobsbed_answer(w->b, 9, WAIT_MS));
    same_text(buf_str(&w->b->chunks), want);
    assert_true(jobsbed_wait(w->b, has_sums, w, WAIT_MS));
}

/* --- the stream -------------------------------------------------------------------- */

/* Stopped (as by kill -9: what was not handed over is lost) at many places. */
static void resumed_at_any_byte(void **state)
{
    char *dir = xasprintf("%s/db%d", root, ++n_db);
    struct work w = {.piece = 777};
    size_t step = raw_len / 23 + 1;
    (void)state;

    for (size_t at = step; at < raw_len + step; at += step) {
        w.b = jobsbed_new(dir, "a", NULL);
        if (at == step)
            w.row = jobsbed_row(w.b, "claude", NULL);
        else
            jobsbed_load(w.b);
        open_run(&w);
        feed_to(&w, at < raw_len ? at : raw_len);
        if (at >= raw_len)
            check_events(&w);
        jobsbed_free(w.b);
    }
    free(dir);
}

/* Two that read the same, one ahead of the other, each with pieces of its own. */
static void two_readers(void **state)
{
    char *dir = xasprintf("%s/db%d", root, ++n_db);
    struct work a = {.piece = 4096}, b = {.piece = 1000};
    (void)state;

    a.b = jobsbed_new(dir, "a", NULL);
    a.row = b.row = jobsbed_row(a.b, "claude", NULL);
    open_run(&a);
    b.b = jobsbed_new(dir, "b", NULL);
    jobsbed_load(b.b);
    open_run(&b);
    feed_to(&a, raw_len / 3);
    feed_to(&b, raw_len / 2);
    feed_to(&a, raw_len);
    feed_to(&b, raw_len);
    check_events(&b);
    check_events(&a);
    jobsbed_free(b.b);
    jobsbed_free(a.b);
    free(dir);
}

/* --- turns --------------------------------------------------------------------------- */

static void do_event(void *ctx)
{
    struct work *w = ctx;

    session_out_event(session_of(&w->b->j, w->row), w->ev);
}

static void say(struct work *w, enum agent_kind kind, const char *id, const char *text)
{
    static uint64_t offset = 1;
    struct agent_event ev = AGENT_EVENT(kind);

    ev.offset = offset++;
    ev.id = (char *)id;
    ev.text = (char *)text;
    ev.mode = AGENT_REPLACE;
    ev.final = true;
    w->ev = &ev;
    jobsbed_run(w->b, do_event, w);
}

static void on_sent(void *ctx, struct st_reply *r)
{
    struct work *w = ctx;
    struct session *s = session_of(&w->b->j, w->row);

    message_release(&s->re.msg);
    message_copy(&s->re.msg, &r->msg);
    s->re.step = RE_SENT;
    session_wait_turn(s, r->msg.id, w->id);
    jobsbed_come();
}

static void on_added(void *ctx, struct st_reply *r)
{
    struct work *w = ctx;

    store_message_state(w->b->j.o.store, r->msg.id, MSG_QUEUED, MSG_SENT, NULL,
                        jobs_store(&w->b->j, on_sent, w, w));
}

static void do_send(void *ctx)
{
    struct work *w = ctx;

    store_message_add(w->b->j.o.store, w->row, w->text ? w->text : "  do it\n",
                      jobs_store(&w->b->j, on_added, w, w));
}

static bool is_delivered(void *ctx)
{
    struct work *w = ctx;
    struct model *m = w->b->model;

    return m->n_messages && m->messages[m->n_messages - 1].state == MSG_DELIVERED;
}

static struct work turn_bed(void)
{
    struct work w = {.b = jobsbed_new(NULL, "a", NULL)};

    w.row = jobsbed_row(w.b, "claude", NULL);
    open_run(&w);
    return w;
}

static void send(struct work *w, uint64_t req)
{
    w->id = req;
    jobsbed_expect();
    jobsbed_run(w->b, do_send, w);
    assert_true(jobsbed_wait(w->b, jobsbed_came, NULL, WAIT_MS));
}

static void answer_of_the_turn_with_the_echo(void **state)
{
    struct work w = turn_bed();
    const struct jobsbed_done *d;
    (void)state;

    send(&w, 5);
    say(&w, AGENT_TURN_BEGIN, NULL, NULL); /* another one's turn */
    say(&w, AGENT_TEXT, "m0", "not for you");
    say(&w, AGENT_USER_ECHO, NULL, "something else");
    say(&w, AGENT_TURN_END, NULL, "not for you");
    assert_null(jobsbed_answer(w.b, 5, 50));
    say(&w, AGENT_USER_ECHO, NULL, "do it");
    say(&w, AGENT_TURN_BEGIN, NULL, NULL);
    say(&w, AGENT_TEXT, "m1", "first I look");
    say(&w, AGENT_TEXT, "m2", "done");
    say(&w, AGENT_TURN_END, NULL, "done");
    d = jobsbed_answer(w.b, 5, WAIT_MS);
    assert_non_null(d);
    assert_int_equal(d->err.code, 0);
    assert_int_equal(d->outcome, AGENT_OK);
    assert_string_equal(d->text, "done");
    assert_true(jobsbed_wait(w.b, is_delivered, &w, WAIT_MS));
    jobsbed_free(w.b);
}

/* A command of the CLI itself: answered at once, and never echoed. */
static void a_command_without_an_echo(void **state)
{
    struct work w = turn_bed();
    const struct jobsbed_done *d;
    (void)state;

    w.text = "/cost";
    send(&w, 5);
    say(&w, AGENT_TURN_BEGIN, NULL, NULL); /* another one's turn */
    say(&w, AGENT_USER_ECHO, NULL, "something else");
    say(&w, AGENT_TURN_END, NULL, "not for you");
    assert_null(jobsbed_answer(w.b, 5, 50));
    say(&w, AGENT_TURN_BEGIN, NULL, NULL);
    say(&w, AGENT_TEXT, "result:1", "$0.28");
    say(&w, AGENT_TURN_END, NULL, NULL);
    d = jobsbed_answer(w.b, 5, WAIT_MS);
    assert_non_null(d);
    assert_int_equal(d->outcome, AGENT_OK);
    assert_string_equal(d->text, "$0.28");
    assert_true(jobsbed_wait(w.b, is_delivered, &w, WAIT_MS));
    jobsbed_free(w.b);
}

static void the_end_ends_the_wait(void **state)
{
    struct work w = turn_bed();
    struct agent_event ev = AGENT_EVENT(AGENT_EXIT);
    const struct jobsbed_done *d;
    (void)state;

    send(&w, 5);
    say(&w, AGENT_USER_ECHO, NULL, "do it");
    say(&w, AGENT_TURN_BEGIN, NULL, NULL);
    ev.offset = 1000;
    ev.exit_code = 137;
    ev.text = (char *)"killed";
    w.ev = &ev;
    jobsbed_run(w.b, do_event, &w);
    d = jobsbed_answer(w.b, 5, WAIT_MS);
    assert_non_null(d);
    assert_int_equal(d->outcome, AGENT_FAILED);
    assert_int_equal(d->exit_code, 137);
    assert_string_equal(d->text, "killed");
    jobsbed_free(w.b);
}

/* As after an interrupt by a signal, of which the agent did not end. */
static void do_signalled(void *ctx)
{
    struct work *w = ctx;

    session_of(&w->b->j, w->row)->sigint_sent = true;
}

static void do_killed(void *ctx)
{
    struct work *w = ctx;
    struct session *s = session_of(&w->b->j, w->row);
    struct session_run_end end = {.run = 1, .offset = s->out.pos, .code = 137};

    assert_true(agent_dec_busy(s->out.dec));
    session_wait_turn(s, 77, 5);
    session_wait_delivered(s, 77);
    session_out_exit(s, &end);
}

/* The signal was for another turn: this one ended by itself. */
static void an_interrupt_is_of_its_turn(void **state)
{
    struct work w = turn_bed();
    const struct jobsbed_done *d;
    (void)state;

    w.piece = 4096;
    jobsbed_run(w.b, do_signalled, &w);
    feed_to(&w, (size_t)((char *)memrchr(raw, '\n', raw_len - 1) - raw) + 1);
    jobsbed_run(w.b, do_killed, &w);
    d = jobsbed_answer(w.b, 5, WAIT_MS);
    assert_non_null(d);
    assert_int_equal(d->outcome, AGENT_FAILED);
    jobsbed_free(w.b);
}

static void forget_message(void *ctx)
{
    struct work *w = ctx;
    struct session *s = session_of(&w->b->j, w->row);

    message_release(&s->re.msg);
    s->re.step = RE_IDLE;
}

/* The one that sent it is gone; its echo comes to us. */
static void an_echo_finds_its_message(void **state)
{
    struct work w = turn_bed();
    (void)state;

    send(&w, 0);
    jobsbed_run(w.b, forget_message, &w);
    say(&w, AGENT_USER_ECHO, NULL, "do it");
    assert_true(jobsbed_wait(w.b, is_delivered, &w, WAIT_MS));
    jobsbed_free(w.b);
}

static void do_claimed(void *ctx)
{
    struct work *w = ctx;

    store_message_add(w->b->j.o.store, w->row, "do it", (struct st_to){NULL, 0});
    if (w->id)
        store_message_claim(w->b->j.o.store, w->row, "another", 60000, (struct st_to){NULL, 0});
}

/* The one that handed it over could not tell the store so: no claim is waited for. */
static void an_echo_of_what_another_claimed(void **state)
{
    struct work w = turn_bed();
    (void)state;

    w.id = 1;
    jobsbed_run(w.b, do_claimed, &w);
    say(&w, AGENT_USER_ECHO, NULL, "do it");
    assert_true(jobsbed_wait(w.b, is_delivered, &w, WAIT_MS));
    jobsbed_free(w.b);
}

static void do_taken(void *ctx)
{
    struct work *w = ctx;
    struct session *s = session_of(&w->b->j, w->row);

    s->out.caught_up = true;
    s->out.agent = AG_IDLE;
    s->re.moving = true;
    s->re.opened = s->out.n_opened - (w->len ? 1 : 0);
    session_relay_taken(s, false, 0);
}

/* The program has the message, and takes longer to begin than we look for it. */
static void a_slow_begin_is_waited_for(void **state)
{
    struct work w = turn_bed();
    const struct jobsbed_done *d;
    (void)state;

    send(&w, 5);
    w.len = 0;
    jobsbed_run(w.b, do_taken, &w);
    assert_true(jobsbed_wait(w.b, is_delivered, &w, WAIT_MS));
    assert_null(jobsbed_answer(w.b, 5, 50));
    say(&w, AGENT_USER_ECHO, NULL, "do it");
    say(&w, AGENT_TURN_BEGIN, NULL, NULL);
    say(&w, AGENT_TEXT, "m1", "done");
    say(&w, AGENT_TURN_END, NULL, "done");
    d = jobsbed_answer(w.b, 5, WAIT_MS);
    assert_non_null(d);
    assert_int_equal(d->outcome, AGENT_OK);
    assert_string_equal(d->text, "done");
    jobsbed_free(w.b);
}

/* There was another reader in between, so the turn may be over. */
static void what_may_be_over_is_not(void **state)
{
    struct work w = turn_bed();
    (void)state;

    send(&w, 5);
    w.len = 1;
    jobsbed_run(w.b, do_taken, &w);
    assert_non_null(jobsbed_answer(w.b, 5, WAIT_MS));
    jobsbed_free(w.b);
}

static void do_old_echo(void *ctx)
{
    struct work *w = ctx;

    session_turn_old_echo(session_of(&w->b->j, w->row), "do it", false);
}

static void on_state(void *ctx, struct st_reply *r)
{
    struct work *w = ctx;

    w->len = r->n_messages ? (uint64_t)r->messages[0].state : MSG_FAILED;
    jobsbed_come();
}

static void do_state(void *ctx)
{
    struct work *w = ctx;

    store_messages(w->b->j.o.store, w->row, 1, jobs_store(&w->b->j, on_state, w, w));
}

/* The same words of before, read once more: this one was not taken in yet. */
static void an_older_echo_is_not_its(void **state)
{
    struct work w = turn_bed();
    (void)state;

    w.id = 1;
    jobsbed_run(w.b, do_claimed, &w);
    jobsbed_run(w.b, do_old_echo, &w);
    for (int i = 0; i < 2; i++) { /* what the first answer may have led to is done at the second */
        jobsbed_expect();
        jobsbed_run(w.b, do_state, &w);
        assert_true(jobsbed_wait(w.b, jobsbed_came, NULL, WAIT_MS));
        assert_int_equal(w.len, MSG_QUEUED);
    }
    jobsbed_free(w.b);
}

static void do_lost(void *ctx)
{
    struct work *w = ctx;

    session_wait_lost(session_of(&w->b->j, w->row));
}

/* Its log was emptied under it: nobody waits for an end that will not come. */
static void a_lost_turn_ends_the_wait(void **state)
{
    struct work w = turn_bed();
    const struct jobsbed_done *d;
    (void)state;

    send(&w, 5);
    say(&w, AGENT_USER_ECHO, NULL, "do it");
    jobsbed_run(w.b, do_lost, &w);
    d = jobsbed_answer(w.b, 5, WAIT_MS);
    assert_non_null(d);
    assert_int_equal(d->err.code, ERR_CONFLICT);
    assert_non_null(strstr(d->err.text, "emptied"));
    jobsbed_free(w.b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resumed_at_any_byte),
        cmocka_unit_test(two_readers),
        cmocka_unit_test(answer_of_the_turn_with_the_echo),
        cmocka_unit_test(a_command_without_an_echo),
        cmocka_unit_test(the_end_ends_the_wait),
        cmocka_unit_test(an_interrupt_is_of_its_turn),
        cmocka_unit_test(an_echo_finds_its_message),
        cmocka_unit_test(an_echo_of_what_another_claimed),
        cmocka_unit_test(an_older_echo_is_not_its),
        cmocka_unit_test(a_slow_begin_is_waited_for),
        cmocka_unit_test(what_may_be_over_is_not),
        cmocka_unit_test(a_lost_turn_ends_the_wait),
    };
    struct err e = {0};

    if (secrets_init(&e) != 0)
        return 1;
    cmocka_set_test_filter(getenv("CCT_ONLY"));
    return cmocka_run_group_tests_name("session_stream", tests, setup, teardown);
}
