/* cc-tui usage: what sandboxes and agents have cost. */
#include "cli_priv.h"

#include <cct/model/ledger.h>
#include <cct/text/clean.h>
#include <cct/text/width.h>
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HOUR_S 3600.0

static const char *const period_keys[LEDGER_PERIODS] = {"today", "thisWeek", "thisMonth"};

static double hours(int64_t ms)
{
    return (double)ms / 1000 / HOUR_S;
}

static int64_t tokens_in(const struct ledger_sums *s)
{
    return s->in_tokens + s->cache_read + s->cache_write;
}

/* --- JSON and CSV ------------------------------------------------------------------------ */

static void json_usd(struct jw *w, const char *name, double usd, bool known)
{
    if (known)
        jw_num(w, name, usd);
    else
        jw_null(w, name);
}

static void json_sums(struct jw *w, const struct ledger_sums *s)
{
    json_usd(w, "usd", ledger_usd(s), !ledger_all_unpriced(s));
    json_usd(w, "sandboxUsd", s->sandbox_usd, s->unpriced_spans < s->spans || !s->spans);
    json_usd(w, "agentUsd", s->agent_usd, s->unpriced_turns < s->turns || !s->turns);
    jw_num(w, "runSeconds", (double)s->run_ms / 1000);
    jw_num(w, "vcpuSeconds", (double)s->vcpu_ms / 1000);
    jw_num(w, "gibSeconds", (double)s->mib_ms / 1024 / 1000);
    jw_i64(w, "inputTokens", s->in_tokens);
    jw_i64(w, "cacheReadTokens", s->cache_read);
    jw_i64(w, "cacheWriteTokens", s->cache_write);
    jw_i64(w, "outputTokens", s->out_tokens);
    jw_i64(w, "intervals", (int64_t)s->spans);
    jw_i64(w, "turns", (int64_t)s->turns);
    jw_i64(w, "unpricedIntervals", (int64_t)s->unpriced_spans);
    jw_i64(w, "unpricedTurns", (int64_t)s->unpriced_turns);
    jw_i64(w, "estimatedIntervals", (int64_t)s->estimates);
}

static void json_time(struct jw *w, const char *name, int64_t ms)
{
    char t[40];

    if (ms > 0 && ms < INT64_MAX)
        clock_format_rfc3339(t, sizeof(t), ms);
    jw_str(w, name, ms > 0 && ms < INT64_MAX ? t : NULL);
}

/* -1: no such group. */
static int by_of(const struct cli *c)
{
    const char *by = cli_has(c, CLI_BY) ? c->value[CLI_BY] : NULL;

    if (!by)
        return LEDGER_ALL_BYS;
    for (int b = 0; b < LEDGER_BYS; b++)
        if (str_eq(by, ledger_by_name((enum ledger_by)b)))
            return b;
    return str_eq(by, "hour") ? LEDGER_BY_HOUR : -1;
}

static bool is_wanted(const struct cli *c, int b)
{
    int by = by_of(c);

    return by == LEDGER_ALL_BYS || by == b;
}

static void json_groups(struct jw *w, const struct ledger_report *r, enum ledger_by b)
{
    jw_arr(w, ledger_by_name(b));
    for (size_t i = 0; i < r->by[b].n; i++) {
        const struct ledger_group *g = &r->by[b].v[i];

        jw_obj(w, NULL);
        jw_str(w, "name", *g->name ? g->name : NULL);
        if (b == BY_SANDBOX)
            jw_str(w, "label", g->label);
        json_sums(w, &g->sums);
        jw_end(w);
    }
    jw_end(w);
}

static void json_hours(struct jw *w, const struct ledger_report *r)
{
    jw_arr(w, "hour");
    for (size_t i = 0; i < r->n_hours; i++) {
        jw_obj(w, NULL);
        json_time(w, "at", r->hours[i].at);
        json_sums(w, &r->hours[i].sums);
        jw_end(w);
    }
    jw_end(w);
}

/* Those of all, and those of projects that have used anything this month. */
static void json_budget(struct jw *w, const char *project, enum ledger_period p, double usd,
                        double budget)
{
    if (budget <= 0)
        return;
    jw_obj(w, NULL);
    jw_str(w, "project", project);
    jw_str(w, "period", ledger_period_name(p));
    jw_num(w, "usd", usd);
    jw_num(w, "budgetUsd", budget);
    jw_i64(w, "percent", ledger_budget_pct(usd, budget));
    jw_end(w);
}

