/* An agent's question and its answer. Only a key that comes by itself, after the question
 * was on the screen, answers; leaving it leaves the question open. What the agent wrote stands
 * inside our frame, below our own words of who asks. */
#include <cct/ui/box.h>
#include <cct/ui/ui.h>

#include <cct/text/width.h>
#include <cct/util/buf.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_CELLS = 76, WORDS_ROWS = 3, WORDS_BYTES = 16384 };

struct answer {
    uint64_t sandbox;
    struct question q; /* as it was when the dialog was opened: the answer is to this one */
    bool drawn;        /* it was on the screen */
    bool gone;         /* it is not open any more */
    bool in_words;
    int cursor;        /* choice pointed at, -1 = none */
    int top;           /* first row of the detail that is shown */
    int hidden;        /* rows of it below what is shown */
    struct inputline words;
    char error[200];
};

static void answer_close(void *state)
{
    struct answer *a = state;
    question_release(&a->q);
    inputline_release(&a->words);
    free(a);
}

static const struct question *in_model(const struct ui *ui, const struct answer *a)
{
    for (size_t i = 0; i < ui->model->n_asks; i++)
        if (ui->model->asks[i].sandbox == a->sandbox && str_eq(ui->model->asks[i].id, a->q.id))
            return &ui->model->asks[i];
    return NULL;
}

static bool answer_update(struct ui *ui, void *state)
{
    struct answer *a = state;
    const struct question *q = in_model(ui, a);
    bool gone = a->gone;
    if (q && q->answer && !a->q.answer)
        a->q.answer = xstrdup(q->answer);
    a->gone = !q;
    return gone != a->gone || (q && q->answer);
}

static int n_choices(const struct answer *a)
{
    int n = 0;
    while (a->q.choices && a->q.choices[n])
        n++;
    return n;
}

/* --- drawing ---------------------------------------------------------------------- */

/* Rows [top, top + r.h) of the text; returns how many follow. */
static int draw_part(struct canvas *c, struct rect r, const char *text, int top)
{
    struct rect old = canvas_clip(c, r);
    int rows = box_text_rows(text, r.w);
    box_text(c, (struct rect){r.y - top, r.x, rows, r.w}, ROLE_DIALOG, text);
    canvas_unclip(c, old);
    return rows > top + r.h ? rows - top - r.h : 0;
}

static int choices_rows(const struct answer *a, int w)
{
    int rows = 0;
    for (int i = 0; i < n_choices(a); i++)
        rows += box_text_rows(a->q.choices[i], w > 4 ? w - 4 : 1);
    return rows;
}

static int draw_choices(const struct answer *a, struct canvas *c, struct rect r)
{
    int y = r.y;
    for (int i = 0; i < n_choices(a) && y < r.y + r.h; i++) {
        int rows = box_text_rows(a->q.choices[i], r.w > 4 ? r.w - 4 : 1);
        enum theme_role role = i == a->cursor && !a->in_words ? ROLE_CURSOR : ROLE_DIALOG;
        canvas_textf(c, y, r.x, 4, ROLE_PROMPT, "%d", i + 1);
        box_text(c, (struct rect){y, r.x + 4, r.y + r.h - y, r.w - 4}, role, a->q.choices[i]);
        y += rows;
    }
    return y - r.y;
}

/* "1..4": the keys of the first choice and of the last that has one. */
static void choice_keys(const struct ui *ui, int n, char *dst, size_t size)
{
    const char *keys = keymap_keys(ui->keys, ACT_ANSWER_CHOICE);
    int first = (int)strcspn(keys, " ");
    for (int i = 1; i < n && strchr(keys, ' '); i++)
        keys = strchr(keys, ' ') + 1;
    snprintf(dst, size, "%.*s%s%.*s", n > 1 ? first : 0, keymap_keys(ui->keys, ACT_ANSWER_CHOICE),
             n > 1 ? ".." : "", (int)strcspn(keys, " "), keys);
}

