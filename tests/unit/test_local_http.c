/* The provider's HTTP server, request by request: framing that two readers could
 * take differently, order, versions, limits. */
#include "../lib/httpbed.h"
#include <cct/util/clock.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define H "Host: x\r\n"
#define END "Connection: close\r\n"
#define LAST "GET /echo?last HTTP/1.1\r\n" H END "\r\n"
#define SMUGGLED "GET /echo?smuggled HTTP/1.1\r\n" H END "\r\n"
#define CHUNKED "POST /echo HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"

static struct httpbed bed;

static int up(void **state)
{
    (void)state;
    httpbed_up(&bed, false);
    return 0;
}

static int down(void **state)
{
    (void)state;
    httpbed_down(&bed);
    return 0;
}

static const struct {
    const char *text, *statuses, *part;
} cases[] = {
    /* order and framing */
    {"GET /echo?1 HTTP/1.1\r\n" H "\r\nGET /none HTTP/1.1\r\n" H "\r\n" LAST, "200 204 200 ",
     "\r\n\r\nGET last "},
    {"POST /echo?1 HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhello" LAST, "200 200 ",
     "POST 1 hello"},
    {"POST /echo HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n" LAST, "200 200 ",
     "POST  HTTP/1.1"},
    {CHUNKED "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n" LAST, "200 200 ", "POST  abcde"},
    {CHUNKED "3;name=value\r\nabc\r\n0;x\r\nTrailer: 1\r\nOther:\r\n\r\n" LAST, "200 200 ",
     "POST  abcHTTP"},
    {"POST /take HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhello" LAST, "200 200 ", "5 bytes"},
    {"POST /take HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n" LAST, "200 200 ", "0 bytes"},
    {"POST /take HTTP/1.1\r\n" H
     "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX: y\r\n\r\n" LAST,
     "200 200 ", "1 bytes"},
    {"GET /nowhere HTTP/1.1\r\n" H "\r\n" LAST, "404 200 ", "there is nothing at /nowhere"},
    /* what could hide a second request ends the connection */
    {"POST /echo HTTP/1.1\r\n" H "Content-Length: 0\r\nContent-Length: 51\r\n\r\n" SMUGGLED,
     "400 ", "twice"},
    {"POST /echo HTTP/1.1\r\n" H "Content-Length: 5, 5\r\n\r\nhello" SMUGGLED, "400 ",
     "Length"},
    {"POST /echo HTTP/1.1\r\n" H
     "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SMUGGLED,
     "400 ", "both"},
    {"POST /echo HTTP/1.1\r\n" H "Transfer-Encoding: gzip\r\n\r\n" SMUGGLED, "501 ", "chunked"},
    {"GET /echo HTTP/1.1\n" H "\r\n" SMUGGLED, "400 ", "bare line end"},
    {"GET /echo HTTP/1.1\r\nHost: x\n\r\n" SMUGGLED, "400 ", "bare line end"},
    {"GET /echo HTTP/1.1\r\nHost : x\r\n\r\n" SMUGGLED, "400 ", "header name"},
    {"GET /echo HTTP/1.1\r\n\r\n" SMUGGLED, "400 ", "no Host"},
    {"\r\nGET /echo HTTP/1.1\r\n" H "\r\n", "400 ", "malformed"},
    {CHUNKED "+3\r\nabc\r\n0\r\n\r\n" SMUGGLED, "400 ", "malformed chunk"},
    {CHUNKED "0x3\r\nabc\r\n0\r\n\r\n" SMUGGLED, "400 ", "malformed chunk"},
    {CHUNKED "3\nabc\r\n0\r\n\r\n" SMUGGLED, "400 ", "malformed chunk"},
    {CHUNKED "3\r\nabcd\r\n0\r\n\r\n" SMUGGLED, "400 ", "malformed chunk"},
    {CHUNKED "FFFFFFFFFFFFFFFF\r\n" SMUGGLED, "400 ", "malformed chunk"},
    {CHUNKED "0\r\nBad Trailer: 1\r\n\r\n" SMUGGLED, "400 ", "malformed chunk"},
    {CHUNKED "0\r\nT: 1\n\r\n" SMUGGLED, "400 ", "malformed chunk"},
    {"POST /take HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n1\r\naX" SMUGGLED, "400 ",
     "malformed chunk"},
    /* a body that nobody read is no request either */
    {"POST /early HTTP/1.1\r\n" H "Content-Length: 51\r\n\r\n" SMUGGLED, "401 ", "close"},
    {"GET /early HTTP/1.1\r\n" H "\r\n" LAST, "401 200 ", "last"},
    /* versions */
    {"GET /echo HTTP/1.0\r\n" H "\r\n" SMUGGLED, "200 ", "Connection: close"},
    {"GET /echo HTTP/1.0\r\n" H "Connection: keep-alive\r\n\r\n" LAST, "200 200 ",
     "Connection: keep-alive"},
    {"GET /echo HTTP/2.0\r\n" H "\r\n", "505 ", "HTTP/1.1"},
    /* HEAD has the head of GET and nothing else, whatever it is answered */
    {"HEAD /echo?q HTTP/1.1\r\n" H "\r\n" LAST, "200 200 ",
     "Content-Length: 7\r\n\r\nHTTP/1.1"},
    {"HEAD /nowhere HTTP/1.1\r\n" H "\r\n" LAST, "404 200 ", "\r\n\r\nHTTP/1.1"},
    {"HEAD /early HTTP/1.1\r\n" H "\r\n" LAST, "401 200 ", "\r\n\r\nHTTP/1.1"},
    /* expectations */
    {"POST /echo HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: 2\r\n\r\nhi" LAST,
     "100 200 200 ", "POST  hi"},
    {"POST /early HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n", "401 ",
     "no"},
    {"POST /echo HTTP/1.1\r\n" H "Expect: magic\r\nContent-Length: 2\r\n\r\n", "417 ",
     "expectation"},
    {"POST /echo HTTP/1.1\r\n" H "Content-Length: 4194305\r\n\r\n", "413 ", "too large"},
};

