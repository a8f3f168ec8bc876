/* What the agent has changed: its files with counts, and the diff of the one at the cursor. */
#include "textview.h"

#include <cct/model/changes.h>
#include <cct/model/files.h>
#include <cct/ui/ui.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIFF_BYTES = 512 << 10, FILE_BYTES = 64 << 10 };

struct known {
    uint64_t sandbox;
    struct changes_sum sum;
};
struct changes_pane {
    struct ui *ui;
    uint64_t sandbox, req, file_req; /* requests under way, 0 = none */
    struct buf got;
    struct changes c;
    bool have;
    char *error;
    size_t at, top;
    int page;
    struct textview view;
    char *own[2];         /* a line of ours in the place of a diff */
    struct buf file;      /* a new file, which no diff shows */
    char **file_line;
    size_t n_file;
    char title[160], note[80];
    ARR(struct known) known;
};

static struct changes_pane *pane_of(struct ui *ui)
{
    return ui->panes[PANE_CHANGES].state;
}

static const struct change *current(const struct changes_pane *p)
{
    return p->have && p->at < p->c.n ? &p->c.v[p->at] : NULL;
}

bool changes_known(struct ui *ui, uint64_t sandbox, struct changes_sum *c)
{
    struct changes_pane *p = pane_of(ui);
    for (size_t i = 0; i < p->known.n; i++)
        if (p->known.v[i].sandbox == sandbox) {
            *c = p->known.v[i].sum;
            return true;
        }
    return false;
}

const char *changes_path(struct ui *ui, uint64_t sandbox, size_t i)
{
    const struct changes_pane *p = pane_of(ui);
    for (size_t k = 0; p->have && p->sandbox == sandbox && k < p->c.n; k++)
        if (p->c.v[k].status[0] != 'D' && p->c.v[k].status[1] != 'D' &&
            str_eq(p->c.v[k].shown, p->c.v[k].path) && i-- == 0)
            return p->c.v[k].path;
    return NULL;
}

char *changes_whole_path(struct ui *ui, uint64_t sandbox, const char *path)
{
    const char *is;
    for (size_t i = 0; (is = changes_path(ui, sandbox, i)) != NULL; i++)
        if (str_eq(is, path))
            return file_path_join(pane_of(ui)->c.folder, path);
    return NULL;
}

static void know(struct changes_pane *p)
{
    for (size_t i = 0; i < p->known.n; i++)
        if (p->known.v[i].sandbox == p->sandbox) {
            ARR_REMOVE(&p->known, i);
            break;
        }
    if (p->c.branch)
        *ARR_PUSH(&p->known) = (struct known){p->sandbox, {p->c.n, p->c.added, p->c.removed}};
}

/* --- what the right pane shows ------------------------------------------------------ */

static void own_line(struct changes_pane *p, const char *text)
{
    free(p->own[0]);
    p->own[0] = xstrdup(text);
    textview_set(&p->view, p->own, 1);
}

static void drop_file(struct changes_pane *p)
{
    textview_set(&p->view, NULL, 0);
    for (size_t i = 0; i < p->n_file; i++)
        free(p->file_line[i]);
    free(p->file_line);
    p->file_line = NULL;
    p->n_file = 0;
    buf_clear(&p->file);
    if (p->file_req)
        app_file_cancel(p->ui->app, p->file_req);
    p->file_req = 0;
}

static void show_current(struct changes_pane *p)
{
    const struct change *f = current(p);
    drop_file(p);
    if (!f)
        return;
    if (f->lines)
        textview_set(&p->view, p->c.line + f->line, f->lines);
    else if (f->status[0] == '?' || !*f->status)
        own_line(p, ui_keys(p->ui, "a new file: {change-open} shows it"));
    else
        own_line(p, p->c.diff_cut ? "not in the part of the diff that was read: it is cut"
                                  : "the diff does not show it");
}

static void file_data(void *ctx, const char *data, size_t len)
{
    buf_add(&((struct changes_pane *)ctx)->file, data, len);
}

