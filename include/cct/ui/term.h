/* The terminal: the only user of curses. Main thread only. */
#ifndef CCT_UI_TERM_H
#define CCT_UI_TERM_H

#include <cct/ui/canvas.h>
#include <cct/ui/keymap.h>
#include <cct/util/buf.h>
#include <cct/util/err.h>

struct term_opts {
    bool ascii;
    struct theme_wish color;
    const struct theme *theme; /* borrowed, must live */
};
/* Take stdin and stdout over. ERR_UNSUPPORTED with a sentence: not a terminal, TERM unset
 * or dumb (and what to use instead). A missing terminfo entry falls back to
 * xterm-256color, told in *note (static, or NULL). Installs crash handlers that restore
 * the modes with async-safe calls only. */
int term_open(const struct term_opts *o, const char **note, struct err *e);
void term_close(void);   /* restore every mode; safe twice */
void term_suspend(void); /* ^Z: restore, stop the process group, come back, redraw */
/* Give the terminal to a program, as it was before term_open(), and take it back. Between
 * the two nothing is read and nothing is written. What was typed for us and not taken by then
 * is the program's: it is added to `typed`, or dropped when that is NULL. It may be a password:
 * no copy stays here, and who gets it wipes it. */
void term_lend(struct buf *typed);
void term_take(void);
void term_size(int *h, int *w);
/* Ask the kernel for the size again (after SIGWINCH). */
void term_resized(void);
/* Show a canvas: only cells that changed go out, one write a frame, inside mode 2026 where
 * the terminal said it knows it. False: the tty is gone. */
bool term_flush(const struct canvas *c);
void term_redraw(void);  /* the next flush sends everything */
/* Bytes for the terminal itself, behind what waits: whole sequences that leave cursor and
 * cells as they are. */
void term_send(const char *bytes, size_t len);
/* The window has a title: the terminal keeps it, and has it again at the end. */
void term_keep_title(void);
/* Frames wait in the kernel because the line is slow (the last frame is not out yet). */
bool term_backed_up(void);

/* Next key, 0 when none waits; never blocks. With K_PASTE the text is in *paste (borrowed
 * until the next call); K_HANGUP: the tty is gone. */
key_code term_key(const char **paste, size_t *len);
/* Of the last K_MOUSE. */
void term_mouse(struct mouse *m);
/* Have the mouse reported, or not: the terminal's own selection works again. */
void term_mouse_on(bool on);
/* The last key came by itself: nothing shortly before it, nothing behind it. */
bool term_key_alone(void);
/* A question is about to be shown: what waits already was typed before it. */
void term_mark_ahead(void);
/* ms until a lone ESC counts as the Esc key; -1 when none is pending. */
int term_key_wait(void);
bool term_is_utf8(void);
/* Another theme, from the next flush on; borrowed, must live. Without colours every theme is
 * shown by weight, underline and reverse, as "mono" has them. */
void term_theme(const struct theme *t);
/* Ask for the background's colour; nothing waits for the answer. */
void term_ask_background(void);
/* 0 dark, 1 light, -1 no answer yet. */
int term_background(void);
/* Colours by the description of $TERM alone; negative: there is none. For a terminal
 * that is not opened by us. */
int term_probe_colors(struct err *e);

/* Counters since start, for the benchmarks. */
struct term_stats {
    uint64_t frames, bytes, writes;
    int64_t max_frame_us;
};
void term_stats(struct term_stats *s);

/* --- the byte decoder behind term_key(), by itself so that it can be tested ----- */
struct key_decoder;
struct key_decoder *key_decoder_new(int esc_delay_ms);
void key_decoder_free(struct key_decoder *d);
/* What this terminal sends for a special key, from terminfo (NULL seq is fine). */
void key_decoder_learn(struct key_decoder *d, const char *seq, key_code k);
void key_decoder_feed(struct key_decoder *d, const char *bytes, size_t len, int64_t now_ms);
/* Next whole key, 0 = none. Unknown sequences are swallowed; answers to queries are kept
 * apart (key_decoder_sync). After a lone Esc decided by time, bytes within 150 ms that
 * complete a sequence are dropped with it; after the torn begin of an answer, its rest for as
 * long as no second of silence comes. */
key_code key_decoder_next(struct key_decoder *d, int64_t now_ms, const char **paste,
                          size_t *len);
int key_decoder_wait(const struct key_decoder *d, int64_t now_ms);
bool key_decoder_empty(const struct key_decoder *d); /* no byte waits */
/* The bytes that wait are added to `typed` (NULL: are dropped): they are another's. */
void key_decoder_rest(struct key_decoder *d, struct buf *typed);
/* 0 no answer yet, 1 the terminal knows mode 2026, -1 it does not. */
int key_decoder_sync(const struct key_decoder *d);
int key_decoder_margins(const struct key_decoder *d); /* the same for mode 69 */
/* Reports of the mouse (mode 1006) are keys, else they are swallowed. */
void key_decoder_mouse_on(struct key_decoder *d, bool on);
void key_decoder_mouse(const struct key_decoder *d, struct mouse *m);
int key_decoder_background(const struct key_decoder *d); /* as term_background() */

/* --- 24-bit colours by 256 numbers, by themselves so that they can be tested ------- */
struct color_slots;
struct color_slots *color_slots_new(void);
void color_slots_free(struct color_slots *s);
/* The number from 16 to 255 that stands for an RGB or a palette's number >= 16, always the
 * same one; -1: all are taken. */
int color_slot(struct color_slots *s, uint32_t color);
/* What was written with these numbers, with the colours that they stand for. */
void color_slots_spell(const struct color_slots *s, const char *text, size_t len, struct buf *out);

#endif
