/* Recorded runs: events with their times, a position that moves, and what it has passed. */
#include <cct/app/replay.h>

#include "recording.h"

#include <cct/app.h>
#include <cct/model/transcribe.h>
#include <cct/util/arr.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* At most so much is handed out, or read without an event, before it is somebody else's turn. */
enum { PIECE_MS = 60, EVENT_MS = 400, FEED_MOST = 2000, FEED_BYTES = 4 << 20, READ_MOST = 64,
       SPEED_LEAST = 25, SPEED_MOST = 6400, MARKS_MOST = 1 << 16 };
#define FARTHEST (INT64_MAX / 1024) /* ms; a hundred times it is a number, too */

struct mark {
    uint64_t index; /* of an event whose time the agent said */
    int64_t ms;     /* its time; since the begin once all was looked through */
};
struct replay {
    char *name, *tool;
    struct recording *rec;
    bool ready;
    ARR(struct mark) marks; /* a part of the times that were said: memory has an end */
    struct mark said;       /* the last one */
    uint64_t step;          /* so many events are from one mark to the next, at least */
    int64_t rest;           /* ms that pass after it */
    uint64_t count;
    int64_t length;
    uint64_t next;          /* event, where it lies among the marks, and its time */
    size_t mark;
    int64_t next_ms;
    bool has_next;
    int64_t last, before;   /* times handed out: the last one, the last that was less; or -1 */
    int64_t at, since;      /* position, and the steady time when it was there */
    int speed;
    bool paused, rewound;
    bool shown;             /* its row was made */
    struct err trouble;     /* not told yet */
    enum sb_agent agent;
};

struct replay *replay_new(const char *name, const char *tool, int take_fd,
                          const struct agent_adapter *a)
{
    struct replay *r = xcalloc(1, sizeof(*r));

    r->name = xstrdup(name);
    r->tool = xstrdup(tool);
    r->rec = recording_new(take_fd, a);
    r->step = 1;
    r->last = r->before = -1;
    r->speed = 100;
    r->paused = true;
    r->agent = AG_UNKNOWN;
    return r;
}

void replay_free(struct replay *r)
{
    if (!r)
        return;
    free(r->name);
    free(r->tool);
    recording_free(r->rec);
    ARR_RELEASE(&r->marks);
    free(r);
}

/* --- when what comes --------------------------------------------------------------- */

/* A while from one to the next, where no time is known. */
static int64_t pace(const struct agent_event *ev)
{
    bool piece = (ev->kind == AGENT_TEXT || ev->kind == AGENT_THINKING) && !ev->final;

    return piece ? PIECE_MS : EVENT_MS;
}

static void halve(struct replay *r)
{
    for (size_t i = 0; i < r->marks.n / 2; i++)
        r->marks.v[i] = r->marks.v[2 * i];
    r->marks.n /= 2;
    r->step *= 2;
}

static void look_at(struct replay *r, const struct agent_event *ev)
{
    uint64_t i = r->count++;

    r->rest += pace(ev);
    if (!ev->time_ms)
        return;
    r->said = (struct mark){i, ev->time_ms};
    r->rest = 0;
    if (r->marks.n && i < r->marks.v[r->marks.n - 1].index + r->step)
        return;
    if (r->marks.n == MARKS_MOST)
        halve(r);
    *ARR_PUSH(&r->marks) = r->said;
}

static int64_t less(int64_t a, int64_t b)
{
    int64_t d;

    return __builtin_sub_overflow(a, b, &d) || d > FARTHEST ? FARTHEST : d;
}

/* Those in front of the first time that was said end at it; no time is before another. */
static void reckon(struct replay *r)
{
    int64_t begin, last = 0;

    if (r->marks.n && r->said.index > r->marks.v[r->marks.n - 1].index)
        *ARR_PUSH(&r->marks) = r->said;
    for (size_t i = 0; i < r->marks.n; i++) {
        struct mark *m = &r->marks.v[i];

        if (i == 0)
            begin = less(m->ms, (int64_t)m->index * PIECE_MS);
        m->ms = less(m->ms, begin);
        m->ms = last = m->ms < last ? last : m->ms;
    }
    r->length = last + r->rest;
}

/* Of the next event, asked once for each in their order. Untimed ones lie evenly over the time
 * between those that were timed. A file may say any time, so that its product with a number of
 * events need not fit. */
static int64_t time_of_next(struct replay *r, const struct agent_event *ev)
{
    const struct mark *m = r->marks.v;

    while (r->mark < r->marks.n && m[r->mark].index < r->next)
        r->mark++;
    if (r->mark == r->marks.n)
        return r->next_ms + pace(ev);
    if (r->mark == 0)
        return (int64_t)r->next * PIECE_MS;
    m += r->mark - 1;
    int64_t n = (int64_t)(m[1].index - m[0].index), k = (int64_t)(r->next - m[0].index);
    int64_t span = m[1].ms - m[0].ms;
    return m[0].ms + span / n * k + span % n * k / n;
}

