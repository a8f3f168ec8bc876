/* One line of cells under construction, private to src/text: text before and after
 * a cursor, so that CR and BS let later text overwrite earlier text cell by cell.
 * A gap buffer: moving the cursor to the begin costs what was written since it
 * was last there, so any input is handled in linear time. One owner. */
#ifndef CCT_TEXT_CELLLINE_H
#define CCT_TEXT_CELLLINE_H

#include <cct/text/clean.h>
#include <cct/util/limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a line, without the mark of a cut one. */
#define CELLLINE_CUT_MARK " [cut]"
#define CELLLINE_MAX_BYTES (LIM_LINE_BYTES - (sizeof(CELLLINE_CUT_MARK) - 1))

struct run_vec {
    struct text_run *v;
    size_t n, cap;
};

struct cellline {
    char *p; /* [0,head) is before the cursor, the last `tail` bytes after */
    size_t cap, head, tail;
    size_t col;      /* cells before the cursor */
    size_t mark_end; /* `marks` are on the cell that ends here; 0 = not known */
    unsigned marks;
    bool half;                /* the cursor is inside the wide character after it */
    bool cut;                 /* the line met its limit; a mark is shown at its end */
    struct run_vec head_runs; /* `at` from the line's begin; default attribute before */
    struct run_vec tail_runs; /* nearest last; `at` counted from the line's end */
    char *flat;               /* joined copy for cellline_text */
    size_t flat_cap;
    struct run_vec flat_runs;
};

void cellline_release(struct cellline *l);
void cellline_clear(struct cellline *l);
/* Put n printable ASCII bytes; one character of w = 1 or 2 cells; or a zero-width
 * mark that stays on the cell before (dropped beyond LIM_MARKS_PER_CELL). False
 * once the line is cut. */
bool cellline_ascii(struct cellline *l, const char *s, size_t n, const struct text_attr *a);
bool cellline_char(struct cellline *l, const char *s, size_t n, unsigned w,
                   const struct text_attr *a);
bool cellline_mark(struct cellline *l, const char *s, size_t n, const struct text_attr *a);
/* On to the next multiple of 8 cells: over what is there, with spaces beyond. */
bool cellline_tab(struct cellline *l, const struct text_attr *a);
void cellline_home(struct cellline *l);      /* CR */
void cellline_back(struct cellline *l);      /* BS */
void cellline_erase_end(struct cellline *l); /* from the cursor to the line's end */
/* The whole line; borrowed until the next call on l. */
const char *cellline_text(struct cellline *l, size_t *len, const struct text_run **runs,
                          size_t *n_runs);

bool cellline_attr_same(const struct text_attr *a, const struct text_attr *b);
#define ATTR_DEFAULT ((struct text_attr){TEXT_COLOR_DEFAULT, TEXT_COLOR_DEFAULT, 0})

#endif
