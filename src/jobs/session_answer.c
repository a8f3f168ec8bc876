/* Answers to the agent's questions: committed first (the first one to a question counts),
 * then published in the inbox under a name that the question alone decides: whoever
 * publishes it again, after a crash or from another machine, changes nothing, for the
 * sandbox takes each name once. */
#include "session_ask.h"
#include "session_follow.h"
#include "session_priv.h"

#include <cct/text/clean.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OTHERS_MS 2000 /* its own answer another instance publishes itself, if it lives */
#define REACH_MS 20000 /* a request waits so long for the sandbox */

/* --- requests --------------------------------------------------------------------- */

static void request_end(struct session *s, size_t i, const struct err *e)
{
    struct ask_request q = s->asks.requests.v[i];

    ARR_REMOVE(&s->asks.requests, i);
    jobs_done(s->j, q.req_id, e, s->row);
    free(q.id);
    free(q.text);
}

void session_answer_end(struct session *s, const struct err *e)
{
    while (s->asks.requests.n)
        request_end(s, s->asks.requests.n - 1, e);
    session_cancel_timer(s, &s->asks.reach);
}

/* The requests whose answer is this question's. */
void session_answer_settled(struct session_ask *a, const struct err *e)
{
    struct session *s = a->s;

    for (size_t i = s->asks.requests.n; i-- > 0;)
        if (s->asks.requests.v[i].committed && s->asks.requests.v[i].at.offset == a->at.offset &&
            s->asks.requests.v[i].at.index == a->at.index)
            request_end(s, i, e);
}

/* --- publishing ------------------------------------------------------------------- */

static void on_sent(void *ctx, struct st_reply *r)
{
    struct session_ask *a = ctx;

    session_answer_settled(a, r->err.code ? &r->err : NULL);
}

static void again(void *ctx)
{
    struct session_ask *a = ctx;

    a->timer = 0;
    session_answer_publish(a);
}

static void trouble(struct session_ask *a, const struct err *e)
{
    if (a->attempt == 3)
        session_say(a->s, AGENT_WARN, "an answer could not be sent yet, trying again: %s",
                    e->text);
    session_cancel_timer(a->s, &a->timer);
    a->timer =
        net_timer(a->s->j->o.net, net_backoff_ms(a->attempt++, 200, 5000), again, a);
}

static void on_moved(void *ctx, const struct envd_result *r)
{
    struct session_ask *a = ctx;
    struct session *s = a->s;

    a->call = 0;
    if (r->err.code) {
        trouble(a, &r->err);
        return;
    }
    a->sent_at = clock_wall_ms();
    session_life_wake(s);
    store_answer_sent(s->j->o.store, &a->at, jobs_store(s->j, on_sent, a, a));
}

static void inbox_id(const struct session_ask *a, char *dst, size_t size)
{
    snprintf(dst, size, "q%" PRId64 "_%" PRIu64 "_%" PRIu32, a->s->out.open_epoch, a->at.offset,
             a->at.index);
}

static char *tmp_path(const struct session_ask *a)
{
    char id[80];

    inbox_id(a, id, sizeof(id));
    return session_tmp_path(a->s, id);
}

static void on_uploaded(void *ctx, const struct envd_result *r)
{
    struct session_ask *a = ctx;
    char id[80], name[96], *tmp, *to;

    a->call = 0;
    if (r->err.code) {
        trouble(a, &r->err);
        return;
    }
    inbox_id(a, id, sizeof(id));
    session_inbox_name(name, sizeof(name), a->since, id);
    tmp = tmp_path(a);
    to = xasprintf("%s/" SESSION_INBOX "/%s", a->s->dir, name);
    a->call = envd_move(a->s->envd, tmp, to, on_moved, a);
    free(tmp);
    free(to);
}

int session_answer_encode(const struct session_ask *a, int choice, const char *text, struct buf *out,
                  struct err *e)
{
    struct agent_answer answer = {a->id, a->tool, a->input, choice, text};

    if (!a->s->ad->encode_answer)
        return err_set(e, ERR_UNSUPPORTED, "this agent takes no answers");
    return a->s->ad->encode_answer(&answer, out, e);
}

void session_answer_publish(struct session_ask *a)
{
    struct session *s = a->s;
    struct buf bytes = BUF_INIT;
    struct err e = {0};
    char *tmp;

    if (!a->answered || a->sent_at || a->call || a->timer || !s->envd || !s->dir ||
        !s->out.caught_up || session_readonly(s))
        return;
    if (session_answer_encode(a, a->choice, a->text, &bytes, &e) != 0) {
        session_answer_settled(a, &e); /* another version of this program committed it */
    } else {
        tmp = tmp_path(a);
        a->call = envd_write(s->envd, tmp, bytes.p, bytes.len, on_uploaded, a);
        free(tmp);
    }
    buf_release(&bytes);
}

/* --- what is committed ------------------------------------------------------------ */

