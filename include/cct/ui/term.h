/* The terminal: the only user of curses. Main thread only. */
#ifndef CCT_UI_TERM_H
#define CCT_UI_TERM_H

#include <cct/ui/canvas.h>
#include <cct/ui/keymap.h>
#include <cct/util/buf.h>
#include <cct/util/err.h>

struct term_opts {
    bool ascii, no_color;
    const struct theme *theme; /* borrowed, must live */
};
/* newterm on the controlling tty's stdin/stdout. ERR_UNSUPPORTED with a sentence: not
 * a terminal, TERM=dumb or unset (what to use instead). A missing terminfo entry
 * falls back to xterm-256color, told in *note (static, or NULL). Installs crash
 * handlers that restore the modes by write() only. */
int term_open(const struct term_opts *o, const char **note, struct err *e);
void term_close(void);             /* restore every mode; safe twice */
void term_suspend(void);           /* ^Z: restore, SIGTSTP, come back */
void term_size(int *h, int *w);
/* The size from the kernel again (after SIGWINCH). */
void term_resized(void);
void term_theme(const struct theme *t);
/* Show a canvas: only cells that changed go out, one write per frame, inside mode
 * 2026 when the terminal said it knows it. False: the tty is gone. */
bool term_flush(const struct canvas *c);
void term_redraw(void);            /* next flush sends everything */
/* Next key, 0 when none waits; never blocks. With K_PASTE the text is in *paste
 * (borrowed until the next call). */
key_code term_key(const char **paste, size_t *len);
bool term_is_utf8(void);
int term_colors(void);
void term_bell(void);
/* Counters since start, for the benchmarks. */
struct term_stats {
    uint64_t frames, bytes, writes;
    int64_t max_frame_us;
};
void term_stats(struct term_stats *s);

#endif
