/* The picture of the form for a new sandbox: fields, what was looked at before, what it
 * will cost. */
#include "create_priv.h"

#include <cct/text/width.h>
#include <cct/ui/box.h>
#include <cct/util/str.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FORM_CELLS = 76, LABEL_CELLS = 10, FOOT_ROWS = 4, TIMEOUT_CELLS = 10, COPIES_CELLS = 4 };

/* Rows of fields; a second field may stand beside the first. */
static const struct line {
    enum field first, second; /* F_COUNT: none */
    int rows, at;             /* at: cells from the begin of the first to the second's label */
} lines[] = {
    {F_NAME, F_COUNT, 1, 0},     {F_TOOL, F_COUNT, 1, 0},      {F_MODEL, F_COUNT, 1, 0},
    {F_TEMPLATE, F_COUNT, 1, 0}, {F_TIMEOUT, F_END, 1, 13},    {F_ENV, F_COUNT, 2, 0},
    {F_ENV_FILE, F_ASK, 1, 37},  {F_REPO, F_BRANCH, 1, 37},    {F_PROMPT, F_COUNT, 3, 0},
    {F_COPIES, F_PRESET, 1, 13}, {F_CREATE, F_COUNT, 1, 0},
};
enum { LINES = sizeof(lines) / sizeof(lines[0]) };

static const char *const labels[F_COUNT] = {"Name",     "Agent", "Model",  "Template", "Timeout",
                                            "At end",   "Env",   "Env file", "Asks",   "Repo",
                                            "Branch",   "Prompt", "Copies", "Preset", ""};

static int all_rows(void)
{
    int n = 0;
    for (int i = 0; i < LINES; i++)
        n += lines[i].rows;
    return n;
}

/* --- fields ------------------------------------------------------------------------- */

/* As many as fit, the one that is chosen among them. */
static void draw_tools(struct ui *ui, const struct form *f, struct canvas *c, int y, int x, int w)
{
    const struct app_tool *t = app_tools(ui->app);
    size_t from = 0;
    int need = 0, end = x + w;
    for (size_t i = f->tool + 1; i-- > 0;) {
        need += (int)strlen(t[i].name) + (i == f->tool ? 6 : 2);
        if (need > w)
            break;
        from = i;
    }
    for (size_t i = from; t[i].name; i++) {
        char text[48];
        bool here = i == f->tool;
        snprintf(text, sizeof(text), here ? "< %s >" : "%s", t[i].name);
        if (x + (int)strlen(text) > end)
            break;
        enum theme_role role = !here ? ROLE_DIM : f->at == F_TOOL ? ROLE_FIELD_FOCUS : ROLE_TITLE;
        x += canvas_text(c, y, x, end - x, role, text) + 2;
    }
}

static void hint_of(struct ui *ui, enum field id, struct form *f, char *dst, size_t size)
{
    const struct app_tool *t = form_tool(ui, f);
    static const char *const fixed[F_COUNT] = {
        [F_NAME] = "(empty: a name is made)",
        [F_ENV_FILE] = "file of NAME=value lines",
        [F_REPO] = "address, or OWNER/NAME on GitHub",
        [F_BRANCH] = "its default",
        [F_COPIES] = "1",
    };
    dst[0] = 0;
    if (id == F_MODEL && !t->takes_model)
        str_copy(dst, size, "(it takes none)");
    else if (id == F_MODEL)
        snprintf(dst, size, "%s", t->model ? t->model : "its own default");
    else if (id == F_TEMPLATE)
        str_copy(dst, size, t->template_id ? t->template_id : "");
    else if (id == F_TIMEOUT)
        str_copy(dst, size, form_timeout_hint());
    else if (id == F_ENV)
        str_copy(dst, size, ui_keys(ui, "NAME=value, one a line ({newline})"));
    else if (id == F_PROMPT)
        str_copy(dst, size, ui_keys(ui, "first message to the agent ({newline}: new line)"));
    else if (id == F_PRESET)
        str_copy(dst, size, ui_keys(ui, "name ({preset-save} keeps)"));
    else if (fixed[id])
        str_copy(dst, size, fixed[id]);
}

static void draw_text(struct ui *ui, struct form *f, enum field id, struct canvas *c, struct rect r)
{
    char hint[120];
    bool here = f->at == id;
    inputline_draw(&f->lines[id], c, r, f->bad == id ? ROLE_FIELD_BAD : ROLE_FIELD, here);
    hint_of(ui, id, f, hint, sizeof(hint));
    if (!f->lines[id].text.len && *hint)
        canvas_text(c, r.y, r.x, r.w, ROLE_HINT, hint);
}

