/* The strict head parser: a table of requests that must be refused or taken, the
 * rules against web pages, and chunk framing at every cut. */
#include <cct/local/http_head.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PORT 4711
#define H "Host: 127.0.0.1:4711\r\n"
#define GET "GET / HTTP/1.1\r\n"

struct head_case {
    const char *text;
    int status; /* 0: taken and let through; 1: more is needed; else refused */
};

static const struct head_case cases[] = {
    /* taken */
    {GET H "\r\n", 0},
    {"GET / HTTP/1.0\r\n" H "\r\n", 0},
    {GET "Host: localhost:4711\r\n\r\n", 0},
    {GET "HOST: LocalHost:4711\r\n\r\n", 0},
    {GET "host:127.0.0.1:4711\r\n\r\n", 0},
    {GET "host:\t127.0.0.1:4711 \t\r\n\r\n", 0},
    {"POST /v2/sandboxes HTTP/1.1\r\n" H "Content-Length: 2\r\n\r\n", 0},
    {"POST /v2/sandboxes HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n", 0},
    {"POST / HTTP/1.1\r\n" H "Transfer-Encoding: Chunked\r\n\r\n", 0},
    {"DELETE /sandboxes/i1 HTTP/1.1\r\n" H "Connection: keep-alive, close\r\n\r\n", 0},
    {"PUT /f HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: 1\r\n\r\n", 0},
    {GET H "X-Empty:\r\n\r\n", 0},
    {GET H "X-Utf8: caf\xc3\xa9\r\n\r\n", 0},
    {"GET /a?b=%2f&c=d HTTP/1.1\r\n" H "\r\n", 0},
    {GET H "Content-Length: 0\r\n\r\n", 0},
    /* not whole yet */
    {"", 1},
    {"GET", 1},
    {GET, 1},
    {GET "Host: 127.0", 1},
    {GET H, 1},
    {GET H "\r", 1},
    /* request line */
    {"\r\n" GET H "\r\n", 400},
    {"GET /\r\n" H "\r\n", 400},
    {"GET  / HTTP/1.1\r\n" H "\r\n", 400},
    {"GET / HTTP/1.1 \r\n" H "\r\n", 400},
    {"GET / HTTP/1.1 x\r\n" H "\r\n", 400},
    {" GET / HTTP/1.1\r\n" H "\r\n", 400},
    {"get / HTTP/1.1\r\n" H "\r\n", 400},
    {"G\tT / HTTP/1.1\r\n" H "\r\n", 400},
    {"GET / http/1.1\r\n" H "\r\n", 400},
    {"GET / HTTP/1.10\r\n" H "\r\n", 400},
    {"GET / HTTP/2.0\r\n" H "\r\n", 505},
    {"GET / HTTP/0.9\r\n" H "\r\n", 505},
    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400},
    {"GET * HTTP/1.1\r\n" H "\r\n", 400},
    {"GET http://127.0.0.1:4711/ HTTP/1.1\r\n" H "\r\n", 400},
    {"GET /#x HTTP/1.1\r\n" H "\r\n", 400},
    {"GET /\x7f HTTP/1.1\r\n" H "\r\n", 400},
    {"GET /\xc3\xa9 HTTP/1.1\r\n" H "\r\n", 400},
    {"ABCDEFGHIJKLMNOPQR / HTTP/1.1\r\n" H "\r\n", 400},
    {"\x16\x03\x01\x02", 400},
    /* line ends */
    {"GET / HTTP/1.1\n" H "\r\n", 400},
    {GET "Host: 127.0.0.1:4711\n\r\n", 400},
    {GET H "\n", 400},
    {GET H "X: a\rb\r\n\r\n", 400},
    {GET "Host: 127.0.0.1:4711\r\r\n\r\n", 400},
    {GET H "X: a\x01z\r\n\r\n", 400},
    /* header lines */
    {GET "Host : 127.0.0.1:4711\r\n\r\n", 400},
    {GET H "X-A\t: b\r\n\r\n", 400},
    {GET H " folded: x\r\n\r\n", 400},
    {GET H "X-A: b\r\n c\r\n\r\n", 400},
    {GET H "X-A: b\r\n\tc\r\n\r\n", 400},
    {GET H ": empty\r\n\r\n", 400},
    {GET H "nocolon\r\n\r\n", 400},
    {GET H "X(A): b\r\n\r\n", 400},
    {GET H "X-\xc3\xa9: b\r\n\r\n", 400},
    /* Host */
    {GET "\r\n", 400},
    {"GET / HTTP/1.0\r\n\r\n", 400},
    {GET "Host:\r\n\r\n", 400},
    {GET H H "\r\n", 400},
    {GET H "host: evil.example\r\n\r\n", 400},
    {GET "Host: evil.example:4711\r\n\r\n", 403},
    {GET "Host: 127.0.0.1\r\n\r\n", 403},
    {GET "Host: localhost\r\n\r\n", 403},
    {GET "Host: 127.0.0.1:80\r\n\r\n", 403},
    {GET "Host: 127.0.0.1:04711\r\n\r\n", 403},
    {GET "Host: 127.0.0.1:4711.evil.example\r\n\r\n", 403},
    {GET "Host: localhost.evil.example:4711\r\n\r\n", 403},
    {GET "Host: user@127.0.0.1:4711\r\n\r\n", 403},
    {GET "Host: [::1]:4711\r\n\r\n", 403},
    {GET "Host: 127.1:4711\r\n\r\n", 403},
    {GET "Host: 0.0.0.0:4711\r\n\r\n", 403},
    {GET "Host: 127.0.0.1:4711, 127.0.0.1:4711\r\n\r\n", 403},
    {GET "Host: 127.0.0.1:\r\n\r\n", 403},
    {GET "Host: 127.0.0.1:70247\r\n\r\n", 403},
    /* web pages */
    {GET H "Origin: http://evil.example\r\n\r\n", 403},
    {GET H "Origin: null\r\n\r\n", 403},
    {GET H "Origin:\r\n\r\n", 403},
    {GET H "Origin: http://127.0.0.1:4711\r\n\r\n", 403},
    {"OPTIONS / HTTP/1.1\r\n" H "\r\n", 405},
    {"TRACE / HTTP/1.1\r\n" H "\r\n", 405},
    {"CONNECT / HTTP/1.1\r\n" H "\r\n", 405},
    {GET H "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 400},
    /* framing */
    {"POST / HTTP/1.1\r\n" H "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" H "Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" H "Content-Length: 1, 1\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" H "Content-Length: +1\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" H "Content-Length: -1\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" H "Content-Length: 0x1\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" H "Content-Length: 1 1\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" H "Content-Length:\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" H "Content-Length: 9999999999999999999\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" H "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", 400},
    {"POST / HTTP/1.0\r\n" H "Transfer-Encoding: chunked\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" H "Transfer-Encoding: gzip\r\n\r\n", 501},
    {"POST / HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n", 501},
    {"POST / HTTP/1.1\r\n" H "Transfer-Encoding: xchunked\r\n\r\n", 501},
    {"POST / HTTP/1.1\r\n" H "Transfer-Encoding: \"chunked\"\r\n\r\n", 501},
    {"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nTransfer-Encoding: "
     "identity\r\n\r\n",
     400},
    {"POST / HTTP/1.1\r\n" H "Transfer-Encoding : chunked\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" H "Transfer-Encoding:\r\n chunked\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" H "Expect: 200-maybe\r\n\r\n", 417},
    /* rights and routing must not be ambiguous */
    {GET H "X-API-Key: a\r\nX-Api-Key: b\r\n\r\n", 400},
    {GET H "X-Access-Token: a\r\nx-access-token: b\r\n\r\n", 400},
    {GET H "E2b-Sandbox-Id: a\r\nE2B-SANDBOX-ID: b\r\n\r\n", 400},
    {GET H "E2b-Sandbox-Port: 1\r\nE2b-Sandbox-Port: 2\r\n\r\n", 400},
    {GET H "Content-Type: a\r\nContent-Type: b\r\n\r\n", 400},
};

