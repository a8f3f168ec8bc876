/* Ports that programs open in sandboxes, through the traffic port: they are
 * reached, and nothing but they; tokens, waking, signed URLs without an id. */
#include "../lib/portbed.h"
#include "../lib/portserver.h"
#include "../lib/rawhttp.h"

#include <cct/local/files_parse.h>
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <arpa/inet.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define PARALLEL 200
#define BIG (10u << 20)
#define HUGE (200u << 20)
#define TRUST "Content-Type: application/octet-stream\r\n"

static struct portbed_box own; /* its server: 127.0.0.1, 0.0.0.0, ::1, :: */

static void expect_hello(const struct portbed_box *b, int port, const char *headers)
{
    char want[32];
    struct plainhttp a = portbed_ask(b, port, "GET /hello", headers);
    snprintf(want, sizeof(want), "hello %d", port);
    if (a.status != 200 || strcmp(a.body, want) != 0)
        fail_msg("port %d: %d %s", port, a.status, buf_str(&a.raw));
    buf_release(&a.raw);
}

/* 502 in the shape of the cloud's proxy, which names the port. */
static void expect_closed(const struct portbed_box *b, int port)
{
    struct plainhttp a = portbed_ask(b, port, "GET /hello", "");
    if (a.status != 502)
        fail_msg("port %d: %d %s", port, a.status, buf_str(&a.raw));
    struct cJSON *j = json_parse(a.body, a.body_len, NULL);
    assert_int_equal(json_i64(j, "code", 0), 502);
    assert_int_equal(json_i64(j, "port", 0), port);
    assert_string_equal(json_str(j, "sandboxId", ""), b->id);
    assert_true(json_str(j, "message", "")[0] != '\0');
    json_free(j);
    buf_release(&a.raw);
}

static int listen_here(int *port)
{
    struct sockaddr_in sa = {.sin_family = AF_INET};
    socklen_t len = sizeof(sa);
    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&sa, len), 0);
    assert_int_equal(listen(fd, 8), 0);
    getsockname(fd, (struct sockaddr *)&sa, &len);
    *port = ntohs(sa.sin_port);
    return fd;
}

/* --- reaching them ------------------------------------------------------------ */

static void test_own_ports(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        if (own.ports[i]) /* 0: no such address on this machine */
            expect_hello(&own, own.ports[i], "");
    expect_hello(&own, own.ports[0], "Connection: keep-alive\r\n");
    assert_true(own.ports[0] > 0 && own.ports[1] > 0);
    struct plainhttp a = portbed_ask(&own, own.ports[0], "PATCH /head?x=%20&y",
                                     "X-Mine: a b\r\nE2b-Traffic-Access-Token: t\r\n"
                                     "X-CC-Control: t\r\nConnection: keep-alive\r\n");
    assert_int_equal(a.status, 200);
    assert_true(str_starts(a.body, "PATCH /head?x=%20&y HTTP/1.1\r\n"));
    assert_non_null(strstr(a.body, "\r\nX-Mine: a b\r\n"));
    assert_non_null(strstr(a.body, "\r\nConnection: close\r\n"));
    assert_null(strcasestr(a.body, "traffic-access"));
    assert_null(strcasestr(a.body, "x-cc-control"));
    buf_release(&a.raw);
}

/* The port of nobody, of the host, of the provider, of another sandbox. */
static void test_only_own(void **state)
{
    (void)state;
    struct portbed_box other;
    int port, fd = listen_here(&port);
    expect_closed(&own, port);
    expect_closed(&own, portbed->traffic);
    expect_closed(&own, portbed->control);
    portbed_make(&other, "", "127.0.0.1 ::");
    expect_hello(&other, other.ports[0], "");
    expect_closed(&own, other.ports[0]);
    expect_closed(&other, own.ports[0]);
    if (own.ports[3]) {
        expect_closed(&other, own.ports[3]);
        expect_closed(&own, other.ports[1]);
    }
    portbed_drop(&other);
    close(fd);
    expect_closed(&own, port);
}

