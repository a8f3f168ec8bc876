/* What a sandbox uses, measured by its init: now, or every 5 s for an hour. */
#ifndef LOCAL_INIT_METRICS_H
#define LOCAL_INIT_METRICS_H

#include "envd.h"

/* From one look to the next: CPU time is a difference. */
struct meter {
    int64_t mono, ticks;
    double pct;
};

struct sample {
    int64_t ts;     /* unix seconds */
    double cpu_pct; /* 0..100 over all CPUs, since the look before */
    int64_t cpus, mem_used, mem_total, mem_cache, disk_used, disk_total;
};

void envd_measure(struct envd *e, struct meter *m, struct sample *out);

/* init_disk.c: bytes in the sandbox's own folders, counted in small steps beside
 * the other work; at most 100,000 files, again at the earliest 10 s after the last
 * count. What a root made of layers holds elsewhere is not seen from inside. */
struct disk;
struct disk *envd_disk_new(struct envd *e);
void envd_disk_free(struct disk *d);
int64_t envd_disk_used(const struct disk *d); /* as of the last whole count */

#endif
