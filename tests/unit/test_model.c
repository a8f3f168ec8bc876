/* model: what agents' events become, rows and messages applied, prices. */
#include <cct/model/model.h>
#include <cct/model/tbuild.h>
#include <cct/model/transcribe.h>
#include <cct/text/clean.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* keep last */
#include <cmocka.h>

#define LIT(s) ((char *)(s)) /* borrowed: never freed through these */

static struct model *m;

static int new_model(void **state)
{
    (void)state;
    m = model_new();
    return 0;
}

static int drop_model(void **state)
{
    (void)state;
    model_free(m);
    return 0;
}

#define EVENT(k, off, ...) \
    ((struct agent_event){.kind = (k), .offset = (off), .exit_code = -1, __VA_ARGS__})

static void send(const struct agent_event *v, size_t n)
{
    struct ev_items *ev = ev_new(EV_ITEMS);
    ev->sandbox = 1;
    for (size_t i = 0; i < n; i++)
        transcribe(&v[i], "claude", ev);
    model_apply(m, &ev->m);
    msg_free(&ev->m);
}
#define SEND(v) send(v, sizeof(v) / sizeof((v)[0]))

/* --- transcribe -------------------------------------------------------------------------- */

static void test_cleaned(void **state)
{
    (void)state;
    static const struct agent_event evil[] = {
        EVENT(AGENT_TEXT, 1, .id = LIT("b"),
              .text = LIT("a\033]52;c;x\007b\033[31mc\033[0m\nd"), .mode = AGENT_REPLACE,
              .final = true),
        EVENT(AGENT_TOOL, 2, .id = LIT("t"), .name = LIT("B\033[2Jx"), .title = LIT("a\nb"),
              .input = LIT("{\"a\":\"\033[H\"}"),
              .output = LIT("\xC2\x9B"
                            "31mz"),
              .state = AGENT_TOOL_OK),
    };
    SEND(evil);
    const struct transcript *t = model_transcript(m, 1);
    assert_string_equal(t->v[0].text, "abc\nd");
    assert_true(t->v[0].n_runs > 0 && t->v[0].runs[0].at == 2);
    assert_null(strchr(t->v[1].who, '\033'));
    assert_string_equal(t->v[1].title, "a b");
    assert_string_equal(t->v[1].text, "z");
    assert_null(strchr(t->v[1].input, '\033'));
}

static void check_line(const struct agent_event *e, const char *want)
{
    char *s = transcribe_last_line(e);
    if (want)
        assert_string_equal(s, want);
    else
        assert_null(s);
    free(s);
}

static void test_agent_state(void **state)
{
    (void)state;
    static const struct {
        struct agent_event e;
        enum sb_agent want;
    } steps[] = {
        {EVENT(AGENT_SESSION, 0), AG_STARTING},
        {EVENT(AGENT_TURN_BEGIN, 1), AG_WORKING},
        {EVENT(AGENT_ASK, 2), AG_ASKS},
        {EVENT(AGENT_TEXT, 3), AG_WORKING},
        {EVENT(AGENT_USAGE, 3), AG_WORKING},
        {EVENT(AGENT_TURN_END, 4, .outcome = AGENT_FAILED), AG_IDLE},
        {EVENT(AGENT_TEXT, 4), AG_IDLE}, /* a late line of the turn that ended */
        {EVENT(AGENT_USER_ECHO, 5), AG_WORKING},
        {EVENT(AGENT_EXIT, 6), AG_FAILED}, /* status not known */
    };
    enum sb_agent a = AG_STARTING;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        enum sb_agent before = a;
        assert_int_equal(transcribe_agent_state(&steps[i].e, &a), before != steps[i].want);
        assert_int_equal(a, steps[i].want);
    }
    struct agent_event e = EVENT(AGENT_EXIT, 7);
    e.exit_code = 0;
    assert_true(transcribe_agent_state(&e, &a) && a == AG_EXITED);
    e.signal = 9;
    assert_true(transcribe_agent_state(&e, &a) && a == AG_FAILED);
}

static void test_last_line(void **state)
{
    (void)state;
    struct agent_event e =
        EVENT(AGENT_TEXT, 1, .text = LIT("one\n  two \033[1m \n \n"), .mode = AGENT_REPLACE);
    check_line(&e, "  two");
    e.mode = AGENT_APPEND; /* a piece is no line */
    check_line(&e, NULL);
    e = EVENT(AGENT_RAW, 1, .text = LIT("\n \n"));
    check_line(&e, NULL);
    e = EVENT(AGENT_TOOL, 1, .title = LIT("make\ttest"));
    check_line(&e, "make test");
    e.output = LIT("a\nlast");
    check_line(&e, "last");
    e = EVENT(AGENT_ASK, 1, .name = LIT("Bash"));
    check_line(&e, "use Bash?");
    e = EVENT(AGENT_TURN_END, 1, .text = LIT("answer"), .outcome = AGENT_OK);
    check_line(&e, NULL);
    e = EVENT(AGENT_USAGE, 1);
    check_line(&e, NULL);
}

/* --- the model -----------------------------------------------------------------------------
 */

static void send_rows(const uint64_t *ids, size_t n, bool full, enum sb_state st)
{
    struct ev_sandboxes *ev = ev_new(EV_SANDBOXES);
    ev->v = xcalloc(n + 1, sizeof(*ev->v));
    for (ev->n = 0; ev->n < n; ev->n++) {
        struct sandbox *s = &ev->v[ev->n];
        s->id = ids[ev->n];
        s->name = xasprintf("n%d", (int)s->id);
        s->state = st;
        s->agent = s->id % 2 ? AG_IDLE : AG_ASKS;
        s->usd_per_s = 0.0001;
    }
    ev->full = full;
    model_apply(m, &ev->m);
    msg_free(&ev->m);
}

