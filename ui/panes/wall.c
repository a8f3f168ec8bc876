/* The wall: up to nine agents at once, the end of what each put out. A tile is a sandbox of
 * the list that lives; the tiles are those of the cursor's page, in the list's order. */
#include "list_priv.h"
#include "output_priv.h"

#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>

enum { TILE_W = 50, TILE_H = 5, TILE_COLUMNS = 3, TILE_ROWS = 3 };

struct wall {
    struct map *views; /* sandbox id -> struct view: rows counted at the tile's width */
    struct rows scratch;
    struct shown shown;
    size_t at;  /* number of the cursor's tile when last seen */
    int inside; /* cells of the text, in all tiles alike */
    char note[64];
};
/* How the tiles stand: `per` at most on a page, n on this one, the first is number `first` of
 * all that live. */
struct grid {
    int columns, rows, per;
    size_t first, n, all;
};

static void *wall_open(struct ui *ui)
{
    struct wall *w = xcalloc(1, sizeof(*w));
    (void)ui;
    w->views = map_new();
    return w;
}

static void tile_free(void *p)
{
    struct view *v = p;
    ARR_RELEASE(&v->cache);
    free(v);
}

static void wall_close(void *state)
{
    struct wall *w = state;
    map_free(w->views, tile_free);
    ARR_RELEASE(&w->scratch);
    shown_release(&w->shown);
    free(w);
}

/* --- which sandboxes have a tile --------------------------------------------------- */

/* In the list's order, whatever its filter is. */
static const struct shown *tiles(struct ui *ui)
{
    struct wall *w = ui->panes[PANE_WALL].state;
    shown_update(&w->shown, list_order(ui), ui->model, "", 0);
    return &w->shown;
}

/* Number `at` of those that live, or NULL. */
static const struct sandbox *living(struct ui *ui, size_t at)
{
    const struct shown *sh = tiles(ui);
    return at < sh->living ? model_sandbox(ui->model, sh->ids.v[at]) : NULL;
}

/* The cursor's number among those that live, SIZE_MAX = it is none of them. */
static size_t cursor(struct ui *ui)
{
    struct wall *w = ui->panes[PANE_WALL].state;
    const struct shown *sh = tiles(ui);
    size_t at = shown_at(sh, ui->selected, w->at);
    if (at >= sh->living)
        return SIZE_MAX;
    return w->at = at;
}

