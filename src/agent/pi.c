/* Pi, `--mode json` (one process per turn) and `--mode rpc` (one for all): the same events.
 *
 * A turn of ours is what pi calls an agent run with its retries: from the first agent_start
 * to agent_settled; versions without that end with agent_end, which then says nothing of a
 * retry. How it went is said by the last answer of the model alone, the exit status is 0
 * even when all failed. Much is said more than once: text and usage count at message_end,
 * where the text is whole; the copies in message_update, turn_end and agent_end are not
 * looked at. */
#include "pi_priv.h"

#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *pi_new(void)
{
    return xcalloc(1, sizeof(struct pi));
}

static void reset_turn(struct pi *p)
{
    agent_calls_release(&p->calls);
    agent_ids_clear(&p->counted);
    free(p->stop);
    free(p->error);
    p->stop = p->error = NULL;
    p->in_message = p->settles = false;
}

static void pi_free(void *state)
{
    struct pi *p = state;

    reset_turn(p);
    agent_asks_clear(&p->asks);
    buf_release(&p->id);
    agent_half_release(&p->half);
    free(p);
}

void pi_begin_turn(struct pi *p, struct agent_dec *d)
{
    if (agent_line_begin_turn(d))
        reset_turn(p);
}

void pi_end_turn(struct pi *p, struct agent_dec *d, bool aborted)
{
    struct agent_event ev = AGENT_EVENT(AGENT_TURN_END);

    if (!agent_dec_busy(d))
        return;
    agent_asks_end(&p->asks, d);
    agent_calls_close(&p->calls, d);
    if (aborted || str_eq(p->stop, "aborted")) {
        ev.outcome = AGENT_INTERRUPTED;
    } else if (str_eq(p->stop, "error")) {
        ev.outcome = AGENT_FAILED;
        ev.text = agent_words(p->error ? p->error : "the turn failed", &ev.http_status);
        ev.error_class = agent_classify(ev.http_status, ev.text);
    } else if (str_eq(p->stop, "length")) {
        ev.outcome = AGENT_TRUNCATED;
        ev.error_class = AGENT_ERR_OTHER;
        ev.text = xstrdup("the answer was cut at the limit of tokens");
    }
    agent_dec_emit(d, &ev);
    free(ev.text);
}

/* --- messages ---------------------------------------------------------------------- */

/* The place of a message's first line is its key: versions differ in what ids they give. */
static char *block_id(struct pi *p, int64_t index)
{
    buf_clear(&p->id);
    buf_addf(&p->id, "%llu:%lld", (unsigned long long)p->message, (long long)index);
    return (char *)buf_str(&p->id);
}

/* What the user wrote: its text alone, for a message of ours is known again by it. */
static char *user_text(const struct cJSON *content)
{
    struct buf b = BUF_INIT;

    if (json_is_string(content))
        return xstrdup(json_str_of(content));
    for (const struct cJSON *k = json_first(content); k; k = json_next(k)) {
        if (!str_eq(json_str(k, "type", NULL), "text"))
            continue;
        if (b.len)
            buf_addc(&b, '\n');
        buf_adds(&b, json_str(k, "text", ""));
    }
    return buf_detach(&b, NULL);
}

static void on_message_start(struct pi *p, struct agent_dec *d, const struct cJSON *j)
{
    const struct cJSON *m = json_get(j, "message"), *content = json_get(m, "content");
    const char *role = json_str(m, "role", "");
    struct agent_event ev = AGENT_EVENT(AGENT_USER_ECHO);

    if (str_eq(role, "assistant")) {
        p->message = agent_dec_line(d);
        p->in_message = true;
    } else if (str_eq(role, "user")) {
        ev.text = user_text(content);
        agent_dec_emit(d, &ev);
        free(ev.text);
    }
}

static void on_update(struct pi *p, struct agent_dec *d, const struct cJSON *j)
{
    const struct cJSON *e = json_get(j, "assistantMessageEvent");
    const char *type = json_str(e, "type", ""), *delta = json_str(e, "delta", "");
    struct agent_event ev = AGENT_EVENT(AGENT_TEXT);

    p->settles = !json_get(j, "message"); /* older ones repeat the message */
    if (str_eq(type, "thinking_delta"))
        ev.kind = AGENT_THINKING;
    else if (!str_eq(type, "text_delta"))
        return;
    if (!p->in_message) { /* its begin was not seen: the first update stands for it */
        p->message = agent_dec_line(d);
        p->in_message = true;
    }
    if (!*delta)
        return;
    ev.id = block_id(p, json_i64(e, "contentIndex", 0));
    ev.text = (char *)delta;
    agent_dec_emit(d, &ev);
}

