/* What gets the terminal for a while: an editor with a field's text, a command of the user. */
#include <cct/ui/ui.h>

#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

int ui_edit(struct ui *ui, struct inputline *l, const void *overlay)
{
    if (ui->edit.line) {
        ui_status(ui, 1, "an editor is open already");
        return UI_HANDLED | UI_REDRAW;
    }
    const char *text = inputline_text(l);
    struct ui_out *out = ARR_PUSH(&ui->outbox);
    *out = (struct ui_out){.kind = UI_OUT_EDIT, .label = xstrdup("edit")};
    buf_init(&out->text, 0);
    buf_adds(&out->text, text);
    ui->edit.line = l;
    ui->edit.overlay = overlay;
    return UI_HANDLED | UI_REDRAW;
}

void ui_run_command(struct ui *ui, const char *command)
{
    const struct sandbox *s = model_sandbox(ui->model, ui->selected);
    struct ui_out *out = ARR_PUSH(&ui->outbox);
    *out = (struct ui_out){.kind = UI_OUT_RUN,
                           .label = xstrdup(s && s->sandbox_id ? s->sandbox_id : "")};
    buf_init(&out->text, 0);
    buf_adds(&out->text, command);
}

static bool still_there(const struct ui *ui)
{
    for (int i = 0; i < ui->n_overlays; i++)
        if (ui->overlays[i].state == ui->edit.overlay)
            return true;
    return !ui->edit.overlay;
}

/* Most editors end a text with a line's end that nobody typed. */
static void put_text(struct ui *ui, struct inputline *l, const char *text, size_t len)
{
    char *before = xstrdup(inputline_text(l));
    len -= len > 0 && text[len - 1] == '\n';
    inputline_set(l, "");
    if (!inputline_insert(l, text, len)) {
        inputline_set(l, before);
        ui_status(ui, 1, "nothing was taken: %zu bytes do not fit, this holds at most %zu", len,
                  l->max);
    }
    free(before);
}

void ui_edited(struct ui *ui, const char *text, size_t len, const char *why)
{
    struct inputline *l = ui->edit.line;
    if (!l)
        return;
    if (!text)
        ui_status(ui, 2, "%s", why);
    else if (!still_there(ui))
        ui_status(ui, 1, "what was written is lost: its form has closed meanwhile");
    else
        put_text(ui, l, text, len);
    ui->edit.line = NULL;
    ui->edit.overlay = NULL;
    ui->said = true;
    ui_layout(ui, ui->canvas.h, ui->canvas.w);
}
