/* The facade without threads: shells and files of sandboxes. */
#include "fakeapp.h"

#include <cct/jobs/shell.h>
#include <stdio.h>
#include <string.h>

uint64_t app_shell(struct app *a, uint64_t sandbox, const struct app_shell *what,
                   const struct app_shell_cb *cb)
{
    struct ev_shell ev = {.news = SHELL_LIVE, .pid = 1207, .ident = 9};

    a->shell = *cb;
    a->shell_req = fake_called(a, "shell %llu pid %d %s", (unsigned long long)sandbox, what->pid,
                               what->pty ? "pty" : "pipes");
    cb->on_news(cb->ctx, &ev);
    cb->on_data(cb->ctx, 2, "fake shell\r\n", 12);
    return a->shell_req;
}

void app_shell_input(struct app *a, uint64_t shell, const char *data, size_t len)
{
    struct ev_shell ev = {.news = SHELL_TAKEN, .pid = 1207, .n = len};
    struct ev_done end = {.exit_code = 3};

    (void)shell;
    a->shell.on_news(a->shell.ctx, &ev);
    a->shell.on_data(a->shell.ctx, 2, data, len);
    if (memchr(data, '!', len))
        a->shell.on_end(a->shell.ctx, &end);
}

void app_shell_eof(struct app *a, uint64_t shell)
{
    fake_called(a, "shell eof %llu", (unsigned long long)shell);
}

void app_shell_took(struct app *a, uint64_t shell, size_t n)
{
    (void)a, (void)shell, (void)n;
}

void app_shell_size(struct app *a, uint64_t shell, int cols, int rows)
{
    char text[40];
    int n = snprintf(text, sizeof(text), "size %d %d\r\n", cols, rows);

    (void)shell;
    a->shell.on_data(a->shell.ctx, 2, text, (size_t)n);
}

void app_shell_leave(struct app *a, uint64_t shell, bool end)
{
    fake_called(a, "shell leave %llu %d", (unsigned long long)shell, end);
}

uint64_t app_file(struct app *a, uint64_t sandbox, const struct app_file *f,
                  const struct app_file_cb *cb)
{
    a->file = *cb;
    a->file_req = fake_called(a, "file %llu op %d %s%s%s%s%s%s", (unsigned long long)sandbox, f->op,
                              f->path ? f->path : "-", f->to ? " to " : "", f->to ? f->to : "",
                              f->local ? " here " : "", f->local ? f->local : "",
                              f->over ? " over" : "");
    return a->file_req;
}

void app_file_cancel(struct app *a, uint64_t req)
{
    if (req == a->file_req)
        a->file = (struct app_file_cb){0};
    fake_called(a, "file cancel %llu", (unsigned long long)req);
}
