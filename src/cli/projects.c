/* cc-tui projects: which there are and which is current, their settings, variables and
 * presets. */
#include "cli_priv.h"

#include <cct/config/options.h>
#include <cct/keys.h>
#include <cct/model/project.h>
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- what is there ------------------------------------------------------------------ */

static size_t live_of(const struct model *m, const char *project)
{
    size_t n = 0;

    for (size_t i = 0; i < m->n_sandboxes; i++)
        n += cli_is_up(&m->sandboxes[i]) && str_eq(m->sandboxes[i].project, project);
    return n;
}

static size_t keys_of(const struct keys_at *at, const char *id)
{
    size_t n = 0;

    for (size_t i = 0; id && at && at->stored && i < at->stored->n; i++)
        n += str_eq(at->stored->v[i].project, id) &&
             !str_eq(at->stored->v[i].provider, ST_VARIABLE);
    return n;
}

/* Why this one is current. */
static const char *chosen_by(const struct cli *c, const struct project *p)
{
    static const char *const by[] = {[OPT_USER] = "configuration", [OPT_PROJECT] = ".cc-tui",
                                     [OPT_ENV] = "variable", [OPT_FLAG] = "flag"};

    return c->project ? by[c->project_source] : p->used_at ? "used last" : "default";
}

static void ls_row(struct cli_table *t, const struct cli *c, const struct model *m,
                   const struct keys_at *at, size_t i)
{
    const struct project *p = &m->projects[i];
    char when[32] = "-";

    if (p->used_at)
        clock_format_rfc3339(when, sizeof(when), p->used_at);
    cli_table_add(t, xstrdup(p->name));
    cli_table_add(t, xstrdup(i == m->project_at ? chosen_by(c, p) : "-"));
    cli_table_add(t, xasprintf("%zu", live_of(m, p->name)));
    cli_table_add(t, xasprintf("%zu", keys_of(at, p->id)));
    cli_table_add(t, xasprintf("%zu", p->n_vars));
    cli_table_add(t, xasprintf("%.10s", when));
}

static void parts_json(struct jw *w, const struct project *p)
{
    jw_arr(w, "variables");
    for (size_t i = 0; i < p->n_vars; i++) {
        jw_obj(w, NULL);
        jw_str(w, "name", p->vars[i].name);
        jw_bool(w, "secret", p->vars[i].secret);
        if (p->vars[i].secret)
            jw_str(w, "last4", p->vars[i].last4);
        else
            jw_str(w, "value", p->vars[i].value);
        jw_end(w);
    }
    jw_end(w);
    jw_arr(w, "presets");
    for (size_t i = 0; i < p->n_presets; i++)
        cli_preset_json(w, &p->presets[i]);
    jw_end(w);
}

static void project_json(struct jw *w, const struct cli *c, const struct model *m,
                         const struct keys_at *at, size_t i, bool all)
{
    const struct project *p = &m->projects[i];
    char when[32];

    jw_obj(w, NULL);
    jw_str(w, "name", p->name);
    jw_str(w, "id", p->id);
    jw_bool(w, "current", i == m->project_at);
    if (i == m->project_at)
        jw_str(w, "chosenBy", chosen_by(c, p));
    jw_i64(w, "sandboxes", (int64_t)live_of(m, p->name));
    jw_i64(w, "keys", (int64_t)keys_of(at, p->id));
    if (p->used_at)
        clock_format_rfc3339(when, sizeof(when), p->used_at);
    jw_str(w, "usedAt", p->used_at ? when : NULL);
    if (all) {
        jw_str(w, "prompt", p->prompt);
        jw_arr(w, "skills");
        for (size_t s = 0; p->skills && p->skills[s]; s++)
            jw_str(w, NULL, p->skills[s]);
        jw_end(w);
        jw_obj(w, "defaults");
        cli_choice_json(w, &p->defaults);
        jw_end(w);
        jw_obj(w, "budget");
        for (int k = 0; k < LEDGER_PERIODS; k++)
            if (p->budget.usd[k] > 0)
                jw_num(w, ledger_period_name((enum ledger_period)k), p->budget.usd[k]);
        jw_end(w);
        parts_json(w, p);
    }
    jw_end(w);
}

static int open_at(struct cli_app *a, struct cli *c, const char *project, bool change,
                   struct err *e)
{
    const struct cli_shared *sh = cli_shared();
    int rc;

