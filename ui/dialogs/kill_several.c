/* Killing the marked sandboxes: all of them named before, what became of each after. The
 * set is fixed when the question opens; one that is another sandbox by then is left alone. */
#include "kill_priv.h"

#include <cct/ui/box.h>

#include <cct/text/clean.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct victim {
    uint64_t sandbox;
    char *id, *name;
    int64_t started_at; /* the row must still be this very sandbox */
    uint64_t req;       /* of its kill, 0 = not asked for */
    bool ended;
    char *error;
};
struct several {
    ARR(struct victim) v;
    bool going;
    int top, rows; /* of the list: first one shown, how many fit */
    int seen;      /* rows that were on the screen: a yes is to all that are named */
    char *shown;   /* whom the picture named last, NULL = nobody yet */
};

static const struct sandbox *row_of(const struct ui *ui, const struct victim *v)
{
    const struct sandbox *s = model_sandbox(ui->model, v->sandbox);
    bool same = s && str_eq(s->sandbox_id ? s->sandbox_id : "", v->id) &&
                s->started_at == v->started_at;
    return same ? s : NULL;
}

static bool is_up(const struct sandbox *s)
{
    return s && s->state != SB_KILLED && (s->state != SB_ERROR || s->vm_up);
}

static size_t count_up(const struct ui *ui, const struct several *k)
{
    size_t n = 0;
    for (size_t i = 0; i < k->v.n; i++)
        n += is_up(row_of(ui, &k->v.v[i]));
    return n;
}

static size_t count_failed(const struct several *k)
{
    size_t n = 0;
    for (size_t i = 0; i < k->v.n; i++)
        n += k->v.v[i].error != NULL;
    return n;
}

/* Whom a yes would end; it counts only while this is what the picture says. */
static char *all_named(const struct ui *ui, const struct several *k)
{
    struct buf b = BUF_INIT;
    buf_adds(&b, ui->model->account ? ui->model->account : "-");
    for (size_t i = 0; i < k->v.n; i++) {
        const struct sandbox *s = row_of(ui, &k->v.v[i]);
        if (is_up(s))
            buf_addf(&b, "\n%s %s", k->v.v[i].id, s->name ? s->name : "");
    }
    return buf_detach(&b, NULL);
}

/* --- drawing ----------------------------------------------------------------------- */

static void add_state(const struct sandbox *s, struct buf *b)
{
    kill_add_cells(b, sb_state_name(s->state), 8);
    kill_add_cells(b, s->tool, 8);
    kill_add_cells(b, sb_agent_name(s->agent), 8);
}

static void add_line(const struct ui *ui, const struct several *k, const struct victim *v, int w,
                     struct buf *b)
{
    const struct sandbox *s = model_sandbox(ui->model, v->sandbox), *same = row_of(ui, v);
    kill_add_cells(b, s && s->name ? s->name : v->name, 15);
    if (k->going)
        buf_adds(b, v->error ? v->error : !v->req ? "left alone" : v->ended ? "gone" : "killing");
    else if (!same)
        buf_adds(b, "is another one now: left alone");
    else if (!is_up(same))
        buf_adds(b, "gone already");
    else {
        struct buf id = BUF_INIT;
        if (w >= KILL_CELLS - 4)
            add_state(same, b);
        clean_ascii(v->id, strlen(v->id), &id);
        buf_adds(b, id.len ? buf_str(&id) : "(being created)");
        buf_release(&id);
    }
}

static void add_unsaved(struct ui *ui, const struct several *k, struct buf *b)
{
    ARR(uint64_t) ids = ARR_INIT;
    struct buf line = BUF_INIT;
    for (size_t i = 0; i < k->v.n; i++) {
        const struct sandbox *s = row_of(ui, &k->v.v[i]);
        if (is_up(s))
            *ARR_PUSH(&ids) = s->id;
    }
    kill_add_losses(ui, &line, "", ids.v, ids.n);
    if (line.len) {
        buf_addc(b, '\n');
        buf_add(b, line.p, line.len - 1);
    }
    buf_release(&line);
    ARR_RELEASE(&ids);
}

