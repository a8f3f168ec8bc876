/* The calls about sandboxes: paths and bodies. */
#include "e2b_priv.h"
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

/* With the route that works everywhere; v2 is where paused ones and pages are. */
void list_path(struct e2b_call *k)
{
    struct buf b = BUF_INIT;

    /* what is urgent does not trust the memory: the v2 route may only have stumbled */
    if (k->fresh_v1 || (!k->urgent && clock_mono_ms() < k->e2b->v1_until)) {
        buf_adds(&b, "/sandboxes");
    } else {
        buf_adds(&b, "/v2/sandboxes?state=running,paused&limit=100");
        if (k->token) {
            buf_adds(&b, "&nextToken=");
            buf_add_urlenc(&b, k->token, strlen(k->token));
        }
    }
    free(k->path);
    k->path = buf_detach(&b, NULL);
}

uint64_t e2b_list(struct e2b *c, const struct e2b_call_opts *o, e2b_fn fn, void *ctx)
{
    struct e2b_call *k = call_new(c, CALL_LIST, "GET", NULL, fn, ctx);

    call_options(k, o);
    list_path(k);
    return call_start(k);
}

static char *one_path(const char *id, const char *tail)
{
    struct buf b = BUF_INIT;

    buf_adds(&b, "/sandboxes/");
    buf_add_urlenc(&b, id, strlen(id));
    buf_adds(&b, tail);
    return buf_detach(&b, NULL);
}

uint64_t e2b_get(struct e2b *c, const char *id, const struct e2b_call_opts *o, e2b_fn fn, void *ctx)
{
    struct e2b_call *k = call_new(c, CALL_GET, "GET", id, fn, ctx);

    call_options(k, o);
    k->path = one_path(id, "");
    return call_start(k);
}

uint64_t e2b_kill(struct e2b *c, const char *id, const struct e2b_call_opts *o, e2b_fn fn,
                  void *ctx)
{
    struct e2b_call *k = call_new(c, CALL_KILL, "DELETE", id, fn, ctx);

    call_options(k, o);
    k->path = one_path(id, "");
    return call_start(k);
}

static size_t kv_room(const struct kv *v)
{
    size_t n = 0;

    for (; v && v->k; v++)
        n += 6 * (strlen(v->k) + strlen(v->v ? v->v : "")) + 16;
    return n;
}

static void put_kv(struct jw *w, const char *name, const struct kv *v)
{
    if (!v || !v->k)
        return;
    jw_obj(w, name);
    for (; v->k; v++)
        jw_str(w, v->k, v->v ? v->v : "");
    jw_end(w);
}

uint64_t e2b_create(struct e2b *c, const struct e2b_create *q, e2b_fn fn, void *ctx)
{
    struct e2b_call *k = call_new(c, CALL_CREATE, "POST", q->template_id, fn, ctx);
    struct jw w;

    /* Room for the worst case of escapes at once: growing would leave copies of
     * secret values behind in freed memory. */
    buf_init(&k->body, 0);
    buf_reserve(&k->body, 512 + 6 * strlen(q->template_id) + kv_room(q->meta) + kv_room(q->env));
    jw_init(&w, &k->body);
    jw_obj(&w, NULL);
    jw_str(&w, "templateID", q->template_id);
    jw_i64(&w, "timeout", q->timeout_s);
    jw_bool(&w, "secure", true);
    if (q->auto_pause)
        jw_bool(&w, "autoPause", true);
    put_kv(&w, "metadata", q->meta);
    put_kv(&w, "envVars", q->env);
    jw_end(&w);
    k->path = xstrdup("/sandboxes");
    return call_start(k);
}

static uint64_t post_one(struct e2b *c, enum call_kind kind, const char *id, const char *tail,
                         int timeout_s, e2b_fn fn, void *ctx)
{
    struct e2b_call *k = call_new(c, kind, "POST", id, fn, ctx);

    if (timeout_s >= 0)
        buf_addf(&k->body, "{\"timeout\":%d}", timeout_s);
    else
        buf_adds(&k->body, "{}");
    k->path = one_path(id, tail);
    return call_start(k);
}

uint64_t e2b_set_timeout(struct e2b *c, const char *id, int timeout_s, e2b_fn fn, void *ctx)
{
    return post_one(c, CALL_TIMEOUT, id, "/timeout", timeout_s < 0 ? 0 : timeout_s, fn, ctx);
}

uint64_t e2b_pause(struct e2b *c, const char *id, e2b_fn fn, void *ctx)
{
    return post_one(c, CALL_PAUSE, id, "/pause", -1, fn, ctx);
}

uint64_t e2b_connect(struct e2b *c, const char *id, int timeout_s, e2b_fn fn, void *ctx)
{
    return post_one(c, CALL_CONNECT, id, "/connect", timeout_s < 0 ? 0 : timeout_s, fn, ctx);
}
