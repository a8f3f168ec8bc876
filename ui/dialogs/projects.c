/* Projects on the screen: switch, all of them in view, a new one, another name. */
#include <cct/ui/box.h>
#include <cct/ui/ui.h>

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROJECTS_CELLS = 70, NAME_BYTES = 64 };
enum projects_mode { PROJECTS_LIST, PROJECTS_NEW, PROJECTS_RENAME };

/* Row 0 shows all projects; the others are the model's. */
struct projects {
    enum projects_mode mode;
    size_t at, top, page;
    struct inputline line;
    char error[160];
};

static void projects_close(void *state)
{
    struct projects *p = state;

    inputline_release(&p->line);
    free(p);
}

static bool projects_update(struct ui *ui, void *state)
{
    struct projects *p = state;

    if (p->at > ui->model->n_projects)
        p->at = ui->model->n_projects;
    return true;
}

/* --- drawing ------------------------------------------------------------------------- */

static size_t live_of(const struct model *m, const char *project)
{
    size_t n = 0;

    for (size_t i = 0; i < m->n_sandboxes; i++) {
        const struct sandbox *s = &m->sandboxes[i];
        bool live = s->state != SB_KILLED && (s->state != SB_ERROR || s->vm_up);
        n += live && (!project || (!s->foreign && str_eq(s->project, project)));
    }
    return n;
}

static void draw_row(struct ui *ui, struct projects *p, struct canvas *c, struct rect r, size_t i)
{
    const struct model *m = ui->model;
    const struct project *pr = i ? &m->projects[i - 1] : NULL;
    enum theme_role role = i == p->at ? ROLE_CURSOR : ROLE_DIALOG;
    bool now = i ? i - 1 == m->project_at && !m->all_projects : m->all_projects;

    canvas_fill(c, r, role, " ");
    if (!pr)
        canvas_textf(c, r.y, r.x, r.w, role, "%c %-36s %3zu live", now ? '*' : ' ', "all projects",
                     live_of(m, NULL));
    else
        canvas_textf(c, r.y, r.x, r.w, role, r.w < 62 ? "%c %-36.36s %3zu live"
                                                     : "%c %-36.36s %3zu live  %zu variable%s",
                     now ? '*' : ' ', pr->name, live_of(m, pr->name), pr->n_vars,
                     pr->n_vars == 1 ? "" : "s");
}

static void projects_draw(struct ui *ui, void *state, struct canvas *c, struct rect screen,
                          int64_t now)
{
    struct projects *p = state;
    size_t n = ui->model->n_projects + 1;
    int w = screen.w < PROJECTS_CELLS ? screen.w : PROJECTS_CELLS;
    int h = (int)n + 4 < screen.h ? (int)n + 4 : screen.h;
    struct rect in = box_draw(c, screen, h, w, "projects", NULL);

    (void)now;
    p->page = in.h > 2 ? (size_t)in.h - 2 : 1;
    p->top = box_first_row(p->top, p->at, p->page);
    for (size_t i = 0; i < p->page && p->top + i < n; i++)
        draw_row(ui, p, c, (struct rect){in.y + (int)i, in.x, 1, in.w}, p->top + i);
    int y = in.y + in.h - 1;
    if (p->mode == PROJECTS_LIST) {
        canvas_hints(c, y, in.x, in.w, *p->error ? ROLE_STATUS_BAD : ROLE_HINT,
                     *p->error ? p->error
                               : ui_keys(ui, "{choose} switch\t{project-new} new\t{project-rename} rename\t"
                                             "{project-variables} its variables\t{close} close"));
        return;
    }
    int x = in.x + canvas_text(c, y, in.x, in.w, ROLE_PROMPT,
                               p->mode == PROJECTS_NEW ? "new project: " : "new name: ");
    inputline_draw(&p->line, c, (struct rect){y, x, 1, in.x + in.w - x}, ROLE_FIELD, true);
    if (*p->error)
        canvas_text(c, y - 1, in.x, in.w, ROLE_STATUS_BAD, p->error);
}

/* --- keys -------------------------------------------------------------------------------- */

static int switch_to(struct ui *ui, const char *name)
{
    app_project_view(ui->app, false);
    app_project_switch(ui->app, name);
    ui_status(ui, 0, "the project is %s", name);
    return UI_CLOSE;
}

static int choose(struct ui *ui, struct projects *p)
{
    if (p->at)
        return switch_to(ui, ui->model->projects[p->at - 1].name);
    app_project_view(ui->app, true);
    ui_status(ui, 0, "sandboxes of all projects are shown");
    return UI_CLOSE;
}

