/* One message to several sandboxes: who gets it, the text, when; then a receipt for each. */
#include "broadcast_priv.h"

#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

size_t cast_chosen(const struct cast *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->to.n; i++)
        n += c->to.v[i].on;
    return n;
}

bool cast_failed(const struct ui *ui, const struct cast_to *t)
{
    const struct message *m = t->message ? model_message(ui->model, t->message) : NULL;
    if (!t->asked)
        return false;
    return m ? m->state == MSG_FAILED || m->state == MSG_UNCONFIRMED : t->error != NULL;
}

/* --- sending ----------------------------------------------------------------------- */

static void post(struct ui *ui, struct cast *c, const uint64_t *ids, size_t n)
{
    int how = SEND_FILL | (c->now ? SEND_NOW : 0);
    c->req = app_broadcast(ui->app, ids, n, inputline_text(&c->text), how);
}

static int submit(struct ui *ui, struct cast *c)
{
    const char *text = inputline_text(&c->text);
    uint64_t *ids;
    size_t n = 0;
    c->error[0] = 0;
    if (!cast_chosen(c)) {
        str_copy(c->error, sizeof(c->error), ui_keys(ui, "nobody is chosen: {choice-next} in the list chooses"));
        c->at = CAST_TO;
    } else if (!text[strspn(text, " \t\n")]) {
        str_copy(c->error, sizeof(c->error), "the message is empty");
        c->at = CAST_TEXT;
    } else {
        ids = xcalloc(c->to.n, sizeof(*ids));
        for (size_t i = 0; i < c->to.n; i++)
            if (c->to.v[i].on) {
                ids[n++] = c->to.v[i].sandbox;
                c->to.v[i].asked = true;
            }
        post(ui, c, ids, n);
        free(ids);
        c->sent = true;
        c->cursor = c->top = 0;
        drafts_broadcast(ui, "");
    }
    return UI_HANDLED;
}

/* What was stored goes on its way again; what was not taken is tried anew. */
static int retry(struct ui *ui, struct cast *c)
{
    uint64_t *ids = xcalloc(c->to.n + 1, sizeof(*ids));
    size_t n = 0, again = 0;
    for (size_t i = 0; i < c->to.n && !c->req; i++) {
        struct cast_to *t = &c->to.v[i];
        if (!cast_failed(ui, t))
            continue;
        again++;
        if (t->message)
            app_message_retry(ui->app, t->message);
        else
            ids[n++] = t->sandbox;
        free(t->error);
        t->error = NULL;
    }
    if (n)
        post(ui, c, ids, n);
    free(ids);
    if (again)
        ui_status(ui, 0, "trying %zu again", again);
    return UI_HANDLED;
}

static struct cast_to *find(struct cast *c, uint64_t sandbox)
{
    for (size_t i = 0; i < c->to.n; i++)
        if (c->to.v[i].sandbox == sandbox)
            return &c->to.v[i];
    return NULL;
}

static void take_receipts(struct cast *c, const struct ev_broadcast *ev)
{
    for (size_t i = 0; i < ev->n; i++) {
        struct cast_to *t = find(c, ev->v[i].sandbox);
        if (!t)
            continue;
        free(t->error);
        t->error = ev->v[i].error ? xstrdup(ev->v[i].error) : NULL;
        t->message = ev->v[i].message;
    }
}

static void cast_observe(struct ui *ui, void *state, const struct msg *ev)
{
    struct cast *c = state;
    const struct ev_done *d = (const struct ev_done *)ev;
    if (!c->req || ev->req_id != c->req)
        return;
    if (ev->type == EV_BROADCAST)
        take_receipts(c, (const struct ev_broadcast *)ev);
    if (ev->type != EV_DONE)
        return;
    c->req = 0;
    for (size_t i = 0; i < c->to.n; i++) { /* refused as a whole: nobody has a receipt */
        struct cast_to *t = &c->to.v[i];
        if (t->asked && !t->message && !t->error)
            t->error = xstrdup(d->err.code ? d->err.text : "it was not taken");
    }
    ui->said = true;
}

/* --- keys -------------------------------------------------------------------------- */

static void move_to(struct cast *c, int step)
{
    size_t n = c->to.n;
    if (n)
        c->cursor = step < 0 && !c->cursor ? 0
                    : c->cursor + (size_t)step >= n ? n - 1
                                                    : c->cursor + (size_t)step;
}

static void next_field(struct cast *c, int step)
{
    c->at = (enum cast_field)(((int)c->at + step + CAST_COUNT) % CAST_COUNT);
}

static int after_action(struct ui *ui, struct cast *c, enum action a)
{
    if (a == ACT_CLOSE || a == ACT_CHOOSE)
        return UI_CLOSE;
    if (a == ACT_RETRY)
        return retry(ui, c);
    if (a == ACT_BOX_DOWN || a == ACT_BOX_UP)
        move_to(c, a == ACT_BOX_DOWN ? 1 : -1);
    if (a == ACT_BOX_PGDN || a == ACT_BOX_PGUP)
        move_to(c, a == ACT_BOX_PGDN ? c->rows : -c->rows);
    return UI_HANDLED;
}

