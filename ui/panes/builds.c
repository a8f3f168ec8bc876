/* The builds pane: templates that were built here, newest first, then the others that the
 * service has. */
#include "builds_priv.h"

#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOOL_W = 10, VERSION_W = 9, STATE_W = 11, TIME_W = 6, BAR = 6, SMALL = 56, NARROW = 72,
       WIDE = 110 };

/* Columns at a width; 0 = left out. Where it is small, a build's time and its step share a
 * place: only what is over tells how long it took. */
struct cols {
    int name, tool, version, state, time;
};

static struct cols cols_for(int w)
{
    struct cols c = {.name = 20, .state = STATE_W, .time = TIME_W + 1};

    if (w < SMALL)
        return (struct cols){.name = 16, .state = 10};
    if (w >= NARROW) {
        c.tool = TOOL_W;
        c.version = VERSION_W;
    }
    if (w >= WIDE)
        c.name += 12;
    return c;
}

static void *builds_open(struct ui *ui)
{
    (void)ui;
    return xcalloc(1, sizeof(struct builds_pane));
}

static void builds_close(void *state)
{
    struct builds_pane *p = state;

    ARR_RELEASE(&p->others);
    free(p);
}

/* --- rows -------------------------------------------------------------------------- */

/* "hand:v1" and "hand" are one template. */
static bool same_template(const struct tbuild *b, const struct app_template *t)
{
    size_t n = strcspn(b->name, ":");

    return (t->id && str_eq(b->template_id, t->id)) ||
           (strcspn(t->name, ":") == n && strncmp(b->name, t->name, n) == 0);
}

static bool was_built(const struct model *m, const struct app_template *t)
{
    for (size_t i = 0; i < m->n_builds; i++)
        if (same_template(&m->builds[i], t))
            return true;
    return false;
}

/* The pane with its others as they are now. Each is looked for among all builds, so that is
 * not done for each row and picture. */
static const struct builds_pane *with_others(struct ui *ui)
{
    struct builds_pane *p = ui->panes[PANE_BUILDS].state;
    const struct model *m = ui->model;
    const struct app_templates *all = app_template_list(ui->app);

    if (p->others_of == all->v && p->others_n == all->n && p->others_rev == m->builds_rev + 1)
        return p;
    p->others_of = all->v;
    p->others_n = all->n;
    p->others_rev = m->builds_rev + 1; /* 0: not made yet */
    ARR_CLEAR(&p->others);
    for (size_t i = 0; i < all->n; i++)
        if (!was_built(m, &all->v[i]))
            *ARR_PUSH(&p->others) = i;
    return p;
}

/* Row i, both NULL behind the last one. */
static struct builds_row row_at(struct ui *ui, size_t i)
{
    const struct model *m = ui->model;
    const struct builds_pane *p = with_others(ui);

    if (i < m->n_builds)
        return (struct builds_row){&m->builds[m->n_builds - 1 - i], NULL};
    i -= m->n_builds;
    if (i < p->others.n)
        return (struct builds_row){NULL, &app_template_list(ui->app)->v[p->others.v[i]]};
    return (struct builds_row){NULL, NULL};
}

static size_t count(struct ui *ui)
{
    return ui->model->n_builds + with_others(ui)->others.n;
}

static bool is_cursor(const struct builds_pane *p, struct builds_row r)
{
    return r.b ? r.b->id == p->at : r.t && !p->at && str_eq(r.t->id ? r.t->id : r.t->name, p->template);
}

static size_t cursor_at(struct ui *ui, const struct builds_pane *p)
{
    size_t n = count(ui);

    for (size_t i = 0; i < n; i++)
        if (is_cursor(p, row_at(ui, i)))
            return i;
    return 0;
}

struct builds_row builds_cursor(struct ui *ui)
{
    return row_at(ui, cursor_at(ui, ui->panes[PANE_BUILDS].state));
}

static void go_to(struct ui *ui, struct builds_pane *p, size_t i)
{
    struct builds_row r = row_at(ui, i);

    p->at = r.b ? r.b->id : 0;
    str_copy(p->template, sizeof(p->template), r.t ? (r.t->id ? r.t->id : r.t->name) : "");
    if (ui->body == BODY_BUILDS) /* nobody sees it elsewhere */
        build_log_of(ui, r.b);
}

void builds_shown(struct ui *ui)
{
    struct builds_pane *p = ui->panes[PANE_BUILDS].state;

    app_prepare(ui->app); /* the service's templates */
    go_to(ui, p, cursor_at(ui, p));
}