/* A socket of the host is nearer to 127.0.0.1 than the sandbox's on [::]: the
 * connection must not end up there. */
static void test_shadowed(void **state)
{
    (void)state;
    struct portbed_box b;
    int port, fd = listen_here(&port);
    char address[32];
    snprintf(address, sizeof(address), "6only@%d", port);
    portbed_make(&b, "", address);
    if (b.ports[0])
        expect_hello(&b, port, "");
    else
        expect_closed(&b, port);
    struct pollfd p = {fd, POLLIN, 0};
    assert_int_equal(poll(&p, 1, 0), 0);
    close(fd);
    portbed_drop(&b);
}

static void test_no_internet(void **state)
{
    (void)state;
    struct portbed_box b;
    if (!portbed->isolated)
        skip();
    portbed_make(&b, ",\"allow_internet_access\":false", "127.0.0.1 0.0.0.0 ::");
    expect_hello(&b, b.ports[0], "");
    expect_hello(&b, b.ports[1], "");
    if (b.ports[2])
        expect_hello(&b, b.ports[2], "");
    expect_closed(&b, own.ports[0]);
    expect_closed(&b, portbed->control);
    portbed_drop(&b);
}

/* What runs as root does so in a user namespace of its own. */
static void test_root_inside(void **state)
{
    (void)state;
    struct portbed_box b;
    if (!portbed->isolated)
        skip();
    portbed_make(&b, "", "127.0.0.1");
    portbed_serve(&b, "root", "127.0.0.1");
    expect_hello(&b, b.ports[0], "");
    portbed_drop(&b);
}

static void test_unsafe(void **state)
{
    (void)state;
    struct localbed *first = portbed;
    struct portbed_box b;
    portbed = localbed_new_unsafe();
    assert_non_null(portbed);
    portbed_make(&b, "", "127.0.0.1 0.0.0.0");
    expect_hello(&b, b.ports[0], "");
    expect_hello(&b, b.ports[1], "");
    expect_closed(&b, own.ports[0]);
    expect_closed(&b, portbed->control);
    localbed_free(portbed);
    portbed = first;
}

/* --- bytes ---------------------------------------------------------------------- */

static void test_bodies(void **state)
{
    (void)state;
    char *body = xcalloc(1, BIG), text[96];
    struct buf b = BUF_INIT, chunks = BUF_INIT;
    portserver_fill(body, BIG, 0);
    snprintf(text, sizeof(text), "%d", own.ports[0]);
    char length[64];
    snprintf(length, sizeof(length), "Content-Length: %u\r\n", BIG);
    portbed_request(&b, own.id, text, "POST /sum", length);
    buf_add(&b, body, BIG);
    struct plainhttp a = plainhttp_exchange(portbed->traffic, b.p, b.len);
    snprintf(text, sizeof(text), "%u %llx", BIG,
             (unsigned long long)portserver_hash(0, body, BIG));
    assert_string_equal(a.body, text);
    buf_release(&a.raw);

    buf_addf(&chunks, "%x\r\n", BIG);
    buf_add(&chunks, body, BIG);
    buf_adds(&chunks, "\r\n3\r\nabc\r\n0\r\n\r\n");
    snprintf(text, sizeof(text), "%d", own.ports[0]);
    buf_clear(&b);
    portbed_request(&b, own.id, text, "PUT /sum", "Transfer-Encoding: chunked\r\n");
    buf_add(&b, chunks.p, chunks.len);
    a = plainhttp_exchange(portbed->traffic, b.p, b.len);
    snprintf(text, sizeof(text), "%zu %llx", chunks.len,
             (unsigned long long)portserver_hash(0, chunks.p, chunks.len));
    /* PUT is served as any other */
    assert_string_equal(a.body, text);
    buf_release(&a.raw);

    snprintf(text, sizeof(text), "GET /bytes/%u", BIG);
    a = portbed_ask(&own, own.ports[0], text, "");
    assert_int_equal(a.status, 200);
    assert_int_equal(a.body_len, BIG);
    assert_memory_equal(a.body, body, BIG);
    buf_release(&a.raw);
    buf_release(&b);
    buf_release(&chunks);
    free(body);
}

