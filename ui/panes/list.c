/* The list of sandboxes: one row each, state and what the agent does in columns of their
 * own. The cursor is a sandbox, not a line: rows may come and go under it. */
#include "list_priv.h"

#include <cct/util/arr.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct list {
    struct order order;
    struct shown rows;
    size_t top;
    size_t at;                /* position of the cursor when last seen */
    bool filtering;           /* the filter field has the keys */
    uint64_t from;            /* the cursor's row before the words took it out of sight */
    struct inputline filter;
    int page;                 /* rows drawn last */
    uint64_t seen;
    char note[128];
};

static void *list_open(struct ui *ui)
{
    struct list *l = xcalloc(1, sizeof(*l));
    int by = ui->opts.sort ? sort_parse(ui->opts.sort) : SORT_MADE;
    l->order.by = by < 0 ? SORT_MADE : (enum sort)by;
    inputline_init(&l->filter, false, FILTER_BYTES - 1);
    return l;
}

static void list_close(void *state)
{
    struct list *l = state;
    shown_release(&l->rows);
    ARR_RELEASE(&l->order.ids);
    inputline_release(&l->filter);
    free(l);
}

/* Those in view that fit the filter; the cursor's row stays in sight when it no longer does. */
static void collect(struct ui *ui, struct list *l)
{
    order_update(&l->order, ui->model);
    shown_update(&l->rows, &l->order, ui->model, inputline_text(&l->filter),
                 l->filtering ? 0 : ui->selected);
}

const struct order *list_order(struct ui *ui)
{
    struct list *l = ui->panes[PANE_LIST].state;
    order_update(&l->order, ui->model);
    return &l->order;
}

void list_sort(struct ui *ui, enum sort by, bool inverted)
{
    struct list *l = ui->panes[PANE_LIST].state;
    order_by(&l->order, by, inverted);
    collect(ui, l);
    ui_status(ui, 0, "sorted by %s%s%s", sort_word(by), inverted ? ", the other way round" : ": ",
              inverted ? "" : sort_help(by));
}

void list_filter(struct ui *ui, const char *text)
{
    struct list *l = ui->panes[PANE_LIST].state;
    l->filtering = false;
    inputline_set(&l->filter, text);
    collect(ui, l);
    ui_status(ui, 0, *text ? "%zu of %zu fit" : "%zu of %zu are shown", l->rows.ids.n,
              ui->model->n_sandboxes);
}

const char *list_filter_words(struct ui *ui)
{
    struct list *l = ui->panes[PANE_LIST].state;
    return inputline_text(&l->filter);
}

static size_t cursor_at(struct ui *ui, struct list *l)
{
    size_t at = shown_at(&l->rows, ui->selected, l->at);
    if (at != SIZE_MAX)
        return l->at = at;
    /* the row is gone: the one above it */
    if (l->at >= l->rows.ids.n)
        l->at = l->rows.ids.n ? l->rows.ids.n - 1 : 0;
    return l->at;
}

static bool list_update(struct ui *ui, void *state)
{
    struct list *l = state;
    if (l->seen == ui->model->sandboxes_rev)
        return false;
    l->seen = ui->model->sandboxes_rev;
    collect(ui, l);
    size_t at = cursor_at(ui, l);
    const struct sandbox *s = model_sandbox(ui->model, ui->selected);
    if (s && !model_in_view(ui->model, s)) /* nothing is done to what is not seen */
        ui_select(ui, l->rows.ids.n ? l->rows.ids.v[at] : 0);
    if (l->rows.ids.n && !ui->selected)
        ui_select(ui, l->rows.ids.v[at]);
    return true;
}

/* --- drawing ------------------------------------------------------------------- */

static void draw_empty(struct ui *ui, struct list *l, struct canvas *c, struct rect r)
{
    const struct model *m = ui->model;
    const char *say = *inputline_text(&l->filter) ? ui_keys(ui, "no sandbox matches the filter ({back} clears it)")
                      : !m->loaded                ? "loading"
                      : m->link == LINK_CONNECTING ? "asking for the list"
                      : m->link != LINK_OK && m->link != LINK_SLOW
                          ? ui_keys(ui, "the list could not be had ({refresh} asks again)")
                          : ui_keys(ui, "no sandboxes: press {new} for a new one");
    canvas_text(c, r.y + 1, r.x + 3, r.w - 4, ROLE_HINT, say);
}

