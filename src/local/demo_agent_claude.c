/* The demo agent as Claude Code: messages as JSON lines on stdin, an interrupt and the
 * answers to questions among them, events as Claude prints them. */
#include "demo_agent.h"
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void claude_open(struct demo *d)
{
    (void)d; /* the session is told with each turn */
}

static void claude_lost(struct demo *d)
{
    struct buf b;
    struct jw w;
    char *text = xasprintf("No conversation found with session ID: %s", d->args.resume);

    fprintf(stderr, "%s\n", text);
    demo_line_begin(&w, &b, "result");
    jw_str(&w, "subtype", "error_during_execution");
    jw_bool(&w, "is_error", true);
    jw_str(&w, "session_id", d->args.resume);
    jw_arr(&w, "errors");
    jw_str(&w, NULL, text);
    jw_end(&w);
    demo_line_end(&d->out, &w, &b);
    free(text);
}

static void claude_begin(struct demo *d, const char *text, const struct cJSON *line)
{
    (void)text;
    demo_out_init(&d->out);
    if (line)
        demo_out_echo(&d->out, line);
}

static void claude_step(struct demo *d)
{
    demo_out_message_begin(&d->out);
}

static void piece(struct demo *d, const char *text, size_t len)
{
    demo_out_text_delta(&d->out, text, len);
}

static void claude_text(struct demo *d, const char *text, int ms)
{
    char *said;

    demo_out_text_begin(&d->out);
    said = demo_stream(d, text, ms, piece);
    d->out.streaming = d->interrupted;
    demo_out_text_end(&d->out, said);
    buf_adds(&d->said, said);
    free(said);
    if (d->interrupted)
        demo_out_message_end(&d->out, "end_turn");
}

/* Tokens of a step: told with the result. Alone, no model is played and nothing counts. */
static void count(struct demo *d)
{
    struct demo_usage u = demo_step_usage(d);

    buf_clear(&d->said);
    if (!d->args.as)
        return;
    demo_usage_add(&d->out.turn, &u);
    demo_memory_used(&d->mem, &u);
}

static void claude_call(struct demo *d, const char *id, const char *name, const char *input)
{
    demo_out_tool(&d->out, id, name, input);
    demo_out_message_end(&d->out, "tool_use");
    buf_adds(&d->said, input);
    count(d);
}

static void claude_answer(struct demo *d, const struct demo_answer *a)
{
    struct buf text = BUF_INIT, extra = BUF_INIT, json = BUF_INIT;

    if (a->failed && a->exit > 0)
        buf_addf(&text, "Exit code %d\n", a->exit);
    buf_add(&text, buf_str(a->text), a->text->len);
    buf_add_json(&json, buf_str(&text), text.len);
    if (a->failed)
        buf_addf(&extra, "\"Error: %s", json.p + 1);
    else
        buf_addf(&extra,
                 "{\"stdout\":%s,\"stderr\":\"\",\"interrupted\":false,\"isImage\":false}",
                 json.p);
    demo_out_tool_result(&d->out, a->id, buf_str(&text), text.len, a->failed, buf_str(&extra));
    buf_release(&text);
    buf_release(&extra);
    buf_release(&json);
}

static void claude_stop(struct demo *d, bool cut)
{
    demo_out_message_end(&d->out, cut ? "max_tokens" : "end_turn");
    count(d);
}

static const char *code_of(int status)
{
    return status == 401 || status == 403 ? "authentication_failed"
           : status == 402                ? "billing_error"
           : status == 404                ? "model_not_found"
           : status == 429                ? "rate_limit"
           : status == 529                ? "overloaded"
                                          : "server_error";
}

static void claude_retry(struct demo *d, int attempt, int max, int status)
{
    demo_out_retry(&d->out, attempt, max, status, code_of(status));
}

static void claude_end(struct demo *d, const struct demo_end *e)
{
    char *text;

    if (e->how == DEMO_FAILED || e->how == DEMO_CUT) {
        text = e->how == DEMO_CUT
                   ? xstrdup("API Error: the response exceeded the output token maximum")
                   : xasprintf("API Error: %d %s", e->status, e->what);
        demo_out_failed(&d->out, e->status,
                        e->how == DEMO_CUT ? "max_output_tokens" : code_of(e->status), text);
        free(text);
        return;
    }
    if (e->how == DEMO_ABORTED)
        demo_out_interrupted(&d->out);
    demo_out_result(&d->out, e->how == DEMO_ABORTED);
}

