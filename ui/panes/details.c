/* Details of the selected sandbox; the same lines serve the pane and the dialog. */
#include "textview.h"

#include <cct/text/width.h>
#include <cct/ui/box.h>
#include <cct/ui/ui.h>

#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add(struct buf *b, const char *label, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A value that goes on for longer is told by its begin: the pane is laid out with each picture. */
enum { VALUE_MOST = 1024 };

static void add(struct buf *b, const char *label, const char *fmt, ...)
{
    va_list ap;
    buf_addf(b, "%-9s ", label);
    size_t at = b->len;
    va_start(ap, fmt);
    buf_addv(b, fmt, ap);
    va_end(ap);
    size_t n = b->len - at;
    if (n > VALUE_MOST) {
        size_t keep = VALUE_MOST;
        while (((unsigned char)b->p[at + keep] & 0xC0) == 0x80) /* never within a character */
            keep--;
        buf_truncate(b, at + keep);
        buf_addf(b, " ... (%zu bytes in all)", n);
    }
    buf_addc(b, '\n');
}

static void add_times(struct ui *ui, const struct sandbox *s, struct buf *b, int64_t now)
{
    char from[16] = "-", to[16] = "-", left[16] = "";
    int64_t off = ui_server_now(ui, now) - now;
    if (s->started_at)
        clock_format_hm(from, sizeof(from), s->started_at - off);
    if (s->end_at)
        clock_format_hm(to, sizeof(to), s->end_at - off);
    bool runs = s->state == SB_RUNNING || (s->state == SB_ERROR && s->vm_up);
    if (runs && s->end_at > now + off) {
        clock_format_span(left, sizeof(left), (s->end_at - now - off) / 60000 * 60000);
        add(b, "time", "%s to %s, %s left", from, to,
            s->end_at - now - off < 60000 ? "less than a minute" : left);
    } else if (s->state == SB_PAUSED) {
        add(b, "time", "started %s, paused %s", from, to);
    } else if (s->ended_at) {
        clock_format_hm(to, sizeof(to), s->ended_at - off);
        char planned[16] = "";
        if (s->end_at > s->ended_at && s->gone == GONE_EARLY)
            clock_format_hm(planned, sizeof(planned), s->end_at - off);
        add(b, "time", "since %s, %s %s%s%s", from, *planned ? "last seen" : "ended", to,
            *planned ? ", planned until " : "", planned);
    } else {
        add(b, "time", "since %s", from);
    }
}

static void add_state(const struct sandbox *s, bool is_old, struct buf *b)
{
    const char *more = s->state == SB_KILLED ? sb_gone_text(s->gone) : s->reason ? s->reason : "";
    add(b, "state", "%s%s%s%s%s", sb_state_name(s->state), *more ? ": " : "", more,
        s->state == SB_ERROR && s->vm_up ? " (the VM still runs and bills)" : "",
        s->unlisted ? " (not in the last list)" : "");
    if (s->odd)
        add(b, "", "the provider calls it %s", s->odd);
    if (is_old)
        add(b, "", "as of the last list: there is none since");
    int pid;
    uint64_t ident;
    if (s->adopted && proc_session_parse(s->session, &pid, &ident))
        add(b, "agent", "adopted process %d, %s", pid, sb_agent_name(s->agent));
    else if (s->adopted)
        add(b, "agent", "adopted, none of its processes is kept");
    else if (!s->foreign)
        add(b, "agent", "%s, %s", s->tool ? s->tool : "-", sb_agent_name(s->agent));
    else
        add(b, "agent", "not made by cc-tui");
}

enum { BAR = 8 };

static void add_bar(struct buf *b, const char *name, int pct)
{
    int full = (pct * BAR + 50) / 100;

    if (pct < 0)
        return;
    buf_addf(b, "%s[%.*s%.*s] %d%%", name, full, "##########", BAR - full, "..........", pct);
}

static void add_load(const struct sandbox *s, struct buf *b)
{
    const struct sandbox_load *l = &s->load;

    if (s->state != SB_RUNNING || !l->known || (l->cpu_pct < 0 && l->mem_pct < 0))
        return;
    buf_addf(b, "%-9s ", "cpu");
    add_bar(b, "", l->cpu_pct);
    add_bar(b, l->cpu_pct < 0 ? "mem " : "  mem ", l->mem_pct);
    if (l->disk_used_mb >= 0 && l->disk_total_mb > 0)
        buf_addf(b, "  disk %.1f/%.0f GiB", l->disk_used_mb / 1024.0, l->disk_total_mb / 1024.0);
    buf_addc(b, '\n');
}

