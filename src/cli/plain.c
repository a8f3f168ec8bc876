/* The line mode: start, the loop, lines from stdin, questions, and the end. */
#include "plain_priv.h"

#include <cct/secrets/secret.h>
#include <cct/text/clean.h>
#include <cct/util/clock.h>
#include <cct/util/limits.h>
#include <cct/util/map.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Lines typed ahead are held up to AHEAD_BYTES; what comes behind waits where it comes from. */
enum {
    LINE_MAX_BYTES = LIM_MESSAGE_BYTES + 4096,
    AHEAD_BYTES = 256 << 10,
    PIECE_BYTES = 4096,
    HELD_MOST = 200,
    HELD_BYTES = 64 << 10,
    TWICE_MS = 1000
};

/* --- saying --------------------------------------------------------------------- */

static void say_line(struct plain *p, const char *text)
{
    char *line = clean_line_dup(text, 0);

    cli_out("%s%s\n", p->at_prompt ? "\n" : "", line);
    p->at_prompt = false;
    free(line);
}

void plain_say(struct plain *p, const char *fmt, ...)
{
    struct buf b = BUF_INIT;
    va_list ap;

    va_start(ap, fmt);
    buf_addv(&b, fmt, ap);
    va_end(ap);
    say_line(p, buf_str(&b));
    buf_release(&b);
}

/* Somebody who is away comes back to the newest: all of them are in memory, and would be read
 * aloud. */
static void hold(struct plain *p, const char *news)
{
    *ARR_PUSH(&p->held) = xstrdup(news);
    p->held_bytes += strlen(news);
    while (p->held.n > HELD_MOST || (p->held_bytes > HELD_BYTES && p->held.n > 1)) {
        p->held_bytes -= strlen(p->held.v[0]);
        p->held_lost++;
        free(p->held.v[0]);
        ARR_REMOVE(&p->held, 0);
    }
}

/* Nothing can know that a line is being typed: who types slowly holds the news. */
void plain_tell(struct plain *p, const char *fmt, ...)
{
    struct buf b = BUF_INIT;
    va_list ap;

    va_start(ap, fmt);
    buf_addv(&b, fmt, ap);
    va_end(ap);
    if (p->hold && !p->running)
        hold(p, buf_str(&b));
    else
        say_line(p, buf_str(&b));
    buf_release(&b);
}

void plain_tell_held(struct plain *p)
{
    if (p->held_lost)
        plain_say(p, "%zu older piece%s of news %s left out here; 'events' has what happened.",
                  p->held_lost, p->held_lost == 1 ? "" : "s", p->held_lost == 1 ? "is" : "are");
    p->held_bytes = p->held_lost = 0;
    for (size_t i = 0; i < p->held.n; i++) {
        say_line(p, p->held.v[i]);
        free(p->held.v[i]);
    }
    ARR_RELEASE(&p->held);
}

static void show_prompt(struct plain *p)
{
    if (p->tty && !p->at_prompt && !p->stop && !p->eof)
        cli_out("> ");
    p->at_prompt = p->tty && !p->stop && !p->eof;
}

int64_t plain_now(const struct plain *p)
{
    return server_clock_at(&app_model(p->app)->clock, clock_boot_ms(), clock_wall_ms());
}

/* --- lines ---------------------------------------------------------------------- */

/* A line may hold a key, which is refused where it stands, and is not left lying about here. */
static void drop_front(struct buf *b, size_t n)
{
    size_t left = b->len - n;

    if (!n)
        return;
    memmove(b->p, b->p + n, left);
    secret_wipe(b->p + left, n);
    buf_truncate(b, left);
}

/* The next whole line without its end; NULL: none yet. New string. */
static char *take_line(struct plain *p)
{
    const char *lf = p->in.len ? memchr(p->in.p, '\n', p->in.len) : NULL;
    size_t n = lf ? (size_t)(lf - p->in.p) : p->in.len;
    char *line;

    if (!lf && (!p->eof || !n))
        return NULL;
    line = xstrndup(p->in.p, n && p->in.p[n - 1] == '\r' ? n - 1 : n);
    drop_front(&p->in, n + (lf != NULL));
    return line;
}

