/* What other instances say to an agent that does not repeat it. Who sends it puts it into the
 * log where its turn begins, a moment after we have read that: readers wait that moment, and the
 * screen is loaded anew. */
#include "session_out.h"
#include "session_priv.h"
#include "session_relay.h"
#include "session_show.h"

#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <string.h>

#define LOOK_MS 100
#define WAIT_MS 400 /* after that nothing comes any more */

static void look(void *ctx);

static bool is_young(const struct others_turn *t)
{
    return t->ms && clock_mono_ms() < t->ms + WAIT_MS;
}

void session_others_began(struct session *s, const struct agent_event *begin)
{
    if (s->ad->mode == AGENT_ONE_RUN && *s->re.id && str_eq(s->fo.p.last.message, s->re.id))
        return; /* our own run: what it was given is in its place since it began */
    s->others.v[s->others.n++ % OTHERS_TURNS] =
        (struct others_turn){session_wait_place(s), begin->offset, begin->index, clock_mono_ms(),
                             false};
    if (s->sh.on && !s->others.timer)
        session_timer(s, &s->others.timer, LOOK_MS, look);
}

static bool is_said_before(uint64_t begin, uint64_t offset, uint32_t index)
{
    return session_out_is_message(index) && offset == (begin ? begin - 1 : 0);
}

bool session_others_early(const struct session *s, const struct st_event *ev,
                          const struct session_key *before)
{
    for (size_t i = 0; i < OTHERS_TURNS; i++) {
        const struct others_turn *t = &s->others.v[i];

        if (ev->offset == t->offset && ev->index <= t->index && is_young(t))
            return !before->any || !is_said_before(t->offset, before->offset, before->index);
    }
    return false;
}

bool session_others_place(const struct session *s, uint64_t from, uint64_t *offset)
{
    const struct others_turn *first = NULL;

    for (size_t i = 0; i < OTHERS_TURNS; i++) {
        const struct others_turn *t = &s->others.v[i];

        if (t->ms && t->at >= from && (!first || t->at < first->at))
            first = t;
    }
    if (first)
        *offset = first->offset;
    return first != NULL;
}

void session_others_forget(struct session *s)
{
    memset(s->others.v, 0, sizeof(s->others.v));
}

/* --- the screen ------------------------------------------------------------------------ */

static struct others_turn *first_unseen(struct session *s)
{
    struct others_turn *first = NULL;

    for (size_t i = 0; i < OTHERS_TURNS; i++) {
        struct others_turn *t = &s->others.v[i];

        if (!t->seen && is_young(t) && (!first || t->ms < first->ms))
            first = t;
    }
    return first;
}

static void on_looked(void *ctx, struct st_reply *r)
{
    struct session *s = ctx;
    struct others_turn *t = first_unseen(s);
    bool said = t && r->n_events &&
                is_said_before(t->offset, r->events[0].offset, r->events[0].index);

    if (!t || !s->sh.on)
        return;
    t->seen = said;
    session_timer(s, &s->others.timer, LOOK_MS, look);
    if (said)
        session_show(s, true);
}

static void look(void *ctx)
{
    struct session *s = ctx;
    const struct others_turn *t = first_unseen(s);

    s->others.timer = 0;
    if (t && s->sh.on)
        store_events(s->j->o.store, s->out.run.id, t->offset ? t->offset - 1 : 0,
                     SESSION_ECHO_INDEX, false, 1, jobs_store(s->j, on_looked, s, s));
}

void session_others_release(struct session *s)
{
    session_cancel_timer(s, &s->others.timer);
}
