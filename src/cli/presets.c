/* cc-tui presets: choices for a new sandbox under a name, of the current project or, with
 * --all, of every project. What `projects set` says of a project's defaults goes for these. */
#include "cli_priv.h"

#include <cct/model/project.h>
#include <cct/util/json.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

/* --- choices ---------------------------------------------------------------------------- */

static void put(char **field, const char *value)
{
    str_set(field, *value ? value : NULL);
}

static int put_time(struct project_choice *d, const char *value, struct err *e)
{
    int64_t s = 0;

    if (*value && (!str_to_seconds(value, &s) || s < 1 || s > LIM_TIMEOUT_MAX_S))
        return err_set(e, ERR_INVALID, "timeout is a time such as 90, 15m or 1h30m, at most %d s, "
                       "not '%.60s'", LIM_TIMEOUT_MAX_S, value);
    d->timeout_s = (int)s;
    return 0;
}

static int put_end(struct project_choice *d, const char *value, struct err *e)
{
    bool pause = str_eq(value, "pause");

    if (*value && !pause && !str_eq(value, "kill"))
        return err_set(e, ERR_INVALID, "at_end is pause or kill, not '%.60s'", value);
    d->at_end_known = *value != '\0';
    d->pause_at_end = pause;
    return 0;
}

static int put_copies(struct project_choice *d, const char *value, struct err *e)
{
    int64_t n = 0;

    if (*value && !str_to_i64(value, 1, APP_COPIES_MAX, &n))
        return err_set(e, ERR_INVALID, "copies is a number from 1 to %d, not '%.60s'",
                       APP_COPIES_MAX, value);
    d->copies = (int)n;
    return 0;
}

int cli_put_text(char **field, const char *value, struct err *e)
{
    char *text = *value == '@' ? cli_text_file(value + 1, e) : cli_text_arg(value, e);

    if (!text)
        return e->code;
    put(field, text);
    free(text);
    return 0;
}

bool cli_put_choice(struct project_choice *d, const char *name, const char *value, int *rc,
                    struct err *e)
{
    const struct {
        const char *name;
        char **text;
    } texts[] = {{"tool", &d->tool},
                 {"model", &d->model},
                 {"template", &d->template_id},
                 {"repo", &d->repo},
                 {"branch", &d->branch}};

    *rc = 0;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (str_eq(name, texts[i].name)) {
            put(texts[i].text, value);
            return true;
        }
    if (str_eq(name, "timeout"))
        *rc = put_time(d, value, e);
    else if (str_eq(name, "at_end"))
        *rc = put_end(d, value, e);
    else
        return false;
    return true;
}

void cli_choice_json(struct jw *w, const struct project_choice *d)
{
    jw_str(w, "tool", d->tool);
    jw_str(w, "model", d->model);
    jw_str(w, "template", d->template_id);
    jw_str(w, "repo", d->repo);
    jw_str(w, "branch", d->branch);
    if (d->prompt)
        jw_str(w, "prompt", d->prompt);
    if (d->timeout_s)
        jw_i64(w, "timeout", d->timeout_s);
    if (d->copies)
        jw_i64(w, "copies", d->copies);
    if (d->at_end_known)
        jw_str(w, "atEnd", d->pause_at_end ? "pause" : "kill");
}

void cli_choice_text(const char *lead, const struct project_choice *d)
{
    const struct {
        const char *name, *value;
    } t[] = {{"tool", d->tool}, {"model", d->model},   {"template", d->template_id},
             {"repo", d->repo}, {"branch", d->branch}, {"prompt", d->prompt}};

    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
        if (t[i].value)
            cli_out("%s%s = %s\n", lead, t[i].name, t[i].value);
    if (d->timeout_s)
        cli_out("%stimeout = %d\n", lead, d->timeout_s);
    if (d->at_end_known)
        cli_out("%sat_end = %s\n", lead, d->pause_at_end ? "pause" : "kill");
    if (d->copies)
        cli_out("%scopies = %d\n", lead, d->copies);
}