static const char *hints(struct ui *ui, const struct answer *a)
{
    int n = n_choices(a);
    char keys[40];
    if (*a->error)
        return a->error;
    if (a->gone)
        return ui_keys(ui, "it is closed: answered elsewhere, or taken back\t{close}  close");
    if (a->q.answer)
        return ui_keys(ui, "answered: %.80s\t{close}  close", a->q.answer);
    if (a->in_words)
        return ui_keys(ui, "{take-line}  answer with this\t{newline}  new line\t{leave-line}  %s",
                       n ? "back to the choices" : "leave it open");
    choice_keys(ui, n, keys, sizeof(keys));
    return ui_keys(ui, a->q.words ? "%s  answer%s\t{answer-words}  in your own words\t{close}  leave it open"
                                  : "%s  answer%s\t{close}  leave it open",
                   keys, n > 9 ? ui_keys(ui, ", {choose} the one pointed at") : "");
}

static void draw_foot(struct ui *ui, struct answer *a, struct canvas *c, struct rect in)
{
    int y = in.y + in.h - 1;
    bool bad = *a->error || a->gone;
    canvas_fill(c, (struct rect){y, in.x, 1, in.w}, ROLE_DIALOG, " ");
    canvas_hints(c, y, in.x, in.w, bad ? ROLE_STATUS_BAD : ROLE_HINT, hints(ui, a));
    if (a->in_words)
        inputline_draw(&a->words, c, (struct rect){y - WORDS_ROWS - 1, in.x, WORDS_ROWS, in.w},
                       ROLE_FIELD, true);
}

static void answer_draw(struct ui *ui, void *state, struct canvas *c, struct rect screen,
                        int64_t now)
{
    struct answer *a = state;
    const struct sandbox *s = model_sandbox(ui->model, a->sandbox);
    char title[120], more[40] = "";
    (void)now;
    int w = screen.w < ANSWER_CELLS ? screen.w : ANSWER_CELLS;
    int asked = box_text_rows(a->q.question, w - 4), chosen = choices_rows(a, w - 4);
    int detail = a->q.detail ? box_text_rows(a->q.detail, w - 4) + 1 : 0;
    int field = a->in_words ? WORDS_ROWS + 1 : 0;
    int fixed = asked + 1 + chosen + (chosen ? 1 : 0) + field + 1 + 2;
    if (detail > screen.h - fixed)
        detail = screen.h - fixed > 1 ? screen.h - fixed : 0;
    snprintf(title, sizeof(title), "? %s in %s asks you", s && s->tool ? s->tool : "the agent",
             s ? s->name : "a sandbox that is gone");
    if (detail && a->hidden)
        str_copy(more, sizeof(more), ui_keys(ui, "%s  %d more lines",
                                             ui_keys(ui, a->in_words ? "{line-page-down}"
                                                                     : "{box-page-down}"),
                                             a->hidden));
    struct rect in = box_draw(c, screen, fixed + detail, w, title, *more ? more : NULL);
    int y = in.y;
    y += box_text(c, (struct rect){y, in.x, in.h - 1, in.w}, ROLE_ASKS, a->q.question) + 1;
    int hidden = a->hidden;
    a->hidden = 0;
    if (detail > 1) {
        a->hidden =
            draw_part(c, (struct rect){y, in.x, detail - 1, in.w}, a->q.detail, a->top);
        y += detail;
    }
    draw_choices(a, c, (struct rect){y, in.x, in.y + in.h - 1 - y, in.w});
    draw_foot(ui, a, c, in);
    ui->asks_anew |= !a->drawn || (a->hidden > 0) != (hidden > 0);
    a->drawn = true;
}

/* --- keys ------------------------------------------------------------------------- */

static int give(struct ui *ui, struct answer *a, int choice, const char *text)
{
    const struct sandbox *s = model_sandbox(ui->model, a->sandbox);
    if (!a->drawn || !ui_key_meant(ui))
        return UI_HANDLED;
    app_answer(ui->app, a->sandbox, a->q.id, choice, text);
    ui_status(ui, 0, "answering %s: %.60s", s ? s->name : "it",
              choice >= 0 ? a->q.choices[choice] : text);
    return UI_CLOSE;
}

static int words_key(struct ui *ui, struct answer *a, key_code k, const char *paste, size_t len)
{
    const char *text = inputline_text(&a->words);
    if (ui->found == ACT_LEAVE_LINE) {
        a->in_words = false;
        return n_choices(a) ? UI_HANDLED : UI_CLOSE;
    }
    if (ui->found == ACT_TAKE_LINE) {
        if (text[strspn(text, " \t\n")])
            return give(ui, a, -1, text);
        str_copy(a->error, sizeof(a->error), "write an answer first");
        return UI_HANDLED;
    }
    ui_line_key(ui, &a->words, k, paste, len);
    return UI_HANDLED;
}

