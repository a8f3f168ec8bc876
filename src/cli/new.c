/* cc-tui new: a sandbox with an agent in it. */
#include "cli_priv.h"

#include <cct/model/project.h>
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --env NAME=VALUE ... as a list; 0 or ERR_INVALID. */
int cli_take_env(const struct cli *c, struct kv *env, struct err *e)
{
    for (size_t i = 0; i < c->n_envs; i++) {
        const char *eq = strchr(c->envs[i], '=');
        size_t n = eq ? (size_t)(eq - c->envs[i]) : 0;
        size_t good = strspn(c->envs[i], "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                         "abcdefghijklmnopqrstuvwxyz0123456789_");
        if (!eq || n == 0 || good != n || (c->envs[i][0] >= '0' && c->envs[i][0] <= '9'))
            return err_set(e, ERR_INVALID, "'--env' wants NAME=VALUE, not '%.*s'",
                           eq ? (int)(n < 60 ? n : 60) : 60, c->envs[i]);
        env[i] = (struct kv){xstrndup(c->envs[i], n), xstrdup(eq + 1)};
    }
    return 0;
}

void cli_free_env(struct kv *env)
{
    for (struct kv *p = env; p->k; p++) {
        free(p->k);
        free(p->v);
    }
    free(env);
}

static void add_quoted(struct buf *b, const char *word)
{
    if (*word && strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                              "0123456789_-./=:,+@%") == strlen(word)) {
        buf_adds(b, word);
        return;
    }
    buf_addc(b, '\'');
    for (const char *p = word; *p; p++)
        buf_adds(b, *p == '\'' ? "'\\''" : (char[]){*p, '\0'});
    buf_addc(b, '\'');
}

/* One argument is a line for the shell, several are the words of a command. */
static char *command_line(const struct cli *c)
{
    struct buf b = BUF_INIT;
    if (c->n_args == 0)
        return NULL;
    if (c->n_args == 1)
        return xstrdup(c->args[0]);
    for (int i = 0; i < c->n_args; i++) {
        if (i)
            buf_addc(&b, ' ');
        add_quoted(&b, c->args[i]);
    }
    return buf_detach(&b, NULL);
}

/* The timeout that somebody set; 0 leaves it to the tool. */
static int set_timeout(const struct config *c)
{
    const char *section, *name, *help;
    char value[32];
    enum option_source src;
    for (size_t i = 0; config_at(c, i, &section, &name, value, sizeof(value), &src, &help); i++)
        if (strcmp(name, "timeout") == 0 && src != OPT_DEFAULT)
            return c->o.timeout;
    return 0;
}

static const char *value(const struct cli *c, enum cli_flag f)
{
    return cli_has(c, f) ? c->value[f] : NULL;
}

static int take_choices(const struct cli *c, struct app_create *n, struct err *e)
{
    int64_t copies = 0;

    n->model = value(c, CLI_MODEL);
    n->ask = value(c, CLI_ASK);
    n->repo = value(c, CLI_REPO);
    n->branch = value(c, CLI_BRANCH);
    n->env_file = value(c, CLI_ENV_FILE);
    n->skills = c->n_skills ? c->skills : NULL;
    if (cli_has(c, CLI_COPIES) && !str_to_i64(c->value[CLI_COPIES], 1, APP_COPIES_MAX, &copies))
        return err_set(e, ERR_INVALID, "'--copies' is a number from 1 to %d, not '%.60s'",
                       APP_COPIES_MAX, c->value[CLI_COPIES]);
    n->copies = (int)copies;
    return 0;
}

/* The texts that may come from stdin or a file: new strings in the two. */
static int take_texts(const struct cli *c, char **prompt, char **system_prompt, struct err *e)
{
    const char *p = value(c, CLI_PROMPT), *s = value(c, CLI_SYSTEM_PROMPT);

    if (p && s && str_eq(p, "-") && str_eq(s, "-"))
        return err_set(e, ERR_INVALID, "'--prompt -' and '--system-prompt -' both want stdin: give "
                       "one as @FILE");
    *prompt = p ? cli_text_arg(p, e) : NULL;
    if (p && !*prompt)
        return e->code;
    if (s && *s == '@')
        *system_prompt = cli_text_file(s + 1, e);
    else
        *system_prompt = s ? cli_text_arg(s, e) : NULL;
    return s && !*system_prompt ? e->code : 0;
}

