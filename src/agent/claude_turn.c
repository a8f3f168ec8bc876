/* Claude Code's stream, second half: tools, usage, and how a turn ended. */
#include "claude_priv.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- tools ------------------------------------------------------------------------ */

/* A failing command's output begins with its status; qwen's is a list of facts. */
static int exit_code_of(const struct claude *c, const char *output, bool failed)
{
    const char *at = c->qwen ? strstr(output, "\nExit Code: ") : NULL;
    int code = -1, used = 0;

    if (at && sscanf(at, "\nExit Code: %5d%n", &code, &used) == 1)
        return code >= 0 ? code : -1;
    if (!failed || sscanf(output, "Exit code %3d%n", &code, &used) != 1)
        return -1;
    return output[used] == '\n' || output[used] == 0 ? code : -1;
}

void claude_tool_result(struct claude *c, struct agent_dec *d, const struct cJSON *block,
                        const char *parent)
{
    const char *id = json_str(block, "tool_use_id", NULL);
    bool failed = json_bool(block, "is_error", false);
    struct agent_event ev = AGENT_EVENT(AGENT_TOOL);
    struct agent_call *t;

    if (!id)
        return;
    t = agent_calls_at(&c->tools, id);
    agent_call_set(t, NULL, parent);
    if (t->state != AGENT_TOOL_DENIED)
        t->state = failed ? AGENT_TOOL_FAILED : AGENT_TOOL_OK;
    ev.output = agent_calls_text(json_get(block, "content"));
    ev.exit_code = exit_code_of(c, ev.output, failed);
    agent_call_emit(d, t, &ev);
    free(ev.output);
    agent_asks_call_ended(&c->asks, d, id);
}

void claude_denied(struct claude *c, struct agent_dec *d, const struct cJSON *j, bool notice)
{
    const char *id = json_str(j, "tool_use_id", NULL), *message = json_str(j, "message", NULL);
    const char *name = json_str(j, "tool_name", NULL);
    struct agent_event ev = AGENT_EVENT(AGENT_TOOL);
    struct agent_call *t = id ? agent_calls_at(&c->tools, id) : NULL;
    char *text;

    if (t && t->state != AGENT_TOOL_DENIED) {
        t->state = AGENT_TOOL_DENIED;
        agent_call_set(t, name, NULL);
        ev.output = (char *)message;
        agent_call_emit(d, t, &ev);
    }
    if (!notice)
        return;
    text = xasprintf("%s was denied: %s", name ? name : "a tool",
                     message ? message : "no permission");
    agent_line_notice(d, AGENT_WARN, text);
    free(text);
}

/* --- tried again ----------------------------------------------------------------------- */

void claude_retry(struct agent_dec *d, const struct cJSON *j)
{
    struct agent_event ev = AGENT_EVENT(AGENT_NOTICE);
    const char *what = json_str(j, "error", "error");

    ev.level = AGENT_WARN;
    ev.retry_attempt = agent_line_int(j, "attempt");
    ev.retry_max = agent_line_int(j, "max_retries");
    ev.retry_delay_ms = json_num(j, "retry_delay_ms", 0);
    ev.http_status = agent_line_int(j, "error_status");
    ev.error_class = claude_error_class(ev.http_status, what, NULL);
    if (!ev.http_status && ev.error_class == AGENT_ERR_OTHER)
        ev.error_class = AGENT_ERR_NETWORK;
    ev.text = (char *)what;
    agent_dec_emit(d, &ev);
}

/* Qwen does not say why. */
void claude_qwen_retry(struct agent_dec *d, const struct cJSON *j)
{
    struct agent_event ev = AGENT_EVENT(AGENT_NOTICE);

    ev.level = AGENT_WARN;
    ev.retry_attempt = agent_line_int(j, "attempt");
    ev.retry_max = agent_line_int(j, "maxRetries");
    ev.retry_delay_ms = json_num(j, "delayMs", 0);
    ev.text = (char *)"the model's answer failed, it is asked again";
    agent_dec_emit(d, &ev);
}

