/* Script lines that make up a ledger: see screenscript.h. */
#include "screenscript.h"

#include <cct/util/xalloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MIN_MS INT64_C(60000)

/* Its strings until script_usage_release(). */
static char *next(struct script *s, char **save, char *line)
{
    char *w = strtok_r(line, " ", save);
    char *copy = w && strcmp(w, "-") ? xstrdup(w) : NULL;
    if (copy && s->n_words < sizeof(s->words) / sizeof(s->words[0]))
        s->words[s->n_words++] = copy;
    return copy;
}

static double number(struct script *s, char **save)
{
    const char *w = next(s, save, NULL);
    return w ? strtod(w, NULL) : (double)NAN;
}

static void span_line(struct script *s, char *line)
{
    struct ledger_span *v = &s->spans[s->n_spans];
    char *save;
    if (s->n_spans == sizeof(s->spans) / sizeof(s->spans[0]))
        return;
    v->at.project = next(s, &save, line);
    v->at.tool = next(s, &save, NULL);
    v->at.template_id = next(s, &save, NULL);
    v->at.name = v->at.sandbox_id = next(s, &save, NULL);
    v->s.start = s->now - (int64_t)(number(s, &save) * MIN_MS);
    v->s.end = v->s.start + (int64_t)(number(s, &save) * MIN_MS);
    v->s.how = SPAN_GONE;
    v->usd_per_s = number(s, &save) / 3600;
    v->s.estimate = next(s, &save, NULL) != NULL;
    v->cpu_count = 2;
    v->memory_mb = 1024;
    s->n_spans++;
}

static void turn_line(struct script *s, char *line)
{
    struct ledger_turn *v = &s->turns[s->n_turns];
    char *save;
    if (s->n_turns == sizeof(s->turns) / sizeof(s->turns[0]))
        return;
    v->at.project = next(s, &save, line);
    v->at.tool = next(s, &save, NULL);
    for (size_t i = 0; i < s->n_spans && v->at.tool; i++)
        if (s->spans[i].at.tool && !strcmp(s->spans[i].at.tool, v->at.tool))
            v->at = s->spans[i].at; /* where that agent runs */
    v->model = next(s, &save, NULL);
    v->time_ms = s->now - (int64_t)(number(s, &save) * MIN_MS);
    v->in_tokens = (int64_t)number(s, &save);
    v->out_tokens = (int64_t)number(s, &save);
    v->cost_usd = number(s, &save);
    s->n_turns++;
}

static void usage_line(struct script *s, char *line)
{
    struct ev_usage *ev = ev_new(EV_USAGE);
    struct ledger_query q;
    struct ledger_report *r;
    char *save;
    const char *range = next(s, &save, line);
    if (!range || ledger_range(range, s->now, &q, NULL) != 0)
        abort();
    r = ledger_report_new(&q);
    for (size_t i = 0; i < s->n_spans; i++)
        ledger_report_span(r, &s->spans[i]);
    for (size_t i = 0; i < s->n_turns; i++)
        ledger_report_turn(r, &s->turns[i]);
    ledger_report_end(r);
    for (int p = 0; p < LEDGER_PERIODS; p++) {
        double usd = number(s, &save);
        r->limits.budget.usd[p] = isnan(usd) ? 0 : usd;
    }
    r->rate_text = xstrdup("2 vCPU + 1.0 GiB = $0.117/h, source: built in");
    r->rate_date = xstrdup("2026-08-06");
    ev->report = r;
    script_post(s, ev);
}

void script_usage_release(struct script *s)
{
    while (s->n_words)
        free(s->words[--s->n_words]);
}

const struct script_verb script_usage_verbs[] = {
    {"span", span_line}, {"turn", turn_line}, {"usage", usage_line}, {NULL, NULL}};
