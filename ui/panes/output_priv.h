/* The output pane: how items of a transcript become rows of cells. */
#ifndef CCT_UI_OUTPUT_PRIV_H
#define CCT_UI_OUTPUT_PRIV_H

#include <cct/ui/ui.h>

/* One row on the screen. */
enum row_part { ROW_HEAD, ROW_TEXT, ROW_FOLD, ROW_BLANK };
struct row {
    enum row_part part;
    uint32_t from, to; /* bytes of the item's text */
    int indent;        /* cells before the text */
    bool first;        /* carries the item's own begin: time, who, glyph */
};
struct rows {
    struct row *v;
    size_t n, cap;
};
/* How rows are made: changes invalidate what is cached. */
struct row_style {
    int w;
    bool wrap, times;
};
/* How many rows the item takes, and the rows themselves. */
size_t rows_count(const struct item *it, const struct row_style *st, bool folded);
void rows_make(const struct item *it, const struct row_style *st, bool folded, struct rows *out);
bool rows_foldable(const struct item *it);
bool rows_folded_by_default(const struct item *it);
/* Draw one row at (y, x); pan = cells cut at the left when unwrapped. */
void rows_draw(struct canvas *c, int y, int x, const struct item *it, const struct row *r,
               const struct row_style *st, int pan, int64_t now);

#endif