    if (project && sh && !str_eq(project, app_model(sh->app)->project))
        return err_set(e, ERR_INVALID, "'%.60s' is not the current project: 'projects use %.60s' "
                       "makes it so, then this can be done", project, project);
    if (project) {
        c->project = project;
        c->project_source = OPT_FLAG;
        c->project_folder = NULL; /* named here: no folder's word */
    }
    rc = cli_app_open_keys(a, c, false, e);
    if (rc == 0 && change)
        rc = app_go_online(a->app, e);
    return rc;
}

int cli_projects_ls(struct cli *c)
{
    struct cli_table t = {.columns = 6,
                          .heads = {"PROJECT", "CURRENT BY", "SANDBOXES", "KEYS", "VARIABLES",
                                    "USED"}};
    struct buf b = BUF_INIT;
    struct cli_app a;
    struct err e = {0};
    struct jw w;

    if (open_at(&a, c, NULL, false, &e) != 0)
        return cli_fail(&e);
    const struct model *m = app_model(a.app);
    const struct keys_at *at = app_keys(a.app);
    if (cli_json(c)) {
        jw_init(&w, &b);
        jw_arr(&w, NULL);
        for (size_t i = 0; i < m->n_projects; i++)
            project_json(&w, c, m, at, i, false);
        jw_end(&w);
        cli_out_json(&b);
        buf_release(&b);
    } else if (cli_has(c, CLI_QUIET)) {
        for (size_t i = 0; i < m->n_projects; i++)
            cli_out("%s\n", m->projects[i].name);
    } else {
        for (size_t i = 0; i < m->n_projects; i++)
            ls_row(&t, c, m, at, i);
        cli_table_print(&t);
    }
    cli_app_close(&a);
    return CLI_OK;
}

/* --- show --------------------------------------------------------------------------- */

static void keys_text(const struct keys_at *at, const struct project *p)
{
    char mask[16];

    for (size_t i = 0; p->id && at && at->stored && i < at->stored->n; i++) {
        const struct st_key *k = &at->stored->v[i];
        if (!str_eq(k->project, p->id) || str_eq(k->provider, ST_VARIABLE))
            continue;
        key_row_mask(k, mask);
        cli_out("key %s %s\n", k->provider, mask);
    }
}

static void show_text(const struct cli *c, const struct model *m, const struct keys_at *at)
{
    const struct project *p = model_project(m);

    cli_out("project %s (%s)%s\n", p->name, chosen_by(c, p),
           p->id ? "" : ": nothing is stored of it yet");
    keys_text(at, p);
    for (size_t i = 0; i < p->n_vars; i++)
        if (p->vars[i].secret)
            cli_out("variable %s (secret, ****%s)\n", p->vars[i].name, p->vars[i].last4);
        else
            cli_out("variable %s=%s\n", p->vars[i].name, p->vars[i].value ? p->vars[i].value : "");
    cli_choice_text("", &p->defaults);
    for (int k = 0; k < LEDGER_PERIODS; k++)
        if (p->budget.usd[k] > 0)
            cli_out("budget_%s = %.2f\n", ledger_period_name((enum ledger_period)k),
                    p->budget.usd[k]);
    if (p->prompt)
        cli_out("prompt = %s\n", p->prompt);
    for (size_t s = 0; p->skills && p->skills[s]; s++)
        cli_out("skill = %s\n", p->skills[s]);
    for (size_t i = 0; i < p->n_presets; i++)
        cli_preset_text(&p->presets[i]);
}

int cli_projects_show(struct cli *c)
{
    struct buf b = BUF_INIT;
    struct cli_app a;
    struct err e = {0};
    struct jw w;

    if (open_at(&a, c, c->n_args ? c->args[0] : NULL, false, &e) != 0)
        return cli_fail(&e);
    const struct model *m = app_model(a.app);
    if (cli_json(c)) {
        jw_init(&w, &b);
        project_json(&w, c, m, app_keys(a.app), m->project_at, true);
        cli_out_json(&b);
        buf_release(&b);
    } else if (cli_has(c, CLI_QUIET)) {
        cli_out("%s\n", m->project);
    } else {
        show_text(c, m, app_keys(a.app));
    }
    cli_app_close(&a);
    return CLI_OK;
}

/* --- changes ---------------------------------------------------------------------------- */

static int refused(const struct cli *c)
{
    return cli_has(c, CLI_READONLY)
               ? cli_usage("'%s' changes nothing with --readonly", cli_commands[c->cmd].name)
               : 0;
}

/* False with the exit status, which was said. */
bool cli_open_to_change(struct cli_app *a, struct cli *c, const char *project, int *status)
{
    struct err e = {0};

    *status = refused(c);
    if (*status == 0 && open_at(a, c, project, true, &e) != 0)
        *status = cli_fail(&e);
    return *status == 0;
}

