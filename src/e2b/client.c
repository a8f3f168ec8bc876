/* The client and the life of a call: send, try again where that is harmless, answer
 * once. */
#include "e2b_priv.h"
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TOTAL_MS = 60000, UPLOAD_IDLE_MS = 600000 /* what is on its way may take minutes */,
       RETRY_BASE_MS = 500, RETRY_MAX_MS = 15000, WARM_MAX = 64,
       WARM_TLS_MAX = 12, WARM_MS = 30000,
       STREAMS = 100 /* at once on an HTTP/2 connection, with most services */ };

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
    got_release(&k->got);
    map_free(k->ids, NULL);
    secret_wipe(k->body.p, k->body.cap);
    buf_release(&k->body);
    for (int i = 0; i < k->n_routes; i++)
        free(k->routes[i]);
    for (size_t i = 0; i < k->names.n; i++)
        free(k->names.v[i]);
    ARR_RELEASE(&k->names);
    if (k->fd >= 0)
        close(k->fd);
    free(k->want_template);
    free(k->token);
    free(k->path);
    free(k->url);
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
    k->fd = -1;
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
    k->warm = o->warm;
    if (o->give_up_ms > 0)
        k->deadline = clock_mono_ms() + o->give_up_ms;
}

void call_route(struct e2b_call *k, char *take_path)
{
    k->routes[k->n_routes++] = take_path;
}

char *call_path(const char *head, const char *part, const char *mid, const char *part2,
                const char *tail)
{
    struct buf b = BUF_INIT;

    buf_adds(&b, head);
    buf_add_urlenc(&b, part, strlen(part));
    buf_adds(&b, mid ? mid : "");
    if (part2)
        buf_add_urlenc(&b, part2, strlen(part2));
    buf_adds(&b, tail ? tail : "");
    return buf_detach(&b, NULL);
}

static void hand_out(const struct got *g, struct e2b_result *r)
{
    r->v = g->sandboxes.v;
    r->n = g->sandboxes.n;
    r->metrics = g->metrics.v;
    r->n_metrics = g->metrics.n;
    r->logs = g->logs.v;
    r->n_logs = g->logs.n;
    r->reason_logs = g->reason.v;
    r->n_reason_logs = g->reason.n;
    r->events = g->events.v;
    r->n_events = g->events.n;
    r->team = g->team.v;
    r->n_team = g->team.n;
    r->templates = g->templates.v;
    r->n_templates = g->templates.n;
    r->builds = g->builds.v;
    r->n_builds = g->builds.n;
    r->tags = g->tags.v;
    r->n_tags = g->tags.n;
    r->file = &g->file;
}

void call_finish(struct e2b_call *k, struct e2b_result *r)
{
    struct e2b *c = k->e2b;

    /* Off the table first: fn may free the client, or cancel this id. */
    map_del_id(c->calls, k->id);
    if (!r->err.code) /* half a list is no list */
        hand_out(&k->got, r);
    r->total_running = k->total_running;
    r->pages = k->pages;
    r->resent |= k->resent;
    str_copy(r->trace, sizeof(r->trace), k->trace);
    if (k->fn)
        k->fn(k->ctx, r);
    call_release(k);
}

static void refuse(void *ctx)
{
    struct e2b_call *k = ctx;
    struct e2b_result r = {.err = k->refusal, .retry_after_ms = -1};

    k->timer = 0;
    call_finish(k, &r);
}

uint64_t call_refuse(struct e2b_call *k)
{
    k->timer = net_timer(k->e2b->net, 0, refuse, k);
    return k->id;
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
    /* a good answer that broke off was given to something that was done */
    k->resent |= r->resent ||
                 (r->sent && (r->status == 0 || r->status / 100 == 2 || r->status >= 500));
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

/* The key goes to the API alone; an upload has headers of its own, and no other. */
static void add_headers(struct e2b_call *k, struct net_req *q)
{
    if (k->kind == CALL_UPLOAD) {
        bool typed = false;
        for (const struct kv *h = k->got.file.headers; h && h->k; h++)
            typed |= str_eq_nocase(h->k, "Content-Type");
        if (!typed) /* the address may be signed for a request without one */
            net_req_header(q, "Content-Type", "");
        for (const struct kv *h = k->got.file.headers; h && h->k; h++)
            net_req_header(q, h->k, h->v);
        return;
    }
    if (k->kind != CALL_WARM)
        net_req_secret(q, "X-API-Key", k->e2b->account.key);
    if (k->body.len)
        net_req_header(q, "Content-Type", "application/json");
}

void call_send(struct e2b_call *k)
{
    char *url = k->url ? xstrdup(k->url) : xasprintf("%s%s", k->e2b->account.api_url, k->path);
    struct net_req *q = net_req_new(k->method, url);
    int most = k->total_ms ? k->total_ms : TOTAL_MS;
    int64_t left = k->deadline ? k->deadline - clock_mono_ms() : most;

    add_headers(k, q);
    if (k->read_body) {
        q->read_body = k->read_body;
        q->body_len = k->fd_len;
        q->idle_ms = UPLOAD_IDLE_MS;
    } else if (k->keep_body) {
        buf_add(&q->body, k->body.p, k->body.len);
    } else if (k->body.len) {
        q->body = k->body;
        buf_init(&k->body, 0);
    }
    q->urgent = k->urgent;
    q->fresh = k->kind == CALL_WARM;
    if (k->try_ms > 0 && left > k->try_ms)
        left = k->try_ms;
    q->total_ms = (int)(left > most ? most : left < 1000 ? 1000 : left);
    q->on_done = on_done;
    q->ctx = k;
    k->request = net_submit(k->e2b->net, q);
}

uint64_t call_start(struct e2b_call *k)
{
    const struct e2b *c = k->e2b;
    uint64_t id = k->id;

    /* what is urgent does not trust the memory: the newest may only have stumbled */
    if (k->n_routes > 1 && !k->urgent && clock_mono_ms() < c->routes[k->family].until &&
        c->routes[k->family].at < k->n_routes)
        k->at = c->routes[k->family].at;
    if (k->n_routes) {
        str_set(&k->path, k->routes[k->at]);
    }
    call_send(k);
    return id;
}

/* One request each is enough to open a connection. No key: the answer does not matter.
 * What was opened a moment ago is not opened again. */
void e2b_warm(struct e2b *c, size_t deletes)
{
    bool tls = str_starts(c->account.api_url, "https:");
    size_t n = tls ? (deletes + STREAMS - 1) / STREAMS : deletes;
    size_t max = tls ? WARM_TLS_MAX : WARM_MAX;
    int64_t now = clock_mono_ms();

    if (now >= c->warm_until)
        c->warmed = 0;
    c->warm_until = now + WARM_MS;
    for (n = n < max ? n : max; c->warmed < n; c->warmed++) {
        struct e2b_call *k = call_new(c, CALL_WARM, "GET", NULL, NULL, NULL);
        call_route(k, xstrdup("/health"));
        k->urgent = true;
        call_start(k);
    }
}
