/* The sandbox's init as an ordinary process on a unix socket, spoken to with
 * plain bytes: every method's form on the wire, kill and late Connect, a slow
 * reader, many starts at once. No client code of ours takes part. */
#include <cct/local/init.h>
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define TOKEN "ea_token_iabc"
#define WAIT_MS 20000

static char dir[] = "/tmp/cct-envd-XXXXXX";
static char sock_path[128];
static pid_t init_pid;

/* --- the init ------------------------------------------------------------- */

static void init_exec(int listen_fd, const char *config)
{
    int fds[2];
    if (pipe(fds) != 0)
        _exit(90);
    if (write(fds[1], config, strlen(config)) < 0)
        _exit(91);
    close(fds[1]);
    int a = fcntl(fds[0], F_DUPFD, 10), b = fcntl(listen_fd, F_DUPFD, 10);
    dup2(a, INIT_CONFIG_FD);
    dup2(b, INIT_LISTEN_FD);
    close(a);
    close(b);
    /* ASan keeps freed memory for a while: too much for a test of memory */
    setenv("ASAN_OPTIONS", "quarantine_size_mb=2:detect_leaks=1", 1);
    execl("/proc/self/exe", "test_envd", "--init", (char *)NULL);
    _exit(92);
}

static pid_t init_start(const char *path, int64_t deadline)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    struct buf config = BUF_INIT;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    str_copy(sa.sun_path, sizeof(sa.sun_path), path);
    assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    assert_int_equal(listen(fd, 256), 0);
    buf_addf(&config,
             "{\"sandboxID\":\"i1\",\"token\":\"" TOKEN "\",\"user\":\"user\",\"home\":\"%s\","
             "\"workdir\":\"%s\",\"isolated\":false,\"envVars\":{\"BOX\":\"wide\"},"
             "\"deadline\":%lld,\"logFd\":2}",
             dir, dir, (long long)deadline);
    pid_t pid = fork();
    if (pid == 0)
        init_exec(fd, buf_str(&config));
    close(fd);
    buf_release(&config);
    return pid;
}

static long rss_kb(pid_t pid)
{
    char path[64], line[256];
    long kb = -1;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "r");
    while (f != NULL && fgets(line, sizeof(line), f) != NULL)
        if (sscanf(line, "VmRSS: %ld", &kb) == 1)
            break;
    if (f != NULL)
        fclose(f);
    return kb;
}

/* --- a client of bytes ---------------------------------------------------- */

struct answer {
    int status;
    char head[4096];
    struct buf body; /* chunks joined */
};

static int dial(void)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    str_copy(sa.sun_path, sizeof(sa.sun_path), sock_path);
    assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    return fd;
}

static void send_all(int fd, const char *p, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, p, len);
        assert_true(n > 0);
        p += n;
        len -= (size_t)n;
    }
}

/* Up to `max` bytes; 0 at the end. Fails the test when nothing comes. */
static size_t take(int fd, char *dst, size_t max)
{
    struct pollfd pf = {fd, POLLIN, 0};
    if (poll(&pf, 1, WAIT_MS) != 1)
        fail_msg("no byte within %d ms", WAIT_MS);
    ssize_t n = read(fd, dst, max);
    return n > 0 ? (size_t)n : 0;
}

static int request(const char *method, const char *path, const char *headers, const char *body,
                   size_t len)
{
    struct buf b = BUF_INIT;
    int fd = dial();
    buf_addf(&b, "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s", method, path, headers);
    if (strstr(headers, "X-Access-Token") == NULL)
        buf_adds(&b, "X-Access-Token: " TOKEN "\r\n");
    buf_addf(&b, "Content-Length: %zu\r\n\r\n", len);
    buf_add(&b, body, len);
    send_all(fd, b.p, b.len);
    buf_release(&b);
    return fd;
}

static void dechunk(struct answer *a)
{
    struct buf out = BUF_INIT;
    size_t at = 0;
    while (at < a->body.len) {
        char *end;
        unsigned long n = strtoul(a->body.p + at, &end, 16);
        at = (size_t)(end - a->body.p) + 2;
        if (n == 0)
            break;
        assert_true(at + n + 2 <= a->body.len);
        buf_add(&out, a->body.p + at, n);
        at += n + 2;
    }
    buf_release(&a->body);
    a->body = out;
}

