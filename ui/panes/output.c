/* The output of the selected sandbox's agent: follow mode, an anchor that stays put while
 * new output comes, folding, search, raw view. Each sandbox keeps its own view. */
#include "list_priv.h"
#include "output_priv.h"

#include <cct/ui/box.h>
#include <cct/model/export.h>
#include <cct/text/clean.h>
#include <cct/text/width.h>
#include <cct/util/arr.h>
#include <cct/util/map.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PAN_STEP = 8, PAGES_AHEAD = 4 };

static void *output_open(struct ui *ui)
{
    struct output *o = xcalloc(1, sizeof(*o));
    o->ui = ui;
    o->views = map_new();
    o->wrap = ui->opts.wrap;
    o->times = ui->opts.time_stamps;
    inputline_init(&o->search, false, 256);
    return o;
}

void output_style(struct ui *ui, bool wrap, bool times)
{
    struct output *o = ui->panes[PANE_OUTPUT].state;
    o->wrap = wrap;
    o->times = times;
}

static void view_free(void *p)
{
    struct view *v = p;
    ARR_RELEASE(&v->cache);
    free(v);
}

static void output_close(void *state)
{
    struct output *o = state;
    map_free(o->views, view_free);
    raw_release(&o->raw);
    inputline_release(&o->search);
    free(o->pattern);
    ARR_RELEASE(&o->scratch);
    free(o);
}

struct view *output_view(struct ui *ui, void *state)
{
    struct output *o = state;
    struct view *v = map_get_id(o->views, ui->selected);
    if (!v && ui->selected) {
        v = xcalloc(1, sizeof(*v));
        v->follow = true;
        map_put_id(o->views, ui->selected, v);
    }
    return v;
}

/* --- drawing ------------------------------------------------------------------------ */

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
    c->scrolls = r;
    view_settle(o, v, t);
    size_t i = (size_t)(v->top.item - t->base), row = v->top.row;
    struct pos first = {0}, last = {0};
    if (v->selecting)
        select_ends(o, v, t, &first, &last);
    for (int y = 0; y < r.h && i < t->n; i++, row = 0) {
        const struct item *it = &t->v[i];
        rows_make(it, &v->style, view_folded(view_cached(v, t, i), it), &o->scratch);
        for (; row < o->scratch.n && y < r.h; row++, y++) {
            rows_draw(c, r.y + y, r.x, it, &o->scratch.v[row], &v->style, v->pan, ui->now);
            output_mark_matches(o, c, r.y + y, r.x, it, &o->scratch.v[row]);
            bool here = focused && !v->follow && v->cur.item == t->base + i && v->cur.row == row;
            struct pos p = {t->base + i, row};
            if (v->selecting && !pos_before(p, first) && !pos_before(last, p))
                canvas_mark(c, (struct rect){r.y + y, r.x, 1, r.w}, TEXT_REVERSE);
            else if (here)
                canvas_mark(c, (struct rect){r.y + y, r.x, 1, 1}, TEXT_REVERSE);
        }
    }
}

static const char *empty_text(struct ui *ui, const struct sandbox *s)
{
    if (!s)
        return ui_keys(ui, "no sandbox: press {new} for a new one, {help} for help");
    if (s->foreign || (s->adopted && !s->session))
        return ui_keys(ui, "no output of it is kept; {processes} lists its processes, {process-watch} there "
                           "watches one");
    if (s->state == SB_CREATING)
        return "creating the sandbox";
    if (s->state == SB_KILLED)
        return "it is gone, and no output of it is kept here";
    if (s->agent == AG_STARTING)
        return "starting the agent";
    return "no output yet";
}

/* Without any sandbox there is room to say in full why. */
static void draw_empty(struct ui *ui, struct canvas *c, struct rect r)
{
    const struct model *m = ui->model;
    const struct sandbox *s = model_sandbox(m, ui->selected);
    bool trouble = m->link == LINK_DOWN || m->link == LINK_AUTH || m->link == LINK_LIMITED;
    if (!s && trouble && m->link_text)
        box_text(c, (struct rect){r.y, r.x + 1, r.h, r.w - 2}, ROLE_ERROR, m->link_text);
    else
        canvas_text(c, r.y, r.x + 1, r.w - 2, ROLE_HINT, empty_text(ui, s));
}

