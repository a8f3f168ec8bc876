/* Following a live agent when something else is amiss: its sandbox is killed under the
 * stream, or the screen does not keep up. */
#include "../lib/chaosbed.h"
#include "../lib/sidebyside.h"

#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLACK 4
#else
#define SLACK 1
#endif

static struct chaosbed *bed;

static int begin(bool tls)
{
    struct app_opts o = {.follow_all = true, .poll_ms = 300};
    struct err e = {0};

    bed = chaosbed_new(tls, &o, &e);
    if (!bed || !chaosbed_session(bed, &e)) {
        print_error("# %s\n", e.text);
        return -1;
    }
    return 0;
}

static int setup(void **state)
{
    (void)state;
    return begin(false);
}

static int teardown(void **state)
{
    (void)state;
    chaosbed_free(bed);
    return 0;
}

static long proc_number(const char *name)
{
    char line[256];
    FILE *f = fopen("/proc/self/status", "r");
    long n = -1;

    assert_non_null(f);
    while (fgets(line, sizeof(line), f))
        if (str_starts(line, name))
            n = strtol(line + strlen(name), NULL, 10);
    fclose(f);
    return n;
}

static bool state_is(struct appbed *b, const void *st)
{
    const struct sandbox *r = model_sandbox(app_model(b->app), bed->row);

    return r && r->state == *(const enum sb_state *)st;
}

static bool is_shown(struct appbed *b, const void *text)
{
    const struct transcript *t = model_transcript(app_model(b->app), bed->row);

    for (size_t i = 0; t && i < t->n; i++)
        if (t->v[i].kind != ITEM_USER && t->v[i].text && strstr(t->v[i].text, text))
            return true;
    return false;
}

static long connections(const char *what)
{
    char text[128];
    const char *at;

    assert_true(faultd_command(bed->data, "stat", text, sizeof(text)));
    at = strstr(text, what);
    assert_non_null(at);
    return strtol(at + strlen(what), NULL, 10);
}

static bool all_closed(struct appbed *b, const void *arg)
{
    (void)b;
    (void)arg;
    return connections("conns ") == 0;
}

/* --- the end of a sandbox -------------------------------------------------------- */

/* The stream runs, a message hangs on a line that is silent: a kill ends all of it. */
static void test_kill_cancels_stream_and_send(void **state)
{
    enum sb_state killed = SB_KILLED;
    long threads = proc_number("Threads:");
    struct app *a = bed->app->app;
    uint64_t send, req[2];
    int64_t t;
    (void)state;

    app_send(a, bed->row, "emit k 100000 0.01", false);
    assert_true(appbed_wait(bed->app, is_shown, "<k-20>"));
    chaosbed_do(bed->data, "hole 600000");
    send = app_send(a, bed->row, "echo never", true);
    t = clock_mono_ms();
    req[0] = app_kill(a, bed->row);
    req[1] = send;
    for (int i = 0; i < 2; i++)
        appbed_finish(bed->app, req[i]);
    assert_int_equal(bed->app->codes[req[0]], 0);
    assert_int_not_equal(bed->app->codes[req[1]], 0); /* it says that it was not delivered */
    assert_true(appbed_wait(bed->app, state_is, &killed));
    printf("# killed, stream and message ended %d ms after the key\n", (int)(clock_mono_ms() - t));
    assert_true(clock_mono_ms() - t < 10000); /* a call of its own has twice that */
    chaosbed_do(bed->data, "heal");
    assert_true(appbed_wait(bed->app, all_closed, NULL));
    assert_true(proc_number("Threads:") <= threads);
    assert_true(is_shown(bed->app, "<k-20>"));
}

/* Killed by somebody else: the stream ends in one way or another, and that is all. */
static void test_killed_elsewhere_is_said_as_ended(void **state)
{
    enum sb_state killed = SB_KILLED;
    const struct sandbox *r;
    struct err e = {0};
    long total;
    (void)state;

    app_send(bed->app->app, bed->row, "emit q 100000 0.01", false);
    assert_true(appbed_wait(bed->app, is_shown, "<q-20>"));
    total = connections("total ");
    assert_true(chaosbed_kill(bed, &e));
    assert_true(appbed_wait(bed->app, state_is, &killed));
    r = model_sandbox(app_model(bed->app->app), bed->row);
    assert_int_equal(r->gone, GONE_EARLY);
    for (int i = 0; i < 5; i++) /* several more lists */
        appbed_must(bed->app, app_refresh(bed->app->app));
    assert_true(connections("total ") - total <= 6);
    assert_int_equal(connections("conns "), 0);
    assert_true(is_shown(bed->app, "<q-20>"));
}

