/* The model's rows: which there are, which are in view, and what they add up to. A change costs
 * what it changes, however many rows stand beside it. */
#include "model_priv.h"

#include <cct/util/arr.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

#define NANO 1e9
#define MOST_USD 1e6 /* an hour: as much as a rate that is out of its mind may add */

static struct sandbox *row(const struct model *m, uint64_t id)
{
    uintptr_t at = (uintptr_t)map_get_id(m->priv->index, id);
    return at ? &m->sandboxes[at - 1] : NULL;
}

const struct sandbox *model_sandbox(const struct model *m, uint64_t id)
{
    return row(m, id);
}

bool model_in_view(const struct model *m, const struct sandbox *s)
{
    return m->all_projects || s->foreign || !m->project || !s->project || !*s->project ||
           str_eq(s->project, m->project);
}

/* --- sums ------------------------------------------------------------------------------- */

static int64_t nano(double usd)
{
    usd = usd < MOST_USD ? usd : MOST_USD;
    return (int64_t)(usd * NANO + 0.5);
}

/* The row's part, added, or with sign -1 taken out as it was added. */
static void tally(struct model *m, const struct sandbox *s, bool in_view, int sign)
{
    struct tally *t = &m->priv->tally;
    size_t one = (size_t)sign; /* wraps: -1 takes one away */
    if (!in_view) {
        bool live = s->state != SB_KILLED && (s->state != SB_ERROR || s->vm_up);
        t->elsewhere += live ? one : 0;
        return;
    }
    t->state[s->state] += one;
    t->unpriced += sandbox_is_unpriced(s) ? one : 0;
    t->nano_usd += sign * nano(sandbox_usd_per_hour(s));
    if (s->state != SB_RUNNING)
        return;
    if (s->agent == AG_ASKS)
        t->asks += one;
    else if (s->agent == AG_WORKING || s->agent == AG_STARTING)
        t->working += one;
    else if (s->agent == AG_IDLE || s->agent == AG_EXITED)
        t->idle += one;
}

static void tally_all(struct model *m)
{
    memset(&m->priv->tally, 0, sizeof(m->priv->tally));
    for (size_t i = 0; i < m->n_sandboxes; i++)
        tally(m, &m->sandboxes[i], model_in_view(m, &m->sandboxes[i]), 1);
}

size_t model_elsewhere(const struct model *m)
{
    return m->priv->tally.elsewhere;
}

void model_counts(const struct model *m, size_t by_state[SB_STATE_COUNT], size_t *asks,
                  size_t *working, size_t *idle)
{
    const struct tally *t = &m->priv->tally;
    memcpy(by_state, t->state, sizeof(t->state));
    *asks = t->asks;
    *working = t->working;
    *idle = t->idle;
}

double model_usd_per_hour(const struct model *m, size_t *unpriced)
{
    if (unpriced)
        *unpriced = m->priv->tally.unpriced;
    return (double)m->priv->tally.nano_usd / NANO;
}

/* --- changes ------------------------------------------------------------------------------ */

static void shape_changed(struct model *m)
{
    m->shape_rev++;
    m->priv->shaped = ++m->priv->changes;
}

static void row_changed(struct model *m, uint64_t id)
{
    m->priv->changed[m->priv->changes++ % MODEL_CHANGES] = id;
}

bool model_changes(const struct model *m, uint64_t *since, uint64_t ids[MODEL_CHANGES], size_t *n)
{
    const struct model_priv *p = m->priv;
    uint64_t from = *since;
    *n = 0;
    *since = p->changes;
    if (from < p->shaped || p->changes - from > MODEL_CHANGES)
        return false;
    for (; from < p->changes; from++)
        ids[(*n)++] = p->changed[from % MODEL_CHANGES];
    return true;
}

void model_rows_view(struct model *m)
{
    tally_all(m);
    shape_changed(m);
    m->sandboxes_rev++;
}

/* Rows often come as they stand: the one behind the last one is tried first. */
static struct sandbox *row_behind(const struct model *m, uint64_t id, size_t *at)
{
    struct sandbox *r = *at < m->n_sandboxes ? &m->sandboxes[*at] : NULL;
    if (!r || r->id != id)
        r = row(m, id);
    *at = r ? (size_t)(r - m->sandboxes) + 1 : *at;
    return r;
}

static void put(struct model *m, struct sandbox *s, size_t *at)
{
    struct sandbox *old = row_behind(m, s->id, at);
    if (old) {
        bool before = model_in_view(m, old), now = model_in_view(m, s);
        uint64_t rev = old->rev;
        tally(m, old, before, -1);
        sandbox_release(old);
        *old = *s;
        old->rev = rev + 1;
        tally(m, old, now, 1);
        row_changed(m, old->id);
        if (before != now)
            shape_changed(m);
    } else {
        arr_grow((void **)&m->sandboxes, &m->priv->cap_sandboxes, m->n_sandboxes + 1,
                 sizeof(*m->sandboxes));
        m->sandboxes[m->n_sandboxes] = *s;
        m->sandboxes[m->n_sandboxes].rev = 1;
        tally(m, s, model_in_view(m, s), 1);
        map_put_id(m->priv->index, s->id, (void *)(uintptr_t)(m->n_sandboxes + 1));
        m->n_sandboxes++;
        shape_changed(m);
    }
}

/* A whole table: rows it does not name were forgotten. */
static void drop_missing(struct model *m, const struct ev_sandboxes *ev)
{
    struct map *named = map_new();
    size_t keep = 0, n = m->n_sandboxes;
    for (size_t i = 0; i < ev->n; i++)
        map_put_id(named, ev->v[i].id, named);
    for (size_t i = 0; i < n; i++) {
        if (map_get_id(named, m->sandboxes[i].id)) {
            m->sandboxes[keep++] = m->sandboxes[i];
            continue;
        }
        model_forget(m, m->sandboxes[i].id);
        sandbox_release(&m->sandboxes[i]);
    }
    map_free(named, NULL);
    if (keep == n)
        return;
    m->n_sandboxes = keep;
    map_free(m->priv->index, NULL);
    m->priv->index = map_new();
    for (size_t i = 0; i < keep; i++)
        map_put_id(m->priv->index, m->sandboxes[i].id, (void *)(uintptr_t)(i + 1));
    tally_all(m);
    shape_changed(m);
}

void model_rows_apply(struct model *m, struct ev_sandboxes *ev)
{
    size_t at = 0;
    if (ev->full)
        drop_missing(m, ev);
    for (size_t i = 0; i < ev->n; i++)
        put(m, &ev->v[i], &at);
    ev->n = 0; /* the model has them */
    if (ev->figures)
        m->figures_rev++;
    else
        m->sandboxes_rev++;
}
