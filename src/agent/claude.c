/* Claude Code's stream-json, and Qwen Code's, which is made after it. Fields are read by name,
 * never by position; unknown types and fields are ignored.
 *
 * Text comes twice with partial messages: as deltas, then whole in an `assistant`
 * line, which arrives before the block's content_block_stop. The key of both is
 * message id + block index. Lines of subagents carry parent_tool_use_id and run
 * beside the main ones, so the message at hand is kept per parent. */
#include "claude_priv.h"

#include <cct/util/arr.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STREAMS 64 /* messages at hand: the main one and one per subagent */
#define MAX_BLOCKS (1 << 24) /* of one message: a greater index is none */

static void *claude_new(void)
{
    return xcalloc(1, sizeof(struct claude));
}

static void *qwen_new(void)
{
    struct claude *c = xcalloc(1, sizeof(*c));

    c->qwen = true;
    return c;
}

static void stream_clear(struct claude_stream *st)
{
    free(st->parent);
    free(st->msg);
}

static void claude_free(void *state)
{
    struct claude *c = state;

    for (size_t i = 0; i < c->streams.n; i++)
        stream_clear(&c->streams.v[i]);
    ARR_RELEASE(&c->streams);
    agent_calls_release(&c->tools);
    agent_asks_clear(&c->asks);
    free(c->error);
    free(c->last_result);
    buf_release(&c->id);
    agent_half_release(&c->half);
    free(c);
}

/* The stream of a parent (NULL = main), last used at the end. */
static struct claude_stream *stream_of(struct claude *c, const char *parent)
{
    struct claude_stream found = {0};
    size_t i = c->streams.n;

    while (i > 0 && !str_eq(c->streams.v[i - 1].parent, parent))
        i--;
    if (i == c->streams.n && i > 0)
        return &c->streams.v[i - 1];
    if (i > 0) {
        found = c->streams.v[i - 1];
        ARR_REMOVE(&c->streams, i - 1);
    } else {
        found.parent = xstrdup(parent);
        found.open = found.closed = -1;
        if (c->streams.n == MAX_STREAMS) {
            stream_clear(&c->streams.v[0]);
            ARR_REMOVE(&c->streams, 0);
        }
    }
    *ARR_PUSH(&c->streams) = found;
    return &c->streams.v[c->streams.n - 1];
}

/* The stream of a parent, set to message `msg` (block 0 if it is a new one). */
static struct claude_stream *stream_at(struct claude *c, const char *parent, const char *msg)
{
    struct claude_stream *st = stream_of(c, parent);

    if (msg && !str_eq(st->msg, msg)) {
        str_set(&st->msg, msg);
        st->next = 0;
        st->open = st->closed = -1;
    }
    return st;
}

static char *block_id(struct claude *c, const struct claude_stream *st, int64_t index)
{
    buf_clear(&c->id);
    buf_adds(&c->id, st->msg ? st->msg : "");
    buf_addc(&c->id, ':');
    buf_addi(&c->id, index);
    return (char *)buf_str(&c->id);
}

static void begin_turn(struct claude *c, struct agent_dec *d)
{
    if (!agent_line_begin_turn(d))
        return;
    free(c->error);
    c->error = NULL;
    c->spoke = c->interrupted = false;
}

/* --- system lines --------------------------------------------------------------- */

static void on_init(struct claude *c, struct agent_dec *d, const struct cJSON *j)
{
    struct agent_event ev = AGENT_EVENT(AGENT_SESSION);

    ev.id = (char *)json_str(j, "session_id", NULL);
    ev.name = (char *)json_str(j, "model", NULL);
    ev.title = (char *)json_str(j, "claude_code_version", NULL);
    agent_dec_emit(d, &ev);
    begin_turn(c, d);
}

static void on_system(struct claude *c, struct agent_dec *d, const struct cJSON *j)
{
    const char *sub = json_str(j, "subtype", "");

    if (str_eq(sub, "init"))
        on_init(c, d, j);
    else if (str_eq(sub, "status") && str_eq(json_str(j, "status", NULL), "requesting"))
        begin_turn(c, d);
    else if (str_eq(sub, "api_retry"))
        claude_retry(d, j);
    else if (str_eq(sub, "retry"))
        claude_qwen_retry(d, json_get(j, "data"));
    else if (str_eq(sub, "permission_denied"))
        claude_denied(c, d, j, true);
}

/* --- what the model says ------------------------------------------------------------ */