static int verdict(const char *text, size_t len)
{
    static struct http_head h;
    char *copy = malloc(len + 1); /* exact size: an over-read is seen */
    memcpy(copy, text, len);
    long n = http_head_parse(&h, copy, len);
    int status = n == 0 ? 1 : 0;
    if (n < 0 || (n > 0 && !http_head_guard(&h, PORT))) {
        status = h.status;
        assert_non_null(h.why);
    }
    if (n > 0)
        assert_true((size_t)n <= len);
    free(copy);
    return status;
}

static void test_table(void **state)
{
    (void)state;
    size_t bad = 0;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int got = verdict(cases[i].text, strlen(cases[i].text));
        if (got != cases[i].status) {
            print_message("case %zu: got %d, not %d: %.60s\n", i, got, cases[i].status,
                          cases[i].text);
            bad++;
        }
    }
    assert_int_equal(bad, 0);
    assert_true(sizeof(cases) / sizeof(cases[0]) >= 100);
}

static void test_nul_bytes(void **state)
{
    (void)state;
    static const char text[] = GET H "X: a\0b\r\n\r\n";
    assert_int_equal(verdict(text, sizeof(text) - 1), 400);
    static const char line[] = "GET /\0 HTTP/1.1\r\n" H "\r\n";
    assert_int_equal(verdict(line, sizeof(line) - 1), 400);
}

/* A good head is never refused early, a bad one never taken, at any cut. */
static void test_every_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t len = strlen(cases[i].text);
        for (size_t cut = 0; cut < len; cut++) {
            int got = verdict(cases[i].text, cut);
            if (cases[i].status == 0)
                assert_int_equal(got, 1);
            else
                assert_int_not_equal(got, 0);
        }
    }
}