static void from_the_begin(struct replay *r)
{
    recording_rewind(r->rec);
    r->next = r->mark = 0;
    r->next_ms = 0;
    r->has_next = false;
    r->last = r->before = -1;
}

/* Why there is no event in it. */
static int nothing_in_it(const struct recording_left *left, const struct err *why, struct err *e)
{
    if (why->code == ERR_IO)
        return err_set(e, ERR_IO, "%s", why->text);
    if (left->lines || left->cut)
        return err_set(e, ERR_INVALID, "it holds no events of cc-tui; for an agent's own stream "
                       "say whose, by --tool");
    return err_set(e, ERR_NOTFOUND, "nothing is kept in it");
}

static void note_left(struct replay *r, const struct recording_left *left, const struct err *why)
{
    const char *and = left->cut ? ", and a cut end" : "";
    struct err *e = &r->trouble;

    if (why->code) /* what is at its end does not count beside it */
        err_set(e, ERR_IO, "%s: what stands before it is played", why->text);
    else if (left->lines > 1)
        err_set(e, ERR_INVALID, "left out: %zu lines that are no events, line %zu first%s",
                left->lines, left->first, and);
    else if (left->lines)
        err_set(e, ERR_INVALID, "left out: line %zu, which is no event%s", left->first, and);
    else if (left->cut)
        err_set(e, ERR_INVALID, "its last line was not written to its end: it is left out");
}

int replay_look(struct replay *r, int64_t ms, struct err *e)
{
    int64_t until = clock_mono_ms() + ms;
    struct err why = {0};
    const struct agent_event *ev;
    bool more = !r->ready;

    while (more) {
        more = recording_read(r->rec, &why);
        for (; (ev = recording_event(r->rec)) != NULL; recording_drop(r->rec))
            look_at(r, ev);
        if (more && clock_mono_ms() >= until)
            return 1;
    }
    if (r->ready)
        return 0;
    const struct recording_left left = recording_left(r->rec);
    reckon(r);
    from_the_begin(r);
    r->ready = true;
    r->at = r->at > r->length ? r->length : r->at;
    if (!r->count)
        return nothing_in_it(&left, &why, e);
    note_left(r, &left, &why);
    return 0;
}

bool replay_trouble(struct replay *r, struct err *e)
{
    if (!r->trouble.code)
        return false;
    *e = r->trouble;
    err_clear(&r->trouble);
    return true;
}

int replay_looked(const struct replay *r)
{
    return r->ready ? 100 : recording_percent(r->rec);
}

bool replay_is_ready(const struct replay *r)
{
    return r->ready;
}

/* --- what it is -------------------------------------------------------------------- */

const char *replay_name(const struct replay *r)
{
    return r->name;
}

const char *replay_tool(const struct replay *r)
{
    return r->tool ? r->tool : "agent";
}

size_t replay_count(const struct replay *r)
{
    return (size_t)r->count;
}

int64_t replay_length(const struct replay *r)
{
    return r->length;
}

void replay_time_text(char *dst, size_t size, int64_t ms)
{
    snprintf(dst, size, "%lld:%02lld", (long long)(ms / 60000), (long long)(ms / 1000 % 60));
}

/* --- where it is ------------------------------------------------------------------- */

int64_t replay_at(const struct replay *r, int64_t now)
{
    int64_t length = replay_length(r);
    int64_t at = r->paused || !r->ready   ? r->at
                 : r->speed == REPLAY_MAX ? length
                                          : r->at + (now - r->since) * r->speed / 100;

    return r->ready && at > length ? length : at;
}

static void stand(struct replay *r, int64_t now)
{
    r->at = replay_at(r, now);
    r->since = now;
}

bool replay_is_over(const struct replay *r)
{
    return r->ready && !r->has_next && recording_is_over(r->rec);
}

bool replay_is_paused(const struct replay *r)
{
    return r->paused;
}

int replay_speed(const struct replay *r)
{
    return r->speed;
}

void replay_pause(struct replay *r, int64_t now, bool on)
{
    stand(r, now);
    r->paused = on;
}

void replay_set_speed(struct replay *r, int64_t now, int percent)
{
    stand(r, now);
    r->speed = percent;
}

void replay_change_speed(struct replay *r, int64_t now, bool faster)
{
    int speed = r->speed;

    if (speed == REPLAY_MAX)
        speed = faster ? REPLAY_MAX : SPEED_MOST;
    else if (faster)
        speed = speed * 2 > SPEED_MOST ? REPLAY_MAX : speed * 2;
    else
        speed = speed / 2 >= SPEED_LEAST ? speed / 2 : speed < SPEED_LEAST ? speed : SPEED_LEAST;
    replay_set_speed(r, now, speed);
}

