/* The demo agent as OpenCode (`run --format json`): a process per message, parts when they
 * are whole, tokens and cost per step; retries are silent, the end is the exit. */
#include "demo_agent.h"
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void line_begin(struct demo *d, struct jw *w, struct buf *b, const char *type)
{
    demo_line_begin(w, b, type);
    jw_i64(w, "timestamp", clock_wall_ms());
    jw_str(w, "sessionID", d->mem.id);
}

static void part_begin(struct demo *d, struct jw *w, struct buf *b, const char *line,
                       const char *type)
{
    char rest[21], id[40];

    line_begin(d, w, b, line);
    jw_obj(w, "part");
    rand_id(rest, 20); /* of its own over all processes of a session */
    snprintf(id, sizeof(id), "prt_%s", rest);
    jw_str(w, "id", id);
    jw_str(w, "messageID", d->out.message);
    jw_str(w, "sessionID", d->mem.id);
    jw_str(w, "type", type);
}

static void part_end(struct demo *d, struct jw *w, struct buf *b)
{
    jw_end(w);
    demo_line_end(&d->out, w, b);
}

static void opencode_id(char *id, size_t size)
{
    char rest[27];

    rand_id(rest, 26);
    snprintf(id, size, "ses_%s", rest);
}

static void opencode_open(struct demo *d)
{
    (void)d; /* every line tells the session */
}

static void opencode_lost(struct demo *d)
{
    (void)d;
    fprintf(stderr, "\033[91m\033[1mError: \033[0mSession not found\n");
}

static void opencode_begin(struct demo *d, const char *text, const struct cJSON *line)
{
    (void)d;
    (void)text;
    (void)line;
}

static void opencode_step(struct demo *d)
{
    struct buf b;
    struct jw w;

    buf_clear(&d->said);
    snprintf(d->out.message, sizeof(d->out.message), "msg_%d", d->mem.steps);
    part_begin(d, &w, &b, "step_start", "step-start");
    part_end(d, &w, &b);
}

static void opencode_text(struct demo *d, const char *text, int ms)
{
    struct buf b;
    struct jw w;

    free(demo_stream(d, text, ms, NULL));
    part_begin(d, &w, &b, "text", "text");
    jw_str(&w, "text", text);
    part_end(d, &w, &b);
    buf_adds(&d->said, text);
}

/* Tools are only told when they are done. */
static void opencode_call(struct demo *d, const char *id, const char *name, const char *input)
{
    (void)id;
    (void)name;
    buf_adds(&d->said, input);
}

static void step_finish(struct demo *d, const char *reason)
{
    struct demo_usage u = demo_step_usage(d);
    struct buf b;
    struct jw w;

    part_begin(d, &w, &b, "step_finish", "step-finish");
    jw_str(&w, "reason", reason);
    jw_obj(&w, "tokens");
    jw_i64(&w, "input", u.in);
    jw_i64(&w, "output", u.out);
    jw_i64(&w, "reasoning", 0);
    jw_obj(&w, "cache");
    jw_i64(&w, "read", u.cached);
    jw_i64(&w, "write", 0);
    jw_end(&w);
    jw_end(&w);
    jw_num(&w, "cost", demo_cost(&u));
    part_end(d, &w, &b);
    demo_memory_used(&d->mem, &u);
}

static void opencode_answer(struct demo *d, const struct demo_answer *a)
{
    char low[32];
    struct buf b;
    struct jw w;

    part_begin(d, &w, &b, "tool_use", "tool");
    jw_str(&w, "tool", demo_lower(a->name, low, sizeof(low)));
    jw_str(&w, "callID", a->id);
    jw_obj(&w, "state");
    jw_str(&w, "status", "completed");
    jw_raw(&w, "input", a->input);
    jw_str(&w, "output", buf_str(a->text));
    jw_obj(&w, "metadata");
    if (a->exit >= 0)
        jw_i64(&w, "exit", a->exit);
    jw_end(&w);
    jw_end(&w);
    part_end(d, &w, &b);
    step_finish(d, "tool-calls");
}

static void opencode_stop(struct demo *d, bool cut)
{
    step_finish(d, cut ? "length" : "stop");
}

static void opencode_retry(struct demo *d, int attempt, int max, int status)
{
    (void)d; /* it says nothing of them */
    (void)attempt;
    (void)max;
    (void)status;
}

static void opencode_end(struct demo *d, const struct demo_end *e)
{
    struct buf b;
    struct jw w;

    if (e->how != DEMO_FAILED)
        return;
    line_begin(d, &w, &b, "error");
    jw_obj(&w, "error");
    jw_str(&w, "name", "APIError");
    jw_obj(&w, "data");
    jw_str(&w, "message", e->what);
    jw_i64(&w, "statusCode", e->status);
    jw_bool(&w, "isRetryable", e->status == 429 || e->status >= 500);
    jw_end(&w);
    jw_end(&w);
    demo_line_end(&d->out, &w, &b);
    d->exit_status = 1;
}

const struct demo_dialect demo_opencode = {
    .name = "opencode",
    .new_id = opencode_id,
    .open = opencode_open,
    .lost = opencode_lost,
    .begin = opencode_begin,
    .step = opencode_step,
    .text = opencode_text,
    .call = opencode_call,
    .answer = opencode_answer,
    .stop = opencode_stop,
    .retry = opencode_retry,
    .end = opencode_end,
};
