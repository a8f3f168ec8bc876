/* What keys do: actions that count everywhere, and any action from anywhere. */
#include <cct/ui/ui.h>

#include <cct/util/clock.h>

/* Who has waited longer, or was made before. */
static bool asked_before(const struct sandbox *a, const struct sandbox *b)
{
    return a->agent_since != b->agent_since ? a->agent_since < b->agent_since : a->id < b->id;
}

/* The oldest one first, then in the order in which they asked, around the end. */
static const struct sandbox *asking_after(const struct ui *ui, int step)
{
    const struct model *m = ui->model;
    const struct sandbox *at = model_sandbox(m, ui->selected), *best = NULL, *end = NULL;
    if (at && (at->agent != AG_ASKS || at->state != SB_RUNNING))
        at = NULL;
    for (size_t i = 0; i < m->n_sandboxes; i++) {
        const struct sandbox *s = &m->sandboxes[i];
        if (s->agent != AG_ASKS || s->state != SB_RUNNING || !model_in_view(m, s))
            continue;
        if (!end || asked_before(s, end) == (step > 0))
            end = s;
        if (at && s != at && asked_before(at, s) == (step > 0) &&
            (!best || asked_before(s, best) == (step > 0)))
            best = s;
    }
    return best ? best : end;
}

static int go_asking(struct ui *ui, int step)
{
    const struct sandbox *s = asking_after(ui, step);
    if (s)
        ui_select(ui, s->id);
    else
        ui_status(ui, 0, "no agent asks you anything");
    return UI_HANDLED | UI_REDRAW;
}

static int cycle_pane(struct ui *ui, int step)
{
    const struct body *b = &bodies[ui->body];
    int at = 0;
    while (at < b->n - 1 && b->panes[at] != ui->focus)
        at++;
    for (int i = 0; i < b->n; i++) {
        at = (at + step + b->n) % b->n;
        enum pane_id p = b->panes[at];
        if (p != PANE_INPUT && (ui->panes[p].visible || at < 2))
            break;
    }
    ui_focus(ui, b->panes[at]);
    return UI_HANDLED | UI_REDRAW;
}

/* Out of the zoom, then out of a body that is not the work; false: neither. */
static bool step_back(struct ui *ui)
{
    bool zoom = ui->zoom, work = ui->body == BODY_WORK;
    ui->zoom = false;
    if (zoom && work && ui->zoomed_from)
        ui_show(ui, ui->zoomed_from);
    else if (zoom && work)
        ui_focus(ui, PANE_LIST);
    else if (!zoom && !work)
        ui_show(ui, BODY_WORK);
    ui_layout(ui, ui->canvas.h, ui->canvas.w);
    return zoom || !work;
}

static int quit(struct ui *ui)
{
    if (step_back(ui))
        return UI_HANDLED | UI_REDRAW;
    return UI_HANDLED | UI_QUIT;
}

static int back(struct ui *ui)
{
    bool ctrl_c = ui->found == ACT_BACK_TWICE;
    int64_t since = ui->now - ui->last_ctrl_c;
    if (ctrl_c && ui->last_ctrl_c && since >= 0 && since <= UI_TWICE_MS)
        return UI_HANDLED | UI_QUIT;
    if (ctrl_c) {
        ui->last_ctrl_c = ui->now;
        ui_status(ui, 0, "press {back-twice} again to quit; sandboxes live on");
    }
    if (!step_back(ui))
        ui_focus(ui, PANE_LIST);
    return UI_HANDLED | UI_REDRAW;
}

static int refuse_readonly(struct ui *ui)
{
    ui_status(ui, 1, "read-only: started with --readonly, nothing is changed");
    return UI_HANDLED | UI_REDRAW;
}

static void interrupt(struct ui *ui, const struct sandbox *s)
{
    ui_status(ui, 0, "interrupting the agent of %s", s->name);
    ui->int_req = app_interrupt(ui->app, s->id);
}

/* Also where nobody listens: text meant for the input must never act as keys. */
static void open_input(struct ui *ui, const struct sandbox *s)
{
    ui_focus(ui, PANE_INPUT);
    if (s->state == SB_KILLED)
        ui_status(ui, 1, "%s has ended: nobody reads what you type here", s->name);
    else if (s->state == SB_PAUSED)
        ui_status(ui, 1, "%s is paused: {leave}, then {resume} resumes it", s->name);
}

bool ui_moved(struct ui *ui)
{
    if (ui->moved)
        ui_status(ui, 1, "nothing was done: the sandbox under the cursor is gone, look again");
    return ui->moved;
}

