/* Use over time of the one team there is here. Nothing is sampled for it: how many
 * sandboxes ran at a time follows from the events, backwards from those that run
 * now, and so it survives restarts. */
#include "ctl_priv.h"
#include <cct/local/http_srv.h>
#include <cct/local/lifelog.h>
#include <cct/local/provider.h>
#include <cct/util/clock.h>
#include <cct/util/map.h>
#include <cct/util/xalloc.h>

#include <stdlib.h>
#include <string.h>

struct point {
    int64_t at; /* unix seconds: start of its step */
    int most;   /* running at once */
    int starts;
};

struct series {
    struct point *v;
    size_t n;
    int64_t step;
};

static int change_of(enum life type)
{
    if (type == LIFE_CREATED || type == LIFE_RESUMED)
        return 1;
    return type == LIFE_PAUSED || type == LIFE_KILLED ? -1 : 0;
}

/* A paused sandbox that is killed was not running before. */
static bool was_paused(const struct life_event *evs, size_t i)
{
    if (evs[i].type != LIFE_KILLED)
        return false;
    for (size_t k = i; k-- > 0;)
        if (strcmp(evs[k].id, evs[i].id) == 0 && change_of(evs[k].type) != 0)
            return evs[k].type == LIFE_PAUSED;
    return false;
}

static int count_told(const struct provider *p)
{
    int n = 0;
    size_t it = 0;
    struct sbox *b;
    while ((b = map_next(p->boxes, &it, NULL, NULL)) != NULL)
        n += b->is_told && b->rec.state == SBOX_RUNNING;
    return n;
}

/* `running` of them from `from_s` until `to_s`, both included. */
static void fill(struct series *s, int64_t from_s, int64_t to_s, int running)
{
    int64_t first = s->v[0].at, last = s->v[s->n - 1].at;
    if (to_s < first)
        return;
    size_t k = from_s > first ? (size_t)((from_s - first) / s->step) : 0;
    size_t end = to_s < last ? (size_t)((to_s - first) / s->step) : s->n - 1;
    for (; k <= end; k++)
        if (s->v[k].most < running)
            s->v[k].most = running;
}

static void series_make(struct series *s, const struct provider *p, const struct ctl_span *span)
{
    s->step = ctl_span_step(span);
    int64_t first = span->start - span->start % s->step;
    s->n = (size_t)((span->end - first) / s->step + 1);
    s->v = xcalloc(s->n, sizeof(s->v[0]));
    for (size_t k = 0; k < s->n; k++)
        s->v[k].at = first + (int64_t)k * s->step;
    size_t n = 0;
    const struct life_event *evs = p->life ? lifelog_events(p->life, &n) : NULL;
    int running = count_told(p);
    int64_t until = clock_wall_ms() / 1000;
    for (size_t i = n; i-- > 0;) {
        int64_t at = evs[i].ms / 1000;
        fill(s, at, until, running);
        if (change_of(evs[i].type) == 1 && at >= first && at <= span->end)
            s->v[(at - first) / s->step].starts++;
        if (!was_paused(evs, i))
            running -= change_of(evs[i].type);
        if (running < 0)
            running = 0; /* what began before the oldest event is not known */
        until = at;
    }
    fill(s, 0, until, running);
}

/* Whose team, and when; false after an answer. */
static bool take_team(const struct ctl_call *c, struct ctl_span *span)
{
    int64_t now = clock_wall_ms() / 1000;
    if (strcmp(c->part[0], LIFELOG_TEAM) != 0) {
        http_reply_error(c->r, 403, "the key is of team %s, not of '%.80s'", LIFELOG_TEAM,
                         c->part[0]);
        return false;
    }
    if (!ctl_take_span(c, now - LIFELOG_DAYS * 86400, span))
        return false;
    if (span->end > now)
        span->end = now; /* nobody knows what comes */
    if (span->start < now - LIFELOG_DAYS * 86400)
        span->start = now - LIFELOG_DAYS * 86400;
    return true;
}

static double rate_of(const struct series *s, const struct point *pt)
{
    return (double)pt->starts / (double)s->step;
}

void ctl_team_metrics(struct ctl_call *c)
{
    struct ctl_span span;
    struct series s = {0};
    if (!take_team(c, &span))
        return;
    if (span.end >= span.start)
        series_make(&s, c->p, &span);
    struct buf out = BUF_INIT;
    struct jw w;
    jw_init(&w, &out);
    jw_arr(&w, NULL);
    for (size_t k = 0; k < s.n; k++) {
        jw_obj(&w, NULL);
        ctl_write_time(&w, "timestamp", s.v[k].at * 1000);
        jw_i64(&w, "timestampUnix", s.v[k].at);
        jw_i64(&w, "concurrentSandboxes", s.v[k].most);
        jw_num(&w, "sandboxStartRate", rate_of(&s, &s.v[k]));
        jw_end(&w);
    }
    jw_end(&w);
    ctl_reply_buf(c->r, 200, &out);
    free(s.v);
}

static void reply_max(struct ctl_call *c, const struct series *s, const struct ctl_span *span,
                      bool rate)
{
    int64_t at = span->end;
    double most = 0;
    for (size_t k = 0; k < s->n; k++) {
        double v = rate ? rate_of(s, &s->v[k]) : s->v[k].most;
        if (v > most) {
            most = v;
            at = s->v[k].at;
        }
    }
    struct buf out = BUF_INIT;
    struct jw w;
    jw_init(&w, &out);
    jw_obj(&w, NULL);
    ctl_write_time(&w, "timestamp", at * 1000);
    jw_i64(&w, "timestampUnix", at);
    jw_num(&w, "value", most);
    jw_end(&w);
    ctl_reply_buf(c->r, 200, &out);
}

void ctl_team_max(struct ctl_call *c)
{
    struct ctl_span span;
    struct series s = {0};
    if (!take_team(c, &span))
        return;
    char *metric = ctl_query_get(c->r->query, "metric");
    bool rate = metric && strcmp(metric, "sandbox_start_rate") == 0;
    bool known = rate || (metric && strcmp(metric, "concurrent_sandboxes") == 0);
    free(metric);
    if (!known) {
        http_reply_error(c->r, 400,
                         "metric must be 'concurrent_sandboxes' or 'sandbox_start_rate'");
        return;
    }
    if (span.end >= span.start)
        series_make(&s, c->p, &span);
    reply_max(c, &s, &span, rate);
    free(s.v);
}