static uint64_t newest(const struct model *m)
{
    return m->n_builds ? m->builds[m->n_builds - 1].id : 0;
}

void builds_await_new(struct ui *ui)
{
    struct builds_pane *p = ui->panes[PANE_BUILDS].state;

    p->awaits = true;
    p->newer_than = newest(ui->model);
}

void builds_hidden(struct ui *ui)
{
    build_log_leave(ui);
}

/* --- drawing ------------------------------------------------------------------------- */

static enum theme_role role_of(enum tb_state s)
{
    return s == TB_READY       ? ROLE_IDLE
           : s == TB_ERROR     ? ROLE_ERROR
           : s == TB_CANCELLED ? ROLE_KILLED
           : s == TB_BUILDING  ? ROLE_WORKING
                               : ROLE_CREATING;
}

static const char *glyph_of(enum tb_state s)
{
    return s == TB_READY ? "." : s == TB_ERROR ? "!" : s == TB_CANCELLED ? "x" : s == TB_BUILDING ? "*" : "~";
}

/* In whole minutes while it goes on, so that nothing ticks. */
static void time_cell(char *dst, size_t size, const struct tbuild *b, int64_t now)
{
    int64_t ms = (b->ended_at ? b->ended_at : now) - b->started_at;

    if (!b->ended_at && ms < 60000)
        str_copy(dst, size, "<1m");
    else
        clock_format_span(dst, size, b->ended_at ? ms : ms / 60000 * 60000);
}

static int draw_bar(const struct tbuild *b, struct canvas *c, int y, int x, int max)
{
    char bar[BAR + 1];
    int full = b->steps ? (b->step - 1) * BAR / b->steps : 0;

    if (b->state != TB_BUILDING || !b->step || !b->steps || b->step > b->steps)
        return 0;
    for (int i = 0; i < BAR; i++)
        bar[i] = i < full ? '#' : '.';
    bar[BAR] = '\0';
    return canvas_textf(c, y, x, max, ROLE_WORKING, "[%s] %d/%d  ", bar, b->step, b->steps);
}

/* What is going on, or what came of it. */
static void step_text(const struct tbuild *b, char *dst, size_t size)
{
    if (b->state == TB_BUILDING && b->step && b->steps)
        snprintf(dst, size, "%s%s", b->cached ? "(cached) " : "", b->title ? b->title : "");
    else
        tbuild_text(b, dst, size);
}

static void draw_build(const struct tbuild *b, struct canvas *c, int y, struct rect r, int64_t now)
{
    struct cols k = cols_for(r.w);
    int x = r.x + 3, end = r.x + r.w;
    char text[400], time[16];

    canvas_text(c, y, r.x + 1, 1, role_of(b->state), glyph_of(b->state));
    canvas_text(c, y, x, k.name - 1, ROLE_TEXT, b->name);
    x += k.name;
    if (k.tool) {
        canvas_text(c, y, x, k.tool - 1, ROLE_DIM, b->tool ? b->tool : "-");
        canvas_text(c, y, x + k.tool, k.version - 1, ROLE_DIM, b->version ? b->version : "-");
    }
    x += k.tool + k.version;
    canvas_text(c, y, x, k.state - 1, role_of(b->state), tb_state_name(b->state));
    x += k.state;
    time_cell(time, sizeof(time), b, now);
    if (k.time)
        canvas_right(c, y, x, k.time - 2, ROLE_TEXT, time);
    x += k.time;
    x += draw_bar(b, c, y, x, end - x);
    step_text(b, text, sizeof(text));
    if (!k.time && b->state == TB_READY)
        str_copy(text, sizeof(text), time);
    canvas_text(c, y, x, end - x, b->state == TB_ERROR ? ROLE_ERROR : ROLE_DIM, text);
}

static void draw_template(const struct app_template *t, struct canvas *c, int y, struct rect r)
{
    struct cols k = cols_for(r.w);
    int x = r.x + 3;

    canvas_text(c, y, r.x + 1, 1, ROLE_DIM, t->ready ? "." : str_eq(t->status, "error") ? "!" : "~");
    canvas_text(c, y, x, k.name - 1, ROLE_TEXT, t->name);
    x += k.name + k.tool + k.version;
    canvas_text(c, y, x, k.state - 1, ROLE_DIM, t->status && *t->status ? t->status : "ready");
    x += k.state + k.time;
    if (t->cpu_count && t->memory_mb)
        canvas_textf(c, y, x, r.x + r.w - x, ROLE_DIM, "%d vCPU  %.1f GiB", t->cpu_count,
                     (double)t->memory_mb / 1024);
}

