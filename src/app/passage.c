/* Bytes of our terminal to one in a sandbox and back. Nothing here waits for either side: a
 * terminal that takes nothing stops the reading of the sandbox's stream, a program there that
 * reads nothing stops the reading of our keys. Whatever ends it, the terminal is as it was. */
#include <cct/app/passage.h>

#include <cct/jobs/shell.h>
#include <cct/secrets/secret.h>
#include <cct/text/ttymodes.h>
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

enum { READ_BYTES = 16 << 10, DRAIN_MS = 8, LAST_MS = 300, SETTLE_MS = 150 };

struct passage {
    struct app *app;
    const struct passage_opts *o;
    struct passage_end *end;
    uint64_t shell;       /* request, 0: it has ended */
    int sigfd;
    bool terminal;        /* else pipes */
    struct keyhunt hunt;
    size_t typed_at;      /* of what was typed before: handed on so far */
    size_t under_way;     /* bytes of input that were not taken yet */
    bool in_open, eof_told;
    struct buf out, err;  /* not written yet */
    size_t took;          /* written, not told yet */
    bool out_gone;        /* nobody reads it any more */
    bool at_bol;          /* the cursor is, as far as we know */
    bool stop;
};

/* The terminal, for whoever ends the program in the middle: crash handlers see it, too. */
static struct {
    bool on;
    int out;
    struct termios saved;
    struct ttymodes modes;
    struct sigaction before[7];
} tty = {.out = -1};
static const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};

bool passage_has_terminal(void)
{
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

/* --- the terminal ----------------------------------------------------------------- */

/* A line that takes nothing is left alone after a moment. Async-signal-safe. */
static void put_now(const char *s, size_t len)
{
    while (len) {
        struct pollfd p = {.fd = tty.out, .events = POLLOUT};
        ssize_t n = poll(&p, 1, SETTLE_MS) > 0 ? write(tty.out, s, len) : -1;

        if (n <= 0 && errno != EINTR)
            return;
        s += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
}

static void restore_now(void)
{
    char undo[TTYMODES_UNDO];
    size_t n;

    if (!tty.on)
        return;
    tty.on = false;
    n = ttymodes_undo(&tty.modes, undo);
    put_now(undo, n);
    if (n) /* answers to what was asked belong to nobody any more */
        tcflush(STDIN_FILENO, TCIFLUSH);
    tcsetattr(STDIN_FILENO, TCSANOW, &tty.saved);
}

static void on_crash(int sig)
{
    restore_now();
    signal(sig, SIG_DFL);
    raise(sig);
}

static void raw_now(void)
{
    struct termios t = tty.saved;

    cfmakeraw(&t);
    tcsetattr(STDIN_FILENO, TCSANOW, &t);
    tty.on = true;
}

/* Where nobody else looks after the terminal. */
static void catch_crashes(void)
{
    static char stack[64 << 10];
    stack_t ss = {.ss_sp = stack, .ss_size = sizeof(stack)};
    struct sigaction sa = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK | SA_RESETHAND};

    sigaltstack(&ss, NULL);
    sigemptyset(&sa.sa_mask);
    for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
        sigaction(crashes[i], &sa, &tty.before[i]);
}

static void open_terminal(void)
{
    memset(&tty.modes, 0, sizeof(tty.modes));
    tcgetattr(STDIN_FILENO, &tty.saved);
    catch_crashes();
    die_set_hook(restore_now);
    raw_now();
}

static void close_terminal(void)
{
    restore_now();
    for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
        sigaction(crashes[i], &tty.before[i], NULL);
    die_set_hook(NULL);
}

static void terminal_size(int *cols, int *rows)
{
    struct winsize ws = {0};

    *cols = 80;
    *rows = 24;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_col && ws.ws_row) {
        *cols = ws.ws_col;
        *rows = ws.ws_row;
    }
}

/* --- output ------------------------------------------------------------------------ */

/* A remark of ours, on a line of its own. */
static void say(struct passage *p, const char *text, size_t len)
{
    struct buf b = BUF_INIT;

    if (p->terminal) {
        if (!p->at_bol)
            buf_adds(&b, "\r\n");
        buf_addf(&b, "[cc-tui: %.*s]\r\n", (int)len, text);
        buf_add(&p->out, b.p, b.len);
        p->at_bol = true;
    } else {
        buf_addf(&p->err, "cc-tui: %.*s\n", (int)len, text);
    }
    buf_release(&b);
}

static void on_data(void *ctx, int stream, const char *data, size_t len)
{
    struct passage *p = ctx;

    if (stream < 0) {
        say(p, data, len);
        return;
    }
    if (p->terminal)
        ttymodes_feed(&tty.modes, data, len);
    if (stream != 1 && p->out_gone)
        p->took += len;
    else
        buf_add(stream == 1 ? &p->err : &p->out, data, len);
    if (len)
        p->at_bol = data[len - 1] == '\n';
}

/* As much as goes without waiting: a pipe takes PIPE_BUF where poll says that there is room,
 * a terminal of ours that does not block takes what it has room for. */
