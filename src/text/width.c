/* Cells of text: see width.h. A cluster is a base and the zero-width characters
 * after it, or a pair of regional indicators (a flag). Joined emoji lost their
 * joiner in the cleaner, so each is a cluster of its own. */
#include <cct/text/width.h>

#include "scan.h"
#include "width_table.h"
#include <cct/util/utf8.h>

/* Set once at start, before any thread runs. */
static bool ambiguous_wide;

void text_ambiguous_wide(bool on)
{
    ambiguous_wide = on;
}

enum cp_class width_class(uint32_t cp)
{
    size_t lo = 0, hi = width_table_n - 1;
    if (cp < 0x800)
        return (enum cp_class)(width_low[cp >> 1] >> (cp & 1) * 4 & 7);
    if (cp < 0x20000) {
        lo = width_pages[cp >> 8];
        hi = (size_t)width_pages[(cp >> 8) + 1] + 1;
    } else if (cp > 0x10FFFF) {
        return CP_BAD;
    }
    while (hi - lo > 1) { /* entry lo begins at or before cp, entry hi after it */
        size_t mid = lo + (hi - lo) / 2;
        if (width_table[mid] >> 3 <= cp)
            lo = mid;
        else
            hi = mid;
    }
    return (enum cp_class)(width_table[lo] & 7);
}

unsigned width_cells(enum cp_class cls)
{
    switch (cls) {
    case CP_ZERO:
    case CP_SHOW:
    case CP_DROP:
        return 0;
    case CP_WIDE:
        return 2;
    case CP_AMBIG:
        return ambiguous_wide ? 2 : 1;
    default:
        return 1;
    }
}

int text_cp_width(uint32_t cp)
{
    return cp < 0xA0 ? 1 : (int)width_cells(width_class(cp));
}

uint32_t text_cp_shown(uint32_t cp)
{
    if (cp < 0xA0)
        return cp < 0x20 || cp >= 0x7F ? ' ' : cp;
    switch (width_class(cp)) {
    case CP_SHOW:
    case CP_DROP:
        return 0;
    case CP_BAD:
        return 0xFFFD;
    default:
        return cp;
    }
}

/* Like utf8_decode, but always goes on: a cut character is one bad byte. */
static size_t decode(const char *s, size_t len, uint32_t *cp)
{
    size_t n = scan_char(s, len, cp);
    if (n > 0 || (n = utf8_decode(s, len, cp)) > 0)
        return n;
    *cp = UTF8_BAD;
    return 1;
}

size_t text_width(const char *s, size_t len)
{
    size_t cells = 0;
    for (size_t i = 0; i < len;) {
        size_t n = scan_plain(s + i, len - i);
        cells += n;
        i += n;
        while (i < len && ((unsigned char)s[i] < 0x20 || (unsigned char)s[i] >= 0x7F)) {
            uint32_t cp;
            i += decode(s + i, len - i, &cp);
            cells += (size_t)text_cp_width(cp);
        }
    }
    return cells;
}

static bool is_regional(uint32_t cp)
{
    return cp >= 0x1F1E6 && cp <= 0x1F1FF;
}

size_t text_cluster(const char *s, size_t len, int *w)
{
    uint32_t cp;
    if (len == 0) {
        *w = 0;
        return 0;
    }
    size_t n = decode(s, len, &cp);
    *w = text_cp_width(cp);
    bool flag = is_regional(cp);
    while (n < len && (unsigned char)s[n] >= 0x80) {
        size_t k = decode(s + n, len - n, &cp);
        if (flag && is_regional(cp))
            *w += 1;
        else if (text_cp_width(cp) != 0)
            break;
        flag = false;
        n += k;
    }
    return n;
}

/* The code point that ends at `at`: its bytes. */
static size_t decode_before(const char *s, size_t at, uint32_t *cp)
{
    for (size_t n = 1; n <= 4 && n <= at; n++) {
        if (((unsigned char)s[at - n] & 0xC0) == 0x80)
            continue;
        if (utf8_decode(s + at - n, n, cp) == n)
            return n;
        break;
    }
    *cp = UTF8_BAD;
    return 1;
}

size_t text_cluster_before(const char *s, size_t at)
{
    size_t from = at;
    uint32_t cp = UTF8_BAD;
    while (from > 0) {
        from -= decode_before(s, from, &cp);
        if (text_cp_width(cp) != 0)
            break;
    }
    if (!is_regional(cp))
        return at - from;
    /* flags pair from the left: the one before belongs to this cluster when an
     * odd number of indicators stands before */
    size_t before = 0, first = 0;
    for (size_t p = from; p > 0; before++) {
        size_t n = decode_before(s, p, &cp);
        if (!is_regional(cp))
            break;
        if (before == 0)
            first = n;
        p -= n;
    }
    return at - from + (before % 2 ? first : 0);
}

size_t text_fit(const char *s, size_t len, size_t cells, size_t *used)
{
    size_t at = 0, cell = 0;
    while (at < len) {
        unsigned char c = (unsigned char)s[at];
        int w = 1;
        size_t n = 1;
        if (c >= 0x80 || (at + 1 < len && (unsigned char)s[at + 1] >= 0x80))
            n = text_cluster(s + at, len - at, &w);
        if (cell + (size_t)w > cells)
            break;
        cell += (size_t)w;
        at += n;
    }
    *used = cell;
    return at;
}

/* A space where a row may end (one that carries no mark). */
static bool is_break(const char *s, size_t len, size_t at)
{
    int w;
    return s[at] == ' ' && text_cluster(s + at, len - at, &w) == 1;
}

size_t text_wrap(const char *s, size_t len, size_t from, size_t cells, size_t *next)
{
    size_t used;
    int w;
    size_t end = from + text_fit(s + from, len - from, cells, &used);
    if (end == from && from < len)
        end += text_cluster(s + from, len - from, &w); /* wider than a row: still go on */
    *next = end;
    if (end == len)
        return end;
    if (is_break(s, len, end)) {
        *next = end + 1;
        return end;
    }
    size_t word = from; /* indentation alone makes no row */
    while (word < end && s[word] == ' ')
        word++;
    for (size_t k = end; k-- > word + 1;) {
        if (is_break(s, len, k)) {
            *next = k + 1;
            return k;
        }
    }
    return end;
}

size_t text_wrap_rows(const char *s, size_t len, size_t cells)
{
    size_t rows = 0, at = 0;
    do {
        text_wrap(s, len, at, cells, &at);
        rows++;
    } while (at < len);
    return rows;
}
