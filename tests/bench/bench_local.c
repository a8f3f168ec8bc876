/* The local provider: what a sandbox costs to make, many idle streams, many commands
 * at once, a reader that is slow. Its server is held against libevent's own. */
#include "../lib/bench.h"
#include "../lib/rawhttp.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const char section[] = "local";

enum { BOXES = 20, STREAMS = 1000, CREATES = 100, RUNS_AT_ONCE = 100, REQUESTS = 2000 };
#define BULK 200000000LL /* bytes of output for the slow reader */

static void must_create(const struct localbed *l, int fd, struct rawhttp_box *x)
{
    int status = rawhttp_create(l, fd, "{\"templateID\":\"base\",\"timeout\":600}", x);
    if (status == 201)
        return;
    fprintf(stderr, "create answered %d\n", status);
    exit(1);
}

static void must_see(int fd, const char *text)
{
    if (rawhttp_await(fd, text))
        return;
    fprintf(stderr, "a stream ended without '%s'\n", text);
    exit(1);
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
    static const char ask[] = "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n";
    int fd = rawhttp_dial(port);
    if (write(fd, ask, sizeof(ask) - 1) != (ssize_t)sizeof(ask) - 1)
        exit(1);
    return fd;
}

/* --- sections ------------------------------------------------------------------------ */

static void measure_creates(const struct localbed *l)
{
    struct bench_set create = {0}, end = {0};
    int fd = rawhttp_dial(l->control);
    for (int i = 0; i < CREATES; i++) {
        struct rawhttp_box x;
        int64_t t0 = bench_now_us();
        must_create(l, fd, &x);
        int64_t t1 = bench_now_us();
        rawhttp_box_call(l, fd, &x, "DELETE", "", NULL);
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
    int fd = rawhttp_dial(port);
    int64_t t0 = bench_now_us();
    for (int i = 0; i < REQUESTS; i++)
        rawhttp_call(fd, port, key, "GET", path, NULL, NULL);
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

static void measure_parallel(const struct localbed *l, const struct rawhttp_box *x)
{
    struct bench_set all = {0};
    for (int k = 0; k < bench_runs(5); k++) {
        int fds[RUNS_AT_ONCE];
        int64_t t0 = bench_now_us();
        for (int i = 0; i < RUNS_AT_ONCE; i++)
            fds[i] = rawhttp_stream(l, x, "echo done", 1);
        for (int i = 0; i < RUNS_AT_ONCE; i++) {
            must_see(fds[i], "exit status 0");
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
    while (rawhttp_fds_of(pid) > before + 2) {
        if (bench_now_us() - t0 > 10000000)
            return 10000;
        poll(NULL, 0, 2); /* looking costs the process time, too */
    }
    return (double)(bench_now_us() - t0) / 1000;
}

static void measure_idle(const struct localbed *l, const struct rawhttp_box *boxes,
                         pid_t floor_pid, int floor_port)
{
    static int fds[STREAMS];
    struct bench_set ours = {0}, floor = {0}, gone = {0}, floor_gone = {0};
    long threads = 0;
    for (int k = 0; k < bench_runs(3); k++) {
        int before = rawhttp_fds_of(floor_pid);
        for (int i = 0; i < STREAMS; i++)
            fds[i] = floor_stream(floor_port);
        for (int i = 0; i < STREAMS; i++)
            must_see(fds[i], "start");
        bench_add(&floor, (double)rawhttp_status_of(floor_pid, "VmRSS:"));
        bench_add(&floor_gone, close_all(fds, STREAMS, floor_pid, before));

        before = rawhttp_fds_of(l->pid);
        for (int i = 0; i < STREAMS; i++)
            fds[i] = rawhttp_stream(l, &boxes[i % BOXES], "exec sleep 20", 1);
        for (int i = 0; i < STREAMS; i++)
            must_see(fds[i], "\"start\"");
        bench_add(&ours, (double)rawhttp_status_of(l->pid, "VmRSS:"));
        threads = rawhttp_status_of(l->pid, "Threads:");
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

static void measure_slow(const struct localbed *l, const struct rawhttp_box *x)
{
    static char piece[256 << 10];
    struct counter c = {0};
    char command[64];
    long idle = rawhttp_status_of(l->pid, "VmRSS:"), most = idle;
    snprintf(command, sizeof(command), "head -c %lld /dev/zero", BULK);
    int64_t t0 = bench_now_us();
    int fd = rawhttp_stream(l, x, command, 0);
    poll(NULL, 0, 500); /* a reader that is away */
    ssize_t n;
    for (long k = 0; (n = read(fd, piece, sizeof(piece))) > 0; k++) {
        count(&c, piece, (size_t)n);
        if (k % 64)
            continue;
        long now = rawhttp_status_of(l->pid, "VmRSS:");
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
    struct rawhttp_box boxes[BOXES];
    int fd = rawhttp_dial(l->control);
    for (int i = 0; i < BOXES; i++)
        must_create(l, fd, &boxes[i]);
    measure_parallel(l, &boxes[0]);
    measure_idle(l, boxes, floor_pid, floor_port);
    measure_slow(l, &boxes[1]);
    close(fd);
    kill(floor_pid, SIGTERM);
    waitpid(floor_pid, NULL, 0);
    localbed_free(l);
    return 0;
}
