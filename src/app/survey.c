/* The times of a recording: a part of those that were said, and how the rest lies between. */
#include "survey.h"

#include <stddef.h>

enum { PIECE_MS = 60, EVENT_MS = 400, MARKS_MOST = 1 << 16 };
#define FARTHEST (INT64_MAX / 1024) /* ms; a hundred times it is a number, too */

void survey_init(struct survey *s)
{
    *s = (struct survey){.step = 1};
}

void survey_release(struct survey *s)
{
    ARR_RELEASE(&s->marks);
}

/* A while from one to the next, where no time is known. */
static int64_t pace(const struct agent_event *ev)
{
    bool piece = (ev->kind == AGENT_TEXT || ev->kind == AGENT_THINKING) && !ev->final;

    return piece ? PIECE_MS : EVENT_MS;
}

static void halve(struct survey *s)
{
    for (size_t i = 0; i < s->marks.n / 2; i++)
        s->marks.v[i] = s->marks.v[2 * i];
    s->marks.n /= 2;
    s->step *= 2;
}

void survey_see(struct survey *s, const struct agent_event *ev)
{
    uint64_t i = s->count++;

    s->rest += pace(ev);
    if (!ev->time_ms)
        return;
    s->said = (struct survey_mark){i, ev->time_ms};
    s->rest = 0;
    if (s->marks.n && i < s->marks.v[s->marks.n - 1].index + s->step)
        return;
    if (s->marks.n == MARKS_MOST)
        halve(s);
    *ARR_PUSH(&s->marks) = s->said;
}

static int64_t less(int64_t a, int64_t b)
{
    int64_t d;

    return __builtin_sub_overflow(a, b, &d) || d > FARTHEST ? FARTHEST : d;
}

/* Those in front of the first time that was said end at it; no time is before another. */
void survey_end(struct survey *s)
{
    int64_t begin, last = 0;

    if (s->marks.n && s->said.index > s->marks.v[s->marks.n - 1].index)
        *ARR_PUSH(&s->marks) = s->said;
    for (size_t i = 0; i < s->marks.n; i++) {
        struct survey_mark *m = &s->marks.v[i];

        if (i == 0)
            begin = less(m->ms, (int64_t)m->index * PIECE_MS);
        m->ms = less(m->ms, begin);
        m->ms = last = m->ms < last ? last : m->ms;
    }
    s->length = last + s->rest;
}

/* A file may say any time, so that its product with a number of events need not fit. */
static int64_t between(const struct survey_mark m[2], uint64_t index)
{
    int64_t n = (int64_t)(m[1].index - m[0].index), k = (int64_t)(index - m[0].index);
    int64_t span = m[1].ms - m[0].ms;

    return m[0].ms + span / n * k + span % n * k / n;
}

int64_t survey_time(const struct survey *s, struct survey_pos *p, const struct agent_event *ev)
{
    const struct survey_mark *m = s->marks.v;

    while (p->mark < s->marks.n && m[p->mark].index < p->next)
        p->mark++;
    if (p->mark == s->marks.n)
        p->ms += pace(ev);
    else
        p->ms = p->mark ? between(m + p->mark - 1, p->next) : (int64_t)p->next * PIECE_MS;
    if (p->ms > s->length)
        p->ms = s->length; /* a file that has changed since may have more of them */
    p->next++;
    return p->ms;
}