static bool has_line(const struct plain *p)
{
    return p->in.len && memchr(p->in.p, '\n', p->in.len);
}

static bool is_full(const struct plain *p)
{
    return p->in.len >= AHEAD_BYTES;
}

/* The line that has not ended yet, however many whole ones stand in front of it. */
static void limit_last_line(struct plain *p)
{
    const char *lf = p->in.len ? memrchr(p->in.p, '\n', p->in.len) : NULL;
    size_t begin = lf ? (size_t)(lf + 1 - p->in.p) : 0, n = p->in.len - begin;

    if (n <= LINE_MAX_BYTES)
        return;
    plain_say(p, "That line is too long, and was not taken: %u bytes are the most.",
              LIM_MESSAGE_BYTES);
    secret_wipe(p->in.p + begin, n);
    buf_truncate(&p->in, begin);
    p->too_long = true;
}

/* One read: what is there, for poll said so. How much it was. */
static size_t read_input(struct plain *p)
{
    char piece[PIECE_BYTES], *from = piece;
    ssize_t got = read(STDIN_FILENO, piece, sizeof(piece));

    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (got <= 0) {
        p->eof = true;
        return 0;
    }
    size_t n = (size_t)got;
    char *lf = memchr(piece, '\n', n);
    if (p->tty && lf)
        p->at_prompt = false; /* its echo has ended the line */
    if (p->too_long) {
        from = lf ? lf + 1 : piece + n;
        n -= (size_t)(from - piece);
        p->too_long = !lf;
    }
    for (char *nul = from; (nul = memchr(nul, '\0', (size_t)(from + n - nul)));)
        *nul = '\xff'; /* no text either, but no end of one */
    buf_add(&p->in, from, n);
    limit_last_line(p);
    return (size_t)got;
}

static bool input_waits(void)
{
    struct pollfd f = {.fd = STDIN_FILENO, .events = POLLIN};

    return poll(&f, 1, 0) == 1;
}

/* A command that goes on and on is left by "stop" in a line of its own, typed ahead or not, and
 * one that would do so for ever when no line can come any more, or none could be read. */
static bool take_stop(struct plain *p)
{
    size_t at = 0;

    if (p->endless && (p->eof || is_full(p)))
        return true;
    if (!p->leavable)
        return false;
    while (at < p->in.len) {
        const char *from = p->in.p + at, *lf = memchr(from, '\n', p->in.len - at);
        size_t n = lf ? (size_t)(lf - from) : 0;
        char *word, *line;
        bool is;

        if (!lf)
            return false;
        line = xstrndup(from, n);
        word = str_trim(line);
        is = str_eq(word, "stop");
        free(line);
        if (is) {
            drop_front(&p->in, at + n + 1);
            return true;
        }
        at += n + 1;
    }
    return false;
}

/* --- signals -------------------------------------------------------------------- */

static void signalled(void *ctx, int sig)
{
    struct plain *p = ctx;

    if (sig == SIGINT)
        return;
    p->stop = true;
    p->signal = sig;
}

/* ^C: the terminal has thrown the line away. Twice in a second it ends us. */
static void on_ctrl_c(struct plain *p)
{
    int64_t now = clock_mono_ms();

    cli_out_go_on();
    p->interrupts++;
    if (p->asking)
        return; /* that is a no */
    p->stop = p->ctrl_c && now - p->ctrl_c <= TWICE_MS;
    p->ctrl_c = now;
    if (!p->stop)
        plain_say(p, "The line is cleared. Ctrl-C once more within a second ends cc-tui, as quit "
                  "does; the sandboxes live on.");
}

