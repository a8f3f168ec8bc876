/* The usage panel: what runs now, what a day, a week and a month have cost so far, where it
 * went, and what runs for nothing. The figures are the ledger's; they come when they change. */
#include "usage_priv.h"

#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LABEL_W = 15, USD_W = 10, SUMMARY = 5, BAR = 10, ROOMY_H = 30,
       MOST_CHART = 24,
       SMALL_W = 60 };

static const char *range_name(int range)
{
    return range < LEDGER_PERIODS ? ledger_period_name((enum ledger_period)range) : "all";
}

static void *usage_open(struct ui *ui)
{
    struct usage_pane *u = xcalloc(1, sizeof(*u));
    (void)ui;
    u->range = PERIOD_WEEK;
    return u;
}

static void usage_close(void *state)
{
    struct usage_pane *u = state;
    ARR_RELEASE(&u->hidden);
    free(u);
}

/* --- the summary -------------------------------------------------------------------- */

static void label(struct canvas *c, int y, struct rect r, const char *s)
{
    canvas_text(c, y, r.x + 1, LABEL_W - 1, ROLE_HINT, s);
}

static bool bills(const struct sandbox *s)
{
    return s->state == SB_RUNNING || s->state == SB_CREATING || (s->state == SB_ERROR && s->vm_up);
}

static void draw_running(const struct model *m, struct canvas *c, struct rect r)
{
    size_t n = 0, unpriced = 0;
    int64_t cpu = 0, mb = 0;
    double usd = 0;
    char money[48];
    for (size_t i = 0; i < m->n_sandboxes; i++) {
        const struct sandbox *s = &m->sandboxes[i];
        if (!bills(s))
            continue;
        n++;
        cpu += s->cpu_count;
        mb += s->memory_mb;
        usd += sandbox_usd_per_hour(s);
        unpriced += sandbox_is_unpriced(s);
    }
    ledger_usd_text(money, sizeof(money), usd, unpriced, n);
    label(c, r.y, r, "running now");
    canvas_textf(c, r.y, r.x + LABEL_W, r.w - LABEL_W, ROLE_TEXT,
                 "%zu sandbox%s   %lld vCPU   %.1f GiB   %s%s", n, n == 1 ? "" : "es",
                 (long long)cpu, (double)mb / 1024, m->local ? "free" : money,
                 m->local || !n ? "" : " per hour");
}

/* " of $10 [###.......] 29%" */
static void draw_budget(const struct ledger_report *rep, enum ledger_period p, struct canvas *c,
                        int y, int x, int max)
{
    double budget = rep->limits.budget.usd[p];
    int pct = money_pct(rep, p), full = pct * BAR / 100;
    char bar[BAR + 1];
    if (pct < 0)
        return;
    for (int i = 0; i < BAR; i++)
        bar[i] = i < full ? '#' : '.';
    bar[BAR] = '\0';
    canvas_textf(c, y, x, max, money_role(rep, pct), "of $%.*f [%s] %d%%",
                 fmod(budget, 1) > 0 ? 2 : 0, budget, bar, pct);
}

static void draw_period(const struct ledger_report *rep, enum ledger_period p, struct canvas *c,
                        int y, struct rect r)
{
    const struct ledger_sums *s = &rep->period[p];
    char usd[48];
    int x = r.x + LABEL_W + USD_W;
    label(c, y, r, ledger_period_words(p));
    ledger_sums_text(usd, sizeof(usd), s);
    canvas_text(c, y, r.x + LABEL_W, USD_W, ROLE_TITLE, usd);
    x += canvas_textf(c, y, x, r.x + r.w - x, ROLE_TEXT, "%.1f vCPU-h  %.1f GiB-h",
                      (double)s->vcpu_ms / 3600000, (double)s->mib_ms / 1024 / 3600000);
    if (r.w >= UI_COLUMNS_W)
        x += canvas_textf(c, y, x, r.x + r.w - x, ROLE_TEXT, "   sandboxes $%.2f + agents $%.2f",
                          s->sandbox_usd, s->agent_usd);
    draw_budget(rep, p, c, y, x + 2, r.x + r.w - x - 2);
}

/* "midnight", "Sunday", "Nov 30": the last day that is within. */
static void end_words(char *dst, size_t size, const struct ledger_query *q)
{
    time_t t = (time_t)(q->to / 1000 - 1);
    struct tm tm;
    localtime_r(&t, &tm);
    if (q->to == q->period[PERIOD_DAY].to)
        snprintf(dst, size, "midnight");
    else
        strftime(dst, size, q->to == q->period[PERIOD_WEEK].to ? "%A" : "%b %d", &tm);
}

