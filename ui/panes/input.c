/* The chat input: a draft for each sandbox, history, several lines. */
#include "input_priv.h"

#include <cct/text/width.h>
#include <cct/util/limits.h>
#include <cct/util/map.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct field {
    struct inputline line;
    char *session;     /* whose draft it is; NULL: of nobody who would come back */
};
struct input {
    struct map *fields; /* sandbox id -> struct field */
    uint64_t seen;
    /* a queued message is being taken back, to be edited there */
    uint64_t edit_req, edit_for;
    char *edit_text;
    uint64_t now_for; /* its agent is being interrupted for a message */
};

static void *input_open(struct ui *ui)
{
    (void)ui;
    struct input *in = xcalloc(1, sizeof(*in));
    in->fields = map_new();
    return in;
}

static void field_free(void *p)
{
    struct field *f = p;
    inputline_release(&f->line);
    free(f->session);
    free(f);
}

static void input_close(void *state)
{
    struct input *in = state;
    map_free(in->fields, field_free);
    free(in->edit_text);
    free(in);
}

static struct inputline *line_of(struct ui *ui, struct input *in)
{
    struct field *f = map_get_id(in->fields, ui->selected);
    const struct sandbox *s = model_sandbox(ui->model, ui->selected);
    if (!f && !ui->selected)
        return NULL;
    if (!f) {
        f = xcalloc(1, sizeof(*f));
        inputline_init(&f->line, true, LIM_MESSAGE_BYTES);
        f->line.folds = true;
        map_put_id(in->fields, ui->selected, f);
    }
    if (!f->session && s && s->session) {
        f->session = xstrdup(s->session);
        const char *draft = drafts_get(ui, f->session);
        if (!f->line.text.len)
            inputline_paste(&f->line, draft, strlen(draft));
    }
    return &f->line;
}

void pane_input_drafts(struct ui *ui)
{
    struct input *in = ui->panes[PANE_INPUT].state;
    struct field *f;
    size_t it = 0;
    while ((f = map_next(in->fields, &it, NULL, NULL)))
        if (f->session)
            drafts_put(ui, f->session, inputline_text(&f->line));
}

static int prompt_cells(const struct sandbox *s, int w)
{
    int n = s ? (int)text_width(s->name, strlen(s->name)) + 2 : 2;
    return n > w / 3 ? w / 3 : n;
}

int pane_input_rows(struct ui *ui, int w)
{
    struct inputline *l = line_of(ui, ui->panes[PANE_INPUT].state);
    const struct sandbox *s = model_sandbox(ui->model, ui->selected);
    return l ? inputline_rows(l, w - prompt_cells(s, w)) : 1;
}

static void input_draw(struct ui *ui, void *state, struct canvas *c, struct rect r, bool focused,
                       int64_t now)
{
    struct inputline *l = line_of(ui, state);
    const struct sandbox *s = model_sandbox(ui->model, ui->selected);
    (void)now;
    if (!l || !s)
        return;
    int indent = prompt_cells(s, r.w);
    canvas_text(c, r.y, r.x, indent - 2, ROLE_PROMPT, s->name);
    canvas_text(c, r.y, r.x + indent - 2, 1, ROLE_PROMPT, ">");
    struct rect field = {r.y, r.x + indent, r.h, r.w - indent};
    bool first = *keymap_keys(ui->keys, ACT_INPUT);
    if (!focused && !l->text.len && s->state == SB_RUNNING && s->agent != AG_NONE && first &&
        !ui->opts.readonly)
        canvas_text(c, r.y, field.x, field.w, ROLE_HINT, ui_keys(ui, "press {input} to type"));
    else
        inputline_draw(l, c, field, ROLE_INPUT, focused);
}

/* Why nothing can be said to it now, or NULL. */
static const char *cannot_send(struct ui *ui, const struct sandbox *s)
{
    if (s->foreign || s->agent == AG_NONE)
        return ui_keys(ui, "nobody reads it: adopt one of its processes first ({processes}, then {adopt})");
    switch (s->state) {
    case SB_PAUSED:
        return ui_keys(ui, "it is paused: press {resume} in the list to resume it first");
    case SB_KILLED:
        return ui_keys(ui, "it is gone; press {new} for a new one");
    case SB_ERROR:
        return ui_keys(ui, s->vm_up ? "its agent has ended: press {resume} in the list to restart it"
                                    : "it failed and is gone; press {new} for a new one");
    default:
        return NULL;
    }
}

#define INTERRUPTING "interrupting the agent of "
#define KEPT "not sent, the text is kept: "

/* bare: no file goes along. */
static void say_sent(struct ui *ui, const struct sandbox *s, const char *text, bool now, bool bare)
{
    bool busy = !s->adopted && (s->agent == AG_WORKING || s->agent == AG_ASKS);
    if (busy && now)
        ui_status(ui, 0, INTERRUPTING "%s for this message", s->name);
    else if (busy)
        ui_status(ui, 0, "queued: it is sent when the agent is idle ({edit-queued} edits it)");
    else if (s->agent == AG_EXITED)
        ui_status(ui, 1, "queued: the agent has ended; press {resume} in the list to restart it");
    else if (bare)
        input_hint(ui, s->id, text);
}

