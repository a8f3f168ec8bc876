/* Codex, `codex exec --json`: one process per turn, whole items instead of pieces of text.
 *
 * A run's first line (thread.started) begins the turn: what a decoder needs to begin there
 * is then all behind that line. Ids of items begin at item_0 with each process, so the
 * line's offset goes before them. Token counts are the thread's, over all its processes.
 * Commands that run for long are handed back to the model and may never be heard of
 * again: the end of the turn closes them. */
#include "agent_priv.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct codex {
    struct agent_calls calls;
    struct buf id;
    char *thread;
    char *error; /* the last one of the turn */
};

static void *codex_new(void)
{
    return xcalloc(1, sizeof(struct codex));
}

static void codex_free(void *state)
{
    struct codex *c = state;

    agent_calls_release(&c->calls);
    buf_release(&c->id);
    free(c->thread);
    free(c->error);
    free(c);
}

static void begin_turn(struct codex *c, struct agent_dec *d)
{
    if (!agent_line_begin_turn(d))
        return;
    agent_calls_release(&c->calls);
    free(c->error);
    c->error = NULL;
}

static char *item_id(struct codex *c, struct agent_dec *d, const struct cJSON *item)
{
    buf_clear(&c->id);
    buf_addf(&c->id, "%llu:%s", (unsigned long long)agent_dec_turn_offset(d),
             json_str(item, "id", ""));
    return (char *)buf_str(&c->id);
}

/* --- items ------------------------------------------------------------------------ */

static void on_text(struct codex *c, struct agent_dec *d, const struct cJSON *item, bool done)
{
    struct agent_event ev = AGENT_EVENT(AGENT_TEXT);

    if (str_eq(json_str(item, "type", NULL), "reasoning"))
        ev.kind = AGENT_THINKING;
    ev.id = item_id(c, d, item);
    ev.text = (char *)json_str(item, "text", "");
    ev.mode = AGENT_REPLACE;
    ev.final = done;
    agent_dec_emit(d, &ev);
}

/* The command in `/bin/bash -lc 'COMMAND'`, as a new string. */
static char *bare_command(const char *s)
{
    static const char *const shells[] = {"/bin/bash -lc ", "bash -lc ", "/bin/sh -lc ",
                                         "/bin/sh -c ", "/bin/zsh -lc "};
    struct buf b = BUF_INIT;
    char quote = 0;
    size_t i = 0;

    while (i < 5 && !str_starts(s, shells[i]))
        i++;
    if (i == 5)
        return xstrdup(s);
    s += strlen(shells[i]);
    for (; *s; s++) {
        if (quote ? *s == quote : *s == '\'' || *s == '"')
            quote = quote ? 0 : *s;
        else if (*s == '\\' && s[1] && (quote == '"' ? strchr("\"\\$`", s[1]) != NULL : !quote))
            buf_addc(&b, *++s);
        else
            buf_addc(&b, *s);
    }
    return buf_detach(&b, NULL);
}

/* "add notes.md (and 2 more)" */
static char *change_title(const struct cJSON *item)
{
    const struct cJSON *k = json_first(json_get(item, "changes"));
    const char *path = json_str(k, "path", NULL);
    size_t more = 0;

    if (!path)
        return NULL;
    for (k = json_next(k); k; k = json_next(k))
        more++;
    k = json_first(json_get(item, "changes"));
    if (!more)
        return xasprintf("%s %s", json_str(k, "kind", "change"), path);
    return xasprintf("%s %s (and %zu more)", json_str(k, "kind", "change"), path, more);
}

static char *todo_text(const struct cJSON *item)
{
    struct buf b = BUF_INIT;

    for (const struct cJSON *k = json_first(json_get(item, "items")); k; k = json_next(k))
        buf_addf(&b, "[%c] %s\n", json_bool(k, "completed", false) ? 'x' : ' ',
                 json_str(k, "text", ""));
    return buf_detach(&b, NULL);
}

