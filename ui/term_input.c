/* Bytes of the terminal to keys: UTF-8, CSI and SS3 with modifiers, bracketed paste,
 * focus, answers to queries. What is not known is swallowed whole, so that no part of a
 * sequence can act as a command. */
#include "term_input_priv.h"

#include <cct/secrets/secret.h>
#include <cct/util/limits.h>
#include <cct/util/utf8.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SEQ = 64, CTRL_C = 3, LATE_MS = 150,
       PASTE_SILENCE_MS = 10000, PLEA_MS = 100,
       X10_MOUSE_BYTES = 3, BURST_BYTES = 16,
       ANSWER_LATE_MS = 1000, /* of what no finger begins: an answer that a line holds up */
       MAX_STRING_TAIL = 16 << 20 /* the terminal's clipboard may be in it */ };

struct key_decoder *key_decoder_new(int esc_delay_ms)
{
    struct key_decoder *d = xcalloc(1, sizeof(*d));
    d->esc_delay_ms = esc_delay_ms;
    d->background = -1;
    buf_init(&d->paste, 4 * LIM_MESSAGE_BYTES);
    return d;
}

void key_decoder_free(struct key_decoder *d)
{
    if (!d)
        return;
    buf_release(&d->in);
    buf_release(&d->paste);
    free(d);
}

void key_decoder_learn(struct key_decoder *d, const char *seq, key_code k)
{
    if (!seq || strlen(seq) < 2 || strlen(seq) >= sizeof(d->learned[0].seq) ||
        d->n_learned == MAX_LEARNED)
        return;
    memcpy(d->learned[d->n_learned].seq, seq, strlen(seq) + 1);
    d->learned[d->n_learned++].key = k;
}

void term_begin_paste(struct key_decoder *d)
{
    d->pasting = true;
    buf_clear(&d->paste);
}

static const char paste_end[] = "\033[201~";

/* After a silence in a paste: fingers do not bring so much at once. */
static bool goes_on(const char *bytes, size_t len)
{
    return len >= BURST_BYTES || memmem(bytes, len, paste_end, sizeof(paste_end) - 1);
}

/* ^C or Esc alone, in a paste whose end was lost: pressing it does not put off its end. */
static bool is_plea(const struct key_decoder *d, const char *bytes, size_t len, int64_t now_ms)
{
    return d->pasting && len == 1 && (bytes[0] == CTRL_C || bytes[0] == ESC) &&
           now_ms - d->fed_at >= PLEA_MS;
}

void key_decoder_feed(struct key_decoder *d, const char *bytes, size_t len, int64_t now_ms)
{
    if (d->torn && goes_on(bytes, len))
        term_begin_paste(d);
    d->torn = false;
    if (d->in.len == 0 && len > 0 && bytes[0] == ESC)
        d->esc_at = now_ms;
    if (!is_plea(d, bytes, len, now_ms))
        d->fed_at = now_ms;
    buf_add(&d->in, bytes, len);
}

static int late_ms(enum tail t)
{
    return t == TAIL_CSI || t == TAIL_COUNT || t == TAIL_STRING ? ANSWER_LATE_MS : LATE_MS;
}

static void start_tail(struct key_decoder *d, enum tail t, size_t left, int64_t now_ms)
{
    d->tail = t;
    d->tail_left = left;
    d->tail_until = now_ms + late_ms(t);
    d->n_params = 0;
    d->st_due = t == TAIL_STRING;
}

static key_code finish(struct key_decoder *d, size_t used, key_code k, int64_t now_ms)
{
    buf_consume(&d->in, used);
    d->esc_at = d->in.len && d->in.p[0] == ESC ? now_ms : 0;
    return k;
}

static key_code plain(struct key_decoder *d, size_t at, size_t *used)
{
    const char *s = d->in.p + at;
    unsigned char c = (unsigned char)s[0];
    *used = at + 1;
    if (c == '\r')
        return K_ENTER;
    if (c == '\t')
        return K_TAB;
    if (c == 0x7F)
        return K_BACKSPACE;
    if (c < 0x80)
        return c == 0 ? K_UNKNOWN : c;
    uint32_t cp;
    size_t n = utf8_decode(s, d->in.len - at, &cp);
    if (n == 0) {
        *used = 0;
        return 0;
    }
    *used = at + n;
    return cp == UTF8_BAD || cp < 0xA0 ? K_UNKNOWN : cp;
}

static key_code learned(struct key_decoder *d, size_t *used)
{
    for (size_t i = 0; i < d->n_learned; i++) {
        const char *seq = d->learned[i].seq;
        size_t n = strlen(seq);
        if (d->in.len < n || memcmp(seq, d->in.p, n) != 0)
            continue;
        *used = n;
        return d->learned[i].key;
    }
    return 0;
}

