/* The facade: queues and threads, and events into the model. */
#include "app_priv.h"

#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/limits.h>
#include <cct/util/log.h>
#include <cct/util/str.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef CCT_VERSION
#define CCT_VERSION "unknown"
#endif

#define KEPT_LINES 200 /* of the events pane, shown again at the start */

static char *place(const char *given, enum fs_place which, struct err *e)
{
    return given ? xstrdup(given) : fs_place(which, e);
}

static int find_places(struct app *a, struct err *e)
{
    a->data_dir = place(a->o.data_dir, FS_DATA, e);
    a->config_dir = a->data_dir ? place(a->o.config_dir, FS_CONFIG, e) : NULL;
    a->runtime_dir = xstrdup(a->o.runtime_dir);
    a->state_dir = xstrdup(a->o.state_dir);
    return a->config_dir ? 0 : ERR_INVALID;
}

struct app *app_new(const struct app_opts *o, struct err *e)
{
    struct app *a = xcalloc(1, sizeof(*a));
    struct net_opts n = {.user_agent = "cc-tui/" CCT_VERSION};
    char id[17];

    a->o = *o;
    a->model = model_new();
    a->asked = xstrdup(o->project && *o->project ? o->project : NULL);
    a->model->project = xstrdup(a->asked);
    a->project_folder = xstrdup(o->project_folder);
    a->api = keys_api();
    a->ca_file = xstrdup(o->ca_file);
    a->events = mq_new(LIM_QUEUE_BYTES);
    a->tools = tools_new();
    a->models = models_new();
    n.ca_file = a->ca_file;
    a->net = net_new(&n);
    rand_id(id, 16);
    snprintf(a->owner, sizeof(a->owner), "%ld-%s", (long)getpid(), id);
    if (find_places(a, e) != 0) {
        app_free(a);
        return NULL;
    }
    return a;
}

struct app *app_new_shown(const struct app_opts *o, const char *why, struct err *e)
{
    struct app *a = app_new(o, e);

    if (a)
        a->only_shown = xstrdup(why);
    return a;
}

void app_feed(struct app *a, struct msg *take)
{
    mq_post(a->events, MQ_NORMAL, take);
}

static void say_conf(void *ctx, const char *message)
{
    app_event_add(ctx, 1, 0, message);
}

static void load_tools(struct app *a)
{
    char *tools = fs_join(a->config_dir, "tools.conf");
    char *models = fs_join(a->config_dir, "models.conf");
    const struct tool *t;
    struct err e = {0};

    if (tools_load(a->tools, tools, say_conf, a, &e) != 0)
        app_event_add(a, 2, 0, e.text);
    for (size_t i = 0; (t = tools_at(a->tools, i)); i++)
        for (char **v = t->needs_env; v && *v; v++)
            keys_take_variable(*v);
    if (models_load(a->models, models, say_conf, a, &e) != 0)
        app_event_add(a, 2, 0, e.text);
    free(tools);
    free(models);
}

static struct jobs_opts job_opts(struct app *a)
{
    return (struct jobs_opts){.net = a->net,
                              .store = a->store,
                              .events = a->events,
                              .project = a->asked,
                              .owner = a->owner,
                              .follow_all = a->o.follow_all,
                              .pictures = a->o.pictures,
                              .readonly = a->o.readonly,
                              .local = a->o.local || a->o.local_unsafe,
                              .local_unsafe = a->o.local_unsafe,
                              .start_local = a->o.start_local,
                              .local_private_net = a->o.local_private_net,
                              .outside = &a->outside,
                              .project_folder = a->project_folder,
                              .config_dir = a->config_dir,
                              .passphrase = a->o.passphrase,
                              .keys_only = a->o.keys_only,
                              .first_demo = a->o.first_demo,
                              .runtime_dir = a->runtime_dir,
                              .state_dir = a->state_dir,
                              .poll_ms = a->o.poll_ms,
                              .keepalive_s = a->o.keepalive_s,
                              .vault_idle_s = a->o.vault_idle_s,
                              .kill_all_grace_s = a->o.kill_all_grace_s,
                              .usage_limits = a->o.usage_limits,
                              .kill_wait_ms = a->o.kill_wait_ms,
                              .tools = a->tools,
                              .models = a->models};
}

