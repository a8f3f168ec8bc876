/* Bytes of the terminal to keys: UTF-8, CSI and SS3 with modifiers, bracketed paste,
 * focus, answers to queries. What is not known is swallowed whole, so that no part of a
 * sequence can act as a command. */
#include <cct/ui/term.h>

#include <cct/util/buf.h>
#include <cct/util/limits.h>
#include <cct/util/utf8.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LEARNED = 40, MAX_SEQ = 64, ESC = 0x1B, LATE_MS = 150 };

struct key_decoder {
    struct buf in;
    struct buf paste;
    bool pasting;
    int64_t esc_at;    /* when the pending ESC came, 0 = none */
    int64_t esc_decided; /* when a lone ESC was taken as the Esc key */
    int esc_delay_ms;
    int sync;
    struct {
        char seq[16];
        key_code key;
    } learned[MAX_LEARNED];
    size_t n_learned;
};

struct key_decoder *key_decoder_new(int esc_delay_ms)
{
    struct key_decoder *d = xcalloc(1, sizeof(*d));
    d->esc_delay_ms = esc_delay_ms;
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

void key_decoder_feed(struct key_decoder *d, const char *bytes, size_t len, int64_t now_ms)
{
    if (d->in.len == 0 && len > 0 && bytes[0] == ESC)
        d->esc_at = now_ms;
    buf_add(&d->in, bytes, len);
}

static key_code finish(struct key_decoder *d, size_t used, key_code k, int64_t now_ms)
{
    buf_consume(&d->in, used);
    d->esc_at = d->in.len && d->in.p[0] == ESC ? now_ms : 0;
    return k;
}

static key_code with_modifier(key_code k, int mod)
{
    /* 1 + bits: 1 shift, 2 alt, 4 ctrl; shift and ctrl of special keys mean the key */
    return mod > 1 && ((mod - 1) & 2) ? k | KEYC_ALT : k;
}

static key_code csi_tilde(int n)
{
    static const struct {
        int n;
        key_code k;
    } table[] = {{1, K_HOME}, {2, K_INSERT}, {3, K_DELETE}, {4, K_END},     {5, K_PGUP},
                 {6, K_PGDN}, {7, K_HOME},   {8, K_END},    {11, K_F1},     {12, K_F1 + 1},
                 {13, K_F1 + 2},  {14, K_F1 + 3},  {15, K_F1 + 4},  {17, K_F1 + 5},
                 {18, K_F1 + 6},  {19, K_F1 + 7},  {20, K_F1 + 8},  {21, K_F1 + 9},
                 {23, K_F1 + 10}, {24, K_F1 + 11}};
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (table[i].n == n)
            return table[i].k;
    return K_UNKNOWN;
}

static key_code csi_letter(char c)
{
    switch (c) {
    case 'A':
        return K_UP;
    case 'B':
        return K_DOWN;
    case 'C':
        return K_RIGHT;
    case 'D':
        return K_LEFT;
    case 'H':
        return K_HOME;
    case 'F':
        return K_END;
    case 'Z':
        return K_BACKTAB;
    case 'P':
        return K_F1;
    case 'Q':
        return K_F1 + 1;
    case 'R':
        return K_F1 + 2;
    case 'S':
        return K_F1 + 3;
    case 'M':
        return K_ENTER; /* keypad in application mode (SS3) */
    case 'I':
        return K_FOCUS_IN;
    case 'O':
        return K_FOCUS_OUT;
    default:
        return K_UNKNOWN;
    }
}

/* Keys sent as CSI code ; modifier u. */
static key_code csi_u(int code, int mod)
{
    bool shift = mod > 1 && ((mod - 1) & 1), alt = mod > 1 && ((mod - 1) & 2);
    if (code == 13)
        return shift || alt ? K_ENTER | KEYC_ALT : K_ENTER; /* Shift-Enter: newline */
    if (code == 9)
        return shift ? K_BACKTAB : K_TAB;
    if (code == 27)
        return K_ESC;
    if (code == 127)
        return K_BACKSPACE;
    if (mod > 1 && ((mod - 1) & 4) && code >= '@' && code < 0x7F)
        return (key_code)(code & 0x1F);
    return code >= ' ' ? (key_code)code | (alt ? KEYC_ALT : 0) : K_UNKNOWN;
}

static void read_params(const char *s, size_t len, int *a, int *b)
{
    int v[2] = {0, 0}, at = 0;
    for (size_t i = 0; i < len; i++) {
        if (s[i] == ';' && at < 1)
            at++;
        else if (s[i] >= '0' && s[i] <= '9' && v[at] < 100000)
            v[at] = v[at] * 10 + (s[i] - '0');
        else if (s[i] == ':' || s[i] == ';')
            break;
    }
    *a = v[0];
    *b = v[1];
}

/* A whole CSI: ESC [ params intermediates final. `end` is the final's index. */
static key_code decode_csi(struct key_decoder *d, const char *s, size_t end)
{
    const char *params = s + 2;
    size_t n = end - 2;
    int a, b;
    if (s[end] == 'y' && n > 1 && params[0] == '?') { /* DECRPM: ? 2026 ; value $ y */
        read_params(params + 1, n - 1, &a, &b);
        if (a == 2026)
            d->sync = b == 1 || b == 2 ? 1 : -1;
        return K_UNKNOWN;
    }
    if (n > 0 && (params[0] == '?' || params[0] == '<' || params[0] == '>'))
        return K_UNKNOWN; /* an answer or a mouse report */
    read_params(params, n, &a, &b);
    if (s[end] == '~' && a == 200) {
        d->pasting = true;
        buf_clear(&d->paste);
        return K_UNKNOWN;
    }
    if (s[end] == '~')
        return a == 27 ? K_UNKNOWN : with_modifier(csi_tilde(a), b);
    if (s[end] == 'u')
        return csi_u(a, b);
    if (s[end] == 'M' && n == 0)
        return K_UNKNOWN;
    return with_modifier(csi_letter(s[end]), b);
}

/* Length of the string sequence (OSC, DCS, ...) at s, 0 = not complete. */
static size_t string_end(const char *s, size_t len)
{
    for (size_t i = 2; i < len; i++) {
        if (s[i] == 7)
            return i + 1;
        if (s[i] == ESC && i + 1 < len)
            return s[i + 1] == '\\' ? i + 2 : i;
    }
    return len > 4096 ? len : 0;
}

static size_t csi_end(const char *s, size_t len)
{
    for (size_t i = 2; i < len; i++)
        if ((unsigned char)s[i] >= 0x40 && (unsigned char)s[i] <= 0x7E)
            return i;
        else if ((unsigned char)s[i] < 0x20 || (unsigned char)s[i] > 0x7E)
            return i; /* broken: ends here */
    return len > MAX_SEQ ? len - 1 : 0;
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

static key_code learned(struct key_decoder *d, size_t *used, bool *may_grow)
{
    for (size_t i = 0; i < d->n_learned; i++) {
        const char *seq = d->learned[i].seq;
        size_t n = strlen(seq), have = d->in.len < n ? d->in.len : n;
        if (memcmp(seq, d->in.p, have) != 0)
            continue;
        if (have == n) {
            *used = n;
            return d->learned[i].key;
        }
        *may_grow = true;
    }
    return 0;
}

/* The ESC at the front: *used = 0 means more bytes are needed. */
static key_code decode_esc(struct key_decoder *d, size_t *used, bool timed_out)
{
    const char *s = d->in.p;
    size_t len = d->in.len;
    bool may_grow = false;
    key_code k = learned(d, used, &may_grow);
    if (k)
        return k;
    *used = 0;
    if (len == 1) {
        *used = timed_out ? 1 : 0;
        return timed_out ? K_ESC : 0;
    }
    if (s[1] == '[') {
        size_t end = csi_end(s, len);
        if (end) {
            *used = end + 1;
            if (end == 2 && s[2] == '[') { /* linux console: ESC [ [ A is F1 */
                *used = len > 3 ? 4 : 0;
                return len > 3 ? K_F1 + (key_code)((s[3] - 'A') & 7) : 0;
            }
            return decode_csi(d, s, end);
        }
    } else if (s[1] == 'O') {
        if (len > 2) {
            *used = 3;
            return csi_letter(s[2]);
        }
    } else if (strchr("]P_^X", s[1])) {
        size_t n = string_end(s, len);
        if (n) {
            *used = n;
            return K_UNKNOWN;
        }
    } else if (s[1] == ESC) {
        *used = 1; /* Esc twice: the first one is whole */
        return K_ESC;
    } else {
        k = plain(d, 1, used);
        return k && !(k == K_UNKNOWN) ? k | KEYC_ALT : k;
    }
    if (timed_out) { /* ESC and the begin of something that never came */
        if (len == 2 && !may_grow) {
            *used = 2;
            return (key_code)(unsigned char)s[1] | KEYC_ALT;
        }
        *used = len;
        return K_UNKNOWN;
    }
    return 0;
}

static bool take_paste(struct key_decoder *d, int64_t now_ms)
{
    static const char end_mark[] = "\033[201~";
    const size_t n = sizeof(end_mark) - 1;
    char *hit = d->in.len ? memmem(d->in.p, d->in.len, end_mark, n) : NULL;
    size_t text = hit ? (size_t)(hit - d->in.p)
                      : d->in.len > n - 1 ? d->in.len - (n - 1) : 0;
    if (text) {
        if (buf_add(&d->paste, d->in.p, text) != 0) /* too long: keep what fits */
            d->paste.over = true;
        buf_consume(&d->in, text);
    }
    if (!hit)
        return false;
    finish(d, n, 0, now_ms);
    d->pasting = false;
    return true;
}

/* A slow line can tear a sequence after its ESC: its tail must not act as keys. */
static bool drop_late_tail(struct key_decoder *d, int64_t now_ms)
{
    if (!d->esc_decided || now_ms - d->esc_decided > LATE_MS || d->in.len < 2 ||
        (d->in.p[0] != '[' && d->in.p[0] != 'O'))
        return false;
    size_t n = 1;
    while (n < d->in.len && ((unsigned char)d->in.p[n] < 0x40 || d->in.p[n] == '['))
        n++;
    finish(d, n < d->in.len ? n + 1 : n, 0, now_ms);
    d->esc_decided = 0;
    return true;
}

key_code key_decoder_next(struct key_decoder *d, int64_t now_ms, const char **paste,
                          size_t *len)
{
    if (paste) {
        *paste = NULL;
        *len = 0;
    }
    for (;;) {
        if (d->pasting) {
            if (!take_paste(d, now_ms))
                return 0;
            if (paste) {
                *paste = buf_str(&d->paste);
                *len = d->paste.len;
            }
            return K_PASTE;
        }
        if (d->in.len == 0)
            return 0;
        size_t used;
        key_code k;
        if (drop_late_tail(d, now_ms))
            continue;
        if (d->in.p[0] == ESC) {
            bool late = d->esc_at && now_ms - d->esc_at >= d->esc_delay_ms;
            k = decode_esc(d, &used, late);
            if (late && k == K_ESC)
                d->esc_decided = now_ms;
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

int key_decoder_wait(const struct key_decoder *d, int64_t now_ms)
{
    if (d->pasting || d->in.len == 0 || d->in.p[0] != ESC)
        return -1;
    int64_t left = d->esc_at + d->esc_delay_ms - now_ms;
    return left > 0 ? (int)left : 0;
}

int key_decoder_sync(const struct key_decoder *d)
{
    return d->sync;
}
