/* What curses wrote for a frame, in fewer bytes. Curses resets all attributes and the character
 * set whenever a style ends, and goes to places by row and column. Here the pen and the place are
 * known as the terminal has them: what is asked for twice is said once, and only when something
 * is written with it. Whatever is not understood goes through as it is. */
#include "term_priv.h"

#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNKNOWN = -1, COLOR_BYTES = 24, PARAMS_BYTES = 96, FLAGS = 9, BACK_MOST = 4 };

struct pen {
    unsigned flags; /* 1 << N of SGR N, 1 to FLAGS */
    char fg[COLOR_BYTES], bg[COLOR_BYTES]; /* parameters, "" = the terminal's own */
};
struct place {
    int y, x;       /* UNKNOWN both */
};
struct shortener {
    int h, w;
    bool columns, rows; /* it goes to a column, to a row, by CHA and VPA */
    bool fresh;     /* nothing is known of the terminal: its character set is set once */
    bool charset;   /* another one was asked for */
    bool region;    /* rows scroll in a part of the screen, which holds the cursor */
    bool pen_known;
    bool odd;       /* the pen has something that is not understood, until the next reset */
    struct pen pen, want;
    struct place at, to;
    bool moves;     /* .to is not .at, or .how says how */
    struct buf how; /* as curses has it, where the place to go to is unknown */
};

struct shortener *shortener_new(bool columns, bool rows)
{
    struct shortener *s = xcalloc(1, sizeof(*s));
    s->columns = columns;
    s->rows = rows;
    return s;
}

void shortener_free(struct shortener *s)
{
    if (!s)
        return;
    buf_release(&s->how);
    free(s);
}

/* --- the pen ---------------------------------------------------------------------------- */

/* A colour's parameters at p, which begin with 38 or 48: their length, 0 = not understood. */
static size_t color_len(const char *p, size_t len)
{
    size_t parts = 0, i = 2;
    if (i < len && p[i] == ':')
        return strcspn(p, ";m");
    if (i + 2 >= len || p[i] != ';' || (p[i + 1] != '5' && p[i + 1] != '2'))
        return 0;
    parts = p[i + 1] == '5' ? 1 : 3;
    for (i += 2; parts && i < len && p[i] == ';'; parts--)
        i += 1 + strspn(p + i + 1, "0123456789");
    return parts ? 0 : i;
}

static bool set_color(char dst[COLOR_BYTES], const char *p, size_t len)
{
    if (len == 0 || len >= COLOR_BYTES)
        return false;
    memcpy(dst, p, len);
    dst[len] = 0;
    return true;
}

/* One parameter that is a number alone. */
static bool set_number(struct pen *pen, const char *p, size_t len, int n)
{
    if (n == 0)
        *pen = (struct pen){0};
    else if (n <= FLAGS)
        pen->flags |= 1u << n;
    else if (n == 22)
        pen->flags &= ~(1u << 1 | 1u << 2);
    else if (n >= 23 && n <= 29)
        pen->flags &= ~(1u << (n - 20));
    else if ((n >= 30 && n <= 37) || (n >= 90 && n <= 97))
        return set_color(pen->fg, p, len);
    else if ((n >= 40 && n <= 47) || (n >= 100 && n <= 107))
        return set_color(pen->bg, p, len);
    else if (n == 39)
        pen->fg[0] = 0;
    else if (n == 49)
        pen->bg[0] = 0;
    else
        return n == 10; /* the first font: no other one is asked for */
    return true;
}

/* The parameters of an SGR at p; false: not all of them are understood. */
static bool read_pen(struct pen *pen, const char *p, size_t len)
{
    for (size_t i = 0; i <= len; i++) {
        size_t digits = strspn(p + i, "0123456789");
        int n = digits && digits < 4 ? (int)strtol(p + i, NULL, 10) : 0;
        size_t color = n == 38 || n == 48 ? color_len(p + i, len - i) : 0;
        if (color ? !set_color(n == 38 ? pen->fg : pen->bg, p + i, color)
                  : digits >= 4 || !set_number(pen, p + i, digits, n))
            return false;
        i += color ? color : digits;
        if (i < len && p[i] != ';')
            return false;
    }
    return true;
}

static void add(char *dst, const char *param)
{
    size_t n = strlen(dst);
    snprintf(dst + n, PARAMS_BYTES - n, "%s%s", n ? ";" : "", param);
}

static void add_flags(char *dst, unsigned flags)
{
    for (int n = 1; n <= FLAGS; n++) {
        char digit[2] = {(char)('0' + n), 0};
        if (flags & 1u << n)
            add(dst, digit);
    }
}

