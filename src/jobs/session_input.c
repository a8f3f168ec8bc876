/* Messages to an adopted process: they go to its input, a terminal's or a pipe's, and into
 * the record. */
#include "foreign_priv.h"
#include "session_out.h"
#include "session_priv.h"
#include "session_raw.h"
#include "session_relay.h"

#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

enum { GIVE_UP_MS = 8000 };

void session_input_release(struct session_raw *r)
{
    reach_cancel(&r->reach);
    envd_free(r->envd);
    free(r->text);
    r->envd = NULL;
    r->text = NULL;
    r->call = 0;
}

static void give(struct session *s);

/* The record is another instance's: the message goes into it without a byte of output. */
static void echo_into_record(struct session *s, const char *text)
{
    struct agent_event ev = AGENT_EVENT(AGENT_USER_ECHO);
    struct buf json = BUF_INIT;
    struct st_event *e = xcalloc(1, sizeof(*e));
    struct st_append a = {.run = s->out.run.id, .offset = s->out.run.stored, .events = e,
                          .n_events = 1};

    ev.offset = e->offset = a.offset ? a.offset - 1 : 0;
    /* behind those of the writer at that place, and other readers' by chance */
    ev.index = e->index = SESSION_ECHO_INDEX + 1024 + (uint32_t)(clock_wall_ms() & 0xFFFFFF);
    ev.text = (char *)text;
    ev.time_ms = clock_wall_ms();
    agent_event_to_json(&ev, &json);
    e->json = buf_detach(&json, &e->len);
    store_append(s->j->o.store, &a, (struct st_to){NULL, 0});
}

void session_raw_echo(struct session *s, const char *text, const char *key)
{
    if (s->out.open)
        session_out_echo(s, s->out.pos, text, key);
    else if (s->out.run.id)
        echo_into_record(s, text);
}

static void input_done(struct session *s, enum session_input how, const char *why)
{
    if (how != INPUT_TAKEN)
        session_say(s, AGENT_WARN, "%s: %s", how == INPUT_REFUSED ? "not sent" : "perhaps not sent",
                    why);
    session_input_release(s->raw);
    session_relay_input(s, how, why);
}

/* The sandbox itself says no; after a proxy's 5xx nobody knows what became of it. */
static bool is_its_no(const struct envd_result *res)
{
    struct cJSON *j = res->len ? json_parse(res->body, res->len, NULL) : NULL;
    bool no = json_str(j, "code", NULL) != NULL;

    json_free(j);
    return no;
}

static bool was_not_let_in(const struct err *e)
{
    return e->code == ERR_AUTH || e->code == ERR_BUSY || e->code == ERR_LIMIT ||
           e->code == ERR_UNTRUSTED;
}

static void on_given(void *ctx, const struct envd_result *res)
{
    struct session *s = ctx;
    struct session_raw *r = s->raw;
    const struct err *e = &res->err;

    r->call = 0;
    if (!e->code) {
        input_done(s, INPUT_TAKEN, NULL);
    } else if (e->code == ERR_NETWORK || e->code == ERR_TIMEOUT) {
        input_done(s, INPUT_UNKNOWN, "the connection broke while it was sent: it may have arrived");
    } else if (e->code == ERR_NOTFOUND) {
        input_done(s, INPUT_REFUSED, "the process has ended");
    } else if (was_not_let_in(e)) {
        input_done(s, INPUT_REFUSED, e->text);
    } else if (!is_its_no(res)) {
        input_done(s, INPUT_UNKNOWN, e->text);
    } else if (!r->tried_other) { /* a terminal wants its input under another name */
        r->tried_other = true;
        r->as_pty = !r->as_pty;
        give(s);
    } else {
        input_done(s, INPUT_REFUSED, "the process takes no input: it was started without one, or "
                                     "its input is closed");
    }
}

static void give(struct session *s)
{
    struct session_raw *r = s->raw;
    char *line = xasprintf("%s%s", r->text, r->as_pty ? "\r" : "\n");

    r->call = r->as_pty ? envd_send_pty(r->envd, r->pid, line, strlen(line), on_given, s)
                        : envd_send_input(r->envd, r->pid, line, strlen(line), on_given, s);
    secret_wipe(line, strlen(line));
    free(line);
}

/* Is it still the process that the user meant? */
static void on_input_list(void *ctx, const struct envd_result *res)
{
    struct session *s = ctx;
    struct session_raw *r = s->raw;
    struct proc_list l = {0};
    struct err e = res->err;
    const struct proc *p = NULL;

    r->call = 0;
    if (!e.code && proc_list_parse(&l, res->body, res->len, r->pid, &e) == 0)
        p = proc_list_find(&l, r->pid);
    if (e.code)
        input_done(s, INPUT_REFUSED, e.text);
    else if (!p || p->ident != r->ident)
        input_done(s, INPUT_REFUSED, "the process has ended");
    else
        give(s);
    proc_list_release(&l);
}

static void on_reached(void *ctx, struct envd *take, const struct err *e)
{
    struct session *s = ctx;

    if (!take) {
        input_done(s, INPUT_REFUSED, e->text);
        return;
    }
    s->raw->envd = take;
    s->raw->call = envd_list(take, on_input_list, s);
}

void session_raw_send(struct session *s, const char *text)
{
    struct session_raw *r = s->raw;
    struct err e = {0};

    r->text = xstrdup(text);
    r->from = session_wait_place(s) + 1;
    r->as_pty = r->saw_pty;
    r->tried_other = false;
    if (r->over)
        err_set(&e, ERR_CONFLICT, "the process has ended");
    if (e.code || reach_ask(&r->reach, s->j, s->row, GIVE_UP_MS, on_reached, s, &e))
        input_done(s, INPUT_REFUSED, e.text);
}
