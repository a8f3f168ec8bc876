/* The streaming cleaner: bytes to code points, code points through a small terminal
 * parser, text into a line of cells. Nothing of a sequence is ever kept, so no
 * state of the parser can let one out. */
#include <cct/text/clean.h>

#include "cellline.h"
#include "clean_priv.h"
#include "scan.h"
#include "sgr.h"
#include "width_table.h"
#include <cct/text/width.h>
#include <cct/util/utf8.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEQ_BYTES 4096u /* an unterminated sequence ends here */
#define CP_REPLACE 0xFFFDu
#define REPLACEMENT "\xEF\xBF\xBD"
enum { BS = 0x08, TAB = 0x09, LF = 0x0A, CR = 0x0D, CAN = 0x18, SUB = 0x1A, ESC = 0x1B };
enum { C1_DCS = 0x90, C1_SOS = 0x98, C1_CSI = 0x9B, C1_ST, C1_OSC, C1_PM, C1_APC };

enum parse { P_TEXT, P_ESC, P_ESC_INTER, P_CSI, P_STRING, P_STRING_ESC };

struct clean {
    struct cellline line;
    struct text_attr attr;
    enum parse parse;
    unsigned seq;      /* bytes of the sequence so far */
    bool plain_csi;    /* no private marker, no intermediate */
    bool osc;          /* the string may end with BEL */
    struct sgr params; /* of the CSI being read */
    char u8[6];        /* a character cut by a chunk border */
    unsigned u8_n, u8_need;
    bool one_line;    /* LF, CR and TAB are spaces */
    bool after_cr;    /* one_line: the LF of CR LF adds nothing */
    clean_line_fn fn; /* during a call of feed or flush */
    void *ctx;
};

struct clean *clean_new(void)
{
    struct clean *c = xcalloc(1, sizeof(*c));
    c->attr = ATTR_DEFAULT;
    return c;
}

void clean_free(struct clean *c)
{
    if (!c)
        return;
    cellline_release(&c->line);
    free(c);
}

struct clean *clean_new_one_line(void)
{
    struct clean *c = clean_new();
    c->one_line = true;
    return c;
}

size_t clean_columns(const struct clean *c)
{
    return c->line.col;
}

static void end_line(struct clean *c)
{
    size_t len, n_runs;
    const struct text_run *runs;
    const char *text = cellline_text(&c->line, &len, &runs, &n_runs);
    c->fn(c->ctx, text, len, runs, n_runs);
    cellline_clear(&c->line);
}

/* A character from U+00A0 on, s its n bytes. */
static void put_printable(struct clean *c, uint32_t cp, const char *s, size_t n)
{
    char shown[16];
    enum cp_class cls = width_class(cp);
    switch (cls) {
    case CP_DROP:
        break;
    case CP_SHOW:
        n = (size_t)snprintf(shown, sizeof(shown), "<U+%04X>", (unsigned)cp);
        cellline_ascii(&c->line, shown, n, &c->attr);
        break;
    case CP_ZERO:
        cellline_mark(&c->line, s, n, &c->attr);
        break;
    case CP_BAD:
        cellline_char(&c->line, REPLACEMENT, 3, width_cells(width_class(CP_REPLACE)), &c->attr);
        break;
    default:
        cellline_char(&c->line, s, n, width_cells(cls), &c->attr);
    }
}

static void begin_sequence(struct clean *c, enum parse p)
{
    c->parse = p;
    if (p == P_ESC)
        c->seq = 0;
    c->osc = false;
    if (p == P_CSI) {
        c->plain_csi = true;
        sgr_begin(&c->params);
    }
}

static void begin_c1(struct clean *c, uint32_t cp)
{
    c->parse = P_TEXT;
    c->seq = 0;
    if (cp == C1_CSI)
        begin_sequence(c, P_CSI);
    else if (cp == C1_DCS || cp == C1_SOS || cp == C1_OSC || cp == C1_PM || cp == C1_APC)
        begin_sequence(c, P_STRING);
    c->osc = cp == C1_OSC;
}