static void on_stream_event(struct claude *c, struct agent_dec *d, const struct cJSON *j)
{
    const struct cJSON *e = json_get(j, "event"), *delta;
    const char *type = json_str(e, "type", ""), *dt, *text = NULL;
    const char *parent = json_str(j, "parent_tool_use_id", NULL);
    const char *msg = json_str(j, "api_message_id", NULL);
    int64_t index = json_i64(e, "index", 0);
    struct claude_stream *st;
    struct agent_event ev = AGENT_EVENT(AGENT_TEXT);

    if (c->qwen && str_starts(type, "message_start"))
        begin_turn(c, d);
    if (str_eq(type, "message_start"))
        msg = json_str(json_get(e, "message"), "id", msg);
    st = stream_at(c, parent, msg);
    if (index < 0 || index >= MAX_BLOCKS)
        return;
    if (str_eq(type, "content_block_start")) {
        st->open = (int)index;
        st->closed = -1;
    } else if (str_eq(type, "content_block_stop")) {
        /* claude has sent the whole by now, qwen sends it behind this */
        st->closed = st->open == (int)index ? st->open : -1;
        st->open = -1;
        if (st->next <= (int)index)
            st->next = (int)index + 1;
    } else if (str_eq(type, "content_block_delta")) {
        delta = json_get(e, "delta");
        dt = json_str(delta, "type", "");
        if (str_eq(dt, "text_delta"))
            text = json_str(delta, "text", NULL);
        if (str_eq(dt, "thinking_delta")) {
            ev.kind = AGENT_THINKING;
            text = json_str(delta, "thinking", NULL);
        }
        if (!text || !*text)
            return;
        ev.id = block_id(c, st, index);
        ev.text = (char *)text;
        ev.parent = (char *)parent;
        agent_dec_emit(d, &ev);
    }
}

static void on_block(struct claude *c, struct agent_dec *d, const struct cJSON *b, char *id,
                     const char *parent)
{
    const char *type = json_str(b, "type", "");
    struct agent_event ev = AGENT_EVENT(AGENT_TEXT);

    if (str_eq(type, "text")) {
        ev.text = (char *)json_str(b, "text", "");
        if (!parent)
            c->spoke = true;
    } else if (str_eq(type, "thinking")) {
        ev.kind = AGENT_THINKING;
        ev.text = (char *)json_str(b, "thinking", "");
    } else {
        if (str_ends(type, "tool_use"))
            agent_calls_begin(&c->tools, d, json_str(b, "id", NULL), json_str(b, "name", NULL),
                              parent, json_get(b, "input"));
        else if (str_ends(type, "tool_result"))
            claude_tool_result(c, d, b, parent);
        return;
    }
    ev.id = id;
    ev.mode = AGENT_REPLACE;
    ev.final = true;
    ev.parent = (char *)parent;
    agent_dec_emit(d, &ev);
}

static void on_assistant(struct claude *c, struct agent_dec *d, const struct cJSON *j)
{
    const struct cJSON *m = json_get(j, "message"), *content = json_get(m, "content");
    const char *parent = json_str(j, "parent_tool_use_id", NULL), *error;
    struct claude_stream *st;
    int index;

    if (str_eq(json_str(m, "model", NULL), "<synthetic>")) {
        /* the CLI's own words about an error; the result repeats them */
        error = json_str(j, "error", NULL);
        if (!parent && error)
            str_set(&c->error, error);
        return;
    }
    if (!json_is_array(content))
        return;
    if (c->qwen) /* says nothing at the begin of a later turn */
        begin_turn(c, d);
    st = stream_at(c, parent, json_str(m, "id", NULL));
    for (const struct cJSON *b = json_first(content); b; b = json_next(b)) {
        /* of the block that is being or was streamed, else the next one in order */
        index = st->open >= 0 ? st->open : st->closed >= 0 ? st->closed : st->next;
        st->open = st->closed = -1;
        if (st->next <= index)
            st->next = index + 1;
        on_block(c, d, b, block_id(c, st, index), parent);
    }
}

/* --- what the user says, and tools answer -------------------------------------------- */

/* What a command of the CLI itself put out comes as if the user had said it. */
static bool on_command_output(struct claude *c, struct agent_dec *d, const struct cJSON *j,
                              const char *text)
{
    static const char *const marks[] = {"<local-command-stdout>", "<local-command-stderr>"};
    struct agent_event ev = AGENT_EVENT(AGENT_TEXT);
    const char *end;
    size_t i = 0;

    while (i < 2 && !str_starts(text, marks[i]))
        i++;
    if (i == 2)
        return false;
    text += strlen(marks[i]);
    end = strstr(text, "</local-command-std");
    ev.text = xstrndup(text, end ? (size_t)(end - text) : strlen(text));
    ev.id = xasprintf("command:%s", json_str(j, "uuid", ""));
    ev.mode = AGENT_REPLACE;
    ev.final = c->spoke = true;
    if (*ev.text)
        agent_dec_emit(d, &ev);
    free(ev.text);
    free(ev.id);
    return true;
}

