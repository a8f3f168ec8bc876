/* Sums over intervals and turns. */
#include <cct/model/ledger.h>

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HOUR_MS INT64_C(3600000)
#define RECENT_MS (3 * HOUR_MS)

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

int64_t ledger_first(const struct ledger_query *q)
{
    int64_t first = q->now - LEDGER_HOURS * HOUR_MS;

    first = q->from < first ? q->from : first;
    return q->day < first ? q->day : first;
}

struct ledger_report *ledger_report_new(const struct ledger_query *q)
{
    struct ledger_report *r = xcalloc(1, sizeof(*r));

    r->q = *q;
    r->hour_from = q->now - q->now % HOUR_MS - (LEDGER_HOURS - 1) * HOUR_MS;
    return r;
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
    free(r->rate_date);
    free(r->rate_text);
    free(r);
}

static struct ledger_sums *group(struct ledger_report *r, enum ledger_by b, const char *name,
                                 const char *label)
{
    struct ledger_group *g;

    name = name ? name : "";
    for (size_t i = 0; i < r->by[b].n; i++)
        if (str_eq(r->by[b].v[i].name, name))
            return &r->by[b].v[i].sums;
    r->by[b].v = xrealloc(r->by[b].v, (r->by[b].n + 1) * sizeof(*g));
    g = &r->by[b].v[r->by[b].n++];
    *g = (struct ledger_group){.name = xstrdup(name), .label = xstrdup(label)};
    return &g->sums;
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

static void add_places(struct ledger_report *r, const struct ledger_place *p,
                       struct ledger_sums *out[LEDGER_BYS])
{
    /* a later group may move earlier ones of its own list only */
    out[BY_PROJECT] = group(r, BY_PROJECT, p->project, NULL);
    out[BY_AGENT] = group(r, BY_AGENT, p->tool, NULL);
    out[BY_TEMPLATE] = group(r, BY_TEMPLATE, p->template_id, NULL);
    out[BY_SANDBOX] = group(r, BY_SANDBOX, p->sandbox_id, p->name);
    out[BY_MODEL] = NULL;
}

void ledger_report_span(struct ledger_report *r, const struct ledger_span *s)
{
    int64_t ms = within(&s->s, r->q.from, r->q.to), now = r->q.now;
    struct ledger_sums *in[LEDGER_BYS];

    if (ms > 0) {
        add_span(&r->all, s, ms);
        add_places(r, &s->at, in);
        for (int b = 0; b < LEDGER_BYS; b++)
            if (in[b])
                add_span(in[b], s, ms);
    }
    ms = within(&s->s, r->q.day, now + HOUR_MS);
    if (ms > 0)
        add_span(&r->today, s, ms);
    r->recent_usd += usd_of(s, within(&s->s, now - RECENT_MS, now));
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
    a->turns++;
    a->unpriced_turns += isnan(t->cost_usd);
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
    }
    if (at >= r->q.day)
        add_turn(&r->today, t);
    if (at >= r->q.now - RECENT_MS)
        r->recent_usd += usd;
    if (at >= r->hour_from && at < r->hour_from + LEDGER_HOURS * HOUR_MS)
        r->hour[(at - r->hour_from) / HOUR_MS] += usd;
}

static int dearest_first(const void *a, const void *b)
{
    const struct ledger_group *x = a, *y = b;
    double d = ledger_usd(&y->sums) - ledger_usd(&x->sums);

    return d > 0 ? 1 : d < 0 ? -1 : strcmp(x->name, y->name);
}

void ledger_report_end(struct ledger_report *r)
{
    int64_t left = r->q.to - r->q.now;

    for (int b = 0; b < LEDGER_BYS; b++)
        if (r->by[b].n)
            qsort(r->by[b].v, r->by[b].n, sizeof(*r->by[b].v), dearest_first);
    r->forecast_usd = ledger_usd(&r->all);
    if (left > 0 && r->q.from <= r->q.now && r->q.to < INT64_MAX)
        r->forecast_usd += r->recent_usd / (double)RECENT_MS * (double)left;
}

/* --- ranges ----------------------------------------------------------------------------- */

static int64_t midnight(int year, int month, int day)
{
    struct tm t = {.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day, .tm_isdst = -1};

    return (int64_t)mktime(&t) * 1000;
}

static bool read_date(const char *text, size_t len, int *y, int *m, int *d)
{
    char copy[11];
    int end = 0;

    if (len != 10)
        return false;
    memcpy(copy, text, 10);
    copy[10] = 0;
    return sscanf(copy, "%4d-%2d-%2d%n", y, m, d, &end) == 3 && end == 10 && *y >= 1970 && *m >= 1 &&
           *m <= 12 && *d >= 1 && *d <= 31;
}

static bool read_dates(const char *text, struct ledger_query *q)
{
    const char *dots = strstr(text, "..");
    const char *last = dots ? dots + 2 : text;
    int y, m, d;

    if (!read_date(text, dots ? (size_t)(dots - text) : strlen(text), &y, &m, &d))
        return false;
    q->from = midnight(y, m, d);
    if (!read_date(last, strlen(last), &y, &m, &d))
        return false;
    q->to = midnight(y, m, d + 1);
    return q->to > q->from;
}

int ledger_range(const char *text, int64_t now, struct ledger_query *q, struct err *e)
{
    time_t t = (time_t)(now / 1000);
    struct tm tm;

    localtime_r(&t, &tm);
    int y = tm.tm_year + 1900, m = tm.tm_mon + 1, d = tm.tm_mday, monday = d - (tm.tm_wday + 6) % 7;
    *q = (struct ledger_query){.now = now, .day = midnight(y, m, d)};
    if (str_eq(text, "day") || str_eq(text, "today")) {
        q->from = q->day;
        q->to = midnight(y, m, d + 1);
    } else if (str_eq(text, "week")) {
        q->from = midnight(y, m, monday);
        q->to = midnight(y, m, monday + 7);
    } else if (str_eq(text, "month")) {
        q->from = midnight(y, m, 1);
        q->to = midnight(y, m + 1, 1);
    } else if (str_eq(text, "all")) {
        q->to = INT64_MAX;
    } else if (!read_dates(text, q)) {
        return err_set(e, ERR_INVALID,
                       "'%.60s' is no time: give day, week, month, all, YYYY-MM-DD or "
                       "YYYY-MM-DD..YYYY-MM-DD", text);
    }
    return 0;
}
