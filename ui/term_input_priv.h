/* Between the files that make keys of the terminal's bytes. */
#ifndef CCT_UI_TERM_INPUT_PRIV_H
#define CCT_UI_TERM_INPUT_PRIV_H

#include <cct/ui/term.h>
#include <cct/util/buf.h>

enum { MAX_LEARNED = 40, ESC = 0x1B };

/* What is still to be swallowed of a sequence whose begin was given up by time. */
enum tail { TAIL_NONE, TAIL_INTRO, TAIL_CSI, TAIL_SS3, TAIL_COUNT, TAIL_STRING, TAIL_ST };

struct key_decoder {
    struct buf in;
    struct buf paste;
    bool pasting;
    bool given;        /* the paste was handed out: it may have been a key, and goes */
    bool torn;         /* a paste was given up by time: its rest may come yet */
    int64_t esc_at;    /* when the pending ESC came, 0 = none */
    int64_t fed_at;    /* but for keys of somebody who wants out of a paste */
    enum tail tail;
    int64_t tail_until;
    bool st_due;       /* a string was given up: ESC \ of its end may come yet */
    size_t tail_left;  /* bytes to swallow at most (TAIL_COUNT, TAIL_STRING) */
    char params[8];    /* of a torn CSI: the begin of a paste must be known */
    size_t n_params;
    int esc_delay_ms;
    int sync, margins; /* answers: 1 known, -1 not known */
    bool mouse_on;
    struct mouse mouse;
    int background;    /* 0 dark, 1 light, -1 not told */
    struct {
        char seq[16];
        key_code key;
    } learned[MAX_LEARNED];
    size_t n_learned;
};

/* What comes now belongs to a paste, until its end. */
void term_begin_paste(struct key_decoder *d);

/* Sequences (term_seq.c). */
/* Index of the CSI's last byte, or of the first one that cannot belong to it; 0 = not
 * there yet. */
size_t term_csi_end(const char *s, size_t len);
/* Length of the string sequence (OSC, DCS, ...) at s, 0 = not complete. */
size_t term_string_end(const char *s, size_t len);
/* The key of CSI or SS3 and this letter, or K_UNKNOWN. */
key_code term_csi_letter(char c);
/* A whole CSI: ESC [ params intermediates final. `end` is the final's index. Answers to queries
 * come to d, the begin of a paste begins it: they are K_UNKNOWN. */
key_code term_decode_csi(struct key_decoder *d, const char *s, size_t end);
/* The answer to OSC 11: rgb:RRRR/GGGG/BBBB, each of one to four digits. */
void term_take_background(struct key_decoder *d, const char *s, size_t len);

#endif
