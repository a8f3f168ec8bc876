/* The clocks of a test program are its own to set: included by the one file that has its main().
 * What is defined here stands before the library's own, for everything in the program. */
#ifndef CCT_TESTS_LIB_OURCLOCK_H
#define CCT_TESTS_LIB_OURCLOCK_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Atomic int64_t add_wall, add_mono, add_boot; /* ms that they are ahead */

int clock_gettime(clockid_t id, struct timespec *ts)
{
    int rc = (int)syscall(SYS_clock_gettime, id, ts);
    int64_t ms = id == CLOCK_REALTIME    ? atomic_load(&add_wall)
                 : id == CLOCK_MONOTONIC ? atomic_load(&add_mono)
                 : id == CLOCK_BOOTTIME  ? atomic_load(&add_boot)
                                         : 0;
    int64_t ns = ts->tv_nsec + ms % 1000 * 1000000;

    ts->tv_sec += (time_t)(ms / 1000 + (ns < 0 ? -1 : ns / 1000000000));
    ts->tv_nsec = ns < 0 ? ns + 1000000000 : ns % 1000000000;
    return rc;
}

static inline void clocks_right(void)
{
    add_wall = add_mono = add_boot = 0;
}

#endif