static void file_end(void *ctx, const struct ev_done *d)
{
    struct changes_pane *p = ctx;
    p->file_req = 0;
    p->ui->said = true;
    if (d->err.code) {
        own_line(p, d->err.text);
        return;
    }
    if (file_is_binary(buf_str(&p->file), p->file.len)) {
        own_line(p, "a binary file");
        return;
    }
    p->file_line = clean_lines(buf_str(&p->file), p->file.len, &p->n_file);
    if (p->file.len >= FILE_BYTES) /* in the place of the end */
        p->file_line[p->n_file++] =
            xstrdup(ui_keys(p->ui, "[cut here: {files} shows files whole]"));
    if (p->n_file)
        textview_set(&p->view, p->file_line, p->n_file);
    else
        own_line(p, "an empty file");
}

static void open_current(struct changes_pane *p)
{
    const struct change *f = current(p);
    struct app_file_cb cb = {.on_data = file_data, .on_end = file_end, .ctx = p};
    if (!f)
        return;
    ui_focus(p->ui, PANE_DIFF);
    if (f->lines || (f->status[0] != '?' && *f->status))
        return;
    char *path = file_path_join(p->c.folder, f->path);
    struct app_file q = {.op = FILE_OP_READ, .path = path, .max = FILE_BYTES};
    drop_file(p);
    own_line(p, "reading ...");
    p->file_req = app_file(p->ui->app, p->sandbox, &q, &cb);
    free(path);
}

/* --- asking --------------------------------------------------------------------------- */

static void on_data(void *ctx, const char *data, size_t len)
{
    buf_add(&((struct changes_pane *)ctx)->got, data, len);
}

/* The cursor stays on its file. */
static void on_end(void *ctx, const struct ev_done *d)
{
    struct changes_pane *p = ctx;
    const struct change *f = current(p);
    char *path = f ? xstrdup(f->path) : NULL;
    struct err e = d->err;
    p->req = 0;
    p->ui->said = true;
    drop_file(p);
    changes_release(&p->c);
    p->have = !e.code && changes_parse(&p->c, buf_str(&p->got), p->got.len, &e) == 0;
    buf_clear(&p->got);
    free(p->error);
    p->error = p->have ? NULL : xstrdup(e.text);
    if (p->have)
        know(p);
    p->at = p->at < p->c.n ? p->at : 0;
    for (size_t i = 0; path && i < p->c.n; i++)
        if (str_eq(p->c.v[i].path, path))
            p->at = i;
    free(path);
    show_current(p);
}

static void ask(struct changes_pane *p)
{
    struct app_file q = {.op = FILE_OP_CHANGES, .max = DIFF_BYTES};
    struct app_file_cb cb = {.on_data = on_data, .on_end = on_end, .ctx = p};
    if (p->req)
        app_file_cancel(p->ui->app, p->req);
    buf_clear(&p->got);
    p->req = app_file(p->ui->app, p->sandbox, &q, &cb);
}

static void turn_to(struct changes_pane *p, uint64_t sandbox)
{
    if (p->sandbox != sandbox) {
        drop_file(p);
        changes_release(&p->c);
        p->have = false;
        p->at = p->top = 0;
        free(p->error);
        p->error = NULL;
    }
    p->sandbox = sandbox;
    ask(p);
}

void changes_show(struct ui *ui, const struct sandbox *s)
{
    turn_to(pane_of(ui), s->id);
    ui_show(ui, BODY_CHANGES);
}

/* --- the pane ------------------------------------------------------------------------- */

static void *changes_open(struct ui *ui)
{
    struct changes_pane *p = xcalloc(1, sizeof(*p));
    p->ui = ui;
    buf_init(&p->got, 0);
    buf_init(&p->file, 0);
    return p;
}

static void changes_close(void *state)
{
    struct changes_pane *p = state;
    if (p->req)
        app_file_cancel(p->ui->app, p->req);
    drop_file(p);
    changes_release(&p->c);
    textview_release(&p->view);
    buf_release(&p->got);
    buf_release(&p->file);
    free(p->own[0]);
    free(p->error);
    ARR_RELEASE(&p->known);
    free(p);
}

