/* Kill all: N sandboxes whose deletes take 100 to 200 ms, over TLS with HTTP/2 (a hundred
 * streams on a connection, as real services allow) and over plain HTTP. The service says
 * when requests came: from the first delete's arrival to the last answer, against the
 * slowest answer, against libcurl's multi interface doing only the deletes, and the whole
 * command against E2B's own. Then what is left of 250 by both when the service stumbles,
 * and the time from the key to the first delete. PART=tls|plain|left|key: that alone. */
#include "../lib/bench.h"
#include "../lib/faultproc.h"
#include "../lib/netbed.h"
#include "../lib/rawpty.h"
#include "../lib/storebox.h"
#include "../lib/tmpdir.h"

#include <cct/e2b.h>
#include <cct/envd.h>
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char section[] = "kill";
#define SLOW_DELETES "{\"method\":\"DELETE\",\"delay_ms\":100,\"delay_to\":200}"

struct seen { /* by the service; ms */
    double total, slowest, spread;
    int64_t first_us, left;
    int deletes;
};
struct result {
    struct bench_set total, slowest, floor, wall, cli, cli_total, spread;
    int bad;
};

/* --- the service ----------------------------------------------------------------- */

static struct seen look(struct faultd *f)
{
    char *log = faultd_http(f, "GET", "/_faultd/log", NULL);
    struct cJSON *j = log ? json_parse(log, strlen(log), NULL) : NULL;
    int64_t first = INT64_MAX, last = 0, end = 0, slow = 0;
    struct seen s = {.left = json_i64(j, "running", -1) + json_i64(j, "paused", -1)};

    for (const struct cJSON *r = json_first(json_get(j, "requests")); r; r = json_next(r)) {
        int64_t us = json_i64(r, "us", 0), delay = json_i64(r, "delay", 0);
        if (!str_eq(json_str(r, "method", ""), "DELETE"))
            continue;
        s.deletes++;
        first = us < first ? us : first;
        last = us > last ? us : last;
        end = us + delay * 1000 > end ? us + delay * 1000 : end;
        slow = delay > slow ? delay : slow;
    }
    s.first_us = first;
    s.total = (double)(end - first) / 1000;
    s.spread = (double)(last - first) / 1000;
    s.slowest = (double)slow;
    json_free(j);
    free(log);
    return s;
}

static void fill(struct faultd *f, int n, const char *rules)
{
    char *json = xasprintf("{\"reset\":true,\"sandboxes\":%d,\"paused\":%d,\"rules\":[%s]}",
                           n - n * 4 / 25, n * 4 / 25, rules);
    if (!faultd_config(f, json))
        die("the service does not take %s", json);
    free(json);
}

static char **env_for(const struct faultd *f, const char *dir)
{
    char **env = bench_env(dir, 0);
    const char *ca = faultd_ca(f);
    size_t n = 0;
    while (env[n])
        n++;
    env[n++] = xasprintf("E2B_API_URL=%s", faultd_url(f));
    env[n++] = xstrdup("E2B_API_KEY=e2b_0123456789abcdef0123456789abcdef01234567");
    if (ca) {
        env[n++] = xasprintf("SSL_CERT_FILE=%s", ca);
        env[n++] = xasprintf("NODE_EXTRA_CA_CERTS=%s", ca);
    }
    return env;
}

/* --- programs --------------------------------------------------------------------- */

/* Milliseconds of a whole command; negative when it failed (unless any). */
static double run(const char *const argv[], char *const env[], bool any, struct buf *out)
{
    struct rawpty p;
    static const char *const never[] = {"\001", NULL};
    rawpty_start(&p, argv, env, 24, 80);
    rawpty_until(&p, never, 60000);
    double ms = (double)(bench_now_us() - p.started_us) / 1000;
    if (out)
        buf_add(out, p.seen.p ? p.seen.p : "", p.seen.len);
    return rawpty_end(&p, 5000) == 0 || any ? ms : -1;
}

static double run_ours(char *const env[], bool any, struct buf *out)
{
    const char *argv[] = {bench_program("cc-tui"), "kill", "--all", "--scope", "account",
                          "--yes", "--json", NULL};
    return run(argv, env, any, out);
}

/* E2B's own, of the environment's E2B_CLI or where the SDK's tests put it; or NULL. */
static const char *cli(void)
{
    static char *path;
    const char *given = getenv("E2B_CLI");
    if (!path)
        path = realpath(given ? given : "tests/sdk/node_modules/.bin/e2b", NULL);
    return path;
}

