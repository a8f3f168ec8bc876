/* Between the files of the terminal. */
#ifndef CCT_UI_TERM_PRIV_H
#define CCT_UI_TERM_PRIV_H

#include <cct/ui/canvas.h>
#include <cct/ui/term.h>
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

/* Colours and attributes as curses has them here (term_cells.c). */
struct palette {
    const struct theme *theme;
    struct theme mono;
    enum theme_color level;
    bool color;
    bool direct; /* colour numbers are RGB, but for the first ones */
    struct color_slots *slots;
};
/* After newterm(); what it holds is released by color_slots_free(). */
void palette_open(struct palette *p, const struct theme_wish *wish);
void palette_theme(struct palette *p, const struct theme *t);
/* Cells that differ from `shown` go to curses, and into it; full: all, onto an empty screen. */
void palette_tell(const struct palette *p, const struct canvas *c, struct canvas *shown,
                  bool full);

/* What terminfo says (term_caps.c). */
void caps_teach_keys(struct key_decoder *d);
/* Frames are made shorter where the terminal goes to places and to its own colours as ANSI has
 * it, else NULL: a way of its own to give up colours is none that the shortener would see. */
struct shortener *caps_shortener(bool color);
bool caps_rgb(void);
/* When it comes back curses resets the palette, which it never changed: somebody else may
 * have. */
void caps_drop_palette_reset(struct buf *b);
/* A frame that was on its way when the size changed may have left the scrolling region of the
 * old one, and curses does not know. What comes next begins with a cleared screen. */
void caps_reset_region(struct buf *out);

#endif
