/* The sandbox's init on the wire: every process method, kill and late Connect, a
 * slow reader, many starts at once, pause, the dead-man timer. No client code of
 * ours takes part. */
#include "../lib/initbox.h"
#include <cct/local/init.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void test_rest(void **state)
{
    struct initbox_answer a;
    (void)state;
    initbox_call(&a, "GET", "/health", "X-Access-Token: wrong\r\n", "");
    assert_int_equal(a.status, 204);
    buf_release(&a.body);
    initbox_call(&a, "GET", "/metrics", "X-Access-Token: wrong\r\n", "");
    assert_int_equal(a.status, 401);
    initbox_has(buf_str(&a.body), "{\"code\":401,\"message\":");
    buf_release(&a.body);
    initbox_rpc(&a, "/process.Process/List", "{}");
    assert_string_equal(buf_str(&a.body), "{\"processes\":[]}");
    buf_release(&a.body);
    initbox_call(&a, "GET", "/metrics", "", "");
    initbox_has(buf_str(&a.body), "\"cpu_used_pct\":");
    initbox_has(buf_str(&a.body), "\"mem_total_mib\":");
    buf_release(&a.body);
    initbox_call(&a, "GET", "/envs", "", "");
    assert_string_equal(buf_str(&a.body), "{\"BOX\":\"wide\"}");
    buf_release(&a.body);
    initbox_call(&a, "GET", "/nothing", "", "");
    assert_int_equal(a.status, 404);
    buf_release(&a.body);
}

static void test_start_forms(void **state)
{
    (void)state;
    char *t = initbox_run("", INITBOX_SH("printf out; printf err >&2"));
    initbox_has(t, "0 {\"event\":{\"start\":{\"pid\":");
    assert_true(str_starts(t, "0 {\"event\":{\"start\""));
    initbox_has(t, "0 {\"event\":{\"data\":{\"stdout\":\"b3V0\"}}}\n");
    initbox_has(t, "0 {\"event\":{\"data\":{\"stderr\":\"ZXJy\"}}}\n");
    initbox_has(
        t, "0 {\"event\":{\"end\":{\"exited\":true,\"status\":\"exit status 0\"}}}\n2 {}\n");
    free(t);
    t = initbox_run("", INITBOX_SH("exit 3"));
    initbox_has(t, "{\"end\":{\"exitCode\":3,\"exited\":true,\"status\":\"exit status "
                   "3\",\"error\":\"exit "
                   "status 3\"}}");
    free(t);
    t = initbox_run("", INITBOX_SH("kill -9 $$"));
    initbox_has(t,
                "{\"end\":{\"exitCode\":-1,\"status\":\"signal: killed\",\"error\":\"signal: "
                "killed\"}}");
    free(t);
    t = initbox_run("", "{\"process\":{\"cmd\":\"no-such-command\"}}");
    initbox_has(t, "\"exitCode\":127");
    free(t);
    t = initbox_run("", "{\"process\":{\"cmd\":\"/bin/true\",\"cwd\":\"/no/such\"}}");
    initbox_has(
        t, "2 {\"error\":{\"code\":\"invalid_argument\",\"message\":\"cwd '/no/such' does not");
    free(t);
    t = initbox_run("Authorization: Basic bm9ib2R5Og==\r\n", INITBOX_SH("true"));
    initbox_has(t, "2 {\"error\":{\"code\":\"unauthenticated\"");
    free(t);
    t = initbox_run("Authorization: Basic cm9vdDo=\r\n",
                    INITBOX_SH("printf $USER.$BOX.$LANG.$PWD"));
    struct buf want = BUF_INIT;
    buf_addf(&want, "root.wide.C.UTF-8.%s", initbox_dir);
    char *b64 = b64_encode(want.p, want.len);
    initbox_has(t, b64);
    free(b64);
    buf_release(&want);
    free(t);
}

