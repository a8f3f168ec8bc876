/* Between the files of the terminal. */
#ifndef CCT_UI_TERM_PRIV_H
#define CCT_UI_TERM_PRIV_H

#include <cct/ui/canvas.h>

/* A part of the screen that moves up by some rows, beside whatever stands still. */
struct scroll {
    struct rect r;
    int by; /* 0: it does not pay */
};
/* What of c->scrolls has moved up since `shown`. */
struct scroll scroll_find(const struct canvas *shown, const struct canvas *c);
/* The sequences for it, by margins on all sides; the cursor is left at the screen's begin. Where
 * they stand attributes are normal, else the new rows would have another background. */
void scroll_spell(const struct scroll *s, struct buf *out);
/* The window that curses draws from, and `shown`, move along. */
void scroll_follow(const struct scroll *s, struct canvas *shown);

#endif
