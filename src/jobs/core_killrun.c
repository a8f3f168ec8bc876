/* The deletes of a kill-all, all at once: a few first, so that they are on their way
 * while the many are being made ready. */
#include "core_priv.h"

#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <string.h>

#define TRY_MS 10000
#define FIRST 4
#define SLICE 50
#define EARLY_MS 4000 /* an answer that is so late may be lost: the list knows */

struct sandbox *killall_row(const struct ka_target *t)
{
    struct sandbox *row = jobs_row(t->j, t->row);

    return row ? row : core_kill_row(t->j, t->t.sandbox_id, t->mark);
}

void killall_pending(struct ka_target *t, bool on)
{
    struct sandbox *row = killall_row(t);

    if (!row || row->pending == on || row->state == SB_CREATING || row->state == SB_KILLED)
        return;
    row->pending = on;
    core_row_shown(t->j, row);
}

static void target_done(struct ka_target *t, int result, const char *reason)
{
    struct killall *k = t->j->priv->ka;

    t->t.result = result;
    t->creating = false;
    t->answered = clock_mono_ms();
    core_row_set(&t->t.reason, reason);
    if (result == 3)
        killall_pending(t, false);
    killall_post(k);
    if (--k->pending == 0 && k->phase == KILL_RUNNING)
        killall_verify(k);
}

static bool is_refusal(int code)
{
    return code == ERR_AUTH || code == ERR_INVALID || code == ERR_CONFLICT || code == ERR_BUSY;
}

static void on_deleted(void *ctx, const struct e2b_result *r)
{
    struct ka_target *t = ctx;
    bool before = t->round > 1 || r->resent; /* it was told once already */

    t->call = 0;
    if (r->err.code == 0)
        target_done(t, 1, NULL);
    else if (r->err.code == ERR_NOTFOUND)
        target_done(t, before ? 1 : 2, NULL);
    else {
        t->refused = is_refusal(r->err.code) && !r->resent;
        target_done(t, 3, r->err.text);
    }
}

static void on_create_killed(void *ctx, const struct err *e, bool nothing)
{
    struct ka_target *t = ctx;
    const struct sandbox *row = killall_row(t);

    if (row && row->sandbox_id && !t->t.sandbox_id)
        t->t.sandbox_id = xstrdup(row->sandbox_id);
    if (e)
        target_done(t, 3, e->text);
    else
        target_done(t, nothing ? 2 : 1, NULL);
}

static void delete_it(struct ka_target *t)
{
    struct e2b_call_opts o = {.urgent = true, .give_up_ms = killall_wait_ms(t->j),
                              .try_ms = TRY_MS};

    t->round++;
    t->absent = 0;
    killall_pending(t, true);
    t->client = t->j->e2b;
    t->call = e2b_kill(t->client, t->t.sandbox_id, &o, on_deleted, t);
}

void killall_again(struct ka_target *t)
{
    t->j->priv->ka->pending++;
    delete_it(t);
}

static void send(struct ka_target *t)
{
    const struct sandbox *row = killall_row(t);

    if (row && row->sandbox_id && !t->t.sandbox_id)
        t->t.sandbox_id = xstrdup(row->sandbox_id);
    if (row && row->state == SB_CREATING && core_create_kill(t->j, row, on_create_killed, t)) {
        t->creating = true;
    } else if (t->t.sandbox_id) {
        delete_it(t);
    } else {
        core_order_mark(t->j, t->mark);
        target_done(t, 3, "its create is not answered yet; it is killed when a list shows it");
    }
}

static void early(void *ctx)
{
    struct killall *k = ctx;

    k->early_timer = 0;
    killall_verify(k);
}

static void send_some(void *ctx)
{
    struct killall *k = ctx;
    struct err e = {0};

    k->timer = 0;
    for (size_t n = k->next ? SLICE : FIRST; n && k->next < k->targets.n; k->next++) {
        struct ka_target *t = k->targets.v[k->next];

        if (t->t.result != 0)
            continue;
        if (!k->j->e2b) {
            err_set(&e, ERR_CONFLICT, "the account is gone");
            target_done(t, 3, e.text);
            continue;
        }
        send(t);
        n--;
    }
    if (k->next < k->targets.n) {
        k->timer = net_timer(k->j->o.net, 0, send_some, k);
        return;
    }
    k->early_timer = net_timer(k->j->o.net, EARLY_MS, early, k);
    core_rows_flush(k->j);
    killall_post(k);
    if (--k->pending == 0)
        killall_verify(k);
}

void killall_run(struct killall *k)
{
    k->next = 0;
    k->pending = killall_count(k, 0) + 1; /* ours: it ends when all were sent and answered */
    send_some(k);
}