/* A child sees nothing of the init's descriptors, signals or session. */
static void test_clean_child(void **state)
{
    (void)state;
    char *t =
        initbox_run("", "{\"process\":{\"cmd\":\"/bin/sh\",\"args\":[\"-c\",\"ls "
                        "/proc/self/fd | wc -l; grep -E 'Sig(Blk|Ign)' /proc/self/status; "
                        "cut -d' ' -f5,6 /proc/$$/stat | tr ' ' '\\\\n' | uniq | wc -l\"]},"
                        "\"stdin\":false}");
    const char *p = strstr(t, "\"stdout\":\"");
    struct buf all = BUF_INIT;
    for (; p != NULL; p = strstr(p + 1, "\"stdout\":\"")) {
        size_t n = strcspn(p + 10, "\""), len;
        char *plain = b64_decode(p + 10, n, &len);
        buf_add(&all, plain, len);
        free(plain);
    }
    assert_string_equal(buf_str(&all), "4\nSigBlk:\t0000000000000000\nSigIgn:"
                                       "\t0000000000000000\n1\n");
    buf_release(&all);
    free(t);
}

static void test_wire_errors(void **state)
{
    struct initbox_answer a;
    (void)state;
    initbox_call(&a, "POST", "/process.Process/Start", "Content-Type: application/json\r\n",
                 "{}");
    assert_int_equal(a.status, 415);
    assert_int_equal(a.body.len, 0);
    buf_release(&a.body);
    initbox_call(&a, "POST", "/process.Process/List", "Content-Type: application/proto\r\n",
                 "");
    assert_int_equal(a.status, 415);
    buf_release(&a.body);
    initbox_rpc(&a, "/process.Process/Nothing", "{}");
    assert_int_equal(a.status, 404);
    buf_release(&a.body);
    initbox_rpc(&a, "/process.Process/List", "{nonsense");
    assert_int_equal(a.status, 400);
    initbox_has(buf_str(&a.body), "{\"code\":\"invalid_argument\"");
    buf_release(&a.body);
    initbox_call(&a, "POST", "/process.Process/List", INITBOX_JSON "Connect-Timeout-Ms: 0\r\n",
                 "{}");
    assert_int_equal(a.status, 504);
    buf_release(&a.body);
    char *t = initbox_run("Connect-Timeout-Ms: 12345678901\r\n", INITBOX_SH("true"));
    initbox_has(t, "2 {\"error\":{\"code\":\"invalid_argument\"");
    free(t);
    t = initbox_run("Connect-Timeout-Ms: 0\r\n", INITBOX_SH("true"));
    initbox_has(t, "2 {\"error\":{\"code\":\"deadline_exceeded\"");
    assert_null(strstr(t, "start"));
    free(t);
    initbox_rpc(&a, "/process.Process/SendSignal",
                "{\"process\":{\"pid\":99999},\"signal\":"
                "\"SIGNAL_SIGKILL\"}");
    assert_int_equal(a.status, 404);
    assert_string_equal(buf_str(&a.body),
                        "{\"code\":\"not_found\",\"message\":\"process with pid "
                        "99999 not found\"}");
    buf_release(&a.body);
}

/* The time-out kills; the stream ends with its own error. */
static void test_timeout(void **state)
{
    (void)state;
    int64_t t0 = clock_mono_ms();
    char *t = initbox_run("Connect-Timeout-Ms: 300\r\n", INITBOX_SH("exec sleep 60"));
    initbox_has(t, "2 {\"error\":{\"code\":\"deadline_exceeded\"");
    assert_true(clock_mono_ms() - t0 < 10000);
    const char *p = strstr(t, "\"pid\":");
    int pid = (int)strtol(p + 6, NULL, 10);
    free(t);
    struct initbox_answer a;
    char json[64];
    snprintf(json, sizeof(json), "{\"process\":{\"pid\":%d}}", pid);
    initbox_finish(initbox_stream("/process.Process/Connect", "", json), &a);
    t = initbox_frames(&a);
    initbox_has(t, "signal: killed");
    free(t);
}

