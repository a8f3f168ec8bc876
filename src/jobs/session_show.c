/* The transcript for the screen: what is stored, then what comes. The load waits until
 * everything decoded before is durable; what arrives meanwhile is held back and cleared
 * of what the load has brought, so no event is shown twice or left out. */
#include "session_out.h"
#include "session_priv.h"
#include "session_show.h"

#include <cct/model/pair.h>
#include <cct/model/transcribe.h>
#include <cct/text/clean.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

#define LOAD_EVENTS 100 /* some screens of them; older ones come as they are wanted */
#define OLDER_EVENTS 1000
#define LIST_MESSAGES 50
#define SAID 16

static char is_shown, is_delivered; /* marks in sh.keys */

/* --- notices ---------------------------------------------------------------------- */

static void forget_said(struct session *s)
{
    for (size_t i = 0; i < s->sh.said.n; i++)
        item_release(&s->sh.said.v[i]);
    ARR_CLEAR(&s->sh.said);
}

/* A notice stands alone: of an item it has these. */
static struct item notice_again(const struct item *it)
{
    struct item copy = {.kind = it->kind, .offset = it->offset, .index = it->index,
                        .time_ms = it->time_ms, .state = it->state, .exit_code = it->exit_code};

    copy.text = xstrdup(it->text);
    copy.text_len = it->text_len;
    return copy;
}

void session_show_said(struct session *s, const struct item *it)
{
    if (s->sh.said_run != s->out.run.id)
        forget_said(s);
    s->sh.said_run = s->out.run.id;
    if (s->sh.said.n == SAID) {
        item_release(&s->sh.said.v[0]);
        ARR_REMOVE(&s->sh.said, 0);
    }
    *ARR_PUSH(&s->sh.said) = notice_again(it);
}

/* The transcript puts each behind what had come when it was said. */
static void add_said(struct session *s, struct ev_items *ev)
{
    if (s->sh.said_run != s->out.run.id)
        return;
    for (size_t i = 0; i < s->sh.said.n; i++) {
        const struct item *it = &s->sh.said.v[i];

        if (!ev->n || !ev->more_before || it->offset >= ev->v[0].offset)
            *ev_items_add(ev, ITEM_PUT) = notice_again(it);
    }
}

void session_show_release(struct session *s)
{
    map_free(s->sh.keys, NULL);
    s->sh.keys = NULL;
    forget_said(s);
    ARR_RELEASE(&s->sh.said);
}

bool session_show_live(struct session *s, const struct agent_event *ev)
{
    if (!s->sh.on)
        return false;
    if (s->sh.loading)
        return true; /* judged when the load is here */
    return !session_key_reaches(&s->sh.loaded, ev->offset, ev->index);
}

/* --- messages that wait ---------------------------------------------------------- */

static void put_message(struct session *s, const struct message *m)
{
    struct item it = {.kind = ITEM_USER, .exit_code = -1, .state = (int)m->state};
    const void *mark;

    if (!s->sh.on || s->sh.loading)
        return;
    if (!s->sh.keys)
        s->sh.keys = map_new();
    mark = map_get(s->sh.keys, m->key);
    if (m->state == MSG_DELIVERED) {
        /* its echo takes its place; one that another instance sent has no key of ours */
        map_put(s->sh.keys, m->key, &is_delivered);
        if (mark == &is_shown)
            session_show(s, true);
        return;
    }
    if (mark == &is_delivered || (m->state == MSG_CANCELLED && !mark))
        return;
    map_put(s->sh.keys, m->key, &is_shown);
    it.id = xstrdup(m->key);
    it.who = xstrdup(pair_is_key(m->key) ? "pair" : "you");
    it.text = clean_text_dup(m->text, strlen(m->text));
    it.text_len = strlen(it.text);
    it.time_ms = m->created_at;
    session_items_put(s, &it);
}

void session_show_message(struct session *s, const struct message *m)
{
    struct ev_message *ev = ev_new(EV_MESSAGE);

    message_copy(&ev->msg, m);
    jobs_post(s->j, ev);
    put_message(s, m);
}

static void on_messages(void *ctx, struct st_reply *r)
{
    struct session *s = ctx;

    for (size_t i = 0; i < r->n_messages; i++)
        put_message(s, &r->messages[i]);
}

void session_show_messages(struct session *s)
{
    if (s->sh.on && !s->sh.loading)
        store_messages(s->j->o.store, s->row, LIST_MESSAGES,
                       jobs_store(s->j, on_messages, s, s));
}

void session_show_echo(struct session *s, const char *key)
{
    if (!s->sh.keys)
        s->sh.keys = map_new();
    map_put(s->sh.keys, key, &is_delivered);
}

/* --- loading --------------------------------------------------------------------- */

static struct ev_items *items_of(struct session *s, struct st_reply *r)
{
    struct ev_items *ev = ev_new(EV_ITEMS);

    session_put_in_order(r->events, r->n_events);
    ev->sandbox = s->row;
    for (size_t i = 0; i < r->n_events; i++) {
        struct agent_event a;

        if (session_stored_event(&a, &r->events[i]) != 0)
            continue;
        transcribe(&a, session_who(s), ev);
        agent_event_release(&a);
    }
    ev->more_before = r->more_before;
    return ev;
}

/* The begin was asked for while another part was on its way. */
static void then_begin(struct session *s)
{
    if (s->sh.begin)
        session_load_newer(s, 0, 0, true);
}

