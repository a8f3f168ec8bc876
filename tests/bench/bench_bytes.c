/* Bytes to the terminal at 200x60: one row's change, one appended line, a stream at full
 * speed. The real screen on a pty, fed through a facade without threads. */
#include "../lib/bench.h"
#include "../lib/fakeapp.h"

#include <cct/model/transcribe.h>
#include <cct/ui/ui.h>
#include <cct/util/clock.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <pty.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { H = 60, W = 200, ROWS = 20, STREAM_MS = 3000, TURN_MS = 8, BATCH = 200, LINE = 72,
       HELD = 2000 /* lines in the output to begin with */ };

static const char section[] = "bytes";
static int master;
static struct theme theme;

/* The other end: takes what comes, and types q when asked. */
static atomic_ullong drained;
static void *drain(void *arg)
{
    char b[65536];
    ssize_t n;
    (void)arg;
    while ((n = read(master, b, sizeof(b))) > 0)
        atomic_fetch_add(&drained, (unsigned long long)n);
    return NULL;
}

/* --- feeding the model --------------------------------------------------------------------- */

static void post(struct app *a, void *ev)
{
    model_apply(a->model, ev);
    msg_free(ev);
}

static void put_row(struct app *a, int i, enum sb_state state, enum sb_agent agent)
{
    struct ev_sandboxes *ev = ev_new(EV_SANDBOXES);
    struct sandbox *r = ev->v = xcalloc(1, sizeof(*r));
    int64_t minute = clock_wall_ms() / 60000 * 60000;
    ev->n = 1;
    r->id = (uint64_t)i + 1;
    r->sandbox_id = xasprintf("i%020d", i);
    r->name = xasprintf("box-%02d", i);
    r->tool = xstrdup("claude");
    r->project = xstrdup("default");
    r->state = state;
    r->agent = agent;
    r->created_at = r->started_at = minute - 600000;
    r->end_at = minute + 3600000 + 59000;
    r->cpu_count = 2;
    r->memory_mb = 1024;
    post(a, ev);
}

static void add_line(struct app *a, int no)
{
    struct ev_items *ev = ev_new(EV_ITEMS);
    struct agent_event e = {.kind = AGENT_RAW, .final = true, .exit_code = -1,
                            .offset = (uint64_t)no * 80};
    char text[LINE + 1];
    uint32_t r = (uint32_t)no * 2654435761u + 12345;
    for (int i = 0; i < LINE; i++) { /* words that share little with the line before */
        r = r * 1664525 + 1013904223;
        text[i] = (r >> 24) % 6 == 0 ? ' ' : (char)('a' + (r >> 16) % 26);
    }
    text[LINE] = '\0';
    e.text = text;
    ev->sandbox = 1;
    transcribe(&e, "claude", ev);
    post(a, ev);
}

static struct app *filled(void)
{
    struct app *a = fake_new();
    struct ev_link *l = ev_new(EV_LINK);
    l->state = LINK_OK;
    l->account = xstrdup("E2B key ****4f2a (environment)");
    l->total_running = -1;
    post(a, l);
    for (int i = 0; i < ROWS; i++)
        put_row(a, i, i == 4 ? SB_PAUSED : SB_RUNNING, i % 2 ? AG_WORKING : AG_IDLE);
    for (int i = 0; i < HELD; i++)
        add_line(a, i);
    post(a, ev_new(EV_LOADED));
    return a;
}

/* Standard output is the terminal while it is measured: rows wait until the end. */
static struct {
    struct bench_row row;
    struct bench_set floor, ours;
} rows[24];
static int n_rows;

static void say(const struct bench_row *r)
{
    rows[n_rows].row = *r;
    rows[n_rows].ours = *r->ours;
    if (r->floor)
        rows[n_rows].floor = *r->floor;
    n_rows++;
}

static void print_rows(void)
{
    for (int i = 0; i < n_rows; i++) {
        rows[i].row.ours = &rows[i].ours;
        rows[i].row.floor = rows[i].row.floor ? &rows[i].floor : NULL;
        bench_print(section, &rows[i].row);
    }
}

/* --- single changes --------------------------------------------------------------------------- */

