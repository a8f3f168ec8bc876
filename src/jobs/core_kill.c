/* Killing one sandbox: looked at again first, deleted ahead of other traffic, and proved
 * by a new list. A 204 is a promise; only a complete list says that something is gone. */
#include "core_priv.h"

#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_MS 10000
#define TRY_MS 10000
#define AGAIN_MIN_MS 300
#define AGAIN_MAX_MS 3000
#define SAME_START_MS 2000

struct kill {
    struct jobs *j;
    uint64_t req_id, row, ctx;
    char *sandbox_id, *mark, *place;
    core_killed_fn done;
    struct e2b *client;
    uint64_t call, timer;
    int64_t until; /* mono: the proof is given up; 0 = it has not begun */
    int looks, absent;
    bool had_count;
    bool waits, asked; /* for a list; the one that is under way is its */
};

/* --- what lists prove ------------------------------------------------------------ */

bool kill_is_listed(const struct e2b_result *r, const char *id, const char *mark)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct e2b_sandbox *v = &r->v[i];

        if (id ? str_eq(v->sandbox_id, id) : mark && str_eq(kv_get(v->meta, "cc-tui-mark"), mark))
            return true;
    }
    return false;
}

bool kill_list_proves(const struct e2b_result *r, bool had_count)
{
    int64_t running = 0;

    for (size_t i = 0; i < r->n; i++)
        running += str_eq(r->v[i].state, "running");
    return r->total_running < 0 ? !had_count : running >= r->total_running;
}

/* --- life -------------------------------------------------------------------------- */

struct sandbox *core_kill_row(struct jobs *j, const char *id, const char *mark)
{
    for (size_t i = 0; !id && mark && i < j->table.n; i++)
        if (str_eq(j->table.v[i].mark, mark))
            return &j->table.v[i];
    return id ? core_row_of_vm(j, id) : NULL;
}

static struct sandbox *row_of(const struct kill *k)
{
    struct sandbox *row = jobs_row(k->j, k->row);

    return row ? row : core_kill_row(k->j, k->sandbox_id, k->mark);
}

void core_kill_gone(struct jobs *j, struct sandbox *row)
{
    if (!row || row->state == SB_KILLED)
        return;
    reconcile_gone(row, GONE_HERE, jobs_now(j));
    jobs_row_changed(j, row);
    core_row_state(j, row);
}

void core_kill_left(struct jobs *j, struct sandbox *row, const char *why)
{
    if (!row)
        return;
    if (row->state == SB_CREATING && row->sandbox_id) {
        jobs_row_error(j, row, true, why); /* nobody makes it any more */
    } else if (row->pending && row->state != SB_CREATING) {
        row->pending = false;
        jobs_row_changed(j, row);
    }
}

static void kill_free(struct kill *k)
{
    core_call_cancel(k->j, k->client, k->call);
    net_timer_cancel(k->j->o.net, k->timer);
    core_create_kill_drop(k->j, k);
    free(k->sandbox_id);
    free(k->mark);
    free(k->place);
    free(k);
}

static void end(struct kill *k, const struct err *e)
{
    struct jobs *j = k->j;

    if (e)
        core_kill_left(j, row_of(k), e->text);
    core_rows_flush(j);
    for (size_t i = 0; i < j->priv->kills.n; i++)
        if (j->priv->kills.v[i] == k) {
            ARR_REMOVE(&j->priv->kills, i);
            break;
        }
    jobs_done(j, k->req_id, e, k->row);
    if (k->done)
        k->done(j, k->ctx, k->sandbox_id ? k->sandbox_id : "", e);
    kill_free(k);
}

static struct kill *kill_new(struct jobs *j, uint64_t req_id, const struct sandbox *row)
{
    struct kill *k = xcalloc(1, sizeof(*k));

    k->j = j;
    k->req_id = req_id;
    k->row = row->id;
    k->sandbox_id = xstrdup(row->sandbox_id);
    k->mark = xstrdup(row->mark);
    k->place = xstrdup(j->priv->place);
    k->had_count = j->priv->link.total_running >= 0;
    *ARR_PUSH(&j->priv->kills) = k;
    return k;
}

void core_kill_release(struct jobs *j)
{
    for (size_t i = 0; i < j->priv->kills.n; i++)
        kill_free(j->priv->kills.v[i]);
    ARR_RELEASE(&j->priv->kills);
    core_call_cancel(j, j->priv->proof_client, j->priv->proof_call);
    j->priv->proof_call = 0;
}

bool core_kill_runs(const struct jobs *j, const struct sandbox *row)
{
    const struct killall *a = j->priv->ka;

    for (size_t i = 0; i < j->priv->kills.n; i++) {
        const struct kill *k = j->priv->kills.v[i];
        if ((k->row && k->row == row->id) || (k->mark && str_eq(k->mark, row->mark)) ||
            (k->sandbox_id && str_eq(k->sandbox_id, row->sandbox_id)))
            return true;
    }
    for (size_t i = 0; core_killall_busy(j) && i < a->targets.n; i++)
        if (a->targets.v[i]->t.result < 3 && killall_row(a->targets.v[i]) == row)
            return true;
    return false;
}

