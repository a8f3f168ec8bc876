/* The chaos proxy: forwards TCP and, on command, cuts, holds or delays it. Commands
 * are lines on the control socket, each answered by one line:
 *
 *   cut             reset every connection now
 *   down MS         reset all, and every new one, for MS milliseconds
 *   hole MS         a black hole: nothing is forwarded for MS ms, nothing is closed
 *   delay MS        every piece waits that long from now on
 *   stat            "conns N bytes N"
 *   quit
 *
 * Servers on loopback take requests only under their own address, so a Host line that
 * names the proxy is made to name the target. */
#include "faultd.h"
#include <arpa/inet.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PIECE = 64 << 10, HELD_MAX = 4 << 20 };

struct piece {
    int64_t due;
    struct buf data;
};
/* One direction of a connection. */
struct pipe_dir {
    int from, to;
    ARR(struct piece) q;
    size_t held;
    bool eof, shut;
};
struct link {
    struct pipe_dir dir[2];
    bool dead;
};
struct proxy {
    struct sockaddr_in to;
    ARR(struct link *) links;
    ARR(int) controls;
    int64_t down_until, hole_until, delay_ms;
    uint64_t bytes;
    bool quit;
    char host[32], to_host[32]; /* Host lines: as they come, as they go; same length */
};

static void reset(int fd)
{
    struct linger now = {1, 0}; /* RST, not FIN */

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(fd);
}

static void link_free(struct proxy *p, size_t i)
{
    struct link *l = p->links.v[i];

    reset(l->dir[0].from);
    reset(l->dir[1].from);
    for (int d = 0; d < 2; d++) {
        for (size_t k = 0; k < l->dir[d].q.n; k++)
            buf_release(&l->dir[d].q.v[k].data);
        ARR_RELEASE(&l->dir[d].q);
    }
    free(l);
    p->links.v[i] = p->links.v[--p->links.n];
}

static void cut_all(struct proxy *p)
{
    while (p->links.n)
        link_free(p, p->links.n - 1);
}

/* A port, or a path of a socket. */
static int listen_on(const char *where, bool announce)
{
    int64_t port = 0;
    int fd, one = 1;

    if (where[0] == '/') {
        struct sockaddr_un u = {.sun_family = AF_UNIX};
        str_copy(u.sun_path, sizeof(u.sun_path), where);
        unlink(where);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (bind(fd, (struct sockaddr *)&u, sizeof(u)) || listen(fd, 16))
            die("faultd: cannot listen on %s: %s", where, strerror(errno));
        return fd;
    }
    if (!str_to_i64(where, 0, 65535, &port))
        die("faultd: %s is no port", where);
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(a);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 4096) ||
        getsockname(fd, (struct sockaddr *)&a, &n))
        die("faultd: cannot listen on port %s: %s", where, strerror(errno));
    if (announce) {
        printf("http://127.0.0.1:%d\n", ntohs(a.sin_port));
        fflush(stdout);
    }
    return fd;
}

