/* Starting an agent in a sandbox, and starting it again: prepare the folder, upload what
 * belongs into it, install, start the runner, see the CLI run. Each failure says which
 * step it was and what to do. */
#include "session_follow.h"
#include "session_priv.h"
#include "session_show.h"
#include "session_start.h"

#include <cct/secrets/secret.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEP_MS 30000
#define RESTART_MS 60000 /* to find out where it is; also the lease */

static void prepare(struct session *s);

/* --- the end of it --------------------------------------------------------------- */

static char *lease_name(const struct session *s)
{
    return xasprintf(SESSION_LEASE "%" PRIu64, s->row);
}

static void provision_free(struct session *s)
{
    struct provision *p = s->prov;

    s->prov = NULL;
    s->prov_ready = s->prov_begun = false;
    session_cancel_timer(s, &p->timer);
    if (p->call && s->envd)
        envd_cancel(s->envd, p->call);
    for (size_t i = 0; i < p->n_files; i++)
        if (p->files[i].call && s->envd)
            envd_cancel(s->envd, p->files[i].call);
    if (p->restart) {
        char *name = lease_name(s);

        store_lease_drop(s->j->o.store, name, s->j->o.owner);
        free(name);
    }
    for (size_t i = 0; i < p->env.n; i++) {
        free(p->env.v[i].k);
        secret_free(p->env.v[i].v);
    }
    ARR_RELEASE(&p->env);
    session_cancel_timer(s, &p->git_timer);
    if (p->git_call && s->envd)
        envd_close(s->envd, p->git_call);
    buf_release(&p->git);
    secret_free(p->repo_key);
    free(p->command);
    free(p->model);
    free(p->system_prompt);
    free(p->ask);
    free(p->skills);
    free(p->repo);
    free(p->branch);
    free(p->repo_key_name);
    free(p);
}

void session_provision_release(struct session *s)
{
    if (s->prov)
        provision_free(s);
}

void session_provision_left(struct session *s, const struct err *e)
{
    if (!s->prov || !s->prov->req_id)
        return;
    jobs_done(s->j, s->prov->req_id, e, s->row);
    s->prov->req_id = 0;
}

static void done(struct session *s, const struct err *e)
{
    struct provision *p = s->prov;
    session_fn fn = p->fn;
    void *ctx = p->ctx;
    uint64_t req = p->req_id;

    provision_free(s);
    if (req)
        jobs_done(s->j, req, e, s->row);
    if (fn)
        fn(ctx, e);
}

void session_provision_fail(struct session *s, int code, const char *fmt, ...)
{
    struct err e = {0};
    va_list ap;
    bool look = s->prov_begun && s->dir;

    va_start(ap, fmt);
    e.code = code;
    vsnprintf(e.text, sizeof(e.text), fmt, ap);
    va_end(ap);
    if (s->prov_begun)
        session_agent(s, AG_FAILED);
    done(s, &e);
    if (look)
        session_follow(s); /* what it printed before it ended is worth reading */
}

void session_provision_stop(struct session *s, const char *why)
{
    if (s->prov && !s->prov_ready)
        session_provision_fail(s, ERR_CANCELLED, "starting the agent was given up: %s", why);
    else if (s->prov)
        session_provision_sent(s);
}

/* --- it runs --------------------------------------------------------------------- */

static void ready(struct session *s)
{
    struct provision *p = s->prov;

    s->prov_ready = true;
    s->fo.buried = s->fo.said_missing = false;
    if (p->restart)
        session_lives(s);
    /* a command of the user's own works until it ends; a CLI waits for messages */
    session_agent(s, p->prompt_waits ? AG_STARTING : p->command ? AG_WORKING : AG_IDLE);
    if (!p->prompt_waits)
        done(s, NULL);
    if (s->fo.state == FO_ENDED || s->fo.state == FO_WAIT)
        session_follow_again(s);
    else
        session_follow(s);
}

void session_provision_sent(struct session *s)
{
    if (s->prov && s->prov_ready && s->prov->prompt_waits)
        done(s, NULL);
}

void session_provision_runner_ended(struct session *s, const char *why)
{
    if (s->prov && s->prov_begun && !s->prov_ready)
        session_provision_fail(
            s, ERR_IO,
            "starting the runner in the sandbox failed: %s; check that its template is a "
            "usual Linux with sh, coreutils and util-linux",
            *why ? why : "it ended at once");
}

