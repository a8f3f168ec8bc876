/* Pairs: verdicts in what checkers say, whom a message is for, and the state machine, step by
 * step and with events in any order, twice, too late. */
#include <cct/model/pair.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* --- words ---------------------------------------------------------------------- */

static void test_verdicts(void **state)
{
    static const struct {
        const char *text;
        enum pair_verdict v;
    } cases[] = {
        {"VERDICT: PASS", PAIR_PASS},
        {"VERDICT: FAIL", PAIR_FAIL},
        {"all good\n\nVERDICT: PASS\n", PAIR_PASS},
        {"all good\r\nverdict: pass\r\n\r\n", PAIR_PASS},
        {"**VERDICT: FAIL**", PAIR_FAIL},
        {"**Verdict:** PASS.", PAIR_PASS},
        {"# VERDICT: `PASS`\n```\n---\n", PAIR_PASS},
        {"> VERDICT : FAIL!", PAIR_FAIL},
        {"VERDICT:PASS", PAIR_PASS},
        {"VERDICT: PASS\nbut look at b.c", PAIR_NO_VERDICT},
        {"VERDICT: PASS\nVERDICT: FAIL", PAIR_FAIL},
        {"VERDICT: FAIL\n\nlater:\nVERDICT: PASS", PAIR_PASS},
        {"VERDICT: PASS or FAIL", PAIR_NO_VERDICT},
        {"VERDICT: PASS|FAIL", PAIR_NO_VERDICT},
        {"VERDICT: PASSED", PAIR_NO_VERDICT},
        {"VERDICT PASS", PAIR_NO_VERDICT},
        {"the VERDICT: PASS", PAIR_NO_VERDICT},
        {"my VERDICT: it passes", PAIR_NO_VERDICT},
        {"VERDICT:", PAIR_NO_VERDICT},
        {"VERDICT", PAIR_NO_VERDICT},
        {"PASS", PAIR_NO_VERDICT},
        {"***\n\n---", PAIR_NO_VERDICT},
        {"", PAIR_NO_VERDICT},
        {NULL, PAIR_NO_VERDICT},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (pair_verdict(cases[i].text) != cases[i].v)
            fail_msg("\"%s\" is no %d", cases[i].text, (int)cases[i].v);
}

static void test_addressee(void **state)
{
    const char *body;
    (void)state;

    assert_int_equal(pair_addressee("@checker look again", &body), PAIR_CHECKER);
    assert_string_equal(body, "look again");
    assert_int_equal(pair_addressee(" @designer: add a test", &body), PAIR_DESIGNER);
    assert_string_equal(body, "add a test");
    assert_int_equal(pair_addressee("@checkers", &body), PAIR_DESIGNER);
    assert_string_equal(body, "@checkers");
    assert_int_equal(pair_addressee("no name", &body), PAIR_DESIGNER);
    assert_string_equal(body, "no name");
    assert_int_equal(pair_addressee("@checker", &body), PAIR_CHECKER);
    assert_string_equal(body, "");
}

/* --- one step after the other ------------------------------------------------------ */

static struct pair *new_pair(int rounds)
{
    struct pair *p = xcalloc(1, sizeof(*p));
    struct pair_event ev = {.kind = PAIR_BEGIN};
    struct pair_act act;

    for (int i = 0; i < PAIR_ROLES; i++) {
        p->side[i].tool = xstrdup(i ? "codex" : "claude");
        p->side[i].cost_usd = (double)NAN;
    }
    str_copy(p->uid, sizeof(p->uid), "abcd1234");
    p->rounds = rounds;
    p->task = xstrdup("TASK");
    assert_int_equal(pair_apply(p, &ev, &act, NULL), 0);
    assert_true(act.send && act.changed && p->waiting);
    return p;
}

static struct pair_act ends(struct pair *p, enum agent_outcome o, const char *text)
{
    struct pair_event ev = {.kind = PAIR_TURN_END, .turn = p->turn, .outcome = o, .text = text};
    struct pair_act act;

    assert_int_equal(pair_apply(p, &ev, &act, NULL), 0);
    return act;
}

static struct pair_act wish(struct pair *p, enum pair_event_kind k, int code)
{
    struct pair_event ev = {.kind = k};
    struct pair_act act;
    struct err e = {0};

    assert_int_equal(pair_apply(p, &ev, &act, &e), code);
    if (code)
        assert_true(e.text[0]);
    return act;
}

static void has(const struct pair *p, const char *words)
{
    char *text = pair_message(p);

    if (!strstr(text, words))
        fail_msg("\"%s\" is not in \"%s\"", words, text);
    free(text);
}

static void test_pass(void **state)
{
    struct pair *p = new_pair(3);
    char key[48];
    (void)state;

    has(p, "@designer You are the designer");
    has(p, "The task:\nTASK");
    pair_key(p, p->turn, key, sizeof(key));
    assert_string_equal(key, "pair_abcd1234_1");
    assert_int_equal(pair_turn_of(p, "pair_abcd1234_1_1700000000"), 1);
    assert_int_equal(pair_turn_of(p, "pair_abcd1235_1"), 0);
    assert_int_equal(pair_turn_of(p, "abcd"), 0);
    assert_true(ends(p, AGENT_OK, "REPORT1").send);
    assert_int_equal(p->role, PAIR_CHECKER);
    has(p, "@checker You are the checker");
    has(p, "REPORT1");
    has(p, "VERDICT: FAIL");
    p->side[PAIR_DESIGNER].session = xstrdup("s");
    assert_true(ends(p, AGENT_OK, "bad\nVERDICT: FAIL").send);
    assert_int_equal(p->round, 2);
    has(p, "@designer The checker did not pass the work.");
    has(p, "bad\nVERDICT: FAIL");
    assert_true(ends(p, AGENT_OK, "REPORT2").send);
    assert_false(ends(p, AGENT_OK, "VERDICT: PASS").send);
    assert_int_equal(p->state, PAIR_PASSED);
    assert_int_equal(p->side[0].turns, 2);
    assert_int_equal(p->side[1].turns, 2);
    pair_free(p);
}

static void test_no_verdict(void **state)
{
    struct pair *p = new_pair(1);
    (void)state;

    ends(p, AGENT_OK, "REPORT");
    p->side[PAIR_CHECKER].session = xstrdup("s");
    assert_true(ends(p, AGENT_OK, "the points").send); /* asked once more */
    assert_int_equal(p->role, PAIR_CHECKER);
    has(p, "had no verdict");
    assert_false(ends(p, AGENT_OK, "still none").send);
    assert_int_equal(p->state, PAIR_CAPPED);
    assert_string_equal(p->review, "the points");
    assert_true(wish(p, PAIR_RESUME, 0).send); /* as many rounds again */
    assert_int_equal(p->round, 2);
    assert_int_equal(p->rounds, 2);
    has(p, "the points");
    pair_free(p);
}

static void test_failures(void **state)
{
    struct pair *p = new_pair(2);
    struct pair_event lost = {.kind = PAIR_LOST, .outcome = AGENT_INTERRUPTED, .text = "why"};
    struct pair_act act;
    (void)state;

    assert_false(ends(p, AGENT_FAILED, "401 bad key").send);
    assert_int_equal(p->state, PAIR_FAILED);
    assert_string_equal(p->reason, "401 bad key");
    assert_true(wish(p, PAIR_RESUME, 0).send);
    has(p, "You are the designer"); /* it has no session to go on with */
    p->side[PAIR_DESIGNER].session = xstrdup("s");
    assert_false(ends(p, AGENT_INTERRUPTED, NULL).send);
    assert_int_equal(p->state, PAIR_STOPPED);
    assert_true(wish(p, PAIR_RESUME, 0).send);
    has(p, "broken off");
    lost.turn = p->turn;
    int turns = p->side[PAIR_DESIGNER].turns;
    assert_int_equal(pair_apply(p, &lost, &act, NULL), 0);
    assert_int_equal(p->side[PAIR_DESIGNER].turns, turns - 1); /* it never had that one */
    assert_int_equal(p->state, PAIR_STOPPED);
    assert_int_equal(act.end_turn, p->turn); /* not to be sent later */
    assert_string_equal(p->reason, "why");
    pair_free(p);
}

static void test_words_of_the_user(void **state)
{
    struct pair *p = new_pair(1);
    struct pair_act act;
    (void)state;

    wish(p, PAIR_RESUME, ERR_CONFLICT);
    wish(p, PAIR_REJECT, ERR_CONFLICT);
    act = wish(p, PAIR_STOP, 0);
    assert_int_equal(act.end_turn, 1);
    assert_true(p->waiting);
    wish(p, PAIR_STOP, ERR_CONFLICT);
    assert_false(wish(p, PAIR_RESUME, 0).send); /* its end is not here yet */
    assert_true(ends(p, AGENT_FAILED, "status 130").send);
    assert_int_equal(p->state, PAIR_RUNNING);
    assert_int_equal(p->turn, 2);
    /* a turn that comes to its end all the same */
    wish(p, PAIR_STOP, 0);
    assert_false(ends(p, AGENT_OK, "REPORT").send);
    assert_int_equal(p->state, PAIR_STOPPED);
    assert_int_equal(p->role, PAIR_CHECKER);
    wish(p, PAIR_RESUME, 0);
    act = wish(p, PAIR_REJECT, 0); /* while the checker is at it */
    assert_int_equal(act.end_turn, 3);
    assert_true(act.send);
    assert_int_equal(p->rounds, 2);
    has(p, "rejects");
    ends(p, AGENT_OK, "REPORT");
    act = wish(p, PAIR_ACCEPT, 0);
    assert_int_equal(act.end_turn, 5);
    assert_int_equal(p->state, PAIR_PASSED);
    assert_false(ends(p, AGENT_OK, "VERDICT: FAIL").changed);
    wish(p, PAIR_ACCEPT, ERR_CONFLICT);
    assert_true(wish(p, PAIR_REJECT, 0).send);
    assert_int_equal(p->round, 3);
    pair_free(p);
}

/* --- in any order ------------------------------------------------------------------ */

static unsigned seed;

static int dice(int n)
{
    seed = seed * 1103515245u + 12345u;
    return (int)((seed >> 16) % (unsigned)n);
}

static struct pair_event any_event(const struct pair *p)
{
    static const char *const texts[] = {"VERDICT: PASS", "VERDICT: FAIL", "no word of it", "",
                                        NULL};
    struct pair_event ev = {.kind = PAIR_TURN_END};

    ev.kind = dice(3) ? PAIR_TURN_END : (enum pair_event_kind)(1 + dice(PAIR_REJECT));
    ev.turn = p->turn - dice(3);
    ev.outcome = dice(2) ? AGENT_OK : (enum agent_outcome)dice(4);
    ev.text = texts[dice(5)];
    ev.rounds = dice(3);
    return ev;
}

static void check(const struct pair *before, const struct pair *p, const struct pair_event *ev,
                  const struct pair_act *act, int rc)
{
    bool about = ev->kind == PAIR_TURN_END || ev->kind == PAIR_LOST;

    assert_in_range(p->round, 1, p->rounds);
    assert_in_range(p->rounds, 1, PAIR_MAX_ROUNDS);
    assert_int_equal(p->turn, before->turn + (act->send ? 1 : 0));
    if (act->send)
        assert_true(p->waiting && p->state == PAIR_RUNNING && act->changed);
    if (p->state == PAIR_RUNNING)
        assert_true(p->waiting);
    if (act->send && before->waiting) /* never two at once: the one before ends or is ended */
        assert_true((about && ev->turn == before->turn) || act->end_turn == before->turn);
    if (rc || (about && (ev->turn != before->turn || !before->waiting))) {
        assert_false(act->changed);
        assert_true(pair_same(before, p));
        assert_true(before->waiting == p->waiting && before->asked == p->asked &&
                    before->cut == p->cut && before->turn == p->turn);
    }
    if (p->state == PAIR_PASSED && before->state != PAIR_PASSED)
        assert_true(ev->kind == PAIR_ACCEPT ||
                    (before->role == PAIR_CHECKER && pair_verdict(ev->text) == PAIR_PASS));
    if (p->state == PAIR_FAILED || p->state == PAIR_CAPPED || p->state == PAIR_STOPPED)
        assert_true(!before->waiting || p->reason || ev->kind == PAIR_LOST);
}

static void test_any_order(void **state)
{
    (void)state;
    for (unsigned run = 0; run < 400; run++) {
        struct pair *p;

        seed = run;
        p = new_pair(1 + dice(4));
        for (int i = 0; i < 60; i++) {
            struct pair *before = pair_dup(p, true);
            struct pair_event ev = any_event(p);
            struct pair_act act;
            struct err e = {0};
            int rc = pair_apply(p, &ev, &act, &e);

            if (dice(4) == 0 && !p->side[p->role].session)
                p->side[p->role].session = xstrdup("s");
            check(before, p, &ev, &act, rc);
            if (act.send)
                free(pair_message(p));
            pair_free(before);
        }
        /* left alone it comes to an end */
        for (int left = 3 * PAIR_MAX_ROUNDS + 3; p->state == PAIR_RUNNING; left--) {
            ends(p, AGENT_OK, "VERDICT: FAIL");
            assert_true(left > 0);
        }
        pair_free(p);
    }
}

static void test_doing(void **state)
{
    struct pair *p = new_pair(5);
    char text[32];
    (void)state;

    pair_doing(p, text, sizeof(text));
    assert_string_equal(text, "designer 1/5");
    ends(p, AGENT_OK, "");
    pair_doing(p, text, sizeof(text));
    assert_string_equal(text, "checker 1/5");
    has(p, "nothing was said");
    ends(p, AGENT_OK, "VERDICT: PASS");
    pair_doing(p, text, sizeof(text));
    assert_string_equal(text, "passed 1/5");
    pair_free(p);
}

/* A long report is handed on by its end, cut between characters. */
static void test_long_words(void **state)
{
    struct pair *p = new_pair(5);
    char *text = xmalloc(60001), *said;
    (void)state;

    for (int i = 0; i < 60000; i += 2)
        memcpy(text + i, "\xC3\xA9", 2);
    text[60000] = 0;
    memcpy(text + 59996, "END.", 4);
    text[100] = 'x'; /* an odd border */
    ends(p, AGENT_OK, text);
    said = pair_message(p);
    assert_non_null(strstr(said, "END."));
    assert_non_null(strstr(said, "left out"));
    assert_true(strlen(said) < 32000);
    free(said);
    free(text);
    pair_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdicts),   cmocka_unit_test(test_addressee),
        cmocka_unit_test(test_pass),       cmocka_unit_test(test_no_verdict),
        cmocka_unit_test(test_failures),   cmocka_unit_test(test_words_of_the_user),
        cmocka_unit_test(test_any_order),  cmocka_unit_test(test_doing),
        cmocka_unit_test(test_long_words),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