/* --- delete and proof -------------------------------------------------------------- */

static void delete_it(struct kill *k);
static void prove(void *ctx);
static void ask(struct jobs *j);

static bool cannot_call(struct kill *k)
{
    struct err e = {0};

    if (k->j->e2b && str_eq(k->place, k->j->priv->place)) {
        k->client = k->j->e2b;
        return false;
    }
    err_set(&e, ERR_CONFLICT, "\"%s\": the account was changed while it was being killed; look "
            "at the list of the first one", k->sandbox_id ? k->sandbox_id : k->mark);
    end(k, &e);
    return true;
}

static void not_seen(struct kill *k, const char *why)
{
    struct err e = {0};

    if (clock_mono_ms() < k->until) {
        k->timer = net_timer(k->j->o.net, net_backoff_ms(k->looks++, AGAIN_MIN_MS, AGAIN_MAX_MS),
                             prove, k);
        return;
    }
    err_set(&e, ERR_NETWORK, "\"%s\" was told to go; whether it is gone could not be seen: %s",
            k->sandbox_id ? k->sandbox_id : k->mark, why);
    jobs_say(k->j, 2, k->row, "%s", e.text);
    end(k, &e);
}

static void gone(struct kill *k)
{
    struct sandbox *row = row_of(k);

    core_kill_gone(k->j, row);
    if (row && k->req_id)
        jobs_say(k->j, 0, row->id, "%s was killed", row->name ? row->name : k->sandbox_id);
    end(k, NULL);
}

static void again(void *ctx)
{
    struct kill *k = ctx;

    k->timer = 0;
    delete_it(k);
}

/* Told to go and there all the same. */
static void lives(struct kill *k)
{
    struct err e = {0};

    k->absent = 0;
    if (clock_mono_ms() < k->until) {
        k->timer = net_timer(k->j->o.net, net_backoff_ms(k->looks++, AGAIN_MIN_MS, AGAIN_MAX_MS),
                             again, k);
        return;
    }
    err_set(&e, ERR_SERVER, "\"%s\" was told to go and is still listed: try again, or end it at "
            "the provider", k->sandbox_id);
    jobs_say(k->j, 2, k->row, "%s", e.text);
    end(k, &e);
}

/* Where the list does not show paused ones. */
static void on_probed(void *ctx, const struct e2b_result *r)
{
    struct kill *k = ctx;

    k->call = 0;
    if (r->err.code == ERR_NOTFOUND)
        gone(k);
    else if (r->err.code)
        not_seen(k, r->err.text);
    else
        lives(k);
}

/* What this kill learns from a list that was asked for after its delete. */
static void learn(struct kill *k, const struct e2b_result *r)
{
    struct e2b_call_opts o = {.urgent = true, .give_up_ms = killall_look_ms(k->until)};

    if (r->err.code) {
        not_seen(k, r->err.text);
        return;
    }
    if (!k->sandbox_id) { /* a create that we were told of by another list */
        const struct sandbox *row = row_of(k);
        k->sandbox_id = xstrdup(row ? row->sandbox_id : NULL);
    }
    if (k->sandbox_id && kill_is_listed(r, k->sandbox_id, NULL))
        lives(k);
    else if (!kill_list_proves(r, k->had_count))
        not_seen(k, "the list of the service is not complete");
    else if (++k->absent < (r->pages > 1 ? 2 : 1)) /* pages may shift while rows go */
        prove(k);
    else if (r->err.text[0] && k->sandbox_id)
        k->call = e2b_get(k->client, k->sandbox_id, &o, on_probed, k);
    else
        gone(k);
}

/* One list proves for all that waited when it was asked for. */
static void on_list(void *ctx, const struct e2b_result *r)
{
    struct jobs *j = ctx;
    struct jobs_priv *p = j->priv;
    ARR(struct kill *) told = ARR_INIT;
    bool more = false;

    if (!r->err.code)
        core_poll_apply(j, r);
    p->proof_call = 0; /* not before: who asks while it is applied wants a newer one */
    for (size_t i = 0; i < p->kills.n; i++) {
        if (p->kills.v[i]->asked)
            *ARR_PUSH(&told) = p->kills.v[i];
        else
            more |= p->kills.v[i]->waits;
    }
    for (size_t i = 0; i < told.n; i++)
        told.v[i]->waits = told.v[i]->asked = false;
    for (size_t i = 0; i < told.n; i++)
        learn(told.v[i], r);
    ARR_RELEASE(&told);
    if (more)
        ask(j);
}

static void ask(struct jobs *j)
{
    struct jobs_priv *p = j->priv;
    struct e2b_call_opts o = {.urgent = true};
    int64_t until = 0;

    if (p->proof_call)
        return; /* that one may be older than the delete */
    for (size_t i = 0; i < p->kills.n; i++) {
        p->kills.v[i]->asked = p->kills.v[i]->waits;
        if (p->kills.v[i]->waits && p->kills.v[i]->until > until)
            until = p->kills.v[i]->until;
    }
    o.give_up_ms = killall_look_ms(until);
    p->proof_client = j->e2b;
    p->proof_call = e2b_list(j->e2b, &o, on_list, j);
}

