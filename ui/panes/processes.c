/* The processes of the selected sandbox, in the place of its output: for a sandbox that
 * cc-tui did not make this is what there is to see. They are asked for only while they
 * are on the screen. */
#include "output_priv.h"

#include <cct/text/width.h>
#include <cct/ui/box.h>
#include <cct/util/str.h>
#include <stdio.h>
#include <string.h>

enum { PID_CELLS = 8, CWD_CELLS = 22, TAG_CELLS = 14, CWD_FROM = 76, TAG_FROM = 110,
       DETAIL_ROWS = 3, DETAIL_FROM = 9 };

static const struct sandbox *row_of(const struct ui *ui)
{
    return model_sandbox(ui->model, ui->selected);
}

bool processes_wanted(const struct ui *ui, const struct view *v)
{
    const struct sandbox *s = row_of(ui);
    const struct procs *p = model_procs(ui->model, ui->selected);

    if (!s || !v)
        return false;
    if (v->procs != PROCS_AS_FITS)
        return v->procs == PROCS_SHOWN;
    return (s->foreign || (s->adopted && !s->session)) && (!p || p->watch == WATCH_NONE);
}

void processes_settle(struct ui *ui)
{
    const struct pane *pane = &ui->panes[PANE_OUTPUT];
    bool seen = pane->visible && !ui->tiny && !ui->away &&
                processes_wanted(ui, output_view(ui, pane->state));
    uint64_t now = seen ? ui->selected : 0;

    if (now == ui->procs_of)
        return;
    if (ui->procs_of && model_sandbox(ui->model, ui->procs_of))
        app_procs(ui->app, ui->procs_of, false);
    if (now)
        app_procs(ui->app, now, true);
    ui->procs_of = now;
}

/* --- the cursor ------------------------------------------------------------------ */

static size_t cursor_at(const struct procs *p, struct view *v)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->v[i].pid == v->proc_pid)
            return v->proc_at = i;
    /* it is gone: the one that took its place */
    if (v->proc_at >= p->n)
        v->proc_at = p->n ? p->n - 1 : 0;
    return v->proc_at;
}

const struct proc *processes_cursor(const struct ui *ui, struct view *v)
{
    const struct procs *p = model_procs(ui->model, ui->selected);

    return p && p->state == PROCS_LISTED && p->n ? &p->v[cursor_at(p, v)] : NULL;
}

static int move(struct view *v, const struct procs *p, int64_t to)
{
    if (!p || !p->n)
        return UI_HANDLED;
    to = to < 0 ? 0 : to >= (int64_t)p->n ? (int64_t)p->n - 1 : to;
    v->proc_at = (size_t)to;
    v->proc_pid = p->v[to].pid;
    return UI_HANDLED | UI_REDRAW;
}

/* --- drawing --------------------------------------------------------------------- */

/* What stands in the place of the list; NULL when there is one. */
static const char *instead(struct ui *ui, const struct sandbox *s, const struct procs *p)
{
    if (s->state == SB_PAUSED)
        return ui_keys(ui, "paused: resume it first ({resume} in the list); a paused sandbox is asked nothing");
    if (s->state == SB_CREATING)
        return "creating the sandbox";
    if (s->state == SB_KILLED || (s->state == SB_ERROR && !s->vm_up))
        return "it is gone";
    if (!p || p->state == PROCS_UNKNOWN || p->state == PROCS_ASKING)
        return "asking for its processes";
    if (p->state == PROCS_CANNOT)
        return p->text;
    return p->n ? NULL : "nothing runs in it that was started over the sandbox's API";
}

struct columns {
    int command, cwd, tag;
};

static struct columns columns_for(int w, const struct procs *p)
{
    struct columns c = {0};

    for (size_t i = 0; i < p->n; i++) { /* columns that say something */
        c.cwd = w >= CWD_FROM && p->v[i].cwd ? CWD_CELLS : c.cwd;
        c.tag = w >= TAG_FROM && p->v[i].tag ? TAG_CELLS : c.tag;
    }
    c.command = w - 2 - PID_CELLS - c.cwd - c.tag;
    return c;
}

static void draw_head(struct canvas *c, struct rect r, struct columns col)
{
    int x = r.x + 2;

    canvas_right(c, r.y, x, PID_CELLS - 2, ROLE_HINT, "PID");
    x += PID_CELLS;
    canvas_text(c, r.y, x, -1, ROLE_HINT, "COMMAND");
    x += col.command;
    if (col.cwd)
        canvas_text(c, r.y, x, -1, ROLE_HINT, "FOLDER");
    x += col.cwd;
    if (col.tag)
        canvas_text(c, r.y, x, -1, ROLE_HINT, "TAG");
}

static bool is_watched(const struct procs *p, const struct proc *one)
{
    bool on = p->watch == WATCH_OPENING || p->watch == WATCH_LIVE || p->watch == WATCH_LOST;

    return on && p->watched == one->pid;
}

