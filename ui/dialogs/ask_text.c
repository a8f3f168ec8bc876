/* Dialogs of anybody: a line of text, and a yes. */
#include <cct/ui/box.h>
#include <cct/ui/ui.h>

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>

enum { CELLS = 72, TEXT_BYTES = 4096 };

/* --- a line ----------------------------------------------------------------------- */

struct line {
    char *title, *label, *hint;
    struct inputline line;
    char error[200];
    ask_text_fn done;
    uint64_t key;
};

static void line_close(void *state)
{
    struct line *l = state;
    inputline_release(&l->line);
    free(l->title);
    free(l->label);
    free(l->hint);
    free(l);
}

static void line_draw(struct ui *ui, void *state, struct canvas *c, struct rect screen, int64_t now)
{
    struct line *l = state;
    (void)now;
    int w = screen.w < CELLS ? screen.w : CELLS;
    struct rect in = box_draw(c, screen, 7, w, l->title,
                              ui_keys(ui, "{take-line} do it\t{leave-line} cancel"));
    canvas_text(c, in.y, in.x, in.w, ROLE_PROMPT, l->label);
    inputline_draw(&l->line, c, (struct rect){in.y + 1, in.x, 1, in.w}, ROLE_FIELD, true);
    bool bad = *l->error;
    box_text(c, (struct rect){in.y + 3, in.x, in.h - 3, in.w}, bad ? ROLE_STATUS_BAD : ROLE_HINT,
             bad ? l->error : l->hint);
}

static int line_key(struct ui *ui, void *state, key_code k, const char *paste, size_t len)
{
    struct line *l = state;
    struct err e = {0};
    if (ui->found == ACT_LEAVE_LINE)
        return UI_CLOSE;
    if (ui->found == ACT_TAKE_LINE) {
        if (l->done(ui, l->key, inputline_text(&l->line), &e) == 0)
            return UI_CLOSE;
        str_copy(l->error, sizeof(l->error), e.text);
        return UI_HANDLED;
    }
    l->error[0] = 0;
    ui_line_key(ui, &l->line, k, paste, len);
    return UI_HANDLED;
}

static const struct overlay_ops line_ops = {.name = "line",
                                            .scope = SCOPE_ASK,
                                            .close = line_close,
                                            .draw = line_draw,
                                            .key = line_key,
                                            .takes_paste = true};

void overlay_ask_text(struct ui *ui, const char *title, const char *label, const char *hint,
                      const char *preset, ask_text_fn done, uint64_t key)
{
    struct line *l = xcalloc(1, sizeof(*l));
    l->title = xstrdup(title);
    l->label = xstrdup(label);
    l->hint = xstrdup(hint);
    l->done = done;
    l->key = key;
    inputline_init(&l->line, false, TEXT_BYTES);
    inputline_set(&l->line, preset);
    ui_overlay_push(ui, &line_ops, l);
}

/* --- a yes -------------------------------------------------------------------------- */

struct confirm {
    char *title, *text, *yes;
    void (*done)(struct ui *ui, uint64_t key);
    uint64_t key;
    bool shown;
};

static void confirm_close(void *state)
{
    struct confirm *f = state;
    free(f->title);
    free(f->text);
    free(f->yes);
    free(f);
}

static void confirm_draw(struct ui *ui, void *state, struct canvas *c, struct rect screen,
                         int64_t now)
{
    struct confirm *f = state;
    (void)now;
    int w = screen.w < CELLS ? screen.w : CELLS, rows = box_text_rows(f->text, w - 4);
    struct rect in = box_draw(c, screen, rows + 4, w, f->title, NULL);
    box_text(c, in, ROLE_DIALOG, f->text);
    canvas_fill(c, (struct rect){in.y + in.h - 1, in.x, 1, in.w}, ROLE_DIALOG, " ");
    canvas_hints(c, in.y + in.h - 1, in.x, in.w, ROLE_DANGER,
                 ui_keys(ui, "{yes}  %.150s\t{close}  leave it", f->yes));
    ui->asks_anew |= !f->shown;
    f->shown = true;
}

static int confirm_action(struct ui *ui, void *state, enum action a)
{
    struct confirm *f = state;
    if (a == ACT_CLOSE || a == ACT_NO)
        return UI_CLOSE;
    if (a != ACT_YES || !f->shown || !ui_key_meant(ui))
        return UI_HANDLED;
    f->done(ui, f->key);
    return UI_CLOSE;
}

static const struct overlay_ops confirm_ops = {.name = "confirm",
                                               .scope = SCOPE_CONFIRM,
                                               .close = confirm_close,
                                               .draw = confirm_draw,
                                               .action = confirm_action};

void overlay_confirm(struct ui *ui, const char *title, const char *text, const char *yes,
                     void (*done)(struct ui *ui, uint64_t key), uint64_t key)
{
    struct confirm *f = xcalloc(1, sizeof(*f));
    f->title = xstrdup(title);
    f->text = xstrdup(text);
    f->yes = xstrdup(yes);
    f->done = done;
    f->key = key;
    ui_overlay_push(ui, &confirm_ops, f);
}
