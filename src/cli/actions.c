/* Commands that do one thing to one sandbox. */
#include "cli_priv.h"

#include <cct/util/json.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>

static void drop(void *ctx, const char *json, size_t len)
{
    (void)ctx;
    (void)json;
    (void)len;
}

/* Be where the agent is: its stream read up to the present. */
static int catch_up(struct cli_app *a, uint64_t id, struct err *e)
{
    app_follow(a->app, id);
    return cli_app_wait(a, app_events(a->app, id, false, drop, NULL), e);
}

static void print_json(const char *id, const char *did)
{
    struct buf b = BUF_INIT;
    struct jw w;
    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_str(&w, "sandboxID", id);
    jw_str(&w, "done", did);
    jw_end(&w);
    cli_out_json(&b);
    buf_release(&b);
}

/* `act` returns the request; `did` tells what happened; `connected`: the action goes to
 * the agent, not to the service. */
static int one_action(struct cli *c, uint64_t (*act)(struct app *a, uint64_t id, int n), int n,
                      const char *did, bool connected)
{
    struct cli_app a;
    struct err e = {0};
    int status = CLI_OK;
    const struct sandbox *s = cli_app_begin(&a, c, c->args[0], &status);

    if (!s)
        return status;
    char *id = xstrdup(cli_called(c, s));
    uint64_t row = s->id;
    if (cli_has(c, CLI_DRY_RUN))
        cli_say(c, "would do it: %s %s", id, did);
    else if ((connected && catch_up(&a, row, &e) != 0) ||
             cli_app_wait(&a, act(a.app, row, n), &e) != 0)
        status = cli_app_fail(&a, &e);
    else if (cli_json(c))
        print_json(id, did);
    else
        cli_say(c, "%s %s", id, did);
    if (status == CLI_OK && n > 0 && !cli_has(c, CLI_DRY_RUN))
        cli_app_tell_time(&a, row, n);
    free(id);
    cli_app_close(&a);
    return status;
}

static uint64_t act_interrupt(struct app *a, uint64_t id, int n)
{
    (void)n;
    return app_interrupt(a, id);
}

static uint64_t act_restart(struct app *a, uint64_t id, int n)
{
    (void)n;
    return app_restart_agent(a, id);
}

static uint64_t act_pause(struct app *a, uint64_t id, int n)
{
    (void)n;
    return app_pause(a, id);
}

/* A span from the command line; false and said when it is none. */
static bool take_span(const char *text, int *s)
{
    int64_t n;
    if (!str_to_seconds(text, &n) || n < 1 || n > LIM_TIMEOUT_MAX_S) {
        cli_usage("the time is one such as 90, 15m or 1h30m, at most %d s, not '%.60s'",
                  LIM_TIMEOUT_MAX_S, text);
        return false;
    }
    *s = (int)n;
    return true;
}

int cli_interrupt(struct cli *c)
{
    return one_action(c, act_interrupt, 0, "interrupted", true);
}

int cli_restart(struct cli *c)
{
    return one_action(c, act_restart, 0, "restarted", true);
}

int cli_pause(struct cli *c)
{
    return one_action(c, act_pause, 0, "paused", false);
}

int cli_resume(struct cli *c)
{
    int s = c->config->o.timeout;
    if (cli_has(c, CLI_TIMEOUT) && !take_span(c->value[CLI_TIMEOUT], &s))
        return CLI_USAGE;
    return one_action(c, app_resume, s, "resumed", false);
}

int cli_timeout(struct cli *c)
{
    int s;
    if (!take_span(c->args[1], &s))
        return CLI_USAGE;
    return one_action(c, app_set_timeout, s, "set", false);
}
