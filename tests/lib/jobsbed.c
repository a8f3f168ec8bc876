/* Sessions under test: see jobsbed.h. The jobs_* functions here take the place of the
 * core's. */
#include "jobsbed_priv.h"

#include "../../src/jobs/core_priv.h"

#include <cct/config/tools.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MSG_CALL = 0x9000 };

struct call {
    struct msg m;
    void (*fn)(void *ctx);
    void *ctx;
    bool *done;
};
/* --- the stand-in for the core --------------------------------------------------- */

struct sandbox *jobs_row(struct jobs *j, uint64_t id)
{
    for (size_t i = 0; i < j->table.n; i++)
        if (j->table.v[i].id == id)
            return &j->table.v[i];
    return NULL;
}

void jobs_post(struct jobs *j, void *ev)
{
    mq_post(j->o.events, MQ_NORMAL, ev);
}

void jobs_row_changed(struct jobs *j, struct sandbox *row)
{
    struct ev_sandboxes *ev = ev_new(EV_SANDBOXES);

    ev->v = xcalloc(1, sizeof(*ev->v));
    ev->n = 1;
    sandbox_copy(ev->v, row);
    jobs_post(j, ev);
    store_put_sandbox(j->o.store, row, (struct st_to){NULL, 0});
}

void jobs_row_error(struct jobs *j, struct sandbox *row, bool vm_up, const char *text)
{
    row->state = SB_ERROR;
    row->vm_up = vm_up;
    free(row->reason);
    row->reason = xstrdup(text);
    jobs_row_changed(j, row);
}

void jobs_agent_missing(struct jobs *j, uint64_t row)
{
    (void)j;
    (void)row;
}

void jobs_agent_found(struct jobs *j, uint64_t row)
{
    (void)j;
    (void)row;
}

void jobs_done(struct jobs *j, uint64_t req_id, const struct err *e, uint64_t sandbox)
{
    struct ev_done *ev = ev_new(EV_DONE);

    ev->m.req_id = req_id;
    ev->sandbox = sandbox;
    if (e)
        ev->err = *e;
    jobs_post(j, ev);
}

void jobs_say(struct jobs *j, int level, uint64_t sandbox, const char *fmt, ...)
{
    struct ev_event *ev = ev_new(EV_EVENT);
    va_list ap;
    char text[600];

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    ev->level = level;
    ev->sandbox = sandbox;
    ev->time_ms = clock_wall_ms();
    ev->text = xstrdup(text);
    jobs_post(j, ev);
}

struct st_to jobs_store(struct jobs *j, jobs_store_fn fn, void *ctx, const void *owner)
{
    struct jobs_wait *w = xcalloc(1, sizeof(*w));

    *w = (struct jobs_wait){fn, ctx, owner};
    map_put_id(j->waiting, ++j->next_req, w);
    return (struct st_to){net_mq(j->o.net), j->next_req};
}

void jobs_store_forget(struct jobs *j, const void *owner)
{
    struct jobs_wait *w;
    size_t it = 0;
    uint64_t id;

    while ((w = map_next(j->waiting, &it, NULL, &id)))
        if (w->owner == owner)
            free(map_del_id(j->waiting, id));
}

/* What an adopted process asks of the core; there is none here. */
void core_poll_soon(struct jobs *j, int64_t ms)
{
    (void)j;
    (void)ms;
}

bool core_row_live(const struct sandbox *row)
{
    return row->state == SB_RUNNING;
}

void core_call_cancel(struct jobs *j, struct e2b *client, uint64_t call)
{
    (void)j;
    e2b_cancel(client, call);
}

uint64_t jobs_ask(struct jobs *j, const char *sandbox_id, bool first, e2b_fn fn, void *ctx)
{
    struct e2b_call_opts o = {0};

    (void)first;
    return e2b_get(j->e2b, sandbox_id, &o, fn, ctx);
}

void jobs_ask_cancel(struct jobs *j, uint64_t id)
{
    if (id && j->e2b)
        e2b_cancel(j->e2b, id);
}

void jobs_row_missing(struct jobs *j, struct sandbox *row)
{
    (void)j;
    row->unlisted = true;
}

