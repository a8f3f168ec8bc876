/* A grid of cells that panes draw on: clips, knows wide characters, knows nothing of
 * curses or time. Text must be cleaned. Golden tests print it; term_flush() sends what
 * changed. One owner (main thread). */
#ifndef CCT_UI_CANVAS_H
#define CCT_UI_CANVAS_H

#include <cct/text/clean.h>
#include <cct/ui/theme.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cell {
    char ch[24];      /* one grapheme cluster, UTF-8, NUL-ended; "" = right half of a
                         wide one */
    uint16_t role;    /* enum theme_role */
    uint16_t flags;   /* TEXT_BOLD ... added to the role's */
    uint32_t fg, bg;  /* foreign colour, TEXT_COLOR_DEFAULT = the role's */
};
struct rect {
    int y, x, h, w;
};
struct canvas {
    int h, w;
    struct cell *cells;
    struct rect clip;    /* drawing outside is cut; whole canvas by default */
    int cursor_y, cursor_x; /* -1 = hidden */
    struct rect scrolls; /* a part whose rows may move up together; h 0 = none */
    bool ascii;          /* no character over 0x7E comes out: glyphs degrade */
};
void canvas_init(struct canvas *c);
void canvas_release(struct canvas *c);
void canvas_resize(struct canvas *c, int h, int w); /* 0..1000 each; blanks it */
void canvas_erase(struct canvas *c, enum theme_role role);
/* Restrict to r (within the present clip); returns the old clip to restore. */
struct rect canvas_clip(struct canvas *c, struct rect r);
void canvas_unclip(struct canvas *c, struct rect old);
/* Text at (y, x), cut at max cells (-1 = to the clip's end); returns cells used. */
int canvas_text(struct canvas *c, int y, int x, int max, enum theme_role role, const char *s);
int canvas_textn(struct canvas *c, int y, int x, int max, enum theme_role role, const char *s,
                 size_t len);
int canvas_textf(struct canvas *c, int y, int x, int max, enum theme_role role, const char *fmt,
                 ...) __attribute__((format(printf, 6, 7)));
/* A sandbox's name, in at most `max` cells: one that is too long keeps its end, by which
 * copies differ. */
int canvas_name(struct canvas *c, int y, int x, int max, enum theme_role role, const char *name);
/* Right-aligned in `w` cells ending before x + w. */
int canvas_right(struct canvas *c, int y, int x, int w, enum theme_role role, const char *s);
/* Text with foreign colour runs: byte 0 of s is byte `at` of the run table's text. */
int canvas_runs(struct canvas *c, int y, int x, int max, enum theme_role role, const char *s,
                size_t len, const struct text_run *runs, size_t n_runs, size_t at);
void canvas_fill(struct canvas *c, struct rect r, enum theme_role role, const char *cluster);
/* Hints, a TAB between two: as many as go into w cells, each of them whole. The least needed
 * give way first, which are those in front of the last one (the way out), from the right. */
void canvas_hints(struct canvas *c, int y, int x, int w, enum theme_role role, const char *hints);
/* Horizontal rule "- title ------ right -" over w cells; `right` may be hints. */
void canvas_rule(struct canvas *c, int y, int x, int w, enum theme_role role, const char *title,
                 const char *right, bool focused);
void canvas_frame(struct canvas *c, struct rect r, enum theme_role role, const char *title,
                  const char *right);
/* Add flags (TEXT_REVERSE for selections) to cells already drawn. */
void canvas_mark(struct canvas *c, struct rect r, uint16_t flags);
void canvas_role(struct canvas *c, struct rect r, enum theme_role role);
/* Plain text of the grid, one LF per row, trailing blanks cut; with `roles` a second
 * block that shows each cell's role as a letter. New string. */
char *canvas_dump(const struct canvas *c, bool roles);
bool cell_equal(const struct cell *a, const struct cell *b);

#endif
