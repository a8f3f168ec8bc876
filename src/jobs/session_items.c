/* What goes to the screen of a session, in batches: one for each picture that is drawn, at
 * once after a pause. What comes while the transcript is loaded waits, and is judged then. */
#include "session_out.h"
#include "session_priv.h"
#include "session_show.h"

#include <cct/model/transcribe.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <string.h>

#define FRAME_MS 33
#define BATCH_ITEMS 1000 /* a message with so many does not wait */

static struct ev_items *batch(struct session *s)
{
    if (!s->out.items)
        s->out.items = ev_new(EV_ITEMS);
    return s->out.items;
}

static void settle_lines(struct session *s)
{
    if (s->out.lines.n)
        session_lines_settle(s, batch(s));
}

static void post_items(void *ctx)
{
    struct session *s = ctx;
    struct out *o = &s->out;
    size_t bytes = 0;

    session_cancel_timer(s, &o->items_timer);
    if (s->sh.loading)
        return;
    settle_lines(s);
    if (!o->items)
        return;
    for (size_t i = 0; i < o->items->n; i++)
        bytes += sizeof(struct item) + o->items->v[i].text_len;
    o->items->m.bytes = (uint32_t)(bytes < UINT32_MAX ? bytes : UINT32_MAX);
    o->items->sandbox = s->row;
    jobs_post(s->j, o->items);
    o->items = NULL;
    o->items_at = clock_mono_ms();
}

void session_items_drop(struct session *s)
{
    session_cancel_timer(s, &s->out.items_timer);
    session_lines_drop(s);
    if (s->out.items)
        msg_free(&s->out.items->m);
    s->out.items = NULL;
}

/* Of what was held back during the load, keep what it has not brought. */
void session_items_loaded(struct session *s)
{
    const struct session_key *k = &s->sh.loaded;
    struct ev_items *b;
    size_t n = 0;

    settle_lines(s);
    b = s->out.items;
    for (size_t i = 0; b && i < b->n; i++) {
        struct item *it = &b->v[i];
        bool local =
            it->index >= SESSION_SAY_INDEX || (!it->offset && !it->index && it->kind == ITEM_USER);

        if (!local && session_key_reaches(k, it->offset, it->index)) {
            item_release(it);
            continue;
        }
        b->v[n] = *it;
        b->op[n++] = b->op[i];
    }
    if (b)
        b->n = n;
    post_items(s);
}

static void post_soon(struct session *s)
{
    if (s->out.items->n >= BATCH_ITEMS && !s->sh.loading)
        post_items(s);
    else
        session_items_soon(s);
}

void session_items_soon(struct session *s)
{
    int64_t since = clock_mono_ms() - s->out.items_at;

    if (since >= FRAME_MS)
        session_timer(s, &s->out.items_timer, 0, post_items);
    else if (!s->out.items_timer)
        session_timer(s, &s->out.items_timer, FRAME_MS - since, post_items);
}

void session_items_put(struct session *s, struct item *it)
{
    if (!s->sh.on) {
        item_release(it);
        return;
    }
    settle_lines(s);
    *ev_items_add(batch(s), ITEM_PUT) = *it;
    memset(it, 0, sizeof(*it));
    post_soon(s);
}

void session_items_event(struct session *s, const struct agent_event *ev, const char *key)
{
    struct ev_items *b;
    size_t n;

    if (!session_show_live(s, ev))
        return;
    settle_lines(s);
    b = batch(s);
    n = b->n;
    transcribe(ev, session_who(s), b);
    /* the echo takes the place of the message that waited under this id */
    if (key && b->n > n && b->v[n].kind == ITEM_USER) {
        str_set(&b->v[n].id, key);
        session_show_echo(s, key);
    }
    if (b->n > n)
        post_soon(s);
}
