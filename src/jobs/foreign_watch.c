/* The live output of a process for somebody who looks on: as items in the place of a
 * transcript, or as the bytes themselves. Nothing of it is kept. Reading never stops: when
 * the reader is behind, bytes are dropped and that is told. */
#include "foreign_priv.h"

#include <cct/agent.h>
#include <cct/model/transcribe.h>
#include <cct/text/clean.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { FRAME_MS = 33, PART_MS = 300, BATCH_ITEMS = 1000,
       FIRST_BYTE = 1,         /* a notice may stand in front of it */
       NOTICE_INDEX = 1 << 25 /* behind all that one line can make */ };

struct livewatch {
    struct foreign *f;
    struct procwatch *w;
    int pid;
    uint64_t ident, req_id;
    bool chunks;
    enum watch_state state;
    char *text;
    struct agent_dec *dec;
    struct lanes lanes;
    struct ev_items *items;
    uint64_t timer, part_timer;
    uint32_t notices;
    uint64_t dropped;
    int64_t dropped_from, posted_at;
};

/* --- items ----------------------------------------------------------------------- */

static struct jobs *jobs_of(const struct livewatch *w)
{
    return w->f->j;
}

static void post_items(void *ctx)
{
    struct livewatch *w = ctx;
    size_t bytes = 0;

    net_timer_cancel(jobs_of(w)->o.net, w->timer);
    w->timer = 0;
    if (!w->items)
        return;
    for (size_t i = 0; i < w->items->n; i++)
        bytes += sizeof(struct item) + w->items->v[i].text_len;
    w->items->m.bytes = (uint32_t)(bytes < UINT32_MAX ? bytes : UINT32_MAX);
    w->items->sandbox = w->f->row;
    jobs_post(jobs_of(w), w->items);
    w->items = NULL;
    w->posted_at = clock_mono_ms();
}

static struct ev_items *batch(struct livewatch *w)
{
    if (!w->items)
        w->items = ev_new(EV_ITEMS);
    return w->items;
}

static void post_soon(struct livewatch *w)
{
    int64_t since = clock_mono_ms() - w->posted_at;

    if (w->items->n >= BATCH_ITEMS)
        post_items(w);
    else if (!w->timer)
        w->timer = net_timer(jobs_of(w)->o.net, since >= FRAME_MS ? 0 : FRAME_MS - since,
                             post_items, w);
}

static void put(struct livewatch *w, struct item *it, const char *text, size_t len)
{
    struct buf b = BUF_INIT;
    struct text_runs runs = {NULL, 0, 0};

    clean_text(text, len, &b, &runs);
    it->exit_code = -1;
    it->text = buf_detach(&b, &it->text_len);
    it->runs = runs.v;
    it->n_runs = runs.n;
    *ev_items_add(batch(w), ITEM_PUT) = *it;
    post_soon(w);
}

