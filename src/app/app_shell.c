/* A terminal or a command in a sandbox: commands to it. */
#include "app_priv.h"

#include <cct/util/xalloc.h>
#include <string.h>

static struct cmd_shell *copy(const struct app_shell *w)
{
    struct cmd_shell *s = xcalloc(1, sizeof(*s));
    size_t n = 0;

    while (w->argv && w->argv[n])
        n++;
    if (w->argv)
        s->argv = xcalloc(n + 1, sizeof(*s->argv));
    for (size_t i = 0; i < n; i++)
        s->argv[i] = xstrdup(w->argv[i]);
    s->env = kv_dup(w->env);
    s->pid = w->pid;
    s->ident = w->ident;
    s->pty = w->pty;
    s->cols = w->cols;
    s->rows = w->rows;
    return s;
}

uint64_t app_shell(struct app *a, uint64_t sandbox, const struct app_shell *what,
                   const struct app_shell_cb *cb)
{
    struct cmd *c = app_cmd(a, CMD_SHELL);

    c->sandbox = sandbox;
    c->shell = copy(what);
    return app_sink_post(a, c, &(struct sink){.stream_fn = cb->on_data,
                                              .news_fn = cb->on_news,
                                              .end_fn = cb->on_end,
                                              .ctx = cb->ctx});
}

/* No answer is wanted. */
static struct cmd *to_shell(struct app *a, enum cmd_type t, uint64_t shell, int64_t n)
{
    struct cmd *c = app_cmd(a, t);

    c->m.req_id = 0;
    c->id = shell;
    c->n = n;
    return c;
}

void app_shell_input(struct app *a, uint64_t shell, const char *data, size_t len)
{
    struct cmd *c = to_shell(a, CMD_SHELL_INPUT, shell, (int64_t)len);

    c->text = xmalloc(len + 1);
    memcpy(c->text, data, len);
    app_post(a, c);
}

void app_shell_eof(struct app *a, uint64_t shell)
{
    app_post(a, to_shell(a, CMD_SHELL_EOF, shell, 0));
}

void app_shell_took(struct app *a, uint64_t shell, size_t n)
{
    app_post(a, to_shell(a, CMD_SHELL_TOOK, shell, (int64_t)n));
}

void app_shell_size(struct app *a, uint64_t shell, int cols, int rows)
{
    app_post(a, to_shell(a, CMD_SHELL_SIZE, shell, (int64_t)cols << 16 | rows));
}

void app_shell_leave(struct app *a, uint64_t shell, bool end)
{
    struct cmd *c = to_shell(a, CMD_SHELL_LEAVE, shell, 0);

    app_sink_drop(a, shell);
    c->on = end;
    app_post(a, c);
}
