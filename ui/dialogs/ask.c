/* Dialogs with one field: the time left, a new name. */
#include <cct/ui/box.h>
#include <cct/ui/ui.h>

#include <cct/util/arr.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ASK_CELLS = 60 };

struct ask {
    const char *title, *label, *hint;
    const char *suggested; /* taken when the field is empty, or NULL */
    uint64_t sandbox;
    ARR(uint64_t) several; /* instead of it */
    struct inputline line;
    char names[56]; /* of the several */
    char error[160];
    /* 0, or an error in e */
    int (*done)(struct ui *ui, const struct ask *a, const char *text, struct err *e);
};

static void ask_close(void *state)
{
    struct ask *a = state;
    ARR_RELEASE(&a->several);
    inputline_release(&a->line);
    free(a);
}

static void ask_draw(struct ui *ui, void *state, struct canvas *c, struct rect screen,
                     int64_t now)
{
    struct ask *a = state;
    (void)now;
    int w = screen.w < ASK_CELLS ? screen.w : ASK_CELLS;
    struct rect in = box_draw(c, screen, 6, w, a->title,
                              ui_keys(ui, "{take-line} do it\t{leave-line} cancel"));
    int n = canvas_text(c, in.y + 1, in.x, in.w, ROLE_PROMPT, a->label) + 1;
    inputline_draw(&a->line, c, (struct rect){in.y + 1, in.x + n, 1, in.w - n}, ROLE_FIELD, true);
    if (a->suggested && !a->line.text.len)
        canvas_text(c, in.y + 1, in.x + n, in.w - n, ROLE_HINT, a->suggested);
    bool bad = *a->error;
    canvas_text(c, in.y + 3, in.x, in.w, bad ? ROLE_STATUS_BAD : ROLE_HINT,
                bad ? a->error : a->hint);
}

static int ask_key(struct ui *ui, void *state, key_code k, const char *paste, size_t len)
{
    struct ask *a = state;
    struct err e = {0};
    if (ui->found == ACT_LEAVE_LINE)
        return UI_CLOSE;
    if (ui->found == ACT_TAKE_LINE) {
        const char *text = inputline_text(&a->line);
        if (a->done(ui, a, !*text && a->suggested ? a->suggested : text, &e) == 0)
            return UI_CLOSE;
        str_copy(a->error, sizeof(a->error), e.text);
        return UI_HANDLED;
    }
    a->error[0] = 0;
    ui_line_key(ui, &a->line, k, paste, len);
    return UI_HANDLED;
}

static const struct overlay_ops ask_ops = {.name = "ask",
                                           .scope = SCOPE_ASK,
                                           .close = ask_close,
                                           .draw = ask_draw,
                                           .key = ask_key,
                                           .takes_paste = true};

static struct ask *ask_open(struct ui *ui, uint64_t sandbox, const char *preset)
{
    struct ask *a = xcalloc(1, sizeof(*a));
    a->sandbox = sandbox;
    inputline_init(&a->line, false, SANDBOX_TAGS_BYTES - 1);
    inputline_set(&a->line, preset);
    ui_overlay_push(ui, &ask_ops, a);
    return a;
}

static int time_done(struct ui *ui, const struct ask *a, const char *text, struct err *e)
{
    int64_t s;
    if (!str_to_seconds(text, &s) || s < 1 || s > LIM_TIMEOUT_MAX_S)
        return err_set(e, ERR_INVALID, "write seconds, 15m or 1h30m, from 1 s to 24h");
    for (size_t i = 0; i < a->several.n; i++)
        app_set_timeout(ui->app, a->several.v[i], (int)s);
    if (!a->several.n)
        app_set_timeout(ui->app, a->sandbox, (int)s);
    ui_status(ui, 0, "setting the time left to %s", text);
    return 0;
}

static struct ask *time_open(struct ui *ui, uint64_t sandbox)
{
    struct ask *a = ask_open(ui, sandbox, "");
    a->title = "time left";
    a->label = "ends in";
    a->suggested = "15m";
    a->hint = "counted from now; also shortens";
    a->done = time_done;
    return a;
}

void overlay_time_several(struct ui *ui, const uint64_t *ids, size_t n)
{
    struct ask *a = time_open(ui, 0);
    for (size_t i = 0; i < n; i++)
        *ARR_PUSH(&a->several) = ids[i];
    a->title = "time left of all of these";
    marks_names(ui, ids, n, a->names, sizeof(a->names));
    a->hint = a->names;
}

void overlay_time(struct ui *ui, uint64_t sandbox)
{
    const struct sandbox *s = model_sandbox(ui->model, sandbox);
    if (!s || (s->state != SB_RUNNING && !(s->state == SB_ERROR && s->vm_up))) {
        ui_status(ui, 0, "only a running sandbox has time left to set");
        return;
    }
    time_open(ui, sandbox);
}

static int rename_done(struct ui *ui, const struct ask *a, const char *text, struct err *e)
{
    if (!sandbox_name_ok(text))
        return err_set(e, ERR_INVALID, "1 to 64 of A-Z a-z 0-9 _ -");
    app_rename(ui->app, a->sandbox, text);
    return 0;
}

static int tag_done(struct ui *ui, const struct ask *a, const char *text, struct err *e)
{
    char tags[SANDBOX_TAGS_BYTES];
    if (!sandbox_tags(text, tags))
        return err_set(e, ERR_INVALID, "at most %d words, each 1 to 24 of A-Z a-z 0-9 _ . -",
                       SANDBOX_TAGS);
    for (size_t i = 0; i < a->several.n; i++)
        app_tag(ui->app, a->several.v[i], tags);
    if (!a->several.n)
        app_tag(ui->app, a->sandbox, tags);
    return 0;
}

void overlay_tag(struct ui *ui, uint64_t sandbox)
{
    const struct sandbox *s = model_sandbox(ui->model, sandbox);
    struct ask *a = ask_open(ui, sandbox, s && s->tags && !ui->marks.n ? s->tags : "");
    a->title = ui->marks.n ? "tags of all that are marked" : "tags";
    a->label = "tags";
    a->hint = "words; /tag:WORD finds them; empty takes them off";
    a->done = tag_done;
    for (size_t i = 0; i < ui->marks.n; i++)
        *ARR_PUSH(&a->several) = ui->marks.v[i];
    if (ui->marks.n) {
        marks_names(ui, ui->marks.v, ui->marks.n, a->names, sizeof(a->names));
        a->hint = a->names;
    }
}

void overlay_rename(struct ui *ui, uint64_t sandbox)
{
    const struct sandbox *s = model_sandbox(ui->model, sandbox);
    struct ask *a = ask_open(ui, sandbox, s ? s->name : "");
    a->title = "rename";
    a->label = "name";
    a->hint = "known to this machine only; metadata keeps the first one";
    a->done = rename_done;
}