static double run_cli(char *const env[], bool paused_too)
{
    const char *argv[] = {cli(), "sandbox", "kill", "--all", "--state", "running,paused", NULL};
    if (!paused_too)
        argv[4] = NULL;
    return run(argv, env, true, NULL);
}

static double run_floor(const struct faultd *f, char *const env[], int n)
{
    char *url = xasprintf("%s/sandboxes/ibench", faultd_url(f)), *count = xasprintf("%d", n);
    const char *argv[] = {bench_program("tests/bench/multi"), url, count, faultd_ca(f), NULL};
    double ms = run(argv, env, false, NULL);
    free(url);
    free(count);
    return ms;
}

/* --- how fast --------------------------------------------------------------------- */

static void one_round(struct faultd *f, int n, char *const env[], struct result *r)
{
    struct buf out = BUF_INIT;
    struct seen s;
    fill(f, n, SLOW_DELETES);
    if (run_floor(f, env, n) >= 0)
        bench_add(&r->floor, look(f).total);
    fill(f, n, SLOW_DELETES);
    double ms = run_ours(env, false, &out);
    s = look(f);
    if (ms < 0 || s.left != 0 || s.deletes != n || !strstr(buf_str(&out), "\"verified\":true")) {
        r->bad++;
        if (getenv("VERBOSE"))
            fprintf(stderr, "%s\n", buf_str(&out));
    }
    bench_add(&r->total, s.total);
    bench_add(&r->slowest, s.slowest);
    bench_add(&r->spread, s.spread);
    bench_add(&r->wall, ms);
    if (cli()) {
        fill(f, n, SLOW_DELETES);
        ms = run_cli(env, true);
        s = look(f);
        if (s.deletes) { /* else it does not work here: no floor */
            bench_add(&r->cli, ms);
            bench_add(&r->cli_total, s.total);
        }
    }
    buf_release(&out);
}

static void show(int n, const char *how, double bar, struct result *r)
{
    char what[96];
#define ROW(text, unit, ...)                                                    \
    snprintf(what, sizeof(what), "%d, %s: " text, n, how);                      \
    bench_print(section, &(struct bench_row){what, unit, __VA_ARGS__})
    ROW("deletes; floor: the slowest answer", "ms", &r->slowest, &r->total, BENCH_RATIO_MAX, bar,
        true);
    ROW("deletes; floor: libcurl multi alone", "ms", &r->floor, &r->total, BENCH_RATIO_MAX, 1.15,
        false);
    ROW("first delete to last delete", "ms", NULL, &r->spread, BENCH_INFO, 0, false);
    ROW("deletes; floor: those of E2B's CLI", "ms", &r->cli_total, &r->total, BENCH_RATIO_MAX,
        n >= 1000 ? 0.12 : 1, n >= 1000);
    ROW("whole command; floor: E2B's CLI", "ms", &r->cli, &r->wall, BENCH_RATIO_MAX,
        n >= 1000 ? 0.12 : 1, false);
#undef ROW
    snprintf(what, sizeof(what), "%d, %s: runs not verified", n, how);
    bench_value(section, what, "", r->bad, BENCH_VALUE_MAX, 0, true);
}

static void measure(int n, bool tls, double bar)
{
    static const char *const args[] = {"--streams", "100", NULL};
    struct faultd *f = tls ? faultd_start_tls(args) : faultd_start(args);
    char *dir = storebox_dir(), **env = env_for(f, dir);
    struct result r = {0};
    for (int i = 0; i < bench_runs(5); i++)
        one_round(f, n, env, &r);
    show(n, tls ? "TLS" : "plain", bar, &r);
    tmpdir_remove(dir);
    free(dir);
    faultd_stop(f);
}

/* --- what is left ------------------------------------------------------------------- */

static void left_over(const char *what, const char *more, const char *rules)
{
    struct faultd *f = faultd_start(NULL);
    char *dir = storebox_dir(), **env = env_for(f, dir), *json, text[96];
    struct bench_set ours = {0}, theirs = {0};
    json = xasprintf("{%s}", more);
    if (!faultd_config(f, json))
        die("the service does not take %s", json);
    fill(f, 250, rules);
    run_ours(env, true, NULL);
    bench_add(&ours, (double)look(f).left);
    if (cli()) {
        fill(f, 250, rules);
        run_cli(env, false);
        struct seen s = look(f);
        if (s.deletes)
            bench_add(&theirs, (double)s.left);
    }
    snprintf(text, sizeof(text), "left of 250, %s; floor: E2B's CLI", what);
    bench_print(section, &(struct bench_row){text, "", cli() ? &theirs : NULL, &ours,
                                             BENCH_VALUE_MAX, 0, true});
    free(json);
    tmpdir_remove(dir);
    free(dir);
    faultd_stop(f);
}

