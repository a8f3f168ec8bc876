/* What else may be chosen for a new sandbox: model, repository, and files of this machine,
 * which others read (app_files.c). */
#include "app_priv.h"

#include <cct/model/project.h>
#include <cct/model/repo.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/utf8.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_BYTES = 200 };

char *app_copy_name(const struct app_create *c, int i)
{
    return c->copies > 1 ? xasprintf("%s-%d", c->name, i) : xstrdup(c->name);
}

/* --- the project's part ------------------------------------------------------------------ */

/* What is said with the sandbox stands in the place of the project's prompt; a tool that can
 * take none goes without. */
static const char *prompt_of(const struct app *a, const struct app_create *c, const struct tool *t)
{
    const struct project *p = model_project(a->model);

    if (c->system_prompt && *c->system_prompt)
        return c->system_prompt;
    return p && t && (t->prompt_flag || t->prompt_file) ? p->prompt : NULL;
}

const char **app_skills_of(const struct app *a, const struct app_create *c)
{
    const struct tool *t = c->tool ? tools_find(a->tools, c->tool) : NULL;
    const struct project *p = model_project(a->model);
    const char **all = xcalloc(1, sizeof(*all));
    size_t n = 0;

    for (char **s = p && t && t->skills_dir ? p->skills : NULL; s && *s; s++) {
        all = xrealloc(all, (n + 2) * sizeof(*all));
        all[n++] = *s;
    }
    for (const char *const *s = c->skills; s && *s; s++) {
        all = xrealloc(all, (n + 2) * sizeof(*all));
        all[n++] = *s;
    }
    all[n] = NULL;
    return all;
}

void app_choice_fill(struct app_create *n, const struct project_choice *c)
{
    bool other = n->tool && c->tool && !str_eq(n->tool, c->tool); /* its model is not this one's */

    n->tool = n->tool ? n->tool : c->tool;
    n->model = n->model || other ? n->model : c->model;
    n->template_id = n->template_id || other ? n->template_id : c->template_id;
    n->prompt = n->prompt ? n->prompt : c->prompt;
    n->timeout_s = n->timeout_s ? n->timeout_s : c->timeout_s;
    n->copies = n->copies ? n->copies : c->copies;
    if (!n->repo && c->repo) { /* a branch belongs to its repository */
        n->repo = c->repo;
        n->branch = n->branch ? n->branch : c->branch;
    }
}

/* --- checks ---------------------------------------------------------------------------- */

static int check_word(const char *what, const char *s, struct err *e)
{
    size_t n = strlen(s);

    for (const char *p = s; *p; p++)
        if (*p <= ' ' || *p == 0x7f)
            n = 0;
    if (n && n <= WORD_BYTES && *s != '-')
        return 0;
    return err_set(e, ERR_INVALID, "the %s \"%.60s\" is not possible: one word without blanks that "
                   "does not begin with -", what, s);
}

static int check_model(const char *model, const struct tool *t, struct err *e)
{
    const char *slash = strchr(model, '/');

    if (!t->model_flag)
        return err_set(e, ERR_INVALID, "%s takes no model", t->label);
    if (check_word("model", model, e) != 0)
        return e->code;
    if (t->qualified && (!slash || slash == model || !slash[1]))
        return err_set(e, ERR_INVALID, "the model \"%.60s\" wants its provider in front: write "
                       "PROVIDER/NAME for %s", model, t->label);
    return 0;
}

static int check_repo(const struct app_create *c, const char **field, struct err *e)
{
    struct repo r;

    *field = "repo";
    if (c->repo && *c->repo) {
        if (repo_parse(c->repo, &r, e) != 0)
            return e->code;
        repo_release(&r);
    }
    *field = "branch";
    if (!c->branch || !*c->branch)
        return 0;
    if (!c->repo || !*c->repo)
        return err_set(e, ERR_INVALID, "a branch wants a repository: which one?");
    return repo_branch_check(c->branch, e);
}

static int check_ask(const char *ask, const struct tool *t, struct err *e)
{
    if (!str_eq(ask, "yes") && !str_eq(ask, "no"))
        return err_set(e, ERR_INVALID, "asking is yes or no, not \"%.60s\"", ask);
    if (str_eq(ask, "yes") && !t->ask_argv)
        return err_set(e, ERR_INVALID, "%s cannot ask for permissions; choose another tool, or "
                       "give it an ask_command in tools.conf", t->label);
    return 0;
}

static int check_prompt(const char *prompt, const struct tool *t, struct err *e)
{
    size_t len = strlen(prompt);

    if (!t->prompt_flag && !t->prompt_file)
        return err_set(e, ERR_INVALID, "%s takes no system prompt", t->label);
    if (len > LIM_MESSAGE_BYTES)
        return err_set(e, ERR_INVALID, "the system prompt is too long: %zu bytes, at most %u", len,
                       LIM_MESSAGE_BYTES);
    return utf8_valid(prompt, len)
               ? 0
               : err_set(e, ERR_INVALID, "the system prompt is not text in UTF-8");
}

int app_check_choices(const struct app *a, const struct app_create *c, const struct tool *t,
                      const char **field, struct err *e)
{
    static char label[] = "a pair"; /* its sides have their own */
    static const struct tool pair = {.label = label};
    int rc = 0;

    t = t ? t : &pair;
    *field = "model";
    if (c->model && *c->model)
        rc = check_model(c->model, t, e);
    if (rc)
        return rc;
    *field = "template";
    if (c->template_id && *c->template_id)
        rc = check_word("template", c->template_id, e);
    if (rc == 0)
        rc = check_repo(c, field, e);
    if (rc)
        return rc;
    *field = "ask";
    if (c->ask && *c->ask)
        rc = check_ask(c->ask, t, e);
    if (rc)
        return rc;
    *field = "system_prompt";
    if (c->system_prompt && *c->system_prompt)
        rc = check_prompt(c->system_prompt, t, e);
    if (rc)
        return rc;
    *field = "skills";
    if (!t->skills_dir && c->skills && *c->skills)
        return err_set(e, ERR_INVALID, "%s takes no skills", t->label);
    return app_files_check(a, c, field, e);
}

/* --- into the command -------------------------------------------------------------------- */

static void put(struct kv **all, size_t *n, const struct kv *one)
{
    size_t at = 0;

    while (at < *n && !str_eq((*all)[at].k, one->k))
        at++;
    if (at == *n) {
        *all = xrealloc(*all, (*n + 2) * sizeof(**all)); /* pointers only: no value moves */
        (*all)[at].k = xstrdup(one->k);
        (*all)[++*n] = (struct kv){NULL, NULL};
    } else {
        secret_wipe((*all)[at].v, strlen((*all)[at].v));
        free((*all)[at].v);
    }
    (*all)[at].v = xstrdup(one->v ? one->v : "");
}

struct kv *app_join_env(const struct kv *below, const struct kv *above)
{
    struct kv *all = xcalloc(1, sizeof(*all));
    size_t n = 0;

    for (; below && below->k; below++)
        put(&all, &n, below);
    for (; above && above->k; above++)
        put(&all, &n, above);
    return all;
}

static char *word(const char *s)
{
    return s && *s ? xstrdup(s) : NULL;
}

void app_take_choices(const struct app *a, const struct app_create *c, struct cmd_create *q)
{
    const struct tool *t = tools_find(a->tools, c->tool);

    q->model = word(c->model);
    q->repo = word(c->repo);
    q->branch = word(c->branch);
    q->system_prompt = word(prompt_of(a, c, t));
    q->ask = word(c->ask);
    q->env = app_join_env(NULL, c->env);
}
