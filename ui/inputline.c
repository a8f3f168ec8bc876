/* A multi-line text editor for one field. */
#include <cct/ui/inputline.h>

#include <cct/text/width.h>
#include <cct/util/arr.h>
#include <cct/util/str.h>
#include <cct/util/utf8.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_HISTORY = 200 };

void inputline_init(struct inputline *l, bool multiline, size_t max)
{
    memset(l, 0, sizeof(*l));
    l->multiline = multiline;
    l->max = max;
}

void inputline_release(struct inputline *l)
{
    buf_release(&l->text);
    free(l->kill);
    free(l->draft);
    for (size_t i = 0; i < l->n_history; i++)
        free(l->history[i]);
    free(l->history);
    memset(l, 0, sizeof(*l));
}

const char *inputline_text(struct inputline *l)
{
    return buf_str(&l->text);
}

void inputline_set(struct inputline *l, const char *text)
{
    buf_clear(&l->text);
    l->cursor = 0;
    l->scroll = 0;
    if (text)
        inputline_insert(l, text, strlen(text));
}

static void insert_raw(struct inputline *l, const char *s, size_t n)
{
    size_t tail = l->text.len - l->cursor;
    char *room = buf_reserve(&l->text, n + 1);
    if (!room)
        return;
    char *at = l->text.p + l->cursor;
    memmove(at + n, at, tail);
    memcpy(at, s, n);
    l->text.len += n;
    l->text.p[l->text.len] = 0;
    l->cursor += n;
}

bool inputline_insert(struct inputline *l, const char *s, size_t len)
{
    struct buf clean = BUF_INIT;
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        size_t n = utf8_decode(s + i, len - i, &cp);
        if (n == 0)
            break; /* cut in the middle of a character */
        if (cp == '\r') {
            if (i + 1 < len && s[i + 1] == '\n')
                n = 2;
            cp = '\n';
        }
        if (cp == '\n')
            buf_addc(&clean, l->multiline ? '\n' : ' ');
        else if (cp == '\t')
            buf_addc(&clean, l->multiline ? '\t' : ' ');
        else if (cp >= 0x20 && cp != 0x7F && !(cp >= 0x80 && cp < 0xA0) && cp != UTF8_BAD)
            buf_add(&clean, s + i, n);
        i += n;
    }
    size_t room = l->max > l->text.len ? l->max - l->text.len : 0;
    size_t n = clean.len;
    bool fits = n <= room;
    if (!fits) {
        n = 0;
        while (n < clean.len) {
            size_t step = text_cluster(clean.p + n, clean.len - n, &(int){0});
            if (n + step > room)
                break;
            n += step;
        }
    }
    if (n)
        insert_raw(l, clean.p, n);
    buf_release(&clean);
    return fits;
}

static void erase(struct inputline *l, size_t from, size_t to, bool keep)
{
    if (from >= to)
        return;
    if (keep) {
        free(l->kill);
        l->kill = xstrndup(l->text.p + from, to - from);
    }
    memmove(l->text.p + from, l->text.p + to, l->text.len - to);
    buf_truncate(&l->text, l->text.len - (to - from));
    l->cursor = from;
}

static size_t prev_cluster(const struct inputline *l, size_t at)
{
    if (at == 0)
        return 0;
    if (l->text.p[at - 1] == '\n')
        return at - 1;
    return at - text_cluster_before(l->text.p, at);
}

static size_t next_cluster(const struct inputline *l, size_t at)
{
    if (at >= l->text.len)
        return at;
    if (l->text.p[at] == '\n')
        return at + 1;
    return at + text_cluster(l->text.p + at, l->text.len - at, &(int){0});
}

static bool is_word(const struct inputline *l, size_t at)
{
    unsigned char c = (unsigned char)l->text.p[at];
    return c >= 0x80 || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') ||
           c == '_';
}

static size_t word_left(const struct inputline *l)
{
    size_t at = l->cursor;
    while (at > 0 && !is_word(l, at - 1))
        at--;
    while (at > 0 && is_word(l, at - 1))
        at--;
    return at;
}

