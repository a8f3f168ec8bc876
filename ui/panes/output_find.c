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

/* The row of item i that has the next match in direction `step`, beyond row `from` where
 * that is not NULL; false: none. What is folded is opened for it. */
static bool find_in_item(struct output *o, struct view *v, const struct transcript *t, size_t i,
                         int step, const size_t *from, size_t *found)
{
    const struct item *it = &t->v[i];
    const char *hit = it->text ? find_match(it->text, it->text_len, o->pattern) : NULL;
    bool any = false;
    if (!hit)
        return false;
    struct cached *c = view_cached(v, t, i);
    if (view_folded(c, it)) {
        c->fold = 0;
        c->rows = 0;
        view_fold_changed(v, t->base + i);
    }
    rows_make(it, &v->style, false, &o->scratch);
    const struct row *rows = o->scratch.v;
    size_t n = o->scratch.n;
    for (size_t r = 0; r < n && hit; r++) {
        size_t at = (size_t)(hit - it->text);
        if (rows[r].part != ROW_TEXT || (r + 1 < n && rows[r + 1].from <= at))
            continue;
        bool passed = from && (step > 0 ? r <= *from : r >= *from);
        if (passed && step < 0)
            break;
        if (!passed) {
            *found = r;
            any = true;
            if (step > 0)
                break;
        }
        size_t next = r + 1 < n ? rows[r + 1].from : it->text_len;
        hit = find_match(it->text + next, it->text_len - next, o->pattern);
    }
    return any;
}

/* Pages of items that are not held here; how many may bring nothing, one after the other: they
 * cannot be read, or are those that somebody else has asked for. */
enum { GO_TRIES = 300, SEEK_EMPTY = 5 };

static void found(struct view *v, const struct transcript *t, size_t i, size_t row)
{
    view_end_follow(v, t);
    v->going = v->to_begin = false; /* it is read here from now on */
    v->cur = (struct pos){t->base + i, row};
}

static void ask_for_more(struct ui *ui, struct view *v, const struct transcript *t)
{
    v->seek_loads = t->loads;
    if (v->seek < 0) {
        transcript_first_key(t, &v->seek_offset, &v->seek_index);
        app_load_older(ui->app, ui->selected);
    } else {
        transcript_last_key(t, &v->seek_offset, &v->seek_index);
        app_load_newer(ui->app, ui->selected);
    }
}

static int seek(struct ui *ui, struct output *o, struct view *v, const struct transcript *t,
                int step)
{
    v->seek = step;
    v->seek_tries = v->seek_empty = 0;
    ask_for_more(ui, v, t);
    ui_status(ui, 0, "looking for '%.60s' in %s output ...", o->pattern,
              step < 0 ? "older" : "newer");
    return UI_HANDLED | UI_REDRAW;
}

int output_find_next(struct ui *ui, struct output *o, struct view *v,
                     const struct transcript *t, int step)
{
    if (!v || !t || !t->n || !o->pattern)
        return UI_HANDLED;
    struct pos from = view_clamp(v, t, v->cur);
    size_t n = t->n, start = (size_t)(from.item - t->base), row = 0;
    bool more = step > 0 ? t->more_after : t->more_before;
    size_t most = !more ? n : step > 0 ? n - 1 - start : start; /* not around what is no end */
    for (size_t k = 0; k <= most; k++) {
        size_t i = step > 0 ? (start + k) % n : (start + n * 2 - k) % n;
        if (!find_in_item(o, v, t, i, step, k == 0 ? &from.row : NULL, &row))
            continue;
        found(v, t, i, row);
        return UI_HANDLED | UI_REDRAW;
    }
    if (more)
        return seek(ui, o, v, t, step);
    if (t->more_before || t->more_after)
        return seek(ui, o, v, t, t->more_before ? -1 : 1);
    ui_status(ui, 0, "no match for '%.60s'", o->pattern);
    return UI_HANDLED | UI_REDRAW;
}

/* Items that came since they were asked for: the next one of them in that direction, SIZE_MAX when
 * there is none. */
static size_t next_new(const struct view *v, const struct transcript *t, size_t i)
{
    for (i += (size_t)v->seek; i < t->n; i += (size_t)v->seek) {
        const struct item *it = &t->v[i];
        bool beyond = it->offset != v->seek_offset
                          ? (it->offset > v->seek_offset) == (v->seek > 0)
                          : it->index != v->seek_index &&
                                (it->index > v->seek_index) == (v->seek > 0);
        if (beyond && (it->offset || it->index))
            return i;
    }
    return SIZE_MAX;
}

