/* What a program left switched on in a terminal, by the sequences that went there. */
#include <cct/text/ttymodes.h>

#include <string.h>

enum { GROUND, ESC, CSI, STRING, STRING_ESC, CHARSET };

/* DEC private modes and how each is taken back, in the order of taking them back:
 * that is done: the alternate screen last, for what belongs to it goes with it. */
static const struct {
    uint16_t mode;
    char undo; /* final byte */
} dec_modes[] = {{2026, 'l'}, {9, 'l'},    {1000, 'l'}, {1001, 'l'}, {1002, 'l'}, {1003, 'l'},
                 {1005, 'l'}, {1006, 'l'}, {1015, 'l'}, {1016, 'l'}, {1004, 'l'}, {2004, 'l'},
                 {2031, 'l'}, {2048, 'l'}, {1, 'l'},    {5, 'l'},    {6, 'l'},    {7, 'h'},
                 {25, 'h'},   {47, 'l'},   {1047, 'l'}, {1049, 'l'}};
enum { DEC_MODES = sizeof(dec_modes) / sizeof(dec_modes[0]), ALT_FIRST = 19 };
enum { KEYPAD = 1, INSERT = 2, REGION = 4, SHIFTED = 8, CHARS = 16, CURSOR = 32, KEYS = 64,
       STYLE = 128 };

static void set_dec(struct ttymodes *m, unsigned mode, bool high)
{
    for (size_t i = 0; i < DEC_MODES; i++) {
        if (dec_modes[i].mode != mode)
            continue;
        if (high == (dec_modes[i].undo == 'l'))
            m->dec |= UINT32_C(1) << i;
        else
            m->dec &= ~(UINT32_C(1) << i);
    }
}

static void set_other(struct ttymodes *m, uint8_t bit, bool on)
{
    m->other = (uint8_t)(on ? m->other | bit : m->other & ~bit);
}

/* ?1;1000h and its like. */
static void private_modes(struct ttymodes *m, const char *p, const char *end, bool high)
{
    unsigned n = 0;

    for (; p <= end; p++) {
        if (p < end && *p >= '0' && *p <= '9' && n < 10000) {
            n = n * 10 + (unsigned)(*p - '0');
        } else {
            set_dec(m, n, high);
            n = 0;
        }
    }
}

static void keyboard(struct ttymodes *m, char what)
{
    if (what == '>' && m->keyboard < 99)
        m->keyboard++;
    else if (what == '<' && m->keyboard)
        m->keyboard--;
    else if (what == '=')
        set_other(m, KEYS, true);
}

static void reset(struct ttymodes *m)
{
    m->dec = 0;
    m->other = 0;
    m->keyboard = 0;
}

/* seq: what stands between CSI and its final byte. */
static void control(struct ttymodes *m, char final)
{
    const char *s = m->seq, *end = s + m->len;
    bool plain = !m->len || (*s >= '0' && *s <= ';');

    if ((final == 'h' || final == 'l') && m->len && *s == '?')
        private_modes(m, s + 1, end, final == 'h');
    else if ((final == 'h' || final == 'l') && m->len == 1 && *s == '4')
        set_other(m, INSERT, final == 'h');
    else if (final == 'r' && plain)
        set_other(m, REGION, m->len > 0);
    else if (final == 'm' && plain)
        set_other(m, STYLE, m->len > 0 && !(m->len == 1 && *s == '0'));
    else if (final == 'm' && *s == '>')
        set_other(m, KEYS, true);
    else if (final == 'q' && m->len && end[-1] == ' ')
        set_other(m, CURSOR, !(m->len == 1 || *s == '0'));
    else if (final == 'u' && m->len)
        keyboard(m, *s);
    else if (final == 'p' && m->len == 1 && *s == '!')
        m->dec &= UINT32_C(7) << ALT_FIRST;
}

