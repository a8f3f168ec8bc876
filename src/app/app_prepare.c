/* What a form shows before a sandbox is made: templates that can be had, how the keys stand,
 * models and their prices. Asked for when the form opens; the answers are kept. */
#include "app_priv.h"

#include <cct/model/repo.h>
#include <cct/text/clean.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEMPLATES_MAX = 500 };

/* --- templates ------------------------------------------------------------------------ */

static void templates_release(struct app_templates *t)
{
    for (size_t i = 0; i < t->n; i++) {
        free(t->v[i].name);
        free(t->v[i].id);
        free(t->v[i].status);
    }
    free(t->v);
    free(t->error);
    *t = (struct app_templates){0};
}

static char *clean_word(const char *s)
{
    return clean_line_dup(s ? s : "", 80);
}

/* "team/claude:tag" -> "claude:tag" */
static char *short_name(const struct cJSON *j)
{
    const struct cJSON *first = json_first(json_get(j, "names"));
    const char *name = first ? json_str_of(first) : NULL;
    const char *slash = name ? strrchr(name, '/') : NULL;

    return clean_word(slash ? slash + 1 : name && *name ? name : json_str(j, "templateID", ""));
}

/* The build that `buildID` names is the last good one, whatever became of a newer one. */
static bool is_ready(const struct cJSON *j, const char *status)
{
    const char *build = json_str(j, "buildID", "");
    bool none = strspn(build, "0-") == strlen(build);

    return str_eq(status, "ready") || str_eq(status, "uploaded") || (!*status && !none) ||
           (str_eq(status, "error") && !none && json_i64(j, "buildCount", 0) > 1 &&
            json_i64(j, "spawnCount", 0) > 0);
}

static void add_template(struct app_templates *t, const char *line, size_t len)
{
    struct cJSON *j = json_parse(line, len, NULL);
    struct app_template one = {.name = short_name(j),
                               .id = clean_word(json_str(j, "templateID", "")),
                               .status = clean_word(json_str(j, "buildStatus", "")),
                               .cpu_count = (int)json_i64(j, "cpuCount", 0),
                               .memory_mb = (int)json_i64(j, "memoryMB", 0)};

    one.ready = is_ready(j, one.status);
    t->n_ready += one.ready;
    t->n_failed += !one.ready && str_eq(one.status, "error");
    t->n_building += !one.ready && !str_eq(one.status, "error");
    t->v[t->n++] = one;
    json_free(j);
}

static int by_use(const void *a, const void *b)
{
    const struct app_template *x = a, *y = b;

    return x->ready != y->ready ? (int)y->ready - (int)x->ready : strcmp(x->name, y->name);
}

static void templates_come(struct app *a, const struct err *e)
{
    struct prepared *p = &a->prepared;
    struct app_templates t = {.known = !e->code, .error = e->code ? xstrdup(e->text) : NULL};
    const char *at = buf_str(&p->lines), *nl;

    t.v = xcalloc(TEMPLATES_MAX, sizeof(*t.v));
    for (; !e->code && t.n < TEMPLATES_MAX && (nl = strchr(at, '\n')); at = nl + 1)
        add_template(&t, at, (size_t)(nl - at));
    if (t.n)
        qsort(t.v, t.n, sizeof(*t.v), by_use);
    if (e->code && p->templates.known) { /* an older list is better than none */
        free(p->templates.error);
        p->templates.error = t.error;
        free(t.v);
    } else {
        templates_release(&p->templates);
        p->templates = t;
    }
    buf_release(&p->lines);
    p->templates_req = 0;
}

static void on_line(void *ctx, const char *json, size_t len)
{
    struct app *a = ctx;

    buf_add(&a->prepared.lines, json, len);
}

const struct app_templates *app_template_list(const struct app *a)
{
    return &a->prepared.templates;
}

