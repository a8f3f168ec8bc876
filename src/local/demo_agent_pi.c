/* The demo agent as Pi: --mode rpc (commands as JSON lines on stdin, each with its
 * response) and --mode json (a process per message). The events of both are the same. */
#include "demo_agent.h"
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void bare(struct demo *d, const char *type)
{
    struct buf b;
    struct jw w;

    demo_line_begin(&w, &b, type);
    demo_line_end(&d->out, &w, &b);
}

static void pi_open(struct demo *d)
{
    (void)d; /* asked for by get_state */
}

static void once_open(struct demo *d)
{
    struct buf b;
    struct jw w;

    demo_line_begin(&w, &b, "session");
    jw_i64(&w, "version", 3);
    jw_str(&w, "id", d->mem.id);
    demo_line_end(&d->out, &w, &b);
}

static void pi_lost(struct demo *d)
{
    fprintf(stderr, "No session found matching '%s'\n", d->args.resume);
}

/* --- messages ---------------------------------------------------------------------- */

static void text_block(struct jw *w, const char *text)
{
    jw_obj(w, NULL);
    jw_str(w, "type", "text");
    jw_str(w, "text", text);
    jw_end(w);
}

static void user_message(struct demo *d, const char *line, const char *text)
{
    struct buf b;
    struct jw w;

    demo_line_begin(&w, &b, line);
    jw_obj(&w, "message");
    jw_str(&w, "role", "user");
    jw_arr(&w, "content");
    text_block(&w, text);
    jw_end(&w);
    jw_i64(&w, "timestamp", clock_wall_ms());
    jw_end(&w);
    demo_line_end(&d->out, &w, &b);
}

static void usage(struct jw *w, const struct demo_usage *u)
{
    jw_obj(w, "usage");
    jw_i64(w, "input", u->in);
    jw_i64(w, "output", u->out);
    jw_i64(w, "cacheRead", u->cached);
    jw_i64(w, "cacheWrite", 0);
    jw_i64(w, "totalTokens", u->in + u->out + u->cached);
    jw_obj(w, "cost");
    jw_num(w, "total", demo_cost(u));
    jw_end(w);
    jw_end(w);
}

/* The assistant's message as it stands: its text, then a call if there is one. */
struct said {
    const char *stop, *error;      /* why it ended; NULL error = no trouble */
    const char *id, *name, *input; /* of the call */
};

static void assistant(struct demo *d, const char *line, const struct said *s,
                      const struct demo_usage *u)
{
    struct buf b;
    struct jw w;

    demo_line_begin(&w, &b, line);
    jw_obj(&w, "message");
    jw_str(&w, "role", "assistant");
    jw_arr(&w, "content");
    if (d->said.len > 0)
        text_block(&w, buf_str(&d->said));
    if (s->id) {
        jw_obj(&w, NULL);
        jw_str(&w, "type", "toolCall");
        jw_str(&w, "id", s->id);
        jw_str(&w, "name", s->name);
        jw_raw(&w, "arguments", s->input);
        jw_end(&w);
    }
    jw_end(&w);
    jw_str(&w, "model", DEMO_MODEL);
    usage(&w, u);
    jw_str(&w, "stopReason", s->stop);
    if (s->error)
        jw_str(&w, "errorMessage", s->error);
    jw_i64(&w, "timestamp", clock_wall_ms());
    jw_end(&w);
    if (str_eq(line, "turn_end")) {
        jw_arr(&w, "toolResults");
        jw_end(&w);
    }
    demo_line_end(&d->out, &w, &b);
}

static void message_end(struct demo *d, const struct said *s)
{
    struct demo_usage u = demo_step_usage(d);

    if (str_eq(s->stop, "error"))
        u = (struct demo_usage){0};
    assistant(d, "message_end", s, &u);
    demo_memory_used(&d->mem, &u);
    d->step = u;
}

static void pi_begin(struct demo *d, const char *text, const struct cJSON *line)
{
    (void)line;
    bare(d, "agent_start");
    bare(d, "turn_start");
    user_message(d, "message_start", text);
    user_message(d, "message_end", text);
    d->out.nmessages = 0;
}

