/* Processes of a sandbox, as streams and whole, against scripted answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "../lib/envdplay.h"
#include <cct/envd.h>
#include <cct/util/clock.h>
#include <cct/wire.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void frame(uint8_t flags, const char *json)
{
    struct buf b = BUF_INIT;

    wire_env_add(&b, flags, json, strlen(json));
    memcpy(play.body + play.len, b.p, b.len);
    play.len += b.len;
    buf_release(&b);
}

static void on_start(void *ctx, int pid)
{
    struct log *l = ctx;

    snprintf(l->text + strlen(l->text), 64, "start %d|", pid);
}

static bool on_data(void *ctx, enum envd_stream s, const char *data, size_t len)
{
    struct log *l = ctx;
    bool last = l->stop || l->close || l->drop, go_on = !l->stop;
    size_t at = strlen(l->text);

    snprintf(l->text + at, sizeof(l->text) - at, "%d:%.*s|", (int)s, (int)len, data);
    if (l->close)
        envd_close(client, l->stream);
    if (l->drop)
        drop_client(NULL);
    if (last) /* now the log belongs to the test again */
        bed_tick(bed);
    return go_on;
}

static void on_end(void *ctx, const struct envd_end *end)
{
    struct log *l = ctx;

    l->end = *end;
    snprintf(l->status, sizeof(l->status), "%s", end->status ? end->status : "-");
    l->ended++;
    bed_tick(bed);
}

static void start_stream(void *ctx)
{
    struct log *l = ctx;
    struct envd_proc_cb cb = {on_start, on_data, on_end, l};

    l->stream = join_pid ? envd_connect(client, join_pid, spec.keepalive_s, &cb)
                         : envd_start(client, &spec, &cb);
}

static void follow(bool stop, bool close, bool drop)
{
    memset(&seen, 0, sizeof(seen));
    seen.stop = stop;
    seen.close = close;
    seen.drop = drop;
    bed_reset(bed);
    bed_run(bed, start_stream, &seen);
    assert_true(bed_wait(bed, 1, SLOW));
    mini_sync(srv);
}

static void nothing(void *ctx)
{
    (void)ctx;
}

static void good_stream(void)
{
    script(200, NULL, "");
    frame(0, "{\"event\":{\"start\":{\"pid\":1207}}}");
    frame(0, "{ \"event\" : {\"data\": {\"stdout\":\"w6k=\"}}}");
    frame(0, "{\"event\":{\"keepalive\":{}}}");
    frame(0, "{\"event\":{\"data\":{\"stderr\":\"ZXJy\"}},\"more\":1}");
    frame(0, "{\"event\":{\"data\":{\"pty\":\"cHR5\"}}}");
    frame(0, "{\"event\":{\"end\":{\"exitCode\":3,\"exited\":true,\"status\":\"exit status 3\","
             "\"error\":\"exit status 3\"}}}");
    frame(2, "{}");
}

static void check_good(void)
{
    assert_string_equal(seen.text, "start 1207|0:\xc3\xa9|1:err|2:pty|");
    assert_int_equal(seen.end.err.code, 0);
    assert_true(seen.end.ended);
    assert_true(seen.end.exited);
    assert_int_equal(seen.end.exit_code, 3);
    assert_string_equal(seen.status, "exit status 3");
}

static void test_every_cut(void **state)
{
    (void)state;
    good_stream();
    size_t len = play.len;
    for (size_t cut = 0; cut < len; cut++) {
        play.cut = cut;
        follow(false, false, false);
        check_good();
    }
}

