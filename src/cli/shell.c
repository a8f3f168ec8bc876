/* cc-tui shell: a terminal, or a command by pipes, in a sandbox. */
#include "cli_priv.h"

#include <cct/app/passage.h>
#include <cct/model/process.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Signals that only the terminal's loop reads; before any thread starts. */
static void block_signals(void)
{
    static const int sigs[] = {SIGWINCH, SIGQUIT, SIGTSTP, SIGCONT};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++)
        sigaddset(&set, sigs[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

static int check(const struct cli *c, int *pid)
{
    int64_t n = 0;

    if (c->n_plain > 1)
        return cli_usage("'shell' wants one sandbox; a command stands behind '--': cc-tui shell "
                         "%.60s -- %.60s", c->args[0], c->args[1]);
    if (cli_json(c))
        return cli_usage("'shell' prints what the process prints, no JSON");
    if (cli_has(c, CLI_READONLY))
        return cli_usage("'shell' does nothing with --readonly");
    if (cli_has(c, CLI_PROCESS) && (c->n_args > 1 || cli_has(c, CLI_ENV)))
        return cli_usage("'shell --process' goes back to what runs: no command, no --env");
    if (cli_has(c, CLI_PROCESS) && !str_to_i64(c->value[CLI_PROCESS], 1, INT32_MAX, &n))
        return cli_usage("a process is named by its number, such as 1207, not '%.60s'; 'cc-tui "
                         "ps' lists them", c->value[CLI_PROCESS]);
    *pid = (int)n;
    return CLI_OK;
}

static int leave_key(const struct cli *c)
{
    int key = passage_key_parse(c->config->o.shell_leave);

    if (key != PASSAGE_KEY_BAD)
        return key;
    cli_tell("shell_detach_key is ^ and a letter, or none, not '%.20s': ^] counts",
            c->config->o.shell_leave);
    return passage_key_parse("^]");
}

/* How to come back, where there is somebody to read it. */
static void tell_left(const struct cli *c, const struct sandbox *s, const struct passage_end *end)
{
    if (end->pid && !end->hung_up)
        cli_say(c, "cc-tui: it goes on as process %d; 'cc-tui shell %s --process %d' comes back",
                end->pid, s && s->name ? s->name : c->args[0], end->pid);
}

static int judge(const struct cli *c, const struct sandbox *s, const struct passage_end *end)
{
    if (end->signal || end->hung_up || end->reader_gone) {
        if (end->left)
            tell_left(c, s, end);
        return 128 + (end->signal ? end->signal : end->hung_up ? SIGHUP : SIGPIPE);
    }
    if (end->err.code)
        return cli_fail(&end->err);
    if (end->left) {
        tell_left(c, s, end);
        return CLI_OK;
    }
    return end->status;
}

/* Nothing wakes a paused one: who looks at it is told what to do. */
static bool refused(const struct cli *c, const struct sandbox *s, struct err *e)
{
    const char *name = s->name ? s->name : c->args[0];

    if (s->state == SB_PAUSED)
        err_set(e, ERR_CONFLICT, "\"%s\" is paused: resume it first, 'cc-tui resume %s'", name,
                name);
    else if (s->state == SB_CREATING)
        err_set(e, ERR_CONFLICT, "\"%s\" is still being made", name);
    else if (!cli_is_up(s))
        err_set(e, ERR_CONFLICT, "\"%s\" is gone", name);
    return e->code != 0;
}

int cli_shell(struct cli *c)
{
    struct cli_app a;
    struct err e = {0};
    struct passage_opts o = {.quiet = cli_has(c, CLI_QUIET)};
    struct passage_end end;
    struct kv *env = xcalloc(c->n_envs + 1, sizeof(*env));
    const struct sandbox *s;
    int status = check(c, &o.pid);

    if (status == CLI_OK && cli_take_env(c, env, &e) != 0)
        status = cli_fail(&e);
    if (status == CLI_OK) {
        block_signals();
        s = cli_app_begin(&a, c, c->args[0], &status);
        if (s && refused(c, s, &e)) {
            status = cli_fail(&e);
            cli_app_close(&a);
        } else if (s) {
            o.sandbox = s->id;
            o.name = s->name ? s->name : s->sandbox_id;
            o.argv = c->n_args > 1 ? c->args + 1 : NULL;
            o.env = env;
            o.leave_key = leave_key(c);
            passage_run(a.app, &o, &end);
            status = judge(c, model_sandbox(app_model(a.app), o.sandbox), &end);
            cli_app_close(&a);
        }
    }
    cli_free_env(env);
    return status;
}