static void test_stdin(void **state)
{
    struct initbox_answer a;
    struct buf seen = BUF_INIT;
    char json[160];
    int pid;
    (void)state;
    int fd = initbox_start("{\"process\":{\"cmd\":\"cat\"},\"tag\":\"t1\"}", &pid, &seen);
    initbox_rpc(&a, "/process.Process/List", "{}");
    snprintf(json, sizeof(json),
             "{\"processes\":[{\"config\":{\"cmd\":\"cat\"},\"pid\":%d,"
             "\"tag\":\"t1\"}]}",
             pid);
    assert_string_equal(buf_str(&a.body), json);
    buf_release(&a.body);
    initbox_rpc(&a, "/process.Process/SendInput",
                "{\"process\":{\"tag\":\"t1\"},\"input\":{\"stdin\":\"aGkK\"}}");
    assert_int_equal(a.status, 200);
    assert_string_equal(buf_str(&a.body), "{}");
    buf_release(&a.body);
    initbox_until(fd, &seen, "\"stdout\":\"aGkK\"");
    snprintf(json, sizeof(json), "{\"process\":{\"pid\":%d},\"input\":{\"pty\":\"aGkK\"}}",
             pid);
    initbox_rpc(&a, "/process.Process/SendInput", json);
    assert_int_equal(a.status, 500);
    initbox_has(buf_str(&a.body), "\"internal\"");
    buf_release(&a.body);
    snprintf(json, sizeof(json), "{\"process\":{\"pid\":%d},\"signal\":\"SIGNAL_SIGHUP\"}",
             pid);
    initbox_rpc(&a, "/process.Process/SendSignal", json);
    assert_int_equal(a.status, 501);
    buf_release(&a.body);
    snprintf(json, sizeof(json), "{\"process\":{\"pid\":%d}}", pid);
    initbox_rpc(&a, "/process.Process/CloseStdin", json);
    assert_int_equal(a.status, 200);
    buf_release(&a.body);
    initbox_until(fd, &seen, "exit status 0");
    close(fd);
    buf_release(&seen);
}

static void test_stream_input(void **state)
{
    struct initbox_answer a;
    struct buf seen = BUF_INIT, b = BUF_INIT;
    char json[3][96];
    int pid;
    (void)state;
    int fd = initbox_start("{\"process\":{\"cmd\":\"cat\"}}", &pid, &seen);
    snprintf(json[0], 96, "{\"start\":{\"process\":{\"pid\":%d}}}", pid);
    snprintf(json[1], 96, "{\"data\":{\"input\":{\"stdin\":\"eA==\"}}}");
    snprintf(json[2], 96, "{\"keepalive\":{}}");
    for (int i = 0; i < 3; i++) {
        char head[5] = {0, 0, 0, 0, (char)strlen(json[i])};
        buf_add(&b, head, 5);
        buf_adds(&b, json[i]);
    }
    initbox_finish(
        initbox_request("POST", "/process.Process/StreamInput", INITBOX_STREAM, b.p, b.len),
        &a);
    char *t = initbox_frames(&a);
    assert_string_equal(t, "0 {}\n2 {}\n");
    free(t);
    initbox_until(fd, &seen, "\"stdout\":\"eA==\"");
    close(fd);
    snprintf(json[0], 96, "{\"process\":{\"pid\":%d},\"signal\":\"SIGNAL_SIGTERM\"}", pid);
    initbox_rpc(&a, "/process.Process/SendSignal", json[0]);
    assert_int_equal(a.status, 200);
    buf_release(&a.body);
    buf_release(&b);
    buf_release(&seen);
}

/* Input for a process that does not read: taken up to the cap, then refused; the
 * loop answers others meanwhile. */
static void test_stdin_cap(void **state)
{
    struct initbox_answer a;
    struct buf seen = BUF_INIT, b = BUF_INIT;
    int pid, ok = 0, refused = 0;
    char *mb = calloc(1, 1u << 20);
    char *b64 = b64_encode(mb, 1u << 20);
    (void)state;
    int fd = initbox_start("{\"process\":{\"cmd\":\"sleep\",\"args\":[\"60\"]}}", &pid, &seen);
    buf_addf(&b, "{\"process\":{\"pid\":%d},\"input\":{\"stdin\":\"%s\"}}", pid, b64);
    for (int i = 0; i < 6; i++) {
        initbox_finish(
            initbox_request("POST", "/process.Process/SendInput", INITBOX_JSON, b.p, b.len),
            &a);
        ok += a.status == 200;
        refused += a.status == 429;
        buf_release(&a.body);
    }
    assert_int_equal(ok, 4);
    assert_int_equal(refused, 2);
    buf_clear(&b);
    buf_addf(&b, "{\"process\":{\"pid\":%d},\"signal\":\"SIGNAL_SIGKILL\"}", pid);
    initbox_rpc(&a, "/process.Process/SendSignal", buf_str(&b));
    assert_int_equal(a.status, 200);
    buf_release(&a.body);
    initbox_until(fd, &seen, "signal: killed");
    close(fd);
    free(mb);
    free(b64);
    buf_release(&b);
    buf_release(&seen);
}

