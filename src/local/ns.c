/* Namespaces: one clone() makes PID 1 of a sandbox with all of them; the parent
 * writes the id maps at once and never waits. */
#include <cct/local/cgroup.h>
#include <cct/local/init.h>
#include <cct/local/ns.h>
#include <cct/local/signals.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x00001000
#endif

#define GONE " (deleted)" /* the kernel's mark */

char *ns_own_path(void)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (n <= 0)
        return NULL;
    path[n] = '\0';
    /* replaced by another build meanwhile, which lies at the same place */
    if (access(path, F_OK) != 0 && str_ends(path, GONE))
        path[(size_t)n - strlen(GONE)] = '\0';
    return xstrdup(path);
}

/* Does our own map hold [first, first + count)? */
static bool map_has(const char *file, unsigned long first, unsigned long count,
                    unsigned long *top)
{
    FILE *f = fopen(file, "re");
    if (!f)
        return false;
    unsigned long in, out, n;
    bool found = false;
    while (fscanf(f, "%lu %lu %lu", &in, &out, &n) == 3) {
        if (in <= first && first + count <= in + n)
            found = true;
        if (in + n - 1 > *top)
            *top = in + n - 1;
    }
    fclose(f);
    return found;
}

const struct ns_ids *ns_ids(void)
{
    static struct ns_ids ids;
    static bool known;
    if (known)
        return &ids;
    known = true;
    ids.uid = geteuid();
    ids.gid = getegid();
    if (ids.uid != 0)
        return &ids;
    unsigned long top_u = 0, top_g = 0;
    bool wide = map_has("/proc/self/uid_map", NS_ROOT_BASE, NS_ROOT_COUNT, &top_u);
    wide = map_has("/proc/self/gid_map", NS_ROOT_BASE, NS_ROOT_COUNT, &top_g) && wide;
    if (wide) {
        ids.full = true;
        ids.base = NS_ROOT_BASE;
        ids.uid = ids.gid = NS_ROOT_BASE + NS_USER_ID;
    } else if (top_u > 60000 && top_g > 60000) {
        /* root of a container: an id at the far end of what it was given, so
         * the sandbox's user is no account of the container */
        ids.uid = (uid_t)(top_u > 65534 ? 65000 : top_u - 500);
        ids.gid = (gid_t)ids.uid;
    }
    return &ids;
}

static int write_proc(pid_t pid, const char *name, const char *text)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    return fs_put_value(path, text);
}

static int write_maps(pid_t pid, struct err *e)
{
    const struct ns_ids *ids = ns_ids();
    char uid[64], gid[64];
    if (ids->full) {
        snprintf(uid, sizeof(uid), "0 %u %u\n", (unsigned)ids->base, NS_ROOT_COUNT);
        snprintf(gid, sizeof(gid), "0 %u %u\n", (unsigned)ids->base, NS_ROOT_COUNT);
    } else {
        snprintf(uid, sizeof(uid), "%d %u 1\n", NS_USER_ID, (unsigned)ids->uid);
        snprintf(gid, sizeof(gid), "%d %u 1\n", NS_USER_ID, (unsigned)ids->gid);
        bool denied = ids->uid == geteuid(); /* else we may map any, and drop groups */
        if (denied && write_proc(pid, "setgroups", "deny") != 0 && errno != ENOENT)
            return err_sys(e, ERR_UNSUPPORTED, "step 'setgroups' failed");
    }
    if (write_proc(pid, "uid_map", uid) != 0)
        return err_sys(e, ERR_UNSUPPORTED, "step 'uid map' failed");
    if (write_proc(pid, "gid_map", gid) != 0)
        return err_sys(e, ERR_UNSUPPORTED, "step 'gid map' failed");
    return 0;
}

/* --- the child ------------------------------------------------------------ */

static void child_fail(int status_fd, const char *step)
{
    char text[256];
    int n = snprintf(text, sizeof(text), "step '%s' failed: %s", step, strerror(errno));
    ssize_t w = write(status_fd, text, (size_t)n);
    _exit(w == n ? 126 : 125);
}

static int high_copy(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, 20);
}

