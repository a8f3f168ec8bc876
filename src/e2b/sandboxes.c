/* The calls about sandboxes: paths and bodies, and the rows of the list. */
#include "e2b_priv.h"
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/limits.h>
#include <cct/util/log.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

/* --- the list --------------------------------------------------------------------- */

/* A value of the query. */
static void add_value(struct buf *b, const char *name, const char *value)
{
    buf_addf(b, "&%s=", name);
    buf_add_urlenc(b, value, strlen(value));
}

static void add_twice(struct buf *b, const char *s)
{
    struct buf once = BUF_INIT;

    buf_add_urlenc(&once, s, strlen(s));
    buf_add_urlenc(b, buf_str(&once), once.len);
    buf_release(&once);
}

/* The API undoes three codings: of the parameter, of the whole, and of each side of each
 * pair. Text of letters, digits, - and _ looks the same at every depth. */
static void add_metadata(struct buf *b, const struct kv *meta)
{
    struct buf pairs = BUF_INIT;

    if (!meta || !meta->k)
        return;
    for (; meta->k; meta++) {
        if (pairs.len)
            buf_addc(&pairs, '&');
        add_twice(&pairs, meta->k);
        buf_addc(&pairs, '=');
        add_twice(&pairs, meta->v ? meta->v : "");
    }
    add_value(b, "metadata", buf_str(&pairs));
    buf_release(&pairs);
}

static char *new_list(const struct e2b_list_query *q)
{
    struct buf b = BUF_INIT;
    char after[32];

    buf_addf(&b, "/v2/sandboxes?state=%s&limit=100", q->states ? q->states : "running,paused");
    add_metadata(&b, q->meta);
    if (q->template_id)
        add_value(&b, "template", q->template_id);
    if (q->started_after > 0) {
        clock_format_rfc3339(after, sizeof(after), q->started_after);
        add_value(&b, "startedAfter", after);
    }
    if (q->oldest_first)
        buf_adds(&b, "&order=asc");
    return buf_detach(&b, NULL);
}

static char *old_list(const struct e2b_list_query *q)
{
    struct buf b = BUF_INIT;

    add_metadata(&b, q->meta);
    if (b.len)
        b.p[0] = '?';
    char *path = xasprintf("/sandboxes%s", buf_str(&b));
    buf_release(&b);
    return path;
}

uint64_t e2b_list_where(struct e2b *c, const struct e2b_list_query *q,
                        const struct e2b_call_opts *o, e2b_fn fn, void *ctx)
{
    struct e2b_call *k = call_new(c, CALL_LIST, "GET", NULL, fn, ctx);

    call_options(k, o);
    k->family = ROUTE_LIST;
    k->want_template = xstrdup(q->template_id);
    k->want_after = q->started_after;
    call_route(k, new_list(q));
    if (!q->states || strstr(q->states, "running")) /* the old one knows no other */
        call_route(k, old_list(q));
    return call_start(k);
}

uint64_t e2b_list(struct e2b *c, const struct e2b_call_opts *o, e2b_fn fn, void *ctx)
{
    static const struct e2b_list_query all = {.states = NULL};

    return e2b_list_where(c, &all, o, fn, ctx);
}

static bool is_wanted(const struct e2b_call *k, const struct e2b_sandbox *s)
{
    if (!answer_is_old_list(k))
        return true;
    if (k->want_after > 0 && s->started_at < k->want_after)
        return false;
    return !k->want_template || str_eq(s->template_id, k->want_template) ||
           str_eq(s->alias, k->want_template);
}

/* One that came before (a cursor by offset shifts) is not doubled. */
static bool take_row(struct e2b_call *k, const struct cJSON *item)
{
    struct e2b_sandbox s;

    if (!sandbox_parse(item, &s))
        return false;
    if (map_get(k->ids, s.sandbox_id) || !is_wanted(k, &s)) {
        e2b_sandbox_clear(&s);
        return true;
    }
    if (!s.state[0] && answer_is_old_list(k)) {
        free(s.state); /* the old list has running ones only */
        s.state = xstrdup("running");
    }
    *ARR_PUSH(&k->got.sandboxes) = s;
    map_put(k->ids, s.sandbox_id, k);
    return true;
}

