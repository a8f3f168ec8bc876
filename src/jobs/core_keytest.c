/* Trying a provider's key: one GET that costs nothing, to the provider's own host and to no
 * other, over https. E2B's is tried by a list, with the account in use. */
#include "core_keys.h"

#include <cct/keys.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAIT_MS = 15000, BODY_MAX = 1 << 20 };

/* Which origin may receive which provider's key. */
static const struct {
    const char *provider, *origin, *path;
    const char *header, *lead; /* the key stands behind lead in that header */
    const char *extra, *extra_value, *more, *more_value;
} services[] = {
    {"anthropic", "https://api.anthropic.com", "/v1/models?limit=1", "x-api-key", "",
     "anthropic-version", "2023-06-01", NULL, NULL},
    {"anthropic_token", "https://api.anthropic.com", "/v1/models?limit=1", "Authorization",
     "Bearer ", "anthropic-version", "2023-06-01", "anthropic-beta", "oauth-2025-04-20"},
    {"openai", "https://api.openai.com", "/v1/models", "Authorization", "Bearer ", NULL, NULL, NULL,
     NULL},
    {"openrouter", "https://openrouter.ai", "/api/v1/key", "Authorization", "Bearer ", NULL, NULL,
     NULL, NULL},
    {"github", "https://api.github.com", "/user", "Authorization", "Bearer ", "Accept",
     "application/vnd.github+json", NULL, NULL},
};

struct keytest {
    struct jobs *j;
    uint64_t req_id, call;
    size_t at;             /* in services */
    enum key_source source;
    char mask[16];
    struct secret *header;
};

static void test_free(struct keytest *t)
{
    secret_free(t->header);
    free(t);
}

static void end(struct keytest *t, const struct err *e, char *take_text)
{
    struct jobs *j = t->j;
    struct keys *k = j->priv->keys;
    struct ev_done *d = ev_new(EV_DONE);

    for (size_t i = 0; i < k->tests.n; i++)
        if (k->tests.v[i] == t) {
            ARR_REMOVE(&k->tests, i);
            break;
        }
    d->m.req_id = t->req_id;
    if (e)
        d->err = *e;
    d->text = take_text;
    jobs_post(j, d);
    test_free(t);
}

static void fix(const struct keytest *t, char *dst, size_t size)
{
    const char *provider = services[t->at].provider;

    if (t->source == KEY_ENV)
        snprintf(dst, size, "set another one in the environment before cc-tui is started");
    else
        snprintf(dst, size, "replace it with cc-tui keys add %s%s", provider,
                 t->source == KEY_PROJECT ? " --project NAME" : "");
}

static void on_answer(void *ctx, const struct net_result *r)
{
    struct keytest *t = ctx;
    const char *provider = services[t->at].provider, *level = key_source_name(t->source);
    struct err e = r->err;
    char how[96];

    t->call = 0;
    fix(t, how, sizeof(how));
    if (e.code)
        err_wrap(&e, "the %s key %s (%s) could not be tried", provider, t->mask, level);
    else if (r->status / 100 == 2)
        ; /* it is good */
    else if (r->status == 401)
        err_set(&e, ERR_AUTH, "%s refuses the key %s (%s): %s", provider, t->mask, level, how);
    else if (r->status == 403)
        err_set(&e, ERR_PERM, "%s knows the key %s (%s), but does not let it list models or look at "
                "itself: an agent may still be able to use it", provider, t->mask, level);
    else if (r->status == 429)
        err_set(&e, ERR_BUSY, "%s asks for patience, so the key %s (%s) was not tried: try again "
                "later", provider, t->mask, level);
    else
        err_set(&e, r->status >= 500 ? ERR_SERVER : ERR_PROTO, "%s answers %d, which says nothing "
                "of the key %s (%s): try again later", provider, r->status, t->mask, level);
    end(t, e.code ? &e : NULL,
        e.code ? NULL : xasprintf("works: %s %s (%s)", provider, t->mask, level));
}

/* For tests: a loopback address in the place of the real one, and never anything else. */
static const char *origin_of(const struct keytest *t)
{
    const char *other = getenv("CC_TUI_KEY_TEST_URL");
    bool loopback = false;

    if (other && net_url_check(other, &loopback, NULL) == 0 && loopback)
        return other;
    return services[t->at].origin;
}

static void ask(struct keytest *t, const struct secret *key)
{
    size_t lead = strlen(services[t->at].lead), n = secret_len(key);
    struct net_req *r =
        net_req_new("GET", xasprintf("%s%s", origin_of(t), services[t->at].path));
    char *p;

    t->header = secret_new_bytes(NULL, lead + n);
    p = (char *)(uintptr_t)secret_value(t->header);
    memcpy(p, services[t->at].lead, lead);
    memcpy(p + lead, secret_value(key), n);
    net_req_secret(r, services[t->at].header, t->header);
    if (services[t->at].extra)
        net_req_header(r, services[t->at].extra, services[t->at].extra_value);
    if (services[t->at].more)
        net_req_header(r, services[t->at].more, services[t->at].more_value);
    r->total_ms = WAIT_MS;
    r->max_body = BODY_MAX;
    r->on_done = on_answer;
    r->ctx = t;
    t->call = net_submit(t->j->o.net, r);
}

/* The key that an agent would get of that provider; NULL with *e. */
static struct secret *key_of(struct keytest *t, struct err *e)
{
    const char *needs[] = {services[t->at].provider, NULL};
    struct keys_at at = core_keys_at(t->j);
    struct keys *k = t->j->priv->keys;
    struct key_need need = {.label = "a test", .needs = needs};
    struct key_check c;
    struct kv *env;
    struct secret *s = NULL;

    keys_preflight(&at, &need, &c);
    t->source = c.source;
    str_copy(t->mask, sizeof(t->mask), c.mask);
    env = c.state < KEY_LACKS ? keys_provider_env(&at, k->data_key, needs, e) : NULL;
    if (c.state == KEY_LACKS)
        err_set(e, ERR_AUTH, "no key of %s is set or stored: cc-tui keys add %s", needs[0],
                needs[0]);
    else if (c.state == KEY_UNUSABLE)
        err_set(e, ERR_AUTH, "%s", c.text);
    if (env && env->k)
        s = secret_new(env->v, strlen(env->v));
    keys_env_free(env);
    key_check_release(&c);
    return s;
}

void keytest_start(struct keys *k, struct cmd *c)
{
    struct keytest *t = *ARR_PUSH(&k->tests) = xcalloc(1, sizeof(*t));
    const size_t n = sizeof(services) / sizeof(services[0]);
    struct err e = {0};
    struct secret *key;

    t->j = k->j;
    t->req_id = c->m.req_id;
    while (t->at < n && !str_eq(services[t->at].provider, c->text))
        t->at++;
    if (t->at == n) {
        t->at = 0;
        err_set(&e, ERR_INVALID, "there is no such provider");
        end(t, &e, NULL);
        return;
    }
    key = k->j->priv->net_err.code ? NULL : key_of(t, &e);
    if (key)
        ask(t, key);
    else
        end(t, e.code ? &e : &k->j->priv->net_err, NULL);
    secret_free(key);
}

void keytest_release(struct keys *k)
{
    for (size_t i = 0; i < k->tests.n; i++) {
        net_cancel(k->j->o.net, k->tests.v[i]->call);
        test_free(k->tests.v[i]);
    }
    ARR_RELEASE(&k->tests);
}
