/* How long a sandbox runs: its time, pause and resume. */
#include "core_act.h"
#include "core_priv.h"

#include <cct/util/limits.h>
#include <cct/util/str.h>

#define LOOK_MS 700
#define LOOKS 8

/* What it got is the service's to say. */
static void on_end_known(void *ctx, const struct e2b_result *r)
{
    struct act *a = ctx;
    struct sandbox *row = jobs_row(a->j, a->row);

    if (row && r->err.code == 0 && r->n && r->v[0].end_at) {
        row->end_at = r->v[0].end_at;
        jobs_row_changed(a->j, row);
        core_time_given(a->j, row, a->asked_end);
    }
    act_end(a, NULL);
}

static void ask_end(struct act *a, const struct sandbox *row)
{
    static const struct e2b_call_opts o = {.give_up_ms = 5000};

    a->asked_end = jobs_now(a->j) + a->seconds * INT64_C(1000);
    e2b_get(a->j->e2b, row->sandbox_id, &o, on_end_known, a);
}

static void settle(struct act *a)
{
    struct sandbox *row = jobs_row(a->j, a->row);

    if (row && row->pending) {
        row->pending = row->changing = false;
        jobs_row_changed(a->j, row);
    }
}

static void failed(struct act *a, const struct err *why, const char *what)
{
    struct err e = *why;
    struct sandbox *row = jobs_row(a->j, a->row);

    err_wrap(&e, "%s \"%s\" failed", what, row ? core_row_name(row) : "?");
    if (why->code == ERR_NOTFOUND || why->code == ERR_CONFLICT)
        core_poll_soon(a->j, 0); /* what we believe of it is old */
    act_end(a, &e);
}

static void on_timeout(void *ctx, const struct e2b_result *r)
{
    struct act *a = ctx;
    struct sandbox *row = jobs_row(a->j, a->row);

    settle(a);
    if (r->err.code || !row || !row->sandbox_id) {
        failed(a, &r->err, "setting the time of");
        return;
    }
    ask_end(a, row);
}

static void is_paused(struct act *a, struct sandbox *row)
{
    row->state = SB_PAUSED;
    row->end_at = jobs_now(a->j);
    jobs_row_changed(a->j, row);
    core_row_state(a->j, row);
    jobs_say(a->j, 0, row->id, "%s is paused", row->name ? row->name : row->sandbox_id);
    act_end(a, NULL);
}

static void is_resumed(struct act *a, struct sandbox *row)
{
    row->state = SB_RUNNING;
    row->started_at = jobs_now(a->j);
    row->end_at = row->started_at + a->seconds * 1000LL;
    jobs_row_changed(a->j, row);
    core_row_state(a->j, row);
    jobs_say(a->j, 0, row->id, "%s runs again", row->name ? row->name : row->sandbox_id);
    ask_end(a, row);
}

/* Paused or resumed, as far as `e` says. */
static void turned(struct act *a, const struct err *e)
{
    struct sandbox *row = jobs_row(a->j, a->row);

    settle(a);
    core_poll_soon(a->j, 300);
    if (e->code)
        failed(a, e, a->want == SB_PAUSED ? "pausing" : "resuming");
    else if (!row || !core_row_live(row) || !row->sandbox_id) /* killed since: it stays so */
        act_end(a, NULL);
    else if (a->want == SB_PAUSED)
        is_paused(a, row);
    else
        is_resumed(a, row);
}

static void look_at_it(void *ctx);

static void on_look(void *ctx, const struct e2b_result *r)
{
    static const struct err done = {0};
    struct act *a = ctx;
    bool seen = r->err.code == 0 && r->n;

    if (seen && str_eq(r->v[0].state, a->want == SB_PAUSED ? "paused" : "running"))
        turned(a, &done);
    else if (r->err.code != ERR_NOTFOUND && ++a->looks < LOOKS)
        a->timer = net_timer(a->j->o.net, LOOK_MS, look_at_it, a);
    else
        turned(a, r->err.code == ERR_NOTFOUND ? &r->err : &a->why);
}

static void look_at_it(void *ctx)
{
    static const struct e2b_call_opts o = {.give_up_ms = 3000};
    struct act *a = ctx;
    struct sandbox *row = jobs_row(a->j, a->row);

    a->timer = 0;
    if (row && row->sandbox_id && a->j->e2b)
        e2b_get(a->j->e2b, row->sandbox_id, &o, on_look, a);
    else
        turned(a, &a->why);
}

/* A lost answer and "another change is under way" say nothing of what became of it: the
 * sandbox is looked at until it is as wanted, for a while. */
static void on_turned(void *ctx, const struct e2b_result *r)
{
    struct act *a = ctx;

    a->why = r->err;
    if (r->err.code && (r->err.code == ERR_CONFLICT || core_answer_lost(r)))
        look_at_it(a);
    else
        turned(a, &r->err);
}

static const char *state_refusal(const struct cmd *c, const struct sandbox *row)
{
    bool up = row->state == SB_RUNNING || (row->state == SB_ERROR && row->vm_up);

    if (row->pending)
        return "another action on it is under way";
    if (!row->sandbox_id)
        return "it is not there yet";
    if (c->m.type == CMD_RESUME)
        return row->state == SB_PAUSED ? NULL : "it is not paused";
    return up ? NULL : row->state == SB_PAUSED ? "it is paused" : "it is gone";
}

void core_pause_action(struct jobs *j, struct cmd *c, struct sandbox *row)
{
    const char *no = state_refusal(c, row);
    struct act *a;
    int seconds = (int)c->n;

    if (c->m.type == CMD_RESUME && c->n == 0)
        seconds = 900;
    if (no) {
        core_done_err(j, c->m.req_id, row->id, ERR_CONFLICT, "nothing was done to \"%s\": %s",
                      core_row_name(row), no);
        return;
    }
    if (c->m.type != CMD_PAUSE && (c->n < 0 || seconds < 1 || c->n > LIM_TIMEOUT_MAX_S)) {
        core_done_err(j, c->m.req_id, row->id, ERR_INVALID, "a time must be from 1 second to 24 "
                      "hours; to end a sandbox now, kill it");
        return;
    }
    a = act_new(j, c);
    a->seconds = seconds;
    a->want = c->m.type == CMD_PAUSE ? SB_PAUSED : SB_RUNNING;
    row->pending = row->changing = true;
    jobs_row_changed(j, row);
    if (c->m.type == CMD_TIMEOUT)
        e2b_set_timeout(j->e2b, row->sandbox_id, seconds, on_timeout, a);
    else if (c->m.type == CMD_PAUSE)
        e2b_pause(j->e2b, row->sandbox_id, on_turned, a);
    else
        e2b_connect(j->e2b, row->sandbox_id, seconds, on_turned, a);
}
