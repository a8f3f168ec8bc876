/* The facade without threads: see fakeapp.h. */
#include "fakeapp.h"

#include <cct/jobs/shell.h>
#include <cct/model/project.h>
#include <cct/secrets/secret.h>

#include <cct/util/err.h>
#include <cct/util/str.h>
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

const struct app_tool *app_tools(struct app *a)
{
    return a->tools;
}

int app_check_create(struct app *a, const struct app_create *c, const char **field,
                     struct err *e)
{
    (void)a;
    *field = "name";
    if (c->name && !sandbox_name_ok(c->name))
        return err_set(e, ERR_INVALID, "name '%s': only A-Z a-z 0-9 _ - (at most 64)", c->name);
    return 0;
}

uint64_t app_create(struct app *a, const struct app_create *c, bool done_when_ready)
{
    struct buf env = BUF_INIT;
    for (const struct kv *kv = c->env; kv && kv->k; kv++)
        buf_addf(&env, " %s=%s", kv->k, kv->v);
    uint64_t id = fake_called(a, "create tool=%s name=%s template=%s timeout=%d pause=%d prompt=%s%s%s%s%s",
                         c->tool, c->name ? c->name : "-", c->template_id ? c->template_id : "-",
                         c->timeout_s, c->pause_at_end, c->prompt ? c->prompt : "-",
                         env.len ? env.p : "", c->ask ? " ask=" : "", c->ask ? c->ask : "",
                         done_when_ready ? "" : " early");
    buf_release(&env);
    return id;
}

size_t app_create_copies(struct app *a, const struct app_create *c, bool done_when_ready,
                         uint64_t reqs[APP_COPIES_MAX])
{
    struct buf more = BUF_INIT;
    reqs[0] = app_create(a, c, done_when_ready);
    if (c->model)
        buf_addf(&more, " model=%s", c->model);
    if (c->repo)
        buf_addf(&more, " repo=%s branch=%s", c->repo, c->branch ? c->branch : "-");
    if (c->env_file)
        buf_addf(&more, " env_file=%s", c->env_file);
    if (c->copies > 1)
        buf_addf(&more, " copies=%d", c->copies);
    if (more.len)
        fake_called(a, "  with%s", buf_str(&more));
    buf_release(&more);
    return 1;
}

uint64_t app_build(struct app *a, const struct app_build *b, bool wait, app_lines_fn fn, void *ctx)
{
    (void)wait;
    (void)fn;
    (void)ctx;
    return fake_called(a, "build name=%s from=%s tool=%s tag=%s%s", b->name, b->where ? b->where : "-",
                       b->tool ? b->tool : "-", b->tags ? b->tags[0] : "-",
                       b->no_cache ? " no-cache" : "");
}

uint64_t app_build_again(struct app *a, uint64_t id, const char *name, const struct kv *args,
                         bool wait, app_lines_fn fn, void *ctx)
{
    (void)args;
    (void)name;
    (void)wait;
    (void)fn;
    (void)ctx;
    return fake_called(a, "build again %llu", (unsigned long long)id);
}

uint64_t app_build_cancel(struct app *a, uint64_t id, const char *name)
{
    (void)name;
    return fake_called(a, "build cancel %llu", (unsigned long long)id);
}

uint64_t app_build_delete(struct app *a, uint64_t id, const char *name)
{
    return fake_called(a, "build delete %llu %s", (unsigned long long)id, name ? name : "-");
}

uint64_t app_build_export(struct app *a, const char *path, const char *text)
{
    return fake_called(a, "build export %s %zu bytes", path, strlen(text));
}

uint64_t app_build_follow(struct app *a, const char *which, app_lines_fn fn, void *ctx)
{
    a->log_fn = fn;
    a->log_ctx = ctx;
    buf_addf(&a->follows, "follow build %s\n", which);
    return ++a->next;
}

void app_build_unfollow(struct app *a, uint64_t req)
{
    (void)req;
    a->log_fn = NULL;
    buf_adds(&a->follows, "unfollow build\n");
}

void app_prepare(struct app *a)
{
    (void)a;
}

const struct app_templates *app_template_list(const struct app *a)
{
    return &a->templates;
}

const struct app_template *app_template_find(const struct app *a, const char *name)
{
    for (size_t i = 0; name && i < a->templates.n; i++)
        if (!strcmp(a->templates.v[i].name, name))
            return &a->templates.v[i];
    return NULL;
}