/* A body that nobody takes does not keep the refusal from its sender. */
static void test_refused_bodies(void **state)
{
    (void)state;
    static const struct {
        const char *port;
        int status;
    } cases[] = {{"1", 502}, {"0", 400}, {"49983", 401}};
    char *body = xcalloc(1, BIG), length[64];
    snprintf(length, sizeof(length), "Content-Length: %u\r\n", BIG);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct buf b = BUF_INIT;
        portbed_request(&b, own.id, cases[i].port, "POST /files?path=x", length);
        buf_add(&b, body, BIG);
        struct plainhttp a = plainhttp_exchange(portbed->traffic, b.p, b.len);
        if (a.status != cases[i].status)
            fail_msg("port %s: %d", cases[i].port, a.status);
        buf_release(&a.raw);
        buf_release(&b);
    }
    free(body);
}

static void test_events(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    int fd = portbed_begin(&own, own.ports[0], "GET /events", "");
    plainhttp_until(fd, &b, "data: first\n\n");
    struct pollfd p = {fd, POLLIN, 0};
    assert_int_equal(poll(&p, 1, 50), 0); /* stays open */
    close(fd);
    buf_release(&b);
    expect_hello(&own, own.ports[0], "");
}

static void test_slow_reader(void **state)
{
    (void)state;
    static char block[1 << 20], want[1 << 20];
    long before = rawhttp_status_of(portbed->pid, "VmRSS:");
    struct buf head = BUF_INIT;
    int fd = portbed_begin(&own, own.ports[0], "GET /bytes/209715200", ""), now = 0, last = -1;
    while (now != last || now == 0) { /* until nothing more moves */
        last = now;
        poll(NULL, 0, 100);
        ioctl(fd, FIONREAD, &now);
    }
    char c;
    while (!strstr(buf_str(&head), "\r\n\r\n")) {
        assert_int_equal(read(fd, &c, 1), 1);
        buf_addc(&head, c);
    }
    uint64_t at = 0;
    ssize_t n;
    while ((n = read(fd, block, sizeof(block))) > 0) {
        portserver_fill(want, (size_t)n, at);
        assert_memory_equal(block, want, (size_t)n);
        at += (uint64_t)n;
    }
    close(fd);
    buf_release(&head);
    assert_int_equal(at, HUGE);
    long grown = rawhttp_status_of(portbed->pid, "VmHWM:") - before;
    if (grown > 16 * 1024)
        fail_msg("the provider grew by %ld KiB", grown);
}

static void test_parallel(void **state)
{
    (void)state;
    int fds[PARALLEL];
    for (int i = 0; i < PARALLEL; i++)
        fds[i] = portbed_begin(&own, own.ports[i % 2], "GET /hello", "");
    for (int i = 0; i < PARALLEL; i++) {
        struct plainhttp a = plainhttp_finish(fds[i]);
        if (a.status != 200)
            fail_msg("connection %d: %s", i, buf_str(&a.raw));
        buf_release(&a.raw);
    }
}

/* --- the end of one side -------------------------------------------------------- */

static void expect_fds(int want)
{
    int64_t end = clock_mono_ms() + PLAINHTTP_WAIT_MS;
    while (rawhttp_fds_of(portbed->pid) > want) {
        if (clock_mono_ms() > end)
            fail_msg("%d descriptors, not %d", rawhttp_fds_of(portbed->pid), want);
        poll(NULL, 0, 10);
    }
}

static void test_silent(void **state)
{
    (void)state;
    struct plainhttp a = portbed_ask(&own, own.ports[0], "GET /close", "");
    assert_int_equal(a.status, 502);
    assert_non_null(strstr(a.body, "\"port\":"));
    buf_release(&a.raw);
}

