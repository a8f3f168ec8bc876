/* Where panes go at each size: list only, stacked, two columns, three areas. Each pane has
 * its rule in the row above it, but for the list of the stacked form, whose rule is the
 * header line. */
#include <cct/ui/ui.h>

#include <string.h>

static int clamp(int v, int lo, int hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

void ui_place(struct ui *ui, enum pane_id p, int y, int x, int h, int w)
{
    ui->panes[p].r = (struct rect){y, x, h > 0 ? h : 0, w > 0 ? w : 0};
    ui->panes[p].visible = h > 0 && w > 0;
}

static int input_rows(struct ui *ui, int h, int w)
{
    int most = h / 4 > 2 ? h / 4 : h >= 6 ? 2 : 1;
    return clamp(pane_input_rows(ui, w), 1, most);
}

/* Output with the input below it, both with a rule, in the given area. */
static void place_talk(struct ui *ui, int y, int x, int h, int w)
{
    int rows = input_rows(ui, h, w);
    ui_place(ui, PANE_INPUT, y + h - rows, x, rows, w);
    ui_place(ui, PANE_OUTPUT, y + 1, x, h - rows - 2, w);
}

static bool talks(enum pane_id p)
{
    return p == PANE_OUTPUT || p == PANE_INPUT;
}

void place_wall(struct ui *ui, int top, int h, int w)
{
    int rows = input_rows(ui, h, w);
    ui_place(ui, PANE_INPUT, top + h - rows, 0, rows, w);
    ui_place(ui, PANE_WALL, top + 1, 0, h - rows - 2, w);
}

/* The list's rows want the whole width: what a step does stands at their end. */
void place_builds(struct ui *ui, int top, int h, int w)
{
    int list = clamp(h / 3, 3, 20);
    ui_place(ui, PANE_BUILDS, top + 1, 0, list, w);
    ui_place(ui, PANE_BUILD_LOG, top + 2 + list, 0, h - 2 - list, w);
}

/* A body of one pane, or of two: a list, and what is pointed at in it. */
static void place_body(struct ui *ui, const struct body *b, int top, int h, int w)
{
    int first = w >= UI_COLUMNS_W ? h - 1 : clamp(h / 3, 3, h), left = clamp(w * 2 / 5, 44, 80);
    if (b->n == 1) {
        ui_place(ui, b->panes[0], top + 1, 0, h - 1, w);
    } else if (w >= UI_COLUMNS_W) {
        ui_place(ui, b->panes[0], top + 1, 0, first, left);
        ui_place(ui, b->panes[1], top + 1, left + 1, first, w - left - 1);
    } else {
        ui_place(ui, b->panes[0], top + 1, 0, first, w);
        ui_place(ui, b->panes[1], top + 2 + first, 0, h - 2 - first, w);
    }
}

/* One pane alone (zoom, or a narrow screen). */
static void place_alone(struct ui *ui, int top, int h, int w)
{
    if (talks(ui->focus))
        place_talk(ui, top, 0, h, w);
    else
        ui_place(ui, ui->focus, top + 1, 0, h - 1, w);
}

static void place_stacked(struct ui *ui, int top, int h, int w)
{
    if (ui->focus == PANE_EVENTS || ui->focus == PANE_DETAILS) {
        int list = clamp(h / 2, 3, 12);
        ui_place(ui, PANE_LIST, top, 0, list, w);
        ui_place(ui, ui->focus, top + list + 1, 0, h - list - 1, w);
        return;
    }
    int want = (int)ui->model->n_sandboxes + 1;
    int list = clamp(want, 3, clamp(h * 9 / 20, 3, 12));
    ui_place(ui, PANE_LIST, top, 0, list, w);
    place_talk(ui, top + list, 0, h - list, w);
}

static void place_columns(struct ui *ui, int top, int h, int w)
{
    int left = clamp(w * 2 / 5, 44, 60);
    int events = clamp(h / 5, 3, 9), details = clamp(h / 4, 4, 9);
    int list = h - events - details - 3;
    ui_place(ui, PANE_LIST, top + 1, 0, list, left);
    ui_place(ui, PANE_DETAILS, top + 2 + list, 0, details, left);
    ui_place(ui, PANE_EVENTS, top + 3 + list + details, 0, events, left);
    place_talk(ui, top, left + 1, h, w - left - 1);
}

static void place_wide(struct ui *ui, int top, int h, int w)
{
    int list = clamp((int)ui->model->n_sandboxes + 1, 4, h / 4);
    int right = clamp(w * 2 / 5, 60, 90), below = h - list - 1;
    int details = clamp(below / 3, 5, 14);
    ui_place(ui, PANE_LIST, top + 1, 0, list, w);
    place_talk(ui, top + 1 + list, 0, below, w - right - 1);
    ui_place(ui, PANE_DETAILS, top + 2 + list, w - right, details, right);
    ui_place(ui, PANE_EVENTS, top + 3 + list + details, w - right, below - details - 2, right);
}

void ui_layout(struct ui *ui, int h, int w)
{
    for (int i = 0; i < PANE_COUNT; i++) {
        ui->panes[i].visible = false;
        memset(&ui->panes[i].r, 0, sizeof(ui->panes[i].r));
    }
    ui->tiny = h < UI_MIN_H || w < UI_MIN_W;
    if (ui->tiny)
        return;
    if (ui->bare) {
        ui_place(ui, PANE_OUTPUT, 0, 0, h, w);
        return;
    }
    /* row 0 is the header; the last two are hints and status */
    int top = 1, room = h - 3;
    const struct body *b = &bodies[ui->body];
    if (ui->zoom || (w < UI_LIST_ONLY_W && !b->place))
        place_alone(ui, top, room, w);
    else if (b->place)
        b->place(ui, top, room, w);
    else if (ui->body != BODY_WORK)
        place_body(ui, b, top, room, w);
    else if (w < UI_COLUMNS_W || h < 20)
        place_stacked(ui, top, room, w);
    else if (w < UI_WIDE_W || h < 30)
        place_columns(ui, top, room, w);
    else
        place_wide(ui, top, room, w);
}