/* Read the answer to its end and close. */
static void finish(int fd, struct answer *a)
{
    static char tmp[65536];
    size_t n;
    memset(a, 0, sizeof(*a));
    while ((n = take(fd, tmp, sizeof(tmp))) > 0)
        buf_add(&a->body, tmp, n);
    close(fd);
    const char *end = strstr(buf_str(&a->body), "\r\n\r\n");
    assert_non_null(end);
    size_t head = (size_t)(end - a->body.p) + 4;
    assert_true(head < sizeof(a->head));
    memcpy(a->head, a->body.p, head);
    a->head[head] = '\0';
    buf_consume(&a->body, head);
    assert_int_equal(sscanf(a->head, "HTTP/1.1 %d", &a->status), 1);
    if (strstr(a->head, "Transfer-Encoding: chunked") != NULL)
        dechunk(a);
}

static void call(struct answer *a, const char *method, const char *path, const char *headers,
                 const char *body)
{
    finish(request(method, path, headers, body, strlen(body)), a);
}

#define JSON "Content-Type: application/json\r\nConnect-Protocol-Version: 1\r\n"
#define STREAM "Content-Type: application/connect+json\r\nConnect-Protocol-Version: 1\r\n"

static void rpc(struct answer *a, const char *path, const char *body)
{
    call(a, "POST", path, JSON, body);
}

/* Open a server stream with one envelope. */
static int stream(const char *path, const char *headers, const char *json)
{
    struct buf b = BUF_INIT;
    size_t n = strlen(json);
    char head[5] = {0, (char)(n >> 24), (char)(n >> 16), (char)(n >> 8), (char)n};
    struct buf h = BUF_INIT;
    buf_add(&b, head, 5);
    buf_add(&b, json, n);
    buf_addf(&h, "%s%s", STREAM, headers);
    int fd = request("POST", path, buf_str(&h), b.p, b.len);
    buf_release(&b);
    buf_release(&h);
    return fd;
}

/* Body of a stream as text: "flags json\n" for each envelope. */
static char *frames(struct answer *a)
{
    struct buf out = BUF_INIT;
    const unsigned char *p = (const unsigned char *)a->body.p;
    size_t left = a->body.len;
    while (left >= 5) {
        size_t n = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
        assert_true(left - 5 >= n);
        buf_addf(&out, "%d %.*s\n", p[0], (int)n, (const char *)p + 5);
        p += 5 + n;
        left -= 5 + n;
    }
    assert_int_equal(left, 0);
    buf_release(&a->body);
    return buf_detach(&out, NULL);
}

static char *start_run(const char *headers, const char *json)
{
    struct answer a;
    finish(stream("/process.Process/Start", headers, json), &a);
    assert_int_equal(a.status, 200);
    assert_non_null(strstr(a.head, "Content-Type: application/connect+json\r\n"));
    return frames(&a);
}

/* Read a stream until `what` was seen; what came so far is in *b. */
static void until(int fd, struct buf *b, const char *what)
{
    char tmp[4096];
    while (b->len == 0 || memmem(b->p, b->len, what, strlen(what)) == NULL) {
        size_t n = take(fd, tmp, sizeof(tmp));
        if (n == 0)
            fail_msg("stream ended before '%s'", what);
        buf_add(b, tmp, n);
    }
}

static int pid_in(const struct buf *b)
{
    const char *p = memmem(b->p, b->len, "{\"pid\":", 7);
    assert_non_null(p);
    return (int)strtol(p + 7, NULL, 10);
}

/* Start in the background; the stream stays open, *pid is told. */
static int start_bg(const char *json, int *pid, struct buf *seen)
{
    int fd = stream("/process.Process/Start", "", json);
    until(fd, seen, "}}}");
    *pid = pid_in(seen);
    return fd;
}

static void has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("'%s' is not in:\n%.2000s", part, text);
}

#define SH(cmd) \
    "{\"process\":{\"cmd\":\"/bin/sh\",\"args\":[\"-c\",\"" cmd "\"]},\"stdin\":false}"

/* --- tests ---------------------------------------------------------------- */

