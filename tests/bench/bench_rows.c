/* Rows of the list: what one row's change and a whole repaint cost, with 100 and with 10,000
 * sandboxes; CPU time of one picture, in process, to a terminal that takes all. */
#include "../lib/bench.h"
#include "../lib/fakeapp.h"

#include <cct/ui/ui.h>
#include <cct/util/clock.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <locale.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { H = 60, W = 200, FEW = 100, MANY = 10000, ROUNDS = 200, RUNS = 5 };

static const char section[] = "rows";
static int master;
static struct theme theme;

/* Of this thread: the one that reads the terminal counts for nothing. */
static int64_t cpu_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return ts.tv_sec * INT64_C(1000000) + ts.tv_nsec / 1000;
}

static void *drain(void *arg)
{
    char b[65536];
    (void)arg;
    while (read(master, b, sizeof(b)) > 0)
        ;
    return NULL;
}

static void fill_row(struct sandbox *r, int i, enum sb_agent agent)
{
    int64_t minute = clock_wall_ms() / 60000 * 60000;
    r->id = (uint64_t)i + 1;
    r->sandbox_id = xasprintf("i%020d", i);
    r->name = xasprintf("box-%05d", i);
    r->tool = xstrdup("claude");
    r->project = xstrdup("default");
    r->state = SB_RUNNING;
    r->agent = agent;
    r->created_at = r->started_at = minute - 600000;
    r->end_at = minute + 3600000 + 59000;
    r->cpu_count = 2;
    r->memory_mb = 1024;
}

static void put_rows(struct ui *ui, struct app *a, int from, int n, enum sb_agent agent)
{
    struct ev_sandboxes *ev = ev_new(EV_SANDBOXES);
    ev->v = xcalloc((size_t)n, sizeof(*ev->v));
    for (int i = 0; i < n; i++)
        fill_row(&ev->v[ev->n++], from + i, agent);
    if (ui)
        ui_observe(ui, &ev->m);
    model_apply(a->model, &ev->m);
    msg_free(&ev->m);
}

static void picture(struct ui *ui)
{
    ui_update(ui);
    ui_notes(ui, clock_mono_ms());
    ui_draw(ui, ui->now);
    term_flush(&ui->canvas);
    while (term_backed_up())
        poll(NULL, 0, 1);
}

struct bed {
    struct app *a;
    struct ui ui;
};

static void open_bed(struct bed *b, int rows)
{
    static const struct ui_opts o = {.theme = &theme, .time_stamps = true, .wrap = true};
    struct ev_link *l = ev_new(EV_LINK);
    b->a = fake_new();
    l->state = LINK_OK;
    l->account = xstrdup("E2B key ****4f2a (environment)");
    model_apply(b->a->model, &l->m);
    msg_free(&l->m);
    put_rows(NULL, b->a, 0, rows, AG_IDLE);
    ui_init(&b->ui, b->a, &o);
    ui_resize(&b->ui, H, W);
    picture(&b->ui);
}

/* us of CPU for one row's change and its picture. */
static double one_row(struct bed *b)
{
    int64_t t = cpu_us();
    for (int i = 0; i < ROUNDS; i++) {
        put_rows(&b->ui, b->a, i % 10, 1, i / 10 % 2 ? AG_IDLE : AG_WORKING);
        picture(&b->ui);
    }
    return (double)(cpu_us() - t) / ROUNDS;
}

static double repaint(struct bed *b)
{
    int64_t t = cpu_us();
    for (int i = 0; i < 20; i++) {
        term_redraw();
        picture(&b->ui);
    }
    return (double)(cpu_us() - t) / 20;
}

int main(void)
{
    struct winsize ws = {.ws_row = H, .ws_col = W};
    struct bench_set few = {.n = 0}, many = {.n = 0}, paint = {.n = 0};
    struct bed small, big;
    struct err e = {0};
    const char *note;
    int slave, out = dup(STDOUT_FILENO);
    pthread_t t;

    theme_builtin(&theme);
    setenv("TERM", "xterm-256color", 1);
    setlocale(LC_ALL, "C.UTF-8");
    thread_set_role(THREAD_MAIN);
    if (openpty(&master, &slave, NULL, NULL, &ws) != 0)
        die("no pseudo terminal");
    dup2(slave, STDIN_FILENO);
    dup2(slave, STDOUT_FILENO);
    close(slave);
    pthread_create(&t, NULL, drain, NULL);
    if (term_open(&(struct term_opts){.theme = &theme}, &note, &e))
        die("%s", e.text);
    open_bed(&small, FEW);
    open_bed(&big, MANY);
    for (int i = 0; i < RUNS; i++) {
        bench_add(&few, one_row(&small));
        bench_add(&many, one_row(&big));
        bench_add(&paint, repaint(&small));
    }
    term_close();
    dup2(out, STDOUT_FILENO);
    bench_print(section, &(struct bench_row){"one row changes: 10,000 rows beside 100", "us", &few,
                                             &many, BENCH_RATIO_MAX, 2, false});
    bench_print(section, &(struct bench_row){"whole repaint, 200x60", "us", NULL, &paint,
                                             BENCH_INFO, 0, false});
    fflush(stdout);
    _exit(0);
}