static void pi_step(struct demo *d)
{
    static const struct demo_usage none = {0};

    if (d->out.nmessages++ > 0)
        bare(d, "turn_start");
    buf_clear(&d->said);
    d->out.block = 0;
    assistant(d, "message_start", &(struct said){.stop = "pending"}, &none);
}

static void update(struct demo *d, const char *type, const char *field, const char *text,
                   size_t len)
{
    struct buf b;
    struct jw w;

    demo_line_begin(&w, &b, "message_update");
    jw_obj(&w, "assistantMessageEvent");
    jw_str(&w, "type", type);
    jw_i64(&w, "contentIndex", d->out.block);
    if (field)
        jw_strn(&w, field, text, len);
    jw_end(&w);
    demo_line_end(&d->out, &w, &b);
}

static void piece(struct demo *d, const char *text, size_t len)
{
    update(d, "text_delta", "delta", text, len);
}

static void pi_text(struct demo *d, const char *text, int ms)
{
    char *said;

    update(d, "text_start", NULL, NULL, 0);
    said = demo_stream(d, text, ms, piece);
    buf_adds(&d->said, said);
    if (d->interrupted)
        message_end(d,
                    &(struct said){.stop = "aborted", .error = "This operation was aborted"});
    else
        update(d, "text_end", "content", said, strlen(said));
    d->out.block++;
    free(said);
}

/* --- tools --------------------------------------------------------------------------- */

static void tool_begin(struct jw *w, struct buf *b, const char *line, const char *id,
                       const char *name)
{
    char low[32];

    demo_line_begin(w, b, line);
    jw_str(w, "toolCallId", id);
    jw_str(w, "toolName", demo_lower(name, low, sizeof(low)));
}

static void pi_call(struct demo *d, const char *id, const char *name, const char *input)
{
    char low[32];
    struct buf b;
    struct jw w;

    message_end(d, &(struct said){.stop = "toolUse",
                                  .id = id,
                                  .name = demo_lower(name, low, sizeof(low)),
                                  .input = input});
    tool_begin(&w, &b, "tool_execution_start", id, name);
    jw_raw(&w, "args", input);
    demo_line_end(&d->out, &w, &b);
}

static void pi_answer(struct demo *d, const struct demo_answer *a)
{
    struct buf b;
    struct jw w;

    tool_begin(&w, &b, "tool_execution_end", a->id, a->name);
    jw_obj(&w, "result");
    jw_arr(&w, "content");
    text_block(&w, buf_str(a->text));
    jw_end(&w);
    if (a->exit >= 0) {
        jw_obj(&w, "structuredContent");
        jw_i64(&w, "exit_code", a->exit);
        jw_end(&w);
    }
    jw_end(&w);
    jw_bool(&w, "isError", a->failed);
    demo_line_end(&d->out, &w, &b);
    assistant(d, "turn_end", &(struct said){.stop = "toolUse"}, &d->step);
    if (!d->interrupted)
        return;
    pi_step(d);
    message_end(d, &(struct said){.stop = "aborted", .error = "This operation was aborted"});
}

static void pi_stop(struct demo *d, bool cut)
{
    struct said s = {.stop = cut ? "length" : "stop"};

    message_end(d, &s);
    assistant(d, "turn_end", &s, &d->step);
}

/* --- the end of a try, of the run ------------------------------------------------------- */

static void agent_end(struct demo *d, bool again)
{
    struct buf b;
    struct jw w;

    demo_line_begin(&w, &b, "agent_end");
    jw_arr(&w, "messages");
    jw_end(&w);
    jw_bool(&w, "willRetry", again);
    demo_line_end(&d->out, &w, &b);
}

/* A try that the provider refused; the words of the error as a new string. */
static char *refused(struct demo *d, int status, const char *what)
{
    char *error = xasprintf("%d {\"type\":\"error\",\"error\":{\"type\":\"api_error\","
                            "\"message\":\"%s\"}}",
                            status, what);

    pi_step(d);
    message_end(d, &(struct said){.stop = "error", .error = error});
    return error;
}

