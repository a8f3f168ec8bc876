/* Selected lines of the output, and what is copied of a transcript: the text of the items,
 * never the cells. A line is one of the text's own, however many rows it takes. */
#include "output_priv.h"

#include <cct/model/export.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- lines and rows ---------------------------------------------------------------------- */

static const struct rows *rows_of(struct output *o, struct view *v, const struct transcript *t,
                                  uint64_t item)
{
    size_t i = (size_t)(item - t->base);
    rows_make(&t->v[i], &v->style, view_folded(view_cached(v, t, i), &t->v[i]), &o->scratch);
    return &o->scratch;
}

/* Row k goes on with the line of the row before it. */
static bool continues(const struct item *it, const struct rows *r, size_t k)
{
    if (k == 0 || k >= r->n || r->v[k].part != ROW_TEXT || r->v[k - 1].part != ROW_TEXT)
        return false;
    const char *from = it->text + r->v[k - 1].to, *to = it->text + r->v[k].from;
    return from <= to && !memchr(from, '\n', (size_t)(to - from));
}

/* Both ends of the selection, on whole lines. */
void select_ends(struct output *o, struct view *v, const struct transcript *t, struct pos *first,
                 struct pos *last)
{
    struct pos a = view_clamp(v, t, v->anchor), b = view_clamp(v, t, v->cur);
    *first = pos_before(a, b) ? a : b;
    *last = pos_before(a, b) ? b : a;
    const struct rows *r = rows_of(o, v, t, first->item);
    while (continues(&t->v[first->item - t->base], r, first->row))
        first->row--;
    r = rows_of(o, v, t, last->item);
    while (continues(&t->v[last->item - t->base], r, last->row + 1))
        last->row++;
}

static void add_line(struct buf *b, const char *s, size_t len)
{
    while (len > 0 && s[len - 1] == '\n')
        len--;
    buf_add(b, s, len);
    buf_addc(b, '\n');
}

/* What stands before an item's text and is worth having: a tool's call, a question. */
static void add_head(struct buf *b, const struct item *it)
{
    bool shell = it->who && (str_eq(it->who, "Bash") || str_eq(it->who, "run"));
    if (it->kind == ITEM_TOOL && !shell && it->who)
        buf_addf(b, "%s%s", it->who, it->title ? " " : "");
    if ((it->kind == ITEM_TOOL || it->kind == ITEM_ASK) && it->title)
        buf_adds(b, it->title);
    if (it->kind == ITEM_TOOL || it->kind == ITEM_ASK)
        buf_addc(b, '\n');
}

/* Rows [from, to] of an item as text. */
static void add_rows(struct buf *b, const struct item *it, const struct rows *r, size_t from,
                     size_t to)
{
    for (size_t k = from; k <= to && k < r->n; k++) {
        const struct row *row = &r->v[k];
        if (row->part == ROW_HEAD)
            add_head(b, it);
        else if (row->part == ROW_FOLD) /* what is folded belongs to it */
            add_line(b, it->text, it->text_len);
        else if (row->part == ROW_BLANK)
            buf_addc(b, '\n');
        if (row->part != ROW_TEXT)
            continue;
        size_t end = k;
        while (end < to && continues(it, r, end + 1))
            end++;
        if (it->text)
            add_line(b, it->text + row->from, r->v[end].to - row->from);
        k = end;
    }
}

static size_t count_lines(const char *s, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++)
        n += s[i] == '\n';
    return n + (len > 0 && s[len - 1] != '\n');
}

/* --- what is copied ------------------------------------------------------------------------ */

static void selected_text(struct output *o, struct view *v, const struct transcript *t,
                          struct buf *b)
{
    struct pos first, last;
    select_ends(o, v, t, &first, &last);
    for (uint64_t item = first.item; item <= last.item; item++) {
        const struct rows *r = rows_of(o, v, t, item);
        add_rows(b, &t->v[item - t->base], r, item == first.item ? first.row : 0,
                 item == last.item ? last.row : r->n);
    }
}