static void write_some(struct passage *p, struct buf *b, int fd)
{
    size_t n = b->len < PIPE_BUF ? b->len : PIPE_BUF;
    ssize_t w = write(fd, b->p, n);

    if (w < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (w < 0) { /* nobody reads it any more */
        w = (ssize_t)b->len;
        p->out_gone |= b == &p->out;
        p->stop |= b == &p->out;
        p->end->reader_gone |= b == &p->out;
        p->end->hung_up |= b == &p->out && p->terminal;
    }
    p->took += (size_t)w; /* of remarks, too: more is told than counted, which is no harm */
    buf_consume(b, (size_t)w);
}

/* --- news -------------------------------------------------------------------------- */

static void on_news(void *ctx, const struct ev_shell *n)
{
    struct passage *p = ctx;

    if (n->pid)
        p->end->pid = n->pid;
    if (n->ident)
        p->end->ident = n->ident;
    p->end->live |= n->news == SHELL_LIVE;
    if (n->news == SHELL_TAKEN)
        p->under_way -= n->n < p->under_way ? n->n : p->under_way;
    if (n->news != SHELL_HOLE)
        return;
    p->end->hole = true;
    if (!p->terminal) { /* what a pipe still holds must not follow a hole */
        p->in_open = false;
        err_set(&p->end->err, ERR_NETWORK, "input was lost with the connection");
        p->stop = true;
    }
}

static void on_end(void *ctx, const struct ev_done *d)
{
    struct passage *p = ctx;

    p->shell = 0;
    p->in_open = false;
    if (!p->end->err.code)
        p->end->err = d->err;
    p->end->status = d->exit_code;
}

/* --- signals ----------------------------------------------------------------------- */

static const int watched[] = {SIGWINCH, SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGCONT};

static int open_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(watched) / sizeof(watched[0]); i++)
        sigaddset(&set, watched[i]);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

static void tell_size(struct passage *p)
{
    int cols, rows;

    terminal_size(&cols, &rows);
    if (p->shell)
        app_shell_size(p->app, p->shell, cols, rows);
}

/* Stopped by somebody else: the terminal is whose it was meanwhile. */
static void stop_ourselves(struct passage *p)
{
    sigset_t set, old;
    struct ttymodes modes = tty.modes;
    bool raw = p->terminal;

    restore_now();
    signal(SIGTSTP, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, SIGTSTP);
    pthread_sigmask(SIG_UNBLOCK, &set, &old);
    raise(SIGTSTP);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (raw) {
        tty.modes = modes;
        raw_now();
        tell_size(p);
    }
}

static void read_signals(struct passage *p)
{
    struct signalfd_siginfo si;

    while (read(p->sigfd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
        if (si.ssi_signo == SIGWINCH || si.ssi_signo == SIGCONT) {
            tell_size(p);
        } else if (si.ssi_signo == SIGTSTP) {
            stop_ourselves(p);
        } else {
            p->end->signal = (int)si.ssi_signo;
            p->stop = true;
        }
    }
}

/* --- input ------------------------------------------------------------------------- */

static size_t room(const struct passage *p)
{
    return p->under_way < SHELL_WINDOW ? SHELL_WINDOW - p->under_way : 0;
}

static void in_ends(struct passage *p)
{
    p->in_open = false;
    if (p->terminal) {
        p->end->hung_up = true;
        p->stop = true;
    } else if (!p->eof_told) {
        p->eof_told = true;
        app_shell_eof(p->app, p->shell);
    }
}

static void take_input(struct passage *p, const char *data, size_t n)
{
    size_t span = 0;
    size_t at = p->terminal ? keyhunt_feed(&p->hunt, p->o->leave_key, data, n, &span) : n;

    if (at) {
        p->under_way += at;
        app_shell_input(p->app, p->shell, data, at);
    }
    if (span) {
        p->end->left = true;
        p->stop = true;
    }
}

static void take_typed(struct passage *p)
{
    size_t left = p->o->typed_len - p->typed_at, n = left < room(p) ? left : room(p);

    if (!n)
        return;
    take_input(p, p->o->typed + p->typed_at, n);
    p->typed_at += n;
}

static void read_input(struct passage *p)
{
    char data[READ_BYTES];
    size_t max = room(p) < sizeof(data) ? room(p) : sizeof(data);
    ssize_t n = read(STDIN_FILENO, data, max);

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        in_ends(p);
        return;
    }
    take_input(p, data, (size_t)n);
    secret_wipe(data, (size_t)n);
}

/* --- the loop ---------------------------------------------------------------------- */

