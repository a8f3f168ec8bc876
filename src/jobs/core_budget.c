/* Budgets: told once when a part of them and when all of them is used, also when several
 * programs look and when one begins anew; and, where the user wants it, sandboxes that run for
 * nothing are paused. Nothing is ever killed for money. */
#include "core_priv.h"

#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>

enum { WARN_PCT = 80, USED_UP = 100 };
#define IDLE_MS INT64_C(300000)
#define LEASE_MS 150000

/* A crossing that the store is asked, or was asked, whether it is new. */
struct crossing {
    struct jobs *j;
    enum ledger_period period;
    int64_t begin;
    char *project; /* NULL: all */
    int pct, level;
    double usd, budget;
};
struct budget {
    ARR(struct crossing *) seen;
    bool over;       /* the budget of all */
    enum ledger_period over_period;
    ARR(char *) over_projects;
    bool asked;      /* for the lease */
};

static struct budget *budget_of(struct jobs *j)
{
    if (!j->priv->budget)
        j->priv->budget = xcalloc(1, sizeof(struct budget));
    return j->priv->budget;
}

static void forget_over(struct budget *b)
{
    for (size_t i = 0; i < b->over_projects.n; i++)
        free(b->over_projects.v[i]);
    ARR_CLEAR(&b->over_projects);
    b->over = false;
}

void core_budget_release(struct jobs *j)
{
    struct budget *b = j->priv->budget;

    if (!b)
        return;
    jobs_store_forget(j, b);
    for (size_t i = 0; i < b->seen.n; i++) {
        free(b->seen.v[i]->project);
        free(b->seen.v[i]);
    }
    ARR_RELEASE(&b->seen);
    forget_over(b);
    ARR_RELEASE(&b->over_projects);
    free(b);
    j->priv->budget = NULL;
}

/* --- telling -------------------------------------------------------------------------- */

static const char *action_words(const struct jobs *j)
{
    return j->o.usage_limits.action == USAGE_PAUSE_IDLE && !j->o.readonly
               ? "; sandboxes that have been idle for 5 minutes are paused"
               : "; nothing is stopped by it";
}

/* Whether it was told is not known: the next sums ask again. */
static void forget_crossing(struct budget *b, struct crossing *c)
{
    for (size_t i = 0; i < b->seen.n; i++)
        if (b->seen.v[i] == c) {
            ARR_REMOVE(&b->seen, i);
            break;
        }
    free(c->project);
    free(c);
}

static void on_told(void *ctx, struct st_reply *r)
{
    struct crossing *c = ctx;
    char whose[80] = "", usd[32];

    if (r->err.code) {
        forget_crossing(budget_of(c->j), c);
        return;
    }
    if (!r->got)
        return;
    if (c->project)
        snprintf(whose, sizeof(whose), " of project %.60s", c->project);
    ledger_usd_text(usd, sizeof(usd), c->usd, 0, 0);
    if (c->level >= USED_UP)
        jobs_say_budget(c->j, 2, "the budget for %s%s is used up: %s of $%.2f%s",
                        ledger_period_words(c->period), whose, usd, c->budget, action_words(c->j));
    else
        jobs_say_budget(c->j, 1, "%d %% of the budget for %s%s is used: %s of $%.2f", c->pct,
                        ledger_period_words(c->period), whose, usd, c->budget);
}

static bool is_seen(const struct budget *b, const struct crossing *c)
{
    for (size_t i = 0; i < b->seen.n; i++) {
        const struct crossing *s = b->seen.v[i];

        if (s->period == c->period && s->begin == c->begin && s->level == c->level &&
            str_eq(s->project, c->project))
            return true;
    }
    return false;
}

static void cross(struct jobs *j, const struct crossing *c)
{
    struct budget *b = budget_of(j);
    struct crossing *s;

    if (is_seen(b, c))
        return;
    s = *ARR_PUSH(&b->seen) = xmalloc(sizeof(*s));
    *s = *c;
    s->project = xstrdup(c->project);
    store_budget_told(j->o.store, ledger_period_name(c->period), c->begin, c->project, c->level,
                      jobs_store(j, on_told, s, b));
}