static void test_sizes(void **state)
{
    (void)state;
    size_t size = HTTP_HEAD_MAX + 100;
    char *big = malloc(size);
    memset(big, 'a', size);
    size_t n = (size_t)snprintf(big, size, "%s", GET H "X-Long: ");
    big[n] = 'a';
    assert_int_equal(verdict(big, size), 431);
    assert_int_equal(verdict(big, HTTP_HEAD_MAX - 1), 1);
    memset(big, 'a', size);
    n = (size_t)snprintf(big, size, "GET /");
    big[n] = 'a';
    memcpy(big + HTTP_TARGET_MAX + 100, " HTTP/1.1\r\n", 11);
    assert_int_equal(verdict(big, size), 414);
    n = (size_t)snprintf(big, size, "%s", GET H);
    for (int i = 0; i < 200; i++)
        n += (size_t)snprintf(big + n, size - n, "X-%d: y\r\n", i);
    n += (size_t)snprintf(big + n, size - n, "\r\n");
    assert_int_equal(verdict(big, n), 431);
    free(big);
}

static void test_fields(void **state)
{
    (void)state;
    static struct http_head h;
    static const char text[] = "POST /a/b?c=d HTTP/1.1\r\n" H "Content-Length: 12\r\n"
                               "Connection: Keep-Alive\r\nX-API-Key:  k \r\n\r\nrest";
    long n = http_head_parse(&h, text, sizeof(text) - 1);
    assert_int_equal(n, sizeof(text) - 1 - 4);
    assert_true(http_slice_is(&h.method, "POST"));
    assert_true(http_slice_is(&h.target, "/a/b?c=d"));
    assert_int_equal(h.content_length, 12);
    assert_true(h.keep_alive);
    assert_false(h.chunked);
    assert_true(http_slice_is(http_head_get(&h, "x-api-key"), "k"));
    assert_null(http_head_get(&h, "x-api"));
}

struct chunk_case {
    const char *text;
    int rc;
    const char *body;
};

static const struct chunk_case chunk_cases[] = {
    {"0\r\n\r\n", 1, ""},
    {"3\r\nabc\r\n0\r\n\r\n", 1, "abc"},
    {"A\r\n0123456789\r\n1\r\nx\r\n000\r\n\r\n", 1, "0123456789x"},
    {"3\r\nabc", 0, "abc"},
    {"3", 0, ""},
    {"+4\r\nabcd\r\n0\r\n\r\n", -1, ""},
    {"-1\r\n", -1, ""},
    {"0x3\r\nabc\r\n", -1, ""},
    {" 3\r\nabc\r\n", -1, ""},
    {"3 \r\nabc\r\n", -1, ""},
    {"3;ext=1\r\nabc\r\n0\r\n\r\n", 1, "abc"},
    {"3;a=\"b;c\"\r\nabc\r\n0;x\r\n\r\n", 1, "abc"},
    {"3;a\nabc\r\n", -1, ""},
    {"3;a\rabc\r\n", -1, ""},
    {"3\nabc\r\n", -1, ""},
    {"\r\n", -1, ""},
    {"3\r\nabcd\r\n", -1, "abc"},
    {"3\r\nabc\n0\r\n\r\n", -1, "abc"},
    {"FFFFFFFFFFF\r\n", -1, ""},
    {"0\r\nX-Trailer: 1\r\nY:\r\n\r\n", 1, ""},
    {"0\r\nX-Trailer: 1\r\n", 0, ""},
    {"0\r\nX-Trailer : 1\r\n\r\n", -1, ""},
    {"0\r\n folded: 1\r\n\r\n", -1, ""},
    {"0\r\n: 1\r\n\r\n", -1, ""},
    {"0\r\nno colon\r\n\r\n", -1, ""},
    {"0\r\nnocolon\r\n\r\n", -1, ""},
    {"0\r\nX: 1\n\r\n", -1, ""},
    {"0\r\n\n", -1, ""},
    {"g\r\n", -1, ""},
};

struct sink {
    char text[64];
    size_t len;
};

static bool take(void *arg, const char *p, size_t len)
{
    struct sink *s = arg;
    memcpy(s->text + s->len, p, len);
    s->len += len;
    return true;
}

static void test_chunks(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(chunk_cases) / sizeof(chunk_cases[0]); i++) {
        const char *text = chunk_cases[i].text;
        size_t len = strlen(text);
        for (size_t step = 1; step <= len; step++) {
            struct http_chunks c;
            struct sink s = {.len = 0};
            http_chunks_init(&c);
            int rc = 0;
            for (size_t at = 0, used; at < len && rc == 0; at += used)
                rc = http_chunks_scan(&c, text + at, len - at < step ? len - at : step, &used,
                                      take, &s);
            assert_int_equal(rc, chunk_cases[i].rc);
            if (rc >= 0) {
                assert_int_equal(s.len, strlen(chunk_cases[i].body));
                assert_memory_equal(s.text, chunk_cases[i].body, s.len);
            }
        }
    }
}

/* What follows the last chunk belongs to nobody. */
static void test_chunk_end(void **state)
{
    (void)state;
    struct http_chunks c;
    size_t used;
    http_chunks_init(&c);
    assert_int_equal(http_chunks_scan(&c, "1\r\na\r\n0\r\n\r\nGET /", 17, &used, NULL, NULL),
                     1);
    assert_int_equal(used, 11);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),     cmocka_unit_test(test_nul_bytes),
        cmocka_unit_test(test_every_cut), cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_fields),    cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_chunk_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
