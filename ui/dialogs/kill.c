/* Killing one sandbox. */
#include "kill_priv.h"

#include <cct/ui/box.h>

#include <cct/text/clean.h>
#include <cct/text/width.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kill_one {
    uint64_t sandbox;
    char *id;
    int64_t started_at; /* the row must still be this very sandbox */
    char *shown;        /* whom the picture named last, NULL = nobody yet */
};

static bool is_up(const struct sandbox *s)
{
    return s && s->state != SB_KILLED && (s->state != SB_ERROR || s->vm_up);
}

static const char *name_of(const struct sandbox *s)
{
    return s->name && *s->name ? s->name : s->sandbox_id ? s->sandbox_id : "this sandbox";
}

void kill_add_cells(struct buf *b, const char *s, size_t cells)
{
    size_t used = 0;
    s = s ? s : "-";
    buf_add(b, s, text_fit(s, strlen(s), cells, &used));
    for (; used <= cells; used++)
        buf_addc(b, ' ');
}

static const char *account_of(const struct ui *ui)
{
    return ui->model->account ? ui->model->account : "-";
}

void kill_shows(struct ui *ui, char **shown, char *question)
{
    ui->asks_anew |= question && !str_eq(question, *shown);
    free(*shown);
    *shown = question;
}

/* Up to three names, and how many there are. */
struct named {
    struct buf names;
    size_t n;
};

static void name_one(struct named *v, const char *name)
{
    enum { NAMED = 3 };
    if (v->n++ < NAMED)
        buf_addf(&v->names, "%s%s", v->n > 1 ? ", " : "", name);
    else if (v->n == NAMED + 1)
        buf_adds(&v->names, " ...");
}

void kill_add_losses(struct ui *ui, struct buf *b, const char *indent, const uint64_t *ids, size_t n)
{
    struct named asks = {BUF_INIT, 0}, work = {BUF_INIT, 0};
    struct changes_sum c;
    char text[160];
    for (size_t i = 0; i < n; i++) {
        const struct sandbox *s = model_sandbox(ui->model, ids[i]);
        if (s && s->state == SB_RUNNING && s->agent == AG_ASKS)
            name_one(&asks, name_of(s));
        if (!s || !changes_known(ui, ids[i], &c) || !c.files)
            continue;
        snprintf(text, sizeof(text), "%s (%zu changed file%s)", name_of(s), c.files,
                 c.files == 1 ? "" : "s");
        name_one(&work, text);
    }
    if (asks.n)
        buf_addf(b, "%s%zu %s asking you something: %s\n", indent, asks.n, asks.n == 1 ? "is" : "are",
                 buf_str(&asks.names));
    if (work.n)
        buf_addf(b, "%s%zu ha%s unsaved work: %s\n", indent, work.n, work.n == 1 ? "s" : "ve",
                 buf_str(&work.names));
    buf_release(&asks.names);
    buf_release(&work.names);
}

/* Whom a yes would end; it counts only while this is what the picture says. */
static char *one_named(const struct ui *ui, const struct kill_one *k, const struct sandbox *s)
{
    return xasprintf("%s\n%s\n%s", name_of(s), k->id, account_of(ui));
}

static void add_id(const struct kill_one *k, struct buf *b)
{
    struct buf id = BUF_INIT;
    clean_ascii(k->id, strlen(k->id), &id);
    buf_addf(b, "id       %s\n", id.len ? id.p : "(being created)");
    buf_release(&id);
}

static void one_text(struct ui *ui, const struct kill_one *k, const struct sandbox *s,
                     struct buf *b)
{
    buf_addf(b, "This ends %s and cannot be undone.\n\n", name_of(s));
    add_id(k, b);
    buf_addf(b, "agent    %s, %s\n", s->tool ? s->tool : "-", sb_agent_name(s->agent));
    buf_addf(b, "account  %s\n", account_of(ui));
    if (!ui->model->local)
        buf_addf(b, "stops    $%.2f per hour\n", sandbox_usd_per_hour(s));
    struct changes_sum c;
    if (changes_known(ui, k->sandbox, &c) && c.files)
        buf_addf(b, "unsaved  %zu changed file%s\n", c.files, c.files == 1 ? "" : "s");
    buf_adds(b, "\nThe transcript stays on this machine.");
}

