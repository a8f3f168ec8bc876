/* Dialogs of the builds: the form for a new one, the question before a template is deleted. */
#include <cct/ui/box.h>
#include <cct/ui/ui.h>

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

enum { BOX_CELLS = 72, LABEL_W = 12 };

/* --- a new build --------------------------------------------------------------------- */

enum field { B_NAME, B_WHERE, B_TOOL, B_TAG, B_CACHE, B_BUILD, B_COUNT };
static const char *const labels[B_COUNT] = {"Name", "From", "Tool", "Tag", "Cache", ""};
static const char *const hints[B_COUNT] = {
    "of the template: lower-case letters, digits, - and _",
    "a folder with a Dockerfile, or a file; empty: the tool's own recipe",
    "", "a name for this build; may be empty", "", ""};
/* The recipes that cc-tui has. */
static const char *const tools[] = {"-", "claude", "codex", "opencode", "pi"};
enum { TOOLS = sizeof(tools) / sizeof(tools[0]) };

struct form {
    struct inputline lines[B_COUNT];
    enum field at;
    int tool;
    bool no_cache;
    char error[200];
};

static bool is_text(enum field f)
{
    return f == B_NAME || f == B_WHERE || f == B_TAG;
}

static void form_close(void *state)
{
    struct form *f = state;

    for (int i = 0; i < B_COUNT; i++)
        inputline_release(&f->lines[i]);
    free(f);
}

static void draw_field(struct form *f, enum field i, struct canvas *c, int y, struct rect in)
{
    struct rect r = {y, in.x + LABEL_W, 1, in.w - LABEL_W};
    enum theme_role role = f->at == i ? ROLE_FIELD_FOCUS : ROLE_FIELD;

    canvas_text(c, y, in.x, LABEL_W - 1, f->at == i ? ROLE_PROMPT : ROLE_DIALOG, labels[i]);
    if (is_text(i))
        inputline_draw(&f->lines[i], c, r, role, f->at == i);
    else if (i == B_TOOL)
        canvas_textf(c, y, r.x, r.w, role, "< %s >", tools[f->tool]);
    else if (i == B_CACHE)
        canvas_textf(c, y, r.x, r.w, role, "< %s >", f->no_cache ? "every step anew" : "as far as it goes");
    else
        canvas_text(c, y, r.x, r.w, f->at == i ? ROLE_CURSOR : ROLE_DIALOG, "[ build ]");
}

static const char *hint_of(struct ui *ui, enum field f)
{
    return f == B_TOOL    ? ui_keys(ui, "what it is for; {choice-prev} and {choice-next} choose")
           : f == B_CACHE ? ui_keys(ui, "{choice-prev} and {choice-next}: steps that were built before, "
                                        "or every step anew")
                          : hints[f];
}

static void form_draw(struct ui *ui, void *state, struct canvas *c, struct rect screen, int64_t now)
{
    struct form *f = state;
    int w = screen.w < BOX_CELLS ? screen.w : BOX_CELLS;
    struct rect in = box_draw(c, screen, B_COUNT + 5, w, "new build",
                              ui_keys(ui, "{submit} build\t{form-cancel} cancel"));

    (void)now;
    for (int i = 0; i < B_COUNT; i++)
        draw_field(f, (enum field)i, c, in.y + i + (i == B_BUILD), in);
    canvas_text(c, in.y + in.h - 1, in.x, in.w, *f->error ? ROLE_STATUS_BAD : ROLE_HINT,
                *f->error ? f->error : hint_of(ui, f->at));
}

static int submit(struct ui *ui, struct form *f)
{
    const char *tag[] = {inputline_text(&f->lines[B_TAG]), NULL};
    struct app_build b = {.name = inputline_text(&f->lines[B_NAME]),
                          .where = inputline_text(&f->lines[B_WHERE]),
                          .tool = f->tool ? tools[f->tool] : NULL,
                          .tags = *tag[0] ? tag : NULL,
                          .no_cache = f->no_cache};

    if (!*b.name) {
        str_copy(f->error, sizeof(f->error), "what is the template to be called?");
        f->at = B_NAME;
        return UI_HANDLED;
    }
    if (!*b.where && !b.tool) {
        str_copy(f->error, sizeof(f->error), "from what? A folder or a Dockerfile, or choose a tool");
        f->at = B_WHERE;
        return UI_HANDLED;
    }
    app_build(ui->app, &b, false, NULL, NULL);
    builds_await_new(ui);
    ui_status(ui, 0, "building %s", b.name);
    return UI_CLOSE;
}

static void choose(struct form *f, int step)
{
    if (f->at == B_TOOL)
        f->tool = (f->tool + step + TOOLS) % TOOLS;
    else if (f->at == B_CACHE)
        f->no_cache = !f->no_cache;
}