static void scroll(struct answer *a, bool up)
{
    a->top += up ? -8 : a->hidden < 8 ? a->hidden : 8;
    a->top = a->top < 0 ? 0 : a->top;
}

static int choose(struct ui *ui, struct answer *a)
{
    int n = keymap_which(ui->keys, ACT_ANSWER_CHOICE, ui->last_key);
    return n >= 0 && n < n_choices(a) ? give(ui, a, n, NULL) : UI_HANDLED;
}

static void point(struct answer *a, int step)
{
    int n = n_choices(a), to = a->cursor + step;
    a->cursor = to >= n ? n - 1 : to < 0 ? (n ? 0 : -1) : to;
}

static int answer_action(struct ui *ui, void *state, enum action what)
{
    struct answer *a = state;
    bool over = a->gone || a->q.answer;
    bool leaves = what == ACT_CLOSE || what == ACT_LEAVE_LINE;
    a->error[0] = 0;
    if (!a->drawn || ui->unseen || ui->hidden) /* typed before it could be read */
        return leaves ? UI_CLOSE : UI_HANDLED;
    switch (what) {
    case ACT_BOX_PGDN:
    case ACT_BOX_PGUP:
    case ACT_LINE_PGDN:
    case ACT_LINE_PGUP:
        scroll(a, what == ACT_BOX_PGUP || what == ACT_LINE_PGUP);
        return UI_HANDLED;
    case ACT_CLOSE:
        return UI_CLOSE;
    case ACT_ANSWER_CHOICE:
        return over ? UI_HANDLED : choose(ui, a);
    case ACT_CHOOSE:
        return over || a->cursor < 0 ? UI_HANDLED : give(ui, a, a->cursor, NULL);
    case ACT_BOX_DOWN:
    case ACT_BOX_UP:
        point(a, what == ACT_BOX_DOWN ? 1 : -1);
        return UI_HANDLED;
    case ACT_ANSWER_WORDS:
        a->in_words = a->q.words && !over;
        return UI_HANDLED;
    default:
        return UI_IGNORED;
    }
}

static int answer_key(struct ui *ui, void *state, key_code k, const char *paste, size_t len)
{
    struct answer *a = state;
    bool seen = a->drawn && !ui->unseen && !ui->hidden;
    return a->in_words && seen ? words_key(ui, a, k, paste, len) : UI_HANDLED;
}

static enum key_scope answer_scope(void *state)
{
    const struct answer *a = state;
    return a->in_words && !a->gone && !a->q.answer ? SCOPE_ASK : SCOPE_ANSWER;
}

static const struct overlay_ops answer_ops = {.name = "answer",
                                              .scope = SCOPE_ANSWER,
                                              .scope_now = answer_scope,
                                              .close = answer_close,
                                              .update = answer_update,
                                              .draw = answer_draw,
                                              .action = answer_action,
                                              .key = answer_key,
                                              .takes_paste = true};

void overlay_answer(struct ui *ui, uint64_t sandbox)
{
    const struct sandbox *s = model_sandbox(ui->model, sandbox);
    const struct question *q = model_ask(ui->model, sandbox);
    struct answer *a;
    if (q && q->answer && s && s->agent == AG_ASKS) { /* it did not hear of it, or asks anew */
        ui_status(ui, 0, "%s was answered: %.80s", s->name, q->answer);
        ui->awaits_ask = sandbox;
        return;
    }
    if (!q && s && s->agent == AG_ASKS) {
        ui_status(ui, 0, "the question of %s is being looked up", s->name);
        ui->awaits_ask = sandbox;
        return;
    }
    if (!q) {
        ui_status(ui, 0, "%s asks you nothing; ] goes to who does", s ? s->name : "it");
        return;
    }
    a = xcalloc(1, sizeof(*a));
    a->sandbox = sandbox;
    question_copy(&a->q, q);
    a->cursor = -1;
    a->in_words = !q->choices;
    inputline_init(&a->words, true, WORDS_BYTES);
    ui_overlay_push(ui, &answer_ops, a);
}