static void add_head(struct ui *ui, const struct several *k, struct buf *b)
{
    size_t n = count_up(ui, k), failed = count_failed(k), gone = 0;
    double usd = 0;
    for (size_t i = 0; i < k->v.n; i++) {
        const struct sandbox *s = row_of(ui, &k->v.v[i]);
        usd += is_up(s) ? sandbox_usd_per_hour(s) : 0;
        gone += k->v.v[i].ended && !k->v.v[i].error;
    }
    if (k->going) {
        buf_addf(b, "%zu of %zu gone", gone, k->v.n);
        if (failed)
            buf_addf(b, ", %zu failed", failed);
        return;
    }
    if (!n) {
        buf_adds(b, "They are gone already.");
        return;
    }
    buf_addf(b, "This ends %zu sandbox%s and cannot be undone", n, n == 1 ? "" : "es");
    if (!ui->model->local)
        buf_addf(b, " (stops $%.2f/h)", usd);
    buf_addf(b, ".\naccount  %s", ui->model->account ? ui->model->account : "-");
    add_unsaved(ui, k, b);
}

static void draw_list(const struct ui *ui, struct several *k, struct canvas *c, struct rect in)
{
    int n = (int)k->v.n, more = n - in.h;
    k->rows = in.h;
    if (k->top > more)
        k->top = more > 0 ? more : 0;
    if (k->seen < k->top + in.h)
        k->seen = k->top + in.h;
    for (int i = 0; i < in.h && k->top + i < n; i++) {
        const struct victim *v = &k->v.v[k->top + i];
        struct buf b = BUF_INIT;
        add_line(ui, k, v, in.w, &b);
        canvas_text(c, in.y + i, in.x, in.w, v->error ? ROLE_STATUS_BAD : ROLE_DIALOG,
                    buf_str(&b));
        buf_release(&b);
    }
}

static void several_draw(struct ui *ui, void *state, struct canvas *c, struct rect screen,
                         int64_t now)
{
    struct several *k = state;
    struct buf b = BUF_INIT;
    int w = screen.w < KILL_CELLS ? screen.w : KILL_CELLS;
    size_t up = count_up(ui, k);
    char note[40] = "";
    const char *foot;
    (void)now;
    add_head(ui, k, &b);
    int head = box_text_rows(buf_str(&b), w - 4), rows = (int)k->v.n;
    if (head + rows + 5 > screen.h)
        rows = screen.h - head - 5 > 1 ? screen.h - head - 5 : 1;
    if (rows < (int)k->v.n)
        str_copy(note, sizeof(note), ui_keys(ui, "{box-down} {box-up}  all %zu", k->v.n));
    struct rect in = box_draw(c, screen, head + rows + 5, w,
                              k->going ? "killing the marked sandboxes"
                                       : "kill the marked sandboxes?", note);
    box_text(c, (struct rect){in.y, in.x, head, in.w}, ROLE_DIALOG, buf_str(&b));
    int list = in.h - head - 3;
    draw_list(ui, k, c, (struct rect){in.y + head + 1, in.x, list > 1 ? list : 1, in.w});
    bool all = k->seen >= (int)k->v.n;
    kill_shows(ui, &k->shown, !k->going && up && all ? all_named(ui, k) : NULL);
    if (k->going)
        foot = ui_keys(ui, count_failed(k) ? "{retry}  try again\t{close}  close" : "{close}  close");
    else if (!up)
        foot = ui_keys(ui, "{close}  close");
    else
        foot = ui_keys(ui, all ? "{yes}  kill %zu\t{close}  leave them"
                               : "{box-down}  see all %zu first\t{close}  leave them", up);
    canvas_fill(c, (struct rect){in.y + in.h - 1, in.x, 1, in.w}, ROLE_DIALOG, " ");
    canvas_hints(c, in.y + in.h - 1, in.x, in.w, ROLE_DANGER, foot);
    buf_release(&b);
}

