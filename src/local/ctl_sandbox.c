/* Sandboxes in the control API: made, listed, shown, paused, ended. */
#include "ctl_priv.h"
#include <cct/local/http_srv.h>
#include <cct/local/init.h>
#include <cct/local/provider.h>
#include <cct/local/tpl.h>
#include <cct/util/clock.h>
#include <cct/util/map.h>
#include <cct/util/xalloc.h>

#include <cJSON.h>
#include <stdio.h>
#include <stdlib.h>

/* --- answers ------------------------------------------------------------------ */

static void write_created(struct buf *out, const struct sbox_rec *r)
{
    struct jw w;
    jw_init(&w, out);
    jw_obj(&w, NULL);
    jw_str(&w, "templateID", r->template_id);
    jw_str(&w, "sandboxID", r->id);
    if (r->alias[0])
        jw_str(&w, "alias", r->alias);
    jw_str(&w, "clientID", "local");
    jw_str(&w, "envdVersion", INIT_ENVD_VERSION);
    jw_str(&w, "envdAccessToken", r->token);
    if (r->traffic_token[0])
        jw_str(&w, "trafficAccessToken", r->traffic_token);
    else
        jw_null(&w, "trafficAccessToken");
    jw_null(&w, "domain");
    jw_bool(&w, "isolated", r->isolated);
    jw_end(&w);
}

static void write_object(struct jw *w, const char *name, const struct cJSON *o)
{
    char *text = o ? json_text(o) : NULL;
    jw_raw(w, name, text ? text : "{}");
    free(text);
}

static void write_item(struct jw *w, const struct sbox_rec *r, bool detail)
{
    jw_obj(w, NULL);
    jw_str(w, "templateID", r->template_id);
    if (r->alias[0])
        jw_str(w, "alias", r->alias);
    jw_str(w, "sandboxID", r->id);
    jw_str(w, "clientID", "local");
    ctl_write_time(w, "startedAt", r->started_ms);
    ctl_write_time(w, "endAt", r->end_ms);
    jw_str(w, "state", r->state == SBOX_PAUSED ? "paused" : "running");
    jw_i64(w, "cpuCount", r->cpu);
    jw_i64(w, "memoryMB", r->mem_mb);
    jw_i64(w, "diskSizeMB", 0);
    jw_str(w, "envdVersion", INIT_ENVD_VERSION);
    jw_bool(w, "isolated", r->isolated);
    write_object(w, "metadata", r->metadata);
    if (detail) {
        jw_str(w, "envdAccessToken", r->token);
        jw_null(w, "domain");
        if (r->internet_asked)
            jw_bool(w, "allowInternetAccess", r->internet);
        else
            jw_null(w, "allowInternetAccess");
        if (r->network)
            write_object(w, "network", r->network);
        jw_obj(w, "lifecycle");
        jw_bool(w, "autoResume", r->auto_resume);
        jw_str(w, "onTimeout", r->auto_pause ? "pause" : "kill");
        jw_end(w);
    }
    jw_end(w);
}

static void mark_isolation(struct http_req *r, bool isolated)
{
    if (!isolated)
        http_reply_header(r, "X-CC-Isolated", "no");
}

static void reply_created(struct http_req *r, int status, const struct sbox *b)
{
    struct buf out = BUF_INIT;
    write_created(&out, &b->rec);
    mark_isolation(r, b->rec.isolated);
    http_reply(r, status, out.p, out.len);
    buf_release(&out);
}

/* It was wanted rightly, and this machine could not do it. */
static void reply_failed(struct http_req *r, const struct err *e)
{
    struct buf out = BUF_INIT;
    struct jw w;
    jw_init(&w, &out);
    jw_obj(&w, NULL);
    jw_i64(&w, "code", 500);
    jw_str(&w, "message", e->text);
    jw_str(&w, "error_code", "sandbox_create_failed");
    jw_end(&w);
    ctl_reply_buf(r, 500, &out);
}

