/* The demo agent as Codex (`exec --json`): a process per message, whole items, the tokens
 * of the whole thread at the end. SIGINT ends it without a word more. */
#include "demo_agent.h"
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void item_begin(struct demo *d, struct jw *w, struct buf *b, const char *line,
                       const char *type)
{
    char id[24];

    snprintf(id, sizeof(id), "item_%d", d->out.block);
    demo_line_begin(w, b, line);
    jw_obj(w, "item");
    jw_str(w, "id", id);
    jw_str(w, "type", type);
}

static void item_end(struct demo *d, struct jw *w, struct buf *b)
{
    jw_end(w);
    demo_line_end(&d->out, w, b);
}

static void on_interrupt(int sig)
{
    (void)sig;
    _exit(1);
}

static void codex_open(struct demo *d)
{
    struct buf b;
    struct jw w;

    signal(SIGINT, on_interrupt);
    demo_line_begin(&w, &b, "thread.started");
    jw_str(&w, "thread_id", d->mem.id);
    demo_line_end(&d->out, &w, &b);
}

static void codex_lost(struct demo *d)
{
    fprintf(stderr,
            "Error: thread/resume: thread/resume failed: no rollout found for thread id %s "
            "(code -32600)\n",
            d->args.resume);
}

static void codex_begin(struct demo *d, const char *text, const struct cJSON *line)
{
    struct buf b;
    struct jw w;

    (void)text;
    (void)line;
    demo_line_begin(&w, &b, "turn.started");
    demo_line_end(&d->out, &w, &b);
}

static void codex_step(struct demo *d)
{
    buf_clear(&d->said);
}

/* Nothing is to be seen of a text before it is whole. */
static void codex_text(struct demo *d, const char *text, int ms)
{
    struct buf b;
    struct jw w;

    free(demo_stream(d, text, ms, NULL));
    item_begin(d, &w, &b, "item.completed", "agent_message");
    jw_str(&w, "text", text);
    item_end(d, &w, &b);
    d->out.block++;
    buf_adds(&d->said, text);
}

static void count(struct demo *d)
{
    struct demo_usage u = demo_step_usage(d);

    demo_memory_used(&d->mem, &u);
}

/* Files are written by a file change, everything else is a command. */
static void tool_item(struct demo *d, const char *line, const struct demo_answer *a,
                      const char *status)
{
    struct cJSON *j = json_parse(a->input, strlen(a->input), NULL);
    const char *file = json_str(j, "file_path", json_str(j, "path", ""));
    char *command = str_eq(a->name, "LS")     ? xasprintf("ls %s", file)
                    : str_eq(a->name, "Read") ? xasprintf("cat %s", file)
                                              : xstrdup(json_str(j, "command", a->name));
    struct buf b;
    struct jw w;

    if (str_eq(a->name, "Write")) {
        item_begin(d, &w, &b, line, "file_change");
        jw_arr(&w, "changes");
        jw_obj(&w, NULL);
        jw_str(&w, "path", file);
        jw_str(&w, "kind", "add");
        jw_end(&w);
        jw_end(&w);
    } else {
        item_begin(d, &w, &b, line, "command_execution");
        jw_str(&w, "command", command);
        jw_str(&w, "aggregated_output", a->text ? buf_str(a->text) : "");
        if (a->text)
            jw_i64(&w, "exit_code", a->exit > 0 ? a->exit : a->failed);
        else
            jw_null(&w, "exit_code");
    }
    jw_str(&w, "status", status);
    item_end(d, &w, &b);
    free(command);
    json_free(j);
}

static void codex_call(struct demo *d, const char *id, const char *name, const char *input)
{
    buf_adds(&d->said, input);
    count(d);
    tool_item(d, "item.started", &(struct demo_answer){.id = id, .name = name, .input = input},
              "in_progress");
}

static void codex_answer(struct demo *d, const struct demo_answer *a)
{
    tool_item(d, "item.completed", a, a->failed ? "failed" : "completed");
    d->out.block++;
}

static void codex_stop(struct demo *d, bool cut)
{
    (void)cut;
    count(d);
}

static void codex_retry(struct demo *d, int attempt, int max, int status)
{
    struct buf b;
    struct jw w;
    char *text =
        xasprintf("Reconnecting... %d/%d (exceeded retry limit, last status: %d %s)", attempt,
                  max, status, status == 429 ? "Too Many Requests" : "Service Unavailable");

    demo_line_begin(&w, &b, "error");
    jw_str(&w, "message", text);
    demo_line_end(&d->out, &w, &b);
    free(text);
}

static void failed(struct demo *d, const char *text)
{
    struct buf b;
    struct jw w;

    demo_line_begin(&w, &b, "error");
    jw_str(&w, "message", text);
    demo_line_end(&d->out, &w, &b);
    demo_line_begin(&w, &b, "turn.failed");
    jw_obj(&w, "error");
    jw_str(&w, "message", text);
    jw_end(&w);
    demo_line_end(&d->out, &w, &b);
    d->exit_status = 1;
}

static void codex_end(struct demo *d, const struct demo_end *e)
{
    const struct demo_usage *u = &d->mem.used;
    struct buf b;
    struct jw w;
    char *text;

    if (e->how == DEMO_CUT) {
        failed(d, "Incomplete response returned, reason: max_output_tokens");
        return;
    }
    if (e->how == DEMO_FAILED) {
        text = xasprintf("unexpected status %d: %s, url: https://provider.invalid/v1/responses",
                         e->status, e->what);
        failed(d, text);
        free(text);
        return;
    }
    demo_line_begin(&w, &b, "turn.completed");
    jw_obj(&w, "usage");
    jw_i64(&w, "input_tokens", u->in + u->cached);
    jw_i64(&w, "cached_input_tokens", u->cached);
    jw_i64(&w, "cache_write_input_tokens", 0);
    jw_i64(&w, "output_tokens", u->out);
    jw_i64(&w, "reasoning_output_tokens", 0);
    jw_end(&w);
    demo_line_end(&d->out, &w, &b);
}

const struct demo_dialect demo_codex = {
    .name = "codex",
    .new_id = demo_new_uuid,
    .open = codex_open,
    .lost = codex_lost,
    .begin = codex_begin,
    .step = codex_step,
    .text = codex_text,
    .call = codex_call,
    .answer = codex_answer,
    .stop = codex_stop,
    .retry = codex_retry,
    .end = codex_end,
};