static void read_signals(struct plain *p)
{
    struct signalfd_siginfo si;

    while (read(p->sigfd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
        if (si.ssi_signo == SIGINT)
            on_ctrl_c(p);
        else
            signalled(p, (int)si.ssi_signo);
    }
}

/* --- what commands share -------------------------------------------------------- */

static int shared_input(void *ctx)
{
    const struct plain *p = ctx;

    return p->eof ? -1 : STDIN_FILENO;
}

/* What to wait for: nothing while there is no room for more. */
static int wanted_input(void *ctx)
{
    const struct plain *p = ctx;

    return p->eof || is_full(p) ? -1 : STDIN_FILENO;
}

static bool shared_read(void *ctx, bool ready)
{
    struct plain *p = ctx;

    if (ready)
        read_input(p);
    return take_stop(p);
}

static int shared_turn(void *ctx)
{
    return plain_news(ctx);
}

static void shared_observe(void *ctx, const struct msg *ev)
{
    plain_news_observe(ctx, ev);
    plain_read_observe(ctx, ev);
}

static const char *shared_numbered(void *ctx, const char *word)
{
    const struct plain *p = ctx;
    int64_t n;

    return str_to_i64(word, 1, (int64_t)p->numbers.n, &n) ? p->numbers.v[n - 1] : NULL;
}

static bool shared_follows(void *ctx, uint64_t sandbox)
{
    const struct plain *p = ctx;

    return plain_follows(p, sandbox) || p->reading.sandbox == sandbox;
}

/* One turn of waiting: events, signals, lines, news. ms: at most so long; -1 no limit. */
static void turn(struct plain *p, int ms)
{
    struct pollfd f[3] = {{.fd = app_fd(p->app), .events = POLLIN},
                          {.fd = p->sigfd, .events = POLLIN},
                          {.fd = wanted_input(p), .events = POLLIN}};

    if (fflush(stdout) != 0 && cli_out_gone()) {
        p->stop = true;
        return;
    }
    if (poll(f, 3, ms) < 0 && errno != EINTR) {
        p->stop = true;
        return;
    }
    if (f[1].revents)
        read_signals(p);
    if (f[2].revents)
        read_input(p);
    app_drain(p->app, CLI_DRAIN_MS);
}

bool plain_until(struct plain *p, bool (*ready)(struct plain *p))
{
    unsigned before = p->interrupts;

    while (!ready(p)) {
        if (p->stop || p->interrupts != before)
            return false;
        int ms = plain_news(p);
        if (ready(p)) /* by what was told: nothing else need ever happen */
            break;
        if (p->asking) /* its prompt comes again behind what was told meanwhile */
            show_prompt(p);
        turn(p, ms);
    }
    return true;
}

static bool line_waits(struct plain *p)
{
    return has_line(p) || p->eof;
}

/* All whole lines, at once: there may be very many. How many those were. */
static size_t throw_lines(struct plain *p)
{
    size_t thrown = 0, n = 0;

    for (const char *lf; n < p->in.len && (lf = memchr(p->in.p + n, '\n', p->in.len - n)); thrown++)
        n = (size_t)(lf + 1 - p->in.p);
    thrown += p->eof && n < p->in.len;
    drop_front(&p->in, p->eof ? p->in.len : n);
    return thrown;
}

/* What is there now, and no more: a writer that never pauses would be read for ever. How many
 * lines that was. */
static size_t throw_input(struct plain *p)
{
    size_t thrown = throw_lines(p);
    int there = 0;

    if (p->eof || ioctl(STDIN_FILENO, FIONREAD, &there) != 0)
        there = 0;
    for (size_t left = (size_t)there, n; !p->eof && input_waits(); left -= n) {
        n = read_input(p);
        thrown += throw_lines(p);
        if (n >= left)
            break;
    }
    return thrown;
}

/* An answer is typed after its question: what was there before is none. */
static char *shared_ask(void *ctx, const char *question)
{
    struct plain *p = ctx;
    size_t thrown = throw_input(p);
    bool begun = p->in.len > 0 || p->too_long;

    if (thrown)
        plain_say(p, "%zu line%s typed before the question, and %s not taken.", thrown,
                  thrown == 1 ? " was" : "s were", thrown == 1 ? "is" : "are");
    plain_say(p, "%s", question);
    show_prompt(p);
    p->asking = true;
    bool answered = plain_until(p, line_waits);
    p->asking = false;
    if (!answered && p->at_prompt)
        cli_out("\n");
    p->at_prompt = false;
    char *line = answered ? take_line(p) : NULL;
    if (line && begun) {
        plain_say(p, "That line was begun before the question, and is not taken.");
        free(line);
        line = NULL;
    }
    return line;
}

/* --- the whole ------------------------------------------------------------------ */

static int open_plain(struct plain *p, struct cli *c, struct err *e)
{
    struct app_opts o;

    *p = (struct plain){.c = c, .in = BUF_INIT_MAX(AHEAD_BYTES + PIECE_BYTES), .sort = SORT_DOING};
    p->tty = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    p->sigfd = cli_signals_open();
    cli_talk_on_stdout();
    if (p->sigfd < 0)
        return err_sys(e, ERR_IO, "signals cannot be watched");
    p->notify = notify_new_each();
    p->told_asks = map_new();
    cli_app_opts(c, &o);
    o.follow_all = true;
    o.first_demo = true;
    if (cli_passphrase(c, &o, e) != 0)
        return e->code;
    p->app = app_new(&o, e);
    if (!p->app)
        return e->code;
    p->shared = (struct cli_shared){.app = p->app,
                                    .sigfd = p->sigfd,
                                    .input = shared_input,
                                    .wanted = wanted_input,
                                    .read = shared_read,
                                    .turn = shared_turn,
                                    .signalled = signalled,
                                    .observe = shared_observe,
                                    .ask = shared_ask,
                                    .numbered = shared_numbered,
                                    .follows = shared_follows,
                                    .ctx = p};
    app_observe(p->app, shared_observe, p);
    cli_share(&p->shared);
    return app_start(p->app, e) == 0 ? app_go_online(p->app, e) : e->code;
}

static void close_plain(struct plain *p)
{
    cli_share(NULL);
    if (p->app) {
        app_stop(p->app);
        app_free(p->app);
    }
    if (p->sigfd >= 0)
        close(p->sigfd);
    for (size_t i = 0; i < p->held.n; i++)
        free(p->held.v[i]);
    ARR_RELEASE(&p->held);
    for (size_t i = 0; i < p->numbers.n; i++)
        free(p->numbers.v[i]);
    ARR_RELEASE(&p->numbers);
    ARR_RELEASE(&p->changed);
    plain_read_release(p);
    notify_free(p->notify);
    map_free(p->told_asks, NULL);
    buf_release(&p->in);
    free(p->last_trouble);
    free(p->filter);
}

/* Sandboxes live on: as the screen says it at its end. */
static void say_goodbye(struct plain *p)
{
    char *bye = app_goodbye(p->app), *rest = bye;

    plain_tell_held(p);
    for (char *line; bye && (line = strsep(&rest, "\n"));)
        plain_say(p, "%s", line);
    free(bye);
}

static void run_line(struct plain *p, char *line)
{
    size_t len = strlen(line);

    p->running = true;
    plain_line(p, line);
    p->running = false;
    secret_wipe(line, len);
    cli_out_go_on();
}

int cli_plain(struct cli *c)
{
    struct plain p;
    struct err e = {0};
    char *line;

    if (open_plain(&p, c, &e) != 0) {
        int status = cli_fail(&e);
        close_plain(&p);
        fflush(stdout);
        return status;
    }
    for (size_t i = 0; i < c->config->n_notes; i++)
        plain_say(&p, "Configuration: %s", c->config->notes[i]);
    while (!p.stop) {
        int ms = plain_news(&p);
        line = take_line(&p);
        if (line)
            run_line(&p, line);
        free(line);
        if (line)
            continue;
        if (p.eof)
            break;
        if (p.greeted)
            show_prompt(&p);
        turn(&p, ms);
    }
    if (p.signal != SIGHUP)
        say_goodbye(&p);
    fflush(stdout);
    close_plain(&p);
    return p.signal ? 128 + p.signal : CLI_OK;
}
