/* The line of cells: see cellline.h. */
#include "cellline.h"

#include "width_table.h"
#include <cct/text/width.h>
#include <cct/util/utf8.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

#define KEEP_BYTES (256u << 10) /* memory kept from line to line */
#define RUNS_MAX (64u << 10)    /* changes of attribute on one line; more are ignored */
#define DOTTED_CIRCLE "\xE2\x97\x8C"

bool cellline_attr_same(const struct text_attr *a, const struct text_attr *b)
{
    return a->fg == b->fg && a->bg == b->bg && a->flags == b->flags;
}

void cellline_release(struct cellline *l)
{
    free(l->p);
    free(l->flat);
    free(l->head_runs.v);
    free(l->tail_runs.v);
    free(l->flat_runs.v);
    memset(l, 0, sizeof(*l));
}

void cellline_clear(struct cellline *l)
{
    if (l->cap > KEEP_BYTES || l->flat_cap > KEEP_BYTES ||
        (l->head_runs.cap + l->tail_runs.cap + l->flat_runs.cap) * sizeof(struct text_run) >
            KEEP_BYTES) {
        cellline_release(l);
        return;
    }
    l->head = l->tail = l->col = l->mark_end = 0;
    l->half = l->cut = false;
    l->head_runs.n = l->tail_runs.n = 0;
}

static char *tail_at(const struct cellline *l)
{
    return l->p + l->cap - l->tail;
}

static void run_push(struct run_vec *r, size_t at, const struct text_attr *a)
{
    if (r->n == r->cap) {
        r->cap = r->cap ? r->cap * 2 : 16;
        r->v = xrealloc(r->v, r->cap * sizeof(*r->v));
    }
    r->v[r->n].at = (uint32_t)at;
    r->v[r->n++].attr = *a;
}

static struct text_attr run_last(const struct run_vec *r)
{
    return r->n ? r->v[r->n - 1].attr : ATTR_DEFAULT;
}

/* Room for n more bytes between head and tail; false when the line is full. */
static bool make_room(struct cellline *l, size_t n)
{
    size_t used = l->head + l->tail;
    if (l->cut)
        return false;
    if (used + n > CELLLINE_MAX_BYTES) {
        l->cut = true;
        return false;
    }
    if (used + n <= l->cap)
        return true;
    size_t cap = l->cap ? l->cap * 2 : 256;
    while (cap < used + n)
        cap *= 2;
    if (cap > LIM_LINE_BYTES)
        cap = LIM_LINE_BYTES;
    l->p = xrealloc(l->p, cap);
    if (l->tail)
        memmove(l->p + cap - l->tail, l->p + l->cap - l->tail, l->tail);
    l->cap = cap;
    return true;
}

/* What is written from here on has attribute a. */
static void set_head_attr(struct cellline *l, const struct text_attr *a)
{
    struct run_vec *r = &l->head_runs;
    struct text_attr last = run_last(r);
    if (cellline_attr_same(&last, a))
        return;
    if (r->n && r->v[r->n - 1].at == l->head)
        r->n--; /* nothing was written with it */
    last = run_last(r);
    if (!cellline_attr_same(&last, a) && r->n + l->tail_runs.n < RUNS_MAX)
        run_push(r, l->head, a);
}

/* Drop the runs that no longer cover a byte after the cursor; the nearest then
 * begins at the cursor. */
static void trim_tail_runs(struct cellline *l)
{
    struct run_vec *r = &l->tail_runs;
    while (r->n >= 2 && r->v[r->n - 2].at >= l->tail)
        r->n--;
    if (l->tail == 0)
        r->n = 0;
    else if (r->n)
        r->v[r->n - 1].at = (uint32_t)l->tail;
}

/* Bytes of the character and its marks after the cursor; *w its cells. Regional
 * indicators count alone here: a terminal's cursor moves so. */