/* From what it is to what it should be, or from nothing: what is shorter. */
static void use_pen(struct shortener *s, struct buf *out)
{
    const struct pen *is = &s->pen, *to = &s->want;
    char more[PARAMS_BYTES] = "", all[PARAMS_BYTES] = "";
    bool same_fg = strcmp(is->fg, to->fg) == 0, same_bg = strcmp(is->bg, to->bg) == 0;
    if (s->odd || (s->pen_known && is->flags == to->flags && same_fg && same_bg))
        return;
    add_flags(more, to->flags & ~is->flags);
    if (!same_fg)
        add(more, to->fg[0] ? to->fg : "39");
    if (!same_bg)
        add(more, to->bg[0] ? to->bg : "49");
    if (to->flags || to->fg[0] || to->bg[0])
        add(all, "0");
    add_flags(all, to->flags);
    if (to->fg[0])
        add(all, to->fg);
    if (to->bg[0])
        add(all, to->bg);
    bool grows = s->pen_known && !(is->flags & ~to->flags) && strlen(more) < strlen(all);
    buf_addf(out, "\033[%sm", grows ? more : all);
    s->pen = s->want;
    s->pen_known = true;
}

/* --- the place --------------------------------------------------------------------------- */

static bool known(const struct place *p)
{
    return p->y >= 0;
}

enum { WAY = 32 };

static void keep_shorter(char best[WAY], const char *text)
{
    if (!best[0] || strlen(text) < strlen(best))
        snprintf(best, WAY, "%s", text);
}

/* Along the row; by cells to the right, never 0. */
static void sideways(const struct shortener *s, int x, int by, char best[WAY])
{
    char text[WAY];
    if (s->columns) {
        snprintf(text, sizeof(text), "\033[%dG", x + 1);
        keep_shorter(best, text);
    }
    snprintf(text, sizeof(text), by == 1 ? "\033[C" : "\033[%dC", by);
    if (by > 0)
        keep_shorter(best, text);
    snprintf(text, sizeof(text), "%.*s", -by, "\b\b\b\b");
    if (by < 0 && by >= -BACK_MOST)
        keep_shorter(best, text);
    if (x == 0)
        keep_shorter(best, "\r");
}

static void go(const struct shortener *s, const struct place *to, struct buf *out)
{
    const struct place *at = &s->at;
    char best[WAY] = "", text[WAY];
    int by = to->x - at->x, down = to->y - at->y;
    snprintf(best, sizeof(best), to->x ? "\033[%d;%dH" : to->y ? "\033[%dH" : "\033[H", to->y + 1,
             to->x + 1);
    if (known(at) && down == 0)
        sideways(s, to->x, by, best);
    if (known(at) && down == 1 && !s->region && (to->x == 0 || s->columns)) {
        snprintf(text, sizeof(text), to->x ? "\n\033[%dG" : "\r\n", to->x + 1);
        keep_shorter(best, text); /* right also where a new line begins at the left */
    }
    if (known(at) && by == 0 && s->rows) {
        snprintf(text, sizeof(text), "\033[%dd", to->y + 1);
        keep_shorter(best, text);
    }
    buf_adds(out, best);
}

static void use_place(struct shortener *s, struct buf *out)
{
    bool same = known(&s->at) && s->to.y == s->at.y && s->to.x == s->at.x;
    if (!s->moves)
        return;
    if (!known(&s->to))
        buf_add(out, s->how.p ? s->how.p : "", s->how.len);
    else if (!same)
        go(s, &s->to, out);
    s->at = s->to;
    s->moves = false;
    buf_clear(&s->how);
}

static void lose_place(struct shortener *s)
{
    s->at = s->to = (struct place){UNKNOWN, UNKNOWN};
}

static int within(int v, int n)
{
    return v < 0 ? 0 : v >= n ? n - 1 : v;
}

static void move_to(struct shortener *s, int y, int x)
{
    s->to = (struct place){within(y, s->h), within(x, s->w)};
    s->moves = true;
    buf_clear(&s->how);
}

/* On from a place that is unknown, as curses has it. */
static void move_blindly(struct shortener *s, const char *p, size_t len)
{
    s->to = (struct place){UNKNOWN, UNKNOWN};
    s->moves = true;
    buf_add(&s->how, p, len);
}

/* --- what curses wrote -------------------------------------------------------------------- */

static void verbatim(struct shortener *s, const char *p, size_t len, struct buf *out)
{
    use_place(s, out);
    use_pen(s, out);
    buf_add(out, p, len);
}

/* Text without a control, as much as there is of it. */
static size_t plain_text(struct shortener *s, const char *p, size_t len, struct buf *out)
{
    size_t n = 0;
    bool ascii = true;
    while (n < len && (unsigned char)p[n] >= ' ' && p[n] != 0x7F)
        ascii &= (unsigned char)p[n++] < 0x80;
    verbatim(s, p, n, out);
    s->at.x += (int)n;
    if (!ascii || !known(&s->at) || s->at.x >= s->w) /* how wide that was, the terminal knows */
        lose_place(s);
    s->to = s->at;
    return n;
}

