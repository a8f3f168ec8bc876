/* The deletes of a kill-all, all at once, and the proof: lists until none of the targets
 * is in one, or the time is over. */
#include "core_priv.h"

#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

#define KILL_MS 30000
#define VERIFY_MS 30000
#define LOOK_AGAIN_MS 700

static void verify(void *ctx);

/* --- deletes -------------------------------------------------------------------- */

static void set_pending(struct jobs *j, uint64_t id, bool on)
{
    struct sandbox *row = jobs_row(j, id);

    if (!row || row->pending == on || row->state == SB_CREATING)
        return;
    row->pending = on;
    jobs_row_changed(j, row);
}

static void all_answered(struct killall *k)
{
    k->phase = KILL_VERIFYING;
    k->until = clock_mono_ms() + VERIFY_MS;
    killall_post(k);
    verify(k);
}

static void target_done(struct ka_target *t, int result, const char *reason)
{
    struct killall *k = t->j->priv->ka;

    t->t.result = result;
    core_row_set(&t->t.reason, reason);
    if (result == 3)
        set_pending(t->j, t->row, false);
    else
        core_kill_gone(t->j, t->row);
    killall_post(k);
    if (--k->pending == 0 && k->phase == KILL_RUNNING)
        all_answered(k);
}

static void on_deleted(void *ctx, const struct e2b_result *r)
{
    struct ka_target *t = ctx;
    bool before = t->round > 1; /* it was told once already */

    t->call = 0;
    if (r->err.code == 0)
        target_done(t, 1, NULL);
    else if (r->err.code == ERR_NOTFOUND)
        target_done(t, before ? 1 : 2, NULL);
    else
        target_done(t, 3, r->err.text);
}

static void on_create_killed(void *ctx, const struct err *e, bool gone)
{
    struct ka_target *t = ctx;
    const struct sandbox *row = jobs_row(t->j, t->row);

    if (row && row->sandbox_id && !t->t.sandbox_id)
        t->t.sandbox_id = xstrdup(row->sandbox_id);
    if (e)
        target_done(t, 3, e->text);
    else
        target_done(t, gone ? 2 : 1, NULL);
}

static void send(struct ka_target *t)
{
    struct e2b_call_opts o = {.urgent = true, .give_up_ms = KILL_MS};
    const struct sandbox *row = jobs_row(t->j, t->row);

    t->round++;
    if (row && row->sandbox_id && !t->t.sandbox_id)
        t->t.sandbox_id = xstrdup(row->sandbox_id);
    if (core_create_kill(t->j, t->row, on_create_killed, t))
        return;
    if (!t->t.sandbox_id) {
        target_done(t, 2, NULL); /* a create of an earlier life that made nothing */
        return;
    }
    set_pending(t->j, t->row, true);
    t->client = t->j->e2b;
    t->call = e2b_kill(t->client, t->t.sandbox_id, &o, on_deleted, t);
}

void killall_run(struct killall *k)
{
    size_t n = 0;

    for (size_t i = 0; i < k->targets.n; i++)
        n += k->targets.v[i]->t.result == 0;
    k->pending = n + 1; /* ours: the phase ends when all were sent and answered */
    for (size_t i = 0; i < k->targets.n; i++)
        if (k->targets.v[i]->t.result == 0)
            send(k->targets.v[i]);
    core_rows_flush(k->j);
    killall_post(k);
    if (--k->pending == 0)
        all_answered(k);
}

/* --- proof ---------------------------------------------------------------------- */

int killall_final(int result, bool listed)
{
    if (result == 5)
        return 5;
    if (listed)
        return result == 3 ? 3 : 4;
    return result == 1 || result == 2 ? result : 1;
}

static bool is_listed(const struct e2b_result *r, const char *id)
{
    for (size_t i = 0; id && i < r->n; i++)
        if (str_eq(r->v[i].sandbox_id, id))
            return true;
    return false;
}

static size_t count_result(const struct killall *k, int result)
{
    size_t n = 0;

    for (size_t i = 0; i < k->targets.n; i++)
        n += k->targets.v[i]->t.result == result;
    return n;
}

