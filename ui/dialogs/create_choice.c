/* What the form for a new sandbox begins with, what its fields can be chosen from, and its
 * presets. */
#include "create_priv.h"

#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The last choices in a project, for the next form; before the first one the project's
 * defaults, then the configuration's. */
static struct {
    bool known;
    char project[80], tool[40], model[LIM_NAME_BYTES], timeout[16], repo[300], branch[200];
    bool pause;
} last;

/* --- what it begins with ---------------------------------------------------------------- */

/* In the largest unit that says it exactly. */
static void span_text(char *dst, size_t size, int s)
{
    bool hours = s % 3600 == 0, minutes = s % 60 == 0;
    snprintf(dst, size, "%d%s", hours ? s / 3600 : minutes ? s / 60 : s,
             hours ? "h" : minutes ? "m" : "s");
}

const char *form_timeout_hint(void)
{
    return last.timeout;
}

/* Takes back what another preset has filled in and nobody has changed since. */
static void unfill(struct form *f, const struct project_choice *c)
{
    const struct {
        enum field id;
        const char *text;
    } texts[] = {{F_MODEL, c->model}, {F_TEMPLATE, c->template_id}, {F_REPO, c->repo},
                 {F_BRANCH, c->branch}, {F_PROMPT, c->prompt}};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (texts[i].text && str_eq(form_text(f, texts[i].id), texts[i].text))
            inputline_set(&f->lines[texts[i].id], "");
    if (c->copies > 1 && form_copies(f) == c->copies)
        inputline_set(&f->lines[F_COPIES], "");
}

static void choose_tool(struct ui *ui, struct form *f, const char *name)
{
    const struct app_tool *t = app_tools(ui->app);

    for (size_t i = 0; t[i].name; i++)
        if (str_eq(t[i].name, name))
            f->tool = i;
}

static void set_if(struct form *f, enum field id, const char *text)
{
    if (text && *text)
        inputline_set(&f->lines[id], text);
}

/* A model is one tool's, a branch one repository's: they do not outlast it. */
static void fill(struct ui *ui, struct form *f, const struct project_choice *c)
{
    size_t tool = f->tool;
    char text[32];

    if (c->tool)
        choose_tool(ui, f, c->tool);
    if (f->tool != tool) {
        inputline_set(&f->lines[F_MODEL], "");
        f->ask = 0;
    }
    set_if(f, F_MODEL, c->model);
    set_if(f, F_TEMPLATE, c->template_id);
    if (c->repo && *c->repo && !str_eq(form_text(f, F_REPO), c->repo))
        inputline_set(&f->lines[F_BRANCH], "");
    set_if(f, F_REPO, c->repo);
    set_if(f, F_BRANCH, c->branch);
    set_if(f, F_PROMPT, c->prompt);
    if (c->timeout_s > 0) {
        span_text(text, sizeof(text), c->timeout_s);
        inputline_set(&f->lines[F_TIMEOUT], text);
    }
    if (c->copies > 1) {
        snprintf(text, sizeof(text), "%d", c->copies);
        inputline_set(&f->lines[F_COPIES], text);
    }
    if (c->at_end_known)
        f->pause = c->pause_at_end;
}

static void first_choices(struct ui *ui)
{
    memset(&last, 0, sizeof(last));
    str_copy(last.project, sizeof(last.project), ui->model->project ? ui->model->project : "");
    str_copy(last.tool, sizeof(last.tool), ui->opts.tool ? ui->opts.tool : "");
    span_text(last.timeout, sizeof(last.timeout), ui->opts.timeout_s ? ui->opts.timeout_s : 900);
    last.pause = ui->opts.pause_at_end;
}

void form_begin(struct ui *ui, struct form *f)
{
    const struct project *p = model_project(ui->model);
    const struct app_tool *t = app_tools(ui->app);
    bool anew = !last.known || !str_eq(last.project, ui->model->project ? ui->model->project : "");

    if (anew)
        first_choices(ui);
    for (size_t i = 0; !*last.tool && t[i].name; i++)
        if (ui->model->local && t[i].local_only)
            f->tool = i;
    choose_tool(ui, f, last.tool);
    f->pause = last.pause;
    if (p && anew) {
        fill(ui, f, &p->defaults);
    } else if (!anew) {
        set_if(f, F_MODEL, last.model);
        set_if(f, F_REPO, last.repo);
        set_if(f, F_BRANCH, last.branch);
    }
}

static void keep(char *dst, size_t size, struct form *f, enum field id)
{
    const char *s = form_text(f, id);

    str_copy(dst, size, s ? s : "");
}

void form_remember(struct ui *ui, struct form *f)
{
    last.known = true;
    str_copy(last.project, sizeof(last.project), ui->model->project ? ui->model->project : "");
    str_copy(last.tool, sizeof(last.tool), form_tool(ui, f)->name);
    if (form_text(f, F_TIMEOUT))
        keep(last.timeout, sizeof(last.timeout), f, F_TIMEOUT);
    keep(last.model, sizeof(last.model), f, F_MODEL);
    keep(last.repo, sizeof(last.repo), f, F_REPO);
    keep(last.branch, sizeof(last.branch), f, F_BRANCH);
    last.pause = f->pause;
}

