/* The net thread of a test. */
#include "netbed.h"
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct netbed_priv {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    int ticks;
};
struct run_msg {
    struct msg msg;
    void (*fn)(void *ctx);
    void *ctx;
    bool *done;
};

static void on_msg(void *ctx, struct msg *m)
{
    struct netbed *b = ctx;
    struct run_msg *r = (struct run_msg *)m;

    r->fn(r->ctx);
    pthread_mutex_lock(&b->priv->lock);
    *r->done = true;
    pthread_cond_broadcast(&b->priv->cond);
    pthread_mutex_unlock(&b->priv->lock);
}

struct netbed *bed_new(const struct net_opts *o)
{
    static const struct net_opts plain = {.user_agent = "cc-tui/test"};
    struct netbed *b = xcalloc(1, sizeof(*b));
    struct net_hooks h = {.on_msg = on_msg, .ctx = b};

    b->priv = xcalloc(1, sizeof(*b->priv));
    pthread_mutex_init(&b->priv->lock, NULL);
    pthread_cond_init(&b->priv->cond, NULL);
    b->net = net_new(o ? o : &plain);
    if (net_start(b->net, &h, NULL))
        die("no net thread");
    return b;
}

void bed_free(struct netbed *b)
{
    net_stop(b->net);
    net_free(b->net);
    pthread_mutex_destroy(&b->priv->lock);
    pthread_cond_destroy(&b->priv->cond);
    free(b->priv);
    free(b);
}

void bed_run(struct netbed *b, void (*fn)(void *ctx), void *ctx)
{
    struct run_msg *r = xcalloc(1, sizeof(*r));
    bool done = false;

    msg_init(&r->msg, 1, sizeof(*r), NULL);
    r->fn = fn;
    r->ctx = ctx;
    r->done = &done;
    mq_post(net_mq(b->net), MQ_NORMAL, &r->msg);
    pthread_mutex_lock(&b->priv->lock);
    while (!done)
        pthread_cond_wait(&b->priv->cond, &b->priv->lock);
    pthread_mutex_unlock(&b->priv->lock);
}

void bed_tick(struct netbed *b)
{
    pthread_mutex_lock(&b->priv->lock);
    b->priv->ticks++;
    pthread_cond_broadcast(&b->priv->cond);
    pthread_mutex_unlock(&b->priv->lock);
}

bool bed_wait(struct netbed *b, int n, int ms)
{
    struct timespec until;
    bool ok;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000L;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_mutex_lock(&b->priv->lock);
    while (b->priv->ticks < n && pthread_cond_timedwait(&b->priv->cond, &b->priv->lock, &until) == 0)
        ;
    ok = b->priv->ticks >= n;
    pthread_mutex_unlock(&b->priv->lock);
    return ok;
}

void bed_reset(struct netbed *b)
{
    pthread_mutex_lock(&b->priv->lock);
    b->priv->ticks = 0;
    pthread_mutex_unlock(&b->priv->lock);
}

struct fetch {
    struct netbed *bed;
    struct net_req *req;
    struct bed_answer a;
};

static void fetched(void *ctx, const struct net_result *r)
{
    struct fetch *f = ctx;

    f->a = (struct bed_answer){.err = r->err, .status = r->status, .sent = r->sent,
                               .elapsed_ms = r->elapsed_ms};
    str_copy(f->a.body, sizeof(f->a.body), r->body ? r->body : "");
    bed_tick(f->bed);
}

static void submit(void *ctx)
{
    struct fetch *f = ctx;

    f->req->on_done = fetched;
    f->req->ctx = f;
    net_submit(f->bed->net, f->req);
}

struct bed_answer bed_fetch(struct netbed *b, struct net_req *take)
{
    struct fetch f = {.bed = b, .req = take};

    bed_reset(b);
    bed_run(b, submit, &f);
    if (!bed_wait(b, 1, 60000))
        die("test: no end of a request");
    return f.a;
}

struct bed_answer bed_get(struct netbed *b, const char *url)
{
    return bed_fetch(b, net_req_new("GET", xstrdup(url)));
}
