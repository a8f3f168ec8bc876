/* Questions of the agent: which are open, and what was answered to them. The decoder opens
 * and ends them, so that what is open is found again by reading the last turn; a question
 * that was answered is open until the agent's own stream ends it. */
#include "session_ask.h"
#include "session_follow.h"
#include "session_priv.h"

#include <cct/text/clean.h>
#include <cct/util/clock.h>
#include <cct/util/limits.h>
#include <cct/util/map.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_MS 3000    /* another instance may have answered; a lost wake line */
#define TELL_MS 33
enum { TELL_MAX = 100 }; /* open ones told at once, and as many answered ones */

static void look(void *ctx);

/* --- the list --------------------------------------------------------------------- */

static size_t text_bytes(const struct session_ask *a)
{
    return (a->input ? strlen(a->input) : 0) + (a->choices ? strlen(a->choices) : 0);
}

static void ask_free(struct session_ask *a)
{
    struct asks *k = &a->s->asks;

    if (a->call)
        envd_cancel(a->s->envd, a->call);
    session_cancel_timer(a->s, &a->timer);
    jobs_store_forget(a->s->j, a);
    k->unanswered -= !a->answered;
    k->bytes -= text_bytes(a);
    if (k->ids && map_get(k->ids, a->id) == a)
        map_del(k->ids, a->id);
    free(a->id);
    free(a->tool);
    free(a->title);
    free(a->input);
    free(a->choices);
    free(a->text);
    question_release(&a->q);
    free(a);
}

/* The label of the choice, or what was typed; new string, NULL when nothing was answered. */
char *session_ask_words(const struct session_ask *a)
{
    char **labels, *words = NULL;

    if (!a->answered)
        return NULL;
    if (a->choice < 0)
        return clean_line_dup(a->text ? a->text : "", 200);
    labels = question_choices(a->choices);
    for (int i = 0; labels && labels[i]; i++)
        if (i == a->choice)
            words = xstrdup(labels[i]);
    str_list_free(labels);
    return words ? words : xasprintf("choice %d", a->choice + 1);
}

static const struct question *in_words(struct session_ask *a)
{
    struct buf scratch = BUF_INIT;

    if (a->q.question)
        return &a->q;
    a->q = (struct question){
        .sandbox = a->s->row,
        .id = clean_line_dup(a->id, 0),
        .question = question_line(a->tool, a->title),
        .detail = question_detail(a->tool, a->title, a->input),
        .choices = question_choices(a->choices),
        .words = session_answer_encode(a, -1, "1", &scratch, NULL) == 0 || !a->choices,
    };
    buf_release(&scratch);
    return &a->q;
}

/* The oldest ones: more than a person looks at cost more than they tell, and they move up
 * as these are answered. */
static void post(void *ctx)
{
    struct session *s = ctx;
    struct ev_asks *ev = ev_new(EV_ASKS);
    size_t left = TELL_MAX, done = TELL_MAX;

    session_cancel_timer(s, &s->asks.tell);
    s->asks.told_at = clock_mono_ms();
    ev->sandbox = s->row;
    ev->v = xcalloc(s->asks.v.n ? s->asks.v.n : 1, sizeof(*ev->v));
    for (size_t i = 0; i < s->asks.v.n && left; i++) {
        struct session_ask *a = s->asks.v.v[i];

        if (a->answered && !done)
            continue;
        --*(a->answered ? &done : &left);
        question_copy(&ev->v[ev->n], in_words(a));
        ev->v[ev->n].since = a->since;
        ev->v[ev->n++].answer = session_ask_words(a);
    }
    jobs_post(s->j, ev);
}

/* At once, but not for each of many that come together. */
static void post_soon(struct session *s)
{
    int64_t since = clock_mono_ms() - s->asks.told_at;

    if (!s->asks.tell)
        session_timer(s, &s->asks.tell, since >= TELL_MS ? 0 : TELL_MS - since, post);
}

enum sb_agent session_ask_state(const struct session *s, enum sb_agent a)
{
    if (a != AG_ASKS && a != AG_WORKING)
        return a;
    return s->asks.unanswered ? AG_ASKS : AG_WORKING;
}

