/* What is done with files: asked for first, told while it goes on, the folder read again
 * afterwards. One at a time. */
#include "files_priv.h"

#include <cct/text/clean.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

static void start(struct files_pane *p, bool over);

static void release(struct file_work *w)
{
    free(w->path);
    free(w->to);
    free(w->local);
    *w = (struct file_work){0};
}

void files_work_drop(struct files_pane *p)
{
    if (p->work.req)
        app_file_cancel(p->ui->app, p->work.req);
    release(&p->work);
}

static void replace_it(struct ui *ui, uint64_t key)
{
    struct files_pane *p = files_pane_of(ui);
    (void)key;
    if (!p->work.req && p->work.path)
        start(p, true);
}

static const char *done_word(int op)
{
    return op == FILE_OP_GET     ? "downloaded to"
           : op == FILE_OP_PUT   ? "uploaded to"
           : op == FILE_OP_MKDIR ? "made"
           : op == FILE_OP_MOVE  ? "moved to"
                                 : "deleted";
}

static void on_end(void *ctx, const struct ev_done *d)
{
    struct files_pane *p = ctx;
    struct file_work *w = &p->work;
    w->req = 0;
    p->ui->said = true;
    if (d->err.code == ERR_CONFLICT && strstr(d->err.text, "already") && w->op != FILE_OP_MKDIR) {
        char *text = clean_text_dup(d->err.text, strlen(d->err.text));
        overlay_confirm(p->ui, "replace it?", text, "replace it", replace_it, 0);
        free(text);
        return;
    }
    if (!d->err.code)
        ui_status(p->ui, 0, "%s %s", done_word(w->op), d->text ? d->text : "it");
    if (w->op != FILE_OP_GET)
        files_go(p, p->path);
    release(w);
}

static void on_progress(void *ctx, const struct ev_progress *g)
{
    struct files_pane *p = ctx;
    p->work.done = g->done;
    p->work.total = g->total;
    p->work.file = g->file;
    p->work.files = g->files;
    p->ui->said = true;
}

static void start(struct files_pane *p, bool over)
{
    struct file_work *w = &p->work;
    struct app_file q = {
        .op = w->op, .path = w->path, .to = w->to, .local = w->local, .over = over};
    struct app_file_cb cb = {.on_progress = on_progress, .on_end = on_end, .ctx = p};
    w->done = w->total = 0;
    w->req = app_file(p->ui->app, p->sandbox, &q, &cb);
}

/* Takes the strings. */
static void begin(struct files_pane *p, int op, char *path, char *to, char *local)
{
    release(&p->work);
    p->work.op = op;
    p->work.path = path;
    p->work.to = to;
    p->work.local = local;
    start(p, false);
}

static int wanted(const char *text, struct err *e)
{
    return *text ? 0 : err_set(e, ERR_INVALID, "a name is needed");
}

/* The entry that was asked about: it may not be at the cursor any more. */
static char *asked_path(struct files_pane *p)
{
    return p->work.path ? xstrdup(p->work.path) : xstrdup("");
}

static int get_done(struct ui *ui, uint64_t key, const char *text, struct err *e)
{
    struct files_pane *p = files_pane_of(ui);
    (void)key;
    if (wanted(text, e))
        return e->code;
    begin(p, FILE_OP_GET, asked_path(p), NULL, xstrdup(text));
    return 0;
}

static int put_done(struct ui *ui, uint64_t key, const char *text, struct err *e)
{
    struct files_pane *p = files_pane_of(ui);
    (void)key;
    if (wanted(text, e))
        return e->code;
    begin(p, FILE_OP_PUT, file_path_join(p->path, ""), NULL, xstrdup(text));
    return 0;
}

static int mkdir_done(struct ui *ui, uint64_t key, const char *text, struct err *e)
{
    struct files_pane *p = files_pane_of(ui);
    (void)key;
    if (wanted(text, e))
        return e->code;
    begin(p, FILE_OP_MKDIR,
          *text == '/' ? xstrdup(text) : file_path_join(p->path, text), NULL, NULL);
    return 0;
}

static int rename_done(struct ui *ui, uint64_t key, const char *text, struct err *e)
{
    struct files_pane *p = files_pane_of(ui);
    (void)key;
    if (wanted(text, e))
        return e->code;
    begin(p, FILE_OP_MOVE, asked_path(p),
          *text == '/' ? xstrdup(text) : file_path_join(p->path, text), NULL);
    return 0;
}

static void delete_done(struct ui *ui, uint64_t key)
{
    struct files_pane *p = files_pane_of(ui);
    (void)key;
    if (p->work.path)
        begin(p, FILE_OP_REMOVE, asked_path(p), NULL, NULL);
}

static void ask_delete(struct files_pane *p, const struct file_entry *f)
{
    char *path = clean_line_dup(p->work.path, 0);
    char *text = xasprintf("%s%s\n\nIt cannot be brought back.", path,
                           f->kind == FILE_FOLDER && !f->target ? "/\nand all that is in it" : "");
    overlay_confirm(p->ui, "delete in the sandbox?", text, "delete it", delete_done, 0);
    free(text);
    free(path);
}

/* A name that would not be safe here: what it is called in the field can be changed. */
static char *name_here(const char *name)
{
    char *s = clean_line_dup(name, 100);
    for (char *q = s; *q; q++)
        if (*q == '/')
            *q = '_';
    return s;
}

static void about_entry(struct files_pane *p, enum action a, const struct file_entry *f)
{
    char *name;
    release(&p->work);
    p->work.path = file_path_join(p->path, f->name);
    name = name_here(f->name);
    if (a == ACT_FILE_DELETE)
        ask_delete(p, f);
    else if (a == ACT_FILE_RENAME)
        overlay_ask_text(p->ui, "rename or move", f->shown,
                         "a name, or a path that begins with /", name, rename_done, 0);
    else
        overlay_ask_text(p->ui, "download", f->shown,
                         f->kind == FILE_FOLDER
                             ? "to this folder here, links left out; what is there is asked about"
                             : "to this file or folder here; what is there already is asked about",
                         name,
                         get_done, 0);
    free(name);
}

void files_do(struct files_pane *p, enum action a)
{
    const struct file_entry *f = files_current(p);
    if (a == ACT_FILE_STOP) {
        ui_status(p->ui, 0, p->work.req ? "called off" : "nothing is under way");
        files_work_drop(p);
    } else if (p->work.req) {
        ui_status(p->ui, 1, "one after the other: {file-stop} calls off what is under way");
    } else if (!p->have) {
        ui_status(p->ui, 1, "the folder is not known yet");
    } else if (a == ACT_FILE_PUT) {
        overlay_ask_text(p->ui, "upload", "file or folder here",
                         "into the folder that is shown; of a folder all files", "", put_done, 0);
    } else if (a == ACT_FILE_MKDIR) {
        overlay_ask_text(p->ui, "new folder", "name", "in the folder that is shown", "",
                         mkdir_done, 0);
    } else if (f) {
        about_entry(p, a, f);
    }
}
