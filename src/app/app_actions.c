/* Actions: each becomes a command to the net thread and ends in one EV_DONE. */
#include "app_priv.h"

#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <string.h>

struct cmd *app_cmd(struct app *a, enum cmd_type t)
{
    THREAD_ASSERT(THREAD_MAIN);
    return cmd_new(t, ++a->next_req);
}

/* Who waits for it gets its end; what wants no answer is nothing. */
static void refuse_shown(struct app *a, struct cmd *c)
{
    struct ev_done *d = c->m.req_id ? ev_new(EV_DONE) : NULL;

    if (d) {
        d->m.req_id = c->m.req_id;
        err_set(&d->err, ERR_UNSUPPORTED, "%s", a->only_shown);
        app_feed(a, &d->m);
    }
    msg_free(&c->m);
}

uint64_t app_post(struct app *a, struct cmd *c)
{
    enum cmd_type t = (enum cmd_type)c->m.type;
    bool urgent = t == CMD_KILL || (t >= CMD_KILL_OPEN && t <= CMD_KILL_RETRY) ||
                  t == CMD_INTERRUPT;
    uint64_t req = c->m.req_id;

    if (a->only_shown) {
        refuse_shown(a, c);
        return req;
    }
    mq_post(net_mq(a->net), urgent ? MQ_URGENT : MQ_NORMAL, &c->m);
    return req;
}

uint64_t app_refuse(struct app *a, const struct err *e)
{
    struct ev_done *d = ev_new(EV_DONE);

    d->m.req_id = ++a->next_req;
    d->err = *e;
    mq_post(a->events, MQ_NORMAL, &d->m);
    return a->next_req;
}

static uint64_t on_sandbox(struct app *a, enum cmd_type t, uint64_t sandbox)
{
    struct cmd *c = app_cmd(a, t);

    c->sandbox = sandbox;
    return app_post(a, c);
}

/* No answer is wanted. */
static void tell(struct app *a, enum cmd_type t, uint64_t sandbox, bool on)
{
    struct cmd *c = cmd_new(t, 0);

    THREAD_ASSERT(THREAD_MAIN);
    c->sandbox = sandbox;
    c->on = on;
    app_post(a, c);
}

uint64_t app_send(struct app *a, uint64_t sandbox, const char *text, bool wait)
{
    return app_send_how(a, sandbox, text, wait, 0);
}

uint64_t app_send_how(struct app *a, uint64_t sandbox, const char *text, bool wait, int how)
{
    struct cmd *c = app_cmd(a, CMD_SEND);

    c->sandbox = sandbox;
    c->text = xstrdup(text ? text : "");
    c->on = wait;
    c->n = how;
    return app_post(a, c);
}

uint64_t app_broadcast(struct app *a, const uint64_t *ids, size_t n, const char *text, int how)
{
    struct cmd *c = app_cmd(a, CMD_BROADCAST);

    c->text = xstrdup(text ? text : "");
    c->ids = xcalloc(n + 1, sizeof(*c->ids));
    if (n)
        memcpy(c->ids, ids, n * sizeof(*ids));
    c->n_ids = n;
    c->n = how;
    return app_post(a, c);
}

static uint64_t on_message(struct app *a, enum cmd_type t, uint64_t message)
{
    struct cmd *c = app_cmd(a, t);

    c->id = message;
    return app_post(a, c);
}

uint64_t app_message_cancel(struct app *a, uint64_t message)
{
    return on_message(a, CMD_MESSAGE_CANCEL, message);
}

uint64_t app_message_retry(struct app *a, uint64_t message)
{
    return on_message(a, CMD_MESSAGE_RETRY, message);
}

uint64_t app_answer(struct app *a, uint64_t sandbox, const char *question, int choice,
                    const char *text)
{
    struct cmd *c = app_cmd(a, CMD_ANSWER);

    c->sandbox = sandbox;
    c->text2 = question ? xstrdup(question) : NULL;
    c->n = choice;
    c->text = text ? xstrdup(text) : NULL;
    return app_post(a, c);
}

uint64_t app_interrupt(struct app *a, uint64_t sandbox)
{
    return on_sandbox(a, CMD_INTERRUPT, sandbox);
}

uint64_t app_restart_agent(struct app *a, uint64_t sandbox)
{
    return on_sandbox(a, CMD_RESTART, sandbox);
}

uint64_t app_pair_do(struct app *a, uint64_t sandbox, int kind, int rounds, const char *note)
{
    struct cmd *c = app_cmd(a, CMD_PAIR);

    c->sandbox = sandbox;
    c->n = kind;
    c->id = rounds > 0 ? (uint64_t)rounds : 0;
    c->text = xstrdup(note);
    return app_post(a, c);
}

