/* The net thread in figures: from submit to the server and back, 200 and 1000 idle
 * streams, threads, descriptors and memory, and the rate of a process' output. */
#include "../lib/bench.h"
#include "../lib/miniserver.h"
#include "../lib/netbed.h"
#include "streamstat.h"
#include <cct/envd.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <cct/wire.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char section[] = "net";

enum { ROUNDS = 300, FLOOD_MB = 64, PIECE = 24 << 10 };

static struct mini *srv;
static struct netbed *bed;
static _Atomic int64_t arrived_us;
static struct buf flood_frame;

static int64_t now_us(clockid_t c)
{
    struct timespec t;

    clock_gettime(c, &t);
    return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static void handler(void *ctx, struct mini_conn *c, const struct mini_req *r)
{
    (void)ctx;
    if (str_eq(r->path, "/ping")) {
        atomic_store(&arrived_us, now_us(CLOCK_MONOTONIC));
        mini_reply(c, 204, "", "");
    } else if (str_eq(r->path, "/stream")) {
        mini_sendf(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n.\r\n");
    } else { /* a process that floods */
        size_t n = ((size_t)FLOOD_MB << 20) / PIECE;
        mini_sendf(c, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
        for (size_t i = 0; i < n; i++)
            mini_send(c, flood_frame.p, flood_frame.len);
        mini_send(c, "\2\0\0\0\2{}", 7);
        mini_close(c);
    }
}

static int64_t sent_us, done_us;

static void on_done(void *ctx, const struct net_result *r)
{
    (void)ctx;
    (void)r;
    done_us = now_us(CLOCK_MONOTONIC);
    bed_tick(bed);
}

static bool urgent;

static void ping(void *ctx)
{
    struct net_req *q = net_req_new("GET", mini_url(srv, "/ping"));

    (void)ctx;
    q->urgent = urgent;
    q->on_done = on_done;
    sent_us = now_us(CLOCK_MONOTONIC);
    net_submit(bed->net, q);
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static void say(const char *name, const char *what, const char *unit, double v)
{
    char text[96];

    snprintf(text, sizeof(text), "%s%s", name, what);
    bench_value(section, text, unit, v, BENCH_INFO, 0, false);
}

static void bench_ping(const char *name)
{
    static int64_t wire[ROUNDS], whole[ROUNDS];

    for (int i = 0; i < ROUNDS; i++) {
        bed_reset(bed);
        bed_run(bed, ping, NULL);
        if (!bed_wait(bed, 1, 10000))
            die("no answer");
        wire[i] = atomic_load(&arrived_us) - sent_us;
        whole[i] = done_us - sent_us;
    }
    qsort(wire, ROUNDS, sizeof(wire[0]), by_value);
    qsort(whole, ROUNDS, sizeof(whole[0]), by_value);
    say(name, ": to the server, p50", "us", (double)wire[ROUNDS / 2]);
    say(name, ": to the server, p99", "us", (double)wire[ROUNDS * 99 / 100]);
    say(name, ": to the answer, p50", "us", (double)whole[ROUNDS / 2]);
}

static bool on_piece(void *ctx, const char *data, size_t len)
{
    (void)ctx;
    (void)data;
    (void)len;
    bed_tick(bed);
    return true;
}

static void open_streams(void *ctx)
{
    for (int i = 0; i < *(int *)ctx; i++) {
        struct net_req *q = net_req_new("GET", mini_url(srv, "/stream"));
        q->stream = true;
        q->idle_ms = 60000;
        q->on_body = on_piece;
        net_submit(bed->net, q);
    }
}

static void idle_tick(void *ctx)
{
    (void)ctx;
    bed_tick(bed);
}

static void start_wait(void *ctx)
{
    (void)ctx;
    net_timer(bed->net, 2000, idle_tick, NULL);
}

static void bench_streams(int n)
{
    long rss = streamstat_kb();
    int64_t cpu, t0;

    bed_reset(bed);
    bed_run(bed, open_streams, &n);
    if (!bed_wait(bed, n, 30000))
        die("streams did not open");
    bed_reset(bed);
    bed_run(bed, start_wait, NULL); /* what a connect leaves behind runs out first */
    if (!bed_wait(bed, 1, 10000))
        die("no timer");
    bed_reset(bed);
    bed_run(bed, start_wait, NULL);
    cpu = now_us(CLOCK_PROCESS_CPUTIME_ID);
    t0 = now_us(CLOCK_MONOTONIC);
    if (!bed_wait(bed, 1, 10000))
        die("no timer");
    char name[64];
    snprintf(name, sizeof(name), "%d more idle streams", n);
    say(name, ": CPU with the test server", "ms/s",
        (double)(now_us(CLOCK_PROCESS_CPUTIME_ID) - cpu) * 1e3 /
            (double)(now_us(CLOCK_MONOTONIC) - t0));
    say(name, ": threads", "", (double)streamstat_field("Threads:"));
    say(name, ": descriptors of both sides", "", streamstat_fds());
    say(name, ": memory each, both sides", "kB", (double)(streamstat_kb() - rss) / n);
}

static struct envd *sandbox;
static size_t flooded;

static bool on_data(void *ctx, enum envd_stream s, const char *data, size_t len)
{
    (void)ctx;
    (void)s;
    (void)data;
    flooded += len;
    return true;
}

static void on_end(void *ctx, const struct envd_end *end)
{
    (void)ctx;
    (void)end;
    bed_tick(bed);
}

static void start_flood(void *ctx)
{
    char *url = mini_url(srv, "");
    struct envd_target t = {.base_url = url, .sandbox_id = "i1"};
    struct envd_proc_spec s = {.cmd = "yes"};
    struct envd_proc_cb cb = {.on_data = on_data, .on_end = on_end};

    (void)ctx;
    sandbox = envd_new(bed->net, &t);
    envd_start(sandbox, &s, &cb);
    free(url);
}

static int64_t net_cpu_us;

static void look_at_cpu(void *ctx)
{
    (void)ctx;
    net_cpu_us = now_us(CLOCK_THREAD_CPUTIME_ID) - net_cpu_us;
}

static void end_flood(void *ctx)
{
    (void)ctx;
    envd_free(sandbox);
}

static void bench_flood(void)
{
    char *raw = xcalloc(1, PIECE), *b64, *json;
    int64_t t0;

    memset(raw, 'x', PIECE);
    b64 = b64_encode(raw, PIECE);
    json = xasprintf("{\"event\":{\"data\":{\"stdout\":\"%s\"}}}", b64);
    wire_env_add(&flood_frame, 0, json, strlen(json));
    t0 = now_us(CLOCK_MONOTONIC);
    bed_reset(bed);
    bed_run(bed, look_at_cpu, NULL);
    bed_run(bed, start_flood, NULL);
    if (!bed_wait(bed, 1, 60000))
        die("the flood did not end");
    t0 = now_us(CLOCK_MONOTONIC) - t0;
    bed_run(bed, look_at_cpu, NULL);
    say("output of a process", ": decoded bytes", "MB/s", (double)flooded / (double)t0);
    say("output of a process", ": in a second of the net thread", "MB",
        (double)flooded / (double)net_cpu_us);
    bed_run(bed, end_flood, NULL);
    free(json);
    free(b64);
    free(raw);
    buf_release(&flood_frame);
}

int main(void)
{
    fs_raise_nofile();
    srv = mini_start(handler, NULL);
    bed = bed_new(NULL);
    bench_ping("requests");
    urgent = true;
    bench_ping("urgent requests");
    bench_streams(200);
    bench_streams(800);
    bench_ping("urgent, 1000 streams open");
    bench_flood();
    bed_free(bed);
    mini_stop(srv);
    return 0;
}