/* Small beside others it shows what is known of the cursor's sandbox, and asks for nothing. */
static bool is_large(const struct ui *ui)
{
    return ui->body == BODY_CHANGES;
}

static bool is_of_cursor(const struct ui *ui, const struct changes_pane *p)
{
    return is_large(ui) || (p->sandbox && p->sandbox == ui->selected);
}

static bool changes_update(struct ui *ui, void *state)
{
    struct changes_pane *p = state;
    if (is_large(ui) && ui->selected && ui->selected != p->sandbox)
        turn_to(p, ui->selected);
    return is_large(ui);
}

static enum theme_role word_role(const struct change *f)
{
    return f->status[0] == '?' || f->status[0] == 'A' ? ROLE_WORKING
           : f->status[0] == 'D' || f->status[1] == 'D' ? ROLE_ERROR
                                                        : ROLE_NOTICE;
}

static void draw_row(struct canvas *c, struct rect r, const struct change *f)
{
    char n[24];
    canvas_text(c, r.y, r.x, 8, word_role(f), change_word(f));
    if (f->added >= 0) {
        snprintf(n, sizeof(n), "+%ld", f->added);
        canvas_right(c, r.y, r.x + 9, 6, ROLE_WORKING, n);
        snprintf(n, sizeof(n), "-%ld", f->removed);
        canvas_right(c, r.y, r.x + 16, 6, ROLE_ERROR, n);
    } else if (f->added == -1) {
        canvas_right(c, r.y, r.x + 9, 13, ROLE_DIM, "binary");
    }
    canvas_text(c, r.y, r.x + 23, r.w - 23, ROLE_TEXT, f->shown);
}

/* In the place of files; NULL: there are some. */
static const char *instead(struct ui *ui, const struct changes_pane *p)
{
    if (!is_of_cursor(ui, p))
        return ui->selected ? ui_keys(ui, "{changes} asks the sandbox what was changed") : "";
    return p->c.n                     ? NULL
           : p->error                 ? p->error
           : p->have && p->c.branch   ? "nothing was changed since the last commit"
           : p->have                  ? "no repository, and no file is newer than the session"
                                      : "asking the sandbox ...";
}

static void changes_draw(struct ui *ui, void *state, struct canvas *c, struct rect r, bool focused,
                         int64_t now)
{
    struct changes_pane *p = state;
    const char *say = instead(ui, p);
    (void)now;
    p->page = r.h;
    p->top = list_top(p->top, p->at, p->c.n, r.h);
    if (say)
        canvas_text(c, r.y, r.x + 1, r.w - 2, p->error && p->sandbox == ui->selected ? ROLE_ERROR : ROLE_HINT,
                    say);
    for (int y = 0; !say && y < r.h && p->top + (size_t)y < p->c.n; y++) {
        bool at = p->top + (size_t)y == p->at;
        draw_row(c, (struct rect){r.y + y, r.x + 3, 1, r.w - 3}, &p->c.v[p->top + (size_t)y]);
        if (at)
            canvas_text(c, r.y + y, r.x + 1, 1, ROLE_TITLE, ">");
        if (at && focused)
            canvas_role(c, (struct rect){r.y + y, r.x, 1, r.w}, ROLE_CURSOR);
    }
}

static int changes_action(struct ui *ui, void *state, enum action a)
{
    struct changes_pane *p = state;
    bool mine = is_of_cursor(ui, p);
    int64_t to = list_moved(a, p->at, mine ? p->c.n : 0, p->page);
    if (to >= 0 && mine && (size_t)to != p->at) {
        p->at = (size_t)to;
        show_current(p);
    }
    if (to >= 0)
        return UI_HANDLED | UI_REDRAW;
    if (!mine && ui->selected && (a == ACT_CHANGE_OPEN || a == ACT_CHANGES_AGAIN))
        turn_to(p, ui->selected);
    else if (a == ACT_CHANGE_OPEN)
        open_current(p);
    else if (a == ACT_CHANGES_AGAIN && p->sandbox)
        ask(p);
    else if (a == ACT_CHANGE_BACK)
        ui_show(ui, BODY_WORK);
    else
        return UI_IGNORED;
    return UI_HANDLED | UI_REDRAW;
}