static struct term_stats shown(struct ui *ui)
{
    struct term_stats before, after;
    term_stats(&before);
    ui_update(ui);
    ui_draw(ui, ui->now);
    term_flush(&ui->canvas);
    while (term_backed_up()) /* the other end may be slow */
        poll(NULL, 0, 1);
    term_stats(&after);
    after.bytes -= before.bytes;
    after.writes -= before.writes;
    after.frames -= before.frames;
    return after;
}

/* The screen at this size, filled; ends with shut(). */
static void open_at(struct ui *ui, struct app *a, int h, int w)
{
    static const struct ui_opts o = {.theme = &theme, .time_stamps = true, .wrap = true};
    struct winsize ws = {.ws_row = (unsigned short)h, .ws_col = (unsigned short)w};
    ioctl(master, TIOCSWINSZ, &ws);
    term_resized();
    ui_init(ui, a, &o);
    ui_resize(ui, h, w);
}

/* A line at the end of the output; the floor is its pane drawn once. */
static void measure_line(struct app *a, const char *what, int h, int w, int no)
{
    struct ui ui;
    open_at(&ui, a, h, w);
    shown(&ui);
    add_line(a, no);
    struct bench_set line = {.v = {(double)shown(&ui).bytes}, .n = 1};
    struct rect r = ui.panes[PANE_OUTPUT].r;
    struct bench_set pane = {.v = {(double)r.h * r.w}, .n = 1};
    say(&(struct bench_row){what, "bytes", &pane, &line, BENCH_RATIO_MAX, 1.1, true});
    ui_release(&ui);
}

/* The terminal says that it has left and right margins. */
static void answer_margins(void)
{
    static const char answer[] = "\033[?69;2$y";
    const char *paste;
    size_t len;
    if (write(master, answer, sizeof(answer) - 1) < 0)
        die("cannot answer");
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    poll(&p, 1, 1000);
    term_key(&paste, &len);
}

/* The same where the terminal moves the pane; the bar is the line and 40 bytes. */
static void measure_moved_line(struct app *a, const char *what, int h, int w, int no)
{
    struct ui ui;
    open_at(&ui, a, h, w);
    shown(&ui);
    add_line(a, no);
    shown(&ui); /* margins are switched on with the first one */
    add_line(a, no + 1);
    struct bench_set line = {.v = {(double)shown(&ui).bytes}, .n = 1};
    say(&(struct bench_row){what, "bytes", NULL, &line, BENCH_VALUE_MAX, LINE + 40, false});
    ui_release(&ui);
}

static void say_value(const char *what, const char *unit, double v, enum bench_kind kind,
                      double bar, bool must)
{
    struct bench_set s = {.v = {v}, .n = 1};
    say(&(struct bench_row){what, unit, NULL, &s, kind, bar, must});
}

/* Other sizes while it is open. The least of some: a line that takes half of it is no matter. */
static void measure_resize(struct app *a)
{
    double least = 0;
    struct ui ui;
    open_at(&ui, a, H, W);
    shown(&ui);
    for (int i = 0; i < 5; i++) {
        struct winsize ws = {.ws_row = i % 2 ? H : 50, .ws_col = i % 2 ? W : 160};
        ioctl(master, TIOCSWINSZ, &ws);
        term_resized();
        ui_resize(&ui, ws.ws_row, ws.ws_col);
        double writes = (double)shown(&ui).writes;
        least = i == 0 || writes < least ? writes : least;
    }
    say_value("after a resize: writes", "", least, BENCH_VALUE_MAX, 1, true);
    ui_release(&ui);
}

static void measure_singles(struct app *a)
{
    struct ui ui;
    open_at(&ui, a, H, W);
    struct term_stats s = shown(&ui);
    say_value("whole screen", "bytes", (double)s.bytes, BENCH_INFO, 0, false);
    say_value("whole screen: writes", "", (double)s.writes, BENCH_VALUE_MAX, 1, true);
    put_row(a, 7, SB_RUNNING, AG_IDLE);
    s = shown(&ui);
    say_value("a row and the counts: working to idle", "bytes", (double)s.bytes, BENCH_VALUE_MAX, 60,
              true);
    say_value("... ncurses alone: 41", "bytes", (double)s.bytes, BENCH_VALUE_MAX, 45, false);
    /* four fields of the row, two counts and the price */
    put_row(a, 9, SB_PAUSED, AG_UNKNOWN);
    say_value("a row and the counts: running to paused", "bytes", (double)shown(&ui).bytes,
              BENCH_VALUE_MAX, 120, false);
    ui_release(&ui);
    measure_resize(a);
    measure_line(a, "one line beside details (floor: the pane)", H, W, HELD);
    measure_line(a, "one line beside the list (floor: the pane)", 40, 120, HELD + 1);
    answer_margins();
    measure_moved_line(a, "one line beside details, with margins", H, W, HELD + 2);
    measure_moved_line(a, "one line beside the list, with margins", 40, 120, HELD + 4);
}

