/* The net thread with requests beside each other: cancels, the cap of a host, pauses, timers, and
 * its end while some are open. */
#include "../lib/netprobe.h"

#include <cct/util/clock.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_cancel(void **state)
{
    struct probe inside = {.path = "/stall", .cancel_on_data = true};
    struct probe other = {.path = "/ok"};

    (void)state;
    netprobe_fetch(&inside);
    netprobe_fetch(&other);
    assert_int_equal(inside.done, 0);
    assert_int_equal(inside.pieces, 1);
    assert_int_equal(other.r.status, 200);
}

static void cancel_before_start(void *ctx)
{
    struct probe *p = ctx;

    netprobe_submit(p);
    net_cancel(netprobe.bed->net, p->id);
    net_cancel(netprobe.bed->net, p->id);
    net_cancel(netprobe.bed->net, 987654321);
    bed_tick(netprobe.bed);
}

static void test_cancel_early(void **state)
{
    struct probe p = {.path = "/ok"}, other = {.path = "/ok"};
    int before = mini_requests(netprobe.srv);

    (void)state;
    bed_reset(netprobe.bed);
    bed_run(netprobe.bed, cancel_before_start, &p);
    netprobe_fetch(&other);
    assert_int_equal(p.done, 0);
    assert_int_equal(mini_requests(netprobe.srv), before + 1);
}

static struct probe many[200];

static void submit_many(void *ctx)
{
    (void)ctx;
    for (int i = 0; i < 200; i++)
        netprobe_submit(&many[i]);
}

static void test_parallel(void **state)
{
    int64_t t0 = clock_mono_ms();

    (void)state;
    for (int i = 0; i < 200; i++)
        many[i] = (struct probe){.path = "/late", .stream = true};
    bed_reset(netprobe.bed);
    bed_run(netprobe.bed, submit_many, NULL);
    assert_true(bed_wait(netprobe.bed, 200, NETPROBE_SLOW));
    for (int i = 0; i < 200; i++) {
        assert_int_equal(many[i].done, 1);
        assert_int_equal(many[i].r.status, 200);
    }
    assert_true(clock_mono_ms() - t0 < 10000); /* one after another: 20 s */
}

static void test_host_cap_and_urgent(void **state)
{
    struct probe quick = {.path = "/ok", .urgent = true};
    int before;

    (void)state;
    for (int i = 0; i < 200; i++)
        many[i] = (struct probe){.path = "/hang"};
    bed_reset(netprobe.bed);
    before = mini_accepted(netprobe.srv);
    bed_run(netprobe.bed, submit_many, NULL);
    bed_run(netprobe.bed, netprobe_submit, &quick); /* 64 connections hang, 136 requests wait */
    assert_true(bed_wait(netprobe.bed, 1, NETPROBE_SLOW));
    assert_int_equal(quick.r.status, 200);
    assert_true(mini_accepted(netprobe.srv) - before <= 64 + 1);
    for (int i = 0; i < 200; i++) {
        struct probe *p = &many[i];
        assert_int_equal(p->done, 0);
    }
}

static void cancel_many(void *ctx)
{
    (void)ctx;
    for (int i = 0; i < 200; i++)
        net_cancel(netprobe.bed->net, many[i].id);
}

static void test_cancel_many(void **state)
{
    struct probe p = {.path = "/ok"};

    (void)state;
    bed_run(netprobe.bed, cancel_many, NULL);
    netprobe_fetch(&p);
    assert_int_equal(p.r.status, 200);
}

struct pausing {
    struct probe p;
    bool paused;
    size_t at_pause;
};

static bool pause_on_data(void *ctx, const char *data, size_t len)
{
    struct pausing *p = ctx;

    (void)data;
    p->p.bytes += len;
    if (!p->paused) {
        p->paused = true;
        p->at_pause = p->p.bytes;
        net_pause(netprobe.bed->net, p->p.id, true);
        bed_tick(netprobe.bed);
    }
    return true;
}