static void turn(struct passage *p, int ms)
{
    if (p->in_open && p->shell && !p->stop)
        take_typed(p);
    if (p->stop && p->shell) /* they end with the key that leaves it */
        return;
    struct pollfd f[5] = {{.fd = p->sigfd, .events = POLLIN},
                          {.fd = app_fd(p->app), .events = POLLIN},
                          {.fd = p->in_open && p->shell && room(p) ? STDIN_FILENO : -1,
                           .events = POLLIN},
                          {.fd = p->out.len ? tty.out : -1, .events = POLLOUT},
                          {.fd = p->err.len ? STDERR_FILENO : -1, .events = POLLOUT}};

    if (poll(f, 5, ms) < 0 && errno != EINTR) {
        err_sys(&p->end->err, ERR_IO, "waiting failed");
        p->stop = true;
        return;
    }
    if (f[0].revents)
        read_signals(p);
    if (f[1].revents)
        app_drain(p->app, DRAIN_MS);
    if (f[2].revents && p->shell && !p->stop)
        read_input(p);
    if (f[3].revents)
        write_some(p, &p->out, tty.out);
    if (f[4].revents)
        write_some(p, &p->err, STDERR_FILENO);
    if (p->took && p->shell)
        app_shell_took(p->app, p->shell, p->took);
    p->took = 0;
}

/* What was put out before the end is shown, but a line that is stuck holds up nothing. */
static void write_rest(struct passage *p)
{
    int64_t end = clock_mono_ms() + LAST_MS;

    p->in_open = false;
    while ((p->out.len || p->err.len) && !p->end->signal && !p->end->hung_up && !p->out_gone) {
        size_t before = p->out.len + p->err.len;
        int64_t left = end - clock_mono_ms();

        if (p->end->left && left <= 0)
            break; /* who leaves does not wait for what is on its way */
        turn(p, p->end->left ? (int)left : -1);
        if (p->out.len + p->err.len != before)
            end = clock_mono_ms() + LAST_MS;
    }
}

static void tell_how_to_leave(const struct passage *p)
{
    const struct passage_opts *o = p->o;
    char key[8], *what;

    if (o->quiet || !p->terminal)
        return;
    passage_key_format(o->leave_key, key);
    what = o->pid ? xasprintf("process %d", o->pid) : xstrdup(o->argv ? "a command" : "a shell");
    if (o->leave_key >= 0)
        fprintf(stderr, "cc-tui: %s in %s; Ctrl-%c leaves it running\n", what, o->name, key[1]);
    else
        fprintf(stderr, "cc-tui: %s in %s; only its end leads back\n", what, o->name);
    free(what);
}

static void begin(struct passage *p)
{
    const char *term = getenv("TERM"), *lang = getenv("LANG");
    const struct passage_opts *o = p->o;
    struct app_shell what = {
        .argv = o->argv, .pid = o->pid, .ident = o->ident, .pty = p->terminal};
    struct app_shell_cb cb = {on_data, on_news, on_end, p};
    size_t n = 0, at = 0;
    struct kv *env;

    while (o->env && o->env[n].k)
        n++;
    env = xcalloc(n + 3, sizeof(*env));
    if (p->terminal && term && *term)
        env[at++] = (struct kv){(char *)"TERM", (char *)term};
    if (p->terminal)
        env[at++] = (struct kv){(char *)"LANG", (char *)(lang && *lang ? lang : "C.UTF-8")};
    for (size_t i = 0; i < n; i++)
        env[at++] = o->env[i]; /* what was asked for comes last and counts */
    what.env = env;
    if (p->terminal)
        terminal_size(&what.cols, &what.rows);
    p->shell = app_shell(p->app, o->sandbox, &what, &cb);
    free(env);
}

/* A terminal by a description of our own that does not block: the one we were given is others',
 * too. A pipe does not block for as little as is written at once, a file never does. */
static void open_out(const struct passage *p)
{
    tty.out = p->terminal
                  ? open("/proc/self/fd/1", O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
                  : -1;
    if (tty.out < 0)
        tty.out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
}

/* By the key, or because we end. On a terminal it goes on and can be come back to; a command
 * between pipes ends with them. */
static void leave(struct passage *p)
{
    bool ends = !p->terminal && !p->o->pid;

    app_shell_leave(p->app, p->shell, ends);
    p->end->left = !ends;
    p->shell = 0;
}

void passage_run(struct app *a, const struct passage_opts *o, struct passage_end *end)
{
    struct passage p = {.app = a, .o = o, .end = end, .in_open = true, .at_bol = true,
                        .terminal = passage_has_terminal()};

    THREAD_ASSERT(THREAD_MAIN);
    *end = (struct passage_end){.status = -1, .pid = o->pid, .ident = o->ident};
    buf_init(&p.out, 0);
    buf_init(&p.err, 0);
    p.sigfd = open_signals();
    open_out(&p);
    tell_how_to_leave(&p);
    if (p.terminal)
        open_terminal();
    begin(&p);
    while (p.shell && !p.stop)
        turn(&p, -1);
    if (p.shell)
        leave(&p);
    write_rest(&p);
    if (p.terminal) {
        if (!p.at_bol && !ttymodes_alt(&tty.modes))
            put_now("\r\n", 2);
        close_terminal();
    }
    close(tty.out);
    close(p.sigfd);
    tty.out = -1;
    buf_release(&p.out);
    buf_release(&p.err);
}
