/* A control plane that only lists, tells loads and deletes. */
#include "fakeapi.h"

#include "bench.h"
#include "miniserver.h"

#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fakeapi {
    struct fakeapi_opts o;
    struct mini *mini;
    pthread_mutex_t lock;
    bool *gone;
    int lists, loads;
    struct fakeapi_kill k;
    int64_t first_us;
    int64_t begun_ms; /* wall: when its sandboxes started */
};

void fakeapi_id(char *dst, size_t size, int i)
{
    snprintf(dst, size, "ibench%014d", i);
}

static void list(struct fakeapi *f, struct mini_conn *c)
{
    struct buf b = BUF_INIT;
    char start[40], end[40], id[32];
    int64_t begun = f->begun_ms, hour = 3600000;
    clock_format_rfc3339(start, sizeof(start), begun);
    clock_format_rfc3339(end, sizeof(end), f->o.end_at_ms ? f->o.end_at_ms : begun + hour);
    buf_addc(&b, '[');
    for (int i = 0; i < f->o.n; i++) {
        if (f->gone[i])
            continue;
        fakeapi_id(id, sizeof(id), i);
        buf_addf(&b, "%s{\"sandboxID\":\"%s\",\"templateID\":\"base\",\"alias\":\"base\","
                 "\"clientID\":\"c1\",\"startedAt\":\"%s\",\"endAt\":\"%s\",\"cpuCount\":2,"
                 "\"memoryMB\":512,\"diskSizeMB\":1024,\"state\":\"running\",\"metadata\":{},"
                 "\"envdVersion\":\"0.2.0\"}", b.len > 1 ? "," : "", id, start, end);
    }
    buf_addc(&b, ']');
    mini_wait(c, f->o.list_ms);
    mini_reply(c, 200, "", b.p);
    buf_release(&b);
    f->lists++;
}

/* How busy they are: never as at the last question. */
static void metrics(struct fakeapi *f, struct mini_conn *c)
{
    struct buf b = BUF_INIT;
    char id[32];
    int wave = f->loads++ % 10;
    buf_adds(&b, "{\"sandboxes\":{");
    for (int i = 0; i < f->o.n; i++) {
        if (f->gone[i])
            continue;
        fakeapi_id(id, sizeof(id), i);
        buf_addf(&b, "%s\"%s\":{\"timestampUnix\":%lld,\"cpuCount\":2,\"cpuUsedPct\":%d.5,"
                 "\"memUsed\":%d,\"memTotal\":536870912,\"diskUsed\":%d,"
                 "\"diskTotal\":1073741824}", b.p[b.len - 1] == '}' ? "," : "", id,
                 (long long)(clock_wall_ms() / 1000), 3 + 7 * wave, (100 + 20 * wave) << 20,
                 (100 + 30 * wave) << 20);
    }
    buf_adds(&b, "}}");
    mini_reply(c, 200, "", b.p);
    buf_release(&b);
}

/* The number in the id of "/sandboxes/ID", or -1. */
static int number_of(const struct fakeapi *f, const char *path)
{
    static const char head[] = "/sandboxes/ibench";
    int64_t i;
    bool ok = strncmp(path, head, sizeof(head) - 1) == 0 &&
              str_to_i64(path + sizeof(head) - 1, 0, f->o.n - 1, &i);
    return ok ? (int)i : -1;
}

static void drop(struct fakeapi *f, struct mini_conn *c, int i)
{
    int64_t now = bench_now_us();
    int span = f->o.delete_max_ms - f->o.delete_min_ms;
    int ms = f->o.delete_min_ms + (f->o.n > 1 ? span * i / (f->o.n - 1) : span);
    if (f->k.deletes++ == 0)
        f->first_us = now;
    f->k.spread_us = now - f->first_us;
    if (now + ms * 1000LL - f->first_us > f->k.total_us)
        f->k.total_us = now + ms * 1000LL - f->first_us;
    if (ms * 1000LL > f->k.slowest_us)
        f->k.slowest_us = ms * 1000LL;
    f->gone[i] = true;
    mini_wait(c, ms);
    mini_reply(c, 204, "", "");
}

static void handle(void *ctx, struct mini_conn *c, const struct mini_req *r)
{
    struct fakeapi *f = ctx;
    bool silent = f->o.list_ms < 0;
    int i = number_of(f, r->path);
    pthread_mutex_lock(&f->lock);
    if (silent)
        mini_wait(c, 3600000);
    else if (strcmp(r->method, "DELETE") == 0 && i >= 0 && !f->gone[i])
        drop(f, c, i);
    else if (strncmp(r->path, "/sandboxes/metrics?", 19) == 0)
        metrics(f, c);
    else if (strcmp(r->method, "GET") == 0 && strstr(r->path, "/sandboxes"))
        list(f, c);
    else
        mini_reply(c, 404, "", "{\"code\":404,\"message\":\"not found\"}");
    pthread_mutex_unlock(&f->lock);
}

struct fakeapi *fakeapi_start(const struct fakeapi_opts *o)
{
    struct fakeapi *f = xcalloc(1, sizeof(*f));
    f->o = *o;
    f->begun_ms = clock_wall_ms() - 600000;
    f->gone = xcalloc((size_t)o->n + 1, sizeof(*f->gone));
    pthread_mutex_init(&f->lock, NULL);
    f->mini = mini_start(handle, f);
    return f;
}

void fakeapi_stop(struct fakeapi *f)
{
    mini_stop(f->mini);
    pthread_mutex_destroy(&f->lock);
    free(f->gone);
    free(f);
}

int fakeapi_port(const struct fakeapi *f)
{
    return mini_port(f->mini);
}

void fakeapi_reset(struct fakeapi *f)
{
    pthread_mutex_lock(&f->lock);
    memset(f->gone, 0, (size_t)f->o.n * sizeof(*f->gone));
    f->k = (struct fakeapi_kill){0};
    pthread_mutex_unlock(&f->lock);
}

int fakeapi_lists(struct fakeapi *f)
{
    pthread_mutex_lock(&f->lock);
    int n = f->lists;
    pthread_mutex_unlock(&f->lock);
    return n;
}

int fakeapi_loads(struct fakeapi *f)
{
    pthread_mutex_lock(&f->lock);
    int n = f->loads;
    pthread_mutex_unlock(&f->lock);
    return n;
}

struct fakeapi_kill fakeapi_deletes(struct fakeapi *f)
{
    pthread_mutex_lock(&f->lock);
    struct fakeapi_kill k = f->k;
    for (int i = 0; i < f->o.n; i++)
        k.left += !f->gone[i];
    pthread_mutex_unlock(&f->lock);
    return k;
}
