/* Sums over intervals and turns. */
#include <cct/model/ledger.h>

#include <cct/util/arr.h>
#include <cct/util/map.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define HOUR_MS INT64_C(3600000)
#define RECENT_MS (3 * HOUR_MS)

/* Where groups are, by what they are of: place + 1. */
struct edge {
    int64_t at;
    int by; /* +1 one more runs, -1 one less */
};
struct ledger_work {
    struct map *by[LEDGER_BYS], *hours, *spend;
    ARR(struct edge) edges;
};

const char *ledger_by_name(enum ledger_by b)
{
    static const char *const names[LEDGER_BYS] = {"project", "agent", "model", "template",
                                                  "sandbox"};

    return names[b];
}

double ledger_usd(const struct ledger_sums *s)
{
    return s->sandbox_usd + s->agent_usd;
}

size_t ledger_unpriced(const struct ledger_sums *s)
{
    return s->unpriced_spans + s->unpriced_turns;
}

bool ledger_all_unpriced(const struct ledger_sums *s)
{
    return s->spans + s->turns && ledger_unpriced(s) == s->spans + s->turns;
}

int ledger_budget_pct(double usd, double budget)
{
    double pct = budget > 0 ? floor(usd / budget * 100 + 1e-9) : -1;

    return pct > 99999 ? 99999 : (int)pct;
}

int64_t ledger_first(const struct ledger_query *q)
{
    int64_t first = q->now - LEDGER_HOURS * HOUR_MS;

    first = q->from < first ? q->from : first;
    for (int p = 0; p < LEDGER_PERIODS; p++)
        first = q->period[p].from < first ? q->period[p].from : first;
    return first;
}

size_t ledger_cuts(const struct ledger_query *q, int64_t out[LEDGER_CUTS])
{
    size_t n = 0;

    out[n++] = q->from;
    out[n++] = q->to;
    out[n++] = q->now - RECENT_MS;
    for (int p = 0; p < LEDGER_PERIODS; p++) {
        out[n++] = q->period[p].from;
        out[n++] = q->period[p].to;
    }
    return n;
}

/* Hours begin where the day does, in any time zone. */
static int64_t hour_of(const struct ledger_query *q, int64_t at)
{
    int64_t since = (at - q->period[PERIOD_DAY].from) % HOUR_MS;

    return at - (since < 0 ? since + HOUR_MS : since);
}

struct ledger_report *ledger_report_new(const struct ledger_query *q)
{
    struct ledger_report *r = xcalloc(1, sizeof(*r));

    r->q = *q;
    r->hour_from = hour_of(q, q->now) - (LEDGER_HOURS - 1) * HOUR_MS;
    r->work = xcalloc(1, sizeof(*r->work));
    for (int b = 0; b < LEDGER_BYS; b++)
        r->work->by[b] = map_new();
    r->work->hours = map_new();
    r->work->spend = map_new();
    return r;
}

static void work_free(struct ledger_work *w)
{
    if (!w)
        return;
    for (int b = 0; b < LEDGER_BYS; b++)
        map_free(w->by[b], NULL);
    map_free(w->hours, NULL);
    map_free(w->spend, NULL);
    ARR_RELEASE(&w->edges);
    free(w);
}

void ledger_report_free(struct ledger_report *r)
{
    if (!r)
        return;
    for (int b = 0; b < LEDGER_BYS; b++) {
        for (size_t i = 0; i < r->by[b].n; i++) {
            free(r->by[b].v[i].name);
            free(r->by[b].v[i].label);
        }
        free(r->by[b].v);
    }
    for (size_t i = 0; i < r->n_spend; i++)
        free(r->spend[i].project);
    free(r->spend);
    free(r->hours);
    free(r->rate_date);
    free(r->rate_text);
    work_free(r->work);
    free(r);
}

/* --- places ----------------------------------------------------------------------------- */

/* One more element behind n others: the array grows by halves. */
static void *grow(void *v, size_t n, size_t size)
{
    if (n && (n & (n - 1)))
        return v; /* room was made at the last power of two */
    return xrealloc(v, (n ? 2 * n : 1) * size);
}