/* --- lines ---------------------------------------------------------------------- */

static void bad_line(const char *line, const char *why)
{
    fprintf(stderr, "Error parsing streaming input line (%zu chars): %s\n", strlen(line), why);
    exit(1);
}

/* Said once more, as everything that is taken in. */
static void answered(struct demo *d, const struct cJSON *j)
{
    const struct cJSON *r = json_get(j, "response");
    struct buf b = BUF_INIT;
    char *line;

    if (!str_eq(json_str(r, "request_id", ""), d->asked) || !*d->asked)
        return;
    free(d->answer);
    d->answer = json_get(r, "response") ? json_text(json_get(r, "response"))
                                        : xstrdup("{\"behavior\":\"deny\"}");
    d->asked[0] = '\0';
    line = json_text(j);
    buf_adds(&b, line);
    demo_out_emit(&d->out, &b);
    free(line);
}

static void control(struct demo *d, const struct cJSON *j)
{
    const char *id = json_str(j, "request_id", "");
    const char *what = json_str(json_get(j, "request"), "subtype", "");

    if (str_eq(what, "interrupt")) {
        d->interrupted = d->busy;
        demo_out_control(&d->out, id, NULL);
    } else if (str_eq(what, "initialize")) {
        demo_out_control(&d->out, id, NULL);
    } else {
        demo_out_control(&d->out, id, "the demo agent knows only the request interrupt");
    }
}

/* Control acts at once, everything else waits for its turn. */
static void claude_arrived(struct demo *d, char *line)
{
    struct err err = {0};
    struct cJSON *j =
        strstr(line, "\"control_re") != NULL ? json_parse(line, strlen(line), &err) : NULL;
    const char *type = json_str(j, "type", "");

    if (str_eq(type, "control_request") || str_eq(type, "control_response")) {
        if (str_eq(type, "control_request"))
            control(d, j);
        else
            answered(d, j);
        free(line);
    } else {
        demo_enqueue(d, line);
    }
    json_free(j);
}

/* The text of a user line: a string, or the text blocks of an array. */
static char *claude_text_of(struct demo *d, const char *line, struct cJSON **out)
{
    struct err err = {0};
    struct cJSON *j = json_parse(line, strlen(line), &err);
    const struct cJSON *content = json_path(j, "message.content");
    struct buf b = BUF_INIT;

    (void)d;
    if (j == NULL)
        bad_line(line, err.text);
    if (!str_eq(json_str(j, "type", NULL), "user") || content == NULL)
        bad_line(line, "it is no user message");
    *out = j;
    if (json_is_string(content))
        return xstrdup(json_str_of(content));
    for (const struct cJSON *c = json_first(content); c != NULL; c = json_next(c))
        if (str_eq(json_str(c, "type", ""), "text"))
            buf_addf(&b, "%s%s", b.len > 0 ? "\n" : "", json_str(c, "text", ""));
    return buf_detach(&b, NULL);
}

static const char *claude_ask(struct demo *d, const char *id, const char *name,
                              const char *input)
{
    char request[40];

    if (!d->args.asks)
        return NULL;
    rand_uuid(request);
    str_copy(d->asked, sizeof(d->asked), request);
    demo_out_ask(&d->out, request, name, input, id);
    while (*d->asked && !d->eof && !d->interrupted)
        demo_pause(d, -1);
    if (!*d->asked)
        return d->answer;
    d->asked[0] = '\0';
    demo_out_ask_cancelled(&d->out, request);
    return "{\"behavior\":\"deny\",\"message\":\"nobody answered\"}";
}

#define SPEECH                                                                       \
    .name = "claude", .new_id = demo_new_uuid, .open = claude_open, .lost = claude_lost, \
    .begin = claude_begin, .step = claude_step, .text = claude_text, .call = claude_call, \
    .answer = claude_answer, .stop = claude_stop, .retry = claude_retry, .end = claude_end

const struct demo_dialect demo_claude = {.lines = true,
                                         .arrived = claude_arrived,
                                         .text_of = claude_text_of,
                                         .ask = claude_ask,
                                         SPEECH};
const struct demo_dialect demo_claude_once = {SPEECH};