static void draw_forecast(const struct ledger_report *rep, struct canvas *c, int y,
                          struct rect r)
{
    char end[24], most[48] = "", all[48];
    if (rep->most)
        snprintf(most, sizeof(most), "   most at once %zu", rep->most);
    if (rep->q.to == INT64_MAX) {
        ledger_sums_text(all, sizeof(all), &rep->all);
        label(c, y, r, "all there is");
        canvas_textf(c, y, r.x + LABEL_W, r.w - LABEL_W, ROLE_TEXT, "%s%s", all, most);
        return;
    }
    end_words(end, sizeof(end), &rep->q);
    label(c, y, r, "forecast");
    canvas_textf(c, y, r.x + LABEL_W, r.w - LABEL_W, ROLE_TEXT,
                 "$%.2f%s to %s, if the last 3 h go on%s", rep->forecast_usd,
                 ledger_unpriced(&rep->all) ? "+?" : "", end, most);
}

/* --- prices and doubts ------------------------------------------------------------------- */

static void draw_prices(const struct ledger_report *rep, struct canvas *c, int y, struct rect r)
{
    if (rep->rate_text)
        canvas_textf(c, y, r.x + 1, r.w - 1, ROLE_HINT, "prices: %s, last checked %s", rep->rate_text,
                     rep->rate_date ? rep->rate_date : "-");
}

static bool has_doubts(const struct ledger_report *rep)
{
    return ledger_unpriced(&rep->all) || rep->all.estimates;
}

static void draw_doubts(const struct ledger_report *rep, struct canvas *c, int y, struct rect r)
{
    const struct ledger_sums *a = &rep->all;
    int x = r.x + 1;
    if (ledger_unpriced(a))
        x += canvas_textf(c, y, x, r.w - 1, ROLE_NOTICE,
                          "unpriced (+?): runs %zu, turns %zu: see models.conf   ",
                          a->unpriced_spans, a->unpriced_turns);
    if (a->estimates)
        canvas_textf(c, y, x, r.x + r.w - x, ROLE_HINT, "runs that nobody saw end: %zu",
                     a->estimates);
}

/* --- the whole ------------------------------------------------------------------------- */

static int most_groups(const struct ledger_report *rep)
{
    size_t most = 0;
    for (int b = 0; b < LEDGER_BYS; b++)
        most = rep->by[b].n > most ? rep->by[b].n : most;
    return most < 1000 ? (int)most : 1000;
}

/* Summary on top, idle ones and prices at the bottom; tables and bars share the rest. */
static void draw_sums(struct ui *ui, struct usage_pane *u, struct canvas *c, struct rect r)
{
    const struct ledger_report *rep = ui->model->usage;
    const struct sandbox *idle[USAGE_MANY_IDLE];
    int64_t server = ui_server_now(ui, ui->now);
    size_t n = usage_idle_ones(ui, u, idle, server), shown = r.h >= ROOMY_H ? USAGE_MANY_IDLE : 1;
    shown = n < shown ? n : shown;
    int feet = (int)shown + 1 + has_doubts(rep), rest = r.h - SUMMARY - feet, y = r.y + SUMMARY;
    int gap = rest >= 13, chart = rest >= 10 ? rest / 2 : 0;
    draw_running(ui->model, c, r);
    for (int p = 0; p < LEDGER_PERIODS; p++)
        draw_period(rep, (enum ledger_period)p, c, r.y + 1 + p, r);
    draw_forecast(rep, c, r.y + SUMMARY - 1, r);
    int tables = rest - chart - gap - (gap && chart), spare = tables - 1 - most_groups(rep);
    if (chart && spare > 0) { /* taller bars, before rows of nothing */
        chart = chart + spare > MOST_CHART ? MOST_CHART : chart + spare;
        tables = rest - chart - gap - (gap && chart);
    }
    if (tables >= 2)
        usage_tables(u, rep, c, (struct rect){y + gap, r.x + 1, tables, r.w - 1});
    if (chart)
        usage_chart(rep, c, (struct rect){y + rest - chart, r.x + 1, chart, r.w - 1});
    y += rest;
    u->idle = n ? idle[0]->id : 0;
    for (size_t i = 0; i < shown; i++)
        usage_draw_idle(ui, idle[i], i == 0, i + 1 == shown ? n - shown : 0, c, y++, r,
                        server);
    if (has_doubts(rep))
        draw_doubts(rep, c, y++, r);
    draw_prices(rep, c, y, r);
}

static void usage_draw(struct ui *ui, void *state, struct canvas *c, struct rect r, bool focused,
                       int64_t now)
{
    struct usage_pane *u = state;
    (void)focused;
    (void)now;
    u->idle = 0;
    if (ui->body != BODY_USAGE) {
        usage_small(ui, u, c, r);
        return;
    }
    if (ui->model->usage) {
        draw_sums(ui, u, c, r);
        return;
    }
    draw_running(ui->model, c, r);
    canvas_text(c, r.y + 1, r.x + 1, r.w - 2, ROLE_HINT, "reading the ledger");
}

static bool usage_update(struct ui *ui, void *state)
{
    struct usage_pane *u = state;
    uint64_t rev = ui->model->usage_asked + ui->model->sandboxes_rev;
    bool changed = rev != u->seen;
    u->seen = rev;
    return changed; /* the header has figures of it, too */
}

/* --- keys -------------------------------------------------------------------------------- */

