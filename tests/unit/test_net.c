/* The net thread against a scripted server on loopback. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "../lib/netprobe.h"
#include <cct/util/clock.h>
#include <cct/util/log.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void test_answer(void **state)
{
    struct probe p = {.path = "/ok"};

    (void)state;
    netprobe_fetch(&p);
    assert_int_equal(p.r.err.code, 0);
    assert_int_equal(p.r.status, 200);
    assert_int_equal(p.head, 200);
    assert_string_equal(p.next, "abc");
    assert_string_equal(p.body_copy, "{\"a\":1}");
    assert_true(p.r.sent);
    assert_int_equal(p.r.retry_after_ms, -1);
    assert_null(strstr(buf_str(&netprobe.heard), "Expect"));
    assert_null(strstr(buf_str(&netprobe.heard), "Accept-Encoding"));
    assert_non_null(strstr(buf_str(&netprobe.heard), "User-Agent: cc-tui/test"));
}

static void test_bodies(void **state)
{
    struct probe post = {.path = "/ok", .method = "POST", .body = "{\"x\":\"once\"}"};
    struct probe again = {.path = "/ok", .method = "POST", .body = "twice", .repeatable = true};
    struct probe put = {.path = "/ok", .method = "PUT", .body = "file"};
    struct probe del = {.path = "/ok", .method = "DELETE"};

    (void)state;
    netprobe_fetch(&post);
    assert_non_null(strstr(buf_str(&netprobe.heard), "POST /ok"));
    assert_non_null(strstr(buf_str(&netprobe.heard), "{\"x\":\"once\"}"));
    assert_non_null(strstr(buf_str(&netprobe.heard), "Content-Length: 12"));
    netprobe_fetch(&again);
    assert_non_null(strstr(buf_str(&netprobe.heard), "twice"));
    netprobe_fetch(&put);
    assert_non_null(strstr(buf_str(&netprobe.heard), "PUT /ok"));
    assert_non_null(strstr(buf_str(&netprobe.heard), "file"));
    netprobe_fetch(&del);
    assert_non_null(strstr(buf_str(&netprobe.heard), "DELETE /ok"));
    assert_null(strstr(buf_str(&netprobe.heard), "Content-Type"));
}

static void test_slow_body(void **state)
{
    struct probe p = {.path = "/slow", .take_pieces = true};

    (void)state;
    netprobe_fetch(&p);
    assert_int_equal(p.r.err.code, 0);
    assert_int_equal(p.bytes, 3);
    assert_true(p.pieces >= 2);
}

static void test_cut(void **state)
{
    struct probe p = {.path = "/cut"}, d = {.path = "/drop"};

    (void)state;
    netprobe_fetch(&p);
    assert_int_equal(p.r.err.code, ERR_NETWORK);
    assert_int_equal(p.r.status, 200);
    assert_true(p.r.sent);
    netprobe_fetch(&d);
    assert_int_equal(d.r.err.code, ERR_NETWORK);
    assert_int_equal(d.r.status, 0);
    assert_true(d.r.sent);
    assert_non_null(strstr(d.r.err.text, "127.0.0.1"));
}

/* The address was right to call: a create that something else answered may have been made. */
static void test_no_http(void **state)
{
    struct probe p = {.path = "/mail", .method = "POST", .body = "{}"};

    (void)state;
    netprobe_fetch(&p);
    assert_int_equal(p.r.err.code, ERR_NETWORK);
    assert_true(p.r.sent);
    assert_non_null(strstr(p.r.err.text, "does not speak HTTP"));
}

/* A kept connection that dies under a request: a GET goes out again, a POST does not. */
static void test_dead_connection(void **state)
{
    struct probe ok = {.path = "/ok"}, get = {.path = "/flaky"};
    struct probe post = {.path = "/flaky", .method = "POST", .body = "{}"};
    struct probe again = {.path = "/flaky", .method = "POST", .body = "{}", .repeatable = true};

    (void)state;
    netprobe_fetch(&ok);
    netprobe.flaky = 0;
    netprobe_fetch(&get);
    assert_int_equal(get.r.status, 200);
    assert_int_equal(netprobe.flaky, 2);
    netprobe.flaky = 0;
    netprobe_fetch(&post);
    assert_int_equal(post.r.err.code, ERR_NETWORK);
    assert_true(post.r.sent);
    assert_int_equal(netprobe.flaky, 1);
    netprobe_fetch(&ok);
    netprobe.flaky = 0;
    netprobe_fetch(&again);
    assert_int_equal(again.r.status, 200);
    assert_string_equal(again.body_copy, "at last");
}

static void test_idle(void **state)
{
    struct probe stall = {.path = "/stall", .idle_ms = 150, .take_pieces = true};
    struct probe pulse = {.path = "/pulse", .idle_ms = 200, .take_pieces = true};

    (void)state;
    netprobe_fetch(&stall);
    assert_int_equal(stall.r.err.code, ERR_TIMEOUT);
    assert_int_equal(stall.bytes, 5);
    assert_true(stall.r.elapsed_ms >= 140);
    netprobe_fetch(&pulse); /* longer than idle_ms in all, never silent that long */
    assert_int_equal(pulse.r.err.code, 0);
    assert_int_equal(pulse.bytes, 10);
}

static void test_total(void **state)
{
    struct probe p = {.path = "/hang", .total_ms = 100};

    (void)state;
    netprobe_fetch(&p);
    assert_int_equal(p.r.err.code, ERR_TIMEOUT);
    assert_true(p.r.sent);
}

static void test_limits(void **state)
{
    struct probe p = {.path = "/big", .max_body = 1000};

    (void)state;
    netprobe_fetch(&p);
    assert_int_equal(p.r.err.code, ERR_LIMIT);
}

