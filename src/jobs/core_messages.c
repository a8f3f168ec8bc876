/* Messages: may it be sent, to one sandbox, to several at once: those are committed together,
 * each goes its own way after that. */
#include "core_act.h"
#include "core_priv.h"

#include <cct/util/limits.h>
#include <cct/util/utf8.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

/* Under way; never cancelled, so it frees itself. */
struct mailing {
    struct jobs *j;
    uint64_t req_id;
    bool now;
    ARR(struct receipt) receipts;
    ARR(struct st_letter) letters;
    ARR(size_t) places; /* of each letter's receipt */
};

static int may_take(const struct sandbox *row, bool wait, struct err *e)
{
    if (row->adopted && !row->session)
        return err_set(e, ERR_UNSUPPORTED, "\"%s\" was adopted without a process: adopt one to "
                       "send to its input", core_row_name(row));
    if (row->adopted && wait)
        return err_set(e, ERR_UNSUPPORTED, "an adopted process has no turns, so there is no answer "
                       "to wait for: send without waiting and look at the logs");
    if (row->foreign || !row->session)
        return err_set(e, ERR_UNSUPPORTED, "\"%s\" was not made by cc-tui: it has no session to "
                       "send to", core_row_name(row));
    if (row->state == SB_PAUSED)
        return err_set(e, ERR_CONFLICT, "\"%s\" is paused: resume it first", core_row_name(row));
    if (!core_row_live(row))
        return err_set(e, ERR_CONFLICT, "\"%s\" is gone: nothing can be sent to it",
                       core_row_name(row));
    return 0;
}

static int is_message(const char *text, struct err *e)
{
    size_t len = text ? strlen(text) : 0;

    if (!len || strspn(text, " \t\r\n") == len)
        return err_set(e, ERR_INVALID, "the message is empty");
    if (len > LIM_MESSAGE_BYTES)
        return err_set(e, ERR_INVALID, "the message is too long: %zu bytes, at most %u; put it "
                       "into a file in the sandbox", len, LIM_MESSAGE_BYTES);
    if (!utf8_valid(text, len)) /* its echo would be another text */
        return err_set(e, ERR_INVALID, "the message is not text in UTF-8");
    return 0;
}

int core_may_send(const struct sandbox *row, const char *text, bool wait, struct err *e)
{
    int rc = may_take(row, wait, e);

    return rc ? rc : is_message(text, e);
}

void core_post_message(struct jobs *j, const struct message *m)
{
    struct ev_message *ev = ev_new(EV_MESSAGE);

    message_copy(&ev->msg, m);
    jobs_post(j, ev);
}

/* --- to one sandbox ------------------------------------------------------------- */

static void on_added(void *ctx, struct st_reply *r)
{
    struct act *a = ctx;
    struct jobs *j = a->j;
    struct session *s = session_of(j, a->row);
    uint64_t req = a->req_id;

    if (r->err.code) {
        struct err e = r->err;
        err_wrap(&e, "the message was not sent");
        act_end(a, &e);
        return;
    }
    core_post_message(j, &r->msg);
    if (a->wait && s) {
        a->req_id = 0;
        session_wait_turn(s, r->msg.id, req);
    }
    if (s && a->now)
        session_hurry(s, r->msg.id);
    act_end(a, NULL);
    if (s)
        session_relay(s);
}

void core_send(struct jobs *j, struct cmd *c, struct sandbox *row)
{
    struct err e = {0};
    struct act *a;

    if (core_may_send(row, c->text, c->on, &e) != 0) {
        jobs_done(j, c->m.req_id, &e, row->id);
        return;
    }
    a = act_new(j, c);
    a->wait = c->on;
    a->now = (c->n & SEND_NOW) != 0;
    if (a->now)
        store_message_add_first(j->o.store, row->id, c->text, jobs_store(j, on_added, a, a));
    else
        store_message_add(j->o.store, row->id, c->text, jobs_store(j, on_added, a, a));
}

