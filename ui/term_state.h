/* The terminal that is open, for term.c and term_frame.c alone: a process has one, and a crash
 * of any thread must find it without being handed it. */
#ifndef CCT_UI_TERM_STATE_H
#define CCT_UI_TERM_STATE_H

#include "term_priv.h"

#include <stdio.h>
#include <termios.h>

struct terminal {
    bool open, ascii, utf8, full;
    int tty;               /* the terminal: never blocks if `own` */
    bool own;              /* tty is a description of ours, not the one the shell has too */
    int mem;               /* memory file that curses writes to during a frame */
    int out;               /* descriptor number curses was given */
    FILE *outf;
    struct screen *screen; /* SCREEN, to curses */
    struct termios saved;
    bool saved_ok;
    struct palette pal;
    struct canvas shown;   /* what curses has been told */
    struct buf frame;      /* bytes not yet written */
    struct buf raw;        /* of curses, before colours are spelled out */
    struct buf spelled;    /* and before it is made shorter */
    struct shortener *shortener; /* NULL: the terminal is none that it knows */
    bool fresh;            /* this frame sends everything */
    bool home;             /* the cursor stands in the first cell before it */
    bool gone;
    bool margins;          /* left and right margins are switched on */
    struct buf ahead;      /* of the frame: what the terminal scrolls by itself */
    bool mouse;            /* it is reported */
    bool returned;         /* the next frame is the first one after an absence */
    bool lent;             /* another program has the terminal */
    bool titled;           /* the title that there was is kept by the terminal */
    struct key_decoder *keys;
    int64_t read_at;       /* mono ms of the last bytes from the line */
    int heap;              /* keys since they came, and one for what came just before them */
    bool behind;           /* bytes waited already when a question was shown */
    struct term_stats stats;
};
extern struct terminal the_term;

/* Where tty is the shell's description, too, it blocks except while we write (term.c).
 * Async-signal-safe. */
void term_set_blocking(bool on);
/* While a frame is made, curses writes into the memory file (term_frame.c). */
bool term_capture_begin(void);
/* What curses wrote since, onto the frame, inside the marks where the terminal knows them. */
void term_capture_end(bool marks);

#endif