static const char *changes_title(struct ui *ui, void *state)
{
    struct changes_pane *p = state;
    bool mine = is_of_cursor(ui, p), branch = mine && p->c.branch;
    const struct sandbox *s = model_sandbox(ui->model, mine ? p->sandbox : ui->selected);
    snprintf(p->title, sizeof(p->title), "%s: %.60s%s%.60s", is_large(ui) ? "changes" : "changed files",
             s ? s->name : "-", branch ? "  on " : "", branch ? p->c.branch : "");
    return p->title;
}

static const char *changes_note(struct ui *ui, void *state)
{
    struct changes_pane *p = state;
    if (!is_of_cursor(ui, p))
        return "";
    if (p->req && !p->have)
        return "asking";
    if (!p->have)
        return "";
    if (p->c.branch)
        snprintf(p->note, sizeof(p->note), "%s%zu file%s  +%ld -%ld%s", p->req ? "asking, " : "",
                 p->c.n, p->c.n == 1 ? "" : "s", p->c.added, p->c.removed,
                 p->c.files_cut ? "  cut" : "");
    else
        snprintf(p->note, sizeof(p->note), "no %s: %zu newer file%s%s",
                 p->c.no_git ? "git" : "repository", p->c.n, p->c.n == 1 ? "" : "s",
                 p->c.files_cut ? "  cut" : "");
    return p->note;
}

const struct pane_ops pane_changes = {
    .name = "changes",
    .scope = SCOPE_CHANGES,
    .open = changes_open,
    .close = changes_close,
    .update = changes_update,
    .draw = changes_draw,
    .action = changes_action,
    .title = changes_title,
    .note = changes_note,
};

/* --- the diff --------------------------------------------------------------------------- */

static enum theme_role diff_role(const char *line)
{
    if (str_starts(line, "diff --git ") || str_starts(line, "+++ ") || str_starts(line, "--- ") ||
        str_starts(line, "index "))
        return ROLE_DIM;
    return *line == '+'   ? ROLE_WORKING
           : *line == '-' ? ROLE_ERROR
           : *line == '@' ? ROLE_TOOL
                          : ROLE_TEXT;
}

static void *diff_open(struct ui *ui)
{
    (void)ui;
    return NULL; /* it is the other pane's */
}

static void diff_close(void *state)
{
    (void)state;
}

static bool diff_update(struct ui *ui, void *state)
{
    (void)ui;
    (void)state;
    return false;
}

static void diff_draw(struct ui *ui, void *state, struct canvas *c, struct rect r, bool focused,
                      int64_t now)
{
    struct changes_pane *p = pane_of(ui);
    (void)state;
    (void)focused;
    (void)now;
    bool plain = p->view.line == p->own || p->view.line == p->file_line;
    textview_draw(&p->view, c, (struct rect){r.y, r.x + 1, r.h, r.w - 2}, plain ? NULL : diff_role);
}

static int diff_action(struct ui *ui, void *state, enum action a)
{
    struct changes_pane *p = pane_of(ui);
    (void)state;
    int r = textview_action(&p->view, a);
    if (r != UI_IGNORED)
        return r;
    if (a == ACT_CHANGE_BACK || (a == ACT_BACK && !ui->zoom))
        ui_focus(ui, PANE_CHANGES);
    else if (a == ACT_CHANGES_AGAIN)
        ask(p);
    else
        return UI_IGNORED;
    return UI_HANDLED | UI_REDRAW;
}

static const char *diff_title(struct ui *ui, void *state)
{
    const struct change *f = current(pane_of(ui));
    (void)state;
    return f ? f->shown : "diff";
}

static const char *diff_note(struct ui *ui, void *state)
{
    (void)state;
    return pane_of(ui)->c.diff_cut ? "the diff is cut" : "";
}

const struct pane_ops pane_diff = {
    .name = "diff",
    .scope = SCOPE_CHANGES,
    .open = diff_open,
    .close = diff_close,
    .update = diff_update,
    .draw = diff_draw,
    .action = diff_action,
    .title = diff_title,
    .note = diff_note,
};
