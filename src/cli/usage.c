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

#define HOUR_S 3600.0

static double hours(int64_t ms)
{
    return (double)ms / 1000 / HOUR_S;
}

static int64_t tokens_in(const struct ledger_sums *s)
{
    return s->in_tokens + s->cache_read + s->cache_write;
}

/* Nothing of it has a price. */
static bool is_unpriced(const struct ledger_sums *s)
{
    return s->unpriced_spans + s->unpriced_turns == s->spans + s->turns;
}

/* Money as it is: unknown stays unknown. */
static void usd_text(char *out, size_t size, double usd, size_t unpriced, size_t of)
{
    if (of && unpriced == of)
        snprintf(out, size, "unpriced");
    else
        snprintf(out, size, "$%.*f%s", usd > 0 && usd < 0.1 ? 4 : 2, usd, unpriced ? "+" : "");
}

static void sums_usd(char *out, size_t size, const struct ledger_sums *s)
{
    usd_text(out, size, ledger_usd(s), s->unpriced_spans + s->unpriced_turns, s->spans + s->turns);
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
    json_usd(w, "usd", ledger_usd(s), !is_unpriced(s) || s->spans + s->turns == 0);
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

static bool is_wanted(const struct cli *c, enum ledger_by b)
{
    return !cli_has(c, CLI_BY) || str_eq(c->value[CLI_BY], ledger_by_name(b));
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
    jw_obj(&w, "today");
    json_sums(&w, &r->period[PERIOD_DAY]);
    jw_end(&w);
    jw_num(&w, "forecastUsd", r->forecast_usd);
    jw_obj(&w, "by");
    for (int k = 0; k < LEDGER_BYS; k++)
        if (is_wanted(c, (enum ledger_by)k))
            json_groups(&w, r, (enum ledger_by)k);
    jw_end(&w);
    jw_end(&w);
    puts(buf_str(&b));
    buf_release(&b);
}

/* A cell that begins like a formula is none. */
static void csv_text(const char *s)
{
    putchar('"');
    if (*s && strchr("=+-@\t", *s))
        putchar('\'');
    for (; *s; s++) {
        if (*s == '"')
            putchar('"');
        putchar(*s);
    }
    putchar('"');
}

static void csv_usd(double usd, size_t unpriced, size_t of)
{
    if (!of || unpriced < of)
        printf(",%.6f", usd);
    else
        putchar(',');
}

static void csv_sums(const struct ledger_sums *s)
{
    csv_usd(s->sandbox_usd, s->unpriced_spans, s->spans);
    csv_usd(s->agent_usd, s->unpriced_turns, s->turns);
    printf(",%.3f,%.3f,%.3f,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%zu,%zu,%zu\n",
           (double)s->run_ms / 1000, (double)s->vcpu_ms / 1000, (double)s->mib_ms / 1024 / 1000,
           s->in_tokens, s->cache_read, s->cache_write, s->out_tokens, s->turns,
           s->unpriced_spans + s->unpriced_turns, s->estimates);
}

static void print_csv(const struct cli *c, const struct ledger_report *r)
{
    puts("by,name,label,sandbox_usd,agent_usd,run_seconds,vcpu_seconds,gib_seconds,input_tokens,"
         "cache_read_tokens,cache_write_tokens,output_tokens,turns,unpriced,estimated");
    if (!cli_has(c, CLI_BY)) {
        printf("total,,");
        csv_sums(&r->all);
    }
    for (int b = 0; b < LEDGER_BYS; b++)
        for (size_t i = 0; is_wanted(c, (enum ledger_by)b) && i < r->by[b].n; i++) {
            printf("%s,", ledger_by_name((enum ledger_by)b));
            csv_text(r->by[b].v[i].name);
            putchar(',');
            csv_text(r->by[b].v[i].label ? r->by[b].v[i].label : "");
            csv_sums(&r->by[b].v[i].sums);
        }
}

/* --- text -------------------------------------------------------------------------------- */

enum { NAME_CELLS = 32 };

static void print_group(const struct ledger_group *g, enum ledger_by b)
{
    char usd[32], *name = clean_line_dup(g->label ? g->label : g->name, NAME_CELLS);
    const char *shown = *name ? name : b == BY_MODEL ? "unknown" : "none";

    sums_usd(usd, sizeof(usd), &g->sums);
    printf("  %s%*s  %10s", shown, NAME_CELLS - (int)text_width(shown, strlen(shown)), "", usd);
    if (b == BY_MODEL)
        printf("  %9s", "");
    else
        printf("  %8.2fh", hours(g->sums.run_ms));
    printf("  %10" PRId64 " in  %9" PRId64 " out\n", tokens_in(&g->sums), g->sums.out_tokens);
    free(name);
}

static void print_idle(const struct model *m, int64_t now)
{
    for (size_t i = 0; i < m->n_sandboxes; i++) {
        const struct sandbox *s = &m->sandboxes[i];
        char span[16];

        if (s->state != SB_RUNNING || s->foreign || str_eq(s->account, "local") || !s->agent_since ||
            (s->agent != AG_IDLE && s->agent != AG_EXITED))
            continue;
        clock_format_span(span, sizeof(span), now - s->agent_since);
        printf("idle but running: %s %s ($%.2f/h, $%.4f so far)\n", s->name ? s->name : "-", span,
               sandbox_usd_per_hour(s),
               sandbox_usd_per_hour(s) * hours(now > s->agent_since ? now - s->agent_since : 0));
    }
}

static void print_text(const struct cli *c, const struct ledger_report *r, const struct model *m)
{
    const struct ledger_sums *a = &r->all;
    char all[32], today[32], sandboxes[32], agents[32];

    sums_usd(all, sizeof(all), a);
    sums_usd(today, sizeof(today), &r->period[PERIOD_DAY]);
    usd_text(sandboxes, sizeof(sandboxes), a->sandbox_usd, a->unpriced_spans, a->spans);
    usd_text(agents, sizeof(agents), a->agent_usd, a->unpriced_turns, a->turns);
    printf("%-10s %s   sandboxes %s   agents %s (est.)\n", c->n_args ? c->args[0] : "week", all,
           sandboxes, agents);
    printf("%-10s %.2f h running   %.2f vCPU-h   %.2f GiB-h   %" PRId64 " tokens in, %" PRId64
           " out\n", "", hours(a->run_ms), hours(a->vcpu_ms), hours(a->mib_ms) / 1024,
           tokens_in(a), a->out_tokens);
    printf("%-10s %s\n", "today", today);
    if (r->q.to > r->q.now && r->q.to < INT64_MAX)
        printf("%-10s $%.2f to its end, if the last 3 h go on\n", "forecast", r->forecast_usd);
    if (a->unpriced_spans + a->unpriced_turns)
        printf("%-10s %zu intervals and %zu turns have no known price and are not in the sums\n",
               "unpriced", a->unpriced_spans, a->unpriced_turns);
    if (a->estimates)
        printf("%-10s %zu intervals have an end that nobody saw\n", "estimated", a->estimates);
    for (int b = 0; b < LEDGER_BYS; b++) {
        if (!is_wanted(c, (enum ledger_by)b) || !r->by[b].n)
            continue;
        printf("\nby %s\n", ledger_by_name((enum ledger_by)b));
        for (size_t i = 0; i < r->by[b].n; i++)
            print_group(&r->by[b].v[i], (enum ledger_by)b);
    }
    putchar('\n');
    print_idle(m, r->q.now);
    if (r->rate_text)
        printf("prices: %s, last checked %s\n", r->rate_text, r->rate_date ? r->rate_date : "-");
}

/* --- the command --------------------------------------------------------------------------- */

static int refused(const struct cli *c, struct err *e)
{
    const char *by = cli_has(c, CLI_BY) ? c->value[CLI_BY] : NULL;
    struct ledger_query q;
    bool found = !by;

    for (int b = 0; b < LEDGER_BYS; b++)
        found = found || str_eq(by, ledger_by_name((enum ledger_by)b));
    if (!found)
        return err_set(e, ERR_INVALID, "'--by' is project, agent, model, template or sandbox, not "
                       "'%.60s'", by);
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
    if (cli_app_wait(&a, app_usage(a.app, c->n_args ? c->args[0] : "week", 0), &e) != 0) {
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