static size_t unit_after(const struct cellline *l, unsigned *w)
{
    const char *s = tail_at(l);
    uint32_t cp;
    size_t n = utf8_decode(s, l->tail, &cp), k;
    *w = (unsigned)text_cp_width(cp);
    for (; n < l->tail && (unsigned char)s[n] >= 0x80; n += k) {
        k = utf8_decode(s + n, l->tail - n, &cp);
        if (text_cp_width(cp) != 0)
            break;
    }
    return n;
}

/* The same before the cursor (head > 0); *marks = marks on it. */
static size_t unit_before(const struct cellline *l, unsigned *w, unsigned *marks)
{
    size_t at = l->head;
    *marks = 0;
    for (;;) {
        size_t from = at;
        uint32_t cp;
        do
            from--;
        while (from > 0 && ((unsigned char)l->p[from] & 0xC0) == 0x80);
        utf8_decode(l->p + from, at - from, &cp);
        at = from;
        *w = (unsigned)text_cp_width(cp);
        if (*w != 0 || at == 0)
            return l->head - at;
        ++*marks;
    }
}

/* Remove w cells after the cursor; a wide character cut in half leaves a space. */
static void eat_cells(struct cellline *l, size_t w)
{
    while (w > 0 && l->tail > 0) {
        const char *t = tail_at(l);
        unsigned uw;
        if ((t[0] & 0x80) == 0 && (l->tail == 1 || (t[1] & 0x80) == 0)) {
            l->tail--;
            w--;
            continue;
        }
        l->tail -= unit_after(l, &uw);
        if (uw > w) {
            l->tail++;
            *tail_at(l) = ' ';
            break;
        }
        w -= uw;
    }
    trim_tail_runs(l);
}

/* A cursor inside a wide character: before anything happens there it becomes
 * two spaces (never longer than the character). */
static void split_half(struct cellline *l)
{
    if (!l->half)
        return;
    l->half = false;
    unsigned w;
    struct text_attr a = run_last(&l->tail_runs);
    l->tail -= unit_after(l, &w);
    l->tail++;
    *tail_at(l) = ' ';
    set_head_attr(l, &a);
    l->p[l->head++] = ' ';
    trim_tail_runs(l);
}

bool cellline_ascii(struct cellline *l, const char *s, size_t n, const struct text_attr *a)
{
    size_t room = CELLLINE_MAX_BYTES - l->head - l->tail;
    bool fits = n <= room;
    if (!fits && l->tail && n > 1) {
        /* each byte may free what it overwrites: the limit is met byte by byte */
        while (n > 0 && cellline_ascii(l, s, 1, a))
            s++, n--;
        return n == 0;
    }
    if (!fits)
        n = room;
    if (!make_room(l, n))
        return false;
    split_half(l);
    set_head_attr(l, a);
    memcpy(l->p + l->head, s, n);
    l->head += n;
    l->col += n;
    if (l->tail)
        eat_cells(l, n);
    if (!fits)
        l->cut = true;
    return fits;
}

bool cellline_char(struct cellline *l, const char *s, size_t n, unsigned w,
                   const struct text_attr *a)
{
    if (!make_room(l, n))
        return false;
    split_half(l);
    set_head_attr(l, a);
    for (size_t i = 0; i < n; i++) /* at most 4: no call */
        l->p[l->head++] = s[i];
    l->col += w;
    if (l->tail)
        eat_cells(l, w);
    return true;
}

bool cellline_mark(struct cellline *l, const char *s, size_t n, const struct text_attr *a)
{
    split_half(l);
    if (l->head == 0) {
        /* a mark needs something to sit on, or it would sit on a border */
        if (!cellline_char(l, DOTTED_CIRCLE, sizeof(DOTTED_CIRCLE) - 1, 1, a))
            return false;
        l->marks = 0;
    } else if (l->mark_end != l->head) {
        unsigned w;
        unit_before(l, &w, &l->marks);
    }
    l->mark_end = l->head;
    if (l->marks >= LIM_MARKS_PER_CELL)
        return true;
    if (!make_room(l, n))
        return false;
    memcpy(l->p + l->head, s, n);
    l->head += n;
    l->mark_end = l->head;
    l->marks++;
    return true;
}

