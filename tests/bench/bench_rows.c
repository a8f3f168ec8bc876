/* Rows of the list: what it costs when one of 100 and one of 10,000 sandboxes changes, when all
 * of them do, when keys go through them, and when all of the screen is sent anew. CPU time of
 * pictures, in process, to a terminal that takes all; floors are ncurses alone. Instructions of one
 * change are counted by callgrind where it is installed: "count N" is for that. */
#include "../lib/bench.h"
#include "../lib/fakeapp.h"
#include "../lib/rawpty.h"

#include <cct/ui/ui.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { H = 60, W = 200, FEW = 100, MANY = 10000, ROUNDS = 200, PAINTS = 20, ALLS = 5, COUNTED = 20,
       FLOOR_MS = 60000 };

static const char section[] = "rows";
static int master;
static struct theme theme;

/* Of this thread: the one that reads the terminal counts for nothing. */
static double cpu_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static void *drain(void *arg)
{
    char b[65536];
    (void)arg;
    while (read(master, b, sizeof(b)) > 0)
        ;
    return NULL;
}

/* --- the screen ------------------------------------------------------------------------- */

struct bed {
    struct app *a;
    struct ui ui;
    int rows, round;
    struct bench_set one, all, paint, key;
};

static void fill_row(struct sandbox *r, int i, enum sb_agent agent)
{
    int64_t minute = clock_wall_ms() / 60000 * 60000;
    r->id = (uint64_t)i + 1;
    r->sandbox_id = xasprintf("i%020d", i);
    r->name = xasprintf("box-%05d", i);
    r->tool = xstrdup("claude");
    r->project = xstrdup("default");
    r->last_line = xasprintf("what the agent said last, the %dth", (int)agent);
    r->state = SB_RUNNING;
    r->agent = agent;
    r->created_at = r->started_at = minute - 600000;
    r->end_at = minute + 3600000 + 59000;
    r->cpu_count = 2;
    r->memory_mb = 1024;
}