/* ESC [ at the front; used 0 = more is needed. */
static key_code front_csi(struct key_decoder *d, size_t *used, bool timed_out, int64_t now_ms)
{
    const char *s = d->in.p;
    size_t len = d->in.len, end = term_csi_end(s, len);
    if (!end && (timed_out || len > MAX_SEQ)) { /* what follows still belongs to it */
        start_tail(d, TAIL_CSI, 0, now_ms);
        for (size_t i = 2; i < len && d->n_params < sizeof(d->params); i++)
            d->params[d->n_params++] = s[i];
        *used = len;
        return K_UNKNOWN;
    }
    if (!end)
        return 0;
    unsigned char last = (unsigned char)s[end];
    *used = end + 1;
    if (last < 0x40 || last > 0x7E) { /* broken off: what broke it counts by itself */
        *used = end;
        return K_UNKNOWN;
    }
    bool bare = end == 2;
    size_t more = bare && last == '[' ? 1 : bare && last == 'M' ? X10_MOUSE_BYTES : 0;
    if (more && len < end + 1 + more) {
        if (!timed_out) {
            *used = 0;
            return 0;
        }
        start_tail(d, TAIL_COUNT, end + 1 + more - len, now_ms);
        *used = len;
        return K_UNKNOWN;
    }
    *used += more;
    if (more == 1) /* linux console: ESC [ [ A is F1 */
        return s[3] >= 'A' && s[3] <= 'E' ? K_F1 + (key_code)(s[3] - 'A') : K_UNKNOWN;
    return more ? K_UNKNOWN : term_decode_csi(d, s, end);
}

/* ESC O at the front: one letter, in some terminals with a modifier before it. */
static key_code front_ss3(struct key_decoder *d, size_t *used, bool timed_out, int64_t now_ms)
{
    const char *s = d->in.p;
    size_t len = d->in.len, i = 2;
    while (i < len && i < MAX_SEQ && ((s[i] >= '0' && s[i] <= '9') || s[i] == ';'))
        i++;
    if (i < len) {
        *used = (unsigned char)s[i] < 0x20 ? i : i + 1;
        return s[i] == 'M' ? K_ENTER : term_csi_letter(s[i]); /* keypad Enter, or a letter */
    }
    if (!timed_out)
        return 0;
    start_tail(d, TAIL_SS3, 0, now_ms);
    *used = len;
    return K_UNKNOWN;
}

static key_code front_string(struct key_decoder *d, size_t *used, bool timed_out,
                             int64_t now_ms)
{
    enum { MAX_STRING = 4096 };
    size_t n = term_string_end(d->in.p, d->in.len);
    if (!n && !timed_out && d->in.len <= MAX_STRING)
        return 0;
    if (!n && d->in.len == 2) { /* Alt and this character */
        *used = 2;
        return (key_code)(unsigned char)d->in.p[1] | KEYC_ALT;
    }
    if (!n)
        start_tail(d, TAIL_STRING, MAX_STRING_TAIL, now_ms);
    if (n)
        term_take_background(d, d->in.p, n);
    *used = n ? n : d->in.len;
    return K_UNKNOWN;
}

/* The ESC at the front: *used = 0 means more bytes are needed. */
static key_code decode_esc(struct key_decoder *d, size_t *used, bool timed_out, int64_t now_ms)
{
    key_code k = learned(d, used);
    bool ends_string = d->st_due && now_ms <= d->tail_until;
    if (k)
        return k;
    *used = 0;
    if (d->in.len == 1) {
        if (!timed_out)
            return 0;
        start_tail(d, ends_string ? TAIL_ST : TAIL_INTRO, 1, now_ms);
        *used = 1;
        return ends_string ? K_UNKNOWN : K_ESC;
    }
    char c = d->in.p[1];
    d->st_due = false;
    if (ends_string && c == '\\') {
        *used = 2;
        return K_UNKNOWN;
    }
    if (c == '[')
        return front_csi(d, used, timed_out, now_ms);
    if (c == 'O')
        return front_ss3(d, used, timed_out, now_ms);
    if (c && strchr("]P_^X", c))
        return front_string(d, used, timed_out, now_ms);
    if (c == ESC) {
        *used = 1; /* Esc twice: the first one is whole */
        return K_ESC;
    }
    k = plain(d, 1, used);
    if (!*used && timed_out) {
        *used = d->in.len;
        return K_UNKNOWN;
    }
    return k && k != K_UNKNOWN ? k | KEYC_ALT : k;
}

static bool take_paste(struct key_decoder *d, int64_t now_ms)
{
    const size_t n = sizeof(paste_end) - 1;
    char *hit = d->in.len ? memmem(d->in.p, d->in.len, paste_end, n) : NULL;
    bool given_up = !hit && now_ms - d->fed_at >= PASTE_SILENCE_MS; /* its end was lost */
    size_t text = hit            ? (size_t)(hit - d->in.p)
                  : given_up     ? d->in.len
                  : d->in.len >= n ? d->in.len - (n - 1)
                                   : 0;
    if (text) {
        if (!d->paste.over) /* else it is refused as a whole */
            buf_add(&d->paste, d->in.p, text);
        buf_consume(&d->in, text);
    }
    if (!hit && !given_up)
        return false;
    finish(d, hit ? n : 0, 0, now_ms);
    d->pasting = false;
    d->torn = given_up;
    return true;
}