static void test_request(void **state)
{
    static const char *const args[] = {"-c", "echo \"hi\"", NULL};
    static const struct kv env[] = {{(char *)"A", (char *)"b"}, {NULL, NULL}};

    (void)state;
    good_stream();
    spec = (struct envd_proc_spec){.cmd = "/bin/sh", .args = args, .env = env, .cwd = "/home",
                                   .user = "root", .stdin_open = true, .keepalive_s = 20};
    follow(false, false, false);
    assert_non_null(strstr(buf_str(&heard), "POST /process.Process/Start\n"));
    assert_non_null(strstr(buf_str(&heard),
                           "{\"process\":{\"cmd\":\"/bin/sh\",\"args\":[\"-c\",\"echo \\\"hi\\\"\"],"
                           "\"envs\":{\"A\":\"b\"},\"cwd\":\"/home\"},\"stdin\":true}"));
    assert_non_null(strstr(buf_str(&heard), "Content-Type: application/connect+json\r\n"));
    assert_non_null(strstr(buf_str(&heard), "Connect-Protocol-Version: 1\r\n"));
    assert_non_null(strstr(buf_str(&heard), "Keepalive-Ping-Interval: 20\r\n"));
    assert_non_null(strstr(buf_str(&heard), "Authorization: Basic cm9vdDo=\r\n"));
    assert_non_null(strstr(buf_str(&heard), "X-Access-Token: ea_token_of_a_sandbox\r\n"));
    assert_non_null(strstr(buf_str(&heard), "E2b-Sandbox-Id: iabc\r\n"));
    assert_non_null(strstr(buf_str(&heard), "E2b-Sandbox-Port: 49983\r\n"));
    assert_null(strstr(buf_str(&heard), "Connect-Timeout-Ms"));
    assert_null(strstr(buf_str(&heard), "Accept-Encoding"));
    spec = (struct envd_proc_spec){.cmd = "sh", .pty_cols = 80, .pty_rows = 24, .timeout_ms = 900};
    follow(false, false, false);
    assert_non_null(strstr(buf_str(&heard), "\"pty\":{\"size\":{\"cols\":80,\"rows\":24}}}"));
    assert_non_null(strstr(buf_str(&heard), "Connect-Timeout-Ms: 900\r\n"));
    assert_null(strstr(buf_str(&heard), "stdin"));
    join_pid = 77;
    follow(false, false, false);
    assert_non_null(strstr(buf_str(&heard), "POST /process.Process/Connect\n"));
    assert_non_null(strstr(buf_str(&heard), "{\"process\":{\"pid\":77}}"));
}

static void test_zero_values(void **state)
{
    (void)state;
    script(200, NULL, "");
    frame(0, "{\"event\":{\"start\":{\"pid\":5}}}");
    frame(0, "{\"event\":{\"end\":{\"exited\":true,\"status\":\"exit status 0\"}}}");
    frame(2, "{}");
    follow(false, false, false);
    assert_int_equal(seen.end.err.code, 0);
    assert_int_equal(seen.end.exit_code, 0);
    assert_true(seen.end.exited);
    script(200, NULL, "");
    frame(0, "{\"event\":{\"end\":{\"exitCode\":-1,\"status\":\"signal: killed\"}}}");
    frame(2, "{}");
    follow(false, false, false);
    assert_false(seen.end.exited);
    assert_int_equal(seen.end.exit_code, -1);
}

static void trailer(const char *json, int code, const char *words)
{
    script(200, NULL, "");
    frame(0, "{\"event\":{\"start\":{\"pid\":5}}}");
    frame(2, json);
    follow(false, false, false);
    assert_int_equal(seen.end.err.code, code);
    assert_non_null(strstr(seen.end.err.text, words));
}

static void test_trailers(void **state)
{
    (void)state;
    trailer("{\"error\":{\"code\":\"deadline_exceeded\",\"message\":\"late\"}}", ERR_TIMEOUT, "late");
    trailer("{\"error\":{\"code\":\"not_found\",\"message\":\"no pid\"}}", ERR_NOTFOUND, "no pid");
    trailer("{\"error\":{\"code\":\"unavailable\",\"message\":\"x\\u001b[2J\"}}", ERR_SERVER, "x [2J");
    trailer("{\"error\":{\"code\":42}}", ERR_SERVER, "unknown");
    trailer("{}", ERR_PROTO, "without a result");
    trailer("nonsense", ERR_PROTO, "not readable");
}

