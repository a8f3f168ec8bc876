/* The command palette: every action of the key table, commands, sandboxes and projects by
 * name, found by some of their letters. */
#include <cct/ui/box.h>
#include <cct/ui/commands.h>

#include <cct/util/arr.h>
#include <cct/util/fuzzy.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 100, ROWS = 14, TEXT_CELLS = 24, KEY_CELLS = 9, GAP = 2, HELP_LEAST = 3, NAMES_MOST = 50 };
enum kind { IS_ACTION, IS_COMMAND, IS_SANDBOX };
struct entry {
    enum kind kind;
    int score;
    size_t nth;      /* order of equals */
    uint64_t what;   /* action, command or sandbox */
    const char *help; /* of a command's line */
    char text[96];   /* what stands in the line for it */
};
struct palette {
    ARR(struct entry) v;
    size_t at, top, page;
    char *typed;     /* what v is for, at that state of the model */
    uint64_t rev;
    bool recalled;   /* the line comes from what was run before */
};

static void palette_close(void *state)
{
    struct palette *p = state;
    ARR_RELEASE(&p->v);
    free(p->typed);
    free(p);
}

/* --- what there is ------------------------------------------------------------------- */

static void offer(struct palette *p, const char *typed, enum kind kind, uint64_t what,
                  const char *text, const char *help)
{
    int score = fuzzy_score(typed, text);
    if (score < 0 && strlen(typed) >= HELP_LEAST && help && strcasestr(help, typed))
        score = 1;
    if (score < 0)
        return;
    struct entry *e = ARR_PUSH(&p->v);
    *e = (struct entry){.kind = kind, .score = score, .nth = p->v.n, .what = what, .help = help};
    str_copy(e->text, sizeof(e->text), text);
}

static bool can_be_run(enum action a)
{
    enum key_scope s = action_scope(a);
    return (scope_counts(s, SCOPE_NAV) || s == SCOPE_INPUT) && a != ACT_COMMAND &&
           a != ACT_INPUT_COMMAND && a != ACT_TILE;
}

/* Those of where the keys go first. */
static void offer_actions(struct ui *ui, struct palette *p, const char *typed, bool here)
{
    enum key_scope scope = ui_scope(ui, ui->focus);
    for (int a = ACT_NONE + 1; a < ACT_COUNT; a++)
        if (can_be_run((enum action)a) && (action_scope((enum action)a) == scope) == here &&
            (ui->opts.replay || action_scope((enum action)a) != SCOPE_REPLAY))
            offer(p, typed, IS_ACTION, (uint64_t)a, action_name((enum action)a),
                  action_help((enum action)a));
}

static void offer_commands(struct ui *ui, struct palette *p, const char *typed)
{
    char text[96];
    for (int c = 0; c < COMMAND_COUNT; c++)
        for (size_t i = 0; command_choice(ui, (enum command)c, i, text, sizeof(text)); i++)
            offer(p, typed, IS_COMMAND, (uint64_t)c, text,
                  command_choice_help(ui, (enum command)c, i));
}

static void offer_sandboxes(struct ui *ui, struct palette *p, const char *typed)
{
    const struct model *m = ui->model;
    size_t most = p->v.n + (*typed ? m->n_sandboxes : NAMES_MOST);
    for (size_t i = 0; i < m->n_sandboxes && p->v.n < most; i++)
        if (model_in_view(m, &m->sandboxes[i]))
            offer(p, typed, IS_SANDBOX, m->sandboxes[i].id, m->sandboxes[i].name, NULL);
}

/* Those whose agents can be told something: "@fix-login " goes on. */
static void offer_listeners(struct ui *ui, struct palette *p, const char *typed)
{
    const struct model *m = ui->model;
    char text[96];
    for (size_t i = 0; i < m->n_sandboxes; i++) {
        if (!command_listens(m, &m->sandboxes[i]))
            continue;
        snprintf(text, sizeof(text), "@%s ", m->sandboxes[i].name);
        offer(p, typed, IS_COMMAND, COMMAND_SAY, text, command_help(COMMAND_SAY));
    }
}

static int better(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->nth < y->nth ? -1 : x->nth > y->nth;
}

