/* The control plane itself: sandboxes in memory, and the routes about them. */
#include "data.h"
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* splitmix64: the same seed gives the same run everywhere. */
uint64_t plane_random(struct plane *p)
{
    uint64_t z = (p->seed += 0x9E3779B97F4A7C15u);

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

void plane_init(struct plane *p)
{
    *p = (struct plane){.page = 100, .streams = 1000, .seed = 1, .start_ms = clock_mono_ms()};
}

static void box_free(struct box *b)
{
    data_free(b->data);
    free(b->template_id);
    free(b->meta);
    free(b->env);
    free(b);
}

void plane_release(struct plane *p)
{
    for (size_t i = 0; i < p->boxes.n; i++)
        box_free(p->boxes.v[i]);
    ARR_RELEASE(&p->boxes);
    free(p->key);
}

static struct box *box_new(struct plane *p, const char *template_id, int64_t timeout_s)
{
    static const char set[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    struct box *b = *ARR_PUSH(&p->boxes) = xcalloc(1, sizeof(*b));

    b->id[0] = 'i';
    for (int i = 1; i <= 20; i++)
        b->id[i] = set[plane_random(p) % 36];
    b->template_id = xstrdup(template_id);
    b->running = true;
    b->started_ms = clock_wall_ms();
    b->end_ms = b->started_ms + timeout_s * 1000;
    return b;
}

void plane_fill(struct plane *p, int64_t running, int64_t paused)
{
    for (size_t i = 0; i < p->boxes.n; i++)
        box_free(p->boxes.v[i]);
    ARR_CLEAR(&p->boxes);
    for (int64_t i = 0; i < running + paused; i++)
        box_new(p, "claude", 3600)->running = i < running;
}

void plane_add(struct plane *p, int64_t n, const char *meta)
{
    while (n-- > 0)
        box_new(p, "claude", 3600)->meta = xstrdup(meta);
}

void plane_come_back(struct plane *p, const char *id, int64_t ms)
{
    for (size_t i = 0; i < p->boxes.n; i++)
        if (p->boxes.v[i]->gone && str_eq(p->boxes.v[i]->id, id))
            p->boxes.v[i]->back_at = clock_mono_ms() + ms;
}

void plane_revive(struct plane *p)
{
    for (size_t i = 0; i < p->boxes.n; i++) {
        struct box *b = p->boxes.v[i];
        if (b->back_at && b->back_at <= clock_mono_ms()) {
            b->gone = false;
            b->back_at = 0;
        }
    }
}

struct box *plane_find(struct plane *p, const char *id, size_t len)
{
    for (size_t i = 0; i < p->boxes.n; i++)
        if (!p->boxes.v[i]->gone && strlen(p->boxes.v[i]->id) == len &&
            memcmp(p->boxes.v[i]->id, id, len) == 0)
            return p->boxes.v[i];
    return NULL;
}

static void refuse(struct plane *p, struct answer *a, int status, const char *message)
{
    a->status = status;
    if (p->no_code)
        buf_addf(&a->body, "{\"message\":\"%s\"}", message);
    else
        buf_addf(&a->body, "{\"code\":%d,\"message\":\"%s\"}", status, message);
}

static void put_box(struct buf *b, const struct box *x, bool detail)
{
    char from[32], to[32];

    clock_format_rfc3339(from, sizeof(from), x->started_ms);
    clock_format_rfc3339(to, sizeof(to), x->end_ms);
    buf_addf(b,
             "{\"templateID\":\"%s\",\"sandboxID\":\"%s\",\"clientID\":\"0000aaaa\",\"alias\":"
             "\"%s\",\"startedAt\":\"%s\",\"endAt\":\"%s\",\"cpuCount\":2,\"memoryMB\":1024,"
             "\"diskSizeMB\":1024,\"state\":\"%s\",\"envdVersion\":\"0.6.13\"",
             x->template_id, x->id, x->template_id, from, to,
             x->running ? "running" : "paused");
    if (x->meta)
        buf_addf(b, ",\"metadata\":%s", x->meta);
    if (detail)
        buf_addf(b, ",\"envdAccessToken\":\"ea_%s\",\"domain\":null", x->id);
    buf_addc(b, '}');
}

static bool wanted(const struct box *b, const char *state)
{
    return !b->gone && (!*state || strstr(state, b->running ? "running" : "paused"));
}

/* Index of the first row of a page. The cursor is the id of the last row given, or,
 * as bad servers do, a count of rows: that one skips rows when earlier ones were
 * deleted in between. */
static size_t page_start(struct plane *p, const char *token, const char *state)
{
    int64_t skip;

    if (!*token)
        return 0;
    for (size_t i = 0; !p->offset_cursor && i < p->boxes.n; i++)
        if (str_eq(p->boxes.v[i]->id, token))
            return i + 1;
    if (!p->offset_cursor || !str_to_i64(token, 0, INT64_MAX, &skip))
        return p->boxes.n;
    for (size_t i = 0; i < p->boxes.n; i++)
        if (wanted(p->boxes.v[i], state) && skip-- == 0)
            return i;
    return p->boxes.n;
}

static int64_t count(const struct plane *p, bool running)
{
    int64_t n = 0;

    for (size_t i = 0; i < p->boxes.n; i++)
        n += !p->boxes.v[i]->gone && p->boxes.v[i]->running == running;
    return n;
}

static void list(struct plane *p, const char *query, struct answer *a)
{
    char state[64], token[64], text[16];
    int64_t limit = p->page, asked = p->page, before = 0, given = 0;
    const struct box *last = NULL;

    query_value(query, "state", state, sizeof(state));
    query_value(query, "nextToken", token, sizeof(token));
    query_value(query, "limit", text, sizeof(text));
    if (*text && !str_to_i64(text, 1, 100, &asked)) {
        refuse(p, a, 400, "limit out of range");
        return;
    }
    limit = asked < limit ? asked : limit;
    str_to_i64(token, 0, INT64_MAX, &before);
    a->status = 200;
    buf_addf(&a->head, "X-Total-Running: %lld\r\n", (long long)count(p, true));
    buf_addc(&a->body, '[');
    for (size_t i = page_start(p, token, state); i < p->boxes.n; i++) {
        const struct box *b = p->boxes.v[i];
        if (!wanted(b, state))
            continue;
        if (given == limit && p->offset_cursor)
            buf_addf(&a->head, "X-Next-Token: %lld\r\n", (long long)(before + given));
        else if (given == limit)
            buf_addf(&a->head, "X-Next-Token: %s\r\n", last->id);
        if (given == limit)
            break;
        if (given++)
            buf_addc(&a->body, ',');
        put_box(&a->body, b, false);
        last = b;
    }
    buf_addc(&a->body, ']');
}

static void old_list(struct plane *p, struct answer *a)
{
    const char *gap = "";

    a->status = 200;
    buf_addc(&a->body, '[');
    for (size_t i = 0; i < p->boxes.n; i++) {
        if (p->boxes.v[i]->gone || !p->boxes.v[i]->running)
            continue;
        buf_adds(&a->body, gap);
        put_box(&a->body, p->boxes.v[i], false);
        gap = ",";
    }
    buf_addc(&a->body, ']');
}

static void create(struct plane *p, const struct request *r, struct answer *a)
{
    struct cJSON *j = json_parse(r->body, r->len, NULL);
    const char *template_id = json_str(j, "templateID", NULL);
    int64_t timeout = json_i64(j, "timeout", 15);
    struct box *b;

    if (!template_id || timeout <= 0) {
        refuse(p, a, 400, "templateID and a timeout above 0 are needed");
    } else if (p->cap && count(p, true) >= p->cap) {
        refuse(p, a, 429, "you have reached the maximum number of concurrent sandboxes");
    } else {
        b = box_new(p, template_id, timeout);
        if (json_is_object(json_get(j, "metadata")))
            b->meta = json_text(json_get(j, "metadata"));
        if (json_is_object(json_get(j, "envVars")))
            b->env = json_text(json_get(j, "envVars"));
        b->auto_resume = json_bool(json_get(j, "autoResume"), "enabled", false);
        a->status = 201;
        put_box(&a->body, b, true);
    }
    json_free(j);
}

static void set_end(struct box *b, const struct request *r, const char *name)
{
    struct cJSON *j = r->len ? json_parse(r->body, r->len, NULL) : NULL;

    b->end_ms = clock_wall_ms() + 1000 * json_i64(j, name, 300);
    json_free(j);
}

static void act(struct plane *p, struct box *b, const char *verb, const struct request *r,
                struct answer *a)
{
    if (str_eq(verb, "pause")) {
        if (!b->running) {
            refuse(p, a, 409, "sandbox is already paused");
            return;
        }
        b->running = false;
        data_pause(b);
        b->end_ms = clock_wall_ms();
        a->status = 204;
    } else if (str_eq(verb, "connect") || str_eq(verb, "resume")) {
        if (str_eq(verb, "resume") && b->running) {
            refuse(p, a, 409, "sandbox is already running");
            return;
        }
        a->status = b->running ? 200 : 201;
        if (!b->running)
            data_resume(b);
        b->running = true;
        set_end(b, r, "timeout");
        put_box(&a->body, b, true);
    } else if (str_eq(verb, "timeout") || str_eq(verb, "refreshes")) {
        if (!b->running) {
            refuse(p, a, 409, "sandbox is not running");
            return;
        }
        set_end(b, r, str_eq(verb, "timeout") ? "timeout" : "duration");
        a->status = 204;
    } else {
        refuse(p, a, 404, "no such route");
    }
}

static void one(struct plane *p, const char *rest, const struct request *r, struct answer *a)
{
    size_t len = strcspn(rest, "/");
    struct box *b = plane_find(p, rest, len);

    if (!b) {
        refuse(p, a, 404, "sandbox not found");
    } else if (rest[len] == '/' && str_eq(r->method, "POST")) {
        act(p, b, rest + len + 1, r, a);
    } else if (rest[len] == '\0' && str_eq(r->method, "DELETE")) {
        b->gone = true;
        data_free(b->data);
        b->data = NULL;
        a->status = 204;
    } else if (rest[len] == '\0' && str_eq(r->method, "GET")) {
        a->status = 200;
        put_box(&a->body, b, true);
    } else {
        refuse(p, a, 404, "no such route");
    }
}

void plane_route(struct plane *p, const struct request *r, struct answer *a)
{
    bool v2 = str_starts(r->path, "/v2/sandboxes"), get = str_eq(r->method, "GET");
    const char *rest = r->path + (v2 ? 13 : 10);
    char key[256];

    if (str_eq(r->path, "/health")) {
        a->status = 204;
    } else if (!header_value(r->head, "X-API-Key", key, sizeof(key)) ||
               (p->key && !str_eq(p->key, key))) {
        refuse(p, a, 401, "invalid API key");
    } else if ((!v2 && !str_starts(r->path, "/sandboxes")) || (v2 && p->no_v2)) {
        refuse(p, a, 404, "no such route");
    } else if (rest[0] == '\0' && str_eq(r->method, "POST")) {
        create(p, r, a);
    } else if (rest[0] == '\0' && get && v2) {
        list(p, r->query, a);
    } else if (rest[0] == '\0' && get) {
        old_list(p, a);
    } else if (rest[0] == '/') {
        one(p, rest + 1, r, a);
    } else {
        refuse(p, a, 404, "no such route");
    }
}