static void draw_row(struct canvas *c, int y, struct rect r, struct columns col,
                     const struct procs *p, const struct proc *one)
{
    char pid[16];
    int x = r.x + 2;

    snprintf(pid, sizeof(pid), "%d", one->pid);
    if (is_watched(p, one))
        canvas_text(c, y, r.x + 1, 1, ROLE_WORKING, "*");
    canvas_right(c, y, x, PID_CELLS - 2, ROLE_TEXT, pid);
    x += PID_CELLS;
    canvas_text(c, y, x, col.command - 1, ROLE_TEXT, one->brief ? one->brief : one->command);
    x += col.command;
    if (col.cwd)
        canvas_text(c, y, x, col.cwd - 1, ROLE_DIM, one->cwd ? one->cwd : "-");
    x += col.cwd;
    if (col.tag)
        canvas_text(c, y, x, col.tag - 1, ROLE_DIM, one->tag ? one->tag : "-");
}

/* The whole command line of the cursor's row, where there is room for it. */
static void draw_detail(struct canvas *c, struct rect r, const struct proc *one)
{
    struct rect old = canvas_clip(c, r);

    canvas_rule(c, r.y, r.x, r.w, ROLE_RULE, NULL, NULL, false);
    box_text(c, (struct rect){r.y + 1, r.x + 1, r.h - 1, r.w - 2}, ROLE_DIM, one->command);
    canvas_unclip(c, old);
}

void processes_draw(struct ui *ui, struct view *v, struct canvas *c, struct rect r, bool focused)
{
    const struct procs *p = model_procs(ui->model, ui->selected);
    const char *say = instead(ui, row_of(ui), p);

    if (say) {
        box_text(c, (struct rect){r.y, r.x + 1, r.h, r.w - 2}, ROLE_HINT, say);
        return;
    }
    struct columns col = columns_for(r.w, p);
    size_t at = cursor_at(p, v);
    int rows = r.h - 1;
    if (r.h >= DETAIL_FROM) {
        rows -= DETAIL_ROWS;
        draw_detail(c, (struct rect){r.y + r.h - DETAIL_ROWS, r.x, DETAIL_ROWS, r.w}, &p->v[at]);
    }
    rows = rows > 0 ? rows : 1;
    v->proc_page = rows;
    if (at < v->proc_top)
        v->proc_top = at;
    if (at >= v->proc_top + (size_t)rows)
        v->proc_top = at - (size_t)rows + 1;
    draw_head(c, r, col);
    for (int i = 0; i < rows && v->proc_top + (size_t)i < p->n; i++) {
        size_t k = v->proc_top + (size_t)i;
        draw_row(c, r.y + 1 + i, r, col, p, &p->v[k]);
        if (k != at)
            continue;
        canvas_text(c, r.y + 1 + i, r.x, 1, ROLE_TITLE, ">");
        if (focused)
            canvas_mark(c, (struct rect){r.y + 1 + i, r.x, 1, r.w}, TEXT_BOLD);
    }
}

/* --- actions --------------------------------------------------------------------- */

static int watch(struct ui *ui, struct view *v)
{
    const struct proc *one = processes_cursor(ui, v);
    const struct procs *p = model_procs(ui->model, ui->selected);
    const struct sandbox *s = row_of(ui);

    if (!one) {
        ui_status(ui, 0, "no process to watch");
    } else if (s->session && !s->foreign) {
        /* the place of its output is taken by what is kept */
        ui_status(ui, 1, "in a shell: cc-tui watch %s %d (here is the sandbox's own transcript)",
                  s->name, one->pid);
    } else {
        if (!is_watched(p, one) || p->watched_ident != one->ident)
            app_proc_watch(ui->app, ui->selected, one->pid, one->ident);
        v->procs = PROCS_HIDDEN;
        v->follow = true;
    }
    return UI_HANDLED | UI_REDRAW;
}

int processes_action(struct ui *ui, struct view *v, enum action a)
{
    const struct procs *p = model_procs(ui->model, ui->selected);
    const struct proc *one = processes_cursor(ui, v);
    int64_t at = p && p->n ? (int64_t)cursor_at(p, v) : 0, page = v->proc_page;

    switch (a) {
    case ACT_DOWN:
        return move(v, p, at + 1);
    case ACT_UP:
        return move(v, p, at - 1);
    case ACT_TOP:
        return move(v, p, 0);
    case ACT_BOTTOM:
        return move(v, p, INT64_MAX);
    case ACT_HALF_DOWN:
        return move(v, p, at + (page + 1) / 2);
    case ACT_HALF_UP:
        return move(v, p, at - (page + 1) / 2);
    case ACT_PAGE_DOWN:
        return move(v, p, at + page);
    case ACT_PAGE_UP:
        return move(v, p, at - page);
    case ACT_PROC_WATCH:
        return watch(ui, v);
    case ACT_PROC_END:
        if (ui->opts.readonly)
            return UI_IGNORED; /* refused for all panes alike */
        if (one)
            overlay_process_end(ui, ui->selected, one);
        else
            ui_status(ui, 0, "no process to end");
        return UI_HANDLED | UI_REDRAW;
    default:
        return UI_IGNORED;
    }
}

const char *processes_note(struct ui *ui, char *dst, size_t size)
{
    const struct procs *p = model_procs(ui->model, ui->selected);

    if (instead(ui, row_of(ui), p))
        return NULL;
    snprintf(dst, size, p->more ? "%zu of %zu" : "%zu running", p->n, p->n + p->more);
    return dst;
}
