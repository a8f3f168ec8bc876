/* The control plane: its state, who may call, and which part answers. */
#include "plane.h"
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void plane_id(struct plane *p, char *dst, int n)
{
    for (int i = 0; i < n; i++)
        dst[i] = "abcdefghijklmnopqrstuvwxyz0123456789"[text_random(&p->seed) % 36];
    dst[n] = '\0';
}

void plane_init(struct plane *p)
{
    *p = (struct plane){.page = 100,
                        .streams = 1000,
                        .seed = 1,
                        .start_ms = clock_mono_ms(),
                        .build = {.steps = 2, .step_ms = 100, .lines = 2, .fail_at = -1}};
}

static void plane_clear(struct plane *p)
{
    for (size_t i = 0; i < p->boxes.n; i++)
        box_free(p->boxes.v[i]);
    ARR_CLEAR(&p->boxes);
    ARR_CLEAR(&p->events);
}

void plane_fill(struct plane *p, int64_t running, int64_t paused, const struct fill *f)
{
    if (!f->add)
        plane_clear(p);
    for (int64_t i = 0; i < running + paused; i++) {
        struct box *b = box_new(p, f->template_id ? f->template_id : "claude", f->ttl);
        b->running = i < running;
        b->meta = xstrdup(f->meta);
        b->auto_resume = f->auto_resume;
        b->auto_pause = f->auto_pause;
        if (!b->running)
            b->end_ms = clock_wall_ms();
    }
}

struct box *plane_find(struct plane *p, const char *id, size_t len)
{
    const char *dash = memchr(id, '-', len); /* "<id>-<client>" is understood, too */

    if (dash)
        len = (size_t)(dash - id);
    for (size_t i = 0; i < p->boxes.n; i++)
        if (!p->boxes.v[i]->gone && strncmp(p->boxes.v[i]->id, id, len) == 0 &&
            !p->boxes.v[i]->id[len])
            return p->boxes.v[i];
    return NULL;
}

void plane_refuse(struct plane *p, struct answer *a, int status, const char *message)
{
    struct jw w;

    a->status = status;
    buf_clear(&a->body);
    jw_init(&w, &a->body);
    jw_obj(&w, NULL);
    if (!p->no_code)
        jw_i64(&w, "code", status);
    jw_str(&w, "message", message);
    jw_end(&w);
}

void plane_answer(struct answer *a, int status, struct jw *w)
{
    a->status = status;
    jw_init(w, &a->body);
}

void plane_time(struct jw *w, const char *name, int64_t ms)
{
    char text[32];

    clock_format_rfc3339(text, sizeof(text), ms);
    jw_str(w, name, text);
}

int64_t plane_count(const struct plane *p, bool running)
{
    int64_t n = 0;

    for (size_t i = 0; i < p->boxes.n; i++)
        n += !p->boxes.v[i]->gone && p->boxes.v[i]->running == running;
    return n;
}

bool plane_number(struct plane *p, const struct request *r, struct answer *a, const char *name,
                  int64_t def, int64_t min, int64_t max, int64_t *out)
{
    char text[32], why[80];

    *out = def;
    query_value(r->query, name, text, sizeof(text));
    if (!*text || str_to_i64(text, min, max, out))
        return true;
    snprintf(why, sizeof(why), "%s is out of range", name);
    plane_refuse(p, a, 400, why);
    return false;
}

/* "/sandboxes" and what follows; with v2 in front of it, too. */
static void sandboxes(struct plane *p, const char *rest, const struct request *r,
                      struct answer *a, bool v2)
{
    bool get = str_eq(r->method, "GET");

    if (rest[0] == '\0' && str_eq(r->method, "POST"))
        box_create(p, r, a, v2);
    else if (rest[0] == '\0' && get && v2)
        list_pages(p, r, a);
    else if (rest[0] == '\0' && get)
        list_old(p, r, a);
    else if (str_eq(rest, "/metrics") && get)
        watch_many(p, r, a);
    else if (rest[0] == '/')
        box_route(p, rest + 1, r, a, v2);
    else
        plane_refuse(p, a, 404, "no such route");
}

void plane_route(struct plane *p, const struct request *r, struct answer *a)
{
    const char *path = r->path;
    bool v2 = str_starts(path, "/v2/sandboxes"), get = str_eq(r->method, "GET");
    char key[256];

    if (str_eq(path, "/health")) {
        a->status = 204;
    } else if (str_starts(path, "/_upload/") && str_eq(r->method, "PUT")) {
        tpl_uploaded(p, path + strlen("/_upload/"), r, a); /* the address is the secret */
    } else if (!header_value(r->head, "X-API-Key", key, sizeof(key)) ||
               (p->key && !str_eq(p->key, key))) {
        plane_refuse(p, a, 401, "invalid API key");
    } else if ((v2 || str_starts(path, "/sandboxes")) && !(v2 && p->no_v2)) {
        sandboxes(p, path + (v2 ? 13 : 10), r, a, v2);
    } else if (str_starts(path, "/events/sandboxes") && get) {
        watch_events(p, path + strlen("/events/sandboxes"), r, a);
    } else if (str_starts(path, "/teams/") && get) {
        watch_team(p, path + strlen("/teams/"), r, a);
    } else if (!tpl_route(p, r, a)) {
        plane_refuse(p, a, 404, "no such route");
    }
}
