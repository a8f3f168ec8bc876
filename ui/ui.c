/* The screen without a terminal: panes, focus, overlays, keys, status. */
#include <cct/ui/ownfiles.h>
#include <cct/ui/ui.h>

#include <cct/text/width.h>
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MINUTE_MS = 60000 };

static const struct pane_ops *const pane_table[PANE_COUNT] = {
    [PANE_LIST] = &pane_list,       [PANE_OUTPUT] = &pane_output, [PANE_INPUT] = &pane_input,
    [PANE_DETAILS] = &pane_details, [PANE_EVENTS] = &pane_events,
    [PANE_WALL] = &pane_wall,       [PANE_USAGE] = &pane_usage,
    [PANE_FILES] = &pane_files,     [PANE_FILE] = &pane_file,
    [PANE_CHANGES] = &pane_changes, [PANE_DIFF] = &pane_diff,
    [PANE_BUILDS] = &pane_builds,   [PANE_BUILD_LOG] = &pane_build_log,
};

void ui_init(struct ui *ui, struct app *app, const struct ui_opts *o)
{
    memset(ui, 0, sizeof(*ui));
    ui->app = app;
    ui->model = app_model(app);
    ui->opts = *o;
    if (ui->opts.warn_left_ms == 0)
        ui->opts.warn_left_ms = UI_WARN_LEFT_MS;
    ui->keys = keymap_new();
    keymap_bind_all(ui->keys, o->keys, o->n_keys, NULL, NULL); /* who loaded them told what is wrong */
    if (o->note)
        ui_status(ui, 1, "%s", o->note);
    ui->own = ownfiles_new();
    drafts_init(ui);
    inputline_init(&ui->command, false, 4096);
    ui->notify = notify_new();
    ui->mouse_on = o->mouse && !o->no_mouse;
    ui->pressed.pane = PANE_COUNT;
    canvas_init(&ui->canvas);
    ui->canvas.ascii = o->ascii;
    for (int i = 0; i < PANE_COUNT; i++) {
        ui->panes[i].ops = pane_table[i];
        ui->panes[i].state = pane_table[i]->open(ui);
    }
    ui->now = clock_wall_ms();
}

void ui_release(struct ui *ui)
{
    while (ui->n_overlays)
        ui_overlay_pop(ui);
    for (int i = 0; i < PANE_COUNT; i++)
        ui->panes[i].ops->close(ui->panes[i].state);
    keymap_free(ui->keys);
    marks_clear(ui);
    ARR_RELEASE(&ui->marks);
    ARR_RELEASE(&ui->shells);
    ARR_RELEASE(&ui->followed);
    for (struct ui_out out; ui_out_take(ui, &out);)
        ui_out_release(&out);
    ARR_RELEASE(&ui->outbox);
    buf_release(&ui->copy_text);
    notify_free(ui->notify);
    ARR_RELEASE(&ui->looks);
    ARR_RELEASE(&ui->news);
    drafts_release(ui);
    ownfiles_free(ui->own);
    inputline_release(&ui->command);
    canvas_release(&ui->canvas);
    for (size_t i = 0; i < ui->settings.n; i++)
        settings_free(ui->settings.v[i]);
    ARR_RELEASE(&ui->settings);
}

/* After anything that may change what is on the screen. */
static void settle(struct ui *ui)
{
    wall_settle(ui);
    ui_follow(ui);
    processes_settle(ui);
    raw_settle(ui);
}

void ui_resize(struct ui *ui, int h, int w)
{
    bool tiny = ui->tiny;
    ui->hidden = true;
    ui->frozen = false; /* the picture is gone */
    canvas_resize(&ui->canvas, h, w);
    ui->canvas.ascii = ui->opts.ascii;
    ui_layout(ui, ui->canvas.h, ui->canvas.w);
    if (tiny || ui->tiny) /* see tiny_key: both keys are pressed at one size */
        ui->last_ctrl_c = 0;
    settle(ui);
}

