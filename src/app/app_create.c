/* What may be asked of a new sandbox, and with which tools. */
#include "app_priv.h"

#include <cct/jobs/pair.h>
#include <cct/keys.h>
#include <cct/model/env_file.h>
#include <cct/model/pair.h>
#include <cct/model/project.h>
#include <cct/util/buf.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/utf8.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- keys ----------------------------------------------------------------------- */

/* What the project sets; of a secret one that it is set. */
static struct kv *project_vars(const struct app *a)
{
    const struct project *p = model_project(a->model);
    size_t n = p ? p->n_vars : 0;
    struct kv *v = xcalloc(n + 1, sizeof(*v));

    for (size_t i = 0; i < n; i++)
        v[i] = (struct kv){xstrdup(p->vars[i].name),
                           xstrdup(p->vars[i].secret ? "set" : p->vars[i].value)};
    return v;
}

void app_key_check(struct app *a, const char *tool, const char *model, const struct kv *env,
                   struct key_check *out)
{
    const struct tool *t = tools_find(a->tools, tool);
    struct kv *vars = t ? project_vars(a) : NULL;
    const char *needs[TOOL_NAMES] = {NULL};
    struct key_need n = {.label = t ? t->label : tool, .needs = needs, .own = env, .vars = vars};

    if (t) {
        app_needs(t, model, needs);
        n.needs_env = tool_needs_env(t, model);
    }
    keys_preflight(&a->at, &n, out);
    keys_env_free(vars);
}

/* Provider whose key the tool lacks, or its variable; new string, NULL when it lacks none. */
static char *missing_key(struct app *a, const struct tool *t)
{
    struct key_check c;
    char *missing = NULL;

    app_key_check(a, t->name, NULL, NULL, &c);
    if (c.state == KEY_LACKS)
        missing = xstrdup(c.provider ? c.provider : c.variable);
    key_check_release(&c);
    return missing;
}

/* --- check ---------------------------------------------------------------------- */

static bool name_taken(const struct app *a, const char *name)
{
    for (size_t i = 0; i < a->model->n_sandboxes; i++) {
        const struct sandbox *s = &a->model->sandboxes[i];
        bool live = s->state != SB_KILLED && !(s->state == SB_ERROR && !s->vm_up);

        if (live && str_eq(s->name, name))
            return true;
    }
    return false;
}

static int check_one_name(const struct app *a, const char *name, struct err *e)
{
    if (!sandbox_name_ok(name))
        return err_set(e, ERR_INVALID, "the name \"%.70s\" is not possible: 1 to 64 of the "
                       "characters A-Z a-z 0-9 _ -", name);
    if (name_taken(a, name))
        return err_set(e, ERR_INVALID, "the name \"%s\" is taken by a sandbox that lives; choose "
                       "another", name);
    return 0;
}

/* Of each copy: all or none of the names can be had. */
static int check_name(const struct app *a, const struct app_create *c, struct err *e)
{
    int rc = 0;

    if (!c->name || !*c->name)
        return 0;
    for (int i = 1; rc == 0 && i <= (c->copies > 1 ? c->copies : 1); i++) {
        char *name = app_copy_name(c, i);

        rc = check_one_name(a, name, e);
        free(name);
    }
    return rc;
}

static int unknown_tool(const struct app *a, const char *name, struct err *e)
{
    const char *names[64];
    size_t n = 0;
    int near;

    for (const struct tool *t; n < 64 && (t = tools_at(a->tools, n)); n++)
        names[n] = t->name;
    near = str_nearest(name, names, n);
    return err_set(e, ERR_INVALID, "there is no tool \"%.60s\"%s%s%s", name,
                   near >= 0 ? "; did you mean \"" : "", near >= 0 ? names[near] : "",
                   near >= 0 ? "\"?" : "");
}

static int check_env(const struct kv *env, struct err *e)
{
    for (; env && env->k; env++)
        if (!env_name_ok(env->k))
            return err_set(e, ERR_INVALID, "the variable name \"%.60s\" is not possible: letters, "
                           "digits and _", env->k);
    return 0;
}

static int check_tool(struct app *a, const struct app_create *c, const struct tool *t,
                      const char **field, struct err *e)
{
    struct app_key_look key;
    bool unread;
    struct kv *env;

    *field = "tool";
    if (!t)
        return unknown_tool(a, c->tool ? c->tool : "", e);
    if (t->local_only && a->model->account && !a->model->local)
        return err_set(e, ERR_INVALID, "the tool \"%s\" runs with the local provider only: start "
                       "with --local", t->name);
    if (c->command && !str_eq(t->adapter, "shell"))
        return err_set(e, ERR_INVALID, "a command can be given to the tool \"shell\" only");
    *field = "key";
    env = app_given_env(a, c, &unread);
    app_key_look(a, t->name, c->model, env, &key);
    keys_env_free(env);
    if (key.state != APP_KEY_BAD || unread) /* a file that is not read yet may give it */
        return 0;
    return err_set(e, ERR_AUTH, "%s", key.text);
}

