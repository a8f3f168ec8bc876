/* The output of the selected sandbox's agent: follow mode, an anchor that stays put while
 * new output comes, folding, search, raw view. Each sandbox keeps its own view. */
#include "output_priv.h"

#include <cct/text/clean.h>
#include <cct/text/width.h>
#include <cct/util/arr.h>
#include <cct/util/map.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RAW_MAX = 1 << 20, PAN_STEP = 8 };

/* A row: item by number since the begin (transcript.base + index), row in it. */
struct pos {
    uint64_t item;
    size_t row;
};
struct cached {
    uint32_t rev;
    uint32_t rows; /* 0 = not known */
    int8_t fold;   /* -1 as by default, 0 open, 1 folded: the user's word */
};
struct view {
    struct pos top, cur;
    bool follow;
    uint64_t seen_rows;       /* rows there were when follow ended */
    ARR(struct cached) cache; /* per item, cache_base is the first one's number */
    uint64_t cache_base;
    struct row_style style;   /* for which the cache holds */
    int pan;
    bool raw;
    struct buf raw_text;      /* cleaned lines of the raw stream */
    size_t raw_top;           /* lines from the end */
};
struct output {
    struct map *views;        /* sandbox id -> struct view */
    bool wrap, times;
    bool searching;
    struct inputline search;
    char *pattern;
    struct rows scratch;
    int h, w;
    uint64_t seen;
    char title[128], note[96];
};

static void *output_open(struct ui *ui)
{
    struct output *o = xcalloc(1, sizeof(*o));
    o->views = map_new();
    o->wrap = ui->opts.wrap;
    o->times = ui->opts.time_stamps;
    inputline_init(&o->search, false, 256);
    return o;
}

static void view_free(void *p)
{
    struct view *v = p;
    ARR_RELEASE(&v->cache);
    buf_release(&v->raw_text);
    free(v);
}

static void output_close(void *state)
{
    struct output *o = state;
    map_free(o->views, view_free);
    inputline_release(&o->search);
    free(o->pattern);
    ARR_RELEASE(&o->scratch);
    free(o);
}

static struct view *view_of(struct ui *ui, struct output *o)
{
    struct view *v = map_get_id(o->views, ui->selected);
    if (!v && ui->selected) {
        v = xcalloc(1, sizeof(*v));
        v->follow = true;
        buf_init(&v->raw_text, RAW_MAX);
        map_put_id(o->views, ui->selected, v);
    }
    return v;
}

/* --- rows of items, cached ------------------------------------------------------- */

static struct cached *cached_at(struct view *v, const struct transcript *t, size_t i)
{
    /* items dropped in front, or older ones loaded there, move the window */
    if (v->cache_base != t->base) {
        size_t keep = 0;
        if (t->base > v->cache_base && t->base - v->cache_base < v->cache.n) {
            size_t gone = (size_t)(t->base - v->cache_base);
            keep = v->cache.n - gone;
            memmove(v->cache.v, v->cache.v + gone, keep * sizeof(*v->cache.v));
        }
        v->cache.n = keep;
        v->cache_base = t->base;
    }
    while (v->cache.n < t->n) {
        ARR_PUSH(&v->cache)->fold = -1;
    }
    return &v->cache.v[i];
}

static bool is_folded(const struct cached *c, const struct item *it)
{
    return rows_foldable(it) && (c->fold >= 0 ? c->fold == 1 : rows_folded_by_default(it));
}

static size_t item_rows(struct view *v, const struct transcript *t, size_t i)
{
    struct cached *c = cached_at(v, t, i);
    const struct item *it = &t->v[i];
    if (!c->rows || c->rev != it->rev) {
        c->rows = (uint32_t)rows_count(it, &v->style, is_folded(c, it));
        c->rev = it->rev;
    }
    return c->rows;
}

static void set_style(struct view *v, const struct output *o)
{
    struct row_style st = {o->w, o->wrap, o->times};
    if (st.w == v->style.w && st.wrap == v->style.wrap && st.times == v->style.times)
        return;
    v->style = st;
    for (size_t i = 0; i < v->cache.n; i++)
        v->cache.v[i].rows = 0;
}

/* --- positions -------------------------------------------------------------------- */

static struct pos clamp_pos(struct view *v, const struct transcript *t, struct pos p)
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

