/* A multi-line text editor for one field: readline keys, clusters, cells, history.
 * Pure state; drawn on a canvas. Main thread only. */
#ifndef CCT_UI_INPUTLINE_H
#define CCT_UI_INPUTLINE_H

#include <cct/ui/canvas.h>
#include <cct/ui/keymap.h>
#include <cct/util/buf.h>

struct inputline {
    struct buf text;   /* UTF-8, LF between lines */
    size_t cursor;     /* byte offset on a cluster border */
    bool multiline;
    size_t max;        /* bytes; more is refused (a paste is cut on a border) */
    char *kill;        /* ^K/^U/^W text for ^Y */
    int scroll;        /* first visible row */
    char **history;    /* oldest first */
    size_t n_history, at_history;
    char *draft;       /* what was typed before going into history */
};
void inputline_init(struct inputline *l, bool multiline, size_t max);
void inputline_release(struct inputline *l);
void inputline_set(struct inputline *l, const char *text);
const char *inputline_text(struct inputline *l);
/* Insert typed or pasted text: control bytes but LF and TAB are dropped, CR LF and CR
 * become LF (a space in single-line fields). False when the limit cut it. */
bool inputline_insert(struct inputline *l, const char *s, size_t len);
/* Editing keys (arrows, Home, ^A ^E ^B ^F ^K ^U ^W ^Y ^D ^H, Alt-b f d Backspace) and
 * printable characters; false when the key is none of its own. */
bool inputline_key(struct inputline *l, key_code k);
void inputline_history_add(struct inputline *l, const char *text);
bool inputline_history_prev(struct inputline *l); /* also moves a row up inside */
bool inputline_history_next(struct inputline *l);
/* Rows wanted at width w (wrapped), and drawing with the cursor placed. */
int inputline_rows(struct inputline *l, int w);
void inputline_draw(struct inputline *l, struct canvas *c, struct rect r, enum theme_role role,
                    bool focused);

#endif