void output_seeking(struct ui *ui, struct output *o, struct view *v, const struct transcript *t)
{
    size_t row = 0;
    bool came = false;

    if (!v || !v->seek || !t || !t->n || !o->pattern || t->loads == v->seek_loads)
        return;
    for (size_t i = v->seek < 0 ? t->n : SIZE_MAX; (i = next_new(v, t, i)) != SIZE_MAX;) {
        came = true;
        if (!find_in_item(o, v, t, i, v->seek, NULL, &row))
            continue;
        found(v, t, i, row);
        v->seek = 0;
        ui_status(ui, 0, "%s", "");
        return;
    }
    bool more = v->seek < 0 ? t->more_before : t->more_after;
    v->seek_tries += came;
    v->seek_empty = came ? 0 : v->seek_empty + 1;
    if (more && v->seek_tries < GO_TRIES && v->seek_empty < SEEK_EMPTY) {
        ask_for_more(ui, v, t);
        return;
    }
    v->seek = 0;
    ui_status(ui, 0, "no match for '%.60s'%s", o->pattern,
              more ? " in what was looked at, there is more" : "");
    if (v->follow && t->more_after)
        app_follow(ui->app, ui->selected);
}

/* --- a place that a search has found ---------------------------------------------------- */

static bool is_before(const struct item *it, uint64_t offset, uint32_t index)
{
    return it->offset < offset || (it->offset == offset && it->index <= index);
}

/* The last item that begins at or before the event; items of ours have no place. */
static size_t item_of(const struct transcript *t, uint64_t offset, uint32_t index)
{
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < t->n; i++) {
        const struct item *it = &t->v[i];
        bool placed = it->offset || it->index || (!offset && !index);
        if (placed && is_before(it, offset, index))
            found = i;
    }
    return found;
}

static void go_to(struct view *v, uint64_t offset, uint32_t index)
{
    v->going = true;
    v->go_offset = offset;
    v->go_index = index;
    v->go_tries = 0;
}

void output_replaced(struct view *v, const struct transcript *t)
{
    if (!v || !t || v->resets == t->resets)
        return;
    bool first = !v->resets;
    v->resets = t->resets;
    if (v->follow || first)
        return;
    bool begin = v->to_begin && !t->more_before; /* else it comes behind this */
    size_t top = begin ? 0 : item_of(t, v->top_offset, v->top_index);
    size_t cur = begin ? 0 : item_of(t, v->cur_offset, v->cur_index);
    if (top == SIZE_MAX && t->more_before && !v->going && !v->to_begin)
        go_to(v, v->top_offset, v->top_index); /* it is read further up: back there */
    v->selecting = false;
    v->to_begin = v->to_begin && !begin;
    v->top = (struct pos){t->base + (top == SIZE_MAX ? 0 : top), top == SIZE_MAX ? 0 : v->top.row};
    v->cur = cur == SIZE_MAX ? v->top : (struct pos){t->base + cur, v->cur.row};
    v->seen = view_last(v, t);
}

void output_going(struct ui *ui, struct view *v, const struct transcript *t)
{
    if (!v || !v->going || !t || !t->n)
        return;
    size_t i = item_of(t, v->go_offset, v->go_index);
    if (i == SIZE_MAX && t->more_before && v->go_tries && t->loads == v->go_loads)
        return; /* asked for */
    if (i == SIZE_MAX && t->more_before && v->go_tries++ < GO_TRIES) {
        v->go_loads = t->loads;
        app_load_older(ui->app, ui->selected);
        return;
    }
    v->going = false;
    if (i == SIZE_MAX) {
        ui_status(ui, 1, "that place is not in what is kept of this agent's present run");
        return;
    }
    view_end_follow(v, t);
    struct cached *c = view_cached(v, t, i);
    if (view_folded(c, &t->v[i])) {
        c->fold = 0;
        c->rows = 0;
        view_fold_changed(v, t->base + i);
    }
    v->cur = v->top = (struct pos){t->base + i, 0};
}

void output_go_to(struct ui *ui, uint64_t sandbox, uint64_t offset, uint32_t index)
{
    struct view *v = output_view(ui, ui->panes[PANE_OUTPUT].state);
    if (!v || ui->selected != sandbox)
        return;
    go_to(v, offset, index);
    v->raw = false;
    output_going(ui, v, model_transcript(ui->model, sandbox));
}
