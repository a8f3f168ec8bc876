/* The usage panel where it stands beside others: its lines by what is needed most. */
#include "usage_priv.h"

#include <stdio.h>
#include <string.h>

enum { CHART_LEAST = 6, CHART_MOST = 9, LINES = 3, FORECAST_W = 60 };

/* "today $2.87 29%", whole or not at all; returns where the next one stands. */
static int one_sum(const struct ledger_report *rep, enum ledger_period p, struct canvas *c, int y,
                   int x, int end)
{
    static const char *const words[LEDGER_PERIODS] = {"today ", "week ", "month "};
    char usd[48], used[16] = "";
    int pct = money_pct(rep, p);
    ledger_sums_text(usd, sizeof(usd), &rep->period[p]);
    if (pct >= 0)
        snprintf(used, sizeof(used), " %d%%", pct);
    if (x + (int)(strlen(words[p]) + strlen(usd) + strlen(used)) > end)
        return end;
    x += canvas_text(c, y, x, -1, ROLE_HINT, words[p]);
    x += canvas_text(c, y, x, -1, pct < 0 ? ROLE_TITLE : money_role(rep, pct), usd);
    x += canvas_text(c, y, x, -1, ROLE_HINT, used);
    return x + 2;
}

/* "now $0.55/h  today $2.87 29%  week $11.40" */
static void draw_sums(const struct model *m, struct canvas *c, struct rect r)
{
    const struct ledger_report *rep = m->usage;
    char burn[32];
    int x = r.x + 1, end = r.x + r.w;
    money_burn(m, burn, sizeof(burn));
    x += canvas_text(c, r.y, x, end - x, ROLE_HINT, "now ");
    x += canvas_text(c, r.y, x, end - x, ROLE_TITLE, burn) + 2;
    if (!rep) {
        canvas_text(c, r.y, x, end - x, ROLE_HINT, "reading the ledger");
        return;
    }
    x = one_sum(rep, PERIOD_DAY, c, r.y, x, end);
    x = one_sum(rep, PERIOD_WEEK, c, r.y, x, end);
    if (r.w >= FORECAST_W && rep->q.to != INT64_MAX)
        canvas_textf(c, r.y, x, end - x, ROLE_HINT, "forecast $%.2f", rep->forecast_usd);
    else
        one_sum(rep, PERIOD_MONTH, c, r.y, x, end);
}

/* Tables as lines, from the one behind the first: the project is the same as a rule. */
static int draw_lines(const struct usage_pane *u, const struct ledger_report *rep, struct canvas *c,
                      int y, int room, struct rect r)
{
    int n = room < LINES ? room : LINES;
    for (int i = 0; i < n; i++)
        usage_line(rep, (enum ledger_by)((u->first + 1 + i) % LEDGER_BYS), c,
                   (struct rect){y + i, r.x + 1, 1, r.w - 2});
    return y + n;
}

void usage_small(struct ui *ui, struct usage_pane *u, struct canvas *c, struct rect r)
{
    const struct ledger_report *rep = ui->model->usage;
    const struct sandbox *idle[USAGE_MANY_IDLE];
    int64_t server = ui_server_now(ui, ui->now);
    size_t n = usage_idle_ones(ui, u, idle, server);
    int y = r.y + 1, foot = n && r.h > 3, rest = r.h - 1 - foot, chart = 0;
    draw_sums(ui->model, c, r);
    if (rep && rest >= CHART_LEAST + 1 && usage_any(rep))
        chart = rest - 2 < CHART_LEAST ? rest - 1 : rest - 2 > CHART_MOST ? CHART_MOST : rest - 2;
    if (rep)
        y = draw_lines(u, rep, c, y, chart ? rest - chart : rest - 1, r);
    if (rep && chart)
        usage_chart(rep, c, (struct rect){r.y + r.h - foot - chart, r.x + 1, chart, r.w - 1});
    else if (rep && rest > 0)
        usage_spark(rep, c, (struct rect){y, r.x + 1, 1, r.w - 2});
    if (!foot)
        return;
    u->idle = idle[0]->id;
    usage_draw_idle(ui, idle[0], true, n - 1, c, r.y + r.h - 1, r, server);
}