const struct app_template *app_template_find(const struct app *a, const char *name)
{
    const struct app_templates *t = &a->prepared.templates;

    for (size_t i = 0; name && i < t->n; i++)
        if (str_eq(t->v[i].name, name) || str_eq(t->v[i].id, name))
            return &t->v[i];
    return NULL;
}

/* --- keys --------------------------------------------------------------------------------- */

size_t app_needs(const struct tool *t, const char *model, const char *needs[TOOL_NAMES])
{
    return tool_provider_names(tool_needs(t, model && *model ? model : NULL), needs);
}

/* Whether it opens, only the net thread can tell; asked once. */
static const struct key_asked *ask_key(struct app *a, unsigned bits)
{
    struct prepared *p = &a->prepared;
    struct key_asked *k;
    struct cmd *c;

    for (size_t i = 0; i < p->keys.n; i++)
        if (p->keys.v[i].bits == bits)
            return &p->keys.v[i];
    k = ARR_PUSH(&p->keys);
    k->bits = bits;
    if (!a->online)
        return k;
    c = app_cmd(a, CMD_KEY_LOOK);
    c->n = bits;
    k->req = app_post(a, c);
    return k;
}

/* A question without an answer yet is kept, about nothing: its answer is nobody else's. */
void app_prepare_keys_changed(struct app *a)
{
    struct prepared *p = &a->prepared;
    size_t keep = 0;

    for (size_t i = 0; i < p->keys.n; i++)
        if (p->keys.v[i].req) {
            p->keys.v[i].bits = 0;
            p->keys.v[keep++] = p->keys.v[i];
        }
    p->keys.n = keep;
}

/* What the order of keys says, then what opening it said. */
static void say(struct app *a, const struct key_check *c, unsigned bits, struct app_key_look *out)
{
    const struct key_asked *k;

    str_copy(out->text, sizeof(out->text), c->text);
    out->state = c->state == KEY_READY       ? APP_KEY_GOOD
                 : c->state < KEY_LACKS      ? APP_KEY_HIDES
                                             : APP_KEY_BAD;
    out->hides = out->state == APP_KEY_HIDES;
    if (out->state == APP_KEY_BAD || (c->source != KEY_PROJECT && c->source != KEY_USER))
        return;
    k = ask_key(a, bits);
    if (k->req) {
        out->state = APP_KEY_ASKING;
        snprintf(out->text, sizeof(out->text), "%.480s (being opened)", c->text);
    } else if (k->err.code) {
        out->state = APP_KEY_BAD;
        snprintf(out->text, sizeof(out->text), "the %s key %s (%s) cannot be used: %.300s",
                 c->provider, c->mask, key_source_name(c->source), k->err.text);
    }
}

void app_key_look(struct app *a, const char *tool, const char *model, const struct kv *env,
                  struct app_key_look *out)
{
    const struct tool *t = tools_find(a->tools, tool);
    const char *needs[TOOL_NAMES];
    struct key_check c;

    *out = (struct app_key_look){0};
    if (!t || (!app_needs(t, model, needs) && !tool_needs_env(t, model && *model ? model : NULL))) {
        str_copy(out->text, sizeof(out->text), "no key is needed");
        return;
    }
    app_key_check(a, tool, model && *model ? model : NULL, env, &c);
    say(a, &c, tool_needs(t, model && *model ? model : NULL), out);
    key_check_release(&c);
}

void app_repo_key_look(struct app *a, const char *repo, const struct kv *env,
                       struct app_key_look *out)
{
    static const char *const needs[] = {"github", NULL};
    struct key_need n = {.label = "the checkout", .needs = needs, .own = env};
    struct key_check c;
    struct repo where;

    *out = (struct app_key_look){0};
    if (!repo || !*repo || repo_parse(repo, &where, NULL) != 0)
        return;
    if (where.github) {
        keys_preflight(&a->at, &n, &c);
        if (c.state == KEY_LACKS) { /* many need none */
            out->state = APP_KEY_GOOD;
            str_copy(out->text, sizeof(out->text), "no github key: public ones alone");
        } else {
            say(a, &c, TOOL_GITHUB, out);
        }
        key_check_release(&c);
    }
    repo_release(&where);
}

