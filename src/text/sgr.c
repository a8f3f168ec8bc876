/* SGR: what a colour sequence does to the attribute. Unknown parameters and bad
 * values are skipped with their arguments, so the rest still counts. */
#include "sgr.h"

#include <string.h>

void sgr_begin(struct sgr *g)
{
    g->n = 1;
    g->v[0] = 0;
    g->colon[0] = false;
}

void sgr_feed(struct sgr *g, char c)
{
    if (c == ';' || c == ':') {
        g->n++;
        if (g->n <= SGR_PARAMS) {
            g->v[g->n - 1] = 0;
            g->colon[g->n - 1] = c == ':';
        } else {
            g->n = SGR_PARAMS + 1;
        }
        return;
    }
    if (g->n > SGR_PARAMS)
        return;
    unsigned *v = &g->v[g->n - 1];
    *v = *v * 10 + (unsigned)(c - '0');
    if (*v > 65535)
        *v = 65535;
}

/* Colour from its arguments "5 n" or "2 r g b": true when they are right. */
static bool color_of(const unsigned *v, unsigned n, uint32_t *out)
{
    if (n >= 2 && v[0] == 5 && v[1] <= 255) {
        *out = v[1];
        return true;
    }
    if (n >= 4 && v[0] == 2 && v[1] <= 255 && v[2] <= 255 && v[3] <= 255) {
        *out = TEXT_COLOR_RGB | v[1] << 16 | v[2] << 8 | v[3];
        return true;
    }
    return false;
}

/* 38, 48 and 58 at v[0]; n parameters from there, the first `group` of them joined
 * by colons. Returns how many were used. */
static unsigned extended_color(const unsigned *v, unsigned n, unsigned group,
                               struct text_attr *a)
{
    uint32_t color;
    bool ok;
    unsigned used = group;
    if (group > 1) {
        /* 38:2:<space>:r:g:b has a colour space before the values */
        unsigned rgb[4] = {2, group > 5 ? v[3] : 0, group > 5 ? v[4] : 0, group > 5 ? v[5] : 0};
        ok = group > 5 && v[1] == 2 ? color_of(rgb, 4, &color)
                                    : color_of(v + 1, group - 1, &color);
    } else {
        ok = color_of(v + 1, n - 1, &color);
        used = n < 2 ? 1 : v[1] == 5 ? 3 : v[1] == 2 ? 5 : 2;
        if (used > n)
            used = n;
    }
    if (ok && v[0] == 38)
        a->fg = color;
    else if (ok && v[0] == 48)
        a->bg = color;
    return used;
}

static void set_flag(struct text_attr *a, unsigned flag, bool on)
{
    a->flags = (uint16_t)(on ? a->flags | flag : a->flags & ~flag);
}

static void apply_one(unsigned v, struct text_attr *a)
{
    static const uint8_t on[] = {0, TEXT_BOLD, TEXT_DIM,     TEXT_ITALIC, TEXT_UNDERLINE,
                                 0, 0,         TEXT_REVERSE, 0,           TEXT_STRIKE};
    static const uint8_t off[] = {0,           TEXT_UNDERLINE, TEXT_BOLD | TEXT_DIM,
                                  TEXT_ITALIC, TEXT_UNDERLINE, 0,
                                  0,           TEXT_REVERSE,   0,
                                  TEXT_STRIKE};
    if (v == 0)
        *a = (struct text_attr){TEXT_COLOR_DEFAULT, TEXT_COLOR_DEFAULT, 0};
    else if (v <= 9)
        set_flag(a, on[v], true);
    else if (v == 21)
        set_flag(a, TEXT_UNDERLINE, true); /* double underline */
    else if (v >= 22 && v <= 29)
        set_flag(a, off[v - 20], false);
    else if (v >= 30 && v <= 37)
        a->fg = v - 30;
    else if (v == 39)
        a->fg = TEXT_COLOR_DEFAULT;
    else if (v >= 40 && v <= 47)
        a->bg = v - 40;
    else if (v == 49)
        a->bg = TEXT_COLOR_DEFAULT;
    else if (v >= 90 && v <= 97)
        a->fg = v - 90 + 8;
    else if (v >= 100 && v <= 107)
        a->bg = v - 100 + 8;
}

void sgr_apply(const struct sgr *g, struct text_attr *a)
{
    unsigned n = g->n < SGR_PARAMS ? g->n : SGR_PARAMS;
    for (unsigned i = 0; i < n;) {
        unsigned v = g->v[i], group = 1;
        while (i + group < n && g->colon[i + group])
            group++;
        if (v == 38 || v == 48 || v == 58) {
            i += extended_color(g->v + i, n - i, group, a);
            continue;
        }
        if (group == 1)
            apply_one(v, a);
        else if (v == 4) /* 4:0 none, 4:1 to 4:5 kinds of underline */
            set_flag(a, TEXT_UNDERLINE, g->v[i + 1] != 0);
        i += group;
    }
}
