/* Claude's stream-json, written by hand: field names and order of lines as the
 * real one prints them. Usage is zero where no model is played. */
#include "demo_agent.h"
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void demo_out_emit(struct demo_out *o, struct buf *b)
{
    size_t at = 0;
    buf_addc(b, '\n');
    while (at < b->len) {
        ssize_t n = write(o->fd, b->p + at, b->len - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            _exit(1);
        at += (size_t)n;
    }
    buf_release(b);
}

void demo_line_begin(struct jw *w, struct buf *b, const char *type)
{
    *b = (struct buf)BUF_INIT;
    jw_init(w, b);
    jw_obj(w, NULL);
    jw_str(w, "type", type);
}

void demo_line_end(struct demo_out *o, struct jw *w, struct buf *b)
{
    jw_end(w);
    demo_out_emit(o, b);
}

/* What most lines carry at their end. */
static void line_end(struct demo_out *o, struct jw *w, struct buf *b)
{
    char id[40];
    rand_uuid(id);
    jw_str(w, "session_id", o->session);
    jw_str(w, "uuid", id);
    demo_line_end(o, w, b);
}

static void timestamp(struct jw *w)
{
    char t[32];
    clock_format_rfc3339(t, sizeof(t), clock_wall_ms());
    jw_str(w, "timestamp", t);
}

static void usage(struct jw *w, const struct demo_usage *u)
{
    jw_obj(w, "usage");
    jw_i64(w, "input_tokens", u->in);
    jw_i64(w, "cache_creation_input_tokens", 0);
    jw_i64(w, "cache_read_input_tokens", u->cached);
    jw_i64(w, "output_tokens", u->out);
    jw_end(w);
}

static const struct demo_usage nothing = {0};

void demo_out_start(struct demo_out *o, int fd, const char *session)
{
    memset(o, 0, sizeof(*o));
    o->fd = fd;
    str_copy(o->session, sizeof(o->session), session);
}

void demo_out_release(struct demo_out *o)
{
    buf_release(&o->last);
}

static void status(struct demo_out *o)
{
    struct buf b;
    struct jw w;
    demo_line_begin(&w, &b, "system");
    jw_str(&w, "subtype", "status");
    jw_str(&w, "status", "requesting");
    line_end(o, &w, &b);
}

void demo_out_init(struct demo_out *o)
{
    static const char *const tools[] = {"Bash", "LS", "Read", "Write"};
    struct buf b;
    struct jw w;
    char *cwd = getcwd(NULL, 0);
    demo_line_begin(&w, &b, "system");
    jw_str(&w, "subtype", "init");
    jw_str(&w, "cwd", cwd != NULL ? cwd : "/");
    jw_arr(&w, "tools");
    for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++)
        jw_str(&w, NULL, tools[i]);
    jw_end(&w);
    jw_arr(&w, "mcp_servers");
    jw_end(&w);
    jw_str(&w, "model", DEMO_MODEL);
    jw_str(&w, "permissionMode", "bypassPermissions");
    jw_str(&w, "apiKeySource", DEMO_MODEL);
    jw_str(&w, "claude_code_version", "demo-" CCT_VERSION);
    line_end(o, &w, &b);
    free(cwd);
    o->turn_mono = clock_mono_ms();
    o->nmessages = 0;
    o->turn = nothing;
    o->streaming = false;
    buf_clear(&o->last);
    status(o);
}

void demo_out_echo(struct demo_out *o, const struct cJSON *line)
{
    struct buf b;
    struct jw w;
    char id[40];
    const struct cJSON *message = json_get(line, "message");
    const char *text = json_str(message, "content", NULL);
    char *content = text == NULL ? json_text(json_get(message, "content")) : NULL;
    rand_uuid(id);
    demo_line_begin(&w, &b, "user");
    jw_obj(&w, "message");
    jw_str(&w, "role", "user");
    if (text != NULL)
        jw_str(&w, "content", text);
    else
        jw_raw(&w, "content", content);
    jw_end(&w);
    free(content);
    jw_str(&w, "session_id", o->session);
    jw_null(&w, "parent_tool_use_id");
    jw_str(&w, "uuid", json_str(line, "uuid", id));
    timestamp(&w);
    jw_bool(&w, "isReplay", true);
    demo_line_end(o, &w, &b);
}

