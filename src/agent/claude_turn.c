/* Claude Code's stream, second half: tools, usage, and how a turn ended. */
#include "claude_priv.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- tools ------------------------------------------------------------------------ */

void claude_tool_start(struct claude *c, struct agent_dec *d, const struct cJSON *block,
                       const char *parent)
{
    const char *id = json_str(block, "id", NULL);
    const struct cJSON *input = json_get(block, "input");
    struct agent_event ev = AGENT_EVENT(AGENT_TOOL);
    struct agent_call *t;

    if (!id)
        return;
    t = agent_calls_at(&c->tools, id);
    agent_call_set(t, json_str(block, "name", NULL), parent);
    ev.title = agent_calls_title(input, NULL);
    ev.input = input ? json_text(input) : NULL;
    agent_call_emit(d, t, &ev);
    free(ev.title);
    free(ev.input);
}

/* A failing command's output begins with its status. */
static int exit_code_of(const char *output)
{
    int code = -1, used = 0;

    if (sscanf(output, "Exit code %3d%n", &code, &used) != 1)
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
    if (failed)
        ev.exit_code = exit_code_of(ev.output);
    agent_call_emit(d, t, &ev);
    free(ev.output);
    claude_ask_call_ended(c, d, id);
}

void claude_denied(struct claude *c, struct agent_dec *d, const struct cJSON *j, bool notice)
{
    const char *id = json_str(j, "tool_use_id", NULL), *message = json_str(j, "message", NULL);
    const char *name = json_str(j, "tool_name", NULL);
    struct agent_event tool = AGENT_EVENT(AGENT_TOOL), ev = AGENT_EVENT(AGENT_NOTICE);
    struct agent_call *t = id ? agent_calls_at(&c->tools, id) : NULL;

    if (t && t->state != AGENT_TOOL_DENIED) {
        t->state = AGENT_TOOL_DENIED;
        agent_call_set(t, name, NULL);
        tool.output = (char *)message;
        agent_call_emit(d, t, &tool);
    }
    if (!notice)
        return;
    ev.level = AGENT_WARN;
    ev.text = xasprintf("%s was denied: %s", name ? name : "a tool",
                        message ? message : "no permission");
    agent_dec_emit(d, &ev);
    free(ev.text);
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

static void emit_usage(struct claude *c, struct agent_dec *d, const struct cJSON *j)
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
    /* The total is the process': a decoder that began in the middle of it does not
     * know what went before, and no cost is better than a wrong one. */
    if (agent_dec_start(d) == 0)
        c->total_known = true;
    if (!by_model && c->total_known)
        ev.cost_usd = fmax(0, total - c->total_cost);
    if (isfinite(total)) {
        c->total_cost = total;
        c->total_known = true;
    } else if (!by_model) {
        ev.cost_usd = (double)NAN;
    }
    agent_dec_emit(d, &ev);
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
static char *error_text(const struct cJSON *j)
{
    const char *s = json_str(j, "result", NULL);
    struct buf b = BUF_INIT;

    if (s && *s)
        return xstrdup(s);
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
    return buf_detach(&b, NULL);
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

    ev.outcome = outcome_of(c, j);
    if (ev.outcome == AGENT_OK && !c->spoke)
        speak_result(d, j);
    for (; k; k = json_next(k))
        claude_denied(c, d, k, false);
    claude_asks_end(c, d);
    agent_calls_close(&c->tools, d);
    emit_usage(c, d, j);
    ev.http_status = agent_line_int(j, "api_error_status");
    if (ev.outcome == AGENT_FAILED || ev.outcome == AGENT_TRUNCATED) {
        ev.text = error_text(j);
        ev.error_class = ev.outcome == AGENT_TRUNCATED
                             ? AGENT_ERR_OTHER
                             : claude_error_class(ev.http_status, c->error, ev.text);
    }
    agent_dec_emit(d, &ev);
    free(ev.text);
}
