/* Script lines of what forms offer: tools, templates, models, keys; projects and what they keep. */
#include "screenscript.h"

#include <cct/model/filter.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

static void tool_line(struct script *s, char *line)
{
    struct app_tool *t = &s->app->tools[s->app->n_tools++];
    t->name = xstrdup(script_word(&line));
    t->template_id = xstrdup(script_word(&line));
    t->missing_key = *line ? xstrdup(line) : NULL;
    t->local_only = !strcmp(t->name, "demo");
    t->takes_model = !t->local_only;
    t->can_ask = t->local_only || !strcmp(t->name, "claude");
}

/* template NAME STATUS [CPU MEM] */
static void template_line(struct script *s, char *line)
{
    struct app_templates *all = &s->app->templates;
    struct app_template *t;
    all->v = xrealloc(all->v, (all->n + 1) * sizeof(*all->v));
    t = &all->v[all->n++];
    *t = (struct app_template){.name = xstrdup(script_word(&line))};
    t->status = xstrdup(script_word(&line));
    t->ready = !strcmp(t->status, "ready");
    t->cpu_count = (int)strtoll(script_word(&line), NULL, 10);
    t->memory_mb = (int)strtoll(script_word(&line), NULL, 10);
    all->known = true;
    all->n_ready += t->ready;
    all->n_building += !t->ready;
}

/* model WORD INPUT OUTPUT */
static void model_line(struct script *s, char *line)
{
    struct app_model *m = &s->app->models[s->app->n_models++];
    m->word = xstrdup(script_word(&line));
    m->input = strtod(script_word(&line), NULL);
    m->output = strtod(script_word(&line), NULL);
}

/* key | repokey none|asking|good|hides|bad TEXT */
static void key_look(struct app_key_look *k, char *line)
{
    static const char *const states[] = {"none", "asking", "good", "hides", "bad"};
    const char *state = script_word(&line);
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
        if (!strcmp(state, states[i]))
            k->state = (enum app_key_state)i;
    str_copy(k->text, sizeof(k->text), line);
}

static void key_line(struct script *s, char *line)
{
    key_look(&s->app->key, line);
}

static void repokey_line(struct script *s, char *line)
{
    key_look(&s->app->repo_key, line);
}

/* slow | read: the files that a form names */
static void named_line(struct script *s, char *line)
{
    s->app->slow_files = !strcmp(line, "slow");
    s->app->reading &= s->app->slow_files;
}

/* var NAME plain VALUE | secret LAST4: of the current project; var NAME gone */
static void var_line(struct script *s, char *line)
{
    struct ev_projects *ev = ev_new(EV_PROJECTS);
    const struct model *m = s->app->model;
    const char *name = script_word(&line), *kind = script_word(&line);
    struct project *p;
    ev->v = xcalloc(m->n_projects + 1, sizeof(*ev->v));
    for (; ev->n < m->n_projects; ev->n++)
        project_copy(&ev->v[ev->n], &m->projects[ev->n]);
    ev->current = m->project_at;
    p = &ev->v[ev->current];
    size_t i = 0;
    while (i < p->n_vars && strcmp(p->vars[i].name, name) != 0)
        i++;
    if (!strcmp(kind, "gone")) {
        free(p->vars[i].name);
        free(p->vars[i].value);
        memmove(&p->vars[i], &p->vars[i + 1], (--p->n_vars - i) * sizeof(*p->vars));
    } else {
        if (i == p->n_vars) {
            p->vars = xrealloc(p->vars, ++p->n_vars * sizeof(*p->vars));
            p->vars[i] = (struct project_var){.name = xstrdup(name)};
        }
        p->vars[i].secret = !strcmp(kind, "secret");
        free(p->vars[i].value);
        p->vars[i].value = p->vars[i].secret ? NULL : xstrdup(line);
        if (p->vars[i].secret)
            str_copy(p->vars[i].last4, sizeof(p->vars[i].last4), line);
    }
    script_post(s, ev);
}

/* kept NAME WORDS: the filters, one of them more */
static void kept_line(struct script *s, char *line)
{
    struct ev_projects *ev = ev_new(EV_PROJECTS);
    const struct model *m = s->app->model;
    const char *name = script_word(&line);
    ev->v = xcalloc(m->n_projects + 1, sizeof(*ev->v));
    for (; ev->n < m->n_projects; ev->n++)
        project_copy(&ev->v[ev->n], &m->projects[ev->n]);
    ev->current = m->project_at;
    ev->filters = saved_filters_copy(m->filters, m->n_filters);
    ev->filters = xrealloc(ev->filters, (m->n_filters + 1) * sizeof(*ev->filters));
    ev->filters[m->n_filters] = (struct saved_filter){xstrdup(name), xstrdup(line)};
    ev->n_filters = m->n_filters + 1;
    script_post(s, ev);
}

/* preset NAME TOOL MODEL REPO PROMPT: of the current project, which is there then */
static void preset_line(struct script *s, char *line)
{
    struct ev_projects *ev = ev_new(EV_PROJECTS);
    struct project *p = ev->v = xcalloc(1, sizeof(*p));
    const struct project *now = model_project(s->app->model);
    struct project_preset *one;
    if (now)
        project_copy(p, now);
    else
        *p = (struct project){.id = xstrdup("p1"), .name = xstrdup("web")};
    p->presets = xrealloc(p->presets, (p->n_presets + 1) * sizeof(*p->presets));
    one = &p->presets[p->n_presets++];
    *one = (struct project_preset){.name = xstrdup(script_word(&line))};
    one->c.tool = xstrdup(script_word(&line));
    one->c.model = xstrdup(script_word(&line));
    one->c.repo = xstrdup(script_word(&line));
    one->c.prompt = xstrdup(line);
    one->c.copies = 3;
    ev->n = 1;
    script_post(s, ev);
}

/* projects NAME NAME ...: the first is current. */
static void projects(struct script *s, char *line)
{
    struct ev_projects *ev = ev_new(EV_PROJECTS);

    ev->v = xcalloc(16, sizeof(*ev->v));
    while (*line && ev->n < 16)
        ev->v[ev->n++].name = xstrdup(script_word(&line));
    script_post(s, ev);
}

/* vault open, or why it is locked */
static void vault(struct script *s, char *line)
{
    struct ev_vault *ev = ev_new(EV_VAULT);

    ev->passphrase = true;
    ev->locked = strcmp(line, "open") == 0 ? NULL : xstrdup(line);
    script_post(s, ev);
}

const struct script_verb script_form_verbs[] = {
    {"tool", tool_line}, {"template", template_line}, {"model", model_line}, {"key", key_line},
    {"repokey", repokey_line}, {"named", named_line}, {"var", var_line}, {"kept", kept_line},
    {"preset", preset_line}, {"projects", projects}, {"vault", vault}, {NULL, NULL}};