static void count(struct pi *p, struct agent_dec *d, const struct cJSON *m)
{
    const struct cJSON *u = json_get(m, "usage");
    struct agent_event ev = AGENT_EVENT(AGENT_USAGE);

    ev.scope = AGENT_SCOPE_CALL;
    ev.name = (char *)json_str(m, "model", NULL);
    ev.in_tokens = agent_line_count(u, "input");
    ev.cache_read = agent_line_count(u, "cacheRead");
    ev.cache_write = agent_line_count(u, "cacheWrite");
    ev.out_tokens = agent_line_count(u, "output");
    ev.cost_usd = json_num(json_get(u, "cost"), "total", (double)NAN);
    if (!ev.in_tokens && !ev.cache_read && !ev.cache_write && !ev.out_tokens)
        return; /* an error before the model said anything */
    if (agent_ids_add(&p->counted, json_str(m, "responseId", NULL)))
        agent_dec_emit(d, &ev);
}

static void on_answer(struct pi *p, struct agent_dec *d, const struct cJSON *m)
{
    int64_t index = 0;

    if (!p->in_message)
        p->message = agent_dec_line(d);
    p->in_message = false;
    for (const struct cJSON *b = json_first(json_get(m, "content")); b; b = json_next(b)) {
        const char *type = json_str(b, "type", "");
        bool text = str_eq(type, "text"), thinking = str_eq(type, "thinking");
        struct agent_event ev = AGENT_EVENT(text ? AGENT_TEXT : AGENT_THINKING);

        ev.id = block_id(p, index++);
        ev.text = (char *)json_str(b, text ? "text" : "thinking", "");
        ev.mode = AGENT_REPLACE;
        ev.final = true;
        if (text || (thinking && *ev.text))
            agent_dec_emit(d, &ev);
    }
    count(p, d, m);
    free(p->stop);
    free(p->error);
    p->stop = xstrdup(json_str(m, "stopReason", NULL));
    p->error = xstrdup(json_str(m, "errorMessage", NULL));
}

static void on_message_end(struct pi *p, struct agent_dec *d, const struct cJSON *j)
{
    const struct cJSON *m = json_get(j, "message");

    if (!str_eq(json_str(m, "role", NULL), "assistant"))
        return;
    pi_begin_turn(p, d);
    on_answer(p, d, m);
}

/* --- tools ------------------------------------------------------------------------- */

static void on_tool_start(struct pi *p, struct agent_dec *d, const struct cJSON *j)
{
    agent_calls_begin(&p->calls, d, json_str(j, "toolCallId", NULL),
                      json_str(j, "toolName", NULL), NULL, json_get(j, "args"));
}

static void on_tool_update(struct pi *p, struct agent_dec *d, const struct cJSON *j)
{
    const char *id = json_str(j, "toolCallId", NULL);
    struct agent_event ev = AGENT_EVENT(AGENT_TOOL);
    struct agent_call *t;

    if (!id)
        return;
    t = agent_calls_at(&p->calls, id);
    agent_call_set(t, json_str(j, "toolName", NULL), NULL);
    ev.output = agent_calls_text(json_path(j, "partialResult.content"));
    if (agent_call_news(t, ev.output, NULL))
        agent_call_emit(d, t, &ev);
    free(ev.output);
}

/* The status of a command: a field of newer versions, the last line of older ones. */
static int exit_code_of(const struct cJSON *result, const char *output)
{
    int64_t code = json_i64(json_get(result, "structuredContent"), "exit_code", -1);
    const char *said = NULL;
    int n;

    for (const char *s = output; (s = strstr(s, "Command exited with code ")); s++)
        said = s;
    if (code < 0 && said && sscanf(said, "Command exited with code %5d", &n) == 1)
        code = n;
    return code >= 0 && code <= 0xffff ? (int)code : -1;
}

static void on_tool_end(struct pi *p, struct agent_dec *d, const struct cJSON *j)
{
    const char *id = json_str(j, "toolCallId", NULL);
    const struct cJSON *result = json_get(j, "result");
    struct agent_event ev = AGENT_EVENT(AGENT_TOOL);
    struct agent_call *t;
    bool failed = json_bool(j, "isError", false);

    if (!id)
        return;
    t = agent_calls_at(&p->calls, id);
    agent_call_set(t, json_str(j, "toolName", NULL), NULL);
    t->state = failed ? AGENT_TOOL_FAILED : AGENT_TOOL_OK;
    ev.output = agent_calls_text(json_get(result, "content"));
    ev.exit_code = exit_code_of(result, failed ? ev.output : "");
    agent_call_emit(d, t, &ev);
    free(ev.output);
}

/* --- notices, the end of a turn ------------------------------------------------------ */

static void on_retry(struct agent_dec *d, const struct cJSON *j)
{
    struct agent_event ev = AGENT_EVENT(AGENT_NOTICE);

    ev.level = AGENT_WARN;
    ev.retry_attempt = agent_line_int(j, "attempt");
    ev.retry_max = agent_line_int(j, "maxAttempts");
    ev.retry_delay_ms = json_num(j, "delayMs", 0);
    ev.text = agent_words(json_str(j, "errorMessage", "error"), &ev.http_status);
    ev.error_class = agent_classify(ev.http_status, ev.text);
    agent_dec_emit(d, &ev);
    free(ev.text);
}

