/* An agent's question and its answer. Only a key that comes by itself, after the question
 * was on the screen, answers; Esc leaves the question open. What the agent wrote stands
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

static void hints(const struct answer *a, char *dst, size_t size)
{
    int n = n_choices(a);
    if (*a->error)
        snprintf(dst, size, "%s", a->error);
    else if (a->gone)
        snprintf(dst, size, "it is closed: answered elsewhere, or taken back\tEsc  close");
    else if (a->q.answer)
        snprintf(dst, size, "answered: %.80s\tEsc  close", a->q.answer);
    else if (a->in_words)
        snprintf(dst, size, "Enter  answer with this\t^J  new line\tEsc  %s",
                 n ? "back to the choices" : "leave it open");
    else
        snprintf(dst, size, "%s%d  answer%s\t%sEsc  leave it open", n > 1 ? "1.." : "",
                 n > 9 ? 9 : n, n > 9 ? ", Enter the one pointed at" : "",
                 a->q.words ? "w  in your own words\t" : "");
}

static void draw_foot(struct answer *a, struct canvas *c, struct rect in)
{
    char text[256];
    int y = in.y + in.h - 1;
    bool bad = *a->error || a->gone;
    hints(a, text, sizeof(text));
    canvas_fill(c, (struct rect){y, in.x, 1, in.w}, ROLE_DIALOG, " ");
    canvas_hints(c, y, in.x, in.w, bad ? ROLE_STATUS_BAD : ROLE_HINT, text);
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
        snprintf(more, sizeof(more), "PgDn  %d more lines", a->hidden);
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
    draw_foot(a, c, in);
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
    if (k == K_ESC || k == ('C' & 0x1F)) {
        a->in_words = false;
        return n_choices(a) ? UI_HANDLED : UI_CLOSE;
    }
    if (k == K_ENTER) {
        if (text[strspn(text, " \t\n")])
            return give(ui, a, -1, text);
        str_copy(a->error, sizeof(a->error), "write an answer first");
        return UI_HANDLED;
    }
    if (k == K_PASTE)
        inputline_insert(&a->words, paste, len);
    else if (k == '\n')
        inputline_insert(&a->words, "\n", 1);
    else
        inputline_key(&a->words, k);
    return UI_HANDLED;
}

static int answer_key(struct ui *ui, void *state, key_code k, const char *paste, size_t len)
{
    struct answer *a = state;
    int n = n_choices(a);
    bool over = a->gone || a->q.answer;
    a->error[0] = 0;
    if (!a->drawn || ui->unseen || ui->hidden) /* typed before it could be read */
        return k == K_ESC ? UI_CLOSE : UI_HANDLED;
    if (k == K_PGDN || k == K_PGUP) {
        a->top += k == K_PGUP ? -8 : a->hidden < 8 ? a->hidden : 8;
        a->top = a->top < 0 ? 0 : a->top;
        return UI_HANDLED;
    }
    if (a->in_words && !over)
        return words_key(ui, a, k, paste, len);
    if (k == K_ESC || k == 'q' || k == ('C' & 0x1F))
        return UI_CLOSE;
    if (over || k == K_PASTE)
        return UI_HANDLED; /* a paste never answers */
    if (k >= '1' && k <= '9' && (int)(k - '0') <= n)
        return give(ui, a, (int)(k - '1'), NULL);
    if (k == K_ENTER && a->cursor >= 0)
        return give(ui, a, a->cursor, NULL);
    if (k == K_DOWN || k == 'j')
        a->cursor = a->cursor + 1 < n ? a->cursor + 1 : n - 1;
    else if (k == K_UP || k == 'k')
        a->cursor = a->cursor > 0 ? a->cursor - 1 : n ? 0 : -1;
    else if (k == 'w' && a->q.words)
        a->in_words = true;
    return UI_HANDLED;
}

static const struct overlay_ops answer_ops = {.name = "answer",
                                              .scope = SCOPE_DIALOG,
                                              .close = answer_close,
                                              .update = answer_update,
                                              .draw = answer_draw,
                                              .key = answer_key,
                                              .takes_paste = true};

void overlay_answer(struct ui *ui, uint64_t sandbox)
{
    const struct sandbox *s = model_sandbox(ui->model, sandbox);
    const struct question *q = model_ask(ui->model, sandbox);
    struct answer *a;
    if (!q && s && s->agent == AG_ASKS) {
        ui_status(ui, 0, "the question of %s is being looked up, press the key again", s->name);
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
