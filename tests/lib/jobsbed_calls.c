/* Sessions under test: rows, creates and messages, each call until it is answered. */
#include "jobsbed_priv.h"

#include "../../src/jobs/core_priv.h"
#include "../../src/jobs/session_follow.h"
#include "../../src/jobs/session_priv.h"

#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <pthread.h>
#include <stdlib.h>

enum { ROW_MAX = 512 };

/* --- calls with an answer: run on net, wait for the flag ------------------------- */

static void set_result(struct jobsbed *b, uint64_t n, const struct err *e)
{
    pthread_mutex_lock(&b->priv->lock);
    b->priv->result = n;
    if (e)
        b->priv->err = *e;
    b->priv->got = true;
    pthread_cond_broadcast(&b->priv->cond);
    pthread_mutex_unlock(&b->priv->lock);
}

static bool has_result(void *ctx)
{
    struct jobsbed *b = ctx;
    bool got;

    pthread_mutex_lock(&b->priv->lock);
    got = b->priv->got;
    pthread_mutex_unlock(&b->priv->lock);
    return got;
}

static uint64_t result_of(struct jobsbed *b, void (*fn)(void *ctx), void *ctx, int ms)
{
    b->priv->got = false;
    b->priv->result = 0;
    err_clear(&b->priv->err);
    jobsbed_run(b, fn, ctx);
    return jobsbed_wait(b, has_result, b, ms) ? b->priv->result : 0;
}

/* --- one thing that is waited for ------------------------------------------------- */

static bool has_come;

void jobsbed_expect(void)
{
    __atomic_store_n(&has_come, false, __ATOMIC_SEQ_CST);
}

void jobsbed_come(void)
{
    __atomic_store_n(&has_come, true, __ATOMIC_SEQ_CST);
}

bool jobsbed_came(void *ctx)
{
    (void)ctx;
    return __atomic_load_n(&has_come, __ATOMIC_SEQ_CST);
}

void jobsbed_opened(struct session *s)
{
    (void)s;
    jobsbed_come();
}

struct opening {
    struct jobsbed *b;
    uint64_t row;
    int64_t epoch;
};

static void do_open(void *ctx)
{
    struct opening *o = ctx;

    session_open(session_of(&o->b->j, o->row), o->epoch, jobsbed_opened);
}

bool jobsbed_open(struct jobsbed *b, uint64_t row, int64_t epoch, int ms)
{
    jobsbed_expect();
    jobsbed_run(b, do_open, &(struct opening){b, row, epoch});
    return jobsbed_wait(b, jobsbed_came, NULL, ms);
}

/* --- rows ------------------------------------------------------------------------ */

struct new_row {
    struct jobsbed *b;
    const char *tool, *sandbox_id;
};

static void add_row(struct jobsbed *b, const struct sandbox *sb)
{
    if (!b->j.table.v)
        b->j.table.v = xcalloc(ROW_MAX, sizeof(*b->j.table.v));
    sandbox_copy(&b->j.table.v[b->j.table.n++], sb);
    jobs_row_changed(&b->j, &b->j.table.v[b->j.table.n - 1]);
}

static void on_put(void *ctx, struct st_reply *r)
{
    struct jobsbed *b = ctx;

    if (r->n_sandboxes)
        add_row(b, &r->sandboxes[0]);
    set_result(b, r->n_sandboxes ? r->sandboxes[0].id : 0, &r->err);
}

static void put_row(void *ctx)
{
    struct new_row *n = ctx;
    char session[24] = "s";
    struct sandbox sb = {.state = SB_RUNNING,
                         .agent = AG_STARTING,
                         .session = session,
                         .name = (char *)"test",
                         .tool = (char *)n->tool,
                         .project = (char *)"default",
                         .template_id = (char *)"base",
                         .sandbox_id = (char *)n->sandbox_id,
                         .created_at = clock_wall_ms()};

    rand_id(session + 1, 12);
    if (!n->sandbox_id)
        sb.state = SB_KILLED;
    store_put_sandbox(n->b->j.o.store, &sb, jobs_store(&n->b->j, on_put, n->b, n->b));
}

