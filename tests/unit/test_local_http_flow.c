/* The provider's HTTP server over time: streams and their brake, bodies in pieces,
 * files, clients that leave. */
#include "../lib/httpbed.h"
#include <cct/local/http_head.h>
#include <cct/util/clock.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

#define H "Host: x\r\n"
#define BIG (8u << 20)

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

static int ask(const char *text)
{
    int fd = httpbed_connect(&bed);
    httpbed_send(&bed, fd, text, strlen(text), 0);
    return fd;
}

static void stream(const char *a, const char *b)
{
    struct iovec v[2] = {{(void *)(uintptr_t)a, strlen(a)}, {(void *)(uintptr_t)b, strlen(b)}};
    http_stream_send(bed.kept, v, 2);
}

static void stream_end(void)
{
    http_stream_end(bed.kept);
    bed.kept = NULL;
}

/* --- streams --------------------------------------------------------------- */

static void test_stream(void **state)
{
    static const struct {
        const char *request, *want;
    } forms[] = {
        {"GET /stream HTTP/1.1\r\n" H "Connection: close\r\n\r\n",
         "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
         "5\r\nabcde\r\n1\r\nf\r\n0\r\n\r\n"},
        {"GET /stream HTTP/1.0\r\n" H "Connection: keep-alive\r\n\r\n",
         "Connection: close\r\n\r\nabcdef"},
        {"HEAD /stream HTTP/1.1\r\n" H "Connection: close\r\n\r\n",
         "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"},
        {"GET /stream HTTP/1.1\r\n" H "\r\nGET /echo?next HTTP/1.1\r\n" H
         "Connection: close\r\n\r\n",
         "1\r\nf\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        int fd = ask(forms[i].request);
        HTTPBED_UNTIL(&bed, bed.kept != NULL);
        stream("abc", "de");
        stream("", "");
        httpbed_turn(&bed);
        stream("f", "");
        stream_end();
        char *got = httpbed_finish(&bed, fd);
        httpbed_has(got, forms[i].want);
        if (i < 3)
            assert_string_equal(strstr(got, forms[i].want), forms[i].want);
        free(got);
    }
    assert_int_equal(bed.closes, 0);
    HTTPBED_UNTIL(&bed, http_srv_conns(bed.srv) == 0);
}

/* A peer that goes is told at once; what is sent to it afterwards goes nowhere. */
static void test_leave(void **state)
{
    (void)state;
    int fd = ask("GET /stream HTTP/1.1\r\n" H "\r\n");
    HTTPBED_UNTIL(&bed, bed.kept != NULL);
    close(fd);
    HTTPBED_UNTIL(&bed, bed.closes == 1);
    assert_null(bed.kept);
    fd = ask("GET /keep HTTP/1.1\r\n" H "\r\n");
    HTTPBED_UNTIL(&bed, bed.kept != NULL);
    close(fd);
    HTTPBED_UNTIL(&bed, bed.closes == 2);
    assert_null(bed.kept->conn);
    http_reply_error(bed.kept, 500, "nobody hears this");
    HTTPBED_UNTIL(&bed, http_srv_conns(bed.srv) == 0);
    /* with bytes on the way, in the middle of an answer */
    fd = ask("GET /stream HTTP/1.1\r\n" H "\r\n");
    bed.kept = NULL;
    HTTPBED_UNTIL(&bed, bed.kept != NULL);
    char *big = xcalloc(1, BIG);
    memset(big, 'x', BIG - 1);
    stream(big, "");
    httpbed_turn(&bed);
    close(fd);
    HTTPBED_UNTIL(&bed, bed.closes == 3);
    free(big);
}

/* What nobody reads waits here, and the sender is told when it is gone. */
static void test_brake(void **state)
{
    struct buf in = BUF_INIT;
    (void)state;
    int fd = ask("GET /stream HTTP/1.0\r\n" H "\r\n");
    HTTPBED_UNTIL(&bed, bed.kept != NULL);
    char *big = xcalloc(1, BIG + 1);
    memset(big, 'x', BIG);
    HTTPBED_UNTIL(&bed, http_stream_unsent(bed.kept) == 0);
    int drains = bed.drains;
    stream(big, "");
    for (int i = 0; i < 20; i++)
        httpbed_turn(&bed);
    assert_true(http_stream_unsent(bed.kept) > BIG / 2);
    assert_int_equal(bed.drains, drains);
    HTTPBED_UNTIL(&bed, (httpbed_recv(&bed, fd, &in), bed.drains > drains));
    assert_int_equal(http_stream_unsent(bed.kept), 0);
    stream_end();
    HTTPBED_UNTIL(&bed, httpbed_recv(&bed, fd, &in));
    assert_string_equal(strstr(buf_str(&in), "\r\n\r\n") + 4, big);
    buf_release(&in);
    free(big);
    close(fd);
}

/* --- bodies in pieces ------------------------------------------------------ */

static void test_pieces(void **state)
{
    static const char chunked[] = "POST /take HTTP/1.1\r\n" H "Connection: close\r\n"
                                  "Transfer-Encoding: chunked\r\n\r\n"
                                  "3\r\nabc\r\n4;x=y\r\ndefg\r\n1\r\nh\r\n0\r\nT: v\r\n\r\n";
    static const char whole[] = "POST /take HTTP/1.1\r\n" H "Connection: close\r\n"
                                "Content-Length: 8\r\n\r\nabcdefgh";
    (void)state;
    for (size_t step = 1; step < sizeof(chunked); step += step < 8 ? 1 : 13) {
        char *a = httpbed_talk(&bed, chunked, step);
        httpbed_has(a, "8 bytes");
        assert_string_equal(buf_str(&bed.got), "abcdefgh");
        char *b = httpbed_talk(&bed, whole, step);
        assert_string_equal(a, b);
        assert_string_equal(buf_str(&bed.got), "abcdefgh");
        free(a);
        free(b);
    }
    assert_int_equal(bed.cuts, 0);
}

/* An answer in the middle is the last word; the rest is dropped, and nobody is told
 * of an end or a cut any more. */
static void test_refusal(void **state)
{
    static const char *const heads[] = {
        "POST /refuse HTTP/1.1\r\n" H "Content-Length: 8388608\r\n\r\n",
        "POST /refuse HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n800000\r\n"};
    char *big = xcalloc(1, BIG);
    (void)state;
    bed.refuse_at = 100000;
    for (size_t i = 0; i < 2; i++) {
        int fd = ask(heads[i]);
        httpbed_send(&bed, fd, big, BIG, 0);
        char *got = httpbed_finish(&bed, fd);
        httpbed_has(got, "HTTP/1.1 507 ");
        httpbed_has(got, "Connection: close");
        assert_true(bed.got.len >= 100000 && bed.got.len < 300000);
        free(got);
    }
    assert_int_equal(bed.cuts, 0);
    assert_int_equal(bed.served, 0);
    free(big);
}

static void test_cut(void **state)
{
    static const char *const bodies[] = {
        "POST /take HTTP/1.1\r\n" H "Content-Length: 10\r\n\r\nabc",
        "POST /take HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n5\r\nabc",
        "POST /take HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n3\r\nabcX"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        int fd = ask(bodies[i]);
        HTTPBED_UNTIL(&bed, bed.got.len == 3 || bed.cuts == i + 1);
        close(fd);
        HTTPBED_UNTIL(&bed, bed.cuts == i + 1 && http_srv_conns(bed.srv) == 0);
        buf_clear(&bed.got);
    }
    assert_int_equal(bed.served, 0);
    assert_null(bed.kept);
}

/* While it is paused, a client can push only what fits into sockets and one read. */
static void test_pause(void **state)
{
    static const char head[] = "POST /pause HTTP/1.1\r\n" H "Connection: close\r\n"
                               "Content-Length: 8388608\r\n\r\n";
    char *big = xcalloc(1, BIG);
    size_t sent = 0;
    (void)state;
    int fd = ask(head);
    HTTPBED_UNTIL(&bed, bed.kept != NULL);
    for (int i = 0; i < 50; i++) {
        ssize_t n = send(fd, big, BIG, MSG_NOSIGNAL);
        sent += n > 0 ? (size_t)n : 0;
        httpbed_turn(&bed);
    }
    assert_int_equal(bed.pieces, 1);
    assert_true(bed.got.len > 0 && bed.got.len <= HTTP_HEAD_MAX + 1024);
    assert_true(sent < BIG / 2);
    while (sent < BIG) {
        ssize_t n = send(fd, big, BIG - sent, MSG_NOSIGNAL);
        sent += n > 0 ? (size_t)n : 0;
        if (bed.kept != NULL)
            http_body_resume(bed.kept);
        httpbed_turn(&bed);
    }
    HTTPBED_UNTIL(&bed, bed.kept == NULL || (http_body_resume(bed.kept), false));
    char *got = httpbed_finish(&bed, fd);
    httpbed_has(got, "8388608 bytes");
    free(got);
    free(big);
}

/* --- files ----------------------------------------------------------------- */

static void file_make(size_t len)
{
    char path[] = "/tmp/cct-http-file-XXXXXX";
    char *big = xcalloc(1, len);
    for (size_t i = 0; i < len; i++)
        big[i] = (char)('a' + i % 26);
    bed.file_fd = mkstemp(path);
    assert_true(bed.file_fd >= 0);
    assert_int_equal(write(bed.file_fd, big, len), len);
    unlink(path);
    free(big);
}

static void test_file(void **state)
{
    (void)state;
    file_make(BIG);
    bed.file_at = 26;
    bed.file_len = 5;
    char *got = httpbed_talk(&bed,
                             "GET /file HTTP/1.1\r\n" H "\r\nHEAD /file HTTP/1.1\r\n" H
                             "\r\nGET /echo?z HTTP/1.1\r\n" H "Connection: close\r\n\r\n",
                             0);
    httpbed_has(got, "Content-Length: 5\r\n\r\nabcdeHTTP/1.1 206 ");
    httpbed_has(got, "Content-Length: 5\r\n\r\nHTTP/1.1 200 ");
    free(got);
    /* a reader that begins late gets all of it */
    bed.file_at = 0;
    bed.file_len = BIG;
    struct buf in = BUF_INIT;
    int fd = ask("GET /file HTTP/1.1\r\n" H "Connection: close\r\n\r\n");
    for (int i = 0; i < 20; i++)
        httpbed_turn(&bed);
    HTTPBED_UNTIL(&bed, httpbed_recv(&bed, fd, &in));
    const char *body = strstr(buf_str(&in), "\r\n\r\n") + 4;
    assert_int_equal(in.len - (size_t)(body - in.p), BIG);
    assert_int_equal(body[BIG - 1], 'a' + (BIG - 1) % 26);
    buf_release(&in);
    close(fd);
}

/* The promise cannot be kept: the reader must see that something is missing. */
static void test_file_shrinks(void **state)
{
    (void)state;
    file_make(BIG);
    bed.file_len = BIG;
    int fd = ask("GET /file HTTP/1.1\r\n" H "\r\n");
    for (int i = 0; i < 10; i++)
        httpbed_turn(&bed);
    assert_int_equal(ftruncate(bed.file_fd, BIG / 2), 0);
    struct buf in = BUF_INIT;
    HTTPBED_UNTIL(&bed, httpbed_recv(&bed, fd, &in));
    assert_true(in.len < BIG);
    HTTPBED_UNTIL(&bed, http_srv_conns(bed.srv) == 0);
    buf_release(&in);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_stream, up, down),
        cmocka_unit_test_setup_teardown(test_leave, up, down),
        cmocka_unit_test_setup_teardown(test_brake, up, down),
        cmocka_unit_test_setup_teardown(test_pieces, up, down),
        cmocka_unit_test_setup_teardown(test_refusal, up, down),
        cmocka_unit_test_setup_teardown(test_cut, up, down),
        cmocka_unit_test_setup_teardown(test_pause, up, down),
        cmocka_unit_test_setup_teardown(test_file, up, down),
        cmocka_unit_test_setup_teardown(test_file_shrinks, up, down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