static void draw_field(struct ui *ui, struct form *f, enum field id, struct canvas *c, struct rect r)
{
    bool here = f->at == id;
    if (id == F_TOOL)
        draw_tools(ui, f, c, r.y, r.x, r.w);
    else if (id == F_END)
        canvas_textf(c, r.y, r.x, r.w, here ? ROLE_FIELD_FOCUS : ROLE_DIALOG,
                     "(%s) kill  (%s) pause", f->pause ? " " : "o", f->pause ? "o" : " ");
    else if (id == F_ASK && !form_tool(ui, f)->can_ask)
        canvas_text(c, r.y, r.x, r.w, here ? ROLE_FIELD_FOCUS : ROLE_HINT, "(it cannot)");
    else if (id == F_ASK)
        canvas_textf(c, r.y, r.x, r.w, here ? ROLE_FIELD_FOCUS : ROLE_DIALOG,
                     "(%s) no  (%s) yes", form_asks(form_tool(ui, f), f) ? " " : "o",
                     form_asks(form_tool(ui, f), f) ? "o" : " ");
    else if (id == F_CREATE)
        canvas_text(c, r.y, r.x, r.w, here ? ROLE_FIELD_FOCUS : ROLE_TITLE, "[ Create ]");
    else
        draw_text(ui, f, id, c, r);
}

static enum theme_role label_role(const struct form *f, enum field id)
{
    return f->bad == id ? ROLE_STATUS_BAD : f->at == id ? ROLE_PROMPT : ROLE_DIALOG;
}

/* What stands behind a template's name: which builds there are. */
static int template_note(struct ui *ui, struct form *f, char *dst, size_t size)
{
    const struct app_templates *t = app_template_list(ui->app);
    const char *name = form_text(f, F_TEMPLATE);
    const struct app_template *one;
    if (!name)
        name = form_tool(ui, f)->template_id;
    one = app_template_find(ui->app, name);
    if (!t->known)
        str_copy(dst, size, t->error ? "list not had" : "asking");
    else if (one && !one->ready)
        snprintf(dst, size, "NOT READY: %s", *one->status ? one->status : "never built");
    else
        snprintf(dst, size, "%s\t(%zu ready, %zu building)", one ? "ready" : "not in the list",
                 t->n_ready, t->n_building);
    return (int)strlen(dst) + (strchr(dst, '\t') != NULL);
}

/* List price of the model, behind it. */
static int price_text(struct ui *ui, struct form *f, char *dst, size_t size)
{
    const struct app_model *m = app_models(ui->app, form_tool(ui, f)->name);
    const char *word = form_text(f, F_MODEL);
    bool asked = word != NULL;
    dst[0] = 0;
    if (!asked)
        word = form_tool(ui, f)->model;
    if (!form_tool(ui, f)->takes_model || !word)
        return 0;
    while (m->word && !str_eq(m->word, word))
        m++;
    if (m->word && !isnan(m->input))
        snprintf(dst, size, "$%g in, $%g out per 1M", m->input, m->output);
    else if (asked)
        str_copy(dst, size, "unpriced");
    return (int)strlen(dst);
}

static void draw_line(struct ui *ui, struct form *f, const struct line *l, struct canvas *c, int y,
                      struct rect in)
{
    char note[64];
    struct rect r = {y, in.x + LABEL_CELLS + 2, l->rows, in.w - LABEL_CELLS - 2};
    int all = r.w;
    canvas_text(c, y, in.x, LABEL_CELLS + 1, label_role(f, l->first), labels[l->first]);
    if (l->second != F_COUNT)
        r.w = l->first == F_TIMEOUT ? TIMEOUT_CELLS : l->first == F_COPIES ? COPIES_CELLS : l->at - 2;
    if (l->first == F_TEMPLATE || l->first == F_MODEL) {
        int n = l->first == F_MODEL ? price_text(ui, f, note, sizeof(note))
                                    : template_note(ui, f, note, sizeof(note));
        bool bad = str_starts(note, "NOT");
        r.w = r.w - n - 2 > 16 ? r.w - n - 2 : 16;
        canvas_hints(c, y, r.x + r.w + 2, all - r.w - 2, bad ? ROLE_STATUS_BAD : ROLE_HINT, note);
    }
    draw_field(ui, f, l->first, c, r);
    if (l->second == F_COUNT)
        return;
    int x = r.x + l->at, w = (int)strlen(labels[l->second]) + 2;
    canvas_text(c, y, x, w, label_role(f, l->second), labels[l->second]);
    struct rect second = {y, x + w, 1, all - l->at - w};
    if (l->second == F_PRESET && *f->preset_said) {
        second.w = 20;
        canvas_text(c, y, second.x + 22, all - l->at - w - 22, ROLE_HINT, f->preset_said);
    }
    draw_field(ui, f, l->second, c, second);
}

/* --- the foot: checks and cost -------------------------------------------------------- */

static enum theme_role key_role(enum app_key_state s)
{
    return s == APP_KEY_BAD ? ROLE_STATUS_BAD : s == APP_KEY_HIDES ? ROLE_STATUS_WARN : ROLE_TEXT;
}

