/* Process 1 of a sandbox: mounts, starts what it is told to, reaps, and reports. */
#include "jail.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ORDERS = 3, EXITS = 4, CHILDREN = 5, ARGS = 4096 };

static char room[JAIL_ORDER_MAX];

static bool write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    if (fd >= 0)
        close(fd);
    return ok;
}

static bool map_ids(unsigned uid, unsigned gid)
{
    char u[64], g[64];

    snprintf(u, sizeof(u), "%u %u 1", uid, uid);
    snprintf(g, sizeof(g), "%u %u 1", gid, gid);
    return write_file("/proc/self/setgroups", "deny") && write_file("/proc/self/uid_map", u) &&
           write_file("/proc/self/gid_map", g);
}

/* Everything is read-only but two folders in memory; /proc shows this namespace. */
static bool make_files(void)
{
    struct mount_attr ro = {.attr_set = MOUNT_ATTR_RDONLY};

    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL))
        return false;
    if (mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &ro, sizeof(ro)) && errno != ENOSYS)
        return false;
    return mount("tmpfs", "/home", "tmpfs", MS_NOSUID | MS_NODEV, "size=256m,mode=755") == 0 &&
           mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=256m,mode=1777") == 0 &&
           mkdir("/home/user", 0755) == 0 && chdir("/home/user") == 0;
}

static void say(int pid, int status, int fd)
{
    struct jail_report r = {pid, status};
    struct iovec io = {&r, sizeof(r)};
    union {
        struct cmsghdr h;
        char b[CMSG_SPACE(sizeof(int))];
    } c = {.b = {0}};
    struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1};

    if (fd >= 0) {
        m.msg_control = c.b;
        m.msg_controllen = sizeof(c.b);
        c.h.cmsg_level = SOL_SOCKET;
        c.h.cmsg_type = SCM_RIGHTS;
        c.h.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&c.h), &fd, sizeof(int));
    }
    if (sendmsg(ORDERS, &m, MSG_NOSIGNAL) < 0)
        _exit(1);
}

/* In the child: become the program. What cannot be done is told through `fail`. */
static void become(const struct jail_order *o, char **argv, char **envp, const char *cwd,
                   const int *fd, int fail)
{
    sigset_t none;
    int e;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    setsid();
    for (int i = 0; i < 3; i++)
        dup2(fd[i], i);
    if (o->tty)
        ioctl(0, TIOCSCTTY, 0);
    umask(022);
    if (chdir(cwd) != 0) {
        e = ENOTDIR;
    } else {
        environ = envp;
        execvp(argv[0], argv);
        e = errno;
    }
    if (write(fail, &e, sizeof(e)) != sizeof(e))
        _exit(126);
    _exit(127);
}

static void spawn(const struct jail_order *o, char *text, const char *end, const int *fd)
{
    static char *argv[ARGS], *envp[ARGS];
    char **to = argv;
    int fail[2], e = 0, n = 0;
    pid_t pid;

    for (int i = 0; i < o->argc + o->envc && text < end && n < ARGS - 1; i++) {
        if (i == o->argc)
            to = envp, n = 0;
        to[n++] = text;
        to[n] = NULL;
        text += strlen(text) + 1;
    }
    if (!o->envc)
        envp[0] = NULL;
    if (text >= end || pipe2(fail, O_CLOEXEC)) {
        say(0, text >= end ? E2BIG : errno, -1);
        return;
    }
    pid = fork();
    if (pid == 0)
        become(o, argv, envp, text, fd, fail[1]);
    close(fail[1]);
    if (pid < 0)
        e = errno;
    else if (read(fail[0], &e, sizeof(e)) != sizeof(e))
        e = 0; /* the exec closed it */
    close(fail[0]);
    say(pid, e, -1);
}

/* False when faultd is gone. */
static bool serve_order(void)
{
    union {
        struct cmsghdr h;
        char b[CMSG_SPACE(3 * sizeof(int))];
    } c;
    struct iovec io = {room, sizeof(room) - 1};
    struct msghdr m = {
        .msg_iov = &io, .msg_iovlen = 1, .msg_control = c.b, .msg_controllen = sizeof(c.b)};
    ssize_t n = recvmsg(ORDERS, &m, MSG_CMSG_CLOEXEC);
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    struct jail_order o;
    int fd[3] = {-1, -1, -1};

    if (n < (ssize_t)sizeof(o))
        return n < 0 && errno == EINTR;
    memcpy(&o, room, sizeof(o));
    room[n] = '\0';
    if (h && h->cmsg_type == SCM_RIGHTS)
        memcpy(fd, CMSG_DATA(h), h->cmsg_len - CMSG_LEN(0));
    if (o.op == JAIL_SPAWN)
        spawn(&o, room + sizeof(o), room + n, fd);
    else
        kill(o.pid, o.sig);
    for (int i = 0; i < 3; i++)
        if (fd[i] >= 0)
            close(fd[i]);
    return true;
}

static void reap(void)
{
    struct signalfd_siginfo info;
    int status, pid;

    if (read(CHILDREN, &info, sizeof(info)) < 0)
        return;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        struct jail_report r = {pid, status};
        if (write(EXITS, &r, sizeof(r)) != sizeof(r))
            _exit(1); /* nobody is there to serve */
    }
}

void jail_init_run(int orders, int exits, unsigned uid, unsigned gid, bool map)
{
    struct pollfd p[2] = {{.fd = ORDERS, .events = POLLIN}, {.fd = CHILDREN, .events = POLLIN}};
    sigset_t chld;
    int null, root;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "faultd-box");
    /* 3 and 4 may be taken, by each other even: go around */
    orders = fcntl(orders, F_DUPFD_CLOEXEC, 64);
    exits = fcntl(exits, F_DUPFD_CLOEXEC, 64);
    dup3(orders, ORDERS, O_CLOEXEC);
    dup3(exits, EXITS, O_CLOEXEC);
    close_range(EXITS + 1, ~0U, 0);
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    sigprocmask(SIG_SETMASK, &chld, NULL);
    if ((map && !map_ids(uid, gid)) || !make_files() ||
        signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK) != CHILDREN) {
        say(0, errno ? errno : EIO, -1);
        _exit(1);
    }
    null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, 0);
    dup2(null, 1);
    root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    say(0, 0, root);
    close(root);
    close(null);
    for (;;) {
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            _exit(1);
        if (p[1].revents)
            reap();
        if (p[0].revents && !serve_order())
            _exit(0); /* and the kernel ends all others with it */
    }
}
