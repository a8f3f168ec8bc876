/* The proof of a kill-all: lists until none of the targets is in one, or the time is
 * over. What is told to go and listed all the same is told again. Then the report. */
#include "core_priv.h"

#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

#define AGAIN_MIN_MS 300
#define AGAIN_MAX_MS 3000
#define HOLD_MS 500
#define HOLD_MANY 500 /* from so many on, only where something was odd */
#define GONE 1000 /* looks without it: it is known not to be there */

static void look(void *ctx);

int killall_final(int result, bool listed, bool refused)
{
    if (result == 5)
        return 5;
    if (listed)
        return result == 3 ? 3 : 4;
    return result == 2 || (result == 3 && refused) ? 2 : 1;
}

static const char *const not_whole = "the list of the service is not complete";
static const char *const old_route = "this service lists running sandboxes only: paused ones, if "
                                     "there are any, are neither seen nor ended";

/* --- what a list says --------------------------------------------------------------- */

/* One of another process whose answer came while we deleted. */
static void learn_id(struct ka_target *t)
{
    const struct sandbox *row = t->t.sandbox_id ? NULL : killall_row(t);

    if (row && row->sandbox_id)
        t->t.sandbox_id = xstrdup(row->sandbox_id);
}

/* Pages of a list may shift while rows go: what is on none of them is looked for twice. */
static void note(struct killall *k, const struct e2b_result *r)
{
    k->need = r->pages > 1 ? 2 : 1;
    for (size_t i = 0; i < k->targets.n; i++) {
        struct ka_target *t = k->targets.v[i];

        learn_id(t);
        if (t->t.result == 5 || t->absent >= GONE)
            continue;
        t->listed = kill_is_listed(r, t->t.sandbox_id, t->mark);
        if (t->listed)
            t->absent = 0;
        else
            t->absent++;
    }
}

/* The list lacks it, but the answer to its delete is still out: that was lost. */
static void call_off(struct killall *k, struct ka_target *t)
{
    core_call_cancel(k->j, t->client, t->call);
    t->call = 0;
    k->pending--;
    if (t->t.result == 0)
        t->t.result = 1;
}

/* The time is over: what was told again and did not answer is as it is listed. */
static void hang_up(struct killall *k)
{
    for (size_t i = 0; i < k->targets.n; i++)
        if (k->targets.v[i]->call)
            call_off(k, k->targets.v[i]);
}

/* True when there is something left to wait for. */
static bool unfinished(struct killall *k)
{
    bool open = false;

    for (size_t i = 0; i < k->targets.n; i++) {
        struct ka_target *t = k->targets.v[i];

        if (t->t.result == 5)
            continue;
        if (t->call && t->absent >= k->need)
            call_off(k, t);
        if (t->t.result == 0)
            open = true;
        else if (t->absent < k->need)
            open |= t->t.result != 3 || !t->listed;
    }
    return open;
}

/* True when something lives that was told to go. */
static bool again(struct killall *k)
{
    bool lives = false;

    for (size_t i = 0; i < k->targets.n; i++) {
        struct ka_target *t = k->targets.v[i];

        lives |= t->t.result < 3 && t->listed;
        if ((t->t.result == 1 || t->t.result == 2) && !t->call && t->listed &&
            t->answered < k->asked && t->t.sandbox_id)
            killall_again(t);
    }
    return lives;
}

/* --- newcomers ----------------------------------------------------------------------- */

static bool is_target(const struct killall *k, const char *id)
{
    for (size_t i = 0; i < k->targets.n; i++)
        if (str_eq(k->targets.v[i]->t.sandbox_id, id))
            return true;
    return false;
}

static bool of_project(const struct killall *k, const struct e2b_sandbox *v)
{
    char *project = core_project_of_meta(k->j, v->meta);
    bool is = kv_get(v->meta, "cc-tui-session") && str_eq(project, killall_project(k->j));

    free(project);
    return is;
}