/* A stream_event line is open up to its "event" object. */
static void event_begin(struct jw *w, struct buf *b, const char *type)
{
    demo_line_begin(w, b, "stream_event");
    jw_obj(w, "event");
    jw_str(w, "type", type);
}

static void event_end(struct demo_out *o, struct jw *w, struct buf *b)
{
    jw_end(w);
    jw_null(w, "parent_tool_use_id");
    line_end(o, w, b);
}

void demo_out_message_begin(struct demo_out *o)
{
    struct buf b;
    struct jw w;
    if (o->nmessages++ > 0)
        status(o);
    o->block = 0;
    snprintf(o->message, sizeof(o->message), "msg_demo%.8s%06u", o->session, ++o->serial);
    event_begin(&w, &b, "message_start");
    jw_obj(&w, "message");
    jw_str(&w, "id", o->message);
    jw_str(&w, "type", "message");
    jw_str(&w, "role", "assistant");
    jw_str(&w, "model", DEMO_MODEL);
    jw_arr(&w, "content");
    jw_end(&w);
    jw_null(&w, "stop_reason");
    usage(&w, &nothing);
    jw_end(&w);
    event_end(o, &w, &b);
}

void demo_out_message_end(struct demo_out *o, const char *stop_reason)
{
    struct buf b;
    struct jw w;
    event_begin(&w, &b, "message_delta");
    jw_obj(&w, "delta");
    jw_str(&w, "stop_reason", stop_reason);
    jw_null(&w, "stop_sequence");
    jw_end(&w);
    jw_obj(&w, "usage");
    jw_i64(&w, "output_tokens", 0);
    jw_end(&w);
    event_end(o, &w, &b);
    event_begin(&w, &b, "message_stop");
    event_end(o, &w, &b);
}

static void delta(struct demo_out *o, const char *type, const char *field, const char *text,
                  size_t len)
{
    struct buf b;
    struct jw w;
    event_begin(&w, &b, "content_block_delta");
    jw_i64(&w, "index", o->block);
    jw_obj(&w, "delta");
    jw_str(&w, "type", type);
    jw_strn(&w, field, text, len);
    jw_end(&w);
    event_end(o, &w, &b);
}

static void deltas(struct demo_out *o, const char *type, const char *field, const char *text)
{
    size_t len = strlen(text), at = 0;
    while (at < len) {
        size_t n = demo_piece(text + at, len - at, false);
        delta(o, type, field, text + at, n);
        at += n;
    }
}

/* The line with the whole block comes before the block's stop event. */
static void whole(struct demo_out *o, const char *block)
{
    struct buf b;
    struct jw w;
    demo_line_begin(&w, &b, "assistant");
    jw_obj(&w, "message");
    jw_str(&w, "id", o->message);
    jw_str(&w, "type", "message");
    jw_str(&w, "role", "assistant");
    jw_str(&w, "model", DEMO_MODEL);
    jw_arr(&w, "content");
    jw_raw(&w, NULL, block);
    jw_end(&w);
    jw_null(&w, "stop_reason");
    jw_null(&w, "stop_sequence");
    usage(&w, &nothing);
    jw_end(&w);
    jw_null(&w, "parent_tool_use_id");
    timestamp(&w);
    line_end(o, &w, &b);
    event_begin(&w, &b, "content_block_stop");
    jw_i64(&w, "index", o->block);
    event_end(o, &w, &b);
    o->block++;
}

static void block_start(struct demo_out *o, const char *block)
{
    struct buf b;
    struct jw w;
    event_begin(&w, &b, "content_block_start");
    jw_i64(&w, "index", o->block);
    jw_raw(&w, "content_block", block);
    event_end(o, &w, &b);
}