static void on_cancelled(void *ctx, struct st_reply *r)
{
    struct act *a = ctx;
    struct err e = r->err;

    if (!e.code && r->msg.id)
        core_post_message(a->j, &r->msg);
    if (!e.code && (!r->msg.id || r->msg.state != MSG_CANCELLED))
        err_set(&e, ERR_CONFLICT, "the message cannot be called off: it is on its way already");
    a->row = r->msg.sandbox;
    act_end(a, e.code ? &e : NULL);
}

/* It could not be sent again either: it stays what it was. */
static void on_failed_again(void *ctx, struct st_reply *r)
{
    struct act *a = ctx;
    struct err e = r->err;

    if (!e.code && r->msg.id)
        core_post_message(a->j, &r->msg);
    if (!e.code)
        err_set(&e, ERR_CONFLICT, "not sent: %s", r->msg.error ? r->msg.error : "nobody takes it");
    act_end(a, &e);
}

static void on_requeued(void *ctx, struct st_reply *r)
{
    struct act *a = ctx;
    struct jobs *j = a->j;
    struct err e = r->err, why = {0};
    uint64_t id = r->msg.sandbox;
    struct sandbox *row = id ? jobs_row(j, id) : NULL;
    struct session *s;
    bool done = !e.code && r->msg.id && r->msg.state == MSG_QUEUED;

    if (!done && !a->second && (!e.code || e.code == ERR_CONFLICT)) {
        a->second = true;
        store_message_state(j->o.store, a->message, MSG_UNCONFIRMED, MSG_QUEUED, NULL,
                            jobs_store(j, on_requeued, a, a));
        return;
    }
    if (done && row && core_may_send(row, r->msg.text, false, &why) != 0) {
        a->row = id;
        store_message_state(j->o.store, r->msg.id, MSG_QUEUED, MSG_FAILED, why.text,
                            jobs_store(j, on_failed_again, a, a));
        return;
    }
    if (done)
        core_post_message(j, &r->msg);
    else if (!e.code)
        err_set(&e, ERR_CONFLICT, "the message cannot be sent again: it neither failed nor is it "
                "unconfirmed");
    a->row = id;
    act_end(a, e.code ? &e : NULL);
    s = done ? session_of(j, id) : NULL;
    if (s)
        session_relay(s);
}

void core_message_cmd(struct jobs *j, struct cmd *c)
{
    struct act *a = act_new(j, c);

    if (c->m.type == CMD_MESSAGE_CANCEL)
        store_message_state(j->o.store, c->id, MSG_QUEUED, MSG_CANCELLED, NULL,
                            jobs_store(j, on_cancelled, a, a));
    else
        store_message_state(j->o.store, c->id, MSG_FAILED, MSG_QUEUED, NULL,
                            jobs_store(j, on_requeued, a, a));
}

/* --- to several: the end of it -------------------------------------------------- */

static size_t count_refused(const struct mailing *b, const struct receipt **first)
{
    size_t n = 0;

    for (size_t i = b->receipts.n; i-- > 0;)
        if (!b->receipts.v[i].message) {
            *first = &b->receipts.v[i];
            n++;
        }
    return n;
}

static void mailing_free(struct mailing *b)
{
    for (size_t i = 0; i < b->receipts.n; i++)
        receipt_release(&b->receipts.v[i]);
    for (size_t i = 0; i < b->letters.n; i++)
        free(b->letters.v[i].text);
    ARR_RELEASE(&b->receipts);
    ARR_RELEASE(&b->letters);
    ARR_RELEASE(&b->places);
    free(b);
}

static void mailing_end(struct mailing *b)
{
    struct jobs *j = b->j;
    struct ev_broadcast *ev = ev_new(EV_BROADCAST);
    const struct receipt *first = NULL;
    size_t n = b->receipts.n, refused = count_refused(b, &first);
    struct err e = {0};

    if (refused)
        err_set(&e, ERR_CONFLICT, "%zu of %zu cannot take the message: %s", refused, n,
                first->error ? first->error : "it was not stored");
    jobs_say(j, 0, 0, "message to %zu sandbox%s: %zu queued%s%s", n,
             n == 1 ? "" : "es", n - refused, refused ? "; " : "", refused ? e.text : "");
    ev->m.req_id = b->req_id;
    ev->v = b->receipts.v;
    ev->n = n;
    memset(&b->receipts, 0, sizeof(b->receipts));
    jobs_post(j, ev);
    core_rows_flush(j);
    jobs_done(j, b->req_id, &e, 0);
    for (size_t i = 0; i < j->priv->mailings.n; i++)
        if (j->priv->mailings.v[i] == b) {
            ARR_REMOVE(&j->priv->mailings, i);
            break;
        }
    mailing_free(b);
}