static void test_table(void **state)
{
    static const size_t steps[] = {0, 1, 7};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (size_t k = 0; k < sizeof(steps) / sizeof(steps[0]); k++) {
            char *got = httpbed_talk(&bed, cases[i].text, steps[k]);
            if (strcmp(httpbed_statuses(got), cases[i].statuses) != 0)
                fail_msg("case %zu in steps of %zu: not '%s' but:\n%s", i, steps[k],
                         cases[i].statuses, got);
            httpbed_has(got, cases[i].part);
            assert_null(strstr(got, "smuggled"));
            free(got);
        }
    }
    HTTPBED_UNTIL(&bed, http_srv_conns(bed.srv) == 0);
}

/* The word to go on comes before the body, and only when the body is wanted. */
static void test_continue(void **state)
{
    static const char head[] = "PUT /take HTTP/1.1\r\n" H END "Expect: 100-continue\r\n"
                               "Content-Length: 3\r\n\r\n";
    struct buf in = BUF_INIT;
    (void)state;
    int fd = httpbed_connect(&bed);
    httpbed_send(&bed, fd, head, sizeof(head) - 1, 0);
    HTTPBED_UNTIL(&bed, httpbed_recv(&bed, fd, &in) || in.len > 0);
    assert_string_equal(buf_str(&in), "HTTP/1.1 100 Continue\r\n\r\n");
    buf_release(&in);
    httpbed_send(&bed, fd, "abc", 3, 0);
    char *got = httpbed_finish(&bed, fd);
    httpbed_has(got, "3 bytes");
    free(got);
}

static void test_sizes(void **state)
{
    struct buf b = BUF_INIT;
    (void)state;
    /* a head that never ends */
    buf_adds(&b, "GET /echo HTTP/1.1\r\n" H "X: ");
    for (int i = 0; i < 70000; i++)
        buf_addc(&b, 'a');
    char *got = httpbed_talk(&bed, buf_str(&b), 0);
    assert_string_equal(httpbed_statuses(got), "431 ");
    free(got);
    /* a body in chunks that grows over the limit, and one right at it */
    http_srv_limits(bed.srv, 0, 1000);
    buf_clear(&b);
    buf_adds(&b, CHUNKED);
    for (int i = 0; i < 40; i++)
        buf_adds(&b, "19\r\n0123456789012345678901234\r\n");
    buf_adds(&b, "0\r\n\r\n" LAST);
    got = httpbed_talk(&bed, buf_str(&b), 0);
    assert_string_equal(httpbed_statuses(got), "200 200 ");
    free(got);
    buf_clear(&b);
    buf_adds(&b, CHUNKED "3e9\r\n");
    for (int i = 0; i < 1001; i++)
        buf_addc(&b, 'a');
    buf_adds(&b, "\r\n0\r\n\r\n" SMUGGLED);
    got = httpbed_talk(&bed, buf_str(&b), 0);
    assert_string_equal(httpbed_statuses(got), "413 ");
    free(got);
    buf_release(&b);
}

