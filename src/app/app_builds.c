/* Building templates. */
#include "app_priv.h"

#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The next process may stand in another folder. */
static char *absolute(const char *path)
{
    const char *home = str_starts(path, "~/") ? getenv("HOME") : NULL;
    char here[4096];

    if (home && *home)
        return fs_join(home, path + 2);
    if (*path == '/' || !getcwd(here, sizeof(here)))
        return xstrdup(path);
    return fs_join(here, path);
}

static char **dup_list(const char *const *v)
{
    size_t n = 0;
    char **out;

    while (v && v[n])
        n++;
    out = xcalloc(n + 1, sizeof(*out));
    for (size_t i = 0; i < n; i++)
        out[i] = xstrdup(v[i]);
    return out;
}

static uint64_t post(struct app *a, struct cmd *c, app_lines_fn fn, void *ctx)
{
    return fn ? app_sink_post(a, c, &(struct sink){.fn = fn, .ctx = ctx}) : app_post(a, c);
}

uint64_t app_build(struct app *a, const struct app_build *b, bool wait, app_lines_fn fn, void *ctx)
{
    struct cmd *c = app_cmd(a, CMD_BUILD);
    struct cmd_build *q = c->build = xcalloc(1, sizeof(*q));

    c->on = wait;
    q->name = xstrdup(b->name ? b->name : "");
    q->where = b->where && *b->where ? absolute(b->where) : NULL;
    q->tool = b->tool && *b->tool ? xstrdup(b->tool) : NULL;
    q->tags = dup_list(b->tags);
    q->args = kv_dup(b->args);
    q->cpu_count = b->cpu_count;
    q->memory_mb = b->memory_mb;
    q->no_cache = b->no_cache;
    return post(a, c, fn, ctx);
}

static struct cmd *on_build(struct app *a, enum cmd_type t, uint64_t id, const char *name)
{
    struct cmd *c = app_cmd(a, t);

    c->id = id;
    c->text = xstrdup(name);
    return c;
}

uint64_t app_build_again(struct app *a, uint64_t id, const char *name, const struct kv *args,
                         bool wait, app_lines_fn fn, void *ctx)
{
    struct cmd *c = on_build(a, CMD_BUILD_AGAIN, id, name);

    c->build = xcalloc(1, sizeof(*c->build));
    c->build->args = kv_dup(args);
    c->on = wait;
    return post(a, c, fn, ctx);
}

uint64_t app_build_cancel(struct app *a, uint64_t id, const char *name)
{
    return app_post(a, on_build(a, CMD_BUILD_CANCEL, id, name));
}

uint64_t app_build_delete(struct app *a, uint64_t id, const char *name)
{
    return app_post(a, on_build(a, CMD_BUILD_DELETE, id, name));
}

uint64_t app_build_tag(struct app *a, const char *target, const char *const *tags, bool away)
{
    struct cmd *c = on_build(a, CMD_BUILD_TAG, 0, target);

    c->on = away;
    c->build = xcalloc(1, sizeof(*c->build));
    c->build->tags = dup_list(tags);
    return app_post(a, c);
}

uint64_t app_build_rows(struct app *a, app_lines_fn fn, void *ctx)
{
    return post(a, app_cmd(a, CMD_BUILD_ROWS), fn, ctx);
}

void app_build_unfollow(struct app *a, uint64_t req)
{
    struct cmd *c = app_cmd(a, CMD_BUILD_UNFOLLOW);

    c->id = req;
    app_post(a, c);
}

uint64_t app_build_export(struct app *a, const char *path, const char *text)
{
    struct cmd *c = app_cmd(a, CMD_BUILD_EXPORT);

    c->text = xstrdup(path);
    c->text2 = xstrdup(text);
    return app_post(a, c);
}
