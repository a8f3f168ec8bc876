/* A command's application: start, wait for one thing at a time, stop. */
#include "cli_priv.h"

#include <cct/util/clock.h>
#include <cct/util/map.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { MIN_PREFIX = 6, HAND_OVER_MS = 5000, INTERRUPT_MS = 10000 };

static const struct cli_shared *shared;

void cli_share(const struct cli_shared *s)
{
    shared = s;
}

const struct cli_shared *cli_shared(void)
{
    return shared;
}

void cli_app_opts(const struct cli *c, struct app_opts *o)
{
    const struct options *s = &c->config->o;

    *o = (struct app_opts){
        .local = cli_has(c, CLI_LOCAL) || cli_has(c, CLI_LOCAL_UNSAFE),
        .local_unsafe = cli_has(c, CLI_LOCAL_UNSAFE),
        .readonly = cli_has(c, CLI_READONLY),
        .start_local = true,
        .local_private_net = strcmp(s->local_network, "private") == 0,
        .project = c->project,
        .project_folder = c->project_folder,
        .data_dir = cli_has(c, CLI_DATA_DIR) ? c->value[CLI_DATA_DIR] : NULL,
        .ca_file = *s->ca_file ? s->ca_file : NULL,
        .poll_ms = s->poll * 1000,
        .retention_days = s->retention,
        .max_store_bytes = s->max_store,
        .vacuum = s->vacuum,
        .slow_end = cli_slow_end,
        .vault_idle_s = s->vault_idle_lock,
        .kill_all_grace_s = s->kill_all_grace,
        .usage_limits = {.budget = {{s->budget_day, s->budget_week, s->budget_month}},
                         .warn_pct = s->budget_warn,
                         .action = !strcmp(s->budget_action, "none")     ? USAGE_NONE
                                   : !strcmp(s->budget_action, "notify") ? USAGE_NOTIFY
                                                                         : USAGE_PAUSE_IDLE},
    };
}

static void kill_progress(const struct ev_kill *k)
{
    if (k->phase == KILL_RUNNING)
        cli_err("killed %zu of %zu\n", k->killed + k->already_gone, k->n);
    else if (k->phase == KILL_VERIFYING)
        cli_err("looking whether they are gone\n");
}

/* Trouble of the program itself is told, what sandboxes do only with -v. */
static void tell_event(const struct cli_app *a, const struct ev_event *ev)
{
    bool trouble = ev->level > 0 && ev->sandbox == 0;
    if (cli_has(a->c, CLI_VERBOSE) || (trouble && !cli_has(a->c, CLI_QUIET)))
        cli_tell("%s", ev->text);
}

/* Whoever waits for an answer of the agent learns that it waits for one, too. */
static void tell_asks(struct cli_app *a, const struct ev_asks *ev)
{
    const struct sandbox *s = model_sandbox(app_model(a->app), ev->sandbox);
    const char *name = s ? s->name ? s->name : s->sandbox_id : "it";

    if (!a->told)
        a->told = map_new();
    for (size_t i = 0; i < ev->n; i++) {
        if (ev->v[i].answer || map_put(a->told, ev->v[i].id, a))
            continue;
        cli_say(a->c, "%s asks you: %s  (cc-tui answer %s)", name, ev->v[i].question, name);
    }
}

static void on_event(void *ctx, const struct msg *ev)
{
    struct cli_app *a = ctx;

    if (a->see)
        a->see(a->see_ctx, ev);
    if (shared) /* tells all that the following would */
        shared->observe(shared->ctx, ev);
    if (!shared && ev->type == EV_EVENT)
        tell_event(a, (const struct ev_event *)ev);
    if (!shared && ev->type == EV_ASKS && a->asks_of && ((const struct ev_asks *)ev)->sandbox == a->asks_of)
        tell_asks(a, (const struct ev_asks *)ev);
    if (ev->type == EV_KILL && a->progress)
        kill_progress((const struct ev_kill *)ev);
    for (size_t i = 0; ev->type == EV_DONE && i < a->n_waits; i++)
        if (a->waits[i].req == ev->req_id) {
            a->waits[i].err = ((const struct ev_done *)ev)->err;
            a->waits[i].sandbox = ((const struct ev_done *)ev)->sandbox;
            a->waits[i].done = true;
        }
    if (ev->type != EV_DONE || !a->wanted || ev->req_id != a->wanted)
        return;
    const struct ev_done *d = (const struct ev_done *)ev;
    free(a->sandbox_id);
    free(a->text);
    a->err = d->err;
    a->sandbox = d->sandbox;
    a->sandbox_id = xstrdup(d->sandbox_id);
    a->text = xstrdup(d->text);
    a->outcome = d->outcome;
    a->exit_code = d->exit_code;
    a->done = true;
}

