/* Designer and checker in one session: the message of a turn runs its role's CLI, the end of
 * the turn makes the next step. What is decided from is in the store and in the agent's log,
 * so that whoever comes first, in whatever process, takes the step, and nobody takes it twice:
 * a step and its message are stored together, on top of the very state it was decided from. */
#include "session_out.h"
#include "session_pair.h"
#include "session_priv.h"
#include "session_show.h"

#include <cct/text/clean.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_MS 1000  /* others may change it, and its messages */
#define REST_MS 4000  /* the same, while it does not run */
#define TRY_MS 250    /* between looks whether the turn can be interrupted */
#define TRIES 40
#define SURE 6        /* looks until a message that is on its way would be known of */
#define AGAIN 14      /* looks until a turn that was interrupted is interrupted again */
#define ANSWER_BYTES (256u << 10)
#define REASON_BYTES 600

static void look(void *ctx);

void session_pair_init(struct session *s)
{
    if (!str_eq(s->ad->name, "pair"))
        return;
    s->pair = xcalloc(1, sizeof(*s->pair));
    s->pair->answer.max = ANSWER_BYTES;
    session_pair_unsum(s);
    look(s);
}

static void wish_release(struct pair_wish *w)
{
    free(w->text);
    pair_free(w->fresh);
}

void session_pair_release(struct session *s)
{
    struct session_pair *sp = s->pair;
    struct err e = {0};

    if (!sp)
        return;
    session_cancel_timer(s, &sp->timer);
    err_set(&e, ERR_CANCELLED, "the pair was not told: its session ends");
    jobs_done(s->j, sp->int_req, &e, s->row);
    for (size_t i = 0; i < sp->wishes.n; i++) {
        jobs_done(s->j, sp->wishes.v[i].req_id, &e, s->row);
        wish_release(&sp->wishes.v[i]);
    }
    ARR_RELEASE(&sp->wishes);
    for (int i = 0; i < PAIR_ROLES; i++)
        free(sp->sums[i].session);
    pair_free(sp->p);
    free(sp->message);
    free(sp->session);
    free(sp->answer_id);
    free(sp->model);
    buf_release(&sp->answer);
    free(sp->end.message);
    free(sp->end.session);
    free(sp->end.text);
    free(sp);
    s->pair = NULL;
}

bool session_pair_ready(const struct session *s)
{
    return !s->pair || (s->pair->loaded && s->pair->p);
}

/* --- what it comes to ------------------------------------------------------------ */

void session_pair_unsum(struct session *s)
{
    for (int i = 0; s->pair && i < PAIR_ROLES; i++) {
        s->pair->sums[i].tokens_in = s->pair->sums[i].tokens_out = 0;
        s->pair->sums[i].cost_usd = (double)NAN;
    }
}

/* Sums of the whole log are known once it was read; until then the stored ones hold. */
static void take_sums(const struct session *s, struct pair *p)
{
    for (int i = 0; i < PAIR_ROLES; i++) {
        const struct pair_side *sum = &s->pair->sums[i];
        struct pair_side *side = &p->side[i];

        if (sum->session && !str_eq(sum->session, side->session))
            str_set(&side->session, sum->session);
        if (!s->out.summed)
            continue;
        side->tokens_in = sum->tokens_in;
        side->tokens_out = sum->tokens_out;
        side->cost_usd = sum->cost_usd;
    }
}

static void show(struct session *s)
{
    struct sandbox *r = session_row(s);
    struct pair *p;

    if (!r || !s->pair->p)
        return;
    p = pair_dup(s->pair->p, false);
    take_sums(s, p);
    if (pair_same(p, r->pair)) {
        pair_free(p);
        return;
    }
    pair_free(r->pair);
    r->pair = p;
    jobs_row_changed(s->j, r);
}

static void add_cost(struct pair_side *sum, int64_t in, int64_t out, double cost)
{
    sum->tokens_in += in;
    sum->tokens_out += out;
    if (!isnan(cost))
        sum->cost_usd = (isnan(sum->cost_usd) ? 0 : sum->cost_usd) + cost;
}