static void draw_filter(struct list *l, struct canvas *c, struct rect r)
{
    int y = r.y + r.h - 1;
    canvas_fill(c, (struct rect){y, r.x, 1, r.w}, ROLE_TEXT, " ");
    int x = r.x + 1 + canvas_text(c, y, r.x + 1, -1, ROLE_PROMPT, "filter: ");
    inputline_draw(&l->filter, c, (struct rect){y, x, 1, r.x + r.w - x}, ROLE_INPUT,
                   l->filtering);
}

static void list_draw(struct ui *ui, void *state, struct canvas *c, struct rect r, bool focused,
                      int64_t now)
{
    struct list *l = state;
    bool filter = l->filtering || *inputline_text(&l->filter);
    int rows = r.h - 1 - (filter ? 1 : 0);
    collect(ui, l);
    list_draw_head(c, r, &l->order);
    size_t at = cursor_at(ui, l);
    l->page = rows > 0 ? rows : 1;
    if (at < l->top)
        l->top = at;
    if (rows > 0 && at >= l->top + (size_t)rows)
        l->top = at - (size_t)rows + 1;
    if (l->top && l->rows.ids.n < l->top + (size_t)l->page)
        l->top = l->rows.ids.n > (size_t)l->page ? l->rows.ids.n - (size_t)l->page : 0;
    for (int i = 0; i < rows && l->top + (size_t)i < l->rows.ids.n; i++) {
        uint64_t id = l->rows.ids.v[l->top + (size_t)i];
        const struct sandbox *s = model_sandbox(ui->model, id);
        int y = r.y + 1 + i;
        list_draw_row(ui, c, y, r, s, now);
        if (marks_has(ui, id))
            canvas_text(c, y, r.x, 1, ROLE_MARKED, "+");
        else if (ui_has_news(ui, id))
            canvas_text(c, y, r.x, 1, ROLE_NOTICE, "#");
        if (id == ui->selected) {
            canvas_text(c, y, r.x + 1, 1, ROLE_TITLE, ">");
            if (focused && !l->filtering)
                canvas_mark(c, (struct rect){y, r.x, 1, r.w}, TEXT_BOLD);
        }
    }
    if (!l->rows.ids.n)
        draw_empty(ui, l, c, r);
    if (filter)
        draw_filter(l, c, r);
}

/* --- keys -------------------------------------------------------------------------- */

static int move_to(struct ui *ui, struct list *l, int64_t to)
{
    if (!l->rows.ids.n)
        return UI_HANDLED;
    if (to < 0)
        to = 0;
    if (to >= (int64_t)l->rows.ids.n)
        to = (int64_t)l->rows.ids.n - 1;
    l->at = (size_t)to;
    ui_select(ui, l->rows.ids.v[to]);
    return UI_HANDLED | UI_REDRAW;
}

static int mark(struct ui *ui, struct list *l, int64_t at)
{
    const struct sandbox *s = model_sandbox(ui->model, ui->selected);
    if (!s || ui_moved(ui))
        return UI_HANDLED | UI_REDRAW;
    marks_set(ui, s->id, !marks_has(ui, s->id));
    return move_to(ui, l, at + 1) | UI_HANDLED | UI_REDRAW;
}

static int mark_all(struct ui *ui, const struct list *l)
{
    size_t n = 0;
    for (size_t i = 0; i < l->rows.ids.n; i++) {
        const struct sandbox *s = model_sandbox(ui->model, l->rows.ids.v[i]);
        if (!s || !filter_match(&l->rows.terms, s)) /* the cursor's own row may be there without */
            continue;
        marks_set(ui, s->id, true);
        n++;
    }
    ui_status(ui, 0, "%zu marked, %zu shown: {bulk} does something to all of them, {unmark-all} unmarks",
              ui->marks.n, n);
    return UI_HANDLED | UI_REDRAW;
}