static void test_pty(void **state)
{
    struct initbox_answer a;
    struct buf seen = BUF_INIT;
    char json[200];
    int pid;
    (void)state;
    int fd = initbox_start(
        "{\"process\":{\"cmd\":\"/bin/sh\",\"args\":[\"-c\",\"stty size; read x; stty "
        "size; echo $TERM; tty\"]},\"pty\":{\"size\":{\"cols\":81,\"rows\":25}}}",
        &pid, &seen);
    initbox_until(fd, &seen, "\"pty\":\"MjUgODE"); /* "25 81" */
    snprintf(json, sizeof(json),
             "{\"process\":{\"pid\":%d},\"pty\":{\"size\":{\"cols\":100,\"rows\""
             ":30}}}",
             pid);
    initbox_rpc(&a, "/process.Process/Update", json);
    assert_int_equal(a.status, 200);
    buf_release(&a.body);
    snprintf(json, sizeof(json), "{\"process\":{\"pid\":%d}}", pid);
    initbox_rpc(&a, "/process.Process/CloseStdin", json);
    assert_int_equal(a.status, 500);
    initbox_has(buf_str(&a.body), "\"unknown\"");
    buf_release(&a.body);
    snprintf(json, sizeof(json), "{\"process\":{\"pid\":%d},\"input\":{\"pty\":\"Cg==\"}}",
             pid);
    initbox_rpc(&a, "/process.Process/SendInput", json);
    assert_int_equal(a.status, 200);
    buf_release(&a.body);
    initbox_until(fd, &seen, "exit status 0");
    close(fd);
    buf_release(&seen);
}

/* Losing the stream leaves the process alone; a late Connect gets start and
 * what comes next, then the kept end. */
static void test_connect(void **state)
{
    struct initbox_answer a;
    struct buf seen = BUF_INIT;
    char json[160];
    int pid;
    (void)state;
    int fd = initbox_start(
        "{\"process\":{\"cmd\":\"/bin/sh\",\"args\":[\"-c\",\"read x; echo got; exit "
        "4\"]}}",
        &pid, &seen);
    close(fd);
    snprintf(json, sizeof(json), "{\"process\":{\"pid\":%d}}", pid);
    fd = initbox_stream("/process.Process/Connect", "", json);
    buf_clear(&seen);
    initbox_until(fd, &seen, "start");
    snprintf(json, sizeof(json), "{\"process\":{\"pid\":%d},\"input\":{\"stdin\":\"Cg==\"}}",
             pid);
    initbox_rpc(&a, "/process.Process/SendInput", json);
    buf_release(&a.body);
    initbox_until(fd, &seen, "Z290Cg==");
    initbox_until(fd, &seen, "exit status 4");
    close(fd);
    snprintf(json, sizeof(json), "{\"process\":{\"pid\":%d}}", pid);
    initbox_finish(initbox_stream("/process.Process/Connect", "", json), &a);
    char *t = initbox_frames(&a);
    assert_true(str_starts(t, "0 {\"event\":{\"start\""));
    initbox_has(t, "\"exitCode\":4");
    initbox_has(t, "\n2 {}\n");
    free(t);
    buf_release(&seen);
}

static void test_keepalive(void **state)
{
    (void)state;
    char *t = initbox_run("Keepalive-Ping-Interval: 1\r\n", INITBOX_SH("sleep 1.4"));
    initbox_has(t, "0 {\"event\":{\"keepalive\":{}}}\n");
    free(t);
}

