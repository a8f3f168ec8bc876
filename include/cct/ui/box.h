/* Boxes in the middle of the screen, for dialogs. */
#ifndef CCT_UI_BOX_H
#define CCT_UI_BOX_H

#include <cct/ui/canvas.h>

/* A frame of at most h x w in the middle of `screen`, drawn; returns its inside. */
struct rect box_draw(struct canvas *c, struct rect screen, int h, int w, const char *title,
                     const char *right);
/* Text of several lines inside r, wrapped; returns rows used. */
int box_text(struct canvas *c, struct rect r, enum theme_role role, const char *text);
/* Rows that text takes at width w. */
int box_text_rows(const char *text, int w);
/* The first row of a list to show, of `rows` of them, so that the one at hand is in sight;
 * `top` was the first so far and stays it where it can. */
size_t box_first_row(size_t top, size_t at, size_t rows);

#endif