static void relayout(struct ui *ui)
{
    ui_layout(ui, ui->canvas.h, ui->canvas.w);
}

static enum action named(const char *s, size_t len)
{
    int a = ACT_NONE + 1;
    while (a < ACT_COUNT && (strlen(action_name((enum action)a)) != len ||
                             memcmp(action_name((enum action)a), s, len) != 0))
        a++;
    return a < ACT_COUNT ? (enum action)a : ACT_NONE;
}

/* "{kill} kills it" with the first key that kills now. */
static void add_keys(const struct ui *ui, struct buf *b, const char *s)
{
    for (; *s; s++) {
        size_t len = *s == '{' ? strcspn(s + 1, "}") : 0;
        enum action a = len && s[1 + len] ? named(s + 1, len) : ACT_NONE;
        const char *keys = keymap_keys(ui->keys, a);
        if (!a) {
            buf_addc(b, *s);
            continue;
        }
        for (const char *k = *keys ? keys : "-"; *k && *k != ' '; k++)
            buf_adds(b, *k == '%' ? "%%" : (char[]){*k, 0});
        s += len + 1;
    }
}

static void format_keys(const struct ui *ui, char *dst, size_t size, const char *fmt, va_list ap)
{
    struct buf b = BUF_INIT;
    add_keys(ui, &b, fmt);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* fmt, but for the keys in it */
    vsnprintf(dst, size, buf_str(&b), ap);
#pragma GCC diagnostic pop
    buf_release(&b);
}

const char *ui_keys(struct ui *ui, const char *fmt, ...)
{
    char *dst = ui->told.text[ui->told.next++ % UI_TOLD];
    va_list ap;
    va_start(ap, fmt);
    format_keys(ui, dst, sizeof(ui->told.text[0]), fmt, ap);
    va_end(ap);
    return dst;
}

/* What is wrong and is longer than the rows of the status is read where events are: once, however
 * often a key that is held down says it. */
static void keep_long(struct ui *ui, int level, const char *text)
{
    if (!level || !ui->canvas.w ||
        text_width(text, strlen(text)) <= (size_t)ui->canvas.w + UI_SAID_MIN ||
        strncmp(text, ui->kept_long, sizeof(ui->kept_long) - 1) == 0)
        return;
    str_copy(ui->kept_long, sizeof(ui->kept_long), text);
    app_event_add(ui->app, level, 0, text);
}

void ui_status(struct ui *ui, int level, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    format_keys(ui, text, sizeof(text), fmt, ap);
    va_end(ap);
    str_copy(ui->status, sizeof(ui->status), text);
    ui->status_level = level;
    ui->status_since = 0;
    keep_long(ui, level, text);
}

void ui_set_theme(struct ui *ui, const char *name)
{
    struct theme t;
    struct err e = {0};
    int rc = theme_load(&t, name, ui->opts.config_dir, &e);
    if (rc)
        ui_status(ui, 1, "%s", e.text);
    else
        ui_status(ui, 0, "theme %s", name);
    if (rc == ERR_NOTFOUND || !*t.name)
        return;
    ui->theme = t;
    ui->theme_changed = true;
}

void ui_overlay_push(struct ui *ui, const struct overlay_ops *ops, void *state)
{
    ui_freeze(ui, false); /* it must be seen */
    ui_bare(ui, false);
    if (ui->n_overlays == UI_MAX_OVERLAYS)
        ui_overlay_pop(ui);
    ui->overlays[ui->n_overlays++] = (struct overlay){ops, state};
}

void ui_overlay_pop(struct ui *ui)
{
    if (!ui->n_overlays)
        return;
    struct overlay *o = &ui->overlays[--ui->n_overlays];
    if (o->ops->close)
        o->ops->close(o->state);
}

void ui_paste(struct ui *ui, struct inputline *l, const char *paste, size_t len)
{
    if (!inputline_paste(l, paste, len))
        ui_status(ui, 1, "nothing was pasted: %zu bytes do not fit, this holds at most %zu", len,
                  l->max);
}

