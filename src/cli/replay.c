/* cc-tui replay: a recorded run, played again. */
#include "cli_priv.h"

#include <cct/agent.h>
#include <cct/app/replay.h>
#include <cct/model/export.h>
#include <cct/model/transcribe.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOOK_MS = 200 }; /* what takes longer is looked through on the screen */

/* --- where it comes from ------------------------------------------------------------ */

static bool is_file(const char *what)
{
    struct stat st;

    return strchr(what, '/') || (stat(what, &st) == 0 && S_ISREG(st.st_mode));
}

static struct replay *of_file(const struct cli *c, struct err *e)
{
    const char *path = c->args[0], *tool = cli_has(c, CLI_TOOL) ? c->value[CLI_TOOL] : NULL;
    const struct agent_adapter *a = tool ? cli_adapter(tool, e) : NULL;

    return e->code ? NULL : replay_open(path, tool, a);
}

struct kept {
    int fd, sys;
};

static void keep(void *ctx, const char *data, size_t len)
{
    struct kept *k = ctx;

    if (!k->sys && fs_write_all(k->fd, data, len) != 0)
        k->sys = errno;
}

static bool is_loaded(struct cli_app *a)
{
    return app_model(a->app)->loaded;
}

static int fetch(struct cli_app *a, const struct cli *c, struct replay **r, struct err *e)
{
    struct kept k = {0, 0};
    const struct sandbox *s;
    int rc = cli_app_until(a, is_loaded, -1, e);

    s = rc == 0 ? cli_app_find(a, c->args[0], e) : NULL;
    if (!s || (k.fd = fs_temp(e)) < 0)
        return e->code;
    char *name = xstrdup(s->name ? s->name : s->sandbox_id), *tool = xstrdup(s->tool);
    rc = cli_app_wait(a, app_export(a->app, s->id, EXPORT_EVENTS, NULL, keep, &k), e);
    errno = k.sys;
    if (rc == 0 && k.sys)
        rc = err_sys(e, ERR_IO, "what is kept of '%s' cannot be laid out for replaying", c->args[0]);
    *r = replay_new(name, tool, k.fd, NULL); /* its length is that of now */
    free(name);
    free(tool);
    return rc;
}

/* What is kept here, as it is: no service is asked, nothing is written. */
static struct replay *of_sandbox(const struct cli *c, struct err *e, int *status)
{
    struct cli_app a;
    struct replay *r = NULL;

    if (cli_app_open_stored(&a, c, e) != 0)
        return NULL;
    if (fetch(&a, c, &r, e) != 0 && a.signal)
        *status = 128 + a.signal;
    cli_app_close(&a);
    return r;
}

/* --- as text ------------------------------------------------------------------------- */

struct told {
    const struct replay *r;
    int64_t from; /* what was before is not told */
};

static void tell_item(const struct told *t, const struct item *it, int64_t at)
{
    struct buf b = BUF_INIT;
    char when[24];

    replay_time_text(when, sizeof(when), at);
    cli_spoken_text(it, replay_tool(t->r), SIZE_MAX, &b);
    while (b.len && strchr(" \n", b.p[b.len - 1]))
        buf_truncate(&b, b.len - 1);
    cli_out("%s  %s\n", when, buf_str(&b));
    buf_release(&b);
}

/* Texts once they are whole, tools when they begin and when they have ended. */
static void tell_event(void *ctx, const struct agent_event *ev, int64_t at)
{
    const struct told *t = ctx;
    struct ev_items *items = ev_new(EV_ITEMS);

    if (at >= t->from)
        transcribe(ev, replay_tool(t->r), items);
    for (size_t i = 0; i < items->n; i++)
        if (items->op[i] == ITEM_PUT && cli_spoken(&items->v[i]) &&
            (!items->v[i].streaming || items->v[i].kind == ITEM_TOOL))
            tell_item(t, &items->v[i], at);
    msg_free(&items->m);
}

/* For what is read on, or so long; -1 = as long as that takes. 0, or 128 + the signal that came. */
static int wait_for(const struct replay *r, int sigfd, int64_t ms)
{
    struct pollfd p[2] = {{.fd = sigfd, .events = POLLIN}, {.fd = replay_fd(r), .events = POLLIN}};
    struct signalfd_siginfo si;

    if (poll(p, 2, ms > 60000 ? 60000 : (int)ms) > 0 && p[0].revents &&
        read(sigfd, &si, sizeof(si)) == sizeof(si)) {
        cli_out_stop();
        return 128 + (int)si.ssi_signo;
    }
    return 0;
}