int64_t jobs_now(const struct jobs *j)
{
    return server_clock_at(&j->clock, clock_boot_ms(), clock_wall_ms());
}

/* --- net thread ------------------------------------------------------------------ */

static void on_msg(void *ctx, struct msg *m)
{
    struct jobsbed *b = ctx;
    struct call *c = (struct call *)m;
    struct jobs_wait *w;

    if (m->type != MSG_CALL) {
        w = map_del_id(b->j.waiting, m->req_id);
        if (w)
            w->fn(w->ctx, (struct st_reply *)m);
        free(w);
        return;
    }
    c->fn(c->ctx);
    pthread_mutex_lock(&b->priv->lock);
    *c->done = true;
    pthread_cond_broadcast(&b->priv->cond);
    pthread_mutex_unlock(&b->priv->lock);
}

void jobsbed_run(struct jobsbed *b, void (*fn)(void *ctx), void *ctx)
{
    struct call *c = xcalloc(1, sizeof(*c));
    bool done = false;

    msg_init(&c->m, MSG_CALL, sizeof(*c), NULL);
    c->fn = fn;
    c->ctx = ctx;
    c->done = &done;
    mq_post(net_mq(b->j.o.net), MQ_NORMAL, &c->m);
    pthread_mutex_lock(&b->priv->lock);
    while (!done)
        pthread_cond_wait(&b->priv->cond, &b->priv->lock);
    pthread_mutex_unlock(&b->priv->lock);
}

static void stop_sessions(void *ctx)
{
    struct jobsbed *b = ctx;
    struct session *s;
    size_t it = 0;

    while ((s = map_next(b->j.sessions, &it, NULL, NULL))) {
        session_free(s);
        it = 0;
    }
    e2b_free(b->j.e2b);
    b->j.e2b = NULL;
}

/* Tools that real life has and the table has not. */
static void add_tools(struct jobsbed *b, const char *dir)
{
    static const char conf[] = "[tool missing]\nadapter = claude\n"
                               "command = \"no-such-agent-program --json\"\ntemplate = base\n"
                               "[tool mute]\nadapter = claude\ntemplate = base\n"
                               "command = \"sh -c 'read line; echo bad words >&2; exit 3'\"\n"
                               "[tool late]\nadapter = claude\ntemplate = base\n"
                               "command = \"sh -c 'sleep 3; exec demo-agent'\"\n"
                               "[tool once]\nadapter = claude\ntemplate = base\n"
                               "command = \"sh -c 'read p; echo got $p; case $p in bad) "
                               "echo oops >&2; exit 4;; cut) for f in ~/.cc-tui/*/out.log; "
                               "do : >$f; done; echo x; exit 4;; esac'\"\n";
    char *path;
    struct err e = {0};

    if (!dir)
        return;
    path = xasprintf("%s-tools-%d.conf", dir, (int)getpid());
    if (fs_write_private(path, conf, sizeof(conf) - 1, &e) != 0 ||
        tools_load(b->priv->tools, path, NULL, NULL, &e) != 0)
        die("jobsbed: %s", e.text);
    unlink(path);
    free(path);
}

/* --- life ------------------------------------------------------------------------ */

struct with_account {
    struct jobsbed *b;
    const struct e2b_account *a;
};

static void set_account(void *ctx)
{
    struct with_account *w = ctx;
    struct e2b *old = w->b->j.e2b;
    struct session *s;
    size_t it = 0;

    w->b->j.e2b = e2b_new(w->b->j.o.net, w->a);
    while (old && (s = map_next(w->b->j.sessions, &it, NULL, NULL)))
        session_relocate(s);
    e2b_free(old);
}

void jobsbed_account(struct jobsbed *b, const struct e2b_account *account)
{
    struct with_account w = {b, account};

    jobsbed_run(b, set_account, &w);
}

