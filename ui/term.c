/* The terminal: curses for terminfo, modes and the diff of cells; our own reading of
 * keys. Curses writes into a memory file, so that a frame leaves in one write (term_frame.c). */
#include <cct/ui/term.h>

#include "term_state.h"

#include <cct/secrets/secret.h>
#include <cct/util/clock.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#include <curses.h>

/* Everything we may have switched on, off again: mouse, focus, paste, synchronized
 * output, alternate screen; cursor and attributes as they were. */
static const char reset_modes[] = "\033[?1000l\033[?1002l\033[?1003l\033[?1006l\033[?1004l"
                                  "\033[?2004l\033[?2026l\033[?69l\033[0m\033[?25h\033[?1049l\r";
/* A program that crashed here before may have left the mouse on. */
static const char set_modes[] = "\033[?1000l\033[?1002l\033[?1003l\033[?1006l"
                                "\033[?2004h\033[?1004h\033[?2026$p\033[?69$p";
static const char mouse_on[] = "\033[?1002h\033[?1006h", mouse_off[] = "\033[?1002l\033[?1006l";
static const char keep_title[] = "\033[22;0;0t", give_title[] = "\033[23;0;0t";

struct terminal the_term = {.tty = -1, .mem = -1, .out = -1};

/* --- ending in every case ----------------------------------------------------- */

enum { STUCK_MS = 150 };

