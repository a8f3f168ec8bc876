/* Questions of the agent and their answers. The decoder opens and ends questions; an answer
 * is committed first (the first one to a question counts), then published in the inbox under
 * a name that the question alone decides: whoever publishes it again, after a crash or from
 * another machine, changes nothing, for the sandbox takes each name once. It is open until
 * the agent's own stream ends it. */
#include "session_priv.h"

#include <cct/text/clean.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_MS 3000    /* another instance may have answered; a lost wake line */
#define OTHERS_MS 2000  /* its own answer it publishes itself, if it lives */
#define REACH_MS 20000  /* a request waits so long for the sandbox */
#define ASKS_MAX 100
#define CLOSED "the question is not open any more: the agent did not wait for the answer"

static void look(void *ctx);
static void publish(struct session_ask *a);

/* --- the list --------------------------------------------------------------------- */

static void ask_free(struct session_ask *a)
{
    if (a->call)
        envd_cancel(a->s->envd, a->call);
    session_cancel_timer(a->s, &a->timer);
    jobs_store_forget(a->s->j, a);
    free(a->id);
    free(a->tool);
    free(a->title);
    free(a->input);
    free(a->choices);
    free(a->text);
    free(a);
}

/* The label of the choice, or what was typed; new string, NULL when nothing was answered. */
static char *answer_words(const struct session_ask *a)
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
    question_choices_free(labels);
    return words ? words : xasprintf("choice %d", a->choice + 1);
}

static void post(struct session *s)
{
    struct ev_asks *ev = ev_new(EV_ASKS);

    ev->sandbox = s->row;
    ev->v = xcalloc(s->asks.v.n ? s->asks.v.n : 1, sizeof(*ev->v));
    for (size_t i = 0; i < s->asks.v.n; i++) {
        const struct session_ask *a = s->asks.v.v[i];

        ev->v[ev->n++] = (struct question){
            .sandbox = s->row,
            .id = clean_line_dup(a->id, 0),
            .question = question_line(a->tool, a->title),
            .detail = question_detail(a->tool, a->title, a->input),
            .choices = question_choices(a->choices),
            .words = a->words,
            .since = a->since,
            .answer = answer_words(a),
        };
    }
    jobs_post(s->j, ev);
}

static size_t unanswered(const struct session *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->asks.v.n; i++)
        n += !s->asks.v.v[i]->answered;
    return n;
}

enum sb_agent session_ask_state(const struct session *s, enum sb_agent a)
{
    if (a != AG_ASKS && a != AG_WORKING)
        return a;
    return unanswered(s) ? AG_ASKS : AG_WORKING;
}

static void changed(struct session *s)
{
    post(s);
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
    session_cancel_timer(s, &s->asks.timer);
    jobs_store_forget(s->j, &s->asks);
    s->asks.known = false;
}

/* --- requests --------------------------------------------------------------------- */

static void request_end(struct session *s, size_t i, const struct err *e)
{
    struct ask_request q = s->asks.requests.v[i];

    ARR_REMOVE(&s->asks.requests, i);
    jobs_done(s->j, q.req_id, e, s->row);
    free(q.id);
    free(q.text);
}

static void requests_end(struct session *s, const struct err *e)
{
    while (s->asks.requests.n)
        request_end(s, s->asks.requests.n - 1, e);
    session_cancel_timer(s, &s->asks.reach);
}

/* The requests whose answer is this question's. */
static void requests_settled(struct session_ask *a, const struct err *e)
{
    struct session *s = a->s;

    for (size_t i = s->asks.requests.n; i-- > 0;)
        if (s->asks.requests.v[i].committed && s->asks.requests.v[i].at.offset == a->at.offset &&
            s->asks.requests.v[i].at.index == a->at.index)
            request_end(s, i, e);
}

void session_ask_release(struct session *s)
{
    struct err e = {0};

    err_set(&e, ERR_CANCELLED, "cc-tui ends");
    requests_end(s, &e);
    session_ask_forget(s);
    ARR_RELEASE(&s->asks.v);
    ARR_RELEASE(&s->asks.requests);
}

/* --- publishing ------------------------------------------------------------------- */

