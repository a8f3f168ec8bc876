/* Intervals: what the service says of a sandbox, as time that it ran. */
#include <cct/model/ledger.h>

#include <string.h>

/* The answer to a create and the lists may differ by so much in when it started. */
#define SAME_MS 10000
#define AHEAD_MS 2000 /* a pause this far in the future has happened, clocks differ */

struct sighting ledger_sighting(const struct sandbox *s, int64_t now)
{
    struct sighting g = {.gone = s->gone,
                         .started_at = s->started_at,
                         .end_at = s->end_at,
                         .ended_at = s->ended_at,
                         .now = now};

    g.paused = s->state == SB_PAUSED;
    g.up = s->state == SB_RUNNING || s->state == SB_CREATING ||
           (s->state == SB_ERROR && s->vm_up);
    g.known = s->sandbox_id && (!s->unlisted || s->vouched_at || !(g.up || g.paused));
    return g;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The service tells of a run that began after this one. */
static bool is_newer_run(const struct span *last, const struct sighting *s)
{
    return s->started_at > last->start + SAME_MS &&
           (last->how == SPAN_OPEN || s->started_at > last->end - SAME_MS);
}

/* When it was paused, 0 where the service has not said it. */
static int64_t paused_at(const struct sighting *s)
{
    return s->end_at && s->end_at <= s->now + AHEAD_MS && s->end_at >= s->started_at ? s->end_at
                                                                                     : 0;
}

/* Nobody saw it end: it ran at least until it was last seen. */
static unsigned leave_open_end(struct span *last, const struct sighting *s)
{
    if (last->how != SPAN_OPEN)
        return 0;
    if (last->end > s->started_at)
        last->end = s->started_at;
    last->how = SPAN_PAUSED;
    last->estimate = true;
    return LEDGER_LAST;
}

static struct span span_from(int64_t start, int64_t end, enum span_how how, bool estimate)
{
    return (struct span){start, later(start, end), how, estimate};
}

static unsigned follow_up(struct span *last, bool have, const struct sighting *s,
                          struct span *next)
{
    int64_t start = s->started_at ? s->started_at : s->now;
    unsigned what;

    if (!have) {
        *next = span_from(start, s->now, SPAN_OPEN, !s->started_at);
        return LEDGER_NEXT;
    }
    if (is_newer_run(last, s)) {
        what = leave_open_end(last, s);
        *next = span_from(s->started_at, s->now, SPAN_OPEN, false);
        return what | LEDGER_NEXT;
    }
    if (last->how == SPAN_PAUSED) { /* goes on; a list will tell since when */
        *next = span_from(later(s->now, last->end), 0, SPAN_OPEN, true);
        return LEDGER_NEXT;
    }
    if (s->started_at && s->started_at != last->start &&
        (last->estimate || s->started_at > last->start - SAME_MS)) {
        last->start = s->started_at; /* told more exactly now */
        last->estimate = false;
    }
    if (last->how == SPAN_GONE)
        last->estimate = false;
    last->how = SPAN_OPEN;
    last->end = later(later(last->end, s->now), last->start);
    return LEDGER_LAST;
}

static unsigned follow_paused(struct span *last, bool have, const struct sighting *s,
                              struct span *next)
{
    int64_t at = paused_at(s);
    bool newer = have && is_newer_run(last, s);
    unsigned what;

    if (!have || newer) {
        what = newer ? leave_open_end(last, s) : 0;
        if (!at || !s->started_at)
            return what;
        *next = span_from(s->started_at, at, SPAN_PAUSED, false);
        return what | LEDGER_NEXT;
    }
    if (last->how == SPAN_OPEN) {
        last->estimate |= !at;
        last->end = later(at ? at : s->now, last->start);
    } else if (at && at >= last->start && at != last->end) {
        last->estimate = false;
        last->end = at;
    } else if (last->how == SPAN_PAUSED) {
        return 0;
    }
    last->how = SPAN_PAUSED;
    return LEDGER_LAST;
}

static int64_t gone_at(const struct sighting *s, bool *exact)
{
    int64_t at = s->ended_at && s->ended_at <= s->now + AHEAD_MS ? s->ended_at : s->now;

    *exact = s->gone == GONE_HERE || (s->gone == GONE_TIMEOUT && s->end_at && at == s->end_at);
    if (s->end_at > s->started_at && at > s->end_at)
        at = s->end_at;
    return at;
}

static unsigned follow_gone(struct span *last, bool have, const struct sighting *s,
                            struct span *next)
{
    bool exact, newer = have && is_newer_run(last, s);
    int64_t at = gone_at(s, &exact);
    unsigned what;

    if (!have || newer) {
        what = newer ? leave_open_end(last, s) : 0;
        if (!s->started_at || at <= s->started_at)
            return what;
        *next = span_from(s->started_at, at, SPAN_GONE, !exact);
        return what | LEDGER_NEXT;
    }
    if (last->how != SPAN_OPEN)
        return 0;
    last->end = later(exact ? at : later(at, last->end), last->start);
    last->estimate |= !exact;
    last->how = SPAN_GONE;
    return LEDGER_LAST;
}

unsigned ledger_follow(struct span *last, bool have, const struct sighting *s, struct span *next)
{
    if (!s->known)
        return 0;
    if (s->up)
        return follow_up(last, have, s, next);
    return s->paused ? follow_paused(last, have, s, next) : follow_gone(last, have, s, next);
}
