/* cc-tui new: a sandbox with an agent in it. */
#include "cli_priv.h"

#include <cct/util/json.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --env NAME=VALUE ... as a list; 0 or ERR_INVALID. */
static int take_env(const struct cli *c, struct kv *env, struct err *e)
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

static void free_env(struct kv *env)
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

static int take_options(const struct cli *c, struct app_create *n, struct err *e)
{
    int64_t s = 0;

    if (c->n_plain > 0)
        return err_set(e, ERR_INVALID,
                       "'new' takes no argument '%.60s'; a command stands behind --",
                       c->args[0]);
    n->tool = cli_has(c, CLI_TOOL) ? c->value[CLI_TOOL]
              : c->n_args > 0      ? "shell"
                                   : c->config->o.tool;
    if (!*n->tool)
        return err_set(e, ERR_INVALID, "'new' wants --tool TOOL; see cc-tui new --help");
    n->template_id = cli_has(c, CLI_TEMPLATE) ? c->value[CLI_TEMPLATE] : NULL;
    n->name = cli_has(c, CLI_NAME) ? c->value[CLI_NAME] : NULL;
    if (cli_has(c, CLI_TIMEOUT) &&
        (!str_to_seconds(c->value[CLI_TIMEOUT], &s) || s < 1 || s > LIM_TIMEOUT_MAX_S))
        return err_set(e, ERR_INVALID,
                       "'--timeout' is a time such as 90, 15m or 1h30m, at most %d s, not "
                       "'%.60s'",
                       LIM_TIMEOUT_MAX_S, c->value[CLI_TIMEOUT]);
    n->timeout_s = cli_has(c, CLI_TIMEOUT) ? (int)s : set_timeout(c->config);
    n->pause_at_end = str_eq(c->config->o.at_end, "pause");
    return 0;
}

static void print_new(const struct cli *c, const struct cli_app *a, const struct app_create *n)
{
    const struct sandbox *s = model_sandbox(app_model(a->app), a->sandbox);
    const char *id = a->sandbox_id ? a->sandbox_id : s ? s->sandbox_id : NULL;

    if (!cli_json(c)) {
        puts(id ? id : "");
        return;
    }
    struct buf b = BUF_INIT;
    struct jw w;
    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_str(&w, "sandboxID", id);
    jw_str(&w, "name", s ? s->name : n->name);
    jw_str(&w, "tool", n->tool);
    jw_str(&w, "templateID", s ? s->template_id : n->template_id);
    jw_str(&w, "state", s ? sb_state_name(s->state) : NULL);
    jw_end(&w);
    puts(buf_str(&b));
    buf_release(&b);
}

static int create(const struct cli *c, const struct app_create *n)
{
    struct cli_app a;
    struct err e = {0};
    const char *field = NULL;
    int status = CLI_OK;

    if (cli_app_open(&a, c, &e) != 0)
        return cli_fail(&e);
    /* the list first: it proves the key, and names in use are known */
    if (cli_app_refresh(&a, &e) != 0 || app_check_create(a.app, n, &field, &e) != 0) {
        status = cli_app_fail(&a, &e);
    } else if (cli_has(c, CLI_DRY_RUN)) {
        cli_say(c, "would create a sandbox with %s", n->tool);
    } else if (cli_app_wait(&a, app_create(a.app, n, true), &e) != 0) {
        /* nobody else starts the agent, so we stay until it runs; what was made and
         * is paid for is named even when that failed */
        if (a.sandbox_id)
            fprintf(stderr, "cc-tui: the sandbox %s exists\n", a.sandbox_id);
        else if (a.signal)
            cli_say(c, "what was begun may exist; 'cc-tui ls' shows it");
        status = cli_app_fail(&a, &e);
    } else {
        print_new(c, &a, n);
        cli_app_tell_time(&a, a.sandbox, n->timeout_s);
        bool queued = false;
        if (n->prompt && cli_app_hand_over(&a, a.sandbox, &queued, &e) != 0)
            status = cli_app_fail(&a, &e);
        else if (queued)
            cli_say(c, "the prompt waits until the agent is idle");
    }
    cli_app_close(&a);
    return status;
}

int cli_new(struct cli *c)
{
    struct err e = {0};
    struct kv *env = xcalloc(c->n_envs + 1, sizeof(*env));
    struct app_create n = {.env = env};
    char *prompt = NULL, *command = command_line(c);
    int status = CLI_USAGE, rc = take_options(c, &n, &e);

    if (rc == 0)
        rc = take_env(c, env, &e);
    if (rc == 0 && cli_has(c, CLI_PROMPT)) {
        prompt = cli_text_arg(c->value[CLI_PROMPT], &e);
        rc = prompt ? 0 : e.code;
    }
    n.prompt = prompt;
    n.command = command;
    status = rc == 0 ? create(c, &n) : cli_fail(&e);
    free(prompt);
    free(command);
    free_env(env);
    return status;
}