/* --- usage ---------------------------------------------------------------------------- */

/* Counts come from outside: no sum that overflows. */
static void add_tokens(int64_t *sum, const struct cJSON *j, const char *name)
{
    if (*sum < INT64_MAX / 2)
        *sum += agent_line_count(j, name);
}

/* Tokens and cost per model since the last result; false when it names none. */
static bool usage_by_model(const struct cJSON *models, struct agent_event *ev)
{
    const struct cJSON *m = json_first(models);

    ev->cost_usd = 0;
    if (!m)
        return false;
    for (; m; m = json_next(m)) {
        add_tokens(&ev->in_tokens, m, "inputTokens");
        add_tokens(&ev->cache_read, m, "cacheReadInputTokens");
        add_tokens(&ev->cache_write, m, "cacheCreationInputTokens");
        add_tokens(&ev->out_tokens, m, "outputTokens");
        ev->cost_usd += json_num(m, "costUSD", (double)NAN);
    }
    return true;
}

/* What the process has cost so far, for whoever adds up (AGENT_PROCESS_TOTAL): an older
 * claude says no more, and a decoder that begins in the middle knows no earlier value. */
static void emit_total_cost(struct agent_dec *d, double total)
{
    struct agent_event ev = AGENT_EVENT(AGENT_USAGE);

    ev.scope = AGENT_SCOPE_SESSION_TOTAL;
    ev.id = (char *)AGENT_PROCESS_TOTAL;
    ev.cost_usd = total;
    agent_dec_emit(d, &ev);
}

/* Qwen counts what its session has used, also before it was resumed; what came out of a
 * cache is part of the input. */
static void emit_qwen_usage(struct agent_dec *d, const struct cJSON *j)
{
    const struct cJSON *u = json_get(j, "usage");
    struct agent_event ev = AGENT_EVENT(AGENT_USAGE);

    ev.scope = AGENT_SCOPE_SESSION_TOTAL;
    ev.id = (char *)json_str(j, "session_id", "");
    ev.cache_read = agent_line_count(u, "cache_read_input_tokens");
    ev.in_tokens = agent_line_without(u, "input_tokens", ev.cache_read);
    ev.out_tokens = agent_line_count(u, "output_tokens");
    agent_dec_emit(d, &ev);
}

static void emit_usage(struct agent_dec *d, const struct cJSON *j)
{
    const struct cJSON *models = json_get(j, "model_usage_since_last_result");
    const struct cJSON *u = json_get(j, "usage");
    double total = json_num(j, "total_cost_usd", (double)NAN);
    struct agent_event ev = AGENT_EVENT(AGENT_USAGE);
    bool by_model = json_is_object(models);

    ev.scope = AGENT_SCOPE_TURN;
    if (!by_model || !usage_by_model(models, &ev)) {
        add_tokens(&ev.in_tokens, u, "input_tokens");
        add_tokens(&ev.cache_read, u, "cache_read_input_tokens");
        add_tokens(&ev.cache_write, u, "cache_creation_input_tokens");
        add_tokens(&ev.out_tokens, u, "output_tokens");
    }
    if (!by_model && isfinite(total))
        ev.cost_usd = 0; /* it comes with the total */
    agent_dec_emit(d, &ev);
    if (!by_model && isfinite(total) && total > 0)
        emit_total_cost(d, total);
}

/* --- the end of a turn ------------------------------------------------------------------ */

enum agent_error_class claude_error_class(int status, const char *code, const char *text)
{
    static const struct {
        const char *code;
        enum agent_error_class cls;
    } codes[] = {
        {"authentication_failed", AGENT_ERR_AUTH}, {"oauth_org_not_allowed", AGENT_ERR_AUTH},
        {"billing_error", AGENT_ERR_BILLING},      {"rate_limit", AGENT_ERR_RATE},
        {"overloaded", AGENT_ERR_OVERLOAD},        {"model_not_found", AGENT_ERR_MODEL},
    };
    enum agent_error_class cls = status ? agent_classify(status, text) : AGENT_ERR_OTHER;

