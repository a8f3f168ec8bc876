/* Two ways to look without acting: the picture that stands still, and the output alone. */
#include <cct/ui/ui.h>

static void say_frozen(struct ui *ui)
{
    ui_status(ui, 0, "stands still: {freeze} or {back} goes on");
}

void ui_freeze(struct ui *ui, bool on)
{
    ui->frozen = on;
    ui->still = false;
    if (on)
        say_frozen(ui);
}

/* What the user would see changed by a key is not what stands there: none acts. */
int ui_frozen_key(struct ui *ui, key_code k)
{
    bool pending;
    enum action a = keymap_find(ui->keys, ui_scope(ui, ui->focus), k, &pending);
    if (a == ACT_FREEZE || a == ACT_BACK || a == ACT_BACK_TWICE || a == ACT_QUIT) {
        ui_freeze(ui, false);
        return UI_HANDLED | UI_REDRAW;
    }
    return a == ACT_REDRAW || a == ACT_SUSPEND ? ui_global(ui, a) : UI_HANDLED;
}

void ui_bare(struct ui *ui, bool on)
{
    if (on == ui->bare)
        return;
    enum pane_id leaves_to = ui->before_input;
    if (on)
        ui->before_bare = ui->focus;
    ui->bare = on;
    ui_focus(ui, on ? PANE_OUTPUT : ui->before_bare);
    ui->before_input = leaves_to;
}

/* Moving, searching, folding and selecting; the rest would not be seen. */
static bool looks(enum action a)
{
    enum key_scope s = action_scope(a);
    return (a >= ACT_DOWN && a <= ACT_PAGE_UP) || a == ACT_SEARCH || s == SCOPE_OUTPUT ||
           s == SCOPE_SELECT;
}

int ui_bare_key(struct ui *ui, key_code k, const char *paste, size_t len)
{
    struct pane *p = &ui->panes[PANE_OUTPUT];
    bool pending;
    bool asks = p->ops->typing(ui, p->state) != NULL;
    enum key_scope scope = asks ? SCOPE_ASK : ui_scope(ui, PANE_OUTPUT);
    enum action a = ui->found = keymap_find(ui->keys, scope, k, &pending);
    int r = UI_IGNORED;
    if (pending || (a == ACT_NONE && !asks))
        return UI_HANDLED;
    if (asks)
        return p->ops->key(ui, p->state, k, paste, len);
    if (a == ACT_BACK_TWICE)
        a = ACT_BACK;
    if (looks(a) || a == ACT_BACK) /* Esc ends a search or a selection first */
        r = p->ops->action(ui, p->state, a);
    if (r == UI_IGNORED && (a == ACT_BARE || a == ACT_BACK || a == ACT_QUIT))
        ui_bare(ui, false);
    else if (a == ACT_REDRAW || a == ACT_SUSPEND)
        ui_global(ui, a);
    return UI_HANDLED | UI_REDRAW;
}
