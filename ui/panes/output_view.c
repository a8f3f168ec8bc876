/* Positions in a transcript: which rows there are, and where the picture begins. */
#include "output_priv.h"

#include <string.h>

/* --- rows of items, cached ------------------------------------------------------- */

struct cached *view_cached(struct view *v, const struct transcript *t, size_t i)
{
    /* items dropped in front, or older ones loaded there, move the window */
    if (v->cache_base != t->base) {
        size_t keep = 0;
        if (t->base > v->cache_base && t->base - v->cache_base < v->cache.n) {
            size_t gone = (size_t)(t->base - v->cache_base);
            keep = v->cache.n - gone;
            memmove(v->cache.v, v->cache.v + gone, keep * sizeof(*v->cache.v));
        }
        uint64_t fresh = t->base < v->cache_base ? v->cache_base - t->base : 0;
        if (fresh > 0 && fresh <= t->n) { /* in front: what is known of the others holds */
            keep = v->cache.n < t->n - fresh ? v->cache.n : t->n - (size_t)fresh;
            while (v->cache.n < keep + fresh)
                ARR_PUSH(&v->cache);
            memmove(v->cache.v + fresh, v->cache.v, keep * sizeof(*v->cache.v));
            for (size_t k = 0; k < fresh; k++)
                v->cache.v[k] = (struct cached){.fold = -1};
            keep += (size_t)fresh;
        }
        v->cache.n = keep;
        v->cache_base = t->base;
    }
    while (v->cache.n < t->n) {
        ARR_PUSH(&v->cache)->fold = -1;
    }
    return &v->cache.v[i];
}

bool view_folded(const struct cached *c, const struct item *it)
{
    return rows_foldable(it) && (c->fold >= 0 ? c->fold == 1 : rows_folded_by_default(it));
}

static size_t item_rows(struct view *v, const struct transcript *t, size_t i)
{
    struct cached *c = view_cached(v, t, i);
    const struct item *it = &t->v[i];
    if (!c->rows || c->rev != it->rev) {
        c->rows = (uint32_t)rows_count(it, &v->style, view_folded(c, it));
        c->rev = it->rev;
    }
    return c->rows;
}

void view_set_style(struct view *v, const struct output *o)
{
    struct row_style st = {o->w, o->wrap, o->times && !o->bare, o->ui};
    v->style.ui = o->ui;
    if (st.w == v->style.w && st.wrap == v->style.wrap && st.times == v->style.times)
        return;
    v->style = st;
    for (size_t i = 0; i < v->cache.n; i++)
        v->cache.v[i].rows = 0;
}

/* --- positions -------------------------------------------------------------------- */

struct pos view_clamp(struct view *v, const struct transcript *t, struct pos p)
{
    if (t->n == 0)
        return (struct pos){t->base, 0};
    if (p.item < t->base)
        return (struct pos){t->base, 0};
    if (p.item >= t->base + t->n)
        p = (struct pos){t->base + t->n - 1, SIZE_MAX};
    size_t n = item_rows(v, t, (size_t)(p.item - t->base));
    if (p.row >= n)
        p.row = n ? n - 1 : 0;
    return p;
}

struct pos view_move(struct view *v, const struct transcript *t, struct pos p, long by)
{
    p = view_clamp(v, t, p);
    while (by > 0 && t->n) {
        size_t n = item_rows(v, t, (size_t)(p.item - t->base));
        size_t room = n - 1 - p.row;
        if ((size_t)by <= room) {
            p.row += (size_t)by;
            return p;
        }
        if (p.item + 1 >= t->base + t->n)
            return (struct pos){p.item, n - 1};
        by -= (long)room + 1;
        p = (struct pos){p.item + 1, 0};
    }
    while (by < 0 && t->n) {
        if ((size_t)-by <= p.row) {
            p.row -= (size_t)-by;
            return p;
        }
        if (p.item <= t->base)
            return (struct pos){t->base, 0};
        by += (long)p.row + 1;
        p.item--;
        p.row = item_rows(v, t, (size_t)(p.item - t->base)) - 1;
    }
    return p;
}

struct pos view_last(struct view *v, const struct transcript *t)
{
    return view_clamp(v, t, (struct pos){UINT64_MAX, SIZE_MAX});
}

bool pos_before(struct pos a, struct pos b)
{
    return a.item < b.item || (a.item == b.item && a.row < b.row);
}

uint64_t view_rows_after(struct view *v, const struct transcript *t, struct pos p)
{
    uint64_t n = 0;
    for (size_t i = (size_t)(p.item - t->base); i < t->n; i++)
        n += item_rows(v, t, i);
    return n - p.row - (t->n ? 1 : 0);
}

uint64_t view_rows(struct view *v, const struct transcript *t)
{
    uint64_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        n += item_rows(v, t, i);
    return n;
}

/* The picture's first row, given follow or the anchor. */
void view_settle(struct output *o, struct view *v, const struct transcript *t)
{
    int h = o->h > 0 ? o->h : 1;
    struct pos last = view_last(v, t), lowest = view_move(v, t, last, -(h - 1));
    if (v->follow) {
        v->cur = last;
        v->top = lowest;
        return;
    }
    v->cur = view_clamp(v, t, v->cur);
    v->top = view_clamp(v, t, v->top);
    if (pos_before(lowest, v->top))
        v->top = lowest;
    if (pos_before(v->cur, v->top))
        v->top = v->cur;
    struct pos end = view_move(v, t, v->top, h - 1);
    if (pos_before(end, v->cur))
        v->top = view_move(v, t, v->cur, -(h - 1));
    view_keep_place(v, t);
}

static const struct item *item_at(const struct transcript *t, struct pos p)
{
    uint64_t i = p.item > t->base ? p.item - t->base : 0;
    return &t->v[i < t->n ? i : t->n - 1];
}

void view_keep_place(struct view *v, const struct transcript *t)
{
    const struct item *top = item_at(t, v->top), *cur = item_at(t, v->cur);
    v->top_offset = top->offset;
    v->top_index = top->index;
    v->cur_offset = cur->offset;
    v->cur_index = cur->index;
}

void view_end_follow(struct view *v, const struct transcript *t)
{
    if (v->follow)
        v->seen = t ? view_last(v, t) : (struct pos){0, 0};
    v->follow = false;
}

uint64_t view_fresh(struct view *v, const struct transcript *t)
{
    return t->n ? view_rows_after(v, t, view_clamp(v, t, v->seen)) : 0;
}

void view_fold_changed(struct view *v, uint64_t item)
{
    if (v->seen.item == item)
        v->seen.row = SIZE_MAX;
}