bool ui_line_key(struct ui *ui, struct inputline *l, key_code k, const char *paste, size_t len)
{
    bool pending;
    enum action a = ui->found;
    if (k == K_PASTE) {
        ui_paste(ui, l, paste, len);
        return true;
    }
    if (action_scope(a) != SCOPE_LINE) { /* what it means above that was not wanted */
        a = keymap_find(ui->keys, SCOPE_LINE, k, &pending);
        keymap_reset(ui->keys);
    }
    return inputline_key(l, a, k);
}

enum key_scope ui_scope(struct ui *ui, enum pane_id p)
{
    const struct pane *pane = &ui->panes[p];
    return pane->ops->scope_now ? pane->ops->scope_now(ui, pane->state) : pane->ops->scope;
}

void ui_select(struct ui *ui, uint64_t sandbox)
{
    if (ui->selected == sandbox)
        return;
    if (ui->selected)
        ui->previous = ui->selected;
    ui->selected = sandbox;
    const struct sandbox *s = model_sandbox(ui->model, sandbox);
    if (s && !model_in_view(ui->model, s)) /* found elsewhere: the view goes along */
        app_project_view(ui->app, true);
    ui_follow(ui);
    relayout(ui);
}

static uint64_t newest_of_ours(const struct model *m)
{
    uint64_t id = 0;
    for (size_t i = 0; i < m->n_sandboxes; i++)
        if (!m->sandboxes[i].foreign && m->sandboxes[i].id > id)
            id = m->sandboxes[i].id;
    return id;
}

void ui_await_new(struct ui *ui)
{
    ui->newer_than = newest_of_ours(ui->model);
    ui->awaits_new = true;
}

/* --- keys --------------------------------------------------------------------------- */

enum key_scope overlay_scope(const struct overlay *o)
{
    return o->ops->scope_now ? o->ops->scope_now(o->state) : o->ops->scope;
}

static int overlay_key(struct ui *ui, key_code k, const char *paste, size_t len)
{
    struct overlay *o = &ui->overlays[ui->n_overlays - 1];
    if (k == K_PASTE && !o->ops->takes_paste)
        return UI_HANDLED; /* a paste never answers a question */
    bool pending;
    enum action a = ui->found = keymap_find(ui->keys, overlay_scope(o), k, &pending);
    int r = UI_IGNORED;
    if (pending)
        return UI_HANDLED;
    if (a != ACT_NONE && o->ops->action)
        r = o->ops->action(ui, o->state, a);
    if (r == UI_IGNORED && o->ops->key)
        r = o->ops->key(ui, o->state, k, paste, len);
    /* the overlay may have opened another one above itself */
    if (r & UI_CLOSE) {
        for (int i = ui->n_overlays - 1; i >= 0; i--)
            if (ui->overlays[i].ops == o->ops && &ui->overlays[i] == o) {
                struct overlay closing = ui->overlays[i];
                memmove(&ui->overlays[i], &ui->overlays[i + 1],
                        (size_t)(ui->n_overlays - i - 1) * sizeof(*ui->overlays));
                ui->n_overlays--;
                if (closing.ops->close)
                    closing.ops->close(closing.state);
                break;
            }
        relayout(ui);
    }
    return r | UI_HANDLED | UI_REDRAW;
}