static void fill(struct ui *ui, struct palette *p)
{
    const char *typed = inputline_text(&ui->command);
    typed += strspn(typed, " ");
    if (p->typed && str_eq(p->typed, typed) && p->rev == ui->model->rev)
        return;
    free(p->typed);
    p->typed = xstrdup(typed);
    p->rev = ui->model->rev;
    ARR_CLEAR(&p->v);
    if (*typed == '@') {
        offer_listeners(ui, p, typed);
    } else if (*typed == '!') {
        offer(p, typed, IS_COMMAND, COMMAND_SHELL, typed, command_help(COMMAND_SHELL));
    } else {
        offer_actions(ui, p, typed, true);
        offer_actions(ui, p, typed, false);
        offer_commands(ui, p, typed);
        offer_sandboxes(ui, p, typed);
    }
    if (*typed && p->v.n)
        qsort(p->v.v, p->v.n, sizeof(*p->v.v), better);
    if (p->at >= p->v.n)
        p->at = p->v.n ? p->v.n - 1 : 0;
}

static bool palette_update(struct ui *ui, void *state)
{
    fill(ui, state);
    return true;
}

/* --- drawing ------------------------------------------------------------------------- */

static void draw_entry(struct ui *ui, const struct entry *e, struct canvas *c, struct rect r,
                       bool here)
{
    enum theme_role role = here ? ROLE_CURSOR : ROLE_DIALOG;
    const struct sandbox *s = e->kind == IS_SANDBOX ? model_sandbox(ui->model, e->what) : NULL;
    enum command cmd = (enum command)e->what;
    enum action act = (enum action)e->what;
    int text = r.w >= 60 ? TEXT_CELLS : r.w / 2, x = r.x + 1 + text;
    canvas_fill(c, r, role, " ");
    if (e->kind == IS_ACTION) {
        canvas_text(c, r.y, r.x + 1, text - 1, role, e->text);
        canvas_text(c, r.y, x, KEY_CELLS - 1, here ? role : ROLE_PROMPT, keymap_keys(ui->keys, act));
        canvas_text(c, r.y, x + KEY_CELLS, -1, role, action_help(act));
    } else if (e->kind == IS_COMMAND) {
        bool bare = str_eq(e->text, command_name(cmd));
        int end = r.x + 1 + GAP + canvas_textf(c, r.y, r.x + 1, r.w - 2, role, "%s%s%s", e->text,
                                               bare ? " " : "", bare ? command_args(cmd) : "");
        x += KEY_CELLS; /* a long line goes on where no key stands, and beyond */
        canvas_text(c, r.y, end > x ? end : x, -1, role, e->help);
    } else if (s) {
        canvas_text(c, r.y, r.x + 1, text - 1, role, e->text);
        canvas_text(c, r.y, x, KEY_CELLS - 1, role, "sandbox");
        canvas_textf(c, r.y, x + KEY_CELLS, -1, role, "%s, %s, %s", s->tool ? s->tool : "-",
                     sb_state_name(s->state), s->project && *s->project ? s->project : "-");
    }
}

static void palette_draw(struct ui *ui, void *state, struct canvas *c, struct rect screen,
                         int64_t now)
{
    struct palette *p = state;
    int w = screen.w < CELLS ? screen.w : CELLS, h = screen.h < ROWS + 4 ? screen.h : ROWS + 4;
    struct rect in = box_draw(c, screen, h, w, "command",
                              ui_keys(ui, "{line-complete} complete\t{line-up} earlier ones"));
    struct rect old = canvas_clip(c, in);
    (void)now;
    fill(ui, p);
    p->page = in.h > 2 ? (size_t)in.h - 2 : 1;
    if (p->at < p->top)
        p->top = p->at;
    if (p->at >= p->top + p->page)
        p->top = p->at - p->page + 1;
    for (size_t i = 0; (int)i < in.h - 2 && p->top + i < p->v.n; i++)
        draw_entry(ui, &p->v.v[p->top + i], c, (struct rect){in.y + 1 + (int)i, in.x, 1, in.w},
                   p->top + i == p->at);
    canvas_text(c, in.y + in.h - 1, in.x, -1, ROLE_HINT,
                p->v.n ? "letters of an action, command, name or file; @name sends, ! runs a command"
                       : "nothing is called like that");
    int x = in.x + canvas_text(c, in.y, in.x, -1, ROLE_PROMPT, "> ");
    inputline_draw(&ui->command, c, (struct rect){in.y, x, 1, in.x + in.w - x}, ROLE_FIELD, true);
    canvas_unclip(c, old);
}

