/* Two agents that take turns: the form for a new pair, and the user's word to one at work. */
#include <cct/ui/box.h>
#include <cct/ui/ui.h>

#include <cct/model/pair.h>
#include <cct/util/buf.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the form -------------------------------------------------------------------- */

enum field { F_NAME, F_DESIGNER, F_DESIGNER_MODEL, F_DESIGNER_PROMPT, F_CHECKER, F_CHECKER_MODEL,
             F_CHECKER_PROMPT, F_ROUNDS, F_TEMPLATE, F_TIMEOUT, F_TASK, F_START, F_COUNT };
enum { FORM_CELLS = 74, LABEL_CELLS = 10, TASK_ROWS = 3, ROUNDS_CELLS = 4, TIMEOUT_CELLS = 10 };

static const struct {
    const char *label, *name; /* name: as app_check_create says it */
} fields[F_COUNT] = {
    {"Name", "name"},     {"Designer", "designer"}, {" model", ""},
    {" told", ""},        {"Checker", "checker"},   {" model", ""},
    {" told", ""},        {"Rounds", "rounds"},     {"Template", "template"},
    {"Timeout", "timeout"}, {"Task", "prompt"},     {"", ""},
};

struct form {
    enum field at, bad; /* bad: what the error is about, F_COUNT = nothing */
    struct inputline lines[F_COUNT]; /* text fields only */
    size_t tool[PAIR_ROLES];
    uint64_t sandbox; /* of a pair that gets a new task; 0: a new one */
    char error[200];
};

static bool is_choice(enum field f)
{
    return f == F_DESIGNER || f == F_CHECKER;
}

static bool is_text(enum field f)
{
    return !is_choice(f) && f != F_START;
}

static const char *text_of(struct form *f, enum field id)
{
    const char *s = inputline_text(&f->lines[id]);

    return *s ? s : NULL;
}

static size_t *choice_of(struct form *f, enum field id)
{
    return &f->tool[id == F_CHECKER ? PAIR_CHECKER : PAIR_DESIGNER];
}

static int to_spec(struct ui *ui, struct form *f, struct app_create *q, struct app_pair *p,
                   const char **field, struct err *e)
{
    static const enum field model[] = {F_DESIGNER_MODEL, F_CHECKER_MODEL},
                            told[] = {F_DESIGNER_PROMPT, F_CHECKER_PROMPT};
    const char *rounds = text_of(f, F_ROUNDS), *timeout = text_of(f, F_TIMEOUT);
    int64_t n = PAIR_ROUNDS, s = ui->opts.timeout_s ? ui->opts.timeout_s : 900;

    *field = "rounds";
    if (rounds && !str_to_i64(rounds, 1, PAIR_MAX_ROUNDS, &n))
        return err_set(e, ERR_INVALID, "rounds: a number from 1 to %d", PAIR_MAX_ROUNDS);
    *field = "timeout";
    if (timeout && (!str_to_seconds(timeout, &s) || s < 1 || s > LIM_TIMEOUT_MAX_S))
        return err_set(e, ERR_INVALID, "timeout: write 900, 15m or 1h30m, at most 24h");
    for (int i = 0; i < PAIR_ROLES; i++) {
        p->side[i].tool = app_tools(ui->app)[f->tool[i]].name;
        p->side[i].model = text_of(f, model[i]);
        p->side[i].prompt = text_of(f, told[i]);
    }
    p->rounds = (int)n;
    q->pair = p;
    q->name = text_of(f, F_NAME);
    q->template_id = text_of(f, F_TEMPLATE);
    q->prompt = text_of(f, F_TASK);
    q->timeout_s = (int)s;
    q->pause_at_end = ui->opts.pause_at_end;
    return app_check_create(ui->app, q, field, e);
}

static bool start(struct ui *ui, struct form *f)
{
    struct app_create q = {0};
    struct app_pair p = {0};
    const char *field = NULL;
    struct err e = {0};

    f->error[0] = 0;
    f->bad = F_COUNT;
    if (to_spec(ui, f, &q, &p, &field, &e) == 0) {
        if (f->sandbox)
            app_pair_in(ui->app, f->sandbox, &q);
        else
            app_create(ui->app, &q, true);
        return true;
    }
    str_copy(f->error, sizeof(f->error), e.text);
    for (int i = 0; i < F_START; i++)
        if (field && *field && str_eq(field, fields[i].name))
            f->at = f->bad = (enum field)i;
    return false;
}

/* A sandbox that is there has these already. */
static bool is_hidden(const struct form *f, enum field id)
{
    return f->sandbox && (id == F_NAME || id == F_TEMPLATE || id == F_TIMEOUT);
}