struct jobsbed *jobsbed_new(const char *dir, const char *owner,
                            const struct e2b_account *account)
{
    static const struct net_opts no = {.user_agent = "cc-tui/test"};
    struct jobsbed *b = xcalloc(1, sizeof(*b));
    struct net_hooks h = {.on_msg = on_msg, .ctx = b};
    struct store_opts so = {.dir = dir};
    struct err e = {0};

    b->priv = xcalloc(1, sizeof(*b->priv));
    pthread_mutex_init(&b->priv->lock, NULL);
    pthread_cond_init(&b->priv->cond, NULL);
    b->priv->tools = tools_new();
    add_tools(b, dir);
    b->priv->owner = xstrdup(owner);
    thread_set_role(THREAD_MAIN);
    b->model = model_new();
    b->j.o = (struct jobs_opts){.net = net_new(&no),
                                .events = mq_new(8 << 20),
                                .project = "default",
                                .owner = b->priv->owner,
                                .follow_all = true,
                                .pictures = true,
                                .tools = b->priv->tools};
    b->j.sessions = map_new();
    b->j.waiting = map_new();
    b->j.o.store = store_start(&so, b->j.o.events, &e);
    if (!b->j.o.store || net_start(b->j.o.net, &h, &e) != 0)
        die("jobsbed: %s", e.text);
    if (account)
        jobsbed_account(b, account);
    return b;
}

void jobsbed_free(struct jobsbed *b)
{
    jobsbed_run(b, stop_sessions, b);
    store_stop(b->j.o.store);
    net_stop(b->j.o.net);
    net_free(b->j.o.net);
    mq_free(b->j.o.events);
    map_free(b->j.waiting, free);
    map_free(b->j.sessions, NULL);
    for (size_t i = 0; i < b->j.table.n; i++)
        sandbox_release(&b->j.table.v[i]);
    free(b->j.table.v);
    for (size_t i = 0; i < b->n_done; i++)
        free(b->done[i].text);
    free(b->done);
    buf_release(&b->chunks);
    model_free(b->model);
    tools_free(b->priv->tools);
    free(b->priv->owner);
    pthread_mutex_destroy(&b->priv->lock);
    pthread_cond_destroy(&b->priv->cond);
    free(b->priv);
    free(b);
}

/* --- what came ------------------------------------------------------------------- */

static void take_done(struct jobsbed *b, struct ev_done *ev)
{
    struct jobsbed_done *d;

    b->done = xrealloc(b->done, (b->n_done + 1) * sizeof(*b->done));
    d = &b->done[b->n_done++];
    *d = (struct jobsbed_done){ev->m.req_id, ev->err, ev->text, ev->outcome, ev->exit_code};
    ev->text = NULL;
}

static void pump(struct jobsbed *b)
{
    struct msg *m = mq_take(b->j.o.events), *next;

    for (; m; m = next) {
        next = m->next;
        if (m->type == EV_DONE)
            take_done(b, (struct ev_done *)m);
        else if (m->type == EV_CHUNK)
            buf_add(&b->chunks, ((struct ev_chunk *)m)->data, ((struct ev_chunk *)m)->len);
        else if (m->type == EV_EVENT && getenv("JOBSBED_SAY"))
            fprintf(stderr, "# %s\n", ((struct ev_event *)m)->text);
        if (m->type < ST_OPENED)
            model_apply(b->model, m);
        msg_free(m);
    }
}

bool jobsbed_wait(struct jobsbed *b, bool (*ok)(void *ctx), void *ctx, int ms)
{
    int64_t until = clock_mono_ms() + ms, left;

    for (;;) {
        pump(b);
        if (ok && ok(ctx))
            return true;
        left = until - clock_mono_ms();
        if (left <= 0)
            return false;
        mq_wait(b->j.o.events, left < 50 ? (int)left : 50);
    }
}

struct want {
    struct jobsbed *b;
    uint64_t req;
};

static bool is_there(void *ctx)
{
    struct want *w = ctx;

    for (size_t i = 0; i < w->b->n_done; i++)
        if (w->b->done[i].req_id == w->req)
            return true;
    return false;
}

const struct jobsbed_done *jobsbed_answer(struct jobsbed *b, uint64_t req_id, int ms)
{
    struct want w = {b, req_id};

    if (!jobsbed_wait(b, is_there, &w, ms))
        return NULL;
    for (size_t i = 0; i < b->n_done; i++)
        if (b->done[i].req_id == req_id)
            return &b->done[i];
    return NULL;
}
