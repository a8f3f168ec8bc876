/* cc-tui local: the local provider, which is a program of its own. */
#include "cli_priv.h"

#include <cct/jobs/local.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Run it to its end with its talk on our stderr; its exit status, or negative. */
static int run_provider(const char *verb, const char *option, struct err *e)
{
    char *program = local_provider_program();
    const char *argv[4] = {program, verb, option, NULL};
    char **env = local_provider_env();
    posix_spawn_file_actions_t fa;
    pid_t pid;
    int status = 0;

    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_adddup2(&fa, STDERR_FILENO, STDOUT_FILENO);
    int rc = posix_spawnp(&pid, program, &fa, NULL, (char *const *)(uintptr_t)argv, env);
    posix_spawn_file_actions_destroy(&fa);
    if (rc != 0) {
        errno = rc;
        rc = err_sys(e, 0, "cannot start '%s'; install it beside cc-tui", program);
    } else {
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            continue;
        rc = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    free(env);
    free(program);
    return rc;
}

static const char *network_name(const struct local_provider *p)
{
    return p->private_net ? "private" : "host";
}

static void print_json(const struct local_provider *p)
{
    struct buf b = BUF_INIT;
    struct jw w;
    char url[64];

    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_bool(&w, "running", p != NULL);
    if (p) {
        jw_i64(&w, "pid", p->pid);
        snprintf(url, sizeof(url), "http://127.0.0.1:%d", p->control);
        jw_str(&w, "apiURL", url);
        snprintf(url, sizeof(url), "http://127.0.0.1:%d", p->traffic);
        jw_str(&w, "sandboxURL", url);
        jw_bool(&w, "isolated", !p->unsafe);
        jw_str(&w, "network", network_name(p));
        jw_str(&w, "limits", p->limits);
    }
    jw_end(&w);
    cli_out_json(&b);
    buf_release(&b);
}

int cli_local_start(struct cli *c)
{
    struct err e = {0};
    struct local_provider p;
    bool was = local_provider_find(NULL, &p, &e) == 0;
    bool private = strcmp(c->config->o.local_network, "private") == 0;

    if (!was) {
        err_clear(&e);
        const char *option = cli_has(c, CLI_LOCAL_UNSAFE) ? "--unsafe"
                             : private                    ? "--net=private"
                                                          : NULL;
        int rc = run_provider("serve", option, &e);
        if (rc < 0)
            return cli_fail(&e);
        if (rc > 0)
            return CLI_FAILED; /* it said why */
        if (local_provider_find(NULL, &p, &e) != 0)
            return cli_fail(&e);
    }
    if (cli_has(c, CLI_LOCAL_UNSAFE) && !p.unsafe)
        cli_say(c, "it runs already, with isolation");
    else if (was && !p.unsafe && private != p.private_net)
        cli_say(c, "it runs already, with network = %s; 'cc-tui local stop' ends it",
                network_name(&p));
    if (cli_json(c))
        print_json(&p);
    else if (!cli_has(c, CLI_QUIET))
        cli_out("the local provider %s: API on port %d, sandboxes on port %d%s\n",
               was ? "was running" : "runs", p.control, p.traffic,
               p.unsafe ? ", NOT ISOLATED" : "");
    local_provider_release(&p);
    return CLI_OK;
}

/* How many sandboxes would end with it; negative when that is not known. */
static int count_up(struct cli *c)
{
    struct cli local = *c;
    struct cli_app a;
    struct err e = {0};
    int n = -1;

    local.given |= CLI_BIT(LOCAL);
    if (cli_app_open(&a, &local, &e) != 0)
        return -1;
    if (cli_app_refresh(&a, &e) == 0) {
        const struct model *m = app_model(a.app);
        n = 0;
        for (size_t i = 0; i < m->n_sandboxes; i++)
            n += cli_is_up(&m->sandboxes[i]);
    }
    cli_app_close(&a);
    return a.signal ? -1 - a.signal : n;
}

/* All of its sandboxes end with it: with some there, that is asked. 0 = go. */
static int may_stop(struct cli *c)
{
    struct err e = {0};
    struct local_provider p;
    char question[120];

    if (cli_has(c, CLI_READONLY))
        return cli_usage("'local stop' does nothing with --readonly");
    if (cli_has(c, CLI_YES) || local_provider_find(NULL, &p, &e) != 0)
        return CLI_OK;
    local_provider_release(&p);
    int n = count_up(c);
    if (n < -1)
        return 128 - 1 - n;
    if (n == 0)
        return CLI_OK;
    if (n > 0)
        snprintf(question, sizeof(question), "end the local provider and its %d sandbox%s?", n,
                 n == 1 ? "" : "es");
    else
        snprintf(question, sizeof(question),
                 "end the local provider and all of its sandboxes?");
    if (!cli_can_ask(c))
        return cli_usage("sandboxes would end with the local provider; give --yes to do it");
    if (cli_ask(question))
        return CLI_OK;
    cli_tell("nothing was ended");
    return CLI_DECLINED;
}

int cli_local_stop(struct cli *c)
{
    struct err e = {0};
    int status = may_stop(c);

    if (status != CLI_OK)
        return status;
    int rc = run_provider("stop", NULL, &e);
    return rc < 0 ? cli_fail(&e) : rc;
}

/* As with any service: 0 it runs, 1 it does not. */
int cli_local_status(struct cli *c)
{
    struct err e = {0};
    struct local_provider p;
    int rc = local_provider_find(NULL, &p, &e);

    if (rc != 0 && rc != ERR_NOTFOUND)
        return cli_fail(&e);
    if (cli_json(c))
        print_json(rc == 0 ? &p : NULL);
    else if (rc == 0)
        cli_out("running: pid %d, API on port %d, sandboxes on port %d, limits of a sandbox: "
               "%s, network: %s%s\n",
               p.pid, p.control, p.traffic, p.limits[0] ? p.limits : "no memory, no CPU",
               network_name(&p), p.unsafe ? ", NOT ISOLATED" : "");
    else
        cli_out("not running\n");
    if (rc == 0)
        local_provider_release(&p);
    return rc == 0 ? CLI_OK : CLI_FAILED;
}

int cli_local_env(struct cli *c)
{
    struct err e = {0};
    struct local_provider p;

    if (local_provider_find(NULL, &p, &e) != 0)
        return cli_fail(&e);
    char *api = xasprintf("http://127.0.0.1:%d", p.control);
    char *traffic = xasprintf("http://127.0.0.1:%d", p.traffic);
    if (cli_json(c))
        cli_out("{\"E2B_API_KEY\":\"%s\",\"E2B_API_URL\":\"%s\",\"E2B_SANDBOX_URL\":\"%s\","
               "\"NO_UPDATE_NOTIFIER\":\"1\"}\n",
               secret_value(p.key), api, traffic);
    else
        cli_out("export E2B_API_KEY='%s'\nexport E2B_API_URL='%s'\nexport E2B_SANDBOX_URL='%s'\n"
               "export NO_UPDATE_NOTIFIER=1\n",
               secret_value(p.key), api, traffic);
    free(api);
    free(traffic);
    local_provider_release(&p);
    return CLI_OK;
}