static int rows_of(const struct form *f, enum field id)
{
    return is_hidden(f, id) ? 0 : id == F_TASK ? TASK_ROWS : 1;
}

static void go(struct form *f, int step)
{
    do
        f->at = (enum field)(((int)f->at + step + F_COUNT) % F_COUNT);
    while (is_hidden(f, f->at));
}

static const char *hint_of(struct ui *ui, enum field f)
{
    switch (f) {
    case F_NAME:
        return "(empty: a name is made)";
    case F_DESIGNER_MODEL:
    case F_CHECKER_MODEL:
        return "(empty: the agent's own)";
    case F_DESIGNER_PROMPT:
    case F_CHECKER_PROMPT:
        return "(empty: cc-tui's instructions for this role)";
    case F_ROUNDS:
        return "5";
    case F_TEMPLATE:
        return "(empty: the designer's; both agents are in it)";
    case F_TIMEOUT:
        return "15m";
    default:
        return ui_keys(ui, "what the designer is to do ({newline}: new line)");
    }
}

static void draw_tools(struct ui *ui, size_t chosen, bool here, struct canvas *c, int y, int x,
                       int w)
{
    const struct app_tool *t = app_tools(ui->app);
    int end = x + w, used = 0;
    size_t from = chosen;

    /* as many in front of the chosen one as leave it in sight */
    for (used = (int)strlen(t[chosen].name) + 5;
         from > 0 && used + (int)strlen(t[from - 1].name) + 3 <= w; from--)
        used += (int)strlen(t[from - 1].name) + 3;
    for (size_t i = from; t[i].name; i++) {
        char text[48];
        bool on = i == chosen;

        snprintf(text, sizeof(text), on ? "< %s >" : " %s ", t[i].name);
        x += canvas_text(c, y, x, end - x,
                         !on    ? ROLE_DIM
                         : here ? ROLE_FIELD_FOCUS
                                : ROLE_TITLE,
                         text) +
             1;
    }
}

static void draw_field(struct ui *ui, struct form *f, enum field id, struct canvas *c, int y,
                       struct rect in)
{
    bool here = f->at == id;
    int x = in.x + LABEL_CELLS + 2, w = in.w - LABEL_CELLS - 2;

    canvas_text(c, y, in.x, LABEL_CELLS + 1,
                f->bad == id ? ROLE_STATUS_BAD
                : here       ? ROLE_PROMPT
                             : ROLE_DIALOG,
                fields[id].label);
    if (is_choice(id)) {
        draw_tools(ui, *choice_of(f, id), here, c, y, x, w);
    } else if (id == F_START) {
        canvas_text(c, y, x, w, here ? ROLE_FIELD_FOCUS : ROLE_TITLE, "[ Start ]");
    } else {
        if (id == F_ROUNDS || id == F_TIMEOUT)
            w = id == F_ROUNDS ? ROUNDS_CELLS : TIMEOUT_CELLS;
        inputline_draw(&f->lines[id], c, (struct rect){y, x, rows_of(f, id), w},
                       f->bad == id ? ROLE_FIELD_BAD : ROLE_FIELD, here);
        if (!f->lines[id].text.len)
            canvas_text(c, y, x, w, ROLE_HINT, hint_of(ui, id));
    }
}

static void form_draw(struct ui *ui, void *state, struct canvas *c, struct rect screen,
                      int64_t now)
{
    struct form *f = state;
    int w = screen.w < FORM_CELLS ? screen.w : FORM_CELLS, rows = 2, skip = 0, y;
    struct rect in, old;
    (void)now;

    for (int i = 0; i < F_COUNT; i++)
        rows += rows_of(f, (enum field)i);
    in = box_draw(c, screen, rows + 2, w,
                  f->sandbox ? "a new task for this pair" : "designer and checker",
                  ui_keys(ui, "{submit} start\t{form-cancel} cancel"));
    old = canvas_clip(c, in);
    /* on a low screen the field at hand is kept in view */
    for (int i = 0, sum = 0; i <= (int)f->at; i++) {
        sum += rows_of(f, (enum field)i);
        if (sum > in.h - 2)
            skip = sum - (in.h - 2);
    }
    y = in.y - skip;
    for (int i = 0; i < F_COUNT; i++) {
        int n = rows_of(f, (enum field)i);

        if (n && y >= in.y && y + n <= in.y + in.h - 2)
            draw_field(ui, f, (enum field)i, c, y, in);
        y += n;
    }
    y = in.y + in.h - 2;
    if (*f->error)
        box_text(c, (struct rect){y, in.x, 2, in.w}, ROLE_STATUS_BAD, f->error);
    else
        box_text(c, (struct rect){y, in.x, 2, in.w}, ROLE_HINT,
                 "in one sandbox: work, check, work again, until the check passes");
    canvas_unclip(c, old);
}

