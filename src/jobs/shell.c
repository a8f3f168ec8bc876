/* A terminal or a command in a sandbox that the user started. Input goes out piece after
 * piece, each when the one before it was taken: so its order holds over any number of
 * connections, and keys that come meanwhile travel together. A piece whose fate is not known
 * is never sent again, and what was typed behind it is dropped with it: the rest of a paste
 * after a hole could mean anything. Output is read only as fast as it is shown. The process
 * belongs to the sandbox: it outlives the connection and us. */
#include "foreign_priv.h"

#include <cct/jobs/session_layout.h>
#include <cct/jobs/shell.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 32 << 10, FULL_MS = 40, FULL_MAX_MS = 1000, IDENT_MS = 300 };

/* $1: our session of the sandbox or "", then the command, none for a login shell. A terminal
 * type or language that the sandbox does not know is replaced, and the agent's own folder is
 * where it begins. */
#define SCRIPT_NAME "CC_TUI_START" /* a variable: lists of processes stay readable */
static const char run_script[] = "eval \"$" SCRIPT_NAME "\"";
static const char start_script[] =
    "unset " SCRIPT_NAME "; t=$TERM k=; for d in \"$HOME/.terminfo\" /etc/terminfo /lib/terminfo /usr/lib/terminfo "
    "/usr/share/terminfo; do [ -e \"$d/${t%\"${t#?}\"}/$t\" ] && k=1; done; "
    "[ -z \"$t\" ] || [ \"$k\" ] || export TERM=xterm-256color; "
    "case $LANG in ''|C|C.*|POSIX) ;; *) case $(locale -a 2>/dev/null) in "
    "*\"${LANG%%.*}.utf8\"*) ;; *) export LANG=C.UTF-8;; esac;; esac; "
    "w=; [ -z \"$1\" ] || { read -r w <\"$HOME/" SESSION_ROOT "/$1/" SESSION_WORKDIR "\"; } 2>/dev/null; "
    "cd \"$HOME/$w\" 2>/dev/null; shift; "
    "[ $# -gt 0 ] && exec \"$@\"; "
    "i=; [ -t 0 ] && i=-i; "
    "for s in /bin/bash /usr/bin/bash; do [ -x $s ] && exec $s -l $i; done; exec /bin/sh $i";

struct shell {
    struct jobs *j;
    uint64_t row, req_id;
    struct procwatch *w;
    struct cmd_shell *spec; /* as asked for */
    struct envd_proc_spec launch;
    const char **args;      /* of the launch; their words belong to others */
    struct kv *env;
    char *session;
    int pid;
    /* input */
    struct buf in;
    size_t piece;       /* of it under way */
    bool as_pty;        /* that is how the process takes input */
    bool known_kind;    /* which was seen */
    bool sent_size;     /* the size that is wanted was told */
    bool sizing, closing, closed, eof;
    bool shake;         /* told once with another number of rows: whoever draws draws anew */
    uint64_t timer, ident_timer;
    int fulls;
    /* output */
    size_t out;         /* bytes that were not taken yet */
    bool held;
    bool was_live;
    bool unwanted;      /* left before it was there: ended as soon as it is */
};

static void pump(struct shell *s);

/* --- telling --------------------------------------------------------------------- */

static void news(struct shell *s, enum shell_news what, size_t n)
{
    struct ev_shell *ev = xcalloc(1, sizeof(*ev));

    msg_init(&ev->m, EV_SHELL, sizeof(*ev), NULL);
    ev->m.req_id = s->req_id;
    ev->news = what;
    ev->pid = s->pid;
    ev->ident = s->w ? procwatch_ident(s->w) : 0;
    ev->n = n;
    jobs_post(s->j, ev);
}

static void note(struct shell *s, struct buf *text)
{
    size_t len;
    char *p = buf_detach(text, &len);

    jobs_chunk(s->j, s->req_id, CHUNK_NOTE, p, len);
}

/* --- life ------------------------------------------------------------------------ */

void cmd_shell_free(struct cmd_shell *c)
{
    if (!c)
        return;
    for (size_t i = 0; c->argv && c->argv[i]; i++)
        free(c->argv[i]);
    free(c->argv);
    keys_env_free(c->env);
    free(c);
}

