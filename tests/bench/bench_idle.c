/* Idle: 10 s of a settled screen with 3 sandboxes that run, cost money and are never as busy as
 * they were. Bytes, wake-ups and CPU time of each thread; the polls of the network thread are
 * counted by the service, and its news of their load do not count as wake-ups of the screen. */
#include "../lib/bench.h"
#include "../lib/fakeapi.h"
#include "../lib/rawpty.h"
#include "../lib/storebox.h"
#include "../lib/tmpdir.h"

#include <cct/util/clock.h>
#include <cct/util/xalloc.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 3, SECONDS = 10, MAX_THREADS = 16, MINUTE = 60000 };

static const char section[] = "idle";

struct thread_use {
    int tid;
    char name[32];
    long long switches, cpu_ns;
};

static long long number_after(const char *path, const char *key)
{
    char line[256];
    long long v = 0;
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, key, strlen(key)) == 0)
            v = strtoll(line + strlen(key), NULL, 10);
    if (f)
        fclose(f);
    return v;
}

static void look_at(struct thread_use *t, const char *task)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/status", task);
    t->switches = number_after(path, "voluntary_ctxt_switches:") +
                  number_after(path, "nonvoluntary_ctxt_switches:");
    snprintf(path, sizeof(path), "%s/schedstat", task);
    t->cpu_ns = number_after(path, "");
    snprintf(path, sizeof(path), "%s/comm", task);
    FILE *f = fopen(path, "r");
    if (!f || !fgets(t->name, sizeof(t->name), f))
        t->name[0] = '\0';
    t->name[strcspn(t->name, "\n")] = '\0';
    if (f)
        fclose(f);
}

static int look(struct thread_use *v, pid_t pid)
{
    char path[64], task[384];
    int n = 0;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d)) && n < MAX_THREADS;) {
        if (e->d_name[0] == '.')
            continue;
        v[n] = (struct thread_use){.tid = (int)strtol(e->d_name, NULL, 10)};
        snprintf(task, sizeof(task), "%s/%s", path, e->d_name);
        look_at(&v[n++], task);
    }
    if (d)
        closedir(d);
    return n;
}

static void report(const struct thread_use *a, int na, const struct thread_use *b, int nb,
                   pid_t pid, int told)
{
    for (int i = 0; i < nb; i++) {
        struct thread_use was = {0};
        for (int k = 0; k < na; k++)
            if (a[k].tid == b[i].tid)
                was = a[k];
        bool ui = b[i].tid == pid;
        char *what = xasprintf("wake-ups of %s", ui ? "the screen's thread" : b[i].name);
        long long wakes = b[i].switches - was.switches - (ui ? told : 0);
        bench_value(section, what, "1/s", (double)(wakes > 0 ? wakes : 0) / SECONDS,
                    ui ? BENCH_VALUE_MAX : BENCH_INFO, 0.2, ui);
        free(what);
        what = xasprintf("CPU of %s", ui ? "the screen's thread" : b[i].name);
        bench_value(section, what, "ms/s", (double)(b[i].cpu_ns - was.cpu_ns) / 1e6 / SECONDS,
                    ui ? BENCH_VALUE_MAX : BENCH_INFO, 0.2, ui);
        free(what);
    }
}

int main(void)
{
    /* Time left changes on the minute: the window keeps clear of it. */
    int64_t end_at = (clock_wall_ms() / MINUTE + 60) * MINUTE;
    struct fakeapi *api = fakeapi_start(&(struct fakeapi_opts){.n = ROWS, .end_at_ms = end_at});
    char *dir = storebox_dir();
    const char *argv[] = {bench_program("cc-tui"), NULL};
    static const char *const up[] = {"NAV", " ok", NULL};
    struct thread_use before[MAX_THREADS], after[MAX_THREADS];
    struct rawpty p;
    rawpty_start(&p, argv, bench_env(dir, fakeapi_port(api)), 60, 200);
    if (!rawpty_until(&p, up, 15000)) {
        rawpty_end(&p, 1000);
        die("the screen did not show the service's list within 15 s");
    }
    rawpty_settle(&p, 7000, 20000); /* the first load is there, what was said has gone */
    int64_t in_minute = clock_wall_ms() % MINUTE;
    if (in_minute + SECONDS * 1000 + 1000 > MINUTE)
        rawpty_watch(&p, (int)(MINUTE - in_minute) + 1000);
    int lists = fakeapi_lists(api), loads = fakeapi_loads(api), n = look(before, p.pid);
    size_t bytes = rawpty_watch(&p, SECONDS * 1000);
    int m = look(after, p.pid);
    lists = fakeapi_lists(api) - lists;
    loads = fakeapi_loads(api) - loads;
    bench_value(section, "bytes in 10 s", "bytes", (double)bytes, BENCH_VALUE_MAX, 0, true);
    report(before, n, after, m, p.pid, loads);
    bench_value(section, "loads asked for", "1/s", (double)loads / SECONDS, BENCH_VALUE_MAX, 0.2,
                false);
    bench_value(section, "lists asked for", "1/s", (double)lists / SECONDS, BENCH_VALUE_MAX, 0.5,
                false);
    rawpty_send(&p, "q");
    if (rawpty_end(&p, 3000) != 0)
        bench_value(section, "unclean end", "", 1, BENCH_VALUE_MAX, 0, true);
    tmpdir_remove(dir);
    free(dir);
    fakeapi_stop(api);
    return 0;
}
