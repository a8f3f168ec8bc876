/* What else may be chosen for a new sandbox: model, repository, and files of this machine.
 * They are read on the main thread because the user waits for the word on them; regular
 * files alone, of a bounded size. */
#include "app_priv.h"

#include <cct/jobs/skills.h>
#include <cct/model/env_file.h>
#include <cct/model/project.h>
#include <cct/model/repo.h>
#include <cct/util/fs.h>
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

/* --- files --------------------------------------------------------------------------- */

/* "~/x" is in the user's home; new string. */
static char *own_path(const char *path)
{
    const char *home = str_starts(path, "~/") ? getenv("HOME") : NULL;

    return home && *home ? fs_join(home, path + 2) : xstrdup(path);
}

static struct kv *read_env(const char *file, struct err *e)
{
    char *path = own_path(file);
    size_t len = 0;
    char *text = fs_read(path, ENV_FILE_BYTES, false, &len, e);
    struct kv *env = text ? env_file_parse(text, len, file, e) : NULL;

    if (text)
        secret_wipe(text, len);
    free(text);
    free(path);
    return env;
}

static int pack_skills(const char *const *skills, struct buf *out, struct err *e)
{
    char **paths;
    size_t n = 0;
    int rc;

    while (skills[n])
        n++;
    paths = xcalloc(n + 1, sizeof(*paths));
    for (size_t i = 0; i < n; i++)
        paths[i] = own_path(skills[i]);
    rc = skills_pack((const char *const *)paths, out, e);
    for (size_t i = 0; i < n; i++)
        free(paths[i]);
    free(paths);
    return rc;
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

/* The project's skills and those given; borrowed strings, the list is the caller's. */
static const char **skills_of(const struct app *a, const struct app_create *c, const struct tool *t)
{
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

static int check_skills(const struct app *a, const struct app_create *c, const struct tool *t,
                        struct err *e)
{
    struct buf out = BUF_INIT;
    const char **all;
    int rc = 0;

    if (!t->skills_dir && c->skills && *c->skills)
        return err_set(e, ERR_INVALID, "%s takes no skills", t->label);
    all = skills_of(a, c, t);
    if (*all)
        rc = pack_skills(all, &out, e);
    free(all);
    buf_release(&out);
    return rc;
}

static int check_env_file(const char *file, struct err *e)
{
    struct kv *env = read_env(file, e);

    keys_env_free(env);
    return env ? 0 : e->code;
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
    rc = check_skills(a, c, t, e);
    if (rc)
        return rc;
    *field = "env_file";
    return c->env_file && *c->env_file ? check_env_file(c->env_file, e) : 0;
}

/* --- into the command -------------------------------------------------------------------- */

static size_t count(const struct kv *v)
{
    size_t n = 0;

    while (v && v[n].k)
        n++;
    return n;
}

/* The file's variables, then those given by hand; the last of a name counts later on. */
static struct kv *join_env(struct kv *take_file, const struct kv *own)
{
    size_t n = count(take_file), m = count(own);
    struct kv *all = xcalloc(n + m + 1, sizeof(*all));

    if (n)
        memcpy(all, take_file, n * sizeof(*all));
    free(take_file);
    for (size_t i = 0; i < m; i++) {
        size_t at = 0;

        while (at < n && !str_eq(all[at].k, own[i].k))
            at++;
        if (at < n) {
            secret_wipe(all[at].v, strlen(all[at].v));
            free(all[at].v);
        } else {
            all[n++].k = xstrdup(own[i].k);
        }
        all[at].v = xstrdup(own[i].v ? own[i].v : "");
    }
    return all;
}

static char *word(const char *s)
{
    return s && *s ? xstrdup(s) : NULL;
}

int app_take_choices(const struct app *a, const struct app_create *c, struct cmd_create *q,
                     struct err *e)
{
    const struct tool *t = tools_find(a->tools, c->tool);
    struct kv *file = NULL;
    struct buf tar = BUF_INIT;
    const char **skills;
    int rc = 0;

    q->model = word(c->model);
    q->repo = word(c->repo);
    q->branch = word(c->branch);
    q->system_prompt = word(prompt_of(a, c, t));
    q->ask = word(c->ask);
    if (c->env_file && *c->env_file && !(file = read_env(c->env_file, e)))
        return e->code;
    q->env = join_env(file, c->env);
    skills = skills_of(a, c, t);
    if (*skills)
        rc = pack_skills(skills, &tar, e);
    if (rc == 0 && *skills)
        q->skills = buf_detach(&tar, &q->skills_len);
    free(skills);
    buf_release(&tar);
    return rc;
}