/* Over with its last envelope, whatever the connection does then. */
static void test_left_open(void **state)
{
    (void)state;
    good_stream();
    play.stay_open = true;
    follow(false, false, false);
    assert_int_equal(seen.end.err.code, 0);
    assert_true(seen.end.ended);
    assert_int_equal(seen.end.exit_code, 3);
}

static void test_lost(void **state)
{
    (void)state;
    good_stream();
    play.len -= 7; /* no last envelope, but the process ended */
    follow(false, false, false);
    assert_int_equal(seen.end.err.code, ERR_NETWORK);
    assert_true(seen.end.ended);
    assert_int_equal(seen.end.exit_code, 3);
    script(200, NULL, "");
    frame(0, "{\"event\":{\"start\":{\"pid\":5}}}");
    follow(false, false, false);
    assert_int_equal(seen.end.err.code, ERR_NETWORK);
    assert_false(seen.end.ended);
    play.len -= 3; /* inside an envelope */
    follow(false, false, false);
    assert_int_equal(seen.end.err.code, ERR_NETWORK);
    frame(2, "{}");
    frame(0, "{}"); /* after the end */
    follow(false, false, false);
    assert_int_not_equal(seen.end.err.code, 0);
}

static void test_refused(void **state)
{
    (void)state;
    script(502, NULL, "{\"sandboxId\":\"iabc\",\"message\":\"no such\",\"code\":502}");
    follow(false, false, false);
    assert_int_equal(seen.end.err.code, ERR_NETWORK);
    assert_int_equal(seen.end.err.sys, 502);
    script(401, NULL, "{\"code\":401,\"message\":\"token\"}");
    follow(false, false, false);
    assert_int_equal(seen.end.err.code, ERR_AUTH);
    /* 403 is said of a token and of a file; only the first one can be mended by a new token */
    script(403, NULL, "{\"code\":403,\"message\":\"The traffic access token is missing\"}");
    follow(false, false, false);
    assert_int_equal(seen.end.err.code, ERR_AUTH);
    script(403, NULL, "{\"code\":403,\"message\":\"cannot open '/x': Permission denied\"}");
    follow(false, false, false);
    assert_int_equal(seen.end.err.code, ERR_PERM);
    assert_null(strstr(seen.end.err.text, "token"));
    script(403, NULL, "{\"code\":\"permission_denied\",\"message\":\"open /x: permission denied\"}");
    follow(false, false, false);
    assert_int_equal(seen.end.err.code, ERR_PERM);
    script(400, NULL, "{\"code\":\"invalid_argument\",\"message\":\"cwd\"}");
    follow(false, false, false);
    assert_int_equal(seen.end.err.code, ERR_INVALID);
    assert_non_null(strstr(seen.end.err.text, "cwd"));
    script(415, NULL, "");
    follow(false, false, false);
    assert_int_equal(seen.end.err.code, ERR_PROTO);
}

static void test_odd_events(void **state)
{
    static const char *const bad[] = {"[]", "7", "{\"event\":",
                                      "{\"event\":{\"data\":{\"stdout\":\"!!\"}}}", "\"x\""};
    (void)state;
    script(200, NULL, "");
    frame(0, "{\"event\":{\"start\":{\"pid\":\"9\"}}}");
    frame(0, "{\"event\":{\"data\":{}}}");
    frame(0, "{\"event\":{\"data\":{\"stdout\":\"\"}}}");
    frame(0, "{\"event\":{\"data\":{\"stdout\":\"YQ\"}}}");      /* no padding */
    frame(0, "{\"event\":{\"data\":{\"stdout\":\"Pz8_\"}}}");    /* URL-safe */
    frame(0, "{\"event\":{\"future\":{}}}");
    frame(0, "{\"event\":null}");
    frame(0, "{}");
    frame(0, "{\"event\":{\"end\":{\"exit_code\":4,\"exited\":true}}}");
    frame(2, "{}");
    follow(false, false, false);
    assert_string_equal(seen.text, "start 9|0:|0:a|0:???|");
    assert_int_equal(seen.end.exit_code, 4);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        script(200, NULL, "");
        frame(0, bad[i]);
        frame(2, "{}");
        follow(false, false, false);
        assert_int_equal(seen.end.err.code, ERR_PROTO);
    }
}

