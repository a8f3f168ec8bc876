/* Scrolling of a pane by the terminal itself: curses would send all of it anew, because what
 * stands beside it stays. The terminal is told, and curses is made to believe that it did it. */
#include "term_priv.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <curses.h>

enum { WORTH_ROWS = 2, MAX_ROWS = 1000 };

static uint64_t row_hash(const struct canvas *c, int y, const struct rect *r)
{
    const struct cell *cells = c->cells + (size_t)y * (size_t)c->w + (size_t)r->x;
    uint64_t h = 1469598103934665603u;
    for (int x = 0; x < r->w; x++) {
        const unsigned char *ch = (const unsigned char *)cells[x].ch;
        for (; *ch; ch++)
            h = (h ^ *ch) * 1099511628211u;
        h = (h ^ ((uint64_t)cells[x].role << 16 | cells[x].flags)) * 1099511628211u;
        h = (h ^ ((uint64_t)cells[x].fg << 32 | cells[x].bg)) * 1099511628211u;
    }
    return h;
}

static bool inside(const struct rect *r, const struct canvas *c)
{
    return r->h > WORTH_ROWS && r->h <= MAX_ROWS && r->w > 1 && r->y >= 0 && r->x >= 0 &&
           r->y + r->h <= c->h && r->x + r->w <= c->w;
}

/* A wide character over the edge would be torn. */
static bool clean_edges(const struct canvas *c, const struct rect *r)
{
    for (int y = r->y; y < r->y + r->h; y++) {
        const struct cell *row = c->cells + (size_t)y * (size_t)c->w;
        if (!row[r->x].ch[0] || (r->x + r->w < c->w && !row[r->x + r->w].ch[0]))
            return false;
    }
    return true;
}

static int same_rows(const uint64_t *old, const uint64_t *now, int h, int by)
{
    int n = 0;
    for (int y = 0; y + by < h; y++)
        n += now[y] == old[y + by];
    return n;
}

struct scroll scroll_find(const struct canvas *shown, const struct canvas *c)
{
    struct scroll s = {.r = c->scrolls};
    uint64_t old[MAX_ROWS], now[MAX_ROWS];
    if (!inside(&s.r, c) || shown->h != c->h || shown->w != c->w)
        return s;
    for (int y = 0; y < s.r.h; y++) {
        old[y] = row_hash(shown, s.r.y + y, &s.r);
        now[y] = row_hash(c, s.r.y + y, &s.r);
    }
    int best = same_rows(old, now, s.r.h, 0);
    if (best > s.r.h - WORTH_ROWS)
        return s;
    for (int by = 1; by < s.r.h - 1; by++) {
        int n = same_rows(old, now, s.r.h, by);
        if (n >= best + WORTH_ROWS) {
            best = n;
            s.by = by;
        }
    }
    if (s.by && (!clean_edges(shown, &s.r) || !clean_edges(c, &s.r)))
        s.by = 0;
    return s;
}

void scroll_spell(const struct scroll *s, struct buf *out)
{
    const struct rect *r = &s->r;
    buf_addf(out, "\033[%d;%ds\033[%d;%dr\033[", r->x + 1, r->x + r->w, r->y + 1, r->y + r->h);
    if (s->by > 1)
        buf_addf(out, "%d", s->by);
    buf_adds(out, "S\033[s\033[r");
}

/* --- what is believed ----------------------------------------------------------------- */

static void shift_window(WINDOW *win, const struct scroll *s)
{
    const struct rect *r = &s->r;
    cchar_t cells[MAX_ROWS + 2];
    for (int y = r->y; y < r->y + r->h - s->by; y++) {
        mvwin_wchnstr(win, y + s->by, r->x, cells, r->w);
        mvwadd_wchnstr(win, y, r->x, cells, r->w);
    }
    for (int y = r->y + r->h - s->by; y < r->y + r->h; y++)
        mvwhline(win, y, r->x, ' ', r->w);
}

void scroll_follow(const struct scroll *s, struct canvas *shown)
{
    const struct rect *r = &s->r;
    shift_window(stdscr, s);
    for (int y = r->y; y < r->y + r->h; y++) {
        struct cell *row = shown->cells + (size_t)y * (size_t)shown->w + (size_t)r->x;
        bool fresh = y >= r->y + r->h - s->by;
        if (!fresh)
            memcpy(row, row + (size_t)s->by * (size_t)shown->w, (size_t)r->w * sizeof(*row));
        for (int x = 0; fresh && x < r->w; x++) {
            memset(&row[x], 0, sizeof(row[x]));
            row[x].ch[0] = '\001'; /* as nothing that is drawn: all of it is told anew */
        }
    }
}
