/* Bytes and lines on their way to a command. */
#include "app_priv.h"

#include <cct/jobs/session.h>
#include <cct/jobs/shell.h>
#include <cct/model/files.h>
#include <cct/util/xalloc.h>

static struct sink *find(struct app *a, uint64_t req_id)
{
    for (size_t i = 0; i < a->sinks.n; i++)
        if (a->sinks.v[i].req_id == req_id)
            return &a->sinks.v[i];
    return NULL;
}

void app_sink_drop(struct app *a, uint64_t req_id)
{
    struct sink *s = find(a, req_id);

    if (s)
        ARR_REMOVE(&a->sinks, s - a->sinks.v);
}

void app_leave(struct app *a)
{
    ARR_CLEAR(&a->sinks);
}

bool app_sink_take(struct app *a, const struct msg *m)
{
    struct sink *s = m->req_id ? find(a, m->req_id) : NULL;

    if (m->type == EV_CHUNK) {
        const struct ev_chunk *c = (const struct ev_chunk *)m;
        if (s && s->fn)
            s->fn(s->ctx, c->data, c->len);
        else if (s && s->stream_fn)
            s->stream_fn(s->ctx, c->stream, c->data, c->len);
        return true;
    }
    if (m->type == EV_FILES) {
        if (s && s->list_fn)
            s->list_fn(s->ctx, &((const struct ev_files *)m)->list);
        return true;
    }
    if (m->type == EV_PROGRESS) {
        if (s && s->progress_fn)
            s->progress_fn(s->ctx, (const struct ev_progress *)m);
        return true;
    }
    if (m->type == EV_SHELL) {
        if (s && s->news_fn)
            s->news_fn(s->ctx, (const struct ev_shell *)m);
        return true;
    }
    if (s && m->type == EV_DONE) {
        struct sink last = *s;

        ARR_REMOVE(&a->sinks, s - a->sinks.v);
        if (last.end_fn)
            last.end_fn(last.ctx, (const struct ev_done *)m);
    }
    return false;
}

uint64_t app_sink_post(struct app *a, struct cmd *c, const struct sink *s)
{
    struct sink *kept = ARR_PUSH(&a->sinks);

    *kept = *s;
    kept->req_id = c->m.req_id;
    return app_post(a, c);
}

static uint64_t stream(struct app *a, struct cmd *c,
                       void (*fn)(void *ctx, const char *data, size_t len), void *ctx)
{
    return app_sink_post(a, c, &(struct sink){.fn = fn, .ctx = ctx});
}

uint64_t app_raw(struct app *a, uint64_t sandbox, int64_t from, bool follow,
                 void (*fn)(void *ctx, const char *data, size_t len), void *ctx)
{
    struct cmd *c = app_cmd(a, CMD_RAW);

    c->sandbox = sandbox;
    c->n = from;
    c->on = follow;
    return stream(a, c, fn, ctx);
}

void app_logs_end(struct app *a, uint64_t sandbox, uint64_t req)
{
    struct cmd *c = app_cmd(a, CMD_LOGS_END);

    app_sink_drop(a, req);
    c->m.req_id = 0;
    c->sandbox = sandbox;
    c->id = req;
    app_post(a, c);
}

uint64_t app_events(struct app *a, uint64_t sandbox, bool follow,
                    void (*fn)(void *ctx, const char *json, size_t len), void *ctx)
{
    struct cmd *c = app_cmd(a, CMD_EVENTS);

    c->sandbox = sandbox;
    c->on = follow;
    return stream(a, c, fn, ctx);
}

uint64_t app_templates(struct app *a, app_lines_fn fn, void *ctx)
{
    return stream(a, app_cmd(a, CMD_TEMPLATES), fn, ctx);
}

uint64_t app_builds(struct app *a, const char *template_name, app_lines_fn fn, void *ctx)
{
    struct cmd *c = app_cmd(a, CMD_BUILDS);

    c->text = xstrdup(template_name);
    return stream(a, c, fn, ctx);
}

uint64_t app_build_follow(struct app *a, const char *which, app_lines_fn fn, void *ctx)
{
    struct cmd *c = app_cmd(a, CMD_BUILD_FOLLOW);

    c->text = xstrdup(which);
    return stream(a, c, fn, ctx);
}

uint64_t app_system_logs(struct app *a, uint64_t sandbox, bool follow, app_lines_fn fn, void *ctx)
{
    struct cmd *c = app_cmd(a, CMD_SYSTEM_LOGS);

    c->sandbox = sandbox;
    c->on = follow;
    return stream(a, c, fn, ctx);
}

uint64_t app_export(struct app *a, uint64_t sandbox, int format, const char *path,
                    void (*fn)(void *ctx, const char *data, size_t len), void *ctx)
{
    struct cmd *c = app_cmd(a, CMD_EXPORT);

    c->sandbox = sandbox;
    c->n = format;
    c->text = xstrdup(path);
    return path ? app_post(a, c) : stream(a, c, fn, ctx);
}

uint64_t app_usage(struct app *a, const char *range, int how)
{
    struct cmd *c = app_cmd(a, CMD_USAGE);

    c->text = xstrdup(range);
    c->n = how;
    return app_post(a, c);
}

uint64_t app_usage_export(struct app *a, const char *range, const char *path)
{
    struct cmd *c = app_cmd(a, CMD_USAGE);

    c->text = xstrdup(range);
    c->text2 = xstrdup(path);
    c->n = USAGE_BY_HOUR;
    return app_post(a, c);
}

uint64_t app_search(struct app *a, const char *words, uint64_t sandbox, size_t limit,
                    uint64_t before, bool whole)
{
    struct cmd *c = app_cmd(a, CMD_SEARCH);

    c->text = xstrdup(words);
    c->sandbox = sandbox;
    c->n = (int64_t)limit;
    c->id = before;
    c->on = whole;
    return app_post(a, c);
}