static struct ev_sandboxes *some_rows(int from, int n, enum sb_agent agent)
{
    struct ev_sandboxes *ev = ev_new(EV_SANDBOXES);
    ev->v = xcalloc((size_t)n, sizeof(*ev->v));
    for (int i = 0; i < n; i++) {
        struct sandbox row = {.id = 0};
        fill_row(&row, from + i, agent);
        sandbox_snapshot(&ev->v[ev->n++], &row); /* as the jobs send them */
        sandbox_release(&row);
    }
    return ev;
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

/* What is measured: callgrind knows it by its name. */
static __attribute__((noinline)) void change_and_show(struct bed *b, struct ev_sandboxes *ev)
{
    ui_observe(&b->ui, &ev->m);
    model_apply(b->a->model, &ev->m);
    picture(&b->ui);
}

static void open_bed(struct bed *b, int rows)
{
    static const struct ui_opts o = {.theme = &theme, .time_stamps = true, .wrap = true};
    struct ev_link *l = ev_new(EV_LINK);
    struct ev_sandboxes *ev = some_rows(0, rows, AG_IDLE);
    memset(b, 0, sizeof(*b));
    b->rows = rows;
    b->a = fake_new();
    l->state = LINK_OK;
    l->account = xstrdup("E2B key ****4f2a (environment)");
    model_apply(b->a->model, &l->m);
    model_apply(b->a->model, &ev->m);
    msg_free(&l->m);
    msg_free(&ev->m);
    ui_init(&b->ui, b->a, &o);
    ui_resize(&b->ui, H, W);
    picture(&b->ui);
}

/* --- what is measured ----------------------------------------------------------------------- */

/* Rows of the first page in turn, or all at once; CPU time of one such change. */
static double changed(struct bed *b, int n, int rounds)
{
    double us = 0;
    for (int i = 0; i < rounds; i++, b->round++) {
        bool all = n > 1;
        enum sb_agent agent = (all ? b->round : b->round / 10) % 2 ? AG_IDLE : AG_WORKING;
        struct ev_sandboxes *ev = some_rows(all ? 0 : b->round % 10, n, agent);
        double t = cpu_us();
        change_and_show(b, ev);
        us += cpu_us() - t;
        msg_free(&ev->m);
    }
    return us / rounds;
}

static double repaint(struct bed *b)
{
    double t = cpu_us();
    for (int i = 0; i < PAINTS; i++) {
        term_redraw();
        picture(&b->ui);
    }
    return (cpu_us() - t) / PAINTS;
}

/* The slowest of a hundred keys but one. */
static double keys(struct bed *b)
{
    static const key_code walk[] = {'j', 'j', 'j', K_PGDN, 'k', 'G', K_PGUP, 'k', 'g', 'j'};
    struct bench_set times = {.n = 0};
    for (int i = 0; i < 100; i++) {
        double t = cpu_us();
        ui_key(&b->ui, walk[i % 10], NULL, 0);
        picture(&b->ui);
        bench_add(&times, cpu_us() - t);
    }
    double most = 0, next = 0;
    for (int i = 0; i < times.n; i++) {
        next = times.v[i] > most ? most : times.v[i] > next ? times.v[i] : next;
        most = times.v[i] > most ? times.v[i] : most;
    }
    ui_key(&b->ui, 'g', NULL, 0);
    return next;
}

/* Each letter of the filter looks at all rows. */
static double filter_letter(struct bed *b)
{
    static const char word[] = "/box-0012";
    double most = 0;
    for (const char *p = word; *p; p++) {
        double t = cpu_us();
        ui_key(&b->ui, (key_code)*p, NULL, 0);
        picture(&b->ui);
        t = cpu_us() - t;
        most = t > most ? t : most;
    }
    ui_key(&b->ui, K_ESC, NULL, 0);
    picture(&b->ui);
    return most;
}

static double floor_of(const char *what, int n, int rounds)
{
    static const char *const end[] = {"END", NULL};
    char *rows = xasprintf("%d", n), *times = xasprintf("%d", rounds);
    const char *argv[] = {bench_program("tests/bench/cursesfloor"), what, rows, times, NULL};
    static char term[] = "TERM=xterm-256color", locale[] = "LC_ALL=C.UTF-8";
    char *env[] = {term, locale, NULL};
    struct rawpty p;
    rawpty_start(&p, argv, env, H, W);
    if (!rawpty_until(&p, end, FLOOR_MS))
        die("the floor '%s' did not come to its end", what);
    const char *at = memmem(p.seen.p, p.seen.len, "FLOOR ", 6);
    double us = at ? strtod(at + 6, NULL) : 0;
    rawpty_end(&p, 1000);
    free(rows);
    free(times);
    return us;
}

/* --- instructions ---------------------------------------------------------------------------- */

static double summary_of(const char *path)
{
    char line[256];
    double n = 0;
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof(line), f))
        if (str_starts(line, "summary: "))
            n = strtod(line + 9, NULL);
    if (f)
        fclose(f);
    return n / COUNTED;
}

/* Of one change, with so many rows; 0 where it cannot be counted. */
static double instructions(const char *self, int rows)
{
    char dir[] = "/tmp/cct-count-XXXXXX";
    extern char **environ;
    posix_spawn_file_actions_t quiet;
    double n = 0;
    pid_t pid;
    if (!mkdtemp(dir))
        return 0;
    char *to = xasprintf("%s/out", dir), *out = xasprintf("--callgrind-out-file=%s", to);
    char *many = xasprintf("%d", rows);
    const char *argv[] = {"valgrind", "-q", "--tool=callgrind", "--collect-atstart=no",
                          "--toggle-collect=change_and_show*", out, self, "count", many, NULL};
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0);
    if (posix_spawnp(&pid, argv[0], &quiet, NULL, (char **)argv, environ) == 0) {
        int status;
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
        n = status == 0 ? summary_of(to) : 0;
    }
    posix_spawn_file_actions_destroy(&quiet);
    unlink(to);
    rmdir(dir);
    free(to);
    free(out);
    free(many);
    return n;
}

