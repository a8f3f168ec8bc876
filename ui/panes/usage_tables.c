/* What was used by project, agent, model, template and sandbox, as many tables as have room. */
#include "usage_priv.h"

#include <cct/text/width.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TABLE_W = 26, WIDE_W = 36, USD_W = 8, MORE_W = 7 };

static void tokens_text(char *dst, size_t size, int64_t n)
{
    static const char units[] = {'k', 'M', 'G'};
    double v = (double)n;
    int u = -1;
    while (v >= 999.5 && u < 2) {
        v /= 1000;
        u++;
    }
    if (u < 0)
        snprintf(dst, size, "%lld", (long long)n);
    else
        snprintf(dst, size, v < 10 ? "%.2f%c" : v < 100 ? "%.1f%c" : "%.0f%c", v, units[u]);
}

/* Like ledger_sums_text(), where the head of the column has the $. */
static void usd_cell(char *dst, size_t size, const struct ledger_sums *s)
{
    double usd = ledger_usd(s);
    if (ledger_all_unpriced(s))
        snprintf(dst, size, "?");
    else
        snprintf(dst, size, "%.*f%s", usd > 0 && usd < 0.1 ? 4 : 2, usd,
                 ledger_unpriced(s) ? "+?" : "");
}

static bool counts_tokens(enum ledger_by b)
{
    return b == BY_AGENT || b == BY_MODEL;
}

static void more_cell(char *dst, size_t size, enum ledger_by b, const struct ledger_sums *s)
{
    if (counts_tokens(b))
        tokens_text(dst, size, s->in_tokens + s->cache_read + s->cache_write + s->out_tokens);
    else
        snprintf(dst, size, "%.1f", (double)s->run_ms / 3600000);
}

static const char *name_of(enum ledger_by b, const struct ledger_group *g)
{
    const char *name = g->label && *g->label ? g->label : g->name;
    return *name ? name : b == BY_MODEL ? "unknown" : "none";
}

/* One table; `more`: the second figure, too. */
static void table(const struct usage_pane *u, const struct ledger_report *r, enum ledger_by b,
                  struct canvas *c, struct rect at, bool more)
{
    int name_w = at.w - 1 - USD_W - (more ? MORE_W : 0);
    char head[24], cell[24];
    snprintf(head, sizeof(head), "by %s", ledger_by_name(b));
    canvas_text(c, at.y, at.x, name_w, ROLE_TITLE, head);
    canvas_right(c, at.y, at.x + name_w, USD_W, ROLE_HINT, "$");
    if (more)
        canvas_right(c, at.y, at.x + name_w + USD_W, MORE_W, ROLE_HINT, counts_tokens(b) ? "tokens" : "h");
    for (int y = 1; y < at.h; y++) {
        size_t i = u->top + (size_t)y - 1;
        if (i >= r->by[b].n)
            break;
        const struct ledger_group *g = &r->by[b].v[i];
        if (y == at.h - 1 && i + 1 < r->by[b].n) {
            canvas_textf(c, at.y + y, at.x, at.w - 1, ROLE_HINT, "and %zu more", r->by[b].n - i);
            break;
        }
        canvas_text(c, at.y + y, at.x, name_w, ROLE_TEXT, name_of(b, g));
        usd_cell(cell, sizeof(cell), &g->sums);
        canvas_right(c, at.y + y, at.x + name_w, USD_W, ROLE_TEXT, cell);
        more_cell(cell, sizeof(cell), b, &g->sums);
        if (more)
            canvas_right(c, at.y + y, at.x + name_w + USD_W, MORE_W, ROLE_TEXT, cell);
    }
}

void usage_tables(struct usage_pane *u, const struct ledger_report *r, struct canvas *c,
                  struct rect at)
{
    int n = at.w / TABLE_W, w;
    n = n < 1 ? 1 : n > LEDGER_BYS ? LEDGER_BYS : n;
    w = at.w / n;
    u->most_rows = 0;
    u->rows = at.h - 1;
    for (int k = 0; k < n; k++) {
        size_t rows = r->by[(u->first + k) % LEDGER_BYS].n;
        u->most_rows = rows > u->most_rows ? rows : u->most_rows;
    }
    if (u->top + (size_t)u->rows > u->most_rows)
        u->top = u->most_rows > (size_t)u->rows ? u->most_rows - (size_t)u->rows : 0;
    for (int k = 0; k < n; k++) {
        enum ledger_by b = (enum ledger_by)((u->first + k) % LEDGER_BYS);
        table(u, r, b, c, (struct rect){at.y, at.x + k * w, at.h, w},
              b != BY_TEMPLATE || w >= WIDE_W);
    }
}

void usage_line(const struct ledger_report *r, enum ledger_by b, struct canvas *c, struct rect at)
{
    int x = at.x, end = at.x + at.w;
    size_t i = 0;
    x += canvas_textf(c, at.y, x, at.w, ROLE_HINT, "by %-8s ", ledger_by_name(b));
    for (; i < r->by[b].n && x < end; i++) {
        char text[96], cell[24];
        usd_cell(cell, sizeof(cell), &r->by[b].v[i].sums);
        snprintf(text, sizeof(text), "%.60s %s", name_of(b, &r->by[b].v[i]), cell);
        int w = (int)text_width(text, strlen(text));
        if (x + w > end && i > 0)
            break; /* the dearest one is always named */
        x += canvas_text(c, at.y, x, end - x, ROLE_TEXT, text) + 2;
    }
    if (i == 0)
        canvas_text(c, at.y, x, end - x, ROLE_HINT, "-");
}