int app_check_keys_of(struct app *a, const struct cmd_create *q, struct err *e)
{
    struct app_key_look key;

    for (int i = 0; i < (q->pair ? PAIR_ROLES : 1); i++) {
        app_key_look(a, q->pair ? q->pair->side[i].tool : q->tool,
                     q->pair ? q->pair->side[i].model : q->model, q->env, &key);
        if (key.state == APP_KEY_BAD)
            return err_set(e, ERR_AUTH, "%s", key.text);
    }
    return 0;
}

static int check_pair(struct app *a, const struct app_create *c, const char **field, struct err *e)
{
    static const char *const fields[PAIR_ROLES] = {"designer", "checker"};
    struct app_create one = *c;
    size_t used = c->prompt ? strlen(c->prompt) : 0;

    *field = "prompt";
    if (!used)
        return err_set(e, ERR_INVALID, "a pair wants a task to work at");
    *field = "rounds";
    if (c->pair->rounds < 0 || c->pair->rounds > PAIR_MAX_ROUNDS)
        return err_set(e, ERR_INVALID, "a pair works for 1 to %d rounds", PAIR_MAX_ROUNDS);
    for (int i = 0; i < PAIR_ROLES; i++) {
        const struct tool *t = c->pair->side[i].tool ? tools_find(a->tools, c->pair->side[i].tool)
                                                     : NULL;
        const char *name, *own = c->pair->side[i].prompt;
        char **words = NULL;
        int rc;

        one.tool = c->pair->side[i].tool;
        rc = check_tool(a, &one, t, &name, e);
        *field = fields[i];
        if (rc == 0)
            words = pair_tool_command(t, c->pair->side[i].model, NULL, NULL, e);
        if (rc == 0 && !words)
            rc = e->code;
        str_list_free(words);
        if (rc)
            return rc;
        /* what the other one says is told with them */
        if (used + (own ? strlen(own) : 0) > LIM_MESSAGE_BYTES / 2)
            return err_set(e, ERR_INVALID, "task and instructions of the %s are too long: at most "
                           "%u bytes", fields[i], LIM_MESSAGE_BYTES / 2);
    }
    return 0;
}

int app_check_create(struct app *a, const struct app_create *c, const char **field, struct err *e)
{
    const struct tool *t = c->tool ? tools_find(a->tools, c->tool) : NULL;
    size_t len = c->prompt ? strlen(c->prompt) : 0;
    int rc;

    *field = "copies";
    if (c->copies < 0 || c->copies > APP_COPIES_MAX)
        return err_set(e, ERR_INVALID, "%d copies are not possible: 1 to %d", c->copies,
                       APP_COPIES_MAX);
    *field = "name";
    rc = check_name(a, c, e);
    if (rc == 0)
        rc = c->pair ? check_pair(a, c, field, e) : check_tool(a, c, t, field, e);
    if (rc)
        return rc;
    *field = "timeout";
    if (c->timeout_s < 0 || c->timeout_s > LIM_TIMEOUT_MAX_S)
        return err_set(e, ERR_INVALID, "the timeout of %d s is not possible: 1 second to 24 hours",
                       c->timeout_s);
    *field = "prompt";
    if (len > LIM_MESSAGE_BYTES)
        return err_set(e, ERR_INVALID, "the prompt is too long: %zu bytes, at most %u", len,
                       LIM_MESSAGE_BYTES);
    if (len && !utf8_valid(c->prompt, len))
        return err_set(e, ERR_INVALID, "the prompt is not text in UTF-8");
    *field = "env";
    rc = check_env(c->env, e);
    if (rc == 0)
        rc = app_check_choices(a, c, t, field, e);
    if (rc == 0)
        *field = NULL;
    return rc;
}

/* --- create --------------------------------------------------------------------- */

/* What the project says to all of its agents stands above the role's instructions. */
static char *instructions(const struct app *a, const char *own, enum pair_role role)
{
    const struct project *project = model_project(a->model);
    const char *all = project && project->prompt && *project->prompt ? project->prompt : NULL;

    if (!own || !*own)
        own = all ? pair_default_prompt(role) : NULL;
    return all ? xasprintf("%s\n\n%s", all, own) : xstrdup(own);
}

static struct pair *new_pair(const struct app *a, const struct app_create *c)
{
    struct pair *p = xcalloc(1, sizeof(*p));