static void output_draw(struct ui *ui, void *state, struct canvas *c, struct rect r,
                        bool focused, int64_t now)
{
    struct output *o = state;
    struct view *v = output_view(ui, o);
    (void)now;
    const struct transcript *t = ui->selected ? model_transcript(ui->model, ui->selected) : NULL;
    struct rect body = {r.y, r.x, r.h - (o->searching ? 1 : 0), r.w};
    int steps = steps_draw(model_sandbox(ui->model, ui->selected), c, body);
    body.y += steps;
    body.h -= steps;
    o->h = body.h;
    o->y = steps;
    o->w = r.w;
    o->bare = ui->bare;
    if (v)
        view_set_style(v, o);
    if (processes_wanted(ui, v))
        processes_draw(ui, v, c, body, focused);
    else if (v && v->raw)
        raw_draw(ui, o, c, body);
    else if (v && t && t->n)
        draw_items(ui, o, v, t, c, body, focused);
    else if (!steps)
        draw_empty(ui, c, body);
    if (o->searching)
        draw_search(o, c, r);
}

static int find_step(struct ui *ui, struct output *o, int step)
{
    const struct transcript *t = ui->selected ? model_transcript(ui->model, ui->selected) : NULL;
    if (!o->pattern) {
        ui_status(ui, 0, "nothing to find yet: {search} searches (a new sandbox: press {new} in the list)");
        return UI_HANDLED | UI_REDRAW;
    }
    return output_find_next(ui, o, output_view(ui, o), t, step);
}

static int output_key(struct ui *ui, void *state, key_code k, const char *paste, size_t len)
{
    struct output *o = state;
    switch (ui->found) {
    case ACT_TAKE_LINE:
        o->searching = false;
        free(o->pattern);
        o->pattern = *inputline_text(&o->search) ? xstrdup(inputline_text(&o->search)) : NULL;
        if (o->pattern) {
            inputline_history_add(&o->search, o->pattern);
            find_step(ui, o, -1);
        }
        break;
    case ACT_LEAVE_LINE:
        o->searching = false;
        break;
    case ACT_LINE_UP:
        inputline_history_prev(&o->search);
        break;
    case ACT_LINE_DOWN:
        inputline_history_next(&o->search);
        break;
    default:
        ui_line_key(ui, &o->search, k, paste, len);
    }
    return UI_HANDLED | UI_REDRAW;
}

/* --- actions ----------------------------------------------------------------------------- */

/* What comes next in that direction is there before it is wanted. */
static void load_ahead(struct ui *ui, struct output *o, struct view *v,
                       const struct transcript *t, long by)
{
    uint64_t near = (uint64_t)(o->h > 0 ? o->h : 1) * PAGES_AHEAD, at = v->cur.item - t->base;
    if (by < 0 && t->more_before && at <= near)
        app_load_older(ui->app, ui->selected);
    if (by > 0 && t->more_after && t->n - at <= near + 1)
        app_load_newer(ui->app, ui->selected);
}

static int scroll(struct ui *ui, struct output *o, struct view *v, const struct transcript *t,
                  long by)
{
    view_end_follow(v, t);
    v->cur = view_move(v, t, v->cur, by);
    struct pos last = view_last(v, t);
    bool at_end = v->cur.item == last.item && v->cur.row == last.row && !t->more_after;
    if (by > 0 && at_end && !v->selecting)
        v->follow = true;
    load_ahead(ui, o, v, t, by);
    return UI_HANDLED | UI_REDRAW;
}

/* The newest lines, where another part is held. */
static void to_end(struct ui *ui, const struct transcript *t)
{
    if (t->more_after)
        app_follow(ui->app, ui->selected);
}

static void fold_all(struct view *v, const struct transcript *t, int fold)
{
    for (size_t i = 0; i < t->n; i++) {
        struct cached *c = view_cached(v, t, i);
        c->fold = (int8_t)fold;
        c->rows = 0;
        view_fold_changed(v, t->base + i);
    }
}

/* The item at the cursor; in follow mode the last one that folds. */
static void fold_here(struct view *v, const struct transcript *t)
{
    size_t i = (size_t)(view_clamp(v, t, v->cur).item - t->base);
    while (v->follow && i > 0 && !rows_foldable(&t->v[i]))
        i--;
    if (!rows_foldable(&t->v[i]))
        return;
    struct cached *c = view_cached(v, t, i);
    view_end_follow(v, t);
    c->fold = view_folded(c, &t->v[i]) ? 0 : 1;
    c->rows = 0;
    view_fold_changed(v, t->base + i);
    v->cur = (struct pos){t->base + i, 0};
}

static void go_message(struct view *v, const struct transcript *t, int step)
{
    struct pos p = view_clamp(v, t, v->cur);
    for (int64_t i = (int64_t)(p.item - t->base) + step; i >= 0 && i < (int64_t)t->n; i += step)
        if (t->v[i].kind == ITEM_USER || t->v[i].kind == ITEM_TEXT) {
            view_end_follow(v, t);
            v->cur = (struct pos){t->base + (uint64_t)i, 0};
            return;
        }
}