static void accept_some(struct proxy *p, int listen_fd)
{
    int fd, up, one = 1;

    while ((fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        if (clock_mono_ms() < p->down_until) {
            reset(fd);
            continue;
        }
        up = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (connect(up, (struct sockaddr *)&p->to, sizeof(p->to)) != 0 &&
            errno != EINPROGRESS) {
            reset(fd);
            close(up);
            continue;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        setsockopt(up, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        struct link *l = xcalloc(1, sizeof(*l));
        l->dir[0].from = l->dir[1].to = fd;
        l->dir[0].to = l->dir[1].from = up;
        *ARR_PUSH(&p->links) = l;
    }
}

/* How much of the end of these bytes may be the begin of a Host line. */
static size_t cut_host(const struct proxy *p, const char *s, size_t len)
{
    for (size_t n = strlen(p->host); n-- > strlen("Host");)
        if (n < len && memcmp(s + len - n, p->host, n) == 0)
            return n;
    return 0;
}

static ssize_t receive(struct proxy *p, int fd, char *room, size_t size, bool request)
{
    ssize_t n = recv(fd, room, size, request ? MSG_PEEK : 0);
    size_t len = strlen(p->host);
    char *at = room;

    if (n <= 0 || !request)
        return n;
    n = recv(fd, room, (size_t)n - cut_host(p, room, (size_t)n), 0);
    while (n > 0 && len && (at = memmem(at, (size_t)(room + n - at), p->host, len)))
        memcpy(at, p->to_host, len);
    return n;
}

static void pull(struct proxy *p, struct link *l, struct pipe_dir *d)
{
    static char room[PIECE];
    ssize_t n = receive(p, d->from, room, sizeof(room), d == &l->dir[0]);

    if (n > 0) {
        struct piece *k = ARR_PUSH(&d->q);
        k->due = clock_mono_ms() + p->delay_ms;
        buf_add(&k->data, room, (size_t)n);
        d->held += (size_t)n;
        p->bytes += (uint64_t)n;
    } else if (n == 0) {
        d->eof = true;
    } else if (errno != EAGAIN) {
        l->dead = true;
    }
}

/* Send what is due; a full or not yet connected socket is tried again by poll. */
static void push(struct link *l, struct pipe_dir *d, int64_t now)
{
    while (d->q.n && d->q.v[0].due <= now && !l->dead) {
        struct buf *b = &d->q.v[0].data;
        ssize_t n = send(d->to, b->p, b->len, MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == ENOTCONN))
            return;
        if (n < 0) {
            l->dead = true;
            return;
        }
        d->held -= (size_t)n;
        buf_consume(b, (size_t)n);
        if (b->len)
            continue;
        buf_release(b);
        ARR_REMOVE(&d->q, 0);
    }
    if (d->eof && !d->q.n && !d->shut) {
        shutdown(d->to, SHUT_WR);
        d->shut = true;
    }
}

/* False when the one who asked is gone. */
static bool command(struct proxy *p, int fd, char *line)
{
    char answer[128] = "ok\n";
    int64_t now = clock_mono_ms(), ms = 0;
    char *arg = strchr(line, ' ');

    if (arg) {
        *arg++ = '\0';
        str_to_i64(str_trim(arg), 0, 3600000, &ms);
    }
    if (str_eq(line, "cut")) {
        cut_all(p);
    } else if (str_eq(line, "down")) {
        cut_all(p);
        p->down_until = now + ms;
    } else if (str_eq(line, "hole")) {
        p->hole_until = now + ms;
    } else if (str_eq(line, "delay")) {
        p->delay_ms = ms;
    } else if (str_eq(line, "stat")) {
        snprintf(answer, sizeof(answer), "conns %zu bytes %llu\n", p->links.n,
                 (unsigned long long)p->bytes);
    } else if (str_eq(line, "quit")) {
        p->quit = true;
    } else {
        snprintf(answer, sizeof(answer), "unknown command\n");
    }
    return send(fd, answer, strlen(answer), MSG_NOSIGNAL) > 0;
}

/* Lines come whole from test scripts; a long or cut one is an unknown command. */
static bool control_read(struct proxy *p, int fd)
{
    char text[512];
    ssize_t n = recv(fd, text, sizeof(text) - 1, 0);

    if (n <= 0)
        return n < 0 && errno == EAGAIN;
    text[n] = '\0';
    for (char *at = text, *eol; *at; at = eol) {
        eol = at + strcspn(at, "\n");
        if (*eol)
            *eol++ = '\0';
        if (*str_trim(at) && !command(p, fd, str_trim(at)))
            return false;
    }
    return true;
}

static int wait_ms(const struct proxy *p, int64_t now)
{
    bool hole = now < p->hole_until;
    int64_t next = hole ? p->hole_until : -1;

    for (size_t i = 0; !hole && i < p->links.n; i++)
        for (int d = 0; d < 2; d++) {
            const struct pipe_dir *q = &p->links.v[i]->dir[d];
            if (q->q.n && q->q.v[0].due > now && (next < 0 || q->q.v[0].due < next))
                next = q->q.v[0].due;
        }
    return next < 0 ? -1 : (int)(next - now);
}

static short link_events(const struct proxy *p, const struct link *l, int d, int64_t now)
{
    const struct pipe_dir *in = &l->dir[d], *out = &l->dir[1 - d];
    short ev = 0;

    if (now < p->hole_until)
        return 0;
    if (!in->eof && in->held < HELD_MAX)
        ev |= POLLIN;
    if (out->q.n && out->q.v[0].due <= now)
        ev |= POLLOUT;
    return ev;
}

static void forward(struct proxy *p, struct pollfd *fds, size_t known)
{
    int64_t now = clock_mono_ms();

    if (now < p->hole_until)
        return;
    for (size_t i = 0; i < known; i++) {
        struct link *l = p->links.v[i];
        for (int d = 0; d < 2; d++) {
            if (fds[2 * i + d].revents & (POLLIN | POLLHUP | POLLERR) && !l->dir[d].eof)
                pull(p, l, &l->dir[d]);
            push(l, &l->dir[d], now);
        }
    }
    for (size_t i = p->links.n; i-- > 0;) {
        struct link *l = p->links.v[i];
        if (l->dead || (l->dir[0].shut && l->dir[1].shut))
            link_free(p, i);
    }
}

static void turn(struct proxy *p, int listen_fd, int control_fd)
{
    static struct pollfd *fds;
    static size_t cap;
    size_t links = p->links.n, controls = p->controls.n, need = 2 + controls + 2 * links;
    int64_t now = clock_mono_ms();

    arr_grow((void **)&fds, &cap, need, sizeof(*fds));
    fds[0] = (struct pollfd){.fd = listen_fd, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = control_fd, .events = POLLIN};
    for (size_t i = 0; i < controls; i++)
        fds[2 + i] = (struct pollfd){.fd = p->controls.v[i], .events = POLLIN};
    for (size_t i = 0; i < links; i++)
        for (int d = 0; d < 2; d++) {
            short ev = link_events(p, p->links.v[i], d, now);
            /* without events the descriptor is left out: HUP would be reported for ever */
            fds[2 + controls + 2 * i + (size_t)d] =
                (struct pollfd){.fd = ev ? p->links.v[i]->dir[d].from : -1, .events = ev};
        }
    poll(fds, need, wait_ms(p, now));
    forward(p, fds + 2 + controls, links);
    for (size_t i = controls; i-- > 0;)
        if (fds[2 + i].revents && !control_read(p, p->controls.v[i])) {
            close(p->controls.v[i]);
            ARR_REMOVE(&p->controls, i);
        }
    if (fds[0].revents)
        accept_some(p, listen_fd);
    if (fds[1].revents) {
        int fd = accept4(control_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0)
            *ARR_PUSH(&p->controls) = fd;
    }
}

static void name_hosts(struct proxy *p, int listen_fd)
{
    struct sockaddr_in a;
    socklen_t n = sizeof(a);

    if (getsockname(listen_fd, (struct sockaddr *)&a, &n) != 0)
        return;
    snprintf(p->host, sizeof(p->host), "Host: 127.0.0.1:%d", ntohs(a.sin_port));
    snprintf(p->to_host, sizeof(p->to_host), "Host: 127.0.0.1:%d", ntohs(p->to.sin_port));
    if (strlen(p->host) != strlen(p->to_host))
        p->host[0] = '\0';
}

int proxy_run(const char *listen_at, const char *to, const char *control)
{
    struct proxy p = {.to.sin_family = AF_INET};
    char host[64];
    const char *colon = strrchr(to, ':');
    int64_t port = 0;
    int listen_fd, control_fd;

    if (!colon || (size_t)(colon - to) >= sizeof(host) ||
        !str_to_i64(colon + 1, 1, 65535, &port))
        die("faultd proxy: --to needs HOST:PORT");
    snprintf(host, sizeof(host), "%.*s", (int)(colon - to), to);
    if (inet_pton(AF_INET, host, &p.to.sin_addr) != 1 ||
        ntohl(p.to.sin_addr.s_addr) >> 24 != 127)
        die("faultd proxy: --to needs a loopback address");
    p.to.sin_port = htons((uint16_t)port);
    control_fd = listen_on(control, false);
    listen_fd = listen_on(listen_at, true);
    name_hosts(&p, listen_fd);
    while (!p.quit)
        turn(&p, listen_fd, control_fd);
    cut_all(&p);
    return 0;
}