static void escape(struct ttymodes *m, char c)
{
    m->state = GROUND;
    m->len = 0;
    switch (c) {
    case '[':
        m->state = CSI;
        break;
    case ']':
    case 'P':
    case 'X':
    case '^':
    case '_':
        m->state = STRING;
        break;
    case '(':
        m->state = CHARSET;
        break;
    case '=':
    case '>':
        set_other(m, KEYPAD, c == '=');
        break;
    case 'c':
        reset(m);
        break;
    default:
        break;
    }
}

static void one(struct ttymodes *m, char c)
{
    unsigned char u = (unsigned char)c;

    if (m->state == STRING || m->state == STRING_ESC) {
        m->state = m->state == STRING_ESC && c == '\\' ? GROUND
                   : c == '\a' || u == 0x18            ? GROUND
                   : c == '\033'                       ? STRING_ESC
                                                       : STRING;
    } else if (c == '\033') {
        m->state = ESC;
    } else if (m->state == GROUND) {
        if (c == '\016' || c == '\017')
            set_other(m, SHIFTED, c == '\016');
    } else if (m->state == ESC) {
        escape(m, c);
    } else if (m->state == CHARSET) {
        set_other(m, CHARS, c != 'B');
        m->state = GROUND;
    } else if (u == 0x18 || u == 0x1a) {
        m->state = GROUND;
    } else if (u >= 0x40 && u < 0x7f) {
        control(m, c);
        m->state = GROUND;
    } else if (u >= 0x20 && m->len < TTYMODES_SEQ) {
        m->seq[m->len++] = c;
    }
}

void ttymodes_feed(struct ttymodes *m, const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (m->state == GROUND) { /* most of it is text */
            while (i < len && data[i] != '\033' && data[i] != '\016' && data[i] != '\017')
                i++;
            if (i == len)
                return;
        }
        one(m, data[i]);
    }
}

static size_t put(char *dst, size_t at, const char *s)
{
    size_t n = strlen(s);

    if (at + n > TTYMODES_UNDO)
        return at;
    memcpy(dst + at, s, n);
    return at + n;
}

/* No printf in a signal handler. */
static size_t put_mode(char *dst, size_t at, unsigned mode, char final)
{
    char s[12], *p = s + sizeof(s);

    *--p = '\0';
    *--p = final;
    do
        *--p = (char)('0' + mode % 10);
    while (mode /= 10);
    *--p = '?';
    *--p = '[';
    *--p = '\033';
    return put(dst, at, p);
}

size_t ttymodes_undo(const struct ttymodes *m, char dst[TTYMODES_UNDO])
{
    size_t at = 0;

    if (m->state == STRING || m->state == STRING_ESC)
        at = put(dst, at, "\033\\"); /* else the rest would be part of it */
    else if (m->state != GROUND)
        at = put(dst, at, "\030");
    for (size_t i = 0; i < DEC_MODES; i++)
        if (m->dec >> i & 1)
            at = put_mode(dst, at, dec_modes[i].mode, dec_modes[i].undo);
    for (unsigned i = 0; i < m->keyboard && i < 8; i++)
        at = put(dst, at, "\033[<u");
    if (m->other & KEYS)
        at = put(dst, at, "\033[=0u\033[>4m");
    if (m->other & KEYPAD)
        at = put(dst, at, "\033>");
    if (m->other & INSERT)
        at = put(dst, at, "\033[4l");
    if (m->other & REGION) /* which moves the cursor */
        at = put(dst, at, "\0337\033[r\0338");
    if (m->other & SHIFTED)
        at = put(dst, at, "\017");
    if (m->other & CHARS)
        at = put(dst, at, "\033(B");
    if (m->other & CURSOR)
        at = put(dst, at, "\033[0 q");
    if (m->other & STYLE)
        at = put(dst, at, "\033[0m");
    return at;
}

bool ttymodes_alt(const struct ttymodes *m)
{
    return m->dec >> ALT_FIRST != 0;
}
