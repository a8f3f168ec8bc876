/* The control-plane client against the fake one: many sandboxes, slow answers, faults
 * of every kind at once, and a network that breaks and comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "../lib/faultproc.h"
#include "../lib/netbed.h"
#include <cct/e2b.h>
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOW = 60000, MAX = 1000 };

static struct netbed *bed;
static struct faultd *fake, *proxy;
static struct e2b *client;

static struct {
    char ids[MAX][24];
    size_t n, paused;
    int64_t total_running;
    struct err err;
} rows;
static struct {
    int ok, gone, failed;
    struct err last;
} kills;

static void open_client(void *ctx)
{
    struct e2b_account a = {.api_url = ctx, .domain = (char *)"e2b.app",
                            .key = secret_new("e2b_test_key", 12)};

    client = e2b_new(bed->net, &a);
    secret_free(a.key);
}

static void close_client(void *ctx)
{
    (void)ctx;
    e2b_free(client);
    client = NULL;
}

static void on_list(void *ctx, const struct e2b_result *r)
{
    (void)ctx;
    memset(&rows, 0, sizeof(rows));
    rows.err = r->err;
    rows.total_running = r->total_running;
    for (size_t i = 0; i < r->n && i < MAX; i++) {
        str_copy(rows.ids[i], sizeof(rows.ids[i]), r->v[i].sandbox_id);
        rows.paused += str_eq(r->v[i].state, "paused");
        rows.n++;
    }
    bed_tick(bed);
}

static void start_list(void *ctx)
{
    static const struct e2b_call_opts o = {.give_up_ms = 40000};

    (void)ctx;
    e2b_list(client, &o, on_list, NULL);
}

static void list(void)
{
    bed_reset(bed);
    bed_run(bed, start_list, NULL);
    assert_true(bed_wait(bed, 1, SLOW));
}

static void on_kill(void *ctx, const struct e2b_result *r)
{
    (void)ctx;
    if (r->err.code == 0)
        kills.ok++;
    else if (r->err.code == ERR_NOTFOUND)
        kills.gone++;
    else
        kills.failed++;
    if (r->err.code)
        kills.last = r->err;
    bed_tick(bed);
}

static int kill_give_up;

static void start_kills(void *ctx)
{
    struct e2b_call_opts o = {.urgent = true, .give_up_ms = kill_give_up};

    (void)ctx;
    for (size_t i = 0; i < rows.n; i++)
        e2b_kill(client, rows.ids[i], &o, on_kill, NULL);
}

static int64_t kill_all(int give_up)
{
    int64_t t0 = clock_mono_ms();

    memset(&kills, 0, sizeof(kills));
    kill_give_up = give_up;
    bed_reset(bed);
    bed_run(bed, start_kills, NULL);
    assert_true(bed_wait(bed, (int)rows.n, SLOW));
    return clock_mono_ms() - t0;
}

static int64_t counted(const char *name)
{
    char *text = faultd_http(fake, "GET", "/_faultd/log", NULL);
    struct cJSON *j = json_parse(text, strlen(text), NULL);
    int64_t n = json_i64(j, name, -1);

    json_free(j);
    free(text);
    return n;
}

static void test_pages(void **state)
{
    (void)state;
    assert_true(faultd_config(fake, "{\"reset\":true,\"sandboxes\":200,\"paused\":37}"));
    list();
    assert_int_equal(rows.err.code, 0);
    assert_int_equal(rows.n, 237);
    assert_int_equal(rows.paused, 37);
    assert_int_equal(rows.total_running, 200);
    assert_true(faultd_config(fake, "{\"v2\":false}"));
    list();
    assert_int_equal(rows.err.code, 0);
    assert_int_equal(rows.n, 200);
    assert_true(faultd_config(fake, "{\"v2\":true}"));
    bed_run(bed, close_client, NULL); /* it remembers for a while what the server lacks */
    bed_run(bed, open_client, (void *)(uintptr_t)faultd_url(fake));
}