bool ui_key_meant(struct ui *ui)
{
    if (ui->unseen || ui->hidden)
        return false;
    if (ui->crowded)
        ui_status(ui, 1, "nothing was done: this key counts only when it comes by itself");
    return !ui->crowded;
}

static int with_selected(struct ui *ui, enum action a)
{
    const struct sandbox *s = model_sandbox(ui->model, ui->selected);
    if (!s) {
        ui_status(ui, 0, "no sandbox here; press {new} for a new one");
        return UI_HANDLED | UI_REDRAW;
    }
    if (ui_moved(ui))
        return UI_HANDLED | UI_REDRAW;
    if (a == ACT_KILL)
        overlay_kill_one(ui, s->id);
    else if (a == ACT_ANSWER)
        overlay_answer(ui, s->id);
    else if (a == ACT_INTERRUPT)
        interrupt(ui, s);
    else if (a == ACT_PROCESSES)
        output_toggle_processes(ui);
    else if (a == ACT_SHELL)
        ui_ask_shell(ui, s);
    else if (a == ACT_FILES)
        files_show(ui, s);
    else if (a == ACT_CHANGES)
        changes_show(ui, s);
    else if (a == ACT_ADOPT)
        overlay_adopt(ui, s->id, output_process(ui));
    else
        open_input(ui, s);
    return UI_HANDLED | UI_REDRAW;
}

bool ui_changes_things(enum action a)
{
    if (a == ACT_SHELL || a == ACT_FILE_PUT || a == ACT_FILE_MKDIR || a == ACT_FILE_RENAME ||
        a == ACT_FILE_DELETE)
        return true;
    return a == ACT_NEW || a == ACT_NEW_PROMPT || a == ACT_INPUT || a == ACT_ANSWER || a == ACT_INTERRUPT ||
           a == ACT_KILL || a == ACT_KILL_ALL || a == ACT_SET_TIME || a == ACT_PAUSE ||
           a == ACT_RESUME || a == ACT_PROTECT || a == ACT_RENAME || a == ACT_TAG || a == ACT_FORGET ||
           a == ACT_PAIR || a == ACT_ADOPT || a == ACT_PROC_END || a == ACT_BULK ||
           a == ACT_USAGE_PAUSE || a == ACT_BUILD_NEW || a == ACT_BUILD_USE || a == ACT_BUILD_AGAIN ||
           a == ACT_BUILD_CANCEL || a == ACT_BUILD_DELETE;
}

/* The newest of what can still be called off. */
static void undo(struct ui *ui)
{
    const struct ev_kill *k = ui->model->kill;
    const struct message *m = ui_queued(ui);
    if (k && k->phase == KILL_RUNNING && k->text) {
        app_kill_all_cancel(ui->app);
        ui_status(ui, 0, "the kill-all is called off: nothing is killed");
    } else if (m) {
        app_message_cancel(ui->app, m->id);
        ui_status(ui, 0, "calling off the queued message");
    } else {
        ui_status(ui, 0, "nothing waits that could be called off");
    }
}

/* To the pane where it is small beside others, from there to the large one, and back. */
static bool toggle_body(struct ui *ui, enum action a)
{
    for (int b = BODY_WORK + 1; b < BODY_COUNT; b++) {
        enum pane_id p = bodies[b].panes[0];
        if (bodies[b].key != a)
            continue;
        if (ui->body == (enum body_id)b)
            ui_show(ui, BODY_WORK);
        else if (ui->panes[p].visible && ui->focus != p)
            ui_focus(ui, p);
        else
            ui_show(ui, (enum body_id)b);
        return true;
    }
    return false;
}

/* A pane that is small here becomes the large one, which goes back to where it was small. */
static int zoom(struct ui *ui)
{
    enum body_id large = body_of(ui->focus);
    if (ui->body == BODY_WORK && ui->focus == PANE_CHANGES)
        return with_selected(ui, ACT_CHANGES);
    if (ui->body == BODY_WORK && large != BODY_WORK) {
        ui_show(ui, large);
    } else if (ui->body == large && large != BODY_WORK && ui->at_work == ui->focus && !ui->zoom) {
        ui_show(ui, BODY_WORK);
    } else {
        ui->zoom = !ui->zoom;
        ui->zoomed_from = BODY_WORK;
        ui_layout(ui, ui->canvas.h, ui->canvas.w);
    }
    return UI_HANDLED | UI_REDRAW;
}

