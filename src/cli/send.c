/* cc-tui send: a message to an agent, and its answer. */
#include "cli_priv.h"

#include <cct/agent.h>
#include <cct/util/json.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int status_of(int outcome)
{
    switch ((enum agent_outcome)outcome) {
    case AGENT_OK:
        return CLI_OK;
    case AGENT_INTERRUPTED:
        return CLI_INTERRUPTED;
    default:
        return CLI_FAILED;
    }
}

static int print_answer(const struct cli *c, const struct cli_app *a, const char *sandbox_id)
{
    if (cli_json(c)) {
        struct buf b = BUF_INIT;
        struct jw w;
        jw_init(&w, &b);
        jw_obj(&w, NULL);
        jw_str(&w, "sandboxID", sandbox_id);
        jw_str(&w, "outcome", agent_outcome_name((enum agent_outcome)a->outcome));
        if (a->exit_code >= 0)
            jw_i64(&w, "exitCode", a->exit_code);
        else
            jw_null(&w, "exitCode");
        jw_str(&w, "text", a->text ? a->text : "");
        jw_end(&w);
        cli_out_json(&b);
        buf_release(&b);
    } else if (a->text && *a->text) {
        size_t n = strlen(a->text);
        cli_out("%s%s", a->text, a->text[n - 1] == '\n' ? "" : "\n");
    }
    if (a->outcome != AGENT_OK)
        cli_say(c, "the turn ended: %s", agent_outcome_name((enum agent_outcome)a->outcome));
    return status_of(a->outcome);
}

static bool ended(const struct cli_app *a, uint64_t row)
{
    const struct sandbox *s = model_sandbox(app_model(a->app), row);
    return s && (s->state == SB_ERROR || s->agent == AG_EXITED || s->agent == AG_FAILED);
}

static int send_one(struct cli *c, const char *text)
{
    struct cli_app a;
    struct err e = {0};
    bool wait = cli_has(c, CLI_WAIT), queued = false;
    int status = CLI_OK;
    const struct sandbox *s = cli_app_begin(&a, c, c->args[0], &status);

    if (!s)
        return status;
    char *id = xstrdup(cli_called(c, s));
    uint64_t row = s->id;
    int how = cli_has(c, CLI_NOW) ? SEND_NOW : 0;
    a.asks_of = wait ? row : 0;
    int rc = cli_app_wait(&a, app_send_how(a.app, row, text, wait, how), &e);
    if (rc == 0 && !wait)
        rc = cli_app_hand_over(&a, row, &queued, &e);
    if (rc != 0) {
        if (a.signal)
            cli_say(c, "not waiting any longer; the message stays with %s", id);
        status = cli_app_fail(&a, &e);
    } else if (wait) {
        status = print_answer(c, &a, id);
    } else {
        cli_say(c, !queued ? "sent to %s"
                   : ended(&a, row) ? "queued for %s: its agent has ended; 'cc-tui restart' starts it "
                                      "again"
                                    : "queued for %s: the agent is busy; cc-tui sends it when it "
                                      "runs and the agent is idle",
                id);
    }
    free(id);
    cli_app_close(&a);
    return status;
}

/* How many of the arguments name a sandbox; the next one is the text. Negative: said. */
static int count_names(const struct cli *c)
{
    bool all = cli_has(c, CLI_ALL);
    int n = c->n_plain < c->n_args ? c->n_plain : c->n_args - 1;

    if (c->n_args - n != 1)
        return -cli_usage("one text stands behind '--', in quotes if it has several words");
    if (all && n)
        return -cli_usage("--all and a sandbox's name do not go together");
    if (!all && !n)
        return -cli_usage("'send' wants SANDBOX TEXT|-; see cc-tui send --help");
    if (n > 1 && c->n_plain == c->n_args)
        return -cli_usage("a text of several words stands in quotes; to several sandboxes write "
                          "'cc-tui send A B -- TEXT'");
    if ((all || n > 1) && cli_has(c, CLI_WAIT))
        return -cli_usage("--wait goes with one sandbox");
    return n;
}

int cli_send(struct cli *c)
{
    struct err e = {0};
    int n = count_names(c), status;

    if (n < 0)
        return -n;
    char *said = cli_text_arg(c->args[n], &e);
    char *text = said ? app_text_with_files(said, c->files, &e) : NULL;
    free(said);
    if (!text)
        return cli_fail(&e);
    if (n == 1 && !cli_has(c, CLI_DRY_RUN))
        status = send_one(c, text);
    else
        status = cli_broadcast(c, n, text);
    free(text);
    return status;
}
