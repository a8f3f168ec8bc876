/* Kill all: N sandboxes whose deletes take 100 to 200 ms, over TLS with HTTP/2 (a hundred
 * streams on a connection, as real services allow) and over plain HTTP. The service says
 * when requests came: from the first delete's arrival to the last answer, against the
 * slowest answer, against libcurl's multi interface doing only the deletes, and the whole
 * command against E2B's own. Then what is left of 250 by both when the service stumbles,
 * and the time from the key to the first delete. */
#include "../lib/bench.h"
#include "../lib/faultproc.h"
#include "../lib/rawpty.h"
#include "../lib/storebox.h"

#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    static char path[PATH_MAX];
    const char *given = getenv("E2B_CLI");
    if (!path[0] && !realpath(given ? given : "tests/sdk/node_modules/.bin/e2b", path))
        return NULL;
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
        bench_add(&r->cli, run_cli(env, true));
        bench_add(&r->cli_total, look(f).total);
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
    if (cli()) {
        ROW("deletes; floor: those of E2B's CLI", "ms", &r->cli_total, &r->total, BENCH_RATIO_MAX,
            n >= 1000 ? 0.12 : 1, n >= 1000);
        ROW("whole command; floor: E2B's CLI", "ms", &r->cli, &r->wall, BENCH_RATIO_MAX,
            n >= 1000 ? 0.12 : 1, false);
    } else {
        ROW("whole command", "ms", NULL, &r->wall, BENCH_INFO, 0, false);
    }
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
    storebox_remove(dir);
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
        bench_add(&theirs, (double)look(f).left);
    }
    snprintf(text, sizeof(text), "left of 250, %s; floor: E2B's CLI", what);
    bench_print(section, &(struct bench_row){text, "", cli() ? &theirs : NULL, &ours,
                                             BENCH_VALUE_MAX, 0, true});
    free(json);
    storebox_remove(dir);
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
    storebox_remove(dir);
    free(dir);
    faultd_stop(f);
}

int main(void)
{
    if (!cli())
        bench_skip(section, "E2B's CLI", "tests/sdk/node_modules is not there (E2B_CLI names one)");
    measure(20, true, 1.10);
    measure(100, true, 1.15);
    measure(1000, true, 1.50);
    measure(100, false, 1.15);
    measure(1000, false, 1.50);
    left_overs();
    key_press(false);
    key_press(true);
    return 0;
}