static void post(struct ui *ui, struct input *in, const struct sandbox *s, const char *whole, int how)
{
    app_send_how(ui->app, s->id, whole, false, how);
    in->now_for = how & SEND_NOW ? s->id : 0;
}

static int send(struct ui *ui, struct input *in, struct inputline *l, bool now)
{
    const struct sandbox *s = model_sandbox(ui->model, ui->selected);
    char *text = xstrdup(inputline_text(l));
    const char *why = s ? cannot_send(ui, s) : "no sandbox is selected";
    int how = now ? SEND_NOW : 0;
    if (!text[strspn(text, " \t\n")]) {
        ui_status(ui, 0, "nothing to send: the message is empty");
    } else if (why) {
        ui_status(ui, 1, KEPT "%s", why);
    } else if (inputline_file(l, 0)) {
        input_send_files(ui, l, how);
    } else {
        post(ui, in, s, text, how);
        inputline_history_add(l, text);
        inputline_set(l, "");
        say_sent(ui, s, text, now, true);
    }
    free(text);
    return UI_HANDLED | UI_REDRAW | UI_LAYOUT;
}

struct inputline *input_line_of(struct ui *ui, uint64_t sandbox)
{
    struct input *in = ui->panes[PANE_INPUT].state;
    struct field *f = map_get_id(in->fields, sandbox);
    return f ? &f->line : NULL;
}

void input_read(struct ui *ui, const struct own_look *k)
{
    struct input *in = ui->panes[PANE_INPUT].state;
    struct inputline *l = input_line_of(ui, k->sandbox);
    const struct sandbox *s = model_sandbox(ui->model, k->sandbox);
    const char *why = !k->found ? k->err.text : s ? cannot_send(ui, s) : "the sandbox is gone";
    if (why) {
        ui_status(ui, 1, KEPT "%s", why);
        return;
    }
    ui->status[0] = 0;
    post(ui, in, s, k->found, k->how);
    if (l)
        inputline_history_add(l, k->text);
    if (l && str_eq(inputline_text(l), k->text)) /* else it is another one by now */
        inputline_set(l, "");
    say_sent(ui, s, k->text, k->how & SEND_NOW, false);
}

const struct message *ui_queued(const struct ui *ui)
{
    for (size_t i = ui->model->n_messages; i-- > 0;) {
        const struct message *m = &ui->model->messages[i];
        if (m->sandbox == ui->selected && m->state == MSG_QUEUED)
            return m;
    }
    return NULL;
}

static int take_back(struct ui *ui, struct input *in, struct inputline *l, bool edit)
{
    const struct message *m = ui_queued(ui);
    if (!m) {
        ui_status(ui, 0, "no message is queued");
        return UI_HANDLED | UI_REDRAW;
    }
    if (edit && l->text.len) {
        ui_status(ui, 1, "clear the input first ({clear}), then {edit-queued} edits the queued message");
        return UI_HANDLED | UI_REDRAW;
    }
    uint64_t req = app_message_cancel(ui->app, m->id);
    if (edit) { /* its text comes here once it is certain that it is not sent */
        free(in->edit_text);
        in->edit_text = xstrdup(m->text);
        in->edit_req = req;
        in->edit_for = ui->selected;
    }
    return UI_HANDLED | UI_REDRAW | UI_LAYOUT;
}

/* What is said of the interrupt ends with it. */
static void now_ends(struct ui *ui, struct input *in, const struct message *m)
{
    if (!in->now_for || m->sandbox != in->now_for || m->state == MSG_QUEUED)
        return;
    in->now_for = 0;
    if (ui->status_level == 0 && str_starts(ui->status, INTERRUPTING)) {
        ui_status(ui, 0, m->state == MSG_FAILED ? "the message was not sent" : "sent");
        ui->said = true;
    }
}

void pane_input_observe(struct ui *ui, const struct msg *ev)
{
    struct input *in = ui->panes[PANE_INPUT].state;
    struct field *f = map_get_id(in->fields, in->edit_for);
    if (ev->type == EV_MESSAGE)
        now_ends(ui, in, &((const struct ev_message *)ev)->msg);
    if (ev->type != EV_DONE || !in->edit_req || ev->req_id != in->edit_req)
        return;
    in->edit_req = 0;
    if (!((const struct ev_done *)ev)->err.code && f) {
        if (f->line.text.len) /* typed meanwhile: in front of it */
            f->line.cursor = 0;
        inputline_paste(&f->line, in->edit_text, strlen(in->edit_text));
        ui->said = true;
    }
    free(in->edit_text);
    in->edit_text = NULL;
}