/* Descriptors: 0..2 /dev/null, 3 config, 4 listener, status above; rest closed. */
static const char *place_fds(const struct ns_spec *s, int *status_fd)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return "open /dev/null";
    int high[5] = {high_copy(null), -1, -1, high_copy(*status_fd), -1};
    bool grouped = !s->probe && s->cgroup_fd >= 0;
    if (grouped)
        high[4] = high_copy(s->cgroup_fd);
    if (!s->probe) {
        high[1] = high_copy(s->config_fd);
        high[2] = high_copy(s->listen_fd);
    }
    bool keep_stderr = getenv("CC_TUI_LOCAL_DEBUG") != NULL;
    for (int fd = 0; fd < 3; fd++)
        if ((fd < 2 || !keep_stderr) && dup2(high[0], fd) < 0)
            return "dup2";
    if (!s->probe && (dup2(high[1], INIT_CONFIG_FD) < 0 || dup2(high[2], INIT_LISTEN_FD) < 0))
        return "dup2";
    if (grouped && dup2(high[4], INIT_CGROUP_FD) < 0)
        return "dup2";
    int from = s->probe ? INIT_CONFIG_FD : grouped ? INIT_CGROUP_FD + 1 : INIT_LISTEN_FD + 1;
    *status_fd = high[3];
    syscall(SYS_close_range, (unsigned)from, (unsigned)*status_fd - 1, 0);
    syscall(SYS_close_range, (unsigned)*status_fd + 1, ~0u, 0);
    return NULL;
}

static const char *loopback_up(void)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return "socket";
    struct ifreq ifr;
    memset(&ifr, 0, sizeof(ifr));
    str_copy(ifr.ifr_name, sizeof(ifr.ifr_name), "lo");
    ifr.ifr_flags = IFF_UP;
    int rc = ioctl(fd, SIOCSIFFLAGS, &ifr);
    close(fd);
    return rc == 0 ? NULL : "loopback interface";
}

/* With a cgroup namespace of its own a nested root could mount the cgroups it is
 * in and write to those of our own user, the host's programs among them. The
 * switch belongs to this user namespace and counts for all below it. */
static const char *forbid_cgroup_namespaces(void)
{
    if (fs_put_value("/proc/sys/user/max_cgroup_namespaces", "0") == 0 || errno == ENOENT)
        return NULL; /* a kernel without them has no limit of them */
    return "limit of cgroup namespaces";
}

static const char *enter_namespaces(const struct ns_spec *s)
{
    /* sources that only our own account may reach are cloned before the ids
     * change; they are mounted later through their descriptors */
    if (unshare(CLONE_NEWCGROUP) != 0 && errno != EINVAL) /* a kernel without them */
        return "cgroup namespace";
    bool layered = s->layers_dir != NULL, home = !s->probe && !layered;
    struct ns_sources from = {.home = home ? ns_clone_tree(s->home) : -1,
                              .root_home = home ? ns_clone_tree(s->root_home) : -1,
                              .exe = ns_clone_tree(s->exe),
                              .layers = layered ? ns_clone_tree(s->layers_dir) : -1,
                              .upper = layered ? ns_clone_tree(s->upper) : -1};
    if (home && (from.home < 0 || from.root_home < 0))
        return "clone of the home folder's mount";
    if (from.exe < 0)
        return "clone of the program's mount";
    if (layered && (from.layers < 0 || from.upper < 0))
        return "clone of the layers' mount";
    if (geteuid() != NS_USER_ID) { /* our own id has no name in there */
        id_t first = ns_ids()->full ? 0 : NS_USER_ID;
        if (setresgid(first, first, first) != 0 || setresuid(first, first, first) != 0)
            return "change to an id of the sandbox";
    }
    if (s->own_net) {
        const char *step = loopback_up();
        if (step)
            return step;
    }
    if (sethostname(s->id, strlen(s->id)) != 0)
        return "host name";
    const char *step = ns_mount_all(s, &from);
    if (!step)
        step = forbid_cgroup_namespaces();
    return step ? step : ns_seal();
}

