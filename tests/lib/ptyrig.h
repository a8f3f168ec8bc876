/* A program on a pseudo terminal: its output goes into a reference terminal (libvterm)
 * and past a judge that knows every sequence we may send; keys, sizes and signals go to
 * the program. Waits have deadlines, nothing sleeps. One owner; main thread. */
#ifndef CCT_TESTS_LIB_PTYRIG_H
#define CCT_TESTS_LIB_PTYRIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <termios.h>
#include <vterm.h>

/* What was on the wire: states of modes, and the first thing that may not be there. */
struct wire_judge {
    int state;
    char seq[64];      /* the sequence at hand */
    size_t n;
    uint32_t cp;
    int cp_left;
    bool padding;      /* NULs are padding (old terminals) */
    bool strings;      /* OSC may come: not in terminals that print it */
    bool esc;          /* the ESC of a string's end */
    struct wire_judge *inner; /* of what is passed through tmux or screen */
    unsigned osc[3];   /* seen: clipboard, notifications, titles */
    bool alt, paste, focus, mouse, sync, cursor, margins;
    bool may_mouse;    /* it was asked for */
    bool may_ring;     /* the bell */
    unsigned rings;
    char bad[160];     /* "" = all allowed */
};
void judge_init(struct wire_judge *j);
void judge_release(struct wire_judge *j);
void judge_feed(struct wire_judge *j, const char *s, size_t len);

struct ptyrig {
    pid_t pid;
    int fd;            /* master; -1 after rig_hang_up */
    int h, w;
    VTerm *vt;
    VTermScreen *screen;
    struct wire_judge judge;
    bool answer_margins; /* ... 69 */
    bool answer_sync;  /* answer DECRQM 2026 with "known" */
    bool asked_sync;
    uint64_t bytes;    /* read from the program so far */
    uint64_t reads;
    bool exited;
    int status;        /* of waitpid */
    struct termios before;
    FILE *tape;        /* gets all that is read, too; may be NULL */
};
/* Start argv on a pty of h x w. env: "K=V" sets, "K" unsets; NULL-ended, may be NULL. Ends
 * the test program when the system has no pty. */
void rig_start(struct ptyrig *r, int h, int w, char *const argv[], const char *const env[]);
/* Kill what is left, free everything. */
void rig_stop(struct ptyrig *r);
void rig_send(struct ptyrig *r, const char *bytes, size_t len);
void rig_type(struct ptyrig *r, const char *text);
/* Read until `text` stands on the screen (or not any more); false after ms. */
bool rig_wait(struct ptyrig *r, const char *text, int ms);
void rig_must_show(struct ptyrig *r, const char *text, int ms); /* dies with the screen */
int rig_must_row(struct ptyrig *r, const char *text); /* the first on which it stands now */
bool rig_wait_gone(struct ptyrig *r, const char *text, int ms);
/* The same on one row alone: quick enough to time it. */
bool rig_wait_row(struct ptyrig *r, int y, const char *text, bool shown, int ms);
/* Read until ok() says so: it looks by rig_cell or rig_row. */
bool rig_wait_for(struct ptyrig *r, bool (*ok)(struct ptyrig *r, void *arg), void *arg, int ms);
/* The character at a cell, 0 for none; a row as text, trailing blanks cut, for the caller to free. */
uint32_t rig_cell(struct ptyrig *r, int y, int x);
char *rig_row(struct ptyrig *r, int y);
/* Read until nothing came for quiet_ms, at most ms. */
bool rig_wait_quiet(struct ptyrig *r, int quiet_ms, int ms);
/* Read until the program ended; its status is in r->status. */
bool rig_wait_exit(struct ptyrig *r, int ms);
void rig_resize(struct ptyrig *r, int h, int w);
void rig_hang_up(struct ptyrig *r); /* close the terminal */
/* The screen as text, a line each, trailing blanks cut; the caller frees. */
char *rig_screen(struct ptyrig *r);
void rig_cursor(struct ptyrig *r, int *y, int *x);
/* NULL when all is as it was before the start, else what is not. */
const char *rig_not_restored(struct ptyrig *r);
int64_t rig_now_ms(void);

#endif