static void on_user_text(struct claude *c, struct agent_dec *d, const struct cJSON *j,
                         const char *text)
{
    bool echo = json_bool(j, "isReplay", false);
    struct agent_event ev = AGENT_EVENT(echo ? AGENT_USER_ECHO : AGENT_NOTICE);

    if (str_starts(text, "[Request interrupted by user")) {
        c->interrupted = true;
        return;
    }
    if (on_command_output(c, d, j, text))
        return;
    ev.text = (char *)text;
    agent_dec_emit(d, &ev);
}

static void on_user(struct claude *c, struct agent_dec *d, const struct cJSON *j)
{
    const struct cJSON *content = json_path(j, "message.content");
    const char *parent = json_str(j, "parent_tool_use_id", NULL);
    bool hidden = parent || json_bool(j, "isSynthetic", false);
    struct buf text = BUF_INIT;

    if (json_is_string(content))
        buf_adds(&text, json_str_of(content));
    for (const struct cJSON *b = json_first(content); b; b = json_next(b)) {
        const char *type = json_str(b, "type", "");

        if (str_ends(type, "tool_result"))
            claude_tool_result(c, d, b, parent);
        if (!str_eq(type, "text"))
            continue;
        if (text.len)
            buf_addc(&text, '\n');
        buf_adds(&text, json_str(b, "text", ""));
    }
    if (text.len && !hidden)
        on_user_text(c, d, j, buf_str(&text));
    buf_release(&text);
}

/* --- questions and answers about control ----------------------------------------------- */

static void on_control_response(struct claude *c, struct agent_dec *d, const struct cJSON *j)
{
    const struct cJSON *r = json_get(j, "response");

    if (str_eq(json_str(r, "subtype", NULL), "error"))
        agent_line_notice(d, AGENT_WARN, json_str(r, "error", "the agent refused a request"));
    else /* ours, repeated; else the end of a request of ours */
        claude_ask_answered(c, d, r);
}

/* --- lines ----------------------------------------------------------------------------- */

static const struct {
    const char *type;
    void (*fn)(struct claude *c, struct agent_dec *d, const struct cJSON *j);
} types[] = {
    /* most frequent first */
    {"stream_event", on_stream_event},
    {"assistant", on_assistant},
    {"user", on_user},
    {"system", on_system},
    {"result", claude_result},
    {"control_request", claude_ask},
    {"control_cancel_request", claude_ask_cancel},
    {"control_response", on_control_response},
};

static void claude_line(void *state, struct agent_dec *d, const char *s, size_t len)
{
    struct claude *c = state;
    const char *line =
        agent_half_join(&c->half, "\"type\":\"text_delta\",\"text\":\"", s, &len);
    struct cJSON *j = agent_line_json(d, line, len);
    const char *type;

    if (!j)
        return;
    agent_line_stamp(d, j);
    type = json_str(j, "type", "");
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (!str_eq(type, types[i].type))
            continue;
        types[i].fn(state, d, j);
        break;
    }
    json_free(j);
}

static void claude_end(void *state, struct agent_dec *d, int code, int sig,
                       const char *stderr_tail)
{
    struct claude *c = state;

    agent_dec_place_exit(d);
    agent_asks_end(&c->asks, d);
    agent_calls_close(&c->tools, d);
    agent_end_default(d, code, sig, stderr_tail);
}

static int claude_message(const char *text, size_t len, struct buf *out, struct err *e)
{
    return agent_line_message("{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":"
                              "[{\"type\":\"text\",\"text\":",
                              text, len, "}]}}", out, e);
}

static int claude_interrupt(const char *request_id, struct buf *out)
{
    struct buf line = BUF_INIT;
    struct jw w;
    int rc;

    jw_init(&w, &line);
    jw_obj(&w, NULL);
    jw_str(&w, "type", "control_request");
    jw_str(&w, "request_id", request_id);
    jw_obj(&w, "request");
    jw_str(&w, "subtype", "interrupt");
    jw_end(&w);
    jw_end(&w);
    buf_addc(&line, '\n');
    rc = buf_add(out, line.p, line.len);
    buf_release(&line);
    return rc;
}

const struct agent_adapter agent_claude = {
    .name = "claude",
    .mode = AGENT_PERSISTENT,
    .echoes = true,
    .pty = false,
    .state_new = claude_new,
    .state_free = claude_free,
    .line = claude_line,
    .end = claude_end,
    .encode_message = claude_message,
    .encode_interrupt = claude_interrupt,
    .encode_answer = claude_answer,
};

const struct agent_adapter agent_qwen = {
    .name = "qwen",
    .mode = AGENT_ONE_RUN,
    .echoes = false,
    .pty = false,
    .state_new = qwen_new,
    .state_free = claude_free,
    .line = claude_line,
    .end = claude_end,
    .encode_message = agent_line_stdin,
    .encode_interrupt = NULL,
};
