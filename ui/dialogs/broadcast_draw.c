/* The picture of a message to several. */
#include "broadcast_priv.h"

#include <cct/text/clean.h>
#include <cct/text/width.h>
#include <cct/ui/box.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CAST_CELLS = 80, LABEL_CELLS = 8, TEXT_ROWS = 4, TO_ROWS = 4, NAME_CELLS = 16,
       TOOL_CELLS = 9, DOING_CELLS = 10,
       AROUND_ROWS = 8 /* frame, what has one row each, the preview */ };

static const char *doing_of(const struct sandbox *s)
{
    if (s->state != SB_RUNNING)
        return sb_state_name(s->state);
    return s->agent == AG_ASKS ? "ASKS YOU" : sb_agent_name(s->agent);
}

/* What would come of it, before it is sent. */
static const char *outlook(struct ui *ui, const struct cast *c, const struct sandbox *s)
{
    bool busy = s->agent == AG_WORKING || s->agent == AG_ASKS;
    if (s->foreign || !s->session)
        return "cannot: nobody reads it";
    if (s->state == SB_PAUSED)
        return "cannot: resume it first";
    if (s->state == SB_KILLED || (s->state == SB_ERROR && !s->vm_up))
        return "cannot: it is gone";
    if (s->state == SB_CREATING)
        return "waits until it runs";
    if (s->state == SB_ERROR || s->agent == AG_EXITED)
        return ui_keys(ui, "waits: {resume} restarts its agent");
    return !busy    ? "goes at once"
           : c->now ? "its turn is interrupted"
                    : "waits until it stops";
}

/* What came of it. */
static const char *outcome(const struct ui *ui, const struct cast *c, const struct cast_to *t)
{
    const struct message *m = t->message ? model_message(ui->model, t->message) : NULL;
    if (!t->message)
        return t->error ? t->error : c->req ? "..." : "not sent";
    if (!m)
        return "queued";
    switch (m->state) {
    case MSG_QUEUED:
        return "queued";
    case MSG_SENT:
        return "sent, not taken in yet";
    case MSG_DELIVERED:
        return "delivered";
    case MSG_CANCELLED:
        return "called off";
    default:
        return m->error ? m->error : msg_state_name(m->state);
    }
}

static void draw_row(struct ui *ui, const struct cast *c, const struct cast_to *t, bool here,
                     struct canvas *cv, int y, int x, int w)
{
    const struct sandbox *s = model_sandbox(ui->model, t->sandbox);
    bool bad = c->sent && cast_failed(ui, t);
    enum theme_role role = bad ? ROLE_STATUS_BAD : here ? ROLE_FIELD_FOCUS
                           : t->on ? ROLE_DIALOG : ROLE_DIM;
    int end = x + w;
    if (!c->sent) {
        canvas_textf(cv, y, x, w, role, "[%s]", t->on ? "x" : " ");
        x += 4;
    }
    canvas_textf(cv, y, x, NAME_CELLS - 1, role, "%-15s", "");
    canvas_name(cv, y, x, NAME_CELLS - 1, role, s && s->name ? s->name : t->name);
    x += NAME_CELLS;
    if (w >= 60) {
        canvas_text(cv, y, x, TOOL_CELLS - 1, ROLE_DIM, s && s->tool ? s->tool : "-");
        x += TOOL_CELLS;
    }
    if (w >= 50) {
        canvas_text(cv, y, x, DOING_CELLS - 1, ROLE_DIM, s ? doing_of(s) : "gone");
        x += DOING_CELLS;
    }
    const char *say = c->sent ? outcome(ui, c, t) : !s ? "cannot: it is gone" : outlook(ui, c, s);
    canvas_text(cv, y, x, end - x, bad ? ROLE_STATUS_BAD : t->on ? ROLE_DIALOG : ROLE_DIM, say);
}

/* Rows of the list; after the sending only those it went to. */
static size_t shown_rows(const struct cast *c, size_t *rows)
{
    size_t n = 0;
    for (size_t i = 0; i < c->to.n; i++)
        if (!c->sent || c->to.v[i].asked)
            rows[n++] = i;
    return n;
}

static void draw_list(struct ui *ui, struct cast *c, struct canvas *cv, struct rect r)
{
    size_t *rows = xcalloc(c->to.n + 1, sizeof(*rows)), n = shown_rows(c, rows);
    if (c->cursor >= n)
        c->cursor = n ? n - 1 : 0;
    c->top = box_first_row(c->top, c->cursor, r.h > 0 ? (size_t)r.h : 0);
    c->rows = r.h;
    for (int i = 0; i < r.h && c->top + (size_t)i < n; i++) {
        size_t k = c->top + (size_t)i;
        bool here = k == c->cursor && (c->at == CAST_TO || c->sent);
        draw_row(ui, c, &c->to.v[rows[k]], here, cv, r.y + i, r.x, r.w);
    }
    free(rows);
}

static void label(struct cast *c, enum cast_field f, struct canvas *cv, int y, int x,
                  const char *text)
{
    canvas_text(cv, y, x, LABEL_CELLS - 1, c->at == f && !c->sent ? ROLE_PROMPT : ROLE_DIALOG,
                text);
}

/* For the row at hand if it is chosen, else for the first that is. */
static const struct cast_to *preview_of(const struct cast *c)
{
    if (c->cursor < c->to.n && c->to.v[c->cursor].on)
        return &c->to.v[c->cursor];
    for (size_t i = 0; i < c->to.n; i++)
        if (c->to.v[i].on)
            return &c->to.v[i];
    return NULL;
}

