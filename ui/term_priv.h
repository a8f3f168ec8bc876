/* Between the files of the terminal. */
#ifndef CCT_UI_TERM_PRIV_H
#define CCT_UI_TERM_PRIV_H

#include <cct/ui/canvas.h>
#include <cct/util/buf.h>

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

/* What curses writes for ANSI terminals, in fewer bytes (term_short.c). columns, rows: the
 * terminal knows CHA, VPA. */
struct shortener *shortener_new(bool columns, bool rows);
void shortener_free(struct shortener *s);
/* The next bytes begin a frame of h x w. fresh: all that was known of the terminal may have
 * changed; home: its cursor stands in the first cell. */
void shortener_begin(struct shortener *s, int h, int w, bool fresh, bool home);
/* All bytes of the frame, whole sequences; a NUL stands behind them. */
void shortener_feed(struct shortener *s, const char *text, size_t len, struct buf *out);

#endif