static int pane_key(struct ui *ui, key_code k, const char *paste, size_t len)
{
    struct pane *p = &ui->panes[ui->focus];
    bool pending, asks = p->ops->typing && p->ops->typing(ui, p->state);
    enum key_scope scope = asks ? SCOPE_ASK : ui_scope(ui, ui->focus);
    enum action a = ui->found = keymap_find(ui->keys, scope, k, &pending);
    int r = UI_IGNORED;
    if (pending)
        return UI_HANDLED;
    if (a == ACT_BACK_TWICE) /* what it is besides is looked at in the end */
        a = ACT_BACK;
    if (a != ACT_NONE && !asks && ui->opts.replay)
        r = ui_replay_action(ui, a);
    if (a != ACT_NONE && !asks && r == UI_IGNORED) {
        r = p->ops->action ? p->ops->action(ui, p->state, a) : UI_IGNORED;
        if (r == UI_IGNORED)
            r = ui_global(ui, a);
    }
    if (r == UI_IGNORED && (asks || scope == SCOPE_INPUT)) /* elsewhere a paste is nothing */
        r = p->ops->key(ui, p->state, k, paste, len);
    return r;
}

/* Nothing can be seen, so nothing but leaving is done, and that by a second key: the first may be
 * of a word that is being typed while a window changes its size. */
static int tiny_key(struct ui *ui, key_code k)
{
    int64_t since = ui->now - ui->last_ctrl_c;
    bool leaves = keymap_which(ui->keys, ACT_QUIT, k) >= 0 ||
                  keymap_which(ui->keys, ACT_BACK_TWICE, k) >= 0;
    if (leaves && ui->last_ctrl_c && since >= 0 && since <= UI_TWICE_MS)
        return UI_QUIT;
    ui->last_ctrl_c = leaves ? ui->now : 0;
    return UI_IGNORED;
}

int ui_key(struct ui *ui, key_code k, const char *paste, size_t len)
{
    THREAD_ASSERT(THREAD_MAIN);
    if (k == K_FOCUS_IN || k == K_FOCUS_OUT) {
        app_active(ui->app, k == K_FOCUS_IN);
        ui->away = k == K_FOCUS_OUT;
        ui->focus_told = true;
        processes_settle(ui);
        return UI_IGNORED;
    }
    if (k == K_MOUSE) {
        int did = ui->frozen ? UI_IGNORED : ui_mouse(ui);
        if (did != UI_IGNORED)
            app_touch(ui->app);
        if (did & UI_LAYOUT)
            relayout(ui);
        settle(ui);
        return did;
    }
    ui->status[0] = 0;
    ui->awaits_new = false;
    ui->awaits_ask = 0;
    ui->last_key = k;
    app_touch(ui->app);
    if (ui->tiny)
        return tiny_key(ui, k);
    if (k == K_PASTE_LONG) {
        ui_status(ui, 1, "nothing was taken: the paste is longer than anything here holds (%u KiB)",
                  LIM_MESSAGE_BYTES >> 10);
        return UI_HANDLED | UI_REDRAW;
    }
    int r = ui->n_overlays ? overlay_key(ui, k, paste, len)
            : ui->frozen   ? ui_frozen_key(ui, k)
            : ui->bare     ? ui_bare_key(ui, k, paste, len)
                           : pane_key(ui, k, paste, len);
    if (r & UI_LAYOUT)
        relayout(ui);
    settle(ui);
    return r;
}

/* --- model and time --------------------------------------------------------------------- */

/* The question that was asked for when it was not known yet. */
static bool open_awaited(struct ui *ui)
{
    const struct question *q = ui->awaits_ask ? model_ask(ui->model, ui->awaits_ask) : NULL;
    if (!q || q->answer || ui->n_overlays)
        return false;
    ui->status[0] = 0;
    overlay_answer(ui, ui->awaits_ask);
    ui->awaits_ask = 0;
    return true;
}