static void test_rest(void **state)
{
    struct answer a;
    (void)state;
    call(&a, "GET", "/health", "X-Access-Token: wrong\r\n", "");
    assert_int_equal(a.status, 204);
    buf_release(&a.body);
    call(&a, "GET", "/metrics", "X-Access-Token: wrong\r\n", "");
    assert_int_equal(a.status, 401);
    has(buf_str(&a.body), "{\"code\":401,\"message\":");
    buf_release(&a.body);
    rpc(&a, "/process.Process/List", "{}");
    assert_string_equal(buf_str(&a.body), "{\"processes\":[]}");
    buf_release(&a.body);
    call(&a, "GET", "/metrics", "", "");
    has(buf_str(&a.body), "\"cpu_used_pct\":");
    has(buf_str(&a.body), "\"mem_total_mib\":");
    buf_release(&a.body);
    call(&a, "GET", "/envs", "", "");
    assert_string_equal(buf_str(&a.body), "{\"BOX\":\"wide\"}");
    buf_release(&a.body);
    call(&a, "GET", "/nothing", "", "");
    assert_int_equal(a.status, 404);
    buf_release(&a.body);
}

static void test_start_forms(void **state)
{
    (void)state;
    char *t = start_run("", SH("printf out; printf err >&2"));
    has(t, "0 {\"event\":{\"start\":{\"pid\":");
    assert_true(str_starts(t, "0 {\"event\":{\"start\""));
    has(t, "0 {\"event\":{\"data\":{\"stdout\":\"b3V0\"}}}\n");
    has(t, "0 {\"event\":{\"data\":{\"stderr\":\"ZXJy\"}}}\n");
    has(t, "0 {\"event\":{\"end\":{\"exited\":true,\"status\":\"exit status 0\"}}}\n2 {}\n");
    free(t);
    t = start_run("", SH("exit 3"));
    has(t, "{\"end\":{\"exitCode\":3,\"exited\":true,\"status\":\"exit status "
           "3\",\"error\":\"exit "
           "status 3\"}}");
    free(t);
    t = start_run("", SH("kill -9 $$"));
    has(t, "{\"end\":{\"exitCode\":-1,\"status\":\"signal: killed\",\"error\":\"signal: "
           "killed\"}}");
    free(t);
    t = start_run("", "{\"process\":{\"cmd\":\"no-such-command\"}}");
    has(t, "\"exitCode\":127");
    free(t);
    t = start_run("", "{\"process\":{\"cmd\":\"/bin/true\",\"cwd\":\"/no/such\"}}");
    has(t, "2 {\"error\":{\"code\":\"invalid_argument\",\"message\":\"cwd '/no/such' does not");
    free(t);
    t = start_run("Authorization: Basic bm9ib2R5Og==\r\n", SH("true"));
    has(t, "2 {\"error\":{\"code\":\"unauthenticated\"");
    free(t);
    t = start_run("Authorization: Basic cm9vdDo=\r\n", SH("printf $USER.$BOX.$LANG.$PWD"));
    struct buf want = BUF_INIT;
    buf_addf(&want, "root.wide.C.UTF-8.%s", dir);
    char *b64 = b64_encode(want.p, want.len);
    has(t, b64);
    free(b64);
    buf_release(&want);
    free(t);
}