static void test_kill_hundred(void **state)
{
    int64_t ms;

    (void)state;
    assert_true(faultd_config(fake, "{\"reset\":true,\"sandboxes\":80,\"paused\":20,"
                                    "\"delay\":[100,200],\"seed\":7}"));
    list();
    assert_int_equal(rows.n, 100);
    ms = kill_all(0);
    print_message("# 100 deletes, answers in 100..200 ms: %lld ms\n", (long long)ms);
    assert_int_equal(kills.ok, 100);
    assert_int_equal(counted("killed"), 100);
    assert_true(ms < 1500); /* one after another: 15 s */
    assert_true(faultd_config(fake, "{\"delay\":[0,0]}"));
}

static void test_fault_mix(void **state)
{
    (void)state;
    assert_true(faultd_config(
        fake, "{\"reset\":true,\"sandboxes\":60,\"paused\":0,\"rules\":["
              "{\"method\":\"DELETE\",\"times\":5,\"status\":500},"
              "{\"method\":\"DELETE\",\"times\":5,\"status\":429,\"retry_after\":\"1\"},"
              "{\"method\":\"DELETE\",\"times\":5,\"cut\":0},"
              "{\"method\":\"DELETE\",\"times\":5,\"cut\":20},"
              "{\"method\":\"DELETE\",\"times\":3,\"status\":404},"
              "{\"method\":\"DELETE\",\"times\":2,\"status\":400,\"body\":\"<html>\"}]}"));
    list();
    assert_int_equal(rows.n, 60);
    kill_all(20000);
    print_message("# %d killed, %d gone, %d failed: %s\n", kills.ok, kills.gone, kills.failed,
                  kills.last.text);
    assert_int_equal(kills.failed, 2);
    assert_int_equal(kills.ok + kills.gone, 58);
    list(); /* two refused, and those whose 404 was a lie */
    assert_in_range(rows.n, 2, 5);
    assert_int_equal(rows.n, counted("running"));
}

static void test_false_204(void **state)
{
    (void)state;
    assert_true(faultd_config(fake, "{\"reset\":true,\"sandboxes\":3,\"rules\":["
                                    "{\"method\":\"DELETE\",\"times\":1,\"status\":204}]}"));
    list();
    kill_all(0);
    assert_int_equal(kills.ok, 3);
    list();
    assert_int_equal(rows.n, 1);
}

static void test_network_cut(void **state)
{
    int64_t t0;

    (void)state;
    assert_true(faultd_config(fake, "{\"reset\":true,\"sandboxes\":5,\"paused\":0}"));
    bed_run(bed, close_client, NULL);
    bed_run(bed, open_client, (void *)(uintptr_t)faultd_url(proxy));
    list();
    assert_int_equal(rows.n, 5);
    assert_true(faultd_command(proxy, "down 2500", NULL, 0));
    t0 = clock_mono_ms();
    list(); /* tries again until the network is back */
    assert_int_equal(rows.err.code, 0);
    assert_int_equal(rows.n, 5);
    assert_in_range(clock_mono_ms() - t0, 1500, 20000);
    assert_true(faultd_command(proxy, "hole 700", NULL, 0));
    list();
    assert_int_equal(rows.n, 5);
    assert_true(faultd_command(proxy, "delay 50", NULL, 0));
    t0 = clock_mono_ms();
    list();
    assert_int_equal(rows.n, 5);
    assert_true(clock_mono_ms() - t0 >= 100);
    assert_false(faultd_command(proxy, "nonsense", NULL, 0));
}

static int begin(void **state)
{
    (void)state;
    fake = faultd_start(NULL);
    proxy = faultd_proxy(faultd_url(fake));
    bed = bed_new(NULL);
    bed_run(bed, open_client, (void *)(uintptr_t)faultd_url(fake));
    return 0;
}

static int end(void **state)
{
    (void)state;
    bed_run(bed, close_client, NULL);
    bed_free(bed);
    faultd_stop(proxy);
    faultd_stop(fake);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages),     cmocka_unit_test(test_kill_hundred),
        cmocka_unit_test(test_fault_mix), cmocka_unit_test(test_false_204),
        cmocka_unit_test(test_network_cut),
    };

    return cmocka_run_group_tests_name("faultd", tests, begin, end);
}