static void choose(struct ui *ui, struct form *f, int step)
{
    size_t n = 0, *at = choice_of(f, f->at);

    while (app_tools(ui->app)[n].name)
        n++;
    *at = (*at + n + (size_t)(step + (int)n)) % n;
    f->error[0] = 0;
    f->bad = F_COUNT;
}

static int submit(struct ui *ui, struct form *f)
{
    if (!start(ui, f))
        return UI_HANDLED;
    if (!f->sandbox)
        ui_await_new(ui);
    ui_status(ui, 0, "a pair starts");
    return UI_CLOSE;
}

static int form_action(struct ui *ui, void *state, enum action a)
{
    struct form *f = state;

    switch (a) {
    case ACT_FIELD_ENTER:
        if (f->at == F_START)
            return submit(ui, f);
        go(f, 1);
        return UI_HANDLED;
    case ACT_FIELD_NEXT:
        go(f, 1);
        return UI_HANDLED;
    case ACT_FIELD_PREV:
        go(f, -1);
        return UI_HANDLED;
    case ACT_SUBMIT:
        return submit(ui, f);
    case ACT_EDIT_FIELD:
        f->at = F_TASK;
        return ui_edit(ui, &f->lines[F_TASK], f);
    case ACT_FORM_CANCEL:
        return UI_CLOSE;
    case ACT_CHOICE_PREV:
    case ACT_CHOICE_NEXT:
        choose(ui, f, a == ACT_CHOICE_NEXT ? 1 : -1);
        return UI_HANDLED;
    default:
        return UI_IGNORED;
    }
}

static int form_key(struct ui *ui, void *state, key_code k, const char *paste, size_t len)
{
    struct form *f = state;

    if (is_text(f->at))
        ui_line_key(ui, &f->lines[f->at], k, paste, len);
    return UI_HANDLED;
}

static enum key_scope form_scope(void *state)
{
    const struct form *f = state;

    return is_choice(f->at) ? SCOPE_CHOICE : SCOPE_FORM;
}

static void form_close(void *state)
{
    struct form *f = state;

    for (int i = 0; i < F_COUNT; i++)
        inputline_release(&f->lines[i]);
    free(f);
}

static const struct overlay_ops form_ops = {.name = "new pair",
                                            .scope = SCOPE_FORM,
                                            .scope_now = form_scope,
                                            .close = form_close,
                                            .draw = form_draw,
                                            .action = form_action,
                                            .key = form_key,
                                            .takes_paste = true};

static void open_form(struct ui *ui, uint64_t sandbox)
{
    const struct app_tool *t = app_tools(ui->app);
    const struct sandbox *s = model_sandbox(ui->model, sandbox);
    struct form *f;

    if (!t[0].name) {
        ui_status(ui, 2, "no agent can be chosen: see 'cc-tui doctor'");
        return;
    }
    f = xcalloc(1, sizeof(*f));
    f->bad = F_COUNT;
    f->sandbox = sandbox;
    f->at = sandbox ? F_TASK : F_NAME;
    for (int i = 0; i < F_COUNT; i++) {
        bool long_one = i == F_TASK || i == F_DESIGNER_PROMPT || i == F_CHECKER_PROMPT;

        inputline_init(&f->lines[i], i == F_TASK,
                       long_one         ? LIM_MESSAGE_BYTES / 2
                       : i == F_ROUNDS  ? ROUNDS_CELLS - 1
                       : i == F_TIMEOUT ? TIMEOUT_CELLS - 1
                       : i == F_NAME    ? 64
                                        : LIM_NAME_BYTES);
    }
    for (size_t i = 0; t[i].name; i++)
        if (ui->opts.tool && *ui->opts.tool ? str_eq(t[i].name, ui->opts.tool)
                                            : ui->model->local && t[i].local_only)
            f->tool[0] = f->tool[1] = i;
    for (int k = 0; s && s->pair && k < PAIR_ROLES; k++)
        for (size_t i = 0; t[i].name; i++)
            if (str_eq(t[i].name, s->pair->side[k].tool))
                f->tool[k] = i;
    ui_overlay_push(ui, &form_ops, f);
}

/* --- one at work ------------------------------------------------------------------ */

struct word {
    uint64_t sandbox;
};

