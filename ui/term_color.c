/* 24-bit colours through a library that knows 256: each colour of a picture gets one of the
 * numbers 16 to 255, and in what the library wrote the numbers are spelled out. */
#include <cct/ui/term.h>

#include <cct/text/clean.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST = 16, SLOTS = 256 - FIRST };

struct color_slots {
    uint32_t color[SLOTS];
    bool used[SLOTS];
    size_t n;
};

struct color_slots *color_slots_new(void)
{
    return xcalloc(1, sizeof(struct color_slots));
}

void color_slots_free(struct color_slots *s)
{
    free(s);
}

/* Where the search for it begins: for a colour of the palette its own number. */
static size_t home(uint32_t color)
{
    return color & TEXT_COLOR_RGB ? (color ^ color >> 7 ^ color >> 15) % SLOTS : color - FIRST;
}

int color_slot(struct color_slots *s, uint32_t color)
{
    for (size_t i = 0, at = home(color); i < SLOTS; i++, at = (at + 1) % SLOTS) {
        if (s->used[at] && s->color[at] != color)
            continue;
        if (!s->used[at] && s->n == SLOTS - 1)
            break; /* one stays free: a search ends */
        s->n += !s->used[at];
        s->used[at] = true;
        s->color[at] = color;
        return (int)at + FIRST;
    }
    return -1;
}

/* "38;5;N" at s[0..len): bytes of it, 0 = it is something else. */
static size_t indexed(const char *s, size_t len, int *layer, int *n)
{
    char text[16];
    int used = 0;
    size_t most = len < sizeof(text) - 1 ? len : sizeof(text) - 1;
    memcpy(text, s, most);
    text[most] = 0;
    if (sscanf(text, "%2d;5;%3d%n", layer, n, &used) != 2 || (*layer != 38 && *layer != 48))
        return 0;
    return (size_t)used;
}

static void spell(const struct color_slots *s, int layer, int n, struct buf *out)
{
    uint32_t c = n >= FIRST && n < 256 && s->used[n - FIRST] ? s->color[n - FIRST] : (uint32_t)n;
    if (c & TEXT_COLOR_RGB)
        buf_addf(out, "%d;2;%u;%u;%u", layer, c >> 16 & 255, c >> 8 & 255, c & 255);
    else
        buf_addf(out, "%d;5;%u", layer, c);
}

/* The parameters of one CSI that ends with m. */
static void spell_sgr(const struct color_slots *s, const char *p, size_t len, struct buf *out)
{
    for (size_t i = 0; i < len;) {
        int layer, n;
        size_t used = i == 0 || p[i - 1] == ';' ? indexed(p + i, len - i, &layer, &n) : 0;
        if (used && (i + used == len || p[i + used] == ';')) {
            spell(s, layer, n, out);
            i += used;
        } else {
            buf_addc(out, p[i++]);
        }
    }
}

void color_slots_spell(const struct color_slots *s, const char *text, size_t len, struct buf *out)
{
    for (size_t i = 0; i < len;) {
        const char *esc = memchr(text + i, 0x1B, len - i);
        size_t plain = esc ? (size_t)(esc - text) - i : len - i;
        buf_add(out, text + i, plain);
        i += plain;
        if (!esc)
            return;
        size_t end = i + 2;
        bool csi = i + 1 < len && text[i + 1] == '[';
        while (csi && end < len && (text[end] == ';' || (text[end] >= '0' && text[end] <= '9')))
            end++;
        if (!csi || end >= len || text[end] != 'm') {
            buf_addc(out, text[i++]);
            continue;
        }
        buf_add(out, text + i, 2);
        spell_sgr(s, text + i + 2, end - i - 2, out);
        i = end;
    }
}
