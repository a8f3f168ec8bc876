/* A thousand live streams of ten lines a second each: the data plane's client on the net
 * thread against libcurl's socket interface alone, on the same server, over plain HTTP/1.1
 * and over TLS with HTTP/2. Both are processes of their own; this program, called with
 * "client", is the one of ours. */
#include "streamstat.h"
#include "../lib/bench.h"
#include "../lib/faultproc.h"
#include "../lib/netbed.h"
#include "../lib/rawpty.h"
#include "../lib/storebox.h"
#include "../lib/tmpdir.h"

#include <cct/envd.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char section[] = "stream";

enum { STREAMS = 1000, SECONDS = 3, SETTLE_MS = 1000, DEADLINE = 60000 };

/* --- the client ------------------------------------------------------------------------- */

struct client {
    struct netbed *bed;
    struct envd *envd;
    struct envd_target target;
    int n;
    size_t lines, broken;
};
struct one {
    struct client *client;
    bool spoke;
};

static bool on_data(void *ctx, enum envd_stream s, const char *data, size_t len)
{
    struct one *o = ctx;

    (void)s;
    for (size_t i = 0; i < len; i++)
        o->client->lines += data[i] == '\n';
    if (!o->spoke)
        bed_tick(o->client->bed);
    o->spoke = true;
    return true;
}

static void on_end(void *ctx, const struct envd_end *end)
{
    struct one *o = ctx;

    if (!o->client->broken++)
        fprintf(stderr, "a stream ended: %s\n", end->err.text);
    bed_tick(o->client->bed); /* nobody has to wait for it */
}

static void open_all(void *ctx)
{
    static const char *const args[] = {"10", "0", NULL};
    struct client *c = ctx;
    struct envd_proc_spec spec = {.cmd = "faultd-lines", .args = args};
    struct one *all = xcalloc((size_t)c->n, sizeof(*all));

    c->envd = envd_new(c->bed->net, &c->target);
    for (int i = 0; i < c->n; i++) {
        all[i].client = c;
        struct envd_proc_cb cb = {.on_data = on_data, .on_end = on_end, .ctx = &all[i]};
        envd_start(c->envd, &spec, &cb);
    }
}

static void read_lines(void *ctx)
{
    struct client *c = ctx;

    c->n = (int)c->lines;
}

static void close_all(void *ctx)
{
    envd_free(((struct client *)ctx)->envd);
}

static void wait_ms(int ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000L};

    nanosleep(&t, NULL);
}

static int run_client(char **argv)
{
    struct net_opts o = {.user_agent = "cc-tui/bench",
                         .ca_file = strcmp(argv[1], "-") != 0 ? argv[1] : NULL};
    struct client c = {.bed = bed_new(&o), .n = (int)strtol(argv[4], NULL, 10),
                       .target = {argv[0], argv[2], secret_new(argv[3], strlen(argv[3]))}};
    int n = c.n;
    double seconds = strtod(argv[5], NULL);

    bed_run(c.bed, read_lines, &c); /* libcurl is loaded by then */
    c.n = n;
    long kb = streamstat_kb();
    bed_reset(c.bed);
    bed_run(c.bed, open_all, &c);
    bool all = bed_wait(c.bed, n, DEADLINE);
    wait_ms(SETTLE_MS);
    bed_run(c.bed, read_lines, &c);
    int had = c.n;
    double cpu = streamstat_cpu(), t0 = streamstat_now();
    wait_ms((int)(seconds * 1000));
    bed_run(c.bed, read_lines, &c);
    streamstat_print(all && !c.broken ? n : 0, cpu, t0, (size_t)(c.n - had), kb);
    bed_run(c.bed, close_all, &c);
    bed_free(c.bed);
    return all && !c.broken ? 0 : 1;
}

/* --- the comparison ----------------------------------------------------------------------- */

struct side {
    struct bench_set cpu, amount, kb, fds, threads;
};

static void run_side(const char *command, struct side *s)
{
    double v[5];
    FILE *f = popen(command, "r");

    if (f && fscanf(f, "%lf %lf %lf %lf %lf", &v[0], &v[1], &v[2], &v[3], &v[4]) == 5 && v[2] > 0) {
        bench_add(&s->cpu, v[0]);
        bench_add(&s->amount, v[1]);
        bench_add(&s->kb, v[2]);
        bench_add(&s->fds, v[3]);
        bench_add(&s->threads, v[4]);
    }
    if (f && pclose(f) != 0)
        fprintf(stderr, "failed: %s\n", command);
}

