/* The net thread against a scripted server on loopback. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "../lib/miniserver.h"
#include "../lib/netbed.h"
#include <cct/util/clock.h>
#include <cct/util/log.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOW 20000 /* a deadline that is only reached by a failure */

static struct mini *srv;
static struct netbed *bed;
static int flaky;          /* that path drops the first request */
static struct buf heard;   /* last request: head and body */

/* Paths say what the server does. */
static void handler(void *ctx, struct mini_conn *c, const struct mini_req *r)
{
    (void)ctx;
    buf_clear(&heard);
    buf_addf(&heard, "%s %s\n%s\n", r->method, r->path, r->head);
    buf_add(&heard, r->body, r->len);
    if (str_eq(r->path, "/ok"))
        mini_reply(c, 200, "X-Next-Token: abc\r\n", "{\"a\":1}");
    else if (str_eq(r->path, "/slow")) {
        mini_sendf(c, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n");
        for (int i = 0; i < 3; i++) {
            mini_send(c, "x", 1);
            mini_wait(c, 20);
        }
    } else if (str_eq(r->path, "/cut")) {
        mini_sendf(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
        mini_close(c);
    } else if (str_eq(r->path, "/drop") || (str_eq(r->path, "/flaky") && !flaky++)) {
        mini_close(c);
    } else if (str_eq(r->path, "/mail")) {
        mini_sendf(c, "220 mail.example ready\r\n");
        mini_close(c);
    } else if (str_eq(r->path, "/flaky")) {
        mini_reply(c, 200, "", "at last");
    } else if (str_eq(r->path, "/stall")) {
        mini_sendf(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n12345");
    } else if (str_eq(r->path, "/pulse")) {
        mini_sendf(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        for (int i = 0; i < 10; i++) {
            mini_wait(c, 30);
            mini_send(c, "1\r\n.\r\n", 6);
        }
        mini_send(c, "0\r\n\r\n", 5);
    } else if (str_eq(r->path, "/late")) {
        mini_wait(c, 100);
        mini_reply(c, 200, "", "late");
    } else if (str_eq(r->path, "/hang")) {
        /* never */
    } else if (str_eq(r->path, "/big")) {
        char *mb = xcalloc(1, 1 << 20);
        mini_sendf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", 8 << 20);
        for (int i = 0; i < 8; i++)
            mini_send(c, mb, 1 << 20);
        free(mb);
    } else if (str_eq(r->path, "/busy"))
        mini_reply(c, 429, "Retry-After: 7\r\n", "{}");
    else if (str_eq(r->path, "/busydate"))
        mini_reply(c, 429, "Date: Tue, 15 Nov 1994 08:12:31 GMT\r\n"
                   "Retry-After: Tue, 15 Nov 1994 08:12:41 GMT\r\n", "{}");
    else if (str_eq(r->path, "/redirect"))
        mini_reply(c, 302, "Location: /ok\r\n", "");
    else
        mini_reply(c, 404, "", "nothing");
}

struct probe {
    const char *path, *method, *body;
    struct net_req *req;   /* or made from the above */
    int idle_ms, total_ms;
    bool urgent, repeatable, stream, cancel_on_data, take_pieces;
    size_t max_body;
    const struct secret *secret;
    uint64_t id;
    /* results */
    struct net_result r;
    char body_copy[256], next[64];
    int head, pieces, done;
    size_t bytes;
};

static void on_head(void *ctx, int status)
{
    struct probe *p = ctx;
    const char *v = net_answer_header(bed->net, p->id, "x-next-token");

    p->head = status;
    if (v)
        str_copy(p->next, sizeof(p->next), v);
}

static bool on_body(void *ctx, const char *data, size_t len)
{
    struct probe *p = ctx;

    (void)data;
    p->pieces++;
    p->bytes += len;
    if (p->cancel_on_data) {
        net_cancel(bed->net, p->id);
        net_cancel(bed->net, p->id);
        bed_tick(bed);
    }
    return true;
}

static void on_done(void *ctx, const struct net_result *r)
{
    struct probe *p = ctx;

    p->r = *r;
    snprintf(p->body_copy, sizeof(p->body_copy), "%s", r->body ? r->body : "");
    p->done++;
    net_cancel(bed->net, p->id); /* too late, and harmless */
    bed_tick(bed);
}

static void submit(void *ctx)
{
    struct probe *p = ctx;
    struct net_req *q = net_req_new(p->method ? p->method : "GET",
                                    strstr(p->path, "://") ? xstrdup(p->path)
                                                           : mini_url(srv, p->path));

    if (p->body)
        buf_adds(&q->body, p->body);
    if (p->secret)
        net_req_secret(q, "X-API-Key", p->secret);
    q->idle_ms = p->idle_ms;
    q->total_ms = p->total_ms;
    q->urgent = p->urgent;
    q->repeatable = p->repeatable;
    q->stream = p->stream;
    q->max_body = p->max_body;
    q->on_head = on_head;
    if (p->take_pieces || p->cancel_on_data)
        q->on_body = on_body;
    q->on_done = on_done;
    q->ctx = p;
    p->id = net_submit(bed->net, q);
}

static void fetch(struct probe *p)
{
    bed_reset(bed);
    bed_run(bed, submit, p);
    assert_true(bed_wait(bed, 1, SLOW));
    mini_sync(srv);
}

static void nothing(void *ctx)
{
    (void)ctx;
}

static void test_answer(void **state)
{
    struct probe p = {.path = "/ok"};

    (void)state;
    fetch(&p);
    assert_int_equal(p.r.err.code, 0);
    assert_int_equal(p.r.status, 200);
    assert_int_equal(p.head, 200);
    assert_string_equal(p.next, "abc");
    assert_string_equal(p.body_copy, "{\"a\":1}");
    assert_true(p.r.sent);
    assert_int_equal(p.r.retry_after_ms, -1);
    assert_null(strstr(buf_str(&heard), "Expect"));
    assert_null(strstr(buf_str(&heard), "Accept-Encoding"));
    assert_non_null(strstr(buf_str(&heard), "User-Agent: cc-tui/test"));
}

static void test_bodies(void **state)
{
    struct probe post = {.path = "/ok", .method = "POST", .body = "{\"x\":\"once\"}"};
    struct probe again = {.path = "/ok", .method = "POST", .body = "twice", .repeatable = true};
    struct probe put = {.path = "/ok", .method = "PUT", .body = "file"};
    struct probe del = {.path = "/ok", .method = "DELETE"};

    (void)state;
    fetch(&post);
    assert_non_null(strstr(buf_str(&heard), "POST /ok"));
    assert_non_null(strstr(buf_str(&heard), "{\"x\":\"once\"}"));
    assert_non_null(strstr(buf_str(&heard), "Content-Length: 12"));
    fetch(&again);
    assert_non_null(strstr(buf_str(&heard), "twice"));
    fetch(&put);
    assert_non_null(strstr(buf_str(&heard), "PUT /ok"));
    assert_non_null(strstr(buf_str(&heard), "file"));
    fetch(&del);
    assert_non_null(strstr(buf_str(&heard), "DELETE /ok"));
    assert_null(strstr(buf_str(&heard), "Content-Type"));
}

static void test_slow_body(void **state)
{
    struct probe p = {.path = "/slow", .take_pieces = true};

    (void)state;
    fetch(&p);
    assert_int_equal(p.r.err.code, 0);
    assert_int_equal(p.bytes, 3);
    assert_true(p.pieces >= 2);
}

static void test_cut(void **state)
{
    struct probe p = {.path = "/cut"}, d = {.path = "/drop"};

    (void)state;
    fetch(&p);
    assert_int_equal(p.r.err.code, ERR_NETWORK);
    assert_int_equal(p.r.status, 200);
    assert_true(p.r.sent);
    fetch(&d);
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
    fetch(&p);
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
    fetch(&ok);
    flaky = 0;
    fetch(&get);
    assert_int_equal(get.r.status, 200);
    assert_int_equal(flaky, 2);
    flaky = 0;
    fetch(&post);
    assert_int_equal(post.r.err.code, ERR_NETWORK);
    assert_true(post.r.sent);
    assert_int_equal(flaky, 1);
    fetch(&ok);
    flaky = 0;
    fetch(&again);
    assert_int_equal(again.r.status, 200);
    assert_string_equal(again.body_copy, "at last");
}

static void test_idle(void **state)
{
    struct probe stall = {.path = "/stall", .idle_ms = 150, .take_pieces = true};
    struct probe pulse = {.path = "/pulse", .idle_ms = 200, .take_pieces = true};

    (void)state;
    fetch(&stall);
    assert_int_equal(stall.r.err.code, ERR_TIMEOUT);
    assert_int_equal(stall.bytes, 5);
    assert_true(stall.r.elapsed_ms >= 140);
    fetch(&pulse); /* longer than idle_ms in all, never silent that long */
    assert_int_equal(pulse.r.err.code, 0);
    assert_int_equal(pulse.bytes, 10);
}

static void test_total(void **state)
{
    struct probe p = {.path = "/hang", .total_ms = 100};

    (void)state;
    fetch(&p);
    assert_int_equal(p.r.err.code, ERR_TIMEOUT);
    assert_true(p.r.sent);
}

static void test_cancel(void **state)
{
    struct probe inside = {.path = "/stall", .cancel_on_data = true};
    struct probe other = {.path = "/ok"};

    (void)state;
    fetch(&inside);
    fetch(&other);
    assert_int_equal(inside.done, 0);
    assert_int_equal(inside.pieces, 1);
    assert_int_equal(other.r.status, 200);
}

static void cancel_before_start(void *ctx)
{
    struct probe *p = ctx;

    submit(p);
    net_cancel(bed->net, p->id);
    net_cancel(bed->net, p->id);
    net_cancel(bed->net, 987654321);
    bed_tick(bed);
}

static void test_cancel_early(void **state)
{
    struct probe p = {.path = "/ok"}, other = {.path = "/ok"};
    int before = mini_requests(srv);

    (void)state;
    bed_reset(bed);
    bed_run(bed, cancel_before_start, &p);
    fetch(&other);
    assert_int_equal(p.done, 0);
    assert_int_equal(mini_requests(srv), before + 1);
}

static struct probe many[200];

static void submit_many(void *ctx)
{
    (void)ctx;
    for (int i = 0; i < 200; i++)
        submit(&many[i]);
}

static void test_parallel(void **state)
{
    int64_t t0 = clock_mono_ms();

    (void)state;
    for (int i = 0; i < 200; i++)
        many[i] = (struct probe){.path = "/late", .stream = true};
    bed_reset(bed);
    bed_run(bed, submit_many, NULL);
    assert_true(bed_wait(bed, 200, SLOW));
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
    bed_reset(bed);
    before = mini_accepted(srv);
    bed_run(bed, submit_many, NULL);
    bed_run(bed, submit, &quick); /* 64 connections hang, 136 requests wait */
    assert_true(bed_wait(bed, 1, SLOW));
    assert_int_equal(quick.r.status, 200);
    assert_true(mini_accepted(srv) - before <= 64 + 1);
    for (int i = 0; i < 200; i++) {
        struct probe *p = &many[i];
        assert_int_equal(p->done, 0);
    }
}

static void cancel_many(void *ctx)
{
    (void)ctx;
    for (int i = 0; i < 200; i++)
        net_cancel(bed->net, many[i].id);
}

static void test_cancel_many(void **state)
{
    struct probe p = {.path = "/ok"};

    (void)state;
    bed_run(bed, cancel_many, NULL);
    fetch(&p);
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
        net_pause(bed->net, p->p.id, true);
        bed_tick(bed);
    }
    return true;
}

static void submit_pausing(void *ctx)
{
    struct pausing *p = ctx;
    struct net_req *q = net_req_new("GET", mini_url(srv, "/big"));

    q->idle_ms = 1000; /* a paused one is not dead */
    q->on_body = pause_on_data;
    q->on_done = on_done;
    q->ctx = p;
    p->p.id = net_submit(bed->net, q);
}

static void resume(void *ctx)
{
    struct pausing *p = ctx;

    net_pause(bed->net, p->p.id, false);
}

static void tick_later(void *ctx)
{
    (void)ctx;
    bed_tick(bed);
}

static void start_timer(void *ctx)
{
    (void)ctx;
    net_timer(bed->net, 1400, tick_later, NULL);
}

static void test_pause(void **state)
{
    struct pausing p = {0};

    (void)state;
    bed_reset(bed);
    bed_run(bed, submit_pausing, &p);
    assert_true(bed_wait(bed, 1, SLOW));
    bed_run(bed, start_timer, NULL);
    assert_true(bed_wait(bed, 2, SLOW));
    bed_run(bed, nothing, NULL);
    assert_int_equal(p.p.bytes, p.at_pause); /* nothing came, and it is not dead */
    bed_run(bed, resume, &p);
    assert_true(bed_wait(bed, 3, SLOW));
    assert_int_equal(p.p.r.err.code, 0);
    assert_int_equal(p.p.bytes, 8 << 20);
}

static void test_limits(void **state)
{
    struct probe p = {.path = "/big", .max_body = 1000};

    (void)state;
    fetch(&p);
    assert_int_equal(p.r.err.code, ERR_LIMIT);
}

static void test_retry_after(void **state)
{
    struct probe s = {.path = "/busy"}, d = {.path = "/busydate"}, r = {.path = "/redirect"};

    (void)state;
    fetch(&s);
    assert_int_equal(s.r.status, 429);
    assert_int_equal(s.r.retry_after_ms, 7000);
    fetch(&d);
    assert_int_equal(d.r.retry_after_ms, 10000);
    assert_int_equal(d.r.date_ms, 784887151000);
    fetch(&r);
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
    fetch(&closed);
    assert_int_equal(closed.r.err.code, ERR_NETWORK);
    assert_false(closed.r.sent);
    fetch(&plain);
    assert_int_equal(plain.r.err.code, ERR_INVALID);
    fetch(&trick);
    assert_int_equal(trick.r.err.code, ERR_INVALID);
    fetch(&user);
    assert_int_equal(user.r.err.code, ERR_INVALID);
    assert_null(strstr(user.r.err.text, "b@"));
    fetch(&ftp);
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
    fetch(&p);
    assert_non_null(strstr(buf_str(&heard), "X-API-Key: e2b_canary0123456789abcdef"));
    fetch(&gone);
    assert_null(strstr(gone.r.err.text, "canary"));
    before = mini_requests(srv);
    fetch(&q);
    assert_int_equal(q.r.err.code, ERR_INVALID);
    assert_int_equal(mini_requests(srv), before);
    for (size_t i = log_snapshot(lines, 200, &rev); i-- > 0;)
        assert_null(strstr(lines[i].text, "canary"));
    secret_free(s);
    secret_free(bad);
}

static void timer_tick(void *ctx)
{
    int *order = ctx;

    order[0]++;
    bed_tick(bed);
}

static int fired[8];
static uint64_t victim;

static void cancel_victim(void *ctx)
{
    net_timer_cancel(bed->net, victim);
    timer_tick(ctx);
}

static void start_timers(void *ctx)
{
    net_timer(bed->net, 30, timer_tick, ctx);
    net_timer(bed->net, 0, cancel_victim, ctx);
    victim = net_timer(bed->net, 10, timer_tick, ctx);
    net_timer_cancel(bed->net, 0);
    net_timer_cancel(bed->net, 123456789);
}

static void test_timers(void **state)
{
    (void)state;
    bed_reset(bed);
    bed_run(bed, start_timers, fired);
    assert_true(bed_wait(bed, 2, SLOW));
    bed_reset(bed);
    bed_run(bed, start_timer, NULL);
    assert_true(bed_wait(bed, 1, SLOW));
    assert_int_equal(fired[0], 2);
    for (int i = 0; i < 1000; i++) {
        int64_t ms = net_backoff_ms(i % 12, 100, 5000);
        assert_in_range(ms, 75, 6250);
    }
}

static void test_proxy(void **state)
{
    struct probe p = {.path = "/ok"};
    struct mini *proxy = mini_start(handler, NULL);
    char *url = mini_url(proxy, "");

    (void)state;
    bed_free(bed);
    setenv("http_proxy", url, 1);
    setenv("ALL_PROXY", url, 1);
    setenv("https_proxy", url, 1);
    setenv("SSLKEYLOGFILE", "/nonexistent/keys", 1);
    bed = bed_new(NULL);
    assert_null(getenv("SSLKEYLOGFILE"));
    fetch(&p);
    assert_int_equal(p.r.status, 200);
    assert_int_equal(mini_accepted(proxy), 0);
    p = (struct probe){.path = "https://api.example.invalid/x"}; /* that one goes there */
    fetch(&p);
    assert_int_equal(p.r.err.code, ERR_NETWORK);
    assert_int_equal(mini_accepted(proxy), 1);
    assert_non_null(strstr(buf_str(&heard), "CONNECT api.example.invalid:443"));
    unsetenv("http_proxy");
    unsetenv("https_proxy");
    unsetenv("ALL_PROXY");
    free(url);
    mini_stop(proxy);
}

static void test_stop_with_open(void **state)
{
    int64_t t0, took;

    (void)state;
    for (int i = 0; i < 200; i++)
        many[i] = (struct probe){.path = "/hang", .stream = i % 2};
    bed_run(bed, submit_many, NULL);
    t0 = clock_mono_ms();
    bed_free(bed);
    took = clock_mono_ms() - t0;
    bed = bed_new(NULL);
    assert_true(took < 5000);
    for (int i = 0; i < 200; i++)
        assert_int_equal(many[i].done, 0);
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
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_cancel_early),
        cmocka_unit_test(test_parallel),
        cmocka_unit_test(test_host_cap_and_urgent),
        cmocka_unit_test(test_cancel_many),
        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_retry_after),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_url_check),
        cmocka_unit_test(test_secret),
        cmocka_unit_test(test_timers),
        cmocka_unit_test(test_proxy),
        cmocka_unit_test(test_stop_with_open),
        cmocka_unit_test(test_never_started),
    };
    int rc;

    srv = mini_start(handler, NULL);
    bed = bed_new(NULL);
    rc = cmocka_run_group_tests_name("net", tests, NULL, NULL);
    bed_free(bed);
    mini_stop(srv);
    buf_release(&heard);
    return rc;
}
