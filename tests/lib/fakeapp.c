/* The facade without threads: see fakeapp.h. */
#include "fakeapp.h"

#include <cct/util/err.h>
#include <cct/util/xalloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

uint64_t fake_called(struct app *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    buf_adds(&a->calls, "call ");
    buf_addv(&a->calls, fmt, ap);
    buf_addc(&a->calls, '\n');
    va_end(ap);
    return ++a->next;
}

struct app *fake_new(void)
{
    struct app *a = xcalloc(1, sizeof(*a));
    a->model = model_new();
    a->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return a;
}

void fake_free(struct app *a)
{
    close(a->fd);
    model_free(a->model);
    buf_release(&a->calls);
    buf_release(&a->follows);
    for (size_t i = 0; i < a->templates.n; i++) {
        free(a->templates.v[i].name);
        free(a->templates.v[i].status);
    }
    free(a->templates.v);
    for (size_t i = 0; i < a->n_models; i++)
        free(a->models[i].word);
    for (size_t i = 0; i < a->n_tools; i++) {
        free((char *)a->tools[i].name);
        free((char *)a->tools[i].template_id);
        free(a->tools[i].missing_key);
    }
    free(a);
}

const struct model *app_model(const struct app *a)
{
    return a->model;
}

uint64_t app_send(struct app *a, uint64_t sandbox, const char *text, bool wait)
{
    (void)wait;
    return fake_called(a, "send %d %s", (int)sandbox, text);
}

static const char *how_text(int how)
{
    return how == SEND_NOW ? " now" : how == SEND_FILL ? " fill" : how ? " fill now" : "";
}

uint64_t app_send_how(struct app *a, uint64_t sandbox, const char *text, bool wait, int how)
{
    (void)wait;
    return fake_called(a, "send %d%s %s", (int)sandbox, how_text(how), text);
}

uint64_t app_broadcast(struct app *a, const uint64_t *ids, size_t n, const char *text, int how)
{
    struct buf b = BUF_INIT;
    for (size_t i = 0; i < n; i++)
        buf_addf(&b, " %d", (int)ids[i]);
    uint64_t id = fake_called(a, "broadcast%s%s: %s", buf_str(&b), how_text(how), text);
    buf_release(&b);
    return id;
}