/* A child sees nothing of the init's descriptors, signals or session. */
static void test_clean_child(void **state)
{
    (void)state;
    char *t = start_run("", "{\"process\":{\"cmd\":\"/bin/sh\",\"args\":[\"-c\",\"ls "
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
    struct answer a;
    (void)state;
    call(&a, "POST", "/process.Process/Start", "Content-Type: application/json\r\n", "{}");
    assert_int_equal(a.status, 415);
    assert_int_equal(a.body.len, 0);
    buf_release(&a.body);
    call(&a, "POST", "/process.Process/List", "Content-Type: application/proto\r\n", "");
    assert_int_equal(a.status, 415);
    buf_release(&a.body);
    rpc(&a, "/process.Process/Nothing", "{}");
    assert_int_equal(a.status, 404);
    buf_release(&a.body);
    rpc(&a, "/process.Process/List", "{nonsense");
    assert_int_equal(a.status, 400);
    has(buf_str(&a.body), "{\"code\":\"invalid_argument\"");
    buf_release(&a.body);
    call(&a, "POST", "/process.Process/List", JSON "Connect-Timeout-Ms: 0\r\n", "{}");
    assert_int_equal(a.status, 504);
    buf_release(&a.body);
    char *t = start_run("Connect-Timeout-Ms: 12345678901\r\n", SH("true"));
    has(t, "2 {\"error\":{\"code\":\"invalid_argument\"");
    free(t);
    t = start_run("Connect-Timeout-Ms: 0\r\n", SH("true"));
    has(t, "2 {\"error\":{\"code\":\"deadline_exceeded\"");
    assert_null(strstr(t, "start"));
    free(t);
    rpc(&a, "/process.Process/SendSignal",
        "{\"process\":{\"pid\":99999},\"signal\":"
        "\"SIGNAL_SIGKILL\"}");
    assert_int_equal(a.status, 404);
    assert_string_equal(buf_str(&a.body),
                        "{\"code\":\"not_found\",\"message\":\"process with pid "
                        "99999 not found\"}");
    buf_release(&a.body);
    finish(stream("/filesystem.Filesystem/WatchDir", "", "{\"path\":\"/tmp\"}"), &a);
    t = frames(&a);
    has(t, "2 {\"error\":{\"code\":\"unimplemented\"");
    free(t);
}

/* The time-out kills; the stream ends with its own error. */
static void test_timeout(void **state)
{
    (void)state;
    int64_t t0 = clock_mono_ms();
    char *t = start_run("Connect-Timeout-Ms: 300\r\n", SH("exec sleep 60"));
    has(t, "2 {\"error\":{\"code\":\"deadline_exceeded\"");
    assert_true(clock_mono_ms() - t0 < 10000);
    const char *p = strstr(t, "\"pid\":");
    int pid = (int)strtol(p + 6, NULL, 10);
    free(t);
    struct answer a;
    char json[64];
    snprintf(json, sizeof(json), "{\"process\":{\"pid\":%d}}", pid);
    finish(stream("/process.Process/Connect", "", json), &a);
    t = frames(&a);
    has(t, "signal: killed");
    free(t);
}

static void test_stdin(void **state)
{
    struct answer a;
    struct buf seen = BUF_INIT;
    char json[160];
    int pid;
    (void)state;
    int fd = start_bg("{\"process\":{\"cmd\":\"cat\"},\"tag\":\"t1\"}", &pid, &seen);
    rpc(&a, "/process.Process/List", "{}");
    snprintf(json, sizeof(json),
             "{\"processes\":[{\"config\":{\"cmd\":\"cat\"},\"pid\":%d,"
             "\"tag\":\"t1\"}]}",
             pid);
    assert_string_equal(buf_str(&a.body), json);
    buf_release(&a.body);
    rpc(&a, "/process.Process/SendInput",
        "{\"process\":{\"tag\":\"t1\"},\"input\":{\"stdin\":\"aGkK\"}}");
    assert_int_equal(a.status, 200);
    assert_string_equal(buf_str(&a.body), "{}");
    buf_release(&a.body);
    until(fd, &seen, "\"stdout\":\"aGkK\"");
    snprintf(json, sizeof(json), "{\"process\":{\"pid\":%d},\"input\":{\"pty\":\"aGkK\"}}",
             pid);
    rpc(&a, "/process.Process/SendInput", json);
    assert_int_equal(a.status, 500);
    has(buf_str(&a.body), "\"internal\"");
    buf_release(&a.body);
    snprintf(json, sizeof(json), "{\"process\":{\"pid\":%d},\"signal\":\"SIGNAL_SIGHUP\"}",
             pid);
    rpc(&a, "/process.Process/SendSignal", json);
    assert_int_equal(a.status, 501);
    buf_release(&a.body);
    snprintf(json, sizeof(json), "{\"process\":{\"pid\":%d}}", pid);
    rpc(&a, "/process.Process/CloseStdin", json);
    assert_int_equal(a.status, 200);
    buf_release(&a.body);
    until(fd, &seen, "exit status 0");
    close(fd);
    buf_release(&seen);
}

static void test_stream_input(void **state)
{
    struct answer a;
    struct buf seen = BUF_INIT, b = BUF_INIT;
    char json[3][96];
    int pid;
    (void)state;
    int fd = start_bg("{\"process\":{\"cmd\":\"cat\"}}", &pid, &seen);
    snprintf(json[0], 96, "{\"start\":{\"process\":{\"pid\":%d}}}", pid);
    snprintf(json[1], 96, "{\"data\":{\"input\":{\"stdin\":\"eA==\"}}}");
    snprintf(json[2], 96, "{\"keepalive\":{}}");
    for (int i = 0; i < 3; i++) {
        char head[5] = {0, 0, 0, 0, (char)strlen(json[i])};
        buf_add(&b, head, 5);
        buf_adds(&b, json[i]);
    }
    finish(request("POST", "/process.Process/StreamInput", STREAM, b.p, b.len), &a);
    char *t = frames(&a);
    assert_string_equal(t, "0 {}\n2 {}\n");
    free(t);
    until(fd, &seen, "\"stdout\":\"eA==\"");
    close(fd);
    snprintf(json[0], 96, "{\"process\":{\"pid\":%d},\"signal\":\"SIGNAL_SIGTERM\"}", pid);
    rpc(&a, "/process.Process/SendSignal", json[0]);
    assert_int_equal(a.status, 200);
    buf_release(&a.body);
    buf_release(&b);
    buf_release(&seen);
}

/* Input for a process that does not read: taken up to the cap, then refused; the
 * loop answers others meanwhile. */
static void test_stdin_cap(void **state)
{
    struct answer a;
    struct buf seen = BUF_INIT, b = BUF_INIT;
    int pid, ok = 0, refused = 0;
    char *mb = calloc(1, 1u << 20);
    char *b64 = b64_encode(mb, 1u << 20);
    (void)state;
    int fd = start_bg("{\"process\":{\"cmd\":\"sleep\",\"args\":[\"60\"]}}", &pid, &seen);
    buf_addf(&b, "{\"process\":{\"pid\":%d},\"input\":{\"stdin\":\"%s\"}}", pid, b64);
    for (int i = 0; i < 6; i++) {
        finish(request("POST", "/process.Process/SendInput", JSON, b.p, b.len), &a);
        ok += a.status == 200;
        refused += a.status == 429;
        buf_release(&a.body);
    }
    assert_int_equal(ok, 4);
    assert_int_equal(refused, 2);
    buf_clear(&b);
    buf_addf(&b, "{\"process\":{\"pid\":%d},\"signal\":\"SIGNAL_SIGKILL\"}", pid);
    rpc(&a, "/process.Process/SendSignal", buf_str(&b));
    assert_int_equal(a.status, 200);
    buf_release(&a.body);
    until(fd, &seen, "signal: killed");
    close(fd);
    free(mb);
    free(b64);
    buf_release(&b);
    buf_release(&seen);
}

static void test_pty(void **state)
{
    struct answer a;
    struct buf seen = BUF_INIT;
    char json[200];
    int pid;
    (void)state;
    int fd =
        start_bg("{\"process\":{\"cmd\":\"/bin/sh\",\"args\":[\"-c\",\"stty size; read x; stty "
                 "size; echo $TERM; tty\"]},\"pty\":{\"size\":{\"cols\":81,\"rows\":25}}}",
                 &pid, &seen);
    until(fd, &seen, "\"pty\":\"MjUgODE"); /* "25 81" */
    snprintf(json, sizeof(json),
             "{\"process\":{\"pid\":%d},\"pty\":{\"size\":{\"cols\":100,\"rows\""
             ":30}}}",
             pid);
    rpc(&a, "/process.Process/Update", json);
    assert_int_equal(a.status, 200);
    buf_release(&a.body);
    snprintf(json, sizeof(json), "{\"process\":{\"pid\":%d}}", pid);
    rpc(&a, "/process.Process/CloseStdin", json);
    assert_int_equal(a.status, 500);
    has(buf_str(&a.body), "\"unknown\"");
    buf_release(&a.body);
    snprintf(json, sizeof(json), "{\"process\":{\"pid\":%d},\"input\":{\"pty\":\"Cg==\"}}",
             pid);
    rpc(&a, "/process.Process/SendInput", json);
    assert_int_equal(a.status, 200);
    buf_release(&a.body);
    until(fd, &seen, "exit status 0");
    close(fd);
    buf_release(&seen);
}

/* Losing the stream leaves the process alone; a late Connect gets start and
 * what comes next, then the kept end. */
static void test_connect(void **state)
{
    struct answer a;
    struct buf seen = BUF_INIT;
    char json[160];
    int pid;
    (void)state;
    int fd =
        start_bg("{\"process\":{\"cmd\":\"/bin/sh\",\"args\":[\"-c\",\"read x; echo got; exit "
                 "4\"]}}",
                 &pid, &seen);
    close(fd);
    snprintf(json, sizeof(json), "{\"process\":{\"pid\":%d}}", pid);
    fd = stream("/process.Process/Connect", "", json);
    buf_clear(&seen);
    until(fd, &seen, "start");
    snprintf(json, sizeof(json), "{\"process\":{\"pid\":%d},\"input\":{\"stdin\":\"Cg==\"}}",
             pid);
    rpc(&a, "/process.Process/SendInput", json);
    buf_release(&a.body);
    until(fd, &seen, "Z290Cg==");
    until(fd, &seen, "exit status 4");
    close(fd);
    snprintf(json, sizeof(json), "{\"process\":{\"pid\":%d}}", pid);
    finish(stream("/process.Process/Connect", "", json), &a);
    char *t = frames(&a);
    assert_true(str_starts(t, "0 {\"event\":{\"start\""));
    has(t, "\"exitCode\":4");
    has(t, "\n2 {}\n");
    free(t);
    buf_release(&seen);
}

static void test_keepalive(void **state)
{
    (void)state;
    char *t = start_run("Keepalive-Ping-Interval: 1\r\n", SH("sleep 1.4"));
    has(t, "0 {\"event\":{\"keepalive\":{}}}\n");
    free(t);
}

/* A daemon that keeps the pipes must not keep the stream. */
static void test_grandchild(void **state)
{
    (void)state;
    int64_t t0 = clock_mono_ms();
    char *t = start_run("", SH("sleep 30 & echo done"));
    has(t, "ZG9uZQo=");
    has(t, "exit status 0");
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
    long before = rss_kb(init_pid);
    int fd = start_bg(SH("head -c 67108864 /dev/zero"), &pid, &seen);
    /* others are served while this one is stuck */
    for (int i = 0; i < 20; i++) {
        char *t = start_run("", SH("true"));
        has(t, "exit status 0");
        free(t);
    }
    long stuck = rss_kb(init_pid);
    while ((n = take(fd, tmp, sizeof(tmp))) > 0)
        total += n;
    long after = rss_kb(init_pid);
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
        fds[i] = stream("/process.Process/Start", "", SH("echo $$; exit 7"));
    for (int i = 0; i < 100; i++) {
        struct answer a;
        finish(fds[i], &a);
        char *t = frames(&a);
        has(t, "\"exitCode\":7");
        free(t);
    }
    print_message("# 100 parallel starts: %lld ms\n", (long long)(clock_mono_ms() - t0));
}

static void test_files(void **state)
{
    struct answer a;
    (void)state;
    call(&a, "POST", "/files?path=sub%20dir%2Fa%22b.txt",
         "Content-Type: application/octet-stream\r\n", "hello world");
    assert_int_equal(a.status, 200);
    struct buf want = BUF_INIT;
    buf_addf(&want,
             "[{\"path\":\"%s/sub dir/a\\\"b.txt\",\"name\":\"a\\\"b.txt\",\"type\":\"file\"}]",
             dir);
    assert_string_equal(buf_str(&a.body), buf_str(&want));
    buf_release(&want);
    buf_release(&a.body);
    call(&a, "GET", "/files?path=sub+dir/a%22b.txt", "", "");
    assert_int_equal(a.status, 200);
    has(a.head, "Content-Length: 11\r\n");
    assert_string_equal(buf_str(&a.body), "hello world");
    buf_release(&a.body);
    call(&a, "GET", "/files?path=~/sub%20dir/a%22b.txt", "Range: bytes=6-\r\n", "");
    assert_int_equal(a.status, 206);
    has(a.head, "Content-Range: bytes 6-10/11\r\n");
    assert_string_equal(buf_str(&a.body), "world");
    buf_release(&a.body);
    call(&a, "GET", "/files?path=sub%20dir/a%22b.txt", "Range: bytes=11-\r\n", "");
    assert_int_equal(a.status, 416);
    has(a.head, "Content-Range: bytes */11\r\n");
    buf_release(&a.body);
    call(&a, "GET", "/files?path=nope", "", "");
    assert_int_equal(a.status, 404);
    has(buf_str(&a.body), "{\"code\":404,\"message\":");
    buf_release(&a.body);
    call(&a, "GET", "/files?path=/", "", "");
    assert_int_equal(a.status, 400);
    buf_release(&a.body);
    call(&a, "GET", "/files?path=a&username=eve", "", "");
    assert_int_equal(a.status, 401);
    buf_release(&a.body);
    call(&a, "GET", "/files?path=%2Ftmp%00x", "", "");
    assert_int_equal(a.status, 400);
    buf_release(&a.body);
}

static void test_multipart(void **state)
{
    static const char body[] =
        "--b1\r\nContent-Disposition: form-data; name=\"file\"; filename=\"m/1.txt\"\r\n"
        "Content-Type: application/octet-stream\r\n\r\none\r\n--b1\r\n"
        "Content-Disposition: form-data; name=\"other\"\r\n\r\nx\r\n--b1\r\n"
        "Content-Disposition: form-data; name=\"file\"; "
        "filename=\"m/2.txt\"\r\n\r\n\r\n--b1--\r\n";
    struct answer a;
    (void)state;
    call(&a, "POST", "/files", "Content-Type: multipart/form-data; boundary=b1\r\n", body);
    assert_int_equal(a.status, 200);
    has(buf_str(&a.body), "/m/1.txt\",\"name\":\"1.txt\"");
    has(buf_str(&a.body), "/m/2.txt\",\"name\":\"2.txt\"");
    buf_release(&a.body);
    call(&a, "GET", "/files?path=m/1.txt", "", "");
    assert_string_equal(buf_str(&a.body), "one");
    buf_release(&a.body);
    call(&a, "GET", "/files?path=m/2.txt", "", "");
    assert_int_equal(a.status, 200);
    assert_int_equal(a.body.len, 0);
    buf_release(&a.body);
    call(&a, "POST", "/files", "Content-Type: multipart/form-data; boundary=b1\r\n",
         "--b1\r\nx");
    assert_int_equal(a.status, 400);
    buf_release(&a.body);
    static const char gz[] =
        "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xab\xca\x2c\x28\x48\x4d\x01"
        "\x00\x57\x68\xc2\xe2\x06\x00\x00\x00"; /* "zipped" */
    finish(request("POST", "/files?path=g.txt",
                   "Content-Type: application/octet-stream\r\nContent-Encoding: gzip\r\n", gz,
                   sizeof(gz) - 1),
           &a);
    assert_int_equal(a.status, 200);
    buf_release(&a.body);
    call(&a, "GET", "/files?path=g.txt", "", "");
    assert_string_equal(buf_str(&a.body), "zipped");
    buf_release(&a.body);
    call(&a, "POST", "/files?path=g.txt",
         "Content-Type: application/octet-stream\r\nContent-Encoding: gzip\r\n", "not gzip");
    assert_int_equal(a.status, 400);
    buf_release(&a.body);
    call(&a, "GET", "/files?path=g.txt", "", ""); /* the old one is still whole */
    assert_string_equal(buf_str(&a.body), "zipped");
    buf_release(&a.body);
}

static void test_signed(void **state)
{
    struct answer a;
    (void)state;
    call(
        &a, "GET",
        "/files?path=/home/user/a.txt&signature=v1_naf1R2BObZkXurBkZmZPzpo4zkKc3SeGevkRli7E7Yo",
        "X-Access-Token: none\r\n", "");
    assert_int_equal(a.status, 404); /* allowed, but there is no such file */
    buf_release(&a.body);
    call(
        &a, "GET",
        "/files?path=/home/user/b.txt&signature=v1_naf1R2BObZkXurBkZmZPzpo4zkKc3SeGevkRli7E7Yo",
        "X-Access-Token: none\r\n", "");
    assert_int_equal(a.status, 401);
    buf_release(&a.body);
}

static void test_filesystem(void **state)
{
    struct answer a;
    (void)state;
    rpc(&a, "/filesystem.Filesystem/MakeDir", "{\"path\":\"fs/d\"}");
    assert_int_equal(a.status, 200);
    has(buf_str(&a.body),
        "{\"entry\":{\"name\":\"d\",\"type\":\"FILE_TYPE_DIRECTORY\",\"path\":\"");
    has(buf_str(&a.body), "\"permissions\":\"drwxr-xr-x\"");
    has(buf_str(&a.body), "\"size\":\"");
    buf_release(&a.body);
    rpc(&a, "/filesystem.Filesystem/MakeDir", "{\"path\":\"fs/d\"}");
    assert_int_equal(a.status, 409);
    has(buf_str(&a.body), "already_exists");
    buf_release(&a.body);
    call(&a, "POST", "/files?path=fs/d/x", "Content-Type: application/octet-stream\r\n", "1");
    buf_release(&a.body);
    rpc(&a, "/filesystem.Filesystem/ListDir", "{\"path\":\"fs\",\"depth\":2}");
    has(buf_str(&a.body), "/fs/d/x\"");
    buf_release(&a.body);
    rpc(&a, "/filesystem.Filesystem/ListDir", "{\"path\":\"fs/d/x\"}");
    assert_int_equal(a.status, 400);
    buf_release(&a.body);
    rpc(&a, "/filesystem.Filesystem/Move",
        "{\"source\":\"fs/d/x\",\"destination\":\"fs/new/y\"}");
    assert_int_equal(a.status, 200);
    has(buf_str(&a.body), "\"name\":\"y\",\"type\":\"FILE_TYPE_FILE\"");
    buf_release(&a.body);
    rpc(&a, "/filesystem.Filesystem/Stat", "{\"path\":\"fs/d/x\"}");
    assert_int_equal(a.status, 404);
    has(buf_str(&a.body), "\"not_found\"");
    buf_release(&a.body);
    rpc(&a, "/filesystem.Filesystem/Remove", "{\"path\":\"fs\"}");
    assert_string_equal(buf_str(&a.body), "{}");
    buf_release(&a.body);
    rpc(&a, "/filesystem.Filesystem/Stat", "{\"path\":\"fs\"}");
    assert_int_equal(a.status, 404);
    buf_release(&a.body);
}

/* Pause stops every process below the init, also one that left its session. */
static void test_pause(void **state)
{
    struct answer a;
    struct buf seen = BUF_INIT;
    int pid;
    (void)state;
    call(&a, "POST", "/cc/pause", "", "");
    assert_int_equal(a.status, 401);
    buf_release(&a.body);
    int fd = start_bg(
        "{\"process\":{\"cmd\":\"/bin/sh\",\"args\":[\"-c\",\"setsid sh -c 'while :; do "
        "echo x >> ticks; sleep 0.02; done' & wait\"]}}",
        &pid, &seen);
    char path[128];
    struct stat st, st2;
    snprintf(path, sizeof(path), "%s/ticks", dir);
    int64_t end = clock_mono_ms() + WAIT_MS;
    while ((stat(path, &st) != 0 || st.st_size < 6) && clock_mono_ms() < end)
        poll(NULL, 0, 10);
    call(&a, "POST", "/cc/pause", "X-CC-Control: " TOKEN "\r\n", "");
    assert_int_equal(a.status, 204);
    buf_release(&a.body);
    assert_int_equal(stat(path, &st), 0);
    poll(NULL, 0, 150); /* seven of its ticks: none may come */
    assert_int_equal(stat(path, &st2), 0);
    assert_int_equal(st.st_size, st2.st_size);
    call(&a, "GET", "/cc/stats", "X-CC-Control: " TOKEN "\r\n", "");
    has(buf_str(&a.body), "\"paused\":true");
    buf_release(&a.body);
    call(&a, "POST", "/cc/resume", "X-CC-Control: " TOKEN "\r\n", "");
    assert_int_equal(a.status, 204);
    buf_release(&a.body);
    end = clock_mono_ms() + WAIT_MS;
    while (stat(path, &st2) == 0 && st2.st_size <= st.st_size && clock_mono_ms() < end)
        poll(NULL, 0, 10);
    assert_true(st2.st_size > st.st_size);
    close(fd);
    buf_release(&seen);
}

/* Last: the dead-man timer ends the init and everything below it. */
static void test_deadline(void **state)
{
    struct answer a;
    struct buf seen = BUF_INIT;
    int pid, status;
    (void)state;
    int fd = start_bg(SH("exec sleep 600"), &pid, &seen);
    char json[64];
    snprintf(json, sizeof(json), "{\"deadline\":%lld}", (long long)clock_wall_ms() + 200);
    call(&a, "POST", "/cc/deadline", "X-CC-Control: " TOKEN "\r\n", json);
    assert_int_equal(a.status, 204);
    buf_release(&a.body);
    assert_int_equal(waitpid(init_pid, &status, 0), init_pid);
    init_pid = 0;
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    int64_t end = clock_mono_ms() + WAIT_MS;
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

static int group_up(void **state)
{
    (void)state;
    if (mkdtemp(dir) == NULL)
        return -1;
    snprintf(sock_path, sizeof(sock_path), "%s/s", dir);
    init_pid = init_start(sock_path, clock_wall_ms() + 600000);
    return 0;
}

static int group_down(void **state)
{
    char cmd[160];
    (void)state;
    if (init_pid > 0) {
        kill(init_pid, SIGTERM);
        waitpid(init_pid, NULL, 0);
    }
    snprintf(cmd, sizeof(cmd), "rm -rf '%s'", dir);
    return system(cmd) == 0 ? 0 : -1;
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
        cmocka_unit_test(test_files),        cmocka_unit_test(test_multipart),
        cmocka_unit_test(test_signed),       cmocka_unit_test(test_filesystem),
        cmocka_unit_test(test_pause),        cmocka_unit_test(test_deadline),
    };
    if (argc > 1 && strcmp(argv[1], "--init") == 0)
        return init_main();
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, group_up, group_down);
}
