/* Rules: what they say, which one plays, and what it breaks. */
#include "plane.h"
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
    "method",   "path",        "sandbox",    "skip",    "times",  "percent",
    "status",   "retry_after", "body",       "apply",   "cut",    "cut_body",
    "rst",      "stall",       "rst_stream", "refuse",  "goaway", "drip",
    "delay_ms", "delay_to",    "late_ms",    "back_ms", "spawn",  "spawn_meta",
    "after",    "trailer",     "replay",     "reorder", NULL,
};

void rule_release(struct rule *r)
{
    free(r->method);
    free(r->path);
    free(r->retry_after);
    free(r->body);
    free(r->trailer);
    free(r->sandbox);
    free(r->spawn_meta);
}

static void read_rule(struct rule *r, const struct cJSON *j)
{
    r->method = xstrdup(json_str(j, "method", NULL));
    r->path = xstrdup(json_str(j, "path", "*"));
    r->retry_after = xstrdup(json_str(j, "retry_after", NULL));
    r->body = xstrdup(json_str(j, "body", NULL));
    r->trailer = xstrdup(json_str(j, "trailer", NULL));
    r->sandbox = xstrdup(json_str(j, "sandbox", NULL));
    r->after = json_i64(j, "after", 0);
    r->replay = json_i64(j, "replay", 0);
    r->reorder = json_i64(j, "reorder", 0);
    r->skip = json_i64(j, "skip", 0);
    r->times = json_i64(j, "times", 0);
    r->endless = r->times == 0;
    r->percent = json_i64(j, "percent", 100);
    r->status = json_i64(j, "status", 0);
    r->cut = json_i64(j, "cut", -1);
    r->cut_body = json_i64(j, "cut_body", -1);
    r->delay_ms = json_i64(j, "delay_ms", -1);
    r->delay_to = json_i64(j, "delay_to", 0);
    r->drip = json_i64(j, "drip", 0);
    r->back_ms = json_i64(j, "back_ms", -1);
    r->spawn = json_i64(j, "spawn", 0);
    r->spawn_meta =
        json_is_object(json_get(j, "spawn_meta")) ? json_text(json_get(j, "spawn_meta")) : NULL;
    r->late_ms = json_i64(j, "late_ms", 0);
    r->stall_all = str_eq(json_str(j, "stall", NULL), "connection");
    r->stall = r->stall_all || json_bool(j, "stall", false);
    r->rst = json_bool(j, "rst", false);
    r->rst_stream = json_bool(j, "rst_stream", false);
    r->goaway = json_bool(j, "goaway", false);
    r->refuse = json_bool(j, "refuse", false);
    r->apply = json_bool(j, "apply", r->status == 0 && !r->refuse);
}

bool rule_add(struct plane *p, const struct cJSON *j, char *why, size_t size)
{
    if (!text_known(j, names, why, size))
        return false;
    read_rule(ARR_PUSH(&p->rules), j);
    return true;
}

struct rule *rule_keep(const struct rule *u)
{
    struct rule *k = xcalloc(1, sizeof(*k));

    *k = *u;
    k->method = k->path = k->sandbox = k->trailer = NULL;
    k->retry_after = xstrdup(u->retry_after);
    k->body = xstrdup(u->body);
    k->spawn_meta = xstrdup(u->spawn_meta);
    return k;
}

struct rule *rule_pick(struct exchange *x)
{
    struct plane *p = x->plane;
    const struct request *r = &x->req;
    char id[64] = "";
    int64_t port;

    data_addressed(x, id, sizeof(id), &port);
    for (size_t i = 0; i < p->rules.n; i++) {
        struct rule *u = &p->rules.v[i];
        if ((u->method && !str_eq(u->method, r->method)) || fnmatch(u->path, r->path, 0) != 0 ||
            (u->sandbox && fnmatch(u->sandbox, id, 0) != 0))
            continue;
        if (u->skip > 0) {
            u->skip--;
            continue;
        }
        if ((!u->endless && u->times <= 0) || (int64_t)(text_random(&p->seed) % 100) >= u->percent)
            continue;
        u->times--;
        return u;
    }
    return NULL;
}

void rule_break_answer(const struct rule *u, struct exchange *x)
{
    struct answer *a = &x->a;

    if (u->status) {
        a->status = (int)u->status;
        buf_clear(&a->body);
        buf_clear(&a->head);
        if (u->body)
            buf_adds(&a->body, u->body);
        else if (u->status >= 400)
            buf_addf(&a->body, "{\"code\":%d,\"message\":\"scripted\"}", a->status);
    }
    if (u->retry_after)
        buf_addf(&a->head, "Retry-After: %s\r\n", u->retry_after);
    if (u->delay_ms >= 0)
        a->delay_ms = (int)u->delay_ms;
    if (u->delay_ms >= 0 && u->delay_to > u->delay_ms)
        a->delay_ms +=
            (int)(text_random(&x->plane->seed) % (uint64_t)(u->delay_to - u->delay_ms + 1));
}

void rule_break_transport(const struct rule *u, struct exchange *x)
{
    struct fault *f = &x->fault;
    bool nowhere = u->cut < 0 && u->cut_body < 0;

    f->cut = x->h2 ? -1 : u->cut;
    f->cut_body = u->cut_body >= 0 ? u->cut_body : x->h2 ? u->cut : -1;
    f->how = u->rst                       ? END_RST
             : u->rst_stream || u->refuse ? END_STREAM
             : u->stall                   ? END_SILENCE
                                          : END_FIN;
    if (nowhere && (u->rst || u->rst_stream || u->refuse || u->stall_all))
        *(x->h2 ? &f->cut_body : &f->cut) = 0;
    f->stall_all = u->stall_all;
    f->goaway = u->goaway;
    f->refuse = u->refuse;
    f->drip_ms = u->drip;
    f->after = u->after;
    f->replay = u->replay;
    f->reorder = u->reorder;
    f->trailer = xstrdup(u->trailer);
}

void rule_stir(struct plane *p, const struct rule *u, const struct request *r)
{
    struct fill f = {.meta = u->spawn_meta, .ttl = 3600, .add = true};

    if (u->back_ms >= 0 && strrchr(r->path, '/'))
        box_come_back(p, strrchr(r->path, '/') + 1, u->back_ms);
    if (u->spawn > 0)
        plane_fill(p, u->spawn, 0, &f);
}
