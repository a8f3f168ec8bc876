/* The control-plane client in front of a server that plays a script, cut connections and all, and
 * each call by its name: for the suites of that client, each of which includes it once. */
#ifndef CCT_TESTS_E2BPLAY_H
#define CCT_TESTS_E2BPLAY_H

#include "miniserver.h"
#include "netbed.h"
#include <cct/e2b.h>
#include <cct/secrets/secret.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SLOW 120000 /* 64 MiB under a sanitizer, on a busy machine */

static struct mini *srv;
static struct netbed *bed;
static struct e2b *client;
static struct buf heard;

/* What the server answers: one script a test, in order; the last one repeats. */
struct script {
    int status;
    const char *head, *body;
    bool cut;
};
static const struct script *script;
static int script_n, script_at; /* set before a call starts, read after its answer */
static void (*special)(struct mini_conn *c, const struct mini_req *r);

static inline void handler(void *ctx, struct mini_conn *c, const struct mini_req *r)
{
    const struct script *s;

    (void)ctx;
    buf_addf(&heard, "%s %s %.*s\n", r->method, r->path, (int)r->len, r->body);
    if (special) {
        special(c, r);
        return;
    }
    s = &script[script_at < script_n ? script_at : script_n - 1];
    script_at++;
    if (s->cut)
        mini_close(c);
    else
        mini_reply(c, s->status, s->head ? s->head : "", s->body ? s->body : "");
}

#define PLAY(...)                                                                              \
    const struct script steps[] = {__VA_ARGS__};                                               \
    play(steps, sizeof(steps) / sizeof(steps[0]))

static inline void play(const struct script *s, size_t n)
{
    mini_sync(srv);
    script = s;
    script_n = (int)n;
    script_at = 0;
    special = NULL;
    buf_clear(&heard);
}

struct answer {
    struct e2b_result r;
    int n_calls;
    size_t n;
    char ids[8192], first[256]; /* ids joined; first row as text */
    char token[64], state[64];
    int meta;
};
static struct answer got;

static inline void on_answer(void *ctx, const struct e2b_result *r)
{
    (void)ctx;
    got.r = *r;
    got.n = r->n;
    got.n_calls++;
    for (size_t i = 0; i < r->n; i++) {
        size_t at = strlen(got.ids);
        snprintf(got.ids + at, sizeof(got.ids) - at, "%s ", r->v[i].sandbox_id);
    }
    if (r->n) {
        const struct e2b_sandbox *s = &r->v[0];
        snprintf(got.first, sizeof(got.first), "%s|%s|%s|%d|%d|%lld|%lld|%s",
                 s->template_id ? s->template_id : "-", s->alias ? s->alias : "-", s->state,
                 s->cpu_count, s->memory_mb, (long long)s->started_at, (long long)s->end_at,
                 s->meta ? s->meta[0].k : "-");
        snprintf(got.token, sizeof(got.token), "%s", s->token ? secret_value(s->token) : "");
    }
    bed_tick(bed);
}

struct call {
    int what;
    const char *id;
    struct e2b_call_opts o;
    struct e2b_create create;
    int timeout;
    uint64_t call;
};
enum { LIST, GET, CREATE, KILL, TIMEOUT, PAUSE, CONNECT };

static inline void start_call(void *ctx)
{
    struct call *c = ctx;

    switch (c->what) {
    case LIST:
        c->call = e2b_list(client, &c->o, on_answer, NULL);
        break;
    case GET:
        c->call = e2b_get(client, c->id, &c->o, on_answer, NULL);
        break;
    case CREATE:
        c->call = e2b_create(client, &c->create, on_answer, NULL);
        break;
    case KILL:
        c->call = e2b_kill(client, c->id, &c->o, on_answer, NULL);
        break;
    case TIMEOUT:
        c->call = e2b_set_timeout(client, c->id, c->timeout, on_answer, NULL);
        break;
    case PAUSE:
        c->call = e2b_pause(client, c->id, on_answer, NULL);
        break;
    default:
        c->call = e2b_connect(client, c->id, c->timeout, on_answer, NULL);
    }
}

static inline void run(struct call *c)
{
    got = (struct answer){0};
    bed_reset(bed);
    bed_run(bed, start_call, c);
    assert_true(bed_wait(bed, 1, SLOW));
    mini_sync(srv);
    assert_int_equal(got.n_calls, 1);
}

static inline void make_client(void *ctx)
{
    char *url = mini_url(srv, "");
    struct e2b_account a = {.api_url = url, .sandbox_url = url, .domain = (char *)"e2b.app",
                            .key = secret_new("e2b_0123456789abcdef", 20), .source = (char *)"environment",
                            .mask = "****cdef"};

    (void)ctx;
    client = e2b_new(bed->net, &a);
    secret_free(a.key);
    free(url);
}

static inline void drop_client(void *ctx)
{
    (void)ctx;
    e2b_free(client);
    client = NULL;
}

static inline int fresh(void **state)
{
    (void)state;
    bed_run(bed, make_client, NULL);
    return 0;
}

static inline int done(void **state)
{
    (void)state;
    bed_run(bed, drop_client, NULL);
    return 0;
}

#endif