/* In the scope and up, but nobody was asked about them: named, and left alone. */
static void find_newcomers(struct killall *k, const struct e2b_result *r)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct e2b_sandbox *v = &r->v[i];
        const struct sandbox *row = core_kill_row(k->j, v->sandbox_id, NULL);
        struct kill_target *t;

        if (!k->account && !of_project(k, v))
            continue;
        if (is_target(k, v->sandbox_id) || (row && row->protect))
            continue;
        t = ARR_PUSH(&k->newcomers);
        core_row_set(&t->sandbox_id, v->sandbox_id);
        core_row_set(&t->name, row ? row->name : v->alias);
        t->state = str_eq(v->state, "paused") ? SB_PAUSED : SB_RUNNING;
        t->result = 4;
        t->reason = xstrdup("it was not there when the question was asked");
    }
}

/* --- report ---------------------------------------------------------------------------- */

static void summary(struct killall *k, const char *why, struct err *e)
{
    size_t left = killall_count(k, 3) + killall_count(k, 4);

    if (left)
        err_set(e, ERR_SERVER, "%zu of %zu sandboxes were not killed: try again, or end them at "
                "the provider", left, k->targets.n - killall_count(k, 5));
    else if (!k->verified)
        err_set(e, ERR_NETWORK, "whether all are gone could not be seen: %s", why);
    else if (k->newcomers.n)
        err_set(e, ERR_CONFLICT, "%zu more %s started meanwhile and left alone: ask for kill all "
                "again to end %s", k->newcomers.n, k->newcomers.n == 1 ? "was" : "were",
                k->newcomers.n == 1 ? "it" : "them");
    jobs_say(k->j, e->code ? 2 : 0, 0, "kill all: %zu %s, %zu already gone, %zu left%s%s",
             killall_count(k, 1), k->verified ? "killed" : "told to go", killall_count(k, 2), left,
             killall_count(k, 5) ? ", protected ones kept" : "",
             k->verified ? "" : "; not proved by a list");
}

static void report(struct killall *k, const char *why)
{
    struct jobs *j = k->j;
    struct err e = {0};
    uint64_t req = k->req;

    killall_stop(k);
    summary(k, why, &e);
    if (k->intent)
        store_intent_done(j->o.store, k->intent, (struct st_to){NULL, 0});
    k->intent = 0;
    k->phase = KILL_REPORT;
    core_row_set(&k->text, e.code ? e.text : NULL);
    core_rows_flush(j);
    net_timer_cancel(j->o.net, k->post_timer);
    k->post_timer = 0;
    killall_post_now(k);
    k->req = 0;
    jobs_done(j, req, e.code ? &e : NULL, 0);
    core_poll_soon(j, 1000);
}

static void not_proved(struct killall *k, int code, const char *why)
{
    if (k->pending || (code != ERR_AUTH && clock_mono_ms() < k->until)) {
        k->timer = net_timer(k->j->o.net, net_backoff_ms(k->looks++, AGAIN_MIN_MS, AGAIN_MAX_MS),
                             look, k);
        return;
    }
    for (size_t i = 0; i < k->targets.n; i++)
        killall_pending(k->targets.v[i], false);
    report(k, why);
}

static void settle_one(struct ka_target *t)
{
    /* another process's create without an answer: that no list has it yet proves nothing */
    bool open = t->t.result == 3 && !t->t.sandbox_id;
    int result = open ? 3 : killall_final(t->t.result, t->listed, t->refused);
    struct sandbox *row = killall_row(t);
    char *why;

    if (result == 4) {
        why = xasprintf("it was told to go %d times and is still listed", t->round);
        core_row_set(&t->t.reason, why);
        free(why);
    } else if (result != t->t.result) {
        core_row_set(&t->t.reason, NULL);
    }
    t->t.result = result;
    if (result == 1 || result == 2)
        core_kill_gone(t->j, row);
    else if (result != 5)
        core_kill_left(t->j, row, t->t.reason);
}

static void settle(struct killall *k, const struct e2b_result *r)
{
    for (size_t i = 0; i < k->targets.n; i++)
        if (k->targets.v[i]->t.result != 5)
            settle_one(k->targets.v[i]);
    find_newcomers(k, r);
    k->verified = r->err.text[0] == 0;
    report(k, k->verified ? "" : old_route);
}

/* --- looks ------------------------------------------------------------------------------- */

static void on_probed(void *ctx, const struct e2b_result *r)
{
    struct ka_target *t = ctx;
    struct killall *k = t->j->priv->ka;

    t->probe = 0;
    t->listed = r->err.code != ERR_NOTFOUND;
    t->absent = t->listed ? 0 : GONE;
    if (--k->probes == 0)
        look(k);
}