static void json_budgets(struct jw *w, const struct ledger_report *r)
{
    jw_arr(w, "budgets");
    for (int k = 0; k < LEDGER_PERIODS; k++) {
        enum ledger_period p = (enum ledger_period)k;

        json_budget(w, NULL, p, ledger_usd(&r->period[p]), r->limits.budget.usd[p]);
        for (size_t i = 0; i < r->n_spend; i++)
            json_budget(w, r->spend[i].project, p, r->spend[i].usd[p], r->spend[i].budget.usd[p]);
    }
    jw_end(w);
}

static void print_json(const struct cli *c, const struct ledger_report *r)
{
    struct buf b = BUF_INIT;
    struct jw w;

    jw_init(&w, &b);
    jw_obj(&w, NULL);
    json_time(&w, "from", r->q.from);
    json_time(&w, "to", r->q.to);
    jw_str(&w, "sandboxRateDate", r->rate_date);
    jw_obj(&w, "total");
    json_sums(&w, &r->all);
    jw_end(&w);
    for (int p = 0; p < LEDGER_PERIODS; p++) {
        jw_obj(&w, period_keys[p]);
        json_sums(&w, &r->period[p]);
        jw_end(&w);
    }
    jw_num(&w, "forecastUsd", r->forecast_usd);
    jw_i64(&w, "mostAtOnce", (int64_t)r->most);
    json_budgets(&w, r);
    jw_obj(&w, "by");
    for (int k = 0; k < LEDGER_BYS; k++)
        if (is_wanted(c, k))
            json_groups(&w, r, (enum ledger_by)k);
    if (is_wanted(c, LEDGER_BY_HOUR))
        json_hours(&w, r);
    jw_end(&w);
    jw_end(&w);
    cli_out_json(&b);
    buf_release(&b);
}

static void print_csv(const struct cli *c, const struct ledger_report *r)
{
    struct buf b = BUF_INIT;

    ledger_csv(r, by_of(c), &b);
    cli_out("%s", buf_str(&b));
    buf_release(&b);
}

/* --- text -------------------------------------------------------------------------------- */

enum { NAME_CELLS = 32 };

static void print_group(const struct ledger_group *g, enum ledger_by b)
{
    char usd[32], *name = clean_line_dup(g->label ? g->label : g->name, NAME_CELLS);
    const char *shown = *name ? name : b == BY_MODEL ? "unknown" : "none";

    ledger_sums_text(usd, sizeof(usd), &g->sums);
    cli_out("  %s%*s  %10s", shown, NAME_CELLS - (int)text_width(shown, strlen(shown)), "", usd);
    if (b == BY_MODEL)
        cli_out("  %9s", "");
    else
        cli_out("  %8.2fh", hours(g->sums.run_ms));
    cli_out("  %10" PRId64 " in  %9" PRId64 " out\n", tokens_in(&g->sums), g->sums.out_tokens);
    free(name);
}

static void print_idle(const struct model *m, int64_t now)
{
    for (size_t i = 0; i < m->n_sandboxes; i++) {
        const struct sandbox *s = &m->sandboxes[i];
        char span[16];

        if (!sandbox_idles(s))
            continue;
        clock_format_span(span, sizeof(span), now - s->agent_since);
        cli_out("idle but running: %s %s ($%.2f/h, $%.4f so far)\n", s->name ? s->name : "-", span,
               sandbox_usd_per_hour(s),
               sandbox_usd_per_hour(s) * hours(now > s->agent_since ? now - s->agent_since : 0));
    }
}

static void print_budget(const char *whose, double usd, double budget)
{
    int pct = ledger_budget_pct(usd, budget);

    if (pct >= 0)
        cli_out("%-10s %s$%.2f of $%.2f, %d %%%s\n", "  budget", whose, usd, budget, pct,
               pct >= 100 ? ": used up" : "");
}

static void print_period(const struct ledger_report *r, enum ledger_period p)
{
    char usd[32], whose[80];

    ledger_sums_text(usd, sizeof(usd), &r->period[p]);
    cli_out("%-10s %s\n", ledger_period_words(p), usd);
    print_budget("", ledger_usd(&r->period[p]), r->limits.budget.usd[p]);
    for (size_t i = 0; i < r->n_spend; i++) {
        snprintf(whose, sizeof(whose), "project %.60s: ", r->spend[i].project);
        print_budget(whose, r->spend[i].usd[p], r->spend[i].budget.usd[p]);
    }
}