/* --- choosing ----------------------------------------------------------------------------- */

struct words {
    const char **v;
    size_t n;
};

static void add_word(struct words *w, const char *word)
{
    w->v = xrealloc(w->v, (w->n + 1) * sizeof(*w->v));
    w->v[w->n++] = word;
}

/* What the field can be; borrowed. The first stands for "not chosen". */
static struct words words_of(struct ui *ui, struct form *f)
{
    const struct app_templates *t = app_template_list(ui->app);
    const struct project *p = model_project(ui->model);
    struct words w = {NULL, 0};

    add_word(&w, "");
    if (f->at == F_MODEL)
        for (const struct app_model *m = app_models(ui->app, form_tool(ui, f)->name); m->word; m++)
            add_word(&w, m->word);
    for (size_t i = 0; f->at == F_TEMPLATE && i < t->n; i++)
        if (t->v[i].ready) /* what was not built cannot be chosen */
            add_word(&w, t->v[i].name);
    for (size_t i = 0; f->at == F_PRESET && p && i < p->n_presets; i++)
        add_word(&w, p->presets[i].name);
    return w;
}

bool form_step(struct ui *ui, struct form *f, int step)
{
    struct words w = words_of(ui, f);
    const char *now = inputline_text(&f->lines[f->at]);
    size_t i = 0;
    bool listed;

    while (i < w.n && !str_eq(w.v[i], now))
        i++;
    listed = i < w.n && w.n > 1;
    if (listed) {
        i = (i + w.n + (size_t)(step + (int)w.n)) % w.n;
        inputline_set(&f->lines[f->at], w.v[i]);
    }
    free(w.v);
    if (listed && f->at == F_PRESET)
        form_load_preset(ui, f);
    return listed;
}

/* --- presets -------------------------------------------------------------------------------- */

void form_load_preset(struct ui *ui, struct form *f)
{
    const struct project *p = model_project(ui->model);
    const char *name = form_text(f, F_PRESET);

    f->preset_said[0] = 0;
    for (size_t i = 0; p && i < p->n_presets; i++)
        if (str_eq(p->presets[i].name, f->preset))
            unfill(f, &p->presets[i].c);
    f->preset[0] = 0;
    for (size_t i = 0; name && p && i < p->n_presets; i++)
        if (str_eq(p->presets[i].name, name)) {
            fill(ui, f, &p->presets[i].c);
            str_copy(f->preset, sizeof(f->preset), name);
            snprintf(f->preset_said, sizeof(f->preset_said), "%s",
                     p->presets[i].of_user ? "yours" : "of this project");
            return;
        }
}

void form_save_preset(struct ui *ui, struct form *f)
{
    const char *name = form_text(f, F_PRESET);
    struct project_choice c = {.tool = (char *)(uintptr_t)form_tool(ui, f)->name,
                               .model = (char *)(uintptr_t)form_text(f, F_MODEL),
                               .template_id = (char *)(uintptr_t)form_text(f, F_TEMPLATE),
                               .repo = (char *)(uintptr_t)form_text(f, F_REPO),
                               .branch = (char *)(uintptr_t)form_text(f, F_BRANCH),
                               .prompt = (char *)(uintptr_t)form_text(f, F_PROMPT),
                               .timeout_s = form_timeout(f),
                               .copies = form_copies(f),
                               .at_end_known = true,
                               .pause_at_end = f->pause};

    if (!name) {
        f->at = f->bad = F_PRESET;
        str_copy(f->error, sizeof(f->error), "preset: write its name here, then press the key again");
        return;
    }
    app_preset(ui->app, name, false, &c);
    str_copy(f->preset_said, sizeof(f->preset_said), "kept");
}

void form_remove_preset(struct ui *ui, struct form *f)
{
    const struct project *p = model_project(ui->model);
    const struct project_preset *one = NULL;
    const char *name = form_text(f, F_PRESET);

    for (size_t i = 0; name && p && i < p->n_presets && !one; i++)
        if (str_eq(p->presets[i].name, name))
            one = &p->presets[i];
    f->at = F_PRESET;
    if (!one) {
        f->bad = F_PRESET;
        str_copy(f->error, sizeof(f->error), "preset: choose the one that is to go, then press the key "
                 "again");
    } else if (!f->removes) {
        f->removes = true;
        snprintf(f->preset_said, sizeof(f->preset_said), "again: remove it");
    } else {
        f->removes = false;
        app_preset(ui->app, name, one->of_user, NULL);
        inputline_set(&f->lines[F_PRESET], "");
        snprintf(f->preset_said, sizeof(f->preset_said), "removed");
    }
}