bool replay_parse_speed(const char *text, int *percent)
{
    char *end;
    double n;

    if (str_eq(text, "max")) {
        *percent = REPLAY_MAX;
        return true;
    }
    n = strtod(text, &end);
    if (end == text || (*end && !str_eq(end, "x")) || !(n >= 0.01 && n <= 1000))
        return false;
    *percent = (int)(n * 100 + 0.5);
    return true;
}

void replay_seek(struct replay *r, int64_t now, int64_t to)
{
    to = to < 0 ? 0 : r->ready && to > r->length ? r->length : to;
    if (to < r->last) {
        from_the_begin(r);
        r->rewound = true;
    }
    r->at = to;
    r->since = now;
    if (r->speed == REPLAY_MAX)
        r->paused = true; /* else it would be at its end at once */
}

void replay_skip(struct replay *r, int64_t now, int64_t by)
{
    int64_t at = replay_at(r, now), to = at + by;
    int64_t before = r->last < at ? r->last : r->before;

    if (by > 0 && r->has_next && r->next_ms > to)
        to = r->next_ms;
    if (by < 0 && before >= 0 && before < to)
        to = before;
    replay_seek(r, now, to);
}

int64_t replay_wait(const struct replay *r, int64_t now)
{
    int64_t at = replay_at(r, now);

    if (!r->ready || r->rewound || (r->has_next ? r->next_ms <= at : !replay_is_over(r)))
        return 0;
    if (!r->has_next || r->paused)
        return -1;
    return (r->next_ms - at) * 100 / (r->speed ? r->speed : 100) + 1;
}

/* The next event, as far as a few pieces hold one; a file that has changed since it was looked
 * through may have more of them, which are at its end. */
static const struct agent_event *look_ahead(struct replay *r, int *reads)
{
    struct err why = {0};
    const struct agent_event *ev;

    while (!(ev = recording_event(r->rec)) && !recording_is_over(r->rec) && (*reads)-- > 0)
        recording_read(r->rec, &why);
    if (why.code)
        err_set(&r->trouble, why.code, "%s: the replay ends there", why.text);
    if (ev && !r->has_next) {
        int64_t ms = time_of_next(r, ev);

        r->next_ms = ms > r->length ? r->length : ms;
        r->has_next = true;
    }
    return ev;
}

static size_t text_bytes(const struct agent_event *ev)
{
    const char *const v[] = {ev->text, ev->input, ev->output};
    size_t n = 0;

    for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++)
        n += v[i] ? strlen(v[i]) : 0;
    return n;
}

void replay_due(struct replay *r, int64_t now,
                void (*fn)(void *ctx, const struct agent_event *ev, int64_t at), void *ctx)
{
    int64_t at = replay_at(r, now);
    const struct agent_event *ev;
    size_t bytes = 0;
    int reads = READ_MOST, given = 0;

    if (!r->ready)
        return;
    r->rewound = false;
    while ((ev = look_ahead(r, &reads)) && r->next_ms <= at && given < FEED_MOST &&
           bytes < FEED_BYTES) {
        given++;
        bytes += text_bytes(ev);
        fn(ctx, ev, r->next_ms);
        if (r->next_ms > r->last) {
            r->before = r->last;
            r->last = r->next_ms;
        }
        r->next++;
        r->has_next = false;
        recording_drop(r->rec);
    }
}

/* --- feeding ----------------------------------------------------------------------- */

static void feed_row(struct replay *r, struct app *a, char *take_last_line)
{
    struct ev_sandboxes *ev = ev_new(EV_SANDBOXES);
    struct sandbox *s = ev->v = xcalloc(1, sizeof(*ev->v));

    ev->n = 1;
    s->id = REPLAY_ROW;
    s->name = xasprintf("replay of %s", r->name);
    s->session = xstrdup("replay");
    s->tool = xstrdup(replay_tool(r));
    s->state = SB_RUNNING;
    s->agent = r->agent;
    s->last_line = take_last_line;
    s->cost_usd = s->usd_per_s = (double)NAN;
    app_feed(a, &ev->m);
    r->shown = true;
}

struct feeding {
    struct replay *r;
    struct ev_items *items;
    char *last;
    bool changed;
};

static void feed_event(void *ctx, const struct agent_event *ev, int64_t at)
{
    struct feeding *f = ctx;
    char *line = transcribe_last_line(ev);

    (void)at;
    transcribe(ev, replay_tool(f->r), f->items);
    f->changed |= transcribe_agent_state(ev, &f->r->agent);
    if (line) {
        free(f->last);
        f->last = line;
    }
}

void replay_feed(struct replay *r, int64_t now, struct app *a)
{
    struct feeding f = {r, ev_new(EV_ITEMS), NULL, !r->shown || r->rewound};

    f.items->sandbox = REPLAY_ROW;
    f.items->reset = r->rewound;
    if (r->rewound)
        r->agent = AG_UNKNOWN;
    replay_due(r, now, feed_event, &f);
    if (f.changed)
        feed_row(r, a, f.last);
    else
        free(f.last);
    app_feed(a, &f.items->m);
}