/* True when it is used up. */
static bool look(struct jobs *j, const struct ledger_report *r, enum ledger_period p,
                 const char *project, double usd, double budget)
{
    int warn = r->limits.warn_pct ? r->limits.warn_pct : WARN_PCT;
    struct crossing c = {j, p, r->q.period[p].from, NULL, ledger_budget_pct(usd, budget),
                         USED_UP, usd, budget};

    c.project = (char *)project; /* copied where it is kept */
    if (c.pct < USED_UP)
        c.level = warn;
    if (c.pct >= 0 && c.pct >= c.level)
        cross(j, &c);
    return c.pct >= USED_UP;
}

/* --- pausing -------------------------------------------------------------------------- */

static bool is_over(const struct budget *b, const struct sandbox *row)
{
    for (size_t i = 0; i < b->over_projects.n; i++)
        if (str_eq(b->over_projects.v[i], row->project ? row->project : ""))
            return true;
    return b->over;
}

/* It runs for nothing, costs something, is ours, and nobody said to leave it. */
static bool may_pause(const struct jobs *j, const struct sandbox *row)
{
    struct sandbox priced = *row; /* borrowed */

    priced.usd_per_s = core_usage_rate(j, row);
    return sandbox_idles(&priced) && row->sandbox_id && !row->protect && !row->pending &&
           !row->unlisted && jobs_now(j) - row->agent_since >= IDLE_MS;
}

static void pause_row(struct jobs *j, const struct sandbox *row)
{
    struct cmd *c = cmd_new(CMD_PAUSE, 0);
    char span[16];

    clock_format_span(span, sizeof(span), jobs_now(j) - row->agent_since);
    jobs_say(j, 1, row->id, "%s has been idle for %s and the budget is used up: pausing it",
             core_row_name(row), span);
    c->sandbox = row->id;
    core_action(j, c);
    msg_free(&c->m);
}

static void on_lease(void *ctx, struct st_reply *r)
{
    struct jobs *j = ctx;
    struct budget *b = budget_of(j);

    b->asked = false;
    if (r->err.code || !r->got || !j->e2b)
        return;
    for (size_t i = 0; i < j->table.n; i++)
        if (may_pause(j, &j->table.v[i]) && is_over(b, &j->table.v[i]))
            pause_row(j, &j->table.v[i]);
}

/* Of several programs one does it. */
static void pause_idle(struct jobs *j)
{
    struct budget *b = budget_of(j);

    if (b->asked || j->o.readonly || j->o.usage_limits.action != USAGE_PAUSE_IDLE ||
        (!b->over && !b->over_projects.n))
        return;
    for (size_t i = 0; i < j->table.n; i++)
        if (may_pause(j, &j->table.v[i]) && is_over(b, &j->table.v[i])) {
            b->asked = true;
            store_lease(j->o.store, "budget", j->o.owner, LEASE_MS, jobs_store(j, on_lease, j, b));
            return;
        }
}

/* --- sums are there ------------------------------------------------------------------- */

void core_budget_projects(const struct jobs *j, struct ledger_report *r)
{
    for (size_t i = 0; i < r->n_spend; i++) {
        const struct project *p =
            *r->spend[i].project ? core_project(j, r->spend[i].project) : NULL;

        if (p && str_eq(p->name, r->spend[i].project))
            r->spend[i].budget = p->budget;
    }
}

void core_budget_look(struct jobs *j, const struct ledger_report *r)
{
    struct budget *b = budget_of(j);

    forget_over(b);
    for (int k = 0; k < LEDGER_PERIODS; k++) {
        enum ledger_period p = (enum ledger_period)k;

        b->over |= look(j, r, p, NULL, ledger_usd(&r->period[p]), r->limits.budget.usd[p]);
        for (size_t i = 0; i < r->n_spend; i++)
            if (look(j, r, p, r->spend[i].project, r->spend[i].usd[p], r->spend[i].budget.usd[p]))
                *ARR_PUSH(&b->over_projects) = xstrdup(r->spend[i].project);
    }
    pause_idle(j);
}