static void test_stop_inside(void **state)
{
    (void)state;
    good_stream();
    follow(true, false, false);
    follow(false, true, false);
    bed_run(bed, nothing, NULL); /* the closed ones say nothing any more */
    assert_int_equal(seen.ended, 0);
    follow(false, false, true);
    bed_run(bed, make_client, NULL);
    assert_int_equal(seen.ended, 0);
    follow(false, false, false);
    check_good();
}

static void test_keepalive(void **state)
{
    int64_t t0 = clock_mono_ms();

    (void)state;
    script(200, NULL, "");
    frame(0, "{\"event\":{\"start\":{\"pid\":5}}}");
    play.stay_open = true;
    spec.keepalive_s = 1;
    follow(false, false, false);
    assert_int_equal(seen.end.err.code, ERR_NETWORK);
    assert_in_range(clock_mono_ms() - t0, 2400, 10000);
    t0 = clock_mono_ms();
    play.pings = true; /* three seconds of pings, then the close */
    play.stay_open = false;
    play.chunked = true; /* close-delimited */
    play.head = "Connection: close\r\n";
    follow(false, false, false);
    assert_true(clock_mono_ms() - t0 >= 2900);
    assert_string_equal(seen.text, "start 5|");
}

static struct envd_run_result ran;
static char ran_out[64], ran_err[64];

static void on_ran(void *ctx, const struct envd_run_result *r)
{
    (void)ctx;
    ran = *r;
    snprintf(ran_out, sizeof(ran_out), "%s", r->out);
    snprintf(ran_err, sizeof(ran_err), "%s", r->errout);
    bed_tick(bed);
}

static void start_run(void *ctx)
{
    (void)ctx;
    envd_run(client, &spec, on_ran, NULL);
}

static void start_and_cancel_run(void *ctx)
{
    envd_cancel(client, envd_run(client, &spec, on_ran, ctx));
    envd_run(client, &spec, on_ran, ctx);
    envd_run(client, &spec, on_ran, ctx);
    drop_client(NULL); /* with runs under way */
    make_client(NULL);
    bed_tick(bed);
}

static void test_run(void **state)
{
    (void)state;
    good_stream();
    bed_reset(bed);
    bed_run(bed, start_run, NULL);
    assert_true(bed_wait(bed, 1, SLOW));
    assert_int_equal(ran.err.code, 0);
    assert_int_equal(ran.exit_code, 3);
    assert_string_equal(ran_out, "\xc3\xa9pty");
    assert_string_equal(ran_err, "err");
    bed_reset(bed);
    bed_run(bed, start_and_cancel_run, NULL);
    assert_true(bed_wait(bed, 1, SLOW));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, fresh, done)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_every_cut),
        CASE(test_request),
        CASE(test_zero_values),
        CASE(test_trailers),
        CASE(test_left_open),
        CASE(test_lost),
        CASE(test_refused),
        CASE(test_odd_events),
        CASE(test_stop_inside),
        CASE(test_keepalive),
        CASE(test_run),
    };
    int rc;

    srv = mini_start(handler, NULL);
    bed = bed_new(NULL);
    rc = cmocka_run_group_tests_name("envd", tests, NULL, NULL);
    bed_free(bed);
    mini_stop(srv);
    buf_release(&heard);
    return rc;
}
