/* A text fed to the streaming cleaner in pieces, and what came out in one form
 * that can be compared: any slicing must give the same. */
#ifndef CCT_TESTS_LIB_SLICED_H
#define CCT_TESTS_LIB_SLICED_H

#include <cct/util/buf.h>
#include <stddef.h>

/* Feed s in pieces of `step` bytes (0 = at once). *text gets the lines, each with
 * LF; *runs a printed list of the attribute runs. Aborts when clean_pending before
 * the end and the flushed line differ (unless a character was cut). */
void sliced_clean(const char *s, size_t len, size_t step, struct buf *text, struct buf *runs);

#endif