static size_t word_right(const struct inputline *l)
{
    size_t at = l->cursor;
    while (at < l->text.len && !is_word(l, at))
        at++;
    while (at < l->text.len && is_word(l, at))
        at++;
    return at;
}

static size_t line_begin(const struct inputline *l, size_t at)
{
    while (at > 0 && l->text.p[at - 1] != '\n')
        at--;
    return at;
}

static size_t line_end(const struct inputline *l, size_t at)
{
    while (at < l->text.len && l->text.p[at] != '\n')
        at++;
    return at;
}

static void kill_to_end(struct inputline *l)
{
    size_t end = line_end(l, l->cursor);
    if (end == l->cursor && end < l->text.len)
        end++; /* at the end of a line: join the next one */
    erase(l, l->cursor, end, true);
}

static bool printable(key_code k)
{
    return !(k & (KEYC_SPECIAL | KEYC_ALT)) && k >= ' ' && k != 0x7F && !(k >= 0x80 && k < 0xA0);
}

static bool move_key(struct inputline *l, key_code k)
{
    switch (k) {
    case K_LEFT:
    case 'B' & 0x1F:
        l->cursor = prev_cluster(l, l->cursor);
        return true;
    case K_RIGHT:
    case 'F' & 0x1F:
        l->cursor = next_cluster(l, l->cursor);
        return true;
    case K_HOME:
    case 'A' & 0x1F:
        l->cursor = line_begin(l, l->cursor);
        return true;
    case K_END:
    case 'E' & 0x1F:
        l->cursor = line_end(l, l->cursor);
        return true;
    case KEYC_ALT | 'b':
        l->cursor = word_left(l);
        return true;
    case KEYC_ALT | 'f':
        l->cursor = word_right(l);
        return true;
    default:
        return false;
    }
}

bool inputline_key(struct inputline *l, key_code k)
{
    if (printable(k)) {
        char s[4];
        inputline_insert(l, s, utf8_encode(s, k));
        return true;
    }
    if (move_key(l, k))
        return true;
    switch (k) {
    case K_BACKSPACE:
    case 'H' & 0x1F:
        erase(l, prev_cluster(l, l->cursor), l->cursor, false);
        return true;
    case K_DELETE:
    case 'D' & 0x1F:
        erase(l, l->cursor, next_cluster(l, l->cursor), false);
        return true;
    case 'K' & 0x1F:
        kill_to_end(l);
        return true;
    case 'U' & 0x1F:
        erase(l, line_begin(l, l->cursor), l->cursor, true);
        return true;
    case 'W' & 0x1F:
    case KEYC_ALT | K_BACKSPACE:
        erase(l, word_left(l), l->cursor, true);
        return true;
    case KEYC_ALT | 'd':
        erase(l, l->cursor, word_right(l), true);
        return true;
    case 'Y' & 0x1F:
        if (l->kill)
            inputline_insert(l, l->kill, strlen(l->kill));
        return true;
    default:
        return false;
    }
}

void inputline_history_add(struct inputline *l, const char *text)
{
    if (!*text || (l->n_history && str_eq(l->history[l->n_history - 1], text))) {
        l->at_history = l->n_history;
        return;
    }
    if (l->n_history == MAX_HISTORY) {
        free(l->history[0]);
        memmove(l->history, l->history + 1, (MAX_HISTORY - 1) * sizeof(*l->history));
        l->n_history--;
    }
    l->history = xrealloc(l->history, (l->n_history + 1) * sizeof(*l->history));
    l->history[l->n_history++] = xstrdup(text);
    l->at_history = l->n_history;
}

static void show_history(struct inputline *l, size_t at)
{
    if (l->at_history == l->n_history) {
        free(l->draft);
        l->draft = xstrdup(inputline_text(l));
    }
    l->at_history = at;
    char *text = xstrdup(at < l->n_history ? l->history[at] : l->draft ? l->draft : "");
    inputline_set(l, text);
    free(text);
}