uint64_t app_kill(struct app *a, uint64_t sandbox)
{
    return on_sandbox(a, CMD_KILL, sandbox);
}

static uint64_t with_number(struct app *a, enum cmd_type t, uint64_t sandbox, int n)
{
    struct cmd *c = app_cmd(a, t);

    c->sandbox = sandbox;
    c->n = n;
    return app_post(a, c);
}

uint64_t app_set_timeout(struct app *a, uint64_t sandbox, int seconds_from_now)
{
    return with_number(a, CMD_TIMEOUT, sandbox, seconds_from_now);
}

uint64_t app_pause(struct app *a, uint64_t sandbox)
{
    return on_sandbox(a, CMD_PAUSE, sandbox);
}

uint64_t app_resume(struct app *a, uint64_t sandbox, int timeout_s)
{
    return with_number(a, CMD_RESUME, sandbox, timeout_s);
}

static uint64_t with_text(struct app *a, int type, uint64_t sandbox, const char *text)
{
    struct cmd *c = app_cmd(a, type);

    c->sandbox = sandbox;
    c->text = xstrdup(text ? text : "");
    return app_post(a, c);
}

uint64_t app_rename(struct app *a, uint64_t sandbox, const char *name)
{
    return with_text(a, CMD_RENAME, sandbox, name);
}

uint64_t app_tag(struct app *a, uint64_t sandbox, const char *tags)
{
    return with_text(a, CMD_TAG, sandbox, tags);
}

void app_protect(struct app *a, uint64_t sandbox, bool on)
{
    tell(a, CMD_PROTECT, sandbox, on);
}

uint64_t app_forget(struct app *a, uint64_t sandbox)
{
    return on_sandbox(a, CMD_FORGET, sandbox);
}

uint64_t app_kill_all_open(struct app *a, bool account_scope)
{
    struct cmd *c = app_cmd(a, CMD_KILL_OPEN);

    c->on = account_scope;
    return app_post(a, c);
}

uint64_t app_kill_all_confirm(struct app *a, bool account_scope, size_t expected)
{
    struct cmd *c = app_cmd(a, CMD_KILL_CONFIRM);
    const struct ev_kill *k = a->model->kill;

    c->on = account_scope;
    c->n = (int64_t)expected;
    if (expected != SIZE_MAX && k && k->phase == KILL_ARMED && k->account_scope == account_scope)
        c->id = k->set; /* the very ones, not only as many */
    return app_post(a, c);
}

void app_kill_all_cancel(struct app *a)
{
    tell(a, CMD_KILL_CANCEL, 0, false);
}

uint64_t app_kill_all_retry(struct app *a)
{
    return app_post(a, app_cmd(a, CMD_KILL_RETRY));
}

void app_follow(struct app *a, uint64_t sandbox)
{
    tell(a, CMD_FOLLOW, sandbox, true);
}

void app_unfollow(struct app *a, uint64_t sandbox)
{
    tell(a, CMD_FOLLOW, sandbox, false);
}

static void load(struct app *a, enum cmd_type t, uint64_t sandbox, bool whole)
{
    const struct transcript *held = model_transcript(a->model, sandbox);
    struct cmd *c = cmd_new(t, 0);
    uint64_t offset = 0;
    uint32_t index = 0;

    THREAD_ASSERT(THREAD_MAIN);
    if (t == CMD_LOAD_OLDER)
        transcript_first_key(held, &offset, &index);
    else if (!whole)
        transcript_last_key(held, &offset, &index);
    c->sandbox = sandbox;
    c->id = offset;
    c->n = index;
    c->on = whole;
    app_post(a, c);
}

void app_load_older(struct app *a, uint64_t sandbox)
{
    load(a, CMD_LOAD_OLDER, sandbox, false);
}

void app_load_newer(struct app *a, uint64_t sandbox)
{
    load(a, CMD_LOAD_NEWER, sandbox, false);
}

void app_load_begin(struct app *a, uint64_t sandbox)
{
    load(a, CMD_LOAD_NEWER, sandbox, true);
}

uint64_t app_refresh(struct app *a)
{
    return app_post(a, app_cmd(a, CMD_REFRESH));
}

void app_active(struct app *a, bool active)
{
    tell(a, CMD_ACTIVE, 0, active);
}

void app_event_add(struct app *a, int level, uint64_t sandbox, const char *text)
{
    struct cmd *c = cmd_new(CMD_SAY, 0);

    c->sandbox = sandbox;
    c->n = level;
    c->text = xstrdup(text);
    app_post(a, c);
}
