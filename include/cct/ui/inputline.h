/* A multi-line text editor for one field: readline keys, clusters, cells, history. Pure state but
 * for what was killed (^K, ^U, ^W) in a message (folds): that is one for all of them, as in
 * readline. Drawn on a canvas. Main thread only. */
#ifndef CCT_UI_INPUTLINE_H
#define CCT_UI_INPUTLINE_H

#include <cct/ui/canvas.h>
#include <cct/ui/keymap.h>
#include <cct/util/buf.h>

/* What one character of the text (U+FFFC) stands for: a long paste, or a file that was
 * chosen. Neither can come from outside as text. */
struct inputline_object {
    char *text;  /* of a paste; NULL: a file */
    char *path;  /* of a file, as it is written behind its '@' */
    char *label; /* what is shown */
};
struct inputline {
    struct buf text;   /* UTF-8, LF between lines; a U+FFFC for each object */
    size_t cursor;     /* byte offset on a cluster border */
    bool multiline;
    bool folds;        /* a message: long pastes become objects */
    size_t max;        /* bytes of the whole; what does not fit is refused as a whole */
    struct inputline_object *objects; /* in the order of their characters */
    size_t n_objects;
    struct buf whole;  /* of inputline_text() */
    char *kill;        /* ^K/^U/^W text for ^Y; messages share one */
    int scroll;        /* first visible row */
    char **history;    /* oldest first */
    size_t n_history, at_history;
    size_t history_bytes; /* with more than 64 KiB the oldest go, those over 4 KiB first */
    char *draft;       /* what was typed before going into history */
    char *sought;      /* text that history was searched for last, NULL = none */
};
void inputline_init(struct inputline *l, bool multiline, size_t max);
void inputline_release(struct inputline *l);
void inputline_set(struct inputline *l, const char *text);
/* The whole: pastes in full, "@path" for a file. Borrowed until the next change or call. */
const char *inputline_text(struct inputline *l);
size_t inputline_bytes(const struct inputline *l); /* of that */
/* Insert text: control bytes but LF and TAB are dropped, CR LF and CR become LF (a space in
 * single-line fields). False, and nothing is inserted, when it does not fit. */
bool inputline_insert(struct inputline *l, const char *s, size_t len);
/* The same for a paste: with `folds` a long one is shown as "[pasted 120 lines]". */
bool inputline_paste(struct inputline *l, const char *s, size_t len);
/* Every paste as text. False: there is none. */
bool inputline_unfold(struct inputline *l);
/* The text from `from` up to the cursor becomes that file. False: it does not fit. */
bool inputline_attach(struct inputline *l, size_t from, const char *path);
/* Path of the i-th file in the text, NULL behind the last one. */
const char *inputline_file(const struct inputline *l, size_t i);
/* An action of SCOPE_LINE, or else a printable character; false when it is neither. */
bool inputline_key(struct inputline *l, enum action a, key_code k);
void inputline_history_add(struct inputline *l, const char *text);
bool inputline_history_prev(struct inputline *l); /* also moves a row up inside */
bool inputline_history_next(struct inputline *l);
/* The next earlier one that has the text in it; of what it found the one before that. False,
 * and nothing changes: there is none. */
bool inputline_history_find(struct inputline *l);
/* Rows wanted at width w (wrapped), and drawing with the cursor placed. */
int inputline_rows(struct inputline *l, int w);
void inputline_draw(struct inputline *l, struct canvas *c, struct rect r, enum theme_role role,
                    bool focused);

#endif
