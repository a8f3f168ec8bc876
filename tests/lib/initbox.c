/* The init and a client of bytes for tests: see the header. */
#include "initbox.h"
#include "tmpdir.h"
#include <cct/local/init.h>
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
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

char initbox_dir[] = "/tmp/cct-envd-XXXXXX";
static char sock_path[128];
pid_t initbox_pid;

/* --- the init ------------------------------------------------------------- */

static void init_exec(int listen_fd, const char *config)
{
    int fds[2];
    if (pipe(fds) != 0)
        _exit(90);
    if (write(fds[1], config, strlen(config)) < 0)
        _exit(91);
    close(fds[1]);
    /* as posix_spawn() leaves it: a signal that only the library knows, ignored */
    unsigned long ignore[32] = {1};
    syscall(SYS_rt_sigaction, 32, ignore, NULL, NSIG / 8);
    int a = fcntl(fds[0], F_DUPFD, 10), b = fcntl(listen_fd, F_DUPFD, 10);
    dup2(a, INIT_CONFIG_FD);
    dup2(b, INIT_LISTEN_FD);
    close(a);
    close(b);
    /* ASan keeps freed memory for a while: too much for a test of memory */
    setenv("ASAN_OPTIONS", "quarantine_size_mb=2:detect_leaks=1", 1);
    execl("/proc/self/exe", "test", "--init", (char *)NULL);
    _exit(92);
}

pid_t initbox_spawn(const char *path, long long deadline_ms)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    struct buf config = BUF_INIT;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    str_copy(sa.sun_path, sizeof(sa.sun_path), path);
    assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    assert_int_equal(listen(fd, 256), 0);
    buf_addf(&config,
             "{\"sandboxID\":\"i1\",\"token\":\"" INITBOX_TOKEN
             "\",\"user\":\"user\",\"home\":\"%s\","
             "\"workdir\":\"%s\",\"isolated\":false,\"envVars\":{\"BOX\":\"wide\"},"
             "\"deadline\":%lld,\"logFd\":2}",
             initbox_dir, initbox_dir, deadline_ms);
    pid_t pid = fork();
    if (pid == 0)
        init_exec(fd, buf_str(&config));
    close(fd);
    buf_release(&config);
    return pid;
}

long initbox_rss_kb(pid_t pid)
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

static int dial(const char *sock)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    str_copy(sa.sun_path, sizeof(sa.sun_path), sock);
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
size_t initbox_take(int fd, char *dst, size_t max)
{
    struct pollfd pf = {fd, POLLIN, 0};
    if (poll(&pf, 1, INITBOX_WAIT_MS) != 1)
        fail_msg("no byte within %d ms", INITBOX_WAIT_MS);
    ssize_t n = read(fd, dst, max);
    return n > 0 ? (size_t)n : 0;
}

int initbox_request_at(const char *sock, const char *method, const char *path,
                       const char *headers, const char *body, size_t len)
{
    struct buf b = BUF_INIT;
    int fd = dial(sock);
    buf_addf(&b, "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s", method, path, headers);
    if (strstr(headers, "X-Access-Token") == NULL)
        buf_adds(&b, "X-Access-Token: " INITBOX_TOKEN "\r\n");
    buf_addf(&b, "Content-Length: %zu\r\n\r\n", len);
    buf_add(&b, body, len);
    send_all(fd, b.p, b.len);
    buf_release(&b);
    return fd;
}

int initbox_request(const char *method, const char *path, const char *headers, const char *body,
                    size_t len)
{
    return initbox_request_at(sock_path, method, path, headers, body, len);
}

int initbox_begin(const char *method, const char *path, const char *headers)
{
    struct buf b = BUF_INIT;
    int fd = dial(sock_path);
    buf_addf(&b, "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s", method, path, headers);
    if (strstr(headers, "X-Access-Token") == NULL)
        buf_adds(&b, "X-Access-Token: " INITBOX_TOKEN "\r\n");
    buf_adds(&b, "\r\n");
    send_all(fd, b.p, b.len);
    buf_release(&b);
    return fd;
}

static void dechunk(struct initbox_answer *a)
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
void initbox_finish(int fd, struct initbox_answer *a)
{
    static char tmp[65536];
    size_t n;
    memset(a, 0, sizeof(*a));
    while ((n = initbox_take(fd, tmp, sizeof(tmp))) > 0)
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

void initbox_call(struct initbox_answer *a, const char *method, const char *path,
                  const char *headers, const char *body)
{
    initbox_finish(initbox_request(method, path, headers, body, strlen(body)), a);
}

void initbox_rpc(struct initbox_answer *a, const char *path, const char *body)
{
    initbox_call(a, "POST", path, INITBOX_JSON, body);
}

/* Open a server stream with one envelope. */
int initbox_stream(const char *path, const char *headers, const char *json)
{
    struct buf b = BUF_INIT;
    size_t n = strlen(json);
    char head[5] = {0, (char)(n >> 24), (char)(n >> 16), (char)(n >> 8), (char)n};
    struct buf h = BUF_INIT;
    buf_add(&b, head, 5);
    buf_add(&b, json, n);
    buf_addf(&h, "%s%s", INITBOX_STREAM, headers);
    int fd = initbox_request("POST", path, buf_str(&h), b.p, b.len);
    buf_release(&b);
    buf_release(&h);
    return fd;
}

/* Body of a stream as text: "flags json\n" for each envelope. */
char *initbox_frames(struct initbox_answer *a)
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

char *initbox_run(const char *headers, const char *json)
{
    struct initbox_answer a;
    initbox_finish(initbox_stream("/process.Process/Start", headers, json), &a);
    assert_int_equal(a.status, 200);
    assert_non_null(strstr(a.head, "Content-Type: application/connect+json\r\n"));
    return initbox_frames(&a);
}

/* Read a stream until `what` was seen; what came so far is in *b. */
void initbox_until(int fd, struct buf *b, const char *what)
{
    char tmp[4096];
    while (b->len == 0 || memmem(b->p, b->len, what, strlen(what)) == NULL) {
        size_t n = initbox_take(fd, tmp, sizeof(tmp));
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
int initbox_start(const char *json, int *pid, struct buf *seen)
{
    int fd = initbox_stream("/process.Process/Start", "", json);
    initbox_until(fd, seen, "}}}");
    *pid = pid_in(seen);
    return fd;
}

void initbox_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("'%s' is not in:\n%.2000s", part, text);
}

void initbox_program(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--init") == 0)
        exit(init_main());
    if (argc > 2 && strcmp(argv[1], INIT_AS_ROOT) == 0)
        exit(init_as_root(argv + 2));
}

int initbox_up(void **state)
{
    (void)state;
    if (mkdtemp(initbox_dir) == NULL)
        return -1;
    snprintf(sock_path, sizeof(sock_path), "%s/s", initbox_dir);
    initbox_pid = initbox_spawn(sock_path, clock_boot_ms() + 600000);
    return 0;
}

int initbox_down(void **state)
{
    (void)state;
    if (initbox_pid > 0) {
        kill(initbox_pid, SIGTERM);
        waitpid(initbox_pid, NULL, 0);
    }
    return tmpdir_remove(initbox_dir);
}