/* --- keys -------------------------------------------------------------------------- */

static void kill_one(struct ui *ui, struct victim *v)
{
    free(v->error);
    v->error = NULL;
    v->ended = false;
    v->req = is_up(row_of(ui, v)) ? app_kill(ui->app, v->sandbox) : 0;
}

static int yes(struct ui *ui, struct several *k)
{
    char *named;
    bool same;
    if (!k->shown || !ui_key_meant(ui))
        return UI_HANDLED;
    named = all_named(ui, k);
    same = str_eq(named, k->shown);
    free(named);
    if (!same)
        return UI_HANDLED; /* other names or another account by now: look first */
    k->going = true;
    for (size_t i = 0; i < k->v.n; i++)
        kill_one(ui, &k->v.v[i]);
    return UI_HANDLED;
}

static int again(struct ui *ui, struct several *k)
{
    if (!count_failed(k) || !ui_key_meant(ui))
        return UI_HANDLED;
    for (size_t i = 0; i < k->v.n; i++)
        if (k->v.v[i].error)
            kill_one(ui, &k->v.v[i]);
    return UI_HANDLED;
}

static int several_action(struct ui *ui, void *state, enum action a)
{
    struct several *k = state;
    int most = (int)k->v.n - k->rows;
    if (a == ACT_CLOSE || a == ACT_NO)
        return UI_CLOSE;
    if (a == ACT_YES && !k->going)
        return yes(ui, k);
    if (a == ACT_RETRY && k->going)
        return again(ui, k);
    k->top += a == ACT_BOX_DOWN   ? 1
              : a == ACT_BOX_UP   ? -1
              : a == ACT_BOX_PGDN ? k->rows
              : a == ACT_BOX_PGUP ? -k->rows
                                  : 0;
    k->top = k->top > most ? most : k->top;
    k->top = k->top < 0 ? 0 : k->top;
    return UI_HANDLED;
}

static void several_observe(struct ui *ui, void *state, const struct msg *ev)
{
    struct several *k = state;
    const struct ev_done *d = (const struct ev_done *)ev;
    (void)ui;
    for (size_t i = 0; ev->type == EV_DONE && i < k->v.n; i++) {
        struct victim *v = &k->v.v[i];
        if (!v->req || v->req != ev->req_id)
            continue;
        v->ended = true;
        v->error = d->err.code ? xstrdup(d->err.text) : NULL;
    }
}

static void several_close(void *state)
{
    struct several *k = state;
    for (size_t i = 0; i < k->v.n; i++) {
        free(k->v.v[i].id);
        free(k->v.v[i].name);
        free(k->v.v[i].error);
    }
    ARR_RELEASE(&k->v);
    free(k->shown);
    free(k);
}

static const struct overlay_ops several_ops = {.name = "kill several",
                                               .scope = SCOPE_CONFIRM,
                                               .close = several_close,
                                               .draw = several_draw,
                                               .action = several_action,
                                               .observe = several_observe};

void overlay_kill_several(struct ui *ui, const uint64_t *ids, size_t n)
{
    if (n == 1) {
        overlay_kill_one(ui, ids[0]);
        return;
    }
    struct several *k = xcalloc(1, sizeof(*k));
    for (size_t i = 0; i < n; i++) {
        const struct sandbox *s = model_sandbox(ui->model, ids[i]);
        if (!s)
            continue;
        struct victim *v = ARR_PUSH(&k->v);
        v->sandbox = s->id;
        v->id = xstrdup(s->sandbox_id ? s->sandbox_id : "");
        v->name = xstrdup(s->name ? s->name : v->id);
        v->started_at = s->started_at;
    }
    ui_overlay_push(ui, &several_ops, k);
}
