/* Samples, medians and rows of the benchmarks. */
#include "bench.h"

#include <cct/util/xalloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NOISY 0.3

void bench_add(struct bench_set *s, double v)
{
    if (s->n < BENCH_MAX_SAMPLES)
        s->v[s->n++] = v;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_quantile(const struct bench_set *s, double q)
{
    double v[BENCH_MAX_SAMPLES], at = q * (s->n - 1);
    int i = (int)at;
    if (s->n == 0)
        return 0;
    memcpy(v, s->v, sizeof(v[0]) * (size_t)s->n);
    qsort(v, (size_t)s->n, sizeof(v[0]), by_value);
    return i + 1 < s->n ? v[i] + (v[i + 1] - v[i]) * (at - i) : v[i];
}

double bench_median(const struct bench_set *s)
{
    return bench_quantile(s, 0.5);
}

double bench_spread(const struct bench_set *s)
{
    double m = bench_median(s);
    return m > 0 ? (bench_quantile(s, 0.75) - bench_quantile(s, 0.25)) / m : 0;
}

double bench_max(const struct bench_set *s)
{
    return bench_quantile(s, 1);
}

int bench_runs(int def)
{
    const char *text = getenv("RUNS");
    long n = text ? strtol(text, NULL, 10) : 0;
    return n < 1 ? def : n > BENCH_MAX_SAMPLES ? BENCH_MAX_SAMPLES : (int)n;
}

int64_t bench_now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* --- rows --------------------------------------------------------------------------- */

static const char *number(char *dst, size_t size, double v)
{
    double a = fabs(v);
    snprintf(dst, size, "%.*f", a == floor(a) || a >= 1000 ? 0 : a >= 100 ? 1 : 2, v);
    return dst;
}

static const char *verdict(const struct bench_row *r, double ratio)
{
    bool relative = r->kind == BENCH_RATIO_MAX || r->kind == BENCH_RATIO_MIN;
    double v = relative ? ratio : bench_median(r->ours);
    bool least = r->kind == BENCH_RATIO_MIN || r->kind == BENCH_VALUE_MIN;
    if (r->kind == BENCH_INFO)
        return "-";
    if (relative && !(r->floor && r->floor->n))
        return "skipped: the floor is not there";
    if (relative && bench_spread(r->floor) > NOISY)
        return "noisy";
    if (least ? v >= r->bar : v <= r->bar)
        return "ok";
    return r->must ? "MISSED" : "below goal";
}

void bench_print(const char *section, const struct bench_row *r)
{
    char fl[32] = "-", ours[32], ratio_text[32] = "-", spread[32] = "-", bar[40] = "-", n[32];
    double ratio = 0;
    if (r->ours->n == 0) {
        printf("row\t%s\t%s: it never came to that\t-\t-\t-\t-\t-\t-\t%s\n", section, r->what,
               r->must ? "MISSED" : "below goal");
        fflush(stdout);
        return;
    }
    if (r->floor && r->floor->n) {
        ratio = bench_median(r->ours) / bench_median(r->floor);
        number(fl, sizeof(fl), bench_median(r->floor));
        snprintf(ratio_text, sizeof(ratio_text), "%.2f", ratio);
        snprintf(spread, sizeof(spread), "%.0f%%", bench_spread(r->floor) * 100);
    }
    if (r->kind != BENCH_INFO) {
        bool least = r->kind == BENCH_RATIO_MIN || r->kind == BENCH_VALUE_MIN;
        bool relative = r->kind == BENCH_RATIO_MAX || r->kind == BENCH_RATIO_MIN;
        snprintf(bar, sizeof(bar), "%s %s%s", least ? ">=" : "<=", number(n, sizeof(n), r->bar),
                 relative ? "x" : "");
    }
    printf("row\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", section, r->what, fl,
           number(ours, sizeof(ours), bench_median(r->ours)), r->unit, ratio_text, spread, bar,
           verdict(r, ratio));
    fflush(stdout);
}

void bench_value(const char *section, const char *what, const char *unit, double v,
                 enum bench_kind kind, double bar, bool must)
{
    struct bench_set s = {.v = {v}, .n = 1};
    bench_print(section, &(struct bench_row){what, unit, NULL, &s, kind, bar, must});
}

void bench_skip(const char *section, const char *what, const char *why)
{
    printf("row\t%s\t%s\t-\t-\t-\t-\t-\t-\tskipped: %s\n", section, what, why);
    fflush(stdout);
}

/* --- the program under test ----------------------------------------------------------- */

char *bench_program(const char *name)
{
    const char *build = getenv("B");
    return xasprintf("%s/%s", build ? build : "build/release", name);
}

char **bench_env(const char *dir, int port)
{
    static const char *const places[] = {"CONFIG", "DATA", "STATE", "RUNTIME"};
    const char *path = getenv("PATH");
    char **env = xcalloc(16, sizeof(*env));
    size_t n = 0;
    env[n++] = xasprintf("HOME=%s", dir);
    env[n++] = xasprintf("PATH=%s", path ? path : "/usr/bin:/bin");
    env[n++] = xstrdup("TERM=xterm-256color");
    env[n++] = xstrdup("LC_ALL=C.UTF-8");
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        env[n++] = xasprintf("CC_TUI_%s_DIR=%s", places[i], dir);
    if (port) {
        env[n++] = xasprintf("E2B_API_URL=http://127.0.0.1:%d", port);
        env[n++] = xstrdup("E2B_API_KEY=e2b_0123456789abcdef0123456789abcdef01234567");
    }
    return env;
}
