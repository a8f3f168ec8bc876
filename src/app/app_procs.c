/* Processes and sandboxes that cc-tui did not make: commands. */
#include "app_priv.h"

#include <cct/util/xalloc.h>

static struct cmd *on_process(struct app *a, enum cmd_type t, uint64_t sandbox, int pid,
                              uint64_t ident, bool on)
{
    struct cmd *c = app_cmd(a, t);

    c->sandbox = sandbox;
    c->n = pid;
    c->id = ident;
    c->on = on;
    return c;
}

void app_procs(struct app *a, uint64_t sandbox, bool on)
{
    struct cmd *c = on_process(a, CMD_PROCS, sandbox, 0, 0, on);

    c->m.req_id = 0; /* no answer is wanted */
    app_post(a, c);
}

uint64_t app_proc_list(struct app *a, uint64_t sandbox)
{
    return app_post(a, on_process(a, CMD_PROC_LIST, sandbox, 0, 0, false));
}

uint64_t app_proc_watch(struct app *a, uint64_t sandbox, int pid, uint64_t ident)
{
    return app_post(a, on_process(a, CMD_PROC_WATCH, sandbox, pid, ident, false));
}

uint64_t app_proc_bytes(struct app *a, uint64_t sandbox, int pid, uint64_t ident,
                        void (*fn)(void *ctx, int stream, const char *data, size_t len),
                        void *ctx)
{
    struct sink s = {.stream_fn = fn, .ctx = ctx};

    return app_sink_post(a, on_process(a, CMD_PROC_WATCH, sandbox, pid, ident, true), &s);
}

uint64_t app_proc_kill(struct app *a, uint64_t sandbox, int pid, uint64_t ident, bool hard)
{
    return app_post(a, on_process(a, CMD_PROC_KILL, sandbox, pid, ident, hard));
}

uint64_t app_adopt(struct app *a, uint64_t sandbox, const struct app_adopt *how)
{
    struct cmd *c = on_process(a, CMD_ADOPT, sandbox, how->pid, how->ident, false);

    c->text = xstrdup(how->name);
    c->text2 = xstrdup(how->project);
    return app_post(a, c);
}

uint64_t app_unadopt(struct app *a, uint64_t sandbox)
{
    return app_post(a, on_process(a, CMD_UNADOPT, sandbox, 0, 0, false));
}
