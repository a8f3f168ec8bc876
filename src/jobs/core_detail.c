/* Details of single sandboxes: what no list says. One request after the other, a few in a
 * second, so that five hundred rows are no storm and what the service asks for (wait so
 * long) holds for everything here. And what it means when an id is unknown there. */
#include "core_priv.h"

#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

#define APART_MS 250
#define PAGE_MS 200 /* each page of a list counts as a request, too */
#define BURST_MS 1000

struct ask {
    struct jobs *j;
    uint64_t id, row; /* row: is it really gone? fn is not used then */
    char *sandbox_id;
    e2b_fn fn;
    void *ctx;
    struct e2b *client; /* of the call */
    uint64_t call;      /* 0 = waits */
};

/* --- the pace --------------------------------------------------------------------- */

int64_t pace_take(int64_t *next, int64_t now, int64_t cost)
{
    int64_t at = *next > now ? *next : now;

    *next = at + cost;
    return at - now;
}

void core_pace_list(struct jobs *j, int pages)
{
    int64_t now = clock_mono_ms(), *next = &j->priv->ask_next;

    pace_take(next, now, (int64_t)(pages > 0 ? pages : 1) * PAGE_MS);
    if (*next > now + BURST_MS * 10)
        *next = now + BURST_MS * 10; /* a very long list does not shut the door */
}

void core_pace_hold(struct jobs *j, int64_t ms)
{
    int64_t until = clock_mono_ms() + ms;

    if (ms > 0 && until > j->priv->quiet_until)
        j->priv->quiet_until = until;
}

/* --- asking ------------------------------------------------------------------------ */

static void ask_next(void *ctx);

static void wait_for(struct jobs *j, int64_t ms)
{
    if (!j->priv->ask_timer)
        j->priv->ask_timer = net_timer(j->o.net, ms, ask_next, j);
}

static void ask_free(struct ask *a)
{
    core_call_cancel(a->j, a->client, a->call);
    free(a->sandbox_id);
    free(a);
}

static size_t place_of(const struct jobs *j, uint64_t id)
{
    size_t i = 0;

    while (i < j->priv->asks.n && j->priv->asks.v[i]->id != id)
        i++;
    return i;
}

static struct ask *take(struct jobs *j, uint64_t id)
{
    size_t i = place_of(j, id);
    struct ask *a = i < j->priv->asks.n ? j->priv->asks.v[i] : NULL;

    if (a)
        ARR_REMOVE(&j->priv->asks, i);
    return a;
}

static struct ask *ask_new(struct jobs *j, const char *sandbox_id, bool first)
{
    struct ask *a = xcalloc(1, sizeof(*a));
    size_t n = j->priv->asks.n;

    a->j = j;
    a->id = ++j->priv->ask_ids;
    a->sandbox_id = xstrdup(sandbox_id);
    *ARR_PUSH(&j->priv->asks) = a;
    if (first && n) {
        memmove(j->priv->asks.v + 1, j->priv->asks.v, n * sizeof(*j->priv->asks.v));
        j->priv->asks.v[0] = a;
    }
    wait_for(j, 0);
    return a;
}

uint64_t jobs_ask(struct jobs *j, const char *sandbox_id, bool first, e2b_fn fn, void *ctx)
{
    struct ask *a = ask_new(j, sandbox_id, first);

    a->fn = fn;
    a->ctx = ctx;
    return a->id;
}

void jobs_ask_cancel(struct jobs *j, uint64_t id)
{
    struct ask *a = take(j, id);

    if (a)
        ask_free(a);
}

void core_ask_release(struct jobs *j)
{
    for (size_t i = 0; i < j->priv->asks.n; i++)
        ask_free(j->priv->asks.v[i]);
    ARR_RELEASE(&j->priv->asks);
    net_timer_cancel(j->o.net, j->priv->ask_timer);
    j->priv->ask_timer = 0;
}

static bool waits_for_proof(const struct sandbox *row)
{
    return row && row->unlisted && !row->vouched_at && core_row_live(row);
}

static void looked_up(struct jobs *j, uint64_t id, const struct e2b_result *r);

static void on_answer(void *ctx, const struct e2b_result *r)
{
    struct ask *a = ctx;
    struct jobs *j = a->j;

    a->call = 0;
    take(j, a->id);
    core_pace_hold(j, r->retry_after_ms);
    if (a->row)
        looked_up(j, a->row, r);
    else
        a->fn(a->ctx, r);
    ask_free(a);
}

/* The first one that waits; what a list has decided meanwhile is not asked any more. */
static struct ask *next_one(struct jobs *j)
{
    for (size_t i = 0; i < j->priv->asks.n; i++) {
        struct ask *a = j->priv->asks.v[i];

        if (a->call)
            continue;
        if (!a->row || waits_for_proof(jobs_row(j, a->row)))
            return a;
        ARR_REMOVE(&j->priv->asks, i);
        ask_free(a);
        i--;
    }
    return NULL;
}

static void ask_next(void *ctx)
{
    struct jobs *j = ctx;
    struct jobs_priv *p = j->priv;
    struct e2b_call_opts o = {.try_ms = 10000};
    struct ask *a = next_one(j);
    int64_t now = clock_mono_ms();
    int64_t from = p->quiet_until > p->ask_next ? p->quiet_until : p->ask_next;

    p->ask_timer = 0;
    if (!a || !j->e2b)
        return; /* with another account the rows and their sessions begin anew */
    if (from > now) {
        wait_for(j, from - now);
        return;
    }
    pace_take(&p->ask_next, now, APART_MS);
    a->client = j->e2b;
    a->call = e2b_get(a->client, a->sandbox_id, &o, on_answer, a);
    wait_for(j, APART_MS);
}

/* --- is it really gone? -------------------------------------------------------------- */

static void declare_gone(struct jobs *j, struct sandbox *row)
{
    struct reconcile_opts o = {.now = jobs_now(j), .time_unknown = !j->clock.server_ms};

    reconcile_gone(row, reconcile_why(row, &o), o.now);
    jobs_row_changed(j, row);
    core_row_state(j, row);
    core_row_say_gone(j, row);
}

static void looked_up(struct jobs *j, uint64_t id, const struct e2b_result *r)
{
    struct sandbox *row = jobs_row(j, id);

    if (!waits_for_proof(row) || (row->pending && !row->changing))
        return;
    if (r->err.code == ERR_NOTFOUND)
        declare_gone(j, row);
    else if (r->err.code == 0 && r->n)
        core_row_vouch(j, row, &r->v[0]);
    /* else the next list decides, as it would have without this */
}

void core_row_vanished(struct jobs *j, const struct sandbox *row)
{
    if (!row->id || !row->sandbox_id || row->vouched_at || row->pending)
        return;
    for (size_t i = 0; i < j->priv->asks.n; i++)
        if (j->priv->asks.v[i]->row == row->id)
            return;
    ask_new(j, row->sandbox_id, false)->row = row->id;
}

void jobs_row_missing(struct jobs *j, struct sandbox *row)
{
    if (!core_row_live(row) || (row->pending && !row->changing))
        return;
    if (row->unlisted && !row->vouched_at) {
        declare_gone(j, row);
        return;
    }
    row->unlisted = true;
    jobs_row_changed(j, row);
    core_poll_soon(j, 0);
}
