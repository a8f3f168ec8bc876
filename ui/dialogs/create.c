/* The form for a new sandbox: checked while typing, nothing is spent before it holds. */
#include <cct/ui/box.h>
#include <cct/ui/ui.h>

#include <cct/text/width.h>
#include <cct/util/arr.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum field { F_NAME, F_TOOL, F_TEMPLATE, F_TIMEOUT, F_END, F_ENV, F_PROMPT, F_CREATE, F_COUNT };
enum { FORM_CELLS = 74, LABEL_CELLS = 10, PROMPT_ROWS = 3 };
enum { TIMEOUT_CELLS = 10, TIMEOUT_BYTES = TIMEOUT_CELLS - 1 }; /* one for the cursor */

static const char *const labels[F_COUNT] = {"Name",   "Agent",       "Template", "Timeout",
                                            "At end", "Environment", "Prompt",   ""};
static const char *const field_names[F_COUNT] = {"name",    "tool", "template", "timeout",
                                                 "at_end",  "env",  "prompt",   ""};

struct form {
    enum field at;
    struct inputline lines[F_COUNT]; /* text fields only */
    size_t tool;
    bool pause;
    char error[200];
    enum field bad; /* field that the error is about, F_COUNT = none */
    bool sent;
};

/* The last choices, for the next form; before the first one the configuration's. */
static struct {
    bool known;
    char tool[32];
    char timeout[TIMEOUT_BYTES + 1];
    bool pause;
} last;

static bool is_text(enum field f)
{
    return f != F_TOOL && f != F_END && f != F_CREATE;
}

static const struct app_tool *tool_of(struct ui *ui, const struct form *f)
{
    return &app_tools(ui->app)[f->tool];
}

static size_t count_tools(struct ui *ui)
{
    size_t n = 0;
    while (app_tools(ui->app)[n].name)
        n++;
    return n;
}

/* "A=1 B=2", one pair per line; memory is cut in place. */
static int parse_env(char *text, struct kv **out, struct err *e)
{
    ARR(struct kv) v = ARR_INIT;
    char *save = NULL;
    for (char *s = strtok_r(text, "\n", &save); s; s = strtok_r(NULL, "\n", &save)) {
        s = str_trim(s);
        if (!*s)
            continue;
        char *eq = strchr(s, '=');
        if (!eq || eq == s) {
            ARR_RELEASE(&v);
            return err_set(e, ERR_INVALID, "environment: write NAME=value, one a line");
        }
        *eq = 0;
        struct kv *kv = ARR_PUSH(&v);
        kv->k = s;
        kv->v = eq + 1;
    }
    ARR_PUSH(&v);
    *out = v.v;
    return 0;
}

static const char *text_of(struct form *f, enum field id)
{
    const char *s = inputline_text(&f->lines[id]);
    return *s ? s : NULL;
}

/* An empty field takes what it suggests. */
static const char *timeout_of(struct form *f)
{
    const char *s = text_of(f, F_TIMEOUT);
    return s ? s : last.timeout;
}

static int to_spec(struct ui *ui, struct form *f, struct app_create *q, char **env_text,
                   struct kv **env, const char **field, struct err *e)
{
    int64_t seconds = 0;
    memset(q, 0, sizeof(*q));
    q->name = text_of(f, F_NAME);
    q->tool = tool_of(ui, f)->name;
    q->template_id = text_of(f, F_TEMPLATE);
    q->prompt = text_of(f, F_PROMPT);
    q->pause_at_end = f->pause;
    *field = "timeout";
    if (!str_to_seconds(timeout_of(f), &seconds) || seconds < 1 ||
        seconds > LIM_TIMEOUT_MAX_S)
        return err_set(e, ERR_INVALID, "timeout: write 900, 15m or 1h30m, at most 24h");
    q->timeout_s = (int)seconds;
    *field = "env";
    *env_text = xstrdup(inputline_text(&f->lines[F_ENV]));
    int rc = parse_env(*env_text, env, e);
    if (rc)
        return rc;
    q->env = *env;
    return app_check_create(ui->app, q, field, e);
}

/* Check, and with `go` create; true when it went out. */
static bool check(struct ui *ui, struct form *f, bool go)
{
    struct app_create q;
    struct kv *env = NULL;
    char *env_text = NULL;
    const char *field = NULL;
    struct err e = {0};
    f->error[0] = 0;
    f->bad = F_COUNT;
    bool ok = to_spec(ui, f, &q, &env_text, &env, &field, &e) == 0;
    if (!ok) {
        str_copy(f->error, sizeof(f->error), e.text);
        for (int i = 0; i < F_COUNT; i++)
            if (field && strcmp(field, field_names[i]) == 0)
                f->bad = (enum field)i;
        if (field && strcmp(field, "key") == 0)
            f->bad = F_TOOL;
    } else if (go) {
        str_copy(last.tool, sizeof(last.tool), q.tool);
        str_copy(last.timeout, sizeof(last.timeout), timeout_of(f));
        last.pause = f->pause;
        app_create(ui->app, &q, true);
    }
    free(env);
    free(env_text);
    return ok && go;
}