static void left_overs(void)
{
#define DELETE(what) "{\"method\":\"DELETE\"," what "}"
    left_over("stable cursor", "", "");
    left_over("offset cursor", "\"cursor\":\"offset\"", "");
    left_over("one 500", "", DELETE("\"times\":1,\"status\":500"));
    left_over("one 429, Retry-After", "", DELETE("\"times\":1,\"status\":429,\"retry_after\":\"1\""));
    left_over("one 429", "", DELETE("\"times\":1,\"status\":429"));
    left_over("a false 404", "", DELETE("\"times\":1,\"status\":404"));
    left_over("a false 204", "", DELETE("\"times\":1,\"status\":204"));
    left_over("a kill that does not hold", "", DELETE("\"times\":1,\"back_ms\":1"));
    left_over("an answer lost", "", DELETE("\"times\":1,\"cut\":0"));
#undef DELETE
}

/* --- from the key to the first delete ------------------------------------------------ */

static void press(struct faultd *f, char *const env[], struct bench_set *s)
{
    const char *argv[] = {bench_program("cc-tui"), NULL};
    static const char *const rows[] = {"running", NULL}, *const asks[] = {"y  kill", NULL};
    struct rawpty p;
    fill(f, 5, "");
    rawpty_start(&p, argv, env, 24, 80);
    if (rawpty_until(&p, rows, 10000)) {
        rawpty_settle(&p, 200, 2000);
        rawpty_send(&p, "K");
        rawpty_settle(&p, 300, 2000);
        rawpty_send(&p, "\t"); /* everything under this key */
        if (rawpty_until(&p, asks, 10000)) {
            rawpty_settle(&p, 300, 2000);
            int64_t at = bench_now_us();
            rawpty_send(&p, "y");
            rawpty_settle(&p, 700, 3000);
            struct seen k = look(f);
            if (k.deletes > 0)
                bench_add(s, (double)(k.first_us - at) / 1000);
        }
    }
    rawpty_send(&p, "\033q");
    rawpty_end(&p, 3000);
}

static void key_press(bool tls)
{
    struct faultd *f = tls ? faultd_start_tls(NULL) : faultd_start(NULL);
    char *dir = storebox_dir(), **env = env_for(f, dir), what[64];
    struct bench_set s = {0};
    for (int i = 0; i < bench_runs(5); i++)
        press(f, env, &s);
    snprintf(what, sizeof(what), "key y to the first delete, %s", tls ? "TLS" : "plain");
    if (s.n)
        bench_print(section, &(struct bench_row){what, "ms", NULL, &s, BENCH_VALUE_MAX, 5, true});
    else
        bench_skip(section, what, "the question did not come");
    tmpdir_remove(dir);
    free(dir);
    faultd_stop(f);
}

/* --- the same with a thousand streams running ------------------------------------------ */

/* Not the whole program: the net thread with the data plane's client reading a thousand
 * streams of ten lines a second, and a delete handed to it as the screen does. */
enum { STREAMS = 1000, PRESSES = 40 };

static struct busy {
    struct netbed *bed;
    struct envd *envd;
    struct e2b *e2b;
    struct envd_target target;
    struct faultd *fake;
    char ids[PRESSES + 1][32];
    int n, next;
} busy;
static bool spoke[STREAMS];

static bool on_line(void *ctx, enum envd_stream s, const char *text, size_t len)
{
    bool *first = ctx;
    (void)s;
    (void)text;
    (void)len;
    if (!*first)
        bed_tick(busy.bed);
    *first = true;
    return true;
}

static void on_stream_end(void *ctx, const struct envd_end *e)
{
    (void)ctx;
    fprintf(stderr, "a stream ended: %s\n", e->err.text);
    bed_tick(busy.bed);
}

static void open_streams(void *ctx)
{
    static const char *const lines[] = {"10", "0", NULL};
    struct envd_proc_spec spec = {.cmd = "faultd-lines", .args = lines};
    (void)ctx;
    busy.envd = envd_new(busy.bed->net, &busy.target);
    for (int i = 0; i < STREAMS; i++) {
        struct envd_proc_cb cb = {.on_data = on_line, .on_end = on_stream_end, .ctx = &spoke[i]};
        envd_start(busy.envd, &spec, &cb);
    }
}

static void on_listed(void *ctx, const struct e2b_result *r)
{
    (void)ctx;
    for (size_t i = 0; i < r->n && i <= PRESSES; i++)
        str_copy(busy.ids[i], sizeof(busy.ids[i]), r->v[i].sandbox_id);
    busy.n = r->n > PRESSES ? PRESSES + 1 : (int)r->n;
    bed_tick(busy.bed);
}