static void pi_retry(struct demo *d, int attempt, int max, int status)
{
    char *error = refused(d, status, "try again");
    struct buf b;
    struct jw w;

    agent_end(d, true);
    demo_line_begin(&w, &b, "auto_retry_start");
    jw_i64(&w, "attempt", attempt);
    jw_i64(&w, "maxAttempts", max);
    jw_i64(&w, "delayMs", 1);
    jw_str(&w, "errorMessage", error);
    demo_line_end(&d->out, &w, &b);
    free(error);
    bare(d, "agent_start");
}

static void pi_end(struct demo *d, const struct demo_end *e)
{
    struct buf b;
    struct jw w;

    if (e->how == DEMO_FAILED)
        free(refused(d, e->status, e->what));
    agent_end(d, false);
    demo_line_begin(&w, &b, "agent_settled");
    jw_bool(&w, "aborted", e->how == DEMO_ABORTED);
    demo_line_end(&d->out, &w, &b);
}

/* --- rpc ---------------------------------------------------------------------------------- */

static void response(struct demo *d, const struct cJSON *j, const char *command,
                     const char *error)
{
    const char *id = json_str(j, "id", NULL);
    struct buf b;
    struct jw w;

    b = (struct buf)BUF_INIT;
    jw_init(&w, &b);
    jw_obj(&w, NULL);
    if (id)
        jw_str(&w, "id", id);
    jw_str(&w, "type", "response");
    jw_str(&w, "command", command);
    jw_bool(&w, "success", !error);
    if (error)
        jw_str(&w, "error", error);
    if (!error && (str_eq(command, "get_state") || str_eq(command, "get_session_stats"))) {
        jw_obj(&w, "data");
        jw_str(&w, "sessionId", d->mem.id);
        jw_bool(&w, "isStreaming", d->busy);
        jw_num(&w, "cost", demo_cost(&d->mem.used));
        jw_end(&w);
    }
    demo_line_end(&d->out, &w, &b);
}

/* Into the running turn, or a turn of its own. */
static void take_in(struct demo *d, const char *text)
{
    if (d->busy)
        *ARR_PUSH(&d->steer) = xstrdup(text);
    else
        demo_enqueue(d, xstrdup(text));
}

static void prompt(struct demo *d, const struct cJSON *j)
{
    const char *text = json_str(j, "message", NULL);
    bool steer = json_get(j, "streamingBehavior") != NULL;

    if (!text) {
        response(d, j, "prompt", "message is missing");
    } else if (d->busy && !steer) {
        response(d, j, "prompt", "Agent is already processing. Specify streamingBehavior.");
    } else {
        response(d, j, "prompt", NULL);
        take_in(d, text);
    }
}

static void steer(struct demo *d, const struct cJSON *j, const char *command)
{
    const char *text = json_str(j, "message", NULL);

    if (!text) {
        response(d, j, command, "message is missing");
        return;
    }
    response(d, j, command, NULL);
    take_in(d, text);
}

static void pi_arrived(struct demo *d, char *line)
{
    struct cJSON *j = json_parse(line, strlen(line), NULL);
    const char *type = json_str(j, "type", "");

    if (!j)
        response(d, NULL, "parse", "Failed to parse command: it is no JSON");
    else if (str_eq(type, "prompt"))
        prompt(d, j);
    else if (str_eq(type, "steer") || str_eq(type, "follow_up"))
        steer(d, j, type);
    else if (str_eq(type, "abort") || str_eq(type, "get_state") ||
             str_eq(type, "get_session_stats"))
        response(d, j, type, NULL);
    else
        response(d, j, type, "Unknown command");
    if (str_eq(type, "abort"))
        d->interrupted = d->busy;
    json_free(j);
    free(line);
}

static char *pi_text_of(struct demo *d, const char *line, struct cJSON **j)
{
    (void)d;
    *j = NULL;
    return xstrdup(line);
}

#define SPEECH                                                                             \
    .new_id = demo_new_uuid, .lost = pi_lost, .begin = pi_begin, .step = pi_step, .text = pi_text, \
    .call = pi_call, .answer = pi_answer, .stop = pi_stop, .retry = pi_retry, .end = pi_end

const struct demo_dialect demo_pi = {.name = "pi",
                                     .lines = true,
                                     .open = pi_open,
                                     .arrived = pi_arrived,
                                     .text_of = pi_text_of,
                                     SPEECH};
const struct demo_dialect demo_pi_once = {.name = "pi", .open = once_open, SPEECH};