size_t select_lines(struct output *o, struct view *v, const struct transcript *t)
{
    struct buf b = BUF_INIT;
    selected_text(o, v, t, &b);
    size_t n = count_lines(b.p ? b.p : "", b.len);
    buf_release(&b);
    return n;
}

static int copy_lines(struct ui *ui, struct output *o, struct view *v, const struct transcript *t)
{
    struct buf b = BUF_INIT;
    char what[40];
    selected_text(o, v, t, &b);
    size_t n = count_lines(b.p ? b.p : "", b.len);
    snprintf(what, sizeof(what), "%zu line%s", n, n == 1 ? "" : "s");
    ui_copy(ui, what, b.p ? b.p : "", b.len);
    buf_release(&b);
    v->selecting = false;
    return UI_HANDLED | UI_REDRAW;
}

static int copy_message(struct ui *ui, const struct transcript *t)
{
    size_t i = t->n;
    while (i > 0 && (t->v[i - 1].kind != ITEM_TEXT || !t->v[i - 1].text_len))
        i--;
    if (!i)
        ui_status(ui, 0, "the agent has said nothing yet that could be copied");
    else
        ui_copy(ui, "the last message", t->v[i - 1].text, t->v[i - 1].text_len);
    return UI_HANDLED | UI_REDRAW;
}

/* A fenced block of code in an item's text. */
struct block {
    size_t item, from, to; /* bytes between the fences */
    size_t line, end_line; /* of the fences, counted over the whole transcript */
    size_t indent;         /* of the opening fence: as much is taken off its lines */
};

/* Length of a fence at the line's begin, of `ch` or (0) of either kind; 0 = none. */
static size_t fence(const char *s, size_t len, char *ch, size_t *indent)
{
    size_t at = 0, n = 0;
    while (at < len && at < 12 && s[at] == ' ')
        at++;
    char c = at < len ? s[at] : 0;
    if ((c != '`' && c != '~') || (*ch && c != *ch))
        return 0;
    while (at + n < len && s[at + n] == c)
        n++;
    if (n < 3)
        return 0;
    *ch = c;
    *indent = at;
    return n;
}

static bool only_blanks(const char *s, size_t len)
{
    while (len > 0 && s[len - 1] == ' ')
        len--;
    return len == 0;
}

/* The next block of an item from byte *at on, at line *line; moves both behind it. */
static bool next_block(const struct item *it, size_t *at, size_t *line, struct block *b)
{
    bool open = false;
    char ch = 0;
    *b = (struct block){0};
    size_t opened = 0;
    while (*at < it->text_len) {
        const char *s = it->text + *at;
        const char *nl = memchr(s, '\n', it->text_len - *at);
        size_t len = nl ? (size_t)(nl - s) : it->text_len - *at, indent = 0, here = *at;
        char kind = open ? ch : 0;
        size_t n = fence(s, len, &kind, &indent);
        *at += len + (nl != NULL);
        size_t l = (*line)++;
        if (!open && n) {
            open = true;
            ch = kind;
            opened = n;
            *b = (struct block){.from = *at, .line = l, .indent = indent};
        } else if (open && n >= opened && only_blanks(s + indent + n, len - indent - n)) {
            b->to = here;
            b->end_line = l;
            return true;
        }
    }
    b->to = it->text_len; /* still being written */
    b->end_line = *line;
    return open && b->from < b->to;
}

static size_t distance(const struct block *b, size_t line)
{
    return line < b->line ? b->line - line : line > b->end_line ? line - b->end_line : 0;
}

/* Lines of the transcript's text before the cursor. */
static size_t cursor_line(struct output *o, struct view *v, const struct transcript *t)
{
    struct pos p = v->follow ? view_last(v, t) : view_clamp(v, t, v->cur);
    size_t n = 0, at = (size_t)(p.item - t->base);
    for (size_t i = 0; i < at; i++)
        n += count_lines(t->v[i].text ? t->v[i].text : "", t->v[i].text_len) + 1;
    const struct rows *r = rows_of(o, v, t, p.item);
    const struct item *it = &t->v[at];
    for (size_t k = 0; it->text && p.row < r->n && k < r->v[p.row].from; k++)
        n += it->text[k] == '\n';
    return n;
}

