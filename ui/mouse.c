/* The mouse: which pane it is about, clicks and drags. It answers no question: while one is on
 * the screen nothing it does counts. */
#include <cct/ui/ui.h>

enum { AGAIN_MS = 400, WHEEL_ROWS = 3 };

int ui_toggle_mouse(struct ui *ui)
{
    if (ui->opts.no_mouse) {
        ui_status(ui, 1, "mosh does not hand the mouse on");
        return UI_HANDLED | UI_REDRAW;
    }
    ui->mouse_on = !ui->mouse_on;
    if (ui->mouse_on)
        ui_status(ui, 0, "mouse on; Shift and drag selects as the terminal does");
    else
        ui_status(ui, 0, "mouse off: dragging selects as the terminal does");
    return UI_HANDLED | UI_REDRAW;
}

static enum pane_id pane_at(const struct ui *ui, int y, int x)
{
    for (int i = 0; i < PANE_COUNT; i++) {
        const struct rect *r = &ui->panes[i].r;
        if (ui->panes[i].visible && y >= r->y && y < r->y + r->h && x >= r->x && x < r->x + r->w)
            return (enum pane_id)i;
    }
    return PANE_COUNT;
}

static int ask_pane(struct ui *ui, enum pane_id p, bool again)
{
    struct pane *pane = &ui->panes[p];
    struct mouse m = ui->mouse;
    m.y -= pane->r.y;
    m.x -= pane->r.x;
    return pane->ops->mouse ? pane->ops->mouse(ui, pane->state, &m, again) : UI_IGNORED;
}

static int wheel(struct ui *ui, enum pane_id p)
{
    struct pane *pane = &ui->panes[p];
    enum action a = ui->mouse.kind == MOUSE_WHEEL_UP ? ACT_UP : ACT_DOWN;
    int r = ask_pane(ui, p, false);
    for (int i = 0; r == UI_IGNORED && i < WHEEL_ROWS && pane->ops->action; i++)
        if (pane->ops->action(ui, pane->state, a) == UI_IGNORED)
            break;
    return UI_HANDLED | UI_REDRAW;
}

static bool same_cell(const struct mouse *a, const struct mouse *b)
{
    return a->y == b->y && a->x == b->x;
}

static int press(struct ui *ui, enum pane_id p)
{
    int64_t since = ui->now - ui->pressed.at;
    bool again = ui->pressed.pane == p && same_cell(&ui->pressed.m, &ui->mouse) && since >= 0 &&
                 since <= AGAIN_MS;
    ui->pressed.m = ui->mouse;
    ui->pressed.at = again ? 0 : ui->now; /* a third one begins anew */
    ui->pressed.pane = p;
    if (p == PANE_INPUT && ui->opts.readonly)
        return UI_HANDLED;
    if (ui->focus != p)
        ui_focus(ui, p);
    ask_pane(ui, p, again);
    return UI_HANDLED | UI_REDRAW | UI_LAYOUT;
}

int ui_mouse(struct ui *ui)
{
    enum pane_id p = pane_at(ui, ui->mouse.y, ui->mouse.x);
    if (ui->tiny || ui->n_overlays || ui->hidden)
        return UI_IGNORED;
    if (ui->mouse.kind == MOUSE_WHEEL_UP || ui->mouse.kind == MOUSE_WHEEL_DOWN)
        return p == PANE_COUNT ? UI_IGNORED : wheel(ui, p);
    if (ui->mouse.button != 0)
        return UI_IGNORED;
    if (ui->mouse.kind == MOUSE_PRESS && p != PANE_COUNT)
        return press(ui, p);
    if (ui->mouse.kind == MOUSE_DRAG && p == ui->pressed.pane && p != PANE_COUNT &&
        ui->focus == p) /* within the pane in which it began */
        return ask_pane(ui, p, false);
    if (ui->mouse.kind == MOUSE_PRESS)
        ui->pressed.pane = PANE_COUNT;
    return UI_IGNORED;
}