/* Value of a name in the JSON text that the server answers to a GET. */
static char *ask(const struct faultd *f, const char *path, const char *name)
{
    struct net_opts o = {.user_agent = "cc-tui/bench", .ca_file = faultd_ca(f)};
    struct netbed *bed = bed_new(&o);
    struct net_req *q = net_req_new("GET", xasprintf("%s%s", faultd_url(f), path));
    char *value = NULL, *at;

    net_req_header(q, "X-API-Key", "e2b_0123456789abcdef0123456789abcdef01234567");
    struct bed_answer a = bed_fetch(bed, q);
    if ((at = strstr(a.body, name))) {
        at += strlen(name) + 3; /* ":" with its quotes */
        value = xstrndup(at, strcspn(at, "\""));
    }
    bed_free(bed);
    if (!value)
        die("bench: %s tells no %s: %d %s", path, name, a.status, a.err.text);
    return value;
}

static void row(const char *name, const char *what, const char *unit, const struct bench_set *floor,
                const struct bench_set *ours, enum bench_kind kind, double bar, bool must)
{
    char *text = xasprintf("%s: %s", name, what);

    bench_print(section, &(struct bench_row){text, unit, floor, ours, kind, bar, must});
    free(text);
}

static void measure(const char *name, struct faultd *f)
{
    struct side floor = {0}, ours = {0};
    const char *ca = faultd_ca(f), *url = faultd_url(f);
    char *id = ask(f, "/v2/sandboxes", "sandboxID"), *path = xasprintf("/sandboxes/%s", id);
    char *token = ask(f, path, "envdAccessToken"), *prog = bench_program("tests/bench/streamfloor");
    char *self = bench_program("tests/bench/bench_stream");
    char *a = xasprintf("%s %s %s %s %s %d %d", prog, url, ca ? ca : "-", id, token, STREAMS,
                        SECONDS);
    char *b = xasprintf("%s client %s %s %s %s %d %d", self, url, ca ? ca : "-", id, token, STREAMS,
                        SECONDS);

    for (int i = 0; i < bench_runs(3); i++) {
        run_side(a, &floor);
        run_side(b, &ours);
    }
    row(name, "CPU", "ms/s", &floor.cpu, &ours.cpu, BENCH_RATIO_MAX, 1.5, false);
    row(name, "CPU, at most twice the floor's", "ms/s", &floor.cpu, &ours.cpu, BENCH_RATIO_MAX, 2,
        true);
    row(name, "memory a stream", "kB", &floor.kb, &ours.kb, BENCH_VALUE_MAX, 20, !ca);
    row(name, "memory a stream, against the floor's", "kB", &floor.kb, &ours.kb, BENCH_RATIO_MAX,
        ca ? 1.1 : 1.5, true);
    row(name, "descriptors beyond the streams'", "", NULL, &ours.fds, BENCH_VALUE_MAX,
        STREAMS + 24, true);
    row(name, "descriptors of the floor", "", NULL, &floor.fds, BENCH_INFO, 0, false);
    row(name, "threads", "", NULL, &ours.threads, BENCH_VALUE_MAX, 4, true);
    row(name, "lines that came", "/s", NULL, &ours.amount, BENCH_VALUE_MIN, STREAMS * 9.5, true);
    free(a);
    free(b);
    free(id);
    free(path);
    free(token);
    free(prog);
    free(self);
}

static int count_tasks(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *d = opendir(path);
    int n = -2;

    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

/* The whole program on a terminal, connected and at work. */
static void threads_of_the_screen(struct faultd *f)
{
    static const char *const up[] = {"NAV", NULL};
    char *dir = storebox_dir();
    char **env = bench_env(dir, (int)strtol(strrchr(faultd_url(f), ':') + 1, NULL, 10));
    const char *argv[] = {bench_program("cc-tui"), NULL};
    struct rawpty p;

    rawpty_start(&p, argv, env, 24, 80);
    rawpty_until(&p, up, 10000);
    rawpty_settle(&p, 500, 3000);
    bench_value(section, "threads of the whole program", "", count_tasks(p.pid), BENCH_VALUE_MAX, 4,
                true);
    rawpty_send(&p, "q");
    rawpty_end(&p, 3000);
    tmpdir_remove(dir);
    free(dir);
}

int main(int argc, char **argv)
{
    static const char *const boxes[] = {"--sandboxes", "1", NULL};
    struct faultd *f;

    if (argc == 8 && str_eq(argv[1], "client"))
        return run_client(argv + 2);
    f = faultd_start(boxes);
    measure("http/1.1", f);
    threads_of_the_screen(f);
    faultd_stop(f);
    f = faultd_start_tls(boxes);
    measure("TLS, HTTP/2", f);
    faultd_stop(f);
    return 0;
}
