/* Load of the sandboxes that run: asked for by the hundred while somebody looks at the
 * screen, after a good list only, and rarely where a service has no such figures. The
 * screen is told what differs in what it shows. */
#include "core_priv.h"

#include <cct/e2b/look.h>
#include <cct/util/clock.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

enum { EVERY_MS = 5000, MAX_WAIT_MS = 60000, MISSING_MS = 600000, FORGET_MS = 60000 };

struct metrics {
    uint64_t timer, call;
    struct e2b *client;   /* of the call */
    bool idle;            /* nobody looks */
    int attempt;
    int64_t next_at;      /* mono: not before */
    int64_t good_at;      /* mono, of the last answer */
};

static struct metrics *metrics_of(struct jobs *j)
{
    if (!j->priv->metrics)
        j->priv->metrics = xcalloc(1, sizeof(struct metrics));
    return j->priv->metrics;
}

void core_metrics_release(struct jobs *j)
{
    struct metrics *m = j->priv->metrics;

    if (!m)
        return;
    net_timer_cancel(j->o.net, m->timer);
    core_call_cancel(j, m->client, m->call);
    free(m);
    j->priv->metrics = NULL;
}

/* --- rows --------------------------------------------------------------------------- */

static bool is_asked(const struct sandbox *row)
{
    return row->id && row->sandbox_id && row->state == SB_RUNNING && !row->unlisted;
}

static int percent(int64_t part, int64_t whole)
{
    return part < 0 || whole <= 0 ? -1 : part >= whole ? 100 : (int)(part * 100 / whole);
}

static int mib(int64_t bytes)
{
    int64_t v = bytes / (1 << 20);

    return bytes < 0 || v > 1 << 30 ? -1 : (int)v;
}

struct sandbox_load core_metrics_load(const struct e2b_metric *m)
{
    struct sandbox_load load = {.known = true,
                                .cpu_pct = m->cpu_pct < 0 ? -1 : m->cpu_pct > 100 ? 100
                                                               : (int)(m->cpu_pct + 0.5),
                                .mem_pct = percent(m->mem_used, m->mem_total),
                                .disk_used_mb = mib(m->disk_used),
                                .disk_total_mb = mib(m->disk_total)};

    if (load.disk_used_mb >= 0) /* as it is shown: a tenth of a GiB */
        load.disk_used_mb = load.disk_used_mb / 102 * 102;
    return load;
}

static bool same_load(const struct sandbox_load *a, const struct sandbox_load *b)
{
    return a->known == b->known && a->cpu_pct == b->cpu_pct && a->mem_pct == b->mem_pct &&
           a->disk_used_mb == b->disk_used_mb && a->disk_total_mb == b->disk_total_mb;
}

static void set_load(struct jobs *j, struct sandbox *row, const struct sandbox_load *load)
{
    bool was = row->load.known;

    if (same_load(&row->load, load))
        return;
    row->load = *load;
    if (was == load->known)
        core_row_figures(j, row);
    else
        core_row_shown(j, row);
}

static void forget(struct jobs *j, bool all)
{
    static const struct sandbox_load none = {.known = false};

    for (size_t i = 0; i < j->table.n; i++)
        if (all || !is_asked(&j->table.v[i]))
            set_load(j, &j->table.v[i], &none);
}

static struct sandbox *row_of(struct jobs *j, const char *sandbox_id)
{
    for (size_t i = 0; i < j->table.n; i++)
        if (is_asked(&j->table.v[i]) && strcmp(j->table.v[i].sandbox_id, sandbox_id) == 0)
            return &j->table.v[i];
    return NULL;
}

/* --- asking ------------------------------------------------------------------------- */

static void ask(void *ctx);

static void arm(struct jobs *j)
{
    struct metrics *m = metrics_of(j);
    int64_t now = clock_mono_ms();

    if (!m->timer && !m->call && !m->idle)
        m->timer = net_timer(j->o.net, m->next_at > now ? m->next_at - now : 0, ask, j);
}

/* 404: this service has none. Whatever else it is, it is not the user's concern. */
static int64_t wait_after(struct metrics *m, const struct e2b_result *r)
{
    int64_t wait;

    if (r->err.code == ERR_NOTFOUND || r->err.code == ERR_PROTO || r->err.code == ERR_INVALID ||
        r->err.code == ERR_AUTH)
        return MISSING_MS;
    wait = net_backoff_ms(m->attempt++, EVERY_MS * 2, MAX_WAIT_MS);
    return r->retry_after_ms > wait ? r->retry_after_ms : wait;
}

/* The next round begins with the next good list: no list, no questions. */
static void on_metrics(void *ctx, const struct e2b_result *r)
{
    struct jobs *j = ctx;
    struct metrics *m = metrics_of(j);
    int64_t now = clock_mono_ms();

    m->call = 0;
    if (r->err.code) {
        m->next_at = now + wait_after(m, r);
        if (now - m->good_at > FORGET_MS)
            forget(j, true);
        return;
    }
    m->attempt = 0;
    m->good_at = now;
    m->next_at = now + EVERY_MS;
    for (size_t i = 0; i < r->n_metrics; i++) {
        struct sandbox *row = row_of(j, r->metrics[i].sandbox_id);
        struct sandbox_load load = core_metrics_load(&r->metrics[i]);

        if (row)
            set_load(j, row, &load);
    }
}

static void ask(void *ctx)
{
    struct jobs *j = ctx;
    struct metrics *m = metrics_of(j);
    ARR(const char *) ids = ARR_INIT;

    m->timer = 0;
    for (size_t i = 0; i < j->table.n; i++)
        if (is_asked(&j->table.v[i]))
            *ARR_PUSH(&ids) = j->table.v[i].sandbox_id;
    if (ids.n && !m->idle && j->e2b) {
        m->client = j->e2b;
        m->call = e2b_metrics(m->client, ids.v, ids.n, NULL, on_metrics, j);
    }
    ARR_RELEASE(&ids);
}

void core_metrics_listed(struct jobs *j)
{
    if (!j->o.follow_all) /* commands show none */
        return;
    forget(j, false);
    arm(j);
}

void core_metrics_active(struct jobs *j, bool active)
{
    struct metrics *m = metrics_of(j);

    m->idle = !active;
    if (m->idle) {
        net_timer_cancel(j->o.net, m->timer);
        m->timer = 0;
    }
}
