/* fork and exec of one process: own session, default signals, nothing inherited
 * but its three descriptors. A command that cannot be executed ends with the
 * shell's codes (127, 126) and one line on its stderr, as envd's wrapper does. */
#include "envd_process.h"
#include <cct/local/cgroup.h>
#include <cct/local/init.h>
#include <cct/local/signals.h>
#include <cct/util/arr.h>
#include <cct/util/fs.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct strv {
    ARR(char *) a;
};

static void strv_free(struct strv *v)
{
    for (size_t i = 0; i < v->a.n; i++)
        free(v->a.v[i]);
    ARR_RELEASE(&v->a);
}

static void env_put(struct strv *v, const char *name, const char *value)
{
    size_t n = strlen(name);
    if (n == 0 || strchr(name, '=') != NULL || value == NULL)
        return;
    char *pair = xasprintf("%s=%s", name, value);
    for (size_t i = 0; i < v->a.n; i++) {
        if (strncmp(v->a.v[i], pair, n + 1) == 0) {
            free(v->a.v[i]);
            v->a.v[i] = pair;
            return;
        }
    }
    *ARR_PUSH(&v->a) = pair;
}

static void env_put_all(struct strv *v, const struct cJSON *obj)
{
    for (const struct cJSON *c = json_first(obj); c != NULL; c = json_next(c))
        env_put(v, json_name(c), json_str_of(c));
}

static void env_build(struct envd *e, const struct proc_spec *spec, struct strv *v)
{
    env_put(v, "PATH", ENVD_PATH);
    env_put(v, "HOME", envd_home_of(e, spec->user));
    env_put(v, "USER", spec->user);
    env_put(v, "LOGNAME", spec->user);
    env_put(v, "LANG", "C.UTF-8");
    if (spec->pty)
        env_put(v, "TERM", "xterm-256color");
    env_put_all(v, e->env);
    env_put_all(v, spec->envs);
    *ARR_PUSH(&v->a) = NULL;
}

static void argv_build(const struct proc_spec *spec, struct strv *v)
{
    /* its own namespace is for a program that is nothing like the init: /proc
     * lets nobody touch a process that still holds the init's memory */
    if (strcmp(spec->user, "root") == 0 && geteuid() != 0) {
        *ARR_PUSH(&v->a) = xstrdup("/proc/self/exe");
        *ARR_PUSH(&v->a) = xstrdup(INIT_AS_ROOT);
    }
    *ARR_PUSH(&v->a) = xstrdup(spec->cmd);
    for (const struct cJSON *c = json_first(spec->args); c != NULL; c = json_next(c)) {
        const char *s = json_str_of(c);
        *ARR_PUSH(&v->a) = xstrdup(s != NULL ? s : "");
    }
    *ARR_PUSH(&v->a) = NULL;
}

/* The child's ends of the pipes, and the parent's. */
struct ends {
    int child[3];
    int parent[3];
};

static void ends_close(int fds[3])
{
    for (int i = 0; i < 3; i++) {
        bool again = false;
        for (int k = 0; k < i; k++)
            again |= fds[k] == fds[i];
        if (fds[i] >= 0 && !again)
            close(fds[i]);
    }
}

/* A descriptor of the child must not be 0..2 itself, or dup2 would tread on it. */
static int above_stdio(int fd)
{
    if (fd > 2 || fd < 0)
        return fd;
    int up = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    int saved = errno;
    close(fd);
    errno = saved;
    return up;
}

static int open_pty(const struct proc_spec *spec, struct ends *en)
{
    struct winsize ws = {.ws_row = (unsigned short)spec->rows,
                         .ws_col = (unsigned short)spec->cols};
    int master, slave;
    if (openpty(&master, &slave, NULL, NULL, &ws) != 0)
        return -errno;
    master = above_stdio(master);
    slave = above_stdio(slave);
    fcntl(master, F_SETFD, FD_CLOEXEC);
    fcntl(slave, F_SETFD, FD_CLOEXEC);
    for (int i = 0; i < 3; i++)
        en->child[i] = slave;
    en->parent[0] = en->parent[1] = master;
    return 0;
}