static void done_created(void *arg, struct sbox *b, const struct err *e)
{
    if (b)
        reply_created(arg, 201, b);
    else if (e->code == ERR_SERVER)
        reply_failed(arg, e);
    else
        ctl_reply_err(arg, e);
}

static void done_empty(void *arg, struct sbox *b, const struct err *e)
{
    (void)b;
    if (e && e->code != 0)
        ctl_reply_err(arg, e);
    else
        http_reply(arg, 204, NULL, 0);
}

/* --- routes: the collection ----------------------------------------------------- */

void ctl_sandbox_create(struct ctl_call *c)
{
    const char *ref = json_str(c->body, "templateID", NULL);
    if (!ref) {
        http_reply_error(c->r, 400, "templateID is missing");
        return;
    }
    struct err e = {0};
    struct tpl_build *build = NULL;
    struct tpl *t = tpl_resolve(c->p->tpl, ref, &build, &e);
    if (!t) {
        ctl_reply_err(c->r, &e);
        return;
    }
    struct sbox_new n = {.template_id = t->id,
                         .alias = t->name,
                         .build_id = build->id,
                         .image = t->builtin ? NULL : &build->image,
                         .cpu = build->cpu,
                         .mem_mb = build->mem_mb};
    int rc = ctl_options_parse(c->body, c->v2, &n, &e);
    if (rc == 0 && c->p->unsafe && !n.internet)
        rc = err_set(&e, ERR_UNSUPPORTED,
                     "without namespaces a sandbox cannot be kept from the internet");
    if (rc == 0)
        rc = sbox_create(c->p, &n, done_created, c->r, &e);
    if (rc != 0)
        ctl_reply_err(c->r, &e);
    else
        tpl_count_spawn(c->p->tpl, t);
}

static void reply_list(struct ctl_call *c, struct ctl_list *q, bool paged)
{
    size_t n = 0, it = 0, running;
    const struct sbox_rec **recs = xcalloc(map_count(c->p->boxes) + 1, sizeof(recs[0]));
    struct sbox *b;
    while ((b = map_next(c->p->boxes, &it, NULL, NULL)) != NULL)
        if (sbox_is_visible(b))
            recs[n++] = &b->rec;
    char *next;
    n = ctl_list_select(q, recs, n, &running, &next);
    struct buf out = BUF_INIT;
    struct jw w;
    jw_init(&w, &out);
    jw_arr(&w, NULL);
    for (size_t i = 0; i < n; i++)
        write_item(&w, recs[i], false);
    jw_end(&w);
    char total[24];
    snprintf(total, sizeof(total), "%zu", running);
    if (paged && q->running)
        http_reply_header(c->r, "X-Total-Running", total);
    if (paged && next)
        http_reply_header(c->r, "X-Next-Token", next);
    mark_isolation(c->r, !c->p->unsafe);
    http_reply(c->r, 200, out.p, out.len);
    buf_release(&out);
    free(next);
    free(recs);
}

void ctl_sandbox_list(struct ctl_call *c)
{
    struct ctl_list q;
    struct err e = {0};
    if (ctl_list_parse(&q, c->r->query, &e) != 0)
        ctl_reply_err(c->r, &e);
    else
        reply_list(c, &q, true);
    ctl_list_release(&q);
}

void ctl_sandbox_list_v1(struct ctl_call *c)
{
    struct ctl_list q;
    struct err e = {0};
    if (ctl_list_parse(&q, c->r->query, &e) != 0) {
        ctl_reply_err(c->r, &e);
    } else {
        q.running = true; /* the old list knows no others, and has no pages */
        q.paused = false;
        q.limit = 1 << 20;
        reply_list(c, &q, false);
    }
    ctl_list_release(&q);
}

/* --- routes: one sandbox ---------------------------------------------------------- */

void ctl_sandbox_get(struct ctl_call *c)
{
    struct buf out = BUF_INIT;
    struct jw w;
    jw_init(&w, &out);
    write_item(&w, &c->b->rec, true);
    mark_isolation(c->r, c->b->rec.isolated);
    http_reply(c->r, 200, out.p, out.len);
    buf_release(&out);
}