/* Lines that are left out are said; with bytes that cannot be read it has failed, too. */
static void tell_trouble(struct replay *r, int *end)
{
    struct err e = {0};

    if (!replay_trouble(r, &e))
        return;
    cli_tell("%s", e.text);
    if (e.code == ERR_IO)
        *end = cli_exit_of(e.code);
}

static int play_as_text(const struct cli *c, struct replay *r, int sigfd)
{
    int64_t now = clock_mono_ms();
    struct told t = {r, replay_at(r, now)};
    int status = 0, end = 0;
    char length[24];

    replay_time_text(length, sizeof(length), replay_length(r));
    cli_say(c, "replay of %s, %s, %s long: nothing runs, nothing is billed", replay_name(r),
            replay_tool(r), length);
    tell_trouble(r, &end);
    replay_pause(r, now, false);
    while (!status) {
        replay_due(r, clock_mono_ms(), tell_event, &t);
        tell_trouble(r, &end);
        if (fflush(stdout) != 0)
            status = CLI_FAILED; /* cli_run tells */
        int64_t ms = replay_wait(r, clock_mono_ms());
        if ((ms < 0 && replay_fd(r) < 0) || status)
            break;
        status = wait_for(r, sigfd, ms);
    }
    if (!status && !end)
        cli_say(c, "the end of the replay");
    return status ? status : end;
}

/* --- both ---------------------------------------------------------------------------- */

static int check(const struct cli *c, int *speed, int64_t *from)
{
    if (cli_has(c, CLI_SPEED) && !replay_parse_speed(c->value[CLI_SPEED], speed))
        return cli_usage("'--speed' is a number from 0.01 to 1000 such as 4 or 0.5, or max, not "
                         "'%.40s'", c->value[CLI_SPEED]);
    if (cli_has(c, CLI_FROM) && !str_to_seconds(c->value[CLI_FROM], from))
        return cli_usage("'--from' is a time such as 90, 15m or 1h30m, not '%.40s'",
                         c->value[CLI_FROM]);
    if (cli_json(c))
        return cli_usage("'replay' prints text; events are printed by 'logs --json' and 'decode'");
    if (cli_has(c, CLI_TOOL) && !is_file(c->args[0]))
        return cli_usage("'--tool' goes with a file; there is no file '%.60s'", c->args[0]);
    return CLI_OK;
}

/* All of it, or with a screen a first look: the rest is looked through there. A status when a
 * signal came. */
static int look_through(struct replay *r, bool screen, int sigfd, struct err *e)
{
    int64_t until = clock_mono_ms() + LOOK_MS, left = LOOK_MS;
    int status = 0;

    while (!status && left > 0 && replay_look(r, e) == 1) {
        status = wait_for(r, sigfd, screen ? left : -1);
        left = screen ? until - clock_mono_ms() : left;
    }
    return status;
}

static int play(struct cli *c, struct replay *r, bool screen, int speed, int64_t from)
{
    int sigfd = cli_signals_open(), status;
    int64_t now = clock_mono_ms();
    struct err e = {0};

    replay_set_speed(r, now, speed);
    replay_seek(r, now, from > INT64_MAX / 1000 ? INT64_MAX : from * 1000);
    status = look_through(r, screen, sigfd, &e);
    if (e.code && !status)
        status = cli_fail(&e);
    else if (!status)
        status = screen ? c->host->play(c, r) : play_as_text(c, r, sigfd);
    if (sigfd >= 0)
        close(sigfd);
    return status;
}

int cli_replay(struct cli *c)
{
    int speed = 100, status;
    int64_t from = 0;
    struct err e = {0};
    struct replay *r;

    status = check(c, &speed, &from);
    if (status != CLI_OK)
        return status;
    r = is_file(c->args[0]) ? of_file(c, &e) : of_sandbox(c, &e, &status);
    bool screen = !cli_shared() && !cli_has(c, CLI_PLAIN) && isatty(STDIN_FILENO) &&
                  isatty(STDOUT_FILENO) && c->host && c->host->play;
    if (!status)
        status = e.code ? cli_fail(&e) : play(c, r, screen, speed, from);
    replay_free(r);
    return status;
}
