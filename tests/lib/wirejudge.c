/* The judge of what a program sends to its terminal: everything not on the list is a
 * finding. Written from the terminals' manuals, shares nothing with what is judged. */
#include "ptyrig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUND, ESCAPE, CSI, CHARSET, OSC, DCS };

void judge_init(struct wire_judge *j)
{
    memset(j, 0, sizeof(*j));
    j->cursor = j->strings = true;
}

void judge_release(struct wire_judge *j)
{
    free(j->inner);
    j->inner = NULL;
}

static void finding(struct wire_judge *j, const char *what)
{
    if (j->bad[0])
        return;
    int n = snprintf(j->bad, sizeof(j->bad), "%s:", what);
    for (size_t i = 0; i < j->n && (size_t)n + 4 < sizeof(j->bad); i++)
        n += snprintf(j->bad + n, sizeof(j->bad) - (size_t)n, " %02x", (unsigned char)j->seq[i]);
}

/* Private modes that may be set and reset, and where their state is kept. */
static void private_mode(struct wire_judge *j, int mode, bool on)
{
    switch (mode) {
    case 1049:
    case 1047:
    case 47:
        j->alt = on;
        return;
    case 2004:
        j->paste = on;
        return;
    case 1004:
        j->focus = on;
        return;
    case 2026:
        j->sync = on;
        return;
    case 69:
        j->margins = on;
        return;
    case 25:
        j->cursor = on;
        return;
    case 1000:
    case 1002:
    case 1003:
    case 1006:
        j->mouse = on;
        if (on && !j->may_mouse)
            finding(j, "mouse switched on");
        return;
    case 1:    /* cursor keys, in terminfo's rmkx */
    case 1048: /* cursor saved */
    case 12:   /* blinking cursor, in terminfo's cnorm */
    case 7:    /* wrap at the margin */
    case 3:    /* 80 columns, in terminfo's reset */
    case 4:
        return;
    default:
        finding(j, "private mode");
    }
}

static void private_csi(struct wire_judge *j, char last)
{
    const char *p = j->seq + 3;
    if (last == 'c' && j->n <= 5) /* linux: shape of the cursor */
        return;
    if (strcmp(p, "2026$p") == 0 || strcmp(p, "69$p") == 0)
        return;
    if (last != 'h' && last != 'l') {
        finding(j, "private sequence");
        return;
    }
    for (;;) {
        char *end;
        long mode = strtol(p, &end, 10);
        private_mode(j, (int)mode, last == 'h');
        if (*end != ';')
            return;
        p = end + 1;
    }
}

static void end_csi(struct wire_judge *j, char last)
{
    j->seq[j->n] = 0;
    if (j->seq[2] == '?') {
        private_csi(j, last);
        return;
    }
    if (strspn(j->seq + 2, "0123456789;") != j->n - 3)
        finding(j, "parameters");
    else if (last == 'h' || last == 'l') {
        long mode = strtol(j->seq + 2, NULL, 10);
        if (mode != 4 && mode != 34) /* insert mode; screen's shape of the cursor */
            finding(j, "mode");
    } else if (last == 't') {
        if (strncmp(j->seq + 2, "22;0;0", 6) != 0 && strncmp(j->seq + 2, "23;0;0", 6) != 0)
            finding(j, "window operation"); /* the title's stack is all terminfo uses */
    } else if (last == 's') {
        if (!j->margins)
            finding(j, "margins"); /* without mode 69 it keeps the cursor instead */
    } else if (!strchr("HfdGABCDEFJKLMPX@mrbSTIZ`a", last)) {
        finding(j, "control sequence");
    }
}

static void escape(struct wire_judge *j, char c)
{
    j->state = GROUND;
    if (c == '[')
        j->state = CSI;
    else if (c == '(' || c == ')')
        j->state = CHARSET;
    else if (c == ']' && j->strings)
        j->state = OSC;
    else if (c == 'P' && j->strings)
        j->state = DCS;
    else if (!strchr("78=>MDE", c))
        finding(j, "escape sequence");
}

static void character(struct wire_judge *j, uint32_t cp)
{
    bool hidden = (cp >= 0x80 && cp < 0xA0) || cp == 0xAD || cp == 0x61C ||
                  (cp >= 0x200B && cp <= 0x200F) || (cp >= 0x2028 && cp <= 0x202E) ||
                  (cp >= 0x2060 && cp <= 0x206F) || (cp >= 0xD800 && cp <= 0xDFFF) ||
                  (cp >= 0xFE00 && cp <= 0xFE0F) || cp == 0xFEFF ||
                  (cp >= 0xFFF9 && cp <= 0xFFFB) || cp >= 0xE0000;
    if (hidden) {
        j->n = (size_t)snprintf(j->seq, sizeof(j->seq), "U+%X", cp);
        finding(j, "hidden character");
    }
}

