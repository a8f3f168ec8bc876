/* The grid of cells that panes draw on. */
#include <cct/ui/canvas.h>

#include <cct/model/sandbox.h>
#include <cct/text/width.h>
#include <cct/util/buf.h>
#include <cct/util/utf8.h>
#include <cct/util/xalloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CANVAS_MAX = 1000 };

static const struct cell blank = {" ", ROLE_TEXT, 0, TEXT_COLOR_DEFAULT, TEXT_COLOR_DEFAULT};

void canvas_init(struct canvas *c)
{
    memset(c, 0, sizeof(*c));
    c->cursor_y = c->cursor_x = -1;
}

void canvas_release(struct canvas *c)
{
    free(c->cells);
    memset(c, 0, sizeof(*c));
}

static int clamp(int v, int lo, int hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

void canvas_resize(struct canvas *c, int h, int w)
{
    c->h = clamp(h, 0, CANVAS_MAX);
    c->w = clamp(w, 0, CANVAS_MAX);
    free(c->cells);
    c->cells = xcalloc((size_t)c->h * (size_t)c->w + 1, sizeof(*c->cells));
    canvas_erase(c, ROLE_TEXT);
}

static struct cell style_of(enum theme_role role)
{
    struct cell s = blank;
    s.role = (uint16_t)role;
    return s;
}

static struct cell *at(const struct canvas *c, int y, int x)
{
    return &c->cells[(size_t)y * (size_t)c->w + (size_t)x];
}

void canvas_erase(struct canvas *c, enum theme_role role)
{
    c->scrolls = (struct rect){0};
    c->clip = (struct rect){0, 0, c->h, c->w};
    c->cursor_y = c->cursor_x = -1;
    struct cell style = style_of(role);
    for (int x = 0; x < c->w && c->h; x++)
        c->cells[x] = style;
    for (int y = 1; y < c->h; y++)
        memcpy(at(c, y, 0), c->cells, (size_t)c->w * sizeof(*c->cells));
}

struct rect canvas_clip(struct canvas *c, struct rect r)
{
    struct rect old = c->clip;
    int y2 = r.y + r.h < old.y + old.h ? r.y + r.h : old.y + old.h;
    int x2 = r.x + r.w < old.x + old.w ? r.x + r.w : old.x + old.w;
    c->clip.y = r.y > old.y ? r.y : old.y;
    c->clip.x = r.x > old.x ? r.x : old.x;
    c->clip.h = y2 > c->clip.y ? y2 - c->clip.y : 0;
    c->clip.w = x2 > c->clip.x ? x2 - c->clip.x : 0;
    return old;
}

void canvas_unclip(struct canvas *c, struct rect old)
{
    c->clip = old;
}

static bool visible(const struct canvas *c, int y, int x)
{
    return y >= c->clip.y && y < c->clip.y + c->clip.h && x >= c->clip.x &&
           x < c->clip.x + c->clip.w;
}

static void blank_cell(struct cell *cell)
{
    cell->ch[0] = ' ';
    cell->ch[1] = 0;
}

/* Overwriting half of a wide character blanks its other half. */
static void split_wide(struct canvas *c, int y, int x)
{
    if (at(c, y, x)->ch[0] == 0 && x > 0)
        blank_cell(at(c, y, x - 1));
    if (x + 1 < c->w && at(c, y, x + 1)->ch[0] == 0)
        blank_cell(at(c, y, x + 1));
}

static void set_cell(struct canvas *c, int y, int x, const char *s, size_t len, int w,
                     const struct cell *style)
{
    split_wide(c, y, x);
    struct cell *cell = at(c, y, x);
    if (len >= sizeof(cell->ch)) {
        s = "?";
        len = 1;
    }
    *cell = *style;
    memcpy(cell->ch, s, len);
    cell->ch[len] = 0;
    if (w == 2 && x + 1 < c->w) {
        split_wide(c, y, x + 1);
        struct cell *right = at(c, y, x + 1);
        *right = *style;
        right->ch[0] = 0;
    }
}

/* One cluster of text as ASCII, for terminals and locales without UTF-8. */
static const char *ascii_of(const char *s, size_t len)
{
    static const struct {
        uint32_t cp;
        const char *to;
    } table[] = {{0x2018, "'"}, {0x2019, "'"}, {0x201C, "\""}, {0x201D, "\""}, {0x2013, "-"},
                 {0x2014, "-"}, {0x2022, "*"}, {0x2026, "."},  {0x2190, "<"},  {0x2192, ">"},
                 {0x2191, "^"}, {0x2193, "v"}, {0x2500, "-"},  {0x2502, "|"},  {0x2713, "+"},
                 {0x2714, "+"}, {0x2717, "x"}, {0x2718, "x"},  {0xA0, " "}};
    uint32_t cp = 0;
    utf8_decode(s, len, &cp);
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (table[i].cp == cp)
            return table[i].to;
    if (cp >= 0x2500 && cp <= 0x257F)
        return "+";
    return "?";
}

/* The cluster s[0..n) as it may be shown, into dst; its length. Hidden characters must not
 * reach the terminal in the company of others either: the input line shows what was pasted,
 * uncleaned. */
static size_t seen_cluster(const char *s, size_t n, char dst[24])
{
    size_t len = 0;
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        size_t used = utf8_decode(s + i, n - i, &cp);
        if (used == 0)
            break;
        cp = text_cp_shown(cp);
        if (cp && len + 4 < 24)
            len += utf8_encode(dst + len, cp);
        i += used;
    }
    return len;
}

