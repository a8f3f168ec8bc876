/* Variables of the current project: what its new sandboxes get in their environment, secret
 * ones sealed and for agents alone. A secret value is never drawn. */
#include <cct/ui/box.h>
#include <cct/ui/secretfield.h>
#include <cct/ui/ui.h>

#include <cct/model/project.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VARS_CELLS = 76, FOOT_ROWS = 3 };
enum vars_mode { VARS_LIST, VARS_NAME, VARS_VALUE, VARS_REMOVE };

struct vars {
    enum vars_mode mode;
    size_t at, top, page;
    bool secret;   /* the one that is typed */
    char *name;    /* of it, once that is known */
    struct inputline line;
    struct secretfield field;
    uint64_t req;  /* under way */
    bool removing; /* it takes one away */
    char said[400];
    bool bad;
};

static const struct project *project_of(const struct ui *ui)
{
    return model_project(ui->model);
}

static const struct project_var *row_at(const struct ui *ui, const struct vars *v)
{
    const struct project *p = project_of(ui);

    return p && v->at < p->n_vars ? &p->vars[v->at] : NULL;
}

static void say(struct vars *v, bool bad, const char *text)
{
    str_copy(v->said, sizeof(v->said), text);
    v->bad = bad;
}

/* Back to the list; nothing of what was typed stays. */
static void leave(struct vars *v)
{
    v->mode = VARS_LIST;
    inputline_set(&v->line, "");
    secretfield_clear(&v->field);
    free(v->name);
    v->name = NULL;
}

static void vars_close(void *state)
{
    struct vars *v = state;

    inputline_release(&v->line);
    secretfield_release(&v->field);
    free(v->name);
    free(v);
}

static bool vars_update(struct ui *ui, void *state)
{
    struct vars *v = state;
    const struct project *p = project_of(ui);

    if (p && v->at >= p->n_vars)
        v->at = p->n_vars ? p->n_vars - 1 : 0;
    return true;
}

static void vars_observe(struct ui *ui, void *state, const struct msg *m)
{
    struct vars *v = state;
    const struct ev_done *d = (const struct ev_done *)m;

    (void)ui;
    if (m->type != EV_DONE || !v->req || m->req_id != v->req)
        return;
    v->req = 0;
    say(v, d->err.code != 0, d->err.code   ? d->err.text
                             : v->removing ? "removed; sandboxes that are there keep it"
                                           : "done; sandboxes made from now on get it");
}

/* --- drawing ------------------------------------------------------------------------- */

static void draw_row(struct canvas *c, struct rect r, const struct project_var *one, bool here)
{
    enum theme_role role = here ? ROLE_CURSOR : ROLE_DIALOG;
    int name = r.w > 50 ? 30 : r.w / 2;

    canvas_fill(c, r, role, " ");
    canvas_text(c, r.y, r.x, name - 1, role, one->name);
    if (!one->secret)
        canvas_text(c, r.y, r.x + name, r.w - name, role, one->value ? one->value : "");
    else if (*one->last4)
        canvas_textf(c, r.y, r.x + name, r.w - name, role, "secret, ****%s", one->last4);
    else
        canvas_text(c, r.y, r.x + name, r.w - name, role, "secret, set");
}

static void draw_list(struct ui *ui, struct vars *v, struct canvas *c, struct rect r)
{
    const struct project *p = project_of(ui);

    v->page = r.h > 1 ? (size_t)r.h : 1;
    if (v->at < v->top)
        v->top = v->at;
    if (v->at >= v->top + v->page)
        v->top = v->at - v->page + 1;
    if (!p || !p->n_vars)
        canvas_text(c, r.y, r.x, r.w, ROLE_HINT, ui_keys(ui, "none yet: {variable-add} adds one, {variable-secret} a secret one"));
    for (size_t i = v->top; p && i < p->n_vars && i < v->top + v->page; i++)
        draw_row(c, (struct rect){r.y + (int)(i - v->top), r.x, 1, r.w}, &p->vars[i], i == v->at);
}

