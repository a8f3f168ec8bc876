/* The raw stream of the selected sandbox in the place of its output: the newest of it, live.
 * One at a time is held; who comes back to another one reads it again. */
#include "output_priv.h"

#include <cct/text/clean.h>
#include <string.h>

enum {
    RAW_MAX = 1 << 20,       /* of cleaned text; the older half goes when it is full */
    RAW_BACK = 512 << 10,    /* read of what was there before */
    RAW_LINE_MAX = 64 << 10, /* of a line whose end does not come */
    RAW_SHOWN = 4096         /* of a line */
};

static void trim(struct rawview *w)
{
    if (w->text.len <= RAW_MAX)
        return;
    char *half = w->text.p + w->text.len / 2;
    char *nl = memchr(half, '\n', w->text.len - w->text.len / 2);
    size_t cut = nl ? (size_t)(nl - w->text.p) + 1 : w->text.len;
    if (cut > w->whole)
        cut = w->whole;
    buf_consume(&w->text, cut);
    w->whole -= cut;
}

/* The begin of a line is cleaned anew with each piece: its end may be half a letter. */
static void put_begun(struct rawview *w)
{
    struct buf line = BUF_INIT;
    buf_truncate(&w->text, w->whole);
    clean_line(buf_str(&w->begun), w->begun.len, &line, RAW_SHOWN);
    buf_add(&w->text, buf_str(&line), line.len);
    buf_release(&line);
}

static void end_line(struct rawview *w)
{
    put_begun(w);
    buf_addc(&w->text, '\n');
    w->whole = w->text.len;
    buf_clear(&w->begun);
    if (w->top) /* scrolled back: what stands there stays */
        w->top += w->top < SIZE_MAX;
    trim(w);
}

static void add(void *ctx, const char *data, size_t len)
{
    struct rawview *w = ctx;
    w->ui->said = true; /* outside the model: nothing else asks for a new picture */
    for (const char *end = data + len; data < end;) {
        size_t room = RAW_LINE_MAX - w->begun.len, n = (size_t)(end - data);
        n = n < room ? n : room;
        const char *nl = memchr(data, '\n', n);
        n = nl ? (size_t)(nl - data) : n;
        buf_add(&w->begun, data, n);
        data += n + (nl != NULL);
        if (nl || w->begun.len == RAW_LINE_MAX)
            end_line(w);
    }
    if (w->begun.len)
        put_begun(w);
}

void raw_release(struct rawview *w)
{
    buf_release(&w->text);
    buf_release(&w->begun);
    w->whole = w->top = 0;
}

void raw_observe(struct ui *ui, const struct msg *ev)
{
    struct rawview *w = &((struct output *)ui->panes[PANE_OUTPUT].state)->raw;
    if (ev->type == EV_DONE && w->req && ev->req_id == w->req)
        w->req = 0;
}

static bool puts_out(const struct sandbox *s)
{
    return s && s->state == SB_RUNNING && s->agent != AG_STARTING && s->agent != AG_EXITED &&
           s->agent != AG_FAILED;
}

/* The stream has ended, with a pause or with the agent, and since then it came back. */
static bool goes_on(struct rawview *w, const struct sandbox *s)
{
    if (w->req || !w->of)
        return false;
    w->stood |= !puts_out(s);
    return w->stood && puts_out(s);
}

void raw_settle(struct ui *ui)
{
    struct output *o = ui->panes[PANE_OUTPUT].state;
    const struct view *v = output_view(ui, o);
    struct rawview *w = &o->raw;
    uint64_t of = v && v->raw ? ui->selected : 0;
    if (of == w->of && !goes_on(w, model_sandbox(ui->model, of)))
        return;
    if (w->req)
        app_logs_end(ui->app, w->of, w->req);
    raw_release(w);
    w->of = of;
    w->ui = ui;
    w->stood = false;
    w->req = of ? app_raw(ui->app, of, -RAW_BACK, true, add, w) : 0;
}

int raw_action(struct output *o, enum action a)
{
    struct rawview *w = &o->raw;
    size_t page = o->h > 1 ? (size_t)o->h : 1, half = (page + 1) / 2;
    size_t up = a == ACT_UP ? 1 : a == ACT_HALF_UP ? half : a == ACT_PAGE_UP ? page : 0;
    size_t down = a == ACT_DOWN ? 1 : a == ACT_HALF_DOWN ? half : a == ACT_PAGE_DOWN ? page : 0;
    if (a == ACT_TOP)
        w->top = SIZE_MAX; /* the drawing knows where the begin is */
    else if (a == ACT_BOTTOM)
        w->top = 0;
    else if (up)
        w->top += w->top <= SIZE_MAX - up ? up : 0;
    else if (down)
        w->top = w->top > down ? w->top - down : 0;
    else
        return UI_IGNORED;
    return UI_HANDLED | UI_REDRAW;
}

void raw_draw(struct ui *ui, struct output *o, struct canvas *c, struct rect r)
{
    struct rawview *w = &o->raw;
    size_t lines = 0, skip = w->top, end = w->text.len;
    const char *p = w->text.p;
    while (end > 0 && p[end - 1] == '\n')
        end--;
    for (size_t i = 0; i < end; i++)
        lines += p[i] == '\n';
    if (skip > lines)
        skip = w->top = lines;
    while (skip > 0 && end > 0)
        if (p[--end] == '\n')
            skip--;
    for (int y = r.h - 1; y >= 0 && end > 0; y--) {
        size_t from = end;
        while (from > 0 && p[from - 1] != '\n')
            from--;
        canvas_textn(c, r.y + y, r.x, r.w, ROLE_TEXT, p + from, end - from);
        end = from ? from - 1 : 0;
    }
    if (!w->text.len)
        canvas_text(c, r.y, r.x + 1, r.w - 2, ROLE_HINT,
                    ui_keys(ui, "no raw output yet ({raw} goes back)"));
}
