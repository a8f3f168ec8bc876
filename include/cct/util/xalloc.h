/* Allocation that does not fail: out of memory ends the program by die().
 * Only for sizes of our own making; sizes from outside are checked first
 * (limits.h). Any thread. */
#ifndef CCT_UTIL_XALLOC_H
#define CCT_UTIL_XALLOC_H

#include <stddef.h>

void *xmalloc(size_t n);
void *xcalloc(size_t n, size_t size); /* overflow of n*size dies */
void *xrealloc(void *p, size_t n);
/* Large blocks are the system's again once they are free. Left to itself malloc takes the largest
 * that was ever freed as the measure of what to keep, and a day's heap only grows. And there is one
 * heap for all threads: what one makes and another frees leaves holes that only the maker's own
 * heap could fill again. At the start, before there are threads. */
void xkeep_small(void);
/* Memory that was freed goes back to the system, also from between what is in use: other
 * threads that allocate wait for a millisecond or two. Any thread. */
void xtrim(void);
char *xstrdup(const char *s);               /* s may be NULL: NULL comes back */
char *xstrndup(const char *s, size_t n);    /* always NUL-terminated */
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* End the program with one sentence on stderr and status 1. The hook, if set,
 * runs first (the terminal is restored there); it must not allocate. */
void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
void die_set_hook(void (*hook)(void));
/* A broken invariant of our own: die with file and line. */
#define BUG(...) die_bug(__FILE__, __LINE__, __VA_ARGS__)
void die_bug(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), noreturn));

#endif