static void draw_field(struct vars *v, struct canvas *c, int y, struct rect in)
{
    char label[96];
    int x;

    if (v->mode == VARS_NAME)
        snprintf(label, sizeof(label), "name of the %svariable: ", v->secret ? "secret " : "");
    else
        snprintf(label, sizeof(label), "%.60s = ", v->name ? v->name : "?");
    x = in.x + canvas_text(c, y, in.x, in.w, ROLE_PROMPT, label);
    if (v->mode == VARS_VALUE && v->secret)
        secretfield_draw(&v->field, c, y, x, in.x + in.w - x);
    else
        inputline_draw(&v->line, c, (struct rect){y, x, 1, in.x + in.w - x}, ROLE_FIELD, true);
}

static void draw_foot(struct ui *ui, struct vars *v, struct canvas *c, struct rect in)
{
    const struct project_var *row = row_at(ui, v);
    int y = in.y + in.h - FOOT_ROWS;
    const char *hint;

    if (v->mode == VARS_NAME || v->mode == VARS_VALUE)
        draw_field(v, c, y, in);
    if (*v->said)
        box_text(c, (struct rect){y + (v->mode == VARS_NAME || v->mode == VARS_VALUE), in.x,
                                  v->mode == VARS_LIST ? 2 : 1, in.w},
                 v->bad ? ROLE_STATUS_BAD : ROLE_DIALOG, v->said);
    if (v->mode == VARS_NAME)
        hint = ui_keys(ui, "{take-line} then its value\t{leave-line} leave it");
    else if (v->mode == VARS_VALUE)
        hint = ui_keys(ui, "{take-line} %s\t{cut-to-begin} clear\t{leave-line} leave it",
                       v->secret ? "store it, sealed" : "set it");
    else if (v->mode == VARS_REMOVE)
        hint = ui_keys(ui, "{yes}  remove %.64s\tother keys  keep it", row ? row->name : "?");
    else
        hint = ui_keys(ui, row ? "{choose} change\t{variable-remove} remove\t{variable-add} add\t"
                                 "{variable-secret} add a secret one\t{close} close"
                               : "{variable-add} add\t{variable-secret} add a secret one\t{close} close");
    canvas_hints(c, y + 2, in.x, in.w, v->mode == VARS_REMOVE ? ROLE_DANGER : ROLE_HINT, hint);
}

static void vars_draw(struct ui *ui, void *state, struct canvas *c, struct rect screen, int64_t now)
{
    struct vars *v = state;
    const struct project *p = project_of(ui);
    int w = screen.w < VARS_CELLS ? screen.w : VARS_CELLS;
    int n = p && p->n_vars > 3 ? (int)p->n_vars : 3, h = n + FOOT_ROWS + 3;
    char title[96];
    struct rect in;

    (void)now;
    snprintf(title, sizeof(title), "variables of %.60s", ui->model->project ? ui->model->project
                                                                            : "default");
    in = box_draw(c, screen, h < screen.h ? h : screen.h, w, title, NULL);
    draw_list(ui, v, c, (struct rect){in.y, in.x, in.h - FOOT_ROWS - 1, in.w});
    draw_foot(ui, v, c, in);
}

/* --- keys -------------------------------------------------------------------------------- */

static void ask_value(struct vars *v, const char *name, const char *value)
{
    free(v->name);
    v->name = xstrdup(name);
    v->mode = VARS_VALUE;
    inputline_set(&v->line, value ? value : "");
    say(v, false, "");
}

static void enter_name(struct ui *ui, struct vars *v)
{
    const struct project *p = project_of(ui);
    const char *name = inputline_text(&v->line);
    const char *value = NULL;

    if (!*name) {
        say(v, true, "write its name: letters, digits and _");
        return;
    }
    for (size_t i = 0; p && i < p->n_vars; i++) /* it is changed */
        if (str_eq(p->vars[i].name, name))
            value = p->vars[i].value;
    ask_value(v, name, v->secret ? NULL : value);
}

static void enter_value(struct ui *ui, struct vars *v)
{
    struct secret *s = v->secret ? secretfield_take(&v->field, true) : NULL;

    if (v->secret && !s) {
        say(v, true, "nothing was typed; an empty one is no secret");
        return;
    }
    v->req = v->secret ? app_project_secret(ui->app, v->name, s)
                       : app_project_var(ui->app, v->name, inputline_text(&v->line));
    v->removing = false;
    leave(v);
    say(v, false, "storing it");
}