    for (size_t i = 0; cls == AGENT_ERR_OTHER && i < sizeof(codes) / sizeof(codes[0]); i++)
        if (str_eq(code, codes[i].code))
            cls = codes[i].cls;
    return cls == AGENT_ERR_OTHER && !status ? agent_classify(0, text) : cls;
}

/* The words of a failed result, as a new string. */
static char *error_text(const struct claude *c, const struct cJSON *j, int *status)
{
    const char *s = json_str(j, "result", NULL);
    struct buf b = BUF_INIT;
    char *words;

    if (s && *s) {
        words = xstrdup(s);
        agent_words_mask(words);
        return words;
    }
    for (const struct cJSON *k = json_first(json_get(j, "errors")); k; k = json_next(k)) {
        if (!json_is_string(k))
            continue;
        if (b.len)
            buf_adds(&b, "; ");
        buf_adds(&b, json_str_of(k));
    }
    if (!b.len) {
        s = json_str(json_get(j, "error"), "message", NULL);
        buf_adds(&b, s ? s : json_str(j, "subtype", "the turn failed"));
    }
    words = c->qwen ? agent_words(buf_str(&b), status) : buf_detach(&b, NULL);
    buf_release(&b);
    agent_words_mask(words);
    return words;
}

static enum agent_outcome outcome_of(const struct claude *c, const struct cJSON *j)
{
    const char *sub = json_str(j, "subtype", ""), *stop = json_str(j, "stop_reason", NULL);
    bool failed = json_bool(j, "is_error", false) || str_starts(sub, "error");

    if (str_starts(json_str(j, "terminal_reason", ""), "aborted"))
        return AGENT_INTERRUPTED;
    if (failed && c->interrupted)
        return AGENT_INTERRUPTED;
    if (str_eq(c->error, "max_output_tokens") || str_eq(stop, "max_tokens"))
        return AGENT_TRUNCATED;
    return failed ? AGENT_FAILED : AGENT_OK;
}

/* A built-in command answers in the result alone. */
static void speak_result(struct agent_dec *d, const struct cJSON *j)
{
    struct agent_event ev = AGENT_EVENT(AGENT_TEXT);
    const char *uuid = json_str(j, "uuid", "");

    ev.text = (char *)json_str(j, "result", "");
    if (!*ev.text)
        return;
    ev.id = xasprintf("result:%s", uuid);
    ev.mode = AGENT_REPLACE;
    ev.final = true;
    agent_dec_emit(d, &ev);
    free(ev.id);
}

void claude_result(struct claude *c, struct agent_dec *d, const struct cJSON *j)
{
    struct agent_event ev = AGENT_EVENT(AGENT_TURN_END);
    const struct cJSON *k = json_first(json_get(j, "permission_denials"));
    const char *uuid = json_str(j, "uuid", NULL);

    if (uuid && str_eq(uuid, c->last_result))
        return; /* said again */
    str_set(&c->last_result, uuid);
    ev.outcome = outcome_of(c, j);
    if (ev.outcome == AGENT_OK && !c->spoke)
        speak_result(d, j);
    for (; k; k = json_next(k))
        claude_denied(c, d, k, false);
    agent_asks_end(&c->asks, d);
    agent_calls_close(&c->tools, d);
    if (c->qwen)
        emit_qwen_usage(d, j);
    else
        emit_usage(d, j);
    ev.http_status = agent_line_int(j, "api_error_status");
    if (ev.outcome == AGENT_FAILED || ev.outcome == AGENT_TRUNCATED) {
        ev.text = error_text(c, j, &ev.http_status);
        ev.error_class = ev.outcome == AGENT_TRUNCATED
                             ? AGENT_ERR_OTHER
                             : claude_error_class(ev.http_status, c->error, ev.text);
    }
    agent_dec_emit(d, &ev);
    free(ev.text);
}
