/* Time. Monotonic for intervals, wall clock (UTC) for what is stored or shown.
 * All values are signed 64-bit milliseconds. Any thread. */
#ifndef CCT_UTIL_CLOCK_H
#define CCT_UTIL_CLOCK_H

#include <stddef.h>
#include <stdint.h>

int64_t clock_mono_ms(void); /* CLOCK_MONOTONIC */
int64_t clock_boot_ms(void); /* CLOCK_BOOTTIME: goes on in suspend */
int64_t clock_wall_ms(void); /* since 1970-01-01 UTC */
/* RFC 3339 with 0..9 fraction digits, `Z` or an offset -> wall ms; 0 or
 * ERR_INVALID. */
int clock_parse_rfc3339(const char *s, int64_t *out_ms);
/* "2026-08-22T10:00:00.123Z" into dst (>= 25 bytes). */
void clock_format_rfc3339(char *dst, size_t size, int64_t ms);
/* Local "HH:MM:SS" or "HH:MM" (>= 9 bytes). */
void clock_format_hms(char *dst, size_t size, int64_t ms);
void clock_format_hm(char *dst, size_t size, int64_t ms);
/* Short span for a table cell, at most 5 columns: "8s" "12m" "1h52" "3d". */
void clock_format_span(char *dst, size_t size, int64_t ms);

#endif
