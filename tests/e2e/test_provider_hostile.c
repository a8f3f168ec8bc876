/* Clients and accidents that wish the local provider ill: connections that only
 * hold on, answers nobody reads, bodies without a token, lost records, creates
 * that race with the stop. */
#include "../lib/localbed.h"
#include "../lib/plainhttp.h"
#include "../lib/rawhttp.h"
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS 20000
#define MANY 900

static struct localbed *bed;

/* Status of the answer that comes next; 0 when there is none. */
static int read_status(int fd)
{
    struct buf b = BUF_INIT;
    char text[4096];
    struct pollfd p = {fd, POLLIN, 0};
    while (!strstr(buf_str(&b), "\r\n\r\n") && poll(&p, 1, WAIT_MS) == 1) {
        ssize_t n = read(fd, text, sizeof(text));
        if (n <= 0)
            break;
        buf_add(&b, text, (size_t)n);
    }
    int status = str_starts(buf_str(&b), "HTTP/1.") && b.len > 12 ? atoi(b.p + 9) : 0;
    buf_release(&b);
    return status;
}

static int ask(int port, const char *text)
{
    int fd = rawhttp_dial(port);
    plainhttp_send(fd, text, strlen(text));
    int status = read_status(fd);
    close(fd);
    return status;
}

static int control(const char *method, const char *path, const char *json)
{
    struct plainhttp a = plainhttp_control(bed, method, path, json);
    buf_release(&a.raw);
    return a.status;
}

static char *create(void)
{
    struct plainhttp a = plainhttp_control(bed, "POST", "/v2/sandboxes",
                                           "{\"templateID\":\"base\",\"timeout\":120}");
    if (a.status != 201)
        fail_msg("create: %s", buf_str(&a.raw));
    struct cJSON *j = json_parse(a.body, a.body_len, NULL);
    char *id = xstrdup(json_str(j, "sandboxID", ""));
    json_free(j);
    buf_release(&a.raw);
    return id;
}

static int sandbox(const char *method, const char *id, const char *tail)
{
    char path[96];
    snprintf(path, sizeof(path), "/sandboxes/%s%s", id, tail);
    return control(method, path, NULL);
}

/* --- connections ------------------------------------------------------------------ */

/* Requests in a row, answers never read: the provider stops taking more. */
static void test_unread(void **state)
{
    (void)state;
    struct buf block = BUF_INIT;
    for (int i = 0; i < 1000; i++)
        buf_addf(&block, "GET /x HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", bed->control);
    int fd = rawhttp_dial(bed->control);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    size_t taken = 0;
    struct pollfd p = {fd, POLLOUT, 0};
    while (taken < 64u << 20 && poll(&p, 1, 1000) == 1) {
        ssize_t n = send(fd, block.p, block.len, MSG_NOSIGNAL);
        if (n <= 0)
            break;
        taken += (size_t)n;
    }
    assert_true(taken < 32u << 20);
    assert_int_equal(control("GET", "/v2/sandboxes", NULL), 200);
    /* once they are read it goes on: each request gets its answer */
    close(fd);
    fd = rawhttp_dial(bed->control);
    assert_int_equal(send(fd, block.p, block.len, 0), (ssize_t)block.len);
    size_t answers = 0;
    char last = '\n', text[4096];
    p = (struct pollfd){fd, POLLIN, 0};
    while (answers < 1000 && poll(&p, 1, WAIT_MS) == 1) {
        ssize_t n = read(fd, text, sizeof(text));
        assert_true(n > 0);
        for (ssize_t i = 0; i < n; last = text[i++])
            answers += last == '}' && text[i] == 'H';
        answers += answers == 999 && last == '}'; /* nothing follows the last one */
    }
    assert_int_equal(answers, 1000);
    close(fd);
    buf_release(&block);
}

/* As many silent connections as are allowed do not keep the owner out. */
static void test_held(void **state)
{
    (void)state;
    int fds[1100];
    for (size_t i = 0; i < 1100; i++)
        fds[i] = rawhttp_dial(bed->control);
    assert_int_equal(control("GET", "/v2/sandboxes", NULL), 200);
    for (size_t i = 0; i < 1100; i++)
        close(fds[i]);
}

/* Requests that arrive all at once reach the sandbox, every one. */
static void test_burst(void **state)
{
    (void)state;
    char *id = create();
    char *text = xasprintf("GET /health HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                           "E2b-Sandbox-Id: %s\r\n\r\n",
                           bed->traffic, id);
    int fds[MANY];
    for (size_t i = 0; i < MANY; i++)
        fds[i] = rawhttp_dial(bed->traffic);
    for (size_t i = 0; i < MANY; i++)
        assert_true(send(fds[i], text, strlen(text), 0) > 0);
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(read_status(fds[i]), 204);
        close(fds[i]);
    }
    assert_int_equal(sandbox("DELETE", id, ""), 204);
    free(text);
    free(id);
}

/* Who has no token is refused before the body, not after 100 MB of it. */
static void test_body_without_token(void **state)
{
    (void)state;
    static const char *const headers[] = {
        "Content-Length: 100000000\r\n",
        "Transfer-Encoding: chunked\r\n",
        "X-Access-Token: 00\r\nContent-Length: 100000000\r\n",
    };
    static const char *const targets[] = {"/files?path=a", "/files?path=a&signature=v1_x",
                                          "/process.Process/List"};
    char *id = create();
    for (size_t i = 0; i < 9; i++) {
        char *text = xasprintf("POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                               "E2b-Sandbox-Id: %s\r\n"
                               "Content-Type: application/octet-stream\r\n%s\r\n",
                               targets[i / 3], bed->traffic, id, headers[i % 3]);
        assert_int_equal(ask(bed->traffic, text), 401);
        free(text);
    }
    assert_int_equal(sandbox("DELETE", id, ""), 204);
    free(id);
    char *text = xasprintf("POST /v2/sandboxes HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                           "X-API-Key: e2b_wrong\r\nContent-Type: application/json\r\n"
                           "Content-Length: 4000000\r\n\r\n",
                           bed->control);
    int64_t start = clock_mono_ms();
    assert_int_equal(ask(bed->control, text), 401);
    assert_true(clock_mono_ms() - start < 15000);
    free(text);
}

