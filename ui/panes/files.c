/* A folder of a sandbox. */
#include "files_priv.h"

#include <cct/text/clean.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDE = 64, TIME_CELLS = 16 };

struct files_pane *files_pane_of(struct ui *ui)
{
    return ui->panes[PANE_FILES].state;
}

/* --- which are shown ------------------------------------------------------------------ */

static bool is_shown(const struct files_pane *p, size_t i)
{
    return p->dots || p->list.v[i].name[0] != '.';
}

size_t files_n(const struct files_pane *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->list.n; i++)
        n += is_shown(p, i);
    return n;
}

static const struct file_entry *entry(const struct files_pane *p, size_t at)
{
    for (size_t i = 0; i < p->list.n; i++)
        if (is_shown(p, i) && at-- == 0)
            return &p->list.v[i];
    return NULL;
}

const struct file_entry *files_current(const struct files_pane *p)
{
    return entry(p, p->at);
}

static void cursor_to(struct files_pane *p, const char *name)
{
    size_t at = 0;
    for (size_t i = 0; i < p->list.n; i++) {
        if (!is_shown(p, i))
            continue;
        if (str_eq(p->list.v[i].name, name)) {
            p->at = at;
            return;
        }
        at++;
    }
}

/* --- asking ----------------------------------------------------------------------------- */

static void on_list(void *ctx, const struct file_list *l)
{
    struct files_pane *p = ctx;
    bool same = str_eq(p->path, l->path);
    const struct file_entry *f = files_current(p);
    char *name = p->back ? xstrdup(p->back) : same && f ? xstrdup(f->name) : NULL;
    file_list_release(&p->list);
    file_list_copy(&p->list, l);
    free(p->path);
    p->path = xstrdup(l->path);
    p->have = true;
    if (!same)
        p->at = p->top = 0;
    if (name)
        cursor_to(p, name);
    free(name);
    if (p->at >= files_n(p))
        p->at = files_n(p) ? files_n(p) - 1 : 0;
    p->ui->said = true;
}

/* A folder that cannot be read leaves the one before it on the screen. */
static void on_end(void *ctx, const struct ev_done *d)
{
    struct files_pane *p = ctx;
    p->req = 0;
    free(p->error);
    p->error = d->err.code && !p->have ? xstrdup(d->err.text) : NULL;
    free(p->back);
    p->back = NULL;
    p->ui->said = true;
}

void files_go(struct files_pane *p, const char *path)
{
    struct app_file q = {.op = FILE_OP_LIST, .path = path};
    struct app_file_cb cb = {.on_list = on_list, .on_end = on_end, .ctx = p};
    if (p->req)
        app_file_cancel(p->ui->app, p->req);
    p->req = app_file(p->ui->app, p->sandbox, &q, &cb);
}

static void drop_folder(struct files_pane *p)
{
    if (p->req)
        app_file_cancel(p->ui->app, p->req);
    p->req = 0;
    file_view_drop(p);
    file_list_release(&p->list);
    free(p->path);
    free(p->error);
    free(p->back);
    p->path = p->error = p->back = NULL;
    p->have = false;
    p->at = p->top = 0;
}

void files_show(struct ui *ui, const struct sandbox *s)
{
    struct files_pane *p = files_pane_of(ui);
    if (p->sandbox != s->id) {
        drop_folder(p);
        p->sandbox = s->id;
    }
    files_go(p, p->path);
    ui_show(ui, BODY_FILES);
}

const char *files_path(struct ui *ui, uint64_t sandbox, size_t i)
{
    const struct files_pane *p = files_pane_of(ui);
    for (size_t k = 0; p->have && p->sandbox == sandbox && k < p->list.n; k++)
        if (p->list.v[k].kind == FILE_PLAIN && is_shown(p, k) &&
            str_eq(p->list.v[k].shown, p->list.v[k].name) && i-- == 0)
            return p->list.v[k].name;
    return NULL;
}

