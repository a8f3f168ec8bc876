/* See flood_run.h. */
#include "flood_run.h"

#include "bench.h"
#include "flood.h"
#include "rawpty.h"
#include "storebox.h"
#include "tmpdir.h"

#include <cct/util/pidstat.h>
#include <cct/util/xalloc.h>
#include <poll.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SOON = 20000, LONG = 120000, TAIL = 256 };

bool flow_until(struct flow *w, int fd, const char *text, int ms)
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

/* Seconds of CPU time of all threads so far. */
static double cpu_of(pid_t pid)
{
    struct pidstat s;

    return pidstat_read(pid, &s) ? (double)s.ticks / (double)sysconf(_SC_CLK_TCK) : 0;
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

struct sitting {
    struct flood *f;
    char *dir, *frames;
    struct flow w;
    struct rawpty p;
};

/* The screen with its agent, at rest. */
static void begin(struct sitting *x, const char *text, size_t len, const char *tool)
{
    *x = (struct sitting){.f = flood_start(text, len), .dir = storebox_dir()};
    x->frames = xasprintf("%s/frames", x->dir);
    const char *argv[] = {bench_program("cc-tui"), "--bench-frames", x->frames, NULL};

    flood_store(x->dir, tool);
    rawpty_start(&x->p, argv, flood_env(x->f, x->dir), FLOOD_H, FLOOD_W);
    if (!flow_until(&x->w, x->p.fd, "NAV", SOON) || !flood_followed(x->f, SOON))
        die("the screen does not follow its agent");
    rawpty_settle(&x->p, 300, 2000);
    x->w.bytes = 0;
}

/* All frames that it drew. */
static double end(struct sitting *x)
{
    rawpty_send(&x->p, "q");
    rawpty_end(&x->p, 5000);
    double n = counter(x->frames, "frames ");
    flood_stop(x->f);
    tmpdir_remove(x->dir);
    free(x->frames);
    free(x->dir);
    return n;
}

bool flood_run(struct flood_run *r, const char *text, size_t len, const char *tool,
               const char *mark)
{
    struct sitting x;

    begin(&x, text, len, tool);
    double without = end(&x); /* they are told at the end alone */
    begin(&x, text, len, tool);
    double cpu = cpu_of(x.p.pid);
    int64_t t = bench_now_us();
    flood_grow(x.f, len);
    bool ok = flow_until(&x.w, x.p.fd, mark, LONG) && stored(x.dir, len, LONG);
    double us = (double)(bench_now_us() - t);
    *r = (struct flood_run){(double)len / us, (double)x.w.bytes, 0, kb_of(x.p.pid, "VmRSS"),
                            (double)len / 1e6 / (cpu_of(x.p.pid) - cpu)};
    r->frames_s = (end(&x) - without) / (us / 1e6);
    return ok;
}