void demo_out_text_begin(struct demo_out *o)
{
    block_start(o, "{\"type\":\"text\",\"text\":\"\"}");
}

void demo_out_text_delta(struct demo_out *o, const char *text, size_t len)
{
    delta(o, "text_delta", "text", text, len);
}

void demo_out_text_end(struct demo_out *o, const char *text)
{
    struct buf b = BUF_INIT;
    struct jw w;
    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_str(&w, "type", "text");
    jw_str(&w, "text", text);
    jw_end(&w);
    whole(o, buf_str(&b));
    buf_release(&b);
    buf_clear(&o->last);
    buf_adds(&o->last, text);
}

static char *tool_block(const char *id, const char *name, const char *input)
{
    struct buf b = BUF_INIT;
    struct jw w;
    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_str(&w, "type", "tool_use");
    jw_str(&w, "id", id);
    jw_str(&w, "name", name);
    jw_raw(&w, "input", input);
    jw_end(&w);
    return buf_detach(&b, NULL);
}

void demo_out_tool(struct demo_out *o, const char *id, const char *name, const char *input)
{
    char *empty = tool_block(id, name, "{}"), *full = tool_block(id, name, input);
    block_start(o, empty);
    deltas(o, "input_json_delta", "partial_json", input);
    whole(o, full);
    free(empty);
    free(full);
}

void demo_out_tool_result(struct demo_out *o, const char *id, const char *text, size_t len,
                          bool is_error, const char *extra)
{
    struct buf b;
    struct jw w;
    demo_line_begin(&w, &b, "user");
    jw_obj(&w, "message");
    jw_str(&w, "role", "user");
    jw_arr(&w, "content");
    jw_obj(&w, NULL);
    jw_str(&w, "tool_use_id", id);
    jw_str(&w, "type", "tool_result");
    jw_strn(&w, "content", text, len);
    jw_bool(&w, "is_error", is_error);
    jw_end(&w);
    jw_end(&w);
    jw_end(&w);
    jw_null(&w, "parent_tool_use_id");
    timestamp(&w);
    jw_raw(&w, "tool_use_result", extra);
    line_end(o, &w, &b);
}

void demo_out_interrupted(struct demo_out *o)
{
    struct buf b;
    struct jw w;
    demo_line_begin(&w, &b, "user");
    jw_raw(&w, "message",
           o->streaming ? "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":"
                          "\"[Request interrupted by user]\"}]}"
                        : "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":"
                          "\"[Request interrupted by user for tool use]\"}]}");
    jw_null(&w, "parent_tool_use_id");
    timestamp(&w);
    line_end(o, &w, &b);
}

/* What the turn cost: of this process so far, and by model since the last result. */
static void price(struct demo_out *o, struct jw *w)
{
    double cost = demo_cost(&o->turn);
    o->cost += cost;
    jw_num(w, "total_cost_usd", o->cost);
    usage(w, &o->turn);
    jw_raw(w, "modelUsage", "{}");
    jw_obj(w, "model_usage_since_last_result");
    if (o->turn.in > 0) {
        jw_obj(w, DEMO_MODEL);
        jw_i64(w, "inputTokens", o->turn.in);
        jw_i64(w, "outputTokens", o->turn.out);
        jw_i64(w, "cacheReadInputTokens", o->turn.cached);
        jw_i64(w, "cacheCreationInputTokens", 0);
        jw_num(w, "costUSD", cost);
        jw_end(w);
    }
    jw_end(w);
}

static void result_begin(struct demo_out *o, struct jw *w, struct buf *b, const char *subtype,
                         bool is_error)
{
    demo_line_begin(w, b, "result");
    jw_str(w, "subtype", subtype);
    jw_bool(w, "is_error", is_error);
    jw_i64(w, "duration_ms", clock_mono_ms() - o->turn_mono);
    jw_i64(w, "duration_api_ms", 0);
    jw_i64(w, "num_turns", o->nmessages);
}