static void put_text(struct clean *c, uint32_t cp)
{
    if (cp >= 0xA0) {
        char s[4];
        put_printable(c, cp, s, utf8_encode(s, cp));
    } else if (cp >= 0x80) {
        begin_c1(c, cp);
    } else if (cp >= 0x20) {
        char ch = (char)cp;
        if (cp != 0x7F)
            cellline_ascii(&c->line, &ch, 1, &c->attr);
    } else if (c->one_line) {
        if (cp == TAB || cp == CR || (cp == LF && !c->after_cr))
            cellline_ascii(&c->line, " ", 1, &c->attr);
        c->after_cr = cp == CR;
        return;
    } else if (cp == TAB) {
        cellline_tab(&c->line, &c->attr);
    } else if (cp == CR) {
        cellline_home(&c->line);
    } else if (cp == BS) {
        cellline_back(&c->line);
    } else if (cp == LF) {
        end_line(c);
    }
    c->after_cr = false;
}

static void feed_esc(struct clean *c, uint32_t cp)
{
    if (cp < 0x20 || cp == 0x7F)
        return; /* control bytes inside a sequence vanish */
    switch (cp) {
    case '[':
        begin_sequence(c, P_CSI);
        break;
    case ']':
        begin_sequence(c, P_STRING);
        c->osc = true;
        break;
    case 'P': /* DCS */
    case 'X': /* SOS */
    case '^': /* PM */
    case '_': /* APC */
    case 'k': /* the window title of screen and tmux */
        begin_sequence(c, P_STRING);
        break;
    default:
        c->parse = cp < 0x30 ? P_ESC_INTER : P_TEXT;
    }
}

/* Of all that moves or erases, only what programs put after a progress bar's CR
 * has a meaning inside one line. */
static void finish_csi(struct clean *c, uint32_t final)
{
    c->parse = P_TEXT;
    if (!c->plain_csi)
        return;
    if (final == 'm') {
        sgr_apply(&c->params, &c->attr);
    } else if (c->one_line || c->params.n > 1) {
        return;
    } else if (final == 'K' && (c->params.v[0] == 0 || c->params.v[0] == 2)) {
        if (c->params.v[0] == 2)
            cellline_home(&c->line);
        cellline_erase_end(&c->line);
    } else if (final == 'G' && c->params.v[0] <= 1) {
        cellline_home(&c->line);
    }
}

static void feed_csi(struct clean *c, uint32_t cp)
{
    if (cp < 0x20 || cp == 0x7F)
        return;
    if (cp >= 0x40)
        finish_csi(c, cp);
    else if (cp >= 0x30 && cp <= 0x3B && c->plain_csi)
        sgr_feed(&c->params, (char)cp);
    else
        c->plain_csi = false;
}

static void feed_string(struct clean *c, uint32_t cp)
{
    if (cp == C1_ST || (cp == 0x07 && c->osc))
        c->parse = P_TEXT;
    else if (cp >= 0x80 && cp < 0xA0)
        begin_c1(c, cp);
}

/* One code point; C1 comes as 0x80..0x9F whatever its form was. */
static void feed_cp(struct clean *c, uint32_t cp)
{
    if (c->parse == P_TEXT || cp == LF) {
        c->parse = P_TEXT;
        if (cp == ESC)
            begin_sequence(c, P_ESC);
        else
            put_text(c, cp);
        return;
    }
    if (cp == CAN || cp == SUB) {
        c->parse = P_TEXT;
        return;
    }
    if (cp == ESC) {
        if (c->parse == P_STRING)
            c->parse = P_STRING_ESC;
        else
            begin_sequence(c, P_ESC);
        return;
    }
    if (c->parse == P_STRING_ESC) {
        /* ESC \ ends the string, any other ESC begins a new sequence */
        begin_sequence(c, P_ESC);
    }
    c->seq += cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    if (c->seq > SEQ_BYTES || (cp >= 0x80 && c->parse != P_STRING)) {
        c->parse = P_TEXT;
        put_text(c, cp);
    } else if (c->parse == P_ESC) {
        feed_esc(c, cp);
    } else if (c->parse == P_CSI) {
        feed_csi(c, cp);
    } else if (c->parse == P_STRING) {
        feed_string(c, cp);
    } else if (cp >= 0x30 && cp != 0x7F) {
        c->parse = P_TEXT; /* the final byte after intermediates */
    }
}

/* Collect by the length a lead byte announces, so that a malformed character
 * (overlong, surrogate, five bytes) is one mark and its rest is not read as C1. */