static int take_options(const struct cli *c, struct app_create *n, struct err *e)
{
    int64_t s = 0;

    if (c->n_plain > 0)
        return err_set(e, ERR_INVALID,
                       "'new' takes no argument '%.60s'; a command stands behind --",
                       c->args[0]);
    n->tool = cli_has(c, CLI_TOOL) ? c->value[CLI_TOOL] : c->n_args > 0 ? "shell" : NULL;
    n->template_id = cli_has(c, CLI_TEMPLATE) ? c->value[CLI_TEMPLATE] : NULL;
    n->name = cli_has(c, CLI_NAME) ? c->value[CLI_NAME] : NULL;
    if (cli_has(c, CLI_TIMEOUT) &&
        (!str_to_seconds(c->value[CLI_TIMEOUT], &s) || s < 1 || s > LIM_TIMEOUT_MAX_S))
        return err_set(e, ERR_INVALID,
                       "'--timeout' is a time such as 90, 15m or 1h30m, at most %d s, not "
                       "'%.60s'",
                       LIM_TIMEOUT_MAX_S, c->value[CLI_TIMEOUT]);
    n->timeout_s = (int)s;
    return take_choices(c, n, e);
}

/* What no flag says: the preset, the project's defaults, the configuration, in this order. The
 * texts are copied into *kept, as the model's live until the next event. */
static int take_rest(const struct cli *c, const struct app *a, struct app_create *n,
                     struct project *kept, struct err *e)
{
    const struct project *p = model_project(app_model(a));
    const char *preset = value(c, CLI_PRESET);
    const struct project_choice *from = NULL;

    if (p)
        project_copy(kept, p);
    for (size_t i = 0; preset && i < kept->n_presets && !from; i++)
        if (str_eq(kept->presets[i].name, preset))
            from = &kept->presets[i].c;
    if (preset && !from)
        return err_set(e, ERR_NOTFOUND, "there is no preset '%.60s' in the project '%.60s': cc-tui "
                       "presets ls shows those that are", preset, kept->name ? kept->name : "default");
    n->pause_at_end = str_eq(c->config->o.at_end, "pause");
    if (kept->defaults.at_end_known)
        n->pause_at_end = kept->defaults.pause_at_end;
    if (from && from->at_end_known)
        n->pause_at_end = from->pause_at_end;
    if (from)
        app_choice_fill(n, from);
    app_choice_fill(n, &kept->defaults);
    n->tool = n->tool ? n->tool : c->config->o.tool;
    n->timeout_s = n->timeout_s ? n->timeout_s : set_timeout(c->config);
    return *n->tool ? 0 : err_set(e, ERR_INVALID, "'new' wants --tool TOOL; see cc-tui new --help");
}

/* --- steps ------------------------------------------------------------------------- */

struct told { /* how far one has come */
    uint64_t id;
    enum sb_step step;
    char *text;
};
struct teller {
    ARR(struct told) v;
};

static struct told *told_of(struct teller *t, uint64_t id)
{
    struct told *one;

    for (size_t i = 0; i < t->v.n; i++)
        if (t->v.v[i].id == id)
            return &t->v.v[i];
    one = ARR_PUSH(&t->v);
    one->id = id;
    return one;
}

/* Each once, on stderr; counters that grow are for the screen. */
static void tell_steps(void *ctx, const struct msg *m)
{
    const struct ev_sandboxes *ev = (const struct ev_sandboxes *)m;

    for (size_t i = 0; m->type == EV_SANDBOXES && i < ev->n; i++) {
        const struct sandbox *s = &ev->v[i];
        struct told *t = s->step ? told_of(ctx, s->id) : NULL;
        const char *text = s->step_text ? s->step_text : "";

        if (!t || (t->step == s->step && str_eq(t->text, text)) || strchr(text, '%'))
            continue;
        t->step = s->step;
        free(t->text);
        t->text = xstrdup(text);
        cli_tell("%s: step %d of %d (%s)%s%s", s->name ? s->name : "", (int)s->step,
                (int)STEP_LAST, sb_step_name(s->step), *text ? ": " : "", text);
    }
}