/* The next byte in the tail: true when it ends it. */
static bool tail_ends(struct key_decoder *d, unsigned char c)
{
    switch (d->tail) {
    case TAIL_CSI:
        if (c < 0x40) {
            if (d->n_params < sizeof(d->params))
                d->params[d->n_params++] = (char)c;
            return false;
        }
        if (c == '~' && d->n_params == 3 && memcmp(d->params, "200", 3) == 0)
            term_begin_paste(d);
        if (d->n_params == 0 && (c == '[' || c == 'M')) {
            d->tail = TAIL_COUNT;
            d->tail_left = c == '[' ? 1 : X10_MOUSE_BYTES;
            return false;
        }
        return true;
    case TAIL_SS3:
        return !((c >= '0' && c <= '9') || c == ';');
    case TAIL_STRING:
        return c == 7 || --d->tail_left == 0;
    default:
        return --d->tail_left == 0;
    }
}

/* A slow line can tear a sequence: what comes late of it must not act as keys. */
static bool drop_tail(struct key_decoder *d, int64_t now_ms)
{
    unsigned char c = (unsigned char)d->in.p[0];
    enum tail t = d->tail;
    if (t == TAIL_NONE)
        return false;
    bool counted = t == TAIL_COUNT, own = c >= 0x20 && c < 0x7F;
    if (t == TAIL_ST && c != '\\') {
        d->tail = TAIL_NONE;
        return false;
    }
    if (now_ms > d->tail_until || !(own || counted || (t == TAIL_STRING && c != ESC)) ||
        (t == TAIL_INTRO && c != '[' && c != 'O')) {
        d->tail = TAIL_NONE;
        return false;
    }
    if (t == TAIL_INTRO)
        start_tail(d, c == '[' ? TAIL_CSI : TAIL_SS3, 0, now_ms);
    else if (tail_ends(d, c))
        d->tail = TAIL_NONE;
    d->tail_until = now_ms + late_ms(t);
    finish(d, 1, 0, now_ms);
    return true;
}

/* What people paste may be a key or a passphrase: nothing of it stays here. */
static void wipe_paste(struct key_decoder *d)
{
    d->given = false;
    secret_wipe(d->paste.p, d->paste.cap);
    buf_clear(&d->paste);
    if (d->in.cap > d->in.len)
        secret_wipe(d->in.p + d->in.len, d->in.cap - d->in.len);
}

key_code key_decoder_next(struct key_decoder *d, int64_t now_ms, const char **paste,
                          size_t *len)
{
    if (d->given)
        wipe_paste(d);
    if (paste) {
        *paste = NULL;
        *len = 0;
    }
    for (;;) {
        if (d->pasting) {
            if (!take_paste(d, now_ms))
                return 0;
            if (d->paste.over)
                return K_PASTE_LONG;
            if (paste) {
                *paste = buf_str(&d->paste);
                *len = d->paste.len;
            }
            d->given = true;
            return K_PASTE;
        }
        if (d->in.len == 0)
            return 0;
        size_t used;
        key_code k;
        if (drop_tail(d, now_ms))
            continue;
        if (d->in.p[0] == ESC) {
            bool late = d->esc_at && now_ms - d->esc_at >= d->esc_delay_ms;
            k = decode_esc(d, &used, late, now_ms);
        } else {
            k = plain(d, 0, &used);
        }
        if (used == 0)
            return 0;
        finish(d, used, k, now_ms);
        if (k != K_UNKNOWN)
            return k;
    }
}

bool key_decoder_empty(const struct key_decoder *d)
{
    return d->in.len == 0 && !d->pasting;
}

void key_decoder_rest(struct key_decoder *d, struct buf *typed)
{
    if (typed)
        buf_add(typed, d->in.p, d->in.len);
    secret_wipe(d->in.p, d->in.cap);
    buf_clear(&d->in);
    d->esc_at = 0;
}

int key_decoder_wait(const struct key_decoder *d, int64_t now_ms)
{
    if (!d->pasting && (d->in.len == 0 || d->in.p[0] != ESC))
        return -1;
    int64_t left = d->pasting ? d->fed_at + PASTE_SILENCE_MS - now_ms
                              : d->esc_at + d->esc_delay_ms - now_ms;
    return left > 0 ? (int)left : 0;
}

void key_decoder_mouse_on(struct key_decoder *d, bool on)
{
    d->mouse_on = on;
}

void key_decoder_mouse(const struct key_decoder *d, struct mouse *m)
{
    *m = d->mouse;
}

int key_decoder_background(const struct key_decoder *d)
{
    return d->background;
}

int key_decoder_margins(const struct key_decoder *d)
{
    return d->margins;
}

int key_decoder_sync(const struct key_decoder *d)
{
    return d->sync;
}