/* What must be seen before a yes can count, where there is little room. */
static void one_brief(const struct ui *ui, const struct kill_one *k, const struct sandbox *s,
                      int w, struct buf *b)
{
    buf_adds(b, "name     ");
    kill_add_cells(b, name_of(s), w > 10 ? (size_t)w - 10 : 1);
    buf_addc(b, '\n');
    add_id(k, b);
    buf_addf(b, "account  %s", account_of(ui));
}

static void one_draw(struct ui *ui, void *state, struct canvas *c, struct rect screen,
                     int64_t now)
{
    struct kill_one *k = state;
    const struct sandbox *s = model_sandbox(ui->model, k->sandbox);
    struct buf b = BUF_INIT;
    int w = screen.w < KILL_CELLS ? screen.w : KILL_CELLS;
    (void)now;
    if (!is_up(s)) {
        buf_adds(&b, "It is gone already.");
        kill_shows(ui, &k->shown, NULL);
    } else {
        one_text(ui, k, s, &b);
        if (box_text_rows(buf_str(&b), w - 4) + 4 > screen.h) {
            buf_clear(&b);
            one_brief(ui, k, s, w - 4, &b);
        }
        kill_shows(ui, &k->shown, one_named(ui, k, s));
    }
    int rows = box_text_rows(buf_str(&b), w - 4);
    struct rect in = box_draw(c, screen, rows + 4, w, "kill this sandbox?", NULL);
    box_text(c, in, ROLE_DIALOG, buf_str(&b));
    canvas_fill(c, (struct rect){in.y + in.h - 1, in.x, 1, in.w}, ROLE_DIALOG, " ");
    canvas_hints(c, in.y + in.h - 1, in.x, in.w, ROLE_DANGER,
                 k->shown ? ui_keys(ui, "{yes}  kill it\t{close}  leave it")
                          : ui_keys(ui, "{close}  close"));
    buf_release(&b);
}

static int one_action(struct ui *ui, void *state, enum action a)
{
    struct kill_one *k = state;
    const struct sandbox *s = model_sandbox(ui->model, k->sandbox);
    if (a == ACT_CLOSE || a == ACT_NO || !is_up(s))
        return UI_CLOSE;
    if (a != ACT_YES || !k->shown || !ui_key_meant(ui))
        return UI_HANDLED;
    if (!str_eq(s->sandbox_id ? s->sandbox_id : "", k->id) || s->started_at != k->started_at) {
        ui_status(ui, 1, "not killed: the sandbox changed while the question was open; look "
                         "again");
        return UI_CLOSE;
    }
    char *named = one_named(ui, k, s);
    bool same = str_eq(named, k->shown);
    free(named);
    if (!same)
        return UI_HANDLED; /* its name or the account is another now: look first */
    app_kill(ui->app, k->sandbox);
    ui_status(ui, 0, "killing %s", name_of(s));
    return UI_CLOSE;
}

static void one_close(void *state)
{
    struct kill_one *k = state;
    free(k->id);
    free(k->shown);
    free(k);
}

static const struct overlay_ops one_ops = {
    .name = "kill", .scope = SCOPE_CONFIRM, .close = one_close, .draw = one_draw, .action = one_action};

void overlay_kill_one(struct ui *ui, uint64_t sandbox)
{
    const struct sandbox *s = model_sandbox(ui->model, sandbox);
    if (!is_up(s)) {
        ui_status(ui, 0, "it is gone already; {forget} takes the row off the list");
        return;
    }
    struct kill_one *k = xcalloc(1, sizeof(*k));
    k->sandbox = sandbox;
    k->id = xstrdup(s->sandbox_id ? s->sandbox_id : "");
    k->started_at = s->started_at;
    ui_overlay_push(ui, &one_ops, k);
}
