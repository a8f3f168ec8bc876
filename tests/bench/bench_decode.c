/* Speed of the claude decoder over recordings; the floor is cJSON alone on the same
 * lines. MB/s in CPU time, the two in turn, medians. */
#include "../lib/bench.h"

#include <cJSON.h>
#include <cct/agent.h>
#include <cct/util/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIZE = 16 << 20, CHUNK = 32 << 10, PASSES = 7 };

static const char section[] = "decode";

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static size_t sink;
static struct buf json;

static void count(void *ctx, const struct agent_event *ev)
{
    (void)ctx;
    sink += ev->index;
}

static void write_json(void *ctx, const struct agent_event *ev)
{
    (void)ctx;
    buf_clear(&json);
    agent_event_to_json(ev, &json);
    sink += json.len;
}

static void decode(const struct buf *b, agent_event_fn fn)
{
    struct agent_dec *d = agent_dec_new(agent_adapter_find("claude"), 0, fn, NULL);

    for (size_t i = 0; i < b->len; i += CHUNK)
        agent_dec_feed(d, b->p + i, b->len - i < CHUNK ? b->len - i : CHUNK);
    agent_dec_free(d);
}

static void run_decode(const struct buf *b)
{
    decode(b, count);
}

static void run_json(const struct buf *b)
{
    decode(b, write_json);
}

static void run_cjson(const struct buf *b)
{
    for (const char *p = b->p, *nl; (nl = memchr(p, '\n', b->len - (size_t)(p - b->p)));
         p = nl + 1) {
        cJSON *j = cJSON_ParseWithLength(p, (size_t)(nl - p));
        sink += j != NULL;
        cJSON_Delete(j);
    }
}

static void pass(const struct buf *b, void (*fn)(const struct buf *b), struct bench_set *out)
{
    double t = now();
    fn(b);
    bench_add(out, (double)b->len / (now() - t) / 1e6);
}

static void report(const char *name, const char *how, const struct bench_set *floor,
                   const struct bench_set *ours, double bar)
{
    char what[64];
    snprintf(what, sizeof(what), "%s%s", name, how);
    bench_print(section, &(struct bench_row){what, "MB/s", floor, ours,
                                             bar > 0 ? BENCH_RATIO_MIN : BENCH_INFO, bar, false});
}

static void measure(const char *name)
{
    char path[256];
    struct buf b = BUF_INIT;
    struct bench_set cjson = {0}, events = {0}, texts = {0};
    size_t len;
    char *data;

    snprintf(path, sizeof(path), "tests/fixtures/recordings/claude-%s.jsonl", name);
    data = fs_read(path, SIZE, false, &len, NULL);
    if (!data || !len) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(1);
    }
    while (b.len < SIZE)
        buf_add(&b, data, len);
    for (int i = 0; i < bench_runs(PASSES); i++) {
        pass(&b, run_cjson, &cjson);
        pass(&b, run_decode, &events);
        pass(&b, run_json, &texts);
    }
    report(name, ": events (floor: cJSON)", &cjson, &events, 0.3);
    report(name, ": events and their JSON", &cjson, &texts, 0);
    free(data);
    buf_release(&b);
}

int main(void)
{
    measure("long-partial");
    measure("multiturn");
    measure("tool");
    measure("bigout");
    buf_release(&json);
    return sink == 0;
}
