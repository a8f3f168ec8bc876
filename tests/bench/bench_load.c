/* Keys while an agent floods: the time from a key to its effect on the terminal. A letter of a
 * message in the whole program, beside an echo in a pane of tmux under the same flood; and
 * idle, beside three curses panes that only show the key. */
#include "../lib/bench.h"
#include "../lib/flood.h"
#include "../lib/ptyrig.h"
#include "../lib/storebox.h"
#include "../lib/tmpdir.h"

#include <cct/util/buf.h>
#include <cct/util/xalloc.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { H = 40, W = 120, LINES = 100000, KEYS = 120, SOON = 30000, PAUSE_MS = 8 };
#define ENDLESS ((uint64_t)1 << 40)

static const char section[] = "load";
static const char tmux_path[] = "/usr/bin/tmux";

static void make_text(struct buf *b)
{
    buf_init(b, 0);
    for (int i = 0; i < LINES; i++)
        buf_addf(b, "%06d an agent that prints far more than anybody can read, and goes on and on "
                    "with it, line after line\n", i);
}

/* --- keys ---------------------------------------------------------------------------- */

/* Two keys in turn, each with what it makes of the row. */
static void press(struct ptyrig *r, const char *const keys[2], const char *const effects[2],
                  const bool shown[2], int row, struct bench_set *t)
{
    t->n = 0;
    for (int n = 0; n < KEYS; n++) {
        int i = n % 2;

        rig_wait_quiet(r, PAUSE_MS + n % 7, PAUSE_MS + n % 7); /* at no beat of its own */
        int64_t t0 = bench_now_us();
        rig_type(r, keys[i]);
        if (!rig_wait_row(r, row, effects[i], shown[i], SOON))
            die("a key had no effect: '%s'", effects[i]);
        bench_add(t, (double)(bench_now_us() - t0) / 1000);
    }
}

/* A letter and its deletion, behind what stands on the row. */
static void letters(struct ptyrig *r, struct bench_set *t)
{
    static const char *const keys[] = {"q", "\177"}, *const effects[] = {"latency-q", "latency-q"};
    static const bool shown[] = {true, false};

    press(r, keys, effects, shown, rig_must_row(r, "latency-"), t);
}

/* --- the programs ---------------------------------------------------------------------- */

static void curses_alone(const char *dir, struct bench_set *median)
{
    static const char *const keys[] = {"x", "y"}, *const effects[] = {"key x", "key y"};
    static const bool shown[] = {true, true};
    char *argv[] = {bench_program("tests/bench/ncmin"), NULL};
    static struct bench_set t;
    struct ptyrig r;

    rig_start(&r, H, W, argv, (const char *const *)bench_env(dir, 0));
    rig_must_show(&r, "DRAWN", SOON);
    press(&r, keys, effects, shown, H - 3, &t);
    bench_add(median, bench_quantile(&t, 0.5));
    rig_type(&r, "q");
    rig_wait_exit(&r, SOON);
    rig_stop(&r);
    free(argv[0]);
}

static void under_tmux(const struct buf *text, struct bench_set *p99)
{
    struct flood *f = flood_start(text->p, text->len);
    char *dir = storebox_dir(), *prog = bench_program("tests/bench/linesink");
    char *kill_it = xasprintf("tmux -S %s/tmux kill-server", dir);
    char *cmd = xasprintf("exec tmux -f /dev/null -S %s/tmux new-session cat \\; split-window -b"
                          " 'exec %s %d -' \\; select-pane -D", dir, prog, flood_port(f));
    char sh[] = "/bin/sh", option[] = "-c", *argv[] = {sh, option, cmd, NULL};
    static struct bench_set t;
    struct ptyrig r;

    rig_start(&r, H, W, argv, (const char *const *)bench_env(dir, 0));
    rig_wait_quiet(&r, 500, 3000);
    rig_type(&r, "latency-");
    rig_must_show(&r, "latency-", SOON);
    letters(&r, &t);
    bench_add(p99, bench_quantile(&t, 0.99));
    if (system(kill_it) != 0)
        fprintf(stderr, "tmux does not end\n");
    rig_wait_exit(&r, SOON);
    rig_stop(&r);
    flood_stop(f);
    tmpdir_remove(dir);
    free(kill_it);
    free(cmd);
    free(prog);
    free(dir);
}

static void ours(const struct buf *text, struct bench_set *idle, struct bench_set *p99,
                 struct bench_set *rate)
{
    struct flood *f = flood_start(text->p, text->len);
    char *dir = storebox_dir(), *argv[] = {bench_program("cc-tui"), NULL};
    static struct bench_set t;
    struct ptyrig r;

    flood_store(dir, "shell");
    rig_start(&r, H, W, argv, (const char *const *)flood_env(f, dir));
    rig_must_show(&r, "NAV", SOON);
    if (!flood_followed(f, SOON))
        die("the screen does not follow its agent");
    rig_type(&r, "i");
    rig_must_show(&r, "flood> ", SOON);
    rig_type(&r, "latency-");
    rig_must_show(&r, "> latency-", SOON);
    letters(&r, &t);
    bench_add(idle, bench_quantile(&t, 0.5));
    flood_grow(f, ENDLESS);
    rig_wait_quiet(&r, 500, 500); /* it is under way */
    int64_t t0 = bench_now_us();
    uint64_t sent = flood_sent(f);
    letters(&r, &t);
    bench_add(p99, bench_quantile(&t, 0.99));
    bench_add(rate, (double)(flood_sent(f) - sent) / (double)(bench_now_us() - t0));
    rig_stop(&r);
    flood_stop(f);
    tmpdir_remove(dir);
    free(dir);
    free(argv[0]);
}

static void row(const char *what, const char *unit, const struct bench_set *floor,
                const struct bench_set *mine, enum bench_kind kind, double bar, bool must)
{
    bench_print(section, &(struct bench_row){what, unit, floor, mine, kind, bar, must});
}

int main(void)
{
    static struct bench_set nc, tmux, idle, p99, rate;
    bool have_tmux = access(tmux_path, X_OK) == 0;
    char *dir = storebox_dir();
    struct buf text;

    make_text(&text);
    for (int i = 0; i < bench_runs(3); i++) {
        curses_alone(dir, &nc);
        if (have_tmux)
            under_tmux(&text, &tmux);
        ours(&text, &idle, &p99, &rate);
    }
    row("a letter, idle: median (floor: curses alone)", "ms", &nc, &idle, BENCH_RATIO_MAX, 1.3,
        false);
    row("a letter while an agent floods: p99", "ms", NULL, &p99, BENCH_VALUE_MAX, 33, true);
    row("the same, goal", "ms", NULL, &p99, BENCH_VALUE_MAX, 16, false);
    if (have_tmux)
        row("the same (floor: tmux)", "ms", &tmux, &p99, BENCH_RATIO_MAX, 1.5, false);
    else
        bench_skip(section, "the same in tmux", "not installed");
    row("what came meanwhile", "MB/s", NULL, &rate, BENCH_INFO, 0, false);
    buf_release(&text);
    tmpdir_remove(dir);
    free(dir);
    return 0;
}
