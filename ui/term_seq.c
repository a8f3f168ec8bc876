/* Sequences of the terminal: where one ends, and what a whole one says: keys with their
 * modifiers, the mouse, the begin of a paste, answers to queries. */
#include "term_input_priv.h"

#include <stdio.h>
#include <string.h>

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

key_code term_csi_letter(char c)
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
    default:
        return K_UNKNOWN;
    }
}

/* Keys sent as CSI code ; modifier u, or CSI 27 ; modifier ; code ~. */
static key_code csi_u(int code, int mod)
{
    bool shift = mod > 1 && ((mod - 1) & 1), alt = mod > 1 && ((mod - 1) & 2);
    bool ctrl = mod > 1 && ((mod - 1) & 4);
    if (code == 13)
        return shift || alt ? K_ENTER | KEYC_ALT : K_ENTER; /* Shift-Enter: newline */
    if (code == 9)
        return shift ? K_BACKTAB : K_TAB;
    if (code == 27)
        return K_ESC;
    if (code == 127)
        return K_BACKSPACE | (alt ? KEYC_ALT : 0);
    if (ctrl && code >= '@' && code < 0x7F)
        return (code & 0x1F) == ESC ? K_ESC : (key_code)(code & 0x1F);
    bool none = code < ' ' || (code >= 0x80 && code < 0xA0) || code > 0x10FFFF ||
                (code >= 0xD800 && code < 0xF900); /* surrogates; keys without a text */
    if (none || ctrl)
        return K_UNKNOWN;
    if (shift && code >= 'a' && code <= 'z')
        code += 'A' - 'a';
    return (key_code)code | (alt ? KEYC_ALT : 0);
}

static void read_params(const char *s, size_t len, int v[3])
{
    int at = 0;
    bool sub = false; /* after a colon: of no interest */
    v[0] = v[1] = v[2] = 0;
    for (size_t i = 0; i < len; i++) {
        if (s[i] == ';' && ++at == 3)
            return;
        if (s[i] == ';')
            sub = false;
        else if (s[i] == ':')
            sub = true;
        else if (s[i] >= '0' && s[i] <= '9' && !sub && v[at] < 100000)
            v[at] = v[at] * 10 + (s[i] - '0');
    }
}

/* CSI < buttons ; x ; y and M, or m where a button was let go. Bits of the buttons: 1 2 which
 * one, 4 8 16 modifiers, 32 moved, 64 the wheel. */
static key_code decode_mouse(struct key_decoder *d, const char *params, size_t n, char last)
{
    int v[3];
    read_params(params, n, v);
    int b = v[0];
    bool wheel = b & 64;
    if (!d->mouse_on || v[1] < 1 || v[2] < 1 || b >= 128 || (b & 0x1C))
        return K_UNKNOWN; /* with a modifier it is not for us */
    if ((b & 3) == 3 || (wheel && (b & 3) > 1))
        return K_UNKNOWN; /* moved without a button; sideways */
    d->mouse = (struct mouse){.kind = wheel        ? (b & 1 ? MOUSE_WHEEL_DOWN : MOUSE_WHEEL_UP)
                                      : last == 'm' ? MOUSE_RELEASE
                                      : b & 32      ? MOUSE_DRAG
                                                    : MOUSE_PRESS,
                              .button = wheel ? 0 : b & 3,
                              .y = v[2] - 1,
                              .x = v[1] - 1};
    return K_MOUSE;
}

key_code term_decode_csi(struct key_decoder *d, const char *s, size_t end)
{
    const char *params = s + 2;
    size_t n = end - 2;
    int v[3];
    if (s[end] == 'y' && n > 1 && params[0] == '?') { /* DECRPM: ? 2026 ; value $ y */
        read_params(params + 1, n - 1, v);
        if (v[0] == 2026)
            d->sync = v[1] == 1 || v[1] == 2 ? 1 : -1;
        if (v[0] == 69)
            d->margins = v[1] == 1 || v[1] == 2 ? 1 : -1;
        return K_UNKNOWN;
    }
    if (n > 1 && params[0] == '<' && (s[end] == 'M' || s[end] == 'm'))
        return decode_mouse(d, params + 1, n - 1, s[end]);
    if (n > 0 && (params[0] < '0' || params[0] > ';'))
        return K_UNKNOWN; /* an answer or a mouse report */
    read_params(params, n, v);
    if (s[end] == '~' && v[0] == 200) {
        term_begin_paste(d);
        return K_UNKNOWN;
    }
    if (s[end] == '~')
        return v[0] == 27 ? csi_u(v[2], v[1]) : with_modifier(csi_tilde(v[0]), v[1]);
    if (s[end] == 'u')
        return csi_u(v[0], v[1]);
    if (n == 0 && (s[end] == 'I' || s[end] == 'O'))
        return s[end] == 'I' ? K_FOCUS_IN : K_FOCUS_OUT;
    if (n > 0 && v[0] > 1)
        return K_UNKNOWN; /* a cursor report looks like F3 */
    return with_modifier(term_csi_letter(s[end]), v[1]);
}

size_t term_string_end(const char *s, size_t len)
{
    for (size_t i = 2; i < len; i++) {
        if (s[i] == 7)
            return i + 1;
        if (s[i] == ESC && i + 1 < len)
            return s[i + 1] == '\\' ? i + 2 : i;
    }
    return 0;
}

size_t term_csi_end(const char *s, size_t len)
{
    for (size_t i = 2; i < len; i++)
        if ((unsigned char)s[i] < 0x20 || (unsigned char)s[i] > 0x3F)
            return i;
    return 0;
}

void term_take_background(struct key_decoder *d, const char *s, size_t len)
{
    char text[48];
    unsigned v[3];
    int n[4];
    size_t most = len < sizeof(text) - 1 ? len : sizeof(text) - 1;
    memcpy(text, s, most);
    text[most] = 0;
    if (sscanf(text, "\033]11;rgb:%n%4x%n/%4x%n/%4x%n", &n[0], &v[0], &n[1], &v[1], &n[2], &v[2],
               &n[3]) != 3)
        return;
    double lit = 0;
    static const double weight[3] = {0.299, 0.587, 0.114};
    for (int i = 0; i < 3; i++) {
        int digits = n[i + 1] - n[i] - (i > 0);
        lit += weight[i] * v[i] / ((1 << 4 * digits) - 1);
    }
    d->background = lit > 0.5;
}