static void on_await(void *ctx, const struct envd_run_result *r)
{
    struct session *s = ctx;
    char *out = xstrndup(r->out ? r->out : "", r->out_len);
    char *said = xstrndup(r->errout ? r->errout : "", r->err_len);
    char *why = str_trim(said), *code = str_starts(out, "exit ") ? out + 5 : NULL;

    s->prov->call = 0;
    str_trim(out);
    if (code)
        code[strcspn(code, " \n")] = 0;
    if (r->err.code)
        session_provision_fail(s, r->err.code, "waiting for the agent to start failed: %s",
                               r->err.text);
    else if (str_starts(out, "up") || str_eq(code, "0"))
        ready(s);
    else if (code)
        session_provision_fail(
            s, ERR_IO,
            "the agent ended at once with status %s%s%s; check its keys and its template", code,
            *why ? ": " : "", why);
    else if (str_starts(out, "error"))
        session_provision_fail(s, ERR_IO, "starting the runner in the sandbox failed: %s", why);
    else
        session_provision_fail(
            s, ERR_TIMEOUT,
            "the agent did not start within 20 s; the sandbox may be overloaded%s%s",
            *why ? ": " : "", why);
    free(out);
    free(said);
}

/* --- starting -------------------------------------------------------------------- */

static bool has_env(const struct provision *p, const char *name)
{
    for (size_t i = 0; i < p->env.n; i++)
        if (str_eq(p->env.v[i].k, name))
            return true;
    return false;
}

void session_provision_start(struct session *s)
{
    struct provision *p = s->prov;
    struct kv *env = xcalloc(p->env.n + 1, sizeof(*env));
    char before[24];
    const char *args[] = {
        s->dir, before,
        s->ad->mode == AGENT_ONE_RUN ? SESSION_MODE_ONE_RUN : SESSION_MODE_PERSISTENT, NULL};

    for (size_t i = 0; i < p->env.n; i++) {
        env[i].k = p->env.v[i].k;
        env[i].v = (char *)secret_value(p->env.v[i].v);
    }
    session_step(s, "starting %s", s->tool->name);
    session_life_start(s, env);
    free(env);
    snprintf(before, sizeof(before), "%" PRIu64, p->starts);
    p->call = session_sh(s, session_await_script, args, STEP_MS, on_await, s);
}

/* --- the folder -------------------------------------------------------------------- */

static void no_program(struct session *s, const char *program)
{
    const struct sandbox *row = session_row(s);
    bool drives = session_cli_drives(s->tool->argv);

    session_provision_fail(s, ERR_NOTFOUND,
                           "the agent's program '%.60s' is not in the template '%s': build a "
                           "template that has it, or choose another one%s",
                           program, row && row->template_id ? row->template_id : "",
                           drives && str_eq(program, "curl")
                               ? "; the tool opencode needs no curl, and asks nothing"
                               : "");
}

static void on_prepared(void *ctx, const struct envd_run_result *r)
{
    struct session *s = ctx;
    char *home;

    s->prov->call = 0;
    if (r->err.code) {
        session_provision_fail(s, r->err.code, "making the session folder failed: %s",
                               r->err.text);
        return;
    }
    if (r->exit_code == 127) {
        no_program(s, r->err_len ? r->errout : s->tool->argv[0]);
        return;
    }
    home = xstrndup(r->out ? r->out : "", r->out_len);
    if (r->exit_code == 0)
        session_set_home(s, str_trim(home));
    free(home);
    if (r->exit_code || !s->dir)
        session_provision_fail(
            s, ERR_IO, "making the session folder '~/" SESSION_ROOT "/%s' failed: %s", s->name,
            r->err_len ? r->errout : "the sandbox did not tell its home folder");
    else
        session_upload(s);
}

static void prepare(struct session *s)
{
    struct provision *p = s->prov;
    bool other = p->command || !session_upload_cli(s), drives = session_cli_drives(s->tool->argv);
    const char *args[] = {s->name, NULL, NULL, NULL};

    if (!other) {
        args[1] = drives ? "opencode" : s->tool->argv[0];
        args[2] = drives ? "curl" : NULL;
    }

    s->prov_begun = true;
    session_agent(s, AG_STARTING);
    session_step(s, "preparing the session folder");
    p->call = session_sh(s, session_prepare_script, args, STEP_MS, on_prepared, s);
}

/* --- first start ----------------------------------------------------------------- */

static void add_env(struct provision *p, const char *k, size_t k_len, const char *v)
{
    struct secret_kv *e = ARR_PUSH(&p->env);

    e->k = xstrndup(k, k_len);
    e->v = secret_new(v, strlen(v));
}

static void take_env(struct session *s, const struct kv *env)
{
    struct provision *p = s->prov;

    for (; env && env->k; env++)
        add_env(p, env->k, strlen(env->k), env->v ? env->v : "");
    for (char **e = s->tool->env; e && *e; e++) {
        size_t n = strcspn(*e, "=");
        char *k = xstrndup(*e, n);

        if ((*e)[n] && !has_env(p, k))
            add_env(p, *e, n, *e + n + 1);
        free(k);
    }
    if (s->ad->pty && !has_env(p, "TERM"))
        add_env(p, "TERM", 4, "xterm-256color");
}

static char *chosen(const char *text)
{
    return text && *text ? xstrdup(text) : NULL;
}