static int on_row(struct ui *ui, enum action a, const struct sandbox *s)
{
    if (action_scope(a) != SCOPE_LIST || a == ACT_NEW || a == ACT_NEW_PROMPT)
        return UI_IGNORED; /* needs no row */
    if (!s) {
        ui_status(ui, 0, "no sandbox here; press {new} for a new one");
        return UI_HANDLED | UI_REDRAW;
    }
    if (a != ACT_OPEN && a != ACT_DETAILS && ui_moved(ui))
        return UI_HANDLED | UI_REDRAW;
    if (a == ACT_COPY_ID || a == ACT_COPY_URL)
        return ui_copy_of(ui, a, s);
    if (ui->opts.readonly && a != ACT_OPEN && a != ACT_DETAILS) {
        ui_status(ui, 1, "read-only: started with --readonly, nothing is changed");
        return UI_HANDLED | UI_REDRAW;
    }
    switch (a) {
    case ACT_OPEN:
        ui_focus(ui, PANE_OUTPUT);
        ui->zoom = true;
        return UI_HANDLED | UI_REDRAW | UI_LAYOUT;
    case ACT_DETAILS:
        overlay_details(ui, s->id);
        break;
    case ACT_SET_TIME:
        overlay_time(ui, s->id);
        break;
    case ACT_PAUSE:
        app_pause(ui->app, s->id);
        ui_status(ui, 0, "pausing %s", s->name);
        break;
    case ACT_RESUME:
        if (s->state == SB_PAUSED)
            app_resume(ui->app, s->id, 0);
        else
            app_restart_agent(ui->app, s->id);
        ui_status(ui, 0, s->state == SB_PAUSED ? "resuming %s" : "starting the agent of %s again",
                  s->name);
        break;
    case ACT_PROTECT:
        ui_status(ui, 0, s->protect ? "%s is no longer protected: kill all takes it"
                                    : "%s is protected: kill all leaves it", s->name);
        app_protect(ui->app, s->id, !s->protect);
        break;
    case ACT_RENAME:
        overlay_rename(ui, s->id);
        break;
    case ACT_TAG:
        overlay_tag(ui, s->id);
        break;
    case ACT_FORGET:
        app_forget(ui->app, s->id);
        break;
    case ACT_BULK:
        overlay_bulk(ui);
        break;
    default:
        return UI_IGNORED;
    }
    return UI_HANDLED | UI_REDRAW;
}

/* The next column, or the one before; another way round; or which of all. */
static int sort_action(struct ui *ui, const struct list *l, enum action a)
{
    int by = (int)l->order.by;
    if (a == ACT_SORT_MENU)
        overlay_command(ui, "sort by ");
    else if (a == ACT_SORT_INVERT)
        list_sort(ui, l->order.by, !l->order.inverted);
    else
        list_sort(ui, (enum sort)((by + (a == ACT_SORT_NEXT ? 1 : SORT_COUNT - 1)) % SORT_COUNT),
                  false);
    return UI_HANDLED | UI_REDRAW;
}

static int list_action(struct ui *ui, void *state, enum action a)
{
    struct list *l = state;
    collect(ui, l);
    int64_t at = (int64_t)cursor_at(ui, l);
    switch (a) {
    case ACT_DOWN:
        return move_to(ui, l, at + 1);
    case ACT_UP:
        return move_to(ui, l, at - 1);
    case ACT_TOP:
        return move_to(ui, l, 0);
    case ACT_BOTTOM:
        return move_to(ui, l, (int64_t)l->rows.ids.n - 1);
    case ACT_HALF_DOWN:
        return move_to(ui, l, at + (l->page + 1) / 2);
    case ACT_HALF_UP:
        return move_to(ui, l, at - (l->page + 1) / 2);
    case ACT_PAGE_DOWN:
        return move_to(ui, l, at + l->page);
    case ACT_PAGE_UP:
        return move_to(ui, l, at - l->page);
    case ACT_SEARCH:
        l->filtering = true;
        l->from = ui->selected;
        return UI_HANDLED | UI_REDRAW;
    case ACT_BACK:
        if (!*inputline_text(&l->filter))
            return UI_IGNORED;
        inputline_set(&l->filter, "");
        return UI_HANDLED | UI_REDRAW;
    case ACT_SORT_PREV:
    case ACT_SORT_NEXT:
    case ACT_SORT_INVERT:
    case ACT_SORT_MENU:
        return sort_action(ui, l, a);
    case ACT_MARK:
        return mark(ui, l, at);
    case ACT_MARK_ALL:
        return mark_all(ui, l);
    case ACT_UNMARK_ALL:
        marks_clear(ui);
        return UI_HANDLED | UI_REDRAW;
    case ACT_KILL:
        if (!ui->marks.n || ui->opts.readonly)
            return UI_IGNORED; /* the row's own */
        overlay_kill_several(ui, ui->marks.v, ui->marks.n);
        return UI_HANDLED | UI_REDRAW;
    default:
        return on_row(ui, a, model_sandbox(ui->model, ui->selected));
    }
}

