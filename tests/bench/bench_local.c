/* The local provider: what a sandbox costs to make, many idle streams, many commands
 * at once, a reader that is slow. Its server is held against libevent's own. */
#include "../lib/bench.h"
#include "../lib/localbed.h"

#include <cct/util/buf.h>
#include <cct/util/json.h>
#include <cct/util/xalloc.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const char section[] = "local";

enum { BOXES = 20, STREAMS = 1000, CREATES = 100, RUNS_AT_ONCE = 100, REQUESTS = 2000 };
#define BULK 200000000LL /* bytes of output for the slow reader */

struct box {
    char id[32], token[80];
};

/* --- a client that does as little as possible --------------------------------- */

static int dial(int port)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0) {
        perror("connect");
        exit(1);
    }
    return fd;
}

static void put(int fd, const struct buf *b)
{
    if (write(fd, b->p, b->len) != (ssize_t)b->len) {
        perror("write");
        exit(1);
    }
}

static void begin(struct buf *b, const char *method, const char *path, int port)
{
    buf_clear(b);
    buf_addf(b, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n", method, path, port);
}

/* One call on a kept connection; status, body into out (may be NULL). */
static int call(int fd, int port, const char *key, const char *method, const char *path,
                const char *json, struct buf *out)
{
    struct buf b = BUF_INIT;
    begin(&b, method, path, port);
    if (key)
        buf_addf(&b, "X-API-Key: %s\r\n", key);
    if (json)
        buf_addf(&b, "Content-Type: application/json\r\nContent-Length: %zu\r\n", strlen(json));
    buf_addf(&b, "\r\n%s", json ? json : "");
    put(fd, &b);
    buf_clear(&b);
    const char *end = NULL;
    size_t want = 0;
    for (;;) {
        char *p = buf_reserve(&b, 4096);
        ssize_t n = read(fd, p, 4096);
        if (n <= 0)
            break;
        b.len += (size_t)n;
        end = end ? end : strstr(buf_str(&b), "\r\n\r\n");
        if (!end)
            continue;
        const char *cl = strstr(buf_str(&b), "Content-Length: ");
        want = cl ? (size_t)strtoul(cl + 16, NULL, 10) : 0;
        end = strstr(buf_str(&b), "\r\n\r\n");
        if (b.len >= (size_t)(end + 4 - b.p) + want)
            break;
    }
    int status = b.len > 12 ? (int)strtol(buf_str(&b) + 9, NULL, 10) : 0;
    if (out && end)
        buf_add(out, end + 4, want);
    buf_release(&b);
    return status;
}

/* A stream of a command in a sandbox: the request is sent, nothing is read. HTTP/1.0
 * where the bytes are to be counted: its answer is not chunked. */
static int open_stream(const struct localbed *l, const struct box *x, const char *command,
                       int minor)
{
    struct buf msg = BUF_INIT, b = BUF_INIT;
    struct jw w;
    jw_init(&w, &msg);
    jw_obj(&w, NULL);
    jw_obj(&w, "process");
    jw_str(&w, "cmd", "/bin/sh");
    jw_arr(&w, "args");
    jw_str(&w, NULL, "-c");
    jw_str(&w, NULL, command);
    jw_end(&w);
    jw_end(&w);
    jw_bool(&w, "stdin", false);
    jw_end(&w);
    int fd = dial(l->traffic);
    buf_addf(&b,
             "POST /process.Process/Start HTTP/1.%d\r\nHost: 127.0.0.1:%d\r\n"
             "E2b-Sandbox-Id: %s\r\nX-Access-Token: %s\r\n"
             "Content-Type: application/connect+json\r\nContent-Length: %zu\r\n\r\n",
             minor, l->traffic, x->id, x->token, msg.len + 5);
    unsigned char head[5] = {0, 0, 0, (unsigned char)(msg.len >> 8), (unsigned char)msg.len};
    buf_add(&b, head, 5);
    buf_add(&b, msg.p, msg.len);
    put(fd, &b);
    buf_release(&b);
    buf_release(&msg);
    return fd;
}

static void await_text(int fd, const char *text)
{
    struct buf b = BUF_INIT;
    while (!b.len || !memmem(b.p, b.len, text, strlen(text))) {
        char *p = buf_reserve(&b, 4096);
        ssize_t n = read(fd, p, 4096);
        if (n <= 0) {
            fprintf(stderr, "stream ended early: %s\n", buf_str(&b));
            exit(1);
        }
        b.len += (size_t)n;
    }
    buf_release(&b);
}

static void make_box(const struct localbed *l, int fd, struct box *x)
{
    struct buf out = BUF_INIT;
    int status = call(fd, l->control, l->key, "POST", "/v2/sandboxes",
                      "{\"templateID\":\"base\",\"timeout\":600}", &out);
    struct cJSON *j = json_parse(buf_str(&out), out.len, NULL);
    if (status != 201 || !j) {
        fprintf(stderr, "create: %d %s\n", status, buf_str(&out));
        exit(1);
    }
    snprintf(x->id, sizeof(x->id), "%s", json_str(j, "sandboxID", ""));
    snprintf(x->token, sizeof(x->token), "%s", json_str(j, "envdAccessToken", ""));
    json_free(j);
    buf_release(&out);
}

static void end_box(const struct localbed *l, int fd, const struct box *x)
{
    char path[64];
    snprintf(path, sizeof(path), "/sandboxes/%s", x->id);
    call(fd, l->control, l->key, "DELETE", path, NULL, NULL);
}

/* --- what the kernel says of a process ------------------------------------------ */

static long status_of(pid_t pid, const char *field)
{
    char path[64], line[256];
    long v = -1;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, field, strlen(field)) == 0)
            v = strtol(line + strlen(field) + 1, NULL, 10);
    if (f)
        fclose(f);
    return v;
}