static void print_hours(const struct ledger_report *r)
{
    char usd[32], at[20];

    cli_out("\nby hour\n");
    for (size_t i = 0; i < r->n_hours; i++) {
        const struct ledger_sums *h = &r->hours[i].sums;
        time_t t = (time_t)(r->hours[i].at / 1000);
        struct tm tm;

        localtime_r(&t, &tm);
        strftime(at, sizeof(at), "%Y-%m-%d %H:%M", &tm);
        ledger_sums_text(usd, sizeof(usd), h);
        cli_out("  %-*s  %10s  %8.2fh  %10" PRId64 " in  %9" PRId64 " out\n", NAME_CELLS, at, usd,
               hours(h->run_ms), tokens_in(h), h->out_tokens);
    }
}

static void print_text(const struct cli *c, const struct ledger_report *r, const struct model *m)
{
    const struct ledger_sums *a = &r->all;
    char all[32], sandboxes[32], agents[32];

    ledger_sums_text(all, sizeof(all), a);
    ledger_usd_text(sandboxes, sizeof(sandboxes), a->sandbox_usd, a->unpriced_spans, a->spans);
    ledger_usd_text(agents, sizeof(agents), a->agent_usd, a->unpriced_turns, a->turns);
    cli_out("%-10s %s   sandboxes %s   agents %s (est.)\n", c->n_args ? c->args[0] : "week", all,
           sandboxes, agents);
    cli_out("%-10s %.2f h running   %.2f vCPU-h   %.2f GiB-h   %" PRId64 " tokens in, %" PRId64
           " out\n", "", hours(a->run_ms), hours(a->vcpu_ms), hours(a->mib_ms) / 1024,
           tokens_in(a), a->out_tokens);
    for (int p = 0; p < LEDGER_PERIODS; p++)
        print_period(r, (enum ledger_period)p);
    if (r->q.to > r->q.now && r->q.to < INT64_MAX)
        cli_out("%-10s $%.2f%s to its end, if the last 3 h go on\n", "forecast", r->forecast_usd,
               ledger_unpriced(a) ? "+?" : "");
    if (r->most)
        cli_out("%-10s %zu sandbox%s at once\n", "most", r->most, r->most == 1 ? "" : "es");
    if (a->unpriced_spans + a->unpriced_turns)
        cli_out("%-10s %zu intervals and %zu turns have no known price and are not in the sums\n",
               "unpriced", a->unpriced_spans, a->unpriced_turns);
    if (a->estimates)
        cli_out("%-10s %zu intervals have an end that nobody saw\n", "estimated", a->estimates);
    for (int b = 0; b < LEDGER_BYS; b++) {
        if (!is_wanted(c, b) || !r->by[b].n)
            continue;
        cli_out("\nby %s\n", ledger_by_name((enum ledger_by)b));
        for (size_t i = 0; i < r->by[b].n; i++)
            print_group(&r->by[b].v[i], (enum ledger_by)b);
    }
    if (by_of(c) == LEDGER_BY_HOUR)
        print_hours(r);
    cli_out("\n");
    print_idle(m, r->q.now);
    if (r->rate_text)
        cli_out("prices: %s, last checked %s\n", r->rate_text, r->rate_date ? r->rate_date : "-");
}

/* --- the command --------------------------------------------------------------------------- */

static int refused(const struct cli *c, struct err *e)
{
    struct ledger_query q;

    if (by_of(c) < 0)
        return err_set(e, ERR_INVALID, "'--by' is project, agent, model, template, sandbox or hour, "
                       "not '%.60s'", c->value[CLI_BY]);
    return ledger_range(c->n_args ? c->args[0] : "week", clock_wall_ms(), &q, e);
}

int cli_usage_sums(struct cli *c)
{
    struct cli_app a;
    struct err e = {0};
    int status = CLI_OK;

    if (refused(c, &e) != 0)
        return cli_usage("%s", e.text);
    if (cli_app_open_stored(&a, c, &e) != 0)
        return cli_fail(&e);
    if (cli_app_wait(&a, app_usage(a.app, c->n_args ? c->args[0] : "week", USAGE_BY_HOUR), &e) != 0) {
        status = cli_app_fail(&a, &e);
    } else {
        const struct model *m = app_model(a.app);

        if (cli_json(c))
            print_json(c, m->usage);
        else if (cli_has(c, CLI_CSV))
            print_csv(c, m->usage);
        else
            print_text(c, m->usage, m);
    }
    cli_app_close(&a);
    return status;
}