/* Draw clusters with one style; `used` cells so far, stops at max. */
static int put(struct canvas *c, int y, int x, int max, const struct cell *style, const char *s,
               size_t len)
{
    int used = 0;
    for (size_t i = 0; i < len;) {
        int w = 1;
        size_t n;
        const char *ch = s + i;
        char shown[24];
        if ((unsigned char)s[i] < 0x80 && (i + 1 == len || (unsigned char)s[i + 1] < 0x80)) {
            n = 1;
            if ((unsigned char)s[i] < 0x20 || s[i] == 0x7F)
                ch = " "; /* nothing of this kind passes the cleaner */
        } else {
            n = text_cluster(s + i, len - i, &w);
            ch = shown;
        }
        size_t out = ch == shown ? seen_cluster(s + i, n, shown) : 1;
        if (w == 0 || out == 0) {
            i += n;
            continue;
        }
        if (max >= 0 && used + w > max)
            break;
        if (c->ascii && (unsigned char)*ch >= 0x80) {
            ch = ascii_of(ch, out);
            out = 1;
        }
        for (int k = 0; c->ascii && w == 2 && k < 2; k++)
            if (visible(c, y, x + used + k))
                set_cell(c, y, x + used + k, ch, out, 1, style);
        if (!(c->ascii && w == 2) && visible(c, y, x + used)) {
            if (w == 2 && !visible(c, y, x + used + 1))
                set_cell(c, y, x + used, " ", 1, 1, style);
            else
                set_cell(c, y, x + used, ch, out, w, style);
        }
        used += w;
        i += n;
        if (x + used >= c->clip.x + c->clip.w && max < 0)
            break;
    }
    return used;
}

int canvas_textn(struct canvas *c, int y, int x, int max, enum theme_role role, const char *s,
                 size_t len)
{
    if (y < 0 || y >= c->h || !s)
        return 0;
    struct cell style = style_of(role);
    return put(c, y, x, max, &style, s, len);
}

int canvas_text(struct canvas *c, int y, int x, int max, enum theme_role role, const char *s)
{
    return s ? canvas_textn(c, y, x, max, role, s, strlen(s)) : 0;
}

