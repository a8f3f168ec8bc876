/* cc-tui ps, watch, adopt and kill --process: sandboxes that cc-tui did not make, and the
 * processes in any. */
#include "cli_priv.h"

#include <cct/text/clean.h>
#include <cct/text/width.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- ps -------------------------------------------------------------------------- */

static void ps_json(const struct procs *p)
{
    struct buf b = BUF_INIT;
    struct jw w;

    jw_init(&w, &b);
    jw_arr(&w, NULL);
    for (size_t i = 0; i < p->n; i++) {
        jw_obj(&w, NULL);
        jw_i64(&w, "pid", p->v[i].pid);
        jw_str(&w, "command", p->v[i].command);
        jw_str(&w, "cwd", p->v[i].cwd);
        jw_str(&w, "tag", p->v[i].tag);
        jw_end(&w);
    }
    jw_end(&w);
    cli_out_json(&b);
    buf_release(&b);
}

static void put_cell(const char *s, size_t width)
{
    size_t w = text_width(s, strlen(s));
    cli_out("%s%*s", s, (int)(width > w ? width - w : 0) + 2, "");
}

/* The command line comes last, so that nothing has to be cut. */
static void ps_table(const struct cli *c, const struct procs *p)
{
    size_t cwd = 3, tag = 3;

    for (size_t i = 0; i < p->n; i++) {
        size_t n = p->v[i].cwd ? text_width(p->v[i].cwd, strlen(p->v[i].cwd)) : 0;
        size_t t = p->v[i].tag ? text_width(p->v[i].tag, strlen(p->v[i].tag)) : 0;
        cwd = n > cwd ? n : cwd;
        tag = t > tag ? t : tag;
    }
    cli_out("%7s  ", "PID");
    put_cell("CWD", cwd);
    put_cell("TAG", tag);
    cli_out("COMMAND\n");
    for (size_t i = 0; i < p->n; i++) {
        cli_out("%7d  ", p->v[i].pid);
        put_cell(p->v[i].cwd ? p->v[i].cwd : "-", cwd);
        put_cell(p->v[i].tag ? p->v[i].tag : "-", tag);
        cli_out("%s\n", p->v[i].command);
    }
    if (p->more)
        cli_say(c, "and %zu more", p->more);
}

/* The processes of the sandbox, fresh; NULL with *e. Borrowed until the next wait. */
static const struct procs *list(struct cli_app *a, uint64_t id, struct err *e)
{
    if (cli_app_wait(a, app_proc_list(a->app, id), e) != 0)
        return NULL;
    return model_procs(app_model(a->app), id);
}

int cli_ps(struct cli *c)
{
    struct cli_app a;
    struct err e = {0};
    int status = CLI_OK;
    const struct sandbox *s = cli_app_begin(&a, c, c->args[0], &status);
    const struct procs *p;

    if (!s)
        return status;
    p = list(&a, s->id, &e);
    if (!p) {
        status = cli_app_fail(&a, &e);
    } else if (cli_json(c)) {
        ps_json(p);
    } else if (cli_has(c, CLI_QUIET)) {
        for (size_t i = 0; i < p->n; i++)
            cli_out("%d\n", p->v[i].pid);
    } else {
        ps_table(c, p);
    }
    cli_app_close(&a);
    return status;
}

/* --- one process ----------------------------------------------------------------- */

static bool take_pid(const char *text, int *pid)
{
    int64_t n;

    if (!str_to_i64(text, 1, INT32_MAX, &n)) {
        cli_usage("a process is named by its number, such as 1207, not '%.60s'; 'cc-tui ps' "
                  "lists them", text);
        return false;
    }
    *pid = (int)n;
    return true;
}

/* For stdout and stderr: what makes a stranger's bytes fit for a terminal; NULL where they go
 * on as they are. */
struct watched {
    struct clean *clean[2];
};

static void watched_begin(struct watched *w, const struct cli *c)
{
    for (int i = 0; i < 2; i++)
        w->clean[i] = !cli_has(c, CLI_RAW) && isatty(i ? STDERR_FILENO : STDOUT_FILENO)
                          ? clean_new()
                          : NULL;
}

