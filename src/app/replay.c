/* Recorded runs: events with their times, a position that moves, and what it has passed. */
#include <cct/app/replay.h>

#include "reader.h"

#include <cct/app.h>
#include <cct/model/transcribe.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* At most so much is handed out before it is somebody else's turn. */
enum { FEED_MOST = 2000, FEED_BYTES = 4 << 20, SPEED_LEAST = 25, SPEED_MOST = 6400 };

/* Entries on their way to an application. */
struct feeding {
    struct ev_items *items; /* NULL: none are */
    char *last;             /* line of the row */
    size_t bytes;           /* of their events */
    bool changed;           /* what the agent does */
};
struct replay {
    char *name, *tool;
    struct reader *reader;
    bool ready;
    struct survey survey;
    struct survey_pos pos;
    int64_t next_ms;        /* time of the next event */
    bool has_next;
    int64_t last, before;   /* times handed out: the last one, the last that was less; or -1 */
    int64_t at, since;      /* position, and the steady time when it was there */
    int speed;
    bool paused, rewound;
    bool shown;             /* its row was made */
    bool refills;           /* what was shown stands until enough is there to take its place */
    struct feeding feed;
    struct err trouble;     /* not told yet */
    enum sb_agent agent;
};

static struct replay *with(const char *name, const char *tool, struct reader *reader)
{
    struct replay *r = xcalloc(1, sizeof(*r));

    r->name = xstrdup(name);
    r->tool = xstrdup(tool);
    r->reader = reader;
    r->last = r->before = -1;
    r->speed = 100;
    r->paused = true;
    r->agent = AG_UNKNOWN;
    return r;
}

struct replay *replay_new(const char *name, const char *tool, int take_fd,
                          const struct agent_adapter *a)
{
    return with(name, tool, reader_new(NULL, take_fd, a));
}

struct replay *replay_open(const char *path, const char *tool, const struct agent_adapter *a)
{
    const char *slash = strrchr(path, '/');

    return with(slash ? slash + 1 : path, tool, reader_new(path, -1, a));
}

static void drop_feed(struct feeding *f)
{
    if (f->items)
        msg_free(&f->items->m);
    free(f->last);
    *f = (struct feeding){0};
}

void replay_free(struct replay *r)
{
    if (!r)
        return;
    reader_free(r->reader);
    drop_feed(&r->feed);
    survey_release(&r->survey);
    free(r->name);
    free(r->tool);
    free(r);
}

static void from_the_begin(struct replay *r)
{
    reader_rewind(r->reader);
    r->pos = (struct survey_pos){0};
    r->has_next = false;
    r->last = r->before = -1;
}

/* --- the look through it ------------------------------------------------------------ */

/* Why there is no event in it. */
static int nothing_in_it(const struct reader_found *f, const char *name, struct err *e)
{
    if (f->unopened)
        return err_set(e, f->err.code, "%s", f->err.text);
    if (f->err.code == ERR_IO)
        err_set(e, ERR_IO, "%s", f->err.text);
    else if (f->left.lines || f->left.cut)
        err_set(e, ERR_INVALID, "it holds no events of cc-tui; for an agent's own stream say "
                "whose, by --tool");
    else
        err_set(e, ERR_NOTFOUND, "nothing is kept in it");
    return err_wrap(e, "'%.200s' cannot be played", name);
}

static void note_left(struct replay *r, const struct reader_found *f)
{
    const struct recording_left *left = &f->left;
    const char *and = left->cut ? ", and a cut end" : "";
    struct err *e = &r->trouble;

    if (f->err.code) /* what is at its end does not count beside it */
        err_set(e, ERR_IO, "%s: what stands before it is played", f->err.text);
    else if (left->lines > 1)
        err_set(e, ERR_INVALID, "left out: %zu lines that are no events, line %zu first%s",
                left->lines, left->first, and);
    else if (left->lines)
        err_set(e, ERR_INVALID, "left out: line %zu, which is no event%s", left->first, and);
    else if (left->cut)
        err_set(e, ERR_INVALID, "its last line was not written to its end: it is left out");
}