bool cellline_tab(struct cellline *l, const struct text_attr *a)
{
    size_t to = (l->col / 8 + 1) * 8;
    split_half(l);
    while (l->col < to && l->tail > 0) {
        unsigned w;
        size_t n = unit_after(l, &w);
        struct text_attr ta = run_last(&l->tail_runs);
        set_head_attr(l, &ta);
        memmove(l->p + l->head, tail_at(l), n);
        l->head += n;
        l->tail -= n;
        l->col += w;
        trim_tail_runs(l);
    }
    return l->col >= to || cellline_ascii(l, "        ", to - l->col, a);
}

/* Move everything from byte `at` of the head to after the cursor. */
static void move_back(struct cellline *l, size_t at)
{
    struct run_vec *h = &l->head_runs, *t = &l->tail_runs;
    size_t n = l->head - at, total = l->head + l->tail;
    if (n == 0)
        return;
    while (h->n && h->v[h->n - 1].at >= l->head)
        h->n--; /* covers nothing */
    for (;;) {
        struct text_attr a = run_last(h), next = run_last(t);
        size_t from = h->n && h->v[h->n - 1].at > at ? h->v[h->n - 1].at : at;
        bool full = h->n + t->n > RUNS_MAX && t->n;
        if (t->n && (cellline_attr_same(&a, &next) || full))
            t->v[t->n - 1].at = (uint32_t)(total - from);
        else
            run_push(t, total - from, &a);
        if (h->n && h->v[h->n - 1].at >= at)
            h->n--;
        if (from == at)
            break;
    }
    memmove(tail_at(l) - n, l->p + at, n);
    l->tail += n;
    l->head = at;
    l->mark_end = 0;
}

void cellline_home(struct cellline *l)
{
    move_back(l, 0);
    l->col = 0;
    l->half = false;
}

void cellline_back(struct cellline *l)
{
    if (l->col == 0)
        return;
    l->col--;
    if (l->half) {
        l->half = false;
        return;
    }
    unsigned w, marks;
    move_back(l, l->head - unit_before(l, &w, &marks));
    l->half = w == 2;
}

void cellline_erase_end(struct cellline *l)
{
    split_half(l);
    l->tail = 0;
    l->tail_runs.n = 0;
}

/* Runs of head and tail in one list, equal neighbours joined. */
static void flatten_runs(struct cellline *l)
{
    struct run_vec *f = &l->flat_runs;
    size_t total = l->head + l->tail;
    f->n = 0;
    for (size_t i = 0; i < l->head_runs.n; i++)
        if (l->head_runs.v[i].at < l->head)
            run_push(f, l->head_runs.v[i].at, &l->head_runs.v[i].attr);
    for (size_t i = l->tail_runs.n; i-- > 0;) {
        struct text_attr last = run_last(f);
        size_t at = total - l->tail_runs.v[i].at;
        if (!cellline_attr_same(&last, &l->tail_runs.v[i].attr))
            run_push(f, at, &l->tail_runs.v[i].attr);
    }
    struct text_attr last = run_last(f), plain = ATTR_DEFAULT;
    if (l->cut && !cellline_attr_same(&last, &plain))
        run_push(f, total, &plain); /* the mark is ours, not the text's */
}

const char *cellline_text(struct cellline *l, size_t *len, const struct text_run **runs,
                          size_t *n_runs)
{
    size_t total = l->head + l->tail, mark = l->cut ? sizeof(CELLLINE_CUT_MARK) - 1 : 0;
    flatten_runs(l);
    *runs = l->flat_runs.v;
    *n_runs = l->flat_runs.n;
    *len = total + mark;
    if (l->tail == 0 && mark == 0)
        return total ? l->p : "";
    if (l->flat_cap < total + mark) {
        l->flat_cap = total + mark + total / 4;
        free(l->flat);
        l->flat = xmalloc(l->flat_cap);
    }
    if (l->head)
        memcpy(l->flat, l->p, l->head);
    if (l->tail)
        memcpy(l->flat + l->head, tail_at(l), l->tail);
    if (mark)
        memcpy(l->flat + total, CELLLINE_CUT_MARK, mark);
    return l->flat;
}