static void draw_preview(const struct ui *ui, struct cast *c, struct canvas *cv, struct rect r)
{
    const struct cast_to *t = preview_of(c);
    const struct sandbox *s = t ? model_sandbox(ui->model, t->sandbox) : NULL;
    struct err e = {0};
    char *text = s ? message_fill(inputline_text(&c->text), s, &e) : NULL;
    if (!s) {
        canvas_text(cv, r.y, r.x, r.w, ROLE_HINT, "Preview");
        free(text);
        return;
    }
    canvas_textf(cv, r.y, r.x, r.w, ROLE_HINT, "Preview for %s", t->name);
    struct rect in = {r.y + 1, r.x + LABEL_CELLS, r.h - 1, r.w - LABEL_CELLS};
    if (text) {
        char *clean = clean_text_dup(text, strlen(text));
        box_text(cv, in, ROLE_DIALOG, clean);
        free(clean);
    } else {
        box_text(cv, in, ROLE_STATUS_BAD, e.text);
    }
    free(text);
}

static void draw_form(struct ui *ui, struct cast *c, struct canvas *cv, struct rect in, int list)
{
    int y = in.y, x = in.x + LABEL_CELLS, w = in.w - LABEL_CELLS;
    int text = in.h >= list + TEXT_ROWS + 4 ? TEXT_ROWS : in.h > list + 3 ? in.h - list - 3 : 1;
    if (text > TEXT_ROWS)
        text = TEXT_ROWS;
    label(c, CAST_TO, cv, y, in.x, "To");
    draw_list(ui, c, cv, (struct rect){y, x, list, w});
    y += list;
    label(c, CAST_TEXT, cv, y, in.x, "Text");
    inputline_draw(&c->text, cv, (struct rect){y, x, text, w}, ROLE_FIELD, c->at == CAST_TEXT);
    y += text;
    int bottom = in.y + in.h - 1;
    if (y + 3 < bottom)
        canvas_text(cv, y++, x, w, ROLE_HINT, "{name} {branch} {project} are each one's own");
    label(c, CAST_WHEN, cv, y, in.x, "When");
    canvas_textf(cv, y++, x, w, c->at == CAST_WHEN ? ROLE_FIELD_FOCUS : ROLE_DIALOG,
                 "(%s) queue  (%s) interrupt now", c->now ? " " : "o", c->now ? "o" : " ");
    if (bottom - y >= 2)
        draw_preview(ui, c, cv, (struct rect){y, in.x, bottom - y, in.w});
    if (*c->error)
        canvas_text(cv, bottom, in.x, in.w, ROLE_STATUS_BAD, c->error);
    else
        canvas_textf(cv, bottom, in.x, in.w, c->at == CAST_SEND ? ROLE_FIELD_FOCUS : ROLE_TITLE,
                     "[ Send to %zu ]", cast_chosen(c));
}

static void draw_receipts(struct ui *ui, struct cast *c, struct canvas *cv, struct rect in)
{
    size_t bad = 0, there = 0, n = 0;
    for (size_t i = 0; i < c->to.n; i++) {
        const struct cast_to *t = &c->to.v[i];
        const struct message *m = t->message ? model_message(ui->model, t->message) : NULL;
        n += t->asked;
        bad += cast_failed(ui, t);
        there += t->asked && m && m->state == MSG_DELIVERED;
    }
    draw_list(ui, c, cv, (struct rect){in.y, in.x, in.h - 2 > 0 ? in.h - 2 : 1, in.w});
    canvas_hints(cv, in.y + in.h - 1, in.x, in.w, bad ? ROLE_STATUS_WARN : ROLE_HINT,
                 ui_keys(ui, bad ? "%zu of %zu delivered\t{retry} try again\t{close} close, the rest goes on"
                                 : "%zu of %zu delivered\t{close} close, the rest goes on", there, n));
}

void cast_draw(struct ui *ui, void *state, struct canvas *cv, struct rect screen, int64_t now)
{
    struct cast *c = state;
    int w = screen.w < CAST_CELLS ? screen.w : CAST_CELLS, n = (int)c->to.n;
    int fixed = AROUND_ROWS + TEXT_ROWS;
    int list = n < TO_ROWS ? n : TO_ROWS;
    char title[64];
    (void)now;
    if (screen.h - fixed > list)
        list = n < screen.h - fixed ? n : screen.h - fixed;
    while (list > 1 && list + 5 > screen.h - 2) /* a low screen: the list gives way */
        list--;
    size_t chosen = cast_chosen(c);
    if (c->sent) { /* only those it went to */
        list = (int)chosen < screen.h - 4 ? (int)chosen : screen.h - 4;
        fixed = 4;
    }
    if (c->sent)
        snprintf(title, sizeof(title), "message to %zu sandbox%s", chosen,
                 chosen == 1 ? "" : "es");
    else
        snprintf(title, sizeof(title), "broadcast to %zu sandbox%s", chosen,
                 chosen == 1 ? "" : "es");
    struct rect in = box_draw(cv, screen, list + fixed, w, title,
                              c->sent ? NULL : ui_keys(ui, "{submit} send\t{form-cancel} cancel"));
    struct rect old = canvas_clip(cv, in);
    if (c->sent)
        draw_receipts(ui, c, cv, in);
    else
        draw_form(ui, c, cv, in, list > 0 ? list : 1);
    canvas_unclip(cv, old);
}