/* What is particular to a kind of tool: name, title, input and output. */
static char *describe(const struct cJSON *item, struct agent_event *ev)
{
    const char *type = json_str(item, "type", "");
    const struct cJSON *args = json_get(item, "arguments");
    const char *command = json_str(item, "command", NULL),
               *query = json_str(item, "query", NULL);

    if (str_eq(type, "command_execution")) {
        char *bare = command ? bare_command(command) : NULL;
        struct buf in = BUF_INIT;

        ev->title = bare ? agent_calls_line(bare) : NULL;
        if (bare) {
            buf_adds(&in, "{\"command\":");
            buf_add_json(&in, bare, strlen(bare));
            buf_addc(&in, '}');
            ev->input = buf_detach(&in, NULL);
        }
        free(bare);
        ev->output = xstrdup(json_str(item, "aggregated_output", NULL));
        return xstrdup(type);
    }
    if (str_eq(type, "file_change")) {
        ev->title = change_title(item);
        ev->input = json_text(json_get(item, "changes"));
        return xstrdup(type);
    }
    if (str_eq(type, "todo_list")) {
        ev->output = todo_text(item);
        return xstrdup(type);
    }
    if (str_eq(type, "web_search")) {
        ev->title = query ? agent_calls_line(query) : NULL;
        return xstrdup(type);
    }
    ev->title = agent_calls_title(args, NULL);
    ev->input = json_text(args);
    ev->output = json_is_object(json_get(item, "result"))
                     ? agent_calls_text(json_path(item, "result.content"))
                     : xstrdup(json_str(json_get(item, "error"), "message", NULL));
    return xasprintf("%s.%s", json_str(item, "server", "mcp"), json_str(item, "tool", "tool"));
}

static enum agent_tool_state tool_state(const struct cJSON *item, bool done, int exit_code)
{
    const char *status = json_str(item, "status", "");

    if (str_eq(status, "declined"))
        return AGENT_TOOL_DENIED;
    if (str_eq(status, "failed") || (done && exit_code > 0))
        return AGENT_TOOL_FAILED;
    return done ? AGENT_TOOL_OK : AGENT_TOOL_RUNNING;
}

static void on_tool(struct codex *c, struct agent_dec *d, const struct cJSON *item, bool done)
{
    struct agent_event ev = AGENT_EVENT(AGENT_TOOL);
    struct agent_call *t = agent_calls_at(&c->calls, item_id(c, d, item));
    char *name = describe(item, &ev);
    int64_t code = json_i64(item, "exit_code", -1);

    ev.exit_code = code >= -1 && code <= 0xffff ? (int)code : -1;
    t->state = tool_state(item, done, ev.exit_code);
    agent_call_set(t, name, NULL);
    agent_call_emit(d, t, &ev);
    free(name);
    free(ev.title);
    free(ev.input);
    free(ev.output);
}

static void on_item(struct codex *c, struct agent_dec *d, const struct cJSON *j, bool done)
{
    static const char *const tools[] = {"command_execution", "file_change", "mcp_tool_call",
                                        "web_search", "todo_list"};
    const struct cJSON *item = json_get(j, "item");
    const char *type = json_str(item, "type", "");
    char *words;

    begin_turn(c, d);
    if (str_eq(type, "agent_message") || str_eq(type, "reasoning"))
        on_text(c, d, item, done);
    for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++)
        if (str_eq(type, tools[i]))
            on_tool(c, d, item, done);
    if (str_eq(type, "error") && done) { /* the turn goes on */
        words = agent_words(json_str(item, "message", "the agent warns of something"), NULL);
        agent_line_notice(d, AGENT_WARN, words);
        free(words);
    }
}

/* --- errors, the end of a turn ---------------------------------------------------- */

/* "Reconnecting... 2/5 (REASON)": tried again; any other is the error of the turn, if it
 * has one. */