int app_start(struct app *a, struct err *e)
{
    struct store_opts s = {.dir = a->data_dir,
                           .retention_days = a->o.retention_days,
                           .max_bytes = a->o.max_store_bytes,
                           .vacuum = a->o.vacuum,
                           .slow_end = a->o.slow_end};
    struct jobs_opts o;

    THREAD_ASSERT(THREAD_MAIN);
    load_tools(a);
    app_keys_look(a);
    a->store = store_start(&s, net_mq(a->net), e);
    if (!a->store)
        return e && e->code ? e->code : ERR_IO;
    /* whose rows may be shown, then the rows */
    store_projects(a->store, a->asked, -1, (struct st_to){a->events, 0});
    store_keys(a->store, a->asked, a->project_folder, -1, (struct st_to){a->events, 0});
    /* for the first picture; the net thread reads the rows for itself after this */
    store_sandboxes(a->store, (struct st_to){a->events, 0});
    if (a->o.follow_all) /* the screen, which has a pane for them */
        store_log(a->store, KEPT_LINES, (struct st_to){a->events, 0});
    o = job_opts(a);
    a->jobs = jobs_new(&o);
    return 0;
}

int app_go_online(struct app *a, struct err *e)
{
    struct net_hooks h = jobs_hooks(a->jobs);
    int rc;

    THREAD_ASSERT(THREAD_MAIN);
    if (a->online || a->only_shown)
        return 0;
    rc = net_start(a->net, &h, e);
    a->online = rc == 0;
    return rc;
}

void app_stop(struct app *a)
{
    THREAD_ASSERT(THREAD_MAIN);
    a->files_behind = !app_files_stop(a);
    a->left_behind = !net_stop(a->net);
    a->online = false;
    if (a->left_behind) /* its thread may still post to the store, which commits by itself */
        return;
    if (a->store)
        store_stop(a->store);
    a->store = NULL;
}

void app_free(struct app *a)
{
    struct msg *next;

    if (!a)
        return;
    app_stop(a);
    if (a->left_behind || a->files_behind) /* the process is about to end; that thread uses it */
        return;
    net_free(a->net);
    jobs_free(a->jobs);
    for (struct msg *m = a->waiting; m; m = next) {
        next = m->next;
        msg_free(m);
    }
    mq_free(a->events);
    model_free(a->model);
    app_tools_release(a);
    app_prepare_release(a);
    app_files_release(a);
    tools_free(a->tools);
    models_free(a->models);
    app_keys_release(a);
    ARR_RELEASE(&a->sinks);
    free(a->only_shown);
    free(a->asked);
    free(a->data_dir);
    free(a->config_dir);
    free(a->state_dir);
    free(a->runtime_dir);
    free(a->ca_file);
    free(a);
}

int app_fd(const struct app *a)
{
    return mq_fd(a->events);
}

void app_observe(struct app *a, void (*fn)(void *ctx, const struct msg *ev), void *ctx)
{
    a->observe = fn;
    a->observe_ctx = ctx;
}

const struct model *app_model(const struct app *a)
{
    return a->model;
}

/* --- drain ---------------------------------------------------------------------- */

static void show(struct app *a, struct msg *ev)
{
    if (a->observe)
        a->observe(a->observe_ctx, ev);
    model_apply(a->model, ev);
    if (ev->type == EV_PROJECTS || ev->type == EV_VAULT) {
        app_keys_at(a);
        app_prepare_keys_changed(a);
    }
}