static void prove(void *ctx)
{
    struct kill *k = ctx;

    k->timer = 0;
    if (!k->until)
        k->until = clock_mono_ms() + killall_wait_ms(k->j);
    if (cannot_call(k))
        return;
    k->waits = true;
    ask(k->j);
}

static void on_deleted(void *ctx, const struct e2b_result *r)
{
    struct kill *k = ctx;
    struct err e = r->err;

    k->call = 0;
    if (e.code == 0 || e.code == ERR_NOTFOUND) {
        prove(k);
        return;
    }
    err_wrap(&e, "\"%s\" was not killed", k->sandbox_id);
    jobs_say(k->j, 2, k->row, "%s", e.text);
    end(k, &e);
}

static void delete_it(struct kill *k)
{
    struct e2b_call_opts o = {.urgent = true, .give_up_ms = killall_wait_ms(k->j),
                              .try_ms = TRY_MS};

    if (!cannot_call(k))
        k->call = e2b_kill(k->client, k->sandbox_id, &o, on_deleted, k);
}

/* --- the look before ---------------------------------------------------------------- */

/* Is what answers to the id still what the row shows? */
static bool is_same(const struct sandbox *row, const struct e2b_sandbox *v)
{
    const char *mark = kv_get(v->meta, "cc-tui-mark");
    int64_t diff = v->started_at - row->started_at;

    if (row->mark)
        return str_eq(row->mark, mark);
    if (row->state != SB_RUNNING || !row->started_at || !v->started_at)
        return true; /* resuming starts a new run of the same sandbox */
    return diff > -SAME_START_MS && diff < SAME_START_MS;
}

static void on_looked(void *ctx, const struct e2b_result *r)
{
    struct kill *k = ctx;
    struct sandbox *row = row_of(k);
    struct err e = {0};

    k->call = 0;
    if (r->err.code == ERR_NOTFOUND) {
        prove(k);
    } else if (r->err.code || !r->n) {
        e = r->err;
        err_wrap(&e, "\"%s\" was not killed", k->sandbox_id);
        end(k, &e);
    } else if (row && !is_same(row, &r->v[0])) {
        err_set(&e, ERR_CONFLICT, "\"%s\" was not killed: it was started anew since it was "
                "listed; look again", k->sandbox_id);
        core_poll_soon(k->j, 0);
        end(k, &e);
    } else {
        delete_it(k);
    }
}

static void on_create_killed(void *ctx, const struct err *e, bool nothing)
{
    struct kill *k = ctx;

    if (e || nothing)
        end(k, e);
    else
        prove(k);
}

static bool refused(struct jobs *j, uint64_t req_id, const struct sandbox *row)
{
    const char *name = row->name ? row->name : "the sandbox";

    if (!core_row_live(row))
        core_done_err(j, req_id, row->id, ERR_CONFLICT, "\"%s\" is gone already", name);
    else if (core_kill_runs(j, row))
        core_done_err(j, req_id, row->id, ERR_BUSY, "\"%s\" is being killed already", name);
    else if (row->pending && row->state != SB_CREATING)
        core_done_err(j, req_id, row->id, ERR_BUSY, "\"%s\" is being worked on already", name);
    else
        return false;
    return true;
}

void core_kill(struct jobs *j, uint64_t req_id, uint64_t id)
{
    struct sandbox *row = jobs_row(j, id);
    struct e2b_call_opts o = {.urgent = true, .give_up_ms = LOOK_MS};
    struct kill *k;

    if (refused(j, req_id, row))
        return;
    k = kill_new(j, req_id, row);
    if (core_create_kill(j, row, on_create_killed, k))
        return;
    if (!row->sandbox_id) { /* its create is another process's, or of an earlier life */
        struct err e = {0};
        core_order_mark(j, row->mark);
        err_set(&e, ERR_BUSY, "\"%s\" has no sandbox yet that could be killed; it is killed when "
                "a list shows it", row->name ? row->name : row->mark);
        end(k, &e);
        return;
    }
    row->pending = true;
    jobs_row_changed(j, row);
    core_rows_flush(j);
    k->client = j->e2b;
    k->call = e2b_get(j->e2b, k->sandbox_id, &o, on_looked, k);
}

void core_kill_at_once(struct jobs *j, const struct sandbox *row, core_killed_fn done,
                       uint64_t ctx)
{
    struct kill *k = kill_new(j, 0, row);
    struct sandbox *mine = row_of(k);

    k->done = done;
    k->ctx = ctx;
    core_create_kill(j, row, NULL, NULL); /* what is made of it stops */
    if (mine && mine->state != SB_CREATING && !mine->pending) {
        mine->pending = true;
        jobs_row_changed(j, mine);
    }
    delete_it(k);
}