/* As it was looked at last. */
static void add_changed(struct ui *ui, const struct sandbox *s, struct buf *b)
{
    struct changes_sum c;
    if (changes_known(ui, s->id, &c))
        add(b, "changed", "%zu file%s  +%ld -%ld", c.files, c.files == 1 ? "" : "s", c.added, c.removed);
}

void details_text(struct ui *ui, const struct sandbox *s, struct buf *b, int64_t now)
{
    add(b, "name", "%s%s", s->name, s->protect ? "  (protected from kill-all)" : "");
    add(b, "id", "%s", s->sandbox_id ? s->sandbox_id : "(not known yet)");
    add_state(s, model_is_stale(ui->model) && s->state != SB_KILLED, b);
    add_times(ui, s, b, now);
    if (s->cpu_count || s->memory_mb)
        add(b, "size", "%d vCPU  %.1f GiB memory%s", s->cpu_count, s->memory_mb / 1024.0,
            s->not_isolated ? "  NOT ISOLATED" : "");
    add_load(s, b);
    add(b, "template", "%s%s%s%s", s->alias ? s->alias : s->template_id ? s->template_id : "-",
        s->alias && s->template_id ? " (" : "", s->alias && s->template_id ? s->template_id : "",
        s->alias && s->template_id ? ")" : "");
    add(b, "project", "%s", s->project ? s->project : "-");
    if (s->tags && *s->tags)
        add(b, "tags", "%s", s->tags);
    if (s->branch && *s->branch)
        add(b, "branch", "%s", s->branch);
    add_changed(ui, s, b);
    if (s->pair)
        pair_text(s->pair, b);
    if (isnan(s->cost_usd))
        add(b, "usage", "%lld tokens in, %lld out, unpriced", (long long)s->tokens_in,
            (long long)s->tokens_out);
    else
        add(b, "usage", "%lld tokens in, %lld out, $%.4f est.", (long long)s->tokens_in,
            (long long)s->tokens_out, s->cost_usd);
    if (!ui->model->local && isnan(s->usd_per_s))
        add(b, "price", "unpriced");
    else if (!ui->model->local)
        add(b, "price", "$%.3f per hour while it runs", s->usd_per_s * 3600);
    for (const struct kv *m = s->meta; m && m->k; m++)
        if (!str_starts(m->k, "cc-tui"))
            add(b, "metadata", "%s = %s", m->k, m->v ? m->v : "");
}

struct details {
    int top, rows, page;
    uint64_t seen, of;
    char title[96];
};

static void *details_open(struct ui *ui)
{
    (void)ui;
    return xcalloc(1, sizeof(struct details));
}

static void details_close(void *state)
{
    free(state);
}

enum { LABEL_W = 9, PAIR_LEAST = 46, GAP = 2 };

/* A line "label    value", in cells from x on. */
static void draw_line(struct canvas *c, int y, int x, int w, const char *p, size_t n)
{
    canvas_textn(c, y, x, w, ROLE_TEXT, p, n);
    canvas_role(c, (struct rect){y, x, 1, w < LABEL_W ? w : LABEL_W}, ROLE_HINT);
}

/* A line that is too long goes on below its value; returns its rows. */
static int draw_rest(struct canvas *c, struct rect r, int y, const char *p, size_t n)
{
    int at = LABEL_W + 1, w = r.w - at, rows;
    char *value = n > (size_t)at ? xstrndup(p + at, n - (size_t)at) : xstrdup("");
    rows = box_text_rows(value, w);
    if (c && rows > 1) {
        struct rect old = canvas_clip(c, (struct rect){r.y, r.x, r.h, r.w});
        canvas_fill(c, (struct rect){y, r.x + at, rows, w}, ROLE_TEXT, " ");
        box_text(c, (struct rect){y, r.x + at, rows, w}, ROLE_TEXT, value);
        canvas_unclip(c, old);
    }
    free(value);
    return rows > 0 ? rows : 1;
}