/* Up to the threads; NULL in a->app after a failure. */
static int begin(struct cli_app *a, const struct cli *c, bool keys_only, struct err *e)
{
    struct app_opts o;

    memset(a, 0, sizeof(*a));
    a->c = c;
    if (shared) {
        a->app = shared->app;
        a->sigfd = shared->sigfd;
        app_observe(a->app, on_event, a);
        return 0;
    }
    a->sigfd = cli_signals_open();
    if (a->sigfd < 0)
        return err_sys(e, ERR_IO, "signals cannot be watched");
    cli_app_opts(c, &o);
    o.keys_only = keys_only;
    if (c->cmd == CLI_CMD_REPLAY) { /* looks alone: nothing is tidied up by the way either */
        o.retention_days = 0;
        o.max_store_bytes = 0;
        o.vacuum = false;
    }
    if (cli_passphrase(c, &o, e) == 0)
        a->app = app_new(&o, e);
    if (!a->app) {
        close(a->sigfd);
        return e->code;
    }
    app_observe(a->app, on_event, a);
    return app_start(a->app, e);
}

int cli_app_open(struct cli_app *a, const struct cli *c, struct err *e)
{
    int rc = begin(a, c, false, e);

    if (rc == 0)
        rc = app_go_online(a->app, e);
    if (rc != 0 && a->app)
        cli_app_close(a);
    return rc;
}

/* Both, as each may come first. */
static bool is_read(struct cli_app *a)
{
    return app_keys(a->app) != NULL && app_model(a->app)->loaded;
}

int cli_app_open_keys(struct cli_app *a, const struct cli *c, bool change, struct err *e)
{
    int rc = begin(a, c, true, e);

    if (rc == 0)
        rc = cli_app_until(a, is_read, -1, e);
    if (rc == 0 && change)
        rc = app_go_online(a->app, e);
    if (rc == 0 && change && app_vault_by_passphrase(a->app))
        rc = cli_app_unlock(a, e);
    if (rc != 0 && a->app)
        cli_app_close(a);
    return rc;
}

int cli_app_open_stored(struct cli_app *a, const struct cli *c, struct err *e)
{
    int rc = begin(a, c, true, e);

    if (rc == 0)
        rc = app_go_online(a->app, e);
    if (rc != 0 && a->app)
        cli_app_close(a);
    return rc;
}

/* Asks once; the answer to a passphrase that was given is waited for, too. */
int cli_app_unlock(struct cli_app *a, struct err *e)
{
    struct secret *s;

    if (a->asked || cli_has(a->c, CLI_PASSPHRASE_FD) || cli_has(a->c, CLI_UNLOCK))
        return 0;
    if (!cli_can_ask(a->c))
        return err_set(e, ERR_AUTH, "the vault is locked: give its passphrase by --passphrase-fd");
    a->asked = true;
    s = cli_secret_prompt("passphrase of the vault: ", e);
    return s ? cli_app_wait(a, app_unlock(a->app, s), e) : e->code;
}

/* What a command has loaded goes again. */
static void give_back(struct cli_app *a)
{
    const struct model *m = app_model(a->app);

    for (size_t i = 0; i < m->n_sandboxes; i++)
        if (model_transcript(m, m->sandboxes[i].id) &&
            !shared->follows(shared->ctx, m->sandboxes[i].id))
            app_unfollow(a->app, m->sandboxes[i].id);
    app_leave(a->app); /* what was left before its end has nowhere to put what still comes */
    app_observe(a->app, shared->observe, shared->ctx);
    a->app = NULL;
    a->sigfd = -1;
}

void cli_app_close(struct cli_app *a)
{
    if (shared && a->app)
        give_back(a);
    if (a->app) {
        app_stop(a->app);
        app_free(a->app);
    }
    if (a->sigfd >= 0)
        close(a->sigfd);
    free(a->sandbox_id);
    free(a->text);
    map_free(a->told, NULL);
    int sig = a->signal;
    memset(a, 0, sizeof(*a));
    a->sigfd = -1;
    a->signal = sig;
}

static void read_signal(struct cli_app *a)
{
    struct signalfd_siginfo si;
    while (read(a->sigfd, &si, sizeof(si)) == (ssize_t)sizeof(si))
        a->signal = (int)si.ssi_signo;
    if (a->signal)
        cli_out_stop();
    if (a->signal && shared)
        shared->signalled(shared->ctx, a->signal);
}

/* Between the events of a command in the line mode; ms to wait at most, -1 = no limit. */
static int between(struct cli_app *a, const struct pollfd *input)
{
    if (!shared)
        return -1;
    if (shared->read(shared->ctx, input->fd >= 0 && input->revents))
        a->signal = SIGINT;
    return shared->turn(shared->ctx);
}

static int shorter(int a, int64_t b)
{
    return a < 0 || b < a ? (int)b : a;
}