static void money_text(struct ui *ui, struct form *f, char *dst, size_t size)
{
    const char *name = form_text(f, F_TEMPLATE);
    const struct app_template *t = app_template_find(ui->app, name ? name
                                                                   : form_tool(ui, f)->template_id);
    int copies = form_copies(f);
    char times[16] = "";
    double hour;
    if (ui->model->local) {
        str_copy(dst, size, "runs on this machine, costs nothing");
        return;
    }
    if (!t || t->cpu_count <= 0) {
        str_copy(dst, size, "the template's size is not known yet");
        return;
    }
    hour = (t->cpu_count * 0.000014 + t->memory_mb / 1024.0 * 0.0000045) * 3600 * copies;
    if (copies > 1)
        snprintf(times, sizeof(times), "%d x ", copies);
    snprintf(dst, size, "%s%d vCPU %.1f GiB = $%.3f/h, at most $%.2f to the timeout", times,
             t->cpu_count, t->memory_mb / 1024.0, hour, hour * form_timeout(f) / 3600.0);
}

static const char *link_word(const struct model *m)
{
    return m->link == LINK_OK ? "key ok" : m->link == LINK_AUTH ? "KEY REFUSED"
           : m->link == LINK_CONNECTING ? "connecting" : "NO LINK";
}

/* Up to two rows; what keeps it from being made has all the room there is. */
static void draw_keys(struct form *f, struct canvas *c, struct rect r)
{
    char text[sizeof(f->key.text) + 32];
    bool repo = f->repo_key.state != APP_KEY_NONE;
    struct rect at = {r.y, r.x + LABEL_CELLS + 2, repo ? 1 : 2, r.w - LABEL_CELLS - 2};
    const struct app_key_look *bad = f->key.state == APP_KEY_BAD        ? &f->key
                                     : f->repo_key.state == APP_KEY_BAD ? &f->repo_key
                                                                        : NULL;
    if (bad) {
        snprintf(text, sizeof(text), "%s key: %s", bad == &f->key ? "agent" : "repo", bad->text);
        box_text(c, r, ROLE_STATUS_BAD, text);
        return;
    }
    canvas_text(c, at.y, r.x, LABEL_CELLS, ROLE_HINT, "agent key");
    box_text(c, at, key_role(f->key.state), f->key.text);
    if (!repo)
        return;
    canvas_text(c, r.y + 1, r.x, LABEL_CELLS, ROLE_HINT, "repo key");
    canvas_text(c, r.y + 1, at.x, at.w, key_role(f->repo_key.state), f->repo_key.text);
}

static void draw_checks(struct ui *ui, struct form *f, struct canvas *c, struct rect r)
{
    char money[100], note[64], all[240];
    const struct model *m = ui->model;
    size_t st[SB_STATE_COUNT], asks, working, idle;
    int x = r.x + LABEL_CELLS + 2, w = r.w - LABEL_CELLS - 2;
    bool bad = f->key.state == APP_KEY_BAD || f->repo_key.state == APP_KEY_BAD;
    model_counts(m, st, &asks, &working, &idle);
    template_note(ui, f, note, sizeof(note));
    note[strcspn(note, "\t")] = 0;
    snprintf(all, sizeof(all), "%s\ttemplate %s\t%zu running\tproject %s", link_word(m), note,
             st[SB_RUNNING], m->project ? m->project : "default");
    canvas_text(c, r.y, r.x, LABEL_CELLS, ROLE_HINT, "checks");
    canvas_hints(c, r.y, x, w, ROLE_TEXT, all);
    draw_keys(f, c, (struct rect){r.y + 1, r.x, r.h - 1, r.w});
    if (bad)
        return;
    money_text(ui, f, money, sizeof(money));
    canvas_text(c, r.y + r.h - 1, r.x, LABEL_CELLS, ROLE_HINT, "cost");
    canvas_text(c, r.y + r.h - 1, x, w, ROLE_TEXT, money);
}

/* --- the whole -------------------------------------------------------------------------- */

static int line_of(enum field f)
{
    int i = 0;
    while (i < LINES - 1 && lines[i].first != f && lines[i].second != f)
        i++;
    return i;
}

void form_draw(struct ui *ui, void *state, struct canvas *c, struct rect screen, int64_t now)
{
    struct form *f = state;
    (void)now;
    int w = screen.w < FORM_CELLS ? screen.w : FORM_CELLS, here = line_of(f->at);
    struct rect in = box_draw(c, screen, all_rows() + FOOT_ROWS + 2, w, "new sandbox",
                              ui_keys(ui, "{submit} create\t{preset-save} keep\t{form-cancel} cancel"));
    struct rect old = canvas_clip(c, in);
    int room = in.h - FOOT_ROWS, y = in.y, skip = 0;
    /* on a low screen the field at hand is kept in view */
    for (int i = 0, sum = 0; i <= here; i++) {
        sum += lines[i].rows;
        if (sum > room)
            skip = sum - room;
    }
    y -= skip;
    for (int i = 0; i < LINES; i++) {
        if (y >= in.y && y + lines[i].rows <= in.y + room)
            draw_line(ui, f, &lines[i], c, y, in);
        y += lines[i].rows;
    }
    struct rect foot = {in.y + (room > 0 ? room : 0), in.x, FOOT_ROWS, in.w};
    if (*f->error)
        box_text(c, foot, ROLE_STATUS_BAD, f->error);
    else
        draw_checks(ui, f, c, foot);
    canvas_unclip(c, old);
}