/* --- accidents -------------------------------------------------------------------- */

static bool is_missing(const char *path)
{
    int64_t end = clock_mono_ms() + WAIT_MS;
    while (access(path, F_OK) == 0 && clock_mono_ms() < end)
        poll(NULL, 0, 10);
    return access(path, F_OK) != 0;
}

/* Nothing runs under this id any more: its init names it in its arguments. */
static bool is_ended(const char *id)
{
    int64_t end = clock_mono_ms() + WAIT_MS;
    char *cmd = xasprintf("pgrep -f '[s]andbox-init %s' >/dev/null", id);
    int rc;
    while ((rc = system(cmd)) == 0 && clock_mono_ms() < end)
        poll(NULL, 0, 20);
    free(cmd);
    return rc != 0;
}

/* A sandbox without a readable record is ended, not forgotten. */
static void test_lost_record(void **state)
{
    (void)state;
    char *id = create(), *kept = create();
    char *record = xasprintf("%s/state/boxes/%s/box.json", bed->root, id);
    char *folder = xasprintf("%s/state/boxes/%s", bed->root, id);
    char *sock = xasprintf("%s/run/s/%s.sock", bed->root, id);
    localbed_kill(bed);
    assert_int_equal(truncate(record, 40), 0);
    assert_true(localbed_start(bed));
    assert_true(is_ended(id));
    assert_true(is_missing(folder));
    assert_true(is_missing(sock));
    assert_int_equal(sandbox("GET", kept, ""), 200);
    assert_int_equal(sandbox("GET", id, ""), 404);
    assert_int_equal(sandbox("DELETE", kept, ""), 204);
    free(folder);
    folder = xasprintf("%s/state/boxes/%s", bed->root, kept);
    assert_true(is_missing(folder));
    free(record);
    free(folder);
    free(sock);
    free(id);
    free(kept);
}

/* What this machine lacks is no fault of the request and no limit of a plan. */
static void test_no_state(void **state)
{
    (void)state;
    char *boxes = xasprintf("%s/state/boxes", bed->root);
    char *away = xasprintf("%s/state/away", bed->root);
    assert_int_equal(rename(boxes, away), 0);
    assert_int_equal(control("POST", "/v2/sandboxes", "{\"templateID\":\"base\"}"), 500);
    assert_int_equal(control("GET", "/v2/sandboxes", NULL), 200);
    assert_int_equal(rename(away, boxes), 0);
    free(boxes);
    free(away);
}

static void test_logs(void **state)
{
    (void)state;
    char *id = create(), *v2 = xasprintf("/v2/sandboxes/%s/logs?limit=10", id);
    assert_int_equal(sandbox("GET", id, "/logs?start=0"), 200);
    assert_int_equal(control("GET", v2, NULL), 200);
    assert_int_equal(sandbox("DELETE", id, ""), 204);
    free(v2);
    free(id);
}

/* Clients that go on creating do not keep the provider from its end. */
static void test_stop_while_creating(void **state)
{
    (void)state;
    char *text = xasprintf("POST /v2/sandboxes HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                           "X-API-Key: %s\r\nContent-Type: application/json\r\n"
                           "Connection: close\r\nContent-Length: 21\r\n\r\n"
                           "{\"templateID\":\"base\"}",
                           bed->control, bed->key);
    int64_t start = clock_mono_ms();
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        for (;;) {
            struct sockaddr_in sa = {.sin_family = AF_INET,
                                     .sin_port = htons((uint16_t)bed->control)};
            sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
            if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0)
                _exit(0); /* the provider is gone: that was the point */
            if (send(fd, text, strlen(text), MSG_NOSIGNAL) > 0)
                read_status(fd);
            close(fd);
        }
    }
    while (clock_mono_ms() - start < 300)
        poll(NULL, 0, 20);
    assert_int_equal(kill(bed->pid, SIGUSR1), 0);
    start = clock_mono_ms();
    while (kill(bed->pid, 0) == 0 && clock_mono_ms() - start < WAIT_MS)
        poll(NULL, 0, 20);
    int64_t took = clock_mono_ms() - start;
    kill(child, SIGKILL);
    free(text);
    assert_true(took < 10000);
    char *boxes = xasprintf("%s/state/boxes", bed->root);
    assert_int_equal(rmdir(boxes), 0); /* empty: nothing was left */
    free(boxes);
    assert_true(localbed_start(bed));
}

static int setup(void **state)
{
    (void)state;
    fs_raise_nofile(); /* the tests hold many connections */
    bed = localbed_new();
    return bed ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    localbed_free(bed);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unread),      cmocka_unit_test(test_held),
        cmocka_unit_test(test_burst),       cmocka_unit_test(test_body_without_token),
        cmocka_unit_test(test_lost_record), cmocka_unit_test(test_no_state),
        cmocka_unit_test(test_logs),        cmocka_unit_test(test_stop_while_creating),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, setup, teardown);
}