int cli_end_change(struct cli_app *a, const struct cli *c, uint64_t req, const char *done)
{
    struct err e = {0};
    int status = cli_app_wait(a, req, &e) == 0 ? CLI_OK : cli_app_fail(a, &e);

    if (status == CLI_OK && cli_json(c))
        cli_out("{\"done\":true}\n");
    else if (status == CLI_OK)
        cli_say(c, "%s", done);
    cli_app_close(a);
    return status;
}

int cli_projects_add(struct cli *c)
{
    struct cli_app a;
    int status;

    if (!cli_open_to_change(&a, c, NULL, &status))
        return status;
    return cli_end_change(&a, c, app_project_add(a.app, c->args[0]), "made");
}

int cli_projects_rename(struct cli *c)
{
    struct cli_app a;
    int status;

    if (!cli_open_to_change(&a, c, NULL, &status))
        return status;
    return cli_end_change(&a, c, app_project_rename(a.app, c->args[0], c->args[1]),
                          "renamed; its keys, variables, presets and sandboxes go along");
}

static const struct project *named(const struct model *m, const char *name)
{
    for (size_t i = 0; i < m->n_projects; i++)
        if (str_eq(m->projects[i].name, name))
            return &m->projects[i];
    return NULL;
}

int cli_projects_rm(struct cli *c)
{
    struct cli_app a;
    int status;

    if (!cli_open_to_change(&a, c, NULL, &status))
        return status;
    const struct project *p = named(app_model(a.app), c->args[0]);
    size_t keys = p ? keys_of(app_keys(a.app), p->id) : 0;
    char *q = xasprintf("remove the project %s with %zu key%s, %zu variable%s and its presets?",
                        c->args[0], keys, keys == 1 ? "" : "s", p ? p->n_vars : 0,
                        p && p->n_vars == 1 ? "" : "s");
    bool yes = cli_has(c, CLI_YES) || !p || !p->id, can = yes || cli_can_ask(c);
    yes = yes || (can && cli_ask(q));
    free(q);
    if (yes)
        return cli_end_change(&a, c, app_project_rm(a.app, c->args[0]), "removed");
    cli_app_close(&a);
    return can ? CLI_DECLINED
               : cli_usage("'projects rm' asks first, which is not possible here: give --yes");
}

int cli_projects_use(struct cli *c)
{
    struct cli_app a;
    int status;

    if (!cli_open_to_change(&a, c, NULL, &status))
        return status;
    return cli_end_change(&a, c, app_project_switch(a.app, c->args[0]),
                          "current from now on where nothing else is said (--project, "
                          "CC_TUI_PROJECT, a .cc-tui)");
}

/* --- settings ----------------------------------------------------------------------------- */

/* Absolute: the folder may be another one later. An empty one takes all away. */
static int put_skill(struct project *p, const char *value, struct err *e)
{
    char *path = *value ? realpath(value, NULL) : NULL;

    if (*value && !path)
        return err_sys(e, 0, "the skill '%.200s' cannot be found", value);
    if (path) {
        p->skills = str_list_add(p->skills, path);
        return 0;
    }
    str_list_free(p->skills);
    p->skills = NULL;
    return 0;
}

static int put_budget(struct project *p, enum ledger_period period, const char *value,
                      struct err *e)
{
    double usd = 0;

    if (*value && (!config_usd(value, &usd) || usd > 1e6))
        return err_set(e, ERR_INVALID, "a budget is USD such as 10 or 2.50, not '%.60s'", value);
    p->budget.usd[period] = usd;
    return 0;
}

/* budget_day, budget_week, budget_month; false: it is none. */
static bool budget_setting(struct project *p, const char *name, const char *value, int *rc,
                           struct err *e)
{
    for (int k = 0; str_starts(name, "budget_") && k < LEDGER_PERIODS; k++)
        if (str_eq(name + strlen("budget_"), ledger_period_name((enum ledger_period)k))) {
            *rc = put_budget(p, (enum ledger_period)k, value, e);
            return true;
        }
    return false;
}

