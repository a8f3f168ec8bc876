/* Scrolling through lines of text, and through lists. */
#include "textview.h"

#include <cct/text/width.h>
#include <string.h>

static void wrap(struct textview *v, int w)
{
    ARR_CLEAR(&v->rows);
    v->w = w;
    for (size_t i = 0; i < v->n; i++) {
        size_t len = strlen(v->line[i]), at = 0;
        do {
            size_t next, end = text_wrap(v->line[i], len, at, (size_t)w, &next);
            *ARR_PUSH(&v->rows) =
                (struct textview_row){(uint32_t)i, (uint32_t)at, (uint32_t)(end - at)};
            at = next > at ? next : len;
        } while (at < len);
    }
}

void textview_set(struct textview *v, char *const *line, size_t n)
{
    v->line = line;
    v->n = n;
    v->top = 0;
    v->w = 0;
    ARR_CLEAR(&v->rows);
}

void textview_release(struct textview *v)
{
    ARR_RELEASE(&v->rows);
}

void textview_draw(struct textview *v, struct canvas *c, struct rect r,
                   enum theme_role (*role)(const char *line))
{
    v->page = r.h;
    if (r.w < 1 || r.h < 1)
        return;
    if (v->w != r.w)
        wrap(v, r.w);
    if (v->top + (size_t)r.h > v->rows.n)
        v->top = v->rows.n > (size_t)r.h ? v->rows.n - (size_t)r.h : 0;
    for (int y = 0; y < r.h && v->top + (size_t)y < v->rows.n; y++) {
        const struct textview_row *row = &v->rows.v[v->top + (size_t)y];
        const char *line = v->line[row->line];
        canvas_textn(c, r.y + y, r.x, r.w, role ? role(line) : ROLE_TEXT, line + row->at, row->len);
    }
}

int textview_action(struct textview *v, enum action a)
{
    int64_t to = list_moved(a, v->top, v->rows.n, v->page);
    if (to < 0)
        return UI_IGNORED;
    v->top = (size_t)to; /* the end is held back when it is drawn */
    return UI_HANDLED | UI_REDRAW;
}

int64_t list_moved(enum action a, size_t at, size_t n, int page)
{
    int64_t p = page > 1 ? page : 1, to = (int64_t)at;
    switch (a) {
    case ACT_DOWN:
        to++;
        break;
    case ACT_UP:
        to--;
        break;
    case ACT_TOP:
        to = 0;
        break;
    case ACT_BOTTOM:
        to = (int64_t)n;
        break;
    case ACT_HALF_DOWN:
        to += (p + 1) / 2;
        break;
    case ACT_HALF_UP:
        to -= (p + 1) / 2;
        break;
    case ACT_PAGE_DOWN:
        to += p;
        break;
    case ACT_PAGE_UP:
        to -= p;
        break;
    default:
        return -1;
    }
    if (to > (int64_t)n - 1)
        to = (int64_t)n - 1;
    return to < 0 ? 0 : to;
}

size_t list_top(size_t top, size_t at, size_t n, int page)
{
    size_t p = page > 0 ? (size_t)page : 1;
    if (at < top)
        top = at;
    if (at >= top + p)
        top = at - p + 1;
    return top + p > n ? n > p ? n - p : 0 : top;
}