static void shell_free(struct shell *s)
{
    struct jobs_priv *p = s->j->priv;

    for (size_t i = 0; i < p->shells.n; i++)
        if (p->shells.v[i] == s) {
            ARR_REMOVE(&p->shells, i);
            break;
        }
    s->j->goodbyes -= s->unwanted;
    net_timer_cancel(s->j->o.net, s->timer);
    net_timer_cancel(s->j->o.net, s->ident_timer);
    procwatch_free(s->w);
    if (s->in.p)
        secret_wipe(s->in.p, s->in.cap);
    buf_release(&s->in);
    cmd_shell_free(s->spec);
    free(s->args);
    free(s->env);
    free(s->session);
    free(s);
}

static void finish(struct shell *s, const struct err *e, int exit_code)
{
    struct ev_done *d;

    if (!s->unwanted) {
        d = ev_new(EV_DONE);
        d->m.req_id = s->req_id;
        d->sandbox = s->row;
        d->exit_code = exit_code;
        if (e)
            d->err = *e;
        jobs_post(s->j, d);
    }
    shell_free(s);
}

static struct shell *find(struct jobs *j, uint64_t req_id)
{
    for (size_t i = 0; i < j->priv->shells.n; i++)
        if (j->priv->shells.v[i]->req_id == req_id && !j->priv->shells.v[i]->unwanted)
            return j->priv->shells.v[i];
    return NULL;
}

void core_shell_release(struct jobs *j)
{
    while (j->priv->shells.n)
        shell_free(j->priv->shells.v[0]);
    ARR_RELEASE(&j->priv->shells);
}

/* --- input ----------------------------------------------------------------------- */

/* n bytes at the front are done with. */
static void in_taken(struct shell *s, size_t n)
{
    secret_wipe(s->in.p, n);
    buf_consume(&s->in, n);
    news(s, SHELL_TAKEN, n);
}

static void in_hole(struct shell *s)
{
    struct buf b = BUF_INIT;
    size_t n = s->in.len;

    s->piece = 0;
    buf_addf(&b, "%zu byte%s of input may not have arrived", n, n == 1 ? "" : "s");
    note(s, &b);
    news(s, SHELL_HOLE, 0);
    in_taken(s, n);
}

static void on_again(void *ctx)
{
    struct shell *s = ctx;

    s->timer = 0;
    pump(s);
}

static void again(struct shell *s)
{
    s->timer = net_timer(s->j->o.net, net_backoff_ms(s->fulls++, FULL_MS, FULL_MAX_MS), on_again, s);
}

static void on_sent(void *ctx, const struct envd_result *r)
{
    struct shell *s = ctx;
    size_t n = s->piece;
    int code = r->err.code;

    s->piece = 0;
    if (!code) {
        s->fulls = 0;
        s->known_kind = true;
        in_taken(s, n);
    } else if (code == ERR_SERVER && !s->known_kind) {
        s->as_pty = !s->as_pty; /* whoever started it did so the other way */
        s->known_kind = true;
    } else if (code == ERR_LIMIT || code == ERR_BUSY || (code == ERR_NETWORK && !r->sent)) {
        again(s); /* nothing of it was taken: it does not read so fast, or was not reached */
        return;
    } else if (code == ERR_NOTFOUND) {
        in_taken(s, s->in.len); /* it has ended, which is told by its stream */
    } else {
        in_hole(s);
    }
    pump(s);
}

static void on_closed(void *ctx, const struct envd_result *r)
{
    struct shell *s = ctx;

    s->closing = false;
    s->closed = r->err.code != ERR_NETWORK; /* any other answer is the last word */
    if (!s->closed)
        again(s);
}

static void on_sized(void *ctx, const struct envd_result *r)
{
    struct shell *s = ctx;

    s->sizing = false;
    if (r->err.code)
        s->sent_size = true; /* the next size is told again */
    pump(s);
}

static void send_size(struct shell *s, struct envd *c)
{
    int rows = s->spec->rows;

    s->sizing = true;
    if (s->shake && rows > 2) {
        rows--; /* nobody draws anew for the size that it has */
        s->shake = false;
    } else {
        s->sent_size = true;
    }
    envd_resize(c, s->pid, s->spec->cols, rows, on_sized, s);
}

