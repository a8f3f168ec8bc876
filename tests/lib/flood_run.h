/* The whole program on a terminal while its agent prints a text at full speed. For measuring. */
#ifndef CCT_TESTS_FLOOD_RUN_H
#define CCT_TESTS_FLOOD_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FLOOD_H = 60, FLOOD_W = 200 };

/* A terminal's bytes, counted; the newest of them are searched. */
struct flow {
    char tail[256 + 65536];
    size_t have;
    uint64_t bytes;
};
/* Read until the text came by; false after ms. */
bool flow_until(struct flow *w, int fd, const char *text, int ms);

struct flood_run {
    double mb_s;     /* from the first byte until all is stored and the mark is shown */
    double bytes;    /* to the terminal */
    double frames_s; /* a second */
    double kb;       /* resident at the end */
    double cpu_mb_s; /* for each second of CPU time of all its threads */
};
/* mark: stands in the last line of the text. False: it did not come to its end. */
bool flood_run(struct flood_run *r, const char *text, size_t len, const char *tool,
               const char *mark);

#endif