static struct ledger_sums *group(struct ledger_report *r, enum ledger_by b, const char *name,
                                 const char *label)
{
    size_t at;

    name = name ? name : "";
    at = (uintptr_t)map_get(r->work->by[b], name);
    if (at)
        return &r->by[b].v[at - 1].sums;
    r->by[b].v = grow(r->by[b].v, r->by[b].n, sizeof(*r->by[b].v));
    r->by[b].v[r->by[b].n] = (struct ledger_group){.name = xstrdup(name), .label = xstrdup(label)};
    map_put(r->work->by[b], name, (void *)(uintptr_t)(r->by[b].n + 1));
    return &r->by[b].v[r->by[b].n++].sums;
}

static struct ledger_sums *hour(struct ledger_report *r, int64_t at)
{
    size_t i = (uintptr_t)map_get_id(r->work->hours, (uint64_t)at);

    if (i)
        return &r->hours[i - 1].sums;
    r->hours = grow(r->hours, r->n_hours, sizeof(*r->hours));
    r->hours[r->n_hours] = (struct ledger_hour){.at = at};
    map_put_id(r->work->hours, (uint64_t)at, (void *)(uintptr_t)(r->n_hours + 1));
    return &r->hours[r->n_hours++].sums;
}

static struct ledger_spend *spend(struct ledger_report *r, const char *project)
{
    size_t i;

    project = project ? project : "";
    i = (uintptr_t)map_get(r->work->spend, project);
    if (i)
        return &r->spend[i - 1];
    r->spend = grow(r->spend, r->n_spend, sizeof(*r->spend));
    r->spend[r->n_spend] = (struct ledger_spend){.project = xstrdup(project)};
    map_put(r->work->spend, project, (void *)(uintptr_t)(r->n_spend + 1));
    return &r->spend[r->n_spend++];
}

/* A later group may move earlier ones of its own list only. */
static void add_places(struct ledger_report *r, const struct ledger_place *p,
                       struct ledger_sums *out[LEDGER_BYS])
{
    out[BY_PROJECT] = group(r, BY_PROJECT, p->project, NULL);
    out[BY_AGENT] = group(r, BY_AGENT, p->tool, NULL);
    out[BY_TEMPLATE] = group(r, BY_TEMPLATE, p->template_id, NULL);
    out[BY_SANDBOX] = group(r, BY_SANDBOX, p->sandbox_id, p->name);
    out[BY_MODEL] = NULL;
}

/* --- intervals -------------------------------------------------------------------------- */

/* How long it ran within [from, to). */
static int64_t within(const struct span *s, int64_t from, int64_t to)
{
    int64_t a = s->start > from ? s->start : from, b = s->end < to ? s->end : to;

    return b > a ? b - a : 0;
}

static double usd_of(const struct ledger_span *s, int64_t ms)
{
    return isnan(s->usd_per_s) ? 0 : (double)ms / 1000 * s->usd_per_s;
}

static void add_span(struct ledger_sums *a, const struct ledger_span *s, int64_t ms)
{
    a->run_ms += ms;
    a->vcpu_ms += ms * s->cpu_count;
    a->mib_ms += ms * s->memory_mb;
    a->sandbox_usd += usd_of(s, ms);
    a->spans++;
    a->unpriced_spans += isnan(s->usd_per_s);
    a->estimates += s->s.estimate;
}

static void add_in_range(struct ledger_report *r, const struct ledger_span *s)
{
    int64_t ms = within(&s->s, r->q.from, r->q.to);
    struct ledger_sums *in[LEDGER_BYS];
    struct edge *e;

    if (ms <= 0)
        return;
    add_span(&r->all, s, ms);
    add_places(r, &s->at, in);
    for (int b = 0; b < LEDGER_BYS; b++)
        if (in[b])
            add_span(in[b], s, ms);
    e = ARR_PUSH(&r->work->edges);
    *e = (struct edge){s->s.start > r->q.from ? s->s.start : r->q.from, 1};
    e = ARR_PUSH(&r->work->edges);
    *e = (struct edge){s->s.end, -1};
}

static void add_hours(struct ledger_report *r, const struct ledger_span *s)
{
    int64_t from = s->s.start > r->q.from ? s->s.start : r->q.from;
    int64_t to = s->s.end < r->q.to ? s->s.end : r->q.to;

    for (int64_t at = hour_of(&r->q, from); at < to; at += HOUR_MS) {
        struct span part = {at > from ? at : from, at + HOUR_MS < to ? at + HOUR_MS : to,
                            s->s.how, false};

        if (part.end > part.start)
            add_span(hour(r, at), s, part.end - part.start);
    }
}

