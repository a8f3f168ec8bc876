/* One list of sandboxes: `cc-tui ls` from fork to end, against curl fetching the same
 * list over the same scheme, and the official CLI's `sandbox list`. CPU time too. */
#include "../lib/bench.h"
#include "../lib/faultproc.h"
#include "../lib/storebox.h"
#include "../lib/tmpdir.h"

#include <cct/util/xalloc.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const char section[] = "list";
static const char key[] = "e2b_0123456789abcdef0123456789abcdef01234567";

struct side {
    struct bench_set wall, cpu;
    int bad;
};

static double ms(struct timeval t)
{
    return (double)t.tv_sec * 1000 + (double)t.tv_usec / 1000;
}

static void run_once(const char *const argv[], char *const env[], struct side *s)
{
    posix_spawn_file_actions_t fa;
    struct rusage ru;
    int status = -1;
    pid_t pid;

    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&fa, 1, "/dev/null", O_WRONLY, 0);
    int64_t t0 = bench_now_us();
    if (posix_spawnp(&pid, argv[0], &fa, NULL, (char *const *)(uintptr_t)argv, env) != 0 ||
        wait4(pid, &status, 0, &ru) != pid || status != 0) {
        s->bad++;
    } else {
        bench_add(&s->wall, (double)(bench_now_us() - t0) / 1000);
        bench_add(&s->cpu, ms(ru.ru_utime) + ms(ru.ru_stime));
    }
    posix_spawn_file_actions_destroy(&fa);
}

/* The environment of a run, with the server's address and its CA. */
static char **environment(const struct faultd *f, const char *dir)
{
    char **env = bench_env(dir, 0);
    size_t n = 0;

    while (env[n])
        n++;
    env = xrealloc(env, (n + 6) * sizeof(*env));
    env[n++] = xasprintf("E2B_API_URL=%s", faultd_url(f));
    env[n++] = xasprintf("E2B_API_KEY=%s", key);
    if (faultd_ca(f)) {
        env[n++] = xasprintf("SSL_CERT_FILE=%s", faultd_ca(f));
        env[n++] = xasprintf("NODE_EXTRA_CA_CERTS=%s", faultd_ca(f));
    }
    env[n++] = xstrdup("NO_UPDATE_NOTIFIER=1");
    env[n] = NULL;
    return env;
}

static void row(const char *name, const char *what, const struct bench_set *floor,
                const struct bench_set *ours, double bar, bool must)
{
    char *text = xasprintf("%s: %s", name, what);

    bench_print(section,
                &(struct bench_row){text, "ms", floor, ours, BENCH_RATIO_MAX, bar, must});
    free(text);
}

static void measure(const char *name, struct faultd *f)
{
    char *dir = storebox_dir(), **env = environment(f, dir);
    char *url = xasprintf("%s/v2/sandboxes?state=running,paused&limit=100", faultd_url(f));
    char *head = xasprintf("X-API-Key: %s", key), *prog = bench_program("cc-tui");
    const char *floor[] = {"curl", "-sS", "--fail", "-H", head, url, NULL, NULL, NULL};
    const char *ours[] = {prog, "ls", NULL};
    const char *node = "tests/sdk/node_modules/.bin/node", *cli = "tests/sdk/node_modules/.bin/e2b";
    const char *peer[] = {access(node, X_OK) == 0 ? node : "node", cli, "sandbox", "list", NULL};
    struct side a = {0}, b = {0}, c = {0};
    bool with_peer = access(cli, R_OK) == 0;

    if (faultd_ca(f)) {
        floor[6] = "--cacert";
        floor[7] = faultd_ca(f);
    }
    run_once(ours, env, &(struct side){0}); /* the database is made */
    for (int i = 0; i < bench_runs(21); i++) {
        run_once(floor, env, &a);
        run_once(ours, env, &b);
        if (with_peer && i % 4 == 0)
            run_once(peer, env, &c);
    }
    row(name, "floor: curl", &a.wall, &b.wall, 1.3, false);
    row(name, "floor: curl, at most twice its time", &a.wall, &b.wall, 2, true);
    row(name, "floor: curl, CPU time", &a.cpu, &b.cpu, 2, false);
    if (with_peer && c.bad == 0) {
        row(name, "floor: the official CLI", &c.wall, &b.wall, 0.05, true);
        row(name, "floor: the official CLI, CPU time", &c.cpu, &b.cpu, 0.05, true);
    } else {
        char *text = xasprintf("%s: the official CLI", name);
        bench_skip(section, text, with_peer ? "it failed" : "tests/sdk/node_modules is not there");
        free(text);
    }
    char *text = xasprintf("%s: runs that failed", name);
    bench_value(section, text, "", b.bad, BENCH_VALUE_MAX, 0, true);
    free(text);
    tmpdir_remove(dir);
    free(dir);
    free(url);
    free(head);
    free(prog);
}

int main(void)
{
    static const char *const boxes[] = {"--sandboxes", "20", "--paused", "5", NULL};
    struct faultd *f = faultd_start(boxes);

    measure("http", f);
    faultd_stop(f);
    f = faultd_start_tls(boxes);
    measure("https", f);
    faultd_stop(f);
    return 0;
}