static int open_pipes(const struct proc_spec *spec, struct ends *en)
{
    for (int i = 0; i < 3; i++) {
        int fds[2];
        if (i == 0 && !spec->stdin_on) {
            en->child[0] = above_stdio(open("/dev/null", O_RDONLY | O_CLOEXEC));
            if (en->child[0] < 0)
                return -errno;
            continue;
        }
        if (pipe2(fds, O_CLOEXEC) != 0)
            return -errno;
        en->child[i] = above_stdio(fds[i == 0 ? 0 : 1]);
        en->parent[i] = above_stdio(fds[i == 0 ? 1 : 0]);
    }
    return 0;
}

static void child_fail(int code, const char *what, const char *name)
{
    char line[512];
    int n = snprintf(line, sizeof(line), "%s: %.300s: %s\n", what, name, strerror(errno));
    if (n > 0 && write(2, line, (size_t)n) < 0)
        code = 126; /* nobody can be told why; the code still says that it failed */
    _exit(code);
}

static void run_program(char **argv)
{
    execvp(argv[0], argv);
    child_fail(errno == ENOENT ? 127 : 126, "exec", argv[0]);
}

int init_as_root(char **argv)
{
    char uids[64], gids[64];
    snprintf(uids, sizeof(uids), "0 %u 1\n", (unsigned)geteuid());
    snprintf(gids, sizeof(gids), "0 %u 1\n", (unsigned)getegid());
    /* as long as the groups could be changed their map is refused */
    if (geteuid() != 0 && unshare(CLONE_NEWUSER) == 0 &&
        (fs_put_value("/proc/self/setgroups", "deny") != 0 ||
         fs_put_value("/proc/self/gid_map", gids) != 0 ||
         fs_put_value("/proc/self/uid_map", uids) != 0))
        child_fail(126, "cannot become root for", argv[0]);
    run_program(argv);
    return 127;
}

/* In the child: only async-signal-safe calls up to here would be needed with
 * threads; the init has none. */
static void child_run(const struct proc_spec *spec, const struct ends *en, char **argv,
                      char **envp)
{
    setsid();
    for (int i = 0; i < 3; i++)
        dup2(en->child[i], i);
    if (spec->pty)
        ioctl(0, TIOCSCTTY, 0);
    signals_default();
    if (chdir(spec->cwd) != 0)
        child_fail(126, "cannot enter the folder", spec->cwd);
    environ = envp;
    run_program(argv);
}

static pid_t fork_grouped(struct envd *e)
{
    pid_t pid = e->cgroup_fd >= 0 ? cgroup_fork(e->cgroup_fd) : -1;
    if (pid >= 0 || (e->cgroup_fd >= 0 && errno == EAGAIN))
        return pid;
    if (e->cgroup_fd >= 0) {
        envd_log(e, "processes are not started in their group: %s", strerror(errno));
        e->ungrouped = true;
    }
    return fork();
}

int proc_spawn(struct envd *e, struct proc *p, const struct proc_spec *spec)
{
    struct ends en = {{-1, -1, -1}, {-1, -1, -1}};
    struct strv argv = {ARR_INIT}, envp = {ARR_INIT};
    sigset_t all, old;
    int rc = spec->pty ? open_pty(spec, &en) : open_pipes(spec, &en);
    if (rc != 0) {
        ends_close(en.child);
        ends_close(en.parent);
        return rc;
    }
    argv_build(spec, &argv);
    env_build(e, spec, &envp);
    /* A signal between fork and exec must not run the loop's handlers twice. */
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &old);
    p->pid = fork_grouped(e);
    if (p->pid == 0)
        child_run(spec, &en, argv.a.v, envp.a.v);
    rc = p->pid < 0 ? -errno : 0;
    sigprocmask(SIG_SETMASK, &old, NULL);
    ends_close(en.child);
    strv_free(&argv);
    strv_free(&envp);
    if (rc != 0) {
        ends_close(en.parent);
        return rc;
    }
    p->fd_in = en.parent[0];
    p->fd_out[PROC_OUT] = en.parent[1];
    p->fd_out[PROC_ERR] = en.parent[2];
    return 0;
}

int proc_resize(struct proc *p, unsigned cols, unsigned rows)
{
    struct winsize ws = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols};
    int fd = p->fd_out[PROC_OUT] >= 0 ? p->fd_out[PROC_OUT] : p->fd_in;
    return ioctl(fd, TIOCSWINSZ, &ws) == 0 ? 0 : -errno;
}