void pair_text(const struct pair *p, struct buf *b)
{
    char doing[32];

    pair_doing(p, doing, sizeof(doing));
    buf_addf(b, "%-9s %s%s%s\n", "pair", doing, p->reason ? ": " : "", p->reason ? p->reason : "");
    for (int i = 0; i < PAIR_ROLES; i++) {
        const struct pair_side *s = &p->side[i];

        buf_addf(b, "%-9s %s%s%s, %d %s, %lld tokens in, %lld out, ",
                 pair_role_name((enum pair_role)i), s->tool, s->model ? ":" : "",
                 s->model ? s->model : "", s->turns, s->turns == 1 ? "turn" : "turns",
                 (long long)s->tokens_in, (long long)s->tokens_out);
        if (isnan(s->cost_usd))
            buf_adds(b, "unpriced\n");
        else
            buf_addf(b, "$%.4f est.\n", s->cost_usd);
    }
}

static const char *keys_of(struct ui *ui, const struct pair *p)
{
    switch (p->state) {
    case PAIR_RUNNING:
        return p->role == PAIR_CHECKER
                   ? ui_keys(ui, "{pair-stop} stop   {pair-accept} accept the work   {pair-reject} reject it")
                   : ui_keys(ui, "{pair-stop} stop   {pair-accept} accept the work");
    case PAIR_PASSED:
        return ui_keys(ui, "{pair-reject} reject the work: one more round   {pair-task} a new task");
    case PAIR_CAPPED:
        return ui_keys(ui, "{pair-resume} as many rounds again   {pair-accept} accept the work   "
                           "{pair-reject} one more round   {pair-task} a new task");
    default:
        return ui_keys(ui, "{pair-resume} resume   {pair-accept} accept the work   "
                           "{pair-reject} reject it   {pair-task} a new task");
    }
}

static void word_draw(struct ui *ui, void *state, struct canvas *c, struct rect screen,
                      int64_t now)
{
    const struct word *d = state;
    const struct sandbox *s = model_sandbox(ui->model, d->sandbox);
    struct buf b = BUF_INIT;
    int w = screen.w < FORM_CELLS ? screen.w : FORM_CELLS, rows;
    struct rect in;
    (void)now;

    if (s && s->pair) {
        pair_text(s->pair, &b);
        buf_addf(&b, "\n%s\n\na message goes to one of them: @designer ... or @checker ...",
                 keys_of(ui, s->pair));
    } else {
        buf_adds(&b, "it is gone");
    }
    rows = box_text_rows(buf_str(&b), w - 4);
    in = box_draw(c, screen, rows + 4, w, s && s->name ? s->name : "pair",
                  ui_keys(ui, "{close} close"));
    box_text(c, (struct rect){in.y + 1, in.x, in.h - 1, in.w}, ROLE_DIALOG, buf_str(&b));
    buf_release(&b);
}

static int tell(struct ui *ui, const struct word *d, enum pair_event_kind kind)
{
    app_pair_do(ui->app, d->sandbox, (int)kind, 0, NULL);
    ui_status(ui, 0, "telling the pair");
    return UI_CLOSE;
}

static int word_action(struct ui *ui, void *state, enum action a)
{
    const struct word *d = state;
    const struct sandbox *s = model_sandbox(ui->model, d->sandbox);

    switch (a) {
    case ACT_CLOSE:
    case ACT_CHOOSE:
        return UI_CLOSE;
    case ACT_PAIR_STOP:
        return tell(ui, d, PAIR_STOP);
    case ACT_PAIR_RESUME:
        return tell(ui, d, PAIR_RESUME);
    case ACT_PAIR_ACCEPT:
        return tell(ui, d, PAIR_ACCEPT);
    case ACT_PAIR_REJECT:
        return tell(ui, d, PAIR_REJECT);
    case ACT_PAIR_TASK:
        if (!s || !s->pair || s->pair->state == PAIR_RUNNING)
            return UI_HANDLED;
        open_form(ui, d->sandbox);
        return UI_CLOSE;
    default:
        return UI_HANDLED;
    }
}

static void word_close(void *state)
{
    free(state);
}

static const struct overlay_ops word_ops = {
    .name = "pair", .scope = SCOPE_PAIR, .close = word_close, .draw = word_draw, .action = word_action};

void overlay_pair(struct ui *ui, uint64_t sandbox)
{
    const struct sandbox *s = model_sandbox(ui->model, sandbox);
    bool up = s && s->pair && (s->state == SB_RUNNING || (s->state == SB_ERROR && s->vm_up));
    struct word *d;

    if (!up) {
        open_form(ui, 0);
        return;
    }
    d = xcalloc(1, sizeof(*d));
    d->sandbox = sandbox;
    ui_overlay_push(ui, &word_ops, d);
}