int cli_app_until(struct cli_app *a, bool (*ready)(struct cli_app *a), int ms, struct err *e)
{
    int64_t end = ms < 0 ? INT64_MAX : clock_mono_ms() + ms;
    struct pollfd p[3] = {{.fd = app_fd(a->app), .events = POLLIN},
                          {.fd = a->sigfd, .events = POLLIN},
                          {.fd = -1, .events = POLLIN}};

    for (;;) {
        app_drain(a->app, CLI_DRAIN_MS);
        read_signal(a);
        int most = between(a, &p[2]);
        if (a->signal)
            return err_set(e, ERR_CANCELLED, "interrupted");
        if (ready(a))
            return 0;
        /* what is written now is wanted now; a reader that is gone ends the wait */
        if (fflush(stdout) != 0) {
            read_signal(a); /* it may have ended a wait for the reader */
            return a->signal ? err_set(e, ERR_CANCELLED, "interrupted")
                             : err_set(e, ERR_IO, "the output cannot be written");
        }
        int64_t left = end - clock_mono_ms();
        if (left <= 0)
            return err_set(e, ERR_TIMEOUT, "no answer in time");
        if (ms >= 0)
            most = shorter(most, left);
        p[2].fd = shared ? shared->wanted(shared->ctx) : -1;
        if (poll(p, 3, most) < 0 && errno != EINTR)
            return err_sys(e, ERR_IO, "waiting failed");
    }
}

static bool is_done(struct cli_app *a)
{
    return a->done;
}

int cli_app_wait(struct cli_app *a, uint64_t req, struct err *e)
{
    a->wanted = req;
    a->done = false;
    int rc = cli_app_until(a, is_done, -1, e);
    a->wanted = 0;
    if (rc != 0)
        return rc;
    if (a->err.code != 0)
        *e = a->err;
    return a->err.code;
}

static bool all_done(struct cli_app *a)
{
    for (size_t i = 0; i < a->n_waits; i++)
        if (!a->waits[i].done)
            return false;
    return true;
}

int cli_app_wait_all(struct cli_app *a, struct cli_wait *v, size_t n, struct err *e)
{
    a->waits = v;
    a->n_waits = n;
    int rc = cli_app_until(a, all_done, -1, e);
    a->n_waits = 0;
    return rc;
}

int cli_app_fail(const struct cli_app *a, const struct err *e)
{
    if (a->signal)
        return 128 + a->signal;
    if (e->code == ERR_IO && ferror(stdout))
        return CLI_FAILED; /* cli_run tells, or not */
    return cli_fail(e);
}

static bool is_loaded(struct cli_app *a)
{
    return app_model(a->app)->loaded;
}

int cli_app_refresh(struct cli_app *a, struct err *e)
{
    int rc = cli_app_until(a, is_loaded, -1, e);
    if (rc == 0)
        rc = cli_app_wait(a, app_refresh(a->app), e);
    if (rc != ERR_AUTH || a->asked || !app_vault_by_passphrase(a->app) || !cli_can_ask(a->c))
        return rc;
    rc = cli_app_unlock(a, e); /* a key that was needed lies in the vault */
    return a->asked && rc == 0 ? cli_app_wait(a, app_refresh(a->app), e) : ERR_AUTH;
}

int cli_app_known(struct cli_app *a, struct err *e)
{
    const struct model *m = app_model(a->app);

    return shared && m->loaded && m->listed_at && !model_is_stale(m) ? 0 : cli_app_refresh(a, e);
}

static bool files_are_known(struct cli_app *a)
{
    return app_look_at_files(a->app, a->create, false);
}

int cli_app_files(struct cli_app *a, const struct app_create *n, struct err *e)
{
    a->create = n;
    return cli_app_until(a, files_are_known, -1, e);
}

static const struct message *newest(struct cli_app *a)
{
    const struct model *m = app_model(a->app);
    const struct message *best = NULL;
    for (size_t i = 0; i < m->n_messages; i++)
        if (m->messages[i].sandbox == a->sandbox && (!best || m->messages[i].id > best->id))
            best = &m->messages[i];
    return best;
}

/* Taken in by the agent: whoever sends sees to it that its place in the log is known. */
static bool has_left(struct cli_app *a)
{
    const struct message *m = newest(a);
    return m && m->state != MSG_QUEUED && m->state != MSG_SENT;
}

static bool is_busy(const struct cli_app *a, uint64_t sandbox)
{
    const struct sandbox *s = model_sandbox(app_model(a->app), sandbox);

    return s && s->agent != AG_IDLE;
}

