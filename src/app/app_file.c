/* Files of a sandbox: commands. */
#include "app_priv.h"

#include <cct/util/xalloc.h>

uint64_t app_file(struct app *a, uint64_t sandbox, const struct app_file *f,
                  const struct app_file_cb *cb)
{
    struct cmd *c = app_cmd(a, CMD_FILE);

    c->sandbox = sandbox;
    c->file = xcalloc(1, sizeof(*c->file));
    c->file->op = f->op;
    c->file->path = xstrdup(f->path && *f->path ? f->path : ".");
    c->file->to = xstrdup(f->to);
    c->file->local = xstrdup(f->local);
    c->file->over = f->over;
    c->file->max = f->max;
    return app_sink_post(a, c, &(struct sink){.fn = cb->on_data,
                                              .list_fn = cb->on_list,
                                              .progress_fn = cb->on_progress,
                                              .end_fn = cb->on_end,
                                              .ctx = cb->ctx});
}

void app_file_cancel(struct app *a, uint64_t req)
{
    struct cmd *c = app_cmd(a, CMD_FILE_CANCEL);

    app_sink_drop(a, req);
    c->m.req_id = 0;
    c->id = req;
    app_post(a, c);
}
