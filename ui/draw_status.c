/* The last row: what was said, what is wrong, or what happened last; whose account it is; what
 * the keys mean. */
#include "draw_priv.h"

#include <cct/ui/ui.h>

#include <cct/text/width.h>
#include <cct/util/str.h>
#include <stdio.h>
#include <string.h>

enum { EVENT_SHOWN_MS = 120000, MASK_CELLS = 8 };

static enum theme_role role_of(int level)
{
    return level == 2 ? ROLE_STATUS_BAD : level == 1 ? ROLE_STATUS_WARN : ROLE_STATUS;
}

/* What stands there when nothing was said; *role: how grave it is. */
static const char *default_status(struct ui *ui, char *dst, size_t size, enum theme_role *role)
{
    const struct model *m = ui->model;
    if (m->link != LINK_OK && m->link != LINK_CONNECTING)
        *role = ui_link_role(m);
    if (!m->loaded && ui->slow) {
        *role = ROLE_STATUS_BAD;
        return ui_keys(ui, "the database does not answer: does its disk? {quit} quits");
    }
    if (m->link != LINK_OK && m->link_text)
        return m->link_text;
    size_t st[SB_STATE_COUNT], asks, working, idle;
    if (ui->opts.replay)
        return "a recorded run: nothing runs, nothing is billed";
    if (ui->marks.n) {
        int n = snprintf(dst, size, "%zu marked: ", ui->marks.n);
        marks_names(ui, ui->marks.v, ui->marks.n, dst + n, size - (size_t)n);
        return dst;
    }
    model_counts(m, st, &asks, &working, &idle);
    if (asks) {
        return ui_keys(ui, ui->mode == UI_INPUT ? "%zu ask%s you: press {input-next-asking} to jump"
                                                : "%zu ask%s you: press {next-asking} to jump",
                       asks, asks == 1 ? "s" : "");
    }
    const struct model_event *e = m->n_events ? &m->events[m->n_events - 1] : NULL;
    if (!e || ui->now - e->time_ms > EVENT_SHOWN_MS || e->time_ms - ui->now > EVENT_SHOWN_MS)
        return "";
    const struct sandbox *s = e->sandbox ? model_sandbox(m, e->sandbox) : NULL;
    bool named = !s || str_starts(e->text, s->name);
    snprintf(dst, size, "%s%s%s", named ? "" : s->name, named ? "" : ": ", e->text);
    if (*role == ROLE_STATUS)
        *role = role_of(e->level);
    return dst;
}

/* What the keys mean now. */
static const char *mode_word(struct ui *ui)
{
    if (ui->frozen)
        return "FROZEN";
    const struct overlay *top = ui->n_overlays ? &ui->overlays[ui->n_overlays - 1] : NULL;
    const struct pane *p = &ui->panes[ui->focus];
    if (top && top->ops->scope == SCOPE_FORM)
        return "FORM";
    if (top)
        return top->ops->mode ? top->ops->mode : "ASK";
    if (p->ops->typing && p->ops->typing(ui, p->state))
        return "FIND";
    if (ui->opts.replay)
        return "REPLAY";
    return ui->mode == UI_INPUT ? "INPUT" : ui->opts.readonly ? "NAV ro" : ui->opts.second ? "NAV 2nd" : "NAV";
}

/* "****4f2a env, hides 9f21 user" of "E2B key ****4f2a (environment) at URL, hides ****9f21
 * (user key)". */
