/* StreamInput while it runs: messages one by one, processes that read slowly or not
 * to the end. */
#include "../lib/initbox.h"
#include <cct/local/init.h>
#include <cct/util/buf.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* A chunk that holds one message. */
static bool push_message(int fd, const char *json)
{
    struct buf b = BUF_INIT;
    size_t n = strlen(json);
    char head[5] = {0, (char)(n >> 24), (char)(n >> 16), (char)(n >> 8), (char)n};
    buf_addf(&b, "%zx\r\n", n + 5);
    buf_add(&b, head, 5);
    buf_add(&b, json, n);
    buf_adds(&b, "\r\n");
    bool ok = true;
    for (size_t at = 0; ok && at < b.len;) {
        ssize_t w = write(fd, b.p + at, b.len - at);
        ok = w > 0;
        at += ok ? (size_t)w : 0;
    }
    buf_release(&b);
    return ok;
}

static int stream_input(int pid)
{
    char json[96];
    int fd = initbox_begin("POST", "/process.Process/StreamInput",
                           INITBOX_STREAM "Transfer-Encoding: chunked\r\n");
    snprintf(json, sizeof(json), "{\"start\":{\"process\":{\"pid\":%d}}}", pid);
    assert_true(push_message(fd, json));
    return fd;
}

/* Messages count as they come. */
static void test_live(void **state)
{
    struct initbox_answer a;
    struct buf seen = BUF_INIT;
    int pid;
    (void)state;
    int out = initbox_start("{\"process\":{\"cmd\":\"cat\"}}", &pid, &seen);
    int in = stream_input(pid);
    assert_true(push_message(in, "{\"data\":{\"input\":{\"stdin\":\"eA==\"}}}"));
    initbox_until(out, &seen, "\"stdout\":\"eA==\"");
    assert_true(push_message(in, "{\"keepalive\":{}}"));
    assert_true(push_message(in, "{\"data\":{\"input\":{\"stdin\":\"eQ==\"}}}"));
    initbox_until(out, &seen, "\"stdout\":\"eQ==\"");
    close(in); /* the stream is cut, the process goes on */
    in = stream_input(pid);
    assert_true(push_message(in, "{\"data\":{\"input\":{\"pty\":\"eQ==\"}}}"));
    initbox_finish(in, &a); /* an error does not wait for the end of the body */
    char *t = initbox_frames(&a);
    initbox_has(t, "\"code\":\"internal\"");
    free(t);
    close(out);
    buf_release(&seen);
}

/* Many more bytes than may wait reach a process that is slow to read, and the init
 * holds few of them. */
static void test_slow_process(void **state)
{
    enum { MESSAGES = 300, BYTES = 60000 };
    struct initbox_answer a;
    struct buf seen = BUF_INIT;
    int pid;
    (void)state;
    int out = initbox_start(INITBOX_STDIN_SH("sleep 0.3; wc -c"), &pid, &seen);
    int in = stream_input(pid);
    char *data = calloc(1, BYTES + 1);
    memset(data, 'A', BYTES); /* base64 of zeros */
    struct buf m = BUF_INIT;
    buf_addf(&m, "{\"data\":{\"input\":{\"stdin\":\"%s\"}}}", data);
    long before = initbox_rss_kb(initbox_pid), most = before;
    for (int i = 0; i < MESSAGES; i++) {
        assert_true(push_message(in, buf_str(&m)));
        long now = initbox_rss_kb(initbox_pid);
        most = now > most ? now : most;
    }
    assert_int_equal(write(in, "0\r\n\r\n", 5), 5);
    initbox_finish(in, &a);
    char *t = initbox_frames(&a);
    assert_string_equal(t, "0 {}\n2 {}\n");
    free(t);
    snprintf(data, BYTES, "{\"process\":{\"pid\":%d}}", pid);
    initbox_rpc(&a, "/process.Process/CloseStdin", data);
    assert_int_equal(a.status, 200);
    buf_release(&a.body);
    initbox_until(out, &seen, "\"stdout\":\"MTM1MDAwMDAK\""); /* 13500000 */
    print_message("# 18 MB of input: RSS %ld -> at most %ld KiB\n", before, most);
    assert_true(most - before < 8 * 1024);
    close(out);
    free(data);
    buf_release(&m);
    buf_release(&seen);
}

/* A process that ends while its input waits: the call ends, too. */
static void test_process_ends(void **state)
{
    struct initbox_answer a;
    struct buf seen = BUF_INIT, m = BUF_INIT;
    int pid;
    (void)state;
    int out = initbox_start(INITBOX_STDIN_SH("sleep 0.3"), &pid, &seen);
    int in = stream_input(pid);
    buf_adds(&m, "{\"data\":{\"input\":{\"stdin\":\"");
    for (int i = 0; i < 60000; i++)
        buf_addc(&m, 'A');
    buf_adds(&m, "\"}}}");
    for (int i = 0; i < 100 && push_message(in, buf_str(&m)); i++)
        continue;
    initbox_finish(in, &a);
    char *t = initbox_frames(&a);
    initbox_has(t, "stdin is not enabled or is closed");
    free(t);
    close(out);
    buf_release(&m);
    buf_release(&seen);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_live),
        cmocka_unit_test(test_slow_process),
        cmocka_unit_test(test_process_ends),
    };
    initbox_program(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, initbox_up, initbox_down);
}