static int view_action(struct ui *ui, struct output *o, struct view *v,
                       const struct transcript *t, enum action a)
{
    if (a == ACT_TOP || a == ACT_BOTTOM || a == ACT_FOLLOW)
        v->going = v->to_begin = false; /* elsewhere */
    switch (a) {
    case ACT_DOWN:
        return scroll(ui, o, v, t, 1);
    case ACT_UP:
        return scroll(ui, o, v, t, -1);
    case ACT_HALF_DOWN:
        return scroll(ui, o, v, t, (o->h + 1) / 2);
    case ACT_HALF_UP:
        return scroll(ui, o, v, t, -(o->h + 1) / 2);
    case ACT_PAGE_DOWN:
        return scroll(ui, o, v, t, o->h);
    case ACT_PAGE_UP:
        return scroll(ui, o, v, t, -o->h);
    case ACT_TOP:
        view_end_follow(v, t);
        v->cur = v->top = (struct pos){t->base, 0};
        v->to_begin = t->more_before;
        if (t->more_before)
            app_load_begin(ui->app, ui->selected);
        break;
    case ACT_BOTTOM:
        v->follow = !v->selecting;
        v->cur = view_last(v, t);
        to_end(ui, t);
        break;
    case ACT_FOLLOW:
        v->selecting = false;
        if (v->follow) {
            view_end_follow(v, t);
        } else {
            v->follow = true;
            to_end(ui, t);
        }
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

/* From a watched process back to the list that it was chosen in. */
static int leave_watch(struct ui *ui, struct view *v)
{
    const struct sandbox *s = model_sandbox(ui->model, ui->selected);
    if (!s || s->session || !v || v->procs != PROCS_HIDDEN)
        return UI_IGNORED;
    v->procs = PROCS_SHOWN;
    return UI_HANDLED | UI_REDRAW;
}

void output_toggle_processes(struct ui *ui)
{
    struct view *v = output_view(ui, ui->panes[PANE_OUTPUT].state);
    if (!v)
        return;
    v->procs = processes_wanted(ui, v) && ui->panes[PANE_OUTPUT].visible ? PROCS_HIDDEN
                                                                         : PROCS_SHOWN;
    if (ui->focus != PANE_OUTPUT)
        ui_focus(ui, PANE_OUTPUT);
}

void output_as_fits(struct ui *ui, uint64_t sandbox)
{
    struct output *o = ui->panes[PANE_OUTPUT].state;
    struct view *v = map_get_id(o->views, sandbox);
    if (v)
        v->procs = PROCS_AS_FITS;
}

const struct proc *output_process(struct ui *ui)
{
    struct view *v = output_view(ui, ui->panes[PANE_OUTPUT].state);
    const struct procs *p = model_procs(ui->model, ui->selected);
    if (!v || !p)
        return NULL;
    if (processes_wanted(ui, v) && ui->focus == PANE_OUTPUT)
        return processes_cursor(ui, v);
    return p->watch == WATCH_LIVE || p->watch == WATCH_LOST ? procs_find(p, p->watched) : NULL;
}

static enum key_scope output_scope(struct ui *ui, void *state)
{
    const struct view *v = output_view(ui, state);
    return processes_wanted(ui, v)        ? SCOPE_PROCS
           : v && v->selecting && !v->raw ? SCOPE_SELECT
           : ui->opts.replay              ? SCOPE_REPLAY
                                          : SCOPE_OUTPUT;
}

/* NAME-20261130-142450.md in the folder that cc-tui was started in. */
static int export_here(struct ui *ui)
{
    const struct sandbox *s = model_sandbox(ui->model, ui->selected);
    time_t now = (time_t)(ui->now / 1000);
    char day[32], *path;
    struct tm tm;
    if (!s)
        return UI_HANDLED;
    gmtime_r(&now, &tm);
    strftime(day, sizeof(day), "%Y%m%d-%H%M%S", &tm);
    path = xasprintf("%s-%s.md", s->name && sandbox_name_ok(s->name) ? s->name : "transcript", day);
    ui->export_req = app_export(ui->app, s->id, EXPORT_MARKDOWN, path, NULL, NULL);
    ui_status(ui, 0, "writing %s", path);
    free(path);
    return UI_HANDLED | UI_REDRAW;
}

static int act(struct ui *ui, void *state, enum action a)
{
    struct output *o = state;
    struct view *v = output_view(ui, o);
    const struct transcript *t = ui->selected ? model_transcript(ui->model, ui->selected) : NULL;
    bool procs = processes_wanted(ui, v);
    int r = procs ? processes_action(ui, v, a) : UI_IGNORED;
    if (r != UI_IGNORED || (procs && a != ACT_BACK))
        return r;
    r = select_action(ui, o, v, t, a);
    if (r != UI_IGNORED)
        return r;
    switch (a) {
    case ACT_SEARCH:
        o->searching = true;
        inputline_set(&o->search, "");
        return UI_HANDLED | UI_REDRAW;
    case ACT_SEARCH_NEXT:
        return find_step(ui, o, 1);
    case ACT_SEARCH_PREV:
        return find_step(ui, o, -1);
    case ACT_BACK:
        if (!o->pattern)
            return leave_watch(ui, v);
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
    case ACT_EXPORT:
        return export_here(ui);
    case ACT_RAW:
        if (v)
            v->raw = !v->raw;
        return UI_HANDLED | UI_REDRAW;
    default:
        if (v && v->raw)
            return raw_action(o, a);
        if (!v || !t || !t->n)
            return UI_IGNORED;
        view_set_style(v, o);
        return view_action(ui, o, v, t, a);
    }
}

static int output_action(struct ui *ui, void *state, enum action a)
{
    struct view *v = output_view(ui, state);
    const struct transcript *t = ui->selected ? model_transcript(ui->model, ui->selected) : NULL;
    if (v)
        v->seek = 0; /* who does something else does not wait for a match */
    int r = act(ui, state, a);
    if (v && t && t->n && !v->follow) /* it may be loaded anew before it is drawn */
        view_keep_place(v, t);
    return r;
}

/* Of sandboxes that are gone nothing is kept; of transcripts that were put away, no rows. */
static void forget_views(struct ui *ui, struct output *o)
{
    struct view *v;
    uint64_t id;
    for (size_t it = 0; (v = map_next(o->views, &it, NULL, &id));) {
        if (id != ui->selected)
            v->seek = 0; /* who looks at another one does not wait for a match here */
        if (id == ui->selected || model_transcript(ui->model, id))
            continue;
        ARR_RELEASE(&v->cache);
        if (!model_sandbox(ui->model, id))
            view_free(map_del_id(o->views, id));
    }
}

/* What is held may be less than a screen of lines: many events show nothing. One page after the
 * other, as long as they bring something. */
static void fill_screen(struct ui *ui, const struct output *o, struct view *v,
                        const struct transcript *t)
{
    bool anew = v && t && v->filled_resets != t->resets;

    if (!v || !t || !t->more_before || t->n >= (size_t)o->h ||
        (!anew && (v->filled_loads == t->loads || v->filled_n == t->n)))
        return;
    v->filled_resets = t->resets;
    v->filled_loads = t->loads;
    v->filled_n = t->n;
    app_load_older(ui->app, ui->selected);
}

static bool output_update(struct ui *ui, void *state)
{
    struct output *o = state;
    const struct transcript *t = ui->selected ? model_transcript(ui->model, ui->selected) : NULL;
    uint64_t rev = (t ? t->rev : 0) + ui->model->procs_rev + ui->model->messages_rev +
                   ui->model->sandboxes_rev;
    bool changed = rev != o->seen;
    o->seen = rev;
    if (changed) {
        output_replaced(output_view(ui, o), t);
        output_going(ui, output_view(ui, o), t);
        output_seeking(ui, o, output_view(ui, o), t);
        fill_screen(ui, o, output_view(ui, o), t);
        forget_views(ui, o);
    }
    return changed;
}

/* A click sets the cursor, twice folds, a drag selects lines and waits for the key that copies
 * them. */
static int output_mouse(struct ui *ui, void *state, const struct mouse *m, bool again)
{
    struct output *o = state;
    struct view *v = output_view(ui, o);
    const struct transcript *t = ui->selected ? model_transcript(ui->model, ui->selected) : NULL;
    bool press = m->kind == MOUSE_PRESS, drag = m->kind == MOUSE_DRAG;
    if (!v || !t || !t->n || v->raw || o->searching || processes_wanted(ui, v))
        return UI_IGNORED;
    int y = m->y - o->y;
    if ((!press && !drag) || y < 0 || y >= o->h)
        return UI_IGNORED;
    view_set_style(v, o);
    view_end_follow(v, t);
    struct pos p = view_move(v, t, v->top, y);
    if (press)
        v->selecting = false;
    else if (!v->selecting)
        v->anchor = view_clamp(v, t, v->cur);
    v->selecting = drag;
    v->cur = p;
    if (again)
        fold_here(v, t);
    return UI_HANDLED | UI_REDRAW;
}

static const char *output_typing(struct ui *ui, void *state)
{
    const struct output *o = state;
    if (!o->searching)
        return NULL;
    return ui_keys(ui, " {take-line} find  {line-up} earlier ones  {leave-line} leave");
}

const struct pane_ops pane_output = {
    .name = "output",
    .scope = SCOPE_OUTPUT,
    .scope_now = output_scope,
    .open = output_open,
    .close = output_close,
    .update = output_update,
    .draw = output_draw,
    .action = output_action,
    .key = output_key,
    .mouse = output_mouse,
    .typing = output_typing,
    .title = output_title,
    .note = output_note,
};