static int name_given(struct ui *ui, struct projects *p)
{
    const char *name = inputline_text(&p->line);

    if (!project_name_ok(name)) {
        str_copy(p->error, sizeof(p->error), "1 to 64 of A-Z a-z 0-9 - _ . /");
        return UI_HANDLED;
    }
    if (p->mode == PROJECTS_NEW)
        return switch_to(ui, name);
    app_project_rename(ui->app, ui->model->projects[p->at - 1].name, name);
    p->mode = PROJECTS_LIST;
    return UI_HANDLED;
}

static int line_key(struct ui *ui, struct projects *p, key_code k, const char *paste, size_t len)
{
    p->error[0] = 0;
    if (ui->found == ACT_LEAVE_LINE)
        p->mode = PROJECTS_LIST;
    else if (ui->found == ACT_TAKE_LINE)
        return name_given(ui, p);
    else
        ui_line_key(ui, &p->line, k, paste, len);
    return UI_HANDLED;
}

static void edit(struct ui *ui, struct projects *p, enum projects_mode mode)
{
    if (ui->opts.readonly) {
        str_copy(p->error, sizeof(p->error), "read-only: no project is changed");
        return;
    }
    if (mode == PROJECTS_RENAME && !p->at) {
        str_copy(p->error, sizeof(p->error), "point at the project that is to be renamed");
        return;
    }
    p->mode = mode;
    inputline_set(&p->line, mode == PROJECTS_RENAME ? ui->model->projects[p->at - 1].name : "");
}

/* Those of another one are read with it. */
static void variables(struct ui *ui, struct projects *p)
{
    if (p->at && p->at - 1 == ui->model->project_at)
        overlay_vars(ui);
    else
        str_copy(p->error, sizeof(p->error), p->at ? ui_keys(ui, "switch to it first: {choose}")
                                                   : "point at the current project (*)");
}

static int projects_key(struct ui *ui, void *state, key_code k, const char *paste, size_t len)
{
    struct projects *p = state;

    return p->mode == PROJECTS_LIST ? UI_HANDLED : line_key(ui, p, k, paste, len);
}

static void move(struct ui *ui, struct projects *p, enum action a)
{
    int64_t by = a == ACT_BOX_PGDN || a == ACT_BOX_PGUP ? (int64_t)p->page : 1;
    int64_t to = (int64_t)p->at + (a == ACT_BOX_DOWN || a == ACT_BOX_PGDN ? by : -by);
    int64_t last = (int64_t)ui->model->n_projects;

    p->at = (size_t)(to < 0 ? 0 : to > last ? last : to);
}

static int projects_action(struct ui *ui, void *state, enum action a)
{
    struct projects *p = state;

    if (p->mode != PROJECTS_LIST)
        return UI_IGNORED;
    p->error[0] = 0;
    switch (a) {
    case ACT_CLOSE:
        return UI_CLOSE;
    case ACT_CHOOSE:
        return choose(ui, p);
    case ACT_BOX_DOWN:
    case ACT_BOX_UP:
    case ACT_BOX_PGDN:
    case ACT_BOX_PGUP:
        move(ui, p, a);
        break;
    case ACT_PROJECT_NEW:
        edit(ui, p, PROJECTS_NEW);
        break;
    case ACT_PROJECT_RENAME:
        edit(ui, p, PROJECTS_RENAME);
        break;
    case ACT_PROJECT_VARS:
        variables(ui, p);
        break;
    default:
        break;
    }
    return UI_HANDLED;
}

static enum key_scope projects_scope(void *state)
{
    const struct projects *p = state;

    return p->mode == PROJECTS_LIST ? SCOPE_PROJECTS : SCOPE_ASK;
}

static const struct overlay_ops projects_ops = {.name = "projects",
                                                .scope = SCOPE_PROJECTS,
                                                .scope_now = projects_scope,
                                                .close = projects_close,
                                                .update = projects_update,
                                                .draw = projects_draw,
                                                .action = projects_action,
                                                .key = projects_key,
                                                .takes_paste = true};

void overlay_projects(struct ui *ui)
{
    struct projects *p = xcalloc(1, sizeof(*p));

    inputline_init(&p->line, false, NAME_BYTES);
    p->at = ui->model->all_projects || !ui->model->n_projects ? 0 : ui->model->project_at + 1;
    ui_overlay_push(ui, &projects_ops, p);
}
