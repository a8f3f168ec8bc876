/* Notifications of the screen: which rows are looked at, what the user sees anyway, and what
 * goes to the outbox. */
#include <cct/ui/ui.h>

#include <cct/app/replay.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { START_MS = 5000, KEY_MS = 30000, MINUTE = 60000 };

/* Builds that ran until now: the event has them all. */
static void look_at_builds(struct ui *ui, const struct ev_builds *ev)
{
    for (size_t i = 0; i < ev->n; i++)
        notify_build(ui->notify, model_build(ui->model, ev->v[i].id), &ev->v[i], ui->looked_at);
}

void ui_notes_observe(struct ui *ui, const struct msg *ev)
{
    const struct ev_sandboxes *rows = (const struct ev_sandboxes *)ev;
    const struct ev_event *e = (const struct ev_event *)ev;
    if (ev->type == EV_BUILDS)
        look_at_builds(ui, (const struct ev_builds *)ev);
    if (ev->type == EV_EVENT && e->budget)
        ui_note(ui, NOTE_BUDGET, "a budget", e->text ? e->text : "", ui->looked_at);
    if (ev->type != EV_SANDBOXES)
        return;
    for (size_t i = 0; i < rows->n; i++)
        *ARR_PUSH(&ui->looks) = rows->v[i].id;
}

/* It has the window, and is at it: what it shows needs no bell. A terminal that tells nothing
 * of its focus is taken to have it for a while after each key. */
static bool attended(const struct ui *ui, int64_t now)
{
    return ui->focus_told ? !ui->away : ui->key_at && now - ui->key_at < KEY_MS;
}

/* Of which the user is to be told: not the one that is seen. */
static const struct sandbox *unseen(void *ctx, uint64_t sandbox)
{
    const struct ui *ui = ctx;
    bool seen = ui->attended && ui->selected == sandbox && ui->panes[PANE_OUTPUT].visible;
    return seen ? NULL : model_sandbox(ui->model, sandbox);
}

static void look_at_one(struct ui *ui, const struct sandbox *s, int64_t then, int64_t now)
{
    bool ending = s->end_at && s->end_at - then <= ui->opts.warn_left_ms;
    notify_look(ui->notify, s, ending, now);
}

static void look_at(struct ui *ui, int64_t now)
{
    /* time alone can bring an end near */
    bool all = now / MINUTE != ui->looked_at / MINUTE || ui->looks.n >= ui->model->n_sandboxes;
    int64_t then = ui_server_now(ui, ui->now);
    for (size_t i = 0; all && i < ui->model->n_sandboxes; i++)
        look_at_one(ui, &ui->model->sandboxes[i], then, now);
    for (size_t i = 0; !all && i < ui->looks.n; i++) {
        const struct sandbox *s = model_sandbox(ui->model, ui->looks.v[i]);
        if (s)
            look_at_one(ui, s, then, now);
    }
    ARR_CLEAR(&ui->looks);
    ui->looked_at = now;
}

static void mark_news(struct ui *ui, const struct note *note)
{
    for (size_t i = 0; i < note->count && i < sizeof(note->ids) / sizeof(note->ids[0]); i++)
        if (note->ids[i] && note->ids[i] != ui->selected && !ui_has_news(ui, note->ids[i]))
            *ARR_PUSH(&ui->news) = note->ids[i];
}

bool ui_has_news(const struct ui *ui, uint64_t sandbox)
{
    for (size_t i = 0; i < ui->news.n; i++)
        if (ui->news.v[i] == sandbox)
            return true;
    return false;
}

static bool drop_news(struct ui *ui)
{
    for (size_t i = 0; i < ui->news.n; i++)
        if (ui->news.v[i] == ui->selected || !model_sandbox(ui->model, ui->news.v[i])) {
            ARR_REMOVE(&ui->news, i);
            return true;
        }
    return false;
}

static void tell(struct ui *ui, const struct note *note)
{
    int how = ui->opts.notify ? ui->opts.notify[note->event] : 0;
    const struct sandbox *s = model_sandbox(ui->model, note->sandbox);
    if (how & NOTE_MARK)
        mark_news(ui, note);
    if (!(how & ~NOTE_MARK))
        return;
    struct ui_out *out = ARR_PUSH(&ui->outbox);
    *out = (struct ui_out){.kind = UI_OUT_NOTE, .channels = how};
    out->label = xstrdup(s && s->sandbox_id ? s->sandbox_id : "");
    out->note = xcalloc(1, sizeof(*out->note));
    *out->note = *note;
}

bool ui_notes(struct ui *ui, int64_t now)
{
    struct note note;
    if (!ui->notes_from)
        ui->notes_from = now + START_MS;
    look_at(ui, now);
    ui->attended = attended(ui, now);
    bool changed = drop_news(ui);
    while (notify_next(ui->notify, now, unseen, ui, &note)) {
        if (now < ui->notes_from && note.event != NOTE_ASKS && note.event != NOTE_BUDGET)
            continue; /* it became so while nobody looked, and is on the screen */
        tell(ui, &note);
        changed = true;
    }
    return changed;
}

int64_t ui_notes_wait(const struct ui *ui, int64_t now)
{
    return notify_wait(ui->notify, now);
}

void ui_note(struct ui *ui, enum note_event e, const char *name, const char *text, int64_t now)
{
    notify_event(ui->notify, e, name, text, now);
}

void ui_title(const struct ui *ui, char *dst, size_t size)
{
    size_t by_state[SB_STATE_COUNT], asks, working, idle;
    char n[32] = "";
    if (ui->opts.replay) {
        snprintf(dst, size, "cc-tui replay of %s", replay_name(ui->opts.replay));
        return;
    }
    model_counts(ui->model, by_state, &asks, &working, &idle);
    if (asks)
        snprintf(n, sizeof(n), " %zu?", asks);
    snprintf(dst, size, "cc-tui%s%s%s", n, ui->model->project ? " " : "",
             ui->model->project ? ui->model->project : "");
}
