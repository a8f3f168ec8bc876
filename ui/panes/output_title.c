/* The frame of the output pane: whose output it is, how far it is read, what is wrong. */
#include "list_priv.h"
#include "output_priv.h"

#include <cct/text/width.h>
#include <stdio.h>
#include <string.h>

enum { ROW_CELLS = 22, NOTE_CELLS = 26 };

/* "  running  41m left", where no row of the list says it. */
static void add_row(struct ui *ui, const struct sandbox *s, char *dst, size_t size)
{
    char left[16];
    size_t n = strlen(dst);
    bool warn;
    if (ui->panes[PANE_LIST].visible ||
        (int)text_width(dst, n) + ROW_CELLS + NOTE_CELLS > ui->panes[PANE_OUTPUT].r.w)
        return;
    list_left(ui, s, ui_server_now(ui, ui->now), left, sizeof(left), &warn);
    if (*left == '-' && s->state == SB_RUNNING) /* nothing that is not known */
        return;
    snprintf(dst + n, size - n, "  %s%s%s%s", sb_state_name(s->state), *left == '-' ? "" : "  ",
             *left == '-' ? "" : left, *left == '-' ? "" : " left");
}

const char *output_title(struct ui *ui, void *state)
{
    struct output *o = state;
    const struct sandbox *s = model_sandbox(ui->model, ui->selected);
    const struct procs *p = model_procs(ui->model, ui->selected);
    struct view *v = output_view(ui, o);
    if (!s)
        return "2 output";
    if (processes_wanted(ui, v))
        snprintf(o->title, sizeof(o->title), "2 processes: %.60s", s->name);
    else if (!s->session && p && p->watch != WATCH_NONE)
        snprintf(o->title, sizeof(o->title), "2 live only, nothing from before: process %d",
                 p->watched);
    else
        snprintf(o->title, sizeof(o->title), "2 output%s: %.60s  %.16s",
                 v && v->raw ? " (raw)" : "", s->name, s->tool ? s->tool : "");
    add_row(ui, s, o->title, sizeof(o->title));
    return o->title;
}

/* What keeps a watched process from being seen. */
static const char *watch_trouble(const struct ui *ui)
{
    const struct sandbox *s = model_sandbox(ui->model, ui->selected);
    const struct procs *p = model_procs(ui->model, ui->selected);
    if (!s || s->session || !p)
        return NULL;
    return p->watch == WATCH_OPENING  ? "connecting"
           : p->watch == WATCH_LOST   ? "no link, trying again"
           : p->watch == WATCH_PAUSED ? "paused"
                                      : NULL;
}

/* Many lines by the hundred: a figure that goes on with each of them would be sent with each. */
static void follow_words(char *dst, size_t size, unsigned long long lines)
{
    const char *unit = lines < 1000 ? "" : lines < 1000000 ? "k" : "M";
    double n = (double)(lines < 1000 ? lines : lines < 1000000 ? lines / 100 : lines / 100000);
    snprintf(dst, size, "follow ON  %.*f%s line%s", *unit ? 1 : 0, *unit ? n / 10 : n, unit,
             lines == 1 ? "" : "s");
}

const char *output_note(struct ui *ui, void *state)
{
    struct output *o = state;
    struct view *v = output_view(ui, o);
    const struct transcript *t = ui->selected ? model_transcript(ui->model, ui->selected) : NULL;
    o->w = ui->panes[PANE_OUTPUT].r.w;
    if (processes_wanted(ui, v))
        return processes_note(ui, o->note, sizeof(o->note));
    if (watch_trouble(ui))
        return watch_trouble(ui);
    if (!v || !t || !t->n || v->raw || o->w < 1)
        return NULL;
    view_set_style(v, o);
    unsigned long long all = view_rows(v, t), fresh = v->follow ? 0 : view_fresh(v, t);
    char where[64], pan[24] = "";
    size_t selected = v->selecting ? select_lines(o, v, t) : 0;
    if (v->selecting)
        snprintf(where, sizeof(where), "SELECT  %zu line%s", selected, selected == 1 ? "" : "s");
    else if (v->follow)
        follow_words(where, sizeof(where), all);
    else if (t->more_after)
        snprintf(where, sizeof(where), "PAUSED  newer below");
    else if (fresh)
        snprintf(where, sizeof(where), "PAUSED  %llu new v", fresh);
    else
        snprintf(where, sizeof(where), "line %llu/%llu",
                 all - (unsigned long long)view_rows_after(v, t, view_clamp(v, t, v->cur)), all);
    if (!o->wrap && v->pan)
        snprintf(pan, sizeof(pan), "column %d  ", v->pan + 1);
    size_t used, n = o->pattern ? text_fit(o->pattern, strlen(o->pattern), 20, &used) : 0;
    if (n && o->w >= 60)
        snprintf(o->note, sizeof(o->note), "/%.*s  %s%s", (int)n, o->pattern, pan, where);
    else
        snprintf(o->note, sizeof(o->note), "%s%s", pan, where);
    return o->note;
}