static void submit_pausing(void *ctx)
{
    struct pausing *p = ctx;
    struct net_req *q = net_req_new("GET", mini_url(netprobe.srv, "/big"));

    q->idle_ms = 1000; /* a paused one is not dead */
    q->on_body = pause_on_data;
    q->on_done = netprobe_done;
    q->ctx = p;
    p->p.id = net_submit(netprobe.bed->net, q);
}

static void resume(void *ctx)
{
    struct pausing *p = ctx;

    net_pause(netprobe.bed->net, p->p.id, false);
}

static void nothing(void *ctx)
{
    (void)ctx;
}

static void tick_later(void *ctx)
{
    (void)ctx;
    bed_tick(netprobe.bed);
}

static void start_timer(void *ctx)
{
    (void)ctx;
    net_timer(netprobe.bed->net, 1400, tick_later, NULL);
}

static void test_pause(void **state)
{
    struct pausing p = {0};

    (void)state;
    bed_reset(netprobe.bed);
    bed_run(netprobe.bed, submit_pausing, &p);
    assert_true(bed_wait(netprobe.bed, 1, NETPROBE_SLOW));
    bed_run(netprobe.bed, start_timer, NULL);
    assert_true(bed_wait(netprobe.bed, 2, NETPROBE_SLOW));
    bed_run(netprobe.bed, nothing, NULL);
    assert_int_equal(p.p.bytes, p.at_pause); /* nothing came, and it is not dead */
    bed_run(netprobe.bed, resume, &p);
    assert_true(bed_wait(netprobe.bed, 3, NETPROBE_SLOW));
    assert_int_equal(p.p.r.err.code, 0);
    assert_int_equal(p.p.bytes, 8 << 20);
}

static void timer_tick(void *ctx)
{
    int *order = ctx;

    order[0]++;
    bed_tick(netprobe.bed);
}

static int fired[8];
static uint64_t victim;

static void cancel_victim(void *ctx)
{
    net_timer_cancel(netprobe.bed->net, victim);
    timer_tick(ctx);
}

static void start_timers(void *ctx)
{
    net_timer(netprobe.bed->net, 30, timer_tick, ctx);
    net_timer(netprobe.bed->net, 0, cancel_victim, ctx);
    victim = net_timer(netprobe.bed->net, 10, timer_tick, ctx);
    net_timer_cancel(netprobe.bed->net, 0);
    net_timer_cancel(netprobe.bed->net, 123456789);
}

static void test_timers(void **state)
{
    (void)state;
    bed_reset(netprobe.bed);
    bed_run(netprobe.bed, start_timers, fired);
    assert_true(bed_wait(netprobe.bed, 2, NETPROBE_SLOW));
    bed_reset(netprobe.bed);
    bed_run(netprobe.bed, start_timer, NULL);
    assert_true(bed_wait(netprobe.bed, 1, NETPROBE_SLOW));
    assert_int_equal(fired[0], 2);
    for (int i = 0; i < 1000; i++) {
        int64_t ms = net_backoff_ms(i % 12, 100, 5000);
        assert_in_range(ms, 75, 6250);
    }
}

static void test_stop_with_open(void **state)
{
    int64_t t0, took;

    (void)state;
    for (int i = 0; i < 200; i++)
        many[i] = (struct probe){.path = "/hang", .stream = i % 2};
    bed_run(netprobe.bed, submit_many, NULL);
    t0 = clock_mono_ms();
    bed_free(netprobe.bed);
    took = clock_mono_ms() - t0;
    netprobe.bed = bed_new(NULL);
    assert_true(took < 15000);
    for (int i = 0; i < 200; i++)
        assert_int_equal(many[i].done, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_cancel_early),
        cmocka_unit_test(test_parallel),
        cmocka_unit_test(test_host_cap_and_urgent),
        cmocka_unit_test(test_cancel_many),
        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_timers),
        cmocka_unit_test(test_stop_with_open),
    };
    int rc;

    netprobe_begin();
    rc = cmocka_run_group_tests_name("net_beside", tests, NULL, NULL);
    netprobe_end();
    return rc;
}
