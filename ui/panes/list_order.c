/* The order of the list's rows. It is made when the user asks for one; from then on rows only
 * come and go, and those that stay never change places, so nothing moves under the cursor. */
#include "list_priv.h"

#include <cct/util/xalloc.h>
#include <stdlib.h>

struct keyed {
    const struct sandbox *s;
    size_t nth;
};
/* qsort hands nothing along; main thread alone sorts. */
static enum sort sort_by;
static bool sort_inverted;

static int compare(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    int d = sort_compare(sort_by, sort_inverted, x->s, y->s);
    return d ? d : x->nth < y->nth ? -1 : x->nth > y->nth;
}

static void sort_all(struct order *o, const struct model *m)
{
    struct keyed *v = xcalloc(m->n_sandboxes + 1, sizeof(*v));
    for (size_t i = 0; i < m->n_sandboxes; i++)
        v[i] = (struct keyed){&m->sandboxes[i], i};
    sort_by = o->by;
    sort_inverted = o->inverted;
    qsort(v, m->n_sandboxes, sizeof(*v), compare);
    ARR_CLEAR(&o->ids);
    for (size_t i = 0; i < m->n_sandboxes; i++)
        *ARR_PUSH(&o->ids) = v[i].s->id;
    free(v);
}

size_t order_count(const struct order *o, const struct model *m)
{
    return o->by == SORT_MADE ? m->n_sandboxes : o->ids.n;
}

const struct sandbox *order_at(const struct order *o, const struct model *m, size_t i)
{
    if (o->by == SORT_MADE)
        return &m->sandboxes[o->inverted ? m->n_sandboxes - 1 - i : i];
    return model_sandbox(m, o->ids.v[i]);
}

/* In front of the first row that it comes before. */
static void insert(struct order *o, const struct model *m, const struct sandbox *s)
{
    size_t i = 0;
    while (i < o->ids.n &&
           sort_compare(o->by, o->inverted, s, model_sandbox(m, o->ids.v[i])) >= 0)
        i++;
    *ARR_INSERT(&o->ids, i) = s->id;
}

static void insert_new(struct order *o, const struct model *m)
{
    struct map *known = map_new();
    for (size_t i = 0; i < o->ids.n; i++)
        map_put_id(known, o->ids.v[i], o);
    for (size_t i = 0; i < m->n_sandboxes; i++)
        if (!map_get_id(known, m->sandboxes[i].id))
            insert(o, m, &m->sandboxes[i]);
    map_free(known, NULL);
}

void order_by(struct order *o, enum sort by, bool inverted)
{
    o->by = by;
    o->inverted = inverted;
    o->made = false;
    o->rev++;
}

void order_update(struct order *o, const struct model *m)
{
    size_t keep = 0;
    if (o->by == SORT_MADE || (o->made && o->seen == m->shape_rev))
        return;
    o->seen = m->shape_rev;
    o->rev++;
    if (!o->made) {
        sort_all(o, m);
        o->made = m->n_sandboxes > 0; /* the stored rows come together */
        return;
    }
    for (size_t i = 0; i < o->ids.n; i++)
        if (model_sandbox(m, o->ids.v[i]))
            o->ids.v[keep++] = o->ids.v[i];
    o->ids.n = keep;
    if (keep != m->n_sandboxes)
        insert_new(o, m);
}