static int list_mouse(struct ui *ui, void *state, const struct mouse *m, bool again)
{
    struct list *l = state;
    if (m->kind != MOUSE_PRESS || l->filtering)
        return UI_IGNORED;
    collect(ui, l);
    size_t at = l->top + (size_t)(m->y - 1); /* the first row is the columns' names */
    if (m->y < 1 || m->y > l->page || at >= l->rows.ids.n)
        return UI_IGNORED;
    bool here = ui->selected == l->rows.ids.v[at];
    move_to(ui, l, (int64_t)at);
    return again && here ? on_row(ui, ACT_OPEN, model_sandbox(ui->model, ui->selected))
                         : UI_HANDLED | UI_REDRAW;
}

/* A half-typed word may fit nothing: the cursor comes back with its row. */
static void keep_in_sight(struct ui *ui, struct list *l)
{
    if (shown_has(&l->rows, ui->model, l->from))
        ui_select(ui, l->from);
    else if (l->rows.ids.n && !shown_has(&l->rows, ui->model, ui->selected))
        ui_select(ui, l->rows.ids.v[0]);
}

static int64_t filter_step(const struct list *l, enum action a)
{
    int64_t by = a == ACT_LINE_PGUP || a == ACT_LINE_PGDN ? l->page : 1;
    return a == ACT_LINE_UP || a == ACT_LINE_PGUP ? -by : by;
}

/* Keys of the filter field; no command fires while it has the focus. */
static int list_key(struct ui *ui, void *state, key_code k, const char *paste, size_t len)
{
    struct list *l = state;
    switch (ui->found) {
    case ACT_TAKE_LINE:
        l->filtering = false;
        break;
    case ACT_LEAVE_LINE:
        l->filtering = false;
        inputline_set(&l->filter, "");
        break;
    case ACT_LINE_UP:
    case ACT_LINE_DOWN:
    case ACT_LINE_PGUP:
    case ACT_LINE_PGDN:
        collect(ui, l);
        move_to(ui, l, (int64_t)cursor_at(ui, l) + filter_step(l, ui->found));
        l->from = ui->selected;
        break;
    default:
        ui_line_key(ui, &l->filter, k, paste, len);
    }
    collect(ui, l);
    keep_in_sight(ui, l);
    return UI_HANDLED | UI_REDRAW;
}

static const char *list_typing(struct ui *ui, void *state)
{
    const struct list *l = state;
    if (!l->filtering)
        return NULL;
    return ui_keys(ui, " {take-line} keep the filter  {leave-line} clear it   state:running  "
                       "agent:claude  -is:foreign");
}

static const char *list_title(struct ui *ui, void *state)
{
    (void)ui;
    (void)state;
    return "1 sandboxes";
}

static const char *list_note(struct ui *ui, void *state)
{
    struct list *l = state;
    const char *f = inputline_text(&l->filter);
    size_t shown = 0, n = 0;
    collect(ui, l);
    for (size_t i = 0; i < ui->marks.n; i++)
        shown += shown_has(&l->rows, ui->model, ui->marks.v[i]);
    if (*f && ui->panes[PANE_LIST].r.w < UI_LIST_ONLY_W) /* the field below says by what */
        n = (size_t)snprintf(l->note, sizeof(l->note), "%zu of %zu", l->rows.ids.n,
                             ui->model->n_sandboxes);
    else if (*f)
        n = (size_t)snprintf(l->note, sizeof(l->note), "filter: %.40s  %zu of %zu", f, l->rows.ids.n,
                             ui->model->n_sandboxes);
    else
        n = (size_t)snprintf(l->note, sizeof(l->note), "%zu", ui->model->n_sandboxes);
    if (l->order.by != SORT_MADE || l->order.inverted)
        n += (size_t)snprintf(l->note + n, sizeof(l->note) - n, ", by %s%s", sort_word(l->order.by),
                              l->order.inverted ? " inverted" : "");
    if (ui->marks.n && shown < ui->marks.n)
        snprintf(l->note + n, sizeof(l->note) - n, ", %zu marked (%zu not shown)", ui->marks.n,
                 ui->marks.n - shown);
    else if (ui->marks.n)
        snprintf(l->note + n, sizeof(l->note) - n, ", %zu marked", ui->marks.n);
    return l->note;
}

const struct pane_ops pane_list = {
    .name = "sandboxes",
    .scope = SCOPE_LIST,
    .open = list_open,
    .close = list_close,
    .update = list_update,
    .draw = list_draw,
    .action = list_action,
    .key = list_key,
    .mouse = list_mouse,
    .typing = list_typing,
    .title = list_title,
    .note = list_note,
};
