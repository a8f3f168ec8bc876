/* Search in the output: matches are marked, the next one is found, folds open for it. */
#include "output_priv.h"

#include <cct/text/width.h>
#include <string.h>
#include <strings.h>

/* Same letters, any case, unless the pattern has a capital of its own. */
static const char *find_match(const char *hay, size_t len, const char *pat)
{
    size_t n = strlen(pat);
    bool exact = false;
    for (const char *p = pat; *p; p++)
        exact |= *p >= 'A' && *p <= 'Z';
    if (exact || !n)
        return n ? memmem(hay, len, pat, n) : NULL;
    for (size_t i = 0; i + n <= len; i++)
        if (strncasecmp(hay + i, pat, n) == 0)
            return hay + i;
    return NULL;
}

void output_mark_matches(struct output *o, struct canvas *c, int y, int x,
                         const struct item *it, const struct row *r)
{
    if (!o->pattern || r->part != ROW_TEXT)
        return;
    const char *row = it->text + r->from, *end = it->text + r->to, *hit = row;
    while ((hit = find_match(hit, (size_t)(end - hit), o->pattern)) != NULL) {
        int at = (int)text_width(row, (size_t)(hit - row));
        int w = (int)text_width(hit, strlen(o->pattern));
        canvas_role(c, (struct rect){y, x + r->indent + at, 1, w}, ROLE_MATCH);
        hit += strlen(o->pattern);
    }
}

/* --- search ---------------------------------------------------------------------------- */

/* Row of the item in which byte `at` of its text lies. */
static size_t row_of(struct output *o, struct view *v, const struct transcript *t, size_t i,
                     size_t at)
{
    const struct item *it = &t->v[i];
    rows_make(it, &v->style, view_folded(view_cached(v, t, i), it), &o->scratch);
    for (size_t k = o->scratch.n; k-- > 0;)
        if (o->scratch.v[k].part == ROW_TEXT && o->scratch.v[k].from <= at)
            return k;
    return 0;
}

/* Next match from the cursor on in direction `step`, around the ends. */
int output_find_next(struct ui *ui, struct output *o, struct view *v,
                     const struct transcript *t, int step)
{
    if (!v || !t || !t->n || !o->pattern)
        return UI_HANDLED;
    struct pos from = view_clamp(v, t, v->cur);
    size_t n = t->n, start = (size_t)(from.item - t->base);
    for (size_t k = 0; k <= n; k++) {
        size_t i = step > 0 ? (start + k) % n : (start + n * 2 - k) % n;
        const struct item *it = &t->v[i];
        const char *hit = it->text, *best = NULL;
        size_t best_row = 0;
        while (it->text &&
               (hit = find_match(hit, it->text_len - (size_t)(hit - it->text), o->pattern))) {
            if (rows_foldable(it) && view_folded(view_cached(v, t, i), it)) {
                view_cached(v, t, i)->fold = 0;
                view_cached(v, t, i)->rows = 0;
            }
            size_t row = row_of(o, v, t, i, (size_t)(hit - it->text));
            bool passed = k == 0 && (step > 0 ? row <= from.row : row >= from.row);
            if (!passed && (step < 0 || !best)) {
                best = hit;
                best_row = row;
            }
            hit++;
        }
        if (best) {
            view_end_follow(v, t);
            v->cur = (struct pos){t->base + i, best_row};
            return UI_HANDLED | UI_REDRAW;
        }
    }
    ui_status(ui, 0, "no match for '%.60s'", o->pattern);
    return UI_HANDLED | UI_REDRAW;
}