int cli_app_hand_over(struct cli_app *a, uint64_t sandbox, bool *queued, struct err *e)
{
    a->sandbox = sandbox;
    if (shared && is_busy(a, sandbox) && !cli_has(a->c, CLI_NOW)) { /* we stay: it goes in its turn */
        *queued = true;
        return 0;
    }
    app_follow(a->app, sandbox);
    int ms = cli_has(a->c, CLI_NOW) ? INTERRUPT_MS + HAND_OVER_MS : HAND_OVER_MS;
    int rc = cli_app_until(a, has_left, ms, e);
    const struct message *m = newest(a);
    *queued = rc == ERR_TIMEOUT && (!m || m->state == MSG_QUEUED);
    if (rc == ERR_TIMEOUT) {
        err_clear(e);
        return 0;
    }
    if (rc != 0)
        return rc;
    if (m && (m->state == MSG_FAILED || m->state == MSG_UNCONFIRMED))
        rc = err_set(e, ERR_CONFLICT, "the message did not reach the agent: %s",
                     m->error ? m->error : msg_state_name(m->state));
    return rc;
}

void cli_app_tell_time(const struct cli_app *a, uint64_t sandbox, int seconds)
{
    const struct model *m = app_model(a->app);
    const struct sandbox *s = model_sandbox(m, sandbox);
    int64_t now = server_clock_at(&m->clock, clock_boot_ms(), clock_wall_ms());
    int64_t left = s && s->end_at ? s->end_at - now : 0;
    char given[16];

    if (!s || !s->end_at || seconds <= 0 || seconds * INT64_C(1000) - left <= 10000)
        return;
    clock_format_span(given, sizeof(given), left + 500);
    cli_say(a->c, "cc-tui: the service gives less time than was asked for: %s; a plan has a "
            "longest time", given);
}

/* --- finding ----------------------------------------------------------------- */

const char *cli_called(const struct cli *c, const struct sandbox *s)
{
    return s->sandbox_id && (!shared || !s->name || cli_json(c)) ? s->sandbox_id : s->name;
}

bool cli_is_up(const struct sandbox *s)
{
    /* one the service's list no longer names is not there, whatever our record says */
    return !s->unlisted && (s->state == SB_CREATING || s->state == SB_RUNNING ||
                            s->state == SB_PAUSED || (s->state == SB_ERROR && s->vm_up));
}

/* 3 the id, 2 the name, 1 the begin of the id, 0 no match. */
static int match(const struct sandbox *s, const char *word)
{
    size_t n = strlen(word);
    if (str_eq(s->sandbox_id, word))
        return 3;
    if (str_eq(s->name, word))
        return 2;
    return s->sandbox_id && n >= MIN_PREFIX && strncmp(s->sandbox_id, word, n) == 0;
}

static void ambiguous(const struct model *m, const char *word, int grade, bool up,
                      struct err *e)
{
    struct buf b = BUF_INIT_MAX(300);
    for (size_t i = 0; i < m->n_sandboxes; i++) {
        const struct sandbox *s = &m->sandboxes[i];
        if (match(s, word) == grade && cli_is_up(s) == up)
            buf_addf(&b, "%s%s (%s)", b.len ? ", " : "", s->sandbox_id ? s->sandbox_id : "-",
                     s->name ? s->name : "");
    }
    err_set(e, ERR_INVALID, "'%.60s' may mean several sandboxes, give the id: %s", word,
            buf_str(&b));
    buf_release(&b);
}

const struct sandbox *cli_app_find(struct cli_app *a, const char *word, struct err *e)
{
    const struct model *m = app_model(a->app);
    const struct sandbox *best = NULL;
    int best_grade = 0, same = 0;
    const char *id = shared ? shared->numbered(shared->ctx, word) : NULL;

    for (size_t i = 0; i < m->n_sandboxes; i++) {
        const struct sandbox *s = &m->sandboxes[i];
        int grade = id && str_eq(s->sandbox_id, id) ? 1 : match(s, word);
        if (grade)
            grade += cli_is_up(s) ? 4 : 0; /* a live one hides what ended */
        if (grade > best_grade) {
            best = s;
            best_grade = grade;
            same = 0;
        } else if (grade && grade == best_grade) {
            same++;
        }
    }
    if (same) {
        ambiguous(m, word, best_grade & 3, best_grade >= 4, e);
        return NULL;
    }
    if (!best)
        err_set(e, ERR_NOTFOUND, "there is no sandbox '%.60s'; 'cc-tui ls' shows them", word);
    return best;
}

const struct sandbox *cli_app_begin(struct cli_app *a, const struct cli *c, const char *name,
                                    int *status)
{
    struct err e = {0};
    const struct sandbox *s = NULL;

    if (cli_app_open(a, c, &e) != 0) {
        *status = cli_fail(&e);
        return NULL;
    }
    if (cli_app_known(a, &e) == 0)
        s = cli_app_find(a, name, &e);
    if (!s) {
        *status = cli_app_fail(a, &e);
        cli_app_close(a);
    }
    return s;
}
