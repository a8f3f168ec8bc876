/* Commands under test. */
#include "runcmd.h"
#include "tmpdir.h"

#include <cct/util/clock.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { VARS = 32, ARGS = 24 };

void runcmd_init(struct runcmd *r)
{
    char home[] = "/tmp/cct-run.XXXXXX";

    memset(r, 0, sizeof(*r));
    r->out = r->err = -1;
    if (!mkdtemp(home))
        die("test: no scratch folder: %s", strerror(errno));
    r->home = xstrdup(home);
}

void runcmd_release(struct runcmd *r)
{
    tmpdir_remove(r->home);
    free(r->home);
    buf_release(&r->text);
    buf_release(&r->talk);
}

static char **make_env(const struct runcmd *r, const char *const extra[])
{
    static const char *const places[] = {"CONFIG", "DATA", "STATE", "RUNTIME"};
    static const char *const kept[] = {"PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"};
    char **env = xcalloc(VARS + 1, sizeof(*env));
    size_t n = 0;

    env[n++] = xasprintf("HOME=%s", r->home);
    env[n++] = xstrdup("LC_ALL=C.UTF-8");
    for (size_t i = 0; i < 4; i++)
        env[n++] = xasprintf("CC_TUI_%s_DIR=%s", places[i], r->home);
    for (size_t i = 0; i < 4; i++)
        if (getenv(kept[i]))
            env[n++] = xasprintf("%s=%s", kept[i], getenv(kept[i]));
    for (size_t i = 0; extra && extra[i] && n < VARS; i++)
        env[n++] = xstrdup(extra[i]);
    return env;
}

void runcmd_start(struct runcmd *r, const char *const args[], const char *const env[])
{
    const char *dir = getenv("B"), *argv[ARGS + 2] = {"cc-tui"};
    char *path = xasprintf("%s/cc-tui", dir ? dir : "build/debug"), **vars = make_env(r, env);
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t at;
    sigset_t none;
    int out[2], err[2];

    for (int i = 0; i < ARGS && args[i]; i++)
        argv[i + 1] = args[i];
    if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
        die("test: %s", strerror(errno));
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&fa, out[1], 1);
    posix_spawn_file_actions_adddup2(&fa, err[1], 2);
    sigemptyset(&none); /* the test may block signals, the program decides for itself */
    posix_spawnattr_init(&at);
    posix_spawnattr_setsigmask(&at, &none);
    posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSIGMASK);
    if (posix_spawn(&r->pid, path, &fa, &at, (char *const *)(void *)argv, vars) != 0)
        die("test: cannot start %s", path);
    posix_spawn_file_actions_destroy(&fa);
    posix_spawnattr_destroy(&at);
    close(out[1]);
    close(err[1]);
    r->out = out[0];
    r->err = err[0];
    r->status = -1;
    buf_clear(&r->text);
    buf_clear(&r->talk);
    for (size_t i = 0; vars[i]; i++)
        free(vars[i]);
    free(vars);
    free(path);
}

static void take(int *fd, struct buf *b)
{
    char room[16384];
    ssize_t n = read(*fd, room, sizeof(room));

    if (n > 0) {
        buf_add(b, room, (size_t)n);
    } else if (n == 0 || errno != EINTR) {
        close(*fd);
        *fd = -1;
    }
}

static void reap(struct runcmd *r)
{
    int st = 0;

    if (r->pid && waitpid(r->pid, &st, 0) == r->pid)
        r->status = WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st);
    r->pid = 0;
}

bool runcmd_read(struct runcmd *r, int ms)
{
    int64_t until = clock_mono_ms() + ms;

    while (r->out >= 0 || r->err >= 0) {
        struct pollfd p[2] = {{r->out, POLLIN, 0}, {r->err, POLLIN, 0}};
        int64_t left = until - clock_mono_ms();

        if (left < 0 || poll(p, 2, (int)left) == 0)
            return false;
        if (p[0].revents)
            take(&r->out, &r->text);
        if (p[1].revents)
            take(&r->err, &r->talk);
    }
    reap(r);
    return true;
}

void runcmd_kill(struct runcmd *r, int sig)
{
    if (r->pid)
        kill(r->pid, sig);
}

int runcmd_end(struct runcmd *r, int ms)
{
    bool ended = runcmd_read(r, ms);

    if (!ended) {
        runcmd_kill(r, SIGKILL);
        runcmd_read(r, 5000);
        r->status = -1;
    }
    return r->status;
}
