/* An agent that prints a million lines at full speed: how fast they get into the store and
 * to the screen, and what that costs on the terminal and in memory. The whole program on a
 * pty, its sandbox on loopback, in turn with tmux (the same bytes through a pane of its own)
 * and with a program that only keeps the lines. */
#include "../lib/bench.h"
#include "../lib/flood.h"
#include "../lib/flood_run.h"
#include "../lib/rawpty.h"
#include "../lib/storebox.h"
#include "../lib/tmpdir.h"

#include <cct/util/buf.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINES = 1000000, LONG = 120000 };

static const char section[] = "flood";
static const char tmux_path[] = "/usr/bin/tmux";
static const char mark[] = "Th3-l4st|0f[th3m]4ll";

static void make_text(struct buf *b)
{
    uint32_t r = 12345;

    buf_init(b, 0);
    for (int i = 0; i < LINES; i++) {
        size_t at = b->len;

        buf_addf(b, "%07d ", i);
        while (b->len - at < 110) {
            r = r * 1664525 + 1013904223;
            buf_addc(b, (r >> 24) % 6 == 0 ? ' ' : (char)('a' + (r >> 16) % 26));
        }
        buf_addc(b, '\n');
    }
    buf_truncate(b, b->len - 110);
    buf_adds(b, mark);
    buf_addc(b, '\n');
}

/* --- the three ------------------------------------------------------------------------ */

struct side {
    struct bench_set rate, bytes, frames, kb, cpu;
};

static double rate(const struct buf *text, int64_t us)
{
    return (double)text->len / (double)us;
}

static void run_sink(const struct buf *text, struct side *s)
{
    struct flood *f = flood_start(text->p, text->len);
    char *prog = bench_program("tests/bench/linesink");
    char *line = xasprintf("%s %d", prog, flood_port(f));
    size_t len = 0, lines = 0;
    long kb = 0;
    int64_t t = bench_now_us();
    FILE *p = popen(line, "r");

    if (!p || fscanf(p, "%zu %zu %ld", &len, &lines, &kb) != 3 || len != text->len)
        die("'%s' failed", line);
    bench_add(&s->rate, rate(text, bench_now_us() - t));
    bench_add(&s->kb, (double)kb);
    pclose(p);
    flood_stop(f);
    free(line);
    free(prog);
}

static void run_tmux(const struct buf *text, struct side *s)
{
    struct flood *f = flood_start(text->p, text->len);
    char *dir = storebox_dir(), *prog = bench_program("tests/bench/linesink");
    char *sock = xasprintf("%s/tmux", dir), *cmd = xasprintf("exec %s %d -", prog, flood_port(f));
    char *kill_it = xasprintf("tmux -S %s kill-server", sock);
    const char *argv[] = {tmux_path, "-f", "/dev/null", "-S", sock, "new-session", cmd, NULL};
    struct flow w = {.have = 0};
    struct rawpty p;
    int64_t t = bench_now_us();

    rawpty_start(&p, argv, bench_env(dir, 0), FLOOD_H, FLOOD_W);
    if (flow_until(&w, p.fd, mark, LONG)) {
        bench_add(&s->rate, rate(text, bench_now_us() - t));
        bench_add(&s->bytes, (double)w.bytes);
    }
    if (system(kill_it) != 0)
        fprintf(stderr, "tmux does not end\n");
    rawpty_end(&p, 3000);
    flood_stop(f);
    tmpdir_remove(dir);
    free(kill_it);
    free(cmd);
    free(sock);
    free(prog);
    free(dir);
}

static void run_ours(const struct buf *text, struct side *s)
{
    struct flood_run r;

    if (!flood_run(&r, text->p, text->len, "shell", mark))
        return;
    bench_add(&s->rate, r.mb_s);
    bench_add(&s->bytes, r.bytes);
    bench_add(&s->kb, r.kb);
    bench_add(&s->frames, r.frames_s);
    bench_add(&s->cpu, r.cpu_mb_s);
}

static void row(const char *what, const char *unit, const struct bench_set *floor,
                const struct bench_set *ours, enum bench_kind kind, double bar, bool must)
{
    bench_print(section, &(struct bench_row){what, unit, floor, ours, kind, bar, must});
}

static bool have_tmux(void)
{
    return access(tmux_path, X_OK) == 0;
}

static void report(const struct side *sink, const struct side *tmux, const struct side *ours,
                   double size)
{
    struct bench_set text = {.v = {size}, .n = 1}, text_kb = {.v = {size / 1024}, .n = 1};

    if (have_tmux()) {
        row("plain lines, stored and shown (floor: tmux)", "MB/s", &tmux->rate, &ours->rate,
            BENCH_RATIO_MIN, 4, true);
        row("the same, goal", "MB/s", &tmux->rate, &ours->rate, BENCH_RATIO_MIN, 10, false);
    } else {
        bench_skip(section, "plain lines against tmux", "not installed");
    }
    row("the same (floor: lines kept)", "MB/s", &sink->rate, &ours->rate, BENCH_RATIO_MIN, 0.25,
        false);
    row("the same, of CPU time of all threads", "MB/s", NULL, &ours->cpu, BENCH_INFO, 0, false);
    /* a tmux that is short of time sends less than it was given */
    row("bytes to the terminal (floor: the text)", "bytes", &text, &ours->bytes, BENCH_RATIO_MAX,
        0.05, true);
    row("the same, goal", "bytes", &text, &ours->bytes, BENCH_RATIO_MAX, 0.02, false);
    if (have_tmux())
        row("the same (floor: tmux)", "bytes", &tmux->bytes, &ours->bytes, BENCH_RATIO_MAX, 0.02,
            false);
    row("frames", "1/s", NULL, &ours->frames, BENCH_VALUE_MAX, 30, true);
    row("resident, 1M lines (floor: the text)", "kB", &text_kb, &ours->kb, BENCH_RATIO_MAX, 1.5,
        true);
    row("the same, goal", "kB", &text_kb, &ours->kb, BENCH_RATIO_MAX, 0.5, false);
    row("resident: lines kept alone", "kB", NULL, &sink->kb, BENCH_INFO, 0, false);
}

int main(void)
{
    static struct side sink, tmux, ours;
    struct buf text;

    make_text(&text);
    for (int i = 0; i < bench_runs(3); i++) {
        run_sink(&text, &sink);
        if (have_tmux())
            run_tmux(&text, &tmux);
        run_ours(&text, &ours);
    }
    report(&sink, &tmux, &ours, (double)text.len);
    buf_release(&text);
    return 0;
}