/* Rows that the lines take, two short ones that follow each other in one; drawn from row `top`
 * on where there is a canvas. */
static int lay_out(struct canvas *c, struct rect r, int top, const char *p)
{
    int half = r.w >= PAIR_LEAST ? r.w / 2 : 0, row = 0;
    while (*p) {
        size_t n = strcspn(p, "\n");
        const char *next = p + n + (p[n] == '\n');
        size_t m = strcspn(next, "\n");
        bool goes_on = *p == ' ' || *next == ' '; /* belongs to the one above it */
        bool two = *next && !goes_on && (int)text_width(p, n) + GAP <= half &&
                   (int)text_width(next, m) <= r.w - half;
        int y = r.y + row++ - top;
        if (c && y >= r.y && y < r.y + r.h) {
            draw_line(c, y, r.x, two ? half - GAP : r.w, p, n);
            if (two)
                draw_line(c, y, r.x + half, r.w - half, next, m);
        }
        if (!two && (int)text_width(p, n) > r.w)
            row += draw_rest(c, r, y, p, n) - 1;
        p = two ? next + m + (next[m] == '\n') : next;
    }
    return row;
}

/* Its lines but the name, which is in the title. */
static const char *lines_of(struct ui *ui, const struct sandbox *s, struct buf *b, int64_t now)
{
    details_text(ui, s, b, now);
    const char *p = buf_str(b);
    p += strcspn(p, "\n");
    return p + (*p == '\n');
}

static struct rect inside(struct rect r)
{
    return (struct rect){r.y, r.x + 1, r.h, r.w - 2};
}

static void details_draw(struct ui *ui, void *state, struct canvas *c, struct rect r,
                         bool focused, int64_t now)
{
    struct details *d = state;
    const struct sandbox *s = model_sandbox(ui->model, ui->selected);
    struct rect in = inside(r);
    (void)focused;
    d->page = r.h;
    if (!s)
        return;
    struct buf b = BUF_INIT;
    const char *p = lines_of(ui, s, &b, now);
    if (d->of != s->id)
        d->top = 0;
    d->of = s->id;
    d->rows = lay_out(NULL, in, 0, p);
    int most = d->rows > r.h ? d->rows - r.h : 0;
    d->top = d->top > most ? most : d->top;
    lay_out(c, in, d->top, p);
    buf_release(&b);
}

/* What the list does with a row counts here, too: it is the row's. */
static int details_action(struct ui *ui, void *state, enum action a)
{
    struct details *d = state;
    struct pane *list = &ui->panes[PANE_LIST];
    int64_t to = list_moved(a, (size_t)d->top, (size_t)d->rows, d->page);
    if (action_scope(a) == SCOPE_LIST || a == ACT_KILL)
        return list->ops->action(ui, list->state, a);
    if (to < 0)
        return UI_IGNORED;
    d->top = (int)to; /* cut where it is drawn */
    return UI_HANDLED | UI_REDRAW;
}

static bool details_update(struct ui *ui, void *state)
{
    struct details *d = state;
    bool changed = d->seen != ui->model->sandboxes_rev;
    d->seen = ui->model->sandboxes_rev;
    return changed;
}

static const char *details_title(struct ui *ui, void *state)
{
    struct details *d = state;
    const struct sandbox *s = model_sandbox(ui->model, ui->selected);
    if (!s)
        return "details";
    snprintf(d->title, sizeof(d->title), "details: %.64s%s", s->name, s->protect ? " (protected)" : "");
    return d->title;
}

static const char *details_note(struct ui *ui, void *state)
{
    const struct sandbox *s = model_sandbox(ui->model, ui->selected);
    const struct rect r = ui->panes[PANE_DETAILS].r;
    struct buf b = BUF_INIT;
    (void)state;
    bool more = s && lay_out(NULL, inside(r), 0, lines_of(ui, s, &b, ui->now)) > r.h;
    buf_release(&b);
    return more ? ui_keys(ui, "{details} all") : "";
}

const struct pane_ops pane_details = {
    .name = "details",
    .scope = SCOPE_LIST,
    .open = details_open,
    .close = details_close,
    .update = details_update,
    .draw = details_draw,
    .action = details_action,
    .title = details_title,
    .note = details_note,
};
