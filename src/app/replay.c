/* Recorded runs: events with their times, a position that moves, and what it has passed. */
#include <cct/app/replay.h>

#include <cct/agent.h>
#include <cct/app.h>
#include <cct/model/transcribe.h>
#include <cct/util/arr.h>
#include <cct/util/buf.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE_MS = 60, EVENT_MS = 400, FEED_MOST = 2000, SPEED_LEAST = 25, SPEED_MOST = 6400 };

struct place {
    size_t at, len; /* of its JSON */
    int64_t ms;     /* since the begin; before replay_ready() the agent's own time, 0 = not said */
    bool piece;     /* of something that goes on: it comes soon after the one before */
};
struct replay {
    char *name, *tool;
    struct buf json;
    ARR(struct place) v;
    uint64_t base, end; /* offsets of the run that is being taken; behind all of it */
    size_t next;        /* event */
    int64_t at, since;  /* position, and the steady time when it was there */
    int speed;
    bool paused, rewound;
    bool shown;         /* its row was made */
    enum sb_agent agent;
};

struct replay *replay_new(const char *name, const char *tool)
{
    struct replay *r = xcalloc(1, sizeof(*r));

    r->name = xstrdup(name);
    r->tool = xstrdup(tool);
    r->json = (struct buf)BUF_INIT;
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
    buf_release(&r->json);
    ARR_RELEASE(&r->v);
    free(r);
}

/* --- taking ---------------------------------------------------------------------- */

/* A run that begins anew has small offsets again: its entries are others all the same. */
static void take(struct replay *r, const struct agent_event *ev)
{
    struct agent_event copy = *ev;
    struct place *p = ARR_PUSH(&r->v);

    if (r->base + ev->offset + 1 < r->end && r->v.n > 1 && ev->offset == 0)
        r->base = r->end;
    copy.offset += r->base;
    if (copy.offset + 1 > r->end)
        r->end = copy.offset + 1;
    p->at = r->json.len;
    agent_event_to_json(&copy, &r->json);
    p->len = r->json.len - p->at;
    p->ms = ev->time_ms;
    p->piece = (ev->kind == AGENT_TEXT || ev->kind == AGENT_THINKING) && !ev->final;
}

static void on_event(void *ctx, const struct agent_event *ev)
{
    take(ctx, ev);
}

void replay_take_stream(struct replay *r, const struct agent_adapter *a, const char *data, size_t len)
{
    struct agent_dec *d = agent_dec_new(a, 0, on_event, r);

    agent_dec_feed(d, data, len);
    if (len && data[len - 1] != '\n') /* the last line is one, too */
        agent_dec_feed(d, "\n", 1);
    agent_dec_free(d);
}

int replay_take_events(struct replay *r, const char *text, size_t len, struct err *e)
{
    size_t number = 0;

    while (len > 0) {
        const char *lf = memchr(text, '\n', len);
        size_t n = lf ? (size_t)(lf - text) : len;
        struct agent_event ev;

        number++;
        if (n && agent_event_from_json(&ev, text, n, NULL) != 0)
            return err_set(e, ERR_INVALID, "line %zu is no event", number);
        if (n) {
            take(r, &ev);
            agent_event_release(&ev);
        }
        n += lf != NULL;
        text += n;
        len -= n;
    }
    return 0;
}

/* Untimed events from `from` up to `to`: evenly over the time that lies between. A file may say
 * any time, so that its product with a number of events need not fit. */
static void spread(struct replay *r, size_t from, size_t to, int64_t begin, int64_t end)
{
    int64_t n = (int64_t)(to - from + 1), step = (end - begin) / n, rest = (end - begin) % n;

    for (size_t i = from; i < to; i++) {
        int64_t k = (int64_t)(i - from + 1);

        r->v.v[i].ms = begin + step * k + rest * k / n;
    }
}

/* A while from one to the next, where no time is known. */
static int64_t pace(struct replay *r, size_t from, size_t to, int64_t begin)
{
    for (size_t i = from; i < to; i++) {
        begin += r->v.v[i].piece ? PIECE_MS : EVENT_MS;
        r->v.v[i].ms = begin;
    }
    return begin;
}