/* Whatever can go out does. */
static void pump(struct shell *s)
{
    struct envd *c = procwatch_envd(s->w);

    if (!c)
        return;
    if (s->spec->pty && !s->sizing && !s->sent_size)
        send_size(s, c);
    if (s->piece || s->timer)
        return;
    if (s->in.len) {
        s->piece = s->in.len < PIECE ? s->in.len : PIECE;
        (s->as_pty ? envd_send_pty : envd_send_input)(c, s->pid, s->in.p, s->piece, on_sent, s);
    } else if (s->eof && !s->closing && !s->closed && !s->as_pty) {
        s->closing = true;
        envd_close_stdin(c, s->pid, on_closed, s);
    }
}

/* --- output ---------------------------------------------------------------------- */

static void hold(struct shell *s)
{
    bool hold_it = s->held ? s->out > SHELL_WINDOW / 4 : s->out >= SHELL_WINDOW;

    if (hold_it == s->held)
        return;
    s->held = hold_it;
    procwatch_pause(s->w, hold_it);
}

static void on_data(void *ctx, enum envd_stream st, const char *data, size_t len)
{
    struct shell *s = ctx;
    char *copy;

    if (s->unwanted)
        return;
    copy = xmalloc(len + 1);
    memcpy(copy, data, len);
    s->out += len;
    jobs_chunk(s->j, s->req_id, (int)st, copy, len);
    hold(s);
}

/* --- how it goes ----------------------------------------------------------------- */

static void end_it(void *ctx, const struct envd_result *r)
{
    struct shell *s = ctx;

    (void)r;
    shell_free(s);
}

/* Its command line is asked for meanwhile: who comes back wants to find the same process. */
static void tell_ident(void *ctx)
{
    struct shell *s = ctx;

    s->ident_timer = 0;
    if (procwatch_envd(s->w))
        news(s, SHELL_LIVE, 0);
}

static void on_started(void *ctx, int pid)
{
    struct shell *s = ctx;

    s->pid = pid;
    s->was_live = s->sent_size = true;
    if (s->unwanted) {
        envd_signal(procwatch_envd(s->w), pid, true, end_it, s);
        return;
    }
    news(s, SHELL_LIVE, 0);
    s->ident_timer = net_timer(s->j->o.net, IDENT_MS, tell_ident, s);
    pump(s);
}

static void on_live(void *ctx, const struct proc *p, int64_t lost_at)
{
    struct shell *s = ctx;
    struct buf b = BUF_INIT;

    (void)p;
    if (lost_at) {
        buf_adds(&b, "connected again; ");
        procwatch_gap(&b, lost_at, clock_wall_ms());
        note(s, &b);
    }
    s->closing = s->sizing = s->sent_size = false;
    s->shake = s->was_live = true;
    news(s, SHELL_LIVE, 0);
    pump(s);
}

static void on_lost(void *ctx, const struct err *e, bool paused)
{
    struct shell *s = ctx;
    struct buf b = BUF_INIT;

    buf_addf(&b, paused ? "%s; this goes on then" : "connection lost, trying again: %s", e->text);
    note(s, &b);
    if (s->piece)
        in_hole(s);
    news(s, SHELL_LOST, 0);
}

static void on_end(void *ctx, const struct proc_end *end)
{
    struct shell *s = ctx;
    struct err e = end->err;

    if (!e.code && !end->known)
        err_set(&e, ERR_CONFLICT, "the process ended unseen, its exit status is not known%s%s",
                *end->err.text ? ": " : "", end->err.text);
    else if (e.code && !s->spec->pid && !s->pid)
        err_wrap(&e, "nothing was started in the sandbox");
    else if (e.code && s->was_live)
        err_wrap(&e, "process %d is not followed any more", s->pid);
    finish(s, e.code ? &e : NULL,
           end->sig ? 128 + end->sig : end->known && end->exit_code >= 0 ? end->exit_code : -1);
}

/* --- commands -------------------------------------------------------------------- */