int canvas_textf(struct canvas *c, int y, int x, int max, enum theme_role role, const char *fmt,
                 ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return canvas_text(c, y, x, max, role, text);
}

int canvas_name(struct canvas *c, int y, int x, int max, enum theme_role role, const char *name)
{
    enum { LEAST_CELLS = 10, END_CELLS = 4 };
    size_t n = name ? strlen(name) : 0;

    if (max < LEAST_CELLS || n <= (size_t)max || !sandbox_name_ok(name))
        return canvas_text(c, y, x, max, role, name);
    return canvas_textf(c, y, x, max, role, "%.*s~%s", max - 1 - END_CELLS, name,
                        name + n - END_CELLS);
}

int canvas_right(struct canvas *c, int y, int x, int w, enum theme_role role, const char *s)
{
    size_t used = 0;
    size_t n = text_fit(s, strlen(s), w > 0 ? (size_t)w : 0, &used);
    canvas_textn(c, y, x + w - (int)used, (int)used, role, s, n);
    return (int)used;
}

int canvas_runs(struct canvas *c, int y, int x, int max, enum theme_role role, const char *s,
                size_t len, const struct text_run *runs, size_t n_runs, size_t from)
{
    if (y < 0 || y >= c->h)
        return 0;
    size_t r = 0;
    int used = 0;
    size_t i = 0;
    while (i < len) {
        while (r < n_runs && runs[r].at <= from + i)
            r++;
        size_t end = r < n_runs && runs[r].at - from < len ? runs[r].at - from : len;
        struct cell style = style_of(role);
        if (r > 0) {
            const struct text_attr *a = &runs[r - 1].attr;
            style.fg = a->fg;
            style.bg = a->bg;
            style.flags = a->flags;
        }
        int left = max < 0 ? -1 : max - used;
        if (left == 0)
            break;
        used += put(c, y, x + used, left, &style, s + i, end - i);
        i = end;
    }
    return used;
}

void canvas_fill(struct canvas *c, struct rect r, enum theme_role role, const char *cluster)
{
    struct cell style = style_of(role);
    for (int y = r.y; y < r.y + r.h; y++)
        for (int x = r.x; x < r.x + r.w; x++)
            if (y >= 0 && y < c->h && visible(c, y, x))
                set_cell(c, y, x, cluster, strlen(cluster), 1, &style);
}

/* --- hints ------------------------------------------------------------------------------ */

enum { HINTS_MOST = 12, HINTS_BYTES = 256 };

struct hints {
    const char *at[HINTS_MOST];
    size_t len[HINTS_MOST];
    int n, gap; /* cells between two: more where keys stand apart from what they do */
};

static int hints_width(const struct hints *h)
{
    int w = h->gap * (h->n - 1);
    for (int i = 0; i < h->n; i++)
        w += (int)text_width(h->at[i], h->len[i]);
    return w;
}

static void hints_split(struct hints *h, const char *text)
{
    *h = (struct hints){.gap = strstr(text, "  ") ? 4 : 2};
    for (const char *p = text; h->n < HINTS_MOST; p++) {
        size_t n = strcspn(p, "\t");
        h->at[h->n] = p;
        h->len[h->n++] = n;
        p += n;
        if (!*p)
            break;
    }
}

static void hints_fit(const char *text, int w, char dst[HINTS_BYTES])
{
    struct hints h;
    size_t used = 0;
    hints_split(&h, text);
    while (h.n > 1 && hints_width(&h) > w) {
        int out = h.n > 2 ? h.n - 2 : 1;
        for (int i = out; i + 1 < h.n; i++) {
            h.at[i] = h.at[i + 1];
            h.len[i] = h.len[i + 1];
        }
        h.n--;
    }
    for (int i = 0; i < h.n && used < HINTS_BYTES; i++)
        used += (size_t)snprintf(dst + used, HINTS_BYTES - used, "%*s%.*s", i ? h.gap : 0, "",
                                 (int)h.len[i], h.at[i]);
}