static void on_error(struct codex *c, struct agent_dec *d, const struct cJSON *j)
{
    struct agent_event ev = AGENT_EVENT(AGENT_NOTICE);
    const char *text = json_str(j, "message", ""), *open;
    char *reason;
    size_t n;

    begin_turn(c, d);
    if (!str_starts(text, "Reconnecting")) {
        str_set(&c->error, text);
        return;
    }
    if (sscanf(text, "Reconnecting... %4d/%4d", &ev.retry_attempt, &ev.retry_max) != 2)
        ev.retry_attempt = ev.retry_max = 0;
    open = ev.retry_max ? strchr(text, '(') : NULL;
    reason = xstrdup(open ? open + 1 : text);
    n = strlen(reason);
    if (open && n && reason[n - 1] == ')')
        reason[n - 1] = 0;
    ev.level = AGENT_WARN;
    ev.text = agent_words(reason, &ev.http_status);
    ev.error_class = agent_classify(ev.http_status, ev.text);
    agent_dec_emit(d, &ev);
    free(ev.text);
    free(reason);
}

static void on_completed(struct codex *c, struct agent_dec *d, const struct cJSON *j)
{
    const struct cJSON *u = json_get(j, "usage");
    struct agent_event ev = AGENT_EVENT(AGENT_USAGE), end = AGENT_EVENT(AGENT_TURN_END);

    begin_turn(c, d);
    agent_calls_close(&c->calls, d);
    if (json_is_object(u)) {
        ev.scope = AGENT_SCOPE_SESSION_TOTAL;
        ev.id = c->thread;
        ev.cache_read = agent_line_count(u, "cached_input_tokens");
        ev.cache_write = agent_line_count(u, "cache_write_input_tokens");
        ev.in_tokens = agent_line_without(u, "input_tokens", ev.cache_read + ev.cache_write);
        ev.out_tokens = agent_line_count(u, "output_tokens");
        agent_dec_emit(d, &ev);
    }
    agent_dec_emit(d, &end);
}

static void on_failed(struct codex *c, struct agent_dec *d, const struct cJSON *j)
{
    struct agent_event ev = AGENT_EVENT(AGENT_TURN_END);
    const char *text;

    begin_turn(c, d);
    agent_calls_close(&c->calls, d);
    text = json_str(json_get(j, "error"), "message", c->error);
    ev.text = agent_words(text ? text : "the turn failed", &ev.http_status);
    ev.outcome = strstr(ev.text, "max_output_tokens") ? AGENT_TRUNCATED : AGENT_FAILED;
    ev.error_class = agent_classify(ev.http_status, ev.text);
    agent_dec_emit(d, &ev);
    free(ev.text);
}

/* --- lines ------------------------------------------------------------------------- */

static void on_thread(struct codex *c, struct agent_dec *d, const struct cJSON *j)
{
    struct agent_event ev = AGENT_EVENT(AGENT_SESSION);

    str_set(&c->thread, json_str(j, "thread_id", NULL));
    ev.id = c->thread;
    agent_dec_emit(d, &ev);
    begin_turn(c, d);
}

static void codex_line(void *state, struct agent_dec *d, const char *s, size_t len)
{
    struct codex *c = state;
    struct cJSON *j = agent_line_json(d, s, len);
    const char *type = json_str(j, "type", "");

    if (str_eq(type, "thread.started"))
        on_thread(c, d, j);
    else if (str_eq(type, "turn.started"))
        begin_turn(c, d);
    else if (str_eq(type, "item.started") || str_eq(type, "item.updated"))
        on_item(c, d, j, false);
    else if (str_eq(type, "item.completed"))
        on_item(c, d, j, true);
    else if (str_eq(type, "error"))
        on_error(c, d, j);
    else if (str_eq(type, "turn.completed"))
        on_completed(c, d, j);
    else if (str_eq(type, "turn.failed"))
        on_failed(c, d, j);
    json_free(j);
}

static void codex_end(void *state, struct agent_dec *d, int code, int sig,
                      const char *stderr_tail)
{
    struct codex *c = state;

    agent_dec_place_exit(d);
    agent_calls_close(&c->calls, d);
    agent_end_error(d, code, sig, stderr_tail, c->error, 0);
    agent_calls_release(&c->calls);
    free(c->error);
    c->error = NULL;
}

const struct agent_adapter agent_codex = {
    .name = "codex",
    .mode = AGENT_ONE_RUN,
    .echoes = false,
    .pty = false,
    .state_new = codex_new,
    .state_free = codex_free,
    .line = codex_line,
    .end = codex_end,
    .encode_message = agent_line_stdin,
    .encode_interrupt = NULL,
};