void term_set_blocking(bool on)
{
    if (the_term.own)
        return;
    int flags = fcntl(the_term.tty, F_GETFL);
    fcntl(the_term.tty, F_SETFL, on ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

/* All of it, or false when the line takes nothing for STUCK_MS. Async-signal-safe. */
static bool write_all(const char *s, size_t len)
{
    bool ok = true;
    term_set_blocking(false);
    while (len && ok) {
        struct pollfd p = {.fd = the_term.tty, .events = POLLOUT};
        ssize_t n = write(the_term.tty, s, len);
        if (n > 0) {
            s += n;
            len -= (size_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            ok = poll(&p, 1, STUCK_MS) > 0;
        } else {
            ok = n < 0 && errno == EINTR;
        }
    }
    term_set_blocking(true);
    return ok;
}

static void restore_now(void)
{
    /* async-signal-safe: also called by the crash handler of any thread */
    if (the_term.tty >= 0 && !write_all(reset_modes, sizeof(reset_modes) - 1)) {
        tcflush(the_term.tty, TCOFLUSH); /* nobody reads: what waits must not hold us */
        write_all(reset_modes, sizeof(reset_modes) - 1);
    }
    if (the_term.tty >= 0 && the_term.titled)
        write_all(give_title, sizeof(give_title) - 1);
    the_term.titled = false;
    if (the_term.saved_ok)
        tcsetattr(STDIN_FILENO, TCSANOW, &the_term.saved);
}

static void enter_modes(void)
{
    bool ok = write_all(set_modes, sizeof(set_modes) - 1);
    if (ok && the_term.mouse)
        ok = write_all(mouse_on, sizeof(mouse_on) - 1);
    if (!ok && errno != EAGAIN)
        the_term.gone = true;
}

static void on_crash(int sig)
{
    restore_now();
    signal(sig, SIG_DFL);
    raise(sig);
}

static void catch_crashes(void)
{
    static char stack[64 << 10];
    stack_t ss = {.ss_sp = stack, .ss_size = sizeof(stack)};
    sigaltstack(&ss, NULL);
    static const int sigs[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};
    struct sigaction sa = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK | SA_RESETHAND};
    sigemptyset(&sa.sa_mask);
    for (size_t i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++)
        sigaction(sigs[i], &sa, NULL);
}

/* --- opening -------------------------------------------------------------------- */

static int refuse(struct err *e, const char *why)
{
    return err_set(e, ERR_UNSUPPORTED,
                   "cannot open the screen: %s; 'cc-tui --plain' works by lines here, and "
                   "'cc-tui --help' lists commands for one thing each",
                   why);
}

static int open_screen(const char **note, struct err *e)
{
    const char *term = getenv("TERM");
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return refuse(e, "standard input and output are not a terminal");
    if (!term || !*term)
        return refuse(e, "TERM is not set (set it, such as TERM=xterm-256color)");
    if (strcmp(term, "dumb") == 0)
        return refuse(e, "TERM is 'dumb', which cannot place text");
    the_term.tty = open("/proc/self/fd/1", O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    the_term.own = the_term.tty >= 0;
    if (!the_term.own)
        the_term.tty = dup(STDOUT_FILENO);
    the_term.out = dup(STDOUT_FILENO);
    the_term.mem = memfd_create("frame", MFD_CLOEXEC);
    if (the_term.tty < 0 || the_term.out < 0 || the_term.mem < 0)
        return err_sys(e, ERR_IO, "cannot open the screen");
    fcntl(the_term.tty, F_SETFD, FD_CLOEXEC);
    fcntl(the_term.out, F_SETFD, FD_CLOEXEC);
    the_term.outf = fdopen(the_term.out, "w");
    the_term.saved_ok = tcgetattr(STDIN_FILENO, &the_term.saved) == 0;
    use_tioctl(TRUE);
    the_term.screen = newterm(NULL, the_term.outf, stdin);
    if (!the_term.screen) {
        *note = "this system does not know the terminal type TERM names: xterm-256color is "
                "assumed";
        the_term.screen = newterm("xterm-256color", the_term.outf, stdin);
    }
    if (!the_term.screen)
        return refuse(e, "no terminfo entry for TERM nor for xterm-256color (install "
                         "ncurses-base)");
    return 0;
}

int term_open(const struct term_opts *o, const char **note, struct err *e)
{
    *note = NULL;
    int rc = open_screen(note, e);
    if (rc) {
        term_close();
        return rc;
    }
    the_term.open = true;
    catch_crashes();
    die_set_hook(restore_now);
    set_term(the_term.screen);
    raw();
    noecho();
    nonl();
    typeahead(-1);
    leaveok(stdscr, FALSE);
    the_term.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    the_term.ascii = o->ascii || !the_term.utf8;
    palette_open(&the_term.pal, &o->color);
    term_theme(o->theme);
    bool slow = getenv("SSH_CONNECTION") != NULL;
    the_term.keys = key_decoder_new(slow ? 100 : 25);
    caps_teach_keys(the_term.keys);
    the_term.shortener = caps_shortener(the_term.pal.color);
    canvas_init(&the_term.shown);
    the_term.full = true;
    enter_modes();
    return 0;
}

/* Out of the alternate screen with every mode as it was, also when nobody reads. */
static void leave_screen(void)
{
    if (the_term.frame.len && !write_all(the_term.frame.p, the_term.frame.len))
        tcflush(the_term.tty, TCOFLUSH);
    buf_clear(&the_term.frame);
    if (!the_term.gone && term_capture_begin()) {
        endwin();
        term_capture_end(false);
        write_all(the_term.frame.p ? the_term.frame.p : "", the_term.frame.len);
        buf_clear(&the_term.frame);
    }
    restore_now();
}

void term_close(void)
{
    if (the_term.open) {
        the_term.open = false;
        if (!the_term.lent)
            leave_screen();
        die_set_hook(NULL);
    }
    if (the_term.screen)
        delscreen(the_term.screen);
    if (the_term.outf)
        fclose(the_term.outf);
    else if (the_term.out >= 0)
        close(the_term.out);
    if (the_term.tty >= 0)
        close(the_term.tty);
    if (the_term.mem >= 0)
        close(the_term.mem);
    canvas_release(&the_term.shown);
    buf_release(&the_term.frame);
    buf_release(&the_term.raw);
    buf_release(&the_term.spelled);
    shortener_free(the_term.shortener);
    the_term.shortener = NULL;
    buf_release(&the_term.ahead);
    color_slots_free(the_term.pal.slots);
    the_term.pal.slots = NULL;
    key_decoder_free(the_term.keys);
    the_term.screen = NULL;
    the_term.outf = NULL;
    the_term.keys = NULL;
    the_term.out = the_term.tty = the_term.mem = -1;
}

static void come_back(void)
{
    die_set_hook(restore_now); /* who had the terminal may have set another one */
    enter_modes();
    reset_prog_mode();
    the_term.returned = true;
    the_term.margins = false;
    term_resized();
    term_redraw();
}

void term_suspend(void)
{
    leave_screen();
    /* the whole foreground job stops, as the shell's ^Z would do it */
    signal(SIGTSTP, SIG_DFL);
    sigset_t set, old;
    sigemptyset(&set);
    sigaddset(&set, SIGTSTP);
    pthread_sigmask(SIG_UNBLOCK, &set, &old);
    kill(0, SIGTSTP);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    come_back();
}

void term_lend(struct buf *typed)
{
    key_decoder_rest(the_term.keys, typed);
    leave_screen();
    the_term.lent = true;
}

void term_take(void)
{
    the_term.lent = false;
    tcflush(STDIN_FILENO, TCIFLUSH); /* was typed for the other one */
    come_back();
}

void term_size(int *h, int *w)
{
    struct winsize ws;
    if (ioctl(the_term.tty, TIOCGWINSZ, &ws) == 0 && ws.ws_row > 0 && ws.ws_col > 0) {
        *h = ws.ws_row > 1000 ? 1000 : ws.ws_row;
        *w = ws.ws_col > 1000 ? 1000 : ws.ws_col;
        return;
    }
    *h = LINES > 0 ? LINES : 24;
    *w = COLS > 0 ? COLS : 80;
}

void term_resized(void)
{
    int h, w;
    term_size(&h, &w);
    if (h != LINES || w != COLS)
        resizeterm(h, w);
    /* now: who starts still waits for the stored rows */
    if (h != the_term.shown.h || w != the_term.shown.w)
        canvas_resize(&the_term.shown, h, w);
    /* at the old size, too: in between a smaller one may have cut what stood there */
    the_term.full = true;
}

void term_redraw(void)
{
    the_term.full = true;
}

void term_keep_title(void)
{
    term_send(keep_title, sizeof(keep_title) - 1);
    the_term.titled = true;
}

/* --- keys ---------------------------------------------------------------------------- */

static bool input_waits(void)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

void term_mouse(struct mouse *m)
{
    key_decoder_mouse(the_term.keys, m);
}

void term_mouse_on(bool on)
{
    the_term.mouse = on;
    key_decoder_mouse_on(the_term.keys, on);
    if (on)
        term_send(mouse_on, sizeof(mouse_on) - 1);
    else
        term_send(mouse_off, sizeof(mouse_off) - 1);
}

void term_mark_ahead(void)
{
    the_term.behind = input_waits();
}

bool term_key_alone(void)
{
    return the_term.heap == 1 && key_decoder_empty(the_term.keys) && !input_waits();
}

static key_code count_key(key_code k)
{
    the_term.heap += k != 0;
    return k;
}

/* Fingers are slower than this; a paste without marks is not. */
static void count_read(int64_t now)
{
    enum { APART_MS = 40 };
    the_term.heap = the_term.behind || now - the_term.read_at < APART_MS;
    the_term.behind = false;
    the_term.read_at = now;
}

key_code term_key(const char **paste, size_t *len)
{
    int64_t now = clock_mono_ms();
    key_code k = key_decoder_next(the_term.keys, now, paste, len);
    if (k)
        return count_key(k);
    if (!input_waits())
        return 0;
    char bytes[4096];
    ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (n <= 0) {
        the_term.gone = true;
        return K_HANGUP;
    }
    count_read(now);
    key_decoder_feed(the_term.keys, bytes, (size_t)n, now);
    secret_wipe(bytes, (size_t)n);
    return count_key(key_decoder_next(the_term.keys, now, paste, len));
}

int term_key_wait(void)
{
    return key_decoder_wait(the_term.keys, clock_mono_ms());
}

bool term_is_utf8(void)
{
    return the_term.utf8 && !the_term.ascii;
}

void term_theme(const struct theme *t)
{
    palette_theme(&the_term.pal, t);
    the_term.full = true;
}

void term_ask_background(void)
{
    static const char query[] = "\033]11;?\033\\";
    term_send(query, sizeof(query) - 1);
}

int term_background(void)
{
    return key_decoder_background(the_term.keys);
}

void term_stats(struct term_stats *s)
{
    *s = the_term.stats;
}