/* --- list ------------------------------------------------------------------------------- */

static const char *level_of(const struct project_preset *p)
{
    return p->of_user ? "user" : "project";
}

void cli_preset_json(struct jw *w, const struct project_preset *p)
{
    jw_obj(w, NULL);
    jw_str(w, "name", p->name);
    jw_str(w, "level", level_of(p));
    cli_choice_json(w, &p->c);
    jw_end(w);
}

void cli_preset_text(const struct project_preset *p)
{
    cli_out("preset %s (%s)\n", p->name, level_of(p));
    cli_choice_text("    ", &p->c);
}

int cli_presets_ls(struct cli *c)
{
    struct buf b = BUF_INIT;
    struct cli_app a;
    struct err e = {0};
    const struct project *p;
    struct jw w;

    if (cli_app_open_keys(&a, c, false, &e) != 0)
        return cli_fail(&e);
    p = model_project(app_model(a.app));
    jw_init(&w, &b);
    jw_arr(&w, NULL);
    for (size_t i = 0; i < p->n_presets; i++)
        if (cli_json(c))
            cli_preset_json(&w, &p->presets[i]);
        else if (cli_has(c, CLI_QUIET))
            cli_out("%s\n", p->presets[i].name);
        else
            cli_preset_text(&p->presets[i]);
    jw_end(&w);
    if (cli_json(c))
        cli_out_json(&b);
    else if (!p->n_presets)
        cli_say(c, "the project %s has no preset: cc-tui presets save NAME SETTING=VALUE... or "
                "Alt-w in the form keep one", p->name);
    buf_release(&b);
    cli_app_close(&a);
    return CLI_OK;
}

/* --- save, remove -------------------------------------------------------------------------- */

static const struct project_preset *find(const struct project *p, const char *name, bool of_user)
{
    for (size_t i = 0; i < p->n_presets; i++)
        if (p->presets[i].of_user == of_user && str_eq(p->presets[i].name, name))
            return &p->presets[i];
    return NULL;
}

static int put_setting(struct project_choice *d, const char *arg, struct err *e)
{
    const char *eq = strchr(arg, '=');
    char *name = eq ? xstrndup(arg, (size_t)(eq - arg)) : NULL;
    int rc = 0;

    if (name && str_eq(name, "prompt"))
        rc = cli_put_text(&d->prompt, eq + 1, e);
    else if (name && str_eq(name, "copies"))
        rc = put_copies(d, eq + 1, e);
    else if (!name || !cli_put_choice(d, name, eq + 1, &rc, e))
        rc = err_set(e, ERR_INVALID, "a preset holds tool, model, template, repo, branch, timeout, "
                     "at_end, copies or prompt with =VALUE, not '%.60s'", arg);
    free(name);
    return rc;
}

int cli_presets_save(struct cli *c)
{
    const struct project_preset *old;
    struct project_choice d = {0};
    struct cli_app a;
    struct err e = {0};
    uint64_t req = 0;
    int rc = 0, status;

    if (!cli_open_to_change(&a, c, NULL, &status))
        return status;
    old = find(model_project(app_model(a.app)), c->args[0], cli_has(c, CLI_ALL));
    if (old)
        project_choice_copy(&d, &old->c);
    for (int i = 1; rc == 0 && i < c->n_args; i++)
        rc = put_setting(&d, c->args[i], &e);
    if (rc == 0)
        req = app_preset(a.app, c->args[0], cli_has(c, CLI_ALL), &d);
    project_choice_release(&d);
    if (rc == 0)
        return cli_end_change(&a, c, req, "kept; cc-tui new --preset NAME begins with it");
    cli_app_close(&a);
    return cli_fail(&e);
}

int cli_presets_rm(struct cli *c)
{
    struct cli_app a;
    int status;

    if (!cli_open_to_change(&a, c, NULL, &status))
        return status;
    return cli_end_change(&a, c, app_preset(a.app, c->args[0], cli_has(c, CLI_ALL), NULL),
                          "removed");
}
