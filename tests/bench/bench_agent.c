/* Speed of the claude decoder over recordings, against cJSON alone on the same lines:
 * MB/s in CPU time, best of a few passes, and the ratio. */
#include <cJSON.h>
#include <cct/agent.h>
#include <cct/util/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIZE = 16 << 20, CHUNK = 32 << 10, PASSES = 5 };

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

static double best_of(const struct buf *b, void (*fn)(const struct buf *b))
{
    double best = 1e9;

    for (int i = 0; i < PASSES; i++) {
        double t = now();
        fn(b);
        t = now() - t;
        if (t < best)
            best = t;
    }
    return (double)b->len / best / 1e6;
}

static void measure(const char *name)
{
    char path[256];
    struct buf b = BUF_INIT;
    size_t len;
    char *data;
    double cjson, dec, ser;

    snprintf(path, sizeof(path), "tests/fixtures/recordings/claude-%s.jsonl", name);
    data = fs_read(path, SIZE, false, &len, NULL);
    if (!data || !len) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(1);
    }
    while (b.len < SIZE)
        buf_add(&b, data, len);
    cjson = best_of(&b, run_cjson);
    dec = best_of(&b, run_decode);
    ser = best_of(&b, run_json);
    printf(
        "%-14s cJSON alone %4.0f MB/s, decoded %4.0f MB/s (%.2f), with event JSON %4.0f MB/s\n",
        name, cjson, dec, dec / cjson, ser);
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