void files_show_path(struct ui *ui, const struct sandbox *s, const char *path)
{
    struct files_pane *p = files_pane_of(ui);
    char *whole = changes_whole_path(ui, s->id, path);
    if (!whole && *path == '/')
        whole = xstrdup(path);
    else if (!whole && p->have && p->sandbox == s->id)
        whole = file_path_join(p->path, path);
    if (!whole) {
        ui_status(ui, 1, "where '%.60s' is, is not known: write its whole path", path);
        return;
    }
    if (p->sandbox != s->id)
        drop_folder(p);
    p->sandbox = s->id;
    char *folder = file_path_parent(whole);
    free(p->back);
    p->back = xstrdup(file_path_name(whole));
    ui_show(ui, BODY_FILES);
    files_go(p, folder);
    file_view_path(p, whole);
    free(folder);
}

/* --- the pane ----------------------------------------------------------------------------- */

static void *files_open(struct ui *ui)
{
    struct files_pane *p = xcalloc(1, sizeof(*p));
    p->ui = ui;
    buf_init(&p->data, 0);
    return p;
}

static void files_close(void *state)
{
    struct files_pane *p = state;
    drop_folder(p);
    files_work_drop(p);
    textview_release(&p->view);
    buf_release(&p->data);
    free(p);
}

static bool files_update(struct ui *ui, void *state)
{
    struct files_pane *p = state;
    if (ui->body != BODY_FILES)
        return false;
    if (ui->selected && ui->selected != p->sandbox) {
        drop_folder(p);
        p->sandbox = ui->selected;
        files_go(p, NULL);
    }
    return true;
}

static void draw_row(struct canvas *c, struct rect r, const struct file_entry *f)
{
    char size[8], when[32];
    int x = r.x;
    enum theme_role role = f->kind == FILE_FOLDER    ? ROLE_TITLE
                           : f->kind == FILE_STRANGE ? ROLE_DIM
                                                     : ROLE_TEXT;
    file_size_format(f->size, size);
    if (r.w >= WIDE) {
        canvas_text(c, r.y, x, 10, ROLE_DIM, f->perms);
        x += 11;
    }
    canvas_right(c, r.y, x, 5, ROLE_TEXT, f->kind == FILE_FOLDER ? "-" : size);
    x += 6;
    if (r.w >= WIDE) {
        clock_format_rfc3339(when, sizeof(when), f->mtime_ms);
        when[10] = ' ';
        when[TIME_CELLS] = '\0';
        canvas_text(c, r.y, x, TIME_CELLS, ROLE_DIM, f->mtime_ms ? when : "-");
        x += TIME_CELLS + 1;
    }
    x += canvas_textf(c, r.y, x, r.x + r.w - x, role, "%s%s", f->shown,
                      f->kind == FILE_FOLDER ? "/" : "");
    if (f->target && x < r.x + r.w)
        canvas_textf(c, r.y, x, r.x + r.w - x, ROLE_DIM, " -> %s", f->target);
}

static void files_draw(struct ui *ui, void *state, struct canvas *c, struct rect r, bool focused,
                       int64_t now)
{
    struct files_pane *p = state;
    size_t n = files_n(p);
    (void)ui;
    (void)now;
    p->page = r.h;
    p->top = list_top(p->top, p->at, n, r.h);
    for (int y = 0; y < r.h && p->top + (size_t)y < n; y++) {
        bool at = p->top + (size_t)y == p->at;
        draw_row(c, (struct rect){r.y + y, r.x + 3, 1, r.w - 3}, entry(p, p->top + (size_t)y));
        if (at)
            canvas_text(c, r.y + y, r.x + 1, 1, ROLE_TITLE, ">");
        if (at && focused)
            canvas_role(c, (struct rect){r.y + y, r.x, 1, r.w}, ROLE_CURSOR);
    }
    if (n)
        return;
    const char *say = p->error     ? p->error
                      : !p->have   ? "asking the sandbox ..."
                      : p->list.n  ? "only names with a dot: . shows them"
                                   : "nothing is in it";
    canvas_text(c, r.y, r.x + 1, r.w - 2, p->error ? ROLE_ERROR : ROLE_HINT, say);
}