static void launch(struct shell *s, const struct procwatch_cb *cb)
{
    static const struct kv script = {(char *)SCRIPT_NAME, (char *)start_script};
    struct envd_proc_spec p = {.cmd = "/bin/sh"};
    size_t n = 0, vars = 0;

    while (s->spec->argv && s->spec->argv[n])
        n++;
    s->args = xcalloc(n + 5, sizeof(*s->args));
    s->args[0] = "-c";
    s->args[1] = run_script;
    s->args[2] = "cc-tui";
    s->args[3] = s->session ? s->session : "";
    for (size_t i = 0; i < n; i++)
        s->args[4 + i] = s->spec->argv[i];
    while (s->spec->env && s->spec->env[vars].k)
        vars++;
    s->env = xcalloc(vars + 2, sizeof(*s->env));
    for (size_t i = 0; i < vars; i++)
        s->env[i] = s->spec->env[i];
    s->env[vars] = script;
    p.args = s->args;
    p.env = s->env;
    p.stdin_open = true;
    if (s->spec->pty) {
        p.pty_cols = s->spec->cols;
        p.pty_rows = s->spec->rows;
    }
    s->launch = p;
    s->w = procwatch_start(s->j, s->row, &s->launch, cb);
}

static void begin(struct jobs *j, struct cmd *c)
{
    static const struct procwatch_cb plain = {.on_started = on_started, .on_live = on_live,
                                              .on_data = on_data, .on_lost = on_lost,
                                              .on_end = on_end};
    const struct sandbox *row = jobs_row(j, c->sandbox);
    struct procwatch_cb cb = plain;
    struct err e = {0};
    struct shell *s;
    int pid;
    uint64_t ident;

    if (j->priv->look_only)
        err_set(&e, ERR_PERM, "nothing was done: this cc-tui only reads");
    else if (!j->e2b)
        e = j->priv->account_err;
    else
        reach_refusal(row, &e);
    if (e.code) {
        jobs_done(j, c->m.req_id, &e, c->sandbox);
        return;
    }
    s = xcalloc(1, sizeof(*s));
    *ARR_PUSH(&j->priv->shells) = s;
    s->j = j;
    s->row = c->sandbox;
    s->req_id = c->m.req_id;
    s->spec = c->shell;
    c->shell = NULL;
    s->session = row->session && !proc_session_parse(row->session, &pid, &ident)
                     ? xstrdup(row->session)
                     : NULL;
    cb.ctx = s;
    s->pid = s->spec->pid;
    s->as_pty = s->spec->pty;
    s->known_kind = !s->pid;
    if (s->pid)
        s->w = procwatch_new(j, s->row, s->pid, s->spec->ident, &cb);
    else
        launch(s, &cb);
}

/* One that is not there yet would have nobody who knows of it: it ends, too. */
static void leave(struct shell *s, bool end)
{
    struct envd *c = procwatch_envd(s->w);

    core_done_err(s->j, s->req_id, s->row, ERR_CANCELLED, "it was left");
    if (s->pid && !(end && c)) {
        shell_free(s);
        return;
    }
    s->unwanted = true;
    s->j->goodbyes++;
    procwatch_pause(s->w, false);
    if (s->pid)
        envd_signal(c, s->pid, false, end_it, s);
}

void core_shell(struct jobs *j, struct cmd *c)
{
    struct shell *s = c->m.type == CMD_SHELL ? NULL : find(j, c->id);

    if (c->m.type == CMD_SHELL) {
        begin(j, c);
        return;
    }
    if (!s)
        return; /* it has ended meanwhile */
    switch ((enum cmd_type)c->m.type) {
    case CMD_SHELL_INPUT:
        buf_add(&s->in, c->text, (size_t)c->n);
        secret_wipe(c->text, (size_t)c->n);
        break;
    case CMD_SHELL_EOF:
        s->eof = true;
        break;
    case CMD_SHELL_TOOK:
        s->out -= (size_t)c->n < s->out ? (size_t)c->n : s->out;
        hold(s);
        break;
    case CMD_SHELL_SIZE:
        s->spec->cols = (int)(c->n >> 16);
        s->spec->rows = (int)(c->n & 0xFFFF);
        s->sent_size = false;
        break;
    default:
        leave(s, c->on);
        return;
    }
    pump(s);
}