static void on_answer(void *ctx, const struct e2b_result *r)
{
    (void)ctx;
    (void)r;
    bed_tick(busy.bed);
}

static void list_rows(void *ctx)
{
    struct e2b_call_opts o = {.urgent = true, .warm = true, .give_up_ms = 20000};
    (void)ctx;
    e2b_list(busy.e2b, &o, on_listed, NULL);
}

static void look_up(void *ctx)
{
    (void)ctx;
    e2b_get(busy.e2b, busy.ids[0], NULL, (e2b_fn)ctx, NULL);
}

static void delete_one(void *ctx)
{
    struct e2b_call_opts o = {.urgent = true};
    (void)ctx;
    e2b_kill(busy.e2b, busy.ids[busy.next], &o, on_answer, NULL);
}

static void on_detail(void *ctx, const struct e2b_result *r)
{
    (void)ctx;
    if (r->n && r->v[0].token)
        busy.target.token = secret_dup(r->v[0].token);
    bed_tick(busy.bed);
}

static void begin_busy(void *ctx)
{
    struct e2b_account a = {.api_url = (char *)(uintptr_t)faultd_url(busy.fake),
                            .domain = (char *)"e2b.app",
                            .key = secret_new("e2b_0123456789abcdef", 20)};
    (void)ctx;
    busy.e2b = e2b_new(busy.bed->net, &a);
    secret_free(a.key);
}

static void end_busy(void *ctx)
{
    (void)ctx;
    envd_free(busy.envd);
    e2b_free(busy.e2b);
}

static void wait_for(void (*fn)(void *ctx), void *ctx, int n)
{
    bed_reset(busy.bed);
    bed_run(busy.bed, fn, ctx);
    if (!bed_wait(busy.bed, n, 60000))
        die("bench: the streams do not run");
}

static void press_busy(bool tls)
{
    static const char *const args[] = {"--sandboxes", "41", NULL};
    struct timespec gap = {0, 37000000};
    struct bench_set s = {0};
    char what[96];
    memset(&busy, 0, sizeof(busy));
    memset(spoke, 0, sizeof(spoke));
    busy.fake = tls ? faultd_start_tls(args) : faultd_start(args);
    struct net_opts o = {.user_agent = "cc-tui/bench", .ca_file = faultd_ca(busy.fake)};
    busy.bed = bed_new(&o);
    bed_run(busy.bed, begin_busy, NULL);
    wait_for(list_rows, NULL, 1);
    wait_for(look_up, (void *)on_detail, 1);
    busy.target.base_url = (char *)(uintptr_t)faultd_url(busy.fake);
    busy.target.sandbox_id = busy.ids[0];
    wait_for(open_streams, NULL, STREAMS);
    for (busy.next = 1; busy.next < busy.n; busy.next++) {
        if (!faultd_config(busy.fake, "{\"reset\":true}"))
            die("bench: the service is gone");
        nanosleep(&gap, NULL);
        int64_t at = bench_now_us();
        wait_for(delete_one, NULL, 1);
        bench_add(&s, (double)(look(busy.fake).first_us - at) / 1000);
    }
    snprintf(what, sizeof(what), "handed over to arrived, 1000 streams, %s", tls ? "TLS" : "plain");
    bench_print(section, &(struct bench_row){what, "ms", NULL, &s, BENCH_VALUE_MAX, 5, true});
    snprintf(what, sizeof(what), "the same, the worst of %d", s.n);
    bench_value(section, what, "ms", bench_max(&s), BENCH_VALUE_MAX, 20, false);
    bed_run(busy.bed, end_busy, NULL);
    bed_free(busy.bed);
    secret_free((struct secret *)(uintptr_t)busy.target.token);
    faultd_stop(busy.fake);
}

static bool wanted(const char *part)
{
    const char *only = getenv("PART");
    return !only || str_eq(only, part);
}

int main(void)
{
    fs_raise_nofile();
    if (!cli())
        bench_skip(section, "E2B's CLI", "tests/sdk/node_modules is not there (E2B_CLI names one)");
    if (wanted("tls")) {
        measure(20, true, 1.10);
        measure(100, true, 1.15);
        measure(1000, true, 1.50);
    }
    if (wanted("plain")) {
        measure(100, false, 1.15);
        measure(1000, false, 1.50);
    }
    if (wanted("left"))
        left_overs();
    if (wanted("key")) {
        key_press(false);
        key_press(true);
        press_busy(false);
        press_busy(true);
    }
    return 0;
}