/* A list of running ones says nothing of one that was paused: it is asked for itself. */
static bool probe_paused(struct killall *k)
{
    struct e2b_call_opts o = {.urgent = true, .give_up_ms = killall_look_ms(k->until)};

    for (size_t i = 0; i < k->targets.n; i++) {
        struct ka_target *t = k->targets.v[i];

        if (t->t.state != SB_PAUSED || t->t.result < 1 || t->t.result > 2 || t->probe ||
            t->absent >= GONE || !t->t.sandbox_id)
            continue;
        k->probes++;
        t->client = k->j->e2b;
        t->probe = e2b_get(t->client, t->t.sandbox_id, &o, on_probed, t);
    }
    return k->probes > 0;
}

/* A kill may not hold: what is gone is looked for once more, a moment later. */
static bool must_hold(struct killall *k)
{
    bool first = !k->held, odd = k->looks > 0;
    size_t told = killall_count(k, 1) + killall_count(k, 2);

    k->held = true;
    for (size_t i = 0; i < k->targets.n; i++)
        odd |= k->targets.v[i]->round > 1 || k->targets.v[i]->t.result == 2;
    return first && told && (odd || told < HOLD_MANY);
}

/* From here on the proof has its time. */
static void all_answered(struct killall *k)
{
    if (k->pending || k->phase != KILL_RUNNING)
        return;
    k->phase = KILL_VERIFYING;
    k->until = clock_mono_ms() + killall_wait_ms(k->j);
    killall_post(k);
}

static void on_list(void *ctx, const struct e2b_result *r)
{
    struct killall *k = ctx;
    bool open, late;
    int64_t wait;

    k->list_call = 0;
    if (r->err.code) {
        not_proved(k, r->err.code, r->err.text);
        return;
    }
    core_poll_apply(k->j, r);
    if (!kill_list_proves(r, k->had_count)) {
        not_proved(k, 0, not_whole);
        return;
    }
    note(k, r);
    late = clock_mono_ms() >= k->until;
    if (r->err.text[0] && !late && probe_paused(k))
        return;
    open = unfinished(k);
    if (late)
        hang_up(k);
    if (k->pending == 0 && !late && !open && must_hold(k)) {
        k->timer = net_timer(k->j->o.net, HOLD_MS, look, k);
        return;
    }
    if (k->pending == 0 && (!open || late)) {
        settle(k, r);
        return;
    }
    k->held = false;
    all_answered(k);
    wait = again(k) || k->pending ? net_backoff_ms(k->looks++, AGAIN_MIN_MS, AGAIN_MAX_MS) : 0;
    killall_post(k);
    k->timer = net_timer(k->j->o.net, wait, look, k);
}

static void look(void *ctx)
{
    struct killall *k = ctx;
    struct e2b_call_opts o = {.urgent = true, .give_up_ms = killall_look_ms(k->until)};

    k->timer = 0;
    if (!k->j->e2b) {
        not_proved(k, ERR_AUTH, k->j->priv->account_err.text);
        return;
    }
    k->asked = clock_mono_ms();
    k->client = k->j->e2b;
    k->list_call = e2b_list(k->client, &o, on_list, k);
}

void killall_verify(struct killall *k)
{
    struct jobs *j = k->j;

    net_timer_cancel(j->o.net, k->early_timer);
    k->early_timer = 0;
    k->until = INT64_MAX; /* deletes end by themselves */
    all_answered(k);
    if (k->list_call || k->probes)
        return; /* its answer goes on */
    net_timer_cancel(j->o.net, k->timer);
    k->looks = 0;
    k->held = false;
    look(k);
}

void killall_stop(struct killall *k)
{
    struct jobs *j = k->j;

    net_timer_cancel(j->o.net, k->timer);
    net_timer_cancel(j->o.net, k->early_timer);
    core_call_cancel(j, k->client, k->list_call);
    for (size_t i = 0; i < k->targets.n; i++) {
        core_call_cancel(j, k->targets.v[i]->client, k->targets.v[i]->probe);
        k->targets.v[i]->probe = 0;
    }
    k->timer = k->early_timer = k->list_call = 0;
    k->probes = 0;
}