/* A daemon that keeps the pipes must not keep the stream. */
static void test_grandchild(void **state)
{
    (void)state;
    int64_t t0 = clock_mono_ms();
    char *t = initbox_run("", INITBOX_SH("sleep 30 & echo done"));
    initbox_has(t, "ZG9uZQo=");
    initbox_has(t, "exit status 0");
    assert_true(clock_mono_ms() - t0 < 10000);
    free(t);
}

/* 64 MiB to a reader that does not read, then reads all: memory stays bounded
 * and nothing is lost. */
static void test_slow_reader(void **state)
{
    struct buf seen = BUF_INIT;
    static char tmp[262144];
    size_t total = 0, n;
    int pid;
    (void)state;
    long before = initbox_rss_kb(initbox_pid);
    int fd = initbox_start(INITBOX_SH("head -c 67108864 /dev/zero"), &pid, &seen);
    /* others are served while this one is stuck */
    for (int i = 0; i < 20; i++) {
        char *t = initbox_run("", INITBOX_SH("true"));
        initbox_has(t, "exit status 0");
        free(t);
    }
    long stuck = initbox_rss_kb(initbox_pid);
    while ((n = initbox_take(fd, tmp, sizeof(tmp))) > 0)
        total += n;
    long after = initbox_rss_kb(initbox_pid);
    close(fd);
    buf_release(&seen);
    print_message("# slow reader: RSS %ld -> %ld -> %ld KiB, %zu bytes read\n", before, stuck,
                  after, total);
    assert_true(total > 67108864ul / 3 * 4);
    assert_true(stuck - before < 12 * 1024);
    assert_true(after - before < 24 * 1024);
}

static void test_parallel(void **state)
{
    int fds[100];
    (void)state;
    int64_t t0 = clock_mono_ms();
    for (int i = 0; i < 100; i++)
        fds[i] = initbox_stream("/process.Process/Start", "", INITBOX_SH("echo $$; exit 7"));
    for (int i = 0; i < 100; i++) {
        struct initbox_answer a;
        initbox_finish(fds[i], &a);
        char *t = initbox_frames(&a);
        initbox_has(t, "\"exitCode\":7");
        free(t);
    }
    print_message("# 100 parallel starts: %lld ms\n", (long long)(clock_mono_ms() - t0));
}

/* A reader that hangs up while its process waits for it: the process goes on. */
static void test_reader_gone(void **state)
{
    struct initbox_answer a;
    struct buf seen = BUF_INIT;
    char json[64];
    int pid;
    (void)state;
    int fd = initbox_start(INITBOX_SH("head -c 16777216 /dev/zero; exit 9"), &pid, &seen);
    for (int i = 0; i < 3; i++) { /* it is stuck by now */
        initbox_call(&a, "GET", "/health", "", "");
        buf_release(&a.body);
    }
    close(fd);
    snprintf(json, sizeof(json), "{\"process\":{\"pid\":%d}}", pid);
    initbox_finish(initbox_stream("/process.Process/Connect", "", json), &a);
    char *t = initbox_frames(&a);
    initbox_has(t, "\"exitCode\":9");
    free(t);
    buf_release(&seen);
}

/* SIGTERM with streams open: an orderly end of init, streams and processes. */
static void test_term(void **state)
{
    struct buf seen = BUF_INIT;
    char path[160];
    int status;
    (void)state;
    snprintf(path, sizeof(path), "%s/s2", initbox_dir);
    pid_t pid = initbox_spawn(path, clock_boot_ms() + 600000);
    const char json[] = "\0\0\0\0\x2c{\"process\":{\"cmd\":\"sleep\",\"args\":[\"600\"]}}";
    char body[sizeof(json) - 1];
    memcpy(body, json, sizeof(body));
    body[4] = (char)(sizeof(body) - 5);
    int fd = initbox_request_at(path, "POST", "/process.Process/Start", INITBOX_STREAM, body,
                                sizeof(body));
    initbox_until(fd, &seen, "start");
    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    close(fd);
    buf_release(&seen);
}