static void test_rows(void **state)
{
    (void)state;
    static const struct agent_event said[] = {
        EVENT(AGENT_TEXT, 10, .id = LIT("b"), .text = LIT("hello."), .mode = AGENT_REPLACE,
              .final = true)};
    size_t by[SB_STATE_COUNT], asks, working, idle;
    send_rows((uint64_t[]){1, 2, 3}, 3, true, SB_RUNNING);
    SEND(said);
    assert_int_equal(m->n_sandboxes, 3);
    assert_non_null(model_transcript(m, 1));
    uint64_t rev = m->rev, row_rev = model_sandbox(m, 2)->rev;
    send_rows((uint64_t[]){2, 7}, 2, false, SB_PAUSED);
    assert_int_equal(m->n_sandboxes, 4);
    assert_true(m->rev > rev && model_sandbox(m, 2)->rev > row_rev);
    assert_int_equal(model_sandbox(m, 2)->state, SB_PAUSED);
    model_counts(m, by, &asks, &working, &idle);
    assert_true(by[SB_RUNNING] == 2 && by[SB_PAUSED] == 2);
    assert_true(asks == 0 && idle == 2 && working == 0);
    send_rows((uint64_t[]){3, 7}, 2, true, SB_RUNNING); /* the others were forgotten */
    assert_int_equal(m->n_sandboxes, 2);
    assert_null(model_sandbox(m, 1));
    assert_null(model_transcript(m, 1));
    assert_string_equal(model_sandbox(m, 7)->name, "n7");
    send_rows(NULL, 0, true, SB_RUNNING);
    assert_int_equal(m->n_sandboxes, 0);
}

static void test_messages(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++)
        for (uint64_t id = 1; id <= 2100; id++) {
            struct ev_message *ev = ev_new(EV_MESSAGE);
            ev->msg.id = id;
            ev->msg.text = xstrdup("x");
            ev->msg.state = round ? MSG_SENT : MSG_QUEUED;
            if (round == 0 || id > 100) {
                model_apply(m, &ev->m);
            }
            msg_free(&ev->m);
        }
    assert_int_equal(m->n_messages, 2000);
    assert_int_equal(m->messages[0].id, 101);
    assert_int_equal(m->messages[0].state, MSG_SENT);
    assert_int_equal(model_message(m, 1500)->id, 1500);
    assert_null(model_message(m, 100));
    for (int i = 0; i < 600; i++) {
        struct ev_event *ev = ev_new(EV_EVENT);
        ev->text = xasprintf("%d", i);
        model_apply(m, &ev->m);
        msg_free(&ev->m);
    }
    assert_int_equal(m->n_events, 500);
    assert_string_equal(m->events[499].text, "599");
}

static void test_price(void **state)
{
    (void)state;
    struct sandbox s = {.state = SB_RUNNING, .usd_per_s = 0.0001};
    double usd = 0.36;
    size_t unpriced;
    assert_true(sandbox_usd_per_hour(&s) > usd - 1e-9 && sandbox_usd_per_hour(&s) < usd + 1e-9);
    s.state = SB_PAUSED;
    assert_true(sandbox_usd_per_hour(&s) == 0);
    s.state = SB_ERROR;
    assert_true(sandbox_usd_per_hour(&s) == 0);
    s.vm_up = true;
    assert_true(sandbox_usd_per_hour(&s) > 0);
    send_rows((uint64_t[]){1, 2}, 2, true, SB_RUNNING);
    assert_true(model_usd_per_hour(m, &unpriced) > 2 * usd - 1e-9);
    assert_int_equal(unpriced, 0);
    s.usd_per_s = (double)NAN;
    assert_true(sandbox_usd_per_hour(&s) == 0 && sandbox_is_unpriced(&s));
    s.vm_up = false; /* what costs nothing needs no price */
    assert_false(sandbox_is_unpriced(&s));
    s.state = SB_PAUSED;
    assert_false(sandbox_is_unpriced(&s));
    s.state = SB_RUNNING;
    assert_true(sandbox_is_unpriced(&s));
}

/* A build that ended here before the service began it waits there for ever. */
static void test_build_words(void **state)
{
    (void)state;
    assert_string_equal(tb_state_word("error", "waiting"), "error");
    assert_string_equal(tb_state_word("cancelled", "waiting"), "cancelled");
    assert_string_equal(tb_state_word("cancelled", "building"), "building");
    assert_string_equal(tb_state_word("error", "ready"), "ready");
    assert_string_equal(tb_state_word("uploading", "waiting"), "waiting");
    assert_string_equal(tb_state_word("nonsense", "waiting"), "waiting");
    assert_string_equal(tb_state_word(NULL, "waiting"), "waiting");
    assert_string_equal(tb_state_word("preparing", NULL), "preparing");
    assert_null(tb_state_word(NULL, NULL));
    assert_string_equal(tbuild_output("[builder 3/10] [stdout]: a: b"), "a: b");
    assert_string_equal(tbuild_output("[builder 3/10] RUN x"), "[builder 3/10] RUN x");
    assert_string_equal(tbuild_output("[a] [std of a long kind]: b"), "[a] [std of a long kind]: b");
    assert_string_equal(tbuild_output(""), "");
}

int main(void)
{
    thread_set_role(THREAD_MAIN);
#define M(f) cmocka_unit_test_setup_teardown(f, new_model, drop_model)
    const struct CMUnitTest tests[] = {
        M(test_cleaned), M(test_agent_state), M(test_last_line), M(test_rows), M(test_messages),
        M(test_price), cmocka_unit_test(test_build_words),
    };
    return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
