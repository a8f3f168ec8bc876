/* Boxes in the middle of the screen. */
#include <cct/ui/box.h>

#include <cct/text/width.h>
#include <string.h>

struct rect box_draw(struct canvas *c, struct rect screen, int h, int w, const char *title,
                     const char *right)
{
    if (h > screen.h)
        h = screen.h;
    if (w > screen.w)
        w = screen.w;
    struct rect r = {screen.y + (screen.h - h) / 2, screen.x + (screen.w - w) / 2, h, w};
    canvas_frame(c, r, ROLE_DIALOG, title, right);
    struct rect in = {r.y + 1, r.x + 2, r.h - 2, r.w - 4};
    if (in.h < 0)
        in.h = 0;
    if (in.w < 0)
        in.w = 0;
    return in;
}

/* Visit the wrapped rows of text; fn may be NULL to count. */
static int each_row(const char *text, int w, void (*fn)(void *, int, const char *, size_t),
                    void *ctx)
{
    int n = 0;
    size_t cells = w > 0 ? (size_t)w : 1;
    for (const char *line = text;; line++) {
        size_t len = strcspn(line, "\n"), at = 0;
        do {
            size_t next, stop = text_wrap(line, len, at, cells, &next);
            if (fn)
                fn(ctx, n, line + at, stop - at);
            n++;
            at = next > at ? next : len;
        } while (at < len);
        line += len;
        if (!*line)
            return n;
    }
}

struct put {
    struct canvas *c;
    struct rect r;
    enum theme_role role;
};

static void put_row(void *ctx, int row, const char *s, size_t len)
{
    struct put *p = ctx;
    if (row < p->r.h)
        canvas_textn(p->c, p->r.y + row, p->r.x, p->r.w, p->role, s, len);
}

int box_text(struct canvas *c, struct rect r, enum theme_role role, const char *text)
{
    struct put p = {c, r, role};
    return each_row(text, r.w, put_row, &p);
}

int box_text_rows(const char *text, int w)
{
    return each_row(text, w, NULL, NULL);
}

size_t box_first_row(size_t top, size_t at, size_t rows)
{
    if (at < top)
        return at;
    return rows && at >= top + rows ? at - rows + 1 : top;
}
