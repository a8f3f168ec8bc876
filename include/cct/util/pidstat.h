/* What the kernel says of one process (/proc/PID/stat). Any thread; nothing here allocates. */
#ifndef CCT_UTIL_PIDSTAT_H
#define CCT_UTIL_PIDSTAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct pidstat {
    char state; /* R, S, D, T, ...; Z and X: it has ended */
    pid_t parent;
    int64_t ticks, waited_ticks; /* of CPU: its own, of children that it has waited for */
    uint64_t start;              /* ticks after the machine's start; with the pid it is one process */
    int64_t rss_pages;
};
/* False: there is no such process. */
bool pidstat_read(pid_t pid, struct pidstat *s);
bool pidstat_lives(pid_t pid);     /* there is, and it has not ended */
uint64_t pidstat_start(pid_t pid); /* 0: there is none that lives */

#endif
