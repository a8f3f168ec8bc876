/* The event loop: terminal, queue from the threads, signals. Sleeps until one of them has
 * something; draws at most max_fps frames a second, the first one after a pause at once. */
#include <cct/ui/courier.h>
#include <cct/ui/ownfiles.h>
#include <cct/ui/ui.h>

#include <cct/app/replay.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/log.h>
#include <cct/util/thread.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { FIRST_ROWS_MS = 8, DRAIN_MS = 8, FPS_LOCAL = 30, FPS_SSH = 10, RETRY_WRITE_MS = 20,
       KEYS_PER_TURN = 256, RESIZE_MS = 50, KEY_FRAME_MS = 4, ANSWER_MS = 100, MINUTE_MS = 60000, SLOW_FRAME_MS = 100, SLOW_MS = 1000 };

struct loop {
    struct ui *ui;
    struct courier *courier;
    int sigfd;
    int64_t last_frame; /* mono ms */
    int64_t minute;     /* of it, by the wall: ages and figures go on with the next one */
    int frame_ms;
    bool dirty;         /* something visible may differ */
    bool keyed;         /* ... by a key */
    bool mouse;         /* the terminal was told to report it */
    bool stop;
    int status;
    int64_t slow_until; /* mono ms: the line was backed up shortly before */
    int64_t asked_background; /* mono ms; 0 = no answer is awaited */
    int64_t resize_at;  /* a burst of sizes is drawn once; 0 = none */
    uint64_t wakes;
};

void ui_signals(sigset_t *set)
{
    static const int sigs[] = {SIGWINCH, SIGTERM, SIGINT, SIGHUP, SIGCONT, SIGQUIT,
                               SIGTSTP, SIGUSR1};
    sigemptyset(set);
    for (size_t i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++)
        sigaddset(set, sigs[i]);
}

