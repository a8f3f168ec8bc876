/* OpenCode, `opencode run --format json`: one process per turn. A tool is heard of when it
 * has ended, text when it is whole; there is no event for the end of a turn, the process
 * ends. While it tries again after an error it prints nothing. */
#include "opencode_priv.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

static void *opencode_new(void)
{
    return xcalloc(1, sizeof(struct opencode));
}

void opencode_reset_turn(struct opencode *o)
{
    agent_calls_release(&o->calls);
    agent_ids_clear(&o->counted);
    free(o->error);
    free(o->reason);
    o->error = o->reason = NULL;
    o->http_status = 0;
    o->cls = AGENT_ERR_NONE;
    o->aborted = false;
}

static void opencode_free(void *state)
{
    struct opencode *o = state;

    opencode_reset_turn(o);
    free(o->session);
    free(o);
}

static void on_session(struct opencode *o, struct agent_dec *d, const struct cJSON *j)
{
    const char *id = json_str(j, "sessionID", NULL);
    struct agent_event ev = AGENT_EVENT(AGENT_SESSION);
    bool first = !agent_dec_busy(d);

    if (!first && (!id || str_eq(id, o->session)))
        return;
    if (id) {
        str_set(&o->session, id);
        ev.id = o->session;
        agent_dec_emit(d, &ev);
    } else {
        agent_dec_skip(d);
    }
    if (agent_line_begin_turn(d))
        opencode_reset_turn(o);
}

static void on_text(struct agent_dec *d, const struct cJSON *part, enum agent_kind kind)
{
    struct agent_event ev = AGENT_EVENT(kind);

    ev.id = (char *)json_str(part, "id", NULL);
    ev.text = (char *)json_str(part, "text", "");
    ev.mode = AGENT_REPLACE;
    ev.final = true;
    agent_dec_emit(d, &ev);
}

void opencode_tool(struct opencode *o, struct agent_dec *d, const struct cJSON *part,
                   const char *parent)
{
    const struct cJSON *st = json_get(part, "state"), *input = json_get(st, "input");
    const char *id = json_str(part, "callID", json_str(part, "id", NULL));
    const char *error = json_str(st, "error", NULL), *title = json_str(st, "title", NULL);
    const char *status = json_str(st, "status", "");
    int64_t code = json_i64(json_get(st, "metadata"), "exit", -1);
    struct agent_event ev = AGENT_EVENT(AGENT_TOOL);
    struct agent_call *t;
    bool denied, running = str_eq(status, "running") || str_eq(status, "pending");

    if (!id)
        return;
    t = agent_calls_at(&o->calls, id);
    agent_call_set(t, json_str(part, "tool", NULL), parent);
    ev.exit_code = code >= 0 && code <= 0xffff ? (int)code : -1;
    denied = error &&
             (strstr(error, "rejected permission") || strstr(error, "a rule which prevents"));
    if (str_eq(status, "error"))
        t->state = denied ? AGENT_TOOL_DENIED : AGENT_TOOL_FAILED;
    else if (!running) /* a command that failed is completed too */
        t->state = ev.exit_code > 0 ? AGENT_TOOL_FAILED : AGENT_TOOL_OK;
    ev.title = agent_calls_title(input, title && *title ? title : NULL);
    ev.input = json_text(input);
    ev.output = (char *)json_str(st, "output", error);
    if (running)
        ev.output = (char *)json_str(json_get(st, "metadata"), "output", NULL);
    if (!running || agent_call_news(t, ev.output, ev.title))
        agent_call_emit(d, t, &ev);
    free(ev.title);
    free(ev.input);
}

void opencode_step_finish(struct opencode *o, struct agent_dec *d, const struct cJSON *part,
                          const char *parent)
{
    const struct cJSON *tokens = json_get(part, "tokens"), *cache = json_get(tokens, "cache");
    struct agent_event ev = AGENT_EVENT(AGENT_USAGE);
    int64_t total = agent_line_count(tokens, "total"), thought;

    if (!parent)
        str_set(&o->reason, json_str(part, "reason", NULL));
    if (!agent_ids_add(&o->counted, json_str(part, "id", NULL)))
        return;
    ev.scope = AGENT_SCOPE_CALL;
    ev.parent = (char *)parent;
    ev.in_tokens = agent_line_count(tokens, "input");
    ev.cache_read = agent_line_count(cache, "read");
    ev.cache_write = agent_line_count(cache, "write");
    ev.out_tokens = agent_line_count(tokens, "output");
    /* versions differ in whether thinking is part of the output: the total tells */
    thought = agent_line_count(tokens, "reasoning");
    if (thought &&
        total == ev.in_tokens + ev.cache_read + ev.cache_write + ev.out_tokens + thought)
        ev.out_tokens += thought;
    ev.cost_usd = json_num(part, "cost", (double)NAN);
    agent_dec_emit(d, &ev);
}

