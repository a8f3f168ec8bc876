/* Where panes go at each size: list only, stacked, two columns, three areas. Each pane has
 * its rule in the row above it, but for the list of the stacked form, whose rule is the
 * header line. */
#include <cct/ui/ui.h>

#include <string.h>

enum { LIST_STEP = 4 };

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
    if (ui->focus != PANE_LIST && !talks(ui->focus)) { /* one that has no place here of its own */
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

/* --- columns of several panes ----------------------------------------------------------- */

/* A pane of a column: rows without which it says nothing, that do, and that it can use. */
struct slot {
    enum pane_id p;
    int least, good, most;
    int need; /* the one with the least gives way first */
    int h;    /* 0: it gave way */
    int up_to;
};

/* The one that gives way next; the pane with the keys never does. -1: none is left. */
static int least_needed(const struct ui *ui, const struct slot *v, int n)
{
    int at = -1;
    for (int i = 0; i < n; i++)
        if (v[i].h && v[i].p != ui->focus && (at < 0 || v[i].need < v[at].need))
            at = i;
    return at;
}

/* A row for each in turn until it has enough; returns what is left. */
static int spread(struct slot *v, int n, int room)
{
    for (bool took = true; room > 0 && took;) {
        took = false;
        for (int i = 0; i < n && room > 0; i++)
            if (v[i].h && v[i].h < v[i].up_to) {
                v[i].h++;
                room--;
                took = true;
            }
    }
    return room;
}

/* Heights within `room`, in which each has its rule, too; returns what nobody can use. */
static int share(const struct ui *ui, struct slot *v, int n, int room)
{
    for (int i = 0; i < n; i++) {
        v[i].h = v[i].least;
        room -= v[i].h + 1;
    }
    for (int at; room < 0 && (at = least_needed(ui, v, n)) >= 0; v[at].h = 0)
        room += v[at].h + 1;
    for (int i = 0; i < n; i++)
        v[i].up_to = v[i].good;
    room = spread(v, n, room);
    for (int i = 0; i < n; i++)
        v[i].up_to = v[i].most;
    return spread(v, n, room);
}

static void place_slots(struct ui *ui, const struct slot *v, int n, int y, int x, int w)
{
    for (int i = 0; i < n; i++)
        if (v[i].h) {
            ui_place(ui, v[i].p, y + 1, x, v[i].h, w);
            y += v[i].h + 1;
        }
}

/* Rows that the list wants, with its head. In steps: what stands below it does not move with
 * each sandbox that comes or goes. */
static int list_rows(const struct ui *ui, int least, int most)
{
    int rows = ((int)ui->model->n_sandboxes + 1 + LIST_STEP - 1) / LIST_STEP * LIST_STEP;
    return clamp(rows, least, most > least ? most : least);
}

static void place_columns(struct ui *ui, int top, int h, int w)
{
    struct slot v[] = {{PANE_DETAILS, 5, 6, 10, 4, 0, 0},
                       {PANE_BUILDS, 2, 4, 6, 1, 0, 0},
                       {PANE_USAGE, 2, 3, 9, 2, 0, 0},
                       {PANE_EVENTS, 3, 4, 9, 3, 0, 0}};
    enum { N = sizeof(v) / sizeof(v[0]) };
    int left = clamp(w * 2 / 5, 44, 60), list = list_rows(ui, 2 * LIST_STEP, h * 3 / 5);
    list += share(ui, v, N, h - list - 1);
    ui_place(ui, PANE_LIST, top + 1, 0, list, left);
    place_slots(ui, v, N, top + 1 + list, 0, left);
    place_talk(ui, top, left + 1, h, w - left - 1);
}

static void place_wide(struct ui *ui, int top, int h, int w)
{
    struct slot v[] = {{PANE_DETAILS, 5, 6, 8, 5, 0, 0},
                       {PANE_CHANGES, 3, 4, 6, 1, 0, 0},
                       {PANE_BUILDS, 3, 5, 6, 2, 0, 0},
                       {PANE_USAGE, 3, 10, 13, 3, 0, 0},
                       {PANE_EVENTS, 4, 5, 12, 4, 0, 0}};
    enum { N = sizeof(v) / sizeof(v[0]) };
    int list = list_rows(ui, LIST_STEP, h / 2), below = h - list - 1;
    int right = clamp(w * 2 / 5, 60, 90);
    int spare = share(ui, v, N, below);
    for (int i = N - 1; i >= 0 && spare; i--)
        if (v[i].h) {
            v[i].h += spare;
            spare = 0;
        }
    ui_place(ui, PANE_LIST, top + 1, 0, list, w);
    place_talk(ui, top + 1 + list, 0, below, w - right - 1);
    place_slots(ui, v, N, top + 1 + list, w - right, right);
}

int ui_header_rows(const struct ui *ui)
{
    return !ui->opts.replay && ui->canvas.w >= UI_SUMS_W && ui->canvas.h >= UI_SUMS_H ? 2 : 1;
}

bool ui_has_columns(const struct ui *ui)
{
    return ui->canvas.w >= UI_COLUMNS_W && ui->canvas.h >= UI_COLUMNS_H;
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
    /* the header is on top; the last two rows are hints and status */
    int top = ui_header_rows(ui), room = h - 2 - top;
    const struct body *b = &bodies[ui->body];
    if (ui->opts.replay)
        ui_place(ui, PANE_OUTPUT, top + 1, 0, room - 1, w);
    else if (ui->zoom || (w < UI_LIST_ONLY_W && !b->place))
        place_alone(ui, top, room, w);
    else if (b->place)
        b->place(ui, top, room, w);
    else if (ui->body != BODY_WORK)
        place_body(ui, b, top, room, w);
    else if (!ui_has_columns(ui))
        place_stacked(ui, top, room, w);
    else if (w < UI_WIDE_W || h < UI_TALL_H)
        place_columns(ui, top, room, w);
    else
        place_wide(ui, top, room, w);
}