static void teller_release(struct teller *t)
{
    for (size_t i = 0; i < t->v.n; i++)
        free(t->v.v[i].text);
    ARR_RELEASE(&t->v);
}

/* --- what was made ------------------------------------------------------------- */

static void add_json(struct jw *w, const struct cli_app *a, uint64_t row, const char *id,
                     const struct app_create *n)
{
    const struct sandbox *s = model_sandbox(app_model(a->app), row);

    jw_obj(w, NULL);
    jw_str(w, "sandboxID", id ? id : s ? s->sandbox_id : NULL);
    jw_str(w, "name", s ? s->name : n->name);
    jw_str(w, "tool", n->tool);
    jw_str(w, "templateID", s ? s->template_id : n->template_id);
    jw_str(w, "state", s ? sb_state_name(s->state) : NULL);
    jw_end(w);
}

static void print_new(const struct cli *c, const struct cli_app *a, const struct app_create *n)
{
    const struct sandbox *s = model_sandbox(app_model(a->app), a->sandbox);
    const char *id = a->sandbox_id ? a->sandbox_id : s ? s->sandbox_id : NULL;

    if (!cli_json(c)) {
        cli_out("%s\n", id ? id : "");
        return;
    }
    struct buf b = BUF_INIT;
    struct jw w;
    jw_init(&w, &b);
    add_json(&w, a, a->sandbox, id, n);
    cli_out_json(&b);
    buf_release(&b);
}

/* Where the prompt of one that runs went. 0 or a code. */
static int hand_over(const struct cli *c, struct cli_app *a, uint64_t row,
                     const struct app_create *n, struct err *e)
{
    bool queued = false;

    cli_app_tell_time(a, row, n->timeout_s);
    if (n->prompt && cli_app_hand_over(a, row, &queued, e) != 0)
        return e->code;
    if (queued)
        cli_say(c, "the prompt waits until the agent is idle");
    return 0;
}

static int create_one(const struct cli *c, struct cli_app *a, const struct app_create *n)
{
    struct err e = {0};

    if (cli_app_wait(a, app_create(a->app, n, true), &e) != 0) {
        /* nobody else starts the agent, so we stay until it runs; what was made and
         * is paid for is named even when that failed */
        if (a->sandbox_id)
            cli_tell("the sandbox %s exists", a->sandbox_id);
        else if (a->signal)
            cli_say(c, "what was begun may exist; 'cc-tui ls' shows it");
        return cli_app_fail(a, &e);
    }
    print_new(c, a, n);
    return hand_over(c, a, a->sandbox, n, &e) == 0 ? CLI_OK : cli_app_fail(a, &e);
}

/* --- copies ---------------------------------------------------------------------- */

/* Tell what became of one; true when it runs and has its prompt. */
static bool tell_copy(const struct cli *c, struct cli_app *a, const struct app_create *n,
                      struct cli_wait *w, struct jw *json)
{
    const struct sandbox *s = model_sandbox(app_model(a->app), w->sandbox);
    char *name = xstrdup(s ? s->name : n->name);
    struct err e = w->err;
    bool good;

    if (!e.code && !json)
        cli_out("%s\n", s && s->sandbox_id ? s->sandbox_id : "");
    good = !e.code && hand_over(c, a, w->sandbox, n, &e) == 0;
    if (!good)
        cli_tell("%s%s%s", name ? name : "", name ? ": " : "", e.text);
    if (json && (w->sandbox || good))
        add_json(json, a, w->sandbox, NULL, n);
    free(name);
    return good;
}