int replay_look(struct replay *r, struct err *e)
{
    struct reader_found f;

    if (r->ready)
        return 0;
    if (!reader_take_found(r->reader, &f))
        return 1;
    r->survey = f.survey;
    from_the_begin(r);
    r->ready = true;
    r->at = r->at > r->survey.length ? r->survey.length : r->at;
    if (!r->survey.count)
        return nothing_in_it(&f, r->name, e);
    note_left(r, &f);
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
    return reader_percent(r->reader);
}

bool replay_is_ready(const struct replay *r)
{
    return r->ready;
}

int replay_fd(const struct replay *r)
{
    bool waits = !r->ready || (!r->has_next && !reader_is_over(r->reader));

    return waits ? reader_fd(r->reader) : -1;
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
    return (size_t)r->survey.count;
}

int64_t replay_length(const struct replay *r)
{
    return r->survey.length;
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
    return r->ready && !r->has_next && reader_is_over(r->reader);
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
    to = to < 0 ? 0 : r->ready && to > r->survey.length ? r->survey.length : to;
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

    if (!r->has_next)
        return (r->refills || r->rewound) && replay_is_over(r) ? 0 : -1;
    if (r->refills || r->next_ms <= at)
        return 0;
    if (r->paused)
        return -1;
    return (r->next_ms - at) * 100 / (r->speed ? r->speed : 100) + 1;
}

/* The next event, if it has come. */
static const struct agent_event *look_ahead(struct replay *r)
{
    const struct agent_event *ev = reader_event(r->reader);
    struct err why = {0};

    if (reader_trouble(r->reader, &why))
        err_set(&r->trouble, why.code, "%s: the replay ends there", why.text);
    if (ev && !r->has_next) {
        r->next_ms = survey_time(&r->survey, &r->pos, ev);
        r->has_next = true;
    }
    return ev;
}

void replay_due(struct replay *r, int64_t now,
                void (*fn)(void *ctx, const struct agent_event *ev, int64_t at), void *ctx)
{
    int64_t at = replay_at(r, now);
    const struct agent_event *ev;
    size_t bytes = 0;
    int given = 0;

    if (!r->ready)
        return;
    r->rewound = false;
    while ((ev = look_ahead(r)) && r->next_ms <= at && given < FEED_MOST && bytes < FEED_BYTES) {
        given++;
        bytes += recording_event_bytes(ev);
        fn(ctx, ev, r->next_ms);
        if (r->next_ms > r->last) {
            r->before = r->last;
            r->last = r->next_ms;
        }
        r->has_next = false;
        reader_drop(r->reader);
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

static void feed_event(void *ctx, const struct agent_event *ev, int64_t at)
{
    struct replay *r = ctx;
    struct feeding *f = &r->feed;
    char *line = transcribe_last_line(ev);

    (void)at;
    transcribe(ev, replay_tool(r), f->items);
    f->bytes += recording_event_bytes(ev);
    f->changed |= transcribe_agent_state(ev, &r->agent);
    if (line) {
        free(f->last);
        f->last = line;
    }
}

static void begin_feed(struct replay *r)
{
    struct feeding *f = &r->feed;

    if (r->rewound) {
        drop_feed(f);
        r->refills = true;
        r->agent = AG_UNKNOWN;
    }
    if (f->items)
        return;
    f->items = ev_new(EV_ITEMS);
    f->items->sandbox = REPLAY_ROW;
    f->items->reset = r->refills;
    f->changed = !r->shown || r->refills;
}

void replay_feed(struct replay *r, int64_t now, struct app *a)
{
    struct feeding *f = &r->feed;

    begin_feed(r);
    replay_due(r, now, feed_event, r);
    if (r->refills && !r->has_next && !replay_is_over(r) && f->bytes < FEED_BYTES)
        return; /* the rest of what is due is on its way: no empty picture before it */
    r->refills = false;
    if (f->changed) {
        feed_row(r, a, f->last);
        f->last = NULL;
    }
    if (f->items->n || f->items->reset) {
        app_feed(a, &f->items->m);
        f->items = NULL;
    }
    drop_feed(f);
}