static void on_loaded(void *ctx, struct st_reply *r)
{
    struct session *s = ctx;
    struct ev_items *ev;

    if (!s->sh.on || !s->sh.loading)
        return;
    s->sh.loading = false;
    memset(&s->sh.loaded, 0, sizeof(s->sh.loaded));
    if (s->sh.keys)
        map_free(s->sh.keys, NULL);
    s->sh.keys = NULL;
    if (r->err.code)
        session_say(s, AGENT_ERROR, "stored output cannot be read: %s", r->err.text);
    ev = items_of(s, r);
    add_said(s, ev);
    ev->reset = true;
    if (r->n_events) {
        const struct st_event *last = &r->events[r->n_events - 1];

        s->sh.loaded = (struct session_key){last->offset, last->index, true};
    }
    jobs_post(s->j, ev);
    session_items_loaded(s);
    session_show_messages(s);
    then_begin(s);
}

static void load(struct session *s)
{
    s->sh.barrier = 0;
    store_events(s->j->o.store, s->out.run.id, INT64_MAX, UINT32_MAX, true, LOAD_EVENTS,
                 jobs_store(s->j, on_loaded, s, &s->sh));
}

/* Nothing was opened yet (or can be): what did the last run leave? */
static void on_newest(void *ctx, struct st_reply *r)
{
    struct session *s = ctx;

    if (!s->out.run.id && !r->err.code)
        s->out.run = r->run;
    load(s);
}

static void tell_unshown(struct session *s)
{
    struct ev_items *ev = ev_new(EV_ITEMS);

    ev->sandbox = s->row;
    ev->unshown = true;
    jobs_post(s->j, ev);
}

void session_show(struct session *s, bool on)
{
    bool was = s->sh.on;

    s->sh.on = on;
    jobs_store_forget(s->j, &s->sh); /* an earlier load would be too early */
    s->sh.begin = on && (s->sh.begin || (s->sh.busy && s->sh.whole));
    s->sh.busy = false;
    session_items_drop(s);
    s->sh.barrier = 0;
    s->sh.loading = on;
    if (!on) {
        if (was)
            tell_unshown(s);
        return;
    }
    session_keep_flush(s);
    if (!s->out.run.id)
        store_run_open(s->j->o.store, s->row, s->name, -1,
                       jobs_store(s->j, on_newest, s, &s->sh));
    else if (s->out.n_acked != s->out.n_sent)
        s->sh.barrier = s->out.n_sent;
    else
        load(s);
    session_follow(s);
}

void session_show_acked(struct session *s)
{
    if (s->sh.loading && s->sh.barrier && (int)(s->out.n_acked - s->sh.barrier) >= 0)
        load(s);
    session_logs_go(s);
}

/* --- elsewhere ---------------------------------------------------------------------- */

static void on_older(void *ctx, struct st_reply *r)
{
    struct session *s = ctx;
    struct ev_items *ev;

    s->sh.busy = false;
    if (!s->sh.on || s->sh.loading)
        return;
    if (r->err.code) /* who waits for them is told of their end, too */
        session_say(s, AGENT_ERROR, "older output cannot be read: %s", r->err.text);
    ev = items_of(s, r);
    ev->more_before |= r->err.code != 0;
    ev->prepend = ev->placed = true;
    ev->at_offset = s->sh.at_offset;
    ev->at_index = s->sh.at_index;
    jobs_post(s->j, ev);
    then_begin(s);
}

static void on_newer(void *ctx, struct st_reply *r)
{
    struct session *s = ctx;
    struct ev_items *ev;

    s->sh.busy = false;
    if (!s->sh.on || s->sh.loading)
        return;
    if (r->err.code) {
        session_say(s, AGENT_ERROR, "newer output cannot be read: %s", r->err.text);
    } else if (r->n_events <= LOAD_EVENTS / 2) { /* all of them are among those that are loaded */
        session_show(s, true);                   /* then, and what comes live goes on from there */
        return;
    }
    ev = items_of(s, r);
    ev->reset = s->sh.whole && !r->err.code;
    ev->newer = ev->placed = !ev->reset;
    ev->more_after = true;
    ev->at_offset = s->sh.at_offset;
    ev->at_index = s->sh.at_index;
    jobs_post(s->j, ev);
    then_begin(s);
}

static bool elsewhere(struct session *s, uint64_t offset, uint32_t index)
{
    struct show *h = &s->sh;

    if (!h->on || h->loading || h->busy)
        return false;
    h->busy = true;
    h->at_offset = offset;
    h->at_index = index;
    session_keep_flush(s); /* it may be among what was left out on the screen */
    return true;
}

void session_load_older(struct session *s, uint64_t offset, uint32_t index)
{
    if (!elsewhere(s, offset, index))
        return;
    s->sh.whole = false;
    store_events(s->j->o.store, s->out.run.id, offset, index, true, OLDER_EVENTS,
                 jobs_store(s->j, on_older, s, &s->sh));
}

void session_load_newer(struct session *s, uint64_t offset, uint32_t index, bool whole)
{
    if (!elsewhere(s, offset, index)) {
        s->sh.begin |= whole && s->sh.on;
        return;
    }
    s->sh.begin = false;
    s->sh.whole = whole;
    store_events(s->j->o.store, s->out.run.id, offset, whole ? index : index + 1, false,
                 OLDER_EVENTS, jobs_store(s->j, on_newer, s, &s->sh));
}