static void result_end(struct demo_out *o, struct jw *w, struct buf *b)
{
    price(o, w);
    jw_arr(w, "permission_denials");
    jw_end(w);
    jw_i64(w, "result_index", o->results++);
    line_end(o, w, b);
}

void demo_out_result(struct demo_out *o, bool aborted)
{
    struct buf b;
    struct jw w;
    result_begin(o, &w, &b, aborted ? "error_during_execution" : "success", aborted);
    if (aborted) {
        jw_arr(&w, "errors");
        jw_str(&w, NULL, "interrupted by the user");
        jw_end(&w);
    } else {
        jw_str(&w, "result", buf_str(&o->last));
        jw_null(&w, "api_error_status");
    }
    jw_str(&w, "stop_reason", aborted ? "tool_use" : "end_turn");
    jw_str(&w, "terminal_reason",
           !aborted       ? "completed"
           : o->streaming ? "aborted_streaming"
                          : "aborted_tools");
    result_end(o, &w, &b);
}

void demo_out_failed(struct demo_out *o, int status_code, const char *code, const char *text)
{
    struct buf b;
    struct jw w;
    demo_line_begin(&w, &b, "assistant");
    jw_obj(&w, "message");
    jw_str(&w, "id", "msg_synthetic");
    jw_str(&w, "model", "<synthetic>");
    jw_str(&w, "role", "assistant");
    jw_arr(&w, "content");
    jw_obj(&w, NULL);
    jw_str(&w, "type", "text");
    jw_str(&w, "text", text);
    jw_end(&w);
    jw_end(&w);
    jw_end(&w);
    jw_null(&w, "parent_tool_use_id");
    jw_str(&w, "error", code);
    line_end(o, &w, &b);
    result_begin(o, &w, &b, "success", true);
    jw_str(&w, "result", text);
    if (status_code)
        jw_i64(&w, "api_error_status", status_code);
    jw_str(&w, "stop_reason", "stop_sequence");
    jw_str(&w, "terminal_reason", "api_error");
    result_end(o, &w, &b);
}

void demo_out_retry(struct demo_out *o, int attempt, int max, int status_code, const char *code)
{
    struct buf b;
    struct jw w;
    demo_line_begin(&w, &b, "system");
    jw_str(&w, "subtype", "api_retry");
    jw_i64(&w, "attempt", attempt);
    jw_i64(&w, "max_retries", max);
    jw_num(&w, "retry_delay_ms", 0.5);
    jw_i64(&w, "error_status", status_code);
    jw_str(&w, "error", code);
    line_end(o, &w, &b);
}

/* --- control ------------------------------------------------------------------ */

void demo_out_ask(struct demo_out *o, const char *request_id, const char *tool,
                  const char *input, const char *call_id)
{
    struct buf b;
    struct jw w;
    demo_line_begin(&w, &b, "control_request");
    jw_str(&w, "request_id", request_id);
    jw_obj(&w, "request");
    jw_str(&w, "subtype", "can_use_tool");
    jw_str(&w, "tool_name", tool);
    jw_raw(&w, "input", input);
    jw_str(&w, "tool_use_id", call_id);
    jw_end(&w);
    demo_line_end(o, &w, &b);
}

void demo_out_ask_cancelled(struct demo_out *o, const char *request_id)
{
    struct buf b;
    struct jw w;
    demo_line_begin(&w, &b, "control_cancel_request");
    jw_str(&w, "request_id", request_id);
    demo_line_end(o, &w, &b);
}

void demo_out_control(struct demo_out *o, const char *request_id, const char *error)
{
    struct buf b;
    struct jw w;
    demo_line_begin(&w, &b, "control_response");
    jw_obj(&w, "response");
    jw_str(&w, "subtype", error == NULL ? "success" : "error");
    jw_str(&w, "request_id", request_id);
    if (error != NULL)
        jw_str(&w, "error", error);
    jw_end(&w);
    demo_line_end(o, &w, &b);
}