static void on_sent(void *ctx, struct st_reply *r)
{
    struct session_ask *a = ctx;

    requests_settled(a, r->err.code ? &r->err : NULL);
}

static void again(void *ctx)
{
    struct session_ask *a = ctx;

    a->timer = 0;
    publish(a);
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
    char name[160], id[80], *p;

    inbox_id(a, id, sizeof(id));
    snprintf(name, sizeof(name), SESSION_INBOX_TMP_FMT, a->s->j->o.owner);
    for (p = strrchr(name, '/') + 1; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '.')
            *p = '_';
    return xasprintf("%s/%s-%s", a->s->dir, name, id);
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

static int encode(const struct session_ask *a, int choice, const char *text, struct buf *out,
                  struct err *e)
{
    struct agent_answer answer = {a->id, a->tool, a->input, choice, text};

    if (!a->s->ad->encode_answer)
        return err_set(e, ERR_UNSUPPORTED, "this agent takes no answers");
    return a->s->ad->encode_answer(&answer, out, e);
}

static void publish(struct session_ask *a)
{
    struct session *s = a->s;
    struct buf bytes = BUF_INIT;
    struct err e = {0};
    char *tmp;

    if (!a->answered || a->sent_at || a->call || a->timer || !s->envd || !s->dir ||
        !s->out.caught_up || session_readonly(s))
        return;
    if (encode(a, a->choice, a->text, &bytes, &e) != 0) {
        requests_settled(a, &e); /* another version of this program committed it */
    } else {
        tmp = tmp_path(a);
        a->call = envd_write(s->envd, tmp, bytes.p, bytes.len, on_uploaded, a);
        free(tmp);
    }
    buf_release(&bytes);
}

/* --- what is committed ------------------------------------------------------------ */

static struct session_ask *ask_at(struct session *s, uint64_t offset, uint32_t index)
{
    for (size_t i = 0; i < s->asks.v.n; i++)
        if (s->asks.v.v[i]->at.offset == offset && s->asks.v.v[i]->at.index == index)
            return s->asks.v.v[i];
    return NULL;
}

/* True when it is news. */
static bool use_answer(struct session *s, const struct st_answer *row)
{
    struct session_ask *a = ask_at(s, row->offset, row->index);
    bool news = a && !a->answered;

    if (!a)
        return false;
    if (news) {
        a->answered = true;
        a->choice = row->choice;
        a->text = row->text ? xstrdup(row->text) : NULL;
    }
    a->sent_at = row->sent_at ? row->sent_at : a->sent_at;
    if (a->ours || clock_wall_ms() - row->created_at > OTHERS_MS ||
        clock_wall_ms() < row->created_at)
        publish(a);
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
        requests_settled(a, &e);
        return;
    }
    a->ours = r->got;
    for (size_t i = 0; i < r->n_answers; i++)
        use_answer(s, &r->answers[i]);
    changed(s);
    if (r->got)
        return; /* done when it lies in the inbox */
    words = answer_words(a);
    err_set(&e, ERR_CONFLICT, "the question was answered already, by another cc-tui: %s",
            words ? words : "");
    free(words);
    requests_settled(a, &e);
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
        encode(a, q->choice, q->text, &bytes, &e);
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

static void commit_all(struct session *s)
{
    struct err e = {0};

    for (size_t i = s->asks.requests.n; i-- > 0;) {
        struct ask_request *q = &s->asks.requests.v[i];
        struct session_ask *a = q->committed ? NULL : asked_for(s, q->id);

        if (q->committed)
            continue;
        if (a) {
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

static void on_late(void *ctx)
{
    struct session *s = ctx;
    struct err e = {0};

    s->asks.reach = 0;
    err_set(&e, ERR_TIMEOUT, "the question could not be answered: the sandbox was not reached "
            "within %d s; try again", REACH_MS / 1000);
    requests_end(s, &e);
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
        commit_all(s);
        return;
    }
    if (!s->asks.reach)
        session_timer(s, &s->asks.reach, REACH_MS, on_late);
    session_follow(s);
}

/* --- looking ---------------------------------------------------------------------- */

static void on_answers(void *ctx, struct st_reply *r)
{
    struct session *s = ctx;
    bool first = !s->asks.known, news = false;
    struct err e = {0};

    if (!s->out.caught_up || r->err.code)
        return; /* the next look tries again */
    s->asks.known = true;
    for (size_t i = 0; i < r->n_answers; i++)
        news |= use_answer(s, &r->answers[i]);
    if (first || news)
        changed(s);
    err_set(&e, ERR_CONFLICT, CLOSED);
    for (size_t i = s->asks.requests.n; i-- > 0;) { /* it ended while we were away */
        const struct ask_request *q = &s->asks.requests.v[i];
        bool sent = false;

        for (size_t k = 0; k < r->n_answers; k++)
            sent |= r->answers[k].offset == q->at.offset && r->answers[k].index == q->at.index &&
                    r->answers[k].sent_at;
        if (q->committed && !ask_at(s, q->at.offset, q->at.index))
            request_end(s, i, sent ? NULL : &e);
    }
    commit_all(s);
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
        changed(s);
        commit_all(s);
    }
}

void session_ask_over(struct session *s)
{
    struct err e = {0};

    err_set(&e, ERR_CONFLICT, "the agent has ended: it asks you nothing");
    requests_end(s, &e);
    session_ask_forget(s);
    s->asks.known = true;
    changed(s);
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
    requests_end(s, &e);
}

/* --- the agent's stream ------------------------------------------------------------ */

static bool is_live(const struct session *s)
{
    return s->out.caught_up && !s->out.feeding_again;
}

static void opened(struct session *s, const struct agent_event *ev)
{
    struct session_ask *a = xcalloc(1, sizeof(*a));
    struct buf scratch = BUF_INIT;
    char *line;

    a->s = s;
    a->at = (struct st_ask){s->out.run.id, ev->offset, ev->index};
    a->id = xstrdup(ev->id ? ev->id : "");
    a->tool = xstrdup(ev->name);
    a->title = xstrdup(ev->title);
    a->input = xstrdup(ev->input);
    a->choices = xstrdup(ev->choices);
    a->since = ev->time_ms ? ev->time_ms : jobs_now(s->j);
    a->words = encode(a, -1, "1", &scratch, NULL) == 0 || !a->choices;
    buf_release(&scratch);
    *ARR_PUSH(&s->asks.v) = a;
    if (!is_live(s))
        return;
    line = question_line(a->tool, a->title);
    jobs_say(s->j, AGENT_WARN, s->row, "asks you: %s", line);
    free(line);
}

/* How it ended, when that is not what was answered here. */
static void say_end(struct session_ask *a, const char *how)
{
    char *words = answer_words(a), *heard = how ? clean_line_dup(how, 200) : NULL;
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

static void ended(struct session *s, size_t i, const char *how)
{
    struct session_ask *a = s->asks.v.v[i];
    struct err e = {0};

    if (is_live(s))
        say_end(a, how);
    if (how && !a->answered) /* ours is still being committed, or was not given */
        err_set(&e, ERR_CONFLICT, "another answer was faster: %.80s", how);
    else if (!how && !a->sent_at)
        err_set(&e, ERR_CONFLICT, CLOSED);
    requests_settled(a, e.code ? &e : NULL);
    ARR_REMOVE(&s->asks.v, i);
    ask_free(a);
}

void session_ask_event(struct session *s, const struct agent_event *ev)
{
    if (ev->kind == AGENT_EXIT) {
        while (s->asks.v.n)
            ended(s, s->asks.v.n - 1, NULL);
    } else if (ev->kind == AGENT_ASK) {
        for (size_t i = s->asks.v.n; i-- > 0;)
            if (str_eq(s->asks.v.v[i]->id, ev->id ? ev->id : ""))
                ended(s, i, ev->text);
        if (!ev->final && s->asks.v.n < ASKS_MAX)
            opened(s, ev);
    }
    if (s->asks.known && (ev->kind == AGENT_ASK || ev->kind == AGENT_EXIT))
        s->asks.dirty = true;
}

void session_ask_settle(struct session *s)
{
    if (!s->asks.dirty)
        return;
    s->asks.dirty = false;
    changed(s);
}