static void kill_in_use(const char *options)
{
    struct portbed_box b;
    struct buf seen = BUF_INIT;
    int fds[8], before = rawhttp_fds_of(portbed->pid);
    portbed_make(&b, options, "127.0.0.1");
    for (size_t i = 0; i < 8; i++) {
        fds[i] = portbed_begin(&b, b.ports[0], "GET /events", "");
        buf_clear(&seen);
        plainhttp_until(fds[i], &seen, "data: first\n\n");
    }
    portbed_drop(&b);
    for (size_t i = 0; i < 8; i++) {
        struct plainhttp a = plainhttp_finish(fds[i]);
        buf_release(&a.raw);
    }
    buf_release(&seen);
    struct plainhttp a = portbed_ask(&b, b.ports[0], "GET /hello", "");
    assert_int_equal(a.status, 502);
    assert_null(strstr(a.body, "\"port\":"));
    buf_release(&a.raw);
    expect_fds(before);
}

static void test_killed(void **state)
{
    (void)state;
    kill_in_use("");
    kill_in_use(",\"allow_internet_access\":false");
}

static void test_client_leaves(void **state)
{
    (void)state;
    int before = rawhttp_fds_of(portbed->pid), fds[32];
    for (int i = 0; i < 32; i++)
        fds[i] =
            portbed_begin(&own, own.ports[0], i % 2 ? "GET /events" : "GET /bytes/9000000", "");
    for (int i = 0; i < 32; i++)
        close(fds[i]);
    expect_fds(before);
    expect_hello(&own, own.ports[0], "");
}

/* --- rules ---------------------------------------------------------------------- */

static void test_token(void **state)
{
    (void)state;
    struct portbed_box b;
    char right[128], twice[256], wrong[128];
    assert_string_equal(own.traffic_token, "");
    portbed_make(&b, ",\"network\":{\"allowPublicTraffic\":false}", "127.0.0.1");
    assert_int_equal(strlen(b.traffic_token), 64);
    assert_string_not_equal(b.traffic_token, b.token);
    snprintf(right, sizeof(right), "e2b-traffic-access-token: %s\r\n", b.traffic_token);
    snprintf(twice, sizeof(twice), "%s%s", right, right);
    snprintf(wrong, sizeof(wrong), "e2b-traffic-access-token: %s\r\n", b.token);
    expect_hello(&b, b.ports[0], right);
    struct plainhttp a = portbed_ask(&b, b.ports[0], "GET /hello", "");
    assert_int_equal(a.status, 403);
    assert_non_null(strstr(a.body, "\"code\":403"));
    buf_release(&a.raw);
    assert_int_equal(portbed_status(&b, b.ports[0], "GET /hello", wrong), 403);
    assert_int_equal(portbed_status(&b, b.ports[0], "GET /hello", twice), 400);
    assert_int_equal(portbed_status(&b, 1, "GET /hello", ""), 403); /* open or not */
    assert_int_equal(portbed_status(&b, 49983, "GET /health", ""), 204);

    localbed_kill(portbed);
    assert_true(localbed_start(portbed));
    assert_int_equal(portbed_status(&b, b.ports[0], "GET /hello", ""), 403);
    expect_hello(&b, b.ports[0], right);
    char path[64];
    struct portbed_box again;
    snprintf(path, sizeof(path), "/sandboxes/%s/connect", b.id);
    portbed_take(&again, path, "{\"timeout\":60}", 200);
    assert_string_equal(again.traffic_token, b.traffic_token);
    portbed_drop(&b);
    assert_int_equal(
        portbed_control_status("POST", "", "",
                               "{\"templateID\":\"base\",\"timeout\":9,\"network\":"
                               "{\"allowPublicTraffic\":false}}"),
        400);
}

