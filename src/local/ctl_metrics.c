/* Metrics on demand: each init measures its own sandbox; the answer goes out when
 * the last one spoke or its deadline passed. Those that did not are missing. */
#include "ctl_priv.h"
#include <cct/local/http_srv.h>
#include <cct/local/initcall.h>
#include <cct/local/provider.h>
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <stdlib.h>
#include <string.h>

#define METRICS_MS 3000
#define IDS_MAX 100u

struct gather {
    struct http_req *req;
    struct buf json; /* members so far */
    size_t open;     /* calls under way, plus one while they are started */
    bool many;       /* {"sandboxes":{id:m}} instead of [m] */
};

struct ask {
    struct gather *g;
    char id[24];
};

static void write_metric(struct buf *b, const struct cJSON *j)
{
    char time[40];
    int64_t ts = json_i64(j, "ts", clock_wall_ms() / 1000);
    clock_format_rfc3339(time, sizeof(time), ts * 1000);
    struct jw w;
    jw_init(&w, b);
    jw_obj(&w, NULL);
    jw_str(&w, "timestamp", time);
    jw_i64(&w, "timestampUnix", ts);
    jw_i64(&w, "cpuCount", json_i64(j, "cpu_count", PROV_CPU));
    jw_num(&w, "cpuUsedPct", json_num(j, "cpu_used_pct", 0));
    jw_i64(&w, "memUsed", json_i64(j, "mem_used", 0));
    jw_i64(&w, "memTotal", json_i64(j, "mem_total", 0));
    jw_i64(&w, "memCache", json_i64(j, "mem_cache", 0));
    jw_i64(&w, "diskUsed", json_i64(j, "disk_used", 0));
    jw_i64(&w, "diskTotal", json_i64(j, "disk_total", 0));
    jw_end(&w);
}

static void one_less(struct gather *g)
{
    if (--g->open > 0)
        return;
    struct buf all = BUF_INIT;
    buf_addf(&all, g->many ? "{\"sandboxes\":{%s}}" : "[%s]", buf_str(&g->json));
    http_reply(g->req, 200, all.p, all.len);
    buf_release(&all);
    buf_release(&g->json);
    free(g);
}

static void on_answer(void *arg, int status, const char *body, size_t len)
{
    struct ask *a = arg;
    struct gather *g = a->g;
    struct cJSON *j = status == 200 ? json_parse(body, len, NULL) : NULL;
    if (j) {
        if (g->json.len > 0)
            buf_addc(&g->json, ',');
        if (g->many)
            buf_addf(&g->json, "\"%s\":", a->id);
        write_metric(&g->json, j);
        json_free(j);
    }
    free(a);
    one_less(g);
}

static struct gather *gather_new(struct http_req *r, bool many)
{
    struct gather *g = xcalloc(1, sizeof(*g));
    g->req = r;
    g->many = many;
    g->open = 1;
    buf_init(&g->json, 0);
    return g;
}

static void ask_init(struct gather *g, const struct sbox *b)
{
    if (b->rec.state != SBOX_RUNNING)
        return; /* nothing runs, nothing to measure */
    struct ask *a = xcalloc(1, sizeof(*a));
    a->g = g;
    str_copy(a->id, sizeof(a->id), b->rec.id);
    g->open++;
    initcall_start(b->p->base, b->rec.sock, b->rec.token, "GET", "/metrics", NULL, METRICS_MS,
                   on_answer, a);
}

void ctl_metrics_one(struct ctl_call *c)
{
    struct gather *g = gather_new(c->r, false);
    ask_init(g, c->b);
    one_less(g);
}

/* The ids are checked: answer when all of them spoke. */
static void ask_all(struct ctl_call *c, const char *ids)
{
    struct gather *g = gather_new(c->r, true);
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