static void test_retry_after(void **state)
{
    struct probe s = {.path = "/busy"}, d = {.path = "/busydate"}, r = {.path = "/redirect"};

    (void)state;
    netprobe_fetch(&s);
    assert_int_equal(s.r.status, 429);
    assert_int_equal(s.r.retry_after_ms, 7000);
    netprobe_fetch(&d);
    assert_int_equal(d.r.retry_after_ms, 10000);
    assert_int_equal(d.r.date_ms, 784887151000);
    netprobe_fetch(&r);
    assert_int_equal(r.r.status, 302);
}

static void test_refused(void **state)
{
    struct probe closed = {.path = "http://127.0.0.1:1/x"};
    struct probe plain = {.path = "http://example.invalid/x"};
    struct probe trick = {.path = "http://127.0.0.1.example.invalid/x"};
    struct probe user = {.path = "https://a:b@example.invalid/"};
    struct probe ftp = {.path = "ftp://127.0.0.1/x"};

    (void)state;
    netprobe_fetch(&closed);
    assert_int_equal(closed.r.err.code, ERR_NETWORK);
    assert_false(closed.r.sent);
    netprobe_fetch(&plain);
    assert_int_equal(plain.r.err.code, ERR_INVALID);
    netprobe_fetch(&trick);
    assert_int_equal(trick.r.err.code, ERR_INVALID);
    netprobe_fetch(&user);
    assert_int_equal(user.r.err.code, ERR_INVALID);
    assert_null(strstr(user.r.err.text, "b@"));
    netprobe_fetch(&ftp);
    assert_int_equal(ftp.r.err.code, ERR_INVALID);
}

static void test_url_check(void **state)
{
    bool local;

    (void)state;
    assert_int_equal(net_url_check("http://localhost:1/x", &local, NULL), 0);
    assert_true(local);
    assert_int_equal(net_url_check("http://[::1]:80", &local, NULL), 0);
    assert_true(local);
    assert_int_equal(net_url_check("https://api.e2b.app", &local, NULL), 0);
    assert_false(local);
    assert_int_equal(net_url_check("http://[::2]/", NULL, NULL), ERR_INVALID);
    assert_int_equal(net_url_check("http://127.1/", NULL, NULL), ERR_INVALID);
    assert_int_equal(net_url_check("https:///x", NULL, NULL), ERR_INVALID);
    assert_int_equal(net_url_check("https://a b/", NULL, NULL), ERR_INVALID);
    assert_int_equal(net_url_check("https://a\\b/", NULL, NULL), ERR_INVALID);
    assert_int_equal(net_url_check("https://[::1]x/", NULL, NULL), ERR_INVALID);
}

static void test_secret(void **state)
{
    static const char key[] = "e2b_canary0123456789abcdef";
    struct secret *s = secret_new(key, strlen(key)), *bad = secret_new("a\r\nX: y", 7);
    struct probe p = {.path = "/ok", .secret = s}, q = {.path = "/ok", .secret = bad};
    struct probe gone = {.path = "http://127.0.0.1:1/x", .secret = s};
    static struct log_line lines[200];
    uint64_t rev;
    int before;

    (void)state;
    netprobe_fetch(&p);
    assert_non_null(strstr(buf_str(&netprobe.heard), "X-API-Key: e2b_canary0123456789abcdef"));
    netprobe_fetch(&gone);
    assert_null(strstr(gone.r.err.text, "canary"));
    before = mini_requests(netprobe.srv);
    netprobe_fetch(&q);
    assert_int_equal(q.r.err.code, ERR_INVALID);
    assert_int_equal(mini_requests(netprobe.srv), before);
    for (size_t i = log_snapshot(lines, 200, &rev); i-- > 0;)
        assert_null(strstr(lines[i].text, "canary"));
    secret_free(s);
    secret_free(bad);
}

static void test_proxy(void **state)
{
    struct probe p = {.path = "/ok"};
    struct mini *proxy = mini_start(netprobe_handler, NULL);
    char *url = mini_url(proxy, "");

    (void)state;
    bed_free(netprobe.bed);
    setenv("http_proxy", url, 1);
    setenv("ALL_PROXY", url, 1);
    setenv("https_proxy", url, 1);
    setenv("SSLKEYLOGFILE", "/nonexistent/keys", 1);
    netprobe.bed = bed_new(NULL);
    assert_null(getenv("SSLKEYLOGFILE"));
    netprobe_fetch(&p);
    assert_int_equal(p.r.status, 200);
    assert_int_equal(mini_accepted(proxy), 0);
    p = (struct probe){.path = "https://api.example.invalid/x"}; /* that one goes there */
    netprobe_fetch(&p);
    assert_int_equal(p.r.err.code, ERR_NETWORK);
    assert_int_equal(mini_accepted(proxy), 1);
    assert_non_null(strstr(buf_str(&netprobe.heard), "CONNECT api.example.invalid:443"));
    unsetenv("http_proxy");
    unsetenv("https_proxy");
    unsetenv("ALL_PROXY");
    free(url);
    mini_stop(proxy);
}

static void test_never_started(void **state)
{
    struct net_opts o = {0};
    struct net *n = net_new(&o);

    (void)state;
    net_stop(n);
    net_free(n);
    net_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answer),
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_slow_body),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_no_http),
        cmocka_unit_test(test_dead_connection),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_total),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_retry_after),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_url_check),
        cmocka_unit_test(test_secret),
        cmocka_unit_test(test_proxy),
        cmocka_unit_test(test_never_started),
    };
    int rc;

    netprobe_begin();
    rc = cmocka_run_group_tests_name("net", tests, NULL, NULL);
    netprobe_end();
    return rc;
}
