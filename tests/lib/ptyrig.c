/* A program on a pseudo terminal: see ptyrig.h. */
#include "ptyrig.h"

#include <cct/util/buf.h>
#include <cct/util/utf8.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <utmp.h>

int64_t rig_now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void child(char *const argv[], const char *const env[])
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (size_t i = 0; env && env[i]; i++) {
        const char *eq = strchr(env[i], '=');
        if (eq)
            putenv((char *)env[i]);
        else
            unsetenv(env[i]);
    }
    execvp(argv[0], argv);
    fprintf(stderr, "cannot start %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

void rig_start(struct ptyrig *r, int h, int w, char *const argv[], const char *const env[])
{
    struct winsize ws = {.ws_row = (unsigned short)h, .ws_col = (unsigned short)w};
    memset(r, 0, sizeof(*r));
    judge_init(&r->judge);
    r->h = h > 0 ? h : 24;
    r->w = w > 0 ? w : 80;
    r->vt = vterm_new(r->h, r->w);
    vterm_set_utf8(r->vt, 1);
    r->screen = vterm_obtain_screen(r->vt);
    vterm_screen_enable_altscreen(r->screen, 1);
    vterm_screen_reset(r->screen, 1);
    int slave;
    /* the modes are read before the program can have changed them */
    if (openpty(&r->fd, &slave, NULL, NULL, &ws) != 0 || tcgetattr(r->fd, &r->before) != 0 ||
        (r->pid = fork()) < 0) {
        perror("openpty");
        exit(1);
    }
    if (r->pid == 0) {
        close(r->fd);
        login_tty(slave);
        child(argv, env);
    }
    close(slave);
    fcntl(r->fd, F_SETFD, FD_CLOEXEC);
    fcntl(r->fd, F_SETFL, O_NONBLOCK);
}

static void look_for_question(struct ptyrig *r, const char *s, size_t len)
{
    static const char query[] = "\033[?2026$p";
    if (!memmem(s, len, query, sizeof(query) - 1))
        return;
    r->asked_sync = true;
    if (r->answer_sync)
        rig_type(r, "\033[?2026;2$y");
    if (r->answer_margins)
        rig_type(r, "\033[?69;2$y");
}

/* Take what there is; waits at most ms for something. */
static bool pump(struct ptyrig *r, int ms)
{
    struct pollfd p = {.fd = r->fd, .events = POLLIN};
    char bytes[65536];
    if (r->fd < 0 || poll(&p, 1, ms) <= 0)
        return false;
    ssize_t n = read(r->fd, bytes, sizeof(bytes));
    if (n <= 0)
        return false;
    r->bytes += (uint64_t)n;
    r->reads++;
    if (r->tape)
        fwrite(bytes, 1, (size_t)n, r->tape);
    judge_feed(&r->judge, bytes, (size_t)n);
    vterm_input_write(r->vt, bytes, (size_t)n);
    look_for_question(r, bytes, (size_t)n);
    return true;
}

static bool reap(struct ptyrig *r)
{
    if (!r->exited && waitpid(r->pid, &r->status, WNOHANG) == r->pid)
        r->exited = true;
    return r->exited;
}

void rig_stop(struct ptyrig *r)
{
    if (!reap(r)) {
        kill(r->pid, SIGKILL);
        waitpid(r->pid, &r->status, 0);
    }
    if (r->fd >= 0)
        close(r->fd);
    vterm_free(r->vt);
    judge_release(&r->judge);
}

void rig_send(struct ptyrig *r, const char *bytes, size_t len)
{
    int64_t end = rig_now_ms() + 5000;
    while (len && r->fd >= 0 && rig_now_ms() < end) {
        ssize_t n = write(r->fd, bytes, len);
        if (n > 0) {
            bytes += n;
            len -= (size_t)n;
        } else {
            pump(r, 5); /* the program may wait for us to read */
        }
    }
}

void rig_type(struct ptyrig *r, const char *text)
{
    rig_send(r, text, strlen(text));
}

static void add_cell(struct buf *b, const VTermScreenCell *cell)
{
    if (!cell->chars[0])
        buf_addc(b, ' ');
    for (int i = 0; i < VTERM_MAX_CHARS_PER_CELL && cell->chars[i]; i++) {
        char s[4];
        if (cell->chars[i] != (uint32_t)-1)
            buf_add(b, s, utf8_encode(s, cell->chars[i]));
    }
}

static void add_row(struct ptyrig *r, int y, struct buf *b)
{
    size_t start = b->len;
    VTermScreenCell cell;
    for (int x = 0; x<r->w; x += cell.width> 1 ? cell.width : 1) {
        vterm_screen_get_cell(r->screen, (VTermPos){y, x}, &cell);
        add_cell(b, &cell);
    }
    while (b->len > start && b->p[b->len - 1] == ' ')
        buf_truncate(b, b->len - 1);
    buf_addc(b, '\n');
}

char *rig_screen(struct ptyrig *r)
{
    struct buf b = BUF_INIT;
    for (int y = 0; y < r->h; y++)
        add_row(r, y, &b);
    return buf_detach(&b, NULL);
}

/* y: on that row, -1: anywhere. */
static bool shows(struct ptyrig *r, const char *text, int y)
{
    struct buf b = BUF_INIT;
    for (int i = y < 0 ? 0 : y; i < (y < 0 ? r->h : y + 1); i++)
        add_row(r, i, &b);
    bool yes = strstr(buf_str(&b), text) != NULL;
    buf_release(&b);
    return yes;
}

uint32_t rig_cell(struct ptyrig *r, int y, int x)
{
    VTermScreenCell cell = {0};
    if (y < 0 || x < 0 || y >= r->h || x >= r->w)
        return 0;
    vterm_screen_get_cell(r->screen, (VTermPos){y, x}, &cell);
    return cell.chars[0];
}

char *rig_row(struct ptyrig *r, int y)
{
    struct buf b = BUF_INIT;
    if (y >= 0 && y < r->h)
        add_row(r, y, &b);
    buf_truncate(&b, b.len ? b.len - 1 : 0);
    return buf_detach(&b, NULL);
}

bool rig_wait_for(struct ptyrig *r, bool (*ok)(struct ptyrig *r, void *arg), void *arg, int ms)
{
    int64_t end = rig_now_ms() + ms;
    while (!ok(r, arg)) {
        int64_t left = end - rig_now_ms();
        if (left <= 0)
            return false;
        if (!pump(r, left > 50 ? 50 : (int)left) && reap(r))
            return ok(r, arg);
    }
    return true;
}

struct shown {
    const char *text;
    int y;
    bool yes;
};

static bool as_wanted(struct ptyrig *r, void *arg)
{
    struct shown *w = arg;
    return shows(r, w->text, w->y) == w->yes;
}

static bool wait_shown(struct ptyrig *r, const char *text, int y, bool shown, int ms)
{
    return rig_wait_for(r, as_wanted, &(struct shown){text, y, shown}, ms);
}

bool rig_wait(struct ptyrig *r, const char *text, int ms)
{
    return wait_shown(r, text, -1, true, ms);
}

void rig_must_show(struct ptyrig *r, const char *text, int ms)
{
    if (rig_wait(r, text, ms))
        return;
    char *s = rig_screen(r);
    fputs(s, stderr);
    die("'%s' does not come to the screen", text);
}

int rig_must_row(struct ptyrig *r, const char *text)
{
    for (int y = 0; y < r->h; y++)
        if (rig_wait_row(r, y, text, true, 0))
            return y;
    die("'%s' is on no row", text);
}

bool rig_wait_gone(struct ptyrig *r, const char *text, int ms)
{
    return wait_shown(r, text, -1, false, ms);
}

bool rig_wait_row(struct ptyrig *r, int y, const char *text, bool shown, int ms)
{
    return wait_shown(r, text, y, shown, ms);
}

bool rig_wait_quiet(struct ptyrig *r, int quiet_ms, int ms)
{
    int64_t end = rig_now_ms() + ms;
    while (rig_now_ms() < end)
        if (!pump(r, quiet_ms))
            return true;
    return false;
}

bool rig_wait_exit(struct ptyrig *r, int ms)
{
    int64_t end = rig_now_ms() + ms;
    while (!reap(r) && rig_now_ms() < end)
        if (!pump(r, 20) && r->fd < 0)
            poll(NULL, 0, 5);
    while (pump(r, 0))
        ;
    return r->exited;
}

void rig_resize(struct ptyrig *r, int h, int w)
{
    struct winsize ws = {.ws_row = (unsigned short)h, .ws_col = (unsigned short)w};
    while (pump(r, 0))
        ;
    if (h > 0 && w > 0) {
        r->h = h;
        r->w = w;
        vterm_set_size(r->vt, h, w);
    }
    ioctl(r->fd, TIOCSWINSZ, &ws);
}

void rig_hang_up(struct ptyrig *r)
{
    close(r->fd);
    r->fd = -1;
}

void rig_cursor(struct ptyrig *r, int *y, int *x)
{
    VTermPos pos;
    vterm_state_get_cursorpos(vterm_obtain_state(r->vt), &pos);
    *y = pos.row;
    *x = pos.col;
}

const char *rig_not_restored(struct ptyrig *r)
{
    struct termios now;
    if (r->judge.alt)
        return "still on the alternate screen";
    if (!r->judge.cursor)
        return "the cursor is off";
    if (r->judge.paste)
        return "bracketed paste is on";
    if (r->judge.focus)
        return "focus reports are on";
    if (r->judge.mouse)
        return "the mouse is on";
    if (r->judge.margins)
        return "margins are on";
    if (r->judge.sync)
        return "synchronized output is on";
    if (r->fd >= 0 && tcgetattr(r->fd, &now) == 0 &&
        (now.c_lflag != r->before.c_lflag || now.c_iflag != r->before.c_iflag ||
         now.c_oflag != r->before.c_oflag))
        return "the line discipline differs";
    return NULL;
}
