/* What the sandbox uses, from its own /proc: it shows exactly its processes. */
#include "init_metrics.h"
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define CPU_SAMPLE_MIN_MS 200 /* shorter spans say nothing: clock ticks are 10 ms */

/* "Cached:   123 kB" of /proc/meminfo in bytes; 0 when the file is not there. */
static int64_t meminfo(const char *key)
{
    FILE *f = fopen("/proc/meminfo", "re");
    char line[256];
    int64_t out = 0;
    if (f == NULL)
        return 0;
    while (fgets(line, sizeof(line), f) != NULL) {
        long long kb;
        size_t n = strlen(key);
        if (strncmp(line, key, n) == 0 && sscanf(line + n, ": %lld", &kb) == 1) {
            out = (int64_t)kb << 10;
            break;
        }
    }
    fclose(f);
    return out;
}

/* Share of all CPUs since the last look, at most 100. */
static double cpu_pct(const struct envd *e, struct meter *m, int64_t ticks, int64_t cpus)
{
    int64_t now = clock_mono_ms();
    int64_t span = now - m->mono;
    if (m->mono != 0 && span < CPU_SAMPLE_MIN_MS)
        return m->pct;
    if (m->mono == 0)
        span = clock_wall_ms() - e->started_ms;
    double used = (double)(ticks - m->ticks) * 1000.0 / (double)sysconf(_SC_CLK_TCK);
    m->pct = span > 0 && used > 0 ? used * 100.0 / (double)span / (double)cpus : 0;
    if (m->pct > 100)
        m->pct = 100; /* the two clocks are not quite one */
    m->mono = now;
    m->ticks = ticks;
    return m->pct;
}

/* Clock ticks of processes that have ended and were buried. */
static int64_t ended_ticks(void)
{
    struct rusage u;
    if (getrusage(RUSAGE_CHILDREN, &u) != 0)
        return 0;
    double s = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
               (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
    return (int64_t)(s * (double)sysconf(_SC_CLK_TCK));
}

void envd_measure(struct envd *e, struct meter *m, struct sample *out)
{
    int64_t ticks;
    struct statvfs vfs;
    envd_tree_usage(e, &ticks, &out->mem_used);
    if (statvfs(e->home, &vfs) != 0)
        memset(&vfs, 0, sizeof(vfs));
    out->ts = clock_wall_ms() / 1000;
    out->cpus = e->cpu_limit > 0 ? e->cpu_limit : sysconf(_SC_NPROCESSORS_ONLN);
    out->cpu_pct = cpu_pct(e, m, ticks + ended_ticks(), out->cpus);
    out->mem_total = e->mem_limit > 0 ? e->mem_limit : meminfo("MemTotal");
    out->mem_cache = meminfo("Cached");
    out->disk_used = e->disk != NULL ? envd_disk_used(e->disk) : 0;
    out->disk_total = (int64_t)vfs.f_blocks * (int64_t)vfs.f_frsize;
}

void envd_metrics(struct envd *e, struct http_req *req)
{
    static struct meter live;
    struct sample s;
    struct buf b = BUF_INIT;
    struct jw w;
    envd_measure(e, &live, &s);
    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_i64(&w, "ts", s.ts);
    jw_i64(&w, "cpu_count", s.cpus);
    jw_num(&w, "cpu_used_pct", s.cpu_pct);
    jw_i64(&w, "mem_total", s.mem_total);
    jw_i64(&w, "mem_used", s.mem_used);
    jw_i64(&w, "mem_cache", s.mem_cache);
    jw_i64(&w, "mem_total_mib", s.mem_total >> 20);
    jw_i64(&w, "mem_used_mib", s.mem_used >> 20);
    jw_i64(&w, "disk_used", s.disk_used);
    jw_i64(&w, "disk_total", s.disk_total);
    jw_end(&w);
    envd_reply_json(req, 200, &b);
}
