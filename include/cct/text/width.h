/* Cells: how wide text is, where it may be cut and wrapped. Input is cleaned
 * text. One table of our own (no locale), with an ASCII fast path. Pure; any
 * thread. */
#ifndef CCT_TEXT_WIDTH_H
#define CCT_TEXT_WIDTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 0 (combining), 1 or 2 cells; never negative. Ambiguous width is 1 unless
 * text_ambiguous_wide(true) was called at start. */
int text_cp_width(uint32_t cp);
void text_ambiguous_wide(bool on);
/* What stands for a character that the cleaner did not see: 0 for direction marks,
 * joiners, selectors and fillers, a space for controls, U+FFFD for what is none. */
uint32_t text_cp_shown(uint32_t cp);
/* Cells of s[0..len), no LF inside. */
size_t text_width(const char *s, size_t len);
/* Bytes of the longest prefix on grapheme borders that fits in `cells`; *used
 * gets its width. Base and its marks stay together. */
size_t text_fit(const char *s, size_t len, size_t cells, size_t *used);
/* Bytes of the grapheme cluster at s (>= 1 when len > 0); *w its cells. */
size_t text_cluster(const char *s, size_t len, int *w);
/* Bytes of the cluster that ends at `at` (for moving left). */
size_t text_cluster_before(const char *s, size_t at);
/* Next wrapped row of s starting at byte `from`: returns the row's end (bytes),
 * *next = where the following row starts (a breaking space is skipped). Breaks at
 * spaces where there are any, else inside the word. cells >= 1. */
size_t text_wrap(const char *s, size_t len, size_t from, size_t cells, size_t *next);
/* Number of rows, at least 1. */
size_t text_wrap_rows(const char *s, size_t len, size_t cells);

#endif