static void count(int rows)
{
    struct bed b;
    open_bed(&b, rows);
    changed(&b, 1, COUNTED);
}

/* --- the section ------------------------------------------------------------------------------- */

static void open_terminal(void)
{
    struct winsize ws = {.ws_row = H, .ws_col = W};
    struct err e = {0};
    const char *note;
    int slave;
    pthread_t t;
    theme_builtin(&theme);
    setenv("TERM", "xterm-256color", 1);
    setlocale(LC_ALL, "C.UTF-8");
    thread_set_role(THREAD_MAIN);
    if (openpty(&master, &slave, NULL, NULL, &ws) != 0)
        die("no pseudo terminal");
    fcntl(master, F_SETFD, FD_CLOEXEC);
    dup2(slave, STDIN_FILENO);
    dup2(slave, STDOUT_FILENO);
    close(slave);
    pthread_create(&t, NULL, drain, NULL);
    if (term_open(&(struct term_opts){.theme = &theme}, &note, &e))
        die("%s", e.text);
}

static void say(const char *what, const char *unit, const struct bench_set *floor,
                const struct bench_set *ours, double bar, bool must)
{
    bench_print(section, &(struct bench_row){what, unit, floor, ours,
                                             floor ? BENCH_RATIO_MAX : BENCH_INFO, bar, must});
}

static void say_instructions(const char *self)
{
    struct bench_set few = {.v = {instructions(self, FEW)}, .n = 1};
    struct bench_set many = {.v = {instructions(self, MANY)}, .n = 1};
    const char *what = "one of 10,000 changes, beside one of 100: instructions";
    if (few.v[0] <= 0 || many.v[0] <= 0)
        bench_skip(section, what, "valgrind does not count them here");
    else
        say(what, "", &few, &many, 1.1, true);
}

int main(int argc, char **argv)
{
    struct bench_set one = {.n = 0}, all = {.n = 0}, paint = {.n = 0}, letter = {.n = 0};
    struct bed few, many;
    int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 10), runs = bench_runs(7);

    open_terminal();
    if (argc > 2) {
        count(atoi(argv[2]));
        term_close();
        _exit(0);
    }
    open_bed(&few, FEW);
    open_bed(&many, MANY);
    for (int i = 0; i < runs; i++) {
        bench_add(&few.one, changed(&few, 1, ROUNDS));
        bench_add(&many.one, changed(&many, 1, ROUNDS));
        bench_add(&one, floor_of("one", MANY, ROUNDS));
        bench_add(&many.all, changed(&many, MANY, ALLS));
        bench_add(&all, floor_of("all", MANY, ALLS));
        bench_add(&few.key, keys(&few));
        bench_add(&many.key, keys(&many));
        bench_add(&letter, filter_letter(&many));
        bench_add(&few.paint, repaint(&few));
        bench_add(&paint, floor_of("paint", FEW, PAINTS));
    }
    term_close();
    dup2(out, STDOUT_FILENO);
    say("one of 10,000 changes, beside one of 100", "us", &few.one, &many.one, 2, true);
    say_instructions(argv[0]);
    say("one of 10,000 changes, beside ncurses alone", "us", NULL, &many.one, 0, false);
    say("all of 10,000 change, beside ncurses alone", "us", &all, &many.all, 1.5, false);
    say("a key among 10,000, beside 100: p99", "us", &few.key, &many.key, 2, true);
    say("a letter of the filter among 10,000: most", "us", NULL, &letter, 0, false);
    say("all of 200x60 sent anew, beside ncurses alone", "us", &paint, &few.paint, 1.3, false);
    say("... at most twice its time", "us", &paint, &few.paint, 2, true);
    bench_value(section, "one of 10,000 changes: ncurses alone", "us", bench_median(&one),
                BENCH_INFO, 0, false);
    fflush(stdout);
    _exit(0);
}