/* --- drawing ----------------------------------------------------------------------- */

static int rows_of(enum field f)
{
    return f == F_PROMPT ? PROMPT_ROWS : f == F_ENV ? 2 : 1;
}

static void draw_tools(struct ui *ui, const struct form *f, struct canvas *c, int y, int x, int w)
{
    const struct app_tool *t = app_tools(ui->app);
    int end = x + w;
    for (size_t i = 0; t[i].name; i++) {
        char text[48];
        bool here = i == f->tool;
        snprintf(text, sizeof(text), here ? "< %s >" : " %s ", t[i].name);
        enum theme_role role = !here ? ROLE_DIM : f->at == F_TOOL ? ROLE_FIELD_FOCUS : ROLE_TITLE;
        x += canvas_text(c, y, x, end - x, role, text) + 1;
    }
}

static void draw_field(struct ui *ui, struct form *f, enum field id, struct canvas *c, int y,
                       struct rect in)
{
    bool here = f->at == id;
    enum theme_role label = f->bad == id ? ROLE_STATUS_BAD : here ? ROLE_PROMPT : ROLE_DIALOG;
    int x = in.x + LABEL_CELLS + 2, w = in.w - LABEL_CELLS - 2;
    canvas_text(c, y, in.x, LABEL_CELLS + 1, label, labels[id]);
    if (id == F_TOOL) {
        draw_tools(ui, f, c, y, x, w);
    } else if (id == F_END) {
        canvas_textf(c, y, x, w, here ? ROLE_FIELD_FOCUS : ROLE_DIALOG, "(%s) kill  (%s) pause",
                     f->pause ? " " : "o", f->pause ? "o" : " ");
    } else if (id == F_CREATE) {
        canvas_text(c, y, x, w, here ? ROLE_FIELD_FOCUS : ROLE_TITLE, "[ Create ]");
    } else {
        if (id == F_TIMEOUT)
            w = TIMEOUT_CELLS;
        enum theme_role role = f->bad == id ? ROLE_FIELD_BAD : ROLE_FIELD;
        struct rect r = {y, x, rows_of(id), w};
        inputline_draw(&f->lines[id], c, r, role, here);
        const char *hint = id == F_NAME       ? "(empty: a name is made)"
                           : id == F_TEMPLATE ? tool_of(ui, f)->template_id
                           : id == F_TIMEOUT  ? last.timeout
                           : id == F_ENV      ? "NAME=value, one a line (^J)"
                           : id == F_PROMPT   ? "first message to the agent (^J: new line)"
                                              : NULL;
        if (!f->lines[id].text.len && hint)
            canvas_text(c, y, x, w, ROLE_HINT, hint);
    }
}

static void form_draw(struct ui *ui, void *state, struct canvas *c, struct rect screen,
                      int64_t now)
{
    struct form *f = state;
    (void)now;
    int w = screen.w < FORM_CELLS ? screen.w : FORM_CELLS, rows = 2;
    for (int i = 0; i < F_COUNT; i++)
        rows += rows_of((enum field)i);
    struct rect in = box_draw(c, screen, rows + 2, w, "new sandbox", "Alt-s create  Esc cancel");
    struct rect old = canvas_clip(c, in);
    /* on a low screen the field at hand is kept in view */
    int y = in.y, skip = 0;
    for (int i = 0, sum = 0; i <= (int)f->at; i++) {
        sum += rows_of((enum field)i);
        if (sum > in.h - 2)
            skip = sum - (in.h - 2);
    }
    y -= skip;
    for (int i = 0; i < F_COUNT; i++) {
        if (y >= in.y && y + rows_of((enum field)i) <= in.y + in.h - 2)
            draw_field(ui, f, (enum field)i, c, y, in);
        y += rows_of((enum field)i);
    }
    y = in.y + in.h - 2;
    if (*f->error)
        box_text(c, (struct rect){y, in.x, 2, in.w}, ROLE_STATUS_BAD, f->error);
    else if (tool_of(ui, f)->missing_key)
        canvas_textf(c, y, in.x, in.w, ROLE_STATUS_WARN, "%s key missing: set it in the environment",
                     tool_of(ui, f)->missing_key);
    else
        canvas_text(c, y, in.x, in.w, ROLE_HINT,
                    ui->model->local ? "runs on this machine, costs nothing"
                                     : ui->model->account ? ui->model->account : "");
    canvas_unclip(c, old);
}