static void report(struct killall *k, const char *text)
{
    struct jobs *j = k->j;
    size_t left = count_result(k, 3) + count_result(k, 4), kept = count_result(k, 5);
    size_t gone = count_result(k, 1) + count_result(k, 2);
    struct err e = {0};
    uint64_t req = k->req;

    if (left)
        err_set(&e, ERR_SERVER, "%zu of %zu sandboxes were not killed: try again, or end them at "
                "the provider", left, left + gone);
    else if (!k->verified)
        err_set(&e, ERR_NETWORK, "whether all are gone could not be seen: %s", text);
    jobs_say(j, e.code ? 2 : 0, 0, "kill all: %zu killed, %zu already gone, %zu left%s",
             count_result(k, 1), count_result(k, 2), left, kept ? ", protected ones kept" : "");
    if (k->intent)
        store_intent_done(j->o.store, k->intent, (struct st_to){NULL, 0});
    k->intent = 0;
    k->phase = KILL_REPORT;
    free(k->text);
    k->text = e.code ? xstrdup(e.text) : NULL;
    core_rows_flush(j);
    net_timer_cancel(j->o.net, k->post_timer);
    k->post_timer = 0;
    killall_post_now(k);
    k->req = 0;
    jobs_done(j, req, e.code ? &e : NULL, 0);
    core_poll_soon(j, 1000);
}

/* Told to go and listed all the same: told again. */
static void again(struct killall *k, const struct e2b_result *r)
{
    struct e2b_call_opts o = {.urgent = true};

    for (size_t i = 0; i < k->targets.n; i++) {
        struct ka_target *t = k->targets.v[i];

        if ((t->t.result != 1 && t->t.result != 2) || t->call || !is_listed(r, t->t.sandbox_id))
            continue;
        t->round++;
        set_pending(k->j, t->row, true);
        k->pending++;
        t->client = k->j->e2b;
        t->call = e2b_kill(t->client, t->t.sandbox_id, &o, on_deleted, t);
    }
}

static size_t count_listed(const struct killall *k, const struct e2b_result *r, bool failed_too)
{
    size_t n = 0;

    for (size_t i = 0; i < k->targets.n; i++) {
        const struct kill_target *t = &k->targets.v[i]->t;
        if (t->result != 5 && (failed_too || t->result != 3))
            n += is_listed(r, t->sandbox_id);
    }
    return n;
}

static void settle(struct killall *k, const struct e2b_result *r)
{
    for (size_t i = 0; i < k->targets.n; i++) {
        struct kill_target *t = &k->targets.v[i]->t;
        int result = killall_final(t->result, is_listed(r, t->sandbox_id));

        if (result == t->result)
            continue;
        if (t->result == 3 && result == 1) /* the answer was lost, not the kill */
            core_kill_gone(k->j, k->targets.v[i]->row);
        t->result = result;
        core_row_set(&t->reason, result == 4 ? "it was told to go and is still listed" : NULL);
    }
    k->verified = count_listed(k, r, true) == 0;
    report(k, "");
}

/* One of another process whose answer came while we deleted. */
static void learn_ids(struct killall *k)
{
    for (size_t i = 0; i < k->targets.n; i++) {
        struct ka_target *t = k->targets.v[i];
        const struct sandbox *row = t->t.sandbox_id ? NULL : jobs_row(k->j, t->row);

        if (row && row->sandbox_id)
            t->t.sandbox_id = xstrdup(row->sandbox_id);
    }
}

static void on_list(void *ctx, const struct e2b_result *r)
{
    struct killall *k = ctx;
    int64_t now = clock_mono_ms();

    k->list_call = 0;
    if (r->err.code) {
        if (now < k->until)
            k->timer = net_timer(k->j->o.net, LOOK_AGAIN_MS, verify, k);
        else
            report(k, r->err.text);
        return;
    }
    core_poll_apply(k->j, r);
    learn_ids(k);
    if (count_listed(k, r, false) == 0 || now >= k->until) {
        settle(k, r);
        return;
    }
    again(k, r);
    killall_post(k);
    k->timer = net_timer(k->j->o.net, LOOK_AGAIN_MS, verify, k);
}

static void verify(void *ctx)
{
    struct killall *k = ctx;
    struct e2b_call_opts o = {.urgent = true, .give_up_ms = 5000};

    k->timer = 0;
    k->client = k->j->e2b;
    k->list_call = e2b_list(k->j->e2b, &o, on_list, k);
}

void killall_stop(struct killall *k)
{
    net_timer_cancel(k->j->o.net, k->timer);
    core_call_cancel(k->j, k->client, k->list_call);
    k->timer = k->list_call = 0;
}