static int fds_of(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *d = opendir(path);
    int n = 0;
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

/* --- the floor --------------------------------------------------------------------- */

static pid_t floor_start(int *port)
{
    int fds[2];
    char text[16] = "";
    if (pipe(fds) != 0)
        exit(1);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fds[1], 1);
        execl(bench_program("tests/bench/evfloor"), "evfloor", (char *)NULL);
        _exit(127);
    }
    close(fds[1]);
    if (read(fds[0], text, sizeof(text) - 1) <= 0)
        exit(1);
    close(fds[0]);
    *port = atoi(text);
    return pid;
}

static int floor_stream(int port)
{
    struct buf b = BUF_INIT;
    int fd = dial(port);
    begin(&b, "POST", "/", port);
    buf_adds(&b, "Content-Length: 0\r\n\r\n");
    put(fd, &b);
    buf_release(&b);
    return fd;
}

/* --- sections ------------------------------------------------------------------------ */

static void measure_creates(const struct localbed *l)
{
    struct bench_set create = {0}, end = {0};
    int fd = dial(l->control);
    for (int i = 0; i < CREATES; i++) {
        struct box x;
        int64_t t0 = bench_now_us();
        make_box(l, fd, &x);
        int64_t t1 = bench_now_us();
        end_box(l, fd, &x);
        bench_add(&create, (double)(t1 - t0) / 1000);
        bench_add(&end, (double)(bench_now_us() - t1) / 1000);
    }
    close(fd);
    bench_print(section, &(struct bench_row){"create, median of 100", "ms", NULL, &create,
                                             BENCH_VALUE_MAX, 40, true});
    bench_print(section, &(struct bench_row){"kill, median of 100", "ms", NULL, &end,
                                             BENCH_INFO, 0, false});
}

static double requests_per_s(int port, const char *key, const char *path)
{
    int fd = dial(port);
    int64_t t0 = bench_now_us();
    for (int i = 0; i < REQUESTS; i++)
        call(fd, port, key, "GET", path, NULL, NULL);
    double s = (double)(bench_now_us() - t0) / 1e6;
    close(fd);
    return REQUESTS / s;
}

static void measure_requests(const struct localbed *l, int floor_port)
{
    struct bench_set ours = {0}, floor = {0};
    for (int i = 0; i < bench_runs(5); i++) {
        bench_add(&floor, requests_per_s(floor_port, NULL, "/health"));
        bench_add(&ours, requests_per_s(l->control, l->key, "/health"));
    }
    bench_print(section, &(struct bench_row){"small requests, floor: evhttp", "/s", &floor,
                                             &ours, BENCH_RATIO_MIN, 0.7, false});
}

static void measure_parallel(const struct localbed *l, const struct box *x)
{
    struct bench_set all = {0};
    for (int k = 0; k < bench_runs(5); k++) {
        int fds[RUNS_AT_ONCE];
        int64_t t0 = bench_now_us();
        for (int i = 0; i < RUNS_AT_ONCE; i++)
            fds[i] = open_stream(l, x, "echo done", 1);
        for (int i = 0; i < RUNS_AT_ONCE; i++) {
            await_text(fds[i], "exit status 0");
            close(fds[i]);
        }
        bench_add(&all, (double)(bench_now_us() - t0) / 1000);
    }
    bench_print(section, &(struct bench_row){"100 commands at once", "ms", NULL, &all,
                                             BENCH_VALUE_MAX, 2000, true});
}

/* ms until the process has closed what the client closed. */
static double close_all(int *fds, int n, pid_t pid, int before)
{
    for (int i = 0; i < n; i++)
        close(fds[i]);
    int64_t t0 = bench_now_us();
    while (fds_of(pid) > before + 2) {
        if (bench_now_us() - t0 > 10000000)
            return 10000;
        poll(NULL, 0, 2); /* looking costs the process time, too */
    }
    return (double)(bench_now_us() - t0) / 1000;
}

