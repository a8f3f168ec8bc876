/* What the sandbox uses, from its own /proc: it shows exactly its processes. */
#include "envd.h"
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <stdio.h>
#include <string.h>
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

/* Share of one CPU since the last question, 100 = one full CPU. */
static double cpu_pct(struct envd *e, int64_t ticks)
{
    int64_t now = clock_mono_ms();
    int64_t span = now - e->cpu_mono;
    if (e->cpu_mono != 0 && span < CPU_SAMPLE_MIN_MS)
        return e->cpu_pct;
    if (e->cpu_mono == 0)
        span = clock_wall_ms() - e->started_ms;
    double used = (double)(ticks - e->cpu_ticks) * 1000.0 / (double)sysconf(_SC_CLK_TCK);
    e->cpu_pct = span > 0 && used > 0 ? used * 100.0 / (double)span : 0;
    e->cpu_mono = now;
    e->cpu_ticks = ticks;
    return e->cpu_pct;
}

void envd_metrics(struct envd *e, struct http_req *req)
{
    int64_t ticks, rss;
    size_t n;
    struct statvfs vfs;
    struct buf b = BUF_INIT;
    struct jw w;
    envd_tree_usage(e, &ticks, &rss, &n);
    if (statvfs(e->home, &vfs) != 0)
        memset(&vfs, 0, sizeof(vfs));
    int64_t total = meminfo("MemTotal");
    int64_t disk = (int64_t)vfs.f_blocks * (int64_t)vfs.f_frsize;
    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_i64(&w, "ts", clock_wall_ms() / 1000);
    jw_i64(&w, "cpu_count", sysconf(_SC_NPROCESSORS_ONLN));
    jw_num(&w, "cpu_used_pct", cpu_pct(e, ticks));
    jw_i64(&w, "mem_total", total);
    jw_i64(&w, "mem_used", rss);
    jw_i64(&w, "mem_cache", meminfo("Cached"));
    jw_i64(&w, "mem_total_mib", total >> 20);
    jw_i64(&w, "mem_used_mib", rss >> 20);
    jw_i64(&w, "disk_used", disk - (int64_t)vfs.f_bfree * (int64_t)vfs.f_frsize);
    jw_i64(&w, "disk_total", disk);
    jw_end(&w);
    envd_reply_json(req, 200, &b);
}

void envd_stats(struct envd *e, struct http_req *req)
{
    int64_t ticks, rss;
    size_t n;
    struct buf b = BUF_INIT;
    struct jw w;
    envd_tree_usage(e, &ticks, &rss, &n);
    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_i64(&w, "processes", (int64_t)n);
    jw_i64(&w, "startedMs", e->started_ms);
    jw_bool(&w, "paused", e->paused_mono != 0);
    jw_end(&w);
    envd_reply_json(req, 200, &b);
}
