/* The state machine of a pair. Every step is decided from what is stored and one event, so
 * that whoever comes first, in whatever process, takes it, and taking it twice is nothing. */
#include <cct/model/pair.h>

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>

#define REJECTED "The user looked at the work and rejects it."

/* The role at hand is given its turn. */
static void next_turn(struct pair *p, struct pair_act *act)
{
    p->turn++;
    p->side[p->role].turns++;
    p->waiting = true;
    p->ending = false;
    act->send = true;
}

static void give(struct pair *p, enum pair_role role)
{
    p->role = role;
    p->asked = p->cut = false;
}

static void settle(struct pair *p, enum pair_state st, const char *reason)
{
    p->state = st;
    str_set(&p->reason, reason);
}

/* --- the end of a turn ---------------------------------------------------------- */

static void not_passed(struct pair *p)
{
    give(p, PAIR_DESIGNER);
    if (p->round >= p->rounds) {
        settle(p, PAIR_CAPPED, "the checker did not pass the work of the last round");
        return;
    }
    p->round++;
}

static void judged(struct pair *p, const char *text)
{
    enum pair_verdict v = pair_verdict(text);

    if (v == PAIR_PASS) {
        str_set(&p->review, text);
        settle(p, PAIR_PASSED, NULL);
    } else if (v == PAIR_NO_VERDICT && !p->asked) {
        str_set(&p->review, text);
        p->asked = true;
        p->cut = false;
    } else {
        /* asked again it says the verdict alone: the points are in its first answer */
        if (!p->asked || !p->review)
            str_set(&p->review, text);
        not_passed(p);
    }
}

static void answered(struct pair *p, const char *text)
{
    if (p->role == PAIR_CHECKER) {
        judged(p, text);
        return;
    }
    str_set(&p->report, text);
    str_set(&p->review, NULL);
    give(p, PAIR_CHECKER);
}

static void turn_ended(struct pair *p, const struct pair_event *ev, struct pair_act *act)
{
    bool runs = p->state == PAIR_RUNNING, meant = p->ending;

    act->changed = true;
    p->waiting = p->ending = false;
    if (ev->outcome == AGENT_OK || ev->outcome == AGENT_TRUNCATED) {
        answered(p, ev->text);
    } else {
        p->cut = true;
        /* a program that we interrupt may end in any way; resumed meanwhile it goes on */
        if (runs && !meant && ev->outcome == AGENT_INTERRUPTED)
            settle(p, PAIR_STOPPED, "the turn was interrupted");
        else if (runs && !meant)
            settle(p, PAIR_FAILED, ev->text && *ev->text ? ev->text : "the turn failed");
    }
    if (runs && p->state == PAIR_RUNNING)
        next_turn(p, act);
}

static void lost(struct pair *p, const struct pair_event *ev, struct pair_act *act)
{
    act->changed = true;
    act->end_turn = p->turn; /* it must not become a turn later, beside the next one */
    p->waiting = p->ending = false;
    p->side[p->role].turns--;
    if (p->state == PAIR_RUNNING)
        settle(p, ev->outcome == AGENT_INTERRUPTED ? PAIR_STOPPED : PAIR_FAILED, ev->text);
}

/* --- the user's word ------------------------------------------------------------- */

static int refuse(struct err *e, const struct pair *p, const char *what)
{
    return err_set(e, ERR_CONFLICT, "%s: the pair is %s in round %d of %d", what,
                   pair_state_name(p->state), p->round, p->rounds);
}

static int stop(struct pair *p, struct pair_act *act, struct err *e)
{
    if (p->state != PAIR_RUNNING)
        return refuse(e, p, "there is nothing to stop");
    settle(p, PAIR_STOPPED, "stopped by you");
    act->changed = true;
    act->end_turn = p->waiting ? p->turn : 0;
    p->ending = p->waiting;
    return 0;
}

static int resume(struct pair *p, const struct pair_event *ev, struct pair_act *act,
                  struct err *e)
{
    int more = ev->rounds > 0 ? ev->rounds : p->state == PAIR_CAPPED ? p->rounds : 0;

    if (p->state == PAIR_RUNNING)
        return refuse(e, p, "there is nothing to resume");
    if (p->state == PAIR_PASSED)
        return refuse(e, p, "there is nothing to resume, reject the work to go on");
    p->rounds = p->rounds + more < PAIR_MAX_ROUNDS ? p->rounds + more : PAIR_MAX_ROUNDS;
    if (p->state == PAIR_CAPPED) {
        if (p->round >= p->rounds)
            return refuse(e, p, "there are no rounds left");
        p->round++;
    }
    settle(p, PAIR_RUNNING, NULL);
    act->changed = true;
    if (!p->waiting)
        next_turn(p, act);
    return 0;
}

static int accept(struct pair *p, struct pair_act *act, struct err *e)
{
    if (p->state == PAIR_PASSED)
        return refuse(e, p, "there is nothing to accept");
    settle(p, PAIR_PASSED, "accepted by you");
    act->changed = true;
    act->end_turn = p->waiting ? p->turn : 0;
    p->waiting = p->ending = p->asked = p->cut = false;
    return 0;
}

static int reject(struct pair *p, const struct pair_event *ev, struct pair_act *act,
                  struct err *e)
{
    if (!p->report || (p->state == PAIR_RUNNING && p->role == PAIR_DESIGNER))
        return refuse(e, p, "the designer has not finished, there is nothing to reject");
    if (p->round >= PAIR_MAX_ROUNDS)
        return refuse(e, p, "there are no rounds left");
    act->end_turn = p->waiting ? p->turn : 0;
    str_set(&p->review, ev->text && *ev->text ? ev->text : REJECTED);
    give(p, PAIR_DESIGNER);
    p->round++;
    if (p->rounds < p->round)
        p->rounds = p->round;
    settle(p, PAIR_RUNNING, NULL);
    act->changed = true;
    next_turn(p, act);
    return 0;
}

int pair_apply(struct pair *p, const struct pair_event *ev, struct pair_act *act, struct err *e)
{
    *act = (struct pair_act){0};
    switch (ev->kind) {
    case PAIR_BEGIN:
        p->state = PAIR_RUNNING;
        p->round = 1;
        give(p, PAIR_DESIGNER);
        act->changed = true;
        next_turn(p, act);
        return 0;
    case PAIR_TURN_END:
        if (p->waiting && ev->turn == p->turn)
            turn_ended(p, ev, act);
        return 0;
    case PAIR_LOST:
        if (p->waiting && ev->turn == p->turn)
            lost(p, ev, act);
        return 0;
    case PAIR_STOP:
        return stop(p, act, e);
    case PAIR_RESUME:
        return resume(p, ev, act, e);
    case PAIR_ACCEPT:
        return accept(p, act, e);
    case PAIR_REJECT:
        return reject(p, ev, act, e);
    }
    return err_set(e, ERR_BUG, "no such step of a pair");
}