void app_create_keys(struct app *a, const struct app_create *c, struct app_key_look *agent,
                     struct app_key_look *repo)
{
    bool unread;
    struct kv *env = app_given_env(a, c, &unread);

    app_key_look(a, c->tool, c->model, env, agent);
    app_repo_key_look(a, c->repo, env, repo);
    keys_env_free(env);
    if (unread && agent->state == APP_KEY_BAD) { /* it may give what lacks */
        agent->state = APP_KEY_ASKING;
        str_copy(agent->text, sizeof(agent->text), "looked for in the env file");
    }
}

/* --- models --------------------------------------------------------------------------------- */

static void models_release(struct app *a)
{
    for (size_t i = 0; i < a->prepared.models.n; i++)
        free(a->prepared.models.v[i].word);
    ARR_CLEAR(&a->prepared.models);
}

static void add_model(struct app *a, char *take_word, const struct model_info *m)
{
    for (size_t i = 0; i < a->prepared.models.n; i++)
        if (str_eq(a->prepared.models.v[i].word, take_word)) {
            free(take_word);
            return;
        }
    *ARR_PUSH(&a->prepared.models) = (struct app_model){.word = take_word,
                                                        .label = m ? m->label : NULL,
                                                        .date = m ? m->date : NULL,
                                                        .input = m ? m->input : NAN,
                                                        .output = m ? m->output : NAN};
}

const struct app_model *app_models(struct app *a, const char *tool)
{
    const struct tool *t = tools_find(a->tools, tool);
    const struct model_info *m;

    models_release(a);
    if (t && t->model_flag && t->model)
        add_model(a, xstrdup(t->model), models_find(a->models, t->model));
    for (size_t i = 0; t && t->model_flag && (m = models_for(a->models, t, i)); i++)
        add_model(a, model_word(t, m), m);
    (void)ARR_PUSH(&a->prepared.models);
    return a->prepared.models.v;
}

/* --- asking ----------------------------------------------------------------------------------- */

void app_prepare(struct app *a)
{
    struct prepared *p = &a->prepared;

    app_prepare_keys_changed(a);
    app_files_forget(a);
    if (p->templates_req || !a->online)
        return;
    buf_release(&p->lines);
    p->templates_req = app_templates(a, on_line, a);
}

/* What has become ready can be chosen at once. */
static void count_ready(struct app *a, const struct ev_builds *ev)
{
    struct prepared *p = &a->prepared;
    size_t n = 0;

    for (size_t i = 0; i < ev->n; i++)
        n += ev->v[i].state == TB_READY;
    if (n != p->n_ready && p->templates.known && !p->templates_req && a->online) {
        buf_release(&p->lines);
        p->templates_req = app_templates(a, on_line, a);
    }
    p->n_ready = n;
}

bool app_prepare_take(struct app *a, const struct msg *m)
{
    struct prepared *p = &a->prepared;
    const struct ev_done *d = (const struct ev_done *)m;

    if (m->type == EV_BUILDS)
        count_ready(a, (const struct ev_builds *)m);
    if (m->type != EV_DONE || !m->req_id)
        return false;
    if (m->req_id == p->templates_req) {
        app_sink_take(a, m);
        templates_come(a, &d->err);
        return true;
    }
    for (size_t i = 0; i < p->keys.n; i++)
        if (p->keys.v[i].req == m->req_id) {
            p->keys.v[i].req = 0;
            p->keys.v[i].err = d->err;
            if (!p->keys.v[i].bits)
                ARR_REMOVE(&p->keys, i);
            return true;
        }
    return false;
}

void app_prepare_release(struct app *a)
{
    templates_release(&a->prepared.templates);
    buf_release(&a->prepared.lines);
    ARR_RELEASE(&a->prepared.keys);
    models_release(a);
    ARR_RELEASE(&a->prepared.models);
}