void app_key_look(struct app *a, const char *tool, const char *model, const struct kv *env,
                  struct app_key_look *out)
{
    (void)model;
    (void)env;
    *out = a->key;
    for (size_t i = 0; i < a->n_tools; i++)
        if (!strcmp(a->tools[i].name, tool) && a->tools[i].missing_key) {
            out->state = APP_KEY_BAD;
            snprintf(out->text, sizeof(out->text), "%s needs a key of %s: none in the environment, "
                     "the project \"default\" or for the user; store one with cc-tui keys add %s",
                     tool, a->tools[i].missing_key, a->tools[i].missing_key);
        }
}

void app_repo_key_look(struct app *a, const char *repo, const struct kv *env,
                       struct app_key_look *out)
{
    (void)env;
    *out = repo ? a->repo_key : (struct app_key_look){0};
}

void app_create_keys(struct app *a, const struct app_create *c, struct app_key_look *agent,
                     struct app_key_look *repo)
{
    app_key_look(a, c->tool, c->model, c->env, agent);
    app_repo_key_look(a, c->repo, c->env, repo);
}

bool app_look_at_files(struct app *a, const struct app_create *c, bool anew)
{
    (void)c;
    a->reading |= anew && a->slow_files;
    return !a->reading;
}

const struct app_model *app_models(struct app *a, const char *tool)
{
    (void)tool;
    return a->models;
}

uint64_t app_preset(struct app *a, const char *name, bool of_user, const struct project_choice *p)
{
    if (!p)
        return fake_called(a, "preset %s user=%d removed", name, of_user);
    return fake_called(a, "preset %s user=%d tool=%s model=%s repo=%s timeout=%d copies=%d", name,
                       of_user, p->tool, p->model ? p->model : "-", p->repo ? p->repo : "-",
                       p->timeout_s, p->copies);
}

uint64_t app_filter(struct app *a, const char *name, const char *words)
{
    return fake_called(a, "filter %s = %s", name, words ? words : "(away)");
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

const struct app_key *app_key_list(struct app *a)
{
    static const char *const names[] = {"e2b",    "anthropic",  "anthropic_token",
                                        "openai", "openrouter", "github"};
    static struct app_key list[7];

    (void)a;
    for (size_t i = 0; i < 6; i++)
        list[i] = (struct app_key){.provider = names[i], .text = (char *)"none"};
    list[1] = (struct app_key){names[1], "****1111", "****2222", true,
                               (char *)"anthropic ****2222 (project key); hides anthropic ****1111 "
                                       "(user key)"};
    return list;
}

struct secret *app_key_clean(struct secret *take, const char *provider, struct err *e)
{
    (void)provider;
    (void)e;
    return take;
}

static uint64_t with_secret(struct app *a, const char *what, const char *name, struct secret *take)
{
    uint64_t req = fake_called(a, "%s %s %zu bytes", what, name, take ? secret_len(take) : 0);

    secret_free(take);
    return req;
}

uint64_t app_key_add(struct app *a, const char *provider, bool project, struct secret *take)
{
    return with_secret(a, project ? "key_add project" : "key_add user", provider, take);
}

uint64_t app_key_rm(struct app *a, const char *provider, bool project)
{
    return fake_called(a, "key_rm %s %s", project ? "project" : "user", provider);
}

uint64_t app_key_test(struct app *a, const char *provider)
{
    return fake_called(a, "key_test %s", provider);
}

uint64_t app_unlock(struct app *a, struct secret *take)
{
    return with_secret(a, "unlock", "-", take);
}

uint64_t app_lock(struct app *a)
{
    return fake_called(a, "lock");
}

void app_touch(struct app *a)
{
    (void)a;
}

uint64_t app_project_switch(struct app *a, const char *project)
{
    return fake_called(a, "project_switch %s", project);
}

uint64_t app_project_var(struct app *a, const char *name, const char *value)
{
    return fake_called(a, value ? "project_var %s=%s" : "project_var %s removed", name, value);
}

uint64_t app_project_secret(struct app *a, const char *name, struct secret *take)
{
    return with_secret(a, "project_secret", name, take);
}

void app_project_view(struct app *a, bool all)
{
    fake_called(a, "project_view %s", all ? "all" : "one");
}

uint64_t app_project_rename(struct app *a, const char *project, const char *name)
{
    return fake_called(a, "project_rename %s %s", project, name);
}

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