void opencode_error(struct opencode *o, const struct cJSON *e)
{
    const struct cJSON *data = json_get(e, "data");
    const char *name = json_str(e, "name", "");
    const char *text = json_str(data, "message", json_str(e, "message", name));

    free(o->error);
    o->http_status = agent_line_int(data, "statusCode");
    o->error = agent_words(*text ? text : "the turn failed", &o->http_status);
    o->cls = agent_classify(o->http_status, o->error);
    if (str_eq(name, "ProviderAuthError"))
        o->cls = AGENT_ERR_AUTH;
    o->aborted = str_eq(name, "MessageAbortedError");
    if (str_eq(name, "MessageOutputLengthError"))
        str_set(&o->reason, "length");
}

static void opencode_line(void *state, struct agent_dec *d, const char *s, size_t len)
{
    struct opencode *o = state;
    struct cJSON *j = agent_line_json(d, s, len);
    const struct cJSON *part = json_get(j, "part");
    const char *type = json_str(j, "type", NULL);

    if (type) {
        agent_dec_set_time(d, agent_line_count(j, "timestamp"));
        on_session(o, d, j);
        if (str_eq(type, "text"))
            on_text(d, part, AGENT_TEXT);
        else if (str_eq(type, "reasoning"))
            on_text(d, part, AGENT_THINKING);
        else if (str_eq(type, "tool_use"))
            opencode_tool(o, d, part, NULL);
        else if (str_eq(type, "step_finish"))
            opencode_step_finish(o, d, part, NULL);
        else if (str_eq(type, "error"))
            opencode_error(o, json_get(j, "error"));
    }
    json_free(j);
}

/* Did the stream say enough for a status of 0 to be believed? A run that stops at a refused
 * tool ends like a good one. */
static bool finished(const struct opencode *o)
{
    return o->reason && !str_eq(o->reason, "tool-calls");
}

void opencode_end_turn(struct opencode *o, struct agent_dec *d)
{
    struct agent_event ev = AGENT_EVENT(AGENT_TURN_END);

    if (o->aborted)
        ev.outcome = AGENT_INTERRUPTED;
    else if (str_eq(o->reason, "length"))
        ev.outcome = AGENT_TRUNCATED;
    else if (o->error)
        ev.outcome = AGENT_FAILED;
    if (ev.outcome == AGENT_TRUNCATED)
        ev.text = o->error ? o->error : (char *)"the answer was cut at the limit of tokens";
    else if (ev.outcome == AGENT_FAILED)
        ev.text = o->error;
    ev.error_class = ev.outcome == AGENT_FAILED      ? o->cls
                     : ev.outcome == AGENT_TRUNCATED ? AGENT_ERR_OTHER
                                                     : AGENT_ERR_NONE;
    ev.http_status = o->http_status;
    agent_dec_emit(d, &ev);
}

static void opencode_end(void *state, struct agent_dec *d, int code, int sig,
                         const char *stderr_tail)
{
    struct opencode *o = state;

    agent_dec_place_exit(d);
    agent_calls_close(&o->calls, d);
    if (agent_dec_busy(d) && !sig && (o->error || (code == 0 && finished(o))))
        opencode_end_turn(o, d);
    agent_end_error(d, code, sig, stderr_tail, o->error, o->http_status);
    opencode_reset_turn(o);
}

const struct agent_adapter agent_opencode = {
    .name = "opencode",
    .mode = AGENT_ONE_RUN,
    .echoes = false,
    .pty = false,
    .state_new = opencode_new,
    .state_free = opencode_free,
    .line = opencode_line,
    .end = opencode_end,
    .encode_message = agent_line_stdin,
    .encode_interrupt = NULL,
};