static void short_account(const char *account, char *dst, size_t size)
{
    static const struct {
        const char *word, *brief;
    } t[] = {{"E2B key ", ""},          {"(environment)", "env"}, {"(project key)", "project"},
             {"(user key)", "user"},    {"(E2B CLI config)", "CLI"}};
    bool hides = false;
    size_t n = 0;

    for (const char *p = account; *p && n + 16 < size;) {
        size_t k = 0, skip = 0;
        while (k < sizeof(t) / sizeof(t[0]) && !str_starts(p, t[k].word))
            k++;
        if (str_starts(p, " at http"))
            skip = 4 + strcspn(p + 4, " ,");
        else if (hides && str_starts(p, "****") && p[4] != ' ')
            skip = 4;
        hides = hides || str_starts(p, "hides ");
        if (k < sizeof(t) / sizeof(t[0])) {
            n += (size_t)snprintf(dst + n, size - n, "%s", t[k].brief);
            p += strlen(t[k].word);
        } else if (skip) {
            p += skip;
        } else {
            dst[n++] = *p++;
        }
    }
    dst[n] = '\0';
}

static void draw_account(struct ui *ui, int y, int w, const char *text)
{
    canvas_right(&ui->canvas, y, ui->canvas.w - w - 9, w, ROLE_HINT, text);
}

/* Whose account it is stays in view, with what it hides: in full beside what is said, else
 * in short, and what is said gives way. A refused key's sentence names it itself. */
static int place_account(struct ui *ui, int y, const char *say)
{
    const char *account = ui->model->account ? ui->model->account : "";
    int said = (int)text_width(say, strlen(say)), w = (int)text_width(account, strlen(account));
    int room = ui->canvas.w - 12;
    char brief[160];

    if (said + w <= room) {
        draw_account(ui, y, w, account);
        return room - w;
    }
    if (say == ui->model->link_text && ui->model->link == LINK_AUTH)
        return room + 3;
    short_account(account, brief, sizeof(brief));
    w = (int)text_width(brief, strlen(brief));
    if (w > room - UI_SAID_MIN && said > room - w)
        w = room - UI_SAID_MIN < MASK_CELLS ? MASK_CELLS : room - UI_SAID_MIN;
    if (w == 0 || room < 2 * MASK_CELLS)
        return room + 3;
    draw_account(ui, y, w, brief);
    return room - w;
}

/* A warning that does not fit is begun where the keys stand, which come back with the next one. */
static const char *begin_above(struct ui *ui, int y, enum theme_role role, const char *say)
{
    struct canvas *c = &ui->canvas;
    size_t next, len = strlen(say), n = text_wrap(say, len, 0, (size_t)c->w - 2, &next);
    canvas_fill(c, (struct rect){y - 1, 0, 1, c->w}, ROLE_TEXT, " ");
    canvas_textn(c, y - 1, 1, c->w - 2, role, say, n);
    return say + next;
}

/* The rest of it is in the pane of events, which is said. */
static void draw_begin(struct ui *ui, int y, int room, enum theme_role role, const char *say)
{
    const char *where = ui_keys(ui, " ({pane-events}: all)");
    int more = (int)strlen(where), used = room - more > 0 ? room - more : 0;
    used = canvas_text(&ui->canvas, y, 1, used, role, say);
    canvas_text(&ui->canvas, y, 1 + used, more, ROLE_HINT, where);
}

void ui_draw_status(struct ui *ui, int y)
{
    struct canvas *c = &ui->canvas;
    char text[512];
    bool said = *ui->status != 0;
    enum theme_role role = said ? role_of(ui->status_level) : ROLE_STATUS;
    const char *say = said ? ui->status : default_status(ui, text, sizeof(text), &role);
    if (!ui->status_since)
        ui->status_since = ui->now;
    int room = place_account(ui, y, say), w = (int)text_width(say, strlen(say));
    bool grave = role == ROLE_STATUS_BAD || role == ROLE_STATUS_WARN;
    if (w > room && grave && said) {
        say = begin_above(ui, y, role, say);
        w = (int)text_width(say, strlen(say));
    }
    if (w > room && grave)
        draw_begin(ui, y, room, role, say);
    else
        canvas_text(c, y, 1, room, role, say);
    canvas_right(c, y, c->w - 8, 7, ROLE_TITLE, mode_word(ui));
}