static int form_action(struct ui *ui, void *state, enum action a)
{
    struct form *f = state;

    f->error[0] = '\0';
    switch (a) {
    case ACT_FIELD_ENTER:
        if (f->at == B_BUILD)
            return submit(ui, f);
        f->at = (enum field)(f->at + 1);
        return UI_HANDLED;
    case ACT_FIELD_NEXT:
        f->at = (enum field)((f->at + 1) % B_COUNT);
        return UI_HANDLED;
    case ACT_FIELD_PREV:
        f->at = f->at ? (enum field)(f->at - 1) : B_BUILD;
        return UI_HANDLED;
    case ACT_SUBMIT:
        return submit(ui, f);
    case ACT_FORM_CANCEL:
        return UI_CLOSE;
    case ACT_CHOICE_PREV:
    case ACT_CHOICE_NEXT:
        choose(f, a == ACT_CHOICE_NEXT ? 1 : -1);
        return UI_HANDLED;
    default:
        return UI_IGNORED;
    }
}

static int form_key(struct ui *ui, void *state, key_code k, const char *paste, size_t len)
{
    struct form *f = state;

    f->error[0] = '\0';
    if (is_text(f->at))
        ui_line_key(ui, &f->lines[f->at], k, paste, len);
    return UI_HANDLED;
}

static enum key_scope form_scope(void *state)
{
    const struct form *f = state;

    return f->at == B_TOOL || f->at == B_CACHE ? SCOPE_CHOICE : SCOPE_FORM;
}

static const struct overlay_ops form_ops = {.name = "new build",
                                            .scope = SCOPE_FORM,
                                            .scope_now = form_scope,
                                            .close = form_close,
                                            .draw = form_draw,
                                            .action = form_action,
                                            .key = form_key,
                                            .takes_paste = true};

void overlay_build(struct ui *ui)
{
    static const size_t bytes[B_COUNT] = {[B_NAME] = 128, [B_WHERE] = 1000, [B_TAG] = 128};
    struct form *f = xcalloc(1, sizeof(*f));

    for (int i = 0; i < B_COUNT; i++)
        inputline_init(&f->lines[i], false, bytes[i]);
    ui_overlay_push(ui, &form_ops, f);
}

/* --- delete ---------------------------------------------------------------------------- */

struct delete {
    uint64_t build;    /* 0: by name */
    char *name, *id;   /* id: of the template, or NULL */
    bool drawn;
};

static void delete_close(void *state)
{
    struct delete *d = state;

    free(d->name);
    free(d->id);
    free(d);
}

static void delete_draw(struct ui *ui, void *state, struct canvas *c, struct rect screen, int64_t now)
{
    struct delete *d = state;
    int w = screen.w < BOX_CELLS ? screen.w : BOX_CELLS, rows;
    char *text = d->id ? xasprintf("This deletes the template %s with all of its builds, for everybody "
                                   "who uses it, and cannot be undone.\n\nid       %s\naccount  %s\n\n"
                                   "The service refuses while sandboxes of it live.",
                                   d->name, d->id, ui->model->account ? ui->model->account : "-")
                       : xasprintf("This takes the build of %s off the list: the service never had it.",
                                   d->name);
    struct rect in;

    (void)now;
    rows = box_text_rows(text, w - 4);
    in = box_draw(c, screen, rows + 4, w, "delete this template?", NULL);
    box_text(c, (struct rect){in.y, in.x, in.h - 1, in.w}, ROLE_DIALOG, text);
    canvas_fill(c, (struct rect){in.y + in.h - 1, in.x, 1, in.w}, ROLE_DIALOG, " ");
    canvas_hints(c, in.y + in.h - 1, in.x, in.w, ROLE_DANGER,
                 ui_keys(ui, "{yes}  delete it\t{close}  leave it"));
    free(text);
    ui->asks_anew |= !d->drawn;
    d->drawn = true;
}

static int delete_action(struct ui *ui, void *state, enum action a)
{
    struct delete *d = state;

    if (a == ACT_CLOSE || a == ACT_NO)
        return UI_CLOSE;
    if (a != ACT_YES || !d->drawn || !ui_key_meant(ui))
        return UI_HANDLED;
    app_build_delete(ui->app, d->build, d->build ? NULL : d->name);
    ui_status(ui, 0, "deleting %s", d->name);
    return UI_CLOSE;
}

static const struct overlay_ops delete_ops = {.name = "delete template",
                                              .scope = SCOPE_CONFIRM,
                                              .close = delete_close,
                                              .draw = delete_draw,
                                              .action = delete_action};

void overlay_build_delete(struct ui *ui, uint64_t build, const char *name, const char *id)
{
    struct delete *d = xcalloc(1, sizeof(*d));

    d->build = build;
    d->name = xstrdup(name);
    d->id = xstrdup(id);
    ui_overlay_push(ui, &delete_ops, d);
}