static void draw_head(struct canvas *c, struct rect r)
{
    struct cols k = cols_for(r.w);
    int x = r.x + 3;

    canvas_text(c, r.y, x, -1, ROLE_HINT, "TEMPLATE");
    x += k.name;
    if (k.tool) {
        canvas_text(c, r.y, x, -1, ROLE_HINT, "TOOL");
        canvas_text(c, r.y, x + k.tool, -1, ROLE_HINT, "VERSION");
    }
    x += k.tool + k.version;
    canvas_text(c, r.y, x, -1, ROLE_HINT, "STATE");
    x += k.state;
    if (k.time)
        canvas_right(c, r.y, x, k.time - 2, ROLE_HINT, "TIME");
    x += k.time;
    canvas_text(c, r.y, x, r.x + r.w - x, ROLE_HINT, "STEP");
}

/* Where it is small beside others every row is a build. */
static bool is_large(const struct ui *ui)
{
    return ui->body == BODY_BUILDS;
}

static void draw_none(struct ui *ui, struct canvas *c, int y, struct rect r)
{
    const char *error = app_template_list(ui->app)->error;

    canvas_text(c, y, r.x + 3, r.w - 4, ROLE_HINT,
                error                            ? error
                : ui->focus == PANE_BUILDS       ? ui_keys(ui, "nothing was built here yet: {build-new} begins")
                                                 : "nothing was built here yet");
}

static void builds_draw(struct ui *ui, void *state, struct canvas *c, struct rect r, bool focused,
                        int64_t now)
{
    struct builds_pane *p = state;
    size_t n = count(ui), at = cursor_at(ui, p);
    struct rect old = canvas_clip(c, r);
    int head = is_large(ui);

    p->page = r.h - head > 0 ? r.h - head : 1;
    if (at < p->top)
        p->top = at;
    if (at >= p->top + (size_t)p->page)
        p->top = at - (size_t)p->page + 1;
    if (p->top + (size_t)p->page > n)
        p->top = n > (size_t)p->page ? n - (size_t)p->page : 0;
    if (head)
        draw_head(c, r);
    for (int i = 0; i < p->page && p->top + (size_t)i < n; i++) {
        struct builds_row row = row_at(ui, p->top + (size_t)i);
        int y = r.y + head + i;

        if (row.b)
            draw_build(row.b, c, y, r, now);
        else
            draw_template(row.t, c, y, r);
        if (p->top + (size_t)i != at)
            continue;
        canvas_text(c, y, r.x, 1, ROLE_TITLE, ">");
        if (focused)
            canvas_mark(c, (struct rect){y, r.x, 1, r.w}, TEXT_BOLD);
    }
    if (!n)
        draw_none(ui, c, r.y + head, r);
    canvas_unclip(c, old);
}

static bool builds_update(struct ui *ui, void *state)
{
    struct builds_pane *p = state;
    bool changed = p->seen != ui->model->builds_rev;

    if (changed && p->awaits && newest(ui->model) > p->newer_than) {
        p->awaits = false;
        p->at = newest(ui->model);
    }
    if (changed && (is_large(ui) || ui->focus == PANE_BUILDS)) /* a new one comes on top; a row may be gone */
        go_to(ui, p, cursor_at(ui, p));
    p->seen = ui->model->builds_rev;
    return changed || is_large(ui);
}

/* --- keys ------------------------------------------------------------------------------ */

static int move(struct ui *ui, struct builds_pane *p, enum action a)
{
    size_t n = count(ui), at = cursor_at(ui, p), page = (size_t)p->page, step = 0;
    bool up = a == ACT_UP || a == ACT_HALF_UP || a == ACT_PAGE_UP;

    if (!n)
        return UI_HANDLED;
    step = a == ACT_UP || a == ACT_DOWN                ? 1
           : a == ACT_HALF_UP || a == ACT_HALF_DOWN    ? (page + 1) / 2
           : a == ACT_PAGE_UP || a == ACT_PAGE_DOWN    ? page
                                                       : n;
    if (a == ACT_TOP)
        at = 0;
    else if (up)
        at = at > step ? at - step : 0;
    else
        at = at + step < n ? at + step : n - 1;
    go_to(ui, p, at);
    return UI_HANDLED | UI_REDRAW;
}