static const char *palette_hints(struct ui *ui, void *state)
{
    (void)state;
    return ui_keys(ui, " {take-line} run  {line-complete} complete  {line-up} {line-down} choose  "
                       "{leave-line} close");
}

/* --- keys ------------------------------------------------------------------------------- */

static void edited(struct palette *p)
{
    p->at = p->top = 0;
    p->recalled = false;
}

/* Above the first entry lies what was run before. */
static void go_up(struct ui *ui, struct palette *p)
{
    if (p->at && !p->recalled)
        p->at--;
    else if (inputline_history_prev(&ui->command))
        p->recalled = true;
}

static void go_down(struct ui *ui, struct palette *p)
{
    if (p->recalled)
        inputline_history_next(&ui->command);
    else if (p->at + 1 < p->v.n)
        p->at++;
    p->recalled = p->recalled && *inputline_text(&ui->command);
}

static void complete(struct ui *ui, struct palette *p)
{
    if (p->at < p->v.n && *p->typed != '!') /* that is whole as it stands */
        inputline_set(&ui->command, p->v.v[p->at].text);
    edited(p);
}

static void select_sandbox(struct ui *ui, uint64_t id)
{
    if (ui->body != BODY_WALL)
        ui_show(ui, BODY_WORK);
    ui_select(ui, id);
}

/* An entry that is not whole yet is completed, and the palette stays. */
static int run_entry(struct ui *ui, struct palette *p, const struct entry *e)
{
    struct entry run = *e;
    size_t len = strlen(run.text);
    bool goes_on = run.kind == IS_COMMAND && len && run.text[len - 1] == ' ';
    if (goes_on) {
        complete(ui, p);
        return UI_HANDLED;
    }
    inputline_history_add(&ui->command, run.text);
    int r = UI_HANDLED;
    if (run.kind == IS_ACTION)
        r = ui_do(ui, (enum action)run.what);
    else if (run.kind == IS_COMMAND)
        r = command_run(ui, run.text);
    else
        select_sandbox(ui, run.what);
    return r | UI_CLOSE;
}

static int enter(struct ui *ui, struct palette *p)
{
    char *line = xstrdup(inputline_text(&ui->command));
    int r = command_run(ui, line);
    if (r != UI_IGNORED) {
        inputline_history_add(&ui->command, line);
        r |= UI_CLOSE;
    } else if (p->at < p->v.n) {
        r = run_entry(ui, p, &p->v.v[p->at]);
    }
    free(line);
    return r | UI_HANDLED;
}

static void page(struct palette *p, bool down)
{
    size_t to = down ? p->at + p->page : p->at > p->page ? p->at - p->page : 0;
    p->at = to < p->v.n ? to : p->v.n ? p->v.n - 1 : 0;
}

static int palette_action(struct ui *ui, void *state, enum action a)
{
    struct palette *p = state;
    fill(ui, p);
    switch (a) {
    case ACT_LEAVE_LINE:
        return UI_CLOSE;
    case ACT_TAKE_LINE:
        return enter(ui, p);
    case ACT_LINE_TAB:
        complete(ui, p);
        return UI_HANDLED;
    case ACT_LINE_UP:
        go_up(ui, p);
        return UI_HANDLED;
    case ACT_LINE_DOWN:
        go_down(ui, p);
        return UI_HANDLED;
    case ACT_LINE_PGDN:
    case ACT_LINE_PGUP:
        page(p, a == ACT_LINE_PGDN);
        return UI_HANDLED;
    default:
        return UI_IGNORED;
    }
}

static int palette_key(struct ui *ui, void *state, key_code k, const char *paste, size_t len)
{
    struct palette *p = state;
    if (ui_line_key(ui, &ui->command, k, paste, len))
        edited(p);
    return UI_HANDLED;
}

static const struct overlay_ops palette_ops = {.name = "command",
                                               .mode = "CMD",
                                               .scope = SCOPE_ASK,
                                               .close = palette_close,
                                               .update = palette_update,
                                               .draw = palette_draw,
                                               .action = palette_action,
                                               .key = palette_key,
                                               .takes_paste = true,
                                               .hints = palette_hints};

void overlay_command(struct ui *ui, const char *typed)
{
    struct palette *p = xcalloc(1, sizeof(*p));
    inputline_set(&ui->command, typed);
    fill(ui, p);
    ui_overlay_push(ui, &palette_ops, p);
}
