/* Tools that run once per message print no sign of their end, and some none of their
 * begin: the keeper's file of runs says both, with the bytes of the log they belong to. */
#include "session_follow.h"
#include "session_priv.h"
#include "session_relay.h"

#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAIL_MS 600000

static void end_run(struct session *s, const struct session_run_end *e)
{
    *ARR_PUSH(&s->fo.p.ends) = *e;
    session_look_ends(s); /* now, or when its last byte is here */
}

void session_runs_ended(struct session *s, const char *err, size_t len)
{
    s->fo.runs_call = 0;
    free(s->fo.p.err_tail);
    s->fo.p.err_tail = err ? xstrndup(err, len) : NULL;
    s->fo.p.err_run = s->fo.runs_end.run;
    end_run(s, &s->fo.runs_end);
    session_runs_go(s); /* first: whose output it is that waits */
    session_follow_held(s);
}

static void on_stderr(void *ctx, const struct envd_result *r)
{
    session_runs_ended(ctx, r->err.code ? NULL : r->body, r->len);
}

static void use_line(struct session *s, const char *line)
{
    struct session_run_line r;
    struct session_run_end e;
    uint64_t from;
    char *path;

    if (!session_run_line(&r, line) || r.run <= s->fo.runs_done)
        return; /* over: a tail that is opened again begins where the last look was */
    if (r.interrupt) {
        s->fo.p.interrupted = r.run;
        return;
    }
    if (r.start) {
        s->fo.p.last = r;
        session_turn_run(s, &r);
        session_agent(s, AG_WORKING);
        return;
    }
    e = (struct session_run_end){
        .run = r.run, .offset = r.offset, .code = r.code,
        .interrupted = r.run == s->fo.p.interrupted};
    if (r.code == 0) {
        end_run(s, &e);
        return;
    }
    s->fo.runs_end = e;
    from = r.run == s->fo.p.last.run ? s->fo.p.last.err_offset : 0;
    if (r.err_offset > from + LIM_STDERR_TAIL)
        from = r.err_offset - LIM_STDERR_TAIL;
    path = session_path(s, SESSION_ERR_LOG);
    s->fo.runs_call = envd_read(s->envd, path, from, LIM_STDERR_TAIL, on_stderr, s);
    free(path);
}

static void on_start(void *ctx, int pid)
{
    ((struct session *)ctx)->fo.runs_pid = pid;
}

/* What follows an end waits until that end is told, with its stderr and behind its last byte: the
 * next run's message must not be there before. */
void session_runs_go(struct session *s)
{
    struct buf *b = &s->fo.runs_text;
    uint64_t stream = s->fo.runs_stream;
    char *nl;

    while (s->fo.runs_stream == stream && b->len && !s->fo.runs_call &&
           session_look_next_end(s) == UINT64_MAX && (nl = memchr(b->p, '\n', b->len))) {
        char *line = xstrndup(b->p, (size_t)(nl - b->p));

        buf_consume(b, (size_t)(nl - b->p) + 1);
        use_line(s, line);
        free(line);
    }
}

void session_runs_feed(struct session *s, const char *data, size_t len)
{
    buf_add(&s->fo.runs_text, data, len);
    session_runs_go(s);
}

static bool on_data(void *ctx, enum envd_stream st, const char *data, size_t len)
{
    struct session *s = ctx;
    uint64_t stream = s->fo.runs_stream;

    if (st == ENVD_STDOUT)
        session_runs_feed(s, data, len);
    return s->fo.runs_stream == stream;
}

static void on_end(void *ctx, const struct envd_end *end)
{
    struct session *s = ctx;

    (void)end;
    s->fo.runs_stream = 0;
    s->fo.runs_pid = 0;
    session_follow_again(s); /* a look tells what was missed */
}

void session_runs_follow(struct session *s)
{
    char from[32], *path;
    const char *args[] = {"-c", from, "-f", NULL, NULL};
    struct envd_proc_cb cb = {on_start, on_data, on_end, s};
    struct envd_proc_spec spec = {.cmd = "tail", .args = args, .timeout_ms = TAIL_MS};

    if (s->ad->mode != AGENT_ONE_RUN || s->fo.runs_stream)
        return;
    path = session_path(s, SESSION_RUNS);
    snprintf(from, sizeof(from), "+%" PRIu64, s->fo.p.runs_size + 1);
    args[3] = path;
    buf_clear(&s->fo.runs_text);
    s->fo.runs_stream = envd_start(s->envd, &spec, &cb);
    free(path);
}

void session_runs_close(struct session *s)
{
    if (s->fo.runs_stream)
        envd_close(s->envd, s->fo.runs_stream);
    if (s->fo.runs_call)
        envd_cancel(s->envd, s->fo.runs_call);
    s->fo.runs_stream = s->fo.runs_call = 0;
    s->fo.runs_pid = 0;
    buf_release(&s->fo.runs_text);
    buf_release(&s->fo.held); /* it is read again */
}
