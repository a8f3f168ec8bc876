/* What a program with many streams costs, told the same way by the floor and by ours. */
#ifndef CCT_TESTS_STREAMSTAT_H
#define CCT_TESTS_STREAMSTAT_H

#include <dirent.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* One process of the test server: ten lines a second for ever. */
#define STREAM_START \
    "{\"process\":{\"cmd\":\"faultd-lines\",\"args\":[\"10\",\"0\"],\"envs\":{}},\"stdin\":false}"

static inline double streamstat_clock(clockid_t c)
{
    struct timespec t;
    clock_gettime(c, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline double streamstat_now(void)
{
    return streamstat_clock(CLOCK_MONOTONIC);
}

static inline double streamstat_cpu(void)
{
    return streamstat_clock(CLOCK_PROCESS_CPUTIME_ID);
}

static inline long streamstat_field(const char *name)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[200];
    long v = 0;
    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, name, strlen(name)) == 0)
            v = strtol(line + strlen(name) + 1, NULL, 10);
    if (f)
        fclose(f);
    return v;
}

static inline long streamstat_kb(void)
{
    return streamstat_field("VmRSS:");
}

static inline int streamstat_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = -3; /* ".", ".." and the folder's own */
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

/* cpu, t0: when the time that counts began; kb: before the streams were opened. */
static inline void streamstat_print(int n, double cpu, double t0, size_t bytes, long kb)
{
    double took = streamstat_now() - t0;
    printf("%.3f %.0f %.2f %d %ld\n", (streamstat_cpu() - cpu) * 1000 / took, (double)bytes / took,
           n ? (double)(streamstat_kb() - kb) / n : 0, streamstat_fds(),
           streamstat_field("Threads:"));
}

#endif
