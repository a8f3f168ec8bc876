/* What can fill the screen, and going from one to the other. */
#include <cct/ui/ui.h>

const struct body bodies[BODY_COUNT] = {
    [BODY_WORK] = {.panes = {PANE_LIST, PANE_OUTPUT, PANE_INPUT, PANE_DETAILS, PANE_CHANGES,
                             PANE_BUILDS, PANE_USAGE, PANE_EVENTS},
                   .n = 8},
    [BODY_WALL] = {.key = ACT_WALL,
                   .panes = {PANE_WALL, PANE_INPUT},
                   .n = 2,
                   .place = place_wall},
    [BODY_BUILDS] = {.key = ACT_PANE_BUILDS, .panes = {PANE_BUILDS, PANE_BUILD_LOG},
                     .n = 2, .place = place_builds},
    [BODY_USAGE] = {.key = ACT_PANE_USAGE, .panes = {PANE_USAGE}, .n = 1},
    [BODY_FILES] = {.panes = {PANE_FILES, PANE_FILE}, .n = 2},
    [BODY_CHANGES] = {.panes = {PANE_CHANGES, PANE_DIFF}, .n = 2},
};

bool body_has(enum body_id b, enum pane_id p)
{
    for (int i = 0; i < bodies[b].n; i++)
        if (bodies[b].panes[i] == p)
            return true;
    return false;
}

/* The body that it is the first of, where it is large; else the first that has it. */
enum body_id body_of(enum pane_id p)
{
    int b = 0;
    for (int i = 0; i < BODY_COUNT; i++)
        if (bodies[i].panes[0] == p)
            return (enum body_id)i;
    while (b < BODY_COUNT - 1 && !body_has((enum body_id)b, p))
        b++;
    return (enum body_id)b;
}

static void go(struct ui *ui, enum body_id b, enum pane_id p)
{
    enum body_id before = ui->body;
    enum pane_id from = ui->focus;
    if (b != before) {
        if (before == BODY_WORK)
            ui->at_work = ui->mode == UI_INPUT ? ui->before_input : ui->focus;
        ui->zoom = false;
        ui->zoomed_from = BODY_WORK;
        ui->body = b;
    }
    if (p == PANE_INPUT && from != PANE_INPUT)
        ui->before_input = from;
    ui->focus = p;
    ui->mode = p == PANE_INPUT ? UI_INPUT : UI_NAV;
    ui_layout(ui, ui->canvas.h, ui->canvas.w);
    if (b != before && before == BODY_BUILDS)
        builds_hidden(ui);
    if (p == PANE_BUILDS && (b != before || from != p))
        builds_shown(ui);
}

void ui_focus(struct ui *ui, enum pane_id p)
{
    bool here = body_has(ui->body, p);
    enum body_id home = body_of(p);
    /* small beside others, and there is no room for it here: large then */
    if (here && home != ui->body && ui->focus != p &&
        !ui->panes[p].visible)
        here = false;
    go(ui, here ? ui->body : home, p);
}

static bool wants(struct ui *ui, const uint64_t *tiles, size_t n, uint64_t id)
{
    for (size_t i = 0; i < n; i++)
        if (tiles[i] == id)
            return true;
    return id == ui->selected;
}

static void follow_one(struct ui *ui, uint64_t id)
{
    for (size_t i = 0; i < ui->followed.n; i++)
        if (ui->followed.v[i] == id)
            return;
    *ARR_PUSH(&ui->followed) = id;
    app_follow(ui->app, id);
}

void ui_follow(struct ui *ui)
{
    uint64_t tiles[WALL_TILES];
    size_t n = ui->body == BODY_WALL ? wall_tiles(ui, tiles) : 0, keep = 0;
    for (size_t i = 0; i < ui->followed.n; i++) {
        uint64_t id = ui->followed.v[i];
        if (wants(ui, tiles, n, id))
            ui->followed.v[keep++] = id;
        else if (model_sandbox(ui->model, id))
            app_unfollow(ui->app, id);
    }
    ui->followed.n = keep;
    if (ui->selected)
        follow_one(ui, ui->selected);
    for (size_t i = 0; i < n; i++)
        follow_one(ui, tiles[i]);
}

void ui_show(struct ui *ui, enum body_id b)
{
    enum pane_id p = bodies[b].panes[0];
    if (b == ui->body)
        return;
    if (b == BODY_WORK && (ui_has_columns(ui) || body_of(ui->at_work) == BODY_WORK))
        p = ui->at_work;
    go(ui, b, p);
}
