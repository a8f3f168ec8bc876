/* A million lines that have come: how long a key takes that goes up, down, to their begin and
 * to their end. The rest of them is on the disk. */
#include "../lib/bench.h"
#include "../lib/flood.h"
#include "../lib/ptyrig.h"
#include "../lib/storebox.h"
#include "../lib/tmpdir.h"

#include <cct/util/buf.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { H = 60, W = 200, LINES = 1000000, KEYS = 200, JUMPS = 5, SOON = 30000, LONG = 120000,
       PAUSE_MS = 8, TOP = 3 };

static const char section[] = "scroll";

static void make_text(struct buf *b)
{
    buf_init(b, 0);
    for (int i = 0; i < LINES; i++)
        buf_addf(b, "<%07d> a line of about a hundred and eleven bytes, as there are so many when an "
                    "agent builds something big\n", i);
}

/* Number of the line on that row, or -1. */
static int line_on(struct ptyrig *r, int row)
{
    char *s = rig_screen(r), *p = s;
    int n = -1;

    for (int y = 0; y < row && p; y++)
        p = (p = strchr(p, '\n')) ? p + 1 : NULL;
    if (p && (p = strchr(p, '<')) && sscanf(p, "<%d>", &n) != 1)
        n = -1;
    free(s);
    return n;
}

/* A key, until that line stands on that row. */
static void press(struct ptyrig *r, const char *key, int row, int line, struct bench_set *t)
{
    char want[16];

    snprintf(want, sizeof(want), "<%07d>", line);
    rig_wait_quiet(r, PAUSE_MS + t->n % 7, PAUSE_MS + t->n % 7);
    int64_t t0 = bench_now_us();
    rig_type(r, key);
    if (!rig_wait_row(r, row, want, true, SOON)) {
        char *s = rig_screen(r);
        fputs(s, stderr);
        die("line %d did not come to row %d", line, row);
    }
    bench_add(t, (double)(bench_now_us() - t0) / 1000);
}

static void measure(const struct buf *text, struct bench_set *up, struct bench_set *down,
                    struct bench_set *jump)
{
    struct flood *f = flood_start(text->p, text->len);
    char *dir = storebox_dir(), *argv[] = {bench_program("cc-tui"), NULL}, last[16];
    static struct bench_set u, d, j;
    struct ptyrig r;
    int bottom = TOP, line;

    u.n = d.n = j.n = 0;
    flood_store(dir, "shell");
    rig_start(&r, H, W, argv, (const char *const *)flood_env(f, dir));
    rig_must_show(&r, "NAV", SOON);
    if (!flood_followed(f, SOON))
        die("the screen does not follow its agent");
    rig_type(&r, "2f"); /* the output alone */
    flood_grow(f, text->len);
    snprintf(last, sizeof(last), "<%07d>", LINES - 1);
    rig_must_show(&r, last, LONG);
    rig_wait_quiet(&r, 500, 3000);
    while (line_on(&r, bottom) != LINES - 1)
        if (++bottom == H)
            die("the last line is on no row");
    int page = bottom - TOP + 1;
    for (int i = 1; i <= KEYS; i++) /* the cursor goes up a page, and the picture with it */
        press(&r, "\033[5~", TOP, LINES - 1 - i * page, &u);
    bench_add(up, bench_quantile(&u, 0.99));
    for (int i = 0; i < JUMPS; i++) {
        press(&r, "gg", TOP, 0, &j);
        press(&r, "G", bottom, LINES - 1, &j);
    }
    bench_add(jump, bench_max(&j));
    press(&r, "gg", TOP, 0, &j);
    for (int i = 1; i <= KEYS; i++) {
        line = i * page;
        press(&r, "\033[6~", bottom, line, &d);
    }
    bench_add(down, bench_quantile(&d, 0.99));
    rig_stop(&r);
    flood_stop(f);
    tmpdir_remove(dir);
    free(dir);
    free(argv[0]);
}

static void row(const char *what, const struct bench_set *v, double bar)
{
    bench_print(section, &(struct bench_row){what, "ms", NULL, v, BENCH_VALUE_MAX, bar, false});
}

int main(void)
{
    static struct bench_set up, down, jump;
    struct buf text;

    make_text(&text);
    for (int i = 0; i < bench_runs(3); i++)
        measure(&text, &up, &down, &jump);
    row("1M lines, a page up: p99", &up, 5);
    row("1M lines, a page down from the begin: p99", &down, 5);
    row("1M lines, to the begin or the end: longest", &jump, 5);
    buf_release(&text);
    return 0;
}