/* However it drips, a head and a body in memory have one time limit for the whole. */
static void test_slow(void **state)
{
    static const char *const starts[] = {"GET /echo HTTP/1.1\r\n" H "X: ",
                                         "POST /echo HTTP/1.1\r\n" H
                                         "Content-Length: 9999\r\n\r\n"};
    (void)state;
    http_srv_work_ms(bed.srv, 150);
    for (size_t i = 0; i < 2; i++) {
        struct buf in = BUF_INIT;
        int fd = httpbed_connect(&bed);
        httpbed_send(&bed, fd, starts[i], strlen(starts[i]), 0);
        int64_t start = clock_mono_ms();
        HTTPBED_UNTIL(&bed, (httpbed_send(&bed, fd, "a", 1, 1), httpbed_recv(&bed, fd, &in)));
        assert_string_equal(httpbed_statuses(buf_str(&in)), "408 ");
        assert_true(clock_mono_ms() - start >= 100);
        buf_release(&in);
        close(fd);
    }
    /* a body that somebody takes may last as long as it moves */
    int fd = httpbed_connect(&bed);
    static const char head[] = "POST /take HTTP/1.1\r\n" H END "Content-Length: 40\r\n\r\n";
    int64_t end = clock_mono_ms() + 400;
    httpbed_send(&bed, fd, head, sizeof(head) - 1, 0);
    for (int i = 0; i < 40; i++) {
        httpbed_send(&bed, fd, "a", 1, 1);
        HTTPBED_UNTIL(&bed, clock_mono_ms() > end - (40 - i) * 10);
    }
    char *got = httpbed_finish(&bed, fd);
    httpbed_has(got, "40 bytes");
    free(got);
}

/* A client that has said all may close its side and still read. */
static void test_half_close(void **state)
{
    (void)state;
    int fd = httpbed_connect(&bed);
    httpbed_send(&bed, fd, "GET /echo?x HTTP/1.1\r\n" H "\r\n", 34, 0);
    shutdown(fd, SHUT_WR);
    char *got = httpbed_finish(&bed, fd);
    httpbed_has(got, "GET x ");
    free(got);
}

/* Connections that only wait make room for a new one; a busy one stays. */
static void test_full(void **state)
{
    struct buf in = BUF_INIT;
    (void)state;
    http_srv_limits(bed.srv, 2, 0);
    int busy = httpbed_connect(&bed);
    httpbed_send(&bed, busy, "GET /keep HTTP/1.1\r\n" H "\r\n", 31, 0);
    HTTPBED_UNTIL(&bed, bed.kept != NULL);
    int idle = httpbed_connect(&bed);
    HTTPBED_UNTIL(&bed, http_srv_conns(bed.srv) == 2);
    char *got = httpbed_talk(&bed, LAST, 0);
    httpbed_has(got, "last");
    free(got);
    HTTPBED_UNTIL(&bed, httpbed_recv(&bed, idle, &in));
    http_reply(bed.kept, 200, "\"done\"", 6);
    HTTPBED_UNTIL(&bed, httpbed_recv(&bed, busy, &in) || in.len > 0);
    httpbed_has(buf_str(&in), "\"done\"");
    buf_release(&in);
    close(idle);
    close(busy);
}

/* Only a TCP port looks at the name it is called by. */
static void test_guard(void **state)
{
    static const struct {
        const char *before, *after, *statuses;
    } hosts[] = {
        {"GET /echo HTTP/1.1\r\nHost: 127.0.0.1:", "\r\n" END "\r\n", "200 "},
        {"GET /echo HTTP/1.1\r\nHost: localhost:", "\r\n" END "\r\n", "200 "},
        {"GET /echo HTTP/1.1\r\nHost: evil.example:", "\r\n" END "\r\n", "403 "},
        {"GET /echo HTTP/1.1\r\nHost: 127.0.0.1:1", "\r\n" END "\r\n", "403 "},
        {"GET /echo HTTP/1.1\r\nHost: localhost:", "\r\nOrigin: null\r\n\r\n", "403 "},
        {"OPTIONS /echo HTTP/1.1\r\nHost: localhost:", "\r\n\r\n", "405 "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        char *text =
            xasprintf("%s%u%s", hosts[i].before, http_srv_port(bed.srv), hosts[i].after);
        char *got = httpbed_talk(&bed, text, 0);
        assert_string_equal(httpbed_statuses(got), hosts[i].statuses);
        free(got);
        free(text);
    }
}

static int up_tcp(void **state)
{
    (void)state;
    httpbed_up(&bed, true);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_table, up, down),
        cmocka_unit_test_setup_teardown(test_continue, up, down),
        cmocka_unit_test_setup_teardown(test_sizes, up, down),
        cmocka_unit_test_setup_teardown(test_slow, up, down),
        cmocka_unit_test_setup_teardown(test_half_close, up, down),
        cmocka_unit_test_setup_teardown(test_full, up, down),
        cmocka_unit_test_setup_teardown(test_guard, up_tcp, down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
