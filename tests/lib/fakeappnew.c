/* The facade without threads: what a new sandbox is made of. Tools, templates and their builds,
 * models, presets, and whether it has the keys that it needs. */
#include "fakeapp.h"

#include <cct/model/project.h>
#include <cct/util/err.h>
#include <stdio.h>
#include <string.h>

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