void session_pair_usage(struct session *s, const struct agent_event *ev, const struct usage *g)
{
    int64_t in = g->in_tokens + g->cache_read + g->cache_write;
    int role = pair_role_parse(ev->role);
    struct pair_side *sum = s->pair && role >= 0 ? &s->pair->sums[role] : NULL;

    if (!sum)
        return;
    add_cost(sum, in, g->out_tokens, g->cost_usd);
    if (!s->out.summed || s->out.opening)
        return; /* stored ones: those of the turn at hand come when it is read once more */
    add_cost(&s->pair->now, in, g->out_tokens, g->cost_usd);
    show(s);
}

/* As its CLI says it, else as it was started. */
const char *session_pair_model(const struct session *s, const char *role)
{
    const struct session_pair *sp = s->pair;
    int r = pair_role_parse(role);
    const struct pair_side *side = sp->p && r >= 0 ? &sp->p->side[r] : NULL;
    const struct tool *t = side ? tools_find(s->j->o.tools, side->tool) : NULL;

    return sp->model ? sp->model : side && side->model ? side->model : t ? t->model : NULL;
}

/* What a turn came to, as a line of the transcript behind its end. */
void session_pair_cost(struct session *s, const struct agent_event *end)
{
    const struct pair_side *now = s->pair ? &s->pair->now : NULL;
    struct agent_event ev = AGENT_EVENT(AGENT_NOTICE);
    char cost[40] = "unpriced";

    if (!now || !end->role || end->kind != AGENT_TURN_END)
        return;
    if (!isnan(now->cost_usd))
        snprintf(cost, sizeof(cost), "$%.4f est.", now->cost_usd);
    ev.text = xasprintf("this turn of the %s: %lld tokens in, %lld out, %s", end->role,
                        (long long)now->tokens_in, (long long)now->tokens_out, cost);
    ev.offset = end->offset;
    ev.index = SESSION_COST_INDEX;
    ev.raw_line = end->raw_line;
    ev.time_ms = end->time_ms;
    ev.role = end->role;
    session_out_note(s, &ev);
    free(ev.text);
}

/* --- the turn at hand ------------------------------------------------------------ */

static void begin(struct session_pair *sp, const struct agent_event *ev)
{
    str_set(&sp->message, ev->id);
    str_set(&sp->session, NULL);
    str_set(&sp->answer_id, NULL);
    str_set(&sp->model, NULL);
    buf_clear(&sp->answer);
    sp->now = (struct pair_side){.cost_usd = (double)NAN};
}

/* The last block of text is the answer; a subagent's words are not. */
static void collect(struct session_pair *sp, const struct agent_event *ev)
{
    if (ev->parent || !ev->text)
        return;
    if (ev->mode == AGENT_REPLACE || !str_eq(ev->id, sp->answer_id)) {
        buf_clear(&sp->answer);
        str_set(&sp->answer_id, ev->id);
    }
    buf_add(&sp->answer, ev->text,
            strlen(ev->text) < ANSWER_BYTES - sp->answer.len ? strlen(ev->text)
                                                             : ANSWER_BYTES - sp->answer.len);
}

/* Why a turn failed, whose it was, and what to do about it. */
static char *failure(struct session *s, const struct agent_event *ev)
{
    int role = pair_role_parse(ev->role);
    const char *tool = role >= 0 && s->pair->p ? s->pair->p->side[role].tool : NULL;
    const char *hint = ev->error_class == AGENT_ERR_AUTH
                           ? "; check the provider's key: it is missing, expired or of another "
                             "account ('cc-tui keys ls')"
                       : ev->error_class == AGENT_ERR_MODEL ? "; choose a model that it has"
                                                            : "";
    char *why = clean_line_dup(ev->text && *ev->text ? ev->text : "it failed without a word", 0);
    char *text = xasprintf("the %s%s%s%s: %.*s%s", ev->role ? ev->role : "turn",
                           tool ? " (" : "", tool ? tool : "", tool ? ")" : "", REASON_BYTES, why,
                           hint);

    free(why);
    return text;
}