/* --- the stream: what ui_run() asks of the facade ------------------------------------------------ */

static int64_t stream_end;
static int stream_no;

/* A turn of the screen's budget of input, and always more to come, until the time is over
 * and the screen is told to quit. */
static bool feed(struct app *a)
{
    int64_t end = clock_mono_ms() + TURN_MS;
    if (clock_mono_ms() >= stream_end) {
        if (write(master, "q", 1) < 0)
            die("cannot type");
        return false;
    }
    do {
        for (int i = 0; i < BATCH; i++)
            add_line(a, HELD + 6 + stream_no++);
    } while (clock_mono_ms() < end);
    eventfd_write(a->fd, 1);
    return true;
}

static void begin(struct app *a)
{
    stream_end = clock_mono_ms() + STREAM_MS;
    eventfd_write(a->fd, 1);
}

static void measure_stream(struct app *a, struct term_stats *s, double *seconds)
{
    static const struct ui_opts o = {.theme = &theme, .time_stamps = true, .wrap = true};
    struct term_stats before;
    int64_t t = bench_now_us();
    term_stats(&before);
    a->on_drain = feed;
    a->on_online = begin;
    ui_run(a, &o);
    *seconds = (double)(bench_now_us() - t) / 1e6;
    term_stats(s);
    s->frames -= before.frames;
    s->bytes -= before.bytes;
    s->writes -= before.writes;
}

static void report_stream(const struct term_stats *s, double seconds)
{
    double input = (double)stream_no * (LINE + 1);
    bench_value(section, "stream: input", "MB/s", input / seconds / 1e6, BENCH_INFO, 0, false);
    bench_value(section, "stream: frames", "1/s", (double)s->frames / seconds, BENCH_VALUE_MAX, 30,
                true);
    bench_value(section, "stream: writes per frame", "", (double)s->writes / (double)s->frames,
                BENCH_VALUE_MAX, 1, true);
    bench_value(section, "stream: output", "kB/s", (double)s->bytes / seconds / 1e3, BENCH_INFO, 0,
                false);
    bench_value(section, "stream: longest frame", "ms", (double)s->max_frame_us / 1e3,
                BENCH_VALUE_MAX, 33, false);
}

/* --- the section -------------------------------------------------------------------------------------- */

int main(void)
{
    struct winsize ws = {.ws_row = H, .ws_col = W};
    struct term_stats stream;
    struct err e = {0};
    const char *note;
    double seconds;
    int slave;
    pthread_t t;

    theme_builtin(&theme);
    setenv("TERM", "xterm-256color", 1);
    setlocale(LC_ALL, "C.UTF-8");
    thread_set_role(THREAD_MAIN);
    if (openpty(&master, &slave, NULL, NULL, &ws) != 0)
        die("no pseudo terminal");
    int out = dup(STDOUT_FILENO);
    dup2(slave, STDIN_FILENO);
    dup2(slave, STDOUT_FILENO);
    close(slave);
    pthread_create(&t, NULL, drain, NULL);
    struct app *a = filled();
    if (term_open(&(struct term_opts){.theme = &theme}, &note, &e))
        die("%s", e.text);
    measure_singles(a);
    term_close();
    ioctl(master, TIOCSWINSZ, &ws);
    measure_stream(a, &stream, &seconds);
    fake_free(a);
    fflush(stdout);
    dup2(out, STDOUT_FILENO);
    close(out);
    close(STDIN_FILENO);
    pthread_join(t, NULL);
    print_rows();
    report_stream(&stream, seconds);
    return 0;
}