static void notice(struct livewatch *w, int level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void notice(struct livewatch *w, int level, const char *fmt, ...)
{
    struct item it = {.kind = ITEM_NOTICE, .state = level, .time_ms = clock_wall_ms()};
    struct buf b = BUF_INIT;
    va_list ap;

    va_start(ap, fmt);
    buf_addv(&b, fmt, ap);
    va_end(ap);
    it.offset = agent_dec_offset(w->dec) - 1;
    it.index = NOTICE_INDEX + w->notices++;
    put(w, &it, buf_str(&b), b.len);
    buf_release(&b);
}

static void on_event(void *ctx, const struct agent_event *ev)
{
    struct livewatch *w = ctx;
    struct ev_items *items = batch(w);

    if (ev->kind != AGENT_EXIT) /* the end is told in our own words */
        transcribe(ev, "process", items);
    if (items->n)
        post_soon(w);
}

static void on_line(void *ctx, const char *data, size_t len)
{
    agent_dec_feed(((struct livewatch *)ctx)->dec, data, len);
}

/* A prompt has no line end: after a moment it is shown as it stands; the whole line comes
 * to the same place. */
static void show_part(void *ctx)
{
    struct livewatch *w = ctx;
    const struct buf *part = lanes_part(&w->lanes);
    struct item it = {.kind = ITEM_RAW, .offset = agent_dec_offset(w->dec)};

    w->part_timer = 0;
    if (part && !memmem(part->p, part->len, "\033]133", 5))
        put(w, &it, part->p, part->len);
}

static void take_items(struct livewatch *w, enum envd_stream s, const char *data, size_t len)
{
    lanes_add(&w->lanes, s, data, len, on_line, w);
    net_timer_cancel(jobs_of(w)->o.net, w->part_timer);
    w->part_timer = lanes_part(&w->lanes)
                        ? net_timer(jobs_of(w)->o.net, PART_MS, show_part, w)
                        : 0;
}

/* --- bytes ----------------------------------------------------------------------- */

/* A remark among the bytes. */
static void say(struct livewatch *w, int level, struct buf *text)
{
    char *line;

    if (w->chunks) { /* to a terminal, as a rule */
        line = clean_line_dup(buf_str(text), 0);
        jobs_chunk(jobs_of(w), w->req_id, CHUNK_NOTE, line, strlen(line));
    } else {
        notice(w, level, "%s", buf_str(text));
    }
    buf_release(text);
}

static void tell_dropped(struct livewatch *w)
{
    struct buf b = BUF_INIT;

    if (!w->dropped)
        return;
    procwatch_gap(&b, w->dropped_from, clock_wall_ms());
    buf_addf(&b, ": %llu bytes came faster than they were read",
             (unsigned long long)w->dropped);
    w->dropped = 0;
    say(w, 1, &b);
}

static void on_data(void *ctx, enum envd_stream s, const char *data, size_t len)
{
    struct livewatch *w = ctx;
    char *copy;

    if (mq_full(jobs_of(w)->o.events)) {
        if (!w->dropped) {
            w->dropped_from = clock_wall_ms();
            if (!w->chunks)
                lanes_flush(&w->lanes, on_line, w);
        }
        w->dropped += len;
        return;
    }
    tell_dropped(w);
    if (!w->chunks) {
        take_items(w, s, data, len);
        return;
    }
    copy = xmalloc(len + 1);
    memcpy(copy, data, len);
    jobs_chunk(jobs_of(w), w->req_id, (int)s, copy, len);
}

/* --- how it goes ----------------------------------------------------------------- */

static void set_state(struct livewatch *w, enum watch_state st, const char *text)
{
    w->state = st;
    core_row_set(&w->text, text);
    foreign_post(w->f);
}

static void on_live(void *ctx, const struct proc *p, int64_t lost_at)
{
    struct livewatch *w = ctx;
    char now[16];
    struct buf b = BUF_INIT;

    w->ident = p->ident;
    clock_format_hms(now, sizeof(now), clock_wall_ms());
    if (lost_at)
        procwatch_gap(&b, lost_at, clock_wall_ms());
    else
        buf_addf(&b, "live output of process %d from %s on, nothing from before and nothing is "
                     "kept: %s", w->pid, now, p->command);
    if (lost_at || !w->chunks)
        say(w, lost_at ? 1 : 0, &b);
    buf_release(&b);
    set_state(w, WATCH_LIVE, NULL);
}

static void on_lost(void *ctx, const struct err *e, bool paused)
{
    struct livewatch *w = ctx;
    struct buf b = BUF_INIT;

    if (!w->chunks)
        lanes_flush(&w->lanes, on_line, w);
    buf_addf(&b, paused ? "%s" : "connection to the process lost, trying again: %s", e->text);
    if (w->chunks)
        say(w, 1, &b);
    buf_release(&b);
    set_state(w, paused ? WATCH_PAUSED : WATCH_LOST, e->text);
}

static char *end_words(const struct proc_end *end)
{
    if (end->sig)
        return xasprintf("ended by signal %d (%s)", end->sig, end->status);
    if (end->known && end->exit_code >= 0)
        return xasprintf("ended with exit status %d", end->exit_code);
    if (end->known)
        return xasprintf("ended: %s", end->status ? end->status : "by a signal");
    return xasprintf("ended unseen, its exit status is not known%s%s", *end->err.text ? ": " : "",
                     end->err.text);
}

static void finish_request(struct livewatch *w, const struct proc_end *end, const char *words)
{
    struct ev_done *d = ev_new(EV_DONE);

    d->m.req_id = w->req_id;
    d->sandbox = w->f->row;
    d->exit_code = end->sig ? 128 + end->sig : end->known ? end->exit_code : -1;
    if (end->err.code)
        d->err = end->err;
    else if (!end->known)
        err_set(&d->err, ERR_CONFLICT, "process %d %s", w->pid, words);
    jobs_post(jobs_of(w), d);
    w->req_id = 0;
}

static void on_end(void *ctx, const struct proc_end *end)
{
    struct livewatch *w = ctx;
    bool refused = end->err.code && w->state == WATCH_OPENING;
    char *words = refused ? xasprintf("is not watched: %s", end->err.text) : end_words(end);

    procwatch_free(w->w);
    w->w = NULL;
    tell_dropped(w);
    if (!w->chunks) {
        lanes_flush(&w->lanes, on_line, w);
        notice(w, end->known && end->exit_code == 0 ? 0 : 1, "process %d %s", w->pid, words);
        post_items(w);
    }
    if (w->req_id)
        finish_request(w, end, words);
    set_state(w, WATCH_ENDED, words);
    foreign_list_soon(jobs_of(w), w->f->row);
    free(words);
}

/* --- life ------------------------------------------------------------------------ */

static void reset_items(struct livewatch *w)
{
    struct ev_items *ev = ev_new(EV_ITEMS);

    ev->sandbox = w->f->row;
    ev->reset = true;
    jobs_post(jobs_of(w), ev);
}

void livewatch_start(struct foreign *f, uint64_t req_id, int pid, uint64_t ident, bool chunks)
{
    struct procwatch_cb cb = {.on_live = on_live, .on_data = on_data, .on_lost = on_lost,
                              .on_end = on_end};
    struct livewatch *w = xcalloc(1, sizeof(*w));

    livewatch_free(f->watch);
    f->watch = w;
    *w = (struct livewatch){.f = f, .pid = pid, .ident = ident, .chunks = chunks,
                        .req_id = chunks ? req_id : 0, .state = WATCH_OPENING};
    w->dec = agent_dec_new(agent_adapter_find("shell"), FIRST_BYTE, on_event, w);
    cb.ctx = w;
    w->w = procwatch_new(f->j, f->row, pid, ident, &cb);
    if (!chunks)
        reset_items(w);
    foreign_post(f);
    if (!chunks)
        jobs_done(f->j, req_id, NULL, f->row);
}

void livewatch_free(struct livewatch *w)
{
    struct net *n;

    if (!w)
        return;
    n = jobs_of(w)->o.net;
    procwatch_free(w->w);
    net_timer_cancel(n, w->timer);
    net_timer_cancel(n, w->part_timer);
    if (w->items)
        msg_free(&w->items->m);
    if (w->req_id)
        core_done_err(jobs_of(w), w->req_id, w->f->row, ERR_CANCELLED, "it is not watched any more");
    agent_dec_free(w->dec);
    lanes_release(&w->lanes);
    free(w->text);
    free(w);
}

void livewatch_fill(const struct livewatch *w, struct procs *p)
{
    if (!w)
        return;
    p->watched = w->pid;
    p->watched_ident = w->ident;
    p->watch = w->state;
    p->watch_text = xstrdup(w->text);
}
