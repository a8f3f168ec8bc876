/* Cells of the canvas for curses: colours, attributes, runs of neighbours. */
#include <cct/ui/term.h>

#include "term_priv.h"

#include <string.h>
#include <wchar.h>

#include <curses.h>

static int low_color(int n)
{
    if (n < COLORS)
        return n;
    return n % 8 ? n % 8 : -1; /* 8 colours: bright black would be black on black */
}

static int curses_color(const struct palette *p, uint32_t c)
{
    if (c == TEXT_COLOR_DEFAULT || !p->color)
        return -1;
    if (p->direct && p->level == THEME_RGB && c >= 8)
        return (int)theme_rgb(c);
    if (p->level == THEME_16)
        return low_color(theme_to_16(c));
    int slot = p->slots && c >= 16 ? color_slot(p->slots, c) : -1;
    if (slot >= 0)
        return slot;
    int n = c & TEXT_COLOR_RGB ? (COLORS >= 256 ? theme_to_256(c) : theme_to_16(c))
            : (int)c < COLORS  ? (int)c
                               : theme_to_16(c);
    return low_color(n);
}

static attr_t curses_attrs(uint16_t flags)
{
    attr_t a = A_NORMAL;
    a |= flags & TEXT_BOLD ? A_BOLD : 0;
    a |= flags & TEXT_DIM ? A_DIM : 0;
    a |= flags & TEXT_UNDERLINE ? A_UNDERLINE : 0;
    a |= flags & TEXT_REVERSE ? A_REVERSE : 0;
#ifdef A_ITALIC
    a |= flags & TEXT_ITALIC ? A_ITALIC : 0;
#endif
    return a;
}

/* The cell's text for curses; what the C library sees with another width than we do is
 * replaced, so that both count the same columns. */
static void cell_text(const struct cell *c, int width, wchar_t *out)
{
    mbstate_t st = {0};
    if (width == 1 && c->ch[0] >= ' ' && c->ch[0] < 0x7F && !c->ch[1]) { /* as most are */
        out[0] = c->ch[0];
        out[1] = 0;
        return;
    }
    const char *s = c->ch;
    size_t n = mbsrtowcs(out, &s, CCHARW_MAX, &st);
    out[n == (size_t)-1 ? 0 : n < CCHARW_MAX ? n : CCHARW_MAX - 1] = 0;
    bool ok = n != (size_t)-1 && n > 0 && wcwidth(out[0]) == width;
    for (size_t i = 1; ok && i < n && out[i]; i++)
        ok = wcwidth(out[i]) == 0;
    if (!ok) {
        out[0] = L'?';
        out[1] = 0;
    }
}

/* Attributes and pair of the cells that were told last: those of most that follow. */
struct look {
    const struct palette *pal;
    bool full;      /* everything is told, onto an empty screen */
    struct cell of; /* whatever stands in it */
    bool known;
    attr_t attrs;
    int pair;
    cchar_t blank; /* the same for curses */
};

static void learn_look(struct look *l, const struct cell *c)
{
    struct theme_style st = {TEXT_COLOR_DEFAULT, TEXT_COLOR_DEFAULT, 0};
    if (l->known && l->of.role == c->role && l->of.flags == c->flags && l->of.fg == c->fg &&
        l->of.bg == c->bg)
        return;
    if (l->pal->theme && c->role < ROLE_COUNT)
        st = l->pal->theme->roles[c->role];
    uint32_t fg = c->fg != TEXT_COLOR_DEFAULT ? c->fg : st.fg;
    uint32_t bg = c->bg != TEXT_COLOR_DEFAULT ? c->bg : st.bg;
    int f = curses_color(l->pal, fg), b = curses_color(l->pal, bg);
    l->pair = l->pal->color && (f >= 0 || b >= 0) ? alloc_pair(f, b) : 0;
    l->attrs = curses_attrs(st.flags | c->flags);
    setcchar(&l->blank, L" ", l->attrs, 0, l->pair > 0 ? &l->pair : NULL);
    l->of = *c;
    l->known = true;
}

