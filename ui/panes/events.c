/* The events pane: what happened to sandboxes, newest last. */
#include <cct/ui/box.h>
#include <cct/ui/ui.h>

#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>

struct events {
    size_t back; /* events scrolled up from the newest */
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

enum { TEXT_AT = 7 }; /* behind the time */

/* What is wrong with the link now stands behind all that happened: the status line may cut it. */
static size_t count(const struct model *m)
{
    return m->n_events + (m->link != LINK_OK && m->link != LINK_CONNECTING && m->link_text);
}

static struct model_event event_at(const struct model *m, size_t i)
{
    return i < m->n_events ? m->events[i]
                           : (struct model_event){.level = 2, .text = m->link_text};
}

/* What an event says: most name their sandbox themselves. */
static void event_text(const struct model *m, const struct model_event *ev, char *dst, size_t size)
{
    const struct sandbox *s = ev->sandbox ? model_sandbox(m, ev->sandbox) : NULL;
    const char *text = ev->text ? ev->text : "";
    bool named = !s || str_starts(text, s->name);
    snprintf(dst, size, "%s%s%s", named ? "" : s->name, named ? "" : " ", text);
}

static int event_rows(const struct model *m, size_t i, int w)
{
    char text[1024];
    const struct model_event ev = event_at(m, i);
    event_text(m, &ev, text, sizeof(text));
    return box_text_rows(text, w);
}

static void draw_event(const struct model *m, size_t i, struct canvas *c, struct rect r)
{
    const struct model_event ev = event_at(m, i);
    char text[1024], hm[16];
    event_text(m, &ev, text, sizeof(text));
    clock_format_hm(hm, sizeof(hm), ev.time_ms);
    canvas_text(c, r.y, r.x + 1, 5, ROLE_HINT, ev.time_ms ? hm : "now");
    box_text(c, (struct rect){r.y, r.x + TEXT_AT, r.h, r.w - TEXT_AT - 1},
             ev.level == 2   ? ROLE_ERROR
             : ev.level == 1 ? ROLE_NOTICE
                              : ROLE_TEXT,
             text);
}

/* No further than that the oldest one is on top. */
static void hold_back(const struct ui *ui, struct events *e, struct rect r)
{
    const struct model *m = ui->model;
    size_t oldest = 0;
    int rows = 0;
    while (oldest < count(m) && (rows += event_rows(m, oldest, r.w - TEXT_AT - 1)) <= r.h)
        oldest++;
    if (e->back > count(m) - oldest)
        e->back = count(m) - oldest;
}

static void events_draw(struct ui *ui, void *state, struct canvas *c, struct rect r,
                        bool focused, int64_t now)
{
    struct events *e = state;
    const struct model *m = ui->model;
    int w = r.w - TEXT_AT - 1, rows;
    size_t first;
    (void)focused;
    (void)now;
    e->page = r.h;
    hold_back(ui, e, r);
    first = count(m) - e->back;
    for (rows = 0; first > 0 && (rows += event_rows(m, first - 1, w)) <= r.h;)
        first--;
    if (first == count(m) - e->back && first > 0)
        first--; /* longer than the pane: its begin */
    for (int y = 0; y < r.h && first < count(m); first++) {
        draw_event(m, first, c, (struct rect){r.y + y, r.x, r.h - y, r.w});
        y += event_rows(m, first, w);
    }
    if (!count(m))
        canvas_text(c, r.y, r.x + 1, r.w - 2, ROLE_HINT, "nothing happened yet");
}

static bool events_update(struct ui *ui, void *state)
{
    struct events *e = state;
    bool changed = e->seen != ui->model->events_rev || ui->model->link != LINK_OK;
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
        e->back = count(ui->model);
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
    hold_back(ui, e, ui->panes[PANE_EVENTS].r);
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
