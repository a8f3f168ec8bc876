/* The provider's call for a connection into a sandbox. By hand, not as an initcall:
 * buffered reading would lose the descriptor that comes with the answer. */
#include <cct/local/portcall.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <event2/event.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct portcall {
    struct event *ev;
    int fd;
    portcall_fn fn;
    void *arg;
};

void portcall_cancel(struct portcall *c)
{
    if (!c)
        return;
    event_free(c->ev);
    if (c->fd >= 0)
        close(c->fd);
    free(c);
}

static bool is_tcp(int fd)
{
    int domain = 0, type = 0;
    socklen_t len = sizeof(int);
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 &&
           getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 &&
           (domain == AF_INET || domain == AF_INET6) && type == SOCK_STREAM;
}

/* The descriptor that came with a message, or -1. There may be a second one: with the
 * padding there is room for it, and the sender is in the sandbox. */
static int taken_fd(struct msghdr *m)
{
    struct cmsghdr *c = CMSG_FIRSTHDR(m);
    if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
        return -1;
    size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    int taken = -1;
    for (size_t i = 0; i < n; i++) {
        int fd;
        memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
        if (n == 1 && is_tcp(fd) && evutil_make_socket_nonblocking(fd) == 0)
            taken = fd;
        else
            close(fd);
    }
    return taken;
}

/* One look is enough: the descriptor comes first and alone, a refusal whole. */
static void on_answer(evutil_socket_t sock, short what, void *arg)
{
    struct portcall *c = arg;
    char text[256] = "";
    struct iovec io = {text, sizeof(text) - 1};
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr m = {.msg_iov = &io,
                       .msg_iovlen = 1,
                       .msg_control = control.room,
                       .msg_controllen = sizeof(control.room)};
    int fd = -1, status = 0;
    if ((what & EV_READ) && recvmsg(sock, &m, MSG_CMSG_CLOEXEC) > 0) {
        fd = taken_fd(&m);
        if (fd < 0 && strncmp(text, "HTTP/1.", 7) == 0 && strlen(text) > 9)
            status = (int)strtol(text + 9, NULL, 10);
    }
    c->fn(c->arg, fd, status);
    portcall_cancel(c);
}

/* A socket on which the request is sent, or -1. A unix socket connects at once or
 * not at all, and takes these few bytes. */
static int send_request(const char *sock, const char *token, unsigned port)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    if (!str_copy(sa.sun_path, sizeof(sa.sun_path), sock))
        return -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    char json[32], text[512];
    int body = snprintf(json, sizeof(json), "{\"port\":%u}", port);
    int n = snprintf(text, sizeof(text),
                     "POST /cc/port HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                     "X-Access-Token: %s\r\nX-CC-Control: %s\r\n"
                     "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
                     token, token, body, json);
    if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 &&
        send(fd, text, (size_t)n, MSG_NOSIGNAL) == n)
        return fd;
    close(fd);
    return -1;
}

struct portcall *portcall_start(struct event_base *base, const char *sock, const char *token,
                                unsigned port, int timeout_ms, portcall_fn fn, void *arg)
{
    struct portcall *c = xcalloc(1, sizeof(*c));
    c->fn = fn;
    c->arg = arg;
    c->fd = send_request(sock, token, port);
    c->ev = event_new(base, c->fd, EV_READ, on_answer, c);
    if (!c->ev)
        die("libevent is out of memory");
    struct timeval tv = {timeout_ms / 1000, timeout_ms % 1000 * 1000};
    if (c->fd < 0)
        tv = (struct timeval){0, 0}; /* the failure is told from the loop */
    event_add(c->ev, &tv);
    return c;
}