static void put_cell(int y, int x, const struct cell *c, bool wide, struct look *l)
{
    wchar_t text[CCHARW_MAX + 1];
    cchar_t cc;
    learn_look(l, c);
    cell_text(c, wide ? 2 : 1, text);
    if (setcchar(&cc, text, l->attrs, 0, l->pair > 0 ? &l->pair : NULL) == OK)
        mvadd_wch(y, x, &cc);
    if (wide && text[0] == L'?') { /* a replaced wide one: fill its right half */
        text[0] = L' ';
        setcchar(&cc, text, A_NORMAL, 0, NULL);
        mvadd_wch(y, x + 1, &cc);
    }
}

/* Printable ASCII, as most of a picture is: such cells are told many at a time. */
static bool is_simple(const struct cell *c, bool wide)
{
    return !wide && c->ch[0] >= ' ' && c->ch[0] < 0x7F && !c->ch[1];
}

static bool is_blank(const struct cell *c, bool wide, struct look *l)
{
    if (c->ch[0] != ' ' || c->ch[1] || wide)
        return false;
    learn_look(l, c);
    return l->attrs == A_NORMAL && l->pair <= 0;
}

enum { RUN_MAX = 256 };
struct run { /* of neighbours not told yet */
    int y, x, n;
    cchar_t v[RUN_MAX];
};

static void put_run(struct run *r)
{
    if (r->n)
        mvadd_wchnstr(r->y, r->x, r->v, r->n);
    r->n = 0;
}

static void add_to_run(struct run *r, int y, int x, const struct cell *c, struct look *l)
{
    if (r->n == RUN_MAX || (r->n && r->x + r->n != x))
        put_run(r);
    if (!r->n)
        r->y = y, r->x = x;
    learn_look(l, c);
    r->v[r->n] = l->blank;
    r->v[r->n++].chars[0] = c->ch[0];
}

static void tell_row(int y, int w, const struct cell *now, const struct cell *old, struct look *l)
{
    struct run run;
    run.n = 0; /* the rest is written before it is read */
    for (int x = 0; x < w; x++) {
        bool wide = x + 1 < w && now[x + 1].ch[0] == 0;
        if (!now[x].ch[0] || (!l->full && cell_equal(&now[x], &old[x]) &&
                              !(wide && !cell_equal(&now[x + 1], &old[x + 1]))))
            continue;
        if (l->full && is_blank(&now[x], wide, l)) /* as erase() has left it */
            continue;
        if (is_simple(&now[x], wide)) {
            add_to_run(&run, y, x, &now[x], l);
        } else {
            put_run(&run);
            put_cell(y, x, &now[x], wide, l);
        }
    }
    put_run(&run);
}

void palette_tell(const struct palette *p, const struct canvas *c, struct canvas *shown,
                  bool full)
{
    int h = c->h < LINES ? c->h : LINES, w = c->w < COLS ? c->w : COLS;
    size_t row = (size_t)c->w * sizeof(*c->cells);
    struct look look = {.pal = p, .full = full};
    for (int y = 0; y < h; y++) {
        const struct cell *now = c->cells + (size_t)y * (size_t)c->w;
        struct cell *old = shown->cells + (size_t)y * (size_t)c->w;
        if (!full && memcmp(old, now, row) == 0) /* bytes that say nothing only cost a look */
            continue;
        tell_row(y, w, now, old, &look);
        memcpy(old, now, row);
    }
}

void palette_open(struct palette *p, const struct theme_wish *wish)
{
    enum { DIRECT = 1 << 15 };
    bool some = has_colors();
    if (some) {
        start_color();
        use_default_colors();
    }
    p->level = theme_color_level(wish, some ? COLORS : 0, wish->truecolor || caps_rgb());
    p->color = p->level != THEME_MONO;
    p->direct = p->color && COLORS >= DIRECT;
    if (p->level == THEME_RGB && !p->direct && COLORS >= 256)
        p->slots = color_slots_new();
}

void palette_theme(struct palette *p, const struct theme *t)
{
    p->theme = t;
    if (p->level == THEME_MONO && theme_load(&p->mono, "mono", NULL, NULL) == 0)
        p->theme = &p->mono;
}