static bool find_block(struct output *o, struct view *v, const struct transcript *t,
                       struct block *best)
{
    size_t here = cursor_line(o, v, t), line = 0;
    bool any = false;
    for (size_t i = 0; i < t->n; i++) {
        const struct item *it = &t->v[i];
        size_t begin = line, at = 0;
        struct block b;
        while (it->kind == ITEM_TEXT && it->text && next_block(it, &at, &line, &b)) {
            b.item = i;
            if (!any || distance(&b, here) <= distance(best, here))
                *best = b;
            any = true;
        }
        line = begin + count_lines(it->text ? it->text : "", it->text_len) + 1;
    }
    return any;
}

static int copy_code(struct ui *ui, struct output *o, struct view *v, const struct transcript *t)
{
    struct block b = {0};
    struct buf text = BUF_INIT;
    char what[60];
    if (!find_block(o, v, t, &b)) {
        ui_status(ui, 0, "there is no block of code here");
        return UI_HANDLED | UI_REDRAW;
    }
    const char *s = t->v[b.item].text;
    for (size_t at = b.from; at < b.to;) {
        const char *nl = memchr(s + at, '\n', b.to - at);
        size_t end = nl ? (size_t)(nl - s) : b.to, skip = 0;
        while (skip < b.indent && at + skip < end && s[at + skip] == ' ')
            skip++;
        add_line(&text, s + at + skip, end - at - skip);
        at = end + 1;
    }
    size_t n = count_lines(text.p ? text.p : "", text.len);
    snprintf(what, sizeof(what), "a block of %zu line%s", n, n == 1 ? "" : "s");
    ui_copy(ui, what, text.p ? text.p : "", text.len);
    buf_release(&text);
    return UI_HANDLED | UI_REDRAW;
}

static void take_piece(void *ctx, const char *data, size_t len)
{
    buf_add(ctx, data, len);
}

/* Also what is no longer held here: it comes from the store. */
static int copy_all(struct ui *ui)
{
    if (ui->copy_req) {
        ui_status(ui, 0, "the transcript is being read already");
        return UI_HANDLED | UI_REDRAW;
    }
    buf_release(&ui->copy_text);
    ui->copy_req = app_export(ui->app, ui->selected, EXPORT_TEXT, NULL, take_piece,
                              &ui->copy_text);
    ui_status(ui, 0, "reading the transcript");
    return UI_HANDLED | UI_REDRAW;
}

int select_action(struct ui *ui, struct output *o, struct view *v, const struct transcript *t,
                  enum action a)
{
    bool some = v && t && t->n && !v->raw;
    if (a == ACT_COPY_ALL && v)
        return copy_all(ui);
    if (!some) {
        bool ours = a == ACT_SELECT || a == ACT_COPY_CODE || a == ACT_COPY_MESSAGE ||
                    a == ACT_COPY_ALL;
        if (ours)
            ui_status(ui, 0, v && v->raw ? "not in the raw view: {raw} leaves it"
                                         : "there is nothing to copy yet");
        return ours ? UI_HANDLED | UI_REDRAW : UI_IGNORED;
    }
    view_set_style(v, o);
    switch (a) {
    case ACT_SELECT:
        view_end_follow(v, t);
        v->cur = v->anchor = view_clamp(v, t, v->cur);
        v->selecting = true;
        return UI_HANDLED | UI_REDRAW;
    case ACT_BACK:
    case ACT_SELECT_END:
        if (!v->selecting)
            return UI_IGNORED;
        v->selecting = false;
        return UI_HANDLED | UI_REDRAW;
    case ACT_COPY_LINES:
        return copy_lines(ui, o, v, t);
    case ACT_COPY_CODE:
        return copy_code(ui, o, v, t);
    case ACT_COPY_MESSAGE:
        return copy_message(ui, t);
    default:
        return UI_IGNORED;
    }
}
