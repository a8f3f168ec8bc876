/* What the benchmarks share: samples and their medians, and the rows of the table. A row
 * goes to stdout as tab-separated fields; tests/bench/run.sh makes the table of them. */
#ifndef CCT_TESTS_BENCH_H
#define CCT_TESTS_BENCH_H

#include <stdbool.h>
#include <stdint.h>

enum { BENCH_MAX_SAMPLES = 512 };
struct bench_set {
    double v[BENCH_MAX_SAMPLES];
    int n;
};
void bench_add(struct bench_set *s, double v);
double bench_median(const struct bench_set *s); /* 0 without samples */
/* Value below which the part q of the samples lies, 0.99: all but the slowest hundredth. */
double bench_quantile(const struct bench_set *s, double q);
/* Distance of the quartiles as a part of the median: 0.3 = 30 %. */
double bench_spread(const struct bench_set *s);
double bench_max(const struct bench_set *s);
/* Samples of each kind to take: RUNS of the environment, else def. */
int bench_runs(int def);
int64_t bench_now_us(void); /* monotonic */

/* What the bar is held against. */
enum bench_kind {
    BENCH_INFO,      /* nothing: the figure is only shown */
    BENCH_RATIO_MAX, /* ours / floor at most the bar */
    BENCH_RATIO_MIN, /* ours / floor at least the bar (rates) */
    BENCH_VALUE_MAX, /* ours itself at most the bar */
    BENCH_VALUE_MIN
};
struct bench_row {
    const char *what, *unit;
    const struct bench_set *floor; /* NULL: there is none */
    const struct bench_set *ours;
    enum bench_kind kind;
    double bar;
    bool must; /* a missed bar fails the run */
};
/* Prints "row section what floor ours unit ratio spread bar verdict". A ratio to a floor
 * that spread by more than 30 % is called noisy, neither kept nor missed; one to a floor that
 * has no samples is skipped. */
void bench_print(const char *section, const struct bench_row *r);
/* One figure without a floor. */
void bench_value(const char *section, const char *what, const char *unit, double v,
                 enum bench_kind kind, double bar, bool must);
/* --- the program under test --- */

/* "build/MODE/NAME", of the environment's B. New string. */
char *bench_program(const char *name);
/* The whole environment of a run in folder dir, which becomes its home; port: of the
 * control plane to talk to with a key, 0 = none. Never freed. */
char **bench_env(const char *dir, int port);

void bench_skip(const char *section, const char *what, const char *why);

#endif