bool session_answer_use(struct session *s, const struct st_answer *row)
{
    struct session_ask *a = session_ask_at(s, row->offset, row->index);
    bool news = a && !a->answered;

    if (!a)
        return false;
    if (news) {
        a->answered = true;
        s->asks.unanswered--;
        a->choice = row->choice;
        a->text = row->text ? xstrdup(row->text) : NULL;
    }
    a->sent_at = row->sent_at ? row->sent_at : a->sent_at;
    if (a->ours || clock_wall_ms() - row->created_at > OTHERS_MS ||
        clock_wall_ms() < row->created_at)
        session_answer_publish(a);
    return news;
}

static void on_added(void *ctx, struct st_reply *r)
{
    struct session_ask *a = ctx;
    struct session *s = a->s;
    struct err e = r->err;
    char *words;

    a->adding = false;
    if (e.code) {
        err_wrap(&e, "the answer was not given");
        session_answer_settled(a, &e);
        return;
    }
    a->ours = r->got;
    for (size_t i = 0; i < r->n_answers; i++)
        session_answer_use(s, &r->answers[i]);
    session_ask_changed(s);
    if (r->got)
        return; /* done when it lies in the inbox */
    words = session_ask_words(a);
    err_set(&e, ERR_CONFLICT, "the question was answered already, by another cc-tui: %s",
            words ? words : "");
    free(words);
    session_answer_settled(a, &e);
}

static struct session_ask *asked_for(struct session *s, const char *id)
{
    struct session_ask *found = NULL;

    for (size_t i = 0; i < s->asks.v.n; i++) {
        struct session_ask *a = s->asks.v.v[i];
        char *clean = clean_line_dup(a->id, 0);

        if ((!id && !a->answered && !found) || str_eq(id, clean))
            found = a;
        free(clean);
    }
    return found;
}

static void commit(struct session *s, size_t i, struct session_ask *a)
{
    struct ask_request *q = &s->asks.requests.v[i];
    struct buf bytes = BUF_INIT;
    struct err e = {0};

    if (!s->out.run.id || s->out.store_down)
        err_set(&e, ERR_IO, "the answer was not given: it cannot be stored");
    else if (a->answered || a->adding)
        err_set(&e, ERR_CONFLICT, "the question was answered already");
    else
        session_answer_encode(a, q->choice, q->text, &bytes, &e);
    if (e.code) {
        request_end(s, i, &e);
    } else {
        a->at.run = s->out.run.id;
        q->at = a->at;
        q->committed = a->adding = true;
        store_answer_add(s->j->o.store, &a->at, q->choice, q->text,
                         jobs_store(s->j, on_added, a, a));
    }
    buf_release(&bytes);
}

void session_answer_commit(struct session *s)
{
    struct err e = {0};

    for (size_t i = 0; i < s->asks.requests.n;) { /* the first word counts */
        struct ask_request *q = &s->asks.requests.v[i];
        struct session_ask *a = q->committed ? NULL : asked_for(s, q->id);

        if (q->committed) {
            i++;
            continue;
        }
        if (a) { /* ended, or committed */
            commit(s, i, a);
            continue;
        }
        err_set(&e, ERR_NOTFOUND,
                q->id ? "that question is not open any more: it was answered, or taken back"
                      : "the agent asks you nothing");
        request_end(s, i, &e);
    }
    session_cancel_timer(s, &s->asks.reach);
}

/* What ended while we were away. */
void session_answer_missed(struct session *s, const struct st_reply *r)
{
    struct err e = {0};

    err_set(&e, ERR_CONFLICT, SESSION_ASK_CLOSED);
    for (size_t i = s->asks.requests.n; i-- > 0;) {
        const struct ask_request *q = &s->asks.requests.v[i];
        bool sent = false;

        for (size_t k = 0; k < r->n_answers; k++)
            sent |= r->answers[k].offset == q->at.offset && r->answers[k].index == q->at.index &&
                    r->answers[k].sent_at;
        if (q->committed && !session_ask_at(s, q->at.offset, q->at.index))
            request_end(s, i, sent ? NULL : &e);
    }
}

static void on_late(void *ctx)
{
    struct session *s = ctx;
    struct err e = {0};

    s->asks.reach = 0;
    err_set(&e, ERR_TIMEOUT, "the question could not be answered: the sandbox was not reached "
            "within %d s; try again", REACH_MS / 1000);
    session_answer_end(s, &e);
}

void session_answer(struct session *s, uint64_t req_id, const char *id, int choice,
                    const char *text)
{
    struct ask_request *q;
    struct err e = {0};

    if (session_readonly(s) || s->raw) {
        err_set(&e, ERR_PERM, s->raw ? "an adopted process asks nothing: send it a message"
                                     : "nothing was answered: this cc-tui only reads");
        jobs_done(s->j, req_id, &e, s->row);
        return;
    }
    q = ARR_PUSH(&s->asks.requests);
    *q = (struct ask_request){.req_id = req_id, .choice = choice, .id = id ? xstrdup(id) : NULL,
                              .text = text && *text ? xstrdup(text) : NULL};
    if (s->asks.known && s->out.caught_up) {
        session_answer_commit(s);
        return;
    }
    if (!s->asks.reach)
        session_timer(s, &s->asks.reach, REACH_MS, on_late);
    session_follow(s);
    if (s->fo.state == FO_ENDED)
        session_answer_commit(s); /* it was looked at a moment ago */
}