static void measure_idle(const struct localbed *l, const struct box *boxes, pid_t floor_pid,
                         int floor_port)
{
    static int fds[STREAMS];
    struct bench_set ours = {0}, floor = {0}, gone = {0}, floor_gone = {0};
    long threads = 0;
    for (int k = 0; k < bench_runs(3); k++) {
        int before = fds_of(floor_pid);
        for (int i = 0; i < STREAMS; i++)
            fds[i] = floor_stream(floor_port);
        for (int i = 0; i < STREAMS; i++)
            await_text(fds[i], "start");
        bench_add(&floor, (double)status_of(floor_pid, "VmRSS:"));
        bench_add(&floor_gone, close_all(fds, STREAMS, floor_pid, before));

        before = fds_of(l->pid);
        for (int i = 0; i < STREAMS; i++)
            fds[i] = open_stream(l, &boxes[i % BOXES], "exec sleep 20", 1);
        for (int i = 0; i < STREAMS; i++)
            await_text(fds[i], "\"start\"");
        bench_add(&ours, (double)status_of(l->pid, "VmRSS:"));
        threads = status_of(l->pid, "Threads:");
        bench_add(&gone, close_all(fds, STREAMS, l->pid, before));
    }
    bench_value(section, "threads of the provider", "", (double)threads, BENCH_VALUE_MAX, 1,
                true);
    bench_print(section, &(struct bench_row){"1000 idle streams: memory, beside evhttp's", "kB",
                                             &floor, &ours, BENCH_INFO, 0, false});
    bench_print(section, &(struct bench_row){"1000 idle streams: memory", "kB", NULL, &ours,
                                             BENCH_VALUE_MAX, 10240, true});
    bench_print(section, &(struct bench_row){"1000 streams closed: noticed, beside evhttp's",
                                             "ms", &floor_gone, &gone, BENCH_INFO, 0, false});
    bench_print(section, &(struct bench_row){"1000 streams closed: noticed", "ms", NULL, &gone,
                                             BENCH_VALUE_MAX, 50, true});
}

/* Bytes of stdout in envelopes of base64 texts, counted as they come. */
struct counter {
    size_t at; /* how much of the mark was seen */
    bool in_text;
    long long chars, pads;
};

static void count(struct counter *c, const char *p, size_t len)
{
    static const char mark[] = "\"stdout\":\"";
    for (size_t i = 0; i < len; i++) {
        if (c->in_text) {
            c->in_text = p[i] != '"';
            c->chars += c->in_text;
            c->pads += p[i] == '=';
        } else {
            c->at = p[i] == mark[c->at] ? c->at + 1 : p[i] == mark[0];
            c->in_text = c->at == sizeof(mark) - 1;
            if (c->in_text)
                c->at = 0;
        }
    }
}

static void measure_slow(const struct localbed *l, const struct box *x)
{
    static char piece[256 << 10];
    struct counter c = {0};
    char command[64];
    long idle = status_of(l->pid, "VmRSS:"), most = idle;
    snprintf(command, sizeof(command), "head -c %lld /dev/zero", BULK);
    int64_t t0 = bench_now_us();
    int fd = open_stream(l, x, command, 0);
    poll(NULL, 0, 500); /* a reader that is away */
    ssize_t n;
    for (long k = 0; (n = read(fd, piece, sizeof(piece))) > 0; k++) {
        count(&c, piece, (size_t)n);
        if (k % 64)
            continue;
        long now = status_of(l->pid, "VmRSS:");
        most = now > most ? now : most;
        poll(NULL, 0, 1);
    }
    close(fd);
    bench_value(section, "slow reader of 200 MB: memory above idle", "kB",
                (double)(most - idle), BENCH_VALUE_MAX, 8192, true);
    bench_value(section, "slow reader of 200 MB: bytes missing", "",
                (double)(BULK - (c.chars / 4 * 3 - c.pads)), BENCH_VALUE_MAX, 0, true);
    bench_value(section, "slow reader of 200 MB", "s", (double)(bench_now_us() - t0) / 1e6,
                BENCH_INFO, 0, false);
}

int main(void)
{
    struct rlimit rl;
    if (getrlimit(RLIMIT_NOFILE, &rl) == 0) {
        rl.rlim_cur = rl.rlim_max < 8192 ? rl.rlim_max : 8192;
        setrlimit(RLIMIT_NOFILE, &rl);
    }
    struct localbed *l = localbed_new();
    if (!l) {
        bench_skip(section, "all", "the local provider does not start here");
        return 0;
    }
    int floor_port;
    pid_t floor_pid = floor_start(&floor_port);
    measure_creates(l);
    measure_requests(l, floor_port);
    struct box boxes[BOXES];
    int fd = dial(l->control);
    for (int i = 0; i < BOXES; i++)
        make_box(l, fd, &boxes[i]);
    measure_parallel(l, &boxes[0]);
    measure_idle(l, boxes, floor_pid, floor_port);
    measure_slow(l, &boxes[1]);
    close(fd);
    kill(floor_pid, SIGTERM);
    waitpid(floor_pid, NULL, 0);
    localbed_free(l);
    return 0;
}