static struct place from(const struct shortener *s)
{
    return s->moves ? s->to : s->at;
}

/* CSI p ... last: a move of the cursor? */
static bool is_move(struct shortener *s, const char *all, size_t len)
{
    int a = 1, b = 1, n = sscanf(all + 2, "%d;%d", &a, &b);
    struct place to = from(s);
    bool blind = !known(&to);
    int by = n >= 1 && a > 0 ? a : 1;
    if (s->region && strchr("AB", all[len - 1]))
        return false;
    switch (all[len - 1]) {
    case 'H':
        move_to(s, a - 1, b - 1);
        return true;
    case 'G':
        to.x = by - 1;
        break;
    case 'd':
        to.y = by - 1;
        break;
    case 'A':
        to.y -= by;
        break;
    case 'B':
        to.y += by;
        break;
    case 'C':
        to.x += by;
        break;
    case 'D':
        to.x -= by;
        break;
    default:
        return false;
    }
    if (blind)
        move_blindly(s, all, len);
    else
        move_to(s, to.y, to.x);
    return true;
}

/* Nothing of it moves the cursor: erasing, and showing the cursor or not. */
static bool stays(const char *all, size_t len)
{
    static const char shown[] = "\033[?25", hidden[] = "\033[?12";
    return strchr("XKJ", all[len - 1]) || strncmp(all, shown, 5) == 0 ||
           strncmp(all, hidden, 5) == 0;
}

static void read_region(struct shortener *s, const char *p)
{
    int top = 1, bottom = s->h, n = sscanf(p, "%d;%d", &top, &bottom);
    s->region = n > 0 && (top > 1 || bottom < s->h);
}

static void sgr(struct shortener *s, const char *p, size_t n, struct buf *out)
{
    struct pen to = s->want;
    bool resets = strchr("m;", p[2]) || (p[2] == '0' && strchr("m;", p[3]));
    if ((!s->odd || resets) && read_pen(&to, p + 2, n - 3)) {
        s->pen_known &= !s->odd;
        s->odd = false;
        s->want = to;
        return;
    }
    verbatim(s, p, n, out);
    s->odd = true;
    s->pen_known = false;
}

static size_t csi(struct shortener *s, const char *p, size_t len, struct buf *out)
{
    size_t n = 2;
    while (n < len && !(p[n] >= 0x40 && p[n] <= 0x7E))
        n++;
    n += n < len;
    bool plain = n > 2 && strspn(p + 2, "0123456789;:") == n - 3;
    if (plain && p[n - 1] == 'm') {
        sgr(s, p, n, out);
        return n;
    }
    if (plain && is_move(s, p, n))
        return n;
    verbatim(s, p, n, out);
    if (p[n - 1] == 'r')
        read_region(s, p + 2);
    if (!stays(p, n))
        lose_place(s);
    return n;
}

static size_t back_to_ascii(struct shortener *s, const char *p, size_t n, struct buf *out)
{
    if (s->fresh || s->charset)
        buf_add(out, p, n);
    s->fresh = s->charset = false;
    return n;
}

/* One control that is no CSI. */
static size_t control(struct shortener *s, const char *p, size_t len, struct buf *out)
{
    struct place to = from(s);
    size_t n = *p == 0x1B && len > 1 ? 2 : 1;
    if (*p == '\r' || *p == '\b') {
        if (known(&to))
            move_to(s, to.y, *p == '\r' ? 0 : to.x - 1);
        else
            move_blindly(s, p, 1);
        return 1;
    }
    if (*p == 0x0F)
        return back_to_ascii(s, p, 1, out);
    if (n == 2 && p[1] == '(' && len > 2) {
        if (p[2] == 'B')
            return back_to_ascii(s, p, 3, out);
        s->charset = true;
        n = 3;
    }
    s->charset |= *p == 0x0E;
    verbatim(s, p, n, out);
    lose_place(s);
    return n;
}

void shortener_begin(struct shortener *s, int h, int w, bool fresh, bool home)
{
    s->h = h;
    s->w = w;
    s->fresh |= fresh;
    s->pen_known = s->pen_known && !fresh;
    s->moves = false;
    buf_clear(&s->how);
    lose_place(s);
    if (home)
        s->at = s->to = (struct place){0, 0};
}

/* `text` ends with a NUL behind its len bytes. */
void shortener_feed(struct shortener *s, const char *text, size_t len, struct buf *out)
{
    for (size_t i = 0; i < len;) {
        const char *p = text + i;
        if ((unsigned char)*p >= ' ' && *p != 0x7F)
            i += plain_text(s, p, len - i, out);
        else if (*p == 0x1B && i + 1 < len && p[1] == '[')
            i += csi(s, p, len - i, out);
        else
            i += control(s, p, len - i, out);
    }
    use_place(s, out);
    use_pen(s, out);
}
