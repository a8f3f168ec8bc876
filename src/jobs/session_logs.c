/* Raw bytes and events for `logs`: always from the store, woken when it has more. */
#include "session_out.h"
#include "session_priv.h"
#include "session_show.h"

#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

#define RAW_PIECE (256u << 10)
#define EVENT_PAGE 500
#define FULL_MS 50
#define EARLY_MS 20

static void go(struct reader *r);
static void on_timer(void *ctx);

static void reader_free(struct reader *r)
{
    jobs_store_forget(r->s->j, r);
    if (r->timer)
        net_timer_cancel(r->s->j->o.net, r->timer);
    free(r);
}

static void drop(struct reader *r)
{
    struct session *s = r->s;

    for (size_t i = 0; i < s->readers.n; i++)
        if (s->readers.v[i] == r) {
            ARR_REMOVE(&s->readers, i);
            break;
        }
    reader_free(r);
}

static void reader_end(struct reader *r, const struct err *e)
{
    jobs_done(r->s->j, r->req_id, e && e->code ? e : NULL, r->s->row);
    drop(r);
}

void session_logs_fail(struct session *s, const struct err *e)
{
    while (s->readers.n)
        reader_end(s->readers.v[s->readers.n - 1], e);
}

void session_logs_release(struct session *s)
{
    for (size_t i = 0; i < s->readers.n; i++)
        reader_free(s->readers.v[i]);
    ARR_RELEASE(&s->readers);
}

/* Everything there is was handed out: is that all? */
static void dry(struct reader *r)
{
    const struct session *s = r->s;
    bool over = s->fo.state == FO_ENDED || s->fo.state == FO_STOPPED || s->fo.missing;
    bool unreachable = s->fo.said_loss; /* what is stored is all that can be had now */
    bool flushed = s->out.n_acked == s->out.n_sent && !s->out.raw.len && !s->out.ev.n;
    struct err e = {0};

    if (s->out.down.code && !r->follow) {
        err_set(&e, ERR_IO, "that is not all: what the agent put out since cannot be kept now: %s",
                s->out.down.text);
        reader_end(r, &e);
        return;
    }

    if (flushed && (over || (!r->follow && (s->out.caught_up || unreachable))))
        reader_end(r, NULL);
}

/* The agent began another log, and the one before was read to its end. */
static void next_log(struct reader *r)
{
    r->run = r->s->out.run.id;
    r->off = 0;
    r->idx = r->before = 0;
    go(r);
}

static void add_event(struct buf *b, const struct st_event *e)
{
    struct agent_event ev;

    if (!e->plain) {
        buf_add(b, e->json, e->len);
    } else {
        session_stored_event(&ev, e);
        agent_event_to_json(&ev, b);
        agent_event_release(&ev);
    }
    buf_addc(b, '\n');
}

/* What the reader handed out last, in front of the i-th event of a page. */
static struct session_key key_before(const struct reader *r, const struct st_event *v, size_t i)
{
    if (i)
        return (struct session_key){v[i - 1].offset, v[i - 1].index, true};
    if (v[i].offset || !r->before)
        return (struct session_key){r->off, r->idx - 1, r->idx > 0};
    return (struct session_key){0, r->before - 1, true};
}

static void on_page(void *ctx, struct st_reply *a)
{
    struct reader *r = ctx;
    struct st_event last = {0};
    struct buf b = BUF_INIT;
    struct session_key before;
    bool early = false;
    size_t len;

    r->busy = false;
    if (a->err.code) {
        reader_end(r, &a->err);
        return;
    }
    if (a->n_events)
        last = a->events[a->n_events - 1];
    session_put_in_order(a->events, a->n_events);
    for (size_t i = 0; i < a->n_events; i++) {
        const struct st_event *e = &a->events[i];

        before = key_before(r, a->events, i);
        early = session_others_early(r->s, e, &before);
        if (early)
            break;
        if (!session_before_output(e->offset, e->index)) {
            r->off = e->offset;
            r->idx = e->index + 1;
        } else if (e->index < r->before) {
            continue; /* they come with each page until there is output behind them */
        } else {
            r->before = e->index + 1;
        }
        add_event(&b, e);
    }
    if (a->n_events == EVENT_PAGE && !early) { /* so many that output can only be behind them */
        r->off = last.offset;
        r->idx = last.index + 1;
    }
    if (a->raw_len) {
        buf_add(&b, a->raw, a->raw_len);
        r->off += a->raw_len;
    }
    if (early)
        r->timer = net_timer(r->s->j->o.net, EARLY_MS, on_timer, r);
    if (b.len) {
        char *text = buf_detach(&b, &len);

        jobs_chunk(r->s->j, r->req_id, 0, text, len);
        go(r);
    } else if (early) {
        buf_release(&b);
    } else if (r->again) {
        go(r);
    } else if (r->run != r->s->out.run.id) {
        next_log(r);
    } else {
        dry(r);
    }
}

static void on_timer(void *ctx)
{
    struct reader *r = ctx;

    r->timer = 0;
    go(r);
}

static void go(struct reader *r)
{
    struct session *s = r->s;

    r->again = r->busy;
    if (r->busy || r->timer)
        return;
    if (mq_full(s->j->o.events)) {
        r->timer = net_timer(s->j->o.net, FULL_MS, on_timer, r);
        return;
    }
    if (!s->out.run.id) {
        dry(r);
        return;
    }
    if (!r->run)
        r->run = s->out.run.id;
    if (r->back)
        r->off = s->out.run.stored > r->back ? s->out.run.stored - r->back : 0;
    r->back = 0;
    r->busy = true;
    if (r->events)
        store_events(s->j->o.store, r->run, r->off, r->idx, false, EVENT_PAGE,
                     jobs_store(s->j, on_page, r, r));
    else
        store_raw(s->j->o.store, r->run, r->off, RAW_PIECE,
                  jobs_store(s->j, on_page, r, r));
}

void session_logs_go(struct session *s)
{
    for (size_t i = s->readers.n; i-- > 0;)
        if (i < s->readers.n)
            go(s->readers.v[i]);
}

static void on_newest(void *ctx, struct st_reply *a)
{
    struct reader *r = ctx;

    r->busy = false;
    if (!r->s->out.run.id && !a->err.code)
        r->s->out.run = a->run;
    go(r);
}

static void begin(struct session *s, uint64_t req_id, bool events, int64_t from, bool follow)
{
    struct reader *r = xcalloc(1, sizeof(*r));

    *r = (struct reader){
        .s = s, .req_id = req_id, .events = events, .follow = follow,
        .off = from > 0 ? (uint64_t)from : 0, .back = from < 0 ? -(uint64_t)from : 0};
    session_follow(s);
    *ARR_PUSH(&s->readers) = r;
    r->busy = !s->out.run.id;
    if (r->busy)
        store_run_open(s->j->o.store, s->row, s->name, -1, jobs_store(s->j, on_newest, r, r));
    else
        go(r);
}

void session_raw(struct session *s, uint64_t req_id, int64_t from, bool follow)
{
    begin(s, req_id, false, from, follow);
}

void session_events(struct session *s, uint64_t req_id, bool follow)
{
    begin(s, req_id, true, 0, follow);
}

void session_logs_end(struct session *s, uint64_t req_id)
{
    for (size_t i = 0; i < s->readers.n; i++)
        if (s->readers.v[i]->req_id == req_id) {
            drop(s->readers.v[i]);
            return;
        }
}
