/* Metrics: each init keeps the samples of its own sandbox; the answer goes out when
 * the last one spoke or its deadline passed. Those that did not are missing. */
#include "ctl_priv.h"
#include <cct/local/http_srv.h>
#include <cct/local/initcall.h>
#include <cct/local/provider.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define METRICS_MS 3000
#define SAMPLE_S 5 /* between two samples as they are taken */
#define IDS_MAX 100u

/* The columns of a sample as the init sends it (init.h). */
enum { TS, CPU_PCT, CPUS, MEM_USED, MEM_TOTAL, MEM_CACHE, DISK_USED, DISK_TOTAL, COLUMNS };

static bool read_sample(const struct cJSON *row, double v[COLUMNS])
{
    int n = 0;
    for (const struct cJSON *c = json_first(row); c && n < COLUMNS; c = json_next(c))
        v[n++] = cJSON_IsNumber(c) ? c->valuedouble : 0;
    return n == COLUMNS;
}

static void write_sample(struct jw *w, const char *name, const double v[COLUMNS])
{
    jw_obj(w, name);
    ctl_write_time(w, "timestamp", (int64_t)v[TS] * 1000);
    jw_i64(w, "timestampUnix", (int64_t)v[TS]);
    jw_i64(w, "cpuCount", (int64_t)v[CPUS]);
    jw_num(w, "cpuUsedPct", v[CPU_PCT]);
    jw_i64(w, "memUsed", (int64_t)v[MEM_USED]);
    jw_i64(w, "memTotal", (int64_t)v[MEM_TOTAL]);
    jw_i64(w, "memCache", (int64_t)v[MEM_CACHE]);
    jw_i64(w, "diskUsed", (int64_t)v[DISK_USED]);
    jw_i64(w, "diskTotal", (int64_t)v[DISK_TOTAL]);
    jw_end(w);
}

void ctl_metrics_thin(struct jw *w, const struct cJSON *samples, int64_t step)
{
    double v[COLUMNS], sum[COLUMNS] = {0};
    int n = 0;
    for (const struct cJSON *row = json_first(samples); row; row = json_next(row)) {
        if (!read_sample(row, v))
            continue;
        for (int i = 0; i < COLUMNS; i++) /* the mean, but of the last one's time */
            sum[i] = i == TS ? v[TS] : sum[i] + v[i];
        n++;
        const struct cJSON *next = json_next(row);
        double ahead[COLUMNS];
        bool same = next && step > SAMPLE_S && read_sample(next, ahead) &&
                    (int64_t)ahead[TS] / step == (int64_t)v[TS] / step;
        if (same)
            continue;
        for (int i = TS + 1; i < COLUMNS; i++)
            sum[i] /= n;
        write_sample(w, NULL, sum);
        memset(sum, 0, sizeof(sum));
        n = 0;
    }
}

/* --- of one -------------------------------------------------------------------- */

struct one {
    struct http_req *req;
    int64_t step;
};

static void on_samples(void *arg, int status, const char *body, size_t len)
{
    struct one *o = arg;
    struct cJSON *j = status == 200 ? json_parse(body, len, NULL) : NULL;
    struct buf out = BUF_INIT;
    struct jw w;
    jw_init(&w, &out);
    jw_arr(&w, NULL);
    ctl_metrics_thin(&w, json_get(j, "samples"), o->step);
    jw_end(&w);
    ctl_reply_buf(o->req, 200, &out);
    json_free(j);
    free(o);
}

void ctl_metrics_one(struct ctl_call *c)
{
    struct ctl_span span;
    char path[96];
    if (!ctl_take_span(c, c->b->rec.started_ms / 1000, &span))
        return;
    char *start = ctl_query_get(c->r->query, "start");
    int64_t from = start ? span.start : 0; /* its whole life, pauses and all */
    free(start);
    struct one *o = xcalloc(1, sizeof(*o));
    o->req = c->r;
    o->step = ctl_span_step(&span);
    snprintf(path, sizeof(path), "/cc/metrics?start=%lld&end=%lld", (long long)from,
             (long long)span.end);
    initcall_start(c->p->base, c->b->rec.sock, c->b->rec.token, "GET", path, NULL, METRICS_MS,
                   on_samples, o);
}

/* --- the last ones of many ------------------------------------------------------ */

struct gather {
    struct http_req *req;
    struct buf json; /* members so far */
    size_t open;     /* calls under way, plus one while they are started */
};

struct ask {
    struct gather *g;
    char id[24];
};

static void one_less(struct gather *g)
{
    if (--g->open > 0)
        return;
    struct buf all = BUF_INIT;
    buf_addf(&all, "{\"sandboxes\":{%s}}", buf_str(&g->json));
    ctl_reply_buf(g->req, 200, &all);
    buf_release(&g->json);
    free(g);
}

static void on_latest(void *arg, int status, const char *body, size_t len)
{
    struct ask *a = arg;
    struct gather *g = a->g;
    struct cJSON *j = status == 200 ? json_parse(body, len, NULL) : NULL;
    double v[COLUMNS];
    if (read_sample(json_first(json_get(j, "samples")), v)) {
        struct jw w;
        if (g->json.len > 0)
            buf_addc(&g->json, ',');
        buf_addf(&g->json, "\"%s\":", a->id);
        jw_init(&w, &g->json);
        write_sample(&w, NULL, v);
    }
    json_free(j);
    free(a);
    one_less(g);
}

static void ask_init(struct gather *g, const struct sbox *b)
{
    if (b->rec.state != SBOX_RUNNING)
        return; /* nothing runs, nothing to measure */
    struct ask *a = xcalloc(1, sizeof(*a));
    a->g = g;
    str_copy(a->id, sizeof(a->id), b->rec.id);
    g->open++;
    initcall_start(b->p->base, b->rec.sock, b->rec.token, "GET", "/cc/metrics?latest=1", NULL,
                   METRICS_MS, on_latest, a);
}

/* The ids are checked: answer when all of them spoke. */
static void ask_all(struct ctl_call *c, const char *ids)
{
    struct gather *g = xcalloc(1, sizeof(*g));
    g->req = c->r;
    g->open = 1;
    buf_init(&g->json, 0);
    while (*ids) {
        size_t len = strcspn(ids, ",");
        char *id = xstrndup(ids, len);
        const struct sbox *b = sbox_find(c->p, id);
        free(id);
        if (b)
            ask_init(g, b);
        ids += len;
        ids += *ids == ',';
    }
    one_less(g);
}

void ctl_metrics_many(struct ctl_call *c)
{
    char *ids = ctl_query_get(c->r->query, "sandbox_ids");
    size_t n = 1;
    for (const char *p = ids ? ids : ""; *p; p++)
        n += *p == ',';
    if (!ids || !*ids || n > IDS_MAX)
        http_reply_error(c->r, 400, "sandbox_ids must name 1 to %u sandboxes", IDS_MAX);
    else
        ask_all(c, ids);
    free(ids);
}
