/* What lies around the screen: multiplexers, mosh, the kind of terminal, as far as the
 * environment tells; and sequences that reach the terminal through them. Pure. */
#ifndef CCT_UI_AROUND_H
#define CCT_UI_AROUND_H

#include <cct/util/buf.h>
#include <stdbool.h>
#include <stddef.h>

enum osc_note { OSC_NOTE_NONE, OSC_NOTE_9, OSC_NOTE_777, OSC_NOTE_99 };
struct around {
    bool tmux, screen, mosh, ssh;
    bool plain;          /* a console or an old terminal: it would print OSC */
    bool title;          /* it takes a window title */
    bool truecolor;
    int background;      /* by COLORFGBG: 0 dark, 1 light, -1 not told */
    enum osc_note note;  /* how it is told of a notification */
};
/* getenv() of a test or the C library's. */
void around_read(struct around *a, char *(*env)(const char *));
/* "auto", "none", "9", "777", "99"; a word that is none of them counts as "auto". */
enum osc_note around_note(const struct around *a, const char *word);
/* A sequence for the terminal itself, through what lies between. */
void around_pass(const struct around *a, struct buf *out, const char *seq, size_t len);

enum { OSC52_MAX = 74994 }; /* characters of base64 that terminals take */
/* Bytes of text[0..len) that fit, on a border of characters. */
size_t around_osc52_fits(const char *text, size_t len);
/* "Put this on the clipboard", for that much. */
void around_osc52(const struct around *a, struct buf *out, const char *text, size_t len);
/* A notification; control characters of title and body vanish, both are cut. id: of its kind,
 * a newer one replaces it where the terminal can. */
void around_notify(const struct around *a, enum osc_note how, struct buf *out, const char *id,
                   const char *title, const char *body);
/* The window's title, cleaned and cut. */
void around_title(struct buf *out, const char *title);

#endif