static void end(struct session *s, const struct agent_event *ev)
{
    struct session_pair *sp = s->pair;
    int role = pair_role_parse(ev->role);
    bool well = ev->outcome == AGENT_OK || ev->outcome == AGENT_TRUNCATED;

    /* a turn of the pair's waits for the store, this one is of the user's own message */
    if (sp->busy && pair_is_key(sp->end.message) && !pair_is_key(ev->id))
        return;
    str_set(&sp->end.message, ev->id);
    sp->end.outcome = ev->outcome;
    free(sp->end.text);
    sp->end.text = well ? clean_text_dup(buf_str(&sp->answer), sp->answer.len) : failure(s, ev);
    /* a session that failed in its first turn may not be there to go on with */
    str_set(&sp->end.session, role >= 0 && ev->outcome != AGENT_FAILED ? sp->session : NULL);
    sp->end.role = role;
    sp->end.stored = s->out.feeding_again;
    session_pair_go(s);
}

void session_pair_event(struct session *s, const struct agent_event *ev)
{
    struct session_pair *sp = s->pair;

    if (!sp)
        return;
    switch (ev->kind) {
    case AGENT_TURN_BEGIN:
        begin(sp, ev);
        if (sp->int_turn)
            session_timer(s, &sp->timer, 0, look);
        break;
    case AGENT_SESSION:
        if (ev->id)
            str_set(&sp->session, ev->id);
        if (ev->name)
            str_set(&sp->model, ev->name);
        break;
    case AGENT_TEXT:
        collect(sp, ev);
        break;
    case AGENT_USAGE: /* of the begin of this turn; what comes now is counted as it comes */
        if (s->out.feeding_again && ev->scope != AGENT_SCOPE_SESSION_TOTAL)
            add_cost(&sp->now, ev->in_tokens + ev->cache_read + ev->cache_write, ev->out_tokens,
                     ev->cost_usd);
        break;
    case AGENT_TURN_END:
        end(s, ev);
        break;
    default:
        break;
    }
}

/* --- interrupting ---------------------------------------------------------------- */

static void interrupted(struct session *s, const struct err *e)
{
    uint64_t req = s->pair->int_req;

    s->pair->int_req = 0;
    s->pair->int_turn = 0;
    jobs_done(s->j, req, e, s->row);
}

/* A turn that is to end: interrupted when it has begun and there is a way to it, and again
 * after a while. The user is answered when its end was seen, and stored. */
static void try_interrupt(struct session *s)
{
    struct session_pair *sp = s->pair;
    bool works = s->out.agent == AG_WORKING || s->out.agent == AG_ASKS;
    struct err e = {0};

    if (!sp->int_turn || sp->busy)
        return;
    if (sp->p && pair_turn_of(sp->p, sp->end.message) == sp->int_turn) {
        interrupted(s, NULL);
    } else if (s->out.caught_up && !works && s->re.step == RE_IDLE && sp->int_tries > SURE) {
        interrupted(s, NULL); /* it never began, or another one saw its end */
    } else if (sp->int_tries++ > TRIES) {
        err_set(&e, ERR_TIMEOUT, "no further turn begins, but this one did not end in %d s; "
                                 "'cc-tui interrupt' tries it again", TRIES * TRY_MS / 1000);
        interrupted(s, &e);
    } else if (s->out.caught_up && works && !s->re.interrupting && sp->int_tries >= sp->int_next) {
        sp->int_next = sp->int_tries + AGAIN;
        session_interrupt(s, 0);
    } else {
        session_follow(s);
    }
}

/* --- steps ----------------------------------------------------------------------- */

static void wish_done(struct session *s, const struct err *e)
{
    struct session_pair *sp = s->pair;
    struct pair_wish w = sp->wishes.v[0];

    ARR_REMOVE(&sp->wishes, 0);
    wish_release(&w);
    jobs_done(s->j, w.req_id, e, s->row);
}

static void say_state(struct session *s, const struct pair *before)
{
    const struct pair *p = s->pair->p;
    const struct sandbox *r = session_row(s);
    const char *name = r && r->name ? r->name : "the pair";

    if (before && before->state == p->state && before->round == p->round)
        return;
    if (p->state != PAIR_RUNNING)
        jobs_say(s->j, p->state == PAIR_FAILED ? AGENT_ERROR : AGENT_INFO, s->row,
                 "%s: the pair is %s in round %d of %d%s%s", name, pair_state_name(p->state),
                 p->round, p->rounds, p->reason ? ": " : "", p->reason ? p->reason : "");
    else if (before && before->round != p->round)
        jobs_say(s->j, AGENT_INFO, s->row, "%s: round %d of %d begins", name, p->round,
                 p->rounds);
}