static void test_masked_host(void **state)
{
    (void)state;
    struct portbed_box b;
    char want[64];
    portbed_make(&b, ",\"network\":{\"maskRequestHost\":\"app.test:${PORT}\"}", "127.0.0.1");
    struct plainhttp a = portbed_ask(&b, b.ports[0], "GET /head", "");
    snprintf(want, sizeof(want), "\r\nHost: app.test:%d\r\n", b.ports[0]);
    assert_non_null(strstr(a.body, want));
    assert_null(strstr(a.body, "127.0.0.1"));
    buf_release(&a.raw);
    portbed_drop(&b);
    assert_int_equal(
        portbed_control_status("POST", "", "",
                               "{\"templateID\":\"base\",\"timeout\":9,\"network\":"
                               "{\"maskRequestHost\":\"a\\r\\nX: b\"}}"),
        400);
}

static void test_wake(void **state)
{
    (void)state;
    struct portbed_box b;
    portbed_make(&b, ",\"autoPause\":true,\"autoResume\":{\"enabled\":true}", "127.0.0.1");
    assert_int_equal(portbed_control_status("POST", b.id, "/pause", NULL), 204);
    expect_hello(&b, b.ports[0], "");
    portbed_drop(&b);
    portbed_make(&b, "", "127.0.0.1");
    assert_int_equal(portbed_control_status("POST", b.id, "/pause", NULL), 204);
    struct plainhttp a = portbed_ask(&b, b.ports[0], "GET /hello", "");
    assert_int_equal(a.status, 502);
    assert_non_null(strstr(a.body, "paused"));
    buf_release(&a.raw);
    assert_int_equal(portbed_control_status("POST", b.id, "/resume", "{\"timeout\":60}"), 201);
    expect_hello(&b, b.ports[0], "");
    portbed_drop(&b);
}

static void test_hostile(void **state)
{
    (void)state;
    static const char *const ports[] = {"0",      "65536", "80,81", "-1",     "+80",
                                        "080",    "8 0",   "1e3",   "0x50",   "",
                                        "49983x", "80;81", "99999", "000080", "0000801"};
    static const char *const headers[] = {
        "E2b-Sandbox-Port: 80\r\n", "E2b-Sandbox-Id: iaaaaaaaaaaaaaaaaaaaa\r\n",
        "Host: evil.test\r\n",      "Content-Length: 0\r\nContent-Length: 0\r\n",
        "Upgrade: websocket\r\n",
    };
    static const char *const hosts[] = {
        "evil.test:%d",          "127.0.0.1:%d@evil.test",  "127.0.0.1",
        "3000-own.localhost:%d", "127.0.0.1:%d, evil.test", "[::1]:%d",
        "localhost.evil.test:%d"};
    struct buf b = BUF_INIT;
    for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++) {
        buf_clear(&b);
        portbed_request(&b, own.id, ports[i], "GET /hello", "");
        struct plainhttp a = plainhttp_exchange(portbed->traffic, b.p, b.len);
        if (a.status != 400)
            fail_msg("port \"%s\": %d", ports[i], a.status);
        buf_release(&a.raw);
    }
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
        assert_int_equal(portbed_status(&own, own.ports[0], "GET /hello", headers[i]), 400);
    assert_int_equal(portbed_status(&own, own.ports[0], "GET /hello", "Origin: null\r\n"), 403);
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        char host[64];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(host, sizeof(host), hosts[i], portbed->traffic);
#pragma GCC diagnostic pop
        buf_clear(&b);
        buf_addf(&b,
                 "GET /hello HTTP/1.1\r\nHost: %s\r\nE2b-Sandbox-Id: %s\r\n"
                 "E2b-Sandbox-Port: %d\r\n\r\n",
                 host, own.id, own.ports[0]);
        struct plainhttp a = plainhttp_exchange(portbed->traffic, b.p, b.len);
        if (a.status != 403)
            fail_msg("Host \"%s\": %d", host, a.status);
        buf_release(&a.raw);
    }
    buf_release(&b);
}

/* --- signed URLs without an id --------------------------------------------------- */

