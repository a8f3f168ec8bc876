/* The facade under test. */
#include "appbed.h"
#include "tmpdir.h"

#include <cct/keys.h>
#include <cct/secrets/secret.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* LOOK_MS: some conditions are not about the model, and nothing wakes us for them */
enum { WAIT_MS = 60000, STOP_MS = 3000, LOOK_MS = 50 };

void appbed_main(void)
{
    const char *b = getenv("B"), *old = getenv("PATH");
    char *cwd = getcwd(NULL, 0);
    char *path = xasprintf("%s/%s:%s", cwd, b ? b : "build/asan", old ? old : "");
    struct err e = {0};
    sigset_t all;

    setenv("PATH", path, 1);
    free(path);
    free(cwd);
    sigfillset(&all);
    sigdelset(&all, SIGINT);
    sigdelset(&all, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    thread_set_role(THREAD_MAIN);
    if (secrets_init(&e) != 0)
        die("%s", e.text);
}

bool appbed_isolated(void)
{
    static int known = -1;

    if (known < 0)
        known = system("cc-tui-local probe >/dev/null 2>&1") == 0;
    return known == 1;
}

char *appbed_path(const struct appbed *b, const char *name)
{
    return fs_join(b->root, name);
}

struct appbed *appbed_new(void)
{
    struct appbed *b = xcalloc(1, sizeof(*b));

    str_copy(b->root, sizeof(b->root), "/tmp/cct-app.XXXXXX");
    if (!mkdtemp(b->root))
        die("no scratch folder");
    return b;
}

int appbed_setup(void **state)
{
    struct appbed *b = appbed_new();

    setenv("HOME", b->root, 1);
    *state = b;
    return 0;
}

int appbed_teardown(void **state)
{
    appbed_free(*state);
    return 0;
}

void appbed_service(const struct appbed *b, const char *url)
{
    setenv("HOME", b->root, 1);
    setenv("E2B_API_URL", url, 1);
    setenv("E2B_SANDBOX_URL", url, 1);
    setenv("E2B_API_KEY", APPBED_KEY, 1);
}

static void stop_provider(const struct appbed *b)
{
    char *cmd = xasprintf("cc-tui-local stop --state-dir %s/state/local --runtime-dir %s/run "
                          ">/dev/null 2>&1",
                          b->root, b->root);
    if (system(cmd) != 0)
        fprintf(stderr, "no provider to stop in %s\n", b->root);
    free(cmd);
}

void appbed_free(struct appbed *b)
{
    char *rt = appbed_path(b, "run/local.json");

    app_free(b->app);
    if (access(rt, F_OK) == 0)
        stop_provider(b);
    tmpdir_remove(b->root);
    free(rt);
    free(b->text);
    free(b);
}

static void observe(void *ctx, const struct msg *m)
{
    struct appbed *b = ctx;
    const struct ev_done *d = (const struct ev_done *)m;

    if (m->type == EV_LINK && ((const struct ev_link *)m)->state != LINK_OK)
        b->losses++;
    if (m->type != EV_DONE)
        return;
    if (m->req_id >= sizeof(b->ended) || b->ended[m->req_id]++)
        die("request %llu ended twice", (unsigned long long)m->req_id);
    b->codes[m->req_id] = d->err.code;
    b->outcomes[m->req_id] = d->outcome;
    b->made[m->req_id] = d->sandbox;
    if (d->err.code)
        str_copy(b->last_error, sizeof(b->last_error), d->err.text);
    if (m->req_id != b->wanted)
        return;
    b->err = d->err;
    free(b->text);
    b->text = xstrdup(d->text);
}

void appbed_open(struct appbed *b, const struct app_opts *given)
{
    char *data = appbed_path(b, "data"), *conf = appbed_path(b, "conf");
    char *state = appbed_path(b, "state"), *rt = appbed_path(b, "run");
    struct app_opts o = *given;
    struct err e = {0};

    o.data_dir = data;
    o.config_dir = conf;
    o.state_dir = state;
    o.runtime_dir = rt;
    keys_take_env();
    b->app = app_new(&o, &e);
    if (!b->app)
        die("%s", e.text);
    memset(b->ended, 0, sizeof(b->ended));
    app_observe(b->app, observe, b);
    if (app_start(b->app, &e) != 0 || app_go_online(b->app, &e) != 0)
        die("%s", e.text);
    free(data);
    free(conf);
    free(state);
    free(rt);
}

void appbed_close(struct appbed *b)
{
    int64_t t = clock_mono_ms();

    app_stop(b->app);
    if (clock_mono_ms() - t > STOP_MS)
        die("the stop took %lld ms", (long long)(clock_mono_ms() - t));
    app_free(b->app);
    b->app = NULL;
}

bool appbed_wait(struct appbed *b, bool (*ok)(struct appbed *b, const void *arg),
                 const void *arg)
{
    int64_t until = clock_mono_ms() + WAIT_MS;

    for (;;) {
        struct pollfd p = {app_fd(b->app), POLLIN, 0};
        int64_t left = until - clock_mono_ms();

        app_drain(b->app, 8);
        if (ok(b, arg))
            return true;
        if (left <= 0)
            return false;
        poll(&p, 1, left < LOOK_MS ? (int)left : LOOK_MS);
    }
}

static bool has_ended(struct appbed *b, const void *arg)
{
    (void)arg;
    return b->ended[b->wanted] != 0;
}

int appbed_finish(struct appbed *b, uint64_t req)
{
    b->wanted = req;
    if (!appbed_wait(b, has_ended, NULL))
        die("request %llu never ended", (unsigned long long)req);
    b->outcome = b->outcomes[req];
    b->sandbox = b->made[req];
    return b->codes[req];
}

void appbed_must(struct appbed *b, uint64_t req)
{
    if (appbed_finish(b, req) != 0)
        die("request %llu: %s", (unsigned long long)req, b->last_error);
}