static void took(struct session *s, const struct st_reply *r)
{
    struct session_pair *sp = s->pair;
    struct err later = {0};

    err_set(&later, ERR_CONFLICT, "a later word to the pair took the place of this one");
    if (r->msg.id)
        session_show_message(s, &r->msg);
    if (sp->wished && sp->act.end_turn && !r->called_off) {
        if (sp->int_req)
            interrupted(s, &later); /* its turn is this one, or over */
        sp->int_req = sp->wishes.v[0].req_id;
        sp->int_turn = sp->act.end_turn;
        sp->int_tries = sp->int_next = 0;
        sp->wishes.v[0].req_id = 0; /* answered when it is interrupted */
    }
    if (sp->wished)
        wish_done(s, NULL);
    session_relay(s);
}

static void on_put(void *ctx, struct st_reply *r)
{
    struct session *s = ctx;
    struct session_pair *sp = s->pair;
    struct pair *before = sp->p;

    sp->busy = false;
    if (r->err.code) {
        if (sp->wished)
            wish_done(s, &r->err);
        else
            session_say(s, AGENT_ERROR, "the pair's next step cannot be stored: %s; it is tried "
                        "again", r->err.text);
        session_timer(s, &sp->timer, REST_MS, look);
        return;
    }
    sp->p = r->pair;
    r->pair = NULL;
    if (r->got) {
        say_state(s, before);
        took(s, r);
    }
    pair_free(before);
    show(s);
    session_pair_go(s); /* not got: another instance was faster; from where it stands now */
}

/* Its agents begin anew; what was used before stays in the figures. */
static struct pair *again(struct session *s, const struct pair *fresh)
{
    struct session_pair *sp = s->pair;
    struct pair *p = pair_dup(fresh, true);

    p->sandbox = s->row;
    p->rev = sp->p->rev;
    rand_id(p->uid, 8);
    for (int i = 0; i < PAIR_ROLES; i++) {
        p->side[i].turns = sp->p->side[i].turns;
        p->side[i].cost_usd = sp->p->side[i].cost_usd;
        p->side[i].tokens_in = sp->p->side[i].tokens_in;
        p->side[i].tokens_out = sp->p->side[i].tokens_out;
    }
    return p;
}

static void forget_sessions(struct session_pair *sp)
{
    for (int i = 0; i < PAIR_ROLES; i++)
        str_set(&sp->sums[i].session, NULL);
    str_set(&sp->session, NULL);
}

/* False: the event changes nothing. */
static bool step(struct session *s, const struct pair_event *ev, bool wished)
{
    struct session_pair *sp = s->pair;
    bool begins = ev->kind == PAIR_BEGIN;
    struct pair *next = begins ? again(s, sp->wishes.v[0].fresh) : pair_dup(sp->p, true);
    struct err e = {0};
    char *text = NULL;
    int rc = begins && (sp->p->state == PAIR_RUNNING || sp->p->waiting)
                 ? err_set(&e, ERR_CONFLICT, "the pair in it is at work: stop it first")
                 : pair_apply(next, ev, &sp->act, &e);

    if (rc == 0 && sp->act.changed) {
        if (begins)
            forget_sessions(sp);
        take_sums(s, next);
        if (sp->act.send)
            text = pair_message(next);
        sp->busy = true;
        sp->wished = wished;
        store_pair_put(s->j->o.store, next, text, sp->act.end_turn, jobs_store(s->j, on_put, s, s));
        free(text);
    } else if (wished) {
        wish_done(s, rc ? &e : NULL);
    }
    pair_free(next);
    return sp->busy;
}

/* The next turn of that role goes on with it; an earlier pair's is not this one's. */
static void take_session(struct session_pair *sp)
{
    bool ours = pair_is_key(sp->end.message) ? pair_turn_of(sp->p, sp->end.message) > 0
                                             : !sp->end.stored;

    if (sp->end.session && ours)
        str_set(&sp->sums[sp->end.role].session, sp->end.session);
    str_set(&sp->end.session, NULL);
}

static bool step_by_end(struct session *s)
{
    struct session_pair *sp = s->pair;
    struct pair_event ev = {.kind = PAIR_TURN_END, .outcome = sp->end.outcome,
                            .text = sp->end.text};

    ev.turn = sp->end.message ? pair_turn_of(sp->p, sp->end.message) : 0;
    return ev.turn && step(s, &ev, false);
}