void ledger_report_span(struct ledger_report *r, const struct ledger_span *s)
{
    int64_t now = r->q.now;

    add_in_range(r, s);
    if (r->q.by_hour)
        add_hours(r, s);
    for (int p = 0; p < LEDGER_PERIODS; p++) {
        int64_t ms = within(&s->s, r->q.period[p].from, r->q.period[p].to);

        if (ms <= 0)
            continue;
        add_span(&r->period[p], s, ms);
        spend(r, s->at.project)->usd[p] += usd_of(s, ms);
    }
    r->recent_usd += usd_of(s, within(&s->s, now - RECENT_MS, now));
    if (s->s.end <= r->hour_from)
        return;
    for (int h = 0; h < LEDGER_HOURS; h++) {
        int64_t at = r->hour_from + h * HOUR_MS;

        r->hour[h] += usd_of(s, within(&s->s, at, at + HOUR_MS));
    }
}

/* --- turns ------------------------------------------------------------------------------ */

static void add_turn(struct ledger_sums *a, const struct ledger_turn *t)
{
    a->in_tokens += t->in_tokens;
    a->cache_read += t->cache_read;
    a->cache_write += t->cache_write;
    a->out_tokens += t->out_tokens;
    a->agent_usd += isnan(t->cost_usd) ? 0 : t->cost_usd;
    a->turns += t->turns ? t->turns : 1;
    a->unpriced_turns += t->turns ? t->unpriced : isnan(t->cost_usd);
}

void ledger_report_turn(struct ledger_report *r, const struct ledger_turn *t)
{
    struct ledger_sums *in[LEDGER_BYS];
    double usd = isnan(t->cost_usd) ? 0 : t->cost_usd;
    int64_t at = t->time_ms;

    if (at >= r->q.from && at < r->q.to) {
        add_turn(&r->all, t);
        add_places(r, &t->at, in);
        in[BY_MODEL] = group(r, BY_MODEL, t->model, NULL);
        for (int b = 0; b < LEDGER_BYS; b++)
            add_turn(in[b], t);
        if (r->q.by_hour)
            add_turn(hour(r, hour_of(&r->q, at)), t);
    }
    for (int p = 0; p < LEDGER_PERIODS; p++) {
        if (at < r->q.period[p].from || at >= r->q.period[p].to)
            continue;
        add_turn(&r->period[p], t);
        spend(r, t->at.project)->usd[p] += usd;
    }
    if (at >= r->q.now - RECENT_MS)
        r->recent_usd += usd;
    if (at >= r->hour_from && at < r->hour_from + LEDGER_HOURS * HOUR_MS)
        r->hour[(at - r->hour_from) / HOUR_MS] += usd;
}

/* --- the end ---------------------------------------------------------------------------- */

static int dearest_first(const void *a, const void *b)
{
    const struct ledger_group *x = a, *y = b;
    double d = ledger_usd(&y->sums) - ledger_usd(&x->sums);

    return d > 0 ? 1 : d < 0 ? -1 : strcmp(x->name, y->name);
}

static int by_time(const void *a, const void *b)
{
    const struct ledger_hour *x = a, *y = b;

    return x->at > y->at ? 1 : x->at < y->at ? -1 : 0;
}

/* Who ends when another one begins has not run beside it. */
static int by_edge(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;

    return x->at > y->at ? 1 : x->at < y->at ? -1 : x->by - y->by;
}

static size_t most_at_once(struct ledger_work *w)
{
    size_t now = 0, most = 0;

    if (w->edges.n)
        qsort(w->edges.v, w->edges.n, sizeof(*w->edges.v), by_edge);
    for (size_t i = 0; i < w->edges.n; i++) {
        now += (size_t)w->edges.v[i].by;
        most = now > most ? now : most;
    }
    return most;
}

void ledger_report_end(struct ledger_report *r)
{
    int64_t left = r->q.to - r->q.now;

    for (int b = 0; b < LEDGER_BYS; b++)
        if (r->by[b].n)
            qsort(r->by[b].v, r->by[b].n, sizeof(*r->by[b].v), dearest_first);
    if (r->n_hours)
        qsort(r->hours, r->n_hours, sizeof(*r->hours), by_time);
    r->most = most_at_once(r->work);
    work_free(r->work);
    r->work = NULL;
    r->forecast_usd = ledger_usd(&r->all);
    if (left > 0 && r->q.from <= r->q.now && r->q.to < INT64_MAX)
        r->forecast_usd += r->recent_usd / (double)RECENT_MS * (double)left;
}