static int put_setting(struct project *p, const char *arg, struct err *e)
{
    const char *eq = strchr(arg, '=');
    char *name = eq ? xstrndup(arg, (size_t)(eq - arg)) : NULL;
    int rc = 0;

    if (name && str_eq(name, "prompt"))
        rc = cli_put_text(&p->prompt, eq + 1, e);
    else if (name && str_eq(name, "skill"))
        rc = put_skill(p, eq + 1, e);
    else if (!name || (!cli_put_choice(&p->defaults, name, eq + 1, &rc, e) &&
                       !budget_setting(p, name, eq + 1, &rc, e)))
        rc = err_set(e, ERR_INVALID, "a setting is tool, model, template, repo, branch, timeout, "
                     "at_end, prompt, skill or budget_day (_week, _month) with =VALUE, not "
                     "'%.60s'; variables go by cc-tui projects env", arg);
    free(name);
    return rc;
}

int cli_projects_set(struct cli *c)
{
    struct project p;
    struct cli_app a;
    struct err e = {0};
    int rc = 0, status;

    if (!cli_open_to_change(&a, c, c->args[0], &status))
        return status;
    project_copy(&p, model_project(app_model(a.app)));
    for (int i = 1; i < c->n_args && rc == 0; i++)
        rc = put_setting(&p, c->args[i], &e);
    uint64_t req = rc == 0 ? app_project_set(a.app, &p) : 0;
    project_release(&p);
    if (rc == 0)
        return cli_end_change(&a, c, req, "set");
    cli_app_close(&a);
    return cli_fail(&e);
}

/* --- variables ------------------------------------------------------------------------------ */

static int one_variable(struct cli_app *a, const struct cli *c, const char *arg, struct err *e)
{
    const char *eq = strchr(arg, '=');
    char *name = eq ? xstrndup(arg, (size_t)(eq - arg)) : xstrdup(arg);
    bool undo = cli_has(c, CLI_UNDO);
    int rc;

    if (!eq == undo)
        rc = cli_app_wait(a, app_project_var(a->app, name, undo ? NULL : eq + 1), e);
    else
        rc = err_set(e, ERR_INVALID, undo ? "'--undo' wants names of variables alone, not '%.60s'"
                                          : "a variable is NAME=VALUE, not '%.60s'; secret ones go "
                                            "by cc-tui projects secret", arg);
    free(name);
    return rc;
}

int cli_projects_env(struct cli *c)
{
    struct cli_app a;
    struct err e = {0};
    int status = CLI_OK;

    if (!cli_open_to_change(&a, c, c->args[0], &status))
        return status;
    for (int i = 1; i < c->n_args && status == CLI_OK; i++)
        if (one_variable(&a, c, c->args[i], &e) != 0)
            status = cli_app_fail(&a, &e);
    if (status == CLI_OK && cli_json(c))
        cli_out("{\"done\":true}\n");
    else if (status == CLI_OK)
        cli_say(c, "%s", cli_has(c, CLI_UNDO) ? "removed" : "set; sandboxes made from now on get it");
    cli_app_close(&a);
    return status;
}

/* Without the line's end: what people type and commands print has one. */
static struct secret *value_of(struct secret *take)
{
    const char *p = take ? secret_value(take) : NULL;
    size_t n = take ? secret_len(take) : 0;
    struct secret *s;

    if (n && p[n - 1] == '\n')
        n--;
    if (n && p[n - 1] == '\r')
        n--;
    s = take ? secret_new(p, n) : NULL;
    secret_free(take);
    return s;
}

int cli_projects_secret(struct cli *c)
{
    struct cli_app a;
    struct err e = {0};
    struct secret *s = NULL;
    char *prompt;

    if (refused(c))
        return CLI_USAGE;
    if (c->n_args > 2 || strchr(c->args[1], '='))
        return cli_refuse_secret_argument(c, 1, "projects secret PROJECT NAME");
    if (!cli_has(c, CLI_UNDO)) {
        prompt = xasprintf("value of %s (not shown): ", c->args[1]);
        s = value_of(cli_secret_from(c, prompt, &e));
        free(prompt);
        if (!s)
            return cli_fail(&e);
        if (memchr(secret_value(s), '\0', secret_len(s)) || !secret_len(s)) {
            secret_free(s);
            return cli_usage("no value was given, or it holds a NUL byte; nothing is stored");
        }
    }
    int rc = open_at(&a, c, c->args[0], true, &e);
    if (rc == 0 && s && app_vault_by_passphrase(a.app) && cli_app_unlock(&a, &e) != 0) {
        rc = e.code;
        cli_app_close(&a);
    }
    if (rc != 0) {
        secret_free(s);
        return cli_fail(&e);
    }
    return cli_end_change(&a, c, s ? app_project_secret(a.app, c->args[1], s)
                                   : app_project_var(a.app, c->args[1], NULL),
                          s ? "stored, sealed; agents started from now on get it" : "removed");
}
