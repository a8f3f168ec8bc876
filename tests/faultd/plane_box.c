/* Sandboxes one by one: create, look, pause, wake, prolong, kill, and their time. */
#include "plane.h"
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

/* ---- life ---- */

static void box_event(struct plane *p, const struct box *b, const char *what)
{
    struct event *e = ARR_PUSH(&p->events);

    e->at_ms = clock_wall_ms();
    e->what = what;
    str_copy(e->box, sizeof(e->box), b->id);
    str_copy(e->template_id, sizeof(e->template_id), b->template_id);
    e->started_ms = b->started_ms;
}

static void box_kill(struct plane *p, struct box *b)
{
    box_event(p, b, "killed");
    b->gone = true;
    loop_timer_stop(&b->ttl);
    data_free(b->data);
    b->data = NULL;
}

static void pause(struct plane *p, struct box *b)
{
    b->running = false;
    data_pause(b);
    b->end_ms = clock_wall_ms();
    loop_timer_stop(&b->ttl);
    box_event(p, b, "paused");
}

static void on_ttl(struct timer *t)
{
    struct box *b = OWNER_OF(t, struct box, ttl);

    if (b->auto_pause)
        pause(b->plane, b);
    else
        box_kill(b->plane, b);
}

static void set_end(struct box *b, int64_t end_ms)
{
    b->end_ms = end_ms;
    if (b->running)
        loop_timer(&b->ttl, end_ms - clock_wall_ms());
}

/* Killed, yet there again after a while: the kill did not hold. */
static void on_back(struct timer *t)
{
    struct box *b = OWNER_OF(t, struct box, back);

    b->gone = false;
    if (b->end_ms > clock_wall_ms())
        set_end(b, b->end_ms);
}

void box_come_back(struct plane *p, const char *id, int64_t in_ms)
{
    for (size_t i = 0; i < p->boxes.n; i++)
        if (str_eq(p->boxes.v[i]->id, id) && p->boxes.v[i]->gone) {
            p->boxes.v[i]->back.fire = on_back;
            loop_timer(&p->boxes.v[i]->back, in_ms);
        }
}

struct box *box_new(struct plane *p, const char *template_id, int64_t timeout_s)
{
    struct box *b = *ARR_PUSH(&p->boxes) = xcalloc(1, sizeof(*b));

    b->id[0] = 'i';
    plane_id(p, b->id + 1, 20);
    b->plane = p;
    b->template_id = xstrdup(template_id);
    b->running = true;
    b->started_ms = clock_wall_ms();
    b->ttl.fire = on_ttl;
    set_end(b, b->started_ms + timeout_s * 1000);
    return b;
}

void box_free(struct box *b)
{
    data_free(b->data);
    loop_timer_stop(&b->ttl);
    loop_timer_stop(&b->back);
    free(b->template_id);
    free(b->meta);
    free(b->env);
    free(b);
}

/* ---- calls ---- */

static void answer_box(struct plane *p, struct answer *a, int status, const struct box *b)
{
    struct jw w;

    plane_answer(a, status, &w);
    list_put(p, &w, NULL, b, true);
}

void box_create(struct plane *p, const struct request *r, struct answer *a, bool v2)
{
    struct cJSON *j = json_parse(r->body, r->len, NULL);
    const char *template_id = json_str(j, "templateID", NULL);
    int64_t timeout = json_i64(j, "timeout", v2 ? 300 : 15);
    struct box *b;

    if (!template_id || timeout <= 0) {
        plane_refuse(p, a, 400, "templateID and a timeout above 0 are needed");
    } else if (p->cap && plane_count(p, true) >= p->cap) {
        plane_refuse(p, a, 429, "you have reached the maximum number of concurrent sandboxes");
    } else {
        b = box_new(p, template_id, timeout);
        if (json_is_object(json_get(j, "metadata")))
            b->meta = json_text(json_get(j, "metadata"));
        if (json_is_object(json_get(j, "envVars")))
            b->env = json_text(json_get(j, "envVars"));
        b->auto_resume = json_bool(json_get(j, "autoResume"), "enabled", false);
        b->auto_pause = json_bool(j, "autoPause", false);
        box_event(p, b, "created");
        answer_box(p, a, 201, b);
    }
    json_free(j);
}

static void wake(struct plane *p, struct box *b, struct answer *a, bool resume, int64_t timeout)
{
    int64_t end = clock_wall_ms() + timeout * 1000;
    bool was = b->running;

    if (resume && was) {
        plane_refuse(p, a, 409, "sandbox is already running");
        return;
    }
    if (!was) {
        b->running = true;
        b->started_ms = clock_wall_ms();
        data_resume(b);
        box_event(p, b, "resumed");
    }
    if (!was || end > b->end_ms) /* connect only prolongs */
        set_end(b, end);
    answer_box(p, a, was ? 200 : 201, b);
}

static void prolong(struct plane *p, struct box *b, struct answer *a, bool set, int64_t s)
{
    int64_t end = clock_wall_ms() + (set || s > 15 ? s : 15) * 1000;

    if (!b->running) {
        plane_refuse(p, a, 409, "sandbox is not running");
        return;
    }
    if (s < 0) {
        plane_refuse(p, a, 400, "the timeout is out of range");
        return;
    }
    if (set || end > b->end_ms)
        set_end(b, end);
    box_event(p, b, "updated");
    a->status = 204;
}

static void act(struct plane *p, struct box *b, const char *verb, const struct request *r,
                struct answer *a)
{
    struct cJSON *j = r->len ? json_parse(r->body, r->len, NULL) : NULL;

    if (str_eq(verb, "pause") && !b->running) {
        plane_refuse(p, a, 409, "sandbox is already paused");
    } else if (str_eq(verb, "pause")) {
        pause(p, b);
        a->status = 204;
    } else if (str_eq(verb, "connect") || str_eq(verb, "resume")) {
        bool resume = str_eq(verb, "resume");
        wake(p, b, a, resume, json_i64(j, "timeout", resume ? 15 : 300));
    } else if (str_eq(verb, "timeout")) {
        prolong(p, b, a, true, json_i64(j, "timeout", -1));
    } else if (str_eq(verb, "refreshes")) {
        prolong(p, b, a, false, json_i64(j, "duration", 15));
    } else {
        plane_refuse(p, a, 404, "no such route");
    }
    json_free(j);
}

void box_route(struct plane *p, const char *rest, const struct request *r, struct answer *a,
               bool v2)
{
    size_t len = strcspn(rest, "/");
    const char *verb = rest[len] ? rest + len + 1 : "";
    bool get = str_eq(r->method, "GET"), post = str_eq(r->method, "POST");
    struct box *b = plane_find(p, rest, len);

    if (!b) {
        plane_refuse(p, a, 404, "sandbox not found");
    } else if (post && *verb && (!v2 || str_eq(verb, "connect"))) {
        act(p, b, verb, r, a);
    } else if (get && str_eq(verb, "logs")) {
        watch_logs(p, b, r, a, v2);
    } else if (get && str_eq(verb, "metrics") && !v2) {
        watch_metrics(p, b, r, a);
    } else if (!*verb && str_eq(r->method, "DELETE") && !v2) {
        box_kill(p, b);
        a->status = 204;
    } else if (!*verb && get && !v2) {
        answer_box(p, a, 200, b);
    } else {
        plane_refuse(p, a, 404, "no such route");
    }
}