int ui_global(struct ui *ui, enum action a)
{
    if (ui->opts.readonly && ui_changes_things(a))
        return refuse_readonly(ui);
    if (a != ACT_NONE && toggle_body(ui, a))
        return UI_HANDLED | UI_REDRAW;
    switch (a) {
    case ACT_PANE_LIST:
        ui_focus(ui, PANE_LIST);
        break;
    case ACT_PANE_OUTPUT:
        ui_focus(ui, PANE_OUTPUT);
        break;
    case ACT_PANE_EVENTS:
        ui_focus(ui, PANE_EVENTS);
        break;
    case ACT_NEXT_PANE:
        return cycle_pane(ui, 1);
    case ACT_PREV_PANE:
        return cycle_pane(ui, -1);
    case ACT_ZOOM:
        return zoom(ui);
    case ACT_NEXT_ASKING:
    case ACT_INPUT_ASKING:
        return go_asking(ui, 1);
    case ACT_PREV_ASKING:
        return go_asking(ui, -1);
    case ACT_LAST_SANDBOX:
        if (model_sandbox(ui->model, ui->previous))
            ui_select(ui, ui->previous);
        else
            ui_status(ui, 0, "there is no sandbox to go back to");
        break;
    case ACT_SEARCH_ALL:
        overlay_search(ui);
        break;
    case ACT_PROJECTS:
        overlay_projects(ui);
        break;
    case ACT_KEYS:
        overlay_keys(ui);
        break;
    case ACT_COMMAND:
    case ACT_INPUT_COMMAND:
        overlay_command(ui, "");
        break;
    case ACT_HELP:
        overlay_help(ui);
        break;
    case ACT_BACK:
    case ACT_BACK_TWICE:
        return back(ui);
    case ACT_QUIT:
        return quit(ui);
    case ACT_MOUSE:
        return ui_toggle_mouse(ui);
    case ACT_FREEZE:
        ui_freeze(ui, true);
        break;
    case ACT_BARE:
    case ACT_INPUT_BARE:
        ui_bare(ui, true);
        break;
    case ACT_REDRAW:
        ui->redraw = true;
        break;
    case ACT_REFRESH:
        app_refresh(ui->app);
        ui_status(ui, 0, "asking for the list");
        break;
    case ACT_SUSPEND:
        ui->suspend = true;
        break;
    case ACT_NEW:
    case ACT_NEW_PROMPT:
        overlay_create(ui, a == ACT_NEW_PROMPT);
        break;
    case ACT_PAIR:
        overlay_pair(ui, ui->selected);
        break;
    case ACT_KILL_ALL:
        overlay_kill_all(ui);
        break;
    case ACT_UNDO:
        undo(ui);
        break;
    case ACT_KILL:
    case ACT_ANSWER:
    case ACT_INTERRUPT:
    case ACT_INPUT:
    case ACT_PROCESSES:
    case ACT_SHELL:
    case ACT_FILES:
    case ACT_CHANGES:
    case ACT_ADOPT:
        return with_selected(ui, a);
    default:
        if (!scope_counts(action_scope(a), SCOPE_NAV))
            return UI_IGNORED; /* a line of text may take it */
        ui_status(ui, 0, "%s does nothing here", action_name(a));
        break;
    }
    return UI_HANDLED | UI_REDRAW;
}

/* The pane that an action belongs to, when the one with the keys does not take it. */
static enum pane_id pane_of(const struct ui *ui, enum key_scope scope)
{
    int p = 0;
    while (p < PANE_COUNT && ui->panes[p].ops->scope != scope)
        p++;
    return (enum pane_id)p;
}

int ui_do(struct ui *ui, enum action a)
{
    enum key_scope scope = action_scope(a);
    enum pane_id p = ui->focus;
    int played = ui->opts.replay ? ui_replay_action(ui, a) : UI_IGNORED;
    if (played != UI_IGNORED)
        return played;
    if (ui->opts.readonly && ui_changes_things(a))
        return refuse_readonly(ui);
    if (!scope_counts(ui_scope(ui, p), scope) && scope != SCOPE_NAV) {
        p = pane_of(ui, scope);
        if (p == PANE_COUNT) {
            ui_status(ui, 1, "%s: this counts among %s only", action_name(a), scope_word(scope));
            return UI_HANDLED | UI_REDRAW;
        }
        if (scope != SCOPE_LIST && scope != SCOPE_OUTPUT) /* those act on the cursor's sandbox */
            ui_focus(ui, p);
    }
    struct pane *pane = &ui->panes[p];
    int r = pane->ops->action ? pane->ops->action(ui, pane->state, a) : UI_IGNORED;
    return r == UI_IGNORED ? ui_global(ui, a) : r;
}