static void put_line(void *ctx, const char *text, size_t len, const struct text_run *runs,
                     size_t n_runs)
{
    (void)runs, (void)n_runs;
    cli_stream_bytes(ctx, text, len);
    cli_stream_bytes(ctx, "\n", 1);
}

static void watched_end(struct watched *w)
{
    for (int i = 0; i < 2; i++) {
        if (w->clean[i])
            clean_flush(w->clean[i], put_line, i ? stderr : stdout);
        clean_free(w->clean[i]);
    }
}

/* stdout to stdout, stderr to stderr, a terminal's output to stdout. */
static void put_bytes(void *ctx, int stream, const char *data, size_t len)
{
    const struct watched *w = ctx;
    bool err = stream == 1;

    if (stream < 0)
        cli_tell("%.*s", (int)len, data);
    else if (w->clean[err])
        clean_feed(w->clean[err], data, len, put_line, err ? stderr : stdout);
    else
        cli_stream_bytes(err ? stderr : stdout, data, len);
}

static void put_json(void *ctx, int stream, const char *data, size_t len)
{
    static const char *const names[] = {"stdout", "stderr", "pty"};
    struct buf b = BUF_INIT;
    struct jw w;
    char *b64;

    (void)ctx;
    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_str(&w, "stream", stream < 0 || stream > 2 ? "note" : names[stream]);
    if (stream < 0) {
        jw_strn(&w, "text", data, len);
    } else {
        b64 = b64_encode(data, len);
        jw_str(&w, "base64", b64);
        free(b64);
    }
    jw_end(&w);
    cli_out_json(&b);
    buf_release(&b);
}

int cli_watch(struct cli *c)
{
    struct cli_app a;
    struct watched w;
    struct err e = {0};
    int status = CLI_OK, pid;
    const struct sandbox *s;

    if (cli_has(c, CLI_RAW) && cli_json(c))
        return cli_usage("'watch' prints raw bytes or JSON, not both");
    if (!take_pid(c->args[1], &pid) || !(s = cli_app_begin(&a, c, c->args[0], &status)))
        return status ? status : CLI_USAGE;
    watched_begin(&w, c);
    if (s->state == SB_PAUSED)
        err_set(&e, ERR_CONFLICT, "\"%s\" is paused: resume it first", s->name);
    if (e.code ||
        cli_app_wait(&a, app_proc_bytes(a.app, s->id, pid, 0, cli_json(c) ? put_json : put_bytes,
                                        &w), &e) != 0) {
        if (a.signal)
            cli_say(c, "process %d goes on", pid);
        status = cli_app_fail(&a, &e);
    } else {
        status = a.exit_code;
    }
    cli_app_close(&a);
    watched_end(&w);
    return status;
}

static int ask_kill(const struct cli *c, const struct sandbox *s, const struct proc *p, bool hard)
{
    char *question;
    bool yes;

    if (cli_has(c, CLI_YES))
        return CLI_OK;
    question = xasprintf("send %s to process %d of %s (%s)?\n  %s\n", hard ? "SIGKILL" : "SIGTERM",
                         p->pid, s->sandbox_id, s->name, p->command);
    yes = cli_ask(question);
    free(question);
    if (yes)
        return CLI_OK;
    cli_tell("nothing was done");
    return CLI_DECLINED;
}

static int kill_process(struct cli_app *a, const struct sandbox *s, int pid, bool hard)
{
    const struct cli *c = a->c;
    struct err e = {0};
    uint64_t id = s->id, ident;
    const struct procs *all = list(a, id, &e);
    const struct proc *p = procs_find(all, pid);
    int status;

    s = model_sandbox(app_model(a->app), id);
    if (!all)
        return cli_app_fail(a, &e);
    if (!p || !s) {
        err_set(&e, ERR_NOTFOUND, "no process %d runs in '%.60s'; 'cc-tui ps' lists them", pid,
                c->args[0]);
        return cli_fail(&e);
    }
    if (cli_has(c, CLI_DRY_RUN)) {
        cli_out("%d %s\n", pid, p->command);
        cli_say(c, "would get %s", hard ? "SIGKILL" : "SIGTERM");
        return CLI_OK;
    }
    status = ask_kill(c, s, p, hard);
    ident = p->ident;
    if (status != CLI_OK)
        return status;
    if (cli_app_wait(a, app_proc_kill(a->app, id, pid, ident, hard), &e) != 0)
        return cli_app_fail(a, &e);
    if (cli_json(c))
        cli_out("{\"pid\":%d,\"done\":\"ended\"}\n", pid);
    else
        cli_say(c, "process %d has ended", pid);
    return CLI_OK;
}