static void take_choices(struct provision *p, const struct session_start *q)
{
    p->command = xstrdup(q->command);
    p->model = chosen(q->model);
    p->system_prompt = chosen(q->system_prompt);
    p->ask = chosen(q->ask);
    p->repo = chosen(q->repo);
    p->branch = chosen(q->branch);
    p->repo_key = secret_dup((struct secret *)(uintptr_t)q->repo_key);
    p->repo_key_name = chosen(q->repo_key_name);
    if (q->skills_len) {
        p->skills = xcalloc(1, q->skills_len);
        memcpy(p->skills, q->skills, q->skills_len);
        p->skills_len = q->skills_len;
    }
}

/* What keeps a start from beginning at all: text, or NULL. */
static const char *cannot(const struct session *s)
{
    if (s->prov)
        return "the agent is being started already";
    if (session_readonly(s))
        return "this cc-tui only reads: another version owns the database";
    if (!s->tool || !s->tool->argv || !s->tool->argv[0])
        return "its tool is not known on this machine: add it to tools.conf";
    return NULL;
}

static void on_prompt(void *ctx, struct st_reply *r)
{
    struct session *s = ctx;

    if (!s->prov)
        return;
    if (r->err.code) {
        session_provision_fail(s, r->err.code, "the first prompt could not be stored: %s",
                               r->err.text);
        return;
    }
    session_show_message(s, &r->msg);
    prepare(s);
}

void session_provision(struct session *s, const struct session_start *q, session_fn fn,
                       void *ctx)
{
    const char *why = cannot(s);
    struct err e = {0};

    if (why) {
        err_set(&e, ERR_CONFLICT, "the agent cannot be started: %s", why);
        if (fn)
            fn(ctx, &e);
        return;
    }
    s->prov = xcalloc(1, sizeof(*s->prov));
    s->prov->fn = fn;
    s->prov->ctx = ctx;
    take_choices(s->prov, q);
    take_env(s, q->env);
    s->prov_begun = true;
    if (q->vm && session_target(s, q->vm, &e) != 0) {
        session_provision_fail(s, e.code, "the sandbox cannot be reached: %s", e.text);
        return;
    }
    session_agent(s, AG_STARTING);
    s->prov->prompt_waits = q->prompt && *q->prompt;
    if (s->prov->prompt_waits)
        store_message_add(s->j->o.store, s->row, q->prompt, jobs_store(s->j, on_prompt, s, s));
    else
        prepare(s);
}

/* --- starting again -------------------------------------------------------------- */

void session_provision_go(struct session *s)
{
    struct provision *p = s->prov;

    if (!p || !p->restart || s->prov_begun)
        return;
    session_cancel_timer(s, &p->timer);
    p->starts = s->fo.p.starts;
    prepare(s);
}

void session_provision_alive(struct session *s)
{
    if (s->prov && s->prov->restart && !s->prov_begun)
        session_provision_fail(s, ERR_CONFLICT,
                               "the agent still runs: interrupt it, or kill the sandbox");
}

static void on_late(void *ctx)
{
    struct session *s = ctx;

    s->prov->timer = 0;
    session_provision_fail(s, ERR_TIMEOUT, "the sandbox did not answer within %d s: try again",
                           RESTART_MS / 1000);
}

static void on_lease(void *ctx, struct st_reply *r)
{
    struct session *s = ctx;

    if (!s->prov)
        return;
    if (r->err.code) {
        session_provision_fail(s, r->err.code, "the agent cannot be restarted: %s",
                               r->err.text);
    } else if (!r->got) {
        session_provision_fail(s, ERR_BUSY, "another cc-tui is restarting this agent");
    } else if (s->fo.state == FO_TAIL) {
        session_provision_alive(s);
    } else if (s->fo.state != FO_OFF && s->fo.state != FO_STOPPED) {
        session_follow_again(s); /* somebody else may have been faster */
    } else {
        session_follow(s);
        if (s->prov && s->fo.state == FO_STOPPED)
            session_provision_fail(s, ERR_CONFLICT,
                                   "the agent cannot be restarted: the sandbox does not run");
    }
}

void session_restart(struct session *s, const struct kv *env, uint64_t req_id)
{
    const char *why = cannot(s);
    struct err e = {0};
    char *name;

    if (why) {
        err_set(&e, ERR_CONFLICT, "the agent cannot be restarted: %s", why);
        jobs_done(s->j, req_id, &e, s->row);
        return;
    }
    s->prov = xcalloc(1, sizeof(*s->prov));
    s->prov->restart = true;
    s->prov->req_id = req_id;
    take_env(s, env);
    session_timer(s, &s->prov->timer, RESTART_MS, on_late);
    name = lease_name(s);
    store_lease(s->j->o.store, name, s->j->o.owner, RESTART_MS,
                jobs_store(s->j, on_lease, s, s));
    free(name);
}