static int signed_status(const char *method, const struct portbed_box *b, const char *path,
                         const char *op, const char *until, const char *body, struct buf *out)
{
    char *sig = files_signature(path, op, "", b->token, *until ? until : NULL);
    struct buf text = BUF_INIT;
    buf_addf(&text, "%s /files?path=%s&signature=", method, path);
    for (const char *p = sig; *p; p++)
        buf_addf(&text, *p == '+' || *p == '/' ? "%%%02X" : "%c", *p);
    if (*until)
        buf_addf(&text, "&signature_expiration=%s", until);
    buf_addf(&text, " HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" TRUST "Content-Length: %zu\r\n\r\n%s",
             portbed->traffic, strlen(body), body);
    struct plainhttp a = plainhttp_exchange(portbed->traffic, text.p, text.len);
    if (out)
        buf_add(out, a.body, a.body_len);
    buf_release(&a.raw);
    buf_release(&text);
    free(sig);
    return a.status;
}

static void test_signed(void **state)
{
    (void)state;
    struct portbed_box other, stranger = own;
    struct buf got = BUF_INIT;
    portbed_take(&other, "/v2/sandboxes", "{\"templateID\":\"base\",\"timeout\":60}", 201);
    assert_int_equal(signed_status("POST", &own, "a.txt", "write", "", "mine", NULL), 200);
    assert_int_equal(signed_status("POST", &other, "a.txt", "write", "", "other's", NULL), 200);
    assert_int_equal(signed_status("GET", &own, "a.txt", "read", "", "", &got), 200);
    assert_string_equal(buf_str(&got), "mine");
    buf_clear(&got);
    assert_int_equal(signed_status("GET", &other, "a.txt", "read", "9999999999", "", &got),
                     200);
    assert_string_equal(buf_str(&got), "other's");
    assert_int_equal(signed_status("GET", &own, "a.txt", "read", "1000000000", "", NULL), 400);
    assert_int_equal(signed_status("GET", &own, "a.txt", "write", "", "", NULL), 400);
    assert_int_equal(signed_status("PUT", &own, "a.txt", "write", "", "x", NULL), 400);
    stranger.token[0] ^= 1;
    assert_int_equal(signed_status("GET", &stranger, "a.txt", "read", "", "", NULL), 400);
    portbed_drop(&other);
    assert_int_equal(signed_status("GET", &other, "a.txt", "read", "", "", NULL), 400);
    buf_release(&got);
}

static int group_up(void **state)
{
    (void)state;
    portbed = localbed_new();
    assert_non_null(portbed);
    portbed_make(&own, "", "127.0.0.1 0.0.0.0 ::1 ::");
    return 0;
}

static int group_down(void **state)
{
    (void)state;
    localbed_free(portbed);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_ports),   cmocka_unit_test(test_only_own),
        cmocka_unit_test(test_shadowed),    cmocka_unit_test(test_no_internet),
        cmocka_unit_test(test_root_inside), cmocka_unit_test(test_unsafe),
        cmocka_unit_test(test_bodies),      cmocka_unit_test(test_refused_bodies),
        cmocka_unit_test(test_events),      cmocka_unit_test(test_slow_reader),
        cmocka_unit_test(test_parallel),    cmocka_unit_test(test_silent),
        cmocka_unit_test(test_killed),      cmocka_unit_test(test_client_leaves),
        cmocka_unit_test(test_token),       cmocka_unit_test(test_masked_host),
        cmocka_unit_test(test_wake),        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_signed),
    };
    if (argc > 2 && strcmp(argv[1], "--port-server") == 0)
        return portserver_main(argc - 2, argv + 2);
    /* ASan keeps freed memory for a while: too much for a test of memory */
    setenv("ASAN_OPTIONS", "quarantine_size_mb=2:detect_leaks=1", 1);
    setenv("UBSAN_OPTIONS", "halt_on_error=1", 0);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, group_up, group_down);
}
