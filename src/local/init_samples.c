/* The ring of samples: one every 5 s for an hour. It is in the init, so a provider
 * that comes and goes loses nothing. */
#include "init_metrics.h"
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>

#define SAMPLE_S 5
#define SAMPLES (3600 / SAMPLE_S)

struct samples {
    struct event *timer;
    struct meter meter;
    size_t n; /* taken in all; the newest is at (n - 1) % SAMPLES */
    struct sample ring[SAMPLES];
};

static void take(struct envd *e, int64_t ts)
{
    struct samples *s = e->samples;
    struct sample *at = &s->ring[s->n++ % SAMPLES];
    envd_measure(e, &s->meter, at);
    if (ts >= 0)
        at->ts = ts;
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct envd *e = arg;
    (void)fd;
    (void)what;
    if (e->paused_mono == 0)
        take(e, -1);
    else
        e->samples->meter.mono = clock_mono_ms(); /* a pause is no idle time */
}

void envd_samples_start(struct envd *e)
{
    struct timeval tv = {SAMPLE_S, 0};
    e->disk = envd_disk_new(e);
    e->samples = xcalloc(1, sizeof(*e->samples));
    e->samples->timer = event_new(e->base, -1, EV_PERSIST, on_timer, e);
    if (e->samples->timer == NULL)
        die("libevent is out of memory");
    event_add(e->samples->timer, &tv);
    take(e, -1);
}

void envd_samples_stop(struct envd *e)
{
    envd_disk_free(e->disk);
    if (e->samples != NULL)
        event_free(e->samples->timer);
    free(e->samples);
    e->samples = NULL;
    e->disk = NULL;
}

static void write_sample(struct buf *b, const struct sample *s)
{
    buf_addf(b, "[%lld,%.2f,%lld,%lld,%lld,%lld,%lld,%lld]", (long long)s->ts, s->cpu_pct,
             (long long)s->cpus, (long long)s->mem_used, (long long)s->mem_total,
             (long long)s->mem_cache, (long long)s->disk_used, (long long)s->disk_total);
}

void envd_samples_get(struct envd *e, struct http_req *req)
{
    const struct samples *s = e->samples;
    int64_t start = envd_query_number(req, "start", 0),
            end = envd_query_number(req, "end", INT64_MAX);
    size_t first = s->n > SAMPLES ? s->n - SAMPLES : 0;
    if (envd_query_number(req, "latest", 0) == 1)
        first = s->n - 1;
    struct buf b = BUF_INIT;
    buf_adds(&b, "{\"samples\":[");
    bool comma = false;
    for (size_t i = first; i < s->n; i++) {
        const struct sample *at = &s->ring[i % SAMPLES];
        if (at->ts < start || at->ts > end)
            continue;
        if (comma)
            buf_addc(&b, ',');
        comma = true;
        write_sample(&b, at);
    }
    buf_adds(&b, "]}");
    envd_reply_json(req, 200, &b);
}

void envd_samples_take(struct envd *e, struct http_req *req)
{
    struct cJSON *j = json_parse(buf_str(&req->body), req->body.len, NULL);
    take(e, json_i64(j, "ts", -1));
    json_free(j);
    envd_reply_empty(req, 204);
}
