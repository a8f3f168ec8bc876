/* The client and the life of a call: send, try again where that is harmless, answer
 * once. */
#include "e2b_priv.h"
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

enum { TOTAL_MS = 60000, RETRY_BASE_MS = 500, RETRY_MAX_MS = 15000, WARM_MAX = 1000,
       WARM_TLS_MAX = 4 };

struct e2b *e2b_new(struct net *n, const struct e2b_account *a)
{
    struct e2b *c = xcalloc(1, sizeof(*c));

    c->net = n;
    c->account = *a;
    c->account.api_url = xstrdup(a->api_url);
    c->account.sandbox_url = xstrdup(a->sandbox_url);
    c->account.domain = xstrdup(a->domain);
    c->account.source = xstrdup(a->source);
    c->account.key = secret_dup(a->key);
    c->calls = map_new();
    return c;
}

const struct e2b_account *e2b_account_of(const struct e2b *c)
{
    return &c->account;
}

static void call_release(struct e2b_call *k)
{
    for (size_t i = 0; i < k->got.n; i++)
        e2b_sandbox_clear(&k->got.v[i]);
    ARR_RELEASE(&k->got);
    map_free(k->ids, NULL);
    secret_wipe(k->body.p, k->body.cap);
    buf_release(&k->body);
    free(k->token);
    free(k->path);
    free(k->subject);
    free(k);
}

static void call_free(void *p)
{
    struct e2b_call *k = p;

    net_cancel(k->e2b->net, k->request);
    net_timer_cancel(k->e2b->net, k->timer);
    call_release(k);
}

void e2b_free(struct e2b *c)
{
    if (!c)
        return;
    map_free(c->calls, call_free);
    e2b_account_release(&c->account);
    free(c);
}

void e2b_cancel(struct e2b *c, uint64_t call)
{
    struct e2b_call *k = map_del_id(c->calls, call);

    if (k)
        call_free(k);
}

struct e2b_call *call_new(struct e2b *c, enum call_kind kind, const char *method, const char *id,
                          e2b_fn fn, void *ctx)
{
    struct e2b_call *k = xcalloc(1, sizeof(*k));

    k->e2b = c;
    k->id = ++c->next_id;
    k->kind = kind;
    k->method = method;
    k->subject = xstrdup(id);
    k->total_running = -1;
    k->fn = fn;
    k->ctx = ctx;
    map_put_id(c->calls, k->id, k);
    return k;
}

void call_options(struct e2b_call *k, const struct e2b_call_opts *o)
{
    if (!o)
        return;
    k->urgent = o->urgent;
    k->try_ms = o->try_ms;
    if (o->give_up_ms > 0)
        k->deadline = clock_mono_ms() + o->give_up_ms;
}

void call_finish(struct e2b_call *k, struct e2b_result *r)
{
    struct e2b *c = k->e2b;

    /* Off the table first: fn may free the client, or cancel this id. */
    map_del_id(c->calls, k->id);
    r->v = k->got.n ? k->got.v : NULL;
    r->n = k->got.n;
    r->total_running = k->total_running;
    r->pages = k->pages;
    r->resent |= k->resent;
    if (r->err.code && k->kind == CALL_LIST)
        r->n = 0, r->v = NULL; /* half a list is no list */
    if (k->fn)
        k->fn(k->ctx, r);
    call_release(k);
}

static void resend(void *ctx)
{
    struct e2b_call *k = ctx;

    k->timer = 0;
    call_send(k);
}

static bool worth_another(const struct e2b_call *k, const struct e2b_result *r)
{
    if (!k->deadline || (strcmp(k->method, "GET") != 0 && strcmp(k->method, "DELETE") != 0))
        return false;
    switch (r->err.code) {
    case ERR_NETWORK:
    case ERR_TIMEOUT:
    case ERR_SERVER:
    case ERR_BUSY:
        return true;
    default:
        return false;
    }
}

/* True when another try is on its way. */
static bool try_again(struct e2b_call *k, const struct e2b_result *r)
{
    int64_t wait;

    if (!worth_another(k, r))
        return false;
    wait = net_backoff_ms(k->attempt, RETRY_BASE_MS, RETRY_MAX_MS);
    if (r->retry_after_ms >= 0) /* all that were told the same second spread a little */
        wait = r->retry_after_ms + wait / 4;
    if (clock_mono_ms() + wait >= k->deadline)
        return false;
    k->attempt++;
    k->resent |= r->resent || (r->sent && (r->status == 0 || r->status >= 500));
    k->timer = net_timer(k->e2b->net, wait, resend, k);
    return true;
}

static void on_done(void *ctx, const struct net_result *n)
{
    struct e2b_call *k = ctx;
    struct e2b_result r = {.status = n->status, .sent = n->sent, .resent = n->again,
                           .retry_after_ms = n->retry_after_ms, .date_ms = n->date_ms};

    if (answer_take(k, n, &r)) {
        k->attempt = 0;
        call_send(k);
        return;
    }
    if (r.err.code && try_again(k, &r))
        return;
    call_finish(k, &r);
}

void call_send(struct e2b_call *k)
{
    const struct e2b_account *a = &k->e2b->account;
    struct net_req *q = net_req_new(k->method, xasprintf("%s%s", a->api_url, k->path));
    int64_t left = k->deadline ? k->deadline - clock_mono_ms() : TOTAL_MS;

    if (k->kind != CALL_WARM)
        net_req_secret(q, "X-API-Key", a->key);
    if (k->body.len) {
        net_req_header(q, "Content-Type", "application/json");
        q->body = k->body;
        buf_init(&k->body, 0);
    }
    q->urgent = k->urgent;
    if (k->try_ms > 0 && left > k->try_ms)
        left = k->try_ms;
    q->total_ms = (int)(left > TOTAL_MS ? TOTAL_MS : left < 1000 ? 1000 : left);
    q->on_done = on_done;
    q->ctx = k;
    k->request = net_submit(k->e2b->net, q);
}

uint64_t call_start(struct e2b_call *k)
{
    uint64_t id = k->id;

    call_send(k);
    return id;
}

/* One request each is enough to open a connection; with TLS a few are, because
 * HTTP/2 carries all deletes over one. No key: the answer does not matter. */
void e2b_warm(struct e2b *c, size_t connections)
{
    size_t max = str_starts(c->account.api_url, "https:") ? WARM_TLS_MAX : WARM_MAX;

    for (size_t i = 0; i < (connections < max ? connections : max); i++) {
        struct e2b_call *k = call_new(c, CALL_WARM, "GET", NULL, NULL, NULL);
        k->path = xstrdup("/health");
        k->urgent = true;
        call_start(k);
    }
}