static int between(int v, int lo, int hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

static struct grid grid_of(struct ui *ui)
{
    const struct rect *r = &ui->panes[PANE_WALL].r;
    struct grid g = {.columns = between(r->w / TILE_W, 1, TILE_COLUMNS),
                     .rows = between(r->h / TILE_H, 1, TILE_ROWS)};
    size_t at = cursor(ui);
    g.all = tiles(ui)->living;
    g.per = g.columns * g.rows;
    g.first = at == SIZE_MAX ? 0 : at / (size_t)g.per * (size_t)g.per;
    g.n = g.all - g.first < (size_t)g.per ? g.all - g.first : (size_t)g.per;
    if (g.n < (size_t)g.columns) /* few get more room each */
        g.columns = g.n ? (int)g.n : 1;
    if (g.first == 0)
        g.rows = ((int)g.n + g.columns - 1) / g.columns;
    return g;
}

size_t wall_tiles(struct ui *ui, uint64_t ids[WALL_TILES])
{
    struct grid g = grid_of(ui);
    for (size_t i = 0; i < g.n; i++)
        ids[i] = living(ui, g.first + i)->id;
    return g.n;
}

void wall_settle(struct ui *ui)
{
    const struct sandbox *s;
    if (ui->body == BODY_WALL && cursor(ui) == SIZE_MAX && (s = living(ui, 0)))
        ui_select(ui, s->id);
}

/* --- drawing ------------------------------------------------------------------------ */

static struct view *view_of(struct ui *ui, struct wall *w, uint64_t id, int width)
{
    struct view *v = map_get_id(w->views, id);
    struct output style = {.ui = ui, .w = width, .wrap = true};
    if (!v) {
        v = xcalloc(1, sizeof(*v));
        map_put_id(w->views, id, v);
    }
    view_set_style(v, &style);
    return v;
}

/* The last rows, at the tile's foot. */
static void draw_tail(struct ui *ui, struct wall *w, uint64_t id, struct canvas *c, struct rect r)
{
    const struct transcript *t = model_transcript(ui->model, id);
    struct view *v = view_of(ui, w, id, w->inside);
    struct pos last = view_last(v, t);
    if (rows_blank(&t->v[last.item - t->base])) /* the end of a turn: no row to spare for it */
        last = view_move(v, t, last, -1);
    struct pos top = view_move(v, t, last, -(r.h - 1));
    int spare = r.h - 1 - (int)(view_rows_after(v, t, top) - view_rows_after(v, t, last));
    size_t i = (size_t)(top.item - t->base), row = top.row;
    for (int y = r.y + (spare > 0 ? spare : 0); y < r.y + r.h && i < t->n; i++, row = 0) {
        const struct item *it = &t->v[i];
        rows_make(it, &v->style, view_folded(view_cached(v, t, i), it), &w->scratch);
        for (; row < w->scratch.n && y < r.y + r.h; row++, y++)
            rows_draw(c, y, r.x, it, &w->scratch.v[row], &v->style, 0, ui->now);
    }
}

static const char *foot(struct ui *ui, const struct sandbox *s)
{
    if (s->state == SB_PAUSED)
        return ui_keys(ui, "paused: state kept, costs nothing   {resume} resumes it");
    if (s->state == SB_ERROR && s->reason)
        return s->reason;
    if (s->foreign || (s->adopted && !s->session))
        return "no output of it is kept";
    return NULL;
}

static void draw_inside(struct ui *ui, struct wall *w, const struct sandbox *s, struct canvas *c,
                        struct rect r)
{
    const struct transcript *t = model_transcript(ui->model, s->id);
    int steps = steps_draw(s, c, r);
    const char *say = steps ? NULL : foot(ui, s);
    r.y += steps;
    r.h -= steps;
    if (say && r.h > 0)
        canvas_text(c, r.y + --r.h, r.x + 1, r.w - 2,
                    s->state == SB_ERROR ? ROLE_ERROR : ROLE_HINT, say);
    if (t && t->n && r.h > 0)
        draw_tail(ui, w, s->id, c, r);
    else if (!say && !steps && r.h > 0)
        canvas_text(c, r.y + r.h - 1, r.x + 1, r.w - 2, ROLE_HINT, "no output yet");
}

static void draw_tile(struct ui *ui, struct wall *w, const struct sandbox *s, int number,
                      struct canvas *c, struct rect r, int64_t now)
{
    char title[160], doing[40], left[24];
    bool here = s->id == ui->selected, warn;
    int64_t then = ui_server_now(ui, now);
    list_doing(s, 20, then, doing, sizeof(doing));
    list_left(ui, s, then, left, sizeof(left), &warn);
    bool state = s->state != SB_RUNNING && s->state != SB_CREATING;
    snprintf(title, sizeof(title), "%s%d %s %.40s  %s  %s", marks_has(ui, s->id) ? "+" : "", number,
             list_glyph(s), s->name, s->tool ? s->tool : "-",
             state ? sb_state_name(s->state) : doing);
    canvas_rule(c, r.y, r.x, r.w, here ? ROLE_RULE_FOCUS : ROLE_RULE, title,
                *left == '-' ? NULL : left, here);
    struct rect in = {r.y + 1, r.x, r.h - 1, r.w};
    struct rect old = canvas_clip(c, in);
    draw_inside(ui, w, s, c, in);
    canvas_unclip(c, old);
}

static void wall_draw(struct ui *ui, void *state, struct canvas *c, struct rect r, bool focused,
                      int64_t now)
{
    struct grid g = grid_of(ui);
    int each = (r.w + 1) / g.columns;
    struct wall *w = state;
    (void)focused;
    w->inside = each - 1;
    if (!g.n)
        canvas_text(c, r.y, r.x + 1, r.w - 2, ROLE_HINT,
                    ui_keys(ui, "no sandbox lives: press {new} for a new one, {wall} goes back"));
    for (int i = 0; i < (int)g.n; i++) {
        int column = i % g.columns, line = i / g.columns;
        int x = column * each, next = column + 1 < g.columns ? x + each : r.w + 1;
        int y = line * r.h / g.rows, below = (line + 1) * r.h / g.rows;
        draw_tile(ui, w, living(ui, g.first + (size_t)i), i + 1, c,
                  (struct rect){r.y + y, r.x + x, below - y, next - x - 1}, now);
        if (column + 1 < g.columns)
            canvas_fill(c, (struct rect){r.y + y, r.x + next - 1, below - y, 1}, ROLE_RULE, "|");
    }
}

/* --- keys --------------------------------------------------------------------------- */

static int go(struct ui *ui, int64_t to, const struct grid *g)
{
    if (!g->all)
        return UI_HANDLED;
    to = to < 0 ? 0 : to >= (int64_t)g->all ? (int64_t)g->all - 1 : to;
    ui_select(ui, living(ui, (size_t)to)->id);
    return UI_HANDLED | UI_REDRAW;
}

static int choose(struct ui *ui, const struct grid *g)
{
    int n = keymap_which(ui->keys, ACT_TILE, ui->last_key);
    if (n >= 0 && (size_t)n < g->n)
        return go(ui, (int64_t)g->first + n, g);
    ui_status(ui, 0, "there is no tile %d", n + 1);
    return UI_HANDLED | UI_REDRAW;
}

static int mark_tile(struct ui *ui, const struct grid *g, int64_t at)
{
    if (!g->n || ui_moved(ui))
        return UI_HANDLED | UI_REDRAW;
    marks_set(ui, ui->selected, !marks_has(ui, ui->selected));
    return go(ui, at + 1, g);
}

/* What the list does with its row, except what would be seen in the list alone. */
static int as_list(struct ui *ui, enum action a)
{
    struct pane *list = &ui->panes[PANE_LIST];
    if (a == ACT_SEARCH)
        ui_focus(ui, PANE_LIST);
    int r = a == ACT_BACK ? UI_IGNORED : list->ops->action(ui, list->state, a);
    if (a == ACT_OPEN && ui->body == BODY_WORK)
        ui->zoomed_from = BODY_WALL;
    return r;
}

static int wall_action(struct ui *ui, void *state, enum action a)
{
    struct grid g = grid_of(ui);
    size_t c = cursor(ui);
    int64_t at = c == SIZE_MAX ? 0 : (int64_t)c;
    (void)state;
    switch (a) {
    case ACT_TILE:
        return choose(ui, &g);
    case ACT_MARK:
        return mark_tile(ui, &g, at);
    case ACT_TILE_LEFT:
        return go(ui, at - 1, &g);
    case ACT_TILE_RIGHT:
        return go(ui, at + 1, &g);
    case ACT_UP:
        return at >= g.columns ? go(ui, at - g.columns, &g) : UI_HANDLED;
    case ACT_DOWN:
        return go(ui, at + g.columns, &g);
    case ACT_PAGE_UP:
    case ACT_HALF_UP:
        return go(ui, at - g.per, &g);
    case ACT_PAGE_DOWN:
    case ACT_HALF_DOWN:
        return go(ui, at + g.per, &g);
    case ACT_TOP:
        return go(ui, 0, &g);
    case ACT_BOTTOM:
        return go(ui, (int64_t)g.all - 1, &g);
    default:
        return as_list(ui, a);
    }
}

static bool wall_update(struct ui *ui, void *state)
{
    (void)state;
    return ui->body == BODY_WALL;
}

static const char *wall_title(struct ui *ui, void *state)
{
    (void)ui;
    (void)state;
    return "wall";
}

static const char *wall_note(struct ui *ui, void *state)
{
    struct grid g = grid_of(ui);
    (void)state;
    if (g.all > g.n && g.n == 1)
        return ui_keys(ui, "%zu of %zu that live, {page-down} {page-up}", g.first + 1, g.all);
    if (g.all > g.n)
        return ui_keys(ui, "%zu to %zu of %zu that live, {page-down} {page-up}", g.first + 1,
                       g.first + g.n, g.all);
    return ui_keys(ui, "%zu live", g.all);
}

const struct pane_ops pane_wall = {
    .name = "wall",
    .scope = SCOPE_WALL,
    .open = wall_open,
    .close = wall_close,
    .update = wall_update,
    .draw = wall_draw,
    .action = wall_action,
    .title = wall_title,
    .note = wall_note,
};