/* Rows of another place have their own time to be seen. */
static void drop_elsewhere(struct app *a, struct st_reply *r)
{
    char *place = app_place(a);
    size_t keep = 0;

    for (size_t i = 0; i < r->n_sandboxes; i++) {
        if (!r->sandboxes[i].account || str_eq(r->sandboxes[i].account, place))
            r->sandboxes[keep++] = r->sandboxes[i];
        else
            sandbox_release(&r->sandboxes[i]);
    }
    r->n_sandboxes = keep;
    free(place);
}

static void rows_loaded(struct app *a, struct st_reply *r)
{
    struct ev_sandboxes *ev = ev_new(EV_SANDBOXES);
    struct msg *loaded = ev_new(EV_LOADED);

    drop_elsewhere(a, r);
    for (size_t i = 0; i < r->n_sandboxes; i++) {
        struct sandbox *s = &r->sandboxes[i];

        s->usd_per_s = models_sandbox_rate(a->models, s->account, s->cpu_count, s->memory_mb);
    }
    ev->full = true;
    ev->v = r->sandboxes;
    ev->n = r->n_sandboxes;
    r->sandboxes = NULL;
    r->n_sandboxes = 0;
    show(a, &ev->m);
    show(a, loaded);
    msg_free(&ev->m);
    msg_free(loaded);
}

static void log_loaded(struct app *a, struct st_reply *r)
{
    for (size_t i = 0; i < r->n_log; i++) {
        struct ev_event *ev = ev_new(EV_EVENT);

        ev->time_ms = r->log[i].time_ms;
        ev->level = r->log[i].level;
        ev->sandbox = r->log[i].sandbox;
        ev->text = r->log[i].text;
        r->log[i].text = NULL;
        model_apply(a->model, &ev->m); /* old news: nobody is notified */
        msg_free(&ev->m);
    }
}

static void projects_loaded(struct app *a, struct st_reply *r)
{
    struct st_projects *p = r->projects;
    struct ev_projects *ev = ev_new(EV_PROJECTS);

    if (p) {
        ev->v = p->v;
        ev->n = p->n;
        ev->current = p->current;
        ev->filters = p->filters;
        ev->n_filters = p->n_filters;
        p->v = NULL;
        p->filters = NULL;
        p->n = p->n_filters = 0;
    } else { /* it cannot be read: no more than a name is known */
        ev->v = xcalloc(1, sizeof(*ev->v));
        ev->v[ev->n++].name = xstrdup(a->asked ? a->asked : "default");
    }
    ev->by_folder = a->project_folder != NULL;
    show(a, &ev->m);
    msg_free(&ev->m);
}

static bool take(struct app *a, struct msg *m)
{
    if (m->type == ST_SANDBOXES)
        rows_loaded(a, (struct st_reply *)m);
    else if (m->type == ST_KEYS)
        app_keys_loaded(a, (struct st_reply *)m);
    else if (m->type == ST_PROJECTS)
        projects_loaded(a, (struct st_reply *)m);
    else if (m->type == ST_EVLOG)
        log_loaded(a, (struct st_reply *)m);
    else if (app_prepare_take(a, m))
        return true;
    else if (app_sink_take(a, m))
        return false;
    else
        show(a, m);
    return true;
}

bool app_drain(struct app *a, int budget_ms)
{
    int64_t until = clock_mono_ms() + budget_ms;
    bool changed = false;

    THREAD_ASSERT(THREAD_MAIN);
    if (!a->waiting)
        a->waiting = mq_take(a->events);
    while (a->waiting) {
        struct msg *m = a->waiting;

        a->waiting = m->next;
        changed |= app_files_take(a, &m) || take(a, m);
        msg_free(m);
        if (!a->waiting)
            a->waiting = mq_take(a->events);
        if (budget_ms > 0 && clock_mono_ms() >= until)
            break;
    }
    if (a->waiting) /* what is left must wake the loop: the queue's own wake is used up */
        mq_wake(a->events);
    return changed;
}
