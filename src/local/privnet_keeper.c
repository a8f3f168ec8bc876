/* Parent of one sandbox's pasta: says when the way out is there, then waits for the
 * end of either. A process of its own, without any of the provider's descriptors. */
#include <cct/local/privnet.h>
#include <cct/local/signals.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define READY_MS 10000
#define JOIN_MS 2000
#define ARGS_MAX 40

struct keeper {
    char *program;
    bool forward_dns;
    int routes; /* tells of new routes in the sandbox */
    int go;     /* closed: pasta may start */
    int talk;   /* what pasta prints */
    pid_t pasta;
    int pasta_fd;   /* its pidfd */
    char line[200]; /* last line of it that means something */
    struct buf said;
};

/* The only words the provider gets. */
static void tell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void tell(const char *fmt, ...)
{
    char text[360];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    size_t len = strlen(text);
    if (write(STDOUT_FILENO, text, len) != (ssize_t)len)
        errno = 0; /* the provider is gone: the sandbox stays ours to look after */
    close(STDOUT_FILENO);
}

/* --- pasta ------------------------------------------------------------------------ */

static void run_pasta(const struct keeper *k, int go, int out)
{
    char user[64], net[64], byte;
    snprintf(user, sizeof(user), "/proc/%d/ns/user", (int)getppid());
    snprintf(net, sizeof(net), "/proc/%d/ns/net", (int)getppid());
    const char *argv[ARGS_MAX] = {k->program, "--foreground", "--quiet", "--config-net",
                                  "--no-map-gw",
                                  /* by default it forwards what it finds, in both directions */
                                  "-t", "none", "-u", "none", "-T", "none", "-U", "none",
                                  "--userns", user, "--netns", net};
    int n = 0;
    while (argv[n])
        n++;
    if (k->forward_dns) {
        argv[n++] = "--dns-forward";
        argv[n++] = PRIVNET_DNS;
    }
    if (geteuid() == 0) { /* as `nobody`, its default, it may not join */
        argv[n++] = "--runas";
        argv[n++] = "0";
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_DFL); /* it takes an ignored one for a failure */
    if (read(go, &byte, 1) != 1)
        _exit(0); /* the keeper gave up */
    if (dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0)
        _exit(126);
    syscall(SYS_close_range, 3u, ~0u, 0);
    execv(k->program, (char *const *)(uintptr_t)argv);
    dprintf(STDERR_FILENO, "%s: %s\n", k->program, strerror(errno));
    _exit(127);
}