/* SIGTERM and TERM alike. */
static int signal_of(const char *name, bool *hard)
{
    const char *s = name && strncasecmp(name, "SIG", 3) == 0 ? name + 3 : name;

    *hard = s && str_eq_nocase(s, "KILL");
    if (s && !*hard && !str_eq_nocase(s, "TERM"))
        return cli_usage("'--signal' is TERM or KILL, not '%.60s': a sandbox takes no other", name);
    return CLI_OK;
}

int cli_kill_process(struct cli *c)
{
    struct cli_app a;
    const struct sandbox *s;
    int pid, status;
    bool hard;

    if (c->n_args != 1 || cli_has(c, CLI_ALL))
        return cli_usage("'kill --process' wants one sandbox");
    if (!take_pid(c->value[CLI_PROCESS], &pid) ||
        signal_of(c->value[CLI_SIGNAL], &hard) != CLI_OK)
        return CLI_USAGE;
    if (!cli_has(c, CLI_YES) && !cli_has(c, CLI_DRY_RUN) && !cli_can_ask(c))
        return cli_usage("'kill' cannot ask here; give --yes to do it");
    if (cli_has(c, CLI_READONLY) && !cli_has(c, CLI_DRY_RUN))
        return cli_usage("'kill' does nothing with --readonly");
    s = cli_app_begin(&a, c, c->args[0], &status);
    if (!s)
        return status;
    status = kill_process(&a, s, pid, hard);
    cli_app_close(&a);
    return status;
}

/* --- adopt ----------------------------------------------------------------------- */

static void told_adopted(const struct cli *c, const struct sandbox *s, bool undo, int pid)
{
    struct buf b = BUF_INIT;
    struct jw w;

    if (!cli_json(c)) {
        if (undo)
            cli_say(c, "%s is foreign again: kill --all of a project leaves it", s->sandbox_id);
        else
            cli_say(c, "%s (%s) is adopted into project %s: kill --all takes it from now on%s",
                    s->sandbox_id, s->name, s->project,
                    pid ? "; its output is kept while a cc-tui follows it" : "");
        return;
    }
    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_str(&w, "sandboxID", s->sandbox_id);
    jw_str(&w, "done", undo ? "foreign" : "adopted");
    jw_str(&w, "name", s->name);
    jw_str(&w, "project", s->project);
    if (pid)
        jw_i64(&w, "pid", pid);
    jw_end(&w);
    cli_out_json(&b);
    buf_release(&b);
}

int cli_adopt(struct cli *c)
{
    struct cli_app a;
    struct err e = {0};
    int status = CLI_OK, pid = 0;
    bool undo = cli_has(c, CLI_UNDO);
    const struct sandbox *s;
    uint64_t id;

    if (undo && (cli_has(c, CLI_NAME) || cli_has(c, CLI_PROCESS)))
        return cli_usage("'adopt --undo' takes nothing but the sandbox");
    if (cli_has(c, CLI_PROCESS) && !take_pid(c->value[CLI_PROCESS], &pid))
        return CLI_USAGE;
    if (cli_has(c, CLI_READONLY) && !cli_has(c, CLI_DRY_RUN))
        return cli_usage("'adopt' does nothing with --readonly");
    s = cli_app_begin(&a, c, c->args[0], &status);
    if (!s)
        return status;
    id = s->id;
    struct app_adopt how = {.name = c->value[CLI_NAME], .project = c->value[CLI_PROJECT],
                            .pid = pid};
    if (cli_has(c, CLI_DRY_RUN))
        cli_say(c, "would %s %s", undo ? "give back" : "adopt", s->sandbox_id);
    else if (cli_app_wait(&a, undo ? app_unadopt(a.app, id) : app_adopt(a.app, id, &how), &e) != 0)
        status = cli_app_fail(&a, &e);
    else if ((s = model_sandbox(app_model(a.app), id)))
        told_adopted(c, s, undo, pid);
    cli_app_close(&a);
    return status;
}