static void use(struct ui *ui, struct builds_row r)
{
    bool ready = r.b ? r.b->state == TB_READY : r.t && r.t->ready;

    if (!r.b && !r.t)
        ui_status(ui, 0, "there is no template here; {build-new} builds one");
    else if (!ready)
        ui_status(ui, 1, "%s has no finished build: only those can be chosen", r.b ? r.b->name : r.t->name);
    else
        overlay_create_from(ui, r.b ? r.b->name : r.t->name, r.b ? r.b->tool : NULL);
}

static void again(struct ui *ui, struct builds_row r)
{
    if (!r.b) {
        ui_status(ui, 0, "only what was built from here can be built again: its recipe is kept");
        return;
    }
    app_build_again(ui->app, r.b->id, NULL, NULL, false, NULL, NULL);
    builds_await_new(ui);
    ui_status(ui, 0, "building %s again", r.b->name);
}

static void cancel(struct ui *ui, struct builds_row r)
{
    if (!r.b || tb_is_over(r.b->state)) {
        ui_status(ui, 0, "nothing is being built here");
        return;
    }
    app_build_cancel(ui->app, r.b->id, NULL);
    ui_status(ui, 0, "calling off the build of %s", r.b->name);
}

static void delete(struct ui *ui, struct builds_row r)
{
    if (r.b)
        overlay_build_delete(ui, r.b->id, r.b->name, r.b->template_id);
    else if (r.t)
        overlay_build_delete(ui, 0, r.t->name, r.t->id);
    else
        ui_status(ui, 0, "there is no template here");
}

/* It is read where it is shown. */
static void log_first(struct ui *ui)
{
    ui_show(ui, BODY_BUILDS);
    ui_status(ui, 0, "its log is read now; {build-export} writes it to a file");
}

int builds_do(struct ui *ui, enum action a)
{
    struct builds_row r = builds_cursor(ui);

    if (ui->opts.readonly && ui_changes_things(a))
        return UI_IGNORED; /* refused for all alike */
    if (a == ACT_BUILD_NEW)
        overlay_build(ui);
    else if (a == ACT_BUILD_USE)
        use(ui, r);
    else if (a == ACT_BUILD_AGAIN)
        again(ui, r);
    else if (a == ACT_BUILD_CANCEL)
        cancel(ui, r);
    else if (a == ACT_BUILD_DELETE || a == ACT_KILL) /* D means what the cursor is on */
        delete(ui, r);
    else if (a == ACT_BUILD_EXPORT && !is_large(ui))
        log_first(ui);
    else if (a == ACT_BUILD_EXPORT || a == ACT_BUILD_LOG_EXPORT)
        build_log_export(ui);
    else
        return UI_IGNORED;
    return UI_HANDLED | UI_REDRAW;
}

static int builds_action(struct ui *ui, void *state, enum action a)
{
    switch (a) {
    case ACT_UP:
    case ACT_DOWN:
    case ACT_TOP:
    case ACT_BOTTOM:
    case ACT_HALF_UP:
    case ACT_HALF_DOWN:
    case ACT_PAGE_UP:
    case ACT_PAGE_DOWN:
        return move(ui, state, a);
    default:
        return builds_do(ui, a);
    }
}

static const char *builds_note(struct ui *ui, void *state)
{
    struct builds_pane *p = state;
    const struct model *m = ui->model;
    size_t running = 0, failed = 0;

    for (size_t i = 0; i < m->n_builds; i++) {
        running += !tb_is_over(m->builds[i].state);
        failed += m->builds[i].state == TB_ERROR;
    }
    if (is_large(ui))
        snprintf(p->note, sizeof(p->note), "%zu total, %zu running", count(ui), running);
    else
        snprintf(p->note, sizeof(p->note), "%zu running", running);
    if (failed)
        snprintf(p->note + strlen(p->note), sizeof(p->note) - strlen(p->note), ", %zu failed", failed);
    return p->note;
}

static const char *builds_title(struct ui *ui, void *state)
{
    (void)ui;
    (void)state;
    return "3 builds";
}

const struct pane_ops pane_builds = {
    .name = "builds",
    .scope = SCOPE_BUILDS,
    .open = builds_open,
    .close = builds_close,
    .update = builds_update,
    .draw = builds_draw,
    .action = builds_action,
    .title = builds_title,
    .note = builds_note,
};