uint64_t jobsbed_row(struct jobsbed *b, const char *tool, const char *sandbox_id)
{
    struct new_row n = {b, tool, sandbox_id};

    return result_of(b, put_row, &n, 5000);
}

static void on_rows(void *ctx, struct st_reply *r)
{
    struct jobsbed *b = ctx;

    for (size_t i = 0; i < r->n_sandboxes; i++)
        add_row(b, &r->sandboxes[i]);
    set_result(b, r->n_sandboxes, &r->err);
}

static void ask_rows(void *ctx)
{
    struct jobsbed *b = ctx;

    store_sandboxes(b->j.o.store, jobs_store(&b->j, on_rows, b, b));
}

void jobsbed_load(struct jobsbed *b)
{
    result_of(b, ask_rows, b, 5000);
}

/* --- creating -------------------------------------------------------------------- */

struct creating {
    struct jobsbed *b;
    const struct jobsbed_start *q;
    char *sandbox_id;
    uint64_t row;
    struct e2b_sandbox vm;
};

static void on_created(void *ctx, const struct e2b_result *r)
{
    struct creating *c = ctx;

    if (!r->err.code && r->n) {
        c->sandbox_id = xstrdup(r->v[0].sandbox_id);
        c->vm.sandbox_id = c->sandbox_id;
        c->vm.token = secret_dup(r->v[0].token);
    }
    set_result(c->b, c->sandbox_id ? 1 : 0, &r->err);
}

static void create(void *ctx)
{
    struct creating *c = ctx;
    static const struct kv meta[] = {{(char *)"cc-tui", (char *)"1"}, {NULL, NULL}};
    struct e2b_create q = {.template_id = "base", .timeout_s = 300, .meta = meta};

    e2b_create(c->b->j.e2b, &q, on_created, c);
}

static void on_provisioned(void *ctx, const struct err *e)
{
    struct creating *c = ctx;

    set_result(c->b, e ? 0 : 1, e);
}

static void provision(void *ctx)
{
    struct creating *c = ctx;
    struct session_start q = {.tool = c->q->tool,
                              .command = c->q->command,
                              .prompt = c->q->prompt,
                              .env = c->q->env,
                              .vm = &c->vm,
                              .model = c->q->model,
                              .system_prompt = c->q->system_prompt,
                              .ask = c->q->ask,
                              .skills = c->q->skills,
                              .skills_len = c->q->skills_len,
                              .repo = c->q->repo,
                              .branch = c->q->branch};

    if (c->b->on_session)
        c->b->on_session(session_of(&c->b->j, c->row));
    session_provision(session_of(&c->b->j, c->row), &q, on_provisioned, c);
}

uint64_t jobsbed_create(struct jobsbed *b, const struct jobsbed_start *q, struct err *e)
{
    struct creating c = {.b = b, .q = q};
    uint64_t row = 0;

    if (result_of(b, create, &c, 30000)) {
        c.row = jobsbed_row(b, q->tool, c.sandbox_id);
        row = c.row && result_of(b, provision, &c, 60000) ? c.row : 0;
    }
    if (e)
        *e = b->priv->err;
    free(c.sandbox_id);
    secret_free(c.vm.token);
    return row;
}

/* --- sending --------------------------------------------------------------------- */

struct sending {
    struct jobsbed *b;
    uint64_t row, wait_req;
    const char *text;
};

static void on_added(void *ctx, struct st_reply *r)
{
    struct sending *n = ctx;
    struct session *s = session_of(&n->b->j, n->row);
    struct ev_message *ev = ev_new(EV_MESSAGE);

    message_copy(&ev->msg, &r->msg);
    jobs_post(&n->b->j, ev);
    if (n->wait_req)
        session_wait_turn(s, r->msg.id, n->wait_req);
    session_relay(s);
    set_result(n->b, r->msg.id, &r->err);
}

static void add_message(void *ctx)
{
    struct sending *n = ctx;

    store_message_add(n->b->j.o.store, n->row, n->text,
                      jobs_store(&n->b->j, on_added, n, n->b));
}

uint64_t jobsbed_send(struct jobsbed *b, uint64_t row, const char *text, uint64_t wait_req)
{
    struct sending n = {b, row, wait_req, text};

    return result_of(b, add_message, &n, 5000);
}