bool inputline_history_prev(struct inputline *l)
{
    size_t begin = line_begin(l, l->cursor);
    if (begin > 0) { /* a line up inside the text */
        size_t col = text_width(l->text.p + begin, l->cursor - begin);
        size_t up = line_begin(l, begin - 1), used;
        l->cursor = up + text_fit(l->text.p + up, begin - 1 - up, col, &used);
        return true;
    }
    if (l->at_history == 0)
        return false;
    show_history(l, l->at_history - 1);
    return true;
}

bool inputline_history_next(struct inputline *l)
{
    size_t end = line_end(l, l->cursor);
    if (end < l->text.len) {
        size_t begin = line_begin(l, l->cursor);
        size_t col = text_width(l->text.p + begin, l->cursor - begin), used;
        size_t next_end = line_end(l, end + 1);
        l->cursor = end + 1 + text_fit(l->text.p + end + 1, next_end - end - 1, col, &used);
        return true;
    }
    if (l->at_history >= l->n_history)
        return false;
    show_history(l, l->at_history + 1);
    return true;
}

/* --- drawing ---------------------------------------------------------------- */

/* Visit the wrapped rows; the callback gets row number and byte span. */
struct rows {
    int n;                /* rows so far */
    int cursor_row;
    size_t cursor_begin;  /* begin of the row the cursor is in */
};

static void layout(struct inputline *l, int w, struct rows *r,
                   void (*fn)(void *, int, size_t, size_t), void *ctx)
{
    const char *s = inputline_text(l);
    size_t len = l->text.len, cells = w > 0 ? (size_t)w : 1;
    memset(r, 0, sizeof(*r));
    for (size_t line = 0; line <= len;) {
        size_t end = line_end(l, line), at = line;
        do {
            size_t next, stop = line + text_wrap(s + line, end - line, at - line, cells, &next);
            next += line;
            if (next <= at)
                next = end;
            bool last = next >= end;
            if (l->cursor >= at && (l->cursor < next || (last && l->cursor <= end))) {
                r->cursor_row = r->n;
                r->cursor_begin = at;
            }
            if (fn)
                fn(ctx, r->n, at, last ? end : stop);
            r->n++;
            if (last && l->cursor == end && text_width(s + at, end - at) >= cells) {
                r->cursor_row = r->n++; /* behind a full row: on the next one */
                r->cursor_begin = end;
            }
            at = next;
        } while (at < end);
        line = end + 1;
    }
}

int inputline_rows(struct inputline *l, int w)
{
    struct rows r;
    layout(l, w, &r, NULL, NULL);
    return r.n;
}

struct draw {
    struct inputline *l;
    struct canvas *c;
    struct rect r;
    enum theme_role role;
};

static void draw_row(void *ctx, int row, size_t from, size_t to)
{
    struct draw *d = ctx;
    int y = row - d->l->scroll;
    if (y >= 0 && y < d->r.h)
        canvas_textn(d->c, d->r.y + y, d->r.x, d->r.w, d->role, d->l->text.p + from, to - from);
}

void inputline_draw(struct inputline *l, struct canvas *c, struct rect r, enum theme_role role,
                    bool focused)
{
    struct rows rows;
    if (r.h < 1 || r.w < 1)
        return;
    layout(l, r.w, &rows, NULL, NULL);
    if (rows.cursor_row < l->scroll)
        l->scroll = rows.cursor_row;
    if (rows.cursor_row >= l->scroll + r.h)
        l->scroll = rows.cursor_row - r.h + 1;
    if (l->scroll > rows.n - 1)
        l->scroll = rows.n - 1;
    canvas_fill(c, r, role, " ");
    struct draw d = {l, c, r, role};
    layout(l, r.w, &rows, draw_row, &d);
    if (focused) {
        int x = (int)text_width(l->text.p ? l->text.p + rows.cursor_begin : "",
                                l->cursor - rows.cursor_begin);
        c->cursor_y = r.y + rows.cursor_row - l->scroll;
        c->cursor_x = r.x + (x < r.w ? x : r.w - 1);
    }
}