static void schedule(struct session *s)
{
    struct session_pair *sp = s->pair;
    bool runs = sp->p && (sp->p->state == PAIR_RUNNING || sp->p->waiting);

    if (!sp->timer && !s->j->leaving)
        session_timer(s, &sp->timer, sp->int_turn          ? TRY_MS
                      : runs || !sp->p ? LOOK_MS
                                       : REST_MS, look);
}

void session_pair_go(struct session *s)
{
    struct session_pair *sp = s->pair;
    struct err e = {0};

    if (!sp || !sp->loaded || sp->busy)
        return;
    if (!sp->p)
        err_set(&e, ERR_CONFLICT, "no pair was started in it");
    else
        take_session(sp);
    while (sp->wishes.n && !sp->busy) {
        if (!sp->p)
            wish_done(s, &e);
        else
            step(s, &sp->wishes.v[0].ev, true);
    }
    if (sp->p && !sp->busy && !session_readonly(s))
        step_by_end(s);
    try_interrupt(s);
    schedule(s);
}

static void wish(struct session *s, const struct pair_event *ev, struct pair *take_fresh,
                 uint64_t req_id)
{
    struct pair_wish *w;
    struct err e = {0};

    if (!s->pair || session_readonly(s)) {
        err_set(&e, ERR_CONFLICT, s->pair ? "this cc-tui only reads: another version owns the "
                                            "database"
                                          : "no pair works in it: cc-tui pair starts one");
        jobs_done(s->j, req_id, &e, s->row);
        pair_free(take_fresh);
        return;
    }
    w = ARR_PUSH(&s->pair->wishes);
    w->fresh = take_fresh;
    w->ev = *ev;
    w->text = xstrdup(ev->text);
    w->ev.text = w->text;
    w->req_id = req_id;
    session_follow(s);
    session_pair_go(s);
}

void session_pair_wish(struct session *s, const struct pair_event *ev, uint64_t req_id)
{
    wish(s, ev, NULL, req_id);
}

void session_pair_again(struct session *s, struct pair *take, uint64_t req_id)
{
    struct pair_event ev = {.kind = PAIR_BEGIN};

    wish(s, &ev, take, req_id);
}

/* --- looking --------------------------------------------------------------------- */

/* Its message never becomes a turn, or its turn has no end: why, or NULL. */
static const char *lost(struct session *s, const struct message *m)
{
    const struct sandbox *r = session_row(s);

    if (!r || r->state == SB_KILLED || (r->state == SB_ERROR && !r->vm_up))
        return "the sandbox is gone";
    if (!m->id)
        return "its message is gone";
    if (m->state == MSG_FAILED || m->state == MSG_UNCONFIRMED)
        return m->error ? m->error : "its message was not delivered";
    if (m->state == MSG_CANCELLED)
        return "its message was called off";
    if (!s->prov && s->fo.state == FO_ENDED && (s->out.agent == AG_FAILED ||
                                                s->out.agent == AG_EXITED))
        return "the agents' keeper in the sandbox has ended: restart the agent, then resume";
    return NULL;
}

static void on_looked(void *ctx, struct st_reply *r)
{
    struct session *s = ctx;
    struct session_pair *sp = s->pair;
    struct pair_event ev = {.kind = PAIR_LOST};
    bool first = !sp->p && r->pair;

    sp->busy = false;
    if (r->err.code) {
        schedule(s);
        return;
    }
    sp->loaded = true;
    pair_free(sp->p);
    sp->p = r->pair;
    r->pair = NULL;
    show(s);
    session_pair_go(s);
    if (first)
        session_relay(s);
    if (!sp->p || sp->busy || !sp->p->waiting || session_readonly(s))
        return;
    ev.turn = sp->p->turn;
    ev.text = lost(s, &r->msg);
    ev.outcome = r->msg.id && r->msg.state == MSG_CANCELLED ? AGENT_INTERRUPTED : AGENT_FAILED;
    if (ev.text)
        step(s, &ev, false);
}

static void look(void *ctx)
{
    struct session *s = ctx;
    struct session_pair *sp = s->pair;

    sp->timer = 0;
    if (sp->busy)
        return; /* its answer goes on */
    sp->busy = true;
    store_pair(s->j->o.store, s->row, jobs_store(s->j, on_looked, s, s));
}