static void set_range(struct ui *ui, struct usage_pane *u, int step)
{
    u->range = (u->range + step + USAGE_RANGES) % USAGE_RANGES;
    u->top = 0;
    app_usage(ui->app, range_name(u->range), USAGE_KEEP);
}

static void hide(struct ui *ui, struct usage_pane *u)
{
    const struct sandbox *s = model_sandbox(ui->model, u->idle);
    size_t keep = 0;
    for (size_t i = 0; i < u->hidden.n; i++)
        if (usage_is_hidden(u, u->hidden.v[i].sandbox, ui->now))
            u->hidden.v[keep++] = u->hidden.v[i];
    u->hidden.n = keep;
    u->idle_at = 0;
    if (!s) {
        ui_status(ui, 0, "nothing runs idle here that costs something");
        return;
    }
    *ARR_PUSH(&u->hidden) = (struct usage_hidden){s->id, ui->now + USAGE_HIDE_MS};
    ui_status(ui, 0, "%s is left out of the idle ones for an hour", s->name ? s->name : "it");
}

static void pause_idle(struct ui *ui, const struct usage_pane *u)
{
    const struct sandbox *s = model_sandbox(ui->model, u->idle);
    if (!s) {
        ui_status(ui, 0, "nothing runs idle here that costs something");
        return;
    }
    ui_status(ui, 0, "pausing %s", s->name ? s->name : "it");
    app_pause(ui->app, s->id);
}

/* cc-tui-usage-week-20261130-142450.csv in the folder that cc-tui was started in. */
static void export_here(struct ui *ui, const struct usage_pane *u)
{
    time_t now = (time_t)(ui->now / 1000);
    char day[32], *path;
    struct tm tm;
    gmtime_r(&now, &tm);
    strftime(day, sizeof(day), "%Y%m%d-%H%M%S", &tm);
    path = xasprintf("cc-tui-usage-%s-%s.csv", range_name(u->range), day);
    ui->export_req = app_usage_export(ui->app, range_name(u->range), path);
    ui_status(ui, 0, "writing %s", path);
    free(path);
}

static bool scroll(struct usage_pane *u, enum action a)
{
    size_t page = u->rows > 2 ? (size_t)u->rows - 1 : 1, last = u->most_rows;
    size_t down = a == ACT_DOWN ? 1 : a == ACT_HALF_DOWN ? (page + 1) / 2 : a == ACT_PAGE_DOWN ? page : 0;
    size_t up = a == ACT_UP ? 1 : a == ACT_HALF_UP ? (page + 1) / 2 : a == ACT_PAGE_UP ? page : 0;
    if (a == ACT_TOP)
        u->top = 0;
    else if (a == ACT_BOTTOM)
        u->top = last;
    else if (up)
        u->top = u->top > up ? u->top - up : 0;
    else if (down)
        u->top += down; /* cut where it is drawn */
    else
        return false;
    return true;
}

static int usage_action(struct ui *ui, void *state, enum action a)
{
    struct usage_pane *u = state;
    if (ui->opts.readonly && ui_changes_things(a))
        return UI_IGNORED; /* refused for all alike */
    if (a == ACT_USAGE_LONGER || a == ACT_USAGE_SHORTER)
        set_range(ui, u, a == ACT_USAGE_LONGER ? 1 : -1);
    else if (a == ACT_USAGE_NEXT)
        u->first = (u->first + 1) % LEDGER_BYS;
    else if (a == ACT_USAGE_PREV)
        u->first = (u->first + LEDGER_BYS - 1) % LEDGER_BYS;
    else if (a == ACT_USAGE_PAUSE)
        pause_idle(ui, u);
    else if (a == ACT_USAGE_HIDE)
        hide(ui, u);
    else if (a == ACT_USAGE_EXPORT)
        export_here(ui, u);
    else if (!scroll(u, a))
        return UI_IGNORED;
    return UI_HANDLED | UI_REDRAW;
}

/* "day [week] month all" */
static const char *usage_note(struct ui *ui, void *state)
{
    struct usage_pane *u = state;
    size_t n = 0;
    if (ui->body != BODY_USAGE && ui->panes[PANE_USAGE].r.w < SMALL_W)
        return range_name(u->range);
    for (int i = 0; i < USAGE_RANGES; i++)
        n += (size_t)snprintf(u->note + n, sizeof(u->note) - n, "%s%s%s%s", i ? " " : "",
                              i == u->range ? "[" : "", range_name(i), i == u->range ? "]" : "");
    if (ui->body == BODY_USAGE)
        snprintf(u->note + n, sizeof(u->note) - n, "   %s",
                 ui_keys(ui, "{usage-shorter} {usage-longer} change range"));
    return u->note;
}

static const char *usage_title(struct ui *ui, void *state)
{
    (void)ui;
    (void)state;
    return "4 usage";
}

const struct pane_ops pane_usage = {
    .name = "usage",
    .scope = SCOPE_USAGE,
    .open = usage_open,
    .close = usage_close,
    .update = usage_update,
    .draw = usage_draw,
    .action = usage_action,
    .title = usage_title,
    .note = usage_note,
};