static void feed_byte(struct clean *c, unsigned char b)
{
    if (c->u8_n > 0) {
        if ((b & 0xC0) == 0x80) {
            c->u8[c->u8_n++] = (char)b;
            if (c->u8_n < c->u8_need)
                return;
            uint32_t cp;
            size_t n = utf8_decode(c->u8, c->u8_n, &cp);
            bool ok = n == c->u8_n && cp != UTF8_BAD;
            c->u8_n = 0;
            feed_cp(c, ok ? cp : CP_REPLACE);
            return;
        }
        c->u8_n = 0;
        feed_cp(c, CP_REPLACE);
    }
    if (b < 0xA0) {
        feed_cp(c, b);
    } else if (b < 0xC0 || b >= 0xFE) {
        feed_cp(c, CP_REPLACE);
    } else {
        c->u8[0] = (char)b;
        c->u8_n = 1;
        c->u8_need = b < 0xE0 ? 2 : b < 0xF0 ? 3 : b < 0xF8 ? 4 : b < 0xFC ? 5 : 6;
    }
}

/* A whole plain line in the input needs no copy. */
static bool hand_through(struct clean *c, const char *s, size_t n)
{
    static const struct text_attr plain = {TEXT_COLOR_DEFAULT, TEXT_COLOR_DEFAULT, 0};
    if (c->one_line || s[n] != '\n' || c->line.head || c->line.tail || c->line.col ||
        n > CELLLINE_MAX_BYTES || !cellline_attr_same(&c->attr, &plain))
        return false;
    c->fn(c->ctx, s, n, NULL, 0);
    return true;
}

/* A short whole colour sequence at s (ESC is there): its bytes, or 0. */
static size_t feed_color(struct clean *c, const char *s, size_t len)
{
    enum { SHORT = 40 };
    size_t n = 2;
    if (len < 3 || s[1] != '[')
        return 0;
    while (n < len && n < SHORT && s[n] >= '0' && s[n] <= ';')
        n++;
    if (n == len || s[n] != 'm')
        return 0;
    sgr_begin(&c->params);
    for (size_t i = 2; i < n; i++)
        sgr_feed(&c->params, s[i]);
    sgr_apply(&c->params, &c->attr);
    return n + 1;
}

/* What most input is made of, without the byte machine: plain runs, whole
 * characters, colours, CR LF. Only between sequences; bytes used, 0 = none of these. */
static size_t feed_fast(struct clean *c, const char *s, size_t len)
{
    uint32_t cp;
    size_t n = scan_plain(s, len);
    if (n > 0) {
        c->after_cr = false;
        if (n < len && hand_through(c, s, n))
            return n + 1;
        cellline_ascii(&c->line, s, n, &c->attr);
    } else if ((n = scan_char(s, len, &cp)) > 0) {
        c->after_cr = false;
        put_printable(c, cp, s, n);
    } else if (s[0] == ESC) {
        n = feed_color(c, s, len);
    } else if (len >= 2 && s[0] == '\r' && s[1] == '\n' && !c->one_line) {
        end_line(c);
        n = 2;
    }
    return n;
}

void clean_feed(struct clean *c, const char *s, size_t len, clean_line_fn fn, void *ctx)
{
    const char *end = s + len;
    c->fn = fn;
    c->ctx = ctx;
    while (s < end) {
        if (c->line.cut && !c->one_line) {
            s = memchr(s, '\n', (size_t)(end - s));
            c->parse = P_TEXT;
            c->u8_n = 0;
            if (!s)
                break;
        }
        if (c->parse == P_TEXT && c->u8_n == 0) {
            size_t n = feed_fast(c, s, (size_t)(end - s));
            s += n;
            if (n > 0)
                continue;
        }
        feed_byte(c, (unsigned char)*s++);
    }
}

const char *clean_pending(struct clean *c, size_t *len, const struct text_run **runs,
                          size_t *n_runs)
{
    return cellline_text(&c->line, len, runs, n_runs);
}

void clean_flush(struct clean *c, clean_line_fn fn, void *ctx)
{
    c->fn = fn;
    c->ctx = ctx;
    if (c->u8_n > 0) {
        c->u8_n = 0;
        feed_cp(c, CP_REPLACE);
    }
    if (c->line.head || c->line.tail)
        end_line(c);
    cellline_clear(&c->line);
    c->parse = P_TEXT;
    c->attr = ATTR_DEFAULT;
    c->after_cr = false;
}