/* --- keys --------------------------------------------------------------------------- */

static int submit(struct ui *ui, struct form *f)
{
    if (!check(ui, f, true)) {
        if (f->bad < F_COUNT)
            f->at = f->bad;
        return UI_HANDLED;
    }
    ui_await_new(ui);
    ui_status(ui, 0, "creating %s", text_of(f, F_NAME) ? text_of(f, F_NAME) : "a sandbox");
    return UI_CLOSE;
}

static void choose(struct ui *ui, struct form *f, int step)
{
    size_t n = count_tools(ui);
    if (f->at == F_TOOL && n)
        f->tool = (f->tool + n + (size_t)(step + (int)n)) % n;
    else if (f->at == F_END)
        f->pause = !f->pause;
    check(ui, f, false);
}

static int form_action(struct ui *ui, void *state, enum action a)
{
    struct form *f = state;
    switch (a) {
    case ACT_FIELD_NEXT:
        if (f->at == F_CREATE)
            return submit(ui, f);
        check(ui, f, false);
        f->at = (enum field)(f->at + 1);
        return UI_HANDLED;
    case ACT_FIELD_PREV:
        check(ui, f, false);
        f->at = f->at ? (enum field)(f->at - 1) : F_CREATE;
        return UI_HANDLED;
    case ACT_SUBMIT:
        return submit(ui, f);
    case ACT_FORM_CANCEL:
        return UI_CLOSE;
    case ACT_CHOICE_PREV:
    case ACT_CHOICE_NEXT:
        if (is_text(f->at))
            return UI_IGNORED; /* moves the text cursor */
        choose(ui, f, a == ACT_CHOICE_NEXT ? 1 : -1);
        return UI_HANDLED;
    default:
        return UI_IGNORED;
    }
}

static int form_key(struct ui *ui, void *state, key_code k, const char *paste, size_t len)
{
    struct form *f = state;
    if (!is_text(f->at)) {
        if (k == ' ' && f->at != F_CREATE)
            choose(ui, f, 1);
        return UI_HANDLED;
    }
    struct inputline *l = &f->lines[f->at];
    if (k == K_PASTE)
        ui_paste(ui, l, paste, len);
    else if ((k == '\n' || k == (K_ENTER | KEYC_ALT)) && l->multiline)
        inputline_insert(l, "\n", 1);
    else
        inputline_key(l, k);
    if (*f->error)
        check(ui, f, false);
    return UI_HANDLED;
}

static void form_close(void *state)
{
    struct form *f = state;
    for (int i = 0; i < F_COUNT; i++)
        inputline_release(&f->lines[i]);
    free(f);
}

static const struct overlay_ops form_ops = {.name = "new sandbox",
                                            .scope = SCOPE_FORM,
                                            .close = form_close,
                                            .draw = form_draw,
                                            .action = form_action,
                                            .key = form_key,
                                            .takes_paste = true};

/* In the largest unit that says it exactly. */
static void span_text(char *dst, size_t size, int s)
{
    bool hours = s % 3600 == 0, minutes = s % 60 == 0;
    snprintf(dst, size, "%d%s", hours ? s / 3600 : minutes ? s / 60 : s,
             hours ? "h" : minutes ? "m" : "s");
}

static void first_choices(struct ui *ui)
{
    last.known = true;
    str_copy(last.tool, sizeof(last.tool), ui->opts.tool ? ui->opts.tool : "");
    span_text(last.timeout, sizeof(last.timeout), ui->opts.timeout_s ? ui->opts.timeout_s : 900);
    last.pause = ui->opts.pause_at_end;
}

void overlay_create(struct ui *ui, bool prompt_first)
{
    const struct app_tool *t = app_tools(ui->app);
    if (!t[0].name) {
        ui_status(ui, 2, "no agent can be chosen: see 'cc-tui doctor'");
        return;
    }
    if (!last.known)
        first_choices(ui);
    struct form *f = xcalloc(1, sizeof(*f));
    f->bad = F_COUNT;
    f->at = prompt_first ? F_PROMPT : F_NAME;
    inputline_init(&f->lines[F_NAME], false, 64);
    inputline_init(&f->lines[F_TEMPLATE], false, LIM_NAME_BYTES);
    inputline_init(&f->lines[F_TIMEOUT], false, TIMEOUT_BYTES);
    inputline_init(&f->lines[F_ENV], true, LIM_MESSAGE_BYTES);
    inputline_init(&f->lines[F_PROMPT], true, LIM_MESSAGE_BYTES);
    f->pause = last.pause;
    for (size_t i = 0; t[i].name; i++)
        if (str_eq(t[i].name, last.tool) || (!*last.tool && ui->model->local && t[i].local_only))
            f->tool = i;
    ui_overlay_push(ui, &form_ops, f);
}
