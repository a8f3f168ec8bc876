/* Figures of the running program: memory, descriptors, threads; latencies of keys. */
#include "soak.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static long status_kb(pid_t pid, const char *field)
{
    char path[64], line[256];
    long v = -1;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof(line), f))
        if (str_starts(line, field)) {
            v = strtol(line + strlen(field), NULL, 10);
            break;
        }
    if (f)
        fclose(f);
    return v;
}

static int count_fds(pid_t pid)
{
    char path[64];
    int n = -2; /* . and .. */
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *d = opendir(path);
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

void meter_sample(struct soak *s)
{
    struct sample v = {.at_s = soak_seconds(s),
                       .rss_kb = status_kb(s->rig.pid, "VmRSS:"),
                       .anon_kb = status_kb(s->rig.pid, "RssAnon:"),
                       .provider_kb = s->provider ? status_kb(s->provider, "VmRSS:") : -1,
                       .fds = count_fds(s->rig.pid),
                       .threads = (int)status_kb(s->rig.pid, "Threads:"),
                       .cells = s->rig.h * s->rig.w};
    if (v.rss_kb > 0)
        *ARR_PUSH(&s->samples) = v;
}

long meter_rss(const struct sample *v)
{
    return v->rss_kb;
}

long meter_anon(const struct sample *v)
{
    return v->anon_kb;
}

/* What is freed goes back to the system twice a minute, and a few seconds later is in use again in
 * part: memory is a saw, and only what stays at its lows is held. Of each window the least sample. */
static size_t least_of_window(const struct soak *s, size_t first, double window_s,
                              long (*column)(const struct sample *v), size_t *least)
{
    size_t i = first + 1;
    for (*least = first; i < s->samples.n &&
                         s->samples.v[i].at_s < s->samples.v[first].at_s + window_s; i++)
        if (column(&s->samples.v[i]) < column(&s->samples.v[*least]))
            *least = i;
    return i;
}

/* cells 0: at any size of the screen. */
static double slope(const struct soak *s, double window_s, int cells,
                    long (*column)(const struct sample *v))
{
    double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (size_t i = 0, at; i < s->samples.n;) {
        i = least_of_window(s, i, window_s, column, &at);
        const struct sample *v = &s->samples.v[at];
        double x = v->at_s / 3600, y = (double)column(v) / 1024;
        if (v->at_s < s->warm_s || (cells && v->cells != cells))
            continue;
        n++, sx += x, sy += y, sxx += x * x, sxy += x * y;
    }
    double d = n * sxx - sx * sx;
    return n < 3 || d <= 0 ? NAN : (n * sxy - sx * sy) / d;
}

double meter_slope(const struct soak *s, double window_s, long (*column)(const struct sample *v))
{
    return slope(s, window_s, 0, column);
}

double meter_slope_at_size(const struct soak *s, long (*column)(const struct sample *v))
{
    return slope(s, 0, BIG_H * BIG_W, column);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double meter_quantile(const struct soak *s, enum probe p, double q, size_t *n)
{
    ARR(double) all = ARR_INIT;
    for (int k = 0; k < P_COUNT; k++)
        for (size_t i = 0; (p == P_COUNT || (int)p == k) && i < s->ms[k].n; i++)
            *ARR_PUSH(&all) = s->ms[k].v[i];
    *n = all.n;
    if (all.n)
        qsort(all.v, all.n, sizeof(double), by_value);
    double v = all.n ? all.v[(size_t)(q * (double)(all.n - 1))] : NAN;
    ARR_RELEASE(&all);
    return v;
}

void meter_write(const struct soak *s)
{
    char *path = xasprintf("%s/samples.tsv", s->out);
    FILE *f = fopen(path, "w");
    if (f) {
        fprintf(f, "seconds\trss_kb\tanon_kb\tprovider_kb\tfds\tthreads\tcells\n");
        for (size_t i = 0; i < s->samples.n; i++) {
            const struct sample *v = &s->samples.v[i];
            fprintf(f, "%.0f\t%ld\t%ld\t%ld\t%d\t%d\t%d\n", v->at_s, v->rss_kb, v->anon_kb,
                    v->provider_kb, v->fds, v->threads, v->cells);
        }
        fclose(f);
    }
    free(path);
}
