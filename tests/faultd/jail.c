/* faultd's side of a jail: make it, give orders, hear of ends. */
#include "jail.h"
#include "loop.h"
#include <cct/util/buf.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct jail {
    struct watch exits;
    int orders, root;
    pid_t pid;
    void (*exited)(void *ctx, int pid, int status);
    void *ctx;
};

static void on_exits(struct watch *w, uint32_t events)
{
    struct jail *j = OWNER_OF(w, struct jail, exits);
    struct jail_report r;
    ssize_t n;

    (void)events;
    while ((n = read(w->fd, &r, sizeof(r))) == sizeof(r)) {
        j->exited(j->ctx, r.pid, r.status);
        if (!w->added)
            return; /* the jail went with it */
    }
    if (n == 0)
        loop_unwatch(w);
}

/* fork() into new namespaces. */
static pid_t split(bool user)
{
    unsigned long flags = CLONE_NEWNS | CLONE_NEWPID | (user ? CLONE_NEWUSER : 0) | SIGCHLD;

    return (pid_t)syscall(SYS_clone, flags, 0, 0, 0, 0);
}

static bool hear(int from, struct jail_report *r, int *fd)
{
    union {
        struct cmsghdr h;
        char b[CMSG_SPACE(sizeof(int))];
    } c;
    struct iovec io = {r, sizeof(*r)};
    struct msghdr m = {
        .msg_iov = &io, .msg_iovlen = 1, .msg_control = c.b, .msg_controllen = sizeof(c.b)};
    ssize_t n;

    do
        n = recvmsg(from, &m, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n == sizeof(*r) && fd && CMSG_FIRSTHDR(&m))
        memcpy(fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(*fd));
    return n == sizeof(*r);
}

static struct jail *try_new(bool user, int *error)
{
    struct jail *j = xcalloc(1, sizeof(*j));
    struct jail_report r = {0, EIO};
    int orders[2], exits[2];
    unsigned uid = geteuid(), gid = getegid();

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, orders) ||
        pipe2(exits, O_CLOEXEC))
        die("faultd: no sockets: %s", strerror(errno));
    fcntl(exits[0], F_SETFL, O_NONBLOCK);
    j->root = -1;
    j->pid = split(user);
    *error = errno;
    if (j->pid == 0)
        jail_init_run(orders[1], exits[1], uid, gid, user);
    close(orders[1]);
    close(exits[1]);
    j->orders = orders[0];
    j->exits.fd = exits[0];
    j->exits.ready = on_exits;
    if (j->pid > 0 && hear(j->orders, &r, &j->root) && r.status == 0) {
        loop_watch(&j->exits, EPOLLIN);
        return j;
    }
    if (j->pid > 0)
        *error = r.status;
    jail_free(j);
    return NULL;
}

struct jail *jail_new(void (*exited)(void *ctx, int pid, int status), void *ctx, char *why,
                      size_t size)
{
    int error = 0;
    struct jail *j = try_new(true, &error);

    if (!j && geteuid() == 0) /* root may do without a user namespace */
        j = try_new(false, &error);
    if (!j) {
        snprintf(why, size, "no namespaces for a sandbox: %s", strerror(error));
        return NULL;
    }
    j->exited = exited;
    j->ctx = ctx;
    return j;
}

void jail_free(struct jail *j)
{
    if (!j)
        return;
    loop_unwatch(&j->exits);
    if (j->pid > 0) {
        kill(j->pid, SIGKILL);
        while (waitpid(j->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    close(j->orders);
    close(j->exits.fd);
    if (j->root >= 0)
        close(j->root);
    loop_bury(j);
}

int jail_spawn(struct jail *j, const struct jail_job *job, int *pid)
{
    struct jail_order o = {.op = JAIL_SPAWN, .tty = job->tty};
    struct jail_report r;
    struct buf b = BUF_INIT;
    union {
        struct cmsghdr h;
        char b[CMSG_SPACE(3 * sizeof(int))];
    } c = {.b = {0}};
    struct iovec io;
    struct msghdr m = {
        .msg_iov = &io, .msg_iovlen = 1, .msg_control = c.b, .msg_controllen = sizeof(c.b)};
    ssize_t n;

    buf_add(&b, &o, sizeof(o));
    for (; job->argv[o.argc]; o.argc++)
        buf_add(&b, job->argv[o.argc], strlen(job->argv[o.argc]) + 1);
    for (; job->envp[o.envc]; o.envc++)
        buf_add(&b, job->envp[o.envc], strlen(job->envp[o.envc]) + 1);
    buf_add(&b, job->cwd, strlen(job->cwd) + 1);
    memcpy(b.p, &o, sizeof(o));
    io = (struct iovec){b.p, b.len};
    c.h.cmsg_level = SOL_SOCKET;
    c.h.cmsg_type = SCM_RIGHTS;
    c.h.cmsg_len = CMSG_LEN(3 * sizeof(int));
    memcpy(CMSG_DATA(&c.h), job->fd, 3 * sizeof(int));
    n = b.len < JAIL_ORDER_MAX ? sendmsg(j->orders, &m, MSG_NOSIGNAL) : -1;
    n = n < 0 ? (b.len < JAIL_ORDER_MAX ? errno : E2BIG) : 0;
    buf_release(&b);
    if (n)
        return (int)n;
    if (!hear(j->orders, &r, NULL))
        return EPIPE;
    *pid = r.pid;
    return r.status;
}

void jail_signal(struct jail *j, int pid, int sig)
{
    struct jail_order o = {.op = JAIL_SIGNAL, .pid = pid, .sig = sig};

    if (send(j->orders, &o, sizeof(o), MSG_NOSIGNAL) < 0 && errno != EPIPE)
        die("faultd: cannot signal a process: %s", strerror(errno));
}

int jail_root(const struct jail *j)
{
    return j->root;
}

static void ignore_exit(void *ctx, int pid, int status)
{
    (void)ctx, (void)pid, (void)status;
}

bool jail_possible(char *why, size_t size)
{
    struct jail *j = jail_new(ignore_exit, NULL, why, size);

    jail_free(j);
    return j != NULL;
}
