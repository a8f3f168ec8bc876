/* An agent that prints a million lines at full speed: how fast they get into the store and
 * to the screen, and what that costs on the terminal and in memory. The whole program on a
 * pty, its sandbox on loopback, in turn with tmux (the same bytes through a pane of its own)
 * and with a program that only keeps the lines. */
#include "../lib/bench.h"
#include "../lib/flood.h"
#include "../lib/rawpty.h"
#include "../lib/storebox.h"

#include <cct/util/buf.h>
#include <cct/util/xalloc.h>
#include <poll.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINES = 1000000, H = 60, W = 200, SOON = 20000, LONG = 120000, TAIL = 256 };

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

/* --- the terminal's other end -------------------------------------------------------- */

struct flow {
    char tail[TAIL + 65536];
    size_t have;
    uint64_t bytes;
};

/* Read until the text came by; false after ms. */
static bool flow_until(struct flow *w, int fd, const char *text, int ms)
{
    int64_t end = bench_now_us() + ms * 1000LL;

    while (bench_now_us() < end) {
        struct pollfd p = {.fd = fd, .events = POLLIN};

        if (poll(&p, 1, 100) <= 0)
            continue;
        if (w->have > TAIL) {
            memmove(w->tail, w->tail + w->have - TAIL, TAIL);
            w->have = TAIL;
        }
        ssize_t n = read(fd, w->tail + w->have, 65536);
        if (n <= 0)
            return false;
        w->have += (size_t)n;
        w->bytes += (size_t)n;
        if (memmem(w->tail, w->have, text, strlen(text)))
            return true;
    }
    return false;
}

static double kb_of(pid_t pid, const char *field)
{
    char path[64], line[200];
    double v = 0;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, field, strlen(field)) == 0)
            v = strtod(line + strlen(field) + 1, NULL);
    if (f)
        fclose(f);
    return v;
}

/* --- the three ------------------------------------------------------------------------ */

struct side {
    struct bench_set rate, bytes, frames, kb;
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

    rawpty_start(&p, argv, bench_env(dir, 0), H, W);
    if (flow_until(&w, p.fd, mark, LONG)) {
        bench_add(&s->rate, rate(text, bench_now_us() - t));
        bench_add(&s->bytes, (double)w.bytes);
    }
    if (system(kill_it) != 0)
        fprintf(stderr, "tmux does not end\n");
    rawpty_end(&p, 3000);
    flood_stop(f);
    storebox_remove(dir);
    free(kill_it);
    free(cmd);
    free(sock);
    free(prog);
    free(dir);
}

/* Wait until the store has all; false after ms. */
static bool stored(const char *dir, uint64_t all, int ms)
{
    char *path = xasprintf("%s/cc-tui.db", dir);
    int64_t end = bench_now_us() + ms * 1000LL;
    sqlite3_stmt *q = NULL;
    sqlite3 *db = NULL;
    bool ok = false;

    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(db, "SELECT max(stored) FROM runs", -1, &q, NULL) != SQLITE_OK)
        die("no '%s'", path);
    while (!ok && bench_now_us() < end) {
        ok = sqlite3_step(q) == SQLITE_ROW && (uint64_t)sqlite3_column_int64(q, 0) >= all;
        sqlite3_reset(q);
        if (!ok)
            poll(NULL, 0, 2);
    }
    sqlite3_finalize(q);
    sqlite3_close(db);
    free(path);
    return ok;
}

static double counter(const char *path, const char *name)
{
    char line[100];
    double v = 0;
    FILE *f = fopen(path, "r");

    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, name, strlen(name)) == 0)
            v = strtod(line + strlen(name), NULL);
    if (f)
        fclose(f);
    return v;
}

static void run_ours(const struct buf *text, const char *tool, struct side *s)
{
    struct flood *f = flood_start(text->p, text->len);
    char *dir = storebox_dir(), *frames = xasprintf("%s/frames", dir);
    char **env = flood_env(f, dir);
    const char *argv[] = {bench_program("cc-tui"), "--bench-frames", frames, NULL};
    struct flow w = {.have = 0};
    struct rawpty p;
    int64_t t;

    flood_store(dir, tool);
    rawpty_start(&p, argv, env, H, W);
    if (!flow_until(&w, p.fd, "NAV", SOON) || !flood_followed(f, SOON))
        die("the screen does not follow its agent");
    rawpty_settle(&p, 300, 2000);
    w.bytes = 0;
    t = bench_now_us();
    flood_grow(f, text->len);
    if (flow_until(&w, p.fd, mark, LONG) && stored(dir, text->len, LONG)) {
        int64_t us = bench_now_us() - t;
        bench_add(&s->rate, rate(text, us));
        bench_add(&s->bytes, (double)w.bytes);
        bench_add(&s->kb, kb_of(p.pid, "VmRSS"));
        rawpty_send(&p, "q");
        rawpty_end(&p, 5000);
        bench_add(&s->frames, counter(frames, "frames ") / ((double)us / 1e6));
    } else {
        rawpty_end(&p, 0);
    }
    flood_stop(f);
    storebox_remove(dir);
    free(frames);
    free(dir);
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
        run_ours(&text, "shell", &ours);
    }
    report(&sink, &tmux, &ours, (double)text.len);
    buf_release(&text);
    return 0;
}
