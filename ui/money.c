/* Money in the header: what runs now costs an hour, and today so far. Figures change with the
 * data alone, never by themselves. */
#include <cct/ui/ui.h>

#include <stdio.h>
#include <string.h>

enum { WARN_PCT = 80, USED_UP = 100 };

int money_warn_pct(const struct ledger_report *r)
{
    return r->limits.warn_pct ? r->limits.warn_pct : WARN_PCT;
}

int money_pct(const struct ledger_report *r, enum ledger_period p)
{
    return ledger_budget_pct(ledger_usd(&r->period[p]), r->limits.budget.usd[p]);
}

enum theme_role money_role(const struct ledger_report *r, int pct)
{
    return pct >= USED_UP ? ROLE_STATUS_BAD : pct >= money_warn_pct(r) ? ROLE_STATUS_WARN
                                                                       : ROLE_HEADER;
}

void money_burn(const struct model *m, char *dst, size_t size)
{
    size_t unpriced;
    double usd = model_usd_per_hour(m, &unpriced);

    if (m->local)
        snprintf(dst, size, "local, free");
    else if (unpriced && usd <= 0)
        snprintf(dst, size, "$?/h");
    else
        snprintf(dst, size, "$%.2f/h%s", usd, unpriced ? "+?" : "");
}

/* Sums that came by themselves wait for the next picture, unless they are the first, of another
 * day, or bring a budget nearer to its end than was said. */
bool money_news(struct ui *ui)
{
    const struct ledger_report *r = ui->model->usage;
    bool news;
    if (!r)
        return false;
    news = ui->money.day != r->q.period[PERIOD_DAY].to;
    ui->money.day = r->q.period[PERIOD_DAY].to;
    for (int p = 0; p < LEDGER_PERIODS; p++) {
        enum theme_role role = money_role(r, money_pct(r, (enum ledger_period)p));
        news |= role != ui->money.roles[p];
        ui->money.roles[p] = role;
    }
    return news;
}

/* "today $2.87 of $10.00", "today $0.40 week 92%". */
void money_today(const struct model *m, char *dst, size_t size, enum theme_role *role)
{
    const struct ledger_report *r = m->usage;
    const struct ledger_sums *day = r ? &r->period[PERIOD_DAY] : NULL;
    char usd[32];
    size_t n;

    *dst = '\0';
    *role = ROLE_HEADER;
    if (!r || (m->local && !ledger_unpriced(day) && ledger_usd(day) <= 0))
        return; /* what is free is not counted in the header */
    if (ledger_all_unpriced(day))
        snprintf(usd, sizeof(usd), "$?");
    else
        snprintf(usd, sizeof(usd), "$%.2f%s", ledger_usd(day), ledger_unpriced(day) ? "+?" : "");
    n = (size_t)snprintf(dst, size, "today %s", usd);
    *role = money_role(r, money_pct(r, PERIOD_DAY));
    if (r->limits.budget.usd[PERIOD_DAY] > 0)
        n += (size_t)snprintf(dst + n, size - n, " of $%.2f", r->limits.budget.usd[PERIOD_DAY]);
    for (int k = PERIOD_WEEK; k < LEDGER_PERIODS; k++) {
        int pct = money_pct(r, (enum ledger_period)k);

        if (pct < money_warn_pct(r) || n >= size)
            continue;
        n += (size_t)snprintf(dst + n, size - n, " %s %d%%", ledger_period_name((enum ledger_period)k),
                              pct);
        if (pct >= USED_UP || *role == ROLE_HEADER)
            *role = money_role(r, pct);
    }
}