static struct pos move_pos(struct view *v, const struct transcript *t, struct pos p, long by)
{
    p = clamp_pos(v, t, p);
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

static struct pos last_pos(struct view *v, const struct transcript *t)
{
    return clamp_pos(v, t, (struct pos){UINT64_MAX, SIZE_MAX});
}

static bool pos_before(struct pos a, struct pos b)
{
    return a.item < b.item || (a.item == b.item && a.row < b.row);
}

static uint64_t rows_after(struct view *v, const struct transcript *t, struct pos p)
{
    uint64_t n = 0;
    for (size_t i = (size_t)(p.item - t->base); i < t->n; i++)
        n += item_rows(v, t, i);
    return n - p.row - (t->n ? 1 : 0);
}

static uint64_t all_rows(struct view *v, const struct transcript *t)
{
    uint64_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        n += item_rows(v, t, i);
    return n;
}

/* The picture's first row, given follow or the anchor. */
static void settle(struct output *o, struct view *v, const struct transcript *t)
{
    int h = o->h > 0 ? o->h : 1;
    struct pos last = last_pos(v, t), lowest = move_pos(v, t, last, -(h - 1));
    if (v->follow) {
        v->cur = last;
        v->top = lowest;
        return;
    }
    v->cur = clamp_pos(v, t, v->cur);
    v->top = clamp_pos(v, t, v->top);
    if (pos_before(lowest, v->top))
        v->top = lowest;
    if (pos_before(v->cur, v->top))
        v->top = v->cur;
    struct pos end = move_pos(v, t, v->top, h - 1);
    if (pos_before(end, v->cur))
        v->top = move_pos(v, t, v->cur, -(h - 1));
}

static void end_follow(struct view *v, const struct transcript *t)
{
    if (v->follow)
        v->seen_rows = t ? all_rows(v, t) : 0;
    v->follow = false;
}

/* --- raw view ------------------------------------------------------------------------- */

static void add_raw(void *ctx, const char *data, size_t len)
{
    struct view *v = ctx;
    for (size_t i = 0; i < len;) {
        const char *nl = memchr(data + i, '\n', len - i);
        size_t n = nl ? (size_t)(nl - data) - i : len - i;
        while (v->raw_text.len + n + 64 > RAW_MAX && v->raw_text.len) {
            char *first = memchr(v->raw_text.p, '\n', v->raw_text.len);
            buf_consume(&v->raw_text, first ? (size_t)(first - v->raw_text.p) + 1
                                            : v->raw_text.len);
        }
        struct buf line = BUF_INIT;
        clean_line(data + i, n, &line, 4096);
        buf_add(&v->raw_text, line.p ? line.p : "", line.len);
        if (nl)
            buf_addc(&v->raw_text, '\n');
        buf_release(&line);
        i += n + 1;
    }
}

static void draw_raw(struct view *v, struct canvas *c, struct rect r)
{
    size_t lines = 0, skip = v->raw_top;
    size_t end = v->raw_text.len;
    const char *p = v->raw_text.p;
    while (end > 0 && p[end - 1] == '\n')
        end--;
    for (size_t i = 0; i < end; i++)
        lines += p[i] == '\n';
    if (skip > lines)
        skip = v->raw_top = lines;
    while (skip > 0 && end > 0)
        if (p[--end] == '\n')
            skip--;
    for (int y = r.h - 1; y >= 0 && end > 0; y--) {
        size_t from = end;
        while (from > 0 && p[from - 1] != '\n')
            from--;
        canvas_textn(c, r.y + y, r.x, r.w, ROLE_TEXT, p + from, end - from);
        end = from ? from - 1 : 0;
    }
    if (!v->raw_text.len)
        canvas_text(c, r.y, r.x + 1, r.w - 2, ROLE_HINT, "no raw output yet (V goes back)");
}

/* --- drawing ------------------------------------------------------------------------ */

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

static void mark_matches(struct output *o, struct canvas *c, int y, int x,
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

static void draw_search(struct output *o, struct canvas *c, struct rect r)
{
    int y = r.y + r.h - 1;
    canvas_fill(c, (struct rect){y, r.x, 1, r.w}, ROLE_TEXT, " ");
    int x = r.x + canvas_text(c, y, r.x, -1, ROLE_PROMPT, "/");
    inputline_draw(&o->search, c, (struct rect){y, x, 1, r.x + r.w - x}, ROLE_INPUT, true);
}

static void draw_items(struct ui *ui, struct output *o, struct view *v,
                       const struct transcript *t, struct canvas *c, struct rect r, bool focused)
{
    settle(o, v, t);
    size_t i = (size_t)(v->top.item - t->base), row = v->top.row;
    for (int y = 0; y < r.h && i < t->n; i++, row = 0) {
        const struct item *it = &t->v[i];
        rows_make(it, &v->style, is_folded(cached_at(v, t, i), it), &o->scratch);
        for (; row < o->scratch.n && y < r.h; row++, y++) {
            rows_draw(c, r.y + y, r.x, it, &o->scratch.v[row], &v->style, v->pan, ui->now);
            mark_matches(o, c, r.y + y, r.x, it, &o->scratch.v[row]);
            bool here = focused && !v->follow && v->cur.item == t->base + i && v->cur.row == row;
            if (here)
                canvas_mark(c, (struct rect){r.y + y, r.x, 1, 1}, TEXT_REVERSE);
        }
    }
}

static const char *empty_text(const struct sandbox *s)
{
    if (!s)
        return "no sandbox: press n for a new one, ? for help";
    if (s->foreign)
        return "this sandbox was not made by cc-tui: it has no session to show";
    if (s->state == SB_CREATING)
        return "creating the sandbox";
    if (s->agent == AG_STARTING)
        return "starting the agent";
    return "no output yet";
}

static void output_draw(struct ui *ui, void *state, struct canvas *c, struct rect r,
                        bool focused, int64_t now)
{
    struct output *o = state;
    struct view *v = view_of(ui, o);
    (void)now;
    o->h = r.h - (o->searching ? 1 : 0);
    o->w = r.w;
    const struct transcript *t = ui->selected ? model_transcript(ui->model, ui->selected) : NULL;
    struct rect body = {r.y, r.x, o->h, r.w};
    if (v)
        set_style(v, o);
    if (v && v->raw)
        draw_raw(v, c, body);
    else if (v && t && t->n)
        draw_items(ui, o, v, t, c, body, focused);
    else
        canvas_text(c, r.y, r.x + 1, r.w - 2, ROLE_HINT,
                    empty_text(model_sandbox(ui->model, ui->selected)));
    if (o->searching)
        draw_search(o, c, r);
}

/* --- search ---------------------------------------------------------------------------- */

/* Row of the item in which byte `at` of its text lies. */
static size_t row_of(struct output *o, struct view *v, const struct transcript *t, size_t i,
                     size_t at)
{
    const struct item *it = &t->v[i];
    rows_make(it, &v->style, is_folded(cached_at(v, t, i), it), &o->scratch);
    for (size_t k = o->scratch.n; k-- > 0;)
        if (o->scratch.v[k].part == ROW_TEXT && o->scratch.v[k].from <= at)
            return k;
    return 0;
}

/* Next match from the cursor on in direction `step`, around the ends. */
static int find_next(struct ui *ui, struct output *o, int step)
{
    struct view *v = view_of(ui, o);
    const struct transcript *t = ui->selected ? model_transcript(ui->model, ui->selected) : NULL;
    if (!v || !t || !t->n || !o->pattern)
        return UI_HANDLED;
    struct pos from = clamp_pos(v, t, v->cur);
    size_t n = t->n, start = (size_t)(from.item - t->base);
    for (size_t k = 0; k <= n; k++) {
        size_t i = step > 0 ? (start + k) % n : (start + n * 2 - k) % n;
        const struct item *it = &t->v[i];
        const char *hit = it->text, *best = NULL;
        size_t best_row = 0;
        while (it->text &&
               (hit = find_match(hit, it->text_len - (size_t)(hit - it->text), o->pattern))) {
            if (rows_foldable(it) && is_folded(cached_at(v, t, i), it)) {
                cached_at(v, t, i)->fold = 0;
                cached_at(v, t, i)->rows = 0;
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
            end_follow(v, t);
            v->cur = (struct pos){t->base + i, best_row};
            return UI_HANDLED | UI_REDRAW;
        }
    }
    ui_status(ui, 0, "no match for '%.60s'", o->pattern);
    return UI_HANDLED | UI_REDRAW;
}

static int output_key(struct ui *ui, void *state, key_code k, const char *paste, size_t len)
{
    struct output *o = state;
    if (!o->searching)
        return k == K_PASTE ? UI_HANDLED : UI_IGNORED;
    if (k == K_PASTE) {
        inputline_insert(&o->search, paste, len);
    } else if (k == K_ENTER) {
        o->searching = false;
        free(o->pattern);
        o->pattern = *inputline_text(&o->search) ? xstrdup(inputline_text(&o->search)) : NULL;
        if (o->pattern) {
            inputline_history_add(&o->search, o->pattern);
            find_next(ui, o, -1);
        }
    } else if (k == K_ESC || k == ('C' & 0x1F)) {
        o->searching = false;
    } else if (k == K_UP) {
        inputline_history_prev(&o->search);
    } else if (k == K_DOWN) {
        inputline_history_next(&o->search);
    } else {
        inputline_key(&o->search, k);
    }
    return UI_HANDLED | UI_REDRAW;
}

/* --- actions ----------------------------------------------------------------------------- */

static int scroll(struct ui *ui, struct view *v, const struct transcript *t, long by)
{
    if (v->raw) {
        v->raw_top = by < 0 ? v->raw_top + (size_t)-by
                     : v->raw_top > (size_t)by ? v->raw_top - (size_t)by : 0;
        return UI_HANDLED | UI_REDRAW;
    }
    end_follow(v, t);
    struct pos before = clamp_pos(v, t, v->cur);
    v->cur = move_pos(v, t, v->cur, by);
    struct pos last = last_pos(v, t);
    if (by > 0 && v->cur.item == last.item && v->cur.row == last.row)
        v->follow = true; /* at the end again */
    if (by < 0 && before.item == v->cur.item && before.row == v->cur.row && t->more_before)
        app_load_older(ui->app, ui->selected);
    return UI_HANDLED | UI_REDRAW;
}

static void fold_all(struct view *v, const struct transcript *t, int fold)
{
    for (size_t i = 0; i < t->n; i++) {
        struct cached *c = cached_at(v, t, i);
        c->fold = (int8_t)fold;
        c->rows = 0;
    }
}

/* The item at the cursor; in follow mode the last one that folds. */
static void fold_here(struct view *v, const struct transcript *t)
{
    size_t i = (size_t)(clamp_pos(v, t, v->cur).item - t->base);
    while (v->follow && i > 0 && !rows_foldable(&t->v[i]))
        i--;
    if (!rows_foldable(&t->v[i]))
        return;
    struct cached *c = cached_at(v, t, i);
    c->fold = is_folded(c, &t->v[i]) ? 0 : 1;
    c->rows = 0;
    end_follow(v, t);
    v->cur = (struct pos){t->base + i, 0};
}

static void go_message(struct view *v, const struct transcript *t, int step)
{
    struct pos p = clamp_pos(v, t, v->cur);
    for (int64_t i = (int64_t)(p.item - t->base) + step; i >= 0 && i < (int64_t)t->n; i += step)
        if (t->v[i].kind == ITEM_USER || t->v[i].kind == ITEM_TEXT) {
            end_follow(v, t);
            v->cur = (struct pos){t->base + (uint64_t)i, 0};
            return;
        }
}

static void toggle_raw(struct ui *ui, struct view *v)
{
    v->raw = !v->raw;
    v->raw_top = 0;
    buf_clear(&v->raw_text);
    if (v->raw)
        app_raw(ui->app, ui->selected, 0, false, add_raw, v);
}

static int view_action(struct ui *ui, struct output *o, struct view *v,
                       const struct transcript *t, enum action a)
{
    switch (a) {
    case ACT_DOWN:
        return scroll(ui, v, t, 1);
    case ACT_UP:
        return scroll(ui, v, t, -1);
    case ACT_HALF_DOWN:
        return scroll(ui, v, t, (o->h + 1) / 2);
    case ACT_HALF_UP:
        return scroll(ui, v, t, -(o->h + 1) / 2);
    case ACT_PAGE_DOWN:
        return scroll(ui, v, t, o->h);
    case ACT_PAGE_UP:
        return scroll(ui, v, t, -o->h);
    case ACT_TOP:
        end_follow(v, t);
        v->cur = v->top = (struct pos){t->base, 0};
        if (t->more_before)
            app_load_older(ui->app, ui->selected);
        break;
    case ACT_BOTTOM:
        v->follow = true;
        v->raw_top = 0;
        break;
    case ACT_FOLLOW:
        if (v->follow)
            end_follow(v, t);
        else
            v->follow = true;
        break;
    case ACT_FOLD:
        fold_here(v, t);
        break;
    case ACT_FOLD_ALL:
        fold_all(v, t, 1);
        break;
    case ACT_UNFOLD_ALL:
        fold_all(v, t, 0);
        break;
    case ACT_NEXT_MSG:
        go_message(v, t, 1);
        break;
    case ACT_PREV_MSG:
        go_message(v, t, -1);
        break;
    default:
        return UI_IGNORED;
    }
    return UI_HANDLED | UI_REDRAW;
}

static int output_action(struct ui *ui, void *state, enum action a)
{
    struct output *o = state;
    struct view *v = view_of(ui, o);
    const struct transcript *t = ui->selected ? model_transcript(ui->model, ui->selected) : NULL;
    switch (a) {
    case ACT_SEARCH:
        o->searching = true;
        inputline_set(&o->search, "");
        return UI_HANDLED | UI_REDRAW;
    case ACT_SEARCH_NEXT:
        return find_next(ui, o, 1);
    case ACT_SEARCH_PREV:
        return find_next(ui, o, -1);
    case ACT_BACK:
        if (!o->pattern)
            return UI_IGNORED;
        free(o->pattern);
        o->pattern = NULL;
        return UI_HANDLED | UI_REDRAW;
    case ACT_WRAP:
        o->wrap = !o->wrap;
        return UI_HANDLED | UI_REDRAW;
    case ACT_TIMES:
        o->times = !o->times;
        return UI_HANDLED | UI_REDRAW;
    case ACT_PAN_LEFT:
    case ACT_PAN_RIGHT:
        if (v)
            v->pan = a == ACT_PAN_RIGHT ? v->pan + PAN_STEP
                     : v->pan > PAN_STEP ? v->pan - PAN_STEP : 0;
        return UI_HANDLED | UI_REDRAW;
    case ACT_RAW:
        if (v)
            toggle_raw(ui, v);
        return UI_HANDLED | UI_REDRAW;
    default:
        if (!v || !t || (!t->n && !v->raw))
            return UI_IGNORED;
        set_style(v, o);
        return view_action(ui, o, v, t, a);
    }
}

static bool output_update(struct ui *ui, void *state)
{
    struct output *o = state;
    const struct transcript *t = ui->selected ? model_transcript(ui->model, ui->selected) : NULL;
    uint64_t rev = (t ? t->rev : 0) + ui->model->messages_rev + ui->model->sandboxes_rev;
    bool changed = rev != o->seen;
    o->seen = rev;
    return changed;
}

static const char *output_title(struct ui *ui, void *state)
{
    struct output *o = state;
    const struct sandbox *s = model_sandbox(ui->model, ui->selected);
    struct view *v = view_of(ui, o);
    if (!s)
        return "2 output";
    snprintf(o->title, sizeof(o->title), "2 output%s: %.60s  %.16s", v && v->raw ? " (raw)" : "",
             s->name, s->tool ? s->tool : "");
    return o->title;
}

static const char *output_note(struct ui *ui, void *state)
{
    struct output *o = state;
    struct view *v = view_of(ui, o);
    const struct transcript *t = ui->selected ? model_transcript(ui->model, ui->selected) : NULL;
    o->w = ui->panes[PANE_OUTPUT].r.w;
    if (!v || !t || !t->n || v->raw || o->w < 1)
        return NULL;
    set_style(v, o);
    uint64_t all = all_rows(v, t);
    if (v->follow) {
        snprintf(o->note, sizeof(o->note), "follow ON  %llu lines", (unsigned long long)all);
    } else {
        uint64_t fresh = all > v->seen_rows ? all - v->seen_rows : 0;
        uint64_t at = all - rows_after(v, t, clamp_pos(v, t, v->cur));
        if (fresh)
            snprintf(o->note, sizeof(o->note), "PAUSED  %llu new v", (unsigned long long)fresh);
        else
            snprintf(o->note, sizeof(o->note), "line %llu/%llu", (unsigned long long)at,
                     (unsigned long long)all);
    }
    return o->note;
}

const struct pane_ops pane_output = {
    .name = "output",
    .scope = SCOPE_OUTPUT,
    .open = output_open,
    .close = output_close,
    .update = output_update,
    .draw = output_draw,
    .action = output_action,
    .key = output_key,
    .title = output_title,
    .note = output_note,
};