static bool fork_pasta(struct keeper *k)
{
    int go[2], out[2];
    if (pipe2(go, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        return false;
    k->pasta = fork();
    if (k->pasta == 0) {
        close(go[1]);
        run_pasta(k, go[0], out[1]);
    }
    close(go[0]);
    close(out[1]);
    k->go = go[1];
    k->talk = out[0];
    fcntl(k->talk, F_SETFL, O_NONBLOCK);
    if (k->pasta < 0)
        return false;
    k->pasta_fd = (int)syscall(SYS_pidfd_open, k->pasta, 0u);
    return k->pasta_fd >= 0;
}

static void end_pasta(const struct keeper *k)
{
    if (k->pasta <= 0)
        return;
    kill(k->pasta, SIGKILL); /* our own child, not waited for: still this process */
    while (waitpid(k->pasta, NULL, 0) < 0 && errno == EINTR)
        continue;
}

/* Keep the last line; that it has no system logger is nothing to tell. */
static void listen_to(struct keeper *k)
{
    char piece[512];
    ssize_t n;
    while ((n = read(k->talk, piece, sizeof(piece))) > 0)
        for (ssize_t i = 0; i < n; i++) {
            if (piece[i] != '\n') {
                if (k->said.len < sizeof(k->line) - 1)
                    buf_add(&k->said, &piece[i], 1);
                continue;
            }
            const char *line = buf_str(&k->said);
            size_t stamp = strspn(line, "0123456789.");
            if (stamp > 0 && str_starts(line + stamp, ": "))
                line += stamp + 2;
            if (*line && !strstr(line, "syslog"))
                str_copy(k->line, sizeof(k->line), line);
            buf_clear(&k->said);
        }
    if (n == 0) {
        close(k->talk);
        k->talk = -1; /* poll() skips it */
    }
}

/* --- the way out --------------------------------------------------------------------- */

static bool is_way_out(const char *p, size_t len)
{
    const struct nlmsghdr *h = (const void *)p;
    for (; NLMSG_OK(h, len); h = NLMSG_NEXT(h, len)) {
        const struct rtmsg *r = NLMSG_DATA(h);
        if (h->nlmsg_type == RTM_NEWROUTE && r->rtm_dst_len == 0 &&
            r->rtm_table == RT_TABLE_MAIN && r->rtm_type == RTN_UNICAST)
            return true;
    }
    return false;
}

/* Has a default route been set since we listen? */
static bool route_came(const struct keeper *k)
{
    _Alignas(struct nlmsghdr) char text[8192];
    ssize_t n;
    while ((n = recv(k->routes, text, sizeof(text), MSG_DONTWAIT)) > 0)
        if (is_way_out(text, (size_t)n))
            return true;
    return false;
}

/* Between its sealing and its exec() nobody of the same user may join the init: a
 * moment that is waited for. */
static int join(void)
{
    int64_t end = clock_mono_ms() + JOIN_MS;
    struct pollfd init = {PRIVNET_PID_FD, POLLIN, 0};
    int rc;
    while ((rc = setns(PRIVNET_PID_FD, CLONE_NEWUSER | CLONE_NEWNET)) != 0 && errno == EPERM &&
           clock_mono_ms() < end)
        if (poll(&init, 1, 1) != 0) {
            errno = ESRCH;
            break;
        }
    return rc;
}

/* Listen for routes where the sandbox is; we stay there, which gives rights over
 * nothing but the sandbox. */
static const char *listen_inside(struct keeper *k)
{
    if (join() != 0)
        return "the sandbox's namespaces cannot be joined";
    prctl(PR_SET_DUMPABLE, 1); /* pasta joins them through us */
    struct sockaddr_nl sa = {.nl_family = AF_NETLINK,
                             .nl_groups = RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE};
    k->routes = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (k->routes < 0 || bind(k->routes, (struct sockaddr *)&sa, sizeof(sa)) != 0)
        return "routes cannot be watched";
    return NULL;
}

enum { INIT, PASTA, TALK, ROUTES, SOURCES };

/* One wait for anything; false when `ms` (-1: no limit) are over. */
static bool await(struct keeper *k, struct pollfd p[SOURCES], int64_t ms)
{
    p[INIT] = (struct pollfd){PRIVNET_PID_FD, POLLIN, 0};
    p[PASTA] = (struct pollfd){k->pasta_fd, POLLIN, 0};
    p[TALK] = (struct pollfd){k->talk, POLLIN, 0};
    p[ROUTES] = (struct pollfd){k->routes, POLLIN, 0};
    int n;
    do
        n = poll(p, SOURCES, (int)ms);
    while (n < 0 && errno == EINTR);
    if (p[TALK].revents)
        listen_to(k);
    return n > 0;
}

/* Until the way out is there, or why it will not be. */
static bool bring_up(struct keeper *k)
{
    int64_t end = clock_mono_ms() + READY_MS, left;
    while ((left = end - clock_mono_ms()) > 0) {
        struct pollfd p[SOURCES];
        if (!await(k, p, left))
            break;
        if (p[INIT].revents) {
            tell("the sandbox ended");
            return false;
        }
        if (p[PASTA].revents) {
            if (k->talk >= 0)
                listen_to(k);
            tell("pasta says: %s", k->line[0] ? k->line : "nothing, and ended");
            return false;
        }
        if (p[ROUTES].revents && route_came(k))
            return true;
    }
    tell("pasta made no route within %d s%s%s", READY_MS / 1000, k->line[0] ? ": " : "",
         k->line);
    return false;
}

/* Until the sandbox or pasta ends. */
static void look_after(struct keeper *k)
{
    struct pollfd p[SOURCES];
    close(k->routes);
    k->routes = -1;
    do
        await(k, p, -1);
    while (!p[INIT].revents && !p[PASTA].revents);
}

int privnet_main(int argc, char **argv)
{
    struct keeper k = {.routes = -1, .talk = -1, .pasta_fd = -1};
    if (argc != 3) {
        fprintf(stderr, "cc-tui-local: " PRIVNET_KEEPER " is started by the provider only\n");
        return 2;
    }
    k.program = argv[1];
    k.forward_dns = strcmp(argv[2], "forward") == 0;
    prctl(PR_SET_NAME, PRIVNET_KEEPER);
    signals_default();
    signal(SIGPIPE, SIG_IGN);
    if (fcntl(PRIVNET_PID_FD, F_SETFD, FD_CLOEXEC) != 0 || !fork_pasta(&k)) {
        tell("its process cannot be started: %s", strerror(errno));
    } else {
        const char *step = listen_inside(&k);
        if (step)
            tell("%s: %s", step, strerror(errno));
        else if (write(k.go, "g", 1) != 1)
            tell("pasta cannot be started: %s", strerror(errno));
        else if (bring_up(&k)) {
            tell("ok");
            look_after(&k);
        }
    }
    end_pasta(&k);
    buf_release(&k.said);
    return 0;
}
