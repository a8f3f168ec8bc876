/* Stream-json of an agent at full speed, parsed, stored and shown by the whole program; the
 * floor is cJSON alone on the same lines. */
#include "../lib/bench.h"
#include "../lib/flood_run.h"

#include <cJSON.h>
#include <cct/util/buf.h>
#include <cct/util/fs.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIZE = 32 << 20 };

static const char section[] = "parse";
static const char mark[] = "Th3-l4st|0f[th3m]4ll";
static const char last_line[] =
    "{\"type\":\"assistant\",\"message\":{\"id\":\"msg_last\",\"type\":\"message\",\"role\":"
    "\"assistant\",\"model\":\"m\",\"content\":[{\"type\":\"text\",\"text\":\"%s\"}],\"usage\":"
    "{\"input_tokens\":1,\"output_tokens\":1}},\"parent_tool_use_id\":null,\"session_id\":\"s\"}\n";

/* Recordings, over and over again. */
static void make_text(struct buf *b)
{
    static const char *const names[] = {"long-partial", "multiturn", "tool", "bigout"};

    buf_init(b, 0);
    for (int i = 0; b->len < SIZE; i = (i + 1) % 4) {
        char *path = xasprintf("tests/fixtures/recordings/claude-%s.jsonl", names[i]);
        size_t len = 0;
        char *data = fs_read(path, SIZE, false, &len, NULL);

        if (!data || !len)
            die("cannot read '%s'", path);
        buf_add(b, data, len);
        free(data);
        free(path);
    }
    buf_addf(b, last_line, mark);
}

static size_t sink;

static double cpu_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void cjson_alone(const struct buf *b, struct bench_set *wall, struct bench_set *cpu)
{
    int64_t t = bench_now_us();
    double c = cpu_us();

    for (const char *p = b->p, *nl; (nl = memchr(p, '\n', b->len - (size_t)(p - b->p)));
         p = nl + 1) {
        cJSON *j = cJSON_ParseWithLength(p, (size_t)(nl - p));

        sink += j != NULL;
        cJSON_Delete(j);
    }
    bench_add(wall, (double)b->len / (double)(bench_now_us() - t));
    bench_add(cpu, (double)b->len / (cpu_us() - c));
}

int main(void)
{
    static struct bench_set cjson, ours, cjson_cpu, ours_cpu;
    struct buf text;

    make_text(&text);
    for (int i = 0; i < bench_runs(5); i++) {
        struct flood_run r;

        cjson_alone(&text, &cjson, &cjson_cpu);
        if (!flood_run(&r, text.p, text.len, "claude", mark))
            continue;
        bench_add(&ours, r.mb_s);
        bench_add(&ours_cpu, r.cpu_mb_s);
    }
    bench_print(section, &(struct bench_row){"stream-json, stored and shown (floor: cJSON)", "MB/s",
                                             &cjson, &ours, BENCH_RATIO_MIN, 0.3, true});
    bench_print(section, &(struct bench_row){"the same, goal", "MB/s", &cjson, &ours,
                                             BENCH_RATIO_MIN, 0.5, false});
    bench_print(section, &(struct bench_row){"the same, of CPU time of all threads", "MB/s",
                                             &cjson_cpu, &ours_cpu, BENCH_INFO, 0, false});
    buf_release(&text);
    return sink == 0;
}