int take_list(struct e2b_call *k, const struct cJSON *j)
{
    size_t odd = 0;

    if (!json_is_array(j))
        return ERR_PROTO;
    if (!k->ids)
        k->ids = map_new();
    for (const struct cJSON *i = json_first(j); i; i = json_next(i))
        odd += !take_row(k, i);
    if (odd)
        log_warn("list of sandboxes: %zu entries without an id were left out", odd);
    return 0;
}

int take_one(struct e2b_call *k, const struct cJSON *j)
{
    struct e2b_sandbox s;

    if (!sandbox_parse(j, &s))
        return ERR_PROTO;
    *ARR_PUSH(&k->got.sandboxes) = s;
    return 0;
}

/* --- one of them ------------------------------------------------------------------ */

static char *one_path(const char *id, const char *tail)
{
    return call_path("/sandboxes/", id, tail, NULL, NULL);
}

uint64_t e2b_get(struct e2b *c, const char *id, const struct e2b_call_opts *o, e2b_fn fn, void *ctx)
{
    struct e2b_call *k = call_new(c, CALL_GET, "GET", id, fn, ctx);

    call_options(k, o);
    call_route(k, one_path(id, ""));
    return call_start(k);
}

uint64_t e2b_kill(struct e2b *c, const char *id, const struct e2b_call_opts *o, e2b_fn fn,
                  void *ctx)
{
    struct e2b_call *k = call_new(c, CALL_KILL, "DELETE", id, fn, ctx);

    call_options(k, o);
    call_route(k, one_path(id, ""));
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
    call_route(k, xstrdup("/sandboxes"));
    return call_start(k);
}

static struct e2b_call *post_one(struct e2b *c, enum call_kind kind, const char *id,
                                 const char *tail, const char *name, int seconds, e2b_fn fn,
                                 void *ctx)
{
    struct e2b_call *k = call_new(c, kind, "POST", id, fn, ctx);

    if (name)
        buf_addf(&k->body, "{\"%s\":%d}", name, seconds);
    else
        buf_adds(&k->body, "{}");
    call_route(k, one_path(id, tail));
    if (name && seconds <= 0)
        err_set(&k->refusal, ERR_INVALID, "cannot give \"%.80s\" %d seconds: a time must be 1 "
                "second or more; to end a sandbox now, kill it", id, seconds);
    return k;
}

static uint64_t start_or_refuse(struct e2b_call *k)
{
    return k->refusal.code ? call_refuse(k) : call_start(k);
}

uint64_t e2b_set_timeout(struct e2b *c, const char *id, int timeout_s, e2b_fn fn, void *ctx)
{
    return start_or_refuse(
        post_one(c, CALL_TIMEOUT, id, "/timeout", "timeout", timeout_s, fn, ctx));
}

uint64_t e2b_refresh(struct e2b *c, const char *id, int seconds, e2b_fn fn, void *ctx)
{
    int most = seconds > 3600 ? 3600 : seconds;

    return start_or_refuse(post_one(c, CALL_REFRESH, id, "/refreshes", "duration", most, fn, ctx));
}

uint64_t e2b_pause(struct e2b *c, const char *id, e2b_fn fn, void *ctx)
{
    return call_start(post_one(c, CALL_PAUSE, id, "/pause", NULL, 0, fn, ctx));
}

/* The first is where most services have it. */
uint64_t e2b_connect(struct e2b *c, const char *id, int timeout_s, e2b_fn fn, void *ctx)
{
    struct e2b_call *k = post_one(c, CALL_CONNECT, id, "/connect", "timeout", timeout_s, fn, ctx);

    k->keep_body = true;
    k->family = ROUTE_CONNECT;
    call_route(k, call_path("/v2/sandboxes/", id, "/connect", NULL, NULL));
    call_route(k, one_path(id, "/resume"));
    return start_or_refuse(k);
}