/* A message that failed, or that the agent may not have seen: the user decides. */
static int send_again(struct ui *ui)
{
    for (size_t i = ui->model->n_messages; i-- > 0;) {
        const struct message *m = &ui->model->messages[i];
        if (m->sandbox != ui->selected ||
            (m->state != MSG_FAILED && m->state != MSG_UNCONFIRMED))
            continue;
        app_message_retry(ui->app, m->id);
        ui_status(ui, 0, "sending it again");
        return UI_HANDLED | UI_REDRAW;
    }
    ui_status(ui, 0, "no message here failed or is unconfirmed");
    return UI_HANDLED | UI_REDRAW;
}

static int scroll_output(struct ui *ui, enum action a)
{
    struct pane *out = &ui->panes[PANE_OUTPUT];
    return out->ops->action(ui, out->state, a) | UI_HANDLED;
}

static int input_action(struct ui *ui, void *state, enum action a)
{
    struct inputline *l = line_of(ui, state);
    if (!l && a != ACT_LEAVE)
        return UI_HANDLED;
    switch (a) {
    case ACT_SEND:
    case ACT_SEND_NOW:
        return send(ui, state, l, a == ACT_SEND_NOW);
    case ACT_COMPLETE:
        input_complete(ui, l);
        return UI_HANDLED | UI_REDRAW | UI_LAYOUT;
    case ACT_EDIT_MESSAGE:
        return ui_edit(ui, l, NULL);
    case ACT_LEAVE:
        ui_focus(ui, ui->before_input == PANE_INPUT ? PANE_LIST : ui->before_input);
        return UI_HANDLED | UI_REDRAW;
    case ACT_CLEAR:
        if (!l->text.len)
            return input_action(ui, state, ACT_LEAVE);
        inputline_set(l, "");
        return UI_HANDLED | UI_REDRAW | UI_LAYOUT;
    case ACT_HIST_PREV:
        inputline_history_prev(l);
        return UI_HANDLED | UI_REDRAW | UI_LAYOUT;
    case ACT_HIST_NEXT:
        inputline_history_next(l);
        return UI_HANDLED | UI_REDRAW | UI_LAYOUT;
    case ACT_HIST_FIND:
        if (!inputline_history_find(l))
            ui_status(ui, 0, "no earlier message has that in it");
        return UI_HANDLED | UI_REDRAW | UI_LAYOUT;
    case ACT_INPUT_PGUP:
        return scroll_output(ui, ACT_PAGE_UP);
    case ACT_INPUT_PGDN:
        return scroll_output(ui, ACT_PAGE_DOWN);
    case ACT_EDIT_QUEUED:
        return take_back(ui, state, l, true);
    case ACT_CANCEL_QUEUED:
        return take_back(ui, state, l, false);
    case ACT_RESEND:
        return send_again(ui);
    default:
        return UI_IGNORED;
    }
}

static int input_key(struct ui *ui, void *state, key_code k, const char *paste, size_t len)
{
    struct inputline *l = line_of(ui, state);
    if (!l)
        return UI_HANDLED;
    if (!ui_line_key(ui, l, k, paste, len) && ui->found == ACT_UNFOLD_PASTE)
        ui_status(ui, 0, "no paste is folded here");
    return UI_HANDLED | UI_REDRAW | UI_LAYOUT;
}

static bool input_update(struct ui *ui, void *state)
{
    struct input *in = state;
    bool changed = in->seen != ui->model->messages_rev;
    in->seen = ui->model->messages_rev;
    return changed;
}

static const char *input_note(struct ui *ui, void *state);

static const char *input_title(struct ui *ui, void *state)
{
    bool room = ui->mode == UI_INPUT && !input_note(ui, state) &&
                ui->panes[PANE_INPUT].r.w >= 60;
    return room ? ui_keys(ui, "input ({send} send, {leave} back, draft kept)") : "input";
}

static const char *input_note(struct ui *ui, void *state)
{
    struct input *in = state;
    struct inputline *l = line_of(ui, in);
    size_t n = 0;
    for (size_t i = 0; i < ui->model->n_messages; i++)
        n += ui->model->messages[i].sandbox == ui->selected &&
             ui->model->messages[i].state == MSG_QUEUED;
    if (n)
        return ui_keys(ui, "%zu queued ({edit-queued} edit, {cancel-queued} cancel)", n);
    if (l && l->n_objects)
        return ui_keys(ui, "%zu of %u bytes ({unfold-paste} shows a paste)", inputline_bytes(l),
                       LIM_MESSAGE_BYTES);
    if (l && l->text.len > 200)
        return ui_keys(ui, "%zu of %u bytes", l->text.len, LIM_MESSAGE_BYTES);
    return NULL;
}

const struct pane_ops pane_input = {
    .name = "input",
    .scope = SCOPE_INPUT,
    .open = input_open,
    .close = input_close,
    .update = input_update,
    .draw = input_draw,
    .action = input_action,
    .key = input_key,
    .title = input_title,
    .note = input_note,
};