/* Pause stops every process below the init, also one that left its session. */
static void test_pause(void **state)
{
    struct initbox_answer a;
    struct buf seen = BUF_INIT;
    int pid;
    (void)state;
    initbox_call(&a, "POST", "/cc/pause", "", "");
    assert_int_equal(a.status, 401);
    buf_release(&a.body);
    int fd = initbox_start(
        "{\"process\":{\"cmd\":\"/bin/sh\",\"args\":[\"-c\",\"setsid sh -c 'while :; do "
        "echo x >> ticks; sleep 0.02; done' & wait\"]}}",
        &pid, &seen);
    char path[128];
    struct stat st, st2;
    snprintf(path, sizeof(path), "%s/ticks", initbox_dir);
    int64_t end = clock_mono_ms() + INITBOX_WAIT_MS;
    while ((stat(path, &st) != 0 || st.st_size < 6) && clock_mono_ms() < end)
        poll(NULL, 0, 10);
    initbox_call(&a, "POST", "/cc/pause", "X-CC-Control: " INITBOX_TOKEN "\r\n", "");
    assert_int_equal(a.status, 204);
    buf_release(&a.body);
    assert_int_equal(stat(path, &st), 0);
    poll(NULL, 0, 150); /* seven of its ticks: none may come */
    assert_int_equal(stat(path, &st2), 0);
    assert_int_equal(st.st_size, st2.st_size);
    initbox_call(&a, "POST", "/cc/resume", "X-CC-Control: " INITBOX_TOKEN "\r\n", "");
    assert_int_equal(a.status, 204);
    buf_release(&a.body);
    end = clock_mono_ms() + INITBOX_WAIT_MS;
    while (stat(path, &st2) == 0 && st2.st_size <= st.st_size && clock_mono_ms() < end)
        poll(NULL, 0, 10);
    assert_true(st2.st_size > st.st_size);
    close(fd);
    buf_release(&seen);
}

/* Last: the dead-man timer ends the init and everything below it. */
static void test_deadline(void **state)
{
    struct initbox_answer a;
    struct buf seen = BUF_INIT;
    int pid, status;
    (void)state;
    int fd = initbox_start(INITBOX_SH("exec sleep 600"), &pid, &seen);
    char json[64];
    snprintf(json, sizeof(json), "{\"deadline\":%lld}", (long long)clock_boot_ms() + 200);
    initbox_call(&a, "POST", "/cc/deadline", "X-CC-Control: " INITBOX_TOKEN "\r\n", json);
    assert_int_equal(a.status, 204);
    buf_release(&a.body);
    assert_int_equal(waitpid(initbox_pid, &status, 0), initbox_pid);
    initbox_pid = 0;
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    int64_t end = clock_mono_ms() + INITBOX_WAIT_MS;
    while (kill(pid, 0) == 0 && clock_mono_ms() < end) {
        /* without a reaper of its own, a test in a container leaves zombies */
        char path[64], line[512] = "";
        snprintf(path, sizeof(path), "/proc/%d/stat", pid);
        FILE *f = fopen(path, "r");
        bool zombie =
            f != NULL && fgets(line, sizeof(line), f) != NULL && strstr(line, ") Z ") != NULL;
        if (f != NULL)
            fclose(f);
        if (zombie)
            break;
        poll(NULL, 0, 10);
    }
    assert_true(clock_mono_ms() < end);
    close(fd);
    buf_release(&seen);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rest),         cmocka_unit_test(test_start_forms),
        cmocka_unit_test(test_clean_child),  cmocka_unit_test(test_wire_errors),
        cmocka_unit_test(test_timeout),      cmocka_unit_test(test_stdin),
        cmocka_unit_test(test_stream_input), cmocka_unit_test(test_stdin_cap),
        cmocka_unit_test(test_pty),          cmocka_unit_test(test_connect),
        cmocka_unit_test(test_keepalive),    cmocka_unit_test(test_grandchild),
        cmocka_unit_test(test_slow_reader),  cmocka_unit_test(test_parallel),
        cmocka_unit_test(test_reader_gone),  cmocka_unit_test(test_term),
        cmocka_unit_test(test_pause),        cmocka_unit_test(test_deadline),
    };
    initbox_program(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, initbox_up, initbox_down);
}