/* --- a screen that is slow ------------------------------------------------------- */

#define FLOOD "head -c 10000000 /dev/zero | tr '\\0' x | fold -w 99; echo; echo '<flood-%d>'"

static bool log_has(const char *text)
{
    struct err e = {0};

    if (!chaosbed_truth(bed, &e))
        fail_msg("%s", e.text);
    return memmem(buf_str(&bed->truth), bed->truth.len, text, strlen(text)) != NULL;
}

/* How long the agent needs to print it all. */
static int64_t flood(int n, bool drained)
{
    char command[128], mark[32];
    int64_t t = clock_mono_ms();
    uint64_t req;

    snprintf(command, sizeof(command), FLOOD, n);
    snprintf(mark, sizeof(mark), "<flood-%d>\n", n);
    req = app_send(bed->app->app, bed->row, command, true);
    while (!log_has(mark)) {
        struct pollfd p = {app_fd(bed->app->app), POLLIN, 0};

        assert_true(clock_mono_ms() - t < 60000);
        poll(&p, drained ? 1 : 0, 20);
        if (drained)
            app_drain(bed->app->app, 8);
    }
    t = clock_mono_ms() - t;
    assert_int_equal(appbed_finish(bed->app, req), 0);
    return t;
}

static void test_a_slow_screen_never_slows_the_agent(void **state)
{
    struct err e = {0};
    int64_t quick, stalled;
    (void)state;

    quick = flood(1, true);
    stalled = flood(2, false);
    printf("# 10 MB of an agent: %d ms with a screen that keeps up, %d ms with one that stands\n",
           (int)quick, (int)stalled);
    assert_true(stalled < 2 * quick + 2000 * SLACK);
    if (!chaosbed_read(bed, &e) || !chaosbed_same(bed, &e))
        fail_msg("%s", e.text);
}

/* --- connections that are recycled ----------------------------------------------- */

/* Each process and each file asked for makes the server say GOAWAY, over a connection that
 * others use, and now and then a stream goes with it. */
static void test_goaway_in_mid_tail(void **state)
{
    struct err e = {0};
    uint64_t req[3];
    (void)state;

    if (!chaosbed_tls_possible())
        skip();
    assert_int_equal(begin(true), 0);
    assert_true(faultd_config(bed->fake,
                              "{\"rules\":[{\"path\":\"/process.Process/Start\",\"percent\":25,"
                              "\"goaway\":true,\"cut_body\":900},"
                              "{\"path\":\"/[fhp]*\",\"goaway\":true}]}"));
    for (int i = 0; i < 3; i++) {
        char text[32];

        snprintf(text, sizeof(text), "emit g%d 40 0.01", i);
        req[i] = app_send(bed->app->app, bed->row, text, true);
    }
    if (!chaosbed_ended(bed, req, 3, 60000, &e) || !chaosbed_read(bed, &e) ||
        !chaosbed_same(bed, &e) || !chaosbed_lines(bed, "g0", 40, &e) ||
        !chaosbed_lines(bed, "g1", 40, &e) || !chaosbed_lines(bed, "g2", 40, &e))
        fail_msg("%s", e.text);
    chaosbed_free(bed);
}

static int run_group(int i)
{
    const struct CMUnitTest recycled[] = {
        cmocka_unit_test(test_goaway_in_mid_tail),
    };
    const struct CMUnitTest ends[] = {
        cmocka_unit_test_setup_teardown(test_kill_cancels_stream_and_send, setup, teardown),
        cmocka_unit_test_setup_teardown(test_killed_elsewhere_is_said_as_ended, setup, teardown),
    };
    const struct CMUnitTest slow[] = {
        cmocka_unit_test_setup_teardown(test_a_slow_screen_never_slows_the_agent, setup, teardown),
    };

    appbed_main();
    return i == 0   ? cmocka_run_group_tests(ends, NULL, NULL)
           : i == 1 ? cmocka_run_group_tests(slow, NULL, NULL)
                    : cmocka_run_group_tests(recycled, NULL, NULL);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return side_by_side(3, run_group);
}
