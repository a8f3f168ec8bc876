/* The second row of the header: what runs now costs, and what day, week and month have cost.
 * Its figures change with the data alone. */
#include <cct/ui/ui.h>

#include <stdio.h>

enum { BAR = 10, GAP = 3 };

/* " [###.......] 29%" */
static int add_bar(struct canvas *c, int y, int x, enum theme_role role, int pct)
{
    char bar[BAR + 1];
    for (int i = 0; i < BAR; i++)
        bar[i] = i < pct * BAR / 100 ? '#' : '.';
    bar[BAR] = '\0';
    return canvas_textf(c, y, x, -1, role, " [%s] %d%%", bar, pct);
}

static int add_period(struct canvas *c, int y, int x, const struct ledger_report *r, enum ledger_period p)
{
    char usd[48];
    int pct = money_pct(r, p), from = x;
    enum theme_role role = pct < 0 ? ROLE_HEADER : money_role(r, pct);
    ledger_sums_text(usd, sizeof(usd), &r->period[p]);
    x += canvas_textf(c, y, x, -1, role, "%s %s", p == PERIOD_DAY ? "today" : ledger_period_name(p), usd);
    if (pct >= 0) {
        x += canvas_textf(c, y, x, -1, role, " of $%.2f", r->limits.budget.usd[p]);
        x += add_bar(c, y, x, role, pct);
    }
    return x - from + GAP;
}

void ui_draw_sums(struct ui *ui, int y)
{
    const struct model *m = ui->model;
    const struct ledger_report *r = m->usage;
    struct canvas *c = &ui->canvas;
    char text[96];
    enum theme_role role;
    int x = 1;
    canvas_fill(c, (struct rect){y, 0, 1, c->w}, ROLE_HEADER, " ");
    money_burn(m, text, sizeof(text));
    x += canvas_text(c, y, x, -1, ROLE_HEADER, text) + GAP;
    money_today(m, text, sizeof(text), &role);
    if (!*text)
        return;
    for (int p = PERIOD_DAY; p < LEDGER_PERIODS; p++)
        x += add_period(c, y, x, r, (enum ledger_period)p);
    if (r->forecast_usd > 0 && r->q.to != INT64_MAX && c->w >= UI_WIDE_W)
        canvas_textf(c, y, x, -1, ROLE_HINT, "forecast $%.2f", r->forecast_usd);
}
