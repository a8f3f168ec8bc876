/* One file of a sandbox, read only: its begin, cleaned. */
#include "files_priv.h"

#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VIEW_BYTES = 256 << 10 };

void file_view_drop(struct files_pane *p)
{
    if (p->view_req)
        app_file_cancel(p->ui->app, p->view_req);
    p->view_req = 0;
    textview_set(&p->view, NULL, 0);
    for (size_t i = 0; i < p->n_lines; i++)
        free(p->line[i]);
    free(p->line);
    p->line = NULL;
    p->n_lines = 0;
    buf_clear(&p->data);
    free(p->shown);
    p->shown = NULL;
    p->view_note[0] = '\0';
}

static void on_data(void *ctx, const char *data, size_t len)
{
    buf_add(&((struct files_pane *)ctx)->data, data, len);
}

static void say(struct files_pane *p, const char *text)
{
    p->line = xcalloc(1, sizeof(*p->line));
    p->line[0] = xstrdup(text);
    p->n_lines = 1;
}

static void on_end(void *ctx, const struct ev_done *d)
{
    struct files_pane *p = ctx;
    p->view_req = 0;
    p->ui->said = true;
    p->view_note[0] = '\0';
    if (d->err.code) {
        say(p, d->err.text);
    } else if (file_is_binary(buf_str(&p->data), p->data.len)) {
        say(p, ui_keys(p->ui, "a binary file: {file-get} downloads it"));
    } else if (!p->data.len) {
        say(p, "an empty file");
    } else {
        p->line = clean_lines(p->data.p, p->data.len, &p->n_lines);
        if (p->data.len >= VIEW_BYTES)
            snprintf(p->view_note, sizeof(p->view_note), "the first %d KiB", VIEW_BYTES >> 10);
        else
            snprintf(p->view_note, sizeof(p->view_note), "%zu line%s", p->n_lines,
                     p->n_lines == 1 ? "" : "s");
    }
    buf_clear(&p->data);
    textview_set(&p->view, p->line, p->n_lines);
}

void file_view_open(struct files_pane *p, const struct file_entry *f)
{
    file_view_path(p, file_path_join(p->path, f->name));
}

void file_view_path(struct files_pane *p, char *path)
{
    struct app_file_cb cb = {.on_data = on_data, .on_end = on_end, .ctx = p};
    struct app_file q = {.op = FILE_OP_READ, .path = path, .max = VIEW_BYTES};
    file_view_drop(p);
    p->shown = path;
    snprintf(p->view_note, sizeof(p->view_note), "reading ...");
    p->view_req = app_file(p->ui->app, p->sandbox, &q, &cb);
    ui_focus(p->ui, PANE_FILE);
}

/* --- the pane --------------------------------------------------------------------------- */

static void *view_open(struct ui *ui)
{
    (void)ui;
    return NULL; /* it is the other pane's */
}

static void view_close(void *state)
{
    (void)state;
}

static bool view_update(struct ui *ui, void *state)
{
    (void)ui;
    (void)state;
    return false;
}

static void view_draw(struct ui *ui, void *state, struct canvas *c, struct rect r, bool focused,
                      int64_t now)
{
    struct files_pane *p = files_pane_of(ui);
    (void)state;
    (void)focused;
    (void)now;
    if (!p->shown)
        canvas_text(c, r.y, r.x + 1, r.w - 2, ROLE_HINT, ui_keys(ui, "{file-open} shows the file at the cursor here"));
    textview_draw(&p->view, c, (struct rect){r.y, r.x + 1, r.h, r.w - 2}, NULL);
}

static int view_action(struct ui *ui, void *state, enum action a)
{
    struct files_pane *p = files_pane_of(ui);
    int r = textview_action(&p->view, a);
    (void)state;
    if (r != UI_IGNORED)
        return r;
    if (a == ACT_FILE_UP || (a == ACT_BACK && !ui->zoom))
        ui_focus(ui, PANE_FILES);
    else if (a == ACT_FILE_GET && p->have && files_current(p))
        files_do(p, a);
    else
        return UI_IGNORED;
    return UI_HANDLED | UI_REDRAW;
}

static const char *view_title(struct ui *ui, void *state)
{
    struct files_pane *p = files_pane_of(ui);
    char *name;
    (void)state;
    if (!p->shown)
        return "file";
    name = clean_line_dup(file_path_name(p->shown), 120);
    snprintf(p->view_title, sizeof(p->view_title), "%s", name);
    free(name);
    return p->view_title;
}

static const char *view_note(struct ui *ui, void *state)
{
    (void)state;
    return files_pane_of(ui)->view_note;
}

const struct pane_ops pane_file = {
    .name = "file",
    .scope = SCOPE_FILES,
    .open = view_open,
    .close = view_close,
    .update = view_update,
    .draw = view_draw,
    .action = view_action,
    .title = view_title,
    .note = view_note,
};