/* {"memory":false}: without the processes, from the files only. */
static bool take_memory(const struct ctl_call *c, bool *memory)
{
    const struct cJSON *v = json_get(c->body, "memory");
    *memory = json_bool(c->body, "memory", true);
    if (!v || cJSON_IsNull(v) || cJSON_IsBool(v))
        return true;
    http_reply_error(c->r, 400, "memory must be a boolean");
    return false;
}

void ctl_sandbox_delete(struct ctl_call *c)
{
    sbox_kill(c->b, done_empty, c->r);
}

void ctl_sandbox_pause(struct ctl_call *c)
{
    struct err e = {0};
    bool memory;
    if (!take_memory(c, &memory))
        return;
    if (sbox_pause(c->b, memory, done_empty, c->r, &e) != 0)
        ctl_reply_err(c->r, &e);
}

void ctl_sandbox_resume(struct ctl_call *c)
{
    int64_t s;
    struct err e = {0};
    bool memory;
    const struct cJSON *pause = json_get(c->body, "autoPause");
    if (!take_memory(c, &memory) || !ctl_take_seconds(c, "timeout", 15, 1, &s))
        return;
    if (sbox_resume(c->b, s, memory, done_created, c->r, &e) != 0)
        ctl_reply_err(c->r, &e);
    else if (pause)
        c->b->rec.auto_pause = json_bool(c->body, "autoPause", false);
}

void ctl_sandbox_connect(struct ctl_call *c)
{
    int64_t s;
    struct err e = {0};
    if (!c->v2 && !json_get(c->body, "timeout")) {
        http_reply_error(c->r, 400, "timeout is missing");
        return;
    }
    bool memory;
    if (!take_memory(c, &memory) || !ctl_take_seconds(c, "timeout", 300, 1, &s))
        return;
    if (c->b->rec.state == SBOX_PAUSED) {
        if (sbox_resume(c->b, s, memory, done_created, c->r, &e) != 0)
            ctl_reply_err(c->r, &e);
        return;
    }
    int64_t end = clock_wall_ms() + s * 1000;
    if (end > c->b->rec.end_ms)
        sbox_move_end(c->b, end);
    reply_created(c->r, 200, c->b);
}

static bool is_running(const struct ctl_call *c)
{
    if (c->b->rec.state == SBOX_RUNNING)
        return true;
    http_reply_error(c->r, 409, "sandbox '%s' is not running", c->b->rec.id);
    return false;
}

void ctl_sandbox_timeout(struct ctl_call *c)
{
    int64_t s;
    if (!is_running(c) || !ctl_take_seconds(c, "timeout", -1, 0, &s))
        return;
    sbox_move_end(c->b, clock_wall_ms() + s * 1000);
    http_reply(c->r, 204, NULL, 0);
}

void ctl_sandbox_refreshes(struct ctl_call *c)
{
    int64_t s;
    if (!is_running(c) || !ctl_take_seconds(c, "duration", 15, 0, &s))
        return;
    if (s > 3600) {
        http_reply_error(c->r, 400, "duration must be at most 3600 seconds");
        return;
    }
    int64_t end = clock_wall_ms() + (s < 15 ? 15 : s) * 1000;
    if (end > c->b->rec.end_ms)
        sbox_move_end(c->b, end);
    http_reply(c->r, 204, NULL, 0);
}

/* What a network namespace is cannot be changed later; saying again what is so
 * already is no change. */
void ctl_sandbox_network(struct ctl_call *c)
{
    struct err e = {0};
    struct sbox_new n = {0};
    if (!is_running(c))
        return;
    int rc = ctl_options_update(c->body, &n.internet, &e);
    if (rc == 0 && n.internet != c->b->rec.internet)
        rc = err_set(&e, ERR_UNSUPPORTED,
                     "the network of a sandbox is settled when it is made; make another one");
    if (rc != 0)
        ctl_reply_err(c->r, &e);
    else
        http_reply(c->r, 204, NULL, 0);
}
