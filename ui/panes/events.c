/* The events pane: what happened to sandboxes, newest last. */
#include <cct/ui/ui.h>

#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>

struct events {
    size_t back; /* rows scrolled up from the newest */
    int page;
    uint64_t seen;
    char title[64];
};

static void *events_open(struct ui *ui)
{
    (void)ui;
    return xcalloc(1, sizeof(struct events));
}

static void events_close(void *state)
{
    free(state);
}

static void events_draw(struct ui *ui, void *state, struct canvas *c, struct rect r,
                        bool focused, int64_t now)
{
    struct events *e = state;
    const struct model *m = ui->model;
    (void)focused;
    (void)now;
    e->page = r.h;
    size_t most = m->n_events > (size_t)r.h ? m->n_events - (size_t)r.h : 0;
    if (e->back > most)
        e->back = most;
    size_t first = most - e->back;
    for (int y = 0; y < r.h && first + (size_t)y < m->n_events; y++) {
        const struct model_event *ev = &m->events[first + (size_t)y];
        const struct sandbox *s = ev->sandbox ? model_sandbox(m, ev->sandbox) : NULL;
        char hm[16];
        clock_format_hm(hm, sizeof(hm), ev->time_ms);
        enum theme_role role = ev->level == 2 ? ROLE_ERROR : ev->level == 1 ? ROLE_NOTICE : ROLE_TEXT;
        canvas_text(c, r.y + y, r.x + 1, 5, ROLE_HINT, hm);
        const char *text = ev->text ? ev->text : "";
        bool named = !s || str_starts(text, s->name); /* most say it themselves */
        canvas_textf(c, r.y + y, r.x + 7, r.w - 8, role, "%s%s%s", named ? "" : s->name,
                     named ? "" : " ", text);
    }
    if (!m->n_events)
        canvas_text(c, r.y, r.x + 1, r.w - 2, ROLE_HINT, "nothing happened yet");
}

static bool events_update(struct ui *ui, void *state)
{
    struct events *e = state;
    bool changed = e->seen != ui->model->events_rev;
    e->seen = ui->model->events_rev;
    return changed;
}

static int events_action(struct ui *ui, void *state, enum action a)
{
    struct events *e = state;
    size_t page = e->page > 1 ? (size_t)e->page : 1;
    size_t up = a == ACT_UP ? 1 : a == ACT_HALF_UP ? (page + 1) / 2 : a == ACT_PAGE_UP ? page : 0;
    size_t down = a == ACT_DOWN      ? 1
                  : a == ACT_HALF_DOWN ? (page + 1) / 2
                  : a == ACT_PAGE_DOWN ? page
                                       : 0;
    if (a == ACT_TOP)
        e->back = ui->model->n_events;
    else if (a == ACT_BOTTOM)
        e->back = 0;
    else if (up)
        e->back += up;
    else if (down)
        e->back = e->back > down ? e->back - down : 0;
    else
        return UI_IGNORED;
    return UI_HANDLED | UI_REDRAW;
}

static const char *events_title(struct ui *ui, void *state)
{
    struct events *e = state;
    (void)ui;
    snprintf(e->title, sizeof(e->title), "5 events%s", e->back ? " (scrolled back)" : "");
    return e->title;
}

const struct pane_ops pane_events = {
    .name = "events",
    .scope = SCOPE_NAV,
    .open = events_open,
    .close = events_close,
    .update = events_update,
    .draw = events_draw,
    .action = events_action,
    .title = events_title,
};