bool ui_update(struct ui *ui)
{
    bool changed = false;
    if (ui->selected && !model_sandbox(ui->model, ui->selected)) {
        ui->selected = 0; /* the list takes the nearest row */
        ui->moved = true;
    }
    changed |= marks_prune(ui);
    if (ui->awaits_new && newest_of_ours(ui->model) > ui->newer_than) {
        ui->awaits_new = false;
        ui_select(ui, newest_of_ours(ui->model));
    }
    changed |= open_awaited(ui);
    if (ui->seen_events != ui->model->events_rev && ui->status_level == 0)
        ui->status[0] = 0; /* "pausing x" ends with "x is paused" */
    ui->seen_events = ui->model->events_rev;
    for (int i = 0; i < PANE_COUNT; i++) {
        struct pane *p = &ui->panes[i];
        if (p->seen_rev == ui->model->rev)
            continue;
        p->seen_rev = ui->model->rev;
        changed |= !p->ops->update || p->ops->update(ui, p->state);
    }
    changed |= money_news(ui);
    if (ui->seen_vault != ui->model->vault_rev && !ui->n_overlays) { /* not over a question */
        ui->seen_vault = ui->model->vault_rev;
        if (ui->model->vault_locked && ui->model->vault_passphrase && !ui->model->vault_opening)
            overlay_unlock(ui);
    }
    for (int i = 0; i < ui->n_overlays; i++)
        if (ui->overlays[i].ops->update)
            changed |= ui->overlays[i].ops->update(ui, ui->overlays[i].state);
    relayout(ui);
    settle(ui);
    return changed;
}

void ui_observe(void *ctx, const struct msg *ev)
{
    struct ui *ui = ctx;
    const struct ev_done *d = (const struct ev_done *)ev;
    for (int i = 0; i < ui->n_overlays; i++)
        if (ui->overlays[i].ops->observe)
            ui->overlays[i].ops->observe(ui, ui->overlays[i].state, ev);
    pane_input_observe(ui, ev);
    raw_observe(ui, ev);
    ui_notes_observe(ui, ev);
    if (ev->type == EV_DONE && ev->req_id == ui->int_req && ui->int_req) {
        const struct sandbox *s = model_sandbox(ui->model, d->sandbox);
        ui->int_req = 0;
        if (!d->err.code) {
            ui_status(ui, 0, "the agent of %s was interrupted", s && s->name ? s->name : "it");
            ui->said = true;
        }
    }
    if (ev->type == EV_DONE && ev->req_id == ui->export_req && ui->export_req && !d->err.code) {
        ui_status(ui, 0, "written to %s", d->text ? d->text : "the file");
        ui->said = true;
    }
    if (ev->type == EV_DONE)
        ui_copy_observe(ui, d);
    if (ev->type == EV_DONE && keys_dialog_done(ui, d)) {
        ui->said = true;
        return;
    }
    if (ev->type == EV_DONE && builds_done(ui, d)) {
        ui->said = true;
        return;
    }
    if (ev->type != EV_DONE || !d->err.code || d->err.code == ERR_CANCELLED)
        return;
    ui_status(ui, 2, "%s", d->err.text);
    ui->said = true;
}

int64_t ui_server_now(const struct ui *ui, int64_t now)
{
    return server_clock_at(&ui->model->clock, ui->boot, now);
}

bool ui_status_ages(struct ui *ui, int64_t now)
{
    if (!ui->model->loaded && !ui->slow && now >= ui->shown_at + UI_SLOW_MS)
        return ui->slow = true;
    if (!ui->status[0] || ui->status_level || !ui->status_since ||
        (now >= ui->status_since && now - ui->status_since < UI_SAID_MS))
        return false; /* a clock that was set back ends it, too */
    ui->status[0] = 0;
    return true;
}

int64_t ui_next_change(struct ui *ui, int64_t now)
{
    /* every row shows an age, those that run the time left too; figures that came meanwhile were
     * not worth a picture of their own */
    bool ages = ui->model->n_sandboxes || ui->drawn_figures != ui->model->figures_rev;
    int64_t next = ages ? (now / MINUTE_MS + 1) * MINUTE_MS : 0;
    int64_t slow = ui->model->loaded ? 0 : ui->shown_at + UI_SLOW_MS;
    if (slow > now && (!next || slow < next))
        next = slow;
    if (!ui->status[0] || ui->status_level || !ui->status_since)
        return next;
    int64_t old = ui->status_since + UI_SAID_MS;
    return next && next < old ? next : old;
}