/* One fails, the others go on; all are waited for. */
static int create_copies(const struct cli *c, struct cli_app *a, const struct app_create *n)
{
    struct cli_wait waits[APP_COPIES_MAX] = {{0}};
    uint64_t reqs[APP_COPIES_MAX];
    size_t n_made = app_create_copies(a->app, n, true, reqs), good = 0;
    struct err e = {0};
    struct buf b = BUF_INIT;
    struct jw w;

    for (size_t i = 0; i < n_made; i++)
        waits[i].req = reqs[i];
    if (cli_app_wait_all(a, waits, n_made, &e) != 0) {
        cli_say(c, "what was begun may exist; 'cc-tui ls' shows it");
        return cli_app_fail(a, &e);
    }
    jw_init(&w, &b);
    jw_arr(&w, NULL);
    for (size_t i = 0; i < n_made && !a->signal; i++)
        good += tell_copy(c, a, n, &waits[i], cli_json(c) ? &w : NULL);
    jw_end(&w);
    if (cli_json(c))
        cli_out_json(&b);
    buf_release(&b);
    if (a->signal)
        return cli_app_fail(a, &e);
    if (good == n_made && n_made == (size_t)n->copies)
        return CLI_OK;
    cli_say(c, "%zu of %d were made", good, n->copies);
    return good ? CLI_SOME_FAILED : cli_exit_of(waits[0].err.code ? waits[0].err.code : ERR_IO);
}

/* What would be met before anything is made, is met now. */
static int try_it(const struct cli *c, struct cli_app *a, struct app_create *n)
{
    struct err e = {0};

    n->only_try = true;
    if (cli_app_wait(a, app_create(a->app, n, true), &e) != 0)
        return cli_app_fail(a, &e);
    if (n->copies > 1)
        cli_say(c, "would create %d sandboxes with %s", n->copies, n->tool);
    else
        cli_say(c, "would create a sandbox with %s", n->tool);
    return CLI_OK;
}

/* A key that hides another, or looks like another provider's, is used: but it is said. */
static void warn_of_keys(const struct cli *c, struct cli_app *a, const struct app_create *n)
{
    struct app_key_look agent, repo;

    app_create_keys(a->app, n, &agent, &repo);
    if (agent.hides)
        cli_say(c, "cc-tui: %s", agent.text);
    if (repo.hides)
        cli_say(c, "cc-tui: %s", repo.text);
}

static int create(const struct cli *c, struct app_create *n)
{
    struct cli_app a;
    struct err e = {0};
    struct teller steps = {ARR_INIT};
    struct project kept = {0};
    const char *field = NULL;
    int status = CLI_OK;

    if (cli_app_open(&a, c, &e) != 0)
        return cli_fail(&e);
    if (cli_has(c, CLI_VERBOSE) || (isatty(STDERR_FILENO) && !cli_has(c, CLI_QUIET)))
        a.see = tell_steps, a.see_ctx = &steps;
    /* the list first: it proves the key, and names in use are known */
    if (cli_app_known(&a, &e) != 0 || take_rest(c, a.app, n, &kept, &e) != 0 ||
        cli_app_files(&a, n, &e) != 0 || app_check_create(a.app, n, &field, &e) != 0)
        status = cli_app_fail(&a, &e);
    else {
        warn_of_keys(c, &a, n);
        status = cli_has(c, CLI_DRY_RUN) ? try_it(c, &a, n)
                 : n->copies > 1         ? create_copies(c, &a, n)
                                         : create_one(c, &a, n);
    }
    cli_app_close(&a);
    teller_release(&steps);
    project_release(&kept);
    return status;
}

int cli_new(struct cli *c)
{
    struct err e = {0};
    struct kv *env = xcalloc(c->n_envs + 1, sizeof(*env));
    struct app_create n = {.env = env};
    char *prompt = NULL, *system_prompt = NULL, *command = command_line(c);
    int status = CLI_USAGE, rc = take_options(c, &n, &e);

    if (rc == 0)
        rc = cli_take_env(c, env, &e);
    if (rc == 0)
        rc = take_texts(c, &prompt, &system_prompt, &e);
    n.prompt = prompt;
    n.system_prompt = system_prompt;
    n.command = command;
    status = rc == 0 ? create(c, &n) : cli_fail(&e);
    free(prompt);
    free(system_prompt);
    free(command);
    cli_free_env(env);
    return status;
}