/* Left and Right at the time, or yes and no to the one at hand. */
static void choose(struct cast *c)
{
    if (c->at == CAST_WHEN)
        c->now = !c->now;
    else if (c->to.n) {
        c->to.v[c->cursor].on = !c->to.v[c->cursor].on;
        move_to(c, 1);
    }
}

static int cast_action(struct ui *ui, void *state, enum action a)
{
    struct cast *c = state;
    bool down = a == ACT_RECEIVER_DOWN;
    if (c->sent)
        return after_action(ui, c, a);
    c->error[0] = 0;
    switch (a) {
    case ACT_RECEIVER_DOWN:
    case ACT_RECEIVER_UP:
        if (down ? c->cursor + 1 < c->to.n : c->cursor > 0)
            move_to(c, down ? 1 : -1);
        else
            next_field(c, down ? 1 : -1);
        return UI_HANDLED;
    case ACT_RECEIVERS_NONE:
        for (size_t i = 0; i < c->to.n; i++)
            c->to.v[i].on = false;
        return UI_HANDLED;
    case ACT_FIELD_ENTER:
        if (c->at == CAST_SEND)
            return submit(ui, c);
        next_field(c, 1);
        return UI_HANDLED;
    case ACT_FIELD_NEXT:
    case ACT_FIELD_PREV:
        next_field(c, a == ACT_FIELD_NEXT ? 1 : -1);
        return UI_HANDLED;
    case ACT_SUBMIT:
        return submit(ui, c);
    case ACT_EDIT_FIELD:
        return ui_edit(ui, &c->text, c);
    case ACT_FORM_CANCEL:
        drafts_broadcast(ui, inputline_text(&c->text));
        return UI_CLOSE;
    case ACT_CHOICE_PREV:
    case ACT_CHOICE_NEXT:
        choose(c);
        return UI_HANDLED;
    default:
        return UI_IGNORED;
    }
}

static int cast_key(struct ui *ui, void *state, key_code k, const char *paste, size_t len)
{
    struct cast *c = state;
    if (c->sent || c->at != CAST_TEXT)
        return UI_HANDLED;
    c->error[0] = 0;
    ui_line_key(ui, &c->text, k, paste, len);
    return UI_HANDLED;
}

static enum key_scope cast_scope(void *state)
{
    const struct cast *c = state;
    return c->sent              ? SCOPE_CONFIRM
           : c->at == CAST_TO   ? SCOPE_RECEIVERS
           : c->at == CAST_WHEN ? SCOPE_CHOICE
                                : SCOPE_FORM;
}

static void cast_close(void *state)
{
    struct cast *c = state;
    for (size_t i = 0; i < c->to.n; i++) {
        free(c->to.v[i].name);
        free(c->to.v[i].error);
    }
    ARR_RELEASE(&c->to);
    inputline_release(&c->text);
    free(c);
}

static bool cast_update(struct ui *ui, void *state)
{
    (void)ui;
    (void)state;
    return true;
}

static const char *cast_hints(struct ui *ui, void *state)
{
    const struct cast *c = state;
    return c->sent ? ui_keys(ui, " {box-down} {box-up} scroll  {retry} try what failed again  {close} close")
                   : ui_keys(ui, " {field-next} next  {choice-next} choose  {newline} newline  "
                                 "{submit} send  {form-cancel} cancel, text kept");
}

static const struct overlay_ops cast_ops = {.name = "broadcast",
                                            .scope = SCOPE_FORM,
                                            .scope_now = cast_scope,
                                            .close = cast_close,
                                            .update = cast_update,
                                            .draw = cast_draw,
                                            .action = cast_action,
                                            .key = cast_key,
                                            .takes_paste = true,
                                            .hints = cast_hints,
                                            .observe = cast_observe};

/* The chosen ones first, then who else could be. */
static void add_rows(const struct ui *ui, struct cast *c, const uint64_t *ids, size_t n)
{
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < ui->model->n_sandboxes; i++) {
            const struct sandbox *s = &ui->model->sandboxes[i];
            bool on = false, can = s->session && !s->foreign && s->state != SB_KILLED;
            for (size_t k = 0; k < n; k++)
                on |= ids[k] == s->id;
            if (on != (pass == 0) || !(on || can))
                continue;
            struct cast_to *t = ARR_PUSH(&c->to);
            t->sandbox = s->id;
            t->name = xstrdup(s->name ? s->name : s->sandbox_id ? s->sandbox_id : "?");
            t->on = on;
        }
}

void overlay_broadcast(struct ui *ui, const uint64_t *ids, size_t n)
{
    struct cast *c = xcalloc(1, sizeof(*c));
    inputline_init(&c->text, true, LIM_MESSAGE_BYTES);
    c->text.folds = true;
    inputline_set(&c->text, drafts_of_broadcast(ui));
    c->at = CAST_TEXT;
    add_rows(ui, c, ids, n);
    ui_overlay_push(ui, &cast_ops, c);
}
