/* The one cleaner for foreign text: agent output, names, metadata, logs, error
 * bodies. What comes out is valid UTF-8 with no control byte but LF (or
 * none at all in the one-line form), no escape sequence, no bidi control; colours
 * survive as attribute runs, never as bytes.
 * Pure functions and a state that one owner feeds; any thread. */
#ifndef CCT_TEXT_CLEAN_H
#define CCT_TEXT_CLEAN_H

#include <cct/util/buf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Colour of a run: TEXT_COLOR_DEFAULT, a palette index 0..255, or
 * TEXT_COLOR_RGB | 0xRRGGBB. */
#define TEXT_COLOR_DEFAULT 0xFFFFFFFFu
#define TEXT_COLOR_RGB 0x01000000u
enum { TEXT_BOLD = 1, TEXT_DIM = 2, TEXT_ITALIC = 4, TEXT_UNDERLINE = 8, TEXT_REVERSE = 16,
       TEXT_STRIKE = 32 };

struct text_attr {
    uint32_t fg, bg;
    uint16_t flags;
};
/* From byte `at` of the cleaned text on, until the next run. */
struct text_run {
    uint32_t at;
    struct text_attr attr;
};

/* Streaming form: keeps state over calls (a sequence or a UTF-8 character cut by
 * a chunk border). Rules:
 *  - SGR (CSI ... m) changes the attribute; every other CSI, OSC, DCS, SOS, PM,
 *    APC, ESC k, and C1 in 7 or 8 bit form (U+0080..9F too) vanishes with its
 *    payload; an unterminated sequence ends at LF or after 4096 bytes, a CSI also
 *    at the first byte that cannot belong to it
 *  - NUL and other C0 vanish, DEL too; CR LF = LF; a lone CR moves to the line's
 *    begin, so what follows overwrites (progress bars); BS steps back one cell.
 *    CSI K and CSI 2 K erase, CSI G is a CR; all this works on cells: half a wide
 *    character overwritten leaves a space
 *  - TAB becomes spaces up to the next multiple of 8 cells
 *  - bidi controls U+061C 200E 200F 202A-202E 2066-2069, zero-width 200B 2060
 *    FEFF, line separators 2028 2029, tags U+E0000-E007F and the other invisible
 *    characters (soft hyphen, fillers) show as "<U+202E>"; ZWJ, ZWNJ and variation
 *    selectors vanish; interlinear marks FFF9-FFFB vanish
 *  - a malformed character becomes one U+FFFD (overlong, surrogate, cut, 5 bytes);
 *    at most LIM_MARKS_PER_CELL combining marks stay on one cell, a mark without
 *    a cell gets U+25CC; private use, unassigned and noncharacters become U+FFFD
 *  - a line longer than LIM_LINE_BYTES ends with " [cut]", the rest of it is
 *    dropped; changes of attribute beyond 65536 on one line are ignored
 * An attribute lasts over the line's end. Any slicing of the input gives the same. */
struct clean;
struct clean *clean_new(void);
void clean_free(struct clean *c);
/* Feed bytes; finished lines are handed out (without LF). Text is borrowed. */
typedef void (*clean_line_fn)(void *ctx, const char *text, size_t len,
                              const struct text_run *runs, size_t n_runs);
void clean_feed(struct clean *c, const char *s, size_t len, clean_line_fn fn, void *ctx);
/* The unfinished line as it looks now (borrowed until the next call). */
const char *clean_pending(struct clean *c, size_t *len, const struct text_run **runs,
                          size_t *n_runs);
/* End of input: hand out what is pending, if any; then c is as new. */
void clean_flush(struct clean *c, clean_line_fn fn, void *ctx);

/* Whole-text forms. `clean_text` keeps LF; runs may be NULL. `clean_line` makes
 * one line: LF, CR LF, CR and TAB become a space (line ends at the end go), BS
 * vanishes, runs are dropped; at most max_cells columns (0 = no limit), "..." when
 * cut. Both append to out; a full buffer says so itself (`over`). */
struct text_runs {
    struct text_run *v;
    size_t n, cap;
};
void text_runs_release(struct text_runs *r);
void clean_text(const char *s, size_t len, struct buf *out, struct text_runs *runs);
void clean_line(const char *s, size_t len, struct buf *out, unsigned max_cells);
/* The same into new memory. NULL s gives "". */
char *clean_line_dup(const char *s, unsigned max_cells);
char *clean_text_dup(const char *s, size_t len);
/* The same line by line, *n of them; a NULL stands behind them. The caller frees each and all. */
char **clean_lines(const char *s, size_t len, size_t *n);
/* Only [ -~]: everything else as <U+XXXX> or <XX>; for ids in dialogs. */
void clean_ascii(const char *s, size_t len, struct buf *out);

#endif