void session_ask_changed(struct session *s)
{
    post_soon(s);
    if (s->out.agent == AG_ASKS || s->out.agent == AG_WORKING)
        session_agent(s, session_ask_state(s, s->out.agent));
    if (!s->asks.v.n)
        session_cancel_timer(s, &s->asks.timer);
    else if (!s->asks.timer)
        session_timer(s, &s->asks.timer, LOOK_MS, look);
}

void session_ask_forget(struct session *s)
{
    for (size_t i = 0; i < s->asks.v.n; i++)
        ask_free(s->asks.v.v[i]);
    ARR_CLEAR(&s->asks.v);
    session_cancel_timer(s, &s->asks.tell);
    session_cancel_timer(s, &s->asks.timer);
    jobs_store_forget(s->j, &s->asks);
    s->asks.known = false;
}

void session_ask_release(struct session *s)
{
    session_ask_forget(s);
    ARR_RELEASE(&s->asks.v);
    map_free(s->asks.ids, NULL);
    ARR_RELEASE(&s->asks.requests);
}

/* Where it stands in v, or would stand. */
static size_t place_of(const struct session *s, uint64_t offset, uint32_t index)
{
    size_t lo = 0, hi = s->asks.v.n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const struct st_ask *at = &s->asks.v.v[mid]->at;

        if (at->offset < offset || (at->offset == offset && at->index < index))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

struct session_ask *session_ask_at(struct session *s, uint64_t offset, uint32_t index)
{
    size_t i = place_of(s, offset, index);

    return i < s->asks.v.n && s->asks.v.v[i]->at.offset == offset &&
                   s->asks.v.v[i]->at.index == index
               ? s->asks.v.v[i]
               : NULL;
}

/* --- looking ---------------------------------------------------------------------- */

static void on_answers(void *ctx, struct st_reply *r)
{
    struct session *s = ctx;
    bool first = !s->asks.known, news = false;

    if (!s->out.caught_up || r->err.code)
        return; /* the next look tries again */
    s->asks.known = true;
    for (size_t i = 0; i < r->n_answers; i++)
        news |= session_answer_use(s, &r->answers[i]);
    if (first || news)
        session_ask_changed(s);
    session_answer_missed(s, r);
    session_answer_commit(s);
}

static void look(void *ctx)
{
    struct session *s = ctx;

    s->asks.timer = 0;
    if (!s->out.caught_up)
        return; /* session_ask_ready() begins anew */
    session_timer(s, &s->asks.timer, LOOK_MS, look);
    for (size_t i = 0; i < s->asks.v.n; i++) {
        struct session_ask *a = s->asks.v.v[i];

        if (a->sent_at && a->wakes < 10) {
            a->wakes++;
            session_life_wake(s); /* the line that wakes the keeper may have been lost */
        }
    }
    if (s->out.run.id)
        store_answers(s->j->o.store, s->out.run.id,
                      jobs_store(s->j, on_answers, s, &s->asks));
}

void session_ask_ready(struct session *s)
{
    const struct sandbox *row = session_row(s);

    for (size_t i = 0; i < s->asks.v.n; i++) {
        struct session_ask *a = s->asks.v.v[i];

        if (row && row->agent == AG_ASKS && row->agent_since)
            a->since = row->agent_since; /* found again: it was open before we looked */
        a->attempt = 0;
    }
    s->asks.known = false; /* what came in the backlog was not told */
    if (s->out.run.id) {
        look(s);
    } else { /* nothing is kept */
        s->asks.known = true;
        session_ask_changed(s);
        session_answer_commit(s);
    }
}

void session_ask_over(struct session *s)
{
    struct err e = {0};

    err_set(&e, ERR_CONFLICT, "the agent has ended: it asks you nothing");
    session_answer_end(s, &e);
    session_ask_forget(s);
    s->asks.known = true;
    session_ask_changed(s);
}

void session_ask_stop(struct session *s, const char *why)
{
    struct err e = {0};

    for (size_t i = 0; i < s->asks.v.n; i++) {
        struct session_ask *a = s->asks.v.v[i];

        if (a->call)
            envd_cancel(s->envd, a->call);
        a->call = 0;
        session_cancel_timer(s, &a->timer);
    }
    if (!why)
        return;
    err_set(&e, ERR_CONFLICT, "the answer has not reached the agent: %s", why);
    session_answer_end(s, &e);
}

/* --- the agent's stream ------------------------------------------------------------ */

static bool is_live(const struct session *s)
{
    return s->out.caught_up && !s->out.feeding_again;
}

/* What an agent may have us keep is bounded; it goes on waiting for the rest. */
static bool fits(struct session *s, const struct session_ask *a)
{
    bool ok = s->asks.v.n < LIM_ASKS && s->asks.bytes + text_bytes(a) <= LIM_ASKS_BYTES;

    if (!ok && !s->asks.full && is_live(s))
        session_say(s, AGENT_WARN, "the agent asks more at once than can be kept: answer what is "
                    "shown, or interrupt it");
    s->asks.full = !ok;
    return ok;
}

static void opened(struct session *s, const struct agent_event *ev)
{
    struct session_ask *a = xcalloc(1, sizeof(*a));
    bool ok;

    a->s = s;
    a->at = (struct st_ask){s->out.run.id, ev->offset, ev->index};
    a->id = xstrdup(ev->id ? ev->id : "");
    a->tool = xstrdup(ev->name);
    a->title = xstrdup(ev->title);
    a->input = xstrdup(ev->input);
    a->choices = xstrdup(ev->choices);
    a->since = ev->time_ms ? ev->time_ms : jobs_now(s->j);
    ok = fits(s, a);
    s->asks.unanswered++;
    s->asks.bytes += text_bytes(a);
    if (!ok) {
        ask_free(a);
        return;
    }
    *ARR_INSERT(&s->asks.v, place_of(s, ev->offset, ev->index)) = a;
    if (!s->asks.ids)
        s->asks.ids = map_new();
    map_put(s->asks.ids, a->id, a);
    if (is_live(s))
        jobs_say(s->j, AGENT_WARN, s->row, "asks you: %s", in_words(a)->question);
}

/* How it ended, when that is not what was answered here. */
static void say_end(struct session_ask *a, const char *how)
{
    char *words = session_ask_words(a), *heard = how ? clean_line_dup(how, 200) : NULL;
    char *line = question_line(a->tool, a->title);

    if (heard && !a->answered)
        session_say(a->s, AGENT_INFO, "answered elsewhere: %s  %s", line, heard);
    else if (heard && a->choice >= 0 && !str_eq(words, heard))
        session_say(a->s, AGENT_WARN,
                    "the answer \"%s\" did not count, another one was faster: %s", words, heard);
    else if (!heard && !a->sent_at)
        session_say(a->s, AGENT_INFO, "the question is closed without an answer: %s", line);
    free(line);
    free(heard);
    free(words);
}

static void ended(struct session *s, struct session_ask *a, const char *how)
{
    struct err e = {0};

    if (is_live(s))
        say_end(a, how);
    if (how && !a->answered) /* ours is still being committed, or was not given */
        err_set(&e, ERR_CONFLICT, "another answer was faster: %.80s", how);
    else if (!how && !a->sent_at)
        err_set(&e, ERR_CONFLICT, SESSION_ASK_CLOSED);
    session_answer_settled(a, e.code ? &e : NULL);
    ARR_REMOVE(&s->asks.v, place_of(s, a->at.offset, a->at.index));
    ask_free(a);
}

/* With its turn all of an agent's questions end, whatever its stream says of each. */
void session_ask_event(struct session *s, const struct agent_event *ev)
{
    bool over = ev->kind == AGENT_EXIT || ev->kind == AGENT_TURN_END;
    struct session_ask *same = NULL;

    if (s->asks.known && (ev->kind == AGENT_ASK || (over && s->asks.v.n)))
        s->asks.dirty = true;
    if (ev->kind == AGENT_ASK && s->asks.ids)
        same = map_get(s->asks.ids, ev->id ? ev->id : "");
    if (same)
        ended(s, same, ev->text);
    while (over && s->asks.v.n)
        ended(s, s->asks.v.v[s->asks.v.n - 1], NULL);
    if (ev->kind == AGENT_ASK && !ev->final)
        opened(s, ev);
}

void session_ask_settle(struct session *s)
{
    if (!s->asks.dirty)
        return;
    s->asks.dirty = false;
    session_ask_changed(s);
}