    for (int i = 0; i < PAIR_ROLES; i++) {
        struct pair_side *side = &p->side[i];
        const char *model = c->pair->side[i].model;

        side->tool = xstrdup(c->pair->side[i].tool);
        side->model = model && *model ? xstrdup(model) : NULL;
        side->prompt = instructions(a, c->pair->side[i].prompt, (enum pair_role)i);
        side->cost_usd = (double)NAN;
    }
    p->rounds = c->pair->rounds ? c->pair->rounds : PAIR_ROUNDS;
    p->task = xstrdup(c->prompt);
    return p;
}

static struct cmd *create_of(struct app *a, enum cmd_type type, const struct app_create *c)
{
    struct cmd *m = app_cmd(a, type);
    struct cmd_create *q = m->create = xcalloc(1, sizeof(*q));

    q->tool = xstrdup(c->pair ? "pair" : c->tool);
    q->pair = c->pair ? new_pair(a, c) : NULL;
    q->template_id = xstrdup(c->template_id);
    q->prompt = xstrdup(c->prompt);
    q->command = xstrdup(c->command);
    q->timeout_s = c->timeout_s;
    q->pause_at_end = c->pause_at_end;
    q->in_turn = c->copies > 1;
    q->only_try = c->only_try;
    app_take_choices(a, c, q);
    return m;
}

static struct cmd *create_named(struct app *a, const struct app_create *c, char *take_name,
                                bool when_ready)
{
    struct cmd *m = create_of(a, CMD_CREATE, c);

    m->create->name = take_name;
    m->create->when_ready = when_ready;
    return m;
}

uint64_t app_create(struct app *a, const struct app_create *c, bool done_when_ready)
{
    const char *field;
    struct err e = {0};
    struct cmd *m;
    uint64_t req;

    if (app_check_create(a, c, &field, &e) != 0)
        return app_refuse(a, &e);
    m = create_named(a, c, xstrdup(c->name), done_when_ready);
    req = m->m.req_id;
    app_files_post(a, c, &m, 1);
    return req;
}

size_t app_create_copies(struct app *a, const struct app_create *c, bool done_when_ready,
                         uint64_t reqs[APP_COPIES_MAX])
{
    struct app_create all = *c;
    size_t n = c->copies > 1 ? (size_t)c->copies : 1;
    char *base = n > 1 && (!c->name || !*c->name) ? sandbox_new_name() : NULL;
    struct cmd *made[APP_COPIES_MAX];
    const char *field;
    struct err e = {0};

    if (base)
        all.name = base;
    if (n == 1 || app_check_create(a, &all, &field, &e) != 0) {
        n = 1;
        reqs[0] = e.code ? app_refuse(a, &e) : app_create(a, c, done_when_ready);
    } else {
        for (size_t i = 0; i < n; i++) {
            made[i] = create_named(a, &all, app_copy_name(&all, (int)i + 1), done_when_ready);
            reqs[i] = made[i]->m.req_id;
        }
        app_files_post(a, c, made, n);
    }
    free(base);
    return n;
}

uint64_t app_pair_in(struct app *a, uint64_t sandbox, const struct app_create *c)
{
    const char *field;
    struct err e = {0};
    struct cmd *m;
    uint64_t req;

    if (app_check_create(a, c, &field, &e) != 0)
        return app_refuse(a, &e);
    m = create_of(a, CMD_PAIR, c);
    m->sandbox = sandbox;
    m->n = PAIR_BEGIN;
    req = m->m.req_id;
    app_files_post(a, c, &m, 1);
    return req;
}

/* --- tools ---------------------------------------------------------------------- */

void app_tools_release(struct app *a)
{
    for (size_t i = 0; i < a->tool_list.n; i++)
        free(a->tool_list.v[i].missing_key);
    ARR_RELEASE(&a->tool_list);
}

const struct app_tool *app_tools(struct app *a)
{
    const struct tool *t;

    app_tools_release(a);
    for (size_t i = 0; (t = tools_at(a->tools, i)); i++) {
        if (str_eq(t->adapter, "pair"))
            continue; /* it is asked for by its roles */
        *ARR_PUSH(&a->tool_list) = (struct app_tool){.name = t->name,
                                                     .label = t->label,
                                                     .template_id = t->template_id,
                                                     .model = t->model_flag ? t->model : NULL,
                                                     .local_only = t->local_only,
                                                     .can_ask = t->ask_argv != NULL,
                                                     .asks = t->asks,
                                                     .takes_model = t->model_flag != NULL,
                                                     .takes_prompt = t->prompt_flag || t->prompt_file,
                                                     .takes_skills = t->skills_dir != NULL,
                                                     .missing_key = missing_key(a, t)};
    }
    (void)ARR_PUSH(&a->tool_list); /* the end */
    return a->tool_list.v;
}
