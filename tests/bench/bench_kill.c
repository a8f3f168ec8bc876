/* Kill all: N sandboxes whose deletes take 100 to 200 ms. Measured at the service, from
 * the first delete's arrival to the last answer, against the slowest answer, and against
 * libcurl's multi interface doing only the deletes. */
#include "../lib/bench.h"
#include "../lib/fakeapi.h"
#include "../lib/rawpty.h"
#include "../lib/storebox.h"

#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char section[] = "kill";

struct result {
    struct bench_set total, slowest, floor, wall;
    int bad;
};

static void run_floor(struct fakeapi *api, int n, char *const env[], struct result *r)
{
    char *url = xasprintf("http://127.0.0.1:%d/sandboxes/ibench", fakeapi_port(api));
    char *count = xasprintf("%d", n);
    const char *argv[] = {bench_program("tests/bench/multi"), url, count, NULL};
    struct rawpty p;
    fakeapi_reset(api);
    rawpty_start(&p, argv, env, 24, 80);
    int status = rawpty_end(&p, 30000);
    struct fakeapi_kill k = fakeapi_deletes(api);
    if (status == 0 && k.deletes == n)
        bench_add(&r->floor, (double)k.total_us / 1000);
    free(url);
    free(count);
}

/* The report says that all are gone, and the service says so too. */
static bool verified(const struct rawpty *p)
{
    const char *s = p->seen.p;
    return s && (strstr(s, "\"verified\":true") || strstr(s, "\"verified\": true"));
}

static void run_ours(struct fakeapi *api, int n, char *const env[], struct result *r)
{
    const char *argv[] = {bench_program("cc-tui"), "kill", "--all", "--scope", "account",
                    "--yes", "--json", NULL};
    struct rawpty p;
    fakeapi_reset(api);
    rawpty_start(&p, argv, env, 24, 80);
    static const char *const end[] = {"\"verified\"", NULL};
    rawpty_until(&p, end, 40000);
    double ms = (double)(bench_now_us() - p.started_us) / 1000;
    rawpty_settle(&p, 300, 1000);
    bool ok = verified(&p);
    if (!ok && getenv("VERBOSE"))
        fprintf(stderr, "%s\n", buf_str(&p.seen));
    ok &= rawpty_end(&p, 5000) == 0;
    struct fakeapi_kill k = fakeapi_deletes(api);
    r->bad += !ok || k.deletes != n || k.left != 0;
    bench_add(&r->total, (double)k.total_us / 1000);
    bench_add(&r->slowest, (double)k.slowest_us / 1000);
    bench_add(&r->wall, ms);
}

static void measure(int n)
{
    struct fakeapi_opts o = {.n = n, .delete_min_ms = 100, .delete_max_ms = 200};
    struct fakeapi *api = fakeapi_start(&o);
    char *dir = storebox_dir(), **env = bench_env(dir, fakeapi_port(api)), what[64];
    struct result r = {0};
    for (int i = 0; i < bench_runs(7); i++) {
        run_floor(api, n, env, &r);
        run_ours(api, n, env, &r);
    }
    snprintf(what, sizeof(what), "N=%d, floor: the slowest answer", n);
    bench_print(section, &(struct bench_row){what, "ms", &r.slowest, &r.total, BENCH_RATIO_MAX, 2,
                                             true});
    snprintf(what, sizeof(what), "N=%d, floor: libcurl multi alone", n);
    bench_print(section, &(struct bench_row){what, "ms", &r.floor, &r.total, BENCH_RATIO_MAX, 1.5,
                                             false});
    snprintf(what, sizeof(what), "N=%d, the whole command", n);
    bench_print(section, &(struct bench_row){what, "ms", NULL, &r.wall, BENCH_INFO, 0, false});
    snprintf(what, sizeof(what), "N=%d, runs not verified", n);
    bench_value(section, what, "", r.bad, BENCH_VALUE_MAX, 0, true);
    storebox_remove(dir);
    free(dir);
    fakeapi_stop(api);
}

int main(void)
{
    measure(20);
    measure(100);
    return 0;
}