void canvas_hints(struct canvas *c, int y, int x, int w, enum theme_role role, const char *hints)
{
    char text[HINTS_BYTES] = "";
    hints_fit(hints, w, text);
    canvas_text(c, y, x, w, role, text);
}

void canvas_rule(struct canvas *c, int y, int x, int w, enum theme_role role, const char *title,
                 const char *right, bool focused)
{
    canvas_fill(c, (struct rect){y, x, 1, w}, role, focused ? "=" : "-");
    if (title && *title && w > 6) {
        canvas_text(c, y, x + 1, 1, role, " ");
        int n = canvas_text(c, y, x + 2, w - 5, ROLE_TITLE, title);
        canvas_text(c, y, x + 2 + n, 1, role, " ");
        int room = w - n - 8;
        char fit[HINTS_BYTES] = "";
        if (right)
            hints_fit(right, room, fit);
        size_t rw = text_width(fit, strlen(fit));
        if (rw && (int)rw <= room) {
            canvas_text(c, y, x + w - (int)rw - 4, 1, role, " ");
            canvas_text(c, y, x + w - (int)rw - 3, (int)rw, ROLE_HINT, fit);
            canvas_text(c, y, x + w - 3, 1, role, " ");
        }
    }
}

void canvas_frame(struct canvas *c, struct rect r, enum theme_role role, const char *title,
                  const char *right)
{
    if (r.h < 2 || r.w < 2)
        return;
    canvas_fill(c, r, role, " ");
    for (int y = r.y + 1; y < r.y + r.h - 1; y++) {
        canvas_text(c, y, r.x, 1, role, "|");
        canvas_text(c, y, r.x + r.w - 1, 1, role, "|");
    }
    canvas_rule(c, r.y, r.x, r.w, role, title, right, false);
    canvas_rule(c, r.y + r.h - 1, r.x, r.w, role, NULL, NULL, false);
    const int ys[] = {r.y, r.y + r.h - 1}, xs[] = {r.x, r.x + r.w - 1};
    for (int i = 0; i < 4; i++)
        canvas_text(c, ys[i / 2], xs[i % 2], 1, role, "+");
}

void canvas_mark(struct canvas *c, struct rect r, uint16_t flags)
{
    for (int y = r.y; y < r.y + r.h; y++)
        for (int x = r.x; x < r.x + r.w; x++)
            if (y >= 0 && y < c->h && visible(c, y, x))
                at(c, y, x)->flags |= flags;
}

void canvas_role(struct canvas *c, struct rect r, enum theme_role role)
{
    for (int y = r.y; y < r.y + r.h; y++)
        for (int x = r.x; x < r.x + r.w; x++)
            if (y >= 0 && y < c->h && visible(c, y, x))
                at(c, y, x)->role = (uint16_t)role;
}

static void dump_row(const struct canvas *c, int y, struct buf *b)
{
    size_t start = b->len;
    for (int x = 0; x < c->w; x++)
        buf_adds(b, at(c, y, x)->ch);
    while (b->len > start && b->p[b->len - 1] == ' ')
        buf_truncate(b, b->len - 1);
    buf_addc(b, '\n');
}

char *canvas_dump(const struct canvas *c, bool roles)
{
    struct buf b = BUF_INIT;
    for (int y = 0; y < c->h; y++)
        dump_row(c, y, &b);
    for (int y = 0; roles && y < c->h; y++) {
        for (int x = 0; x < c->w; x++)
            buf_addc(&b, theme_role_letter(at(c, y, x)->role));
        buf_addc(&b, '\n');
    }
    return buf_detach(&b, NULL);
}

bool cell_equal(const struct cell *a, const struct cell *b)
{
    return a->role == b->role && a->flags == b->flags && a->fg == b->fg && a->bg == b->bg &&
           strcmp(a->ch, b->ch) == 0;
}