static void child_main(const struct ns_spec *s, int sync_fd, int status_fd)
{
    char go;
    ssize_t n;
    do
        n = read(sync_fd, &go, 1);
    while (n < 0 && errno == EINTR);
    if (n != 1)
        _exit(0); /* the parent gave up and knows why */
    signals_default();
    setsid();
    umask(022);
    const char *step = place_fds(s, &status_fd);
    if (!step && s->isolated)
        step = enter_namespaces(s);
    if (!step)
        ns_limit(s->isolated);
    if (!step && !s->isolated)
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* so that all can be found */
    if (step)
        child_fail(status_fd, step);
    const char *path = s->isolated ? INIT_BINARY : s->exe;
    char init[] = "sandbox-init", version[] = "--version", self[] = INIT_BINARY;
    char id[32]; /* names the process, should its record be lost */
    str_copy(id, sizeof(id), s->id);
    char *argv[] = {self, s->probe ? version : init, s->probe ? NULL : id, NULL};
    char as_root[] = INIT_AS_ROOT, is_root[] = INIT_IS_ROOT;
    char *root_argv[] = {self, as_root, self, is_root, NULL};
    char *envp[] = {NULL};
    execve(path, s->probe_root ? root_argv : argv, envp);
    child_fail(status_fd, "exec");
}

/* --- the parent ----------------------------------------------------------- */

static pid_t clone_child(unsigned long flags, int *pidfd)
{
    /* only flags and the third argument are used: the same on every order of
     * the remaining ones */
    return (pid_t)syscall(SYS_clone, flags | CLONE_PIDFD | SIGCHLD, NULL, pidfd, NULL, NULL);
}

static unsigned long clone_flags(const struct ns_spec *s)
{
    if (!s->isolated)
        return 0;
    /* the cgroup namespace comes later, when the init is in its group */
    unsigned long flags =
        CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS;
    return s->own_net ? flags | CLONE_NEWNET : flags;
}

pid_t ns_hold(int *pidfd, struct err *e)
{
    pid_t parent = getpid();
    ns_ids();
    pid_t pid = clone_child(CLONE_NEWUSER | CLONE_NEWNET, pidfd);
    if (pid == 0) {
        signals_default();
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (getppid() == parent)
            pause();
        _exit(0);
    }
    if (pid < 0)
        return err_sys(e, ERR_UNSUPPORTED, "step 'namespaces' failed");
    int rc = write_maps(pid, e);
    if (rc == 0)
        return pid;
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    close(*pidfd);
    return rc;
}

int ns_start(const struct ns_spec *s, struct ns_child *out, struct err *e)
{
    int sync[2], status[2];
    if (pipe2(sync, O_CLOEXEC) != 0)
        return err_sys(e, 0, "cannot make a pipe");
    if (pipe2(status, O_CLOEXEC) != 0) {
        err_sys(e, 0, "cannot make a pipe");
        close(sync[0]);
        close(sync[1]);
        return ERR_IO;
    }
    ns_ids();
    int pidfd = -1;
    pid_t pid = clone_child(clone_flags(s), &pidfd);
    if (pid == 0) {
        close(sync[1]);
        close(status[0]);
        child_main(s, sync[0], status[1]);
        _exit(127);
    }
    int rc = 0;
    if (pid < 0)
        rc = err_sys(e, ERR_UNSUPPORTED, "step 'namespaces' failed");
    else if (s->isolated)
        rc = write_maps(pid, e);
    if (rc == 0 && s->cgroup && cgroup_enter(s->cgroup, pid) != 0)
        rc = err_sys(e, ERR_IO, "cannot move the sandbox to its group '%s'", s->cgroup);
    if (rc == 0 && write(sync[1], "g", 1) != 1)
        rc = err_sys(e, ERR_IO, "cannot start the sandbox");
    close(sync[0]);
    close(sync[1]); /* without the byte the child ends by itself */
    close(status[1]);
    if (rc != 0) {
        close(status[0]);
        if (pid > 0)
            close(pidfd);
        return rc;
    }
    fcntl(status[0], F_SETFL, O_NONBLOCK);
    *out = (struct ns_child){pid, pidfd, status[0]};
    return 0;
}
