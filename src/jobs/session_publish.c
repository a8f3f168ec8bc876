/* A claimed message on its way into the inbox: the script of its run where it has one, the upload,
 * the Move; or into the input of an adopted process. */
#include "session_follow.h"
#include "session_pair.h"
#include "session_priv.h"
#include "session_raw.h"
#include "session_relay.h"
#include "session_start.h"

#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void publish_again(void *ctx)
{
    struct session *s = ctx;

    s->re.timer = 0;
    session_publish(s);
}

static void trouble(struct session *s, const struct err *e)
{
    struct relay *re = &s->re;

    if (re->attempt == 3)
        session_say(s, AGENT_WARN, "a message could not be sent yet, trying again: %s",
                    e->text);
    session_timer(s, &re->timer, net_backoff_ms(re->attempt++, 200, 5000), publish_again);
}

static void on_moved(void *ctx, const struct envd_result *r)
{
    struct session *s = ctx;
    struct relay *re = &s->re;

    re->call = 0;
    if (re->leaving)
        s->j->goodbyes--;
    re->leaving = false;
    if (r->err.code) {
        trouble(s, &r->err);
        return;
    }
    re->step = RE_SENT;
    session_relay_state(s, re->msg.id, MSG_QUEUED, MSG_SENT, NULL);
    session_life_wake(s);
    session_provision_sent(s);
    session_timer(s, &re->timer, session_taken_delay(s), session_taken_check);
}

static void on_uploaded(void *ctx, const struct envd_result *r)
{
    struct session *s = ctx;
    char *tmp, *to;

    s->re.call = 0;
    if (r->err.code) {
        trouble(s, &r->err);
        return;
    }
    tmp = session_tmp_path(s, s->re.id);
    to = xasprintf("%s/" SESSION_INBOX "/%s", s->dir, s->re.name);
    s->re.moving = true;
    s->re.opened = s->out.n_opened;
    s->re.call = envd_move(s->envd, tmp, to, on_moved, s);
    free(tmp);
    free(to);
}

static void upload(struct session *s)
{
    struct relay *re = &s->re;
    struct buf bytes = BUF_INIT;
    struct err e = {0};
    char *tmp;

    if (s->ad->encode_message(re->msg.text, strlen(re->msg.text), &bytes, &e) != 0) {
        session_relay_failed(s, e.text);
    } else {
        tmp = session_tmp_path(s, s->re.id);
        re->call = envd_write(s->envd, tmp, bytes.p, bytes.len, on_uploaded, s);
        free(tmp);
    }
    buf_release(&bytes);
}

static void on_script(void *ctx, const struct envd_result *r)
{
    struct session *s = ctx;

    s->re.call = 0;
    if (r->err.code)
        trouble(s, &r->err);
    else
        upload(s);
}

/* The script of this message's run, when it has one of its own: whose turn it is, or that it
 * goes on with the session of the run before. Empty: it has none. */
static int own_script(struct session *s, struct buf *text, struct err *e)
{
    struct session_cli cli;

    if (s->pair)
        return session_pair_script(s, &s->re.msg, s->re.id, text, e);
    cli = session_cli_of(s, s->out.agent_session);
    if (s->ad->mode == AGENT_ONE_RUN && cli.resume_id && cli.resume)
        session_cli_script(text, &cli);
    return 0;
}

void session_publish(struct session *s)
{
    struct buf text = BUF_INIT;
    struct err e = {0};
    char name[96], *path;

    if (s->raw) {
        session_raw_send(s, s->re.msg.text);
    } else if (!s->envd || !s->dir) {
        session_relay_free_slot(s); /* the claim runs out by itself */
    } else if (own_script(s, &text, &e) != 0) {
        session_relay_failed(s, e.text);
    } else if (!text.len) {
        upload(s);
    } else {
        snprintf(name, sizeof(name), SESSION_CLI_FOR_FMT, s->re.id);
        path = session_path(s, name);
        s->re.call = envd_write(s->envd, path, text.p, text.len, on_script, s);
        free(path);
    }
    buf_release(&text);
}

void session_relay_input(struct session *s, enum session_input how, const char *why)
{
    struct relay *re = &s->re;

    if (re->step != RE_PUBLISH)
        return;
    if (how == INPUT_REFUSED) {
        session_relay_failed(s, why);
        return;
    }
    session_relay_state(s, re->msg.id, MSG_QUEUED, MSG_SENT, NULL);
    if (how == INPUT_TAKEN) {
        session_raw_echo(s, re->msg.text, re->msg.key);
        session_wait_placed(s, re->msg.id, s->raw->from); /* its answer may be here already */
        session_relay_delivered(s, re->msg.id);
    } else {
        session_relay_unconfirmed(s, why);
        session_relay(s);
    }
}