void replay_ready(struct replay *r)
{
    size_t from = 0, first = 0;
    int64_t last = 0, begin = 0;

    while (first < r->v.n && !r->v.v[first].ms)
        first++;
    if (first < r->v.n) { /* those in front of the first time end at it */
        begin = r->v.v[first].ms - (int64_t)first * PIECE_MS;
        for (size_t i = 0; i < first; i++)
            r->v.v[i].ms = (int64_t)i * PIECE_MS;
    } else {
        first = 0;
    }
    for (size_t i = from = first; i < r->v.n; i++) {
        if (!r->v.v[i].ms)
            continue;
        int64_t at = r->v.v[i].ms - begin;
        at = at < last ? last : at;
        spread(r, from, i, last, at);
        r->v.v[i].ms = last = at;
        from = i + 1;
    }
    pace(r, from, r->v.n, last);
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
    return r->v.n;
}

int64_t replay_length(const struct replay *r)
{
    return r->v.n ? r->v.v[r->v.n - 1].ms : 0;
}

/* --- where it is ------------------------------------------------------------------- */

int64_t replay_at(const struct replay *r, int64_t now)
{
    int64_t length = replay_length(r);
    int64_t at = r->paused                ? r->at
                 : r->speed == REPLAY_MAX ? length
                                          : r->at + (now - r->since) * r->speed / 100;

    return at > length ? length : at;
}

static void stand(struct replay *r, int64_t now)
{
    r->at = replay_at(r, now);
    r->since = now;
}

bool replay_is_over(const struct replay *r)
{
    return r->next == r->v.n;
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
    int64_t length = replay_length(r);

    to = to < 0 ? 0 : to > length ? length : to;
    if (r->next > 0 && to < r->v.v[r->next - 1].ms) {
        r->next = 0;
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
    size_t i = r->next;

    if (by > 0 && i < r->v.n && r->v.v[i].ms > to)
        to = r->v.v[i].ms;
    while (by < 0 && i > 0 && r->v.v[i - 1].ms >= at)
        i--;
    if (by < 0 && i > 0 && r->v.v[i - 1].ms < to)
        to = r->v.v[i - 1].ms;
    replay_seek(r, now, to);
}

int64_t replay_wait(const struct replay *r, int64_t now)
{
    int64_t at = replay_at(r, now);

    if (r->rewound || (r->next < r->v.n && r->v.v[r->next].ms <= at))
        return 0;
    if (r->next == r->v.n || r->paused)
        return -1;
    return (r->v.v[r->next].ms - at) * 100 / (r->speed ? r->speed : 100) + 1;
}

static bool next_due(struct replay *r, int64_t at, struct agent_event *ev, int64_t *ms)
{
    while (r->next < r->v.n && r->v.v[r->next].ms <= at) {
        const struct place *p = &r->v.v[r->next++];

        *ms = p->ms;
        if (agent_event_from_json(ev, r->json.p + p->at, p->len, NULL) == 0)
            return true;
    }
    return false;
}

void replay_due(struct replay *r, int64_t now,
                void (*fn)(void *ctx, const struct agent_event *ev, int64_t at), void *ctx)
{
    int64_t at = replay_at(r, now), ms;
    struct agent_event ev;

    r->rewound = false;
    while (next_due(r, at, &ev, &ms)) {
        fn(ctx, &ev, ms);
        agent_event_release(&ev);
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

void replay_feed(struct replay *r, int64_t now, struct app *a)
{
    int64_t at = replay_at(r, now), ms;
    struct ev_items *items = ev_new(EV_ITEMS);
    struct agent_event ev;
    bool changed = !r->shown || r->rewound;
    char *last = NULL;

    items->sandbox = REPLAY_ROW;
    items->reset = r->rewound;
    if (r->rewound)
        r->agent = AG_UNKNOWN;
    r->rewound = false;
    for (int i = 0; i < FEED_MOST && next_due(r, at, &ev, &ms); i++) {
        char *line = transcribe_last_line(&ev);

        transcribe(&ev, replay_tool(r), items);
        changed |= transcribe_agent_state(&ev, &r->agent);
        if (line) {
            free(last);
            last = line;
        }
        agent_event_release(&ev);
    }
    if (changed)
        feed_row(r, a, last);
    else
        free(last);
    app_feed(a, &items->m);
}