static void ground(struct wire_judge *j, unsigned char c)
{
    j->n = 1;
    j->seq[0] = (char)c;
    if (j->cp_left) {
        if ((c & 0xC0) != 0x80)
            finding(j, "malformed UTF-8");
        j->cp = j->cp << 6 | (c & 0x3F);
        if (--j->cp_left == 0)
            character(j, j->cp);
        return;
    }
    if (c >= 0xC2 && c < 0xF5) {
        j->cp_left = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : 1;
        j->cp = c & (0x3Fu >> j->cp_left);
    } else if (c >= 0x7F) {
        finding(j, "byte");
    } else if (c == '\007' && j->may_ring) {
        j->rings++;
    } else if (c < 0x20 && !strchr("\r\n\b\t\016\017", c) && !(c == 0 && j->padding)) {
        finding(j, "control");
    }
}

/* The strings that we may send: title, clipboard, notifications, a question for a colour. */
static void end_osc(struct wire_judge *j)
{
    static const struct {
        const char *begin;
        int count;
    } known[] = {{"\033]52;c;", 0}, {"\033]9;", 1}, {"\033]777;notify;", 1}, {"\033]99;i=cc-tui-", 1},
                 {"\033]2;", 2},    {"\033]11;?", -1}};
    j->state = GROUND;
    j->seq[j->n] = 0;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strncmp(j->seq, known[i].begin, strlen(known[i].begin)) == 0) {
            if (known[i].count >= 0)
                j->osc[known[i].count]++;
            return;
        }
    finding(j, "operating system command");
}

static void osc_byte(struct wire_judge *j, unsigned char c)
{
    bool more = (c & 0xC0) == 0x80;
    if (c == 7 || (j->esc && c == '\\')) {
        end_osc(j);
    } else if (j->esc || (c < 0x20 && c != 0x1B) || c == 0x7F) {
        finding(j, "control inside a string");
    } else if (j->cp_left ? !more : more || (c >= 0x80 && (c < 0xC2 || c > 0xF4))) {
        finding(j, "malformed UTF-8 inside a string");
    } else if (more) {
        j->cp = j->cp << 6 | (c & 0x3F);
        if (--j->cp_left == 0 && j->cp >= 0x80 && j->cp < 0xA0)
            finding(j, "C1 inside a string");
    } else if (c >= 0xC2) {
        j->cp_left = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : 1;
        j->cp = c & (0x3Fu >> j->cp_left);
    } else if (c != 0x1B && j->n < sizeof(j->seq) - 2) {
        j->seq[j->n++] = (char)c;
    }
    j->esc = c == 0x1B;
}

/* ESC P tmux; with each ESC doubled, or ESC P of screen with a piece of a string. */
static void dcs_byte(struct wire_judge *j, unsigned char c)
{
    static const char tmux[] = "\033Ptmux;";
    const size_t n = sizeof(tmux) - 1;
    if (!j->inner) {
        j->inner = calloc(1, sizeof(*j->inner));
        judge_init(j->inner);
    }
    if (j->esc && c == '\\') {
        j->esc = false;
        j->state = GROUND;
        for (int i = 0; i < 3; i++)
            j->osc[i] += j->inner->osc[i];
        memset(j->inner->osc, 0, sizeof(j->inner->osc));
        if (j->inner->bad[0])
            finding(j, j->inner->bad);
        return;
    }
    if (!j->esc && c == 0x1B) {
        j->esc = true;
        return;
    }
    if (j->n < n && c == (unsigned char)tmux[j->n] && !j->esc) {
        j->seq[j->n++] = (char)c;
        return;
    }
    const char esc = 0x1B, byte = (char)c;
    if (j->esc && j->n < n && j->n == 2) { /* of screen: the ESC is the string's own */
        judge_feed(j->inner, &esc, 1);
        j->n = 1; /* more of it follows as it stands */
    } else if (j->esc && c != 0x1B) {
        finding(j, "a single ESC inside a string");
    }
    j->esc = false;
    judge_feed(j->inner, &byte, 1);
}

void judge_feed(struct wire_judge *j, const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)s[i];
        if (j->state == OSC || j->state == DCS) {
            (j->state == OSC ? osc_byte : dcs_byte)(j, c);
            continue;
        }
        if (c == 0x1B) {
            if (j->state != GROUND || j->cp_left)
                finding(j, "broken off by ESC");
            j->state = ESCAPE;
            j->seq[0] = (char)c;
            j->n = 1;
            j->esc = false;
            continue;
        }
        if (j->state == GROUND) {
            ground(j, c);
            continue;
        }
        if (c == 0 && j->padding)
            continue;
        if (j->n < sizeof(j->seq) - 2)
            j->seq[j->n++] = (char)c;
        if (c < 0x20 || c >= 0x7F) {
            finding(j, "control inside a sequence");
            j->state = GROUND;
        } else if (j->state == ESCAPE) {
            escape(j, (char)c);
        } else if (j->state == CHARSET) {
            j->state = GROUND;
            if (!strchr("B0AUK", c))
                finding(j, "character set");
        } else if (c >= 0x40) {
            j->state = GROUND;
            end_csi(j, (char)c);
        }
    }
}