static int type_key(struct ui *ui, struct vars *v, key_code k, const char *paste, size_t len)
{
    bool hidden = v->mode == VARS_VALUE && v->secret;

    if (ui->found == ACT_LEAVE_LINE) {
        leave(v);
        say(v, false, "");
    } else if (ui->found == ACT_TAKE_LINE && v->mode == VARS_NAME) {
        enter_name(ui, v);
    } else if (ui->found == ACT_TAKE_LINE) {
        enter_value(ui, v);
    } else if (hidden) {
        if (!secretfield_key(&v->field, ui->found, k, paste, len) && k == K_PASTE)
            say(v, true, "that is too long; nothing was taken");
    } else {
        ui_line_key(ui, &v->line, k, paste, len);
    }
    return UI_HANDLED;
}

static int remove_it(struct ui *ui, struct vars *v)
{
    const struct project_var *row = row_at(ui, v);

    v->mode = VARS_LIST;
    if (ui->found != ACT_YES || !row || !ui_key_meant(ui))
        return UI_HANDLED;
    v->req = app_project_var(ui->app, row->name, NULL);
    v->removing = true;
    say(v, false, "removing it");
    return UI_HANDLED;
}

static void change(struct ui *ui, struct vars *v, enum action a)
{
    const struct project_var *row = row_at(ui, v);

    if (ui->opts.readonly) {
        say(v, true, "read-only: no variable is changed");
        return;
    }
    say(v, false, "");
    if (a == ACT_VAR_ADD || a == ACT_VAR_SECRET) {
        v->secret = a == ACT_VAR_SECRET;
        v->mode = VARS_NAME;
    } else if (row && a == ACT_VAR_REMOVE) {
        v->mode = VARS_REMOVE;
    } else if (row) {
        v->secret = row->secret;
        ask_value(v, row->name, row->value);
    }
}

static int vars_key(struct ui *ui, void *state, key_code k, const char *paste, size_t len)
{
    struct vars *v = state;

    if (v->mode == VARS_NAME || v->mode == VARS_VALUE)
        return type_key(ui, v, k, paste, len);
    return v->mode == VARS_REMOVE ? remove_it(ui, v) : UI_HANDLED;
}

static void move(struct ui *ui, struct vars *v, enum action a)
{
    const struct project *p = project_of(ui);
    int64_t by = a == ACT_BOX_PGDN || a == ACT_BOX_PGUP ? (int64_t)v->page : 1;
    int64_t to = (int64_t)v->at + (a == ACT_BOX_DOWN || a == ACT_BOX_PGDN ? by : -by);
    int64_t last = p ? (int64_t)p->n_vars - 1 : 0;

    to = to > last ? last : to;
    v->at = to > 0 ? (size_t)to : 0;
}

static int vars_action(struct ui *ui, void *state, enum action a)
{
    struct vars *v = state;

    if (v->mode != VARS_LIST)
        return UI_IGNORED;
    switch (a) {
    case ACT_CLOSE:
        return UI_CLOSE;
    case ACT_BOX_DOWN:
    case ACT_BOX_UP:
    case ACT_BOX_PGDN:
    case ACT_BOX_PGUP:
        move(ui, v, a);
        break;
    case ACT_VAR_ADD:
    case ACT_VAR_SECRET:
    case ACT_VAR_REMOVE:
    case ACT_CHOOSE:
        change(ui, v, a);
        break;
    default:
        break;
    }
    return UI_HANDLED;
}

static enum key_scope vars_scope(void *state)
{
    const struct vars *v = state;

    return v->mode == VARS_LIST     ? SCOPE_VARS
           : v->mode == VARS_REMOVE ? SCOPE_CONFIRM
                                    : SCOPE_ASK;
}

static const struct overlay_ops vars_ops = {.name = "variables",
                                            .scope = SCOPE_VARS,
                                            .scope_now = vars_scope,
                                            .close = vars_close,
                                            .update = vars_update,
                                            .observe = vars_observe,
                                            .draw = vars_draw,
                                            .action = vars_action,
                                            .key = vars_key,
                                            .takes_paste = true};

void overlay_vars(struct ui *ui)
{
    struct vars *v = xcalloc(1, sizeof(*v));

    inputline_init(&v->line, false, LIM_VARIABLE_BYTES);
    secretfield_init(&v->field);
    ui_overlay_push(ui, &vars_ops, v);
}