static void go_up(struct files_pane *p)
{
    char *up;
    if (!p->path || strcmp(p->path, "/") == 0)
        return;
    up = file_path_parent(p->path);
    free(p->back);
    p->back = xstrdup(file_path_name(p->path));
    files_go(p, up);
    free(up);
}

static void open_it(struct files_pane *p)
{
    const struct file_entry *f = files_current(p);
    if (!f)
        return;
    if (f->kind != FILE_FOLDER) {
        file_view_open(p, f);
        return;
    }
    char *path = file_path_join(p->path, f->name);
    files_go(p, path);
    free(path);
}

static int files_action(struct ui *ui, void *state, enum action a)
{
    struct files_pane *p = state;
    int64_t to = list_moved(a, p->at, files_n(p), p->page);
    if (to >= 0) {
        p->at = (size_t)to;
        return UI_HANDLED | UI_REDRAW;
    }
    if (ui->opts.readonly && ui_changes_things(a))
        return UI_IGNORED; /* which says so */
    switch (a) {
    case ACT_FILE_OPEN:
        open_it(p);
        break;
    case ACT_FILE_UP:
        go_up(p);
        break;
    case ACT_FILE_AGAIN:
        files_go(p, p->path);
        break;
    case ACT_FILE_DOTS:
        p->dots = !p->dots;
        p->at = 0;
        break;
    case ACT_FILE_GET:
    case ACT_FILE_PUT:
    case ACT_FILE_MKDIR:
    case ACT_FILE_RENAME:
    case ACT_FILE_DELETE:
    case ACT_FILE_STOP:
        files_do(p, a);
        break;
    default:
        return UI_IGNORED;
    }
    return UI_HANDLED | UI_REDRAW;
}

static const char *files_title(struct ui *ui, void *state)
{
    struct files_pane *p = state;
    const struct sandbox *s = model_sandbox(ui->model, p->sandbox);
    char *path = clean_line_dup(p->path ? p->path : "", 100);
    snprintf(p->title, sizeof(p->title), "files: %.60s%s%s", s ? s->name : "-", *path ? "  " : "",
             path);
    free(path);
    return p->title;
}

static void work_note(struct files_pane *p)
{
    const struct file_work *w = &p->work;
    char done[8], total[8];
    size_t n;
    file_size_format((int64_t)w->done, done);
    file_size_format((int64_t)w->total, total);
    n = (size_t)snprintf(p->note, sizeof(p->note), "%s %s of %s",
                         w->op == FILE_OP_GET ? "downloading" : "uploading", done, total);
    if (w->files > 1)
        snprintf(p->note + n, sizeof(p->note) - n, ", file %zu of %zu", w->file, w->files);
}

static const char *files_note(struct ui *ui, void *state)
{
    struct files_pane *p = state;
    size_t n = files_n(p);
    (void)ui;
    if (p->work.req && (p->work.op == FILE_OP_GET || p->work.op == FILE_OP_PUT))
        work_note(p);
    else if (p->req && !p->have)
        return "asking";
    else {
        size_t len = (size_t)snprintf(p->note, sizeof(p->note), "%zu", n);
        if (p->list.n > n)
            len += (size_t)snprintf(p->note + len, sizeof(p->note) - len, ", %zu hidden",
                                    p->list.n - n);
        if (p->list.left_out)
            snprintf(p->note + len, sizeof(p->note) - len, ", %zu left out", p->list.left_out);
    }
    return p->note;
}

const struct pane_ops pane_files = {
    .name = "files",
    .scope = SCOPE_FILES,
    .open = files_open,
    .close = files_close,
    .update = files_update,
    .draw = files_draw,
    .action = files_action,
    .title = files_title,
    .note = files_note,
};