static size_t length_of(const struct cJSON *list)
{
    size_t n = 0;

    for (const struct cJSON *k = json_first(list); k; k = json_next(k))
        n++;
    return n;
}

static void on_queue(struct agent_dec *d, const struct cJSON *j)
{
    size_t steer = length_of(json_get(j, "steering")),
           later = length_of(json_get(j, "followUp"));
    char text[96];

    if (!steer && !later) {
        agent_dec_skip(d);
        return;
    }
    snprintf(text, sizeof(text), "the agent has %zu message%s waiting", steer + later,
             steer + later == 1 ? "" : "s");
    agent_line_notice(d, AGENT_INFO, text);
}

static void on_session(struct agent_dec *d, const struct cJSON *j)
{
    struct agent_event ev = AGENT_EVENT(AGENT_SESSION);

    ev.id = (char *)json_str(j, "id", NULL);
    agent_dec_emit(d, &ev);
}

static void on_agent_end(struct pi *p, struct agent_dec *d, const struct cJSON *j)
{
    if (!json_get(j, "willRetry"))
        pi_end_turn(p, d, false);
}

/* It repeats all of the run and may well be too long: how the version speaks tells whether
 * something else ends the turn. */
static bool pi_dropped(void *state, struct agent_dec *d, const char *head, size_t len)
{
    static const char agent_end[] = "{\"type\":\"agent_end\"";
    struct pi *p = state;

    if (len < sizeof(agent_end) - 1 || memcmp(head, agent_end, sizeof(agent_end) - 1) != 0)
        return false;
    if (!p->settles)
        pi_end_turn(p, d, false);
    return true;
}

/* --- lines --------------------------------------------------------------------------- */

static void use(struct pi *p, struct agent_dec *d, const char *type, const struct cJSON *j)
{
    if (str_eq(type, "message_update"))
        on_update(p, d, j);
    else if (str_eq(type, "message_start"))
        on_message_start(p, d, j);
    else if (str_eq(type, "message_end"))
        on_message_end(p, d, j);
    else if (str_eq(type, "tool_execution_start"))
        on_tool_start(p, d, j);
    else if (str_eq(type, "tool_execution_update"))
        on_tool_update(p, d, j);
    else if (str_eq(type, "tool_execution_end"))
        on_tool_end(p, d, j);
    else if (str_eq(type, "agent_start"))
        pi_begin_turn(p, d);
    else if (str_eq(type, "agent_end"))
        on_agent_end(p, d, j);
    else if (str_eq(type, "agent_settled"))
        pi_end_turn(p, d, json_bool(j, "aborted", false));
    else if (str_eq(type, "auto_retry_start"))
        on_retry(d, j);
    else if (str_eq(type, "queue_update"))
        on_queue(d, j);
    else if (str_eq(type, "session"))
        on_session(d, j);
    else if (str_eq(type, "response"))
        pi_response(p, d, j);
    else if (str_eq(type, "extension_ui_request"))
        pi_ui_request(p, d, j);
    else if (str_eq(type, "extension_error"))
        agent_line_notice(d, AGENT_WARN, json_str(j, "error", "an extension of pi failed"));
}

static void pi_line(void *state, struct agent_dec *d, const char *s, size_t len)
{
    struct pi *p = state;
    const char *line = agent_half_join(&p->half, "\"delta\":\"", s, &len);
    struct cJSON *j = agent_line_json(d, line, len);

    if (!j)
        return;
    agent_dec_set_time(d, agent_line_count(json_get(j, "message"), "timestamp"));
    use(p, d, json_str(j, "type", ""), j);
    json_free(j);
}

static void pi_end(void *state, struct agent_dec *d, int code, int sig, const char *stderr_tail)
{
    struct pi *p = state;

    agent_dec_place_exit(d);
    agent_asks_end(&p->asks, d);
    agent_calls_close(&p->calls, d);
    agent_end_error(d, code, sig, stderr_tail, str_eq(p->stop, "error") ? p->error : NULL, 0);
    reset_turn(p);
}

const struct agent_adapter agent_pi = {
    .name = "pi",
    .mode = AGENT_RPC,
    .echoes = true,
    .pty = false,
    .state_new = pi_new,
    .state_free = pi_free,
    .line = pi_line,
    .dropped = pi_dropped,
    .end = pi_end,
    .hello = "{\"id\":\"hello\",\"type\":\"get_state\"}\n", /* tells its session's id */
    .encode_message = pi_message,
    .encode_interrupt = pi_interrupt,
    .encode_answer = pi_answer,
    .encode_steer = pi_steer,
};

const struct agent_adapter agent_pi_json = {
    .name = "pi-json",
    .mode = AGENT_ONE_RUN,
    .echoes = false,
    .pty = false,
    .state_new = pi_new,
    .state_free = pi_free,
    .line = pi_line,
    .dropped = pi_dropped,
    .end = pi_end,
    .encode_message = agent_line_stdin,
    .encode_interrupt = NULL,
};
