/* The line editor on a canvas: wrapped rows, the cursor, objects by their labels. */
#include <cct/ui/inputline.h>

#include <cct/text/width.h>
#include <string.h>

/* The text as it is seen. */
struct seen {
    const char *s;
    size_t len, cursor;
    struct buf own;
};

static void seen_init(struct seen *v, struct inputline *l)
{
    static const char object[] = "\xef\xbf\xbc";
    size_t k = 0;
    *v = (struct seen){buf_str(&l->text), l->text.len, l->cursor, BUF_INIT};
    if (!l->n_objects)
        return;
    for (size_t i = 0; i < l->text.len;) {
        if (i == l->cursor)
            v->cursor = v->own.len;
        if (k < l->n_objects && strncmp(l->text.p + i, object, 3) == 0) {
            buf_adds(&v->own, l->objects[k++].label);
            i += 3;
        } else {
            buf_addc(&v->own, l->text.p[i++]);
        }
    }
    if (l->cursor >= l->text.len)
        v->cursor = v->own.len;
    v->s = buf_str(&v->own);
    v->len = v->own.len;
}

static size_t line_end(const struct seen *v, size_t at)
{
    const char *lf = at < v->len ? memchr(v->s + at, '\n', v->len - at) : NULL;
    return lf ? (size_t)(lf - v->s) : v->len;
}

/* Visit the wrapped rows; the callback gets row number and byte span. */
struct rows {
    int n;                /* rows so far */
    int cursor_row;
    size_t cursor_begin;  /* begin of the row the cursor is in */
};

static void layout(const struct seen *v, int w, struct rows *r,
                   void (*fn)(void *, int, size_t, size_t), void *ctx)
{
    const char *s = v->s;
    size_t len = v->len, cells = w > 0 ? (size_t)w : 1;
    memset(r, 0, sizeof(*r));
    for (size_t line = 0; line <= len;) {
        size_t end = line_end(v, line), at = line;
        do {
            size_t next, stop = line + text_wrap(s + line, end - line, at - line, cells, &next);
            next += line;
            if (next <= at)
                next = end;
            bool last = next >= end;
            if (v->cursor >= at && (v->cursor < next || (last && v->cursor <= end))) {
                r->cursor_row = r->n;
                r->cursor_begin = at;
            }
            if (fn)
                fn(ctx, r->n, at, last ? end : stop);
            r->n++;
            if (last && v->cursor == end && text_width(s + at, end - at) >= cells) {
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
    struct seen v;
    seen_init(&v, l);
    layout(&v, w, &r, NULL, NULL);
    buf_release(&v.own);
    return r.n;
}

struct draw {
    const struct seen *v;
    int scroll;
    struct canvas *c;
    struct rect r;
    enum theme_role role;
};

static void draw_row(void *ctx, int row, size_t from, size_t to)
{
    struct draw *d = ctx;
    int y = row - d->scroll;
    if (y >= 0 && y < d->r.h)
        canvas_textn(d->c, d->r.y + y, d->r.x, d->r.w, d->role, d->v->s + from, to - from);
}

void inputline_draw(struct inputline *l, struct canvas *c, struct rect r, enum theme_role role,
                    bool focused)
{
    struct rows rows;
    struct seen v;
    if (r.h < 1 || r.w < 1)
        return;
    seen_init(&v, l);
    layout(&v, r.w, &rows, NULL, NULL);
    if (rows.cursor_row < l->scroll)
        l->scroll = rows.cursor_row;
    if (rows.cursor_row >= l->scroll + r.h)
        l->scroll = rows.cursor_row - r.h + 1;
    if (l->scroll > rows.n - 1)
        l->scroll = rows.n - 1;
    canvas_fill(c, r, role, " ");
    struct draw d = {&v, l->scroll, c, r, role};
    layout(&v, r.w, &rows, draw_row, &d);
    if (focused) {
        int x = (int)text_width(v.s + rows.cursor_begin, v.cursor - rows.cursor_begin);
        c->cursor_y = r.y + rows.cursor_row - l->scroll;
        c->cursor_x = r.x + (x < r.w ? x : r.w - 1);
    }
    buf_release(&v.own);
}