static int open_signals(void)
{
    sigset_t set;
    ui_signals(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

static void read_signals(struct loop *l)
{
    struct signalfd_siginfo si;
    while (read(l->sigfd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
        switch (si.ssi_signo) {
        case SIGWINCH:
            if (!l->resize_at)
                l->resize_at = clock_mono_ms();
            break;
        case SIGUSR1:
            reload_ask(l->ui->reload);
            break;
        case SIGTSTP:
            if (courier_edits(l->courier)) /* the editor's: it stops, and so do we */
                raise(SIGSTOP);
            else
                l->ui->suspend = true;
            break;
        case SIGINT:
        case SIGQUIT: /* a key for the editor, which the terminal makes a signal */
            if (courier_edits(l->courier))
                break;
            l->stop = true;
            l->status = 128 + (int)si.ssi_signo;
            break;
        case SIGCONT:
            term_redraw();
            l->resize_at = clock_mono_ms();
            break;
        default:
            l->stop = true;
            l->status = 128 + (int)si.ssi_signo;
        }
    }
}

static void resize(struct loop *l)
{
    int h, w;
    l->resize_at = 0;
    term_resized();
    term_size(&h, &w);
    ui_resize(l->ui, h, w);
    l->dirty = true;
}

static void set_mouse(struct loop *l)
{
    bool on = l->ui->mouse_on && !l->ui->bare; /* bare is for the terminal's own selection */
    if (l->mouse != on)
        term_mouse_on(on);
    l->mouse = on;
}

static void run_shell(struct loop *l)
{
    int status = ui_shell(l->ui);
    if (status) {
        l->stop = true;
        l->status = status;
    }
    l->ui->now = clock_wall_ms();
    resize(l);
}

static void read_keys(struct loop *l)
{
    const char *paste;
    size_t len;
    l->ui->unseen = term_backed_up();
    for (int i = 0; i < KEYS_PER_TURN && !l->stop && !l->ui->shell; i++) {
        key_code k = term_key(&paste, &len);
        if (!k)
            break;
        if (k == K_HANGUP) {
            l->stop = true;
            l->status = 129;
            break;
        }
        l->ui->now = clock_wall_ms();
        l->ui->key_at = l->ui->replay_now = clock_mono_ms();
        l->ui->crowded = !term_key_alone();
        if (k == K_MOUSE)
            term_mouse(&l->ui->mouse);
        int r = ui_key(l->ui, k, paste, len);
        if (r != UI_IGNORED)
            l->dirty = l->keyed = true;
        if (r & UI_QUIT)
            l->stop = true;
    }
    set_mouse(l);
    if (l->ui->redraw) {
        l->ui->redraw = false;
        term_redraw();
        l->dirty = true;
    }
    if (l->ui->suspend) {
        l->ui->suspend = false;
        term_suspend();
        resize(l);
    }
    if (l->ui->shell)
        run_shell(l);
}

static void paint(struct loop *l, int64_t now)
{
    int64_t wall = clock_wall_ms();
    l->ui->boot = clock_boot_ms();
    ui_draw(l->ui, wall);
    l->minute = wall / MINUTE_MS;
    if (l->ui->asks_anew)
        term_mark_ahead();
    l->ui->asks_anew = false;
    if (!term_flush(&l->ui->canvas)) {
        l->stop = true;
        l->status = 129;
    }
    l->dirty = l->keyed = false;
    courier_title(l->courier, l->ui);
    if (l->ui->model->loaded) /* the picture without the stored rows holds up nothing */
        l->last_frame = now;
}

static int min_wait(int a, int64_t b)
{
    if (b < 0)
        b = 0;
    return a < 0 || b < a ? (int)b : a;
}

/* Frames of agents' output come at a steady pace; what a key did is not held back by it. A line
 * that did not take the last ones at once gets fewer for a while. */
static int frame_ms(const struct loop *l)
{
    if (!l->keyed && l->slow_until > clock_mono_ms() && l->frame_ms < SLOW_FRAME_MS)
        return SLOW_FRAME_MS;
    return l->keyed && l->frame_ms > KEY_FRAME_MS ? KEY_FRAME_MS : l->frame_ms;
}

/* How long nothing needs to be done; -1 = until woken. */
static int wait_ms(struct loop *l, int64_t now)
{
    int ms = term_key_wait();
    if (l->resize_at)
        ms = min_wait(ms, l->resize_at + RESIZE_MS - now);
    if (l->dirty && !courier_edits(l->courier))
        ms = min_wait(ms, l->last_frame + frame_ms(l) - now);
    if (term_backed_up()) {
        l->slow_until = now + SLOW_MS;
        ms = min_wait(ms, RETRY_WRITE_MS);
    }
    int64_t note = ui_notes_wait(l->ui, now);
    if (note >= 0)
        ms = min_wait(ms, note);
    int64_t due = l->ui->opts.replay ? ui_replay_wait(l->ui, now) : -1;
    if (due >= 0)
        ms = min_wait(ms, due);
    int64_t wall = clock_wall_ms(), next = ui_next_change(l->ui, wall);
    if (next)
        ms = min_wait(ms, next - wall + 1);
    return ms;
}

/* The answer counts when it comes at once: later the picture stays as it is. */
static void take_background(struct loop *l, int64_t now)
{
    bool slow = getenv("SSH_CONNECTION") != NULL;
    int bg = term_background();
    if (!l->asked_background || (bg < 0 && now - l->asked_background <= ANSWER_MS))
        return;
    if (bg == 1 && now - l->asked_background <= (slow ? 10 : 1) * ANSWER_MS) {
        l->ui->theme = *l->ui->opts.theme_light;
        l->ui->theme_changed = true;
    }
    l->asked_background = 0;
}

static void take_settings(struct ui *ui)
{
    struct settings *s = reload_take(ui->reload);
    if (s)
        ui_take_settings(ui, s);
}

static void turn(struct loop *l)
{
    bool edits = courier_edits(l->courier);
    const struct replay *played = l->ui->opts.replay;
    struct pollfd p[] = {{.fd = edits ? -1 : STDIN_FILENO, .events = POLLIN},
                          {.fd = app_fd(l->ui->app), .events = POLLIN},
                          {.fd = l->sigfd, .events = POLLIN},
                          {.fd = courier_fd(l->courier), .events = POLLIN},
                          {.fd = reload_fd(l->ui->reload), .events = POLLIN},
                          /* the rest of a frame goes on as soon as there is room for it */
                          {.fd = term_backed_up() ? STDOUT_FILENO : -1, .events = POLLOUT},
                          {.fd = played ? replay_fd(played) : -1, .events = POLLIN},
                          {.fd = ownfiles_fd(l->ui->own), .events = POLLIN}};
    int n = poll(p, sizeof(p) / sizeof(p[0]), wait_ms(l, clock_mono_ms()));
    l->wakes++;
    if (n < 0 && errno != EINTR) {
        l->stop = true;
        l->status = 1;
        return;
    }
    if (p[2].revents)
        read_signals(l);
    if (p[0].revents & (POLLHUP | POLLERR | POLLNVAL)) {
        l->stop = true;
        l->status = 129;
        return;
    }
    if (!edits)
        read_keys(l); /* also when poll ran out: a lone Esc is decided by time */
    take_background(l, clock_mono_ms());
    if (p[1].revents && app_drain(l->ui->app, DRAIN_MS))
        l->dirty |= ui_update(l->ui);
    if (l->ui->opts.replay)
        l->dirty |= ui_replay_turn(l->ui, clock_mono_ms());
    if (!l->stop)
        l->dirty |= ui_notes(l->ui, clock_mono_ms());
    if (p[3].revents || l->ui->outbox.n)
        courier_turn(l->courier, l->ui);
    if (p[4].revents)
        take_settings(l->ui);
    if (p[7].revents)
        pane_input_looks(l->ui, 0);
    if (l->ui->theme_changed)
        term_theme(&l->ui->theme);
    l->dirty |= l->ui->said || l->ui->theme_changed;
    l->ui->said = l->ui->theme_changed = false;
    if (clock_wall_ms() / MINUTE_MS != l->minute || ui_status_ages(l->ui, clock_wall_ms()))
        l->dirty = true;
    int64_t now = clock_mono_ms();
    if (l->resize_at && now - l->resize_at >= RESIZE_MS)
        resize(l);
    if (l->dirty && !l->stop && !courier_edits(l->courier) && now - l->last_frame >= frame_ms(l) && !term_backed_up())
        paint(l, now);
}

static bool readable_until(int fd, int64_t end)
{
    int64_t left = end - clock_mono_ms();
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return left > 0 && poll(&p, 1, (int)left) > 0;
}

/* Stored rows are there within a few milliseconds as a rule, and so is the begin of a recording:
 * the first picture has them. */
static void await_rows(struct ui *ui)
{
    int64_t end = clock_mono_ms() + FIRST_ROWS_MS;
    struct replay *r = ui->opts.replay;
    while (!ui->model->loaded && readable_until(app_fd(ui->app), end))
        app_drain(ui->app, 0);
    while (r && replay_is_ready(r) && replay_fd(r) >= 0 && readable_until(replay_fd(r), end)) {
        ui_replay_turn(ui, clock_mono_ms());
        app_drain(ui->app, 0);
    }
    ui_update(ui);
}

static void write_bench(const struct loop *l, const char *path)
{
    struct term_stats s;
    term_stats(&s);
    char text[256];
    int n = snprintf(text, sizeof(text),
                     "frames %llu\nbytes %llu\nwrites %llu\nmax_frame_us %lld\nwakes %llu\n",
                     (unsigned long long)s.frames, (unsigned long long)s.bytes,
                     (unsigned long long)s.writes, (long long)s.max_frame_us,
                     (unsigned long long)l->wakes);
    struct err e = {0};
    if (fs_write_private(path, text, (size_t)n, &e))
        log_error("%s", e.text);
}

int ui_run(struct app *app, const struct ui_opts *o)
{
    struct ui ui;
    struct loop l = {.ui = &ui};
    struct err e = {0};
    const char *note;
    struct ui_opts opts = *o;
    struct around around;
    around_read(&around, getenv);
    struct term_opts to = {.ascii = o->ascii, .color = o->color, .theme = o->theme};
    l.sigfd = open_signals();
    if (term_open(&to, &note, &e)) {
        fprintf(stderr, "cc-tui: %s\n", e.text);
        close(l.sigfd);
        return 2;
    }
    opts.ascii |= !term_is_utf8();
    int fps = o->max_fps ? o->max_fps : getenv("SSH_CONNECTION") ? FPS_SSH : FPS_LOCAL;
    l.frame_ms = (1000 + fps - 1) / fps;
    opts.no_mouse |= around.mosh;
    l.courier = courier_new(&opts, &around);
    ui_init(&ui, app, &opts);
    if (note)
        ui_status(&ui, 1, "%s", note);
    app_observe(app, ui_observe, &ui);
    if (o->replay)
        ui_replay_begin(&ui, clock_mono_ms());
    resize(&l);
    await_rows(&ui);
    paint(&l, clock_mono_ms());
    if (o->theme_light && around.background < 0 && !around.plain) {
        term_ask_background();
        l.asked_background = clock_mono_ms();
    }
    if (app_go_online(app, &e))
        ui_status(&ui, 2, "%s", e.text);
    if (o->reload.load)
        ui.reload = reload_new(&o->reload);
    l.dirty = true;
    while (!l.stop)
        turn(&l);
    app_observe(app, NULL, NULL);
    reload_free(ui.reload);
    ui.reload = NULL;
    bool tty_lost = l.status == 129;
    term_close();
    courier_free(l.courier);
    drafts_save(&ui);
    if (o->bench_frames)
        write_bench(&l, o->bench_frames);
    char *bye = tty_lost || o->replay ? NULL : app_goodbye(app);
    if (bye)
        printf("%s\n", bye);
    free(bye);
    ui_release(&ui);
    close(l.sigfd);
    return l.status;
}