void core_messages_release(struct jobs *j)
{
    for (size_t i = 0; i < j->priv->mailings.n; i++) {
        jobs_store_forget(j, j->priv->mailings.v[i]);
        mailing_free(j->priv->mailings.v[i]);
    }
    ARR_RELEASE(&j->priv->mailings);
}

/* --- to several: on its way ----------------------------------------------------- */

static void on_stored(void *ctx, struct st_reply *r)
{
    struct mailing *b = ctx;
    struct jobs *j = b->j;
    bool now = b->now, well = !r->err.code && r->n_messages == b->letters.n;

    for (size_t i = 0; i < b->letters.n; i++) {
        struct receipt *c = &b->receipts.v[b->places.v[i]];

        if (well) {
            c->message = r->messages[i].id;
            core_post_message(j, &r->messages[i]);
        } else {
            c->error = xasprintf("it could not be stored: %s", r->err.text);
        }
    }
    mailing_end(b);
    for (size_t i = 0; well && i < r->n_messages; i++) {
        struct session *s = session_of(j, r->messages[i].sandbox);

        if (s && now)
            session_hurry(s, r->messages[i].id);
        if (s)
            session_relay(s);
    }
}

static void add_letter(struct mailing *b, uint64_t id, const char *text, bool fill)
{
    const struct sandbox *row = jobs_row(b->j, id);
    struct receipt *c;
    struct err e = {0};
    char *own = NULL;

    for (size_t i = 0; i < b->receipts.n; i++)
        if (b->receipts.v[i].sandbox == id)
            return; /* once is enough */
    c = ARR_PUSH(&b->receipts);
    c->sandbox = id;
    c->name = row && row->name ? xstrdup(row->name) : NULL;
    if (!row)
        err_set(&e, ERR_NOTFOUND, "that sandbox is not in the list any more");
    else if (may_take(row, false, &e) == 0)
        own = fill ? message_fill(text, row, &e) : xstrdup(text);
    if (own && is_message(own, &e) == 0) {
        *ARR_PUSH(&b->letters) = (struct st_letter){id, own};
        *ARR_PUSH(&b->places) = b->receipts.n - 1;
        return;
    }
    free(own);
    c->error = xstrdup(e.text);
}

void core_broadcast(struct jobs *j, const struct cmd *c)
{
    struct err e = {0};
    struct mailing *b;

    if (j->priv->look_only || j->o.readonly) {
        core_done_err(j, c->m.req_id, 0, ERR_PERM, "nothing was done: this cc-tui only reads");
        return;
    }
    if (!c->n_ids)
        err_set(&e, ERR_INVALID, "the message has no receiver");
    else if (c->n_ids > LIM_RECEIVERS)
        err_set(&e, ERR_INVALID, "the message has %zu receivers, more than %u", c->n_ids,
                LIM_RECEIVERS);
    if (e.code || is_message(c->text, &e) != 0) {
        jobs_done(j, c->m.req_id, &e, 0);
        return;
    }
    b = xcalloc(1, sizeof(*b));
    b->j = j;
    b->req_id = c->m.req_id;
    b->now = (c->n & SEND_NOW) != 0;
    for (size_t i = 0; i < c->n_ids; i++)
        add_letter(b, c->ids[i], c->text, (c->n & SEND_FILL) != 0);
    *ARR_PUSH(&j->priv->mailings) = b;
    if (b->letters.n)
        store_messages_add(j->o.store, b->letters.v, b->letters.n, b->now,
                           jobs_store(j, on_stored, b, b));
    else
        mailing_end(b);
}