/* Actions on a thing by its id. */
#define FAKE_ID(fn)                                                                            \
    uint64_t app_##fn(struct app *a, uint64_t id)                                              \
    {                                                                                          \
        return fake_called(a, #fn " %d", (int)id);                                                  \
    }
FAKE_ID(message_cancel)
FAKE_ID(message_retry)
FAKE_ID(interrupt)
FAKE_ID(restart_agent)
FAKE_ID(kill)
uint64_t app_tag(struct app *a, uint64_t sandbox, const char *tags)
{
    return fake_called(a, "tag %d %s", (int)sandbox, tags);
}

FAKE_ID(pause)
FAKE_ID(forget)

uint64_t app_answer(struct app *a, uint64_t sandbox, const char *question, int choice,
                    const char *text)
{
    return fake_called(a, "answer %d %s %d %s", (int)sandbox, question ? question : "-", choice,
                       text ? text : "-");
}

uint64_t app_set_timeout(struct app *a, uint64_t sandbox, int s)
{
    return fake_called(a, "set_timeout %d %d", (int)sandbox, s);
}

uint64_t app_resume(struct app *a, uint64_t sandbox, int timeout_s)
{
    return fake_called(a, "resume %d %d", (int)sandbox, timeout_s);
}

uint64_t app_rename(struct app *a, uint64_t sandbox, const char *name)
{
    return fake_called(a, "rename %d %s", (int)sandbox, name);
}

uint64_t app_pair_in(struct app *a, uint64_t sandbox, const struct app_create *c)
{
    return fake_called(a, "pair in %d %s %s", (int)sandbox, c->pair->side[0].tool,
                       c->pair->side[1].tool);
}

uint64_t app_pair_do(struct app *a, uint64_t sandbox, int kind, int rounds, const char *note)
{
    return fake_called(a, "pair %d %d %d %s", (int)sandbox, kind, rounds, note ? note : "");
}

void app_protect(struct app *a, uint64_t sandbox, bool on)
{
    fake_called(a, "protect %d %d", (int)sandbox, on);
}

uint64_t app_kill_all_open(struct app *a, bool account_scope)
{
    return fake_called(a, "kill_all_open %s", account_scope ? "account" : "project");
}

uint64_t app_kill_all_confirm(struct app *a, bool account_scope, size_t expected)
{
    return fake_called(a, "kill_all_confirm %s %zu", account_scope ? "account" : "project", expected);
}

void app_kill_all_cancel(struct app *a)
{
    fake_called(a, "kill_all_cancel");
}

uint64_t app_kill_all_retry(struct app *a)
{
    return fake_called(a, "kill_all_retry");
}

void app_follow(struct app *a, uint64_t sandbox)
{
    buf_addf(&a->follows, "follow %d\n", (int)sandbox);
}

void app_unfollow(struct app *a, uint64_t sandbox)
{
    buf_addf(&a->follows, "unfollow %d\n", (int)sandbox);
}

void app_load_older(struct app *a, uint64_t sandbox)
{
    fake_called(a, "load_older %d", (int)sandbox);
}

void app_load_newer(struct app *a, uint64_t sandbox)
{
    fake_called(a, "load_newer %d", (int)sandbox);
}

void app_load_begin(struct app *a, uint64_t sandbox)
{
    fake_called(a, "load_begin %d", (int)sandbox);
}

uint64_t app_refresh(struct app *a)
{
    return fake_called(a, "refresh");
}

void app_active(struct app *a, bool active)
{
    (void)a;
    (void)active;
}

uint64_t app_raw(struct app *a, uint64_t sandbox, int64_t from, bool follow,
                 void (*fn)(void *ctx, const char *data, size_t len), void *ctx)
{
    static const char raw[] = "{\"type\":\"system\"}\n\033]0;evil\007{\"type\":\"result\"}\n";
    (void)from;
    a->raw_fn = follow ? fn : NULL;
    a->raw_ctx = ctx;
    fn(ctx, raw, sizeof(raw) - 1);
    return fake_called(a, "raw %d", (int)sandbox);
}

void app_logs_end(struct app *a, uint64_t sandbox, uint64_t req)
{
    (void)req;
    a->raw_fn = NULL;
    fake_called(a, "no more raw %d", (int)sandbox);
}

int app_fd(const struct app *a)
{
    return a->fd;
}

void app_feed(struct app *a, struct msg *take)
{
    model_apply(a->model, take);
    msg_free(take);
}

bool app_drain(struct app *a, int budget_ms)
{
    uint64_t n;
    (void)budget_ms;
    if (read(a->fd, &n, sizeof(n)) != (ssize_t)sizeof(n))
        return false;
    return a->on_drain ? a->on_drain(a) : false;
}

int app_go_online(struct app *a, struct err *e)
{
    (void)e;
    if (a->on_online)
        a->on_online(a);
    return 0;
}

uint64_t app_search(struct app *a, const char *words, uint64_t sandbox, size_t limit,
                    uint64_t before, bool whole)
{
    (void)limit;
    (void)before;
    (void)whole;
    return fake_called(a, "search %llu %s", (unsigned long long)sandbox, words);
}

uint64_t app_usage(struct app *a, const char *range, int how)
{
    return fake_called(a, "usage %s%s", range, how & USAGE_KEEP ? " keep" : "");
}

uint64_t app_usage_export(struct app *a, const char *range, const char *path)
{
    return fake_called(a, "usage export %s %s", range, path);
}

uint64_t app_export(struct app *a, uint64_t sandbox, int format, const char *path,
                    void (*fn)(void *ctx, const char *data, size_t len), void *ctx)
{
    static const char all[] = "all that was said\n";
    if (fn)
        fn(ctx, all, sizeof(all) - 1);
    return fake_called(a, "export %llu %d %s", (unsigned long long)sandbox, format,
                       path ? path : "-");
}

void app_procs(struct app *a, uint64_t sandbox, bool on)
{
    fake_called(a, "procs %d %d", (int)sandbox, on);
}

uint64_t app_proc_watch(struct app *a, uint64_t sandbox, int pid, uint64_t ident)
{
    return fake_called(a, "proc_watch %d %d %d", (int)sandbox, pid, (int)ident);
}

uint64_t app_proc_kill(struct app *a, uint64_t sandbox, int pid, uint64_t ident, bool hard)
{
    return fake_called(a, "proc_kill %d %d %d %s", (int)sandbox, pid, (int)ident,
                       hard ? "KILL" : "TERM");
}

uint64_t app_adopt(struct app *a, uint64_t sandbox, const struct app_adopt *how)
{
    return fake_called(a, "adopt %d name=%s project=%s pid=%d", (int)sandbox,
                       how->name ? how->name : "-", how->project ? how->project : "-", how->pid);
}

uint64_t app_unadopt(struct app *a, uint64_t sandbox)
{
    return fake_called(a, "unadopt %d", (int)sandbox);
}

void app_event_add(struct app *a, int level, uint64_t sandbox, const char *text)
{
    fake_called(a, "event %d %d %s", level, (int)sandbox, text);
}

void app_stop(struct app *a)
{
    (void)a;
}

void app_observe(struct app *a, void (*fn)(void *ctx, const struct msg *ev), void *ctx)
{
    a->observe = fn;
    a->observe_ctx = ctx;
}
